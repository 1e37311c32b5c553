//! Rooms with the seeded strategy.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use room_core::election::seeded::paxos::{Stage, Vote};
use room_core::election::seeded::wire::{Based, Beat, SeededMessage};
use room_core::election::seeded::{Kept, MemberState, Seeded, SeededRules};
use room_core::id::PeerId;
use room_core::node::{CommandError, Event, Input, Node, Output};
use room_core::time::{Duration, Time};
use room_core::wire::Message;

use super::{Profile, StrategyPlan};
use crate::chaos::Run;
use crate::clock::{MAX_DEVIATION_PPM, slowest_clock};
use crate::decoded;
use crate::liars::{CLUSTER_WORDS, Words};
use crate::world::{File, Process, World};

/// Observations of a room so far.
#[derive(Debug, Default)]
struct Seen {
    /// Chosen leaders, by version.
    chosen: BTreeMap<u64, PeerId>,
    /// Member states in each host's events, of its present process.
    reported: BTreeMap<usize, (u64, BTreeMap<PeerId, MemberState>)>,
    /// Last observation of each process, and the last time with a leader; by place and incarnation.
    observed: BTreeMap<(usize, u64), Observed>,
    /// Versions that each place voted on, with the largest write counter that such a vote showed.
    voted: BTreeMap<usize, BTreeMap<u64, u64>>,
    /// Places whose state file was replaced.
    lost: BTreeMap<usize, Lost>,
    /// Versions for which a voter gave a second vote while no member that knew of the first was present.
    unseen: BTreeSet<u64>,
}

/// A place whose state file was lost or replaced by an older copy, until its voter knows its votes again.
#[derive(Debug, Default)]
struct Lost {
    /// The write counter of the copy, and the first incarnation that uses it.
    writes: u64,
    life: u64,
    /// Versions with votes that the copy lacks.
    forgotten: BTreeSet<u64>,
    /// Whether it knows its votes again.
    recovered: bool,
    /// Voters that have reported their votes to this incarnation, since it noticed.
    reported: (u64, BTreeSet<PeerId>),
}

#[derive(Debug, Clone, Copy)]
struct Observed {
    version: u64,
    led_at: Time,
    /// Whether a majority has acknowledged it since it leads.
    had_majority: bool,
    /// Whether it leads, and needs a majority for that.
    needs_majority: bool,
    /// Last time at which a majority's messages had arrived here under its leadership.
    majority_at: Time,
    /// Time of its last input.
    seen_at: Time,
    /// Start of the time since which it was not stopped.
    runs_since: Time,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Clusters {
    rules: SeededRules,
    seen: RefCell<Seen>,
}

/// The state of a node before an input.
#[derive(Debug)]
struct Before {
    led: bool,
    decided: u64,
    in_cluster: bool,
    stale: bool,
    /// A voter's heartbeat about this node's state file: the voter, the write counter, and whether it reports its votes.
    reported: Option<(PeerId, u64, bool)>,
}

impl Clusters {
    pub(super) fn new(rules: SeededRules) -> Self {
        Self {
            rules,
            seen: RefCell::default(),
        }
    }

    /// Votes choose at most one candidate per version.
    fn chosen(&self, outputs: &[Output]) -> Option<(&'static str, String)> {
        let mut seen = self.seen.borrow_mut();
        outputs.iter().find_map(|output| {
            let Output::Transmit { envelope, .. } = output else {
                return None;
            };
            let Message::Election(part) = &envelope.message else {
                return None;
            };
            let message: Based = part.decode().ok()?;
            let SeededMessage::LeaderElected { claim } = message.message else {
                return None;
            };
            let excused = seen.unseen.contains(&claim.version);
            let chosen = seen.chosen.entry(claim.version);
            let chosen = chosen.or_insert_with(|| claim.leader.clone());
            let (version, leader) = (claim.version, &claim.leader);
            (chosen != leader && !excused).then(|| {
                (
                    "one per version",
                    format!("{chosen} and {leader} for {version}"),
                )
            })
        })
    }

