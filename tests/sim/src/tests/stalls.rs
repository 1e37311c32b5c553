//! Leaders whose processes stand still for a while and return (G17): one that is back before anybody has voted leads on.

use room_core::election::guards::Guards;
use room_core::id::PeerId;
use room_core::node::LinkEnd;

use super::rooms::*;
use crate::world::{Settings, World};

const ROOMS: u64 = 240;

/// Settings of a room whose round trips take up to 150 ms.
pub(super) fn far(guards: Guards) -> Settings {
    Settings {
        delay: (ms(25), ms(75)),
        guards,
        ..Settings::default()
    }
}

/// Gets a settled room bad lines, and lets it run to some moment between two heartbeats.
pub(super) fn worsen(world: &mut World) {
    world.silence_is_reported_as = LinkEnd::Silent;
    world.stream_loss = 0.05;
    world.datagram_loss = 0.05;
    let rest = world.between(ms(0), ms(500));
    world.run_for(rest);
    forget_reported(world);
}

/// The room after a stall of its leader.
pub(super) fn after_a_stall(world: &mut World, stall_ms: u64) {
    let leader = leader(world);
    world.pause(leader);
    world.run_for(ms(stall_ms));
    world.resume(leader);
    calm_down(world);
}

/// Lets the room elect, if it does.
pub(super) fn calm_down(world: &mut World) {
    world.run_for(ms(6_000));
    expect(world, world.agreed().is_some(), "no leader");
}

/// Whether any host saw a change.
pub(super) fn is_disturbed(world: &World) -> bool {
    world.slots.iter().any(|slot| !slot.reported.is_empty())
}

/// A room of five on bad lines after a stall of its leader, and that leader.
fn stalled(seed: u64, stall_ms: u64, guards: Guards) -> (World, PeerId) {
    let mut world = settled(seed, 5, far(guards));
    worsen(&mut world);
    let leader = leader(&world);
    after_a_stall(&mut world, stall_ms);
    let id = world.slots[leader].id.clone();
    (world, id)
}

/// The rooms in which any host sees a change.
fn changed(stall_ms: u64, guards: Guards) -> u64 {
    let is_changed = |seed: &u64| is_disturbed(&stalled(*seed, stall_ms, guards).0);
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
