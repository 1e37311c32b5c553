//! The queues without links.

use super::*;
use crate::net::frame::take_frame;

const LIMITS: OutboxLimits = OutboxLimits {
    messages: 3,
    bytes: 100,
};

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("valid")
}

fn message(len: usize) -> OutMessage {
    OutMessage {
        payload: vec![7; len].into(),
        msg_type: 0x0100,
        flags: 0,
    }
}

fn outboxes(peers: &[&str]) -> Outboxes {
    let outboxes = Outboxes::new(LIMITS);
    for peer in peers {
        outboxes.open(&id(peer), 1000);
    }
    outboxes
}

fn taken_seqs(outboxes: &Outboxes, peer: &str) -> Vec<u64> {
    let mut buffer = BytesMut::new();
    let mut seqs = Vec::new();
    while outboxes.take(&id(peer), &mut buffer, 1).expect("encodes") {
        while let Ok(Some(frame)) = take_frame(&mut buffer, 10_000) {
            let (header, _) = postcard::take_from_bytes::<MessageHeader>(&frame).expect("a header");
            seqs.push(header.seq);
        }
    }
    seqs
}

#[test]
fn a_broadcast_reaches_all_or_nobody() {
    let outboxes = outboxes(&["a", "b"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), Voice::Own)
            .expect("room");
    }
    let full = outboxes.broadcast(&message(1), &Voice::Own);
    assert_eq!(
        full,
        Err(SendError::QueueFull {
            peers: vec![id("a")]
        })
    );
    assert_eq!(taken_seqs(&outboxes, "b"), Vec::<u64>::new());
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(outboxes.acked(&id("a"), 1));
    assert_eq!(outboxes.broadcast(&message(1), &Voice::Own), Ok(()));
    assert_eq!(taken_seqs(&outboxes, "b"), vec![0]);
}

#[test]
fn a_slot_is_free_again_only_when_the_peer_took_the_message() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), Voice::Own)
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(outboxes.send(&id("a"), message(1), Voice::Own).is_err());
    assert!(outboxes.acked(&id("a"), 2));
    outboxes
        .send(&id("a"), message(1), Voice::Own)
        .expect("room");
    outboxes
        .send(&id("a"), message(1), Voice::Own)
        .expect("room");
    assert!(outboxes.send(&id("a"), message(1), Voice::Own).is_err());
}

#[test]
fn bytes_are_limited_but_an_empty_queue_takes_one_message_of_any_size() {
    let outboxes = outboxes(&["a"]);
    outboxes
        .send(&id("a"), message(500), Voice::Own)
        .expect("empty");
    assert!(outboxes.send(&id("a"), message(0), Voice::Own).is_err());
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
    assert!(outboxes.acked(&id("a"), 1));
    outboxes
        .send(&id("a"), message(60), Voice::Own)
        .expect("room");
    outboxes
        .send(&id("a"), message(40), Voice::Own)
        .expect("room");
    assert!(outboxes.send(&id("a"), message(1), Voice::Own).is_err());
}

#[test]
fn the_smaller_limit_of_both_ends_holds() {
    let outboxes = outboxes(&["a"]);
    let refused = outboxes.send(&id("a"), message(1001), Voice::Own);
    assert_eq!(
        refused,
        Err(SendError::TooLarge {
            len: 1001,
            max: 1000,
            limit_of: Some(id("a"))
        })
    );
}

#[test]
fn a_new_link_starts_again_at_the_first_message_without_an_ack() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), Voice::Own)
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(outboxes.acked(&id("a"), 1));
    outboxes.attach(&id("a"));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![1, 2]);
}

#[test]
fn an_ack_for_an_earlier_link_is_good_before_the_new_one_has_taken_anything() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), Voice::Own)
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    outboxes.attach(&id("a"));
    assert!(outboxes.acked(&id("a"), 2));
    assert!(!outboxes.acked(&id("a"), 4));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![2]);
}

#[test]
fn an_ack_of_what_was_never_sent_is_refused() {
    let outboxes = outboxes(&["a"]);
    outboxes
        .send(&id("a"), message(1), Voice::Own)
        .expect("room");
    assert!(!outboxes.acked(&id("a"), 1));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
    assert!(outboxes.acked(&id("a"), 1));
    assert!(outboxes.acked(&id("a"), 0), "an old one is no offence");
    assert!(!outboxes.acked(&id("a"), u64::MAX));
}

#[test]
fn what_was_not_taken_is_counted_when_the_session_ends() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), Voice::Own)
            .expect("room");
    }
    taken_seqs(&outboxes, "a");
    assert!(outboxes.acked(&id("a"), 1));
    assert_eq!(outboxes.close(&id("a")), 2);
    assert_eq!(
        outboxes.send(&id("a"), message(1), Voice::Own),
        Err(SendError::PeerNotFound { id: id("a") })
    );
}
