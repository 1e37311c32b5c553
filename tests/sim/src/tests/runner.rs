//! Runs many plans on all cores, and reports the ones that break a property.
//!
//! - `MMN_SIM_SEEDS`, `MMN_SIM_FIRST_SEED`: number of seeds, and the first one.
//! - `MMN_SIM_SECONDS`: runs seeds for this long instead, from a random one on, which is printed.
//! - `MMN_SIM_LARGEST`: leaves out larger rooms; one of 100 nodes takes as long as thousands of small ones. Where the
//!   environment orders no seeds, as in `make test`, only the first 200 runs play such rooms.
//! - `MMN_SIM_FAILURES`: number of failing seeds before it gives up; 1 by default.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::chaos::{self, Outcome};
use crate::plan::{LARGE, Plan};
use crate::shrink;
use crate::trace::Trace;

/// Seeds of one `make test`.
const DEFAULT_SEEDS: u64 = 5_000;
/// Of one `make test`, the first runs, among which rooms of 100 nodes are played. The seeds that failed once are among them.
const RUNS_WITH_LARGE_ROOMS: u64 = 200;
/// In this many runs every rare situation must have occurred: fewer than a `make test` has without most of its large rooms.
pub(super) const ENOUGH_FOR_RARE: u64 = 4_900;
/// One run in this many is repeated: it must give an equal result (P17).
const REPEATED: u64 = 50;
/// Lines of a failing run to show.
const LAST_LINES: usize = 40;
const THREADS: usize = 2;
/// Longest reduction of a failing plan.
const REDUCING: Duration = Duration::from_secs(30);
const REPLAY: &str = "cargo test --release -p room_simulator replay -- --nocapture";

pub(super) fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

