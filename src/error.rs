//! Errors, one enum per verb, and their numbers in the C ABI.
//!
//! A sentence names the argument, its value, the limit and what to do. Values are quoted and cut (`quoted`), so that no
//! sentence grows with the caller's values.

mod cards;
mod leadership;
mod locks;
mod mappings;
mod members;
mod relays;
mod room_state;
mod state;
mod transfers;
mod turns;

use std::ffi::CStr;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::core::election::gossip::WindowError;
use crate::core::id::{Fingerprint, PeerId};
use crate::quoted::{PeerNames, Quoted};
use crate::room_code::RoomCodeError;
use crate::target::TargetError;

pub use cards::ShowCardError;
pub use leadership::{PriorityError, TransferError};
pub use locks::{LockError, ProclaimError};
pub use mappings::{mapping_code, mapping_sentence};
pub use members::{
    EligibilityError, JoinError, KickError, MaxPeersError, NoKeyError, NotOpen, UnbanError,
};
pub use relays::relay_sentence;
pub use room_state::{NoStateError, SnapshotError, SubmitError};
pub use state::{ChangedMember, StateError};
pub use transfers::DataTransferError;
pub use turns::SetTurnError;

/// A doc comment, which begins with a blank, as a C string.
const fn sentence(doc: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(doc.as_bytes().trim_ascii_start()) {
        Ok(text) => text,
        Err(_) => panic!("evaluated when compiled: a description holds no NUL"),
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:literal;)*) => {
        /// The result codes of the C ABI. Numbers are never reused and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name = $value,)*
        }

        impl Code {
            /// Every code, in the order of their descriptions in the header.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The meaning of the code, in one sentence.
            pub fn description(self) -> &'static CStr {
                match self {
                    $(Self::$name => {
                        const TEXT: &CStr = sentence(concat!($($doc),+, "\0"));
                        TEXT
                    })*
                }
            }
        }
    };
}

// Every code and its sentence, from src/ffi/codes.rs.
include!(concat!(env!("OUT_DIR"), "/codes.rs"));

impl Code {
    /// The number that crosses the C boundary.
    pub const fn value(self) -> i32 {
        self as i32
    }

    /// The code with that number.
    pub fn from_value(value: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.value() == value)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.value())
    }
}

/// An error that has a number in the C ABI.
pub trait Coded: std::error::Error {
    /// The code of this error.
    fn code(&self) -> Code;
}

/// Why [`open`](crate::registry::open) opened no room. Nothing has changed.
#[derive(Debug, Error)]
pub enum StartError {
    /// The default room is open, or being opened by another thread.
    #[error("the default room is already open in this process; close it first")]
    AlreadyInitialized,
    /// The process has as many rooms as it may have.
    #[error("this process has {limit} open rooms, which is the limit; close one first")]
    TooManyRooms {
        /// Most open rooms.
        limit: usize,
    },
    /// No UDP socket could be opened.
    #[error(
        "no UDP socket could be opened ({source}); check that this program may use the network"
    )]
    Socket {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The address and port of the options cannot be bound.
    #[error(
        "the UDP address {address} could not be bound ({source}); {}",
        bind_advice(source)
    )]
    Bind {
        /// The requested address; port 0 is any free one.
        address: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The identity key of the options is malformed.
    #[error(
        "identity_key ({len} bytes) cannot be used: {reason}; give an Ed25519 private key in PKCS#8 (DER), or NULL for a new one"
    )]
    IdentityKey {
        /// The length given, in bytes.
        len: usize,
        /// Its fault.
        reason: String,
    },
    /// The list of voters fixes another key for this member.
    #[error(
        "quorum_roster fixes the key of {} with the fingerprint {}, and this member's is {}; give the identity_key of that fingerprint, or remove the fingerprint from the roster of every member",
        Quoted(peer.as_str()),
        fixed,
        own
    )]
    RosterKey {
        /// This member.
        peer: PeerId,
        /// The fingerprint in the roster.
        fixed: Fingerprint,
        /// The fingerprint of its key.
        own: Fingerprint,
    },
    /// A seed that the roster does not name.
    #[error(
        "seeded.is_seed is 1, but quorum_roster does not name {}, and a seed is a voter; add the id to the roster of every member, or give is_seed 0",
        Quoted(peer.as_str())
    )]
    SeedWithoutVote {
        /// This member.
        peer: PeerId,
    },
    /// The session id of a room with relays is no room code.
    #[error("session_id is not a room code, which relays need: {0}")]
    RoomCode(#[from] RoomCodeError),
    /// The state of a static quorum is unavailable.
    #[error(transparent)]
    State(#[from] StateError),
    /// The options do not allow a client of the external store that elects.
    #[error("{what}")]
    Store {
        /// The field, its fault, and what to do.
        what: String,
    },
    /// The file of the trace cannot be created.
    #[error(
        "trace_path {}: the file cannot be written ({source}); give the path of a file in an existing directory, or NULL for no trace",
        Quoted(&path.to_string_lossy())
    )]
    TracePath {
        /// The path given.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Anything else that the operating system or a library refused.
    #[error("the network could not be started: {what}")]
    Internal {
        /// The refused operation.
        what: String,
    },
}