    /// A voter whose state file was lost votes again when all others have reported their votes. It notices the loss with the
    /// first heartbeat of a voter that remembers. Until then it may give a vote again that no member there knows of.
    fn memory(
        &self,
        world: &World,
        slot: usize,
        before: &Before,
        outputs: &[Output],
    ) -> Option<(&'static str, String)> {
        let place = &world.slots[slot];
        let (me, life) = (&place.id, place.life);
        let node = &place.process.as_ref()?.node;
        let stale = node.election().of::<Seeded>()?.is_stale();
        let notices = outputs
            .iter()
            .any(|output| matches!(output, Output::StaleState { .. }));
        let mut seen = self.seen.borrow_mut();
        let Seen {
            voted,
            lost,
            unseen,
            ..
        } = &mut *seen;
        let mut wrong = None;
        if let Some(lost) = lost.get_mut(&slot) {
            if lost.reported.0 != life || notices {
                lost.reported = (life, BTreeSet::new());
            }
            let is_voter = |from: &PeerId| {
                let place = world.slot_of(from);
                place.is_some_and(|place| {
                    world.voters().is_some_and(|voters| voters.contains(&place))
                })
            };
            // A leaving node follows no rule any more.
            let process = world.slots[slot].process.as_ref();
            let leaves = process.is_none_or(|process| process.leaving);
            let reported = before.reported.as_ref();
            let reported = reported.filter(|(from, ..)| is_voter(from) && !leaves);
            if let Some((from, remembered, votes)) = reported {
                if *votes {
                    lost.reported.1.insert(from.clone());
                } else {
                    lost.reported.1.remove(from);
                }
                if *remembered > lost.writes
                    && life == lost.life
                    && !lost.recovered
                    && !notices
                    && !before.stale
                {
                    let text = format!("{me} does not notice that {from} remembers {remembered}");
                    wrong = Some(("lost file", text));
                }
            }
        }
        for (to, version, writes) in votes(outputs) {
            voted.entry(slot).or_default().insert(version, writes);
            let Some(lost) = lost.get(&slot) else {
                continue;
            };
            if stale {
                let text = format!("{me} forgot votes, and votes on {version}");
                wrong = Some(("lost file", text));
            }
            let knows = |other: usize| {
                let other = world.node(other)?.election().of::<Seeded>()?;
                let known = other.kept().others.get(me)?;
                Some(known.incarnation != node.incarnation() && known.writes > lost.writes)
            };
            let witness = to.and_then(|to| world.slot_of(&to)).and_then(knows);
            let forgot = !lost.recovered && lost.forgotten.contains(&version);
            if forgot && witness != Some(true) {
                unseen.insert(version);
            }
        }
        if (before.stale || notices) && !stale {
            let all = world.voters().into_iter().flatten();
            let mut others = all.filter(|other| **other != slot);
            let lost = lost.entry(slot).or_default();
            lost.recovered = true;
            let reported = &lost.reported.1;
            let missing = others.find(|other| !reported.contains(&world.slots[**other].id));
            if let Some(missing) = missing {
                let text = format!(
                    "{me} votes again, and {} reported nothing",
                    world.slots[*missing].id
                );
                wrong = Some(("lost file", text));
            }
        }
        wrong
    }

    /// A leader that needs a majority has had one within the heartbeat timeout, at every call of its host.
    fn lacks_majority(
        &self,
        world: &World,
        slot: usize,
        seen: &Observed,
    ) -> Option<(&'static str, String)> {
        let timeout = Duration::from_millis(self.rules.intervals.heartbeat_timeout_ms.into());
        let bound =
            slowest_clock(timeout) + world.settings.lateness * 2 + Duration::from_millis(20);
        let late = world.now.since(seen.majority_at) > bound;
        // The only voter needs no acknowledgement.
        let others = world.voters().is_some_and(|voters| voters.len() > 1);
        let me = &world.slots[slot].id;
        let lacks = seen.needs_majority && others && late && world.leads_at_call(slot);
        lacks.then(|| ("majority", format!("no majority acknowledges {me}")))
    }