/// Runs the plans that `next` gives for 0, 1, 2, ... with their names, until it gives no more, or enough of them failed. `add`
/// receives each run and its duration. Panics with the failures.
pub(super) fn run_all(
    order: &Order,
    next: impl Fn(u64) -> Option<(Plan, String)> + Sync,
    add: impl FnMut(&Outcome, Duration) + Send,
) {
    std::panic::set_hook(Box::new(|_| {})); // a panic of the core is reported with its seed
    let most = number_from_env("MMN_SIM_FAILURES").unwrap_or(1) as usize;
    let number = AtomicU64::new(0);
    let (stop, reducing) = (AtomicBool::new(false), AtomicBool::new(false));
    let results = Mutex::new((add, Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let Some((plan, name)) = next(number) else {
                        return;
                    };
                    if order.leaves_out(number, &plan) {
                        continue;
                    }
                    let from = Instant::now();
                    let outcome = chaos::run_plan(&plan, Trace::off(), None);
                    let took = from.elapsed();
                    let repeats = number.is_multiple_of(REPEATED);
                    let failure = failure(&plan, &name, &outcome, repeats, &reducing);
                    let mut results = results.lock().expect("no panic in here");
                    let (add, failures) = &mut *results;
                    add(&outcome, took);
                    failures.extend(failure.map(|text| (number, text)));
                    stop.fetch_or(failures.len() >= most, Ordering::Relaxed);
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let (_, mut failures) = results.into_inner().expect("no panic in there");
    failures.sort();
    let texts: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

/// The plan of that number: plans and seeds that failed once come first. `name` names the kind of seed.
pub(super) fn numbered(
    order: &Order,
    (plans, seeds): (&[(&str, &str)], &[u64]),
    (name, draw): (&str, impl Fn(u64) -> Plan),
    number: u64,
) -> Option<(Plan, String)> {
    let before = plans.len() as u64;
    if number < before {
        let (why, line) = plans[number as usize];
        let plan = Plan::parse(line).expect("a plan that was written down");
        return Some((plan, format!("the plan \"{why}\"")));
    }
    let seed = order.seed_after(seeds, number - before)?;
    Some((draw(seed), format!("{name} {seed}")))
}

/// Prints counters, a line each.
pub(super) fn print_table(table: &[(&str, u64)]) {
    for (name, count) in table {
        println!("  {count:10} {}", name.replace('_', " "));
    }
}

/// Fails if enough runs happened and one of these counters is 0.
pub(super) fn assert_all_happened(runs: u64, table: &[(&str, u64)], may_lack: &[&str]) {
    if runs < ENOUGH_FOR_RARE {
        return;
    }
    let never = table
        .iter()
        .filter(|(name, count)| *count == 0 && !may_lack.contains(name));
    let never: Vec<&str> = never.map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "never happened: {never:?}");
}

/// Runs seeds of one kind of rooms, and prints what happened in them.
pub(super) fn run_seeds<C: Default + Send>(
    title: &str,
    next: impl Fn(&Order, u64) -> Option<(Plan, String)> + Sync,
    add: fn(&mut C, &Outcome),
    table: fn(&C) -> Vec<(&'static str, u64)>,
) {
    let began = Instant::now();
    let order = Order::from_env();
    let (mut runs, mut counts) = (0, C::default());
    run_all(
        &order,
        |number| next(&order, number),
        |outcome, _| {
            runs += 1;
            add(&mut counts, outcome);
        },
    );
    let took = began.elapsed().as_secs_f64();
    println!("{runs} runs {title} in {took:.1} s; what happened in them:");
    let table = table(&counts);
    print_table(&table);
    assert_all_happened(runs, &table, &[]);
}

/// Prints the run of the seed in an environment variable, if it is set, and fails if it breaks a property.
pub(super) fn replay(variable: &str, draw: impl Fn(u64) -> Plan) {
    let Some(seed) = number_from_env(variable) else {
        return;
    };
    let outcome = chaos::run_plan(&draw(seed), Trace::on(), None);
    for line in outcome.trace.lines() {
        println!("{line}");
    }
    let broken = outcome.violation.map(|violation| violation.to_string());
    assert_eq!(broken, None);
}

/// Numbers that differ if two runs do.
pub(super) fn run_of(plan: &Plan) -> impl PartialEq + Debug + use<> {
    let outcome = chaos::run_plan(plan, Trace::on(), None);
    (outcome.trace.hash(), outcome.hash)
}

/// The failure of a run, if any. Only the first failing one is reduced, which takes its time.
fn failure(
    plan: &Plan,
    name: &str,
    outcome: &Outcome,
    repeats: bool,
    reducing: &AtomicBool,
) -> Option<String> {
    if let Some(violation) = &outcome.violation {
        let first_line = violation.text.lines().next().unwrap_or_default();
        eprintln!("{name} breaks {}: {first_line}", violation.property);
        return Some(report(plan, name, !reducing.swap(true, Ordering::Relaxed)));
    }
    let differs = || chaos::run_plan(plan, Trace::off(), None).hash != outcome.hash;
    (repeats && differs()).then(|| format!("{name} breaks P17: it does something else again"))
}

/// The report of a failing plan.
fn report(plan: &Plan, name: &str, reduce: bool) -> String {
    let outcome = chaos::run_plan(plan, Trace::on(), None);
    let Some(violation) = outcome.violation else {
        return format!("{name} failed once, and not again");
    };
    let lines = outcome.trace.lines();
    let tail = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let mut text = format!(
        "{name} breaks {violation}\nat {} ms; its last lines:\n{}\n",
        outcome.ended_at.as_micros() / 1000,
        tail.join("\n")
    );
    if !reduce {
        text += &format!("replay: MMN_SIM_PLAN='{}' {REPLAY}\n", plan.to_line());
        return text;
    }
    let until = Instant::now() + REDUCING;
    let small = shrink::shrink(plan, violation.property, &|plan| {
        let time_is_over = Instant::now() >= until;
        (!time_is_over).then(|| chaos::run_plan(plan, Trace::off(), None).violation)?
    });
    text += &format!(
        "reduced to {} of {} steps:\n{}\nreplay: MMN_SIM_PLAN='{}' {REPLAY}\n",
        small.steps.len(),
        plan.steps.len(),
        shrink::describe(&small),
        small.to_line()
    );
    text
}

/// The seeds to run, and the limits.
pub(super) struct Order {
    first: u64,
    count: u64,
    until: Option<Instant>,
    largest: u64,
    /// Number of the first run that leaves out rooms of 100 nodes.
    without_large: u64,
}

impl Order {
    pub(super) fn from_env() -> Self {
        Self::of(DEFAULT_SEEDS)
    }

    /// An order with another default number of seeds; the environment takes precedence.
    pub(super) fn of(default: u64) -> Self {
        let seconds = number_from_env("MMN_SIM_SECONDS");
        let first = number_from_env("MMN_SIM_FIRST_SEED").unwrap_or_else(|| {
            let clock = SystemTime::now().duration_since(UNIX_EPOCH);
            let random = clock.map_or(1, |since| since.as_nanos() as u64 % 1_000_000_000_000);
            seconds.map_or(1, |_| random)
        });
        let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let count = match until {
            Some(_) => u64::MAX - first,
            None => number_from_env("MMN_SIM_SEEDS").unwrap_or(default),
        };
        println!("first seed: {first}");
        let ordered = ["MMN_SIM_SEEDS", "MMN_SIM_FIRST_SEED", "MMN_SIM_SECONDS"];
        let is_ordered = ordered.iter().any(|name| std::env::var_os(name).is_some());
        Self {
            first,
            count,
            until,
            largest: number_from_env("MMN_SIM_LARGEST").unwrap_or(u64::MAX),
            without_large: match is_ordered {
                true => u64::MAX,
                false => RUNS_WITH_LARGE_ROOMS,
            },
        }
    }

    fn leaves_out(&self, number: u64, plan: &Plan) -> bool {
        plan.size as u64 > self.largest || plan.size >= LARGE && number >= self.without_large
    }

    /// The seed of that number, unless the limit is reached: seeds that failed once, `known`, come first.
    pub(super) fn seed_after(&self, known: &[u64], number: u64) -> Option<u64> {
        if let Some(seed) = known.get(number as usize) {
            return Some(*seed);
        }
        let number = number - known.len() as u64;
        let over = number >= self.count || self.until.is_some_and(|until| Instant::now() >= until);
        (!over).then(|| self.first + number)
    }
}
