//! The demo, as a user sees it.

use std::process::Command;

use crate::tools::{library, root, run};

#[test]
fn three_languages_meet_and_follow_a_new_leader_when_the_first_is_killed() {
    let printed = run(Command::new("python3")
        .current_dir(root())
        .arg("scripts/demo.py")
        .arg("--library")
        .arg(library()));
    assert!(printed.contains("OK: three hosts"), "{printed}");
}
