//! Messages between members, encoded with `postcard`. Enum variants and fields are only ever appended; an incompatible
//! change takes a new ALPN version.
//!
//! Types guarantee only the format: the receiver checks whether the sender may send a message.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::election::raft::wire::Stamped;
use super::election::record::Stamp;
use super::id::{Fingerprint, Incarnation, PeerId};
use super::virtual_address::VirtualId;

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
/// Longest reason of an application for a kick, a disconnect or a rejection, in bytes.
pub const MAX_REASON_BYTES: usize = 3072;
/// Most bans of a room, lifted ones included.
pub const MAX_KICKED: usize = 512;
/// Most addresses of one [`PeerEntry`].
pub const MAX_PEER_ADDRESSES: usize = 4;
/// Most addresses of one [`Message::Addresses`].
pub const MAX_EXCHANGED_ADDRESSES: usize = 8;
/// Bit of [`Hello::features`]: the sender understands [`Message::Observed`], [`Message::Addresses`], [`Message::Punch`] and
/// [`Message::CannotCarry`], and accepts packets that any member carries.
pub const FEATURE_PATHS: u64 = 1;
/// Bit of [`Hello::features`]: the sender knows the lanes of transfers.
pub const FEATURE_TRANSFERS: u64 = 2;

/// Bit of [`Hello::features`]: the sender understands [`Probe::SilentRelay`].
pub const FEATURE_SILENT_RELAYS: u64 = 4;

/// The first message of either end about itself, after the PAKE has shown that both know the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Optional abilities, one bit each; unknown bits are ignored.
    pub features: u64,
    /// The sender's name.
    pub peer_id: PeerId,
    /// The sender's incarnation.
    pub incarnation: Incarnation,
    /// Number of sessions with this peer that the sender has ended; the new session takes the larger number of both
    /// ends.
    pub generation: u32,
    /// Number of links that the sender has lost within the present session. If it is larger than the receiver's, the
    /// receiver's link is dead.
    pub losses: u32,
    /// Whether the sender's host asked for this link (it lifts an earlier disconnect).
    pub by_hand: bool,
    /// The sender's room policy.
    pub policy: RoomPolicy,
    /// UDP port at which the sender accepts links.
    pub listen_port: u16,
    /// Longest message that the sender accepts, in bytes.
    pub max_message_size: u32,
    /// Whether the sender may lead.
    pub eligible: bool,
    /// The sender's election priority; higher is preferred.
    pub priority: i32,
    /// Whether the sender knows a leader, itself or another, and so is in a room.
    pub has_leader: bool,
    /// Data of the sender's election strategy.
    pub side: Opaque,
    /// Join payload of the sender's application, at most [`MAX_JOIN_PAYLOAD_BYTES`].
    #[serde(with = "bytes_field")]
    pub join_payload: Vec<u8>,
    /// The limits of the room's state; `None`, which takes no byte, is a room without one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "last_field"
    )]
    pub state: Option<StateLimits>,
}

/// Limits of a room's state, which all members need alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLimits {
    /// Confirmed entries that a member keeps.
    pub tail_entries: u32,
    /// Bytes of confirmed entries that a member keeps.
    pub tail_bytes: u32,
    /// Longest snapshot of a host's state, in bytes.
    pub max_snapshot_bytes: u32,
}

/// Reads a field that nothing follows, as an option that is there or not: an absent one takes no byte.
fn last_field<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct LastField<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for LastField<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a field that is there, or the end")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut field: A) -> Result<Option<T>, A::Error> {
            // A byte cannot be malformed: the bytes have ended.
            let Ok(Some(tag)) = field.next_element::<u8>() else {
                return Ok(None);
            };
            match tag {
                1 => field.next_element(),
                _ => Err(A::Error::custom("no field begins so")),
            }
        }
    }

    deserializer.deserialize_tuple(2, LastField(PhantomData))
}

/// The acceptor's answer to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAck {
    /// 0, or the error code for the dialler's host.
    pub code: i32,
    /// Whether the dialler was kicked from the room.
    pub kicked: bool,
    /// The room application's number for a rejection.
    pub reason: i32,
    /// The room application's reason for a rejection, at most [`MAX_REASON_BYTES`].
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

/// A member as another one describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEntry {
    /// The member's name.
    pub id: PeerId,
    /// The key that a link to it must show.
    pub key: Fingerprint,
    /// Its addresses; at most [`MAX_PEER_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
}

/// A control message with the fields common to all control messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The sender's incarnation; the receiver drops a message of an older one.
    pub incarnation: Incarnation,
    /// The message.
    pub message: Message,
}

