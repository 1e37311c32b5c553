//! The UDP socket of a room, and the addresses that lead to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use if_addrs::Interface;
use socket2::{Domain, Protocol, Socket, Type};

use super::interfaces::{interfaces, is_up, source_towards};
use crate::core::virtual_address::is_virtual;
use crate::fork;

/// Bytes asked of the system for each of the socket's two buffers; it may give less.
pub(crate) const SOCKET_BUFFER_BYTES: usize = 2 << 20;
/// Addresses that a member announces for itself, at most.
pub(crate) const MAX_OWN_ADDRESSES: usize = crate::core::wire::MAX_PEER_ADDRESSES;
/// Addresses of this machine that the host can list, at most.
pub(crate) const MAX_LISTED_ADDRESSES: usize = 64;

/// Address of the socket: one, or all of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The single address; `None`, or the unspecified address of either family, means all.
    pub(crate) address: Option<IpAddr>,
    /// The UDP port.
    pub(crate) port: u16,
}

impl Bound {
    /// The single address, if there is one.
    fn single(self) -> Option<IpAddr> {
        self.address.filter(|ip| !ip.is_unspecified())
    }

    /// Whether the socket can send to the family of `address`.
    pub(crate) fn reaches(self, address: SocketAddr) -> bool {
        match self.address {
            None | Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)) => true,
            Some(own) => own.is_ipv4() == address.ip().to_canonical().is_ipv4(),
        }
    }

    /// The address at which another peer can dial this machine; loopback only if no other address
    /// exists, or if it is bound.
    pub(crate) fn best_address(self) -> SocketAddr {
        let best = self.addresses().into_iter().next();
        best.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// The addresses at which another peer may dial this machine: at most [`MAX_OWN_ADDRESSES`], best first,
    /// and loopback only if no other address exists, or if it is bound. Never empty.
    pub(crate) fn addresses(self) -> Vec<SocketAddr> {
        let found = match self.single() {
            Some(ip) => vec![ip],
            None => self.every_address().into_iter().map(|own| own.ip).collect(),
        };
        let mut addresses: Vec<_> = found
            .into_iter()
            .map(|ip| SocketAddr::new(ip, self.port))
            .collect();
        addresses.truncate(MAX_OWN_ADDRESSES);
        addresses
    }

    /// The addresses at which another peer may dial this machine, each with the name of its interface:
    /// at most [`MAX_LISTED_ADDRESSES`], best first, and loopback only if no other address exists, or
    /// if it is bound. Never empty.
    pub(crate) fn named_addresses(self) -> Vec<(SocketAddr, String)> {
        let found = match self.single() {
            Some(ip) => {
                let interfaces = interfaces();
                let interface = interfaces.into_iter().find(|own| own.ip() == ip);
                let name = interface.map_or_else(String::new, |own| own.name);
                vec![OwnAddress {
                    ip,
                    name,
                    ..OwnAddress::LOOPBACK
                }]
            }
            None => self.every_address(),
        };
        found
            .into_iter()
            .map(|own| (SocketAddr::new(own.ip, self.port), own.name))
            .collect()
    }

    /// The addresses of all interfaces that are up.
    fn every_address(self) -> Vec<OwnAddress> {
        let found = interfaces()
            .into_iter()
            .filter(is_up)
            .map(OwnAddress::from)
            .filter(|own| self.reaches(SocketAddr::new(own.ip, self.port)))
            .collect();
        best_first(found, source_of_default_route())
    }

    /// Whether `address` leads back to the socket.
    pub(crate) fn is_own(self, address: SocketAddr) -> bool {
        if address.port() != self.port || !self.reaches(address) {
            return false;
        }
        let ip = address.ip().to_canonical();
        match self.single() {
            // Dialling the unspecified address means dialling this machine's loopback address.
            Some(own) => ip == own || (ip.is_unspecified() && own.is_loopback()),
            None => {
                ip.is_loopback()
                    || ip.is_unspecified()
                    || interfaces().iter().any(|own| own.ip() == ip)
            }
        }
    }
}

