//! Members in the room, and the last number of each author.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use room_core::id::{Incarnation, PeerId};
use serde::{Deserialize, Serialize};

use super::{item_bytes, sequence};
use crate::ballot::MemberId;
use crate::limits::{MAX_MEMBERS, MAX_ROWS, ROW_LIFETIME_MS};

/// The rows of the authors. A member that is here has one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Members {
    /// The last number of each member in the room; at most one incarnation of a peer.
    #[serde(
        serialize_with = "sequence::write",
        deserialize_with = "sequence::map::<MAX_MEMBERS, _, _, _>"
    )]
    here: BTreeMap<MemberId, u64>,
    /// The longest departed first.
    #[serde(deserialize_with = "sequence::queue::<MAX_ROWS, _, _>")]
    departed: VecDeque<Departed>,
}

/// The row of an author that is not in the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Departed {
    member: MemberId,
    number: u64,
    at_ms: u64,
}

impl Members {
    pub(super) fn is_here(&self, member: &MemberId) -> bool {
        self.here.contains_key(member)
    }

    pub(super) fn is_peer_here(&self, peer: &PeerId) -> bool {
        self.incarnation_here(peer).is_some()
    }

    /// The other incarnation of a member that is in the room.
    pub(super) fn other_incarnation(&self, member: &MemberId) -> Option<&MemberId> {
        self.incarnation_here(&member.peer)
            .filter(|here| *here != member)
    }

    pub(super) fn here(&self) -> impl Iterator<Item = &MemberId> {
        self.here.keys()
    }

    pub(super) fn last_number(&self, author: &MemberId) -> Option<u64> {
        let departed = || self.departed.iter().find(|row| row.member == *author);
        let here = self.here.get(author).copied();
        here.or_else(|| departed().map(|row| row.number))
    }

    /// The last numbers of all authors.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        let departed = self.departed.iter().map(|row| row.number);
        self.here.values().copied().chain(departed)
    }

    /// Lets a member in; its row goes on if it has one. False if it is in the room already, or [`MAX_MEMBERS`] are.
    pub(super) fn arrive(&mut self, member: &MemberId) -> bool {
        if self.is_here(member) || self.here.len() >= MAX_MEMBERS {
            return false;
        }
        let row = self.departed.iter().position(|row| row.member == *member);
        let row = row.and_then(|at| self.departed.remove(at));
        let number = row.map_or(0, |row| row.number);
        self.here.insert(member.clone(), number);
        self.limit_rows();
        true
    }

    /// Moves a member's row from the members in the room to the departed ones.
    pub(super) fn depart(&mut self, member: &MemberId, at_ms: u64) {
        if let Some((member, number)) = self.here.remove_entry(member) {
            self.departed.push_back(Departed {
                member,
                number,
                at_ms,
            });
        }
    }

    /// Raises an author's number. An author without a row gets one, as if it departed now.
    pub(super) fn raise(&mut self, author: &MemberId, number: u64, now_ms: u64) {
        match self.row(author) {
            Some(last) => *last = number.max(*last),
            None => self.add_departed(author, number, now_ms),
        }
    }

    /// Drops the rows of authors that departed [`ROW_LIFETIME_MS`] ago.
    pub(super) fn expire(&mut self, now_ms: u64) {
        while self.departed.front().is_some_and(|row| row.is_over(now_ms)) {
            self.departed.pop_front();
        }
    }

    /// Upper estimate of its memory.
    pub(super) fn bytes(&self) -> usize {
        self.here.len() * item_bytes::<(MemberId, u64)>(1)
            + self.departed.len() * item_bytes::<Departed>(1)
    }

    /// Whether entries up to a time can have led to these rows.
    pub(super) fn is_valid(&self, now_ms: u64) -> bool {
        self.here.len() <= MAX_MEMBERS
            && self.here.len() + self.departed.len() <= MAX_ROWS
            && self.peers_differ()
            && self.rows_differ()
            && self.departed.iter().is_sorted_by_key(|row| row.at_ms)
            && self.departed.iter().all(|row| row.is_kept(now_ms))
    }

    fn incarnation_here(&self, peer: &PeerId) -> Option<&MemberId> {
        let first = MemberId {
            peer: peer.clone(),
            incarnation: Incarnation {
                started_us: 0,
                random: 0,
            },
        };
        let (member, _) = self.here.range(first..).next()?;
        (member.peer == *peer).then_some(member)
    }

    fn row(&mut self, author: &MemberId) -> Option<&mut u64> {
        let mut departed = self.departed.iter_mut();
        match self.here.get_mut(author) {
            None => departed
                .find(|row| row.member == *author)
                .map(|row| &mut row.number),
            here => here,
        }
    }

    fn add_departed(&mut self, author: &MemberId, number: u64, at_ms: u64) {
        self.departed.push_back(Departed {
            member: author.clone(),
            number,
            at_ms,
        });
        self.limit_rows();
    }

    /// Drops the longest departed author's row beyond [`MAX_ROWS`].
    fn limit_rows(&mut self) {
        if self.here.len() + self.departed.len() > MAX_ROWS {
            self.departed.pop_front();
        }
    }

    fn peers_differ(&self) -> bool {
        let next = self.here.keys().skip(1);
        self.here.keys().zip(next).all(|(a, b)| a.peer != b.peer)
    }

    fn rows_differ(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.departed
            .iter()
            .all(|row| !self.is_here(&row.member) && seen.insert(&row.member))
    }
}

impl Departed {
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) >= ROW_LIFETIME_MS
    }

    fn is_kept(&self, now_ms: u64) -> bool {
        self.at_ms <= now_ms && !self.is_over(now_ms)
    }
}
