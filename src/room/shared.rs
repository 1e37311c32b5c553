//! What the host's threads and the network thread share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc as blocking;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};

use super::relay::Centralized;
use crate::config::Config;
use crate::core::election::gossip::Windows;
use crate::core::id::{PeerId, SessionId};
use crate::core::node::{Command, CommandError};
use crate::dispatch::Dispatch;
use crate::glance::Glance;
use crate::net::outbox::Outboxes;
use crate::net::simulation::Simulation;
use crate::snapshot::Snapshot;
use crate::target::Target;

/// What the host's threads share with the network thread.
pub(super) struct Shared {
    pub(super) peer_id: PeerId,
    pub(super) session_id: SessionId,
    pub(super) config: Config,
    pub(super) published: ArcSwap<Snapshot>,
    /// The same for the cheapest queries, where this is the room of the process.
    pub(super) glance: &'static Glance,
    pub(super) outboxes: Arc<Outboxes>,
    pub(super) dispatch: Arc<Dispatch>,
    pub(super) centralized: Arc<Centralized>,
    /// Not bounded by itself: every call but `connect` waits for its answer, and these are limited.
    pub(super) commands: mpsc::UnboundedSender<HostCommand>,
    pub(super) connects_running: AtomicUsize,
    /// How many calls for locks there were.
    pub(super) lock_requests: AtomicU64,
    pub(super) auto_reconnect: AtomicBool,
    /// The windows of the gossip strategy. However often they are changed, the newest alone wait for the network
    /// thread.
    pub(super) windows: watch::Sender<Windows>,
    /// Whether discovery has announced this node.
    pub(super) announced: Arc<AtomicBool>,
    /// The bad network of developers.
    pub(super) simulation: Arc<Simulation>,
}

/// The end of the session with a peer, and what its host is told.
pub(super) struct Disconnection {
    pub(super) peer: PeerId,
    pub(super) code: i32,
    pub(super) bytes: Vec<u8>,
}

impl From<Disconnection> for Command {
    fn from(Disconnection { peer, code, bytes }: Disconnection) -> Self {
        Self::Disconnect { peer, code, bytes }
    }
}

/// What a host thread asks of the network thread.
pub(super) enum HostCommand {
    /// Dial, and tell how it ended.
    Connect { text: String, target: Target },
    /// End the session with a peer, after it has taken what is queued for it.
    Disconnect(
        Disconnection,
        blocking::SyncSender<Result<(), CommandError>>,
    ),
    /// A command to the core, with the way back of its answer.
    Core(Command, blocking::SyncSender<Result<(), CommandError>>),
    /// What this application says from now on when it enters a room.
    SetJoinPayload(Vec<u8>),
    /// Leave the room and end.
    Leave,
    /// Count what the network thread holds.
    #[cfg(test)]
    Count(blocking::SyncSender<Census>),
}

/// How much of everything there is, for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) connections: usize,
    pub(super) sessions: usize,
    pub(super) links: usize,
    pub(super) departing: usize,
    pub(super) reserved: usize,
}
