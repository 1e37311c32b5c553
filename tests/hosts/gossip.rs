//! The gossip strategy over the C ABI, with real processes: `gossip.py`. Tests whose names begin with a row's id show that
//! row of `docs/scenarios.md`.

use crate::promises::story;

const STORIES: &str = "gossip.py";

#[test]
fn f5_two_groups_of_processes_that_merge_keep_the_lower_leader() {
    story(
        STORIES,
        "f5_two_groups_of_processes_that_merge_keep_the_lower_leader",
    );
}

#[test]
fn f6_when_the_first_process_is_killed_the_lowest_takes_over() {
    story(
        STORIES,
        "f6_when_the_first_process_is_killed_the_lowest_takes_over",
    );
}

#[test]
fn f7_a_process_that_yields_is_notified_once_and_another_leads_for_good() {
    story(
        STORIES,
        "f7_a_process_that_yields_is_notified_once_and_another_leads_for_good",
    );
}

#[test]
fn f10_every_part_of_a_cut_network_has_a_leader_and_one_is_left() {
    story(
        STORIES,
        "f10_every_part_of_a_cut_network_has_a_leader_and_one_is_left",
    );
}

#[test]
fn requests_that_need_votes_are_refused() {
    story(STORIES, "requests_that_need_votes_are_refused");
}

#[test]
fn f27_a_process_alone_that_yields_leads_again() {
    story(STORIES, "f27_a_process_alone_that_yields_leads_again");
}

#[test]
fn messages_find_the_next_leader_after_a_crash() {
    story(STORIES, "messages_find_the_next_leader_after_a_crash");
}

#[test]
fn windows_are_the_processs_and_hold_from_the_next_one_on() {
    story(
        STORIES,
        "windows_are_the_processs_and_hold_from_the_next_one_on",
    );
}

#[test]
fn members_of_other_strategies_do_not_link() {
    story(STORIES, "members_of_other_strategies_do_not_link");
}
