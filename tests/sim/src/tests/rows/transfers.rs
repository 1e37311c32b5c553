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

/// A member that was cut off is back, and the leader that all follow transfers its leadership at once. Links of the
/// returned member complete during the transfer: it still names the leader before, which has led longer.
#[test]
fn a_transfer_just_after_a_merge_stays() {
    for seed in 0..300 {
        let delay = (ms(1), ms(1 + seed % 4 * 20));
        let settings = Settings {
            delay,
            ..Settings::default()
        };
        let mut world = settled(seed, 4, settings);
        let stale = leader(&world);
        isolate(&mut world, stale);
        let apart = |world: &World| world.leaders().len() == 2 && world.leaders().contains(&stale);
        wait(&mut world, ms(15_000), "not two sides", apart);
        world.run_for(ms(1_000));
        rejoin(&mut world, stale);
        let merged = |world: &World| world.agreed().is_some_and(|leader| leader != stale);
        wait(&mut world, ms(15_000), "no merge", merged);
        let first = leader(&world);
        let target = (0..4)
            .filter(|slot| ![stale, first].contains(slot))
            .nth(seed as usize % 2);
        let target = target.expect("two others");
        world.run_for(ms(seed / 4 % 10 * 5));
        transfer(&mut world, first, target);
        let mut led = false;
        for _ in 0..600 {
            world.run_for(ms(10));
            led |= world.leaders() == [target];
            let lasts = !led || world.leaders() == [target];
            expect(&world, lasts, "the transfer did not last");
        }
        let agreed = world.agreed() == Some(target);
        expect(&world, agreed, "not transferred");
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
