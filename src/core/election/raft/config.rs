//! Settings of the raft strategy.

use super::Raft;
use super::saved::Saved;
use crate::core::election::bound::WallClock;
use crate::core::election::guards::Guards;
use crate::core::election::{NotItsState, Start};
use crate::core::quorum::Quorum;
use crate::core::time::{Duration, Time};
use crate::core::wire::{Authority, HostMode, MergePolicy};

/// What happens when a leader that `SetLeader` named is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody campaigns until `SetLeader` or `EnableAutoLeaderElection(1)`.
    Hold,
    /// The room elects.
    AutoElect,
}

/// Settings of the raft strategy.
#[derive(Debug, Clone)]
pub struct RaftConfig {
    /// Silence after which a leader is lost.
    pub heartbeat_timeout: Duration,
    /// Shortest election timeout; at least `heartbeat_timeout`.
    pub election_timeout_min: Duration,
    /// Longest election timeout; at least `election_timeout_min`.
    pub election_timeout_max: Duration,
    /// Who counts for a majority.
    pub quorum: Quorum,
    /// What is on disk under the name of this incarnation already, where the quorum is static. `None` is a first
    /// start.
    pub saved: Option<Saved>,
    /// Which guards hold: all of them, outside the laboratory.
    pub guards: Guards,
    /// Which leader stays when two sides meet.
    pub merge: MergePolicy,
    /// Who may call `SetLeader`.
    pub authority: Authority,
    /// Whether one fixed member leads, and which: it does from its start on, and gives way to nobody.
    pub host_mode: HostMode,
    /// What happens when an assigned leader is lost.
    pub recovery: Recovery,
    /// Whether this node campaigns by itself.
    pub auto_election: bool,
    /// Whether this node may vote and lead.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// What time it is, which bounds the counters of others.
    pub clock: WallClock,
}

impl Raft {
    /// A node that starts now, by the options of its room.
    ///
    /// # Errors
    /// [`NotItsState`].
    pub(in crate::core::election) fn start(now: Time, start: Start) -> Result<Self, NotItsState> {
        let previous = start.saved.map(|saved| saved.decode()).transpose();
        let previous = previous.map_err(|_| NotItsState)?;
        let config = RaftConfig {
            heartbeat_timeout: start.heartbeat_timeout,
            election_timeout_min: start.election_timeout_min,
            election_timeout_max: start.election_timeout_max,
            eligible: start.eligible && start.quorum.admits(&start.me),
            quorum: start.quorum,
            saved: Some(Saved::of_next_incarnation(previous)),
            guards: start.guards,
            merge: start.policy.merge,
            authority: start.policy.authority,
            host_mode: start.policy.host_mode,
            recovery: start.recovery,
            auto_election: start.auto_election,
            priority: start.priority,
            clock: start.clock,
        };
        let raft = Self::new(start.me, start.incarnation, config, start.seed, now);
        Ok(raft)
    }
}
