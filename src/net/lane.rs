//! Lanes of reliable messages, numbered above QUIC: one long-lived stream per direction for a channel, and a
//! short one for each unordered message.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use quinn::{Connection, ReadError, RecvStream, SendStream, VarInt};
use room_transport::quic::open_all_lanes;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::budget::{Reserved, Share};
use super::compression::{CompressionBackoff, unpack, unpacked_len};
use super::control::Queued;
use super::events::LinkEvent;
use super::frame::{
    CLASSIC_LANE, Frames, LaneHeader, MAX_MESSAGE_HEADER_BYTES, MessageHeader, MessageRole,
    OWN_FLAG, UNORDERED_LANE, is_ordered,
};
use super::intake::{Asker, Intake, UnorderedIntake};
use super::outbox::{OutMessage, Outboxes};
use super::relay::{self, Broadcast, RelayedReader};
use super::state;
use super::streams::{FrameStream, HEADER_PRIORITY, LaneEnd, Tasks, write_all};
use super::transfers;
use crate::core::id::PeerId;

/// Frames are batched into writes of this many bytes.
const WRITE_BATCH_BYTES: usize = 32 * 1024;
/// Messages up to this length are decompressed without reserving memory.
const FREE_UNPACKED_BYTES: usize = 4 * 1024;
/// Delay after which an ack is sent for fewer messages.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// First message type that applications may use.
pub(crate) const FIRST_MESSAGE_TYPE: u16 = 0x0100;
/// Reset code of a lane whose messages are dropped.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

/// End of this node's lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// After everything was taken.
    Finish,
    /// The rest is dropped.
    Reset,
}

/// Writes the host's messages, with a task for each lane, so that lanes do not block each other.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) peer: PeerId,
    pub(super) outboxes: Arc<Outboxes>,
    /// Notified when a lane is used for the first time on this link.
    pub(super) opener: Arc<Notify>,
    pub(super) tasks: Tasks,
    pub(super) ending: oneshot::Receiver<Ending>,
}

impl Writer {
    pub(super) async fn run(self) {
        let Self {
            connection,
            peer,
            outboxes,
            opener,
            tasks,
            ending,
        } = self;
        let Some(classic) = outboxes.begin_lane(&peer, CLASSIC_LANE) else {
            return;
        };
        let Ok(mut send) = connection.open_uni().await else {
            return; // the connection ended, which the link reports
        };
        let classic = LaneWriter {
            peer: peer.clone(),
            outboxes: Arc::clone(&outboxes),
            lane: CLASSIC_LANE,
            notice: classic,
        };
        let ending = {
            let others = write_others(&connection, &peer, &outboxes, &opener, &tasks);
            let write = classic.write(&mut send);
            tokio::select! {
                ending = ending => ending.ok(),
                () = write => None,
                () = others => None,
            }
        };
        match ending {
            // Both fail only on a closed stream.
            Some(Ending::Finish) => drop(send.finish()),
            Some(Ending::Reset) => drop(send.reset(GIVEN_UP)),
            None => {}
        }
        // Dropping a stream finishes it; keep it until the link is dropped or closed.
        connection.closed().await;
    }
}

/// Writes every lane but the classic one, each from its first message on.
async fn write_others(
    connection: &Connection,
    peer: &PeerId,
    outboxes: &Arc<Outboxes>,
    opener: &Notify,
    tasks: &Tasks,
) {
    loop {
        for lane in outboxes.lanes_to_open(peer) {
            let Some(notice) = outboxes.begin_lane(peer, lane) else {
                return;
            };
            let writer = LaneWriter {
                peer: peer.clone(),
                outboxes: Arc::clone(outboxes),
                lane,
                notice,
            };
            let connection = connection.clone();
            tasks.spawn(async move {
                if lane == UNORDERED_LANE {
                    return writer.write_unordered(&connection).await;
                }
                if let Ok(mut send) = connection.open_uni().await {
                    writer.write(&mut send).await;
                }
                // Dropping a stream finishes it.
                connection.closed().await;
            });
        }
        opener.notified().await;
    }
}

