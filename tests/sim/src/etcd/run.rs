//! One run: members and their store under faults, then healing, then a regular end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rand::Rng;

use room_core::election::Local;
use room_core::time::Duration;

use super::world::{Net, PREFIX, World};

/// Duration of the faults.
const FAULTS: u64 = 60_000;
/// Locks that members want.
const LOCKS: [&str; 2] = ["shard", "shard/1"];

/// Result of a run.
#[derive(Debug)]
pub struct Run {
    /// The broken property, if any.
    pub broken: Option<String>,
    /// Log of events.
    pub lines: Vec<String>,
    /// Number of leaderships.
    pub leaderships: u64,
    /// Number of acquired locks.
    pub locked: u64,
}

/// One run, decided by a seed.
pub fn run(seed: u64) -> Run {
    let mut rng = World::new(seed, 0, Duration::ZERO, QUIET).rng;
    let ttl = Duration::from_secs([2, 3, 5, 10][rng.random_range(0..4)]);
    let size = rng.random_range(2..=6);
    let slow = [2_000, 50_000, 300_000][rng.random_range(0..3)];
    let net = Net {
        delay_us: (200, slow),
        lost: [0, 10, 100][rng.random_range(0..3)],
        late: [0, 10, 50][rng.random_range(0..3)],
    };
    let mut world = World::new(seed.wrapping_add(1), size, ttl, net);
    for member in &mut world.members {
        member.rate = rng.random_range(850..=1150);
    }
    let broken = catch_unwind(AssertUnwindSafe(|| live(&mut world))).err();
    let broken = broken.map(|panic| match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic
            .downcast_ref::<&str>()
            .unwrap_or(&"a panic")
            .to_string(),
    });
    let led = world.members.iter().map(|member| {
        let mine = |(_, leader, _): &&(_, Option<_>, _)| leader.as_ref() == Some(&member.id);
        member.shown.iter().filter(mine).count() as u64
    });
    let leaderships = led.sum();
    let locked = world.members.iter().map(|member| member.ended.len() as u64);
    Run {
        broken,
        leaderships,
        locked: locked.sum(),
        lines: world.lines().to_vec(),
    }
}

const QUIET: Net = Net {
    delay_us: (200, 2_000),
    lost: 0,
    late: 0,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn live(world: &mut World) {
    let size = world.members.len();
    let mut request = 0;
    for slot in 0..size {
        // One of them may be an observer.
        let campaigns = slot == 0 || world.rng.random_bool(0.8);
        world.start(slot, campaigns);
    }
    let end = world.now + ms(FAULTS);
    while world.now < end {
        let pause = world.rng.random_range(1..=3_000);
        world.run_for(ms(pause));
        fault(world, &mut request);
    }
    heal(world);
    let bound = world.ttl * 3 + ms(10_000);
    world.run_for(bound);
    assert!(world.agreed().is_some(), "one leader after {bound:?}");
    assert_eq!(world.leaders().len(), 1, "it leads");
    let leader = world.agreed();
    world.run_for(world.ttl * 3);
    assert_eq!(world.agreed(), leader, "and stays");
    for member in &world.members {
        assert!(
            member.asked.is_empty(),
            "{:?} are not answered",
            member.asked
        );
    }
    leave_in_turn(world);
}

fn heal(world: &mut World) {
    let paused = world.members.iter().map(|member| member.paused_until);
    let awake = paused.max().unwrap_or(world.now);
    world.run_until(awake);
    world.note(format_args!("---- healed ----"));
    world.net = QUIET;
    if !world.is_up {
        world.set_up(true);
    }
    for slot in 0..world.members.len() {
        if world.members[slot].is_cut {
            world.cut(slot, false);
        }
        if world.members[slot].process.is_none() {
            world.start(slot, true);
        } else {
            for input in [Local::SetEligible(true), Local::EnableAuto(true)] {
                world.order(slot, input).expect("it takes it");
            }
        }
        for name in LOCKS {
            // Each member that waits for it or holds it releases it; the others are notified.
            let name: Arc<str> = name.into();
            let _ = world.release(slot, &name);
        }
    }
}

/// They leave one after the other, the leader first; the next one leads at once.
fn leave_in_turn(world: &mut World) {
    for left in (0..world.members.len()).rev() {
        let [leader] = world.leaders()[..] else {
            panic!("one leads");
        };
        world.order(leader, Local::Leave).expect("it leaves");
        world.run_for(ms(200));
        let process = world.members[leader].process.as_ref().expect("it runs");
        assert!(process.machine.has_left(), "member-{leader} is done");
        world.kill(leader);
        assert_eq!(
            world.leaders().len(),
            usize::from(left > 0),
            "the next leads"
        );
    }
    assert!(world.store.keys(PREFIX).is_empty(), "no key is left");
}

fn fault(world: &mut World, request: &mut u64) {
    let slot = world.rng.random_range(0..world.members.len());
    let runs = world.members[slot].process.is_some();
    let awake = world.members[slot].paused_until <= world.now;
    let long = world
        .rng
        .random_range(50..=world.ttl.as_millis() as u64 * 2);
    let name: Arc<str> = LOCKS[world.rng.random_range(0..LOCKS.len())].into();
    let answers_host = runs && awake;
    match world.rng.random_range(0..16) {
        0 | 1 if runs => world.kill(slot),
        0..=3 if !runs => {
            let campaigns = world.rng.random_bool(0.8);
            world.start(slot, campaigns);
        }
        2 | 3 if awake => world.pause(slot, ms(long)),
        4 | 5 => {
            let is_cut = !world.members[slot].is_cut;
            world.cut(slot, is_cut);
        }
        6 if world.rng.random_bool(0.5) || !world.is_up => {
            let is_up = !world.is_up;
            world.set_up(is_up);
        }
        7 => world.compact(),
        8 if answers_host => {
            // Not the leader: refused, without any change.
            let _ = world.order(slot, Local::Transfer { target: None });
        }
        9 if answers_host => {
            let text = format!("{}", world.rng.random_range(0..3));
            world.proclaim(slot, &text);
        }
        10 if answers_host => {
            let enabled = world.rng.random_bool(0.7);
            world
                .order(slot, Local::EnableAuto(enabled))
                .expect("it may");
        }
        11 if answers_host => {
            let eligible = world.rng.random_bool(0.7);
            world
                .order(slot, Local::SetEligible(eligible))
                .expect("it may");
        }
        12 | 13 if answers_host => {
            *request += 1;
            let wait = match world.rng.random_range(0..3) {
                0 => None,
                1 => Some(Duration::ZERO),
                _ => Some(ms(long)),
            };
            world.acquire(slot, *request, &name, wait).expect("it may");
        }
        14 if answers_host => {
            let _ = world.release(slot, &name);
        }
        15 if runs => {
            // Like an upgrade: the member returns at once.
            world.kill(slot);
            world.start(slot, true);
        }
        _ => {}
    }
}
