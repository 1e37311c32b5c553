//! Sockets of the questions and answers, in IPv4 networks.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use if_addrs::{IfAddr, Ifv4Addr};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;

use crate::fork::{self, ClosedInChildren};
use crate::net::interfaces::is_up;

/// The multicast group of mDNS: switches and access points pass it on where they filter others.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
/// Bytes asked of the system for the buffer of a socket's incoming packets.
const BUFFER_BYTES: usize = 1 << 20;

/// A UDP socket that a forked child closes.
#[derive(Debug)]
pub(crate) struct CardSocket {
    socket: std::net::UdpSocket,
    // After the socket.
    _known: ClosedInChildren,
}

/// A [`CardSocket`] in the runtime of its task.
#[derive(Debug)]
pub(crate) struct LiveSocket {
    socket: UdpSocket,
    // After the socket.
    _known: ClosedInChildren,
}

impl CardSocket {
    /// A socket for questions to the group, beside others on the port.
    pub(crate) fn for_questions(port: u16) -> io::Result<Self> {
        let socket = new()?;
        socket.set_reuse_address(true)?;
        #[cfg(unix)]
        socket.set_reuse_port(true)?;
        Self::bind(socket, Ipv4Addr::UNSPECIFIED, port)
    }

    /// A socket that asks and answers, from any free port.
    pub(crate) fn for_talk(ip: Ipv4Addr) -> io::Result<Self> {
        let socket = new()?;
        // Questions stay in the local network.
        socket.set_multicast_ttl_v4(1)?;
        socket.set_multicast_loop_v4(true)?;
        Self::bind(socket, ip, 0)
    }

    fn bind(socket: Socket, ip: Ipv4Addr, port: u16) -> io::Result<Self> {
        socket.bind(&SocketAddrV4::new(ip, port).into())?;
        let socket = std::net::UdpSocket::from(socket);
        Ok(Self {
            _known: fork::closed_in_children(&socket),
            socket,
        })
    }

    /// The socket for the current runtime.
    pub(crate) fn enliven(self) -> io::Result<LiveSocket> {
        Ok(LiveSocket {
            socket: UdpSocket::from_std(self.socket)?,
            _known: self._known,
        })
    }
}

fn new() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let Err(error) = socket.set_recv_buffer_size(BUFFER_BYTES) {
        tracing::debug!(%error, "the system keeps its own socket buffer size");
    }
    Ok(socket)
}

impl LiveSocket {
    /// Receives questions on these networks from now on.
    pub(crate) fn join(&self, networks: &Networks) {
        for own in networks.own() {
            // Fails for a network that it has joined before.
            let _ = self.socket.join_multicast_v4(GROUP, own);
        }
    }

    /// Sends `packet` to the group in each of these networks.
    pub(crate) fn ask_all(&self, networks: &Networks, port: u16, packet: &[u8]) {
        for own in networks.own() {
            let from = SockRef::from(&self.socket).set_multicast_if_v4(&own);
            let sent = from.and_then(|()| self.send(packet, SocketAddrV4::new(GROUP, port)));
            if let Err(error) = sent {
                tracing::debug!(%own, %error, "rooms in this network are not asked");
            }
        }
    }

    /// Sends `packet`, or loses it: the network may do that, too.
    pub(crate) fn send(&self, packet: &[u8], to: SocketAddrV4) -> io::Result<()> {
        // The runtime would refuse the first packets: it does not know yet that the socket takes some.
        SockRef::from(&self.socket)
            .send_to(packet, &to.into())
            .map(drop)
    }

    /// Receives a packet. Packets longer than the buffer are cut, or lost.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddrV4)> {
        loop {
            if let (len, std::net::SocketAddr::V4(from)) = self.socket.recv_from(buffer).await? {
                return Ok((len, from));
            }
        }
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().map_or(0, |own| own.port())
    }
}

/// The IPv4 networks of this machine.
#[derive(Debug, Default)]
pub(crate) struct Networks(Vec<Ifv4Addr>);

/// Whether this machine has `ip` on that interface; the loopback interface has many addresses that it does not list.
fn leads_to(network: &Ifv4Addr, ip: Ipv4Addr) -> bool {
    network.ip == ip || (network.ip.is_loopback() && ip.is_loopback())
}

impl Networks {
    /// The present ones; of one address, the network of that.
    pub(crate) fn of_this_machine(only: Option<Ipv4Addr>) -> Self {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let networks = interfaces.into_iter().filter(is_up);
        let networks = networks.filter_map(|interface| match interface.addr {
            IfAddr::V4(v4) if only.is_none_or(|ip| leads_to(&v4, ip)) => Some(v4),
            _ => None,
        });
        Self(networks.collect())
    }

    fn own(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.0.iter().map(|network| network.ip)
    }

    /// Whether `ip` is in one of these networks: packets go nowhere else.
    pub(crate) fn have(&self, ip: Ipv4Addr) -> bool {
        let bits = u32::from(ip);
        self.0.iter().any(|network| {
            let (own, mask) = (u32::from(network.ip), u32::from(network.netmask));
            own & mask == bits & mask && ip.is_loopback() == network.ip.is_loopback()
        })
    }

    /// Whether `ip` is an address of this machine.
    pub(crate) fn are_here(&self, ip: Ipv4Addr) -> bool {
        ip.is_loopback() || self.own().any(|own| own == ip)
    }
}
