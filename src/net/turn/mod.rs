//! A port at a TURN server (RFC 8656), for members whose network lets no UDP out, and for those whose routers let none in.
//!
//! One task holds the port: it tries the servers of the options in their order, keeps the first that gives a port, and tries them
//! again when that one is lost. Packets of the port come out of the room's socket from a virtual address
//! ([`crate::core::virtual_address::through_turn`]), and go to it in the same way, so that links through the port are ordinary ones.
//!
//! The server sees encrypted packets, and the addresses of both ends. It proves nothing: a peer behind it proves its key as anywhere.

mod line;
mod session;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use self::line::Line;
use self::session::{RELEASE_LIMIT, Session};
use self::tls::Trust;
use super::names::{LookupError, Names};
use super::socket::Bound;
use super::tunnel::Tunnels;
use crate::config::{TurnServer, TurnTransport};
use crate::core::event::TurnReport;
use crate::error::Code;
use crate::quoted::Quoted;
use crate::target::Host;

/// Time after which an address that has not answered is dialled through the server, too.
pub(crate) const TURN_AFTER: Duration = Duration::from_secs(1);
/// Time for each of the steps: the name, the connection, TLS.
const STEP: Duration = Duration::from_secs(5);
/// Addresses of a server's name that are tried, at most.
const MAX_ADDRESSES: usize = 4;
/// The wait after the first round in which no server gave a port. It doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A port held for this long makes the next wait a first one.
const LONG_STAY: Duration = Duration::from_secs(30);
/// Longest wait for the server to take the port back.
const END_LIMIT: Duration = Duration::from_millis(300);
/// Reports that may wait for the network thread.
const QUEUE: usize = 16;

/// Why there is no port.
#[derive(Debug, Error)]
enum Fault {
    #[error(transparent)]
    Name(#[from] LookupError),
    #[error("it has no address that this member can reach")]
    NoAddress,
    #[error("it does not answer")]
    NoAnswer,
    #[error("it cannot be reached ({0})")]
    Unreachable(#[from] io::Error),
    #[error("its certificate is not trusted ({0})")]
    Certificate(String),
    #[error("TLS with it fails ({0})")]
    Tls(String),
    #[error("{0}")]
    Refused(Refusal),
    #[error("what it sends is not TURN")]
    Malformed,
    #[error("the connection to it is lost")]
    Lost,
    #[error("this member uses it no more")]
    GivenUp,
    #[error("this end failed: {0}")]
    Internal(String),
}

impl Fault {
    fn internal(error: impl fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }

    fn tls(error: io::Error) -> Self {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => Self::Certificate(why.to_string()),
            Some(other) => Self::Tls(other.to_string()),
            None => Self::from(error),
        }
    }

    /// The code for the host.
    fn code(&self) -> Code {
        match self {
            Self::Name(_) => Code::NameNotResolved,
            Self::NoAnswer => Code::Timeout,
            Self::NoAddress | Self::Unreachable(_) | Self::Lost | Self::GivenUp => {
                Code::ConnectionFailed
            }
            Self::Certificate(_) => Code::AuthenticationFailed,
            Self::Tls(_) | Self::Malformed => Code::SerializationError,
            Self::Refused(refusal) => refusal.means(),
            Self::Internal(_) => Code::InternalError,
        }
    }

    /// Whether the same attempt ends in the same way again.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Certificate(_) | Self::Tls(_) | Self::Malformed => true,
            // A port may become free.
            Self::Refused(refusal) => !matches!(refusal.code, 437 | 486 | 508),
            _ => false,
        }
    }
}

/// A server's error, as it names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    code: u16,
    reason: String,
}

impl Refusal {
    fn new(code: u16, reason: &str) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
        }
    }

    /// The code for the host.
    fn means(&self) -> Code {
        match self.code {
            401 | 441 => Code::AuthenticationFailed,
            486 | 508 => Code::MaxConnectionsReached,
            437 => Code::ConnectionFailed,
            _ => Code::Rejected,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.code {
            401 | 441 => "the user name or the password is wrong, or has expired",
            403 => "the server's rules forbid it",
            437 => "it does not know the port any more",
            486 => "this user has as many ports as it may have",
            508 => "it has no free port",
            _ => "it refuses",
        };
        write!(f, "{remedy}: {} {}", self.code, Quoted(&self.reason))
    }
}

