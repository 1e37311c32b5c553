//! Packets that the system reports as refused: no process receives at their destination's port (ICMP "port unreachable").
//!
//! Linux keeps such reports in a queue beside the socket (`IP_RECVERR`), with the beginning of the packet that was refused
//! and the address that refused it. Other systems report without that, or not at all.
//!
//! Anybody can send ICMP. So a report counts as one of a packet only if it quotes the beginning of one that was sent to
//! that destination: a connection id and encrypted bytes, which only those on the path have seen.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use quinn::udp::Transmit;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::socket::canonical;

/// Bytes of a packet that a report must quote: the flags, the connection id of eight bytes and seven that are encrypted.
const QUOTED: usize = 16;
/// Packets to one destination that are remembered: as many as a game sends in a long round trip. The system of a dead peer may
/// refuse the first of them alone.
const MAX_PACKETS: usize = 128;
/// Destinations whose packets are remembered.
const MAX_DESTINATIONS: usize = 256;
/// Reports that wait for the room; further ones are dropped, as on the way.
const MAX_WAITING: usize = 64;
/// The first bit of packets that set up a connection, which is no link yet.
const LONG_HEADER: u8 = 0x80;

/// A report that a packet of this socket was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefusedPacket {
    /// Its destination; `None` if the system does not name it.
    pub(crate) destination: Option<SocketAddr>,
    /// The time at which it was sent; `None` if the report proves nothing.
    pub(crate) sent: Option<Instant>,
}

/// Reports that are read at once.
const AT_ONCE: usize = 64;

/// A queue for reports.
pub(crate) fn reports() -> (mpsc::Sender<RefusedPacket>, mpsc::Receiver<RefusedPacket>) {
    mpsc::channel(MAX_WAITING)
}

/// The reports of one socket.
#[derive(Debug)]
pub(super) struct ClosedPorts {
    sent: Mutex<Sent>,
    room: mpsc::Sender<RefusedPacket>,
}

impl ClosedPorts {
    /// Asks the system for reports about the packets of `socket`, and sends them to `room`. `None` if the system has none.
    pub(super) fn start(
        socket: &std::net::UdpSocket,
        room: Option<&mpsc::Sender<RefusedPacket>>,
    ) -> Option<Self> {
        let room = room?.clone();
        if let Err(error) = queue::ask(socket) {
            tracing::info!(%error, "the system does not report closed ports; a leader that crashes is noticed by its silence");
            return None;
        }
        let sent = Mutex::default();
        Some(Self { sent, room })
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets were sent.
    pub(super) fn note(&self, transmit: &Transmit<'_>) {
        let segment = transmit.segment_size;
        let (now, to) = (Instant::now(), canonical(transmit.destination));
        self.sent().note(now, to, transmit.contents, segment);
    }

    /// Takes the reports that are there. Returns whether any was.
    pub(super) fn take(&self, socket: &UdpSocket) -> bool {
        (0..AT_ONCE)
            .take_while(|_| self.took(queue::next(socket)))
            .count()
            > 0
    }

    /// Takes a report out of the queue, if that has one.
    fn took(&self, next: io::Result<Option<Report>>) -> bool {
        if let Ok(Some(report)) = &next {
            tracing::debug!(destination = %report.destination, there = report.is_from_there, "a packet was refused");
            self.report(self.sent().judge(report));
        }
        next.is_ok()
    }

    /// The system reports that some packet was refused, but not which.
    pub(super) fn unknown(&self) {
        self.report(RefusedPacket {
            destination: None,
            sent: None,
        });
    }

    fn report(&self, refused: RefusedPacket) {
        // A room that is behind has enough of them.
        let _ = self.room.try_send(refused);
    }

    /// Reads reports as they come. Wakes the task for the next one.
    pub(super) fn poll<S: AsRef<UdpSocket> + Send + Sync + 'static>(
        &self,
        waits: &mut Waits,
        socket: &Arc<S>,
        cx: &mut Context<'_>,
    ) {
        loop {
            let wait = waits.0.get_or_insert_with(|| {
                let socket = Arc::clone(socket);
                Box::pin(async move { queue::wait((*socket).as_ref()).await })
            });
            match wait.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => waits.0 = None,
                Poll::Ready(Err(_)) | Poll::Pending => return,
            }
            let next = || self.took(queue::next_or_wait((**socket).as_ref()));
            if (0..AT_ONCE).all(|_| next()) {
                return cx.waker().wake_by_ref();
            }
        }
    }
}

/// The wait for the next report. It holds the socket.
#[derive(Default)]
pub(super) struct Waits(Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>);

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waits").field(&self.0.is_some()).finish()
    }
}

/// A report of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) destination: SocketAddr,
    /// Whether the destination itself refused the packet, and not a router on the way.
    pub(super) is_from_there: bool,
    /// The beginning of the packet.
    pub(super) quote: Vec<u8>,
}

