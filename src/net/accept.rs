//! Acceptance of links: who waits for which place, and the admission of the acceptor's side.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quinn::{Connection, Incoming, TransportConfig};
use room_transport::closing::close_code;
use room_transport::identity::{peer_fingerprint, server_config};
use room_transport::quic::IDLE_TIMEOUT;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::admission::{
    AdmissionError, accept_stranger, close_after_flush, read_hello, write_hello_ack,
};
use super::dial::{
    Ask, Attach, CloseOnDrop, Connector, Refusal, Refused, log_internal, read_ready, remote_code,
    write_ready,
};
use super::limiter::Source;
use super::lingering::Lingering;
use super::link::Admitted;
use super::progress::{Progress, Step};
use super::queue::Queue;
use super::tunnel::{Via, tunnel_server_config};
use crate::core::id::Fingerprint;
use crate::core::path::{CarrierKind, Path};
use crate::core::virtual_address::{id_at, virtual_id};
use crate::error::Code;

/// Links in admission at a time; further ones wait unaccepted.
pub(crate) const MAX_ADMISSIONS: usize = 16;
/// Places that links from one address may take; the others stay open to other addresses.
pub(crate) const MAX_ADMISSIONS_OF_ONE: usize = 12;
/// Places that links may take from addresses with too many wrong guesses. Past TLS only known keys may continue.
const MAX_ADMISSIONS_OF_CLOSED: usize = 4;
/// Places that links through one carrier may take, whatever their origins: it can make these up.
const MAX_ADMISSIONS_OF_CARRIER: usize = 4;
/// Places that links through all carriers together may take; the others stay open to direct links.
const MAX_CARRIED_ADMISSIONS: usize = 12;
/// Links from one address that wait for a place; further ones are ignored.
const MAX_WAITING_OF_ONE: usize = 256;
/// Links through one carrier that wait for a place; further ones are ignored.
const MAX_WAITING_OF_CARRIER: usize = 64;
/// Places for the strangers behind one relay, and as many for known keys behind it. They are apart from the others: whatever
/// comes through a relay keeps no direct link waiting.
const MAX_ADMISSIONS_OF_RELAY: usize = 4;
/// Links of one stranger behind a relay that wait for a place or have one; further ones are ignored.
const MAX_OF_RELAYED_STRANGER: usize = 2;
/// With fewer free places than this, a dialler must first prove that packets reach its address (RFC 9000
/// section 8.1.2), so that forged addresses cannot take the last places.
const PLACES_FOR_ALL: usize = MAX_ADMISSIONS / 2;
/// Time that a failed admission keeps its place. Strangers that fail quickly cost at most
/// `MAX_ADMISSIONS` handshakes in that time.
const FAILED_ADMISSION_HOLD: Duration = Duration::from_millis(200);
/// [`FAILED_ADMISSION_HOLD`] for addresses with too many wrong guesses: a member there must not
/// wait long behind strangers.
const CLOSED_ADMISSION_HOLD: Duration = Duration::from_millis(50);
/// QUIC keeps a connection that this end closed for three probe timeouts (RFC 9000 section 10.2), each of up to three round
/// trips after the first sample (RFC 9002 section 6.2.1).
const RTTS_OF_A_CLOSE: u32 = 9;
/// Lower bound of that time: a probe timeout includes the other end's acknowledgement delay.
const MIN_CLOSE: Duration = Duration::from_secs(1);

impl Connector {
    /// Accepts until the endpoint is closed.
    pub(crate) async fn accept_all(self: Arc<Self>) {
        let waiting_room = Arc::new(WaitingRoom::new());
        // quinn bounds the number of pending connections.
        while let Some(incoming) = self.endpoint.accept().await {
            let gate = Arc::clone(&self);
            let waiting_room = Arc::clone(&waiting_room);
            tokio::spawn(async move { gate.accept_in_turn(incoming, &waiting_room).await });
        }
    }

