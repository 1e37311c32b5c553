//! TURN servers of all kinds, on loopback: honest, silent and hostile ones.

mod server;

use std::net::Ipv4Addr;

use quinn::udp::Transmit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use turn_client_proto::types::message::{ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, REFRESH};
use turn_client_proto::types::stun::attribute::ErrorCode;
use turn_client_proto::types::stun::message::{
    Message, MessageWrite, MessageWriteExt, MessageWriteVec,
};

use self::server::{Kind, Server, indication};
use super::*;
use crate::core::id::Fingerprint;
use crate::core::virtual_address::through_turn;

const REALM: &str = "a realm";
const USER: &str = "1790000000:ann";
const PASSWORD: &str = "a-password";
const LIMIT: Duration = Duration::from_secs(30);

/// A room's part of it.
struct Client {
    turn: Turn,
    reports: mpsc::Receiver<TurnReport>,
    tunnels: Arc<Tunnels>,
}

impl Client {
    fn start(lines: &str) -> Self {
        let servers = TurnServer::parse_list(lines).expect("servers");
        let tunnels = Arc::new(Tunnels::new(Fingerprint([1; 32]), 0));
        let bound = Bound {
            address: None,
            port: 1,
        };
        let names = Arc::new(Names::new(super::super::names::system_lookup()));
        let (turn, reports) = Turn::start(&servers, bound, names, Arc::clone(&tunnels), 1);
        Self {
            turn,
            reports,
            tunnels,
        }
    }

    async fn report(&mut self) -> TurnReport {
        let report = timeout(LIMIT, self.reports.recv()).await;
        report.expect("in time").expect("the task runs")
    }

    fn send(&self, peer: SocketAddr, contents: &[u8]) {
        let transmit = Transmit {
            destination: through_turn(peer).expect("of IPv4"),
            ecn: None,
            contents,
            segment_size: None,
            src_ip: None,
        };
        assert!(self.tunnels.take(&transmit));
    }

    /// The next packet that quinn would read.
    async fn arrived(&self) -> (SocketAddr, Vec<u8>) {
        timeout(LIMIT, self.arrives()).await.expect("in time")
    }

    async fn arrives(&self) -> (SocketAddr, Vec<u8>) {
        let read = std::future::poll_fn(|cx| {
            let mut buffer = [0; 2048];
            let mut meta = [quinn::udp::RecvMeta::default()];
            let mut bufs = [io::IoSliceMut::new(&mut buffer)];
            match self.tunnels.poll_arrived(cx, &mut bufs, &mut meta) {
                0 => std::task::Poll::Pending,
                _ => std::task::Poll::Ready((meta[0].addr, meta[0].len)),
            }
            .map(|(from, len)| (from, buffer[..len].to_vec()))
        });
        read.await
    }
}

async fn peer() -> (UdpSocket, SocketAddr) {
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("bound");
    let address = peer.local_addr().expect("bound");
    (peer, address)
}

async fn received(peer: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2048];
    let received = timeout(LIMIT, peer.recv_from(&mut buffer)).await;
    let (len, from) = received.expect("in time").expect("received");
    (buffer[..len].to_vec(), from)
}

#[tokio::test]
async fn packets_go_through_the_port_in_both_directions() {
    let server = Server::start(Kind::Honest).await;
    let began = Instant::now();
    let mut client = Client::start(&server.line());
    let report = client.report().await;
    assert!(began.elapsed() < Duration::from_secs(5), "at once");
    let port = report.address.expect("a port");
    assert_eq!((report.code, &*report.why), (0, ""));
    assert_eq!(&*report.server, format!("turn:{}", server.address));
    assert_eq!(client.tunnels.turn().address(), Some(port));
    let (peer, at) = peer().await;
    let mut number = 0_u8;
    // With long headers first, and with short ones soon.
    while number < 20 || server.count(CHANNEL_BIND) == 0 {
        number = number.wrapping_add(1);
        client.send(at, &[number; 1200]);
        let (packet, from) = received(&peer).await;
        assert_eq!((packet, from), (vec![number; 1200], port));
        peer.send_to(&[number; 900], port).await.expect("sent");
        let expected = (through_turn(at).expect("of IPv4"), vec![number; 900]);
        assert_eq!(client.arrived().await, expected);
    }
    for _ in 0..20 {
        client.send(at, b"short");
        assert_eq!(received(&peer).await, (b"short".to_vec(), port));
    }
    assert_eq!(server.count(CHANNEL_BIND), 1);
    client.turn.end().await;
    assert_eq!(server.count(REFRESH), 1, "it gives the port back");
    assert_eq!(client.tunnels.turn().address(), None);
}