/// The beginnings of the packets sent last to each destination.
#[derive(Debug, Default)]
pub(super) struct Sent {
    packets: HashMap<SocketAddr, VecDeque<([u8; QUOTED], Instant)>>,
}

impl Sent {
    /// Packets of `segment` bytes each, or one, were sent.
    pub(super) fn note(
        &mut self,
        now: Instant,
        destination: SocketAddr,
        contents: &[u8],
        segment: Option<usize>,
    ) {
        let len = segment.unwrap_or(contents.len()).max(1);
        for packet in contents.chunks(len) {
            let Some(beginning) = packet.first_chunk::<QUOTED>() else {
                continue;
            };
            if beginning[0] & LONG_HEADER == 0 {
                self.note_packet(now, destination, *beginning);
            }
        }
    }

    fn note_packet(&mut self, now: Instant, destination: SocketAddr, beginning: [u8; QUOTED]) {
        if !self.packets.contains_key(&destination) && self.packets.len() >= MAX_DESTINATIONS {
            self.forget_oldest();
        }
        let packets = self.packets.entry(destination).or_default();
        if packets.len() >= MAX_PACKETS {
            packets.pop_front();
        }
        packets.push_back((beginning, now));
    }

    fn forget_oldest(&mut self) {
        let last = |packets: &VecDeque<(_, Instant)>| packets.back().map(|(_, at)| *at);
        let oldest = self.packets.iter().min_by_key(|(_, packets)| last(packets));
        if let Some(oldest) = oldest.map(|(destination, _)| *destination) {
            self.packets.remove(&oldest);
        }
    }

    /// The meaning of a report.
    pub(super) fn judge(&self, report: &Report) -> RefusedPacket {
        let packets = self.packets.get(&report.destination);
        let quoted = report.quote.first_chunk::<QUOTED>();
        let packet = packets.zip(quoted).and_then(|(packets, quoted)| {
            let mut newest_first = packets.iter().rev();
            newest_first.find(|(beginning, _)| beginning == quoted)
        });
        RefusedPacket {
            destination: Some(report.destination),
            sent: packet
                .filter(|_| report.is_from_there)
                .map(|(_, sent)| *sent),
        }
    }
}

/// The queue of the system.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod queue {
    use std::io::{self, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
    use std::os::fd::{AsFd, AsRawFd};

    use nix::cmsg_space;
    use nix::libc::{SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, sock_extended_err};
    use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, setsockopt,
    };
    use tokio::io::Interest;

    use super::{QUOTED, Report};
    use crate::net::socket::canonical;

    /// Type and code of "port unreachable" (RFC 792, RFC 4443).
    const PORT_UNREACHABLE_V4: (u8, u8) = (3, 3);
    const PORT_UNREACHABLE_V6: (u8, u8) = (1, 4);

    /// Asks the system for reports about a socket's packets.
    ///
    /// # Errors
    /// A system, or a sandbox, that does not have them.
    pub(super) fn ask(socket: &UdpSocket) -> io::Result<()> {
        let fd = socket.as_fd();
        if socket.local_addr()?.is_ipv6() {
            setsockopt(&fd, Ipv6RecvErr, &true)?;
        }
        // A socket of both families has the queue for packets of either.
        setsockopt(&fd, Ipv4RecvErr, &true)?;
        Ok(())
    }

    /// Takes the next report out of the queue: `None` if it is about something else than a refused packet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none, and errors of the socket.
    pub(super) fn next(socket: &impl AsRawFd) -> io::Result<Option<Report>> {
        let mut quote = [0; QUOTED];
        let mut parts = [IoSliceMut::new(&mut quote)];
        // Beside the report, what quinn asks to know of each packet.
        let mut notes = cmsg_space!([u8; 256]);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message: RecvMsg<'_, '_, SockaddrStorage> =
            recvmsg(socket.as_raw_fd(), &mut parts, Some(&mut notes), flags)?;
        let len = message.bytes.min(QUOTED);
        let destination = message.address.as_ref().and_then(address_of);
        let refused_by = message.cmsgs()?.find_map(|note| refused_by(&note));
        Ok(destination.zip(refused_by).map(|(destination, by)| Report {
            is_from_there: by == destination.ip(),
            destination,
            quote: quote[..len].to_vec(),
        }))
    }

    fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = address.as_sockaddr_in();
        let v4 = v4.map(|v4| SocketAddr::from((v4.ip(), v4.port())));
        let v6 = address.as_sockaddr_in6();
        let v6 = v6.map(|v6| SocketAddr::from((v6.ip(), v6.port())));
        v4.or(v6).map(canonical)
    }

    /// Waits until the system has reports.
    pub(super) async fn wait(socket: &tokio::net::UdpSocket) -> io::Result<()> {
        socket.ready(Interest::ERROR).await.map(drop)
    }

    /// As [`next`]; where there is none, the next [`wait`] begins.
    pub(super) fn next_or_wait(socket: &tokio::net::UdpSocket) -> io::Result<Option<Report>> {
        socket.try_io(Interest::ERROR, || next(socket))
    }

    /// The address that reports a closed port, if that is what the note is about.
    fn refused_by(note: &ControlMessageOwned) -> Option<IpAddr> {
        let (error, by): (&sock_extended_err, IpAddr) = match note {
            ControlMessageOwned::Ipv4RecvErr(error, Some(by)) => (
                error,
                Ipv4Addr::from(by.sin_addr.s_addr.to_ne_bytes()).into(),
            ),
            ControlMessageOwned::Ipv6RecvErr(error, Some(by)) => {
                let by = Ipv6Addr::from(by.sin6_addr.s6_addr);
                (error, IpAddr::from(by).to_canonical())
            }
            _ => return None,
        };
        let what = (error.ee_type, error.ee_code);
        let is_refusal = match error.ee_origin {
            SO_EE_ORIGIN_ICMP => what == PORT_UNREACHABLE_V4,
            SO_EE_ORIGIN_ICMP6 => what == PORT_UNREACHABLE_V6,
            _ => false,
        };
        is_refusal.then_some(by)
    }
}

