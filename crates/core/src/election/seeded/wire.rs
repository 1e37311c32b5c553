//! Wire format of the seeded strategy: the opaque parts of its messages.

use serde::{Deserialize, Serialize};

use super::members::{Digest, Listed, MemberState};
use super::paxos::{Acceptor, Ballot, Stage, Vote};
use crate::election::Description;
use crate::id::{Incarnation, PeerId};

/// Longest address text of a claim, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 255;
/// Maximum number of members in one alignment.
pub const MAX_LISTED: usize = 512;

/// The leader and its version, as a member observes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Observation {
    /// The leader, if there is one.
    pub leader: Option<PeerId>,
    /// The version of the cluster; 0 for members without a cluster, and in elections the largest version known to have
    /// had a leader.
    pub version: u64,
}

/// A leadership, with the values that decide between two of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The leader.
    pub leader: PeerId,
    /// Its version.
    pub version: u64,
    /// Whether votes chose it; else a seed leads by itself.
    pub elected: bool,
    /// The leader's address, as the leader itself gives it; compared as bytes.
    pub address: String,
}

impl Claim {
    /// Whether this leadership stays in a conflict with `other`: the later version, then the elected one, then the
    /// larger address.
    pub fn outranks(&self, other: &Self) -> bool {
        let rank = |claim: &Self| {
            let Self {
                leader,
                version,
                elected,
                address,
            } = claim.clone();
            (version, elected, address, leader)
        };
        rank(self) > rank(other)
    }

    /// The observation of a member that follows it.
    pub fn observation(&self) -> Observation {
        Observation {
            leader: Some(self.leader.clone()),
            version: self.version,
        }
    }
}

/// A message with the observation on which it acts. A receiver whose own contradicts it does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Based {
    /// The observation.
    pub basis: Observation,
    /// The sender's write counter ([`Kept::writes`](super::Kept::writes)) as it is on disk.
    pub writes: u64,
    /// The content.
    pub message: SeededMessage,
}

/// A message between members. Unless stated otherwise, the basis is the sender's own observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeededMessage {
    /// To seeds, from a member that is in no cluster: asks for the leader.
    LeaderQuery {
        /// Counts the sender's queries.
        query: u64,
    },
    /// The answer: the basis names the leader.
    LeaderQueryResponse {
        /// The query answered.
        query: u64,
    },
    /// Asks to be admitted. The basis is the receiver's leadership.
    JoinClusterRequest {
        /// Counts the sender's requests.
        request: u64,
    },
    /// The answer.
    JoinClusterResponse {
        /// The request answered.
        request: u64,
        /// The leadership under which the receiver is a member now.
        answer: Result<Claim, Rejection>,
    },
    /// The leader has accepted a member.
    JoiningMember {
        /// Counts the changes of the leader's table.
        change: u64,
        /// The member.
        member: PeerId,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// The leader changed the state of a member.
    MemberStatusUpdate {
        /// As above.
        change: u64,
        /// The member.
        member: PeerId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// Its new state.
        state: MemberState,
    },
    /// The leader's whole table.
    ClusterAlignment {
        /// As above.
        change: u64,
        /// All members.
        members: Vec<Listed>,
    },
    /// A keep-alive for the leader.
    LeaderKeepAlive {
        /// The digest of the sender's table.
        digest: Digest,
        /// [`LeaderKeepAliveAck::sent_us`](Self::LeaderKeepAliveAck) of the last answer.
        acked_us: Option<u64>,
    },
    /// The leader's answer.
    LeaderKeepAliveAck {
        /// The leader's clock.
        sent_us: u64,
    },
    /// A keep-alive for a seed: it reveals another leader with the same seed.
    SeedKeepAlive {
        /// The sender's leadership.
        claim: Claim,
    },
    /// The seed's answer.
    SeedKeepAliveAck,
    /// Asks the receiver to resign: another leadership outranks its own. The basis is the receiver's leadership.
    LeaderRelieve {
        /// The other leadership.
        winner: Claim,
    },
    /// Sent by a leader that was relieved: its members should enter the other cluster.
    ReJoinCluster {
        /// The other leadership.
        winner: Claim,
    },
    /// To voters, from a voter without a leader: asks whether they have one.
    LeaderStatusQuery {
        /// Counts the sender's queries.
        query: u64,
    },
    /// The answer.
    LeaderStatusQueryResponse {
        /// The query answered.
        query: u64,
        /// Whether the leader of the basis lives for the sender.
        healthy: bool,
    },
    /// A proposal for the version after that of the basis.
    Proposal {
        /// The stage.
        stage: Stage,
        /// The ballot.
        ballot: Ballot,
        /// The proposed leader.
        candidate: PeerId,
    },
    /// The answer; its basis is that of the proposal.
    Vote {
        /// The proposal answered.
        ballot: Ballot,
        /// The answer.
        vote: Vote,
    },
    /// Votes chose a leader. The basis is its leadership.
    LeaderElected {
        /// The chosen leadership.
        claim: Claim,
    },
}

