//! The one UDP socket, and which addresses lead to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use if_addrs::{IfOperStatus, Interface};
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes asked of the system for each of the socket's two buffers; it may give less.
pub(crate) const SOCKET_BUFFER_BYTES: usize = 2 << 20;
/// Most addresses that a member says it may be reached at.
pub(crate) const MAX_OWN_ADDRESSES: usize = crate::core::wire::MAX_PEER_ADDRESSES;

/// A nonblocking UDP socket on `port` (0: any free one) of all interfaces: IPv6 and IPv4, or IPv4 alone
/// where the host has no IPv6.
///
/// # Errors
/// What the system says, in particular that the port is taken. A port that is taken is never answered
/// with an IPv4 socket.
pub(crate) fn bind(port: u16) -> io::Result<UdpSocket> {
    match bind_dual_stack(port) {
        Err(error) if !is_about_the_port(&error) => {
            tracing::info!(%error, "no IPv6 on this host; using IPv4 alone");
            bind_v4(port)
        }
        result => result,
    }
}

/// The address at which another peer can dial `port` of this host; loopback only when nothing else exists.
pub(crate) fn best_local_address(port: u16) -> SocketAddr {
    let best = own_addresses(port).into_iter().next();
    best.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The addresses at which another peer may dial `port` of this host: at most [`MAX_OWN_ADDRESSES`], best
/// first, and loopback only when nothing else exists. Never empty.
pub(crate) fn own_addresses(port: u16) -> Vec<SocketAddr> {
    let found = interfaces()
        .into_iter()
        .filter(|interface| {
            !matches!(
                interface.oper_status,
                IfOperStatus::Down | IfOperStatus::NotPresent | IfOperStatus::LowerLayerDown
            )
        })
        .map(|interface| interface.ip())
        .collect();
    best_first(found, source_of_default_route())
        .into_iter()
        .map(|ip| SocketAddr::new(ip, port))
        .collect()
}

/// Whether `address` leads back to the socket that this process has bound to `port`.
pub(crate) fn is_own(address: SocketAddr, port: u16) -> bool {
    if address.port() != port {
        return false;
    }
    let ip = address.ip().to_canonical();
    // To dial "any address" is to dial this host.
    ip.is_loopback() || ip.is_unspecified() || interfaces().iter().any(|own| own.ip() == ip)
}

/// Waits until the system reports that nothing takes packets at `address` (ICMP), and for ever where it does
/// not.
///
/// quinn's socket belongs to all links and is not told such things; a connected one is. The byte that it
/// sends is no QUIC packet, so that whoever listens there ignores it.
pub(crate) async fn refused(address: SocketAddr) {
    let told: io::Result<()> = async {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = tokio::net::UdpSocket::bind((any, 0)).await?;
        socket.connect(address).await?;
        socket.send(&[0]).await?;
        let mut answer = [0];
        loop {
            socket.recv(&mut answer).await?; // whatever answers, it does not refuse
        }
    }
    .await;
    let is_refusal = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset // so Windows calls it
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        )
    };
    if !told.is_err_and(|error| is_refusal(&error)) {
        std::future::pending::<()>().await;
    }
}

/// `address` with an IPv4-mapped IPv6 address as the IPv4 address that it is.
///
/// quinn shows IPv4 peers of a dual-stack socket in the mapped form. The other direction needs nothing:
/// `quinn::Endpoint::connect_with` maps an IPv4 address itself when its socket is IPv6.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::from((v4, address.port())),
        IpAddr::V6(_) => address,
    }
}

