//! Dials of addresses at which no member has answered yet. Such an address may belong to a machine that has nothing to do
//! with the room, so it receives one packet for each dial and no more.
//!
//! quinn repeats the first packet of a connection after three round trips, and closes a connection that it gives up with
//! a packet. The dial is over before the first ([`BRIEF_DIAL`]); the socket drops the second ([`Unanswered`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::TransportConfig;
use room_transport::quic::transport_config;
use tokio::time::Instant;

use super::socket::canonical;

/// Time that a dial waits for an answer if another one follows after two seconds.
pub(crate) const BRIEF_DIAL: Duration = Duration::from_millis(1900);
/// Round trip that quinn assumes for such a dial; it repeats the first packet after three of these.
const ASSUMED_RTT: Duration = Duration::from_secs(1);
/// Time within which quinn sends the close of a connection that it gives up.
const CLOSES_WITHIN: Duration = Duration::from_millis(100);

/// Transport settings of such a dial, and of the link that comes of it.
pub(crate) fn lone_transport_config() -> TransportConfig {
    let mut transport = transport_config();
    transport.initial_rtt(ASSUMED_RTT);
    transport
}

/// The addresses whose dials have ended without an answer just now.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// Whether there may be any, so that a packet costs nothing more while there are none.
    any: AtomicBool,
    until: Mutex<BTreeMap<SocketAddr, Instant>>,
}

impl Unanswered {
    /// Takes the close of a connection that was given up: whether the socket drops a packet to this address.
    pub(super) fn takes(&self, destination: SocketAddr) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        let mut until = self.until();
        let taken = until.remove(&canonical(destination));
        until.retain(|_, at| now < *at);
        self.any.store(!until.is_empty(), Ordering::Relaxed);
        taken.is_some_and(|at| now < at)
    }

    fn note(&self, address: SocketAddr) {
        let now = Instant::now();
        let mut until = self.until();
        until.retain(|_, at| now < *at);
        until.insert(canonical(address), now + CLOSES_WITHIN);
        self.any.store(true, Ordering::Relaxed);
    }

    fn until(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Instant>> {
        // Nothing panics while it holds this lock.
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A dial of such an address. If it is dropped before [`LoneDial::answered`], no process has answered.
pub(super) struct LoneDial {
    unanswered: Option<Arc<Unanswered>>,
    address: SocketAddr,
}

impl LoneDial {
    pub(super) fn new(unanswered: &Arc<Unanswered>, address: SocketAddr) -> Self {
        Self {
            unanswered: Some(Arc::clone(unanswered)),
            address,
        }
    }

    pub(super) fn answered(mut self) {
        self.unanswered = None;
    }
}

impl Drop for LoneDial {
    fn drop(&mut self) {
        if let Some(unanswered) = &self.unanswered {
            unanswered.note(self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_packet_to_an_address_is_dropped_soon_after_its_dial() {
        let unanswered = Arc::new(Unanswered::default());
        let [one, mapped, other] = ["192.0.2.1:7", "[::ffff:192.0.2.1]:7", "192.0.2.2:7"]
            .map(|text| text.parse().expect("an address"));
        assert!(!unanswered.takes(one));
        drop(LoneDial::new(&unanswered, one));
        assert!(!unanswered.takes(other));
        assert!(unanswered.takes(mapped) && !unanswered.takes(one));
        LoneDial::new(&unanswered, one).answered();
        assert!(!unanswered.takes(one));
        drop(LoneDial::new(&unanswered, one));
        tokio::time::advance(CLOSES_WITHIN).await;
        assert!(!unanswered.takes(one), "a later packet is another one");
    }
}
