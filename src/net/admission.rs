//! What two ends of a new link say before anything else is parsed: a PAKE over the room's name and secret,
//! confirmed both ways, then one Hello each (`docs/protocol.md`, "Entering a room").
//!
//! All of it runs on the first bidirectional stream, which the dialler opens and which is the control
//! stream afterwards: nothing here reads a byte beyond its own frames. Nothing here knows the time; the
//! caller bounds the whole admission and may drop these futures, and then closes the connection.

use std::time::Duration;

use hmac::{Hmac, Mac};
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;
use spake2::{Ed25519Group, Password, Spake2};
use thiserror::Error;

use super::frame::{FrameError, read_frame, write_frame};
use super::identity::{DialError, abi, close_code, open_windows, peer_fingerprint};
use crate::core::id::{Fingerprint, SessionId};
use crate::core::wire::{Hello, HelloAck, MAX_HELLO_BYTES, MAX_JOIN_PAYLOAD_BYTES};

/// Length of the opening frames: whether the sender has a secret (1), and its SPAKE2 message (33).
pub(crate) const OPENING_BYTES: usize = 1 + SPAKE_MESSAGE_BYTES;
/// Length of the confirmation frames: HMAC-SHA256.
pub(crate) const CONFIRMATION_BYTES: usize = 32;
/// How long a rejection may take to reach the other end before the connection is closed all the same.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

const SPAKE_MESSAGE_BYTES: usize = 33;
const EXPORTER_LABEL: &[u8] = b"EXPORTER-mmn-admission";
const EXPORTER_BYTES: usize = 32;

/// What shows that this process belongs to the room.
#[derive(Clone)]
pub(crate) struct RoomProof {
    /// The room's name.
    pub(crate) session: SessionId,
    /// The room's secret, if it has one. An empty one counts as none.
    pub(crate) secret: Option<Vec<u8>>,
    /// The key that this process shows in TLS.
    pub(crate) own_key: Fingerprint,
}

impl RoomProof {
    fn has_secret(&self) -> bool {
        self.secret
            .as_ref()
            .is_some_and(|secret| !secret.is_empty())
    }

    fn password(&self) -> Password {
        let secret = self.secret.as_deref().unwrap_or_default();
        let mut password = Vec::new();
        for part in [self.session.as_str().as_bytes(), secret] {
            // A secret comes from an FFI call with a 32-bit length; a longer one would only weaken itself.
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            password.extend_from_slice(&len.to_le_bytes());
            password.extend_from_slice(part);
        }
        Password::new(password)
    }
}

/// Why a link was not admitted.
#[derive(Debug, Error)]
pub(crate) enum AdmissionError {
    /// The confirmation was wrong, and neither side has a secret: the rooms have different names.
    #[error("the other end is in another room")]
    SessionMismatch,
    /// The confirmation was wrong, and at least one side has a secret.
    #[error("the other end is in another room or has another secret")]
    AuthenticationFailed,
    /// A frame that is not what it should be.
    #[error("the other end sent a malformed {what}")]
    Malformed {
        /// Which frame.
        what: &'static str,
    },
    /// A join payload that is too long, read or to be written.
    #[error("a join payload of {len} bytes; at most {max} are allowed")]
    JoinPayloadTooLong {
        /// The length found, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// TLS gave no key of the other end, or no exporter.
    #[error("the link has no {what}")]
    NoTls {
        /// What is missing.
        what: &'static str,
    },
    /// The stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection ended; with the code of the other end, where it gave one.
    #[error(transparent)]
    Connection(#[from] DialError),
}

impl AdmissionError {
    /// The ABI code.
    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::SessionMismatch => abi::SESSION_MISMATCH,
            Self::AuthenticationFailed => abi::AUTHENTICATION_FAILED,
            Self::Malformed { .. } | Self::JoinPayloadTooLong { .. } => abi::SERIALIZATION_ERROR,
            Self::NoTls { .. } => abi::CONNECTION_FAILED,
            Self::Frame(error) => error.code(),
            Self::Connection(error) => error.code(),
        }
    }

