//! Election strategies behind one interface.
//!
//! A strategy receives the linked peers, their messages and the time. It returns messages to send and the current
//! leader. It has the shape of the whole core: inputs, outputs, one deadline, nothing else.
//!
//! A strategy implements [`Election`] with message types of its own. A node runs one of the closed set [`AnyElection`],
//! which encodes and decodes them: only the strategy reads its parts of messages. [`extra`] has the features that only
//! some strategies have.

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
    /// The incarnation that is linked.
    pub incarnation: Incarnation,
    /// The key that its link showed.
    pub key: Fingerprint,
    /// Whether it may vote and lead. An ineligible peer counts nowhere.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// Smoothed round-trip time, once measured.
    pub rtt: Option<Duration>,
}

/// The membership as it stands when a strategy is called.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Every connected peer that takes part in elections, self excluded.
    pub voters: BTreeMap<PeerId, Voter>,
    /// Connected peers without a part in elections, and their keys: a member carries their links.
    pub carried: BTreeMap<PeerId, Fingerprint>,
    /// Whether a link that may bring a peer is being dialled.
    pub dialing: bool,
    /// The ids and the keys that the room has banned.
    pub banned: Banned,
    /// Connected peers that cannot give signs of life at present, and until when: the relay that carried their links has
    /// fallen. Their silence is no reason to campaign or to resign.
    pub held: BTreeMap<PeerId, Time>,
    /// The leader that this node follows, if it has been silent for the heartbeat timeout. It no longer votes, and its link
    /// is kept while the voters are asked: a heartbeat of it ends the doubt.
    pub doubted: Option<PeerId>,
    /// Number of members that this node reaches over a relay alone.
    pub relayed: u32,
    /// Number of members that each peer reaches so, if any, as far as known here.
    pub relayed_of: BTreeMap<PeerId, u32>,
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
    /// Whether the room bans that id or that key.
    pub fn keeps_out(&self, id: &PeerId, key: Fingerprint) -> bool {
        self.ids.contains(id) || self.keys.contains(&key)
    }
}

impl View {
    /// The key to which that id is bound: this node's own key for `me`, else the linked peer's.
    pub fn bound_key(&self, me: (&PeerId, Fingerprint), id: &PeerId) -> Option<Fingerprint> {
        match id == me.0 {
            true => Some(me.1),
            false => self.voters.get(id).map(|voter| voter.key),
        }
    }

    /// Handles the end of a peer's link.
    pub fn remove(&mut self, peer: &PeerId) {
        self.voters.remove(peer);
        self.carried.remove(peer);
        self.held.remove(peer);
        self.doubted.take_if(|doubted| doubted == peer);
    }

    /// The key of a connected peer.
    pub fn linked_key(&self, peer: &PeerId) -> Option<Fingerprint> {
        let voter = self.voters.get(peer).map(|voter| voter.key);
        voter.or_else(|| self.carried.get(peer).copied())
    }

    /// The connected peers that may vote, self excluded.
    pub fn eligible(&self) -> impl Iterator<Item = (&PeerId, &Voter)> {
        let doubted = self.doubted.as_ref();
        let voters = self.voters.iter();
        voters.filter(move |(id, voter)| voter.eligible && Some(*id) != doubted)
    }

    /// The time until which the silence of a peer is no reason to act, if it is after `now`.
    pub fn held_until(&self, now: Time, peer: &PeerId) -> Option<Time> {
        self.held.get(peer).copied().filter(|until| now < *until)
    }

    /// Whether no other eligible peer is connected.
    pub fn is_alone(&self) -> bool {
        self.eligible().next().is_none()
    }

    /// Whether `peer` is connected and may vote.
    pub fn is_eligible(&self, peer: &PeerId) -> bool {
        self.doubted.as_ref() != Some(peer)
            && self.voters.get(peer).is_some_and(|voter| voter.eligible)
    }
}

/// The reason why a peer is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// It sent a leave notice. A leader names its successor in it.
    Left {
        /// The peer that campaigns at once, if the peer led.
        successor: Option<PeerId>,
    },
    /// The room removed it, and it may not know that yet.
    Removed,
    /// It closed the link, as a process does that ends.
    Closed,
    /// It sent nothing for the heartbeat timeout.
    Silent,
    /// Its port is closed, as far as this node knows. Others may still hear it.
    Refused,
}

