//! Send queues: one bounded queue per peer for messages that the peer has not taken yet, with numbered lanes.
//!
//! Host threads put messages in, and the lane writers of the network thread take copies out. A message leaves
//! the queue only when the peer's host queue has taken it (an ack). A new link to the same peer starts again
//! at the first unacknowledged message, so that nothing accepted is lost or reordered. `central` adds the
//! broadcasts of a centralized room.

mod central;
mod datagrams;
mod lane;
mod meter;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use super::compression::{CompressionBackoff, pack};
use super::frame::{
    CLASSIC_LANE, Frames, MessageHeader, MessageRole, OWN_FLAG, UNORDERED_LANE,
    UNORDERED_RELAY_LANE,
};
use crate::core::event::{Delivery, Incoming};
use crate::core::id::{Incarnation, PeerId};
use crate::core::wire::Opaque;
use crate::error::SendError;
use central::Central;
pub(crate) use central::{Lead, Relay};
use datagrams::Datagrams;
pub use datagrams::Unreliable;
pub(crate) use datagrams::{DatagramRelay, Dropped};
use lane::{Lane, Load};
use meter::Meter;
pub use meter::PeerMeter;

/// A message as the host passed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutMessage {
    /// The bytes to send.
    pub payload: Bytes,
    /// The application's type, 0x0100 or more.
    pub msg_type: u16,
    /// The application's flags; bit 0 is clear.
    pub flags: u8,
}

impl OutMessage {
    /// The message as the receiver's host gets it.
    pub(crate) fn into_incoming(self, from: PeerId, channel: u8, delivery: Delivery) -> Incoming {
        Incoming {
            from,
            payload: self.payload,
            msg_type: self.msg_type,
            flags: self.flags,
            channel,
            delivery,
        }
    }
}

/// Capacity of the queue to one peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutboxLimits {
    /// Messages that the peer has not taken yet.
    pub(crate) messages: usize,
    /// Bytes of their payloads; an empty queue takes one message of any size.
    pub(crate) bytes: usize,
}

/// A lane that fills less than this part of the limits (1/8) may use a reserve, so that bulk on
/// another lane does not block it.
const SMALL_LANE_PART: usize = 8;
/// The reserve is this part of the limits (1/4).
const RESERVE_PART: usize = 4;

impl OutboxLimits {
    /// The limits of a small lane.
    fn with_reserve(self) -> Self {
        Self {
            messages: self.messages + self.messages / RESERVE_PART,
            bytes: self.bytes + self.bytes / RESERVE_PART,
        }
    }
}

/// Delivery options of a reliable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliable {
    /// Whether it keeps its place among the messages of its channel.
    pub ordered: bool,
    /// The sender's channel.
    pub channel: u8,
    /// 0 to 3; the highest is sent first.
    pub priority: u8,
}

/// The priority of the classic sends.
pub const DEFAULT_PRIORITY: u8 = 1;

impl Default for Reliable {
    /// The options of the classic sends.
    fn default() -> Self {
        Self {
            ordered: true,
            channel: 0,
            priority: DEFAULT_PRIORITY,
        }
    }
}

impl Reliable {
    /// The lane to the receiver.
    fn lane(self) -> u16 {
        match self.ordered {
            true => self.channel.into(),
            false => UNORDERED_LANE,
        }
    }

    /// The delivery that the receiver's host sees.
    pub(crate) fn delivery(self) -> Delivery {
        match self.ordered {
            true => Delivery::ReliableOrdered,
            false => Delivery::ReliableUnordered,
        }
    }

    /// The lane to the relaying leader, and from the leader on.
    fn relay_lane(self) -> u16 {
        match self.ordered {
            true => self.channel.into(),
            false => UNORDERED_RELAY_LANE,
        }
    }
}

/// Delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Exactly once, unless its receiver leaves or its session ends.
    Reliable(Reliable),
    /// At most once.
    Unreliable(Unreliable),
}

impl Default for SendMode {
    /// The delivery of the classic sends.
    fn default() -> Self {
        Self::Reliable(Reliable::default())
    }
}

