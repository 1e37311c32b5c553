//! Leaders whose time jumps: rooms that were idle for long, and processes that stood still.

use room_core::time::Duration;
use room_state::ballot::History;

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::World;

const LONG_MS: u64 = 60_000;
/// Processes stand still for a little longer than a leader waits for a confirmation, and for much longer.
const STALLS_MS: [u64; 2] = [1_050, LONG_MS];

fn stand_still(world: &mut World, ms: u64) {
    act(world, |world| world.stand_still(Duration::from_millis(ms)));
}

fn openings(world: &World) -> usize {
    replica(world, 0).tables().openings().count()
}

fn stalls() -> impl Iterator<Item = (Case, u64)> {
    let rooms = (2..=5).map(Case::dynamic);
    rooms.flat_map(|case| STALLS_MS.map(|ms| (case.clone(), ms)))
}

/// Gives each member a turn, without frames.
fn turn(world: &mut World) {
    for index in 0..world.nodes.len() {
        act(world, |world| world.flush(index));
    }
}

fn is_done(world: &World) {
    for index in 0..world.nodes.len() {
        let replica = replica(world, index);
        assert_eq!(replica.confirmed(), replica.index(), "{index}");
    }
    assert_eq!(replica(world, 1).open_requests(), 0);
}

#[test]
fn the_first_request_after_a_long_time_opens_nothing_again() {
    for (case, idle_ms) in stalls() {
        let mut world = led(&case);
        let before = openings(&world);
        stand_still(&mut world, idle_ms);
        act(&mut world, |world| world.submit_action(1));
        act(&mut world, World::deliver_all);
        act(&mut world, World::take_all);
        is_done(&world);
        assert_eq!(openings(&world), before, "{case:?}");
    }
}

#[test]
fn a_leader_that_stood_still_reads_before_it_opens_again() {
    for (case, ms) in stalls() {
        let mut world = led(&case);
        let (before, history) = (openings(&world), replica(&world, 0).history());
        act(&mut world, |world| world.submit_action(0));
        turn(&mut world);
        // The others' answers wait in its socket meanwhile.
        stand_still(&mut world, ms);
        turn(&mut world);
        act(&mut world, World::deliver_all);
        act(&mut world, World::take_all);
        is_done(&world);
        assert_eq!(
            (openings(&world), replica(&world, 0).history()),
            (before, history)
        );
    }
}

/// The others have lost it meanwhile, and its links end as soon as it runs again.
fn lose_all(world: &mut World, leader: usize) {
    for other in (0..world.nodes.len()).filter(|other| *other != leader) {
        act(world, |world| world.cut(leader, other));
    }
    turn(world);
}

fn forks_a_while_later(mut world: World, leader: usize, history: Option<History>) {
    assert_eq!(replica(&world, leader).history(), history);
    for _ in 0..50 {
        pass(&mut world, 100);
        turn(&mut world);
    }
    assert_ne!(replica(&world, leader).history(), history);
}

#[test]
fn a_leader_that_stood_still_and_is_alone_forks_a_while_later() {
    for ms in STALLS_MS {
        let mut world = led(&Case::dynamic(3));
        let history = replica(&world, 0).history();
        act(&mut world, |world| world.submit_action(0));
        turn(&mut world);
        stand_still(&mut world, ms);
        lose_all(&mut world, 0);
        forks_a_while_later(world, 0, history);
    }
}

/// It was elected just before, and has asked the others for their logs.
#[test]
fn a_leader_that_stood_still_while_it_opened_forks_a_while_later() {
    for ms in [2_050, LONG_MS] {
        let mut world = led(&Case::dynamic(3));
        let history = replica(&world, 1).history();
        act(&mut world, |world| world.elect(1));
        turn(&mut world);
        stand_still(&mut world, ms);
        lose_all(&mut world, 1);
        forks_a_while_later(world, 1, history);
    }
}

/// Each of its looks is late, by much or by little.
#[test]
fn a_leader_that_stands_still_again_and_again_forks_nevertheless() {
    for (ms, looks) in [(210, 100), (5_000, 100)] {
        let mut world = led(&Case::dynamic(3));
        let history = replica(&world, 0).history();
        act(&mut world, |world| world.submit_action(0));
        turn(&mut world);
        lose_all(&mut world, 0);
        for _ in 0..looks {
            stand_still(&mut world, ms);
            turn(&mut world);
        }
        assert_ne!(replica(&world, 0).history(), history);
    }
}