    /// Waits for a place and runs the admission. A stranger has the handshake timeout for both together: an
    /// honest one has given up by then, and the next in line can use its place. A dialler that has proved
    /// that it knows the room gets more time.
    async fn accept_in_turn(&self, incoming: Incoming, waiting_room: &WaitingRoom) {
        let progress = Progress::new(self.handshake_timeout);
        let attempt = self.in_progress.begin(incoming.remote_address());
        let Some(from) = self.queue_of(incoming.remote_address()).await else {
            return incoming.ignore();
        };
        let closed = || self.tries_in.closed(from.source).is_some();
        if !from.is_relayed() && incoming.may_retry() {
            let few_are_free = waiting_room.places.available_permits() < PLACES_FOR_ALL;
            if few_are_free || waiting_room.lingering.are_many() || closed() {
                // Fails only where a retry is not allowed.
                let _ = incoming.retry();
                return;
            }
        }
        let Some(in_line) = waiting_room.of(from) else {
            // The dialler retries until its own timeout.
            return incoming.ignore();
        };
        let places = async {
            let mine = in_line.line.acquire().await.ok()?;
            if from.is_relayed() {
                let may_linger = waiting_room.lingering.begin(from).await?;
                return Some((may_linger, (mine, None, None, None)));
            }
            // Earlier links may have failed meanwhile.
            let of_closed = match closed() {
                true => Some(waiting_room.of_closed.acquire().await.ok()?),
                false => None,
            };
            let of_carried = match from.source {
                Source::Carrier(_) => Some(waiting_room.of_carried.acquire().await.ok()?),
                Source::V4(_) | Source::V6Prefix(_) | Source::Relay(_) => None,
            };
            // The connection of a failed admission lingers without a place. It may begin only if it may linger.
            let may_linger = waiting_room.lingering.begin(from).await?;
            let place = waiting_room.places.acquire().await.ok()?;
            Some((may_linger, (mine, of_closed, of_carried, Some(place))))
        };
        let Ok(Some((may_linger, _places))) = progress.within(places).await else {
            return incoming.ignore();
        };
        let address = incoming.remote_address();
        let route = self.tunnels.hold(address);
        if !Path::to(address).is_direct() && route.is_none() {
            return incoming.ignore(); // others that came through its carrier have displaced the route
        }
        let began = Instant::now();
        let suspect = Suspect::default();
        // An admission that times out closes its connection when it is dropped.
        let admission = progress
            .within(self.accept(incoming, from, &progress, &suspect))
            .await;
        if let Ok(Ok(())) = admission {
            suspect.acquit();
        }
        self.block(from, &suspect);
        drop((attempt, route));
        let idle_timeout = match Path::to(address) {
            Path::Carried(CarrierKind::Relay) => self.relayed_idle_timeout,
            _ => self.idle_timeout,
        };
        if let Err(lingers) = admission.unwrap_or(Err(idle_timeout)) {
            tokio::spawn(async move {
                sleep(lingers).await;
                drop(may_linger);
            });
            let hold = match closed() {
                true => CLOSED_ADMISSION_HOLD,
                false => FAILED_ADMISSION_HOLD,
            };
            sleep_until(began + hold).await;
        }
    }

    /// Has a relay keep away a stranger that failed to prove that it knows the room.
    fn block(&self, from: Queue, suspect: &Suspect) {
        if let (Source::Relay(relay), Some(key)) = (from.source, suspect.key()) {
            self.relays.block(relay, key);
        }
    }

    /// Runs the admission of an incoming connection, and adds the link to the room.
    ///
    /// # Errors
    /// The time that the connection lingers.
    async fn accept(
        &self,
        incoming: Incoming,
        queue: Queue,
        progress: &Progress,
        suspect: &Suspect,
    ) -> Result<(), Duration> {
        let from = incoming.remote_address();
        let accepted = match Path::to(from) {
            Path::Direct => incoming.accept(),
            Path::Carried(kind) => match server_config(&self.identity, self.transport_from(kind)) {
                Ok(config) => incoming.accept_with(Arc::new(tunnel_server_config(config))),
                Err(error) => {
                    log_internal(&error);
                    return Err(Duration::ZERO);
                }
            },
        };
        let connecting = accepted.map_err(|_| Duration::ZERO)?;
        let idle_timeout = match Path::to(from) {
            Path::Direct => self.idle_timeout,
            Path::Carried(CarrierKind::Relay) => self.relayed_idle_timeout,
            Path::Carried(CarrierKind::Member) => IDLE_TIMEOUT,
        };
        let connection = connecting.await.map_err(|_| idle_timeout)?;
        let guard = CloseOnDrop::new(&connection);
        let exchange = self.accept_exchange(&connection, queue.source, progress, suspect);
        match exchange.await {
            Ok(()) => {
                guard.disarm();
                return Ok(());
            }
            Err(Refusal::Admission(error)) => {
                tracing::debug!(%from, %error, "a link was not admitted");
                if !error.is_failed_confirmation() && !error.is_malformed() {
                    suspect.acquit();
                }
                let reason = error.close_reason();
                connection.close(close_code(error.code()), reason.as_bytes());
            }
            Err(Refusal::Ours(Refused { code, .. }) | Refusal::Theirs(Refused { code, .. })) => {
                tracing::debug!(%from, ?code, "a link was not admitted");
                suspect.acquit();
                connection.close(close_code(code.value()), b"");
            }
        }
        Err((connection.rtt() * RTTS_OF_A_CLOSE).max(MIN_CLOSE))
    }

