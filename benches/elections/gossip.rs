//! Rooms that elect by gossip: the effect of the windows' lengths.

use rand::Rng;
use room_core::election::gossip::Windows;
use room_core::time::Duration;
use room_core::wire::Strategy;
use room_simulator::trace::Trace;
use room_simulator::world::{Settings, World};

use super::{DEFAULT, LAN, Report, TIMEOUT, Timers, all, ms, run, wait};

/// A kind of room.
#[derive(Debug, Clone, Copy)]
struct Room {
    nodes: usize,
    /// Mean of the one-way delay; every message draws between half of it and one and a half.
    delay: Duration,
    timers: Timers,
    windows: Windows,
    strict_lowest: bool,
    /// Members start at any time within this.
    spread: Duration,
}

/// One loss of a leader.
struct Failover {
    took: Duration,
    messages: u64,
    /// Whether the lowest remaining id leads.
    lowest: bool,
}

impl Room {
    fn new(nodes: usize, strict_lowest: bool) -> Self {
        Self {
            nodes,
            delay: Duration::from_millis(5),
            timers: DEFAULT,
            windows: Windows::default(),
            strict_lowest,
            spread: Duration::from_secs(20),
        }
    }

    /// The windows and the heartbeats of a LAN.
    fn lan(nodes: usize) -> Self {
        let windows = Windows {
            startup_grace: Duration::from_millis(750),
            sample_interval: Duration::from_millis(50),
            alive_threshold: Duration::from_millis(500),
            election_duration: Duration::from_millis(250),
        };
        Self {
            delay: Duration::from_micros(7_500),
            timers: LAN,
            windows,
            spread: Duration::from_secs(1),
            ..Self::new(nodes, true)
        }
    }

    fn empty(&self, seed: u64) -> World {
        let settings = Settings {
            strategy: Strategy::Gossip {
                strict_lowest: self.strict_lowest,
            },
            windows: self.windows,
            ..self.timers.settings(self.delay)
        };
        World::new(seed, self.nodes, settings, Trace::off())
    }

