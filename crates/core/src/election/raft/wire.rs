//! What members whose votes elect say to each other: the opaque parts of their messages.

use serde::{Deserialize, Serialize};

use crate::election::Description;
use crate::election::record::{Record, Stamp};
use crate::id::{Fingerprint, Incarnation, PeerId};

/// A message with what every message carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// The sender's epoch and term.
    pub stamp: Stamp,
    /// Where the quorum is static, the sender's write counter
    /// ([`Saved::writes`](crate::election::raft::saved::Saved::writes)) as it is on disk; else 0.
    pub writes: u64,
    /// What it says.
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

    /// In the words of a trace.
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
    /// What it says about leadership.
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
    /// In the words of a trace.
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

/// What a heartbeat says about leadership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pulse {
    /// Of a peer that does not lead: the record it goes by, and whether it hears that leader directly.
    Follows {
        /// The largest record that the sender has seen.
        record: Record,
        /// Whether the record's leader is alive to the sender.
        live: bool,
    },
    /// Of a leader.
    Leads {
        /// The record under which it leads.
        record: Record,
        /// Voters, itself included, that answered within the last heartbeat timeout.
        weight: u32,
        /// How long it has led without interruption, in milliseconds.
        led_ms: u64,
        /// The shortest election timeout in force where it leads, in milliseconds.
        election_timeout_min_ms: u32,
    },
}

/// What a voter of a static quorum tells another one about state files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The sender's write counter when its incarnation began, or when it last learned which votes it may have
    /// forgotten: it knows all votes that it gave since. 0 while it may have forgotten some, and neither votes nor leads.
    pub since: u64,
    /// The largest write counter that an earlier incarnation of the receiver showed to the sender, while the sender does
    /// not count this one; else 0. A receiver that knows no more of that counter lost its file, or has an older copy.
    pub remembered: u64,
    /// Whether the sender has heard from all other voters since it began, and knows all votes of its own of which they
    /// know. Until then its own file may be the one that was lost.
    pub sure: bool,
}

/// What one end of a new link knows about leadership, as both ends compare it when two sides meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The largest leadership record seen.
    pub record: Record,
    /// The leader that is alive now: the sender itself, or one that it hears directly.
    pub live: Option<LiveLeader>,
    /// Whether the sender has had no peer since its start.
    pub lone: bool,
    /// Where the quorum is static, [`Memory::since`] of the sender's heartbeats; else 0.
    pub since: u64,
    /// Whether `record` is assigned and Hold binds a member that adopts it from the sender, which follows its leader, or did.
    pub hold_binds: bool,
}

/// A leader that is known to be alive, and how strong its side is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLeader {
    /// Who leads.
    pub id: PeerId,
    /// The leader's key: another room may have another member of that id.
    pub key: Fingerprint,
    /// Which incarnation of it leads.
    pub incarnation: Incarnation,
    /// Voters, the leader included, that answered the leader within the last heartbeat timeout; 0 where the sender
    /// has not heard it yet under the record beside which this stands, which assigns it.
    pub weight: u32,
    /// How long it has led without interruption, in milliseconds.
    pub led_ms: u64,
    /// How much longer the sender believes in it without hearing from it, in milliseconds.
    pub rest_ms: u32,
}

/// What members say to each other. Names of peers in here must be those of the authenticated sender where the field
/// says so; a message that names another is a violation.
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
        /// The leader that the sender hears directly, or is.
        live: Option<LiveLeader>,
    },
    /// "Vote for me." The term is in the stamp.
    VoteRequest {
        /// Counts the candidate's rounds.
        round: u64,
        /// The sender.
        candidate: PeerId,
        /// The leader that asked for this campaign: it left, or hands over. The leases that it holds do not bind then.
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
        /// The leader that the sender hears directly, or is.
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
        /// Whether the sender goes by it now.
        accepted: bool,
        /// The largest record that the sender has seen.
        record: Record,
    },
    /// "What you claim is older than what I know."
    Nack {
        /// The largest record that the sender has seen.
        record: Record,
        /// The leader that the sender hears directly, or is.
        live: Option<LiveLeader>,
    },
    /// A follower met a foreign side and tells its leader what that side said of itself.
    ForeignSide {
        /// The peer that was met.
        peer: PeerId,
        /// What the sender said of its own side.
        ours: Side,
        /// What the peer said of its side.
        theirs: Side,
    },
    /// The sender, who leads under the record of the stamp, hands over: `target` campaigns at once. All
    /// are told, so that they let that campaign pass.
    TimeoutNow {
        /// Who shall lead.
        target: PeerId,
    },
    /// Where the quorum is static: `SetLeader` was called at the sender, who follows the receiver. The receiver hands
    /// over to `target`.
    TransferRequest {
        /// Counts the sender's requests.
        seq: u64,
        /// Who shall lead.
        target: PeerId,
    },
    /// The answer of a leader that does not hand over to the target of a request.
    TransferRefused {
        /// The request answered.
        seq: u64,
    },
}
