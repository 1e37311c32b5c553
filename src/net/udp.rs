//! The UDP socket under all links, as quinn drives it.
//!
//! quinn's own fails where the system lacks an option that it sets: Wine and Proton have none of those for
//! ECN and for the "do not fragment" bit. This one then does without them.
//!
//! What is sent to a virtual address goes to [`Tunnels`], and what comes out of a tunnel comes out of this socket.
//!
//! A socket that gives nothing but errors for long is reported ([`Failed`]); [`super::rebinding`] replaces it.

use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};
use room_transport::timers::Timers;
use tokio::io::{Interest, ReadBuf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::closed_ports::{ClosedPorts, RefusedPacket, Waits};
use super::failures::{Failures, Row, is_about_a_destination, is_about_a_packet, is_too_long};
use super::simulation::{Fate, Simulation, Waiting};
use super::socket::canonical;
use super::tunnel::{Tunnels, is_forged};
use super::unanswered::Unanswered;
use crate::fork::{self, ClosedInChildren};
use crate::simulated::SimulatedNetwork;

/// How often the log repeats that a network is simulated, or that packets cannot be sent.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Reads in a row that find nothing although the system reports packets. One is usual; after a shutdown there is no end.
const MAX_EMPTY_READS: u32 = 8;
/// Segments that quinn's buffers have room for, each of 1472 bytes: the system joins no more than fits into one UDP
/// packet of 64 KiB. A room has 32 such buffers.
const MAX_RECEIVE_SEGMENTS: usize = u16::MAX as usize / 1472 + 1;
/// Wait for a full socket of which the system does not report when it takes packets.
const FULL_WAIT: Duration = Duration::from_millis(1);
/// Turns of the network thread within which tasks that wait for a closed socket drop it.
const MAX_TURNS_TO_CLOSE: u32 = 64;

/// tokio, with this module's socket.
#[derive(Debug)]
pub(crate) struct UdpRuntime {
    pub(crate) simulation: Arc<Simulation>,
    /// Tunnels of the room, which carry packets to virtual addresses.
    pub(crate) tunnels: Arc<Tunnels>,
    /// Dials that ended without an answer, whose closes are not sent.
    pub(crate) unanswered: Arc<Unanswered>,
    /// Of the losses and delays that it simulates.
    pub(crate) seed: u64,
    pub(crate) timers: Timers,
    /// Receives each socket that has failed. One that is full has an earlier report of it.
    pub(crate) failed: mpsc::Sender<Failed>,
    /// Receives reports of packets that no process receives at their destinations, if the room wants them.
    pub(crate) refused: Option<mpsc::Sender<RefusedPacket>>,
}

/// A socket that has given nothing but errors for long.
#[derive(Debug)]
pub(crate) struct Failed {
    line: Weak<Line>,
    pub(crate) error: io::Error,
}

impl Failed {
    /// Closes the socket, so that its port is free. quinn may use it until it has another one: packets to it are lost.
    pub(crate) async fn close(&self) {
        let Some(line) = self.line.upgrade() else {
            return;
        };
        let Some(open) = line.close() else {
            return;
        };
        // Tasks that wait until it takes packets have it, too, until they run.
        for _ in 0..MAX_TURNS_TO_CLOSE {
            if open.strong_count() == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Whether the socket is still the room's.
    pub(crate) fn is_open(&self) -> bool {
        let line = self.line.upgrade();
        line.is_some_and(|line| line.open.load().is_some())
    }
}

#[cfg(test)]
impl UdpRuntime {
    /// One outside of a room: its reports have no receiver.
    pub(crate) fn of_a_test(tunnels: Arc<Tunnels>) -> Self {
        Self {
            simulation: Arc::default(),
            tunnels,
            unanswered: Arc::default(),
            seed: 1,
            timers: Timers::start(),
            failed: mpsc::channel(1).0,
            refused: None,
        }
    }
}

impl Runtime for UdpRuntime {
    fn new_timer(&self, at: std::time::Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.timers.timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let options = match UdpSocketState::new((&socket).into()) {
            Ok(options) => Some(options),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the system lacks a socket option; links do without ECN, segmentation offload and larger packets"
                );
                None
            }
        };
        Ok(Udp::start(socket, options, self)?)
    }

    fn now(&self) -> std::time::Instant {
        TokioRuntime.now()
    }
}

/// The socket.
#[derive(Debug)]
struct Udp {
    line: Arc<Line>,
    simulation: Arc<Simulation>,
    tunnels: Arc<Tunnels>,
    unanswered: Arc<Unanswered>,
    /// Whether what came out of tunnels is next, where the reader takes one packet at a time.
    tunnels_next: AtomicBool,
}

/// The socket, open or closed.
#[derive(Debug)]
struct Line {
    /// `None` once it is closed: what is sent is lost then.
    open: ArcSwapOption<Open>,
    closed: Notify,
    local: SocketAddr,
    /// Whether the socket is one of IPv4 alone. quinn sees it as one of IPv6, because virtual addresses are: IPv4 addresses
    /// are mapped, as those of a dual-stack socket.
    is_v4: bool,
    /// `None` where the system lacks one of them: one packet a call, as it is.
    options: Option<UdpSocketState>,
    waiting: Mutex<Waiting>,
    reading: Mutex<Reading>,
    sending: Mutex<Sending>,
    me: Weak<Line>,
    failed: mpsc::Sender<Failed>,
    /// Reports of refused packets, if the room wants them and the system has them.
    closed_ports: Option<ClosedPorts>,
    /// Whether the system took no packet at the last try.
    is_full: AtomicBool,
}

/// The system's socket.
#[derive(Debug)]
struct Open {
    socket: tokio::net::UdpSocket,
    /// After the socket, so that it is dropped after it.
    _known: ClosedInChildren,
}

/// How the socket is read.
#[derive(Debug, Default)]
struct Reading {
    failures: Failures,
    pause: Option<Pin<Box<Sleep>>>,
    row: Row,
    reports: Waits,
}

/// How it sends.
#[derive(Debug, Default)]
struct Sending {
    row: Row,
    warned: Option<Instant>,
}

impl Udp {
    fn start(
        socket: UdpSocket,
        options: Option<UdpSocketState>,
        runtime: &UdpRuntime,
    ) -> io::Result<Arc<Self>> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let closed_ports = ClosedPorts::start(&socket, runtime.refused.as_ref());
        let open = Open {
            _known: fork::closed_in_children(&socket),
            socket: tokio::net::UdpSocket::from_std(socket)?,
        };
        let line = Arc::new_cyclic(|me| Line {
            open: ArcSwapOption::from_pointee(open),
            closed: Notify::new(),
            local,
            is_v4: local.is_ipv4(),
            options,
            waiting: Mutex::new(Waiting::new(runtime.seed)),
            reading: Mutex::default(),
            sending: Mutex::default(),
            me: Weak::clone(me),
            failed: runtime.failed.clone(),
            closed_ports,
            is_full: AtomicBool::new(false),
        });
        #[cfg(test)]
        lock(&tests::LINES).push(Arc::downgrade(&line));
        let simulation = Arc::clone(&runtime.simulation);
        tokio::spawn(send_delayed(Arc::downgrade(&line), Arc::clone(&simulation)));
        Ok(Arc::new(Self {
            line,
            simulation,
            tunnels: Arc::clone(&runtime.tunnels),
            unanswered: Arc::clone(&runtime.unanswered),
            tunnels_next: AtomicBool::new(true),
        }))
    }

    /// Sends a packet by the socket, over the simulated network if there is one.
    fn send_by_network(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let Some(network) = self.simulation.network() else {
            return self.line.try_send(transmit);
        };
        let fate = self.line.waiting().take(network, Instant::now(), transmit);
        match fate {
            Fate::Send => self.line.try_send(transmit),
            // The task looks again at which is the first.
            Fate::Wait => {
                self.simulation.wake();
                Ok(())
            }
            Fate::Lost => Ok(()),
        }
    }
}

