//! Links that are being set up, by the other end's address. A dial waits here for a link that either end has
//! begun: a second link would cost both ends a handshake, and then be closed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Longest wait for earlier links: anyone can begin one from a forged address, and never end it.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

/// Links that are being set up, by address.
#[derive(Default)]
pub(crate) struct InProgress {
    links: Mutex<BTreeMap<SocketAddr, usize>>,
    /// Notified when the last attempt with an address ends.
    ended: Notify,
}

impl InProgress {
    /// Registers an attempt with the process at `address` until the returned value is dropped,
    /// even beside other attempts.
    pub(crate) fn begin(&self, address: SocketAddr) -> Attempt<'_> {
        let address = canonical(address);
        *self.links().entry(address).or_default() += 1;
        Attempt { all: self, address }
    }

    /// [`InProgress::begin`] once no other attempt runs, or after `most`. Returns whether it waited:
    /// there may be a link by now.
    pub(crate) async fn begin_after_others(
        &self,
        address: SocketAddr,
        most: Duration,
    ) -> (Attempt<'_>, bool) {
        let until = Instant::now() + most;
        let mut waited = false;
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on no end is missed.
            ended.as_mut().enable();
            if let Some(attempt) = self.begin_alone(address) {
                return (attempt, waited);
            }
            waited = true;
            if timeout_at(until, ended).await.is_err() {
                return (self.begin(address), waited);
            }
        }
    }

    fn begin_alone(&self, address: SocketAddr) -> Option<Attempt<'_>> {
        let address = canonical(address);
        match self.links().entry(address) {
            Entry::Vacant(free) => free.insert(1),
            Entry::Occupied(_) => return None,
        };
        Some(Attempt { all: self, address })
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, usize>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt to set up a link.
pub(crate) struct Attempt<'a> {
    all: &'a InProgress,
    address: SocketAddr,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut links = self.all.links();
        if let Some(count) = links.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                links.remove(&self.address);
                drop(links);
                self.all.ended.notify_waiters();
            }
        }
    }
}

/// One form for both spellings of an IPv4 address: as it is dialled, and as a dual-stack socket reports it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "192.0.2.7:4433";

    fn at(address: &str) -> SocketAddr {
        address.parse().expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_link_waits_for_the_first_and_reports_the_wait() {
        let links = InProgress::default();
        let start = Instant::now();
        let (first, waited) = links.begin_after_others(at(SOME), MAX_WAIT).await;
        assert!(!waited);
        let half = MAX_WAIT / 2;
        let end_first = async {
            tokio::time::sleep(half).await;
            drop(first);
        };
        let ((second, waited), ()) =
            tokio::join!(links.begin_after_others(at(SOME), MAX_WAIT), end_first);
        assert!(waited);
        assert_eq!(start.elapsed(), half);
        drop(second);
        assert!(links.links().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_links_begin_one_after_the_other() {
        let links = InProgress::default();
        let first = links.begin(at(SOME));
        let start = Instant::now();
        let wait_and_hold = async || {
            let (link, waited) = links.begin_after_others(at(SOME), MAX_WAIT).await;
            assert!(waited);
            tokio::time::sleep(MAX_WAIT / 4).await;
            drop(link);
        };
        let both = async { tokio::join!(wait_and_hold(), wait_and_hold()) };
        tokio::join!(both, async { drop(first) });
        assert_eq!(start.elapsed(), MAX_WAIT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_ends_is_waited_for_only_so_long() {
        let links = InProgress::default();
        let _forged = links.begin(at(SOME));
        let start = Instant::now();
        let (_second, waited) = links.begin_after_others(at(SOME), MAX_WAIT).await;
        assert!(waited);
        assert_eq!(start.elapsed(), MAX_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn other_ports_wait_for_nothing_and_both_forms_of_an_address_are_one() {
        let links = InProgress::default();
        let _link = links.begin(at("[::ffff:192.0.2.7]:4433"));
        let other = links.begin_after_others(at("192.0.2.7:4434"), MAX_WAIT);
        assert!(!other.await.1);
        assert!(links.begin_after_others(at(SOME), MAX_WAIT).await.1);
    }
}
