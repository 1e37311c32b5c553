//! Wire format of the raft strategy: the opaque parts of its messages.

use serde::{Deserialize, Serialize};

use crate::election::Description;
use crate::election::record::{Record, Stamp};
use crate::id::{Fingerprint, Incarnation, PeerId};

/// A message with the fields that every message carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// The sender's epoch and term.
    pub stamp: Stamp,
    /// Where the quorum is static, the sender's write counter
    /// ([`Saved::writes`](crate::election::raft::saved::Saved::writes)) as it is on disk; else 0.
    pub writes: u64,
    /// The content.
    pub message: ElectionMessage,
}

impl Stamped {
    /// A message of a member that keeps nothing on disk.
    pub fn new(stamp: Stamp, message: ElectionMessage) -> Self {
        Self {
            stamp,
            writes: 0,
            message,
        }
    }

    /// Describes the message for a trace.
    pub(super) fn describe(&self) -> Description {
        use ElectionMessage as M;
        let at = self.stamp.term;
        let (kind, term, granted, names) = match &self.message {
            M::PreVoteRequest { term, .. } => ("pre_vote_request", *term, None, None),
            M::PreVoteResponse {
                granted, record, ..
            } => (
                "pre_vote_response",
                at,
                Some(*granted),
                record.leader.as_ref(),
            ),
            M::VoteRequest { .. } => ("vote_request", at, None, None),
            M::VoteResponse {
                granted, record, ..
            } => ("vote_response", at, Some(*granted), record.leader.as_ref()),
            M::LeaderAssign { record, .. } => {
                ("leader_assign", record.term(), None, record.leader.as_ref())
            }
            M::LeaderAssignAck {
                accepted, record, ..
            } => (
                "leader_assign_ack",
                record.term(),
                Some(*accepted),
                record.leader.as_ref(),
            ),
            M::Nack { record, .. } => ("nack", record.term(), None, record.leader.as_ref()),
            M::TimeoutNow { target } => ("timeout_now", at, None, Some(target)),
            M::TransferRequest { target, .. } => ("transfer_request", at, None, Some(target)),
            M::TransferRefused { .. } => ("transfer_refused", at, None, None),
            M::ForeignSide { peer, .. } => ("foreign_side", at, None, Some(peer)),
        };
        Description {
            kind,
            term: Some(term),
            granted,
            names: names.cloned(),
            ballot: None,
        }
    }
}

/// The strategy's part of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// As [`Stamped::writes`].
    pub writes: u64,
    /// Its content about leadership.
    pub pulse: Pulse,
    /// Between voters of a static quorum: what the sender remembers of the receiver.
    pub memory: Option<Memory>,
}

impl From<Pulse> for Beat {
    /// The part of a member that keeps nothing on disk.
    fn from(pulse: Pulse) -> Self {
        Self {
            writes: 0,
            pulse,
            memory: None,
        }
    }
}

impl Beat {
    /// Describes the part for a trace.
    pub(super) fn describe(&self) -> Description {
        let (kind, record) = match &self.pulse {
            Pulse::Leads { record, .. } => ("leader_heartbeat", record),
            Pulse::Follows { record, .. } => ("heartbeat", record),
        };
        Description {
            term: Some(record.term()),
            names: record.leader.clone(),
            ..Description::plain(kind)
        }
    }
}

/// Content of a heartbeat about leadership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pulse {
    /// A peer that does not lead: the record that it follows, and whether it receives that record's leader's heartbeats.
    Follows {
        /// The largest record that the sender has seen.
        record: Record,
        /// Whether the record's leader is alive to the sender.
        live: bool,
    },
    /// A leader.
    Leads {
        /// The record under which it leads.
        record: Record,
        /// Voters, itself included, that answered within the last heartbeat timeout.
        weight: u32,
        /// Time led without interruption, in milliseconds.
        led_ms: u64,
        /// The shortest election timeout in force on its side, in milliseconds.
        election_timeout_min_ms: u32,
    },
}

/// A voter's report to another one about state files, with a static quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The sender's write counter when its incarnation began, or when it last learned which votes it may have
    /// forgotten: it knows all votes that it gave since. 0 while it may have forgotten some, and neither votes nor
    /// leads.
    pub since: u64,
    /// The largest write counter that an earlier incarnation of the receiver showed to the sender, while the sender
    /// does not count this incarnation; else 0. A receiver that does not know its votes up to that counter lost its
    /// file, or has an older copy.
    pub remembered: u64,
    /// Whether the sender has heard all other voters since it began, and knows every vote of its own that they know.
    /// Until then its own file may be the one that was lost.
    pub sure: bool,
}

