//! A leader resigns without answers from a majority of its voters (G6).

use room_core::time::Duration;

use super::super::rooms::*;
use super::partitions::leader_within;
use crate::world::{Settings, World};

/// P13: two of the shortest election timeouts.
const RESIGNS_WITHIN: Duration = ms(3000);

fn leads(world: &World, slot: usize) -> bool {
    world.leaders().contains(&slot)
}

#[test]
fn r31_a_leader_that_is_deaf_but_not_mute_resigns() {
    for seed in 0..30 {
        let mut world = settled(seed, 5, Settings::default());
        world.run_for(ms(seed * 53 % 1500));
        let first = leader(&world);
        let rest: Vec<usize> = (0..5).filter(|slot| *slot != first).collect();
        for other in &rest {
            world.cut(*other, first);
        }
        let took = wait(&mut world, RESIGNS_WITHIN, "it leads on", |world| {
            !leads(world, first)
        });
        expect(&world, took >= ms(1000), "it did not wait for answers");
        wait(&mut world, ms(5000), "the rest has no leader", |world| {
            leader_within(world, &rest).is_some()
        });
    }
}

/// hashicorp/raft: a leader that reaches a part of its voters.
#[test]
fn hc3_a_leader_that_reaches_too_few_resigns_and_one_that_reaches_enough_stays() {
    for seed in 0..30 {
        for reached in 0..5 {
            let mut world = settled(seed, 5, Settings::default());
            let first = leader(&world);
            let lost = (1..5 - reached).map(|offset| (first + offset) % 5);
            for other in lost.collect::<Vec<_>>() {
                world.cut_both(first, other);
            }
            if reached >= 2 {
                for _ in 0..100 {
                    world.run_for(ms(100));
                    expect(&world, leads(&world, first), "it resigned with a majority");
                }
            } else {
                wait(&mut world, RESIGNS_WITHIN, "it leads on", |world| {
                    !leads(world, first)
                });
            }
        }
    }
}

/// openraft: a leader that is out of touch for less than its window leads on; one that resigned can be elected
/// again when it is back.
#[test]
fn o13_a_leader_that_is_soon_in_touch_again_leads_on() {
    for seed in 0..30 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        forget_reported(&mut world);
        for _ in 0..10 {
            isolate(&mut world, first);
            world.run_for(ms(900));
            rejoin(&mut world, first);
            world.run_for(ms(1700));
        }
        expect(&world, world.agreed() == Some(first), "another leader");
        for slot in 0..5 {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "somebody wavered",
            );
        }
        isolate(&mut world, first);
        wait(&mut world, RESIGNS_WITHIN, "it leads on", |world| {
            !leads(world, first)
        });
        rejoin(&mut world, first);
        wait(&mut world, ms(8000), "no leader", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
    }
}

/// etcd-io/raft: voters that are added and never answer.
#[test]
fn r42_silent_voters_that_join_depose_a_lone_leader_after_a_timeout_and_not_at_once() {
    for seed in 0..30 {
        let mut world = empty(seed, 3, Settings::default());
        world.start(0);
        wait(&mut world, ms(3100), "no first leader", |world| {
            world.agreed() == Some(0)
        });
        world.run_for(ms(seed * 71 % 1500));
        world.start(1);
        world.start(2);
        world.connect(1, 0);
        world.connect(2, 0);
        wait(&mut world, ms(100), "not linked", |world| {
            world.is_linked(0, 1) && world.is_linked(0, 2)
        });
        world.pause(1);
        world.pause(2);
        let took = wait(
            &mut world,
            RESIGNS_WITHIN + ms(50),
            "it leads on",
            |world| !leads(world, 0),
        );
        expect(&world, took >= ms(1400), "it was deposed at once");
    }
}