/// The reason why a leader does not admit a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// The receiver of the request does not lead.
    NotLeader,
    /// It leads under another version.
    OtherVersion,
}

impl Based {
    /// Whether it is a vote, asks for one or follows from votes.
    pub(super) fn elects(&self) -> bool {
        use SeededMessage as M;
        matches!(
            self.message,
            M::Proposal { .. } | M::Vote { .. } | M::LeaderElected { .. }
        )
    }

    /// Whether members that are not in the roster send this, too: they join, and send keep-alives.
    pub(super) fn is_of_any_member(&self) -> bool {
        use SeededMessage as M;
        matches!(
            self.message,
            M::LeaderQuery { .. } | M::JoinClusterRequest { .. } | M::LeaderKeepAlive { .. }
        )
    }

    /// Every version in it.
    pub(super) fn largest_version(&self) -> u64 {
        use SeededMessage as M;
        let claimed = self.claim().map_or(0, |claim| claim.version);
        let counter = self.ballot().map_or(0, |ballot| ballot.counter);
        let accepted = match &self.message {
            M::Vote {
                vote: Vote::Promised(Some(accepted)),
                ..
            } => accepted.ballot.counter,
            M::Vote {
                vote: Vote::Refused(ballot),
                ..
            } => ballot.counter,
            _ => 0,
        };
        let versions = self.basis.version.max(claimed);
        versions.max(counter).max(accepted).max(self.writes)
    }

    /// The ballot that it proposes or answers.
    fn ballot(&self) -> Option<&Ballot> {
        match &self.message {
            SeededMessage::Proposal { ballot, .. } | SeededMessage::Vote { ballot, .. } => {
                Some(ballot)
            }
            _ => None,
        }
    }

    fn claim(&self) -> Option<&Claim> {
        use SeededMessage as M;
        match &self.message {
            M::JoinClusterResponse { answer, .. } => answer.as_ref().ok(),
            M::SeedKeepAlive { claim } | M::LeaderElected { claim } => Some(claim),
            M::LeaderRelieve { winner } | M::ReJoinCluster { winner } => Some(winner),
            _ => None,
        }
    }

    /// Whether every part is within the length that a member produces.
    pub(super) fn is_bounded(&self) -> bool {
        let listed = match &self.message {
            SeededMessage::ClusterAlignment { members, .. } => members.len(),
            _ => 0,
        };
        self.claim().is_none_or(Claim::is_bounded) && listed <= MAX_LISTED
    }

