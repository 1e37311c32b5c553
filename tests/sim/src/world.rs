//! A room in virtual time: processes, their links, and the one queue of all future events.
//!
//! Every random choice comes from one generator, so that a seed decides a run.

mod disk;
mod first;
mod flood;
mod gossip;
mod paths;
mod raft;
mod room_end;
mod room_time;
mod roster;
mod seeded;
mod shown;
mod states;

use std::any::Any;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use room_core::election::etcd::EtcdConfig;
use room_core::election::gossip::Windows;
use room_core::election::guards::Guards;
use room_core::election::record::Record;
use room_core::election::{ElectionConfig, Entry, Recovery};
use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::introductions::Reconnect;
use room_core::node::{
    Command, CommandError, Event, Input, LeaderChange, Left, LinkEnd, Node, NodeConfig, Output,
};
use room_core::quorum::{Quorum, Roster};
use room_core::room_time::Line;
use room_core::time::{Duration, Time};
use room_core::trace::What;
use room_core::wire::{Authority, HostMode, MergePolicy, Message, RoomPolicy, Strategy, Topology};

use crate::checks::{Checker, Violation};
use crate::clock::{Clock, slowest_clock};
use crate::fingerprint::EventHash;
use crate::gossip::Counts;
use crate::harm::Slandered;
use crate::links::{ClosedPorts, Link, Numbers, Paths, Pending, Question, Strays, TRAILERS, Wire};
use crate::plan::Hosts;
use crate::profile::{self, Profile};
use crate::record::{CLOCK_US, Recorder};
use crate::sometimes::Sometimes;
use crate::trace::{Brief, Trace};
pub use disk::File;
use flood::{flood, places};
use roster::{Report, Tenure};

pub(crate) use paths::UNUSED;
pub use roster::Strike;
pub use seeded::SeededPlaces;
pub(crate) use states::States;

/// Ticks of one node at one instant; more is a livelock.
const MAX_TICKS_AT_ONCE: u32 = 8;
/// A leaving process ends at the latest after this.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// A running process.
#[derive(Debug)]
pub struct Process {
    pub node: Node,
    pub key: Fingerprint,
    pub eligible: bool,
    pub paused: bool,
    pub leaving: bool,
    /// Its clock.
    pub clock: Clock,
    /// Dials that the host asked for and that are running.
    pub host_dials: u32,
    /// The link of each peer, by slot.
    pub sessions: BTreeMap<usize, u64>,
    /// The place that it was last linked to under each id.
    pub(crate) last_linked: BTreeMap<PeerId, usize>,
    /// Whether each peer may lead, according to its own events.
    may_lead: BTreeMap<PeerId, bool>,
    /// Peers that its host disconnected, or that were kicked.
    pub(crate) keeps_out: BTreeSet<PeerId>,
    wake_at: Option<Time>,
    ticks: (Time, u32),
    /// Time at which the last write to its disk is done.
    disk_done_at: Time,
    /// The shortest election timeout by which it leads, as it last reported.
    pub election_timeout_min: Option<Duration>,
    /// Whether its host lets it propose itself, if the strategy needs that.
    pub auto: bool,
    /// Time of its start, and whether it has proposed itself or found a leader since.
    born_at: Time,
    started_up: bool,
    /// Its counters of its sessions.
    pub(crate) numbers: Numbers,
    /// Peers that it probed, with the times.
    pub(crate) probed: BTreeMap<usize, Time>,
    /// The room's time as it showed it after its last input.
    room_time: Option<Line>,
    /// Inputs so far, for checks that need not be made after every one.
    inputs: u64,
    /// Its end by a strike, and the write at which that happens.
    strike: Option<(u64, Strike)>,
    /// The number of its last write, and of the last one before it noticed that its file is not the newest.
    last_write: u64,
    /// The write counter of its file when it started.
    writes_at_start: u64,
    noticed_after: Option<u64>,
    tenure: Tenure,
}

/// A place for one peer: its processes come and go, its name and address stay.
#[derive(Debug)]
pub struct Slot {
    pub id: PeerId,
    pub address: SocketAddr,
    /// Counts the processes that ran here.
    pub life: u64,
    pub process: Option<Process>,
    pub eligible: bool,
    /// Time since which its host has taken no events.
    pub host_silent_since: Option<Time>,
    /// Entry of its processes.
    pub entry: Entry,
    /// Every `LeaderChanged` of its host, with the time.
    pub reported: Vec<(Time, Option<PeerId>)>,
    /// Whether its peer was kicked: no process starts there again.
    pub kicked: bool,
    /// Every other event of its host.
    pub events: Vec<(Time, Event)>,
    /// The key of all its processes; without one, each has its own.
    pub key: Option<Fingerprint>,
    /// Rate of its processes' clocks: their microseconds in a second.
    pub clock_rate: u32,
    /// The election priority with which its processes start.
    pub priority: i32,
    /// Its state file.
    pub saved: Option<File>,
    /// Recent state files, one for each write; the last one last.
    pub copies: Vec<File>,
    /// Its writes fail until then.
    pub disk_fails_until: Time,
    /// Advance of its wall clock over the true one.
    pub wall_clock_ahead_ms: i64,
    /// Whether its host uses the other recovery than the room's settings.
    pub other_recovery: bool,
}

