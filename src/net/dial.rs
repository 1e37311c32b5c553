//! Links come about: dialling, accepting, and the admission of both sides.
//!
//! These tasks know the wire; whether a peer is welcome they ask the room, which answers from one thread, so
//! that two admissions never decide on the same place.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{
    Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, TransportConfig,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::admission::{
    AdmissionError, RoomProof, accept_stranger, close_after_flush, dial_stranger, read_hello,
    read_hello_ack, write_hello, write_hello_ack,
};
use super::close;
use super::frame::{ControlFrame, FrameError, put_value, read_frame};
use super::identity::{
    DialError, Identity, SERVER_NAME, client_config, close_code, peer_fingerprint, server_config,
};
use super::in_progress::{InProgress, MAX_WAIT};
use super::limiter::{MAX_FAILURES_OF_ONE, Source};
use super::link::Admitted;
use super::tries::{ClosedFor, Tries, Try};
use crate::core::id::{Fingerprint, PeerId};
use crate::core::virtual_address::is_virtual;
use crate::core::wire::{Hello, HelloAck, Opaque};
use crate::error::Code;

/// Links in admission at a time; those beyond wait unaccepted.
pub(crate) const MAX_ADMISSIONS: usize = 16;
/// Places that links from one address may take: somebody elsewhere always finds one.
pub(crate) const MAX_ADMISSIONS_OF_ONE: usize = 12;
/// Places that links may take from addresses where too many guesses were wrong. Past TLS only known keys get.
const MAX_ADMISSIONS_OF_CLOSED: usize = 4;
/// Links from one address that wait for a place; those beyond are not heard yet.
const MAX_WAITING_OF_ONE: usize = 256;
/// While fewer places are free, a dialler first proves that packets reach its address (RFC 9000
/// section 8.1.2), so that forged addresses cannot take the last places.
const PLACES_FOR_ALL: usize = MAX_ADMISSIONS / 2;
/// A failed admission keeps its place for so long, so that strangers who fail quickly cost no more than
/// `MAX_ADMISSIONS` handshakes in that time.
const FAILED_ADMISSION_HOLD: Duration = Duration::from_millis(200);
/// The same for addresses where too many guesses were wrong: a member there must not wait long behind strangers.
const CLOSED_ADMISSION_HOLD: Duration = Duration::from_millis(50);
/// Longest encoded [`ControlFrame::Ready`].
const MAX_READY_BYTES: usize = 8;

/// A place in the room that is kept for a peer while its admission goes on.
pub(crate) type Reservation = Arc<()>;

/// Which of the host's own dials it is: they are counted from 1 on.
pub(crate) type HostDial = u64;

/// What an admission asks the room.
pub(crate) enum Ask {
    /// We dialled the holder of `key`: what do we say to it?
    Hello {
        /// Its key.
        key: Fingerprint,
        /// Where we dialled it.
        at: SocketAddr,
        /// Which dial of the host it is, if the host asked for this link.
        by_hand: Option<HostDial>,
        /// Our Hello; or the code that ends the dial.
        answer: oneshot::Sender<Result<Hello, Code>>,
    },
    /// The peer that we dialled says this: do we take it?
    Check {
        /// Its Hello.
        hello: Hello,
        /// Its key.
        key: Fingerprint,
        /// Where it is.
        from: SocketAddr,
        /// Which dial of our host it is, if that asked for this link.
        by_hand: Option<HostDial>,
        /// A place for it; or why the dial ends.
        answer: oneshot::Sender<Result<Reservation, Refused>>,
    },
    /// A dialler says this: do we take it?
    Admit {
        /// Its Hello.
        hello: Hello,
        /// Its key.
        key: Fingerprint,
        /// Where it is.
        from: SocketAddr,
        /// What we say, and a place for it unless that is a refusal.
        answer: oneshot::Sender<(HelloAck, Option<Reservation>)>,
    },
    /// Whether the holder of `key` knows the room: a member, a lost one, or one that members let in.
    Known {
        /// Its key.
        key: Fingerprint,
        /// Whether it does.
        answer: oneshot::Sender<bool>,
    },
    /// Whether a dial of the holder of `key` at this address would find a link that is as good.
    Reached {
        /// Its key.
        key: Fingerprint,
        /// The address.
        at: SocketAddr,
        /// Whether there is one.
        answer: oneshot::Sender<bool>,
    },
    /// Whether a member is linked that takes links at one of these addresses.
    Linked {
        /// The addresses.
        addresses: Vec<SocketAddr>,
        /// Whether there is one.
        answer: oneshot::Sender<bool>,
    },
    /// Both ends take the link; told when it is part of the room, or the code that says why it is not.
    Attach(Box<Attach>, oneshot::Sender<Result<(), Code>>),
}

