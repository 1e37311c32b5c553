//! Three rooms of a host in C keep one state, and so do the samples in four languages (`samples_of_state.py`).

use std::process::Command;

use crate::stories::stories;
use crate::tools::{compile_c, compile_cpp, compile_csharp, library, passes, root, run};

#[test]
fn three_rooms_in_c_receive_one_order_and_their_results() {
    let program = compile_c("tests/hosts/state/state.c", "state", &[]);
    let session = format!("state-{}", std::process::id());
    let printed = run(Command::new(program)
        .arg(session)
        .env("MMN_LIBRARY", library()));
    assert_eq!(printed, "ok\n");
}

#[track_caller]
fn with_all_samples(file: &str, story: &str) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let search = format!("-L{}", folder.display());
    let link = [search.as_str(), "-lmeta_mystia_network"];
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts").join(file))
        .arg(story)
        .arg(compile_c("examples/c/state.c", "state_c", &link))
        .arg(compile_cpp("examples/cpp/state.cpp", "state_cpp", &link))
        .arg(compile_csharp(
            &["csharp-sample/state/State.cs"],
            "StateSample.exe",
        ))
        .env("MMN_LIBRARY", &library));
    let last = printed.lines().last().unwrap_or_default();
    assert_eq!(last, format!("ok {story}"), "{printed}");
}

stories! { with_all_samples, "samples_of_state.py":
    a_leader_in_c_is_killed
    a_leader_in_cpp_is_killed
    a_leader_in_python_is_killed
    a_leader_in_csharp_is_killed
}

/// Promises that each binding's own tests show.
const PROMISES: [&str; 5] = ["actions", "snapshots", "properties", "claims", "merges"];

/// Runs a program's tests: [`PROMISES`] and some of its own.
#[track_caller]
fn keeps_promises(program: &mut Command, own: &[&str]) {
    passes(program, &[&PROMISES[..], own].concat());
}

#[test]
fn python_gives_a_host_the_state_of_its_room() {
    let mut python = Command::new("python3");
    let program = python.arg(root().join("bindings/python/tests/state.py"));
    keeps_promises(program, &["limits", "asynchronous"]);
}

#[test]
fn cpp_gives_a_host_the_state_of_its_room() {
    let program = compile_cpp("bindings/cpp/tests/state.cpp", "state_cpp_tests", &[]);
    keeps_promises(&mut Command::new(program), &["refusals"]);
}

#[test]
fn csharp_gives_a_host_the_state_of_its_room() {
    let sources = ["State.cs", "Checks.cs"].map(|file| format!("bindings/csharp/tests/{file}"));
    let program = compile_csharp(&sources, "StateTests.exe");
    let mut mono = Command::new("mono");
    keeps_promises(mono.arg(program), &["exceptions", "refusals"]);
}
