//! Rooms that keep a state, under every strategy, with the faults of its seeds. `MMN_SIM_SEEDS` and `MMN_SIM_FIRST_SEED` choose
//! the seeds, and `MMN_SIM_STATE=<kind>:<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::iter::once;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use room_state::laboratory::{Rule, Switches};

use super::runner::number_from_env;
use crate::chaos::{Outcome, run_with_broken_state, run_with_lies_about_the_state, run_with_state};
use crate::plan::Plan;
use crate::trace::Trace;
use crate::{gossip, paths, seeded, statics};

/// Seeds of each kind in one `make test`.
const SEEDS: u64 = 60;
/// Seeds of each kind with a liar.
const SEEDS_WITH_A_LIAR: u64 = 20;
/// Seeds of a room without a rule, until one breaks a promise.
const SEEDS_WITHOUT_A_RULE: u64 = 150;
/// Larger rooms take long, and show nothing that small ones do not.
const LARGEST: usize = 7;
const THREADS: usize = 2;

/// Draws the plan of a seed.
type Draw = fn(u64) -> Plan;

/// The kinds of rooms, by name.
const KINDS: [(&str, Draw); 5] = [
    ("raft", Plan::draw),
    ("static", statics::draw),
    ("gossip", gossip::draw),
    ("seeded", seeded::draw),
    ("relays", paths::draw_with_relays),
];

fn draw_of(name: &str) -> Draw {
    let kind = KINDS.iter().find(|(kind, _)| *kind == name);
    kind.expect("a kind of rooms").1
}

/// Plays a plan.
type Play = fn(&Plan, Trace) -> Outcome;

fn simulate(name: &str) {
    let leavers = run_seeds(name, SEEDS, run_with_state);
    println!("{name}: {leavers} leaders left");
    assert!(
        leavers > 0 || number_from_env("MMN_SIM_SEEDS").is_some(),
        "no leader left"
    );
}

/// Returns how many leaders left.
fn run_seeds(name: &str, seeds: u64, play: Play) -> u64 {
    let draw = draw_of(name);
    let first = number_from_env("MMN_SIM_FIRST_SEED").unwrap_or(0);
    let last = first + number_from_env("MMN_SIM_SEEDS").unwrap_or(seeds);
    let next = AtomicU64::new(first);
    let leavers = AtomicU64::new(0);
    let broken = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        return;
                    }
                    let plan = draw(seed);
                    if plan.size > LARGEST {
                        continue;
                    }
                    let outcome = play(&plan, Trace::off());
                    leavers.fetch_add(outcome.state_leavers, Ordering::Relaxed);
                    if let Some(violation) = outcome.violation {
                        let mut broken = broken.lock().expect("no panic in here");
                        broken.push((seed, violation.to_string()));
                    }
                }
            });
        }
    });
    let mut broken = broken.into_inner().expect("no panic in there");
    broken.sort();
    let lines: Vec<_> = broken
        .iter()
        .map(|(seed, text)| format!("MMN_SIM_STATE={name}:{seed} {text}"))
        .collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    leavers.into_inner()
}

/// Without the rule some seed breaks a promise under a real election, too. The search begins with a seed that did once.
fn breaks_a_promise(name: &str, rule: Rule, first: u64) {
    let draw = draw_of(name);
    let count = number_from_env("MMN_SIM_SEEDS").unwrap_or(SEEDS_WITHOUT_A_RULE);
    let seeds = once(first).chain(0..count);
    let plans = seeds.map(|seed| (seed, draw(seed)));
    let mut broken = plans
        .filter(|(_, plan)| plan.size <= LARGEST)
        .filter_map(|(seed, plan)| {
            let switches = Switches {
                broken: [rule].into(),
                ..Switches::default()
            };
            let outcome = run_with_broken_state(&plan, Trace::off(), switches);
            Some((seed, outcome.violation?))
        });
    let found = broken.next();
    println!("without {rule:?}: {found:?}");
    let (_, violation) = found.unwrap_or_else(|| panic!("no seed needs {rule:?}"));
    assert_eq!(violation.property, "state");
}

macro_rules! mutants {
    ($($name:ident: $rule:ident in $room:expr, $first:expr;)+) => {
        $(#[test]
        fn $name() {
            breaks_a_promise($room, Rule::$rule, $first);
        })+
    };
}

mutants! {
    m1_state_without_promise: Promise in "raft", 34;
    m7_state_without_recovery: Recovery in "static", 77;
    m9_state_without_tagged_requests: TaggedRequests in "raft", 390;
    m10_state_without_rows: Rows in "raft", 3;
    m12_state_without_changes_after_opening: ChangesAfterOpening in "raft", 72;
    m17_state_without_leaver_orders_nothing: LeaverOrdersNothing in "raft", 308;
}

#[test]
fn the_state_keeps_its_promises_with_raft() {
    simulate("raft");
}

#[test]
fn the_state_keeps_its_promises_with_a_static_quorum() {
    simulate("static");
}

#[test]
fn the_state_keeps_its_promises_with_gossip() {
    simulate("gossip");
}

#[test]
fn the_state_keeps_its_promises_with_seeds() {
    simulate("seeded");
}

#[test]
fn the_state_keeps_its_promises_with_relays() {
    simulate("relays");
}

/// A member of gossip that links with two leaders, which never link with each other, follows each in turn for ever.
#[test]
fn the_state_of_the_others_rests_beside_a_member_between_two_leaders() {
    for seed in [196, 220, 244, 259] {
        let outcome = run_with_state(&draw_of("relays")(seed), Trace::off());
        assert_eq!(outcome.violation.map(|it| it.to_string()), None, "{seed}");
    }
}

#[test]
fn a_member_that_changes_its_frames_of_the_state_neither_ends_nor_swells_the_others() {
    for (name, _) in KINDS {
        run_seeds(name, SEEDS_WITH_A_LIAR, run_with_lies_about_the_state);
    }
}

#[test]
fn replay_with_a_state() {
    let Ok(wanted) = std::env::var("MMN_SIM_STATE") else {
        return;
    };
    let (name, seed) = wanted.split_once(':').expect("strategy:seed");
    let plan = draw_of(name)(seed.parse().expect("a seed"));
    let outcome = run_with_state(&plan, Trace::on());
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    println!("{:?}", outcome.violation);
}
