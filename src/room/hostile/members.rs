//! Members that break the protocol lose their link, and the others notice nothing else.

use std::time::Instant;

use super::*;
use crate::core::election::record::Epoch;
use crate::core::id::Fingerprint;
use crate::core::wire::{
    Candidate, Decrees, ElectionMessage, Heartbeat, MAX_CONTROL_FRAME_BYTES,
    MAX_JOIN_PAYLOAD_BYTES, MAX_KICKED, MAX_PEER_LIST_ENTRIES, MAX_REASON_BYTES, PeerEntry, Pulse,
};
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::net::close;
use crate::net::frame::OWN_FLAG;
use crate::net::identity::{client_config, transport_config};
use crate::net::packing::pack;

/// Bytes that no member sends, and where.
enum Offence {
    Control(Vec<u8>),
    Lane(Vec<u8>),
    Datagram(Vec<u8>),
    EndOfControl,
}

fn framed<T: Serialize>(value: &T) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    put_value(&mut buffer, value).expect("encodes");
    buffer.to_vec()
}

fn length(len: usize) -> Vec<u8> {
    u32::try_from(len).expect("short").to_le_bytes().to_vec()
}

fn core(stamp: Stamp, message: Message) -> Offence {
    Offence::Control(framed(&ControlFrame::Core(Envelope {
        writes: 0,
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        stamp,
        message,
    })))
}

fn election(message: ElectionMessage) -> Offence {
    core(Stamp::default(), Message::Election(message))
}

fn pulse(pulse: Pulse) -> Offence {
    let heartbeat = Heartbeat {
        memory: None,
        seq: u64::MAX,
        echo: None,
        pulse,
    };
    core(Stamp::default(), Message::Heartbeat(heartbeat))
}

fn lane_message(seq: u64, msg_type: u16, role: MessageRole, payload: &[u8]) -> Offence {
    let header = MessageHeader {
        seq,
        msg_type,
        flags: 0,
        role,
    };
    let mut buffer = BytesMut::new();
    put_message(&mut buffer, &header, payload).expect("encodes");
    Offence::Lane(buffer.to_vec())
}

/// A message that says that its payload is compressed.
fn packed_message(payload: &[u8]) -> Offence {
    let header = MessageHeader {
        seq: 0,
        msg_type: 0x100,
        flags: OWN_FLAG,
        role: MessageRole::Peer,
    };
    let mut buffer = BytesMut::new();
    put_message(&mut buffer, &header, payload).expect("encodes");
    Offence::Lane(buffer.to_vec())
}

/// The compressed form of so many zeros.
fn bomb(len: usize) -> Vec<u8> {
    pack(&vec![0; len]).expect("zeros are short").to_vec()
}

fn led_by(name: &str, term: u64) -> Record {
    Record {
        stamp: Stamp {
            epoch: Epoch::default(),
            term,
        },
        leader: Some(id(name)),
        assigned: false,
    }
}

fn entry(name: &str, addresses: Vec<SocketAddr>) -> PeerEntry {
    PeerEntry {
        id: id(name),
        key: Fingerprint([9; 32]),
        addresses,
    }
}

