//! Entries of the log, and requests for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use room_core::id::PeerId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::ballot::{Ballot, History, MemberId};
use crate::limits::{
    MAX_ACTION_BYTES, MAX_CHANGES, MAX_CHANGES_BYTES, MAX_KEY_BYTES, MAX_ROSTER, MAX_VALUE_BYTES,
};

/// The members that count for a majority.
pub type Roster = BTreeSet<MemberId>;

/// An entry of the log. Its index is its position, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The ballot under which its leader appended it.
    pub ballot: Ballot,
    /// Milliseconds since the history's first entry, by the clocks of the leaders. Never falls.
    pub time_ms: u64,
    /// Its contents.
    pub contents: Contents,
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contents {
    /// The first entry of a ballot.
    Open {
        /// The history that goes on or begins.
        history: History,
        /// Whether a majority of the roster answered, or this is the room's first opening. Otherwise a fork.
        exclusive: bool,
        /// The members that count from here on.
        roster: Roster,
    },
    /// A member comes, goes, begins to count or ceases to.
    Member {
        /// The member.
        member: MemberId,
        /// Whether it is in the room.
        here: bool,
        /// Whether it counts for a majority.
        counts: bool,
    },
    /// A request of a member.
    Request {
        /// The member.
        author: MemberId,
        /// Its number; an author's numbers rise.
        number: u64,
        /// The request.
        request: Request,
    },
}

/// A host's wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// An action, which the library passes to all hosts.
    Action {
        /// The host's number for the kind of action.
        msg_type: u16,
        /// At most [`MAX_ACTION_BYTES`].
        data: Bytes,
    },
    /// Changes of properties: all of them or none.
    Properties(Vec<PropertyChange>),
}

/// The name of a property: 1 to [`MAX_KEY_BYTES`] bytes of UTF-8 without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// Change of one property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyChange {
    /// The property.
    pub key: Key,
    /// Its value.
    pub value: ValueChange,
    /// Its owner.
    pub owner: OwnerChange,
    /// Takes effect if the property is new, and stays with it.
    pub traits: Traits,
    /// The version that it must have.
    pub expected: Expected,
}

/// Change of a property's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueChange {
    /// Becomes this one: at most [`MAX_VALUE_BYTES`].
    Set(Bytes),
    /// Stays; a new property has an empty one.
    Keep,
    /// The property goes.
    Remove,
}

/// Change of a property's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnerChange {
    /// Stays; a new property has none.
    Keep,
    /// Becomes no member.
    Nobody,
    /// Becomes this member of the room.
    To(PeerId),
}

/// Behaviour of a property that does not change while it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traits {
    /// Only its owner changes it, unless it has none.
    pub owner_only: bool,
    /// Its fate when its owner leaves.
    pub fate: Fate,
}

/// The fate of a property whose owner leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Fate {
    /// It has no owner.
    #[default]
    LosesOwner,
    /// It is removed.
    Dies,
    /// The leader owns it.
    FallsToLeader,
}

/// The version that a property must have for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// Any, or none.
    Any,
    /// The index of the entry that changed it last; 0 if it must not exist.
    Version(u64),
}

/// Reason why a text is no key, or a request no request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// A key's length.
    #[error("the key has {bytes} bytes; 1 to {MAX_KEY_BYTES} are allowed")]
    KeyLength {
        /// Its length.
        bytes: usize,
    },
    /// A key with a control character.
    #[error("the key contains the control character U+{code:04X}; remove it")]
    ControlCharacter {
        /// The character.
        code: u32,
    },
    /// A key twice in a property set.
    #[error("the key {:?} is in the property set twice", .0.as_str())]
    SameKey(Key),
    /// A long action.
    #[error("the action has {bytes} bytes; at most {MAX_ACTION_BYTES} are allowed")]
    Action {
        /// Its length.
        bytes: usize,
    },
    /// A long value.
    #[error(
        "the value of {:?} has {bytes} bytes; at most {MAX_VALUE_BYTES} are allowed",
        .key.as_str()
    )]
    Value {
        /// The property.
        key: Key,
        /// The length of its value.
        bytes: usize,
    },
    /// The number of changes.
    #[error("the property set has {0} changes; 1 to {MAX_CHANGES} are allowed")]
    Changes(usize),
    /// A large property set.
    #[error("the property set has {0} bytes; at most {MAX_CHANGES_BYTES} are allowed")]
    ChangesBytes(usize),
}

