//! A link to one peer: its connection and its tasks.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use room_transport::identity::peer_fingerprint;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::control::{CONTROL_QUEUE_FRAMES, Queued, read_control, write_control};
use super::datagrams::{DatagramReader, read_datagrams, write_datagrams};
use super::events::{LinkContext, LinkEvent, LinkId};
use super::frame::ControlFrame;
use super::intake::Asker;
use super::lane;
use super::received::Received;
use super::state::StateWriter;
use super::streams::Tasks;
use super::transfers;
use super::tunnel::{RouteHold, Tunnels, Via};
use crate::core::id::PeerId;
use crate::core::path::Path;
use crate::core::virtual_address::virtual_id;
use crate::core::wire::{PROBE_DATAGRAM, Probe};
use crate::state::wire::Frame;

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
    /// Tasks of the lanes.
    lanes: Tasks,
    lane_end: Option<oneshot::Sender<lane::Ending>>,
    /// The writer of the room's state, while the link carries a session.
    state: Option<StateWriter>,
    /// State for the readers of the lanes, until they start.
    reader: Option<Asker>,
    /// Whether the peer has sent [`ControlFrame::Resume`].
    has_resumed: bool,
    /// The reader of message datagrams, while the link carries a session.
    datagrams: watch::Sender<Option<Arc<DatagramReader>>>,
    /// Frames received when a probe was sent: any further one is a sign of life.
    frames_at_probe: Option<u64>,
    _tunnelling: Option<Tunnelling>,
}

/// Part of a link in tunnels, until it is dropped.
#[expect(dead_code, reason = "what it holds acts when it is dropped")]
enum Tunnelling {
    /// The link carries packets of tunnels.
    Leg(Leg),
    /// The link goes through a tunnel. Its address is that of one route as long as it exists: neither end's QUIC lets
    /// it move to another.
    Carried(RouteHold),
}

/// Lets tunnels use this link until it is dropped.
struct Leg {
    connection: Connection,
    via: Via,
    tunnels: Arc<Tunnels>,
}

impl Tunnelling {
    fn start(connection: &Connection, tunnels: &Arc<Tunnels>) -> Option<Self> {
        let address = connection.remote_address();
        if !Path::to(address).is_direct() {
            return tunnels.hold(address).map(Self::Carried);
        }
        let via = Via::Member(virtual_id(peer_fingerprint(connection)?));
        tunnels.link_up(via, connection.clone());
        Some(Self::Leg(Leg {
            connection: connection.clone(),
            via,
            tunnels: Arc::clone(tunnels),
        }))
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        self.tunnels.link_down(self.via, &self.connection);
    }
}

impl Link {
    /// Starts the control tasks of an admitted link. The first frame names the number of messages that the peer `missed`.
    pub(crate) fn start(
        id: LinkId,
        admitted: Admitted,
        missed: u64,
        context: &LinkContext,
    ) -> Self {
        let Admitted {
            connection,
            send,
            recv,
        } = admitted;
        let tunnelling = Tunnelling::start(&connection, &context.tunnels);
        let (control, frames) = mpsc::channel(CONTROL_QUEUE_FRAMES);
        let events = context.events.clone();
        let (datagrams, session) = watch::channel(None);
        let control_tasks = vec![
            tokio::spawn(write_control(
                connection.clone(),
                send,
                frames,
                context.write_timeout,
            )),
            tokio::spawn(read_control(id, recv, events.clone())),
            tokio::spawn(read_datagrams(
                id,
                connection.clone(),
                Arc::clone(&context.tunnels),
                events.clone(),
                session,
            )),
            tokio::spawn({
                let connection = connection.clone();
                async move {
                    let error = connection.closed().await;
                    // Fails only without a room.
                    let _ = events.send((id, LinkEvent::Closed(error))).await;
                }
            }),
        ];
        let link = Self {
            connection,
            control,
            control_tasks,
            lane_tasks: Vec::new(),
            lanes: Tasks::default(),
            lane_end: None,
            state: None,
            reader: None,
            has_resumed: false,
            datagrams,
            frames_at_probe: None,
            _tunnelling: tunnelling,
        };
        let has_room = link.send_control(ControlFrame::Resume { missed }, false);
        debug_assert!(has_room, "the queue is new");
        link
    }

