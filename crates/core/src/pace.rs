//! A limit on the rate of an action.

use super::time::{Duration, Time};

/// A token bucket: `burst` tokens at once, then one per `interval`.
#[derive(Debug, Clone)]
pub struct Pace {
    burst: u32,
    interval: Duration,
    tokens: u32,
    refilled_at: Time,
}

impl Pace {
    /// A full bucket.
    pub fn new(now: Time, burst: u32, interval: Duration) -> Self {
        Self {
            burst,
            interval,
            tokens: burst,
            refilled_at: now,
        }
    }

    /// Takes a token; `false` when none is left before [`Pace::next`].
    pub fn take(&mut self, now: Time) -> bool {
        while self.tokens < self.burst && self.next() <= now {
            self.tokens += 1;
            self.refilled_at = self.next();
        }
        if self.tokens == self.burst {
            self.refilled_at = now;
        }
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }

    /// The time of the next token.
    pub fn next(&self) -> Time {
        self.refilled_at + self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let mut pace = Pace::new(at(0), 3, Duration::from_millis(250));
        let taken = (0..2000).filter(|ms| pace.take(at(*ms))).count();
        assert_eq!(taken, 3 + 7);
        // A rest gives no more than the burst.
        assert_eq!((0..10).filter(|_| pace.take(at(60_000))).count(), 3);
        assert_eq!(pace.next(), at(60_250));
        assert!(!pace.take(at(60_249)) && pace.take(at(60_250)));
    }
}