/// Systems without a queue.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod queue {
    use std::io;
    use std::net::UdpSocket;

    use super::Report;

    /// Windows reports without being asked, when it is read.
    pub(super) fn ask(_: &UdpSocket) -> io::Result<()> {
        match cfg!(windows) {
            true => Ok(()),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn next(_: &tokio::net::UdpSocket) -> io::Result<Option<Report>> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(super) async fn wait(_: &tokio::net::UdpSocket) -> io::Result<()> {
        std::future::pending().await
    }

    pub(super) fn next_or_wait(socket: &tokio::net::UdpSocket) -> io::Result<Option<Report>> {
        next(socket)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn there() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 7000))
    }

    fn packet(number: u8) -> [u8; 40] {
        let mut packet = [number; 40];
        packet[0] = 0x40;
        packet
    }

    fn report(quote: &[u8]) -> Report {
        Report {
            destination: there(),
            is_from_there: true,
            quote: quote.to_vec(),
        }
    }

    #[test]
    fn a_report_counts_if_it_quotes_a_packet_to_that_address_and_comes_from_there() {
        let (mut sent, now) = (Sent::default(), Instant::now());
        let later = now + Duration::from_millis(1);
        sent.note(now, there(), &packet(1), None);
        sent.note(later, there(), &[packet(2), packet(3)].concat(), Some(40));
        let at = |report: &Report| sent.judge(report).sent;
        assert_eq!(at(&report(&packet(1))), Some(now));
        assert_eq!(at(&report(&packet(3))), Some(later));
        assert_eq!(at(&report(&packet(2)[..QUOTED])), Some(later));
        // Too short a quote, another packet, a router's report, and another destination.
        assert_eq!(at(&report(&packet(1)[..QUOTED - 1])), None);
        assert_eq!(at(&report(&packet(4))), None);
        let by_a_router = Report {
            is_from_there: false,
            ..report(&packet(1))
        };
        assert_eq!(at(&by_a_router), None);
        let elsewhere = Report {
            destination: SocketAddr::from(([192, 0, 2, 1], 7001)),
            ..report(&packet(1))
        };
        assert_eq!(at(&elsewhere), None);
        assert_eq!(sent.judge(&by_a_router).destination, Some(there()));
    }

    #[test]
    fn packets_of_a_connection_that_is_being_set_up_prove_nothing() {
        let mut sent = Sent::default();
        let mut first = packet(1);
        first[0] |= LONG_HEADER;
        sent.note(Instant::now(), there(), &first, None);
        assert_eq!(sent.judge(&report(&first)).sent, None);
    }

    #[test]
    fn the_last_packets_of_the_last_destinations_are_remembered() {
        let (mut sent, start) = (Sent::default(), Instant::now());
        for number in 0..1000u32 {
            let port = 1 + u16::try_from(number).expect("small");
            let destination = SocketAddr::from(([192, 0, 2, 1], port));
            let now = start + Duration::from_millis(number.into());
            for copy in 0..200 {
                sent.note(now, destination, &packet(copy), None);
            }
        }
        assert_eq!(sent.packets.len(), MAX_DESTINATIONS);
        assert!(
            sent.packets
                .values()
                .all(|packets| packets.len() == MAX_PACKETS)
        );
        let newest = SocketAddr::from(([192, 0, 2, 1], 1000));
        let of_newest = Report {
            destination: newest,
            ..report(&packet(199))
        };
        assert!(sent.judge(&of_newest).sent.is_some());
    }
}