    /// Whether the other end has tried a guess and failed: what [`super::limiter`] counts.
    pub(crate) fn is_failed_confirmation(&self) -> bool {
        matches!(self, Self::SessionMismatch | Self::AuthenticationFailed)
    }
}

/// Shows the acceptor that we know the room and demands the same of it, as the one that dialled.
///
/// Opens the control stream and returns it. On an error the connection is closed, with the error's code
/// for the other end.
pub(crate) async fn dial_pake(
    connection: &Connection,
    room: &RoomProof,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let opened = connection.open_bi().await;
    admit_on(connection, opened, async |send, recv| {
        dial_exchange(connection, room, send, recv).await
    })
    .await
}

/// Demands of the dialler that it knows the room, then shows it the same, as the one that was dialled.
///
/// Waits for the control stream and returns it. On an error the connection is closed, with the error's
/// code for the other end.
pub(crate) async fn accept_pake(
    connection: &Connection,
    room: &RoomProof,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let opened = connection.accept_bi().await;
    admit_on(connection, opened, async |send, recv| {
        accept_exchange(connection, room, send, recv).await
    })
    .await
}

/// Sends our Hello.
pub(crate) async fn write_hello(
    send: &mut SendStream,
    hello: &Hello,
) -> Result<(), AdmissionError> {
    check_payload(hello)?;
    write_value(send, hello, "Hello").await
}

/// Reads the dialler's Hello.
pub(crate) async fn read_hello(recv: &mut RecvStream) -> Result<Hello, AdmissionError> {
    let hello = read_value(recv, "Hello").await?;
    check_payload(&hello)?;
    Ok(hello)
}

/// Sends the answer to a Hello.
pub(crate) async fn write_hello_ack(
    send: &mut SendStream,
    ack: &HelloAck,
) -> Result<(), AdmissionError> {
    check_payload(&ack.hello)?;
    write_value(send, ack, "HelloAck").await
}

/// Reads the acceptor's answer to our Hello.
pub(crate) async fn read_hello_ack(recv: &mut RecvStream) -> Result<HelloAck, AdmissionError> {
    let ack: HelloAck = read_value(recv, "HelloAck").await?;
    check_payload(&ack.hello)?;
    Ok(ack)
}

/// Ends `send`, waits at most [`FLUSH_TIMEOUT`] until the other end has all of it, and closes the
/// connection with `code`. What the other end has received it can still read after the close.
pub(crate) async fn close_after_flush(connection: &Connection, mut send: SendStream, code: i32) {
    if send.finish().is_ok() {
        // Whatever ends the wait, the close follows.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, send.stopped()).await;
    }
    connection.close(close_code(code), b"");
}

/// Runs `exchange` on the control stream; then opens the windows, or closes the connection.
async fn admit_on(
    connection: &Connection,
    opened: Result<(SendStream, RecvStream), ConnectionError>,
    exchange: impl AsyncFnOnce(&mut SendStream, &mut RecvStream) -> Result<(), AdmissionError>,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let (mut send, mut recv) = opened.map_err(DialError::from)?;
    match exchange(&mut send, &mut recv).await {
        Ok(()) => {
            open_windows(connection);
            Ok((send, recv))
        }
        Err(error) => {
            let error = with_reason(connection, error);
            // Before the streams are dropped: their end must not reach the other end first.
            connection.close(close_code(error.code()), b"");
            Err(error)
        }
    }
}

/// A stream that fails because the connection was closed says less than the close itself.
fn with_reason(connection: &Connection, error: AdmissionError) -> AdmissionError {
    match (error, connection.close_reason()) {
        (AdmissionError::Frame(_), Some(reason)) => DialError::from(reason).into(),
        (error, _) => error,
    }
}

