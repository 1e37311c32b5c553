//! One run: a room under the faults of its plan, then healing, then quiet and one more trial.

use crate::decoded::led_under;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rand::seq::IndexedRandom;

use room_core::election::Recovery;
use room_core::id::{Fingerprint, PeerId};
use room_core::node::{Command, LinkEnd, Node};
use room_core::time::{Duration, Time};
use room_core::trace::What;
use room_core::wire::{Authority, Strategy};
use room_state::laboratory::Switches;

use crate::checks::Violation;
use crate::clock::slowest_clock;
use crate::gossip::Counts;
use crate::links::{ClosedPorts, Strays};
use crate::plan::{Plan, Step, Who};
use crate::record::{Recorder, Section};
use crate::sometimes::Sometimes;
use crate::stability::Stability;
use crate::trace::Trace;
use crate::world::World;

/// Interval at which hosts check their rooms.
const UPKEEP: Duration = Duration::from_secs(1);
/// Interval at which the leaders are sampled (P14).
const SAMPLE: Duration = Duration::from_millis(50);
/// Time for redials and for noticing silence, in the bound of convergence.
pub(crate) const VIEW_BOUND: Duration = Duration::from_secs(13);
/// Agreement for this long is no accident of messages under way.
const SETTLED: Duration = Duration::from_secs(1);
/// Longest time with faults.
const UNTIL_HEALED: Duration = Duration::from_secs(60);
/// Time for which the agreed leader must stay after healing.
const QUIET: Duration = Duration::from_secs(5);

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub violation: Option<Violation>,
    pub ended_at: Time,
    pub trace: Trace,
    /// Hash over all events (P17).
    pub hash: u64,
    pub sometimes: Sometimes,
    pub gossip: Counts,
    pub paths: crate::paths::Counts,
    /// Counts of events of relays.
    pub relays: crate::paths::RelayCounts,
    pub size: usize,
    /// Leaders that left a room with a state, and waited for the others.
    pub state_leavers: u64,
    /// Times that an honest member reported a message dropped for a counter that was too large.
    pub refusals: u64,
}

/// An additional property, for experiments.
pub type Watch<'a> = &'a dyn Fn(&World) -> Option<Violation>;

/// Runs a seed to its end or to its first violation.
pub fn run(seed: u64, trace: Trace) -> Outcome {
    run_plan(&Plan::draw(seed), trace, None)
}

/// Runs a plan to its end or to its first violation.
pub fn run_plan(plan: &Plan, trace: Trace, watch: Option<Watch<'_>>) -> Outcome {
    play(Run::new(plan, trace, watch, false)).0
}

/// Runs a plan in a room that keeps a state. When all is calm, its members have the same.
pub fn run_with_state(plan: &Plan, trace: Trace) -> Outcome {
    run_with_broken_state(plan, trace, Switches::default())
}

/// Runs a plan in a room that keeps a state, with rules of its log broken.
pub fn run_with_broken_state(plan: &Plan, trace: Trace, switches: Switches) -> Outcome {
    play(Run::with_state(plan, trace, switches)).0
}

/// Runs a plan in a room that keeps a state, in which the first member sends changed frames of it until the healing.
pub fn run_with_lies_about_the_state(plan: &Plan, trace: Trace) -> Outcome {
    let mut run = Run::with_state(plan, trace, Switches::default());
    run.world.lie_about_the_state(0);
    play(run).0
}

/// Runs a plan and records it, for a picture.
pub fn recorded(plan: &Plan) -> (Outcome, Vec<Section>) {
    let (outcome, recorder) = play(Run::new(plan, Trace::off(), None, true));
    let sections = recorder.map(|recorder| recorder.finish(outcome.ended_at));
    (outcome, sections.unwrap_or_default())
}

fn play(mut run: Run<'_>) -> (Outcome, Option<Recorder>) {
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
        hash: run.world.hash.value(),
        sometimes: {
            let mut sometimes = run.world.sometimes;
            sometimes.stale_votes_unseen = run.world.checker.unseen_votes() as u64;
            sometimes
        },
        gossip: run.world.gossip,
        relays: run.world.paths.relays.counts,
        paths: run.world.paths.counts,
        trace: run.world.trace,
        size: run.plan.size,
        state_leavers: run.world.states.as_ref().map_or(0, |states| states.leavers),
        refusals: run.world.refusals,
    };
    (outcome, run.world.recorder)
}

/// The end of a fault, or its next beginning.
#[derive(Debug, Clone)]
enum Undo {
    Cut(Vec<(usize, usize)>),
    Mend(Vec<(usize, usize)>),
    Resume(usize),
    Start(usize),
    /// Starts it and lets it connect to these.
    StartAmong(usize, Vec<usize>),
    /// A relay is back.
    RelayReturns(u8),
    /// It forwards again between these.
    RelayForwards(u8, usize, Vec<usize>),
    /// It no longer hides this place.
    RelayShows(u8, usize),
    /// The way of a member to it works again.
    RelayIsFound(u8, usize),
    /// A carrier forwards again between these.
    Forward(usize, usize, Vec<usize>),
}