fn offences() -> Vec<(&'static str, Offence)> {
    use MessageRole::{Central, Leader, Peer, Relayed};
    let max = quick().max_message_size;
    let relayed = |origin_seq| Relayed {
        origin: id("b"),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        origin_seq,
        record: led_by("m", 1),
    };
    let central = |origin_seq, relayed_before| Central {
        origin_seq,
        relayed_before,
        record: Record::default(),
    };
    let candidate = id("b");
    let someone = SocketAddr::from(([127, 0, 0, 1], 9));
    vec![
        ("a type of the library", lane_message(0, 0xff, Peer, b"x")),
        ("a number left out", lane_message(1, 0x100, Peer, b"x")),
        (
            "the largest number",
            lane_message(u64::MAX, 0x100, Peer, b"x"),
        ),
        (
            "a relayed number that runs out",
            lane_message(0, 0x100, relayed(u64::MAX), b"x"),
        ),
        (
            "a broadcast's number that runs out",
            lane_message(0, 0x100, central(u64::MAX, 0), b"x"),
        ),
        (
            "a broadcast that was relayed",
            lane_message(0, 0x100, central(0, 1), b"x"),
        ),
        (
            "a broadcast that was never sent is relayed",
            Offence::Control(framed(&ControlFrame::Relayed { next: 1 })),
        ),
        ("half of a length", packed_message(&[9, 0, 0])),
        ("a bomb", packed_message(&bomb(max + 1))),
        (
            "a bomb of 4 GiB",
            packed_message(&[&[0xff; 4][..], &bomb(max)[4..]].concat()),
        ),
        ("a length without a block", packed_message(&[9, 0, 0, 0])),
        (
            "a length that is too short",
            packed_message(&[&[9, 0, 0, 0], &bomb(1000)[4..]].concat()),
        ),
        (
            "a length that is too long",
            packed_message(&[&[0, 9, 0, 0], &bomb(1000)[4..]].concat()),
        ),
        ("a block that is cut", packed_message(&bomb(1000)[..8])),
        (
            "another leader's record",
            lane_message(0, 0x100, Leader(led_by("b", 1)), b"x"),
        ),
        (
            "one byte too long",
            lane_message(0, 0x100, Peer, &vec![0; max + 1]),
        ),
        ("4 GiB", Offence::Lane(vec![0xff; 4])),
        (
            "a malformed header",
            Offence::Lane([length(3), vec![0xff; 3]].concat()),
        ),
        ("an empty frame", Offence::Lane(length(0))),
        (
            "an ack of nothing",
            Offence::Control(framed(&ControlFrame::Ack { lane: 0, next: 1 })),
        ),
        (
            "an ack of another lane",
            Offence::Control(framed(&ControlFrame::Ack { lane: 3, next: 0 })),
        ),
        (
            "the largest ack",
            Offence::Control(framed(&ControlFrame::Ack {
                lane: 0,
                next: u64::MAX,
            })),
        ),
        (
            "Ready again",
            Offence::Control(framed(&ControlFrame::Ready)),
        ),
        (
            "a malformed frame",
            Offence::Control([length(20), vec![0xff; 20]].concat()),
        ),
        (
            "a frame too long",
            Offence::Control(length(MAX_CONTROL_FRAME_BYTES + 1)),
        ),
        ("the end of the control stream", Offence::EndOfControl),
        ("a malformed datagram", Offence::Datagram(vec![0xff; 9])),
        (
            "another's vote request",
            election(ElectionMessage::VoteRequest {
                round: 1,
                candidate: candidate.clone(),
                asked_by: Some(id("a")),
            }),
        ),
        (
            "another's pre-vote request",
            election(ElectionMessage::PreVoteRequest {
                round: u64::MAX,
                candidate,
                term: u64::MAX,
            }),
        ),
        (
            "another's assignment",
            election(ElectionMessage::LeaderAssign {
                record: led_by("b", 1),
                seq: 1,
            }),
        ),
        (
            "another's claim",
            pulse(Pulse::Leads {
                record: led_by("b", 1),
                weight: u32::MAX,
                led_ms: u64::MAX,
                election_timeout_min_ms: 1500,
            }),
        ),
        (
            "a long peer list",
            core(
                Stamp::default(),
                Message::PeerList(vec![entry("x", Vec::new()); MAX_PEER_LIST_ENTRIES + 1]),
            ),
        ),
        (
            "a peer list of 10,000",
            core(
                Stamp::default(),
                Message::PeerList(vec![entry("x", Vec::new()); 10_000]),
            ),
        ),
        (
            "a long join payload",
            core(
                Stamp::default(),
                Message::JoinRequest {
                    request: 1,
                    candidate: Candidate {
                        entry: entry("x", Vec::new()),
                        incarnation: Incarnation {
                            started_us: 1,
                            random: 1,
                        },
                        payload: vec![0; MAX_JOIN_PAYLOAD_BYTES + 1],
                    },
                },
            ),
        ),
        (
            "an admission with many addresses",
            core(
                Stamp::default(),
                Message::Admitted {
                    entry: entry("x", vec![someone; 5]),
                    incarnation: Incarnation {
                        started_us: 1,
                        random: 1,
                    },
                },
            ),
        ),
        (
            "a kick with a long reason",
            core(
                Stamp::default(),
                Message::Kicked {
                    peer: id("b"),
                    key: Fingerprint([9; 32]),
                    code: 1,
                    bytes: vec![0; MAX_REASON_BYTES + 1],
                },
            ),
        ),
        (
            "a long list of kicked peers",
            core(
                Stamp::default(),
                Message::Decrees(Decrees {
                    kicked: vec![(id("x"), Fingerprint([9; 32])); MAX_KICKED + 1],
                    ..Decrees::default()
                }),
            ),
        ),
        (
            "many addresses",
            core(
                Stamp::default(),
                Message::PeerList(vec![entry("x", vec![someone; 5])]),
            ),
        ),
    ]
}

