//! Virtual addresses: addresses of members that packets of this node reach through a tunnel.
//!
//! A virtual address names a member by its key, in its prefix whether members or relays carry the packets, and in its port a
//! route: one of this process's ways to that member. It is valid only inside the process that uses it. It is never dialled on
//! the real socket and never part of a peer list.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

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
    parts(address).is_some()
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
}
