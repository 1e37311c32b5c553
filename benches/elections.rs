//! Measures elections in simulated rooms: `make figures` runs this and writes the tables into `docs/figures.md`.
//!
//! ```sh
//! cargo bench --bench elections                                    # prints the tables; ten minutes on two cores
//! cargo bench --bench elections -- --quick                         # a twentieth of the runs
//! cargo bench --bench elections -- --only heals                    # one part: failovers, kills, stalls, spread, losses, ..., gossip
//! cargo bench --bench elections -- --only failovers --row "20 % loss"  # the rows of crashes with that in their name
//! cargo bench --bench elections -- --write docs/figures.md       # puts them between the marks of that file
//! ```
//!
//! Time is virtual, so that the figures do not depend on the machine. Every table has a column with its requirement;
//! the program fails when a row does not meet it.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rand::Rng;
use room_core::election::guards::Guards;
use room_core::id::PeerId;
use room_core::node::Command;
use room_core::time::Duration;
use room_simulator::trace::Trace;
use room_simulator::world::{Settings, World};

#[path = "elections/gossip.rs"]
mod gossip;

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";
/// Beginning of a section of the figures.
const TITLE: &str = "### ";
/// Limit of the time to agree: a room that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Resolution of the times.
const STEP: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let mut quick = false;
    let mut write = None;
    let mut only = None;
    let mut row = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--write" => write = arguments.next(),
            "--only" => only = arguments.next(),
            "--row" => row = arguments.next(),
            "--bench" => {} // cargo adds it
            other => {
                eprintln!(
                    "{other} is no argument of this program: --quick, --only PART, --row TEXT, --write FILE"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let mut report = Report::new(quick, row);
    type Part = fn(&mut Report);
    let parts: [(&str, Part); 10] = [
        ("failovers", Report::failovers),
        ("kills", Report::kills),
        ("stalls", Report::stalls),
        ("spread", Report::spread),
        ("losses", Report::losses),
        ("transfers", Report::transfers),
        ("heals", Report::heals),
        ("stability", Report::stability),
        ("hour", Report::an_hour),
        ("gossip", gossip::part),
    ];
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let mut known = false;
    for (name, part) in parts {
        if wanted(name) {
            known = true;
            part(&mut report);
        }
    }
    if !known {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "there is no part of that name; there are {}",
            names.join(", ")
        );
        return ExitCode::FAILURE;
    }
    println!("{}", report.text);
    if let Some(path) = write
        && let Err(error) = put(&path, &report.text, only.is_some())
    {
        eprintln!("{path}: {error}");
        return ExitCode::FAILURE;
    }
    if report.missed > 0 {
        eprintln!("{} rows do not meet what is demanded", report.missed);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Replaces the text between the marks of a file; if one part was made, only the sections with its titles.
fn put(path: &str, text: &str, one_part: bool) -> Result<(), String> {
    let old = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let (head, rest) = old.split_once(BEGIN).ok_or(format!("{BEGIN} is missing"))?;
    let (before, tail) = rest.split_once(END).ok_or(format!("{END} is missing"))?;
    let text = if one_part && !text.trim_start().starts_with(TITLE) {
        return Err("this part is a row of another's table: write them together".into());
    } else if one_part {
        merged(before.trim(), text.trim())
    } else {
        text.to_owned()
    };
    let new = format!("{head}{BEGIN}\n\n{text}\n{END}{tail}");
    std::fs::write(path, new).map_err(|error| error.to_string())
}

/// The old sections with the new ones in place of those with the same title; further new ones come last.
fn merged(old: &str, new: &str) -> String {
    let sections = |text: &str| -> Vec<String> {
        let mut sections = vec![String::new()];
        for line in text.lines() {
            if line.starts_with(TITLE) {
                sections.push(String::new());
            }
            if let Some(section) = sections.last_mut() {
                section.push_str(line);
                section.push('\n');
            }
        }
        sections
    };
    let title = |section: &str| section.lines().next().unwrap_or_default().to_owned();
    let mut all = sections(old);
    for section in sections(new) {
        if !section.starts_with(TITLE) {
            continue;
        }
        let same = |other: &&mut String| title(other) == title(&section);
        match all.iter_mut().find(same) {
            Some(other) => *other = section,
            None => all.push(section),
        }
    }
    let all: Vec<&str> = all.iter().map(|section| section.trim()).collect();
    format!("{}\n", all.join("\n\n").trim())
}

/// A kind of room.
#[derive(Debug, Clone, Copy)]
struct Room {
    nodes: usize,
    /// Mean of the one-way delay; every message draws between half of it and one and a half.
    delay: Duration,
    /// Share of lost packets. Streams send them again.
    loss: f64,
    timers: Timers,
    guards: Guards,
    /// Whether empty datagrams follow urgent ones.
    trailers: bool,
    /// Whether the machine of a killed process reports its port as closed.
    reports: bool,
    /// Messages of a game that each member sends to each other, a second.
    play: u32,
}

/// Heartbeat interval, heartbeat timeout, election timeouts.
#[derive(Debug, Clone, Copy)]
struct Timers {
    name: &'static str,
    millis: [u64; 4],
}

const DEFAULT: Timers = Timers {
    name: "default",
    millis: [500, 1500, 1500, 3000],
};
const FAST: Timers = Timers {
    name: "fast: 200 / 600 / 600-1200",
    millis: [200, 600, 600, 1200],
};
const LAN: Timers = Timers {
    name: "LAN: 75 / 150 / 150-300",
    millis: [75, 150, 150, 300],
};

impl Timers {
    /// Settings with these timers and this mean one-way delay.
    fn settings(&self, delay: Duration) -> Settings {
        let [interval, timeout, min, max] = self.millis.map(Duration::from_millis);
        Settings {
            heartbeat_interval: interval,
            heartbeat_timeout: timeout,
            election_timeout_min: min,
            election_timeout_max: max,
            delay: (delay / 2, delay * 3 / 2),
            ..Settings::default()
        }
    }
}

impl Room {
    fn new(nodes: usize, delay_us: u64, loss: f64, timers: Timers) -> Self {
        Self {
            nodes,
            delay: Duration::from_micros(delay_us),
            loss,
            timers,
            guards: Guards::ALL,
            trailers: true,
            reports: false,
            play: 0,
        }
    }

    fn in_play(self, per_second: u32) -> Self {
        Self {
            play: per_second,
            ..self
        }
    }

    fn slowest_round_trip(&self) -> Duration {
        self.delay * 3
    }

    fn describe(&self) -> String {
        let mut text = format!("{} peers, {} one way", self.nodes, ms(self.delay));
        if self.loss > 0.0 {
            let _ = write!(text, ", {} % loss", self.loss * 100.0);
        }
        if self.timers.millis != DEFAULT.millis {
            let _ = write!(text, "; {}", self.timers.name);
        }
        if self.play > 0 {
            let _ = write!(text, "; {} messages a second", self.play);
        }
        text
    }

    /// A room of this kind, without a running node.
    fn empty(&self, seed: u64) -> World {
        let settings = Settings {
            guards: self.guards,
            ..self.timers.settings(self.delay)
        };
        let mut world = World::new(seed, self.nodes, settings, Trace::off());
        world.stream_loss = self.loss;
        world.datagram_loss = self.loss;
        if !self.trailers {
            world.trailers = 0;
        }
        world.closed_ports.are_reported = self.reports;
        world.closed_ports.play = Duration::from_secs(1).checked_div(self.play);
        world
    }

    /// Waits until all members are linked. With losses a dial may fail; its host then tries again.
    fn form(&self, world: &mut World) {
        for _ in 0..TIMEOUT.as_secs() {
            let formed = wait(world, Duration::from_secs(2), |world| {
                world.settled().is_some() && world.is_mesh()
            });
            if formed.is_some() {
                return;
            }
            for slot in 1..self.nodes {
                world.connect(slot, 0);
            }
        }
        panic!("no room of {self:?}: {}", world.describe());
    }

    /// A room in which all members are linked and have followed one leader for a while.
    fn settled(&self, seed: u64) -> World {
        let mut world = self.empty(seed);
        for slot in 0..self.nodes {
            world.start(slot);
            world.connect(slot, 0);
        }
        self.form(&mut world);
        let interval = self.timers.millis[0];
        let rest = Duration::from_millis(6 * interval + world.rng.random_range(0..interval));
        run(&mut world, rest);
        world
    }
}

fn ms(duration: Duration) -> String {
    let micros = duration.as_micros();
    if micros.is_multiple_of(1000) {
        format!("{} ms", micros / 1000)
    } else {
        format!("{:.1} ms", micros as f64 / 1000.0)
    }
}

/// Runs for a while. A broken property ends the program, because figures of a broken election are worthless.
fn run(world: &mut World, duration: Duration) {
    world.run_for(duration);
    if let Some(violation) = &world.violation {
        panic!("{violation}");
    }
}

/// Time until `done`; `None` when it took longer than `most`.
fn wait(world: &mut World, most: Duration, done: impl Fn(&World) -> bool) -> Option<Duration> {
    let from = world.now;
    while !done(world) {
        if world.now.since(from) > most {
            return None;
        }
        run(world, STEP);
    }
    Some(world.now.since(from))
}

/// Runs `work` for each of the numbers, two at a time, and returns the results in order.
fn all<T: Send>(count: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let result = work(number);
                    results
                        .lock()
                        .expect("no worker panics with it")
                        .push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no worker panics with it");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// One crash of a leader.
#[derive(Debug, Clone, Copy)]
struct Failover {
    /// Time until all living nodes agree; `None` if they did not in time.
    agreed_after: Option<Duration>,
    terms: u64,
    messages: u64,
}

/// Crashes of leaders in rooms of this kind: one for every ten nodes of a room, so that a large room serves several
/// trials.
fn failovers(room: Room, trials: u64) -> Vec<Failover> {
    let crashes = (room.nodes as u64 / 10).max(1);
    let rooms = all(trials.div_ceil(crashes), |seed| {
        let mut world = room.settled(seed);
        let mut seen = Vec::new();
        for _ in 0..crashes {
            // With losses a member may have missed the leader for too long.
            wait(&mut world, TIMEOUT, |world| world.agreed().is_some());
            let Some(leader) = world.agreed() else {
                panic!("seed {seed}: no member leads {room:?}");
            };
            let (term, messages) = (world.term(leader), world.election_messages);
            world.crash(leader);
            let agreed_after = wait(&mut world, TIMEOUT, |world| world.agreed().is_some());
            let Some(next) = world.agreed() else {
                seen.push(Failover {
                    agreed_after,
                    terms: 0,
                    messages: 0,
                });
                break;
            };
            seen.push(Failover {
                agreed_after,
                terms: world.term(next) - term,
                messages: world.election_messages - messages,
            });
            let interval = room.timers.millis[0];
            let rest = 6 * interval + world.rng.random_range(0..interval);
            run(&mut world, Duration::from_millis(rest));
        }
        seen
    });
    rooms.into_iter().flatten().collect()
}

/// Median and extremes of the measured times.
struct Summary {
    p50: Duration,
    p99: Duration,
    worst: Duration,
    terms: f64,
    messages_per_node: f64,
    failed: usize,
    trials: usize,
}

impl Summary {
    fn of(room: Room, seen: &[Failover]) -> Self {
        let mut times: Vec<Duration> = seen.iter().filter_map(|one| one.agreed_after).collect();
        times.sort();
        let done = times.len().max(1) as f64;
        let sum = |what: fn(&Failover) -> u64| seen.iter().map(what).sum::<u64>() as f64;
        Self {
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            worst: percentile(&times, 100),
            terms: sum(|one| one.terms) / done,
            messages_per_node: sum(|one| one.messages) / done / room.nodes as f64,
            failed: seen.len() - times.len(),
            trials: seen.len(),
        }
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

/// Requirement of a failover; zero means none.
struct Demand {
    p50_ms: u64,
    p99_ms: u64,
    terms: f64,
    messages_per_node: f64,
}

/// The tables; see the program's text.
struct Report {
    quick: bool,
    /// Crashes run only in rooms with this in their description.
    row: Option<String>,
    text: String,
    missed: usize,
}

impl Report {
    fn new(quick: bool, row: Option<String>) -> Self {
        Self {
            quick,
            row,
            text: String::new(),
            missed: 0,
        }
    }

    fn trials(&self, full: u64) -> u64 {
        if self.quick { (full / 20).max(2) } else { full }
    }

    fn skips(&self, room: &Room) -> bool {
        let described = room.describe();
        self.row
            .as_ref()
            .is_some_and(|row| !described.contains(row))
    }

    fn line(&mut self, line: &str) {
        eprintln!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn verdict(&mut self, met: bool) -> &'static str {
        self.missed += usize::from(!met);
        if met { "yes" } else { "**no**" }
    }

    fn failovers(&mut self) {
        self.line("### Crash of the leader, until all living members agree\n");
        self.line("| room | crashes | p50 | p99 | terms | messages per peer | demanded (p50, p99, terms, messages) | met |");
        self.line("|---|---|---|---|---|---|---|---|");
        let demand = |p50_ms, p99_ms, terms, messages_per_node| Demand {
            p50_ms,
            p99_ms,
            terms,
            messages_per_node,
        };
        let small = || demand(1700, 2000, 1.02, 7.0);
        for (room, demand) in [
            (Room::new(3, 5_000, 0.0, DEFAULT), small()),
            (Room::new(5, 5_000, 0.0, DEFAULT), small()),
            (Room::new(3, 50_000, 0.0, DEFAULT), small()),
            (Room::new(5, 50_000, 0.0, DEFAULT), small()),
            (Room::new(10, 50_000, 0.0, DEFAULT), small()),
            (
                Room::new(30, 50_000, 0.0, DEFAULT),
                demand(1700, 2000, 1.05, 8.0),
            ),
            (
                Room::new(100, 50_000, 0.0, DEFAULT),
                demand(1700, 2000, 1.05, 8.0),
            ),
            (
                Room::new(5, 150_000, 0.0, DEFAULT),
                demand(2800, 3300, 1.1, 8.0),
            ),
            (
                Room::new(30, 150_000, 0.0, DEFAULT),
                demand(2800, 3300, 1.1, 8.0),
            ),
            (
                Room::new(100, 150_000, 0.0, DEFAULT),
                demand(2800, 3300, 1.1, 8.0),
            ),
            (
                Room::new(3, 50_000, 0.05, DEFAULT),
                demand(1800, 2800, 1.15, 0.0),
            ),
            (
                Room::new(5, 50_000, 0.05, DEFAULT),
                demand(1800, 2800, 1.15, 0.0),
            ),
            (
                Room::new(100, 50_000, 0.05, DEFAULT),
                demand(2300, 3300, 1.05, 10.0),
            ),
            (
                Room::new(5, 50_000, 0.2, DEFAULT),
                demand(2300, 5000, 1.6, 0.0),
            ),
            (Room::new(5, 25_000, 0.0, FAST), demand(700, 850, 0.0, 0.0)),
            (Room::new(5, 7_500, 0.0, LAN), demand(180, 250, 0.0, 0.0)),
        ] {
            if self.skips(&room) {
                continue;
            }
            let seen = failovers(room, self.trials(1000));
            let got = Summary::of(room, &seen);
            let below = |got: f64, most: f64| most == 0.0 || got <= most;
            let met = got.failed == 0
                && got.p50 <= Duration::from_millis(demand.p50_ms)
                && got.p99 <= Duration::from_millis(demand.p99_ms)
                && below(got.terms, demand.terms)
                && below(got.messages_per_node, demand.messages_per_node);
            let verdict = self.verdict(met);
            let or_none = |most: f64| {
                if most == 0.0 {
                    "-".to_owned()
                } else {
                    most.to_string()
                }
            };
            let failed = if got.failed > 0 {
                format!(" ({} never)", got.failed)
            } else {
                String::new()
            };
            self.line(&format!(
                "| {} | {}{failed} | {} ms | {} ms | {:.2} | {:.1} | {} ms, {} ms, {}, {} | {verdict} |",
                room.describe(),
                got.trials,
                got.p50.as_millis(),
                got.p99.as_millis(),
                got.terms,
                got.messages_per_node,
                demand.p50_ms,
                demand.p99_ms,
                or_none(demand.terms),
                or_none(demand.messages_per_node),
            ));
        }
    }

    /// The process is killed, and its machine reports its port as closed.
    fn kills(&mut self) {
        self.line("\n### Kill of the leader's process on a machine that lives on, until all living members agree\n");
        self.line("| room | kills | p50 | p99 | worst | terms | demanded (p50, worst) | met |");
        self.line("|---|---|---|---|---|---|---|---|");
        for (room, p50_ms, worst_ms) in [
            (Room::new(2, 5_000, 0.0, DEFAULT), 450, 700),
            (Room::new(3, 5_000, 0.0, DEFAULT), 450, 700),
            (Room::new(5, 5_000, 0.0, DEFAULT), 450, 700),
            (Room::new(3, 50_000, 0.0, DEFAULT), 900, 1300),
            (Room::new(5, 50_000, 0.0, DEFAULT), 1000, 1300),
            (Room::new(30, 50_000, 0.0, DEFAULT), 1000, 1700),
            (Room::new(5, 50_000, 0.05, DEFAULT), 1200, 2800),
            (Room::new(3, 50_000, 0.0, DEFAULT).in_play(60), 700, 1000),
            (Room::new(5, 50_000, 0.0, DEFAULT).in_play(60), 700, 1300),
            (Room::new(5, 50_000, 0.05, DEFAULT).in_play(60), 1200, 2800),
            (Room::new(3, 500, 0.0, LAN), 70, 140),
            (Room::new(5, 7_500, 0.0, LAN), 180, 250),
        ] {
            let room = Room {
                reports: true,
                ..room
            };
            if self.skips(&room) {
                continue;
            }
            let seen = failovers(room, self.trials(1000));
            let got = Summary::of(room, &seen);
            let met = got.failed == 0
                && got.p50 <= Duration::from_millis(p50_ms)
                && got.worst <= Duration::from_millis(worst_ms);
            let verdict = self.verdict(met);
            self.line(&format!(
                "| {} | {} | {} ms | {} ms | {} ms | {:.2} | {p50_ms} ms, {worst_ms} ms | {verdict} |",
                room.describe(),
                got.trials,
                got.p50.as_millis(),
                got.p99.as_millis(),
                got.worst.as_millis(),
                got.terms,
            ));
        }
    }

    /// The leader's process stands still for a while, and its port stays open.
    fn stalls(&mut self) {
        self.line("\n### Stalls of the leader's process, which keeps its port open\n");
        self.line(
            "| room | stall | changed the leader | the same without reports | demanded | met |",
        );
        self.line("|---|---|---|---|---|---|");
        let room = Room::new(5, 50_000, 0.05, DEFAULT);
        for (stall_ms, most) in [(400, 0), (700, 1), (1_200, 60)] {
            let [reported, silent] = [true, false].map(|reports| {
                let room = Room { reports, ..room };
                let changed = all(self.trials(240), |seed| stall(room, seed, stall_ms));
                changed.into_iter().filter(|changed| *changed).count()
            });
            let verdict = self.verdict(reported <= silent.min(most));
            self.line(&format!(
                "| {} | {stall_ms} ms | {reported} of {} | {silent} | {most} | {verdict} |",
                room.describe(),
                self.trials(240),
            ));
        }
    }

    /// G13 and G14, on and off in one run.
    fn spread(&mut self) {
        self.line("\n### What rank slots and fast retries buy (G13, G14): with / without\n");
        self.line("| room | p50 | p99 | p99, ratio | terms | messages per peer |");
        self.line("|---|---|---|---|---|---|");
        for nodes in [3, 10, 30, 100] {
            let room = Room::new(nodes, 50_000, 0.0, DEFAULT);
            let bare = Room {
                guards: Guards {
                    rank_slots: false,
                    fast_retry: false,
                    ..Guards::ALL
                },
                ..room
            };
            self.compare(room, bare, 300);
        }
    }

    fn losses(&mut self) {
        self.line(
            "\n### What the empty datagrams behind messages that cannot wait buy: with / without\n",
        );
        self.line("| room | p50 | p99 | p99, ratio | terms | messages per peer |");
        self.line("|---|---|---|---|---|---|");
        for (nodes, loss) in [(5, 0.05), (5, 0.2), (30, 0.05), (100, 0.05)] {
            let room = Room::new(nodes, 50_000, loss, DEFAULT);
            let bare = Room {
                trailers: false,
                ..room
            };
            self.compare(room, bare, 300);
        }
    }

    /// A row: `trials` crashes in each of the two rooms.
    fn compare(&mut self, room: Room, bare: Room, trials: u64) {
        let trials = self.trials(trials);
        let with = Summary::of(room, &failovers(room, trials));
        let without = Summary::of(bare, &failovers(bare, trials));
        let never = if without.failed > 0 {
            format!(" ({} of {} never)", without.failed, without.trials)
        } else {
            String::new()
        };
        self.line(&format!(
            "| {} | {} / {} ms | {} / {} ms{never} | {:.2} | {:.2} / {:.2} | {:.1} / {:.1} |",
            room.describe(),
            with.p50.as_millis(),
            without.p50.as_millis(),
            with.p99.as_millis(),
            without.p99.as_millis(),
            with.p99.as_secs_f64() / without.p99.as_secs_f64(),
            with.terms,
            without.terms,
            with.messages_per_node,
            without.messages_per_node,
        ));
    }

    /// A table of times against bounds in round trips.
    fn times(&mut self, what: &str, mut times: Vec<Option<Duration>>, most: [Duration; 2]) {
        let trials = times.len();
        times.retain(Option::is_some);
        let mut times: Vec<Duration> = times.into_iter().flatten().collect();
        times.sort();
        let failed = trials - times.len();
        let (p50, p99) = (percentile(&times, 50), percentile(&times, 99));
        let met = failed == 0 && p50 <= most[0] && p99 <= most[1];
        let verdict = self.verdict(met);
        let never = if failed > 0 {
            format!(" ({failed} never)")
        } else {
            String::new()
        };
        self.line(&format!(
            "| {what} | {trials}{never} | {} ms | {} ms | {} ms, {} ms | {verdict} |",
            p50.as_millis(),
            p99.as_millis(),
            most[0].as_millis(),
            most[1].as_millis()
        ));
    }

    fn transfers(&mut self) {
        self.line("\n### The leader leaves, or transfers its leadership, until all agree on the next one\n");
        self.line("| what | runs | p50 | p99 | demanded (3 round trips; 300 ms and 3 round trips) | met |");
        self.line("|---|---|---|---|---|---|");
        for (nodes, delay_us) in [(3, 5_000), (5, 50_000), (10, 50_000), (30, 150_000)] {
            let room = Room::new(nodes, delay_us, 0.0, DEFAULT);
            let trials = self.trials(if nodes > 10 { 200 } else { 1000 });
            // A message may take as long as the slowest line; of several, the last one counts.
            let round_trip = room.slowest_round_trip();
            let most = [round_trip * 3, Duration::from_millis(300) + round_trip * 3];
            let transfer = |seed: u64, politely: bool| {
                let mut world = room.settled(seed);
                let leader = world.agreed()?;
                if politely {
                    world.leave(leader);
                } else {
                    world.command(leader, Command::YieldLeadership).ok()?;
                }
                wait(&mut world, TIMEOUT, |world| {
                    world.agreed().is_some_and(|next| next != leader)
                })
            };
            let left = all(trials, |seed| transfer(seed, true));
            self.times(&format!("leaves: {}", room.describe()), left, most);
            let yielded = all(trials, |seed| transfer(seed, false));
            self.times(&format!("yields: {}", room.describe()), yielded, most);
        }
    }

    fn heals(&mut self) {
        self.line("\n### Two sides merge, until all agree, from when the staying leader is linked to all (0: they agreed before)\n");
        self.line("| what | runs | p50 | p99 | demanded (2.5 and 4 slowest round trips) | met |");
        self.line("|---|---|---|---|---|---|");
        for (nodes, minority, delay_us) in [
            (3, 1, 5_000),
            (5, 2, 5_000),
            (5, 2, 50_000),
            (7, 2, 150_000),
        ] {
            let room = Room::new(nodes, delay_us, 0.0, DEFAULT);
            let times = all(self.trials(400), |seed| heal(room, minority, seed));
            let round_trip = room.slowest_round_trip();
            let what = format!(
                "{} against {minority}: {}",
                nodes - minority,
                room.describe()
            );
            self.times(&what, times, [round_trip * 5 / 2, round_trip * 4]);
        }
    }

    fn stability(&mut self) {
        self.line("\n### The leader stays, whatever happens to a minority\n");
        self.line(
            "| what | rooms in which the leader stayed, and no other host saw a change | met |",
        );
        self.line("|---|---|---|");
        type Story = fn(Room, u64) -> (World, Vec<usize>);
        let stories: [(&str, usize, u64, Story); 7] = [
            ("one follower of 5 is isolated for 5 s", 5, 200, isolated),
            ("one follower of 30 is isolated for 5 s", 30, 50, isolated),
            (
                "a follower of 5 flaps for a minute (4 s cut, 4 s linked)",
                5,
                100,
                flapping,
            ),
            (
                "3 against 2 for 10 s, the leader with the 3",
                5,
                200,
                three_against_two,
            ),
            (
                "a follower of 5 does not receive the leader's heartbeats for 30 s",
                5,
                100,
                deaf,
            ),
            (
                "a chain of 3 for a minute, the leader at one end",
                3,
                100,
                chain,
            ),
            (
                "a newcomer with the largest id enters through a follower of 5",
                6,
                100,
                joiner,
            ),
        ];
        for (what, nodes, rooms, story) in stories {
            let room = Room::new(nodes, 5_000, 0.0, DEFAULT);
            let rooms = self.trials(rooms);
            let kept = all(rooms, |seed| {
                let (world, concerned) = story(room, seed);
                let undisturbed = (0..nodes)
                    .filter(|slot| !concerned.contains(slot))
                    .all(|slot| world.slots[slot].reported.is_empty());
                undisturbed && world.agreed().is_some()
            });
            let kept = kept.into_iter().filter(|kept| *kept).count() as u64;
            let verdict = self.verdict(kept == rooms);
            self.line(&format!("| {what} | {kept} of {rooms} | {verdict} |"));
        }
    }

    /// An hour of a room of 100 on bad lines.
    fn an_hour(&mut self) {
        let room = Room::new(100, 50_000, 0.05, DEFAULT);
        let minutes = if self.quick { 3 } else { 60 };
        let mut world = room.settled(1);
        let flappers: Vec<usize> = {
            let leader = world.agreed().expect("it is settled");
            (0..100).filter(|slot| *slot != leader).take(10).collect()
        };
        forget(&mut world);
        let until = world.now + Duration::from_secs(minutes * 60);
        while world.now < until {
            for linked in [false, true] {
                for flapper in &flappers {
                    set_linked(&mut world, *flapper, linked);
                }
                run(&mut world, Duration::from_secs(4));
            }
        }
        let reported: usize = (0..100)
            .filter(|slot| !flappers.contains(slot))
            .map(|slot| world.slots[slot].reported.len())
            .sum();
        let verdict = self.verdict(reported == 0);
        self.line(&format!(
            "| {minutes} minutes of {}, ten of them flapping together (4 s cut, 4 s linked) | {reported} changes seen by the hosts of the other 90 | {verdict} |",
            room.describe()
        ));
    }
}

/// Whether any host sees another leader because the leader stalls.
fn stall(room: Room, seed: u64, stall_ms: u64) -> bool {
    let mut world = room.settled(seed);
    wait(&mut world, TIMEOUT, |world| world.agreed().is_some());
    let leader = world.agreed().expect("it is settled");
    forget(&mut world);
    world.pause(leader);
    run(&mut world, Duration::from_millis(stall_ms));
    world.resume(leader);
    run(&mut world, Duration::from_secs(6));
    let other = |(_, shown): &(_, Option<PeerId>)| {
        shown
            .as_ref()
            .is_some_and(|shown| *shown != world.slots[leader].id)
    };
    world
        .slots
        .iter()
        .any(|slot| slot.reported.iter().any(other))
}

fn forget(world: &mut World) {
    for slot in &mut world.slots {
        slot.reported.clear();
    }
}

/// Cuts a node off from all others, or restores its links.
fn set_linked(world: &mut World, slot: usize, linked: bool) {
    for other in 0..world.slots.len() {
        if other != slot && linked {
            world.mend_both(slot, other);
        } else if other != slot {
            world.cut_both(slot, other);
        }
    }
}

fn heal(room: Room, minority: usize, seed: u64) -> Option<Duration> {
    let mut world = room.settled(seed);
    let leader = world.agreed()?;
    let small: Vec<usize> = (1..=minority)
        .map(|step| (leader + step) % room.nodes)
        .collect();
    let large: Vec<usize> = (0..room.nodes)
        .filter(|slot| !small.contains(slot))
        .collect();
    let cross = |world: &mut World, link: fn(&mut World, usize, usize)| {
        for a in &small {
            for b in &large {
                link(world, *a, *b);
            }
        }
    };
    cross(&mut world, World::cut_both);
    run(&mut world, Duration::from_secs(10));
    cross(&mut world, World::mend_both);
    wait(&mut world, TIMEOUT, |world| {
        small.iter().all(|slot| world.is_linked(*slot, leader))
    })?;
    wait(&mut world, TIMEOUT, |world| world.agreed() == Some(leader))
}

/// A follower chosen by the seed.
fn follower(world: &World, seed: u64) -> usize {
    let leader = world.agreed().expect("it is settled");
    let size = world.slots.len();
    (leader + 1 + seed as usize % (size - 1)) % size
}

fn isolated(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.settled(seed);
    let lost = follower(&world, seed);
    forget(&mut world);
    set_linked(&mut world, lost, false);
    run(&mut world, Duration::from_secs(5));
    set_linked(&mut world, lost, true);
    run(&mut world, Duration::from_secs(10));
    (world, vec![lost])
}

fn flapping(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.settled(seed);
    let flapper = follower(&world, seed);
    forget(&mut world);
    for _ in 0..8 {
        set_linked(&mut world, flapper, false);
        run(&mut world, Duration::from_secs(4));
        set_linked(&mut world, flapper, true);
        run(&mut world, Duration::from_secs(4));
    }
    run(&mut world, Duration::from_secs(5));
    (world, vec![flapper])
}

fn three_against_two(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.settled(seed);
    let leader = world.agreed().expect("it is settled");
    let first = follower(&world, seed);
    let second = (0..5)
        .find(|slot| *slot != first && *slot != leader)
        .expect("five places");
    forget(&mut world);
    let others: Vec<usize> = (0..5)
        .filter(|slot| *slot != first && *slot != second)
        .collect();
    for link in [World::cut_both, World::mend_both] {
        for other in &others {
            link(&mut world, first, *other);
            link(&mut world, second, *other);
        }
        run(&mut world, Duration::from_secs(10));
    }
    (world, vec![first, second])
}

fn deaf(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.settled(seed);
    let deaf = follower(&world, seed);
    let leader = world.agreed().expect("it is settled");
    forget(&mut world);
    world.cut(leader, deaf);
    run(&mut world, Duration::from_secs(30));
    world.mend(leader, deaf);
    run(&mut world, Duration::from_secs(10));
    (world, vec![deaf])
}

fn chain(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.empty(seed);
    world.cut_both(0, 2);
    world.start(0);
    run(&mut world, Duration::from_millis(3_100));
    world.start(1);
    world.connect(1, 0);
    run(&mut world, Duration::from_secs(2));
    world.start(2);
    world.connect(2, 1);
    run(&mut world, Duration::from_secs(2));
    forget(&mut world);
    run(&mut world, Duration::from_secs(60));
    (world, Vec::new())
}

fn joiner(room: Room, seed: u64) -> (World, Vec<usize>) {
    let mut world = room.empty(seed);
    world.slots[5].rename("zzzz");
    for slot in 0..5 {
        world.start(slot);
        world.connect(slot, 0);
    }
    let formed = wait(&mut world, TIMEOUT, |world| {
        world.settled().is_some() && world.is_mesh()
    });
    assert!(formed.is_some(), "no room of five");
    run(&mut world, Duration::from_secs(3));
    let leader = world.agreed().expect("it is settled");
    forget(&mut world);
    world.start(5);
    world.connect(5, (leader + 1 + seed as usize % 4) % 5);
    run(&mut world, Duration::from_secs(10));
    (world, vec![5])
}
