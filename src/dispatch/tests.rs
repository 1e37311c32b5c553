//! Each guarantee of the dispatcher. Threads wait for events, never for time, except where a test says so.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// Far longer than any step takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
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
    Arc::new(Dispatch::start(limits).expect("a thread"))
}

fn peer(id: &str) -> PeerId {
    PeerId::new(id).expect("a valid id")
}

fn message(number: u32, len: usize) -> Incoming {
    let mut payload = vec![0; len.max(4)];
    payload[..4].copy_from_slice(&number.to_le_bytes());
    Incoming {
        from: peer("sender"),
        payload: Bytes::from(payload),
        msg_type: 0x100,
        flags: 0,
    }
}

fn number(message: &Incoming) -> u32 {
    u32::from_le_bytes(message.payload[..4].try_into().expect("four bytes"))
}

fn next<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("an event in time")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// What a host sees, as text.
fn log_all(dispatch: &Dispatch) -> Receiver<String> {
    let (sender, receiver) = channel();
    dispatch.register_receive(Some(receive(&sender, "")));
    dispatch.register_leader_changed(Some(leader(&sender, "")));
    dispatch.register_peer_status(Some(status(&sender, "")));
    dispatch.register_connection_result(Some(Arc::new({
        move |result: &ConnectionResult| {
            let _ = sender.send(format!("result {} {}", result.target, result.code));
        }
    })));
    receiver
}

fn receive(sender: &Sender<String>, name: &'static str) -> ReceiveHandler {
    let sender = sender.clone();
    Arc::new(move |message| {
        let _ = sender.send(format!("{name}message {}", number(message)));
    })
}

fn leader(sender: &Sender<String>, name: &'static str) -> LeaderChangedHandler {
    let sender = sender.clone();
    Arc::new(move |leader| {
        let leader = leader.map_or("", PeerId::as_str);
        let _ = sender.send(format!("{name}leader {leader}"));
    })
}

fn status(sender: &Sender<String>, name: &'static str) -> PeerStatusHandler {
    let sender = sender.clone();
    Arc::new(move |peer, status| {
        let _ = sender.send(format!("{name}status {peer} {}", status as i32));
    })
}

/// A Receive handler that says when it begins and goes on when it is told to.
fn gated() -> (ReceiveHandler, Receiver<u32>, Sender<()>) {
    let (begun, begins) = channel();
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    let handler: ReceiveHandler = Arc::new(move |message| {
        let _ = begun.send(number(message));
        let _ = lock(&may_go).recv();
    });
    (handler, begins, go)
}

/// A Receive handler that is running and has the dispatcher thread, until the sender is used or dropped.
fn occupy(dispatch: &Dispatch) -> Sender<()> {
    let (handler, begins, go) = gated();
    dispatch.register_receive(Some(handler));
    dispatch
        .try_push_message(message(u32::MAX, 4))
        .expect("an empty queue takes it");
    next(&begins);
    go
}

/// Waits until another thread has brought the queue so far.
fn until(dispatch: &Dispatch, so_far: impl Fn(&Queue) -> bool) {
    let started = Instant::now();
    while !so_far(&dispatch.shared.lock()) {
        assert!(started.elapsed() < PATIENCE, "it never came so far");
        thread::yield_now();
    }
}

/// Runs everything that is queued, on this thread.
fn drain(shared: &Shared) {
    let mut queue = shared.lock();
    loop {
        let ran;
        (queue, ran) = shared.run_one(queue);
        if !ran {
            return;
        }
    }
}

/// A dispatcher without a thread: the test is the thread.
fn manual(limits: Limits) -> Dispatch {
    Dispatch {
        shared: Arc::new(Shared::new(limits)),
        thread: Mutex::new(None),
    }
}

#[test]
fn events_and_messages_arrive_in_the_order_of_the_pushes() {
    let dispatch = started(wide());
    let seen = log_all(&dispatch);
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(Event::LeaderChanged(Some(peer("b"))));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.push(Event::LeaderChanged(None));
    dispatch.push(Event::Left(peer("b")));
    dispatch.push(Event::ConnectionResult(ConnectionResult {
        target: "host:1".into(),
        success: false,
        code: -4,
    }));
    for expected in [
        "status b 0",
        "leader b",
        "message 1",
        "leader ",
        "status b 1",
        "result host:1 -4",
    ] {
        assert_eq!(next(&seen), expected);
    }
}

