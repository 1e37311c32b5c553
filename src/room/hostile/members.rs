//! Members whose messages or conduct could cost others something: claims to lead, introductions, links, joins and leaves.

use std::time::Instant;

use super::offences::{entry, led_by};
use super::*;
use crate::core::wire::{PeerEntry, RoomRules};
use crate::dispatch::Event;
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::net::in_progress::MAX_WAIT;

/// The heartbeat of a member that leads in `term`.
fn claim(name: &str, term: u64) -> Message {
    let leads = Pulse::Leads {
        record: led_by(name, term),
        weight: 9,
        led_ms: 0,
        election_timeout_min_ms: 300,
    };
    heartbeat(leads)
}

fn leader_of(host: &Host) -> Option<String> {
    let snapshot = host.room.snapshot();
    snapshot.leader.as_ref().map(ToString::to_string)
}

/// Claims to lead in one term after another: while a claim is on its way, the victims may elect a leader above it.
async fn claim_until_believed(member: &mut Member, victim: &Host, name: &str, first_term: u64) {
    let claims = async {
        for term in first_term.. {
            member.notify_core(claim(name, term)).await;
            for _ in 0..20 {
                sleep(Duration::from_millis(5)).await;
                if leader_of(victim).as_deref() == Some(name) {
                    return;
                }
            }
        }
    };
    let believed = tokio::time::timeout(TIMEOUT, claims).await;
    assert!(believed.is_ok(), "{name} is never believed");
}

/// A member may have received this number from a third one, so it is not a violation.
#[tokio::test]
async fn a_counter_that_runs_away_costs_no_member_anything() {
    let pair = Pair::settled("runaway").await;
    let mut member = Attacker::new("m", "runaway").join_to_lead(&pair.a).await;
    let (a, b) = (leader_of(&pair.a), leader_of(&pair.b));
    for term in [1 << 48, u64::MAX] {
        let stamp = led_by("m", term).stamp;
        let record = led_by("b", term);
        let follows = Pulse::Follows { record, live: true };
        let nack = ElectionMessage::Nack {
            record: Record::default(),
            live: None,
        };
        let rules = RoomRules {
            version: (Stamp::default(), term),
            set_by: None,
            max_peers: 1,
            bans: Vec::new(),
        };
        member.notify_core(claim("m", term)).await;
        member.notify_core(heartbeat(follows)).await;
        member
            .notify_core(Message::from(Stamped::new(stamp, nack)))
            .await;
        member.notify_core(Message::RoomRules(rules)).await;
    }
    let far = MessageRole::Leader(Opaque::of(&led_by("m", u64::MAX)));
    member.send_as(0, 0x100, far, b"dropped").await;
    member.send(1, b"its own").await;
    let own = Report::Message("m".to_owned(), b"its own".to_vec());
    pair.a.wait_for(own, 1).await;
    assert_eq!(pair.a.messages_from("m"), [b"its own".to_vec()]);
    assert_eq!((leader_of(&pair.a), leader_of(&pair.b)), (a, b));
    assert_eq!(pair.a.times(&left("m")), 0);
    pair.undisturbed("a counter that runs away").await;
}

