//! Rooms with the seeded strategy, by seed. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_SEEDED_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::time::Instant;

use super::runner::{Order, number_from_env, run_all};
use crate::chaos;
use crate::seeded::{self, regressions};
use crate::trace::Trace;

#[test]
fn simulations_of_the_seeded_strategy_keep_the_properties() {
    let began = Instant::now();
    let order = Order::from_env();
    let mut runs = 0;
    run_all(
        |number| {
            let seed = order.seed_after(regressions::SEEDS, number)?;
            Some((seeded::draw(seed), format!("seeded seed {seed}")))
        },
        |_, _| runs += 1,
    );
    println!(
        "{runs} runs of the seeded strategy in {:.1} s",
        began.elapsed().as_secs_f64()
    );
}

#[test]
fn replay_of_the_seeded_strategy() {
    let Some(seed) = number_from_env("MMN_SIM_SEEDED_SEED") else {
        return;
    };
    let outcome = chaos::run_plan(&seeded::draw(seed), Trace::on(), None);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    let broken = outcome.violation.map(|violation| violation.to_string());
    assert_eq!(broken, None);
}

#[test]
fn equal_seeds_give_equal_clusters() {
    let run = |seed| {
        let outcome = chaos::run_plan(&seeded::draw(seed), Trace::on(), None);
        (outcome.trace.hash(), outcome.hash)
    };
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
