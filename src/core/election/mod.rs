//! Election strategies behind one interface.
//!
//! A strategy is told who is linked, what they say and what time it is; it says what to send, and who leads.
//! It has the same shape as the whole core: inputs, outputs, one deadline, nothing else.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use thiserror::Error;

use super::id::{Fingerprint, Incarnation, PeerId};
use super::time::{Duration, Time};
use super::wire::{ElectionMessage, Memory, Pulse, Side};
use bound::WallClock;
use gossip::{Gossip, Windows};
use raft::Raft;
use record::{Record, Saved, Stamp};

pub mod bound;
pub mod gossip;
pub mod guards;
pub mod raft;
pub mod record;
pub mod rules;

/// A linked peer, as elections see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Which life of it is linked.
    pub incarnation: Incarnation,
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
}

impl View {
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
    /// Its end closed the link, as a process does that ends.
    Closed,
    /// Nothing was heard for the heartbeat timeout.
    Silent,
}

/// What a strategy is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionInput {
    /// Time has passed.
    Tick,
    /// A peer is linked; it is in the view already.
    PeerUp {
        /// The peer.
        peer: PeerId,
        /// The key that it showed.
        key: Fingerprint,
        /// What we said of our side in our Hello.
        ours: Side,
        /// What it said of its side.
        theirs: Side,
    },
    /// A peer is gone; it is out of the view already.
    PeerDown {
        /// The peer.
        peer: PeerId,
        /// Which life of it.
        incarnation: Incarnation,
        /// Why.
        why: Gone,
    },
    /// An authenticated peer says something.
    Message {
        /// The peer.
        from: PeerId,
        /// Its epoch and term.
        stamp: Stamp,
        /// What it says.
        message: ElectionMessage,
    },
    /// Where the quorum is static: the write counter that a peer shows with a message, before that message.
    WritesShown {
        /// The peer.
        from: PeerId,
        /// What it shows.
        writes: u64,
    },
    /// Where the quorum is static: what a peer's heartbeat says of state files, after its pulse.
    Memory {
        /// The peer.
        from: PeerId,
        /// What it says.
        memory: Memory,
    },
    /// The strategy's part of a peer's heartbeat.
    Pulse {
        /// The peer.
        from: PeerId,
        /// What it says.
        pulse: Pulse,
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
    /// What [`ElectionOutput::Persist`] said is safe on disk.
    Persisted {
        /// The number of that output; those before it are safe, too.
        number: u64,
    },
    /// The host leaves: no campaign from now on.
    Leave,
    /// This node may or may not lead from now on. One that leads stops at once.
    SetEligible(bool),
    /// This node's priority from now on.
    SetPriority(i32),
    /// Other lengths of the gossip strategy's windows, checked already. Nothing to others.
    SetWindows(Windows),
    /// The wall clock was read again.
    SetClock(WallClock),
    /// A peer may lead again; it is so in the view already.
    PeerEligible {
        /// The peer.
        peer: PeerId,
    },
    /// A peer may lead no longer; it is so in the view already.
    PeerIneligible {
        /// The peer.
        peer: PeerId,
        /// Which life of it.
        incarnation: Incarnation,
        /// Who campaigns at once, if the peer led.
        successor: Option<PeerId>,
    },
}

/// What a strategy wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionOutput {
    /// Send to one connected peer.
    Send {
        /// The peer.
        to: PeerId,
        /// Epoch and term at which it is said.
        stamp: Stamp,
        /// What is said.
        message: ElectionMessage,
    },
    /// Keep this where it survives the process; answered by [`ElectionInput::Persisted`]. Only where the
    /// quorum is static.
    Persist {
        /// Counts these outputs.
        number: u64,
        /// What to keep.
        saved: Saved,
    },
    /// Where the quorum is static: this node's state file was lost, or is an older copy. It neither votes nor leads until
    /// it has heard all other voters.
    StaleState {
        /// The write counter that another voter remembers of an earlier incarnation.
        remembered: u64,
        /// The one with which this incarnation began.
        since: u64,
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
    /// No word from the target in time.
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
    /// Only the leader may do this: hand over, and call `SetLeader` where the room's rules leave that to it.
    #[error("only the leader may do this")]
    NotLeader,
    /// With a static quorum `SetLeader` asks the leader that this node hears, and it hears none.
    #[error(
        "the quorum is static, so that SetLeader asks the leader to hand over, and no leader is heard here"
    )]
    NoLeader,
    /// The leader yields, but nobody else is connected who may lead.
    #[error("nobody else is connected who may lead")]
    NoSuccessor,
    /// The strategy has no such thing.
    #[error("the election strategy {strategy} has no such thing")]
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
        "{value} is above {bound}, the most that the clock allows a term or override number now"
    )]
    TooLarge {
        /// The counter.
        value: u64,
        /// What the clock allows.
        bound: u64,
    },
}

