//! What links tell and ask the room, and what they share with it.

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
use crate::core::relay::{Heard, Relays};
use crate::core::wire::Opaque;
use crate::core::wire::{Envelope, Probe};
use crate::dispatch::Dispatch;

/// What the link's tasks may tell the room before they wait for it.
pub(crate) const EVENT_QUEUE: usize = 1024;

/// Names a link for as long as the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

/// What a link tells the room.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// A control message arrived.
    Control(Envelope),
    /// The peer begins to send on this link: of all that it sent in this session, this node will not get so many messages.
    Resumed(u64),
    /// A probe arrived.
    Datagram(Probe),
    /// The peer has taken every message of an ordered lane before this number.
    Acked(u16, u64),
    /// The peer has taken every unordered message before this number, and these beyond.
    AckedUnordered(u64, Vec<u64>),
    /// A message that is stamped with a leadership token waits for the answer whether it may be delivered.
    Stamped(Opaque, oneshot::Sender<bool>),
    /// Something about messages in another's name.
    Relay(RelayEvent),
    /// The peer's classic lane is read to its end.
    LaneDone,
    /// The peer sent what no member sends.
    Violation(&'static str),
    /// The connection has ended.
    Closed(ConnectionError),
}

/// What a link tells the room about messages in another's name.
#[derive(Debug)]
pub(crate) enum RelayEvent {
    /// A message in another's name waits for the answer whether it may be delivered.
    InAnothersName(InAnothersName),
    /// A broadcast of the peer, which carries the token of the leadership that it follows, waits to be relayed.
    ToRelay(Opaque, oneshot::Sender<Option<Leading>>),
    /// The peer has relayed every broadcast of this node on a lane before this number.
    Relayed(u16, u64),
    /// The peer leads and asks for what it could not relay before.
    Again,
}

/// What the relay says of a message in another's name.
#[derive(Debug)]
pub(crate) struct InAnothersName {
    pub(crate) origin: PeerId,
    /// The incarnation of the origin that sent it, if the relay names one.
    pub(crate) incarnation: Option<Incarnation>,
    /// Whether the answer may wait until that incarnation is known, for the time of a handshake at most.
    pub(crate) may_wait: bool,
    /// The relay's, as leader.
    pub(crate) token: Opaque,
    /// For how long this host took nothing from the lane, since another leader is known.
    pub(crate) stopped: Duration,
    pub(crate) answer: oneshot::Sender<Hearing>,
}

/// What becomes of a message in another's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It is delivered.
    Yes {
        /// Whether it is of the present incarnation of a member.
        is_bound: bool,
        /// Whether its relay leads, and not only did a moment ago.
        by_leader: bool,
    },
    /// It is dropped, and was counted.
    No,
    /// It is of an incarnation of a member that the member's own link has not shown yet.
    NotYet,
}

/// As what this node relays a broadcast.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    /// The incarnation of its origin that is linked.
    pub(crate) incarnation: Incarnation,
    /// This node's, as leader.
    pub(crate) token: Opaque,
    /// Whether it goes on to the other members.
    pub(crate) forward: bool,
}

/// What the tasks of a link share with the room.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) outboxes: Arc<Outboxes>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) relaying: Arc<Relaying>,
    pub(crate) tunnels: Arc<Tunnels>,
    pub(crate) events: mpsc::Sender<(LinkId, LinkEvent)>,
    /// Memory for messages that the host has not taken.
    pub(crate) budget: Arc<Budget>,
    /// Longest message that this host takes, in bytes.
    pub(crate) max_message_size: usize,
    /// How long a peer may take nothing from its control stream.
    pub(crate) write_timeout: Duration,
}

/// What the readers of all lanes know about relayed broadcasts.
#[derive(Debug, Default)]
pub(crate) struct Relaying {
    /// Held while a broadcast is given to the host, so that two copies of it do not both find it new.
    pub(super) heard: tokio::sync::Mutex<Heard>,
    relays: Mutex<Relays>,
    dropped: AtomicU64,
    /// Keyed, so that no member can make up a message with the digest of another.
    digests: RandomState,
}

impl Relaying {
    /// A message in another's name was dropped: its sender does not lead.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// How many messages in another's name were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// A digest of a broadcast: what each relay passes on as it is.
    pub(super) fn digest(&self, message: &OutMessage, channel: u8) -> u64 {
        let OutMessage {
            payload,
            msg_type,
            flags,
        } = message;
        self.digests.hash_one((channel, msg_type, flags, payload))
    }

    pub(super) fn relays(&self) -> MutexGuard<'_, Relays> {
        // Nothing in there panics halfway through a change.
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
