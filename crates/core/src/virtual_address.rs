//! Virtual addresses: addresses of members that packets of this node reach through a tunnel.
//!
//! A virtual address names a member by its key, and in its port a route: one of this process's ways to that member. It is
//! valid only inside the process that uses it. It is never dialled on the real socket and never part of a peer list.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::id::Fingerprint;

/// First half of every virtual address: a prefix of the unique local range (RFC 4193), drawn at random once.
const PREFIX: [u8; 8] = [0xfd, 0x1e, 0x42, 0x09, 0xec, 0xea, 0x3e, 0xef];
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
pub fn virtual_address(key: Fingerprint, route: u16) -> SocketAddr {
    address_of(virtual_id(key), route)
}

/// The virtual address that carries `id` and that route.
pub fn address_of(id: VirtualId, route: u16) -> SocketAddr {
    let mut octets = [0; 16];
    octets[..PREFIX.len()].copy_from_slice(&PREFIX);
    octets[PREFIX.len()..].copy_from_slice(&id);
    SocketAddr::from((Ipv6Addr::from(octets), route))
}

/// The id in `address` if it is a virtual one; the port does not matter.
pub fn id_at(address: SocketAddr) -> Option<VirtualId> {
    let IpAddr::V6(ip) = address.ip() else {
        return None;
    };
    let octets = ip.octets();
    let id = octets.strip_prefix(&PREFIX)?;
    VirtualId::try_from(id).ok()
}

/// Whether `address` is a virtual one.
pub fn is_virtual(address: SocketAddr) -> bool {
    id_at(address).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_address_follows_from_the_key_and_is_recognised() {
        let mut key = Fingerprint([7; 32]);
        let address = virtual_address(key, 1);
        assert_eq!(
            address,
            "[fd1e:4209:ecea:3eef:707:707:707:707]:1"
                .parse()
                .expect("an address")
        );
        assert!(is_virtual(address));
        assert_eq!(id_at(address), Some(virtual_id(key)));
        assert_eq!(address_of(virtual_id(key), 1), address);
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