    /// A room that has followed one leader for four thresholds and some time.
    fn settled(&self, seed: u64) -> World {
        let mut world = self.empty(seed);
        let from = world.now;
        let mut starts: Vec<(Duration, usize)> = (1..self.nodes)
            .map(|slot| (world.between(Duration::ZERO, self.spread), slot))
            .collect();
        starts.push((Duration::ZERO, 0));
        starts.sort();
        for (start, slot) in starts {
            let rest = (from + start).since(world.now);
            run(&mut world, rest);
            world.start(slot);
            world.connect(slot, 0);
        }
        let formed = wait(&mut world, TIMEOUT * 2, |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        assert!(formed.is_some(), "seed {seed}: no room of {self:?}");
        let threshold = self.windows.alive_threshold;
        let rest = threshold.mul_f64(4.0 + world.rng.random::<f64>());
        run(&mut world, rest);
        world
    }

    fn fail_over(&self, seed: u64) -> Option<Failover> {
        let mut world = self.settled(seed);
        let leader = world.agreed()?;
        let messages = world.election_messages;
        world.crash(leader);
        let took = wait(&mut world, TIMEOUT, |world| world.agreed().is_some())?;
        let next = world.agreed()?;
        let ids = world.running().into_iter();
        let lowest = ids.min_by(|a, b| world.slots[*a].id.cmp(&world.slots[*b].id));
        Some(Failover {
            took,
            messages: world.election_messages - messages,
            lowest: lowest == Some(next),
        })
    }

    /// All members start at once. Returns the time until one leads.
    fn first_leader(&self, seed: u64) -> Option<Duration> {
        let mut world = self.empty(seed);
        for slot in 0..self.nodes {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, TIMEOUT, |world| !world.leaders().is_empty())
    }

    fn describe(&self) -> String {
        let strict = if self.strict_lowest {
            ", strict_lowest"
        } else {
            ""
        };
        let Windows {
            alive_threshold,
            election_duration,
            ..
        } = self.windows;
        let Timers { millis, .. } = self.timers;
        format!(
            "{} peers, {} one way; AL {}, ED {}{strict}; heartbeats {} / {} ms",
            self.nodes,
            ms(self.delay),
            window(alive_threshold),
            window(election_duration),
            millis[0],
            millis[1],
        )
    }
}

/// Runs this part; see the module's text.
pub(super) fn part(report: &mut Report) {
    report.line("\n### Rooms that elect by gossip: crash of the leader, until all living members show one\n");
    report.line("AL is the alive threshold, ED the election duration. The column \"the lowest leads next\" is the\nshare of the crashes after which the lowest id led.\n");
    report.line("| room | crashes | least | p50 | p90 | most | the lowest leads next | messages per peer | demanded | met |");
    report.line("|---|---|---|---|---|---|---|---|---|---|");
    for strict_lowest in [false, true] {
        for (nodes, trials) in [(3, 400), (10, 400), (30, 100)] {
            let room = Room::new(nodes, strict_lowest);
            row(report, room, trials, [10_000, 25_000]);
        }
    }
    for nodes in [3, 10] {
        row(report, Room::lan(nodes), 400, [500, 1_500]);
    }
    report.line("\n### Rooms that elect by gossip: first leader, all started at once\n");
    report.line("A sample, an election, and one more sample if the membership differs between the first two,\nbecause links come up meanwhile.\n");
    report.line("| room | runs | least | most | demanded | met |");
    report.line("|---|---|---|---|---|---|");
    for (nodes, demanded) in [(1, 6_000), (3, 7_000), (10, 7_000), (30, 7_000)] {
        let room = Room::new(nodes, false);
        let trials = report.trials(40);
        let mut times: Vec<Duration> = all(trials, |seed| room.first_leader(seed))
            .into_iter()
            .flatten()
            .collect();
        times.sort();
        let (least, most) = (times[0], times[times.len() - 1]);
        let demanded = Duration::from_millis(demanded);
        // Times have a resolution of a millisecond.
        let late = Duration::from_millis(2);
        let met =
            times.len() as u64 == trials && least + late >= demanded && most <= demanded + late;
        let verdict = report.verdict(met);
        report.line(&format!(
            "| {nodes} peers | {trials} | {} | {} | {} | {verdict} |",
            seconds(least),
            seconds(most),
            seconds(demanded)
        ));
    }
}

/// Crashes in rooms of one kind, each in a room of its own. `demanded` are the least and the most, in milliseconds,
/// before the last messages have arrived.
fn row(report: &mut Report, room: Room, trials: u64, demanded: [u64; 2]) {
    let trials = report.trials(trials);
    let seen: Vec<Failover> = all(trials, |seed| room.fail_over(seed))
        .into_iter()
        .flatten()
        .collect();
    let mut times: Vec<Duration> = seen.iter().map(|one| one.took).collect();
    times.sort();
    let lowest = seen.iter().filter(|one| one.lowest).count();
    let share = 100.0 * lowest as f64 / seen.len() as f64;
    let messages = seen.iter().map(|one| one.messages).sum::<u64>() as f64;
    let messages = messages / (seen.len() * room.nodes) as f64;
    let at = |part: usize| times[(times.len() - 1) * part / 10];
    let [least, most] = demanded.map(Duration::from_millis);
    let trips = room.delay * 3 / 2 * 3;
    let in_time = seen.len() as u64 == trials && at(0) >= least && at(10) <= most + trips;
    let met = in_time && (!room.strict_lowest || lowest == seen.len());
    let verdict = report.verdict(met);
    let all_of_them = if room.strict_lowest { ", 100 %" } else { "" };
    report.line(&format!(
        "| {} | {} | {} | {} | {} | {} | {share:.1} % | {messages:.1} | {} to {}{all_of_them} | {verdict} |",
        room.describe(),
        seen.len(),
        seconds(at(0)),
        seconds(at(5)),
        seconds(at(9)),
        seconds(at(10)),
        seconds(least),
        seconds(most),
    ));
}

fn window(length: Duration) -> String {
    if length >= Duration::from_secs(1) {
        format!("{} s", length.as_secs_f64())
    } else {
        ms(length)
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}
