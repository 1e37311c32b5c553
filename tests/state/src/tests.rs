//! Rooms that keep their promises, and rooms without a rule that do not.

mod explorer;

use std::iter::once;

use room_state::laboratory::Rule;

use crate::case::Case;
use crate::sometimes::Sometimes;
use crate::world::World;

/// Runs of each room; `MMN_SIM_SEEDS` overrides it, `MMN_SIM_FIRST_SEED` where they begin.
const SEEDS: u64 = 200;

/// Runs of a room without a rule, until one breaks a promise.
const SEEDS_WITHOUT_A_RULE: u64 = 5000;

/// Runs of each room in which rare situations are counted.
const RARE_SEEDS: usize = 40;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> impl Iterator<Item = u64> {
    let first = setting("MMN_SIM_FIRST_SEED").unwrap_or(1);
    first..first + setting("MMN_SIM_SEEDS").unwrap_or(SEEDS)
}

fn keeps_its_promises(case: &Case) {
    for seed in seeds() {
        if let Err(broken) = World::new(case, seed).run() {
            panic!("MMN_SIM_FIRST_SEED={seed}: {broken}");
        }
    }
}

#[test]
fn dynamic_rooms_keep_their_promises() {
    for members in 2..=5 {
        keeps_its_promises(&Case::dynamic(members));
    }
}

#[test]
fn static_rooms_keep_their_promises() {
    for members in [1, 3, 5] {
        keeps_its_promises(&Case::fixed(members));
    }
}

#[test]
fn rooms_with_a_fixed_host_keep_their_promises() {
    for members in 2..=4 {
        keeps_its_promises(&Case::hosted(members));
    }
    keeps_its_promises(&Case::hosted(3).in_pieces().forgetful());
}

#[test]
fn rooms_that_keep_next_to_no_tail_keep_their_promises() {
    keeps_its_promises(&Case::dynamic(4).forgetful());
    keeps_its_promises(&Case::fixed(3).forgetful());
}

#[test]
fn hosts_that_need_snapshots_get_those_of_their_histories() {
    for case in calm() {
        keeps_its_promises(&case);
    }
}

/// Rooms whose hosts have the time for snapshots.
fn calm() -> impl Iterator<Item = Case> {
    let cases = [
        Case::dynamic(3),
        Case::dynamic(4).in_pieces(),
        Case::fixed(3),
        Case::hosted(3),
    ];
    cases.into_iter().map(|case| case.forgetful().calm())
}

#[test]
fn snapshots_arrive_while_the_room_is_disturbed() {
    for case in calm() {
        let loads: u64 = (1..=SEEDS)
            .map(|seed| {
                let mut world = World::new(&case, seed);
                world.disturb().expect("no property is broken");
                world
                    .nodes
                    .iter()
                    .map(|node| node.host.loads())
                    .sum::<u64>()
            })
            .sum();
        assert!(loads >= 10, "{loads} of {case:?}");
    }
}

#[test]
fn rooms_keep_their_promises_for_hours() {
    keeps_its_promises(&Case::dynamic(4).long());
    keeps_its_promises(&Case::fixed(3).long());
    keeps_its_promises(&Case::hosted(3).long().forgetful());
}

#[test]
fn static_rooms_whose_voters_lose_everything_keep_their_promises() {
    for members in [1, 3, 5] {
        keeps_its_promises(&Case::fixed(members).amnesiac());
    }
    keeps_its_promises(&Case::fixed(3).amnesiac().in_pieces().forgetful());
}

/// Runs that found a fault in the log, which has been mended since.
#[test]
fn runs_that_found_faults_keep_their_promises() {
    let found = [
        // One entry forgot an author and let it in anew: it sent a request twice.
        (Case::hosted(3).long().forgetful(), 1064),
    ];
    for (case, seed) in &found {
        let run = World::new(case, *seed).run();
        assert_eq!(run, Ok(()), "{seed} of {case:?}");
    }
}

