//! Messages on behalf of others from members that may not send them, and leaders that are lost while they relay.

use super::cut::cut;
use super::*;
use crate::config::ManualOverrideRecovery;
use crate::core::election::record::Epoch;
use crate::net::frame::MessageRole;

fn record(leader: Option<&str>, term: u64) -> Record {
    Record {
        leader_key: None,
        stamp: Stamp {
            epoch: Epoch::default(),
            term,
        },
        leader: leader.map(id),
        assigned: false,
    }
}

fn relayed(origin: &str, origin_seq: u64, record: &Record) -> MessageRole {
    MessageRole::Relayed {
        origin: id(origin),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        origin_seq,
        token: Opaque::of(record),
    }
}

fn forwarded(origin: &str, record: &Record) -> MessageRole {
    MessageRole::Forwarded {
        origin: id(origin),
        token: Opaque::of(record),
    }
}

fn central(origin_seq: u64, relayed_before: u64) -> MessageRole {
    MessageRole::Central {
        origin_seq,
        relayed_before,
        token: Opaque::of(&Record::default()),
    }
}

/// A room in which an elected leader follows a lost leader that was set by hand.
fn recovering() -> Config {
    Config {
        manual_override_recovery: ManualOverrideRecovery::AutoElect,
        ..quick()
    }
}

fn leader_of(host: &Host) -> Option<String> {
    let snapshot = host.room.snapshot();
    snapshot.leader.as_ref().map(ToString::to_string)
}

#[tokio::test]
async fn a_member_that_does_not_lead_relays_for_no_other() {
    let pair = Pair::settled("impostor").await;
    let mut member = Attacker::new("m", "impostor").join(&pair.a).await;
    let leader = leader_of(&pair.a).expect("settled");
    let token = pair.a.room.snapshot().leader_token.clone();
    let token = token.or_else(|| pair.b.room.snapshot().leader_token.clone());
    let token = token.expect("one of them leads");
    let own = token.decode().expect("a record");
    let mut seq = 0;
    for record in [
        Record::default(),
        record(None, 1),
        record(Some("m"), 0), // below every record
        record(Some("b"), 1 << 10),
        record(Some(&leader), 1),
        own,
    ] {
        for role in [relayed("b", seq, &record), forwarded("b", &record)] {
            member.send_as(seq, 0x100, role, b"forged").await;
            seq += 1;
        }
    }
    member.send(seq, b"its own").await;
    pair.a.wait_for(reported("m", b"its own"), 1).await;
    assert_eq!(pair.a.times(&reported("b", b"forged")), 0);
    assert_eq!(pair.a.room.dropped_relays(), seq);
    assert_eq!(leader_of(&pair.a), Some(leader), "it is believed no record");
    pair.undisturbed("an impostor").await;
}

#[tokio::test]
async fn a_leader_relays_for_others_but_not_for_the_receiver_and_each_broadcast_counts_once() {
    let pair = Pair::settled("speaker").await;
    let mut member = Attacker::new("m", "speaker").join_to_lead(&pair.a).await;
    // A newer record in its own name makes it the leader in the receiver's view.
    let mine = record(Some("m"), 1 << 10);
    let incarnation = life_of_b(&pair, "speaker").await;
    let of_b = |origin_seq| MessageRole::Relayed {
        origin: id("b"),
        incarnation,
        origin_seq,
        token: Opaque::of(&mine),
    };
    for (seq, role) in (0..).zip([
        of_b(7),
        of_b(7),
        of_b(5),
        relayed("a", 8, &mine),
        forwarded("a", &mine),
        forwarded("b", &mine),
        forwarded("b", &mine),
    ]) {
        let payload = format!("{seq}");
        member.send_as(seq, 0x100, role, payload.as_bytes()).await;
    }
    pair.a.wait_for(reported("b", b"6"), 1).await;
    let numbers = pair.a.messages_from("b");
    assert_eq!(numbers, [b"0", b"2", b"5", b"6"].map(|n| n.to_vec()));
    assert!(pair.a.messages_from("a").is_empty());
    assert_eq!(pair.a.room.dropped_relays(), 2);
    pair.undisturbed("a speaker").await;
}