#[tokio::test]
async fn each_offence_costs_the_offender_its_link_and_nobody_else_anything() {
    let pair = Pair::settled("offences").await;
    let mut expected = vec![joined("b")];
    for (n, (what, offence)) in offences().into_iter().enumerate() {
        let name = format!("m{n}");
        let offender = Attacker::new(&name, "offences");
        let mut member = offender.join(&pair.a).await;
        match offence {
            Offence::Control(bytes) => member.say_bytes(&bytes).await,
            Offence::Lane(bytes) => member.send_bytes(&bytes).await,
            Offence::Datagram(bytes) => {
                let sent = member.connection.send_datagram(bytes.into());
                sent.expect("datagrams are on");
            }
            Offence::EndOfControl => member.control.finish().expect("open"),
        }
        assert_eq!(member.closed().await, close::VIOLATION, "{what}");
        pair.a.wait_for(left(&name), 1).await;
        pair.undisturbed(what).await;
        expected.extend([joined(&name), left(&name)]);
        assert_eq!(pair.a.comings_and_goings(), expected, "{what}");
        // It does not come back by itself.
        assert_eq!(
            offender.refused(&pair.a, &offender.hello()).await,
            -18,
            "{what}"
        );
    }
    assert_eq!(pair.b.comings_and_goings(), vec![joined("a")]);
    eventually("nothing is left of the offenders", || {
        let census = pair.a.census();
        (census.connections, census.sessions, census.links) == (1, 1, 1)
    })
    .await;
}

/// The heartbeat of one that leads in `term`.
fn claim(name: &str, term: u64) -> Message {
    Message::Heartbeat(Heartbeat {
        memory: None,
        seq: term,
        echo: None,
        pulse: Pulse::Leads {
            record: led_by(name, term),
            weight: 9,
            led_ms: 0,
            election_timeout_min_ms: 300,
        },
    })
}

fn leader_of(host: &Host) -> Option<String> {
    let snapshot = host.room.snapshot();
    snapshot.leader.as_ref().map(ToString::to_string)
}

/// Whoever says such a number may have it from a third one, so that it is no offence.
#[tokio::test]
async fn a_counter_that_runs_away_costs_nobody_anything() {
    let pair = Pair::settled("runaway").await;
    let mut member = Attacker::new("m", "runaway").join_to_lead(&pair.a).await;
    let (a, b) = (leader_of(&pair.a), leader_of(&pair.b));
    for term in [1 << 48, u64::MAX] {
        let stamp = led_by("m", term).stamp;
        let record = led_by("b", term);
        let follows = Heartbeat {
            memory: None,
            seq: term,
            echo: None,
            pulse: Pulse::Follows { record, live: true },
        };
        let nack = ElectionMessage::Nack {
            record: Record::default(),
            live: None,
        };
        let decrees = Decrees {
            version: (Stamp::default(), term),
            max_peers: 1,
            kicked: Vec::new(),
        };
        member.tell_core(claim("m", term)).await;
        member.tell_core(Message::Heartbeat(follows)).await;
        member.tell_core_at(stamp, Message::Election(nack)).await;
        member.tell_core(Message::Decrees(decrees)).await;
    }
    let far = MessageRole::Leader(led_by("m", u64::MAX));
    member.send_as(0, 0x100, far, b"dropped").await;
    member.send(1, b"its own").await;
    let own = Told::Message("m".to_owned(), b"its own".to_vec());
    pair.a.wait_for(own, 1).await;
    assert_eq!(pair.a.messages_from("m"), [b"its own".to_vec()]);
    assert_eq!((leader_of(&pair.a), leader_of(&pair.b)), (a, b));
    assert_eq!(pair.a.times(&left("m")), 0);
    pair.undisturbed("a counter that runs away").await;
}