impl StartError {
    pub(crate) fn internal(error: impl fmt::Display) -> Self {
        Self::Internal {
            what: error.to_string(),
        }
    }
}

impl Coded for StartError {
    fn code(&self) -> Code {
        match self {
            Self::AlreadyInitialized => Code::AlreadyInitialized,
            Self::TooManyRooms { .. } => Code::MaxConnectionsReached,
            Self::Socket { .. } | Self::Bind { .. } => Code::ConnectionFailed,
            Self::IdentityKey { .. }
            | Self::RosterKey { .. }
            | Self::SeedWithoutVote { .. }
            | Self::RoomCode(_)
            | Self::Store { .. }
            | Self::TracePath { .. } => Code::InvalidArgument,
            Self::State(error) => error.code(),
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

impl Coded for RoomCodeError {
    fn code(&self) -> Code {
        match self {
            Self::NoRandomness => Code::InternalError,
            _ => Code::InvalidArgument,
        }
    }
}

impl Coded for WindowError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }
}

fn bind_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program or room has this port: choose another bind_port, or 0 for any free one"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "bind_address must be an address of this machine, or NULL for all of them"
        }
        _ => "check that this program may use the network, and this port",
    }
}

/// Why [`close`](crate::registry::close) closed no room. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CloseError {
    /// There is no such room.
    #[error("the room is not open")]
    NotOpen,
    /// The caller is inside a callback, which the closing would wait for.
    #[error(
        "a room cannot be closed inside a callback, because that would wait for the callback to end; close it from another thread, or after the callback"
    )]
    WouldDeadlock,
}

impl Coded for CloseError {
    fn code(&self) -> Code {
        match self {
            Self::NotOpen => Code::NotInitialized,
            Self::WouldDeadlock => Code::WouldDeadlock,
        }
    }
}

/// Why [`Dispatch::poll`](crate::dispatch::Dispatch::poll) ran nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PollError {
    /// The room's callbacks run on a thread of the library.
    #[error(
        "this room runs its callbacks on its own thread; open it with dispatch_mode 1 (poll) to run them yourself"
    )]
    NotPollMode,
    /// The caller is inside a callback.
    #[error("a callback polls a room; poll outside of callbacks")]
    InsideCallback,
    /// Another thread is polling.
    #[error("another thread is polling this room; let one thread at a time do so")]
    Busy,
    /// A callback forked, and this is the child: the room is its parent's.
    #[error(
        "this process was forked inside a callback, and the room is its parent's; open one here"
    )]
    Forked,
}

impl Coded for PollError {
    fn code(&self) -> Code {
        match self {
            Self::NotPollMode => Code::InvalidArgument,
            Self::InsideCallback | Self::Busy => Code::WouldDeadlock,
            Self::Forked => Code::NotInitialized,
        }
    }
}

const NOT_INITIALIZED: &str = "the room is not open any more, or it is closing; open it again";

