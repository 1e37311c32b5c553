//! The clock of a room: monotonic, and it counts while the machine is suspended.
//!
//! A lease at a server ends while its holder sleeps, so a holder that wakes up must see that time has passed.
//! [`std::time::Instant`] does not show it everywhere: on Linux and on Apple's systems it stands still during suspend.
//! There the room reads `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC`. On Windows the performance counter, which `Instant`
//! reads, continues. On other systems the room uses `Instant`.
//!
//! Timers of the runtime are Instants. No code converts a [`Moment`] to an `Instant` or back: the difference between
//! two of a kind is a [`Duration`], which is valid for both.

use std::ops::Add;
use std::time::Duration;

/// A point on the clock of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        Self(since_origin())
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(after))
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn since_origin() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;

    // It counts from the start of the machine, and is never negative.
    clock_gettime(CLOCK).try_into().unwrap_or_default()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn since_origin() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_clock_goes_on_as_an_instant_does_while_nothing_sleeps() {
        let (began, instant) = (Moment::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (least, passed) = (instant.elapsed(), Moment::now().since(began));
        assert!(passed >= least, "{passed:?} while {least:?} passed");
        assert!(passed < least + Duration::from_secs(5), "{passed:?}");
        assert_eq!(began.since(Moment::now()), Duration::ZERO);
        assert_eq!((began + passed).since(began), passed);
    }
}