async fn dial_exchange(
    connection: &Connection,
    room: &RoomProof,
    send: &mut SendStream,
    recv: &mut RecvStream,
) -> Result<(), AdmissionError> {
    let link = Link::of(connection)?;
    let (id_dialler, id_acceptor) = identities(&room.own_key, &link.peer_key);
    let (state, message) =
        Spake2::<Ed25519Group>::start_a(&room.password(), &id_dialler, &id_acceptor);
    write_opening(send, room.has_secret(), &message).await?;
    let theirs = read_opening(recv).await?;
    let key = finish(state, &theirs)?;

    let ours = Role::Dialler.confirmation(&key, &link);
    write_frame(send, &ours.finalize().into_bytes(), CONFIRMATION_BYTES).await?;
    let expected = Role::Acceptor.confirmation(&key, &link);
    read_confirmation(recv, expected, room.has_secret() || theirs.has_secret).await
}

async fn accept_exchange(
    connection: &Connection,
    room: &RoomProof,
    send: &mut SendStream,
    recv: &mut RecvStream,
) -> Result<(), AdmissionError> {
    let link = Link::of(connection)?;
    let (id_dialler, id_acceptor) = identities(&link.peer_key, &room.own_key);
    let theirs = read_opening(recv).await?;
    let (state, message) =
        Spake2::<Ed25519Group>::start_b(&room.password(), &id_dialler, &id_acceptor);
    let key = finish(state, &theirs)?;
    write_opening(send, room.has_secret(), &message).await?;

    // The dialler confirms first: whoever dials to guess learns nothing without being counted.
    let expected = Role::Dialler.confirmation(&key, &link);
    read_confirmation(recv, expected, room.has_secret() || theirs.has_secret).await?;
    let ours = Role::Acceptor.confirmation(&key, &link);
    write_frame(send, &ours.finalize().into_bytes(), CONFIRMATION_BYTES).await?;
    Ok(())
}

/// What ties the PAKE to this one TLS connection, so that it cannot be relayed over two.
struct Link {
    peer_key: Fingerprint,
    exporter: [u8; EXPORTER_BYTES],
}

impl Link {
    fn of(connection: &Connection) -> Result<Self, AdmissionError> {
        let peer_key = peer_fingerprint(connection).ok_or(AdmissionError::NoTls {
            what: "key of the other end",
        })?;
        let mut exporter = [0; EXPORTER_BYTES];
        connection
            .export_keying_material(&mut exporter, EXPORTER_LABEL, b"")
            .map_err(|_| AdmissionError::NoTls { what: "exporter" })?;
        Ok(Self { peer_key, exporter })
    }
}

/// The end that dialled, and the end that was dialled.
#[derive(Clone, Copy)]
enum Role {
    Dialler,
    Acceptor,
}

impl Role {
    fn identity(self, key: &Fingerprint) -> spake2::Identity {
        let text: &[u8] = match self {
            Self::Dialler => b"mmn dialler",
            Self::Acceptor => b"mmn acceptor",
        };
        spake2::Identity::new(&[text, key.0.as_slice()].concat())
    }

    fn confirmation(self, key: &SharedKey, link: &Link) -> Hmac<Sha256> {
        let text: &[u8] = match self {
            Self::Dialler => b"mmn confirm dialler",
            Self::Acceptor => b"mmn confirm acceptor",
        };
        key.0.clone().chain_update(text).chain_update(link.exporter)
    }
}

fn identities(
    dialler: &Fingerprint,
    acceptor: &Fingerprint,
) -> (spake2::Identity, spake2::Identity) {
    (
        Role::Dialler.identity(dialler),
        Role::Acceptor.identity(acceptor),
    )
}

/// HMAC-SHA256 under the key that both ends share if, and only if, they know the same room.
struct SharedKey(Hmac<Sha256>);

