//! A room in virtual time: processes, their links, and the one queue of everything that will happen.
//!
//! Every random choice comes from the one generator, so that a seed decides a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use meta_mystia_network::core::election::Election;
use meta_mystia_network::core::election::guards::Guards;
use meta_mystia_network::core::election::raft::Recovery;
use meta_mystia_network::core::id::{Fingerprint, Incarnation, PeerId};
use meta_mystia_network::core::introductions::Reconnect;
use meta_mystia_network::core::node::{
    Command, CommandError, Event, Input, LinkEnd, Node, NodeConfig, Output,
};
use meta_mystia_network::core::time::{Duration, Time};
use meta_mystia_network::core::wire::{Authority, MergePolicy, Message, RoomPolicy};

use crate::checks::{Checker, Seen, Violation};
use crate::links::{Link, Pending, Wire};
use crate::trace::{Brief, Trace};

/// Outputs of one input, per member; more is a flood.
const MAX_OUTPUTS_PER_MEMBER: usize = 24;
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
    /// Dials that the host asked for and that are running.
    pub host_dials: u32,
    /// The link of each peer, by slot.
    pub sessions: BTreeMap<usize, u64>,
    /// Which peers it was told may lead.
    may_lead: BTreeMap<PeerId, bool>,
    wake_at: Option<Time>,
    ticks: (Time, u32),
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
    /// Every `LeaderChanged` that the host was told, with the time.
    pub told: Vec<(Time, Option<PeerId>)>,
    /// Whether its peer was kicked: nobody starts there again.
    pub kicked: bool,
    /// Every other event that the host was told.
    pub events: Vec<(Time, Event)>,
}

