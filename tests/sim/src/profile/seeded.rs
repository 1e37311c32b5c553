//! Rooms with the seeded strategy.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;

use room_core::election::seeded::wire::{Based, SeededMessage};
use room_core::election::seeded::{MemberState, Seeded, SeededRules};
use room_core::id::PeerId;
use room_core::node::{CommandError, Event, Input, Node, Output};
use room_core::time::{Duration, Time};
use room_core::wire::Message;

use super::{Profile, StrategyPlan};
use crate::chaos::Run;
use crate::clock::{MAX_DEVIATION_PPM, slowest_clock};
use crate::world::World;

/// What was seen of a room so far.
#[derive(Debug, Default)]
struct Seen {
    /// Whom votes chose, by version.
    chosen: BTreeMap<u64, PeerId>,
    /// The states that each host was told of each peer, of its present process.
    told: BTreeMap<usize, (u64, BTreeMap<PeerId, MemberState>)>,
    /// What each process observed last, and when it observed a leader last; by place and life.
    observed: BTreeMap<(usize, u64), Observed>,
}

#[derive(Debug, Clone, Copy)]
struct Observed {
    version: u64,
    led_at: Time,
    /// When a majority was heard here under its leadership last.
    majority_at: Time,
    /// When it took its last input.
    seen_at: Time,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Clusters {
    rules: SeededRules,
    seen: RefCell<Seen>,
}

/// What a node was before an input.
#[derive(Debug)]
struct Before {
    led: bool,
    decided: u64,
    in_cluster: bool,
}

impl Clusters {
    pub(super) fn new(rules: SeededRules) -> Self {
        Self {
            rules,
            seen: RefCell::default(),
        }
    }

    /// At most one candidate per version is chosen by votes.
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
            let chosen = seen.chosen.entry(claim.version);
            let chosen = chosen.or_insert_with(|| claim.leader.clone());
            let (version, leader) = (claim.version, &claim.leader);
            (chosen != leader).then(|| {
                (
                    "one per version",
                    format!("{chosen} and {leader} for {version}"),
                )
            })
        })
    }

    /// Hosts are told of every step of a member's states, and of no other.
    fn steps(
        &self,
        slot: usize,
        life: u64,
        me: &PeerId,
        outputs: &[Output],
    ) -> Option<(&'static str, String)> {
        use MemberState as S;
        let mut seen = self.seen.borrow_mut();
        let told = seen.told.entry(slot).or_default();
        if told.0 != life {
            *told = (life, BTreeMap::new());
        }
        for output in outputs {
            let Output::Event(Event::MemberState { peer, state, .. }) = output else {
                continue;
            };
            let before = told.1.get(peer).copied().unwrap_or_default();
            let allowed = matches!(
                (before, *state),
                (S::Init | S::Removed, S::Joining)
                    | (S::Joining | S::Unreachable, S::Active)
                    | (S::Active, S::Unreachable)
                    | (S::Unreachable, S::Leaving)
                    | (S::Leaving, S::Removed)
            );
            if peer == me && *state == S::Init {
                told.1.clear();
            } else if !allowed {
                return Some((
                    "states",
                    format!("{me} is told that {peer} is {state:?} after {before:?}"),
                ));
            } else {
                told.1.insert(peer.clone(), *state);
            }
        }
        None
    }
}

impl Profile for Clusters {
    fn before(&self, node: &Node, _input: Option<&Input>) -> Box<dyn Any> {
        let seeded = node.election().of::<Seeded>();
        Box::new(seeded.map(|seeded| Before {
            led: node.is_leader(),
            decided: seeded.kept().acceptor.decided(),
            in_cluster: seeded.member_state(node.id()) != MemberState::Init,
        }))
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
        let mut found = self.chosen(outputs);
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
            majority_at: now,
            seen_at: now,
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
            // It observes a leader for a TTL after its last answer.
            let long = now.since(last.led_at) + slack
                >= fastest(millis(intervals.ttl_timeout_ms) * 2 - probe * 2);
            let first = before.decided == 0 && !self.rules.strict_start;
            if alone && !first && (!long || self.rules.never_alone) {
                found = found.or(Some(("alone", format!("{me} leads alone"))));
            }
        }
        // One that was stopped looks at it first with its next probe.
        let was_stopped = now.since(last.seen_at) > slowest_clock(probe) + slack;
        if acknowledged || !leads || process.leaving || was_stopped {
            next.majority_at = now;
        }
        let needs = seeded.claim().is_some_and(|claim| claim.elected);
        let bound = slowest_clock(
            millis(intervals.heartbeat_timeout_ms) + millis(intervals.probe_interval_ms) * 2,
        ) + slack;
        if leads && needs && now.since(next.majority_at) > bound {
            found = found.or(Some(("majority", format!("no majority acknowledges {me}"))));
        }
        if observation.leader.is_some() && !was_stopped {
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
                    !process.paused
                        && seeded.is_some_and(|seeded| seeded.acknowledged_by(local) >= majority)
                })
            });
            if let Some(rival) = rival {
                let text = format!("a majority acknowledges {me} and {}", world.slots[rival].id);
                found = found.or(Some(("two leaders", text)));
            }
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

    /// Leaders that share a seed: one relieves the other within a heartbeat interval.
    fn one_of_two_within(&self, world: &World) -> Duration {
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

    fn role(&self, node: &Node) -> String {
        let seeded = node.election().of::<Seeded>();
        seeded.map_or_else(String::new, |seeded| {
            format!("{:?} {:?}", seeded.observation(), seeded.kept().acceptor)
        })
    }
}

/// So long by the fastest clock.
fn fastest(duration: Duration) -> Duration {
    duration * (1_000_000 - MAX_DEVIATION_PPM) / 1_000_000
}
