//! Leader election by gossip, for Rust programs that bring their own messages.
//!
//! A room elects by itself; this module is for programs that already have peers and messages and need only a leader. It
//! runs the same core as a room under the gossip strategy ([`crate::core::election::gossip`]), after package
//! `gossip/election` of Hyperledger Fabric: no terms, no votes, no quorum. A peer that receives no declaration of a
//! leader proposes itself, and leads unless a peer with a lower id does; ids are compared as bytes. Every part of a
//! partitioned network has a leader, and one remains when the parts merge. Use it where a moment with two leaders does
//! no harm.
//!
//! A program implements [`LeaderElectionAdapter`] over its network and passes it to
//! [`LeaderElectionService::start`]. [`memory`] is such an adapter for peers of one process;
//! `examples/leader_service.rs` runs a service on the leader alone.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use crate::core::election::gossip;
use crate::core::id::Incarnation;

pub mod memory;
mod service;

pub use crate::core::election::gossip::{
    Claim, MAX_CREATORS, MAX_RESULTS, MAX_WINDOW, MIN_WINDOW, Order, WindowError, Windows,
};
pub use service::{Handle, LeaderElectionService, MetricsReporter, Settings, StartError};

/// Longest id of a service, in bytes.
pub const MAX_ID_BYTES: usize = 1024;
/// Limit of messages that wait for a peer: the capacity of its [`channel`]. Further ones are dropped, as on a lossy
/// network.
pub const MAX_QUEUED_MESSAGES: usize = 1024;

/// The name of a peer: bytes, compared as bytes. Shown in hexadecimal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PeerId(Vec<u8>);

impl PeerId {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// An optional id as text: `<nil>` for `None`.
    pub fn printed(id: Option<&Self>) -> String {
        id.map_or_else(|| "<nil>".to_owned(), Self::to_string)
    }
}

impl<B: Into<Vec<u8>>> From<B> for PeerId {
    fn from(bytes: B) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A remote peer.
pub trait Peer {
    /// Its name.
    fn id(&self) -> &PeerId;
}

impl Peer for PeerId {
    fn id(&self) -> &PeerId {
        self
    }
}

/// A message of a peer: a proposal (it would lead) or a declaration (it leads).
///
/// A message that is neither is dropped, and one that is both counts as a proposal.
pub trait Msg {
    /// The sender. The adapter guarantees it.
    fn sender_id(&self) -> &PeerId;
    /// Whether it is a proposal.
    fn is_proposal(&self) -> bool;
    /// Whether it is a declaration.
    fn is_declaration(&self) -> bool;
    /// Its place among all messages of its sender: a message that is not newer than an earlier one is dropped.
    /// [`MessageCreator`] numbers messages.
    fn order(&self) -> Order;
}

/// The message of the core, for adapters without a type of their own. A network must carry its fields.
pub type Message = gossip::Message<PeerId>;

impl Msg for Message {
    fn sender_id(&self) -> &PeerId {
        &self.from
    }

    fn is_proposal(&self) -> bool {
        self.claim == Claim::Proposal
    }

    fn is_declaration(&self) -> bool {
        self.claim == Claim::Declaration
    }

    fn order(&self) -> Order {
        self.order
    }
}

/// Makes the numbered messages of one incarnation of a peer.
#[derive(Debug)]
pub struct MessageCreator {
    id: PeerId,
    sequencer: Mutex<gossip::Sequencer>,
}

impl MessageCreator {
    /// For an incarnation that begins now. A later one of the same peer must read a later clock. Otherwise its messages
    /// count as old until the last ones before it are forgotten (ten alive thresholds).
    pub fn new(id: PeerId) -> Self {
        /// Distinguishes incarnations of one process and one instant.
        static LIVES: AtomicU64 = AtomicU64::new(0);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_us = clock.map_or(0, |since| {
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        });
        let incarnation = Incarnation {
            started_us,
            random: LIVES.fetch_add(1, Ordering::Relaxed),
        };
        Self {
            id,
            sequencer: Mutex::new(gossip::Sequencer::new(incarnation)),
        }
    }

    /// The sender of these messages.
    pub fn id(&self) -> &PeerId {
        &self.id
    }

    /// The next message.
    pub fn create(&self, is_declaration: bool) -> Message {
        let sequencer = self.sequencer.lock();
        let order = sequencer
            .unwrap_or_else(PoisonError::into_inner)
            .next_order();
        Message {
            from: self.id.clone(),
            order,
            claim: if is_declaration {
                Claim::Declaration
            } else {
                Claim::Proposal
            },
        }
    }
}

/// The election's access to the other peers. The program implements it over its own network.
///
/// The service calls it from its own thread, one call at a time, and waits for each, so none may block for long. If one
/// panics, the service ends as if it had lost its leadership, and logs that.
pub trait LeaderElectionAdapter: Send + 'static {
    /// Its messages.
    type Msg: Msg + Send + 'static;
    /// Its peers.
    type Peer: Peer;

    /// Sends `message` to every other peer. The network may lose it.
    fn gossip(&self, message: Self::Msg);
    /// The receiver of other peers' messages. The service calls this once, when it starts. If the sender is dropped no
    /// more messages come, and the service continues without them.
    fn accept(&self) -> Receiver<Self::Msg>;
    /// A new message of this peer.
    fn create_message(&self, is_declaration: bool) -> Self::Msg;
    /// The other peers that are alive as far as this one knows. Messages of any other peer are dropped.
    fn peers(&self) -> Vec<Self::Peer>;
}

/// A bounded queue of incoming messages, for at least one message: the receiver for [`LeaderElectionAdapter::accept`],
/// and the sender for the adapter.
pub fn channel<M>(capacity: usize) -> (Sender<M>, Receiver<M>) {
    let (sender, receiver) = mpsc::channel(capacity.clamp(1, mpsc_limit()));
    (Sender(sender), Receiver(receiver))
}

/// Limit of the channel's capacity.
fn mpsc_limit() -> usize {
    tokio::sync::Semaphore::MAX_PERMITS
}

/// The adapter's end of the queue of incoming messages.
#[derive(Debug)]
pub struct Sender<M>(mpsc::Sender<M>);

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> Sender<M> {
    /// Queues a message, from any thread, without waiting. `false` if it was dropped: the queue is full, or the
    /// receiver is gone.
    pub fn send(&self, message: M) -> bool {
        self.0.try_send(message).is_ok()
    }
}

/// The service's end of the queue of incoming messages.
#[derive(Debug)]
pub struct Receiver<M>(mpsc::Receiver<M>);

impl<M> Receiver<M> {
    /// A waiting message, if there is one.
    pub fn try_receive(&mut self) -> Option<M> {
        self.0.try_recv().ok()
    }

    /// The next message; `None` when no more will come.
    async fn receive(&mut self) -> Option<M> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests;
