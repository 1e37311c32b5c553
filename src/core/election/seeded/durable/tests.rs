//! What goes to the disk, and what waits for it.

use super::*;
use crate::core::election::seeded::wire::{Based, Claim};

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

/// A disk with a version that had a leader, and the state that is on it.
fn led() -> (Disk, Kept) {
    let mut kept = Kept::default();
    kept.acceptor.decide(3);
    (Disk::new(kept.clone()), kept)
}

fn send(version: u64, message: SeededMessage) -> OutputOf<Seeded> {
    let basis = Observation {
        leader: None,
        version,
    };
    ElectionOutput::Send {
        to: id("b"),
        message: Based {
            basis,
            writes: 0,
            message,
        },
    }
}

/// A message that elects nobody.
fn query(version: u64) -> OutputOf<Seeded> {
    send(version, SeededMessage::LeaderQuery { query: 1 })
}

/// "Votes chose this one", which is as good as a vote.
fn elected(version: u64) -> OutputOf<Seeded> {
    let claim = Claim {
        leader: id("a"),
        version,
        elected: true,
        address: String::new(),
    };
    send(version, SeededMessage::LeaderElected { claim })
}

/// The number of the write that is asked for.
fn write(disk: &mut Disk) -> Option<u64> {
    match disk.poll() {
        Some(ElectionOutput::Persist { number, .. }) => Some(number),
        None => None,
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_state_is_written_once() {
    let (mut disk, mut kept) = led();
    assert_eq!(write(&mut disk), None);
    kept.acceptor.decide(4);
    disk.take(&mut kept, []);
    assert_eq!(write(&mut disk), Some(1));
    disk.written(1);
    assert_eq!(write(&mut disk), None);
    disk.take(&mut kept, []);
    assert_eq!(write(&mut disk), None);
}

#[test]
fn a_message_waits_for_the_disk_when_its_version_is_not_there_yet() {
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, [query(4), query(3)]);
    assert_eq!(write(&mut disk), Some(1));
    let version = |output: Option<OutputOf<Seeded>>| match output {
        Some(ElectionOutput::Send { message, .. }) => Some(message.basis.version),
        None => None,
        Some(other) => panic!("{other:?}"),
    };
    assert_eq!(version(disk.poll()), Some(3));
    assert_eq!(version(disk.poll()), None);
    disk.written(1);
    assert_eq!(version(disk.poll()), Some(4));
}

#[test]
fn votes_that_wait_are_taken_back_and_nothing_else_is() {
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, [elected(4), query(4), query(3)]);
    disk.forget_votes();
    assert_eq!(write(&mut disk), Some(1));
    disk.written(1);
    let elects = |output: OutputOf<Seeded>| match output {
        ElectionOutput::Send { message, .. } => message.elects(),
        other => panic!("{other:?}"),
    };
    let sent: Vec<_> = std::iter::from_fn(|| disk.poll()).map(elects).collect();
    assert_eq!(sent, [false, false]);
}
