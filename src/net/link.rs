//! One link to one peer: its tasks, and what they tell the room.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::frame::{ControlFrame, FrameError, put_value, read_frame};
use super::lane::{self, Acks};
use super::outbox::Outboxes;
use super::relay::{RelayEvent, Relaying, UnknownLives};
use crate::core::election::record::Record;
use crate::core::id::PeerId;
use crate::core::wire::{Envelope, MAX_CONTROL_FRAME_BYTES, Probe};
use crate::dispatch::Dispatch;

/// Control frames that wait to be written; a peer that takes none of them loses its link.
const CONTROL_QUEUE_FRAMES: usize = 1024;
/// What the link's tasks may tell the room before they wait for it.
pub(crate) const EVENT_QUEUE: usize = 1024;
/// The control stream goes before all lanes.
const CONTROL_PRIORITY: i32 = 100;
/// Why a link is given up whose peer reads no control messages.
pub(crate) const STALLED: &str = "the control stream is stalled";
/// Frames written at once, at most.
const CONTROL_BATCH: usize = 64;
/// Empty datagrams that follow an urgent control frame, each in a packet of its own. QUIC takes a packet for lost when one
/// that was sent later is acknowledged (RFC 9002 section 6.1), and asks only after a probe timeout, of two round trips and
/// more, where nothing was. With these it sends the frame again after one round trip.
const TRAILERS: u32 = 4;
/// Their distance, so that the transport does not put them into one packet.
const TRAILER_GAP: Duration = Duration::from_millis(2);

/// Application close codes below those that carry an ABI code.
pub(crate) mod close {
    use quinn::VarInt;

    /// The sender has left, or has nothing against the receiver.
    pub(crate) const DONE: VarInt = VarInt::from_u32(0);
    /// The sender heard nothing for the heartbeat timeout.
    pub(crate) const LOST: VarInt = VarInt::from_u32(1);
    /// The sender's host disconnected the receiver.
    pub(crate) const DISCONNECTED: VarInt = VarInt::from_u32(2);
    /// Another link between the same two peers is kept.
    pub(crate) const SUPERSEDED: VarInt = VarInt::from_u32(3);
    /// The receiver broke the protocol.
    pub(crate) const VIOLATION: VarInt = VarInt::from_u32(4);
}

/// Names a link for as long as the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

/// A control frame that waits to be written.
#[derive(Debug)]
pub(crate) struct Queued {
    frame: ControlFrame,
    urgent: bool,
}

impl From<ControlFrame> for Queued {
    fn from(frame: ControlFrame) -> Self {
        Self {
            frame,
            urgent: false,
        }
    }
}

/// What a link tells the room.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A control message arrived.
    Control(Envelope),
    /// A probe arrived.
    Datagram(Probe),
    /// The peer has taken every message before this number.
    Acked(u64),
    /// A message that is stamped with a leadership record waits for the answer whether it may be delivered.
    Stamped(Record, oneshot::Sender<bool>),
    /// Something about messages in another's name.
    Relay(RelayEvent),
    /// The peer's lane is read to its end.
    LaneDone,
    /// The peer sent what no member sends.
    Violation(&'static str),
    /// The connection has ended.
    Closed(ConnectionError),
}

/// What the tasks of a link share with the room.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) relaying: Arc<Relaying>,
    pub(crate) events: mpsc::Sender<(LinkId, LinkEvent)>,
    /// Longest message that this host takes, in bytes.
    pub(crate) max_message_size: usize,
    /// How long a peer may take nothing from its control stream.
    pub(crate) write_timeout: Duration,
}

/// An admitted connection with its control stream.
pub(crate) struct Admitted {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
}

/// A link with its tasks. Dropping it ends the tasks and leaves the connection to its other owners.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    control: mpsc::Sender<Queued>,
    control_tasks: Vec<JoinHandle<()>>,
    lane_tasks: Vec<JoinHandle<()>>,
    lane_end: Option<oneshot::Sender<lane::Ending>>,
    /// Frames that had arrived when a probe was sent: any more is a sign of life.
    frames_at_probe: Option<u64>,
}

