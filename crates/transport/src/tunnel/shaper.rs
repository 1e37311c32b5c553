//! Limit for what a process sends on for others, over all of its legs together.
//!
//! The limit delays packets and drops none: they wait in the queues of their legs. The legs take turns: the one whose last
//! turn is longest ago is next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// When a rate allows the next packets.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    rate: Rate,
    free_at: Instant,
}

impl Pace {
    /// Starts with that rate, and free.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            free_at: Instant::now(),
        }
    }

    /// From when on the rate allows more; `None` if it does now.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        (now < self.free_at).then_some(self.free_at)
    }

    /// Counts bytes that were sent.
    pub fn charge(&mut self, now: Instant, bytes: usize) {
        if let Rate::BytesPerSecond(rate @ 1..) = self.rate {
            let takes = Duration::from_secs_f64(bytes as f64 / f64::from(rate));
            let unused = now.checked_sub(CREDIT).unwrap_or(now);
            self.free_at = self.free_at.max(unused) + takes;
        }
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.rate != Rate::Unlimited
    }
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
}

#[derive(Debug)]
struct State {
    pace: Pace,
    /// Last turns of the legs that wait, each with what wakes it. Only the first is woken, so that a turn costs the same
    /// however many legs wait.
    waiting: BTreeMap<Turn, Arc<Notify>>,
    turns: u64,
}

impl State {
    fn next(&self, now: Instant, last: Turn) -> Next {
        let is_first = |first: (&Turn, _)| *first.0 >= last;
        match self.pace.rate {
            Rate::Unlimited => Next::Now,
            Rate::BytesPerSecond(0) => Next::AfterOthers,
            Rate::BytesPerSecond(_) if !self.waiting.first_key_value().is_none_or(is_first) => {
                Next::AfterOthers
            }
            Rate::BytesPerSecond(_) => self.pace.waits_until(now).map_or(Next::Now, Next::At),
        }
    }

    fn wake_first(&self) {
        if let Some((_, first)) = self.waiting.first_key_value() {
            first.notify_one();
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
                pace: Pace::new(rate),
                waiting: BTreeMap::new(),
                turns: 0,
            }),
        }
    }

    /// Sets the rate.
    pub fn set_rate(&self, rate: Rate) {
        let mut state = self.state();
        if state.pace.rate != rate {
            state.pace = Pace::new(rate);
            state.wake_first();
        }
    }

    /// A number for a new leg, which is served after the others.
    pub fn join(&self) -> Turn {
        self.state().number()
    }

    /// The rate, if a leg whose last turn was `last` has its turn now. [`Shaper::charge`] must follow before anything else.
    pub fn is_turn(&self, now: Instant, last: Turn) -> Option<Rate> {
        let state = self.state();
        (state.next(now, last) == Next::Now).then_some(state.pace.rate)
    }

    /// Counts what a leg sends in its turn, and ends the turn. Returns the number of that turn.
    pub fn charge(&self, now: Instant, bytes: usize) -> Turn {
        let mut state = self.state();
        state.pace.charge(now, bytes);
        state.wake_first();
        state.number()
    }

    /// Waits for the turn of a leg whose last turn was `last`.
    pub async fn turn(&self, last: Turn) {
        let waiting = Waiting::start(self, last);
        loop {
            let next = self.state().next(Instant::now(), last);
            match next {
                Next::Now => return,
                Next::At(at) => tokio::select! {
                    () = waiting.woken.notified() => {}
                    () = sleep_until(at) => {}
                },
                Next::AfterOthers => waiting.woken.notified().await,
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
    woken: Arc<Notify>,
}

impl<'a> Waiting<'a> {
    fn start(shaper: &'a Shaper, last: Turn) -> Self {
        let woken = Arc::<Notify>::default();
        shaper.state().waiting.insert(last, Arc::clone(&woken));
        Self {
            shaper,
            last,
            woken,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.shaper.state();
        state.waiting.remove(&self.last);
        state.wake_first();
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
