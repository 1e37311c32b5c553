//! Waiting of messages for room and for handlers.

use super::*;

#[test]
fn messages_are_limited_in_number_and_bytes_until_their_handler_begins() {
    let dispatch = started(limits(2, 10, FOREVER));
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    dispatch.try_push_message(message(0, 1000)).expect("empty");
    assert_eq!(next(&begins), 0);
    // Message 0 is being handled and no longer counts.
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
        dispatch.register::<Receive>(None);
        let push = dispatch.push_message(message(1, 4));
        let register = async {
            tokio::task::yield_now().await;
            dispatch.register::<Receive>(Some(receive(&sender, "")));
        };
        tokio::join!(push, register);
    });
    assert_eq!(next(&seen), "message 1");
    assert_eq!(dispatch.discarded_messages(), 0);
}

/// Messages of a host to itself before it has a handler.
#[test]
fn own_messages_wait_for_the_first_handler_within_the_queue_s_bounds() {
    for events in [false, true] {
        let dispatch = started(limits(3, 100, FOREVER));
        dispatch.push(led_by("me"));
        for n in 0..3 {
            dispatch.try_push_message(message(n, 4)).expect("room");
        }
        assert_eq!(dispatch.queued_messages(), (3, 12));
        assert!(dispatch.try_push_message(message(3, 4)).is_err(), "full");
        let (sender, seen) = channel();
        if events {
            dispatch.register_event_handler(Some(Arc::new(move |event: &Event| {
                if let Event::Message(message) = event {
                    let _ = sender.send(format!("message {}", number(message)));
                }
            })));
        } else {
            dispatch.register::<Receive>(Some(receive(&sender, "")));
        }
        for n in 0..3 {
            assert_eq!(next(&seen), format!("message {n}"));
        }
        assert_eq!(dispatch.discarded_messages(), 0);
    }
    // The limit in bytes; an empty queue takes one message of any size.
    let dispatch = started(limits(10, 100, FOREVER));
    dispatch.try_push_message(message(0, 1000)).expect("room");
    assert!(dispatch.try_push_message(message(1, 4)).is_err());
    dispatch.stop();
    assert_eq!(dispatch.queued_messages(), (0, 0));
}

/// Takes 50 ms of real time: the hold.
#[test]
fn own_messages_that_waited_for_the_whole_hold_are_discarded_and_counted() {
    let hold = Duration::from_millis(50);
    let dispatch = started(limits(10, 100, hold));
    dispatch.try_push_message(message(1, 4)).expect("room");
    // This message waits for the end of the same hold.
    runtime().block_on(dispatch.push_message(message(2, 4)));
    assert_eq!(dispatch.discarded_messages(), 2);
    assert_eq!(dispatch.queued_messages(), (0, 0));
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    dispatch.try_push_message(message(3, 4)).expect("room");
    assert_eq!(next(&seen), "message 3");
}

/// Takes 50 ms of real time: the hold.
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
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    dispatch.try_push_message(message(4, 4)).expect("room");
    assert_eq!(next(&seen), "message 4");
    dispatch.register::<Receive>(None);
    dispatch.try_push_message(message(5, 4)).expect("discarded");
    assert_eq!(dispatch.discarded_messages(), 4);
}