/// Each in turn makes both members go by a term of its own, and is gone.
#[tokio::test]
async fn three_liars_in_a_row_cost_no_member_another_and_no_newcomer_its_place() {
    let pair = Pair::settled("liars").await;
    for n in 1..=3 {
        let name = format!("m{n}");
        let liar = Attacker::new(&name, "liars");
        for host in [&pair.a, &pair.b] {
            let mut member = liar.join_to_lead(host).await;
            member.tell_core(claim(&name, n << 21)).await;
            eventually("it is believed", || leader_of(host).as_ref() == Some(&name)).await;
        }
        eventually("they agree without it", || {
            let leader = leader_of(&pair.a);
            leader.is_some() && leader.as_ref() != Some(&name) && leader == leader_of(&pair.b)
        })
        .await;
        pair.undisturbed(&name).await;
    }
    let c = Host::open("c", "liars");
    assert_eq!(c.connect(&pair.a).await, (true, 0));
    for host in [&pair.a, &pair.b] {
        host.wait_for(joined("c"), 1).await;
        c.wait_for(joined(&host.name), 1).await;
    }
    eventually("all agree", || {
        let leader = leader_of(&c);
        leader.is_some() && leader == leader_of(&pair.a) && leader == leader_of(&pair.b)
    })
    .await;
    for host in [&pair.a, &pair.b] {
        c.send(&host.name, b"here to stay").await;
        let told = Told::Message("c".to_owned(), b"here to stay".to_vec());
        host.wait_for(told, 1).await;
        assert_eq!((host.times(&left("c")), c.times(&left(&host.name))), (0, 0));
    }
    pair.undisturbed("a newcomer").await;
}

/// One of two is made to go by what the other never heard of.
#[tokio::test]
async fn three_claims_to_one_victim_cost_it_nobody() {
    let pair = Pair::settled("victim").await;
    let mut member = Attacker::new("m", "victim").join_to_lead(&pair.a).await;
    for n in 1..=3 {
        member.tell_core(claim("m", n << 20)).await;
    }
    eventually("it is believed", || {
        leader_of(&pair.a).as_deref() == Some("m")
    })
    .await;
    drop(member);
    eventually("they agree without it", || {
        let leader = leader_of(&pair.a);
        leader.is_some() && leader.as_deref() != Some("m") && leader == leader_of(&pair.b)
    })
    .await;
    pair.undisturbed("three claims").await;
}

#[tokio::test]
async fn an_offender_does_not_get_back_by_saying_that_its_host_asked_for_it() {
    let pair = Pair::settled("by hand").await;
    let offender = Attacker::new("m", "by hand");
    let mut member = offender.join(&pair.a).await;
    member.say(&ControlFrame::Ready).await;
    assert_eq!(member.closed().await, close::VIOLATION);
    pair.a.wait_for(left("m"), 1).await;
    for name in ["m", "another name"] {
        let by_hand = Hello {
            by_hand: true,
            peer_id: id(name),
            ..offender.hello()
        };
        assert_eq!(offender.refused(&pair.a, &by_hand).await, -18, "{name}");
    }
    // Who has that name and another key has broken no rule.
    Attacker::new("m", "by hand").join(&pair.a).await;
    pair.undisturbed("an offender").await;
}

#[tokio::test]
async fn a_lane_of_an_unknown_kind_is_an_offence() {
    let pair = Pair::settled("lanes").await;
    let member = Attacker::new("m", "lanes").join(&pair.a).await;
    let _lane = member.open_lane(LaneHeader { lane: 7 }).await;
    assert_eq!(member.closed().await, close::VIOLATION);
    pair.a.wait_for(left("m"), 1).await;
    pair.undisturbed("an unknown lane").await;
}

