//! One seeded run: a room under faults, then healing, then quiet.
//!
//! Swarm selection: every run draws which kinds of faults it has, so that some runs have all of one kind.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::Rng;
use rand::seq::IndexedRandom;

use meta_mystia_network::core::election::raft::Recovery;
use meta_mystia_network::core::node::{Command, LinkEnd, Node};
use meta_mystia_network::core::time::{Duration, Time};
use meta_mystia_network::core::trace::What;
use meta_mystia_network::core::wire::{Authority, MergePolicy};

use crate::checks::Violation;
use crate::record::{Recorder, Section};
use crate::trace::Trace;
use crate::world::{Settings, World};

/// How often the hosts look after their rooms.
const UPKEEP: Duration = Duration::from_secs(1);
/// For redials, and for silence to be noticed, in the bound of convergence.
const VIEW_BOUND: Duration = Duration::from_secs(13);
/// Agreement for so long is no accident of messages that are still under way.
const SETTLED: Duration = Duration::from_secs(1);
/// No run lasts so long with its faults.
const UNTIL_HEALED: Duration = Duration::from_secs(60);
/// How long the agreed leader must stay after healing.
const QUIET: Duration = Duration::from_secs(5);

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    pub violation: Option<Violation>,
    pub ended_at: Time,
    pub trace: Trace,
}

/// Runs a seed to its end or to its first violation.
pub fn run(seed: u64, trace: Trace) -> Outcome {
    play(Run::new(seed, None, trace)).0
}

/// The same in a room of `size` places, recorded.
pub fn recorded(seed: u64, size: usize) -> (Outcome, Vec<Section>) {
    let mut run = Run::new(seed, Some(size), Trace::off());
    let world = &mut run.world;
    world.recorder = Some(Recorder::new(seed, size, world.now));
    if let Some((one, other)) = run.apart {
        // It was cut before anybody listened.
        for (from, to) in [(one, other), (other, one)] {
            let (from, to) = (world.slots[from].id.clone(), world.slots[to].id.clone());
            world.note_room(What::Cut { from, to });
        }
    }
    let (outcome, recorder) = play(run);
    let sections = recorder.map(|recorder| recorder.finish(outcome.ended_at));
    (outcome, sections.unwrap_or_default())
}

fn play(mut run: Run) -> (Outcome, Option<Recorder>) {
    let panicked = catch_unwind(AssertUnwindSafe(|| run.play())).err();
    if let Some(panic) = panicked {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_default();
        run.world.violate("panic", text);
    }
    let outcome = Outcome {
        violation: run.world.violation.take(),
        ended_at: run.world.now,
        trace: run.world.trace,
    };
    (outcome, run.world.recorder)
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Crash,
    Leave,
    Pause,
    Partition,
    CutPair,
    SetLeader,
    ToggleAuto,
    Delay,
    Datagrams,
    Join,
    Reconnect,
    Observe,
    Kick,
    Limit,
}

const FAULTS: [Fault; 14] = [
    Fault::Crash,
    Fault::Leave,
    Fault::Pause,
    Fault::Partition,
    Fault::CutPair,
    Fault::SetLeader,
    Fault::ToggleAuto,
    Fault::Delay,
    Fault::Datagrams,
    Fault::Join,
    Fault::Reconnect,
    Fault::Observe,
    Fault::Kick,
    Fault::Limit,
];

/// What ends a fault.
#[derive(Debug, Clone)]
enum Undo {
    Mend(Vec<(usize, usize)>),
    Resume(usize),
    Start(usize),
}

#[derive(Debug)]
struct Run {
    world: World,
    faults: Vec<Fault>,
    /// Time between two faults, at most.
    pace: Duration,
    undo: Vec<(Time, Undo)>,
    upkeep_at: Time,
    ends_at: Time,
    /// Two places that never reach each other; they know of each other through the others only.
    apart: Option<(usize, usize)>,
}

