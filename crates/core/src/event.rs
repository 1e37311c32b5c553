//! Everything that a host is told, in one type from the core to the C ABI.
//!
//! A [`Node`](super::node::Node) emits what happens in its room. The driver adds what comes over the links and from
//! dials: messages, the results of dials and what discovery finds.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::election::seeded::MemberState;
use super::election::{AssignOutcome, LeaderReason, LockOutcome};
use super::id::PeerId;
use super::time::Duration;

/// Something that the host is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A session with a peer has begun. It comes before the peer's first message.
    Joined(PeerId),
    /// The peer is lost; its session goes on, and it is dialled.
    Reconnecting(PeerId),
    /// The lost peer is linked again. It comes before the messages that the peer sends on the new link.
    Returned(Returned),
    /// The session with a peer is over. It comes after the peer's last message.
    Left(Left),
    /// Another leader, or none.
    LeaderChanged(LeaderChange),
    /// This node leads from here on. Follows its [`Event::LeaderChanged`], from which the dispatch queue makes it.
    LeadershipGained(LeaderChange),
    /// This node leads no longer. Follows its [`Event::LeaderChanged`], from which the dispatch queue makes it.
    LeadershipLost(LeaderChange),
    /// Somebody wants to enter, and this host decides:
    /// [`Command::AnswerJoin`](super::node::Command::AnswerJoin).
    JoinRequest {
        /// Names the question.
        request: u64,
        /// Who.
        peer: PeerId,
        /// From where, if that is known.
        address: Option<SocketAddr>,
        /// What its application says.
        payload: Vec<u8>,
    },
    /// A [`Event::JoinRequest`] is over without an answer of this host: the newcomer is gone, the time is up, or another
    /// decides.
    JoinWithdrawn {
        /// The question.
        request: u64,
        /// Who wanted to enter.
        peer: PeerId,
    },
    /// The room is over for this node: nobody is linked, and nobody will be.
    RoomEnded {
        /// Why.
        why: EndReason,
        /// The number that came with a kick.
        code: i32,
        /// What came with a kick.
        bytes: Vec<u8>,
    },
    /// The host of a peer has taken no events for so long.
    HostSilent {
        /// The peer.
        peer: PeerId,
        /// For how long, as the peer shows.
        silent: Duration,
    },
    /// The host of a peer takes events again.
    HostBack(PeerId),
    /// This node joins a room, and has found none for so long. It goes on looking.
    NoRoomFound(Duration),
    /// How a `SetLeader` of this host ended.
    SetLeaderResult {
        /// Who should have led.
        target: PeerId,
        /// How it ended.
        outcome: AssignOutcome,
    },
    /// The state of a member of a seeded cluster has changed.
    MemberState {
        /// Whose.
        peer: PeerId,
        /// Its state now.
        state: MemberState,
        /// Under which version of the cluster.
        version: u64,
    },
    /// How a call of `AcquireLock` or `TryLock` ended.
    LockResult {
        /// Which call.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// How it ended.
        outcome: LockOutcome,
    },
    /// A lock that this node held is lost.
    LockLost {
        /// The lock.
        name: Arc<str>,
        /// Its fencing token.
        token: u64,
    },
    /// A ban of this node is void: the present leader does not have it, and does not know who decided it.
    BanDropped {
        /// The id that was banned.
        peer: PeerId,
        /// The leader.
        leader: PeerId,
    },
    /// Two members have no link, since one of them has as many as it may. Either may be this node.
    Unlinked {
        /// The member that has no link with the other one.
        peer: PeerId,
        /// The one whose limit is reached.
        other: PeerId,
    },
    /// A message came.
    Message(Incoming),
    /// A broadcast that may leave members out has left this one out: its queue was full.
    SlowPeer(PeerId),
    /// Unreliable messages to or from a peer were dropped at this node.
    DataDropped {
        /// To or from whom.
        peer: PeerId,
        /// Where they were dropped.
        direction: Direction,
        /// How many, since the last such event.
        count: u64,
    },
    /// A connection that the host asked for has come about or failed.
    ConnectionResult(ConnectionResult),
    /// A member that this node found and dialled by itself refused it, or this node refused that member.
    DiscoveryRefused(DiscoveryRefused),
    /// A member of the room announces itself in the local network.
    Discovered {
        /// An address to dial.
        address: String,
    },
}