/// The task that holds the port.
pub(crate) struct Turn {
    end: oneshot::Sender<oneshot::Sender<()>>,
    servers: watch::Sender<Arc<[TurnServer]>>,
}

impl Turn {
    /// Starts the task, whose reports come out of the queue. Without servers it waits for some.
    pub(crate) fn start(
        servers: &[TurnServer],
        bound: Bound,
        names: Arc<Names>,
        tunnels: Arc<Tunnels>,
        seed: u64,
    ) -> (Self, mpsc::Receiver<TurnReport>) {
        let (news, reports) = mpsc::channel(QUEUE);
        let (servers, given) = watch::channel(Arc::from(servers));
        let (end, ended) = oneshot::channel();
        let task = Task {
            servers: given,
            bound,
            names,
            tunnels,
            news,
            reported: BTreeMap::new(),
            chance: ChaCha8Rng::seed_from_u64(seed),
        };
        tokio::spawn(task.run(ended));
        (Self { end, servers }, reports)
    }

    /// Replaces the servers and their credentials. A port at a server that stays in the list, with these credentials, stays, too.
    pub(crate) fn set_servers(&self, servers: &[TurnServer]) {
        self.servers.send_replace(Arc::from(servers));
    }

    /// Gives the port back. Takes a moment at most.
    pub(crate) async fn end(self) {
        let (done, is_done) = oneshot::channel();
        if self.end.send(done).is_ok() {
            // However it ends: the server frees the port by itself.
            let _ = timeout(END_LIMIT, is_done).await;
        }
    }
}

struct Task {
    servers: watch::Receiver<Arc<[TurnServer]>>,
    bound: Bound,
    names: Arc<Names>,
    tunnels: Arc<Tunnels>,
    news: mpsc::Sender<TurnReport>,
    /// The last report of each server of the list, by its place there.
    reported: BTreeMap<usize, TurnReport>,
    chance: ChaCha8Rng,
}

impl Task {
    async fn run(mut self, mut ended: oneshot::Receiver<oneshot::Sender<()>>) {
        let mut held = None;
        let done = tokio::select! {
            biased;
            done = &mut ended => done.ok(),
            () = self.hold(&mut held) => None,
        };
        self.tunnels.turn().set_address(None);
        if let Some(session) = held {
            let _ = timeout(RELEASE_LIMIT, Session::release(session)).await;
        }
        if let Some(done) = done {
            // The room may have stopped waiting.
            let _ = done.send(());
        }
    }

    /// Holds a port again and again. Returns when the room reads no reports any more. Cancel safe: `held` is the present session.
    async fn hold(&mut self, held: &mut Option<Session>) {
        let mut wait = FIRST_WAIT;
        while !self.news.is_closed() {
            let is_new = self.servers.has_changed().unwrap_or(true);
            let servers = self.servers.borrow_and_update().clone();
            if is_new {
                // The host waits for what becomes of them.
                self.reported.clear();
            }
            self.tunnels.turn().set_configured(!servers.is_empty());
            if servers.is_empty() {
                // Fails only while the room ends.
                if self.servers.changed().await.is_err() {
                    return;
                }
                self.servers.mark_changed();
                continue;
            }
            let began = Instant::now();
            let is_lasting = self.try_all(&servers, held).await;
            if let Some(session) = held.take() {
                session.release().await;
            }
            if began.elapsed() >= LONG_STAY {
                wait = FIRST_WAIT;
            }
            let pause = match is_lasting {
                true => LONGEST_WAIT,
                false => wait,
            };
            wait = (wait * 2).min(LONGEST_WAIT);
            let pause = pause.mul_f64(self.chance.random_range(0.75..1.25));
            tokio::select! {
                () = sleep(pause) => {}
                changed = self.servers.changed() => match changed {
                    Ok(()) => {
                        wait = FIRST_WAIT;
                        self.servers.mark_changed();
                    }
                    Err(_) => return,
                },
            }
        }
    }

