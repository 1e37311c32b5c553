//! The network thread: feeds the core with events and time, and carries out what it says.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn::{Endpoint, EndpointConfig};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::admissions::Admissions;
use super::dialling::{DialDone, HostDials};
use super::relay::Broadcasts;
use super::sessions::Sessions;
use super::state_file::{StateWriter, new_incarnation, take_member};
use super::trace::Trace;
use super::{HostCommand, Shared, internal};
use crate::config::{DiscoveryMode, ManualOverrideRecovery};
use crate::core::election::AssignOutcome;
use crate::core::election::bound::WallClock;
use crate::core::election::gossip::Windows;
use crate::core::election::guards::Guards;
use crate::core::election::raft::Recovery;
use crate::core::election::record::Saved;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::introductions::Reconnect;
use crate::core::node::{Command, CommandError, EndReason, Event, Input, Node, NodeConfig, Output};
use crate::core::time::Time;
use crate::core::wire::{Hello, RoomPolicy};
use crate::dispatch::{self, Event as HostEvent, JoinRequest, LeaderChange};
use crate::error::{Code, StartError};
use crate::fork::{self, ClosedInChildren};
use crate::net::admission::RoomProof;
use crate::net::close;
use crate::net::dial::{Ask, DialLocks, Gate};
use crate::net::discovery::{Discovery, DiscoveryConfig};
use crate::net::events::{EVENT_QUEUE, LinkContext, LinkEvent, LinkId};
use crate::net::identity::{Identity, server_config, transport_config};
use crate::net::socket::{self, Bound};
use crate::net::tries::{Direction, Tries};
use crate::snapshot::{PeerStatus, PeerView, Snapshot};

#[cfg(test)]
use super::hostile::cut::CuttableRuntime as UdpRuntime;
#[cfg(not(test))]
use quinn::TokioRuntime as UdpRuntime;

/// How long accepted messages are flushed when the host leaves or disconnects a peer.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// How long leaving takes at most.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// How long the answers to a farewell are waited for, at least.
const MIN_FAREWELL: Duration = Duration::from_millis(250);
/// How long closed connections may take to go out.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);
/// A loop that is so late was stopped or starved: it reads what has arrived before it judges silence.
const LATE: Duration = Duration::from_millis(100);
/// What it takes to read what has arrived.
const CATCH_UP: Duration = Duration::from_millis(20);
/// A wall clock that is so far from where the core carried it was set, or the machine slept.
const CLOCK_SET: Duration = Duration::from_millis(100);
/// How often it is looked whether the host was told of a departure that somebody waits for.
const HOST_POLL: Duration = Duration::from_millis(5);
/// Questions of admissions that wait.
const ASK_QUEUE: usize = 64;
/// Addresses found by discovery of which the host is still to be told.
const FOUND_QUEUE: usize = 64;

/// The body of the network thread. Tells through `started` what is bound, or why nothing is.
pub(super) fn run(
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<HostCommand>,
    started: &blocking::SyncSender<Result<Bound, StartError>>,
) {
    fork::enter_own_thread();
    // Dropped after the runtime, and so after the socket.
    let mut socket = None;
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            // The opener waits for this one word.
            let _ = started.send(Err(internal(&error)));
            return;
        }
    };
    runtime.block_on(async {
        match Driver::start(shared, commands, &mut socket) {
            Ok((driver, bound)) => {
                let _ = started.send(Ok(bound));
                driver.run().await;
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        }
    });
    // It ends its tasks and waits for a resolver that is still running.
    drop(runtime);
    drop(socket);
}

/// The state of the network thread.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) node: Node,
    pub(super) sessions: Sessions,
    pub(super) admissions: Admissions,
    pub(super) link_context: LinkContext,
    pub(super) policy: RoomPolicy,
    pub(super) broadcasts: Broadcasts,
    pub(super) gate: Arc<Gate>,
    pub(super) bound: Bound,
    origin: Instant,
    pub(super) random: SystemRandom,
    /// The wall clock as the core knows it.
    wall_clock: WallClock,
    /// The core is not ticked before: what has arrived is read first.
    tick_after: Option<Instant>,
    commands: mpsc::UnboundedReceiver<HostCommand>,
    windows: watch::Receiver<Windows>,
    asks: mpsc::Receiver<Ask>,
    link_events: mpsc::Receiver<(LinkId, LinkEvent)>,
    dials: mpsc::UnboundedReceiver<DialDone>,
    pub(super) dial_done: mpsc::UnboundedSender<DialDone>,
    /// Peers to disconnect that have taken what was queued for them.
    disconnects: mpsc::UnboundedReceiver<PeerId>,
    flushed: mpsc::UnboundedSender<PeerId>,
    discovery: Option<Discovery>,
    discovered: mpsc::Receiver<SocketAddr>,
    /// Where a static quorum keeps its state.
    state: Option<StateWriter>,
    /// Which states are safe on disk.
    persisted: mpsc::UnboundedReceiver<u64>,
    pub(super) host_dials: HostDials,
    trace: Trace,
    /// What this application says when it enters a room.
    join_payload: Vec<u8>,
    leave_asked: bool,
    departed: bool,
}

