//! Python programs of stories: functions, each of which shows one behaviour and fails on its own.

use std::path::PathBuf;
use std::process::Command;

use crate::tools::{library, root, run};

/// Runs a story of a file in this folder (`stories.py`).
#[track_caller]
pub(crate) fn play(file: &str, story: &str) {
    play_with(file, story, &[]);
}

/// As `play`, with environment variables.
#[track_caller]
pub(crate) fn play_with(file: &str, story: &str, variables: &[(&str, PathBuf)]) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(story)
        .envs(variables.iter().cloned())
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

/// A test for each function of a file, with that function's name.
macro_rules! stories {
    ($play:path, $file:literal: $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $play($file, stringify!($name));
            }
        )*
    };
}
pub(crate) use stories;
