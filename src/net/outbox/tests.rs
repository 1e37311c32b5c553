//! Tests of the queues without links.

use std::pin::pin;
use std::task::{Context, Waker};

use bytes::BytesMut;

use super::*;
use crate::core::election::record::Record;
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
    seqs_on(outboxes, peer, 0)
}

/// The frames that the writer of a lane writes next.
fn next_frames(outboxes: &Outboxes, peer: &str, lane: u16) -> Option<BytesMut> {
    let (mut frames, mut backoff) = (Frames::default(), CompressionBackoff::default());
    let taken = outboxes.take(&id(peer), lane, &mut frames, &mut backoff, 1);
    taken.expect("encodes")?;
    Some(frames.take().concat().as_slice().into())
}

fn seqs_on(outboxes: &Outboxes, peer: &str, lane: u16) -> Vec<u64> {
    let mut seqs = Vec::new();
    while let Some(mut buffer) = next_frames(outboxes, peer, lane) {
        while let Ok(Some(frame)) = take_frame(&mut buffer, 10_000) {
            let (header, _) = postcard::take_from_bytes::<MessageHeader>(&frame).expect("a header");
            seqs.push(header.seq);
        }
    }
    seqs
}

#[test]
fn a_broadcast_reaches_all_or_none() {
    let outboxes = outboxes(&["a", "b"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    let full = outboxes.broadcast(&message(1), &SenderRole::Own, Reliable::default());
    assert_eq!(
        full,
        Err(SendError::QueueFull {
            peers: vec![id("a")]
        })
    );
    assert_eq!(taken_seqs(&outboxes, "b"), Vec::<u64>::new());
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(outboxes.acked(&id("a"), 0, 1));
    assert_eq!(
        outboxes.broadcast(&message(1), &SenderRole::Own, Reliable::default()),
        Ok(2)
    );
    assert_eq!(taken_seqs(&outboxes, "b"), vec![0]);
}

#[test]
fn a_slot_is_free_again_only_when_the_peer_took_the_message() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .is_err()
    );
    assert!(outboxes.acked(&id("a"), 0, 2));
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    assert!(
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .is_err()
    );
}

#[test]
fn bytes_are_limited_but_an_empty_queue_takes_one_message_of_any_size() {
    let outboxes = outboxes(&["a"]);
    outboxes
        .send(&id("a"), message(500), SenderRole::Own, Reliable::default())
        .expect("empty");
    assert!(
        outboxes
            .send(&id("a"), message(0), SenderRole::Own, Reliable::default())
            .is_err()
    );
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
    assert!(outboxes.acked(&id("a"), 0, 1));
    outboxes
        .send(&id("a"), message(60), SenderRole::Own, Reliable::default())
        .expect("room");
    outboxes
        .send(&id("a"), message(40), SenderRole::Own, Reliable::default())
        .expect("room");
    assert!(
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .is_err()
    );
}

#[test]
fn the_smaller_limit_of_both_ends_holds() {
    let outboxes = outboxes(&["a"]);
    let refused = outboxes.send(
        &id("a"),
        message(1001),
        SenderRole::Own,
        Reliable::default(),
    );
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
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    assert!(outboxes.acked(&id("a"), 0, 1));
    outboxes.attach(&id("a"));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![1, 2]);
}

#[test]
fn an_ack_for_an_earlier_link_is_good_before_the_new_one_has_taken_anything() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0, 1, 2]);
    outboxes.attach(&id("a"));
    assert!(outboxes.acked(&id("a"), 0, 2));
    assert!(!outboxes.acked(&id("a"), 0, 4));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![2]);
}

#[test]
fn an_ack_of_what_was_never_sent_is_refused() {
    let outboxes = outboxes(&["a"]);
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    assert!(!outboxes.acked(&id("a"), 0, 1));
    assert_eq!(taken_seqs(&outboxes, "a"), vec![0]);
    assert!(outboxes.acked(&id("a"), 0, 1));
    assert!(outboxes.acked(&id("a"), 0, 0), "an old one is no offence");
    assert!(!outboxes.acked(&id("a"), 0, u64::MAX));
}

#[test]
fn untaken_messages_are_counted_when_the_session_ends() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        outboxes
            .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    taken_seqs(&outboxes, "a");
    assert!(outboxes.acked(&id("a"), 0, 1));
    assert_eq!(outboxes.close(&id("a")), 2);
    assert_eq!(
        outboxes.send(&id("a"), message(1), SenderRole::Own, Reliable::default()),
        Err(SendError::PeerNotFound { id: id("a") })
    );
}

