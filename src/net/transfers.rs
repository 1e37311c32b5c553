//! Transfers on a link: a stream for the frames about them, and one for their parts, below all messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, SendStream, WriteError};
use room_transport::congestion::background::{Observed, Pace};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::frame::{Frames, LaneHeader, TRANSFER_LANES, put_value};
use super::intake::Asker;
use super::streams::{FrameStream, HEADER_PRIORITY, LaneEnd, Tasks, write_all};
use crate::core::id::PeerId;
use crate::transfers::wire::{
    MAX_PART_FRAME_BYTES, MAX_TRANSFER_FRAME_BYTES, PartHeader, TransferFrame,
};
use crate::transfers::{Transfers, Wakers};

/// Priority of transfers: below all messages, and below the parts of snapshots.
const PRIORITY: i32 = -2;

/// Time between two observations of the line.
const OBSERVED_EVERY: Duration = Duration::from_millis(5);
/// Time without a part after which the pace begins anew: the line may have changed.
const PACE_LIFETIME: Duration = Duration::from_secs(10);
/// Bytes of a packet that are no part of a stream, at most.
const HEADER_BYTES: u64 = 60;

/// The two lanes, each at the place of its number in [`TRANSFER_LANES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferLane {
    Frames,
    Parts,
}

/// The lane with this number on the wire, if it is one of transfers.
pub(super) fn lane_of(number: u16) -> Option<TransferLane> {
    let [frames, parts] = TRANSFER_LANES;
    match number {
        _ if number == frames => Some(TransferLane::Frames),
        _ if number == parts => Some(TransferLane::Parts),
        _ => None,
    }
}

/// Starts to send this member's transfers to a peer, if its library knows them.
pub(super) fn start(
    connection: &Connection,
    peer: &PeerId,
    transfers: &Arc<Transfers>,
    tasks: &Tasks,
) {
    let Some(Wakers { frames, parts }) = transfers.attach(peer) else {
        return;
    };
    let writer = Writer {
        connection: connection.clone(),
        peer: peer.clone(),
        transfers: Arc::clone(transfers),
    };
    tasks.spawn(writer.clone().write_frames(frames));
    tasks.spawn(writer.write_parts(parts));
}

/// Writes to one peer.
#[derive(Clone)]
struct Writer {
    connection: Connection,
    peer: PeerId,
    transfers: Arc<Transfers>,
}

impl Writer {
    async fn write_frames(self, due: Arc<Notify>) {
        let mut stream = None;
        let mut frames = Frames::default();
        loop {
            let (taken, deadline) = self.transfers.take_frames(&self.peer);
            if taken.is_empty() {
                match deadline {
                    None => due.notified().await,
                    Some(at) => tokio::select! {
                        () = due.notified() => {}
                        () = sleep_until(at) => {}
                    },
                }
                continue;
            }
            for frame in taken {
                if let Err(error) = frames.put_value(&frame) {
                    tracing::error!(%error, "a frame about a transfer could not be encoded");
                }
            }
            let Some(send) = self.opened(&mut stream, TransferLane::Frames).await else {
                return;
            };
            if write_all(send, &mut frames).await.is_err() {
                return;
            }
        }
    }

    async fn write_parts(self, due: Arc<Notify>) {
        let mut stream = None;
        let mut frames = Frames::default();
        let mut paced = Paced::new(&self.connection);
        loop {
            let Some((header, bytes)) = self.transfers.take_part(&self.peer) else {
                let from = Instant::now();
                due.notified().await;
                if from.elapsed() > PACE_LIFETIME {
                    paced = Paced::new(&self.connection);
                }
                continue;
            };
            if let Err(error) = frames.put_value_before(&header, bytes) {
                tracing::error!(%error, "a part of a transfer could not be encoded");
                return;
            }
            let Some(send) = self.opened(&mut stream, TransferLane::Parts).await else {
                return;
            };
            for chunk in frames.take() {
                if paced.write(send, chunk).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The stream of a lane, which its first frame opens. `None` if the connection has ended, which the link reports.
    async fn opened<'a>(
        &self,
        stream: &'a mut Option<SendStream>,
        lane: TransferLane,
    ) -> Option<&'a mut SendStream> {
        if stream.is_none() {
            *stream = self.open(lane).await;
        }
        stream.as_mut()
    }

    async fn open(&self, lane: TransferLane) -> Option<SendStream> {
        let mut send = self.connection.open_uni().await.ok()?;
        let mut header = BytesMut::new();
        let lane = TRANSFER_LANES[lane as usize];
        put_value(&mut header, &LaneHeader { lane }).ok()?;
        // Priorities fail only on a closed stream.
        let _ = send.set_priority(HEADER_PRIORITY);
        send.write_all(&header).await.ok()?;
        let _ = send.set_priority(PRIORITY);
        Some(send)
    }
}

/// Writes at a pace at which the game's messages find no queue.
struct Paced {
    connection: Connection,
    pace: Pace,
    observed_at: Instant,
}

impl Paced {
    fn new(connection: &Connection) -> Self {
        let (now, path) = (Instant::now(), connection.stats().path);
        Self {
            connection: connection.clone(),
            pace: Pace::new(now.into_std(), path.rtt, path.current_mtu.into()),
            observed_at: now,
        }
    }

    async fn write(&mut self, send: &mut SendStream, mut chunk: Bytes) -> Result<(), WriteError> {
        while !chunk.is_empty() {
            let wait = self.wait();
            if !wait.is_zero() {
                sleep(wait.min(OBSERVED_EVERY)).await;
                continue;
            }
            // Whole packets: each has a header of its own.
            let most = self.pace.burst().saturating_sub(HEADER_BYTES).max(1);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let piece = chunk.split_to(most.min(chunk.len()));
            self.pace.sent(piece.len() as u64);
            send.write_chunk(piece).await?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Duration {
        let now = Instant::now();
        if now >= self.observed_at + OBSERVED_EVERY {
            self.observed_at = now;
            if let Some(seen) = Observed::of(self.connection.congestion_state()) {
                self.pace.observe(now.into_std(), &seen);
            }
        }
        self.pace.wait(now.into_std())
    }
}

/// Reads a peer's lane. Nothing here waits for the host: the windows of transfers bound what arrives.
pub(super) async fn read(asker: &Asker, lane: TransferLane, mut stream: FrameStream) -> LaneEnd {
    let transfers = &asker.context.transfers;
    stream.allow_frames_of(match lane {
        TransferLane::Frames => MAX_TRANSFER_FRAME_BYTES,
        TransferLane::Parts => MAX_PART_FRAME_BYTES,
    });
    loop {
        let mut frame = match stream.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return LaneEnd::Done,
            Err(end) => return end,
        };
        let taken = match lane {
            TransferLane::Frames => match postcard::take_from_bytes::<TransferFrame>(&frame) {
                Ok((about, [])) => transfers.frame(&asker.peer, about),
                _ => Err("a malformed frame about a transfer"),
            },
            TransferLane::Parts => match postcard::take_from_bytes::<PartHeader>(&frame) {
                Ok((header, rest)) => {
                    frame.advance(frame.len() - rest.len());
                    transfers.part(&asker.peer, header, frame)
                }
                Err(_) => Err("a malformed part of a transfer"),
            },
        };
        if let Err(what) = taken {
            return what.into();
        }
        // All links share the thread, and a part costs more of its time than a message.
        tokio::task::yield_now().await;
    }
}