#[test]
fn unregistering_waits_for_a_running_call_and_nothing_runs_afterwards() {
    let dispatch = started(wide());
    let (handler, begins, go) = gated();
    dispatch.register_receive(Some(handler));
    for n in 1..=3 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    assert_eq!(next(&begins), 1);
    let unregistering = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.register_receive(None)
    });
    until(&dispatch, |queue| queue.end_waiters == 1);
    assert!(!unregistering.is_finished());
    go.send(()).expect("the handler waits");
    unregistering.join().expect("no panic");
    // The handler, and the sender in it, are gone: nothing can run it again.
    assert!(begins.recv().is_err());
    // Messages 2 and 3 had nobody to go to.
    let (sender, seen) = channel();
    dispatch.register_peer_status(Some(status(&sender, "")));
    dispatch.push(Event::Joined(peer("b")));
    assert_eq!(next(&seen), "status b 0");
    assert_eq!(dispatch.discarded_messages(), 2);
}

#[test]
fn unregistering_another_handler_does_not_wait() {
    let dispatch = started(wide());
    let go = occupy(&dispatch);
    dispatch.register_connection_result(None);
    dispatch.register_leader_changed(None);
    drop(go);
}

#[test]
fn a_handler_can_replace_and_unregister_itself() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register_receive(Some({
        let (dispatch, sender) = (Arc::downgrade(&dispatch), sender.clone());
        Arc::new(move |message| {
            let dispatch = dispatch.upgrade().expect("the test holds it");
            assert!(in_callback());
            let _ = sender.send(format!("first {}", number(message)));
            dispatch.register_receive(Some(receive(&sender, "second ")));
            dispatch.register_receive(None);
            dispatch.register_receive(Some(receive(&sender, "third ")));
        })
    }));
    assert!(!in_callback());
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(next(&seen), "first 1");
    assert_eq!(next(&seen), "third message 2");
}

#[test]
fn a_new_handler_is_told_the_present_as_the_queue_has_told_it() {
    let dispatch = manual(wide());
    dispatch.push(Event::Joined(peer("c")));
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::LeaderChanged(Some(peer("a"))));
    drain(&dispatch.shared);
    dispatch.push(Event::Left(peer("c")));
    let seen = log_all(&dispatch);
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(Event::LeaderChanged(Some(peer("b"))));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["leader a", "status a 0", "status b 0", "leader b"]
    );
}

#[test]
fn a_new_leader_handler_without_a_leader_is_told_nothing() {
    let dispatch = manual(wide());
    let seen = log_all(&dispatch);
    dispatch.push(Event::LeaderChanged(None));
    drain(&dispatch.shared);
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_replaced_handler_never_runs_and_its_replacement_is_told_once() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.push(Event::Joined(peer("a")));
    dispatch.register_peer_status(Some(status(&sender, "1 ")));
    dispatch.register_peer_status(Some(status(&sender, "2 ")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.register_peer_status(Some(status(&sender, "3 ")));
    dispatch.push(Event::Joined(peer("c")));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["3 status a 0", "3 status b 0", "3 status c 0"]
    );
}

#[test]
fn what_falls_between_two_handlers_is_told_to_the_second() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register_peer_status(Some(status(&sender, "1 ")));
    dispatch.register_leader_changed(Some(leader(&sender, "1 ")));
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(Event::LeaderChanged(Some(peer("a"))));
    drain(&dispatch.shared);
    dispatch.push(Event::LeaderChanged(None));
    dispatch.push(Event::Left(peer("a")));
    dispatch.register_peer_status(Some(status(&sender, "2 ")));
    dispatch.register_leader_changed(Some(leader(&sender, "2 ")));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().skip(3).collect::<Vec<_>>(),
        ["2 status a 1", "2 status b 0", "2 leader "]
    );
    // After an unregistration only the present is told.
    dispatch.register_peer_status(None);
    dispatch.push(Event::Left(peer("b")));
    dispatch.register_peer_status(Some(status(&sender, "3 ")));
    drain(&dispatch.shared);
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_handler_that_is_unregistered_while_it_is_told_the_present_hears_no_more() {
    let dispatch = Arc::new(manual(wide()));
    let (sender, seen) = channel();
    for id in ["a", "b", "c"] {
        dispatch.push(Event::Joined(peer(id)));
    }
    dispatch.register_peer_status(Some({
        let dispatch = Arc::downgrade(&dispatch);
        Arc::new(move |peer, _| {
            let _ = sender.send(peer.clone());
            if let Some(dispatch) = dispatch.upgrade() {
                dispatch.register_peer_status(None);
            }
        })
    }));
    drain(&dispatch.shared);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [peer("a")]);
}

