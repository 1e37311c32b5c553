//! The seeded strategy over the C ABI, with real processes: `seeded.py`. Tests whose names begin with a row's id show that row
//! of `docs/scenarios.md`.

use crate::promises::story;

const STORIES: &str = "seeded.py";

#[test]
fn t14_five_processes_elect_while_three_of_them_live() {
    story(STORIES, "t14_five_processes_elect_while_three_of_them_live");
}

#[test]
fn t21_a_process_that_was_killed_returns_from_its_state_directory() {
    story(
        STORIES,
        "t21_a_process_that_was_killed_returns_from_its_state_directory",
    );
}

#[test]
fn members_without_a_vote_follow_and_hosts_ask_seeds_by_name() {
    story(
        STORIES,
        "members_without_a_vote_follow_and_hosts_ask_seeds_by_name",
    );
}

#[test]
fn functions_of_other_strategies_are_refused() {
    story(STORIES, "functions_of_other_strategies_are_refused");
}

#[test]
fn members_with_other_intervals_do_not_link() {
    story(STORIES, "members_with_other_intervals_do_not_link");
}
