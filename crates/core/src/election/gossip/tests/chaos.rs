//! Random faults: callbacks alternate (the world asserts that at each of them), and one leader remains once the faults
//! stop. A failure names its seed; [`chaos`] with that seed replays it.

use super::*;

const SEEDS: u64 = 2_000;

/// The longest delay, and the window lengths that a seed chooses from.
const DELAY: Duration = ms(20);
const CHOICES: [(u64, u64); 3] = [(500, 500), (500, 250), (400, 300)];

fn windows((alive_threshold, election_duration): (u64, u64)) -> Windows {
    Windows {
        startup_grace: ms(500),
        sample_interval: ms(100),
        alive_threshold: ms(alive_threshold),
        election_duration: ms(election_duration),
    }
}

fn choose(rng: &mut ChaCha8Rng) -> Settings {
    Settings {
        windows: windows(CHOICES[rng.random_range(0..CHOICES.len())]),
        strict_lowest: rng.random_bool(0.5),
    }
}

/// A room with random faults, run until they stop.
fn chaos(seed: u64) -> World {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut world = World::new(seed, choose(&mut rng));
    world.delay = (ms(1), DELAY);
    let peers = rng.random_range(1..=8);
    for id in 0..peers {
        world.start(id);
        world.run_for(ms(rng.random_range(0..300)));
    }
    for _ in 0..rng.random_range(5..40) {
        let id = rng.random_range(0..peers);
        let alive = world.stations[&id].peer.is_some();
        match rng.random_range(0..12) {
            0..=1 if alive => world.crash(id),
            0..=1 => {
                let part = world.stations[&id].part;
                world.start_all([id], part);
            }
            2..=3 => {
                let parts = rng.random_range(1..=peers);
                let chosen: Vec<u32> = (0..peers).map(|_| rng.random_range(0..parts)).collect();
                world.part(|id| chosen[id as usize]);
            }
            4 => world.loss = [0, 5, 30, 90][rng.random_range(0..4)],
            5 => {
                world.cut.insert((id, rng.random_range(0..peers)));
            }
            6 => world.cut.clear(),
            7 => {
                let until = world.now + ms(rng.random_range(0..1_500));
                world.station(id).paused_until = Some(until);
            }
            8 => world.yield_leadership(id),
            9 => {
                // One peer sees fewer members than there are.
                let gone = rng.random_range(0..peers);
                world.station(id).view.remove(&gone);
            }
            _ => {}
        }
        world.run_for(ms(rng.random_range(0..700)));
    }
    world.loss = 0;
    world.cut.clear();
    for station in world.stations.values_mut() {
        station.paused_until = None;
    }
    world.part(|_| 0);
    world
}

/// The time after the last fault by which there is one leader. A peer that yields may be the only one that could lead.
/// A proposal of a peer that crashed just before may have kept another from leading one more time.
fn settled_within(world: &World) -> Duration {
    let windows = world.settings.windows;
    let alive = || {
        world
            .stations
            .values()
            .filter_map(|station| station.peer.as_ref())
    };
    let settled = windows.alive_threshold * 2 + windows.election_duration * 2 + DELAY * 3;
    if alive().any(|peer| peer.machine().is_yielding()) {
        windows.yield_duration() + settled
    } else {
        settled
    }
}

#[test]
fn one_leader_is_left_when_the_views_are_equal_for_long_enough() {
    for seed in 0..SEEDS {
        let mut world = chaos(seed);
        let alive = world
            .stations
            .values()
            .any(|station| station.peer.is_some());
        let settled = settled_within(&world);
        world.run_for(settled);
        let leaders = world.leaders();
        assert_eq!(
            leaders.len(),
            usize::from(alive),
            "seed {seed}: {leaders:?}"
        );
        // It stays leader, and all peers show it.
        world.run_for(world.settings.windows.alive_threshold * 3);
        assert_eq!(world.leaders(), leaders, "seed {seed}");
        for id in world.ids() {
            if world.stations[&id].peer.is_some() {
                assert_eq!(world.shown(id), leaders.first().copied(), "seed {seed}");
            }
        }
    }
}

/// A settled room of parts, each with its leader.
fn parts(seed: u64) -> (World, Vec<Id>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut world = World::new(seed, choose(&mut rng));
    world.delay = (ms(1), DELAY);
    let peers = rng.random_range(2..=12);
    world.start_all(0..peers, 0);
    world.run_for(ms(rng.random_range(0..3_000)));
    let count = rng.random_range(2..=4);
    let chosen: Vec<u32> = (0..peers).map(|_| rng.random_range(0..count)).collect();
    world.part(|id| chosen[id as usize]);
    let windows = world.settings.windows;
    world.run_for(windows.alive_threshold * 3 + windows.election_duration * 2);
    world.run_for(ms(rng.random_range(0..1_000)));
    let parts: BTreeSet<u32> = chosen.iter().copied().collect();
    let leaders = world.leaders();
    let led: BTreeSet<u32> = leaders.iter().map(|id| chosen[*id as usize]).collect();
    assert_eq!(led, parts, "seed {seed}: every part is led");
    assert_eq!(leaders.len(), parts.len(), "seed {seed}: by one");
    (world, leaders)
}

#[test]
fn the_lowest_leader_remains_within_half_a_threshold_and_two_delays_after_the_parts_merge() {
    for seed in 0..SEEDS {
        let (mut world, leaders) = parts(seed);
        world.part(|_| 0);
        world.run_for(world.settings.windows.declaration_interval() + DELAY * 2);
        assert_eq!(world.leaders(), leaders[..1], "seed {seed}");
        world.run_for(world.settings.windows.alive_threshold * 4);
        assert_eq!(world.leaders(), leaders[..1], "seed {seed}");
    }
}

#[test]
fn a_lost_leader_is_replaced_within_two_thresholds_and_an_election() {
    for seed in 0..SEEDS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut world = World::new(seed, choose(&mut rng));
        world.delay = (ms(1), DELAY);
        for id in (0..rng.random_range(2..=10)).rev() {
            world.start(id);
            world.run_for(ms(rng.random_range(0..400)));
        }
        world.run_for(ms(5_000 + rng.random_range(0..1_000)));
        let leaders = world.leaders();
        assert_eq!(leaders.len(), 1, "seed {seed}");
        world.crash(leaders[0]);
        let windows = world.settings.windows;
        let longest = windows.alive_threshold * 2 + windows.election_duration + DELAY * 2;
        world.run_for(longest);
        assert_eq!(world.leaders().len(), 1, "seed {seed}");
    }
}

#[test]
fn same_seed_same_history() {
    let history = |seed| {
        let mut world = chaos(seed);
        world.run_for(ms(3_000));
        let reported = |station: &Station| (station.callbacks.clone(), station.declared.clone());
        let stations = world.stations.values().map(reported);
        (world.sent, stations.collect::<Vec<_>>())
    };
    assert_eq!(history(7), history(7));
    assert_ne!(history(7), history(8));
}
