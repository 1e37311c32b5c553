//! What is installed for C and C++ is found, compiled against and run: `packages_c.py`.

use std::process::Command;

use crate::tools::{library, root, run};

#[track_caller]
fn shows(story: &str) {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/packages_c.py"))
        .arg(story)
        .env("MMN_LIBRARY", library()));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

#[test]
fn a_cmake_project_uses_the_installed_library() {
    shows("a_cmake_project_uses_the_installed_library");
}

#[test]
fn compilers_use_what_pkg_config_says() {
    shows("compilers_use_what_pkg_config_says");
}

#[test]
fn a_release_folder_is_used_as_it_is() {
    shows("a_release_folder_is_used_as_it_is");
}

#[test]
fn cmake_refuses_what_does_not_fit() {
    shows("cmake_refuses_what_does_not_fit");
}

#[test]
fn make_installs_and_uninstalls() {
    shows("make_installs_and_uninstalls");
}

#[test]
fn a_bad_installation_is_refused_in_words() {
    shows("a_bad_installation_is_refused_in_words");
}

#[test]
fn the_vcpkg_port_lays_out_a_package() {
    shows("the_vcpkg_port_lays_out_a_package");
}

#[test]
fn the_cpp_header_takes_little_of_windows() {
    shows("the_cpp_header_takes_little_of_windows");
}

#[test]
#[ignore = "needs MinGW: make test-windows"]
fn the_headers_compile_for_windows() {
    shows("the_headers_compile_for_windows");
}

#[test]
#[ignore = "needs MinGW: make test-windows"]
fn a_cmake_project_links_for_windows() {
    shows("a_cmake_project_links_for_windows");
}