/// Why a link did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The code for the host.
    pub(crate) code: Code,
    /// Whether we were removed from the room.
    pub(crate) kicked: bool,
    /// The number that the application of the room gave.
    pub(crate) reason: i32,
    /// What that application said.
    pub(crate) bytes: Bytes,
}

impl From<Code> for Refused {
    fn from(code: Code) -> Self {
        Self {
            code,
            kicked: false,
            reason: 0,
            bytes: Bytes::new(),
        }
    }
}

/// A link that both ends take.
pub(crate) struct Attach {
    /// The connection and its control stream.
    pub(crate) link: Admitted,
    /// What the peer said.
    pub(crate) theirs: Hello,
    /// The key that it showed.
    pub(crate) key: Fingerprint,
    /// What we said about leadership.
    pub(crate) our_side: Opaque,
    /// How many sessions with this peer we said had ended.
    pub(crate) our_generation: u32,
    /// How many links we said we had lost in the present session.
    pub(crate) our_losses: u32,
    /// Whether we dialled.
    pub(crate) dialled: bool,
    /// Which dial of our host it is, if that asked for this link.
    pub(crate) by_hand: Option<HostDial>,
    /// The place that was kept.
    pub(crate) reservation: Reservation,
}

/// Everything that dialling and accepting need.
pub(crate) struct Connector {
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
    pub(crate) transport: Arc<TransportConfig>,
    /// The same for links through a tunnel.
    pub(crate) tunnel_transport: Arc<TransportConfig>,
    pub(crate) proof: RoomProof,
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) dials: DialLocks,
    pub(crate) in_progress: InProgress,
    /// Guesses that those who dial us could test.
    pub(crate) tries_in: Arc<Tries>,
    /// Guesses that those whom we dial could test.
    pub(crate) tries_out: Arc<Tries>,
}

impl Connector {
    /// Dials `address` and enters the link into the room, within the handshake's time.
    ///
    /// A process that we dial learns whether it has guessed our room, as does one that dials us. So without an `expected`
    /// key the dial takes an attempt of its address, unless the key of the answering process is known.
    ///
    /// # Errors
    /// What the host receives: `AlreadyConnected` if there is a link to that peer; `ConnectionFailed` with a
    /// sentence if the address has no attempt left.
    pub(crate) async fn dial(
        &self,
        address: SocketAddr,
        expected: Option<Fingerprint>,
        by_hand: Option<HostDial>,
        limit: Duration,
    ) -> Result<PeerId, Refused> {
        let dial = self.dial_without_limit(address, expected, by_hand);
        match timeout(limit, dial).await {
            Ok(result) => result,
            Err(_) => Err(Code::Timeout.into()),
        }
    }