    /// Tries the servers in their order, and uses the first that gives a port until it is lost. Returns whether every attempt would end
    /// in the same way again. Ends early if the host gives another list.
    async fn try_all(&mut self, servers: &[TurnServer], held: &mut Option<Session>) -> bool {
        let mut is_lasting = true;
        for (place, server) in servers.iter().enumerate() {
            let mut given = self.servers.clone();
            let opened = tokio::select! {
                opened = self.open(server) => opened,
                () = replaced(&mut given, server) => return false,
            };
            let fault = match opened {
                Ok((session, address)) => {
                    let session = held.insert(session);
                    is_lasting = false;
                    self.tunnels.turn().set_address(Some(address));
                    self.report(place, server, Ok(address)).await;
                    let fault = tokio::select! {
                        fault = session.carry() => fault,
                        () = replaced(&mut given, server) => Fault::GivenUp,
                    };
                    self.tunnels.turn().set_address(None);
                    fault
                }
                Err(fault) => fault,
            };
            is_lasting &= fault.is_lasting();
            self.report(place, server, Err(fault)).await;
            let is_outdated = self.servers.has_changed().unwrap_or(true);
            if held.is_some() || is_outdated {
                return false; // the best one first
            }
        }
        is_lasting
    }

    async fn open(&self, server: &TurnServer) -> Result<(Session, SocketAddr), Fault> {
        let mut fault = Fault::NoAddress;
        for address in self.addresses(server).await? {
            match self.open_at(server, address).await {
                Ok(opened) => return Ok(opened),
                Err(failed) => fault = failed,
            }
        }
        Err(fault)
    }

    async fn open_at(
        &self,
        server: &TurnServer,
        address: SocketAddr,
    ) -> Result<(Session, SocketAddr), Fault> {
        let own = self.bound.address;
        let line = match server.transport {
            TurnTransport::Udp => Line::udp(own, address).await?,
            TurnTransport::Tcp => Line::stream(own, address, None).await?,
            TurnTransport::Tls => {
                let name = match &server.target.host {
                    Host::Name(name) => name.clone(),
                    _ => address.ip().to_string(),
                };
                let trust = server.key.map_or(Trust::System, Trust::Key);
                Line::stream(own, address, Some((&name, trust))).await?
            }
        };
        let mut session = Session::new(line, server, Arc::clone(&self.tunnels));
        let given = session.allocate().await?;
        Ok((session, given))
    }

    async fn addresses(&self, server: &TurnServer) -> Result<Vec<SocketAddr>, Fault> {
        let mut found = match (server.target.socket_addr(), &server.target.host) {
            (Some(address), _) => vec![address],
            (None, Host::Name(name)) => {
                let lookup = self.names.look_up(name, server.target.port);
                timeout(STEP, lookup).await.map_err(|_| Fault::NoAnswer)??
            }
            (None, _) => Vec::new(),
        };
        found.retain(|address| self.bound.reaches(*address));
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }

    async fn report(
        &mut self,
        place: usize,
        server: &TurnServer,
        state: Result<SocketAddr, Fault>,
    ) {
        if state.is_ok() {
            self.reported.clear();
        }
        let report = match state {
            Ok(address) => TurnReport {
                server: Arc::clone(&server.text),
                code: Code::Ok.value(),
                address: Some(address),
                why: "".into(),
            },
            Err(fault) => TurnReport {
                server: Arc::clone(&server.text),
                code: fault.code().value(),
                address: None,
                why: format!("the TURN server gives no port: {fault}").into(),
            },
        };
        if self.reported.get(&place) != Some(&report) {
            self.reported.insert(place, report.clone());
            // The room is leaving.
            let _ = self.news.send(report).await;
        }
    }
}

/// Waits until the host gives a list without this server or with other credentials for it. Cancel safe.
async fn replaced(given: &mut watch::Receiver<Arc<[TurnServer]>>, server: &TurnServer) {
    // Fails only while the room ends, which ends this, too.
    while given.changed().await.is_ok() {
        if !given.borrow_and_update().contains(server) {
            return;
        }
    }
}
