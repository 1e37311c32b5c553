//! Waits before another attempt to enter a relay. Pure.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tokio::time::Instant;

/// The first wait; each one is twice the one before.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait for a relay that does not answer.
const LONGEST: Duration = Duration::from_secs(8);
/// The wait after a refusal that another attempt does not change. A relay counts these by address, and others share it.
const AFTER_A_REFUSAL: Duration = Duration::from_secs(60);
/// A stay of this length makes the next wait a first one.
const LONG_STAY: Duration = Duration::from_secs(10);
/// Shortest time between two attempts without a wait.
const SKIP_INTERVAL: Duration = Duration::from_secs(5);

/// The waits of one relay.
#[derive(Debug)]
pub(super) struct Waits {
    next: Duration,
    skipped_at: Option<Instant>,
    chance: ChaCha8Rng,
}

impl Waits {
    /// Starts with the first wait. Members that lose a relay at the same time draw different waits.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            next: FIRST,
            skipped_at: None,
            chance: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// The wait before the next attempt.
    pub(super) fn next(&mut self, is_refused: bool) -> Duration {
        let wait = match is_refused {
            true => AFTER_A_REFUSAL,
            false => self.next,
        };
        self.next = (self.next * 2).min(LONGEST);
        wait.mul_f64(self.chance.random_range(0.75..1.25))
    }

    /// Whether the next attempt may begin at once, after a link that was in use.
    pub(super) fn may_skip(&mut self, now: Instant) -> bool {
        let is_soon = |at: Instant| now.saturating_duration_since(at) < SKIP_INTERVAL;
        let may = !self.skipped_at.is_some_and(is_soon);
        if may {
            self.skipped_at = Some(now);
        }
        may
    }

    /// The member was in the relay for that long.
    pub(super) fn stayed(&mut self, time: Duration) {
        if time >= LONG_STAY {
            self.next = FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_anew_after_a_long_stay() {
        let mut waits = Waits::new(1);
        let near = |wait: Duration, ms: u64| {
            let expected = Duration::from_millis(ms);
            assert!(
                wait >= expected * 3 / 4 && wait < expected * 5 / 4,
                "{wait:?}"
            );
        };
        for ms in [500, 1000, 2000, 4000, 8000, 8000] {
            near(waits.next(false), ms);
        }
        // A relay that admits and closes at once gains nothing.
        waits.stayed(Duration::from_secs(1));
        near(waits.next(false), 8000);
        near(waits.next(true), 60_000);
        waits.stayed(LONG_STAY);
        near(waits.next(false), 500);
        assert_ne!(Waits::new(1).next(false), Waits::new(2).next(false));
    }

    #[test]
    fn a_relay_that_falls_again_and_again_is_not_dialled_without_a_wait() {
        let (mut waits, now) = (Waits::new(1), Instant::now());
        assert!(waits.may_skip(now));
        assert!(!waits.may_skip(now + SKIP_INTERVAL / 2));
        assert!(waits.may_skip(now + SKIP_INTERVAL));
    }
}
