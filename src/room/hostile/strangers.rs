//! Whoever does not belong to the room, or is not what it says, gets a code and costs little.

use std::net::{IpAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::task::JoinSet;

use super::cut::{cut, heal};
use super::*;
use crate::core::wire::MAX_JOIN_PAYLOAD_BYTES;
use crate::net::admission::{accept_pake, accept_without_answer, read_hello, write_hello_ack};
use crate::net::dial::MAX_ADMISSIONS_OF_ONE;
use crate::net::discovery::{announcement, tag};
use crate::net::frame::write_frame;
use crate::net::socket::Bound;

/// The code that the dialler of `connection` would get from its close.
async fn close_of(connection: &Connection) -> i32 {
    DialError::from(in_time(connection.closed()).await).code()
}

#[tokio::test]
async fn udp_garbage_disturbs_nobody() {
    let pair = Pair::settled("garbage").await;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let mut seed = 7_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33).to_le_bytes()[0]
    };
    for n in 0..3000 {
        let len = usize::from(random()) * 6;
        let mut packet: Vec<u8> = (0..len).map(|_| random()).collect();
        if n % 2 == 0 && packet.len() > 5 {
            // What looks like the first packet of a dialler.
            packet.resize(1200, random());
            packet[0] = 0xc0 | (packet[0] & 0x0f);
            packet[1..5].copy_from_slice(&1_u32.to_be_bytes());
            packet[5] = 8;
        }
        let _ = socket.send_to(&packet, pair.a.address());
    }
    pair.undisturbed("garbage").await;
    let c = Host::open("c", "garbage");
    assert_eq!(c.connect(&pair.a).await, (true, 0));
}

/// Takes whatever the other end shows.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_client_without_a_key_is_turned_away_by_tls() {
    let pair = Pair::settled("keyless").await;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).expect("a suite");
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let stranger = Process::start();
    // The client may believe for a moment that it is connected: the server judges last.
    let error = match stranger.dial_with(config, pair.a.address()).await {
        Ok(connection) => in_time(connection.closed()).await,
        Err(error) => error,
    };
    assert_eq!(DialError::from(error).code(), -4);
    pair.undisturbed("a client without a key").await;
    assert_eq!(pair.a.census().connections, 1);
}

#[tokio::test]
async fn another_protocol_version_is_told_so() {
    let pair = Pair::settled("version").await;
    let stranger = Process::start();
    let config = stranger.client(None, b"mmn/999");
    let error = stranger.dial_with(config, pair.a.address()).await;
    assert_eq!(DialError::from(error.expect_err("refused")).code(), -12);
    pair.undisturbed("another version").await;
}

#[tokio::test]
async fn what_is_no_pake_ends_the_admission_at_once() {
    let pair = Pair::settled("no pake").await;
    let random = vec![0xa5; 2000];
    let huge = u32::MAX.to_le_bytes().to_vec();
    let empty = vec![0; 4];
    for bytes in [random, huge, empty] {
        let stranger = Attacker::new("stranger", "no pake");
        let connection = stranger.connect(&pair.a).await;
        let (mut send, _recv) = connection.open_bi().await.expect("a stream");
        // It may be closed before it has taken everything.
        let _ = send.write_all(&bytes).await;
        assert_eq!(close_of(&connection).await, -9);
    }
    pair.undisturbed("no PAKE").await;
}

/// How far a dialler goes before it falls silent.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Tls,
    HalfAFrame,
    Pake,
    Hello,
}

async fn fall_silent(stranger: &Attacker, to: &Host, phase: Phase) -> Connection {
    let connection = stranger.connect(to).await;
    match phase {
        Phase::Tls => {}
        Phase::HalfAFrame => {
            let (mut send, recv) = connection.open_bi().await.expect("a stream");
            send.write_all(&[34, 0, 0, 0, 0]).await.expect("written");
            std::mem::forget((send, recv)); // dropped, they would end the stream
        }
        Phase::Pake | Phase::Hello => {
            let admitted = in_time(dial_pake(&connection, &stranger.proof)).await;
            let (mut send, recv) = admitted.expect("the room is known");
            if let Phase::Hello = phase {
                write_hello(&mut send, &stranger.hello())
                    .await
                    .expect("written");
            }
            std::mem::forget((send, recv));
        }
    }
    connection
}

