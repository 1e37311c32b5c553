//! Seeded rooms with relays, of every strategy. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_RELAYS_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::collections::BTreeMap;
use std::time::Instant;

use super::runner::{ENOUGH_FOR_RARE, Order, number_from_env, run_all};
use crate::chaos;
use crate::links::Planted;
use crate::paths::{self, RelayCounts, regressions};
use crate::trace::Trace;

#[test]
fn simulations_with_relays_keep_the_properties() {
    let began = Instant::now();
    let order = Order::from_env();
    let (mut runs, mut counts) = (0, RelayCounts::default());
    run_all(
        |number| {
            let seed = order.seed_after(regressions::RELAY_SEEDS, number)?;
            Some((paths::draw_with_relays(seed), format!("relays seed {seed}")))
        },
        |outcome, _| {
            runs += 1;
            counts.add(&outcome.relays);
        },
    );
    println!(
        "{runs} runs with relays in {:.1} s; what happened in them:",
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
fn replay_with_relays() {
    let Some(seed) = number_from_env("MMN_SIM_RELAYS_SEED") else {
        return;
    };
    let outcome = chaos::run_plan(&paths::draw_with_relays(seed), Trace::on(), None);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    let broken = outcome.violation.map(|violation| violation.to_string());
    assert_eq!(broken, None);
}

#[test]
fn equal_seeds_give_equal_rooms_with_relays() {
    let run = |seed| {
        let outcome = chaos::run_plan(&paths::draw_with_relays(seed), Trace::on(), None);
        (outcome.trace.hash(), outcome.hash)
    };
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// Runs with a bug.
const PLANTED_RUNS: u64 = 60;
/// Runs with a bug that shows when a relay is restarted, which few runs come to.
const RESTARTED_RUNS: u64 = 2_000;

/// The properties that runs with a bug break, with the number of runs.
fn broken(runs: u64, bug: Planted) -> BTreeMap<&'static str, usize> {
    let mut broken = BTreeMap::new();
    for seed in 1..=runs {
        let mut plan = paths::draw_with_relays(seed);
        if let Some(paths) = &mut plan.paths {
            paths.planted = Some(bug);
        }
        let outcome = chaos::run_plan(&plan, Trace::off(), None);
        if let Some(found) = outcome.violation {
            *broken.entry(found.property).or_default() += 1;
        }
    }
    broken
}

#[test]
fn members_that_do_not_notice_the_fall_of_a_relay_are_seen() {
    let broken = broken(PLANTED_RUNS, Planted::NeverNoticesFalls);
    assert!(broken.get("paths") >= Some(&5), "{broken:?}");
}

#[test]
fn rooms_without_the_grace_are_seen() {
    let broken = broken(RESTARTED_RUNS, Planted::GoneBeforeFalls);
    assert!(broken.get("restarts") >= Some(&5), "{broken:?}");
}

#[test]
fn members_that_do_not_learn_who_is_at_a_relay_are_seen() {
    let broken = broken(PLANTED_RUNS, Planted::NoPresence);
    assert!(broken.get("linked") >= Some(&5), "{broken:?}");
}
