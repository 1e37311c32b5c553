//! Messages to a member during the loss of its link.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use meta_mystia_network::config::Config;
use meta_mystia_network::core::path::Path;
use meta_mystia_network::dispatch::{Event, Incoming, Left};
use meta_mystia_network::error::SendError;
use meta_mystia_network::room::{Reliable, SendMode};
use meta_mystia_network::simulated::{ALL_LOST, SimulatedNetwork};
use meta_mystia_network::snapshot::PeerStatus;

use crate::harness::{Member, TIMEOUT, eventually, id, message, quick, settled};

/// The end of a stream of numbers.
const LAST: u32 = u32::MAX;

/// Every event of a host, in order.
#[derive(Default)]
struct Record {
    events: Mutex<Vec<Event>>,
    changed: Condvar,
}

impl Record {
    fn of(member: &Member) -> Arc<Self> {
        let record = Arc::<Self>::default();
        let keep = Arc::clone(&record);
        member
            .room
            .dispatch()
            .register_event_handler(Some(Arc::new(move |event: &Event| {
                keep.events
                    .lock()
                    .expect("not poisoned")
                    .push(event.clone());
                keep.changed.notify_all();
            })));
        record
    }

    fn wait<T>(&self, what: &str, find: impl Fn(&[Event]) -> Option<T>) -> T {
        let limit = Instant::now() + TIMEOUT;
        let mut events = self.events.lock().expect("not poisoned");
        loop {
            if let Some(found) = find(&events) {
                return found;
            }
            let left = limit.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what} in {events:#?}");
            events = self
                .changed
                .wait_timeout(events, left)
                .expect("not poisoned")
                .0;
        }
    }

    /// Waits until `peer` has returned this many times; returns the sums of all its returns.
    fn returns(&self, peer: &str, times: usize) -> (u64, u64) {
        self.wait(&format!("return {times} of {peer}"), |events| {
            let returns: Vec<_> = events
                .iter()
                .filter_map(|event| counts(event, peer))
                .collect();
            let sum = |(x, y), (a, b)| (x + a, y + b);
            (returns.len() >= times).then(|| returns.into_iter().fold((0, 0), sum))
        })
    }

    fn left(&self, peer: &str) -> u64 {
        self.wait(&format!("departure of {peer}"), |events| {
            events.iter().find_map(|event| match event {
                Event::Left(Left {
                    peer: gone,
                    undelivered,
                    ..
                }) if gone.as_str() == peer => Some(*undelivered),
                _ => None,
            })
        })
    }

    /// Numbers that `peer` sent on the classic lane.
    fn numbers(&self, peer: &str) -> Vec<u32> {
        numbers(&self.events.lock().expect("not poisoned"), peer)
    }

    fn all_numbers(&self, peer: &str) -> Vec<u32> {
        self.wait(&format!("end of what {peer} sent"), |events| {
            let mut numbers = numbers(events, peer);
            (numbers.pop() == Some(LAST)).then_some(numbers)
        })
    }
}

fn counts(event: &Event, peer: &str) -> Option<(u64, u64)> {
    match event {
        Event::Returned(returned) if returned.peer.as_str() == peer => {
            Some((returned.undelivered, returned.missed))
        }
        _ => None,
    }
}

fn numbers(events: &[Event], peer: &str) -> Vec<u32> {
    let messages = events.iter().filter_map(|event| match event {
        Event::Message(Incoming { from, payload, .. }) if from.as_str() == peer => {
            let number = payload.as_ref().try_into().expect("a number");
            Some(u32::from_le_bytes(number))
        }
        _ => None,
    });
    messages.collect()
}

fn config(send_queue_capacity: usize) -> Config {
    Config {
        send_queue_capacity,
        reconnect_initial: Duration::from_millis(50),
        ..quick()
    }
}

fn cut(member: &Member, loss_permille: u32) {
    let network = SimulatedNetwork {
        loss_permille,
        ..SimulatedNetwork::default()
    };
    member
        .room
        .simulate_network(network)
        .expect("in the limits");
}

fn sees(member: &Member, peer: &str, status: PeerStatus) -> bool {
    let snapshot = member.room.snapshot();
    snapshot
        .peer(peer)
        .is_some_and(|peer| peer.status == status)
}

/// Cuts `b` off until both have lost each other.
fn lose(a: &Member, b: &Member) {
    cut(a, ALL_LOST);
    cut(b, ALL_LOST);
    eventually("both have lost each other", || {
        sees(a, "b", PeerStatus::Reconnecting) && sees(b, "a", PeerStatus::Reconnecting)
    });
}

fn heal(a: &Member, b: &Member) {
    cut(a, 0);
    cut(b, 0);
}