/// One way to agree on a leader.
pub trait Election {
    /// Takes one input.
    ///
    /// # Errors
    /// [`ElectionError`]; nothing has changed then.
    fn handle(&mut self, now: Time, view: &View, input: ElectionInput)
    -> Result<(), ElectionError>;
    /// What to do next; call until `None` after every input.
    fn poll_output(&mut self) -> Option<ElectionOutput>;
    /// When to send the next [`ElectionInput::Tick`].
    fn next_deadline(&self) -> Option<Time>;
    /// Whom the host is shown as leader.
    fn leader(&self) -> Option<&PeerId>;
    /// Why that is another one than before.
    fn leader_reason(&self) -> LeaderReason;
    /// The record that this node goes by: the largest seen, where the strategy orders them. Where it does not, it
    /// names the leader that is shown, and nothing else in it counts.
    fn record(&self) -> &Record;
    /// Epoch and term of what this node says: those of the largest record that a restart of it cannot undo.
    fn stamp(&self) -> &Stamp {
        &self.record().stamp
    }
    /// Where the quorum is static: the write counter that this node shows with everything that it says.
    fn writes(&self) -> u64 {
        0
    }
    /// Where the quorum is static: what a heartbeat to the voter `peer` says of state files.
    fn memory_of(&self, _view: &View, _peer: &PeerId) -> Option<Memory> {
        None
    }
    /// Where the quorum is static: the key of the voter `peer`. Nobody else may use its id.
    fn key_of(&self, _peer: &PeerId) -> Option<Fingerprint> {
        None
    }
    /// The record that stamps what this node sends as leader; `None` unless it leads, and while a restart could
    /// undo that.
    fn leader_stamp(&self) -> Option<&Record>;
    /// A heartbeat went to every peer: repeat with it what is not answered yet.
    fn heartbeat_sent(&mut self) {}
    /// The strategy's part of the next heartbeat.
    fn pulse(&self, now: Time, view: &View) -> Pulse;
    /// What a Hello says about leadership.
    fn side(&self, now: Time, view: &View) -> Side;
    /// The same in the answer to a Hello that arrived at `asked`: that Hello counts the time led until then, and so
    /// does this one, however long the room thought about it.
    fn side_in_answer(&self, now: Time, view: &View, _asked: Time) -> Side {
        self.side(now, view)
    }
    /// Who should follow this node if it led and left now, where the strategy lets a leader say so.
    fn successor(&self, _view: &View) -> Option<PeerId> {
        None
    }
    /// A peer goes by `record` and takes this node for the leader: an assignment may come here on another way than
    /// from its assigner.
    ///
    /// # Errors
    /// [`ElectionError::TooLarge`] when the record's counters are that: it changes nothing.
    fn hear_assignment(
        &mut self,
        _now: Time,
        _view: &View,
        _record: &Record,
    ) -> Result<(), ElectionError> {
        Ok(())
    }
    /// Whether `record` may tell more of who leads than this node knows, so that
    /// [`accept_leader_message`](Self::accept_leader_message) is to be asked.
    fn may_supersede(&self, record: &Record) -> bool;
    /// Whether a message that `from` sent as leader under `record` may be delivered; a newer record is taken
    /// over first.
    ///
    /// # Errors
    /// [`ElectionError::Violation`] when `record` does not name `from`, and [`ElectionError::TooLarge`].
    fn accept_leader_message(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
    ) -> Result<bool, ElectionError>;
}

/// One of the strategies, as a node runs it.
#[derive(Debug)]
pub enum AnyElection {
    /// Votes of the connected peers.
    Raft(Box<Raft>),
    /// The lowest id that finds no leader.
    Gossip(Box<Gossip>),
}

impl AnyElection {
    /// The votes, where they elect.
    pub fn raft(&self) -> Option<&Raft> {
        match self {
            Self::Raft(raft) => Some(raft),
            Self::Gossip(_) => None,
        }
    }

    /// The gossip, where it elects.
    pub fn gossip(&self) -> Option<&Gossip> {
        match self {
            Self::Raft(_) => None,
            Self::Gossip(gossip) => Some(gossip),
        }
    }
}

impl Deref for AnyElection {
    type Target = dyn Election;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Raft(raft) => raft.as_ref(),
            Self::Gossip(gossip) => gossip.as_ref(),
        }
    }
}

impl DerefMut for AnyElection {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Raft(raft) => raft.as_mut(),
            Self::Gossip(gossip) => gossip.as_mut(),
        }
    }
}