impl Link {
    /// Starts the control tasks of an admitted link.
    pub(crate) fn start(id: LinkId, admitted: Admitted, surroundings: &Surroundings) -> Self {
        let Admitted {
            connection,
            send,
            recv,
        } = admitted;
        let (control, frames) = mpsc::channel(CONTROL_QUEUE_FRAMES);
        let events = surroundings.events.clone();
        let control_tasks = vec![
            tokio::spawn(write_control(
                connection.clone(),
                send,
                frames,
                surroundings.write_timeout,
            )),
            tokio::spawn(read_control(id, recv, events.clone())),
            tokio::spawn(read_datagrams(id, connection.clone(), events.clone())),
            tokio::spawn({
                let connection = connection.clone();
                async move {
                    let error = connection.closed().await;
                    // Without a room there is nobody to tell.
                    let _ = events.send((id, LinkEvent::Closed(error))).await;
                }
            }),
        ];
        Self {
            connection,
            control,
            control_tasks,
            lane_tasks: Vec::new(),
            lane_end: None,
            frames_at_probe: None,
        }
    }

    /// Starts to carry the messages of a session. `next_seq` is the next message expected from the peer; it
    /// outlives the link.
    pub(crate) fn start_lanes(
        &mut self,
        id: LinkId,
        peer: &PeerId,
        next_seq: &Arc<AtomicU64>,
        surroundings: &Surroundings,
    ) {
        let Some(notice) = surroundings.outboxes.attach(peer) else {
            return;
        };
        surroundings
            .outboxes
            .measure(peer, &self.connection, next_seq);
        let (end, ending) = oneshot::channel();
        self.lane_end = Some(end);
        let writer = lane::Writer {
            connection: self.connection.clone(),
            peer: peer.clone(),
            outboxes: Arc::clone(&surroundings.outboxes),
            notice,
            ending,
        };
        let reader = lane::Reader {
            link: id,
            connection: self.connection.clone(),
            peer: peer.clone(),
            next_seq: Arc::clone(next_seq),
            acks: Acks::new(self.control.clone()),
            surroundings: surroundings.clone(),
            unknown_lives: UnknownLives::default(),
        };
        self.lane_tasks = vec![tokio::spawn(writer.run()), tokio::spawn(reader.run())];
    }

    /// Stops carrying messages: another link does from now on. What arrived but was not taken will be sent
    /// again there.
    pub(crate) fn stop_lanes(&mut self) {
        for task in self.lane_tasks.drain(..) {
            task.abort();
        }
        self.lane_end = None;
    }

    /// Ends the own lane: politely where everything was taken, else at once. The peer's lane is still read.
    pub(crate) fn end_lane(&mut self, ending: lane::Ending) {
        if let Some(end) = self.lane_end.take() {
            // A writer that is gone has nothing to end.
            let _ = end.send(ending);
        }
    }

    /// Queues a control frame; `false` when the peer takes none and the link should be given up. The loss of an
    /// urgent one is noticed within a round trip.
    pub(crate) fn send_control(&self, frame: ControlFrame, urgent: bool) -> bool {
        !matches!(
            self.control.try_send(Queued { frame, urgent }),
            Err(mpsc::error::TrySendError::Full(_))
        )
    }

    /// Sends a probe. One that cannot be sent is as good as lost.
    pub(crate) fn send_probe(&mut self, probe: Probe) {
        if let Probe::Ping { .. } = probe {
            self.frames_at_probe = Some(self.frames_received());
        }
        if let Ok(bytes) = postcard::to_allocvec(&probe) {
            let _ = self.connection.send_datagram(Bytes::from(bytes));
        }
    }

    /// Whether anything that QUIC authenticated arrived since the last probe was sent.
    pub(crate) fn was_heard_since_probe(&mut self) -> bool {
        let Some(before) = self.frames_at_probe else {
            return false;
        };
        let heard = self.frames_received() > before;
        if heard {
            self.frames_at_probe = None;
        }
        heard
    }

