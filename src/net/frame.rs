//! Framing of control messages and lane messages on their streams.
//!
//! Every frame is a little-endian `u32` length and that many bytes. On the control stream the bytes are one
//! [`ControlFrame`]. On a lane the first frame is a [`LaneHeader`]; every further one is a [`MessageHeader`]
//! and the payload. A datagram that is a message is [`MESSAGE_DATAGRAM`], a [`DatagramHeader`] and the payload.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quinn::{ConnectionError, ReadError, ReadExactError};
use quinn::{RecvStream, SendStream, VarInt, WriteError};
use room_transport::closing::{DialError, abi};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::core::id::{Incarnation, PeerId};
use crate::core::wire::Envelope;
use crate::core::wire::Opaque;

/// Bytes of the length before every frame.
pub(crate) const LENGTH_BYTES: usize = 4;
/// Longest encoded [`MessageHeader`], in bytes.
pub(crate) const MAX_MESSAGE_HEADER_BYTES: usize = 512;
/// The message flag bit that the library reserves: the payload is compressed.
pub(crate) const OWN_FLAG: u8 = 1;

/// A frame on the control stream, after both ends have sent their Hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ControlFrame {
    /// The sender accepts the link; the last step of the admission.
    Ready,
    /// A message of the core.
    Core(Envelope),
    /// The first frame after [`ControlFrame::Ready`], from each end. The receiver reads the sender's lanes
    /// and datagrams only after it.
    Resume {
        /// Reliable messages of this session that the sender's host sent while the receiver was lost, and
        /// that the receiver will not get.
        missed: u64,
    },
    /// The sender's host queue has taken every message of an ordered lane before this number.
    Ack {
        /// The lane.
        lane: u16,
        /// Number of the next expected message.
        next: u64,
    },
    /// Acknowledges unordered messages.
    AckUnordered {
        /// All before this number.
        next: u64,
        /// Some of those beyond it, at most [`MAX_ACKED_NUMBERS`].
        taken: Vec<u64>,
    },
    /// The sender, as leader, has relayed every broadcast of the receiver on a lane before this number.
    Relayed {
        /// The lane.
        lane: u16,
        /// Number of the next broadcast.
        next: u64,
    },
    /// The sender leads now, and did not when broadcasts of the receiver arrived for relaying: the
    /// receiver may send them again.
    BroadcastAgain,
}

/// The lane of the classic sends. Lanes up to 255 are the ordered channels, one stream each.
pub(crate) const CLASSIC_LANE: u16 = 0;
/// The lane of all unordered messages: one stream per message.
pub(crate) const UNORDERED_LANE: u16 = 256;
/// The lane of unordered broadcasts to the leader. It is ordered: the leader relays a sequence without gaps.
pub(crate) const UNORDERED_RELAY_LANE: u16 = 257;
/// The lanes of the room's state: its log, requests for it, and parts of snapshots.
pub(crate) const STATE_LANES: [u16; 3] = [258, 259, 260];
/// The lanes of transfers: the frames about them, and their parts.
pub(crate) const TRANSFER_LANES: [u16; 2] = [261, 262];
/// Unordered messages in flight to one peer, at most; each has a stream.
pub(crate) const MAX_UNORDERED_IN_FLIGHT: usize = 128;
/// Largest span from the first unordered message that a peer has not taken to the newest one.
pub(crate) const MAX_UNORDERED_SPAN: u64 = 1 << 16;
/// Numbers in one [`ControlFrame::AckUnordered`], at most.
pub(crate) const MAX_ACKED_NUMBERS: usize = 64;
/// The first byte of a datagram that is a message.
pub(crate) const MESSAGE_DATAGRAM: u8 = 1;
/// Longest encoded [`DatagramHeader`] of the sender's own message, with the byte before it.
pub(crate) const MAX_DATAGRAM_HEADER_BYTES: usize = 36;
/// Further bytes for a leadership token and, once relayed, an origin: two peer ids of maximum length
/// and the counters beside them.
pub(crate) const MAX_DATAGRAM_RELAY_BYTES: usize = 256;

