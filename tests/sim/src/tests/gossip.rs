//! Seeded rooms that elect by gossip. The variables of [`super::runner`] apply here, too; besides, `MMN_SIM_GOSSIP_SEED=<seed>
//! cargo test --release -p room_simulator replay -- --nocapture` prints one run.

use super::runner::{numbered, replay, run_of, run_seeds};
use crate::gossip::{self, Counts, regressions};

#[test]
fn simulations_of_gossip_keep_the_properties() {
    let known = (&[] as &[_], regressions::SEEDS);
    run_seeds(
        "by gossip",
        |order, number| numbered(order, known, ("gossip seed", gossip::draw), number),
        |counts: &mut Counts, outcome| counts.add(&outcome.gossip),
        Counts::table,
    );
}

#[test]
fn replay_of_gossip() {
    replay("MMN_SIM_GOSSIP_SEED", gossip::draw);
}

#[test]
fn equal_seeds_give_equal_rooms() {
    let run = |seed| run_of(&gossip::draw(seed));
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}
