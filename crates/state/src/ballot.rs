//! Names in the log: members, ballots, histories and places.

use room_core::id::{Incarnation, PeerId};
use serde::{Deserialize, Serialize};

/// One process of a member. A process that has started anew is another member: it lacks what the former one held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId {
    /// Its name.
    pub peer: PeerId,
    /// Its process.
    pub incarnation: Incarnation,
}

impl MemberId {
    /// Upper bound of its encoded length, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        24 + self.peer.as_str().len()
    }
}

/// One opening of the log by a leader. Ballots are ordered by number, then by leader; each opening has its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// In a static room the term of the election, else one more than the largest that the leader has seen.
    pub number: u64,
    /// The leader.
    pub leader: MemberId,
}

/// A ballot and the index of one of its entries. Of two logs, the one whose last entry has the higher place is newer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The ballot of the entry.
    pub ballot: Ballot,
    /// Its index, from 1.
    pub index: u64,
}

/// A number that identifies a line of openings. Logs of different histories share no future; below 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct History(pub u64);

impl History {
    /// The first history of a static room.
    pub const STATIC: Self = Self(1);
    /// Histories are below it, so that a script's numbers hold them exactly.
    pub const END: u64 = 1 << 53;
}
