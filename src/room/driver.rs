//! Driver of the room, on the network thread: feeds the core with events and time, and carries out its
//! outputs. Sessions, admissions, dials and broadcasts each have an owner; only the driver knows them all.

mod links;
mod paths;
mod relays;
mod state;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;
use room_transport::closing::close_code;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::admissions::{
    Admissions, Answer, Applicant, Asker, KickReasons, Settled, Step, addresses_of, explained,
    refused_by,
};
use super::dialling::{DialDone, Dialling, connection_result, core_dial_ended};
use super::host_watch::HostWatch;
use super::live_node::LiveNode;
use super::refusals::Refusals;
use super::relay::Broadcasts;
use super::replication::Replication;
use super::sessions::{Attached, Count, Sessions};
use super::shared::{Disconnection, HostCommand, Shared};
use super::state_file::{StateWriter, Stored};
use super::store::Store;
use super::strangers::Strangers;
use super::timers::{Timer, TimerTable};
use super::unconfirmed::Unconfirmed;
use super::view::{log, log_result, snapshot};
use crate::clock::Moment;
use crate::core::election::engine::{Answer as StoreAnswer, Call};
use crate::core::election::gossip::Windows;
use crate::core::event::{DiscoveryRefused, FoundBy, LeftReason, TurnReport};
use crate::core::id::{Fingerprint, PeerId};
use crate::core::node::{
    AdmissionRefusal, Command, CommandError, Event, Input, LinkEnd, LinkUp, MappingChange, Output,
};
use crate::core::path::{CarrierKind, Path};
use crate::core::virtual_address::behind_turn;
use crate::core::wire::{
    FEATURE_PATHS, FEATURE_SILENT_RELAYS, FEATURE_TRANSFERS, Hello, HostMode, Opaque, Verdict,
};
use crate::error::Code;
use crate::net::cards::showing::Showing;
use crate::net::close;
use crate::net::closed_ports::RefusedPacket;
use crate::net::datagrams::report_dropped;
use crate::net::dial::{Ask, Attach, Connector, Refused, Reservation};
use crate::net::discovery::{Discovery, Found};
use crate::net::events::{LinkEvent, LinkId};
use crate::net::frame::ControlFrame;
use crate::net::mapping::Mapper;
use crate::net::rendezvous::News;
use crate::net::tunnel::Tunnels;
use crate::net::turn::Turn;

/// Refusal from a guest of a star to peers that dial it.
const DIAL_THE_HOST: &str = "this member is a guest of a star (topology 1); dial the host";
/// Results for the host of a dial that began before its DisconnectPeer, or after the end of its room.
const DISCONNECTED_MEANWHILE: &str = "this host disconnected that member after the dial had begun";
const OUT_OF_THE_ROOM: &str = "the room is over for this member; close it, then open it again";
/// Longest flush of accepted messages when the host leaves or disconnects a peer.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// Longest duration of leaving.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// Shortest wait for the answers to a leave.
const MIN_LEAVE_WAIT: Duration = Duration::from_millis(250);
/// Shortest wait if an external store elects: a leader resigns and returns its lease there.
const MIN_STORE_LEAVE_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for the others to have a leaving leader's entries. The log ends it earlier, unless a disk holds it up.
const STATE_LEAVE_LIMIT: Duration = Duration::from_millis(600);
/// Longest wait for closed connections to send their close.
const CLOSE_LIMIT: Duration = Duration::from_millis(300);
/// Interval for polling whether the host has received a departure that an admission waits for.
const HOST_POLL: Duration = Duration::from_millis(5);
/// Departures that the host has not received yet, at most. Beyond that no peer is admitted, so that members
/// that come and go do not fill the memory of a host that takes no events.
const MAX_PENDING_DEPARTURES: usize = 256;

/// Reports to an admission whether its link is part of the room.
type AttachAnswer = oneshot::Sender<Result<(), Code>>;