fn bind_dual_stack(port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_only_v6(false)?;
    finish_bind(socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
}

fn bind_v4(port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    finish_bind(socket, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
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

/// Whether IPv4 would meet the same refusal, or must not be used to get around it.
fn is_about_the_port(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}

fn interfaces() -> Vec<Interface> {
    if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the network interfaces");
        Vec::new()
    })
}

/// Orders by class, within a class the one `preferred` first, else as found.
fn best_first(mut found: Vec<IpAddr>, preferred: Option<IpAddr>) -> Vec<IpAddr> {
    found.retain(|ip| class(*ip).is_some());
    // The sort is stable: what the system listed first stays first.
    found.sort_by_key(|ip| (class(*ip), Some(*ip) != preferred));
    let mut best: Vec<IpAddr> = Vec::new();
    for ip in found {
        if best.len() < MAX_OWN_ADDRESSES && !best.contains(&ip) {
            best.push(ip);
        }
    }
    if best.is_empty() {
        best.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    best
}

/// How likely another peer reaches `ip`, the likeliest first; `None` when it cannot.
fn class(ip: IpAddr) -> Option<u8> {
    if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() {
        return None;
    }
    match ip {
        IpAddr::V4(v4) if v4.is_link_local() => Some(2),
        IpAddr::V4(_) => Some(0),
        // It would need the reader's interface number.
        IpAddr::V6(v6) if v6.is_unicast_link_local() => None,
        IpAddr::V6(_) => Some(1),
    }
}

/// The IPv4 address from which this host would talk to the internet, as the system's routes have it: of
/// several, that of a bridge or a virtual machine is of no use to others. Connecting a UDP socket sends
/// nothing.
fn source_of_default_route() -> Option<IpAddr> {
    /// Documentation only (RFC 5737): no route but the default one leads there.
    const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((NOWHERE, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::introductions::is_dialable;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
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
    fn one_socket_hears_v4_and_where_there_is_v6_also_v6() {
        let socket = bind(0).expect("bound");
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
    async fn a_port_where_nobody_listens_is_refused_and_one_where_somebody_does_is_not() {
        let listens = bind(0).expect("bound");
        let port = listens.local_addr().expect("bound").port();
        let there = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(200), refused(there));
        assert!(waits.await.is_err());
        drop(listens);
        let limit = std::time::Duration::from_secs(30);
        let told = tokio::time::timeout(limit, refused(there)).await;
        told.expect("the system tells");
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_and_not_an_ipv4_socket() {
        let first = bind(0).expect("bound");
        let port = first.local_addr().expect("bound").port();
        let error = bind(port).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_ipv4_socket_works_alone() {
        let socket = bind_v4(0).expect("bound");
        assert!(socket.local_addr().expect("bound").is_ipv4());
    }

    #[test]
    fn addresses_are_ordered_by_who_can_reach_them_and_at_most_four() {
        let found = [
            "127.0.0.1",
            "::1",
            "fe80::1",
            "169.254.7.7",
            "2001:db8::5",
            "172.17.0.1",
            "192.168.1.20",
            "192.168.1.20",
            "fd00::9",
            "224.0.0.1",
        ];
        let found: Vec<IpAddr> = found.iter().map(|text| ip(text)).collect();
        let expected = ["192.168.1.20", "172.17.0.1", "2001:db8::5", "fd00::9"].map(ip);
        assert_eq!(
            best_first(found.clone(), Some(ip("192.168.1.20"))),
            expected
        );
        let expected = ["172.17.0.1", "192.168.1.20", "2001:db8::5", "fd00::9"].map(ip);
        assert_eq!(best_first(found, None), expected);
    }

    #[test]
    fn a_link_local_v4_address_is_better_than_loopback_which_is_better_than_none() {
        let found = vec![ip("127.0.0.1"), ip("fe80::1"), ip("169.254.7.7")];
        assert_eq!(best_first(found, None), [ip("169.254.7.7")]);
        let found = vec![ip("::1"), ip("127.0.0.1"), ip("fe80::1")];
        assert_eq!(best_first(found, None), [ip("127.0.0.1")]);
        assert_eq!(best_first(Vec::new(), None), [ip("127.0.0.1")]);
    }

    #[test]
    fn what_we_say_about_ourselves_can_be_dialled_and_is_recognised() {
        let addresses = own_addresses(4433);
        assert!((1..=MAX_OWN_ADDRESSES).contains(&addresses.len()));
        assert_eq!(addresses[0], best_local_address(4433));
        for own in addresses {
            assert!(is_dialable(own), "{own}");
            assert!(is_own(own, 4433), "{own}");
            assert!(!is_own(own, 4434), "{own}");
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
            assert!(is_own(address(own), 4433), "{own}");
        }
        assert!(!is_own(address("127.0.0.1:4434"), 4433));
        assert!(!is_own(address("192.0.2.77:4433"), 4433));
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
