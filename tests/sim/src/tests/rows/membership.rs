//! Liveness of members, as memberlist, serf and foca test it.

use room_core::node::{Event, Left, LeftReason};

use super::super::rooms::*;
use crate::world::{Settings, World};

fn losses(world: &World, slot: usize) -> usize {
    let events = world.slots[slot].events.iter();
    let lost = events.filter(|(_, event)| matches!(event, Event::Reconnecting(_)));
    lost.count()
}

/// memberlist: packets are lost, the stream works.
#[test]
fn m4_lost_datagrams_alone_lose_no_member() {
    for seed in 0..10 {
        let mut world = settled(seed, 4, Settings::default());
        forget_reported(&mut world);
        world.datagram_loss = 1.0;
        world.run_for(ms(60_000));
        for slot in 0..4 {
            expect(&world, losses(&world, slot) == 0, "a living member is lost");
        }
        expect(&world, world.agreed().is_some(), "no leader");
    }
}

/// If neither works, all members notice it: within the timeout, or a leader's silence by a third of it later.
#[test]
fn m4_m10_a_silent_member_is_lost_in_bounded_time_and_reported_once() {
    for seed in 0..30 {
        let mut world = settled(seed, 4, Settings::default());
        let silent = seed as usize % 4;
        let is_leader = leader(&world) == silent;
        forget_reported(&mut world);
        let cut_at = world.now;
        isolate(&mut world, silent);
        world.run_for(ms(5000));
        let id = world.slots[silent].id.clone();
        for slot in (0..4).filter(|slot| *slot != silent) {
            let reported: Vec<_> = world.slots[slot]
                .events
                .iter()
                .filter(|(_, event)| matches!(event, Event::Reconnecting(peer) if *peer == id))
                .map(|(at, _)| at.since(cut_at))
                .collect();
            let [took] = reported[..] else {
                fail(&world, "not reported exactly once");
            };
            // The last heartbeat came at most one interval before the cut. A leader keeps its link until a vote, for at most
            // a third of the timeout (G17).
            let latest = if is_leader { ms(2010) } else { ms(1510) };
            let in_time = (ms(1000)..=latest).contains(&took);
            expect(&world, in_time, "not in time");
        }
    }
}

/// serf: a failed member and one that left are reported differently, and both may return.
#[test]
fn m18_m12_a_leave_is_reported_at_once_and_a_crash_after_the_hold() {
    for seed in 0..20 {
        let settings = Settings {
            member_hold: ms(5000),
            ..Settings::default()
        };
        let mut world = settled(seed, 4, settings);
        let first = leader(&world);
        let [leaves, crashes] = [(first + 1) % 4, (first + 2) % 4];
        forget_reported(&mut world);
        world.leave(leaves);
        world.crash(crashes);
        world.run_for(ms(100));
        let why = |world: &World, gone: usize| -> Vec<LeftReason> {
            let events = world.slots[first].events.iter();
            events
                .filter_map(|(_, event)| match event {
                    Event::Left(Left { peer, why, .. }) if *peer == world.slots[gone].id => {
                        Some(*why)
                    }
                    _ => None,
                })
                .collect()
        };
        expect(
            &world,
            why(&world, leaves) == [LeftReason::Left],
            "no leave",
        );
        expect(&world, why(&world, crashes).is_empty(), "given up at once");
        world.run_for(ms(7000));
        expect(
            &world,
            why(&world, crashes) == [LeftReason::Lost],
            "not given up",
        );
        expect(&world, why(&world, leaves).len() == 1, "reported twice");
        for slot in [leaves, crashes] {
            world.start(slot);
            world.connect(slot, first);
        }
        wait(&mut world, ms(5000), "they do not come back", |world| {
            world.is_mesh() && world.agreed() == Some(first)
        });
        for slot in [leaves, crashes] {
            let id = &world.slots[slot].id;
            let events = world.slots[first].events.iter();
            let joined = events.filter(|(_, event)| *event == Event::Joined(id.clone()));
            expect(&world, joined.count() == 1, "not joined once");
        }
    }
}

/// foca: a member that was lost by mistake returns by itself.
#[test]
fn m19_two_sides_that_lost_each_other_find_together_without_their_hosts() {
    for seed in 0..20 {
        let mut world = settled(seed, 4, Settings::default());
        for a in [0, 1] {
            for b in [2, 3] {
                world.cut_both(a, b);
            }
        }
        world.run_for(ms(20_000));
        expect(&world, !world.is_mesh(), "they are not apart");
        for a in [0, 1] {
            for b in [2, 3] {
                world.mend_both(a, b);
            }
        }
        wait(&mut world, ms(6000), "they stay apart", |world| {
            world.is_mesh() && world.agreed().is_some()
        });
    }
}