/// Binds a nonblocking UDP socket to `port` (0: any free one) of `address`. Without an address it binds all
/// interfaces: IPv6 and IPv4, or IPv4 alone where the machine has no IPv6.
///
/// # Errors
/// The system's error, in particular that the port is taken. A taken port never leads to an IPv4-only socket.
pub(crate) fn bind(address: Option<IpAddr>, port: u16) -> io::Result<UdpSocket> {
    match address {
        None => match bind_v6(Ipv6Addr::UNSPECIFIED, port) {
            Err(error) if !is_about_the_port(&error) => {
                tracing::info!(%error, "no IPv6 on this host; using IPv4 alone");
                bind_v4(Ipv4Addr::UNSPECIFIED, port)
            }
            result => result,
        },
        Some(IpAddr::V4(v4)) => bind_v4(v4, port),
        Some(IpAddr::V6(v6)) => bind_v6(v6, port),
    }
}

/// Waits until the system reports that no process receives packets at `address` (ICMP). Waits forever if the
/// system does not or cannot report it: only a tunnel leads to a virtual address.
///
/// quinn's socket belongs to all links and does not receive such errors; a connected socket does. The byte
/// that it sends is no QUIC packet, so a process that listens there ignores it.
pub(crate) async fn refused(address: SocketAddr) {
    if is_virtual(address) {
        return std::future::pending().await; // nothing is ever sent there
    }
    let reported: io::Result<()> = async {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        let _known = fork::closed_in_children(&socket);
        socket.connect(address).await?;
        socket.send(&[0]).await?;
        let mut answer = [0];
        loop {
            socket.recv(&mut answer).await?; // an answer is not a refusal
        }
    }
    .await;
    let is_refusal = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset // the error on Windows
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        )
    };
    if !reported.is_err_and(|error| is_refusal(&error)) {
        std::future::pending::<()>().await;
    }
}

/// quinn shows IPv4 peers of a dual-stack socket in the mapped form. The other direction needs no conversion:
/// `quinn::Endpoint::connect_with` maps an IPv4 address itself when its socket is IPv6.
pub(crate) use crate::core::address::canonical;

/// Binds an IPv6 socket; the unspecified address accepts IPv4 as well.
fn bind_v6(ip: Ipv6Addr, port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_only_v6(!ip.is_unspecified())?;
    finish_bind(socket, SocketAddr::from((ip, port)))
}

fn bind_v4(ip: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    finish_bind(socket, SocketAddr::from((ip, port)))
}

fn finish_bind(socket: Socket, address: SocketAddr) -> io::Result<UdpSocket> {
    if let Err(error) = socket
        .set_send_buffer_size(SOCKET_BUFFER_BYTES)
        .and_then(|()| socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES))
    {
        tracing::debug!(%error, "the system keeps its own socket buffer sizes");
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Whether IPv4 would fail in the same way, or must not be used to get around the error.
fn is_about_the_port(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}

/// An address of an interface of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnAddress {
    ip: IpAddr,
    /// The interface's name.
    name: String,
    /// Whether the interface seems to lead into a tunnel or a virtual machine.
    is_virtual: bool,
}

impl OwnAddress {
    const LOOPBACK: Self = Self {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        name: String::new(),
        is_virtual: false,
    };

    /// Rank by how likely another peer reaches it, the likeliest first; `None` if it cannot.
    fn class(&self) -> Option<u8> {
        if self.ip.is_loopback() || self.ip.is_unspecified() || self.ip.is_multicast() {
            return None;
        }
        match (self.ip, self.is_virtual) {
            (IpAddr::V4(v4), _) if v4.is_link_local() => Some(4),
            // It would need the reader's interface index.
            (IpAddr::V6(v6), _) if v6.is_unicast_link_local() => None,
            (IpAddr::V4(_), false) => Some(0),
            (IpAddr::V6(_), false) => Some(1),
            (IpAddr::V4(_), true) => Some(2),
            (IpAddr::V6(_), true) => Some(3),
        }
    }
}

