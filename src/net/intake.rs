//! What is taken of a peer's lane: the host gets it, the sender gets an ack, and the room is asked what may be taken.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot};

use super::control::Queued;
use super::events::{LinkContext, LinkEvent, LinkId};
use super::frame::{ControlFrame, MAX_ACKED_NUMBERS, is_ordered};
use super::outbox::OutMessage;
use super::received::Received;
use crate::core::event::Delivery;
use crate::core::id::PeerId;

/// Messages after which an ack goes to the sender, so that it may send more.
const ACK_EVERY_MESSAGES: u64 = 16;
/// Bytes after which an ack goes to the sender.
const ACK_EVERY_BYTES: usize = 64 * 1024;

/// What all readers of a link share.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) link: LinkId,
    pub(super) peer: PeerId,
    pub(super) context: LinkContext,
    pub(super) received: Arc<Received>,
}

impl Asker {
    /// Asks the room; without an answer the link is being closed.
    pub(super) async fn ask<T>(
        &self,
        event: impl FnOnce(oneshot::Sender<T>) -> LinkEvent,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.tell(event(answer)).await;
        answered.await.ok()
    }

    /// Tells the room.
    pub(super) async fn tell(&self, event: LinkEvent) {
        // Without a room there is nobody to tell.
        let _ = self.context.events.send((self.link, event)).await;
    }
}

/// The receiving end of an ordered lane on one link.
pub(super) struct Intake {
    pub(super) asker: Asker,
    pub(super) lane: u16,
    /// The next message expected.
    next_seq: Arc<AtomicU64>,
    control: mpsc::Sender<Queued>,
    /// The sender has an ack of every message before this number.
    acked: u64,
    /// Bytes taken since that ack.
    bytes: usize,
    /// The sender's broadcasts before this number are relayed, and it was not told so yet. Whenever it is set,
    /// a message was taken as well.
    relayed: Option<u64>,
}

impl Intake {
    /// Nothing has been acknowledged on this link: what was taken on an earlier one is acknowledged again, because
    /// that ack may have been lost with it.
    pub(super) fn new(asker: Asker, lane: u16, control: mpsc::Sender<Queued>) -> Self {
        Self {
            next_seq: asker.received.next_seq(lane),
            asker,
            lane,
            control,
            acked: 0,
            bytes: 0,
            relayed: None,
        }
    }

    /// The number of the next message expected.
    pub(super) fn next(&self) -> u64 {
        self.next_seq.load(Ordering::Relaxed)
    }

    /// Whether the sender has an ack of everything that was taken.
    pub(super) fn is_acked(&self) -> bool {
        self.next() == self.acked
    }

    /// The sender's broadcasts before number `next` are relayed.
    pub(super) fn relayed(&mut self, next: u64) {
        self.relayed = Some(next);
    }

    /// Whether the sender is still to be told what was relayed.
    pub(super) fn owes_relayed(&self) -> bool {
        self.relayed.is_some()
    }

    /// The next message, of this many bytes on the wire, was accepted.
    pub(super) async fn take(&mut self, wire_len: usize) {
        let next = self.next() + 1;
        debug_assert!(self.acked < next, "an ack of a message that was not taken");
        self.next_seq.store(next, Ordering::Relaxed);
        self.asker.received.count_one();
        self.bytes += wire_len;
        if next - self.acked >= ACK_EVERY_MESSAGES || self.bytes >= ACK_EVERY_BYTES {
            self.ack().await;
        }
    }

    /// Tells the sender what was taken.
    pub(super) async fn ack(&mut self) {
        let next = self.next();
        if next == self.acked {
            return;
        }
        self.acked = next;
        self.bytes = 0;
        let lane = self.lane;
        self.say(ControlFrame::Ack { lane, next }).await;
        if let Some(next) = self.relayed.take() {
            self.say(ControlFrame::Relayed { lane, next }).await;
        }
    }

    async fn say(&self, frame: ControlFrame) {
        // Without a writer the link has ended.
        let _ = self.control.send(frame.into()).await;
    }

    /// Gives the host a message, once there is room for it.
    pub(super) async fn deliver(&self, from: PeerId, message: OutMessage, channel: u8) {
        let delivery = match self.lane <= u16::from(u8::MAX) {
            true => Delivery::ReliableOrdered,
            false => Delivery::ReliableUnordered,
        };
        debug_assert!(is_ordered(self.lane), "each unordered message has a stream");
        let message = message.into_incoming(from, channel, delivery);
        self.asker.context.dispatch.push_message(message).await;
    }
}

/// The receiving end of the unordered messages on one link: each of their streams has a clone.
#[derive(Clone)]
pub(super) struct UnorderedIntake {
    pub(super) asker: Asker,
    control: mpsc::Sender<Queued>,
    /// Taken, and the sender has no ack.
    pending: Arc<Mutex<Vec<u64>>>,
    /// Notified when the first of those is there.
    first: Arc<Notify>,
}

impl UnorderedIntake {
    pub(super) fn new(asker: Asker, control: mpsc::Sender<Queued>) -> Self {
        Self {
            asker,
            control,
            pending: Arc::default(),
            first: Arc::default(),
        }
    }

    /// Whether this message is to be taken. One that was is acknowledged again.
    ///
    /// # Errors
    /// No member sends it.
    pub(super) fn is_new(&self, number: u64) -> Result<bool, &'static str> {
        let is_new = self.asker.received.unordered().is_new(number)?;
        if !is_new {
            self.owe(number);
        }
        Ok(is_new)
    }

    /// Gives the host a message, once there is room for it.
    pub(super) async fn take(&self, number: u64, message: OutMessage, channel: u8) {
        let peer = self.asker.peer.clone();
        let message = message.into_incoming(peer, channel, Delivery::ReliableUnordered);
        self.asker.context.dispatch.push_message(message).await;
        // At once: the stream may be stopped wherever it waits.
        self.asker.received.unordered().insert(number);
        self.asker.received.count_one();
        self.owe(number);
    }

    fn owe(&self, number: u64) {
        let mut pending = self.pending();
        pending.push(number);
        if pending.len() == 1 {
            self.first.notify_one();
        }
    }

    fn pending(&self) -> MutexGuard<'_, Vec<u64>> {
        // Nothing panics halfway through a change.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acknowledges what was taken, some time after the first of it.
    pub(super) async fn run_acks(self, delay: std::time::Duration) {
        loop {
            self.first.notified().await;
            tokio::time::sleep(delay).await;
            let taken = std::mem::take(&mut *self.pending());
            for taken in taken.chunks(MAX_ACKED_NUMBERS) {
                let next = self.asker.received.unordered().next();
                let taken = taken.iter().copied().filter(|number| *number >= next);
                let frame = ControlFrame::AckUnordered {
                    next,
                    taken: taken.collect(),
                };
                // Without a writer the link has ended.
                let _ = self.control.send(frame.into()).await;
            }
        }
    }
}
