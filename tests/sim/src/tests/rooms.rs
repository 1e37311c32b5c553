//! Rooms for the named situations: setup and queries.

use room_core::election::AssignOutcome;
use room_core::election::gossip::Windows;
use room_core::id::PeerId;
use room_core::node::{Command, Event};
use room_core::time::Duration;

use crate::trace::Trace;
use crate::world::{Settings, World};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Windows of gossip with which a room elects within seconds.
pub(crate) const fn short_windows() -> Windows {
    Windows {
        startup_grace: ms(1500),
        sample_interval: ms(100),
        alive_threshold: ms(1000),
        election_duration: ms(500),
    }
}

/// Longest round trip of the default settings.
pub(crate) const RTT: Duration = ms(10);

pub(crate) fn fail(world: &World, what: &str) -> ! {
    for line in world.trace.lines() {
        println!("{line}");
    }
    panic!("{what}{}", world.describe());
}

pub(crate) fn expect(world: &World, holds: bool, what: &str) {
    if let Some(violation) = &world.violation {
        fail(world, &violation.to_string());
    }
    if !holds {
        fail(world, what);
    }
}

pub(crate) fn empty(seed: u64, size: usize, settings: Settings) -> World {
    World::new(seed, size, settings, Trace::on())
}

/// Runs until `done`; returns the time that it took.
pub(crate) fn wait(
    world: &mut World,
    most: Duration,
    what: &str,
    done: impl Fn(&World) -> bool,
) -> Duration {
    let from = world.now;
    while !done(world) {
        let late = world.now.since(from) > most;
        expect(world, !late, what);
        world.run_for(ms(1));
    }
    expect(world, true, what);
    world.now.since(from)
}

/// A room in which all are linked and have followed one leader for some seconds.
pub(crate) fn settled(seed: u64, size: usize, settings: Settings) -> World {
    let mut world = empty(seed, size, settings);
    settle(&mut world);
    world
}

pub(crate) fn settle(world: &mut World) {
    for slot in 0..world.slots.len() {
        world.start(slot);
        world.connect(slot, 0);
    }
    wait(world, ms(15_000), "no first leader", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world.run_for(ms(3_000));
}

pub(crate) fn leader(world: &World) -> usize {
    world
        .agreed()
        .unwrap_or_else(|| fail(world, "no agreed leader"))
}

pub(crate) fn forget_reported(world: &mut World) {
    for slot in &mut world.slots {
        slot.reported.clear();
        slot.events.clear();
    }
}

pub(crate) fn reported(world: &World, slot: usize) -> Vec<Option<&str>> {
    let reported = world.slots[slot].reported.iter();
    reported
        .map(|(_, leader)| leader.as_ref().map(PeerId::as_str))
        .collect()
}

pub(crate) fn outcomes(world: &World, slot: usize) -> Vec<AssignOutcome> {
    let events = world.slots[slot].events.iter();
    events
        .filter_map(|(_, event)| match event {
            Event::SetLeaderResult { outcome, .. } => Some(*outcome),
            _ => None,
        })
        .collect()
}

/// A command that is accepted.
pub(crate) fn order(world: &mut World, slot: usize, command: Command) {
    let result = world.command(slot, command);
    expect(world, result.is_ok(), "the command was refused");
}

pub(crate) fn isolate(world: &mut World, slot: usize) {
    for other in 0..world.slots.len() {
        if other != slot {
            world.cut_both(slot, other);
        }
    }
}

pub(crate) fn rejoin(world: &mut World, slot: usize) {
    for other in 0..world.slots.len() {
        if other != slot {
            world.mend_both(slot, other);
        }
    }
}

pub(crate) fn median_and_worst(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() - 1])
}
