//! The control stream of a link.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::close;
use super::events::{LinkEvent, LinkId, RelayEvent};
use super::frame::{
    ControlFrame, FrameError, MAX_ACKED_NUMBERS, is_ordered, put_value, read_frame,
};
use crate::core::wire::MAX_CONTROL_FRAME_BYTES;

/// Control frames that wait to be written, at most; a peer that reads none of them loses its link.
pub(super) const CONTROL_QUEUE_FRAMES: usize = 1024;
/// Priority of the control stream: above all lanes.
const CONTROL_PRIORITY: i32 = 100;
/// Frames written at once, at most.
const CONTROL_BATCH: usize = 64;
/// Empty datagrams that follow an urgent control frame, each in a packet of its own. QUIC takes a packet for
/// lost once a later packet is acknowledged (RFC 9002 section 6.1). Without a later packet it waits for a
/// probe timeout of two round trips or more. With these it retransmits the frame after one round trip.
const TRAILERS: u32 = 4;
/// Gap between them, so that the transport does not coalesce them into one packet.
const TRAILER_GAP: Duration = Duration::from_millis(2);

/// A control frame that waits to be written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) frame: ControlFrame,
    pub(super) urgent: bool,
}

impl From<ControlFrame> for Queued {
    fn from(frame: ControlFrame) -> Self {
        Self {
            frame,
            urgent: false,
        }
    }
}

pub(super) async fn write_control(
    connection: Connection,
    mut send: SendStream,
    mut frames: mpsc::Receiver<Queued>,
    write_timeout: Duration,
) {
    // Fails only on a closed stream.
    let _ = send.set_priority(CONTROL_PRIORITY);
    let mut batch = Vec::new();
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
                // A trailer that cannot be sent counts as lost.
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
            match timeout(write_timeout, send.write(&buffer)).await {
                Ok(Ok(written)) => buffer.advance(written),
                Ok(Err(_)) => return, // the task that watches the connection reports why
                Err(_) => {
                    let from = connection.remote_address();
                    tracing::warn!(%from, "a peer reads no control messages");
                    connection.close(close::LOST, close::STALLED.as_bytes());
                    return;
                }
            }
        }
    }
}

pub(super) async fn read_control(
    id: LinkId,
    mut recv: RecvStream,
    events: mpsc::Sender<(LinkId, LinkEvent)>,
) {
    let mut has_resumed = false;
    loop {
        let event = match read_frame(&mut recv, MAX_CONTROL_FRAME_BYTES).await {
            Ok(frame) => match postcard::take_from_bytes(&frame) {
                Ok((ControlFrame::Resume { missed }, [])) if !has_resumed => {
                    has_resumed = true;
                    LinkEvent::Resumed(missed)
                }
                Ok((ControlFrame::Resume { .. }, [])) => {
                    LinkEvent::Violation("resume was sent twice")
                }
                Ok((_, [])) if !has_resumed => {
                    LinkEvent::Violation("a control frame before resume")
                }
                Ok((ControlFrame::Core(envelope), [])) => LinkEvent::Control(envelope),
                Ok((ControlFrame::Ack { lane, next }, [])) if is_ordered(lane) => {
                    LinkEvent::Acked(lane, next)
                }
                Ok((ControlFrame::Ack { .. }, [])) => {
                    LinkEvent::Violation("an ack of a lane that was never opened")
                }
                Ok((ControlFrame::AckUnordered { next, taken }, []))
                    if taken.len() <= MAX_ACKED_NUMBERS =>
                {
                    LinkEvent::AckedUnordered(next, taken)
                }
                Ok((ControlFrame::Relayed { lane, next }, [])) => {
                    LinkEvent::Relay(RelayEvent::Relayed(lane, next))
                }
                Ok((ControlFrame::BroadcastAgain, [])) => LinkEvent::Relay(RelayEvent::Again),
                Ok((ControlFrame::Ready, [])) => LinkEvent::Violation("ready was sent twice"),
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