    /// Hosts receive every step of a member's states, and no other.
    fn steps(
        &self,
        slot: usize,
        life: u64,
        me: &PeerId,
        outputs: &[Output],
    ) -> Option<(&'static str, String)> {
        use MemberState as S;
        let mut seen = self.seen.borrow_mut();
        let reported = seen.reported.entry(slot).or_default();
        if reported.0 != life {
            *reported = (life, BTreeMap::new());
        }
        for output in outputs {
            let Output::Event(Event::MemberState { peer, state, .. }) = output else {
                continue;
            };
            let before = reported.1.get(peer).copied().unwrap_or_default();
            let allowed = matches!(
                (before, *state),
                (S::Init | S::Removed, S::Joining)
                    | (S::Joining | S::Unreachable, S::Active)
                    | (S::Active, S::Unreachable)
                    | (S::Unreachable, S::Leaving)
                    | (S::Leaving, S::Removed)
            );
            if peer == me && *state == S::Init {
                reported.1.clear();
            } else if !allowed {
                return Some((
                    "states",
                    format!("{me} is notified that {peer} is {state:?} after {before:?}"),
                ));
            } else {
                reported.1.insert(peer.clone(), *state);
            }
        }
        None
    }
}

impl Profile for Clusters {
    fn before(&self, node: &Node, input: Option<&Input>) -> Box<dyn Any> {
        let seeded = node.election().of::<Seeded>();
        let any_lost = !self.seen.borrow().lost.is_empty();
        let reported = input
            .filter(|_| any_lost)
            .and_then(|input| reported(node, input));
        Box::new(seeded.map(|seeded| Before {
            led: node.is_leader(),
            decided: seeded.kept().acceptor.decided(),
            in_cluster: seeded.member_state(node.id()) != MemberState::Init,
            stale: seeded.is_stale(),
            reported,
        }))
    }

    fn disk_replaced(&self, world: &mut World, slot: usize, copy: Option<&File>) {
        let kept: Option<Kept> = copy.and_then(|file| file.state.decode().ok());
        let writes = kept.map_or(0, |kept| kept.writes);
        let mut seen = self.seen.borrow_mut();
        let Seen { voted, lost, .. } = &mut *seen;
        let voted = voted.entry(slot).or_default().iter();
        let forgotten = voted.filter(|(_, counter)| **counter > writes);
        let entry = lost.entry(slot).or_default();
        *entry = Lost {
            writes,
            life: world.slots[slot].life + 1,
            forgotten: forgotten.map(|(version, _)| *version).collect(),
            recovered: false,
            reported: Default::default(),
        };
    }

    fn resumes(&self, world: &mut World, slot: usize) {
        let leaves = |process: &Process| process.leaving;
        if world.slots[slot].process.as_ref().is_none_or(leaves) {
            return;
        }
        let life = world.slots[slot].life;
        let seen = self.seen.borrow().observed.get(&(slot, life)).copied();
        let found = seen.and_then(|seen| self.lacks_majority(world, slot, &seen));
        if let Some((property, text)) = found {
            world.violate(property, text);
        }
    }