    async fn accept_exchange(
        &self,
        connection: &Connection,
        from: Source,
        progress: &Progress,
        suspect: &Suspect,
    ) -> Result<(), Refusal> {
        let key = peer_fingerprint(connection).ok_or(Refusal::from(Code::ConnectionFailed))?;
        let is_other = |named| named != virtual_id(key);
        if id_at(connection.remote_address()).is_some_and(is_other) {
            return Err(Code::ConnectionFailed.into()); // the carrier has made up the origin
        }
        let known = self.knows(key).await?;
        if !known && let Some(closed) = self.tries_in.closed(from) {
            let seconds = closed.seconds();
            return Err(AdmissionError::TooManyGuesses { seconds }.into());
        }
        if !known {
            suspect.is(key);
        }
        let (mut send, mut recv) = accept_stranger(connection, &self.proof, async || match known {
            true => Ok(None),
            false => match self.tries_in.begin(from, key).await {
                Ok(begun) => Ok(Some(begun)),
                Err(closed) => {
                    let seconds = closed.seconds();
                    Err(AdmissionError::TooManyGuesses { seconds })
                }
            },
        })
        .await?;
        // The peer has proved that it knows the room, and may be slow.
        progress.reached(Step::Proved);
        suspect.acquit();
        let theirs = read_hello(&mut recv).await?;
        progress.reached(Step::Greeted);
        let hello = theirs.clone();
        let (ack, reservation) = self
            .ask(|answer| Ask::Admit {
                hello,
                key,
                from: connection.remote_address(),
                connection: connection.clone(),
                answer,
            })
            .await?;
        write_hello_ack(&mut send, &ack).await?;
        let Some(reservation) = reservation else {
            close_after_flush(connection, send, ack.code).await;
            return Err(Refusal::Theirs(remote_code(ack.code).into()));
        };
        // The time of the room's answer does not count.
        progress.reached(Step::Greeted);
        write_ready(&mut send).await?;
        read_ready(&mut recv).await?;
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

    /// The queue of an incoming link. `None` if it is not accepted, or without its route.
    async fn queue_of(&self, address: SocketAddr) -> Option<Queue> {
        let source = match Path::to(address) {
            Path::Direct if self.is_relayed_only => return None,
            Path::Direct => address.ip().into(),
            Path::Carried(_) => match self.tunnels.carrier_of(address)? {
                Via::Member(carrier) => Source::Carrier(carrier),
                Via::Relay(relay) => Source::Relay(relay),
            },
        };
        let mut stranger = None;
        if let (Source::Relay(_), Some(id)) = (source, id_at(address)) {
            let known = self.ask(|answer| Ask::KnownId { id, answer });
            stranger = (!known.await.ok()?).then_some(id);
        }
        Some(Queue { source, stranger })
    }

    fn transport_from(&self, carrier: CarrierKind) -> Arc<TransportConfig> {
        Arc::clone(match carrier {
            CarrierKind::Member => &self.tunnel_transport,
            CarrierKind::Relay => &self.relayed_transport,
        })
    }
}

/// A process that may guess the room, until it has proved that it knows it.
#[derive(Debug, Default)]
struct Suspect(Mutex<Option<Fingerprint>>);

impl Suspect {
    fn is(&self, key: Fingerprint) {
        *self.slot() = Some(key);
    }

    fn acquit(&self) {
        *self.slot() = None;
    }

