//! What goes into a node and what comes out of it.

use std::net::SocketAddr;

use thiserror::Error;

use crate::core::election::raft::Recovery;
use crate::core::election::{AssignOutcome, ElectionError};
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::introductions::Dial;
use crate::core::time::Duration;
use crate::core::wire::{Envelope, Probe, RoomPolicy, Side};

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Time between two heartbeats to a peer.
    pub heartbeat_interval: Duration,
    /// Silence after which a peer is lost.
    pub heartbeat_timeout: Duration,
    /// Shortest election timeout; raised to `heartbeat_timeout` if it is less.
    pub election_timeout_min: Duration,
    /// Longest election timeout; moved by as much as the shortest.
    pub election_timeout_max: Duration,
    /// Other members, at most.
    pub max_connections: usize,
    /// Whether lost peers are dialled again.
    pub auto_reconnect: bool,
    /// Whether this node campaigns by itself.
    pub auto_election: bool,
    /// What happens when an assigned leader is lost.
    pub recovery: Recovery,
    /// Whether this node may vote and lead.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// The rules that all members share.
    pub policy: RoomPolicy,
    /// The key of this node.
    pub key: Fingerprint,
    /// Where others may reach this node; at most four.
    pub addresses: Vec<SocketAddr>,
}

impl NodeConfig {
    /// The same with election timeouts that are not shorter than the loss of a heartbeat takes to be noticed:
    /// those would depose living leaders (C6 G1).
    pub(super) fn with_effective_timeouts(mut self) -> Self {
        let raise = self
            .heartbeat_timeout
            .saturating_sub(self.election_timeout_min);
        self.election_timeout_min = self.election_timeout_min.saturating_add(raise);
        self.election_timeout_max = self.election_timeout_max.saturating_add(raise);
        self
    }
}

/// A link whose both ends said Hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkUp {
    /// The peer.
    pub peer: PeerId,
    /// Which life of it.
    pub incarnation: Incarnation,
    /// The key that it showed.
    pub key: Fingerprint,
    /// Where it was seen.
    pub addresses: Vec<SocketAddr>,
    /// Whether it may vote and lead.
    pub eligible: bool,
    /// Its election priority.
    pub priority: i32,
    /// What we said about leadership.
    pub ours: Side,
    /// What it said about leadership.
    pub theirs: Side,
}

/// Why a link ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// The transport reports that the other end closed or reset it: its process ended.
    Closed,
    /// The other end's host disconnected us.
    Disconnected,
    /// A newer life of the same peer takes over.
    Replaced,
    /// The other end fell silent here, or closed the link because this end fell silent there. Its process
    /// may live on.
    Silent,
    /// The peer sent what no member sends.
    Violation(&'static str),
}

/// What a host asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Set the leader.
    SetLeader(PeerId),
    /// Allow or forbid campaigns of this node.
    EnableAutoElection(bool),
    /// End the link with a peer, until one of both connects by hand.
    Disconnect(PeerId),
    /// A connection by hand lifts an earlier disconnect.
    Unbar(PeerId),
    /// Leave the room politely.
    Leave,
}

/// Everything that a node reacts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A peer is linked.
    LinkUp(Box<LinkUp>),
    /// A peer's link ended.
    LinkDown {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LinkEnd,
    },
    /// A control message arrived on the link of an authenticated peer.
    Message {
        /// The peer.
        from: PeerId,
        /// The message.
        envelope: Envelope,
    },
    /// A probe arrived.
    Datagram {
        /// The peer.
        from: PeerId,
        /// The probe.
        probe: Probe,
    },
    /// Something else that is authenticated arrived from a peer.
    Heard {
        /// The peer.
        peer: PeerId,
    },
    /// A dial that this node asked for ended without a link.
    DialFailed {
        /// Whom.
        peer: PeerId,
        /// Whether another try cannot end better.
        hopeless: bool,
    },
    /// Whether the host's own dials are running.
    HostDialing(bool),
    /// The host asks for something.
    Command(Command),
}

/// Everything that a node does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send on the control stream of a peer's link.
    Transmit {
        /// The peer.
        to: PeerId,
        /// The message.
        envelope: Envelope,
    },
    /// Send as a datagram.
    Datagram {
        /// The peer.
        to: PeerId,
        /// The probe.
        probe: Probe,
    },
    /// Dial a peer; answer with a link or [`Input::DialFailed`].
    Dial(Dial),
    /// Close a peer's link.
    Close {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LinkEnd,
    },
    /// Tell the host.
    Event(Event),
    /// Everybody answered the farewell.
    Departed,
}

/// What a host is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A peer joined.
    Joined(PeerId),
    /// A peer is gone.
    Left {
        /// The peer.
        peer: PeerId,
        /// Why.
        why: LeftReason,
    },
    /// Another leader, or none.
    LeaderChanged(Option<PeerId>),
    /// How a `SetLeader` of this host ended.
    SetLeaderResult {
        /// Who should have led.
        target: PeerId,
        /// How it ended.
        outcome: AssignOutcome,
    },
}

/// Why a peer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftReason {
    /// It said farewell.
    Left,
    /// Silence, or its link ended.
    Lost,
    /// One of both hosts disconnected the other.
    Disconnected,
    /// A newer life of it takes its place.
    Replaced,
    /// It broke the protocol.
    Violation,
}

/// Why a command was refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// The strategy refuses.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// A peer cannot disconnect itself.
    #[error("{0} is this peer itself")]
    OneselfDisconnected(PeerId),
}

/// Why a Hello is refused, with the code that the dialler gets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdmissionRefusal {
    /// The dialler has the id of this node or of a linked member with another key.
    #[error("the id {0} is taken in this room")]
    DuplicatePeerId(PeerId),
    /// The room is full here.
    #[error("there are {0} other members already, which is the limit here")]
    Full(usize),
    /// The rules of the room differ.
    #[error("{field} is {theirs} there and {ours} here; all members of a room need the same")]
    Policy {
        /// Which rule.
        field: &'static str,
        /// Its value here.
        ours: String,
        /// Its value there.
        theirs: String,
    },
    /// The host disconnected this peer, and neither end connected by hand since.
    #[error("{0} was disconnected by this host")]
    Barred(PeerId),
    /// This node is leaving.
    #[error("this peer is leaving the room")]
    Leaving,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_election_timeout_is_never_below_the_heartbeat_timeout() {
        let ms = Duration::from_millis;
        let effective = |heartbeat_timeout, min, max| {
            let config = NodeConfig {
                heartbeat_interval: ms(500),
                heartbeat_timeout: ms(heartbeat_timeout),
                election_timeout_min: ms(min),
                election_timeout_max: ms(max),
                max_connections: 64,
                auto_reconnect: true,
                auto_election: true,
                recovery: Recovery::Hold,
                eligible: true,
                priority: 0,
                policy: RoomPolicy::default(),
                key: Fingerprint([0; 32]),
                addresses: Vec::new(),
            };
            let config = config.with_effective_timeouts();
            (config.election_timeout_min, config.election_timeout_max)
        };
        assert_eq!(effective(1500, 1500, 3000), (ms(1500), ms(3000)));
        assert_eq!(effective(1500, 600, 700), (ms(1500), ms(1600)));
        assert_eq!(effective(1500, 1499, 1499), (ms(1500), ms(1500)));
        assert_eq!(effective(300, 1500, 3000), (ms(1500), ms(3000)));
    }
}
