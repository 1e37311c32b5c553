//! What a voter of a static quorum keeps on disk: without it, a restarted one could vote twice in a term.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::core::election::known::KnownVoter;
use crate::core::election::record::Record;
use crate::core::id::PeerId;

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
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

impl Saved {
    /// What an incarnation that starts now writes before it sends anything: the state that `previous` incarnations
    /// left.
    pub fn of_next_incarnation(previous: Option<Self>) -> Self {
        match previous {
            None => Self {
                writes: 1,
                record: Record::default(),
                voted_for: None,
                forgotten: None,
                others: BTreeMap::new(),
            },
            Some(previous) => Self {
                writes: previous.writes.saturating_add(1),
                ..previous
            },
        }
    }
}
