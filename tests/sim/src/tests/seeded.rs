//! Rooms with the seeded strategy, by seed. The variables of [`super::runner`] apply here, too; besides,
//! `MMN_SIM_SEEDED_SEED=<seed> cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::time::Instant;

use super::runner::{Order, replay, run_all, run_of};
use crate::seeded::{self, regressions};

#[test]
fn simulations_of_the_seeded_strategy_keep_the_properties() {
    let began = Instant::now();
    let order = Order::from_env();
    let mut runs = 0;
    run_all(
        &order,
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
    replay("MMN_SIM_SEEDED_SEED", seeded::draw);
}

#[test]
fn equal_seeds_give_equal_clusters() {
    for plan in (1..=10).map(seeded::draw) {
        assert_eq!(run_of(&plan), run_of(&plan), "{}", plan.to_line());
    }
}