/// Each in turn makes both members adopt a term of its own, and disappears.
#[tokio::test]
async fn three_liars_in_a_row_cost_no_member_another_and_no_newcomer_its_place() {
    let pair = Pair::settled("liars").await;
    for n in 1..=3 {
        let name = format!("m{n}");
        let liar = Attacker::new(&name, "liars");
        for host in [&pair.a, &pair.b] {
            let mut member = liar.join_to_lead(host).await;
            claim_until_believed(&mut member, host, &name, n << 21).await;
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
        let reported = Report::Message("c".to_owned(), b"here to stay".to_vec());
        host.wait_for(reported, 1).await;
        assert_eq!((host.times(&left("c")), c.times(&left(&host.name))), (0, 0));
    }
    pair.undisturbed("a newcomer").await;
}

/// One of the two is made to adopt a term that the other never received.
#[tokio::test]
async fn three_claims_to_one_victim_cost_it_no_link() {
    let pair = Pair::settled("victim").await;
    let mut member = Attacker::new("m", "victim").join_to_lead(&pair.a).await;
    for n in 1..=2 {
        member.notify_core(claim("m", n << 20)).await;
    }
    claim_until_believed(&mut member, &pair.a, "m", 3 << 20).await;
    drop(member);
    eventually("they agree without it", || {
        let leader = leader_of(&pair.a);
        leader.is_some() && leader.as_deref() != Some("m") && leader == leader_of(&pair.b)
    })
    .await;
    pair.undisturbed("three claims").await;
}

/// Acknowledgements of the trailers reveal the loss of the frame before them. Every other test of links shows
/// that an end may send them.
#[tokio::test]
async fn empty_datagrams_follow_urgent_messages() {
    let pair = Pair::settled("trailers").await;
    let member = Attacker::new("m", "trailers").join(&pair.a).await;
    pair.a.room.set_priority(3).expect("it elects");
    for _ in 0..4 {
        let datagram = in_time(member.connection.read_datagram()).await;
        assert_eq!(datagram.expect("linked").len(), 0);
    }
}

#[tokio::test]
async fn some_addresses_are_never_dialled_at_any_peers_request() {
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
    member
        .notify_core(Message::PeerList(entries.collect()))
        .await;
    pair.undisturbed("bad addresses").await;
    // a is the smaller id, so it would dial at once.
    let views = pair.a.room.snapshot().peers.len();
    assert_eq!(views, 2, "b and m, and no dialled peer");
}

// A Mac has only 127.0.0.1 as a loopback address.
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
        member
            .notify_core(Message::PeerList(entries.collect()))
            .await;
    }
    let start = Instant::now();
    let mut dials = std::collections::BTreeSet::new();
    let mut packet = [0; 2048];
    while start.elapsed() < Duration::from_secs(2) {
        while let Ok((len, _)) = sink.recv_from(&mut packet) {
            // The first packet of a dial names its connection (RFC 9000 section 17.2).
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
async fn a_peer_with_another_name_than_introduced_does_not_stay_in_dialling() {
    let pair = Pair::settled("ghost").await;
    let mut member = Attacker::new("m", "ghost").join(&pair.a).await;
    let other = Attacker::new("other", "ghost");
    let ghost = PeerEntry {
        id: id("ghost"),
        key: other.process.identity.fingerprint(),
        addresses: vec![other.process.address()],
    };
    member.notify_core(Message::PeerList(vec![ghost])).await;
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
    send.write_all(&first_words()).await.expect("written");
    pair.a.wait_for(joined("other"), 1).await;
    eventually("no member is called ghost", || {
        pair.a.room.snapshot().peer("ghost").is_none()
    })
    .await;
    pair.undisturbed("a ghost").await;
}

/// `z` has begun a link to `a` when a member introduces it to `a`; and `a`, as the smaller id, would dial at once.
async fn introduced_while_it_dials(pair: &Pair, session: &str) -> (Attacker, Connection, Member) {
    let z = Attacker::new("z", session);
    let begun = z.connect(&pair.a).await;
    let mut member = Attacker::new("m", session).join(&pair.a).await;
    let key = z.process.identity.fingerprint();
    let addresses = vec![z.process.address()];
    let id = id("z");
    let entry = PeerEntry { id, key, addresses };
    member.notify_core(Message::PeerList(vec![entry])).await;
    eventually("z is introduced", || {
        pair.a.room.snapshot().peer("z").is_some()
    })
    .await;
    (z, begun, member)
}

#[tokio::test]
async fn a_peer_that_is_dialling_is_not_dialled_back() {
    let pair = Pair::settled("both").await;
    let (z, begun, _member) = introduced_while_it_dials(&pair, "both").await;
    let admitted = in_time(dial_pake(&begun, &z.proof)).await;
    let (mut send, mut recv) = admitted.expect("the room is known");
    write_hello(&mut send, &z.hello()).await.expect("written");
    let ack = in_time(read_hello_ack(&mut recv)).await.expect("an answer");
    assert_eq!(ack.code, 0);
    send.write_all(&first_words()).await.expect("written");
    pair.a.wait_for(joined("z"), 1).await;
    pair.undisturbed("a link from the other end").await;
    let dialled = tokio::time::timeout(MAX_WAIT, z.process.accept()).await;
    assert!(dialled.is_err(), "a has dialled z as well");
}

#[tokio::test]
async fn a_peer_that_begins_to_dial_and_falls_silent_is_dialled_back_a_little_later() {
    let pair = Pair::settled("half").await;
    let start = Instant::now();
    let (z, _begun, _member) = introduced_while_it_dials(&pair, "half").await;
    z.process.accept().await.expect("dialled");
    assert!(start.elapsed() >= MAX_WAIT);
    assert!(
        start.elapsed() < quick().handshake_timeout,
        "before z's own dial is over"
    );
    pair.undisturbed("a dial that stands still").await;
}

/// The next control message of a link that `is` accepts.
async fn next_message(member: &mut Member, is: impl Fn(&Message) -> bool) -> Message {
    loop {
        let frame = in_time(read_frame(&mut member.recv, 1 << 16)).await;
        let frame = frame.expect("the link lives");
        if let Ok(ControlFrame::Core(Envelope { message, .. })) = postcard::from_bytes(&frame)
            && is(&message)
        {
            return message;
        }
    }
}

/// Of two links of a session one is closed with all that is under way on it.
#[tokio::test]
async fn a_link_that_replaces_another_brings_what_that_one_may_have_lost() {
    let pair = Pair::settled("second link").await;
    let attacker = Attacker::new("z", "second link");
    // It reads nothing from its first link.
    let first = attacker.join(&pair.a).await;
    let mut second = attacker.join_unseen(&pair.a, &attacker.hello()).await;
    let list = next_message(&mut second, |it| matches!(it, Message::PeerList(_))).await;
    let Message::PeerList(list) = list else {
        unreachable!("chosen");
    };
    assert!(list.iter().any(|entry| entry.id == id("b")), "{list:?}");
    next_message(&mut second, |it| matches!(it, Message::Standing { .. })).await;
    next_message(&mut second, |it| matches!(it, Message::Heartbeat(_))).await;
    // A message on the second link shows that the attacker has it: the first one is closed.
    second.notify_core(claim("z", 0)).await;
    assert_eq!(first.closed().await, crate::net::close::SUPERSEDED);
    assert_eq!(pair.a.times(&joined("z")), 1);
    assert_eq!(pair.a.times(&left("z")), 0);
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
            // One of b; and of the attacker the kept one and the last two that it replaced.
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
        // Sessions of lost members are kept for a while.
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
        member.notify_core(Message::Leave { successor: None }).await;
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
async fn members_that_come_and_go_do_not_fill_the_memory_of_a_host_that_takes_no_events() {
    let pair = Pair::settled("looks away").await;
    let (look_up, looks_away) = blocking::channel::<()>();
    let looks_away = std::sync::Mutex::new(looks_away);
    let status = move |_: (&PeerId, PeerStatus)| {
        // Once the other end is dropped, it accepts every input.
        let _ = looks_away.lock().expect("not poisoned").recv();
    };
    let dispatch = pair.a.room.dispatch();
    dispatch.register::<kind::PeerStatus>(Some(Arc::new(status)));
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
        send.write_all(&first_words()).await.expect("written");
        eventually("it is a member", || pair.a.has(&attacker.name)).await;
        connection.close(VarInt::from_u32(0), b"");
        eventually("it is gone", || !pair.a.has(&attacker.name)).await;
        drop((send, recv));
    }
    assert!(admitted >= 200, "{admitted}");
    assert!(pair.a.has("b") && pair.b.has("a"));
    drop(look_up);
    let honest = Host::open("honest", "looks away");
    // The last one's place may still be kept: then its departure comes after all others.
    eventually("all departures so far are reported", || {
        let is_left = |event: &Event| matches!(event, Event::Left(_));
        pair.a.room.dispatch().undelivered(is_left) == 0
    })
    .await;
    assert_eq!(honest.connect(&pair.a).await, (true, 0));
}
