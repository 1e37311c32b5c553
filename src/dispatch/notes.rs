//! Counted reports about a peer: one report with the number of occurrences since the last one, at most once a second.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::core::event::Direction;
use crate::core::id::PeerId;

/// Interval between two reports of one kind about one peer.
const INTERVAL: Duration = Duration::from_secs(1);

/// The kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Note {
    SlowPeer,
    Dropped(Direction),
}

impl Note {
    const ALL: [Self; 3] = [
        Self::SlowPeer,
        Self::Dropped(Direction::Sent),
        Self::Dropped(Direction::Received),
    ];
}

/// The counted reports; see the module's text. A note of a peer is queued, or rests after it was queued, or neither.
#[derive(Debug, Default)]
pub(super) struct Notes {
    queued: BTreeMap<Name, u64>,
    resting: BTreeMap<Name, Rest>,
    /// The end of each rest, in that order.
    ends: VecDeque<(Instant, Name)>,
}

type Name = (PeerId, Note);

#[derive(Debug)]
struct Rest {
    until: Instant,
    /// Number of occurrences since the report.
    count: u64,
}

impl Notes {
    /// Counts further occurrences. Returns whether to queue the note now.
    #[must_use]
    pub(super) fn add(&mut self, peer: &PeerId, note: Note, count: u64) -> bool {
        let name = (peer.clone(), note);
        if let Some(rest) = self.resting.get_mut(&name) {
            rest.count = rest.count.saturating_add(count);
            return false;
        }
        let is_new = !self.queued.contains_key(&name);
        let sum = self.queued.entry(name).or_default();
        *sum = sum.saturating_add(count);
        is_new
    }

    /// The number for a queued note. The note rests from here on.
    pub(super) fn take(&mut self, now: Instant, peer: &PeerId, note: Note) -> u64 {
        let name = (peer.clone(), note);
        let until = now + INTERVAL;
        self.ends.push_back((until, name.clone()));
        let rest = Rest { until, count: 0 };
        self.resting.insert(name.clone(), rest);
        self.queued.remove(&name).unwrap_or(0)
    }

    /// The end of the next rest.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// The next note to queue now, because its rest has ended.
    pub(super) fn ended(&mut self, now: Instant) -> Option<Name> {
        while self.ends.front().is_some_and(|(end, _)| *end <= now) {
            let (end, name) = self.ends.pop_front()?;
            let rest = self.resting.get(&name);
            if rest.is_some_and(|rest| rest.until == end) && self.wake(&name) {
                return Some(name);
            }
        }
        None
    }

    /// The notes of a leaving peer, to queue before its LEFT.
    pub(super) fn of_leaving(&mut self, peer: &PeerId) -> Vec<Note> {
        let mut notes = Note::ALL.to_vec();
        notes.retain(|note| self.wake(&(peer.clone(), *note)));
        notes
    }

    /// Ends a rest. Returns whether to queue the note.
    fn wake(&mut self, name: &Name) -> bool {
        match self.resting.remove(name) {
            Some(Rest { count, .. }) if count > 0 => {
                self.queued.insert(name.clone(), count);
                true
            }
            _ => false,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROPPED: Note = Note::Dropped(Direction::Sent);

    fn peer(name: &str) -> PeerId {
        PeerId::new(name).expect("a valid id")
    }

    #[test]
    fn a_note_is_queued_once_and_then_once_a_second_with_its_sum() {
        let mut notes = Notes::default();
        let mut now = Instant::now();
        let b = peer("b");
        assert!(notes.add(&b, DROPPED, 1));
        assert!(!notes.add(&b, DROPPED, 2));
        assert_eq!(notes.take(now, &b, DROPPED), 3);
        // Twenty a second for three seconds.
        let mut reports = Vec::new();
        for _ in 0..60 {
            assert!(!notes.add(&b, DROPPED, 1), "it rests");
            now += INTERVAL / 20;
            while let Some((peer, note)) = notes.ended(now) {
                reports.push(notes.take(now, &peer, note));
            }
        }
        assert_eq!(reports, [20, 20, 20]);
        assert_eq!(notes.next_end(), Some(now + INTERVAL));
        // Without further occurrences there is no report, and no state remains.
        now += INTERVAL;
        assert_eq!(notes.ended(now), None);
        assert!(notes.resting.is_empty() && notes.queued.is_empty() && notes.ends.is_empty());
        assert!(notes.add(&b, DROPPED, 1), "at once again");
    }

    #[test]
    fn each_peer_and_direction_has_its_own() {
        let mut notes = Notes::default();
        let now = Instant::now();
        for name in ["b", "c"] {
            for note in Note::ALL {
                assert!(notes.add(&peer(name), note, 1), "{name} {note:?}");
                assert_eq!(notes.take(now, &peer(name), note), 1);
            }
        }
    }

    #[test]
    fn a_peer_that_leaves_takes_no_number_with_it_and_its_rest_does_not_end_early() {
        let mut notes = Notes::default();
        let now = Instant::now();
        let b = peer("b");
        assert!(notes.add(&b, DROPPED, 1));
        assert_eq!(notes.take(now, &b, DROPPED), 1);
        assert!(!notes.add(&b, DROPPED, 4));
        assert_eq!(notes.of_leaving(&b), [DROPPED]);
        assert_eq!(notes.of_leaving(&b), []);
        let later = now + INTERVAL / 2;
        assert_eq!(notes.take(later, &b, DROPPED), 4);
        assert!(!notes.add(&b, DROPPED, 1));
        assert_eq!(notes.ended(now + INTERVAL), None, "of the earlier rest");
        assert_eq!(notes.ended(later + INTERVAL), Some((b, DROPPED)));
    }
}
