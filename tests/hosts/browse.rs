//! Browsers of the local network: real processes, real multicast.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(test: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/browse.py"))
        .arg(test)
        .env("MMN_LIBRARY", library()));
    assert!(printed.contains(&format!("ok {test} ")), "{printed}");
}

#[test]
fn a_room_is_found_grows_is_joined_and_ends() {
    shows("list");
}

#[test]
fn a_card_shows_that_a_secret_is_needed() {
    shows("secret");
}

#[test]
fn a_card_that_is_taken_down_is_gone_and_games_do_not_see_each_other() {
    shows("hide");
}

#[test]
fn a_room_whose_process_dies_is_gone_in_time() {
    shows("killed");
}

#[test]
fn a_room_stays_listed_under_its_next_leader() {
    shows("successor");
}

#[test]
fn two_machines_on_a_cable_find_and_lose_each_other() {
    shows("lan");
}

#[test]
fn in_poll_mode_one_report_for_each_room_waits() {
    shows("poll");
}

#[test]
fn fifty_rooms_stay_listed_beside_a_liar() {
    shows("liar");
}

#[test]
fn a_room_without_a_card_sends_nothing() {
    shows("silent");
}