    fn key(&self) -> Option<Fingerprint> {
        *self.slot()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Fingerprint>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shared state of all admissions of an endpoint.
struct WaitingRoom {
    /// Served in order of arrival; each address has a queue of its own before it.
    places: Semaphore,
    /// Places shared by the addresses with too many wrong guesses.
    of_closed: Semaphore,
    /// Places shared by the links through carriers.
    of_carried: Semaphore,
    lingering: Lingering,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    /// By source, and for a relay whether they are of strangers.
    all: BTreeMap<(Source, bool), Weak<Semaphore>>,
    /// Held by each link of one stranger behind a relay.
    of_strangers: BTreeMap<Queue, Weak<()>>,
}

/// A link in its queue.
struct InLine {
    /// Held by each link that waits or has a place.
    line: Arc<Semaphore>,
    _stranger: Option<Arc<()>>,
}

impl WaitingRoom {
    fn new() -> Self {
        Self {
            places: Semaphore::new(MAX_ADMISSIONS),
            of_closed: Semaphore::new(MAX_ADMISSIONS_OF_CLOSED),
            of_carried: Semaphore::new(MAX_CARRIED_ADMISSIONS),
            lingering: Lingering::default(),
            lines: Mutex::default(),
        }
    }

    /// Joins a queue; `None` if it is full. quinn bounds the number of queues.
    fn of(&self, queue: Queue) -> Option<InLine> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.all.retain(|_, line| line.strong_count() > 0);
        lines.of_strangers.retain(|_, held| held.strong_count() > 0);
        let (most, most_waiting) = match queue.source {
            Source::V4(_) | Source::V6Prefix(_) => (MAX_ADMISSIONS_OF_ONE, MAX_WAITING_OF_ONE),
            Source::Carrier(_) => (MAX_ADMISSIONS_OF_CARRIER, MAX_WAITING_OF_CARRIER),
            Source::Relay(_) => (MAX_ADMISSIONS_OF_RELAY, MAX_WAITING_OF_CARRIER),
        };
        let line = match lines.all.get(&queue.shared()).and_then(Weak::upgrade) {
            // Each waiting or admitted link holds a reference, and so does this one.
            Some(line) if Arc::strong_count(&line) > most_waiting => return None,
            Some(line) => line,
            None => {
                let line = Arc::new(Semaphore::new(most));
                lines.all.insert(queue.shared(), Arc::downgrade(&line));
                line
            }
        };
        let mut of_stranger = None;
        if queue.stranger.is_some() {
            let held = lines.of_strangers.get(&queue).and_then(Weak::upgrade);
            let held = held.unwrap_or_default();
            if Arc::strong_count(&held) > MAX_OF_RELAYED_STRANGER {
                return None;
            }
            lines.of_strangers.insert(queue, Arc::downgrade(&held));
            of_stranger = Some(held);
        }
        Some(InLine {
            line,
            _stranger: of_stranger,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::core::path::RelayNumber;

    #[test]
    fn no_more_than_its_share_waits_of_one_address() {
        let room = WaitingRoom::new();
        let address = |host| Queue::of(IpAddr::from([192, 0, 2, host]).into());
        let [guesser, other] = [1, 2].map(address);
        let in_line: Vec<_> = (0..MAX_WAITING_OF_ONE)
            .map(|_| room.of(guesser).expect("its line has room"))
            .collect();
        assert!(room.of(guesser).is_none());
        assert!(room.of(other).is_some());
        drop(in_line);
        assert!(room.of(guesser).is_some());
        // An address without links leaves no entry behind.
        let lines = room.lines.lock().expect("not poisoned");
        assert_eq!(lines.all.len(), 1);
    }

    #[test]
    fn a_carrier_has_few_places_and_leaves_those_of_another_carrier_free() {
        let room = WaitingRoom::new();
        let [liar, other] = [[1; 8], [2; 8]].map(|id| Queue::of(Source::Carrier(id)));
        let in_line: Vec<_> = (0..MAX_WAITING_OF_CARRIER)
            .map(|_| room.of(liar).expect("its line has room"))
            .collect();
        assert!(room.of(liar).is_none());
        let other = room.of(other).expect("a line of its own");
        for in_line in [&in_line[0], &other] {
            let free = in_line.line.available_permits();
            assert_eq!(free, MAX_ADMISSIONS_OF_CARRIER);
        }
    }

    #[test]
    fn strangers_behind_a_relay_leave_the_places_of_known_keys_and_of_the_other_relay_free() {
        let room = WaitingRoom::new();
        let stranger = |relay, id: u8| Queue {
            source: Source::Relay(RelayNumber(relay)),
            stranger: Some([id; 8]),
        };
        let mut in_line = Vec::new();
        for id in 0..u8::MAX {
            in_line.extend((0..4).map_while(|_| room.of(stranger(0, id))));
            let waiting = usize::from(id + 1) * MAX_OF_RELAYED_STRANGER;
            assert_eq!(in_line.len(), waiting.min(MAX_WAITING_OF_CARRIER));
        }
        let known = Queue::of(Source::Relay(RelayNumber(0)));
        for free in [known, stranger(1, 1)] {
            let in_line = room.of(free).expect("a line of its own");
            let free = in_line.line.available_permits();
            assert_eq!(free, MAX_ADMISSIONS_OF_RELAY);
        }
        drop(in_line);
        assert!(room.of(stranger(0, 1)).is_some());
        let lines = room.lines.lock().expect("not poisoned");
        assert_eq!((lines.all.len(), lines.of_strangers.len()), (1, 1));
    }
}