/// A future event.
#[derive(Debug)]
pub enum Happening {
    /// A node asked for a tick.
    Wake { slot: usize, life: u64 },
    /// The limit of a leave.
    LeaveLimit { slot: usize, life: u64 },
    /// The others have the log of a member that leaves.
    StateLeft { slot: usize, life: u64 },
    /// A node's state is on its disk.
    Saved {
        slot: usize,
        life: u64,
        number: u64,
        file: File,
    },
    /// A host answers whether a newcomer may enter.
    HostAnswers {
        slot: usize,
        life: u64,
        request: u64,
    },
    /// A process ends in the middle of an election.
    Strike { slot: usize, life: u64 },
    /// It starts again.
    Revive { slot: usize, life: u64 },
    /// The hosts of a room with a state act.
    HostsAct,
    /// A log's deadline has come.
    StateWakes,
    /// An event of links.
    Wire(Wire),
}

/// An entry of the queue: earlier ones come first, then the ones queued first.
#[derive(Debug)]
struct Queued {
    at: Time,
    number: u64,
    happening: Happening,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// Settings of a room.
#[derive(Debug, Clone)]
pub struct Settings {
    pub heartbeat_interval: Duration,
    pub heartbeat_timeout: Duration,
    pub election_timeout_min: Duration,
    pub election_timeout_max: Duration,
    pub merge: MergePolicy,
    pub authority: Authority,
    pub recovery: Recovery,
    /// Range of the one-way delay of every direction.
    pub delay: (Duration, Duration),
    /// Largest lateness of timers.
    pub lateness: Duration,
    /// Time for which a lost member keeps its place.
    pub member_hold: Duration,
    /// The places on the roster, if the quorum is static.
    pub roster: Option<BTreeSet<usize>>,
    /// The voters and seeds of a room that elects by the seeded strategy.
    pub seeded: Option<SeededPlaces>,
    /// Range of a write's duration.
    pub disk: (Duration, Duration),
    /// The guards in force.
    pub guards: Guards,
    /// The election strategy.
    pub strategy: Strategy,
    /// The windows of the gossip strategy.
    pub windows: Windows,
    /// The place of the room's fixed host, if it has one. It does not campaign by itself.
    pub host: Option<usize>,
    /// Hosts' actions beside elections.
    pub hosts: Hosts,
    /// Time without events taken after which a leader yields.
    pub yield_after: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(500),
            heartbeat_timeout: Duration::from_millis(1500),
            election_timeout_min: Duration::from_millis(1500),
            election_timeout_max: Duration::from_millis(3000),
            merge: MergePolicy::LargestSide,
            authority: Authority::Anyone,
            recovery: Recovery::Hold,
            delay: (Duration::from_millis(1), Duration::from_millis(5)),
            lateness: Duration::ZERO,
            member_hold: Duration::from_secs(60),
            roster: None,
            seeded: None,
            disk: (Duration::from_millis(1), Duration::from_millis(10)),
            guards: Guards::ALL,
            strategy: Strategy::Raft,
            windows: Windows::default(),
            host: None,
            hosts: Hosts::default(),
            yield_after: None,
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct World {
    pub now: Time,
    pub rng: ChaCha8Rng,
    pub settings: Settings,
    /// The laboratory's knowledge of its strategy.
    pub(crate) profile: Rc<dyn Profile>,
    pub slots: Vec<Slot>,
    pub links: BTreeMap<u64, Link>,
    pub dials: BTreeMap<u64, Pending>,
    /// Number of faults that cut the direction from the first to the second.
    pub cuts: BTreeMap<(usize, usize), u32>,
    /// Additional delay of a direction.
    pub slow: BTreeMap<(usize, usize), Duration>,
    /// Share of packets of the control streams that are lost and sent again.
    pub stream_loss: f64,
    /// Share of datagrams that are lost, and that arrive twice.
    pub datagram_loss: f64,
    pub datagram_copies: f64,
    /// Control messages that leave their streams, and the arrival of the last of them.
    pub strays: Strays,
    /// Reports of closed ports.
    pub closed_ports: ClosedPorts,
    /// Walls, carriers and addresses.
    pub paths: Paths,
    pub(crate) last_stray_at: Time,
    /// Largest lateness of a host's message after the control stream, and the last arrival.
    pub data_late: Duration,
    pub(crate) last_data_at: Time,
    /// Newcomers that the room is asked about: by the slot that asks, and its ticket.
    pub(crate) questions: BTreeMap<(usize, u64), Question>,
    /// Share of the writes of a vote with which the process ends.
    pub strikes: f64,
    /// Empty datagrams after an urgent message.
    pub trailers: u32,
    /// The reason that the other end receives when a link is closed for its silence.
    pub silence_is_reported_as: LinkEnd,
    pub trace: Trace,
    /// The recorder of a picture, if one is wanted.
    pub recorder: Option<Recorder>,
    pub violation: Option<Violation>,
    /// Sent election messages, without heartbeats.
    pub election_messages: u64,
    /// From then on no host's transfer is under way.
    pub transfers_until: Time,
    /// Every link that a core closed: its slot, the peer, the reason.
    pub closes: Vec<(usize, PeerId, LinkEnd)>,
    /// Time since which there are no faults, for the bounds that hold only then.
    pub calm_since: Option<Time>,
    /// A hash over all events (P17).
    pub hash: EventHash,
    /// Counts of events.
    pub sometimes: Sometimes,
    /// Counts of rooms that elect by gossip.
    pub gossip: Counts,
    pub checker: Checker,
    /// Places of members that lie.
    pub liars: BTreeSet<usize>,
    /// Records that liars' Hellos claim in their next incarnations, instead of their nodes' own.
    pub boasts: BTreeMap<usize, Record>,
    /// Time of a host's last request for a link, by place and target.
    pub invited: BTreeMap<(usize, usize), Time>,
    /// Lies against others.
    pub slandered: Slandered,
    /// The term that the first process to start knows, if not zero.
    pub first_term: u64,
    /// Number of log lines in which honest members reported a drop.
    pub refusals: u64,
    /// The room's state, if it keeps one.
    pub(crate) states: Option<Box<States>>,
    rivals: BTreeMap<(usize, usize), Time>,
    /// Time at which a leader may have lacked a majority of the roster for too long.
    majority_due: Time,
    /// Slots whose node leads.
    leading: BTreeSet<usize>,
    /// Slots whose node has led since this was last cleared.
    pub led: BTreeSet<usize>,
    places: BTreeMap<PeerId, usize>,
    queue: BinaryHeap<Reverse<Queued>>,
    queued: u64,
    pub made: u64,
}

impl World {
    /// A room of `size` places, without a running process.
    pub fn new(seed: u64, size: usize, settings: Settings, trace: Trace) -> Self {
        let mut world = Self {
            now: Time::from_micros(1_000_000),
            rng: ChaCha8Rng::seed_from_u64(seed),
            profile: profile::of(settings.strategy),
            settings,
            slots: Vec::new(),
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            cuts: BTreeMap::new(),
            slow: BTreeMap::new(),
            stream_loss: 0.0,
            datagram_loss: 0.0,
            datagram_copies: 0.0,
            strays: Strays::default(),
            closed_ports: ClosedPorts::default(),
            paths: Paths::default(),
            last_stray_at: Time::ZERO,
            data_late: Duration::ZERO,
            last_data_at: Time::ZERO,
            questions: BTreeMap::new(),
            strikes: 0.0,
            trailers: TRAILERS,
            silence_is_reported_as: LinkEnd::Closed,
            trace,
            recorder: None,
            violation: None,
            election_messages: 0,
            transfers_until: Time::ZERO,
            closes: Vec::new(),
            calm_since: None,
            hash: EventHash::default(),
            sometimes: Sometimes::default(),
            gossip: Counts::default(),
            checker: Checker::default(),
            liars: BTreeSet::new(),
            boasts: BTreeMap::new(),
            invited: BTreeMap::new(),
            slandered: Slandered::default(),
            first_term: 0,
            refusals: 0,
            states: None,
            rivals: BTreeMap::new(),
            majority_due: Time::ZERO,
            leading: BTreeSet::new(),
            led: BTreeSet::new(),
            places: BTreeMap::new(),
            queue: BinaryHeap::new(),
            queued: 0,
            made: 0,
        };
        world.add_slots(size);
        world
    }