/// Whether a lane is one stream whose messages arrive in order.
pub(crate) fn is_ordered(lane: u16) -> bool {
    lane <= u16::from(u8::MAX) || lane == UNORDERED_RELAY_LANE
}

/// The first frame of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneHeader {
    /// The lane: a channel, [`UNORDERED_LANE`], [`UNORDERED_RELAY_LANE`], or one of [`STATE_LANES`] or [`TRANSFER_LANES`].
    pub(crate) lane: u16,
}

/// Header of a message in a datagram, between [`MESSAGE_DATAGRAM`] and the payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatagramHeader {
    /// The channel that the sender chose.
    pub(crate) channel: u8,
    /// The application's type.
    pub(crate) msg_type: u16,
    /// The application's flags; bit 0 is clear.
    pub(crate) flags: u8,
    /// Longest time that the receiver may keep the message for its host, in milliseconds; 0 is no limit.
    pub(crate) ttl_ms: u32,
    /// Its sequence number, if it is sequenced.
    pub(crate) sequence: Option<Sequence>,
    /// The role in which it is sent.
    pub(crate) role: DatagramRole,
}

/// Position of a sequenced message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sequence {
    /// The key that the sender chose.
    pub(crate) key: u64,
    /// Counts the sequenced messages of all keys within one session.
    pub(crate) number: u64,
}

/// Role in which a datagram is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DatagramRole {
    /// The sender's own message.
    Peer,
    /// The sender's broadcast, for the receiver to relay as leader.
    Central {
        /// Token of the leadership that the sender follows.
        token: Opaque,
    },
    /// Another member's broadcast, relayed by the leader.
    Relayed {
        /// The member that sent it.
        origin: PeerId,
        /// The incarnation of the origin.
        incarnation: Incarnation,
        /// Token of the sender's leadership.
        token: Opaque,
    },
}

/// Header before a message's payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageHeader {
    /// Counts the messages of the lane within one session of both peers, across links.
    pub(crate) seq: u64,
    /// The application's type.
    pub(crate) msg_type: u16,
    /// The application's flags; bit 0 is the library's.
    pub(crate) flags: u8,
    /// The channel that the sender chose. On the lane of a channel it equals that channel.
    pub(crate) channel: u8,
    /// The role in which it is sent.
    pub(crate) role: MessageRole,
}

/// Role in which a message is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MessageRole {
    /// The sender's own message.
    Peer,
    /// The sender's message as leader, with the token of its leadership.
    Leader(Opaque),
    /// Another member's broadcast, relayed by the leader; or the leader's own from before it led.
    Relayed {
        /// The member that sent it.
        origin: PeerId,
        /// The incarnation of the origin.
        incarnation: Incarnation,
        /// The number that its origin gave it.
        origin_seq: u64,
        /// Token of the sender's leadership.
        token: Opaque,
    },
    /// The sender's broadcast, for the receiver to relay as leader.
    Central {
        /// Number among such broadcasts of the sender, counted through its incarnation.
        origin_seq: u64,
        /// All of them before this number have been relayed.
        relayed_before: u64,
        /// Token of the leadership that the sender follows.
        token: Opaque,
    },
    /// Another member's message, forwarded by the leader's host, which names the origin.
    Forwarded {
        /// The member that sent it.
        origin: PeerId,
        /// Token of the sender's leadership.
        token: Opaque,
    },
}

/// Appends `value` as one frame.
///
/// # Errors
/// An error of serde; only a broken invariant of our own types can cause one.
pub(crate) fn put_value<T: Serialize>(
    buffer: &mut BytesMut,
    value: &T,
) -> Result<(), postcard::Error> {
    let body = postcard::to_allocvec(value)?;
    put_length(buffer, body.len());
    buffer.put_slice(&body);
    Ok(())
}

