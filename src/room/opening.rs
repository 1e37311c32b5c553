//! Opening of a room: its key, socket, core, and the tasks that accept links.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use quinn::{Endpoint, EndpointConfig};
use ring::rand::{SecureRandom, SystemRandom};
use room_transport::identity::{Identity, server_config};
use room_transport::quic::{accepted_idle_timeout, accepting_transport_config, transport_config};
use room_transport::rendezvous::Locator;
use room_transport::timers::Timers;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::Closed;
use super::admissions::{Admissions, KickReasons};
use super::card;
use super::dialling::Dialling;
use super::driver::{Driver, Queues};
use super::host_watch::HostWatch;
#[cfg(test)]
use super::hostile::cut::CuttableRuntime;
use super::live_node::{LiveNode, RoomClock, since_1970};
use super::refusals::Refusals;
use super::relay::Broadcasts;
use super::replication::{self, Replication};
use super::sessions::Sessions;
use super::shared::{HostCommand, Shared};
use super::state::RoomState;
use super::state_file::{StateFile, StateWriter, new_incarnation, take_member};
use super::store::{Answers, Store};
use super::strangers::Strangers;
use super::timers::TimerTable;
use super::trace::Trace;
use super::unconfirmed::Unconfirmed;
use crate::clock::Moment;
use crate::config::{Config, DiscoveryMode, EtcdSettings, ManualOverrideRecovery, Paths};
use crate::core::election::etcd::EtcdConfig;
use crate::core::election::guards::Guards;
use crate::core::election::{ElectionConfig, Recovery};
use crate::core::id::Fingerprint;
use crate::core::introductions::Reconnect;
use crate::core::node::{Node, NodeConfig, heeds_closed_ports};
use crate::core::time::Time;
use crate::core::wire::{Opaque, RoomPolicy, Strategy};
use crate::current_room;
use crate::error::StartError;
use crate::fork;
use crate::net::admission::RoomProof;
use crate::net::cards::showing::{Showing, ShowingContext};
use crate::net::closed_ports;
use crate::net::dial::{Connector, DialLocks};
use crate::net::discovery::{Discovery, DiscoveryConfig, Found, RoomKey, no_discovery};
use crate::net::events::{EVENT_QUEUE, LinkContext};
use crate::net::in_progress::InProgress;
use crate::net::mapping::Mapper;
use crate::net::names::{self, Lookup, Names};
use crate::net::rebinding::{self, rebind_what_fails};
use crate::net::relay_requests::RelayRequests;
use crate::net::rendezvous::{self, Entrance, relayed_idle_timeout};
use crate::net::socket::{self, Bound};
use crate::net::tries::{Direction, Tries};
use crate::net::tunnel::{Tunnels, relayed_transport_config, tunnel_transport_config};
use crate::net::turn::Turn;
use crate::net::udp::UdpRuntime;
use crate::net::unanswered::Unanswered;
use crate::room_code::RoomCode;
use crate::state::ballot::MemberId;
use crate::state::replica::Replica;

/// Questions of admissions that may wait.
const ASK_QUEUE: usize = 64;
/// Reports of discovery that may wait for the network thread.
const FOUND_QUEUE: usize = 64;
/// Reports of relays that may wait for the network thread.
const RELAY_QUEUE: usize = 64;

/// Result of opening a room.
pub(super) struct Opened {
    pub(super) bound: Bound,
    /// The fingerprint of this node's key.
    pub(super) key: Fingerprint,
    /// The room's state, if it has one.
    pub(super) state: Option<Arc<RoomState>>,
}

/// Services outside of the library that a room uses.
pub(super) struct Outside<S> {
    /// Starts the external store, if the strategy uses one.
    pub(super) start_store: S,
    /// Resolves host names.
    pub(super) lookup: Lookup,
}

/// Runs the network thread. Reports through `started` the bound address, or why the room is not open.
/// Returns what is left of the room.
pub(super) fn run<S>(
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<HostCommand>,
    started: &blocking::SyncSender<Result<Opened, StartError>>,
    outside: Outside<S>,
) -> Closed
where
    S: FnOnce(EtcdSettings, Answers) -> Result<Box<dyn Store>, StartError>,
{
    fork::enter_own_thread();
    current_room::set(shared.dispatch.room());
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            // The opener waits for this one message.
            let _ = started.send(Err(StartError::internal(error)));
            return Closed::Entirely;
        }
    };
    let elects_elsewhere = shared.config.etcd.is_some();
    let broken = Arc::clone(&shared);
    let limit = runtime.block_on(async {
        match open(shared, commands, outside) {
            Ok((driver, opened)) => {
                let _ = started.send(Ok(opened));
                // A task of its own: waking the future that `block_on` runs takes a system call each time.
                // The task is never aborted, and a panic in it is already logged.
                let ended = tokio::spawn(driver.run()).await;
                ended.inspect_err(|_| broken.end_after_a_panic()).ok()
            }
            Err(error) => {
                let _ = started.send(Err(error));
                None
            }
        }
    });
    let mut are_running = false;
    if elects_elsewhere {
        // The client of the external store looks up names on threads of the runtime, again and again.
        let limit = limit.unwrap_or_else(Instant::now);
        runtime.shutdown_timeout(limit.saturating_duration_since(Instant::now()));
        are_running = Instant::now() >= limit;
    } else {
        drop(runtime);
    }
    match are_running || names::are_running() {
        true => Closed::ButForLookups,
        false => Closed::Entirely,
    }
}