fn pair(session: &str, config: &Config) -> ((Member, Arc<Record>), (Member, Arc<Record>)) {
    let a = Member::open_with("a", session, config.clone());
    let b = Member::open_with("b", session, config.clone());
    let (reported_a, reported_b) = (Record::of(&a), Record::of(&b));
    b.connect_to(&a);
    settled(&[&a, &b]);
    ((a, reported_a), (b, reported_b))
}

fn broadcast(member: &Member, number: u32) {
    let message = message(&number.to_le_bytes());
    member
        .room
        .broadcast(message)
        .expect("a lost member makes nothing fail");
}

#[test]
fn messages_to_a_lost_member_arrive_when_it_returns() {
    let ((a, reported_a), (b, reported_b)) = pair("away", &config(200));
    lose(&a, &b);
    for number in 0..50 {
        broadcast(&a, 2 * number);
        let message = message(&(2 * number + 1).to_le_bytes());
        a.room.send_to(&id("b"), message).expect("queued");
    }
    assert_eq!(reported_b.numbers("a"), Vec::<u32>::new());
    heal(&a, &b);
    assert_eq!(reported_a.returns("b", 1), (0, 0));
    assert_eq!(reported_b.returns("a", 1), (0, 0));
    broadcast(&a, LAST);
    assert_eq!(reported_b.all_numbers("a"), (0..100).collect::<Vec<_>>());
}

/// Broadcasts until the queue is full and a query shows `b` as lost or gone, and once more.
fn broadcast_until(a: &Member, shown: impl Fn(&Member) -> bool) {
    let limit = Instant::now() + TIMEOUT;
    loop {
        let is_shown = shown(a);
        let sent = a.room.broadcast(message(b"one too many"));
        if is_shown {
            return sent.expect("neither a lost nor a gone member makes a broadcast fail");
        }
        assert!(Instant::now() < limit, "a query never showed it");
    }
}

#[test]
fn a_member_that_a_query_shows_as_lost_makes_no_broadcast_fail() {
    let ((a, _), (b, _)) = pair("seen as lost", &config(1));
    for _ in 0..3 {
        cut(&a, ALL_LOST);
        cut(&b, ALL_LOST);
        broadcast_until(&a, |a| sees(a, "b", PeerStatus::Reconnecting));
        heal(&a, &b);
        settled(&[&a, &b]);
    }
}

#[test]
fn a_member_that_no_query_shows_any_more_makes_no_broadcast_fail() {
    for round in 0..5 {
        let ((a, _), (b, _)) = pair(&format!("seen as gone {round}"), &config(1));
        // Nothing of a arrives, so its queue is full until b leaves.
        cut(&a, ALL_LOST);
        std::thread::scope(|threads| {
            threads.spawn(|| b.room.close());
            broadcast_until(&a, |a| a.room.snapshot().peer("b").is_none());
        });
    }
}

#[test]
fn messages_that_do_not_fit_are_one_gap_that_both_ends_count() {
    let ((a, reported_a), (b, reported_b)) = pair("gap", &config(10));
    // No message is under way.
    broadcast(&a, 0);
    reported_b.wait("message", |events| {
        (!numbers(events, "a").is_empty()).then_some(())
    });
    eventually("an empty queue", || {
        let meter = a.room.peer_meter(&id("b"));
        meter.is_some_and(|meter| meter.queue_messages == 0)
    });
    lose(&a, &b);
    for number in 1..=50 {
        broadcast(&a, number);
    }
    let full = SendError::QueueFull {
        peers: vec![id("b")],
    };
    // Other channels and deliveries leave nothing in the gap either.
    for how in [
        Reliable::default(),
        Reliable {
            channel: 3,
            ..Reliable::default()
        },
        Reliable {
            ordered: false,
            ..Reliable::default()
        },
    ] {
        let sent = a
            .room
            .send_with(&id("b"), message(b"late"), SendMode::Reliable(how));
        assert_eq!(sent, Err(full.clone()));
    }
    broadcast(&b, 7);
    heal(&a, &b);
    assert_eq!(reported_a.returns("b", 1), (40, 0));
    assert_eq!(reported_b.returns("a", 1), (0, 40));
    for number in [51, LAST] {
        eventually("room again", || {
            a.room.broadcast(message(&number.to_le_bytes())).is_ok()
        });
    }
    let expected: Vec<u32> = (0..=10).chain([51]).collect();
    assert_eq!(reported_b.all_numbers("a"), expected);
    broadcast(&b, LAST);
    assert_eq!(reported_a.all_numbers("b"), [7]);
    let reported = reported_b.events.lock().expect("not poisoned");
    let at = |find: &dyn Fn(&Event) -> bool| reported.iter().position(find).expect("reported");
    let returned = at(&|event| counts(event, "a").is_some());
    let second = at(
        &|event| matches!(event, Event::Message(message) if *message.payload == 1_u32.to_le_bytes()),
    );
    assert!(returned < second, "the return comes before what follows it");
}

