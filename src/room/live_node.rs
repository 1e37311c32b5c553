//! The core on the real clock: its time, the wall clock, and the trace of its inputs and outputs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::trace::Trace;
use crate::clock::Moment;
use crate::core::election::bound::WallClock;
use crate::core::node::{CommandError, Input, Node, Output};
use crate::core::time::Time;
use crate::snapshot::RoomTime;

/// A wall clock that differs this much from the core's was set, or the machine slept.
const CLOCK_SET: Duration = Duration::from_millis(100);

/// The time of a room's core.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoomClock {
    /// The moment of [`Time::ZERO`].
    origin: Moment,
}

impl RoomClock {
    pub(super) fn starting_at(origin: Moment) -> Self {
        Self { origin }
    }

    pub(super) fn now(self) -> Time {
        let micros = Moment::now().since(self.origin).as_micros();
        Time::from_micros(micros.try_into().unwrap_or(u64::MAX))
    }

    /// The room's time `at` on the timers of the runtime; in the past if it passed while the machine slept.
    pub(super) fn instant(self, at: Time) -> Instant {
        // In this order: no timer expires before its time on the room's clock.
        let (now, timer_now) = (self.now(), Instant::now());
        let late = timer_now.checked_sub(now.since(at)).unwrap_or(timer_now);
        late + at.since(now)
    }
}

/// The core of an open room.
pub(super) struct LiveNode {
    pub(super) core: Node,
    pub(super) clock: RoomClock,
    /// The wall clock as the core knows it.
    wall_clock: WallClock,
    trace: Trace,
}

impl LiveNode {
    /// Wraps `core`, which was made at [`Time::ZERO`] of `clock`. That was `wall_clock` on the wall clock.
    pub(super) fn new(core: Node, clock: RoomClock, wall_clock: Duration, trace: Trace) -> Self {
        Self {
            core,
            clock,
            wall_clock: WallClock::new(Time::ZERO, wall_clock),
            trace,
        }
    }

    /// The core's time.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// When the core needs a tick; in the past if it was due while the machine slept.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let at = self.core.next_deadline()?;
        Some(self.clock.instant(at))
    }

    /// The core's time `at` on the clock of the room.
    pub(super) fn moment(&self, at: Time) -> Moment {
        self.clock.origin + Duration::from_micros(at.as_micros())
    }

    /// The room's time until the next input.
    pub(super) fn room_time(&self) -> RoomTime {
        RoomTime {
            origin: self.clock.origin,
            line: self.core.room_time(),
        }
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
