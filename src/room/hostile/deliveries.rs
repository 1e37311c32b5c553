//! Messages with delivery options, from members that send them as no honest member does.

use super::*;
use crate::net::frame::{DatagramHeader, DatagramRole, UNORDERED_LANE, datagram};

fn loose(payload: &[u8]) -> Bytes {
    let header = DatagramHeader {
        channel: 0,
        msg_type: 0x100,
        flags: 0,
        ttl_ms: 0,
        sequence: None,
        role: DatagramRole::Peer,
    };
    datagram(&header, payload).expect("encodes")
}

#[tokio::test]
async fn datagrams_that_come_before_joined_wait_and_follow_it_and_at_most_64_do() {
    let pair = Pair::settled("early").await;
    let attacker = Attacker::new("m", "early");
    let (connection, mut send, _recv, ack) = attacker.say_hello(&pair.a, &attacker.hello()).await;
    assert_eq!(ack.code, 0);
    for n in 0..100_u8 {
        connection
            .send_datagram(loose(&[n]))
            .expect("datagrams are on");
        // One at a time, in order.
        sleep(Duration::from_millis(1)).await;
    }
    send.write_all(&first_words()).await.expect("written");
    pair.a.wait_for(joined("m"), 1).await;
    pair.a.wait_for(reported("m", &[99]), 1).await;
    let reported = pair.a.reported.borrow().clone();
    let joined_at = reported.iter().position(|event| *event == joined("m"));
    let first = reported
        .iter()
        .position(|event| matches!(event, Report::Message(from, _) if from == "m"));
    assert!(joined_at < first, "{reported:?}");
    pair.undisturbed("early datagrams").await;
}

#[tokio::test]
async fn datagrams_that_come_after_the_last_message_of_one_that_left_are_dropped() {
    let pair = Pair::settled("late").await;
    let mut member = Attacker::new("m", "late").join(&pair.a).await;
    member.send(0, b"last").await;
    pair.a.wait_for(reported("m", b"last"), 1).await;
    member.lane.take().expect("open").finish().expect("open");
    member.notify_core(Message::Leave { successor: None }).await;
    pair.a.wait_for(left("m"), 1).await;
    for _ in 0..20 {
        // The link lingers until the member closes it.
        let _ = member.connection.send_datagram(loose(b"late"));
        sleep(Duration::from_millis(5)).await;
    }
    pair.undisturbed("late datagrams").await;
    let reported = pair.a.reported.borrow().clone();
    assert!(
        !reported.contains(&Report::Message("m".into(), b"late".to_vec())),
        "{reported:?}"
    );
}

#[tokio::test]
async fn an_unordered_message_that_comes_again_is_delivered_once() {
    let pair = Pair::settled("again").await;
    let member = Attacker::new("m", "again").join(&pair.a).await;
    for n in [2, 0, 2, 1, 0, 3] {
        let mut stream = member
            .open_lane(LaneHeader {
                lane: UNORDERED_LANE,
            })
            .await;
        let frame = message_frame(n, 0x100, 0, MessageRole::Peer, &[n as u8]);
        stream.write_all(&frame).await.expect("written");
        stream.finish().expect("open");
        pair.a.wait_for(reported("m", &[n as u8]), 1).await;
    }
    pair.undisturbed("repeated unordered messages").await;
    let mut payloads = pair.a.messages_from("m");
    payloads.sort();
    assert_eq!(payloads, [[0], [1], [2], [3]].map(Vec::from));
}
