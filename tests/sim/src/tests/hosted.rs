//! Rooms with a fixed host that is killed and restarted.

use rand::Rng;

use room_core::id::Fingerprint;
use room_core::node::Event;
use room_core::wire::{MergePolicy, Strategy};

use super::rooms::*;
use crate::world::{Settings, World};

/// The place of the host.
const HOST: usize = 0;

fn settings(seed: u64, strategy: Strategy) -> Settings {
    Settings {
        host: Some(HOST),
        merge: if seed.is_multiple_of(2) {
            MergePolicy::LargestSide
        } else {
            MergePolicy::HighestTerm
        },
        strategy,
        windows: short_windows(),
        ..Settings::default()
    }
}

/// A room of a host and guests that may not lead.
fn hosted(seed: u64, guests: usize, settings: Settings) -> World {
    let mut world = empty(seed, guests + 1, settings);
    for slot in 1..=guests {
        world.slots[slot].eligible = false;
    }
    // It keeps its key: here a dial that finds another key at the old address fails for good.
    world.slots[HOST].key = Some(Fingerprint([7; 32]));
    world.start(HOST);
    let at_once = world.leaders() == [HOST];
    expect(&world, at_once, "the host does not lead from its start");
    for slot in 1..=guests {
        world.start(slot);
        world.connect(slot, HOST);
    }
    wait(&mut world, ms(15_000), "no mesh", |world| {
        world.agreed() == Some(HOST) && world.is_mesh()
    });
    world.run_for(ms(2_000));
    world
}

/// No guest received a leader other than the host, and no two consecutive events are equal.
fn only_the_host_was_notified(world: &World) {
    let host = world.slots[HOST].id.as_str();
    for slot in 1..world.slots.len() {
        let reported = reported(world, slot);
        let other = reported.iter().flatten().any(|leader| *leader != host);
        expect(world, !other, "another leader was reported");
        let twice = reported.windows(2).any(|pair| pair[0] == pair[1]);
        expect(world, !twice, "one leader was reported twice");
    }
    expect(
        world,
        world.led.iter().all(|slot| *slot == HOST),
        "a guest led",
    );
}

fn is_room_ended(event: &Event) -> bool {
    matches!(event, Event::RoomEnded { .. })
}

fn strategies() -> [Strategy; 2] {
    [
        Strategy::Raft,
        Strategy::Gossip {
            strict_lowest: false,
        },
    ]
}

#[test]
fn a_restarted_fixed_host_is_the_only_leader_in_all_events() {
    for (seed, strategy) in (0..40).flat_map(|seed| strategies().map(|each| (seed, each))) {
        let mut world = hosted(seed, 3, settings(seed, strategy));
        for round in 0..4u32 {
            let before = world.term(1);
            forget_reported(&mut world);
            world.crash(HOST);
            let away = ms(world.rng.random_range(0..6_000));
            world.run_for(away);
            world.start(HOST);
            let contact = 1 + round as usize % 3;
            world.connect(contact, HOST);
            wait(&mut world, ms(20_000), "the host is not back", |world| {
                world.agreed() == Some(HOST) && world.is_mesh()
            });
            world.run_for(ms(3_000));
            only_the_host_was_notified(&world);
            let host = world.slots[HOST].id.to_string();
            expect(
                &world,
                reported(&world, HOST) == [Some(host.as_str())],
                "the host was notified of more than its own start",
            );
            for slot in 1..=3 {
                // Of members that lose it within a moment, the first may receive a late report of it from the others.
                let reported = reported(&world, slot);
                expect(
                    &world,
                    reported.first() == Some(&None) && matches!(reported.len(), 2 | 4),
                    "a guest was notified of more than the loss and the return",
                );
                let ended = world.slots[slot].events.iter();
                let ended = ended.filter(|(_, event)| is_room_ended(event)).count();
                expect(&world, ended == 0, "the room ended");
            }
            if strategy == Strategy::Raft {
                expect(
                    &world,
                    world.term(1) > before,
                    "it did not go above its guests",
                );
            }
        }
    }
}

/// Packets are lost, and a guest is cut off during the host's restart.
#[test]
fn a_fixed_host_that_is_started_anew_over_a_bad_line_is_the_only_leader() {
    for (seed, strategy) in (0..30).flat_map(|seed| strategies().map(|each| (seed, each))) {
        let mut settings = settings(seed, strategy);
        settings.delay = (ms(20), ms(120));
        let mut world = hosted(seed, 4, settings);
        world.stream_loss = 0.15;
        world.datagram_loss = 0.15;
        for _ in 0..3 {
            let cut = world.rng.random_range(1..=4);
            isolate(&mut world, cut);
            let away = ms(world.rng.random_range(0..3_000));
            world.run_for(away);
            world.crash(HOST);
            let away = ms(world.rng.random_range(0..4_000));
            world.run_for(away);
            world.start(HOST);
            let contact = 1 + cut % 4;
            world.connect(contact, HOST);
            let alone = ms(world.rng.random_range(0..8_000));
            world.run_for(alone);
            rejoin(&mut world, cut);
            wait(&mut world, ms(60_000), "the host is not back", |world| {
                world.agreed() == Some(HOST) && world.is_mesh()
            });
            world.run_for(ms(2_000));
            only_the_host_was_notified(&world);
            expect(&world, world.leaders() == [HOST], "it does not lead");
        }
    }
}
