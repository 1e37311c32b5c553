//! Random choices for a room with the seeded strategy, beside the plan that every room has.

use std::collections::BTreeSet;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use room_core::election::seeded::{Intervals, SeededRules};
use room_core::wire::Strategy;

use crate::plan::{Plan, Step, Who};
use crate::profile::StrategyPlan;
use crate::wider::widen;
use crate::world::{SeededPlaces, Settings};

/// Separates these draws from the plan's, which come from the same seed.
const OF_ITS_OWN: u64 = 0x5eed_0000_c1a5_7e12;
/// Maximum number of voters of a room.
const MOST_VOTERS: usize = 7;

/// The trial of a settled room; each has its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trial {
    /// Nothing: the leader stays.
    Quiet,
    /// The leader crashes.
    Crash,
    /// The leader leaves. Older plans have another name for it.
    #[serde(alias = "Farewell")]
    Leave,
    /// The leader and less than a majority are cut off.
    Minority,
    /// Voters end until no majority is left, and come back.
    BelowMajority,
    /// All processes end and start again.
    PowerCut,
}

const TRIALS: [Trial; 6] = [
    Trial::Quiet,
    Trial::Crash,
    Trial::Leave,
    Trial::Minority,
    Trial::BelowMajority,
    Trial::PowerCut,
];

/// Settings of the seeded strategy. The intervals are short, so that many of them fit into a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeededPlan {
    pub voters: BTreeSet<usize>,
    pub seeds: BTreeSet<usize>,
    pub strict_start: bool,
    pub never_alone: bool,
    pub probe_ms: u32,
    pub heartbeat_ms: u32,
    pub timeout_ms: u32,
    pub ttl_ms: u32,
    pub retry_ms: u32,
    pub trial: Trial,
}

impl SeededPlan {
    fn draw(rng: &mut ChaCha8Rng, voters: BTreeSet<usize>, rtt_ms: u32, plan: &Plan) -> Self {
        let is_out = |slot: &usize| plan.observers.contains(slot) || plan.absent.contains(slot);
        let all: Vec<usize> = voters
            .iter()
            .copied()
            .filter(|slot| !is_out(slot))
            .collect();
        let count = rng.random_range(1..=all.len());
        let probe_ms = rng.random_range(50..=200);
        let heartbeat_ms = probe_ms * rng.random_range(2..=4);
        // Time until a new leader's acknowledgement: notification, answer, and the next keep-alive.
        let timeout_ms = heartbeat_ms * rng.random_range(3..=4) + 3 * rtt_ms;
        Self {
            seeds: some(rng, all, count),
            voters,
            strict_start: rng.random_bool(0.3),
            never_alone: rng.random_bool(0.5),
            probe_ms,
            heartbeat_ms,
            timeout_ms,
            ttl_ms: timeout_ms * 2 + rng.random_range(0..=timeout_ms),
            retry_ms: rng.random_range(heartbeat_ms..=timeout_ms),
            trial: *TRIALS.choose(rng).expect("not empty"),
        }
    }

    /// The rules that its members share.
    pub fn rules(&self) -> SeededRules {
        SeededRules {
            strict_start: self.strict_start,
            never_alone: self.never_alone,
            intervals: Intervals {
                probe_interval_ms: self.probe_ms,
                heartbeat_interval_ms: self.heartbeat_ms,
                heartbeat_timeout_ms: self.timeout_ms,
                ttl_timeout_ms: self.ttl_ms,
                retry_interval_ms: self.retry_ms,
            },
        }
    }

    /// Makes these the rules of a room.
    pub fn apply(&self, settings: &mut Settings) {
        settings.strategy = Strategy::Seeded(self.rules());
        settings.seeded = Some(SeededPlaces {
            voters: self.voters.clone(),
            seeds: self.seeds.clone(),
        });
    }
}

/// This many of these places.
fn some(rng: &mut ChaCha8Rng, mut places: Vec<usize>, count: usize) -> BTreeSet<usize> {
    places.shuffle(rng);
    places.into_iter().take(count).collect()
}

