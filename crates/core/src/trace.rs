//! What one node did and what happened to it, as entries of a trace (`docs/pictures.md` has the format).
//!
//! Nothing is read or written here: the driver and the simulator pass a node's inputs and outputs to a
//! [`Tracer`] and keep the entries that it derives, so that both tell the same story in the same words.

mod tracer;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::election::seeded::paxos::Ballot;
use super::id::PeerId;

pub use tracer::Tracer;

/// The version of the format: counts changes that a reader of older traces would get wrong.
pub const VERSION: u32 = 1;
/// Of the routine messages between two peers, every nth is kept by default.
pub const DEFAULT_ROUTINE: u64 = 10;

/// A word of the format. A reader takes every word, those of later versions, too.
pub type Word = Cow<'static, str>;

/// The first line of one incarnation of one peer. It contains nothing of the room: neither its name nor its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub trace: u32,
    /// Which peer; `None` for what a simulator knows of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerId>,
    /// Which incarnation: when it began, in microseconds since 1970, and a random number (hexadecimal).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<String>,
    /// The wall clock when [`Entry::at`] is 0, in microseconds since 1970.
    pub origin_us: u64,
    /// Of heartbeats and peer lists, those are kept whose [`Said::n`] this number divides.
    pub routine: u64,
    /// What wrote the trace.
    pub by: Word,
    /// The seed, where a simulator wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Microseconds since the start of the trace.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What a node is in its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Goes by another's leadership, or waits for one.
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
    /// Sender and receiver count the messages of one direction of their link from 1, those that are not
    /// kept, too: what was sent has at its arrival the number that it had when it was sent. A probe (`ping`,
    /// `pong`) has the number of the question instead.
    pub n: u64,
    /// The term that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Of an answer: whether it is a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
    /// Whom it names: leader, candidate or successor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<PeerId>,
    /// Of a proposal and its answers in a seeded cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ballot: Option<Ballot>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The node has another role from now on; the first entry of an incarnation has its first.
    Role {
        /// The role.
        role: Role,
    },
    /// The largest record that the node has seen is another one.
    Record {
        /// How many times `SetLeader` was called, as far as the record knows.
        epoch: u64,
        /// Who called it last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assigner: Option<PeerId>,
        /// The term.
        term: u64,
        /// Who leads in it; none while that is not decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<PeerId>,
        /// Whether `SetLeader` named that leader.
        #[serde(default, skip_serializing_if = "is_false")]
        assigned: bool,
    },
    /// The node gave its vote of a term.
    Vote {
        /// To whom.
        candidate: PeerId,
        /// The term.
        term: u64,
    },
    /// The host is shown another leader, or none.
    Shows {
        /// Whom.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leader: Option<PeerId>,
        /// Why.
        reason: Word,
    },
    /// The node sent a message.
    Sent {
        /// To whom.
        to: PeerId,
        /// The message.
        #[serde(flatten)]
        said: Said,
    },
    /// A message arrived.
    Received {
        /// From whom.
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
        /// Why.
        why: Word,
    },
    /// The node closed a peer's link.
    Closes {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: Word,
    },
    /// The node dials a peer by itself.
    Dials {
        /// The peer.
        peer: PeerId,
    },
    /// That dial made no link.
    DialFailed {
        /// The peer.
        peer: PeerId,
    },
    /// The host is told of the state of a member of a seeded cluster.
    MemberState {
        /// Whose.
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
        /// Why.
        why: Word,
    },
    /// The room is over for this node.
    RoomEnded {
        /// Why.
        why: Word,
    },
    /// Somebody wants to be linked.
    Join {
        /// Who.
        peer: PeerId,
        /// Names the question.
        ticket: u64,
    },
    /// The room's word on that.
    JoinAnswer {
        /// The question.
        ticket: u64,
        /// The word.
        verdict: Word,
    },
    /// The host is asked whether somebody may enter.
    JoinRequest {
        /// Who.
        peer: PeerId,
    },
    /// The host need not answer that any more.
    JoinWithdrawn {
        /// Who.
        peer: PeerId,
    },
    /// The host asks for something.
    Command {
        /// For what.
        name: Word,
        /// Whom it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<PeerId>,
        /// The number, the limit, or 1 for yes and 0 for no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<i64>,
    },
    /// What the host asked for just before was refused.
    Refused {
        /// Why.
        error: String,
    },
    /// How a `SetLeader` of this host ended.
    SetLeaderResult {
        /// Who should have led.
        peer: PeerId,
        /// How it ended.
        outcome: Word,
    },
    /// Term and vote are to be kept on disk.
    Persist {
        /// Counts these requests.
        number: u64,
    },
    /// They are safe on disk.
    Persisted {
        /// The number of the request.
        number: u64,
    },
    /// The trace ends here; the process lives on.
    End,
    /// The process ended as its host wanted: nothing follows in this incarnation.
    Stopped,
    /// The process crashed: nothing follows in this incarnation. A real one leaves no such line.
    Crashed,
    /// The process was stopped and will go on (a simulator knows that).
    Paused,
    /// The process goes on.
    Resumed,
    /// A timer fired much too late: the process, or its machine, stood still (what a real room knows).
    Stalled {
        /// How late, in microseconds.
        late_us: u64,
    },
    /// Nothing gets from one peer to another from now on.
    Cut {
        /// From whom.
        from: PeerId,
        /// To whom.
        to: PeerId,
    },
    /// That is over.
    Mended {
        /// From whom.
        from: PeerId,
        /// To whom.
        to: PeerId,
    },
    /// Packets are lost from now on.
    Loss {
        /// Of what: `probes`, or `streams`, where what is lost is sent again.
        of: Word,
        /// How many of a hundred.
        percent: u32,
    },
    /// The faults of a simulated run's chaos are over.
    Healed,
    /// A property that always holds did not: a bug.
    Violation {
        /// Its name.
        property: Word,
        /// What was seen.
        text: String,
    },
    /// The disk was too slow: this many entries are missing here.
    Dropped {
        /// How many.
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