#[test]
fn undelivered_leader_changes_coalesce_to_the_newest() {
    let dispatch = manual(wide());
    let seen = log_all(&dispatch);
    let told = |ids: &[&str]| {
        for id in ids {
            dispatch.push(Event::LeaderChanged((!id.is_empty()).then(|| peer(id))));
        }
        drain(&dispatch.shared);
        seen.try_iter().collect::<Vec<_>>()
    };
    assert_eq!(told(&["a", "b", "", "c"]), ["leader c"]);
    assert!(told(&["c"]).is_empty());
    assert!(told(&["d", "c"]).is_empty());
    assert_eq!(told(&["d", ""]), ["leader "]);
    // A state event does not keep an older leader alive; a message does.
    dispatch.push(Event::LeaderChanged(Some(peer("a"))));
    dispatch.push(Event::Joined(peer("x")));
    assert_eq!(told(&["b"]), ["status x 0", "leader b"]);
    dispatch.push(Event::LeaderChanged(Some(peer("a"))));
    dispatch.try_push_message(message(1, 4)).expect("room");
    assert_eq!(told(&["c", "b"]), ["leader a", "message 1", "leader b"]);
    dispatch.push(Event::LeaderChanged(Some(peer("a"))));
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(told(&["c", "a"]), ["leader a", "message 2"]);
}

#[test]
fn an_undelivered_left_is_seen() {
    let dispatch = manual(wide());
    dispatch.push(Event::Left(peer("a")));
    assert!(dispatch.has_undelivered_left(&peer("a")));
    assert!(!dispatch.has_undelivered_left(&peer("b")));
    drain(&dispatch.shared);
    assert!(!dispatch.has_undelivered_left(&peer("a")));
}

#[test]
fn messages_are_limited_in_number_and_bytes_until_their_handler_begins() {
    let dispatch = started(limits(2, 10, FOREVER));
    let (handler, begins, go) = gated();
    dispatch.register_receive(Some(handler));
    dispatch.try_push_message(message(0, 1000)).expect("empty");
    assert_eq!(next(&begins), 0);
    // Message 0 is being handled and counts no more.
    assert_eq!(dispatch.queued_messages(), (0, 0));
    dispatch.try_push_message(message(1, 4)).expect("empty");
    assert_eq!(dispatch.try_push_message(message(2, 7)), Err(message(2, 7)));
    dispatch.try_push_message(message(2, 6)).expect("10 bytes");
    assert_eq!(dispatch.queued_messages(), (2, 10));
    let empty = Incoming {
        payload: Bytes::new(),
        ..message(3, 4)
    };
    assert_eq!(dispatch.try_push_message(empty.clone()), Err(empty));
    // State events need no room.
    dispatch.push(Event::Joined(peer("a")));
    go.send(()).expect("the handler waits");
    assert_eq!(next(&begins), 1);
    assert_eq!(dispatch.queued_messages(), (1, 6));
    drop(go);
    assert_eq!(next(&begins), 2);
}

#[test]
fn messages_wait_for_the_first_handler() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    runtime().block_on(async {
        assert!(dispatch.try_push_message(message(1, 4)).is_err());
        dispatch.register_receive(None);
        let push = dispatch.push_message(message(1, 4));
        let register = async {
            tokio::task::yield_now().await;
            dispatch.register_receive(Some(receive(&sender, "")));
        };
        tokio::join!(push, register);
    });
    assert_eq!(next(&seen), "message 1");
    assert_eq!(dispatch.discarded_messages(), 0);
}

/// Waits for 50 ms of real time: the hold.
#[test]
fn after_the_hold_messages_without_a_handler_are_discarded_and_counted() {
    let hold = Duration::from_millis(50);
    let dispatch = started(limits(10, 100, hold));
    let before = Instant::now();
    runtime().block_on(async {
        tokio::join!(
            dispatch.push_message(message(1, 4)),
            dispatch.push_message(message(2, 4))
        );
    });
    assert!(before.elapsed() >= hold / 2);
    dispatch.try_push_message(message(3, 4)).expect("discarded");
    assert_eq!(dispatch.discarded_messages(), 3);
    let (sender, seen) = channel();
    dispatch.register_receive(Some(receive(&sender, "")));
    dispatch.try_push_message(message(4, 4)).expect("room");
    assert_eq!(next(&seen), "message 4");
    dispatch.register_receive(None);
    dispatch.try_push_message(message(5, 4)).expect("discarded");
    assert_eq!(dispatch.discarded_messages(), 4);
}

