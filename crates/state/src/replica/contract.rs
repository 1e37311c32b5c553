//! All inputs and outputs of a [`Replica`](super::Replica).

use std::collections::BTreeSet;

use room_core::id::PeerId;
use room_core::time::Duration;
use thiserror::Error;

use crate::ballot::{Ballot, MemberId};
use crate::entry::InvalidRequest;
use crate::limits::{MAX_OPEN_BYTES, MAX_OPEN_REQUESTS, Options};
use crate::wire::Frame;

/// Settings of a room, equal for all its members, and of this member.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which members count for a majority.
    pub quorum: Quorum,
    /// The limits.
    pub options: Options,
    /// Whether this member may lead, and counts.
    pub is_eligible: bool,
    /// Whether the room has a fixed host, and this member is it.
    pub is_fixed_host: bool,
    /// Interval between two gatherings of members that do not answer.
    pub heartbeat_interval: Duration,
    /// A dynamic leader that confirms nothing for so long, although an entry waits, opens again.
    pub stuck_after: Duration,
    /// How long a new leader waits for members without a link before they have left, and a restarted fixed host for the
    /// guests of its former process.
    pub member_hold: Duration,
    /// Test switches; all off in what ships.
    #[cfg(feature = "laboratory")]
    pub switches: crate::laboratory::Switches,
}

impl Settings {
    /// The settings of a member that may lead, in a room without a fixed host.
    pub fn new(
        quorum: Quorum,
        options: Options,
        heartbeat_interval: Duration,
        heartbeat_timeout: Duration,
        member_hold: Duration,
    ) -> Self {
        Self {
            quorum,
            options,
            is_eligible: true,
            is_fixed_host: false,
            heartbeat_interval,
            stuck_after: heartbeat_timeout * 2,
            member_hold,
            #[cfg(feature = "laboratory")]
            switches: crate::laboratory::Switches::default(),
        }
    }
}

/// Which members count for a majority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quorum {
    /// The processes that the log names.
    Dynamic,
    /// The processes of these names.
    Static(BTreeSet<PeerId>),
}

/// The state that a static voter keeps on disk; other members keep none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// The highest ballot promised.
    pub promised: Option<Ballot>,
    /// Whether it has held state of the room.
    pub has_held: bool,
}

/// A new link.
#[derive(Debug, Clone)]
pub struct Linked {
    /// The member at its other end.
    pub member: MemberId,
    /// Whether that may lead, and counts.
    pub is_eligible: bool,
    /// Its round trip.
    pub round_trip: Duration,
}

/// An input.
#[derive(Debug, Clone)]
pub enum Input {
    /// A link has come up; it replaces one with the same peer.
    Linked(Linked),
    /// The link with a peer is over.
    Lost(PeerId),
    /// A member has left the room.
    Gone(MemberId),
    /// The peers that are being dialled.
    Dialled(BTreeSet<PeerId>),
    /// Whether a peer may lead has changed.
    Eligible(PeerId, bool),
    /// The election names another leader, or none.
    Leader(Option<MemberId>),
    /// This member leaves the room for good; [`Output::MayEnd`] follows.
    Leave {
        /// The member that the election names next, if that is known.
        successor: Option<PeerId>,
    },
    /// A linked peer has sent a frame.
    Frame {
        /// The peer.
        from: PeerId,
        /// The frame.
        frame: Frame,
        /// The largest number of a ballot that is credible now.
        largest_number: u64,
    },
    /// Time has passed.
    Tick,
}

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a frame to a linked peer. Frames to one peer in one [`Lane`](crate::wire::Lane) arrive in order.
    Send {
        /// The peer.
        to: PeerId,
        /// The frame.
        frame: Frame,
    },
    /// Write this to the disk before any later output is carried out.
    Persist(Saved),
    /// The process of this member, which leaves, may end: the room needs nothing more of it. Sent once.
    MayEnd,
}

/// Reason why a host's request is not taken; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// It breaks a limit of one request.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// Too many have no outcome yet.
    #[error(
        "{requests} requests of {bytes} bytes have no outcome yet; at most {MAX_OPEN_REQUESTS} of {MAX_OPEN_BYTES} bytes may"
    )]
    Full {
        /// The number of open requests.
        requests: usize,
        /// Their bytes.
        bytes: usize,
    },
}

/// Reason why a host's snapshot is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// No request has this number, or it is over.
    #[error("no member waits for this snapshot")]
    UnknownRequest,
    /// It is too long. The request goes on.
    #[error("the snapshot has {length} bytes; at most {most} are allowed")]
    TooLong {
        /// Its length, in bytes.
        length: usize,
        /// The room's limit.
        most: usize,
    },
    /// It belongs to another history than the log does now.
    #[error("the history has changed since the request")]
    HistoryChanged,
}

/// A peer broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// A frame that only the leader of its ballot sends.
    #[error("a frame under a ballot of another leader")]
    ForeignBallot,
    /// A ballot beyond what a clock explains.
    #[error("a ballot with the number {number}; at most {most} is credible")]
    Number {
        /// The number.
        number: u64,
        /// The largest that is credible.
        most: u64,
    },
    /// Entries that do not follow the one named as previous.
    #[error("entries out of order")]
    Order,
    /// A log that exceeds the room's limits.
    #[error("a log beyond the room's limits")]
    Limits,
    /// Tables that do not decode.
    #[error("malformed tables")]
    Tables,
    /// A Have beyond the leader's log.
    #[error("a Have of an entry that does not exist")]
    Have,
    /// A snapshot beyond the room's limit.
    #[error("a snapshot of {0} bytes, beyond the room's limit")]
    Snapshot(usize),
    /// Requests beyond what an author may have open.
    #[error("too many requests")]
    Requests,
}