    async fn dial_without_limit(
        &self,
        address: SocketAddr,
        expected: Option<Fingerprint>,
        by_hand: Option<HostDial>,
    ) -> Result<PeerId, Refused> {
        let ip = address.ip();
        if expected.is_none() && is_virtual(address) {
            return Err(Code::InvalidArgument.into()); // a member behind a tunnel is named by its key
        }
        if expected.is_none()
            && let Some(closed) = self.tries_out.closed(ip)
        {
            return Err(no_dials_to(ip, closed));
        }
        // The host's own dial waits for nothing.
        let most = (self.handshake_timeout / 2).min(MAX_WAIT);
        let (_attempt, waited) = match by_hand {
            Some(_) => (self.in_progress.begin(address), false),
            None => self.in_progress.begin_after_others(address, most).await,
        };
        if waited && self.is_linked_at(address, expected).await? {
            return Err(Code::AlreadyConnected.into());
        }
        let config = client_config(&self.identity, expected, self.transport_to(address))
            .map_err(|error| log_internal(&error))?;
        let connecting = self
            .endpoint
            .connect_with(config, address, SERVER_NAME)
            .map_err(|error| said(DialError::from(error).code()))?;
        let connection = connecting
            .await
            .map_err(|error| said(DialError::from(error).code()))?;
        let guard = CloseOnDrop::new(&connection);
        let key = peer_fingerprint(&connection).ok_or(Code::ConnectionFailed)?;
        if key == self.identity.fingerprint() {
            return Err(Code::InvalidArgument.into()); // our own socket, by another name
        }
        let guess = if expected.is_some() || self.knows(key).await? {
            None
        } else if by_hand.is_none() && self.tries_out.has_failed(key) {
            // Found once more under another name. It gets no second try, so that who makes up names for the
            // members of another room cannot use up the tries of their address.
            return Err(Code::ConnectionFailed.into());
        } else {
            let begun = self.tries_out.begin(ip, key).await;
            Some(begun.map_err(|closed| no_dials_to(ip, closed))?)
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
        let exchange = self.dial_exchange(&connection, &hello, key, by_hand, guess);
        let (send, recv, theirs, reservation) = match exchange.await {
            Ok(admitted) => admitted,
            Err(error) => return Err(self.explain(&connection, error)),
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
    ) -> Result<(SendStream, RecvStream, Hello, Reservation), Refusal> {
        let (mut send, mut recv) = dial_stranger(connection, &self.proof, guess).await?;
        write_hello(&mut send, hello).await?;
        let ack = read_hello_ack(&mut recv).await?;
        let rules = [Code::PolicyMismatch, Code::MaxConnectionsReached];
        if rules.iter().any(|code| ack.code == code.value()) && !ack.bytes.is_empty() {
            let why = String::from_utf8_lossy(&ack.bytes);
            tracing::warn!(?why, "the rules of the room forbid it");
        }
        if ack.code != 0 {
            return Err(Refusal::Said(Refused {
                code: said(ack.code),
                kicked: ack.kicked,
                reason: ack.reason,
                bytes: Bytes::from(ack.bytes),
            }));
        }
        let theirs = ack.hello.clone();
        let from = connection.remote_address();
        let reservation = self
            .ask(|answer| Ask::Check {
                hello: theirs,
                key,
                from,
                by_hand,
                answer,
            })
            .await
            .map_err(Refused::from)
            .and_then(|checked| checked)
            .map_err(Refusal::Ours)?;
        say_ready(&mut send).await?;
        hear_ready(&mut recv).await?;
        Ok((send, recv, ack.hello, reservation))
    }

    /// The code for the host; the other end gets it too, where it is our word.
    fn explain(&self, connection: &Connection, refusal: Refusal) -> Refused {
        match refusal {
            Refusal::Said(refused) => refused,
            Refusal::Ours(refused) => {
                connection.close(close_code(refused.code.value()), b"");
                refused
            }
            Refusal::Admission(error) => {
                tracing::debug!(%error, "a dial failed");
                // The other end's word says more than our failing to read.
                let closed = connection.close_reason();
                connection.close(close_code(error.code()), b"");
                let code = match closed {
                    // Both dialled at once, and the other link is in use already.
                    Some(ConnectionError::ApplicationClosed(closed))
                        if closed.error_code == close::SUPERSEDED =>
                    {
                        Code::AlreadyConnected
                    }
                    closed => match closed.map(DialError::from) {
                        Some(DialError::Closed { code }) => said(code),
                        _ => said(error.code()),
                    },
                };
                code.into()
            }
        }
    }

    /// Accepts until the endpoint is closed.
    pub(crate) async fn accept_all(self: Arc<Self>) {
        let waiting_room = Arc::new(WaitingRoom::new());
        // quinn bounds how many there are at a time.
        while let Some(incoming) = self.endpoint.accept().await {
            let gate = Arc::clone(&self);
            let waiting_room = Arc::clone(&waiting_room);
            tokio::spawn(async move { gate.accept_in_turn(incoming, &waiting_room).await });
        }
    }

    /// Waits for a place and admits, both together within the handshake's time: by then the dialler has
    /// given up, and the next in line can use its place.
    async fn accept_in_turn(&self, incoming: Incoming, waiting_room: &WaitingRoom) {
        let until = Instant::now() + self.handshake_timeout;
        let attempt = self.in_progress.begin(incoming.remote_address());
        let from = incoming.remote_address().ip();
        let closed = || self.tries_in.closed(from).is_some();
        let few_are_free = waiting_room.places.available_permits() < PLACES_FOR_ALL;
        if (few_are_free || closed()) && incoming.may_retry() {
            // It fails only where it may not be asked.
            let _ = incoming.retry();
            return;
        }
        let Some(of_address) = waiting_room.of(from) else {
            // It keeps dialling until its timeout.
            return incoming.ignore();
        };
        let places = async {
            let mine = of_address.acquire().await.ok()?;
            // Those before it may have failed.
            let of_closed = match closed() {
                true => Some(waiting_room.of_closed.acquire().await.ok()?),
                false => None,
            };
            Some((mine, of_closed, waiting_room.places.acquire().await.ok()?))
        };
        let Ok(Some(_places)) = timeout_at(until, places).await else {
            return incoming.ignore();
        };
        let began = Instant::now();
        // An admission that takes too long closes its connection when it is dropped.
        let admission = timeout_at(until, self.accept(incoming)).await;
        drop(attempt);
        if admission != Ok(true) {
            let hold = match closed() {
                true => CLOSED_ADMISSION_HOLD,
                false => FAILED_ADMISSION_HOLD,
            };
            sleep_until(began + hold).await;
        }
    }

    /// Tells whether the link is part of the room.
    async fn accept(&self, incoming: Incoming) -> bool {
        let from = incoming.remote_address();
        let accepted = match is_virtual(from) {
            false => incoming.accept(),
            true => match server_config(&self.identity, self.transport_to(from)) {
                Ok(config) => incoming.accept_with(Arc::new(config)),
                Err(error) => {
                    log_internal(&error);
                    return false;
                }
            },
        };
        let Ok(connecting) = accepted else {
            return false;
        };
        let Ok(connection) = connecting.await else {
            return false;
        };
        let guard = CloseOnDrop::new(&connection);
        match self.accept_exchange(&connection).await {
            Ok(()) => {
                guard.disarm();
                return true;
            }
            Err(Refusal::Admission(error)) => {
                tracing::debug!(%from, %error, "a link was not admitted");
                connection.close(close_code(error.code()), b"");
            }
            Err(Refusal::Ours(Refused { code, .. }) | Refusal::Said(Refused { code, .. })) => {
                tracing::debug!(%from, ?code, "a link was not admitted");
                connection.close(close_code(code.value()), b"");
            }
        }
        false
    }

    fn transport_to(&self, address: SocketAddr) -> Arc<TransportConfig> {
        Arc::clone(match is_virtual(address) {
            true => &self.tunnel_transport,
            false => &self.transport,
        })
    }

    async fn accept_exchange(&self, connection: &Connection) -> Result<(), Refusal> {
        let key = peer_fingerprint(connection).ok_or(Refusal::from(Code::ConnectionFailed))?;
        let from = connection.remote_address().ip();
        let known = self.knows(key).await?;
        if !known && self.tries_in.closed(from).is_some() {
            return Err(AdmissionError::TooManyGuesses.into());
        }
        let (mut send, mut recv) = accept_stranger(connection, &self.proof, async || match known {
            true => Ok(None),
            false => match self.tries_in.begin(from, key).await {
                Ok(begun) => Ok(Some(begun)),
                Err(ClosedFor(_)) => Err(AdmissionError::TooManyGuesses),
            },
        })
        .await?;
        let theirs = read_hello(&mut recv).await?;
        let hello = theirs.clone();
        let (ack, reservation) = self
            .ask(|answer| Ask::Admit {
                hello,
                key,
                from: connection.remote_address(),
                answer,
            })
            .await?;
        write_hello_ack(&mut send, &ack).await?;
        let Some(reservation) = reservation else {
            close_after_flush(connection, send, ack.code).await;
            return Err(Refusal::Said(said(ack.code).into()));
        };
        say_ready(&mut send).await?;
        hear_ready(&mut recv).await?;
        self.attach(Attach {
            link: Admitted {
                connection: connection.clone(),
                send,
                recv,
            },
            theirs,
            key,
            our_side: ack.hello.side,
            our_generation: ack.hello.generation,
            our_losses: ack.hello.losses,
            dialled: false,
            by_hand: None,
            reservation,
        })
        .await?;
        Ok(())
    }

    async fn knows(&self, key: Fingerprint) -> Result<bool, Code> {
        self.ask(|answer| Ask::Known { key, answer }).await
    }

    /// Whether a member is linked that takes links at one of these addresses.
    pub(crate) async fn is_linked(&self, addresses: &[SocketAddr]) -> bool {
        let addresses = addresses.to_vec();
        let linked = self.ask(|answer| Ask::Linked { addresses, answer });
        // Without a room nobody is linked, and a dial fails.
        linked.await == Ok(true)
    }

    /// Whether the holder of `key` is linked; where no key is known, a member that takes links at `address`.
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

    async fn attach(&self, attach: Attach) -> Result<(), Code> {
        self.ask(|answer| Ask::Attach(Box::new(attach), answer))
            .await?
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Code> {
        let (answer, answered) = oneshot::channel();
        let closing = |()| Code::ConnectionFailed; // the room is going away
        self.asks
            .send(question(answer))
            .await
            .map_err(|_| closing(()))?;
        answered.await.map_err(|_| closing(()))
    }
}

/// Why an admission ended.
enum Refusal {
    /// The exchange failed.
    Admission(AdmissionError),
    /// The other end said so.
    Said(Refused),
    /// We say so.
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

async fn say_ready(send: &mut SendStream) -> Result<(), Refusal> {
    let mut buffer = BytesMut::new();
    put_value(&mut buffer, &ControlFrame::Ready).map_err(|error| log_internal(&error))?;
    let written = send.write_all(&buffer).await;
    written.map_err(FrameError::from)?;
    Ok(())
}

async fn hear_ready(recv: &mut RecvStream) -> Result<(), Refusal> {
    let frame = read_frame(recv, MAX_READY_BYTES).await?;
    match postcard::take_from_bytes(&frame) {
        Ok((ControlFrame::Ready, [])) => Ok(()),
        _ => Err(AdmissionError::Malformed { what: "Ready" }.into()),
    }
}

/// Closes a connection whose admission is given up.
struct CloseOnDrop<'a> {
    connection: Option<&'a Connection>,
}

impl<'a> CloseOnDrop<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection: Some(connection),
        }
    }