/// Something that will happen.
#[derive(Debug)]
pub enum Happening {
    /// A node asked to be called.
    Wake { slot: usize, life: u64 },
    /// The limit of a polite leave.
    LeaveLimit { slot: usize, life: u64 },
    /// Something about links.
    Wire(Wire),
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
    /// One-way delay of every direction, at least and at most.
    pub delay: (Duration, Duration),
    /// Timers fire up to so much late.
    pub lateness: Duration,
    /// How long a lost member keeps its place.
    pub member_hold: Duration,
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
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct World {
    pub now: Time,
    pub rng: ChaCha8Rng,
    pub settings: Settings,
    pub slots: Vec<Slot>,
    pub links: BTreeMap<u64, Link>,
    pub dials: BTreeMap<u64, Pending>,
    /// How many faults cut the direction from the first to the second.
    pub cuts: BTreeMap<(usize, usize), u32>,
    /// Share of datagrams that are lost, and that arrive twice.
    pub datagram_loss: f64,
    pub datagram_copies: f64,
    /// What the other end hears when a link is closed for its silence.
    pub silence_is_told_as: LinkEnd,
    pub trace: Trace,
    pub violation: Option<Violation>,
    /// Election messages that were sent, heartbeats not counted.
    pub election_messages: u64,
    /// Every link that a core closed: whose core, whom, why.
    pub closes: Vec<(usize, PeerId, LinkEnd)>,
    /// Since when there are no faults, for the bounds that hold only then.
    pub calm_since: Option<Time>,
    checker: Checker,
    rivals: BTreeMap<(usize, usize), Time>,
    queue: BTreeMap<(Time, u64), Happening>,
    queued: u64,
    pub made: u64,
}

impl World {
    /// A room of `size` places, nobody running yet.
    pub fn new(seed: u64, size: usize, settings: Settings, trace: Trace) -> Self {
        let mut world = Self {
            now: Time::from_micros(1_000_000),
            rng: ChaCha8Rng::seed_from_u64(seed),
            settings,
            slots: Vec::new(),
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            cuts: BTreeMap::new(),
            datagram_loss: 0.0,
            datagram_copies: 0.0,
            silence_is_told_as: LinkEnd::Closed,
            trace,
            violation: None,
            election_messages: 0,
            closes: Vec::new(),
            calm_since: None,
            checker: Checker::default(),
            rivals: BTreeMap::new(),
            queue: BTreeMap::new(),
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

    /// Puts something into the queue.
    pub fn at(&mut self, time: Time, happening: Happening) {
        self.queued += 1;
        self.queue
            .insert((time.max(self.now), self.queued), happening);
    }

    /// A duration between both, both included.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let least = least.as_micros() as u64;
        let most = (most.as_micros() as u64).max(least);
        Duration::from_micros(self.rng.random_range(least..=most))
    }

    /// Makes everything happen that is due until `time`, or until a property is broken.
    pub fn run_until(&mut self, time: Time) {
        while self.violation.is_none() {
            let Some((&(at, number), _)) = self.queue.first_key_value() else {
                break;
            };
            if at > time {
                break;
            }
            let happening = self.queue.remove(&(at, number)).expect("it was there");
            self.now = at;
            match happening {
                Happening::Wake { slot, life } => self.wake(slot, life),
                Happening::LeaveLimit { slot, life } => {
                    if self.slots[slot].life == life && self.slots[slot].process.is_some() {
                        self.exit(slot);
                    }
                }
                Happening::Wire(wire) => self.wire(wire),
            }
            self.check_rivals();
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
        let incarnation = Incarnation {
            started_us: 1_700_000_000_000_000 + self.now.as_micros(),
            random: self.rng.random(),
        };
        let config = self.config(slot, Fingerprint(key));
        let place = &mut self.slots[slot];
        place.life = life;
        place.process = Some(Process {
            node: Node::new(place.id.clone(), incarnation, config, seed, self.now),
            key: Fingerprint(key),
            eligible: place.eligible,
            paused: false,
            leaving: false,
            host_dials: 0,
            sessions: BTreeMap::new(),
            may_lead: BTreeMap::new(),
            wake_at: None,
            ticks: (Time::ZERO, 0),
        });
        self.trace
            .add(self.now, format_args!("{} starts, life {life}", place.id));
        self.checker.born(slot, &place.id);
        self.schedule_wake(slot);
    }

    fn config(&self, slot: usize, key: Fingerprint) -> NodeConfig {
        NodeConfig {
            heartbeat_interval: self.settings.heartbeat_interval,
            heartbeat_timeout: self.settings.heartbeat_timeout,
            election_timeout_min: self.settings.election_timeout_min,
            election_timeout_max: self.settings.election_timeout_max,
            max_connections: 64,
            auto_reconnect: true,
            reconnect: Reconnect::default(),
            member_hold: self.settings.member_hold,
            handshake_timeout: Duration::from_secs(5),
            ask_host: false,
            auto_election: true,
            recovery: self.settings.recovery,
            eligible: self.slots[slot].eligible,
            priority: 0,
            saved: None,
            guards: Guards::ALL,
            policy: self.policy(),
            key,
            addresses: vec![self.slots[slot].address],
        }
    }

    pub fn policy(&self) -> RoomPolicy {
        RoomPolicy {
            merge: self.settings.merge,
            authority: self.settings.authority,
            ..RoomPolicy::default()
        }
    }

    /// Ends a process without a word (kill -9).
    pub fn crash(&mut self, slot: usize) {
        if self.slots[slot].process.take().is_some() {
            self.trace
                .add(self.now, format_args!("{} crashes", self.slots[slot].id));
            self.checker.died(slot);
            self.forget_ends_of(slot);
        }
    }

    /// The host leaves politely.
    pub fn leave(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        if let Some(process) = &mut self.slots[slot].process {
            process.leaving = true;
            self.at(self.now + LEAVE_LIMIT, Happening::LeaveLimit { slot, life });
            // The host of a leaving process can do nothing wrong.
            let _ = self.command(slot, Command::Leave);
        }
    }

    /// Ends a process that said its farewells: its links are closed.
    fn exit(&mut self, slot: usize) {
        self.trace
            .add(self.now, format_args!("{} exits", self.slots[slot].id));
        self.close_all(slot);
        self.slots[slot].process = None;
        self.checker.died(slot);
        self.forget_ends_of(slot);
    }

    /// Stops a process for a while: nothing reaches it.
    pub fn pause(&mut self, slot: usize) {
        if let Some(process) = &mut self.slots[slot].process {
            process.paused = true;
            self.trace
                .add(self.now, format_args!("{} is paused", self.slots[slot].id));
        }
    }

    /// Lets a stopped process go on. Either its timers or its messages come first.
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
        if timers_first {
            let _ = self.feed(slot, Input::Tick);
        }
        self.unblock();
        self.schedule_wake(slot);
    }

    pub fn node(&self, slot: usize) -> Option<&Node> {
        self.slots[slot]
            .process
            .as_ref()
            .map(|process| &process.node)
    }

    pub fn slot_of(&self, id: &PeerId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.id == *id)
    }

