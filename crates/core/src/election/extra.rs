//! What some strategies have and the others never see: outputs, queries and ports of their own.
//!
//! A strategy that needs one of these puts an [`Extra`] out, or implements a port and adds itself to the function of
//! [`AnyElection`](super::AnyElection) that offers it. A strategy that needs none has nothing to do with this file.

use std::sync::Arc;

use thiserror::Error;

use super::engine::{Answer, Call, Request};
use super::seeded::MemberState;
use super::{ElectionOutput, View};
use crate::id::PeerId;
use crate::opaque::Opaque;
use crate::time::{Duration, Time};

/// What only some strategies want done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extra {
    /// Keep this where it survives the process; [`Durable::persisted`] answers. Only where the quorum is static, or an
    /// external store elects.
    Persist {
        /// Counts these outputs.
        number: u64,
        /// What to keep.
        state: Opaque,
    },
    /// Where the quorum is static: this node's state file was lost, or is an older copy. It neither votes nor leads until
    /// it has heard all other voters.
    StaleState {
        /// The write counter that another voter remembers of an earlier incarnation.
        remembered: u64,
        /// The one with which this incarnation began.
        since: u64,
    },
    /// Dial those of these addresses that are not linked and are not being dialled.
    DialSeeds(
        /// As the host gave them.
        Vec<Arc<str>>,
    ),
    /// The state of a member has changed, where the strategy has such states.
    MemberState {
        /// Whose.
        peer: PeerId,
        /// Its state now.
        state: MemberState,
        /// Under which version of the cluster.
        version: u64,
    },
    /// Ask the external store; [`StoreClient::answered`] answers.
    Engine {
        /// Counts these outputs, from 1 on.
        call: Call,
        /// What for.
        request: Request,
    },
    /// A lock of this node.
    Lock(LockEvent),
}

impl<M> From<Extra> for ElectionOutput<M> {
    fn from(extra: Extra) -> Self {
        Self::Extra(extra)
    }
}

/// What becomes of a lock, or of a call for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockEvent {
    /// How a call of `AcquireLock` or `TryLock` ended.
    Result {
        /// Which call.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// How it ended.
        outcome: LockOutcome,
    },
    /// A lock that this node held is lost: its lease has ended, or may have.
    Lost {
        /// The lock.
        name: Arc<str>,
        /// Its fencing token.
        token: u64,
    },
}

/// Why a call for a lock is refused; nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockRefusal {
    /// `ReleaseLock` names a lock that this node neither holds nor waits for.
    #[error("this member neither holds nor waits for the lock {0:?}")]
    NotHeld(Arc<str>),
    /// This node holds or waits for as many locks as it may.
    #[error("this member holds or waits for {0} locks already, which is the limit")]
    TooMany(usize),
}

/// How a call of `AcquireLock` or `TryLock` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// This node holds the lock.
    Held {
        /// The fencing token: larger than that of every earlier holder.
        token: u64,
    },
    /// Another member holds it, and the call does not wait.
    Taken,
    /// The time is up.
    TimedOut,
    /// The call was withdrawn: `ReleaseLock` came before the lock did, or the host leaves.
    Cancelled,
}

/// The members of a cluster that has states for them, as one of them knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The version of the cluster.
    pub version: u64,
    /// Its members, sorted by id.
    pub members: Vec<(PeerId, MemberState)>,
}

impl Cluster {
    /// The state of a member; [`MemberState::Init`] for everybody else.
    pub fn state_of(&self, id: &str) -> MemberState {
        let members = &self.members;
        members
            .binary_search_by(|(member, _)| member.as_str().cmp(id))
            .map_or(MemberState::Init, |index| members[index].1)
    }
}

/// The port of a strategy that keeps a state where it survives the process.
pub trait Durable {
    /// What must survive the process before anybody hears of this incarnation; `None` if this room needs nothing.
    fn first_state(&self) -> Option<Opaque>;
    /// What [`Extra::Persist`] said is safe on disk, up to this number.
    fn persisted(&mut self, now: Time, view: &View, number: u64);
}

/// The port of a strategy that has locks.
pub trait Locks {
    /// The host calls `AcquireLock` or `TryLock`; [`LockEvent::Result`] answers. `wait` is how long to wait at most: zero is
    /// `TryLock`, `None` is no limit.
    ///
    /// # Errors
    /// [`LockRefusal::TooMany`]; no answer follows then.
    fn acquire(
        &mut self,
        now: Time,
        request: u64,
        name: &Arc<str>,
        wait: Option<Duration>,
    ) -> Result<(), LockRefusal>;
    /// The host calls `ReleaseLock`.
    ///
    /// # Errors
    /// [`LockRefusal::NotHeld`].
    fn release(&mut self, now: Time, name: &Arc<str>) -> Result<(), LockRefusal>;
}

/// The port of a strategy that asks an external store.
pub trait StoreClient {
    /// The store answers the call of an [`Extra::Engine`].
    fn answered(&mut self, now: Time, call: Call, answer: Answer);
    /// The host calls `Proclaim`: what others read of this node while it leads.
    fn proclaim(&mut self, now: Time, value: Arc<str>);
}
