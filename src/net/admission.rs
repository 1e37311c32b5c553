//! Admission of a new link, before anything else is parsed: a PAKE over the room's name and secret, confirmed
//! by both ends, then one Hello from each end (`docs/protocol.md`, "Entering a room").
//!
//! The exchange runs on the first bidirectional stream. The dialler opens it, and it becomes the control
//! stream. The functions here read no byte beyond their own frames. They have no timeout: the caller bounds
//! the whole admission, drops these futures when time runs out, and then closes the connection.

use std::time::Duration;

use hmac::{Hmac, Mac};
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use room_transport::closing::{DialError, abi, close_code};
use room_transport::identity::peer_fingerprint;
use room_transport::quic::open_windows;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;
use spake2::{Ed25519Group, Password, Spake2};
use thiserror::Error;
use zeroize::Zeroizing;

use super::frame::{FrameError, read_frame, write_frame};
use super::tries::Try;
use crate::config::Secret;
use crate::core::id::{Fingerprint, SessionId};
use crate::core::wire::{Hello, HelloAck, MAX_HELLO_BYTES, MAX_JOIN_PAYLOAD_BYTES};

/// Length of the opening frames: a flag for a secret (1 byte) and the SPAKE2 message (33 bytes).
pub(crate) const OPENING_BYTES: usize = 1 + SPAKE_MESSAGE_BYTES;
/// Length of the confirmation frames: HMAC-SHA256.
pub(crate) const CONFIRMATION_BYTES: usize = 32;
/// Longest wait until the other end has received a rejection; then the connection closes anyway.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

const SPAKE_MESSAGE_BYTES: usize = 33;
const EXPORTER_LABEL: &[u8] = b"EXPORTER-mmn-admission";
const EXPORTER_BYTES: usize = 32;

/// Proof that this process belongs to the room.
#[derive(Clone)]
pub(crate) struct RoomProof {
    /// The room's name.
    pub(crate) session: SessionId,
    /// The room's secret, if it has one.
    pub(crate) secret: Option<Secret>,
    /// The key that this process presents in TLS.
    pub(crate) own_key: Fingerprint,
}

impl RoomProof {
    fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    fn password(&self) -> Password {
        let secret = self.secret.as_ref().map(Secret::bytes).unwrap_or_default();
        let parts = [self.session.as_str().as_bytes(), secret];
        // Reserved in full: a buffer that grows leaves copies of the secret behind.
        let len = parts.iter().map(|part| size_of::<u32>() + part.len()).sum();
        let mut password = Zeroizing::new(Vec::with_capacity(len));
        for part in parts {
            // A secret comes from an FFI call with a 32-bit length. Truncating the length of a longer one
            // would only weaken that secret.
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            password.extend_from_slice(&len.to_le_bytes());
            password.extend_from_slice(part);
        }
        Password::new(&*password)
    }
}

/// Reason why a link was not admitted.
#[derive(Debug, Error)]
pub(crate) enum AdmissionError {
    /// The confirmation did not match, and neither side has a secret: the rooms have different names.
    #[error("the other end is in another room")]
    SessionMismatch,
    /// The confirmation did not match, and at least one side has a secret.
    #[error("the other end is in another room or has another secret")]
    AuthenticationFailed,
    /// Earlier attempts from that address guessed wrong, and nothing shows that this one comes from a member.
    #[error("too many wrong guesses from there lately; none is taken for {seconds} s")]
    TooManyGuesses {
        /// Time until strangers at that address get an attempt again.
        seconds: u64,
    },
    /// A malformed frame.
    #[error("the other end sent a malformed {what}")]
    Malformed {
        /// The kind of frame.
        what: &'static str,
    },
    /// A join payload that is too long to be read or written.
    #[error("a join payload of {len} bytes; at most {max} are allowed")]
    JoinPayloadTooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// TLS gave no key of the other end, or no exporter.
    #[error("the link has no {what}")]
    NoTls {
        /// The missing item.
        what: &'static str,
    },
    /// The stream failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection ended; carries the other end's code, if it sent one.
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
            Self::TooManyGuesses { .. } => abi::RATE_LIMITED,
            Self::NoTls { .. } => abi::CONNECTION_FAILED,
            Self::Frame(error) => error.code(),
            Self::Connection(error) => error.code(),
        }
    }

    /// Reason bytes of the close: after too many guesses the remaining seconds, in digits; empty otherwise.
    pub(crate) fn close_reason(&self) -> String {
        match self {
            Self::TooManyGuesses { seconds } => seconds.to_string(),
            _ => String::new(),
        }
    }

    /// Whether the other end sent what no member sends.
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(
            self,
            Self::Malformed { .. } | Self::JoinPayloadTooLong { .. }
        )
    }

    /// Whether the other end confirmed with a wrong key.
    pub(crate) fn is_failed_confirmation(&self) -> bool {
        matches!(self, Self::SessionMismatch | Self::AuthenticationFailed)
    }
}

