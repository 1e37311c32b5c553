//! Streams of frames: how lanes write and read them, and the tasks that do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use quinn::{ReadError, RecvStream, SendStream, WriteError};
use tokio::task::JoinSet;

use super::budget::{Reserved, Share};
use super::frame::{FrameError, Frames, LENGTH_BYTES, LaneHeader, take_frame};

/// Packets read at once.
const READ_CHUNKS: usize = 32;
/// Frames up to this length are read without reserving memory of the budget.
const FREE_FRAME_BYTES: usize = 64 * 1024;
/// Priority of a lane's header: above all messages. QUIC keeps queued data at the priority under which it was
/// queued, so a header of low priority would delay the messages after it.
pub(super) const HEADER_PRIORITY: i32 = 50;

/// Tasks of the lanes of one link. They stop at once: [`Tasks::stop`] prevents every further poll.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.lock();
        // Removes tasks that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    pub(super) fn stop(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        // No panic can interrupt a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason why a lane is no longer read.
pub(super) enum LaneEnd {
    /// The peer finished or reset it, or the connection ended.
    Done,
    /// The peer sent something that no member sends.
    Violation(&'static str),
}

impl From<&'static str> for LaneEnd {
    fn from(what: &'static str) -> Self {
        Self::Violation(what)
    }
}

/// Passes all frames to QUIC, once it has room.
pub(super) async fn write_all(
    send: &mut SendStream,
    frames: &mut Frames,
) -> Result<(), WriteError> {
    send.write_all_chunks(&mut frames.take()).await
}

/// A stream that is read frame by frame.
pub(super) struct FrameStream {
    recv: RecvStream,
    /// Buffers for QUIC's chunks; empty between two reads.
    chunks: Vec<Bytes>,
    buffer: BytesMut,
    max_frame: usize,
    budget: Share,
    /// Budget reserved for the long message that is being read.
    held: Option<Reserved>,
    /// Budget of the previous message, until the next one is asked for.
    taken: Option<Reserved>,
}

impl FrameStream {
    /// Frames have up to `max_frame` bytes, of which `budget` has those of long ones.
    pub(super) fn new(recv: RecvStream, max_frame: usize, budget: Share) -> Self {
        Self {
            recv,
            chunks: vec![Bytes::new(); READ_CHUNKS],
            buffer: BytesMut::new(),
            max_frame,
            budget,
            held: None,
            taken: None,
        }
    }

    /// Allows frames of up to `bytes` bytes from now on.
    pub(super) fn allow_frames_of(&mut self, bytes: usize) {
        self.max_frame = bytes;
    }

    /// The lane that the stream belongs to.
    pub(super) async fn lane(&mut self) -> Result<u16, LaneEnd> {
        let Some(frame) = self.next().await? else {
            return Err(LaneEnd::Done);
        };
        match postcard::take_from_bytes::<LaneHeader>(&frame) {
            Ok((header, [])) => Ok(header.lane),
            _ => Err("a malformed lane header".into()),
        }
    }

    /// Reads the next frame; `None` at the end of the stream. A partial frame at the end is allowed: the
    /// sender may have moved to another link.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LaneEnd> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.read_more().await {
                Ok(true) => {}
                Ok(false) | Err(_) => return Ok(None),
            }
        }
    }

    /// Takes the next frame, if it has arrived in full.
    pub(super) fn take(&mut self) -> Result<Option<Bytes>, LaneEnd> {
        self.taken = None;
        match take_frame(&mut self.buffer, self.max_frame) {
            Ok(Some(frame)) => {
                self.taken = self.held.take();
                Ok(Some(frame))
            }
            Ok(None) => Ok(None),
            Err(FrameError::TooLong { .. }) => {
                Err("a message is longer than this host takes".into())
            }
            Err(_) => Err(LaneEnd::Done),
        }
    }

    pub(super) async fn read_more(&mut self) -> Result<bool, ReadError> {
        self.hold_budget().await;
        // Before a frame's length is known, read no more than one packet: the frame may have to wait
        // for its part of the budget.
        let most = match self.buffer.len() < LENGTH_BYTES {
            true => 1,
            false => READ_CHUNKS,
        };
        let Some(count) = self.recv.read_chunks(&mut self.chunks[..most]).await? else {
            return Ok(false);
        };
        let arrived: usize = self.chunks[..count].iter().map(Bytes::len).sum();
        // Reserve space for the whole frame, so that its bytes are not moved again. Its length is checked,
        // and a long frame holds its budget.
        let missing = (LENGTH_BYTES + self.frame_len()).saturating_sub(self.buffer.len());
        self.buffer.reserve(arrived.max(missing));
        for chunk in &mut self.chunks[..count] {
            self.buffer.extend_from_slice(&std::mem::take(chunk));
        }
        Ok(true)
    }

    /// Length of the frame that has arrived in part; 0 if its length has not arrived.
    fn frame_len(&self) -> usize {
        let length = self.buffer.first_chunk().copied();
        length.map_or(0, u32::from_le_bytes) as usize
    }

    /// Reserves the budget of a long message before more of it is read, so that many streams do not fill the
    /// memory with incomplete messages.
    async fn hold_budget(&mut self) {
        let len = self.frame_len();
        if self.held.is_none() && len > FREE_FRAME_BYTES {
            self.held = Some(self.budget.reserve(len).await);
        }
    }
}