fn finish(state: Spake2<Ed25519Group>, theirs: &Opening) -> Result<SharedKey, AdmissionError> {
    let malformed = AdmissionError::Malformed {
        what: "PAKE message",
    };
    let Ok(key) = state.finish(&theirs.message) else {
        return Err(malformed);
    };
    match Hmac::new_from_slice(&key) {
        Ok(mac) => Ok(SharedKey(mac)),
        Err(_) => Err(malformed),
    }
}

/// The first frame of either end.
struct Opening {
    has_secret: bool,
    message: [u8; SPAKE_MESSAGE_BYTES],
}

async fn write_opening(
    send: &mut SendStream,
    has_secret: bool,
    message: &[u8],
) -> Result<(), FrameError> {
    let body = [&[u8::from(has_secret)], message].concat();
    write_frame(send, &body, OPENING_BYTES).await
}

async fn read_opening(recv: &mut RecvStream) -> Result<Opening, AdmissionError> {
    let body = read_frame(recv, OPENING_BYTES).await?;
    let malformed = AdmissionError::Malformed {
        what: "opening frame",
    };
    let Some((flag @ (0 | 1), message)) = body.split_first() else {
        return Err(malformed);
    };
    let Ok(message) = message.try_into() else {
        return Err(malformed);
    };
    Ok(Opening {
        has_secret: *flag == 1,
        message,
    })
}

/// Reads the other end's confirmation and compares it in constant time.
async fn read_confirmation(
    recv: &mut RecvStream,
    expected: Hmac<Sha256>,
    any_secret: bool,
) -> Result<(), AdmissionError> {
    let theirs = read_frame(recv, CONFIRMATION_BYTES).await?;
    match expected.verify_slice(&theirs) {
        Ok(()) => Ok(()),
        Err(_) if any_secret => Err(AdmissionError::AuthenticationFailed),
        Err(_) => Err(AdmissionError::SessionMismatch),
    }
}

async fn write_value<T: Serialize>(
    send: &mut SendStream,
    value: &T,
    what: &'static str,
) -> Result<(), AdmissionError> {
    let Ok(body) = postcard::to_allocvec(value) else {
        return Err(AdmissionError::Malformed { what });
    };
    Ok(write_frame(send, &body, MAX_HELLO_BYTES).await?)
}

async fn read_value<T: DeserializeOwned>(
    recv: &mut RecvStream,
    what: &'static str,
) -> Result<T, AdmissionError> {
    let body = read_frame(recv, MAX_HELLO_BYTES).await?;
    match postcard::take_from_bytes(&body) {
        Ok((value, [])) => Ok(value),
        _ => Err(AdmissionError::Malformed { what }),
    }
}

