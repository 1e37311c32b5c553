//! Kicks with and without a ban, lifted bans, disconnections with a reason, and the largest admission messages.

use std::sync::mpsc;

use meta_mystia_network::config::{Config, Secret};
use meta_mystia_network::core::wire::HostMode;
use meta_mystia_network::dispatch::{EndReason, Event, LeftReason};
use meta_mystia_network::error::{Code, Coded};
use meta_mystia_network::room::{IDENTITY_KEY_BYTES, fill_identity_key};

use crate::harness::{Member, TIMEOUT, eventually, id, quick, settled};

type Events = mpsc::Receiver<Event>;

/// The first value that `find` returns for an event.
fn next<T>(events: &Events, find: impl Fn(&Event) -> Option<T>) -> T {
    loop {
        let event = events.recv_timeout(TIMEOUT).expect("the event");
        if let Some(found) = find(&event) {
            return found;
        }
    }
}

/// Reason, code and bytes of the peer's leave.
fn left(events: &Events, peer: &str) -> (LeftReason, i32, Vec<u8>) {
    next(events, |event| match event {
        Event::Left(left) if left.peer == id(peer) => {
            Some((left.why, left.code, left.bytes.clone()))
        }
        _ => None,
    })
}

fn ended(events: &Events) -> (EndReason, i32, Vec<u8>) {
    next(events, |event| match event {
        Event::RoomEnded { why, code, bytes } => Some((*why, *code, bytes.clone())),
        _ => None,
    })
}

/// Code, reason and bytes of the result of a dial of `to`.
fn dial(from: &Member, to: &Member) -> (i32, i32, Vec<u8>) {
    let events = from.events();
    from.connect_to(to);
    next(&events, |event| match event {
        Event::ConnectionResult(result) => {
            Some((result.code, result.reason, result.bytes.to_vec()))
        }
        _ => None,
    })
}

fn led_by_first(names: &[&str], session: &str) -> Vec<Member> {
    let members: Vec<_> = names
        .iter()
        .map(|name| Member::open(name, session))
        .collect();
    for member in &members[1..] {
        member.connect_to(&members[0]);
    }
    settled(&members.iter().collect::<Vec<_>>());
    members[0]
        .room
        .set_leader(&id(names[0]))
        .expect("connected");
    eventually("the first leads", || {
        let leads = |member: &Member| member.leader().as_deref() == Some(names[0]);
        members.iter().all(leads)
    });
    members
}

/// A config with a key that the test keeps.
fn with_key(key: &[u8; IDENTITY_KEY_BYTES]) -> Config {
    Config {
        identity_key: Secret::new(key),
        ..quick()
    }
}

#[test]
fn a_ban_holds_for_a_kept_key_until_it_is_lifted() {
    let members = led_by_first(&["a", "b"], "bans");
    let mut key = [0; IDENTITY_KEY_BYTES];
    fill_identity_key(&mut key).expect("a key");
    let open = |name| Member::open_with(name, "bans", with_key(&key));
    for (ban, code) in [(false, 3), (true, 4)] {
        let c = open("c");
        c.connect_to(&members[1]);
        settled(&[&members[0], &members[1], &c]);
        let reported = c.events();
        members[0]
            .room
            .kick_with(&id("c"), code, b"out", ban)
            .expect("the leader");
        assert_eq!(ended(&reported), (EndReason::Kicked, code, b"out".to_vec()));
    }
    // Under another name, with the same key.
    let d = open("d");
    eventually("everybody bans it", || {
        members
            .iter()
            .all(|member| dial(&d, member).0 == Code::Rejected.value())
    });
    let refused = members[1]
        .room
        .unban(&id("c"))
        .expect_err("it does not lead");
    assert_eq!(refused.code(), Code::NotLeader);
    let refused = members[0]
        .room
        .unban(&id("d"))
        .expect_err("that is not its name");
    assert_eq!(
        refused.to_string(),
        "no peer \"d\" is banned from this room"
    );
    assert_eq!(refused.code(), Code::PeerNotFound);
    members[0].room.unban(&id("c")).expect("it is banned");
    eventually("the other member knows", || dial(&d, &members[1]).0 == 0);
    settled(&[&members[0], &members[1], &d]);
}