/// Messages on the control stream between two cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Members that the sender is linked to.
    PeerList(Vec<PeerEntry>),
    /// The periodic sign of life: ping, pong and, from a leader, its claim.
    Heartbeat(Heartbeat),
    /// The sender leaves the room. A leader names its successor.
    Leave {
        /// The member that campaigns at once, if the sender led.
        successor: Option<PeerId>,
    },
    /// The answer to [`Message::Leave`].
    LeaveAck,
    /// A message of the election strategy.
    Election(Opaque),
    /// A member asks the leader whether to admit a stranger.
    JoinRequest {
        /// Number of the sender's request.
        request: u64,
        /// The stranger.
        candidate: Candidate,
    },
    /// The leader's answer to a [`Message::JoinRequest`].
    JoinAnswer {
        /// Number of the request.
        request: u64,
        /// The decision.
        verdict: Verdict,
    },
    /// The leader has admitted a stranger: members that it dials may link with it.
    Admitted {
        /// Its id, its key and its addresses.
        entry: PeerEntry,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// The leader kicks a member.
    Kicked {
        /// The member.
        peer: PeerId,
        /// Its key.
        key: Fingerprint,
        /// The reason code of the leader's host.
        code: i32,
        /// The reason of the leader's host, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
        /// The version of its ban; `None` if it may return.
        ban: Option<BanVersion>,
    },
    /// The room rules as the sender knows them.
    RoomRules(RoomRules),
    /// The sender's eligibility or priority has changed.
    Standing {
        /// Whether it may lead.
        eligible: bool,
        /// Its election priority.
        priority: i32,
        /// The member that campaigns at once, if the sender led and may no longer lead.
        successor: Option<PeerId>,
    },
    /// The leader has lifted bans. At most [`MAX_KICKED`].
    Unbanned(Vec<Ban>),
    /// The sender's host ends the link, until one of both hosts dials.
    Disconnected {
        /// The reason code of that host.
        code: i32,
        /// The reason of that host, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
    },
    /// The sender withdraws a join request, or gives back the place that an admission reserved: the stranger has gone
    /// away.
    JoinWithdrawn {
        /// Number of the request.
        request: u64,
    },
    /// Two members have no link because one has reached its limit. That one reports it to the leader, and the leader
    /// notifies the other.
    Unlinked {
        /// The member that has no link with the other one.
        peer: PeerId,
        /// The member whose limit is reached.
        other: PeerId,
    },
    /// A member without a link to the receiver has left, the leader reports.
    UnlinkedLeft {
        /// The member that has left.
        peer: PeerId,
    },
    /// The address from which the receiver's packets arrive at the sender. Over direct links only.
    Observed {
        /// The address.
        address: SocketAddr,
    },
    /// The addresses at which the sender may be reached, for the other end of a carried link; at most
    /// [`MAX_EXCHANGED_ADDRESSES`].
    Addresses(Vec<SocketAddr>),
    /// Over a carried link: both ends dial each other at the same time, so that the packets of each open its router for the
    /// other.
    Punch {
        /// Number of the round, from 0.
        round: u32,
        /// Whether this answers the other end's message, which began the round.
        is_answer: bool,
    },
    /// The sender does not carry the receiver's packets to a member: it has no direct link with that member, or carries for
    /// no member.
    CannotCarry {
        /// The member.
        target: VirtualId,
    },
}

impl From<Stamped> for Message {
    fn from(message: Stamped) -> Self {
        Self::Election(Opaque::of(&message))
    }
}

/// A peer that wants to enter the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its id, its key and the addresses at which it was seen.
    pub entry: PeerEntry,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its join payload, at most [`MAX_JOIN_PAYLOAD_BYTES`].
    #[serde(with = "bytes_field")]
    pub payload: Vec<u8>,
}

/// The decision on a peer that wants to enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It may enter.
    Accepted,
    /// Another member has its id.
    DuplicatePeerId,
    /// No place is free.
    Full(NoPlace),
    /// The leader's host rejected it, or it was kicked.
    Rejected {
        /// The host's reason code.
        reason: i32,
        /// The host's reason, at most [`MAX_REASON_BYTES`].
        #[serde(with = "bytes_field")]
        bytes: Vec<u8>,
    },
    /// No decision within the handshake timeout.
    Timeout(Undecided),
    /// The receiver of the request does not lead; the sender asks again.
    NotLeader,
}

/// Reason why no place is free. Its text is for the player that wanted to enter.
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
        "the room is limited to {limit} players beside each (max_peers), lost players included; try again when one has left, or ask the leader's host to raise the limit"
    )]
    Members {
        /// Maximum peers per member.
        limit: u32,
    },
    /// Too many peers want to enter at the same time.
    #[error("too many players want to enter at the same time; try again in a few seconds")]
    Newcomers,
}

