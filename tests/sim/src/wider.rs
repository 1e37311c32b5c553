//! A seed's additional draws, beside the faults that plans have always had, from their own generator.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::liars;
use crate::plan::{LARGE, Plan, Step, Who};

/// Separates these draws from the plan's, which come from the same seed.
const OF_THEIR_OWN: u64 = 0x57a1_1e5d_c0de_000b;

/// Adds to a plan, and leaves the rest unchanged.
pub fn widen(plan: &mut Plan) {
    if plan.size >= LARGE {
        return; // expensive enough
    }
    let mut draw = Draw {
        rng: ChaCha8Rng::seed_from_u64(plan.seed ^ OF_THEIR_OWN),
        plan,
    };
    draw.strays();
    draw.hosts();
    draw.kick_of_a_lost_member();
    let terms = draw.plan.strategy.profile().has_terms();
    if draw.chance(0.06) && terms {
        draw.plan.first_term = draw.pick(&[1 << 21, 1 << 30, (1 << 30) + 77, 1 << 39]);
    }
    if draw.chance(0.06) {
        liars::add(draw.plan, &mut draw.rng);
    }
    draw.refusals();
    draw.plan.steps.sort_by_key(|(at, _)| *at);
}

struct Draw<'a> {
    rng: ChaCha8Rng,
    plan: &'a mut Plan,
}

impl Draw<'_> {
    fn strays(&mut self) {
        if !self.chance(0.15) {
            return;
        }
        for _ in 0..self.between(1, 3) {
            let at = self.time();
            let step = Step::Strays {
                copies: self.pick(&[0, 2, 10, 30]),
                leftovers: self.pick(&[0, 30, 100]),
                passed: 0,
                most_ms: self.pick(&[0, 50, 400, 3_000]),
            };
            self.plan.steps.push((at, step));
        }
    }

    fn hosts(&mut self) {
        if self.chance(0.3) {
            self.plan.hosts.talk = true;
            for _ in 0..self.between(0, 2) {
                let at = self.time();
                let most_ms = self.pick(&[0, 20, 300, 3_000]);
                self.plan.steps.push((at, Step::LateData { most_ms }));
            }
        }
        if self.chance(0.25) {
            self.plan.hosts.asked = true;
            self.plan.hosts.decide = self.chance(0.4);
        }
    }

    /// Most systems report closed ports, some report others, too.
    fn refusals(&mut self) {
        self.plan.refuses = self.chance(0.6);
        if !self.chance(0.15) {
            return;
        }
        for _ in 0..self.between(1, 2) {
            let at = self.time();
            let size = self.plan.size;
            let some = self.chance(0.5);
            let deaf = (0..size).filter(|_| some && self.chance(0.4)).collect();
            let step = Step::Refusals {
                lies: self.pick(&[0, 1, 10, 50, 100]),
                most_ms: self.pick(&[0, 20, 300, 2_000]),
                deaf,
            };
            self.plan.steps.push((at, step));
        }
    }

    /// A member is cut off, lost, and then kicked.
    fn kick_of_a_lost_member(&mut self) {
        let until = self.plan.heal_at_ms;
        if until < 8_000 || self.plan.size < 4 || !self.chance(0.05) {
            return;
        }
        let victim = self.rng.random_range(0..self.plan.size);
        let at = self.rng.random_range(3_000..until - 4_000);
        let isolate = Step::Isolate {
            who: Who::Slot(victim),
            deaf: true,
            mute: true,
            for_ms: self.between(2_500, 3_500),
        };
        self.plan.steps.push((at, isolate));
        self.plan.steps.push((at + 2_200, Step::Kick { victim }));
        self.plan.hosts.asked = true;
    }

    /// Before healing.
    fn time(&mut self) -> u64 {
        let until = self.plan.heal_at_ms;
        self.rng.random_range(0..until)
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
    fn few_rooms_have_each_of_these_and_what_was_drawn_before_stays() {
        let plans: Vec<Plan> = (0..2_000).map(Plan::draw).collect();
        let share = |of: &dyn Fn(&Plan) -> bool| {
            plans.iter().filter(|plan| of(plan)).count() as f64 / plans.len() as f64
        };
        let strays = |step: &(u64, Step)| matches!(step.1, Step::Strays { .. });
        assert!((0.1..0.2).contains(&share(&|plan| plan.steps.iter().any(strays))));
        assert!((0.25..0.35).contains(&share(&|plan| plan.hosts.talk)));
        assert!((0.2..0.35).contains(&share(&|plan| plan.hosts.asked)));
        assert!((0.03..0.09).contains(&share(&|plan| !plan.liars.is_empty())));
        assert!((0.03..0.09).contains(&share(&|plan| plan.first_term > 1 << 20)));
        let refusals = |step: &(u64, Step)| matches!(step.1, Step::Refusals { .. });
        assert!((0.1..0.2).contains(&share(&|plan| plan.steps.iter().any(refusals))));
        assert!((0.55..0.65).contains(&share(&|plan| plan.refuses)));
        for (seed, plan) in plans.iter().enumerate().take(100) {
            let narrow = Plan::draw_narrow(seed as u64, None);
            assert!(narrow.steps.iter().all(|step| plan.steps.contains(step)));
            let line = narrow.to_line();
            assert!(!line.contains("\"hosts\"") && !line.contains("first_term"));
        }
    }
}
