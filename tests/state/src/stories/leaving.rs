//! Leaders that leave a room.

use room_state::tables::Tables;

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::{World, name};

/// The first member leaves in order, and the second one leads on.
fn hands_over(case: &Case) -> World {
    let mut world = led(case);
    let history = replica(&world, 0).history();
    act(&mut world, |world| world.leave(0, 1));
    assert!(world.is_up(0), "it waits for the others");
    act(&mut world, World::deliver_all);
    assert!(!world.is_up(0), "the others have its departure");
    act(&mut world, |world| world.elect(1));
    act(&mut world, World::deliver_all);
    let next = replica(&world, 1);
    assert_eq!(next.history(), history);
    assert!(next.tables().is_exclusive(), "no fork");
    assert_eq!(next.confirmed(), next.index());
    assert!(
        next.tables().members().all(|member| member.peer != name(0)),
        "the leader has left"
    );
    world
}

#[test]
fn the_last_two_members_part_without_a_fork() {
    let world = hands_over(&Case::dynamic(2));
    assert_eq!(replica(&world, 1).roster().len(), 1);
}

#[test]
fn the_history_of_a_room_goes_on_without_its_leader() {
    for case in [Case::dynamic(3), Case::dynamic(5), Case::fixed(3)] {
        hands_over(&case);
    }
}

#[test]
fn half_of_the_others_is_no_majority_for_a_leader_that_leaves() {
    let mut world = led(&Case::dynamic(3));
    act(&mut world, |world| world.leave(0, 1));
    for _ in 0..20 {
        for (from, to) in [(0, 1), (1, 0)] {
            act(&mut world, |world| world.flush(from));
            act(&mut world, |world| world.deliver(from, to));
        }
    }
    let has_departure = |tables: &Tables| tables.members().all(|member| member.peer != name(0));
    assert!(
        has_departure(replica(&world, 1).tables()),
        "the successor has it"
    );
    assert!(world.is_up(0), "one of two");
    act(&mut world, World::deliver_all);
    assert!(!world.is_up(0));
}

#[test]
fn a_leader_leaves_after_half_a_second_if_the_others_are_mute() {
    let mut world = led(&Case::dynamic(3));
    act(&mut world, |world| world.leave(0, 1));
    pass(&mut world, 499);
    assert!(world.is_up(0));
    pass(&mut world, 1);
    assert!(!world.is_up(0));
}

#[test]
fn a_member_that_does_not_lead_leaves_at_once() {
    let mut world = led(&Case::dynamic(3));
    act(&mut world, |world| world.leave(1, 0));
    assert!(!world.is_up(1));
}
