//! Paths: how the packets of a link travel from one member to the other.

use std::net::SocketAddr;

use super::id::PeerId;
use super::virtual_address::is_virtual;

/// How the packets of a link travel. The better path is the smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// From socket to socket.
    Direct,
    /// Over the links of a carrier, as datagrams.
    Carried(Carrier),
}

/// A process that forwards the packets of a link between two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A member of the room to which both ends have a direct link: the leader, or another one.
    Member,
}

/// How a linked peer is reached, as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkPath {
    /// From socket to socket.
    Direct,
    /// This member, the leader, carries the packets.
    Leader(PeerId),
    /// This member, which does not lead, carries the packets.
    Member(PeerId),
}

impl LinkPath {
    /// The member that carries the packets to the peer, if one does.
    pub fn carrier(&self) -> Option<&PeerId> {
        match self {
            Self::Direct => None,
            Self::Leader(carrier) | Self::Member(carrier) => Some(carrier),
        }
    }
}

impl Path {
    /// The path that leads to `address`.
    pub fn to(address: SocketAddr) -> Self {
        match is_virtual(address) {
            true => Self::Carried(Carrier::Member),
            false => Self::Direct,
        }
    }

    /// Whether no carrier is needed.
    pub fn is_direct(self) -> bool {
        self == Self::Direct
    }

    /// Whether members linked over this path take part in each other's elections and exchange the room's affairs. Over a link
    /// that a member carries they do not: it ends when that member does, so it would add nothing to a quorum without it.
    pub fn counts_in_elections(self) -> bool {
        match self {
            Self::Direct => true,
            Self::Carried(Carrier::Member) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Fingerprint;
    use crate::virtual_address::virtual_address;

    #[test]
    fn a_direct_path_is_better_and_counts_in_elections() {
        let direct = Path::to("192.0.2.1:4711".parse().expect("an address"));
        let carried = Path::to(virtual_address(Fingerprint([1; 32]), 1));
        assert_eq!(direct, Path::Direct);
        assert_eq!(carried, Path::Carried(Carrier::Member));
        assert!(direct < carried);
        assert!(direct.counts_in_elections() && !carried.counts_in_elections());
    }
}
