//! Setup of links: dialling, the dialler's side of an admission, and what both sides ask the room ([`super::accept`] is the
//! other side).
//!
//! These tasks handle the wire. The room decides whether a peer is welcome; it answers from one thread, so
//! two admissions never decide on the same place.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig};
use room_transport::closing::{DialError, close_code};
use room_transport::identity::{Identity, SERVER_NAME, client_config, peer_fingerprint};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::admission::{AdmissionError, RoomProof, dial_stranger, read_hello_ack, write_hello};
use super::close;
use super::frame::{ControlFrame, FrameError, put_value, read_frame};
use super::in_progress::{InProgress, MAX_WAIT};
use super::interfaces::until_connected;
use super::limiter::{MAX_FAILURES_OF_ONE, Source, WINDOW};
use super::link::Admitted;
use super::progress::{Overdue, Progress, Step};
use super::relay_requests::RelayRequests;
use super::socket::canonical;
use super::tries::{ClosedFor, Tries, Try};
use super::tunnel::Tunnels;
use super::unanswered::Unanswered;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::path::{Path, RelayNumber};
use crate::core::virtual_address::{VirtualId, behind_turn, on_the_network};
use crate::core::wire::{Hello, HelloAck, Opaque};
use crate::error::Code;

/// Longest encoded [`ControlFrame::Ready`].
const MAX_READY_BYTES: usize = 8;

/// A place in the room, reserved for a peer during its admission.
pub(crate) type Reservation = Arc<()>;

/// Number of a dial of the host, counted from 1.
pub(crate) type HostDial = u64;

/// A dial to make.
#[derive(Clone, Copy)]
pub(crate) struct DialRequest<'a> {
    /// The address to dial.
    pub(crate) address: SocketAddr,
    /// The key that must answer, if it is known.
    pub(crate) expected: Option<Fingerprint>,
    /// Number of the host's dial, if the host asked for this link.
    pub(crate) by_hand: Option<HostDial>,
    /// Its progress and deadlines.
    pub(crate) progress: &'a Progress,
    /// Whether only another member named the address, and none has answered there: it receives a single packet.
    pub(crate) is_hearsay: bool,
    /// Time within which a process must answer, if it is less than that of the dial.
    pub(crate) answers_within: Option<Duration>,
    /// The relay that named the key: nothing shows that its holder knows the room, and a dial is charged to the relay.
    pub(crate) named_by: Option<RelayNumber>,
    /// Shared by parallel dials of which only one link is needed: once connected, they continue one at a time.
    pub(crate) turn: Option<&'a tokio::sync::Mutex<()>>,
}

/// Question of an admission to the room.
pub(crate) enum Ask {
    /// We dialled the holder of `key`: asks for our Hello.
    Hello {
        /// Its key.
        key: Fingerprint,
        /// The address that we dialled.
        at: SocketAddr,
        /// Number of the host's dial, if the host asked for this link.
        by_hand: Option<HostDial>,
        /// Our Hello; or why the dial ends.
        answer: oneshot::Sender<Result<Hello, Refused>>,
    },
    /// The peer that we dialled sent this Hello: asks whether to accept the peer.
    Check {
        /// Its Hello.
        hello: Hello,
        /// Its key.
        key: Fingerprint,
        /// Its address.
        from: SocketAddr,
        /// The connection to it.
        connection: Connection,
        /// Number of the host's dial, if the host asked for this link.
        by_hand: Option<HostDial>,
        /// A place for it; or why the dial ends.
        answer: oneshot::Sender<Result<Reservation, Refused>>,
    },
    /// A dialler sent this Hello: asks whether to accept it.
    Admit {
        /// Its Hello.
        hello: Hello,
        /// Its key.
        key: Fingerprint,
        /// Its address.
        from: SocketAddr,
        /// The connection to it.
        connection: Connection,
        /// Our answer, and a place for the peer unless the answer is a refusal.
        answer: oneshot::Sender<(HelloAck, Option<Reservation>)>,
    },
    /// Asks whether the holder of `key` knows the room: a member, a lost member, or a peer that members admitted.
    Known {
        /// Its key.
        key: Fingerprint,
        /// Whether it does.
        answer: oneshot::Sender<bool>,
    },
    /// Asks whether a key with that virtual id is [known](Ask::Known).
    KnownId {
        /// The virtual id.
        id: VirtualId,
        /// Whether one is.
        answer: oneshot::Sender<bool>,
    },
    /// Asks whether there is already a link as good as the one that a dial of `key` at this address would make.
    Reached {
        /// Its key.
        key: Fingerprint,
        /// The address.
        at: SocketAddr,
        /// Whether there is one.
        answer: oneshot::Sender<bool>,
    },
    /// Asks whether a linked member accepts links at one of these addresses.
    Linked {
        /// The addresses.
        addresses: Vec<SocketAddr>,
        /// Whether there is one.
        answer: oneshot::Sender<bool>,
    },
    /// Both ends accept the link. The answer reports that it is part of the room, or the code why it is not.
    Attach(Box<Attach>, oneshot::Sender<Result<(), Code>>),
}