impl Run {
    fn new(seed: u64, size: Option<usize>, trace: Trace) -> Self {
        let mut world = World::new(seed, 0, Settings::default(), trace);
        let sizes = [1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 7];
        let drawn = *sizes.choose(&mut world.rng).expect("not empty");
        let size = size.unwrap_or(drawn);
        world.add_slots(size);
        world.settings = draw_settings(&mut world);
        if world.rng.random_bool(0.1) {
            // The first place stays eligible, so that somebody can lead.
            for slot in 1..size {
                world.slots[slot].eligible = world.rng.random_bool(0.7);
            }
        }
        world.silence_is_told_as = *[LinkEnd::Closed, LinkEnd::Silent]
            .choose(&mut world.rng)
            .expect("not empty");
        let share = *[0.2, 0.5, 0.9].choose(&mut world.rng).expect("not empty");
        let faults = FAULTS
            .into_iter()
            .filter(|_| world.rng.random_bool(share))
            .collect();
        let pace = *[300, 1_000, 3_000, 6_000]
            .choose(&mut world.rng)
            .expect("not empty");
        let lasts = world.between(Duration::from_secs(4), Duration::from_secs(25));
        let apart = (size > 2 && world.rng.random_bool(0.15)).then(|| {
            let one = world.rng.random_range(0..size);
            (one, (one + world.rng.random_range(1..size)) % size)
        });
        if let Some((one, other)) = apart {
            world.cut_both(one, other);
        }
        Self {
            apart,
            faults,
            pace: Duration::from_millis(pace),
            undo: Vec::new(),
            upkeep_at: world.now + UPKEEP,
            ends_at: world.now + lasts,
            world,
        }
    }

    fn play(&mut self) {
        let settings = format!("{:?} faults {:?}", self.world.settings, self.faults);
        self.world
            .trace
            .add(self.world.now, format_args!("{settings}"));
        self.gather();
        while self.world.now < self.ends_at && self.world.violation.is_none() {
            let pause = self.world.between(Duration::from_millis(1), self.pace);
            let next = (self.world.now + pause).min(self.ends_at);
            self.run_until(next);
            if let Some(fault) = self.faults.choose(&mut self.world.rng).copied() {
                self.inflict(fault);
            }
        }
        self.heal();
        self.settle();
    }

    /// Everybody starts within the first seconds, or joins later.
    fn gather(&mut self) {
        let late = self.faults.contains(&Fault::Join);
        let together = self.world.rng.random_bool(0.2);
        self.world.start(0);
        for slot in 1..self.world.slots.len() {
            if late && self.world.rng.random_bool(0.3) {
                continue;
            }
            let most = if together {
                Duration::ZERO
            } else {
                Duration::from_secs(4)
            };
            let at = self.world.now + self.world.between(Duration::ZERO, most);
            self.undo.push((at, Undo::Start(slot)));
        }
    }

    /// Runs on, with what the hosts do and with the ends of faults on the way.
    fn run_until(&mut self, time: Time) {
        while self.world.violation.is_none() {
            let undo_at = self.undo.iter().map(|(at, _)| *at).min().unwrap_or(time);
            let next = time.min(undo_at).min(self.upkeep_at);
            self.world.run_until(next);
            if next == self.upkeep_at {
                self.upkeep_at = next + UPKEEP;
                self.look_after();
            }
            while let Some(index) = self.undo.iter().position(|(at, _)| *at <= next) {
                let (_, undo) = self.undo.remove(index);
                self.undo(undo);
            }
            if next >= time {
                return;
            }
        }
    }

