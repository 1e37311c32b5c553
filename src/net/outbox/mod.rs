//! What the host has sent and peers have not taken yet: one bounded, numbered queue per peer.
//!
//! Host threads put messages in, the lane writers of the network thread take copies out, and a message
//! leaves only when the peer's host queue has taken it (a cumulative ack). A new link to the same peer starts
//! again at the first message that is not acknowledged, so that nothing accepted is lost or reordered.
//! `central` has what a centralized room adds.

mod central;
mod meter;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::compression::pack;
use super::frame::{MessageHeader, MessageRole, OWN_FLAG, put_message};
use crate::core::id::{Incarnation, PeerId};
use crate::core::wire::Opaque;
use crate::error::SendError;
use central::Central;
pub(crate) use central::{Lead, Relay};
use meter::Meter;
pub use meter::PeerMeter;

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

/// In whose name a queued message goes.
#[derive(Debug, Clone)]
pub(crate) enum SenderRole {
    /// This node's.
    Own,
    /// This node's as leader, with the token of its leadership.
    Leader(Opaque),
    /// This node's, for the leader to relay; with the token of the leadership that this node follows.
    Central { number: u64, token: Opaque },
    /// Another's, whose broadcast this node relays as leader; or this node's, from before it led.
    Relayed {
        origin: PeerId,
        life: Incarnation,
        number: u64,
        token: Opaque,
    },
    /// Another's, as the leader's host says.
    Forwarded { origin: PeerId, token: Opaque },
}

/// The queues to all linked peers. Shared by host threads and the network thread; no call waits.
#[derive(Debug)]
pub(crate) struct Outboxes {
    limits: OutboxLimits,
    /// Payloads longer than this are sent compressed where that is shorter.
    compression_threshold: AtomicUsize,
    inner: Mutex<Inner>,
    /// Told when a queue has become empty, or is none any more.
    drained: Notify,
    /// Told when there may be more room than before.
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<PeerId, Outbox>,
    central: Central,
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
    /// The number after the last broadcast that went here to be relayed.
    central_until: u64,
    bytes: usize,
    max_message_size: usize,
    /// Whether the link is lost: what is queued stays, and nothing is added.
    paused: bool,
    /// Whether the session is about to end: what is queued still goes, and nothing is added.
    finishing: bool,
    writer: Arc<Notify>,
    /// Whether the writer found nothing and waits to be told.
    writer_waits: bool,
    meter: Meter,
}

#[derive(Debug, Clone)]
struct Entry {
    message: Arc<Queued>,
    role: SenderRole,
    since: Instant,
}

/// A message in queues, shared by all that hold it.
#[derive(Debug)]
struct Queued {
    message: OutMessage,
    /// Its compressed form, made at most once; `None` where that is not shorter.
    packed: OnceLock<Option<Bytes>>,
}

impl Queued {
    fn new(message: OutMessage) -> Arc<Self> {
        Arc::new(Self {
            message,
            packed: OnceLock::new(),
        })
    }

    fn len(&self) -> usize {
        self.message.payload.len()
    }

    /// What is sent, and the flags that say how.
    fn body(&self, threshold: usize) -> (&Bytes, u8) {
        let OutMessage { payload, flags, .. } = &self.message;
        if payload.len() > threshold
            && let Some(packed) = self.packed.get_or_init(|| pack(payload))
        {
            return (packed, flags | OWN_FLAG);
        }
        (payload, flags & !OWN_FLAG)
    }
}

impl Outboxes {
    /// No queues yet; nothing is compressed.
    pub(crate) fn new(limits: OutboxLimits) -> Self {
        Self {
            limits,
            compression_threshold: AtomicUsize::new(usize::MAX),
            inner: Mutex::default(),
            drained: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Payloads longer than `bytes` are compressed from now on, where that makes them shorter.
    pub(crate) fn set_compression_threshold(&self, bytes: usize) {
        self.compression_threshold.store(bytes, Ordering::Relaxed);
    }

    /// Queues `message` for one peer.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn send(
        &self,
        peer: &PeerId,
        message: OutMessage,
        role: SenderRole,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        let outbox = inner.linked(peer)?;
        outbox.check_size(peer, message.payload.len())?;
        if !outbox.has_room(self.limits, message.payload.len()) {
            return Err(SendError::QueueFull {
                peers: vec![peer.clone()],
            });
        }
        outbox.push(Entry::new(Queued::new(message), role));
        Ok(())
    }

    /// Queues `message` for every linked peer, or for none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast(
        &self,
        message: &OutMessage,
        role: &SenderRole,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        inner.broadcast(self.limits, message, role, None)
    }