    /// Adds places with names of their own.
    pub fn add_slots(&mut self, count: usize) {
        for _ in 0..count {
            let name = loop {
                let letters = (0..3).map(|_| char::from(self.rng.random_range(b'a'..=b'z')));
                let name: String = letters.collect();
                if self.slots.iter().all(|slot| slot.id.as_str() != name) {
                    break name;
                }
            };
            let index = self.slots.len();
            self.slots.push(Slot::new(&name, index));
        }
    }

    /// Adds an event to the queue.
    pub fn at(&mut self, time: Time, happening: Happening) {
        self.queued += 1;
        self.queue.push(Reverse(Queued {
            at: time.max(self.now),
            number: self.queued,
            happening,
        }));
    }

    /// A random duration in this range, both ends included.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let least = least.as_micros() as u64;
        let most = (most.as_micros() as u64).max(least);
        Duration::from_micros(self.rng.random_range(least..=most))
    }

    /// Processes all events due until `time`, or until a property is broken.
    pub fn run_until(&mut self, time: Time) {
        while self.violation.is_none() {
            if self.queue.peek().is_none_or(|next| next.0.at > time) {
                break;
            }
            let Some(Reverse(next)) = self.queue.pop() else {
                break;
            };
            self.now = next.at;
            match next.happening {
                Happening::Wake { slot, life } => self.wake(slot, life),
                Happening::StateLeft { slot, life } if self.slots[slot].life == life => {
                    self.leave_room(slot);
                }
                Happening::StateLeft { .. } => {} // it crashed
                Happening::LeaveLimit { slot, life } => {
                    if self.slots[slot].life == life && self.slots[slot].process.is_some() {
                        self.exit(slot);
                    }
                }
                Happening::Saved {
                    slot,
                    life,
                    number,
                    file,
                } => self.saved(slot, life, number, file),
                Happening::HostAnswers {
                    slot,
                    life,
                    request,
                } => self.host_answers(slot, life, request),
                Happening::Strike { slot, life } => {
                    if self.slots[slot].life == life {
                        self.strike(slot);
                    }
                }
                Happening::Revive { slot, life } => self.revive(slot, life),
                Happening::HostsAct => self.hosts_act(),
                // The turn ends with it.
                Happening::StateWakes => {}
                Happening::Wire(wire) => self.wire(wire),
            }
            self.advance_states();
            self.check_rivals();
            self.check_majorities();
        }
        self.now = self.now.max(time);
    }

