//! Discovery of one room's members in the local network: real processes, real multicast.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(test: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/discovery.py"))
        .arg(test)
        .env("MMN_LIBRARY", library()));
    assert!(printed.starts_with(&format!("ok {test} ")), "{printed}");
}

#[test]
fn two_members_link_without_a_word_from_their_hosts() {
    shows("connect");
}

#[test]
fn a_member_that_died_is_found_again() {
    shows("return");
}

#[test]
fn rooms_on_one_network_do_not_mix() {
    shows("rooms");
}

#[test]
fn thirty_two_processes_on_one_address_form_a_mesh() {
    shows("crowd");
}

#[test]
fn who_reports_links_nobody() {
    shows("report");
}

#[test]
fn who_has_discovery_off_is_silent_and_what_others_say_names_nobody() {
    shows("off");
}

#[test]
fn of_two_players_with_one_id_that_find_each_other_one_plays_and_the_other_reads_why() {
    shows("twins");
}

#[test]
fn members_whose_port_another_program_has_warn_once_and_find_each_other_later() {
    shows("taken");
}

#[test]
fn who_was_disconnected_by_hand_does_not_come_back_by_discovery() {
    shows("disconnect");
}

#[test]
fn two_machines_on_a_cable_find_each_other_by_ipv4_and_ipv6() {
    shows("lan");
}

#[test]
fn without_a_network_a_room_opens_and_closes_as_everywhere() {
    shows("alone");
}
