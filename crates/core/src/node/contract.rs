//! Inputs and outputs of a node.

use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use super::merging::Conflict;
use crate::election::engine::{Answer, Call, Request};
use crate::election::gossip::Windows;
use crate::election::{ElectionConfig, ElectionError, LockRefusal};
use crate::event::{Event, LeftReason, MappingFault};
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::introductions::Dial;
use crate::introductions::Reconnect;
use crate::path::{Carrier, Path, RelayNumber};
use crate::time::{Duration, Time};
use crate::virtual_address::VirtualId;
use crate::wire::{Candidate, Envelope, NoPlace, Opaque, Probe, Verdict};

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Interval between two heartbeats to a peer.
    pub heartbeat_interval: Duration,
    /// Settings of elections.
    pub election: ElectionConfig,
    /// Maximum number of linked peers.
    pub max_connections: usize,
    /// The room's limit where this node decides about admissions and no leader has set one ([`Command::SetMaxPeers`]);
    /// 0 is none.
    pub max_peers: u32,
    /// Whether a lost peer keeps its place and is dialled again; otherwise its session ends at once.
    pub auto_reconnect: bool,
    /// Settings for dialling a lost peer.
    pub reconnect: Reconnect,
    /// Time for which a lost peer keeps its place.
    pub member_hold: Duration,
    /// Time within which the room decides about a peer that wants to enter.
    pub handshake_timeout: Duration,
    /// Time for which this host may take no events while its node leads; then the node yields to a member whose host
    /// takes them. `None` is unlimited.
    pub yield_after: Option<Duration>,
    /// Whether this host decides about admissions while its node leads.
    pub ask_host: bool,
    /// The wall clock at the start of the node, as the time since 1970 (UTC).
    pub wall_clock: Duration,
    /// The last state that the previous incarnation stored ([`Output::Persist`]), with a static quorum or an external
    /// store. `None` is a first start. This incarnation's part of it ([`Node::first_state`](super::Node::first_state))
    /// must be safe before its first output is carried out.
    pub saved: Option<Opaque>,
    /// This node's key.
    pub key: Fingerprint,
    /// This node's addresses for other members; at most four.
    pub addresses: Vec<SocketAddr>,
    /// Whether this node is reached over relays alone: no member learns an address of it, and it dials none.
    pub relayed_only: bool,
}

/// A link whose ends have exchanged Hellos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkUp {
    /// The peer.
    pub peer: PeerId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The key that it showed.
    pub key: Fingerprint,
    /// The addresses at which it was seen; none over a carrier.
    pub addresses: Vec<SocketAddr>,
    /// Whether it may vote and lead.
    pub eligible: bool,
    /// Its election priority.
    pub priority: i32,
    /// Whether it is the fixed host, with which the room ends.
    pub is_host: bool,
    /// How its packets travel. A member may get another link over a better path.
    pub path: Path,
    /// The carrier of this node's packets to it.
    pub carrier: Option<Carrier>,
    /// Whether its packets, though direct, pass through this node's port at a TURN server.
    pub through_turn: bool,
    /// Its optional abilities ([`Hello::features`](crate::wire::Hello::features)).
    pub features: u64,
    /// Election data of this node's Hello.
    pub ours: Opaque,
    /// Election data of the peer's Hello.
    pub theirs: Opaque,
}

/// Reason why a link ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// The other end closed it without a complaint: its process ends.
    Closed,
    /// The other end's host disconnected this node.
    Disconnected,
    /// A newer incarnation of the peer replaces it.
    Replaced,
    /// One end received nothing from the other for too long, or the transport gave up. The peer's process may still
    /// run.
    Silent,
    /// The peer broke the protocol.
    Violation(&'static str),
    /// The leader kicked the peer from the room.
    Kicked,
    /// The room is over for the end that closes the link.
    RoomEnded,
    /// The end that closes the link moves to a room that cannot keep the other end.
    Moved(Conflict),
    /// The ends are members of two rooms that cannot merge, and neither moves. They may link again after a leader of
    /// either room has changed.
    OtherRoom,
}

/// A report of a relay, or a change of the link with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayChange {
    /// The link with the relay is up, and this node has entered its room there. [`RelayChange::Present`] follows for each
    /// process there, whatever was known before. Repeated after [`RelayChange::Down`] only.
    Up {
        /// Where the relay sees this node.
        observed: SocketAddr,
        /// The key of the relay.
        key: Fingerprint,
    },
    /// The relay sees this node at another address.
    Observed(SocketAddr),
    /// The holder of this key is in the same room at the relay, as the relay states. Nothing proves that it is a member.
    Present(Fingerprint),
    /// It is there no more.
    Gone(Fingerprint),
    /// The relay is silent, refuses this node, or has closed the link.
    Down,
}

