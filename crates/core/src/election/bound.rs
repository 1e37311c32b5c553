//! The bound on counters that come from other members. Time alone sets it (C4.8).
//!
//! Members send each other terms, override numbers and the count of room rules, and count on above the largest. A
//! member may hold a large number because another member made it up, so no member is punished for one. The bound does
//! not depend on what the receiver holds: otherwise members that a third one lied to would disconnect each other.
//! Members drop counters above the bound and accept all others. The bound grows faster than a room can count, so a room
//! that was pushed up to it can go on counting.

use crate::time::{Duration, Time};

/// Bound of a clock that shows 1970; an honest room never counts this far.
const IN_1970: u64 = 1 << 40;
/// Growth of the bound per second.
const PER_SECOND: u128 = 1 << 10;

/// The wall clock as last read. The monotonic clock carries it forward from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    read_at: Time,
    since_1970: Duration,
}

impl WallClock {
    /// A clock that showed `since_1970` at `read_at`.
    pub const fn new(read_at: Time, since_1970: Duration) -> Self {
        Self {
            read_at,
            since_1970,
        }
    }

    /// Its time at `now`.
    pub fn at(self, now: Time) -> Duration {
        self.since_1970.saturating_add(now.since(self.read_at))
    }

    /// The largest counter that may come from another member at `now`.
    pub fn bound(self, now: Time) -> u64 {
        let grown = self.at(now).as_micros().saturating_mul(PER_SECOND) / 1_000_000;
        IN_1970.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_grows_by_1024_in_a_second_and_by_one_in_a_millisecond() {
        let start = Time::from_micros(5_000_000);
        let clock = WallClock::new(start, Duration::ZERO);
        assert_eq!(clock.bound(start), 1 << 40);
        assert_eq!(clock.bound(start + Duration::from_millis(1)), (1 << 40) + 1);
        let second = Duration::from_secs(1);
        assert_eq!(clock.bound(start + second), (1 << 40) + 1024);
        let later = WallClock::new(start, second * 1_700_000_000);
        assert_eq!(later.bound(start), (1 << 40) + 1024 * 1_700_000_000);
        // A deadline may be looked up a moment before the clock was read.
        assert_eq!(clock.bound(Time::ZERO), 1 << 40);
    }

    #[test]
    fn no_clock_is_too_far_off() {
        let never = WallClock::new(Time::ZERO, Duration::MAX);
        assert_eq!(never.bound(Time::from_micros(u64::MAX)), u64::MAX);
        // The year 9999.
        let far = WallClock::new(Time::ZERO, Duration::from_secs(253_402_300_799));
        assert!(far.bound(Time::ZERO) < 1 << 48);
    }
}
