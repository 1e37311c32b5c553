//! Election strategies behind one interface.
//!
//! A strategy receives who is linked, what they say and what time it is; it says what to send, and who leads.
//! It has the same shape as the whole core: inputs, outputs, one deadline, nothing else.
//!
//! A strategy implements [`Election`] with message types of its own. A node runs one of the closed set [`AnyElection`], which
//! encodes and decodes them: nobody but the strategy knows what its parts of messages say. What only some strategies have is
//! in [`extra`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::id::{Fingerprint, Incarnation, PeerId};
use super::opaque::Opaque;
use super::time::{Duration, Time};
use bound::WallClock;
use record::Record;
use seeded::paxos::Ballot;

mod any;
pub mod bound;
mod config;
pub mod engine;
pub mod etcd;
pub mod extra;
pub mod gossip;
pub mod guards;
mod known;
mod namesakes;
pub mod policy;
pub mod raft;
pub mod record;
pub mod rules;
pub mod seeded;
mod start;

pub use any::AnyElection;
pub use config::{ElectionConfig, Entry, Recovery};
pub use extra::{Extra, LockEvent, LockOutcome, LockRefusal};
pub use namesakes::NamedLeader;
pub use start::Start;

/// A linked peer, as elections see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Which incarnation of it is linked.
    pub incarnation: Incarnation,
    /// The key that its link showed.
    pub key: Fingerprint,
    /// Whether it may vote and lead. Others count nowhere.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// Smoothed round-trip time, once measured.
    pub rtt: Option<Duration>,
}

/// The membership as it stands when a strategy is called.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Every connected peer, self excluded.
    pub voters: BTreeMap<PeerId, Voter>,
    /// Whether a link that may bring a peer is being dialled.
    pub dialing: bool,
    /// The ids and the keys that the room has banned.
    pub banned: Banned,
}

/// Ids and keys that a room has banned: each alone keeps a peer out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Banned {
    /// The ids.
    pub ids: BTreeSet<PeerId>,
    /// The keys.
    pub keys: BTreeSet<Fingerprint>,
}

impl Banned {
    /// Whether a peer of that id or that key is kept out.
    pub fn keeps_out(&self, id: &PeerId, key: Fingerprint) -> bool {
        self.ids.contains(id) || self.keys.contains(&key)
    }
}

impl View {
    /// The key to which that id is bound: the key of this node, `me`, or that of the linked peer.
    pub fn bound_key(&self, me: (&PeerId, Fingerprint), id: &PeerId) -> Option<Fingerprint> {
        match id == me.0 {
            true => Some(me.1),
            false => self.voters.get(id).map(|voter| voter.key),
        }
    }

    /// The connected peers that may vote, self excluded.
    pub fn eligible(&self) -> impl Iterator<Item = (&PeerId, &Voter)> {
        self.voters.iter().filter(|(_, voter)| voter.eligible)
    }

    /// Whether nobody else is connected who may vote.
    pub fn is_alone(&self) -> bool {
        self.eligible().next().is_none()
    }

    /// Whether `peer` is connected and may vote.
    pub fn is_eligible(&self, peer: &PeerId) -> bool {
        self.voters.get(peer).is_some_and(|voter| voter.eligible)
    }
}

/// Why a peer is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// It said that it leaves. A leader names who should follow it.
    Left {
        /// Who campaigns at once, if the peer led.
        successor: Option<PeerId>,
    },
    /// It was removed from the room, and may not know that yet.
    Removed,
    /// Its end closed the link, as a process does that ends.
    Closed,
    /// Nothing was heard for the heartbeat timeout.
    Silent,
}

impl Gone {
    /// Who was named to follow a leader that left.
    pub(super) fn successor(&self) -> Option<&PeerId> {
        match self {
            Self::Left { successor } => successor.as_ref(),
            Self::Removed | Self::Closed | Self::Silent => None,
        }
    }
}