/// The last answer of a router to requests for a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingChange {
    /// It claims to forward packets from this address of the internet to this node.
    Claimed(SocketAddr),
    /// The room has left that router: no address counts until the next answer.
    Withdrawn,
    /// It forwards none.
    Failed(MappingFault),
}

/// A command of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Set the leader.
    SetLeader(PeerId),
    /// Allow or forbid campaigns of this node.
    EnableAutoElection(bool),
    /// Ends the link with a peer, until one of both connects by hand.
    Disconnect {
        /// The peer.
        peer: PeerId,
        /// The reason code for the peer's host.
        code: i32,
        /// The reason for the peer's host.
        bytes: Vec<u8>,
    },
    /// Lifts an earlier disconnect: either end connects by hand.
    LiftBan(PeerId),
    /// Lifts the ban of a key that broke the protocol: this host connects by hand.
    Pardon(Fingerprint),
    /// Transfers the leadership to a peer. Only the leader may.
    TransferLeadership(PeerId),
    /// Transfers the leadership to the next in line. Only the leader may.
    YieldLeadership,
    /// Whether lost peers keep their places and are dialled. Turning it off ends the sessions of lost peers.
    SetAutoReconnect(bool),
    /// Whether this node may lead.
    SetEligible(bool),
    /// This node's election priority.
    SetPriority(i32),
    /// New windows of the gossip strategy, already validated. Changes nothing with another strategy.
    SetWindows(Windows),
    /// Whether this host decides about admissions while its node leads.
    AskHost(bool),
    /// The host's answer to [`Event::JoinRequest`].
    AnswerJoin {
        /// Number of the request.
        request: u64,
        /// The answer: accepted or rejected.
        verdict: Verdict,
    },
    /// Kicks a peer. Only the leader may.
    Kick {
        /// The peer.
        peer: PeerId,
        /// The reason code for the peer's host.
        code: i32,
        /// The reason for the peer's host.
        bytes: Vec<u8>,
        /// Whether its id and its key are banned.
        ban: bool,
    },
    /// Lifts the bans of that id, and of the keys that it was banned with. Only the leader may.
    Unban(PeerId),
    /// Maximum peers per member; 0 is no limit. Only the leader may.
    SetMaxPeers(u32),
    /// Value that others read of this node while it leads. Only with a strategy that supports it.
    Proclaim(Arc<str>),
    /// Acquires a lock; [`Event::LockResult`] answers. Only with a strategy that has locks.
    AcquireLock {
        /// Number of the call.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// Longest wait; zero takes the lock at once or not at all, `None` is no limit.
        wait: Option<Duration>,
    },
    /// Releases a lock, or stops waiting for it.
    ReleaseLock(Arc<str>),
    /// Leaves the room with a leave notice to all peers.
    Leave,
}

