//! Timers of the driver: one row for each thing that may wait for time alone.

use std::time::Duration;

use tokio::time::Instant;

/// Lateness at which a loop counts as stopped or starved: it reads what has arrived before it judges silence.
const LATE: Duration = Duration::from_millis(100);
/// Time to read what has arrived.
const CATCH_UP: Duration = Duration::from_millis(20);
/// Longest sleep of the driver if no deadline is set.
const FAR: Duration = Duration::from_secs(3600);

/// Kinds of timers. Expired timers are served in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// The core's next tick.
    Core,
    /// The limit for reading the last messages of a peer that left.
    Departure,
    /// The interval for polling whether the host has received a departure that an admission waits for.
    HostPoll,
    /// The limit for a message on behalf of another member that waits for a link of its origin.
    Origin,
    /// The limit for a message that waits until the external store confirms its sender as leader.
    Leadership,
    /// The next dial of a stranger that a relay presents.
    Stranger,
    /// The next tick of the room's state.
    State,
}

impl Timer {
    /// Every timer, each at its own index.
    pub(super) const ALL: [Self; 7] = [
        Self::Core,
        Self::Departure,
        Self::HostPoll,
        Self::Origin,
        Self::Leadership,
        Self::Stranger,
        Self::State,
    ];
}

/// The deadline of each timer.
#[derive(Debug, Default)]
pub(super) struct TimerTable {
    deadlines: [Option<Instant>; Timer::ALL.len()],
    /// No timer expires before this: the driver first reads what has arrived.
    held_until: Option<Instant>,
}

impl TimerTable {
    pub(super) fn get(&self, timer: Timer) -> Option<Instant> {
        self.deadlines[timer as usize]
    }

    /// Sets a deadline, or clears it.
    pub(super) fn set(&mut self, timer: Timer, deadline: Option<Instant>) {
        self.deadlines[timer as usize] = deadline;
    }

    /// When the first timer expires.
    pub(super) fn next(&self) -> Instant {
        let first = self.deadlines.iter().flatten().min().copied();
        let first = first.unwrap_or_else(|| Instant::now() + FAR);
        self.held_until.map_or(first, |held| first.max(held))
    }

    /// Records a wakeup at `now`, which is `late` after the planned time. Returns whether that is far too
    /// late: then no timer expires for a moment.
    pub(super) fn woke(&mut self, now: Instant, late: Duration) -> bool {
        let stalled = late > LATE && self.held_until.is_none();
        self.held_until = stalled.then(|| now + CATCH_UP);
        stalled
    }

    /// Takes the next timer that has expired out of the table.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Timer> {
        let expired = |timer: &Timer| self.get(*timer).is_some_and(|deadline| deadline <= now);
        let timer = Timer::ALL.into_iter().find(expired)?;
        self.set(timer, None);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timer_has_a_row_of_its_own() {
        for (row, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, row);
        }
    }

    #[test]
    fn expired_timers_are_served_once_and_in_order() {
        let start = Instant::now();
        let at = |ms| Some(start + Duration::from_millis(ms));
        let mut table = TimerTable::default();
        table.set(Timer::Origin, at(1));
        table.set(Timer::Departure, at(2));
        table.set(Timer::Core, at(3));
        assert_eq!(table.next(), start + Duration::from_millis(1));
        assert_eq!(table.pop_expired(start), None);
        let now = start + Duration::from_millis(2);
        assert_eq!(table.pop_expired(now), Some(Timer::Departure));
        assert_eq!(table.pop_expired(now), Some(Timer::Origin));
        assert_eq!(table.pop_expired(now), None);
        assert_eq!(table.next(), start + Duration::from_millis(3));
    }

    #[test]
    fn a_late_loop_reads_before_anything_expires() {
        let start = Instant::now();
        let mut table = TimerTable::default();
        table.set(Timer::Core, Some(start));
        let late = LATE + Duration::from_millis(1);
        assert!(table.woke(start + late, late));
        assert_eq!(table.next(), start + late + CATCH_UP);
        // However long the reading took, the timers are served now.
        assert!(!table.woke(start + late + 2 * LATE, 2 * LATE));
        assert_eq!(table.next(), start);
    }
}
