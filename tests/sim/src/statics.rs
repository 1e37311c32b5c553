//! Faults of rooms with a static quorum only: drawn in addition to an ordinary plan, which stays unchanged.
//!
//! The places of the plan that are no observers are the roster. Some rooms have observers on it, voters that never start, and
//! members beside it that claim to be eligible.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use room_core::quorum::MAX_ROSTER_VOTERS;

use crate::plan::{Plan, Step, Who};

/// Separates these draws from the plan's, which come from the same seed.
const OF_THEIR_OWN: u64 = 0x57a7_1c00_0ba1_1075;
/// A room of this size gets no more places.
const LARGE: usize = 17;

/// The plan of a seed, always with a static quorum.
pub fn draw(seed: u64) -> Plan {
    let mut plan = Plan::draw_narrow(seed, None);
    plan.rules.fixed_voters = true;
    plan.rules.keeps_keys = true;
    widen(&mut plan);
    plan
}

/// Adds to the plan of a room with a static quorum.
pub fn widen(plan: &mut Plan) {
    let mut draw = Draw {
        rng: ChaCha8Rng::seed_from_u64(plan.seed ^ OF_THEIR_OWN),
        plan,
    };
    draw.roster();
    draw.outsiders();
    draw.absent();
    if draw.chance(0.4) {
        draw.plan.rules.member_hold_ms = draw.between(1_000, 4_000);
    }
    if draw.chance(0.6) {
        draw.cut_off();
    }
    if draw.chance(0.3) {
        draw.strikes();
    }
    if draw.chance(0.3) {
        draw.bad_disks();
    }
    if draw.chance(0.3) {
        draw.old_disk();
    }
    plan.steps.sort_by_key(|(at, _)| *at);
}

/// A small room with nothing but elections, and processes that end in the middle of them: the leader is killed or transfers its
/// leadership again and again, disks are slow, and one write of a vote in a few ends its process.
pub fn vote_storm(seed: u64) -> Plan {
    let mut plan = Plan::draw_narrow(seed, None);
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ OF_THEIR_OWN);
    plan.size = *[3, 3, 3, 4, 5].choose(&mut rng).expect("not empty");
    plan.rules.fixed_voters = true;
    plan.rules.keeps_keys = true;
    plan.rules.fast = rng.random_bool(0.5);
    plan.observers.clear();
    plan.priorities.clear();
    plan.apart = None;
    plan.steps.clear();
    plan.heal_at_ms = 12_000;
    for slot in 0..plan.size {
        plan.steps.push((0, Step::Start { slot, contact: 0 }));
    }
    let most_ms = *[2, 30, 200, 600].choose(&mut rng).expect("not empty");
    plan.steps.push((0, Step::SlowDisk { most_ms }));
    let percent = rng.random_range(10..=60);
    plan.steps.push((0, Step::Strikes { percent }));
    let mut at = 2_000;
    while at < plan.heal_at_ms {
        let slot = rng.random_range(0..plan.size);
        let step = match rng.random_range(0..8) {
            0..4 => Step::Crash {
                who: Who::Leader,
                back_ms: rng.random_range(0..1_500),
            },
            4 => Step::Transfer { target: slot },
            5 => Step::SetLeader {
                calls: vec![(slot, slot)],
            },
            6 => Step::Crash {
                who: Who::Slot(slot),
                back_ms: rng.random_range(0..300),
            },
            _ => Step::CutOff {
                who: Who::Leader,
                with: vec![slot],
                restart_ms: rng.random_bool(0.5).then_some(10),
                for_ms: rng.random_range(500..3_000),
            },
        };
        plan.steps.push((at, step));
        at += rng.random_range(300..1_500);
    }
    plan
}

struct Draw<'a> {
    rng: ChaCha8Rng,
    plan: &'a mut Plan,
}

