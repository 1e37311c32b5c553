//! Frames between the members.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ballot::{Ballot, History, Place};
use crate::entry::{Entry, Request, Roster};
use crate::limits::{MAX_FRAME_BYTES, MAX_INDEX, MAX_OPENINGS, MAX_ROSTER, PART_BYTES};

/// The end of a member's log, for a leader that gathers or feeds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// The ballot whose gathering this answers. It promises to accept no lower one.
    pub answers: Option<Ballot>,
    /// Whether the member follows the receiver.
    pub follows: bool,
    /// The history of its log; `None` without entries.
    pub history: Option<History>,
    /// Its last entry.
    pub last: Option<Place>,
    /// Whether an action or a property set is in its log.
    pub is_used: bool,
    /// The first index of its tail.
    pub oldest: u64,
    /// The newest openings in its log, the oldest first.
    pub openings: Vec<Place>,
    /// The roster at its last entry.
    pub roster: Roster,
    /// Whether it is a static voter that has lost what it held.
    pub is_recovering: bool,
}

/// A request with its author's number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    /// The number.
    pub number: u64,
    /// The request.
    pub request: Request,
}

/// A piece of encoded tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The index of the last entry in the tables.
    pub index: u64,
    /// The length of the encoded tables, in bytes.
    pub total: u32,
    /// The position of this piece.
    pub offset: u32,
    /// The piece.
    pub bytes: Bytes,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// The first frame on a link; to the leader, when a member begins to follow it, lacks an entry, or answers a gathering.
    Tip(Tip),
    /// A leader asks what the members have, and for their promise.
    Gather {
        /// The ballot that it will open.
        ballot: Ballot,
    },
    /// Entries of the leader's log.
    Append {
        /// The ballot that is open.
        ballot: Ballot,
        /// The entry before; `None` at the beginning of the log.
        previous: Option<Place>,
        /// The index up to which entries are confirmed.
        confirmed: u64,
        /// The last index of the leader's log.
        end: u64,
        /// The entries that follow `previous`.
        entries: Vec<Entry>,
    },
    /// A piece of the tables that precede the sender's tail: for a member whose log ends before it.
    Tables {
        /// The ballot that is open or gathered.
        ballot: Ballot,
        /// The piece.
        piece: Piece,
    },
    /// To a leader whose ballot is lower than the one promised.
    Behind {
        /// The ballot promised.
        promised: Ballot,
    },
    /// A member has adopted the leader's log.
    Have {
        /// The ballot adopted.
        ballot: Ballot,
        /// The last entry that is equal to the leader's.
        index: u64,
        /// Whether it is a static voter that does not count yet.
        is_recovering: bool,
    },
    /// The leader's entries have arrived, but the member has not adopted the ballot yet. It counts for nothing.
    Staged {
        /// The ballot.
        ballot: Ballot,
        /// The last entry that has arrived.
        index: u64,
    },
    /// Requests of a member, to the leader.
    Submit {
        /// The ballot that it has adopted.
        ballot: Ballot,
        /// The requests, by rising numbers.
        requests: Vec<Numbered>,
    },
    /// A leader that gathers takes the entries of the newest log.
    Fetch {
        /// The ballot that it will open.
        ballot: Ballot,
        /// The last entry of that log that it has; `None` for none.
        previous: Option<Place>,
    },
    /// The answer to [`Frame::Fetch`].
    Entries {
        /// The ballot of the question.
        ballot: Ballot,
        /// The entry before.
        previous: Option<Place>,
        /// The entries that follow it.
        entries: Vec<Entry>,
    },
    /// A member's host needs a snapshot.
    Want {
        /// The history of the member's log.
        history: History,
        /// The lowest index at which a snapshot helps.
        from: u64,
    },
    /// A piece of a snapshot, for a member that wants one.
    Part {
        /// The history that the snapshot belongs to.
        history: History,
        /// The piece; its index is that of the last entry in the snapshot.
        piece: Piece,
    },
    /// The answer to [`Frame::Part`]: only then do further parts follow.
    PartArrived {
        /// The history of the snapshot.
        history: History,
        /// Its index.
        index: u64,
        /// Bytes of the snapshot that have arrived.
        received: u32,
    },
}

/// The stream that carries a frame. Frames of different lanes arrive in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The log, and all that is not in another lane; above user messages.
    Log,
    /// Requests: they wait while the leader has no room for them.
    Requests,
    /// Parts of snapshots; below user messages.
    Parts,
}

/// Reason why bytes are no frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They are too many.
    #[error("the frame has {0} bytes; at most {MAX_FRAME_BYTES} are allowed")]
    TooLong(usize),
    /// They do not decode.
    #[error("the frame is malformed: {0}")]
    Malformed(postcard::Error),
    /// A value breaks a limit.
    #[error("the frame breaks a limit: {0}")]
    Limit(&'static str),
}