fn incarnation() -> Incarnation {
    Incarnation {
        started_us: 1,
        random: 1,
    }
}

fn led_by(leader: &str, term: u64) -> Opaque {
    let mut record = Record {
        leader: Some(id(leader)),
        ..Record::default()
    };
    record.stamp.term = term;
    Opaque::of(&record)
}

fn under(leader: &str, term: u64) -> Lead {
    Lead::Peer(id(leader), led_by(leader, term))
}

fn myself() -> Lead {
    Lead::Myself {
        me: id("me"),
        incarnation: incarnation(),
        token: led_by("me", 9),
    }
}

/// The messages on the lane to `peer`: number on the lane, role, payload as sent, flags.
fn taken(outboxes: &Outboxes, peer: &str) -> Vec<(u64, MessageRole, Bytes, u8)> {
    let mut messages = Vec::new();
    while let Some(mut buffer) = next_frames(outboxes, peer, 0) {
        while let Ok(Some(frame)) = take_frame(&mut buffer, 10_000) {
            let (header, payload) =
                postcard::take_from_bytes::<MessageHeader>(&frame).expect("a header");
            let payload = Bytes::copy_from_slice(payload);
            messages.push((header.seq, header.role, payload, header.flags));
        }
    }
    messages
}

/// The numbers of the broadcasts among them, each with its origin's `relayed_before`.
fn broadcasts(messages: &[(u64, MessageRole, Bytes, u8)]) -> Vec<(u64, u64)> {
    let number = |(_, role, ..): &(u64, MessageRole, Bytes, u8)| match role {
        MessageRole::Central {
            origin_seq,
            relayed_before,
            ..
        } => Some((*origin_seq, *relayed_before)),
        MessageRole::Relayed { origin_seq, .. } => Some((*origin_seq, 0)),
        _ => None,
    };
    messages.iter().filter_map(number).collect()
}

fn relay(origin: &str, len: usize) -> Relay {
    Relay {
        origin: id(origin),
        incarnation: incarnation(),
        number: 0,
        how: Reliable::default(),
        message: message(len),
        packed: None,
    }
}

fn send(outboxes: &Outboxes, peer: &str, len: usize) -> Result<(), SendError> {
    outboxes.send(
        &id(peer),
        message(len),
        SenderRole::Own,
        Reliable::default(),
    )
}

fn broadcast(outboxes: &Outboxes, len: usize) -> Result<usize, SendError> {
    outboxes.broadcast(&message(len), &SenderRole::Own, Reliable::default())
}

fn full(peer: &str) -> Result<(), SendError> {
    Err(SendError::QueueFull {
        peers: vec![id(peer)],
    })
}

#[test]
fn a_lost_peers_queue_takes_what_fits_and_nothing_after_the_first_miss() {
    let outboxes = outboxes(&["a", "b"]);
    send(&outboxes, "a", 1).expect("room");
    assert_eq!(taken_seqs(&outboxes, "a"), [0]);
    outboxes.pause(&id("a"));
    assert!(!outboxes.is_linked(&id("a")));
    assert_eq!(broadcast(&outboxes, 1), Ok(1), "a lost peer is not counted");
    send(&outboxes, "a", 1).expect("room");
    assert_eq!(broadcast(&outboxes, 1), Ok(1), "it makes nothing fail");
    assert!(outboxes.acked(&id("a"), 0, 1));
    assert_eq!(send(&outboxes, "a", 1), full("a"), "room, but a gap");
    assert_eq!(outboxes.resume(&id("a")), 1);
    outboxes.attach(&id("a"));
    assert_eq!(taken_seqs(&outboxes, "a"), [1, 2]);
    assert!(outboxes.acked(&id("a"), 0, 3));
    send(&outboxes, "a", 1).expect("room");
    assert_eq!(taken_seqs(&outboxes, "a"), [3], "the numbers have no gap");
    assert_eq!(
        outboxes.meter(&id("a")).map(|meter| meter.reconnects),
        Some(1)
    );
    assert_eq!(outboxes.take_missed(&id("a")), 1);
    assert_eq!(outboxes.take_missed(&id("a")), 0);
    outboxes.pause(&id("a"));
    assert_eq!(outboxes.resume(&id("a")), 1, "of the whole session");
}

#[test]
fn a_send_that_is_refused_leaves_no_gap() {
    let outboxes = outboxes(&["a"]);
    send(&outboxes, "a", 1).expect("room");
    assert_eq!(taken_seqs(&outboxes, "a"), [0]);
    outboxes.pause(&id("a"));
    for _ in 0..2 {
        send(&outboxes, "a", 1).expect("room");
    }
    assert_eq!(send(&outboxes, "a", 1), full("a"));
    assert!(outboxes.acked(&id("a"), 0, 1));
    send(&outboxes, "a", 1).expect("room");
    assert_eq!(outboxes.resume(&id("a")), 0);
}

