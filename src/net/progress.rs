//! Deadline of a dial or an admission. Each step of the other end renews it, up to a limit: a slow line needs
//! more time than a process that does not answer at all.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// Limit of a dial or an admission in all, in multiples of its timeout.
pub(crate) const MAX_RENEWALS: u32 = 3;

/// Progress of a dial or an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The other end has not answered yet.
    Begun,
    /// The encrypted connection is established.
    Connected,
    /// The other end has proved that it knows the room.
    Proved,
    /// The other end's Hello has arrived.
    Greeted,
}

/// Progress and deadline of a dial or an admission.
#[derive(Debug)]
pub(crate) struct Progress {
    timeout: Duration,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    step: Step,
    until: Instant,
}

/// A dial or an admission that timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// The last step reached.
    pub(crate) step: Step,
    /// The total time taken.
    pub(crate) after: Duration,
}

impl Progress {
    /// Starts now.
    pub(crate) fn new(timeout: Duration) -> Self {
        let began = Instant::now();
        let until = began + timeout;
        Self::of(timeout, began, Step::Begun, until)
    }

    /// Progress of one of several parallel attempts: it starts from the common step and counts its own.
    pub(crate) fn branch(&self) -> Self {
        let State { step, until } = *self.state();
        Self::of(self.timeout, self.began, step, until)
    }

    fn of(timeout: Duration, began: Instant, step: Step, until: Instant) -> Self {
        Self {
            timeout,
            began,
            state: Mutex::new(State { step, until }),
        }
    }

    /// Records a step of the other end.
    pub(crate) fn reached(&self, step: Step) {
        let mut state = self.state();
        state.step = state.step.max(step);
        let renewed = Instant::now() + self.timeout;
        let limit = self.began + self.timeout * MAX_RENEWALS;
        state.until = renewed.min(limit).max(state.until);
    }

    /// The deadline, unless another step is reached.
    pub(crate) fn until(&self) -> Instant {
        self.state().until
    }

    /// The last step reached.
    pub(crate) fn step(&self) -> Step {
        self.state().step
    }

    /// Runs `work` until the deadline.
    ///
    /// # Errors
    /// [`Overdue`]; the work is dropped then.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Overdue> {
        tokio::pin!(work);
        loop {
            let until = self.until();
            if let Ok(done) = timeout_at(until, &mut work).await {
                return Ok(done);
            }
            if self.until() == until {
                return Err(Overdue {
                    step: self.step(),
                    after: self.began.elapsed(),
                });
            }
        }
    }

    /// Nothing panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_step_the_time_is_over_after_the_timeout() {
        let progress = Progress::new(TIMEOUT);
        let over = progress.within(pending::<()>()).await;
        let (step, after) = (Step::Begun, TIMEOUT);
        assert_eq!(over, Err(Overdue { step, after }));
    }

    #[tokio::test(start_paused = true)]
    async fn each_step_renews_the_time_up_to_three_timeouts() {
        let progress = Progress::new(TIMEOUT);
        let steps = async {
            for step in [Step::Connected, Step::Proved, Step::Greeted] {
                sleep(seconds(4)).await;
                progress.reached(step);
            }
            pending::<()>().await;
        };
        let over = progress.within(steps).await;
        // The last step at 12 s would give it until 17 s.
        let (step, after) = (Step::Greeted, TIMEOUT * MAX_RENEWALS);
        assert_eq!(over, Err(Overdue { step, after }));
    }

    #[tokio::test(start_paused = true)]
    async fn work_of_steps_that_each_take_long_is_done() {
        let progress = Progress::new(TIMEOUT);
        let steps = async {
            sleep(seconds(4)).await;
            progress.reached(Step::Connected);
            sleep(seconds(4)).await;
            "done"
        };
        assert_eq!(progress.within(steps).await, Ok("done"));
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_share_the_beginning_and_renew_their_own_time_alone() {
        let progress = Progress::new(TIMEOUT);
        sleep(seconds(4)).await;
        progress.reached(Step::Begun);
        let (slow, silent) = (progress.branch(), progress.branch());
        sleep(seconds(4)).await;
        slow.reached(Step::Connected);
        assert_eq!(slow.until() - Instant::now(), seconds(5));
        let over = silent.within(pending::<()>()).await;
        let (step, after) = (Step::Begun, seconds(9));
        assert_eq!(over, Err(Overdue { step, after }));
        sleep(seconds(3)).await;
        slow.reached(Step::Proved);
        assert_eq!(slow.until() - Instant::now(), seconds(3));
    }
}
