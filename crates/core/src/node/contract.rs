//! What goes into a node and what comes out of it.

use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use super::merging::Conflict;
use crate::election::engine::{Answer, Call, Request};
use crate::election::gossip::Windows;
use crate::election::{ElectionConfig, ElectionError};
use crate::event::{Event, LeftReason};
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::introductions::Dial;
use crate::introductions::Reconnect;
use crate::time::{Duration, Time};
use crate::wire::{Candidate, Envelope, NoPlace, Opaque, Probe, Verdict};

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Time between two heartbeats to a peer.
    pub heartbeat_interval: Duration,
    /// The settings of elections.
    pub election: ElectionConfig,
    /// Other members, at most.
    pub max_connections: usize,
    /// The room's limit where this node decides who enters and nobody has set one ([`Command::SetMaxPeers`]); 0 is none.
    pub max_peers: u32,
    /// Whether a lost peer keeps its place and is dialled again; else it has left at once.
    pub auto_reconnect: bool,
    /// How a lost peer is dialled again.
    pub reconnect: Reconnect,
    /// How long a lost peer keeps its place.
    pub member_hold: Duration,
    /// How long somebody who wants to enter waits for the room's word.
    pub handshake_timeout: Duration,
    /// How long this host may take no events while its node leads: then the node yields to a member whose host does.
    /// `None` is for ever.
    pub yield_after: Option<Duration>,
    /// Whether this host decides, when it leads, who may enter.
    pub ask_host: bool,
    /// What the wall clock shows when the node starts, as the time since 1970 (UTC).
    pub wall_clock: Duration,
    /// Where the quorum is static, or an external store elects: what the incarnation before this one kept last
    /// ([`Output::Persist`]). `None` is a first start. What this one keeps of it
    /// ([`Node::first_state`](super::Node::first_state)) must be safe before its first output is carried out.
    pub saved: Option<Opaque>,
    /// The key of this node.
    pub key: Fingerprint,
    /// Where others may reach this node; at most four.
    pub addresses: Vec<SocketAddr>,
}

/// A link whose both ends said Hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkUp {
    /// The peer.
    pub peer: PeerId,
    /// Which incarnation of it.
    pub incarnation: Incarnation,
    /// The key that it showed.
    pub key: Fingerprint,
    /// Where it was seen.
    pub addresses: Vec<SocketAddr>,
    /// Whether it may vote and lead.
    pub eligible: bool,
    /// Its election priority.
    pub priority: i32,
    /// Whether the room ends with it.
    pub is_host: bool,
    /// Whether the link goes through the leader. A member that is linked so may be linked once more without that.
    pub through_leader: bool,
    /// What we said about leadership.
    pub ours: Opaque,
    /// What it said about leadership.
    pub theirs: Opaque,
}

/// Why a link ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// The other end closed it with nothing against this one: its process ends.
    Closed,
    /// The other end's host disconnected us.
    Disconnected,
    /// A newer incarnation of the same peer takes over.
    Replaced,
    /// The other end fell silent here, or this end fell silent there, or the transport gave up. Its process may live on.
    Silent,
    /// The peer sent what no member sends.
    Violation(&'static str),
    /// The leader removed the peer from the room.
    Kicked,
    /// The room is over for the end that closes the link.
    RoomEnded,
    /// The end that closes the link goes on in a room that cannot keep the other one.
    Moved(Conflict),
    /// Both ends are members of two rooms that cannot become one, and the members of neither move. Once a leader of one of
    /// both has changed, they may link again.
    OtherRoom,
}

