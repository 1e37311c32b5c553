//! Waiting for attempts with strangers, and the end of each attempt ([`super::limiter`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::limiter::{Answer, Limiter, MAX_FAILURES_IN_ALL, MAX_FAILURES_OF_ONE, Source, Ticket};
use crate::core::id::Fingerprint;

/// The end that dialled where a guess was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The stranger.
    In,
    /// This process.
    Out,
}

/// Time for which no stranger at an address gets an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosedFor(pub(crate) Duration);

impl ClosedFor {
    /// The time in seconds, rounded up.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs() + 1
    }
}

/// The attempts of one direction.
pub(crate) struct Tries {
    direction: Direction,
    limiter: Mutex<Limiter>,
    changed: Notify,
}

impl Tries {
    /// Starts without failures.
    pub(crate) fn new(direction: Direction) -> Arc<Self> {
        Arc::new(Self {
            direction,
            limiter: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Waits for an attempt with the holder of `key` at `source`. The caller bounds the wait.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        source: Source,
        key: Fingerprint,
    ) -> Result<Try, ClosedFor> {
        let place = InLine {
            tries: self,
            ticket: self.limiter().ask(source),
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let now = now();
            let answer = self.limiter().poll(now, place.ticket);
            match answer {
                Answer::Go => {
                    // Another waiter may be next now.
                    self.changed.notify_waiters();
                    return Ok(Try {
                        tries: Arc::clone(self),
                        source,
                        key,
                        at_stake: AtomicBool::new(false),
                    });
                }
                Answer::Closed(until) => return Err(ClosedFor(until - now)),
                Answer::Wait(None) => changed.await,
                Answer::Wait(Some(until)) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(Instant::from_std(until)) => {}
                },
            }
        }
    }

    /// Time until strangers at `source` get attempts again, if they get none now.
    pub(crate) fn closed(&self, source: Source) -> Option<ClosedFor> {
        let now = now();
        let until = self.limiter().closed_until(now, source)?;
        Some(ClosedFor(until - now))
    }

    /// Time until there are no longer too many failures in all.
    pub(crate) fn slow(&self) -> Option<ClosedFor> {
        let now = now();
        let until = self.limiter().slow_until(now)?;
        Some(ClosedFor(until - now))
    }

    /// Whether an attempt with the holder of `key` has failed within the last minute.
    pub(crate) fn has_failed(&self, key: Fingerprint) -> bool {
        self.limiter().has_failed(now(), key)
    }

    fn end(&self, of: &Try) {
        let now = now();
        let failed = of.at_stake.load(Ordering::Relaxed);
        let consequence = self.limiter().end(now, of.source, of.key, failed);
        self.changed.notify_waiters();
        let Some(consequence) = consequence else {
            return;
        };
        let address = of.source;
        let seconds = |until: StdInstant| (until - now).as_secs();
        match (consequence.closed_until, self.direction) {
            (Some(until), Direction::In) => tracing::warn!(
                %address,
                failures = MAX_FAILURES_OF_ONE,
                seconds = seconds(until),
                "wrong guesses of the room's name or secret: no strangers from there for now"
            ),
            (Some(until), Direction::Out) => tracing::warn!(
                %address,
                failures = MAX_FAILURES_OF_ONE,
                seconds = seconds(until),
                "who was dialled there may be guessing the room's name or secret: no dials to there for now"
            ),
            (None, _) => {}
        }
        if consequence.too_many_in_all {
            let direction = self.direction;
            tracing::warn!(
                ?direction,
                failures = MAX_FAILURES_IN_ALL,
                "wrong guesses of the room's name or secret: one stranger a second for now"
            );
        }
    }

    /// Nothing panics while it holds the lock.
    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> StdInstant {
    Instant::now().into_std()
}

/// A waiting request; dropping it leaves the queue.
struct InLine<'a> {
    tries: &'a Tries,
    ticket: Ticket,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.tries.limiter().leave(self.ticket);
        self.tries.changed.notify_waiters();
    }
}

/// A running attempt. If it is dropped while something is at stake, it has failed.
#[must_use = "a try that is dropped is over"]
pub(crate) struct Try {
    tries: Arc<Tries>,
    source: Source,
    key: Fingerprint,
    at_stake: AtomicBool,
}

impl Try {
    /// From here on the stranger may have tested a guess.
    pub(crate) fn stake(&self) {
        self.at_stake.store(true, Ordering::Relaxed);
    }

    /// Ends the attempt with success: the stranger knows the room.
    pub(crate) fn succeed(self) {
        self.at_stake.store(false, Ordering::Relaxed);
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        self.tries.end(self);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const ADDRESS: Source = Source::V4(Ipv4Addr::LOCALHOST);
    const KEY: Fingerprint = Fingerprint([1; 32]);

    #[tokio::test]
    async fn a_try_that_is_dropped_counts_only_while_something_is_at_stake() {
        let tries = Tries::new(Direction::Out);
        for _ in 0..10 {
            drop(tries.begin(ADDRESS, KEY).await.expect("open"));
            let one = tries.begin(ADDRESS, KEY).await.expect("open");
            one.stake();
            one.succeed();
        }
        assert!(!tries.has_failed(KEY));
        for _ in 0..5 {
            tries.begin(ADDRESS, KEY).await.expect("open").stake();
        }
        assert!(tries.has_failed(KEY));
        let ClosedFor(rest) = tries.closed(ADDRESS).expect("closed");
        assert!(rest <= Duration::from_secs(60) && rest > Duration::from_secs(50));
        assert!(tries.begin(ADDRESS, KEY).await.is_err());
        assert_eq!(tries.slow(), None);
    }

    #[tokio::test]
    async fn an_outcome_or_a_withdrawn_try_wakes_a_waiter() {
        let tries = Tries::new(Direction::In);
        let mut held = Vec::new();
        for _ in 0..MAX_FAILURES_OF_ONE {
            held.push(tries.begin(ADDRESS, KEY).await.expect("open"));
        }
        let begin = |tries: &Arc<Tries>| {
            let tries = Arc::clone(tries);
            tokio::spawn(async move { tries.begin(ADDRESS, KEY).await })
        };
        let (first, second) = (begin(&tries), begin(&tries));
        tokio::task::yield_now().await;
        assert!(!first.is_finished() && !second.is_finished());
        drop(held.pop());
        let first = first.await.expect("no panic").expect("open");
        assert!(!second.is_finished());
        first.stake();
        for one in held {
            one.stake();
        }
        drop(first);
        assert!(second.await.expect("no panic").is_err(), "five have failed");
    }
}
