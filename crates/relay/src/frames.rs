//! The stream of frames between a member and the relay.

use std::time::Duration;

use quinn::{ReadExactError, RecvStream, SendStream};
use room_transport::rendezvous::{Frame, FromRelay, ToRelay, frame_length};
use tokio::time::{Instant, sleep_until};

use crate::limiter::{Account, Allowance};

/// Bytes that a member may send before its `Enter` is complete, at most.
pub(crate) const MAX_BYTES_BEFORE_ENTER: u32 = 256;
/// Unread bytes of the stream after that, at most.
pub(crate) const MAX_UNREAD_BYTES: u32 = 4096;
/// Frames that the relay reads from one member: further ones wait, and QUIC's flow control stops the member.
const READING: Allowance = Allowance {
    burst: 64,
    within: Duration::from_secs(4),
};

/// Why there is no next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoFrame {
    /// The stream or the link has ended.
    Ended,
    /// It cannot be decoded.
    Malformed,
}

impl From<ReadExactError> for NoFrame {
    fn from(_: ReadExactError) -> Self {
        Self::Ended
    }
}

/// Reads a member's frames.
pub(crate) struct Frames {
    stream: RecvStream,
    account: Account,
    /// Bytes that may still come before a frame of a known kind is complete.
    left: Option<usize>,
}

impl Frames {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            account: Account::new(Instant::now().into_std()),
            left: Some(MAX_BYTES_BEFORE_ENTER as usize),
        }
    }

    /// The next frame of a known kind. The first one may not take more than [`MAX_BYTES_BEFORE_ENTER`], with all bytes before it.
    pub(crate) async fn next(&mut self) -> Result<ToRelay, NoFrame> {
        loop {
            let now = Instant::now();
            let next = self.account.next(now.into_std(), READING);
            sleep_until(Instant::from_std(next)).await;
            self.account.take(next, READING);
            let mut length = [0; 2];
            self.stream.read_exact(&mut length).await?;
            let length = frame_length(length).map_err(|_| NoFrame::Malformed)?;
            if let Some(left) = self.left {
                let left = left.checked_sub(2 + length).ok_or(NoFrame::Malformed)?;
                self.left = Some(left);
            }
            let mut frame = vec![0; length];
            self.stream.read_exact(&mut frame).await?;
            match ToRelay::decode(&frame) {
                Ok(Some(frame)) => {
                    self.left = None;
                    return Ok(frame);
                }
                Ok(None) => {}
                Err(_) => return Err(NoFrame::Malformed),
            }
        }
    }
}

/// Writes a frame.
pub(crate) async fn write(stream: &mut SendStream, frame: &FromRelay) -> Result<(), NoFrame> {
    let written = stream.write_all(&frame.encode()).await;
    written.map_err(|_| NoFrame::Ended)
}
