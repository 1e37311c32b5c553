//! The reliable ordered lane: one long-lived stream each way, with numbers above QUIC's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{Connection, ReadError, RecvStream, SendStream, VarInt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::frame::{
    ControlFrame, FrameError, LaneHeader, MAX_MESSAGE_HEADER_BYTES, MessageHeader, MessageRole,
    OWN_FLAG, put_value, take_frame,
};
use super::link::{LinkEvent, LinkId, Queued, Surroundings};
use super::outbox::{OutMessage, Outboxes};
use super::packing::unpack;
use super::relay::{Broadcast, UnknownLives};
use crate::core::id::PeerId;
use crate::dispatch::Incoming;

/// The lane of this file.
const RELIABLE_ORDERED: u16 = 0;
/// Frames are gathered into one write of so many bytes.
const WRITE_BATCH_BYTES: usize = 32 * 1024;
/// A write buffer that has grown beyond this is not kept.
const MAX_KEPT_BUFFER_BYTES: usize = 256 * 1024;
/// Bytes read at once.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Messages after which the sender is told that they were taken, so that it may send more.
const ACK_EVERY_MESSAGES: u64 = 16;
/// Bytes after which the sender is told.
const ACK_EVERY_BYTES: usize = 64 * 1024;
/// Time after which the sender is told of fewer messages.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// First message type that applications may use.
pub(crate) const FIRST_MESSAGE_TYPE: u16 = 0x0100;
/// Payloads up to this length are copied out of the read buffer, so that a short message in the host's queue
/// does not keep a long buffer alive.
const COPY_BELOW_BYTES: usize = 16 * 1024;
/// With this code a lane is reset whose messages are given up.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

/// How the own lane ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was taken.
    Finish,
    /// The rest is given up.
    Reset,
}

/// Writes what the host sends.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) peer: PeerId,
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) notice: Arc<Notify>,
    pub(crate) ending: oneshot::Receiver<Ending>,
}

impl Writer {
    pub(crate) async fn run(self) {
        let Self {
            connection,
            peer,
            outboxes,
            notice,
            ending,
        } = self;
        let Ok(mut send) = connection.open_uni().await else {
            return; // the connection ended; the link tells
        };
        let ending = {
            let write = write_messages(&mut send, &peer, &outboxes, &notice);
            tokio::select! {
                ending = ending => ending.ok(),
                () = write => None,
            }
        };
        match ending {
            // Both fail only on a stream that is closed already.
            Some(Ending::Finish) => drop(send.finish()),
            Some(Ending::Reset) => drop(send.reset(GIVEN_UP)),
            None => {}
        }
        // A stream that is dropped is finished; keep it until the link is dropped or closed.
        connection.closed().await;
    }
}

/// Writes until the stream fails.
async fn write_messages(
    send: &mut SendStream,
    peer: &PeerId,
    outboxes: &Outboxes,
    notice: &Notify,
) {
    let mut buffer = BytesMut::new();
    let lane = RELIABLE_ORDERED;
    if put_value(&mut buffer, &LaneHeader { lane }).is_err()
        || send.write_all(&buffer).await.is_err()
    {
        return;
    }
    loop {
        buffer.clear();
        if buffer.capacity() > MAX_KEPT_BUFFER_BYTES {
            buffer = BytesMut::new(); // one long message is no reason to keep as much for ever
        }
        match outboxes.take(peer, &mut buffer, WRITE_BATCH_BYTES) {
            Ok(true) => {
                if send.write_all(&buffer).await.is_err() {
                    return;
                }
            }
            Ok(false) => notice.notified().await,
            Err(error) => {
                tracing::error!(%error, %peer, "a message could not be encoded");
                return;
            }
        }
    }
}

/// Tells the sender what was taken.
pub(crate) struct Acks {
    control: mpsc::Sender<Queued>,
    told: u64,
    bytes: usize,
    /// The sender's broadcasts before this number are relayed, and it was not told so yet. Whenever it is set,
    /// a message was taken as well.
    pub(super) relayed: Option<u64>,
}

