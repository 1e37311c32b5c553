//! Virtual addresses: addresses of members that packets of this node reach through a tunnel.
//!
//! A virtual address names a member by its key, in its prefix whether members or relays carry the packets, and in its port a
//! route: one of this process's ways to that member. It is valid only inside the process that uses it. It is never dialled on
//! the real socket and never part of a peer list.
//!
//! A third prefix is of addresses behind this node's port at a TURN server. They name no member: each holds the IPv4 address and
//! the port to which the server forwards, and from which it delivers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use super::id::Fingerprint;

/// The kinds of processes that forward the packets of a link between two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CarrierKind {
    /// A relay, which is no member of the room.
    Relay,
    /// A member of the room to which both ends have a direct link.
    Member,
}

/// First half of the virtual addresses behind members: a prefix of the unique local range (RFC 4193), drawn at random once.
const BEHIND_MEMBERS: [u8; 8] = [0xfd, 0x1e, 0x42, 0x09, 0xec, 0xea, 0x3e, 0xef];
/// First half of the virtual addresses behind relays.
const BEHIND_RELAYS: [u8; 8] = [0xfd, 0x1e, 0x42, 0x09, 0xec, 0xea, 0x3e, 0xf0];
/// First half of the virtual addresses behind a TURN server. Zeros and an IPv4 address follow.
const BEHIND_TURN: [u8; 8] = [0xfd, 0x1e, 0x42, 0x09, 0xec, 0xea, 0x3e, 0xf1];
/// Bytes of a key's fingerprint that a virtual address carries.
pub const VIRTUAL_ID_BYTES: usize = 8;

/// The part of a key's fingerprint that its virtual address carries.
///
/// The peer at the other end still has to prove that it holds the whole key, so two keys with an equal part can only
/// get in each other's way.
pub type VirtualId = [u8; VIRTUAL_ID_BYTES];

/// The [`VirtualId`] of a key.
pub fn virtual_id(key: Fingerprint) -> VirtualId {
    let mut id = VirtualId::default();
    id.copy_from_slice(&key.0[..VIRTUAL_ID_BYTES]);
    id
}

/// The virtual address of the holder of `key` over that route. Routes are numbered from 1; 0 is no port.
pub fn virtual_address(carrier: CarrierKind, key: Fingerprint, route: u16) -> SocketAddr {
    address_of(carrier, virtual_id(key), route)
}

/// The virtual address that holds `id` and that route.
pub fn address_of(carrier: CarrierKind, id: VirtualId, route: u16) -> SocketAddr {
    let prefix = match carrier {
        CarrierKind::Member => BEHIND_MEMBERS,
        CarrierKind::Relay => BEHIND_RELAYS,
    };
    let mut octets = [0; 16];
    octets[..prefix.len()].copy_from_slice(&prefix);
    octets[prefix.len()..].copy_from_slice(&id);
    SocketAddr::from((Ipv6Addr::from(octets), route))
}

/// The id in `address` if it is a virtual one; the port does not matter.
pub fn id_at(address: SocketAddr) -> Option<VirtualId> {
    parts(address).map(|(_, id)| id)
}

/// The kind of carriers of packets to `address` if it is a virtual one.
pub fn carried_by(address: SocketAddr) -> Option<CarrierKind> {
    parts(address).map(|(carrier, _)| carrier)
}

/// Whether `address` is a virtual one.
pub fn is_virtual(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if is_behind_turn(ip)) || parts(address).is_some()
}

/// The virtual address of `peer` behind this node's port at a TURN server. `None` for IPv6: the port is one of IPv4.
pub fn through_turn(peer: SocketAddr) -> Option<SocketAddr> {
    let IpAddr::V4(ip) = peer.ip().to_canonical() else {
        return None;
    };
    let mut octets = [0; 16];
    octets[..BEHIND_TURN.len()].copy_from_slice(&BEHIND_TURN);
    octets[12..].copy_from_slice(&ip.octets());
    Some(SocketAddr::from((Ipv6Addr::from(octets), peer.port())))
}

