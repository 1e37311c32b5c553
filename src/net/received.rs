//! Receive state of a session: the messages that this node has taken from a peer, across links.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::frame::MAX_UNORDERED_SPAN;
use crate::core::id::PeerId;

/// Keys of sequenced messages remembered per origin, at most.
const MAX_KEYS: usize = 1024;
/// Origins of sequenced messages on one link, at most: the peer and, if it leads, the members that it relays for.
const MAX_ORIGINS: usize = 256;

/// The receive state of a session, which outlives links.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The next expected number on each ordered lane.
    lanes: Mutex<BTreeMap<u16, Arc<AtomicU64>>>,
    unordered: Mutex<Unordered>,
    sequenced: Mutex<Sequenced>,
    stops: Mutex<Stops>,
    /// Number of messages taken.
    pub(crate) count: Arc<AtomicU64>,
}

impl Received {
    /// The next expected number on an ordered lane. It changes only at the moment when a message is taken, so
    /// that a stopped reader leaves an exact number to its successor.
    pub(super) fn next_seq(&self, lane: u16) -> Arc<AtomicU64> {
        Arc::clone(lock(&self.lanes).entry(lane).or_default())
    }

    /// Counts one taken message.
    pub(super) fn count_one(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unordered(&self) -> MutexGuard<'_, Unordered> {
        lock(&self.unordered)
    }

    /// Records since when another member than this peer is known to lead; `None` if no other is known to.
    pub(crate) fn note_other_leader(&self, since: Option<Instant>) {
        lock(&self.stops).note_other_leader(since);
    }

    /// Records that this host took nothing from that lane for a while.
    pub(super) fn stopped(&self, lane: u16, from: Instant, until: Instant) {
        lock(&self.stops).note(lane, from, until);
    }

    /// Time in which this host took nothing from that lane, since another leader is known.
    pub(super) fn stopped_for(&self, lane: u16) -> Duration {
        lock(&self.stops).of(lane)
    }

    pub(super) fn sequenced(&self) -> MutexGuard<'_, Sequenced> {
        lock(&self.sequenced)
    }
}

/// No panic can interrupt a change of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time in which this host took nothing from each lane, since another member than the peer is known to lead.
/// Messages that the peer sent earlier as leader may have arrived in that time.
#[derive(Debug, Default)]
struct Stops {
    other_leader_since: Option<Instant>,
    lanes: BTreeMap<u16, Duration>,
}

impl Stops {
    fn note_other_leader(&mut self, since: Option<Instant>) {
        if since.is_none() || self.other_leader_since.is_none() {
            self.other_leader_since = since;
            self.lanes.clear();
        }
    }

    fn note(&mut self, lane: u16, from: Instant, until: Instant) {
        if let Some(since) = self.other_leader_since {
            let stopped = until.saturating_duration_since(from.max(since));
            *self.lanes.entry(lane).or_default() += stopped;
        }
    }

    fn of(&self, lane: u16) -> Duration {
        self.lanes.get(&lane).copied().unwrap_or_default()
    }
}

/// Unordered messages taken: all before a number, and some beyond it.
#[derive(Debug, Default)]
pub(super) struct Unordered {
    next: u64,
    beyond: BTreeSet<u64>,
}

impl Unordered {
    /// Every message before this number was taken.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether to take this message.
    ///
    /// # Errors
    /// The number is further ahead than any that a member sends.
    pub(super) fn is_new(&self, number: u64) -> Result<bool, &'static str> {
        if number.saturating_sub(self.next) >= MAX_UNORDERED_SPAN {
            return Err("an unordered message is too far ahead");
        }
        Ok(number >= self.next && !self.beyond.contains(&number))
    }

    /// Records a taken message.
    pub(super) fn insert(&mut self, number: u64) {
        if number >= self.next {
            self.beyond.insert(number);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
    }
}

/// The newest sequenced messages, by origin and key.
#[derive(Debug, Default)]
pub(super) struct Sequenced {
    origins: BTreeMap<PeerId, Keys>,
}

impl Sequenced {
    /// Whether this message is newer than all others of its key; if so, it becomes the newest.
    pub(super) fn is_newest(&mut self, origin: &PeerId, key: u64, number: u64) -> bool {
        if self.origins.len() >= MAX_ORIGINS && !self.origins.contains_key(origin) {
            self.origins.pop_first();
        }
        let keys = self.origins.entry(origin.clone()).or_default();
        keys.is_newest(key, number)
    }
}