#[test]
fn messages_that_a_lost_peer_misses_count_until_they_are_reported() {
    let outboxes = outboxes(&["a"]);
    outboxes.pause(&id("a"));
    for _ in 0..5 {
        assert_eq!(broadcast(&outboxes, 1), Ok(0));
    }
    assert_eq!(outboxes.resume(&id("a")), 2);
    // The link is lost again before the host was notified.
    outboxes.pause(&id("a"));
    for _ in 0..4 {
        assert_eq!(broadcast(&outboxes, 1), Ok(0));
    }
    assert_eq!(outboxes.resume(&id("a")), 6);
    assert_eq!(outboxes.take_missed(&id("a")), 6);
    outboxes.pause(&id("a"));
    assert_eq!(broadcast(&outboxes, 1), Ok(0));
    assert_eq!(outboxes.close(&id("a")), 3 + 1, "queued and missed since");
}

#[test]
fn a_lost_peers_limit_on_messages_blocks_no_other() {
    let outboxes = outboxes(&["a"]);
    outboxes.open(&id("short"), 3);
    assert!(broadcast(&outboxes, 4).is_err(), "it is connected");
    outboxes.pause(&id("short"));
    assert_eq!(broadcast(&outboxes, 4), Ok(1));
    assert!(send(&outboxes, "short", 4).is_err());
    assert_eq!(outboxes.resume(&id("short")), 1);
}

#[test]
fn a_partial_broadcast_counts_no_lost_peer_as_slow_or_served() {
    let outboxes = outboxes(&["a", "lost"]);
    outboxes.pause(&id("lost"));
    for took in [1, 1, 1, 0] {
        let (took_it, full) = outboxes
            .broadcast_partial(&message(1), Reliable::default())
            .expect("sent");
        assert_eq!(took_it, took);
        assert_eq!(full.len(), 1 - took);
        assert!(!full.contains(&id("lost")));
    }
    assert_eq!(outboxes.resume(&id("lost")), 1);
}

#[tokio::test]
async fn a_flush_waits_for_one_peer_and_for_no_lost_link() {
    let outboxes = outboxes(&["a", "b"]);
    let a = id("a");
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    outboxes.flushed_to(&id("b")).await;
    outboxes.flushed_to(&id("unknown")).await;
    taken_seqs(&outboxes, "a");
    tokio::join!(outboxes.flushed_to(&a), outboxes.flushed(), async {
        assert!(outboxes.acked(&id("a"), 0, 1));
    });
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    tokio::join!(outboxes.flushed_to(&a), async {
        outboxes.pause(&id("a"));
    });
}

#[test]
fn a_broadcast_is_compressed_once_for_all_and_only_above_the_threshold() {
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 9,
        bytes: 10_000,
    });
    for peer in ["a", "b"] {
        outboxes.open(&id(peer), 1000);
    }
    outboxes.set_compression_threshold(512);
    for len in [512, 513] {
        outboxes
            .broadcast(&message(len), &SenderRole::Own, Reliable::default())
            .expect("room");
    }
    let packed: Vec<_> = {
        let inner = outboxes.lock_always();
        let second = |peer| {
            Arc::clone(
                &inner.open[&id(peer)].lanes[&0]
                    .entry(1)
                    .expect("two")
                    .message,
            )
        };
        [second("a"), second("b")].into()
    };
    assert!(Arc::ptr_eq(&packed[0], &packed[1]));
    for peer in ["a", "b"] {
        let messages = taken(&outboxes, peer);
        let (plain, short) = (&messages[0], &messages[1]);
        assert_eq!((plain.2.len(), plain.3), (512, 0));
        assert!(short.2.len() < 40, "513 times the same byte");
        assert_eq!(short.3, OWN_FLAG);
    }
    outboxes.set_compression_threshold(usize::MAX);
    outboxes.attach(&id("a"));
    assert_eq!(taken(&outboxes, "a")[1].2.len(), 513, "switched off");
}

#[test]
fn the_hosts_bit_0_never_goes_out() {
    let outboxes = outboxes(&["a"]);
    let flagged = OutMessage {
        flags: 0xff,
        ..message(3)
    };
    outboxes
        .send(&id("a"), flagged, SenderRole::Own, Reliable::default())
        .expect("room");
    assert_eq!(taken(&outboxes, "a")[0].3, 0xfe);
}