/// Role in which a queued message is sent.
#[derive(Debug, Clone)]
pub(crate) enum SenderRole {
    /// This node's own message.
    Own,
    /// This node's message as leader, with the token of its leadership.
    Leader(Opaque),
    /// This node's broadcast for the leader to relay, with the token of the leadership that this node follows.
    Central { number: u64, token: Opaque },
    /// Another member's broadcast, which this node relays as leader; or this node's own from before it led.
    Relayed {
        origin: PeerId,
        incarnation: Incarnation,
        number: u64,
        token: Opaque,
    },
    /// Another member's message, forwarded by the leader's host, which names the origin.
    Forwarded { origin: PeerId, token: Opaque },
}

/// The queues to all linked peers. Shared by host threads and the network thread; no call waits.
#[derive(Debug)]
pub(crate) struct Outboxes {
    limits: OutboxLimits,
    /// Payloads longer than this are compressed if that saves enough.
    compression_threshold: AtomicUsize,
    inner: Mutex<Inner>,
    /// Notified when a queue has become empty or was closed.
    drained: Notify,
    /// Notified when there may be more room than before.
    room: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<PeerId, Outbox>,
    central: Central,
    closed: bool,
    /// Members of the room without a link to this node, because of a limit.
    unlinked: usize,
    /// Broadcasts that those did not get, one for each of them.
    missed: u64,
}

#[derive(Debug)]
struct Outbox {
    lanes: BTreeMap<u16, Lane>,
    /// Totals of all lanes.
    queued: Load,
    datagrams: Datagrams,
    max_message_size: usize,
    /// Whether the link is lost: queued messages wait for the next one.
    paused: bool,
    /// Whether a message was skipped since the link was lost. Nothing is added after that, so that the peer
    /// sees a single gap when it returns.
    has_gap: bool,
    /// Messages of this session that the peer will not get.
    missed: u64,
    /// Number of them that this host was notified of.
    missed_reported: u64,
    /// Whether the session is about to end: queued messages are still sent, and nothing is added.
    finishing: bool,
    /// Notified when a lane without a writer has something to write.
    opener: Arc<Notify>,
    meter: Meter,
}

#[derive(Debug, Clone)]
struct Entry {
    message: Arc<Queued>,
    role: SenderRole,
    channel: u8,
    priority: u8,
    since: Instant,
}

/// A message that all queues holding it share.
#[derive(Debug)]
struct Queued {
    message: OutMessage,
    /// The compressed form, made at most once, and not if an attempt seems useless; `None` if it saves too little.
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

    /// The bytes to send, with their flags.
    fn body(&self, threshold: usize, backoff: &mut CompressionBackoff) -> (&Bytes, u8) {
        let OutMessage { payload, flags, .. } = &self.message;
        if payload.len() > threshold
            && let Some(packed) = self.packed(backoff)
        {
            return (packed, flags | OWN_FLAG);
        }
        (payload, flags & !OWN_FLAG)
    }

    /// The compressed form, if there is one or an attempt seems worthwhile.
    fn packed(&self, backoff: &mut CompressionBackoff) -> Option<&Bytes> {
        let OutMessage {
            payload, msg_type, ..
        } = &self.message;
        if self.packed.get().is_none() && backoff.tries(*msg_type) {
            let packed = self.packed.get_or_init(|| pack(payload));
            backoff.tried(*msg_type, packed.is_some());
        }
        self.packed.get()?.as_ref()
    }
}