    /// Hosts without any peer connect to somebody again; hosts without a leader allow elections.
    fn look_after(&mut self) {
        let running = self.world.running();
        for slot in running.clone() {
            let Some(node) = self.world.node(slot) else {
                continue;
            };
            let (alone, leaderless) = (node.membership().is_empty(), node.leader().is_none());
            let others: Vec<usize> = running.iter().copied().filter(|x| *x != slot).collect();
            if let (true, Some(other)) = (alone, others.choose(&mut self.world.rng)) {
                self.world.connect(slot, *other);
            }
            if self.world.calm_since.is_some() {
                let first = running[0];
                for other in others {
                    // Without their places those that were parted for long do not dial each other again.
                    if other == first || self.world.settings.member_hold < UNTIL_HEALED {
                        self.world.connect(slot, other);
                    }
                }
                if leaderless {
                    let _ = self.world.command(slot, Command::EnableAutoElection(true));
                }
            }
        }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Mend(cuts) => {
                for (from, to) in cuts {
                    self.world.mend(from, to);
                }
            }
            Undo::Resume(slot) => self.world.resume(slot),
            Undo::Start(slot) => {
                if self.world.slots[slot].process.is_none() && !self.world.slots[slot].kicked {
                    let running = self.world.running();
                    self.world.start(slot);
                    if let Some(contact) = running.choose(&mut self.world.rng) {
                        self.world.connect(slot, *contact);
                    }
                }
            }
        }
    }

    fn later(&mut self, least_ms: u64, most_ms: u64, undo: Undo) {
        let wait = self.world.between(
            Duration::from_millis(least_ms),
            Duration::from_millis(most_ms),
        );
        self.undo.push((self.world.now + wait, undo));
    }

    fn inflict(&mut self, fault: Fault) {
        let running = self.world.running();
        let Some(&victim) = running.choose(&mut self.world.rng) else {
            return;
        };
        match fault {
            Fault::Crash => {
                self.world.crash(victim);
                self.later(100, 8_000, Undo::Start(victim));
            }
            Fault::Leave => {
                self.world.leave(victim);
                self.later(2_100, 8_000, Undo::Start(victim));
            }
            Fault::Pause => {
                self.world.pause(victim);
                self.later(50, 5_000, Undo::Resume(victim));
            }
            Fault::Partition => self.partition(),
            Fault::CutPair => {
                let other = *running.choose(&mut self.world.rng).expect("not empty");
                let both = self.world.rng.random_bool(0.5);
                if victim != other {
                    let mut cuts = vec![(victim, other)];
                    if both {
                        cuts.push((other, victim));
                    }
                    self.cut(cuts);
                }
            }
            Fault::SetLeader => {
                for _ in 0..self.world.rng.random_range(1..=2) {
                    let caller = *running.choose(&mut self.world.rng).expect("not empty");
                    let target = *running.choose(&mut self.world.rng).expect("not empty");
                    let target = self.world.slots[target].id.clone();
                    let _ = self.world.command(caller, Command::SetLeader(target));
                }
            }
            Fault::ToggleAuto => {
                let enabled = self.world.rng.random_bool(0.5);
                let _ = self
                    .world
                    .command(victim, Command::EnableAutoElection(enabled));
            }
            Fault::Delay => self.world.settings.delay = draw_delay(&mut self.world),
            Fault::Datagrams => {
                self.world.datagram_loss = self.world.rng.random_range(0.0..0.6);
                self.world.datagram_copies = self.world.rng.random_range(0.0..0.5);
                let percent = (self.world.datagram_loss * 100.0) as u32;
                self.world.note_room(What::Loss { percent });
            }
            Fault::Join => {
                let slot = self.world.rng.random_range(0..self.world.slots.len());
                self.undo(Undo::Start(slot));
            }
            Fault::Reconnect => {
                let other = *running.choose(&mut self.world.rng).expect("not empty");
                self.world.connect(victim, other);
            }
            Fault::Observe => {
                let eligible = self.world.rng.random_bool(0.5);
                self.world.set_eligible(victim, eligible);
            }
            Fault::Kick => self.kick(victim),
            Fault::Limit => {
                let max_peers = self.world.rng.random_range(0..100);
                for leader in self.world.leaders() {
                    // It leads, so it may.
                    let _ = self.world.command(leader, Command::SetMaxPeers(max_peers));
                }
            }
        }
    }

    /// Somebody who leads kicks; two at least are left.
    fn kick(&mut self, victim: usize) {
        let left = self.world.slots.iter().filter(|slot| !slot.kicked).count();
        let Some(leader) = self.world.leaders().choose(&mut self.world.rng).copied() else {
            return;
        };
        // It may be the only one that holds the other two together.
        if left <= 2 || leader == victim || self.apart.is_some() {
            return;
        }
        let kick = Command::Kick {
            peer: self.world.slots[victim].id.clone(),
            code: 1,
            bytes: Vec::new(),
        };
        if self.world.command(leader, kick).is_ok() {
            self.world.slots[victim].kicked = true;
        }
    }

    /// Splits the places into two groups, both ways or one way.
    fn partition(&mut self) {
        let sides: Vec<bool> = (0..self.world.slots.len())
            .map(|_| self.world.rng.random_bool(0.5))
            .collect();
        let one_way = self.world.rng.random_bool(0.25);
        let mut cuts = Vec::new();
        for from in 0..sides.len() {
            for to in 0..sides.len() {
                if sides[from] != sides[to] && (sides[from] || !one_way) {
                    cuts.push((from, to));
                }
            }
        }
        self.cut(cuts);
    }

    fn cut(&mut self, cuts: Vec<(usize, usize)>) {
        for (from, to) in &cuts {
            self.world.cut(*from, *to);
        }
        self.later(100, 8_000, Undo::Mend(cuts));
    }

    /// All faults end at once; whoever is down starts again.
    fn heal(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        self.world
            .trace
            .add(self.world.now, format_args!("---- healing ----"));
        self.world.note_room(What::Healed);
        self.world.datagram_loss = 0.0;
        self.world.datagram_copies = 0.0;
        for (_, undo) in std::mem::take(&mut self.undo) {
            self.undo(undo);
        }
        for slot in 0..self.world.slots.len() {
            let leaving = self.world.slots[slot]
                .process
                .as_ref()
                .is_some_and(|process| process.leaving);
            // The host of one that was kicked has noticed by now.
            if leaving || self.world.slots[slot].kicked {
                self.world.crash(slot);
            }
            if self.world.slots[slot].process.is_none() {
                self.undo(Undo::Start(slot));
            }
            let _ = self.world.command(slot, Command::EnableAutoElection(true));
            self.world
                .set_eligible(slot, self.world.slots[slot].eligible);
        }
        // What is still under way was delayed by the last of the faults.
        self.world.calm_since = Some(self.world.now + Duration::from_millis(400));
    }

    /// One leader for all within the bound (P9), and the same from then on (P14).
    fn settle(&mut self) {
        let bound = self.world.settings.election_timeout_max * 2 + VIEW_BOUND;
        let deadline = self.world.now + bound;
        // Messages from before the agreement may still be under way when it is first seen.
        let mut agreed = (None, self.world.now);
        while self.world.violation.is_none() {
            self.run_until(self.world.now + Duration::from_millis(100));
            let leader = self.world.settled().filter(|_| self.is_mesh());
            if leader != agreed.0 {
                agreed = (leader, self.world.now);
            }
            if leader.is_some() && self.world.now.since(agreed.1) >= SETTLED {
                break;
            }
            if self.world.now > deadline {
                let text = self.world.describe();
                self.world
                    .violate("P9", format!("no agreement after {bound:?}: {text}"));
            }
        }
        let leader = self.world.agreed();
        let spoken = self.world.election_messages;
        let until = self.world.now + QUIET;
        while self.world.violation.is_none() && self.world.now < until {
            self.run_until(self.world.now + Duration::from_millis(100));
            if self.world.agreed() != leader {
                let text = self.world.describe();
                self.world
                    .violate("P14", format!("the leader did not stay: {text}"));
            }
        }
        self.same_limit();
        let noise = self.world.election_messages - spoken;
        if self.world.violation.is_none() && noise > 0 {
            self.world.violate(
                "quiet",
                format!("{noise} election messages in a settled room"),
            );
        }
    }
}

