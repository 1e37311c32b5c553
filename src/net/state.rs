//! The frames of the room's state on a link: a stream for each of their lanes, from the first frame on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quinn::Connection;
use tokio::sync::{mpsc, oneshot};

use super::events::LinkEvent;
use super::frame::{Frames, LaneHeader, STATE_LANES};
use super::intake::Asker;
use super::streams::{FrameStream, HEADER_PRIORITY, LaneEnd, Tasks, write_all};
use crate::state::limits::MAX_FRAME_BYTES;
use crate::state::wire::{Frame, Lane};

/// Bytes of frames that wait to be written to one peer, at most; a peer that reads none of them loses its link. More than
/// the log has under way to one member: entries and tables, parts of a snapshot, and all requests of an author.
const MAX_WAITING_BYTES: usize = 2 << 20;
/// Priority of the log and of requests: above all messages, below the control stream.
const LOG_PRIORITY: i32 = 90;
/// Priority of the parts of snapshots: below all messages.
const PARTS_PRIORITY: i32 = -1;

/// The lanes, each at the place of its number in [`STATE_LANES`].
const LANES: [Lane; 3] = [Lane::Log, Lane::Requests, Lane::Parts];

/// Writes the frames of this member to one peer.
pub(super) struct StateWriter {
    connection: Connection,
    tasks: Tasks,
    lanes: [Option<mpsc::UnboundedSender<Vec<u8>>>; LANES.len()],
    /// Bytes of the frames that wait in all of them.
    waiting: Arc<AtomicUsize>,
}

impl StateWriter {
    pub(super) fn new(connection: Connection, tasks: Tasks) -> Self {
        Self {
            connection,
            tasks,
            lanes: [const { None }; LANES.len()],
            waiting: Arc::default(),
        }
    }

    /// Queues a frame, behind the earlier ones of its lane. Returns `false` when too much waits: the peer reads nothing, and
    /// the link should be given up.
    pub(super) fn send(&mut self, frame: &Frame) -> bool {
        let bytes = frame.encode();
        let before = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > MAX_WAITING_BYTES {
            return false;
        }
        let place = place_of(frame.lane());
        let lane = self.lanes[place].get_or_insert_with(|| {
            let (lane, frames) = mpsc::unbounded_channel();
            let connection = self.connection.clone();
            let waiting = Arc::clone(&self.waiting);
            self.tasks
                .spawn(write(connection, LANES[place], frames, waiting));
            lane
        });
        // The task is gone only with the connection, which the link reports.
        let _ = lane.send(bytes);
        true
    }
}

fn place_of(lane: Lane) -> usize {
    LANES
        .iter()
        .position(|other| *other == lane)
        .expect("all lanes have a place")
}

/// The lane with this number on the wire, if it is one of the room's state.
pub(super) fn lane_of(number: u16) -> Option<Lane> {
    let place = STATE_LANES.iter().position(|lane| *lane == number)?;
    LANES.get(place).copied()
}

async fn write(
    connection: Connection,
    lane: Lane,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
) {
    let Ok(mut send) = connection.open_uni().await else {
        return; // the connection ended, which the link reports
    };
    let mut frames = Frames::default();
    let number = STATE_LANES[place_of(lane)];
    // Fails only on a closed stream.
    let _ = send.set_priority(HEADER_PRIORITY);
    if frames.put_value(&LaneHeader { lane: number }).is_err()
        || write_all(&mut send, &mut frames).await.is_err()
    {
        return;
    }
    let priority = match lane {
        Lane::Log | Lane::Requests => LOG_PRIORITY,
        Lane::Parts => PARTS_PRIORITY,
    };
    // Fails only on a closed stream.
    let _ = send.set_priority(priority);
    while let Some(frame) = queue.recv().await {
        let len = frame.len();
        frames.put_frame(frame);
        if write_all(&mut send, &mut frames).await.is_err() {
            return;
        }
        waiting.fetch_sub(len, Ordering::Relaxed);
    }
    // Dropping a stream finishes it.
    connection.closed().await;
}

/// Reads a peer's lane. The next frame is read when the room has taken the one before: so no more than one of each lane is
/// in memory, and a leader without room for requests reads no more of them.
pub(super) async fn read(asker: &Asker, lane: Lane, mut stream: FrameStream) -> LaneEnd {
    stream.allow_frames_of(MAX_FRAME_BYTES);
    loop {
        let bytes = match stream.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return LaneEnd::Done,
            Err(end) => return end,
        };
        let frame = match Frame::decode(&bytes) {
            Ok(frame) if frame.lane() == lane => frame,
            Ok(_) => return "a frame of the room's state in another lane".into(),
            Err(error) => {
                tracing::warn!(peer = %asker.peer, %error, "a frame of the room's state is invalid");
                return "an invalid frame of the room's state".into();
            }
        };
        drop(bytes);
        let (taken, is_taken) = oneshot::channel();
        asker.notify(LinkEvent::State(frame, taken)).await;
        // Dropped if the link carries the session no more: then nothing more of it counts.
        let _ = is_taken.await;
    }
}