#[tokio::test]
async fn broadcasts_that_come_twice_or_out_of_turn_are_relayed_once_in_turn() {
    let pair = Pair::settled("relay").await;
    let (leader, other) = match leader_of(&pair.a).as_deref() {
        Some("a") => (&pair.a, &pair.b),
        _ => (&pair.b, &pair.a),
    };
    let mut member = Attacker::new("m", "relay").join(leader).await;
    for (seq, (number, before)) in (0..).zip([
        (0, 0),
        (0, 0),
        (2, 0), // 1 is missing
        (1, 0),
        (9, 0),
        (2, 0),
        (1, 1),
        (5, 5), // 3 and 4 went through another leader
    ]) {
        let payload = format!("{number}");
        let role = central(number, before);
        member.send_as(seq, 0x100, role, payload.as_bytes()).await;
    }
    for host in [leader, other] {
        host.wait_for(reported("m", b"5"), 1).await;
        let expected = [b"0", b"1", b"2", b"5"].map(|n| n.to_vec());
        assert_eq!(host.messages_from("m"), expected, "{}", host.name);
    }
    // The answers are cumulative, and the last one covers everything.
    let mut relayed = 0;
    while relayed < 6 {
        let frame = in_time(read_frame(&mut member.recv, 1 << 16)).await;
        let frame = frame.expect("the link lives");
        if let Ok(ControlFrame::Relayed { next, .. }) = postcard::from_bytes(&frame) {
            assert!(next >= relayed, "it goes back");
            relayed = next;
        }
    }
    assert_eq!(relayed, 6);
    pair.undisturbed("repeated broadcasts").await;
}

#[tokio::test]
async fn a_leader_that_asks_for_broadcasts_without_end_gets_an_answer_and_nothing_grows() {
    let pair = Pair::settled("greedy").await;
    let mut member = Attacker::new("m", "greedy").join_to_lead(&pair.a).await;
    member
        .send_as(
            0,
            0x100,
            MessageRole::Leader(Opaque::of(&record(Some("m"), 1 << 10))),
            b"I lead",
        )
        .await;
    pair.a.wait_for(reported("m", b"I lead"), 1).await;
    pair.a.room.set_centralized(true);
    for _ in 0..10 {
        // The honest member may lead again by now.
        let _ = pair.a.room.broadcast(message(&[7; 100]));
    }
    // It reads nothing.
    for _ in 0..2000 {
        member.emit(&ControlFrame::BroadcastAgain).await;
    }
    pair.a.room.set_centralized(false);
    pair.undisturbed("a greedy leader").await;
    let meter = pair.a.room.peer_meter(&id("m")).expect("still a member");
    // The content of a stream's window, and one more copy of the log.
    assert!(meter.queue_bytes <= (2 << 20), "{meter:?}");
}

/// A pair that a leads, and a member that leads for a moment in a's view.
async fn led_for_a_moment(session: &str) -> (Pair, Member) {
    let config = Config {
        handshake_timeout: Duration::from_secs(3),
        ..quick()
    };
    let pair = Pair::settled_with(session, config).await;
    pair.a.room.set_leader(&id("a")).expect("itself");
    eventually("b follows", || leader_of(&pair.b).as_deref() == Some("a")).await;
    pair.b.room.set_centralized(true);
    for n in 0..3 {
        pair.b.broadcast(n).await;
    }
    pair.a.wait_for(reported("b", &[2]), 1).await;
    let member = Attacker::new("m", session).join_to_lead(&pair.a).await;
    (pair, member)
}

/// A record of m that is newer than any that a knows.
fn usurped(pair: &Pair, member: &Member) -> Record {
    let token = pair.a.room.snapshot().leader_token.clone();
    let mut record: Record = token.expect("a leads").decode().expect("a record");
    record.stamp.term += 100;
    record.leader = Some(id("m"));
    record.leader_key = Some(member.key);
    record.assigned = false;
    record
}

/// The incarnation in b's Hello.
async fn life_of_b(pair: &Pair, session: &str) -> Incarnation {
    let spy = Attacker::new("spy", session);
    let mut hello = spy.hello();
    hello.policy.authority = Authority::LeaderOnly;
    let (_connection, _send, _recv, ack) = spy.say_hello(&pair.b, &hello).await;
    assert_eq!(ack.code, -20);
    ack.hello.incarnation
}

/// Checks that b's broadcasts arrive as before, after the member is deposed.
async fn messages_of_b_arrive_again(pair: &Pair) {
    pair.a.room.set_leader(&id("a")).expect("itself");
    eventually("b follows again", || {
        leader_of(&pair.b).as_deref() == Some("a")
    })
    .await;
    let mut expected = vec![vec![0], vec![1], vec![2]];
    for n in 3..20 {
        pair.b.broadcast(n).await;
        expected.push(vec![n]);
    }
    pair.a.wait_for(reported("b", &[19]), 1).await;
    let received = pair.a.messages_from("b").into_iter();
    let received: Vec<_> = received.filter(|payload| payload.len() == 1).collect();
    assert_eq!(received, expected);
}

