//! Slows down who guesses a room's secret: counts failed confirmations, by address and in all.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Failures from one address within [`WINDOW`] after which it is refused.
pub(crate) const MAX_FAILURES_OF_ONE: usize = 5;
/// Failures from everywhere within [`WINDOW`] after which everyone is refused. Also the most that is
/// remembered, so that no remote can make the list grow.
pub(crate) const MAX_FAILURES_IN_ALL: usize = 60;
/// How long a failure counts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// The failed confirmations of the last minute.
///
/// Only the newest [`MAX_FAILURES_IN_ALL`] are kept. That loses nothing: while an older one would still
/// count, the kept ones count too, and everyone is refused.
#[derive(Debug, Default)]
pub(crate) struct FailedAdmissions {
    /// Oldest first.
    failures: VecDeque<(Instant, Source)>,
}

impl FailedAdmissions {
    /// Notes a failed confirmation of `address`. An address that is refused cannot get here, but links
    /// that were in admission already can.
    pub(crate) fn record(&mut self, now: Instant, address: IpAddr) {
        self.forget_before(now);
        if self.failures.len() == MAX_FAILURES_IN_ALL {
            self.failures.pop_front();
        }
        self.failures.push_back((now, Source::of(address)));
    }

    /// Whether a new link from `address` may start its admission.
    pub(crate) fn allows(&mut self, now: Instant, address: IpAddr) -> bool {
        self.forget_before(now);
        if self.failures.len() >= MAX_FAILURES_IN_ALL {
            return false;
        }
        let source = Source::of(address);
        let failures = self.failures.iter().filter(|(_, from)| *from == source);
        failures.count() < MAX_FAILURES_OF_ONE
    }

    fn forget_before(&mut self, now: Instant) {
        while let Some((at, _)) = self.failures.front() {
            if now.saturating_duration_since(*at) < WINDOW {
                return;
            }
            self.failures.pop_front();
        }
    }
}

/// What counts as one address: one host may use every address of its IPv6 /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    V4(Ipv4Addr),
    V6Prefix([u16; 4]),
}

impl Source {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Self::V6Prefix([a, b, c, d])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn the_sixth_try_of_an_address_waits_until_the_first_failure_is_a_minute_old() {
        let start = Instant::now();
        let mut failed = FailedAdmissions::default();
        for second in 0..5 {
            assert!(failed.allows(after(start, second), ip("192.0.2.1")));
            failed.record(after(start, second), ip("192.0.2.1"));
        }
        assert!(!failed.allows(after(start, 5), ip("192.0.2.1")));
        assert!(!failed.allows(after(start, 59), ip("192.0.2.1")));
        assert!(failed.allows(after(start, 59), ip("192.0.2.2")));
        assert!(failed.allows(after(start, 60), ip("192.0.2.1")));
        failed.record(after(start, 60), ip("192.0.2.1"));
        assert!(!failed.allows(after(start, 60), ip("192.0.2.1")));
    }

    #[test]
    fn a_v6_host_gains_nothing_by_changing_its_address_within_its_64() {
        let now = Instant::now();
        let mut failed = FailedAdmissions::default();
        for host in 1..=5 {
            failed.record(now, ip(&format!("2001:db8:0:1::{host}")));
        }
        assert!(!failed.allows(now, ip("2001:db8:0:1:ffff::9")));
        assert!(failed.allows(now, ip("2001:db8:0:2::1")));
    }

    #[test]
    fn a_v4_mapped_address_is_the_v4_address() {
        let now = Instant::now();
        let mut failed = FailedAdmissions::default();
        for _ in 0..5 {
            failed.record(now, ip("::ffff:192.0.2.1"));
        }
        assert!(!failed.allows(now, ip("192.0.2.1")));
        assert!(failed.allows(now, ip("::ffff:192.0.2.2")));
    }

    #[test]
    fn sixty_failures_in_all_refuse_everyone_for_the_rest_of_the_minute() {
        let start = Instant::now();
        let mut failed = FailedAdmissions::default();
        for n in 0..60u8 {
            assert!(failed.allows(start, ip("198.51.100.1")));
            failed.record(after(start, u64::from(n / 6)), ip(&format!("192.0.2.{n}")));
        }
        assert!(!failed.allows(after(start, 10), ip("198.51.100.1")));
        assert!(!failed.allows(after(start, 59), ip("2001:db8::1")));
        assert!(failed.allows(after(start, 60), ip("198.51.100.1")));
    }

    #[test]
    fn however_many_fail_no_more_than_the_limit_is_remembered_and_everyone_stays_refused() {
        let start = Instant::now();
        let mut failed = FailedAdmissions::default();
        for n in 0..10_000u32 {
            let now = start + Duration::from_millis(u64::from(n));
            failed.record(now, IpAddr::V4(Ipv4Addr::from(n)));
            assert!(failed.failures.len() <= MAX_FAILURES_IN_ALL);
        }
        assert!(failed.failures.capacity() < 2 * MAX_FAILURES_IN_ALL + 16);
        assert!(!failed.allows(after(start, 69), ip("198.51.100.1")));
        assert!(failed.allows(after(start, 71), ip("198.51.100.1")));
    }

    #[test]
    fn a_clock_that_steps_back_forgets_nothing() {
        let start = Instant::now();
        let mut failed = FailedAdmissions::default();
        for _ in 0..5 {
            failed.record(after(start, 100), ip("192.0.2.1"));
        }
        assert!(!failed.allows(start, ip("192.0.2.1")));
    }
}
