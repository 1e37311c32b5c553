//! State and commands that the host's threads and the network thread share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc as blocking;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};

use super::relay::Centralized;
use crate::config::{Config, TurnServer};
use crate::core::election::gossip::Windows;
use crate::core::id::{PeerId, SessionId};
use crate::core::node::{Command, CommandError};
use crate::dispatch::{Dispatch, EndReason, Event, Left, LeftReason};
use crate::glance::Glance;
use crate::net::cards::showing::Board;
use crate::net::outbox::Outboxes;
use crate::net::simulation::Simulation;
use crate::room_code::RoomCode;
use crate::snapshot::{PeerStatus, PeerView, Snapshot};
use crate::target::Target;
use crate::transfers::Transfers;

/// State that the host's threads and the network thread share.
pub(super) struct Shared {
    pub(super) peer_id: PeerId,
    pub(super) session_id: SessionId,
    /// The session id, in a room with relays.
    pub(super) room_code: Option<RoomCode>,
    pub(super) config: Config,
    pub(super) published: ArcSwap<Snapshot>,
    /// The latest room time that any thread has read, in microseconds.
    pub(super) room_time_read: AtomicU64,
    /// The values of the cheapest queries, if this is the room of the process.
    pub(super) glance: &'static Glance,
    pub(super) outboxes: Arc<Outboxes>,
    pub(super) dispatch: Arc<Dispatch>,
    pub(super) transfers: Arc<Transfers>,
    pub(super) centralized: Arc<Centralized>,
    /// Needs no limit: every call but `connect` waits for its answer, and `connect` has a limit of its own.
    pub(super) commands: mpsc::UnboundedSender<HostCommand>,
    pub(super) connects_running: AtomicUsize,
    /// Number of lock requests so far.
    pub(super) lock_requests: AtomicU64,
    pub(super) auto_reconnect: AtomicBool,
    /// The windows of the gossip strategy. Only the newest change waits for the network thread.
    pub(super) windows: watch::Sender<Windows>,
    /// Whether discovery has announced this node.
    pub(super) announced: Arc<AtomicBool>,
    /// The card that the host shows in the local network.
    pub(super) board: Board,
    /// The simulated bad network.
    pub(super) simulation: Arc<Simulation>,
}

impl Shared {
    /// The network thread has panicked: the host learns that its room is over.
    pub(super) fn end_after_a_panic(&self) {
        self.outboxes.shut();
        let last = self.published.load_full();
        let ended = Snapshot {
            strategy: last.strategy,
            room_time: last.room_time,
            ..Snapshot::default()
        };
        self.published.store(Arc::new(ended.clone()));
        self.glance.show(&ended);
        self.dispatch.push(Event::RoomEnded {
            why: EndReason::Internal,
            code: 0,
            bytes: Vec::new(),
        });
        let is_member = |peer: &&PeerView| {
            matches!(
                peer.status,
                PeerStatus::Connected | PeerStatus::Reconnecting
            )
        };
        self.transfers.close_all();
        for peer in last.peers.iter().filter(is_member) {
            let left = Left::new(peer.id.clone(), LeftReason::RoomEnded);
            self.dispatch.push(Event::Left(left));
        }
    }
}

/// The end of a session with a peer, and the reason that its host receives.
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

/// Command of a host thread to the network thread.
pub(super) enum HostCommand {
    /// Dial, and report the result.
    Connect { text: String, target: Target },
    /// End the session with a peer, after it has taken its queued messages.
    Disconnect(
        Disconnection,
        blocking::SyncSender<Result<(), CommandError>>,
    ),
    /// A command to the core, with the channel for its answer.
    Core(Command, blocking::SyncSender<Result<(), CommandError>>),
    /// Set the application's payload for entering a room.
    SetJoinPayload(Vec<u8>),
    /// Use these TURN servers from now on.
    SetTurn(Vec<TurnServer>),
    /// Leave the room and end.
    Leave,
    /// Panic, as a fault in the network thread does.
    #[cfg(test)]
    Panic,
    /// Count what the network thread holds.
    #[cfg(test)]
    Count(blocking::SyncSender<Census>),
}

/// Counts of the network thread's objects, for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) connections: usize,
    pub(super) sessions: usize,
    pub(super) links: usize,
    pub(super) departing: usize,
    pub(super) reserved: usize,
}