impl Key {
    /// Checks `text` and takes it as a key.
    ///
    /// # Errors
    /// [`InvalidRequest`] for its length or a control character.
    pub fn new(text: &str) -> Result<Self, InvalidRequest> {
        if text.is_empty() || text.len() > MAX_KEY_BYTES {
            return Err(InvalidRequest::KeyLength { bytes: text.len() });
        }
        if let Some(c) = text.chars().find(|c| c.is_control()) {
            return Err(InvalidRequest::ControlCharacter { code: c.into() });
        }
        Ok(Self(text.into()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

impl PropertyChange {
    fn bytes(&self) -> usize {
        let value = match &self.value {
            ValueChange::Set(value) => value.len(),
            ValueChange::Keep | ValueChange::Remove => 0,
        };
        let owner = match &self.owner {
            OwnerChange::To(owner) => owner.as_str().len(),
            OwnerChange::Keep | OwnerChange::Nobody => 0,
        };
        self.key.as_str().len() + owner + value
    }
}

impl Request {
    /// Its length as far as limits count it, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Action { data, .. } => data.len(),
            Self::Properties(changes) => changes.iter().map(PropertyChange::bytes).sum(),
        }
    }

    /// Upper bound of its encoded length, in bytes.
    pub(crate) fn encoded_bytes(&self) -> usize {
        let changes = match self {
            Self::Action { .. } => 0,
            Self::Properties(changes) => changes.len(),
        };
        // Lengths, kinds and versions.
        16 + 24 * changes + self.bytes()
    }

    /// Whether it depends on a version that its host has read.
    pub(crate) fn reads(&self) -> bool {
        let reads = |change: &PropertyChange| matches!(change.expected, Expected::Version(version) if version > 0);
        matches!(self, Self::Properties(changes) if changes.iter().any(reads))
    }

    /// Checks the limits of one request.
    ///
    /// # Errors
    /// [`InvalidRequest`] names the limit.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        let changes = match self {
            Self::Action { data, .. } if data.len() > MAX_ACTION_BYTES => {
                return Err(InvalidRequest::Action { bytes: data.len() });
            }
            Self::Action { .. } => return Ok(()),
            Self::Properties(changes) => changes,
        };
        if changes.is_empty() || changes.len() > MAX_CHANGES {
            return Err(InvalidRequest::Changes(changes.len()));
        }
        let mut keys = BTreeSet::new();
        for change in changes {
            if let ValueChange::Set(value) = &change.value
                && value.len() > MAX_VALUE_BYTES
            {
                let (key, bytes) = (change.key.clone(), value.len());
                return Err(InvalidRequest::Value { key, bytes });
            }
            if !keys.insert(&change.key) {
                return Err(InvalidRequest::SameKey(change.key.clone()));
            }
        }
        match self.bytes() {
            bytes if bytes > MAX_CHANGES_BYTES => Err(InvalidRequest::ChangesBytes(bytes)),
            _ => Ok(()),
        }
    }
}

impl Entry {
    /// Upper bound of its encoded length, in bytes. The limits of a log count it.
    pub fn bytes(&self) -> usize {
        let contents = match &self.contents {
            Contents::Open { roster, .. } => 32 + roster.iter().map(MemberId::bytes).sum::<usize>(),
            Contents::Member { member, .. } => 8 + member.bytes(),
            Contents::Request {
                author, request, ..
            } => 16 + author.bytes() + request.encoded_bytes(),
        };
        // The ballot's number and the time.
        24 + self.ballot.leader.bytes() + contents
    }

    /// Whether a leader may append it.
    pub(crate) fn is_valid(&self) -> bool {
        match &self.contents {
            Contents::Open {
                history, roster, ..
            } => history.0 < History::END && (1..=MAX_ROSTER).contains(&roster.len()),
            Contents::Member { .. } => true,
            Contents::Request { request, .. } => request.check().is_ok(),
        }
    }
}
