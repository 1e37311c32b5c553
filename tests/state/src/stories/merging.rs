//! Rooms that meet.

use room_state::replica::Input;

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::World;

/// Cuts all links between two sides.
fn part(world: &mut World, one: &[usize], other: &[usize]) {
    for (a, b) in one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b))) {
        act(world, |world| world.cut(a, b));
    }
}

/// These members learn of a leader, and everything that is sent arrives.
fn follow(world: &mut World, leader: usize, members: &[usize]) {
    for member in members {
        act(world, |world| world.shows_leader(*member, leader));
    }
    act(world, World::deliver_all);
}

/// A member's host acts, and its side confirms it.
fn confirm_one(world: &mut World, author: usize) {
    act(world, |world| world.submit_action(author));
    act(world, World::deliver_all);
    act(world, World::take_all);
    let author = replica(world, author);
    assert_eq!(
        (author.open_requests(), author.confirmed()),
        (0, author.index())
    );
}

#[test]
fn a_log_that_begins_later_takes_the_whole_log_of_another_room() {
    // Logs keep 12 entries.
    let mut world = World::new(&Case::dynamic(3).forgetful().calm(), 1);
    act(&mut world, |world| world.link(0, 1));
    act(&mut world, |world| world.elect(0));
    let leader = replica(&world, 2).me().clone();
    let alone = Input::Leader(Some(leader));
    act(&mut world, |world| world.handle(2, alone));
    act(&mut world, World::deliver_all);
    act(&mut world, |world| world.submit(1));
    for _ in 0..30 {
        act(&mut world, |world| world.submit(2));
        act(&mut world, World::deliver_all);
        act(&mut world, World::take_all);
    }
    assert_eq!(replica(&world, 0).base().index(), 0, "its tail is its log");
    assert!(replica(&world, 2).base().index() > 0);
    let history = replica(&world, 0).history();
    act(&mut world, World::heal);
    act(&mut world, |world| world.elect(0));
    act(&mut world, World::deliver_all);
    for index in 0..3 {
        let it = replica(&world, index);
        assert_eq!(
            (it.history(), it.confirmed()),
            (history, it.index()),
            "{index}"
        );
    }
}

/// The leader that would stay is lost as the sides meet, and a third one has the answers of the smaller side first.
#[test]
fn a_third_leader_in_a_merge_waits_for_the_side_with_the_larger_roster() {
    let mut world = led(&Case::dynamic(5));
    part(&mut world, &[0, 1, 2], &[3, 4]);
    act(&mut world, World::deliver_all);
    follow(&mut world, 3, &[3, 4]);
    for author in [0, 3] {
        confirm_one(&mut world, author);
    }
    let [larger, smaller] = [1, 4].map(|side| replica(&world, side).history());
    assert_ne!(larger, smaller);
    act(&mut world, |world| world.crash(0));
    act(&mut world, World::heal);
    for member in 1..5 {
        act(&mut world, |world| world.shows_leader(member, 4));
    }
    // Everything arrives but what the second member sends.
    for _ in 0..10 {
        for (from, to) in [(4, 1), (4, 2), (4, 3), (2, 4), (3, 4)] {
            act(&mut world, |world| world.flush(from));
            act(&mut world, |world| world.deliver(from, to));
        }
        pass(&mut world, 100);
    }
    assert!(
        replica(&world, 4).leads().is_none(),
        "it waits for the second one"
    );
    act(&mut world, World::deliver_all);
    act(&mut world, World::take_all);
    for member in 1..5 {
        assert_eq!(replica(&world, member).history(), larger, "{member}");
    }
    assert_eq!(world.nodes[3].host.undone(), 1);
}

/// The leader's process starts anew, and leads under a ballot of the same number.
#[test]
fn a_leader_that_starts_anew_does_not_go_on_with_the_ballot_of_its_former_process() {
    let mut world = led(&Case::dynamic(3));
    part(&mut world, &[2], &[0, 1]);
    follow(&mut world, 0, &[0, 1]);
    confirm_one(&mut world, 0);
    act(&mut world, |world| world.crash(0));
    world.start(0);
    act(&mut world, |world| world.link(0, 2));
    follow(&mut world, 0, &[0, 2]);
    while ballot_number(&world, 0) < ballot_number(&world, 1) {
        act(&mut world, |world| world.shows_leader(0, 2));
        follow(&mut world, 0, &[0]);
    }
    assert_eq!(ballot_number(&world, 0), ballot_number(&world, 1));
    confirm_one(&mut world, 0);
    act(&mut world, World::heal);
    follow(&mut world, 0, &[1]);
    act(&mut world, World::take_all);
    let history = replica(&world, 0).history();
    for member in 0..3 {
        let it = replica(&world, member);
        assert_eq!(
            (it.history(), it.confirmed()),
            (history, it.index()),
            "{member}"
        );
    }
}

fn ballot_number(world: &World, member: usize) -> Option<u64> {
    replica(world, member).adopted().map(|ballot| ballot.number)
}