    fn disarm(mut self) {
        self.connection = None;
    }
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection {
            // Closing twice does nothing: an earlier close with its reason stands.
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

/// What all admissions of an endpoint share.
struct WaitingRoom {
    /// First come, first served; but each address has its own line before it.
    places: Semaphore,
    /// Those that addresses share where too many guesses were wrong.
    of_closed: Semaphore,
    lines: Mutex<BTreeMap<Source, Weak<Semaphore>>>,
}

impl WaitingRoom {
    fn new() -> Self {
        Self {
            places: Semaphore::new(MAX_ADMISSIONS),
            of_closed: Semaphore::new(MAX_ADMISSIONS_OF_CLOSED),
            lines: Mutex::default(),
        }
    }

    /// The line of an address, unless that is full. quinn bounds how many there are.
    fn of(&self, from: IpAddr) -> Option<Arc<Semaphore>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| line.strong_count() > 0);
        let source = Source::from(from);
        if let Some(line) = lines.get(&source).and_then(Weak::upgrade) {
            // Whoever is in line, or has a place, holds one; so does this.
            let in_line = Arc::strong_count(&line) - 1;
            return (in_line < MAX_WAITING_OF_ONE).then_some(line);
        }
        let line = Arc::new(Semaphore::new(MAX_ADMISSIONS_OF_ONE));
        lines.insert(source, Arc::downgrade(&line));
        Some(line)
    }
}