impl Driver {
    fn start(
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<HostCommand>,
        socket: &mut Option<ClosedInChildren>,
    ) -> Result<(Self, Bound), StartError> {
        let config = &shared.config;
        let (identity, state_file, mut saved) = take_member(&shared)?;
        let transport = Arc::new(transport_config());
        let server =
            server_config(&identity, Arc::clone(&transport)).map_err(|error| internal(&error))?;
        let udp = socket::bind(config.bind_address, config.bind_port).map_err(|source| {
            let ip = config.bind_address;
            let ip = ip.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
            StartError::Bind {
                address: SocketAddr::new(ip, config.bind_port),
                source,
            }
        })?;
        *socket = Some(fork::closed_in_children(&udp));
        let bound = Bound {
            address: config.bind_address,
            port: udp
                .local_addr()
                .map_err(|source| StartError::Socket { source })?
                .port(),
        };
        let endpoint = Endpoint::new(
            EndpointConfig::default(),
            Some(server),
            udp,
            Arc::new(UdpRuntime),
        )
        .map_err(|source| StartError::Socket { source })?;

        let policy = RoomPolicy {
            strategy: config.strategy,
            quorum: config.quorum.policy(),
            merge: config.merge_policy,
            authority: config.authority,
            host_mode: config.host_mode,
        };
        let random = SystemRandom::new();
        let draw = || -> Result<u64, StartError> {
            let mut bytes = [0; 8];
            let filled = random.fill(&mut bytes);
            filled.map_err(|_| internal(&"the system's random generator failed"))?;
            Ok(u64::from_le_bytes(bytes))
        };
        let mut incarnation = new_incarnation(draw()?);
        if let Some(file) = &state_file {
            let state = Saved::of_next_incarnation(saved.take(), incarnation);
            incarnation = state.incarnation;
            file.keep(&state)?;
            saved = Some(state);
        }
        let wall_clock = since_1970();
        let node = Node::new(
            shared.peer_id.clone(),
            incarnation,
            node_config(&shared, policy, &identity, bound, wall_clock, saved),
            draw()?,
            Time::ZERO,
        );
        let origin = Instant::now();
        let trace = match &config.trace_path {
            Some(path) => {
                let opened = Trace::open(path, Time::ZERO, &node);
                opened.map_err(|source| StartError::TracePath {
                    path: path.clone(),
                    source,
                })?
            }
            None => Trace::default(),
        };
        let (asks_in, asks) = mpsc::channel(ASK_QUEUE);
        let (events, link_events) = mpsc::channel(EVENT_QUEUE);
        let (dial_done, dials) = mpsc::unbounded_channel();
        let (flushed, disconnects) = mpsc::unbounded_channel();
        let gate = Arc::new(Gate {
            endpoint,
            proof: RoomProof {
                session: shared.session_id.clone(),
                secret: config.secret.clone(),
                own_key: identity.fingerprint(),
            },
            identity,
            transport,
            asks: asks_in,
            handshake_timeout: shared.config.handshake_timeout,
            dials: DialLocks::default(),
            tries_in: Tries::new(Direction::In),
            tries_out: Tries::new(Direction::Out),
        });
        tokio::spawn(Arc::clone(&gate).accept_all());
        let (found, discovered) = mpsc::channel(FOUND_QUEUE);
        let discovery = start_discovery(&shared, bound, &gate, found);
        let link_context = LinkContext {
            outboxes: Arc::clone(&shared.outboxes),
            dispatch: Arc::clone(&shared.dispatch),
            relaying: Arc::clone(&shared.centralized.relaying),
            events,
            max_message_size: shared.config.max_message_size,
            write_timeout: shared.config.write_timeout,
        };
        let (state, persisted) = match state_file.map(StateWriter::start) {
            Some((writer, persisted)) => (Some(writer), persisted),
            None => (None, mpsc::unbounded_channel().1),
        };
        let mut driver = Self {
            windows: shared.windows.subscribe(),
            shared,
            node,
            sessions: Sessions::default(),
            admissions: Admissions::default(),
            link_context,
            policy,
            broadcasts: Broadcasts::default(),
            gate,
            bound,
            origin,
            random,
            wall_clock: WallClock::new(Time::ZERO, wall_clock),
            tick_after: None,
            commands,
            asks,
            link_events,
            dials,
            dial_done,
            disconnects,
            flushed,
            discovery,
            discovered,
            state,
            persisted,
            host_dials: HostDials::default(),
            trace,
            join_payload: Vec::new(),
            leave_asked: false,
            departed: false,
        };
        // Queries are answered as soon as the room is open, and a fixed host leads already.
        driver.carry_out();
        Ok((driver, bound))
    }