/// The state of the network thread.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) node: LiveNode,
    pub(super) sessions: Sessions,
    pub(super) admissions: Admissions,
    /// Links that are ready, and wait until the host has received the departure of the id's last holder.
    pub(super) attaching: Vec<(Box<Attach>, AttachAnswer)>,
    pub(super) kick_reasons: KickReasons,
    pub(super) refusals: Refusals,
    pub(super) dialling: Dialling,
    pub(super) strangers: Strangers,
    pub(super) broadcasts: Broadcasts,
    pub(super) unconfirmed: Unconfirmed,
    pub(super) timers: TimerTable,
    pub(super) queues: Queues,
    /// Sender of [`Queues::disconnects`].
    pub(super) flushed: mpsc::UnboundedSender<Disconnection>,
    pub(super) gate: Arc<Connector>,
    pub(super) tunnels: Arc<Tunnels>,
    pub(super) listen_port: u16,
    pub(super) discovery: Option<Discovery>,
    /// Holds a port at a TURN server.
    pub(super) turn: Option<Turn>,
    /// Holds a port of the router, if the options ask for one.
    pub(super) mapper: Option<Mapper>,
    /// Shows the room's card; there until the room leaves.
    pub(super) showing: Option<Showing>,
    /// Writer of what must survive the process.
    pub(super) writer: Option<StateWriter>,
    /// The room's state, if it has one.
    pub(super) replication: Option<Replication>,
    /// The external store that elects, if the strategy uses one.
    pub(super) store: Option<Box<dyn Store>>,
    /// The application's payload for entering a room.
    pub(super) join_payload: Vec<u8>,
    pub(super) leave_asked: bool,
    pub(super) departed: bool,
    pub(super) host_watch: HostWatch,
    /// Whether a change without an event is published at the end of this turn.
    pub(super) publishes_later: bool,
    /// Whether there is such a change.
    pub(super) is_unpublished: bool,
}

/// Input queues from the tasks of the room and the host's threads.
pub(super) struct Queues {
    pub(super) commands: mpsc::UnboundedReceiver<HostCommand>,
    pub(super) windows: watch::Receiver<Windows>,
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) link_events: mpsc::Receiver<(LinkId, LinkEvent)>,
    pub(super) dials: mpsc::UnboundedReceiver<DialDone>,
    /// Peers to disconnect, after they have taken their queued messages.
    pub(super) disconnects: mpsc::UnboundedReceiver<Disconnection>,
    pub(super) discovered: mpsc::Receiver<Found>,
    /// Reports of packets that no process receives at their destinations.
    pub(super) refused_packets: mpsc::Receiver<RefusedPacket>,
    /// Reports of the tasks that hold the links to relays.
    pub(super) relays: mpsc::Receiver<News>,
    /// States of the port at a TURN server.
    pub(super) turn: mpsc::Receiver<TurnReport>,
    /// Answers of the router.
    pub(super) mapping: mpsc::Receiver<MappingChange>,
    /// States that are safe on disk.
    pub(super) persisted: mpsc::UnboundedReceiver<Stored>,
    /// Answers of the external store: one per request, except for watches.
    pub(super) answers: mpsc::UnboundedReceiver<(Call, StoreAnswer)>,
}

impl Driver {
    /// Drives the room until the host leaves it. Returns the time by which the host's leaving call must end.
    pub(super) async fn run(mut self) -> Instant {
        while !self.leave_asked {
            self.step().await;
        }
        let limit = Instant::now() + LEAVE_LIMIT;
        self.leave(limit).await;
        limit
    }

    /// Waits for the next event and handles it. Cancel safe while it waits.
    async fn step(&mut self) {
        self.retry_waiting();
        self.set_timers();
        let deadline = self.timers.next();
        let (began, timer_began) = (Moment::now(), Instant::now());
        let queues = &mut self.queues;
        tokio::select! {
            Some(first) = queues.link_events.recv() => self.link_events(first),
            Some(ask) = queues.asks.recv() => self.asked(ask),
            Some(command) = queues.commands.recv() => self.commanded(command),
            Ok(()) = queues.windows.changed() => {
                let windows = *self.queues.windows.borrow_and_update();
                self.feed(Input::Command(Command::SetWindows(windows)));
            }
            Some(done) = queues.dials.recv() => self.dialled(done),
            Some(ended) = queues.disconnects.recv() => {
                self.feed(Input::Command(ended.into()));
            }
            Some(stored) = queues.persisted.recv() => self.stored(stored),
            () = Replication::changed(self.replication.as_mut()) => {}
            Some((call, answer)) = queues.answers.recv() => {
                self.feed(Input::Engine { call, answer });
            }
            Some(found) = queues.discovered.recv() => self.found(found),
            Some(refused) = queues.refused_packets.recv() => self.packet_refused(refused),
            Some(news) = queues.relays.recv() => self.relay_reports(news),
            Some(report) = queues.turn.recv() => self.turn_reports(report),
            Some(change) = queues.mapping.recv() => self.feed(Input::Mapping(change)),
            report = self.tunnels.cannot_carry() => self.cannot_carry(report),
            () = sleep_until(deadline) => {
                // Measured by the clock that also counts while the machine sleeps.
                let planned = deadline.saturating_duration_since(timer_began);
                let overdue = timer_began.saturating_duration_since(deadline);
                self.woke(Moment::now().since(began + planned) + overdue);
            },
        }
        self.advance_state();
    }