/// An input of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// An admitted link is ready. If another key or incarnation still has its id, that session ends now;
    /// [`Input::LinkUp`] follows as soon as the host has received its end.
    LinkReady {
        /// The peer.
        peer: PeerId,
        /// The key that it showed.
        key: Fingerprint,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// A peer is linked.
    LinkUp(Box<LinkUp>),
    /// Another link over as good a path carries a peer's session from now on. Messages under way on the former one may be lost.
    Relinked {
        /// The peer.
        peer: PeerId,
    },
    /// A peer's link ended.
    LinkDown {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: LinkEnd,
    },
    /// The session with a peer, linked or lost, is over: the other end has ended it, or a newer incarnation replaces
    /// it.
    SessionOver {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: LeftReason,
    },
    /// A peer with an accepted Hello ([`Node::check_hello`](super::Node::check_hello)) wants a link; answered by
    /// [`Output::JoinAnswer`].
    Join {
        /// Number of the request.
        ticket: u64,
        /// The peer.
        candidate: Box<Candidate>,
        /// Whether this node dialled it because its own host asked for that: a node that decides admits it without
        /// asking the host.
        invited: bool,
    },
    /// The peer of an [`Input::Join`] has gone away: the request is over, and its reserved place is free.
    JoinWithdrawn {
        /// Number of the request.
        ticket: u64,
    },
    /// A control message arrived on the link of an authenticated peer.
    Message {
        /// The peer.
        from: PeerId,
        /// The message.
        envelope: Envelope,
    },
    /// A probe arrived.
    Datagram {
        /// The peer.
        from: PeerId,
        /// The probe.
        probe: Probe,
    },
    /// Other authenticated data arrived from a peer.
    OtherData {
        /// The peer.
        peer: PeerId,
    },
    /// The packets of a direct link arrive from this address: since it came up, or from now on.
    SeenAt {
        /// The peer.
        peer: PeerId,
        /// The address.
        address: SocketAddr,
        /// Whether the peer dialled this node.
        came: bool,
        /// Whether they pass through this node's port at a TURN server.
        through_turn: bool,
    },
    /// The system reports that the peer's port is closed (ICMP "port unreachable"): the report comes from the present
    /// address of the peer's link. It is a hint, and no proof that the peer's process has died.
    Refused {
        /// The peer.
        peer: PeerId,
        /// The time at which the refused packet was sent; `None` if the report does not quote a packet of that link.
        sent: Option<Time>,
    },
    /// The holder of a key that members introduced answered a dial of this address, whatever came of it.
    Answered {
        /// The address.
        address: SocketAddr,
    },
    /// A peer's packets to a member that this node does not carry them to were dropped.
    CannotCarry {
        /// The peer that sent them.
        from: PeerId,
        /// The member.
        target: VirtualId,
    },
    /// A relay of this member has come up, has gone, or reports something.
    Relay {
        /// The relay.
        relay: RelayNumber,
        /// The change.
        change: RelayChange,
    },
    /// The router has answered to a request for a port, or has not.
    Mapping(MappingChange),
    /// A TURN server forwards from this address to this node from now on; or none does.
    Turn(Option<SocketAddr>),
    /// A dial that this node asked for ended without a link.
    DialFailed {
        /// The peer.
        peer: PeerId,
        /// Whether another dial would fail as well.
        permanent: bool,
    },
    /// A dialled member reports that this node was kicked from the room while it had no link.
    KickedOut,
    /// The state of an [`Output::Persist`] is safe on disk.
    Persisted {
        /// The number of that output; earlier ones are safe, too.
        number: u64,
    },
    /// The external store answers a call ([`Output::Engine`]).
    Engine {
        /// The call.
        call: Call,
        /// The answer.
        answer: Answer,
    },
    /// The time since which this host has taken no events; `None` while it has none to take.
    HostSilentSince(Option<Time>),
    /// Whether dials of the host are running.
    HostDialing(bool),
    /// The wall clock was set: it now shows this time since 1970 (UTC).
    WallClock(Duration),
    /// A command of the host.
    Command(Command),
}

/// An output of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a message on the control stream of a peer's link.
    Transmit {
        /// The peer.
        to: PeerId,
        /// The message.
        envelope: Envelope,
        /// Whether a loss should be noticed at once: some party waits for the message. False for a periodic heartbeat.
        urgent: bool,
    },
    /// Send a datagram.
    Datagram {
        /// The peer.
        to: PeerId,
        /// The probe.
        probe: Probe,
    },
    /// Dial a peer; answer with a link or [`Input::DialFailed`].
    Dial(Dial),
    /// Send this node's packets on a carried link through this carrier from now on; `None` if there is none.
    Carrier {
        /// The peer at the other end.
        peer: PeerId,
        /// The carrier, of the same kind as before.
        carrier: Option<Carrier>,
    },
    /// Dial the addresses that are neither linked nor being dialled, and report whether such dials run
    /// ([`Input::HostDialing`]).
    DialSeeds(Vec<Arc<str>>),
    /// Close a peer's link.
    Close {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: LinkEnd,
    },
    /// The room's decision on a peer that wants a link.
    JoinAnswer {
        /// Number of the request.
        ticket: u64,
        /// The decision; never [`Verdict::NotLeader`].
        verdict: Verdict,
    },
    /// Notify the host.
    Event(Event),
    /// Store a state that must survive the process, and answer with [`Input::Persisted`] when it is safe; dependent
    /// messages wait for that. Only with a static quorum or an external store.
    Persist {
        /// Sequence number of these outputs.
        number: u64,
        /// The state.
        state: Opaque,
    },
    /// Log that the state file was lost or is an older copy: another voter of the static quorum remembers more writes.
    /// This node neither votes nor leads until it has heard from all other voters.
    StaleState {
        /// Number of writes that the other voter remembers.
        remembered: u64,
        /// Number of writes when this incarnation began.
        since: u64,
    },
    /// Log that a message was dropped because of a counter above the bound that the clock allows: one of both clocks is
    /// wrong, or the peer lies. At most once in ten seconds.
    Dropped {
        /// The peer.
        from: PeerId,
        /// The counter.
        value: u64,
        /// The bound at present.
        bound: u64,
    },
    /// Send a request to the external store that elects; answered by [`Input::Engine`].
    Engine {
        /// Sequence number of these outputs, from 1.
        call: Call,
        /// The request.
        request: Request,
    },
    /// All peers have answered the leave notice, and the election has nothing left to do.
    Departed,
}

