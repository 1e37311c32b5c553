//! Bans that are lifted while members, and leaders, are cut off.

use room_core::node::{Command, Node};

use super::rooms::*;
use crate::plan::Hosts;
use crate::world::{Settings, World};

/// `victim` is out, and its process has ended.
fn kick(world: &mut World, leader: usize, victim: usize) {
    let kick = Command::Kick {
        peer: world.slots[victim].id.clone(),
        code: 1,
        bytes: Vec::new(),
        ban: true,
    };
    order(world, leader, kick);
    // The leader's message may be lost with its link; then it learns of the kick when it dials.
    wait(world, ms(60_000), "the victim is still in", |world| {
        is_over(world, victim)
    });
    world.crash(victim);
}

fn unban(world: &mut World, leader: usize, victim: usize) {
    let unban = Command::Unban(world.slots[victim].id.clone());
    order(world, leader, unban);
}

fn is_over(world: &World, slot: usize) -> bool {
    let process = world.slots[slot].process.as_ref();
    process.is_some_and(|process| process.node.is_over())
}

fn has(world: &World, slot: usize, other: usize) -> bool {
    let process = world.slots[slot].process.as_ref();
    let has = |node: &Node| node.membership().get(&world.slots[other].id).is_some();
    process.is_some_and(|process| has(&process.node))
}

/// One member is alone when a ban is lifted. It returns, in half of the rooms when the leader that knew is gone, and in a quarter
/// to lead. No member is put out, and all are linked.
#[test]
fn a_member_that_was_cut_off_brings_no_lifted_ban_back() {
    for seed in 0..60 {
        // A member that is refused because of a kick learns that, as in the library.
        let hosts = Hosts {
            asked: true,
            ..Hosts::default()
        };
        let settings = Settings {
            hosts,
            ..Settings::default()
        };
        let mut world = settled(seed, 5, settings);
        let first = leader(&world);
        let [away, victim, other] = [1, 2, 3].map(|next| (first + next) % 5);
        kick(&mut world, first, victim);
        isolate(&mut world, away);
        world.run_for(ms(5_000));
        unban(&mut world, first, victim);
        world.run_for(ms(1_000));
        world.start(victim);
        world.connect(victim, first);
        wait(&mut world, ms(10_000), "the victim is not in", |world| {
            has(world, first, victim) && has(world, other, victim) && has(world, victim, other)
        });
        if seed % 2 == 0 {
            world.crash(first);
        }
        rejoin(&mut world, away);
        wait(&mut world, ms(60_000), "no mesh", |world| {
            world.agreed().is_some() && world.is_mesh() && has(world, away, victim)
        });
        if seed % 4 < 2 {
            let id = world.slots[away].id.clone();
            order(&mut world, away, Command::SetLeader(id));
        }
        world.run_for(ms(20_000));
        expect(
            &world,
            world.agreed().is_some() && world.is_mesh(),
            "the room came apart",
        );
        for slot in 0..5 {
            expect(&world, !is_over(&world, slot), "somebody is out");
        }
        // A new kick works as usual.
        let last = leader(&world);
        if last != victim {
            kick(&mut world, last, victim);
            world.start(victim);
            world.connect(victim, other);
            world.run_for(ms(10_000));
            for slot in [away, other] {
                expect(&world, !has(&world, slot, victim), "it is back");
            }
        }
    }
}