impl Outboxes {
    /// Starts without queues and without compression.
    pub(crate) fn new(limits: OutboxLimits) -> Self {
        Self {
            limits,
            compression_threshold: AtomicUsize::new(usize::MAX),
            inner: Mutex::default(),
            drained: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Compresses payloads longer than `bytes` from now on, if that saves enough.
    pub(crate) fn set_compression_threshold(&self, bytes: usize) {
        self.compression_threshold.store(bytes, Ordering::Relaxed);
    }

    /// Queues `message` for one peer, also while its link is lost.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn send(
        &self,
        peer: &PeerId,
        message: OutMessage,
        role: SenderRole,
        how: Reliable,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        let outbox = inner.member(peer)?;
        outbox.check_size(peer, message.payload.len())?;
        if outbox.has_gap || !outbox.has_room(self.limits, how.lane(), message.payload.len()) {
            return Err(SendError::QueueFull {
                peers: vec![peer.clone()],
            });
        }
        outbox.push(how.lane(), Entry::new(Queued::new(message), role, how));
        Ok(())
    }

    /// As many members of the room have no link to this node from now on, because of a limit.
    pub(crate) fn set_unlinked(&self, members: usize) {
        self.lock_always().unlinked = members;
    }

    /// Broadcasts that members without a link did not get, one for each of them.
    pub(crate) fn missed_broadcasts(&self) -> u64 {
        self.lock_always().missed
    }

    /// Queues `message` for every linked peer, or for none. Gives how many those are. A peer whose link is lost gets it as
    /// far as its queue has room; it makes nothing fail.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast(
        &self,
        message: &OutMessage,
        role: &SenderRole,
        how: Reliable,
    ) -> Result<usize, SendError> {
        let mut inner = self.lock()?;
        inner.broadcast(self.limits, message, role, how, None)
    }

    /// Queues `message` for every linked peer whose queue has room. Returns the number of recipients, and the
    /// linked peers without room. Peers whose link is lost count as neither.
    ///
    /// # Errors
    /// [`SendError`], but never because a queue is full; nothing was queued then.
    pub(crate) fn broadcast_partial(
        &self,
        message: &OutMessage,
        how: Reliable,
    ) -> Result<(usize, Vec<PeerId>), SendError> {
        let mut inner = self.lock()?;
        let len = message.payload.len();
        inner.check_sizes(len, None)?;
        let entry = Entry::new(Queued::new(message.clone()), SenderRole::Own, how);
        inner.count_missed();
        let (mut took, mut full) = (0, Vec::new());
        for (peer, outbox) in inner.members_but_mut(None) {
            if outbox.paused {
                outbox.push_or_miss(self.limits, how.lane(), &entry);
            } else if outbox.has_room(self.limits, how.lane(), len) {
                outbox.push(how.lane(), entry.clone());
                took += 1;
            } else {
                full.push(peer.clone());
            }
        }
        Ok((took, full))
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
        how: Reliable,
    ) -> Result<(), SendError> {
        let mut inner = self.lock()?;
        inner.broadcast(self.limits, message, role, how, Some(but))?;
        Ok(())
    }

    /// Whether the peer is linked, and its queue accepts messages.
    pub(crate) fn is_linked(&self, peer: &PeerId) -> bool {
        self.lock_always().linked(peer).is_ok()
    }

    /// Opens the queue to a peer whose session begins. It accepts messages up to `max_message_size` bytes.
    pub(crate) fn open(&self, peer: &PeerId, max_message_size: usize) {
        let outbox = Outbox {
            lanes: BTreeMap::from([(CLASSIC_LANE, Lane::new(CLASSIC_LANE))]),
            queued: Load::default(),
            datagrams: Datagrams::default(),
            max_message_size,
            paused: false,
            has_gap: false,
            missed: 0,
            missed_reported: 0,
            finishing: false,
            opener: Arc::default(),
            meter: Meter::default(),
        };
        self.lock_always().open.insert(peer.clone(), outbox);
    }

    /// Closes the queue to a peer whose session ended. Returns the number of undelivered reliable messages:
    /// messages that the peer has not taken, and skipped ones that [`Outboxes::take_missed`] has not returned.
    pub(crate) fn close(&self, peer: &PeerId) -> u64 {
        let closed = self.lock_always().open.remove(peer);
        self.drained.notify_waiters();
        self.room.notify_waiters();
        closed.map_or(0, |outbox| {
            outbox.queued.messages as u64 + outbox.missed - outbox.missed_reported
        })
    }

    /// Pauses the queue to a peer whose link is lost but not its session: reliable messages wait for the next
    /// link, and further ones are added while there is room, until [`Outboxes::resume`]. Returns the number
    /// of dropped datagrams: they do not wait.
    pub(crate) fn pause(&self, peer: &PeerId) -> u64 {
        let mut dropped = 0;
        if let Some(outbox) = self.lock_always().open.get_mut(peer) {
            outbox.paused = true;
            outbox.meter.link_lost();
            dropped = outbox.datagrams.clear();
        }
        self.drained.notify_waiters();
        self.room.notify_waiters();
        dropped
    }

