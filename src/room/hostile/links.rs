//! Links: two at once, lost ones that return, and links that a host ends.

use std::sync::Mutex;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::cut::{cut, heal};
use super::*;
use crate::dispatch::{EndReason, Event, kind};
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::room::{Reliable, SendMode, Unreliable};

/// Sends `count` numbered messages from one host to the other as soon as they are linked.
async fn send_numbered(from: &Host, to: &Host, count: u32) {
    from.wait_for(joined(&to.name), 1).await;
    for n in 0..count {
        from.send(&to.name, &n.to_le_bytes()).await;
    }
}

async fn receives_in_order(host: &Host, from: &Host, count: u32) {
    let last = Report::Message(from.name.clone(), (count - 1).to_le_bytes().to_vec());
    host.wait_for(last, 1).await;
    let expected: Vec<_> = (0..count).map(|n| n.to_le_bytes().to_vec()).collect();
    assert_eq!(host.messages_from(&from.name), expected);
}

async fn everything_is_acknowledged(host: &Host) {
    in_time(host.room.shared.outboxes.flushed()).await;
}

fn cut_both(one: &Host, other: &Host) {
    cut(one.port(), other.port());
    cut(other.port(), one.port());
}

fn heal_both(one: &Host, other: &Host) {
    heal(one.port(), other.port());
    heal(other.port(), one.port());
}

#[tokio::test]
async fn t22_two_that_dial_each_other_at_once_end_with_one_link_and_lose_nothing() {
    const MESSAGES: u32 = 300;
    for round in 0..20 {
        let session = format!("at once {round}");
        let (a, b) = (Host::open("a", &session), Host::open("b", &session));
        a.connect_to(b.address());
        b.connect_to(a.address());
        tokio::join!(
            send_numbered(&a, &b, MESSAGES),
            send_numbered(&b, &a, MESSAGES)
        );
        receives_in_order(&a, &b, MESSAGES).await;
        receives_in_order(&b, &a, MESSAGES).await;
        for (host, other) in [(&a, &b), (&b, &a)] {
            everything_is_acknowledged(host).await;
            eventually("one connection", || {
                let census = host.census();
                (census.connections, census.links, census.sessions) == (1, 1, 1)
            })
            .await;
            host.wait("a connection result", |reported| {
                let result = reported
                    .iter()
                    .find(|reported| matches!(reported, Report::Connection(..)));
                result.cloned()
            })
            .await;
            let reported = host.reported.borrow().clone();
            let results: Vec<_> = reported
                .iter()
                .filter(|reported| matches!(reported, Report::Connection(..)))
                .collect();
            assert_eq!(results.len(), 1);
            assert!(matches!(results[0], Report::Connection(true, 0 | -14)));
            assert_eq!(host.comings_and_goings(), vec![joined(&other.name)]);
        }
    }
}

/// Checks that the peer left once and joined again, and that messages flow both ways.
async fn lost_once_and_found(pair: &Pair) {
    for (one, other) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        one.wait_for(joined(&other.name), 2).await;
    }
    for (one, other) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        for n in 0..50_u32 {
            one.send(&other.name, &n.to_be_bytes()).await;
        }
        let last = Report::Message(one.name.clone(), 49_u32.to_be_bytes().to_vec());
        other.wait_for(last, 1).await;
        everything_is_acknowledged(one).await;
    }
    for (one, other) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        let received = other.messages_from(&one.name);
        let expected: Vec<_> = (0..50_u32).map(|n| n.to_be_bytes().to_vec()).collect();
        assert!(received.ends_with(&expected), "in order, once");
        let there_and_back = vec![joined(&other.name), left(&other.name), joined(&other.name)];
        assert_eq!(one.comings_and_goings(), there_and_back);
    }
}

#[tokio::test]
async fn members_behind_a_cut_cable_reconnect_when_it_is_mended() {
    let pair = Pair::settled("cut").await;
    pair.undisturbed("nothing yet").await;
    cut_both(&pair.a, &pair.b);
    // Accepted, and kept for the return.
    for n in 0..20_u8 {
        pair.a.send("b", &[n]).await;
    }
    pair.a.wait_for(left("b"), 1).await;
    pair.b.wait_for(left("a"), 1).await;
    heal_both(&pair.a, &pair.b);
    lost_once_and_found(&pair).await;
    let received = pair.b.messages_from("a");
    let kept: Vec<_> = (0..20_u8).map(|n| vec![n]).collect();
    let before_the_last_50 = &received[..received.len() - 50];
    assert!(before_the_last_50.ends_with(&kept), "once, in order");
}

