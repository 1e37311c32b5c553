//! The monthly quota. Pure.
//!
//! A day takes at most four days' share of the month's rest, and at most half of it. So a flood costs a day and not the
//! month.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 3600;
/// Days' shares of the rest that one day may use.
const SHARES: u64 = 4;

/// The quota of a month of UTC, and how much of it is used.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    monthly: u64,
    used: Used,
    /// Days since 1970.
    day: u64,
    left_today: u64,
}

/// Bytes used in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    year: u64,
    /// From 1 to 12.
    month: u64,
    bytes: u64,
}

impl Used {
    /// The line that a file keeps.
    pub(crate) fn line(self) -> String {
        format!("{}-{:02} {}\n", self.year, self.month, self.bytes)
    }

    /// Reads [`Used::line`].
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (date, bytes) = line.trim_end().split_once(' ')?;
        let (year, month) = date.split_once('-')?;
        Some(Self {
            year: year.parse().ok()?,
            month: month.parse().ok()?,
            bytes: bytes.parse().ok()?,
        })
    }
}

impl Quota {
    /// At most `monthly` bytes a month. `used` counts if it is of this month.
    pub(crate) fn new(monthly: u64, now: SystemTime, used: Option<Used>) -> Self {
        let day = day_of(now);
        let (year, month, _) = date_of(day);
        let bytes = match used {
            Some(used) if (used.year, used.month) == (year, month) => used.bytes,
            _ => 0,
        };
        let mut quota = Self {
            monthly,
            used: Used { year, month, bytes },
            day,
            left_today: 0,
        };
        quota.begin(day);
        quota
    }

    /// Counts bytes.
    pub(crate) fn spend(&mut self, now: SystemTime, bytes: u64) {
        let day = day_of(now);
        if day != self.day {
            self.begin(day);
        }
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        self.left_today = self.left_today.saturating_sub(bytes);
    }

    /// Whether nothing is left for now.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left_today == 0
    }

    /// The quota, and its use so far.
    pub(crate) fn figures(&self) -> (u64, u64) {
        (self.monthly, self.used.bytes)
    }

    /// Bytes used this month.
    pub(crate) fn used(&self) -> Used {
        self.used
    }

    fn begin(&mut self, day: u64) {
        let (year, month, of_month) = date_of(day);
        if (year, month) != (self.used.year, self.used.month) {
            let bytes = 0;
            self.used = Used { year, month, bytes };
        }
        self.day = day;
        let left = self.monthly.saturating_sub(self.used.bytes);
        let days = days_of(year, month) - of_month + 1;
        self.left_today = match days {
            1 => left,
            _ => (left / days).saturating_mul(SHARES).min(left / 2),
        };
    }
}

fn day_of(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / DAY_SECONDS
}

/// Year, month and day of the month, these two from 1.
fn date_of(mut day: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    loop {
        let days = 365 + u64::from(is_leap(year));
        if day < days {
            break;
        }
        day -= days;
        year += 1;
    }
    let mut month = 1;
    while day >= days_of(year, month) {
        day -= days_of(year, month);
        month += 1;
    }
    (year, month, day + 1)
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn day(day: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(day * DAY_SECONDS + 7)
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (number, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_454, (2026, 1, 1)),
            (20_818, (2026, 12, 31)),
        ] {
            assert_eq!(date_of(number), date);
        }
    }

    #[test]
    fn a_flood_uses_up_one_day_and_not_the_month() {
        // 31 days.
        let mut quota = Quota::new(31 << 30, day(20_454), None);
        quota.spend(day(20_454), (4 << 30) - 1);
        assert!(!quota.is_used_up());
        quota.spend(day(20_454), 1 << 20);
        assert!(quota.is_used_up());
        for number in 20_455..20_485 {
            quota.spend(day(number), 0);
            assert!(!quota.is_used_up(), "{number}");
            while !quota.is_used_up() {
                quota.spend(day(number), 1 << 20);
            }
        }
        assert!(quota.figures().1 < (31 << 30) + (31 << 20), "{quota:?}");
        quota.spend(day(20_485), 1);
        assert_eq!(quota.figures(), (31 << 30, 1));
    }

    #[test]
    fn a_restarted_relay_knows_what_it_has_used() {
        let mut quota = Quota::new(3100, day(20_460), None);
        quota.spend(day(20_460), 250);
        let used = Used::parse(&quota.used().line());
        assert_eq!(used, Some(quota.used()));
        let again = Quota::new(3100, day(20_470), used);
        assert_eq!(again.figures(), (3100, 250));
        let next_month = Quota::new(3100, day(20_490), used);
        assert_eq!(next_month.figures(), (3100, 0));
        for malformed in ["", "2026-01", "2026 5", "a-b c", "2026-01 x"] {
            assert_eq!(Used::parse(malformed), None);
        }
    }
}