#[test]
fn the_other_end_receives_the_reason_of_a_disconnection() {
    let members = led_by_first(&["a", "b", "c"], "reasons");
    let reported = [&members[1], &members[2]].map(Member::events);
    let (longest, too_long) = (vec![7; 3072], vec![7; 3073]);
    let refused = members[1].room.disconnect_with(&id("c"), 1, &too_long);
    let sentence = refused.expect_err("too long").to_string();
    assert_eq!(
        sentence,
        "length is 3073; a peer that is disconnected can be sent at most 3072 bytes"
    );
    members[1]
        .room
        .disconnect_with(&id("c"), -5, &longest)
        .expect("another");
    let expected = (LeftReason::Disconnected, -5, longest);
    assert_eq!(left(&reported[0], "c"), expected);
    assert_eq!(left(&reported[1], "b"), expected);
    assert_eq!(members[0].room.snapshot().connected, 2);
    // A dial by hand links them again, and the host can disconnect them again.
    assert_eq!(dial(&members[2], &members[1]).0, 0);
    settled(&members.iter().collect::<Vec<_>>());
    let reported = members[2].events();
    members[1].room.disconnect(&id("c")).expect("another");
    assert_eq!(
        left(&reported, "b"),
        (LeftReason::Disconnected, 0, Vec::new())
    );
}

#[test]
fn a_guest_receives_the_reason_of_its_rooms_end() {
    let with = |host_mode| Config {
        host_mode,
        ..quick()
    };
    let host = Member::open_with("host", "why", with(HostMode::Host));
    let guests = ["a", "b"].map(|name| Member::open_with(name, "why", with(HostMode::Guest)));
    for guest in &guests {
        guest.connect_to(&host);
    }
    settled(&[&host, &guests[0], &guests[1]]);
    let reported = guests.each_ref().map(Member::events);
    host.room
        .disconnect_with(&id("a"), 11, b"afk")
        .expect("a guest");
    assert_eq!(
        ended(&reported[0]),
        (EndReason::Disconnected, 11, b"afk".to_vec())
    );
    // The guest ends the link itself, and the host receives its reason.
    let at_host = host.events();
    guests[1]
        .room
        .disconnect_with(&id("host"), 12, b"bye")
        .expect("the host");
    assert_eq!(
        ended(&reported[1]),
        (EndReason::Disconnected, 12, b"bye".to_vec())
    );
    assert_eq!(
        left(&at_host, "b"),
        (LeftReason::Disconnected, 12, b"bye".to_vec())
    );
}

/// Through a member that does not lead: in the Hello, in the request to the leader, and in both answers.
#[test]
fn the_longest_join_payload_and_the_longest_rejection_arrive() {
    let members = led_by_first(&["a", "b"], "payloads");
    let asked = members[0].events();
    members[0].room.ask_host(true).expect("open");
    let c = Member::open("c", "payloads");
    let (longest, reason) = (vec![5; 16_384], vec![6; 3072]);
    let refused = c.room.set_join_payload(&[5; 16_385]).expect_err("too long");
    assert_eq!(
        refused.to_string(),
        "length is 16385; a join payload has at most 16384 bytes"
    );
    assert_eq!(refused.code(), Code::InvalidArgument);
    for member in members.iter().chain([&c]) {
        member.room.set_join_payload(&longest).expect("allowed");
    }
    let results = c.events();
    for contact in &members {
        c.connect_to(contact);
        let request = next(&asked, |event| match event {
            Event::JoinRequest {
                request, payload, ..
            } => {
                assert!(*payload == longest, "{} bytes", payload.len());
                Some(*request)
            }
            _ => None,
        });
        let refused = members[0].room.reject_join(request, 1, &[6; 3073]);
        let sentence = refused.expect_err("too long").to_string();
        assert_eq!(
            sentence,
            "length is 3073; a peer that is removed or rejected can be sent at most 3072 bytes"
        );
        members[0]
            .room
            .reject_join(request, 8, &reason)
            .expect("open");
        let result = next(&results, |event| match event {
            Event::ConnectionResult(result) => {
                Some((result.code, result.reason, result.bytes.to_vec()))
            }
            _ => None,
        });
        assert_eq!(result, (Code::Rejected.value(), 8, reason.clone()));
    }
}

#[test]
fn a_full_room_names_its_limit_and_a_remedy() {
    let members = led_by_first(&["a", "b"], "full");
    members[0].room.set_max_peers(1).expect("it leads");
    let c = Member::open("c", "full");
    for contact in &members {
        let (code, _, why) = dial(&c, contact);
        assert_eq!(code, Code::MaxConnectionsReached.value());
        let why = String::from_utf8(why).expect("a sentence");
        assert!(why.starts_with("the room is limited to 1 players"), "{why}");
        assert!(why.contains("try again when one has left"), "{why}");
    }
}
