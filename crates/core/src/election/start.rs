//! Which strategies there are.

use serde::de::DeserializeOwned;

use super::bound::WallClock;
use super::etcd::Etcd;
use super::gossip::Gossip;
use super::raft::Raft;
use super::seeded::Seeded;
use super::{AnyElection, ElectionConfig, NotItsState};
use crate::election::policy::Strategy;
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::opaque::Opaque;
use crate::time::Time;

/// What a strategy starts with, whose state is an `S`.
#[derive(Debug, Clone)]
pub struct Start<S = Opaque> {
    /// The name of this node.
    pub me: PeerId,
    /// Its key.
    pub key: Fingerprint,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The settings.
    pub config: ElectionConfig,
    /// What the incarnation before this one kept last ([`ElectionOutput::Persist`](super::ElectionOutput::Persist)).
    pub saved: Option<S>,
    /// The wall clock.
    pub clock: WallClock,
    /// Decides every random choice.
    pub seed: u64,
}

impl Start {
    /// The same for a strategy whose state is an `S`.
    ///
    /// # Errors
    /// [`NotItsState`].
    pub(super) fn decoded<S: DeserializeOwned>(self) -> Result<Start<S>, NotItsState> {
        let saved = self.saved.map(|saved| saved.decode()).transpose();
        Ok(Start {
            me: self.me,
            key: self.key,
            incarnation: self.incarnation,
            config: self.config,
            saved: saved.map_err(|_| NotItsState)?,
            clock: self.clock,
            seed: self.seed,
        })
    }
}

/// Starts the strategy that the room's rules name, alone.
///
/// # Errors
/// [`NotItsState`] where the strategy keeps one, and `start.saved` is none.
pub fn start(now: Time, start: Start) -> Result<Box<dyn AnyElection>, NotItsState> {
    Ok(match start.config.policy.strategy {
        Strategy::Raft => Box::new(Raft::start(now, start)?),
        Strategy::Gossip { strict_lowest } => Box::new(Gossip::start(now, start, strict_lowest)),
        Strategy::Seeded(rules) => Box::new(Seeded::start(now, start, rules)?),
        Strategy::Etcd(rules) => Box::new(Etcd::start(now, start, rules)?),
    })
}
