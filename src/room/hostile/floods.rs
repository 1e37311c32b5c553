//! Floods: members that send too much, or read nothing, cost the others a bounded amount.

use std::time::Instant;

use room_transport::identity::client_config;
use room_transport::quic::{RECEIVE_WINDOW_BYTES, transport_config};

use super::memory::resident_bytes;
use super::*;
use crate::core::id::Fingerprint;
use crate::core::wire::{Ban, MAX_KICKED, RoomRules};
use crate::net::close;
use crate::net::compression::pack;
use crate::net::frame::{OWN_FLAG, UNORDERED_LANE};

#[tokio::test]
async fn parts_of_long_messages_hold_a_bounded_number_of_bytes() {
    let pair = Pair::settled("unread").await;
    let mut member = Attacker::new("m", "unread").join(&pair.a).await;
    member.send(0, b"on the lane").await;
    let reported = Report::Message("m".into(), b"on the lane".to_vec());
    pair.a.wait_for(reported, 1).await;
    // Each begins a message of maximum length, and sends all but its last bytes.
    let len = (256 << 10) as u32;
    let mut part = len.to_le_bytes().to_vec();
    part.resize(len as usize, 7);
    let (mut lanes, mut total) = (Vec::new(), 0);
    for channel in 1..=255 {
        let mut lane = member.open_lane(LaneHeader { lane: channel }).await;
        let mut written = 0;
        let limit = Duration::from_millis(300);
        while written < part.len()
            && let Ok(Ok(len)) = tokio::time::timeout(limit, lane.write(&part[written..])).await
        {
            written += len;
        }
        total += written;
        if written < part.len() {
            break;
        }
        lanes.push(lane);
    }
    assert!(lanes.len() < 255, "nothing holds the lanes back");
    let bound = 2 * RECEIVE_WINDOW_BYTES as usize + 2 * len as usize;
    assert!(total <= bound, "{total}");
    pair.undisturbed("unread lanes").await;
}

/// Each takes a kilobyte in the network and 256 KiB at the host. The process runs only this test.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn messages_are_unpacked_only_where_there_is_room_for_them() {
    const STREAMS: u64 = 400;
    const LEN: usize = 256 << 10;
    let pair = Pair::settled("unpacked").await;
    let (look_up, looks_away) = blocking::channel::<()>();
    let looks_away = std::sync::Mutex::new(looks_away);
    let took = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = Arc::clone(&took);
    let receive = move |message: &Incoming| {
        assert_eq!(message.payload.len(), LEN);
        // Once the other end is dropped, it takes every message.
        let _ = looks_away.lock().expect("not poisoned").recv();
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let dispatch = pair.a.room.dispatch();
    dispatch.register::<kind::Receive>(Some(Arc::new(receive)));
    let member = Attacker::new("m", "unpacked").join(&pair.a).await;
    let packed = pack(&vec![7; LEN]).expect("it repeats itself");
    let before = resident_bytes().expect("Linux reports it");
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let header = LaneHeader {
            lane: UNORDERED_LANE,
        };
        let mut stream = member.open_lane(header).await;
        let frame = message_frame(number, 0x0100, OWN_FLAG, MessageRole::Peer, &packed);
        stream.write_all(&frame).await.expect("written");
        stream.finish().expect("open");
        streams.push(stream);
    }
    for stream in &mut streams {
        in_time(stream.stopped()).await.expect("it has all of it");
    }
    // The queue to the host and the shared part have 4 MiB each, the member its share; another 8 MiB
    // are for QUIC and the test.
    let bound = (4 << 20) + (4 << 20) + LEN as u64 + (8 << 20);
    // Half a second of real time: if received messages are decompressed, it happens within a few milliseconds.
    for _ in 0..50 {
        let now = resident_bytes().expect("Linux reports it");
        let grown = now.saturating_sub(before);
        assert!(grown <= bound, "{grown} for {bound}");
        sleep(Duration::from_millis(10)).await;
    }
    // No message was dropped, and none waits forever.
    drop(look_up);
    let all = || took.load(std::sync::atomic::Ordering::Relaxed) == STREAMS;
    eventually("all are taken", all).await;
}

/// Joins with a control stream whose window is `window` bytes.
async fn join_with_window(attacker: &Attacker, to: &Host, window: u32) -> Member {
    let mut transport = transport_config();
    transport.stream_receive_window(VarInt::from_u32(window));
    let config = client_config(&attacker.process.identity, None, Arc::new(transport));
    let config = config.expect("a configuration");
    let dialled = attacker.process.dial_with(config, to.address()).await;
    let connection = dialled.expect("connected");
    let admitted = in_time(dial_pake(&connection, &attacker.proof)).await;
    let (mut send, mut recv) = admitted.expect("the room is known");
    write_hello(&mut send, &attacker.hello())
        .await
        .expect("written");
    let ack = in_time(read_hello_ack(&mut recv)).await.expect("an answer");
    assert_eq!(ack.code, 0);
    let mut member = Member {
        connection,
        control: send,
        recv,
        key: attacker.proof.own_key,
        incarnation: attacker.incarnation(),
        lane: None,
        beats: 0,
    };
    member.send_bytes(&first_words()).await;
    to.wait_for(joined(&attacker.name), 1).await;
    member
}

