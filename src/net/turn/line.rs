//! The line to a TURN server: a UDP socket, or a stream over TCP or TLS, as messages in both directions.
//!
//! A task reads and a task writes. What waits for the line stays in [`crate::net::turn_port`], where it grows old: the line holds a few
//! messages, and the system's buffer of a stream is small.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpSocket, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::tls::Trust;
use super::{Fault, STEP};
use crate::fork::{self, ClosedInChildren};

/// Messages that wait for the session, at most; then the line is not read.
const INCOMING: usize = 64;
/// Messages that wait to be written, at most.
const OUTGOING: usize = 8;
/// Bytes of a stream that wait in the system, about: 60 ms at 1 MB/s.
const STREAM_BUFFER_BYTES: u32 = 64 << 10;
/// Longest message of a server: a packet of a peer, and the attributes around it.
pub(super) const MAX_MESSAGE_BYTES: usize = 4096;
/// Bytes before the length and the rest of a STUN message, and of a packet on a channel.
const STUN_HEADER_BYTES: usize = 20;
const CHANNEL_HEADER_BYTES: usize = 4;
/// Bytes 4 to 7 of each STUN message (RFC 8489 section 5).
const MAGIC_COOKIE: [u8; 4] = 0x2112_A442_u32.to_be_bytes();

/// A line to a server. Dropping it closes it.
pub(super) struct Line {
    /// Both ends.
    pub(super) local: SocketAddr,
    pub(super) server: SocketAddr,
    /// Whole messages of the server. The channel ends with the line.
    pub(super) incoming: mpsc::Receiver<Bytes>,
    /// Messages to the server.
    pub(super) outgoing: mpsc::Sender<Vec<u8>>,
    /// Why the line ended.
    ended: mpsc::Receiver<Fault>,
    _tasks: JoinSet<()>,
    // After the tasks, which hold the socket.
    _known: ClosedInChildren,
}

/// The tasks' ends of a line's channels.
struct Ends {
    incoming: mpsc::Sender<Bytes>,
    ended: mpsc::Sender<Fault>,
}

impl Line {
    /// Opens a UDP socket towards a server.
    pub(super) async fn udp(own: Option<IpAddr>, server: SocketAddr) -> Result<Self, Fault> {
        let socket = UdpSocket::bind(SocketAddr::new(source(own, server), 0)).await?;
        socket.connect(server).await?;
        let local = socket.local_addr()?;
        let known = fork::closed_in_children(&socket);
        let socket = Arc::new(socket);
        let reader = Arc::clone(&socket);
        let (line, ends, mut to_write) = Self::between(local, server, known);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let fault = match read_datagrams(&reader, &ends.incoming).await {
                Ok(()) => return,
                Err(error) => Fault::from(error),
            };
            let _ = ends.ended.try_send(fault);
        });
        tasks.spawn(async move {
            while let Some(message) = to_write.recv().await {
                // A lost packet, as on any line. The reader learns of a closed port.
                let _ = socket.send(&message).await;
            }
        });
        Ok(Self {
            _tasks: tasks,
            ..line
        })
    }

    /// Opens a TCP stream to a server, with TLS if it has a name for it and a trust.
    pub(super) async fn stream(
        own: Option<IpAddr>,
        server: SocketAddr,
        tls: Option<(&str, Trust)>,
    ) -> Result<Self, Fault> {
        let socket = match server {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(own) = own.filter(|ip| !ip.is_unspecified()) {
            socket.bind(SocketAddr::new(own, 0))?;
        }
        socket.set_send_buffer_size(STREAM_BUFFER_BYTES)?;
        let known = fork::closed_in_children(&socket);
        let connected = tokio::time::timeout(STEP, socket.connect(server)).await;
        let stream = connected.map_err(|_| Fault::NoAnswer)??;
        // Packets of a game do not wait for each other.
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let Some((name, trust)) = tls else {
            return Ok(Self::over(stream, (local, server), known));
        };
        let (name, config) = trust.settings_for(name, server.ip()).await?;
        let connector = TlsConnector::from(config);
        let secured = tokio::time::timeout(STEP, connector.connect(name, stream)).await;
        let secured = secured.map_err(|_| Fault::NoAnswer)?.map_err(Fault::tls)?;
        Ok(Self::over(secured, (local, server), known))
    }

    fn over(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        (local, server): (SocketAddr, SocketAddr),
        known: ClosedInChildren,
    ) -> Self {
        let (line, ends, to_write) = Self::between(local, server, known);
        let (reader, writer) = split(stream);
        let mut tasks = JoinSet::new();
        let ended = ends.ended.clone();
        tasks.spawn(async move {
            let fault = read_stream(reader, &ends.incoming).await;
            let _ = ends.ended.try_send(fault);
        });
        tasks.spawn(async move {
            if let Err(error) = write_stream(writer, to_write).await {
                let _ = ended.try_send(error.into());
            }
        });
        Self {
            _tasks: tasks,
            ..line
        }
    }

    fn between(
        local: SocketAddr,
        server: SocketAddr,
        known: ClosedInChildren,
    ) -> (Self, Ends, mpsc::Receiver<Vec<u8>>) {
        let (incoming, received) = mpsc::channel(INCOMING);
        let (outgoing, to_write) = mpsc::channel(OUTGOING);
        let (end, ended) = mpsc::channel(1);
        let line = Self {
            local,
            server,
            incoming: received,
            outgoing,
            ended,
            _tasks: JoinSet::new(),
            _known: known,
        };
        let ends = Ends {
            incoming,
            ended: end,
        };
        (line, ends, to_write)
    }

    /// Why there are no more messages.
    pub(super) async fn fault(&mut self) -> Fault {
        self.ended.recv().await.unwrap_or(Fault::Lost)
    }
}

