//! Seeded rooms with walls and carriers, of every strategy. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_PATHS_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use super::runner::{numbered, replay, run_of, run_seeds};
use crate::chaos;
use crate::links::Planted;
use crate::paths::{self, Counts, regressions};
use crate::plan::Plan;
use crate::trace::Trace;

#[test]
fn simulations_with_walls_keep_the_properties() {
    let known = (regressions::PLANS, regressions::SEEDS);
    run_seeds(
        "with walls",
        |order, number| numbered(order, known, ("paths seed", paths::draw), number),
        |counts: &mut Counts, outcome| counts.add(&outcome.paths),
        Counts::table,
    );
}

#[test]
fn replay_with_walls() {
    replay("MMN_SIM_PATHS_SEED", paths::draw);
}

#[test]
fn equal_seeds_give_equal_rooms_with_walls() {
    for plan in (1..=10).map(paths::draw) {
        assert_eq!(run_of(&plan), run_of(&plan), "{}", plan.to_line());
    }
}

/// Runs with a bug.
pub(super) const PLANTED_RUNS: u64 = 60;

/// A bug breaks the property in at least that many of the runs. The search ends with the last that it needs.
pub(super) fn is_seen(
    bug: Planted,
    (property, least): (&str, usize),
    draw: impl Fn(u64) -> Plan,
    seeds: impl IntoIterator<Item = u64>,
) {
    let broken = seeds.into_iter().filter_map(|seed| {
        let mut plan = draw(seed);
        if let Some(paths) = &mut plan.paths {
            paths.planted = Some(bug);
        }
        let outcome = chaos::run_plan(&plan, Trace::off(), None);
        (outcome.violation?.property == property).then_some(seed)
    });
    let found: Vec<_> = broken.take(least).collect();
    println!("{bug:?} breaks \"{property}\" in the runs {found:?}");
    assert_eq!(found.len(), least);
}

#[test]
fn links_that_keep_dead_carriers_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    is_seen(Planted::KeepsDeadCarriers, ("paths", 8), paths::draw, seeds);
}

#[test]
fn carried_links_that_count_in_elections_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    is_seen(
        Planted::CountsCarriedLinks,
        ("paths", 20),
        paths::draw,
        seeds,
    );
}

#[test]
fn members_that_never_punch_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    is_seen(Planted::NeverPunches, ("linked", 5), paths::draw, seeds);
}

#[test]
fn members_that_are_never_dialled_over_carriers_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    is_seen(
        Planted::NeverDialsOverCarriers,
        ("linked", 5),
        paths::draw,
        seeds,
    );
}

#[test]
fn new_messages_to_members_of_the_version_before_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    is_seen(
        Planted::IgnoresFeatures,
        ("features", 5),
        paths::draw,
        seeds,
    );
}