/// What a host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Set the leader.
    SetLeader(PeerId),
    /// Allow or forbid campaigns of this node.
    EnableAutoElection(bool),
    /// End the link with a peer, until one of both connects by hand.
    Disconnect {
        /// Who.
        peer: PeerId,
        /// The number that the peer's host is told.
        code: i32,
        /// What the peer's host is told.
        bytes: Vec<u8>,
    },
    /// A connection by hand of either end lifts an earlier disconnect.
    LiftBan(PeerId),
    /// One of this host lifts what the holder of the key did.
    Pardon(Fingerprint),
    /// Hand the leadership over to a peer. Only the leader may.
    TransferLeadership(PeerId),
    /// Hand the leadership over to whoever would be next. Only the leader may.
    YieldLeadership,
    /// Keep the places of lost peers and dial them, or not: those that are lost have left then.
    SetAutoReconnect(bool),
    /// May this node lead from now on?
    SetEligible(bool),
    /// This node's election priority from now on.
    SetPriority(i32),
    /// Other windows of the gossip strategy, checked already. Changes nothing where another elects.
    SetWindows(Windows),
    /// Shall this host decide, when it leads, who may enter?
    AskHost(bool),
    /// The host's answer to [`Event::JoinRequest`].
    AnswerJoin {
        /// The question.
        request: u64,
        /// The answer: accepted or rejected.
        verdict: Verdict,
    },
    /// Remove a peer. Only the leader may.
    Kick {
        /// Who.
        peer: PeerId,
        /// The number that the peer's host is told.
        code: i32,
        /// What the peer's host is told.
        bytes: Vec<u8>,
        /// Whether its name and its key stay out.
        ban: bool,
    },
    /// Lift the bans of that name, and of the keys that it was banned with. Only the leader may.
    Unban(PeerId),
    /// Most other members of any member from now on; 0 is no limit. Only the leader may.
    SetMaxPeers(u32),
    /// What others read of this node while it leads. Only where the strategy has that.
    Proclaim(Arc<str>),
    /// Acquire a lock; [`Event::LockResult`] answers. Only where the strategy has locks.
    AcquireLock {
        /// Names the question.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// How long to wait at most; zero takes it at once or not at all, `None` is no limit.
        wait: Option<Duration>,
    },
    /// Release a lock, or stop waiting for it.
    ReleaseLock(Arc<str>),
    /// Leave the room politely.
    Leave,
}

/// Everything that a node reacts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A link that the room admitted is ready. Where its id belongs to another key or incarnation still, that session ends
    /// now; [`Input::LinkUp`] follows as soon as the host has received that.
    LinkReady {
        /// The peer.
        peer: PeerId,
        /// The key that it showed.
        key: Fingerprint,
        /// Which incarnation of it.
        incarnation: Incarnation,
    },
    /// A peer is linked.
    LinkUp(Box<LinkUp>),
    /// A peer's link ended.
    LinkDown {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LinkEnd,
    },
    /// The session with a peer, linked or lost, is over: the other end or a newer incarnation of it says so.
    SessionOver {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LeftReason,
    },
    /// Somebody whose Hello stands ([`Node::check_hello`](super::Node::check_hello)) wants to be linked;
    /// answered by [`Output::JoinAnswer`].
    Join {
        /// Names the question.
        ticket: u64,
        /// Who it is.
        candidate: Box<Candidate>,
        /// Whether this node dialled it because its own host asked for that: then a node that decides has
        /// decided.
        invited: bool,
    },
    /// The asker of that [`Input::Join`] is gone: the question is over, or the place that its answer kept is free.
    JoinWithdrawn {
        /// Which question.
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
    /// Something else that is authenticated arrived from a peer.
    Heard {
        /// The peer.
        peer: PeerId,
    },
    /// A dial that this node asked for ended without a link.
    DialFailed {
        /// Whom.
        peer: PeerId,
        /// Whether another try cannot end better.
        permanent: bool,
    },
    /// A member that was dialled says that this node was removed from the room while it had no link.
    KickedOut,
    /// What [`Output::Persist`] said is safe on disk.
    Persisted {
        /// The number of that output; those before it are safe, too.
        number: u64,
    },
    /// The external store answers ([`Output::Engine`]).
    Engine {
        /// The call.
        call: Call,
        /// What it answers.
        answer: Answer,
    },
    /// Since when this host has taken no events; `None` while it has nothing to take.
    HostSilentSince(Option<Time>),
    /// Whether the host's own dials are running.
    HostDialing(bool),
    /// The wall clock was set: it shows this time since 1970 (UTC) now.
    WallClock(Duration),
    /// The host asks for something.
    Command(Command),
}