/// The keys used last.
#[derive(Debug, Default)]
struct Keys {
    newest: HashMap<u64, Newest>,
    /// Keys by their last use.
    used: BTreeMap<u64, u64>,
    uses: u64,
}

#[derive(Debug)]
struct Newest {
    number: u64,
    used: u64,
}

impl Keys {
    fn is_newest(&mut self, key: u64, number: u64) -> bool {
        self.uses += 1;
        let now = self.uses;
        let is_newest = match self.newest.get_mut(&key) {
            Some(newest) => {
                self.used.remove(&newest.used);
                newest.used = now;
                let is_newest = number > newest.number;
                newest.number = newest.number.max(number);
                is_newest
            }
            None => {
                // The number of a forgotten key was smaller: its sender counts all keys together.
                if self.newest.len() >= MAX_KEYS
                    && let Some((_, oldest)) = self.used.pop_first()
                {
                    self.newest.remove(&oldest);
                }
                self.newest.insert(key, Newest { number, used: now });
                true
            }
        };
        self.used.insert(now, key);
        is_newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_counts_from_when_another_leads_and_for_its_lane() {
        let at = |ms| Instant::now() + Duration::from_millis(ms);
        let (begin, change, end) = (at(0), at(100), at(250));
        let received = Received::default();
        received.stopped(3, begin, end);
        assert_eq!(received.stopped_for(3), Duration::ZERO, "it leads itself");
        received.note_other_leader(Some(change));
        received.note_other_leader(Some(end));
        received.stopped(3, begin, end);
        received.stopped(3, end, end + Duration::from_millis(5));
        assert_eq!(
            received.stopped_for(3),
            end - change + Duration::from_millis(5)
        );
        assert_eq!(received.stopped_for(4), Duration::ZERO);
        received.note_other_leader(None);
        assert_eq!(received.stopped_for(3), Duration::ZERO, "it leads again");
    }

    #[test]
    fn unordered_messages_are_new_once_whatever_their_order() {
        let mut unordered = Unordered::default();
        for number in [3, 0, 1, 5] {
            assert_eq!(unordered.is_new(number), Ok(true));
            unordered.insert(number);
            assert_eq!(unordered.is_new(number), Ok(false));
        }
        assert_eq!(unordered.next(), 2);
        unordered.insert(2);
        assert_eq!(unordered.next(), 4);
        unordered.insert(4);
        assert_eq!((unordered.next(), unordered.beyond.len()), (6, 0));
    }

    #[test]
    fn an_unordered_message_too_far_ahead_is_refused() {
        let mut unordered = Unordered::default();
        assert_eq!(unordered.is_new(MAX_UNORDERED_SPAN - 1), Ok(true));
        assert!(unordered.is_new(MAX_UNORDERED_SPAN).is_err());
        unordered.insert(0);
        assert_eq!(unordered.is_new(MAX_UNORDERED_SPAN), Ok(true));
        assert!(unordered.is_new(u64::MAX).is_err());
    }

    #[test]
    fn a_sequenced_message_older_than_the_newest_of_its_key_is_dropped() {
        let mut sequenced = Sequenced::default();
        let [a, b] = ["a", "b"].map(|name| PeerId::new(name).expect("an id"));
        assert!(sequenced.is_newest(&a, 1, 5));
        assert!(!sequenced.is_newest(&a, 1, 4));
        assert!(!sequenced.is_newest(&a, 1, 5));
        assert!(sequenced.is_newest(&a, 2, 4), "another key");
        assert!(sequenced.is_newest(&b, 1, 4), "another origin");
        assert!(sequenced.is_newest(&a, 1, 6));
    }

    #[test]
    fn the_1024_keys_that_were_used_last_are_remembered() {
        let mut sequenced = Sequenced::default();
        let a = PeerId::new("a").expect("an id");
        for key in 0..1024 {
            assert!(sequenced.is_newest(&a, key, 10 + key));
        }
        assert!(!sequenced.is_newest(&a, 0, 1), "used again");
        assert!(sequenced.is_newest(&a, 1024, 2000));
        assert!(!sequenced.is_newest(&a, 0, 1));
        assert!(!sequenced.is_newest(&a, 2, 1));
        assert!(sequenced.is_newest(&a, 1, 1), "the one that was forgotten");
        assert_eq!(sequenced.origins[&a].newest.len(), MAX_KEYS);
        assert_eq!(sequenced.origins[&a].used.len(), MAX_KEYS);
    }
}
