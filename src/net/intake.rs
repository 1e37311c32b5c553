//! Intake of a peer's lanes: delivers messages to the host, acknowledges them, and asks the room which ones may be taken.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::control::Queued;
use super::events::{LinkContext, LinkEvent, LinkId};
use super::frame::{ControlFrame, MAX_ACKED_NUMBERS, MAX_UNORDERED_SPAN, is_ordered};
use super::outbox::OutMessage;
use super::received::Received;
use crate::core::bounded::BoundedMap;
use crate::core::event::{Delivery, Incoming};
use crate::core::id::PeerId;
use crate::dispatch::Wake;

/// Messages after which an ack is sent once no more have arrived, so that the sender may send more.
const ACK_EVERY_MESSAGES: u64 = 16;
/// Messages after which an ack is sent although more have arrived.
const ACK_AT_LATEST_MESSAGES: u64 = 64;
/// Messages after which the dispatcher is woken, so that it works while more of them are read.
const MAX_UNWOKEN: u64 = 64;
/// Bytes after which an ack is sent.
const ACK_EVERY_BYTES: usize = 64 * 1024;

/// State that all readers of a link share.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) link: LinkId,
    pub(super) peer: PeerId,
    pub(super) context: LinkContext,
    pub(super) received: Arc<Received>,
}

impl Asker {
    /// Asks the room; `None` if the link is being closed.
    pub(super) async fn ask<T>(
        &self,
        event: impl FnOnce(oneshot::Sender<T>) -> LinkEvent,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.notify(event(answer)).await;
        answered.await.ok()
    }

    /// Sends an event to the room.
    pub(super) async fn notify(&self, event: LinkEvent) {
        // Fails only without a room.
        let _ = self.context.events.send((self.link, event)).await;
    }
}

/// The receiving end of an ordered lane on one link.
pub(super) struct Intake {
    pub(super) asker: Asker,
    pub(super) lane: u16,
    /// Number of the next expected message.
    next_seq: Arc<AtomicU64>,
    control: mpsc::Sender<Queued>,
    /// Every message before this number was acknowledged.
    acked: u64,
    /// Bytes taken since that ack.
    bytes: usize,
    /// The sender's broadcasts before this number are relayed, and the sender was not notified yet. It is set
    /// only together with a taken message.
    relayed: Option<u64>,
    /// Messages pushed to the dispatcher without waking it.
    unwoken: u64,
}

impl Drop for Intake {
    /// A reader may be stopped at any await.
    fn drop(&mut self) {
        self.wake();
    }
}

impl Intake {
    /// Starts with nothing acknowledged on this link. Messages taken on an earlier link are acknowledged
    /// again, because that ack may have been lost with the link.
    pub(super) fn new(asker: Asker, lane: u16, control: mpsc::Sender<Queued>) -> Self {
        Self {
            next_seq: asker.received.next_seq(lane),
            asker,
            lane,
            control,
            acked: 0,
            bytes: 0,
            relayed: None,
            unwoken: 0,
        }
    }

    /// The number of the next message expected.
    pub(super) fn next(&self) -> u64 {
        self.next_seq.load(Ordering::Relaxed)
    }

    /// Whether every taken message was acknowledged.
    pub(super) fn is_acked(&self) -> bool {
        self.next() == self.acked
    }

    /// Records that the sender's broadcasts before number `next` are relayed.
    pub(super) fn relayed(&mut self, next: u64) {
        self.relayed = Some(next);
    }

    /// Records that the next message was accepted; it had this many bytes on the wire.
    pub(super) async fn take(&mut self, wire_len: usize) {
        let next = self.next() + 1;
        debug_assert!(self.acked < next, "an ack of a message that was not taken");
        self.next_seq.store(next, Ordering::Relaxed);
        self.asker.received.count_one();
        self.bytes += wire_len;
        if next - self.acked >= ACK_AT_LATEST_MESSAGES || self.bytes >= ACK_EVERY_BYTES {
            self.ack().await;
        }
    }