    /// The slots whose process runs.
    pub fn running(&self) -> Vec<usize> {
        (0..self.slots.len())
            .filter(|slot| self.slots[*slot].process.is_some())
            .collect()
    }

    /// The running nodes that lead.
    pub fn leaders(&self) -> Vec<usize> {
        let leads = |slot: &usize| self.node(*slot).is_some_and(Node::is_leader);
        (0..self.slots.len()).filter(leads).collect()
    }

    /// The one leader that every running node shows, if there is one and it runs.
    pub fn agreed(&self) -> Option<usize> {
        let [leader] = self.leaders()[..] else {
            return None;
        };
        let id = &self.slots[leader].id;
        let shown = |slot: &Slot| {
            let node = slot.process.as_ref().map(|process| &process.node);
            node.is_none_or(|node| node.leader() == Some(id))
        };
        self.slots.iter().all(shown).then_some(leader)
    }

    /// The same, and whoever it is linked to goes by the record under which it leads: nothing is under way
    /// any more.
    pub fn settled(&self) -> Option<usize> {
        let leader = self.agreed()?;
        let record = self.node(leader)?.leader_stamp()?;
        let goes_by = |slot: &usize| {
            self.node(*slot)
                .is_some_and(|node| node.election().record() == record)
        };
        let mut linked = self.running();
        linked.retain(|slot| *slot == leader || self.is_linked(*slot, leader));
        linked.iter().all(goes_by).then_some(leader)
    }

    /// Whether every running pair is linked at both ends.
    pub fn is_mesh(&self) -> bool {
        let running = self.running();
        running.iter().all(|slot| {
            self.node(*slot)
                .is_some_and(|node| node.membership().len() + 1 == running.len())
        })
    }
}

/// Inputs and outputs.
impl World {
    /// A host's command; what the node answers.
    pub fn command(&mut self, slot: usize, command: Command) -> Result<(), CommandError> {
        self.trace.add(
            self.now,
            format_args!("{} is told {command:?}", self.slots[slot].id),
        );
        self.feed(slot, Input::Command(command))
    }

    /// The host says whether its node may lead.
    pub fn set_eligible(&mut self, slot: usize, eligible: bool) {
        if let Some(process) = &mut self.slots[slot].process {
            process.eligible = eligible;
        }
        // Without a fixed host it cannot be refused.
        let _ = self.command(slot, Command::SetEligible(eligible));
    }

    /// One input of a node, with everything that follows from it.
    pub fn feed(&mut self, slot: usize, input: Input) -> Result<(), CommandError> {
        let now = self.now;
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
        let livelock = process.ticks.0 == now && process.ticks.1 > MAX_TICKS_AT_ONCE;
        let result = process.node.handle(now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| process.node.poll_output()).collect();
        let limit = MAX_OUTPUTS_PER_MEMBER * (process.node.membership().len() + 2);
        if livelock {
            self.violate(
                "contract",
                format!("{} wants tick after tick", self.slots[slot].id),
            );
        } else if outputs.len() > limit {
            self.violate(
                "contract",
                format!("{} outputs of one input", outputs.len()),
            );
        }
        self.check(slot, &outputs);
        for output in outputs {
            self.carry_out(slot, output);
        }
        self.schedule_wake(slot);
        result
    }

