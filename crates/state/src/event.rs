//! Events for a member's host.

use bytes::Bytes;
use room_core::id::PeerId;

use crate::ballot::{History, MemberId};
use crate::entry::Key;
use crate::tables::{Presence, Property, Refusal};

/// An event for a member's host. Indexes count entries, from 1; times are the entries' times, in milliseconds since
/// the history's first entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateEvent {
    /// An action is confirmed.
    Action {
        /// Its index.
        index: u64,
        /// Its time.
        time_ms: u64,
        /// Its author, which may have left since.
        author: MemberId,
        /// The host's number for the kind of action.
        msg_type: u16,
        /// Its bytes.
        data: Bytes,
        /// Its number, if this member is the author.
        request: Option<u64>,
    },
    /// A request of this host has its outcome: exactly one for each request, after the events of its entry.
    ActionResult {
        /// The number of the request.
        request: u64,
        /// The index of its entry; 0 without one, or if the member's tail lacks it.
        index: u64,
        /// The outcome.
        outcome: Outcome,
    },
    /// A property has changed: by a property set, a departure or an opening; or a jump of the state has changed it.
    Property {
        /// The index of the entry that changed it, or that the state jumped to.
        index: u64,
        /// The time of that entry.
        time_ms: u64,
        /// Its name.
        key: Key,
        /// The property now; `None` if it is gone.
        property: Option<Property>,
        /// The author of the property set; `None` otherwise.
        author: Option<MemberId>,
    },
    /// The host begins anew, in the state of `snapshot`, and receives the actions above `index`. Properties and
    /// members do not begin anew: only their differences follow.
    Reset {
        /// The index that the state jumps to.
        index: u64,
        /// The snapshot of another host; `None` is the initial state.
        snapshot: Option<Bytes>,
        /// Why.
        reason: ResetReason,
        /// Whether actions up to `index` are missing: the member's tail has dropped them, and no member has provided
        /// a snapshot.
        is_incomplete: bool,
        /// The number of RolledBack events before this one.
        rolled_back: usize,
    },
    /// The history that goes on lacks an action that the host has received. Actions of lower indexes come first.
    RolledBack {
        /// The index that it had.
        index: u64,
        /// Its author.
        author: MemberId,
        /// The host's number for the kind of action.
        msg_type: u16,
        /// Its bytes.
        data: Bytes,
        /// Its number, if this member is the author.
        request: Option<u64>,
    },
    /// A member's host needs a snapshot: the state of this host, exactly as the events before this one have made it. The
    /// host may provide it later; see [`Replica::provide_snapshot`](crate::replica::Replica::provide_snapshot).
    SnapshotWanted {
        /// The number with which the host provides it.
        request: u64,
        /// The index of the last entry that the host has received.
        index: u64,
    },
    /// A leader's opening is confirmed, or the state jumped behind it, or its leader goes on after a loss. Without a
    /// leader: it is lost, and no member orders.
    Opened {
        /// The index of the last entry that the host has received, or that the state jumped to.
        index: u64,
        /// The leader.
        leader: Option<MemberId>,
        /// Whether a majority of the roster answered, or this was the room's first opening; otherwise a fork.
        is_exclusive: bool,
        /// The history that it goes on with or begins.
        history: Option<History>,
        /// The number of members that count.
        roster: usize,
    },
    /// A member has come or gone.
    MemberPresence {
        /// The index of the entry that changed it, or that the state jumped to.
        index: u64,
        /// The member.
        member: MemberId,
        /// Whether it is here now.
        presence: Presence,
    },
}

impl StateEvent {
    /// The member that it is about: an author, a leader, a member that has come or gone.
    pub fn peer(&self) -> Option<&PeerId> {
        let member = match self {
            Self::Action { author, .. } | Self::RolledBack { author, .. } => Some(author),
            Self::Property { author, .. } => author.as_ref(),
            Self::Opened { leader, .. } => leader.as_ref(),
            Self::MemberPresence { member, .. } => Some(member),
            Self::ActionResult { .. } | Self::Reset { .. } | Self::SnapshotWanted { .. } => None,
        };
        member.map(|member| &member.peer)
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The host's history contains it.
    Ok,
    /// A property has another version, or belongs to another history than the one that the host had read; or a new owner
    /// is not in the room. Nothing changed.
    Conflict,
    /// There are too many properties or bytes of them. Nothing changed.
    StateFull,
    /// A property that only its owner changes has another owner. Nothing changed.
    NotOwner,
    /// The member cannot know any more.
    OutcomeUnknown,
}

/// Reason why a host begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetReason {
    /// It has received nothing before.
    Joined,
    /// Its member's tail lacks actions that follow the last entry that it received.
    Behind,
    /// The history that goes on differs from what it received.
    RolledBack,
}

impl From<Result<(), Refusal>> for Outcome {
    fn from(outcome: Result<(), Refusal>) -> Self {
        match outcome {
            Ok(()) => Self::Ok,
            Err(Refusal::Conflict) => Self::Conflict,
            Err(Refusal::Full) => Self::StateFull,
            Err(Refusal::NotOwner) => Self::NotOwner,
        }
    }
}