#[test]
fn a_broadcast_through_the_leader_needs_one_that_is_linked() {
    let outboxes = outboxes(&["a", "b"]);
    assert_eq!(
        outboxes.broadcast_central(&message(1), Reliable::default()),
        Err(SendError::NoLeader)
    );
    outboxes.follow(under("far", 1), 0);
    let far = Err(SendError::PeerNotFound { id: id("far") });
    assert_eq!(
        outboxes.broadcast_central(&message(1), Reliable::default()),
        far
    );
    outboxes.follow(under("a", 2), 0);
    assert_eq!(
        outboxes.broadcast_central(&message(1), Reliable::default()),
        Ok(())
    );
    assert_eq!(taken_seqs(&outboxes, "b"), Vec::<u64>::new());
    let messages = taken(&outboxes, "a");
    assert_eq!(
        messages[0].1,
        MessageRole::Central {
            origin_seq: 0,
            relayed_before: 0,
            token: led_by("a", 2),
        }
    );
    outboxes.follow(myself(), 0);
    assert_eq!(
        outboxes.broadcast_central(&message(2), Reliable::default()),
        Ok(())
    );
    let to_all = taken(&outboxes, "b").pop().expect("one");
    assert_eq!((to_all.1, to_all.2.len()), (MessageRole::Peer, 2));
}

#[test]
fn unrelayed_messages_fill_the_log_though_the_leader_has_taken_them() {
    let outboxes = outboxes(&["a"]);
    outboxes.follow(under("a", 1), 0);
    for _ in 0..3 {
        outboxes
            .broadcast_central(&message(1), Reliable::default())
            .expect("room");
    }
    taken_seqs(&outboxes, "a");
    assert!(outboxes.acked(&id("a"), 0, 3));
    let full = Err(SendError::QueueFull {
        peers: vec![id("a")],
    });
    assert_eq!(
        outboxes.broadcast_central(&message(1), Reliable::default()),
        full
    );
    assert!(outboxes.relayed(&id("a"), 0, 1));
    assert_eq!(
        outboxes.broadcast_central(&message(1), Reliable::default()),
        Ok(())
    );
    assert_eq!(broadcasts(&taken(&outboxes, "a")), [(3, 1)]);
}

#[test]
fn a_relay_report_counts_only_for_sent_messages() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes.follow(under("a", 1), 0);
    outboxes
        .broadcast_central(&message(1), Reliable::default())
        .expect("room");
    assert!(!outboxes.relayed(&id("a"), 0, 1), "it did not go out yet");
    taken_seqs(&outboxes, "a");
    assert!(!outboxes.relayed(&id("b"), 0, 1));
    assert!(!outboxes.relayed(&id("a"), 0, 2));
    assert!(outboxes.relayed(&id("a"), 0, 1));
    assert!(outboxes.relayed(&id("a"), 0, 0), "an old word");
}

#[test]
fn the_next_leader_gets_what_the_last_did_not_relay() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes.follow(under("a", 1), 0);
    for _ in 0..2 {
        outboxes
            .broadcast_central(&message(1), Reliable::default())
            .expect("room");
    }
    assert_eq!(broadcasts(&taken(&outboxes, "a")), [(0, 0), (1, 0)]);
    outboxes
        .broadcast_central(&message(1), Reliable::default())
        .expect("room");
    assert!(outboxes.relayed(&id("a"), 0, 1));
    outboxes.follow(Lead::None, 0);
    assert_eq!(broadcasts(&taken(&outboxes, "a")), [], "taken back");
    outboxes.follow(under("b", 2), 0);
    assert_eq!(broadcasts(&taken(&outboxes, "b")), [(1, 1), (2, 1)]);
    // The acknowledgement of the last leader arrives late.
    assert!(outboxes.relayed(&id("a"), 0, 2));
    assert!(outboxes.relayed(&id("b"), 0, 3));
    outboxes.follow(under("a", 3), 0);
    assert_eq!(broadcasts(&taken(&outboxes, "a")), []);
}

#[test]
fn a_broadcast_that_goes_again_is_not_before_itself() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes.follow(under("a", 1), 0);
    for _ in 0..2 {
        outboxes
            .broadcast_central(&message(1), Reliable::default())
            .expect("room");
    }
    assert_eq!(broadcasts(&taken(&outboxes, "a")), [(0, 0), (1, 0)]);
    outboxes.follow(under("b", 2), 0);
    // The last leader reports one before it goes to the next leader.
    assert!(outboxes.relayed(&id("a"), 0, 1));
    assert_eq!(broadcasts(&taken(&outboxes, "b")), [(0, 0), (1, 1)]);
    // The leader asks again, and reports both before the second copies go.
    outboxes.carry_again(&id("b"));
    assert!(outboxes.relayed(&id("b"), 0, 2));
    assert_eq!(broadcasts(&taken(&outboxes, "b")), [(1, 1)]);
}

