//! One lane of the queue to a peer.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::{Entry, SenderRole};
use crate::net::frame::{MAX_UNORDERED_ON_THE_WAY, MAX_UNORDERED_SPAN};

/// Messages with their numbers.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// An unordered message that the peer has taken leaves a gap until those before it are taken. The first is none.
    entries: VecDeque<Option<Entry>>,
    /// The number of the first entry.
    first_seq: u64,
    /// How many entries the present link has taken.
    taken: usize,
    /// How many of those the peer has not taken.
    on_the_way: usize,
    /// The number after the last message that any link of this session has taken.
    pub(super) sent_until: u64,
    /// The number after the last broadcast that went here to be relayed.
    pub(super) central_until: u64,
    /// The writer's, once there is one.
    writer: Option<Arc<Notify>>,
    /// Whether the writer found nothing and waits to be notified.
    writer_waits: bool,
}

/// What left a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gone {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

impl Gone {
    fn count(&mut self, entry: &Entry) {
        self.messages += 1;
        self.bytes += entry.message.len();
    }
}

impl Lane {
    pub(super) fn oldest(&self) -> Option<&Entry> {
        self.entries.front()?.as_ref()
    }

    #[cfg(test)]
    pub(super) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    /// Whether the next number is near enough to the first for the peer to remember which it has taken.
    pub(super) fn is_within_span(&self) -> bool {
        (self.entries.len() as u64) < MAX_UNORDERED_SPAN
    }

    /// Whether there is something to write and nobody to do it.
    pub(super) fn lacks_writer(&self) -> bool {
        self.writer.is_none() && self.taken < self.entries.len()
    }

    /// A writer begins; what it gets is notified when there is something to write after it found nothing.
    pub(super) fn begin(&mut self) -> Arc<Notify> {
        let writer = Arc::new(Notify::new());
        self.writer = Some(Arc::clone(&writer));
        self.writer_waits = false;
        writer
    }

    /// A new link carries the lane, with a writer of its own.
    pub(super) fn restart(&mut self) {
        self.taken = 0;
        self.on_the_way = 0;
        self.writer = None;
        self.writer_waits = false;
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(Some(entry));
        self.wake();
        self.check();
    }

    fn wake(&mut self) {
        if std::mem::take(&mut self.writer_waits)
            && let Some(writer) = &self.writer
        {
            writer.notify_one();
        }
    }

    /// The next message for the link, with its number.
    pub(super) fn next(&mut self) -> Option<(u64, Entry)> {
        loop {
            let entry = self.entries.get(self.taken)?.clone();
            let seq = self.first_seq + self.taken as u64;
            self.taken += 1;
            let Some(entry) = entry else {
                continue; // taken from an earlier link
            };
            self.on_the_way += 1;
            self.sent_until = self.sent_until.max(seq + 1);
            if let SenderRole::Central { number, .. } = entry.role {
                self.central_until = self.central_until.max(number + 1);
            }
            self.check();
            return Some((seq, entry));
        }
    }

    /// The same, unless as many are on their way as may be.
    pub(super) fn next_unordered(&mut self) -> Option<(u64, Entry)> {
        if self.on_the_way >= MAX_UNORDERED_ON_THE_WAY {
            return None;
        }
        self.next()
    }

    /// The writer found nothing.
    pub(super) fn wait(&mut self) {
        self.writer_waits = true;
    }

    /// The peer has taken every message before number `next`. `None` if that is impossible.
    pub(super) fn acked(&mut self, next: u64) -> Option<Gone> {
        let mut gone = Gone::default();
        let Some(count) = next.checked_sub(self.first_seq) else {
            return Some(gone); // older than an earlier ack
        };
        if next > self.sent_until {
            return None; // never sent
        }
        // An ack may outlive the link on which the messages went; a new link need not have taken them again.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let count = count.min(self.entries.len());
        let mut off_the_way = 0;
        for (index, entry) in self.entries.drain(..count).enumerate() {
            if let Some(entry) = entry {
                gone.count(&entry);
                off_the_way += usize::from(index < self.taken);
            }
        }
        self.on_the_way -= off_the_way;
        self.first_seq = next;
        self.taken = self.taken.saturating_sub(count);
        self.drop_leading_gaps();
        self.wake_if_any();
        self.check();
        Some(gone)
    }

    /// The peer has taken the unordered message `seq`. `None` if that is impossible.
    pub(super) fn acked_one(&mut self, seq: u64) -> Option<Gone> {
        if seq >= self.sent_until {
            return None;
        }
        let mut gone = Gone::default();
        let Some(index) = seq.checked_sub(self.first_seq) else {
            return Some(gone);
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(entry) = self.entries.get_mut(index).and_then(Option::take) {
            gone.count(&entry);
            self.on_the_way -= usize::from(index < self.taken);
        }
        self.drop_leading_gaps();
        self.wake_if_any();
        self.check();
        Some(gone)
    }

    fn drop_leading_gaps(&mut self) {
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first_seq += 1;
            self.taken = self.taken.saturating_sub(1);
        }
    }

    /// Fewer are on their way, so that a writer of unordered messages may go on.
    fn wake_if_any(&mut self) {
        if self.taken < self.entries.len() {
            self.wake();
        }
    }

    /// Takes back the broadcasts for a leader that no link has carried: their numbers on the lane are not
    /// used yet.
    pub(super) fn withdraw_unsent(&mut self) -> Gone {
        let sent = self.sent_until.saturating_sub(self.first_seq);
        let mut index = 0;
        let mut gone = Gone::default();
        self.entries.retain(|entry| {
            let unsent = index >= sent;
            index += 1;
            match entry {
                Some(entry) if unsent && matches!(entry.role, SenderRole::Central { .. }) => {
                    gone.count(entry);
                    false
                }
                _ => true,
            }
        });
        self.check();
        gone
    }

    /// What holds between any two calls.
    fn check(&self) {
        let taken_until = self.first_seq + self.taken as u64;
        let queued_until = self.first_seq + self.entries.len() as u64;
        debug_assert!(taken_until <= self.sent_until, "taken, but not sent");
        debug_assert!(self.sent_until <= queued_until, "sent, but not queued");
        debug_assert!(self.on_the_way <= self.taken, "on the way, but not taken");
        debug_assert!(
            !matches!(self.entries.front(), Some(None)),
            "a gap before the first message"
        );
        debug_assert!(
            !self.writer_waits
                || self.taken == self.entries.len()
                || self.on_the_way >= MAX_UNORDERED_ON_THE_WAY,
            "the writer waits for what is there"
        );
    }
}
