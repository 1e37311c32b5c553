//! Poll mode: the host's own thread runs the handlers.

use super::*;

fn polled() -> Arc<Dispatch> {
    Arc::new(Dispatch::start(wide(), peer("me"), DispatchMode::Poll).expect("no thread is needed"))
}

#[test]
fn nothing_runs_before_a_poll_and_then_as_much_as_requested() {
    let dispatch = polled();
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "classic ")));
    dispatch.register_event_handler(Some(events(&sender, "")));
    for n in 1..=3 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    assert!(seen.try_recv().is_err());
    // One message for two handlers is one.
    assert_eq!(dispatch.poll(2), Ok(2));
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [
            "classic message 1",
            "message 1",
            "classic message 2",
            "message 2"
        ]
    );
    assert_eq!(dispatch.poll(usize::MAX), Ok(1));
    assert_eq!(dispatch.poll(usize::MAX), Ok(0));
}

#[test]
fn in_poll_mode_the_host_is_silent_from_its_last_poll_on() {
    let dispatch = polled();
    let opened = dispatch.host_silent_since().expect("it has not polled");
    while Instant::now() == opened {
        thread::yield_now();
    }
    assert_eq!(dispatch.host_silent_since(), Some(opened));
    assert_eq!(dispatch.poll(1), Ok(0));
    let polled = dispatch.host_silent_since().expect("it has polled");
    assert!(polled > opened && polled <= Instant::now());
}

#[test]
fn events_without_a_handler_do_not_count_and_each_part_of_the_present_does() {
    let dispatch = polled();
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("b"));
    assert_eq!(dispatch.poll(10), Ok(0));
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.push(led_by("a"));
    assert_eq!(dispatch.poll(1), Ok(1));
    assert_eq!(dispatch.poll(10), Ok(1));
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["status a 0", "status b 0"]
    );
}

#[test]
fn an_event_that_leads_to_three_calls_counts_once() {
    let dispatch = polled();
    let (sender, seen) = channel();
    dispatch.register::<LeaderChanged>(Some(leader(&sender, "")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.register_event_handler(Some(events(&sender, "")));
    assert_eq!(dispatch.poll(10), Ok(0));
    dispatch.push(led_by("me"));
    dispatch.push(Event::Joined(peer("a")));
    assert_eq!(dispatch.poll(1), Ok(1));
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["leader me", "leader >me", "gained 0"]
    );
    assert_eq!(dispatch.poll(10), Ok(1));
}

#[test]
fn a_poll_inside_a_handler_and_a_second_one_beside_it_are_refused() {
    let dispatch = polled();
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some({
        let dispatch = Arc::downgrade(&dispatch);
        Arc::new(move |_| {
            let inside = dispatch.upgrade().map(|dispatch| dispatch.poll(1));
            let _ = sender.send(inside);
        })
    }));
    dispatch.try_push_message(message(1, 4)).expect("room");
    let polling = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.poll(10)
    });
    next(&begins);
    assert_eq!(dispatch.poll(1), Err(PollError::Busy));
    drop(go);
    assert_eq!(next(&seen), Some(Err(PollError::InsideCallback)));
    assert_eq!(polling.join().expect("no panic"), Ok(1));
    assert_eq!(dispatch.poll(1), Ok(0));
}

#[test]
fn a_dispatcher_with_a_thread_is_not_polled() {
    assert_eq!(started(wide()).poll(1), Err(PollError::NotPollMode));
}

#[test]
fn unregistering_waits_for_the_call_that_a_poll_runs() {
    let dispatch = polled();
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.try_push_message(message(2, 4)).expect("room");
    let polling = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.poll(10)
    });
    assert_eq!(next(&begins), 1);
    let unregistering = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.register::<Receive>(None)
    });
    until(&dispatch, |queue| queue.end_waiters == 1);
    assert!(!unregistering.is_finished());
    go.send(()).expect("the handler waits");
    unregistering.join().expect("no panic");
    assert_eq!(polling.join().expect("no panic"), Ok(1));
    assert!(begins.recv().is_err());
}

#[test]
fn stop_waits_for_a_poll_and_nothing_runs_afterwards() {
    let dispatch = polled();
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
    for n in 1..=10 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    let polling = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.poll(10)
    });
    assert_eq!(next(&begins), 1);
    let stopping = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.stop()
    });
    until(&dispatch, |queue| queue.end_waiters == 1);
    assert!(!stopping.is_finished());
    drop(go);
    stopping.join().expect("no panic");
    assert_eq!(polling.join().expect("no panic"), Ok(1));
    assert!(begins.recv().is_err());
    assert_eq!(dispatch.poll(10), Ok(0));
}

#[test]
fn a_queue_without_polls_holds_messages_back_and_takes_events() {
    let limits = limits(2, 100, FOREVER);
    let dispatch = Dispatch::start(limits, peer("me"), DispatchMode::Poll).expect("made");
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    for n in 1..=2 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    assert!(dispatch.try_push_message(message(3, 4)).is_err());
    dispatch.push(Event::Joined(peer("a")));
    runtime().block_on(async {
        let poll = async {
            tokio::task::yield_now().await;
            assert_eq!(dispatch.poll(1), Ok(1));
        };
        tokio::join!(dispatch.push_message(message(3, 4)), poll);
    });
    assert_eq!(dispatch.poll(10), Ok(2));
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["message 1", "message 2", "message 3"]
    );
}
