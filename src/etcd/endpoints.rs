//! The servers of a cluster. The client asks one until it fails, then the next.
//!
//! etcd-client's balancing over several endpoints would send every nth request to a dead one, and a request to a silent
//! one would wait there until its timeout. So each endpoint has a client of its own. A connection that does not answer
//! is given up for all its users: it is dropped, and its watches end.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Endpoint;
use zeroize::Zeroizing;

use super::error::StoreError;
use super::fault::{self, Fault};
use crate::config::EtcdSettings;
use crate::core::election::engine::{Failure, FailureKind};
use crate::quoted::Quoted;

/// Silence after which a connection with a watch is probed, and timeout of the answer. Servers close connections that
/// probe them more often than every 5 s (`--grpc-keepalive-min-time`).
const PROBE_AFTER: Duration = Duration::from_secs(6);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The servers of a cluster, and the connections to them.
#[derive(Debug)]
pub(super) struct Endpoints {
    /// At least one endpoint.
    names: Vec<String>,
    tls: Option<TlsOptions>,
    login: Option<Login>,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Index of the endpoint to ask first.
    current: usize,
    /// In the order of `names`.
    connections: Vec<Option<Arc<Connection>>>,
}

/// A user with its password.
#[derive(Clone)]
struct Login {
    user: String,
    password: Zeroizing<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({:?})", self.user)
    }
}

/// A connection to one server. It connects with the first request, and again after a loss.
pub(super) struct Connection {
    endpoint: usize,
    client: Client,
    login: Option<Login>,
    /// Number of logins.
    logins: tokio::sync::Mutex<u64>,
    given_up: watch::Sender<bool>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.endpoint)
    }
}

impl Endpoints {
    pub(super) fn new(settings: EtcdSettings) -> Result<Self, StoreError> {
        if settings.endpoints.is_empty() {
            return Err(StoreError::NoEndpoint);
        }
        let secure = settings.endpoints.iter().any(|name| is_secure(name));
        let tls = secure.then(|| tls(&settings)).transpose()?;
        for name in &settings.endpoints {
            check(name, tls.as_ref())?;
        }
        let login = settings.login.map(|login| {
            let password = std::str::from_utf8(login.password.bytes())
                .map(|password| Zeroizing::new(password.to_owned()));
            match password {
                Ok(password) => Ok(Login {
                    user: login.user,
                    password,
                }),
                Err(_) => Err(StoreError::BadPassword { user: login.user }),
            }
        });
        Ok(Self {
            tls,
            login: login.transpose()?,
            timeout: settings.request_timeout,
            state: Mutex::new(State {
                current: 0,
                connections: vec![None; settings.endpoints.len()],
            }),
            names: settings.endpoints,
        })
    }

    /// The time at which a request that begins now has failed.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Asks one server after another until one answers, each for its share of the time. `what` names the request in the
    /// failure. A request that a server refuses does not go to the others.
    pub(super) async fn ask<T, F, A>(
        &self,
        what: &str,
        deadline: Instant,
        mut tried: Vec<(usize, Fault)>,
        request: F,
    ) -> Result<(T, Arc<Connection>), Failure>
    where
        F: Fn(Client) -> A,
        A: Future<Output = Result<T, Fault>>,
    {
        let first = self.lock().current;
        for turn in 0..self.names.len() {
            let endpoint = (first + turn) % self.names.len();
            let until = share(deadline, self.names.len() - turn);
            let fault = match self.attempt(endpoint, until, &request).await {
                Ok(answered) => return Ok(answered),
                Err(fault) => fault,
            };
            let next_may_answer = fault.kind == FailureKind::Unreachable;
            tried.push((endpoint, fault));
            if !next_may_answer {
                break;
            }
        }
        Err(self.failure(what, &tried))
    }

    /// The time at which an attempt has failed that precedes one attempt at every endpoint.
    pub(super) fn first_share(&self, deadline: Instant) -> Instant {
        share(deadline, 1 + self.names.len())
    }

    async fn attempt<T, F, A>(
        &self,
        endpoint: usize,
        until: Instant,
        request: &F,
    ) -> Result<(T, Arc<Connection>), Fault>
    where
        F: Fn(Client) -> A,
        A: Future<Output = Result<T, Fault>>,
    {
        let began = Instant::now();
        let connection = self.connection(endpoint).await?;
        let answer = tokio::select! {
            answer = timeout_at(until, connection.run(request)) => answer.unwrap_or_else(|_| {
                let waited = began.elapsed().as_millis();
                Err(Fault::unreachable(format!("no answer within {waited} ms")))
            }),
            () = connection.given_up() => Err(Fault::unreachable("no answer to an earlier request")),
        };
        if let Err(fault) = &answer
            && fault.kind == FailureKind::Unreachable
        {
            self.give_up(&connection);
        }
        answer.map(|answer| (answer, connection))
    }