    /// Sets each timer to the deadline of its owner.
    fn set_timers(&mut self) {
        for timer in Timer::ALL {
            let deadline = match timer {
                Timer::Core => self.node.next_deadline(),
                Timer::Departure => self.sessions.next_deadline(),
                Timer::HostPoll
                    if self.admissions.waiting().next().is_none()
                        && !self.admissions.has_disputes()
                        && self.attaching.is_empty() =>
                {
                    None
                }
                // Further events do not postpone it.
                Timer::HostPoll => {
                    let set = self.timers.get(timer);
                    set.or_else(|| Some(Instant::now() + HOST_POLL))
                }
                Timer::Origin => self.broadcasts.next_deadline(),
                Timer::Leadership => self.unconfirmed.next_deadline(),
                Timer::Stranger => self.strangers.next_deadline(),
                Timer::State => {
                    let due = self
                        .replication
                        .as_ref()
                        .and_then(Replication::next_deadline);
                    due.map(|due| self.node.clock.instant(due))
                }
            };
            self.timers.set(timer, deadline);
        }
    }

    /// Handles a wakeup by the deadline, which passed `late` ago.
    fn woke(&mut self, late: Duration) {
        let now = Instant::now();
        if self.timers.woke(now, late) {
            // The machine may have slept longer than the router waits.
            if let Some(mapper) = &self.mapper {
                mapper.hint();
            }
            return self.node.stalled(late);
        }
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::Core => self.tick(),
                Timer::Departure => self.sessions.finish_departures(now),
                Timer::HostPoll => {
                    let waiting: Vec<_> = self.admissions.waiting().collect();
                    for ticket in waiting {
                        self.proceed(ticket);
                    }
                    self.settle_disputes(now);
                    for (attach, answer) in std::mem::take(&mut self.attaching) {
                        self.attach(attach, answer);
                    }
                }
                // The next step begins with it.
                Timer::Origin | Timer::Leadership => {}
                Timer::Stranger => self.dial_strangers(),
                // The turn ends with it.
                Timer::State => {}
            }
        }
    }

    fn tick(&mut self) {
        self.report_probed();
        self.look_at_host();
        if let Some(shows) = self.node.wall_clock_set() {
            self.feed(Input::WallClock(shows));
        }
        self.feed(Input::Tick);
    }

    /// Notifies the core which peers have shown a sign of life since they were probed.
    fn report_probed(&mut self) {
        for peer in self.sessions.responded_since_probe() {
            self.feed(Input::OtherData { peer });
        }
    }

    /// Notifies the core how long the host has taken no events; its heartbeats report that to the others. The
    /// input that follows carries out the outputs.
    fn look_at_host(&mut self) {
        if !self.host_watch.is_due() {
            return;
        }
        let since = self.shared.dispatch.host_silent_since();
        let silent = since.map_or(Duration::ZERO, |since| since.elapsed());
        if let Some(warning) = self.host_watch.warning(silent) {
            tracing::warn!("{warning}");
        }
        let now = self.node.now();
        let since = since.map(|since| now - since.elapsed());
        if let Err(error) = self.node.handle(Input::HostSilentSince(since)) {
            tracing::error!(%error, "the core refused an event");
        }
    }
}

/// Core.
impl Driver {
    /// Gives the core an input that it cannot refuse, and carries out the outputs.
    fn feed(&mut self, input: Input) {
        if let Err(error) = self.command(input) {
            tracing::error!(%error, "the core refused an event");
        }
    }

    fn command(&mut self, input: Input) -> Result<(), CommandError> {
        let result = self.node.handle(input);
        self.carry_out();
        result
    }