/// The writer of one lane on one link.
struct LaneWriter {
    peer: PeerId,
    outboxes: Arc<Outboxes>,
    lane: u16,
    notice: Arc<Notify>,
}

impl LaneWriter {
    /// Writes until the stream fails.
    async fn write(&self, send: &mut SendStream) {
        let mut frames = Frames::default();
        let header = LaneHeader { lane: self.lane };
        // Fails only on a closed stream.
        let _ = send.set_priority(HEADER_PRIORITY);
        if frames.put_value(&header).is_err() || write_all(send, &mut frames).await.is_err() {
            return;
        }
        let mut backoff = CompressionBackoff::default();
        let mut priority_now = None;
        loop {
            let Some(priority) = self.take(&mut frames, &mut backoff).await else {
                return;
            };
            if priority_now != Some(priority) {
                priority_now = Some(priority);
                // Fails only on a closed stream.
                let _ = send.set_priority(priority.into());
            }
            if write_all(send, &mut frames).await.is_err() {
                return;
            }
        }
    }

    /// Writes each message on a stream of its own, so that a lost message delays no other.
    async fn write_unordered(&self, connection: &Connection) {
        // Dropping the set stops the writes.
        let mut writes = JoinSet::new();
        let mut backoff = CompressionBackoff::default();
        loop {
            let mut frames = Frames::default();
            let header = LaneHeader { lane: self.lane };
            if frames.put_value(&header).is_err() {
                return;
            }
            let Some(priority) = self.take(&mut frames, &mut backoff).await else {
                return;
            };
            let Ok(mut send) = connection.open_uni().await else {
                return;
            };
            // Fails only on a closed stream.
            let _ = send.set_priority(priority.into());
            writes.spawn(async move {
                if write_all(&mut send, &mut frames).await.is_ok() {
                    // Fails only on a closed stream.
                    let _ = send.finish();
                }
            });
            while writes.try_join_next().is_some() {}
        }
    }

    /// Waits for the next messages; returns the highest of their priorities.
    async fn take(&self, frames: &mut Frames, backoff: &mut CompressionBackoff) -> Option<u8> {
        let Self {
            peer,
            outboxes,
            lane,
            ..
        } = self;
        loop {
            match outboxes.take(peer, *lane, frames, backoff, WRITE_BATCH_BYTES) {
                Ok(Some(priority)) => return Some(priority),
                Ok(None) => self.notice.notified().await,
                Err(error) => {
                    tracing::error!(%error, peer = %self.peer, "a message could not be encoded");
                    return None;
                }
            }
        }
    }
}

/// Reads the peer's lanes, with a task for each stream.
pub(super) struct Readers {
    connection: Connection,
    tasks: Tasks,
    shared: Shared,
}

/// State that the readers of a link share.
#[derive(Clone)]
struct Shared {
    asker: Asker,
    control: mpsc::Sender<Queued>,
    unordered: UnorderedIntake,
    /// Ordered lanes that the peer has opened on this link.
    opened: Arc<Mutex<BTreeSet<u16>>>,
    /// Budget for incomplete long messages.
    reading: Share,
    /// Budget for decompressed messages.
    unpacked: Share,
}

impl Readers {
    pub(super) fn new(
        connection: Connection,
        asker: Asker,
        control: mpsc::Sender<Queued>,
        tasks: Tasks,
    ) -> Self {
        let context = &asker.context;
        let longest_frame = context
            .max_message_size
            .saturating_add(MAX_MESSAGE_HEADER_BYTES);
        let reading = context.budget.share_of_reading(longest_frame);
        let unpacked = context.budget.share_of_unpacked(context.max_message_size);
        let shared = Shared {
            unordered: UnorderedIntake::new(asker.clone(), control.clone()),
            asker,
            control,
            opened: Arc::default(),
            reading,
            unpacked,
        };
        Self {
            connection,
            tasks,
            shared,
        }
    }

    pub(super) async fn run(self) {
        let acks = self.shared.unordered.clone().run_acks(ACK_DELAY);
        self.tasks.spawn(acks);
        let mut accepted = 0_u64;
        while let Ok(recv) = self.connection.accept_uni().await {
            accepted += 1;
            if accepted == 2 {
                open_all_lanes(&self.connection);
            }
            self.tasks.spawn(self.shared.clone().read(recv));
        }
        self.shared.asker.notify(LinkEvent::LaneDone).await;
    }
}