#[tokio::test]
async fn a_peer_that_was_admitted_comes_first() {
    let server = Server::start(Kind::Honest).await;
    let mut client = Client::start(&server.line());
    let port = client.report().await.address.expect("a port");
    let (peer, at) = peer().await;
    client.tunnels.turn().admit(at);
    let sent = async {
        loop {
            peer.send_to(b"hello", port).await.expect("sent");
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = sent => {}
        packet = client.arrived() => {
            assert_eq!(packet, (through_turn(at).expect("of IPv4"), b"hello".to_vec()));
        }
    }
}

#[tokio::test]
async fn a_burst_goes_through_whole() {
    // The system's buffers on the way hold about 90.
    const BURST: u8 = 60;
    let server = Server::start(Kind::Honest).await;
    let mut client = Client::start(&server.line());
    client.report().await.address.expect("a port");
    let (peer, at) = peer().await;
    client.send(at, b"first");
    received(&peer).await;
    // A machine under load may let packets grow too old, so not every burst counts.
    for _ in 0..50 {
        for number in 0..BURST {
            client.send(at, &[number; 1200]);
        }
        let mut came = 0;
        let mut buffer = [0; 2048];
        let pause = Duration::from_millis(500);
        while came < u32::from(BURST)
            && matches!(timeout(pause, peer.recv(&mut buffer)).await, Ok(Ok(1200)))
        {
            came += 1;
        }
        if came == u32::from(BURST) {
            return;
        }
    }
    panic!("each burst lost packets");
}

#[tokio::test(start_paused = true)]
async fn a_port_its_peers_and_their_channels_last_for_an_hour() {
    let server = Server::start(Kind::Strict).await;
    let mut client = Client::start(&server.line());
    let port = client.report().await.address.expect("a port");
    let (peer, at) = peer().await;
    let others = (1..=12).map(|last| SocketAddr::from(([127, 0, 1, last], 9)));
    let others: Vec<_> = others.collect();
    for minute in 0..60 {
        for other in &others {
            client.send(*other, b"to another");
        }
        sleep(Duration::from_secs(60)).await;
        let expected = (through_turn(at).expect("of IPv4"), vec![minute]);
        let (mut has_gone, mut has_come) = (false, false);
        let mut tries = 0;
        while !(has_gone && has_come) {
            tries += 1;
            assert!(tries < 100, "minute {minute}: {has_gone}, {has_come}");
            client.send(at, &[minute]);
            peer.send_to(&[minute], port).await.expect("sent");
            // The paused clock goes on while packets are under way.
            sleep(Duration::from_millis(500)).await;
            let mut buffer = [0; 64];
            while let Ok((len, from)) = peer.try_recv_from(&mut buffer) {
                has_gone |= (from, &buffer[..len]) == (port, &[minute]);
            }
            let moment = Duration::from_millis(1);
            while let Ok(packet) = timeout(moment, client.arrives()).await {
                has_come |= packet == expected;
            }
        }
        assert!(client.reports.try_recv().is_err(), "minute {minute}");
    }
    assert_eq!(server.count(ALLOCATE), 2);
}

#[tokio::test]
async fn errors_for_other_requests_and_second_answers_mean_nothing() {
    let server = Server::start(Kind::Echoes).await;
    let mut client = Client::start(&server.line());
    let port = client.report().await.address.expect("a port");
    let (peer, at) = peer().await;
    for number in 0..30 {
        client.send(at, &[number; 100]);
        assert_eq!(received(&peer).await, (vec![number; 100], port));
    }
    assert!(client.reports.try_recv().is_err());
    assert_eq!(server.count(ALLOCATE), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_restarted_is_noticed_and_asked_again() {
    let server = Server::start(Kind::Honest).await;
    let mut client = Client::start(&server.line());
    assert!(client.report().await.address.is_some());
    server.set(Kind::Restarted);
    let began = Instant::now();
    let report = client.reports.recv().await.expect("the task runs");
    assert_eq!(
        (report.code, report.address),
        (Code::ConnectionFailed.value(), None)
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    server.set(Kind::Honest);
    let report = client.reports.recv().await.expect("the task runs");
    assert!(report.address.is_some());
}

#[tokio::test]
async fn servers_that_are_given_up_are_reported_and_others_are_asked_at_once() {
    let server = Server::start(Kind::Honest).await;
    let silent = Server::start(Kind::Silent).await;
    let mut client = Client::start(&silent.line());
    while silent.count(ALLOCATE) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let servers = |line: String| TurnServer::parse_list(&line).expect("servers");
    let began = Instant::now();
    client.turn.set_servers(&servers(server.line()));
    assert!(client.report().await.address.is_some());
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "before the silent one is given up"
    );
    for others in [servers(silent.line()), Vec::new()] {
        client.turn.set_servers(&others);
        let report = client.report().await;
        assert_eq!(
            (report.code, report.address),
            (Code::ConnectionFailed.value(), None)
        );
        assert_eq!(&*report.server, format!("turn:{}", server.address));
        assert!(report.why.ends_with("uses it no more"), "{}", report.why);
        client.turn.set_servers(&servers(server.line()));
        assert!(client.report().await.address.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn each_failure_of_several_servers_is_reported_once() {
    let full = Server::start(Kind::Refuses(508, "full")).await;
    let closed = Server::start(Kind::Refuses(486, "closed")).await;
    let mut client = Client::start(&format!("{}\n{}", full.line(), closed.line()));
    let servers = [client.report().await.server, client.report().await.server];
    assert_ne!(servers[0], servers[1]);
    while full.count(ALLOCATE) < 8 || closed.count(ALLOCATE) < 8 {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(client.reports.try_recv().is_err());
}

#[tokio::test]
async fn addresses_that_others_name_leave_room_for_those_that_are_used() {
    let server = Server::start(Kind::Honest).await;
    let mut client = Client::start(&server.line());
    let port = client.report().await.address.expect("a port");
    // Requests go out one in 50 ms; the session knows of all of them at once.
    for number in 0..=255 {
        client.tunnels.turn().admit(([127, 1, 0, number], 9).into());
        if number % 32 == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    }
    let (peer, at) = peer().await;
    let sends = async {
        loop {
            client.send(at, b"used");
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = sends => {}
        (packet, from) = received(&peer) => assert_eq!((packet, from), (b"used".to_vec(), port)),
    }
    assert!(server.count(CREATE_PERMISSION) <= 130);
}

#[tokio::test]
async fn a_refusal_is_reported_with_the_servers_code_and_words() {
    for (code, reason, means, sentence) in [
        (
            486,
            "Allocation Quota Reached",
            Code::MaxConnectionsReached,
            "this user has as many ports as it may have: 486 \"Allocation Quota Reached\"",
        ),
        (
            508,
            "Insufficient\nCapacity",
            Code::MaxConnectionsReached,
            "it has no free port: 508 \"Insufficient\\nCapacity\"",
        ),
        (
            403,
            "Forbidden",
            Code::Rejected,
            "the server's rules forbid it: 403 \"Forbidden\"",
        ),
        (
            437,
            "Mismatch",
            Code::ConnectionFailed,
            "it does not know the port any more: 437 \"Mismatch\"",
        ),
    ] {
        let server = Server::start(Kind::Refuses(code, reason)).await;
        let mut client = Client::start(&server.line());
        let report = client.report().await;
        assert_eq!((report.code, report.address), (means.value(), None));
        assert_eq!(
            &*report.why,
            format!("the TURN server gives no port: {sentence}")
        );
    }
}

#[tokio::test]
async fn wrong_credentials_are_reported_and_others_are_tried_at_once() {
    let server = Server::start(Kind::Honest).await;
    let url = format!("turn:{}", server.address);
    let mut client = Client::start(&format!("{url} username={USER} password=expired"));
    let report = client.report().await;
    assert_eq!(report.code, Code::AuthenticationFailed.value());
    assert!(report.why.contains("has expired: 401"), "{}", report.why);
    assert!(!report.why.contains("expired\""), "no password is shown");
    // A list that is no better is tried and reported, too.
    let worse = format!("{url} username={USER} password=wrong");
    let worse = TurnServer::parse_list(&worse).expect("servers");
    client.turn.set_servers(&worse);
    assert_eq!(client.report().await, report);
    // Without others it would wait for a minute.
    let others = TurnServer::parse_list(&server.line()).expect("servers");
    client.turn.set_servers(&others);
    let began = Instant::now();
    assert!(client.report().await.address.is_some());
    assert!(began.elapsed() < LIMIT);
    // A list that holds them already changes nothing.
    let asked = server.count(ALLOCATE);
    client.turn.set_servers(&others);
    client.turn.set_servers(&[]);
    while client.tunnels.turn().is_configured() {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.count(ALLOCATE), asked);
    assert_eq!(client.tunnels.turn().address(), None);
}

#[tokio::test]
async fn the_next_server_is_used_when_the_first_gives_no_port() {
    let full = Server::start(Kind::Refuses(508, "full")).await;
    let free = Server::start(Kind::Honest).await;
    let mut client = Client::start(&format!("{}\n{}", full.line(), free.line()));
    assert_eq!(client.report().await.code, -13);
    let report = client.report().await;
    assert!(report.address.is_some());
    assert_eq!(&*report.server, format!("turn:{}", free.address));
}

#[tokio::test]
async fn a_server_that_lies_about_the_port_or_talks_nonsense_gives_none() {
    for ip in [
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
    ] {
        let server = Server::start(Kind::Claims(ip)).await;
        let mut client = Client::start(&server.line());
        let report = client.report().await;
        let malformed = Code::SerializationError.value();
        assert_eq!((report.code, report.address), (malformed, None), "{ip}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_or_sends_garbage_is_given_up() {
    const GARBAGE: [&[u8]; 4] = [
        b"",
        &[0x40, 0, 0, 9, 1],
        &[0; 20],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ];
    let kinds = GARBAGE.map(Kind::Garbage);
    for kind in kinds.into_iter().chain([Kind::Silent]) {
        let server = Server::start(kind).await;
        let mut client = Client::start(&server.line());
        let report = client.report().await;
        assert_eq!(report.code, Code::Timeout.value(), "{kind:?}");
        assert!(report.why.ends_with("it does not answer"), "{}", report.why);
        // It is asked again and again, not without end.
        let asked = server.requests();
        assert!((1..=8).contains(&asked), "{kind:?}: {asked}");
    }
}

#[tokio::test]
async fn a_server_that_admits_no_peer_costs_its_packets_alone() {
    let server = Server::start(Kind::AdmitsNone).await;
    let mut client = Client::start(&server.line());
    let port = client.report().await.address.expect("a port");
    let (peer, at) = peer().await;
    while server.count(CREATE_PERMISSION) == 0 {
        client.send(at, b"lost");
        sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..50 {
        client.send(at, b"lost");
        sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(
        server.count(CREATE_PERMISSION),
        1,
        "it is not asked for each packet"
    );
    let mut buffer = [0; 16];
    assert!(peer.try_recv(&mut buffer).is_err());
    assert_eq!(client.tunnels.turn().address(), Some(port));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_noticed_and_asked_again() {
    let server = Server::start(Kind::Honest).await;
    let mut client = Client::start(&server.line());
    assert!(client.report().await.address.is_some());
    // An idle one answers that it is there.
    sleep(Duration::from_secs(60)).await;
    assert!(server.count(REFRESH) >= 3);
    assert!(client.reports.try_recv().is_err());
    server.set(Kind::Silent);
    let began = Instant::now();
    let report = client.reports.recv().await.expect("the task runs");
    assert_eq!(report.code, Code::Timeout.value());
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(client.tunnels.turn().address(), None);
    server.set(Kind::Honest);
    let report = client.reports.recv().await.expect("the task runs");
    assert!(report.address.is_some());
}

/// A binding request.
const REQUEST: [u8; 20] = [
    0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
];

/// A server on TCP that writes these bytes to each client, again and again if `repeats`, and reads nothing else.
async fn babbler(bytes: &'static [u8], repeats: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("bound");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 64];
            let _ = stream.read(&mut request).await;
            while stream.write_all(bytes).await.is_ok() && repeats {}
        }
    });
    address
}

#[tokio::test]
async fn a_stream_that_is_no_turn_ends() {
    let html = b"<html>go away</html>............................................";
    let endless: &[u8] = &[0x40, 0, 0, 4, 1, 2, 3, 4];
    for (bytes, repeats, code) in [
        (&html[..], false, Code::SerializationError),
        (&[0x80; 64], false, Code::SerializationError),
        (&[0x40, 0, 0xff, 0xff], false, Code::SerializationError),
        (b"", false, Code::ConnectionFailed),
        (endless, true, Code::Timeout),
        // STUN without its cookie, and a request.
        (&[0; 20], true, Code::SerializationError),
        (&REQUEST, true, Code::SerializationError),
    ] {
        let address = babbler(bytes, repeats).await;
        let line = format!("turn:{address}?transport=tcp username=u password=p");
        let mut client = Client::start(&line);
        assert_eq!(client.report().await.code, code.value(), "{bytes:?}");
    }
    // Nothing listens there.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("bound");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let mut client = Client::start(&format!("turns:{address} username=u password=p"));
    assert_eq!(client.report().await.code, Code::ConnectionFailed.value());
}

#[tokio::test]
async fn packets_before_there_is_a_port_are_dropped_and_counted() {
    let tunnels = Tunnels::new(Fingerprint([1; 32]), 0);
    let transmit = Transmit {
        destination: through_turn("192.0.2.1:7".parse().expect("an address")).expect("of IPv4"),
        ecn: None,
        contents: &[7; 30],
        segment_size: Some(10),
        src_ip: None,
    };
    assert!(tunnels.take(&transmit));
    assert_eq!(tunnels.stats().dropped, 3);
    tunnels.turn().set_address(Some(([192, 0, 2, 9], 7).into()));
    for _ in 0..100 {
        assert!(tunnels.take(&transmit));
    }
    assert_eq!(
        tunnels.stats().dropped,
        3 + 300 - 128,
        "the queue has a bound"
    );
}

/// Messages that are almost those of a server.
fn almost(chance: &mut ChaCha8Rng) -> bytes::Bytes {
    let peer = SocketAddr::from(([203, 0, 113, chance.random()], 7));
    let mut message = match chance.random_range(0..4) {
        0 => indication(peer, &[7; 40]),
        1 => {
            let asked = Message::builder_request(ALLOCATE, MessageWriteVec::new()).finish();
            let asked = Message::from_bytes(&asked).expect("just written");
            let mut answer = Message::builder_error(&asked, MessageWriteVec::new());
            let error = ErrorCode::builder(486).build().expect("a code");
            answer.add_attribute(&error).expect("room");
            answer.finish()
        }
        2 => vec![0x40 | chance.random_range(0..16), 0, 0, 4, 1, 2, 3, 4],
        _ => (0..chance.random_range(0..80))
            .map(|_| chance.random())
            .collect(),
    };
    for _ in 0..chance.random_range(0..4) {
        if let Some(at) = message.len().checked_sub(1) {
            message[chance.random_range(0..=at)] = chance.random();
        }
    }
    message.truncate(chance.random_range(0..=message.len().max(1)));
    message.into()
}

#[tokio::test]
async fn no_message_of_a_server_breaks_a_session() {
    let server = Server::start(Kind::Honest).await;
    let mut chance = ChaCha8Rng::seed_from_u64(7);
    let tunnels = Arc::new(Tunnels::new(Fingerprint([1; 32]), 0));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("bound");
    let stream = listener.local_addr().expect("bound");
    let tcp = format!("turn:{stream}?transport=tcp username=u password=p");
    for (line, is_allocated) in [(server.line(), true), (server.line(), false), (tcp, false)] {
        let servers = TurnServer::parse_list(&line).expect("a server");
        let mut sessions = 0;
        while sessions < 50 {
            sessions += 1;
            let line = match servers[0].transport {
                TurnTransport::Udp => Line::udp(None, server.address).await,
                _ => Line::stream(None, stream, None).await,
            };
            let line = line.unwrap_or_else(|fault| panic!("no line: {fault}"));
            let mut session = Session::new(line, &servers[0], Arc::clone(&tunnels));
            if is_allocated {
                session
                    .allocate()
                    .await
                    .unwrap_or_else(|fault| panic!("{fault}"));
            }
            for _ in 0..200 {
                if session
                    .received(almost(&mut chance))
                    .and(session.poll())
                    .is_err()
                {
                    break;
                }
            }
        }
    }
}

#[test]
fn addresses_of_other_networks_are_not_dialled_from_the_server() {
    let tunnels = Tunnels::new(Fingerprint([1; 32]), 0);
    let turn = tunnels.turn();
    let [global, private, v6] = ["203.0.113.7:9", "192.168.1.7:9", "[2001:db8::1]:9"]
        .map(|text| text.parse::<SocketAddr>().expect("an address"));
    assert_eq!(turn.way_to(global), None, "without a port");
    turn.set_address(Some(([203, 0, 113, 80], 50001).into()));
    assert_eq!(turn.way_to(global), through_turn(global));
    assert_eq!((turn.way_to(private), turn.way_to(v6)), (None, None));
    turn.set_address(Some(([10, 0, 0, 80], 50001).into()));
    assert_eq!(turn.way_to(private), through_turn(private));
}

#[test]
fn an_answer_from_the_internet_shows_whether_udp_passes() {
    let tunnels = Tunnels::new(Fingerprint([1; 32]), 0);
    let turn = tunnels.turn();
    let global: SocketAddr = "203.0.113.7:9".parse().expect("an address");
    let through = through_turn(global).expect("of IPv4");
    turn.note_answer(through);
    assert!(!turn.is_only_way(), "without a port");
    turn.set_address(Some(([203, 0, 113, 80], 50001).into()));
    assert!(turn.is_only_way());
    turn.note_answer("192.168.1.7:9".parse().expect("an address"));
    assert!(turn.is_only_way(), "this network proves nothing");
    turn.note_answer(global);
    assert!(!turn.is_only_way());
}
