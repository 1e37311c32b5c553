//! Events of the classic callbacks, and their registration and removal.

use super::*;

#[test]
fn o17_events_and_messages_arrive_in_the_order_of_the_pushes() {
    let dispatch = started(wide());
    let seen = log_all(&dispatch);
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("b"));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.push(led_by(""));
    dispatch.push(left("b"));
    dispatch.push(Event::ConnectionResult(
        crate::core::event::ConnectionResult {
            target: "host:1".into(),
            success: false,
            code: -4,
            peer: None,
            reason: 0,
            bytes: Bytes::new(),
        },
    ));
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
    dispatch.register::<Receive>(Some(handler));
    for n in 1..=3 {
        dispatch.try_push_message(message(n, 4)).expect("room");
    }
    assert_eq!(next(&begins), 1);
    let unregistering = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.register::<Receive>(None)
    });
    until(&dispatch, |queue| queue.end_waiters == 1);
    assert!(!unregistering.is_finished());
    go.send(()).expect("the handler waits");
    unregistering.join().expect("no panic");
    // The handler is gone, and the sender in it: nothing can run it again.
    assert!(begins.recv().is_err());
    // Messages 2 and 3 found no handler.
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.push(Event::Joined(peer("b")));
    assert_eq!(next(&seen), "status b 0");
    assert_eq!(dispatch.discarded_messages(), 2);
}

#[test]
fn unregistering_another_handler_does_not_wait() {
    let dispatch = started(wide());
    let go = occupy(&dispatch);
    dispatch.register::<ConnectionResult>(None);
    dispatch.register::<LeaderChanged>(None);
    drop(go);
}

#[test]
fn a_handler_can_replace_and_unregister_itself() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some({
        let (dispatch, sender) = (Arc::downgrade(&dispatch), sender.clone());
        Arc::new(move |message| {
            let dispatch = dispatch.upgrade().expect("the test holds it");
            assert!(in_callback());
            let _ = sender.send(format!("first {}", number(message)));
            dispatch.register::<Receive>(Some(receive(&sender, "second ")));
            dispatch.register::<Receive>(None);
            dispatch.register::<Receive>(Some(receive(&sender, "third ")));
        })
    }));
    assert!(!in_callback());
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(next(&seen), "first 1");
    assert_eq!(next(&seen), "third message 2");
}

#[test]
fn a_new_handler_receives_the_present_as_the_queue_has_reported_it() {
    let dispatch = manual(wide());
    dispatch.push(Event::Joined(peer("c")));
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(led_by("a"));
    drain(&dispatch.shared);
    dispatch.push(left("c"));
    let seen = log_all(&dispatch);
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("b"));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["leader a", "status a 0", "status b 0", "leader b"]
    );
}

#[test]
fn a_new_leader_handler_without_a_leader_receives_nothing() {
    let dispatch = manual(wide());
    let seen = log_all(&dispatch);
    dispatch.push(led_by(""));
    drain(&dispatch.shared);
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_replaced_handler_never_runs_and_its_replacement_runs_once() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.push(Event::Joined(peer("a")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "1 ")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "2 ")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "3 ")));
    dispatch.push(Event::Joined(peer("c")));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["3 status a 0", "3 status b 0", "3 status c 0"]
    );
}