    async fn run(mut self) {
        while !self.leave_asked {
            self.step().await;
        }
        self.leave().await;
    }

    /// Waits for the next thing and deals with it. Nothing is lost when it is dropped while it waits.
    async fn step(&mut self) {
        self.answer_waiting();
        let deadline = self.deadline();
        tokio::select! {
            Some((id, event)) = self.link_events.recv() => self.link_event(id, event),
            Some(ask) = self.asks.recv() => self.asked(ask),
            Some(command) = self.commands.recv() => self.commanded(command),
            Ok(()) = self.windows.changed() => {
                let windows = *self.windows.borrow_and_update();
                self.feed(Input::Command(Command::SetWindows(windows)));
            }
            Some(done) = self.dials.recv() => self.dialled(done),
            Some(peer) = self.disconnects.recv() => {
                self.feed(Input::Command(Command::Disconnect(peer)));
            }
            Some(number) = self.persisted.recv() => self.feed(Input::Persisted { number }),
            Some(address) = self.discovered.recv() => self.found(address),
            () = sleep_until(deadline) => self.timer(deadline),
        }
    }

    /// When the core, or a peer that is leaving, needs attention.
    fn deadline(&self) -> Instant {
        let far = || Instant::now() + Duration::from_secs(3600);
        let core = self.node.next_deadline().map_or_else(far, |at| {
            let at = self.origin + Duration::from_micros(at.as_micros());
            self.tick_after.map_or(at, |after| at.max(after))
        });
        let departing = self.sessions.next_deadline();
        let for_the_host = self
            .admissions
            .wait_for_the_host()
            .then(|| Instant::now() + HOST_POLL);
        [departing, for_the_host, self.waiting_deadline()]
            .into_iter()
            .flatten()
            .fold(core, Instant::min)
    }

    fn timer(&mut self, deadline: Instant) {
        let now = Instant::now();
        if now > deadline + LATE && self.tick_after.is_none() {
            self.tick_after = Some(now + CATCH_UP);
            self.trace.stalled(self.now(), now - deadline);
            return;
        }
        self.tick_after = None;
        for peer in self.sessions.heard_since_probe() {
            self.feed(Input::Heard { peer });
        }
        self.read_wall_clock();
        self.feed(Input::Tick);
        self.finish_departures(now);
        self.proceed_all();
    }

    fn read_wall_clock(&mut self) {
        let (now, shows) = (self.now(), since_1970());
        if shows.abs_diff(self.wall_clock.at(now)) > CLOCK_SET {
            self.wall_clock = WallClock::new(now, shows);
            self.feed(Input::WallClock(shows));
        }
    }

    /// The time as the core counts it.
    pub(super) fn now(&self) -> Time {
        let micros = self.origin.elapsed().as_micros();
        Time::from_micros(micros.try_into().unwrap_or(u64::MAX))
    }

    /// Gives the core an input that cannot be refused, and carries out what follows.
    pub(super) fn feed(&mut self, input: Input) {
        if let Err(error) = self.command(input) {
            tracing::error!(%error, "the core refused an event");
        }
    }

    fn command(&mut self, input: Input) -> Result<(), CommandError> {
        let now = self.now();
        self.trace.input(now, &input);
        let result = self.node.handle(now, input);
        if let Err(error) = &result {
            self.trace.refused(now, error);
        }
        self.carry_out();
        result
    }

