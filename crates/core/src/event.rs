//! Events for the host, in one type from the core to the C ABI.
//!
//! A [`Node`](super::node::Node) emits the events of its room. The driver adds those of links and dials: messages,
//! results of dials, and discovered members.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::election::seeded::MemberState;
use super::election::{AssignOutcome, LeaderReason, LockOutcome};
use super::id::PeerId;
use super::path::LinkPath;
use super::time::Duration;

/// An event for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session with a peer has begun. It precedes the peer's first message.
    Joined(PeerId),
    /// The peer is lost; its session continues, and this node dials it.
    Reconnecting(PeerId),
    /// The lost peer is linked again. It precedes the messages of the peer on the new link.
    Returned(Returned),
    /// The session with a peer is over. It follows the peer's last message.
    Left(Left),
    /// The leader has changed; there may be none.
    LeaderChanged(LeaderChange),
    /// This node leads from now on. The dispatch queue derives it from the [`Event::LeaderChanged`] before it.
    LeadershipGained(LeaderChange),
    /// This node leads no longer. The dispatch queue derives it from the [`Event::LeaderChanged`] before it.
    LeadershipLost(LeaderChange),
    /// A peer wants to enter, and this host decides: [`Command::AnswerJoin`](super::node::Command::AnswerJoin).
    JoinRequest {
        /// Number of the request.
        request: u64,
        /// The peer.
        peer: PeerId,
        /// Its address, if known.
        address: Option<SocketAddr>,
        /// Its join payload.
        payload: Vec<u8>,
    },
    /// An [`Event::JoinRequest`] is over without an answer of this host: the newcomer has gone away, the timeout has
    /// expired, or another member decides.
    JoinWithdrawn {
        /// Number of the request.
        request: u64,
        /// The peer that wanted to enter.
        peer: PeerId,
    },
    /// The room is over for this node: it has no links and will get none.
    RoomEnded {
        /// Reason for the end.
        why: EndReason,
        /// Reason code of a kick.
        code: i32,
        /// Reason bytes of a kick.
        bytes: Vec<u8>,
    },
    /// The host of a peer has taken no events for a while.
    HostSilent {
        /// The peer.
        peer: PeerId,
        /// Duration that the peer reports.
        silent: Duration,
    },
    /// The host of a peer takes events again.
    HostBack(PeerId),
    /// This node joins a room and has found none for this long. It keeps looking.
    NoRoomFound(Duration),
    /// Result of a `SetLeader` of this host.
    SetLeaderResult {
        /// The member that should have led.
        target: PeerId,
        /// The result.
        outcome: AssignOutcome,
    },
    /// The state of a member of a seeded cluster has changed.
    MemberState {
        /// The member.
        peer: PeerId,
        /// Its new state.
        state: MemberState,
        /// Version of the cluster.
        version: u64,
    },
    /// Result of an `mmn_acquire_lock` or `mmn_try_lock`.
    LockResult {
        /// Number of the call.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// The result.
        outcome: LockOutcome,
    },
    /// A lock that this node held is lost.
    LockLost {
        /// The lock.
        name: Arc<str>,
        /// Its fencing token.
        token: u64,
    },
    /// A ban of this node is void: the present leader does not have it and does not know who decided it.
    BanDropped {
        /// The id that was banned.
        peer: PeerId,
        /// The leader.
        leader: PeerId,
    },
    /// Two members have no link because one of them has reached its limit. Either may be this node.
    Unlinked {
        /// The member that has no link with the other one.
        peer: PeerId,
        /// The member whose limit is reached.
        other: PeerId,
    },
    /// A linked peer is reached in another way from now on. The messages of both hosts do not notice.
    PathChanged {
        /// The peer.
        peer: PeerId,
        /// The former path.
        old: LinkPath,
        /// The path from now on.
        new: LinkPath,
    },
    /// This node has entered a relay, or is not in it any more, or could not enter it.
    Relay(RelayReport),
    /// The state of the port that this node asks its router for has changed.
    PortMapping(MappingReport),
    /// This node has got a port at a TURN server, or has none any more, or could not get one.
    Turn(TurnReport),
    /// A message arrived.
    Message(Incoming),
    /// A broadcast that may skip members has skipped this one: its queue was full.
    SlowPeer(PeerId),
    /// Unreliable messages to or from a peer were dropped at this node.
    DataDropped {
        /// The peer.
        peer: PeerId,
        /// Direction of the messages.
        direction: Direction,
        /// Number of messages since the last such event.
        count: u64,
    },
    /// A transfer of bytes to or from a peer.
    Transfer(Transfer),
    /// A connection that the host asked for is up or has failed.
    ConnectionResult(ConnectionResult),
    /// A member that this node discovered and dialled by itself refused it, or this node refused that member.
    DiscoveryRefused(DiscoveryRefused),
    /// A member of the room announces itself in the local network.
    Discovered {
        /// An address to dial.
        address: String,
    },
}