impl AsyncUdpSocket for Udp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            line: Arc::clone(&self.line),
            waits: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.unanswered.drops(transmit.contents) {
            return Ok(());
        }
        if !self.tunnels.take(transmit) {
            self.send_by_network(transmit)?;
        }
        self.unanswered.note_sent(transmit.contents);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        // Each gets half of the room, or every other packet, so that neither waits for the other.
        let len = bufs.len().min(meta.len());
        let half = match len {
            1 => usize::from(self.tunnels_next.fetch_not(Ordering::Relaxed)),
            _ => len / 2,
        };
        let count = self
            .tunnels
            .poll_arrived(cx, &mut bufs[..half], &mut meta[..half]);
        if count > 0 && count == len {
            return Poll::Ready(Ok(count));
        }
        match self
            .line
            .poll_recv(cx, &mut bufs[count..], &mut meta[count..])
        {
            Poll::Ready(more) => Poll::Ready(more.map(|more| count + more)),
            Poll::Pending if count > 0 => Poll::Ready(Ok(count)),
            Poll::Pending if half == 0 => {
                match self.tunnels.poll_arrived(cx, &mut bufs[..], &mut meta[..]) {
                    0 => Poll::Pending,
                    count => Poll::Ready(Ok(count)),
                }
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Of IPv6, as all that quinn sees.
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.line.mapped(self.line.local))
    }

    fn max_transmit_segments(&self) -> usize {
        match &self.line.options {
            // Each packet has its own fate.
            Some(options) if self.simulation.network().is_none() => options.max_gso_segments(),
            _ => 1,
        }
    }

    fn max_receive_segments(&self) -> usize {
        let segments = self.line.options.as_ref();
        segments.map_or(1, |options| {
            options.gro_segments().min(MAX_RECEIVE_SEGMENTS)
        })
    }

    fn may_fragment(&self) -> bool {
        self.line
            .options
            .as_ref()
            .is_none_or(UdpSocketState::may_fragment)
    }
}

