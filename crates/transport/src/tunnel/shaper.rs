//! Limit for what a process sends on for others, over all of its legs together.
//!
//! The limit delays packets and drops none: they wait in the queues of their legs. The legs take turns: the one whose last
//! turn is longest ago is next.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Unused time that still counts: a timer may fire this late without loss of rate.
const CREDIT: Duration = Duration::from_millis(10);

/// Bytes that are sent on for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// As many as the links take.
    Unlimited,
    /// At most this many a second, in all.
    BytesPerSecond(u32),
}

/// Number of a leg's last turn. A lower number is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(u64);

/// When a leg has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Now,
    At(Instant),
    AfterOthers,
}

/// The limit, shared by all legs of a process.
#[derive(Debug)]
pub struct Shaper {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    rate: Rate,
    /// When the rate allows the next turn.
    free_at: Instant,
    /// Last turns of the legs that wait.
    waiting: BTreeSet<Turn>,
    turns: u64,
}

impl State {
    fn next(&self, now: Instant, last: Turn) -> Next {
        match self.rate {
            Rate::Unlimited => Next::Now,
            Rate::BytesPerSecond(0) => Next::AfterOthers,
            _ if self.waiting.first().is_some_and(|first| *first < last) => Next::AfterOthers,
            _ if now < self.free_at => Next::At(self.free_at),
            Rate::BytesPerSecond(_) => Next::Now,
        }
    }

    fn number(&mut self) -> Turn {
        self.turns += 1;
        Turn(self.turns)
    }
}

impl Shaper {
    /// Starts with that rate.
    pub fn new(rate: Rate) -> Self {
        Self {
            state: Mutex::new(State {
                rate,
                free_at: Instant::now(),
                waiting: BTreeSet::new(),
                turns: 0,
            }),
            changed: Notify::new(),
        }
    }

    /// Sets the rate.
    pub fn set_rate(&self, rate: Rate) {
        let mut state = self.state();
        if state.rate == rate {
            return;
        }
        state.rate = rate;
        state.free_at = Instant::now();
        drop(state);
        self.changed.notify_waiters();
    }

    /// A number for a new leg, which is served after the others.
    pub fn join(&self) -> Turn {
        self.state().number()
    }

    /// The rate, if a leg whose last turn was `last` has its turn now. [`Shaper::charge`] must follow before anything else.
    pub fn is_turn(&self, now: Instant, last: Turn) -> Option<Rate> {
        let state = self.state();
        (state.next(now, last) == Next::Now).then_some(state.rate)
    }

    /// Counts what a leg sends in its turn, and ends the turn. Returns the number of that turn.
    pub fn charge(&self, now: Instant, bytes: usize) -> Turn {
        let mut state = self.state();
        if let Rate::BytesPerSecond(rate @ 1..) = state.rate {
            let takes = Duration::from_secs_f64(bytes as f64 / f64::from(rate));
            let unused = now.checked_sub(CREDIT).unwrap_or(now);
            state.free_at = state.free_at.max(unused) + takes;
        }
        let turn = state.number();
        drop(state);
        self.changed.notify_waiters();
        turn
    }

    /// Waits for the turn of a leg whose last turn was `last`.
    pub async fn turn(&self, last: Turn) {
        let _waiting = Waiting::start(self, last);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let next = self.state().next(Instant::now(), last);
            match next {
                Next::Now => return,
                Next::At(at) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(at) => {}
                },
                Next::AfterOthers => changed.await,
            }
        }
    }

    /// Nothing panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A leg that waits; dropping it ends the wait.
struct Waiting<'a> {
    shaper: &'a Shaper,
    last: Turn,
}

impl<'a> Waiting<'a> {
    fn start(shaper: &'a Shaper, last: Turn) -> Self {
        shaper.state().waiting.insert(last);
        Self { shaper, last }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shaper.state().waiting.remove(&self.last);
        self.shaper.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn legs_share_the_rate_in_turns_and_a_late_timer_costs_nothing() {
        const RATE: u32 = 100_000;
        let shaper = Shaper::new(Rate::BytesPerSecond(RATE));
        let start = Instant::now();
        let send = async |mut last: Turn, bytes: usize| {
            let mut turns = 0;
            while start.elapsed() < Duration::from_secs(10) {
                shaper.turn(last).await;
                let now = Instant::now();
                assert!(shaper.is_turn(now, last).is_some());
                last = shaper.charge(now, bytes);
                turns += 1;
            }
            turns
        };
        let legs = [(); 3].map(|()| shaper.join());
        let (a, b, c) = tokio::join!(send(legs[0], 1200), send(legs[1], 1200), send(legs[2], 700));
        assert!(
            i32::abs_diff(a, b) <= 1 && i32::abs_diff(a, c) <= 1,
            "{a} {b} {c}"
        );
        let sent = (a + b) * 1200 + c * 700;
        let allowed = RATE as i32 * 10;
        assert!(
            (allowed - 4000..allowed + 4000).contains(&sent),
            "{sent} of {allowed}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_leg_that_no_longer_waits_holds_up_no_other() {
        let shaper = Shaper::new(Rate::BytesPerSecond(1000));
        let (first, second) = (shaper.join(), shaper.join());
        shaper.charge(Instant::now(), 1000);
        let start = Instant::now();
        let gives_up = async {
            let limit = Duration::from_millis(500);
            let turn = tokio::time::timeout(limit, shaper.turn(first)).await;
            assert!(turn.is_err());
        };
        tokio::join!(gives_up, shaper.turn(second));
        assert!(start.elapsed() < Duration::from_millis(1100));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_all_wait_and_another_rate_wakes_them() {
        let shaper = Shaper::new(Rate::BytesPerSecond(0));
        let last = shaper.join();
        assert_eq!(shaper.is_turn(Instant::now(), last), None);
        let wait = shaper.turn(last);
        tokio::pin!(wait);
        let soon = Duration::from_secs(100);
        assert!(tokio::time::timeout(soon, &mut wait).await.is_err());
        shaper.set_rate(Rate::Unlimited);
        let start = Instant::now();
        wait.await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