#[tokio::test]
async fn every_channel_goes_on_over_the_next_link_where_it_stopped() {
    let pair = Pair::settled("channels").await;
    let ways = [(0, true), (3, true), (255, true), (7, false)].map(|(channel, ordered)| Reliable {
        ordered,
        channel,
        ..Reliable::default()
    });
    let send = async |n: u8| {
        for how in ways {
            let payload = message(&[how.channel, n]);
            let sent = pair
                .a
                .room
                .send_with(&id("b"), payload, SendMode::Reliable(how));
            sent.expect("room in the queue");
        }
    };
    for n in 0..10 {
        send(n).await;
    }
    pair.b.wait_for(reported("a", &[255, 9]), 1).await;
    cut_both(&pair.a, &pair.b);
    for n in 10..20 {
        send(n).await;
    }
    pair.a.wait_for(left("b"), 1).await;
    pair.b.wait_for(left("a"), 1).await;
    let loose = SendMode::Unreliable(Unreliable::default());
    let sent = pair.a.room.send_with(&id("b"), message(b"late"), loose);
    assert_eq!(sent, Ok(()), "dropped, and no error");
    heal_both(&pair.a, &pair.b);
    pair.a.wait_for(joined("b"), 2).await;
    for n in 20..30 {
        send(n).await;
    }
    let all = |reported: &[Report]| {
        let messages = reported
            .iter()
            .filter(|reported| matches!(reported, Report::Message(..)));
        (messages.count() >= 30 * ways.len()).then_some(())
    };
    pair.b.wait("every message", all).await;
    let received = pair.b.messages_from("a");
    for how in ways {
        let all = received.iter().filter(|payload| payload[0] == how.channel);
        let mut numbers: Vec<_> = all.map(|payload| payload[1]).collect();
        if !how.ordered {
            numbers.sort_unstable();
        }
        assert_eq!(numbers, (0..30).collect::<Vec<_>>(), "{how:?}");
    }
    assert!(!received.contains(&b"late".to_vec()));
}

#[tokio::test]
async fn a_member_that_is_kicked_behind_a_cut_cable_is_notified_when_it_is_mended() {
    let pair = Pair::settled("kicked away").await;
    let (leader, other) = match pair.a.room.snapshot().is_leader {
        true => (&pair.a, &pair.b),
        false => (&pair.b, &pair.a),
    };
    let (over, mut is_over) = mpsc::unbounded_channel();
    let dispatch = other.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(move |event: &Event| {
        if let Event::RoomEnded { why, .. } = event {
            let _ = over.send(*why);
        }
    })));
    cut_both(&pair.a, &pair.b);
    leader.wait_for(left(&other.name), 1).await;
    other.wait_for(left(&leader.name), 1).await;
    leader
        .room
        .kick(&id(&other.name), 7, b"bye")
        .expect("it is waited for");
    heal_both(&pair.a, &pair.b);
    let reason = timeout(Duration::from_secs(30), is_over.recv()).await;
    assert_eq!(
        reason.expect("it returns and reports"),
        Some(EndReason::Kicked)
    );
    assert_eq!(other.connect(leader).await, (false, -18));
}

#[tokio::test]
async fn a_cable_that_is_cut_in_one_direction_parts_both() {
    for (session, from_a) in [("one way", true), ("other way", false)] {
        let pair = Pair::settled(session).await;
        let (from, to) = match from_a {
            true => (pair.a.port(), pair.b.port()),
            false => (pair.b.port(), pair.a.port()),
        };
        cut(from, to);
        pair.a.wait_for(left("b"), 1).await;
        pair.b.wait_for(left("a"), 1).await;
        heal(from, to);
        lost_once_and_found(&pair).await;
    }
}

#[tokio::test]
async fn both_ends_agree_on_the_next_session_if_one_declares_the_loss_first() {
    for (session, impatient) in [("first a", 0), ("first b", 1)] {
        let config = |index: usize| Config {
            heartbeat_timeout_multiplier: if index == impatient { 6 } else { 100 },
            ..quick()
        };
        let a = Host::open_with("a", session, config(0));
        let b = Host::open_with("b", session, config(1));
        assert_eq!(b.connect(&a).await, (true, 0));
        let pair = Pair { a, b };
        pair.a.wait_for(joined("b"), 1).await;
        pair.b.wait_for(joined("a"), 1).await;
        pair.undisturbed("nothing yet").await;
        cut_both(&pair.a, &pair.b);
        pair.a.send("b", b"into the cut").await;
        pair.b.send("a", b"into the cut").await;
        let (first, lost) = match impatient {
            0 => (&pair.a, left("b")),
            _ => (&pair.b, left("a")),
        };
        first.wait_for(lost, 1).await;
        heal_both(&pair.a, &pair.b);
        lost_once_and_found(&pair).await;
    }
}

