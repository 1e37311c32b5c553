//! The log of one member: the tables before its tail, the tail, and the tables at its end.

use std::collections::VecDeque;

use crate::ballot::{History, MemberId, Place};
use crate::entry::{Contents, Entry};
use crate::limits::Options;
use crate::tables::Tables;
use crate::wire::Tip;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// The state before the first entry of the tail.
    base: Tables,
    tail: VecDeque<Entry>,
    end: Tables,
    tail_bytes: usize,
}

impl Log {
    /// A log that begins behind an entry of another member's.
    pub(crate) fn behind(base: Tables) -> Self {
        Self {
            end: base.clone(),
            base,
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index() == 0
    }

    /// The index of the last entry; 0 without one.
    pub(crate) fn index(&self) -> u64 {
        self.end.index()
    }

    /// The index before the first entry of the tail.
    pub(crate) fn base_index(&self) -> u64 {
        self.base.index()
    }

    pub(crate) fn base(&self) -> &Tables {
        &self.base
    }

    /// The state after the last entry, confirmed or not.
    pub(crate) fn end(&self) -> &Tables {
        &self.end
    }

    pub(crate) fn last(&self) -> Option<&Place> {
        self.end.last()
    }

    pub(crate) fn history(&self) -> Option<History> {
        self.end.history()
    }

    /// The entry at `index`, if the tail has it.
    pub(crate) fn entry(&self, index: u64) -> Option<&Entry> {
        let behind_base = index.checked_sub(self.base_index())?;
        self.tail
            .get(usize::try_from(behind_base.checked_sub(1)?).ok()?)
    }

    /// The place of the entry at `index`; that of the last one before the tail is known, too.
    pub(crate) fn place(&self, index: u64) -> Option<Place> {
        if index == self.base_index() {
            return self.base.last().cloned();
        }
        let ballot = self.entry(index)?.ballot.clone();
        Some(Place { ballot, index })
    }

    /// Whether the log has this entry, or the beginning for `None`, where entries can follow it.
    pub(crate) fn reaches(&self, place: Option<&Place>) -> bool {
        match place {
            None => self.base_index() == 0,
            Some(place) => self.place(place.index).as_ref() == Some(place),
        }
    }

    pub(crate) fn append(&mut self, entry: Entry) {
        self.end.apply(&entry);
        self.tail_bytes += entry.bytes();
        self.tail.push_back(entry);
    }

    /// The state after the entry at `index`, which the tail reaches.
    pub(crate) fn state_at(&self, index: u64) -> Tables {
        let mut state = self.base.clone();
        let count = index.saturating_sub(self.base_index());
        let entries = self
            .tail
            .iter()
            .take(usize::try_from(count).unwrap_or(usize::MAX));
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// The indexes above `after` at which the tail lets a member into the room.
    pub(crate) fn returns_of<'a>(
        &'a self,
        member: &'a MemberId,
        after: u64,
    ) -> impl Iterator<Item = u64> + 'a {
        let lets_in = move |entry: &Entry| matches!(&entry.contents, Contents::Member { member: other, here: true, .. } if other == member);
        let first = after.max(self.base_index()) + 1;
        let indexes = first..=self.index();
        indexes.filter(move |index| self.entry(*index).is_some_and(lets_in))
    }

    /// Drops the entries above `index`, which the tail reaches.
    pub(crate) fn truncate(&mut self, index: u64) {
        debug_assert!(index >= self.base_index());
        if index >= self.index() {
            return;
        }
        let kept = usize::try_from(index - self.base_index()).unwrap_or(usize::MAX);
        let dropped = self.tail.drain(kept..).map(|entry| entry.bytes());
        self.tail_bytes -= dropped.sum::<usize>();
        self.end = self.state_at(index);
    }

    /// Drops the oldest entries beyond the limits, but none above `confirmed`, and returns them.
    pub(crate) fn trim(&mut self, confirmed: u64, options: &Options) -> Vec<Entry> {
        let (entries, bytes) = (options.tail_entries as usize, options.tail_bytes as usize);
        let mut dropped = Vec::new();
        while self.base_index() < confirmed
            && (self.tail.len() > entries || self.tail_bytes > bytes)
        {
            dropped.extend(self.drop_first());
        }
        dropped
    }

    /// Drops the entries up to `index`, as far as the tail has them.
    pub(crate) fn drop_to(&mut self, index: u64) {
        while self.base_index() < index && self.drop_first().is_some() {}
    }

    fn drop_first(&mut self) -> Option<Entry> {
        let entry = self.tail.pop_front()?;
        self.tail_bytes -= entry.bytes();
        self.base.apply(&entry);
        Some(entry)
    }

    /// An upper estimate of the memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.base.bytes() + self.end.bytes() + self.tail_bytes
    }

    /// The index of the last entry that this log shares with another.
    ///
    /// One ballot's entries have one author, its leader: two logs that both have its opening share what follows up to the
    /// shorter end of that ballot's entries, and all that precedes.
    pub(crate) fn common_prefix(&self, tip: &Tip) -> u64 {
        let theirs: Vec<_> = tip.openings.iter().collect();
        self.common_prefix_of(&theirs, tip.last.as_ref())
    }

    /// The index of the last entry that this log shares with the one that led to `tables`.
    pub(crate) fn shared_with(&self, tables: &Tables) -> u64 {
        match tables.last() {
            Some(last) if self.reaches(Some(last)) => last.index,
            last => {
                let theirs: Vec<_> = tables.openings().collect();
                self.common_prefix_of(&theirs, last)
            }
        }
    }

    fn common_prefix_of(&self, theirs: &[&Place], their_last: Option<&Place>) -> u64 {
        let mut ours = self.end.openings().rev();
        let Some(shared) = ours.find(|at| theirs.contains(at)) else {
            return 0;
        };
        let our_end = end_of_ballot(self.end.openings(), shared, self.last());
        let their_end = end_of_ballot(theirs.iter().copied(), shared, their_last);
        our_end.min(their_end)
    }
}

/// The index of the last entry of the ballot that `opening` begins.
fn end_of_ballot<'a>(
    openings: impl Iterator<Item = &'a Place>,
    opening: &Place,
    last: Option<&Place>,
) -> u64 {
    let mut later = openings.map(|at| at.index).filter(|at| *at > opening.index);
    match later.next() {
        Some(next) => next - 1,
        None => last.map_or(0, |last| last.index),
    }
}