impl NoPlace {
    /// `NoPlace` for a member that has reached its `max_connections`.
    pub fn connections(max_connections: usize) -> Self {
        let limit = u32::try_from(max_connections).unwrap_or(u32::MAX);
        Self::Connections { limit }
    }
}

/// Reason why the room did not decide in time. Its text is for the player that wanted to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum Undecided {
    /// The leader's host decides about join requests and did not answer.
    #[error(
        "the leader's host did not answer the join request in time; ask its player, and try again"
    )]
    Host,
    /// The leader's host decides about join requests and has taken no events since this one.
    #[error(
        "the host does not answer: the game of the room's leader has taken no events since the join request; wait until it goes on, or ask its player"
    )]
    HostSilent,
    /// The dialled member got no answer from the leader.
    #[error("the room's leader did not answer in time; try again in a few seconds")]
    Leader,
    /// The dialled member is leaving the room.
    #[error("the member at this address is leaving the room; dial another member")]
    Leaving,
}

/// Rules that leaders set at run time, as the sender knows them. The present leader's rules apply; another member's are
/// hearsay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomRules {
    /// Leadership that set the limit, and its sequence number; the highest wins.
    pub version: (Stamp, u64),
    /// Leader that set the limit; it decides whether a report of the limit is credible.
    pub set_by: Option<Decider>,
    /// Maximum peers per member; 0 leaves only the members' own limits.
    pub max_peers: u32,
    /// Bans in force and lifted bans. At most [`MAX_KICKED`].
    pub bans: Vec<Ban>,
}

/// Leadership that set or lifted a ban, and a sequence number of such changes; the highest wins.
pub type BanVersion = (Stamp, u32);

/// The leader that made a decision. A stamp alone does not identify its leader if several may have led under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    /// Its name.
    pub leader: PeerId,
    /// Its incarnation.
    pub incarnation: Incarnation,
}

/// A ban of one id and key, in force or lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ban {
    /// Its name.
    pub peer: PeerId,
    /// Its key.
    pub key: Fingerprint,
    /// The newer of two entries for one id and key applies.
    pub version: BanVersion,
    /// Leader that decided it. It is not part of the order; it decides whether a report is credible.
    pub by: Option<Decider>,
    /// Whether it was lifted. The entry stays, so that a member that missed this does not bring the ban back.
    pub lifted: bool,
}

impl Ban {
    /// A ban with the lowest version: any other entry for that id and key overrides it.
    pub fn new(peer: PeerId, key: Fingerprint) -> Self {
        Self {
            peer,
            key,
            version: BanVersion::default(),
            by: None,
            lifted: false,
        }
    }

    /// Whether this entry is newer. At equal versions a ban wins over a lifted one.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (&self.version, !self.lifted) > (&other.version, !other.lifted)
    }

    /// Whether the entry has this id and key.
    pub fn is_about(&self, peer: &PeerId, key: Fingerprint) -> bool {
        self.peer == *peer && self.key == key
    }
}

/// The periodic sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Sequence number over all heartbeats of the sender, to any peer and over any link. The receiver drops one that is
    /// older than the newest.
    pub seq: u64,
    /// The newest heartbeat received from this peer, sent back to measure the round trip.
    pub echo: Option<Echo>,
    /// Time for which the sender's host has taken no events, in milliseconds.
    pub host_silent_ms: u32,
    /// Data of the election strategy.
    pub pulse: Opaque,
    /// The room's time at the sender, in microseconds; `None`, which takes no byte, from libraries without it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "last_field"
    )]
    pub room_time_us: Option<u64>,
}

/// A heartbeat's sequence number sent back, with the time for which it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// Sequence number of the answered heartbeat.
    pub seq: u64,
    /// Time between its arrival and this answer, in microseconds.
    pub held_us: u64,
}

/// First byte of a datagram that carries a [`Probe`]. Receivers ignore datagrams with another first byte: later
/// versions may use them.
pub const PROBE_DATAGRAM: u8 = 0;

/// A datagram between two cores, outside the streams. Each is a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Probe {
    /// Asks for a sign of life.
    Ping {
        /// Number that the answer repeats.
        nonce: u64,
    },
    /// Answers a ping.
    Pong {
        /// Number of the ping.
        nonce: u64,
    },
    /// The sender receives nothing from a relay: packets for it take another one, if the receiver has one.
    SilentRelay {
        /// The relay's key.
        relay: Fingerprint,
    },
}
