//! Random choices for a room with walls, beside the plan that every room has.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::lies::{LIES, RELAY_LIES};
use crate::gossip;
use crate::links::Planted;
use crate::plan::{Plan, Step, Who};
use crate::profile::StrategyPlan;
use crate::seeded;

/// Separates these draws from the plan's, which come from the same seed.
const OF_ITS_OWN: u64 = 0xca44_1e44_c0de_0021;
/// Separates the draws of relays.
const OF_RELAYS: u64 = 0x4e1a_75ff_c0de_0039;

/// Separates the draws of members that lose a relay alone.
const OF_LONE_LOSSES: u64 = 0x10_5e5a_10de_0044;

/// The paths of a room.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathsPlan {
    /// Pairs without a direct path at the beginning, and whether the wall opens.
    pub walls: Vec<(usize, usize, bool)>,
    /// Places of members of the version before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old: Vec<usize>,
    /// Places of members that carry only while they lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwilling: Vec<usize>,
    /// The relays that places enter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<(u8, usize)>,
    /// Places of members that are reached over relays alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relayed_only: Vec<usize>,
    /// Whether all walls come down when the faults end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub walls_end: bool,
    /// A bug to put in, in tests of the checks.
    #[serde(skip)]
    pub planted: Option<Planted>,
}

/// The plan of a seed: one of the strategies, in turn.
pub fn draw(seed: u64) -> Plan {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ OF_ITS_OWN);
    let size = *[3, 3, 4, 4, 4, 5, 5, 6, 7]
        .choose(&mut rng)
        .expect("not empty");
    let plan = match seed % 3 {
        0 => Plan::draw_for(seed, Some(size)),
        1 => gossip::draw_for(seed, Some(size)),
        _ => seeded::draw_for(seed, Some(size)),
    };
    let mut draw = Draw { rng, plan };
    draw.clear();
    draw.paths();
    draw.faults();
    if draw.chance(0.3) {
        draw.liar();
    }
    draw.plan.steps.sort_by_key(|(at, _)| *at);
    draw.plan
}

/// The plan of a seed, with relays.
pub fn draw_with_relays(seed: u64) -> Plan {
    let rng = ChaCha8Rng::seed_from_u64(seed ^ OF_RELAYS);
    let plan = draw(seed);
    let mut draw = Draw { rng, plan };
    draw.relays();
    draw.relay_faults();
    draw.rng = ChaCha8Rng::seed_from_u64(seed ^ OF_LONE_LOSSES);
    draw.lone_losses();
    draw.plan.steps.sort_by_key(|(at, _)| *at);
    draw.plan
}

struct Draw {
    rng: ChaCha8Rng,
    plan: Plan,
}

impl Draw {
    /// Leaves out what walls replace, and other liars.
    fn clear(&mut self) {
        let plan = &mut self.plan;
        plan.apart = None;
        plan.liars.clear();
        let size = plan.size;
        plan.steps.retain(|(_, step)| match step {
            Step::Lie { .. } | Step::Slander { .. } => false,
            Step::Start { slot, .. } => *slot < size,
            _ => true,
        });
        plan.rules.member_hold_ms = 60_000;
        // With another key after a restart members may take it for another member of that name for a while.
        plan.rules.keeps_keys = true;
        plan.heal_at_ms = plan.heal_at_ms.max(12_000);
    }

    fn paths(&mut self) {
        let size = self.plan.size;
        let share = self.pick(&[0.2, 0.5, 0.8]);
        let opens = self.pick(&[0.0, 0.5, 1.0]);
        let mut walls = Vec::new();
        for a in 0..size {
            for b in a + 1..size {
                if self.chance(share) {
                    walls.push((a, b, self.chance(opens)));
                }
            }
        }
        let mut paths = PathsPlan {
            walls,
            walls_end: self.chance(0.5),
            ..PathsPlan::default()
        };
        if self.chance(0.3) {
            paths.old = (0..size).filter(|_| self.chance(0.4)).collect();
        }
        if self.chance(0.25) {
            paths.unwilling = (0..size).filter(|_| self.chance(0.4)).collect();
        }
        self.plan.paths = Some(paths);
    }

    fn relays(&mut self) {
        let size = self.plan.size;
        let share = self.pick(&[0.5, 0.8, 1.0, 1.0]);
        let count = self.pick(&[1, 1, 2]);
        // In half of the rooms relays are the only way for many.
        let more_walls = self.pick(&[0.0, 0.0, 0.5, 1.0]);
        let some_are_hidden = self.chance(0.25);
        let mut relays = Vec::new();
        let mut walls = Vec::new();
        let mut hidden = Vec::new();
        for slot in 0..size {
            for relay in 0..count {
                if self.chance(share) {
                    relays.push((relay, slot));
                }
            }
            if some_are_hidden && self.chance(0.4) {
                hidden.push(slot);
            }
            for other in 0..slot {
                let opens = self.chance(0.4);
                if self.chance(more_walls) {
                    walls.push((other, slot, opens));
                }
            }
        }
        // Short windows end before a member notices that a relay has fallen.
        if let StrategyPlan::Gossip(rules) = &mut self.plan.strategy
            && self.rng.random_bool(0.5)
        {
            rules.alive_ms = 2_500;
            rules.grace_ms = 3_000;
        }
        if let StrategyPlan::Seeded(rules) = &mut self.plan.strategy
            && self.rng.random_bool(0.5)
        {
            rules.timeout_ms = 7_000;
            rules.ttl_ms = 14_000;
        }
        let Some(paths) = &mut self.plan.paths else {
            return;
        };
        let is_old = |slot: &usize| paths.old.contains(slot);
        relays.retain(|(_, slot)| !is_old(slot));
        hidden.retain(|slot| !is_old(slot) && relays.iter().any(|(_, user)| user == slot));
        for (one, other, opens) in walls {
            let is_known = |(a, b, _): &(usize, usize, bool)| (*a, *b) == (one, other);
            if !paths.walls.iter().any(is_known) {
                paths.walls.push((one, other, opens));
            }
        }
        paths.relays = relays;
        paths.relayed_only = hidden;
    }