    fn check(
        &self,
        world: &mut World,
        slot: usize,
        before: &dyn Any,
        outputs: &[Output],
        _result: &Result<(), CommandError>,
    ) {
        let Some(Some(before)) = before.downcast_ref::<Option<Before>>() else {
            return;
        };
        let life = world.slots[slot].life;
        let Some(process) = &world.slots[slot].process else {
            return;
        };
        let node = &process.node;
        let Some(seeded) = node.election().of::<Seeded>() else {
            return;
        };
        let (now, local) = (world.now, process.clock.local(world.now));
        let me = node.id().clone();
        let mut found = self.memory(world, slot, before, outputs);
        found = found.or(self.chosen(outputs));
        found = found.or(self.steps(slot, life, &me, outputs));

        let observation = seeded.observation();
        let reset = outputs.iter().any(|output| {
            matches!(output, Output::Event(Event::MemberState { peer, state: MemberState::Init, .. }) if *peer == me)
        });
        let majority = world.voters().map_or(0, |voters| voters.len() / 2 + 1);
        let acknowledged = seeded.acknowledged_by(local) >= majority;
        let fresh = Observed {
            version: 0,
            led_at: now,
            had_majority: false,
            needs_majority: false,
            majority_at: now,
            seen_at: now,
            runs_since: now,
        };
        let mut seen = self.seen.borrow_mut();
        let last = seen.observed.get(&(slot, life)).copied().unwrap_or(fresh);
        if observation.version < last.version && before.in_cluster && !reset {
            let (was, is) = (last.version, observation.version);
            found = found.or(Some((
                "version",
                format!("{me} showed {was} and shows {is}"),
            )));
        }
        let intervals = self.rules.intervals;
        let millis = |ms: u32| Duration::from_millis(ms.into());
        let slack = world.settings.lateness * 2 + Duration::from_millis(20);
        let probe = millis(intervals.probe_interval_ms);
        let leads = node.is_leader();
        let mut next = Observed {
            version: observation.version,
            ..last
        };
        if leads && !before.led {
            next.majority_at = now;
            let alone = seeded.claim().is_some_and(|claim| !claim.elected);
            // A member observes a leader for a TTL after its last answer.
            let long = now.since(last.led_at) + slack
                >= fastest(millis(intervals.ttl_timeout_ms) * 2 - probe * 2);
            let first = before.decided == 0 && !self.rules.strict_start;
            if alone && !first && (!long || self.rules.never_alone) {
                found = found.or(Some(("alone", format!("{me} leads alone"))));
            }
        }
        if acknowledged || !leads || process.leaving {
            next.majority_at = now;
        }
        next.had_majority = leads && (acknowledged || before.led && last.had_majority);
        let needs = seeded.claim().is_some_and(|claim| claim.elected) || next.had_majority;
        next.needs_majority = leads && needs;
        found = found.or(self.lacks_majority(world, slot, &next));
        // A process that was stopped checks its leader with its next probe.
        if now.since(last.seen_at) > slowest_clock(probe) + slack {
            next.runs_since = now;
        }
        // Until then a process that was stopped may show a leader that it has long lost.
        let has_probed = now.since(next.runs_since) > slowest_clock(probe) + slack;
        if observation.leader.is_some() && has_probed {
            next.led_at = now;
        }
        next.seen_at = now;
        seen.observed.insert((slot, life), next);
        drop(seen);

        if majority > 1 && acknowledged && leads {
            let rivals = world.leaders().into_iter().filter(|other| *other != slot);
            let rival = rivals.into_iter().find(|other| {
                let process = world.slots[*other].process.as_ref();
                process.is_some_and(|process| {
                    let seeded = process.node.election().of::<Seeded>();
                    let local = process.clock.local(now);
                    seeded.is_some_and(|seeded| seeded.acknowledged_by(local) >= majority)
                })
            });
            // A voter may have forgotten the leader that it acknowledged, if no member there remembers it.
            let unnoticed =
                |(slot, lost): (&usize, &Lost)| !lost.recovered && !world.is_stale(*slot);
            let excused = self.seen.borrow().lost.iter().any(unnoticed);
            if let Some(rival) = rival.filter(|_| !excused) {
                let text = format!("a majority acknowledges {me} and {}", world.slots[rival].id);
                found = found.or(Some(("two leaders", text)));
            }
        }
        let leader = observation.leader.and_then(|leader| world.slot_of(&leader));
        let outsider = leader.filter(|leader| {
            world
                .voters()
                .is_some_and(|voters| !voters.contains(leader))
        });
        if let Some(outsider) = outsider {
            let text = format!(
                "{me} observes {}, who is no voter",
                world.slots[outsider].id
            );
            found = found.or(Some(("P6", text)));
        }
        let shown = node.leader();
        if shown.is_some_and(|leader| *leader != me && node.membership().get(leader).is_none()) {
            found = found.or(Some((
                "P8",
                format!("{me} shows {shown:?}, who is not linked"),
            )));
        }
        if let Some((property, text)) = found {
            world.violate(property, text);
        }
    }