    /// Runs for a while.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    pub fn violate(&mut self, property: &'static str, text: String) {
        let violation = Violation { property, text };
        self.trace
            .add(self.now, format_args!("VIOLATION {violation}"));
        self.note_room(What::Violation {
            property: property.into(),
            text: violation.text.clone(),
        });
        self.violation.get_or_insert(violation);
    }
}

/// Processes.
impl World {
    /// Starts a process.
    pub fn start(&mut self, slot: usize) {
        let life = self.slots[slot].life + 1;
        let seed = self.rng.random();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.rng.random::<u64>().to_be_bytes());
        let key = self.slots[slot].key.unwrap_or(Fingerprint(key));
        let incarnation = Incarnation {
            started_us: self.wall_clock(slot).as_micros() as u64,
            random: self.rng.random(),
        };
        let place = &self.slots[slot];
        let before = place.saved.as_ref().map(|file| file.incarnation);
        let incarnation = before.map_or(incarnation, |before| incarnation.after(before));
        let config = self.config(slot, key);
        let clock = Clock::new(self.now, place.clock_rate);
        let local = clock.local(self.now);
        let node = Node::new(place.id.clone(), incarnation, config, seed, local)
            .expect("its file is one of the room's strategy");
        self.keep_first_state(slot, &node);
        let is_static = self.settings.roster.is_some();
        let saved = self.slots[slot].saved.as_ref().filter(|_| is_static);
        let votes = saved.map(File::votes);
        let forgets = votes
            .as_ref()
            .is_some_and(|votes| votes.forgotten.is_some());
        let place = &mut self.slots[slot];
        place.life = life;
        place.process = Some(Process {
            node,
            key,
            clock,
            eligible: place.eligible,
            paused: false,
            leaving: false,
            host_dials: 0,
            sessions: BTreeMap::new(),
            last_linked: BTreeMap::new(),
            may_lead: BTreeMap::new(),
            keeps_out: BTreeSet::new(),
            wake_at: None,
            ticks: (Time::ZERO, 0),
            disk_done_at: self.now,
            election_timeout_min: None,
            auto: true,
            born_at: self.now,
            started_up: false,
            numbers: Numbers::default(),
            probed: BTreeMap::new(),
            room_time: None,
            inputs: 0,
            strike: None,
            last_write: 0,
            writes_at_start: votes.as_ref().map_or(0, |votes| votes.writes),
            noticed_after: forgets.then_some(0),
            tenure: Tenure::default(),
        });
        self.places.insert(self.slots[slot].id.clone(), slot);
        self.trace.add(
            self.now,
            format_args!("{} starts, life {life}", self.slots[slot].id),
        );
        let kept = self.settings.roster.is_some();
        self.checker.recovery = self.recovery(slot);
        self.checker.lied_to = !self.liars.is_empty();
        self.checker.quorum = self.quorum();
        let place = &self.slots[slot];
        self.checker
            .born(slot, &place.id, kept.then_some(votes.as_ref()));
        if forgets {
            self.checker.noticed(slot);
        }
        let restarts = votes.is_some_and(|votes| votes.writes > 1);
        self.sometimes.restarts_from_disk += u64::from(restarts);
        if let (Some(recorder), Some(process)) = (&mut self.recorder, &place.process) {
            recorder.start(slot, self.now, &process.node);
        }
        if self.settings.host == Some(slot) {
            // Its outputs and messages at its start, before any input.
            let _ = self.feed(slot, Input::HostDialing(false));
        }
        self.enter_relays(slot);
        self.learn_first_term(slot);
        self.schedule_wake(slot);
    }

    /// Records the run from now on.
    pub fn record(&mut self, seed: u64) {
        self.recorder = Some(Recorder::new(seed, self.slots.len(), self.now));
    }

    /// Records an event of a process.
    fn note(&mut self, slot: usize, what: What) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(slot, self.now, what);
        }
    }

    /// Records an event of the room.
    pub fn note_room(&mut self, what: What) {
        if let Some(recorder) = &mut self.recorder {
            recorder.room(self.now, what);
        }
    }

    fn config(&self, slot: usize, key: Fingerprint) -> NodeConfig {
        NodeConfig {
            heartbeat_interval: self.settings.heartbeat_interval,
            election: ElectionConfig {
                policy: self.policy(slot),
                quorum: self.quorum(),
                heartbeat_timeout: self.settings.heartbeat_timeout,
                election_timeout_min: self.settings.election_timeout_min,
                election_timeout_max: self.settings.election_timeout_max,
                auto_election: self.settings.host.is_none(),
                entry: self.slots[slot].entry,
                eligible: self.slots[slot].eligible,
                priority: self.slots[slot].priority,
                recovery: self.wanted_recovery(slot),
                windows: self.settings.windows,
                seeding: self.seeding(slot),
                etcd: EtcdConfig::default(),
                guards: self.settings.guards,
            },
            max_connections: 127,
            max_peers: 0,
            auto_reconnect: true,
            reconnect: Reconnect::default(),
            member_hold: self.settings.member_hold,
            handshake_timeout: Duration::from_secs(5),
            yield_after: self.settings.yield_after,
            ask_host: self.settings.hosts.decide,
            wall_clock: self.wall_clock(slot),
            saved: self.slots[slot]
                .saved
                .as_ref()
                .map(|file| file.state.clone()),
            key,
            addresses: vec![self.own_address(slot)],
            relayed_only: self.paths.relayed_only.contains(&slot),
        }
    }

    /// The recovery that a place's host wants after the loss of an assigned leader.
    fn wanted_recovery(&self, slot: usize) -> Recovery {
        let holds = (self.settings.recovery == Recovery::Hold) != self.slots[slot].other_recovery;
        if holds {
            Recovery::Hold
        } else {
            Recovery::AutoElect
        }
    }

    /// The recovery in force there. If only the leader assigns there is no Hold (C4.5).
    pub fn recovery(&self, slot: usize) -> Recovery {
        match self.settings.authority {
            Authority::LeaderOnly => Recovery::AutoElect,
            Authority::Anyone => self.wanted_recovery(slot),
        }
    }

    /// The wall clock of a place now.
    fn wall_clock(&self, slot: usize) -> Duration {
        let micros = CLOCK_US + self.now.as_micros();
        let ahead = self.slots[slot].wall_clock_ahead_ms * 1000;
        Duration::from_micros(micros.saturating_add_signed(ahead))
    }

    /// The places of the voters, if these are fixed.
    pub(crate) fn voters(&self) -> Option<&BTreeSet<usize>> {
        let seeded = self.settings.seeded.as_ref().map(|places| &places.voters);
        self.settings.roster.as_ref().or(seeded)
    }

    /// The rule for a majority.
    pub fn quorum(&self) -> Quorum {
        let Some(places) = self.voters() else {
            return Quorum::Dynamic;
        };
        let voters = places
            .iter()
            .map(|slot| (self.slots[*slot].id.clone(), None));
        Quorum::Static(Roster::new(voters).expect("1 to 64 places, each with a name of its own"))
    }

    /// The room policy of a place's processes.
    pub fn policy(&self, slot: usize) -> RoomPolicy {
        RoomPolicy {
            host_mode: match self.settings.host {
                None => HostMode::Off,
                Some(host) if host == slot => HostMode::Host,
                Some(_) => HostMode::Guest,
            },
            quorum: self.quorum().policy(),
            merge: self.settings.merge,
            authority: self.settings.authority,
            strategy: self.settings.strategy,
            topology: Topology::Mesh,
        }
    }

    /// Crashes a process (kill -9).
    pub fn crash(&mut self, slot: usize) {
        if self.slots[slot].process.take().is_some() {
            self.trace
                .add(self.now, format_args!("{} crashes", self.slots[slot].id));
            self.note(slot, What::Crashed);
            self.ended(slot);
            self.play_against(slot);
        }
    }

    /// The host leaves. A log goes first: its leader waits for the others.
    pub fn leave(&mut self, slot: usize) {
        if let Some(process) = &mut self.slots[slot].process {
            process.leaving = true;
            self.slandered.left.insert(slot);
            if !self.state_leaves(slot) {
                self.leave_room(slot);
            }
        }
    }

    fn leave_room(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        if self.slots[slot].process.is_some() {
            self.at(self.now + LEAVE_LIMIT, Happening::LeaveLimit { slot, life });
            // The host of a leaving process can do nothing wrong.
            let _ = self.command(slot, Command::Leave);
        }
    }

    /// Ends a process that announced its leave: closes its links.
    fn exit(&mut self, slot: usize) {
        self.trace
            .add(self.now, format_args!("{} exits", self.slots[slot].id));
        self.note(slot, What::Stopped);
        self.close_all(slot);
        self.slots[slot].process = None;
        self.ended(slot);
    }

    fn ended(&mut self, slot: usize) {
        self.checker.now = self.now;
        let timeout = self.settings.heartbeat_timeout;
        self.checker.settles = timeout * 9 / 16 + self.max_rtt();
        self.checker.died(slot);
        self.questions.retain(|(asks, _), _| *asks != slot);
        self.leading.remove(&slot);
        self.forget_ends_of(slot);
        self.leave_relays(slot);
    }

    /// Stops a process for a while: it receives nothing.
    pub fn pause(&mut self, slot: usize) {
        self.checker.disturbed = true;
        if let Some(process) = &mut self.slots[slot].process {
            process.paused = true;
            self.trace
                .add(self.now, format_args!("{} is paused", self.slots[slot].id));
            self.note(slot, What::Paused);
        }
    }

    /// Resumes a stopped process. Either its timers or its messages come first.
    pub fn resume(&mut self, slot: usize) {
        let timers_first = self.rng.random_bool(0.5);
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        if !std::mem::replace(&mut process.paused, false) {
            return;
        }
        self.trace
            .add(self.now, format_args!("{} resumes", self.slots[slot].id));
        self.note(slot, What::Resumed);
        let profile = Rc::clone(&self.profile);
        profile.resumes(self, slot);
        if timers_first {
            let _ = self.feed(slot, Input::Tick);
        }
        self.unblock();
        self.schedule_wake(slot);
    }
}

