//! Settings of elections.

use super::etcd::EtcdConfig;
use super::gossip::Windows;
use super::guards::Guards;
use super::seeded::Seeding;
use crate::election::policy::{HostMode, RoomPolicy};
use crate::quorum::Quorum;
use crate::time::Duration;

/// Behaviour after the loss of a leader that `SetLeader` named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// No member campaigns until `SetLeader` or `EnableAutoLeaderElection(1)`.
    Hold,
    /// The room elects.
    AutoElect,
}

/// Entry of a node into its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entry {
    /// It looks for members and leads when it finds none.
    #[default]
    Any,
    /// It leads at once.
    Create,
    /// It looks for a room: it neither leads nor admits peers before it has followed a leader.
    Join,
}

/// Settings of elections; each strategy takes what it needs.
#[derive(Debug, Clone)]
pub struct ElectionConfig {
    /// The rules that all members share. A node takes its quorum from `quorum`.
    pub policy: RoomPolicy,
    /// The voters that count for a majority.
    pub quorum: Quorum,
    /// Silence after which a peer is lost.
    pub heartbeat_timeout: Duration,
    /// Shortest election timeout; a node raises it to `heartbeat_timeout` if it is less.
    pub election_timeout_min: Duration,
    /// Longest election timeout; raised by as much as the shortest.
    pub election_timeout_max: Duration,
    /// Whether this node campaigns by itself.
    pub auto_election: bool,
    /// Entry of this node; other than [`Entry::Any`] only where every member may come to lead by itself.
    pub entry: Entry,
    /// Whether this node may vote and lead.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// Behaviour after the loss of an assigned leader.
    pub recovery: Recovery,
    /// The windows of the gossip strategy, checked already.
    pub windows: Windows,
    /// This node's settings for the seeded strategy.
    pub seeding: Seeding,
    /// This node's settings for the etcd strategy.
    pub etcd: EtcdConfig,
    /// The active guards: all of them, outside the laboratory.
    pub guards: Guards,
}

impl ElectionConfig {
    /// Raises the election timeouts to at least the time in which a lost heartbeat is noticed: shorter ones would
    /// depose living leaders (C6 G1).
    pub(crate) fn with_effective_timeouts(mut self) -> Self {
        let raise = self
            .heartbeat_timeout
            .saturating_sub(self.election_timeout_min);
        self.election_timeout_min = self.election_timeout_min.saturating_add(raise);
        self.election_timeout_max = self.election_timeout_max.saturating_add(raise);
        self
    }
}

impl ElectionConfig {
    /// Whether a node leads as soon as it starts.
    pub(crate) fn leads_at_once(&self) -> bool {
        let founds = self.policy.host_mode == HostMode::Host || self.entry == Entry::Create;
        founds && self.eligible
    }
}

#[cfg(any(test, feature = "laboratory"))]
impl ElectionConfig {
    /// The default timers; tests change the settings that they exercise.
    pub fn for_tests() -> Self {
        let ms = Duration::from_millis;
        Self {
            policy: RoomPolicy::default(),
            quorum: Quorum::Dynamic,
            heartbeat_timeout: ms(1500),
            election_timeout_min: ms(1500),
            election_timeout_max: ms(3000),
            auto_election: true,
            entry: Entry::Any,
            eligible: true,
            priority: 0,
            recovery: Recovery::Hold,
            windows: Windows::default(),
            seeding: Seeding::default(),
            etcd: EtcdConfig::default(),
            guards: Guards::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_election_timeout_is_never_below_the_heartbeat_timeout() {
        let ms = Duration::from_millis;
        let effective = |heartbeat_timeout, min, max| {
            let config = ElectionConfig {
                heartbeat_timeout: ms(heartbeat_timeout),
                election_timeout_min: ms(min),
                election_timeout_max: ms(max),
                ..ElectionConfig::for_tests()
            };
            let config = config.with_effective_timeouts();
            (config.election_timeout_min, config.election_timeout_max)
        };
        assert_eq!(effective(1500, 1500, 3000), (ms(1500), ms(3000)));
        assert_eq!(effective(1500, 600, 700), (ms(1500), ms(1600)));
        assert_eq!(effective(1500, 1499, 1499), (ms(1500), ms(1500)));
        assert_eq!(effective(300, 1500, 3000), (ms(1500), ms(3000)));
    }
}
