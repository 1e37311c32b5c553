//! Faults that the simulator once found, as named situations.

use room_core::node::Command;

use super::rooms::*;
use crate::world::{Settings, World};

/// Of five, one goes deaf to one peer after another; none of the others changes its leader.
fn every_member_accepts(world: &mut World, deaf: usize) {
    forget_reported(world);
    for other in (0..5).filter(|other| *other != deaf) {
        world.cut(other, deaf);
        world.run_for(ms(150));
    }
    world.run_for(ms(6_000));
    for slot in (0..5).filter(|slot| *slot != deaf) {
        expect(
            world,
            reported(world, slot).is_empty(),
            "a deaf node changed somebody's leader",
        );
    }
}

/// P14: the last peer linked to a deaf node never receives a claim that its silence seemed to allow.
#[test]
fn a_node_that_goes_deaf_to_one_peer_after_another_changes_no_members_leader() {
    for seed in 0..100 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let deaf = (first + 1) % 5;
        every_member_accepts(&mut world, deaf);
    }
}

/// P16: a `SetLeader` call of a joiner's host before its first link does not reach the room.
#[test]
fn a_joiner_that_named_itself_leader_changes_no_members_leader() {
    for seed in 0..100 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        world.add_slots(1);
        world.slots[4].rename("zzzz");
        world.start(4);
        world.run_for(ms(4_000));
        let oneself = world.slots[4].id.clone();
        order(&mut world, 4, Command::SetLeader(oneself));
        forget_reported(&mut world);
        world.connect(4, (first + 1) % 4);
        world.run_for(ms(6_000));
        expect(&world, world.agreed() == Some(first), "another leader");
        for slot in 0..4 {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "a joiner changed somebody's leader",
            );
        }
    }
}

/// P14, with an observer: it does not vote, but it vouches for the leader that it is linked to.
#[test]
fn a_node_that_last_receives_from_observers_changes_no_members_leader() {
    for seed in 0..100 {
        let mut world = empty(seed, 5, Settings::default());
        world.slots[4].eligible = false;
        settle(&mut world);
        let first = leader(&world);
        let deaf = (first + 1) % 4;
        every_member_accepts(&mut world, deaf);
    }
}
