//! Rooms of one creator and several joiners, which start in any order and dial any member.

use rand::Rng;
use room_core::election::Entry;
use room_core::wire::Strategy;

use super::rooms::*;
use crate::world::{Settings, World};

/// The place of the creator; all others join.
const CREATOR: usize = 0;
const PLACES: usize = 5;

fn settings(strategy: Strategy) -> Settings {
    Settings {
        strategy,
        windows: short_windows(),
        ..Settings::default()
    }
}

fn looks(world: &World, slot: usize) -> bool {
    let process = world.slots[slot].process.as_ref();
    process.is_some_and(|process| process.node.is_looking())
}

/// Processes start within some seconds, and every joiner dials a random member twice a second until it is in a room.
fn gather(world: &mut World) {
    for slot in 0..PLACES {
        world.slots[slot].entry = match slot {
            CREATOR => Entry::Create,
            _ => Entry::Join,
        };
    }
    let starts: Vec<_> = (0..PLACES).map(|_| world.rng.random_range(0..20)).collect();
    for step in 0..80 {
        for (slot, start) in starts.iter().enumerate() {
            if *start == step {
                world.start(slot);
            }
            if looks(world, slot) {
                let target = (slot + world.rng.random_range(1..PLACES)) % PLACES;
                world.connect(slot, target);
            }
        }
        world.run_for(ms(500));
        let others = world.led.iter().any(|slot| *slot != CREATOR);
        expect(world, !others, "a joiner led");
        let looking: Vec<_> = (0..PLACES).filter(|slot| looks(world, *slot)).collect();
        let admits = |one: &usize| looking.iter().any(|other| world.is_linked(*one, *other));
        let admitted = looking.iter().any(admits);
        expect(
            world,
            !admitted,
            "a joiner admits another before it is in a room",
        );
    }
}

#[test]
fn joiners_find_the_creator_in_any_order_of_starts() {
    let gossip = Strategy::Gossip {
        strict_lowest: false,
    };
    for (seed, strategy) in (0..25).flat_map(|seed| [(seed, Strategy::Raft), (seed, gossip)]) {
        let mut world = empty(seed, PLACES, settings(strategy));
        gather(&mut world);
        wait(&mut world, ms(15_000), "no room", |world| {
            world.agreed() == Some(CREATOR) && world.is_mesh()
        });
        let looking = (0..PLACES).any(|slot| looks(&world, slot));
        expect(&world, !looking, "a member still looks for a room");
        world.run_for(ms(2_000));
        world.crash(CREATOR);
        wait(
            &mut world,
            ms(20_000),
            "the joiners elect no leader",
            |world| world.agreed().is_some_and(|leader| leader != CREATOR),
        );
    }
}