    /// Closes the queue to a peer for new messages, before the session ends. Returns whether
    /// undelivered messages are left.
    pub(crate) fn finish(&self, peer: &PeerId) -> bool {
        match self.lock_always().open.get_mut(peer) {
            Some(outbox) => {
                outbox.finishing = true;
                !outbox.is_flushed()
            }
            None => false,
        }
    }

    /// Resumes a queue whose peer is linked again. Returns the number of skipped messages of this session.
    /// The peer must receive that number before the messages after them. [`Outboxes::attach`] follows.
    pub(crate) fn resume(&self, peer: &PeerId) -> u64 {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get_mut(peer) else {
            return 0;
        };
        outbox.has_gap = false;
        if std::mem::take(&mut outbox.paused) {
            outbox.meter.reconnected();
        }
        outbox.missed
    }

    /// The number of messages that the peer will not get, counted since the last call: the caller
    /// reports them to this host.
    pub(crate) fn take_missed(&self, peer: &PeerId) -> u64 {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get_mut(peer) else {
            return 0;
        };
        let reported = std::mem::replace(&mut outbox.missed_reported, outbox.missed);
        outbox.missed - reported
    }

    /// Attaches a new link: it sends everything unacknowledged again. The returned notice is triggered when there
    /// may be something for [`Outboxes::lanes_to_open`]; the notice of an earlier link is no longer triggered.
    pub(crate) fn attach(&self, peer: &PeerId) -> Option<Arc<Notify>> {
        let mut inner = self.lock_always();
        let outbox = inner.open.get_mut(peer)?;
        for lane in outbox.lanes.values_mut() {
            lane.restart();
        }
        outbox.datagrams.restart();
        outbox.opener = Arc::default();
        let opener = Arc::clone(&outbox.opener);
        // Acknowledgements of the leader may have been lost with the earlier link.
        inner.carry_log_to(peer);
        Some(opener)
    }

    /// Attaches a writer to the lane. Its notice is triggered when there is something to write after it found nothing.
    pub(crate) fn begin_lane(&self, peer: &PeerId, lane: u16) -> Option<Arc<Notify>> {
        let mut inner = self.lock_always();
        let outbox = inner.open.get_mut(peer)?;
        Some(outbox.lanes.get_mut(&lane)?.begin())
    }

    /// Lanes with something to write and no writer.
    pub(crate) fn lanes_to_open(&self, peer: &PeerId) -> Vec<u16> {
        let inner = self.lock_always();
        let lanes = inner.open.get(peer).into_iter();
        let lanes = lanes.flat_map(|outbox| &outbox.lanes);
        let lacking = lanes.filter(|(_, lane)| lane.lacks_writer());
        lacking.map(|(lane, _)| *lane).collect()
    }

    /// Adds the next messages of a lane to `frames`, until they have `max_bytes` or more; of
    /// [`UNORDERED_LANE`] only one message. Returns the highest of their priorities. If there were none, the
    /// next one triggers the writer's notice.
    pub(crate) fn take(
        &self,
        peer: &PeerId,
        lane: u16,
        frames: &mut Frames,
        backoff: &mut CompressionBackoff,
        max_bytes: usize,
    ) -> Result<Option<u8>, postcard::Error> {
        // Messages are cheap to clone. Encoding and compressing happen outside of the lock, for which host threads wait.
        let mut batch: Vec<(u64, Entry)> = Vec::new();
        let relayed_before;
        {
            let mut inner = self.lock_always();
            relayed_before = inner.central.first(lane);
            let Some(outbox) = inner.open.get_mut(peer) else {
                return Ok(None);
            };
            let on_all_lanes = outbox.bytes_in_flight();
            let Some(queue) = outbox.lanes.get_mut(&lane) else {
                return Ok(None);
            };
            let on_other_lanes = on_all_lanes - queue.bytes_in_flight();
            let mut bytes = 0;
            while bytes < max_bytes
                && let Some((seq, entry)) = queue.next(on_other_lanes)
            {
                bytes += entry.message.len() + 16;
                batch.push((seq, entry));
                if lane == UNORDERED_LANE {
                    break; // one message per stream
                }
            }
            if batch.is_empty() {
                queue.wait();
            }
        }
        let threshold = self.compression_threshold.load(Ordering::Relaxed);
        frames.reserve(batch.iter().map(|(_, entry)| entry.message.len()));
        for (seq, entry) in &batch {
            let (body, flags) = entry.message.body(threshold, backoff);
            let header = MessageHeader {
                seq: *seq,
                msg_type: entry.message.message.msg_type,
                flags,
                channel: entry.channel,
                role: entry.role.on_wire(relayed_before),
            };
            frames.put_message(&header, body)?;
        }
        Ok(batch.iter().map(|(_, entry)| entry.priority).max())
    }