/// Reason why a link was not set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The code for the host.
    pub(crate) code: Code,
    /// Whether we were removed from the room.
    pub(crate) kicked: bool,
    /// Reason code given by the room's application.
    pub(crate) reason: i32,
    /// Reason bytes given by that application.
    pub(crate) bytes: Bytes,
    /// Whether this end refused.
    pub(crate) is_own: bool,
}

impl Refused {
    /// A refusal with a sentence for the host.
    pub(crate) fn because(code: Code, why: impl Into<Bytes>) -> Self {
        Self {
            bytes: why.into(),
            ..code.into()
        }
    }
}

impl From<Code> for Refused {
    fn from(code: Code) -> Self {
        Self {
            code,
            kicked: false,
            reason: 0,
            bytes: Bytes::new(),
            is_own: false,
        }
    }
}

/// A link that both ends accept.
pub(crate) struct Attach {
    /// The connection and its control stream.
    pub(crate) link: Admitted,
    /// The peer's Hello.
    pub(crate) theirs: Hello,
    /// The key that it presented.
    pub(crate) key: Fingerprint,
    /// Leadership state that we sent.
    pub(crate) our_side: Opaque,
    /// Number of ended sessions with this peer that we sent.
    pub(crate) our_generation: u32,
    /// Number of links lost in the present session that we sent.
    pub(crate) our_losses: u32,
    /// Whether we dialled.
    pub(crate) dialled: bool,
    /// Number of our host's dial, if our host asked for this link.
    pub(crate) by_hand: Option<HostDial>,
    /// The reserved place.
    pub(crate) reservation: Reservation,
}

/// Shared state of dialling and accepting.
pub(crate) struct Connector {
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
    pub(crate) transport: Arc<TransportConfig>,
    /// The dials of addresses where no member has answered.
    pub(crate) unanswered: Arc<Unanswered>,
    /// Idle timeout of accepted connections, and of those over a relay.
    pub(crate) idle_timeout: Duration,
    pub(crate) relayed_idle_timeout: Duration,
    /// Transport settings of links through a tunnel.
    pub(crate) tunnel_transport: Arc<TransportConfig>,
    /// Transport settings of links over a relay that this end accepts.
    pub(crate) relayed_transport: Arc<TransportConfig>,
    /// The tasks of the relays.
    pub(crate) relays: RelayRequests,
    /// Whether links go over relays alone: no direct one is accepted.
    pub(crate) is_relayed_only: bool,
    /// The tunnels of the room.
    pub(crate) tunnels: Arc<Tunnels>,
    pub(crate) proof: RoomProof,
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) dials: DialLocks,
    pub(crate) in_progress: InProgress,
    /// Attempts to guess the room, charged to the addresses that dial us.
    pub(crate) tries_in: Arc<Tries>,
    /// Attempts to guess the room, charged to the addresses that we dial.
    pub(crate) tries_out: Arc<Tries>,
}

