//! What errors of a socket mean: how it is read while it fails to receive, and when it has failed for so long that the room
//! binds another one.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::time::Instant;

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

/// A direction in which a socket gives nothing but errors for this long has failed: within the heartbeat timeout of the default
/// settings, so that a new socket saves most links.
pub(super) const LASTING: Duration = Duration::from_millis(500);
/// Fewer errors than this say nothing about the socket, whatever time lies between them.
const MIN_ERRORS: u32 = 5;

/// The errors of the socket itself, in one direction, since something was sent or received.
#[derive(Debug, Default)]
pub(super) struct Row {
    since: Option<Instant>,
    errors: u32,
}

impl Row {
    /// Something was sent, or received.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Counts an error of the socket itself. Returns whether the socket has failed.
    pub(super) fn add(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        self.errors = self.errors.saturating_add(1);
        self.errors >= MIN_ERRORS && now.saturating_duration_since(since) >= LASTING
    }
}

/// Whether an error of a read is about a packet that was sent before (ICMP), or about one that does not fit: the socket works.
pub(super) fn is_about_a_packet(error: &io::Error) -> bool {
    let by_kind = matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset // so Windows calls it
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::TimedOut
            | ErrorKind::OutOfMemory
            | ErrorKind::Interrupted
    );
    let numbers = about_a_packet();
    by_kind
        || error
            .raw_os_error()
            .is_some_and(|number| numbers.contains(&number))
}

/// Whether an error of a send is about this packet, its destination or the network: the socket works, or another one would not.
pub(super) fn is_about_a_destination(error: &io::Error) -> bool {
    let by_kind = matches!(
        error.kind(),
        ErrorKind::NetworkDown
            | ErrorKind::PermissionDenied // a firewall
            | ErrorKind::AddrNotAvailable
            | ErrorKind::InvalidInput
            | ErrorKind::Unsupported
    );
    by_kind || is_about_a_packet(error)
}

/// Whether a packet is longer than the path carries.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    let number = about_a_packet().first();
    number.is_some() && error.raw_os_error() == number.copied()
}

/// Too long (the first), no buffer, and the ICMP errors that have no kind.
#[cfg(unix)]
fn about_a_packet() -> &'static [i32] {
    use libc::{EHOSTDOWN, EMSGSIZE, ENOBUFS, ENOPROTOOPT, EOPNOTSUPP, EPROTO};
    &[
        EMSGSIZE,
        ENOBUFS,
        ENOPROTOOPT,
        EOPNOTSUPP,
        EPROTO,
        EHOSTDOWN,
    ]
}

/// WSAEMSGSIZE (the first), WSAENOBUFS, WSAENETRESET and WSAEHOSTDOWN.
#[cfg(windows)]
fn about_a_packet() -> &'static [i32] {
    &[10040, 10055, 10052, 10064]
}

#[cfg(not(any(unix, windows)))]
fn about_a_packet() -> &'static [i32] {
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One error every 50 ms, beginning with an idle socket: the time after which it has failed.
    fn failed_after(row: &mut Row, from: Instant) -> Duration {
        let mut now = from;
        while !row.add(now) {
            now += Duration::from_millis(50);
        }
        now - from
    }

    #[test]
    fn a_socket_has_failed_after_half_a_second_of_nothing_but_errors() {
        let (mut row, start) = (Row::default(), Instant::now());
        assert_eq!(failed_after(&mut row, start), LASTING);
        row.end();
        assert_eq!(failed_after(&mut row, start + LASTING), LASTING);
    }

    #[test]
    fn four_errors_are_too_few_whatever_the_time_between_them() {
        let (mut row, start) = (Row::default(), Instant::now());
        for minutes in 0..4 {
            assert!(!row.add(start + Duration::from_secs(60) * minutes));
        }
        assert!(row.add(start + Duration::from_secs(240)));
    }

    #[cfg(unix)]
    #[test]
    fn errors_of_single_packets_do_not_count_against_the_socket() {
        let of = |number: i32| io::Error::from_raw_os_error(number);
        for number in [
            libc::ECONNREFUSED,
            libc::EHOSTUNREACH,
            libc::ENETUNREACH,
            libc::EMSGSIZE,
            libc::ENOBUFS,
            libc::ENOMEM,
            libc::EPROTO,
        ] {
            assert!(is_about_a_packet(&of(number)), "{}", of(number));
            assert!(is_about_a_destination(&of(number)), "{}", of(number));
        }
        for number in [libc::EPERM, libc::EACCES, libc::EINVAL, libc::ENETDOWN] {
            assert!(!is_about_a_packet(&of(number)), "{}", of(number));
            assert!(is_about_a_destination(&of(number)), "{}", of(number));
        }
        for number in [libc::EBADF, libc::ENOTSOCK, libc::EPIPE, libc::ENOTCONN] {
            assert!(!is_about_a_destination(&of(number)), "{}", of(number));
        }
    }

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
