//! Seeded rooms with walls and carriers, of every strategy. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_PATHS_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::time::Instant;

use super::runner::{ENOUGH_FOR_RARE, Order, number_from_env, run_all};
use crate::chaos;
use crate::links::Planted;
use crate::paths::{self, Counts, regressions};
use crate::plan::Plan;
use crate::trace::Trace;

#[test]
fn simulations_with_walls_keep_the_properties() {
    let began = Instant::now();
    let order = Order::from_env();
    let (mut runs, mut counts) = (0, Counts::default());
    let plans = regressions::PLANS.len() as u64;
    run_all(
        |number| {
            if number < plans {
                let (why, line) = regressions::PLANS[number as usize];
                let plan = Plan::parse(line).expect("a plan that was written down");
                return Some((plan, format!("the plan \"{why}\"")));
            }
            let seed = order.seed_after(regressions::SEEDS, number - plans)?;
            Some((paths::draw(seed), format!("paths seed {seed}")))
        },
        |outcome, _| {
            runs += 1;
            counts.add(&outcome.paths);
        },
    );
    println!(
        "{runs} runs with walls in {:.1} s; what happened in them:",
        began.elapsed().as_secs_f64()
    );
    let table = counts.table();
    for (name, count) in &table {
        println!("  {count:10} {}", name.replace('_', " "));
    }
    if runs >= ENOUGH_FOR_RARE {
        let never = table.iter().filter(|(_, count)| *count == 0);
        let never: Vec<&str> = never.map(|(name, _)| *name).collect();
        assert!(never.is_empty(), "never happened: {never:?}");
    }
}

#[test]
fn replay_with_walls() {
    let Some(seed) = number_from_env("MMN_SIM_PATHS_SEED") else {
        return;
    };
    let outcome = chaos::run_plan(&paths::draw(seed), Trace::on(), None);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    let broken = outcome.violation.map(|violation| violation.to_string());
    assert_eq!(broken, None);
}

#[test]
fn equal_seeds_give_equal_rooms_with_walls() {
    let run = |seed| {
        let outcome = chaos::run_plan(&paths::draw(seed), Trace::on(), None);
        (outcome.trace.hash(), outcome.hash)
    };
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// Runs with a bug.
const PLANTED_RUNS: u64 = 60;

/// The number of runs that break a property, with a bug put in.
fn falls(property: &str, bug: Planted) -> usize {
    let is_broken = |seed: &u64| {
        let mut plan = paths::draw(*seed);
        if let Some(paths) = &mut plan.paths {
            paths.planted = Some(bug);
        }
        let outcome = chaos::run_plan(&plan, Trace::off(), None);
        outcome.violation.map(|found| found.property) == Some(property)
    };
    (1..=PLANTED_RUNS).filter(is_broken).count()
}

#[test]
fn links_that_keep_dead_carriers_are_seen() {
    let falls = falls("paths", Planted::KeepsDeadCarriers);
    assert!(falls >= 8, "{falls}");
}

#[test]
fn carried_links_that_count_in_elections_are_seen() {
    let falls = falls("paths", Planted::CountsCarriedLinks);
    assert!(falls >= 20, "{falls}");
}

#[test]
fn members_that_never_punch_are_seen() {
    let falls = falls("linked", Planted::NeverPunches);
    assert!(falls >= 5, "{falls}");
}

#[test]
fn members_that_are_never_dialled_over_carriers_are_seen() {
    let falls = falls("linked", Planted::NeverDialsOverCarriers);
    assert!(falls >= 5, "{falls}");
}

#[test]
fn new_messages_to_members_of_the_version_before_are_seen() {
    let falls = falls("features", Planted::IgnoresFeatures);
    assert!(falls >= 5, "{falls}");
}