impl Line {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// An IPv4 address as the IPv6 address that stands for it, where quinn would not expect it otherwise.
    fn mapped(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.is_v4 => SocketAddr::from((v4.to_ipv6_mapped(), address.port())),
            _ => address,
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let open = self.open.load();
        let Some(open) = &*open else {
            return Poll::Pending; // quinn reads the next socket
        };
        let mut reading = lock(&self.reading);
        if let Some(pause) = &mut reading.pause {
            ready!(Future::poll(pause.as_mut(), cx));
            reading.pause = None;
        }
        if let Some(ports) = &self.closed_ports {
            ports.poll(&mut reading.reports, open, cx);
        }
        match ready!(open.poll_recv(cx, self.options.as_ref(), bufs, meta)) {
            Ok(count) => {
                reading.failures.end();
                reading.row.end();
                for meta in &mut meta[..count] {
                    meta.addr = self.mapped(meta.addr);
                    if is_forged(meta.addr) {
                        meta.len = 0; // quinn skips it
                    }
                }
                Poll::Ready(Ok(count))
            }
            Err(error) if self.is_report(open, &error) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            // quinn would give the socket up. Some systems report here that an earlier packet did not arrive.
            Err(error) => {
                self.not_received(error, &mut reading, cx);
                Poll::Pending
            }
        }
    }

    /// Whether an error only means that there are reports about earlier packets. It is none of the socket, nor of the packet that
    /// was to be sent.
    fn is_report(&self, open: &Open, error: &io::Error) -> bool {
        let Some(ports) = &self.closed_ports else {
            return false;
        };
        if cfg!(windows) && error.kind() == ErrorKind::ConnectionReset {
            ports.unknown();
            return false;
        }
        is_about_a_packet(error)
            && (ports.take(&open.socket) || error.kind() == ErrorKind::ConnectionRefused)
    }

    /// Has the socket read again, at once or after a pause.
    fn not_received(&self, error: io::Error, reading: &mut Reading, cx: &mut Context<'_>) {
        tracing::debug!(%error, "the socket reports an error");
        let next = reading.failures.add();
        // Of a socket that has failed there is a warning of its own.
        if next.warn && is_about_a_packet(&error) {
            tracing::warn!(%error, "the socket receives nothing but errors; it is read less often until that ends");
        }
        if !is_about_a_packet(&error) && reading.row.add(Instant::now()) {
            self.report(error);
        }
        if !next.pause.is_zero() {
            let mut pause = Box::pin(sleep(next.pause));
            if Future::poll(pause.as_mut(), cx).is_pending() {
                reading.pause = Some(pause);
                return;
            }
        }
        cx.waker().wake_by_ref();
    }