/// Appends a message as one frame.
///
/// # Errors
/// As [`put_value`].
pub(crate) fn put_message(
    buffer: &mut BytesMut,
    header: &MessageHeader,
    payload: &[u8],
) -> Result<(), postcard::Error> {
    let mut scratch = [0; MAX_MESSAGE_HEADER_BYTES];
    let header = postcard::to_slice(header, &mut scratch)?;
    put_length(buffer, header.len() + payload.len());
    buffer.put_slice(header);
    buffer.put_slice(payload);
    Ok(())
}

/// Frames up to this length are copied out of the read buffer, so that a short message in the host's queue
/// does not keep a long buffer alive.
const COPY_BELOW_BYTES: usize = 16 * 1024;
/// Payloads from this length on are written without a copy; copying a shorter one next to others costs less.
const SHARE_FROM_BYTES: usize = 4 * 1024;
/// Bytes of the length and the header of most messages.
const USUAL_HEADER_BYTES: usize = 16;

/// Frames to be written to a stream: short ones share a buffer, long payloads are the buffers of the host's messages.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    chunks: Vec<Bytes>,
    /// The bytes after those.
    last: BytesMut,
}

impl Frames {
    /// Appends `value` as one frame.
    ///
    /// # Errors
    /// As [`put_value`].
    pub(crate) fn put_value<T: Serialize>(&mut self, value: &T) -> Result<(), postcard::Error> {
        put_value(&mut self.last, value)
    }

    /// Appends a message as one frame.
    ///
    /// # Errors
    /// As [`put_value`].
    pub(crate) fn put_message(
        &mut self,
        header: &MessageHeader,
        payload: &Bytes,
    ) -> Result<(), postcard::Error> {
        if payload.len() < SHARE_FROM_BYTES {
            return put_message(&mut self.last, header, payload);
        }
        let mut scratch = [0; MAX_MESSAGE_HEADER_BYTES];
        let header = postcard::to_slice(header, &mut scratch)?;
        put_length(&mut self.last, header.len() + payload.len());
        self.last.put_slice(header);
        self.chunks.push(self.last.split().freeze());
        self.chunks.push(payload.clone());
        Ok(())
    }

    /// Appends bytes as one frame.
    pub(crate) fn put_frame(&mut self, frame: Vec<u8>) {
        put_length(&mut self.last, frame.len());
        self.chunks.push(self.last.split().freeze());
        self.chunks.push(frame.into());
    }

    /// Appends `value` and the bytes after it as one frame.
    ///
    /// # Errors
    /// As [`put_value`].
    pub(crate) fn put_value_before<T: Serialize>(
        &mut self,
        value: &T,
        bytes: Bytes,
    ) -> Result<(), postcard::Error> {
        let value = postcard::to_allocvec(value)?;
        put_length(&mut self.last, value.len() + bytes.len());
        self.last.put_slice(&value);
        self.chunks.push(self.last.split().freeze());
        self.chunks.push(bytes);
        Ok(())
    }

    /// Reserves space for messages of these lengths at once.
    pub(crate) fn reserve(&mut self, payloads: impl Iterator<Item = usize>) {
        let copied = payloads.map(|len| match len < SHARE_FROM_BYTES {
            true => USUAL_HEADER_BYTES + len,
            false => USUAL_HEADER_BYTES,
        });
        self.last.reserve(copied.sum());
    }

    /// Takes the appended bytes for writing.
    pub(crate) fn take(&mut self) -> Vec<Bytes> {
        let mut chunks = std::mem::take(&mut self.chunks);
        if !self.last.is_empty() {
            chunks.push(self.last.split().freeze());
        }
        chunks
    }
}

/// A message as a datagram.
///
/// # Errors
/// As [`put_value`].
pub(crate) fn datagram(header: &DatagramHeader, payload: &[u8]) -> Result<Bytes, postcard::Error> {
    let mut scratch = [0; MAX_MESSAGE_HEADER_BYTES];
    let header = postcard::to_slice(header, &mut scratch)?;
    let mut buffer = BytesMut::with_capacity(1 + header.len() + payload.len());
    buffer.put_u8(MESSAGE_DATAGRAM);
    buffer.put_slice(header);
    buffer.put_slice(payload);
    Ok(buffer.freeze())
}

