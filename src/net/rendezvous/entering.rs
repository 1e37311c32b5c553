//! The way into a relay: its addresses, a connection, the frame that names the room, and the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ClientConfig, ConnectError, Connection, IdleTimeout, TransportConfig, VarInt};
use room_transport::closing::{DialError, abi};
use room_transport::identity::{SERVER_NAME, client_config_with_alpn, peer_fingerprint};
use room_transport::quic::transport_config;
use room_transport::rendezvous::{Frame, FromRelay, Locator, RELAY_ALPN, ToRelay};
use room_transport::token::TokenKey;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::dial::Connector;
use super::super::names::LookupError;
use super::super::turn::TURN_AFTER;
use super::Entrance;
use super::link::{LinkToRelay, read_frame};
use crate::config::Relay;
use crate::core::address::is_dialable;
use crate::core::path::RelayNumber;
use crate::core::virtual_address::{behind_turn, on_the_network, through_turn};
use crate::error::Code;
use crate::target::Host;

/// Time for each of the steps: the name, the connection, the answer.
const STEP: Duration = Duration::from_secs(3);
/// Addresses of a name that are dialled, at most.
const MAX_ADDRESSES: usize = 4;
/// Time between two dials at different addresses.
const STAGGER: Duration = Duration::from_millis(250);
/// Time for plain UDP to answer after all, when the way through a TURN server has.
const ONCE_MORE: Duration = Duration::from_millis(700);
/// A router forgets most mappings after 30 s or more (RFC 9308 section 3.2).
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(30);
/// Packet size to start with: a packet of a tunnel with its header fits.
const INITIAL_MTU: u16 = 1252;

/// Reason why this member is not in the relay.
#[derive(Debug, Error)]
pub(super) enum NotEntered {
    /// The name has no address.
    #[error(transparent)]
    Name(#[from] LookupError),
    /// No name server answered.
    #[error("no name server answered in time")]
    NoNameServer,
    /// This member cannot send to any of its addresses.
    #[error("it has no address that this member can dial")]
    NoAddress,
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The connection gave no answer.
    #[error("it has not answered whether this member may enter")]
    NoWelcome,
    /// It was entered, and the link is lost.
    #[error("the link is lost")]
    Lost,
    /// This end failed.
    #[error("this end failed: {0}")]
    Internal(String),
    /// The room is being closed.
    #[error("the room is closing")]
    Closing,
}

impl NotEntered {
    /// The code for the host.
    pub(super) fn code(&self) -> i32 {
        let code = match self {
            Self::Name(_) | Self::NoNameServer => return Code::NameNotResolved.value(),
            Self::Internal(_) => return Code::InternalError.value(),
            Self::Dial(DialError::WrongKey) => return abi::AUTHENTICATION_FAILED,
            Self::Dial(error) => error.code(),
            Self::NoWelcome => abi::TIMEOUT,
            Self::NoAddress | Self::Lost | Self::Closing => abi::CONNECTION_FAILED,
        };
        match Code::from_value(code) {
            Some(
                Code::VersionMismatch
                | Code::MaxConnectionsReached
                | Code::AuthenticationFailed
                | Code::Timeout
                | Code::RateLimited,
            ) => code,
            _ => abi::CONNECTION_FAILED,
        }
    }