    /// [`ErrorKind::WouldBlock`] is the only error.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let transmit = &Transmit {
            destination: match self.is_v4 {
                true => canonical(transmit.destination),
                false => transmit.destination,
            },
            ..*transmit
        };
        if self.is_v4 && transmit.destination.is_ipv6() {
            tracing::debug!(destination = %transmit.destination, "the socket has IPv4 alone");
            return Ok(());
        }
        let open = self.open.load();
        let Some(open) = &*open else {
            return Ok(());
        };
        let send = || open.try_send(self.options.as_ref(), transmit);
        let again = |error: io::Error| match self.is_report(open, &error) {
            true => send(),
            false => Err(error),
        };
        match send().or_else(again) {
            Ok(()) => {
                lock(&self.sending).row.end();
                if let Some(ports) = &self.closed_ports {
                    ports.note(transmit);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_full.store(true, Ordering::Relaxed);
                return Err(error);
            }
            Err(error) => self.not_sent(error, transmit.destination),
        }
        Ok(())
    }

    /// A packet is lost, as on the way.
    fn not_sent(&self, error: io::Error, destination: SocketAddr) {
        tracing::debug!(%error, %destination, "a packet was not sent");
        let mut sending = lock(&self.sending);
        let now = Instant::now();
        let is_due = |at: Instant| now.saturating_duration_since(at) >= WARNING_INTERVAL;
        // QUIC finds out what the path carries; and of a socket that has failed there is a warning of its own.
        let is_news = is_about_a_destination(&error) && !is_too_long(&error);
        if is_news && sending.warned.is_none_or(is_due) {
            tracing::warn!(%error, %destination, "packets cannot be sent");
            sending.warned = Some(now);
        }
        if !is_about_a_destination(&error) && sending.row.add(now) {
            self.report(error);
        }
    }

    fn report(&self, error: io::Error) {
        let line = Weak::clone(&self.me);
        // A report that waits is of this socket, or of the one before; this one fails again.
        let _ = self.failed.try_send(Failed { line, error });
    }

    /// Closes the socket; returns the part that other tasks may still hold, or `None` if it was closed before.
    fn close(&self) -> Option<Weak<Open>> {
        let open = self.open.swap(None)?;
        lock(&self.reading).reports = Waits::default();
        self.closed.notify_waiters();
        let left = Arc::downgrade(&open);
        let is_ours = |local: io::Result<SocketAddr>| local.is_ok_and(|local| local == self.local);
        if !is_ours(open.socket.local_addr()) {
            // Other code in this process has closed it, and its number belongs to another file now.
            std::mem::forget(open);
        }
        Some(left)
    }

    /// Waits until the socket takes packets, or is closed and loses them.
    async fn writable(&self) -> io::Result<()> {
        let closed = self.closed.notified();
        let Some(open) = self.open.load_full() else {
            return Ok(());
        };
        let writable = async {
            let ready = open.socket.ready(Interest::WRITABLE).await?;
            // After the first report the system's events look as if the other end of a pipe were closed, and tokio takes that
            // for the end of all waits.
            if self.is_full.swap(false, Ordering::Relaxed) && ready.is_write_closed() {
                sleep(FULL_WAIT).await;
            }
            Ok(())
        };
        tokio::select! {
            result = writable => result,
            () = closed => Ok(()),
        }
    }

    /// Sends every packet that is due, and returns when the next one is.
    async fn send_due(&self) -> Option<Instant> {
        loop {
            let packet = self.waiting().next_due(Instant::now());
            let Some(packet) = packet else {
                return self.waiting().due();
            };
            while self.try_send(&packet.transmit()).is_err() {
                self.writable().await.ok()?;
            }
        }
    }
}