    /// Carries out the core's outputs. The snapshot is published before the events are queued, so that
    /// a query in a callback shows the event's state or a newer one.
    pub(super) fn carry_out(&mut self) {
        let mut events = Vec::new();
        let mut answers = Vec::new();
        let mut seeds = Vec::new();
        let mut persisted = None;
        let now = self.node.begin_outputs();
        while let Some(output) = self.node.poll_output(now) {
            match output {
                Output::Transmit {
                    to,
                    envelope,
                    urgent,
                } => self.sessions.transmit(&to, envelope, urgent),
                Output::Datagram { to, probe } => self.sessions.send_probe(&to, probe),
                Output::Dial(dial) => self.dial_member(dial),
                Output::Carrier { peer, carrier } => self.change_carrier(&peer, carrier.as_ref()),
                Output::DialSeeds(addresses) => seeds.extend(addresses),
                Output::JoinAnswer { ticket, verdict } => answers.push((ticket, verdict)),
                Output::Close { peer, why } => self.sessions.set_close_reason(&peer, why),
                Output::Event(event) => events.push(event),
                Output::Persist { number, state } => persisted = self.persist(number, state),
                Output::StaleState { remembered, since } => {
                    tracing::error!(
                        remembered,
                        since,
                        "another voter of the static quorum remembers more writes of this member's state file than it held at this start: the file was removed, or an older copy was put in its place, so that votes are forgotten; this member neither votes nor leads until it has been connected to all other voters"
                    );
                }
                Output::Dropped { from, value, bound } => {
                    tracing::warn!(peer = %from, value, bound, "dropped the peer's report of the leader: it counts further than this clock allows; one of both clocks is wrong, or a member lies");
                }
                Output::Engine { call, request } => match &mut self.store {
                    Some(store) => store.request(call, request),
                    None => tracing::error!("the core asks for a store, and there is none"),
                },
                Output::Departed => self.departed = true,
            }
        }
        for peer in self.broadcasts.follow_leader(&self.node.core) {
            self.sessions.send(&peer, ControlFrame::BroadcastAgain);
        }
        self.sessions.follow(self.node.core.leader());
        self.show_room_to_state();
        self.route_tunnels();
        let dropped = self.sessions.stop_queues(&events);
        if events.is_empty() && self.publishes_later {
            self.is_unpublished = true;
        } else {
            self.publish();
        }
        report_dropped(&self.shared.dispatch, dropped);
        for event in events {
            self.ask_again_after(&event);
            self.notify(event);
        }
        for (ticket, verdict) in answers {
            self.join_answered(ticket, verdict);
        }
        if !seeds.is_empty() {
            let members = self.node.core.membership();
            self.dialling
                .dial_seeds(seeds, |peer| members.get(peer).is_some());
            self.feed(Input::HostDialing(self.dialling.is_dialling()));
        }
        if let Some(number) = persisted {
            self.feed(Input::Persisted { number });
        }
    }

    /// Stores a state. Returns its number if there is no place to store it: then there is nothing to wait for.
    fn persist(&self, number: u64, state: Opaque) -> Option<u64> {
        match (&self.writer, &self.store) {
            (Some(writer), _) => writer.write_strategy(number, state),
            (None, Some(_)) => return Some(number),
            // The core asks for it only with a static quorum, and such a room has a state directory.
            (None, None) => tracing::error!("there is no state directory: this member cannot vote"),
        }
        None
    }

    fn publish(&mut self) {
        self.is_unpublished = false;
        let published = self.shared.published.load();
        let snapshot = snapshot(&self.node, self.admissions.reserved());
        if **published != snapshot {
            let snapshot = Arc::new(snapshot);
            self.shared.outboxes.set_unlinked(snapshot.unlinked);
            self.shared.published.store(Arc::clone(&snapshot));
            self.shared.glance.show(&snapshot);
        }
    }

    fn notify(&mut self, event: Event) {
        match &event {
            // Reported to the host once the number of missed messages is known.
            Event::Returned(returned) => return self.sessions.returns(&returned.peer),
            Event::Reconnecting(peer) => {
                self.state_link_lost(peer);
                if !self.sessions.lost(peer) {
                    return;
                }
            }
            _ => {}
        }
        log(&event);
        if let Event::Left(left) = event {
            if left.why == LeftReason::Kicked {
                let bytes = &left.bytes;
                self.kick_reasons.remember(&left.peer, left.code, bytes);
            }
            self.state_left(&left.peer);
            return self.sessions.end(left);
        }
        self.shared.dispatch.push(event);
    }
}

/// Host.
impl Driver {
    fn commanded(&mut self, command: HostCommand) {
        match command {
            HostCommand::Connect { text, target } => {
                self.feed(Input::HostDialing(true));
                self.dialling.connect(text, target);
            }
            HostCommand::Core(command, answer) => {
                let result = self.command(Input::Command(command));
                // The host's thread may be gone.
                let _ = answer.send(result);
            }
            HostCommand::Disconnect(disconnection, answer) => {
                let result = self.disconnect(disconnection);
                let _ = answer.send(result);
            }
            HostCommand::SetJoinPayload(payload) => self.join_payload = payload,
            HostCommand::SetTurn(servers) => {
                if let Some(turn) = &self.turn {
                    turn.set_servers(&servers);
                }
            }
            HostCommand::Leave => self.leave_asked = true,
            #[cfg(test)]
            HostCommand::Panic => panic!("as intended by the test"),
            #[cfg(test)]
            HostCommand::Count(answer) => {
                let connections = self.gate.endpoint.open_connections();
                let reserved = self.admissions.reserved().count();
                let _ = answer.send(self.sessions.census(connections, reserved));
            }
        }
    }

