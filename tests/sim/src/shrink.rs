//! Reduces a failing plan: leaves out everything that the failure does not need.

use std::fmt::Write;

use crate::checks::Violation;
use crate::paths::PathsPlan;
use crate::plan::{Phase, Plan, Step};
use crate::profile::StrategyPlan;

/// Maximum number of runs of one reduction.
const MAX_RUNS: u32 = 3_000;
/// Other seeds to try when a smaller plan does not fail with its own: they only shift delays and timeouts.
const OTHER_SEEDS: u64 = 2;

/// Result of a plan.
pub type Run<'a> = &'a dyn Fn(&Plan) -> Option<Violation>;

/// The smallest plan found that still breaks `property`: leaves out one thing after another until no more can go.
pub fn shrink(plan: &Plan, property: &str, run: Run<'_>) -> Plan {
    let mut search = Search {
        best: plan.clone(),
        property,
        run,
        left: MAX_RUNS,
    };
    loop {
        let before = search.left;
        let found = search.round();
        if !found || search.left == 0 || search.left == before {
            return search.best;
        }
    }
}

struct Search<'a> {
    best: Plan,
    property: &'a str,
    run: Run<'a>,
    left: u32,
}

impl Search<'_> {
    /// Tries everything once; returns whether anything could be left out.
    fn round(&mut self) -> bool {
        let mut found = self.without_steps();
        for slot in (0..self.best.size).rev() {
            found |= self.without_place(slot);
        }
        found |= self.simpler(|plan| plan.phase = Phase::Quiet);
        found |= self.simpler(|plan| plan.strategy.without_trial());
        found |= self.simpler(|plan| plan.clocks.clear());
        found |= self.simpler(|plan| plan.priorities.clear());
        found |= self.simpler(|plan| plan.observers.clear());
        found |= self.simpler(|plan| plan.other_recovery.clear());
        found |= self.simpler(|plan| plan.hosts_wait = false);
        found |= self.simpler(|plan| plan.apart = None);
        found |= self.simpler_paths();
        found |= self.simpler(|plan| plan.wall_clocks.clear());
        found |= self.simpler(|plan| plan.first_term = 0);
        found |= self.simpler(|plan| plan.hosts.talk = false);
        found |= self.simpler(|plan| plan.hosts.decide = false);
        found |= self.simpler(|plan| plan.hosts.asked = false);
        found |= self.simpler(|plan| plan.rules.lateness_us = 0);
        found |= self.simpler(|plan| plan.rules.delay_ms = (1, 2));
        found |= self.simpler(|plan| plan.rules.member_hold_ms = 60_000);
        found |= self.simpler(|plan| plan.rules.fixed_voters = false);
        found |= self.simpler(|plan| plan.rules.highest_term = false);
        found |= self.simpler(|plan| plan.rules.leader_only = false);
        found
    }

    /// Leaves out one wall after another, and the peculiarities of members.
    fn simpler_paths(&mut self) -> bool {
        let mut found = false;
        let walls = self
            .best
            .paths
            .as_ref()
            .map_or(0, |paths| paths.walls.len());
        for wall in (0..walls).rev() {
            found |= self.paths(|paths| {
                paths.walls.remove(wall);
            });
        }
        found |= self.paths(|paths| paths.old.clear());
        found |= self.paths(|paths| paths.unwilling.clear());
        found |= self.paths(|paths| paths.relayed_only.clear());
        let users = self
            .best
            .paths
            .as_ref()
            .map_or(0, |paths| paths.relays.len());
        for user in (0..users).rev() {
            found |= self.paths(|paths| {
                paths.relays.remove(user);
            });
        }
        found
    }

    fn paths(&mut self, change: impl FnOnce(&mut PathsPlan)) -> bool {
        self.simpler(|plan| {
            if let Some(paths) = &mut plan.paths {
                change(paths);
            }
        })
    }

    /// Leaves out halves of the steps, then quarters, down to single ones.
    fn without_steps(&mut self) -> bool {
        let mut found = false;
        let mut chunk = self.best.steps.len().div_ceil(2);
        while chunk > 0 {
            let mut from = 0;
            while from < self.best.steps.len() {
                let to = (from + chunk).min(self.best.steps.len());
                if self.simpler(|plan| drop(plan.steps.drain(from..to))) {
                    found = true;
                } else {
                    from = to;
                }
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
        found
    }

    fn without_place(&mut self, slot: usize) -> bool {
        self.simpler(|plan| {
            if plan.absent.contains(&slot) || plan.rules.fixed_voters {
                return;
            }
            plan.absent.push(slot);
            plan.steps.retain(
                |(_, step)| !matches!(step, Step::Start { slot: started, .. } if *started == slot),
            );
        })
    }

    /// Keeps the change if the plan then still fails in the same way.
    fn simpler(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut plan = self.best.clone();
        change(&mut plan);
        if plan == self.best {
            return false;
        }
        let seed = plan.seed;
        for other in 0..=OTHER_SEEDS {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            plan.seed = seed.wrapping_add(other);
            let violation = (self.run)(&plan);
            if violation.is_some_and(|violation| violation.property == self.property) {
                self.best = plan;
                return true;
            }
        }
        false
    }
}

/// A readable plan.
pub fn describe(plan: &Plan) -> String {
    let places = plan.size - plan.absent.len();
    let mut text = format!("  {places} places, {:?}", plan.rules);
    for (at, step) in &plan.steps {
        let _ = write!(text, "\n  {at:6} ms {step:?}");
    }
    let healed = plan.heal_at_ms;
    let _ = match &plan.strategy {
        StrategyPlan::Raft => write!(text, "\n  {healed:6} ms healing, then {:?}", plan.phase),
        other => write!(text, "\n  {healed:6} ms healing, then {other:?}"),
    };
    text
}