#[tokio::test]
async fn whoever_falls_silent_is_given_up_in_time_and_its_place_is_free_again() {
    let config = Config {
        handshake_timeout: Duration::from_secs(2),
        ..quick()
    };
    let pair = Pair::settled_with("silent", config).await;
    for phase in [Phase::Tls, Phase::HalfAFrame, Phase::Pake, Phase::Hello] {
        // All places that one address may have.
        let strangers: Vec<_> = (0..MAX_ADMISSIONS_OF_ONE)
            .map(|n| Attacker::new(&format!("s{n}"), "silent"))
            .collect();
        let mut connections = Vec::new();
        for stranger in &strangers {
            connections.push(fall_silent(stranger, &pair.a, phase).await);
        }
        let last = Instant::now();
        for connection in &connections {
            assert_eq!(close_of(connection).await, -19, "{phase:?}");
        }
        assert!(last.elapsed() < Duration::from_secs(5), "{phase:?}");
        let honest = Host::open("honest", "silent");
        assert_eq!(honest.connect(&pair.a).await, (true, 0), "{phase:?}");
        honest.room.close();
        pair.undisturbed(&format!("silence after {phase:?}")).await;
        eventually("no connection but that of b", || {
            let census = pair.a.census();
            census.connections == 1 && census.links == 1 && census.reserved == 0
        })
        .await;
    }
}

#[tokio::test]
async fn forty_silent_strangers_keep_an_honest_dialler_out_for_one_handshake_timeout_at_most() {
    let config = Config {
        handshake_timeout: Duration::from_secs(3),
        ..quick()
    };
    let pair = Pair::settled_with("forty", config.clone()).await;
    let stranger = Arc::new(Process::start());
    let mut dials = JoinSet::new();
    for _ in 0..40 {
        let dialling = {
            let config = stranger.client(None, ALPN);
            let address = pair.a.address();
            let dialling = stranger.endpoint.connect_with(config, address, "mmn");
            dialling.expect("an address")
        };
        dials.spawn(async move {
            // Those that wait are not connected, and never refused.
            match tokio::time::timeout(Duration::from_secs(10), dialling).await {
                Ok(Ok(connection)) => Ok(connection),
                Ok(Err(error)) => Err(DialError::from(error)),
                Err(_) => Err(DialError::TimedOut),
            }
        });
    }
    sleep(Duration::from_millis(100)).await;
    let honest = Host::open_with("honest", "forty", config);
    let start = Instant::now();
    let mut result = honest.connect(&pair.a).await;
    while result == (false, -19) && start.elapsed() < Duration::from_secs(5) {
        result = honest.connect(&pair.a).await;
    }
    assert_eq!(result, (true, 0), "after {:?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "one timeout is 3 s"
    );
    pair.undisturbed("forty strangers").await;
    stranger.endpoint.close(VarInt::from_u32(0), b"");
    while let Some(dial) = dials.join_next().await {
        assert_ne!(dial.expect("no panic").err(), Some(DialError::Refused));
    }
}

/// The first packets of `count` dials, as somebody may send them from addresses that are not its own.
async fn first_packets(count: usize) -> Vec<Vec<u8>> {
    let sink = tokio::net::UdpSocket::bind("127.0.0.1:0").await;
    let sink = sink.expect("bound");
    let address = sink.local_addr().expect("bound");
    let stranger = Process::start();
    let mut packets = Vec::new();
    for _ in 0..count {
        let config = stranger.client(None, ALPN);
        let dialling = stranger.endpoint.connect_with(config, address, "mmn");
        let _dialling = dialling.expect("an address");
        let mut packet = vec![0; 2048];
        loop {
            let (len, _) = in_time(sink.recv_from(&mut packet))
                .await
                .expect("a packet");
            let dial = packet[6..14].to_vec();
            let seen = |other: &Vec<u8>| other[6..14] == dial;
            if packet[0] & 0xf0 == 0xc0 && !packets.iter().any(seen) {
                packet.truncate(len);
                break;
            }
        }
        packets.push(packet);
    }
    packets
}

