//! Seeded rooms that elect by gossip. The variables of [`super::seeds`] count here, too; besides,
//! `MMN_SIM_GOSSIP_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::seeds::{Order, number_from_env, report};
use crate::chaos::{self, Outcome};
use crate::gossip::{self, Counts, regressions};
use crate::trace::Trace;

/// With so many runs every rare situation must have happened.
const ENOUGH_FOR_RARE: u64 = 5_000;
/// Every so many runs, one is repeated: it must do the same (P17).
const REPEATED: u64 = 50;
const THREADS: usize = 2;

/// What all runs together were.
#[derive(Default)]
struct Tally {
    runs: u64,
    counts: Counts,
    failures: Vec<(u64, String)>,
}

/// Runs a seed; what it breaks. Only the first failing one is reduced, which takes its time.
fn try_seed(seed: u64, repeats: bool, reducing: &AtomicBool) -> (Outcome, Option<String>) {
    let plan = gossip::draw(seed);
    let outcome = chaos::run_plan(&plan, Trace::off(), None);
    let name = format!("gossip seed {seed}");
    let mut failure = outcome.violation.as_ref().map(|violation| {
        eprintln!(
            "{name} breaks {}: {}",
            violation.property,
            violation.text.lines().next().unwrap_or("")
        );
        report(&plan, &name, !reducing.swap(true, Ordering::Relaxed))
    });
    if failure.is_none() && repeats {
        let again = chaos::run_plan(&plan, Trace::off(), None).hash;
        failure = (again != outcome.hash)
            .then(|| format!("{name} breaks P17: it does something else again"));
    }
    (outcome, failure)
}

#[test]
fn simulations_of_gossip_keep_the_properties() {
    std::panic::set_hook(Box::new(|_| {})); // a panic of the core is reported with its seed
    let began = Instant::now();
    let order = Order::from_env();
    let most = number_from_env("MMN_SIM_FAILURES").unwrap_or(1) as usize;
    let next = AtomicU64::new(0);
    let (stop, reducing) = (AtomicBool::new(false), AtomicBool::new(false));
    let tally = Mutex::new(Tally::default());
    let known = regressions::SEEDS.len() as u64;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let seed = if number < known {
                        regressions::SEEDS[number as usize]
                    } else if let Some(seed) = order.seed(number - known) {
                        seed
                    } else {
                        return;
                    };
                    let repeats = number.is_multiple_of(REPEATED);
                    let (outcome, failure) = try_seed(seed, repeats, &reducing);
                    let mut tally = tally.lock().expect("no panic in here");
                    tally.runs += 1;
                    tally.counts.add(&outcome.gossip);
                    if let Some(text) = failure {
                        tally.failures.push((number, text));
                        let enough = tally.failures.len() >= most;
                        stop.fetch_or(enough, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let mut tally = tally.into_inner().expect("no panic in there");
    println!(
        "{} runs by gossip in {:.1} s; what happened in them:",
        tally.runs,
        began.elapsed().as_secs_f64()
    );
    let table = tally.counts.table();
    for (name, count) in &table {
        println!("  {count:10} {}", name.replace('_', " "));
    }
    tally.failures.sort();
    let texts: Vec<String> = tally.failures.into_iter().map(|(_, text)| text).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    if tally.runs >= ENOUGH_FOR_RARE {
        let never = table.iter().filter(|(_, count)| *count == 0);
        let never: Vec<&str> = never.map(|(name, _)| *name).collect();
        assert!(never.is_empty(), "never happened: {never:?}");
    }
}

#[test]
fn replay_of_gossip() {
    let Some(seed) = number_from_env("MMN_SIM_GOSSIP_SEED") else {
        return;
    };
    let outcome = chaos::run_plan(&gossip::draw(seed), Trace::on(), None);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    let broken = outcome.violation.map(|violation| violation.to_string());
    assert_eq!(broken, None);
}

#[test]
fn the_same_seed_gives_the_same_room() {
    let run = |seed| {
        let outcome = chaos::run_plan(&gossip::draw(seed), Trace::on(), None);
        (outcome.trace.hash(), outcome.hash)
    };
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}
