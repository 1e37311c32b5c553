//! The numbers behind the cheapest queries: a game calls `IsLeader` for every object in every frame.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::snapshot::Snapshot;

/// Whether a room leads, and the number of its connected peers, in one number beside its snapshot.
#[derive(Debug)]
pub(crate) struct Glance(AtomicU64);

/// No room is attached. Zero, so that an executable holds no bytes for a glance.
const DETACHED: u64 = 0;
/// Unknown, or it depends on the time: read the snapshot.
const UNKNOWN: u64 = 1;
/// A known state is encoded from this number on.
const KNOWN: u64 = 2;

/// Glance of rooms without a handle: no query reads it, and it is never attached.
pub(crate) static UNREAD: Glance = Glance::new();

impl Glance {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(DETACHED))
    }

    /// Attaches a room, which writes here from now on. `current` reads its snapshot, which a newer one may replace
    /// meanwhile.
    pub(crate) fn attach(&self, current: impl FnOnce() -> u64) {
        self.0.store(UNKNOWN, Ordering::SeqCst);
        let current = current();
        let _ = self
            .0
            .compare_exchange(UNKNOWN, current, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Detaches a room that is closing: its later writes have no effect.
    pub(crate) fn detach(&self) {
        self.0.store(DETACHED, Ordering::SeqCst);
    }

    /// For the room's network thread, after it has published the snapshot.
    pub(crate) fn show(&self, snapshot: &Snapshot) {
        let shown = encode(snapshot);
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |present| {
                (present != DETACHED).then_some(shown)
            });
    }

    /// Whether this node leads; `None` if the caller must read the snapshot.
    pub(crate) fn leads(&self) -> Option<bool> {
        self.read().map(|shown| shown & 1 == 1)
    }

    /// Number of connected peers; `None` if the caller must read the snapshot.
    pub(crate) fn connected(&self) -> Option<u64> {
        self.read().map(|shown| shown >> 1)
    }

    fn read(&self) -> Option<u64> {
        self.0.load(Ordering::Acquire).checked_sub(KNOWN)
    }
}

pub(crate) fn encode(snapshot: &Snapshot) -> u64 {
    if snapshot.is_leader && snapshot.leads_until.is_some() {
        return UNKNOWN;
    }
    let connected = u64::try_from(snapshot.connected).unwrap_or(u64::MAX);
    KNOWN + (connected.min(u64::MAX >> 2) << 1 | u64::from(snapshot.is_leader))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    fn snapshot(is_leader: bool, connected: usize) -> Snapshot {
        Snapshot {
            is_leader,
            connected,
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_state_of_a_room_is_read_while_it_is_attached() {
        let glance = Glance::new();
        glance.show(&snapshot(true, 3));
        assert_eq!((glance.leads(), glance.connected()), (None, None));
        glance.attach(|| encode(&snapshot(false, 2)));
        assert_eq!((glance.leads(), glance.connected()), (Some(false), Some(2)));
        glance.show(&snapshot(true, 3));
        assert_eq!((glance.leads(), glance.connected()), (Some(true), Some(3)));
        glance.detach();
        // A late write of a closing room.
        glance.show(&snapshot(true, 0));
        assert_eq!((glance.leads(), glance.connected()), (None, None));
    }

    #[test]
    fn a_newer_snapshot_that_comes_while_a_room_is_attached_stays() {
        let glance = Glance::new();
        glance.attach(|| {
            let older = encode(&snapshot(false, 1));
            glance.show(&snapshot(true, 2));
            older
        });
        assert_eq!((glance.leads(), glance.connected()), (Some(true), Some(2)));
    }

    #[test]
    fn timed_leadership_is_read_from_the_snapshot() {
        let glance = Glance::new();
        glance.attach(|| encode(&snapshot(false, 1)));
        let lease = Snapshot {
            leads_until: Some(Moment::now()),
            ..snapshot(true, 1)
        };
        glance.show(&lease);
        assert_eq!(glance.leads(), None);
        glance.show(&snapshot(false, 1));
        assert_eq!(glance.leads(), Some(false));
    }

    #[test]
    fn any_number_of_peers_has_its_place() {
        let glance = Glance::new();
        for connected in [0, 1, 64, usize::MAX] {
            glance.attach(|| encode(&snapshot(true, connected)));
            assert_eq!(glance.leads(), Some(true), "{connected}");
        }
    }
}