impl Frame {
    /// Decodes a frame and checks its limits.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(bytes.len()));
        }
        let frame: Self = postcard::from_bytes(bytes).map_err(FrameError::Malformed)?;
        match frame.broken_limit() {
            Some(limit) => Err(FrameError::Limit(limit)),
            None => Ok(frame),
        }
    }

    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        // `postcard` fails only for types that refuse to serialize and for sequences of unknown length; a frame has
        // neither.
        let bytes = postcard::to_allocvec(self);
        debug_assert!(
            bytes
                .as_ref()
                .is_ok_and(|bytes| bytes.len() <= MAX_FRAME_BYTES)
        );
        bytes.unwrap_or_default()
    }

    /// The stream that carries it.
    pub fn lane(&self) -> Lane {
        match self {
            Self::Submit { .. } => Lane::Requests,
            Self::Part { .. } => Lane::Parts,
            _ => Lane::Log,
        }
    }

    /// The largest number of the ballots that the sender vouches for; entries have none above it.
    pub(crate) fn largest_number(&self) -> Option<u64> {
        let ballot = match self {
            Self::Gather { ballot } | Self::Append { ballot, .. } | Self::Tables { ballot, .. } => {
                ballot
            }
            Self::Behind { promised } => promised,
            Self::Tip(tip) => &tip.last.as_ref()?.ballot,
            Self::Have { .. }
            | Self::Staged { .. }
            | Self::Submit { .. }
            | Self::Fetch { .. }
            | Self::Entries { .. }
            | Self::Want { .. }
            | Self::Part { .. }
            | Self::PartArrived { .. } => return None,
        };
        Some(ballot.number)
    }

    /// The ballot of a frame that only its leader sends.
    pub(crate) fn leaders_ballot(&self) -> Option<&Ballot> {
        match self {
            Self::Gather { ballot } | Self::Append { ballot, .. } | Self::Fetch { ballot, .. } => {
                Some(ballot)
            }
            _ => None,
        }
    }

    fn broken_limit(&self) -> Option<&'static str> {
        match self {
            Self::Tip(tip) if tip.openings.len() > MAX_OPENINGS => Some("openings of a Tip"),
            Self::Tip(tip) if tip.roster.len() > MAX_ROSTER => Some("members of a roster"),
            Self::Tip(tip) if !tip.is_consistent() => Some("order in a Tip"),
            Self::Append { entries, .. } | Self::Entries { entries, .. }
                if !entries.iter().all(Entry::is_valid) =>
            {
                Some("length of an entry")
            }
            Self::Submit { requests, .. } if !are_valid(requests) => {
                Some("order or length of requests")
            }
            Self::Part { piece, .. } if !piece.is_part() => Some("bounds of a part"),
            _ => None,
        }
    }
}

fn are_valid(requests: &[Numbered]) -> bool {
    let rise = requests
        .windows(2)
        .all(|pair| pair[0].number < pair[1].number);
    rise && requests
        .iter()
        .all(|numbered| numbered.number > 0 && numbered.request.check().is_ok())
}

impl Piece {
    /// Whether it can belong to a snapshot: only an empty snapshot has an empty piece.
    fn is_part(&self) -> bool {
        let end = u64::from(self.offset) + self.bytes.len() as u64;
        end <= u64::from(self.total)
            && (self.total == 0 || !self.bytes.is_empty())
            && self.bytes.len() <= PART_BYTES
            && self.index <= MAX_INDEX
    }
}

