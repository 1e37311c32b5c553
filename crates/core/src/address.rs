//! Kinds of addresses: which ones can be dialled, and by which machines.

use std::net::{IpAddr, SocketAddr};

use super::virtual_address::is_virtual;

/// `address`, an IPv4-mapped IPv6 address as IPv4.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::from((v4, address.port())),
        IpAddr::V6(_) => address,
    }
}

/// The IP address of `address`, an IPv4-mapped one as IPv4.
pub(super) fn ip_of(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

/// Whether `address` can belong to one peer: no port 0, no unspecified, multicast, broadcast or virtual address, and no
/// link-local IPv6 address without its zone. Zones belong to one machine and are not sent.
pub fn is_dialable(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let lacks_zone = matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0);
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    address.port() != 0
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && !broadcast
        && !lacks_zone
        && !is_virtual(address)
}

/// Whether an address is one of the internet: not private, of a carrier's network, of this machine or of its link.
pub fn is_global(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_of_a_carrier = a == 100 && (64..128).contains(&b); // RFC 6598
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || is_of_a_carrier)
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

/// Whether an address means another machine for each that dials it.
pub fn is_of_one_machine(address: SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_one_peer_can_be_dialled() {
        for good in [
            "192.0.2.1:1",
            "127.0.0.1:1",
            "[2001:db8::1]:65535",
            "[::1]:1",
            "[fe80::1%3]:1",
        ] {
            assert!(is_dialable(address(good)), "{good}");
        }
        for bad in [
            "192.0.2.1:0",
            "0.0.0.0:1",
            "[::]:1",
            "224.0.0.251:1",
            "[ff02::1]:1",
            "255.255.255.255:1",
            "[::ffff:255.255.255.255]:1",
            "[::ffff:224.0.0.251]:1",
            "[::ffff:0.0.0.0]:1",
            "[fd1e:4209:ecea:3eef::7]:1",
            "[fe80::1]:1",
        ] {
            assert!(!is_dialable(address(bad)), "{bad}");
        }
    }
}
