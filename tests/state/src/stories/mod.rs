//! Rooms in which only what the test names happens.

mod fixed_host;
mod forging;
mod holding_up;
mod leaving;
mod merging;
mod snapshots;
mod stalls;
mod timing;

use room_core::time::Duration;
use room_state::replica::Replica;

use crate::case::Case;
use crate::world::World;

/// A room with a confirmed request, which the first member leads.
fn led(case: &Case) -> World {
    let mut world = World::new(case, 1);
    act(&mut world, World::heal);
    act(&mut world, |world| world.elect(0));
    act(&mut world, World::deliver_all);
    act(&mut world, |world| world.submit(1));
    act(&mut world, World::deliver_all);
    for index in 0..world.nodes.len() {
        let replica = replica(&world, index);
        assert_eq!(replica.confirmed(), replica.index(), "{index}");
    }
    world
}

fn act(world: &mut World, act: impl FnOnce(&mut World) -> Result<(), String>) {
    act(world).expect("no property is broken");
}

fn replica(world: &World, index: usize) -> &Replica {
    world.nodes[index].replica.as_ref().expect("it runs")
}

fn pass(world: &mut World, ms: u64) {
    act(world, |world| world.pass_time(Duration::from_millis(ms)));
}
