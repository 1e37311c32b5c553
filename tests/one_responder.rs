//! Rooms of one process share the responder of their port. Alone in this program, because it counts the threads and files of
//! the process.

#![cfg(target_os = "linux")]

#[allow(dead_code)] // the part that this test does not need
#[path = "e2e/harness.rs"]
mod harness;

use harness::{Member, eventually, quick};
use meta_mystia_network::config::{Config, DiscoveryMode};

const ROOMS: usize = 5;
const MEMBERS: usize = 4;

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a Linux system");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks
        .filter_map(name)
        .map(|name| name.trim_end().to_owned())
        .collect()
}

fn named(name: &str) -> usize {
    threads().iter().filter(|thread| *thread == name).count()
}

fn files() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("a Linux system");
    files.count()
}

fn discovering(mdns_port: u16) -> Config {
    Config {
        discovery: DiscoveryMode::Connect,
        mdns_port: Some(mdns_port),
        ..quick()
    }
}

fn open(room: usize, member: usize) -> Member {
    let name = format!("m{member}");
    Member::open_with(&name, &format!("room {room}"), discovering(15_454))
}

fn peers(member: &Member) -> usize {
    member.room.snapshot().peers.len()
}

#[test]
fn rooms_share_one_responder_and_each_is_discovered_by_its_own_members() {
    // The first room makes the things that a process keeps for good.
    open(0, 0).room.close();
    let (before, files_before) = (threads().len(), files());
    let members: Vec<_> = (0..ROOMS * MEMBERS)
        .map(|number| open(number % ROOMS, number / ROOMS))
        .collect();
    eventually("each is linked to the others of its room", || {
        members.iter().all(|member| peers(member) == MEMBERS - 1)
    });
    eventually("each is announced", || {
        members.iter().all(|member| member.room.is_announced())
    });
    assert_eq!(named("mDNS_daemon"), 1);
    assert_eq!(named("mmn-discovery"), 1);

    // Another port takes another responder, which ends with its room.
    let elsewhere = Member::open_with("m0", "room 0", discovering(15_455));
    eventually("it is announced", || elsewhere.room.is_announced());
    assert_eq!(named("mDNS_daemon"), 2);
    elsewhere.room.close();
    assert_eq!(named("mDNS_daemon"), 1);
    assert_eq!(peers(&members[0]), MEMBERS - 1);

    // The end of a room withdraws its own announcement and no other.
    let (left, staying) = members.split_at(ROOMS);
    for member in left {
        member.room.close();
    }
    assert_eq!(named("mDNS_daemon"), 1);
    assert!(staying.iter().all(|member| member.room.is_announced()));
    let late = open(0, MEMBERS);
    eventually("a later member discovers those before it", || {
        peers(&late) == MEMBERS - 1
    });
    late.room.close();
    for member in staying {
        member.room.close();
    }
    assert_eq!((named("mDNS_daemon"), named("mmn-discovery")), (0, 0));
    drop((members, late, elsewhere));
    eventually("what was held before", || {
        (threads().len(), files()) == (before, files_before)
    });
}
