use quinn::VarInt;
use room_transport::closing::ADMISSION_CODE_BASE;
use room_transport::quic::FIRST_INCOMING_UNI_STREAMS;
use room_transport::testing::{Process, in_time, pair};

use super::*;
use crate::core::election::raft::wire::{LiveLeader, Side};
use crate::core::election::record::{Epoch, Record, Stamp};
use crate::core::id::{Incarnation, PeerId};
use crate::core::wire::{Opaque, RoomPolicy, StateLimits};
use crate::net::frame::testing::{Streams, open_streams};

fn proof(process: &Process, session: &str, secret: Option<&[u8]>) -> RoomProof {
    RoomProof {
        session: SessionId::new(session).expect("valid"),
        secret: secret.and_then(Secret::new),
        own_key: process.identity.fingerprint(),
    }
}

/// Runs one admission between a dialler and an acceptor with these rooms and secrets.
async fn admit(
    dialler: (&str, Option<&[u8]>),
    acceptor: (&str, Option<&[u8]>),
) -> (
    Result<Streams, AdmissionError>,
    Result<Streams, AdmissionError>,
) {
    let (d, at_dialler, a, at_acceptor) = pair().await;
    let dial_proof = proof(&d, dialler.0, dialler.1);
    let accept_proof = proof(&a, acceptor.0, acceptor.1);
    in_time(async {
        tokio::join!(
            dial_pake(&at_dialler, &dial_proof),
            accept_pake(&at_acceptor, &accept_proof)
        )
    })
    .await
}

/// The codes that the two ends of [`admit`] get.
async fn codes(dialler: (&str, Option<&[u8]>), acceptor: (&str, Option<&[u8]>)) -> (i32, i32) {
    let (dialled, accepted) = admit(dialler, acceptor).await;
    let code = |result: Result<Streams, AdmissionError>| result.map_or_else(|e| e.code(), |_| 0);
    (code(dialled), code(accepted))
}

fn hello(join_payload: Vec<u8>) -> Hello {
    Hello {
        features: 0,
        peer_id: PeerId::new("alice").expect("valid"),
        incarnation: Incarnation {
            started_us: 1,
            random: 2,
        },
        generation: 0,
        losses: 0,
        by_hand: true,
        policy: RoomPolicy::default(),
        listen_port: 4433,
        max_message_size: 262_144,
        eligible: true,
        priority: -1,
        has_leader: true,
        side: Opaque::default(),
        join_payload,
        state: None,
    }
}

#[tokio::test]
async fn ends_that_know_the_room_admit_each_other() {
    assert_eq!(codes(("room", None), ("room", None)).await, (0, 0));
    let secret: Option<&[u8]> = Some(b"hunter2");
    assert_eq!(codes(("room", secret), ("room", secret)).await, (0, 0));
    // An empty secret counts as none.
    assert_eq!(codes(("room", Some(b"")), ("room", None)).await, (0, 0));
}

#[tokio::test]
async fn another_room_is_a_session_mismatch_for_both() {
    assert_eq!(codes(("room", None), ("moor", None)).await, (-10, -10));
}

#[tokio::test]
async fn another_secret_is_an_authentication_failure_for_both() {
    let (ours, theirs): (Option<&[u8]>, Option<&[u8]>) = (Some(b"secret"), Some(b"Secret"));
    assert_eq!(codes(("room", ours), ("room", theirs)).await, (-17, -17));
    assert_eq!(codes(("room", ours), ("room", None)).await, (-17, -17));
    assert_eq!(codes(("room", None), ("room", theirs)).await, (-17, -17));
    assert_eq!(codes(("room", ours), ("moor", ours)).await, (-17, -17));
}

#[tokio::test]
async fn the_border_between_room_and_secret_counts() {
    let (ours, theirs): (Option<&[u8]>, Option<&[u8]>) = (Some(b"bc"), Some(b"c"));
    assert_eq!(codes(("a", ours), ("ab", theirs)).await, (-17, -17));
}

#[tokio::test]
async fn the_acceptor_counts_a_failed_confirmation_and_the_dialler_sees_its_code() {
    let (dialled, accepted) = admit(("room", None), ("moor", None)).await;
    assert!(accepted.expect_err("another room").is_failed_confirmation());
    let dialled = dialled.expect_err("another room");
    assert!(matches!(
        dialled,
        AdmissionError::Connection(DialError::Closed { code: -10, .. })
    ));
}