#[tokio::test]
async fn diallers_with_forged_addresses_do_not_keep_an_honest_one_out() {
    let pair = Pair::settled("forged").await;
    for packet in first_packets(40).await {
        let from = UdpSocket::bind("127.0.0.1:0").expect("bound");
        from.send_to(&packet, pair.a.address()).expect("sent");
    }
    let honest = Host::open("honest", "forged");
    let start = Instant::now();
    assert_eq!(honest.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout / 2);
    pair.undisturbed("forged addresses").await;
}

#[tokio::test]
async fn after_five_wrong_guesses_an_address_is_refused_and_members_stay() {
    let pair = Pair::settled("right").await;
    let guesser = Host::open("guesser", "wrong");
    for _ in 0..5 {
        assert_eq!(guesser.connect(&pair.a).await, (false, -10));
    }
    assert_eq!(guesser.connect(&pair.a).await, (false, -4));
    let honest = Host::open("honest", "right");
    let start = Instant::now();
    assert_eq!(honest.connect(&pair.a).await, (false, -4));
    assert!(start.elapsed() < Duration::from_secs(2), "told at once");
    pair.undisturbed("wrong guesses").await;
    // b was not guessed at.
    assert_eq!(honest.connect(&pair.b).await, (true, 0));
}

#[tokio::test]
async fn an_id_that_is_taken_and_rules_that_differ_are_refused() {
    let pair = Pair::settled("refusals").await;
    let dialler = || Attacker::new("dialler", "refusals");
    let named = |name| {
        let mut hello = dialler().hello();
        hello.peer_id = id(name);
        hello
    };
    let mut differing = dialler().hello();
    differing.policy.authority = Authority::LeaderOnly;
    for (hello, code) in [(named("a"), -11), (named("b"), -11), (differing, -20)] {
        assert_eq!(dialler().refused(&pair.a, &hello).await, code);
    }
    // Also when it says that it has restarted, or that the session is over: it has another key.
    let mut newer = named("b");
    newer.incarnation.started_us = u64::MAX;
    newer.generation = u32::MAX;
    newer.by_hand = true;
    assert_eq!(dialler().refused(&pair.a, &newer).await, -11);
    pair.undisturbed("refusals").await;
    assert_eq!(pair.a.comings_and_goings(), vec![joined("b")]);
}

#[tokio::test]
async fn a_malformed_hello_is_refused() {
    let pair = Pair::settled("hello").await;
    let dialler = Attacker::new("dialler", "hello");
    let hello = postcard::to_allocvec(&dialler.hello()).expect("encodes");
    let trailing = [&hello[..], &[0]].concat();
    let mut control_character = hello.clone();
    let at = hello.windows(7).position(|w| w == b"dialler");
    control_character[at.expect("its name")] = b'\n';
    let mut turned = hello.clone();
    let name = at.expect("its name");
    turned[name..name + 7].copy_from_slice("dial\u{202e}".as_bytes());
    let mut long = dialler.hello();
    long.join_payload = vec![0; MAX_JOIN_PAYLOAD_BYTES + 1];
    let long = postcard::to_allocvec(&long).expect("encodes");
    let cut = hello[..hello.len() / 2].to_vec();
    let bodies = [trailing, control_character, turned, long, cut, Vec::new()];
    for body in bodies {
        let connection = dialler.connect(&pair.a).await;
        let admitted = in_time(dial_pake(&connection, &dialler.proof)).await;
        let (mut send, _recv) = admitted.expect("the room is known");
        write_frame(&mut send, &body, 1 << 20)
            .await
            .expect("written");
        assert_eq!(close_of(&connection).await, -9);
    }
    // A good Hello and then no Ready.
    let (connection, mut send, _recv, ack) = dialler.say_hello(&pair.a, &dialler.hello()).await;
    assert_eq!(ack.code, 0);
    send.write_all(&[1, 0, 0, 0, 9]).await.expect("written");
    assert_eq!(close_of(&connection).await, -9);
    pair.undisturbed("a malformed Hello").await;
    assert_eq!(pair.a.comings_and_goings(), vec![joined("b")]);
}