/// Reason why a command was refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The strategy refuses.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// The strategy refuses a call for a lock.
    #[error(transparent)]
    Lock(#[from] LockRefusal),
    /// A peer cannot disconnect or kick itself.
    #[error("{0} is this peer itself")]
    Oneself(PeerId),
    /// No peer of that id is in the room.
    #[error("{0} is not in the room")]
    UnknownPeer(PeerId),
    /// Only the leader may give this command.
    #[error("this peer does not lead")]
    NotLeader,
    /// No open join request has that number.
    #[error("no join request {0} is open")]
    UnknownRequest(u64),
    /// No peer of that id is banned.
    #[error("{0} is not banned")]
    NotBanned(PeerId),
    /// The limit of kicked peers is reached.
    #[error("{0} peers are kicked already, which is the limit")]
    TooManyKicked(usize),
    /// A fixed host always leads, and its guests never do.
    #[error("who may lead is fixed in a room with a fixed host")]
    FixedHost,
}

/// Reason why a Hello is refused, with the error code for the dialler.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdmissionRefusal {
    /// The dialler has the id of this node or of a linked member, but another key.
    #[error("the id {0} is taken in this room; choose another")]
    DuplicatePeerId(PeerId),
    /// The id belongs to a voter of the static quorum with another key.
    #[error(
        "{0} is a voter of this room with another key: the one that the roster names, or that the other voters saw first"
    )]
    VoterKey(PeerId),
    /// A linked member has the id with another key. It may be dead without being detected yet.
    #[error(
        "another member has the id {0}; choose another, or try again in two seconds if it is that of a game that crashed"
    )]
    Bound(PeerId),
    /// The room is full here.
    #[error(transparent)]
    Full(NoPlace),
    /// The rules of the room differ.
    #[error(
        "{field} is {ours} in the room and {theirs} at the peer that wants to enter; all members of a room need the same"
    )]
    Policy {
        /// Name of the rule.
        field: &'static str,
        /// Its value here.
        ours: String,
        /// Its value there.
        theirs: String,
    },
    /// The host disconnected this peer, and neither end has connected by hand since; or the peer broke the protocol
    /// lately.
    #[error(
        "the host of the member that answered has disconnected {0}, or {0} broke the protocol lately"
    )]
    Banned(PeerId),
    /// The leader has kicked this peer.
    #[error("the leader has banned {0} from this room")]
    Kicked(PeerId),
    /// The peer's room and this one cannot merge under their present leaders.
    #[error(
        "the room of {0} and this one have leaders of one id, or one has banned the other's leader: they stay two rooms"
    )]
    OtherRoom(PeerId),
    /// This node looks for a room, and so does the other end, according to its Hello.
    #[error(
        "this peer is also looking for a room; dial the member that has created it, or a member of its room"
    )]
    Looking,
    /// This node is leaving.
    #[error("the member that answered is leaving the room")]
    Leaving,
    /// The room is over for this node.
    #[error("the room is over for the member that answered")]
    Ended,
}

#[cfg(any(test, feature = "laboratory"))]
impl NodeConfig {
    /// Default timers and limits; tests override the ones that they test.
    pub fn for_tests() -> Self {
        let ms = Duration::from_millis;
        Self {
            heartbeat_interval: ms(500),
            election: ElectionConfig::for_tests(),
            max_connections: 64,
            max_peers: 0,
            auto_reconnect: true,
            reconnect: Reconnect::default(),
            member_hold: ms(60_000),
            handshake_timeout: ms(5000),
            yield_after: None,
            ask_host: false,
            wall_clock: Duration::ZERO,
            saved: None,
            key: Fingerprint([0; 32]),
            addresses: Vec::new(),
            relayed_only: false,
        }
    }
}