impl DownReason {
    /// The successor that a leaving leader named.
    pub(super) fn successor(&self) -> Option<&PeerId> {
        match self {
            Self::Left { successor } => successor.as_ref(),
            Self::Removed | Self::Closed | Self::Silent | Self::Refused => None,
        }
    }
}

/// Input of a strategy. `M`, `P` and `S` are its parts of messages, of heartbeats and of Hellos.
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
    /// A message from an authenticated peer.
    Message {
        /// The peer.
        from: PeerId,
        /// Its content.
        message: M,
    },
    /// The strategy's part of a peer's heartbeat.
    Pulse {
        /// The peer.
        from: PeerId,
        /// Its content.
        pulse: P,
    },
    /// Any input that carries no message from another member.
    Local(Local),
}

impl<M, P, S> From<Local> for ElectionInput<M, P, S> {
    fn from(input: Local) -> Self {
        Self::Local(input)
    }
}

/// An input that carries no message from another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    /// Time has passed.
    Tick,
    /// A peer is gone; it is out of the view already. It may not have been in it: a member without a part in elections
    /// has left, or its process has ended.
    PeerDown {
        /// The peer.
        peer: PeerId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// The reason.
        why: DownReason,
    },
    /// The host calls `SetLeader`.
    SetLeader {
        /// The new leader.
        target: PeerId,
    },
    /// The host calls `EnableAutoLeaderElection`.
    EnableAuto(
        /// Whether this node may campaign by itself.
        bool,
    ),
    /// The host calls `mmn_transfer_leadership`, or `mmn_yield_leadership` if `target` is `None`. Only the leader may.
    ///
    /// The leader goes on leading until the target is elected. If the target dies, leaves or is not elected within the
    /// longest election timeout, nothing changes. A second call with another target replaces the first; one with the
    /// same target changes nothing. This node itself as target cancels a pending transfer, though a target that was
    /// already asked may still win. The host asks for the transfer, so the target campaigns even where it may not
    /// campaign by itself ([`EnableAuto`](Self::EnableAuto)) or where the place is held for an assigned leader; its
    /// election ends that assignment.
    Transfer {
        /// The new leader; `None` for the voter that would be next.
        target: Option<PeerId>,
    },
    /// The host leaves: this node no longer campaigns.
    Leave,
    /// Whether this node may lead from now on. A leader that may not stops at once.
    SetEligible(bool),
    /// This node's priority from now on.
    SetPriority(i32),
    /// The wall clock was read again.
    SetClock(WallClock),
    /// A heartbeat went to every peer. The strategy repeats its unanswered messages with it.
    HeartbeatSent,
    /// A better link with a peer has taken the place of another: messages that were on their way may be lost.
    Relinked {
        /// The peer.
        peer: PeerId,
    },
    /// A peer is linked over a path that has no part in elections. Its former processes have ended.
    PeerReached {
        /// The peer.
        peer: PeerId,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// A peer may lead again; it is so in the view already.
    PeerEligible {
        /// The peer.
        peer: PeerId,
    },
    /// A peer may lead no longer; it is so in the view already.
    PeerIneligible {
        /// The peer.
        peer: PeerId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// The peer that campaigns at once, if the peer led.
        successor: Option<PeerId>,
    },
}

/// Output of a strategy. `M` is its part of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionOutput<M> {
    /// Send to one connected peer.
    Send {
        /// The peer.
        to: PeerId,
        /// The content.
        message: M,
    },
    /// Send a heartbeat to every peer at once.
    HeartbeatNow,
    /// Ask the leader for a sign of life: another member seems to have lost it.
    Question(PeerId),
    /// Outcome of a `SetLeader` of this host.
    SetLeaderResult {
        /// The leader that the host named.
        target: PeerId,
        /// The outcome.
        outcome: AssignOutcome,
    },
    /// An output that only some strategies have.
    Extra(Extra),
}

/// The reason for the last change of the shown leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaderReason {
    /// No change yet.
    #[default]
    None,
    /// It was elected.
    Elected,
    /// `SetLeader` named the leader.
    Assigned,
    /// The previous leader transferred its leadership: it left, or `mmn_transfer_leadership` or `mmn_yield_leadership` was
    /// called.
    Transferred,
    /// The leader led before this node learned of it: this node joined, or two sides of a room merged.
    Found,
    /// The previous leader fell silent, or its link was lost.
    Lost,
    /// The previous leader left, was removed, or may no longer lead.
    Left,
    /// The previous leader resigned: too few voters answered it, or a higher claim ended its own.
    Resigned,
}