impl Event {
    /// The peer whose link the event is about.
    pub fn peer(&self) -> Option<&PeerId> {
        match self {
            Self::Joined(peer) | Self::Reconnecting(peer) => Some(peer),
            Self::Returned(returned) => Some(&returned.peer),
            Self::Left(left) => Some(&left.peer),
            _ => None,
        }
    }

    /// The peer that the event names first, this node or another.
    pub fn names(&self) -> Option<&PeerId> {
        match self {
            Self::Joined(peer)
            | Self::Reconnecting(peer)
            | Self::Returned(Returned { peer, .. })
            | Self::SlowPeer(peer)
            | Self::Left(Left { peer, .. })
            | Self::JoinRequest { peer, .. }
            | Self::JoinWithdrawn { peer, .. }
            | Self::MemberState { peer, .. }
            | Self::DataDropped { peer, .. }
            | Self::HostSilent { peer, .. }
            | Self::HostBack(peer)
            | Self::Unlinked { peer, .. }
            | Self::PathChanged { peer, .. }
            | Self::BanDropped { peer, .. }
            | Self::SetLeaderResult { target: peer, .. } => Some(peer),
            Self::Message(message) => Some(&message.from),
            Self::Transfer(transfer) => Some(&transfer.peer),
            Self::ConnectionResult(result) => result.peer.as_ref(),
            Self::LeaderChanged(change)
            | Self::LeadershipGained(change)
            | Self::LeadershipLost(change) => change.new.as_ref(),
            Self::DiscoveryRefused(refused) => refused.result.peer.as_ref(),
            Self::RoomEnded { .. }
            | Self::LockResult { .. }
            | Self::LockLost { .. }
            | Self::NoRoomFound(_)
            | Self::Relay(_)
            | Self::PortMapping(_)
            | Self::Turn(_)
            | Self::Discovered { .. } => None,
        }
    }
}

/// The state of the link to a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayReport {
    /// The relay's address as the host gave it.
    pub relay: Arc<str>,
    /// Number of the reason in the C ABI; 0 while this node is in the relay.
    pub code: i32,
    /// Where the relay sees this node, while it is in it.
    pub observed: Option<SocketAddr>,
}

/// The state of the port that a TURN server gives this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// The server's URL as the host gave it, without the credentials.
    pub server: Arc<str>,
    /// Number of the reason in the C ABI; 0 while this node has the port.
    pub code: i32,
    /// Where the server forwards to this node, while it does.
    pub address: Option<SocketAddr>,
    /// A sentence for the player, while it does not.
    pub why: Arc<str>,
}

/// The state of the port that this node asks its router for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingReport {
    /// The router claims to forward packets from this address to this node, and nothing speaks against it.
    Mapped(SocketAddr),
    /// It forwards none.
    Failed(MappingFault),
}

/// Reason why no port of a router leads to this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MappingFault {
    /// This node uses no network with a router that could be asked.
    NoRouter,
    /// The router does not answer.
    NoAnswer,
    /// The router refuses.
    Refused,
    /// The router's answer is malformed, or names what it cannot give.
    Malformed,
    /// The router itself has no address of the internet: another router is in front of it.
    NotPublic,
    /// Most others see this node at another address than the router's.
    Elsewhere,
    /// Members that had the address could not reach this node there.
    Unreached,
}

/// The return of a lost peer, with the reliable messages of that time that will not arrive. The room counts each of
/// them once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The peer.
    pub peer: PeerId,
    /// Messages of this host that the peer will not receive.
    pub undelivered: u64,
    /// Messages of the peer's host that this one will not receive.
    pub missed: u64,
}

impl Returned {
    /// A return with nothing lost.
    pub fn new(peer: PeerId) -> Self {
        Self {
            peer,
            undelivered: 0,
            missed: 0,
        }
    }
}

/// The end of the session with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The peer.
    pub peer: PeerId,
    /// Reason for the end.
    pub why: LeftReason,
    /// Reason code of a kick.
    pub code: i32,
    /// Reason bytes of a kick.
    pub bytes: Vec<u8>,
    /// Reliable messages to the peer that were accepted and are not known to be delivered, or that were sent while it
    /// was lost and did not fit into its queue; without the ones that a [`Returned`] has counted. The room counts them
    /// when the session ends.
    pub undelivered: u64,
}

impl Left {
    /// A departure without details.
    pub fn new(peer: PeerId, why: LeftReason) -> Self {
        Self {
            peer,
            why,
            code: 0,
            bytes: Vec::new(),
            undelivered: 0,
        }
    }
}

/// A change of the leader; there may be none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaderChange {
    /// The former leader. The dispatch queue sets it: it knows the last leader that the host received.
    pub old: Option<PeerId>,
    /// The new leader.
    pub new: Option<PeerId>,
    /// The term of the change.
    pub term: u64,
    /// Number of `SetLeader` calls before the change.
    pub epoch: u64,
    /// Reason for the change.
    pub reason: LeaderReason,
}

