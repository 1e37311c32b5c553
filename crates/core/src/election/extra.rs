//! Outputs, queries and ports that only some strategies have.
//!
//! A strategy that needs one of these returns an [`Extra`], or implements a port and adds itself to the function of
//! [`AnyElection`](super::AnyElection) that offers it. A strategy that needs none does not touch this file.

use std::sync::Arc;

use thiserror::Error;

use super::engine::{Answer, Call, Request};
use super::seeded::MemberState;
use super::{ElectionOutput, View};
use crate::id::PeerId;
use crate::opaque::Opaque;
use crate::time::{Duration, Time};

/// An output that only some strategies have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extra {
    /// Store this state where it survives the process; [`Durable::persisted`] answers. Only where the quorum is static,
    /// or an external store elects.
    Persist {
        /// Counts these outputs.
        number: u64,
        /// The state.
        state: Opaque,
    },
    /// Static quorum only: this node's state file was lost, or is an older copy. The node neither votes nor leads until
    /// it has a record from every other voter.
    StaleState {
        /// The write counter that another voter remembers of an earlier incarnation.
        remembered: u64,
        /// The write counter with which this incarnation began.
        since: u64,
    },
    /// Dial each of these addresses unless it is linked or being dialled.
    DialSeeds(
        /// As the host gave them.
        Vec<Arc<str>>,
    ),
    /// A member's state has changed, where the strategy has such states.
    MemberState {
        /// The member.
        peer: PeerId,
        /// Its new state.
        state: MemberState,
        /// The version of the cluster.
        version: u64,
    },
    /// Ask the external store; [`StoreClient::answered`] answers.
    Engine {
        /// Counts these outputs, from 1 on.
        call: Call,
        /// The request.
        request: Request,
    },
    /// An event of a lock of this node.
    Lock(LockEvent),
}

impl<M> From<Extra> for ElectionOutput<M> {
    fn from(extra: Extra) -> Self {
        Self::Extra(extra)
    }
}

/// Event of a lock, or outcome of a call for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockEvent {
    /// Outcome of an `mmn_acquire_lock` or `mmn_try_lock`.
    Result {
        /// The number of the call.
        request: u64,
        /// The lock.
        name: Arc<str>,
        /// The outcome.
        outcome: LockOutcome,
    },
    /// This node lost a lock: its lease has ended, or may have.
    Lost {
        /// The lock.
        name: Arc<str>,
        /// Its fencing token.
        token: u64,
    },
}

/// The reason why a call for a lock is refused; nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockRefusal {
    /// `mmn_release_lock` names a lock that this node neither holds nor waits for.
    #[error("this member neither holds nor waits for the lock {0:?}")]
    NotHeld(Arc<str>),
    /// This node holds or waits for the maximum number of locks.
    #[error("this member holds or waits for {0} locks already, which is the limit")]
    TooMany(usize),
}

/// Outcome of an `mmn_acquire_lock` or `mmn_try_lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// This node holds the lock.
    Held {
        /// The fencing token: larger than that of every earlier holder.
        token: u64,
    },
    /// Another member holds it, and the call does not wait.
    Taken,
    /// The wait timed out.
    TimedOut,
    /// The call was withdrawn: `mmn_release_lock` came before the lock was held, or the host leaves.
    Cancelled,
}

/// The members of a cluster with their states, as one member knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The version of the cluster.
    pub version: u64,
    /// Its members, sorted by id.
    pub members: Vec<(PeerId, MemberState)>,
}

impl Cluster {
    /// The state of a member; [`MemberState::Init`] for any other id.
    pub fn state_of(&self, id: &str) -> MemberState {
        let members = &self.members;
        members
            .binary_search_by(|(member, _)| member.as_str().cmp(id))
            .map_or(MemberState::Init, |index| members[index].1)
    }
}

/// The port of a strategy with a state that survives the process.
pub trait Durable {
    /// The state to store before this incarnation sends anything; `None` if this room needs none.
    fn first_state(&self) -> Option<Opaque>;
    /// The states of [`Extra::Persist`] up to this number are safe on disk.
    fn persisted(&mut self, now: Time, view: &View, number: u64);
}

/// The port of a strategy that has locks.
pub trait Locks {
    /// The host calls `mmn_acquire_lock` or `mmn_try_lock`; [`LockEvent::Result`] answers. `wait` is the longest wait: zero is
    /// `mmn_try_lock`, `None` is no limit.
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
    /// The host calls `mmn_release_lock`.
    ///
    /// # Errors
    /// [`LockRefusal::NotHeld`].
    fn release(&mut self, now: Time, name: &Arc<str>) -> Result<(), LockRefusal>;
}

/// The port of a strategy that asks an external store.
pub trait StoreClient {
    /// The store answers the call of an [`Extra::Engine`].
    fn answered(&mut self, now: Time, call: Call, answer: Answer);
    /// The host calls `mmn_proclaim`: sets the value that others read of this node while it leads.
    fn proclaim(&mut self, now: Time, value: Arc<str>);
}