/// Outcome of a `SetLeader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOutcome {
    /// The target leads.
    Done,
    /// The target did not answer in time.
    Timeout,
    /// Another `SetLeader` won.
    Superseded,
    /// The leader that was asked refuses to transfer its leadership to the target.
    Rejected,
}

/// The reason why a strategy refuses an input. The refusal changes no state, except as
/// [`TooLarge`](Self::TooLarge) describes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ElectionError {
    /// `SetLeader` or `mmn_transfer_leadership` names a peer that is not connected.
    #[error("{0} is neither this peer nor connected")]
    UnknownTarget(PeerId),
    /// `SetLeader` or `mmn_transfer_leadership` names a peer that may not lead.
    #[error("{0} may not lead")]
    IneligibleTarget(PeerId),
    /// `SetLeader` or `mmn_transfer_leadership` names a voter of a static quorum that may have forgotten votes (C2).
    #[error(
        "{0} may have forgotten votes, and does not lead until it has received from all other voters"
    )]
    StaleTarget(PeerId),
    /// Only the leader may transfer leadership, or call `SetLeader` where the room's rules restrict it to the leader.
    #[error("only the leader may do this")]
    NotLeader,
    /// With a static quorum `SetLeader` asks the leader whose heartbeats arrive here, and there is none.
    #[error(
        "with a static quorum naming a leader asks the present one for a transfer, and this node receives no heartbeats of a leader"
    )]
    NoLeader,
    /// The leader yields, but no other connected peer may lead.
    #[error("no other connected member may lead")]
    NoSuccessor,
    /// The strategy does not have this feature.
    #[error("the election strategy {strategy} does not support this")]
    NotSupported {
        /// Its name.
        strategy: &'static str,
    },
    /// A peer broke the protocol.
    #[error("{0}")]
    Violation(&'static str),
    /// A peer sent a counter that is larger than time allows. It may have the counter from another member, so this is
    /// no violation. The message is dropped; of a new link only the leadership part of its Hello.
    #[error(
        "{value} is above {bound}, the largest term or override number that the clock allows now"
    )]
    TooLarge {
        /// The counter.
        value: u64,
        /// The largest value that the clock allows.
        bound: u64,
    },
}

/// The stored bytes ([`Extra::Persist`]) are no state of the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("what was kept is no state of this election strategy")]
pub struct InvalidSavedState;

/// The leader and its record, as a strategy sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership<'a> {
    /// The leader that the strategy follows. A node shows it where there is a path to it.
    pub leader: Option<&'a PeerId>,
    /// The key of a leader that is not linked, where the strategy knows it.
    pub leader_key: Option<Fingerprint>,
    /// Whether the leader is known without a link to it: a linked member vouches for it (it receives the leader's
    /// heartbeats, or named it last), or the external store that elects does.
    pub is_vouched_for: bool,
    /// The reason for the last change of the leader.
    pub reason: LeaderReason,
    /// The record that this node follows: the largest seen, where the strategy orders records. Where it does not, the
    /// record names the leader that is shown, and nothing else in it counts.
    pub record: &'a Record,
    /// The time until which this node may act as the shown leader, where time alone ends that.
    pub valid_until: Option<Time>,
}

/// A node's role in its election, for traces.
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

/// Content of a message, for traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its kind.
    pub kind: &'static str,
    /// Its term.
    pub term: Option<u64>,
    /// Whether it grants what was asked for, where it is an answer.
    pub granted: Option<bool>,
    /// The peer that it names.
    pub names: Option<PeerId>,
    /// The ballot that it proposes or answers, where the strategy has ballots.
    pub ballot: Option<Ballot>,
}

