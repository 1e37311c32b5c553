//! Rooms that are cut and mended.

use super::super::rooms::*;
use crate::world::{Settings, World};

fn sides_cut(world: &mut World, side: &[usize]) {
    change_cuts(world, side, World::cut_both);
}

fn sides_mended(world: &mut World, side: &[usize]) {
    change_cuts(world, side, World::mend_both);
}

fn change_cuts(world: &mut World, side: &[usize], change: impl Fn(&mut World, usize, usize)) {
    for a in side {
        for b in (0..world.slots.len()).filter(|slot| !side.contains(slot)) {
            change(world, *a, b);
        }
    }
}

/// The one leader of the slots in `side` that all of them show.
pub(super) fn leader_within(world: &World, side: &[usize]) -> Option<usize> {
    let leaders = world.leaders();
    let mut inside = leaders.iter().filter(|slot| side.contains(slot));
    let (leader, None) = (*inside.next()?, inside.next()) else {
        return None;
    };
    let id = &world.slots[leader].id;
    let shown = |slot: &usize| world.node(*slot).and_then(|node| node.leader()) == Some(id);
    side.iter().all(shown).then_some(leader)
}

/// The leader is cut off: the rest elects, and the old leader yields when it is back.
#[test]
fn r40_o5_hc1_an_isolated_leader_is_replaced_and_follows_when_it_is_back() {
    for seed in 0..50 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let rest: Vec<usize> = (0..5).filter(|slot| *slot != first).collect();
        isolate(&mut world, first);
        wait(&mut world, ms(3500), "the rest has no leader", |world| {
            leader_within(world, &rest).is_some()
        });
        let second = leader_within(&world, &rest);
        world.run_for(ms(seed * 211 % 6000));
        forget_reported(&mut world);
        rejoin(&mut world, first);
        world.calm_since = Some(world.now);
        wait(&mut world, ms(6000), "not healed", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        world.run_for(ms(5000));
        expect(&world, world.agreed() == second, "the rest lost its leader");
        for slot in rest {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "the rest wavered",
            );
        }
    }
}

/// openraft: the term of a follower that is cut off does not run away, however long that lasts. Alone, it elects itself once.
#[test]
fn o3_hc10_a_follower_that_is_cut_off_for_long_raises_no_terms_and_disturbs_no_member() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let lost = (first + 1 + seed as usize % 4) % 5;
        let before = world.term(first);
        forget_reported(&mut world);
        isolate(&mut world, lost);
        world.run_for(ms(50_000));
        expect(&world, world.term(lost) <= before + 1, "its term ran away");
        expect(&world, world.term(first) == before, "the room's term grew");
        rejoin(&mut world, lost);
        wait(&mut world, ms(6000), "not healed", |world| {
            world.agreed() == Some(first) && world.is_mesh()
        });
        // The leader went above the returned one's claim, once; then the term stays.
        let healed = world.term(first);
        expect(&world, healed <= before + 2, "more than one election");
        world.run_for(ms(20_000));
        expect(&world, world.agreed() == Some(first), "another leader");
        expect(&world, world.term(first) == healed, "the term did not stay");
        for slot in (0..5).filter(|slot| *slot != lost) {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "the room wavered",
            );
        }
    }
}

/// openraft: a node that is deaf but not mute campaigns; a mute node with a leader does not.
#[test]
fn o9_a_mute_node_with_a_leader_does_not_campaign() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let mute = (first + 1 + seed as usize % 4) % 5;
        let before = world.term(mute);
        for other in (0..5).filter(|slot| *slot != mute) {
            world.cut(mute, other);
        }
        // Until the others have lost its links.
        world.run_for(ms(1400));
        expect(&world, world.term(mute) == before, "it campaigned");
        let shown = world.node(mute).and_then(|node| node.leader()).cloned();
        let id = world.slots[first].id.clone();
        expect(&world, shown == Some(id), "it does not know the leader");
        for other in (0..5).filter(|slot| *slot != mute) {
            world.mend(mute, other);
        }
        world.run_for(ms(10_000));
        expect(&world, world.agreed() == Some(first), "another leader");
        expect(&world, world.term(mute) == before, "there was an election");
    }
}

/// Two against three, both ways round: the larger side keeps or finds its leader, and the smaller one joins it.
#[test]
fn hc4_the_larger_side_of_a_cut_room_gives_the_leader() {
    for seed in 0..50 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let small = [first, (first + 1 + seed as usize % 4) % 5];
        let large: Vec<usize> = (0..5).filter(|slot| !small.contains(slot)).collect();
        sides_cut(&mut world, &small);
        wait(
            &mut world,
            ms(3500),
            "the larger side has no leader",
            |world| leader_within(world, &large).is_some(),
        );
        let second = leader_within(&world, &large);
        world.run_for(ms(4000));
        forget_reported(&mut world);
        sides_mended(&mut world, &small);
        world.calm_since = Some(world.now);
        wait(&mut world, ms(6000), "not healed", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        world.run_for(ms(3000));
        expect(
            &world,
            world.agreed() == second,
            "the larger side lost its leader",
        );
        for slot in large {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "the larger side wavered",
            );
        }
    }
}