/// Inputs and outputs.
impl World {
    /// A command of a host; returns the node's answer.
    pub fn command(&mut self, slot: usize, command: Command) -> Result<(), CommandError> {
        self.trace.add(
            self.now,
            format_args!("{} receives {command:?}", self.slots[slot].id),
        );
        if let Command::SetLeader(_) | Command::TransferLeadership(_) = command {
            let longest = slowest_clock(self.settings.election_timeout_max);
            self.transfers_until = self.now + longest + self.max_rtt();
        }
        if let Command::Unban(peer) = &command {
            self.checker.unbanned(peer);
            self.lets_in(peer);
        }
        self.feed(slot, Input::Command(command))
    }

    /// The host sets whether its node may lead.
    pub fn set_eligible(&mut self, slot: usize, eligible: bool) {
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        let before = std::mem::replace(&mut process.eligible, eligible);
        let refused = self.command(slot, Command::SetEligible(eligible)).is_err();
        if let Some(process) = self.slots[slot].process.as_mut().filter(|_| refused) {
            process.eligible = before;
        }
    }

    /// One input of a node, with all its consequences.
    pub fn feed(&mut self, slot: usize, input: Input) -> Result<(), CommandError> {
        let now = self.now;
        if matches!(input, Input::Message { .. }) {
            self.look_at_host(slot);
        }
        if !self.liars.is_empty() {
            self.note_slander(slot, &input);
        }
        let Some(process) = &mut self.slots[slot].process else {
            return Ok(());
        };
        if input == Input::Tick {
            let count = if process.ticks.0 == now {
                process.ticks.1 + 1
            } else {
                1
            };
            process.ticks = (now, count);
        }
        match &input {
            Input::LinkUp(link) => {
                process.may_lead.insert(link.peer.clone(), link.eligible);
            }
            Input::Message { from, envelope } => {
                let member = process.node.membership().get(from);
                if let Message::Standing { eligible, .. } = envelope.message
                    && member.is_some_and(|member| member.incarnation == envelope.incarnation)
                {
                    process.may_lead.insert(from.clone(), eligible);
                }
            }
            _ => {}
        }
        let reported = self.slots[slot]
            .process
            .as_ref()
            .and_then(|process| self.reported_by(process, &input));
        self.note_contact(slot, &input);
        let Some(process) = &mut self.slots[slot].process else {
            return Ok(());
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.input(slot, now, &process.node, &input);
        }
        let livelock = process.ticks.0 == now && process.ticks.1 > MAX_TICKS_AT_ONCE;
        process.inputs += 1;
        self.hash.input(now, slot, &input);
        let released = input == Input::Command(Command::EnableAutoElection(true))
            && process.node.leader().is_none();
        if released {
            self.checker.released(slot);
        }
        if !takes_over(&process.node, &input) {
            self.checker.takes(slot, &input);
        }
        let before = Before {
            of_strategy: self.profile.before(&process.node, Some(&input)),
            members: places(&process.node),
            over: process.node.is_over(),
            reported,
        };
        if let Input::Command(Command::EnableAutoElection(enabled)) = &input {
            process.auto = *enabled;
        }
        let result = process.node.handle(process.clock.local(now), input);
        if livelock {
            self.violate(
                "contract",
                format!("{} wants tick after tick", self.slots[slot].id),
            );
        }
        self.follow_up(slot, &before, result)
    }

