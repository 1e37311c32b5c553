//! Cables that tests can cut: rooms under test drop packets from one UDP port to another.

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

use crate::net::udp::UdpRuntime;

/// Sender's and receiver's port of every cut direction.
static CUT: Mutex<BTreeSet<(u16, u16)>> = Mutex::new(BTreeSet::new());

fn cables() -> MutexGuard<'static, BTreeSet<(u16, u16)>> {
    CUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops packets from port `from` to port `to` until [`heal`].
pub(super) fn cut(from: u16, to: u16) {
    cables().insert((from, to));
}

/// Ends the cut from port `from` to port `to`.
pub(super) fn heal(from: u16, to: u16) {
    cables().remove(&(from, to));
}

/// The wrapped runtime, with sockets whose cables can be cut.
#[derive(Debug)]
pub(in crate::room) struct CuttableRuntime(pub(in crate::room) UdpRuntime);

impl Runtime for CuttableRuntime {
    fn new_timer(&self, at: std::time::Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.0.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Cuttable {
            port: socket.local_addr()?.port(),
            socket: self.0.wrap_udp_socket(socket)?,
        }))
    }
}

#[derive(Debug)]
struct Cuttable {
    port: u16,
    socket: Arc<dyn AsyncUdpSocket>,
}

impl AsyncUdpSocket for Cuttable {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let cable = (self.port, transmit.destination.port());
        if cables().contains(&cable) {
            return Ok(());
        }
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, bufs, meta)
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
