//! Tables off the wire.

use room_core::bounded::Newest;
use serde::Deserialize;
use thiserror::Error;

use super::members::Members;
use super::properties::Properties;
use super::{Tables, sequence};
use crate::ballot::{History, Place};
use crate::entry::Roster;
use crate::limits::{MAX_OPENINGS, MAX_ROSTER};

/// [`Tables`] as they are encoded. Only their collections' lengths are checked.
#[derive(Deserialize)]
pub(super) struct Unchecked {
    last: Option<Place>,
    time_ms: u64,
    history: Option<History>,
    is_exclusive: bool,
    is_used: bool,
    actions: u64,
    #[serde(deserialize_with = "sequence::set::<MAX_ROSTER, _, _>")]
    roster: Roster,
    #[serde(deserialize_with = "sequence::newest")]
    openings: Newest<Place, MAX_OPENINGS>,
    members: Members,
    properties: Properties,
}

/// No log leads to the tables.
#[derive(Debug, Error)]
#[error("no log leads to these tables")]
pub(super) struct Impossible;

impl TryFrom<Unchecked> for Tables {
    type Error = Impossible;

    fn try_from(unchecked: Unchecked) -> Result<Self, Impossible> {
        let tables = Self {
            last: unchecked.last,
            time_ms: unchecked.time_ms,
            history: unchecked.history,
            is_exclusive: unchecked.is_exclusive,
            is_used: unchecked.is_used,
            actions: unchecked.actions,
            roster: unchecked.roster,
            openings: unchecked.openings,
            members: unchecked.members,
            properties: unchecked.properties,
        };
        tables.is_valid().then_some(tables).ok_or(Impossible)
    }
}