impl Acks {
    /// Nothing has been told on this link: what was taken on an earlier one is told again, because that word
    /// may have been lost with it.
    pub(crate) fn new(control: mpsc::Sender<Queued>) -> Self {
        Self {
            control,
            told: 0,
            bytes: 0,
            relayed: None,
        }
    }

    fn is_due(&self, next: u64) -> bool {
        next - self.told >= ACK_EVERY_MESSAGES || self.bytes >= ACK_EVERY_BYTES
    }

    pub(super) async fn tell(&mut self, next: u64) {
        if next == self.told {
            return;
        }
        self.told = next;
        self.bytes = 0;
        let lane = RELIABLE_ORDERED;
        // Without a writer the link has ended.
        let _ = self
            .control
            .send(ControlFrame::Ack { lane, next }.into())
            .await;
        if let Some(next) = self.relayed.take() {
            let _ = self
                .control
                .send(ControlFrame::Relayed { next }.into())
                .await;
        }
    }
}

/// Reads what the peer sends, and waits while the host takes none of it.
pub(crate) struct Reader {
    pub(crate) link: LinkId,
    pub(crate) connection: Connection,
    pub(crate) peer: PeerId,
    /// The next message expected. Changed only in the moment in which a message is taken, so that a reader
    /// that is stopped leaves an exact number to its successor.
    pub(crate) next_seq: Arc<AtomicU64>,
    pub(crate) acks: Acks,
    pub(crate) surroundings: Surroundings,
    pub(crate) unknown_lives: UnknownLives,
}

/// Why a lane is read no further.
enum LaneEnd {
    /// The peer finished or reset it, or the connection ended.
    Done,
    /// The peer sent what no member sends.
    Violation(&'static str),
}

impl Reader {
    pub(crate) async fn run(mut self) {
        let LaneEnd::Violation(what) = self.read().await else {
            self.tell(LinkEvent::LaneDone).await;
            return;
        };
        self.tell(LinkEvent::Violation(what)).await;
        self.tell(LinkEvent::LaneDone).await;
    }

    pub(super) async fn tell(&self, event: LinkEvent) {
        // Without a room there is nobody to tell.
        let _ = self.surroundings.events.send((self.link, event)).await;
    }

    async fn read(&mut self) -> LaneEnd {
        let Ok(mut recv) = self.connection.accept_uni().await else {
            return LaneEnd::Done;
        };
        let max_message_size = self.surroundings.max_message_size;
        let max_frame = max_message_size.saturating_add(MAX_MESSAGE_HEADER_BYTES);
        let mut buffer = BytesMut::new();
        let mut header_read = false;
        loop {
            match take_frame(&mut buffer, max_frame) {
                Ok(Some(frame)) if !header_read => {
                    match postcard::take_from_bytes::<LaneHeader>(&frame) {
                        Ok((header, [])) if header.lane == RELIABLE_ORDERED => header_read = true,
                        _ => return LaneEnd::Violation("a lane of an unknown kind"),
                    }
                }
                Ok(Some(frame)) => {
                    if let Err(what) = self.take_message(&frame).await {
                        return LaneEnd::Violation(what);
                    }
                }
                Ok(None) => match self.read_more(&mut recv, &mut buffer).await {
                    Ok(true) => {}
                    // Part of a frame is no offence: the sender may have moved to another link.
                    Ok(false) | Err(_) => return LaneEnd::Done,
                },
                Err(FrameError::TooLong { .. }) => {
                    return LaneEnd::Violation("a message is longer than this host takes");
                }
                Err(_) => return LaneEnd::Done,
            }
        }
    }