#[tokio::test]
async fn a_full_room_says_so() {
    let config = Config {
        max_connections: 1,
        ..quick()
    };
    let pair = Pair::settled_with("full", config).await;
    let c = Host::open("c", "full");
    assert_eq!(c.connect(&pair.a).await, (false, -13));
    pair.undisturbed("a full room").await;
    assert_eq!(c.comings_and_goings(), vec![]);
}

#[tokio::test]
async fn a_peer_dialled_twice_by_hand_is_connected_already() {
    let pair = Pair::settled("twice").await;
    assert_eq!(pair.b.connect(&pair.a).await, (true, -14));
    assert_eq!(pair.a.connect(&pair.b).await, (true, -14));
    pair.undisturbed("a second dial").await;
}

#[tokio::test]
async fn an_acceptor_cannot_make_a_failure_look_like_success() {
    let pair = Pair::settled("liar").await;
    for (said, seen) in [(-14, -4), (5, -4), (i32::MIN, -4), (-13, -13)] {
        let liar = Attacker::new("liar", "liar");
        let accept = async {
            let connection = liar.process.accept().await.expect("dialled");
            let admitted = in_time(accept_pake(&connection, &liar.proof)).await;
            let (mut send, mut recv) = admitted.expect("the room is known");
            in_time(read_hello(&mut recv)).await.expect("a Hello");
            let ack = HelloAck {
                code: said,
                kicked: false,
                reason: 0,
                bytes: Vec::new(),
                hello: liar.hello(),
            };
            write_hello_ack(&mut send, &ack).await.expect("written");
            in_time(connection.closed()).await
        };
        let address = liar.process.address();
        let (result, _) = tokio::join!(pair.a.connect_address(address), accept);
        assert_eq!(result, (false, seen), "when it says {said}");
    }
    pair.undisturbed("a liar").await;
}

/// Opens a room at another address of this machine than the others.
fn open_elsewhere(name: &str, session: &str, config: Config) -> Host {
    let bind_address = Some(IpAddr::from([127, 0, 0, 2]));
    Host::open_with(
        name,
        session,
        Config {
            bind_address,
            ..config
        },
    )
}

impl Pair {
    /// Cuts the cable between the two until both have noticed, and waits until they are back.
    async fn lose_and_find_each_other(&self) {
        let ports = [self.a.port(), self.b.port()];
        cut(ports[0], ports[1]);
        cut(ports[1], ports[0]);
        self.a.wait_for(left("b"), 1).await;
        self.b.wait_for(left("a"), 1).await;
        heal(ports[0], ports[1]);
        heal(ports[1], ports[0]);
        self.a.wait_for(joined("b"), 2).await;
        self.b.wait_for(joined("a"), 2).await;
    }
}

/// Guesses that one address has from a moment on: five, and five more after each minute.
fn allowed_since(first: Instant) -> usize {
    let minutes = first.elapsed().as_secs() / 60;
    5 * (1 + usize::try_from(minutes).expect("few"))
}