    /// Ends a session after the peer has taken its queued messages, at most a second later.
    fn disconnect(&mut self, disconnection: Disconnection) -> Result<(), CommandError> {
        let peer = &disconnection.peer;
        self.dialling.sever(peer, self.sessions.key_of(peer));
        let outboxes = Arc::clone(&self.shared.outboxes);
        if !outboxes.finish(peer) {
            return self.command(Input::Command(disconnection.into()));
        }
        let flushed = self.flushed.clone();
        tokio::spawn(async move {
            // The session ends however the wait ends.
            let _ = timeout(FLUSH_LIMIT, outboxes.flushed_to(&disconnection.peer)).await;
            let _ = flushed.send(disconnection);
        });
        Ok(())
    }

    fn dialled(&mut self, done: DialDone) {
        match done {
            DialDone::Core(peer, result) => {
                if let Some(input) = core_dial_ended(&self.node.core, peer, result) {
                    self.feed(input);
                }
            }
            DialDone::Host(number, target, result) => {
                self.dialling.host_dial_ended(number);
                self.feed(Input::HostDialing(self.dialling.is_dialling()));
                let result = connection_result(target, result);
                log_result(&result);
                self.shared.dispatch.push(Event::ConnectionResult(result));
                self.shared.connects_running.fetch_sub(1, Ordering::Relaxed);
            }
            DialDone::Stranger(relay, key, result) => self.stranger_dialled(relay, key, result),
            DialDone::Seed(seed, result) => {
                if let Err(refused) = &result {
                    self.refused(FoundBy::Seed, seed.to_string(), refused.clone());
                }
                self.dialling.seed_dial_ended(&seed, result);
                self.feed(Input::HostDialing(self.dialling.is_dialling()));
            }
        }
    }

    /// Reports a find of discovery to the host.
    fn found(&mut self, found: Found) {
        match found {
            Found::Member(address) => self.notify(Event::Discovered {
                address: address.to_string(),
            }),
            Found::Refused(address, refused) => {
                self.refused(FoundBy::LocalNetwork, address.to_string(), refused);
            }
        }
    }

    /// Reports a refused dial that no host asked for.
    fn refused(&mut self, found_by: FoundBy, address: String, refused: Refused) {
        let now = Instant::now();
        if self.refusals.is_news(now, &address, &refused) {
            let result = connection_result(address, Err(refused));
            let refused = DiscoveryRefused { found_by, result };
            self.notify(Event::DiscoveryRefused(refused));
        }
    }
}

/// Admissions.
impl Driver {
    fn asked(&mut self, ask: Ask) {
        // An answer to an asker that has given up is dropped.
        match ask {
            Ask::Hello {
                key,
                at,
                by_hand,
                answer,
            } => {
                self.answered(key, at);
                let _ = answer.send(if self.dialling.is_severed(by_hand, None, key) {
                    Err(severed())
                } else if self.sessions.is_linked(key, Path::to(at)) {
                    Err(Code::AlreadyConnected.into())
                } else if self.node.core.is_over() {
                    Err(Refused::because(Code::Rejected, OUT_OF_THE_ROOM))
                } else {
                    let side = self.node.core.side(self.node.now());
                    Ok(self.hello(key, at, by_hand.is_some(), side))
                });
            }
            Ask::Check {
                hello,
                key,
                from,
                connection,
                by_hand,
                answer,
            } => {
                let peer = Some(&hello.peer_id);
                if self.dialling.is_severed(by_hand, peer, key) {
                    let _ = answer.send(Err(severed()));
                    return;
                }
                let by_hand = by_hand.is_some();
                let core = &self.node.core;
                // A lone node has no members whom the stranger could disturb.
                let alone = core.membership().is_empty() && core.absent().next().is_none();
                self.consider(Applicant {
                    hello,
                    key,
                    from,
                    connection,
                    arrived: self.node.now(),
                    invited: by_hand || alone,
                    asker: Asker::Dialler { by_hand, answer },
                });
            }
            Ask::Admit {
                hello,
                key,
                from,
                connection,
                answer,
            } => self.consider(Applicant {
                hello,
                key,
                from,
                connection,
                arrived: self.node.now(),
                invited: false,
                asker: Asker::Acceptor(answer),
            }),
            Ask::Known { key, answer } => {
                let _ = answer.send(self.node.core.knows(self.node.now(), key));
            }
            Ask::KnownId { id, answer } => {
                let _ = answer.send(self.node.core.knows_id(self.node.now(), id));
            }
            Ask::Reached { key, at, answer } => {
                let _ = answer.send(self.sessions.is_linked(key, Path::to(at)));
            }
            Ask::Linked { addresses, answer } => {
                let members = self.node.core.membership().iter();
                let mut known = members.flat_map(|(_, member)| &member.addresses);
                let _ = answer.send(known.any(|address| addresses.contains(address)));
            }
            Ask::Attach(attach, answer) => self.attach(attach, answer),
        }
    }

