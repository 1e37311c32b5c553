//! Tests of the writes, and of the messages that wait for them.

use super::*;
use crate::election::seeded::wire::{Based, Claim};

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

/// A disk with a version that had a leader, and the state on that disk.
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

/// A message that does not elect.
fn query(version: u64) -> OutputOf<Seeded> {
    send(version, SeededMessage::LeaderQuery { query: 1 })
}

/// A message that announces the chosen leader, which counts as a vote.
fn elected(version: u64) -> OutputOf<Seeded> {
    let claim = Claim {
        leader: id("a"),
        version,
        elected: true,
        address: String::new(),
    };
    send(version, SeededMessage::LeaderElected { claim })
}

/// The number of the requested write.
fn write(disk: &mut Disk) -> Option<u64> {
    match disk.poll() {
        Some(ElectionOutput::Extra(Extra::Persist { number, .. })) => Some(number),
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
    kept.acceptor.decide(5);
    disk.take(&mut kept, []);
    assert_eq!(write(&mut disk), Some(2));
}

/// The outputs before the current write is on disk, and the ones after it.
fn before_and_after(disk: &mut Disk) -> [Vec<OutputOf<Seeded>>; 2] {
    let number = write(disk).expect("the state has changed");
    let before = std::iter::from_fn(|| disk.poll()).collect();
    disk.written(number);
    [before, std::iter::from_fn(|| disk.poll()).collect()]
}

/// Sets the write counter on disk in a message.
fn after_writes(output: OutputOf<Seeded>, writes: u64) -> OutputOf<Seeded> {
    match output {
        ElectionOutput::Send { to, mut message } => {
            message.writes = writes;
            ElectionOutput::Send { to, message }
        }
        other => other,
    }
}

#[test]
fn a_message_waits_for_the_disk_when_its_version_is_not_there_yet() {
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, [query(4), query(3)]);
    let [before, after] = before_and_after(&mut disk);
    assert_eq!(before, [query(3)]);
    assert_eq!(after, [after_writes(query(4), 1)]);
}

#[test]
fn only_a_heartbeat_and_a_new_acknowledgement_wait_for_other_changes() {
    let acknowledgement = || {
        let digest = postcard::from_bytes(&[0; 16]).expect("any sixteen bytes");
        let acked_us = None;
        send(3, SeededMessage::LeaderKeepAlive { digest, acked_us })
    };
    let (mut disk, mut kept) = led();
    kept.acknowledged = Some(Observation {
        leader: Some(id("a")),
        version: 3,
    });
    let outputs = [query(3), acknowledgement(), ElectionOutput::HeartbeatNow];
    disk.take(&mut kept, outputs);
    let [before, after] = before_and_after(&mut disk);
    assert_eq!(before, [query(3)]);
    let acknowledged = after_writes(acknowledgement(), 1);
    assert_eq!(after, [acknowledged, ElectionOutput::HeartbeatNow]);

    kept.acceptor.decide(4);
    disk.take(&mut kept, [acknowledgement()]);
    let [before, after] = before_and_after(&mut disk);
    assert_eq!(before, [after_writes(acknowledgement(), 1)]);
    assert_eq!(after, []);
}

#[test]
fn messages_that_wait_are_bounded() {
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, (0..MAX_HELD + 1).map(|_| query(4)));
    let [_, after] = before_and_after(&mut disk);
    assert_eq!(after.len(), MAX_HELD);
}

#[test]
fn only_messages_that_wait_for_a_lost_link_are_forgotten() {
    let to_c = |version| match query(version) {
        ElectionOutput::Send { message, .. } => ElectionOutput::Send {
            to: id("c"),
            message,
        },
        other => other,
    };
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, [query(4), to_c(4), query(3), to_c(3)]);
    disk.forget(&id("b"));
    let [before, after] = before_and_after(&mut disk);
    assert_eq!(before, [to_c(3)]);
    assert_eq!(after, [after_writes(to_c(4), 1)]);
}

#[test]
fn votes_that_wait_are_taken_back_and_nothing_else_is() {
    let (mut disk, mut kept) = led();
    kept.acceptor.decide(4);
    disk.take(&mut kept, [elected(4), query(4), query(3)]);
    disk.forget_votes();
    let [before, after] = before_and_after(&mut disk);
    assert_eq!(before, [query(3)]);
    assert_eq!(after, [after_writes(query(4), 1)]);
}
