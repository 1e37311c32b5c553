//! The seeded simulator over the core's one contract: one `u64` decides a whole run.
//!
//! - `MMN_SIM_SEEDS`, `MMN_SIM_FIRST_SEED`: how many seeds `simulations_keep_the_properties` runs, and from where.
//! - `MMN_SIM_SEED=<seed> cargo test -p room_simulator replay -- --nocapture`: the whole trace of one run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::trace::Trace;
use crate::{chaos, regressions};

/// Seeds of one `make test`.
const DEFAULT_SEEDS: u64 = 2_000;
/// Lines of a failing run that are shown.
const LAST_LINES: usize = 40;
const THREADS: usize = 2;

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

/// What a failing seed shows.
fn report(seed: u64) -> Option<String> {
    let outcome = chaos::run(seed, Trace::off());
    outcome.violation?;
    // The same seed again, with its trace.
    let outcome = chaos::run(seed, Trace::on());
    let violation = outcome.violation?;
    let lines = outcome.trace.lines();
    let tail = &lines[lines.len().saturating_sub(LAST_LINES)..];
    Some(format!(
        "seed {seed} breaks {violation}\nat {} ms; its last lines:\n{}\nreplay: MMN_SIM_SEED={seed} cargo test -p room_simulator replay -- --nocapture\n",
        outcome.ended_at.as_micros() / 1000,
        tail.join("\n")
    ))
}

#[test]
fn simulations_keep_the_properties() {
    std::panic::set_hook(Box::new(|_| {})); // a panic of the core is reported with its seed
    let first = number_from_env("MMN_SIM_FIRST_SEED").unwrap_or(1);
    let count = number_from_env("MMN_SIM_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let seeds: Vec<u64> = regressions::SEEDS
        .iter()
        .copied()
        .chain(first..first + count)
        .collect();
    let next = AtomicU64::new(0);
    let failure = Mutex::new(Vec::new());
    let most = number_from_env("MMN_SIM_FAILURES").unwrap_or(1) as usize;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(&seed) = seeds.get(index) else {
                        return;
                    };
                    if let Some(text) = report(seed) {
                        let mut failures = failure.lock().expect("no panic in here");
                        failures.push((index, text));
                        if failures.len() >= most {
                            next.store(seeds.len() as u64, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let mut failures = failure.into_inner().expect("no panic in there");
    failures.sort();
    let texts: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

#[test]
fn replay() {
    let Some(seed) = number_from_env("MMN_SIM_SEED") else {
        return;
    };
    let outcome = chaos::run(seed, Trace::on());
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    assert_eq!(
        outcome.violation.map(|violation| violation.to_string()),
        None
    );
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 1..=10 {
        let once = chaos::run(seed, Trace::on()).trace;
        let again = chaos::run(seed, Trace::on()).trace;
        assert!(once.lines().len() > 10);
        assert_eq!(once.hash(), again.hash(), "seed {seed}");
    }
}