/// Why an address is not dialled.
fn no_dials_to(ip: IpAddr, ClosedFor(rest): ClosedFor) -> Refused {
    let address = ip.to_canonical();
    let seconds = rest.as_secs() + 1;
    let why = format!(
        "{address} is not dialled for another {seconds} s: {MAX_FAILURES_OF_ONE} dials to it within a minute \
         ended as they do with somebody who guesses the room's name or secret; try again then"
    );
    tracing::debug!(%address, seconds, "not dialled: too many failed there");
    Refused {
        bytes: Bytes::from(why),
        ..Code::ConnectionFailed.into()
    }
}

/// The code in which a link that does not come about ends. What it would mean for the link to be there
/// already only we can tell: the other end's word for it would be success to the host.
fn said(value: i32) -> Code {
    match Code::from_value(value) {
        None | Some(Code::Ok | Code::AlreadyConnected) => Code::ConnectionFailed,
        Some(code) => code,
    }
}

fn log_internal(error: &dyn std::fmt::Display) -> Code {
    tracing::error!(%error, "a link could not be set up");
    Code::InternalError
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_its_share_waits_of_one_address() {
        let room = WaitingRoom::new();
        let [guesser, other] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let in_line: Vec<_> = (0..MAX_WAITING_OF_ONE)
            .map(|_| room.of(guesser).expect("its line has room"))
            .collect();
        assert!(room.of(guesser).is_none());
        assert!(room.of(other).is_some());
        drop(in_line);
        assert!(room.of(guesser).is_some());
        // Nothing is left of who is gone.
        let lines = room.lines.lock().expect("not poisoned");
        assert_eq!(lines.len(), 1);
    }
}
