//! Prints every seed that breaks a property, of each kind of room: `scripts/mutants.py` counts them.
//!
//! `failing_seeds any=200 storm=50` runs that many rooms of these kinds, from seed 1 on, without the large ones, each of which
//! takes as long as thousands of others. It prints `KIND SEED PROPERTY` for each that fails, as soon as it does, and `done` at the
//! end. A run that never ends is the caller's to notice.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use room_simulator::chaos::run_plan;
use room_simulator::plan::Plan;
use room_simulator::seeded;
use room_simulator::statics;
use room_simulator::trace::Trace;

const THREADS: usize = 2;
/// A larger room is left out.
const LARGEST: usize = 16;
/// A kind of room, and how a seed draws its plan.
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
    std::panic::set_hook(Box::new(|_| {})); // a panic of the core is a violation like any other
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

/// The rooms that an argument asks for.
fn rooms(argument: &str) -> Option<Vec<(&'static str, u64, Plan)>> {
    let (name, count) = argument.split_once('=')?;
    let (kind, draw) = KINDS.into_iter().find(|(kind, _)| *kind == name)?;
    let plans = (1..).map(|seed| (kind, seed, draw(seed)));
    let small = plans.filter(|(_, _, plan)| plan.size <= LARGEST);
    Some(small.take(count.parse().ok()?).collect())
}
