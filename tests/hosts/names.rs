//! Dials by name without a name server that answers: the system's own resolver, in a network that the test makes.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(test: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/names.py"))
        .arg(test)
        .env("MMN_LIBRARY", library()));
    assert!(printed.starts_with(&format!("ok {test} ")), "{printed}");
}

#[test]
fn a_room_closes_in_time_and_stays_in_memory_while_names_are_looked_up() {
    shows("close");
}

#[test]
fn forty_dials_by_name_have_one_result_each() {
    shows("results");
}

#[test]
fn after_a_lookup_the_library_can_be_unloaded() {
    shows("unload");
}