/// Their acknowledgements show a loss of what they follow; that an end may send them, every other test of links shows.
#[tokio::test]
async fn what_cannot_wait_is_followed_by_empty_datagrams() {
    let pair = Pair::settled("trailers").await;
    let member = Attacker::new("m", "trailers").join(&pair.a).await;
    for _ in 0..4 {
        let datagram = in_time(member.connection.read_datagram()).await;
        assert_eq!(datagram.expect("linked").len(), 0);
    }
}

#[tokio::test]
async fn streams_that_nobody_reads_hold_a_bounded_number_of_bytes() {
    let pair = Pair::settled("unread").await;
    let mut member = Attacker::new("m", "unread").join(&pair.a).await;
    member.send(0, b"on the lane").await;
    let told = Told::Message("m".into(), b"on the lane".to_vec());
    pair.a.wait_for(told, 1).await;
    let chunk = vec![0; 64 << 10];
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut lane = in_time(member.connection.open_uni()).await.expect("a lane");
        let mut written = 0;
        let patience = Duration::from_millis(300);
        while let Ok(Ok(len)) = tokio::time::timeout(patience, lane.write(&chunk)).await {
            written += len;
            assert!(
                written <= 4 << 20,
                "a stream that nobody reads takes more and more"
            );
        }
        others.push(lane);
    }
    let fifth = tokio::time::timeout(Duration::from_millis(300), member.connection.open_uni());
    assert!(fifth.await.is_err(), "four lanes are open");
    member.send(1, b"still read").await;
    let told = Told::Message("m".into(), b"still read".to_vec());
    pair.a.wait_for(told, 1).await;
    pair.undisturbed("unread lanes").await;
}

/// Joins with a control stream that takes `window` bytes until they are read.
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
        incarnation: attacker.incarnation(),
        lane: None,
    };
    member.say(&ControlFrame::Ready).await;
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
        member.tell_core(Message::Election(request)).await;
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
    assert_eq!(member.closed().await, close::LOST);
    // So slowly its queue would not be full before 20 s.
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
    assert_eq!(member.closed().await, close::LOST);
    pair.a.wait_for(left("m"), 1).await;
    pair.undisturbed("a full queue").await;
}

