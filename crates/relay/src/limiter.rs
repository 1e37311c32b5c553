//! How often a site may do something. Pure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::networks::Site;

/// Sites that one limiter follows at a time; it does not limit further ones. Each of them has proved its address.
const MAX_SITES: usize = 16384;

/// A number at once, and a number in a time after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// At once.
    pub(crate) burst: u32,
    /// Time after which the whole burst is allowed again.
    pub(crate) within: Duration,
}

impl Allowance {
    /// Time after which one more is allowed.
    fn each(self) -> Duration {
        self.within / self.burst
    }
}

/// One account of an [`Allowance`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    /// When the burst is whole again.
    whole_at: Instant,
}

impl Account {
    /// Nothing is used.
    pub(crate) fn new(now: Instant) -> Self {
        Self { whole_at: now }
    }

    /// Uses one, if one is left.
    pub(crate) fn take(&mut self, now: Instant, allowance: Allowance) -> bool {
        if !self.has(now, allowance) {
            return false;
        }
        self.whole_at = self.whole_at.max(now) + allowance.each();
        true
    }

    /// Whether one is left.
    pub(crate) fn has(&self, now: Instant, allowance: Allowance) -> bool {
        self.next(now, allowance) == now
    }

    /// When one is left.
    pub(crate) fn next(&self, now: Instant, allowance: Allowance) -> Instant {
        let used = allowance.within - allowance.each();
        self.whole_at
            .checked_sub(used)
            .map_or(now, |at| at.max(now))
    }
}

/// An account for each site.
#[derive(Debug)]
pub(crate) struct Limiter {
    allowance: Allowance,
    accounts: HashMap<Site, Account>,
}

impl Limiter {
    /// Nothing is used.
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            accounts: HashMap::new(),
        }
    }

    /// Uses one of `site`, if one is left.
    pub(crate) fn take(&mut self, now: Instant, site: Site) -> bool {
        if self.accounts.len() >= MAX_SITES && !self.accounts.contains_key(&site) {
            self.accounts.retain(|_, account| now < account.whole_at);
            if self.accounts.len() >= MAX_SITES {
                return true;
            }
        }
        let account = self.accounts.entry(site).or_insert(Account::new(now));
        account.take(now, self.allowance)
    }

    /// Whether one of `site` is left.
    pub(crate) fn has(&self, now: Instant, site: Site) -> bool {
        let account = self.accounts.get(&site);
        account.is_none_or(|account| account.has(now, self.allowance))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;

    const FIVE_A_MINUTE: Allowance = Allowance {
        burst: 5,
        within: Duration::from_secs(60),
    };

    fn site(number: u128) -> Site {
        Site::of(IpAddr::V6(Ipv6Addr::from_bits(number << 80)))
    }

    #[test]
    fn a_site_has_its_burst_and_then_one_at_a_time() {
        let (mut limiter, start) = (Limiter::new(FIVE_A_MINUTE), Instant::now());
        for _ in 0..5 {
            assert!(limiter.has(start, site(1)) && limiter.take(start, site(1)));
        }
        assert!(!limiter.has(start, site(1)) && !limiter.take(start, site(1)));
        assert!(limiter.take(start, site(2)));
        let later = start + Duration::from_secs(12);
        assert!(!limiter.has(later - Duration::from_millis(1), site(1)));
        assert!(limiter.take(later, site(1)) && !limiter.take(later, site(1)));
        let whole = later + Duration::from_secs(60);
        assert_eq!((0..9).filter(|_| limiter.take(whole, site(1))).count(), 5);
    }

    #[test]
    fn the_number_of_accounts_is_bounded() {
        let (mut limiter, start) = (Limiter::new(FIVE_A_MINUTE), Instant::now());
        for number in 0..2 * MAX_SITES {
            assert!(limiter.take(start, site(number as u128)));
        }
        assert_eq!(limiter.accounts.len(), MAX_SITES);
        assert!(limiter.take(start + Duration::from_secs(60), site(1 << 20)));
        assert_eq!(limiter.accounts.len(), 1);
    }
}
