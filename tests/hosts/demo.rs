//! The demo, as a user sees it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::tools::{compile_c, compile_csharp, library, lobby_sources, output, root, run};

#[test]
fn four_languages_connect_and_follow_a_new_leader_when_the_first_is_killed() {
    plays(&[]);
}

/// With the gossip option.
#[test]
fn the_hosts_of_the_demo_follow_a_new_leader_under_gossip_too() {
    plays(&["--strategy", "gossip", "--alive-ms", "500"]);
}

/// As seeds of a cluster that never splits; none dials another.
#[test]
fn the_hosts_of_the_demo_follow_a_new_leader_as_seeds_too() {
    plays(&["--strategy", "seeded"]);
}

fn plays(options: &[&str]) {
    let printed = run(Command::new("python3")
        .current_dir(root())
        .arg("scripts/demo.py")
        .args(options)
        .arg("--library")
        .arg(library())
        .arg("--output")
        .arg(output("hosts")));
    assert!(printed.contains("OK: four hosts"), "{printed}");
    assert!(
        printed.contains("carried on with all that the four had"),
        "{printed}"
    );
}

/// The plain C example loads the library with dlopen, and shares a room with the Python one.
#[test]
fn the_c_example_and_the_python_example_share_a_room() {
    let library = library();
    let program = compile_c("examples/c/lobby.c", "lobby_c", &[]);
    let mut c = Command::new(program)
        .args(["--id", "c", "--session", "examples", "--interactive"])
        .env("MMN_LIBRARY", &library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the C example starts");
    let mut lines = BufReader::new(c.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("a line").expect("text");
    let address = first.rsplit(' ').next().expect("a word").to_owned();
    assert_eq!(first, format!("[c] listening on {address}"));
    let python = run(Command::new("python3")
        .current_dir(root())
        .arg("examples/python/lobby.py")
        .args(["--id", "python", "--session", "examples", "--seconds", "7"])
        .args(["--connect", &address])
        .env("MMN_LIBRARY", &library));
    let mut printed = Vec::new();
    for line in lines {
        let line = line.expect("text");
        if line == "[c] peer python left" {
            drop(c.stdin.take()); // the example leaves at the end of its input
        }
        printed.push(line);
    }
    assert!(c.wait().expect("it ends").success());
    for expected in [
        "[python] dialled",
        "[python] peer c connected",
        "[python] from c: hello",
        "[python] leader is",
        "[python] closed",
    ] {
        assert!(
            python.contains(expected),
            "{expected:?} is not in\n{python}"
        );
    }
    for expected in [
        "[c] peer python connected",
        "[c] from python: hello",
        "[c] leader is",
        "[c] peer python left",
        "[c] closed",
    ] {
        assert!(
            printed.iter().any(|line| line.starts_with(expected)),
            "{expected:?} is not in {printed:#?}"
        );
    }
}

#[test]
fn leadership_circulates_between_c_and_csharp_with_alternating_callbacks() {
    let lobby = compile_c("examples/c/lobby.c", "lobby_transfer", &[]);
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/transfer.py"))
        .arg(lobby)
        .arg(compile_csharp(&lobby_sources(), "LobbyTransfer.exe"))
        .env("MMN_LIBRARY", library()));
    assert_eq!(printed.lines().last(), Some("ok"), "{printed}");
}