    async fn connection(&self, endpoint: usize) -> Result<Arc<Connection>, Fault> {
        if let Some(connection) = &self.lock().connections[endpoint] {
            return Ok(Arc::clone(connection));
        }
        let name = &self.names[endpoint];
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.timeout)
            .with_keep_alive(PROBE_AFTER, PROBE_TIMEOUT)
            // Servers close connections that are probed while they have no request.
            .with_keep_alive_while_idle(false)
            // A server without a leader then reports so at once and ends its watches, instead of letting every request
            // wait.
            .with_require_leader(true);
        if let Some(tls) = &self.tls
            && is_secure(name)
        {
            options = options.with_tls(tls.clone());
        }
        // This does not wait: the client connects with the first request.
        let client = Client::connect([name], Some(options)).await?;
        let connection = Arc::new(Connection {
            endpoint,
            client,
            login: self.login.clone(),
            logins: tokio::sync::Mutex::new(0),
            given_up: watch::Sender::new(false),
        });
        let mut state = self.lock();
        // Another request may have connected meanwhile.
        Ok(Arc::clone(
            state.connections[endpoint].get_or_insert(connection),
        ))
    }

    /// Drops a connection that does not answer. From now on the next endpoint comes first.
    pub(super) fn give_up(&self, connection: &Arc<Connection>) {
        let mut state = self.lock();
        let State {
            current,
            connections,
        } = &mut *state;
        let place = &mut connections[connection.endpoint];
        if place
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(held, connection))
        {
            *place = None;
            if *current == connection.endpoint {
                *current = (*current + 1) % self.names.len();
            }
        }
        connection.given_up.send_replace(true);
    }

    /// The sentence about failed attempts; the last one decides the kind of the failure.
    pub(super) fn failure(&self, what: &str, tried: &[(usize, Fault)]) -> Failure {
        let kind = tried
            .last()
            .map_or(FailureKind::Unreachable, |(_, fault)| fault.kind);
        let attempts = tried
            .iter()
            .map(|(endpoint, fault)| format!("{}: {}", self.names[*endpoint], fault.words))
            .collect::<Vec<_>>()
            .join("; ");
        let user = match &self.login {
            Some(login) => format!(" as user {}", Quoted(&login.user)),
            None => " without a user".to_owned(),
        };
        let advice = match kind {
            FailureKind::Unreachable => {
                "; check that etcd runs, that most of its members are up, and that the endpoints are right"
            }
            FailureKind::Denied => {
                "; check the user and the password, and that the user's role may read and write every key under the prefix"
            }
            FailureKind::LeaseGone | FailureKind::Compacted | FailureKind::Other => "",
        };
        let user = if kind == FailureKind::Denied {
            &user
        } else {
            ""
        };
        Failure {
            kind,
            text: format!("{what} at etcd{user} failed: {attempts}{advice}"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// The index of its endpoint in the list.
    pub(super) fn endpoint(&self) -> usize {
        self.endpoint
    }

    /// Waits until this connection is given up.
    pub(super) async fn given_up(&self) {
        // `self` holds the sender, so the channel cannot end before.
        let _ = self.given_up.subscribe().wait_for(|up| *up).await;
    }

    /// Runs a request with a valid login, if the cluster has users.
    async fn run<T, F, A>(&self, request: &F) -> Result<T, Fault>
    where
        F: Fn(Client) -> A,
        A: Future<Output = Result<T, Fault>>,
    {
        let Some(login) = &self.login else {
            return request(self.client.clone()).await;
        };
        let known = self.log_in(login, 0).await?;
        match request(self.client.clone()).await {
            Err(fault) if fault.login_stale => {
                self.log_in(login, known).await?;
                request(self.client.clone()).await
            }
            answer => answer,
        }
    }

    /// Logs in, unless a login followed the one with the number `stale`. Returns the number of the newest.
    async fn log_in(&self, login: &Login, stale: u64) -> Result<u64, Fault> {
        let mut logins = self.logins.lock().await;
        if *logins == stale {
            let pair = (login.user.clone(), login.password.as_str().to_owned());
            match self.client.clone().update_user(Some(pair)).await {
                Err(error) if !fault::without_users(&error) => return Err(error.into()),
                _ => *logins += 1,
            }
        }
        Ok(*logins)
    }
}

/// The time at which the first of `attempts` attempts has failed: each gets an equal part of the remaining time.
fn share(deadline: Instant, attempts: usize) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / u32::try_from(attempts).unwrap_or(u32::MAX)
}

fn is_secure(endpoint: &str) -> bool {
    endpoint.starts_with("https://")
}

fn tls(settings: &EtcdSettings) -> Result<TlsOptions, StoreError> {
    let mut tls = TlsOptions::new();
    tls = match &settings.ca_file {
        Some(file) => tls.ca_certificate(Certificate::from_pem(read(file)?)),
        None => tls.with_native_roots(),
    };
    if let Some(identity) = &settings.identity {
        let certificate = read(&identity.cert_file)?;
        tls = tls.identity(Identity::from_pem(certificate, read(&identity.key_file)?));
    }
    Ok(tls)
}

fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    match fs::read(file) {
        Ok(bytes) => Ok(Zeroizing::new(bytes)),
        Err(error) => Err(StoreError::Unreadable {
            path: file.to_owned(),
            error,
        }),
    }
}

/// Finds faults at the start that would otherwise fail every request.
fn check(name: &str, tls: Option<&TlsOptions>) -> Result<(), StoreError> {
    let bad = || StoreError::BadEndpoint {
        endpoint: name.to_owned(),
    };
    if !is_secure(name) && !name.starts_with("http://") {
        return Err(bad());
    }
    let endpoint = Endpoint::from_shared(name.to_owned()).map_err(|_| bad())?;
    if is_secure(name)
        && let Some(tls) = tls
    {
        endpoint
            .tls_config(tls.clone())
            .map_err(|error| StoreError::Tls {
                text: chain(&error),
            })?;
    }
    Ok(())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
