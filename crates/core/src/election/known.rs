//! What a voter keeps of another one, where a majority of fixed voters elects.

use serde::{Deserialize, Serialize};

use crate::id::{Fingerprint, Incarnation};

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

impl KnownVoter {
    /// One that is linked for the first time.
    pub(super) fn new(key: Fingerprint, incarnation: Incarnation) -> Self {
        Self {
            key,
            incarnation,
            writes: 0,
        }
    }

    /// The write counter that its `linked` incarnation is to hear of; 0 if that is the one which showed it.
    pub(super) fn remembered_of(&self, linked: Incarnation) -> u64 {
        if linked == self.incarnation {
            0
        } else {
            self.writes
        }
    }

    /// Whether a write counter of its `linked` incarnation is news. Of one that forgot votes it means nothing.
    pub(super) fn learns(&self, linked: Incarnation, writes: u64) -> bool {
        linked == self.incarnation && writes > self.writes
    }

    /// Whether its `linked` incarnation, which knows its votes since that write counter, knows all of the one before it and
    /// takes its place.
    pub(super) fn is_succeeded_by(&self, linked: Incarnation, since: u64) -> bool {
        linked != self.incarnation && since > self.writes
    }
}
