//! Peers as numbers, addresses and keys.

use std::sync::mpsc::{Receiver, channel};

use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::dispatch::{Event, Report, Reported, kind};
use meta_mystia_network::snapshot::{PeerStatus, PeerView};

use crate::harness::{Member, TIMEOUT, eventually, id, message, settled};

/// Every event that names a peer, with the peer's index.
fn numbers(member: &Member) -> Receiver<(&'static str, String, u32)> {
    let (sender, receiver) = channel();
    let dispatch = member.room.dispatch();
    dispatch.register::<kind::Everything>(Some(std::sync::Arc::new(
        move |reported: Report<'_>| {
            let Reported::Room(event) = reported.event else {
                return;
            };
            let what = match event {
                Event::Joined(_) => "joined",
                Event::Left(_) => "left",
                Event::Message(_) => "message",
                _ => return,
            };
            let peer = event.names().map_or("", PeerId::as_str).to_owned();
            // The receiver is gone at the end of a test.
            let _ = sender.send((what, peer, reported.peer_index));
        },
    )));
    receiver
}

fn next<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(TIMEOUT).expect("an event in time")
}

fn view(member: &Member, peer: &str) -> Option<PeerView> {
    member.room.snapshot().peer(peer).cloned()
}

#[test]
fn every_session_has_a_number_of_its_own_and_its_events_carry_it() {
    let a = Member::open("a", "numbers");
    let reported = numbers(&a);
    let indices = || a.room.dispatch().indices();
    for session in 1..=3 {
        let b = Member::open("b", "numbers");
        b.connect_to(&a);
        assert_eq!(next(&reported), ("joined", "b".into(), session));
        assert_eq!(indices().of("b"), session);
        assert_eq!(indices().peer(session), Some(id("b")));
        eventually("b knows a", || b.room.snapshot().connected == 1);
        b.room.broadcast(message(b"hello")).expect("linked");
        assert_eq!(next(&reported), ("message", "b".into(), session));
        b.room.close();
        assert_eq!(next(&reported), ("left", "b".into(), session));
        eventually("the number is free", || indices().of("b") == 0);
        assert_eq!(indices().peer(session), None);
    }
    assert_eq!(indices().of("a"), 0, "oneself has none");
}

#[test]
fn a_member_is_known_by_the_address_and_the_key_of_its_link() {
    let members = ["a", "b", "c"].map(|name| Member::open(name, "keys"));
    members[1].connect_to(&members[0]);
    members[2].connect_to(&members[0]);
    settled(&members.each_ref());
    for member in &members {
        let others = members
            .iter()
            .filter(|other| other.room.peer_id() != member.room.peer_id());
        for other in others {
            let seen = view(member, other.room.peer_id().as_str()).expect("linked");
            assert_eq!(seen.key, Some(other.room.key()));
            // Also the address of a peer that dialled, whose link comes from another port.
            assert_eq!(
                seen.address.map(|address| address.port()),
                Some(other.port())
            );
        }
        assert!(view(member, "unknown").is_none());
    }
    let snapshot = members[1].room.snapshot();
    assert_eq!(
        (&*snapshot.peer_list, &*snapshot.member_list),
        ("a\nc", "a\nc")
    );
    let lines = members[0].room.key().to_string();
    assert_eq!(lines.len(), 64);
    assert!(
        lines
            .bytes()
            .all(|digit| b"0123456789abcdef".contains(&digit))
    );
}

/// Cut off instead of closed: the others lose it, and wait.
#[test]
fn a_lost_member_keeps_its_number_address_and_key() {
    let a = Member::open("a", "lost");
    let b = Member::open("b", "lost");
    b.connect_to(&a);
    settled(&[&a, &b]);
    let (before, index) = (
        view(&a, "b").expect("linked"),
        a.room.dispatch().indices().of("b"),
    );
    // From now on every packet of b is lost.
    let cut = meta_mystia_network::simulated::SimulatedNetwork {
        loss_permille: 1000,
        ..Default::default()
    };
    b.room.simulate_network(cut).expect("allowed");
    eventually("b is lost", || {
        view(&a, "b").is_some_and(|view| view.status == PeerStatus::Reconnecting)
    });
    let lost = view(&a, "b").expect("waited for");
    assert_eq!((lost.address, lost.key), (before.address, before.key));
    assert_eq!(a.room.dispatch().indices().of("b"), index);
    let snapshot = a.room.snapshot();
    assert_eq!((&*snapshot.peer_list, &*snapshot.member_list), ("", "b"));
}