fn check_payload(hello: &Hello) -> Result<(), AdmissionError> {
    let (len, max) = (hello.join_payload.len(), MAX_JOIN_PAYLOAD_BYTES);
    if len > max {
        return Err(AdmissionError::JoinPayloadTooLong { len, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use quinn::VarInt;

    use super::*;
    use crate::core::election::record::Record;
    use crate::core::id::{Incarnation, PeerId};
    use crate::core::wire::{
        Authority, HostMode, MergePolicy, QuorumPolicy, RoomPolicy, Side, Strategy,
    };
    use crate::net::frame::testing::{Streams, open_streams};
    use crate::net::identity::testing::{Process, in_time, pair};
    use crate::net::identity::{ADMISSION_CODE_BASE, MAX_INCOMING_UNI_STREAMS};

    fn proof(process: &Process, session: &str, secret: Option<&[u8]>) -> RoomProof {
        RoomProof {
            session: SessionId::new(session).expect("valid"),
            secret: secret.map(<[u8]>::to_vec),
            own_key: process.identity.fingerprint(),
        }
    }

    /// One admission between a dialler and an acceptor that know these rooms and secrets.
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

    /// The codes that either end gets from [`admit`].
    async fn codes(dialler: (&str, Option<&[u8]>), acceptor: (&str, Option<&[u8]>)) -> (i32, i32) {
        let (dialled, accepted) = admit(dialler, acceptor).await;
        let code =
            |result: Result<Streams, AdmissionError>| result.map_or_else(|e| e.code(), |_| 0);
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
            by_hand: true,
            policy: RoomPolicy {
                strategy: Strategy::Raft,
                quorum: QuorumPolicy::Dynamic,
                merge: MergePolicy::LargestSide,
                authority: Authority::Anyone,
                host_mode: HostMode::Off,
            },
            listen_port: 4433,
            max_message_size: 262_144,
            eligible: true,
            priority: -1,
            side: Side {
                record: Record::default(),
                live: None,
                lone: true,
            },
            join_payload,
        }
    }

    #[tokio::test]
    async fn ends_that_know_the_room_admit_each_other() {
        assert_eq!(codes(("room", None), ("room", None)).await, (0, 0));
        let secret: Option<&[u8]> = Some(b"hunter2");
        assert_eq!(codes(("room", secret), ("room", secret)).await, (0, 0));
        // A host that passes an empty secret means none.
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
            AdmissionError::Connection(DialError::Closed { code: -10 })
        ));
    }

    #[tokio::test]
    async fn the_same_stream_carries_what_follows() {
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
            for _ in 0..MAX_INCOMING_UNI_STREAMS {
                in_time(connection.open_uni()).await.expect("a lane");
            }
        }
    }

    /// Sends `bytes` on the control stream as a dialler; what the acceptor makes of it, and the close that
    /// the dialler sees.
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
                in_time(async { tokio::join!(guess, accept_pake(&at_acceptor, &accept_proof)) })
                    .await;
            assert!(accepted.expect_err("a guess").is_failed_confirmation());
            // Not a byte of the acceptor's own confirmation.
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
    async fn who_relays_the_admission_between_two_links_of_its_own_is_not_admitted() {
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
            // It passes the news on, as a careful one would.
            towards_victim.close(VarInt::from_u32(ADMISSION_CODE_BASE + 10), b"");
        };
        let (dial_proof, accept_proof) =
            (proof(&victim, "room", None), proof(&member, "room", None));
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

    /// The keys alone would tell two links apart; so does the exporter where the keys are the same.
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

    /// The exporter alone would tell two links apart; so do the keys where the exporter is the same.
    #[test]
    fn ends_that_see_other_keys_share_no_confirmation() {
        let room = RoomProof {
            session: SessionId::new("room").expect("valid"),
            secret: None,
            own_key: Fingerprint([1; 32]),
        };
        let link = Link {
            peer_key: Fingerprint([2; 32]),
            exporter: [0; EXPORTER_BYTES],
        };
        let opening = |message: Vec<u8>| Opening {
            has_secret: false,
            message: message.try_into().expect("33 bytes"),
        };
        for (dialler_seen, acceptor_seen, same) in [(1, 2, true), (1, 3, false), (3, 2, false)] {
            let (id_d, id_a) = identities(&Fingerprint([1; 32]), &Fingerprint([2; 32]));
            let (at_dialler, first) =
                Spake2::<Ed25519Group>::start_a(&room.password(), &id_d, &id_a);
            let (seen_d, seen_a) = (
                Fingerprint([dialler_seen; 32]),
                Fingerprint([acceptor_seen; 32]),
            );
            let (id_d, id_a) = identities(&seen_d, &seen_a);
            let (at_acceptor, second) =
                Spake2::<Ed25519Group>::start_b(&room.password(), &id_d, &id_a);
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
                len: 8193,
                max: 8192
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
        // More than the window of a stranger, which nobody reads.
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
        largest.side.record.stamp.epoch.override_seq = u64::MAX;
        largest.side.record.stamp.epoch.assigner = Some(id.clone());
        largest.side.record.stamp.term = u64::MAX;
        largest.side.record.leader = Some(id.clone());
        largest.side.live = Some(crate::core::wire::LiveLeader {
            id,
            incarnation,
            weight: u32::MAX,
            led_ms: u64::MAX,
            rest_ms: u32::MAX,
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
}
