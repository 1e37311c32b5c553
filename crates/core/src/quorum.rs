//! The voters that count for a majority: the connected members, or a list that is fixed for the session.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::id::{Fingerprint, IdError, PeerId};

/// Most voters of a [`Roster`].
pub const MAX_ROSTER_VOTERS: usize = 64;

/// The set of voters that count for a majority.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Quorum {
    /// The eligible peers that are connected when a campaign starts.
    #[default]
    Dynamic,
    /// The voters of this list, connected or not.
    Static(Roster),
}

impl Quorum {
    /// A static quorum of the peers with these names.
    #[cfg(any(test, feature = "laboratory"))]
    pub fn of(names: &[&str]) -> Self {
        let voters = names
            .iter()
            .map(|name| (PeerId::new(name).expect("a valid name"), None));
        Self::Static(Roster::new(voters).expect("1 to 64 names"))
    }

    /// The roster of a static quorum.
    pub fn roster(&self) -> Option<&Roster> {
        match self {
            Self::Dynamic => None,
            Self::Static(roster) => Some(roster),
        }
    }

    /// Whether the voters are a fixed list.
    pub fn is_static(&self) -> bool {
        self.roster().is_some()
    }

    /// Whether `peer`, which claims to be eligible, counts.
    pub fn admits(&self, peer: &PeerId) -> bool {
        self.roster().is_none_or(|roster| roster.contains(peer))
    }

    /// Votes that a campaign needs among `electorate` voters, the candidate included.
    pub fn votes_needed(&self, electorate: usize) -> usize {
        match self {
            Self::Dynamic => majority_threshold(electorate),
            Self::Static(roster) => roster.majority(),
        }
    }

    /// The part of a Hello that describes it.
    pub fn policy(&self) -> QuorumPolicy {
        match self {
            Self::Dynamic => QuorumPolicy::Dynamic,
            Self::Static(roster) => QuorumPolicy::Static {
                voters: u32::try_from(roster.len()).unwrap_or(u32::MAX),
                roster: roster.digest(),
            },
        }
    }
}

/// [`Quorum`] as a Hello describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum QuorumPolicy {
    /// The peers that are connected when a campaign starts.
    #[default]
    Dynamic,
    /// A fixed list of voters, connected or not. A majority of them elects, so that a partitioned room has one leader
    /// at most.
    Static {
        /// Number of voters.
        voters: u32,
        /// Digest of the list; all members need equal lists.
        roster: RosterDigest,
    },
}

/// The voters of a static quorum: 1 to [`MAX_ROSTER_VOTERS`] peers, each with its key if that is fixed in advance. The
/// list never changes within a session; clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Roster(Arc<BTreeMap<PeerId, Option<Fingerprint>>>);

impl Roster {
    /// A roster of these voters.
    ///
    /// # Errors
    /// [`RosterError`] for an empty list, too many voters, or a duplicate.
    pub fn new(
        voters: impl IntoIterator<Item = (PeerId, Option<Fingerprint>)>,
    ) -> Result<Self, RosterError> {
        let mut list = BTreeMap::new();
        for (voter, key) in voters {
            if list.insert(voter.clone(), key).is_some() {
                return Err(RosterError::Twice { voter });
            }
        }
        match list.len() {
            0 => Err(RosterError::Empty),
            1..=MAX_ROSTER_VOTERS => Ok(Self(Arc::new(list))),
            voters => Err(RosterError::TooMany { voters }),
        }
    }

    /// Parses a list with one voter per line: its id, and optionally a blank and the fingerprint of its key (64
    /// hexadecimal digits). Blanks around a line and empty lines are ignored.
    ///
    /// # Errors
    /// [`RosterError`] with the number of the wrong line, counted from 1.
    pub fn parse(text: &str) -> Result<Self, RosterError> {
        let lines = text.lines().zip(1..);
        let lines = lines.map(|(line, number)| (line.trim(), number));
        let voters = lines.filter(|(line, _)| !line.is_empty());
        let voters: Result<Vec<_>, _> = voters
            .map(|(line, number)| parse_line(line, number))
            .collect();
        Self::new(voters?)
    }

    /// Whether `peer` is on the list.
    pub fn contains(&self, peer: &PeerId) -> bool {
        self.0.contains_key(peer)
    }

    /// The key that the roster fixes for `voter`.
    pub fn key_of(&self, voter: &PeerId) -> Option<Fingerprint> {
        self.0.get(voter).copied().flatten()
    }

    /// The voters, sorted by id.
    pub fn voters(&self) -> impl ExactSizeIterator<Item = &PeerId> {
        self.0.keys()
    }

    /// The voters as an electorate.
    pub fn electorate(&self) -> BTreeSet<PeerId> {
        self.0.keys().cloned().collect()
    }

    /// Number of voters; at least one.
    #[allow(clippy::len_without_is_empty)] // the roster is never empty
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of voters that are a majority.
    pub fn majority(&self) -> usize {
        self.len() / 2 + 1
    }

    /// A digest that is equal for equal lists, regardless of the order of their lines.
    pub fn digest(&self) -> RosterDigest {
        let mut hash = Sha256::new();
        for (voter, key) in self.0.iter() {
            let id = voter.as_str();
            hash.update((id.len() as u64).to_le_bytes());
            hash.update(id);
            match key {
                None => hash.update([0]),
                Some(key) => {
                    hash.update([1]);
                    hash.update(key.0);
                }
            }
        }
        RosterDigest(hash.finalize().into())
    }

    /// The list as [`Roster::parse`] reads it.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (voter, key) in self.0.iter() {
            text.push_str(voter.as_str());
            if let Some(key) = key {
                text.push(' ');
                text.extend(key.0.iter().map(|byte| format!("{byte:02x}")));
            }
            text.push('\n');
        }
        text
    }
}

