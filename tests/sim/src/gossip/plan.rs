//! Random choices for a room that elects by gossip, beside the plan that every room has.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use room_core::election::gossip::Windows;
use room_core::time::Duration;
use room_core::wire::Strategy;

use crate::plan::{Plan, Step};
use crate::profile::StrategyPlan;
use crate::wider::widen;
use crate::world::Settings;

/// Separates these draws from the plan's, which come from the same seed.
const OF_ITS_OWN: u64 = 0x6f55_1b00_c0de_0005;

/// The trial of a settled room; each has its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trial {
    /// Nothing: the leader stays.
    Quiet,
    /// The room splits into two or three parts, each of which has a leader, and merges again.
    Parts,
    /// The leader crashes.
    Crash,
    /// The leader leaves. Older plans have another name for it.
    #[serde(alias = "Farewell")]
    Leave,
    /// The leader yields.
    Yields,
    /// A member joins that may have led alone.
    Join,
    /// A host makes a request that needs votes.
    Refused,
}

const TRIALS: [Trial; 9] = [
    Trial::Quiet,
    Trial::Parts,
    Trial::Parts,
    Trial::Crash,
    Trial::Crash,
    Trial::Leave,
    Trial::Yields,
    Trial::Join,
    Trial::Refused,
];

/// Settings of an election by gossip. The windows are short, so that many of them fit into a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GossipRules {
    pub strict_lowest: bool,
    pub grace_ms: u64,
    pub sample_ms: u64,
    pub alive_ms: u64,
    pub election_ms: u64,
    pub trial: Trial,
}

impl GossipRules {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let alive_ms = rng.random_range(500..=2_000);
        let election_ms = match rng.random_range(0..4) {
            0 => alive_ms / 2,
            1 => alive_ms,
            _ => rng.random_range(alive_ms / 2..=alive_ms),
        };
        Self {
            strict_lowest: rng.random_bool(0.5),
            grace_ms: rng.random_range(alive_ms..=alive_ms * 2),
            sample_ms: rng.random_range(alive_ms / 10..=alive_ms / 5),
            alive_ms,
            election_ms,
            trial: *TRIALS.choose(rng).expect("not empty"),
        }
    }

    /// Makes these the rules of a room.
    pub fn apply(&self, settings: &mut Settings) {
        settings.strategy = Strategy::Gossip {
            strict_lowest: self.strict_lowest,
        };
        settings.windows = Windows {
            startup_grace: Duration::from_millis(self.grace_ms),
            sample_interval: Duration::from_millis(self.sample_ms),
            alive_threshold: Duration::from_millis(self.alive_ms),
            election_duration: Duration::from_millis(self.election_ms),
        };
    }
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
    plan.priorities.clear();
    for (_, step) in &mut plan.steps {
        // No host can name a leader here: a yield replaces most of the attempts.
        if matches!(step, Step::Transfer { .. }) && rng.random_bool(0.7) {
            *step = Step::Yield;
        }
    }
    plan.strategy = StrategyPlan::Gossip(GossipRules::draw(&mut rng));
    widen(&mut plan);
    plan
}