impl Draw<'_> {
    /// All places that are no observers; and observers, as long as a majority may vote.
    fn roster(&mut self) {
        let plan = &self.plan;
        let (observers, mut roster): (Vec<usize>, Vec<usize>) =
            (0..plan.size).partition(|slot| plan.observers.contains(slot));
        roster.truncate(MAX_ROSTER_VOTERS);
        let voters = roster.len();
        if self.chance(0.5) {
            let most = (2 * voters - 1).min(MAX_ROSTER_VOTERS);
            roster.extend(observers);
            roster.truncate(most);
        }
        if roster.len() == 1 {
            // Only voters name the leader: a member that does not reach the only voter never learns it.
            self.plan.apart = None;
        }
        self.plan.roster = roster;
    }

    /// Members beside the roster that claim to be eligible: from the start, later, or alternating.
    fn outsiders(&mut self) {
        if self.plan.size >= LARGE || !self.chance(0.6) {
            return;
        }
        let first = self.plan.size;
        let count = *[1, 1, 2, 3].choose(&mut self.rng).expect("not empty");
        self.plan.size += count;
        for slot in first..self.plan.size {
            let at = self.moment();
            let contact = self.rng.random_range(0..slot);
            self.step(at, Step::Start { slot, contact });
            for _ in 0..self.rng.random_range(0..4) {
                let at = self.moment();
                let eligible = self.chance(0.7);
                self.step(at, Step::Observe { slot, eligible });
            }
            if self.chance(0.3) {
                let calls = vec![(slot, slot)];
                let at = self.moment();
                self.step(at, Step::SetLeader { calls });
            }
        }
    }

    /// Voters that never start. In some rooms they are a majority: no member may ever lead there.
    fn absent(&mut self) {
        if !self.chance(0.25) {
            return;
        }
        let mut voters: Vec<usize> = self.plan.roster.clone();
        voters.retain(|slot| *slot != 0 && !self.plan.observers.contains(slot));
        voters.shuffle(&mut self.rng);
        let may_miss = (voters.len() + 1).saturating_sub(self.plan.roster.len() / 2 + 1);
        let most = if self.chance(0.1) {
            voters.len()
        } else {
            may_miss
        };
        if most == 0 {
            return;
        }
        let count = self.rng.random_range(1..=most);
        self.plan.absent = voters.into_iter().take(count).collect();
    }

    /// Cuts off a leader or another voter, alone or with members beside the roster, for longer or shorter than its place is held.
    /// It is restarted meanwhile or not, its host calls `SetLeader`, and one of its side becomes an observer or a voter.
    fn cut_off(&mut self) {
        for _ in 0..self.rng.random_range(1..=3) {
            let at = self.moment();
            let slot = self.voter();
            let who = if self.chance(0.4) {
                Who::Leader
            } else {
                Who::Slot(slot)
            };
            let outsiders: Vec<usize> = (0..self.plan.size)
                .filter(|slot| !self.plan.roster.contains(slot))
                .collect();
            let mut with: Vec<usize> = outsiders
                .into_iter()
                .filter(|_| self.rng.random_bool(0.7))
                .collect();
            if self.chance(0.4) {
                with.push(self.voter());
            }
            let for_ms = self.between(1_000, 9_000);
            let restart_ms = self.chance(0.5).then(|| self.between(0, for_ms / 2));
            for _ in 0..self.rng.random_range(0..3) {
                let side = with.choose(&mut self.rng).copied().unwrap_or(slot);
                let (caller, target) = if self.chance(0.6) {
                    (slot, slot)
                } else {
                    (side, slot)
                };
                let calls = vec![(caller, target)];
                let at = at + self.between(0, for_ms);
                self.step(at, Step::SetLeader { calls });
            }
            if self.chance(0.4) {
                let slot = with.choose(&mut self.rng).copied().unwrap_or(slot);
                let at = at + self.between(0, for_ms);
                self.step(
                    at,
                    Step::Observe {
                        slot,
                        eligible: false,
                    },
                );
                let at = at + self.between(0, 3_000);
                self.step(
                    at,
                    Step::Observe {
                        slot,
                        eligible: true,
                    },
                );
            }
            self.step(
                at,
                Step::CutOff {
                    who,
                    with,
                    restart_ms,
                    for_ms,
                },
            );
        }
    }

    /// Restarts in the middle of elections; the leader is killed now and then to cause them.
    fn strikes(&mut self) {
        let at = self.moment();
        let percent = self.rng.random_range(5..=50);
        self.step(at, Step::Strikes { percent });
        let most_ms = *[5, 100, 500].choose(&mut self.rng).expect("not empty");
        self.step(at, Step::SlowDisk { most_ms });
        for _ in 0..self.rng.random_range(1..=4) {
            let back_ms = self.between(0, 1_000);
            let who = Who::Leader;
            let at = self.moment();
            self.step(at, Step::Crash { who, back_ms });
        }
    }

    fn bad_disks(&mut self) {
        for _ in 0..self.rng.random_range(1..=3) {
            let at = self.moment();
            let slot = self.voter();
            let for_ms = self.between(100, 6_000);
            self.step(at, Step::BadDisk { slot, for_ms });
        }
    }

    /// A state file that is lost or replaced; some of its places restart again before they have received from all others.
    fn old_disk(&mut self) {
        if self.plan.roster.len() < 2 {
            return; // no member would know
        }
        let at = self.moment();
        let slot = self.voter();
        let writes_ago = self.chance(0.6).then(|| self.rng.random_range(1..8));
        let back_ms = self.between(0, 4_000);
        let who = if self.chance(0.3) {
            Who::Leader
        } else {
            Who::Slot(slot)
        };
        self.step(
            at,
            Step::OldDisk {
                who,
                writes_ago,
                back_ms,
            },
        );
        for _ in 0..self.rng.random_range(0..6) {
            let at = at + back_ms + self.between(100, 5_000);
            let back_ms = self.between(0, 500);
            let who = Who::Slot(slot);
            self.step(at, Step::Crash { who, back_ms });
        }
    }

    fn voter(&mut self) -> usize {
        *self.plan.roster.choose(&mut self.rng).expect("not empty")
    }

    /// Some time before the faults end.
    fn moment(&mut self) -> u64 {
        self.rng.random_range(0..self.plan.heal_at_ms)
    }

    fn step(&mut self, at: u64, step: Step) {
        if at < self.plan.heal_at_ms {
            self.plan.steps.push((at, step));
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.rng.random_range(least..=most.max(least))
    }
}
