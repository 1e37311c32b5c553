//! The rules of sends with a delivery ("Sends" in docs/messages.md), each by its name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use meta_mystia_network::config::Config;
use meta_mystia_network::dispatch::{Delivery, Direction, Event};
use meta_mystia_network::error::{Code, Coded, SendError};
use meta_mystia_network::room::{DEFAULT_PRIORITY, Reliable, SendMode, Unreliable};
use meta_mystia_network::simulated::SimulatedNetwork;

use crate::harness::{Member, eventually, id, message, quick, settled};

/// Channel, delivery and payload of each message, in order.
type Got = Arc<Mutex<Vec<(u8, Delivery, Vec<u8>)>>>;
type Events = Arc<Mutex<Vec<Event>>>;

fn ordered(channel: u8) -> SendMode {
    SendMode::Reliable(Reliable {
        channel,
        ..Reliable::default()
    })
}

fn unordered(channel: u8) -> SendMode {
    SendMode::Reliable(Reliable {
        ordered: false,
        channel,
        ..Reliable::default()
    })
}

fn loose(channel: u8, key: Option<u64>) -> SendMode {
    SendMode::Unreliable(Unreliable {
        channel,
        priority: DEFAULT_PRIORITY,
        ttl: None,
        key,
    })
}

/// One send of each delivery, each on a channel of its own.
fn every_way() -> [(SendMode, Delivery, u8); 4] {
    [
        (ordered(5), Delivery::ReliableOrdered, 5),
        (unordered(6), Delivery::ReliableUnordered, 6),
        (loose(7, None), Delivery::Unreliable, 7),
        (loose(255, Some(u64::MAX)), Delivery::Sequenced, 255),
    ]
}

/// Records messages and every other event.
fn listen(member: &Member) -> (Got, Events) {
    let (got, events) = (Got::default(), Events::default());
    let (keep, keep_events) = (Arc::clone(&got), Arc::clone(&events));
    let handler = move |event: &Event| match event {
        Event::Message(message) => keep.lock().expect("not poisoned").push((
            message.channel,
            message.delivery,
            message.payload.to_vec(),
        )),
        event => keep_events
            .lock()
            .expect("not poisoned")
            .push(event.clone()),
    };
    let dispatch = member.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    (got, events)
}

fn pair(session: &str) -> (Member, Member, Got) {
    let a = Member::open_deaf("a", session, quick());
    let b = Member::open_deaf("b", session, quick());
    let (got, _) = listen(&b);
    b.connect_to(&a);
    settled(&[&a, &b]);
    (a, b, got)
}