#[test]
fn a_leader_whose_session_begins_anew_gets_the_log_when_it_is_linked() {
    let outboxes = outboxes(&["a"]);
    outboxes.follow(under("a", 1), 0);
    outboxes
        .broadcast_central(&message(1), Reliable::default())
        .expect("room");
    taken_seqs(&outboxes, "a");
    assert!(outboxes.acked(&id("a"), 0, 1));
    outboxes.close(&id("a"));
    outboxes.open(&id("a"), 1000);
    outboxes.attach(&id("a"));
    assert_eq!(broadcasts(&taken(&outboxes, "a")), [(0, 0)]);
}

#[test]
fn a_leader_that_asks_again_and_again_gets_no_more_than_one_unsent_copy() {
    let outboxes = outboxes(&["a"]);
    outboxes.follow(under("a", 1), 0);
    outboxes
        .send(&id("a"), message(7), SenderRole::Own, Reliable::default())
        .expect("room");
    for _ in 0..2 {
        outboxes
            .broadcast_central(&message(1), Reliable::default())
            .expect("room");
    }
    for _ in 0..100 {
        outboxes.carry_again(&id("a"));
    }
    let meter = outboxes.meter(&id("a")).expect("open");
    assert_eq!((meter.queue_messages, meter.queue_bytes), (3, 9));
    let messages = taken(&outboxes, "a");
    assert_eq!(messages.iter().map(|m| m.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(broadcasts(&messages), [(0, 0), (1, 0)]);
    // Only now there is a second copy, behind the messages that were sent.
    outboxes.carry_again(&id("a"));
    let messages = taken(&outboxes, "a");
    assert_eq!(messages.iter().map(|m| m.0).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_new_leader_relays_its_own_pending_broadcasts() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes.follow(under("a", 1), 0);
    outboxes
        .broadcast_central(&message(5), Reliable::default())
        .expect("room");
    outboxes.follow(myself(), 0);
    for peer in ["a", "b"] {
        let messages = taken(&outboxes, peer);
        assert_eq!(messages.len(), 1);
        assert_eq!(
            messages[0].1,
            MessageRole::Relayed {
                origin: id("me"),
                incarnation: incarnation(),
                origin_seq: 0,
                token: led_by("me", 9),
            }
        );
    }
    outboxes.follow(under("b", 10), 0);
    assert_eq!(taken(&outboxes, "b").len(), 0, "it is out of the log");
}

#[test]
fn a_relay_goes_to_all_but_its_origin_or_to_none() {
    let outboxes = outboxes(&["a", "b", "c", "lost"]);
    outboxes.pause(&id("lost"));
    for _ in 0..3 {
        outboxes
            .send(&id("c"), message(1), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    let token = led_by("me", 1);
    assert!(!outboxes.relay(&relay("a", 4), &token));
    assert_eq!(taken(&outboxes, "b").len(), 0);
    taken_seqs(&outboxes, "c");
    assert!(outboxes.acked(&id("c"), 0, 1));
    assert!(outboxes.relay(&relay("a", 4), &token));
    assert_eq!(taken(&outboxes, "a").len(), 0);
    assert_eq!(taken(&outboxes, "b").len(), 1);
    assert_eq!(taken(&outboxes, "c").len(), 1);
    assert_eq!(outboxes.resume(&id("lost")), 0);
    outboxes.attach(&id("lost"));
    assert_eq!(taken(&outboxes, "lost").len(), 1, "it waited");
}

#[test]
fn a_peer_that_takes_only_shorter_messages_does_not_stop_a_relay() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes.open(&id("short"), 3);
    assert!(outboxes.relay(&relay("a", 4), &led_by("me", 1)));
    assert_eq!(taken(&outboxes, "b").len(), 1);
    assert_eq!(taken(&outboxes, "short").len(), 0);
}

#[tokio::test]
async fn a_waiting_sender_is_notified_when_a_peer_takes_a_message_or_is_gone() {
    let outboxes = outboxes(&["a", "b"]);
    outboxes
        .send(&id("a"), message(1), SenderRole::Own, Reliable::default())
        .expect("room");
    taken_seqs(&outboxes, "a");
    let room = outboxes.more_room();
    tokio::pin!(room);
    room.as_mut().enable();
    assert!(outboxes.acked(&id("a"), 0, 1));
    room.await;
    for gone in [
        |outboxes: &Outboxes| {
            outboxes.close(&id("a"));
        },
        |outboxes: &Outboxes| {
            outboxes.pause(&id("b"));
        },
        |outboxes: &Outboxes| outboxes.shut(),
    ] {
        let room = outboxes.more_room();
        tokio::pin!(room);
        room.as_mut().enable();
        gone(&outboxes);
        room.await;
    }
}

#[test]
fn the_meter_shows_the_queue_and_what_went_out() {
    let outboxes = outboxes(&["a"]);
    assert_eq!(outboxes.meter(&id("b")), None);
    assert_eq!(outboxes.meter(&id("a")), Some(PeerMeter::default()));
    for _ in 0..2 {
        outboxes
            .send(&id("a"), message(5), SenderRole::Own, Reliable::default())
            .expect("room");
    }
    taken_seqs(&outboxes, "a");
    outboxes.attach(&id("a"));
    taken_seqs(&outboxes, "a");
    assert!(outboxes.acked(&id("a"), 0, 1));
    let meter = outboxes.meter(&id("a")).expect("open");
    assert_eq!(meter.messages_sent, 2, "sent again, counted once");
    assert_eq!((meter.queue_messages, meter.queue_bytes), (1, 5));
    assert!(meter.queue_age.is_some());
}

fn unordered() -> Reliable {
    Reliable {
        ordered: false,
        ..Reliable::default()
    }
}

fn on_channel(channel: u8) -> Reliable {
    Reliable {
        channel,
        ..Reliable::default()
    }
}

fn lane_seqs(outboxes: &Outboxes, lane: u16) -> Vec<u64> {
    seqs_on(outboxes, "a", lane)
}

fn send_on(outboxes: &Outboxes, how: Reliable) -> Result<(), SendError> {
    outboxes.send(&id("a"), message(1), SenderRole::Own, how)
}

#[test]
fn each_channel_has_numbers_of_its_own_and_all_share_the_limits() {
    let outboxes = outboxes(&["a"]);
    for channel in [0, 5, 5] {
        send_on(&outboxes, on_channel(channel)).expect("room");
    }
    assert!(send_on(&outboxes, on_channel(9)).is_err());
    assert!(send_on(&outboxes, unordered()).is_err());
    assert_eq!(outboxes.lanes_to_open(&id("a")), [0, 5]);
    assert_eq!(lane_seqs(&outboxes, 0), [0]);
    assert_eq!(lane_seqs(&outboxes, 5), [0, 1]);
    assert!(!outboxes.acked(&id("a"), 0, 2), "that is the other lane's");
    assert!(outboxes.acked(&id("a"), 5, 1));
    send_on(&outboxes, unordered()).expect("room");
    outboxes.attach(&id("a"));
    assert_eq!(lane_seqs(&outboxes, 0), [0]);
    assert_eq!(lane_seqs(&outboxes, 5), [1]);
    assert_eq!(lane_seqs(&outboxes, UNORDERED_LANE), [0]);
}

#[test]
fn an_unordered_message_that_was_taken_is_not_sent_again() {
    let outboxes = outboxes(&["a"]);
    for _ in 0..3 {
        send_on(&outboxes, unordered()).expect("room");
    }
    assert_eq!(lane_seqs(&outboxes, UNORDERED_LANE), [0, 1, 2]);
    assert!(outboxes.acked_unordered(&id("a"), 0, &[1]));
    assert!(
        outboxes.acked_unordered(&id("a"), 0, &[1]),
        "acknowledged again"
    );
    assert_eq!(outboxes.meter(&id("a")).expect("open").queue_messages, 2);
    outboxes.attach(&id("a"));
    assert_eq!(lane_seqs(&outboxes, UNORDERED_LANE), [0, 2]);
    assert!(!outboxes.acked_unordered(&id("a"), 0, &[3]), "never sent");
    assert!(!outboxes.acked_unordered(&id("a"), 4, &[]), "never sent");
    assert!(outboxes.acked_unordered(&id("a"), 1, &[2]));
    assert_eq!(outboxes.meter(&id("a")).expect("open").queue_bytes, 0);
    assert_eq!(outboxes.close(&id("a")), 0);
}

#[test]
fn no_more_unordered_messages_are_on_the_way_than_there_are_streams() {
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 1000,
        bytes: 10_000,
    });
    outboxes.open(&id("a"), 1000);
    for _ in 0..200 {
        send_on(&outboxes, unordered()).expect("room");
    }
    assert_eq!(lane_seqs(&outboxes, UNORDERED_LANE).len(), 128);
    assert!(outboxes.acked_unordered(&id("a"), 0, &[7, 9]));
    assert_eq!(lane_seqs(&outboxes, UNORDERED_LANE), [128, 129]);
}

#[test]
fn bulk_that_fills_the_queue_leaves_room_to_a_lane_that_holds_little() {
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 64,
        bytes: 6400,
    });
    outboxes.open(&id("a"), 1000);
    let fill = |channel| {
        let mut count = 0;
        while send_on(&outboxes, on_channel(channel)).is_ok() {
            count += 1;
        }
        count
    };
    assert_eq!(fill(0), 64, "a lane alone has what was configured");
    assert_eq!(fill(1), 8, "an eighth, of the reserve");
    assert_eq!(fill(2), 8, "and all of the reserve");
    assert_eq!(fill(3), 0);
    let full = outboxes.send(&id("a"), message(1), SenderRole::Own, unordered());
    assert!(full.is_err());
    let meter = outboxes.meter(&id("a")).expect("open");
    assert_eq!((meter.queue_messages, meter.queue_bytes), (80, 80));

    // The byte limits work alike.
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 640,
        bytes: 1600,
    });
    outboxes.open(&id("a"), 1600);
    let send = |channel, len| {
        let how = on_channel(channel);
        outboxes.send(&id("a"), message(len), SenderRole::Own, how)
    };
    assert_eq!(send(0, 1600), Ok(()));
    assert!(send(0, 1).is_err());
    assert!(send(1, 201).is_err(), "more than an eighth");
    assert_eq!(send(1, 200), Ok(()));
    assert_eq!(send(2, 200), Ok(()));
    assert!(send(3, 1).is_err(), "the reserve is full");
}