    fn relay_faults(&mut self) {
        for _ in 0..self.between(1, 8) {
            let at = self.time();
            let relay = self.pick(&[0, 0, 1]);
            let (slot, other) = (self.slot(), self.slot());
            let step = match self.between(0, 9) {
                0..=3 => Step::RelayFalls {
                    relay,
                    for_ms: self.between(50, 8_000),
                },
                4 | 5 => Step::RelayDrops {
                    relay,
                    from: slot,
                    to: self.chance(0.7).then_some(other),
                    for_ms: self.between(500, 12_000),
                },
                6 => Step::RelayHides {
                    relay,
                    slot,
                    for_ms: self.between(500, 20_000),
                },
                _ => Step::RelayLies {
                    relay,
                    victim: slot,
                    about: other,
                    lie: self.pick(&RELAY_LIES),
                    unused: self.pick(&[1, 1, 2]),
                },
            };
            self.plan.steps.push((at, step));
        }
    }

    fn lone_losses(&mut self) {
        for _ in 0..self.between(0, 3) {
            let at = self.time();
            let step = Step::RelayIsLost {
                relay: self.pick(&[0, 0, 1]),
                slot: self.slot(),
                for_ms: self.between(200, 12_000),
            };
            self.plan.steps.push((at, step));
        }
    }

    fn faults(&mut self) {
        for _ in 0..self.between(2, 10) {
            let at = self.time();
            let (slot, other, third) = (self.slot(), self.slot(), self.slot());
            let step = match self.between(0, 9) {
                0 | 1 => Step::Wall {
                    one: slot,
                    other,
                    opens: self.chance(0.5),
                    ends: self.chance(0.7),
                },
                2 => Step::NoWall { one: slot, other },
                3..=5 => {
                    let carrier = match self.chance(0.5) {
                        true => Who::Leader,
                        false => Who::Slot(third),
                    };
                    let for_ms = self.between(500, 12_000);
                    Step::DropOneWay {
                        carrier,
                        from: slot,
                        to: self.chance(0.7).then_some(other),
                        for_ms,
                    }
                }
                6 | 7 => {
                    let share = self.pick(&[0.0, 0.5, 1.0]);
                    let lost = (0..self.plan.size).filter(|_| self.rng.random_bool(share));
                    Step::Rebind {
                        slot,
                        lost: lost.collect(),
                    }
                }
                8 => Step::Crash {
                    who: Who::Leader,
                    back_ms: self.between(100, 4_000),
                },
                _ => Step::Yield,
            };
            self.plan.steps.push((at, step));
        }
    }

    /// A member that names false addresses.
    fn liar(&mut self) {
        let liar = self.plan.size;
        self.plan.liars = vec![false];
        let contact = self.slot();
        let at = self.time() / 2;
        let enters = Step::Start {
            slot: liar,
            contact,
        };
        self.plan.steps.push((at, enters));
        let share = self.pick(&[0.2, 0.7]);
        if let Some(paths) = &mut self.plan.paths {
            let walls = (0..liar).filter(|_| self.rng.random_bool(share));
            let walls: Vec<usize> = walls.collect();
            let opens = self.rng.random_bool(0.3);
            paths
                .walls
                .extend(walls.into_iter().map(|slot| (slot, liar, opens)));
        }
        for _ in 0..self.between(4, 40) {
            let at = self.rng.random_range(at..self.plan.heal_at_ms);
            let step = Step::NameAddresses {
                liar,
                victim: self.slot(),
                about: self.slot(),
                lie: self.pick(&LIES),
                unused: self.pick(&[1, 1, 1, 2, 3]),
            };
            self.plan.steps.push((at, step));
        }
    }

    fn time(&mut self) -> u64 {
        let until = self.plan.heal_at_ms;
        self.rng.random_range(1_000..until)
    }

    fn slot(&mut self) -> usize {
        self.rng.random_range(0..self.plan.size)
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.rng.random_range(least..=most)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.rng).expect("not empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_walls_is_read_as_it_was_written() {
        for seed in 0..200 {
            for plan in [draw(seed), draw_with_relays(seed)] {
                assert_eq!(Plan::parse(&plan.to_line()), Ok(plan));
            }
        }
    }
}
