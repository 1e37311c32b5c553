//! The leadership record: one total order over every claim to lead.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::id::{Fingerprint, Incarnation, PeerId};

/// The count of `SetLeader` calls that a claim builds on. Zero without an assigner when there was none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Epoch {
    /// One more than the largest that the assigner had seen.
    pub override_seq: u64,
    /// Who called `SetLeader`; decides between two calls of one number.
    pub assigner: Option<PeerId>,
}

/// Epoch and term: what every control message carries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// The override epoch.
    pub epoch: Epoch,
    /// The term inside the epoch.
    pub term: u64,
}

/// A claim to lead, or the bare start of a term without a leader yet.
///
/// Ordered by (override_seq, assigner, term, leader); `assigned` is no part of the order. A node keeps the
/// largest record that it has seen and never goes back, so that all nodes that hear of each other end at
/// the same one, whatever the order of the messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Record {
    /// Epoch and term.
    pub stamp: Stamp,
    /// Who leads in this term; `None` while it is not decided.
    pub leader: Option<PeerId>,
    /// Whether the leader was set by `SetLeader` and not elected.
    pub assigned: bool,
}

impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Record {
    /// `assigned` breaks the tie of two otherwise equal records only so that `Ord` agrees with `Eq`; the
    /// rules never produce such a pair.
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.stamp, &self.leader, self.assigned).cmp(&(
            &other.stamp,
            &other.leader,
            other.assigned,
        ))
    }
}

impl Record {
    /// The bare start of the term of `stamp`.
    pub fn undecided(stamp: Stamp) -> Self {
        Self {
            stamp,
            leader: None,
            assigned: false,
        }
    }

    /// The term inside the epoch.
    pub fn term(&self) -> u64 {
        self.stamp.term
    }

    /// Where the epoch names no assigner nobody was assigned, whatever somebody says (C4.5).
    pub fn disbelieve_assignment_by_nobody(&mut self) {
        self.assigned &= self.stamp.epoch.assigner.is_some();
    }
}

/// What a voter keeps on disk where quorums are static: without it, a restarted one could vote twice in a term.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The incarnation that saved it; the next one is newer, whatever the clock says.
    pub incarnation: Incarnation,
    /// Counts the states that were written: one for each incarnation, and one for each change of record or vote. A
    /// voter that shows a smaller one than another voter remembers lost its file, or has an older copy of it.
    pub writes: u64,
    /// The largest record seen.
    pub record: Record,
    /// Who got the vote of the record's (epoch, term).
    pub voted_for: Option<PeerId>,
    /// While votes may be forgotten that this voter gave up to a write counter: that one, as others remember it.
    pub forgotten: Option<u64>,
    /// What is known of the other voters.
    pub others: BTreeMap<PeerId, KnownVoter>,
}

/// What a voter remembers of another one for as long as the session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVoter {
    /// The key that it showed first. Nobody else is that voter.
    pub key: Fingerprint,
    /// Which incarnation of it showed `writes`.
    pub incarnation: Incarnation,
    /// The largest write counter that it showed; 0 if none yet.
    pub writes: u64,
}

impl Saved {
    /// What the incarnation that starts at `now` writes before it says anything: the state that `previous`
    /// incarnations left, under its own name. The incarnation that it names is newer than theirs.
    pub fn of_next_incarnation(previous: Option<Self>, now: Incarnation) -> Self {
        match previous {
            None => Self {
                incarnation: now,
                writes: 1,
                record: Record::default(),
                voted_for: None,
                forgotten: None,
                others: BTreeMap::new(),
            },
            Some(previous) => Self {
                incarnation: now.after(previous.incarnation),
                writes: previous.writes.saturating_add(1),
                ..previous
            },
        }
    }
}