/// Dials, over and over, and tests guesses; counts those that were heard.
async fn guess_by_dialling(address: SocketAddr, heard: Arc<AtomicUsize>) {
    let guesser = Attacker::new("guesser", "a guess");
    let patience = Duration::from_secs(8);
    loop {
        let config = guesser.process.client(None, ALPN);
        let dialling = guesser
            .process
            .endpoint
            .connect_with(config, address, "mmn");
        let dialling = tokio::time::timeout(patience, dialling.expect("an address"));
        let Ok(Ok(connection)) = dialling.await else {
            continue;
        };
        let guess = dial_pake(&connection, &guesser.proof);
        if let Ok(Err(error)) = tokio::time::timeout(patience, guess).await
            && error.code() == -10
        {
            heard.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn of_250_ports_that_dial_and_guess_five_are_heard_and_honest_ones_get_in() {
    const SESSION: &str = "dialled by guessers";
    let pair = Pair::settled(SESSION).await;
    let member = Attacker::new("member", SESSION);
    let _link = member.join(&pair.a).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let first = Instant::now();
    let mut guessers = JoinSet::new();
    for _ in 0..250 {
        guessers.spawn(guess_by_dialling(pair.a.address(), Arc::clone(&heard)));
    }
    let count = || heard.load(Ordering::Relaxed);
    eventually("five guesses are heard", || count() >= 5).await;
    let began = Instant::now();
    // Elsewhere: at once. Here: whoever was a member.
    let newcomer = open_elsewhere("newcomer", SESSION, quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout);
    pair.lose_and_find_each_other().await;
    sleep(Duration::from_secs(8).saturating_sub(began.elapsed())).await;
    assert!(count() <= allowed_since(first), "{} guesses", count());
    guessers.shutdown().await;

    // The door is closed for strangers there, whatever they know, and open for a key that is known.
    let honest = Host::open("honest", SESSION);
    let result = loop {
        match honest.connect(&pair.a).await {
            (false, -19) => {} // behind guessers that are still in line
            result => break result,
        }
    };
    assert_eq!(result, (false, -4));
    let connection = member.connect(&pair.a).await;
    let admitted = in_time(dial_pake(&connection, &member.proof)).await;
    assert!(admitted.is_ok(), "a known key");
}

/// Takes links, and tests a guess on whoever dials; counts the diallers, by port, whose confirmation it got.
async fn guess_by_being_dialled(guesser: Attacker, got: Arc<Mutex<Vec<u16>>>) {
    loop {
        let incoming = guesser.process.endpoint.accept().await;
        let Ok(connection) = incoming.expect("open").await else {
            continue;
        };
        if let Err(error) = accept_pake(&connection, &guesser.proof).await
            && error.is_failed_confirmation()
        {
            let dialler = connection.remote_address().port();
            got.lock().expect("not poisoned").push(dialler);
        }
    }
}

fn on_the_network(mdns_port: u16) -> Config {
    Config {
        discovery: DiscoveryMode::Connect,
        mdns_port: Some(mdns_port),
        ..quick()
    }
}

#[tokio::test]
async fn of_250_announced_ports_five_learn_whether_they_guessed_and_honest_ones_get_in() {
    const SESSION: &str = "dials guessers";
    const MDNS_PORT: u16 = 25_401;
    let got = Arc::new(Mutex::new(Vec::new()));
    let first = Instant::now();
    let responder = mdns_sd::ServiceDaemon::new_with_port(MDNS_PORT).expect("a responder");
    let tag = tag(&SessionId::new(SESSION).expect("valid"));
    let mut guessers = JoinSet::new();
    for n in 0..250 {
        let guesser = Attacker::new("guesser", "a guess");
        let bound = Bound {
            address: Some(Ipv4Addr::LOCALHOST.into()),
            port: guesser.process.address().port(),
        };
        let service = announcement(&format!("{n:016x}"), &tag, bound).expect("a service");
        while let Err(error) = responder.register(service.clone()) {
            assert!(matches!(error, mdns_sd::Error::Again), "{error}");
            sleep(Duration::from_millis(5)).await;
        }
        guessers.spawn(guess_by_being_dialled(guesser, Arc::clone(&got)));
    }
    let pair = Pair {
        a: Host::open_with("a", SESSION, on_the_network(MDNS_PORT)),
        b: Host::open("b", SESSION),
    };
    assert_eq!(pair.b.connect(&pair.a).await, (true, 0));
    pair.a.wait_for(joined("b"), 1).await;
    let count = || {
        let got = got.lock().expect("not poisoned");
        let of_a = got.iter().filter(|port| **port == pair.a.port());
        of_a.count()
    };
    eventually("a dials what is announced", || count() >= 5).await;
    let began = Instant::now();
    // By hand, and found by discovery.
    let newcomer = open_elsewhere("newcomer", SESSION, quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout);
    let _found = open_elsewhere("found", SESSION, on_the_network(MDNS_PORT));
    pair.a.wait_for(joined("found"), 1).await;
    pair.lose_and_find_each_other().await;
    // A host that dials there is told until when it cannot.
    let results = watch::Sender::new(Vec::new());
    let mut told = results.subscribe();
    let tell = move |result: &ConnectionResult| results.send_modify(|all| all.push(result.clone()));
    let dispatch = pair.a.room.dispatch();
    dispatch.register_connection_result(Some(Arc::new(tell)));
    let outsider = Process::start();
    pair.a.connect_to(outsider.address());
    let result = in_time(told.wait_for(|all| !all.is_empty())).await;
    let result = result.expect("the room is open")[0].clone();
    assert_eq!((result.success, result.code), (false, -4));
    let sentence = String::from_utf8_lossy(&result.bytes).into_owned();
    assert!(
        sentence.starts_with("127.0.0.1 is not dialled for another "),
        "{sentence}"
    );
    sleep(Duration::from_secs(10).saturating_sub(began.elapsed())).await;
    assert!(count() <= allowed_since(first), "{} guesses", count());
}

#[tokio::test]
async fn of_forty_dials_at_once_five_show_a_silent_acceptor_whether_it_guessed() {
    let config = Config {
        handshake_timeout: Duration::from_secs(2),
        ..quick()
    };
    let host = Host::open_with("host", "silence", config);
    let confirmations = Arc::new(AtomicUsize::new(0));
    let mut acceptors = JoinSet::new();
    for _ in 0..40 {
        let acceptor = Attacker::new("acceptor", "a guess");
        host.connect_to(acceptor.process.address());
        let confirmations = Arc::clone(&confirmations);
        acceptors.spawn(async move {
            let Ok(connection) = acceptor.process.accept().await else {
                return;
            };
            // It reads the confirmation, and then neither answers nor closes.
            let streams = accept_without_answer(&connection, &acceptor.proof).await;
            if streams.is_ok() {
                confirmations.fetch_add(1, Ordering::Relaxed);
            }
            connection.closed().await;
        });
    }
    let results = |told: &[Told]| {
        let is_result = |told: &&Told| matches!(told, Told::Connection(false, _));
        (told.iter().filter(is_result).count() == 40).then_some(())
    };
    host.wait("forty results", results).await;
    assert_eq!(confirmations.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn silent_strangers_at_one_address_leave_a_place_for_somebody_elsewhere() {
    let pair = Pair::settled("places").await;
    let stranger = Process::start();
    let mut dials = JoinSet::new();
    for _ in 0..100 {
        let config = stranger.client(None, ALPN);
        let dialling = stranger
            .endpoint
            .connect_with(config, pair.a.address(), "mmn");
        let dialling = dialling.expect("an address");
        dials.spawn(async move {
            let connection = dialling.await;
            std::future::pending::<()>().await;
            drop(connection);
        });
    }
    eventually("all places of the address are taken", || {
        pair.a.census().connections > MAX_ADMISSIONS_OF_ONE
    })
    .await;
    let newcomer = open_elsewhere("newcomer", "places", quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout / 2);
    pair.undisturbed("silent strangers at one address").await;
}

/// Heartbeats of a thousand links in one process must leave the machine some time, and it may be a slow one: elsewhere
/// all are in after a second.
fn crowded(config: Config) -> Config {
    Config {
        heartbeat_interval: Duration::from_secs(1),
        election_timeout_min: Duration::from_secs(3),
        election_timeout_max: Duration::from_secs(6),
        handshake_timeout: Duration::from_secs(20),
        ..config
    }
}

/// Opens rooms on one address, all at once.
fn open_many(count: usize, session: &str, config: &Config) -> Vec<Host> {
    (0..count)
        .map(|n| Host::open_with(&format!("p{n:02}"), session, config.clone()))
        .collect()
}

async fn form_a_mesh(hosts: &[Host]) {
    let start = Instant::now();
    while !hosts
        .iter()
        .all(|host| host.room.snapshot().connected == hosts.len() - 1)
    {
        let seen: Vec<_> = hosts.iter().map(|h| h.room.snapshot().connected).collect();
        assert!(start.elapsed() < 3 * PATIENCE, "no mesh: {seen:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn thirty_two_members_on_one_address_that_dial_one_contact_at_once_form_a_mesh() {
    let hosts = open_many(32, "crowd", &crowded(quick()));
    let mut results = Vec::new();
    for host in &hosts[1..] {
        results.push(host.connect(&hosts[0]));
    }
    for result in futures_in_order(results).await {
        // The mesh may have been faster.
        assert!(matches!(result, (true, 0 | -14)), "{result:?}");
    }
    form_a_mesh(&hosts).await;
    close(&hosts);
}

/// All at once: each takes its leave of all others.
fn close(hosts: &[Host]) {
    std::thread::scope(|scope| {
        for host in hosts {
            scope.spawn(|| host.room.close());
        }
    });
}

/// Drives all of `futures` at once.
async fn futures_in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *result = Some(ready);
            }
        }
        match results.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test]
async fn thirty_two_members_on_one_address_that_find_each_other_form_a_mesh() {
    let hosts = open_many(32, "found crowd", &crowded(on_the_network(25_402)));
    form_a_mesh(&hosts).await;
    close(&hosts);
}

#[tokio::test]
async fn two_rooms_with_one_tag_on_one_address_do_not_starve_each_other() {
    let mut seen = std::collections::BTreeMap::new();
    let (one, other) = (0..)
        .find_map(|n| {
            let name = format!("typo {n}");
            let session = SessionId::new(&name).expect("valid");
            let other = seen.insert(tag(&session), name.clone())?;
            Some((name, other))
        })
        .expect("16 bits collide");
    let config = on_the_network(25_403);
    let rooms = [open_many(6, &one, &config), open_many(6, &other, &config)];
    for room in &rooms {
        form_a_mesh(room).await;
    }
}

/// A response with 40 made-up members, as anybody on the network may send it.
fn forged_records(number: u32) -> Vec<u8> {
    const RECORDS: u16 = 40;
    let mut packet = vec![0, 0, 0x84, 0, 0, 0];
    packet.extend(RECORDS.to_be_bytes());
    packet.extend([0; 4]);
    for record in 0..RECORDS {
        if record == 0 {
            for label in ["_meta-mystia", "_udp", "local"] {
                packet.push(u8::try_from(label.len()).expect("short"));
                packet.extend(label.as_bytes());
            }
            packet.push(0);
        } else {
            packet.extend([0xc0, 12]);
        }
        let name = format!("{number:08x}{record:08x}");
        // PTR, class IN, two minutes.
        packet.extend([0, 12, 0, 1, 0, 0, 0, 120, 0, 19]);
        packet.push(16);
        packet.extend(name.as_bytes());
        packet.extend([0xc0, 12]);
    }
    packet
}

#[tokio::test]
async fn a_flood_of_forged_records_makes_discovery_pause_and_not_end() {
    const MDNS_PORT: u16 = 25_404;
    let a = Host::open_with("a", "flooded", on_the_network(MDNS_PORT));
    eventually("a is announced", || a.room.is_announced()).await;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket2::SockRef::from(&socket)
        .set_multicast_if_v4(&Ipv4Addr::LOCALHOST)
        .expect("loopback");
    let start = Instant::now();
    let mut number = 0;
    while a.room.is_announced() {
        assert!(
            start.elapsed() < 2 * PATIENCE,
            "{number} packets changed nothing"
        );
        for _ in 0..10 {
            number += 1;
            let packet = forged_records(number);
            let _ = socket.send_to(&packet, ("224.0.0.251", MDNS_PORT));
        }
        sleep(Duration::from_millis(5)).await;
    }
    let b = Host::open_with("b", "flooded", on_the_network(MDNS_PORT));
    eventually("a is announced again", || a.room.is_announced()).await;
    a.wait_for(joined("b"), 1).await;
    b.wait_for(joined("a"), 1).await;
}
