//! The situations of hashicorp/raft's fuzzy suite, each over many seeds: random, but of one kind.

use rand::Rng;

use super::super::rooms::*;
use crate::world::{Settings, World};

/// Longer than any healing of these rooms: two timeouts, and the redials.
const HEALED_WITHIN_MS: u64 = 8000;

fn heals(world: &mut World) {
    wait(world, ms(HEALED_WITHIN_MS), "not healed", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    let stays = world.agreed();
    world.run_for(ms(3000));
    expect(world, world.agreed() == stays, "the leader did not stay");
}

#[test]
fn fuzzy_leader_partitions_a_room_that_is_cut_again_and_again_with_its_leader_heals() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        for _ in 0..6 {
            let first = leader(&world);
            let with = (first + world.rng.random_range(1..5)) % 5;
            let side = if world.rng.random_bool(0.5) {
                vec![first]
            } else {
                vec![first, with]
            };
            let pairs: Vec<(usize, usize)> = (0..5)
                .flat_map(|a| (0..5).map(move |b| (a, b)))
                .filter(|(a, b)| side.contains(a) && !side.contains(b))
                .collect();
            for (a, b) in &pairs {
                world.cut_both(*a, *b);
            }
            let cut_for = world.rng.random_range(500..8000);
            world.run_for(ms(cut_for));
            for (a, b) in &pairs {
                world.mend_both(*a, *b);
            }
            heals(&mut world);
        }
    }
}

/// The leader crashes while all messages from (or to) one of the rest are late.
fn slow(sends: bool) {
    for seed in 0..30 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        // The one whose turn it would be.
        let rest = (0..5).filter(|slot| *slot != first);
        let slow = rest.max_by_key(|slot| world.slots[*slot].id.clone());
        let slow = slow.expect("four are left");
        world.crash(first);
        let others: Vec<usize> = (0..5).filter(|slot| *slot != slow).collect();
        for _ in 0..16 {
            let hold = world.rng.random_range(100..450);
            for other in &others {
                let (from, to) = if sends {
                    (slow, *other)
                } else {
                    (*other, slow)
                };
                world.cut(from, to);
            }
            world.run_for(ms(hold));
            for other in &others {
                let (from, to) = if sends {
                    (slow, *other)
                } else {
                    (*other, slow)
                };
                world.mend(from, to);
            }
            world.run_for(ms(20));
        }
        // Elected meanwhile, or at once now.
        wait(&mut world, ms(3500), "no leader", |world| {
            world.agreed().is_some()
        });
        heals(&mut world);
    }
}

#[test]
fn fuzzy_slow_send_vote_a_member_whose_messages_come_late_blocks_no_election() {
    slow(true);
}

#[test]
fn fuzzy_slow_recv_vote_a_member_that_receives_late_blocks_no_election() {
    slow(false);
}

#[test]
fn fuzzy_add_membership_members_join_while_leaders_come_and_go() {
    for seed in 0..20 {
        let mut world = empty(seed, 8, Settings::default());
        for slot in 0..3 {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(15_000), "no first leader", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        for joiner in 3..8 {
            let first = leader(&world);
            if joiner % 2 == 0 {
                world.crash(first);
                let until = world.rng.random_range(0..3000);
                world.run_for(ms(until));
            }
            world.start(joiner);
            let began = world.now;
            while !(world.agreed().is_some() && world.is_mesh()) {
                let contact = world.running()[0];
                world.connect(joiner, contact);
                world.run_for(ms(100));
                let late = world.now.since(began) > ms(HEALED_WITHIN_MS);
                expect(&world, !late, "the joiner does not come in");
            }
        }
        heals(&mut world);
    }
}

#[test]
fn fuzzy_remove_membership_followers_leave_at_random_and_the_leader_stays() {
    for seed in 0..20 {
        let mut world = settled(seed, 7, Settings::default());
        let first = leader(&world);
        let before = world.term(first);
        forget_reported(&mut world);
        while world.running().len() > 1 {
            let mut followers = world.running();
            followers.retain(|slot| *slot != first);
            let index = world.rng.random_range(0..followers.len());
            world.leave(followers[index]);
            let pause = world.rng.random_range(100..2500);
            world.run_for(ms(pause));
            expect(&world, world.agreed() == Some(first), "another leader");
        }
        expect(
            &world,
            reported(&world, first).is_empty(),
            "the leader wavered",
        );
        expect(&world, world.term(first) == before, "there was an election");
    }
}