fn open<S>(
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<HostCommand>,
    outside: Outside<S>,
) -> Result<(Driver, Opened), StartError>
where
    S: FnOnce(EtcdSettings, Answers) -> Result<Box<dyn Store>, StartError>,
{
    let config = &shared.config;
    if let Some(roster) = config.quorum.roster()
        && config.seeding.is_seed
        && !roster.contains(&shared.peer_id)
    {
        let peer = shared.peer_id.clone();
        return Err(StartError::SeedWithoutVote { peer });
    }
    let now = new_incarnation(draw()?);
    let (identity, state_file, mut kept) = take_member(&shared, now)?;
    let incarnation = state_file.as_ref().map_or(now, StateFile::incarnation);
    let transport = Arc::new(transport_config());
    let idle_timeout = accepted_idle_timeout(config.heartbeat_timeout());
    let relayed_idle_timeout = relayed_idle_timeout(idle_timeout);
    let accepting = Arc::new(accepting_transport_config(idle_timeout));
    let server = server_config(&identity, accepting).map_err(StartError::internal)?;
    let udp = socket::bind(config.bind_address, config.bind_port).map_err(|source| {
        let ip = config.bind_address;
        let ip = ip.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
        StartError::Bind {
            address: SocketAddr::new(ip, config.bind_port),
            source,
        }
    })?;
    let bound = Bound {
        address: config.bind_address,
        port: udp
            .local_addr()
            .map_err(|source| StartError::Socket { source })?
            .port(),
    };
    let tunnels = Arc::new(Tunnels::new(
        identity.fingerprint(),
        config.carry_bytes_per_second,
    ));
    let (failed, failures) = rebinding::reports();
    let unanswered = Arc::<Unanswered>::default();
    let (refused, refused_packets) = closed_ports::reports();
    let runtime = UdpRuntime {
        unanswered: Arc::clone(&unanswered),
        timers: Timers::start(),
        simulation: Arc::clone(&shared.simulation),
        tunnels: Arc::clone(&tunnels),
        seed: draw()?,
        failed,
        refused: heeds_closed_ports(config.strategy, &config.quorum, config.host_mode)
            .then_some(refused),
    };
    #[cfg(test)]
    let runtime = CuttableRuntime(runtime);
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(server),
        udp,
        Arc::new(runtime),
    )
    .map_err(|source| StartError::Socket { source })?;
    let rebound = Arc::<Notify>::default();
    let rebinds = rebind_what_fails(endpoint.clone(), bound, failures, Arc::clone(&rebound));
    tokio::spawn(rebinds);

    let wall_clock = since_1970();
    // Empty if the strategy had nothing to store yet.
    let saved = Some(kept.strategy.clone()).filter(|saved| !saved.as_bytes().is_empty());
    let core = Node::new(
        shared.peer_id.clone(),
        incarnation,
        node_config(&shared, &identity, bound, wall_clock, saved),
        draw()?,
        Time::ZERO,
    );
    let core = match &state_file {
        Some(file) => {
            let core = core.map_err(|_| file.not_understood())?;
            kept.strategy = core.first_state().unwrap_or(kept.strategy);
            file.keep(&kept)?;
            core
        }
        None => core.map_err(StartError::internal)?,
    };
    let me = MemberId {
        peer: shared.peer_id.clone(),
        incarnation,
    };
    let clock = RoomClock::starting_at(Moment::now());
    let replication = config.state.map(|options| {
        let settings = replication::settings(config, &core, options, member_hold(config));
        let saved = replication::read(&kept.log).ok_or_else(|| match &state_file {
            Some(file) => file.not_understood().into(),
            None => StartError::internal("the log has no state without a file"),
        })?;
        let replica = Replica::new(me, settings, saved, draw()?);
        let state = Arc::new(RoomState::new(replica, clock));
        shared.dispatch.set_state(Arc::clone(&state) as _);
        Ok::<_, StartError>(Replication::new(state))
    });
    let replication = replication.transpose()?;
    let trace = match &config.trace_path {
        Some(path) => {
            let opened = Trace::open(path, Time::ZERO, &core);
            opened.map_err(|source| StartError::TracePath {
                path: path.clone(),
                source,
            })?
        }
        None => Trace::default(),
    };
    let node = LiveNode::new(core, clock, wall_clock, trace);

    let (answers_in, answers) = mpsc::unbounded_channel();
    let store = config.etcd.as_ref();
    let store = store.map(|etcd| (outside.start_store)(etcd.settings.clone(), answers_in));
    let store = store.transpose()?;

    let key = identity.fingerprint();
    let names = Arc::new(Names::new(outside.lookup));
    let (relays, relay_requests) = RelayRequests::of(config.relays.len());
    let (asks_in, asks) = mpsc::channel(ASK_QUEUE);
    let gate = Arc::new(Connector {
        endpoint,
        proof: RoomProof {
            session: shared.session_id.clone(),
            secret: config.secret.clone(),
            own_key: key,
        },
        identity,
        transport,
        unanswered,
        idle_timeout,
        relayed_idle_timeout,
        tunnel_transport: Arc::new(tunnel_transport_config()),
        relayed_transport: Arc::new(relayed_transport_config(relayed_idle_timeout)),
        is_relayed_only: config.paths == Paths::Relayed,
        relays,
        tunnels: Arc::clone(&tunnels),
        asks: asks_in,
        handshake_timeout: config.handshake_timeout,
        dials: DialLocks::default(),
        in_progress: InProgress::default(),
        tries_in: Tries::new(Direction::In),
        tries_out: Tries::new(Direction::Out),
    });
    tokio::spawn(Arc::clone(&gate).accept_all());
    let (relay_news, relay_reports) = mpsc::channel(RELAY_QUEUE);
    let locator = shared.room_code.clone().map(derive_locator);
    if let Some(locator) = &locator {
        let entrance = Entrance {
            gate: Arc::clone(&gate),
            names: Arc::clone(&names),
            bound,
            hidden: config.is_star_guest(),
            seed: draw()?,
            news: relay_news,
        };
        rendezvous::start(&config.relays, locator.clone(), entrance, relay_requests);
    }
    let (found, discovered) = mpsc::channel(FOUND_QUEUE);
    let discovery = start_discovery(&shared, bound, &gate, found, locator);
    let (mapper, mapping) = match config.port_mapping && !config.is_star_guest() {
        true => Mapper::start(bound, Arc::clone(&rebound), draw()?),
        false => (None, mpsc::channel(1).1),
    };
    let (turn, turn_reports) = Turn::start(
        &config.turn,
        bound,
        Arc::clone(&names),
        Arc::clone(&tunnels),
        draw()?,
    );
    let context = ShowingContext {
        identity: gate.identity.clone(),
        bound,
        session: shared.session_id.clone(),
        needs_secret: config.secret.is_some(),
        standing: Box::new({
            let shared = Arc::clone(&shared);
            move || card::standing(&shared)
        }),
    };
    let showing = Showing::start(context, &shared.board);
    let (events, link_events) = mpsc::channel(EVENT_QUEUE);
    let link_context = LinkContext {
        outboxes: Arc::clone(&shared.outboxes),
        dispatch: Arc::clone(&shared.dispatch),
        relaying: Arc::clone(&shared.centralized.relaying),
        tunnels: Arc::clone(&tunnels),
        transfers: Arc::clone(&shared.transfers),
        events,
        budget: Arc::default(),
        has_state: config.state.is_some(),
        max_message_size: config.max_message_size,
        write_timeout: config.write_timeout,
    };
    let (writer, persisted) = match state_file {
        Some(file) => {
            let (writer, persisted) = StateWriter::start(file, kept);
            (Some(writer), persisted)
        }
        None => (None, mpsc::unbounded_channel().1),
    };
    let (dial_done, dials) = mpsc::unbounded_channel();
    let (flushed, disconnects) = mpsc::unbounded_channel();
    let centralized = Arc::clone(&shared.centralized);
    let host_watch = HostWatch::new(shared.config.dispatch_mode);
    let mut driver = Driver {
        node,
        sessions: Sessions::new(shared.peer_id.clone(), link_context),
        admissions: Admissions::default(),
        attaching: Vec::new(),
        kick_reasons: KickReasons::default(),
        refusals: Refusals::default(),
        dialling: Dialling::new(Arc::clone(&gate), names, bound, dial_done),
        strangers: Strangers::default(),
        broadcasts: Broadcasts::new(centralized, Arc::clone(&shared.outboxes)),
        unconfirmed: Unconfirmed::default(),
        timers: TimerTable::default(),
        queues: Queues {
            commands,
            windows: shared.windows.subscribe(),
            asks,
            link_events,
            dials,
            disconnects,
            discovered,
            refused_packets,
            relays: relay_reports,
            mapping,
            turn: turn_reports,
            persisted,
            answers,
        },
        flushed,
        gate,
        tunnels,
        listen_port: bound.port,
        discovery,
        mapper,
        turn: Some(turn),
        showing: Some(showing),
        writer,
        replication,
        store,
        join_payload: Vec::new(),
        host_watch,
        leave_asked: false,
        departed: false,
        publishes_later: false,
        is_unpublished: false,
        shared,
    };
    // Queries get answers as soon as the room is open, and a fixed host leads already.
    driver.carry_out();
    let state = driver.replication.as_ref().map(Replication::state);
    Ok((driver, Opened { bound, key, state }))
}

