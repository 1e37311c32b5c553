//! The rules that the simulator breaks, one at a time, to show that it notices. What ships keeps them all.

#[cfg(feature = "laboratory")]
use std::collections::BTreeSet;

#[cfg(feature = "laboratory")]
use crate::ballot::{Ballot, History};

/// A rule of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// An answer to a gathering promises to accept no lower ballot.
    Promise,
    /// A static voter's promise is on disk.
    PromiseOnDisk,
    /// A log of a higher ballot is adopted as a whole.
    Staging,
    /// An entry is confirmed on arrival only if its leader is on the roster.
    LeaderOnRoster,
    /// In another history nothing is known to be confirmed yet.
    ConfirmedAnew,
    /// A restarted static voter counts when it has adopted all that its leader had, not only the opening.
    RecoverToTheEnd,
    /// A restarted static voter does not count before.
    Recovery,
    /// A member that is set aside does not count.
    SetAside,
    /// Requests carry the ballot that their author has adopted.
    TaggedRequests,
    /// A compare-and-set is not repeated in a history that its host has not read.
    ConditionsOfTheirHistory,
    /// A request at or below its author's last number is in the log.
    Rows,
    /// The roster changes by one member at a time, each confirmed before the next.
    OneChangeAtATime,
    /// The roster changes only after the opening is confirmed.
    ChangesAfterOpening,
    /// Of two logs the one with the higher last ballot is newer, not the longer one.
    NewestByBallot,
    /// A process counts, not a name.
    CountByProcess,
    /// Answers under another ballot count for nothing.
    TaggedAnswers,
    /// A leader that leaves orders no request behind its departure.
    LeaverOrdersNothing,
    /// A snapshot belongs to the history of the log.
    SnapshotOfTheHistory,
    /// The entries that the tail drops beside a snapshot are kept.
    EntriesBesideSnapshot,
}

/// Changes of the laboratory.
#[cfg(feature = "laboratory")]
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// The rules that are broken.
    pub broken: BTreeSet<Rule>,
    /// Most entries of a frame; otherwise their bytes limit them.
    pub entries_of_a_frame: Option<usize>,
    /// Most bytes of a snapshot's part.
    pub bytes_of_a_part: Option<usize>,
    /// The history that an opening begins, instead of a random one: members in equal states then stay equal.
    pub histories_by_ballot: Option<fn(&Ballot) -> History>,
}