/// The address behind this node's port at a TURN server for which `address` stands.
pub fn behind_turn(address: SocketAddr) -> Option<SocketAddrV4> {
    let IpAddr::V6(ip) = address.ip() else {
        return None;
    };
    let [.., a, b, c, d] = ip.octets();
    is_behind_turn(ip).then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), address.port()))
}

/// The address at which the network knows the process at `address`: the one behind the TURN server, or `address` itself.
pub fn on_the_network(address: SocketAddr) -> SocketAddr {
    behind_turn(address).map_or(address, SocketAddr::V4)
}

fn is_behind_turn(ip: Ipv6Addr) -> bool {
    ip.octets().starts_with(&BEHIND_TURN)
}

fn parts(address: SocketAddr) -> Option<(CarrierKind, VirtualId)> {
    let IpAddr::V6(ip) = address.ip() else {
        return None;
    };
    let octets = ip.octets();
    let (carrier, id) = match octets.strip_prefix(&BEHIND_MEMBERS) {
        Some(id) => (CarrierKind::Member, id),
        None => (CarrierKind::Relay, octets.strip_prefix(&BEHIND_RELAYS)?),
    };
    Some((carrier, VirtualId::try_from(id).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_address_follows_from_the_key_and_is_recognised() {
        let mut key = Fingerprint([7; 32]);
        let virtual_address = |key, route| virtual_address(CarrierKind::Member, key, route);
        let address = virtual_address(key, 1);
        assert_eq!(
            address,
            "[fd1e:4209:ecea:3eef:707:707:707:707]:1"
                .parse()
                .expect("an address")
        );
        assert!(is_virtual(address));
        assert_eq!(id_at(address), Some(virtual_id(key)));
        assert_eq!(address_of(CarrierKind::Member, virtual_id(key), 1), address);
        let relayed = address_of(CarrierKind::Relay, virtual_id(key), 1);
        assert_ne!(relayed, address);
        assert_eq!(id_at(relayed), id_at(address));
        assert_eq!(carried_by(relayed), Some(CarrierKind::Relay));
        assert_eq!(carried_by(address), Some(CarrierKind::Member));
        let other_route = virtual_address(key, 4711);
        assert_eq!(other_route, SocketAddr::new(address.ip(), 4711));
        assert_eq!(id_at(other_route), Some(virtual_id(key)));
        key.0[7] = 8;
        assert_ne!(virtual_address(key, 1), address);
        for real in [
            "127.0.0.1:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "[fd1e:4209:ecea:3eee:707:707:707:707]:1",
            "[fe80::1]:1",
        ] {
            assert!(!is_virtual(real.parse().expect("an address")), "{real}");
        }
    }

    #[test]
    fn an_address_behind_a_turn_server_holds_the_one_on_the_network() {
        let peer: SocketAddr = "203.0.113.7:4711".parse().expect("an address");
        let mapped: SocketAddr = "[::ffff:203.0.113.7]:4711".parse().expect("an address");
        let at = through_turn(peer).expect("of IPv4");
        assert_eq!(at.to_string(), "[fd1e:4209:ecea:3ef1::cb00:7107]:4711");
        assert_eq!(through_turn(mapped), Some(at));
        assert_eq!(behind_turn(at).map(SocketAddr::V4), Some(peer));
        assert_eq!(on_the_network(at), peer);
        assert_eq!(on_the_network(peer), peer);
        assert!(is_virtual(at));
        // It names no member, and packets to it need no carrier.
        assert_eq!((id_at(at), carried_by(at)), (None, None));
        let relayed = address_of(CarrierKind::Relay, [7; 8], 1);
        assert_eq!((behind_turn(relayed), behind_turn(peer)), (None, None));
        let v6 = "[2001:db8::1]:1".parse().expect("an address");
        assert_eq!(through_turn(v6), None);
    }
}
