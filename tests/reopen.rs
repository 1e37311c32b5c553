//! Rooms that are opened and closed repeatedly leave nothing behind. Alone in this program, because it counts the threads and
//! files of the process.

#![cfg(target_os = "linux")]

#[allow(dead_code)] // the part that this test does not need
#[path = "e2e/harness.rs"]
mod harness;

use harness::{Member, Report, eventually, message, quick};
use meta_mystia_network::config::{Config, DiscoveryMode};

/// Threads and files of this process.
fn held() -> (usize, usize) {
    let count = |folder| std::fs::read_dir(folder).expect("a Linux system").count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// With everything that starts threads.
fn config() -> Config {
    Config {
        discovery: DiscoveryMode::Connect,
        ..quick()
    }
}

fn round() {
    let a = Member::open_with("a", "rounds", config());
    let b = Member::open_with("b", "rounds", config());
    b.connect_to(&a);
    a.wait_for(&Report::Joined("b".into()));
    b.wait_for(&Report::Joined("a".into()));
    a.room.broadcast(message(b"hello")).expect("accepted");
    eventually("the message", || b.messages().len() == 1);
    b.room.close();
    a.wait_for(&Report::Left("b".into()));
}

#[test]
fn fifty_rooms_one_after_the_other_leave_no_thread_and_no_file_behind() {
    round();
    let before = held();
    for _ in 0..50 {
        round();
    }
    // A thread that has ended may be listed for a moment longer.
    eventually("what was held before", || held() == before);
}
