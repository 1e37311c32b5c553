//! Paths: how the packets of a link travel from one member to the other.

use std::fmt;
use std::net::SocketAddr;

use super::id::PeerId;
use super::virtual_address::carried_by;

pub use super::virtual_address::CarrierKind;

/// Most relays of one member.
pub const MAX_RELAYS: usize = 2;
/// Most members of one room at one relay.
pub const MAX_AT_RELAY: usize = 64;

/// How the packets of a link travel. The better path is the smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// From socket to socket.
    Direct,
    /// Over the links of a carrier, as datagrams.
    Carried(CarrierKind),
}

/// Number of a relay in this member's options, from 0, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayNumber(pub u8);

impl fmt::Display for RelayNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relay {}", self.0)
    }
}

/// A process that forwards the packets of a link between two members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A relay of this number.
    Relay(RelayNumber),
    /// A member of this id.
    Member(PeerId),
}

impl Carrier {
    /// Its kind.
    pub fn kind(&self) -> CarrierKind {
        match self {
            Self::Relay(_) => CarrierKind::Relay,
            Self::Member(_) => CarrierKind::Member,
        }
    }

    /// The member, unless it is a relay.
    pub fn member(&self) -> Option<&PeerId> {
        match self {
            Self::Relay(_) => None,
            Self::Member(member) => Some(member),
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay(relay) => relay.fmt(f),
            Self::Member(member) => member.fmt(f),
        }
    }
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
    /// This relay carries the packets.
    Relay(RelayNumber),
    /// From socket to socket, and at this end through a TURN server.
    Turn,
}

impl LinkPath {
    /// The member that carries the packets to the peer, if one does.
    pub fn carrier(&self) -> Option<&PeerId> {
        match self {
            Self::Direct | Self::Relay(_) | Self::Turn => None,
            Self::Leader(carrier) | Self::Member(carrier) => Some(carrier),
        }
    }
}

impl Path {
    /// The path that leads to `address`. One through this node's port at a TURN server is direct: the other end does not notice
    /// it, and the room uses it alike.
    pub fn to(address: SocketAddr) -> Self {
        carried_by(address).map_or(Self::Direct, Self::Carried)
    }

    /// Whether no carrier is needed.
    pub fn is_direct(self) -> bool {
        self == Self::Direct
    }

    /// Whether members linked over this path take part in each other's elections and exchange the room's affairs. Over a link
    /// that a member carries they do not: it ends when that member does, so it would add nothing to a quorum without it. A
    /// relay is no member, and may be the only thing that all members reach.
    pub fn counts_in_elections(self) -> bool {
        match self {
            Self::Direct | Self::Carried(CarrierKind::Relay) => true,
            Self::Carried(CarrierKind::Member) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Fingerprint;
    use crate::virtual_address::virtual_address;

    #[test]
    fn a_direct_path_is_better_than_a_relay_and_a_relay_better_than_a_member() {
        let direct = Path::to("192.0.2.1:4711".parse().expect("an address"));
        let carried = |kind| Path::to(virtual_address(kind, Fingerprint([1; 32]), 1));
        let (relayed, member) = (carried(CarrierKind::Relay), carried(CarrierKind::Member));
        assert_eq!(direct, Path::Direct);
        assert_eq!(relayed, Path::Carried(CarrierKind::Relay));
        assert_eq!(member, Path::Carried(CarrierKind::Member));
        assert!(direct < relayed && relayed < member);
        assert!(direct.counts_in_elections() && relayed.counts_in_elections());
        assert!(!member.counts_in_elections());
    }
}
