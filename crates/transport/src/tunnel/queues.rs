//! Queues of packets: a short queue per member, served in turn.

use std::collections::{BTreeMap, VecDeque};

/// Entries in one queue of a leg, at most. The oldest is dropped: the sender's congestion control then notices
/// the loss a whole queue earlier, and the packets that arrive are new.
pub const MAX_QUEUED_OF_ONE: usize = 128;
/// Entries in all queues of one leg, at most (3 MB); the longest queue loses its oldest.
pub const MAX_QUEUED: usize = 2048;

/// Queues of at most `OF_ONE` entries each and `IN_ALL` together.
#[derive(Debug)]
pub struct Queues<K, T, const OF_ONE: usize, const IN_ALL: usize> {
    queues: BTreeMap<K, VecDeque<T>>,
    /// The queue served last; the next in order follows.
    last: Option<K>,
    len: usize,
}

impl<K, T, const OF_ONE: usize, const IN_ALL: usize> Default for Queues<K, T, OF_ONE, IN_ALL> {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            last: None,
            len: 0,
        }
    }
}

impl<K: Ord + Copy, T, const OF_ONE: usize, const IN_ALL: usize> Queues<K, T, OF_ONE, IN_ALL> {
    /// Queues an entry; returns how many were dropped for it.
    pub fn push(&mut self, key: K, entry: T) -> u64 {
        let queue = self.queues.entry(key).or_default();
        queue.push_back(entry);
        if queue.len() > OF_ONE {
            queue.pop_front();
            return 1;
        }
        if self.len == IN_ALL {
            let longest = self.queues.values_mut().max_by_key(|queue| queue.len());
            longest.map(VecDeque::pop_front);
            self.queues.retain(|_, queue| !queue.is_empty());
            return 1;
        }
        self.len += 1;
        0
    }

    /// The next entry in turn.
    pub fn pop(&mut self) -> Option<(K, T)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.map_or(Unbounded, Excluded);
        let next = self.queues.range((after, Unbounded)).next();
        let (key, _) = next.or_else(|| self.queues.first_key_value())?;
        let key = *key;
        let queue = self.queues.get_mut(&key)?;
        let entry = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&key);
        }
        self.len -= 1;
        self.last = Some(key);
        Some((key, entry))
    }

    /// Drops the first entries of each queue for which `is_old` returns true; returns how many.
    pub fn drop_old(&mut self, is_old: impl Fn(&T) -> bool) -> u64 {
        let before = self.len;
        self.queues.retain(|_, queue| {
            while queue.front().is_some_and(&is_old) {
                queue.pop_front();
                self.len -= 1;
            }
            !queue.is_empty()
        });
        (before - self.len) as u64
    }

    /// Drops one queue; returns its length.
    pub fn clear(&mut self, key: K) -> u64 {
        let dropped = self.queues.remove(&key).map_or(0, |queue| queue.len());
        self.len -= dropped;
        dropped as u64
    }

    /// Drops all queues; returns the number of entries.
    pub fn clear_all(&mut self) -> u64 {
        self.queues.clear();
        std::mem::take(&mut self.len) as u64
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of entries that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of queues with entries.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }
}
