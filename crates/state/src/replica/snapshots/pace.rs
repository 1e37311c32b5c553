//! How much of a snapshot is under way to one member: as much as keeps the line busy, and no more.
//!
//! A snapshot is megabytes, and the game's messages share the line with it. So the window follows the delay that the parts cause,
//! like that of LEDBAT (RFC 6817): it grows while answers take little longer than the link's round trip, and shrinks once parts
//! wait in a queue. The round trip is known before the first part, which may find the line full.

use std::collections::VecDeque;

use room_core::time::{Duration, Time};

use crate::limits::{MAX_PARTS_UNDER_WAY, MIN_SNAPSHOT_BYTES_UNDER_WAY, PART_BYTES};

/// Time that parts may wait in the line's queue, and so the delay that they add to other messages.
const TARGET: Duration = Duration::from_millis(5);
/// A line whose answers always come late carries the whole snapshot in about this time all the same.
const LONGEST: Duration = Duration::from_secs(60);
/// Parts of one window: a part that is short takes the line for a short time.
const PARTS_OF_A_WINDOW: usize = 8;
/// Growth of the window in one round trip at most, in bytes, once a queue has been seen.
const STEP: usize = 4 * 1024;

/// The window of one member.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    window: usize,
    /// The round trip of a line without queues: the link's first one, or a shorter time from a part to its answer.
    round_trip: Duration,
    /// Whether no queue has been seen: the window doubles in each round trip.
    doubles: bool,
    arrived: usize,
    /// The ends of the parts under way, and the times at which they went.
    under_way: VecDeque<(usize, Time)>,
}

