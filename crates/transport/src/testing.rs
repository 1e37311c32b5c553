//! Processes on loopback, for tests of links.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use room_core::id::Fingerprint;

use crate::identity::{
    ALPN, Identity, SERVER_NAME, client_config_with_alpn, server_config_with_alpn,
};
use crate::quic::transport_config;

/// Longest wait of a test for something that must happen; only a broken test reaches it.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A process on 127.0.0.1 that accepts and dials.
pub struct Process {
    /// Its key pair.
    pub identity: Identity,
    /// Its socket.
    pub endpoint: Endpoint,
}

impl Process {
    /// A process with a new key.
    pub fn start() -> Self {
        Self::start_with_alpn(ALPN)
    }

    /// A process that speaks another protocol.
    pub fn start_with_alpn(alpn: &[u8]) -> Self {
        Self::start_with(Identity::generate().expect("a key"), alpn)
    }

    /// Starts a process with an existing key.
    pub fn start_as(identity: Identity) -> Self {
        Self::start_with(identity, ALPN)
    }

    fn start_with(identity: Identity, alpn: &[u8]) -> Self {
        let transport = Arc::new(transport_config());
        let server = server_config_with_alpn(&identity, transport, alpn).expect("a configuration");
        let endpoint = Endpoint::server(server, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .expect("a loopback socket");
        Self { identity, endpoint }
    }

    /// Where it accepts.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr().expect("bound")
    }

    /// How it dials; with `expected`, only the holder of that key.
    pub fn client(&self, expected: Option<Fingerprint>, alpn: &[u8]) -> ClientConfig {
        let transport = Arc::new(transport_config());
        client_config_with_alpn(&self.identity, expected, transport, alpn).expect("a configuration")
    }

    /// Dials `to`.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn dial_with(
        &self,
        config: ClientConfig,
        to: SocketAddr,
    ) -> Result<Connection, ConnectionError> {
        let connecting = self.endpoint.connect_with(config, to, SERVER_NAME);
        in_time(connecting.expect("an address")).await
    }

    /// Dials `to`, which accepts, and expects its key.
    pub async fn dial(&self, to: &Self) -> Connection {
        let expected = Some(to.identity.fingerprint());
        let dialled = self.dial_with(self.client(expected, ALPN), to.address());
        dialled.await.expect("connected")
    }

    /// The next connection.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn accept(&self) -> Result<Connection, ConnectionError> {
        let incoming = in_time(self.endpoint.accept()).await;
        in_time(incoming.expect("open").into_future()).await
    }
}

/// A dialler, an acceptor, and each end's view of their connection.
pub async fn pair() -> (Process, Connection, Process, Connection) {
    let (dialler, acceptor) = (Process::start(), Process::start());
    let (at_dialler, at_acceptor) = tokio::join!(dialler.dial(&acceptor), acceptor.accept());
    let at_acceptor = at_acceptor.expect("connected");
    (dialler, at_dialler, acceptor, at_acceptor)
}

/// The output of `future`, which must come within [`TIMEOUT`].
pub async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    let ended = tokio::time::timeout(TIMEOUT, future).await;
    ended.expect("what the test waits for happens")
}
