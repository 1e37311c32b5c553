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
fn two_members_link_without_a_call_of_their_hosts() {
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
fn a_member_that_only_reports_dials_no_other() {
    shows("report");
}

#[test]
fn a_member_without_discovery_is_silent_and_packets_of_others_name_no_member() {
    shows("off");
}

#[test]
fn one_of_two_players_with_one_id_plays_and_the_other_receives_the_reason() {
    shows("twins");
}

#[test]
fn members_whose_port_another_program_has_warn_once_and_connect_later() {
    shows("taken");
}

#[test]
fn discovery_does_not_bring_back_a_member_disconnected_by_hand() {
    shows("disconnect");
}

#[test]
fn two_machines_on_a_cable_connect_by_ipv4_and_ipv6() {
    shows("lan");
}

#[test]
fn without_a_network_a_room_opens_and_closes_as_everywhere() {
    shows("alone");
}
