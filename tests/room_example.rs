//! The example of a room in Rust does what it says.

#[path = "../examples/room.rs"]
#[expect(dead_code, reason = "its `main` reads standard input")]
mod example;

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use meta_mystia_network::room::Room;

fn member(name: &str, contact: Option<&str>) -> (Room, Receiver<String>) {
    let (tell, told) = channel();
    let room = example::join(name, "example", contact, move |line| {
        let _ = tell.send(line);
    });
    (room.expect("a room"), told)
}

/// Waits until a member was told all of `lines`, in any order.
fn wait_for(told: &Receiver<String>, lines: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut missing = lines.to_vec();
    let mut seen = Vec::new();
    while !missing.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = told.recv_timeout(left);
        let line = line.unwrap_or_else(|_| panic!("{missing:?} did not come, only {seen:?}"));
        missing.retain(|expected| *expected != line);
        seen.push(line);
    }
}

#[test]
fn two_programs_in_rust_meet_elect_and_talk() {
    let (alice, at_alice) = member("alice", None);
    let (bob, at_bob) = member("bob", Some(&alice.local_address().to_string()));
    wait_for(&at_alice, &["bob is here"]);
    wait_for(&at_bob, &["alice is here"]);
    example::say(&alice, "hello").expect("it is sent");
    example::say(&bob, "good morning").expect("it is sent");
    wait_for(&at_alice, &["bob: good morning"]);
    wait_for(&at_bob, &["alice: hello"]);
    alice.close();
    wait_for(&at_bob, &["alice is gone", "bob leads"]);
    bob.close();
}

#[test]
fn a_dial_that_fails_is_told() {
    let (room, told) = member("carol", Some("127.0.0.1:1"));
    wait_for(&told, &["127.0.0.1:1: error -4"]);
    room.close();
}