    fn consider(&mut self, applicant: Applicant) {
        let is_host = applicant.hello.policy.host_mode == HostMode::Host;
        // A guest has links with other guests only over carriers, and only if the host has introduced them.
        let is_introduced = match Path::to(applicant.from) {
            Path::Direct => false,
            Path::Carried(CarrierKind::Member) => true,
            Path::Carried(CarrierKind::Relay) => {
                self.node.core.knows(self.node.now(), applicant.key)
            }
        };
        if self.shared.config.is_star_guest() && !is_host && !is_introduced {
            let refused = Refused {
                bytes: Bytes::from_static(DIAL_THE_HOST.as_bytes()),
                ..Code::NotLeader.into()
            };
            return self.answer(applicant.answer(Err(refused)));
        }
        let by_own_hand = applicant.asker.is_own_hand();
        let Some(applicant) = self.admissions.dispute(applicant, Instant::now()) else {
            return; // the id's holder is asked for a sign of life
        };
        let Applicant {
            hello,
            key,
            connection,
            ..
        } = &applicant;
        match self.place_for((hello, *key), connection, by_own_hand, true) {
            Ok(place) => {
                let until = Instant::now() + self.shared.config.handshake_timeout;
                let ticket = self.admissions.begin(applicant, place, until);
                self.proceed(ticket);
            }
            Err(refused) => self.answer(applicant.answer(Err(refused))),
        }
    }

    /// Settles disputes about ids whose holders were asked for a sign of life.
    fn settle_disputes(&mut self, now: Instant) {
        for settled in self.admissions.settle(now) {
            match settled {
                Settled::Answer(answer) => self.answer(answer),
                Settled::Free(applicant, tickets) => {
                    for ticket in tickets {
                        self.feed(Input::JoinWithdrawn { ticket });
                    }
                    self.consider(applicant);
                }
            }
        }
    }

    /// Continues with a question, unless the host has not received a departure yet.
    fn proceed(&mut self, ticket: u64) {
        let is_free = |peer: &PeerId| self.sessions.is_free(peer);
        match self.admissions.proceed(ticket, is_free) {
            Some(Step::Ask(input)) => self.feed(input),
            Some(Step::Answer(answer)) => self.answer(answer),
            None => {}
        }
    }

    /// Handles the core's decision.
    fn join_answered(&mut self, ticket: u64, verdict: Verdict) {
        match self.admissions.decided(ticket, verdict) {
            Some(refusal) => self.answer(refusal),
            None => self.proceed(ticket),
        }
    }

    fn answer(&self, answer: Answer) {
        let (key, arrived) = (answer.key, answer.arrived);
        let side = || self.node.core.side_in_answer(self.node.now(), arrived);
        let from = answer.from;
        answer.send(|| self.hello(key, from, false, side()));
    }

    /// This node's Hello for the holder of a key at an address.
    fn hello(&self, key: Fingerprint, at: SocketAddr, by_hand: bool, side: Opaque) -> Hello {
        let Count { generation, losses } = self.sessions.count(key);
        let core = &self.node.core;
        let (eligible, priority) = core.standing_of_myself();
        let max_message_size = self.shared.config.max_message_size;
        Hello {
            features: FEATURE_PATHS | FEATURE_TRANSFERS | FEATURE_SILENT_RELAYS,
            peer_id: self.shared.peer_id.clone(),
            incarnation: core.incarnation(),
            generation,
            losses,
            by_hand,
            policy: core.policy(),
            // A member behind a carrier does not need this node's port.
            listen_port: match Path::to(at) {
                Path::Direct => match (behind_turn(at), self.tunnels.turn().address()) {
                    // Others reach it at the server's port, if there.
                    (Some(_), Some(port)) => port.port(),
                    _ => self.listen_port,
                },
                Path::Carried(_) => 0,
            },
            max_message_size: max_message_size.try_into().unwrap_or(u32::MAX),
            eligible,
            priority,
            has_leader: core.leader().is_some(),
            side,
            join_payload: self.join_payload.clone(),
            state: self.state_limits(),
        }
    }