impl LeaderChange {
    /// Whether `me` leads from now on (`true`) or no longer (`false`); `None` for a change between others.
    pub fn leadership_of(&self, me: &PeerId) -> Option<bool> {
        let (led, leads) = (self.old.as_ref() == Some(me), self.new.as_ref() == Some(me));
        (led != leads).then_some(leads)
    }
}

/// The result of one `ConnectToPeer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionResult {
    /// The address as the host gave it.
    pub target: String,
    /// Whether the peer is connected now.
    pub success: bool,
    /// Result code of the C ABI.
    pub code: i32,
    /// The peer that answered, if known.
    pub peer: Option<PeerId>,
    /// The room application's number for a rejection.
    pub reason: i32,
    /// The room application's reason for a rejection.
    pub bytes: Bytes,
}

/// Way in which this node found a member that its host did not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum FoundBy {
    /// Discovery in the local network.
    LocalNetwork = 1,
    /// A seed in the options.
    Seed = 2,
    /// A relay in the options.
    Relay = 3,
}

/// The refusal of a dial that this node started by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryRefused {
    /// Way in which the member was found.
    pub found_by: FoundBy,
    /// Result of the dial.
    pub result: ConnectionResult,
}

/// A message for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The sender.
    pub from: PeerId,
    /// The payload.
    pub payload: Bytes,
    /// The application's type, 0x0100 or more.
    pub msg_type: u16,
    /// The application's flags; bit 0 is the library's and clear.
    pub flags: u8,
    /// The channel that the sender chose.
    pub channel: u8,
    /// The delivery that the sender chose.
    pub delivery: Delivery,
}

/// An event about a transfer of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The peer at the other end.
    pub peer: PeerId,
    /// Number of the transfer.
    pub id: u64,
    /// Its length in bytes.
    pub size: u64,
    /// The news about it.
    pub news: TransferNews,
    /// Dropped when the host has received the event.
    pub receipt: Receipt,
}

/// News about a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferNews {
    /// The peer offers it.
    Offered {
        /// The sender's bytes about it.
        tag: Bytes,
    },
    /// It goes on.
    Progress {
        /// Bytes that have arrived.
        done: u64,
    },
    /// The next bytes of it.
    Part {
        /// Position of the first one.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// It is over.
    Ended {
        /// The outcome.
        outcome: TransferOutcome,
        /// Bytes that have arrived, as far as this end knows.
        done: u64,
    },
}

/// Outcome of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferOutcome {
    /// All of it has arrived.
    Complete,
    /// The sender's host cancelled it.
    CancelledBySender,
    /// The receiver's host cancelled it after it had accepted it.
    CancelledByReceiver,
    /// The receiver's host refused it.
    Refused,
    /// The receiver's host did not answer in time.
    Unanswered,
    /// The receiver has too many open offers, or its host takes no events.
    Busy,
    /// The peer has left.
    PeerLeft,
    /// The room is over.
    RoomEnded,
    /// The bytes that arrived have another digest than the offer.
    Corrupt,
}

/// Held by an event until the host has received it, or will not.
#[derive(Clone)]
pub struct Receipt {
    _held: Arc<dyn Any + Send + Sync>,
}

impl Receipt {
    /// Holds a value, which is dropped with the last copy. Its drop must not use the queue of events.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self {
            _held: Arc::new(held),
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

/// Events are equal whatever their receipts.
impl PartialEq for Receipt {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Receipt {}

/// Delivery mode of a message, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Delivery {
    /// Each message arrives once, in the order of the calls with the same channel.
    #[default]
    ReliableOrdered = 0,
    /// Each message arrives once.
    ReliableUnordered = 1,
    /// A message arrives once or is lost.
    Unreliable = 2,
    /// A message arrives once or is lost; one that is older than the newest of its key is dropped.
    Sequenced = 3,
}

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// Reason why a room is over for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The leader removed this node.
    Kicked,
    /// The fixed host left.
    HostLeft,
    /// The fixed host was lost and did not return in time, or broke the protocol.
    HostLost,
    /// The fixed host disconnected this node, or this node's application disconnected the fixed host.
    Disconnected,
    /// All others moved to another room, where another member has this node's id.
    DuplicateId,
    /// A fault inside the library ended the room of this node alone.
    Internal,
}

/// Reason why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftReason {
    /// The peer left, or it moved to another room that cannot merge with this one.
    Left,
    /// The peer was lost and did not return in time, or lost peers keep no place.
    Lost,
    /// One of both hosts disconnected the other.
    Disconnected,
    /// A newer incarnation of the peer replaces it.
    Replaced,
    /// The leader kicked the peer, or this node.
    Kicked,
    /// The peer broke the protocol.
    Violation,
    /// The peer was lost, and this node stopped dialling it.
    GaveUp,
    /// The room is over: for this node, after [`Event::RoomEnded`], or for the peer.
    RoomEnded,
}