/// The address to send from.
fn source(own: Option<IpAddr>, server: SocketAddr) -> IpAddr {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    own.map(|ip| ip.to_canonical())
        .filter(|ip| ip.is_ipv4() == server.is_ipv4())
        .unwrap_or(any)
}

/// Reads until the socket fails, or until the session has ended.
async fn read_datagrams(socket: &UdpSocket, incoming: &mpsc::Sender<Bytes>) -> io::Result<()> {
    // Windows reports a packet that is longer than the buffer as an error of the socket.
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let len = socket.recv(&mut buffer).await?;
        if len > MAX_MESSAGE_BYTES {
            continue;
        }
        let message = Bytes::copy_from_slice(&buffer[..len]);
        if incoming.send(message).await.is_err() {
            return Ok(());
        }
    }
}

async fn read_stream(mut reader: impl AsyncRead + Unpin, incoming: &mpsc::Sender<Bytes>) -> Fault {
    let mut buffer = BytesMut::with_capacity(2 * MAX_MESSAGE_BYTES);
    loop {
        match cut_message(&mut buffer) {
            Err(fault) => return fault,
            Ok(Some(message)) => {
                if incoming.send(message).await.is_err() {
                    return Fault::Lost;
                }
            }
            Ok(None) => match reader.read_buf(&mut buffer).await {
                Ok(0) => return Fault::Lost,
                Ok(_) => {}
                Err(error) => return error.into(),
            },
        }
    }
}

/// Takes the first whole message out of a stream (RFC 8656 section 3.1): the first two bits distinguish STUN messages from packets
/// on channels. In a stream the latter are filled up to a multiple of four.
fn cut_message(buffer: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
    let [first, _, high, low, ..] = buffer[..] else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    let (whole, filled) = match first >> 6 {
        0 => (STUN_HEADER_BYTES + len, STUN_HEADER_BYTES + len),
        1 => {
            let whole = CHANNEL_HEADER_BYTES + len;
            (whole, whole.next_multiple_of(4))
        }
        _ => return Err(Fault::Malformed),
    };
    // `turn-client-proto` would wait for ever for the rest of what it takes for neither.
    let cookie = buffer.get(4..8).filter(|_| first >> 6 == 0);
    if cookie.is_some_and(|cookie| cookie != MAGIC_COOKIE) {
        return Err(Fault::Malformed);
    }
    if filled > MAX_MESSAGE_BYTES {
        return Err(Fault::Malformed);
    }
    if buffer.len() < filled {
        return Ok(None);
    }
    let message = buffer.split_to(whole).freeze();
    buffer.advance(filled - whole);
    Ok(Some(message))
}

async fn write_stream(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        writer.write_all(&message).await?;
        if messages.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, usize), Fault> {
        let mut buffer = BytesMut::from(bytes);
        let mut messages = Vec::new();
        while let Some(message) = cut_message(&mut buffer)? {
            messages.push(message.to_vec());
        }
        Ok((messages, buffer.len()))
    }

    #[test]
    fn a_stream_is_cut_into_messages_and_packets_on_channels() {
        let mut stun = vec![0x01, 0x01, 0, 4, 0x21, 0x12, 0xa4, 0x42];
        stun.resize(24, 7);
        let channel = [0x40, 0, 0, 5, 1, 2, 3, 4, 5];
        let mut bytes = stun.clone();
        bytes.extend(channel);
        bytes.extend([0, 0, 0]);
        bytes.extend(&stun[..23]);
        let (messages, rest) = cut(&bytes).expect("well formed");
        assert_eq!(messages, [stun, channel.to_vec()]);
        assert_eq!(rest, 23);
        for cut_at in 0..24 {
            assert_eq!(cut(&bytes[..cut_at]).expect("well formed").0.len(), 0);
        }
    }

    #[test]
    fn a_message_of_no_kind_or_too_long_ends_the_line() {
        assert!(matches!(cut(&[0x80, 0, 0, 0]), Err(Fault::Malformed)));
        assert!(matches!(cut(&[0; 20]), Err(Fault::Malformed)));
        assert!(matches!(cut(b"HTTP/1.1 400"), Err(Fault::Malformed)));
        assert!(matches!(cut(&[0x40, 0, 0xff, 0]), Err(Fault::Malformed)));
        assert!(matches!(cut(&[0x00, 1, 0x0f, 0xf0]), Err(Fault::Malformed)));
    }
}
