//! Neighbours: the networks on the links of this machine.

use std::net::{IpAddr, Ipv4Addr};

use if_addrs::IfAddr;

/// The networks of this machine's interfaces.
pub(super) struct Prefixes(Vec<Prefix>);

struct Prefix {
    /// The system's index of the interface, where it has one.
    index: Option<u32>,
    own: IpAddr,
    mask: u128,
}

impl Prefixes {
    /// The current networks; none if the system does not list them.
    pub(super) fn of_this_machine() -> Self {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let prefixes = interfaces.into_iter().map(|interface| Prefix {
            index: interface.index,
            own: interface.ip(),
            mask: match &interface.addr {
                IfAddr::V4(v4) => u32::from(v4.netmask).into(),
                IfAddr::V6(v6) => u128::from(v6.netmask),
            },
        });
        Self(prefixes.collect())
    }

    /// Whether `ip` is a host on the link of interface `index`. A loopback address counts on the loopback
    /// interface only: a neighbour must not direct this node to services of this machine. An IPv6 link-local
    /// address never counts: passing it on would need the interface's index.
    pub(super) fn have(&self, index: u32, ip: IpAddr) -> bool {
        if matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            return false;
        }
        let of_interface = |prefix: &&Prefix| prefix.index.is_none_or(|own| own == index);
        self.0
            .iter()
            .filter(of_interface)
            .any(|prefix| prefix.has(ip))
    }
}

impl Prefix {
    fn has(&self, ip: IpAddr) -> bool {
        if ip.is_loopback() || self.own.is_loopback() {
            return ip.is_loopback()
                && self.own.is_loopback()
                && ip.is_ipv4() == self.own.is_ipv4();
        }
        match (self.own, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                let (own, bits) = (u128::from(u32::from(own)), u128::from(u32::from(ip)));
                own & self.mask == bits & self.mask && !self.is_reserved(ip)
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                u128::from(own) & self.mask == u128::from(ip) & self.mask
            }
            _ => false,
        }
    }

    /// Whether `ip` is the network's own or its broadcast address; networks of two hosts have neither (RFC 3021).
    fn is_reserved(&self, ip: Ipv4Addr) -> bool {
        let host_bits = !self.mask & u128::from(u32::MAX);
        let host = u128::from(u32::from(ip)) & host_bits;
        host_bits > 1 && (host == 0 || host == host_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn prefix(index: u32, own: &str, length: u32) -> Prefix {
        let own = ip(own);
        let bits = if own.is_ipv4() { 32 } else { 128 };
        let all = u128::MAX >> (128 - bits);
        let mask = all & !(all.checked_shr(length).unwrap_or_default());
        Prefix {
            index: Some(index),
            own,
            mask,
        }
    }

    fn machine() -> Prefixes {
        Prefixes(vec![
            prefix(1, "127.0.0.1", 8),
            prefix(1, "::1", 128),
            prefix(2, "192.168.1.20", 24),
            prefix(2, "2001:db8:0:1::20", 64),
            prefix(2, "fe80::20", 64),
            prefix(3, "10.0.0.1", 31),
            prefix(3, "169.254.7.7", 16),
        ])
    }

    #[test]
    fn neighbours_are_on_the_link_of_their_packets() {
        let machine = machine();
        for (index, there) in [
            (1, "127.0.0.1"),
            (1, "127.1.2.3"),
            (1, "::1"),
            (2, "192.168.1.1"),
            (2, "192.168.1.254"),
            (2, "2001:db8:0:1:ffff::1"),
            (3, "10.0.0.0"),
            (3, "169.254.1.1"),
        ] {
            assert!(machine.have(index, ip(there)), "{there}");
        }
    }

    #[test]
    fn addresses_elsewhere_are_on_no_link() {
        let machine = machine();
        for (index, elsewhere) in [
            (2, "192.168.2.1"),
            (2, "8.8.8.8"),
            (2, "169.254.169.254"),
            (2, "127.0.0.1"),
            (2, "::1"),
            (3, "192.168.1.1"),
            (1, "192.168.1.1"),
            (2, "192.168.1.255"),
            (2, "192.168.1.0"),
            (2, "2001:db8:0:2::1"),
            (2, "fe80::1"),
            (2, "0.0.0.0"),
            (4, "192.168.1.1"),
        ] {
            assert!(
                !machine.have(index, ip(elsewhere)),
                "{elsewhere} on {index}"
            );
        }
    }

    #[test]
    fn this_machine_has_its_loopback_address() {
        let machine = Prefixes::of_this_machine();
        let loopback = machine.0.iter().find(|prefix| prefix.own.is_loopback());
        if let Some(Prefix { index, .. }) = loopback {
            assert!(machine.have(index.unwrap_or(1), ip("127.0.0.1")));
        }
        assert!(!machine.have(1, ip("192.0.2.1")));
    }
}
