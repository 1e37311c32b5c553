//! Many short runs with every fault; [`World`] checks the invariants at every moment.

use super::*;

fn run(seed: u64) -> Result<(), String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let voters = ["a", "b", "c", "d", "e"];
    let count = rng.random_range(1..=5);
    let seeds = rng.random_range(1..=count);
    let others: &[&str] = if rng.random() { &["x", "y"] } else { &[] };
    let mut world = World::new(seed, &voters[..count], seeds, others);
    world.rules.never_alone = rng.random();
    world.rules.strict_start = rng.random();
    if rng.random() {
        world.rules.intervals = Intervals::LAN;
    }
    world.delay.1 = ms([5, 50, 150][rng.random_range(0..3)]);
    world.disk.1 = ms([5, 100][rng.random_range(0..2)]);
    let names = world.names();
    world.start_all();
    let ttl = world.rules.intervals.ttl();
    for _ in 0..rng.random_range(5..25) {
        let name = &names[rng.random_range(0..names.len())];
        let other = &names[rng.random_range(0..names.len())];
        match rng.random_range(0..10) {
            0 => world.crash(name),
            1 if world.station(name).seeded.is_some() => world.leave(name),
            1 | 2 if world.station(name).seeded.is_none() => world.start(name),
            3 => {
                world.crash(name);
                world.start(name);
            }
            4 => {
                let side: Vec<_> = names.iter().filter(|_| rng.random()).collect();
                let side: Vec<_> = side.into_iter().map(String::as_str).collect();
                world.part(&side, 1);
            }
            5 => world.heal(),
            6 if name != other => {
                world.cut.insert((name.clone(), other.clone()));
            }
            7 => world.cut.clear(),
            8 => world.strays = rng.random_range(0..50),
            9 => {
                let pause = ttl.mul_f64(rng.random_range(0.0..3.0));
                let until = world.now + pause;
                world.station_mut(name).paused_until = until;
            }
            _ => {}
        }
        let most = if rng.random() { ttl } else { ttl * 4 };
        let pause = most.mul_f64(rng.random());
        world.run(pause);
        if !world.violations.is_empty() {
            return Err(format!("{:?}", world.violations));
        }
    }
    world.strays = 0;
    for name in &names {
        world.station_mut(name).paused_until = Time::ZERO;
        if world.station(name).seeded.is_none() {
            world.start(name);
        }
    }
    world.heal();
    // The grace of restarted voters, a TTL, elections that were in each other's way, and rejoining.
    let retry = world.rules.intervals.retry();
    world.run(ttl * 3 + retry * 10 + secs(10));
    let state = |name: &String| {
        let seeded = world.member(name);
        let (role, target, at) = (&seeded.role, &seeded.target, seeded.campaign_at);
        format!(
            "{name}: {role:?} {target:?} {at:?} {:?}",
            seeded.kept().acceptor
        )
    };
    let states = || names.iter().map(state).collect::<Vec<_>>().join("\n");
    let rules = world.rules;
    let all = |why| format!("{why} at {:?} under {rules:?}\n{}", world.now, states());
    world.agreed().map(|_| ()).map_err(all)
}

#[test]
fn votes_choose_one_leader_per_version_and_all_members_are_one_cluster_after_healing() {
    let only = std::env::var("MMN_SEEDED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..1000, |seed: u64| seed..seed + 1);
    let failed: Vec<_> = seeds
        .filter_map(|seed| run(seed).err().map(|why| (seed, why)))
        .collect();
    for (seed, why) in failed.iter().take(5) {
        println!("MMN_SEEDED_SEED={seed}: {why}");
    }
    assert!(failed.is_empty(), "{} runs failed", failed.len());
}
