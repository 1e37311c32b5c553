//! Measures the room's state in real rooms over loopback, each value beside one of messages from the same run.
//!
//! ```sh
//! scripts/isolated.py cargo bench --bench state
//! ```
//!
//! - The time from a submitted action to its result at its author, and a message to a member and back, which the hosts send
//!   in turn: with 3 and with 5 members, from one that does not lead.
//! - Actions a second that three authors get into one order, and that each host receives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use meta_mystia_network::config::{Config, DiscoveryMode, StateOptions};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::dispatch::{Event, Reported, kind};
use meta_mystia_network::room::{OutMessage, Room};
use meta_mystia_network::state::event::StateEvent;
use meta_mystia_network::target::parse_target;

/// Type of actions and messages.
const TYPE: u16 = 0x0100;
/// Type of the answer to a message.
const BACK: u16 = 0x0101;
/// Bytes of an action and of a message.
const BYTES: usize = 32;
/// Actions and messages of which the times are compared.
const TURNS: usize = 2_000;
/// Actions of each author for the rate.
const ACTIONS: u64 = 100_000;
/// Actions without a result up to which an author goes on.
const OPEN: usize = 200;
const LIMIT: Duration = Duration::from_secs(120);

/// A member, and what its host has received.
struct Member {
    room: Arc<Room>,
    actions: Arc<AtomicU64>,
    results: mpsc::Receiver<u64>,
    answers: mpsc::Receiver<()>,
}

impl Member {
    fn open(name: &str) -> Self {
        let config = Config {
            state: Some(StateOptions::default()),
            discovery: DiscoveryMode::Off,
            ..Config::default()
        };
        let session = SessionId::new("benchmark of the state").expect("valid");
        let room = Room::open(id(name), session, config).expect("a room");
        let room = Arc::new(room);
        let actions = Arc::<AtomicU64>::default();
        let (result, results) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let counted = Arc::clone(&actions);
        let answering = Arc::downgrade(&room);
        let handler = move |report: kind::Report<'_>| match report.event {
            Reported::State(StateEvent::Action { .. }) => {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Reported::State(StateEvent::ActionResult { request, .. }) => {
                // The receiver is gone at the end.
                let _ = result.send(*request);
            }
            Reported::Room(Event::Message(message)) if message.msg_type == BACK => {
                let _ = answer.send(());
            }
            Reported::Room(Event::Message(message)) => {
                if let Some(room) = answering.upgrade() {
                    let sent = room.send_to(&message.from, payload(BACK));
                    sent.expect("the asker is linked");
                }
            }
            _ => {}
        };
        room.dispatch()
            .register::<kind::Everything>(Some(Arc::new(handler)));
        Self {
            room,
            actions,
            results,
            answers,
        }
    }

    fn leads(&self) -> bool {
        self.room.snapshot().leader.as_ref() == Some(self.room.peer_id())
    }

    fn submit(&self) -> u64 {
        let submitted = self.room.submit(TYPE, &[7; BYTES]);
        submitted.expect("there is room")
    }
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("valid")
}

fn payload(msg_type: u16) -> OutMessage {
    OutMessage {
        payload: Bytes::from_static(&[7; BYTES]),
        msg_type,
        flags: 0,
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < until, "it takes too long: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Members that are linked with each other, know a leader, and are all in the log.
fn party(size: usize) -> Vec<Member> {
    let members: Vec<_> = ('a'..)
        .take(size)
        .map(|name| Member::open(&name.to_string()))
        .collect();
    for (at, member) in members.iter().enumerate() {
        for other in &members[..at] {
            let port = other.room.local_address().port();
            let text = format!("127.0.0.1:{port}");
            let target = parse_target(&text).expect("an address");
            member.room.connect(&text, target).expect("accepted");
        }
    }
    wait_until("one leader", || {
        let leader = members[0].room.snapshot().leader.clone();
        let knows = |member: &Member| {
            let snapshot = member.room.snapshot();
            snapshot.connected == size - 1 && snapshot.leader == leader
        };
        leader.is_some() && members.iter().all(knows)
    });
    wait_until("a roster of all", || {
        let is_whole = |member: &Member| {
            let info = member.room.state_info().expect("a state");
            info.roster == size && info.taken == info.confirmed
        };
        members.iter().all(is_whole)
    });
    members
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Measures a result and a message's way there and back in turn; prints both medians and their ratio.
fn latency(size: usize, demanded: f64) -> bool {
    let members = party(size);
    let author = members
        .iter()
        .find(|member| !member.leads())
        .expect("a follower");
    let other = members
        .iter()
        .find(|member| member.leads())
        .expect("a leader");
    let (mut results, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let began = Instant::now();
        let request = author.submit();
        let result = author.results.recv_timeout(LIMIT);
        assert_eq!(result, Ok(request));
        results.push(began.elapsed());
        let began = Instant::now();
        let sent = author.room.send_to(other.room.peer_id(), payload(TYPE));
        sent.expect("linked");
        author.answers.recv_timeout(LIMIT).expect("an answer");
        messages.push(began.elapsed());
    }
    let (result, message) = (median(results), median(messages));
    let ratio = result.as_secs_f64() / message.as_secs_f64();
    println!(
        "{size} members: result {} us, message there and back {} us, ratio {ratio:.2} (demanded {demanded})",
        result.as_micros(),
        message.as_micros(),
    );
    ratio <= demanded
}

/// Measures how many actions a second three authors get into one order at each host.
fn rate() {
    let members = party(3);
    let began = Instant::now();
    let authors: Vec<_> = members
        .into_iter()
        .map(|member| std::thread::spawn(move || submits_all(member)))
        .collect();
    // No room closes before all are done.
    let members: Vec<_> = authors.into_iter().map(|author| author.join()).collect();
    assert!(members.iter().all(Result::is_ok));
    let seconds = began.elapsed().as_secs_f64();
    let total = 3 * ACTIONS;
    println!(
        "3 authors: {total} actions of {BYTES} bytes in {seconds:.1} s, {:.0} a second, received by each of 3 hosts",
        total as f64 / seconds
    );
}

/// Submits all actions of an author, and waits until its host has received those of all.
fn submits_all(member: Member) -> Member {
    let mut open = 0;
    for _ in 0..ACTIONS {
        if open == OPEN {
            member.results.recv_timeout(LIMIT).expect("a result");
            open -= 1;
        }
        member.submit();
        open += 1;
    }
    wait_until("all actions", || {
        member.actions.load(Ordering::Relaxed) >= 3 * ACTIONS
    });
    member
}

fn main() {
    let met = [latency(3, 1.6), latency(5, 2.6)];
    rate();
    if met.contains(&false) {
        println!("a ratio is above the demanded one");
        std::process::exit(1);
    }
}
