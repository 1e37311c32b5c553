//! What members say to each other. Everything is encoded with `postcard`; enum variants and fields are
//! only ever appended, and an incompatible change takes a new ALPN version.
//!
//! Nothing here is trusted beyond its type: the receiver checks who said it.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::election::raft::wire::Stamped;
use super::election::record::Stamp;
use super::id::{Fingerprint, Incarnation, PeerId};

pub use super::election::policy::{
    Authority, HostMode, MergePolicy, RoomPolicy, Strategy, Topology,
};
pub use super::opaque::Opaque;

/// Longest join payload in a [`Hello`], in bytes.
pub const MAX_JOIN_PAYLOAD_BYTES: usize = 16 * 1024;
/// Longest encoded [`Hello`] or [`HelloAck`], in bytes.
pub const MAX_HELLO_BYTES: usize = 24 * 1024;
/// Longest encoded control frame after the handshake, in bytes.
pub const MAX_CONTROL_FRAME_BYTES: usize = 128 * 1024;
/// Most entries of one [`Message::PeerList`].
pub const MAX_PEER_LIST_ENTRIES: usize = 128;
/// Longest word of an application that kicks, disconnects or rejects, in bytes.
pub const MAX_REASON_BYTES: usize = 3072;
/// Most bans of a room, those that were lifted and are remembered included.
pub const MAX_KICKED: usize = 512;
/// Most addresses of one [`PeerEntry`].
pub const MAX_PEER_ADDRESSES: usize = 4;

/// The first thing that either end says about itself, after the PAKE has shown that both know the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Optional abilities, one bit each; unknown bits are ignored.
    pub features: u64,
    /// The sender's name.
    pub peer_id: PeerId,
    /// The sender's incarnation.
    pub incarnation: Incarnation,
    /// How many sessions with this peer the sender has ended; the new session is the larger of both.
    pub generation: u32,
    /// How many links the sender has lost within the present session; a larger number than the receiver's
    /// tells it that its link is dead.
    pub losses: u32,
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
    /// Whether the sender knows a leader, itself or another: then it is in a room.
    pub has_leader: bool,
    /// What the sender's election strategy says.
    pub side: Opaque,
    /// Bytes of the sender's application, at most [`MAX_JOIN_PAYLOAD_BYTES`].
    #[serde(with = "bytes_field")]
    pub join_payload: Vec<u8>,
}

/// The acceptor's answer to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAck {
    /// 0, or the code that the dialler's host gets.
    pub code: i32,
    /// Whether the dialler was removed from the room.
    pub kicked: bool,
    /// The number that the application of the room gave a rejection.
    pub reason: i32,
    /// What that application said, at most [`MAX_REASON_BYTES`].
    #[serde(with = "bytes_field")]
    pub bytes: Vec<u8>,
    /// The acceptor's own Hello.
    pub hello: Hello,
}

/// Serializes a byte vector as one blob instead of a sequence of numbers.
mod bytes_field {
    use super::*;

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
    /// The sender's incarnation; a message of an older one is dropped.
    pub incarnation: Incarnation,
    /// The message.
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
    Election(Opaque),
    /// A member asks the leader whether a stranger may enter.
    JoinRequest {
        /// Counts the sender's questions.
        request: u64,
        /// Who wants to enter.
        candidate: Candidate,
    },
    /// The leader's answer.
    JoinAnswer {
        /// The question answered.
        request: u64,
        /// Whether the stranger may enter.
        verdict: Verdict,
    },
    /// The leader has let a stranger in: whoever is dialled by it may link.
    Admitted {
        /// Who it is and where it may be reached.
        entry: PeerEntry,
        /// Which incarnation of it.
        incarnation: Incarnation,
    },
    /// The leader removes a member.
    Kicked {
        /// Who.
        peer: PeerId,
        /// Its key.
        key: Fingerprint,
        /// The number that the leader's host gave as the reason.
        code: i32,
        /// What the leader's host said, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
        /// The version of its ban; `None` where it may come back.
        ban: Option<BanVersion>,
    },
    /// The rules that the leaders of this room have set so far.
    RoomRules(RoomRules),
    /// The sender may or may not lead from now on, or its priority has changed.
    Standing {
        /// Whether it may lead.
        eligible: bool,
        /// Its election priority.
        priority: i32,
        /// Who campaigns at once, if the sender led and may no longer.
        successor: Option<PeerId>,
    },
    /// The leader has lifted bans. At most [`MAX_KICKED`].
    Unbanned(Vec<Ban>),
    /// The sender's host ends the link, until one of both hosts dials.
    Disconnected {
        /// The number that it gave as the reason.
        code: i32,
        /// What it said, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
    },
    /// The sender does not ask that any more, nor need the place that the answer kept: the stranger is gone.
    JoinWithdrawn {
        /// The question.
        request: u64,
    },
    /// Two members have no link, since one has reached its limit. It reports that to the leader, and the leader to the other one.
    Unlinked {
        /// The member that has no link with the other one.
        peer: PeerId,
        /// The one whose limit is reached.
        other: PeerId,
    },
    /// A member without a link to the receiver has left, the leader reports.
    UnlinkedLeft {
        /// The member that has left.
        peer: PeerId,
    },
}

impl From<Stamped> for Message {
    fn from(message: Stamped) -> Self {
        Self::Election(Opaque::of(&message))
    }
}

