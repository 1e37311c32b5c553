//! Rooms that elect: at their start, after crashes, with members that may not lead.

use room_core::election::raft::Raft;
use room_core::election::rules::RoleKind;
use room_core::wire::MergePolicy;

use super::super::rooms::*;
use crate::world::{Settings, World};

/// The timers of the library's first tests, and its first rule for two sides.
fn first_tests() -> Settings {
    Settings {
        heartbeat_interval: ms(100),
        heartbeat_timeout: ms(300),
        election_timeout_min: ms(300),
        election_timeout_max: ms(600),
        merge: MergePolicy::HighestTerm,
        ..Settings::default()
    }
}

/// A room whose members start and connect one after another; returns when all agree.
fn started(seed: u64, size: usize, most_ms: u64) -> World {
    let mut world = empty(seed, size, first_tests());
    for slot in 0..size {
        world.start(slot);
        world.run_for(ms(seed % 7 * 40));
        world.connect(slot, 0);
    }
    wait(&mut world, ms(most_ms), "no agreement", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world
}

#[test]
fn s15_three_nodes_agree_within_8_seconds_and_two_within_5() {
    for seed in 0..50 {
        for (size, most_ms) in [(3, 8000), (2, 5000)] {
            let mut world = started(seed, size, most_ms);
            let first = world.agreed();
            world.run_for(ms(5000));
            expect(&world, world.agreed() == first, "the leader did not stay");
        }
    }
}

#[test]
fn s16_after_a_shutdown_of_the_leader_the_rest_elect_and_the_term_stays() {
    for seed in 0..50 {
        let mut world = started(seed, 3, 8000);
        world.run_for(ms(1000));
        let first = leader(&world);
        world.leave(first);
        wait(&mut world, ms(5000), "no new leader", |world| {
            world.agreed().is_some_and(|leader| leader != first)
        });
        world.run_for(ms(200));
        let terms = |world: &World| -> Vec<u64> {
            world
                .running()
                .iter()
                .map(|slot| world.term(*slot))
                .collect()
        };
        let (second, before) = (world.agreed(), terms(&world));
        world.run_for(ms(2000));
        expect(&world, world.agreed() == second, "the leader did not stay");
        expect(&world, terms(&world) == before, "the term did not stay");
    }
}

/// A member that was removed from the voters is linked to the leader and never campaigns.
#[test]
fn r35_r48_an_observer_follows_and_never_campaigns_until_it_may_lead() {
    for seed in 0..20 {
        let mut world = empty(seed, 4, Settings::default());
        world.slots[3].eligible = false;
        world.slots[3].rename("zzz"); // the best rank, if it counted
        settle(&mut world);
        let first = leader(&world);
        let watch = |world: &mut World, time| {
            for _ in 0..time / 10 {
                world.run_for(ms(10));
                let role = world
                    .node(3)
                    .map(|node| node.election().of::<Raft>().expect("raft").rules().role());
                expect(
                    world,
                    role == Some(RoleKind::Follower),
                    "an observer campaigns",
                );
            }
        };
        watch(&mut world, 5000);
        world.crash(first);
        watch(&mut world, 8000);
        let second = leader(&world);
        let won = world
            .node(second)
            .and_then(|node| node.election().of::<Raft>().expect("raft").rules().won());
        let voters = won.map_or(0, |won| won.electorate.len());
        expect(&world, voters == 2, "the observer counted");
        // Promoted, it leads if no other member can.
        world.set_eligible(3, true);
        world.run_for(ms(2000));
        expect(
            &world,
            world.agreed() == Some(second),
            "promotion changed the leader",
        );
        for slot in 0..3 {
            world.crash(slot);
        }
        wait(&mut world, ms(6000), "it does not lead", |world| {
            world.agreed() == Some(3)
        });
    }
}

/// openraft: from one node to five; the next election is one of the new room.
#[test]
fn o16_an_election_after_the_room_grew_needs_a_majority_of_the_grown_room() {
    for seed in 0..50 {
        let mut world = empty(seed, 5, Settings::default());
        world.start(0);
        wait(&mut world, ms(3100), "no first leader", |world| {
            world.agreed() == Some(0)
        });
        for slot in 1..5 {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(5000), "no mesh", |world| {
            world.is_mesh() && world.agreed() == Some(0)
        });
        world.run_for(ms(3000));
        world.crash(0);
        wait(&mut world, ms(3500), "no second leader", |world| {
            world.agreed().is_some()
        });
        let second = leader(&world);
        let won = world
            .node(second)
            .and_then(|node| node.election().of::<Raft>().expect("raft").rules().won());
        let counted = won.map(|won| (won.electorate.len(), won.needed));
        expect(
            &world,
            counted == Some((4, 3)),
            "not a majority of the remaining members",
        );
    }
}

/// hashicorp/raft: a follower that restarts causes no election.
#[test]
fn hc9_a_follower_that_restarts_causes_no_election() {
    for seed in 0..50 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        let restarted = (first + 1 + seed as usize % 3) % 4;
        let before = world.term(first);
        forget_reported(&mut world);
        world.crash(restarted);
        world.run_for(ms(seed * 97 % 3000));
        world.start(restarted);
        for _ in 0..10 {
            world.connect(restarted, first);
            world.run_for(ms(1000));
        }
        expect(&world, world.agreed() == Some(first), "another leader");
        expect(&world, world.is_mesh(), "not linked again");
        expect(&world, world.term(first) == before, "there was an election");
        for slot in (0..4).filter(|slot| *slot != restarted) {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "a host was notified",
            );
        }
    }
}

/// etcd-io/raft: five nodes through stops, restarts and pauses.
#[test]
fn r62_five_nodes_come_together_again_after_restarts_and_pauses() {
    for seed in 0..30 {
        let mut world = settled(seed, 5, Settings::default());
        for turn in 0..4 {
            let first = world.agreed().unwrap_or(0);
            // The leader itself every second time.
            let stopped = (first + turn % 2) % 5;
            let paused = [(stopped + 1) % 5, (stopped + 2) % 5];
            world.crash(stopped);
            world.run_for(ms(seed * 131 % 2000));
            for slot in paused {
                world.pause(slot);
            }
            world.run_for(ms(500 + seed * 173 % 4000));
            for slot in paused {
                world.resume(slot);
            }
            world.start(stopped);
            let healed = world.now;
            while !(world.agreed().is_some() && world.is_mesh()) {
                world.connect(stopped, (stopped + 1) % 5);
                world.run_for(ms(100));
                let late = world.now.since(healed) > ms(10_000);
                expect(&world, !late, "they do not come together");
            }
        }
    }
}

/// Any member may remove itself, the leader as well; raft-rs: the rest goes on.
#[test]
fn fuzzy_remove_leader_one_leader_after_another_leaves_until_one_node_is_left() {
    for seed in 0..30 {
        let mut world = settled(seed, 6, Settings::default());
        for left in (1..6).rev() {
            let first = leader(&world);
            world.leave(first);
            wait(&mut world, ms(2500), "no next leader", |world| {
                world.running().len() == left && world.agreed().is_some()
            });
            world.run_for(ms(seed * 61 % 1500));
        }
        expect(
            &world,
            world.leaders().len() == 1,
            "the last one does not lead",
        );
    }
}
