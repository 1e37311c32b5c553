//! Leaders whose time jumps: rooms that were idle for long, and processes that stood still.

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::World;

const LONG_MS: u64 = 60_000;

fn openings(world: &World) -> usize {
    replica(world, 0).tables().openings().count()
}

fn rooms() -> impl Iterator<Item = Case> {
    (2..=5).map(Case::dynamic)
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
    // A little longer than a leader waits for a confirmation, and much longer.
    for (case, idle_ms) in rooms().flat_map(|case| [1_050, LONG_MS].map(|ms| (case.clone(), ms))) {
        let mut world = led(&case);
        let before = openings(&world);
        pass(&mut world, idle_ms);
        act(&mut world, |world| world.submit_action(1));
        act(&mut world, World::deliver_all);
        act(&mut world, World::take_all);
        is_done(&world);
        assert_eq!(openings(&world), before, "{case:?}");
    }
}

#[test]
fn a_leader_that_stood_still_reads_before_it_opens_again() {
    for case in rooms() {
        let mut world = led(&case);
        let (before, history) = (openings(&world), replica(&world, 0).history());
        act(&mut world, |world| world.submit_action(0));
        turn(&mut world);
        // The others' answers wait in its socket meanwhile.
        pass(&mut world, LONG_MS);
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

#[test]
fn a_leader_that_stood_still_and_is_alone_forks_a_while_later() {
    let mut world = led(&Case::dynamic(3));
    let history = replica(&world, 0).history();
    act(&mut world, |world| world.submit_action(0));
    turn(&mut world);
    pass(&mut world, LONG_MS);
    for other in [1, 2] {
        act(&mut world, |world| world.cut(0, other));
    }
    turn(&mut world);
    assert_eq!(replica(&world, 0).history(), history);
    for _ in 0..50 {
        pass(&mut world, 100);
        turn(&mut world);
    }
    assert_ne!(replica(&world, 0).history(), history);
}