    /// Frames of decrypted packets only, so that nobody outside of the link can feign life.
    fn frames_received(&self) -> u64 {
        let frames = self.connection.stats().frame_rx;
        frames.acks + frames.ping + frames.stream + frames.datagram + frames.max_stream_data
    }

    /// Closes the connection.
    pub(crate) fn close(&self, code: VarInt, reason: &str) {
        self.connection.close(code, reason.as_bytes());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop_lanes();
        for task in &self.control_tasks {
            task.abort();
        }
    }
}

async fn write_control(
    connection: Connection,
    mut send: SendStream,
    mut frames: mpsc::Receiver<Queued>,
    patience: Duration,
) {
    // It fails only on a stream that is closed.
    let _ = send.set_priority(CONTROL_PRIORITY);
    let mut batch = Vec::with_capacity(CONTROL_BATCH);
    let mut buffer = BytesMut::new();
    let mut trailers = 0;
    loop {
        tokio::select! {
            biased;
            received = frames.recv_many(&mut batch, CONTROL_BATCH) => if received == 0 {
                return;
            },
            () = sleep(TRAILER_GAP), if trailers > 0 => {
                trailers -= 1;
                // One that cannot be sent is as good as lost.
                let _ = connection.send_datagram(Bytes::new());
            }
        }
        for Queued { frame, urgent } in batch.drain(..) {
            if urgent {
                trailers = TRAILERS;
            }
            if let Err(error) = put_value(&mut buffer, &frame) {
                tracing::error!(%error, "a control frame could not be encoded");
            }
        }
        while !buffer.is_empty() {
            match timeout(patience, send.write(&buffer)).await {
                Ok(Ok(written)) => buffer.advance(written),
                Ok(Err(_)) => return, // the task that watches the connection tells why
                Err(_) => {
                    let from = connection.remote_address();
                    tracing::warn!(%from, "a peer reads no control messages");
                    connection.close(close::LOST, STALLED.as_bytes());
                    return;
                }
            }
        }
    }
}

async fn read_control(id: LinkId, mut recv: RecvStream, events: mpsc::Sender<(LinkId, LinkEvent)>) {
    loop {
        let event = match read_frame(&mut recv, MAX_CONTROL_FRAME_BYTES).await {
            Ok(frame) => match postcard::take_from_bytes(&frame) {
                Ok((ControlFrame::Core(envelope), [])) => LinkEvent::Control(envelope),
                Ok((ControlFrame::Ack { lane: 0, next }, [])) => LinkEvent::Acked(next),
                Ok((ControlFrame::Ack { .. }, [])) => {
                    LinkEvent::Violation("an ack of a lane that was never opened")
                }
                Ok((ControlFrame::Relayed { next }, [])) => {
                    LinkEvent::Relay(RelayEvent::Relayed(next))
                }
                Ok((ControlFrame::BroadcastAgain, [])) => LinkEvent::Relay(RelayEvent::Again),
                Ok((ControlFrame::Ready, [])) => LinkEvent::Violation("ready was said twice"),
                _ => LinkEvent::Violation("a malformed control frame"),
            },
            Err(FrameError::TooLong { .. }) => {
                LinkEvent::Violation("a control frame is longer than allowed")
            }
            Err(FrameError::Connection(_)) => return,
            Err(_) => LinkEvent::Violation("the control stream ended before the link"),
        };
        let last = matches!(event, LinkEvent::Violation(_));
        if events.send((id, event)).await.is_err() || last {
            return;
        }
    }
}

async fn read_datagrams(
    id: LinkId,
    connection: Connection,
    events: mpsc::Sender<(LinkId, LinkEvent)>,
) {
    while let Ok(datagram) = connection.read_datagram().await {
        if datagram.is_empty() {
            continue; // a trailer: it was to be acknowledged, no more
        }
        let event = match postcard::take_from_bytes(&datagram) {
            Ok((probe, [])) => LinkEvent::Datagram(probe),
            _ => LinkEvent::Violation("a malformed datagram"),
        };
        if events.send((id, event)).await.is_err() {
            return;
        }
    }
}
