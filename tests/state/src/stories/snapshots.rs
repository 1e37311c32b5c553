//! Hosts that need the state of another host.

use room_state::replica::Input;
use room_state::wire::Frame;

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::{World, name};

/// A room whose logs keep 3 entries, after more actions than that. Its last member has started anew, and has asked the leader.
fn with_a_newcomer() -> World {
    let mut world = led(&Case::dynamic(3).forgetful());
    for _ in 0..40 {
        act(&mut world, |world| world.submit(1));
        act(&mut world, World::deliver_all);
        act(&mut world, World::take_all);
    }
    act(&mut world, |world| world.crash(2));
    world.start(2);
    act(&mut world, World::heal);
    act(&mut world, |world| world.elect(0));
    act(&mut world, World::deliver_all);
    takes(&mut world, 2);
    assert_eq!(replica(&world, 2).taken(), 0, "it waits");
    world
}

/// A host takes all events, and its member does what follows.
fn takes(world: &mut World, index: usize) {
    act(world, |world| world.take(index, usize::MAX));
    act(world, |world| world.handle(index, Input::Tick));
    act(world, World::deliver_all);
}

#[test]
fn a_newcomer_waits_for_a_host_that_takes_its_time() {
    let mut world = with_a_newcomer();
    takes(&mut world, 0);
    // The other host takes no events.
    for _ in 0..11 {
        pass(&mut world, 1000);
        act(&mut world, World::deliver_all);
    }
    takes(&mut world, 2);
    assert_eq!(replica(&world, 2).taken(), 0, "it waits");
    act(&mut world, |world| world.provide(0, false));
    act(&mut world, World::deliver_all);
    takes(&mut world, 2);
    assert!(world.nodes[2].host.is_complete());
    assert_eq!(world.nodes[2].host.loads(), 1);
    assert_eq!(replica(&world, 2).taken(), replica(&world, 0).taken());
}

#[test]
fn a_host_begins_with_nothing_if_no_other_one_provides() {
    let mut world = with_a_newcomer();
    for _ in 0..12 {
        pass(&mut world, 1000);
        act(&mut world, World::deliver_all);
    }
    takes(&mut world, 2);
    assert!(!world.nodes[2].host.is_complete());
    assert_eq!(replica(&world, 2).taken(), replica(&world, 0).confirmed());
}

#[test]
fn a_member_that_links_later_is_asked_soon() {
    let mut world = with_a_newcomer();
    act(&mut world, |world| world.crash(1));
    pass(&mut world, 2500);
    act(&mut world, World::deliver_all);
    assert_eq!(replica(&world, 2).taken(), 0, "it waits for the leader");
    world.start(1);
    act(&mut world, World::heal);
    let is_asked = world.links[&(2, 1)]
        .iter()
        .any(|frame| matches!(frame, Frame::Want { .. }));
    assert!(is_asked);
}

#[test]
fn questions_do_not_multiply_the_parts() {
    let mut world = with_a_newcomer();
    takes(&mut world, 0);
    act(&mut world, |world| world.provide(0, false));
    let parts = |world: &World| {
        let frames = world.links[&(0, 2)].iter();
        frames
            .filter(|frame| matches!(frame, Frame::Part { .. }))
            .count()
    };
    let under_way = parts(&world);
    assert!(under_way > 0);
    let history = replica(&world, 0).history().expect("a log");
    for from in [u64::MAX, 0].repeat(10) {
        let input = Input::Frame {
            from: name(2),
            frame: Frame::Want { history, from },
            largest_number: u64::MAX,
        };
        act(&mut world, |world| world.handle(0, input));
    }
    assert_eq!(parts(&world), under_way);
}
