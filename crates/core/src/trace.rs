//! The inputs, outputs and states of one node as entries of a trace (`docs/pictures.md` has the format).
//!
//! This module does no I/O: the driver and the simulator pass a node's inputs and outputs to a [`Tracer`] and store the
//! entries that it derives, so that both write the same format.

mod tracer;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::election::seeded::paxos::Ballot;
use super::id::PeerId;

pub use tracer::Tracer;

/// Version of the format: counts the changes that break readers of older traces.
pub const VERSION: u32 = 1;
/// Default sampling of the routine messages between two peers: every nth is kept.
pub const DEFAULT_ROUTINE: u64 = 10;

/// A name in the format. Readers accept unknown names, such as those of later versions.
pub type Word = Cow<'static, str>;

/// The first line of one incarnation of one peer. It contains neither the name of the room nor its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub trace: u32,
    /// The peer; `None` for a simulator's view of all peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerId>,
    /// The incarnation: its start in microseconds since 1970, and a random number (hexadecimal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// The wall clock when [`Entry::at`] is 0, in microseconds since 1970.
    pub origin_us: u64,
    /// Sampling of heartbeats and peer lists: those with an [`Said::n`] that is a multiple of it are kept.
    pub routine: u64,
    /// The program that wrote the trace.
    pub by: Word,
    /// The seed, if a simulator wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Microseconds since the start of the trace.
    pub at: u64,
    /// The entry's content.
    #[serde(flatten)]
    pub what: What,
}

/// The role of a node in its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks whether a campaign would succeed.
    PreCandidate,
    /// Campaigns.
    Candidate,
    /// Leads.
    Leader,
    /// May neither vote nor lead.
    Observer,
}

/// A message between two cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its kind.
    pub kind: Word,
    /// Sequence number of the message in one direction of a link, from 1. Both ends count messages that are not kept,
    /// too, so a message has equal numbers at both ends. A probe (`ping`, `pong`) has the number of the ping instead.
    pub n: u64,
    /// The term in the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// For an answer: whether it consents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
    /// The member that it names: leader, candidate or successor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<PeerId>,
    /// Ballot of a proposal or of its answers in a seeded cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ballot: Option<Ballot>,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The node's role has changed. The first entry of an incarnation has the initial role.
    Role {
        /// The role.
        role: Role,
    },
    /// The largest record that the node has seen has changed.
    Record {
        /// Number of `SetLeader` calls, as far as the record knows.
        epoch: u64,
        /// The member that called it last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assigner: Option<PeerId>,
        /// The term.
        term: u64,
        /// The leader of the term; none while that is not decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<PeerId>,
        /// Whether `SetLeader` named that leader.
        #[serde(default, skip_serializing_if = "is_false")]
        assigned: bool,
    },
    /// The node gave its vote in a term.
    Vote {
        /// The candidate.
        candidate: PeerId,
        /// The term.
        term: u64,
    },
    /// The leader that the host sees has changed; there may be none.
    Shows {
        /// The leader.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<PeerId>,
        /// The reason.
        reason: Word,
    },
    /// The node sent a message.
    Sent {
        /// The receiver.
        to: PeerId,
        /// The message.
        #[serde(flatten)]
        said: Said,
    },
    /// A message arrived.
    Received {
        /// The sender.
        from: PeerId,
        /// The message.
        #[serde(flatten)]
        said: Said,
    },
    /// A peer is linked.
    LinkUp {
        /// The peer.
        peer: PeerId,
    },
    /// A peer's link ended.
    LinkDown {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: Word,
    },
    /// The node closed a peer's link.
    Closes {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: Word,
    },
    /// The node dials a peer by itself.
    Dials {
        /// The peer.
        peer: PeerId,
    },
    /// The dial failed.
    DialFailed {
        /// The peer.
        peer: PeerId,
    },
    /// The host is notified of the state of a member of a seeded cluster.
    MemberState {
        /// The member.
        peer: PeerId,
        /// Its state.
        state: Word,
        /// The version of the cluster.
        version: u64,
    },
    /// A session with a peer began.
    Joined {
        /// The peer.
        peer: PeerId,
    },
    /// The peer is lost, keeps its place and is dialled.
    Reconnecting {
        /// The peer.
        peer: PeerId,
    },
    /// The lost peer is linked again.
    Returned {
        /// The peer.
        peer: PeerId,
    },
    /// The session with a peer is over.
    Left {
        /// The peer.
        peer: PeerId,
        /// The reason.
        why: Word,
    },
    /// The room is over for this node.
    RoomEnded {
        /// The reason.
        why: Word,
    },
    /// A peer wants to enter.
    Join {
        /// The peer.
        peer: PeerId,
        /// Number of the request.
        ticket: u64,
    },
    /// The room's decision on a join.
    JoinAnswer {
        /// Number of the request.
        ticket: u64,
        /// The decision.
        verdict: Word,
    },
    /// The host is asked whether a peer may enter.
    JoinRequest {
        /// The peer.
        peer: PeerId,
    },
    /// The host need not answer a join request any more.
    JoinWithdrawn {
        /// The peer.
        peer: PeerId,
    },
    /// The host gave a command.
    Command {
        /// The command.
        name: Word,
        /// The peer that it names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<PeerId>,
        /// The number, the limit, or 1 for yes and 0 for no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<i64>,
    },
    /// The node refused the command before this entry.
    Refused {
        /// The reason.
        error: String,
    },
    /// Result of a `SetLeader` of this host.
    SetLeaderResult {
        /// The member that should have led.
        peer: PeerId,
        /// The result.
        outcome: Word,
    },
    /// A request to write term and vote to disk.
    Persist {
        /// Number of the request.
        number: u64,
    },
    /// Term and vote are safe on disk.
    Persisted {
        /// Number of the request.
        number: u64,
    },
    /// The trace ends here; the process continues.
    End,
    /// The process ended as its host wanted: nothing follows in this incarnation.
    Stopped,
    /// The process crashed: nothing follows in this incarnation. Only a simulator writes this entry.
    Crashed,
    /// The process was paused and will continue (only a simulator writes this).
    Paused,
    /// The process continues.
    Resumed,
    /// A timer fired much too late: the process, or its machine, stood still (only a real room writes this).
    Stalled {
        /// The delay, in microseconds.
        late_us: u64,
    },
    /// The path from one peer to another is cut.
    Cut {
        /// The sending peer.
        from: PeerId,
        /// The receiving peer.
        to: PeerId,
    },
    /// A cut is over.
    Mended {
        /// The sending peer.
        from: PeerId,
        /// The receiving peer.
        to: PeerId,
    },
    /// Packets are lost from now on.
    Loss {
        /// Kind of the packets: `probes`, or `streams`, where lost ones are sent again.
        of: Word,
        /// Loss in percent.
        percent: u32,
    },
    /// The faults of a simulated run's chaos are over.
    Healed,
    /// An invariant was violated: a bug.
    Violation {
        /// Name of the invariant.
        property: Word,
        /// Description of the violation.
        text: String,
    },
    /// The disk was too slow: entries are missing here.
    Dropped {
        /// Number of missing entries.
        entries: u64,
    },
    /// The file has reached its limit: nothing follows.
    Full {
        /// The limit, in bytes.
        limit: u64,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes references
fn is_false(value: &bool) -> bool {
    !value
}