/// Whether the notice was triggered.
fn is_reported(notice: &Notify) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(notice.notified()).poll(&mut context).is_ready()
}

/// Takes from a lane until nothing more may be sent; returns the number of bytes taken.
fn taken_bytes(outboxes: &Outboxes, lane: u16) -> usize {
    let written = std::iter::from_fn(|| next_frames(outboxes, "a", lane));
    written.map(|frames| frames.len()).sum()
}

#[test]
fn bulk_waits_here_and_not_in_quic_while_a_small_lane_goes_on() {
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 1000,
        bytes: 256 << 20,
    });
    outboxes.open(&id("a"), 1 << 20);
    let peer = id("a");
    let mut notices = Vec::new();
    for channel in 0..64 {
        for _ in 0..3 {
            let (bulk, how) = (message(1 << 20), on_channel(channel));
            let sent = outboxes.send(&peer, bulk, SenderRole::Own, how);
            sent.expect("room");
        }
        notices.push(outboxes.begin_lane(&peer, channel.into()).expect("a lane"));
    }
    let mut went = 0;
    for channel in 0..64 {
        went += taken_bytes(&outboxes, channel);
    }
    // The last one began with less than 4 MiB in flight.
    assert!((4 << 20..5 << 20).contains(&went), "{went}");
    send_on(&outboxes, on_channel(200)).expect("room");
    let small = outboxes.begin_lane(&peer, 200);
    assert_eq!(lane_seqs(&outboxes, 200), [0]);
    assert!(small.is_some());

    assert!(!notices.iter().any(|notice| is_reported(notice)));
    assert!(outboxes.acked(&peer, 0, 3), "the peer takes all of one");
    assert!(
        is_reported(&notices[63]),
        "the messages that were held back go on"
    );
    assert_eq!(taken_bytes(&outboxes, 0), 0);
    assert!(taken_bytes(&outboxes, 63) > 1 << 20);
    // A message of any size may be sent when nothing else is in flight.
    assert!(outboxes.attach(&peer).is_some());
    assert!(taken_bytes(&outboxes, 63) > 1 << 20);
}

