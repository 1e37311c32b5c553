//! What carries the packets of a link.

use room_core::path::{CarrierKind, Path};

use super::Link;

/// A carrier of one end's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The member in that place.
    Place(usize),
    /// The relay of that number.
    Relay(u8),
}

impl Via {
    pub(crate) fn kind(self) -> CarrierKind {
        match self {
            Self::Place(_) => CarrierKind::Member,
            Self::Relay(_) => CarrierKind::Relay,
        }
    }
}

/// The carriers of a link. Their kind stays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carried {
    pub(super) kind: CarrierKind,
    pub(super) of_ends: [Option<Via>; 2],
}

impl Carried {
    /// A new link: the acceptor answers the way that the dialler's packets came.
    pub(super) fn over(via: Via) -> Self {
        Self {
            kind: via.kind(),
            of_ends: [Some(via); 2],
        }
    }
}

impl Link {
    pub(super) fn path(&self) -> Path {
        let carried = self.carriers.as_ref();
        carried.map_or(Path::Direct, |carried| Path::Carried(carried.kind))
    }
}

pub(super) fn path_over(over: Option<Via>) -> Path {
    over.map_or(Path::Direct, |via| Path::Carried(via.kind()))
}