impl From<Interface> for OwnAddress {
    fn from(interface: Interface) -> Self {
        Self {
            ip: interface.ip(),
            is_virtual: interface.is_p2p() || is_virtual_interface(&interface.name),
            name: interface.name,
        }
    }
}

/// Whether drivers of tunnels, bridges to virtual machines and containers use such names for their
/// interfaces. Some of them look like Ethernet to the system in every other respect.
fn is_virtual_interface(name: &str) -> bool {
    /// Prefixes on Linux and macOS, which number their interfaces.
    const NUMBERED: [&str; 14] = [
        "br-",
        "docker",
        "ham",
        "ipsec",
        "ppp",
        "tailscale",
        "tap",
        "tun",
        "utun",
        "veth",
        "virbr",
        "vmnet",
        "wg",
        "zt",
    ];
    /// Parts of names on Windows, where adapters have titles.
    const TITLED: [&str; 10] = [
        "hamachi",
        "hyper-v",
        "openvpn",
        "radmin",
        "tailscale",
        "vethernet",
        "virtualbox",
        "vmware",
        "wireguard",
        "zerotier",
    ];
    let name = name.to_ascii_lowercase();
    NUMBERED.iter().any(|beginning| name.starts_with(beginning))
        || TITLED.iter().any(|part| name.contains(part))
}

/// Orders by class; within a class the `preferred` one comes first, the others in the order found.
fn best_first(mut found: Vec<OwnAddress>, preferred: Option<IpAddr>) -> Vec<OwnAddress> {
    found.retain(|own| own.class().is_some());
    // The sort is stable: the system's order stays.
    found.sort_by_key(|own| (own.class(), Some(own.ip) != preferred));
    let mut best: Vec<OwnAddress> = Vec::new();
    for own in found {
        if best.len() < MAX_LISTED_ADDRESSES && !best.iter().any(|other| other.ip == own.ip) {
            best.push(own);
        }
    }
    if best.is_empty() {
        best.push(OwnAddress::LOOPBACK);
    }
    best
}