impl AsRef<tokio::net::UdpSocket> for Open {
    fn as_ref(&self) -> &tokio::net::UdpSocket {
        &self.socket
    }
}

impl Open {
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        options: Option<&UdpSocketState>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some(options) = options else {
            return self.poll_recv_one(cx, &mut bufs[0], &mut meta[0]);
        };
        for _ in 0..MAX_EMPTY_READS {
            ready!(self.socket.poll_recv_ready(cx))?;
            let receive = || options.recv((&self.socket).into(), bufs, meta);
            match self.socket.try_io(Interest::READABLE, receive) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
        let closed = "the system reports packets and has none: the socket is shut down";
        Poll::Ready(Err(io::Error::new(ErrorKind::NotConnected, closed)))
    }

    fn poll_recv_one(
        &self,
        cx: &mut Context<'_>,
        buf: &mut IoSliceMut<'_>,
        meta: &mut RecvMeta,
    ) -> Poll<io::Result<usize>> {
        let mut packet = ReadBuf::new(buf);
        let addr = ready!(self.socket.poll_recv_from(cx, &mut packet))?;
        let len = packet.filled().len();
        *meta = RecvMeta {
            addr,
            len,
            stride: len,
            ecn: None,
            dst_ip: None,
        };
        Poll::Ready(Ok(1))
    }

    fn try_send(
        &self,
        options: Option<&UdpSocketState>,
        transmit: &Transmit<'_>,
    ) -> io::Result<()> {
        let Some(options) = options else {
            let sent = self
                .socket
                .try_send_to(transmit.contents, transmit.destination);
            return sent.map(drop);
        };
        let send = || options.try_send((&self.socket).into(), transmit);
        self.socket.try_io(Interest::WRITABLE, send)
    }
}

