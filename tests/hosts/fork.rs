//! Hosts that fork with two rooms open: a child has no room, its parent's rooms go on, and the child may open its own.

use std::process::Command;

use crate::tools::{compile_c, library, root, run};

#[test]
fn a_forked_child_of_a_c_host_has_no_room_and_may_open_its_own() {
    let program = compile_c("tests/hosts/fork/fork.c", "fork", &[]);
    let printed = run(Command::new(program).env("MMN_LIBRARY", library()));
    for test in [
        "child", "hammer", "own", "port", "state", "killed", "prefork", "poll", "thread", "log",
        "unload",
    ] {
        let line = format!("ok {test}");
        assert!(
            printed.lines().any(|printed_line| printed_line == line),
            "{printed}"
        );
    }
}

#[test]
fn a_python_host_may_use_multiprocessing() {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/fork/fork.py"))
        .env("MMN_LIBRARY", library()));
    assert_eq!(printed.trim(), "ok");
}