    /// Carries out the core's outputs. The snapshot is published before the host is told of events, so that
    /// a query in a callback shows the event's state or a newer one.
    pub(super) fn carry_out(&mut self) {
        let mut events = Vec::new();
        let mut answers = Vec::new();
        let now = self.now();
        self.trace.state(now, &self.node);
        while let Some(output) = self.node.poll_output() {
            self.trace.output(now, &output);
            match output {
                Output::Transmit {
                    to,
                    envelope,
                    urgent,
                } => self.sessions.transmit(&to, envelope, urgent),
                Output::Datagram { to, probe } => self.sessions.send_probe(&to, probe),
                Output::Dial(dial) => self.dial(dial),
                Output::JoinAnswer { ticket, verdict } => answers.push((ticket, verdict)),
                Output::Close { peer, why } => self.sessions.set_close_reason(&peer, why),
                Output::Event(event) => events.push(event),
                Output::Persist { number, saved } => self.persist(number, saved),
                Output::StaleState { remembered, since } => {
                    tracing::error!(
                        remembered,
                        since,
                        "another voter of the static quorum remembers more writes of this member's state file than it held at this start: the file was removed, or an older copy was put in its place, so that votes are forgotten; this member neither votes nor leads until it has been connected to all other voters"
                    );
                }
                Output::Dropped { from, value, bound } => {
                    tracing::warn!(peer = %from, value, bound, "dropped what the peer said of who leads: it counts further than this clock allows; one of both clocks is wrong, or a member lies");
                }
                Output::Departed => self.departed = true,
            }
        }
        self.trace.pass_on();
        self.follow_leader();
        self.publish();
        for event in events {
            self.tell(event);
        }
        for (ticket, verdict) in answers {
            self.join_answered(ticket, verdict);
        }
    }

    fn persist(&self, number: u64, saved: Saved) {
        match &self.state {
            Some(state) => state.write(number, saved),
            // The core asks for it where the quorum is static, and such a room has a state directory.
            None => tracing::error!("there is no state directory: this member cannot vote"),
        }
    }

    fn tell(&mut self, event: Event) {
        let event = match event {
            Event::Joined(peer) => {
                tracing::info!(%peer, "joined");
                HostEvent::Joined(peer)
            }
            Event::Reconnecting(peer) => {
                tracing::info!(%peer, "lost, and being dialled");
                self.session_lost(&peer);
                HostEvent::Reconnecting(peer)
            }
            Event::Returned(peer) => {
                tracing::info!(%peer, "returned");
                HostEvent::Returned(peer)
            }
            Event::Left {
                peer,
                why,
                code,
                bytes,
            } => {
                tracing::info!(%peer, ?why, "left");
                self.session_ended(peer, why, code, bytes);
                return;
            }
            Event::LeaderChanged { leader, reason } => {
                let name = leader.as_ref().map_or("", PeerId::as_str);
                tracing::info!(leader = name, ?reason, "leader");
                let stamp = &self.node.record().stamp;
                HostEvent::LeaderChanged(LeaderChange {
                    old: None, // the queue knows what the host was told
                    new: leader,
                    term: stamp.term,
                    epoch: stamp.epoch.override_seq,
                    reason,
                })
            }
            Event::SetLeaderResult { target, outcome } => {
                tracing::info!(%target, ?outcome, "SetLeader ended");
                let code = match outcome {
                    AssignOutcome::Done => Code::Ok,
                    AssignOutcome::Timeout => Code::Timeout,
                    AssignOutcome::Superseded => Code::Superseded,
                    AssignOutcome::Rejected => Code::Rejected,
                };
                let code = code.value();
                HostEvent::SetLeaderResult { target, code }
            }
            Event::JoinRequest { request, candidate } => HostEvent::JoinRequest(JoinRequest {
                request,
                peer: candidate.entry.id,
                address: candidate
                    .entry
                    .addresses
                    .first()
                    .map_or_else(String::new, ToString::to_string),
                payload: candidate.payload.into(),
            }),
            Event::RoomEnded { why, code, bytes } => {
                tracing::info!(?why, "the room is over");
                HostEvent::RoomEnded {
                    reason: match why {
                        EndReason::Kicked => dispatch::EndReason::Kicked,
                        EndReason::HostLeft => dispatch::EndReason::HostLeft,
                        EndReason::HostLost => dispatch::EndReason::HostLost,
                        EndReason::Disconnected => dispatch::EndReason::Disconnected,
                    },
                    code,
                    bytes: bytes.into(),
                }
            }
        };
        self.shared.dispatch.push(event);
    }