/// Somebody who wants to enter the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, its key and where it was seen.
    pub entry: PeerEntry,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// What its application says, at most [`MAX_JOIN_PAYLOAD_BYTES`].
    #[serde(with = "bytes_field")]
    pub payload: Vec<u8>,
}

/// Whether somebody may enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It may.
    Accepted,
    /// Its id is another's.
    DuplicatePeerId,
    /// No place is free.
    Full(NoPlace),
    /// The leader's host says no, or it was kicked.
    Rejected {
        /// The number that the host gave as the reason.
        reason: i32,
        /// What the host said, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
    },
    /// No decision within the handshake timeout.
    Timeout(Undecided),
    /// The one that was asked does not lead; ask again.
    NotLeader,
}

/// Why no place is free. Its text is for the player that wanted to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum NoPlace {
    /// The deciding member has as many links as its options allow.
    #[error(
        "a member of the room may have {limit} connections (its max_connections), and has them; try again when a player has left, or raise the option"
    )]
    Connections {
        /// Its `max_connections`.
        limit: u32,
    },
    /// The room has as many members as the leader allows.
    #[error(
        "the room is limited to {limit} players beside each (SetMaxPeers, or the option max_peers), lost players included; try again when one has left, or ask the leader's host to raise the limit"
    )]
    Members {
        /// Most other members of any member.
        limit: u32,
    },
    /// Too many others want to enter at the same time.
    #[error("too many players want to enter at the same time; try again in a few seconds")]
    Newcomers,
}

impl NoPlace {
    /// A member has as many links as its `max_connections`.
    pub fn connections(max_connections: usize) -> Self {
        let limit = u32::try_from(max_connections).unwrap_or(u32::MAX);
        Self::Connections { limit }
    }
}

/// Why the room did not decide in time. Its text is for the player that wanted to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum Undecided {
    /// The leader's host answers join requests, and did not.
    #[error(
        "the leader's host did not answer the join request in time (AcceptJoin, RejectJoin); ask its player, and try again"
    )]
    Host,
    /// The leader's host answers join requests, and has taken no events since this one.
    #[error(
        "the host does not answer: the game of the room's leader has taken no events since the join request; wait until it goes on, or ask its player"
    )]
    HostSilent,
    /// The member that was dialled had no answer of the leader.
    #[error("the room's leader did not answer in time; try again in a few seconds")]
    Leader,
    /// The member that was dialled leaves the room.
    #[error("the member at this address is leaving the room; dial another member")]
    Leaving,
}

/// Rules that leaders set while the room lives, as the sender knows them. Those of the present leader hold; another
/// member's are hearsay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomRules {
    /// Under which leadership the limit was set, and the how manieth it was: the largest holds.
    pub version: (Stamp, u64),
    /// Who set the limit, which decides whether a report of it is believed.
    pub set_by: Option<Decider>,
    /// Most other members of any member; 0 is no limit beside the members' own.
    pub max_peers: u32,
    /// Who is banned, and who was. At most [`MAX_KICKED`].
    pub bans: Vec<Ban>,
}

/// Under which leadership a ban was set or lifted, and a count of such changes: the largest holds.
pub type BanVersion = (Stamp, u32);

/// The leader that decided something. A stamp alone does not name its leader where several may have led under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    /// Its name.
    pub leader: PeerId,
    /// Which incarnation of it.
    pub incarnation: Incarnation,
}

/// Whether a peer is kept out of the room, under its name and with its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ban {
    /// Its name.
    pub peer: PeerId,
    /// Its key.
    pub key: Fingerprint,
    /// Of two entries for one name and key, the newer holds.
    pub version: BanVersion,
    /// Who decided that. It is no part of the order; it decides whether a report is believed.
    pub by: Option<Decider>,
    /// It may enter again. The entry stays, so that a member that missed this does not bring the ban back.
    pub lifted: bool,
}

impl Ban {
    /// One that every other word of that name and key overrides.
    pub fn new(peer: PeerId, key: Fingerprint) -> Self {
        Self {
            peer,
            key,
            version: BanVersion::default(),
            by: None,
            lifted: false,
        }
    }

    /// Whether this is the later word. Of two leaders' words with one version, the ban is.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (&self.version, !self.lifted) > (&other.version, !other.lifted)
    }

    /// Whether both are about one name with one key.
    pub fn is_about(&self, peer: &PeerId, key: Fingerprint) -> bool {
        self.peer == *peer && self.key == key
    }
}

/// The periodic sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts the sender's heartbeats, to whichever peer and over whichever link: an older one than the newest is dropped.
    pub seq: u64,
    /// The newest heartbeat received from this peer, sent back to measure the round trip.
    pub echo: Option<Echo>,
    /// How long the sender's host has taken no events, in milliseconds.
    pub host_silent_ms: u32,
    /// What the election strategy adds.
    pub pulse: Opaque,
}

/// A heartbeat's sequence sent back, with the time that it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The sequence of the heartbeat that is answered.
    pub seq: u64,
    /// How long it was held before this answer, in microseconds.
    pub held_us: u64,
}

/// The first byte of a datagram that carries a [`Probe`]. Those with another first byte are of later versions, and are
/// ignored.
pub const PROBE_DATAGRAM: u8 = 0;

/// Between two cores, as a datagram: asks for a sign of life beside the streams.
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
