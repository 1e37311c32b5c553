//! A voter's knowledge of another one, where a majority of fixed voters elects.

use serde::{Deserialize, Serialize};

use crate::id::{Fingerprint, Incarnation};

/// A voter's memory of another one for as long as the session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVoter {
    /// The key that it showed first. A peer with another key is not that voter.
    pub key: Fingerprint,
    /// The incarnation that showed `writes`.
    pub incarnation: Incarnation,
    /// The largest write counter that it showed; 0 if none yet.
    pub writes: u64,
}

impl KnownVoter {
    /// A voter that is linked for the first time.
    pub(super) fn new(key: Fingerprint, incarnation: Incarnation) -> Self {
        Self {
            key,
            incarnation,
            writes: 0,
        }
    }

    /// The write counter to report to its `linked` incarnation; 0 if that incarnation showed it.
    pub(super) fn remembered_of(&self, linked: Incarnation) -> u64 {
        if linked == self.incarnation {
            0
        } else {
            self.writes
        }
    }

    /// Whether a write counter of its `linked` incarnation is new. A counter of an incarnation that forgot votes means
    /// nothing.
    pub(super) fn learns(&self, linked: Incarnation, writes: u64) -> bool {
        linked == self.incarnation && writes > self.writes
    }

    /// Whether its `linked` incarnation succeeds the one before it: it knows its votes since that write counter, and so
    /// all votes of the earlier one.
    pub(super) fn is_succeeded_by(&self, linked: Incarnation, since: u64) -> bool {
        linked != self.incarnation && since > self.writes
    }
}