/// One end's knowledge about leadership on a new link; both ends compare it when two sides merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The largest leadership record seen.
    pub record: Record,
    /// The leader that is alive now: the sender itself, or a leader whose heartbeats it receives.
    pub live: Option<LiveLeader>,
    /// Whether the sender has had no peer since its start.
    pub lone: bool,
    /// Where the quorum is static, [`Memory::since`] of the sender's heartbeats; else 0.
    pub since: u64,
    /// Whether `record` is assigned and Hold binds a member that adopts it from the sender, which follows its leader,
    /// or did.
    pub hold_binds: bool,
}

/// A leader that is known to be alive, and how strong its side is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLeader {
    /// The leader's id.
    pub id: PeerId,
    /// The leader's key: another room may have another member of that id.
    pub key: Fingerprint,
    /// The incarnation that leads.
    pub incarnation: Incarnation,
    /// Voters, the leader included, that answered the leader within the last heartbeat timeout; 0 if the sender has not
    /// heard the leader yet under the accompanying record, which assigns it.
    pub weight: u32,
    /// Time led without interruption, in milliseconds.
    pub led_ms: u64,
    /// The remaining time for which the sender believes in the leader without hearing from it, in milliseconds.
    pub rest_ms: u32,
}

/// A message between members. Where a field is documented as the sender, it must name the authenticated sender; a
/// message that names another peer is a violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ElectionMessage {
    /// "Would you vote for me in `term`?" Changes nothing at either end.
    PreVoteRequest {
        /// Counts the candidate's rounds.
        round: u64,
        /// The sender.
        candidate: PeerId,
        /// The term that a campaign would have.
        term: u64,
    },
    /// The answer to a pre-vote.
    PreVoteResponse {
        /// The round answered.
        round: u64,
        /// The sender.
        voter: PeerId,
        /// Whether the sender would vote for the candidate.
        granted: bool,
        /// The largest record that the sender has seen.
        record: Record,
        /// The leader whose heartbeats the sender receives, or the sender itself.
        live: Option<LiveLeader>,
    },
    /// "Vote for me." The term is in the stamp.
    VoteRequest {
        /// Counts the candidate's rounds.
        round: u64,
        /// The sender.
        candidate: PeerId,
        /// The leader that asked for this campaign: it left, or transfers its leadership. Its leases then do not bind.
        asked_by: Option<PeerId>,
    },
    /// The answer to a vote request.
    VoteResponse {
        /// The round answered.
        round: u64,
        /// The sender.
        voter: PeerId,
        /// Whether the vote was given.
        granted: bool,
        /// The largest record that the sender has seen.
        record: Record,
        /// The leader whose heartbeats the sender receives, or the sender itself.
        live: Option<LiveLeader>,
    },
    /// `SetLeader` was called at the sender.
    LeaderAssign {
        /// The new record; its assigner is the sender.
        record: Record,
        /// Counts the sender's assignments.
        seq: u64,
    },
    /// The answer to an assignment.
    LeaderAssignAck {
        /// The assignment answered.
        seq: u64,
        /// Whether the sender follows the assignment now.
        accepted: bool,
        /// The largest record that the sender has seen.
        record: Record,
    },
    /// The receiver's claim is older than the sender's record.
    Nack {
        /// The largest record that the sender has seen.
        record: Record,
        /// The leader whose heartbeats the sender receives, or the sender itself.
        live: Option<LiveLeader>,
    },
    /// A follower met a foreign side, and reports that side's description to its leader.
    ForeignSide {
        /// The peer that was met.
        peer: PeerId,
        /// The sender's description of its own side.
        ours: Side,
        /// The peer's description of its side.
        theirs: Side,
    },
    /// The sender, which leads under the record of the stamp, transfers its leadership: `target` campaigns at once. All
    /// members receive this, so that they tolerate that campaign.
    TimeoutNow {
        /// The new leader.
        target: PeerId,
    },
    /// Static quorum only: `SetLeader` was called at the sender, which follows the receiver. The receiver transfers its
    /// leadership to `target`.
    TransferRequest {
        /// Counts the sender's requests.
        seq: u64,
        /// The new leader.
        target: PeerId,
    },
    /// The answer of a leader that refuses to transfer its leadership to the target of a request.
    TransferRefused {
        /// The request answered.
        seq: u64,
    },
}