/// Asks for answers until the other end closes the link.
async fn demand_answers(member: &mut Member, candidate: &str, pace: Duration) {
    for round in 0..100_000 {
        if member.connection.close_reason().is_some() {
            return;
        }
        let request = ElectionMessage::PreVoteRequest {
            round,
            candidate: id(candidate),
            term: 1,
        };
        member
            .notify_core(Message::from(Stamped::new(Stamp::default(), request)))
            .await;
        if !pace.is_zero() {
            sleep(pace).await;
        }
    }
}

#[tokio::test]
async fn a_member_that_reads_no_control_messages_is_given_up_after_the_write_timeout() {
    let config = Config {
        write_timeout: Duration::from_millis(500),
        ..quick()
    };
    let pair = Pair::settled_with("stalled", config).await;
    let attacker = Attacker::new("m", "stalled");
    let mut member = join_with_window(&attacker, &pair.a, 2048).await;
    let start = Instant::now();
    demand_answers(&mut member, "m", Duration::from_millis(20)).await;
    assert!(matches!(
        member.closed_or_reset().await,
        Some(close::LOST) | None
    ));
    // At this pace its queue would fill only after 20 s.
    assert!(start.elapsed() < Duration::from_secs(15));
    pair.a.wait_for(left("m"), 1).await;
    pair.undisturbed("a stalled member").await;
}

#[tokio::test]
async fn the_answers_that_a_member_does_not_read_are_bounded_in_number() {
    let config = Config {
        write_timeout: Duration::from_secs(60),
        ..quick()
    };
    let pair = Pair::settled_with("queue", config).await;
    let attacker = Attacker::new("m", "queue");
    let mut member = join_with_window(&attacker, &pair.a, 2048).await;
    demand_answers(&mut member, "m", Duration::ZERO).await;
    assert!(matches!(
        member.closed_or_reset().await,
        Some(close::LOST) | None
    ));
    pair.a.wait_for(left("m"), 1).await;
    pair.undisturbed("a full queue").await;
}

#[tokio::test]
async fn a_flood_of_valid_control_messages_stops_no_member() {
    let pair = Pair::settled("flood").await;
    let mut member = Attacker::new("m", "flood").join(&pair.a).await;
    let mut recv = std::mem::replace(&mut member.recv, {
        let other = Attacker::new("n", "flood").join(&pair.a).await;
        other.recv
    });
    let reader = tokio::spawn(async move { while read_frame(&mut recv, 1 << 20).await.is_ok() {} });
    let flood = async {
        for _ in 0..20_000 {
            let follows = Pulse::Follows {
                record: Record::default(),
                live: false,
            };
            member.notify_core(heartbeat(follows)).await;
        }
    };
    let work = async {
        for n in 0..5 {
            pair.undisturbed(&format!("flood {n}")).await;
        }
    };
    tokio::join!(flood, work);
    reader.abort();
    assert_eq!(pair.a.times(&left("b")), 0);
}

/// A long list of forged names makes each of the leader's rules messages 50 kB long.
#[tokio::test]
async fn a_flood_of_room_rules_costs_no_honest_member_its_link_and_the_leader_no_power() {
    let pair = Pair::settled("rules").await;
    let (leader, other) = match pair.a.room.snapshot().is_leader {
        true => (&pair.a, &pair.b),
        false => (&pair.b, &pair.a),
    };
    let mut member = Attacker::new("m", "rules").join(leader).await;
    let long_name = |n| id(&format!("{n:0>64}"));
    let made_up = (0..MAX_KICKED).map(|n| Ban::new(long_name(n), Fingerprint([9; 32])));
    let list = RoomRules {
        bans: made_up.collect(),
        ..RoomRules::default()
    };
    member.notify_core(Message::RoomRules(list)).await;
    for count in 0..20_000 {
        let limit = RoomRules {
            version: (Stamp::default(), count),
            set_by: None,
            max_peers: 1,
            bans: Vec::new(),
        };
        member.notify_core(Message::RoomRules(limit)).await;
    }
    pair.undisturbed("a flood of room rules").await;
    assert!(leader.has("m"), "its messages are ignored, no more");
    let newcomer = Host::open("newcomer", "rules");
    assert_eq!(newcomer.connect(other).await, (true, 0));
    leader.room.kick(&id("m"), 1, b"liar").expect("it leads");
    leader.wait_for(left("m"), 1).await;
    pair.undisturbed("a kick").await;
}