fn put_length(buffer: &mut BytesMut, len: usize) {
    // The limits on messages and control frames keep a frame far below 4 GiB.
    buffer.put_u32_le(u32::try_from(len).unwrap_or(u32::MAX));
}

/// Takes the next whole frame from the front of `buffer`; `None` when more bytes are needed. A short one is copied.
///
/// # Errors
/// [`FrameError::TooLong`] when the frame's length is above `max`.
pub(crate) fn take_frame(buffer: &mut BytesMut, max: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(length) = buffer.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let len = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if len > max {
        return Err(FrameError::TooLong { len, max });
    }
    if buffer.len() - LENGTH_BYTES < len {
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    if len < COPY_BELOW_BYTES {
        let frame = Bytes::copy_from_slice(&buffer[..len]);
        buffer.advance(len);
        return Ok(Some(frame));
    }
    Ok(Some(buffer.split_to(len).freeze()))
}

/// Reason why a frame was not read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FrameError {
    /// The other end finished the stream between two frames.
    #[error("the stream has ended")]
    End,
    /// The frame is longer than allowed. Nothing of it was read or written.
    #[error("a frame of {len} bytes; at most {max} are allowed")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The other end finished the stream within a frame.
    #[error("the stream has ended within a frame")]
    Truncated,
    /// The other end reset the stream.
    #[error("the stream was reset with code {0}")]
    Reset(VarInt),
    /// This end has finished or reset the stream.
    #[error("the stream is closed")]
    Closed,
    /// The connection has ended.
    #[error("connection lost: {0}")]
    Connection(ConnectionError),
}

impl FrameError {
    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::TooLong { .. } | Self::Truncated => abi::SERIALIZATION_ERROR,
            Self::End | Self::Reset(_) | Self::Closed => abi::CONNECTION_FAILED,
            Self::Connection(error) => DialError::from(error).code(),
        }
    }
}

/// Reads one frame: a little-endian `u32` length and that many bytes, at most `max`.
///
/// Not cancel safe: a dropped future may have consumed part of a frame. A read that races with something else
/// belongs in a task of its own.
pub(crate) async fn read_frame(recv: &mut RecvStream, max: usize) -> Result<Bytes, FrameError> {
    let mut length = [0; LENGTH_BYTES];
    recv.read_exact(&mut length)
        .await
        .map_err(|error| match error {
            ReadExactError::FinishedEarly(0) => FrameError::End,
            error => error.into(),
        })?;
    let len = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if len > max {
        return Err(FrameError::TooLong { len, max });
    }
    let mut body = vec![0; len];
    recv.read_exact(&mut body).await?;
    Ok(body.into())
}

/// Writes one frame as [`read_frame`] reads it with the same `max`.
///
/// Not cancel safe: a dropped future may leave part of a frame on the stream.
pub(crate) async fn write_frame(
    send: &mut SendStream,
    body: &[u8],
    max: usize,
) -> Result<(), FrameError> {
    let len = body.len();
    let too_long = FrameError::TooLong { len, max };
    if len > max {
        return Err(too_long);
    }
    let length = u32::try_from(len).map_err(|_| too_long)?;
    let mut frame = Vec::with_capacity(LENGTH_BYTES + len);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    Ok(send.write_all(&frame).await?)
}

impl From<ReadExactError> for FrameError {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::FinishedEarly(_) => Self::Truncated,
            ReadExactError::ReadError(ReadError::Reset(code)) => Self::Reset(code),
            ReadExactError::ReadError(ReadError::ConnectionLost(error)) => Self::Connection(error),
            ReadExactError::ReadError(_) => Self::Closed,
        }
    }
}

