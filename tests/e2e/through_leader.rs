//! Members without a path to each other, and stars.

use std::net::IpAddr;
use std::time::Duration;

use meta_mystia_network::config::Config;
use meta_mystia_network::core::path::Path;
use meta_mystia_network::core::wire::{HostMode, Topology};
use meta_mystia_network::room::{OutMessage, Reliable, SendMode, Unreliable};
use meta_mystia_network::snapshot::PeerStatus;

use crate::harness::{Member, Report, eventually, id, message, quick, settled};

fn bound_to(address: &str) -> Config {
    let address: IpAddr = address.parse().expect("an address");
    Config {
        bind_address: Some(address),
        reconnect_initial: Duration::from_millis(50),
        ..quick()
    }
}

fn in_star(host_mode: HostMode) -> Config {
    Config {
        host_mode,
        topology: Topology::Star,
        reconnect_initial: Duration::from_millis(50),
        ..quick()
    }
}

fn goes_through_leader(member: &Member, peer: &str) -> bool {
    let meter = member.room.peer_meter(&id(peer));
    meter.is_some_and(|meter| matches!(meter.path, Some(Path::Carried(_))))
}

/// `a` leads and is on both protocols; `four` and `six` have no path to each other.
fn apart(session: &str) -> [Member; 3] {
    let a = Member::open_with("a", session, quick());
    eventually("a leads alone", || a.leader().as_deref() == Some("a"));
    let four = Member::open_with("four", session, bound_to("127.0.0.1"));
    let six = Member::open_with("six", session, bound_to("::1"));
    four.connect_to(&a);
    six.connect(&format!("[::1]:{}", a.port()));
    settled(&[&a, &four, &six]);
    eventually("they are linked through the leader", || {
        goes_through_leader(&four, "six") && goes_through_leader(&six, "four")
    });
    assert!(!goes_through_leader(&four, "a") && !goes_through_leader(&a, "six"));
    [a, four, six]
}

fn exchange(one: &Member, other: &Member, what: &[u8]) {
    for (from, to) in [(one, other), (other, one)] {
        let (from_id, to_id) = (from.room.peer_id().clone(), to.room.peer_id().clone());
        from.room.send_to(&to_id, message(what)).expect("queued");
        to.wait_for(&Report::Message(from_id.to_string(), what.to_vec()));
    }
}

#[test]
fn members_without_a_path_exchange_every_kind_of_message() {
    let [a, four, six] = apart("no path");
    exchange(&four, &six, b"hello");
    let long = vec![7; 200_000];
    exchange(&four, &six, &long);
    for how in [
        SendMode::Reliable(Reliable {
            channel: 9,
            ..Reliable::default()
        }),
        SendMode::Reliable(Reliable {
            ordered: false,
            ..Reliable::default()
        }),
    ] {
        four.room
            .send_with(&id("six"), message(b"each"), how)
            .expect("queued");
    }
    eventually("both", || {
        let all = six.messages();
        all.iter().filter(|(_, payload)| payload == b"each").count() == 2
    });
    eventually("a datagram arrives", || {
        let how = SendMode::Unreliable(Unreliable {
            channel: 0,
            priority: 1,
            ttl: None,
            key: None,
        });
        four.room
            .send_with(&id("six"), message(b"loose"), how)
            .expect("sent");
        six.reported()
            .contains(&Report::Message("four".into(), b"loose".to_vec()))
    });
    // The leader carries the messages and reads none.
    assert_eq!(a.messages(), []);
    let rtt = |member: &Member, peer: &str| {
        let snapshot = member.room.snapshot();
        snapshot.peer(peer).and_then(|peer| peer.rtt)
    };
    eventually("round trips", || rtt(&four, "six").is_some());
    assert_eq!(a.leader(), six.leader());
}

