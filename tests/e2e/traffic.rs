//! Compression, and the statistics of a peer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meta_mystia_network::config::Config;
use meta_mystia_network::dispatch::{Incoming, kind};
use meta_mystia_network::room::{OutMessage, PeerMeter};
use meta_mystia_network::simulated::SimulatedNetwork;

use crate::harness::{Member, Report, eventually, id, message, quick, settled};

fn pair(session: &str) -> (Member, Member) {
    let a = Member::open("a", session);
    let b = Member::open("b", session);
    b.connect_to(&a);
    settled(&[&a, &b]);
    (a, b)
}

fn meter(member: &Member, peer: &str) -> PeerMeter {
    member.room.peer_meter(&id(peer)).expect("a session")
}

/// Incompressible bytes.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| byte()).collect()
}

#[test]
fn payloads_of_every_kind_and_length_arrive_as_they_were() {
    let (a, b) = pair("round trip");
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&arrived);
    let receive = move |message: &Incoming| {
        let mut arrived = keep.lock().expect("not poisoned");
        arrived.push((message.payload.to_vec(), message.flags));
    };
    b.room
        .dispatch()
        .register::<kind::Receive>(Some(Arc::new(receive)));
    let threshold = Config::default().compression_threshold;
    let longest = Config::default().max_message_size;
    let mut payloads = Vec::new();
    for len in [
        0,
        1,
        5,
        threshold - 1,
        threshold,
        threshold + 1,
        70_000,
        longest,
    ] {
        payloads.extend([vec![7; len], noise(len)]);
    }
    let mut sent = Vec::new();
    for threshold in [threshold, 0, usize::MAX] {
        a.room.set_compression_threshold(threshold);
        for payload in &payloads {
            let message = OutMessage {
                flags: 0xfe,
                ..message(payload)
            };
            a.room.broadcast(message).expect("room");
            sent.push((payload.clone(), 0xfe));
        }
        // The threshold applies when a message is sent.
        eventually("all of them", || {
            arrived.lock().expect("not poisoned").len() == sent.len()
        });
    }
    assert!(*arrived.lock().expect("not poisoned") == sent);
    assert!(a.room.broadcast(message(&vec![7; longest + 1])).is_err());
}

#[test]
fn compression_saves_bytes_on_the_wire_and_can_be_switched_off() {
    let (a, b) = pair("bytes");
    let text = b"the same words again and again, ".repeat(2000);
    let mut sent = 0;
    let mut send_20 = || {
        let before = meter(&a, "b").bytes_sent;
        for _ in 0..20 {
            a.room.broadcast(message(&text)).expect("room");
        }
        sent += 20;
        eventually("all of them", || b.messages().len() == sent);
        meter(&a, "b").bytes_sent - before
    };
    let compressed = send_20();
    a.room.set_compression_threshold(usize::MAX);
    let plain = send_20();
    assert!(plain > 20 * text.len() as u64, "{plain}");
    assert!(compressed * 4 < plain, "{compressed} and {plain}");
}

#[test]
fn the_figures_of_a_peer_show_its_link_and_its_queue() {
    let a = Member::open("a", "figures");
    let slow = Config {
        incoming_queue_capacity: 1,
        ..quick()
    };
    let b = Member::open_deaf("b", "figures", slow);
    b.connect_to(&a);
    settled(&[&a, &b]);
    assert_eq!(a.room.peer_meter(&id("stranger")), None);
    assert_eq!(a.room.peer_meter(&id("a")), None);
    eventually("round trips", || {
        let snapshot = a.room.snapshot();
        snapshot
            .peer("b")
            .is_some_and(|b| b.rtt.is_some() && b.jitter.is_some())
    });
    let open = b.listen_later();
    for _ in 0..5 {
        a.room
            .send_to(&id("b"), message(b"0123456789"))
            .expect("room");
    }
    let age = Duration::from_millis(20);
    eventually("a queue that gets old", || {
        meter(&a, "b").queue_age.is_some_and(|queue| queue > age)
    });
    let waiting = meter(&a, "b");
    // The handler has the first and its queue the second; the sender may not know that yet.
    assert!((3..=5).contains(&waiting.queue_messages), "{waiting:?}");
    assert_eq!(waiting.queue_bytes, 10 * waiting.queue_messages);
    assert!(waiting.path_mtu >= 1200, "{waiting:?}");
    assert!(waiting.congestion_window > 0, "{waiting:?}");
    assert!(waiting.bytes_sent > 0 && waiting.bytes_received > 0);
    assert!(waiting.packets_sent > 0 && waiting.packets_lost <= waiting.packets_sent);
    assert_eq!(waiting.reconnects, 0);
    drop(open);
    eventually("an empty queue", || meter(&a, "b").queue_age.is_none());
    let after = meter(&a, "b");
    assert_eq!((after.queue_messages, after.queue_bytes), (0, 0));
    assert_eq!((after.messages_sent, after.messages_received), (5, 0));
    assert_eq!(meter(&b, "a").messages_received, 5);
    drop(b);
    eventually("it is gone", || a.room.peer_meter(&id("b")).is_none());
}

#[test]
fn a_simulated_network_is_slow_and_lossy_until_it_ends() {
    let (a, b) = pair("simulated");
    let rtt = || {
        let snapshot = a.room.snapshot();
        snapshot.peers[0].rtt.expect("linked for a while")
    };
    eventually("a first round trip", || {
        a.room.snapshot().peers[0].rtt.is_some()
    });
    let slow = SimulatedNetwork {
        lag: Duration::from_millis(150),
        jitter: Duration::from_millis(20),
        loss_permille: 50,
    };
    for member in [&a, &b] {
        member.room.simulate_network(slow).expect("within limits");
    }
    eventually("a slow round trip", || rtt() >= 2 * slow.lag);
    for number in 0..100_u8 {
        a.room
            .send_to(&id("b"), message(&[number]))
            .expect("queued");
    }
    let sent = (0..100).map(|number| ("a".to_owned(), vec![number]));
    let sent: Vec<_> = sent.collect();
    eventually("all of them, in order", || b.messages() == sent);

    for member in [&a, &b] {
        let off = SimulatedNetwork::default();
        member.room.simulate_network(off).expect("within limits");
    }
    eventually("a quick round trip", || rtt() < slow.lag);
}

#[test]
fn a_member_that_loses_every_packet_is_lost_and_returns() {
    let (a, b) = pair("all lost");
    let cut = SimulatedNetwork {
        loss_permille: 1000,
        ..SimulatedNetwork::default()
    };
    a.room.simulate_network(cut).expect("within limits");
    b.wait_for(&Report::Left("a".into()));
    let off = SimulatedNetwork::default();
    a.room.simulate_network(off).expect("within limits");
    settled(&[&a, &b]);
    let again = |reported: &[Report]| {
        let joined = reported
            .iter()
            .filter(|one| **one == Report::Joined("a".into()));
        (joined.count() == 2).then_some(())
    };
    b.wait("its return", again);
}