impl From<WriteError> for FrameError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Reset(code),
            WriteError::ConnectionLost(error) => Self::Connection(error),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => Self::Closed,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use quinn::{Connection, Endpoint};

    use super::*;
    use room_transport::testing::{in_time, pair};

    pub(crate) type Streams = (SendStream, RecvStream);

    /// A connected pair with the control stream open, without an admission.
    pub(crate) async fn open_streams() -> (Endpoints, Streams, Streams) {
        let (d, at_dialler, a, at_acceptor) = pair().await;
        let (mut send, recv) = at_dialler.open_bi().await.expect("a stream");
        write_frame(&mut send, b"first", 5).await.expect("written");
        let (a_send, mut a_recv) = in_time(at_acceptor.accept_bi()).await.expect("a stream");
        in_time(read_frame(&mut a_recv, 5)).await.expect("read");
        let endpoints = Endpoints {
            _sockets: [d.endpoint, a.endpoint],
            at_dialler,
            at_acceptor,
        };
        (endpoints, (send, recv), (a_send, a_recv))
    }

    pub(crate) struct Endpoints {
        _sockets: [Endpoint; 2],
        pub(crate) at_dialler: Connection,
        pub(crate) at_acceptor: Connection,
    }
}

#[cfg(test)]
mod tests {
    use super::testing::open_streams;
    use super::*;
    use room_transport::closing::close_code;
    use room_transport::testing::in_time;

    #[tokio::test]
    async fn t19_frames_up_to_the_limit_are_read_and_one_byte_more_is_not() {
        let (_endpoints, (mut send, _), (_, mut recv)) = open_streams().await;
        write_frame(&mut send, &[], 8).await.expect("written");
        write_frame(&mut send, &[7; 8], 8).await.expect("written");
        let too_long = FrameError::TooLong { len: 9, max: 8 };
        assert_eq!(
            write_frame(&mut send, &[7; 9], 8).await,
            Err(too_long.clone())
        );
        write_frame(&mut send, &[7; 9], 9).await.expect("written");
        assert_eq!(in_time(read_frame(&mut recv, 8)).await, Ok(Bytes::new()));
        let full = in_time(read_frame(&mut recv, 8)).await;
        assert_eq!(full.as_deref(), Ok(&[7; 8][..]));
        assert_eq!(in_time(read_frame(&mut recv, 8)).await, Err(too_long));
    }

    #[tokio::test]
    async fn the_ends_of_a_stream_are_distinguished() {
        let (_endpoints, (mut send, _), (_, mut recv)) = open_streams().await;
        write_frame(&mut send, b"last", 8).await.expect("written");
        send.finish().expect("open");
        assert!(in_time(read_frame(&mut recv, 8)).await.is_ok());
        assert_eq!(
            in_time(read_frame(&mut recv, 8)).await,
            Err(FrameError::End)
        );
        assert_eq!(
            write_frame(&mut send, b"late", 8).await,
            Err(FrameError::Closed)
        );

        let (_endpoints, (mut send, _), (_, mut recv)) = open_streams().await;
        send.write_all(&[4, 0, 0, 0, 1]).await.expect("written");
        send.finish().expect("open");
        let cut = in_time(read_frame(&mut recv, 8)).await;
        assert_eq!(cut, Err(FrameError::Truncated));

        let (_endpoints, (mut send, _), (_, mut recv)) = open_streams().await;
        send.reset(VarInt::from_u32(5)).expect("open");
        let reset = in_time(read_frame(&mut recv, 8)).await;
        assert_eq!(reset, Err(FrameError::Reset(VarInt::from_u32(5))));

        let (endpoints, _streams, (_a_send, mut recv)) = open_streams().await;
        endpoints.at_dialler.close(close_code(-18), b"");
        let error = in_time(read_frame(&mut recv, 8)).await.expect_err("closed");
        assert!(matches!(error, FrameError::Connection(_)));
        assert_eq!(error.code(), -18);
    }
}