#[test]
fn a_lane_goes_on_after_held_messages_are_withdrawn() {
    let outboxes = Outboxes::new(OutboxLimits {
        messages: 1000,
        bytes: 256 << 20,
    });
    outboxes.open(&id("a"), 8 << 20);
    let peer = id("a");
    for number in 0..3 {
        let role = SenderRole::Central {
            number,
            token: Opaque::default(),
        };
        let sent = outboxes.send(&peer, message(8 << 20), role, Reliable::default());
        sent.expect("room");
    }
    let notice = outboxes.begin_lane(&peer, 0).expect("a lane");
    let went = taken_bytes(&outboxes, 0);
    assert!((16 << 20..17 << 20).contains(&went), "{went}");
    {
        let mut inner = outboxes.lock_always();
        let outbox = inner.open.get_mut(&peer).expect("open");
        let gone = outbox.lanes.get_mut(&0).map(Lane::withdraw_unsent);
        outbox.forget(gone.expect("a lane"));
    }
    assert!(outboxes.acked(&peer, 0, 2));
    send_on(&outboxes, Reliable::default()).expect("room");
    assert!(is_reported(&notice));
    assert_eq!(lane_seqs(&outboxes, 0), [2]);
}

fn loose(priority: u8) -> Unreliable {
    Unreliable {
        priority,
        ..Unreliable::default()
    }
}