impl Connector {
    /// Dials, and adds the link to the room.
    ///
    /// A process that we dial can test a guess of our room, just as one that dials us. So a dial without an
    /// expected key is charged an attempt of its address, unless the answering process has a known key.
    ///
    /// # Errors
    /// The result for the host: `AlreadyConnected` if there is a link to that peer; `RateLimited` with a sentence
    /// if the address has no attempt left; `Timeout` with a sentence that names the step the dial reached.
    pub(crate) async fn dial(&self, request: DialRequest<'_>) -> Result<PeerId, Refused> {
        let address = request.address;
        let dial = self.dial_without_limit(request);
        match request.progress.within(dial).await {
            Ok(result) => result.map_err(|refused| with_sentence(address, refused)),
            Err(overdue) => Err(no_answer(address, overdue)),
        }
    }

    async fn dial_without_limit(&self, request: DialRequest<'_>) -> Result<PeerId, Refused> {
        let DialRequest {
            address,
            expected,
            by_hand,
            progress,
            is_hearsay,
            answers_within,
            named_by,
            turn,
        } = request;
        let ip = address.ip();
        let source = named_by.map_or_else(|| Source::from(ip), Source::Relay);
        let is_vouched = expected.is_some() && named_by.is_none();
        if expected.is_none() && !Path::to(address).is_direct() {
            return Err(Code::InvalidArgument.into()); // a member behind a carrier is named by its key
        }
        if !is_vouched && let Some(closed) = self.tries_out.closed(source) {
            return Err(no_dials_to(source, closed));
        }
        let path = Path::to(address);
        let route = self.tunnels.hold(address);
        if !path.is_direct() && route.is_none() {
            return Err(Code::ConnectionFailed.into()); // the route was removed before the dial began
        }
        // The host's own dial does not wait.
        let most = (self.handshake_timeout / 2).min(MAX_WAIT);
        let (_attempt, waited) = match by_hand {
            Some(_) => (self.in_progress.begin(address), false),
            None => self.in_progress.begin_after_others(address, most).await,
        };
        if waited && self.is_linked_at(address, expected).await? {
            return Err(Code::AlreadyConnected.into());
        }
        if let Some(limit) = answers_within
            && path.is_direct()
            && behind_turn(address).is_none()
            && !until_connected(address, limit).await
        {
            return Err(Code::Timeout.into());
        }
        let transport = self.transport_to(address);
        let mut config = client_config(&self.identity, expected, transport)
            .map_err(|error| log_internal(&error))?;
        let lone = is_hearsay.then(|| self.unanswered.begin(&mut config));
        let lone = lone.transpose().map_err(|error| log_internal(&error))?;
        let connecting = self
            .endpoint
            .connect_with(config, address, SERVER_NAME)
            .map_err(|error| remote_code(DialError::from(error).code()))?;
        let connected = match answers_within {
            None => connecting.await,
            Some(limit) => {
                let connected = timeout(limit, connecting).await;
                connected.map_err(|_| Refused::from(Code::Timeout))?
            }
        };
        if let Some(lone) = lone {
            lone.answered();
        }
        let connection =
            connected.map_err(|error| stranger_failure_code(DialError::from(error).code()))?;
        let guard = CloseOnDrop::new(&connection);
        self.tunnels.turn().note_answer(address);
        progress.reached(Step::Connected);
        let key = peer_fingerprint(&connection).ok_or(Code::ConnectionFailed)?;
        if key == self.identity.fingerprint() {
            return Err(Code::InvalidArgument.into()); // our own socket, under another name
        }
        let _turn = match turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        let guess = if is_vouched || self.knows(key).await? {
            None
        } else if by_hand.is_none() && named_by.is_none() && self.tries_out.has_failed(key) {
            // Discovered again under another name. A second attempt is refused, so that forged names for the
            // members of another room cannot use up the attempts of their address.
            return Err(Code::ConnectionFailed.into());
        } else {
            let begun = self.tries_out.begin(source, key).await;
            Some(begun.map_err(|closed| no_dials_to(source, closed))?)
        };
        // One dial at a time decides about a peer: the second finds the link of the first.
        let lock = self.dials.of(key);
        let _turn = lock.lock().await;
        let hello = self
            .ask(|answer| Ask::Hello {
                key,
                at: address,
                by_hand,
                answer,
            })
            .await??;
        let exchange = self.dial_exchange(&connection, &hello, key, by_hand, guess, progress);
        let (send, recv, theirs, reservation) = match exchange.await {
            Ok(admitted) => admitted,
            Err(error) => return Err(self.explain(&connection, error, progress.step())),
        };
        let peer = theirs.peer_id.clone();
        self.attach(Attach {
            link: Admitted {
                connection: connection.clone(),
                send,
                recv,
            },
            theirs,
            key,
            our_side: hello.side,
            our_generation: hello.generation,
            our_losses: hello.losses,
            dialled: true,
            by_hand,
            reservation,
        })
        .await?;
        guard.disarm();
        Ok(peer)
    }

