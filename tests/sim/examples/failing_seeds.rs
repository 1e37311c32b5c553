//! Prints every seed that breaks a property, for each kind of room: `scripts/mutants.py` counts them.
//!
//! `failing_seeds any=200 storm=50` runs this many rooms of these kinds, from seed 1 on. It leaves out large rooms, each of which
//! takes as long as thousands of others. It prints `KIND SEED PROPERTY` for each failure at once, and `done` at the end. The
//! caller has to notice a run that never ends.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use room_simulator::chaos::run_plan;
use room_simulator::plan::Plan;
use room_simulator::seeded;
use room_simulator::statics;
use room_simulator::trace::Trace;

const THREADS: usize = 2;
/// Larger rooms are left out.
const LARGEST: usize = 16;
/// A kind of room, and the function that draws a seed's plan.
type Kind = (&'static str, fn(u64) -> Plan);
const KINDS: [Kind; 4] = [
    ("any", Plan::draw),
    ("roster", statics::draw),
    ("storm", statics::vote_storm),
    ("seeded", seeded::draw),
];

fn main() -> ExitCode {
    let mut runs = Vec::new();
    for argument in std::env::args().skip(1) {
        let Some(more) = rooms(&argument) else {
            eprintln!("usage: failing_seeds KIND=COUNT...");
            return ExitCode::from(2);
        };
        runs.extend(more);
    }
    std::panic::set_hook(Box::new(|_| {})); // a panic of the core counts as a violation
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((kind, seed, plan)) = runs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let outcome = run_plan(plan, Trace::off(), None);
                    if let Some(violation) = outcome.violation {
                        println!("{kind} {seed} {}", violation.property);
                    }
                }
            });
        }
    });
    println!("done");
    ExitCode::SUCCESS
}

/// The rooms of an argument.
fn rooms(argument: &str) -> Option<Vec<(&'static str, u64, Plan)>> {
    let (name, count) = argument.split_once('=')?;
    let (kind, draw) = KINDS.into_iter().find(|(kind, _)| *kind == name)?;
    let plans = (1..).map(|seed| (kind, seed, draw(seed)));
    let small = plans.filter(|(_, _, plan)| plan.size <= LARGEST);
    Some(small.take(count.parse().ok()?).collect())
}
