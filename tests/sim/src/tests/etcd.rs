//! Members whose leader etcd decides, by seed. `MMN_SIM_SEEDS` and `MMN_SIM_FIRST_SEED` apply here, too; besides,
//! `MMN_SIM_ETCD_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::time::Instant;

use super::runner::number_from_env;
use crate::etcd::run;

/// Seeds of one `make test`.
const DEFAULT_SEEDS: u64 = 5_000;
/// Seeds that once broke a property: a late revocation of an earlier process ended the lease of the next leader.
const REGRESSIONS: [u64; 4] = [9_810_004_791, 9_810_006_074, 9_810_011_067, 9_810_012_493];

#[test]
fn simulations_of_etcd_keep_the_properties() {
    std::panic::set_hook(Box::new(|_| {})); // a panic is reported with its seed
    let began = Instant::now();
    let first = number_from_env("MMN_SIM_FIRST_SEED").unwrap_or(1);
    let seeds = number_from_env("MMN_SIM_SEEDS").unwrap_or(DEFAULT_SEEDS);
    let most = number_from_env("MMN_SIM_FAILURES").unwrap_or(1);
    let (mut leaderships, mut locked, mut failures) = (0, 0, 0);
    for seed in REGRESSIONS.into_iter().chain(first..first + seeds) {
        let run = run(seed);
        leaderships += run.leaderships;
        locked += run.locked;
        if let Some(broken) = run.broken {
            println!("etcd seed {seed}: {broken}");
            failures += 1;
            if failures == most {
                break;
            }
        }
    }
    let _ = std::panic::take_hook();
    println!(
        "{seeds} runs with etcd, {leaderships} leaderships, {locked} locks asked for, in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    assert_eq!(
        failures, 0,
        "seeds that break a property; replay one with MMN_SIM_ETCD_SEED"
    );
    assert!(leaderships > seeds * 2 && locked > seeds, "little happened");
}

#[test]
fn replay_of_etcd() {
    let Some(seed) = number_from_env("MMN_SIM_ETCD_SEED") else {
        return;
    };
    let run = run(seed);
    for line in &run.lines {
        println!("{line}");
    }
    assert_eq!(run.broken, None);
}
