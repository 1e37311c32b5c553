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
use super::queue::Queue;

/// Lingering connections, at most. Further dials wait for one to end.
pub(crate) const MAX_LINGERING: usize = 256;
/// Lingering connections of one address, at most: the others stay open to other addresses.
const MAX_LINGERING_OF_ONE: usize = 192;
/// Lingering connections that came through one carrier, at most. A member can make up their origins, and that must
/// not even cost other dials the proof of their address.
const MAX_LINGERING_OF_CARRIER: usize = 32;
/// Lingering connections behind one relay, at most, of strangers and of known keys; they take no slot of others.
const MAX_LINGERING_OF_RELAY: usize = 32;
/// Lingering connections of one stranger behind a relay, at most.
const MAX_LINGERING_OF_STRANGER: usize = 2;
/// With fewer free slots than this, a dialler must first prove that packets reach its address.
const FOR_ALL: usize = MAX_LINGERING / 2;

/// Slots for lingering connections.
pub(super) struct Lingering {
    all: Arc<Semaphore>,
    of: Mutex<BTreeMap<Owner, Weak<Semaphore>>>,
}

/// Owner of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// A source; behind a relay its strangers, or its known keys.
    Source(Source, bool),
    /// A stranger behind a relay.
    Stranger(Queue),
}

impl Default for Lingering {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_LINGERING)),
            of: Mutex::default(),
        }
    }
}

/// One connection may linger until this is dropped.
pub(super) struct MayLinger {
    _own: OwnedSemaphorePermit,
    _further: Option<OwnedSemaphorePermit>,
}

impl Lingering {
    /// Waits until one more connection of that queue may linger. `None` only if the semaphores were
    /// closed, which does not happen.
    pub(super) async fn begin(&self, queue: Queue) -> Option<MayLinger> {
        let (source, is_stranger) = queue.shared();
        let of_source = self.slots_of(Owner::Source(source, is_stranger));
        // A link that waits for its own slots takes none of the others.
        let (own, further) = match source {
            Source::Relay(_) if is_stranger => {
                (self.slots_of(Owner::Stranger(queue)), Some(of_source))
            }
            Source::Relay(_) => (of_source, None),
            _ => (of_source, Some(Arc::clone(&self.all))),
        };
        let own = own.acquire_owned().await.ok()?;
        let further = match further {
            Some(further) => Some(further.acquire_owned().await.ok()?),
            None => None,
        };
        Some(MayLinger {
            _own: own,
            _further: further,
        })
    }

    /// Whether enough linger that a dialler must prove its address first.
    pub(super) fn are_many(&self) -> bool {
        self.all.available_permits() < FOR_ALL
    }

    /// The semaphore of an owner. quinn bounds how many wait, and the permits how many linger.
    fn slots_of(&self, owner: Owner) -> Arc<Semaphore> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.retain(|_, permits| permits.strong_count() > 0);
        if let Some(permits) = of.get(&owner).and_then(Weak::upgrade) {
            return permits;
        }
        let most = match owner {
            Owner::Stranger(_) => MAX_LINGERING_OF_STRANGER,
            Owner::Source(Source::Carrier(_), _) => MAX_LINGERING_OF_CARRIER,
            Owner::Source(Source::Relay(_), _) => MAX_LINGERING_OF_RELAY,
            Owner::Source(Source::V4(_) | Source::V6Prefix(_), _) => MAX_LINGERING_OF_ONE,
        };
        let permits = Arc::new(Semaphore::new(most));
        of.insert(owner, Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::path::RelayNumber;

    fn host(number: u8) -> Queue {
        Queue::of(Source::V4([192, 0, 2, number].into()))
    }

    async fn at_once(lingering: &Lingering, from: Queue) -> Option<MayLinger> {
        tokio::select! {
            biased;
            begun = lingering.begin(from) => begun,
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn one_carrier_costs_no_dial_the_proof_of_its_address() {
        let lingering = Lingering::default();
        let [liar, other] = [[1; 8], [2; 8]].map(|id| Queue::of(Source::Carrier(id)));
        let mut held = Vec::new();
        while let Some(one) = at_once(&lingering, liar).await {
            held.push(one);
        }
        assert_eq!(held.len(), MAX_LINGERING_OF_CARRIER);
        assert!(!lingering.are_many());
        assert!(at_once(&lingering, other).await.is_some());
    }

    #[tokio::test]
    async fn strangers_behind_a_relay_take_no_slots_of_others_and_one_of_them_few() {
        let lingering = Lingering::default();
        let relay = Source::Relay(RelayNumber(0));
        let stranger = |id: u8| Queue {
            source: relay,
            stranger: Some([id; 8]),
        };
        let mut held = Vec::new();
        for id in 0..u8::MAX {
            while let Some(one) = at_once(&lingering, stranger(id)).await {
                held.push(one);
            }
            let most = usize::from(id + 1) * MAX_LINGERING_OF_STRANGER;
            assert_eq!(held.len(), most.min(MAX_LINGERING_OF_RELAY));
        }
        assert!(at_once(&lingering, Queue::of(relay)).await.is_some());
        assert_eq!(lingering.all.available_permits(), MAX_LINGERING);
        held.clear();
        assert!(at_once(&lingering, stranger(1)).await.is_some());
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
        assert_eq!(lingering.of.lock().expect("not poisoned").len(), 1);
    }
}