    async fn dial_exchange(
        &self,
        connection: &Connection,
        hello: &Hello,
        key: Fingerprint,
        by_hand: Option<HostDial>,
        guess: Option<Try>,
        progress: &Progress,
    ) -> Result<(SendStream, RecvStream, Hello, Reservation), Refusal> {
        let (mut send, mut recv) = dial_stranger(connection, &self.proof, guess).await?;
        progress.reached(Step::Proved);
        write_hello(&mut send, hello).await?;
        let ack = read_hello_ack(&mut recv).await?;
        progress.reached(Step::Greeted);
        if ack.code != 0 {
            return Err(Refusal::Theirs(Refused {
                code: remote_code(ack.code),
                kicked: ack.kicked,
                reason: ack.reason,
                bytes: Bytes::from(ack.bytes),
                is_own: false,
            }));
        }
        let theirs = ack.hello.clone();
        let from = connection.remote_address();
        let reservation = self
            .ask(|answer| Ask::Check {
                hello: theirs,
                key,
                from,
                connection: connection.clone(),
                by_hand,
                answer,
            })
            .await
            .map_err(Refused::from)
            .and_then(|checked| checked)
            .map_err(Refusal::Ours)?;
        write_ready(&mut send).await?;
        read_ready(&mut recv).await?;
        Ok((send, recv, ack.hello, reservation))
    }

    /// The code for the host. The other end gets it too if the refusal is ours.
    fn explain(&self, connection: &Connection, refusal: Refusal, step: Step) -> Refused {
        match refusal {
            Refusal::Theirs(refused) => refused,
            Refusal::Ours(refused) => {
                connection.close(close_code(refused.code.value()), b"");
                Refused {
                    is_own: true,
                    ..refused
                }
            }
            Refusal::Admission(error) => {
                tracing::debug!(%error, "a dial failed");
                // The other end's close is more precise than our read error.
                let closed = connection.close_reason();
                connection.close(close_code(error.code()), b"");
                // Both ends dialled at once, and the other link is already in use.
                if let Some(ConnectionError::ApplicationClosed(closed)) = &closed
                    && closed.error_code == close::SUPERSEDED
                {
                    return Code::AlreadyConnected.into();
                }
                match (closed.map(DialError::from), error) {
                    (Some(DialError::Closed { code, reason }), _)
                    | (_, AdmissionError::Connection(DialError::Closed { code, reason })) => {
                        let address = connection.remote_address();
                        closed_by_other(address, code, &reason, step)
                    }
                    (_, error) => remote_code(error.code()).into(),
                }
            }
        }
    }

    pub(super) fn transport_to(&self, address: SocketAddr) -> Arc<TransportConfig> {
        Arc::clone(match Path::to(address) {
            Path::Direct => &self.transport,
            Path::Carried(_) => &self.tunnel_transport,
        })
    }

    pub(super) async fn knows(&self, key: Fingerprint) -> Result<bool, Code> {
        self.ask(|answer| Ask::Known { key, answer }).await
    }

