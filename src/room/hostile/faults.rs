//! Faults inside the library: a panic of the network thread.

use std::sync::mpsc;

use super::*;
use crate::dispatch::{EndReason, Event, LeftReason};
use crate::error::{Code, Coded};

#[tokio::test]
async fn a_network_thread_that_panics_ends_its_room_and_no_other() {
    let pair = Pair::settled("a fault").await;
    let (send, events) = mpsc::channel();
    let handler = move |event: &Event| {
        // The test has ended if it takes no more events.
        let _ = send.send(event.clone());
    };
    let room = &pair.a.room;
    room.dispatch()
        .register_event_handler(Some(Arc::new(handler)));
    let sent = room.shared.commands.send(HostCommand::Panic);
    assert!(sent.is_ok(), "it runs");
    let next = || events.recv_timeout(TIMEOUT).expect("an event");
    let ended = loop {
        if let Event::RoomEnded { why, .. } = next() {
            break why;
        }
    };
    assert_eq!(ended, EndReason::Internal);
    let Event::Left(departed) = next() else {
        panic!("each member leaves after the end of the room");
    };
    assert_eq!(
        (departed.peer, departed.why),
        (id("b"), LeftReason::RoomEnded)
    );
    let snapshot = room.snapshot();
    assert_eq!((snapshot.connected, snapshot.is_leader), (0, false));
    drop(snapshot);
    assert_eq!(
        room.set_leader(&id("a")).map_err(|error| error.code()),
        Err(Code::NotInitialized)
    );
    assert!(room.broadcast(message(b"x")).is_err());
    // The other room of this process goes on, and loses a member.
    pair.b.wait_for(left("a"), 1).await;
    eventually("it leads alone", || pair.b.room.snapshot().is_leader).await;
    room.close();
}