#[tokio::test]
async fn a_cut_that_ends_in_time_loses_neither_a_message_nor_a_member() {
    let config = Config {
        heartbeat_timeout_multiplier: 100,
        ..quick()
    };
    let pair = Pair::settled_with("short cut", config).await;
    cut_both(&pair.a, &pair.b);
    for n in 0..100_u32 {
        pair.a.send("b", &n.to_le_bytes()).await;
        pair.b.send("a", &n.to_le_bytes()).await;
    }
    sleep(Duration::from_millis(700)).await;
    heal_both(&pair.a, &pair.b);
    receives_in_order(&pair.a, &pair.b, 100).await;
    receives_in_order(&pair.b, &pair.a, 100).await;
    pair.undisturbed("a short cut").await;
}

#[tokio::test]
async fn a_disconnected_peer_stays_away_until_one_of_both_connects() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Host::open(name, "disconnect"));
    assert_eq!(b.connect(&a).await, (true, 0));
    assert_eq!(c.connect(&a).await, (true, 0));
    for (host, others) in [(&a, ["b", "c"]), (&b, ["a", "c"]), (&c, ["a", "b"])] {
        for other in others {
            host.wait_for(joined(other), 1).await;
        }
    }
    a.room.disconnect(&id("b")).expect("a known peer");
    a.wait_for(left("b"), 1).await;
    b.wait_for(left("a"), 1).await;
    // c loses b and is linked to it again: it introduces b to a, and a to b.
    cut_both(&b, &c);
    b.wait_for(left("c"), 1).await;
    c.wait_for(left("b"), 1).await;
    heal_both(&b, &c);
    b.wait_for(joined("c"), 2).await;
    c.wait_for(joined("b"), 2).await;
    // After an introduction the larger id dials after 2 s at the latest.
    sleep(Duration::from_millis(2500)).await;
    assert!(!a.has("b") && !b.has("a"));
    assert_eq!((a.times(&joined("b")), a.times(&left("b"))), (1, 1));
    assert_eq!((b.times(&joined("a")), b.times(&left("a"))), (1, 1));
    assert_eq!(b.connect(&a).await, (true, 0));
    a.wait_for(joined("b"), 2).await;
    b.wait_for(joined("a"), 2).await;
    a.send("b", b"again").await;
    b.wait_for(Report::Message("a".into(), b"again".to_vec()), 1)
        .await;
}

/// Accepts the next dial of another peer, as a slow member does. `None`: the dialler gave up.
async fn take_dial(puppet: &Attacker) -> Option<Hello> {
    let connection = puppet.process.accept().await.ok()?;
    let (mut send, mut recv) = accept_pake(&connection, &puppet.proof).await.ok()?;
    let hello = read_hello(&mut recv).await.ok()?;
    let ack = HelloAck {
        code: 0,
        kicked: false,
        reason: 0,
        bytes: Vec::new(),
        hello: Hello {
            generation: hello.generation,
            ..puppet.hello()
        },
    };
    write_hello_ack(&mut send, &ack).await.ok()?;
    send.write_all(&first_words()).await.ok()?;
    read_frame(&mut recv, 8).await.ok()?;
    // It stays linked for as long as the other end wants.
    connection.closed().await;
    Some(hello)
}

#[tokio::test]
async fn a_dial_that_began_before_disconnect_peer_does_not_lift_it() {
    for linked_meanwhile in [true, false] {
        let host = Host::open("h", "severed");
        let puppet = Attacker::new("p", "severed");
        // The puppet does not answer yet: the dial continues.
        host.connect_to(puppet.process.address());
        if linked_meanwhile {
            let _member = puppet.join(&host).await;
            host.room.disconnect(&id("p")).expect("open");
            host.wait_for(left("p"), 1).await;
        } else {
            host.room.disconnect(&id("p")).expect("open");
        }
        let joins = host.times(&joined("p"));
        let result = host.wait("a connection result", |reported| {
            reported.iter().find_map(|reported| match reported {
                Report::Connection(success, code) => Some((*success, *code)),
                _ => None,
            })
        });
        let answer = async {
            take_dial(&puppet).await;
            std::future::pending().await
        };
        let result = tokio::select! {
            result = result => result,
            result = answer => result,
        };
        assert_eq!(result, (false, -18), "linked meanwhile: {linked_meanwhile}");
        assert_eq!(host.times(&joined("p")), joins);
        assert!(!host.has("p"));
        // A later dial connects again.
        host.connect_to(puppet.process.address());
        let back = host.wait_for(joined("p"), joins + 1);
        tokio::select! {
            () = back => {}
            taken = take_dial(&puppet) => panic!("the dial was given up: {taken:?}"),
        }
        host.wait_for(Report::Connection(true, 0), 1).await;
        assert_eq!(host.times(&Report::Connection(false, -18)), 1);
    }
}

