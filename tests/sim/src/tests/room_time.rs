//! One time for a room: calm rooms agree on it, also after their leader and after a merge. It goes back in no run of any test.

use room_core::time::Duration;

use super::rooms::*;
use crate::world::{Settings, World};

const SEEDS: u64 = 40;
/// Maximum deviation of a clock, in parts per million.
const DEVIATION_PPM: u32 = 1_000;
/// Corrections and measurements of a room that has just become calm are over.
const CALM: Duration = ms(10_000);

fn slow() -> Settings {
    Settings {
        delay: (ms(1), ms(120)),
        ..Settings::default()
    }
}

/// Members with clocks of their own.
fn members(seed: u64, size: usize) -> World {
    let mut world = empty(seed, size, slow());
    for slot in 0..size {
        let part = (seed * 7 + slot as u64 * 13) % u64::from(2 * DEVIATION_PPM + 1);
        let deviation = u32::try_from(part).expect("small");
        world.slots[slot].clock_rate = 1_000_000 - DEVIATION_PPM + deviation;
    }
    world
}

fn agree_on_a_leader(world: &mut World) {
    wait(world, ms(60_000), "no leader", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world.run_for(CALM);
}

/// For ten seconds all show the leader's time, within the error that each shows, and within half of the worst round trip. The
/// error also counts the correction that is under way. Returns the smallest time.
fn agree_on_the_time(world: &mut World) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..100 {
        world.run_for(ms(100));
        let (leads, error) = world.room_time(leader(world)).expect("it runs");
        expect(world, error == Some(Duration::ZERO), "a leader's error");
        for slot in world.running() {
            let (time, error) = world.room_time(slot).expect("it runs");
            let error = error.unwrap_or(Duration::MAX);
            let apart = Duration::from_micros(time.abs_diff(leads));
            expect(
                world,
                apart <= error + ms(1),
                &format!("{apart:?}, {error:?} "),
            );
            expect(world, apart <= ms(120), &format!("{apart:?} apart "));
            expect(world, error <= ms(240), &format!("an error of {error:?} "));
            least = least.min(time);
        }
    }
    least
}

#[test]
fn all_members_show_one_time_and_the_next_leader_goes_on_with_it() {
    for seed in 0..SEEDS {
        let size = 2 + (seed % 4) as usize;
        let mut world = members(seed, size);
        world.start(0);
        world.run_for(ms(20_000));
        for slot in 1..size {
            world.start(slot);
            world.connect(slot, 0);
        }
        agree_on_a_leader(&mut world);
        let time = agree_on_the_time(&mut world);
        expect(&world, time > 29_000_000, "newcomers of an older room");
        let leads = leader(&world);
        world.crash(leads);
        agree_on_a_leader(&mut world);
        let next = agree_on_the_time(&mut world);
        expect(&world, next > time + 10_000_000, "the next leader");
    }
}

#[test]
fn of_two_rooms_that_become_one_the_older_one_gives_the_time() {
    for seed in 0..SEEDS {
        let mut world = members(seed, 5);
        let older = [0, 1];
        let younger = [2, 3, 4];
        for slot in older {
            world.start(slot);
            world.connect(slot, 0);
        }
        world.run_for(ms(30_000));
        for slot in younger {
            world.start(slot);
            world.connect(slot, 2);
        }
        world.run_for(ms(10_000));
        let (time, _) = world.room_time(2).expect("it runs");
        expect(&world, time < 11_000_000, "the younger room's own time");
        world.connect(2, 0);
        agree_on_a_leader(&mut world);
        let time = agree_on_the_time(&mut world);
        expect(&world, time > 49_000_000, "the older room's time");
    }
}
