//! The programs in the READMEs work as pasted: `readme.py`.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/readme.py"))
        .arg(story)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn the_programs_of_the_readme_greet_each_other() {
    shows("the_programs_of_the_readme_greet_each_other");
}

#[test]
fn the_programs_of_the_chinese_readme_greet_each_other() {
    shows("the_programs_of_the_chinese_readme_greet_each_other");
}

#[test]
fn the_console_program_in_csharp_greets_another_of_its_kind() {
    shows("the_console_program_in_csharp_greets_another_of_its_kind");
}

#[test]
fn the_programs_discover_each_other_without_an_address() {
    shows("the_programs_discover_each_other_without_an_address");
}

#[test]
fn the_plugin_for_bepinex_compiles() {
    shows("the_plugin_for_bepinex_compiles");
}

#[test]
fn the_unity_script_leaves_with_its_scene() {
    shows("the_unity_script_leaves_with_its_scene");
}

#[test]
fn the_chinese_readme_has_the_same_programs() {
    shows("the_chinese_readme_has_the_same_programs");
}
