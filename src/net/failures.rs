//! How a socket is read that fails to receive.

use std::time::Duration;

/// Failures in a row after which the socket is read again at once: some systems report here, packet by packet, that earlier
/// packets did not arrive.
const AT_ONCE: u32 = 64;
/// The first pause after more. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(256);

/// The consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    /// The socket is left alone so long.
    pub(super) pause: Duration,
    /// Whether the log names it: once, until something is received again.
    pub(super) warn: bool,
}

/// The failures of a socket since it received something.
#[derive(Debug, Default)]
pub(super) struct Failures {
    in_a_row: u32,
}

impl Failures {
    /// Something was received.
    pub(super) fn end(&mut self) {
        self.in_a_row = 0;
    }

    /// It failed once more.
    pub(super) fn add(&mut self) -> Next {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let pauses = self.in_a_row.saturating_sub(AT_ONCE);
        let longest = LONGEST_PAUSE.as_millis().ilog2();
        let pause = match pauses.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE * (1 << doublings.min(longest)),
        };
        Next {
            pause,
            warn: pauses == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_fails_for_a_minute_is_read_a_few_hundred_times_and_warned_of_once() {
        let mut failures = Failures::default();
        let (mut time, mut reads, mut warnings) = (Duration::ZERO, 0, 0);
        while time < Duration::from_secs(60) {
            let next = failures.add();
            assert!(next.pause <= LONGEST_PAUSE);
            time += next.pause;
            reads += 1;
            warnings += u32::from(next.warn);
        }
        assert!(reads < 400, "{reads}");
        assert_eq!(warnings, 1);
    }

    #[test]
    fn failures_between_packets_cost_no_time() {
        let mut failures = Failures::default();
        for _ in 0..1000 {
            for _ in 0..AT_ONCE {
                let next = failures.add();
                assert_eq!((next.pause, next.warn), (Duration::ZERO, false));
            }
            failures.end();
        }
    }
}
