//! The C# packages, and `Room.LoadNative`: `packages_csharp.py`.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/packages_csharp.py"))
        .arg(story)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn the_same_input_gives_the_same_packages() {
    shows("the_same_input_gives_the_same_packages");
}

#[test]
fn what_is_missing_is_named() {
    shows("what_is_missing_is_named");
}

#[test]
fn the_nuget_package_has_its_parts() {
    shows("the_nuget_package_has_its_parts");
}

#[test]
fn the_project_file_agrees_with_the_package() {
    shows("the_project_file_agrees_with_the_package");
}

#[test]
fn the_unity_package_has_its_parts() {
    shows("the_unity_package_has_its_parts");
}

#[test]
fn the_bepinex_package_has_its_parts() {
    shows("the_bepinex_package_has_its_parts");
}

#[test]
fn the_assembly_uses_only_what_every_framework_has() {
    shows("the_assembly_uses_only_what_every_framework_has");
}

#[test]
fn a_program_with_the_nuget_package_greets_another_under_mono() {
    shows("a_program_with_the_nuget_package_greets_another_under_mono");
}

#[test]
fn a_program_with_the_nuget_package_greets_another_under_coreclr() {
    shows("a_program_with_the_nuget_package_greets_another_under_coreclr");
}

#[test]
fn a_unity_project_with_the_package_plays_its_sample() {
    shows("a_unity_project_with_the_package_plays_its_sample");
}

#[test]
fn a_plugin_with_the_bepinex_package_plays_under_mono() {
    shows("a_plugin_with_the_bepinex_package_plays_under_mono");
}

#[test]
fn a_plugin_with_the_bepinex_package_plays_under_coreclr() {
    shows("a_plugin_with_the_bepinex_package_plays_under_coreclr");
}

#[test]
fn a_library_is_loaded_from_a_path_under_mono() {
    shows("a_library_is_loaded_from_a_path_under_mono");
}

#[test]
fn a_library_is_loaded_from_a_path_under_coreclr() {
    shows("a_library_is_loaded_from_a_path_under_coreclr");
}