impl Shared {
    async fn read(self, recv: RecvStream) {
        let asker = self.asker.clone();
        let max_frame = asker.context.max_message_size;
        let max_frame = max_frame.saturating_add(MAX_MESSAGE_HEADER_BYTES);
        let mut stream = FrameStream::new(recv, max_frame, self.reading.clone());
        let (lane, end) = match stream.lane().await {
            Ok(lane) => (lane, self.read_lane(lane, stream).await),
            Err(end) => (UNORDERED_LANE, end),
        };
        if let LaneEnd::Violation(what) = end {
            asker.notify(LinkEvent::Violation(what)).await;
        }
        if lane == CLASSIC_LANE {
            asker.notify(LinkEvent::LaneDone).await;
        }
    }

    async fn read_lane(self, lane: u16, stream: FrameStream) -> LaneEnd {
        if lane == UNORDERED_LANE {
            return match read_unordered(&self.unordered, &self.unpacked, stream).await {
                Ok(()) => LaneEnd::Done,
                Err(end) => end,
            };
        }
        let state = state::lane_of(lane).filter(|_| self.asker.context.has_state);
        let transfer = transfers::lane_of(lane);
        if !is_ordered(lane) && state.is_none() && transfer.is_none() {
            return LaneEnd::Violation("a lane of an unknown kind");
        }
        let is_new = {
            // No panic can interrupt a change.
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.insert(lane)
        };
        if !is_new {
            return LaneEnd::Violation("a lane was opened twice");
        }
        if let Some(state) = state {
            return state::read(&self.asker, state, stream).await;
        }
        if let Some(transfer) = transfer {
            return transfers::read(&self.asker, transfer, stream).await;
        }
        let reader = Reader {
            intake: Intake::new(self.asker, lane, self.control),
            relayed: RelayedReader::default(),
            unpacked: self.unpacked,
        };
        reader.read(stream).await
    }
}

/// Reads the one message of an unordered stream.
async fn read_unordered(
    intake: &UnorderedIntake,
    memory: &Share,
    mut stream: FrameStream,
) -> Result<(), LaneEnd> {
    let Some(frame) = stream.next().await? else {
        return Ok(()); // its sender reset the stream, or moved to another link
    };
    let (header, payload) = parted(frame)?;
    if header.role != MessageRole::Peer {
        return Err("an unordered message in another's name".into());
    }
    if !intake.is_new(header.seq)? {
        return Ok(());
    }
    let max = intake.asker.context.max_message_size;
    let unpacked = Unpacked::of(payload, &header, max, memory, || ()).await?;
    let message = unpacked.message;
    intake.take(header.seq, message, header.channel).await;
    drop(unpacked.memory);
    match stream.next().await? {
        None => Ok(()),
        Some(_) => Err("a second message on the stream of an unordered one".into()),
    }
}

/// Splits a frame into its message header, checked as far as the rules hold for all lanes, and the payload.
fn parted(mut frame: Bytes) -> Result<(MessageHeader, Bytes), &'static str> {
    let (header, payload) = postcard::take_from_bytes::<MessageHeader>(&frame)
        .map_err(|_| "a malformed message header")?;
    if header.msg_type < FIRST_MESSAGE_TYPE {
        return Err("a message type that is the library's own");
    }
    let header_len = frame.len() - payload.len();
    frame.advance(header_len);
    Ok((header, frame))
}

/// Reader of an ordered lane, which waits while the host takes no messages.
struct Reader {
    intake: Intake,
    relayed: RelayedReader,
    unpacked: Share,
}

impl Reader {
    async fn read(mut self, mut stream: FrameStream) -> LaneEnd {
        loop {
            match stream.take() {
                Ok(Some(frame)) => {
                    if let Err(what) = self.take_message(frame).await {
                        return LaneEnd::Violation(what);
                    }
                }
                Ok(None) => match self.read_more(&mut stream).await {
                    Ok(true) => {}
                    // A partial frame at the end is allowed: the sender may have moved to another link.
                    Ok(false) | Err(_) => return LaneEnd::Done,
                },
                Err(end) => return end,
            }
        }
    }