#[test]
fn the_departure_of_a_lost_member_counts_what_it_missed() {
    let config = Config {
        member_hold: Duration::from_secs(3),
        ..config(10)
    };
    let ((a, reported_a), (b, _)) = pair("given up", &config);
    lose(&a, &b);
    for number in 0..50 {
        broadcast(&a, number);
    }
    assert_eq!(reported_a.left("b"), 50);
}

#[test]
fn ten_losses_beside_streams_are_counted_exactly_at_both_ends() {
    let ((a, reported_a), (b, reported_b)) = pair("flapping", &config(16));
    let mut sent = BTreeMap::from([("a", Vec::new()), ("b", Vec::new())]);
    let mut next = 0;
    let mut stream_until = |what: &str, done: &dyn Fn() -> bool| {
        let limit = Instant::now() + TIMEOUT;
        while !done() {
            assert!(Instant::now() < limit, "it never came about: {what}");
            next += 1;
            for (name, member) in [("a", &a), ("b", &b)] {
                // -7 while it is connected: a refused message is not sent.
                if member
                    .room
                    .broadcast(message(&u32::to_le_bytes(next)))
                    .is_ok()
                {
                    sent.get_mut(name).expect("one of both").push(next);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    for _ in 0..10 {
        cut(&a, ALL_LOST);
        cut(&b, ALL_LOST);
        stream_until("they have lost each other", &|| {
            sees(&a, "b", PeerStatus::Reconnecting) && sees(&b, "a", PeerStatus::Reconnecting)
        });
        let lost = Instant::now();
        stream_until("more than fits is sent", &|| {
            lost.elapsed() > Duration::from_millis(60)
        });
        heal(&a, &b);
        stream_until("they are back", &|| {
            sees(&a, "b", PeerStatus::Connected) && sees(&b, "a", PeerStatus::Connected)
        });
    }
    for member in [&a, &b] {
        eventually("room for one more", || {
            member.room.broadcast(message(&LAST.to_le_bytes())).is_ok()
        });
    }
    for (name, from, to) in [
        ("a", &reported_a, &reported_b),
        ("b", &reported_b, &reported_a),
    ] {
        let other = if name == "a" { "b" } else { "a" };
        let arrived = to.all_numbers(name);
        // Every loss was reported: the next return counts the ones that a quick second loss swallows.
        let (undelivered, missed) = (from.returns(other, 1).0, to.returns(name, 1).1);
        assert_eq!(undelivered, missed, "of {name}");
        assert!(missed > 0, "the queue never was too short");
        let sent = &sent[name];
        assert_eq!(
            arrived.len() as u64 + missed,
            sent.len() as u64,
            "of {name}"
        );
        assert!(arrived.is_sorted_by(|a, b| a < b), "twice, or out of order");
        assert!(
            arrived
                .iter()
                .all(|number| sent.binary_search(number).is_ok())
        );
    }
}

/// Both ends of a lost link dial, directly and through the leader. Whichever link comes first, the direct one takes over, and
/// neither end treats messages from the first link as a violation.
#[test]
fn simultaneous_returns_directly_and_through_the_leader_disturb_no_member() {
    let session = "both ways";
    let config = Config {
        // After half of it a dial goes through the leader as well.
        handshake_timeout: Duration::from_millis(400),
        reconnect_initial: Duration::from_millis(20),
        ..quick()
    };
    let a = Member::open_with("a", session, config.clone());
    eventually("a leads", || a.leader().as_deref() == Some("a"));
    let [b, c] = ["b", "c"].map(|name| Member::open_with(name, session, config.clone()));
    let records = [&a, &b, &c].map(Record::of);
    b.connect_to(&a);
    c.connect_to(&a);
    settled(&[&a, &b, &c]);
    for _ in 0..8 {
        cut(&c, ALL_LOST);
        eventually("c is lost", || {
            sees(&a, "c", PeerStatus::Reconnecting) && sees(&b, "c", PeerStatus::Reconnecting)
        });
        // Either path may be the shorter one.
        let network = SimulatedNetwork {
            jitter: Duration::from_millis(150),
            ..SimulatedNetwork::default()
        };
        c.room.simulate_network(network).expect("in the limits");
        eventually("c is back", || {
            sees(&a, "c", PeerStatus::Connected) && sees(&b, "c", PeerStatus::Connected)
        });
    }
    // With this jitter a handshake may always time out.
    let network = SimulatedNetwork::default();
    c.room.simulate_network(network).expect("in the limits");
    settled(&[&a, &b, &c]);
    eventually("each has links of its own", || {
        [(&b, "c"), (&c, "b"), (&a, "c")]
            .iter()
            .all(|(one, other)| {
                let meter = one.room.peer_meter(&id(other));
                meter.is_some_and(|meter| meter.path == Some(Path::Direct))
            })
    });
    for record in &records {
        let events = record.events.lock().expect("not poisoned");
        let left: Vec<_> = events
            .iter()
            .filter(|event| matches!(event, Event::Left(_)))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
