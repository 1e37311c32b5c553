//! One link to one peer: its connection and its tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::control::{CONTROL_QUEUE_FRAMES, Queued, read_control, read_datagrams, write_control};
use super::events::{LinkContext, LinkEvent, LinkId};
use super::frame::ControlFrame;
use super::intake::Intake;
use super::lane;
use crate::core::id::PeerId;
use crate::core::wire::{PROBE_DATAGRAM, Probe};

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
    pub(crate) fn start(id: LinkId, admitted: Admitted, context: &LinkContext) -> Self {
        let Admitted {
            connection,
            send,
            recv,
        } = admitted;
        let (control, frames) = mpsc::channel(CONTROL_QUEUE_FRAMES);
        let events = context.events.clone();
        let control_tasks = vec![
            tokio::spawn(write_control(
                connection.clone(),
                send,
                frames,
                context.write_timeout,
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
        context: &LinkContext,
    ) {
        let Some(notice) = context.outboxes.attach(peer) else {
            return;
        };
        context.outboxes.measure(peer, &self.connection, next_seq);
        let (end, ending) = oneshot::channel();
        self.lane_end = Some(end);
        let writer = lane::Writer {
            connection: self.connection.clone(),
            peer: peer.clone(),
            outboxes: Arc::clone(&context.outboxes),
            notice,
            ending,
        };
        let intake = Intake::new(
            id,
            peer.clone(),
            Arc::clone(next_seq),
            self.control.clone(),
            context.clone(),
        );
        let reader = lane::Reader::new(self.connection.clone(), intake);
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

    /// Ends this node's lane: gracefully if everything was accepted, otherwise at once. The peer's lane is still read.
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
        if let Ok(bytes) = postcard::to_allocvec(&(PROBE_DATAGRAM, probe)) {
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
