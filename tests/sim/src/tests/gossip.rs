//! Seeded rooms that elect by gossip. The variables of [`super::runner`] apply here, too; besides, `MMN_SIM_GOSSIP_SEED=<seed>
//! cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use std::time::Instant;

use super::runner::{ENOUGH_FOR_RARE, Order, number_from_env, run_all};
use crate::chaos;
use crate::gossip::{self, Counts, regressions};
use crate::trace::Trace;

#[test]
fn simulations_of_gossip_keep_the_properties() {
    let began = Instant::now();
    let order = Order::from_env();
    let (mut runs, mut counts) = (0, Counts::default());
    run_all(
        |number| {
            let seed = order.seed_after(regressions::SEEDS, number)?;
            Some((gossip::draw(seed), format!("gossip seed {seed}")))
        },
        |outcome, _| {
            runs += 1;
            counts.add(&outcome.gossip);
        },
    );
    println!(
        "{runs} runs by gossip in {:.1} s; what happened in them:",
        began.elapsed().as_secs_f64()
    );
    let table = counts.table();
    for (name, count) in &table {
        println!("  {count:10} {}", name.replace('_', " "));
    }
    if runs >= ENOUGH_FOR_RARE {
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
fn equal_seeds_give_equal_rooms() {
    let run = |seed| {
        let outcome = chaos::run_plan(&gossip::draw(seed), Trace::on(), None);
        (outcome.trace.hash(), outcome.hash)
    };
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}
