//! The socket: for both families of addresses, with counters, and a notice to the legs when a packet has left.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use room_transport::timers::Timers;
use room_transport::tunnel::leg::Departures;
use socket2::{Domain, Protocol, Socket, Type};

use crate::figures::Counters;

/// Bytes asked of the system for each of the socket's two buffers; it may give less. Packets wait there while the machine is
/// too busy: a larger buffer would make them later, and lose as many in the end.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

/// Binds a nonblocking socket. The unspecified IPv6 address means both families, or IPv4 alone where the machine has no IPv6.
///
/// # Errors
/// The system's error.
pub(crate) fn bind(listen: SocketAddr) -> io::Result<UdpSocket> {
    match bind_one(listen) {
        Err(error) if listen.is_ipv6() && listen.ip().is_unspecified() && has_no_ipv6(&error) => {
            bind_one(SocketAddr::from((Ipv4Addr::UNSPECIFIED, listen.port())))
        }
        result => result,
    }
}

fn has_no_ipv6(error: &io::Error) -> bool {
    // The last is what Linux reports for an unsupported family.
    use io::ErrorKind::{AddrNotAvailable, Unsupported};
    matches!(error.kind(), AddrNotAvailable | Unsupported) || error.raw_os_error() == Some(97)
}

fn bind_one(listen: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(listen),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if listen.is_ipv6() {
        socket.set_only_v6(!listen.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    // A smaller buffer loses packets sooner, and nothing else.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.bind(&listen.into())?;
    Ok(socket.into())
}

/// tokio, with this module's socket.
#[derive(Debug)]
pub(crate) struct UdpRuntime {
    pub(crate) timers: Timers,
    pub(crate) counters: Arc<Counters>,
    pub(crate) departures: Arc<Departures>,
}

impl Runtime for UdpRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.timers.timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Udp {
            socket: TokioRuntime.wrap_udp_socket(socket)?,
            counters: Arc::clone(&self.counters),
            departures: Arc::clone(&self.departures),
        }))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

#[derive(Debug)]
struct Udp {
    socket: Arc<dyn AsyncUdpSocket>,
    counters: Arc<Counters>,
    departures: Arc<Departures>,
}

impl AsyncUdpSocket for Udp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)?;
        self.counters.sent(transmit.contents.len());
        self.departures.notify(transmit.destination);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.socket.poll_recv(cx, bufs, meta))?;
        let bytes = meta.iter().take(count).map(|meta| meta.len).sum();
        self.counters.received(bytes);
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
