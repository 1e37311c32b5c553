//! What the host has sent and peers have not taken yet: one bounded, numbered queue per peer.
//!
//! Host threads put messages in, the lane writers of the network thread take copies out, and a message
//! leaves only when the peer's host queue has taken it (a cumulative ack). A new link to the same peer starts
//! again at the first message that is not acknowledged, so that nothing accepted is lost or reordered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::frame::{MessageHeader, MessageRole, put_message};
use crate::core::election::record::Record;
use crate::core::id::PeerId;
use crate::error::SendError;

/// A message as the host gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutMessage {
    /// What is sent.
    pub payload: Bytes,
    /// The application's type, 0x0100 or more.
    pub msg_type: u16,
    /// The application's flags; bit 0 is clear.
    pub flags: u8,
}

/// How much the queue of one peer holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboxLimits {
    /// Messages that the peer has not taken yet.
    pub(crate) messages: usize,
    /// Bytes of their payloads; an empty queue takes one message of any size.
    pub(crate) bytes: usize,
}

/// The queues to all linked peers. Shared by host threads and the network thread; no call waits.
#[derive(Debug)]
pub(crate) struct Outboxes {
    limits: OutboxLimits,
    inner: Mutex<Inner>,
    /// Told when a queue has become empty.
    drained: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<PeerId, Outbox>,
    closed: bool,
}

#[derive(Debug)]
struct Outbox {
    entries: VecDeque<Entry>,
    /// The number of the first entry.
    first_seq: u64,
    /// How many entries the present link has taken.
    taken: usize,
    /// The number after the last message that any link of this session has taken.
    sent_until: u64,
    bytes: usize,
    max_message_size: usize,
    writer: Arc<Notify>,
    /// Whether the writer found nothing and waits to be told.
    writer_waits: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    message: OutMessage,
    stamp: Option<Arc<Record>>,
}

impl Outboxes {
    /// No queues yet.
    pub(crate) fn new(limits: OutboxLimits) -> Self {
        Self {
            limits,
            inner: Mutex::default(),
            drained: Notify::new(),
        }
    }

