//! The indices of peers in events and queries.

use super::*;

/// Fields that the event handler receives: the peer and its index; and the results of a query for
/// each at that moment.
type Numbered = (String, u32, u32, Option<String>);

fn numbers(dispatch: &Arc<Dispatch>, name: &'static str) -> Receiver<Numbered> {
    let (sender, receiver) = channel();
    let room = Arc::downgrade(dispatch);
    dispatch.register::<Everything>(Some(Arc::new(move |reported: Report<'_>| {
        let dispatch = room.upgrade().expect("the test holds it");
        let indices = dispatch.indices();
        let Reported::Room(event) = reported.event else {
            return;
        };
        let peer = event.names().map_or("", PeerId::as_str).to_owned();
        let present = indices.of(&peer);
        let named = indices
            .peer(reported.peer_index)
            .map(|peer| peer.to_string());
        let _ = sender.send((format!("{name}{peer}"), reported.peer_index, present, named));
    })));
    receiver
}

fn numbered(peer: &str, index: u32, present: u32) -> Numbered {
    (
        peer.into(),
        index,
        present,
        (index != 0).then(|| peer.into()),
    )
}

#[test]
fn a_peer_has_its_number_from_joined_to_the_end_of_left() {
    let dispatch = Arc::new(manual(wide()));
    let seen = numbers(&dispatch, "");
    let indices = dispatch.indices();
    dispatch.push(Event::Joined(peer("sender")));
    assert_eq!(indices.of("sender"), 1, "before its event");
    dispatch.push(Event::Joined(peer("b")));
    dispatch.try_push_message(message(0, 4)).expect("room");
    dispatch.push(Event::Reconnecting(peer("sender")));
    dispatch.push(led_by("sender"));
    dispatch.push(led_by("unknown"));
    dispatch.push(Event::Returned(Returned::new(peer("sender"))));
    dispatch.push(Event::SlowPeer(peer("sender")));
    dispatch.push(left("sender"));
    dispatch.try_push_message(message(1, 4)).expect("room");
    drain(&dispatch.shared);
    for (name, index, present) in [
        ("sender", 1, 1),
        ("b", 2, 2),
        ("sender", 1, 1),
        ("sender", 1, 1),
        ("unknown", 0, 0),
        ("sender", 1, 1),
        ("sender", 1, 1),
        ("sender", 1, 1),
        // After its LEFT the index belongs to no peer.
        ("sender", 0, 0),
    ] {
        assert_eq!(next(&seen), numbered(name, index, present));
    }
    assert_eq!((indices.of("sender"), indices.peer(1)), (0, None));
    dispatch.push(Event::Joined(peer("sender")));
    assert_eq!(
        indices.of("sender"),
        3,
        "never one that another session had"
    );
}

#[test]
fn a_peer_that_returns_while_a_handler_receives_its_leave_has_both_numbers() {
    let dispatch = Arc::new(manual(wide()));
    dispatch.push(Event::Joined(peer("b")));
    drain(&dispatch.shared);
    let (sender, seen) = channel();
    let room = Arc::downgrade(&dispatch);
    dispatch.register::<PeerStatus>(Some(Arc::new(move |(name, status)| {
        let dispatch = room.upgrade().expect("the test holds it");
        if status == crate::snapshot::PeerStatus::Disconnected {
            assert!(!dispatch.has_undelivered_left(name), "it may come in");
            dispatch.push(Event::Joined(name.clone()));
        }
        let indices = dispatch.indices();
        let _ = sender.send((indices.of(name.as_str()), indices.peer(1), indices.peer(2)));
    })));
    let everything = numbers(&dispatch, "");
    drain(&dispatch.shared);
    assert_eq!(next(&seen), (1, Some(peer("b")), None), "the present");
    assert_eq!(next(&everything), numbered("b", 1, 1));
    dispatch.push(left("b"));
    drain(&dispatch.shared);
    assert_eq!(next(&seen), (2, Some(peer("b")), Some(peer("b"))));
    // The next handler of the same event has the old index, and the next event the new one.
    assert_eq!(next(&everything), numbered("b", 1, 2));
    assert_eq!(next(&seen), (2, None, Some(peer("b"))));
    assert_eq!(next(&everything), numbered("b", 2, 2));
}

#[test]
fn a_number_outlives_a_left_that_another_handler_takes_over() {
    let dispatch = Arc::new(manual(wide()));
    let first = numbers(&dispatch, "");
    dispatch.push(Event::Joined(peer("b")));
    drain(&dispatch.shared);
    assert_eq!(next(&first), numbered("b", 1, 1));
    let (sender, replaced) = channel();
    let room = Arc::downgrade(&dispatch);
    dispatch.register::<PeerStatus>(Some(Arc::new(move |(_, status)| {
        if status == crate::snapshot::PeerStatus::Disconnected {
            let dispatch = room.upgrade().expect("the test holds it");
            let _ = sender.send(numbers(&dispatch, ""));
        }
    })));
    drain(&dispatch.shared);
    dispatch.push(left("b"));
    drain(&dispatch.shared);
    let second = next(&replaced);
    assert_eq!(next(&second), numbered("b", 1, 1));
    assert_eq!(
        dispatch.indices().peer(1),
        None,
        "the last handler has received it"
    );
}

#[test]
fn numbers_are_given_back_without_a_handler() {
    let dispatch = manual(wide());
    for _ in 0..1000 {
        dispatch.push(Event::Joined(peer("b")));
        dispatch.push(left("b"));
    }
    drain(&dispatch.shared);
    assert_eq!(dispatch.indices().of("b"), 0);
    assert!((0..=1001).all(|index| dispatch.indices().peer(index).is_none()));
}
