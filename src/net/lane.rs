//! The reliable ordered lane: one long-lived stream each way, with numbers above QUIC's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{Connection, ReadError, RecvStream, SendStream, VarInt};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::compression::unpack;
use super::events::LinkEvent;
use super::frame::{
    FrameError, LaneHeader, MAX_MESSAGE_HEADER_BYTES, MessageHeader, MessageRole, OWN_FLAG,
    RELIABLE_ORDERED, put_value, take_frame,
};
use super::intake::Intake;
use super::outbox::{OutMessage, Outboxes};
use super::relay::{self, Broadcast, RelayedReader};
use crate::core::id::PeerId;

/// Frames are gathered into one write of this many bytes.
const WRITE_BATCH_BYTES: usize = 32 * 1024;
/// A write buffer that has grown beyond this is not kept.
const MAX_KEPT_BUFFER_BYTES: usize = 256 * 1024;
/// Bytes read at once.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Time after which an ack goes to the sender even for fewer messages.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// First message type that applications may use.
pub(crate) const FIRST_MESSAGE_TYPE: u16 = 0x0100;
/// Payloads up to this length are copied out of the read buffer, so that a short message in the host's queue
/// does not keep a long buffer alive.
const COPY_BELOW_BYTES: usize = 16 * 1024;
/// With this code a lane is reset whose messages are given up.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

/// How this node's lane ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was taken.
    Finish,
    /// The rest is given up.
    Reset,
}

/// Writes what the host sends.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) peer: PeerId,
    pub(super) outboxes: Arc<Outboxes>,
    pub(super) notice: Arc<Notify>,
    pub(super) ending: oneshot::Receiver<Ending>,
}

impl Writer {
    pub(super) async fn run(self) {
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

/// Reads what the peer sends, and waits while the host takes none of it.
pub(super) struct Reader {
    connection: Connection,
    intake: Intake,
    relayed: RelayedReader,
}

/// Why a lane is read no further.
enum LaneEnd {
    /// The peer finished or reset it, or the connection ended.
    Done,
    /// The peer sent what no member sends.
    Violation(&'static str),
}

impl Reader {
    pub(super) fn new(connection: Connection, intake: Intake) -> Self {
        Self {
            connection,
            intake,
            relayed: RelayedReader::default(),
        }
    }

    pub(super) async fn run(mut self) {
        if let LaneEnd::Violation(what) = self.read().await {
            self.intake.tell(LinkEvent::Violation(what)).await;
        }
        self.intake.tell(LinkEvent::LaneDone).await;
    }

    async fn read(&mut self) -> LaneEnd {
        let Ok(mut recv) = self.connection.accept_uni().await else {
            return LaneEnd::Done;
        };
        let max_message_size = self.intake.context.max_message_size;
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

    /// Reads what has arrived; meanwhile acks go to the sender for what was accepted so far.
    async fn read_more(
        &mut self,
        recv: &mut RecvStream,
        buffer: &mut BytesMut,
    ) -> Result<bool, ReadError> {
        if self.intake.owes_relayed() {
            // At once: an origin that does not know may send it again when the leader changes.
            self.intake.ack().await;
        }
        let read = recv.read_chunk(READ_CHUNK_BYTES, true);
        tokio::pin!(read);
        let chunk = if self.intake.is_acked() {
            read.await?
        } else {
            tokio::select! {
                biased;
                chunk = &mut read => chunk?,
                () = tokio::time::sleep_until(Instant::now() + ACK_DELAY) => {
                    self.intake.ack().await;
                    read.await?
                }
            }
        };
        let Some(chunk) = chunk else {
            self.intake.ack().await;
            return Ok(false);
        };
        buffer.extend_from_slice(&chunk.bytes);
        Ok(true)
    }

    async fn take_message(&mut self, frame: &Bytes) -> Result<(), &'static str> {
        let (header, payload) = postcard::take_from_bytes::<MessageHeader>(frame)
            .map_err(|_| "a malformed message header")?;
        let next = self.intake.next();
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
        let intake = &mut self.intake;
        match header.role {
            MessageRole::Peer => intake.deliver(intake.peer.clone(), message).await,
            MessageRole::Leader(token) => {
                let event = |answer| LinkEvent::Stamped(token, answer);
                if intake.ask(event).await == Some(true) {
                    intake.deliver(intake.peer.clone(), message).await;
                }
            }
            MessageRole::Relayed {
                origin,
                incarnation,
                origin_seq,
                token,
            } => {
                let broadcast = Broadcast {
                    origin,
                    life: incarnation,
                    number: origin_seq,
                };
                let relayed = &mut self.relayed;
                relayed.take(intake, broadcast, token, message).await?;
            }
            MessageRole::Forwarded { origin, token } => {
                relay::take_forwarded(intake, origin, token, message).await;
            }
            MessageRole::Central {
                origin_seq,
                relayed_before,
                token,
            } => {
                let range = relayed_before..=origin_seq;
                relay::take_central(intake, range, token, message, packed).await?;
            }
        }
        intake.take(wire_len).await;
        Ok(())
    }

    /// The message as its sender's host gave it, and its compressed form if it came in that.
    fn unpacked(
        &self,
        frame: &Bytes,
        payload: &[u8],
        header: &MessageHeader,
    ) -> Result<(OutMessage, Option<Bytes>), &'static str> {
        let max = self.intake.context.max_message_size;
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
}
