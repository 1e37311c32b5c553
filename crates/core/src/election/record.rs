//! The leadership record: one total order over every claim to lead.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::id::{Fingerprint, PeerId};

/// The count of `SetLeader` calls that a claim builds on. Zero without an assigner if there was no call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Epoch {
    /// One more than the largest number that the assigner had seen.
    pub override_seq: u64,
    /// The caller of `SetLeader`; decides between two calls with one number.
    pub assigner: Option<PeerId>,
    /// The key of the assigner: rooms that have not met may use one id twice.
    pub assigner_key: Option<Fingerprint>,
}

/// Epoch and term; every control message carries them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// The override epoch.
    pub epoch: Epoch,
    /// The term inside the epoch.
    pub term: u64,
}

/// A claim to lead, or the bare start of a term without a leader yet.
///
/// Ordered by (override_seq, assigner and its key, term, leader and its key); `assigned` is no part of the order. A
/// node keeps the largest record that it has seen and never goes back, so all nodes that exchange records end at the
/// same one, whatever the order of the messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Record {
    /// Epoch and term.
    pub stamp: Stamp,
    /// The leader of this term; `None` while it is not decided.
    pub leader: Option<PeerId>,
    /// The leader's key, where the strategy also names leaders by key: rooms that have not merged may use one id twice.
    pub leader_key: Option<Fingerprint>,
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
        (&self.stamp, &self.leader, self.leader_key, self.assigned).cmp(&(
            &other.stamp,
            &other.leader,
            other.leader_key,
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
            leader_key: None,
            assigned: false,
        }
    }

    /// The term inside the epoch.
    pub fn term(&self) -> u64 {
        self.stamp.term
    }

    /// Clears `assigned` where the epoch names no assigner, whatever the sender claims (C4.5).
    pub fn clear_assignment_without_assigner(&mut self) {
        self.assigned &= self.stamp.epoch.assigner.is_some();
    }
}