    /// Queues `message` for every linked peer but one, or for none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast_to_others(
        &self,
        message: &OutMessage,
        role: &SenderRole,
        but: &PeerId,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        inner.broadcast(self.limits, message, role, Some(but))
    }

    /// Whether messages to the peer are taken at present.
    pub(crate) fn is_linked(&self, peer: &PeerId) -> bool {
        self.lock_always().linked(peer).is_ok()
    }

    /// Opens the queue to a peer whose session begins. It takes messages up to `max_message_size` bytes.
    pub(crate) fn open(&self, peer: &PeerId, max_message_size: usize) {
        let outbox = Outbox {
            entries: VecDeque::new(),
            first_seq: 0,
            taken: 0,
            sent_until: 0,
            central_until: 0,
            bytes: 0,
            max_message_size,
            paused: false,
            finishing: false,
            writer: Arc::new(Notify::new()),
            writer_waits: false,
            meter: Meter::default(),
        };
        self.lock_always().open.insert(peer.clone(), outbox);
    }

    /// Closes the queue to a peer whose session ended; gives the number of messages that it has not taken.
    pub(crate) fn close(&self, peer: &PeerId) -> usize {
        let closed = self.lock_always().open.remove(peer);
        self.drained.notify_waiters();
        self.room.notify_waiters();
        closed.map_or(0, |outbox| outbox.entries.len())
    }

    /// The link to a peer is lost but not its session: what is queued waits for the next link, and the peer
    /// counts as not connected until [`Outboxes::resume`].
    pub(crate) fn pause(&self, peer: &PeerId) {
        if let Some(outbox) = self.lock_always().open.get_mut(peer) {
            outbox.paused = true;
            outbox.meter.link_lost();
        }
        self.drained.notify_waiters();
        self.room.notify_waiters();
    }

    /// The session with a peer is about to end: its queue takes nothing more. Tells whether the peer is still
    /// to take something.
    pub(crate) fn finish(&self, peer: &PeerId) -> bool {
        match self.lock_always().open.get_mut(peer) {
            Some(outbox) => {
                outbox.finishing = true;
                !outbox.is_flushed()
            }
            None => false,
        }
    }

    /// The peer of a paused queue is linked again; [`Outboxes::attach`] follows.
    pub(crate) fn resume(&self, peer: &PeerId) {
        if let Some(outbox) = self.lock_always().open.get_mut(peer)
            && std::mem::take(&mut outbox.paused)
        {
            outbox.meter.reconnected();
        }
    }

    /// A new link carries the queue: everything that is not acknowledged goes again. The returned notice is
    /// the writer's; the one of an earlier link is not told any more.
    pub(crate) fn attach(&self, peer: &PeerId) -> Option<Arc<Notify>> {
        let mut inner = self.lock_always();
        let outbox = inner.open.get_mut(peer)?;
        outbox.taken = 0;
        outbox.writer = Arc::new(Notify::new());
        outbox.writer_waits = false;
        let writer = Arc::clone(&outbox.writer);
        // What the leader said on the earlier link may be lost with it.
        inner.carry_log_to(peer);
        Some(writer)
    }

    /// Copies the next messages to `buffer` as frames, until it holds `max_bytes` or more; returns whether there
    /// were any. If there were none, the next one triggers the writer's notice.
    pub(crate) fn take(
        &self,
        peer: &PeerId,
        buffer: &mut BytesMut,
        max_bytes: usize,
    ) -> Result<bool, postcard::Error> {
        // Messages are cheap to clone; encoding and compressing happen outside of the lock that host threads
        // wait for.
        let mut batch: Vec<(u64, Entry)> = Vec::new();
        let relayed_before;
        {
            let mut inner = self.lock_always();
            relayed_before = inner.central.first();
            let Some(outbox) = inner.open.get_mut(peer) else {
                return Ok(false);
            };
            let mut bytes = 0;
            while bytes < max_bytes {
                let Some(entry) = outbox.entries.get(outbox.taken) else {
                    break;
                };
                bytes += entry.message.len() + 16;
                if let SenderRole::Central { number, .. } = entry.role {
                    outbox.central_until = outbox.central_until.max(number + 1);
                }
                batch.push((outbox.first_seq + outbox.taken as u64, entry.clone()));
                outbox.taken += 1;
            }
            let next = outbox.first_seq + outbox.taken as u64;
            outbox.sent_until = outbox.sent_until.max(next);
            outbox.writer_waits = batch.is_empty();
            outbox.check();
        }
        let threshold = self.compression_threshold.load(Ordering::Relaxed);
        for (seq, entry) in &batch {
            let (body, flags) = entry.message.body(threshold);
            let header = MessageHeader {
                seq: *seq,
                msg_type: entry.message.message.msg_type,
                flags,
                role: entry.role.on_wire(relayed_before),
            };
            put_message(buffer, &header, body)?;
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
            outbox.bytes -= entry.message.len();
        }
        outbox.first_seq = next;
        outbox.taken = outbox.taken.saturating_sub(count);
        outbox.check();
        if outbox.entries.is_empty() {
            self.drained.notify_waiters();
        }
        if count > 0 {
            self.room.notify_waiters();
        }
        true
    }

    /// Takes no more messages from the host.
    pub(crate) fn shut(&self) {
        self.lock_always().closed = true;
        self.room.notify_waiters();
    }

    /// Closes all queues, with what they hold of links.
    pub(crate) fn close_all(&self) {
        let open = std::mem::take(&mut self.lock_always().open);
        self.drained.notify_waiters();
        self.room.notify_waiters();
        drop(open);
    }

    /// Waits until every linked peer has taken everything, and the leader has relayed what it should.
    pub(crate) async fn flushed(&self) {
        let flushed = |inner: &Inner| {
            inner.central.is_flushed() && inner.open.values().all(Outbox::is_flushed)
        };
        self.drained_until(flushed).await;
    }

    /// Waits until the peer has taken everything, or is not linked any more.
    pub(crate) async fn flushed_to(&self, peer: &PeerId) {
        let flushed = |inner: &Inner| inner.open.get(peer).is_none_or(Outbox::is_flushed);
        self.drained_until(flushed).await;
    }

    async fn drained_until(&self, flushed: impl Fn(&Inner) -> bool) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if flushed(&self.lock_always()) {
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

impl Inner {
    fn linked(&mut self, peer: &PeerId) -> Result<&mut Outbox, SendError> {
        let outbox = self.open.get_mut(peer).filter(|outbox| outbox.is_open());
        outbox.ok_or_else(|| SendError::PeerNotFound { id: peer.clone() })
    }

    fn linked_but(&self, but: Option<&PeerId>) -> impl Iterator<Item = (&PeerId, &Outbox)> {
        self.open
            .iter()
            .filter(move |(peer, outbox)| outbox.is_open() && Some(*peer) != but)
    }

    fn linked_but_mut(&mut self, but: Option<&PeerId>) -> impl Iterator<Item = &mut Outbox> {
        self.open
            .iter_mut()
            .filter(move |(peer, outbox)| outbox.is_open() && Some(*peer) != but)
            .map(|(_, outbox)| outbox)
    }

    fn broadcast(
        &mut self,
        limits: OutboxLimits,
        message: &OutMessage,
        role: &SenderRole,
        but: Option<&PeerId>,
    ) -> Result<(), SendError> {
        let len = message.payload.len();
        self.check_sizes(len, but)?;
        let full: Vec<_> = self
            .linked_but(but)
            .filter(|(_, outbox)| !outbox.has_room(limits, len))
            .map(|(peer, _)| peer.clone())
            .collect();
        if !full.is_empty() {
            return Err(SendError::QueueFull { peers: full });
        }
        let entry = Entry::new(Queued::new(message.clone()), role.clone());
        for outbox in self.linked_but_mut(but) {
            outbox.push(entry.clone());
        }
        Ok(())
    }

    fn check_sizes(&self, len: usize, but: Option<&PeerId>) -> Result<(), SendError> {
        self.linked_but(but)
            .try_for_each(|(peer, outbox)| outbox.check_size(peer, len))
    }
}

impl Outbox {
    fn check_size(&self, peer: &PeerId, len: usize) -> Result<(), SendError> {
        if len > self.max_message_size {
            return Err(SendError::TooLarge {
                len,
                max: self.max_message_size,
                limit_of: Some(peer.clone()),
            });
        }
        Ok(())
    }

    fn has_room(&self, limits: OutboxLimits, len: usize) -> bool {
        self.entries.is_empty()
            || (self.entries.len() < limits.messages && self.bytes + len <= limits.bytes)
    }

    fn is_open(&self) -> bool {
        !self.paused && !self.finishing
    }

    fn is_flushed(&self) -> bool {
        self.paused || self.entries.is_empty()
    }

    /// What holds between any two calls.
    fn check(&self) {
        let taken_until = self.first_seq + self.taken as u64;
        let queued_until = self.first_seq + self.entries.len() as u64;
        debug_assert!(taken_until <= self.sent_until, "taken, but not sent");
        debug_assert!(self.sent_until <= queued_until, "sent, but not queued");
        debug_assert!(
            !self.entries.is_empty() || self.bytes == 0,
            "bytes of no message"
        );
        debug_assert!(
            !self.writer_waits || self.taken == self.entries.len(),
            "the writer waits for what is there"
        );
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.message.len();
        self.entries.push_back(entry);
        if std::mem::take(&mut self.writer_waits) {
            self.writer.notify_one();
        }
        self.check();
    }
}

impl Entry {
    fn new(message: Arc<Queued>, role: SenderRole) -> Self {
        Self {
            message,
            role,
            since: Instant::now(),
        }
    }
}

impl SenderRole {
    /// As it goes over the wire; all broadcasts of this node before `relayed_before` have been relayed.
    fn on_wire(&self, relayed_before: u64) -> MessageRole {
        match self {
            Self::Own => MessageRole::Peer,
            Self::Leader(token) => MessageRole::Leader(token.clone()),
            Self::Central { number, token } => MessageRole::Central {
                origin_seq: *number,
                relayed_before,
                token: token.clone(),
            },
            Self::Relayed {
                origin,
                life,
                number,
                token,
            } => MessageRole::Relayed {
                origin: origin.clone(),
                incarnation: *life,
                origin_seq: *number,
                token: token.clone(),
            },
            Self::Forwarded { origin, token } => MessageRole::Forwarded {
                origin: origin.clone(),
                token: token.clone(),
            },
        }
    }
}
