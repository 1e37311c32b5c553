//! The state of the lobbies in four languages survives its leaders: `migration.py`.

use std::process::Command;

use crate::stories::stories;
use crate::tools::{library, output, root, run};

#[track_caller]
fn in_four_languages(file: &str, story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(story)
        .arg(output("lobbies"))
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

stories! { in_four_languages, "migration.py":
    nothing_that_was_confirmed_is_lost_when_each_leader_is_killed
    nothing_is_lost_or_repeated_when_the_leadership_is_transferred
    a_leader_that_was_stopped_undoes_nothing
    a_leader_that_was_cut_off_reports_what_the_merge_undid
    the_majority_keeps_its_state_when_it_loses_its_leader_at_the_merge
    a_newcomer_receives_what_no_log_has_any_more
}