    /// Whether another attempt soon ends in the same way.
    pub(super) fn is_final(&self) -> bool {
        [
            abi::VERSION_MISMATCH,
            abi::AUTHENTICATION_FAILED,
            abi::RATE_LIMITED,
        ]
        .contains(&self.code())
    }
}

/// Dials a relay at an address.
async fn dial(
    gate: &Connector,
    config: ClientConfig,
    address: SocketAddr,
    limit: Duration,
) -> Result<Connection, NotEntered> {
    let connecting = gate.endpoint.connect_with(config, address, SERVER_NAME);
    let connecting = connecting.map_err(|error| match error {
        ConnectError::EndpointStopping => NotEntered::Closing,
        error => DialError::from(error).into(),
    })?;
    let connected = timeout(limit, connecting).await;
    let connected = connected.map_err(|_| DialError::TimedOut)?;
    let connection = connected.map_err(DialError::from)?;
    gate.tunnels.turn().note_answer(address);
    Ok(connection)
}

/// A relay, and what it takes to enter it.
pub(super) struct Door {
    pub(super) number: RelayNumber,
    pub(super) relay: Relay,
    pub(super) locator: Locator,
    pub(super) entrance: Arc<Entrance>,
}

impl Door {
    /// Connects to the first of the relay's addresses that answers.
    pub(super) async fn connect(&self) -> Result<Connection, NotEntered> {
        let gate = &self.entrance.gate;
        let transport = Arc::new(relay_transport_config());
        let config = client_config_with_alpn(&gate.identity, self.relay.key, transport, RELAY_ALPN)
            .map_err(|error| NotEntered::Internal(error.to_string()))?;
        let mut dials = JoinSet::new();
        let addresses = self.addresses().await?;
        let through_turn = match gate.tunnels.turn().is_configured() {
            true => addresses.iter().copied().filter_map(through_turn).collect(),
            false => Vec::new(),
        };
        let first = |is_plain| match is_plain {
            true => Duration::ZERO,
            false => TURN_AFTER,
        };
        let dialled = addresses
            .into_iter()
            .zip(0..)
            .chain(through_turn.into_iter().zip(0..));
        for (address, nth) in dialled {
            let (gate, config) = (Arc::clone(gate), config.clone());
            let is_plain = behind_turn(address).is_none();
            let wait = first(is_plain) + STAGGER * nth;
            dials.spawn(async move {
                sleep(wait).await;
                if !is_plain {
                    let turn = gate.tunnels.turn();
                    let opened = timeout(STEP, turn.is_open()).await;
                    let way = turn.way_to(on_the_network(address));
                    opened.ok().and(way).ok_or(DialError::TimedOut)?;
                }
                let dial = |to, limit| dial(&gate, config.clone(), to, limit);
                let connection = dial(address, STEP).await?;
                if is_plain {
                    return Ok(connection);
                }
                // A relay that was not there a moment ago may answer plain UDP by now, and the link stays where it is made.
                let plain = dial(on_the_network(address), ONCE_MORE).await;
                Ok(plain.unwrap_or(connection))
            });
        }
        let mut failed = NotEntered::NoAddress;
        let mut has_failed = false;
        while let Some(ended) = dials.join_next().await {
            match ended {
                Ok(Ok(connection)) => return Ok(connection),
                // Any answer is more use to the host than silence.
                Ok(Err(NotEntered::Dial(DialError::TimedOut))) if has_failed => {}
                Ok(Err(error)) => failed = error,
                Err(panicked) => failed = NotEntered::Internal(panicked.to_string()),
            }
            has_failed = true;
        }
        Err(failed)
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, NotEntered> {
        let found = match (self.relay.target.socket_addr(), &self.relay.target.host) {
            (Some(address), _) => vec![address],
            (None, Host::Name(name)) => {
                let lookup = self.entrance.names.look_up(name, self.relay.target.port);
                let found = timeout(STEP, lookup).await;
                found.map_err(|_| NotEntered::NoNameServer)??
            }
            (None, _) => Vec::new(),
        };
        let bound = self.entrance.bound;
        let mut able = found;
        able.retain(|address| {
            is_dialable(*address) && bound.reaches(*address) && !bound.is_own(*address)
        });
        able.truncate(MAX_ADDRESSES);
        Ok(able)
    }

    /// Enters the room at the other end of a connection.
    pub(super) async fn enter(
        &self,
        connected: Result<Connection, NotEntered>,
    ) -> Result<LinkToRelay, NotEntered> {
        let connection = connected?;
        let entering = timeout(STEP, self.enter_over(&connection)).await;
        let entered = entering.unwrap_or(Err(NotEntered::NoWelcome));
        entered.map_err(|error| {
            // The relay's reason is more precise than a stream that ended.
            let closed = connection.close_reason();
            connection.close(VarInt::from_u32(0), b"");
            closed.map_or(error, |closed| DialError::from(closed).into())
        })
    }

    async fn enter_over(&self, connection: &Connection) -> Result<LinkToRelay, NotEntered> {
        let proof = match &self.relay.token {
            Some(token) => {
                let proof = TokenKey::new(token.bytes()).prove(connection);
                let failed = || NotEntered::Internal("TLS exports no keys".to_owned());
                Some(proof.ok_or_else(failed)?)
            }
            None => None,
        };
        let enter = ToRelay::Enter {
            locator: self.locator,
            hidden: self.entrance.hidden,
            proof,
        };
        let opened = connection.open_bi().await;
        let (mut send, mut recv) = opened.map_err(DialError::from)?;
        let written = send.write_all(&enter.encode()).await;
        written.map_err(|_| NotEntered::NoWelcome)?;
        let welcome = match read_frame(&mut recv).await {
            Some(FromRelay::Welcome {
                observed, present, ..
            }) => (observed, usize::try_from(present).unwrap_or(usize::MAX)),
            _ => return Err(NotEntered::NoWelcome),
        };
        let key = peer_fingerprint(connection).ok_or(NotEntered::NoWelcome)?;
        Ok(LinkToRelay::start(
            (self.number, key),
            connection.clone(),
            (send, recv),
            welcome,
            &self.entrance.gate.tunnels,
        ))
    }
}

/// Transport settings of the link to a relay.
fn relay_transport_config() -> TransportConfig {
    let mut transport = transport_config();
    transport
        .initial_mtu(INITIAL_MTU)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .max_concurrent_bidi_streams(VarInt::from_u32(0));
    transport
}
