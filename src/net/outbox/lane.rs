//! A lane of the queue to a peer.

use std::collections::VecDeque;
use std::sync::Arc;

use room_transport::quic::{RECEIVE_WINDOW_BYTES, SEND_WINDOW_BYTES, STREAM_RECEIVE_WINDOW_BYTES};
use tokio::sync::Notify;

use super::{Entry, SenderRole};
use crate::net::frame::{MAX_UNORDERED_IN_FLIGHT, MAX_UNORDERED_SPAN, UNORDERED_LANE};

/// Numbered messages of a lane.
#[derive(Debug)]
pub(super) struct Lane {
    /// Messages in flight, at most.
    max_in_flight: usize,
    /// An acknowledged unordered message leaves a gap (`None`) until the ones before it are acknowledged. The
    /// first entry is never a gap.
    entries: VecDeque<Option<Entry>>,
    /// Totals of the entries that are not gaps.
    queued: Load,
    /// Number of the first entry.
    first_seq: u64,
    /// Number of entries that the present link has taken.
    taken: usize,
    /// Number of them without an acknowledgement of the peer.
    in_flight: usize,
    /// Their cost in bytes.
    bytes_in_flight: usize,
    /// The number after the last message that any link of this session has taken.
    pub(super) sent_until: u64,
    /// The number after the last broadcast sent here to be relayed.
    pub(super) central_until: u64,
    /// The notice of the writer, once there is one.
    writer: Option<Arc<Notify>>,
    /// Whether the writer found nothing and waits for its notice.
    writer_waits: bool,
    /// Whether the writer waits although there is a message, until fewer bytes are in flight to the peer.
    held: bool,
}

/// Cost of a message in flight, beside its payload.
const MESSAGE_COST_BYTES: usize = 64;
/// Highest cost of a message: no more of a long one is in QUIC at once, at either end.
const MAX_MESSAGE_COST_BYTES: usize = STREAM_RECEIVE_WINDOW_BYTES as usize + MESSAGE_COST_BYTES;
/// Limit of bytes in flight on all lanes to the peer. Messages beyond it wait here: in QUIC they would delay
/// the control stream and other lanes.
const MAX_BYTES_IN_FLIGHT: usize = 4 << 20;
/// A lane with no more than this in flight may continue despite bulk on other lanes,
const SMALL_LANE_BYTES: usize = 64 << 10;
/// until this much is in flight on all lanes.
const MAX_BYTES_WITH_SMALL_LANES: usize = 7 << 20;
// Bulk leaves room for small lanes, and both leave room for the control stream.
const _: () = {
    assert!(MAX_BYTES_IN_FLIGHT + MAX_MESSAGE_COST_BYTES < MAX_BYTES_WITH_SMALL_LANES);
    assert!(MAX_BYTES_WITH_SMALL_LANES + SMALL_LANE_BYTES < SEND_WINDOW_BYTES as usize);
    assert!(SEND_WINDOW_BYTES <= RECEIVE_WINDOW_BYTES as u64);
};

/// Number of messages, and bytes of their payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

impl Load {
    pub(super) fn count(&mut self, entry: &Entry) {
        self.messages += 1;
        self.bytes += entry.message.len();
    }

    pub(super) fn subtract(&mut self, gone: Self) {
        self.messages -= gone.messages;
        self.bytes -= gone.bytes;
        debug_assert!(self.messages > 0 || self.bytes == 0, "bytes of no message");
    }
}

/// The cost of a message in flight.
fn cost(entry: &Entry) -> usize {
    MAX_MESSAGE_COST_BYTES.min(entry.message.len() + MESSAGE_COST_BYTES)
}

impl Lane {
    pub(super) fn new(lane: u16) -> Self {
        Self {
            max_in_flight: match lane {
                UNORDERED_LANE => MAX_UNORDERED_IN_FLIGHT,
                _ => usize::MAX,
            },
            entries: VecDeque::new(),
            queued: Load::default(),
            first_seq: 0,
            taken: 0,
            in_flight: 0,
            bytes_in_flight: 0,
            sent_until: 0,
            central_until: 0,
            writer: None,
            writer_waits: false,
            held: false,
        }
    }

    pub(super) fn oldest(&self) -> Option<&Entry> {
        self.entries.front()?.as_ref()
    }

    #[cfg(test)]
    pub(super) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    /// Whether the next number is within the span that the peer can acknowledge.
    pub(super) fn is_within_span(&self) -> bool {
        (self.entries.len() as u64) < MAX_UNORDERED_SPAN
    }

    /// Whether there is something to write and no writer.
    pub(super) fn lacks_writer(&self) -> bool {
        self.writer.is_none() && self.taken < self.entries.len()
    }

    /// Totals of the messages that the peer has not acknowledged.
    pub(super) fn queued(&self) -> Load {
        self.queued
    }

    /// Attaches a writer. Its notice is triggered when there is something to write after it found nothing.
    pub(super) fn begin(&mut self) -> Arc<Notify> {
        let writer = Arc::new(Notify::new());
        self.writer = Some(Arc::clone(&writer));
        self.writer_waits = false;
        self.held = false;
        writer
    }

    /// Prepares for a new link with a writer of its own.
    pub(super) fn restart(&mut self) {
        self.taken = 0;
        self.in_flight = 0;
        self.bytes_in_flight = 0;
        self.writer = None;
        self.writer_waits = false;
        self.held = false;
    }

