//! The samples' shared state survives its leaders: `migration.py`, with members in C# and Python, and `replicas.py`, in C++ too.

use std::process::Command;

use crate::tools::{compile_csharp, library, lobby_sources, output, root, run};

#[track_caller]
fn shows(story: &str) {
    let lobby = compile_csharp(&lobby_sources(), "Lobby.exe");
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/migration.py"))
        .arg(story)
        .arg(lobby)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("ok {story} ")), "{printed}");
}

#[track_caller]
fn shows_in_all_languages(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/replicas.py"))
        .arg(story)
        .arg(output("lobbies"))
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn nothing_that_was_confirmed_is_lost_when_three_leaders_are_killed() {
    shows("nothing_that_was_confirmed_is_lost_when_three_leaders_are_killed");
}

#[test]
fn a_leader_that_was_stopped_does_not_overwrite_the_state() {
    shows("a_leader_that_was_stopped_does_not_overwrite_the_state");
}

#[test]
fn a_leader_that_was_cut_off_is_refused_when_it_comes_back() {
    shows("a_leader_that_was_cut_off_is_refused_when_it_comes_back");
}

#[test]
fn the_side_that_stays_keeps_its_state_when_it_loses_its_leader_at_once() {
    shows_in_all_languages("the_side_that_stays_keeps_its_state_when_it_loses_its_leader_at_once");
}

#[test]
fn a_command_that_follows_a_snapshot_is_not_sent_under_another_number() {
    shows_in_all_languages("a_command_that_follows_a_snapshot_is_not_sent_under_another_number");
}