    /// Records that the peer has taken every message of a lane before number `next`. Returns whether that is possible.
    pub(crate) fn acked(&self, peer: &PeerId, lane: u16, next: u64) -> bool {
        self.acked_as(peer, lane, |lane| lane.acked(next))
    }

    /// Records that the peer has taken every unordered message before number `next`, and those in `taken`.
    /// Returns whether that is possible.
    pub(crate) fn acked_unordered(&self, peer: &PeerId, next: u64, taken: &[u64]) -> bool {
        self.acked(peer, UNORDERED_LANE, next)
            && taken
                .iter()
                .all(|number| self.acked_as(peer, UNORDERED_LANE, |lane| lane.acked_one(*number)))
    }

    fn acked_as(
        &self,
        peer: &PeerId,
        lane: u16,
        ack: impl FnOnce(&mut Lane) -> Option<Load>,
    ) -> bool {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get_mut(peer) else {
            return true;
        };
        let Some(gone) = outbox.lanes.get_mut(&lane).and_then(ack) else {
            return false;
        };
        outbox.forget(gone);
        outbox.wake_held();
        if outbox.queued.messages == 0 {
            self.drained.notify_waiters();
        }
        if gone.messages > 0 {
            self.room.notify_waiters();
        }
        true
    }

    /// Accepts no more messages from the host.
    pub(crate) fn shut(&self) {
        self.lock_always().closed = true;
        self.room.notify_waiters();
    }

    /// Closes all queues, and releases the links that they hold.
    pub(crate) fn close_all(&self) {
        let open = std::mem::take(&mut self.lock_always().open);
        self.drained.notify_waiters();
        self.room.notify_waiters();
        drop(open);
    }

    /// Waits until every linked peer has taken everything, and the leader has relayed all broadcasts.
    pub(crate) async fn flushed(&self) {
        let flushed = |inner: &Inner| {
            inner.central.is_flushed() && inner.open.values().all(Outbox::is_flushed)
        };
        self.drained_until(flushed).await;
    }