/// A run under way.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) world: World,
    watch: Option<Watch<'a>>,
    stability: Stability,
    undo: Vec<(Time, Undo)>,
    upkeep_at: Time,
    sample_at: Time,
    began_at: Time,
    keeps_state: bool,
}

/// Time after the healing in which a room finds together, members that were given up included.
const TOGETHER_AFTER: Duration = Duration::from_secs(90);
/// Interval at which a room without new requests is looked at, until it has come to rest; and then it stays so.
const STATE_RESTS: Duration = Duration::from_secs(20);
/// Longest time until then: a member that has made its leader open again waits up to 320 s before it may do so again.
const STATE_SETTLES: Duration = Duration::from_secs(400);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Without lies. In half of the rooms a game is played.
fn closed_ports(plan: &Plan) -> ClosedPorts {
    let plays = plan.refuses && plan.seed % 2 == 1;
    ClosedPorts {
        are_reported: plan.refuses,
        play: plays.then_some(ms(16)),
        ..ClosedPorts::default()
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        trace: Trace,
        watch: Option<Watch<'a>>,
        recorded: bool,
    ) -> Self {
        let mut world = World::new(plan.seed, plan.size, plan.settings(), trace);
        world.first_term = plan.first_term;
        world.closed_ports = closed_ports(plan);
        world.add_slots(plan.liars.len());
        world.liars = (plan.size..plan.size + plan.liars.len()).collect();
        if recorded {
            world.record(plan.seed);
        }
        for (index, slot) in world.slots.iter_mut().enumerate() {
            slot.eligible = match index.checked_sub(plan.size) {
                None => !plan.observers.contains(&index),
                Some(liar) => plan.liars.get(liar) == Some(&true),
            };
            if let Some(ahead) = plan.wall_clocks.get(index) {
                slot.wall_clock_ahead_ms = *ahead;
            }
            slot.other_recovery = plan.other_recovery.contains(&index);
            if let Some(rate) = plan.clocks.get(index) {
                slot.clock_rate = *rate;
            }
            if let Some(priority) = plan.priorities.get(index) {
                slot.priority = *priority;
            }
            if plan.rules.keeps_keys {
                let mut key = [1; 32];
                key[..8].copy_from_slice(&(index as u64).to_be_bytes());
                slot.key = Some(Fingerprint(key));
            }
        }
        world.silence_is_reported_as = if plan.rules.silence_is_reported {
            LinkEnd::Silent
        } else {
            LinkEnd::Closed
        };
        if let Some((one, other)) = plan.apart {
            world.cut_both(one, other);
        }
        if let Some(paths) = &plan.paths {
            world.model_paths();
            world.paths.old = paths.old.iter().copied().collect();
            world.paths.unwilling = paths.unwilling.iter().copied().collect();
            world.paths.planted = paths.planted;
            world.set_relays(&paths.relays);
            world.paths.relayed_only = paths.relayed_only.iter().copied().collect();
            for (one, other, opens) in &paths.walls {
                world.put_up_wall(*one, *other, *opens, false);
            }
        }
        Self {
            plan,
            watch,
            stability: Stability::new(&world, plan.rules.silence_is_reported),
            undo: Vec::new(),
            upkeep_at: world.now + UPKEEP,
            sample_at: world.now + SAMPLE,
            began_at: world.now,
            keeps_state: false,
            world,
        }
    }

    fn with_state(plan: &'a Plan, trace: Trace, switches: Switches) -> Self {
        let mut run = Self::new(plan, trace, None, false);
        run.world.keep_state(plan.seed, switches);
        run.keeps_state = true;
        run
    }

    fn play(&mut self) {
        self.play_faults();
        if self.keeps_state {
            return self.state_ends();
        }
        if let Some(paths) = &self.plan.paths {
            return self.paths_end(paths);
        }
        let profile = Rc::clone(&self.world.profile);
        profile.ends(self);
    }

    /// After the healing the room finds together, and then its state does.
    fn state_ends(&mut self) {
        self.world.end_lies_about_the_state();
        self.run_until(self.world.now + TOGETHER_AFTER);
        if let Some(states) = &mut self.world.states {
            states.submits = false;
        }
        let until = self.world.now + STATE_SETTLES;
        loop {
            self.run_until(self.world.now + STATE_RESTS);
            let Err(broken) = self.world.check_states() else {
                break;
            };
            if self.world.now >= until {
                self.world.violate("state", broken);
            }
            if self.world.violation.is_some() {
                return;
            }
        }
        let before = self.world.state_figures();
        self.run_until(self.world.now + STATE_RESTS);
        let after = self.world.state_figures();
        if self.world.violation.is_none()
            && let (Some((frames, changes)), Some((frames_after, changes_after))) = (before, after)
            && changes == changes_after
            && frames != frames_after
        {
            let sent = frames_after - frames;
            let text = format!(
                "an idle room sends {sent} frames\n{}",
                self.world.state_summary()
            );
            self.world.violate("state", text);
        }
    }

    /// The faults of the plan, and the healing.
    pub(crate) fn play_faults(&mut self) {
        self.world
            .trace
            .add(self.world.now, format_args!("{:?}", self.plan));
        for (at, step) in &self.plan.steps {
            self.run_until(self.began_at + ms(*at));
            if self.world.violation.is_some() {
                return;
            }
            self.inflict(step);
        }
        self.run_until(self.began_at + ms(self.plan.heal_at_ms));
        self.heal();
    }

    /// Runs on, including actions of hosts and ends of faults on the way.
    pub(crate) fn run_until(&mut self, time: Time) {
        while self.world.violation.is_none() {
            let undo_at = self.undo.iter().map(|(at, _)| *at).min().unwrap_or(time);
            let next = time
                .min(undo_at)
                .min(self.upkeep_at)
                .min(self.sample_at)
                .max(self.world.now);
            self.world.run_until(next);
            if next >= self.sample_at {
                self.sample_at = next + SAMPLE;
                self.look();
            }
            if next >= self.upkeep_at {
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

    fn look(&mut self) {
        let found = self.stability.sample(&self.world);
        let watched = self.watch.and_then(|watch| watch(&self.world));
        if let Some(violation) = found.or(watched) {
            self.world.violate(violation.property, violation.text);
        }
    }

    /// Hosts without any peer connect to a member again; hosts without a leader allow elections.
    fn look_after(&mut self) {
        let running = self.world.running();
        if self.plan.hosts.talk {
            self.world.hosts_talk();
        }
        for slot in running.clone() {
            if self.world.calm_since.is_some() && self.world.slots[slot].kicked {
                // Lies removed it from the room, and its host notices.
                self.world.leave(slot);
            }
            let Some(node) = self.world.node(slot) else {
                continue;
            };
            let (alone, leaderless) = (node.membership().is_empty(), node.leader().is_none());
            let complete = node.membership().len() + 1 == running.len();
            if alone {
                let others: Vec<usize> = running.iter().copied().filter(|x| *x != slot).collect();
                let drawn = others.choose(&mut self.world.rng);
                // A host without an answer from one player tries another.
                let reached = |other: &&usize| {
                    !self.plan.is_apart(slot, **other) && !self.world.is_walled(slot, **other)
                };
                let other = drawn.filter(reached).or(others.iter().find(reached));
                if let Some(other) = other.or(drawn) {
                    self.world.connect(slot, *other);
                }
            }
            if self.world.calm_since.is_some() {
                let first = match self.plan.paths {
                    None => running[0],
                    Some(_) => self.world.stranger_of(slot).unwrap_or(slot),
                };
                for &other in running.iter().filter(|_| !complete) {
                    // Members whose places have expired after a long separation do not dial each other again.
                    let forgot = self.world.settings.member_hold < UNTIL_HEALED;
                    if other == first || forgot || self.plan.hosts.decide {
                        self.world.connect(slot, other);
                    }
                }
                self.let_all_in(slot);
                if leaderless && !self.hosts_wait() {
                    let _ = self.world.command(slot, Command::EnableAutoElection(true));
                }
            }
        }
    }

    /// In a room that decides on newcomers, an old limit would keep some of its members out.
    fn let_all_in(&mut self, slot: usize) {
        let limited =
            |node: &Node| self.plan.hosts.asked && node.is_leader() && node.max_peers() != 0;
        if self.world.node(slot).is_some_and(limited) {
            // A leader may set it.
            let _ = self.world.command(slot, Command::SetMaxPeers(0));
        }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Cut(cuts) => {
                for (from, to) in cuts {
                    self.world.cut(from, to);
                }
            }
            Undo::Mend(cuts) => {
                for (from, to) in &cuts {
                    self.world.mend(*from, *to);
                }
            }
            Undo::Resume(slot) => self.world.resume(slot),
            Undo::Start(slot) => {
                let running = self.world.running();
                let contact = running.choose(&mut self.world.rng).copied();
                self.start(slot, contact);
            }
            Undo::StartAmong(slot, others) => {
                self.start(slot, None);
                for other in others {
                    self.world.connect(other, slot);
                }
            }
            Undo::RelayReturns(relay) => self.world.relay_returns(relay),
            Undo::RelayForwards(relay, from, to) => {
                for to in to {
                    self.world.relay_forwards(relay, from, to);
                }
            }
            Undo::RelayShows(relay, slot) => self.world.relay_hides(relay, slot, false),
            Undo::RelayIsFound(relay, slot) => self.world.relay_is_found(relay, slot),
            Undo::Forward(carrier, from, to) => {
                for to in to {
                    self.world.forward_again(carrier, from, to);
                }
            }
        }
    }

    pub(crate) fn start(&mut self, slot: usize, contact: Option<usize>) {
        let place = &self.world.slots[slot];
        if place.process.is_some() || place.kicked || self.plan.absent.contains(&slot) {
            return;
        }
        self.world.start(slot);
        if let Some(contact) = contact {
            self.world.connect(slot, contact);
        }
    }

    fn later(&mut self, wait_ms: u64, undo: Undo) {
        self.undo.push((self.world.now + ms(wait_ms), undo));
    }

    /// Transfers that hosts ask for do not violate P14.
    pub(crate) fn forget_leaderships(&mut self) {
        self.stability.reset();
    }

    pub(crate) fn resume_at(&mut self, slot: usize, time: Time) {
        self.undo.push((time, Undo::Resume(slot)));
    }

    pub(crate) fn start_at(&mut self, slot: usize, time: Time) {
        self.undo.push((time, Undo::Start(slot)));
    }

    /// The place that a fault affects, if a process runs there.
    fn place_of(&self, who: Who) -> Option<usize> {
        let slot = match who {
            Who::Slot(slot) => slot,
            Who::Leader => *self.world.leaders().first()?,
        };
        self.world.slots[slot].process.as_ref().map(|_| slot)
    }

    fn inflict(&mut self, step: &Step) {
        self.stability.inflicted(step, &self.world);
        match step {
            Step::Start { slot, contact } => {
                let contact = self.world.slots[*contact]
                    .process
                    .as_ref()
                    .map(|_| *contact);
                let contact = contact.or_else(|| self.world.running().first().copied());
                self.start(*slot, contact);
            }
            Step::Crash { who, back_ms } => {
                if let Some(slot) = self.place_of(*who) {
                    self.world.crash(slot);
                    self.later(*back_ms, Undo::Start(slot));
                }
            }
            Step::Leave { who, back_ms } => {
                if let Some(slot) = self.place_of(*who) {
                    self.world.leave(slot);
                    self.later(*back_ms, Undo::Start(slot));
                }
            }
            Step::Pause { who, for_ms } => {
                if let Some(slot) = self.place_of(*who) {
                    self.world.pause(slot);
                    self.later(*for_ms, Undo::Resume(slot));
                }
            }
            Step::Cut { from, to, for_ms } => {
                let pairs = pairs(from, to);
                self.cut(pairs, *for_ms);
            }
            Step::Isolate {
                who,
                deaf,
                mute,
                for_ms,
            } => {
                if let Some(slot) = self.place_of(*who) {
                    let cuts = self.around(slot, *deaf, *mute);
                    self.cut(cuts, *for_ms);
                }
            }
            Step::Flap {
                slot,
                other,
                period_ms,
                times,
            } => {
                let cuts = match other {
                    Some(other) if other == slot => return,
                    Some(other) => vec![(*slot, *other), (*other, *slot)],
                    None => self.around(*slot, true, true),
                };
                for time in 0..*times {
                    self.later(2 * time * period_ms, Undo::Cut(cuts.clone()));
                    self.later((2 * time + 1) * period_ms, Undo::Mend(cuts.clone()));
                }
            }
            Step::SetLeader { calls } => {
                for (caller, target) in calls {
                    let target = self.world.slots[*target].id.clone();
                    let _ = self.world.command(*caller, Command::SetLeader(target));
                }
            }
            Step::Auto { slot, enabled } => {
                let _ = self
                    .world
                    .command(*slot, Command::EnableAutoElection(*enabled));
            }
            Step::Delay { least_ms, most_ms } => {
                self.world.settings.delay = (ms(*least_ms), ms(*most_ms));
            }
            Step::SlowLink { from, to, more_ms } => {
                self.world.slow.insert((*from, *to), ms(*more_ms));
            }
            Step::Datagrams { loss, copies } => {
                self.world.checker.disturbed = true;
                self.world.datagram_loss = f64::from(*loss) / 100.0;
                self.world.note_room(What::Loss {
                    of: "probes".into(),
                    percent: *loss,
                });
                self.world.datagram_copies = f64::from(*copies) / 100.0;
            }
            Step::StreamLoss { loss } => {
                self.world.checker.disturbed = true;
                self.world.stream_loss = f64::from(*loss) / 100.0;
                self.world.note_room(What::Loss {
                    of: "streams".into(),
                    percent: *loss,
                });
            }
            Step::Connect { from, to } => self.world.connect(*from, *to),
            Step::Observe { slot, eligible } => self.world.set_eligible(*slot, *eligible),
            Step::Kick { victim } => self.kick(*victim),
            Step::Limit { max_peers } => {
                for leader in self.world.leaders() {
                    // A leader may set it.
                    let _ = self.world.command(leader, Command::SetMaxPeers(*max_peers));
                }
            }
            Step::Priority { slot, priority } => {
                let _ = self.world.command(*slot, Command::SetPriority(*priority));
            }
            Step::Transfer { target } => {
                let target = self.world.slots[*target].id.clone();
                for leader in self.world.leaders() {
                    let transfer = Command::TransferLeadership(target.clone());
                    let _ = self.world.command(leader, transfer);
                }
            }
            Step::Yield => {
                for leader in self.world.leaders() {
                    let _ = self.world.command(leader, Command::YieldLeadership);
                }
            }
            Step::Lie {
                liar,
                victim,
                words,
                far,
                epoch,
            } => {
                if let Some(victim) = self.place_of(*victim) {
                    self.lie(*liar, victim, *words, *far, *epoch);
                }
            }
            Step::SetBack {
                slot,
                by_ms,
                back_ms,
            } => {
                if self.place_of(Who::Slot(*slot)).is_some() {
                    self.world.crash(*slot);
                    self.world.slots[*slot].wall_clock_ahead_ms -=
                        i64::try_from(*by_ms).unwrap_or(i64::MAX);
                    self.world.sometimes.clocks_set_back += 1;
                    self.later(*back_ms, Undo::Start(*slot));
                }
            }
            Step::Strays {
                copies,
                leftovers,
                passed,
                most_ms,
            } => {
                self.world.strays = Strays {
                    copies: f64::from(*copies) / 100.0,
                    leftovers: f64::from(*leftovers) / 100.0,
                    passed: f64::from(*passed) / 100.0,
                    most: ms(*most_ms),
                };
            }
            Step::Slander {
                liar,
                victim,
                about,
                words,
            } => {
                if let Some(victim) = self.place_of(*victim) {
                    self.slander(*liar, victim, *about, *words);
                }
            }
            Step::Wall {
                one,
                other,
                opens,
                ends,
            } => self.world.put_up_wall(*one, *other, *opens, *ends),
            Step::NoWall { one, other } => self.world.take_down_wall(*one, *other),
            Step::DropOneWay {
                carrier,
                from,
                to,
                for_ms,
            } => {
                if let Some(carrier) = self.place_of(*carrier) {
                    let all = 0..self.world.slots.len();
                    let to: Vec<usize> = to.map_or(all.collect(), |to| vec![to]);
                    for to in &to {
                        self.world.drop_one_way(carrier, *from, *to);
                    }
                    self.later(*for_ms, Undo::Forward(carrier, *from, to));
                }
            }
            Step::RelayFalls { relay, for_ms } => {
                self.world.relay_falls(*relay);
                self.later(*for_ms, Undo::RelayReturns(*relay));
            }
            Step::RelayDrops {
                relay,
                from,
                to,
                for_ms,
            } => {
                let all = 0..self.world.slots.len();
                let to: Vec<usize> = to.map_or(all.collect(), |to| vec![to]);
                for to in &to {
                    self.world.relay_drops(*relay, *from, *to);
                }
                self.later(*for_ms, Undo::RelayForwards(*relay, *from, to));
            }
            Step::RelayHides {
                relay,
                slot,
                for_ms,
            } => {
                self.world.relay_hides(*relay, *slot, true);
                self.later(*for_ms, Undo::RelayShows(*relay, *slot));
            }
            Step::RelayIsLost {
                relay,
                slot,
                for_ms,
            } => {
                self.world.relay_is_lost(*relay, *slot);
                self.later(*for_ms, Undo::RelayIsFound(*relay, *slot));
            }
            Step::RelayLies {
                relay,
                victim,
                about,
                lie,
                unused,
            } => self.relay_lies(*relay, *victim, *about, *lie, *unused),
            Step::Rebind { slot, lost } => self.world.rebind(*slot, lost),
            Step::NameAddresses {
                liar,
                victim,
                about,
                lie,
                unused,
            } => self.name_addresses(*liar, *victim, *about, *lie, *unused),
            Step::LateData { most_ms } => self.world.data_late = ms(*most_ms),
            Step::Refusals {
                lies,
                most_ms,
                deaf,
            } => {
                let ports = &mut self.world.closed_ports;
                ports.lies = f64::from(*lies) / 100.0;
                ports.late = ms(*most_ms);
                ports.deaf = deaf.iter().copied().collect();
            }
            Step::SlowDisk { most_ms } => self.world.settings.disk = (ms(0), ms(*most_ms)),
            Step::CutOff {
                who,
                with,
                restart_ms,
                for_ms,
            } => {
                if let Some(slot) = self.place_of(*who) {
                    self.cut_off(slot, with, *restart_ms, *for_ms);
                }
            }
            Step::Strikes { percent } => self.world.strikes = f64::from(*percent) / 100.0,
            Step::BadDisk { slot, for_ms } => {
                self.world.fail_disk(*slot, self.world.now + ms(*for_ms));
            }
            Step::OldDisk {
                who,
                writes_ago,
                back_ms,
            } => {
                if let Some(slot) = self.place_of(*who).filter(|_| self.may_lose_its_file()) {
                    self.world.crash(slot);
                    self.world.restore_disk(slot, *writes_ago);
                    self.later(*back_ms, Undo::Start(slot));
                }
            }
        }
    }

    /// Cuts a place off from all others, together with the named ones. If it is restarted, it enters through those.
    fn cut_off(&mut self, slot: usize, with: &[usize], restart_ms: Option<u64>, for_ms: u64) {
        let inside = |other: &usize| *other == slot || with.contains(other);
        let (ours, theirs): (Vec<usize>, Vec<usize>) =
            (0..self.world.slots.len()).partition(inside);
        let mut cuts = pairs(&ours, &theirs);
        cuts.extend(pairs(&theirs, &ours));
        self.cut(cuts, for_ms);
        for other in with {
            self.world.connect(*other, slot);
        }
        if let Some(wait) = restart_ms {
            self.world.crash(slot);
            self.undo.push((
                self.world.now + ms(wait),
                Undo::StartAmong(slot, with.to_vec()),
            ));
        }
    }

    /// Whether another voter may lose its file. Two voters that lost their files at once do not vote again in the session (C2),
    /// so a run allows one. A loss also goes unnoticed if the only voter that knew the votes is out of the room for good.
    fn may_lose_its_file(&self) -> bool {
        let Some(roster) = self.world.voters() else {
            return false;
        };
        let all_are_in = roster.iter().all(|slot| !self.world.slots[*slot].kicked);
        self.world.sometimes.old_disks == 0 && all_are_in
    }

    /// Whether a voter that lost its file may depend on this one.
    fn is_witness(&self, slot: usize) -> bool {
        let roster = self.world.voters();
        self.world.sometimes.old_disks > 0 && roster.is_some_and(|roster| roster.contains(&slot))
    }

    /// A leader kicks; enough members remain to have a leader.
    fn kick(&mut self, victim: usize) {
        let Some(leader) = self.world.leaders().first().copied() else {
            return;
        };
        if leader == victim || self.is_witness(victim) || !self.can_spare(victim) {
            return;
        }
        let kick = Command::Kick {
            peer: self.world.slots[victim].id.clone(),
            code: 1,
            bytes: Vec::new(),
            ban: true,
        };
        let out = std::mem::replace(&mut self.world.slots[victim].kicked, true);
        if self.world.command(leader, kick).is_err() {
            self.world.slots[victim].kicked = out;
        }
    }

    /// Whether the room can still have a leader without that place, and without the members that liars report as kicked.
    pub(crate) fn can_spare(&self, victim: usize) -> bool {
        let out = |slot: &usize| {
            self.plan.absent.contains(slot)
                || self.world.slots[*slot].kicked
                || self.world.liars.contains(slot)
                || self.world.slandered.names(*slot)
        };
        let left = (0..self.world.slots.len())
            .filter(|slot| !out(slot))
            .count();
        let is_enough = match self.world.voters() {
            None => left > 2,
            Some(roster) => {
                let may_vote = |slot: &&usize| {
                    !out(slot) && **slot != victim && self.world.slots[**slot].eligible
                };
                roster.iter().filter(may_vote).count() > roster.len() / 2
            }
        };
        let may_lead =
            |slot: &usize| !out(slot) && *slot != victim && !self.plan.observers.contains(slot);
        // It may be the only one that connects the other two.
        let may_lead_on = (0..self.world.slots.len()).any(|slot| may_lead(&slot));
        let seeded = self.world.settings.seeded.as_ref();
        let may_enter = seeded.is_none_or(|places| {
            let mut seeds = places.seeds.iter();
            seeds.any(|seed| !out(seed) && *seed != victim)
        });
        may_lead_on && may_enter && left > 2 && is_enough && self.plan.apart.is_none()
    }

    /// The directions to a place, and from it.
    pub(crate) fn around(&self, slot: usize, deaf: bool, mute: bool) -> Vec<(usize, usize)> {
        let others = (0..self.world.slots.len()).filter(|other| *other != slot);
        let mut cuts = Vec::new();
        for other in others {
            if deaf {
                cuts.push((other, slot));
            }
            if mute {
                cuts.push((slot, other));
            }
        }
        cuts
    }

    pub(crate) fn cut(&mut self, cuts: Vec<(usize, usize)>, for_ms: u64) {
        self.undo(Undo::Cut(cuts.clone()));
        self.later(for_ms, Undo::Mend(cuts));
    }

    /// Ends all faults at once; starts every process that is down.
    pub(crate) fn heal(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        self.world
            .trace
            .add(self.world.now, format_args!("---- healing ----"));
        self.world.note_room(What::Healed);
        self.world.datagram_loss = 0.0;
        self.world.datagram_copies = 0.0;
        self.world.stream_loss = 0.0;
        self.world.strays = Strays::default();
        self.world.data_late = Duration::ZERO;
        self.world.closed_ports = closed_ports(self.plan);
        self.world.settings.disk = (ms(1), ms(10));
        self.world.strikes = 0.0;
        for slot in &mut self.world.slots {
            slot.disk_fails_until = Time::ZERO;
        }
        self.undo.clear();
        self.world.paths.drops.clear();
        self.world.mend_relays();
        if self
            .plan
            .paths
            .as_ref()
            .is_some_and(|paths| paths.walls_end)
        {
            let hidden = &self.world.paths.relayed_only;
            let walls = &mut self.world.paths.walls;
            walls.retain(|(a, b), _| hidden.contains(a) || hidden.contains(b));
        }
        self.world.mend_all();
        if let Some((one, other)) = self.plan.apart {
            self.world.cut_both(one, other);
        }
        for liar in self.world.liars.clone() {
            // It leaves for good.
            self.world.slots[liar].kicked = true;
        }
        for slot in 0..self.world.slots.len() {
            self.world.resume(slot);
            let leaving = self.world.slots[slot]
                .process
                .as_ref()
                .is_some_and(|process| process.leaving);
            if leaving {
                self.world.crash(slot);
            } else if self.world.slots[slot].kicked {
                // Its host has noticed by now. Members without the report of the kick no longer count it then (G6).
                self.world.leave(slot);
            }
            if self.world.slots[slot].process.is_none() {
                self.undo(Undo::Start(slot));
            }
            let switched_off = self.world.slots[slot].process.as_ref();
            let switched_off = switched_off.is_some_and(|process| !process.auto);
            if switched_off || !self.hosts_wait() {
                let _ = self.world.command(slot, Command::EnableAutoElection(true));
            }
            self.world
                .set_eligible(slot, self.world.slots[slot].eligible);
        }
        // The last faults may have delayed messages that are still under way.
        let strays = self.world.strays_until().max(self.world.data_until());
        let mut under_way = strays + ms(400);
        if !self.world.liars.is_empty() {
            let settings = &self.world.settings;
            // A member that was killed recently is lost, and counts for two more windows as one that does not answer (G6).
            let counts = settings.heartbeat_timeout + settings.election_timeout_max * 2;
            let believed = self.world.until_all_is_believed();
            under_way = under_way + believed.max(slowest_clock(counts));
            if self.keeps_places_of_liars() {
                let hold = slowest_clock(settings.member_hold);
                under_way = under_way.max(self.world.now + hold);
            }
        }
        let replaced = |(_, step): &(u64, Step)| matches!(step, Step::OldDisk { .. });
        if let Strategy::Seeded(rules) = self.world.settings.strategy
            && self.plan.steps.iter().any(replaced)
        {
            // An older copy of a state file lacks the leader that its voter acknowledged: the voter waits for a TTL, and its
            // leader may lack a majority meanwhile.
            let waits = rules.intervals.ttl_timeout_ms + rules.intervals.heartbeat_timeout_ms;
            let waits = slowest_clock(ms(waits.into()));
            under_way = under_way.max(self.world.now + waits);
        }
        self.world.calm_since = Some(self.world.quiet_at().max(under_way));
    }

    /// Whether liars that do not return take places in a room with a limit, where others may find none meanwhile.
    fn keeps_places_of_liars(&self) -> bool {
        let world = &self.world;
        let is_liar = |id: &PeerId| {
            world
                .slot_of(id)
                .is_some_and(|slot| world.liars.contains(&slot))
        };
        let mut nodes = (0..world.slots.len()).filter_map(|slot| world.node(slot));
        nodes.any(|node| node.max_peers() > 0 && node.absent().any(is_liar))
    }

    /// One leader for all within the bound (P9).
    pub(crate) fn settle(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        let bound = self.world.profile.agrees_within(&self.world) + self.until_direct();
        let from = self.world.calm_since.unwrap_or(self.world.now);
        let mut deadline = from.max(self.world.now) + bound;
        // Messages from before the agreement may still be under way when it is first observed.
        let mut agreed = (None, self.world.now);
        let mut free_at = self.world.now;
        while self.world.violation.is_none() {
            self.run_until(self.world.now + ms(100));
            let whole = self.is_mesh() && !self.somebody_leaves();
            let leader = self.world.settled().filter(|_| whole);
            if leader != agreed.0 {
                agreed = (leader, self.world.now);
            }
            let calm = self.world.now >= from;
            if leader.is_some() && calm && self.world.now.since(agreed.1) >= SETTLED {
                break;
            }
            let room = match whole {
                true => self.world.running(),
                false => self.full_room(),
            };
            if !self.waits_for_a_host(&room) {
                free_at = self.world.now;
            }
            if calm && self.world.now.since(free_at) >= self.longest_election() {
                // It would wait for ever. From here on the bound starts anew.
                self.end_the_wait(&room);
                free_at = self.world.now;
                deadline = self.world.now + bound;
            }
            if self.world.now > deadline && !self.can_elect() {
                return; // a check after every event covers the lack of a leader
            }
            if self.world.now > deadline && free_at == self.world.now {
                let text = self.world.describe();
                self.world
                    .violate("P9", format!("no agreement after {bound:?}: {text}"));
            }
        }
    }

    /// The agreed leader stays, and no member sends election messages (P14).
    pub(crate) fn quiet(&mut self) {
        if !self.can_elect() {
            return; // the present voters ask for votes again and again
        }
        let leader = self.world.agreed();
        let mut spoken = self.world.election_messages;
        let long = if self.world.slots.len() > 16 {
            SETTLED
        } else {
            QUIET
        };
        // A leader with a requested transfer repeats it until its target is elected or the time is up.
        let handed_over = self.world.transfers_until;
        let until = self.world.now.max(handed_over) + long;
        while self.world.violation.is_none() && self.world.now < until {
            if self.world.now < handed_over {
                spoken = self.world.election_messages;
            }
            self.run_until(self.world.now + ms(100));
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

impl Run<'_> {
    /// If every member's rules count, all members that its leader can reach have one limit.
    pub(crate) fn same_limit(&mut self) {
        let running = self.world.running().into_iter();
        let limits: BTreeSet<u32> = running
            .filter_map(|slot| self.world.node(slot).map(Node::max_peers))
            .collect();
        let anyone = self.world.settings.authority == Authority::Anyone;
        let is_whole = self.plan.apart.is_none() && self.world.paths.walls.is_empty();
        if limits.len() > 1 && anyone && is_whole {
            let text = format!("{limits:?} are all in force");
            self.world.violate("limit", text);
        }
    }

    /// Whether an election can succeed: with a static quorum a majority of the roster must run, be allowed to vote, know its
    /// votes, and reach one of them. A voter with an old file counts if all voters can reach each other (C2).
    pub(crate) fn can_elect(&self) -> bool {
        let Some(roster) = self.world.voters() else {
            return true;
        };
        let runs = |slot: usize| self.world.slots[slot].process.is_some();
        let pairs = roster
            .iter()
            .flat_map(|a| roster.iter().map(move |b| (*a, *b)));
        let all_are_linked = !{ pairs }
            .filter(|(a, b)| a < b)
            .any(|(a, b)| self.plan.is_apart(a, b) || self.are_walled_off(a, b));
        let learns = |slot: usize| {
            let others = roster.iter().filter(|other| **other != slot);
            all_are_linked && { others }.all(|other| runs(*other) && !self.world.is_stale(*other))
        };
        let votes = |slot: &usize| {
            self.world.may_lead(*slot) && (!self.world.is_stale(*slot) || learns(*slot))
        };
        let voters: Vec<usize> = roster.iter().copied().filter(votes).collect();
        voters.iter().any(|leader| {
            let reached = voters
                .iter()
                .filter(|voter| !self.plan.is_apart(*leader, **voter))
                .filter(|voter| !self.are_walled_off(*leader, **voter));
            reached.count() > roster.len() / 2
        })
    }

    /// Whether all pairs that can be linked are linked.
    pub(crate) fn is_mesh(&self) -> bool {
        let places = &self.world.slots;
        let is_in = |slot: &usize| {
            !places[*slot].kicked && !self.plan.absent.contains(slot) && !self.is_down(*slot)
        };
        let all: Vec<usize> = (0..places.len()).filter(is_in).collect();
        all.iter().enumerate().all(|(index, a)| {
            let mut others = all[index + 1..].iter();
            others.all(|b| {
                let is_off = self.plan.is_apart(*a, *b) || self.are_walled_off(*a, *b);
                is_off || self.world.count_for_each_other(*a, *b)
            })
        })
    }

    /// Whether a process has announced its leave and has not ended: it is no member any more, and no peer counts it.
    pub(crate) fn somebody_leaves(&self) -> bool {
        let mut processes = self
            .world
            .slots
            .iter()
            .filter_map(|slot| slot.process.as_ref());
        processes.any(|process| process.leaving)
    }

    /// Whether the run itself has killed a process after healing.
    fn is_down(&self, slot: usize) -> bool {
        self.world.calm_since.is_none() && self.world.slots[slot].process.is_none()
    }

    /// Whether an assigned leader's place would be held after its loss.
    pub(crate) fn is_held(&self, leader: usize) -> bool {
        let assigned = self
            .world
            .node(leader)
            .and_then(led_under)
            .is_some_and(|record| record.assigned);
        let mut running = self.world.running().into_iter();
        assigned && running.any(|slot| self.world.recovery(slot) == Recovery::Hold)
    }
}

/// Every direction from one of the first to one of the second.
pub(crate) fn pairs(from: &[usize], to: &[usize]) -> Vec<(usize, usize)> {
    let each = from.iter().flat_map(|a| to.iter().map(|b| (*a, *b)));
    each.filter(|(a, b)| a != b).collect()
}