    /// One question of the network to a node, which may change it like an input.
    pub(crate) fn ask<A>(
        &mut self,
        slot: usize,
        question: impl FnOnce(&mut Node, Time) -> A,
    ) -> Option<A> {
        let now = self.now;
        let process = self.slots[slot].process.as_mut()?;
        process.inputs += 1;
        let before = Before {
            of_strategy: self.profile.before(&process.node, None),
            members: places(&process.node),
            over: process.node.is_over(),
            reported: None,
        };
        let answer = question(&mut process.node, process.clock.local(now));
        // Only a command is refused.
        let _ = self.follow_up(slot, &before, Ok(()));
        Some(answer)
    }

    /// Checks a node's outcome of an input, and carries it out.
    fn follow_up(
        &mut self,
        slot: usize,
        before: &Before,
        result: Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let now = self.now;
        let Some(process) = &mut self.slots[slot].process else {
            return result;
        };
        let outputs: Vec<Output> = std::iter::from_fn(|| process.node.poll_output()).collect();
        if let Some(recorder) = &mut self.recorder {
            recorder.outcome(slot, now, &process.node, &result, &outputs);
        }
        let members = places(&process.node).max(before.members);
        self.hash.after(&process.node, &outputs);
        if process.node.is_leader() {
            self.leading.insert(slot);
            self.led.insert(slot);
        } else {
            self.leading.remove(&slot);
        }
        if let Some(count) = flood(&outputs, members) {
            self.violate("contract", format!("{count} outputs of one input"));
        }
        self.note_belief(slot, &outputs);
        self.note_tenure(slot);
        self.check_path(slot, &outputs);
        self.check_memory(slot, before.reported.as_ref(), &outputs);
        self.check_lied_to(slot, &outputs);
        self.check_room_end(slot, before.over, &outputs);
        self.check_room_time(slot);
        let profile = Rc::clone(&self.profile);
        profile.check(self, slot, &*before.of_strategy, &outputs, &result);
        let mut answers = Vec::new();
        self.paths.depth += 1;
        for output in outputs {
            match output {
                Output::JoinAnswer { ticket, verdict } => answers.push((ticket, verdict)),
                other => self.carry_out(slot, other),
            }
        }
        for (ticket, verdict) in answers {
            self.join_answered(slot, ticket, &verdict);
        }
        self.paths.depth -= 1;
        self.check_paths(slot);
        self.schedule_wake(slot);
        result
    }

