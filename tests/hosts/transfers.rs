//! Transfers between processes in C, C# and Python: `transfers.py`.

use std::process::Command;

use crate::stories::stories;
use crate::tools::{compile_c, compile_csharp, library, root, run};

#[track_caller]
fn in_three_languages(file: &str, story: &str) {
    let library = library();
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(story)
        .arg(compile_c(
            "tests/hosts/transfers/transfers.c",
            "transfers",
            &[],
        ))
        .arg(compile_csharp(
            &["tests/hosts/transfers/Transfers.cs"],
            "Transfers.exe",
        ))
        .env("MMN_LIBRARY", &library)
        .env("LD_LIBRARY_PATH", library.parent().expect("a folder")));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

stories! { in_three_languages, "transfers.py":
    c_sends_64_mib_to_a_buffer_of_python
    python_sends_64_mib_to_c_in_parts
    c_sends_64_mib_to_a_buffer_of_csharp
    csharp_sends_64_mib_to_a_buffer_of_c
    python_sends_64_mib_to_csharp_in_parts
    a_killed_receiver_is_a_result_at_the_sender
    a_killed_sender_is_a_result_at_the_receiver
}
