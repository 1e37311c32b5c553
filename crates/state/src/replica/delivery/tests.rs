use bytes::Bytes;
use room_core::id::Incarnation;

use super::*;

fn member(name: &str) -> MemberId {
    let incarnation = Incarnation {
        started_us: 1,
        random: 1,
    };
    let peer = PeerId::new(name).expect("a name");
    MemberId { peer, incarnation }
}

fn ballot(number: u64) -> Ballot {
    let leader = member("a");
    Ballot { number, leader }
}

fn entry(number: u64, contents: Contents) -> Entry {
    Entry {
        ballot: ballot(number),
        time_ms: 0,
        contents,
    }
}

fn open(number: u64, history: u64) -> Entry {
    let contents = Contents::Open {
        history: History(history),
        exclusive: true,
        roster: Roster::from([member("a")]),
    };
    entry(number, contents)
}

/// An action of "a" with as many bytes.
fn act(ballot: u64, number: u64, bytes: usize) -> Entry {
    let data = Bytes::from(vec![0; bytes]);
    let contents = Contents::Request {
        author: member("a"),
        number,
        request: Request::Action { msg_type: 1, data },
    };
    entry(ballot, contents)
}

fn log(entries: impl IntoIterator<Item = Entry>) -> Log {
    let mut log = Log::default();
    for entry in entries {
        log.append(entry);
    }
    log
}

/// A log with `count` actions, from index 2 on.
fn acted(count: u64, bytes: usize) -> Log {
    let actions = (1..=count).map(|number| act(1, number, bytes));
    log([open(1, 7)].into_iter().chain(actions))
}

fn options(tail_entries: u32, tail_bytes: u32) -> Options {
    Options {
        tail_entries,
        tail_bytes,
        ..Options::default()
    }
}

/// The indexes of the displaced actions when a log of another history takes the place of `old`, which the host has received.
fn displaced(old: &Log, options: &Options) -> (Displaced, Vec<u64>) {
    let mut displaced = Displaced::default();
    displaced.note_replaced(old.end(), old, &log([open(2, 8)]), options);
    let indexes = displaced.actions().map(|(index, _)| index).collect();
    (displaced, indexes)
}

#[test]
fn displaced_actions_are_kept_within_the_limits_of_a_tail() {
    let (all, indexes) = displaced(&acted(5, 100), &options(5, 10_000));
    assert_eq!(indexes, [2, 3, 4, 5, 6]);
    assert!(!all.is_incomplete(0));
    let (newest, indexes) = displaced(&acted(5, 100), &options(2, 10_000));
    assert_eq!(indexes, [5, 6]);
    assert!(newest.is_incomplete(0));
    let (newest, indexes) = displaced(&acted(5, 1000), &options(5, 2500));
    assert_eq!(indexes, [5, 6]);
    assert!(newest.bytes() <= 2500);
}

#[test]
fn actions_before_the_tail_are_known_to_be_missing() {
    let mut old = acted(5, 100);
    old.trim(4, &options(3, 10_000));
    let (displaced, indexes) = displaced(&old, &options(3, 10_000));
    assert_eq!(indexes, [4, 5, 6]);
    assert!(displaced.is_incomplete(0));
    assert!(!displaced.is_incomplete(3));
}

#[test]
fn a_log_that_comes_back_restores_what_it_displaced() {
    let (old, other) = (acted(5, 100), log([open(2, 8)]));
    let (mut displaced, _) = displaced(&old, &options(5, 10_000));
    displaced.note_replaced(old.end(), &other, &old, &options(5, 10_000));
    assert_eq!(displaced.actions().count(), 0);
    assert_eq!(displaced.bytes(), 0);
}
