//! Traces of real rooms: complete after the shutdown, in the simulator's format, and refused where they cannot be written.

use std::path::{Path, PathBuf};

use meta_mystia_network::config::Config;
use meta_mystia_network::core::id::SessionId;
use meta_mystia_network::error::StartError;
use meta_mystia_network::room::Room;
use room_core::id::PeerId;
use room_core::trace::{Role, What};
use room_simulator::record::{Section, from_lines};

use crate::harness::{self, Member, quick, settled};

/// Like the simulator's reader.
fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a valid id")
}

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("target can be written");
    folder
}

fn traced(path: &Path) -> Config {
    Config {
        trace_path: Some(path.to_owned()),
        ..quick()
    }
}

fn read(path: &Path) -> Section {
    let text = std::fs::read_to_string(path).expect("the trace");
    let mut sections = from_lines(&text).expect("a trace");
    assert_eq!(sections.len(), 1);
    sections.remove(0)
}

fn refused(path: &Path) -> StartError {
    let session = SessionId::new("traces").expect("a valid session");
    match Room::open(harness::id("a"), session, traced(path)) {
        Ok(_) => panic!("{} was taken", path.display()),
        Err(error) => error,
    }
}

#[test]
fn sent_messages_are_received_and_both_traces_are_complete() {
    let folder = folder("both");
    let (first, second) = (folder.join("a.jsonl"), folder.join("b.jsonl"));
    let a = Member::open_with("a", "both", traced(&first));
    settled(&[&a]);
    let b = Member::open_with("b", "both", traced(&second));
    b.connect_to(&a);
    assert_eq!(settled(&[&a, &b]), "a");
    b.room.close();
    a.room.close();

    let (a, b) = (read(&first), read(&second));
    assert_eq!(a.header.peer, Some(id("a")));
    for section in [&a, &b] {
        let last = section.entries.last().map(|entry| &entry.what);
        assert_eq!(last, Some(&What::Stopped));
        let dropped = |what: &What| matches!(what, What::Dropped { .. } | What::Full { .. });
        assert!(!section.entries.iter().any(|entry| dropped(&entry.what)));
        assert!(section.entries.is_sorted_by_key(|entry| entry.at));
    }
    let leads = What::Role { role: Role::Leader };
    assert!(a.entries.iter().any(|entry| entry.what == leads));
    assert!(b.entries.iter().all(|entry| entry.what != leads));
    let shows =
        |entry: &What| matches!(entry, What::Shows { leader, .. } if *leader == Some(id("a")));
    assert!(b.entries.iter().any(|entry| shows(&entry.what)));

    let said = |section: &Section, sent: bool| -> Vec<(String, u64)> {
        let entries = section.entries.iter();
        entries
            .filter_map(|entry| match &entry.what {
                What::Sent { said, .. } if sent => Some((said.kind.to_string(), said.n)),
                What::Received { said, .. } if !sent => Some((said.kind.to_string(), said.n)),
                _ => None,
            })
            .collect()
    };
    let (sent, received) = (said(&b, true), said(&a, false));
    assert!(received.contains(&("leave".into(), sent.last().expect("a leave").1)));
    for message in &received {
        assert!(sent.contains(message), "{message:?} was never sent");
    }
}

#[test]
fn a_path_that_cannot_be_written_is_named_and_nothing_is_open_then() {
    let folder = folder("refused");
    for (path, why) in [
        (folder.join("nowhere/trace.jsonl"), "No such file"),
        (folder.clone(), "no file"),
        (PathBuf::from("/dev/null"), "no file"),
    ] {
        let error = refused(&path).to_string();
        assert!(error.contains(why), "{error}");
        assert!(error.contains("trace_path"), "{error}");
    }
    let fine = folder.join("trace.jsonl");
    Member::open_with("a", "traces", traced(&fine)).room.close();
    assert_eq!(read(&fine).header.peer, Some(id("a")));
}

#[test]
fn a_second_room_writes_its_file_anew() {
    let path = folder("anew").join("trace.jsonl");
    std::fs::write(&path, "x".repeat(100_000)).expect("target can be written");
    Member::open_with("a", "anew", traced(&path)).room.close();
    assert_eq!(read(&path).header.peer, Some(id("a")));
}
