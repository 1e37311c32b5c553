//! Memory budget for received messages that the host has not taken: parts of long messages, and decompressed ones.
//!
//! Each peer has a share that fits one message of maximum length, so no other peer can block it. Anything beyond
//! that comes from a part that all peers of the room share. The requests of one peer are served in order.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// Shared part for incomplete long messages.
const SHARED_READING_BYTES: usize = 16 << 20;
/// Shared part for decompressed messages.
const SHARED_UNPACKED_BYTES: usize = 4 << 20;

/// The parts that the peers of a room share. No reader holds memory of `unpacked` while it waits for
/// `reading`, so that the two cannot deadlock.
#[derive(Debug)]
pub(crate) struct Budget {
    reading: Arc<Semaphore>,
    unpacked: Arc<Semaphore>,
}

impl Default for Budget {
    fn default() -> Self {
        let shared = |bytes| Arc::new(Semaphore::new(bytes));
        Self {
            reading: shared(SHARED_READING_BYTES),
            unpacked: shared(SHARED_UNPACKED_BYTES),
        }
    }
}

impl Budget {
    /// A peer's share for parts of messages of at most `longest` bytes.
    pub(super) fn share_of_reading(&self, longest: usize) -> Share {
        Share::new(longest, SHARED_READING_BYTES, &self.reading)
    }

    /// A peer's share for decompressed messages of at most `longest` bytes.
    pub(super) fn share_of_unpacked(&self, longest: usize) -> Share {
        Share::new(longest, SHARED_UNPACKED_BYTES, &self.unpacked)
    }
}

/// The share of one peer.
#[derive(Debug, Clone)]
pub(super) struct Share {
    own: Arc<Semaphore>,
    own_bytes: usize,
    shared: Arc<Semaphore>,
    shared_bytes: usize,
    /// Held by the request at the head of the queue.
    turn: Arc<Mutex<()>>,
}

/// Memory that stays set aside until this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn new(own_bytes: usize, shared_bytes: usize, shared: &Arc<Semaphore>) -> Self {
        Self {
            own: Arc::new(Semaphore::new(own_bytes)),
            own_bytes,
            shared: Arc::clone(shared),
            shared_bytes,
            turn: Arc::default(),
        }
    }

    /// Sets `len` bytes aside if they are free and no request of this peer waits.
    pub(super) fn try_reserve(&self, len: usize) -> Option<Reserved> {
        let _turn = self.turn.try_lock().ok()?;
        let permits = u32::try_from(len).ok()?;
        let of = |part: &Arc<Semaphore>| Arc::clone(part).try_acquire_many_owned(permits).ok();
        let permit = of(&self.own).or_else(|| of(&self.shared))?;
        Some(Reserved {
            _permit: Some(permit),
        })
    }

    /// Sets `len` bytes aside, all of them. Waits for earlier requests of the peer, then until the bytes are free.
    pub(super) async fn reserve(&self, len: usize) -> Reserved {
        debug_assert!(len <= self.own_bytes, "longer than any message");
        // A message is bounded far below 4 GiB.
        let permits = u32::try_from(len.min(self.own_bytes)).unwrap_or(u32::MAX);
        let _turn = self.turn.lock().await;
        let own = Arc::clone(&self.own).acquire_many_owned(permits);
        let shared = async {
            // A request that can never fit must not block others.
            match len <= self.shared_bytes {
                true => Arc::clone(&self.shared).acquire_many_owned(permits).await,
                false => std::future::pending().await,
            }
        };
        // An acquire fails only on a closed semaphore, and these are never closed.
        let permit = tokio::select! {
            biased;
            own = own => own.ok(),
            shared = shared => shared.ok(),
        };
        Reserved { _permit: permit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets bytes aside without waiting.
    async fn at_once(share: &Share, len: usize) -> Option<Reserved> {
        tokio::select! {
            biased;
            reserved = share.reserve(len) => Some(reserved),
            () = std::future::ready(()) => None,
        }
    }

    /// Polls a reservation that must still wait.
    async fn must_wait(reservation: std::pin::Pin<&mut impl Future<Output = Reserved>>) {
        tokio::select! {
            biased;
            _ = reservation => panic!("there is no room for it"),
            () = std::future::ready(()) => {}
        }
    }

    fn shares(own: usize, shared_bytes: usize) -> [Share; 2] {
        let shared = Arc::new(Semaphore::new(shared_bytes));
        [(); 2].map(|()| Share::new(own, shared_bytes, &shared))
    }

    #[tokio::test]
    async fn a_peer_that_uses_all_that_is_shared_leaves_others_their_share() {
        let [greedy, other] = shares(100, 250);
        let mut held = Vec::new();
        while let Some(reserved) = at_once(&greedy, 50).await {
            held.push(reserved);
        }
        assert_eq!(held.len(), 2 + 5);
        let longest = at_once(&other, 100).await;
        assert!(longest.is_some());
        assert!(at_once(&other, 1).await.is_none());
        // Any peer may take what the greedy one gives back.
        held.pop();
        assert!(at_once(&other, 50).await.is_some());
    }

    #[tokio::test]
    async fn a_long_message_is_not_passed_by_later_ones_of_its_peer() {
        let [peer, other] = shares(100, 0);
        let first = at_once(&peer, 60).await.expect("free");
        let long = peer.reserve(100);
        tokio::pin!(long);
        must_wait(long.as_mut()).await;
        assert!(at_once(&peer, 10).await.is_none(), "out of turn");
        assert!(at_once(&other, 100).await.is_some());
        drop(first);
        let long = long.await;
        assert!(at_once(&peer, 10).await.is_none());
        drop(long);
        assert!(at_once(&peer, 10).await.is_some());
    }

    #[tokio::test]
    async fn a_message_longer_than_the_shared_part_blocks_no_other() {
        let [peer, other] = shares(100, 50);
        let first = at_once(&peer, 60).await.expect("free");
        let long = peer.reserve(100);
        tokio::pin!(long);
        must_wait(long.as_mut()).await;
        let all = [at_once(&other, 100).await, at_once(&other, 50).await];
        assert!(all.iter().all(Option::is_some));
        drop(first);
        long.await;
    }
}