impl Run {
    /// Where every member's word counts, all go by one limit whom its leader can reach.
    fn same_limit(&mut self) {
        let running = self.world.running().into_iter();
        let limits: BTreeSet<u32> = running
            .filter_map(|slot| self.world.node(slot).map(Node::max_peers))
            .collect();
        let anyone = self.world.settings.authority == Authority::Anyone;
        if limits.len() > 1 && anyone && self.apart.is_none() {
            let text = format!("{limits:?} are all in force");
            self.world.violate("limit", text);
        }
    }

    /// Whether all pairs are linked that can be.
    fn is_mesh(&self) -> bool {
        let all = 0..self.world.slots.len();
        let mut pairs = all.clone().flat_map(|a| all.clone().map(move |b| (a, b)));
        pairs.all(|(a, b)| {
            let apart = self
                .apart
                .is_some_and(|pair| pair == (a, b) || pair == (b, a));
            let out = self.world.slots[a].kicked || self.world.slots[b].kicked;
            a == b || apart || out || self.world.is_linked(a, b)
        })
    }
}

fn draw_delay(world: &mut World) -> (Duration, Duration) {
    let most = *[2, 10, 40, 150].choose(&mut world.rng).expect("not empty");
    let most = Duration::from_millis(most);
    let least = world.between(Duration::from_millis(1), most);
    (least, most)
}

fn draw_settings(world: &mut World) -> Settings {
    let mut settings = Settings {
        delay: draw_delay(world),
        lateness: world.between(Duration::ZERO, Duration::from_millis(3)),
        ..Settings::default()
    };
    if world.rng.random_bool(0.15) {
        settings.merge = MergePolicy::HighestTerm;
    }
    if world.rng.random_bool(0.15) {
        settings.authority = Authority::LeaderOnly;
    }
    if world.rng.random_bool(0.5) {
        settings.recovery = Recovery::AutoElect;
    }
    if world.rng.random_bool(0.25) {
        settings.member_hold = world.between(Duration::from_secs(1), Duration::from_secs(8));
    }
    if world.rng.random_bool(0.1) {
        settings.heartbeat_interval = Duration::from_millis(200);
        settings.heartbeat_timeout = Duration::from_millis(600);
        settings.election_timeout_min = Duration::from_millis(600);
        settings.election_timeout_max = Duration::from_millis(1200);
    }
    settings
}
