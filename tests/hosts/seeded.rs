//! The seeded strategy over the C ABI, with real processes: `seeded.py`. Tests whose names begin with a row's id show that row
//! of `docs/scenarios.md`.

use crate::promises::stories;

stories! { "seeded.py":
    t14_five_processes_elect_while_three_of_them_live
    t21_a_process_that_was_killed_returns_from_its_state_directory
    members_without_a_vote_follow_and_hosts_ask_seeds_by_name
    what_only_other_strategies_have_is_refused
    members_with_other_intervals_do_not_link
}