    /// Wakes the dispatcher and sends a due ack, after all arrived messages were taken.
    pub(super) async fn pause(&mut self) {
        self.wake();
        // An origin that does not learn what was relayed may send it again when the leader changes.
        if self.relayed.is_some() || self.next() - self.acked >= ACK_EVERY_MESSAGES {
            self.ack().await;
        }
    }

    /// Acknowledges the taken messages.
    pub(super) async fn ack(&mut self) {
        let next = self.next();
        if next == self.acked {
            return;
        }
        self.acked = next;
        self.bytes = 0;
        let lane = self.lane;
        self.emit(ControlFrame::Ack { lane, next }).await;
        if let Some(next) = self.relayed.take() {
            self.emit(ControlFrame::Relayed { lane, next }).await;
        }
    }

    async fn emit(&mut self, frame: ControlFrame) {
        // Without a writer the link has ended.
        if let Err(TrySendError::Full(frame)) = self.control.try_send(frame.into()) {
            self.wake();
            let _ = self.control.send(frame).await;
        }
    }

    /// Delivers a message to the host, once there is room for it.
    pub(super) async fn deliver(&self, from: PeerId, message: OutMessage, channel: u8) {
        let message = self.incoming(from, message, channel);
        let dispatch = &self.asker.context.dispatch;
        self.stopping(dispatch.push_message(message)).await;
    }

    /// Waits for this host, and records for how long: the lane is not read meanwhile.
    pub(super) async fn stopping<T>(&self, waits: impl Future<Output = T>) -> T {
        tokio::pin!(waits);
        // Nearly always there is room.
        let ready = poll_fn(|cx| {
            Poll::Ready(match waits.as_mut().poll(cx) {
                Poll::Ready(done) => Some(done),
                Poll::Pending => None,
            })
        });
        if let Some(done) = ready.await {
            return done;
        }
        let from = Instant::now();
        let done = waits.await;
        let received = &self.asker.received;
        received.stopped(self.lane, from, Instant::now());
        done
    }

    /// [`Intake::deliver`] for one of several messages that have arrived. Its handler may not run before
    /// [`Intake::wake`], which follows soon, or within [`Intake::pause`].
    pub(super) async fn deliver_one_of_many(&mut self, message: OutMessage, channel: u8) {
        let message = self.incoming(self.asker.peer.clone(), message, channel);
        let dispatch = &self.asker.context.dispatch;
        if self.stopping(dispatch.push_one_of_many(message)).await == Wake::Due {
            self.unwoken += 1;
            if self.unwoken == MAX_UNWOKEN {
                self.wake();
            }
        }
    }

    /// Wakes the dispatcher if it has messages that it was not woken for.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.unwoken) > 0 {
            self.asker.context.dispatch.wake();
        }
    }

    fn incoming(&self, from: PeerId, message: OutMessage, channel: u8) -> Incoming {
        let delivery = match self.lane <= u16::from(u8::MAX) {
            true => Delivery::ReliableOrdered,
            false => Delivery::ReliableUnordered,
        };
        debug_assert!(is_ordered(self.lane), "each unordered message has a stream");
        message.into_incoming(from, channel, delivery)
    }
}

/// The receiving end of the unordered messages on one link; the reader of each stream has a clone.
#[derive(Clone)]
pub(super) struct UnorderedIntake {
    pub(super) asker: Asker,
    control: mpsc::Sender<Queued>,
    pending: Arc<Mutex<PendingAcks>>,
    /// Notified when an ack is due.
    due: Arc<Notify>,
}

/// The pending ack of unordered messages.
#[derive(Default)]
struct PendingAcks {
    /// Numbers of taken messages to acknowledge, beyond `next` (all before `next` were taken).
    taken: BoundedMap<u64, (), { MAX_UNORDERED_SPAN as usize }>,
    is_due: bool,
}

impl PendingAcks {
    /// Records a taken message, also a repeated one. All before number `next` were taken; the ack lists only
    /// numbers from there on. Returns whether this makes an ack due.
    fn note(&mut self, number: u64, next: u64) -> bool {
        while let Some((&first, ())) = self.taken.first_key_value()
            && first < next
        {
            self.taken.remove(&first);
        }
        if number >= next {
            // The rest lies within one span, so there is room for it.
            let _ = self.taken.insert(number, ());
        }
        !std::mem::replace(&mut self.is_due, true)
    }

