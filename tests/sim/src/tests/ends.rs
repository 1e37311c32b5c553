//! Rooms that end for some of their members. A check after every input covers each host's events and their order
//! (`world/room_end.rs`).

use rand::Rng;
use room_core::node::{Command, Event, LeftReason};
use room_core::wire::Strategy;

use super::rooms::*;
use crate::world::{Settings, World};

fn strategies() -> [Strategy; 2] {
    [
        Strategy::Raft,
        Strategy::Gossip {
            strict_lowest: false,
        },
    ]
}

/// Lines of which some are ten times as long as others, so that a kick reaches the members at different times.
fn uneven(strategy: Strategy) -> Settings {
    Settings {
        delay: (ms(1), ms(200)),
        strategy,
        ..Settings::default()
    }
}

fn receives(world: &World, slot: usize, is_it: impl Fn(&Event) -> bool) -> usize {
    let events = world.slots[slot].events.iter();
    events.filter(|(_, event)| is_it(event)).count()
}

#[test]
fn no_member_waits_for_one_that_is_kicked() {
    for (seed, strategy) in (0..30).flat_map(|seed| strategies().map(|each| (seed, each))) {
        let mut world = settled(seed, 5, uneven(strategy));
        forget_reported(&mut world);
        let leader = leader(&world);
        let victim = (leader + 1 + world.rng.random_range(0..4)) % 5;
        let peer = world.slots[victim].id.clone();
        let kick = Command::Kick {
            peer: peer.clone(),
            code: 9,
            bytes: b"out".to_vec(),
            ban: true,
        };
        order(&mut world, leader, kick);
        world.run_for(ms(5_000));
        for slot in (0..5).filter(|slot| *slot != victim) {
            let waits = receives(&world, slot, |event| {
                *event == Event::Reconnecting(peer.clone())
            });
            expect(&world, waits == 0, "a member waits for the kicked one");
            let left = receives(
                &world,
                slot,
                |event| matches!(event, Event::Left(left) if left.why == LeftReason::Kicked && left.code == 9),
            );
            expect(&world, left == 1, "a member misses the leader's reason");
        }
        let ended = receives(&world, victim, |event| {
            matches!(event, Event::RoomEnded { code: 9, .. })
        });
        let departures = receives(
            &world,
            victim,
            |event| matches!(event, Event::Left(left) if left.why == LeftReason::RoomEnded),
        );
        expect(
            &world,
            (ended, departures) == (1, 4),
            "its host learns something else",
        );
    }
}

#[test]
fn no_guest_waits_for_another_whose_room_ends_first() {
    for (seed, strategy) in (0..30).flat_map(|seed| strategies().map(|each| (seed, each))) {
        let settings = Settings {
            host: Some(0),
            ..uneven(strategy)
        };
        let mut world = empty(seed, 4, settings);
        world.start(0);
        for slot in 1..4 {
            world.slots[slot].eligible = false;
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(15_000), "no mesh", |world| {
            world.agreed() == Some(0) && world.is_mesh()
        });
        world.run_for(ms(2_000));
        forget_reported(&mut world);
        let alone = world
            .rng
            .random_bool(0.5)
            .then(|| world.slots[1].id.clone());
        let command = match &alone {
            Some(peer) => Command::Disconnect {
                peer: peer.clone(),
                code: 0,
                bytes: Vec::new(),
            },
            None => Command::Leave,
        };
        order(&mut world, 0, command);
        world.run_for(ms(5_000));
        for slot in 1..4 {
            let waits = receives(&world, slot, |event| {
                matches!(event, Event::Reconnecting(_))
            });
            expect(&world, waits == 0, "a guest waits for another");
            let ended = receives(&world, slot, |event| {
                matches!(event, Event::RoomEnded { .. })
            });
            let ends = alone.is_none() || slot == 1;
            expect(
                &world,
                ended == usize::from(ends),
                "a room ends, or does not",
            );
        }
    }
}