/// Votes that make a majority of `total_nodes` nodes, self included.
///
/// Two nodes need one vote only, so that the survivor of a pair can lead.
pub fn majority_threshold(total_nodes: usize) -> usize {
    if total_nodes <= 2 {
        1
    } else {
        total_nodes / 2 + 1
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The part of a roster that two members compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RosterDigest(pub [u8; 32]);

impl fmt::Debug for RosterDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..8] {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("..")
    }
}

/// Reason why a list is not a roster.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RosterError {
    /// It names no voter.
    #[error("it names no voter; give 1 to {MAX_ROSTER_VOTERS}, one per line")]
    Empty,
    /// It names too many voters.
    #[error("it names {voters} voters; at most {MAX_ROSTER_VOTERS} are allowed")]
    TooMany {
        /// Number of voters.
        voters: usize,
    },
    /// It names a voter twice.
    #[error("it names \"{voter}\" twice")]
    Twice {
        /// The voter.
        voter: PeerId,
    },
    /// A line does not begin with a peer id.
    #[error("line {line} is not a peer id: {source}")]
    Id {
        /// The line, counted from 1.
        line: usize,
        /// The error in the id.
        source: IdError,
    },
}

fn parse_line(line: &str, number: usize) -> Result<(PeerId, Option<Fingerprint>), RosterError> {
    // No id is long enough to end with a blank and a fingerprint.
    let (id, key) = match line.rsplit_once(char::is_whitespace) {
        Some((id, digits)) => match Fingerprint::parse(digits) {
            Some(key) => (id.trim_end(), Some(key)),
            None => (line, None),
        },
        None => (line, None),
    };
    let id = PeerId::new(id).map_err(|source| RosterError::Id {
        line: number,
        source,
    })?;
    Ok((id, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("a valid name")
    }

    fn named(names: &[&str]) -> Roster {
        Roster::new(names.iter().map(|name| (id(name), None))).expect("a roster")
    }

    #[test]
    fn a_list_is_read_line_by_line_in_any_order() {
        let key = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
        let text = format!("b\r\n\n  琪露诺 ⑨ {key}\n a \n");
        let roster = Roster::parse(&text).expect("a roster");
        let voters: Vec<_> = roster.voters().map(PeerId::as_str).collect();
        assert_eq!(voters, ["a", "b", "琪露诺 ⑨"]);
        assert_eq!(roster.key_of(&id("a")), None);
        let key = roster.key_of(&id("琪露诺 ⑨")).expect("a key");
        assert_eq!((key.0[0], key.0[8], key.0[31]), (0x01, 0xab, 0x89));
        assert_eq!(
            Roster::parse(&roster.to_text()).expect("its own text"),
            roster
        );
        // An id may look like a fingerprint.
        let digits = "f".repeat(64);
        let roster = Roster::parse(&digits).expect("an id");
        assert!(roster.contains(&id(&digits)));
    }

    #[test]
    fn the_error_names_the_fault_in_a_list() {
        let many: Vec<String> = (0..65).map(|number| format!("p{number}\n")).collect();
        for (text, states) in [
            ("", "names no voter"),
            ("\n \r\n", "names no voter"),
            (&many.concat(), "names 65 voters; at most 64"),
            ("a\nb\na", "names \"a\" twice"),
            (
                "a\n\nb\u{7}",
                "line 3 is not a peer id: it contains the control",
            ),
            // A fingerprint that is one digit short makes the id too long.
            (
                &format!("a {}", "0".repeat(63)),
                "line 1 is not a peer id: it has 65",
            ),
        ] {
            let error = Roster::parse(text).expect_err(text).to_string();
            assert!(error.contains(states), "{error}");
        }
        assert_eq!(Roster::parse(&many[..64].concat()).expect("64").len(), 64);
    }

    #[test]
    fn equal_lists_have_one_digest_and_others_have_others() {
        let key = Some(Fingerprint([7; 32]));
        let keyed = Roster::new([(id("a"), key), (id("b"), None)]).expect("a roster");
        let lists = [
            named(&["a", "b"]),
            named(&["a"]),
            named(&["ab"]),
            named(&["a", "b", "c"]),
            keyed,
        ];
        for (index, one) in lists.iter().enumerate() {
            for (other_index, other) in lists.iter().enumerate() {
                let same = index == other_index;
                assert_eq!(one.digest() == other.digest(), same, "{one:?} {other:?}");
            }
        }
        assert_eq!(named(&["b", "a"]).digest(), lists[0].digest());
    }

    #[test]
    fn a_majority_of_two_is_both_where_the_voters_are_fixed() {
        let sizes = [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)];
        for (voters, majority) in sizes {
            let names: Vec<String> = (0..voters).map(|number| format!("p{number}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let quorum = Quorum::of(&names);
            assert_eq!(quorum.votes_needed(1), majority, "{voters} voters");
        }
        assert_eq!(Quorum::Dynamic.votes_needed(2), 1);
    }

    #[test]
    fn a_hello_carries_the_number_and_ids_of_the_voters() {
        assert_eq!(Quorum::Dynamic.policy(), QuorumPolicy::Dynamic);
        let expected = QuorumPolicy::Static {
            voters: 3,
            roster: named(&["a", "b", "c"]).digest(),
        };
        assert_eq!(Quorum::of(&["a", "b", "c"]).policy(), expected);
    }

    #[test]
    fn logs_name_the_voters_and_the_begin_of_a_digest() {
        assert_eq!(format!("{:?}", named(&["b", "a"])), r#"{"a", "b"}"#);
        let digest = RosterDigest([0x0f; 32]);
        assert_eq!(format!("{digest:?}"), "0f0f0f0f0f0f0f0f..");
    }
}
