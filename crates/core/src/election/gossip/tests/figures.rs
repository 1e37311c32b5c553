//! Consequences of the windows: the time that a room is without a leader, and which peer leads next.

use super::*;

/// Trials of each figure.
const TRIALS: u64 = 400;

/// The result of a leader's loss.
struct Failover {
    took: Duration,
    /// Whether the survivor with the lowest id leads next.
    lowest: bool,
}

/// Peers that start within `spread` of one another, in any order; then the leader crashes at some moment.
fn fail_over(seed: u64, peers: u32, settings: Settings, spread: Duration) -> Failover {
    let mut world = World::new(seed, settings);
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let within = |rng: &mut ChaCha8Rng, span: Duration| {
        let span = u64::try_from(span.as_micros()).expect("short");
        Duration::from_micros(rng.random_range(0..=span))
    };
    let mut starts: Vec<(Duration, Id)> = (0..peers)
        .map(|id| (within(&mut rng, spread), id))
        .collect();
    starts.sort();
    for (start, id) in starts {
        world.run_until(Time::ZERO + start);
        world.start(id);
    }
    let threshold = settings.windows.alive_threshold;
    world.run_for(spread + threshold * 4);
    world.run_for(within(&mut rng, threshold));
    let leaders = world.leaders();
    assert_eq!(leaders.len(), 1, "seed {seed}");
    world.crash(leaders[0]);
    let crashed = world.now;
    world.run_for(threshold * 3 + settings.windows.election_duration);
    let declared = |(id, station): (&Id, &Station)| {
        let next = station.declared.iter().find(|when| **when > crashed);
        next.map(|when| (*when, *id))
    };
    let next = world.stations.iter().filter_map(declared).min();
    let (when, next) = next.unwrap_or_else(|| panic!("no leader, seed {seed}"));
    Failover {
        took: when.since(crashed),
        lowest: world.ids().into_iter().find(|id| *id != leaders[0]) == Some(next),
    }
}

fn trials(peers: u32, settings: Settings, spread: Duration) -> Vec<Failover> {
    (0..TRIALS)
        .map(|seed| fail_over(seed, peers, settings, spread))
        .collect()
}

/// The minimum, the median, the 90th percentile and the maximum, in seconds.
fn spread_of(failovers: &[Failover]) -> [f64; 4] {
    let mut took: Vec<f64> = failovers.iter().map(|one| one.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    [0, took.len() / 2, took.len() * 9 / 10, took.len() - 1].map(|index| took[index])
}

fn share_of_lowest(failovers: &[Failover]) -> f64 {
    let lowest = failovers.iter().filter(|one| one.lowest).count();
    100.0 * lowest as f64 / failovers.len() as f64
}

#[test]
fn a_lost_leader_is_replaced_after_ten_to_twenty_five_seconds_and_half_the_time_within_fifteen() {
    for peers in [3, 10] {
        let failovers = trials(peers, settings(Windows::default()), ms(20_000));
        let [least, median, ninth, most] = spread_of(&failovers);
        println!("n={peers}: {least:.1} {median:.1} {ninth:.1} {most:.1} s");
        assert!(least >= 10.0 && most <= 25.1, "{least} {most}");
        assert!((13.5..=16.5).contains(&median), "{median}");
        assert!((18.0..=22.0).contains(&ninth), "{ninth}");
    }
}

/// The start times of the peers decide how far their windows lie apart, and so the share. All windows of peers that
/// start in one instant overlap; these start within a second.
#[test]
fn the_lowest_survivor_wins_most_elections_that_are_shorter_than_the_threshold() {
    for (peers, share) in [(3, 96.0), (5, 90.0), (10, 78.0), (30, 74.0)] {
        let failovers = trials(peers, settings(Windows::default()), ms(1_000));
        let found = share_of_lowest(&failovers);
        println!("n={peers}: {found:.1} % of {share} %");
        assert!((found - share).abs() <= 10.0, "n={peers}: {found}");
        assert!(found < 100.0, "n={peers}");
    }
}

#[test]
fn the_lowest_wins_every_election_if_the_lowest_is_required() {
    for peers in [3, 5, 10, 30] {
        let settings = Settings {
            windows: Windows::default(),
            strict_lowest: true,
        };
        let failovers = trials(peers, settings, ms(20_000));
        assert!(failovers.iter().all(|one| one.lowest), "n={peers}");
        let [least, median, _, most] = spread_of(&failovers);
        println!("n={peers}: {least:.1} {median:.1} {most:.1} s");
        assert!(least >= 10.0 && most <= 25.1, "{least} {most}");
    }
}

#[test]
fn the_lowest_wins_where_an_election_is_as_long_as_the_threshold() {
    let windows = Windows {
        election_duration: ms(10_100),
        ..Windows::default()
    };
    let failovers = trials(5, settings(windows), ms(20_000));
    let found = share_of_lowest(&failovers);
    println!("{found:.1} %");
    assert!(found >= 99.9, "{found}");
}

#[test]
fn on_a_lan_with_short_windows_a_lost_leader_is_replaced_in_less_than_a_second_and_a_half() {
    let windows = Windows {
        startup_grace: ms(750),
        sample_interval: ms(50),
        alive_threshold: ms(500),
        election_duration: ms(250),
    };
    for peers in [3, 10] {
        let failovers = trials(peers, settings(windows), ms(1_000));
        let [least, median, _, most] = spread_of(&failovers);
        println!("n={peers}: {least:.2} {median:.2} {most:.2} s");
        assert!(most < 1.5, "{most}");
    }
}
