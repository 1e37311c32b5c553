//! Fixed hosts that start anew.

use room_state::ballot::History;

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::World;

/// The hold of the simulated rooms.
const HOLD_MS: u64 = 5000;

/// A room whose host starts anew and orders something before its guests are back; and the room's history before.
fn restarted(members: usize) -> (World, Option<History>) {
    let mut world = led(&Case::hosted(members));
    let history = replica(&world, 0).history();
    act(&mut world, |world| world.crash(0));
    world.start(0);
    act(&mut world, |world| world.elect(0));
    act(&mut world, |world| world.submit(0));
    act(&mut world, World::deliver_all);
    assert_ne!(replica(&world, 0).history(), history);
    (world, history)
}

fn comes_back(world: &mut World, guest: usize) {
    act(world, |world| world.link(0, guest));
    act(world, World::deliver_all);
}

#[test]
fn a_restarted_host_goes_on_with_the_history_of_its_guests() {
    let (mut world, history) = restarted(4);
    for guest in 1..=2 {
        comes_back(&mut world, guest);
        assert!(
            replica(&world, 0).leads().is_none(),
            "half of its roster is back"
        );
    }
    comes_back(&mut world, 3);
    let host = replica(&world, 0);
    assert!(host.leads().is_some());
    assert_eq!(host.history(), history);
    assert!(host.tables().is_exclusive());
}

#[test]
fn it_waits_for_its_guests_as_long_as_for_any_lost_member() {
    let (mut world, history) = restarted(4);
    comes_back(&mut world, 1);
    pass(&mut world, HOLD_MS - 1);
    assert!(replica(&world, 0).leads().is_none());
    pass(&mut world, 1);
    act(&mut world, World::deliver_all);
    let host = replica(&world, 0);
    assert!(host.leads().is_some());
    assert!(
        !host.tables().is_exclusive(),
        "a fork of the guest's history"
    );
    let actions = host.tables().actions();
    let forked = replica(&world, 0).history();
    assert_ne!(forked, history);
    // A guest that comes back later takes what the others have gone on with.
    comes_back(&mut world, 2);
    let host = replica(&world, 0);
    assert_eq!((host.history(), host.tables().actions()), (forked, actions));
    assert_eq!(replica(&world, 2).history(), forked);
}

#[test]
fn the_only_guest_is_enough() {
    let (mut world, _) = restarted(2);
    let kept = replica(&world, 1).tables().actions();
    comes_back(&mut world, 1);
    let host = replica(&world, 0);
    assert!(host.leads().is_some());
    assert_eq!(
        host.tables().actions(),
        kept,
        "the guest's action, not the host's"
    );
}
