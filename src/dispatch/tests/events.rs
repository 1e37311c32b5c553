//! The handler of all events, and a peer's session as the classic callbacks receive it.

use super::*;
use crate::snapshot::PeerStatus as Status;

fn reported(seen: &Receiver<String>) -> Vec<String> {
    seen.try_iter().collect()
}

fn join_request(request: u64) -> Event {
    Event::JoinRequest {
        request,
        peer: peer("asker"),
        address: None,
        payload: Vec::new(),
    }
}

/// A dispatcher with the two classic handlers for links, and their log.
fn with_link_handlers() -> (Dispatch, Sender<String>, Receiver<String>) {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.register::<Reconnect>(Some(reconnect(&sender, "")));
    (dispatch, sender, seen)
}

#[test]
fn a_loss_is_reported_once_and_its_outcome_follows() {
    let (dispatch, _sender, seen) = with_link_handlers();
    for (event, expected) in [
        (Event::Joined(peer("b")), vec!["status b 0"]),
        (
            Event::Reconnecting(peer("b")),
            vec!["status b 1", "reconnect b 0"],
        ),
        (
            Event::Returned(Returned::new(peer("b"))),
            vec!["status b 0", "reconnect b 1"],
        ),
        (
            Event::Reconnecting(peer("b")),
            vec!["status b 1", "reconnect b 0"],
        ),
        (left("b"), vec!["reconnect b 2"]),
        (Event::Joined(peer("b")), vec!["status b 0"]),
        (left("b"), vec!["status b 1"]),
    ] {
        dispatch.push(event.clone());
        drain(&dispatch.shared);
        assert_eq!(reported(&seen), expected, "{event:?}");
    }
}

#[test]
fn a_new_status_handler_receives_no_lost_peer_until_it_is_back() {
    let dispatch = manual(wide());
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(Event::Reconnecting(peer("b")));
    drain(&dispatch.shared);
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["status a 0"]);
    dispatch.push(Event::Returned(Returned::new(peer("b"))));
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["status b 0"]);
}

#[test]
fn one_handler_receives_everything_after_the_classic_one() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "classic ")));
    dispatch.register::<PeerStatus>(Some(status(&sender, "classic ")));
    dispatch.register::<Reconnect>(Some(reconnect(&sender, "classic ")));
    dispatch.register_event_handler(Some(events(&sender, "")));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("b"));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.push(Event::Reconnecting(peer("b")));
    dispatch.push(Event::Returned(Returned::new(peer("b"))));
    dispatch.push(left("b"));
    dispatch.push(Event::SetLeaderResult {
        target: peer("b"),
        outcome: AssignOutcome::Superseded,
    });
    dispatch.push(join_request(7));
    dispatch.push(Event::Discovered {
        address: "host:1".into(),
    });
    dispatch.push(Event::RoomEnded {
        why: EndReason::HostLeft,
        code: 0,
        bytes: Vec::new(),
    });
    drain(&dispatch.shared);
    assert_eq!(
        reported(&seen),
        [
            "classic status b 0",
            "joined b",
            "leader >b",
            "classic message 1",
            "message 1",
            "classic status b 1",
            "classic reconnect b 0",
            "reconnecting b",
            "classic status b 0",
            "classic reconnect b 1",
            "returned b",
            "classic status b 1",
            "left b 1",
            "set b Superseded",
            "request 7",
            "discovered host:1",
            "RoomEnded { why: HostLeft, code: 0, bytes: [] }",
        ]
    );
}

#[test]
fn changes_of_the_leader_name_the_last_reported_one_and_whether_it_is_us() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    let after = |ids: &[&str]| {
        for id in ids {
            dispatch.push(led_by(id));
        }
        drain(&dispatch.shared);
        reported(&seen)
    };
    assert_eq!(after(&["a"]), ["leader >a"]);
    // Undelivered changes are skipped, and the change still starts from the leader that the host
    // knows.
    assert_eq!(after(&["b", "", "c"]), ["leader a>c"]);
    assert_eq!(after(&["me"]), ["leader c>me", "gained 0"]);
    assert_eq!(after(&["b", "me"]), Vec::<String>::new());
    assert_eq!(after(&[""]), ["leader me>", "lost to "]);
}

#[test]
fn a_new_event_handler_receives_the_present_and_then_every_entry() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register::<Receive>(Some(receive(&sender, "classic ")));
    for id in ["c", "a", "b"] {
        dispatch.push(Event::Joined(peer(id)));
    }
    dispatch.push(Event::Reconnecting(peer("b")));
    dispatch.push(led_by("me"));
    drain(&dispatch.shared);
    dispatch.push(left("c"));
    dispatch.try_push_message(message(1, 4)).expect("room");
    dispatch.register_event_handler(Some(events(&sender, "")));
    drain(&dispatch.shared);
    assert_eq!(
        reported(&seen),
        [
            "leader >me",
            "gained 0",
            "joined a",
            "joined b",
            "reconnecting b",
            "joined c",
            "left c 1",
            "classic message 1",
            "message 1",
        ]
    );
}