/// Runs the dialler's side: proves to the acceptor that this node knows the room, and demands the same proof.
/// `guess` is the attempt to charge to the acceptor; `None` if its key is known.
///
/// Opens the control stream and returns it. On an error it closes the connection with the error's code.
pub(crate) async fn dial_stranger(
    connection: &Connection,
    room: &RoomProof,
    guess: Option<Try>,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let opened = connection.open_bi().await;
    admit_on(connection, opened, async |send, recv| {
        dial_exchange(connection, room, guess, send, recv).await
    })
    .await
}

/// Runs the acceptor's side: demands the dialler's proof, then gives its own. `begin` waits for the dialler's
/// attempt; it returns `None` if the dialler's key is known. It runs only after the dialler has opened the
/// exchange, so that a dialler that stalls holds no attempt.
///
/// Waits for the control stream and returns it. On an error it closes the connection with the error's code.
pub(crate) async fn accept_stranger(
    connection: &Connection,
    room: &RoomProof,
    begin: impl AsyncFnOnce() -> Result<Option<Try>, AdmissionError>,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let opened = connection.accept_bi().await;
    admit_on(connection, opened, async |send, recv| {
        accept_exchange(connection, room, begin, send, recv).await
    })
    .await
}

/// [`dial_stranger`] without counting attempts.
#[cfg(test)]
pub(crate) async fn dial_pake(
    connection: &Connection,
    room: &RoomProof,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    dial_stranger(connection, room, None).await
}

/// [`accept_stranger`] without counting attempts.
#[cfg(test)]
pub(crate) async fn accept_pake(
    connection: &Connection,
    room: &RoomProof,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    accept_stranger(connection, room, async || Ok(None)).await
}

/// Reads the dialler's frames up to its confirmation, and then sends nothing.
#[cfg(test)]
pub(crate) async fn accept_without_answer(
    connection: &Connection,
    room: &RoomProof,
) -> Result<(SendStream, RecvStream), AdmissionError> {
    let (mut send, mut recv) = connection.accept_bi().await.map_err(DialError::from)?;
    let link = Link::of(connection)?;
    let (id_dialler, id_acceptor) = identities(&link.peer_key, &room.own_key);
    read_opening(&mut recv).await?;
    let (_, message) = Spake2::<Ed25519Group>::start_b(&room.password(), &id_dialler, &id_acceptor);
    write_opening(&mut send, room.has_secret(), &message).await?;
    read_frame(&mut recv, CONFIRMATION_BYTES).await?;
    Ok((send, recv))
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

/// Finishes `send`, waits at most [`FLUSH_TIMEOUT`] until the other end has received all of it, and closes
/// the connection with `code`. The other end can read what it has received even after the close.
pub(crate) async fn close_after_flush(connection: &Connection, mut send: SendStream, code: i32) {
    if send.finish().is_ok() {
        // The close follows however the wait ends.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, send.stopped()).await;
    }
    connection.close(close_code(code), b"");
}

/// Runs `exchange` on the control stream. Opens the flow-control windows on success; closes the connection on failure.
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
            // The close precedes the drop of the streams: the other end must not see them end first.
            connection.close(close_code(error.code()), error.close_reason().as_bytes());
            Err(error)
        }
    }
}

