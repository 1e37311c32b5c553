//! The example of a room in Rust works as documented.

#[path = "../examples/room.rs"]
#[expect(dead_code, reason = "its `main` reads standard input")]
mod example;

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use meta_mystia_network::room::Room;

/// A member, and its output so far.
struct Member {
    room: Room,
    reported: Receiver<String>,
    lines: Vec<String>,
}

impl Member {
    fn new(name: &str, contact: Option<&str>) -> Self {
        let (notify, reported) = channel();
        let room = example::join(name, "example", contact, move |line| {
            let _ = notify.send(line);
        });
        Self {
            room: room.expect("a room"),
            reported,
            lines: Vec::new(),
        }
    }

    fn wait_for(&mut self, line: &str) {
        self.wait_until(line, |lines| lines.iter().any(|reported| reported == line));
    }

    fn wait_for_leader(&mut self, name: &str) {
        let wanted = format!("{name} leads");
        self.wait_until(&wanted, |lines| {
            let last = lines.iter().rfind(|line| line.ends_with(" leads"));
            last == Some(&wanted)
        });
    }

    fn wait_until(&mut self, wanted: &str, is_there: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_there(&self.lines) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.reported.recv_timeout(left) {
                Ok(line) => self.lines.push(line),
                Err(_) => panic!("{wanted:?} did not come, only {:?}", self.lines),
            }
        }
    }
}

#[test]
fn two_programs_in_rust_connect_elect_and_talk() {
    let mut alice = Member::new("alice", None);
    let mut bob = Member::new("bob", Some(&alice.room.local_address().to_string()));
    alice.wait_for("bob is here");
    bob.wait_for("alice is here");
    example::send(&alice.room, "hello").expect("it is sent");
    example::send(&bob.room, "good morning").expect("it is sent");
    alice.wait_for("bob: good morning");
    bob.wait_for("alice: hello");
    alice.room.close();
    bob.wait_for("alice is gone");
    bob.wait_for_leader("bob");
    bob.room.close();
}

#[test]
fn a_failed_dial_is_reported() {
    let mut carol = Member::new("carol", Some("127.0.0.1:1"));
    carol.wait_for("127.0.0.1:1: error -4");
    carol.room.close();
}