#[test]
fn a_cancelled_push_was_not_queued_and_holds_nobody_up() {
    let dispatch = started(limits(1, 100, FOREVER));
    let (handler, begins, go) = gated();
    dispatch.register_receive(Some(handler));
    dispatch.try_push_message(message(0, 4)).expect("room");
    assert_eq!(next(&begins), 0);
    dispatch.try_push_message(message(1, 4)).expect("room");
    runtime().block_on(async {
        let mut first = Box::pin(dispatch.push_message(message(2, 4)));
        let mut second = Box::pin(dispatch.push_message(message(3, 4)));
        let mut third = Box::pin(dispatch.push_message(message(4, 4)));
        // Each is polled once, so that it waits in its place.
        tokio::select! {
            biased;
            () = &mut first => panic!("no room"),
            () = &mut second => panic!("no room"),
            () = &mut third => panic!("no room"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        drop(second);
        // The turn has come to the third; the handler is still at work.
        let finish = async {
            tokio::task::yield_now().await;
            drop(go);
        };
        tokio::join!(third, finish);
    });
    assert_eq!(next(&begins), 1);
    assert_eq!(next(&begins), 4);
}

#[test]
fn waiting_pushes_are_served_in_turn_and_none_is_lost() {
    const READERS: u32 = 20;
    const EACH: u32 = 200;
    let dispatch = started(limits(3, 64, FOREVER));
    let (sender, seen) = channel();
    // Turns are fair among those who wait: nothing is taken before all of them do.
    let (all_wait, may_take) = channel::<()>();
    let may_take = Mutex::new(may_take);
    dispatch.register_receive(Some(Arc::new(move |message| {
        let _ = lock(&may_take).recv();
        let _ = sender.send(number(message));
    })));
    runtime().block_on(async {
        let begun = Arc::new(AtomicU32::new(0));
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let dispatch = Arc::clone(&dispatch);
                let begun = Arc::clone(&begun);
                tokio::spawn(async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    for n in 0..EACH {
                        // Some are longer than all the room there is.
                        let len = 4 + (n as usize * 7) % 90;
                        dispatch.push_message(message(reader * EACH + n, len)).await;
                    }
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < READERS {
            tokio::task::yield_now().await;
        }
        drop(all_wait);
        for reader in readers {
            reader.await.expect("no panic");
        }
    });
    let mut told = vec![0; READERS as usize];
    for _ in 0..READERS * EACH {
        let number = next(&seen);
        let of_reader = &mut told[(number / EACH) as usize];
        assert_eq!(
            *of_reader,
            number % EACH,
            "the order of each reader is kept"
        );
        *of_reader += 1;
        // Fair: nobody is ahead of another by more than the queue and a turn each.
        let (least, most) = (told.iter().min(), told.iter().max());
        assert!(most <= least.map(|least| least + 8).as_ref(), "{told:?}");
    }
}

#[test]
fn stop_waits_for_the_running_call_and_discards_the_rest() {
    let dispatch = started(wide());
    let (handler, begins, go) = gated();
    dispatch.register_receive(Some(handler));
    for n in 1..=100 {
        dispatch.try_push_message(message(n, 4)).expect("room");
        dispatch.push(Event::Joined(peer("a")));
    }
    assert_eq!(next(&begins), 1);
    let stopping = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.stop()
    });
    until(&dispatch, Queue::is_stopped);
    let also_stopping = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.stop()
    });
    assert!(!stopping.is_finished() && !also_stopping.is_finished());
    drop(go);
    stopping.join().expect("no panic");
    also_stopping.join().expect("no panic");
    assert!(begins.recv().is_err());
    // Whatever comes late neither waits nor is handled.
    let (sender, seen) = channel();
    dispatch.register_peer_status(Some(status(&sender, "")));
    dispatch.register_receive(Some(receive(&sender, "")));
    dispatch.push(Event::Joined(peer("a")));
    runtime().block_on(dispatch.push_message(message(1, 4)));
    drop(sender);
    assert!(seen.recv().is_err());
}

#[test]
fn stop_ends_a_push_that_waits() {
    let dispatch = started(wide());
    runtime().block_on(async {
        let stop = async {
            tokio::task::yield_now().await;
            dispatch.stop();
        };
        tokio::join!(
            dispatch.push_message(message(1, 4)),
            dispatch.push_message(message(2, 4)),
            stop
        );
    });
}

