//! Pace of attempts with strangers behind one relay.
//!
//! A stranger who knows the room's number at a relay can show any number of keys there. So the attempts of all strangers
//! behind a relay count together, apart from the attempts of addresses: a failure costs time, and shuts no stranger out for long.
//! Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Failures that may follow each other at once.
const BURST: u32 = 5;
/// Time that a failure costs: [`BURST`] of them a minute.
const COST: Duration = Duration::from_secs(12);
/// Failures within [`LONG_WINDOW`] after which each costs [`LATER_COST`].
const MAX_FAILURES: usize = 60;
/// Time for which a failure counts for that.
const LONG_WINDOW: Duration = Duration::from_secs(3600);
/// Cost of a failure after that many.
const LATER_COST: Duration = Duration::from_secs(60);

/// The attempts with strangers behind one relay.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The last ones, oldest first.
    failures: VecDeque<Instant>,
    /// Time at which all failures so far have been paid for.
    paid_at: Option<Instant>,
    /// Running attempts: each may fail.
    running: u32,
}

impl Pace {
    /// Time at which the next attempt may begin, unless it may begin now.
    pub(super) fn closed_until(&self, now: Instant) -> Option<Instant> {
        let cost = self.cost(now);
        let owed = self.paid_at.unwrap_or(now).max(now) + cost * self.running;
        let free_at = owed.checked_sub(cost * (BURST - 1))?;
        (free_at > now).then_some(free_at)
    }

    /// Begins an attempt, if it may begin now. [`Pace::end`] must follow.
    pub(super) fn begin(&mut self, now: Instant) -> Result<(), Instant> {
        match self.closed_until(now) {
            Some(until) => Err(until),
            None => {
                self.running += 1;
                Ok(())
            }
        }
    }

    /// Ends an attempt.
    pub(super) fn end(&mut self, now: Instant, failed: bool) {
        self.running = self.running.saturating_sub(1);
        if !failed {
            return;
        }
        let cost = self.cost(now);
        self.paid_at = Some(self.paid_at.unwrap_or(now).max(now) + cost);
        if self.failures.len() >= MAX_FAILURES {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
    }

    fn cost(&self, now: Instant) -> Duration {
        let oldest = self.failures.front();
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < LONG_WINDOW;
        match self.failures.len() >= MAX_FAILURES && oldest.is_some_and(is_recent) {
            true => LATER_COST,
            false => COST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guesses as often as allowed; returns how many fail until `until`.
    fn guess(pace: &mut Pace, start: Instant, from: u64, until: u64) -> usize {
        let mut failed = 0;
        for second in from..until {
            let now = start + Duration::from_secs(second);
            while pace.begin(now).is_ok() {
                pace.end(now, true);
                failed += 1;
            }
        }
        failed
    }

    #[test]
    fn five_failures_a_minute_and_after_sixty_in_an_hour_one() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(guess(&mut pace, start, 0, 1), 5);
        assert_eq!(guess(&mut pace, start, 1, 60), 4);
        let first_hour = 9 + guess(&mut pace, start, 60, 3600);
        assert!((60..120).contains(&first_hour), "{first_hour}");
        let second_hour = guess(&mut pace, start, 3600, 7200);
        // The oldest of sixty may be just an hour old.
        assert!((59..=66).contains(&second_hour), "{second_hour}");
        assert!(pace.failures.len() <= MAX_FAILURES);
        // After an hour without failures all is as at first.
        assert_eq!(guess(&mut pace, start, 12_000, 12_001), 5);
    }

    #[test]
    fn running_attempts_count_as_failures_until_they_succeed() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(pace.begin(now), Ok(()));
        }
        let until = pace.begin(now).expect_err("five are running");
        assert_eq!(until, now + COST);
        for _ in 0..BURST {
            pace.end(now, false);
        }
        for _ in 0..500 {
            assert_eq!(pace.begin(now), Ok(()));
            pace.end(now, false);
        }
    }
}