/// What a strategy receives. `M`, `P` and `S` are its parts of messages, of heartbeats and of Hellos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionInput<M, P, S> {
    /// A peer is linked; it is in the view already.
    PeerUp {
        /// The peer.
        peer: PeerId,
        /// The key that it showed.
        key: Fingerprint,
        /// This node's part of its Hello.
        ours: S,
        /// The peer's.
        theirs: S,
    },
    /// An authenticated peer says something.
    Message {
        /// The peer.
        from: PeerId,
        /// What it says.
        message: M,
    },
    /// The strategy's part of a peer's heartbeat.
    Pulse {
        /// The peer.
        from: PeerId,
        /// What it says.
        pulse: P,
    },
    /// Anything in which no other member says anything to the strategy.
    Local(Local),
}

impl<M, P, S> From<Local> for ElectionInput<M, P, S> {
    fn from(input: Local) -> Self {
        Self::Local(input)
    }
}

/// An input in which no other member says anything to the strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    /// Time has passed.
    Tick,
    /// A peer is gone; it is out of the view already.
    PeerDown {
        /// The peer.
        peer: PeerId,
        /// Which incarnation of it.
        incarnation: Incarnation,
        /// Why.
        why: Gone,
    },
    /// The host calls `SetLeader`.
    SetLeader {
        /// Who shall lead.
        target: PeerId,
    },
    /// The host calls `EnableAutoLeaderElection`.
    EnableAuto(
        /// Whether this node may campaign by itself.
        bool,
    ),
    /// The host calls `TransferLeadership`, or `YieldLeadership` when it names nobody. Only the leader may.
    ///
    /// It goes on leading until the target is elected: a target that dies, leaves or is not elected within the
    /// longest election timeout leaves everything as it was. A second call with another target replaces the first;
    /// the same target again changes nothing. This node itself as target cancels what is pending, though a target that was
    /// asked already may still win. Since the host asks for it, the target
    /// campaigns even where campaigns of its own are forbidden to it ([`EnableAuto`](Self::EnableAuto)) or the place
    /// is held for an assigned leader; its election ends that assignment.
    Transfer {
        /// Who shall lead; `None` is whoever would be next.
        target: Option<PeerId>,
    },
    /// The host leaves: no campaign from now on.
    Leave,
    /// This node may or may not lead from now on. One that leads stops at once.
    SetEligible(bool),
    /// This node's priority from now on.
    SetPriority(i32),
    /// The wall clock was read again.
    SetClock(WallClock),
    /// A heartbeat went to every peer: what is not answered yet is repeated with it.
    HeartbeatSent,
    /// A peer may lead again; it is so in the view already.
    PeerEligible {
        /// The peer.
        peer: PeerId,
    },
    /// A peer may lead no longer; it is so in the view already.
    PeerIneligible {
        /// The peer.
        peer: PeerId,
        /// Which incarnation of it.
        incarnation: Incarnation,
        /// Who campaigns at once, if the peer led.
        successor: Option<PeerId>,
    },
}

/// What a strategy wants done. `M` is its part of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionOutput<M> {
    /// Send to one connected peer.
    Send {
        /// The peer.
        to: PeerId,
        /// What to say.
        message: M,
    },
    /// Send a heartbeat to every peer at once.
    HeartbeatNow,
    /// How a `SetLeader` of this host ended.
    SetLeaderResult {
        /// Who should have led.
        target: PeerId,
        /// How it ended.
        outcome: AssignOutcome,
    },
    /// What only some strategies want done.
    Extra(Extra),
}

/// Why the leader that is shown is another one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaderReason {
    /// Nothing has changed yet.
    #[default]
    None,
    /// It was elected.
    Elected,
    /// `SetLeader` named it.
    Assigned,
    /// The leader before handed over to it: it left, transferred its leadership or yielded.
    Transferred,
    /// It led already when this node learned of it: by joining, or where two sides of a room met.
    Found,
    /// The leader fell silent, or its link was lost.
    Lost,
    /// The leader said farewell, was removed, or may lead no longer.
    Left,
    /// The leader resigned: too few voters answered it, or a higher claim ended its own.
    Resigned,
}

/// How a `SetLeader` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOutcome {
    /// The target leads.
    Done,
    /// The target did not answer in time.
    Timeout,
    /// Another `SetLeader` won.
    Superseded,
    /// The leader that was asked does not hand over to the target.
    Rejected,
}

