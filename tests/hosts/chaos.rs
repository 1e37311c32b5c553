//! Random calls from many threads while peers crash and return.

use std::process::Command;

use crate::tools::{compile_c, library, root, run};

fn program() -> std::path::PathBuf {
    compile_c("tests/hosts/chaos/chaos.c", "chaos", &[])
}

#[test]
fn eight_threads_that_call_everything_at_random_break_nothing() {
    break_nothing(&[]);
}

#[test]
fn nor_do_they_in_rooms_that_elect_by_gossip() {
    break_nothing(&["--gossip"]);
}

/// `MMN_SEED` repeats the choices of a run, but not the scheduler's.
fn break_nothing(arguments: &[&str]) {
    let mut command = Command::new(program());
    command.args(arguments).env("MMN_LIBRARY", library());
    if let Ok(seed) = std::env::var("MMN_SEED") {
        command.args(["--seed", &seed]);
    }
    let printed = run(&mut command);
    print!("{printed}");
    assert_eq!(printed.lines().last(), Some("ok"), "{printed}");
}

#[test]
fn the_program_of_chaos_calls_every_exported_function() {
    let called = run(Command::new(program()).arg("--list"));
    let exports =
        std::fs::read_to_string(root().join("tests/abi/exports.txt")).expect("it is there");
    let missing: Vec<&str> = exports
        .lines()
        .filter(|line| !line.starts_with('#') && !called.lines().any(|name| name == *line))
        .collect();
    assert!(
        missing.is_empty(),
        "tests/hosts/chaos/chaos.c does not call {missing:?}: add them to its CALLS"
    );
}