/// The first bytes of the waiting datagrams, and the number of expired ones.
fn taken_datagrams(outboxes: &Outboxes) -> (Vec<u8>, u64) {
    let (mut bytes, mut dropped) = (Vec::new(), 0);
    loop {
        let (datagram, count) = outboxes.take_datagram(&id("a"));
        dropped += count;
        match datagram {
            Some(datagram) => bytes.extend(datagram.last()),
            None => return (bytes, dropped),
        }
    }
}

fn numbered(number: u8, len: usize) -> OutMessage {
    OutMessage {
        payload: vec![number; len].into(),
        ..message(0)
    }
}

fn send_unreliable(outboxes: &Outboxes, number: u8, how: Unreliable) -> Result<Dropped, SendError> {
    outboxes.send_unreliable(&id("a"), &numbered(number, 1), how)
}

#[test]
fn the_oldest_datagrams_make_way_and_are_counted() {
    let outboxes = outboxes(&["a"]);
    for number in 0..=255 {
        assert_eq!(send_unreliable(&outboxes, number, loose(0)), Ok(Vec::new()));
    }
    for number in 0..3 {
        let dropped = send_unreliable(&outboxes, number, loose(3));
        assert_eq!(
            dropped,
            Ok(vec![(id("a"), 1)]),
            "the oldest, whatever its priority"
        );
    }
    let (taken, dropped) = taken_datagrams(&outboxes);
    assert_eq!((taken.len(), dropped), (256, 0));
    assert_eq!(taken[..4], [0, 1, 2, 3], "the higher priority first");
    for _ in 0..200 {
        let long = outboxes.send_unreliable(&id("a"), &numbered(1, 1000), loose(1));
        long.expect("they have the length of a datagram");
    }
    assert_eq!(taken_datagrams(&outboxes).0.len(), 131, "128 KiB");
}

#[test]
fn a_datagram_whose_time_is_over_is_not_sent() {
    let outboxes = outboxes(&["a"]);
    let brief = Unreliable {
        ttl: Some(std::time::Duration::ZERO),
        ..loose(1)
    };
    send_unreliable(&outboxes, 1, brief).expect("taken");
    send_unreliable(&outboxes, 2, loose(1)).expect("taken");
    assert_eq!(taken_datagrams(&outboxes), (vec![2], 1));
}

#[test]
fn droppable_messages_are_dropped_and_counted_while_the_link_is_lost() {
    let outboxes = outboxes(&["a"]);
    send_unreliable(&outboxes, 1, loose(1)).expect("taken");
    assert_eq!(outboxes.pause(&id("a")), 1);
    assert_eq!(
        send_unreliable(&outboxes, 2, loose(1)),
        Ok(vec![(id("a"), 1)]),
        "no error"
    );
    let cast = outboxes.broadcast_unreliable(&numbered(3, 1), loose(1));
    assert_eq!(cast, Ok((0, vec![(id("a"), 1)])));
    outboxes.resume(&id("a"));
    outboxes.attach(&id("a"));
    assert_eq!(taken_datagrams(&outboxes), (Vec::new(), 0));
    send_unreliable(&outboxes, 4, loose(1)).expect("taken");
    assert_eq!(taken_datagrams(&outboxes).0, [4]);
    assert_eq!(outboxes.close(&id("a")), 0, "they never count");
}

#[test]
fn a_partial_broadcast_leaves_out_the_full_and_no_others() {
    let outboxes = outboxes(&["a", "b"]);
    for _ in 0..3 {
        send_on(&outboxes, Reliable::default()).expect("room");
    }
    let took = outboxes.broadcast_partial(&message(1), on_channel(4));
    assert_eq!(took, Ok((1, vec![id("a")])));
    assert!(
        outboxes
            .broadcast_partial(&message(1001), on_channel(4))
            .is_err()
    );
}