/// Why a strategy refuses an input. Its state is unchanged, but for what is said with
/// [`TooLarge`](Self::TooLarge).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElectionError {
    /// `SetLeader` or `TransferLeadership` names somebody who is not connected.
    #[error("{0} is neither this peer nor connected")]
    UnknownTarget(PeerId),
    /// `SetLeader` or `TransferLeadership` names somebody who may not lead.
    #[error("{0} may not lead")]
    IneligibleTarget(PeerId),
    /// `SetLeader` or `TransferLeadership` names a voter of a static quorum that may have forgotten votes (C2).
    #[error("{0} may have forgotten votes, and does not lead until it has heard all other voters")]
    StaleTarget(PeerId),
    /// Only the leader may do this: hand over, and call `SetLeader` where the room's rules leave that to it.
    #[error("only the leader may do this")]
    NotLeader,
    /// With a static quorum `SetLeader` asks the leader that this node hears, and it hears none.
    #[error(
        "with a static quorum SetLeader asks the leader to hand over, and this node hears no leader"
    )]
    NoLeader,
    /// The leader yields, but nobody else is connected who may lead.
    #[error("nobody else is connected who may lead")]
    NoSuccessor,
    /// The strategy has no such thing.
    #[error("the election strategy {strategy} does not support this")]
    NotSupported {
        /// Its name.
        strategy: &'static str,
    },
    /// A peer broke the protocol.
    #[error("{0}")]
    Violation(&'static str),
    /// A peer told a counter that is larger than time allows. It may have it from somebody else, so that this is no
    /// violation: what it said was dropped, of a new link only what its Hello said about leadership.
    #[error(
        "{value} is above {bound}, the largest term or override number that the clock allows now"
    )]
    TooLarge {
        /// The counter.
        value: u64,
        /// What the clock allows.
        bound: u64,
    },
}

/// Bytes that were kept ([`Extra::Persist`]) are no state of the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("what was kept is no state of this election strategy")]
pub struct NotItsState;

/// Who leads, as a strategy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership<'a> {
    /// The leader that the strategy goes by. A node shows it where there is a path to it.
    pub leader: Option<&'a PeerId>,
    /// The key of a leader that is not linked, where the strategy knows it.
    pub leader_key: Option<Fingerprint>,
    /// Whether the leader is known without a link to it: a linked member vouches for it (it hears the leader, or named it
    /// last), or the external store that elects does.
    pub is_vouched_for: bool,
    /// Why that is another one than before.
    pub reason: LeaderReason,
    /// The record that this node follows: the largest seen, where the strategy orders them. Where it does not, it
    /// names the leader that is shown, and nothing else in it counts.
    pub record: &'a Record,
    /// Until when this node may act as the leader that it is shown as, where that ends by time alone.
    pub valid_until: Option<Time>,
}

/// What a node is in its election, for traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It leads.
    Leader,
    /// It has asked for votes, or has proposed itself.
    Candidate,
    /// It asks whether it would get votes.
    PreCandidate,
    /// None of these.
    Follower,
}

/// What a message says, for traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What it is called.
    pub kind: &'static str,
    /// The term that it is about.
    pub term: Option<u64>,
    /// Whether it grants what was asked for, where it is an answer.
    pub granted: Option<bool>,
    /// Whom it names.
    pub names: Option<PeerId>,
    /// The ballot that it proposes or answers, where the strategy has ballots.
    pub ballot: Option<Ballot>,
}

impl Description {
    /// Of a message that says nothing but its kind.
    pub fn plain(kind: &'static str) -> Self {
        Self {
            kind,
            term: None,
            granted: None,
            names: None,
            ballot: None,
        }
    }
}

/// What a node tells any strategy.
pub type OpaqueInput = ElectionInput<Opaque, Opaque, Opaque>;

/// What a strategy takes, with its own types.
pub type InputOf<E> =
    ElectionInput<<E as Election>::Message, <E as Election>::Pulse, <E as Election>::Hello>;

/// What a strategy does, with its own types.
pub type OutputOf<E> = ElectionOutput<<E as Election>::Message>;

/// What any strategy tells a node.
pub type OpaqueOutput = ElectionOutput<Opaque>;

