//! Tests of each guarantee of the dispatcher. Threads wait for events, never for time, except where a test documents
//! it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::kind::{ConnectionResult, LeaderChanged, PeerStatus, Receive, Reconnect};
use super::*;
use crate::core::election::AssignOutcome;

mod bounds;
mod callbacks;
mod events;
mod in_step;
mod indices;
mod messages;
mod poll;
mod stop;

/// Far longer than any step takes: a test that waits this long fails.
const TIMEOUT: Duration = Duration::from_secs(20);
const FOREVER: Duration = Duration::from_secs(3600);

fn limits(messages: usize, bytes: usize, hold: Duration) -> Limits {
    Limits {
        messages,
        bytes,
        hold,
    }
}

fn wide() -> Limits {
    limits(1000, 1 << 20, FOREVER)
}

fn started(limits: Limits) -> Arc<Dispatch> {
    Arc::new(Dispatch::start(limits, peer("me"), DispatchMode::Thread).expect("a thread"))
}

fn peer(id: &str) -> PeerId {
    PeerId::new(id).expect("a valid id")
}

fn left(id: &str) -> Event {
    Event::Left(Left::new(peer(id), LeftReason::Lost))
}

/// "" is no leader.
fn led_by(id: &str) -> Event {
    Event::LeaderChanged(LeaderChange {
        new: (!id.is_empty()).then(|| peer(id)),
        ..LeaderChange::default()
    })
}

fn message(number: u32, len: usize) -> Incoming {
    let mut payload = vec![0; len.max(4)];
    payload[..4].copy_from_slice(&number.to_le_bytes());
    Incoming {
        from: peer("sender"),
        payload: Bytes::from(payload),
        msg_type: 0x100,
        flags: 0,
        channel: 0,
        delivery: Delivery::ReliableOrdered,
    }
}

fn number(message: &Incoming) -> u32 {
    u32::from_le_bytes(message.payload[..4].try_into().expect("four bytes"))
}

fn next<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(TIMEOUT).expect("an event in time")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A log of all events, as text.
fn log_all(dispatch: &Dispatch) -> Receiver<String> {
    let (sender, receiver) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    dispatch.register::<LeaderChanged>(Some(leader(&sender, "")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.register::<ConnectionResult>(Some(Arc::new({
        move |result: &crate::core::event::ConnectionResult| {
            let _ = sender.send(format!("result {} {}", result.target, result.code));
        }
    })));
    receiver
}

fn receive(sender: &Sender<String>, name: &'static str) -> Handler<Receive> {
    let sender = sender.clone();
    Arc::new(move |message| {
        let _ = sender.send(format!("{name}message {}", number(message)));
    })
}

fn leader(sender: &Sender<String>, name: &'static str) -> Handler<LeaderChanged> {
    let sender = sender.clone();
    Arc::new(move |leader| {
        let leader = leader.map_or("", PeerId::as_str);
        let _ = sender.send(format!("{name}leader {leader}"));
    })
}

fn status(sender: &Sender<String>, name: &'static str) -> Handler<PeerStatus> {
    let sender = sender.clone();
    Arc::new(move |(peer, status)| {
        let _ = sender.send(format!("{name}status {peer} {}", status as i32));
    })
}

fn reconnect(sender: &Sender<String>, name: &'static str) -> Handler<Reconnect> {
    let sender = sender.clone();
    Arc::new(move |(peer, status)| {
        let _ = sender.send(format!("{name}reconnect {peer} {}", status as u8));
    })
}

/// A handler of all events, as text.
fn events(sender: &Sender<String>, name: &'static str) -> Arc<dyn Fn(&Event) + Send + Sync> {
    let sender = sender.clone();
    Arc::new(move |event| {
        let text = |leader: &Option<PeerId>| leader.as_ref().map_or("", PeerId::as_str).to_owned();
        let line = match event {
            Event::Message(message) => format!("message {}", number(message)),
            Event::LeadershipGained(change) => format!("gained {}", change.term),
            Event::LeadershipLost(change) => format!("lost to {}", text(&change.new)),
            Event::Joined(peer) => format!("joined {peer}"),
            Event::Reconnecting(peer) => format!("reconnecting {peer}"),
            Event::Returned(returned) => match (returned.undelivered, returned.missed) {
                (0, 0) => format!("returned {}", returned.peer),
                (undelivered, missed) => {
                    format!("returned {} {undelivered} {missed}", returned.peer)
                }
            },
            Event::Left(left) => format!("left {} {}", left.peer, left.why as i32),
            Event::LeaderChanged(change) => {
                format!("leader {}>{}", text(&change.old), text(&change.new))
            }
            Event::ConnectionResult(result) => format!("result {}", result.target),
            Event::SetLeaderResult { target, outcome } => format!("set {target} {outcome:?}"),
            Event::JoinRequest { request, .. } => format!("request {request}"),
            Event::DiscoveryRefused(refused) => format!("refused {}", refused.result.target),
            Event::Discovered { address } => format!("discovered {address}"),
            other => format!("{other:?}"),
        };
        let _ = sender.send(format!("{name}{line}"));
    })
}

/// A Receive handler that reports when it begins, and continues when it is released.
fn gated() -> (Handler<Receive>, Receiver<u32>, Sender<()>) {
    let (begun, begins) = channel();
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let handler: Handler<Receive> = Arc::new(move |message| {
        let _ = begun.send(number(message));
        let _ = lock(&may_go).recv();
    });
    (handler, begins, go)
}

/// Occupies the dispatcher thread with a running Receive handler, until the sender is used or dropped.
fn occupy(dispatch: &Dispatch) -> Sender<()> {
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    dispatch
        .try_push_message(message(u32::MAX, 4))
        .expect("an empty queue takes it");
    next(&begins);
    go
}

/// Waits until another thread has brought the queue to this state.
fn until(dispatch: &Dispatch, so_far: impl Fn(&Queue) -> bool) {
    let started = Instant::now();
    while !so_far(&dispatch.shared.lock()) {
        assert!(started.elapsed() < TIMEOUT, "it never came so far");
        thread::yield_now();
    }
}

/// Runs everything that is queued, on this thread.
fn drain(shared: &Shared) {
    let mut queue = shared.lock();
    loop {
        let ran;
        (queue, ran) = shared.run_one(queue).expect("no fork");
        if !ran {
            return;
        }
    }
}

/// A dispatcher without a thread: the test runs the handlers.
fn manual(limits: Limits) -> Dispatch {
    let shared = Arc::new(Shared::new(limits, peer("me")));
    let indices = shared.lock().indices();
    Dispatch {
        shared,
        indices,
        mode: DispatchMode::Poll,
        thread: Mutex::new(None),
    }
}