#[test]
fn events_that_an_event_handler_missed_go_to_its_replacement() {
    let dispatch = Arc::new(manual(wide()));
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "1 ")));
    for event in [Event::Joined(peer("a")), Event::Joined(peer("b"))] {
        dispatch.push(event);
    }
    dispatch.push(led_by("b"));
    drain(&dispatch.shared);
    reported(&seen);
    // Each classic callback replaces the event handler, which has not received this entry yet.
    let replace = {
        let (dispatch, sender) = (Arc::downgrade(&dispatch), sender.clone());
        move || {
            let dispatch = dispatch.upgrade().expect("the test holds it");
            dispatch.register_event_handler(Some(events(&sender, "2 ")));
        }
    };
    dispatch.register::<Receive>(Some(Arc::new({
        let replace = replace.clone();
        move |_| replace()
    })));
    dispatch.push(led_by(""));
    dispatch.push(left("b"));
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["1 leader b>", "1 left b 1"]);
    dispatch.try_push_message(message(1, 4)).expect("room");
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["2 joined a", "2 message 1"]);
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(led_by("b"));
    drain(&dispatch.shared);
    reported(&seen);
    dispatch.register::<LeaderChanged>(Some(Arc::new({
        let replace = replace.clone();
        move |leader| {
            if leader.is_none() {
                replace();
            }
        }
    })));
    dispatch.push(led_by(""));
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["2 leader b>", "2 joined a", "2 joined b"]);
    dispatch.register::<PeerStatus>(Some(Arc::new(move |(_, status)| {
        if status == Status::Disconnected {
            replace();
        }
    })));
    drain(&dispatch.shared);
    dispatch.push(left("b"));
    drain(&dispatch.shared);
    assert_eq!(reported(&seen), ["2 left b 1", "2 joined a"]);
}

#[test]
fn an_event_handler_takes_the_messages_that_would_wait_for_a_receive_handler() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.try_push_message(message(0, 4)).expect("room");
    assert!(!dispatch.has_event_handler());
    dispatch.register_event_handler(Some(events(&sender, "")));
    assert!(dispatch.has_event_handler());
    dispatch.try_push_message(message(1, 4)).expect("room");
    assert_eq!(next(&seen), "message 0");
    assert_eq!(next(&seen), "message 1");
    dispatch.register_event_handler(None);
    dispatch.try_push_message(message(2, 4)).expect("discarded");
    assert_eq!(dispatch.discarded_messages(), 1);
}

#[test]
fn an_event_handler_can_replace_and_unregister_itself() {
    struct Dropped(Sender<String>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped".into());
        }
    }
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some({
        let (dispatch, sender) = (Arc::downgrade(&dispatch), sender.clone());
        let dropped = Dropped(sender.clone());
        Arc::new(move |_| {
            let dispatch = dispatch.upgrade().expect("the test holds it");
            dispatch.register_event_handler(Some(events(&sender, "second ")));
            dispatch.register_event_handler(None);
            let _ = dropped.0.send("still here".into());
        })
    }));
    dispatch.push(Event::Joined(peer("a")));
    assert_eq!(next(&seen), "still here");
    assert_eq!(next(&seen), "dropped");
    dispatch.register_event_handler(Some(events(&sender, "third ")));
    assert_eq!(next(&seen), "third joined a");
}

#[test]
fn unregistering_the_event_handler_waits_for_its_running_call() {
    let dispatch = started(wide());
    let (begun, begins) = channel();
    let (go, may_go) = channel::<()>();
    let may_go = Mutex::new(may_go);
    dispatch.register_event_handler(Some(Arc::new(move |_| {
        let _ = begun.send(());
        let _ = lock(&may_go).recv();
    })));
    dispatch.push(Event::Joined(peer("a")));
    dispatch.push(Event::Joined(peer("b")));
    next(&begins);
    let unregistering = thread::spawn({
        let dispatch = Arc::clone(&dispatch);
        move || dispatch.register_event_handler(None)
    });
    until(&dispatch, |queue| queue.end_waiters == 1);
    assert!(!unregistering.is_finished());
    drop(go);
    unregistering.join().expect("no panic");
    assert!(begins.recv().is_err());
}

#[test]
fn events_without_a_handler_do_not_grow_without_bound() {
    let dispatch = manual(wide());
    for n in 0..2000 {
        dispatch.push(join_request(n));
        dispatch.push(Event::SetLeaderResult {
            target: peer("b"),
            outcome: AssignOutcome::Done,
        });
        dispatch.push(Event::Discovered {
            address: format!("host:{n}"),
        });
        dispatch.push(Event::Discovered {
            address: format!("host:{n}"),
        });
        dispatch.push(Event::DiscoveryRefused(DiscoveryRefused {
            found_by: FoundBy::LocalNetwork,
            result: crate::core::event::ConnectionResult {
                target: format!("host:{n}"),
                success: false,
                code: -11,
                peer: None,
                reason: 0,
                bytes: Bytes::new(),
            },
        }));
        let flapping = peer(["a", "b", "c"][n as usize % 3]);
        dispatch.push(Event::Reconnecting(flapping.clone()));
        dispatch.push(Event::Returned(Returned::new(flapping)));
    }
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    drain(&dispatch.shared);
    let reported = reported(&seen);
    let of = |what: &str| {
        reported
            .iter()
            .filter(|line| line.starts_with(what))
            .count()
    };
    assert_eq!((of("request"), of("set"), of("discovered")), (64, 256, 256));
    assert_eq!(of("refused"), 64);
    assert!(reported.contains(&"refused host:1999".to_owned()));
    assert!(reported.contains(&"request 1999".to_owned()));
    assert_eq!(of("reconnecting"), of("returned"));
    assert_eq!(of("reconnecting"), 64);
}

#[test]
fn a_loss_whose_return_came_too_late_is_still_reported() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    for n in 0..100 {
        dispatch.push(Event::Reconnecting(peer(&format!("p{n}"))));
    }
    dispatch.push(left("p99"));
    dispatch.push(Event::Joined(peer("p99")));
    dispatch.push(Event::Returned(Returned::new(peer("p0"))));
    dispatch.register_event_handler(Some(events(&sender, "")));
    drain(&dispatch.shared);
    let reported = reported(&seen);
    assert!(!reported.contains(&"reconnecting p0".to_owned()));
    assert!(reported.ends_with(&["left p99 1".to_owned(), "joined p99".to_owned()]));
    assert_eq!(reported.len(), 101);
}
