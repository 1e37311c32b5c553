//! Connections of failed admissions that QUIC still holds.
//!
//! QUIC keeps a closed connection in its tables for three probe timeouts. It keeps one whose dialler sends
//! nothing but a close for the idle timeout: `handle_first_packet` of quinn-proto 0.11.19 enters the draining
//! state without the timer that ends it, so only the idle timer is left. A stranger needs no more than the
//! first packet of a dial for that, so these connections have a limit of their own. They hold no place of an
//! admission: otherwise a stranger could occupy all places for as long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limiter::Source;

/// Lingering connections, at most. Further dials wait for one to end.
pub(crate) const MAX_LINGERING: usize = 256;
/// Lingering connections of one address, at most: the others stay open to other addresses.
const MAX_LINGERING_OF_ONE: usize = 192;
/// Lingering connections that came through one carrier, at most. A member can make up their origins, and that must
/// not even cost other dials the proof of their address.
const MAX_LINGERING_OF_CARRIER: usize = 32;
/// With fewer free slots than this, a dialler must first prove that packets reach its address.
const FOR_ALL: usize = MAX_LINGERING / 2;

/// Slots for lingering connections.
pub(super) struct Lingering {
    all: Arc<Semaphore>,
    of_one: Mutex<BTreeMap<Source, Weak<Semaphore>>>,
}

impl Default for Lingering {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_LINGERING)),
            of_one: Mutex::default(),
        }
    }
}

/// One connection may linger until this is dropped.
pub(super) struct MayLinger {
    _of_one: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Lingering {
    /// Waits until one more connection from there may linger. `None` only if the semaphores were
    /// closed, which does not happen.
    pub(super) async fn begin(&self, from: Source) -> Option<MayLinger> {
        let of_one = self.of(from);
        Some(MayLinger {
            _of_one: of_one.acquire_owned().await.ok()?,
            _of_all: Arc::clone(&self.all).acquire_owned().await.ok()?,
        })
    }

    /// Whether enough linger that a dialler must prove its address first.
    pub(super) fn are_many(&self) -> bool {
        self.all.available_permits() < FOR_ALL
    }

    /// The semaphore of an address. quinn bounds how many wait, and the permits how many linger.
    fn of(&self, source: Source) -> Arc<Semaphore> {
        let mut of_one = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
        of_one.retain(|_, permits| permits.strong_count() > 0);
        if let Some(permits) = of_one.get(&source).and_then(Weak::upgrade) {
            return permits;
        }
        let most = match source {
            Source::Carrier(_) => MAX_LINGERING_OF_CARRIER,
            Source::V4(_) | Source::V6Prefix(_) => MAX_LINGERING_OF_ONE,
        };
        let permits = Arc::new(Semaphore::new(most));
        of_one.insert(source, Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Source {
        Source::V4([192, 0, 2, number].into())
    }

    async fn at_once(lingering: &Lingering, from: Source) -> Option<MayLinger> {
        tokio::select! {
            biased;
            begun = lingering.begin(from) => begun,
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn one_carrier_costs_no_dial_the_proof_of_its_address() {
        let lingering = Lingering::default();
        let [liar, other] = [[1; 8], [2; 8]].map(Source::Carrier);
        let mut held = Vec::new();
        while let Some(one) = at_once(&lingering, liar).await {
            held.push(one);
        }
        assert_eq!(held.len(), MAX_LINGERING_OF_CARRIER);
        assert!(!lingering.are_many());
        assert!(at_once(&lingering, other).await.is_some());
    }

    #[tokio::test]
    async fn one_address_leaves_others_their_part_and_all_together_have_a_bound() {
        let lingering = Lingering::default();
        let mut held = Vec::new();
        while let Some(one) = at_once(&lingering, host(1)).await {
            assert_eq!(lingering.are_many(), held.len() >= MAX_LINGERING - FOR_ALL);
            held.push(one);
        }
        assert_eq!(held.len(), MAX_LINGERING_OF_ONE);
        for number in 2.. {
            let Some(one) = at_once(&lingering, host(number)).await else {
                break;
            };
            held.push(one);
        }
        assert_eq!(held.len(), MAX_LINGERING);
        held.pop();
        assert!(at_once(&lingering, host(1)).await.is_none());
        assert!(at_once(&lingering, host(3)).await.is_some());
        held.clear();
        assert!(!lingering.are_many());
        assert!(at_once(&lingering, host(1)).await.is_some());
        assert_eq!(lingering.of_one.lock().expect("not poisoned").len(), 1);
    }
}