    fn carry_out(&mut self, slot: usize, output: Output) {
        match output {
            Output::Transmit {
                to,
                envelope,
                urgent,
            } => {
                self.note_timeout(slot, &envelope.message);
                let counts = matches!(envelope.message, Message::Election(_));
                self.election_messages += u64::from(counts);
                if counts {
                    self.trace.add(
                        self.now,
                        format_args!("{} -> {to} {}", self.slots[slot].id, Brief(&envelope)),
                    );
                }
                self.transmit(slot, &to, envelope, urgent);
            }
            Output::Datagram { to, probe } => self.send_datagram(slot, &to, probe),
            Output::Dial(dial) => self.dial_for_core(slot, &dial),
            Output::Carrier { peer, carrier } => {
                self.change_carrier(slot, &peer, carrier.as_ref());
            }
            Output::DialSeeds(seeds) => self.dial_seeds(slot, &seeds),
            Output::Engine { .. } => unreachable!("no strategy here asks an external store"),
            Output::Close { peer, why } => self.close(slot, &peer, why),
            Output::Event(event) => {
                let place = &mut self.slots[slot];
                self.trace
                    .add(self.now, format_args!("{} event {event:?}", place.id));
                match event {
                    Event::LeaderChanged(LeaderChange { new: leader, .. }) => {
                        place.reported.push((self.now, leader));
                        if self.settings.hosts.talk {
                            self.speak_as_leader(slot);
                            self.speak_through_leader(slot);
                        }
                    }
                    Event::JoinRequest { request, .. } => self.host_is_asked(slot, request),
                    other => {
                        place.events.push((self.now, other.clone()));
                        self.note_path(slot, &other);
                        self.note_session(slot, &other);
                    }
                }
            }
            Output::StaleState { .. } => {} // counted by its check
            // Answered after all other outputs are carried out.
            Output::JoinAnswer { .. } => {}
            Output::Persist { number, state } => self.write(slot, number, state),
            Output::Dropped { from, value, bound } => {
                let id = &self.slots[slot].id;
                self.trace.add(
                    self.now,
                    format_args!("{id} drops a message of {from}: {value} > {bound}"),
                );
            }
            Output::Departed => self.exit(slot),
        }
    }

    fn note_session(&mut self, slot: usize, event: &Event) {
        let (Event::Reconnecting(peer) | Event::Left(Left { peer, .. })) = event else {
            return;
        };
        let other = self.peer_of(slot, peer);
        if let (Some(other), Some(process)) = (other, &mut self.slots[slot].process) {
            process.numbers.note(other, event);
        }
    }

