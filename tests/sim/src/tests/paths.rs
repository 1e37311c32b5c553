//! Seeded rooms with walls and carriers, of every strategy. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_PATHS_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::collections::BTreeMap;

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
const PLANTED_RUNS: u64 = 60;

/// The properties that runs with a bug break, with the number of runs.
pub(super) fn broken_by(
    draw: impl Fn(u64) -> Plan,
    runs: u64,
    bug: Planted,
) -> BTreeMap<&'static str, usize> {
    let mut broken = BTreeMap::new();
    for mut plan in (1..=runs).map(draw) {
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
fn links_that_keep_dead_carriers_are_seen() {
    let broken = broken_by(paths::draw, PLANTED_RUNS, Planted::KeepsDeadCarriers);
    assert!(broken.get("paths") >= Some(&8), "{broken:?}");
}

#[test]
fn carried_links_that_count_in_elections_are_seen() {
    let broken = broken_by(paths::draw, PLANTED_RUNS, Planted::CountsCarriedLinks);
    assert!(broken.get("paths") >= Some(&20), "{broken:?}");
}

#[test]
fn members_that_never_punch_are_seen() {
    let broken = broken_by(paths::draw, PLANTED_RUNS, Planted::NeverPunches);
    assert!(broken.get("linked") >= Some(&5), "{broken:?}");
}

#[test]
fn members_that_are_never_dialled_over_carriers_are_seen() {
    let broken = broken_by(paths::draw, PLANTED_RUNS, Planted::NeverDialsOverCarriers);
    assert!(broken.get("linked") >= Some(&5), "{broken:?}");
}

#[test]
fn new_messages_to_members_of_the_version_before_are_seen() {
    let broken = broken_by(paths::draw, PLANTED_RUNS, Planted::IgnoresFeatures);
    assert!(broken.get("features") >= Some(&5), "{broken:?}");
}
