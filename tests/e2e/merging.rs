//! Two real rooms merge that cannot keep all their members.

use std::sync::mpsc;

use meta_mystia_network::config::Config;
use meta_mystia_network::dispatch::{EndReason, Event};

use crate::harness::{Member, TIMEOUT, eventually, id, message, quick, settled};

type Events = mpsc::Receiver<Event>;

/// Waits for the end of the room; returns its reason.
fn end(events: &Events) -> EndReason {
    loop {
        let event = events.recv_timeout(TIMEOUT).expect("the room ends");
        if let Event::RoomEnded { why, .. } = event {
            return why;
        }
    }
}

fn is_over(events: &Events) -> bool {
    let mut events = events.try_iter();
    events.any(|event| matches!(event, Event::RoomEnded { .. }))
}

/// A room of two, led by the first.
fn pair(names: [&str; 2], session: &str) -> [Member; 2] {
    let [first, second] = names;
    let leader = Member::open(first, session);
    eventually("the first leads", || {
        leader.leader().as_deref() == Some(first)
    });
    let follower = Member::open(second, session);
    follower.connect_to(&leader);
    settled(&[&leader, &follower]);
    [leader, follower]
}

#[test]
fn two_rooms_whose_leaders_have_one_id_become_one() {
    let [player, ann] = pair(["player", "ann"], "twins");
    let [namesake, cid] = pair(["player", "cid"], "twins");
    let all = [&player, &ann, &namesake, &cid].map(Member::events);
    ann.connect_to(&cid);
    // The first room's leader has led for longer.
    assert_eq!(end(&all[2]), EndReason::DuplicateId);
    assert_eq!(settled(&[&player, &ann, &cid]), "player");
    for staying in [0, 1, 3] {
        assert!(!is_over(&all[staying]));
    }
}

#[test]
fn a_leader_that_the_other_room_bans_does_not_lead_it() {
    let [ben, ann] = pair(["ben", "ann"], "bans");
    let ends = ann.events();
    ben.room.kick(&id("ann"), 7, b"").expect("it leads");
    assert_eq!(end(&ends), EndReason::Kicked);
    drop(ann);
    // It returns with another key, and leads a room of its own.
    let [ann, dan] = pair(["ann", "dan"], "bans");
    let ends = ann.events();
    dan.connect_to(&ben);
    assert_eq!(end(&ends), EndReason::Kicked);
    assert_eq!(settled(&[&ben, &dan]), "ben");
}

#[test]
fn a_limit_that_leaves_a_pair_without_a_link_is_an_event() {
    let [ann, cid] = pair(["ann", "cid"], "limits");
    let config = Config {
        max_connections: 2,
        ..quick()
    };
    let bob = Member::open_with("bob", "limits", config);
    bob.connect_to(&ann);
    settled(&[&ann, &bob, &cid]);
    let all = [&ann, &bob].map(Member::events);
    let dan = Member::open("dan", "limits");
    let dans = dan.events();
    dan.connect_to(&ann);
    for (member, events) in ["ann", "bob", "dan"].iter().zip(all.iter().chain([&dans])) {
        let pair = loop {
            let event = events
                .recv_timeout(TIMEOUT)
                .unwrap_or_else(|_| panic!("{member} received no event"));
            if let Event::Unlinked { peer, other } = event {
                break (peer, other);
            }
        };
        assert_eq!(pair, (id("dan"), id("bob")));
    }
    eventually("the others are linked", || {
        cid.room.snapshot().connected == 3 && dan.room.snapshot().connected == 2
    });
    for member in [&ann, &bob, &cid, &dan] {
        member.room.broadcast(message(b"to all")).expect("queued");
    }
    let missed = |member: &Member| {
        let unlinked = member.room.snapshot().unlinked;
        (unlinked, member.room.missed_broadcasts())
    };
    assert_eq!(
        [&ann, &bob, &cid, &dan].map(missed),
        [(0, 0), (1, 1), (0, 0), (1, 1)]
    );
    drop(dan);
    eventually("every member receives the broadcasts of bob again", || {
        bob.room.snapshot().unlinked == 0
    });
    bob.room.broadcast(message(b"to all")).expect("queued");
    assert_eq!(missed(&bob), (0, 1));
}