/// Shuts down the sockets of this process on a port, as far as tests opened them: they fail to send from now on.
#[cfg(test)]
pub(crate) fn shut_down(port: u16) {
    for line in lock(&tests::LINES).iter().filter_map(Weak::upgrade) {
        if let Some(open) = line.open.load_full()
            && line.local.port() == port
        {
            // Linux does it, and reports that the socket is not connected.
            let _ = socket2::SockRef::from(&open.socket).shutdown(std::net::Shutdown::Both);
        }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends each packet when it is due, and logs the simulated settings. Ends with the socket.
async fn send_delayed(line: Weak<Line>, simulation: Arc<Simulation>) {
    let mut warned: Option<(SimulatedNetwork, Instant)> = None;
    while let Some(line) = line.upgrade() {
        let network = simulation.network();
        let now = Instant::now();
        match (network, warned) {
            (None, None) => {}
            (None, Some(_)) => {
                tracing::info!("no bad network is simulated any more");
                warned = None;
            }
            (Some(network), Some((same, at))) if network == same && now < at + WARNING_INTERVAL => {
            }
            (Some(network), _) => {
                tracing::warn!(
                    lag_ms = network.lag.as_millis(),
                    jitter_ms = network.jitter.as_millis(),
                    loss_permille = network.loss_permille,
                    "simulation of a bad network: what this node sends is delayed or lost on purpose"
                );
                warned = Some((network, now));
            }
        }
        let first_due = line.send_due().await;
        drop(line); // the socket closes while this waits
        let warning_due = warned.map(|(_, at)| at + WARNING_INTERVAL);
        let wait = async {
            match [first_due, warning_due].into_iter().flatten().min() {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => {}
            () = simulation.changed() => {}
        }
    }
}

/// Waits until the socket takes packets, for one link: tokio wakes one task alone that polls the socket itself.
struct Writable {
    line: Arc<Line>,
    waits: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = Arc::clone(&self.line);
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(async move { line.writable().await }));
        let result = ready!(waits.as_mut().poll(cx));
        self.waits = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use quinn::{Endpoint, EndpointConfig};

    use super::*;
    use crate::core::id::Fingerprint;
    use crate::core::virtual_address::{is_virtual, virtual_address};
    use crate::net::{closed_ports, rebinding, socket};
    use room_transport::identity::{Identity, client_config, server_config};
    use room_transport::quic::{open_windows, transport_config};

    /// Every socket that a test opened.
    pub(super) static LINES: Mutex<Vec<Weak<Line>>> = Mutex::new(Vec::new());

    /// An endpoint whose system takes none of the options.
    fn plain() -> Endpoint {
        let identity = Identity::generate().expect("an identity");
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), 0));
        let runtime = UdpRuntime {
            refused: Some(closed_ports::reports().0),
            ..UdpRuntime::of_a_test(tunnels)
        };
        let transport = Arc::new(transport_config());
        let server = server_config(&identity, Arc::clone(&transport)).expect("a configuration");
        let client = client_config(&identity, None, transport).expect("a configuration");
        let bound = socket::bind(Some(Ipv4Addr::LOCALHOST.into()), 0).expect("bound");
        let udp = Udp::start(bound, None, &runtime).expect("a socket");
        assert_eq!(
            (udp.max_transmit_segments(), udp.max_receive_segments()),
            (1, 1)
        );
        assert!(udp.may_fragment());
        let config = EndpointConfig::default();
        let mut endpoint =
            Endpoint::new_with_abstract_socket(config, Some(server), udp, Arc::new(runtime))
                .expect("an endpoint");
        endpoint.set_default_client_config(client);
        endpoint
    }

    #[tokio::test]
    async fn a_socket_without_options_carries_links() {
        let (one, other) = (plain(), plain());
        let address = other.local_addr().expect("bound");
        let dial = one.connect(address, "mmn").expect("dialled");
        let accept = async { other.accept().await.expect("dialled").await };
        let (dialled, accepted) = tokio::join!(dial, accept);
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        open_windows(&accepted);
        let sent = vec![7; 1 << 20];
        let send = async {
            let mut stream = dialled.open_uni().await.expect("a stream");
            stream.write_all(&sent).await.expect("written");
            stream.finish().expect("open");
        };
        let receive = async {
            let mut stream = accepted.accept_uni().await.expect("a stream");
            stream.read_to_end(sent.len()).await.expect("read")
        };
        let ((), received) = tokio::join!(send, receive);
        assert_eq!(received, sent);
    }

    /// A socket on loopback, with what it needs to send to itself.
    fn bare(identity: &Identity) -> (Arc<Udp>, UdpRuntime) {
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), 0));
        let runtime = UdpRuntime::of_a_test(tunnels);
        let bound = socket::bind(Some(Ipv4Addr::LOCALHOST.into()), 0).expect("bound");
        let options = UdpSocketState::new((&bound).into()).expect("this system has them");
        let udp = Udp::start(bound, Some(options), &runtime).expect("a socket");
        (udp, runtime)
    }

    fn packet(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
        Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: None,
            src_ip: None,
        }
    }

    #[tokio::test]
    async fn packets_to_a_virtual_address_never_reach_the_system() {
        let identity = Identity::generate().expect("an identity");
        let (udp, runtime) = bare(&identity);
        // Packets to the system wait here.
        runtime.simulation.set(SimulatedNetwork {
            lag: Duration::from_secs(3600),
            jitter: Duration::ZERO,
            loss_permille: 0,
        });
        let member = virtual_address(
            crate::core::path::CarrierKind::Member,
            Fingerprint([1; 32]),
            1,
        );
        for destination in [member, SocketAddr::new(member.ip(), 4711)] {
            udp.try_send(&packet(destination, b"packet"))
                .expect("taken");
        }
        assert_eq!(udp.line.waiting().due(), None);
        assert_eq!(runtime.tunnels.stats().dropped, 2, "it leads nowhere");
        let own = udp.local_addr().expect("bound");
        assert!(own.is_ipv6());
        udp.try_send(&packet(own, b"packet")).expect("taken");
        assert!(udp.line.waiting().due().is_some());
        // Not even past the tunnels would the system get it.
        let unsent = udp.line.try_send(&packet(member, b"packet"));
        assert!(unsent.is_ok());
    }

    #[tokio::test]
    async fn neither_tunnels_nor_the_system_wait_for_the_other() {
        const PACKETS: usize = 6;
        for room in [1, 2, 32] {
            let identity = Identity::generate().expect("an identity");
            let (udp, runtime) = bare(&identity);
            let own = udp.local_addr().expect("bound");
            let open = udp.line.open.load_full().expect("open");
            open.socket.writable().await.expect("open");
            for _ in 0..PACKETS {
                runtime.tunnels.arrive_for_test(b"tunnel");
                udp.try_send(&packet(own, b"system")).expect("sent");
            }
            open.socket.readable().await.expect("open");
            let mut order = Vec::new();
            while order.len() < 2 * PACKETS {
                let mut buffers = vec![[0; 2048]; room];
                let mut bufs: Vec<_> = buffers.iter_mut().map(|buf| IoSliceMut::new(buf)).collect();
                let mut meta = vec![RecvMeta::default(); room];
                let count = std::future::poll_fn(|cx| udp.poll_recv(cx, &mut bufs, &mut meta));
                let count = tokio::time::timeout(Duration::from_secs(30), count).await;
                for meta in &meta[..count.expect("woken").expect("no error")] {
                    assert!(is_virtual(meta.addr) || meta.addr == own);
                    order.push(is_virtual(meta.addr));
                }
            }
            let early = order[..PACKETS]
                .iter()
                .filter(|of_tunnel| **of_tunnel)
                .count();
            assert!(room == 32 || early == PACKETS / 2, "{room}: {order:?}");
            let all = order.iter().filter(|of_tunnel| **of_tunnel).count();
            assert_eq!(all, PACKETS, "{room}");
        }
    }

    #[tokio::test]
    async fn a_packet_out_of_a_tunnel_wakes_the_reader() {
        let identity = Identity::generate().expect("an identity");
        let (udp, runtime) = bare(&identity);
        let reader = {
            let udp = Arc::clone(&udp);
            tokio::spawn(async move {
                let (mut buffer, mut meta) = ([0; 2048], [RecvMeta::default()]);
                let mut bufs = [IoSliceMut::new(&mut buffer)];
                let count = std::future::poll_fn(|cx| udp.poll_recv(cx, &mut bufs, &mut meta));
                count.await.expect("no error")
            })
        };
        tokio::task::yield_now().await;
        assert!(!reader.is_finished());
        runtime.tunnels.arrive_for_test(b"tunnel");
        let count = tokio::time::timeout(Duration::from_secs(30), reader).await;
        assert_eq!(count.expect("woken").expect("no panic"), 1);
    }

    /// A socket at that address whose room wants reports of refused packets.
    #[cfg(target_os = "linux")]
    fn reporting(
        at: Option<IpAddr>,
    ) -> (
        Arc<Udp>,
        mpsc::Receiver<RefusedPacket>,
        mpsc::Receiver<Failed>,
    ) {
        let identity = Identity::generate().expect("an identity");
        let (failed, failures) = rebinding::reports();
        let (refused, reports) = closed_ports::reports();
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), 0));
        let runtime = UdpRuntime {
            failed,
            refused: Some(refused),
            ..UdpRuntime::of_a_test(tunnels)
        };
        let bound = socket::bind(at, 0).expect("bound");
        let options = UdpSocketState::new((&bound).into()).expect("this system has them");
        let udp = Udp::start(bound, Some(options), &runtime).expect("a socket");
        (udp, reports, failures)
    }

    /// The beginning of a packet of a link.
    #[cfg(target_os = "linux")]
    fn of_a_link(number: u8) -> [u8; 64] {
        let mut packet = [number; 64];
        packet[0] = 0x40;
        packet
    }

    /// An address of this machine at which no process receives.
    #[cfg(target_os = "linux")]
    fn unused(ip: IpAddr) -> SocketAddr {
        let socket = UdpSocket::bind((ip, 0)).expect("bound");
        socket.local_addr().expect("bound")
    }

    /// Reads the socket, as quinn does, until `done` ends.
    #[cfg(target_os = "linux")]
    async fn reading<T>(udp: &Udp, done: impl Future<Output = T>) -> T {
        let read = std::future::poll_fn(|cx| {
            let (mut buffer, mut meta) = ([0; 2048], [RecvMeta::default()]);
            let mut bufs = [IoSliceMut::new(&mut buffer)];
            while udp.poll_recv(cx, &mut bufs, &mut meta).is_ready() {}
            Poll::<()>::Pending
        });
        let limit = tokio::time::timeout(Duration::from_secs(30), done);
        tokio::select! {
            () = read => unreachable!("it never ends"),
            done = limit => done.expect("in time"),
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_packet_that_no_process_receives_is_reported_with_its_time() {
        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::from(std::net::Ipv6Addr::LOCALHOST);
        let mut pairs = vec![(Some(v4), v4), (None, v4)];
        if UdpSocket::bind((v6, 0)).is_ok() {
            pairs.extend([(None, v6), (Some(v6), v6)]);
        }
        for (own, ip) in pairs {
            let (udp, mut reports, _) = reporting(own);
            let open = udp.line.open.load_full().expect("open");
            open.socket.writable().await.expect("open");
            let there = unused(ip);
            let before = Instant::now();
            // As quinn has it: it sees a socket of IPv6.
            let mapped = match there.ip() {
                IpAddr::V4(v4) => SocketAddr::from((v4.to_ipv6_mapped(), there.port())),
                IpAddr::V6(_) => there,
            };
            udp.try_send(&packet(mapped, &of_a_link(7))).expect("sent");
            let after = Instant::now();
            let report = reading(&udp, reports.recv()).await.expect("one");
            assert_eq!(report.destination, Some(there), "{own:?}");
            let sent = report.sent.expect("it quotes the packet");
            assert!(before <= sent && sent <= after, "{own:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_dead_peer_costs_no_packet_of_another_one_and_is_no_fault_of_the_socket() {
        let (udp, mut reports, mut failures) = reporting(Some(Ipv4Addr::LOCALHOST.into()));
        let open = udp.line.open.load_full().expect("open");
        open.socket.writable().await.expect("open");
        let dead = unused(Ipv4Addr::LOCALHOST.into());
        let living = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        living.set_nonblocking(true).expect("a setting");
        let there = living.local_addr().expect("bound");
        for number in 0..50 {
            udp.try_send(&packet(udp.line.mapped(dead), &of_a_link(number)))
                .expect("sent");
            udp.try_send(&packet(udp.line.mapped(there), &of_a_link(number)))
                .expect("sent");
            let mut received = [0; 64];
            let len = living
                .recv(&mut received)
                .expect("it arrives at once on loopback");
            assert_eq!(received[..len], of_a_link(number));
        }
        reading(&udp, reports.recv()).await.expect("one");
        assert!(lock(&udp.line.sending).warned.is_none());
        assert_eq!(lock(&udp.line.reading).failures.add().pause, Duration::ZERO);
        assert!(failures.try_recv().is_err());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_socket_is_not_asked_without_end_after_a_report() {
        let (udp, mut reports, _) = reporting(Some(Ipv4Addr::LOCALHOST.into()));
        let open = udp.line.open.load_full().expect("open");
        open.socket.writable().await.expect("open");
        let dead = unused(Ipv4Addr::LOCALHOST.into());
        udp.try_send(&packet(udp.line.mapped(dead), &of_a_link(1)))
            .expect("sent");
        reading(&udp, reports.recv()).await.expect("one");
        // As if it took nothing.
        udp.line.is_full.store(true, Ordering::Relaxed);
        let before = Instant::now();
        udp.line.writable().await.expect("open");
        let ready = open.socket.ready(Interest::WRITABLE).await.expect("open");
        assert!(!ready.is_write_closed() || before.elapsed() >= FULL_WAIT);
    }

    #[tokio::test]
    async fn the_socket_closes_with_its_endpoint() {
        let endpoint = plain();
        let address = canonical(endpoint.local_addr().expect("bound"));
        drop(endpoint);
        let limit = Instant::now() + Duration::from_secs(30);
        while UdpSocket::bind(address).is_err() {
            assert!(Instant::now() < limit, "{address} is still taken");
            tokio::task::yield_now().await;
        }
    }
}
