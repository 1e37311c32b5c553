//! Leaders whose processes stand still for a while and return (G17): one that is back before anybody has voted leads on.

use room_core::election::guards::Guards;
use room_core::id::PeerId;
use room_core::node::LinkEnd;

use super::rooms::*;
use crate::world::{Settings, World};

const ROOMS: u64 = 240;

/// A room of five on bad lines after a stall of its leader.
fn stalled(seed: u64, stall_ms: u64, guards: Guards) -> (World, PeerId) {
    let settings = Settings {
        delay: (ms(25), ms(75)),
        guards,
        ..Settings::default()
    };
    let mut world = settled(seed, 5, settings);
    world.silence_is_reported_as = LinkEnd::Silent;
    world.stream_loss = 0.05;
    world.datagram_loss = 0.05;
    let rest = world.between(ms(0), ms(500));
    world.run_for(rest);
    forget_reported(&mut world);
    let leader = leader(&world);
    world.pause(leader);
    world.run_for(ms(stall_ms));
    world.resume(leader);
    world.run_for(ms(6_000));
    expect(&world, world.agreed().is_some(), "no leader");
    let id = world.slots[leader].id.clone();
    (world, id)
}

/// The rooms in which any host sees a change.
fn changed(stall_ms: u64, guards: Guards) -> u64 {
    let is_changed = |seed: &u64| {
        let (world, _) = stalled(*seed, stall_ms, guards);
        world.slots.iter().any(|slot| !slot.reported.is_empty())
    };
    (0..ROOMS).filter(is_changed).count() as u64
}

#[test]
fn g17_without_it_a_leader_that_stalls_is_deposed_for_nothing() {
    let no_probes = Guards {
        late_probes: false,
        ..Guards::ALL
    };
    let no_doubts = Guards {
        doubts: false,
        ..Guards::ALL
    };
    let of = |guards| changed(1_200, guards);
    let (all, no_probes, no_doubts) = (of(Guards::ALL), of(no_probes), of(no_doubts));
    println!(
        "{all} changes; {no_probes} if a late process asks nobody, {no_doubts} if its links end at once"
    );
    assert!(all <= 60, "{all}");
    assert!(no_probes >= 100, "{no_probes}");
    assert!(no_doubts >= 80, "{no_doubts}");
}

/// The rooms in which a host saw another leader and then the old one again.
fn returned(stall_ms: u64, guards: Guards) -> u64 {
    let is_back = |seed: &u64| {
        let (world, old) = stalled(*seed, stall_ms, guards);
        world.slots.iter().any(|slot| {
            let shown = slot
                .reported
                .iter()
                .filter_map(|(_, leader)| leader.as_ref());
            shown
                .skip_while(|leader| **leader == old)
                .any(|leader| *leader == old)
        })
    };
    (0..ROOMS).filter(is_back).count() as u64
}

#[test]
fn g17_after_a_vote_the_old_leader_does_not_return() {
    let off = Guards {
        votes_end_doubts: false,
        ..Guards::ALL
    };
    let of = |guards| [1_300, 1_400, 1_700].map(|stall_ms| returned(stall_ms, guards));
    let (with, without) = (of(Guards::ALL), of(off));
    println!("the old leader returned in {with:?} rooms; {without:?} if a vote ends no doubt");
    assert_eq!(with, [0; 3]);
    assert!(without.iter().sum::<u64>() >= 5, "{without:?}");
}