    /// Cost of the messages that the present link has taken and the peer has not acknowledged.
    pub(super) fn bytes_in_flight(&self) -> usize {
        self.bytes_in_flight
    }

    /// Whether the next message may be sent with this many bytes in flight on other lanes.
    fn may_go(&self, on_other_lanes: usize) -> bool {
        let Some(next) = self.entries.get(self.taken) else {
            return false;
        };
        let cost = next.as_ref().map_or(0, cost);
        let max = match self.bytes_in_flight + cost <= SMALL_LANE_BYTES {
            true => MAX_BYTES_WITH_SMALL_LANES,
            false => MAX_BYTES_IN_FLIGHT,
        };
        on_other_lanes + self.bytes_in_flight < max && self.in_flight < self.max_in_flight
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.queued.count(&entry);
        self.entries.push_back(Some(entry));
        if !self.held {
            self.wake();
        }
        self.check();
    }

    fn wake(&mut self) {
        self.held = false;
        if std::mem::take(&mut self.writer_waits)
            && let Some(writer) = &self.writer
        {
            writer.notify_one();
        }
    }

    /// The next message for the link, with its number; `None` if it may not be sent yet.
    pub(super) fn next(&mut self, on_other_lanes: usize) -> Option<(u64, Entry)> {
        loop {
            if !self.may_go(on_other_lanes) {
                return None;
            }
            let entry = self.entries.get(self.taken)?.clone();
            let seq = self.first_seq + self.taken as u64;
            self.taken += 1;
            let Some(entry) = entry else {
                continue; // acknowledged on an earlier link
            };
            self.in_flight += 1;
            self.bytes_in_flight += cost(&entry);
            self.sent_until = self.sent_until.max(seq + 1);
            if let SenderRole::Central { number, .. } = entry.role {
                self.central_until = self.central_until.max(number + 1);
            }
            self.check();
            return Some((seq, entry));
        }
    }

    /// Records that the writer found nothing, or nothing that it may send.
    pub(super) fn wait(&mut self) {
        self.writer_waits = true;
        self.held = self.taken < self.entries.len();
    }

    /// Wakes a held writer if fewer bytes are in flight.
    pub(super) fn wake_if_held(&mut self, on_other_lanes: usize) {
        if self.held && self.may_go(on_other_lanes) {
            self.wake();
        }
    }

    /// Records that the peer has taken every message before number `next`. `None` if that is impossible.
    pub(super) fn acked(&mut self, next: u64) -> Option<Load> {
        let mut gone = Load::default();
        let Some(count) = next.checked_sub(self.first_seq) else {
            return Some(gone); // older than an earlier ack
        };
        if next > self.sent_until {
            return None; // never sent
        }
        // An ack may outlive the link that carried the messages; a new link need not have taken them again.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let count = count.min(self.entries.len());
        for (index, entry) in self.entries.drain(..count).enumerate() {
            if let Some(entry) = entry {
                gone.count(&entry);
                if index < self.taken {
                    self.in_flight -= 1;
                    self.bytes_in_flight -= cost(&entry);
                }
            }
        }
        self.queued.subtract(gone);
        self.first_seq = next;
        self.taken = self.taken.saturating_sub(count);
        self.drop_leading_gaps();
        self.check();
        Some(gone)
    }

    /// Records that the peer has taken the unordered message `seq`. `None` if that is impossible.
    pub(super) fn acked_one(&mut self, seq: u64) -> Option<Load> {
        if seq >= self.sent_until {
            return None;
        }
        let mut gone = Load::default();
        let Some(index) = seq.checked_sub(self.first_seq) else {
            return Some(gone);
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(entry) = self.entries.get_mut(index).and_then(Option::take) {
            gone.count(&entry);
            if index < self.taken {
                self.in_flight -= 1;
                self.bytes_in_flight -= cost(&entry);
            }
        }
        self.queued.subtract(gone);
        self.drop_leading_gaps();
        self.check();
        Some(gone)
    }

    fn drop_leading_gaps(&mut self) {
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first_seq += 1;
            self.taken = self.taken.saturating_sub(1);
        }
        self.forget_held();
    }

    /// Clears `held` if no message is left to hold back.
    fn forget_held(&mut self) {
        self.held &= self.taken < self.entries.len();
    }

    /// Withdraws the broadcasts for a leader that no link has carried: their numbers on the lane are still unused.
    pub(super) fn withdraw_unsent(&mut self) -> Load {
        let sent = self.sent_until.saturating_sub(self.first_seq);
        let mut index = 0;
        let mut gone = Load::default();
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
        self.queued.subtract(gone);
        self.forget_held();
        self.check();
        gone
    }

    /// Checks the invariants between any two calls.
    fn check(&self) {
        let taken_until = self.first_seq + self.taken as u64;
        let queued_until = self.first_seq + self.entries.len() as u64;
        debug_assert!(taken_until <= self.sent_until, "taken, but not sent");
        debug_assert!(self.sent_until <= queued_until, "sent, but not queued");
        debug_assert!(self.in_flight <= self.taken, "on the way, but not taken");
        debug_assert!(
            self.in_flight * MESSAGE_COST_BYTES <= self.bytes_in_flight
                && (self.in_flight > 0 || self.bytes_in_flight == 0),
            "bytes on the way of other messages"
        );
        debug_assert!(
            !matches!(self.entries.front(), Some(None)),
            "a gap before the first message"
        );
        debug_assert!(
            !self.writer_waits || self.taken == self.entries.len() || self.held,
            "the writer waits for what is there"
        );
    }
}