    /// Takes the numbers of the ack; then none is due.
    fn take(&mut self) -> Vec<u64> {
        self.is_due = false;
        self.taken.take().into_keys().collect()
    }
}

impl UnorderedIntake {
    pub(super) fn new(asker: Asker, control: mpsc::Sender<Queued>) -> Self {
        Self {
            asker,
            control,
            pending: Arc::default(),
            due: Arc::default(),
        }
    }

    /// Whether to take this message. A repeated one is acknowledged again.
    ///
    /// # Errors
    /// The number is one that no member sends.
    pub(super) fn is_new(&self, number: u64) -> Result<bool, &'static str> {
        let is_new = self.asker.received.unordered().is_new(number)?;
        if !is_new {
            self.request_ack(number);
        }
        Ok(is_new)
    }

    /// Delivers a message to the host, once there is room for it.
    pub(super) async fn take(&self, number: u64, message: OutMessage, channel: u8) {
        let peer = self.asker.peer.clone();
        let message = message.into_incoming(peer, channel, Delivery::ReliableUnordered);
        self.asker.context.dispatch.push_message(message).await;
        // Recorded without an await in between: the stream may be stopped at any await.
        self.asker.received.unordered().insert(number);
        self.asker.received.count_one();
        self.request_ack(number);
    }

    fn request_ack(&self, number: u64) {
        let next = self.asker.received.unordered().next();
        if self.pending().note(number, next) {
            self.due.notify_one();
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingAcks> {
        // No panic can interrupt a change.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acknowledges taken messages, `delay` after the first of them.
    pub(super) async fn run_acks(self, delay: std::time::Duration) {
        loop {
            self.due.notified().await;
            tokio::time::sleep(delay).await;
            let taken = self.pending().take();
            let next = self.asker.received.unordered().next();
            let beyond: Vec<_> = taken.into_iter().filter(|taken| *taken >= next).collect();
            let mut parts: Vec<_> = beyond.chunks(MAX_ACKED_NUMBERS).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            for part in parts {
                let taken = part.to_vec();
                let frame = ControlFrame::AckUnordered { next, taken };
                // Without a writer the link has ended.
                let _ = self.control.send(frame.into()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use bytes::Bytes;

    use super::*;
    use crate::config::DispatchMode;
    use crate::core::event::Event;
    use crate::core::id::Fingerprint;
    use crate::dispatch::{Dispatch, Limits};
    use crate::net::frame::CLASSIC_LANE;
    use crate::net::outbox::{OutboxLimits, Outboxes};
    use crate::net::tunnel::Tunnels;
    use crate::transfers::Transfers;

    /// Far longer than any step takes.
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// The classic lane of a peer, the messages of this host, and the frames for the peer. The dispatcher sleeps.
    fn lane() -> (Intake, Receiver<u8>, mpsc::Receiver<Queued>) {
        let id = |id| PeerId::new(id).expect("an id");
        let limits = Limits {
            messages: 1000,
            bytes: 1 << 20,
            hold: TIMEOUT,
        };
        let dispatch = Dispatch::start(limits, id("me"), DispatchMode::Thread).expect("a thread");
        let (arrivals, receives) = channel();
        dispatch.register_event_handler(Some(Arc::new(move |event| {
            if let Event::Message(message) = event {
                let _ = arrivals.send(message.payload[0]);
            }
        })));
        let began = Instant::now();
        while !dispatch.sleeps() {
            assert!(began.elapsed() < TIMEOUT, "it never sleeps");
            std::thread::yield_now();
        }
        let outboxes = Outboxes::new(OutboxLimits {
            messages: 1000,
            bytes: 1 << 20,
        });
        let dispatch = Arc::new(dispatch);
        let context = LinkContext {
            has_state: false,
            outboxes: Arc::new(outboxes),
            transfers: Arc::new(Transfers::new(id("me"), Arc::clone(&dispatch))),
            dispatch,
            relaying: Arc::default(),
            tunnels: Arc::new(Tunnels::new(Fingerprint([1; 32]), 0)),
            events: mpsc::channel(1).0,
            budget: Arc::default(),
            max_message_size: 1 << 20,
            write_timeout: TIMEOUT,
        };
        let asker = Asker {
            link: LinkId(1),
            peer: id("peer"),
            context,
            received: Arc::default(),
        };
        let (control, reported) = mpsc::channel(16);
        (
            Intake::new(asker, CLASSIC_LANE, control),
            receives,
            reported,
        )
    }

    /// Takes `count` messages of the peer, each of `wire_len` bytes.
    async fn take(intake: &mut Intake, count: u8, wire_len: usize) {
        for number in 0..count {
            let message = OutMessage {
                payload: Bytes::from(vec![number]),
                msg_type: 0x0100,
                flags: 0,
            };
            intake.deliver_one_of_many(message, 0).await;
            intake.take(wire_len).await;
        }
    }

    fn acks(reported: &mut mpsc::Receiver<Queued>) -> Vec<u64> {
        let acks =
            std::iter::from_fn(|| reported.try_recv().ok()).map(|queued| match queued.frame {
                ControlFrame::Ack { next, .. } => next,
                frame => panic!("{frame:?}"),
            });
        acks.collect()
    }

    #[tokio::test]
    async fn messages_that_are_here_together_are_acknowledged_together() {
        let (mut intake, _receives, mut reported) = lane();
        take(&mut intake, 40, 1).await;
        assert_eq!(acks(&mut reported), [0; 0]);
        intake.pause().await;
        assert_eq!(acks(&mut reported), [40]);
        // This few wait for more, or for the delay.
        take(&mut intake, 15, 1).await;
        intake.pause().await;
        assert_eq!(acks(&mut reported), [0; 0]);
        assert!(!intake.is_acked());
        // This many bytes are acknowledged before the last message.
        take(&mut intake, 100, 1).await;
        assert_eq!(acks(&mut reported), [104]);
        intake.pause().await;
        assert_eq!(acks(&mut reported), [155]);
    }

    #[tokio::test]
    async fn a_stopped_reader_delivers_every_message_to_the_host() {
        let (mut intake, receives, _reported) = lane();
        take(&mut intake, 3, 1).await;
        let _dispatch = Arc::clone(&intake.asker.context.dispatch);
        drop(intake);
        for number in 0..3 {
            assert_eq!(receives.recv_timeout(TIMEOUT), Ok(number));
        }
    }

    #[tokio::test]
    async fn a_reader_that_waits_for_its_peer_leaves_none_either() {
        let (mut intake, receives, reported) = lane();
        // The peer reads nothing, and the frames for it fill the queue.
        let mut waits = Box::pin(async {
            for _ in 0..16 {
                intake.emit(ControlFrame::Ready).await;
            }
            take(&mut intake, 3, ACK_EVERY_BYTES / 2).await;
        });
        tokio::select! {
            biased;
            () = &mut waits => panic!("the peer took everything"),
            () = std::future::ready(()) => {}
        }
        for number in 0..2 {
            assert_eq!(receives.recv_timeout(TIMEOUT), Ok(number));
        }
        drop((waits, reported));
    }

    #[test]
    fn an_ack_of_unordered_messages_names_each_once_and_no_more_than_are_under_way() {
        let mut pending = PendingAcks::default();
        assert!(pending.note(5, 0));
        for _ in 0..100_000 {
            assert!(!pending.note(5, 0));
            assert!(!pending.note(3, 4), "all before 4 were taken");
        }
        assert_eq!(pending.take(), [5]);
        assert!(pending.note(3, 4), "an ack is due all the same");
        assert!(pending.take().is_empty());
        for number in 0..3 * MAX_UNORDERED_SPAN {
            pending.note(number, (number + 1).saturating_sub(MAX_UNORDERED_SPAN));
        }
        let newest = 2 * MAX_UNORDERED_SPAN..3 * MAX_UNORDERED_SPAN;
        assert_eq!(pending.take(), newest.collect::<Vec<_>>());
    }
}