#[tokio::test]
async fn a_flood_of_valid_control_messages_keeps_nobody_from_working() {
    let pair = Pair::settled("flood").await;
    let mut member = Attacker::new("m", "flood").join(&pair.a).await;
    let mut recv = std::mem::replace(&mut member.recv, {
        let other = Attacker::new("n", "flood").join(&pair.a).await;
        other.recv
    });
    let reader = tokio::spawn(async move { while read_frame(&mut recv, 1 << 20).await.is_ok() {} });
    let flood = async {
        for seq in 0..20_000 {
            let heartbeat = Heartbeat {
                memory: None,
                seq,
                echo: None,
                pulse: Pulse::Follows {
                    record: Record::default(),
                    live: false,
                },
            };
            member.tell_core(Message::Heartbeat(heartbeat)).await;
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

/// A long list of made-up names makes each word of the leader 50 kB long.
#[tokio::test]
async fn a_flood_of_decrees_costs_no_honest_member_its_link_and_the_leader_no_power() {
    let pair = Pair::settled("decrees").await;
    let (leader, other) = match pair.a.room.snapshot().is_leader {
        true => (&pair.a, &pair.b),
        false => (&pair.b, &pair.a),
    };
    let mut member = Attacker::new("m", "decrees").join(leader).await;
    let long_name = |n| id(&format!("{n:0>64}"));
    let made_up = (0..MAX_KICKED).map(|n| (long_name(n), Fingerprint([9; 32])));
    let list = Decrees {
        kicked: made_up.collect(),
        ..Decrees::default()
    };
    member.tell_core(Message::Decrees(list)).await;
    for count in 0..20_000 {
        let limit = Decrees {
            version: (Stamp::default(), count),
            max_peers: 1,
            kicked: Vec::new(),
        };
        member.tell_core(Message::Decrees(limit)).await;
    }
    pair.undisturbed("a flood of decrees").await;
    assert!(leader.has("m"), "it was not heard, no more");
    let newcomer = Host::open("newcomer", "decrees");
    assert_eq!(newcomer.connect(other).await, (true, 0));
    leader.room.kick(&id("m"), 1, b"liar").expect("it leads");
    leader.wait_for(left("m"), 1).await;
    pair.undisturbed("a kick").await;
}

#[tokio::test]
async fn some_addresses_are_never_dialled_whoever_names_them() {
    let pair = Pair::settled("addresses").await;
    let mut member = Attacker::new("m", "addresses").join(&pair.a).await;
    let bad = [
        "224.0.0.1:9",
        "[ff02::1]:9",
        "255.255.255.255:9",
        "0.0.0.0:9",
        "127.0.0.1:0",
    ];
    let entries = bad.iter().enumerate().map(|(n, address)| {
        let address = address.parse().expect("an address");
        entry(&format!("x{n}"), vec![address])
    });
    member.tell_core(Message::PeerList(entries.collect())).await;
    pair.undisturbed("bad addresses").await;
    // a is the smaller id, so it would dial at once.
    let views = pair.a.room.snapshot().peers.len();
    assert_eq!(views, 2, "b and m, nobody being dialled");
}

// A Mac has no loopback address but 127.0.0.1.
#[cfg(not(target_os = "macos"))]
#[tokio::test]
async fn a_thousand_bogus_introductions_are_dialled_a_few_at_a_time() {
    let config = Config {
        handshake_timeout: Duration::from_secs(1),
        ..quick()
    };
    let pair = Pair::settled_with("bogus", config).await;
    let sink = std::net::UdpSocket::bind("0.0.0.0:0").expect("bound");
    sink.set_nonblocking(true).expect("nonblocking");
    let port = sink.local_addr().expect("bound").port();
    let mut member = Attacker::new("m", "bogus").join(&pair.a).await;
    for list in 0..8_u8 {
        let entries = (0..125_u8).map(|n| {
            let address = SocketAddr::from(([127, 1, list, n], port));
            entry(&format!("x{list}-{n}"), vec![address])
        });
        member.tell_core(Message::PeerList(entries.collect())).await;
    }
    let start = Instant::now();
    let mut dials = std::collections::BTreeSet::new();
    let mut packet = [0; 2048];
    while start.elapsed() < Duration::from_secs(2) {
        while let Ok((len, _)) = sink.recv_from(&mut packet) {
            // The first packet of a dial names the connection that it is for (RFC 9000 section 17.2).
            if len > 14 && packet[0] & 0xf0 == 0xc0 {
                dials.insert(packet[6..14].to_vec());
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
    let allowed = 16 + 16 * (start.elapsed().as_secs() as usize + 2);
    assert!(dials.len() > 8, "they are dialled: {}", dials.len());
    assert!(dials.len() <= allowed, "{} dials", dials.len());
    pair.undisturbed("bogus introductions").await;
}

#[tokio::test]
async fn who_goes_by_another_name_than_introduced_does_not_stay_in_dialling() {
    let pair = Pair::settled("ghost").await;
    let mut member = Attacker::new("m", "ghost").join(&pair.a).await;
    let other = Attacker::new("other", "ghost");
    let ghost = PeerEntry {
        id: id("ghost"),
        key: other.process.identity.fingerprint(),
        addresses: vec![other.process.address()],
    };
    member.tell_core(Message::PeerList(vec![ghost])).await;
    let connection = other.process.accept().await.expect("dialled");
    let admitted = in_time(accept_pake(&connection, &other.proof)).await;
    let (mut send, mut recv) = admitted.expect("the room is known");
    in_time(read_hello(&mut recv)).await.expect("a Hello");
    let ack = HelloAck {
        code: 0,
        kicked: false,
        reason: 0,
        bytes: Vec::new(),
        hello: other.hello(),
    };
    write_hello_ack(&mut send, &ack).await.expect("written");
    let mut ready = BytesMut::new();
    put_value(&mut ready, &ControlFrame::Ready).expect("encodes");
    send.write_all(&ready).await.expect("written");
    pair.a.wait_for(joined("other"), 1).await;
    eventually("nobody is called ghost", || {
        pair.a.room.snapshot().peer("ghost").is_none()
    })
    .await;
    pair.undisturbed("a ghost").await;
}

#[tokio::test]
async fn links_of_one_session_are_bounded_in_number() {
    let pair = Pair::settled("many links").await;
    for name in ["0-wins", "z-loses"] {
        let attacker = Attacker::new(name, "many links");
        let mut members = vec![attacker.join(&pair.a).await];
        for _ in 0..12 {
            members.push(attacker.join_unseen(&pair.a, &attacker.hello()).await);
        }
        eventually("few links", || {
            // One of b, and of the attacker the kept one and those that lost to it last.
            pair.a.census().links <= 1 + 1 + 2
        })
        .await;
        assert_eq!(pair.a.times(&joined(name)), 1);
        assert_eq!(pair.a.times(&left(name)), 0);
        drop(members);
        drop(attacker);
        pair.undisturbed(name).await;
        pair.a.wait_for(left(name), 1).await;
    }
    eventually("only the link of b", || {
        let census = pair.a.census();
        // The sessions of the lost are kept for a while.
        (census.links, census.sessions, census.connections) == (1, 3, 1)
    })
    .await;
}

#[tokio::test]
async fn members_that_come_and_go_leave_nothing_behind() {
    let pair = Pair::settled("come and go").await;
    for n in 0..100 {
        let name = format!("m{n}");
        let mut member = Attacker::new(&name, "come and go").join(&pair.a).await;
        // It leaves, but neither ends its lane nor closes.
        member.tell_core(Message::Leave { successor: None }).await;
        assert!(pair.a.census().departing <= 65);
    }
    pair.a.wait_for(left("m99"), 1).await;
    pair.undisturbed("coming and going").await;
    eventually("nothing is left of them", || {
        let census = pair.a.census();
        (census.links, census.departing, census.connections) == (1, 0, 1)
    })
    .await;
}

#[tokio::test]
async fn members_that_come_and_go_do_not_fill_the_memory_of_a_host_that_looks_away() {
    let pair = Pair::settled("looks away").await;
    let (look_up, looks_away) = blocking::channel::<()>();
    let looks_away = std::sync::Mutex::new(looks_away);
    let status = move |_: &PeerId, _| {
        // Once nobody holds the other end, it takes what it is told.
        let _ = looks_away.lock().expect("not poisoned").recv();
    };
    let dispatch = pair.a.room.dispatch();
    dispatch.register_peer_status(Some(Arc::new(status)));
    let mut admitted = 0;
    loop {
        let attacker = Attacker::new(&format!("m{admitted}"), "looks away");
        let (connection, mut send, recv, ack) =
            attacker.say_hello(&pair.a, &attacker.hello()).await;
        if ack.code != 0 {
            assert_eq!(ack.code, -13);
            break;
        }
        admitted += 1;
        assert!(admitted <= 400, "more and more are admitted");
        let mut ready = BytesMut::new();
        put_value(&mut ready, &ControlFrame::Ready).expect("encodes");
        send.write_all(&ready).await.expect("written");
        eventually("it is a member", || pair.a.has(&attacker.name)).await;
        connection.close(VarInt::from_u32(0), b"");
        eventually("it is gone", || !pair.a.has(&attacker.name)).await;
        drop((send, recv));
    }
    assert!(admitted >= 200, "{admitted}");
    assert!(pair.a.has("b") && pair.b.has("a"));
    drop(look_up);
    let honest = Host::open("honest", "looks away");
    eventually("everything is told", || {
        !pair
            .a
            .room
            .dispatch()
            .has_undelivered_left(&id(&format!("m{}", admitted - 1)))
    })
    .await;
    assert_eq!(honest.connect(&pair.a).await, (true, 0));
}