    /// Starts to carry the messages of a session. `received` is the session's receive state, which outlives
    /// the link. Nothing is read before the peer's [`ControlFrame::Resume`].
    pub(crate) fn start_lanes(
        &mut self,
        id: LinkId,
        peer: &PeerId,
        received: &Arc<Received>,
        context: &LinkContext,
    ) {
        let outboxes = &context.outboxes;
        let Some(opener) = outboxes.attach(peer) else {
            return;
        };
        let Some(datagrams) = outboxes.attach_datagrams(peer) else {
            return;
        };
        outboxes.measure(peer, &self.connection, &received.count);
        transfers::start(&self.connection, peer, &context.transfers, &self.lanes);
        let (end, ending) = oneshot::channel();
        self.lane_end = Some(end);
        self.state = Some(StateWriter::new(
            self.connection.clone(),
            self.lanes.clone(),
        ));
        let writer = lane::Writer {
            connection: self.connection.clone(),
            peer: peer.clone(),
            outboxes: Arc::clone(outboxes),
            opener,
            tasks: self.lanes.clone(),
            ending,
        };
        let asker = Asker {
            link: id,
            peer: peer.clone(),
            context: context.clone(),
            received: Arc::clone(received),
        };
        self.lane_tasks = vec![
            tokio::spawn(writer.run()),
            tokio::spawn(write_datagrams(
                self.connection.clone(),
                peer.clone(),
                Arc::clone(outboxes),
                datagrams,
                Arc::clone(&context.dispatch),
            )),
        ];
        self.reader = Some(asker);
        self.read();
    }

    /// Handles the peer's [`ControlFrame::Resume`]: starts to read its messages, if this link carries the session.
    pub(crate) fn resumed(&mut self) {
        self.has_resumed = true;
        self.read();
    }

    fn read(&mut self) {
        if !self.has_resumed {
            return;
        }
        let Some(asker) = self.reader.take() else {
            return;
        };
        let datagram_reader = DatagramReader::new(asker.clone());
        self.datagrams.send_replace(Some(Arc::new(datagram_reader)));
        let reader = lane::Readers::new(
            self.connection.clone(),
            asker,
            self.control.clone(),
            self.lanes.clone(),
        );
        self.lane_tasks.push(tokio::spawn(reader.run()));
    }

    /// Stops carrying messages: another link does from now on. Messages that arrived but were not
    /// taken are sent again there.
    pub(crate) fn stop_lanes(&mut self) {
        for task in self.lane_tasks.drain(..) {
            task.abort();
        }
        self.lanes.stop();
        self.lane_end = None;
        self.state = None;
        self.reader = None;
        if let Some(reader) = self.datagrams.send_replace(None) {
            reader.stop();
        }
    }

    /// Ends this node's lane: gracefully if everything was accepted, otherwise at once. The peer's lane is still read.
    pub(crate) fn end_lane(&mut self, ending: lane::Ending) {
        if let Some(end) = self.lane_end.take() {
            // Fails only if the writer has ended.
            let _ = end.send(ending);
        }
    }

    /// Queues a control frame. Returns `false` when the peer reads none and the link should be given up. The
    /// loss of an urgent frame is noticed within a round trip.
    pub(crate) fn send_control(&self, frame: ControlFrame, urgent: bool) -> bool {
        !matches!(
            self.control.try_send(Queued { frame, urgent }),
            Err(mpsc::error::TrySendError::Full(_))
        )
    }

    /// Queues a frame of the room's state. Returns `false` when the peer reads none and the link should be given up.
    pub(crate) fn send_state(&mut self, frame: &Frame) -> bool {
        let writer = self.state.as_mut();
        writer.is_none_or(|writer| writer.send(frame))
    }

    /// Sends a probe. A probe that cannot be sent counts as lost.
    pub(crate) fn send_probe(&mut self, probe: Probe) {
        if let Probe::Ping { .. } = probe {
            self.frames_at_probe = Some(self.frames_received());
        }
        if let Ok(bytes) = postcard::to_allocvec(&(PROBE_DATAGRAM, probe)) {
            let _ = self.connection.send_datagram(Bytes::from(bytes));
        }
    }

    /// Whether anything authenticated by QUIC arrived since the last probe was sent.
    pub(crate) fn received_since_probe(&mut self) -> bool {
        let Some(before) = self.frames_at_probe else {
            return false;
        };
        let alive = self.frames_received() > before;
        if alive {
            self.frames_at_probe = None;
        }
        alive
    }

    fn frames_received(&self) -> u64 {
        frames_received(&self.connection)
    }

    /// The address of the other end.
    pub(crate) fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    /// How its packets travel.
    pub(crate) fn path(&self) -> Path {
        Path::to(self.address())
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

/// Counts frames of decrypted packets only, so that no process outside of the connection can fake a sign of life.
pub(crate) fn frames_received(connection: &Connection) -> u64 {
    let frames = connection.stats().frame_rx;
    frames.acks + frames.ping + frames.stream + frames.datagram + frames.max_stream_data
}
