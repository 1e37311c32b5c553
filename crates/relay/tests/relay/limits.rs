//! What a relay refuses, and that a stranger makes it refuse no one else.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use mmn_relay::figures::{Drop, Refusal};
use mmn_relay::{Relay, Settings};
use quinn::ConnectionError;
use room_transport::rendezvous::{FromRelay, ToRelay};
use room_transport::testing::in_time;
use tokio::time::Instant;

use crate::forwarding::relay;
use crate::member::{Member, Process, code_of};

const TOKEN: [u8; 16] = [7; 16];
/// An address of loopback that strangers have.
const STRANGERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn relay_with(change: impl FnOnce(&mut Settings)) -> Relay {
    let mut settings = Settings::default();
    change(&mut settings);
    Relay::start(settings).expect("a relay")
}

/// Waits until the relay's figures are as wanted.
async fn until(relay: &Relay, is_so: impl Fn(&mmn_relay::figures::Figures) -> bool) {
    in_time(async {
        while !is_so(&relay.figures()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_token_is_17_then_22_and_the_right_one_enters_from_the_same_address() {
    let relay = relay_with(|settings| settings.token = Some(TOKEN));
    let stranger = Process::start();
    let mut codes = Vec::new();
    for token in [
        None,
        Some([8; 16]),
        Some([0; 16]),
        None,
        None,
        None,
        Some([9; 16]),
    ] {
        let entered = stranger.try_enter(&relay, 7, false, token).await;
        codes.push(entered.map(|_| ()).expect_err("the token is wrong"));
    }
    assert_eq!(codes, [-17, -17, -17, -17, -17, -22, -22]);
    assert_eq!(relay.figures().refusals(Refusal::Token), 7);
    let friend = Process::start();
    let entered = friend.try_enter(&relay, 7, false, Some(TOKEN)).await;
    assert!(entered.is_ok());
    // Also where all strangers together have failed too often.
    let mut strangers = Vec::new();
    for last in 3..30 {
        let stranger = Process::start_at(Ipv4Addr::new(127, 0, 0, last));
        for _ in 0..4 {
            let entered = stranger.try_enter(&relay, 7, false, None).await;
            strangers.push(entered.map(|_| ()).expect_err("the token is missing"));
        }
    }
    assert_eq!(strangers.last(), Some(&-22));
    let friend = Process::start();
    let entered = friend.try_enter(&relay, 7, false, Some(TOKEN)).await;
    assert!(entered.is_ok());
}

#[tokio::test]
async fn a_proof_of_another_link_is_worth_nothing() {
    let relay = relay_with(|settings| settings.token = Some(TOKEN));
    let (friend, between) = (Process::start(), Process::start());
    let of_friend = friend.dial(&relay).await.expect("connected");
    let proof = crate::member::proof_of(&of_friend, TOKEN);
    let of_other = between.dial(&relay).await.expect("connected");
    let entered = between.enter_on(of_other, 7, false, Some(proof)).await;
    assert_eq!(entered.map(|_| ()), Err(-17));
    assert!(
        friend
            .enter_on(of_friend, 7, false, Some(proof))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_relay_without_a_token_ignores_a_proof() {
    let relay = relay();
    let entered = Process::start()
        .try_enter(&relay, 7, false, Some(TOKEN))
        .await;
    assert!(entered.is_ok());
}

#[tokio::test]
async fn another_version_is_refused_and_another_key_not_trusted() {
    let relay = relay();
    let process = Process::start();
    let dialled = process
        .dial_with(relay.address(), None, b"mmn-relay/99")
        .await;
    let error = dialled.map(|_| ()).expect_err("another version");
    let code = room_transport::closing::DialError::from(error).code();
    assert_eq!(code, -12);
    let alpn = room_transport::rendezvous::RELAY_ALPN;
    let expected = Some(process.key());
    let dialled = process.dial_with(relay.address(), expected, alpn).await;
    let error = dialled.map(|_| ()).expect_err("another key");
    let error = room_transport::closing::DialError::from(error);
    assert_eq!(error, room_transport::closing::DialError::WrongKey);
}

#[tokio::test]
async fn a_link_that_enters_nothing_ends_after_five_seconds_and_then_after_one() {
    let relay = relay();
    let stranger = Process::start();
    let began = Instant::now();
    let links = [(); 5].map(|()| stranger.dial(&relay));
    for link in futures(links).await {
        assert_eq!(code_of(&in_time(link.closed()).await), -22);
    }
    let took = began.elapsed();
    assert!((4900..8000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(relay.figures().refusals(Refusal::Late), 5);
    let began = Instant::now();
    let link = stranger.dial(&relay).await.expect("connected");
    assert_eq!(code_of(&in_time(link.closed()).await), -22);
    let took = began.elapsed();
    assert!((900..4000).contains(&took.as_millis()), "{took:?}");
    // A member at that address enters as before.
    Process::start().enter(&relay, 7).await;
    until(&relay, |figures| figures.now.links == 1).await;
}

/// The links, dialled one after another.
async fn futures<F>(dials: impl IntoIterator<Item = F>) -> Vec<quinn::Connection>
where
    F: Future<Output = Result<quinn::Connection, ConnectionError>>,
{
    let mut links = Vec::new();
    for dial in dials {
        links.push(dial.await.expect("connected"));
    }
    links
}

#[tokio::test]
async fn malformed_frames_end_a_link_and_unknown_ones_are_skipped() {
    let relay = relay();
    let process = Process::start();
    for bytes in [&[1, 0, 3][..], &[0, 0], &[255, 255], &[2, 0, 1, 9]] {
        let link = process.dial(&relay).await.expect("connected");
        let (mut send, _recv) = link.open_bi().await.expect("a stream");
        send.write_all(bytes).await.expect("sent");
        assert_eq!(code_of(&in_time(link.closed()).await), -12, "{bytes:?}");
    }
    assert_eq!(relay.figures().refusals(Refusal::Malformed), 4);
    let mut member = process.enter(&relay, 7).await;
    member
        .send
        .write_all(&[3, 0, 99, 1, 2])
        .await
        .expect("sent");
    let other = Process::start();
    let _other = other.enter(&relay, 7).await;
    assert_eq!(member.names().await, [other.key()]);
    member.send.write_all(&[2, 0, 3, 0]).await.expect("sent");
    assert_eq!(member.end().await, -12);
}

#[tokio::test]
async fn no_more_than_256_bytes_are_read_before_enter() {
    let relay = relay();
    let unknown = |length: u16| {
        let mut frame = vec![0; 2 + usize::from(length)];
        frame[..2].copy_from_slice(&length.to_le_bytes());
        frame[2] = 99;
        frame
    };
    let process = Process::start();
    for frames in [
        vec![unknown(255)],
        vec![unknown(120), unknown(120), unknown(11)],
    ] {
        let link = process.dial(&relay).await.expect("connected");
        let (mut send, _recv) = link.open_bi().await.expect("a stream");
        // The link may end before all of it is sent.
        let _ = send.write_all(&frames.concat()).await;
        assert_eq!(code_of(&in_time(link.closed()).await), -12);
    }
    let link = process.dial(&relay).await.expect("connected");
    let (mut send, _recv) = link.open_bi().await.expect("a stream");
    send.write_all(&unknown(200)).await.expect("sent");
    let enter = ToRelay::Enter {
        locator: room_transport::rendezvous::Locator(7),
        hidden: false,
        proof: None,
    };
    send.write_all(&enter.encode_many(1)).await.expect("sent");
    until(&relay, |figures| figures.now.members == 1).await;
}

#[tokio::test]
async fn a_flood_of_frames_holds_up_no_other_member() {
    let relay = relay();
    let (stranger, one, two) = (Process::start(), Process::start(), Process::start());
    let mut flood = stranger.enter(&relay, 7).await;
    let flooding = tokio::spawn(async move {
        let frame = ToRelay::Block {
            key: stranger.key(),
        }
        .encode_many(1000);
        while flood.send.write_all(&frame).await.is_ok() {}
    });
    let first = one.enter(&relay, 8).await;
    let second = two.enter(&relay, 8).await;
    let began = Instant::now();
    for number in 0..50 {
        first.packet(two.id(), number, b"packet");
        assert_eq!(second.received().await.1.number, number);
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(!flooding.is_finished());
    flooding.abort();
}

trait EncodeMany {
    fn encode_many(&self, count: usize) -> Vec<u8>;
}

impl EncodeMany for ToRelay {
    fn encode_many(&self, count: usize) -> Vec<u8> {
        use room_transport::rendezvous::Frame;
        self.encode().repeat(count)
    }
}

#[tokio::test]
async fn strangers_that_fill_a_locator_make_way_for_friends() {
    let relay = relay();
    let friend = Process::start();
    let mut first = friend.enter(&relay, 7).await;
    let mut strangers = Vec::new();
    for _ in 0..63 {
        let stranger = Process::start_at(STRANGERS);
        let member = stranger.enter(&relay, 7).await;
        strangers.push((stranger, member));
    }
    let late = Process::start_at(STRANGERS);
    let entered = late.try_enter(&relay, 7, false, None).await;
    assert_eq!(entered.map(|_| ()), Err(-13));
    assert_eq!(relay.figures().refusals(Refusal::Locator), 1);

    let other = Process::start();
    let second = other.enter(&relay, 7).await;
    let (_, newest) = strangers.last().expect("63");
    assert_eq!(newest.end().await, -13);
    second.packet(friend.id(), 1, b"to the first");
    assert_eq!(first.received().await.0, other.id());
    // The first one learns of it.
    let mut named = Vec::new();
    while !named.contains(&other.key()) {
        match first.frame().await {
            FromRelay::Present { keys } => named.extend(keys),
            frame => assert!(matches!(frame, FromRelay::Gone { .. }), "{frame:?}"),
        }
    }
}

#[tokio::test]
async fn a_network_has_256_links_and_others_do_not_notice() {
    let relay = relay();
    let stranger = Process::start_at(STRANGERS);
    // As many strangers as there are keys: a key that enters twice replaces itself.
    let friend_there = Process::start_at(STRANGERS);
    let inside = friend_there.enter(&relay, 7).await;
    let mut links = Vec::new();
    for locator in 1000..1255 {
        links.push(stranger.enter(&relay, locator).await);
    }
    // The friend behind the same NAT stays; a further one does not get in, and learns why.
    until(&relay, |figures| figures.now.links == 256).await;
    // Handshakes are allowed 16 a second by now, and the clock of that is real.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let late = Process::start_at(STRANGERS);
    let entered = late.try_enter(&relay, 7, false, None).await;
    assert_eq!(entered.map(|_| ()), Err(-13));
    assert_eq!(relay.figures().refusals(Refusal::Network), 1);
    let friend = Process::start();
    let elsewhere = friend.enter(&relay, 7).await;
    elsewhere.packet(friend_there.id(), 1, b"packet");
    assert_eq!(inside.received().await.0, friend.id());
    // A place is free again once a link has ended.
    links.pop();
    drop(links);
    stranger.endpoint.close(0_u32.into(), b"");
    until(&relay, |figures| figures.now.links == 2).await;
}

#[tokio::test]
async fn a_full_relay_takes_the_newest_links_of_the_largest_address() {
    let relay = relay_with(|settings| settings.max_links = 12);
    let friend = Process::start();
    let inside = friend.enter(&relay, 7).await;
    let stranger = Process::start_at(STRANGERS);
    let mut links = Vec::new();
    for locator in 100..108 {
        links.push(stranger.enter(&relay, locator).await);
    }
    // Nine are three quarters.
    let entered = stranger.try_enter(&relay, 200, false, None).await;
    assert_eq!(entered.map(|_| ()), Err(-13));
    let other = Process::start_at(Ipv4Addr::new(127, 0, 0, 3));
    let second = other.enter(&relay, 7).await;
    assert_eq!(links.pop().expect("a link").end().await, -13);
    second.packet(friend.id(), 1, b"packet");
    assert_eq!(inside.received().await.0, other.id());
    let figures = relay.figures();
    assert_eq!(figures.refusals(Refusal::Relay), 1);
    assert_eq!(figures.refusals(Refusal::Yielded), 1);
}

#[tokio::test]
async fn a_flood_of_handshakes_is_refused_for_its_address_alone() {
    let relay = relay_with(|settings| settings.max_links = 10_000);
    let stranger = Process::start_at(STRANGERS);
    let mut refused = 0;
    for _ in 0..400 {
        match stranger.dial(&relay).await {
            Ok(connection) => connection.close(0_u32.into(), b""),
            Err(ConnectionError::ConnectionClosed(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 0);
    assert_eq!(relay.figures().refusals(Refusal::Handshakes), refused);
    Process::start().enter(&relay, 7).await;
}

#[tokio::test]
async fn a_newer_link_of_a_key_replaces_the_older_one() {
    let relay = relay();
    let (one, two) = (Process::start(), Process::start());
    let older = one.enter(&relay, 7).await;
    let mut second = two.enter(&relay, 7).await;
    let newer = one.enter(&relay, 7).await;
    assert_eq!(older.end().await, 0);
    second.packet(one.id(), 1, b"to the newer");
    assert_eq!(newer.received().await.0, two.id());
    assert_eq!(second.names().await, [one.key()]);
    // A stranger has another key, so it replaces no one.
    let stranger = Process::start();
    let _stranger = stranger.enter(&relay, 7).await;
    assert_eq!(second.names().await, [stranger.key()]);
    second.packet(one.id(), 2, b"to the newer");
    assert_eq!(newer.received().await.1.number, 2);
}

#[tokio::test]
async fn a_link_that_sends_more_than_its_rate_is_held_to_it_and_others_are_not() {
    let relay = relay_with(|settings| settings.rate = 64 << 10);
    let processes = [(); 4].map(|()| Process::start());
    let [one, two, three, four] = &processes;
    let (sender, receiver) = (one.enter(&relay, 7).await, two.enter(&relay, 7).await);
    let (first, second) = (three.enter(&relay, 8).await, four.enter(&relay, 8).await);
    let began = Instant::now();
    let flood = async {
        loop {
            let sent = sender.connection.send_datagram_wait(packet_to(two));
            if sent.await.is_err() {
                return;
            }
        }
    };
    let mut bytes = 0;
    let count = async {
        while began.elapsed() < Duration::from_secs(3) {
            bytes += receiver.received().await.1.bytes.len() + 12;
        }
    };
    let mut slowest = Duration::ZERO;
    let play = async {
        for number in 0..100 {
            let sent = Instant::now();
            first.packet(four.id(), number, b"a move");
            assert_eq!(second.received().await.1.number, number);
            slowest = slowest.max(sent.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = flood => panic!("the link is up"),
        ((), ()) = async { tokio::join!(count, play) } => {}
    }
    let allowed = 3 * (64 << 10);
    assert!(
        bytes > allowed / 2 && bytes < allowed * 11 / 10,
        "{bytes} of {allowed}"
    );
    assert!(relay.figures().drops(Drop::Rate) > 0);
    assert!(slowest < Duration::from_millis(150), "{slowest:?}");
}

fn packet_to(target: &Process) -> Bytes {
    use room_transport::tunnel::packet::{Header, Part, Way, encode};
    let header = Header {
        way: Way::To(target.id()),
        part: Part::Whole,
        number: 0,
    };
    encode(header, &[0; 1000])
}

#[tokio::test]
async fn heartbeats_survive_a_transfer_to_the_same_member() {
    // Three members send as much as they may, which is three times what the receiver's link takes.
    let relay = relay_with(|settings| settings.rate = 64 << 10);
    let target = Process::start();
    let receiver = target.enter(&relay, 7).await;
    let mut senders: Vec<(Process, Member)> = Vec::new();
    for _ in 0..4 {
        let process = Process::start();
        let member = process.enter(&relay, 7).await;
        senders.push((process, member));
    }
    let (quiet, heart) = senders.pop().expect("four");
    let floods: Vec<_> = senders
        .iter()
        .map(|(_, member)| {
            let (connection, packet) = (member.connection.clone(), packet_to(&target));
            tokio::spawn(async move {
                while connection.send_datagram_wait(packet.clone()).await.is_ok() {}
            })
        })
        .collect();
    let beats = async {
        for number in 0..60 {
            heart.packet(target.id(), number, b"heartbeat");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // The last ones arrive within the time that a packet may wait.
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let mut arrived = 0;
    let count = async {
        loop {
            arrived += usize::from(receiver.received().await.0 == quiet.id());
        }
    };
    tokio::select! {
        () = beats => {}
        () = count => {}
    }
    floods.iter().for_each(tokio::task::JoinHandle::abort);
    assert!(arrived >= 57, "{arrived} of 60");
    assert!(relay.figures().drops(Drop::Queue) > 0);
}

#[tokio::test]
async fn the_total_is_shared_by_the_rooms() {
    let relay = relay_with(|settings| {
        settings.rate = 0;
        settings.total = 64 << 10;
    });
    let mut received = Vec::new();
    let mut floods = Vec::new();
    let began = Instant::now();
    let mut kept = Vec::new();
    for room in 0..3 {
        let (one, two) = (Process::start(), Process::start());
        let sender = one.enter(&relay, room).await;
        let receiver = two.enter(&relay, room).await;
        let (connection, packet) = (sender.connection.clone(), packet_to(&two));
        floods.push(tokio::spawn(async move {
            while connection.send_datagram_wait(packet.clone()).await.is_ok() {}
        }));
        received.push(tokio::spawn(async move {
            let mut bytes = 0;
            while began.elapsed() < Duration::from_secs(4) {
                bytes += receiver.received().await.1.bytes.len() + 12;
            }
            bytes
        }));
        kept.push((one, two, sender));
    }
    let mut shares = Vec::new();
    for counted in received {
        shares.push(counted.await.expect("counted"));
    }
    floods.iter().for_each(tokio::task::JoinHandle::abort);
    let (sum, allowed): (usize, usize) = (shares.iter().sum(), 4 * (64 << 10));
    assert!(
        sum > allowed / 2 && sum < allowed * 11 / 10,
        "{shares:?} of {allowed}"
    );
    for share in &shares {
        assert!(*share > sum / 4, "{shares:?}");
    }
}

#[tokio::test]
async fn the_quota_ends_all_links_and_refuses_further_ones() {
    let relay = relay_with(|settings| settings.monthly = Some(40_000));
    let (one, two) = (Process::start(), Process::start());
    let sender = one.enter(&relay, 7).await;
    let _receiver = two.enter(&relay, 7).await;
    let flood = async {
        while sender
            .connection
            .send_datagram_wait(packet_to(&two))
            .await
            .is_ok()
        {}
    };
    let ((), code) = tokio::join!(flood, sender.end());
    assert_eq!(code, -13);
    let entered = Process::start().try_enter(&relay, 7, false, None).await;
    assert_eq!(entered.map(|_| ()), Err(-13));
    let (quota, used) = relay.figures().now.quota.expect("a quota");
    assert!(quota == 40_000 && used > 0);
}

#[tokio::test]
async fn a_member_that_changes_its_address_stays_and_counts_where_it_is() {
    let relay = relay();
    let process = Process::start();
    let mut member = process.enter(&relay, 7).await;
    let other = Process::start();
    let second = other.enter(&relay, 7).await;
    assert_eq!(member.names().await, [other.key()]);
    for last in 3..6 {
        let address = Ipv4Addr::new(127, 0, 0, last);
        let socket = std::net::UdpSocket::bind((address, 0)).expect("a socket");
        process.endpoint.rebind(socket).expect("rebound");
        member.packet(other.id(), 1, b"packet");
        assert_eq!(second.received().await.0, process.id());
        second.packet(process.id(), 1, b"packet");
        assert_eq!(member.received().await.0, other.id());
    }
    // A stranger at its last address is blocked, and it is not.
    let mut second = second;
    let stranger = Process::start_at(Ipv4Addr::new(127, 0, 0, 5));
    let link = stranger.enter(&relay, 7).await;
    assert_eq!(second.names().await, [process.key()]);
    assert_eq!(second.names().await, [stranger.key()]);
    second
        .write(ToRelay::Block {
            key: stranger.key(),
        })
        .await;
    until(&relay, |figures| {
        link.packet(other.id(), 0, b"probe");
        figures.drops(Drop::Blocked) > 0
    })
    .await;
    member.packet(other.id(), 2, b"packet");
    while second.received().await.0 != process.id() {}
}

#[tokio::test]
async fn a_forged_sender_gets_one_packet_that_is_not_longer_than_its_own() {
    let relay = relay();
    let relays = relay.address();
    // The Initial of a real dial, as it leaves, sent again from another address.
    let listens = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let process = Process::start();
    let alpn = room_transport::rendezvous::RELAY_ALPN;
    let to = listens.local_addr().expect("bound");
    let dial = process.dial_with(to, None, alpn);
    let captured = tokio::task::spawn_blocking(move || {
        let mut packet = vec![0; 2048];
        let (length, _) = listens.recv_from(&mut packet).expect("an Initial");
        packet.truncate(length);
        packet
    });
    let initial = tokio::select! {
        captured = captured => captured.expect("captured"),
        _ = dial => panic!("nothing answers"),
    };
    let victim = std::net::UdpSocket::bind((STRANGERS, 0)).expect("a socket");
    let limit = Some(Duration::from_secs(2));
    victim.set_read_timeout(limit).expect("set");
    victim.send_to(&initial, relays).expect("sent");
    let mut sizes = Vec::new();
    let mut packet = vec![0; 2048];
    // Silence shows only in time: QUIC would send again within one second.
    while let Ok(length) = victim.recv(&mut packet) {
        sizes.push(length);
    }
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert!(sizes[0] <= initial.len());
    assert_eq!(relay.figures().now.links, 0);
}
