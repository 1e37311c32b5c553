//! Silence of a relay that is in use. Pure.
//!
//! A relay acknowledges every packet. So a member none of whose packets is acknowledged sends probes, and takes the relay for
//! silent after half a second, or two round trips after the first probe. Other packets of the relay do not count, nor do
//! acknowledgements that it repeats: they come although nothing gets there.

use std::time::Duration;

use tokio::time::Instant;

use crate::core::membership::RELAY_GRACE;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(125);
/// Time after which a quiet relay gets probes, one with each look, and the least that it has to answer the first.
const QUIET_AFTER: Duration = Duration::from_millis(250);
/// Time without an answer after which the relay is silent.
const FALLEN_AFTER: Duration = Duration::from_millis(500);
/// Time after which the silence of a relay is noticed, on a line whose round trip is shorter than half of [`QUIET_AFTER`].
const NOTICED_WITHIN: Duration = FALLEN_AFTER.saturating_add(INTERVAL);
/// Time without an answer after which the link is over.
const OVER_AFTER: Duration = Duration::from_millis(1500);
/// A look that comes so late shows a delay of this process: what has arrived meanwhile may not have been read.
const LATE: Duration = Duration::from_millis(150);
/// Time until the look after a late one.
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Round trips that an answer to the first probe may take, and those until the link is over.
const RTTS_TO_FALL: u32 = 2;
const RTTS_TO_END: u32 = 6;

/// Minimum idle timeout of connections over a relay that this node accepts. Nothing passes on them while the room waits for a
/// relay that has fallen.
const MIN_RELAYED_IDLE_TIMEOUT: Duration = Duration::from_secs(8);
/// Time that is left for the first packets when the relay returns at the end of the grace: QUIC doubles the waits between its
/// probes.
const AFTER_GRACE: Duration = Duration::from_secs(3);
const _: () = assert!(
    MIN_RELAYED_IDLE_TIMEOUT.as_millis()
        >= NOTICED_WITHIN.as_millis() + RELAY_GRACE.as_millis() + AFTER_GRACE.as_millis()
);

/// Idle timeout of connections over a relay that this node accepts; `idle_timeout` is that of direct ones.
pub(crate) fn relayed_idle_timeout(idle_timeout: Duration) -> Duration {
    idle_timeout.max(MIN_RELAYED_IDLE_TIMEOUT)
}

/// Result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// A packet was acknowledged since the last look.
    Answered,
    /// None was, but for less than [`QUIET_AFTER`].
    Quiet,
    /// None was for a while: a probe is due.
    Probe,
    /// The relay is silent; a probe is due.
    Fallen,
    /// It has been silent for too long.
    Over,
}

/// The silence of a link.
#[derive(Debug)]
pub(super) struct Silence {
    /// Bytes acknowledged so far.
    answers: u64,
    since: Instant,
    /// Time of the first probe.
    probed: Option<Instant>,
    next_look: Instant,
}

impl Silence {
    /// Starts with a link that works.
    pub(super) fn new(now: Instant, answers: u64) -> Self {
        Self {
            answers,
            since: now,
            probed: None,
            next_look: now + INTERVAL,
        }
    }

    /// Starts with a link that is silent.
    pub(super) fn of_silent(now: Instant, answers: u64) -> Self {
        let since = now.checked_sub(FALLEN_AFTER).unwrap_or(now);
        Self {
            since,
            probed: Some(since),
            ..Self::new(now, answers)
        }
    }

    /// Time of the next look.
    pub(super) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Looks at the bytes that are acknowledged so far.
    pub(super) fn look(&mut self, now: Instant, answers: u64, rtt: Duration) -> Look {
        let late = now.saturating_duration_since(self.next_look);
        self.next_look = now + INTERVAL;
        if answers != self.answers {
            *self = Self::new(now, answers);
            return Look::Answered;
        }
        if late >= LATE {
            // The delay does not count. All else does, so that a busy machine notices in time, too.
            self.since += late;
            self.probed = self.probed.map(|probed| probed + late);
            self.next_look = now + LOOKS_AGAIN_AFTER;
            return Look::Quiet;
        }
        let silent = now.saturating_duration_since(self.since);
        if silent < QUIET_AFTER {
            return Look::Quiet;
        }
        let unanswered = now.saturating_duration_since(*self.probed.get_or_insert(now));
        if silent >= OVER_AFTER && unanswered >= rtt * RTTS_TO_END {
            Look::Over
        } else if silent >= FALLEN_AFTER && unanswered >= QUIET_AFTER.max(rtt * RTTS_TO_FALL) {
            Look::Fallen
        } else {
            Look::Probe
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_silent_relay_is_probed_then_fallen_and_then_over() {
        let start = Instant::now();
        let mut silence = Silence::new(start, 7);
        let looks: Vec<_> = (1..=12)
            .map(|n| silence.look(at(start, n * 125), 7, RTT))
            .collect();
        use Look::{Fallen, Over, Probe, Quiet};
        assert_eq!(looks[..4], [Quiet, Probe, Probe, Fallen]);
        assert!(looks[4..11].iter().all(|look| *look == Fallen));
        assert_eq!(looks[11], Over);
    }

    #[test]
    fn an_answer_ends_the_silence_and_a_slow_line_gets_more_time() {
        let start = Instant::now();
        let mut silence = Silence::new(start, 0);
        let slow = Duration::from_millis(600);
        let mut frames = 0;
        for n in 1..100 {
            // Each answer takes a round trip, and the others' packets come twice a second.
            frames += u64::from(n % 3 == 0);
            let look = silence.look(at(start, n * 250), frames, slow);
            assert!(
                matches!(look, Look::Answered | Look::Quiet | Look::Probe),
                "{look:?}"
            );
        }
    }

    #[test]
    fn a_process_that_slept_does_not_blame_the_relay() {
        let start = Instant::now();
        let mut silence = Silence::new(start, 0);
        assert_eq!(silence.look(at(start, 5000), 0, RTT), Look::Quiet);
        assert_eq!(silence.look(at(start, 5250), 1, RTT), Look::Answered);
    }

    #[test]
    fn the_delays_of_a_busy_process_are_all_that_does_not_count() {
        let start = Instant::now();
        let (mut now, mut silence) = (start, Silence::new(start, 0));
        let mut delayed = Duration::ZERO;
        // Every other look is late.
        for delay in [200, 0].into_iter().cycle() {
            let delay = Duration::from_millis(delay);
            now = silence.next_look() + delay;
            delayed += delay;
            if silence.look(now, 0, RTT) == Look::Fallen {
                break;
            }
        }
        assert_eq!(delayed, Duration::from_millis(800));
        assert!(now - start - delayed <= FALLEN_AFTER + 2 * INTERVAL);
    }

    #[test]
    fn a_silent_link_that_answers_is_used_again() {
        let start = Instant::now();
        let mut silence = Silence::of_silent(start, 3);
        assert_eq!(silence.look(at(start, 250), 3, RTT), Look::Fallen);
        assert_eq!(silence.look(at(start, 500), 4, RTT), Look::Answered);
        let mut silence = Silence::of_silent(start, 3);
        let over = (1..=4).find(|n| silence.look(at(start, n * 250), 3, RTT) == Look::Over);
        assert_eq!(over, Some(4));
    }
}
