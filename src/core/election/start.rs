//! Which strategies there are.

use super::bound::WallClock;
use super::gossip::{Gossip, Windows};
use super::guards::Guards;
use super::raft::{Raft, Recovery};
use super::seeded::{Seeded, Seeding};
use super::{AnyElection, NotItsState};
use crate::core::id::{Incarnation, PeerId};
use crate::core::quorum::Quorum;
use crate::core::time::{Duration, Time};
use crate::core::wire::{Opaque, RoomPolicy, Strategy};

/// What a strategy starts with; each takes what it needs.
#[derive(Debug, Clone)]
pub struct Start {
    /// The name of this node.
    pub me: PeerId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The rules that all members share.
    pub policy: RoomPolicy,
    /// Who counts for a majority.
    pub quorum: Quorum,
    /// A peer is lost after that much silence.
    pub heartbeat_timeout: Duration,
    /// Shortest time without a leader before a campaign.
    pub election_timeout_min: Duration,
    /// Longest.
    pub election_timeout_max: Duration,
    /// Whether this node campaigns by itself.
    pub auto_election: bool,
    /// Whether this node may lead.
    pub eligible: bool,
    /// Its election priority.
    pub priority: i32,
    /// What follows the loss of a leader that `SetLeader` named.
    pub recovery: Recovery,
    /// The gossip strategy's windows, checked already.
    pub windows: Windows,
    /// What the seeded strategy needs of this node.
    pub seeding: Seeding,
    /// What the incarnation before this one kept last ([`ElectionOutput::Persist`](super::ElectionOutput::Persist)).
    pub saved: Option<Opaque>,
    /// The wall clock.
    pub clock: WallClock,
    /// The guards.
    pub guards: Guards,
    /// Decides every random choice.
    pub seed: u64,
}

/// Starts the strategy that the room's rules name, alone.
///
/// # Errors
/// [`NotItsState`] where the strategy keeps one, and `start.saved` is none.
pub fn start(now: Time, start: Start) -> Result<Box<dyn AnyElection>, NotItsState> {
    Ok(match start.policy.strategy {
        Strategy::Raft => Box::new(Raft::start(now, start)?),
        Strategy::Gossip { strict_lowest } => Box::new(Gossip::start(now, start, strict_lowest)),
        Strategy::Seeded(rules) => Box::new(Seeded::start(now, start, rules)?),
    })
}
