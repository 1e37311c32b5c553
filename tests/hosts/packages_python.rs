//! The Python wheels install and work, and type checkers know them: `packages_python.py`.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/packages_python.py"))
        .arg(story)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn a_wheel_works_in_an_empty_environment() {
    shows("a_wheel_works_in_an_empty_environment");
}

#[test]
fn wheels_are_for_their_platforms() {
    shows("wheels_are_for_their_platforms");
}

#[test]
fn a_build_without_natives_is_refused_in_words() {
    shows("a_build_without_natives_is_refused_in_words");
}

#[test]
fn a_missing_library_is_named_with_the_folders() {
    shows("a_missing_library_is_named_with_the_folders");
}

#[test]
fn type_checkers_know_the_package() {
    shows("type_checkers_know_the_package");
}

#[test]
fn rooms_for_asyncio_keep_their_promises() {
    shows("rooms_for_asyncio_keep_their_promises");
}