    /// Reserves a place for a peer, unless there is a reason against it. With `may_dispute` its id may be
    /// bound to another key: the core finds out whether that key's holder is alive.
    fn place_for(
        &mut self,
        (hello, key): (&Hello, Fingerprint),
        connection: &Connection,
        by_own_hand: bool,
        may_dispute: bool,
    ) -> Result<Reservation, Refused> {
        let peer = &hello.peer_id;
        let now = self.node.now();
        let checked = self.node.core.check_hello(now, hello, key, by_own_hand);
        match self.check_state_of(hello).and(checked) {
            Ok(()) => {}
            Err(AdmissionRefusal::Bound(_)) if may_dispute => {}
            Err(refusal) => {
                tracing::info!(%peer, %refusal, "not admitted");
                let refused = refused_by(&refusal);
                return Err(self.kick_reasons.explain(peer, refused));
            }
        }
        self.end_outlived_session(hello, key);
        if self.sessions.pending_departures() >= MAX_PENDING_DEPARTURES {
            let why =
                "a host has not yet received that earlier players left; try again in a few seconds";
            return Err(explained(Code::MaxConnectionsReached, why));
        }
        let members = self.node.core.membership();
        let max_connections = self.shared.config.max_connections;
        let who = (key, hello.incarnation);
        let admissions = &mut self.admissions;
        admissions.reserve(peer, who, connection, members, max_connections)
    }

    /// Ends a session that the peer reports as ended or restarted, or whose link it reports as lost. The peer
    /// is trusted: it holds the key.
    fn end_outlived_session(&mut self, hello: &Hello, key: Fingerprint) {
        let peer = &hello.peer_id;
        if let Some(why) = self.sessions.ended_at_other(hello, key) {
            let peer = peer.clone();
            self.feed(Input::SessionOver { peer, why });
        } else if self.sessions.lost_at_other(hello, key) {
            self.feed(Input::LinkDown {
                peer: peer.clone(),
                why: LinkEnd::Silent, // alive, but received nothing from us for a while
            });
            self.sessions.note_losses(peer, hello.losses);
        }
    }

    fn attach(&mut self, attach: Box<Attach>, answer: AttachAnswer) {
        let (peer, key) = (attach.theirs.peer_id.clone(), attach.key);
        let connection = attach.link.connection.clone();
        if self.dialling.is_severed(attach.by_hand, Some(&peer), key) {
            // The other end may have the link already: the close carries the host's decision.
            connection.close(close::DISCONNECTED, b"");
            let _ = answer.send(Err(Code::Rejected));
            return;
        }
        if self
            .sessions
            .key_of(&peer)
            .is_some_and(|holder| holder != key)
        {
            // The id's holder may have shown a sign of life since it was asked for one.
            self.report_probed();
        }
        let ours = Count {
            generation: attach.our_generation,
            losses: attach.our_losses,
        };
        let count = ours.with(&attach.theirs);
        // The place was reserved until here; events since then may still rule the link out.
        let admitted = if answer.is_closed() {
            Err(Code::Timeout) // the asker has given up
        } else {
            let by_own_hand = attach.by_hand.is_some();
            match self.place_for((&attach.theirs, key), &connection, by_own_hand, false) {
                Err(refused) => Err(refused.code),
                Ok(_) if count < self.sessions.count(key) => Err(Code::ConnectionFailed),
                Ok(_) => Ok(()),
            }
        };
        if let Err(code) = admitted {
            // Close before the streams are dropped: the other end may have the link already, and would treat
            // the end of the control stream as a violation.
            let reason = match self.node.core.is_over() {
                true => close::ROOM_ENDED,
                false => close_code(code.value()),
            };
            connection.close(reason, b"");
            let _ = answer.send(Err(code));
            return;
        }
        self.feed(Input::LinkReady {
            peer: peer.clone(),
            key,
            incarnation: attach.theirs.incarnation,
        });
        if !self.sessions.is_free(&peer) {
            return self.attaching.push((attach, answer));
        }
        self.take_link(*attach, count);
        let _ = answer.send(Ok(()));
    }

