//! Strangers: a process that does not belong to the room, or makes a false claim, gets a code and costs little.

pub(super) mod closers;
mod crowds;

use std::net::UdpSocket;
use std::time::Instant;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::task::JoinSet;

use super::*;
use crate::core::wire::MAX_JOIN_PAYLOAD_BYTES;
use crate::net::accept::MAX_ADMISSIONS_OF_ONE;
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::net::frame::write_frame;

/// The code that the dialler of `connection` would get from its close.
async fn close_of(connection: &Connection) -> i32 {
    DialError::from(in_time(connection.closed()).await).code()
}

#[tokio::test]
async fn udp_garbage_disturbs_no_member() {
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
            // A packet that looks like the first of a dialler.
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

/// Accepts any key of the other end.
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
    // The client may consider itself connected for a moment: the server decides last.
    let error = match stranger.dial_with(config, pair.a.address()).await {
        Ok(connection) => in_time(connection.closed()).await,
        Err(error) => error,
    };
    assert_eq!(DialError::from(error).code(), -4);
    pair.undisturbed("a client without a key").await;
    assert_eq!(pair.a.census().connections, 1);
}

#[tokio::test]
async fn another_protocol_version_is_reported() {
    let pair = Pair::settled("version").await;
    let stranger = Process::start();
    let config = stranger.client(None, b"mmn/999");
    let error = stranger.dial_with(config, pair.a.address()).await;
    assert_eq!(DialError::from(error.expect_err("refused")).code(), -12);
    pair.undisturbed("another version").await;
}

#[tokio::test]
async fn an_invalid_pake_ends_the_admission_at_once() {
    let pair = Pair::settled("no pake").await;
    let random = vec![0xa5; 2000];
    let huge = u32::MAX.to_le_bytes().to_vec();
    let empty = vec![0; 4];
    for bytes in [random, huge, empty] {
        let stranger = Attacker::new("stranger", "no pake");
        let connection = stranger.connect(&pair.a).await;
        let (mut send, _recv) = connection.open_bi().await.expect("a stream");
        // It may be closed before it has read everything.
        let _ = send.write_all(&bytes).await;
        assert_eq!(close_of(&connection).await, -9);
    }
    pair.undisturbed("no PAKE").await;
}

/// Step after which a dialler falls silent.
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
            std::mem::forget((send, recv)); // dropping them would end the stream
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
async fn a_silent_newcomer_times_out_and_its_place_is_free_again() {
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
            // Waiting dials are not connected, and are never refused.
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

/// The first packets of `count` dials, as an attacker may send them from forged addresses.
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
    assert_eq!(guesser.connect(&pair.a).await, (false, -22));
    let honest = Host::open("honest", "right");
    let start = Instant::now();
    assert_eq!(honest.connect(&pair.a).await, (false, -22));
    assert!(start.elapsed() < Duration::from_secs(2), "reported at once");
    pair.undisturbed("wrong guesses").await;
    // b's room was not guessed at.
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
    // Even if it claims to have restarted, or that the session is over: it has another key.
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
    // A valid Hello, but no Ready.
    let (connection, mut send, _recv, ack) = dialler.say_hello(&pair.a, &dialler.hello()).await;
    assert_eq!(ack.code, 0);
    send.write_all(&[1, 0, 0, 0, 9]).await.expect("written");
    assert_eq!(close_of(&connection).await, -9);
    pair.undisturbed("a malformed Hello").await;
    assert_eq!(pair.a.comings_and_goings(), vec![joined("b")]);
}

#[tokio::test]
async fn a_full_room_reports_that_it_is_full() {
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
    for (sent, seen) in [(-14, -4), (5, -4), (i32::MIN, -4), (-13, -13)] {
        let liar = Attacker::new("liar", "liar");
        let accept = async {
            let connection = liar.process.accept().await.expect("dialled");
            let admitted = in_time(accept_pake(&connection, &liar.proof)).await;
            let (mut send, mut recv) = admitted.expect("the room is known");
            in_time(read_hello(&mut recv)).await.expect("a Hello");
            let ack = HelloAck {
                code: sent,
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
        assert_eq!(result, (false, seen), "when it answers {sent}");
    }
    pair.undisturbed("a liar").await;
}