fn draw() -> Result<u64, StartError> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| StartError::internal("the system's random generator failed"))?;
    Ok(u64::from_le_bytes(bytes))
}

fn node_config(
    shared: &Shared,
    identity: &Identity,
    bound: Bound,
    wall_clock: Duration,
    saved: Option<Opaque>,
) -> NodeConfig {
    let config = &shared.config;
    NodeConfig {
        heartbeat_interval: config.heartbeat_interval,
        election: election_config(config, bound),
        max_connections: config.max_connections,
        max_peers: config.max_peers,
        auto_reconnect: config.auto_reconnect_enabled,
        reconnect: Reconnect {
            initial: config.reconnect_initial,
            max: config.reconnect_max,
            max_retries: config.reconnect_max_retries,
        },
        member_hold: member_hold(config),
        handshake_timeout: config.handshake_timeout,
        yield_after: config.yield_after,
        ask_host: false,
        wall_clock,
        saved,
        key: identity.fingerprint(),
        addresses: bound.addresses(),
        relayed_only: config.paths == Paths::Relayed,
    }
}

fn election_config(config: &Config, bound: Bound) -> ElectionConfig {
    let own = bound.addresses().first().copied();
    let own = own.map_or_else(String::new, |address| address.to_string());
    let mut seeding = config.seeding.clone();
    if seeding.address.is_empty() {
        seeding.address.clone_from(&own);
    }
    let etcd = config.etcd.as_ref();
    let mut etcd = etcd.map_or_else(EtcdConfig::default, |etcd| etcd.election.clone());
    if etcd.address.is_empty() {
        etcd.address.clone_from(&own);
    }
    ElectionConfig {
        policy: RoomPolicy {
            strategy: config.strategy,
            quorum: config.quorum.policy(),
            merge: config.merge_policy,
            authority: config.authority,
            host_mode: config.host_mode,
            topology: config.topology,
        },
        quorum: config.quorum.clone(),
        heartbeat_timeout: config.heartbeat_timeout(),
        election_timeout_min: config.election_timeout_min,
        election_timeout_max: config.election_timeout_max,
        entry: config.entry,
        auto_election: config.auto_election_enabled,
        eligible: config.eligible,
        priority: config.priority,
        recovery: match config.manual_override_recovery {
            ManualOverrideRecovery::Hold => Recovery::Hold,
            ManualOverrideRecovery::AutoElect => Recovery::AutoElect,
        },
        windows: config.windows,
        seeding,
        etcd,
        guards: Guards::ALL,
    }
}

