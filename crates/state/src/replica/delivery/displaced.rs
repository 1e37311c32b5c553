//! Actions that the host has received and the log lacks, until another history is sure to go on.

use super::*;

/// See the module's text. The limits of a tail bound it.
#[derive(Debug, Clone, Default)]
pub(super) struct Displaced {
    /// By rising index.
    actions: VecDeque<(u64, Entry)>,
    bytes: usize,
    /// Actions up to this index that the log lacks are missing here.
    missing_to: u64,
    /// The index of the last Reset, if it stands for actions: the host has not received them one by one.
    reset_at: u64,
}

impl Displaced {
    /// Nothing is displaced; the host has received the actions after `reset_at`.
    pub(super) fn none_since(reset_at: u64) -> Self {
        Self {
            reset_at,
            ..Self::default()
        }
    }

    pub(super) fn reset_at(&self) -> u64 {
        self.reset_at
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn actions(&self) -> impl Iterator<Item = (u64, Action<'_>)> {
        let actions = self.actions.iter();
        actions.filter_map(|(index, entry)| Some((*index, Action::of(entry)?)))
    }

    /// Whether an action above `shared` is missing here.
    pub(super) fn is_incomplete(&self, shared: u64) -> bool {
        self.missing_to > shared
    }

    /// Another log takes the place of `old`; the host is at `seen`.
    pub(super) fn note_replaced(&mut self, seen: &Tables, old: &Log, new: &Log, options: &Options) {
        let shared = new.shared_with(seen);
        self.restore(shared);
        let held = old.shared_with(seen);
        let dropped = match old.base().actions() {
            0 => 0,
            _ => old.base_index(),
        };
        let missing_to = dropped.max(self.reset_at).min(held);
        if missing_to > shared {
            self.missing_to = self.missing_to.max(missing_to);
        }
        for index in (shared.max(missing_to) + 1..=held).rev() {
            self.add_first(index, old);
        }
        self.limit(options);
    }

    fn add_first(&mut self, index: u64, log: &Log) {
        let action = log.entry(index).filter(|entry| Action::of(entry).is_some());
        if let Some(entry) = action {
            self.bytes += entry.bytes();
            self.actions.push_front((index, entry.clone()));
        }
    }

    /// The log has the entries up to `shared` again.
    fn restore(&mut self, shared: u64) {
        while self.actions.front().is_some_and(|(at, _)| *at <= shared) {
            self.drop_first();
        }
        if self.missing_to <= shared {
            self.missing_to = 0;
        }
    }

    fn limit(&mut self, options: &Options) {
        let (entries, bytes) = (options.tail_entries as usize, options.tail_bytes as usize);
        while self.actions.len() > entries || self.bytes > bytes {
            self.missing_to = self.drop_first().max(self.missing_to);
        }
    }

    /// Its index.
    fn drop_first(&mut self) -> u64 {
        let Some((index, entry)) = self.actions.pop_front() else {
            return 0;
        };
        self.bytes -= entry.bytes();
        index
    }
}
