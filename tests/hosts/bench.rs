//! Outcomes of the benchmark over the C ABI: the leader after a kill, and lost messages. Its figures are only held against limits
//! that a broken library misses even on a busy machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::tools::{compile_c, library, root, run};

/// Minimum and maximum of each metric over the repetitions.
type Metrics = BTreeMap<String, (f64, f64)>;

fn bench(arguments: &str) -> Metrics {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| compile_c("benches/abi_bench.c", "abi_bench", &[]));
    let printed = run(Command::new(program)
        .arg(library())
        .args(arguments.split_whitespace()));
    let metrics: Metrics = printed.lines().filter_map(metric).collect();
    assert!(!metrics.is_empty(), "no metrics in:\n{printed}");
    metrics
}

/// A row of the table: name, median, minimum, maximum.
fn metric(line: &str) -> Option<(String, (f64, f64))> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
    match numbers?.as_slice() {
        [_, least, greatest] => Some((name, (*least, *greatest))),
        _ => None,
    }
}

#[track_caller]
fn all(metrics: &Metrics, name: &str, expected: f64) {
    let found = metrics.get(name).copied();
    assert_eq!(found, Some((expected, expected)), "{name} in {metrics:?}");
}

#[track_caller]
fn at_most(metrics: &Metrics, name: &str, limit: f64) {
    let found = metrics.get(name).copied();
    assert!(
        found.is_some_and(|(_, greatest)| greatest <= limit),
        "{name} is {found:?}, at most {limit} was expected, in {metrics:?}"
    );
}

#[track_caller]
fn one_living_leader(metrics: &Metrics, limit_ms: f64) {
    all(metrics, "agreed", 1.0);
    all(metrics, "self_leaders", 1.0);
    all(metrics, "naming_dead_leader", 0.0);
    all(metrics, "dup_status_callbacks", 0.0);
    at_most(metrics, "failover_ms", limit_ms);
}

#[test]
fn a_killed_leader_of_three_is_replaced() {
    one_living_leader(&bench("failover 3 3"), 10_000.0);
}

#[test]
fn a_killed_leader_of_five_is_replaced() {
    one_living_leader(&bench("failover 5 3"), 10_000.0);
}

#[test]
fn a_leader_that_leaves_is_followed() {
    one_living_leader(&bench("failover 3 3 --graceful"), 5_000.0);
}

#[test]
fn tight_timers_work() {
    one_living_leader(&bench("failover 3 3 --tight"), 5_000.0);
}

#[test]
fn a_room_forms_from_one_contact_and_elects_one_leader() {
    let metrics = bench("elect 5 3 --star");
    at_most(&metrics, "mesh_after_last_init_ms", 15_000.0);
    at_most(&metrics, "agree_after_last_init_ms", 20_000.0);
}

#[track_caller]
fn nothing_lost(metrics: &Metrics) {
    for name in ["lost", "reordered", "duplicates", "damaged", "other_errors"] {
        all(metrics, name, 0.0);
    }
}

#[test]
fn a_stream_arrives_whole() {
    nothing_lost(&bench("tput 256 200000 --repeat 3"));
}

#[test]
fn a_stream_of_long_messages_arrives_whole() {
    nothing_lost(&bench("tput 200000 1000 --repeat 1"));
}

#[test]
fn broadcasts_to_three_arrive_whole() {
    nothing_lost(&bench("fanout 4 256 20000 --repeat 3"));
}

#[test]
fn broadcasts_to_fifteen_arrive_whole() {
    nothing_lost(&bench("fanout 16 256 20000 --repeat 3"));
}

#[test]
fn small_queues_lose_nothing_either() {
    nothing_lost(&bench(
        "fanout 4 256 5000 --repeat 1 --set send_queue=2 --set incoming_queue=3",
    ));
}

#[test]
fn every_echo_comes_back() {
    let metrics = bench("rtt 32 2000 --repeat 3");
    all(&metrics, "lost", 0.0);
}

#[test]
fn every_echo_comes_back_in_poll_mode() {
    let metrics = bench("rtt 32 2000 --poll --repeat 1");
    all(&metrics, "lost", 0.0);
}

#[test]
fn every_echo_from_inside_the_callback_comes_back() {
    let metrics = bench("rtt 32 2000 --in-callback --repeat 1");
    all(&metrics, "lost", 0.0);
}

#[test]
fn broadcasts_arrive_whole_in_poll_mode() {
    nothing_lost(&bench("fanout 4 256 5000 --poll --repeat 1"));
}

/// They fail by themselves when an echo is missing.
#[test]
fn the_yardsticks_measure() {
    let program = compile_c("benches/yardsticks.c", "yardsticks", &[]);
    for (arguments, figure) in [
        ("udp-rtt 32 500", "p50_us"),
        ("tcp-rtt 32 500", "p50_us"),
        ("tcp-tput 1024 5000", "msgs_per_s"),
    ] {
        let printed = run(Command::new(&program).args(arguments.split_whitespace()));
        assert!(printed.contains(figure), "{arguments}: {printed}");
    }
}

#[test]
fn round_trips_are_compared() {
    let printed = run(Command::new(root().join("benches/compare.py"))
        .arg(library())
        .args(["--quick", "--only", "rtt", "--no-quinn"]));
    let row = printed
        .lines()
        .find(|line| line.starts_with("| round trip of 32 B, poll mode"));
    let cells: Vec<_> = row.expect("the row").split('|').map(str::trim).collect();
    // This library, plain UDP and plain TCP.
    for cell in &cells[2..5] {
        assert!(cell.parse::<f64>().is_ok(), "{printed}");
    }
}