#[test]
fn a_cancelled_push_was_not_queued_and_blocks_no_other() {
    let dispatch = started(limits(1, 100, FOREVER));
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
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
        // It is the third message's turn; the handler is still running.
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
fn one_of_many_wakes_no_sleeping_dispatcher_and_the_wake_stays_pending_until_it_comes() {
    let dispatch = started(wide());
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    let push = |number| runtime().block_on(dispatch.push_one_of_many(message(number, 4)));
    until(&dispatch, |queue| queue.consumer_waits);
    assert_eq!(push(0), Wake::Due);
    assert_eq!(push(1), Wake::Due);
    dispatch.wake();
    assert_eq!(next(&begins), 0);
    // It is awake, and checks the queue again before it sleeps.
    assert_eq!(push(2), Wake::NotNeeded);
    drop(go);
    assert_eq!(next(&begins), 1);
    assert_eq!(next(&begins), 2);
}

#[test]
fn a_push_that_waits_for_space_wakes_the_dispatcher_for_a_full_queue() {
    let dispatch = started(limits(2, 100, FOREVER));
    let seen = log_all(&dispatch);
    until(&dispatch, |queue| queue.consumer_waits);
    runtime().block_on(async {
        for number in 0..3 {
            let push = dispatch.push_one_of_many(message(number, 4));
            let pushed = tokio::time::timeout(TIMEOUT, push).await;
            pushed.expect("the queue is emptied");
        }
    });
    assert_eq!(next(&seen), "message 0");
    assert_eq!(next(&seen), "message 1");
    dispatch.wake();
    assert_eq!(next(&seen), "message 2");
}

#[test]
fn waiting_pushes_are_served_in_turn_and_none_is_lost() {
    const READERS: u32 = 20;
    const EACH: u32 = 200;
    let dispatch = started(limits(3, 64, FOREVER));
    let (sender, seen) = channel();
    // Turns are fair among waiting senders: the handler takes no message before all of them wait.
    let (all_wait, may_take) = channel::<()>();
    let may_take = Mutex::new(may_take);
    dispatch.register::<Receive>(Some(Arc::new(move |message| {
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
                        // Some are longer than the whole capacity.
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
    let mut reported = vec![0; READERS as usize];
    for _ in 0..READERS * EACH {
        let number = next(&seen);
        let of_reader = &mut reported[(number / EACH) as usize];
        assert_eq!(
            *of_reader,
            number % EACH,
            "the order of each reader is kept"
        );
        *of_reader += 1;
        // Fair: no sender is ahead of another by more than the queue and a turn each.
        let (least, most) = (reported.iter().min(), reported.iter().max());
        assert!(
            most <= least.map(|least| least + 8).as_ref(),
            "{reported:?}"
        );
    }
}

/// A queue of three messages, whose handler waits: its log, and the sender that lets it continue.
fn stopped() -> (Arc<Dispatch>, Arc<Mutex<Vec<Event>>>, Sender<()>) {
    let dispatch = started(limits(3, 1000, FOREVER));
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let reported = Arc::<Mutex<Vec<Event>>>::default();
    let keep = Arc::clone(&reported);
    dispatch.register_event_handler(Some(Arc::new(move |event: &Event| {
        keep.lock().expect("not poisoned").push(event.clone());
        // It ends when the sender is dropped.
        let _ = gate.lock().expect("not poisoned").recv();
    })));
    dispatch.push(Event::Joined(peer("sender")));
    while reported.lock().expect("not poisoned").is_empty() {
        thread::yield_now();
    }
    (dispatch, reported, go)
}

#[test]
fn alternating_reports_about_a_host_withdraw_each_other() {
    let (dispatch, reported, go) = stopped();
    let silent = || Event::HostSilent {
        peer: peer("sender"),
        silent: Duration::from_secs(5),
    };
    let back = || Event::HostBack(peer("sender"));
    for _ in 0..1000 {
        dispatch.push(silent());
        dispatch.push(back());
    }
    assert_eq!(dispatch.undelivered(|_| true), 0);
    dispatch.push(silent());
    dispatch.push(Event::Reconnecting(peer("sender")));
    dispatch.push(Event::Returned(Returned::new(peer("sender"))));
    // The loss has ended the report before it.
    dispatch.push(silent());
    dispatch.push(back());
    drop(go);
    let events = wait_for(&reported, 4);
    assert_eq!(events[1], silent());
    assert_eq!(events[2], Event::Reconnecting(peer("sender")));
    assert_eq!(events.len(), 4);
}

#[test]
fn a_host_is_silent_while_one_of_its_callbacks_runs() {
    let (dispatch, _, go) = stopped();
    let since = dispatch.host_silent_since().expect("a callback runs");
    assert_eq!(dispatch.host_silent_since(), Some(since));
    drop(go);
    let limit = Instant::now() + TIMEOUT;
    while dispatch.host_silent_since().is_some() {
        assert!(Instant::now() < limit, "the callback has returned");
        thread::yield_now();
    }
}

fn wait_for(reported: &Mutex<Vec<Event>>, count: usize) -> Vec<Event> {
    let limit = Instant::now() + TIMEOUT;
    loop {
        let events = reported.lock().expect("not poisoned").clone();
        if events.len() >= count {
            return events;
        }
        assert!(Instant::now() < limit, "{events:?}");
        thread::yield_now();
    }
}

#[test]
fn drops_the_oldest_datagrams_without_using_the_messages_capacity() {
    let (dispatch, reported, go) = stopped();
    for number in 0..10 {
        dispatch.push_datagram(message(number, 4), None);
    }
    for number in 10..13 {
        dispatch
            .try_push_message(message(number, 4))
            .expect("a room of its own");
    }
    drop(go);
    let numbers: Vec<_> = wait_for(&reported, 8)
        .into_iter()
        .map(|event| match event {
            Event::Message(message) => u64::from(number(&message)),
            Event::DataDropped {
                direction, count, ..
            } => {
                assert_eq!(direction, Direction::Received);
                count + 100
            }
            _ => 1000,
        })
        .collect();
    // One event for all seven, in the place of the first.
    assert_eq!(numbers, [1000, 107, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn slow_peers_and_dropped_data_are_reported_once_and_not_after_left() {
    let (dispatch, reported, go) = stopped();
    let dropped = |count| Event::DataDropped {
        peer: peer("sender"),
        direction: Direction::Sent,
        count,
    };
    for count in 1..5 {
        dispatch.push(Event::SlowPeer(peer("sender")));
        dispatch.push(dropped(count));
    }
    dispatch.push(Event::Left(Left::new(peer("sender"), LeftReason::Left)));
    dispatch.push(Event::SlowPeer(peer("sender")));
    dispatch.push(Event::RoomEnded {
        why: EndReason::Kicked,
        code: 0,
        bytes: Vec::new(),
    });
    drop(go);
    let events = wait_for(&reported, 5);
    assert_eq!(events.len(), 5);
    assert_eq!(events[1..3], [Event::SlowPeer(peer("sender")), dropped(10)]);
    assert!(matches!(events[3], Event::Left(_)));
    assert!(matches!(events[4], Event::RoomEnded { .. }));
}

#[test]
fn messages_wait_for_the_host_to_take_them_although_it_has_an_event_handler() {
    let dispatch = started(limits(3, 100, FOREVER));
    dispatch.hold_messages();
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    dispatch.try_push_message(message(0, 4)).expect("room");
    dispatch.push_datagram(message(9, 4), None);
    dispatch.push(Event::Joined(peer("a")));
    assert_eq!(next(&seen), "joined a");
    assert_eq!(dispatch.queued_messages(), (1, 4));
    // A new handler, as long as none takes messages, changes nothing.
    dispatch.register_event_handler(Some(events(&sender, "")));
    assert_eq!(next(&seen), "joined a");
    runtime().block_on(async {
        let push = dispatch.push_message(message(1, 4));
        let take = async {
            tokio::task::yield_now().await;
            dispatch.take_messages();
        };
        tokio::join!(push, take);
    });
    assert_eq!([next(&seen), next(&seen)], ["message 0", "message 1"]);
    dispatch.take_messages();
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(next(&seen), "message 2");
    // The datagram, which does not wait.
    assert_eq!(dispatch.discarded_messages(), 1);
}

#[test]
fn messages_that_nothing_takes_are_discarded_after_the_hold() {
    let dispatch = started(limits(3, 100, Duration::ZERO));
    dispatch.hold_messages();
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    dispatch.try_push_message(message(0, 4)).expect("discarded");
    assert_eq!(dispatch.discarded_messages(), 1);
    dispatch.take_messages();
    dispatch.try_push_message(message(1, 4)).expect("room");
    assert_eq!(next(&seen), "message 1");
}

#[test]
fn a_receive_handler_takes_messages_that_the_event_handler_waits_for() {
    let dispatch = started(wide());
    dispatch.hold_messages();
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "event ")));
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    dispatch.try_push_message(message(0, 4)).expect("room");
    assert_eq!(next(&seen), "message 0");
    dispatch.take_messages();
    dispatch.try_push_message(message(1, 4)).expect("room");
    assert_eq!([next(&seen), next(&seen)], ["message 1", "event message 1"]);
}
