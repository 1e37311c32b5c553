//! Leadership transfers as hashicorp/raft tests them, in whole rooms.

use room_core::node::Command;
use room_core::time::Duration;

use super::super::rooms::*;
use crate::world::{Settings, World};

/// P11.
const BOUND: Duration = ms(20);

fn transfer(world: &mut World, from: usize, to: usize) {
    let id = world.slots[to].id.clone();
    order(world, from, Command::TransferLeadership(id));
}

#[test]
fn hc12_in_a_room_of_seven_everybody_can_be_handed_the_room() {
    for seed in 0..20 {
        let mut world = settled(seed, 7, Settings::default());
        for target in 0..7 {
            let first = leader(&world);
            if first == target {
                continue;
            }
            let before = world.term(first);
            transfer(&mut world, first, target);
            wait(&mut world, BOUND, "not handed over in time", |world| {
                world.agreed() == Some(target)
            });
            expect(
                &world,
                world.term(target) == before + 1,
                "more than one term",
            );
            world.run_for(ms(seed * 83 % 1200));
            expect(&world, world.agreed() == Some(target), "it did not stay");
        }
    }
}

#[test]
fn hc12_a_leader_that_yields_is_followed_by_the_best_ranked() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let rest = (0..5).filter(|slot| *slot != first);
        let successor = rest.max_by_key(|slot| world.slots[*slot].id.clone());
        order(&mut world, first, Command::YieldLeadership);
        wait(&mut world, BOUND, "not handed over in time", |world| {
            world.agreed() == successor
        });
    }
}

/// The leader leaves in the moment of its transfer.
#[test]
fn hc12_the_target_follows_a_leader_that_transfers_and_leaves_at_once() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let target = (first + 1 + seed as usize % 4) % 5;
        transfer(&mut world, first, target);
        world.leave(first);
        let bound = ms(300) + RTT * 3;
        wait(&mut world, bound, "no next leader in time", |world| {
            world.agreed() == Some(target)
        });
    }
}

/// The target is stopped, or cut off: the leader leads on, and the room never has two.
#[test]
fn hc12_an_unreachable_target_leaves_the_leader_in_place() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let target = (first + 1) % 5;
        world.pause(target);
        transfer(&mut world, first, target);
        forget_reported(&mut world);
        for _ in 0..80 {
            world.run_for(ms(100));
            expect(&world, world.leaders() == [first], "another leader");
        }
        for slot in (0..5).filter(|slot| *slot != target) {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "somebody wavered",
            );
        }
        world.resume(target);
        wait(
            &mut world,
            ms(8000),
            "the target does not come back",
            |world| world.is_mesh() && world.agreed().is_some(),
        );
    }
}