impl Tip {
    /// Whether its parts can belong to one log.
    fn is_consistent(&self) -> bool {
        let rise =
            |pair: &[Place]| pair[0].index < pair[1].index && pair[0].ballot < pair[1].ballot;
        let last = self.last.as_ref().map_or(0, |last| last.index);
        self.openings.windows(2).all(rise)
            && self
                .openings
                .last()
                .is_none_or(|opening| opening.index <= last)
            && last <= MAX_INDEX
            && self.history.is_none_or(|history| history.0 < History::END)
            && self.history.is_some() == self.last.is_some()
            && self.history.is_some() != self.openings.is_empty()
            && self.oldest <= last.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use room_core::id::{Incarnation, PeerId};

    use super::*;
    use crate::ballot::MemberId;
    use crate::entry::{
        Contents, Expected, Fate, Key, OwnerChange, PropertyChange, Traits, ValueChange,
    };
    use crate::limits::{MAX_ACTION_BYTES, MAX_CHANGES, MAX_INDEX};

    fn longest_member(letter: char) -> MemberId {
        let name: String = std::iter::repeat_n(letter, 64).collect();
        MemberId {
            peer: PeerId::new(&name).expect("a name"),
            incarnation: Incarnation {
                started_us: u64::MAX,
                random: u64::MAX,
            },
        }
    }

    fn longest_ballot() -> Ballot {
        Ballot {
            number: u64::MAX,
            leader: longest_member('l'),
        }
    }

    fn longest_changes() -> Vec<PropertyChange> {
        let change = |n: usize| PropertyChange {
            key: Key::new(&format!("{n:064}")).expect("a key"),
            value: ValueChange::Set(Bytes::from(vec![7; 800])),
            owner: OwnerChange::To(longest_member('o').peer),
            traits: Traits {
                owner_only: true,
                fate: Fate::FallsToLeader,
            },
            expected: Expected::Version(u64::MAX),
        };
        (0..MAX_CHANGES).map(change).collect()
    }

    fn longest_entries() -> Vec<Entry> {
        let member = longest_member('m');
        let request = |request| Contents::Request {
            author: member.clone(),
            number: u64::MAX,
            request,
        };
        let action = |length| Request::Action {
            msg_type: u16::MAX,
            data: Bytes::from(vec![7; length]),
        };
        let roster = ('\u{100}'..).take(MAX_ROSTER);
        let roster = roster.map(longest_member_of).collect();
        let contents = [
            Contents::Open {
                history: History(History::END - 1),
                exclusive: true,
                roster,
            },
            Contents::Member {
                member: member.clone(),
                here: true,
                counts: true,
            },
            request(action(0)),
            request(action(MAX_ACTION_BYTES)),
            request(Request::Properties(longest_changes())),
        ];
        let entry = |contents| Entry {
            ballot: longest_ballot(),
            time_ms: u64::MAX,
            contents,
        };
        contents.into_iter().map(entry).collect()
    }

    /// A member whose name is 32 times a letter of two bytes.
    fn longest_member_of(letter: char) -> MemberId {
        let name: String = std::iter::repeat_n(letter, 32).collect();
        MemberId {
            peer: PeerId::new(&name).expect("a name"),
            ..longest_member('m')
        }
    }

    #[test]
    fn no_entry_takes_more_bytes_than_it_counts() {
        for entry in longest_entries() {
            let encoded = postcard::to_allocvec(&entry).expect("encodes").len();
            assert!(entry.is_valid(), "{entry:?}");
            assert!(encoded <= entry.bytes(), "{encoded} bytes: {entry:?}");
        }
    }

    #[test]
    fn a_decoded_frame_is_the_encoded_one() {
        let place = Place {
            ballot: longest_ballot(),
            index: MAX_INDEX,
        };
        for entry in longest_entries() {
            let frame = Frame::Append {
                ballot: longest_ballot(),
                previous: Some(place.clone()),
                confirmed: u64::MAX,
                end: u64::MAX,
                entries: vec![entry],
            };
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    #[test]
    fn a_frame_that_breaks_a_limit_is_refused() {
        let long = vec![0; MAX_FRAME_BYTES + 1];
        assert_eq!(Frame::decode(&long), Err(FrameError::TooLong(long.len())));
        let numbered = |number| Numbered {
            number,
            request: Request::Action {
                msg_type: 1,
                data: Bytes::new(),
            },
        };
        for numbers in [vec![0], vec![2, 2], vec![3, 2]] {
            let frame = Frame::Submit {
                ballot: longest_ballot(),
                requests: numbers.iter().copied().map(numbered).collect(),
            };
            let refused = Frame::decode(&frame.encode());
            assert_eq!(
                refused,
                Err(FrameError::Limit("order or length of requests")),
                "{numbers:?}"
            );
        }
        let entry = Entry {
            contents: Contents::Open {
                history: History(History::END),
                exclusive: true,
                roster: Roster::from([longest_member('m')]),
            },
            ..longest_entries().remove(0)
        };
        let frame = Frame::Entries {
            ballot: longest_ballot(),
            previous: None,
            entries: vec![entry],
        };
        assert_eq!(
            Frame::decode(&frame.encode()),
            Err(FrameError::Limit("length of an entry"))
        );
    }

    fn part(index: u64, total: u32, offset: u32, length: usize) -> Frame {
        let bytes = Bytes::from(vec![7; length]);
        let piece = Piece {
            index,
            total,
            offset,
            bytes,
        };
        let history = History(History::END - 1);
        Frame::Part { history, piece }
    }

    #[test]
    fn frames_about_snapshots_are_decoded_as_they_were_encoded() {
        let history = History(History::END - 1);
        let longest = u32::try_from(PART_BYTES).expect("it fits");
        let frames = [
            Frame::Want {
                history,
                from: u64::MAX,
            },
            Frame::PartArrived {
                history,
                index: u64::MAX,
                received: u32::MAX,
            },
            part(MAX_INDEX, 0, 0, 0),
            part(MAX_INDEX, u32::MAX, u32::MAX - longest, PART_BYTES),
        ];
        for frame in frames {
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    #[test]
    fn a_part_that_can_belong_to_no_snapshot_is_refused() {
        let longest = u32::try_from(PART_BYTES).expect("it fits");
        for frame in [
            part(1, 10, 5, 6),
            part(1, 10, 11, 0),
            part(1, 10, 10, 0),
            part(1, 10, 0, 0),
            part(1, 0, 0, 1),
            part(1, u32::MAX, u32::MAX, 1),
            part(1, 2 * longest, 0, PART_BYTES + 1),
            part(MAX_INDEX + 1, 10, 0, 10),
        ] {
            let refused = Frame::decode(&frame.encode());
            assert_eq!(
                refused,
                Err(FrameError::Limit("bounds of a part")),
                "{frame:?}"
            );
        }
    }
}