#[test]
fn a_handler_that_panics_does_not_end_the_dispatcher() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register_receive(Some(Arc::new(move |message| {
        assert_ne!(number(message), 1, "as intended by the test");
        let _ = sender.send(number(message));
    })));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(next(&seen), 2);
}

#[test]
fn registering_from_many_threads_neither_hangs_nor_doubles() {
    let dispatch = started(limits(10_000, 1 << 20, FOREVER));
    let (sender, seen) = channel();
    dispatch.register_receive(Some(receive(&sender, "")));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (dispatch, sender) = (Arc::clone(&dispatch), sender.clone());
            thread::spawn(move || {
                for _ in 0..200 {
                    dispatch.register_receive(Some(receive(&sender, "")));
                    dispatch.register_peer_status(Some(status(&sender, "")));
                    dispatch.register_leader_changed(None);
                }
            })
        })
        .collect();
    for n in 0..2000 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    for thread in threads {
        thread.join().expect("no panic");
    }
    for n in 0..2000 {
        assert_eq!(next(&seen), format!("message {n}"));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Leader(u8),
    Message,
    Status(u8),
    Run(u8),
    RegisterLeader,
    RegisterStatus,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..4u8).prop_map(Step::Leader),
        3 => Just(Step::Message),
        3 => (1..4u8).prop_map(Step::Status),
        3 => (0..4u8).prop_map(Step::Run),
        1 => Just(Step::RegisterLeader),
        1 => Just(Step::RegisterStatus),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever is pushed, run and registered in whatever order, the host ends up knowing the room; and as long
    /// as it keeps its handlers, it knows with every message what was pushed before it, and hears of every
    /// change once.
    #[test]
    fn the_host_is_in_step_with_every_message(steps in steps()) {
        let dispatch = manual(limits(usize::MAX, usize::MAX, FOREVER));
        let (sender, seen) = channel();
        dispatch.register_receive(Some(receive(&sender, "")));
        dispatch.register_leader_changed(Some(leader(&sender, "")));
        dispatch.register_peer_status(Some(status(&sender, "")));
        let ids = ["", "a", "b", "c"];
        let mut now = Known::default();
        let mut at_message = Vec::new();
        let mut replaced = false;
        for step in &steps {
            match step {
                Step::Leader(n) => {
                    now.leader = ids[usize::from(*n)].to_owned();
                    let leader = (!now.leader.is_empty()).then(|| peer(&now.leader));
                    dispatch.push(Event::LeaderChanged(leader));
                }
                Step::Message => {
                    let number = u32::try_from(at_message.len()).expect("few");
                    at_message.push(now.clone());
                    dispatch.try_push_message(message(number, 4)).expect("room");
                }
                Step::Status(n) => {
                    let id = ids[usize::from(*n)];
                    if now.joined.remove(id) {
                        dispatch.push(Event::Left(peer(id)));
                    } else {
                        now.joined.insert(id.to_owned());
                        dispatch.push(Event::Joined(peer(id)));
                    }
                }
                Step::Run(times) => {
                    for _ in 0..*times {
                        let _ = dispatch.shared.run_one(dispatch.shared.lock());
                    }
                }
                Step::RegisterLeader => {
                    replaced = true;
                    dispatch.register_leader_changed(Some(leader(&sender, "")));
                }
                Step::RegisterStatus => {
                    replaced = true;
                    dispatch.register_peer_status(Some(status(&sender, "")));
                }
            }
        }
        drain(&dispatch.shared);
        let mut told = Known::default();
        let mut messages = 0;
        for line in seen.try_iter() {
            if let Some(number) = line.strip_prefix("message ") {
                prop_assert_eq!(number, messages.to_string());
                prop_assert!(replaced || told == at_message[messages]);
                messages += 1;
            } else {
                let changed = told.learn(&line);
                prop_assert!(replaced || changed, "{}", line);
            }
        }
        prop_assert_eq!(messages, at_message.len());
        prop_assert_eq!(told, now);
    }
}

/// The room as a host knows it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    leader: String,
    joined: std::collections::BTreeSet<String>,
}

impl Known {
    /// Takes in a line of the log, and says whether it was news.
    fn learn(&mut self, line: &str) -> bool {
        if let Some(leader) = line.strip_prefix("leader ") {
            let news = self.leader != leader;
            leader.clone_into(&mut self.leader);
            return news;
        }
        let status = line.strip_prefix("status ").expect("leader or status");
        match status.split_once(' ').expect("peer and status") {
            (id, "0") => self.joined.insert(id.to_owned()),
            (id, _) => self.joined.remove(id),
        }
    }
}
