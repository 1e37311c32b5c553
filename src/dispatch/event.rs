//! What the host is told, and the functions that take it.

use std::sync::Arc;

use bytes::Bytes;

use crate::core::election::LeaderReason;
use crate::core::id::PeerId;
pub use crate::core::node::{EndReason, LeftReason};
use crate::snapshot::PeerStatus;

/// Something that the host is told, other than a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A peer is connected. Push it before the peer's first message.
    Joined(PeerId),
    /// A connected peer is lost and being dialled again; its session goes on.
    Reconnecting(PeerId),
    /// A peer that was being dialled again is back in the same session.
    Returned(PeerId),
    /// The session with a peer has ended. Push it after the peer's last message.
    Left(Left),
    /// The leader is another one, or none.
    LeaderChanged(LeaderChange),
    /// A connection that the host asked for has come about or failed.
    ConnectionResult(ConnectionResult),
    /// How a `SetLeader` of this host ended.
    SetLeaderResult {
        /// Who should have led.
        target: PeerId,
        /// The code of the C ABI that says how it ended.
        code: i32,
    },
    /// This node is in the room no more.
    RoomEnded {
        /// Why.
        reason: EndReason,
        /// The code that the application of the room gave.
        code: i32,
        /// What the application of the room said.
        bytes: Bytes,
    },
    /// Somebody asks to be let in, and the application decides.
    JoinRequest(JoinRequest),
    /// A member of the room announces itself in the local network.
    Discovered {
        /// An address to dial.
        address: String,
    },
}

/// The end of the session with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The peer.
    pub peer: PeerId,
    /// Why it is gone.
    pub reason: LeftReason,
    /// The code that the application gave, where it was asked to give one.
    pub code: i32,
    /// What the application said.
    pub bytes: Bytes,
    /// Messages to it that were accepted and are not known to be delivered.
    pub undelivered: u64,
}

/// Another leader, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaderChange {
    /// Who led. The queue fills it in: it knows what the host was told.
    pub old: Option<PeerId>,
    /// Who leads now.
    pub new: Option<PeerId>,
    /// The term of the change.
    pub term: u64,
    /// The count of `SetLeader` calls that the change builds on.
    pub epoch: u64,
    /// Why.
    pub reason: LeaderReason,
}

/// The end of one `ConnectToPeer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionResult {
    /// The address as the host gave it.
    pub target: String,
    /// Whether the peer is connected now.
    pub success: bool,
    /// The code of the C ABI that says why.
    pub code: i32,
    /// Who answered, where that is known.
    pub peer: Option<PeerId>,
    /// The number that the application of the room gave with a rejection.
    pub reason: i32,
    /// What the application of the room that rejected said.
    pub bytes: Bytes,
}

/// Somebody asks to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRequest {
    /// Names the request in the answer.
    pub request: u64,
    /// Who asks.
    pub peer: PeerId,
    /// From where.
    pub address: String,
    /// What its application says.
    pub payload: Bytes,
}

/// What becomes of a lost peer, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReconnectStatus {
    /// It is being dialled again.
    Retrying = 0,
    /// It is back.
    Returned = 1,
    /// It has been given up.
    GaveUp = 2,
}

/// A message for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// Who sent it.
    pub from: PeerId,
    /// What was sent.
    pub payload: Bytes,
    /// The application's type, 0x0100 or more.
    pub msg_type: u16,
    /// The application's flags; bit 0 is the library's and clear.
    pub flags: u8,
}

/// All that an event handler is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A message came.
    Message(Incoming),
    /// Something else happened.
    Event(Event),
    /// This node leads from here on. Follows its [`Event::LeaderChanged`].
    LeadershipGained(LeaderChange),
    /// This node leads no longer. Follows its [`Event::LeaderChanged`].
    LeadershipLost(LeaderChange),
}

/// Takes messages.
pub type ReceiveHandler = Arc<dyn Fn(&Incoming) + Send + Sync>;
/// Takes changes of the leader; `None` is no leader.
pub type LeaderChangedHandler = Arc<dyn Fn(Option<&PeerId>) + Send + Sync>;
/// Takes changes of whether this node leads.
pub type LeadershipHandler = Arc<dyn Fn(bool) + Send + Sync>;
/// Takes connections ([`PeerStatus::Connected`]) and losses ([`PeerStatus::Disconnected`]).
pub type PeerStatusHandler = Arc<dyn Fn(&PeerId, PeerStatus) + Send + Sync>;
/// Takes the results of connection attempts.
pub type ConnectionResultHandler = Arc<dyn Fn(&ConnectionResult) + Send + Sync>;
/// Takes what becomes of lost peers.
pub type ReconnectHandler = Arc<dyn Fn(&PeerId, ReconnectStatus) + Send + Sync>;
/// Takes everything.
pub type EventHandler = Arc<dyn Fn(&Notice) + Send + Sync>;
