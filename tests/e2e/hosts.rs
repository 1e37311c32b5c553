//! Hosts that create a room or join one, and hosts that stop taking their events.

use std::sync::mpsc;
use std::time::Duration;

use meta_mystia_network::config::{Config, DispatchMode};
use meta_mystia_network::core::election::Entry;
use meta_mystia_network::dispatch::Event;
use meta_mystia_network::error::Code;

use crate::harness::{Member, Report, TIMEOUT, eventually, id, message, quick, settled};

fn entering(name: &str, session: &str, entry: Entry) -> Member {
    let config = Config { entry, ..quick() };
    Member::open_with(name, session, config)
}

fn result(member: &Member, other: &Member) -> i32 {
    let address = format!("127.0.0.1:{}", other.port());
    member.wait("the result of a dial", |reported| {
        reported.iter().rev().find_map(|reported| match reported {
            Report::Connection(target, _, code) if *target == address => Some(*code),
            _ => None,
        })
    })
}

/// The next event about a host that takes no events.
fn next(events: &mpsc::Receiver<Event>) -> Event {
    loop {
        let event = events.recv_timeout(TIMEOUT).expect("the event");
        if matches!(event, Event::HostSilent { .. } | Event::HostBack(_)) {
            return event;
        }
    }
}

#[test]
fn a_player_that_joins_enters_the_room_of_the_creator_and_no_other() {
    let [first, second] = ["j", "k"].map(|name| entering(name, "entry", Entry::Join));
    first.connect_to(&second);
    assert_eq!(result(&first, &second), Code::LookingForRoom.value());
    assert_eq!((first.leader(), second.leader()), (None, None));
    let creator = entering("a", "entry", Entry::Create);
    assert_eq!(creator.leader().as_deref(), Some("a"));
    for joiner in [&first, &second] {
        joiner.connect_to(&creator);
        assert_eq!(result(joiner, &creator), 0);
    }
    assert_eq!(settled(&[&creator, &first, &second]), "a");
}

#[test]
fn a_leader_that_is_not_polled_yields_and_is_reported() {
    let silent = Config {
        dispatch_mode: DispatchMode::Poll,
        yield_after: Some(Duration::from_secs(2)),
        entry: Entry::Create,
        ..quick()
    };
    let leader = Member::open_deaf("a", "unpolled", silent);
    let other = Member::open("b", "unpolled");
    let reported = other.events();
    other.connect_to(&leader);
    other.wait_for(&Report::Leader("a".into()));
    other.wait_for(&Report::Leader("b".into()));
    let Event::HostSilent { peer, silent } = next(&reported) else {
        panic!("its host is back before it was silent");
    };
    assert_eq!(peer, id("a"));
    assert!(silent >= Duration::from_secs(5), "{silent:?}");
    let shown = other.room.snapshot();
    let shown = shown.peer("a").expect("connected");
    assert!(shown.host_silent >= Duration::from_secs(5));
    leader.room.dispatch().poll(100).expect("poll mode");
    assert_eq!(next(&reported), Event::HostBack(id("a")));
    eventually("the silence is over", || {
        let shown = other.room.snapshot();
        // Each poll clears the state, and the next occurrence is far off.
        shown
            .peer("a")
            .is_some_and(|peer| peer.host_silent < Duration::from_secs(5))
    });
    assert_eq!(leader.leader().as_deref(), Some("b"));
}

#[test]
fn a_leader_in_a_callback_that_does_not_return_yields() {
    let config = Config {
        yield_after: Some(Duration::from_secs(1)),
        entry: Entry::Create,
        ..quick()
    };
    let leader = Member::open_deaf("a", "callback", config);
    let release = leader.listen_later();
    let other = Member::open("b", "callback");
    other.connect_to(&leader);
    settled(&[&leader, &other]);
    let sent = other.room.send_to(&id("a"), message(b"hang"));
    sent.expect("connected");
    other.wait_for(&Report::Leader("b".into()));
    drop(release);
}