    /// Waits until the peer has taken everything, or is no longer linked.
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
        // No panic can interrupt a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn linked(&mut self, peer: &PeerId) -> Result<&mut Outbox, SendError> {
        let outbox = self.open.get_mut(peer).filter(|outbox| outbox.is_open());
        outbox.ok_or_else(|| SendError::PeerNotFound { id: peer.clone() })
    }

    /// The queue to a peer that is linked, or lost and expected back.
    fn member(&mut self, peer: &PeerId) -> Result<&mut Outbox, SendError> {
        let outbox = self.open.get_mut(peer).filter(|outbox| !outbox.finishing);
        outbox.ok_or_else(|| SendError::PeerNotFound { id: peer.clone() })
    }

    fn linked_but(&self, but: Option<&PeerId>) -> impl Iterator<Item = (&PeerId, &Outbox)> {
        self.open
            .iter()
            .filter(move |(peer, outbox)| outbox.is_open() && Some(*peer) != but)
    }

    /// The queues to all peers that are linked, or lost and expected back.
    fn members_but_mut(
        &mut self,
        but: Option<&PeerId>,
    ) -> impl Iterator<Item = (&PeerId, &mut Outbox)> {
        self.open
            .iter_mut()
            .filter(move |(peer, outbox)| !outbox.finishing && Some(*peer) != but)
    }

    fn broadcast(
        &mut self,
        limits: OutboxLimits,
        message: &OutMessage,
        role: &SenderRole,
        how: Reliable,
        but: Option<&PeerId>,
    ) -> Result<usize, SendError> {
        let len = message.payload.len();
        self.check_sizes(len, but)?;
        let full: Vec<_> = self
            .linked_but(but)
            .filter(|(_, outbox)| !outbox.has_room(limits, how.lane(), len))
            .map(|(peer, _)| peer.clone())
            .collect();
        if !full.is_empty() {
            return Err(SendError::QueueFull { peers: full });
        }
        self.count_missed();
        let entry = Entry::new(Queued::new(message.clone()), role.clone(), how);
        let mut count = 0;
        for (_, outbox) in self.members_but_mut(but) {
            if outbox.paused {
                outbox.push_or_miss(limits, how.lane(), &entry);
            } else {
                outbox.push(how.lane(), entry.clone());
                count += 1;
            }
        }
        Ok(count)
    }

    /// A broadcast is queued: members without a link do not get it.
    fn count_missed(&mut self) {
        self.missed += self.unlinked as u64;
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

    fn has_room(&self, limits: OutboxLimits, lane: u16, len: usize) -> bool {
        let queue = self.lanes.get(&lane);
        let own = queue.map_or(Load::default(), Lane::queued);
        let is_small = own.messages < limits.messages / SMALL_LANE_PART
            && own.bytes + len <= limits.bytes / SMALL_LANE_PART;
        let limits = match is_small {
            true => limits.with_reserve(),
            false => limits,
        };
        let has_number = lane != UNORDERED_LANE || queue.is_none_or(Lane::is_within_span);
        self.queued.messages == 0
            || (self.queued.messages < limits.messages
                && self.queued.bytes + len <= limits.bytes
                && has_number)
    }

    fn is_open(&self) -> bool {
        !self.paused && !self.finishing
    }

    fn is_flushed(&self) -> bool {
        self.paused || self.queued.messages == 0
    }

    /// Queues a message for a lost peer, unless there is no room or an earlier message was skipped.
    fn push_or_miss(&mut self, limits: OutboxLimits, lane: u16, entry: &Entry) {
        debug_assert!(self.paused, "a linked peer misses nothing");
        let len = entry.message.len();
        self.has_gap |= len > self.max_message_size || !self.has_room(limits, lane, len);
        if self.has_gap {
            self.missed += 1;
        } else {
            self.push(lane, entry.clone());
        }
    }

    fn push(&mut self, lane: u16, entry: Entry) {
        self.queued.count(&entry);
        let queue = self.lanes.entry(lane).or_insert_with(|| Lane::new(lane));
        queue.push(entry);
        if queue.lacks_writer() {
            self.opener.notify_one();
        }
    }

    fn bytes_in_flight(&self) -> usize {
        self.lanes.values().map(Lane::bytes_in_flight).sum()
    }

    /// Wakes held writers if fewer bytes are in flight.
    fn wake_held(&mut self) {
        let on_all_lanes = self.bytes_in_flight();
        for lane in self.lanes.values_mut() {
            lane.wake_if_held(on_all_lanes - lane.bytes_in_flight());
        }
    }

    fn forget(&mut self, gone: Load) {
        self.queued.subtract(gone);
    }
}

impl Entry {
    fn new(message: Arc<Queued>, role: SenderRole, how: Reliable) -> Self {
        Self {
            message,
            role,
            channel: how.channel,
            priority: how.priority,
            since: Instant::now(),
        }
    }
}

impl SenderRole {
    /// The role as it goes over the wire; `relayed_before`: all broadcasts of this node before
    /// this number have been relayed. A broadcast that was relayed may still go to a leader: the
    /// report came after it was queued.
    fn on_wire(&self, relayed_before: u64) -> MessageRole {
        match self {
            Self::Own => MessageRole::Peer,
            Self::Leader(token) => MessageRole::Leader(token.clone()),
            Self::Central { number, token } => MessageRole::Central {
                origin_seq: *number,
                relayed_before: relayed_before.min(*number),
                token: token.clone(),
            },
            Self::Relayed {
                origin,
                incarnation,
                number,
                token,
            } => MessageRole::Relayed {
                origin: origin.clone(),
                incarnation: *incarnation,
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