/// Everything that a node does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send on the control stream of a peer's link.
    Transmit {
        /// The peer.
        to: PeerId,
        /// The message.
        envelope: Envelope,
        /// Whether somebody waits for it: it is no heartbeat whose time has come. Its loss should be noticed at once.
        urgent: bool,
    },
    /// Send as a datagram.
    Datagram {
        /// The peer.
        to: PeerId,
        /// The probe.
        probe: Probe,
    },
    /// Dial a peer; answer with a link or [`Input::DialFailed`].
    Dial(Dial),
    /// Dial those of these addresses that are not linked and are not being dialled, and say whether such dials run
    /// ([`Input::HostDialing`]).
    DialSeeds(Vec<Arc<str>>),
    /// Close a peer's link.
    Close {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LinkEnd,
    },
    /// The room's word on somebody who wants to be linked.
    JoinAnswer {
        /// The question.
        ticket: u64,
        /// The answer; never [`Verdict::NotLeader`].
        verdict: Verdict,
    },
    /// Tell the host.
    Event(Event),
    /// Keep this where it survives the process, and answer with [`Input::Persisted`] when it is safe: what
    /// depends on it is not said before. Only where the quorum is static, or an external store elects.
    Persist {
        /// Counts these outputs.
        number: u64,
        /// What to keep.
        state: Opaque,
    },
    /// Say in the log that the state file was lost, or is an older copy: another voter of the static quorum remembers
    /// more writes. This node neither votes nor leads until it has heard all other voters.
    StaleState {
        /// How many writes the other voter remembers.
        remembered: u64,
        /// How many there were when this incarnation began.
        since: u64,
    },
    /// Say in the log that something that a peer said was dropped, since it told a counter that is larger than the
    /// clock allows: one of both clocks is wrong, or somebody lies. At most once in ten seconds.
    Dropped {
        /// The peer.
        from: PeerId,
        /// The counter.
        value: u64,
        /// What the clock allows now.
        bound: u64,
    },
    /// Ask the external store that elects; answered by [`Input::Engine`].
    Engine {
        /// Counts these outputs, from 1 on.
        call: Call,
        /// What for.
        request: Request,
    },
    /// Everybody answered the farewell, and the election has nothing left to do.
    Departed,
}

/// Why a command was refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The strategy refuses.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// A peer cannot disconnect or kick itself.
    #[error("{0} is this peer itself")]
    Oneself(PeerId),
    /// Nobody of that name is in the room.
    #[error("{0} is not in the room")]
    UnknownPeer(PeerId),
    /// Only the leader may do this.
    #[error("this peer does not lead")]
    NotLeader,
    /// No open question has that number.
    #[error("no join request {0} is open")]
    UnknownRequest(u64),
    /// No peer of that name is banned.
    #[error("{0} is not banned")]
    NotBanned(PeerId),
    /// So many peers are kicked already.
    #[error("{0} peers are kicked already, which is the limit")]
    TooManyKicked(usize),
    /// The fixed host always leads and its guests never do.
    #[error("who may lead is fixed in a room with a fixed host")]
    FixedHost,
}

/// Why a Hello is refused, with the code that the dialler gets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdmissionRefusal {
    /// The dialler has the id of this node or of a linked member with another key.
    #[error("the id {0} is taken in this room; choose another")]
    DuplicatePeerId(PeerId),
    /// The id is that of a voter of the static quorum, whose key is another.
    #[error(
        "{0} is a voter of this room with another key: the one that the roster names, or that the other voters saw first"
    )]
    VoterKey(PeerId),
    /// A linked member has the id with another key. It may be dead without anybody knowing yet.
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
        /// Which rule.
        field: &'static str,
        /// Its value here.
        ours: String,
        /// Its value there.
        theirs: String,
    },
    /// The host disconnected this peer, and neither end connected by hand since; or it broke the protocol lately.
    #[error(
        "the host of the member that answered has disconnected {0}, or {0} broke the protocol lately"
    )]
    Banned(PeerId),
    /// The leader has kicked this peer.
    #[error("the leader has banned {0} from this room")]
    Kicked(PeerId),
    /// The rooms of both have met, and cannot become one under their present leaders.
    #[error(
        "the room of {0} and this one have leaders of one id, or one has banned the other's leader: they stay two rooms"
    )]
    OtherRoom(PeerId),
    /// This node looks for a room, and so does the other end, as far as it shows.
    #[error(
        "this peer is also looking for a room; dial the member that has created it, or a member of its room"
    )]
    Looking,
    /// This node is leaving.
    #[error("the member that answered is leaving the room")]
    Leaving,
    /// This node is out of the room.
    #[error("the room is over for the member that answered")]
    Ended,
}

#[cfg(any(test, feature = "laboratory"))]
impl NodeConfig {
    /// The default timers and limits; the tests change what they are about.
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
        }
    }
}
