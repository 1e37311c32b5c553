//! The clock of a process, which runs at its own rate.
//!
//! The core sees no other time. This module translates its deadlines into the room's time.

use room_core::time::{Duration, Time};

/// The largest deviation of a clock, in parts per million.
pub const MAX_DEVIATION_PPM: u32 = 50_000;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    origin: Time,
    rate: u32,
}

impl Clock {
    /// The rate of a true clock: its microseconds in a second.
    pub const TRUE: u32 = 1_000_000;

    /// A clock that shows the true time at `origin` and runs at `rate` from then on.
    pub fn new(origin: Time, rate: u32) -> Self {
        Self { origin, rate }
    }

    /// The clock's time at `time`.
    pub fn local(&self, time: Time) -> Time {
        self.origin + scaled(time.since(self.origin), self.rate, Self::TRUE)
    }

    /// The first time at which it shows `local`.
    pub fn global(&self, local: Time) -> Time {
        self.origin + scaled(local.since(self.origin), Self::TRUE, self.rate)
    }
}

/// `duration * numerator / denominator`, rounded up: never before the intended moment.
fn scaled(duration: Duration, numerator: u32, denominator: u32) -> Duration {
    if numerator == denominator {
        return duration;
    }
    let micros = duration.as_micros() * u128::from(numerator);
    let micros = micros.div_ceil(u128::from(denominator));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// `duration` by the slowest possible clock.
pub fn slowest_clock(duration: Duration) -> Duration {
    scaled(duration, Clock::TRUE, Clock::TRUE - MAX_DEVIATION_PPM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_due_when_its_time_has_come_and_not_before() {
        let origin = Time::from_micros(1_000_000);
        for rate in [950_000, 999_999, 1_000_000, 1_000_001, 1_050_000] {
            let clock = Clock::new(origin, rate);
            for after in [0, 1, 2, 333, 500_000, 1_499_999, 86_400_000_007] {
                let deadline = origin + Duration::from_micros(after);
                let due = clock.global(deadline);
                assert!(clock.local(due) >= deadline, "rate {rate}, {after} us");
                let early = due - Duration::from_micros(2);
                assert!(
                    due.since(origin) < Duration::from_micros(2) || clock.local(early) < deadline,
                    "rate {rate}, {after} us"
                );
            }
        }
    }

    #[test]
    fn a_fast_clock_shows_more_time_than_a_slow_one() {
        let second = Time::ZERO + Duration::from_secs(1);
        let shown = |rate| Clock::new(Time::ZERO, rate).local(second).as_micros();
        assert_eq!(
            [950_000, Clock::TRUE, 1_050_000].map(shown),
            [950_000, 1_000_000, 1_050_000]
        );
        assert!(slowest_clock(Duration::from_millis(950)) == Duration::from_secs(1));
    }
}