/// Replaces a stream error by the close of the connection that caused it, which carries a reason.
fn with_reason(connection: &Connection, error: AdmissionError) -> AdmissionError {
    match (error, connection.close_reason()) {
        (AdmissionError::Frame(_), Some(reason)) => DialError::from(reason).into(),
        (error, _) => error,
    }
}

async fn dial_exchange(
    connection: &Connection,
    room: &RoomProof,
    guess: Option<Try>,
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

    // Our confirmation lets its reader test a guess. Until the other end has proved that it knows the room,
    // every outcome counts against it: a close, silence, or our own timeout.
    if let Some(guess) = &guess {
        guess.stake();
    }
    let ours = Role::Dialler.confirmation(&key, &link);
    write_frame(send, &ours.finalize().into_bytes(), CONFIRMATION_BYTES).await?;
    let expected = Role::Acceptor.confirmation(&key, &link);
    read_confirmation(recv, expected, room.has_secret() || theirs.has_secret).await?;
    if let Some(guess) = guess {
        guess.succeed();
    }
    Ok(())
}

async fn accept_exchange(
    connection: &Connection,
    room: &RoomProof,
    begin: impl AsyncFnOnce() -> Result<Option<Try>, AdmissionError>,
    send: &mut SendStream,
    recv: &mut RecvStream,
) -> Result<(), AdmissionError> {
    let link = Link::of(connection)?;
    let (id_dialler, id_acceptor) = identities(&link.peer_key, &room.own_key);
    let theirs = read_opening(recv).await?;
    let guess = begin().await?;
    let (state, message) =
        Spake2::<Ed25519Group>::start_b(&room.password(), &id_dialler, &id_acceptor);
    let key = finish(state, &theirs)?;
    write_opening(send, room.has_secret(), &message).await?;

    // The dialler confirms first: a dialler that guesses learns nothing without being counted.
    let expected = Role::Dialler.confirmation(&key, &link);
    let confirmed = read_confirmation(recv, expected, room.has_secret() || theirs.has_secret).await;
    if let (Err(error), Some(guess)) = (&confirmed, &guess)
        && error.is_failed_confirmation()
    {
        guess.stake();
    }
    // The outcome of the guess is known, and the rest takes longer.
    drop(guess);
    confirmed?;
    let ours = Role::Acceptor.confirmation(&key, &link);
    write_frame(send, &ours.finalize().into_bytes(), CONFIRMATION_BYTES).await?;
    Ok(())
}

/// Binds the PAKE to this one TLS connection, so that it cannot be relayed over two.
struct Link {
    peer_key: Fingerprint,
    exporter: Zeroizing<[u8; EXPORTER_BYTES]>,
}

impl Link {
    fn of(connection: &Connection) -> Result<Self, AdmissionError> {
        let peer_key = peer_fingerprint(connection).ok_or(AdmissionError::NoTls {
            what: "key of the other end",
        })?;
        let mut exporter = Zeroizing::new([0; EXPORTER_BYTES]);
        connection
            .export_keying_material(exporter.as_mut_slice(), EXPORTER_LABEL, b"")
            .map_err(|_| AdmissionError::NoTls { what: "exporter" })?;
        Ok(Self { peer_key, exporter })
    }
}

/// Role of an end in the exchange.
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
        key.0
            .clone()
            .chain_update(text)
            .chain_update(link.exporter.as_slice())
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

/// HMAC-SHA256 under the shared key. Both ends have equal keys if, and only if, they know the same room.
struct SharedKey(Hmac<Sha256>);

fn finish(state: Spake2<Ed25519Group>, theirs: &Opening) -> Result<SharedKey, AdmissionError> {
    let malformed = AdmissionError::Malformed {
        what: "PAKE message",
    };
    let Ok(key) = state.finish(&theirs.message) else {
        return Err(malformed);
    };
    match Hmac::new_from_slice(&Zeroizing::new(key)) {
        Ok(mac) => Ok(SharedKey(mac)),
        Err(_) => Err(malformed),
    }
}

/// The first frame of each end.
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
mod tests;
