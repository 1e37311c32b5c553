//! The end of a dispatcher.

use super::*;

#[test]
fn o17_stop_waits_for_the_running_call_and_discards_the_rest() {
    let dispatch = started(wide());
    let (handler, begins, go) = gated();
    dispatch.register::<Receive>(Some(handler));
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
    // Events and messages that come late neither wait nor reach a handler.
    let (sender, seen) = channel();
    dispatch.register::<PeerStatus>(Some(status(&sender, "")));
    dispatch.register::<Receive>(Some(receive(&sender, "")));
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