/// One way to agree on a leader.
pub trait Election: fmt::Debug {
    /// What members say to each other.
    type Message: Serialize + DeserializeOwned;
    /// Its part of a heartbeat.
    type Pulse: Serialize + DeserializeOwned;
    /// Its part of a Hello.
    type Hello: Serialize + DeserializeOwned;
    /// What shows under which leadership a message is sent: a fencing token.
    type Token: Serialize + DeserializeOwned;

    /// Takes one input.
    ///
    /// # Errors
    /// [`ElectionError`]; nothing has changed then, but for what [`ElectionError::TooLarge`] says.
    fn handle(&mut self, now: Time, view: &View, input: InputOf<Self>)
    -> Result<(), ElectionError>;
    /// What to do next; call until `None` after every input.
    fn poll_output(&mut self) -> Option<OutputOf<Self>>;
    /// When to send the next [`ElectionInput::Tick`].
    fn next_deadline(&self) -> Option<Time>;
    /// Who leads.
    fn leadership(&self) -> Leadership<'_>;
    /// What it is now, for traces.
    fn role(&self) -> Role;
    /// Who has its vote in the term of its record, for traces.
    fn voted_for(&self) -> Option<&PeerId> {
        None
    }
    /// Whether `peer` may be linked under this key.
    fn admits(&self, _peer: &PeerId, _key: Fingerprint) -> bool {
        true
    }
    /// What this node's messages carry that it sends as leader; `None` unless it leads, and while a restart could undo that.
    fn leader_token(&self) -> Option<Self::Token>;
    /// What this node's broadcasts carry to the leader that it follows.
    fn followed_token(&self) -> Self::Token;
    /// The next heartbeat's part.
    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Self::Pulse;
    /// The part of a Hello of this moment. In answer to a Hello that arrived at `asked` (else that is `now`): that one counts
    /// the time led until then, and so does this one, however long the room thought about it.
    fn hello(&self, now: Time, view: &View, asked: Time) -> Self::Hello;
    /// The leader that lives, as the sender of this Hello knows it; the sender itself, if it leads.
    fn named_in(&self, _hello: &Self::Hello) -> Option<NamedLeader> {
        None
    }
    /// After [`Local::Leave`]: whether nothing is under way that leaving should wait for.
    fn has_left(&self) -> bool {
        true
    }
    /// The leader that a linked peer named last as one that lives; itself, if it leads.
    fn names(&self, _peer: &PeerId) -> Option<&NamedLeader> {
        None
    }
    /// The leader of another side of the room to which this node moves, although its id is bound to another key here: to
    /// follow it, this node ends the session with its own member of that id.
    fn moves_to(&self, _view: &View) -> Option<(&PeerId, Fingerprint)> {
        None
    }
    /// Who should follow this node if it led and left now, where the strategy lets a leader say so.
    fn successor(&self, _view: &View) -> Option<PeerId> {
        None
    }
    /// A peer sends what it [follows](Self::followed_token) and takes this node for the leader: an assignment may come here
    /// on another way than from its assigner.
    ///
    /// # Errors
    /// [`ElectionError::TooLarge`] when a counter in it is that: it changes nothing.
    fn hear_followed(
        &mut self,
        _now: Time,
        _view: &View,
        _token: Self::Token,
    ) -> Result<(), ElectionError> {
        Ok(())
    }
    /// Whether the token of `from` may say more of who leads than this node knows, so that [`judge`](Self::judge) is to
    /// be asked.
    fn may_supersede(&self, from: &PeerId, token: &Self::Token) -> bool;
    /// Whether `from` may lead with this token, and only an external store can tell: what carries it waits for that.
    fn awaits(&self, _from: &PeerId, _token: &Self::Token) -> bool {
        false
    }
    /// Whether a message that `from` sent as leader with this token may be delivered; a newer leadership is adopted first.
    ///
    /// # Errors
    /// [`ElectionError::Violation`] when the token does not name `from`, and [`ElectionError::TooLarge`].
    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        token: &Self::Token,
    ) -> Result<bool, ElectionError>;
    /// A message in the words of a trace.
    fn describe(message: &Self::Message) -> Description;
    /// A heartbeat's part in the words of a trace.
    fn describe_pulse(pulse: &Self::Pulse) -> Description;
}
