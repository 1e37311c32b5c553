//! Rooms that meet.

use room_state::replica::Input;

use super::{act, replica};
use crate::case::Case;
use crate::world::World;

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
