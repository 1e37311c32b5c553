//! The state that a voter of a static quorum stores on disk: without it a restarted voter could vote twice in a term.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::election::known::KnownVoter;
use crate::election::record::Record;
use crate::id::PeerId;

/// The stored state of a voter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Counts the states that were written: one for each incarnation, and one for each change of record or vote. A
    /// voter lost its file, or has an older copy of it, if it shows a smaller number than another voter remembers.
    pub writes: u64,
    /// The largest record seen. The file names voters by their ids: the roster has the keys.
    #[serde(with = "by_ids")]
    pub record: Record,
    /// The candidate that got the vote of the record's (epoch, term).
    pub voted_for: Option<PeerId>,
    /// The write counter, as others remember it, up to which this voter may have forgotten votes; `None` if it knows
    /// all its votes.
    pub forgotten: Option<u64>,
    /// Knowledge about the other voters.
    pub others: BTreeMap<PeerId, KnownVoter>,
}

impl Saved {
    /// The state that a starting incarnation writes before it sends anything; `previous` is the state of the
    /// incarnation before it.
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

/// A record in the format of state files: without the keys.
mod by_ids {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::election::record::{Epoch, Record, Stamp};
    use crate::id::PeerId;

    type Kept<'a> = (u64, Option<&'a PeerId>, u64, Option<&'a PeerId>, bool);

    pub(super) fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
        let Stamp { epoch, term } = &record.stamp;
        let (assigner, leader) = (epoch.assigner.as_ref(), record.leader.as_ref());
        let kept: Kept<'_> = (epoch.override_seq, assigner, *term, leader, record.assigned);
        kept.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Record, D::Error> {
        let (override_seq, assigner, term, leader, assigned) = Deserialize::deserialize(from)?;
        let epoch = Epoch {
            override_seq,
            assigner,
            assigner_key: None,
        };
        Ok(Record {
            stamp: Stamp { epoch, term },
            leader,
            leader_key: None,
            assigned,
        })
    }
}
