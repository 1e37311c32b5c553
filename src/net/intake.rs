//! What is taken of a peer's lane: the host gets it, the sender gets an ack, and the room is asked what may be taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::control::Queued;
use super::events::{LinkContext, LinkEvent, LinkId};
use super::frame::{ControlFrame, RELIABLE_ORDERED};
use super::outbox::OutMessage;
use crate::core::id::PeerId;
use crate::dispatch::Incoming;

/// Messages after which an ack goes to the sender, so that it may send more.
const ACK_EVERY_MESSAGES: u64 = 16;
/// Bytes after which an ack goes to the sender.
const ACK_EVERY_BYTES: usize = 64 * 1024;

/// The receiving end of a lane on one link.
pub(super) struct Intake {
    link: LinkId,
    pub(super) peer: PeerId,
    pub(super) context: LinkContext,
    /// The next message expected. Changed only in the moment in which a message is taken, so that a reader
    /// that is stopped leaves an exact number to its successor.
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
    pub(super) fn new(
        link: LinkId,
        peer: PeerId,
        next_seq: Arc<AtomicU64>,
        control: mpsc::Sender<Queued>,
        context: LinkContext,
    ) -> Self {
        Self {
            link,
            peer,
            context,
            next_seq,
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
        let lane = RELIABLE_ORDERED;
        self.say(ControlFrame::Ack { lane, next }).await;
        if let Some(next) = self.relayed.take() {
            self.say(ControlFrame::Relayed { next }).await;
        }
    }

    async fn say(&self, frame: ControlFrame) {
        // Without a writer the link has ended.
        let _ = self.control.send(frame.into()).await;
    }

    /// Gives the host a message, once there is room for it.
    pub(super) async fn deliver(&self, from: PeerId, message: OutMessage) {
        let message = Incoming {
            from,
            payload: message.payload,
            msg_type: message.msg_type,
            flags: message.flags,
        };
        self.context.dispatch.push_message(message).await;
    }

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
