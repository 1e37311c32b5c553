//! Events and questions from links to the room, and the state that links share with it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::ConnectionError;
use tokio::sync::{mpsc, oneshot};

use super::budget::Budget;
use super::outbox::{OutMessage, Outboxes};
use super::tunnel::Tunnels;
use crate::core::id::{Incarnation, PeerId};
use crate::core::relay::{ReceivedBroadcasts, Relays};
use crate::core::wire::Opaque;
use crate::core::wire::{Envelope, Probe};
use crate::dispatch::Dispatch;
use crate::state::wire::Frame;
use crate::transfers::Transfers;

/// Events of all links that may wait for the room; then the links' tasks wait.
pub(crate) const EVENT_QUEUE: usize = 1024;

/// Identifies a link for the lifetime of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

/// Event of a link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A control message arrived.
    Control(Envelope),
    /// The peer begins to send on this link. The value counts the messages of this session that this node will not get.
    Resumed(u64),
    /// A probe arrived.
    Datagram(Probe),
    /// The peer has taken every message of an ordered lane before this number.
    Acked(u16, u64),
    /// The peer has taken every unordered message before this number, and these beyond it.
    AckedUnordered(u64, Vec<u64>),
    /// A message with a leadership token waits for the answer whether it may be delivered.
    Stamped(Opaque, oneshot::Sender<bool>),
    /// An event about relayed messages.
    Relay(RelayEvent),
    /// A frame of the room's state. The next one of its lane is read after the answer.
    State(Frame, oneshot::Sender<()>),
    /// The peer's classic lane was read to its end.
    LaneDone,
    /// The peer sent something that no member sends.
    Violation(&'static str),
    /// The connection has ended.
    Closed(ConnectionError),
}

/// Event of a link about relayed messages.
#[derive(Debug)]
pub(crate) enum RelayEvent {
    /// A message on behalf of another member waits for the answer whether it may be delivered.
    OnBehalf(OnBehalf),
    /// A broadcast of the peer waits to be relayed. The token is of the leadership that the peer follows.
    ToRelay(Opaque, oneshot::Sender<Option<Leading>>),
    /// The peer has relayed every broadcast of this node on a lane before this number.
    Relayed(u16, u64),
    /// The peer leads, and asks for the broadcasts that it could not relay before.
    Again,
}

/// A message on behalf of another member, as described by its relay.
#[derive(Debug)]
pub(crate) struct OnBehalf {
    pub(crate) origin: PeerId,
    /// The incarnation of the origin that sent it, if the relay names one.
    pub(crate) incarnation: Option<Incarnation>,
    /// Whether the answer may wait until that incarnation is known, at most for the time of a handshake.
    pub(crate) may_wait: bool,
    /// The relay's leadership token.
    pub(crate) token: Opaque,
    /// Time in which this host took nothing from the lane, since another leader is known.
    pub(crate) stopped: Duration,
    pub(crate) answer: oneshot::Sender<SpeakerVerdict>,
}

/// Decision about a message on behalf of another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeakerVerdict {
    /// Deliver it.
    Yes {
        /// Whether it comes from the present incarnation of a member.
        is_bound: bool,
        /// Whether its relay leads now, rather than until a moment ago.
        by_leader: bool,
    },
    /// Drop it; it is already counted.
    No,
    /// It comes from an incarnation of a member that the member's own link has not shown yet.
    NotYet,
}

/// Leadership under which this node relays a broadcast.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    /// The linked incarnation of the broadcast's origin.
    pub(crate) incarnation: Incarnation,
    /// This node's leadership token.
    pub(crate) token: Opaque,
    /// Whether to forward the broadcast to the other members.
    pub(crate) forward: bool,
}

/// State that the tasks of a link share with the room.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) relaying: Arc<Relaying>,
    pub(crate) tunnels: Arc<Tunnels>,
    pub(crate) transfers: Arc<Transfers>,
    pub(crate) events: mpsc::Sender<(LinkId, LinkEvent)>,
    /// Memory for messages that the host has not taken.
    pub(crate) budget: Arc<Budget>,
    /// Whether the room keeps a state for its hosts.
    pub(crate) has_state: bool,
    /// Longest message that this host accepts, in bytes.
    pub(crate) max_message_size: usize,
    /// Longest time in which a peer may read nothing from its control stream.
    pub(crate) write_timeout: Duration,
}

/// State about relayed broadcasts that the readers of all lanes share.
#[derive(Debug, Default)]
pub(crate) struct Relaying {
    /// Held during the delivery of a broadcast, so that two copies of it are not both taken for new.
    pub(super) received: tokio::sync::Mutex<ReceivedBroadcasts>,
    relays: Mutex<Relays>,
    dropped: AtomicU64,
    /// Keyed, so that no member can forge a message with the digest of another.
    digests: RandomState,
}

impl Relaying {
    /// Counts a dropped message on behalf of another member: its sender does not lead.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of dropped messages on behalf of others.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Digest of the parts of a broadcast that every relay passes on unchanged.
    pub(super) fn digest(&self, message: &OutMessage, channel: u8) -> u64 {
        let OutMessage {
            payload,
            msg_type,
            flags,
        } = message;
        self.digests.hash_one((channel, msg_type, flags, payload))
    }

    pub(super) fn relays(&self) -> MutexGuard<'_, Relays> {
        // No panic can interrupt a change.
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