#[test]
fn events_between_two_handlers_go_to_the_second() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "1 ")));
    dispatch.register::<LeaderChanged>(Some(leader(&sender, "1 ")));
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("a"));
    drain(&dispatch.shared);
    dispatch.push(led_by(""));
    dispatch.push(left("a"));
    dispatch.register::<PeerStatus>(Some(status(&sender, "2 ")));
    dispatch.register::<LeaderChanged>(Some(leader(&sender, "2 ")));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().skip(3).collect::<Vec<_>>(),
        ["2 status a 1", "2 status b 0", "2 leader "]
    );
    // After an unregistration a handler receives only the present state.
    dispatch.register::<PeerStatus>(None);
    dispatch.push(left("b"));
    dispatch.register::<PeerStatus>(Some(status(&sender, "3 ")));
    drain(&dispatch.shared);
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_handler_that_is_unregistered_while_it_receives_the_present_gets_no_more() {
    let dispatch = Arc::new(manual(wide()));
    let (sender, seen) = channel();
    for id in ["a", "b", "c"] {
        dispatch.push(Event::Joined(peer(id)));
    }
    dispatch.register::<PeerStatus>(Some({
        let dispatch = Arc::downgrade(&dispatch);
        Arc::new(move |(peer, _)| {
            let _ = sender.send(peer.clone());
            if let Some(dispatch) = dispatch.upgrade() {
                dispatch.register::<PeerStatus>(None);
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
    let reported = |ids: &[&str]| {
        for id in ids {
            dispatch.push(led_by(id));
        }
        drain(&dispatch.shared);
        seen.try_iter().collect::<Vec<_>>()
    };
    assert_eq!(reported(&["a", "b", "", "c"]), ["leader c"]);
    assert!(reported(&["c"]).is_empty());
    assert!(reported(&["d", "c"]).is_empty());
    assert_eq!(reported(&["d", ""]), ["leader "]);
    // A state event does not keep an older leader alive; a message does.
    dispatch.push(led_by("a"));
    dispatch.push(Event::Joined(peer("x")));
    assert_eq!(reported(&["b"]), ["status x 0", "leader b"]);
    dispatch.push(led_by("a"));
    dispatch.try_push_message(message(1, 4)).expect("room");
    assert_eq!(reported(&["c", "b"]), ["leader a", "message 1", "leader b"]);
    dispatch.push(led_by("a"));
    dispatch.try_push_message(message(2, 4)).expect("room");
    assert_eq!(reported(&["c", "a"]), ["leader a", "message 2"]);
}

#[test]
fn an_undelivered_left_is_seen() {
    let dispatch = manual(wide());
    dispatch.push(left("a"));
    assert!(dispatch.has_undelivered_left(&peer("a")));
    assert!(!dispatch.has_undelivered_left(&peer("b")));
    drain(&dispatch.shared);
    assert!(!dispatch.has_undelivered_left(&peer("a")));
}

#[test]
fn a_handler_that_panics_does_not_end_the_dispatcher() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(Arc::new(move |message| {
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
    dispatch.register::<Receive>(Some(receive(&sender, "")));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (dispatch, sender) = (Arc::clone(&dispatch), sender.clone());
            thread::spawn(move || {
                for _ in 0..200 {
                    dispatch.register::<Receive>(Some(receive(&sender, "")));
                    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
                    dispatch.register::<LeaderChanged>(None);
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

#[test]
fn a_handler_that_comes_during_an_event_receives_it_in_its_place() {
    let dispatch = Arc::new(manual(wide()));
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    dispatch.register::<PeerStatus>(Some({
        let dispatch = Arc::downgrade(&dispatch);
        Arc::new(move |(_, status)| {
            if status == crate::snapshot::PeerStatus::Disconnected {
                let dispatch = dispatch.upgrade().expect("the test holds it");
                dispatch.register::<Reconnect>(Some(reconnect(&sender, "")));
            }
        })
    }));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(Event::Reconnecting(peer("b")));
    drain(&dispatch.shared);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        ["joined b", "reconnect b 0", "reconnecting b"]
    );
}

#[test]
fn nothing_is_kept_of_a_peer_that_is_gone() {
    let dispatch = manual(wide());
    let (sender, _seen) = channel();
    let register = || {
        dispatch.register::<PeerStatus>(Some(status(&sender, "")));
        dispatch.register_event_handler(Some(events(&sender, "")));
    };
    register();
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    drain(&dispatch.shared);
    dispatch.push(Event::Reconnecting(peer("a")));
    dispatch.push(left("a"));
    // Between two handlers.
    dispatch.push(left("b"));
    register();
    drain(&dispatch.shared);
    for id in ["a", "b"] {
        assert!(!dispatch.shared.lock().remembers(&peer(id)), "{id}");
    }
}

#[test]
fn leadership_is_reported_alternately_after_each_change_of_the_leader() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register::<LeaderChanged>(Some(leader(&sender, "")));
    dispatch.register_event_handler(Some(events(&sender, "")));
    drain(&dispatch.shared);
    for (name, expected) in [
        ("b", vec!["leader b", "leader >b"]),
        ("me", vec!["leader me", "leader b>me", "gained 0"]),
        ("me", vec![]),
        ("", vec!["leader ", "leader me>", "lost to "]),
        ("me", vec!["leader me", "leader >me", "gained 0"]),
        ("c", vec!["leader c", "leader me>c", "lost to c"]),
        ("", vec!["leader ", "leader c>"]),
    ] {
        dispatch.push(led_by(name));
        drain(&dispatch.shared);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected, "{name:?}");
    }
}
