//! The network of a co-operative mod, with a process for each player: `coop.py`.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/coop.py"))
        .arg(story)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn links_that_flap_lose_nothing_and_keep_the_order() {
    shows("links_that_flap_lose_nothing_and_keep_the_order");
}

#[test]
fn the_host_decides_who_plays() {
    shows("the_host_decides_who_plays");
}
