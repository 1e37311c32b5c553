//! How soon a room is whole again when its network works again.

use std::collections::BTreeMap;

use room_core::time::Duration;

use super::rooms::*;
use crate::plan::Hosts;
use crate::world::{Settings, World};

/// Times from the end of a cut: until all follow one leader from then on, and until all are linked to all.
struct Back {
    agreed: Duration,
    whole: Duration,
}

/// Cuts these places off the others for so long.
fn cut_off(world: &mut World, side: &[usize], lasts: Duration) -> Back {
    let others: Vec<usize> = (0..world.slots.len())
        .filter(|slot| !side.contains(slot))
        .collect();
    let cross = |world: &mut World, change: fn(&mut World, usize, usize)| {
        for one in side {
            for other in &others {
                change(world, *one, *other);
            }
        }
    };
    cross(world, World::cut_both);
    world.run_for(lasts);
    cross(world, World::mend_both);
    let from = world.now;
    let (mut agreed, mut whole) = (None, None);
    loop {
        // Agreement of a side alone is none, and both have to last.
        agreed = world
            .agreed()
            .map(|_| agreed.unwrap_or(world.now.since(from)));
        whole = world
            .is_mesh()
            .then(|| whole.unwrap_or(world.now.since(from)));
        if let (Some(agreed), Some(whole)) = (agreed, whole) {
            return Back { agreed, whole };
        }
        let late = world.now.since(from) > ms(30_000);
        expect(world, !late, "the room is not whole again");
        world.run_for(ms(1));
    }
}

/// A room at rest, with a random place in the intervals of its heartbeats.
fn at_rest(seed: u64, nodes: usize) -> World {
    let mut world = settled(seed, nodes, Settings::default());
    world.run_for(ms(seed * 37 % 500));
    world
}

/// The times of many rooms in ms, sorted: until all agree, and until all are linked.
fn back(what: &str, rooms: u64, heal: impl Fn(u64) -> Back) -> [Vec<u128>; 2] {
    let all: Vec<_> = (0..rooms).map(heal).collect();
    let sorted = |of: fn(&Back) -> Duration| {
        let mut times: Vec<_> = all.iter().map(|back| of(back).as_millis()).collect();
        times.sort_unstable();
        times
    };
    let times = [sorted(|back| back.agreed), sorted(|back| back.whole)];
    let [agreed, whole] = times.each_ref().map(|times| {
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
        format!("{} / {} ms", at(50), at(99))
    });
    println!("{what}: all agree after {agreed}, all are linked after {whole} (median / 99 %)");
    times
}

#[test]
fn two_and_three_that_were_cut_off_are_one_room_within_moments() {
    let times = back("3 and 2, cut for 8 to 12 s", 100, |seed| {
        let lasts = ms(8_000 + seed * 41 % 4_000);
        cut_off(&mut at_rest(seed, 5), &[3, 4], lasts)
    });
    let [agreed, whole] = &times;
    assert!(agreed[50] <= 400 && agreed[99] <= 1_200, "{agreed:?}");
    assert!(whole[50] <= 1_000 && whole[99] <= 1_800, "{whole:?}");
}

#[test]
fn an_isolated_member_is_back_within_moments() {
    let times = back("one of 5, cut off for 4 to 6 s", 100, |seed| {
        let slot = usize::try_from(seed % 5).expect("a place");
        let lasts = ms(4_000 + seed * 41 % 2_000);
        cut_off(&mut at_rest(seed, 5), &[slot], lasts)
    });
    let [agreed, whole] = &times;
    assert!(agreed[50] <= 400 && agreed[99] <= 1_200, "{agreed:?}");
    assert!(whole[50] <= 1_000 && whole[99] <= 1_800, "{whole:?}");
}

/// After a long cut each lost member is dialled every two seconds; the first that is back wakes the others of its side.
#[test]
fn two_halves_that_were_cut_off_for_long_are_one_room_soon_after_the_first_link() {
    let times = back("5 and 5, cut for 45 to 47 s", 40, |seed| {
        let lasts = ms(45_000 + seed * 41 % 2_000);
        cut_off(&mut at_rest(seed, 10), &[1, 3, 5, 7, 9], lasts)
    });
    let [agreed, whole] = &times;
    assert!(agreed[20] <= 500 && whole[20] <= 1_500, "{times:?}");
}

#[test]
fn a_flapping_member_disturbs_no_other_link() {
    let mut world = at_rest(1, 5);
    let leader = leader(&world);
    let flapper = (leader + 1) % 5;
    forget_reported(&mut world);
    for _ in 0..30 {
        isolate(&mut world, flapper);
        world.run_for(ms(2_000));
        rejoin(&mut world, flapper);
        world.run_for(ms(2_000));
    }
    for slot in (0..5).filter(|slot| *slot != flapper) {
        let changes = reported(&world, slot);
        expect(&world, changes.is_empty(), "the leader changed");
    }
}

/// Both dial at the same time, and one of the two links makes way.
#[test]
fn two_lone_leaders_that_dial_each_other_agree_for_good() {
    let mut changes = BTreeMap::<usize, u64>::new();
    for seed in 0..300 {
        let settings = Settings {
            delay: (ms(1), ms(1 + seed % 50)),
            hosts: Hosts {
                asked: seed % 2 == 1,
                ..Hosts::default()
            },
            ..Settings::default()
        };
        let mut world = empty(seed, 2, settings);
        world.stream_loss = [0.0, 0.05, 0.2][usize::try_from(seed % 3).expect("small")];
        world.start(0);
        world.run_for(ms(seed * 13 % 700));
        world.start(1);
        world.run_for(ms(6_000 + seed * 7 % 1_000));
        expect(&world, world.leaders() == [0, 1], "they do not lead alone");
        forget_reported(&mut world);
        world.connect(0, 1);
        world.run_for(ms(seed % 7 * 5));
        world.connect(1, 0);
        world.run_for(ms(10_000));
        expect(&world, world.agreed().is_some(), "no agreement");
        let count = reported(&world, 0).len() + reported(&world, 1).len();
        *changes.entry(count).or_default() += 1;
    }
    println!("changes of the leader: rooms {changes:?}");
    assert_eq!(changes.keys().copied().collect::<Vec<_>>(), [1]);
}