    /// Whether a linked member accepts links at one of these addresses.
    pub(crate) async fn is_linked(&self, addresses: &[SocketAddr]) -> bool {
        let addresses = addresses.iter().copied().map(on_the_network).collect();
        let linked = self.ask(|answer| Ask::Linked { addresses, answer });
        // Without a room there are no links, and a dial fails.
        linked.await == Ok(true)
    }

    /// Whether the holder of `key` is linked; if no key is known, a member that accepts links at `address`.
    async fn is_linked_at(
        &self,
        address: SocketAddr,
        key: Option<Fingerprint>,
    ) -> Result<bool, Code> {
        match key {
            Some(key) => {
                self.ask(|answer| Ask::Reached {
                    key,
                    at: address,
                    answer,
                })
                .await
            }
            None => Ok(self.is_linked(&[address]).await),
        }
    }

    pub(super) async fn attach(&self, attach: Attach) -> Result<(), Code> {
        self.ask(|answer| Ask::Attach(Box::new(attach), answer))
            .await?
    }

    pub(super) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Ask,
    ) -> Result<T, Code> {
        let (answer, answered) = oneshot::channel();
        let closing = |()| Code::ConnectionFailed; // the room is closing
        self.asks
            .send(question(answer))
            .await
            .map_err(|_| closing(()))?;
        answered.await.map_err(|_| closing(()))
    }
}

/// Cause of a failed admission.
pub(super) enum Refusal {
    /// The exchange failed.
    Admission(AdmissionError),
    /// The other end refused.
    Theirs(Refused),
    /// This end refuses.
    Ours(Refused),
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::Ours(code.into())
    }
}

impl From<AdmissionError> for Refusal {
    fn from(error: AdmissionError) -> Self {
        Self::Admission(error)
    }
}

impl From<FrameError> for Refusal {
    fn from(error: FrameError) -> Self {
        Self::Admission(error.into())
    }
}

pub(super) async fn write_ready(send: &mut SendStream) -> Result<(), Refusal> {
    let mut buffer = BytesMut::new();
    put_value(&mut buffer, &ControlFrame::Ready).map_err(|error| log_internal(&error))?;
    let written = send.write_all(&buffer).await;
    written.map_err(FrameError::from)?;
    Ok(())
}

pub(super) async fn read_ready(recv: &mut RecvStream) -> Result<(), Refusal> {
    let frame = read_frame(recv, MAX_READY_BYTES).await?;
    match postcard::take_from_bytes(&frame) {
        Ok((ControlFrame::Ready, [])) => Ok(()),
        _ => Err(AdmissionError::Malformed { what: "Ready" }.into()),
    }
}

/// Closes a connection whose admission is abandoned.
pub(super) struct CloseOnDrop<'a> {
    connection: Option<&'a Connection>,
}

impl<'a> CloseOnDrop<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self {
            connection: Some(connection),
        }
    }

    pub(super) fn disarm(mut self) {
        self.connection = None;
    }
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            // A second close does nothing: an earlier close with its reason stands.
            connection.close(close_code(Code::Timeout.value()), b"");
        }
    }
}

/// One lock per key that is being dialled.
#[derive(Default)]
pub(crate) struct DialLocks {
    locks: Mutex<BTreeMap<Fingerprint, Weak<tokio::sync::Mutex<()>>>>,
}

impl DialLocks {
    fn of(&self, key: Fingerprint) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(key, Arc::downgrade(&lock));
        lock
    }
}

/// The error of a dial that timed out.
fn no_answer(address: SocketAddr, Overdue { step, after }: Overdue) -> Refused {
    let address = canonical(on_the_network(address));
    let seconds = after.as_secs_f32();
    let why = match step {
        Step::Begun => format!(
            "{address} did not answer within {seconds:.1} s; check the address and the port, and the firewalls of both machines"
        ),
        Step::Connected => format!(
            "{address} answered, but had not shown after {seconds:.1} s that it knows the room; try again, \
             and check that it is the address of a member"
        ),
        Step::Proved => format!(
            "{address} knows the room, but had not decided after {seconds:.1} s whether this member may enter; \
             ask the leader's player, and try again"
        ),
        Step::Greeted => format!(
            "{address} let this member enter, but the link was not ready after {seconds:.1} s; try again"
        ),
    };
    Refused::because(Code::Timeout, why)
}

