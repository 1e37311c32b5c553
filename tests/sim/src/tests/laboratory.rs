//! The simulator itself: its reports, and its reductions.

use std::collections::BTreeSet;

use room_core::node::Command;
use room_core::trace::What;

use super::rooms::*;
use crate::chaos;
use crate::checks::Violation;
use crate::plan::{Plan, Step, Who};
use crate::shrink;
use crate::stability::Stability;
use crate::trace::Trace;
use crate::world::{Settings, World};

/// An artificial law: no crash while the first place is stopped.
fn crash_beside_a_pause(world: &World) -> Option<Violation> {
    let paused = |slot: usize| {
        let process = world.slots[slot].process.as_ref();
        process.is_some_and(|process| process.paused)
    };
    let down = |slot: &usize| world.slots[*slot].life > 0 && world.slots[*slot].process.is_none();
    let broken = paused(0) && (1..world.slots.len()).any(|slot| down(&slot));
    broken.then(|| Violation {
        property: "artificial",
        text: String::new(),
    })
}

#[test]
fn a_failing_plan_is_reduced_to_what_it_needs() {
    let run =
        |plan: &Plan| chaos::run_plan(plan, Trace::off(), Some(&crash_beside_a_pause)).violation;
    let fails = |plan: &Plan| {
        plan.size <= 7
            && plan.steps.len() > 20
            && run(plan).is_some_and(|v| v.property == "artificial")
    };
    let plan = (0..5_000)
        .map(Plan::draw)
        .find(fails)
        .expect("some plan breaks the artificial law");
    let small = shrink::shrink(&plan, "artificial", &run);
    let pauses = |(_, step): &&(u64, Step)| matches!(step, Step::Pause { .. });
    let ends = |(_, step): &&(u64, Step)| {
        matches!(
            step,
            Step::Crash { .. } | Step::Leave { .. } | Step::Kick { .. }
        )
    };
    let what = shrink::describe(&small);
    assert_eq!(small.steps.iter().filter(pauses).count(), 1, "{what}");
    assert_eq!(small.steps.iter().filter(ends).count(), 1, "{what}");
    // Besides both, their victims have to be started.
    assert!(small.steps.len() <= 4, "{what}");
    // The printed plan is the failing one.
    let again = Plan::parse(&small.to_line()).expect("it was written down");
    assert_eq!(run(&again).map(|v| v.property), Some("artificial"));
}

#[test]
fn a_reduced_plan_breaks_the_same_property() {
    // A failure of another property must not count.
    let run = |plan: &Plan| {
        let crashes = plan
            .steps
            .iter()
            .any(|(_, step)| matches!(step, Step::Crash { .. }));
        Some(Violation {
            property: if crashes { "first" } else { "second" },
            text: String::new(),
        })
    };
    let mut plan = Plan::draw(1);
    plan.steps = vec![
        (1, Step::Yield),
        (
            2,
            Step::Crash {
                who: Who::Leader,
                back_ms: 1,
            },
        ),
        (3, Step::Yield),
    ];
    let small = shrink::shrink(&plan, "first", &run);
    assert_eq!(
        small.steps,
        [(
            2,
            Step::Crash {
                who: Who::Leader,
                back_ms: 1
            }
        )]
    );
}

/// A room that has been watched for long enough, with its leader.
fn watched(seed: u64) -> (World, Stability, usize) {
    let mut world = settled(seed, 5, Settings::default());
    let mut stability = Stability::new(&world, true);
    for _ in 0..200 {
        world.run_for(ms(50));
        assert_eq!(stability.sample(&world), None);
    }
    let first = leader(&world);
    (world, stability, first)
}

#[test]
fn a_leader_that_stops_while_a_majority_receives_from_it_is_reported() {
    for seed in 0..10 {
        let (mut world, mut stability, first) = watched(seed);
        // An action that the property does not excuse: this host just may not do it.
        world.set_eligible(first, false);
        if let Some(process) = &mut world.slots[first].process {
            process.eligible = true;
        }
        let found = stability.sample(&world).map(|violation| violation.property);
        assert_eq!(found, Some("P14"));
    }
}

#[test]
fn a_leader_that_was_asked_to_stop_or_is_cut_off_is_not_reported() {
    for seed in 0..10 {
        let (mut world, mut stability, first) = watched(seed);
        match seed % 3 {
            0 => world.crash(first),
            1 => isolate(&mut world, first),
            _ => {
                let other = world.slots[(first + 1) % 5].id.clone();
                order(&mut world, first, Command::SetLeader(other));
            }
        }
        for _ in 0..200 {
            assert_eq!(stability.sample(&world), None);
            world.run_for(ms(50));
        }
    }
}

#[test]
fn a_trace_shows_the_cuts_that_the_healing_ends() {
    let mut ended = 0;
    for plan in (0..20).map(Plan::draw) {
        if plan.apart.is_some() {
            continue; // that cut goes on
        }
        let (_, sections) = chaos::recorded(&plan);
        let entries = sections.iter().flat_map(|section| &section.entries);
        let mut open = BTreeSet::new();
        let mut healed = None;
        for entry in entries {
            if healed.is_some_and(|at| entry.at > at) {
                break;
            }
            match &entry.what {
                What::Cut { from, to } => {
                    open.insert((from.clone(), to.clone()));
                }
                What::Mended { from, to } => {
                    open.remove(&(from.clone(), to.clone()));
                    ended += u32::from(healed.is_some());
                }
                What::Healed => healed = Some(entry.at),
                _ => {}
            }
        }
        assert!(healed.is_some() && open.is_empty(), "{open:?}");
    }
    assert!(ended > 0, "nothing was cut when the room healed");
}
