//! The room for the host's threads: a handle whose calls never wait for the network.
//!
//! One network thread (`driver`) owns all state. Host threads read the published snapshot, put messages into
//! the bounded queues, and send commands.

mod admissions;
mod card;
mod centralized;
mod delivery;
mod dialling;
mod driver;
mod host_watch;
#[cfg(test)]
mod hostile;
mod live_node;
mod locks;
mod moderation;
mod opening;
mod refusals;
mod relay;
mod replication;
mod sessions;
mod shared;
mod state;
mod state_file;
mod store;
mod strangers;
mod timers;
mod trace;
mod transfers;
mod turn;
mod unconfirmed;
mod view;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use arc_swap::{ArcSwap, Guard};
use room_transport::identity;
use tokio::sync::{mpsc, watch};

use crate::clock::Moment;
use crate::config::{Config, EtcdSettings, Paths};
use crate::core::election::ElectionError;
use crate::core::election::gossip::{WindowError, Windows};
use crate::core::id::{Fingerprint, PeerId, SessionId};
use crate::core::node::{Command, CommandError};
use crate::core::wire::{HostMode, MAX_REASON_BYTES};
use crate::dispatch::{Dispatch, Event, FIRST_RECEIVE_HOLD, Limits};
use crate::error::{
    AutoElectionError, ConnectError, DisconnectError, NoKeyError, SendError, SetLeaderError,
    StartError,
};
use crate::glance::{self, Glance};
use crate::net::cards::showing::Board;
use crate::net::names;
use crate::net::outbox::{OutboxLimits, Outboxes, SenderRole};
use crate::net::socket::Bound;
use crate::room_code::RoomCode;
use crate::simulated::{SimulatedNetwork, SimulationError};
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::transfers::Transfers;

use opening::{Opened, Outside};
use shared::{Disconnection, HostCommand, Shared};
use state::RoomState;
use store::{Answers, Store};

pub use crate::net::cards::card::Card;
pub use crate::net::outbox::{
    DEFAULT_PRIORITY, OutMessage, PeerMeter, Reliable, SendMode, Unreliable,
};
pub use crate::transfers::{MAX_TAG_BYTES, MAX_TRANSFER_BYTES};
pub use locks::{MAX_LOCK_NAME_BYTES, MAX_PROCLAIMED_BYTES};
pub use state::StateInfo;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use state_file::check as check_state_file;

/// Connection attempts without a delivered result, at most.
pub const MAX_PENDING_CONNECTS: usize = 256;

/// Reason why a voter of a static quorum cannot be made the leader after its state file was lost or
/// replaced by an older copy.
const HAS_FORGOTTEN_VOTES: &str =
    "it may have forgotten votes, and stands again when it has received from all other voters";

/// Bytes of an identity key that [`fill_identity_key`] makes.
pub const IDENTITY_KEY_BYTES: usize = identity::PKCS8_KEY_BYTES;

/// Writes a new private key, as [`Config::identity_key`] takes it. No copy stays behind.
///
/// # Errors
/// [`NoKeyError`]; nothing is written then.
pub fn fill_identity_key(key: &mut [u8; IDENTITY_KEY_BYTES]) -> Result<(), NoKeyError> {
    let private = identity::generate_private().map_err(|error| NoKeyError {
        what: error.to_string(),
    })?;
    key.copy_from_slice(identity::pkcs8_of(&private).as_slice());
    Ok(())
}

/// Remains of a closed room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Nothing.
    Entirely,
    /// Perhaps threads that look up names. Each ends when the system's resolver returns; until then the
    /// library must stay in memory.
    ButForLookups,
}

/// A room, from its opening to its closing.
pub struct Room {
    shared: Arc<Shared>,
    bound: Bound,
    key: Fingerprint,
    state: Option<Arc<RoomState>>,
    network: Mutex<Option<JoinHandle<Closed>>>,
}