/// Why a room refused to dial an address. No ConnectionResult follows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The text is not an address.
    #[error(transparent)]
    Malformed(#[from] TargetError),
    /// The address is this node's.
    #[error("the address {address} is this node's own; give the address of another member")]
    OwnAddress {
        /// The address.
        address: SocketAddr,
    },
    /// The room's links lead over relays alone.
    #[error(
        "paths is 1 (relayed), so this member dials no address; open the room with paths 0 (all), or meet the other member at the relay"
    )]
    Relayed,
    /// Too many attempts are still without a result.
    #[error(
        "{limit} connection attempts are still without a result; wait for their ConnectionResult"
    )]
    TooManyPending {
        /// Limit of attempts at a time.
        limit: usize,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for ConnectError {
    fn code(&self) -> Code {
        match self {
            Self::Malformed(_) | Self::OwnAddress { .. } => Code::InvalidArgument,
            Self::Relayed => Code::NotSupported,
            Self::TooManyPending { .. } => Code::MaxConnectionsReached,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused to end a link. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DisconnectError {
    /// The peer is this node itself.
    #[error("the peer {} is this node itself; to leave the room, close it", Quoted(id.as_str()))]
    Myself {
        /// The id given.
        id: PeerId,
    },
    /// The reason for the peer is too long.
    #[error("length is {len}; a peer that is disconnected can be sent at most {max} bytes")]
    ReasonTooLong {
        /// The length given, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for DisconnectError {
    fn code(&self) -> Code {
        match self {
            Self::Myself { .. } | Self::ReasonTooLong { .. } => Code::InvalidArgument,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused to make a peer the leader. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetLeaderError {
    /// The peer is neither this node nor connected.
    #[error(
        "the peer {} is neither this node nor connected; give the id of a connected peer", Quoted(id.as_str())
    )]
    PeerNotFound {
        /// The id given.
        id: PeerId,
    },
    /// The room's rules reserve this for the leader, and this node is not the leader.
    #[error("only the leader may name a leader in this room (set_leader_authority)")]
    NotLeader,
    /// The quorum is static, and this node follows no leader that it could ask.
    #[error(
        "where the quorum is static, naming a leader asks the present one for a transfer, and no heartbeats of a leader arrive here; try again when there is one"
    )]
    NoLeader,
    /// One fixed member leads.
    #[error(
        "who leads is fixed in this room (host_mode); open it with host_mode off to name another leader"
    )]
    FixedHost,
    /// The peer may not lead.
    #[error("the peer {} may not lead: {reason}; choose another", Quoted(id.as_str()))]
    Rejected {
        /// The id given.
        id: PeerId,
        /// The rule that forbids it.
        reason: &'static str,
    },
    /// The room's election strategy does not support this.
    #[error(
        "the election strategy {strategy} lets no member name a leader; the strategy raft does"
    )]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// The network thread did not answer.
    #[error("the leader could not be set: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for SetLeaderError {
    fn code(&self) -> Code {
        match self {
            Self::PeerNotFound { .. } => Code::PeerNotFound,
            Self::NotLeader | Self::NoLeader => Code::NotLeader,
            Self::Rejected { .. } | Self::FixedHost => Code::Rejected,
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

/// Why a room did not turn automatic elections on or off. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AutoElectionError {
    /// The room's election strategy has no such switch.
    #[error("the election strategy {strategy} cannot be switched off; raft, gossip and etcd can")]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// The network thread did not answer.
    #[error("automatic elections could not be switched: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for AutoElectionError {
    fn code(&self) -> Code {
        match self {
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

/// Why a room queued no message. No peer gets it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// The message type is one of the library's own.
    #[error(
        "msg_type {msg_type} (0x{msg_type:04X}) is below 256 (0x0100), which the library keeps for itself; choose 256 to 65535"
    )]
    TypeReserved {
        /// The type given.
        msg_type: u16,
    },
    /// The message is longer than this node, or the receiver, allows.
    #[error(
        "length {len} is above the max_message_size of {}, {max} bytes; send less at a time, or raise the limit in the configuration",
        limit_of.as_ref().map_or_else(|| "this node".to_owned(), |peer| format!("the peer {}", Quoted(peer.as_str())))
    )]
    TooLarge {
        /// The length given, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
        /// The member whose limit it is; `None` for this node.
        limit_of: Option<PeerId>,
    },
    /// The message is longer than a datagram to a peer may be.
    #[error(
        "length {len} is above the {max} bytes that an unreliable message to {} may have; send less at a time, or send it reliably",
        Quoted(id.as_str())
    )]
    DatagramTooLarge {
        /// The length given, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
        /// The peer at the other end of the link.
        id: PeerId,
    },
    /// The message is longer than a datagram to the first member may be.
    #[error(
        "length {len} is above the {max} bytes of an unreliable message that every new link carries, and no peer is connected yet; send less at a time, or send it reliably"
    )]
    DatagramTooLargeAlone {
        /// The length given, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// A broadcast through the leader with a delivery that may leave members out.
    #[error(
        "a partial broadcast needs a room that is not centralized: there the leader, not this node, queues a broadcast for the members; clear the flag, or switch centralized mode off"
    )]
    PartialCentralized,
    /// Only the leader may send this.
    #[error(
        "this node is not the leader; only the leader may send in the leader's name or forward for others"
    )]
    NotLeader,
    /// No leader is known.
    #[error("no leader is known at present; wait until there is one")]
    NoLeader,
    /// The peer is not connected.
    #[error("the peer {} is not connected; give the id of a connected peer", Quoted(id.as_str()))]
    PeerNotFound {
        /// The id given, or the leader's.
        id: PeerId,
    },
    /// A message would go back to the peer on whose behalf it is sent.
    #[error(
        "from and to are both {}; forward its message to another member, or send it an answer", Quoted(id.as_str())
    )]
    ForwardedToOrigin {
        /// The id of both peers.
        id: PeerId,
    },
    /// A queue has no room. The message was queued for no peer.
    #[error(
        "the queue to {} is full and nothing was queued; try again later, send less, or raise the queue capacity in the configuration",
        PeerNames(peers)
    )]
    QueueFull {
        /// The peers whose queues are full.
        peers: Vec<PeerId>,
    },
    /// The queue to this node's own callbacks is full.
    #[error(
        "the queue of messages to this host is full and nothing was queued; take messages, let their handler return sooner, or raise incoming_queue_capacity or queue_bytes in the configuration"
    )]
    OwnQueueFull,
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for SendError {
    fn code(&self) -> Code {
        match self {
            Self::TypeReserved { .. } | Self::ForwardedToOrigin { .. } => Code::InvalidArgument,
            Self::TooLarge { .. }
            | Self::DatagramTooLarge { .. }
            | Self::DatagramTooLargeAlone { .. } => Code::MessageTooLarge,
            Self::PartialCentralized => Code::NotSupported,
            Self::NotLeader | Self::NoLeader => Code::NotLeader,
            Self::PeerNotFound { .. } => Code::PeerNotFound,
            Self::QueueFull { .. } | Self::OwnQueueFull => Code::SendQueueFull,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: &str) -> PeerId {
        PeerId::new(id).expect("a valid id")
    }

    #[test]
    fn every_number_leads_back_to_its_code() {
        for &code in Code::ALL {
            assert_eq!(Code::from_value(code.value()), Some(code));
            let text = code.description().to_str().expect("UTF-8");
            assert!(text.ends_with('.'), "{text}");
            assert!(!text.starts_with(' ') && !text.contains('\n'), "{text}");
        }
        assert_eq!(Code::from_value(1), None);
        assert_eq!(Code::from_value(-98), None);
        assert_eq!(Code::ALL.len(), 29);
    }

    #[test]
    fn a_full_queue_names_at_most_64_bytes_of_peers() {
        let peers = |ids: &[&str]| SendError::QueueFull {
            peers: ids.iter().map(|id| peer(id)).collect(),
        };
        assert!(
            peers(&["a", "b"])
                .to_string()
                .starts_with("the queue to \"a\", \"b\" is full")
        );
        let long = "x".repeat(62);
        assert!(
            peers(&[&long, "b", "c"])
                .to_string()
                .contains("\" and 2 more is full")
        );
        let longest = "y".repeat(64);
        assert!(
            peers(&[&longest, "b"])
                .to_string()
                .contains("\" and 1 more is full")
        );
        let names = format!("{:?}, {:?} and 1 more", "x".repeat(30), "y".repeat(30));
        assert!(
            peers(&[&"x".repeat(30), &"y".repeat(30), "z"])
                .to_string()
                .contains(&names)
        );
    }

    #[test]
    fn too_large_names_the_owner_of_the_limit() {
        let own = SendError::TooLarge {
            len: 10,
            max: 9,
            limit_of: None,
        };
        assert!(
            own.to_string()
                .starts_with("length 10 is above the max_message_size of this node, 9 bytes")
        );
        let theirs = SendError::TooLarge {
            len: 10,
            max: 9,
            limit_of: Some(peer("bob")),
        };
        assert!(theirs.to_string().contains("of the peer \"bob\", 9 bytes"));
    }
}