#[test]
fn when_the_leader_that_carries_them_goes_the_next_one_does() {
    let [a, four, six] = apart("carriers");
    let b = Member::open_with("b", "carriers", quick());
    b.connect_to(&a);
    settled(&[&a, &four, &six, &b]);
    b.room.set_priority(9).expect("in a room");
    a.room.transfer_leadership(&id("b")).expect("it leads");
    eventually("b leads", || {
        [&a, &b, &four, &six]
            .iter()
            .all(|member| member.leader().as_deref() == Some("b"))
    });
    exchange(&four, &six, b"through b");
    drop(a);
    eventually("a is gone", || four.room.snapshot().peer("a").is_none());
    exchange(&four, &six, b"still through b");
    for (member, peer) in [(&four, "six"), (&six, "four")] {
        let reported = member.reported();
        assert!(
            !reported.contains(&Report::Left(peer.into())),
            "{reported:?}"
        );
    }
}

fn star(session: &str, guests: &[&str]) -> (Member, Vec<Member>) {
    let host = Member::open_with("h", session, in_star(HostMode::Host));
    let guests: Vec<_> = guests
        .iter()
        .map(|guest| {
            let guest = Member::open_with(guest, session, in_star(HostMode::Guest));
            guest.connect_to(&host);
            guest
        })
        .collect();
    let mut all = vec![&host];
    all.extend(&guests);
    assert_eq!(settled(&all), "h");
    (host, guests)
}

#[test]
fn the_guests_of_a_star_talk_through_its_host() {
    let (host, guests) = star("star", &["b", "c", "d"]);
    for guest in &guests {
        assert!(!goes_through_leader(guest, "h"));
    }
    eventually("they are linked through the host", || {
        goes_through_leader(&guests[0], "c")
    });
    exchange(&guests[0], &guests[1], b"to one");
    guests[2]
        .room
        .broadcast(message(b"to all"))
        .expect("queued");
    for member in [&host, &guests[0], &guests[1]] {
        member.wait_for(&Report::Message("d".into(), b"to all".to_vec()));
    }
    guests[1].room.close();
    for member in [&host, &guests[0], &guests[2]] {
        member.wait_for(&Report::Left("c".into()));
        eventually("its place is free", || {
            member.room.snapshot().peer("c").is_none()
        });
    }
}

#[test]
fn a_guest_that_is_dialled_points_to_the_host() {
    let (_host, guests) = star("points", &["b"]);
    let stray = Member::open_with("s", "points", in_star(HostMode::Guest));
    stray.connect_to(&guests[0]);
    let target = format!("127.0.0.1:{}", guests[0].port());
    stray.wait_for(&Report::Connection(target, false, -6));
}

#[test]
fn a_host_that_takes_no_events_blocks_no_other_in_a_star() {
    let session = "looks away";
    let (_host, guests) = star(session, &["b", "c"]);
    let slow = Config {
        incoming_queue_capacity: 1,
        ..in_star(HostMode::Guest)
    };
    let slow = Member::open_deaf("slow", session, slow);
    slow.connect_to(&_host);
    let gate = slow.listen_later();
    eventually("all meet", || {
        guests
            .iter()
            .all(|guest| guest.room.snapshot().connected == 3)
    });
    let big = OutMessage {
        msg_type: 0x0101,
        ..message(&vec![1; 100_000])
    };
    // Fills its queues; the rest stays with its sender.
    while guests[0].room.send_to(&id("slow"), big.clone()).is_ok() {}
    for n in 0..100_u8 {
        exchange(&guests[0], &guests[1], &[n, 1]);
    }
    assert!(slow.messages().len() <= 1);
    drop(gate);
}

#[test]
fn a_star_whose_host_falls_silent_comes_back() {
    let (host, guests) = star("silence", &["b", "c"]);
    let cut = |loss_permille| {
        let network = meta_mystia_network::simulated::SimulatedNetwork {
            loss_permille,
            ..Default::default()
        };
        host.room.simulate_network(network).expect("in the limits");
    };
    cut(1000);
    let lost = |member: &Member, peer: &str| {
        let snapshot = member.room.snapshot();
        snapshot
            .peer(peer)
            .is_some_and(|peer| peer.status == PeerStatus::Reconnecting)
    };
    eventually("all are lost", || {
        lost(&guests[0], "h") && lost(&guests[0], "c") && lost(&guests[1], "b")
    });
    guests[0]
        .room
        .send_to(&id("c"), message(b"meanwhile"))
        .expect("queued for its return");
    cut(0);
    guests[1].wait_for(&Report::Message("b".into(), b"meanwhile".to_vec()));
    settled(&[&host, &guests[0], &guests[1]]);
}
