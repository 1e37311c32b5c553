//! Indices of peers: short names for hosts that keep arrays. A peer has its index from before its JOINED is queued
//! until the last handler has returned from its LEFT.
//!
//! A peer may return before every handler has received its LEFT. Then both sessions have an index: an event has that of
//! its own session, and a query returns that of the newer one.

use arc_swap::ArcSwap;

use crate::core::id::PeerId;

/// The indices of all peers; see the module's text. Queries take no lock. All changes happen under the lock of the
/// dispatch queue.
#[derive(Debug, Default)]
pub struct Indices {
    published: ArcSwap<Table>,
}

#[derive(Debug, Default, Clone)]
struct Table {
    /// The last index assigned; no index is assigned twice.
    last: u32,
    /// In the order of the indices.
    peers: Vec<(u32, PeerId)>,
    /// In the order of the ids, the older session of an id first.
    indices: Vec<(PeerId, u32)>,
}

impl Indices {
    /// The index of a peer's present session; 0 if it has none.
    pub fn of(&self, peer: &str) -> u32 {
        let table = self.published.load();
        let end = table
            .indices
            .partition_point(|(known, _)| known.as_str() <= peer);
        let newest = table.indices[..end].last();
        newest
            .filter(|(known, _)| known.as_str() == peer)
            .map_or(0, |(_, index)| *index)
    }

    /// The peer with this index.
    pub fn peer(&self, index: u32) -> Option<PeerId> {
        let table = self.published.load();
        let place = table.place_of(index)?;
        Some(table.peers[place].1.clone())
    }

    /// The index of the session whose events the host receives now; 0 if there is none.
    pub(super) fn of_oldest(&self, peer: &PeerId) -> u32 {
        let table = self.published.load();
        let start = table.indices.partition_point(|(known, _)| known < peer);
        let oldest = table.indices.get(start);
        oldest
            .filter(|(known, _)| known == peer)
            .map_or(0, |(_, index)| *index)
    }

    /// Assigns the next index to `peer`. After 2^32 - 1 of them, peers get none.
    pub(super) fn assign(&self, peer: &PeerId) {
        let mut table = Table::clone(&self.published.load());
        let Some(index) = table.last.checked_add(1) else {
            return;
        };
        table.last = index;
        table.peers.push((index, peer.clone()));
        let place = table.indices.partition_point(|(known, _)| known <= peer);
        table.indices.insert(place, (peer.clone(), index));
        self.published.store(table.into());
    }

    /// Frees the index: from now on it names no peer.
    pub(super) fn release(&self, index: u32) {
        let published = self.published.load();
        let Some(place) = published.place_of(index) else {
            return;
        };
        let mut table = Table::clone(&published);
        table.peers.remove(place);
        table.indices.retain(|(_, its)| *its != index);
        self.published.store(table.into());
    }
}

impl Table {
    fn place_of(&self, index: u32) -> Option<usize> {
        let found = self.peers.binary_search_by_key(&index, |(index, _)| *index);
        found.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str) -> PeerId {
        PeerId::new(name).expect("a valid id")
    }

    #[test]
    fn assigns_no_index_twice() {
        let indices = Indices::default();
        assert_eq!((indices.of("a"), indices.peer(0)), (0, None));
        indices.assign(&peer("b"));
        indices.assign(&peer("a"));
        assert_eq!((indices.of("b"), indices.of("a")), (1, 2));
        assert_eq!(
            (indices.of(""), indices.of("ab"), indices.of("c")),
            (0, 0, 0)
        );
        indices.release(1);
        indices.release(1);
        indices.release(0);
        assert_eq!((indices.of("b"), indices.peer(1)), (0, None));
        indices.assign(&peer("b"));
        assert_eq!((indices.of("b"), indices.peer(3)), (3, Some(peer("b"))));
        assert_eq!(indices.peer(2), Some(peer("a")));
    }

    #[test]
    fn queries_return_the_newer_session_and_events_the_older() {
        let indices = Indices::default();
        for _ in 0..2 {
            indices.assign(&peer("b"));
        }
        assert_eq!((indices.of("b"), indices.of_oldest(&peer("b"))), (2, 1));
        assert_eq!(indices.peer(1), indices.peer(2));
        indices.release(1);
        assert_eq!((indices.of("b"), indices.of_oldest(&peer("b"))), (2, 2));
        assert_eq!(indices.of_oldest(&peer("a")), 0);
        assert_eq!(indices.of_oldest(&peer("c")), 0);
    }

    #[test]
    fn assigns_no_index_after_the_last() {
        let indices = Indices::default();
        let full = Table {
            last: u32::MAX - 1,
            ..Table::default()
        };
        indices.published.store(full.into());
        indices.assign(&peer("a"));
        indices.assign(&peer("b"));
        assert_eq!((indices.of("a"), indices.of("b")), (u32::MAX, 0));
    }
}