/// A state file that is lost or replaced by an older copy; some of its places restart again before they have received from all
/// other voters.
fn old_disk(plan: &mut Plan, rng: &mut ChaCha8Rng, strategy: &SeededPlan) {
    let voters: Vec<usize> = strategy.voters.iter().copied().collect();
    let slot = *voters.choose(rng).expect("not empty");
    let mut at = rng.random_range(0..plan.heal_at_ms);
    if rng.random() {
        // In the middle of an election.
        let crash = Step::Crash {
            who: Who::Leader,
            back_ms: rng.random_range(0..u64::from(strategy.ttl_ms) * 3),
        };
        plan.steps.push((at, crash));
        at += u64::from(strategy.ttl_ms) + rng.random_range(0..u64::from(strategy.retry_ms) * 2);
        at = at.min(plan.heal_at_ms - 1);
    }
    let back_ms = rng.random_range(0..2_000);
    let who = match rng.random_bool(0.3) {
        true => Who::Leader,
        false => Who::Slot(slot),
    };
    let step = Step::OldDisk {
        who,
        writes_ago: rng.random_bool(0.6).then(|| rng.random_range(1..8)),
        back_ms,
    };
    plan.steps.push((at, step));
    for _ in 0..rng.random_range(0..4) {
        let at = at + back_ms + rng.random_range(100..5_000);
        let step = Step::Crash {
            who: Who::Slot(slot),
            back_ms: rng.random_range(0..500),
        };
        if at < plan.heal_at_ms {
            plan.steps.push((at, step));
        }
    }
}

/// The maximum over the whole run.
fn longest_trip_ms(plan: &Plan) -> u32 {
    let steps = plan.steps.iter().map(|(_, step)| match step {
        Step::Delay { most_ms, .. } => *most_ms,
        _ => 0,
    });
    let slow = plan.steps.iter().map(|(_, step)| match step {
        Step::SlowLink { more_ms, .. } => *more_ms,
        _ => 0,
    });
    let trip = steps.max().unwrap_or_default().max(plan.rules.delay_ms.1);
    u32::try_from(trip + slow.max().unwrap_or_default()).unwrap_or(u32::MAX / 16)
}

/// The plan of a seed.
pub fn draw(seed: u64) -> Plan {
    draw_for(seed, None)
}

/// The plan of a seed, for a room of `size` places if given.
pub fn draw_for(seed: u64, size: Option<usize>) -> Plan {
    let mut plan = Plan::draw_narrow(seed, size);
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ OF_ITS_OWN);
    plan.rules.fixed_voters = false;
    plan.rules.keeps_keys = true;
    plan.rules.leader_only = false;
    let most = plan.size.min(MOST_VOTERS);
    let count = rng.random_range(1.max(most / 2)..=most);
    let places: Vec<usize> = (0..plan.size).collect();
    let voters = some(&mut rng, places.clone(), count);
    let rtt_ms = 2 * longest_trip_ms(&plan);
    // Voters whose hosts never let them vote, and voters that never start: a majority remains, and a seed.
    let mut spare = (voters.len() - 1) / 2;
    plan.observers.retain(|slot| {
        let stays = !voters.contains(slot) || spare > 0;
        spare -= usize::from(stays && voters.contains(slot));
        stays
    });
    let starts_later = voters
        .iter()
        .filter(|slot| **slot != 0 && !plan.observers.contains(slot));
    if rng.random_bool(0.1) {
        plan.absent = starts_later.copied().take(spare).collect();
    }
    let strategy = SeededPlan::draw(&mut rng, voters, rtt_ms, &plan);
    if rng.random_bool(0.3) {
        let percent = rng.random_range(5..=40);
        plan.steps.push((0, Step::Strikes { percent }));
    }
    for _ in 0..rng.random_range(0..3) {
        let at = rng.random_range(0..plan.heal_at_ms);
        let slot = rng.random_range(0..plan.size);
        let for_ms = rng.random_range(50..2_000);
        plan.steps.push((at, Step::BadDisk { slot, for_ms }));
    }
    if rng.random_bool(0.3) && strategy.voters.len() > 1 {
        old_disk(&mut plan, &mut rng, &strategy);
    }
    for _ in 0..rng.random_range(0..4) {
        let at = rng.random_range(0..plan.heal_at_ms);
        let with = places.iter().filter(|_| rng.random_bool(0.3));
        let with = with.copied().collect();
        let step = Step::CutOff {
            who: Who::Leader,
            with,
            restart_ms: rng.random_bool(0.3).then_some(20),
            for_ms: u64::from(strategy.ttl_ms) * rng.random_range(1..6) / 2,
        };
        plan.steps.push((at, step));
    }
    plan.steps.sort_by_key(|(at, _)| *at);
    // A member keeps its place for as long as its leader may wait for it.
    plan.rules.member_hold_ms = plan.rules.member_hold_ms.max(strategy.ttl_ms.into());
    plan.strategy = StrategyPlan::Seeded(strategy);
    widen(&mut plan);
    plan
}
