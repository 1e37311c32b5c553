//! The bounds of a settled room, each broken on purpose: a check that is never broken proves nothing.

use room_core::election::guards::Guards;

use crate::bounds::costs_too_much;
use crate::chaos::Run;
use crate::plan::{Phase, Plan};
use crate::trace::Trace;

/// Maximum number of rooms to try, where chance decides.
const TRIES: u64 = 40;

/// A calm room of five in which all start, and the trial of `phase`.
fn calm(seed: u64, phase: Phase) -> Plan {
    let line = r#"{"seed":0,"size":5,"rules":{"fast":false,"highest_term":false,"leader_only":false,"auto_elect":true,"fixed_voters":false,"member_hold_ms":60000,"lateness_us":0,"delay_ms":[5,20],"silence_is_reported":true,"keeps_keys":true},"observers":[],"clocks":[],"priorities":[],"apart":null,"absent":[],"steps":[[0,{"Start":{"slot":0,"contact":0}}],[10,{"Start":{"slot":1,"contact":0}}],[20,{"Start":{"slot":2,"contact":0}}],[30,{"Start":{"slot":3,"contact":0}}],[40,{"Start":{"slot":4,"contact":0}}]],"heal_at_ms":9000,"phase":"Join"}"#;
    let mut plan = Plan::parse(line).expect("a plan");
    plan.seed = seed;
    plan.phase = phase;
    plan
}

/// The property that a plan's trial breaks after `harm` to the settled room.
fn breaks(plan: &Plan, harm: impl Fn(&mut Run<'_>)) -> Option<&'static str> {
    let mut run = Run::new(plan, Trace::off(), None, false);
    run.play_faults();
    run.settle();
    assert!(run.world.violation.is_none(), "{:?}", run.world.violation);
    harm(&mut run);
    run.phase();
    run.world.violation.map(|violation| violation.property)
}

/// The trial of `phase` keeps every bound, and breaks this one in a room with `change`, after `harm`.
fn is_seen(property: &str, phase: Phase, change: impl Fn(&mut Plan), harm: impl Fn(&mut Run<'_>)) {
    let mut seen = Vec::new();
    for seed in 0..TRIES {
        let mut plan = calm(seed, phase);
        assert_eq!(breaks(&plan, |_| {}), None, "{phase:?}, seed {seed}");
        change(&mut plan);
        let broken = breaks(&plan, &harm);
        if broken == Some(property) {
            return;
        }
        seen.extend(broken);
    }
    panic!("{property} is never broken in {phase:?}, but {seen:?}");
}

/// Cuts every direction.
fn cut_all(run: &mut Run<'_>) {
    let size = run.world.slots.len();
    for from in 0..size {
        for to in 0..size {
            if from != to {
                run.world.cut(from, to);
            }
        }
    }
}

/// The members use HighestTerm, and the check expects LargestSide.
fn highest_term(plan: &mut Plan) {
    plan.rules.highest_term = true;
}

fn expect_the_largest_side(run: &mut Run<'_>) {
    let mut plan = run.plan.clone();
    plan.rules.highest_term = false;
    run.plan = Box::leak(Box::new(plan)); // only in a test
}

#[test]
fn p9_a_room_without_an_agreement_is_seen() {
    is_seen("P9", Phase::CrashedLeader, |_| {}, cut_all);
}

#[test]
fn p10_a_larger_side_that_loses_its_leader_is_seen() {
    is_seen("P10", Phase::Heal, highest_term, expect_the_largest_side);
}

#[test]
fn p11_a_leave_without_a_successor_is_seen() {
    let slow = |plan: &mut Plan| {
        plan.guards = Guards {
            succession: false,
            ..Guards::ALL
        };
    };
    is_seen("P11", Phase::PoliteLeave, slow, |_| {});
}

#[test]
fn p11_a_transfer_that_no_member_receives_is_reported() {
    is_seen("P11", Phase::HandOver, |_| {}, cut_all);
}

#[test]
fn p12_a_call_that_does_not_arrive_is_seen() {
    is_seen("P12", Phase::OneCall, |_| {}, cut_all);
    is_seen("P12", Phase::TwoCalls, |_| {}, cut_all);
}

#[test]
fn p13_a_deaf_leader_that_leads_on_is_seen() {
    let stubborn = |plan: &mut Plan| {
        plan.guards = Guards {
            check_quorum: false,
            ..Guards::ALL
        };
    };
    is_seen("P13", Phase::DeafLeader, stubborn, |_| {});
}

#[test]
fn p14_a_minority_that_changes_the_leader_is_seen() {
    is_seen(
        "P14",
        Phase::Minority,
        highest_term,
        expect_the_largest_side,
    );
}

#[test]
fn p16_a_joiner_that_changes_the_leader_is_seen() {
    is_seen("P16", Phase::Join, highest_term, expect_the_largest_side);
}

#[test]
fn p15_p18_the_costs_of_a_crash_are_reported() {
    let property = |messages, wasted: &[u64], most| {
        costs_too_much(messages, 5, wasted, most).map(|(property, _)| property)
    };
    assert_eq!(property(300, &[], 0), None);
    assert_eq!(property(301, &[], 0), Some("P18"));
    let large = |messages| costs_too_much(messages, 100, &[], 0).map(|(property, _)| property);
    assert_eq!(large(2 * 100 * 99), None);
    assert_eq!(large(2 * 100 * 99 + 1), Some("P18"));
    assert_eq!(property(12, &[4, 5], 2), None);
    assert_eq!(property(12, &[4, 5, 7], 2), Some("P15"));
}