    fn publish(&self) {
        let mut peers: Vec<_> = self
            .node
            .membership()
            .iter()
            .map(|(id, member)| PeerView {
                id: id.clone(),
                status: PeerStatus::Connected,
                rtt: member.rtt.smoothed(),
                jitter: member.rtt.variation(),
            })
            .collect();
        let connected = peers.len();
        let ids: Vec<_> = peers.iter().map(|peer| peer.id.as_str()).collect();
        let peer_list = ids.join("\n");
        let lost = self.node.absent().map(|id| (id, PeerStatus::Reconnecting));
        let entering = self.node.dialing().chain(self.admissions.reserved());
        let entering = entering.map(|id| (id, PeerStatus::Handshaking));
        for (id, status) in lost.chain(entering) {
            if !peers.iter().any(|peer| peer.id == *id) {
                peers.push(PeerView {
                    id: id.clone(),
                    status,
                    rtt: None,
                    jitter: None,
                });
            }
        }
        peers.sort_by(|a, b| a.id.cmp(&b.id));
        let published = self.shared.published.load();
        let leader_stamp = match (self.node.leader_stamp(), &published.leader_stamp) {
            (Some(now), Some(before)) if *now == **before => Some(Arc::clone(before)),
            (now, _) => now.cloned().map(Arc::new),
        };
        let record = self.node.record();
        let snapshot = Snapshot {
            peers,
            connected,
            peer_list,
            leader: self.node.leader().cloned(),
            is_leader: self.node.is_leader(),
            term: record.stamp.term,
            epoch: record.stamp.epoch.override_seq,
            strategy: self.policy.strategy,
            leader_stamp,
        };
        if **published != snapshot {
            self.shared.published.store(Arc::new(snapshot));
        }
    }

    fn commanded(&mut self, command: HostCommand) {
        match command {
            HostCommand::Connect { text, target } => self.connect(text, target),
            HostCommand::Core(command, answer) => {
                let result = self.command(Input::Command(command));
                // A host thread that is gone needs no answer.
                let _ = answer.send(result);
            }
            HostCommand::Disconnect(peer, answer) => {
                let result = self.disconnect(peer);
                let _ = answer.send(result);
            }
            HostCommand::SetJoinPayload(payload) => self.join_payload = payload,
            HostCommand::Leave => self.leave_asked = true,
            #[cfg(test)]
            HostCommand::Count(answer) => {
                let connections = self.gate.endpoint.open_connections();
                let reserved = self.admissions.reserved().count();
                let _ = answer.send(self.sessions.census(connections, reserved));
            }
        }
    }

    /// Ends a session after the peer has taken what is queued for it, or a second.
    fn disconnect(&mut self, peer: PeerId) -> Result<(), CommandError> {
        let key = self.sessions.get(&peer).map(|session| session.key);
        self.host_dials.sever(&peer, key);
        let outboxes = Arc::clone(&self.shared.outboxes);
        if !outboxes.finish(&peer) {
            return self.command(Input::Command(Command::Disconnect(peer)));
        }
        let flushed = self.flushed.clone();
        tokio::spawn(async move {
            // Whichever ends the wait, the session ends.
            let _ = timeout(FLUSH_LIMIT, outboxes.flushed_to(&peer)).await;
            let _ = flushed.send(peer);
        });
        Ok(())
    }

    /// Discovery has found a member, and the host wants to know.
    fn found(&self, address: SocketAddr) {
        tracing::info!(%address, "discovered");
        let address = address.to_string();
        self.shared.dispatch.push(HostEvent::Discovered { address });
    }

    /// What this node says of itself to the holder of a key.
    pub(super) fn hello(&self, key: Fingerprint, by_hand: bool) -> Hello {
        let (generation, losses) = self.sessions.numbers(key);
        let (eligible, priority) = self.node.standing_of_myself();
        Hello {
            features: 0,
            peer_id: self.shared.peer_id.clone(),
            incarnation: self.node.incarnation(),
            generation,
            losses,
            by_hand,
            policy: self.policy,
            listen_port: self.bound.port,
            max_message_size: self
                .shared
                .config
                .max_message_size
                .try_into()
                .unwrap_or(u32::MAX),
            eligible,
            priority,
            side: self.node.side(self.now()),
            join_payload: self.join_payload.clone(),
        }
    }