/// Sends, and tries again while the queue is full.
fn send(from: &Member, to: &str, payload: &[u8], how: SendMode) {
    loop {
        match from.room.send_with(&id(to), message(payload), how) {
            Ok(()) => return,
            Err(SendError::QueueFull { .. }) => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
}

fn len(got: &Got) -> usize {
    got.lock().expect("not poisoned").len()
}

#[test]
fn a_message_arrives_with_its_channel_and_delivery() {
    let (a, _b, got) = pair("every way");
    for (n, (how, ..)) in every_way().into_iter().enumerate() {
        send(&a, "b", format!("{how:?}").as_bytes(), how);
        eventually("it", || len(&got) == n + 1);
    }
    a.room.send_to(&id("b"), message(b"classic")).expect("room");
    eventually("the classic one", || len(&got) == 5);
    let mut expected: Vec<_> = every_way()
        .into_iter()
        .map(|(how, delivery, channel)| (channel, delivery, format!("{how:?}").into_bytes()))
        .collect();
    expected.push((0, Delivery::ReliableOrdered, b"classic".to_vec()));
    assert_eq!(*got.lock().expect("not poisoned"), expected);
}

#[test]
fn each_of_256_channels_keeps_its_order() {
    let (a, _b, got) = pair("channels");
    for n in 0..20_u8 {
        for channel in 0..=255 {
            send(&a, "b", &[n], ordered(channel));
        }
    }
    eventually("all of them", || len(&got) == 20 * 256);
    let got = got.lock().expect("not poisoned");
    for channel in 0..=255 {
        let of_channel = got.iter().filter(|(of, ..)| *of == channel);
        let numbers: Vec<_> = of_channel.map(|(_, _, payload)| payload[0]).collect();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "channel {channel}");
    }
}

#[test]
fn each_reliable_unordered_message_arrives_once() {
    let (a, _b, got) = pair("unordered");
    for n in 0..3000_u32 {
        send(&a, "b", &n.to_le_bytes(), unordered(0));
    }
    // Longer than a stream's window.
    let long = vec![7; 200_000];
    for _ in 0..20 {
        send(&a, "b", &long, unordered(9));
    }
    eventually("all of them", || len(&got) == 3020);
    let mut numbers: Vec<u32> = {
        let got = got.lock().expect("not poisoned");
        let short = got
            .iter()
            .filter_map(|(_, _, payload)| payload[..].try_into().ok());
        short.map(u32::from_le_bytes).collect()
    };
    numbers.sort_unstable();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
    eventually("an empty queue", || {
        a.room.peer_meter(&id("b")).expect("linked").queue_messages == 0
    });
}

#[test]
fn all_reliable_channels_of_a_peer_share_its_queue() {
    let slow = Config {
        incoming_queue_capacity: 1,
        ..quick()
    };
    let small = Config {
        send_queue_capacity: 4,
        ..quick()
    };
    let a = Member::open_deaf("a", "shared", small);
    let b = Member::open_deaf("b", "shared", slow);
    b.connect_to(&a);
    settled(&[&a, &b]);
    let (gate, ..) = gated(&b);
    let ways = [ordered(0), ordered(1), unordered(2), ordered(3)];
    let mut accepted = 0;
    for how in ways.iter().cycle().take(60) {
        match a.room.send_with(&id("b"), message(b"x"), *how) {
            Ok(()) => accepted += 1,
            Err(error) => assert_eq!(error.code(), Code::SendQueueFull),
        }
        thread::sleep(Duration::from_millis(5));
    }
    // The handler has one message, its queue another, and this end four.
    assert!((4..=7).contains(&accepted), "{accepted}");
    for how in ways {
        let full = a.room.send_with(&id("b"), message(b"x"), how);
        assert_eq!(
            full,
            Err(SendError::QueueFull {
                peers: vec![id("b")]
            })
        );
    }
    drop(gate);
}

/// Like [`listen`], but the handler of each message blocks until the returned gate is dropped.
fn gated(member: &Member) -> (mpsc::Sender<()>, Got, Events) {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let (got, events) = (Got::default(), Events::default());
    let (keep, keep_events) = (Arc::clone(&got), Arc::clone(&events));
    let handler = move |event: &Event| match event {
        Event::Message(message) => {
            // No value is sent: `recv` ends when the other end is dropped.
            let _ = gate.lock().expect("not poisoned").recv();
            keep.lock().expect("not poisoned").push((
                message.channel,
                message.delivery,
                message.payload.to_vec(),
            ));
        }
        event => keep_events
            .lock()
            .expect("not poisoned")
            .push(event.clone()),
    };
    let dispatch = member.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    (open, got, events)
}

#[test]
fn a_host_that_takes_nothing_loses_the_oldest_datagrams_and_no_reliable_message() {
    let a = Member::open_deaf("a", "flood", quick());
    let slow = Config {
        incoming_queue_capacity: 8,
        ..quick()
    };
    let b = Member::open_deaf("b", "flood", slow);
    b.connect_to(&a);
    settled(&[&a, &b]);
    let (gate, got, events) = gated(&b);
    for n in 0..2000_u32 {
        let sent = a
            .room
            .send_with(&id("b"), message(&n.to_le_bytes()), loose(0, None));
        assert_eq!(sent, Ok(()), "never -7");
        if n % 20 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    send(&a, "b", b"reliable", ordered(0));
    eventually("the reliable one is taken", || {
        a.room.peer_meter(&id("b")).expect("linked").queue_messages == 0
    });
    let reported = || {
        let events = events.lock().expect("not poisoned");
        let drops = events
            .iter()
            .filter(|event| matches!(event, Event::DataDropped { .. }));
        drops.count()
    };
    // The report of drops, or even of all of them, may come before the host blocks in its first message.
    let reported_early = reported();
    drop(gate);
    eventually("the reliable one is delivered", || {
        let got = got.lock().expect("not poisoned");
        got.iter().any(|(_, _, payload)| payload == b"reliable")
    });
    eventually("the drops are reported", || {
        events.lock().expect("not poisoned").iter().any(|event| {
            matches!(event, Event::DataDropped { peer, direction: Direction::Received, count }
                if *peer == id("a") && *count >= 100)
        })
    });
    let got = got.lock().expect("not poisoned");
    // The newest message arrives, and one event counts all that were dropped since an early one.
    assert!(
        got.iter()
            .any(|(_, _, payload)| *payload == 1999_u32.to_le_bytes())
    );
    let later = reported() - reported_early;
    assert!(
        later == 1 || (later, reported_early) == (0, 1),
        "{events:?}"
    );
}

#[test]
fn a_sequenced_message_is_never_delivered_after_a_newer_one_of_its_key() {
    let (a, _b, got) = pair("sequenced");
    for n in 0..500_u32 {
        for key in 0..3 {
            let payload = [key as u8]
                .into_iter()
                .chain(n.to_le_bytes())
                .collect::<Vec<_>>();
            send(&a, "b", &payload, loose(0, Some(key)));
        }
        if n % 50 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
    let last = |key: u8| {
        let got = got.lock().expect("not poisoned");
        let of_key = got.iter().filter(|(_, _, payload)| payload[0] == key);
        let numbers = of_key.map(|(_, _, payload)| payload[1..].try_into().map(u32::from_le_bytes));
        numbers.collect::<Result<Vec<_>, _>>().expect("four bytes")
    };
    for key in 0..3 {
        // The very last message is the newest one in every queue.
        eventually("the newest", || last(key).last() == Some(&499));
        assert!(last(key).is_sorted(), "key {key}");
    }
}

#[test]
fn an_unreliable_message_above_the_datagram_size_is_refused_and_the_sentence_names_the_peer() {
    let (a, _b, got) = pair("too long");
    let max = a.room.max_datagram_size(Some(&id("b"))).expect("linked");
    assert!(max >= 1100, "{max}");
    assert_eq!(a.room.max_datagram_size(None), Some(max));
    assert_eq!(a.room.max_datagram_size(Some(&id("c"))), None);
    assert_eq!(a.room.max_datagram_size(Some(&id("a"))), None);
    for how in [loose(0, None), loose(0, Some(1))] {
        let max = a.room.max_datagram_size(Some(&id("b"))).expect("linked");
        let long = a.room.send_with(&id("b"), message(&vec![7; max + 1]), how);
        let error = long.expect_err("too long");
        assert_eq!(error.code(), Code::MessageTooLarge);
        assert!(error.to_string().contains("\"b\""), "{error}");
        assert!(
            a.room
                .broadcast_with(&message(&vec![7; max + 1]), how, false)
                .is_err()
        );
        let before = len(&got);
        send(&a, "b", &vec![7; max], how);
        eventually("the longest", || len(&got) == before + 1);
    }
}

#[test]
fn a_partial_broadcast_returns_the_number_of_recipients_and_names_the_full_ones_once() {
    let small = Config {
        send_queue_capacity: 2,
        ..quick()
    };
    let slow = Config {
        incoming_queue_capacity: 1,
        ..quick()
    };
    let a = Member::open_deaf("a", "partial", small);
    let b = Member::open_deaf("b", "partial", slow);
    let c = Member::open("c", "partial");
    b.connect_to(&a);
    c.connect_to(&a);
    settled(&[&a, &b, &c]);
    let (gate, ..) = gated(&b);
    let (_, events) = listen(&a);
    let cast = |partial| {
        eventually("room for c", || {
            let queue = a.room.peer_meter(&id("c")).expect("linked");
            queue.queue_messages == 0
        });
        thread::sleep(Duration::from_millis(20));
        a.room.broadcast_with(&message(b"x"), ordered(0), partial)
    };
    let took: Vec<_> = (0..10).map(|_| cast(true).expect("partial")).collect();
    assert_eq!((took[0], took[9]), (2, 1), "{took:?}");
    assert_eq!(
        cast(false),
        Err(SendError::QueueFull {
            peers: vec![id("b")]
        })
    );
    let slow = || {
        let events = events.lock().expect("not poisoned");
        events
            .iter()
            .filter(|event| **event == Event::SlowPeer(id("b")))
            .count()
    };
    eventually("the slow one is named", || slow() > 0);
    let full = took.iter().filter(|took| **took == 1).count();
    assert!(slow() <= full, "{} for {full}", slow());
    drop(gate);
}

#[test]
fn a_partial_broadcast_is_not_supported_in_centralized_mode() {
    let (a, _b, _got) = pair("partial central");
    a.room.set_centralized(true);
    let refused = a.room.broadcast_with(&message(b"x"), ordered(0), true);
    assert_eq!(refused.expect_err("refused").code(), Code::NotSupported);
}

#[test]
fn in_a_centralized_room_every_delivery_goes_through_the_leader_with_its_channel() {
    let members = ["a", "b", "c"].map(|name| Member::open_deaf(name, "central ways", quick()));
    let [a, b, c] = &members;
    let got = [listen(a).0, listen(b).0, listen(c).0];
    b.connect_to(a);
    c.connect_to(a);
    settled(&[a, b, c]);
    a.room.set_leader(&id("a")).expect("itself");
    eventually("all follow", || {
        members
            .iter()
            .all(|member| member.leader().as_deref() == Some("a"))
    });
    for member in &members {
        member.room.set_centralized(true);
    }
    for (n, (how, delivery, channel)) in every_way().into_iter().enumerate() {
        for (from, member) in members.iter().enumerate() {
            let payload = [n as u8, from as u8];
            member
                .room
                .broadcast_with(&message(&payload), how, false)
                .expect("accepted");
            for (to, got) in got.iter().enumerate() {
                if to == from {
                    continue;
                }
                let expected = (channel, delivery, payload.to_vec());
                eventually("it", || {
                    got.lock().expect("not poisoned").contains(&expected)
                });
            }
        }
    }
    thread::sleep(Duration::from_millis(100));
    for got in &got {
        assert_eq!(len(got), 8, "each once: {got:?}");
    }
    // Datagrams through the leader are shorter.
    let direct = b.room.max_datagram_size(Some(&id("a"))).expect("linked");
    let central = b.room.max_datagram_size(None).expect("linked");
    assert!(central >= 850 && central < direct, "{central} and {direct}");
    // Path MTU discovery of the leader's links may not have ended yet.
    let long = b
        .room
        .broadcast_with(&message(&[1; 850]), loose(1, None), false);
    assert_eq!(long, Ok(0));
    eventually("the longest", || len(&got[0]) == 9 && len(&got[2]) == 9);
}

#[test]
fn a_message_to_oneself_is_delivered_here_whatever_its_delivery() {
    let a = Member::open_deaf("a", "oneself", quick());
    let (got, _) = listen(&a);
    for (n, (how, ..)) in every_way().into_iter().enumerate() {
        send(&a, "a", b"me", how);
        eventually("it", || len(&got) == n + 1);
    }
    let expected = every_way().map(|(_, delivery, channel)| (channel, delivery, b"me".to_vec()));
    assert_eq!(*got.lock().expect("not poisoned"), expected);
}

#[test]
fn a_message_whose_time_is_over_is_dropped_from_the_hosts_queue_and_counted() {
    let (a, b, _) = pair("ttl");
    let (gate, got, events) = gated(&b);
    send(&a, "b", b"first", ordered(0));
    eventually("it is being handled", || {
        let queue = a.room.peer_meter(&id("b")).expect("linked");
        (queue.queue_messages, b.room.dispatch().queued_messages()) == (0, (0, 0))
    });
    let brief = SendMode::Unreliable(Unreliable {
        ttl: Some(Duration::from_millis(50)),
        ..Unreliable::default()
    });
    send(&a, "b", b"brief", brief);
    send(&a, "b", b"lasting", loose(0, None));
    thread::sleep(Duration::from_millis(300));
    drop(gate);
    eventually("the lasting ones", || len(&got) == 2);
    let payloads: Vec<_> = {
        let got = got.lock().expect("not poisoned");
        got.iter().map(|(_, _, payload)| payload.clone()).collect()
    };
    assert_eq!(payloads, [b"first".to_vec(), b"lasting".to_vec()]);
    eventually("it is counted", || {
        let dropped = Event::DataDropped {
            peer: id("a"),
            direction: Direction::Received,
            count: 1,
        };
        events.lock().expect("not poisoned").contains(&dropped)
    });
}

/// The leader makes the other member leader, which takes several answers over the control stream.
fn hand_over(a: &Member, b: &Member) {
    let leader = settled(&[a, b]);
    let (old, new) = match leader == "a" {
        true => (a, "b"),
        false => (b, "a"),
    };
    assert_eq!(old.room.transfer_leadership(&id(new)), Ok(()));
    eventually("the other leads", || settled(&[a, b]) == new);
}

/// The windows of QUIC are smaller than this queue: the rest has to wait elsewhere.
#[test]
fn a_large_queue_that_the_other_host_does_not_empty_never_stops_the_control_stream() {
    let longer = Config {
        max_message_size: 4 << 20,
        compression_threshold: 4 << 20,
        ..quick()
    };
    let large = Config {
        queue_bytes: 256 << 20,
        ..longer.clone()
    };
    let a = Member::open_deaf("a", "large queue", large);
    let b = Member::open_deaf("b", "large queue", longer);
    b.connect_to(&a);
    settled(&[&a, &b]);
    let (gate, got, _events) = gated(&b);
    let bulk = vec![7; 1 << 20];
    for n in 0..96 {
        let how = match n % 3 {
            0 => unordered(n),
            _ => ordered(n),
        };
        let sent = a.room.send_with(&id("b"), message(&bulk), how);
        assert_eq!(sent, Ok(()), "{n}");
    }
    let long = vec![8; 4 << 20];
    let sent = a.room.send_with(&id("b"), message(&long), ordered(100));
    assert_eq!(sent, Ok(()));
    for _ in 0..5 {
        hand_over(&a, &b);
    }
    let meter = a.room.peer_meter(&id("b")).expect("linked");
    assert_eq!(meter.reconnects, 0);
    assert!(meter.queue_bytes > 80 << 20, "the host has taken nothing");
    drop(gate);
    eventually("all is delivered", || len(&got) == 97);
}

/// From here on what the member sends waits for the link.
fn slow_down(member: &Member) {
    let slow = SimulatedNetwork {
        lag: Duration::from_millis(20),
        jitter: Duration::ZERO,
        loss_permille: 150,
    };
    member.room.simulate_network(slow).expect("in the limits");
}

#[test]
fn a_channel_that_is_used_for_the_first_time_does_not_wait_for_bulk() {
    let config = Config {
        compression_threshold: 1 << 20,
        ..quick()
    };
    let a = Member::open_deaf("a", "new channels", config);
    let b = Member::open_deaf("b", "new channels", quick());
    let (got, _) = listen(&b);
    b.connect_to(&a);
    settled(&[&a, &b]);
    slow_down(&a);
    let bulk = vec![7; 64 << 10];
    while a
        .room
        .send_with(&id("b"), message(&bulk), ordered(0))
        .is_ok()
    {}
    for channel in 1..=20 {
        send(&a, "b", b"new", ordered(channel));
    }
    eventually("every new channel delivers", || {
        let got = got.lock().expect("not poisoned");
        got.iter().filter(|(channel, ..)| *channel > 0).count() == 20
    });
    let queue = a.room.peer_meter(&id("b")).expect("linked").queue_bytes;
    assert!(queue > 1 << 20, "the bulk is still on its way: {queue}");
}

/// QUIC sends datagrams before streams: without a bound they would starve the control stream.
#[test]
fn a_flood_of_unreliable_messages_leaves_room_to_reliable_ones_and_to_the_room() {
    let a = Member::open_deaf("a", "loose flood", quick());
    let b = Member::open_deaf("b", "loose flood", quick());
    let (got, _) = listen(&b);
    b.connect_to(&a);
    settled(&[&a, &b]);
    slow_down(&a);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for _ in 0..20 {
                    let sent = a
                        .room
                        .send_with(&id("b"), message(&[7; 1000]), loose(0, None));
                    assert_eq!(sent, Ok(()));
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        for n in 0..100 {
            send(&a, "b", &[n], ordered(1));
            eventually("a reliable one arrives", || {
                let got = got.lock().expect("not poisoned");
                got.iter()
                    .any(|(channel, _, payload)| (*channel, &payload[..]) == (1, &[n][..]))
            });
        }
        for _ in 0..3 {
            hand_over(&a, &b);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(a.room.peer_meter(&id("b")).expect("linked").reconnects, 0);
    let got = got.lock().expect("not poisoned");
    let loose = got.iter().filter(|(channel, ..)| *channel == 0).count();
    assert!(loose > 100, "{loose}");
}
