//! Seeded rooms with relays, of every strategy. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_RELAYS_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use room_core::election::guards::Guards;

use super::paths::{PLANTED_RUNS, is_seen};
use super::runner::{numbered, replay, run_of, run_seeds};
use crate::links::Planted;
use crate::paths::{self, RelayCounts, regressions};
use crate::plan::Plan;

#[test]
fn simulations_with_relays_keep_the_properties() {
    let kind = ("relays seed", paths::draw_with_relays);
    let known = (regressions::RELAY_PLANS, regressions::RELAY_SEEDS);
    run_seeds(
        "with relays",
        |order, number| numbered(order, known, kind, number),
        |counts: &mut RelayCounts, outcome| counts.add(&outcome.relays),
        RelayCounts::table,
    );
}

#[test]
fn replay_with_relays() {
    replay("MMN_SIM_RELAYS_SEED", paths::draw_with_relays);
}

#[test]
fn equal_seeds_give_equal_rooms_with_relays() {
    for plan in (1..=10).map(paths::draw_with_relays) {
        assert_eq!(run_of(&plan), run_of(&plan), "{}", plan.to_line());
    }
}

/// Runs with a bug that shows when a relay is restarted or silent, which few runs come to.
const RARE_RUNS: u64 = 3_000;

#[test]
fn members_that_do_not_notice_the_fall_of_a_relay_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    let draw = paths::draw_with_relays;
    is_seen(Planted::NeverNoticesFalls, ("paths", 5), draw, seeds);
}

#[test]
fn rooms_without_the_grace_are_seen() {
    // A leader in doubt has a grace of its own.
    let no_doubt = |seed| Plan {
        guards: Guards {
            doubts: false,
            ..Guards::ALL
        },
        ..paths::draw_with_relays(seed)
    };
    // Runs that it broke come first.
    let broken = [330, 820, 1334, 1432, 2154];
    let others = (1..=RARE_RUNS).filter(|seed| !broken.contains(seed));
    let seeds = broken.into_iter().chain(others);
    is_seen(Planted::GoneBeforeFalls, ("restarts", 5), no_doubt, seeds);
}

#[test]
fn members_that_do_not_report_a_silent_relay_are_seen() {
    let seeds = 1..=RARE_RUNS;
    let draw = paths::draw_with_relays;
    is_seen(
        Planted::ReportsNoSilentRelays,
        ("lone losses", 5),
        draw,
        seeds,
    );
}

#[test]
fn members_that_do_not_learn_who_is_at_a_relay_are_seen() {
    let seeds = 1..=PLANTED_RUNS;
    let draw = paths::draw_with_relays;
    is_seen(Planted::NoPresence, ("linked", 5), draw, seeds);
}