    /// Leaves the room: flush, farewell, close, all within [`LEAVE_LIMIT`].
    async fn leave(mut self) {
        let limit = Instant::now() + LEAVE_LIMIT;
        self.gate.endpoint.set_server_config(None);
        // Whoever asks from here on, or has asked, is told at once that the room is closed: leaving takes time.
        self.commands.close();
        while self.commands.recv().await.is_some() {}
        // Discovery must not wait for a reader of what it finds.
        self.discovered.close();
        let mut discovery = None;
        if let Some(running) = self.discovery.take() {
            discovery = running.say_goodbye().await;
        }
        let flushed = self.flush(Instant::now() + FLUSH_LIMIT).await;
        self.sessions.end_lanes(flushed);
        let slowest = self
            .node
            .membership()
            .iter()
            .filter_map(|(_, member)| member.rtt.smoothed())
            .max()
            .unwrap_or_default();
        self.feed(Input::Command(Command::Leave));
        let farewell_limit = limit.min(Instant::now() + MIN_FAREWELL.max(slowest * 3));
        while !self.departed && Instant::now() < farewell_limit {
            // Whatever ends the wait, the loop looks.
            let _ = timeout(farewell_limit - Instant::now(), self.step()).await;
        }
        self.gate.endpoint.close(close::DONE, b"left");
        let rest = limit
            .saturating_duration_since(Instant::now())
            .min(CLOSE_LIMIT);
        // Connections that do not close in time are forgotten with the endpoint.
        let _ = timeout(rest, self.gate.endpoint.wait_idle()).await;
        self.shared.outboxes.close_all();
        if let Some(discovery) = discovery {
            discovery.wait();
        }
        let now = self.now();
        self.trace.finish(now);
    }

    /// Waits until the peers have taken everything that was accepted; tells whether they did.
    async fn flush(&mut self, limit: Instant) -> bool {
        let outboxes = Arc::clone(&self.shared.outboxes);
        let flushed = outboxes.flushed();
        tokio::pin!(flushed);
        loop {
            tokio::select! {
                biased;
                () = &mut flushed => return true,
                () = sleep_until(limit) => return false,
                () = self.step() => {}
            }
        }
    }
}

/// What the wall clock shows. One before 1970 shows 1970.
fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn node_config(
    shared: &Shared,
    policy: RoomPolicy,
    identity: &Identity,
    bound: Bound,
    wall_clock: Duration,
    saved: Option<Saved>,
) -> NodeConfig {
    let config = &shared.config;
    NodeConfig {
        heartbeat_interval: config.heartbeat_interval,
        heartbeat_timeout: config.heartbeat_timeout(),
        election_timeout_min: config.election_timeout_min,
        election_timeout_max: config.election_timeout_max,
        max_connections: config.max_connections,
        max_peers: config.max_peers,
        auto_reconnect: config.auto_reconnect_enabled,
        reconnect: Reconnect {
            initial: config.reconnect_initial,
            max: config.reconnect_max,
            max_retries: config.reconnect_max_retries,
        },
        member_hold: config.member_hold,
        handshake_timeout: config.handshake_timeout,
        ask_host: false,
        auto_election: config.auto_election_enabled,
        windows: config.windows,
        recovery: match config.manual_override_recovery {
            ManualOverrideRecovery::Hold => Recovery::Hold,
            ManualOverrideRecovery::AutoElect => Recovery::AutoElect,
        },
        eligible: config.eligible,
        priority: config.priority,
        wall_clock,
        quorum: config.quorum.clone(),
        saved,
        guards: Guards::ALL,
        policy,
        key: identity.fingerprint(),
        addresses: bound.addresses(),
    }
}

/// Discovery as the configuration has it. A room works without it.
fn start_discovery(
    shared: &Shared,
    bound: Bound,
    gate: &Arc<Gate>,
    found: mpsc::Sender<SocketAddr>,
) -> Option<Discovery> {
    let mdns_port = shared.config.mdns_port?;
    if shared.config.discovery == DiscoveryMode::Off {
        return None;
    }
    let config = DiscoveryConfig {
        session: &shared.session_id,
        bound,
        mdns_port,
        mode: shared.config.discovery,
        found,
        announced: Arc::clone(&shared.announced),
    };
    Discovery::start(config, Arc::clone(gate))
        .inspect_err(|error| tracing::warn!(%error, "no discovery in the local network"))
        .ok()
}