/// The IPv4 source address of the default route: with several interfaces, the address of a bridge or a virtual machine
/// is of no use to other peers.
fn source_of_default_route() -> Option<IpAddr> {
    /// Documentation only (RFC 5737): no route but the default one leads there.
    const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    source_towards(SocketAddr::from((NOWHERE, 9))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::address::is_dialable;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn bound(address: Option<&str>, port: u16) -> Bound {
        Bound {
            address: address.map(ip),
            port,
        }
    }

    /// Waits for a packet on a nonblocking socket.
    fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        socket.set_nonblocking(false).expect("blocking");
        let timeout = std::time::Duration::from_secs(10);
        socket.set_read_timeout(Some(timeout)).expect("timeout");
        let mut buffer = [0; 64];
        let (len, from) = socket.recv_from(&mut buffer).expect("a packet");
        (buffer[..len].to_vec(), from)
    }

    #[test]
    fn one_socket_receives_v4_and_v6_if_the_system_has_it() {
        let socket = bind(None, 0).expect("bound");
        let mut buffer = [0; 1];
        let nothing = socket.recv_from(&mut buffer).expect_err("nothing sent yet");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);

        let port = socket.local_addr().expect("bound").port();
        let v4 = UdpSocket::bind("127.0.0.1:0").expect("IPv4");
        v4.send_to(b"four", ("127.0.0.1", port)).expect("sent");
        let (bytes, from) = receive(&socket);
        assert_eq!(bytes, b"four");
        assert_eq!(canonical(from), v4.local_addr().expect("bound"));

        if let Ok(v6) = UdpSocket::bind("[::1]:0") {
            assert!(socket.local_addr().expect("bound").is_ipv6());
            v6.send_to(b"six", ("::1", port)).expect("sent");
            assert_eq!(receive(&socket).0, b"six");
        }
    }

    #[tokio::test]
    async fn a_port_without_a_listener_is_refused_and_one_with_a_listener_is_not() {
        let listens = bind(None, 0).expect("bound");
        let port = listens.local_addr().expect("bound").port();
        let there = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(200), refused(there));
        assert!(waits.await.is_err());
        drop(listens);
        let limit = std::time::Duration::from_secs(30);
        let reported = tokio::time::timeout(limit, refused(there)).await;
        reported.expect("the system reports it");
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_and_not_an_ipv4_socket() {
        let first = bind(None, 0).expect("bound");
        let port = first.local_addr().expect("bound").port();
        let error = bind(None, port).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_ipv4_socket_works_alone() {
        let socket = bind_v4(Ipv4Addr::UNSPECIFIED, 0).expect("bound");
        assert!(socket.local_addr().expect("bound").is_ipv4());
    }

    /// An interface called `name` with that address.
    fn own(text: &str, name: &str) -> OwnAddress {
        OwnAddress {
            ip: ip(text),
            name: name.to_owned(),
            is_virtual: is_virtual_interface(name),
        }
    }

    fn ordered(found: &[(&str, &str)], preferred: Option<&str>) -> Vec<String> {
        let found = found.iter().map(|(text, name)| own(text, name)).collect();
        let best = best_first(found, preferred.map(ip));
        best.iter().map(|own| own.ip.to_string()).collect()
    }

    #[test]
    fn addresses_are_ordered_by_likely_reach() {
        let found = [
            ("127.0.0.1", "lo"),
            ("::1", "lo"),
            ("fe80::1", "eth0"),
            ("169.254.7.7", "eth1"),
            ("2001:db8::5", "eth0"),
            ("172.17.0.1", "docker0"),
            ("10.0.0.7", "eth1"),
            ("192.168.1.20", "eth0"),
            ("192.168.1.20", "eth0"),
            ("fd00::9", "eth0"),
            ("224.0.0.1", "eth0"),
        ];
        let rest = ["2001:db8::5", "fd00::9", "172.17.0.1", "169.254.7.7"];
        let first = ordered(&found, Some("192.168.1.20"));
        assert_eq!(first, [&["192.168.1.20", "10.0.0.7"], &rest[..]].concat());
        let first = ordered(&found, None);
        assert_eq!(first, [&["10.0.0.7", "192.168.1.20"], &rest[..]].concat());
    }

    #[test]
    fn the_lan_comes_before_a_vpn_with_and_without_a_default_route() {
        for vpn in [
            "tun0",
            "wg0",
            "utun4",
            "zt7nnig3nm",
            "Radmin VPN",
            "Tailscale",
            "vEthernet (WSL)",
        ] {
            let found = [("100.100.1.2", vpn), ("192.168.1.20", "Wi-Fi")];
            for preferred in [None, Some("100.100.1.2")] {
                assert_eq!(
                    ordered(&found, preferred),
                    ["192.168.1.20", "100.100.1.2"],
                    "{vpn}"
                );
            }
        }
        let found = [("100.100.1.2", "tun0")];
        assert_eq!(
            ordered(&found, None),
            ["100.100.1.2"],
            "a VPN is better than loopback"
        );
        for lan in [
            "eth0",
            "enp3s0",
            "wlan0",
            "Ethernet 2",
            "Wi-Fi",
            "en0",
            "bond0",
            "br0",
        ] {
            assert!(!is_virtual_interface(lan), "{lan}");
        }
    }

    #[test]
    fn a_link_local_v4_address_is_better_than_loopback_which_is_better_than_none() {
        let found = [
            ("127.0.0.1", "lo"),
            ("fe80::1", "eth0"),
            ("169.254.7.7", "eth0"),
        ];
        assert_eq!(ordered(&found, None), ["169.254.7.7"]);
        let found = [("::1", "lo"), ("127.0.0.1", "lo"), ("fe80::1", "eth0")];
        assert_eq!(ordered(&found, None), ["127.0.0.1"]);
        assert_eq!(ordered(&[], None), ["127.0.0.1"]);
    }

    #[test]
    fn lists_of_addresses_are_bounded() {
        let many: Vec<_> = (0..1000u32)
            .map(|n| Ipv4Addr::from_bits(0x0A00_0000 + n).to_string())
            .collect();
        let many: Vec<_> = many.iter().map(|text| (text.as_str(), "eth0")).collect();
        assert_eq!(ordered(&many, None).len(), MAX_LISTED_ADDRESSES);
    }

    #[test]
    fn our_own_addresses_can_be_dialled_and_are_recognised() {
        let everywhere = bound(None, 4433);
        let addresses = everywhere.addresses();
        assert!((1..=MAX_OWN_ADDRESSES).contains(&addresses.len()));
        assert_eq!(addresses[0], everywhere.best_address());
        let named = everywhere.named_addresses();
        assert!(
            named
                .iter()
                .map(|(address, _)| *address)
                .take(MAX_OWN_ADDRESSES)
                .eq(addresses.iter().copied())
        );
        for own in addresses {
            assert!(is_dialable(own), "{own}");
            assert!(everywhere.is_own(own), "{own}");
            assert!(!bound(None, 4434).is_own(own), "{own}");
        }
    }

    #[test]
    fn own_addresses_are_seen_in_every_form() {
        for own in [
            "127.0.0.1:4433",
            "127.3.2.1:4433",
            "[::1]:4433",
            "[::ffff:127.0.0.1]:4433",
            "0.0.0.0:4433",
            "[::]:4433",
        ] {
            assert!(bound(None, 4433).is_own(address(own)), "{own}");
        }
        assert!(!bound(None, 4433).is_own(address("127.0.0.1:4434")));
        assert!(!bound(None, 4433).is_own(address("192.0.2.77:4433")));
    }

    #[test]
    fn a_socket_of_one_address_has_that_address_alone() {
        let v4 = bound(Some("127.0.0.2"), 4433);
        assert_eq!(v4.addresses(), [address("127.0.0.2:4433")]);
        let loopback = bound(Some("127.0.0.1"), 4433).named_addresses();
        assert_eq!(loopback, [(address("127.0.0.1:4433"), "lo".to_owned())]);
        assert!(v4.is_own(address("127.0.0.2:4433")));
        assert!(v4.is_own(address("[::ffff:127.0.0.2]:4433")));
        assert!(!v4.is_own(address("127.0.0.1:4433")));
        assert!(!v4.is_own(address("[::1]:4433")));
        assert!(v4.reaches(address("192.0.2.1:1")) && !v4.reaches(address("[::1]:1")));

        let v6 = bound(Some("::1"), 4433);
        assert_eq!(v6.best_address(), address("[::1]:4433"));
        assert!(v6.is_own(address("[::1]:4433")) && v6.is_own(address("[::]:4433")));
        assert!(!v6.reaches(address("127.0.0.1:1")));

        let all_v4 = bound(Some("0.0.0.0"), 4433);
        assert!(all_v4.addresses().iter().all(SocketAddr::is_ipv4));
        assert!(!all_v4.reaches(address("[::1]:1")));
        assert!(bound(Some("::"), 1).reaches(address("127.0.0.1:1")));
    }

    #[test]
    fn a_fixed_address_and_port_are_bound_once() {
        let loopback = Some(ip("127.0.0.1"));
        let first = bind(loopback, 0).expect("bound");
        let own = first.local_addr().expect("bound");
        assert_eq!(own.ip(), ip("127.0.0.1"));
        let error = bind(loopback, own.port()).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let error = bind(Some(ip("192.0.2.1")), 0).expect_err("somebody else's");
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn a_mapped_address_becomes_v4_and_others_stay() {
        assert_eq!(
            canonical(address("[::ffff:192.0.2.1]:7")),
            address("192.0.2.1:7")
        );
        for same in ["192.0.2.1:7", "[2001:db8::1]:7", "[fe80::1%3]:7"] {
            assert_eq!(canonical(address(same)), address(same));
        }
    }
}
