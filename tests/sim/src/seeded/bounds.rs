//! Deadlines in a room with the seeded strategy, and the trial of each run.

use rand::seq::SliceRandom;

use room_core::time::{Duration, Time};

use super::{SeededPlan, Trial};
use crate::chaos::{Run, ms, pairs};
use crate::clock::slowest_clock;

/// Time for which the agreed leader must stay.
const QUIET: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// The end of a run: healing is over, one leader is left, and stays after one more trial.
    pub(crate) fn seeded_ends(&mut self, plan: &SeededPlan) {
        if self.plan.apart.is_some() {
            // A member that does not reach the leader shows none, and as a seed may lead alone: only the properties of every
            // moment hold then.
            let long = ms(u64::from(plan.ttl_ms) * 4) + self.world.max_rtt() * 10;
            self.run_until(self.world.now + long);
            return;
        }
        self.settle();
        self.voters_remember();
        let none_may_lead = self.world.agreed().is_none() && !self.can_elect();
        if self.world.violation.is_some() || none_may_lead {
            return;
        }
        self.world
            .trace
            .add(self.world.now, format_args!("---- {:?} ----", plan.trial));
        self.try_out_cluster(plan);
        self.settle();
        self.cluster_stays();
    }

    fn try_out_cluster(&mut self, plan: &SeededPlan) {
        let Some(leader) = self.world.agreed() else {
            return;
        };
        let majority = plan.voters.len() / 2 + 1;
        let running = self.world.running();
        let mut voters: Vec<usize> = plan.voters.iter().copied().collect();
        voters.retain(|voter| running.contains(voter) && self.world.may_lead(*voter));
        // A voter that forgot votes acknowledges a leader all the same.
        let acknowledging = voters.len();
        voters.retain(|voter| !self.world.is_stale(*voter));
        if voters.len() < majority {
            return; // a leader leads alone
        }
        voters.shuffle(&mut self.world.rng);
        match plan.trial {
            Trial::Quiet => {}
            Trial::Crash | Trial::Leave => {
                let left = voters.len() - 1;
                match plan.trial {
                    Trial::Crash => self.world.crash(leader),
                    _ => self.world.leave(leader),
                }
                if left >= majority {
                    self.next_leader_within(plan, leader);
                }
                // A leaving process may wait for answers.
                self.start_at(leader, self.world.now + ms(2_500));
                self.run_until(self.world.now + ms(2_500));
            }
            Trial::Minority => {
                // The leader, and as many voters as a majority can spare.
                voters.retain(|voter| *voter != leader);
                let spare = (voters.len() + 1).saturating_sub(majority);
                let mut side: Vec<usize> = voters.split_off(voters.len().min(majority));
                side.truncate(spare.saturating_sub(1));
                side.push(leader);
                let places = 0..self.world.slots.len();
                let rest: Vec<usize> = places.filter(|place| !side.contains(place)).collect();
                let mut cuts = pairs(&side, &rest);
                cuts.extend(pairs(&rest, &side));
                if voters.len() >= majority {
                    let for_ms = u64::from(plan.ttl_ms) * 3 + 5_000;
                    self.cut(cuts, for_ms);
                    self.next_leader_within(plan, leader);
                    self.run_until(self.world.now + ms(for_ms));
                }
            }
            Trial::BelowMajority => {
                // Voters that have just started acknowledge a leader then; a leader without a majority has one from then on.
                let rules = plan.rules().intervals;
                let acknowledged =
                    ms(u64::from(plan.ttl_ms) + 2 * u64::from(rules.heartbeat_interval_ms));
                self.run_until(
                    self.world.now + slowest_clock(acknowledged) + self.world.max_rtt() * 2,
                );
                let down: Vec<usize> = voters
                    .iter()
                    .copied()
                    .take(acknowledging + 1 - majority)
                    .collect();
                if down.len() == voters.len() {
                    return;
                }
                for voter in &down {
                    self.world.crash(*voter);
                }
                let from = self.world.now;
                // The last messages of a voter that died may still be under way.
                let resigned =
                    slowest_clock(ms(u64::from(rules.heartbeat_timeout_ms)
                        + 2 * u64::from(rules.probe_interval_ms)))
                        + self.world.max_rtt() / 2
                        + self.world.settings.lateness * 2
                        + ms(50);
                let alone = ms(u64::from(plan.ttl_ms) * 2);
                self.none_leads_between(from + resigned, from + alone);
                for voter in down {
                    self.start_at(voter, self.world.now);
                }
            }
            Trial::PowerCut => {
                for slot in running {
                    self.world.crash(slot);
                    self.start_at(slot, self.world.now + ms(10));
                }
            }
        }
        self.run_until(self.world.now + ms(200));
    }

    /// A voter whose state file was lost knows its votes again when all other voters run.
    fn voters_remember(&mut self) {
        let until = self.world.now + slowest_clock(ms(3_000)) + self.world.max_rtt() * 4;
        let voters: Vec<usize> = self.world.voters().into_iter().flatten().copied().collect();
        let all_run = |run: &Self| {
            let runs = |slot: &usize| run.world.slots[*slot].process.is_some();
            voters.iter().all(runs)
        };
        let stale = |run: &Self| voters.iter().any(|slot| run.world.is_stale(*slot));
        while self.world.violation.is_none() && all_run(self) && stale(self) {
            if self.world.now > until {
                let text = self.world.describe();
                self.world
                    .violate("lost file", format!("a voter waits for no other: {text}"));
            }
            self.run_until(self.world.now + ms(50));
        }
    }

    /// A majority of the voters remains: another leads within a TTL, some attempts to elect, and the time of the links.
    fn next_leader_within(&mut self, plan: &SeededPlan, before: usize) {
        let attempts = ms(u64::from(plan.ttl_ms) + 8 * u64::from(plan.retry_ms));
        let bound = slowest_clock(attempts) + self.world.max_rtt() * 6 + ms(1_000);
        let until = self.world.now + bound;
        let next = |run: &Self| {
            let mut leaders = run.world.leaders();
            leaders.retain(|slot| *slot != before);
            leaders.len() == 1
        };
        while self.world.violation.is_none() && !next(self) {
            if self.world.now > until {
                let text = self.world.describe();
                self.world.violate(
                    "failover",
                    format!("no member leads after {bound:?}: {text}"),
                );
            }
            self.run_until(self.world.now + ms(50));
        }
    }

    fn none_leads_between(&mut self, from: Time, until: Time) {
        self.run_until(from);
        while self.world.violation.is_none() && self.world.now < until {
            if !self.world.leaders().is_empty() {
                let text = self.world.describe();
                self.world
                    .violate("below M", format!("somebody leads: {text}"));
            }
            self.run_until(self.world.now + ms(50));
        }
    }

    fn cluster_stays(&mut self) {
        let leader = self.world.agreed();
        let until = self.world.now + QUIET;
        while self.world.violation.is_none() && self.world.now < until {
            self.run_until(self.world.now + ms(100));
            if self.world.agreed() != leader {
                let text = self.world.describe();
                self.world
                    .violate("P14", format!("the leader did not stay: {text}"));
            }
        }
        self.same_limit();
    }
}