    /// Reads what has arrived. First wakes the dispatcher and acknowledges the messages taken so far.
    async fn read_more(&mut self, stream: &mut FrameStream) -> Result<bool, ReadError> {
        self.intake.pause().await;
        let read = stream.read_more();
        tokio::pin!(read);
        let more = if self.intake.is_acked() {
            read.await?
        } else {
            tokio::select! {
                biased;
                more = &mut read => more?,
                () = tokio::time::sleep_until(Instant::now() + ACK_DELAY) => {
                    self.intake.ack().await;
                    read.await?
                }
            }
        };
        if !more {
            self.intake.ack().await;
        }
        Ok(more)
    }

    async fn take_message(&mut self, frame: Bytes) -> Result<(), &'static str> {
        let (header, payload) = parted(frame)?;
        let intake = &mut self.intake;
        let next = intake.next();
        if header.seq < next {
            return Ok(()); // a repeat on a new link, already taken
        }
        if header.seq > next {
            return Err("a message number was left out");
        }
        let channel = header.channel;
        if intake.lane <= u16::from(u8::MAX) && intake.lane != u16::from(channel) {
            return Err("a message of another channel");
        }
        let wire_len = payload.len();
        let max = intake.asker.context.max_message_size;
        // The messages that fill the memory may be ones that the dispatcher was not woken for.
        let before_waiting = || intake.wake();
        let unpacked = Unpacked::of(payload, &header, max, &self.unpacked, before_waiting);
        let Unpacked {
            message,
            packed,
            memory: _memory,
        } = unpacked.await?;
        if header.role != MessageRole::Peer {
            intake.wake(); // these ask the room, and wait
        }
        match header.role {
            MessageRole::Peer => intake.deliver_one_of_many(message, channel).await,
            MessageRole::Leader(token) => {
                let event = |answer| LinkEvent::Stamped(token, answer);
                if intake.asker.ask(event).await == Some(true) {
                    intake
                        .deliver(intake.asker.peer.clone(), message, channel)
                        .await;
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
                    incarnation,
                    number: origin_seq,
                    channel,
                };
                let relayed = &mut self.relayed;
                relayed.take(intake, broadcast, token, message).await?;
            }
            MessageRole::Forwarded { origin, token } => {
                relay::take_forwarded(intake, origin, token, message, channel).await;
            }
            MessageRole::Central {
                origin_seq,
                relayed_before,
                token,
            } => {
                let range = relayed_before..=origin_seq;
                relay::take_central(intake, range, token, message, packed, channel).await?;
            }
        }
        intake.take(wire_len).await;
        Ok(())
    }
}

/// A message as its sender's host sent it.
struct Unpacked {
    message: OutMessage,
    /// Its compressed form, if it arrived compressed.
    packed: Option<Bytes>,
    /// Budget of the decompressed form, until the host has it.
    memory: Option<Reserved>,
}

impl Unpacked {
    /// Reserves memory for the full length before decompressing.
    async fn of(
        payload: Bytes,
        header: &MessageHeader,
        max: usize,
        memory: &Share,
        before_waiting: impl FnOnce(),
    ) -> Result<Self, &'static str> {
        if payload.len() > max {
            return Err("a message is longer than this host takes");
        }
        let (payload, packed, memory) = if header.flags & OWN_FLAG != 0 {
            let len = unpacked_len(&payload, max)?;
            let mut reserved = None;
            if len > FREE_UNPACKED_BYTES {
                reserved = memory.try_reserve(len);
                if reserved.is_none() {
                    before_waiting();
                    reserved = Some(memory.reserve(len).await);
                }
            }
            (unpack(&payload, max)?, Some(payload), reserved)
        } else {
            (payload, None, None)
        };
        let message = OutMessage {
            payload,
            msg_type: header.msg_type,
            flags: header.flags & !OWN_FLAG,
        };
        Ok(Self {
            message,
            packed,
            memory,
        })
    }
}