    /// Reads what has arrived; meanwhile the sender is told what was taken so far.
    async fn read_more(
        &mut self,
        recv: &mut RecvStream,
        buffer: &mut BytesMut,
    ) -> Result<bool, ReadError> {
        let next = self.next_seq.load(Ordering::Relaxed);
        if self.acks.relayed.is_some() {
            // At once: an origin that does not know may send it again when the leader changes.
            self.acks.tell(next).await;
        }
        let read = recv.read_chunk(READ_CHUNK_BYTES, true);
        tokio::pin!(read);
        let chunk = if next == self.acks.told {
            read.await?
        } else {
            tokio::select! {
                biased;
                chunk = &mut read => chunk?,
                () = tokio::time::sleep_until(Instant::now() + ACK_DELAY) => {
                    self.acks.tell(next).await;
                    read.await?
                }
            }
        };
        let Some(chunk) = chunk else {
            self.acks.tell(next).await;
            return Ok(false);
        };
        buffer.extend_from_slice(&chunk.bytes);
        Ok(true)
    }

    async fn take_message(&mut self, frame: &Bytes) -> Result<(), &'static str> {
        let (header, payload) = postcard::take_from_bytes::<MessageHeader>(frame)
            .map_err(|_| "a malformed message header")?;
        let next = self.next_seq.load(Ordering::Relaxed);
        if header.seq < next {
            return Ok(()); // sent again on a new link, but taken before
        }
        if header.seq > next {
            return Err("a message number was left out");
        }
        if header.msg_type < FIRST_MESSAGE_TYPE {
            return Err("a message type that is the library's own");
        }
        let wire_len = payload.len();
        let (message, packed) = self.unpacked(frame, payload, &header)?;
        match header.role {
            MessageRole::Peer => self.deliver(self.peer.clone(), message).await,
            MessageRole::Leader(record) => {
                let event = |answer| LinkEvent::Stamped(record, answer);
                if self.ask(event).await == Some(true) {
                    self.deliver(self.peer.clone(), message).await;
                }
            }
            MessageRole::Relayed {
                origin,
                incarnation,
                origin_seq,
                record,
            } => {
                let broadcast = Broadcast {
                    origin,
                    life: incarnation,
                    number: origin_seq,
                };
                self.take_relayed(broadcast, record, message).await?;
            }
            MessageRole::Forwarded { origin, record } => {
                self.take_forwarded(origin, record, message).await;
            }
            MessageRole::Central {
                origin_seq,
                relayed_before,
                record,
            } => {
                let range = relayed_before..=origin_seq;
                self.take_central(range, record, message, packed).await?;
            }
        }
        self.next_seq.store(next + 1, Ordering::Relaxed);
        self.acks.bytes += wire_len;
        if self.acks.is_due(next + 1) {
            self.acks.tell(next + 1).await;
        }
        Ok(())
    }

    /// The message as its sender's host gave it, and its compressed form if it came in that.
    fn unpacked(
        &self,
        frame: &Bytes,
        payload: &[u8],
        header: &MessageHeader,
    ) -> Result<(OutMessage, Option<Bytes>), &'static str> {
        let max = self.surroundings.max_message_size;
        if payload.len() > max {
            return Err("a message is longer than this host takes");
        }
        let payload_of_frame = if payload.len() < COPY_BELOW_BYTES {
            Bytes::copy_from_slice(payload)
        } else {
            frame.slice_ref(payload)
        };
        let is_packed = header.flags & OWN_FLAG != 0;
        let (payload, packed) = if is_packed {
            (unpack(payload, max)?, Some(payload_of_frame))
        } else {
            (payload_of_frame, None)
        };
        let message = OutMessage {
            payload,
            msg_type: header.msg_type,
            flags: header.flags & !OWN_FLAG,
        };
        Ok((message, packed))
    }

    /// Gives the host a message, once there is room for it.
    pub(super) async fn deliver(&self, from: PeerId, message: OutMessage) {
        let message = Incoming {
            from,
            payload: message.payload,
            msg_type: message.msg_type,
            flags: message.flags,
        };
        self.surroundings.dispatch.push_message(message).await;
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
}
