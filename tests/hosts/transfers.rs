//! Transfers between processes in C and Python: `transfers.py`.

use std::process::Command;

use crate::stories::stories;
use crate::tools::{compile_c, library, root, run};

#[track_caller]
fn in_two_languages(file: &str, story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(story)
        .arg(compile_c(
            "tests/hosts/transfers/transfers.c",
            "transfers",
            &[],
        ))
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

stories! { in_two_languages, "transfers.py":
    c_sends_64_mib_to_a_buffer_of_python
    python_sends_64_mib_to_c_in_parts
    a_killed_receiver_is_a_result_at_the_sender
    a_killed_sender_is_a_result_at_the_receiver
}