#[tokio::test]
async fn the_admission_stream_carries_later_messages() {
    let (dialled, accepted) = admit(("room", None), ("room", None)).await;
    let (mut d_send, mut d_recv) = dialled.expect("admitted");
    let (mut a_send, mut a_recv) = accepted.expect("admitted");
    let ours = hello(vec![1; MAX_JOIN_PAYLOAD_BYTES]);
    write_hello(&mut d_send, &ours).await.expect("written");
    write_frame(&mut d_send, b"control", 64)
        .await
        .expect("written");
    assert_eq!(in_time(read_hello(&mut a_recv)).await.expect("read"), ours);
    let control = in_time(read_frame(&mut a_recv, 64)).await;
    assert_eq!(control.as_deref(), Ok(&b"control"[..]));

    let ack = HelloAck {
        code: 0,
        kicked: false,
        reason: 0,
        bytes: Vec::new(),
        hello: hello(Vec::new()),
    };
    write_hello_ack(&mut a_send, &ack).await.expect("written");
    let read = in_time(read_hello_ack(&mut d_recv)).await;
    assert_eq!(read.expect("read"), ack);
}

#[tokio::test]
async fn lanes_open_once_both_are_admitted_and_not_before() {
    let (d, at_dialler, a, at_acceptor) = pair().await;
    tokio::select! {
        biased;
        lane = at_dialler.open_uni() => panic!("a lane of a stranger: {lane:?}"),
        () = tokio::task::yield_now() => {}
    }
    let (dial_proof, accept_proof) = (proof(&d, "room", None), proof(&a, "room", None));
    let (dialled, accepted) = in_time(async {
        tokio::join!(
            dial_pake(&at_dialler, &dial_proof),
            accept_pake(&at_acceptor, &accept_proof)
        )
    })
    .await;
    let _streams = (dialled.expect("admitted"), accepted.expect("admitted"));
    for connection in [&at_dialler, &at_acceptor] {
        for _ in 0..FIRST_INCOMING_UNI_STREAMS {
            in_time(connection.open_uni()).await.expect("a lane");
        }
    }
}

/// Dials and sends `bytes` on the control stream. Returns the acceptor's error and the close that the dialler sees.
async fn dial_with_bytes(bytes: &[u8], finish: bool) -> (AdmissionError, ConnectionError) {
    let (_d, at_dialler, a, at_acceptor) = pair().await;
    let (mut send, _recv) = at_dialler.open_bi().await.expect("the control stream");
    send.write_all(bytes).await.expect("written");
    if finish {
        send.finish().expect("open");
    }
    let room = proof(&a, "room", None);
    let accepted = in_time(accept_pake(&at_acceptor, &room)).await;
    let seen = in_time(at_dialler.closed()).await;
    (accepted.expect_err("garbage"), seen)
}

fn frame(body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).expect("short");
    [&len.to_le_bytes(), body].concat()
}

/// A y-coordinate that belongs to no point of the curve.
fn no_point() -> [u8; 32] {
    (2..=255)
        .map(|n| {
            let mut y = [0; 32];
            y[0] = n;
            y
        })
        .find(|y| <Ed25519Group as spake2::Group>::bytes_to_element(y).is_none())
        .expect("half of all are none")
}