/// Time for which a lost member's place is kept. In a seeded cluster at least until the leader has removed
/// the member, so that no host receives LEFT before that.
fn member_hold(config: &Config) -> Duration {
    let removed_after = match config.strategy {
        Strategy::Seeded(rules) => {
            let ttl = Duration::from_millis(rules.intervals.ttl_timeout_ms.into());
            ttl + Duration::from_millis(rules.intervals.probe_interval_ms.into()) * 2
        }
        _ => Duration::ZERO,
    };
    config.member_hold.max(removed_after)
}

/// Derives the locator of a code on another thread. The receiver's value is `None` until then.
fn derive_locator(code: RoomCode) -> watch::Receiver<Option<Locator>> {
    let (derived, locator) = watch::channel(None);
    tokio::task::spawn_blocking(move || derived.send_replace(Some(code.locator())));
    locator
}

/// Starts discovery as configured. A room works without it.
fn start_discovery(
    shared: &Shared,
    bound: Bound,
    gate: &Arc<Connector>,
    found: mpsc::Sender<Found>,
    locator: Option<watch::Receiver<Option<Locator>>>,
) -> Option<Discovery> {
    let mdns_port = shared.config.mdns_port?;
    if shared.config.discovery == DiscoveryMode::Off {
        return None;
    }
    let config = DiscoveryConfig {
        room: match locator {
            Some(locator) => RoomKey::Locator(locator),
            None => RoomKey::Session(shared.session_id.clone()),
        },
        bound,
        mdns_port,
        mode: shared.config.discovery,
        announces: !shared.config.is_star_guest(),
        found,
        announced: Arc::clone(&shared.announced),
    };
    Discovery::start(config, Arc::clone(gate))
        .inspect_err(no_discovery)
        .ok()
}