impl Description {
    /// A description that has only a kind.
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

/// Input of any strategy, as a node gives it.
pub type OpaqueInput = ElectionInput<Opaque, Opaque, Opaque>;

/// Input of the strategy `E`, in its own types.
pub type InputOf<E> =
    ElectionInput<<E as Election>::Message, <E as Election>::Pulse, <E as Election>::Hello>;

/// Output of the strategy `E`, in its own types.
pub type OutputOf<E> = ElectionOutput<<E as Election>::Message>;

/// Output of any strategy, as a node gets it.
pub type OpaqueOutput = ElectionOutput<Opaque>;

/// One way to agree on a leader.
pub trait Election: fmt::Debug {
    /// A message between members.
    type Message: Serialize + DeserializeOwned;
    /// Its part of a heartbeat.
    type Pulse: Serialize + DeserializeOwned;
    /// Its part of a Hello.
    type Hello: Serialize + DeserializeOwned;
    /// A fencing token: it shows under which leadership a message was sent.
    type Token: Serialize + DeserializeOwned;

    /// Takes one input.
    ///
    /// # Errors
    /// [`ElectionError`]; nothing has changed then, except as [`ElectionError::TooLarge`] describes.
    fn handle(&mut self, now: Time, view: &View, input: InputOf<Self>)
    -> Result<(), ElectionError>;
    /// The next output; call until `None` after every input.
    fn poll_output(&mut self) -> Option<OutputOf<Self>>;
    /// The time of the next [`ElectionInput::Tick`].
    fn next_deadline(&self) -> Option<Time>;
    /// The current leader.
    fn leadership(&self) -> Leadership<'_>;
    /// Its current role, for traces.
    fn role(&self) -> Role;
    /// The peer that has its vote in the term of its record, for traces.
    fn voted_for(&self) -> Option<&PeerId> {
        None
    }
    /// Whether a link may bind `peer` to this key.
    fn admits(&self, _peer: &PeerId, _key: Fingerprint) -> bool {
        true
    }
    /// The token of messages that this node sends as leader; `None` unless it leads, and while a restart could undo its
    /// leadership.
    fn leader_token(&self) -> Option<Self::Token>;
    /// The token of this node's broadcasts: the leadership that it follows.
    fn followed_token(&self) -> Self::Token;
    /// The next heartbeat's part.
    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Self::Pulse;
    /// The part of a Hello sent now. An answer to a Hello that arrived at `asked` counts the time led until `asked`, as
    /// that Hello does, however long the room took to decide; else `asked` is `now`.
    fn hello(&self, now: Time, view: &View, asked: Time) -> Self::Hello;
    /// The living leader, as the sender of this Hello knows it; the sender itself, if it leads.
    fn named_in(&self, _hello: &Self::Hello) -> Option<NamedLeader> {
        None
    }
    /// After [`Local::Leave`]: whether nothing is pending that leaving should wait for.
    fn has_left(&self) -> bool {
        true
    }
    /// The living leader that a linked peer named last; the peer itself, if it leads.
    fn names(&self, _peer: &PeerId) -> Option<&NamedLeader> {
        None
    }
    /// The leader of another side of the room to which this node moves although its id is bound to another key here. To
    /// follow it, this node ends the session with its own member of that id.
    fn moves_to(&self, _view: &View) -> Option<(&PeerId, Fingerprint)> {
        None
    }
    /// The successor that this node would name if it led and left now, where the strategy lets a leader name one.
    fn successor(&self, _view: &View) -> Option<PeerId> {
        None
    }
    /// A peer that takes this node for the leader sends the token that it [follows](Self::followed_token): an
    /// assignment may arrive by a path other than the message of its assigner.
    ///
    /// # Errors
    /// [`ElectionError::TooLarge`] for a counter above the bound; the call then changes nothing.
    fn adopt_followed(
        &mut self,
        _now: Time,
        _view: &View,
        _token: Self::Token,
    ) -> Result<(), ElectionError> {
        Ok(())
    }
    /// Whether the token of `from` may show a newer leadership than this node knows, so that the caller must ask
    /// [`judge`](Self::judge).
    fn may_supersede(&self, from: &PeerId, token: &Self::Token) -> bool;
    /// Whether `from` may lead with this token, and only an external store can decide it: the message waits for that.
    fn awaits(&self, _from: &PeerId, _token: &Self::Token) -> bool {
        false
    }
    /// Whether to deliver a message that `from` sent as leader with this token; a newer leadership is adopted first.
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
    /// Describes a message for a trace.
    fn describe(message: &Self::Message) -> Description;
    /// Describes a heartbeat's part for a trace.
    fn describe_pulse(pulse: &Self::Pulse) -> Description;
}