#[tokio::test]
async fn garbage_in_the_first_frame_ends_the_admission_with_a_code_and_is_no_guess() {
    let mut point = vec![0, b'A'];
    point.extend_from_slice(&no_point());
    let mut wrong_side = point.clone();
    wrong_side[1] = b'B';
    for (name, bytes) in [
        ("a length of 4 GiB", u32::MAX.to_le_bytes().to_vec()),
        ("one byte too long", 35u32.to_le_bytes().to_vec()),
        ("too short", frame(&[0; OPENING_BYTES - 1])),
        ("empty", frame(&[])),
        ("no flag", frame(&[2; OPENING_BYTES])),
        ("no point", frame(&point)),
        ("wrong side", frame(&wrong_side)),
    ] {
        let (error, seen) = dial_with_bytes(&bytes, false).await;
        assert_eq!(error.code(), -9, "{name}: {error}");
        assert!(!error.is_failed_confirmation(), "{name}");
        assert_eq!(DialError::from(seen).code(), -9, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_ends_the_admission() {
    let (error, _) = dial_with_bytes(&[1, 2], true).await;
    assert!(matches!(
        error,
        AdmissionError::Frame(FrameError::Truncated)
    ));
    let (error, _) = dial_with_bytes(&frame(&[0; 20])[..10], true).await;
    assert!(matches!(
        error,
        AdmissionError::Frame(FrameError::Truncated)
    ));
    let (error, seen) = dial_with_bytes(&[], true).await;
    assert!(matches!(error, AdmissionError::Frame(FrameError::End)));
    assert_eq!(DialError::from(seen).code(), -4);
}

#[tokio::test]
async fn a_confirmation_that_is_random_or_short_is_a_failed_guess() {
    for confirmation in [&[0; CONFIRMATION_BYTES][..], &[0; 5], &[]] {
        let (d, at_dialler, a, at_acceptor) = pair().await;
        let room = proof(&d, "room", None);
        let (own, other) = identities(&room.own_key, &a.identity.fingerprint());
        let guess = async {
            let (mut send, mut recv) = at_dialler.open_bi().await.expect("a stream");
            let (_, message) = Spake2::<Ed25519Group>::start_a(&room.password(), &own, &other);
            write_opening(&mut send, false, &message)
                .await
                .expect("written");
            read_opening(&mut recv).await.expect("an answer");
            write_frame(&mut send, confirmation, 64)
                .await
                .expect("written");
            read_frame(&mut recv, 64).await
        };
        let accept_proof = proof(&a, "room", None);
        let (guessed, accepted) =
            in_time(async { tokio::join!(guess, accept_pake(&at_acceptor, &accept_proof)) }).await;
        assert!(accepted.expect_err("a guess").is_failed_confirmation());
        // The dialler received no byte of the acceptor's confirmation.
        assert_eq!(guessed.expect_err("closed").code(), -10);
    }
}

#[tokio::test]
async fn an_acceptor_that_does_not_know_the_room_cannot_confirm() {
    for (secret, code) in [(None, -10), (Some(&b"secret"[..]), -17)] {
        let (d, at_dialler, a, at_acceptor) = pair().await;
        let rogue = proof(&a, "guess", None);
        let (id_d, id_a) = identities(&d.identity.fingerprint(), &rogue.own_key);
        let answer = async {
            let (mut send, mut recv) = at_acceptor.accept_bi().await.expect("a stream");
            read_opening(&mut recv).await.expect("an opening");
            let (_, message) = Spake2::<Ed25519Group>::start_b(&rogue.password(), &id_d, &id_a);
            write_opening(&mut send, false, &message)
                .await
                .expect("written");
            // The dialler's own confirmation, sent back to it.
            let theirs = read_frame(&mut recv, CONFIRMATION_BYTES)
                .await
                .expect("read");
            write_frame(&mut send, &theirs, CONFIRMATION_BYTES)
                .await
                .expect("written");
            at_acceptor.closed().await
        };
        let dial_proof = proof(&d, "room", secret);
        let (dialled, seen) =
            in_time(async { tokio::join!(dial_pake(&at_dialler, &dial_proof), answer) }).await;
        let dialled = dialled.expect_err("no proof");
        assert!(dialled.is_failed_confirmation());
        assert_eq!(dialled.code(), code);
        assert_eq!(DialError::from(seen).code(), code);
    }
}

/// Copies frames from one stream to another until either ends.
async fn relay(mut from: RecvStream, to: &mut SendStream) {
    while let Ok(body) = read_frame(&mut from, 64).await {
        if write_frame(to, &body, 64).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn an_attacker_that_relays_the_admission_between_two_links_is_not_admitted() {
    let (victim, middle, member) = (Process::start(), Process::start(), Process::start());
    let (at_victim, towards_victim) = tokio::join!(victim.dial(&middle), middle.accept());
    let towards_victim = towards_victim.expect("connected");
    let (towards_member, at_member) = tokio::join!(middle.dial(&member), member.accept());
    let at_member = at_member.expect("connected");

    let in_the_middle = async {
        let (mut to_member, from_member) = towards_member.open_bi().await.expect("a stream");
        let (mut to_victim, from_victim) = towards_victim.accept_bi().await.expect("a stream");
        tokio::select! {
            () = relay(from_victim, &mut to_member) => {}
            () = relay(from_member, &mut to_victim) => {}
        }
        // It forwards the close, as a careful attacker would.
        towards_victim.close(VarInt::from_u32(ADMISSION_CODE_BASE + 10), b"");
    };
    let (dial_proof, accept_proof) = (proof(&victim, "room", None), proof(&member, "room", None));
    let (dialled, accepted, ()) = in_time(async {
        tokio::join!(
            dial_pake(&at_victim, &dial_proof),
            accept_pake(&at_member, &accept_proof),
            in_the_middle
        )
    })
    .await;
    assert!(accepted.expect_err("relayed").is_failed_confirmation());
    assert_eq!(dialled.expect_err("relayed").code(), -10);
}

/// Here the keys of both links are equal, so that only the exporter distinguishes the links.
#[tokio::test]
async fn a_confirmation_is_worth_nothing_on_another_link_of_the_same_two_keys() {
    let (d, first, a, _at_acceptor) = pair().await;
    let (second, _at_acceptor_2) = tokio::join!(d.dial(&a), a.accept());
    let first = Link::of(&first).expect("a link");
    let second = Link::of(&second).expect("a link");
    assert_eq!(first.peer_key, second.peer_key);
    let key = SharedKey(Hmac::new_from_slice(b"the same").expect("any length"));
    let on_first = Role::Dialler.confirmation(&key, &first).finalize();
    for (link, same) in [(&first, true), (&second, false)] {
        let expected = Role::Dialler.confirmation(&key, link);
        assert_eq!(
            expected.verify(&on_first.clone().into_bytes()).is_ok(),
            same
        );
    }
}

/// Here the exporter is equal, so that only the keys distinguish the links.
#[test]
fn ends_that_see_other_keys_share_no_confirmation() {
    let room = RoomProof {
        session: SessionId::new("room").expect("valid"),
        secret: None,
        own_key: Fingerprint([1; 32]),
    };
    let link = Link {
        peer_key: Fingerprint([2; 32]),
        exporter: Zeroizing::new([0; EXPORTER_BYTES]),
    };
    let opening = |message: Vec<u8>| Opening {
        has_secret: false,
        message: message.try_into().expect("33 bytes"),
    };
    for (dialler_seen, acceptor_seen, same) in [(1, 2, true), (1, 3, false), (3, 2, false)] {
        let (id_d, id_a) = identities(&Fingerprint([1; 32]), &Fingerprint([2; 32]));
        let (at_dialler, first) = Spake2::<Ed25519Group>::start_a(&room.password(), &id_d, &id_a);
        let (seen_d, seen_a) = (
            Fingerprint([dialler_seen; 32]),
            Fingerprint([acceptor_seen; 32]),
        );
        let (id_d, id_a) = identities(&seen_d, &seen_a);
        let (at_acceptor, second) = Spake2::<Ed25519Group>::start_b(&room.password(), &id_d, &id_a);
        let ours = finish(at_dialler, &opening(second)).expect("a key");
        let theirs = finish(at_acceptor, &opening(first)).expect("a key");
        let sent = Role::Dialler.confirmation(&ours, &link).finalize();
        let expected = Role::Dialler.confirmation(&theirs, &link);
        assert_eq!(expected.verify(&sent.into_bytes()).is_ok(), same);
    }
}

#[tokio::test]
async fn both_ends_of_a_link_export_the_same_value() {
    let (_d, at_dialler, _a, at_acceptor) = pair().await;
    let ours = Link::of(&at_dialler).expect("a link");
    let theirs = Link::of(&at_acceptor).expect("a link");
    assert_eq!(ours.exporter, theirs.exporter);
}

#[test]
fn the_limits_of_a_state_end_a_hello_and_take_no_byte_without_one() {
    let plain = hello(vec![1, 2, 3]);
    let limits = StateLimits {
        tail_entries: 4096,
        tail_bytes: 4 << 20,
        max_snapshot_bytes: 0,
    };
    let full = Hello {
        state: Some(limits),
        ..plain.clone()
    };
    let [short, long] = [&plain, &full].map(|it| postcard::to_allocvec(it).expect("a Hello"));
    assert_eq!(postcard::from_bytes(&short), Ok(plain.clone()));
    assert_eq!(postcard::from_bytes(&long), Ok(full));
    assert!(long.starts_with(&short) && long.len() > short.len());
    for cut in short.len() + 1..long.len() {
        let cut = postcard::from_bytes::<Hello>(&long[..cut]);
        assert!(cut.is_err(), "{cut:?}");
    }
}

#[tokio::test]
async fn a_hello_that_is_too_long_or_has_something_behind_it_is_refused() {
    let (_endpoints, (mut send, _), (_, mut recv)) = open_streams().await;
    let big = hello(vec![1; MAX_JOIN_PAYLOAD_BYTES + 1]);
    let error = write_hello(&mut send, &big).await.expect_err("too long");
    assert!(matches!(error, AdmissionError::JoinPayloadTooLong { .. }));
    write_value(&mut send, &big, "Hello")
        .await
        .expect("written");
    let error = in_time(read_hello(&mut recv)).await.expect_err("too long");
    assert!(matches!(
        error,
        AdmissionError::JoinPayloadTooLong {
            len: 16385,
            max: 16384
        }
    ));

    let mut trailing = postcard::to_allocvec(&hello(Vec::new())).expect("a Hello");
    trailing.push(0);
    write_frame(&mut send, &trailing, 1024)
        .await
        .expect("written");
    let error = in_time(read_hello(&mut recv)).await.expect_err("trailing");
    assert!(matches!(error, AdmissionError::Malformed { what: "Hello" }));

    let cut = &trailing[..trailing.len() - 2];
    write_frame(&mut send, cut, 1024).await.expect("written");
    let error = in_time(read_hello(&mut recv)).await.expect_err("cut");
    assert_eq!(error.code(), -9);

    let ack = HelloAck {
        code: -18,
        kicked: false,
        reason: 0,
        bytes: vec![0; MAX_HELLO_BYTES],
        hello: hello(Vec::new()),
    };
    let error = write_hello_ack(&mut send, &ack)
        .await
        .expect_err("too long");
    assert!(matches!(
        error,
        AdmissionError::Frame(FrameError::TooLong { .. })
    ));

    let over = u32::try_from(MAX_HELLO_BYTES + 1).expect("short");
    send.write_all(&over.to_le_bytes()).await.expect("written");
    let error = in_time(read_hello(&mut recv)).await.expect_err("too long");
    assert!(matches!(
        error,
        AdmissionError::Frame(FrameError::TooLong { .. })
    ));
}

#[tokio::test]
async fn a_rejection_arrives_before_the_close_even_at_a_dialler_that_reads_late() {
    let (endpoints, (mut d_send, mut d_recv), (mut a_send, _a_recv)) = open_streams().await;
    let ack = HelloAck {
        code: -18,
        kicked: false,
        reason: 0,
        bytes: vec![3; 2000],
        hello: hello(vec![4; MAX_JOIN_PAYLOAD_BYTES]),
    };
    write_hello_ack(&mut a_send, &ack).await.expect("written");
    in_time(close_after_flush(&endpoints.at_acceptor, a_send, ack.code)).await;
    let reason = in_time(endpoints.at_dialler.closed()).await;
    assert_eq!(DialError::from(reason).code(), -18);
    let read = in_time(read_hello_ack(&mut d_recv)).await;
    assert_eq!(read.expect("read after the close"), ack);
    let error = write_frame(&mut d_send, b"more", 8).await;
    assert_eq!(error.expect_err("closed").code(), -18);
}

#[tokio::test]
async fn a_dialler_that_takes_nothing_delays_the_close_only_for_a_moment() {
    let (endpoints, _streams, (mut a_send, _a_recv)) = open_streams().await;
    // More than a stranger's flow-control window; the other end reads none of it.
    let bytes = vec![0; 9 << 20];
    let flood = a_send.write_all(&bytes);
    let flood = tokio::time::timeout(Duration::from_millis(200), flood).await;
    assert!(flood.is_err());
    in_time(close_after_flush(&endpoints.at_acceptor, a_send, -18)).await;
    let reason = in_time(endpoints.at_dialler.closed()).await;
    assert_eq!(DialError::from(reason).code(), -18);
}

#[test]
fn the_largest_hello_fits_and_leaves_room_for_a_rejection() {
    let id = PeerId::new(&"x".repeat(64)).expect("valid");
    let mut largest = hello(vec![1; MAX_JOIN_PAYLOAD_BYTES]);
    let incarnation = Incarnation {
        started_us: u64::MAX,
        random: u64::MAX,
    };
    largest.features = u64::MAX;
    largest.peer_id = id.clone();
    largest.incarnation = incarnation;
    largest.generation = u32::MAX;
    largest.listen_port = u16::MAX;
    largest.max_message_size = u32::MAX;
    largest.priority = i32::MIN;
    let epoch = Epoch {
        assigner_key: None,
        override_seq: u64::MAX,
        assigner: Some(id.clone()),
    };
    largest.side = Opaque::of(&Side {
        record: Record {
            leader_key: None,
            stamp: Stamp {
                epoch,
                term: u64::MAX,
            },
            leader: Some(id.clone()),
            assigned: true,
        },
        live: Some(LiveLeader {
            id,
            key: Fingerprint([255; 32]),
            incarnation,
            weight: u32::MAX,
            led_ms: u64::MAX,
            rest_ms: u32::MAX,
        }),
        lone: true,
        since: u64::MAX,
        hold_binds: true,
    });
    let len = postcard::to_allocvec(&largest).expect("a Hello").len();
    assert!(len + 3072 < MAX_HELLO_BYTES, "{len}");
}

#[test]
fn an_admission_can_move_to_another_thread() {
    fn send<T: Send>(_: impl FnOnce(&'static Connection, &'static RoomProof) -> T) {}
    send(dial_pake);
    send(accept_pake);
}