#[tokio::test]
async fn a_leader_that_invents_an_incarnation_of_another_does_not_silence_it() {
    let (pair, mut member) = led_for_a_moment("made up incarnation").await;
    let record = usurped(&pair, &member);
    let last = |random| Incarnation {
        started_us: u64::MAX,
        random,
    };
    // The first waits for that incarnation; the second does not wait again; the third waits for
    // an incarnation of its own.
    let before = pair.a.room.dropped_relays();
    for (seq, random) in [(0, 0), (1, 0), (2, 1)] {
        let role = MessageRole::Relayed {
            origin: id("b"),
            incarnation: last(random),
            origin_seq: 0,
            token: Opaque::of(&record),
        };
        member.send_as(seq, 0x100, role, b"forged").await;
    }
    member.send(3, b"behind").await;
    pair.undisturbed("a lane that waits").await;
    assert_eq!(pair.a.times(&reported("m", b"behind")), 0);
    pair.a.wait_for(reported("m", b"behind"), 1).await;
    assert_eq!(pair.a.times(&reported("b", b"forged")), 0);
    assert_eq!(pair.a.room.dropped_relays() - before, 3);
    messages_of_b_arrive_again(&pair).await;
}

#[tokio::test]
async fn a_leader_that_invents_numbers_of_another_does_not_silence_it() {
    let (pair, mut member) = led_for_a_moment("made up numbers").await;
    let record = usurped(&pair, &member);
    let incarnation = life_of_b(&pair, "made up numbers").await;
    let far = (0..200).map(|n| 1000 + 2 * n);
    for (seq, origin_seq) in (0..).zip(far.chain([u64::MAX - 1])) {
        let role = MessageRole::Relayed {
            origin: id("b"),
            incarnation,
            origin_seq,
            token: Opaque::of(&record),
        };
        member.send_as(seq, 0x100, role, b"forged").await;
    }
    pair.a.wait_for(reported("b", b"forged"), 201).await;
    messages_of_b_arrive_again(&pair).await;
}

/// Deposes the member: a leads again.
async fn deposed(pair: &Pair, member: &mut Member, record: &Record) {
    member
        .send_as(0, 0x100, forwarded("b", record), b"while it led")
        .await;
    pair.a.wait_for(reported("b", b"while it led"), 1).await;
    pair.a.room.set_leader(&id("a")).expect("itself");
    eventually("b follows again", || {
        leader_of(&pair.a).as_deref() == Some("a") && leader_of(&pair.b).as_deref() == Some("a")
    })
    .await;
}

#[tokio::test]
async fn numbers_that_a_former_leader_uses_up_cost_the_origin_nothing() {
    let (pair, mut member) = led_for_a_moment("used up").await;
    let record = usurped(&pair, &member);
    let incarnation = life_of_b(&pair, "used up").await;
    deposed(&pair, &mut member, &record).await;
    pair.b.broadcast(3).await;
    pair.a.wait_for(reported("b", &[3]), 1).await;
    // The leader's relayed messages reveal the next numbers.
    let next = pair.b.room.shared.outboxes.next_broadcast();
    for n in 0..10 {
        let role = MessageRole::Relayed {
            origin: id("b"),
            incarnation,
            origin_seq: next + n,
            token: Opaque::of(&record),
        };
        member.send_as(1 + n, 0x100, role, b"forged").await;
    }
    member.send(11, b"behind").await;
    pair.a.wait_for(reported("m", b"behind"), 1).await;
    let mut expected: Vec<_> = (0..4).map(|n| vec![n]).collect();
    for n in 4..20 {
        pair.b.broadcast(n).await;
        expected.push(vec![n]);
    }
    pair.a.wait_for(reported("b", &[19]), 1).await;
    let received = pair.a.messages_from("b").into_iter();
    let received: Vec<_> = received.filter(|payload| payload.len() == 1).collect();
    assert_eq!(received, expected, "each once");
}

