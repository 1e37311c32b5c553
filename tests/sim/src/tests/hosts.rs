//! Hosts that stop taking their events, and resume: the leaders' reactions.

use std::collections::BTreeMap;

use rand::Rng;
use room_core::time::{Duration, Time};
use room_core::wire::Strategy;

use super::rooms::*;
use crate::world::{Settings, World};

const PLACES: usize = 4;
const LIMIT: Duration = ms(2_000);

/// Hosts stop taking events and resume at random, for two minutes. Checks every node twenty times a second.
fn restless(seed: u64, strategy: Strategy, mut look: impl FnMut(&World)) {
    let settings = Settings {
        yield_after: Some(LIMIT),
        strategy,
        windows: short_windows(),
        ..Settings::default()
    };
    let mut world = settled(seed, PLACES, settings);
    for _ in 0..2_400 {
        let slot = world.rng.random_range(0..PLACES);
        if world.rng.random_bool(0.02) {
            let silent = world.slots[slot].host_silent_since.is_none();
            world.slots[slot].host_silent_since = silent.then_some(world.now);
        }
        world.run_for(ms(50));
        look(&world);
        expect(&world, true, "");
    }
}

fn yielded(world: &World) -> BTreeMap<usize, Time> {
    let nodes = world.slots.iter().enumerate();
    nodes
        .filter_map(|(slot, place)| Some((slot, place.process.as_ref()?.node.yielded_at()?)))
        .collect()
}

#[test]
fn leaders_yield_seldom_and_only_where_another_host_takes_its_events() {
    let gossip = Strategy::Gossip {
        strict_lowest: false,
    };
    let mut yields = 0;
    for (seed, strategy) in (0..12).flat_map(|seed| [(seed, Strategy::Raft), (seed, gossip)]) {
        let mut known: BTreeMap<usize, Time> = BTreeMap::new();
        restless(seed, strategy, |world| {
            for (slot, at) in yielded(world) {
                let before = known.insert(slot, at);
                if before == Some(at) {
                    continue;
                }
                yields += 1;
                let early = before.is_some_and(|before| at.since(before) < LIMIT * 10);
                expect(world, !early, "a node yields twice in ten times its limit");
                let silence = |place: usize| {
                    let since = world.slots[place].host_silent_since;
                    since.map_or(Duration::ZERO, |since| world.now.since(since))
                };
                let lively = (0..PLACES).any(|other| other != slot && silence(other) < LIMIT);
                expect(
                    world,
                    lively,
                    "a node yields, and every other host is silent",
                );
            }
        });
    }
    assert!(yields > 20, "{yields} yields");
}