    /// Makes a link part of the room.
    fn take_link(&mut self, attach: Attach, count: Count) {
        let Attach {
            link,
            theirs,
            key,
            our_side,
            dialled,
            by_hand,
            reservation,
            ..
        } = attach;
        let peer = theirs.peer_id.clone();
        let by_hand = by_hand.is_some();
        let at = link.connection.remote_address();
        drop(reservation);
        self.admissions.release(&peer);

        let attached = self.sessions.attach(link, &theirs, key, count, dialled);
        if matches!(attached, Attached::Carries | Attached::TakesOver) {
            if by_hand || theirs.by_hand {
                self.feed(Input::Command(Command::LiftBan(peer.clone())));
            }
            if by_hand {
                self.feed(Input::Command(Command::Pardon(key)));
            }
            let carrier = self.carrier_at(at);
            self.came_over(carrier.as_ref(), key);
            self.feed(Input::LinkUp(Box::new(LinkUp {
                peer: peer.clone(),
                incarnation: theirs.incarnation,
                key,
                addresses: addresses_of(at, theirs.listen_port),
                eligible: theirs.eligible,
                priority: theirs.priority,
                is_host: theirs.policy.host_mode == HostMode::Host,
                path: Path::to(at),
                carrier,
                through_turn: behind_turn(at).is_some(),
                features: theirs.features,
                ours: our_side,
                theirs: theirs.side,
            })));
            if attached == Attached::Carries {
                // JOINED is in the host's queue; messages may follow.
                self.sessions.start_lanes(&peer);
            }
        } else {
            self.keep_carrier(&peer);
            if attached == Attached::Replaces {
                self.feed(Input::Relinked { peer: peer.clone() });
            }
        }
        self.state_link_changed(&peer);
        self.report_address(&peer);
    }
}

fn severed() -> Refused {
    Refused::because(Code::Rejected, DISCONNECTED_MEANWHILE)
}

/// Shutdown.
impl Driver {
    /// Leaves the room: flush, leave, close, all until `limit`.
    async fn leave(mut self, limit: Instant) {
        self.gate.endpoint.set_server_config(None);
        // Open and later questions fail at once as "closed": leaving takes time.
        self.queues.commands.close();
        while self.queues.commands.recv().await.is_some() {}
        if let Some(showing) = self.showing.take() {
            showing.end().await;
        }
        // Discovery must not wait for a reader of its finds.
        self.queues.discovered.close();
        let mut discovery = None;
        if let Some(running) = self.discovery.take() {
            discovery = running.withdraw().await;
        }
        let flushed = self.flush(Instant::now() + FLUSH_LIMIT).await;
        self.sessions.end_lanes(flushed);
        let members = self.node.core.membership().iter();
        let slowest = members
            .filter_map(|(_, member)| member.rtt.smoothed())
            .max()
            .unwrap_or_default();
        let least = match &self.store {
            Some(_) => MIN_STORE_LEAVE_WAIT,
            None => MIN_LEAVE_WAIT,
        };
        self.leave_state().await;
        self.feed(Input::Command(Command::Leave));
        let leave_wait_limit = limit.min(Instant::now() + least.max(slowest * 3));
        while !self.departed && Instant::now() < leave_wait_limit {
            // The loop checks its condition however the wait ends.
            let _ = timeout(leave_wait_limit - Instant::now(), self.step()).await;
        }
        self.gate.endpoint.close(close::DONE, b"left");
        let rest = limit
            .saturating_duration_since(Instant::now())
            .min(CLOSE_LIMIT);
        let closed = async {
            // Connections that do not close in time are dropped with the endpoint.
            let _ = timeout(rest, self.gate.endpoint.wait_idle()).await;
        };
        let given_back = async {
            if let Some(mapper) = self.mapper.take() {
                mapper.end().await;
            }
        };
        tokio::join!(closed, given_back);
        // After the last packets through it.
        if let Some(turn) = self.turn.take() {
            turn.end().await;
        }
        self.shared.outboxes.close_all();
        tracing::debug!(packets = ?self.tunnels.stats(), "the tunnels are closed");
        if let Some(discovery) = discovery {
            discovery.wait();
        }
        self.node.finish();
    }

    /// Waits until the others have what this member has ordered as leader.
    async fn leave_state(&mut self) {
        let now = self.node.now();
        if let Some(replication) = &mut self.replication {
            replication.leave(now);
            self.advance_state();
        }
        let limit = Instant::now() + STATE_LEAVE_LIMIT;
        let waits = |driver: &Self| {
            let replication = driver.replication.as_ref();
            replication.is_some_and(|replication| !replication.may_end())
        };
        while waits(self) && Instant::now() < limit {
            // The loop checks its condition however the wait ends.
            let _ = timeout(limit - Instant::now(), self.step()).await;
        }
    }

    /// Waits until the peers have taken everything that was accepted; returns whether they did.
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