    /// Describes the message for a trace.
    pub(super) fn describe(&self) -> Description {
        use SeededMessage as M;
        let named = |id: &PeerId| Some(id.clone());
        let leader = self.basis.leader.clone();
        let (kind, granted, names) = match &self.message {
            M::LeaderQuery { .. } => ("leader_query", None, None),
            M::LeaderQueryResponse { .. } => ("leader_query_response", None, leader),
            M::JoinClusterRequest { .. } => ("join_cluster_request", None, leader),
            M::JoinClusterResponse { answer, .. } => {
                ("join_cluster_response", Some(answer.is_ok()), leader)
            }
            M::JoiningMember { member, .. } => ("joining_member", None, named(member)),
            M::MemberStatusUpdate { member, .. } => ("member_status_update", None, named(member)),
            M::ClusterAlignment { .. } => ("cluster_alignment", None, leader),
            M::LeaderKeepAlive { .. } => ("leader_keep_alive", None, leader),
            M::LeaderKeepAliveAck { .. } => ("leader_keep_alive_ack", None, leader),
            M::SeedKeepAlive { claim } => ("seed_keep_alive", None, named(&claim.leader)),
            M::SeedKeepAliveAck => ("seed_keep_alive_ack", None, leader),
            M::LeaderRelieve { winner } => ("leader_relieve", None, named(&winner.leader)),
            M::ReJoinCluster { winner } => ("rejoin_cluster", None, named(&winner.leader)),
            M::LeaderStatusQuery { .. } => ("leader_status_query", None, None),
            M::LeaderStatusQueryResponse { healthy, .. } => {
                ("leader_status_query_response", Some(*healthy), leader)
            }
            M::Proposal {
                stage, candidate, ..
            } => match stage {
                Stage::Pre => ("pre_proposal", None, named(candidate)),
                Stage::Formal => ("proposal", None, named(candidate)),
            },
            M::Vote { vote, .. } => match vote {
                Vote::Promised(accepted) => (
                    "pre_vote",
                    Some(true),
                    accepted.as_ref().map(|accepted| accepted.candidate.clone()),
                ),
                Vote::Accepted => ("vote", Some(true), None),
                Vote::Refused(larger) => ("vote", Some(false), named(&larger.proposer)),
            },
            M::LeaderElected { claim } => ("leader_elected", None, named(&claim.leader)),
        };
        Description {
            kind,
            term: Some(self.basis.version),
            granted,
            names,
            ballot: self.ballot().cloned(),
        }
    }
}

impl Claim {
    pub(super) fn is_bounded(&self) -> bool {
        self.address.len() <= MAX_ADDRESS_BYTES
    }
}

/// The strategy's part of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// The sender's observation.
    pub observed: Observation,
    /// Its own leadership, if it leads.
    pub claim: Option<Claim>,
    /// The largest version that it knows to have had a leader.
    pub decided: u64,
    /// As [`Based::writes`].
    pub writes: u64,
    /// The sender knows all votes that it gave since this write counter; 0 while it may have forgotten some.
    pub since: u64,
    /// Between voters, in heartbeats: what the sender remembers of the receiver.
    pub memory: Option<Memory>,
}

/// A voter's report to another one about state files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The largest write counter that an earlier incarnation of the receiver showed, if the receiver has not shown yet
    /// that it knows that incarnation's votes; else 0.
    pub remembered: u64,
    /// Whether all other voters have reported to the sender what they remember of it, and it knows all its votes.
    pub sure: bool,
    /// The sender's votes, as they are on disk, if the receiver may have forgotten votes.
    pub votes: Option<Acceptor>,
}

impl Beat {
    /// The largest of all its counters.
    pub(super) fn largest_version(&self) -> u64 {
        let claimed = self.claim.as_ref().map_or(0, |claim| claim.version);
        let versions = self.observed.version.max(self.decided).max(claimed);
        let memory = self.memory.as_ref().map_or(0, |memory| {
            let votes = memory.votes.as_ref().map_or(0, Acceptor::largest_counter);
            memory.remembered.max(votes)
        });
        versions.max(self.writes).max(self.since).max(memory)
    }

    /// Describes the part for a trace.
    pub(super) fn describe(&self) -> Description {
        let kind = match self.claim {
            Some(_) => "leader_heartbeat",
            None => "heartbeat",
        };
        Description {
            term: Some(self.observed.version),
            names: self.observed.leader.clone(),
            ..Description::plain(kind)
        }
    }
}

/// The strategy's part of a Hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// As in a heartbeat.
    pub beat: Beat,
    /// Whether the sender is a seed.
    pub is_seed: bool,
    /// The sender's address, as the sender itself gives it.
    pub address: String,
}
