//! Transfers on a link: a stream for the frames about them, and one for their parts, below all messages.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use quinn::{Connection, SendStream};
use tokio::sync::Notify;
use tokio::time::sleep_until;

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
            if !self
                .write(&mut stream, TransferLane::Frames, &mut frames)
                .await
            {
                return;
            }
        }
    }

    async fn write_parts(self, due: Arc<Notify>) {
        let mut stream = None;
        let mut frames = Frames::default();
        loop {
            let Some((header, bytes)) = self.transfers.take_part(&self.peer) else {
                due.notified().await;
                continue;
            };
            if let Err(error) = frames.put_value_before(&header, bytes) {
                tracing::error!(%error, "a part of a transfer could not be encoded");
                return;
            }
            if !self
                .write(&mut stream, TransferLane::Parts, &mut frames)
                .await
            {
                return;
            }
        }
    }

    /// Writes the frames to the stream, which the first of them opens. Returns whether it may go on.
    async fn write(
        &self,
        stream: &mut Option<SendStream>,
        lane: TransferLane,
        frames: &mut Frames,
    ) -> bool {
        if stream.is_none() {
            // The connection may have ended, which the link reports.
            *stream = self.open(lane).await;
        }
        match stream {
            Some(send) => write_all(send, frames).await.is_ok(),
            None => false,
        }
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