impl Pace {
    pub(super) fn new(round_trip: Duration) -> Self {
        Self {
            window: MIN_SNAPSHOT_BYTES_UNDER_WAY,
            round_trip,
            doubles: true,
            arrived: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Another snapshot follows for the same member.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::new(self.round_trip);
    }

    /// The bytes that have arrived.
    pub(super) fn arrived(&self) -> usize {
        self.arrived
    }

    /// Length of the next part, in bytes, after `sent` bytes; `None` while enough is under way.
    pub(super) fn next_part(&self, sent: usize) -> Option<usize> {
        let is_free = sent < self.arrived + self.window;
        is_free.then(|| (self.window / PARTS_OF_A_WINDOW).clamp(1, PART_BYTES))
    }

    /// A part went out; with it, the first `end` bytes of the snapshot have.
    pub(super) fn note_sent(&mut self, now: Time, end: usize) {
        self.under_way.push_back((end, now));
    }

    /// The first `arrived` bytes of a snapshot of `total` bytes have arrived.
    pub(super) fn note_arrived(&mut self, now: Time, arrived: usize, total: usize) {
        let answered = self.under_way.partition_point(|(end, _)| *end <= arrived);
        let newest = self.under_way.drain(..answered).next_back();
        let took = newest.map(|(_, sent)| now.since(sent));
        let new = arrived.saturating_sub(self.arrived);
        self.arrived = self.arrived.max(arrived);
        if let Some(took) = took {
            self.round_trip = self.round_trip.min(took);
            self.adjust(took - self.round_trip, new);
            // Of the round trip without queues: a queue that the window itself fills must not make it grow.
            let needed = total as u128 * self.round_trip.as_micros() / LONGEST.as_micros();
            let needed = usize::try_from(needed).unwrap_or(usize::MAX);
            let least = needed.max(MIN_SNAPSHOT_BYTES_UNDER_WAY);
            let most = MAX_PARTS_UNDER_WAY * PART_BYTES;
            self.window = self.window.clamp(least.min(most), most);
        }
    }

    /// Adjusts the window after `new` bytes that have waited for `queued` in queues.
    fn adjust(&mut self, queued: Duration, new: usize) {
        if self.doubles && queued <= TARGET / 2 {
            self.window += new;
            return;
        }
        self.doubles = false;
        let part = |of: Duration| {
            let step = STEP as u128 * new as u128 / self.window as u128;
            usize::try_from(step * of.as_micros() / TARGET.as_micros()).unwrap_or(usize::MAX)
        };
        if queued <= TARGET {
            self.window += part(TARGET - queued);
        } else {
            // By at most a half in a round trip, however long the queue is.
            let less = part(queued - TARGET).min(new / 2);
            self.window = self.window.saturating_sub(less);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with a queue that drops nothing.
    struct Line {
        bytes_per_second: u64,
        /// There and back, without a queue.
        round_trip: Duration,
        /// Added to each answer, in turns.
        jitter: [Duration; 3],
        /// Bytes in front of the first part.
        ahead: usize,
    }

    /// How a snapshot went over a line.
    #[derive(Debug)]
    struct Went {
        took: Duration,
        /// The longest time that a part waited for those before it, once half of the snapshot had arrived.
        queued: Duration,
    }

    impl Line {
        fn quiet(bytes_per_second: u64, round_trip_ms: u64) -> Self {
            Self {
                bytes_per_second,
                round_trip: Duration::from_millis(round_trip_ms),
                jitter: [Duration::ZERO; 3],
                ahead: 0,
            }
        }

        fn carries(&self, bytes: usize) -> Duration {
            Duration::from_micros(bytes as u64 * 1_000_000 / self.bytes_per_second)
        }

        fn transfer(&self, total: usize) -> Went {
            let mut pace = Pace::new(self.round_trip);
            let (mut now, mut sent) = (Time::ZERO, 0);
            let mut free_at = now + self.carries(self.ahead);
            let mut answers = VecDeque::new();
            let mut queued = Duration::ZERO;
            for jitter in self.jitter.into_iter().cycle() {
                while sent < total
                    && let Some(part) = pace.next_part(sent)
                {
                    if sent > total / 2 {
                        queued = queued.max(free_at.since(now));
                    }
                    let end = total.min(sent + part);
                    free_at = free_at.max(now) + self.carries(end - sent);
                    answers.push_back((free_at + self.round_trip, end));
                    pace.note_sent(now, end);
                    sent = end;
                }
                let Some((at, end)) = answers.pop_front() else {
                    break;
                };
                now = now.max(at + jitter);
                pace.note_arrived(now, end, total);
            }
            assert_eq!(pace.arrived, total);
            let took = now.since(Time::ZERO);
            Went { took, queued }
        }
    }

    const SNAPSHOT: usize = 8 << 20;

    #[test]
    fn a_slow_line_is_used_and_messages_do_not_wait_for_long() {
        let line = Line::quiet(250_000, 30);
        let went = line.transfer(SNAPSHOT);
        assert!(went.took < line.carries(SNAPSHOT) * 5 / 4, "{went:?}");
        assert!(went.queued < 2 * TARGET, "{went:?}");
    }

    #[test]
    fn a_line_that_is_full_at_first_counts_as_full() {
        let line = Line {
            ahead: 500_000,
            ..Line::quiet(250_000, 30)
        };
        let went = line.transfer(SNAPSHOT);
        assert!(went.took < line.carries(SNAPSHOT) * 4 / 3, "{went:?}");
        assert!(went.queued < 2 * TARGET, "{went:?}");
    }

    #[test]
    fn a_fast_line_is_used() {
        for round_trip_ms in [1, 30] {
            let went = Line::quiet(100 << 20, round_trip_ms).transfer(SNAPSHOT);
            let most = Duration::from_millis(200 + 50 * round_trip_ms);
            assert!(went.took < most, "{round_trip_ms} ms: {went:?}");
        }
    }

    #[test]
    fn a_line_that_always_looks_busy_carries_a_snapshot_in_time() {
        let line = Line {
            jitter: [0, 40, 90].map(Duration::from_millis),
            ..Line::quiet(10 << 20, 200)
        };
        let went = line.transfer(SNAPSHOT);
        assert!(
            went.took < crate::limits::SNAPSHOT_LIFETIME * 3 / 4,
            "{went:?}"
        );
    }

    #[test]
    fn answers_change_nothing_beyond_the_most_that_may_be_under_way() {
        let mut pace = Pace::new(Duration::ZERO);
        for end in (0..100 << 20).step_by(1 << 20) {
            pace.note_sent(Time::ZERO, end);
            pace.note_arrived(Time::ZERO, end, SNAPSHOT);
        }
        assert_eq!(pace.window, MAX_PARTS_UNDER_WAY * PART_BYTES);
        assert_eq!(pace.under_way.len(), 0);
    }
}