/// A sentence for the player where the other end gave none.
fn with_sentence(address: SocketAddr, refused: Refused) -> Refused {
    let address = canonical(on_the_network(address));
    if refused.reason != 0 || !refused.bytes.is_empty() {
        return refused;
    }
    let why = match refused.code {
        Code::SessionMismatch => format!(
            "{address} is in a room of another name; compare the session ids of both ends, letter by letter: \
             capitals and blanks count"
        ),
        Code::AuthenticationFailed => format!(
            "{address} is in a room of another name, or with another secret; compare the session ids and the secrets \
             of both ends, letter by letter"
        ),
        Code::VersionMismatch => {
            format!("{address} uses another version of the protocol; update the older end")
        }
        Code::SerializationError => {
            format!("no member of a room answers at {address}; check the address and the port")
        }
        Code::Timeout => format!("{address} ended the dial, since it took too long; try again"),
        Code::ConnectionFailed => {
            format!(
                "{address} ended the dial, or is leaving its room; check the address, and try again"
            )
        }
        _ => return refused,
    };
    Refused {
        bytes: why.into(),
        ..refused
    }
}

/// Why an address is not dialled.
fn no_dials_to(source: Source, closed: ClosedFor) -> Refused {
    let seconds = closed.seconds();
    let why = format!(
        "asked too often: {source} is not dialled for another {seconds} s, because {MAX_FAILURES_OF_ONE} dials to it \
         within a minute ended as wrong guesses of the room's name or secret do; try again then"
    );
    Refused::because(Code::RateLimited, why)
}

/// The error when the other end accepts no attempt from here. `reason` comes from its close: the
/// remaining seconds, in digits.
fn takes_no_attempts(address: SocketAddr, reason: &[u8]) -> Refused {
    let address = canonical(on_the_network(address));
    let seconds = std::str::from_utf8(reason).ok();
    let seconds = seconds.and_then(|digits| digits.parse::<u64>().ok());
    let longest = WINDOW.as_secs() + 1;
    let seconds = seconds.unwrap_or(longest).clamp(1, longest);
    let why = format!(
        "asked too often: {address} takes no attempt from this address for another {seconds} s, because \
         {MAX_FAILURES_OF_ONE} within a minute were wrong guesses of the room's name or secret; try again then"
    );
    Refused::because(Code::RateLimited, why)
}

/// Maps a code of the other end to the code of a failed link. Only this node knows whether a link exists
/// already: if the other end claimed it, the host would take the dial for a success.
pub(super) fn remote_code(value: i32) -> Code {
    match Code::from_value(value) {
        None | Some(Code::Ok | Code::AlreadyConnected) => Code::ConnectionFailed,
        Some(code) => code,
    }
}

/// The error of a dial that the other end closed.
fn closed_by_other(address: SocketAddr, code: i32, reason: &[u8], step: Step) -> Refused {
    let code = match step < Step::Proved {
        true => stranger_failure_code(code),
        false => remote_code(code),
    };
    match code {
        Code::RateLimited => takes_no_attempts(address, reason),
        code => code.into(),
    }
}

/// [`remote_code`] for an end that has not proved that it knows the room: it cannot speak for a member.
fn stranger_failure_code(value: i32) -> Code {
    match remote_code(value) {
        code @ (Code::SessionMismatch
        | Code::AuthenticationFailed
        | Code::VersionMismatch
        | Code::SerializationError
        | Code::RateLimited
        | Code::Timeout
        | Code::InternalError) => code,
        _ => Code::ConnectionFailed,
    }
}

pub(super) fn log_internal(error: &dyn std::fmt::Display) -> Code {
    tracing::error!(%error, "a link could not be set up");
    Code::InternalError
}
