//! Settings of the seeded strategy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::core::election::Start;
use crate::core::election::bound::WallClock;
use crate::core::quorum::Roster;
use crate::core::time::Duration;

/// The rules that all members share: members that differ do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeededRules {
    /// At a first start, too, a seed leads only when a majority of the roster has elected it.
    pub strict_start: bool,
    /// No seed leads without a majority, however long there is none.
    pub never_alone: bool,
    /// When things happen.
    pub intervals: Intervals,
}

/// When things happen, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// How often a member looks whether something is due.
    pub probe_interval_ms: u32,
    /// Time between two keep-alives.
    pub heartbeat_interval_ms: u32,
    /// Silence after which a member is unreachable, and a leader without a majority resigns.
    pub heartbeat_timeout_ms: u32,
    /// Silence after which a member is removed, and a leader replaced.
    pub ttl_timeout_ms: u32,
    /// Time between two attempts to join, or to elect.
    pub retry_interval_ms: u32,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            probe_interval_ms: 500,
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            ttl_timeout_ms: 90_000,
            retry_interval_ms: 5_000,
        }
    }
}

/// Why intervals cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{field} is {value} ms; it must be {rule}")]
pub struct IntervalError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u32,
    /// What it must be.
    pub rule: &'static str,
}

impl Intervals {
    /// For machines on one local network.
    pub const LAN: Self = Self {
        probe_interval_ms: 50,
        heartbeat_interval_ms: 200,
        heartbeat_timeout_ms: 600,
        ttl_timeout_ms: 1_500,
        retry_interval_ms: 250,
    };

    /// Checks them.
    ///
    /// # Errors
    /// [`IntervalError`] names the first field that is wrong.
    pub fn check(&self) -> Result<(), IntervalError> {
        let rules = [
            (
                "probe_interval_ms",
                self.probe_interval_ms,
                self.probe_interval_ms > 0,
                "above 0",
            ),
            (
                "heartbeat_interval_ms",
                self.heartbeat_interval_ms,
                self.heartbeat_interval_ms >= self.probe_interval_ms,
                "at least probe_interval_ms",
            ),
            (
                "heartbeat_timeout_ms",
                self.heartbeat_timeout_ms,
                self.heartbeat_timeout_ms > self.heartbeat_interval_ms,
                "above heartbeat_interval_ms",
            ),
            (
                "ttl_timeout_ms",
                self.ttl_timeout_ms,
                self.ttl_timeout_ms > self.heartbeat_timeout_ms,
                "above heartbeat_timeout_ms",
            ),
            (
                "retry_interval_ms",
                self.retry_interval_ms,
                self.retry_interval_ms > 0,
                "above 0",
            ),
        ];
        let wrong = rules.into_iter().find(|(_, _, holds, _)| !holds);
        wrong.map_or(Ok(()), |(field, value, _, rule)| {
            Err(IntervalError { field, value, rule })
        })
    }

    pub(super) fn probe(&self) -> Duration {
        Duration::from_millis(self.probe_interval_ms.into())
    }

    pub(super) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_interval_ms.into())
    }

    pub(super) fn heartbeat_timeout(&self) -> Duration {
        Duration::from_millis(self.heartbeat_timeout_ms.into())
    }

    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_timeout_ms.into())
    }

    pub(super) fn retry(&self) -> Duration {
        Duration::from_millis(self.retry_interval_ms.into())
    }
}

/// What this node alone is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seeding {
    /// The addresses of the seeds, as the host gave them.
    pub seeds: Vec<Arc<str>>,
    /// Whether this node is one of them. Seeds are voters.
    pub is_seed: bool,
    /// Where others reach this node, as it says itself. It decides between leaders that are equal otherwise.
    pub address: String,
}

/// Settings of the seeded strategy.
#[derive(Debug, Clone)]
pub struct SeededConfig {
    /// What all members share.
    pub rules: SeededRules,
    /// What this node alone is given.
    pub seeding: Seeding,
    /// The voters.
    pub roster: Roster,
    /// Whether this node may vote and lead, if it is a voter.
    pub eligible: bool,
    /// What time it is, which bounds the versions of others.
    pub clock: WallClock,
}

impl SeededConfig {
    /// Those of a node that starts by the options of its room.
    ///
    /// # Panics
    /// If these name no voters: the options of a seeded room do.
    pub(super) fn of(start: &Start, rules: SeededRules) -> Self {
        let roster = start.config.quorum.roster();
        let roster = roster.expect("a seeded room has a roster").clone();
        Self {
            rules,
            seeding: start.config.seeding.clone(),
            roster,
            eligible: start.config.eligible,
            clock: start.clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_an_error_names_the_interval_that_is_wrong() {
        let right = Intervals::default();
        assert_eq!(right.check(), Ok(()));
        assert_eq!(Intervals::LAN.check(), Ok(()));
        let mut wrong = [right; 7];
        wrong[0].probe_interval_ms = 0;
        wrong[1].heartbeat_interval_ms = 0;
        wrong[2].heartbeat_interval_ms = 499;
        wrong[3].heartbeat_timeout_ms = 10_000;
        wrong[4].ttl_timeout_ms = 30_000;
        wrong[5].ttl_timeout_ms = 0;
        wrong[6].retry_interval_ms = 0;
        let fields = wrong.map(|intervals| intervals.check().map_err(|error| error.field));
        assert_eq!(
            fields,
            [
                Err("probe_interval_ms"),
                Err("heartbeat_interval_ms"),
                Err("heartbeat_interval_ms"),
                Err("heartbeat_timeout_ms"),
                Err("ttl_timeout_ms"),
                Err("ttl_timeout_ms"),
                Err("retry_interval_ms"),
            ]
        );
        assert_eq!(
            wrong[3].check().map_err(|error| error.to_string()),
            Err("heartbeat_timeout_ms is 10000 ms; it must be above heartbeat_interval_ms".into())
        );
    }
}