    /// Queues `message` for one peer.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn send(
        &self,
        peer: &PeerId,
        message: OutMessage,
        stamp: Option<Arc<Record>>,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        let unknown = || SendError::PeerNotFound { id: peer.clone() };
        let outbox = inner.open.get_mut(peer).ok_or_else(unknown)?;
        outbox.check_size(peer, &message)?;
        if !outbox.has_room(self.limits, &message) {
            return Err(SendError::QueueFull {
                peers: vec![peer.clone()],
            });
        }
        outbox.push(Entry { message, stamp });
        Ok(())
    }

    /// Queues `message` for every linked peer, or for none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast(
        &self,
        message: &OutMessage,
        stamp: Option<&Arc<Record>>,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        for (peer, outbox) in &inner.open {
            outbox.check_size(peer, message)?;
        }
        let full: Vec<_> = inner
            .open
            .iter()
            .filter(|(_, outbox)| !outbox.has_room(self.limits, message))
            .map(|(peer, _)| peer.clone())
            .collect();
        if !full.is_empty() {
            return Err(SendError::QueueFull { peers: full });
        }
        for outbox in inner.open.values_mut() {
            outbox.push(Entry {
                message: message.clone(),
                stamp: stamp.cloned(),
            });
        }
        Ok(())
    }

    /// Opens the queue to a peer whose session begins. It takes messages up to `max_message_size` bytes.
    pub(crate) fn open(&self, peer: &PeerId, max_message_size: usize) {
        let outbox = Outbox {
            entries: VecDeque::new(),
            first_seq: 0,
            taken: 0,
            sent_until: 0,
            bytes: 0,
            max_message_size,
            writer: Arc::new(Notify::new()),
            writer_waits: false,
        };
        self.lock_always().open.insert(peer.clone(), outbox);
    }

    /// Closes the queue to a peer whose session ended; gives the number of messages that it has not taken.
    pub(crate) fn close(&self, peer: &PeerId) -> usize {
        let closed = self.lock_always().open.remove(peer);
        self.drained.notify_waiters();
        closed.map_or(0, |outbox| outbox.entries.len())
    }

    /// A new link carries the queue: everything that is not acknowledged goes again. The returned notice is
    /// the writer's; the one of an earlier link is not told any more.
    pub(crate) fn attach(&self, peer: &PeerId) -> Option<Arc<Notify>> {
        let mut inner = self.lock_always();
        let outbox = inner.open.get_mut(peer)?;
        outbox.taken = 0;
        outbox.writer = Arc::new(Notify::new());
        outbox.writer_waits = false;
        Some(Arc::clone(&outbox.writer))
    }

    /// Copies the next messages to `buffer` as frames, until it holds `max_bytes` or more; tells whether there
    /// were any. When there were none, the writer's notice is told about the next.
    pub(crate) fn take(
        &self,
        peer: &PeerId,
        buffer: &mut BytesMut,
        max_bytes: usize,
    ) -> Result<bool, postcard::Error> {
        // Messages are cheap to clone; encoding happens outside of the lock that host threads wait for.
        let mut batch: Vec<(u64, Entry)> = Vec::new();
        {
            let mut inner = self.lock_always();
            let Some(outbox) = inner.open.get_mut(peer) else {
                return Ok(false);
            };
            let mut bytes = 0;
            while bytes < max_bytes {
                let Some(entry) = outbox.entries.get(outbox.taken) else {
                    break;
                };
                bytes += entry.message.payload.len() + 16;
                batch.push((outbox.first_seq + outbox.taken as u64, entry.clone()));
                outbox.taken += 1;
            }
            let next = outbox.first_seq + outbox.taken as u64;
            outbox.sent_until = outbox.sent_until.max(next);
            outbox.writer_waits = batch.is_empty();
        }
        for (seq, entry) in &batch {
            let header = MessageHeader {
                seq: *seq,
                msg_type: entry.message.msg_type,
                flags: entry.message.flags,
                role: match &entry.stamp {
                    None => MessageRole::Peer,
                    Some(record) => MessageRole::Leader(Record::clone(record)),
                },
            };
            put_message(buffer, &header, &entry.message.payload)?;
        }
        Ok(!batch.is_empty())
    }

    /// The peer has taken every message before number `next`. Tells whether that is possible.
    pub(crate) fn acked(&self, peer: &PeerId, next: u64) -> bool {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get_mut(peer) else {
            return true;
        };
        let Some(count) = next.checked_sub(outbox.first_seq) else {
            return true; // older than an earlier ack
        };
        if next > outbox.sent_until {
            return false; // never sent
        }
        // An ack may outlive the link on which the messages went; a new link need not have taken them again.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let count = count.min(outbox.entries.len());
        for entry in outbox.entries.drain(..count) {
            outbox.bytes -= entry.message.payload.len();
        }
        outbox.first_seq = next;
        outbox.taken = outbox.taken.saturating_sub(count);
        if outbox.entries.is_empty() {
            self.drained.notify_waiters();
        }
        true
    }

    /// Takes no more messages from the host.
    pub(crate) fn shut(&self) {
        self.lock_always().closed = true;
    }

    /// Waits until every peer has taken everything.
    pub(crate) async fn flushed(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            let empty = |outbox: &Outbox| outbox.entries.is_empty();
            if self.lock_always().open.values().all(empty) {
                return;
            }
            drained.await;
        }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>, SendError> {
        let inner = self.lock_always();
        if inner.closed {
            return Err(SendError::NotInitialized);
        }
        Ok(inner)
    }

    fn lock_always(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics halfway through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox {
    fn check_size(&self, peer: &PeerId, message: &OutMessage) -> Result<(), SendError> {
        let len = message.payload.len();
        if len > self.max_message_size {
            return Err(SendError::TooLarge {
                len,
                max: self.max_message_size,
                limit_of: Some(peer.clone()),
            });
        }
        Ok(())
    }

    fn has_room(&self, limits: OutboxLimits, message: &OutMessage) -> bool {
        self.entries.is_empty()
            || (self.entries.len() < limits.messages
                && self.bytes + message.payload.len() <= limits.bytes)
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.message.payload.len();
        self.entries.push_back(entry);
        if std::mem::take(&mut self.writer_waits) {
            self.writer.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::frame::take_frame;

    const LIMITS: OutboxLimits = OutboxLimits {
        messages: 3,
        bytes: 100,
    };

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("valid")
    }

    fn message(len: usize) -> OutMessage {
        OutMessage {
            payload: vec![7; len].into(),
            msg_type: 0x0100,
            flags: 0,
        }
    }

    fn outboxes(peers: &[&str]) -> Outboxes {
        let outboxes = Outboxes::new(LIMITS);
        for peer in peers {
            outboxes.open(&id(peer), 1000);
        }
        outboxes
    }

    fn taken_seqs(outboxes: &Outboxes, peer: &str) -> Vec<u64> {
        let mut buffer = BytesMut::new();
        let mut seqs = Vec::new();
        while outboxes.take(&id(peer), &mut buffer, 1).expect("encodes") {
            while let Ok(Some(frame)) = take_frame(&mut buffer, 10_000) {
                let (header, _) =
                    postcard::take_from_bytes::<MessageHeader>(&frame).expect("a header");
                seqs.push(header.seq);
            }
        }
        seqs
    }

    #[test]
    fn a_broadcast_reaches_all_or_nobody() {
        let outboxes = outboxes(&["a", "b"]);
        for _ in 0..3 {
            outboxes.send(&id("a"), message(1), None).expect("room");
        }
        let full = outboxes.broadcast(&message(1), None);
        assert_eq!(
            full,
            Err(SendError::QueueFull {
                peers: vec![id("a")]
            })
        );
        assert_eq!(taken_seqs(&outboxes, "b"), Vec::<u64>::new());
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
        assert!(outboxes.acked(&id("a"), 1));
        assert_eq!(outboxes.broadcast(&message(1), None), Ok(()));
        assert_eq!(taken_seqs(&outboxes, "b"), vec![0]);
    }

    #[test]
    fn a_slot_is_free_again_only_when_the_peer_took_the_message() {
        let outboxes = outboxes(&["a"]);
        for _ in 0..3 {
            outboxes.send(&id("a"), message(1), None).expect("room");
        }
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
        assert!(outboxes.send(&id("a"), message(1), None).is_err());
        assert!(outboxes.acked(&id("a"), 2));
        outboxes.send(&id("a"), message(1), None).expect("room");
        outboxes.send(&id("a"), message(1), None).expect("room");
        assert!(outboxes.send(&id("a"), message(1), None).is_err());
    }

    #[test]
    fn bytes_are_limited_but_an_empty_queue_takes_one_message_of_any_size() {
        let outboxes = outboxes(&["a"]);
        outboxes.send(&id("a"), message(500), None).expect("empty");
        assert!(outboxes.send(&id("a"), message(0), None).is_err());
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
        assert!(outboxes.acked(&id("a"), 1));
        outboxes.send(&id("a"), message(60), None).expect("room");
        outboxes.send(&id("a"), message(40), None).expect("room");
        assert!(outboxes.send(&id("a"), message(1), None).is_err());
    }

    #[test]
    fn the_smaller_limit_of_both_ends_holds() {
        let outboxes = outboxes(&["a"]);
        let refused = outboxes.send(&id("a"), message(1001), None);
        assert_eq!(
            refused,
            Err(SendError::TooLarge {
                len: 1001,
                max: 1000,
                limit_of: Some(id("a"))
            })
        );
    }

    #[test]
    fn a_new_link_starts_again_at_the_first_message_without_an_ack() {
        let outboxes = outboxes(&["a"]);
        for _ in 0..3 {
            outboxes.send(&id("a"), message(1), None).expect("room");
        }
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
        assert!(outboxes.acked(&id("a"), 1));
        outboxes.attach(&id("a"));
        assert_eq!(taken_seqs(&outboxes, "a"), vec![1, 2]);
    }

    #[test]
    fn an_ack_for_an_earlier_link_is_good_before_the_new_one_has_taken_anything() {
        let outboxes = outboxes(&["a"]);
        for _ in 0..3 {
            outboxes.send(&id("a"), message(1), None).expect("room");
        }
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
        outboxes.attach(&id("a"));
        assert!(outboxes.acked(&id("a"), 2));
        assert!(!outboxes.acked(&id("a"), 4));
        assert_eq!(taken_seqs(&outboxes, "a"), vec![2]);
    }

    #[test]
    fn an_ack_of_what_was_never_sent_is_refused() {
        let outboxes = outboxes(&["a"]);
        outboxes.send(&id("a"), message(1), None).expect("room");
        assert!(!outboxes.acked(&id("a"), 1));
        assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
        assert!(outboxes.acked(&id("a"), 1));
        assert!(outboxes.acked(&id("a"), 0), "an old one is no offence");
        assert!(!outboxes.acked(&id("a"), u64::MAX));
    }

    #[test]
    fn what_was_not_taken_is_counted_when_the_session_ends() {
        let outboxes = outboxes(&["a"]);
        for _ in 0..3 {
            outboxes.send(&id("a"), message(1), None).expect("room");
        }
        taken_seqs(&outboxes, "a");
        assert!(outboxes.acked(&id("a"), 1));
        assert_eq!(outboxes.close(&id("a")), 2);
        assert_eq!(
            outboxes.send(&id("a"), message(1), None),
            Err(SendError::PeerNotFound { id: id("a") })
        );
    }
}
