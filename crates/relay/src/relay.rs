//! A relay in this process, on a thread of its own.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use quinn::{Endpoint, IdleTimeout, ServerConfig, VarInt};
use room_core::id::Fingerprint;
use room_transport::closing::{abi, close_code};
use room_transport::identity::{
    Identity, IdentityError, PrivateKey, generate_private, restartable_endpoint_config,
    server_config_with_alpn,
};
use room_transport::quic::transport_config;
use room_transport::rendezvous::RELAY_ALPN;
use room_transport::timers::Timers;
use room_transport::token::TokenKey;
use room_transport::tunnel::shaper::Rate;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::accepting::accept_all;
use crate::figures::Figures;
use crate::frames::MAX_BYTES_BEFORE_ENTER;
use crate::log::Level;
use crate::quota::Quota;
use crate::server::{Limits, MAX_BACKLOG_BYTES, Server};
use crate::udp::{UdpRuntime, bind};
use crate::{files, metrics};

/// Idle timeout of links. Members send something every 10 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// First size of packets: a whole packet of a link over the relay fits, with all headers.
const INITIAL_MTU: u16 = 1252;
/// Bytes of frames that a member has not acknowledged, at most.
const SEND_WINDOW_BYTES: u64 = 16 << 10;
/// Time for the closes of all links to leave.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings of a relay.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens. The unspecified IPv6 address means all addresses of both families; port 0 is any free one.
    pub listen: SocketAddr,
    /// Its private key; `None` is a new one.
    pub key: Option<PrivateKey>,
    /// The token that members must prove that they know.
    pub token: Option<[u8; 16]>,
    /// Bytes a second of one link, each way; 0 is no limit.
    pub rate: u32,
    /// Bytes a second that it sends on in all; 0 is no limit.
    pub total: u32,
    /// Bytes a month, both ways together.
    pub monthly: Option<u64>,
    /// Keeps the use of [`Settings::monthly`] across restarts.
    pub quota_file: Option<PathBuf>,
    /// Links, at most.
    pub max_links: usize,
    /// Where it shows its figures: an address of loopback.
    pub metrics: Option<SocketAddr>,
    /// Least important lines of the log; `None` writes no log.
    pub log: Option<Level>,
}

impl Default for Settings {
    /// The settings of `mmn-relay` without arguments, but on a free port of loopback, and silent.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            key: None,
            token: None,
            rate: 512 << 10,
            total: 4 << 20,
            monthly: None,
            quota_file: None,
            max_links: 4096,
            metrics: None,
            log: None,
        }
    }
}

/// Reason why a relay does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The socket.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket for figures.
    #[error("cannot show figures on {address}: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The address for figures is not one of loopback.
    #[error("figures are shown on loopback alone, and {0} is another address")]
    MetricsNotLoopback(SocketAddr),
    /// The key.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The file that keeps the use of the quota.
    #[error("cannot use the file {}: {source}", path.display())]
    QuotaFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The thread.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// A running relay. Dropping it stops it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    fingerprint: Fingerprint,
    server: Arc<Server>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay.
    ///
    /// # Errors
    /// [`StartError`]
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let private = match settings.key {
            Some(key) => key,
            None => generate_private()?,
        };
        let identity = Identity::from_private(&private)?;
        let endpoint_config = restartable_endpoint_config(&private);
        drop(private);
        let config = server_config(&identity)?;
        let listen = settings.listen;
        let at_socket = |source| StartError::Listen {
            address: listen,
            source,
        };
        let socket = bind(listen).map_err(at_socket)?;
        let address = socket.local_addr().map_err(at_socket)?;
        let metrics = settings.metrics.map(bind_metrics).transpose()?;
        let quota = quota(settings.monthly, settings.quota_file.as_ref())?;
        let server = Arc::new(Server::new(Limits {
            token: settings.token.map(|token| TokenKey::new(token.as_slice())),
            rate: rate(settings.rate),
            total: rate(settings.total),
            max_links: settings.max_links,
            backlog_bytes: MAX_BACKLOG_BYTES,
            quota,
            log: settings.log,
        }));

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let metrics_address = metrics.as_ref().map(|listener| listener.local_addr());
        let serve = {
            let server = Arc::clone(&server);
            async move {
                let udp = UdpRuntime {
                    timers: Timers::start(),
                    counters: Arc::clone(&server.counters),
                    departures: Arc::clone(&server.departures),
                };
                let endpoint = Endpoint::new(endpoint_config, Some(config), socket, Arc::new(udp));
                let endpoint = match endpoint {
                    Ok(endpoint) => endpoint,
                    Err(error) => return drop(started.send(Err(error))),
                };
                if let Some(listener) = metrics {
                    if let Ok(address) = listener.local_addr() {
                        server.log(Level::Info, format_args!("figures: {address}"));
                    }
                    if let Err(error) = metrics::serve(listener, Arc::clone(&server)) {
                        return drop(started.send(Err(error)));
                    }
                }
                tokio::spawn(Arc::clone(&server).watch_quota(settings.quota_file.clone()));
                tokio::spawn(accept_all(Arc::clone(&server), endpoint.clone()));
                // The one who started it may have given up.
                let _ = started.send(Ok(()));
                // A dropped sender stops it, too.
                let _ = stopped.await;
                endpoint.close(close_code(abi::CONNECTION_FAILED), b"the relay stops");
                let _ = tokio::time::timeout(STOP_TIMEOUT, endpoint.wait_idle()).await;
                server.keep_quota(settings.quota_file.as_ref());
            }
        };
        let thread = std::thread::Builder::new()
            .name("mmn-relay".into())
            .spawn(move || runtime.block_on(serve))?;
        match start.recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(io::Error::other("its thread has ended").into()),
        }
        Ok(Self {
            address,
            metrics: metrics_address.transpose()?,
            fingerprint: identity.fingerprint(),
            server,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it shows its figures.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The fingerprint of its key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        self.server.figures()
    }

    /// Closes all links, and waits until the relay has stopped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It has stopped already if this fails.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic has been printed where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

fn rate(bytes_per_second: u32) -> Rate {
    match bytes_per_second {
        0 => Rate::Unlimited,
        rate => Rate::BytesPerSecond(rate),
    }
}

fn bind_metrics(address: SocketAddr) -> Result<TcpListener, StartError> {
    if !address.ip().to_canonical().is_loopback() {
        return Err(StartError::MetricsNotLoopback(address));
    }
    metrics::bind(address).map_err(|source| StartError::Metrics { address, source })
}

fn quota(monthly: Option<u64>, file: Option<&PathBuf>) -> Result<Option<Quota>, StartError> {
    let Some(monthly) = monthly else {
        return Ok(None);
    };
    let used = match file {
        None => None,
        Some(path) => files::read_used(path).map_err(|source| StartError::QuotaFile {
            path: path.clone(),
            source,
        })?,
    };
    Ok(Some(Quota::new(monthly, SystemTime::now(), used)))
}

fn server_config(identity: &Identity) -> Result<ServerConfig, IdentityError> {
    let mut transport = transport_config();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .initial_mtu(INITIAL_MTU)
        .receive_window(VarInt::from_u32(MAX_BYTES_BEFORE_ENTER))
        .stream_receive_window(VarInt::from_u32(crate::frames::MAX_UNREAD_BYTES))
        .send_window(SEND_WINDOW_BYTES);
    server_config_with_alpn(identity, Arc::new(transport), RELAY_ALPN)
}
