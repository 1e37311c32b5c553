//! Queues of packets that go out through one link on behalf of others: a short queue per named member, served in turn.

use std::collections::{BTreeMap, VecDeque};

use super::packet::{Piece, Way};

/// Packets, or parts of them, in one queue, at most. The oldest is dropped: the sender's congestion control
/// then notices the loss a whole queue earlier, and the packets that arrive are new.
pub const MAX_QUEUED_OF_ONE: usize = 128;
/// Packets, or parts of them, in all queues of one link, at most (3 MB); the longest queue loses its oldest.
pub const MAX_QUEUED: usize = 2048;

/// The queues of one link.
#[derive(Debug, Default)]
pub struct Queues {
    queues: BTreeMap<Way, VecDeque<Piece>>,
    /// The queue served last; the next in order follows.
    last: Option<Way>,
    len: usize,
}

impl Queues {
    /// Queues a piece; returns how many were dropped for it.
    pub fn push(&mut self, way: Way, piece: Piece) -> u64 {
        let queue = self.queues.entry(way).or_default();
        queue.push_back(piece);
        if queue.len() > MAX_QUEUED_OF_ONE {
            queue.pop_front();
            return 1;
        }
        if self.len == MAX_QUEUED {
            let longest = self.queues.values_mut().max_by_key(|queue| queue.len());
            longest.map(VecDeque::pop_front);
            self.queues.retain(|_, queue| !queue.is_empty());
            return 1;
        }
        self.len += 1;
        0
    }

    /// The next piece in turn.
    pub fn pop(&mut self) -> Option<(Way, Piece)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.map_or(Unbounded, Excluded);
        let next = self.queues.range((after, Unbounded)).next();
        let (way, _) = next.or_else(|| self.queues.first_key_value())?;
        let way = *way;
        let queue = self.queues.get_mut(&way)?;
        let piece = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&way);
        }
        self.len -= 1;
        self.last = Some(way);
        Some((way, piece))
    }

    /// Drops the queue of `way`; returns its length.
    pub fn clear(&mut self, way: Way) -> u64 {
        let dropped = self.queues.remove(&way).map_or(0, |queue| queue.len());
        self.len -= dropped;
        dropped as u64
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of pieces that wait.
    pub fn len(&self) -> usize {
        self.len
    }
}