/// Each rare situation comes up in some of these runs.
#[test]
fn rare_situations_come_up() {
    let cases = [
        Case::dynamic(4),
        Case::dynamic(5).in_pieces(),
        Case::dynamic(4).long(),
        Case::dynamic(4).forgetful().calm(),
        Case::fixed(3),
        Case::fixed(3).amnesiac(),
        Case::hosted(3),
    ];
    let mut sum = Sometimes::default();
    for case in &cases {
        for seed in seeds().take(RARE_SEEDS) {
            let mut world = World::new(case, seed);
            if let Err(broken) = world.run() {
                panic!("MMN_SIM_FIRST_SEED={seed}: {broken}");
            }
            sum.add(&world.sometimes);
        }
    }
    let table = sum.table();
    println!("{table:#?}");
    let missing: Vec<_> = table.iter().filter(|(_, count)| *count == 0).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn rooms_whose_frames_hold_few_entries_keep_their_promises() {
    for case in [
        Case::dynamic(3),
        Case::dynamic(4),
        Case::fixed(3),
        Case::fixed(5),
    ] {
        keeps_its_promises(&case.in_pieces());
    }
    keeps_its_promises(&Case::dynamic(4).in_pieces().forgetful());
}

#[test]
fn a_member_that_sends_anything_neither_ends_nor_swells_the_others() {
    keeps_its_promises(&Case::dynamic(4).with_a_liar());
    keeps_its_promises(&Case::fixed(3).with_a_liar().in_pieces());
    keeps_its_promises(&Case::dynamic(3).with_a_liar().in_pieces().forgetful());
    keeps_its_promises(&Case::dynamic(4).with_a_liar().forgetful().calm());
}

#[test]
fn one_seed_is_one_run() {
    let run = || {
        let mut world = World::new(&Case::dynamic(4), 7);
        let outcome = world.run();
        (outcome, world.trace)
    };
    assert_eq!(run(), run());
}

/// Each rule is needed: without it, some seed breaks a promise. The search begins with a seed that did once.
fn breaks_a_promise(case: Case, rule: Rule, first: u64) {
    let case = case.without(rule);
    let mut broken = once(first)
        .chain(1..=SEEDS_WITHOUT_A_RULE)
        .filter_map(|seed| {
            let broken = World::new(&case, seed).run().err()?;
            Some((seed, broken))
        });
    let found = broken.next();
    println!("without {rule:?}: {found:?}");
    assert!(found.is_some(), "no seed notices that {rule:?} is missing");
}

macro_rules! mutants {
    ($($name:ident: $rule:ident in $case:expr, $first:expr;)+) => {
        $(#[test]
        fn $name() {
            breaks_a_promise($case, Rule::$rule, $first);
        })+
    };
}

mutants! {
    m1_promise: Promise in Case::dynamic(4), 33;
    m2_promise_on_disk: PromiseOnDisk in Case::fixed(3), 55;
    m3_staging: Staging in Case::dynamic(4).in_pieces(), 50;
    m4_leader_on_roster: LeaderOnRoster in Case::dynamic(4), 117;
    m5_confirmed_anew: ConfirmedAnew in Case::dynamic(4).in_pieces(), 652;
    m6_recover_to_the_end: RecoverToTheEnd in Case::fixed(3).in_pieces(), 875;
    m7_recovery: Recovery in Case::fixed(3), 7;
    m8_set_aside: SetAside in Case::dynamic(4), 21;
    m9_tagged_requests: TaggedRequests in Case::dynamic(4), 57;
    m10_rows: Rows in Case::dynamic(4), 1;
    m11_one_change_at_a_time: OneChangeAtATime in Case::dynamic(5), 7;
    m12_changes_after_opening: ChangesAfterOpening in Case::dynamic(4), 1;
    m13_newest_by_ballot: NewestByBallot in Case::dynamic(4), 227;
    m14_count_by_process: CountByProcess in Case::dynamic(4), 150;
    m15_tagged_answers: TaggedAnswers in Case::dynamic(4), 5430;
    m16_conditions_of_their_history: ConditionsOfTheirHistory in Case::dynamic(4), 204;
    m17_leaver_orders_nothing: LeaverOrdersNothing in Case::dynamic(4), 3;
    m18_snapshot_of_the_history: SnapshotOfTheHistory in Case::dynamic(4).forgetful().calm(), 772;
    m19_entries_beside_snapshot: EntriesBesideSnapshot in Case::dynamic(4).forgetful().calm(), 27;
}
