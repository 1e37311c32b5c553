//! Settings of the seeded strategy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Kept;
use crate::election::Start;
use crate::election::bound::WallClock;
use crate::quorum::Roster;
use crate::time::Duration;

/// The rules that all members share; members with different rules do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeededRules {
    /// A seed leads only when a majority of the roster has elected it, even at a first start.
    pub strict_start: bool,
    /// No seed leads without a majority, however long there is no leader.
    pub never_alone: bool,
    /// The intervals of the election.
    pub intervals: Intervals,
}

/// Intervals of the election, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// Interval at which a member checks for due actions.
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

/// The reason why intervals cannot be used. Names the first field that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IntervalError {
    /// The interval is zero.
    #[error("{field} is 0; it must be at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// The interval is too short compared with another one.
    #[error("{field} is {value}; it must be {rule} {other}, which is {limit}")]
    TooShort {
        /// The field.
        field: &'static str,
        /// Its value, in milliseconds.
        value: u32,
        /// The required comparison with the other field.
        rule: &'static str,
        /// The other field.
        other: &'static str,
        /// The other field's value, in milliseconds.
        limit: u32,
    },
}

impl Intervals {
    /// Intervals for machines on one local network.
    pub const LAN: Self = Self {
        probe_interval_ms: 50,
        heartbeat_interval_ms: 200,
        heartbeat_timeout_ms: 600,
        ttl_timeout_ms: 1_500,
        retry_interval_ms: 250,
    };

    /// Checks the intervals.
    ///
    /// # Errors
    /// [`IntervalError`] names the first field that is wrong.
    pub fn check(&self) -> Result<(), IntervalError> {
        let probe = ("probe_interval_ms", self.probe_interval_ms);
        let heartbeat = ("heartbeat_interval_ms", self.heartbeat_interval_ms);
        let heartbeat_timeout = ("heartbeat_timeout_ms", self.heartbeat_timeout_ms);
        let ttl_timeout = ("ttl_timeout_ms", self.ttl_timeout_ms);
        let retry = ("retry_interval_ms", self.retry_interval_ms);
        above_zero(probe)?;
        if heartbeat.1 < probe.1 {
            return Err(too_short(heartbeat, "at least", probe));
        }
        above(heartbeat_timeout, heartbeat)?;
        above(ttl_timeout, heartbeat_timeout)?;
        above_zero(retry)
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

/// A field and its value, in milliseconds.
type Interval = (&'static str, u32);

fn above_zero((field, value): Interval) -> Result<(), IntervalError> {
    match value {
        0 => Err(IntervalError::Zero { field }),
        _ => Ok(()),
    }
}

fn above(interval: Interval, other: Interval) -> Result<(), IntervalError> {
    match interval.1 > other.1 {
        true => Ok(()),
        false => Err(too_short(interval, "above", other)),
    }
}

fn too_short(
    (field, value): Interval,
    rule: &'static str,
    (other, limit): Interval,
) -> IntervalError {
    IntervalError::TooShort {
        field,
        value,
        rule,
        other,
        limit,
    }
}

/// Settings of this node alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seeding {
    /// The addresses of the seeds, as the host gave them.
    pub seeds: Vec<Arc<str>>,
    /// Whether this node is one of them. Seeds are voters.
    pub is_seed: bool,
    /// This node's address, as this node itself gives it. It decides between otherwise equal leaders.
    pub address: String,
}

/// Settings of the seeded strategy.
#[derive(Debug, Clone)]
pub struct SeededConfig {
    /// The rules that all members share.
    pub rules: SeededRules,
    /// The settings of this node alone.
    pub seeding: Seeding,
    /// The voters.
    pub roster: Roster,
    /// Whether this node may vote and lead, if it is a voter.
    pub eligible: bool,
    /// The wall clock, which bounds the versions of others.
    pub clock: WallClock,
}

impl SeededConfig {
    /// The settings of a node that starts with the options of its room.
    ///
    /// # Panics
    /// If the options name no voters; those of a seeded room always do.
    pub(super) fn of(start: &Start<Kept>, rules: SeededRules) -> Self {
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
    fn t1_an_error_names_the_interval_its_value_and_the_limit() {
        let right = Intervals::default();
        assert_eq!(right.check(), Ok(()));
        assert_eq!(Intervals::LAN.check(), Ok(()));
        let shortest = Intervals {
            probe_interval_ms: 1,
            heartbeat_interval_ms: 1,
            heartbeat_timeout_ms: 2,
            ttl_timeout_ms: 3,
            retry_interval_ms: 1,
        };
        assert_eq!(shortest.check(), Ok(()));
        let mut wrong = [right; 7];
        wrong[0].probe_interval_ms = 0;
        wrong[1].heartbeat_interval_ms = 0;
        wrong[2].heartbeat_interval_ms = 499;
        wrong[3].heartbeat_timeout_ms = 10_000;
        wrong[4].ttl_timeout_ms = 30_000;
        wrong[5].ttl_timeout_ms = 0;
        wrong[6].retry_interval_ms = 0;
        let sentences = wrong.map(|intervals| intervals.check().expect_err("wrong").to_string());
        assert_eq!(
            sentences,
            [
                "probe_interval_ms is 0; it must be at least 1",
                "heartbeat_interval_ms is 0; it must be at least probe_interval_ms, which is 500",
                "heartbeat_interval_ms is 499; it must be at least probe_interval_ms, which is 500",
                "heartbeat_timeout_ms is 10000; it must be above heartbeat_interval_ms, which is 10000",
                "ttl_timeout_ms is 30000; it must be above heartbeat_timeout_ms, which is 30000",
                "ttl_timeout_ms is 0; it must be above heartbeat_timeout_ms, which is 30000",
                "retry_interval_ms is 0; it must be at least 1",
            ]
        );
    }
}