#[tokio::test]
async fn a_former_leader_may_relay_for_a_moment_only() {
    let (pair, mut member) = led_for_a_moment("a moment").await;
    let record = usurped(&pair, &member);
    deposed(&pair, &mut member, &record).await;
    let began = std::time::Instant::now();
    let before = pair.a.room.dropped_relays();
    let mut seq = 1_u64;
    while pair.a.room.dropped_relays() == before {
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{seq} are delivered"
        );
        let payload = seq.to_be_bytes();
        member
            .send_as(seq, 0x100, forwarded("b", &record), &payload)
            .await;
        seq += 1;
        sleep(Duration::from_millis(50)).await;
    }
    assert!(
        began.elapsed() > Duration::from_millis(1900),
        "what was on its way counts"
    );
    let delivered = pair.a.messages_from("b").len();
    for _ in 0..5 {
        member
            .send_as(seq, 0x100, forwarded("b", &record), b"late")
            .await;
        seq += 1;
    }
    member.send(seq, b"behind").await;
    pair.a.wait_for(reported("m", b"behind"), 1).await;
    assert_eq!(pair.a.messages_from("b").len(), delivered);
    assert!(pair.a.room.dropped_relays() >= before + 5);
    messages_of_b_arrive_again(&pair).await;
}

/// A room of four that a leads. The leader is cut off from d, which gives it up soon; the leader does not notice.
async fn half_cut(session: &str) -> [Host; 4] {
    let patient = Config {
        heartbeat_timeout_multiplier: 300,
        send_queue_capacity: 8,
        ..recovering()
    };
    let configs = [patient, recovering(), recovering(), recovering()];
    let mut names = ["a", "b", "c", "d"].into_iter();
    let hosts = configs.map(|config| Host::open_with(names.next().expect("four"), session, config));
    for host in &hosts[1..] {
        assert_eq!(host.connect(&hosts[0]).await, (true, 0));
    }
    hosts[0].room.set_leader(&id("a")).expect("itself");
    for host in &hosts {
        eventually("a full mesh that a leads", || {
            host.room.snapshot().connected == 3 && leader_of(host).as_deref() == Some("a")
        })
        .await;
        host.room.set_centralized(true);
    }
    in_time(hosts[0].room.shared.outboxes.flushed()).await;
    cut(hosts[0].port(), hosts[3].port());
    cut(hosts[3].port(), hosts[0].port());
    hosts
}

fn numbers_from(host: &Host, origin: &str) -> Vec<u8> {
    let messages = host.messages_from(origin);
    messages.iter().map(|payload| payload[0]).collect()
}

#[tokio::test]
async fn a_broadcast_that_a_lost_leader_could_not_relay_goes_through_the_next_once() {
    const COUNT: u8 = 20;
    let hosts = half_cut("lost leader").await;
    let [lost, origin, receiver, cut_off] = &hosts;
    for n in 0..COUNT {
        origin.broadcast(n).await;
    }
    // Eight fit into the leader's queue to d, and the ninth waits for all.
    eventually("eight of them", || numbers_from(receiver, "b").len() == 8).await;
    eventually("eight at the leader", || numbers_from(lost, "b").len() == 8).await;
    eventually("the origin knows it", || {
        origin.room.shared.outboxes.unrelayed() == u64::from(COUNT) - 8
    })
    .await;
    for host in [origin, receiver] {
        cut(lost.port(), host.port());
        cut(host.port(), lost.port());
    }
    let all: Vec<_> = (0..COUNT).collect();
    receiver.wait_for(reported("b", &[COUNT - 1]), 1).await;
    cut_off.wait_for(reported("b", &[COUNT - 1]), 1).await;
    assert_eq!(numbers_from(receiver, "b"), all, "once, in order");
    // Messages that the lost leader had queued for d are lost; no more is promised.
    assert_eq!(numbers_from(cut_off, "b"), all[8..]);
    assert_eq!(numbers_from(lost, "b"), all[..8]);
    origin.broadcast(COUNT).await;
    for host in [receiver, cut_off] {
        host.wait_for(reported("b", &[COUNT]), 1).await;
    }
}

#[tokio::test]
async fn the_leader_is_stopped_for_one_origin_only_and_goes_on_when_the_peer_is_gone() {
    let hosts = half_cut("stopped leader").await;
    let [leader, origin, receiver, _] = &hosts;
    for n in 0..20 {
        origin.broadcast(n).await;
    }
    eventually("eight of them", || numbers_from(receiver, "b").len() == 8).await;
    // The origin waits behind its own broadcasts; others do not.
    origin.send("a", b"behind").await;
    receiver.send("a", b"beside").await;
    leader.wait_for(reported("c", b"beside"), 1).await;
    assert_eq!(numbers_from(leader, "b").len(), 8);
    leader.room.disconnect(&id("d")).expect("another");
    leader.wait_for(reported("b", b"behind"), 1).await;
    let all: Vec<_> = (0..20).collect();
    receiver.wait_for(reported("b", &[19]), 1).await;
    assert_eq!(numbers_from(receiver, "b"), all);
}