impl Event {
    /// Whose link it is about.
    pub fn peer(&self) -> Option<&PeerId> {
        match self {
            Self::Joined(peer) | Self::Reconnecting(peer) => Some(peer),
            Self::Returned(returned) => Some(&returned.peer),
            Self::Left(left) => Some(&left.peer),
            _ => None,
        }
    }

    /// Which peer it names first, this node or another.
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
            | Self::BanDropped { peer, .. }
            | Self::SetLeaderResult { target: peer, .. } => Some(peer),
            Self::Message(message) => Some(&message.from),
            Self::ConnectionResult(result) => result.peer.as_ref(),
            Self::LeaderChanged(change)
            | Self::LeadershipGained(change)
            | Self::LeadershipLost(change) => change.new.as_ref(),
            Self::DiscoveryRefused(refused) => refused.result.peer.as_ref(),
            Self::RoomEnded { .. }
            | Self::LockResult { .. }
            | Self::LockLost { .. }
            | Self::NoRoomFound(_)
            | Self::Discovered { .. } => None,
        }
    }
}

/// The return of a lost peer, with the reliable messages that were sent while it was lost and will not arrive. The room
/// counts them; each is counted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The peer.
    pub peer: PeerId,
    /// Messages of this host that the peer will not get.
    pub undelivered: u64,
    /// Messages of the peer's host that this one will not get.
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
    /// Why it is gone.
    pub why: LeftReason,
    /// The number that came with a kick.
    pub code: i32,
    /// What came with a kick.
    pub bytes: Vec<u8>,
    /// Reliable messages to it that were accepted and are not known to be delivered, or were sent while it was lost and did
    /// not fit into its queue, except for those that a [`Returned`] has counted. The room counts them when the session
    /// ends.
    pub undelivered: u64,
}

impl Left {
    /// A departure about which nothing more is known than why.
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

/// Another leader, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaderChange {
    /// Who led. The dispatch queue fills it in: it knows what the host was told.
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

impl LeaderChange {
    /// Whether `me` leads from here on, or no longer; `None` where the change is one between others.
    pub fn leadership_of(&self, me: &PeerId) -> Option<bool> {
        let (led, leads) = (self.old.as_ref() == Some(me), self.new.as_ref() == Some(me));
        (led != leads).then_some(leads)
    }
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

/// How this node found a member that its host did not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum FoundBy {
    /// Discovery in the local network.
    LocalNetwork = 1,
    /// It is one of the options' seeds.
    Seed = 2,
}

/// The refusal of a dial that this node made by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryRefused {
    /// How the member was found.
    pub found_by: FoundBy,
    /// How the dial ended.
    pub result: ConnectionResult,
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
    /// The channel that its sender named.
    pub channel: u8,
    /// What its sender asked for.
    pub delivery: Delivery,
}

/// What a sender asks for, with the numbers of the C ABI.
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
    /// The same, and one that is older than the newest of its key is dropped.
    Sequenced = 3,
}

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}

/// Why a room is over for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The leader removed this node.
    Kicked,
    /// The fixed host left.
    HostLeft,
    /// The fixed host was lost and is not waited for any more, or broke the protocol.
    HostLost,
    /// The fixed host disconnected this node, or this node's application the host.
    Disconnected,
    /// All others went on in another room, where another member has this node's id.
    DuplicateId,
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftReason {
    /// It left, or it goes on in another room, with which this one cannot become one.
    Left,
    /// It was lost and did not return in time, or is not waited for.
    Lost,
    /// One of both hosts disconnected the other.
    Disconnected,
    /// A newer incarnation of it takes its place.
    Replaced,
    /// The leader removed it, or this node.
    Kicked,
    /// It broke the protocol.
    Violation,
    /// It was lost, and this node stopped dialling it.
    GaveUp,
    /// The room is over: for this node, after [`Event::RoomEnded`], or for the peer.
    RoomEnded,
}