#[tokio::test]
async fn a_flooded_room_closes_in_time_and_its_peers_are_notified_once() {
    let hub = Host::open("hub", "closing");
    let peers = ["x", "y", "z"].map(|name| Host::open(name, "closing"));
    for peer in &peers {
        assert_eq!(peer.connect(&hub).await, (true, 0));
        hub.wait_for(joined(&peer.name), 1).await;
    }
    let floods: Vec<_> = peers
        .iter()
        .map(|peer| {
            let room = Arc::clone(&peer.room);
            tokio::spawn(async move {
                let payload = [7; 4096];
                loop {
                    match room.send_to(&id("hub"), message(&payload)) {
                        Ok(()) => tokio::task::yield_now().await,
                        Err(SendError::QueueFull { .. }) => sleep(Duration::from_millis(1)).await,
                        Err(_) => return,
                    }
                }
            })
        })
        .collect();
    sleep(Duration::from_millis(300)).await;
    let room = Arc::clone(&hub.room);
    let start = Instant::now();
    let closing = tokio::task::spawn_blocking(move || room.close());
    in_time(closing).await.expect("no panic");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    for peer in &peers {
        peer.wait_for(left("hub"), 1).await;
    }
    for flood in floods {
        in_time(flood).await.expect("no panic");
    }
    sleep(Duration::from_millis(300)).await;
    for peer in &peers {
        assert_eq!(peer.times(&left("hub")), 1);
        assert_eq!(peer.times(&joined("hub")), 1);
    }
}

#[tokio::test]
async fn calls_during_a_close_get_an_answer() {
    for round in 0..20 {
        let pair = Pair::settled(&format!("calls {round}")).await;
        let calls: Vec<_> = (0..4)
            .map(|n| {
                let room = Arc::clone(&pair.a.room);
                tokio::task::spawn_blocking(move || {
                    for _ in 0..200 {
                        let _ = match n {
                            0 => room.disconnect(&id("unknown")).is_ok(),
                            1 => room.set_leader(&id("a")).is_ok(),
                            2 => room.send_to(&id("b"), message(b"x")).is_ok(),
                            _ => room.enable_auto_election(true).is_ok(),
                        };
                    }
                })
            })
            .collect();
        let room = Arc::clone(&pair.a.room);
        let closing = tokio::task::spawn_blocking(move || room.close());
        in_time(closing).await.expect("no panic");
        for call in calls {
            in_time(call).await.expect("answered");
        }
    }
}

#[tokio::test]
async fn calls_during_a_close_do_not_wait_for_it() {
    let mut config = quick();
    config.incoming_queue_capacity = 1;
    let pair = Pair::settled_with("slow close", config).await;
    // The other host takes no messages, so queued ones are flushed for a second.
    let (release, released) = blocking::sync_channel::<()>(0);
    let released = Mutex::new(released);
    let stand_still = move |_: &Incoming| {
        let released = released.lock().expect("one at a time");
        let _ = released.recv_timeout(TIMEOUT);
    };
    let dispatch = pair.b.room.dispatch();
    dispatch.register::<kind::Receive>(Some(Arc::new(stand_still)));
    for _ in 0..16 {
        let _ = pair.a.room.send_to(&id("b"), message(b"x"));
    }
    let room = Arc::clone(&pair.a.room);
    let calling = tokio::task::spawn_blocking(move || {
        let mut longest = Duration::ZERO;
        loop {
            let start = Instant::now();
            let open = room.enable_auto_election(true).is_ok();
            longest = longest.max(start.elapsed());
            if !open {
                return longest;
            }
        }
    });
    let room = Arc::clone(&pair.a.room);
    let start = Instant::now();
    let closing = tokio::task::spawn_blocking(move || room.close());
    let longest = in_time(calling).await.expect("answered");
    in_time(closing).await.expect("no panic");
    let took = start.elapsed();
    drop(release);
    assert!(
        longest * 2 < took,
        "a call took {longest:?}, the close {took:?}"
    );
}
