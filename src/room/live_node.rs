//! The core on the real clock: its time, the wall clock, and the trace of its inputs and outputs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::trace::Trace;
use crate::clock::Moment;
use crate::core::election::bound::WallClock;
use crate::core::node::{CommandError, Input, Node, Output};
use crate::core::time::Time;

/// A wall clock that differs this much from the core's was set, or the machine slept.
const CLOCK_SET: Duration = Duration::from_millis(100);

/// The core of an open room.
pub(super) struct LiveNode {
    pub(super) core: Node,
    origin: Moment,
    /// The wall clock as the core knows it.
    wall_clock: WallClock,
    trace: Trace,
}

impl LiveNode {
    /// Wraps `core`, which was made at [`Time::ZERO`]. That was `origin` on the room's clock, and
    /// `wall_clock` on the wall clock.
    pub(super) fn new(core: Node, origin: Moment, wall_clock: Duration, trace: Trace) -> Self {
        Self {
            core,
            origin,
            wall_clock: WallClock::new(Time::ZERO, wall_clock),
            trace,
        }
    }

    /// The core's time.
    pub(super) fn now(&self) -> Time {
        let micros = Moment::now().since(self.origin).as_micros();
        Time::from_micros(micros.try_into().unwrap_or(u64::MAX))
    }

    /// When the core needs a tick; in the past if it was due while the machine slept.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let at = self.core.next_deadline()?;
        // In this order: no timer expires before its time on the core's clock.
        let (now, timer_now) = (self.now(), Instant::now());
        let late = timer_now.checked_sub(now.since(at)).unwrap_or(timer_now);
        Some(late + at.since(now))
    }

    /// The core's time `at` on the clock of the room.
    pub(super) fn moment(&self, at: Time) -> Moment {
        self.origin + Duration::from_micros(at.as_micros())
    }

    /// Gives the core an input; its outputs follow.
    ///
    /// # Errors
    /// The core's, for a command that it refuses.
    pub(super) fn handle(&mut self, input: Input) -> Result<(), CommandError> {
        let now = self.now();
        self.trace.input(now, &self.core, &input);
        let result = self.core.handle(now, input);
        if let Err(error) = &result {
            self.trace.refused(now, error);
        }
        result
    }

    /// Begins to poll outputs; returns the time for that.
    pub(super) fn begin_outputs(&mut self) -> Time {
        let now = self.now();
        self.trace.state(now, &self.core);
        now
    }

    /// The next output, `None` after the last.
    pub(super) fn poll_output(&mut self, now: Time) -> Option<Output> {
        let output = self.core.poll_output();
        match &output {
            Some(output) => self.trace.output(now, &self.core, output),
            None => self.trace.pass_on(),
        }
        output
    }

    /// The wall clock's time, if it is not what the core expects.
    pub(super) fn wall_clock_set(&mut self) -> Option<Duration> {
        let (now, shows) = (self.now(), since_1970());
        if shows.abs_diff(self.wall_clock.at(now)) <= CLOCK_SET {
            return None;
        }
        self.wall_clock = WallClock::new(now, shows);
        Some(shows)
    }

    /// Records that the loop was so late that its process must have been stopped.
    pub(super) fn stalled(&mut self, late: Duration) {
        self.trace.stalled(self.now(), late);
    }

    /// Finishes the trace of a room that was left: it is complete when this returns.
    pub(super) fn finish(self) {
        let now = self.now();
        self.trace.finish(now);
    }
}

/// The wall clock's time. A clock before 1970 counts as 1970.
pub(super) fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
