//! What members of a seeded cluster say to each other: the opaque parts of their messages.

use serde::{Deserialize, Serialize};

use super::members::{Digest, Listed, MemberState};
use super::paxos::{Acceptor, Ballot, Stage, Vote};
use crate::election::Description;
use crate::id::{Incarnation, PeerId};

/// Longest address text of a claim, in bytes.
pub const MAX_ADDRESS_BYTES: usize = 255;
/// Most members of one alignment.
pub const MAX_LISTED: usize = 512;

/// Who leads, as a member sees it, and under which version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Observation {
    /// The leader, if there is one.
    pub leader: Option<PeerId>,
    /// The version of the cluster; of members without a cluster 0, and in elections the largest that is known to have had
    /// a leader.
    pub version: u64,
}

/// A leadership, with what decides between two of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who leads.
    pub leader: PeerId,
    /// Under which version.
    pub version: u64,
    /// Whether votes chose it; else a seed leads by itself.
    pub elected: bool,
    /// The leader's address as it says itself; compared as bytes.
    pub address: String,
}

impl Claim {
    /// Whether this leadership stays when it meets `other`: the later version, then the elected one, then the larger address.
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

    /// What a member observes that follows it.
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
    /// What it says.
    pub message: SeededMessage,
}

/// What members say to each other. The basis is the sender's own observation where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeededMessage {
    /// "Who leads?" To seeds, from a member that is in no cluster.
    LeaderQuery {
        /// Counts the sender's queries.
        query: u64,
    },
    /// The answer: the basis says who leads.
    LeaderQueryResponse {
        /// The query answered.
        query: u64,
    },
    /// "Take me in." The basis is the receiver's leadership.
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
        /// Who.
        member: PeerId,
        /// Which incarnation.
        incarnation: Incarnation,
    },
    /// The leader changed the state of a member.
    MemberStatusUpdate {
        /// As above.
        change: u64,
        /// Who.
        member: PeerId,
        /// Which incarnation.
        incarnation: Incarnation,
        /// Its state now.
        state: MemberState,
    },
    /// The leader's whole table.
    ClusterAlignment {
        /// As above.
        change: u64,
        /// All members.
        members: Vec<Listed>,
    },
    /// A sign of life for the leader.
    LeaderKeepAlive {
        /// Of the sender's table.
        digest: Digest,
        /// [`LeaderKeepAliveAck::sent_us`](Self::LeaderKeepAliveAck) of the last answer.
        acked_us: Option<u64>,
    },
    /// The leader's answer.
    LeaderKeepAliveAck {
        /// The leader's clock.
        sent_us: u64,
    },
    /// A sign of life for a seed: whoever meets another leader through it learns of it.
    SeedKeepAlive {
        /// The sender's leadership.
        claim: Claim,
    },
    /// The seed's answer.
    SeedKeepAliveAck,
    /// "Resign: another leadership outranks yours." The basis is the receiver's leadership.
    LeaderRelieve {
        /// The other one.
        winner: Claim,
    },
    /// A leader that was relieved sends its members to the other one.
    ReJoinCluster {
        /// The other one.
        winner: Claim,
    },
    /// "Is there a leader for you?" To voters, from one without a leader.
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
        /// What is asked for.
        stage: Stage,
        /// Names it.
        ballot: Ballot,
        /// Who shall lead.
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
        /// It.
        claim: Claim,
    },
}

/// Why a leader takes a member not in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rejection {
    /// The one that was asked does not lead.
    NotLeader,
    /// It leads under another version.
    OtherVersion,
}

impl Based {
    /// Whether it is a vote, asks for one or follows from some.
    pub(super) fn elects(&self) -> bool {
        use SeededMessage as M;
        matches!(
            self.message,
            M::Proposal { .. } | M::Vote { .. } | M::LeaderElected { .. }
        )
    }

    /// Whether members beside the roster say this, too: they join, and keep alive.
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

    /// Whether no part is longer than a member makes it.
    pub(super) fn is_bounded(&self) -> bool {
        let listed = match &self.message {
            SeededMessage::ClusterAlignment { members, .. } => members.len(),
            _ => 0,
        };
        self.claim().is_none_or(Claim::is_bounded) && listed <= MAX_LISTED
    }

    /// In the words of a trace.
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
    /// What the sender observes.
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

/// What a voter tells another one of state files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The largest write counter that an earlier incarnation of the receiver showed, of whose votes this one said nothing
    /// yet; else 0.
    pub remembered: u64,
    /// Whether all other voters have told the sender what they remember of it, and it knows all its votes.
    pub sure: bool,
    /// What the sender voted, as it is on disk, if the receiver may have forgotten votes.
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

    /// In the words of a trace.
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
    /// Where others reach it, as it says itself.
    pub address: String,
}