    fn check(&mut self, slot: usize, outputs: &[Output]) {
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let rules = process.node.election().rules();
        let members: Vec<&PeerId> = process.node.membership().iter().map(|(id, _)| id).collect();
        let may_vote = |id: &&PeerId| process.may_lead.get(*id) == Some(&true);
        let seen = Seen {
            record: rules.record(),
            leader: process.node.leader(),
            role: rules.role(),
            voted_for: rules.voted_for(),
            leads_under: process.node.election().leads_under(),
            campaign: rules.campaign(),
            won: rules.won(),
            eligible: members.iter().copied().filter(may_vote).collect(),
            members,
            may_lead: process.eligible,
        };
        if let Err(violation) = self.checker.observe(slot, outputs, &seen) {
            self.violate(violation.property, violation.text);
        }
    }

    fn carry_out(&mut self, slot: usize, output: Output) {
        match output {
            Output::Transmit { to, envelope } => {
                let counts = matches!(envelope.message, Message::Election(_));
                self.election_messages += u64::from(counts);
                if counts {
                    self.trace.add(
                        self.now,
                        format_args!("{} -> {to} {}", self.slots[slot].id, Brief(&envelope)),
                    );
                }
                self.transmit(slot, &to, envelope);
            }
            Output::Datagram { to, probe } => self.send_datagram(slot, &to, probe),
            Output::Dial(dial) => self.dial_for_core(slot, &dial),
            Output::Close { peer, why } => self.close(slot, &peer, why),
            Output::Event(event) => {
                let place = &mut self.slots[slot];
                self.trace
                    .add(self.now, format_args!("{} event {event:?}", place.id));
                match event {
                    Event::LeaderChanged { leader, .. } => place.told.push((self.now, leader)),
                    other => place.events.push((self.now, other)),
                }
            }
            // Simulated admissions link without the room's word.
            Output::JoinAnswer { .. } => {}
            Output::Persist { .. } => {}
            Output::Departed => self.exit(slot),
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
        let at = (deadline + late).max(self.now);
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
            .is_some_and(|deadline| deadline <= self.now)
        {
            let _ = self.feed(slot, Input::Tick);
        } else {
            self.schedule_wake(slot);
        }
    }

    /// P2: two live leaders that are linked both ways are reduced to one within a heartbeat interval and two
    /// round trips, once there are no faults.
    fn check_rivals(&mut self) {
        let Some(calm_since) = self.calm_since.filter(|since| *since <= self.now) else {
            return;
        };
        let leaders = self.leaders();
        let mut rivals = BTreeMap::new();
        for (index, a) in leaders.iter().enumerate() {
            for b in &leaders[index + 1..] {
                if self.is_linked(*a, *b) {
                    let pair = (*a, *b);
                    let since = self.rivals.get(&pair).copied().unwrap_or(self.now);
                    rivals.insert(pair, since.max(calm_since));
                }
            }
        }
        self.rivals = rivals;
        let slack = self.settings.lateness + Duration::from_millis(5);
        let bound = self.settings.heartbeat_interval + self.settings.delay.1 * 4 + slack;
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

    /// What every node shows, for the text of a violation.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for slot in &self.slots {
            let Some(process) = &slot.process else {
                continue;
            };
            let node = &process.node;
            let rules = node.election().rules();
            let members: Vec<&str> = node
                .membership()
                .iter()
                .map(|(id, _)| id.as_str())
                .collect();
            let line = format!(
                "\n  {} {:?} shows {:?}, record {}, members {}",
                slot.id,
                rules.role(),
                node.leader(),
                Brief(rules.record()),
                members.join(" ")
            );
            text.push_str(&line);
        }
        text
    }

    /// Term of a running node's record.
    pub fn term(&self, slot: usize) -> u64 {
        self.node(slot)
            .map_or(0, |node| node.election().record().term())
    }
}

impl Slot {
    fn new(name: &str, index: usize) -> Self {
        let host = u8::try_from(index + 1).expect("a small room");
        Self {
            id: PeerId::new(name).expect("letters"),
            address: SocketAddr::from(([10, 0, 0, host], 7000)),
            life: 0,
            process: None,
            eligible: true,
            kicked: false,
            told: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Gives the place another name, before anybody runs there.
    pub fn rename(&mut self, name: &str) {
        self.id = PeerId::new(name).expect("a valid name");
    }
}