impl Room {
    /// Binds the socket and starts the threads.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn open(
        peer_id: PeerId,
        session_id: SessionId,
        config: Config,
    ) -> Result<Self, StartError> {
        let dispatch = Self::dispatch_for(&peer_id, &config)?;
        Self::open_with(
            peer_id,
            session_id,
            config,
            Arc::new(dispatch),
            &glance::UNREAD,
        )
    }

    /// Makes the queue to the host for a room that is not open yet.
    pub(crate) fn dispatch_for(peer_id: &PeerId, config: &Config) -> Result<Dispatch, StartError> {
        let limits = Limits {
            messages: config.incoming_queue_capacity,
            bytes: config.queue_bytes,
            hold: FIRST_RECEIVE_HOLD,
        };
        Dispatch::start(limits, peer_id.clone(), config.dispatch_mode).map_err(StartError::internal)
    }

    /// Opens a room on a queue of [`Room::dispatch_for`], which may already have its handlers. Its values at
    /// `glance` count once `glance` is attached.
    pub(crate) fn open_with(
        peer_id: PeerId,
        session_id: SessionId,
        config: Config,
        dispatch: Arc<Dispatch>,
        glance: &'static Glance,
    ) -> Result<Self, StartError> {
        let outside = Outside {
            start_store: store::start,
            lookup: names::system_lookup(),
        };
        Self::open_asking(peer_id, session_id, config, dispatch, glance, outside)
    }

    /// Opens a room with the given external store and resolver.
    fn open_asking(
        peer_id: PeerId,
        session_id: SessionId,
        config: Config,
        dispatch: Arc<Dispatch>,
        glance: &'static Glance,
        outside: Outside<
            impl FnOnce(EtcdSettings, Answers) -> Result<Box<dyn Store>, StartError> + Send + 'static,
        >,
    ) -> Result<Self, StartError> {
        let room_code = match config.relays.is_empty() {
            true => None,
            false => Some(RoomCode::parse(session_id.as_str())?),
        };
        let session_id = match &room_code {
            Some(code) => SessionId::new(code.as_str()).map_err(StartError::internal)?,
            None => session_id,
        };
        let (commands, command_queue) = mpsc::unbounded_channel();
        let outboxes = Outboxes::new(OutboxLimits {
            messages: config.send_queue_capacity,
            bytes: config.queue_bytes,
        });
        outboxes.set_compression_threshold(config.compression_threshold);
        let transfers = Transfers::new(peer_id.clone(), Arc::clone(&dispatch));
        let shared = Arc::new(Shared {
            auto_reconnect: AtomicBool::new(config.auto_reconnect_enabled),
            windows: watch::Sender::new(config.windows),
            outboxes: Arc::new(outboxes),
            centralized: Arc::new(relay::Centralized::new(config.centralized_auto_forward)),
            peer_id,
            session_id,
            room_code,
            config,
            published: ArcSwap::default(),
            room_time_read: AtomicU64::new(0),
            glance,
            transfers: Arc::new(transfers),
            dispatch,
            commands,
            connects_running: AtomicUsize::new(0),
            lock_requests: AtomicU64::new(0),
            announced: Arc::default(),
            board: Board::new(None),
            simulation: Arc::default(),
        });
        let (started, start) = blocking::sync_channel(1);
        let network = thread::Builder::new()
            .name("mmn-network".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || opening::run(shared, command_queue, &started, outside)
            })
            .map_err(StartError::internal)?;
        match start.recv() {
            Ok(Ok(Opened { bound, key, state })) => Ok(Self {
                shared,
                bound,
                key,
                state,
                network: Mutex::new(Some(network)),
            }),
            Ok(Err(error)) => {
                join(network);
                Err(error)
            }
            Err(_) => {
                join(network);
                Err(StartError::internal("the network thread ended at once"))
            }
        }
    }

    /// Begins to leave: no message is accepted any more, the accepted ones are sent for up to 1 s, and the peers learn of
    /// the end. Does not wait. [`Room::close`] must follow.
    pub fn begin_to_leave(&self) {
        self.shared.outboxes.shut();
        self.shared.transfers.shut();
        // Fails only if the network thread has ended.
        let _ = self.shared.commands.send(HostCommand::Leave);
    }

    /// Leaves the room and releases everything. When it returns, no callback of the room runs, and no thread remains
    /// but those of [`Closed::ButForLookups`]. Takes at most 2 s for the network, and waits for a running callback.
    pub fn close(&self) -> Closed {
        self.begin_to_leave();
        let network = self
            .network
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let closed = network.map_or(Closed::Entirely, join);
        self.shared.dispatch.stop();
        closed
    }

    /// This node's id.
    pub fn peer_id(&self) -> &PeerId {
        &self.shared.peer_id
    }

    /// The room's id.
    pub fn session_id(&self) -> &SessionId {
        &self.shared.session_id
    }

    /// The fingerprint of this node's key.
    pub fn key(&self) -> Fingerprint {
        self.key
    }

    /// The last published snapshot of the room. Never waits for the network thread.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.shared.published.load()
    }

    /// The room's time in microseconds. It never goes back, whichever threads read it. Never waits for the network thread.
    pub fn room_time_us(&self) -> u64 {
        let time = self.snapshot().room_time;
        let time = time.map_or(0, |time| time.at(Moment::now()));
        // A thread that has read an older snapshot may be a little ahead of the newer one.
        let before = self
            .shared
            .room_time_read
            .fetch_max(time, Ordering::Relaxed);
        before.max(time)
    }

    /// An address that another peer can dial.
    pub fn local_address(&self) -> SocketAddr {
        self.bound.best_address()
    }

    /// The addresses that another peer can dial, best first, each with the name of its interface.
    pub fn local_addresses(&self) -> Vec<(SocketAddr, String)> {
        self.bound.named_addresses()
    }

    /// Whether discovery announces this node in the local network.
    pub fn is_announced(&self) -> bool {
        self.shared.announced.load(Ordering::Relaxed)
    }

    /// Longest message that this node may send, in bytes; a peer may accept less.
    pub fn max_message_size(&self) -> usize {
        self.shared.config.max_message_size
    }

    /// The queue to the host.
    pub fn dispatch(&self) -> &Dispatch {
        &self.shared.dispatch
    }

    /// Dials `target`. Exactly one ConnectionResult event with `text` follows.
    ///
    /// # Errors
    /// [`ConnectError`]; no event follows then.
    pub fn connect(&self, text: &str, target: Target) -> Result<(), ConnectError> {
        if self.shared.config.paths == Paths::Relayed {
            return Err(ConnectError::Relayed);
        }
        if let Some(address) = target.socket_addr()
            && self.bound.is_own(address)
        {
            return Err(ConnectError::OwnAddress { address });
        }
        let running = self.shared.connects_running.load(Ordering::Relaxed);
        let undelivered = self
            .shared
            .dispatch
            .undelivered(|event| matches!(event, Event::ConnectionResult(_)));
        if running + undelivered >= MAX_PENDING_CONNECTS {
            return Err(ConnectError::TooManyPending {
                limit: MAX_PENDING_CONNECTS,
            });
        }
        self.shared.connects_running.fetch_add(1, Ordering::Relaxed);
        let command = HostCommand::Connect {
            text: text.to_owned(),
            target,
        };
        self.shared
            .commands
            .send(command)
            .map_err(|_| ConnectError::NotInitialized)
    }

    /// Ends the session with `peer`, until one of the two connects by hand. Its queue accepts nothing more,
    /// and accepted messages get a second to be delivered. An unknown peer is no error.
    ///
    /// # Errors
    /// [`DisconnectError`]; nothing has changed then.
    pub fn disconnect(&self, peer: &PeerId) -> Result<(), DisconnectError> {
        self.disconnect_with(peer, 0, &[])
    }

    /// [`Room::disconnect`]; the peer's host receives `code` and `bytes`, at most [`MAX_REASON_BYTES`].
    ///
    /// # Errors
    /// [`DisconnectError`]; nothing has changed then.
    pub fn disconnect_with(
        &self,
        peer: &PeerId,
        code: i32,
        bytes: &[u8],
    ) -> Result<(), DisconnectError> {
        let (len, max) = (bytes.len(), MAX_REASON_BYTES);
        if len > max {
            return Err(DisconnectError::ReasonTooLong { len, max });
        }
        let disconnection = Disconnection {
            peer: peer.clone(),
            code,
            bytes: bytes.to_vec(),
        };
        match self.ask(|answer| HostCommand::Disconnect(disconnection, answer)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(DisconnectError::Myself { id: peer.clone() }),
            None => Err(DisconnectError::NotInitialized),
        }
    }

    /// Sets the leader. This node's snapshot shows it when the call returns.
    ///
    /// # Errors
    /// [`SetLeaderError`]; nothing has changed then.
    pub fn set_leader(&self, peer: &PeerId) -> Result<(), SetLeaderError> {
        match self.command(Command::SetLeader(peer.clone())) {
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::Election(error))) => Err(match error {
                ElectionError::UnknownTarget(id) => SetLeaderError::PeerNotFound { id },
                ElectionError::IneligibleTarget(_) if self.has_fixed_host() => {
                    SetLeaderError::FixedHost
                }
                ElectionError::IneligibleTarget(id) => SetLeaderError::Rejected {
                    id,
                    reason: "it is an observer",
                },
                ElectionError::StaleTarget(id) => SetLeaderError::Rejected {
                    id,
                    reason: HAS_FORGOTTEN_VOTES,
                },
                ElectionError::NotLeader => SetLeaderError::NotLeader,
                ElectionError::NoLeader => SetLeaderError::NoLeader,
                ElectionError::NotSupported { strategy } => {
                    SetLeaderError::NotSupported { strategy }
                }
                ElectionError::NoSuccessor
                | ElectionError::Violation(_)
                | ElectionError::TooLarge { .. } => SetLeaderError::Internal {
                    what: error.to_string(),
                },
            }),
            Some(Err(error)) => Err(SetLeaderError::Internal {
                what: error.to_string(),
            }),
            None => Err(SetLeaderError::NotInitialized),
        }
    }

    fn has_fixed_host(&self) -> bool {
        self.shared.config.host_mode != HostMode::Off
    }

    /// Allows or forbids campaigns of this node.
    ///
    /// # Errors
    /// [`AutoElectionError`]; nothing has changed then.
    pub fn enable_auto_election(&self, enabled: bool) -> Result<(), AutoElectionError> {
        match self.command(Command::EnableAutoElection(enabled)) {
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::Election(ElectionError::NotSupported { strategy }))) => {
                Err(AutoElectionError::NotSupported { strategy })
            }
            Some(Err(error)) => Err(AutoElectionError::Internal {
                what: error.to_string(),
            }),
            None => Err(AutoElectionError::NotInitialized),
        }
    }

    /// The windows of the gossip strategy.
    pub fn windows(&self) -> Windows {
        *self.shared.windows.borrow()
    }

    /// Sets the windows of the gossip strategy; each applies from its next start on. No effect with
    /// another strategy. Does not wait.
    ///
    /// # Errors
    /// [`WindowError`]; nothing has changed then.
    pub fn set_windows(&self, windows: Windows) -> Result<(), WindowError> {
        windows.check()?;
        self.shared.windows.send_if_modified(|present| {
            let changes = *present != windows;
            *present = windows;
            changes
        });
        Ok(())
    }

    /// Compresses payloads longer than `bytes` from now on, if that makes them shorter.
    pub fn set_compression_threshold(&self, bytes: usize) {
        self.shared.outboxes.set_compression_threshold(bytes);
    }

    /// Delays and drops packets that this node sends from now on, on purpose; the default value ends that. Does not wait.
    ///
    /// # Errors
    /// [`SimulationError`]; nothing has changed then.
    pub fn simulate_network(&self, network: SimulatedNetwork) -> Result<(), SimulationError> {
        network.check()?;
        self.shared.simulation.set(network);
        Ok(())
    }

    /// Broadcasts of this node that members without a link to it did not get, one for each of them: one of both has reached
    /// its `max_connections`.
    pub fn missed_broadcasts(&self) -> u64 {
        self.shared.outboxes.missed_broadcasts()
    }

    /// Figures of the link to a peer and of the queue to it; `None` for a peer that is not known.
    pub fn peer_meter(&self, peer: &PeerId) -> Option<PeerMeter> {
        self.shared.outboxes.meter(peer)
    }

    /// Queues `message` for every connected peer, or for none. In centralized mode it goes through the leader.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn broadcast(&self, message: OutMessage) -> Result<(), SendError> {
        self.broadcast_with(&message, SendMode::default(), false)?;
        Ok(())
    }

    /// Queues `message` for `peer`; a message to this node itself is delivered locally.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send_to(&self, peer: &PeerId, message: OutMessage) -> Result<(), SendError> {
        self.send_with(peer, message, SendMode::default())
    }

    /// Queues `message` for the leader; if this node leads, it is delivered locally.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send_to_leader(&self, message: OutMessage) -> Result<(), SendError> {
        self.send_to_leader_with(message, SendMode::default())
    }

    /// Queues `message` for every connected peer, or for none, with the token of this node's
    /// leadership.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send_from_leader(&self, message: &OutMessage, how: Reliable) -> Result<(), SendError> {
        let token = self.snapshot().leader_token_at(Moment::now).cloned();
        let role = SenderRole::Leader(token.ok_or(SendError::NotLeader)?);
        let outboxes = &self.shared.outboxes;
        outboxes.broadcast(message, &role, how)?;
        Ok(())
    }

    fn deliver_here(
        &self,
        from: &PeerId,
        message: OutMessage,
        how: Reliable,
    ) -> Result<(), SendError> {
        let incoming = message.into_incoming(from.clone(), how.channel, how.delivery());
        self.shared
            .dispatch
            .try_push_message(incoming)
            .map_err(|_| SendError::OwnQueueFull)
    }

    /// Sends a command to the network thread and waits for its answer, which does not depend on the network.
    /// `None` if the room is closing.
    fn command(&self, command: Command) -> Option<Result<(), CommandError>> {
        self.ask(|answer| HostCommand::Core(command, answer))
    }

    fn ask(
        &self,
        command: impl FnOnce(blocking::SyncSender<Result<(), CommandError>>) -> HostCommand,
    ) -> Option<Result<(), CommandError>> {
        let (answer, answered) = blocking::sync_channel(1);
        self.shared.commands.send(command(answer)).ok()?;
        answered.recv().ok()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.close();
    }
}

fn join(network: JoinHandle<Closed>) -> Closed {
    network.join().unwrap_or_else(|_| {
        tracing::error!("the network thread panicked");
        Closed::ButForLookups
    })
}