    /// Of two leaders that share a seed, one relieves the other within a heartbeat interval.
    fn one_of_two_within(&self, world: &World) -> Duration {
        if !world.cuts.is_empty() {
            return Duration::from_secs(3_600); // they may not share a seed
        }
        let intervals = self.rules.intervals;
        let rounds = intervals.heartbeat_interval_ms + intervals.probe_interval_ms;
        slowest_clock(Duration::from_millis(rounds.into()))
            + world.max_rtt() * 3
            + world.settings.disk.1 * 2
            + world.settings.lateness * 2
    }

    fn agrees_within(&self, world: &World) -> Duration {
        let intervals = self.rules.intervals;
        let attempts =
            u64::from(intervals.ttl_timeout_ms) * 3 + u64::from(intervals.retry_interval_ms) * 10;
        slowest_clock(Duration::from_millis(attempts))
            + crate::chaos::VIEW_BOUND
            + world.max_rtt() * 10
    }

    fn ends(&self, run: &mut Run<'_>) {
        if let StrategyPlan::Seeded(plan) = &run.plan.strategy {
            run.seeded_ends(plan);
        }
    }

    fn lies(&self) -> &'static [Words] {
        &CLUSTER_WORDS
    }

    fn role(&self, node: &Node) -> String {
        let seeded = node.election().of::<Seeded>();
        seeded.map_or_else(String::new, |seeded| {
            format!("{:?} {:?}", seeded.observation(), seeded.kept().acceptor)
        })
    }
}

/// The votes of a node, including its own as a proposer: candidate, version, and write counter.
fn votes(outputs: &[Output]) -> impl Iterator<Item = (Option<PeerId>, u64, u64)> {
    outputs.iter().filter_map(|output| {
        let Output::Transmit { to, envelope, .. } = output else {
            return None;
        };
        let Message::Election(part) = &envelope.message else {
            return None;
        };
        let Based {
            basis,
            writes,
            message,
        } = part.decode().ok()?;
        let to = match message {
            SeededMessage::Vote {
                vote: Vote::Promised(_) | Vote::Accepted,
                ..
            } => Some(to.clone()),
            SeededMessage::Proposal {
                stage: Stage::Pre | Stage::Formal,
                ..
            } => None,
            _ => return None,
        };
        Some((to, basis.version + 1, writes))
    })
}

/// A heartbeat's report about the receiver's state file, if the node takes it.
fn reported(node: &Node, input: &Input) -> Option<(PeerId, u64, bool)> {
    let Input::Message { from, envelope } = input else {
        return None;
    };
    let member = node.membership().get(from)?;
    let Message::Heartbeat(heartbeat) = &envelope.message else {
        return None;
    };
    let beat: Beat = heartbeat.pulse.decode().ok()?;
    let memory = beat.memory?;
    let notifies = memory.sure && memory.votes.is_some();
    let counts = decoded::takes_heartbeat(member, envelope);
    counts.then(|| (from.clone(), memory.remembered, notifies))
}

/// This duration by the fastest clock.
fn fastest(duration: Duration) -> Duration {
    duration * (1_000_000 - MAX_DEVIATION_PPM) / 1_000_000
}
