//! Members of rooms, as far as a relay sees them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mmn_relay::Relay;
use quinn::{Connection, ConnectionError, Endpoint, IdleTimeout, RecvStream, SendStream};
use room_core::id::Fingerprint;
use room_core::virtual_address::{VirtualId, virtual_id};
use room_transport::closing::code_of_close;
use room_transport::identity::{Identity, SERVER_NAME, client_config_with_alpn};
use room_transport::quic::transport_config;
use room_transport::rendezvous::{
    Frame, FromRelay, Locator, RELAY_ALPN, ToRelay, TokenProof, frame_length,
};
use room_transport::testing::in_time;
use room_transport::tunnel::packet::{Header, Part, Piece, Way, decode, encode};

/// A process that dials relays.
pub(crate) struct Process {
    pub(crate) identity: Identity,
    pub(crate) endpoint: Endpoint,
}

impl Process {
    pub(crate) fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST)
    }

    /// With an address of its own in 127.0.0.0/8.
    pub(crate) fn start_at(address: Ipv4Addr) -> Self {
        Self::start_on(SocketAddr::from((address, 0)))
    }

    pub(crate) fn start_on(address: SocketAddr) -> Self {
        let identity = Identity::generate().expect("a key");
        let endpoint = Endpoint::client(address).expect("a socket");
        Self { identity, endpoint }
    }

    pub(crate) fn key(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    pub(crate) fn id(&self) -> VirtualId {
        virtual_id(self.key())
    }

    /// A connection that has sent nothing.
    pub(crate) async fn dial(&self, relay: &Relay) -> Result<Connection, ConnectionError> {
        self.dial_with(relay.address(), Some(relay.fingerprint()), RELAY_ALPN)
            .await
    }

    pub(crate) async fn dial_with(
        &self,
        address: SocketAddr,
        expected: Option<Fingerprint>,
        alpn: &[u8],
    ) -> Result<Connection, ConnectionError> {
        let mut transport = transport_config();
        transport
            .initial_mtu(1252)
            .keep_alive_interval(Some(Duration::from_secs(10)))
            .max_idle_timeout(IdleTimeout::try_from(Duration::from_secs(30)).ok());
        let transport = Arc::new(transport);
        let config = client_config_with_alpn(&self.identity, expected, transport, alpn);
        let config = config.expect("a configuration");
        let dialled = self.endpoint.connect_with(config, address, SERVER_NAME);
        in_time(dialled.expect("an address")).await
    }

    /// Enters a room and takes the `Welcome`.
    pub(crate) async fn enter(&self, relay: &Relay, locator: u32) -> Member {
        let entered = self.try_enter(relay, locator, false, None).await;
        entered.expect("the relay admits it")
    }

    /// Enters a room; without a `Welcome`, the code of the close.
    pub(crate) async fn try_enter(
        &self,
        relay: &Relay,
        locator: u32,
        hidden: bool,
        token: Option<[u8; 16]>,
    ) -> Result<Member, i32> {
        let connection = self.dial(relay).await.map_err(|error| code_of(&error))?;
        let proof = token.map(|token| proof_of(&connection, token));
        self.enter_on(connection, locator, hidden, proof).await
    }

    pub(crate) async fn enter_on(
        &self,
        connection: Connection,
        locator: u32,
        hidden: bool,
        proof: Option<TokenProof>,
    ) -> Result<Member, i32> {
        let enter = ToRelay::Enter {
            locator: Locator(locator),
            hidden,
            proof,
        };
        let opened = in_time(connection.open_bi()).await;
        let (mut send, recv) = opened.map_err(|error| code_of(&error))?;
        // The reason for an end shows when the answer is read.
        let _ = send.write_all(&enter.encode()).await;
        let mut member = Member {
            connection,
            send,
            recv,
            welcome: None,
        };
        match member.try_frame().await {
            Ok(welcome @ FromRelay::Welcome { .. }) => member.welcome = Some(welcome),
            Ok(frame) => panic!("{frame:?} before Welcome"),
            Err(error) => return Err(code_of(&error)),
        }
        Ok(member)
    }
}

/// The code with which the relay closed a link; 0 for a close without an error.
pub(crate) fn code_of(error: &ConnectionError) -> i32 {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => 0,
        ConnectionError::ApplicationClosed(close) => {
            code_of_close(close.error_code).expect("a code")
        }
        error => panic!("no close of a relay: {error}"),
    }
}

pub(crate) fn proof_of(connection: &Connection, token: [u8; 16]) -> TokenProof {
    let mut material = [0; 32];
    let exported = connection.export_keying_material(&mut material, b"mmn relay token", b"");
    exported.expect("TLS has keys");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &token);
    let tag = ring::hmac::sign(&key, &material);
    tag.as_ref().try_into().expect("32 bytes")
}

/// A link that has entered a room.
pub(crate) struct Member {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) welcome: Option<FromRelay>,
}

impl Member {
    pub(crate) fn present(&self) -> u32 {
        match self.welcome {
            Some(FromRelay::Welcome { present, .. }) => present,
            _ => panic!("no Welcome"),
        }
    }

    pub(crate) fn observed(&self) -> SocketAddr {
        match self.welcome {
            Some(FromRelay::Welcome { observed, .. }) => observed,
            _ => panic!("no Welcome"),
        }
    }

    pub(crate) async fn try_frame(&mut self) -> Result<FromRelay, ConnectionError> {
        let read = async {
            let mut length = [0; 2];
            self.recv.read_exact(&mut length).await.ok()?;
            let mut frame = vec![0; frame_length(length).expect("a length")];
            self.recv.read_exact(&mut frame).await.ok()?;
            Some(FromRelay::decode(&frame).expect("a frame").expect("known"))
        };
        match in_time(read).await {
            Some(frame) => Ok(frame),
            None => Err(in_time(self.connection.closed()).await),
        }
    }

    pub(crate) async fn frame(&mut self) -> FromRelay {
        self.try_frame().await.expect("a frame")
    }

    /// The keys of the next frame, which must be `Present`.
    pub(crate) async fn names(&mut self) -> Vec<Fingerprint> {
        match self.frame().await {
            FromRelay::Present { keys } => keys,
            frame => panic!("{frame:?}"),
        }
    }

    pub(crate) async fn write(&mut self, frame: ToRelay) {
        let written = self.send.write_all(&frame.encode()).await;
        written.expect("the link is up");
    }

    pub(crate) fn packet(&self, target: VirtualId, number: u16, bytes: &[u8]) {
        let header = Header {
            way: Way::To(target),
            part: Part::Whole,
            number,
        };
        self.datagram(encode(header, bytes));
    }

    pub(crate) fn datagram(&self, datagram: Bytes) {
        self.connection
            .send_datagram(datagram)
            .expect("the link is up");
    }

    /// The next packet, with its sender.
    pub(crate) async fn received(&self) -> (VirtualId, Piece) {
        let datagram = in_time(self.connection.read_datagram()).await;
        match decode(datagram.expect("the link is up")).expect("a packet") {
            (Way::From(sender), piece) => (sender, piece),
            (way, _) => panic!("{way:?} from a relay"),
        }
    }

    /// The code with which the link ends.
    pub(crate) async fn end(&self) -> i32 {
        code_of(&in_time(self.connection.closed()).await)
    }
}
