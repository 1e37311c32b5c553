//! What members say to each other. Everything is encoded with `postcard`; enum variants and fields are
//! only ever appended, and an incompatible change takes a new ALPN version.
//!
//! Nothing here is trusted beyond its type: the receiver checks who said it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::election::record::{Record, Stamp};
use super::id::{Fingerprint, Incarnation, PeerId};

/// Longest join payload in a [`Hello`], in bytes.
pub const MAX_JOIN_PAYLOAD_BYTES: usize = 8192;
/// Longest encoded [`Hello`] or [`HelloAck`], in bytes.
pub const MAX_HELLO_BYTES: usize = 12 * 1024;
/// Longest encoded control frame after the handshake, in bytes.
pub const MAX_CONTROL_FRAME_BYTES: usize = 64 * 1024;
/// Most entries of one [`Message::PeerList`].
pub const MAX_PEER_LIST_ENTRIES: usize = 128;
/// Most addresses of one [`PeerEntry`].
pub const MAX_PEER_ADDRESSES: usize = 4;

/// How the room elects its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Strategy {
    /// Votes of the connected peers.
    #[default]
    Raft,
}

/// Who counts for a majority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum QuorumPolicy {
    /// The peers that are connected when a campaign starts.
    #[default]
    Dynamic,
}

/// Which leader stays when two sides meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum MergePolicy {
    /// That of the larger side; of equal sides, the one that has led longer.
    #[default]
    LargestSide,
    /// The one with the higher record.
    HighestTerm,
}

/// Who may call `SetLeader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Authority {
    /// Every member.
    #[default]
    Anyone,
    /// The leader alone.
    LeaderOnly,
}

/// Whether one fixed member leads for as long as the room lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HostMode {
    /// No fixed host: the room elects.
    #[default]
    Off,
    /// This member leads.
    Host,
    /// Another member leads.
    Guest,
}

/// The rules that all members of a room share. Two members that differ do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomPolicy {
    /// How the leader is elected.
    pub strategy: Strategy,
    /// Who counts for a majority.
    pub quorum: QuorumPolicy,
    /// Which leader stays when two sides meet.
    pub merge: MergePolicy,
    /// Who may call `SetLeader`.
    pub authority: Authority,
    /// Whether one fixed member leads.
    pub host_mode: HostMode,
}

impl RoomPolicy {
    /// The first rule in which `self` and `other` differ, with both values as text.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        macro_rules! compare {
            ($($field:ident),*) => {
                $(if self.$field != other.$field {
                    return Some((
                        stringify!($field),
                        format!("{:?}", self.$field),
                        format!("{:?}", other.$field),
                    ));
                })*
            };
        }
        compare!(strategy, quorum, merge, authority, host_mode);
        None
    }
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
}

/// A leader that is known to be alive, and how strong its side is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLeader {
    /// Who leads.
    pub id: PeerId,
    /// Which life of it leads.
    pub incarnation: Incarnation,
    /// Voters, the leader included, that answered the leader within the last heartbeat timeout.
    pub weight: u32,
    /// How long it has led without interruption, in milliseconds.
    pub led_ms: u64,
    /// How much longer the sender believes in it without hearing from it, in milliseconds.
    pub rest_ms: u32,
}

/// The first thing that either end says about itself, after the PAKE has shown that both know the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Optional abilities, one bit each; unknown bits are ignored.
    pub features: u64,
    /// The sender's name.
    pub peer_id: PeerId,
    /// The sender's life.
    pub incarnation: Incarnation,
    /// How many sessions with this peer the sender has ended; the new session is the larger of both.
    pub generation: u32,
    /// Whether the sender's host asked for this link (it lifts an earlier disconnect).
    pub by_hand: bool,
    /// The rules that the sender plays by.
    pub policy: RoomPolicy,
    /// UDP port at which the sender accepts links.
    pub listen_port: u16,
    /// Longest message that the sender takes, in bytes.
    pub max_message_size: u32,
    /// Whether the sender may lead.
    pub eligible: bool,
    /// The sender's election priority; higher is preferred.
    pub priority: i32,
    /// What the sender knows about leadership.
    pub side: Side,
    /// Bytes of the sender's application, at most 8192.
    #[serde(with = "bytes_field")]
    pub join_payload: Vec<u8>,
}

/// The acceptor's answer to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAck {
    /// 0, or the code that the dialler's host gets.
    pub code: i32,
    /// Bytes of the acceptor's application that explain a rejection.
    #[serde(with = "bytes_field")]
    pub bytes: Vec<u8>,
    /// The acceptor's own Hello.
    pub hello: Hello,
}

/// Serializes a byte vector as one blob instead of a sequence of numbers.
mod bytes_field {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        <&[u8]>::deserialize(deserializer).map(<[u8]>::to_vec)
    }
}

/// One member as another describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEntry {
    /// The member's name.
    pub id: PeerId,
    /// The key that a link to it must show.
    pub key: Fingerprint,
    /// Where it may be reached; at most [`MAX_PEER_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
}

/// A control message with what every control message carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The sender's life; a message of an older one is dropped.
    pub incarnation: Incarnation,
    /// The sender's epoch and term.
    pub stamp: Stamp,
    /// What is said.
    pub message: Message,
}

/// What travels on the control stream between two cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Members that the sender is linked to.
    PeerList(Vec<PeerEntry>),
    /// The periodic sign of life: ping, pong and, from a leader, its claim.
    Heartbeat(Heartbeat),
    /// The sender leaves the room. A leader names who should follow it.
    Leave {
        /// Who campaigns at once, if the sender led.
        successor: Option<PeerId>,
    },
    /// The answer to [`Message::Leave`].
    LeaveAck,
    /// A message of the election strategy.
    Election(ElectionMessage),
}

/// The periodic sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts the sender's heartbeats to this peer.
    pub seq: u64,
    /// The newest heartbeat received from this peer, sent back to measure the round trip.
    pub echo: Option<Echo>,
    /// What the strategy adds.
    pub pulse: Pulse,
}

/// A heartbeat's sequence sent back, with the time that it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The sequence of the heartbeat that is answered.
    pub seq: u64,
    /// How long it was held before this answer, in microseconds.
    pub held_us: u64,
}

/// What a strategy adds to a heartbeat.
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
    },
}

/// What the raft strategy says. Names of peers in here must be those of the authenticated sender where
/// the field says so; a message that names another is a violation.
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
    /// "Vote for me." The term is in the envelope's stamp.
    VoteRequest {
        /// Counts the candidate's rounds.
        round: u64,
        /// The sender.
        candidate: PeerId,
        /// Set when the leader itself asked for this campaign (it left), or is the candidate: leases do not bind.
        transfer: bool,
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
}

/// A datagram between two cores: asks for a sign of life beside the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Probe {
    /// "Are you there?"
    Ping {
        /// Given back in the answer.
        nonce: u64,
    },
    /// "I am."
    Pong {
        /// The question's number.
        nonce: u64,
    },
}