    fn schedule_wake(&mut self, slot: usize) {
        let lateness = self.settings.lateness;
        let late = self.between(Duration::ZERO, lateness);
        let place = &mut self.slots[slot];
        let life = place.life;
        let Some(process) = &mut place.process else {
            return;
        };
        if process.paused {
            return;
        }
        let Some(deadline) = process.node.next_deadline() else {
            return;
        };
        let at = (process.clock.global(deadline) + late).max(self.now);
        if process.wake_at.is_none_or(|wake_at| at < wake_at) {
            process.wake_at = Some(at);
            self.at(at, Happening::Wake { slot, life });
        }
    }

    fn wake(&mut self, slot: usize, life: u64) {
        let place = &mut self.slots[slot];
        let Some(process) = &mut place.process else {
            return;
        };
        if place.life != life || process.wake_at != Some(self.now) {
            return;
        }
        process.wake_at = None;
        if process.paused {
            return;
        }
        if process
            .node
            .next_deadline()
            .is_some_and(|deadline| deadline <= process.clock.local(self.now))
        {
            if self.settings.hosts.talk {
                self.receive_transports(slot);
            }
            self.look_at_host(slot);
            let _ = self.feed(slot, Input::Tick);
        } else {
            self.schedule_wake(slot);
        }
    }

    /// A process shows its host's silence before it sends heartbeats.
    fn look_at_host(&mut self, slot: usize) {
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let since = self.slots[slot].host_silent_since;
        let since = since.map(|since| process.clock.local(since));
        if since != process.node.host_silent_since() {
            let _ = self.feed(slot, Input::HostSilentSince(since));
        }
    }

    /// P2: of two live leaders linked both ways one remains within a heartbeat interval and two round trips, once there are no
    /// faults.
    fn check_rivals(&mut self) {
        let Some(calm_since) = self.calm_since.filter(|since| *since <= self.now) else {
            return;
        };
        if self.leading.len() < 2 {
            self.rivals.clear();
            return;
        }
        let mut leaders = self.leaders();
        // A leaving node only waits for answers.
        leaders.retain(|slot| {
            let process = self.slots[*slot].process.as_ref();
            process.is_some_and(|process| !process.leaving)
        });
        let mut rivals = BTreeMap::new();
        for (index, a) in leaders.iter().enumerate() {
            for b in &leaders[index + 1..] {
                if self.count_for_each_other(*a, *b) {
                    let pair = (*a, *b);
                    let since = self.rivals.get(&pair).copied().unwrap_or(self.now);
                    rivals.insert(pair, since.max(calm_since));
                }
            }
        }
        self.rivals = rivals;
        let slack = self.settings.lateness + Duration::from_millis(5);
        let bound = self.profile.one_of_two_within(self) + slack;
        let late = self
            .rivals
            .iter()
            .find(|(_, since)| self.now.since(**since) > bound);
        if let Some(((a, b), since)) = late {
            let text = format!(
                "{} and {} both lead, linked, since {} us",
                self.slots[*a].id,
                self.slots[*b].id,
                since.as_micros()
            );
            self.violate("P2", text);
        }
    }
}

/// The state of a node before an input.
struct Before {
    /// For the checks of its strategy.
    of_strategy: Box<dyn Any>,
    members: usize,
    /// Whether its room was over.
    over: bool,
    /// A voter's heartbeat about state files.
    reported: Option<Report>,
}

/// The present members as the host knows them, in order.
fn members_shown(node: &Node) -> Vec<&PeerId> {
    let linked = node.membership().iter().map(|(id, _)| id);
    let mut members: Vec<_> = linked
        .chain(node.ended_peers().map(|(id, ..)| id))
        .collect();
    members.sort();
    members
}

/// Whether an input is a better link with a member that takes part in elections already: they learn nothing from its Hello.
fn takes_over(node: &Node, input: &Input) -> bool {
    let Input::LinkUp(link) = input else {
        return false;
    };
    let member = node.membership().elector(&link.peer);
    member.is_some_and(|member| {
        link.path < member.path && (member.key, member.incarnation) == (link.key, link.incarnation)
    })
}

fn reports_members(output: &Output) -> bool {
    matches!(
        output,
        Output::Event(
            Event::Joined(_) | Event::Reconnecting(_) | Event::Returned(_) | Event::Left(_)
        )
    )
}

impl Slot {
    fn new(name: &str, index: usize) -> Self {
        let host = u16::try_from(index + 1).expect("a room").to_be_bytes();
        Self {
            id: PeerId::new(name).expect("letters"),
            address: SocketAddr::from(([10, 0, host[0], host[1]], 7000)),
            life: 0,
            process: None,
            eligible: true,
            host_silent_since: None,
            entry: Entry::Any,
            kicked: false,
            reported: Vec::new(),
            events: Vec::new(),
            key: None,
            clock_rate: Clock::TRUE,
            priority: 0,
            saved: None,
            copies: Vec::new(),
            disk_fails_until: Time::ZERO,
            wall_clock_ahead_ms: 0,
            other_recovery: false,
        }
    }

    /// Renames the place, before any process runs there.
    pub fn rename(&mut self, name: &str) {
        self.id = PeerId::new(name).expect("a valid name");
    }
}
