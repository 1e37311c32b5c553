//! Who a process is on the wire: an Ed25519 key, shown to the other end as a raw public key (RFC 7250).
//!
//! Both ends of every link prove that they hold their key. Nothing here says that a key is welcome: that is
//! for [`super::admission`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectError, Connection, ConnectionError, ServerConfig};
use quinn::{IdleTimeout, NoneTokenStore, TransportConfig, TransportErrorCode, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, CertificateError, DigitallySignedStruct, DistinguishedName};
use rustls::{PeerMisbehaved, SignatureScheme};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::core::id::Fingerprint;

/// The protocol and its version. An incompatible change takes a new number.
pub(crate) const ALPN: &[u8] = b"mmn/1";
/// What every dial passes to quinn as the server's name. It is not sent: names mean nothing to raw keys.
pub(crate) const SERVER_NAME: &str = "mmn";

/// Silence after which quinn gives a connection up. Only a backstop: liveness is the core's.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Streams that the other end may have open towards us: the control stream.
pub(crate) const MAX_INCOMING_BIDI_STREAMS: u32 = 1;
/// Lanes that a member may have open towards us.
pub(crate) const MAX_INCOMING_UNI_STREAMS: u32 = 4;
/// Bytes that one stream may have unread here.
pub(crate) const STREAM_RECEIVE_WINDOW_BYTES: u32 = 2 << 20;
/// Bytes that all streams of a member's connection may have unread here.
pub(crate) const RECEIVE_WINDOW_BYTES: u32 = 16 << 20;
/// Bytes that all streams of a stranger's connection may have unread here.
pub(crate) const STRANGER_RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of one connection that are sent and not yet acknowledged, or wait in quinn to be sent.
pub(crate) const SEND_WINDOW_BYTES: u64 = 8 << 20;
/// Bytes of unread datagrams that one connection keeps; the oldest goes first.
pub(crate) const DATAGRAM_RECEIVE_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of datagrams that wait to be sent on one connection; the oldest goes first.
pub(crate) const DATAGRAM_SEND_BUFFER_BYTES: usize = 32 << 10;
/// Dials from outside that wait to be accepted; those beyond are refused.
pub(crate) const MAX_WAITING_INCOMING: usize = 1024;
/// Bytes that one waiting dial may have buffered here beside its first packet.
pub(crate) const WAITING_BUFFER_BYTES: u64 = 16 << 10;
/// Bytes that all waiting dials together may have buffered here beside their first packets.
pub(crate) const WAITING_BUFFER_TOTAL_BYTES: u64 = 2 << 20;

/// Application error codes from here on carry an ABI code: `ADMISSION_CODE_BASE + n` means `-n`.
pub(crate) const ADMISSION_CODE_BASE: u32 = 0x100;
/// The largest `n` that a close may carry; a remote that sends more is not believed.
const MAX_CLOSE_CODE: u32 = 99;

/// Why there is no identity, or no configuration from it.
#[derive(Debug, Error)]
pub(crate) enum IdentityError {
    /// The system gave no randomness.
    #[error("the system's random generator failed")]
    NoRandomness,
    /// The bytes are not an Ed25519 private key in PKCS#8.
    #[error("the identity key is not an Ed25519 key in PKCS#8 (DER): {0}")]
    BadKey(rustls::Error),
    /// TLS did not take the configuration.
    #[error("TLS configuration: {0}")]
    Tls(#[from] rustls::Error),
    /// The TLS provider lacks what QUIC starts with.
    #[error("TLS configuration: {0}")]
    NoInitialCipherSuite(#[from] NoInitialCipherSuite),
}

/// The key pair by which a process is known.
#[derive(Clone)]
pub(crate) struct Identity {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// A new key pair from the system's random generator.
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        let random = ring::rand::SystemRandom::new();
        let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random)
            .map_err(|_| IdentityError::NoRandomness)?;
        Self::from_pkcs8(pkcs8.as_ref())
    }

    /// The key pair in `pkcs8` (DER, version 1 or 2).
    pub(crate) fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, IdentityError> {
        let signer = rustls::crypto::ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))
            .map_err(IdentityError::BadKey)?;
        let Some(spki) = signer.public_key() else {
            let reason = rustls::Error::General("it has no public key".into());
            return Err(IdentityError::BadKey(reason));
        };
        let spki = spki.as_ref().to_vec();
        let fingerprint = fingerprint_of(&spki);
        // With raw public keys the "certificate" is the SubjectPublicKeyInfo itself (RFC 7250 section 3).
        let chain = vec![CertificateDer::from(spki)];
        Ok(Self {
            key: Arc::new(CertifiedKey::new(chain, signer)),
            fingerprint,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
        })
    }

    /// The SHA-256 of the public key.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

/// How `identity` accepts links.
pub(crate) fn server_config(
    identity: &Identity,
    transport: Arc<TransportConfig>,
) -> Result<ServerConfig, IdentityError> {
    server_config_with_alpn(identity, transport, ALPN)
}

/// How `identity` dials. With `expected`, only the holder of that key is met.
pub(crate) fn client_config(
    identity: &Identity,
    expected: Option<Fingerprint>,
    transport: Arc<TransportConfig>,
) -> Result<ClientConfig, IdentityError> {
    client_config_with_alpn(identity, expected, transport, ALPN)
}

/// As [`server_config`], for another protocol version.
pub(crate) fn server_config_with_alpn(
    identity: &Identity,
    transport: Arc<TransportConfig>,
    alpn: &[u8],
) -> Result<ServerConfig, IdentityError> {
    let verifier = RawKeyVerifier::new(identity, None);
    let resolver = AlwaysResolvesServerRawPublicKeys::new(identity.key.clone());
    let mut tls = rustls::ServerConfig::builder_with_provider(identity.provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![alpn.to_vec()];
    // A resumed session would skip the proof of the key.
    tls.send_tls13_tickets = 0;
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.max_early_data_size = 0;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config
        .transport_config(transport)
        .migration(true)
        .max_incoming(MAX_WAITING_INCOMING)
        .incoming_buffer_size(WAITING_BUFFER_BYTES)
        .incoming_buffer_size_total(WAITING_BUFFER_TOTAL_BYTES);
    Ok(config)
}

/// As [`client_config`], for another protocol version.
pub(crate) fn client_config_with_alpn(
    identity: &Identity,
    expected: Option<Fingerprint>,
    transport: Arc<TransportConfig>,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    let verifier = RawKeyVerifier::new(identity, expected);
    let resolver = AlwaysResolvesClientRawPublicKeys::new(identity.key.clone());
    let mut tls = rustls::ClientConfig::builder_with_provider(identity.provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.resumption = Resumption::disabled();
    tls.enable_early_data = false;
    tls.enable_sni = false;
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config
        .transport_config(transport)
        .token_store(Arc::new(NoneTokenStore));
    Ok(config)
}

/// How both roles use QUIC. A stranger gets the control stream and a small window; [`open_windows`] gives
/// the rest.
pub(crate) fn transport_config() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(None)
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_INCOMING_BIDI_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_RECEIVE_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(STRANGER_RECEIVE_WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER_BYTES))
        .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER_BYTES);
    transport
}

/// Lets the other end, which has shown that it knows the room, open its lanes and fill the full window.
pub(crate) fn open_windows(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(MAX_INCOMING_UNI_STREAMS));
    connection.set_receive_window(VarInt::from_u32(RECEIVE_WINDOW_BYTES));
}

/// The key that the other end of `connection` has proved to hold.
pub(crate) fn peer_fingerprint(connection: &Connection) -> Option<Fingerprint> {
    let identity = connection.peer_identity()?;
    let chain = identity
        .downcast_ref::<Vec<CertificateDer<'static>>>()?
        .as_slice();
    match chain {
        [spki] => Some(fingerprint_of(spki)),
        _ => None,
    }
}

/// The application error code that carries ABI code `code` to the other end; 0 for a close without reproach.
pub(crate) fn close_code(code: i32) -> VarInt {
    match code.unsigned_abs() {
        0 => VarInt::from_u32(0),
        n @ 1..=MAX_CLOSE_CODE if code < 0 => VarInt::from_u32(ADMISSION_CODE_BASE + n),
        _ => VarInt::from_u32(ADMISSION_CODE_BASE + abi::CONNECTION_FAILED.unsigned_abs()),
    }
}

/// The ABI code in an application error code, if it carries one.
pub(crate) fn code_of_close(code: VarInt) -> Option<i32> {
    let n = u32::try_from(code.into_inner()).ok()?;
    match n.checked_sub(ADMISSION_CODE_BASE)? {
        n @ 1..=MAX_CLOSE_CODE => i32::try_from(n).ok().map(|n| -n),
        _ => None,
    }
}

/// The ABI codes that end a dial or an admission (`docs/protocol.md`).
pub(crate) mod abi {
    pub(crate) const CONNECTION_FAILED: i32 = -4;
    pub(crate) const SERIALIZATION_ERROR: i32 = -9;
    pub(crate) const SESSION_MISMATCH: i32 = -10;
    pub(crate) const VERSION_MISMATCH: i32 = -12;
    pub(crate) const AUTHENTICATION_FAILED: i32 = -17;
    pub(crate) const TIMEOUT: i32 = -19;
}

/// Why a dial gave no usable connection, or a connection ended before the admission was over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum DialError {
    /// No common protocol version.
    #[error("the other end speaks another protocol version")]
    VersionMismatch,
    /// The other end takes no link from here now.
    #[error("the other end refused the link")]
    Refused,
    /// Somebody answered, but not the holder of the expected key.
    #[error("the other end does not hold the expected key")]
    WrongKey,
    /// No answer.
    #[error("no answer in time")]
    TimedOut,
    /// The other end closed the link with an ABI code.
    #[error("the other end closed the link with code {code}")]
    Closed {
        /// The ABI code, negative.
        code: i32,
    },
    /// Anything else.
    #[error("connection failed: {0}")]
    Failed(String),
}

impl DialError {
    /// The ABI code that the dialling host gets.
    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::VersionMismatch => abi::VERSION_MISMATCH,
            Self::TimedOut => abi::TIMEOUT,
            Self::Closed { code } => *code,
            Self::Refused | Self::WrongKey | Self::Failed(_) => abi::CONNECTION_FAILED,
        }
    }
}

impl From<&ConnectionError> for DialError {
    fn from(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::VersionMismatch => Self::VersionMismatch,
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::ConnectionClosed(close) => match close.error_code {
                code if code == alert(AlertDescription::NoApplicationProtocol) => {
                    Self::VersionMismatch
                }
                TransportErrorCode::CONNECTION_REFUSED => Self::Refused,
                _ => Self::Failed(error.to_string()),
            },
            ConnectionError::TransportError(local) => match local.code {
                code if code == alert(AlertDescription::NoApplicationProtocol) => {
                    Self::VersionMismatch
                }
                code if code == alert(WRONG_KEY_ALERT) => Self::WrongKey,
                _ => Self::Failed(error.to_string()),
            },
            ConnectionError::ApplicationClosed(close) => match code_of_close(close.error_code) {
                Some(code) => Self::Closed { code },
                None => Self::Failed(error.to_string()),
            },
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<ConnectionError> for DialError {
    fn from(error: ConnectionError) -> Self {
        Self::from(&error)
    }
}

impl From<ConnectError> for DialError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::UnsupportedVersion => Self::VersionMismatch,
            error => Self::Failed(error.to_string()),
        }
    }
}

fn alert(description: AlertDescription) -> TransportErrorCode {
    TransportErrorCode::crypto(u8::from(description))
}

/// The SubjectPublicKeyInfo of an Ed25519 key up to the key's 32 bytes (RFC 8410 section 4).
const ED25519_SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const ED25519_KEY_BYTES: usize = 32;
/// The alert that rustls sends for [`CertificateError::ApplicationVerificationFailure`].
const WRONG_KEY_ALERT: AlertDescription = AlertDescription::AccessDenied;

fn fingerprint_of(spki: &[u8]) -> Fingerprint {
    Fingerprint(Sha256::digest(spki).into())
}

/// Takes an Ed25519 raw public key, in the one encoding that it has, from whoever proves to hold it.
#[derive(Debug)]
struct RawKeyVerifier {
    expected: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl RawKeyVerifier {
    fn new(identity: &Identity, expected: Option<Fingerprint>) -> Self {
        Self {
            expected,
            provider: identity.provider.clone(),
        }
    }

    fn check_key(&self, spki: &[u8], others: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let known_form = spki.starts_with(&ED25519_SPKI_PREFIX)
            && spki.len() == ED25519_SPKI_PREFIX.len() + ED25519_KEY_BYTES;
        if !known_form || !others.is_empty() {
            return Err(CertificateError::BadEncoding.into());
        }
        match self.expected {
            Some(expected) if expected != fingerprint_of(spki) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if signature.scheme != SignatureScheme::ED25519 {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(spki.as_ref()),
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }
}

/// TLS 1.2 is never offered, so that nothing of it can be valid.
fn no_tls12() -> rustls::Error {
    rustls::PeerIncompatible::Tls13RequiredForQuic.into()
}

impl ServerCertVerifier for RawKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check_key(end_entity, intermediates)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeyVerifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check_key(end_entity, intermediates)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Endpoints on loopback for the tests of this and the neighbouring modules.
#[cfg(test)]
pub(crate) mod testing {
    use std::net::{Ipv4Addr, SocketAddr};

    use quinn::Endpoint;

    use super::*;

    /// How long a test waits for what must happen; only a broken one gets there.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

    /// A process on 127.0.0.1 that accepts and dials.
    pub(crate) struct Process {
        pub(crate) identity: Identity,
        pub(crate) endpoint: Endpoint,
    }

    impl Process {
        pub(crate) fn start() -> Self {
            Self::start_with_alpn(ALPN)
        }

        pub(crate) fn start_with_alpn(alpn: &[u8]) -> Self {
            let identity = Identity::generate().expect("a key");
            let transport = Arc::new(transport_config());
            let server =
                server_config_with_alpn(&identity, transport, alpn).expect("a configuration");
            let endpoint = Endpoint::server(server, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
                .expect("a loopback socket");
            Self { identity, endpoint }
        }

        pub(crate) fn address(&self) -> SocketAddr {
            self.endpoint.local_addr().expect("bound")
        }

        pub(crate) fn client(&self, expected: Option<Fingerprint>, alpn: &[u8]) -> ClientConfig {
            let transport = Arc::new(transport_config());
            client_config_with_alpn(&self.identity, expected, transport, alpn)
                .expect("a configuration")
        }

        pub(crate) async fn dial_with(
            &self,
            config: ClientConfig,
            to: SocketAddr,
        ) -> Result<Connection, ConnectionError> {
            let connecting = self.endpoint.connect_with(config, to, SERVER_NAME);
            in_time(connecting.expect("an address")).await
        }

        pub(crate) async fn dial(&self, to: &Self) -> Connection {
            let expected = Some(to.identity.fingerprint());
            let dialled = self.dial_with(self.client(expected, ALPN), to.address());
            dialled.await.expect("connected")
        }

        pub(crate) async fn accept(&self) -> Result<Connection, ConnectionError> {
            let incoming = in_time(self.endpoint.accept()).await;
            in_time(incoming.expect("open").into_future()).await
        }
    }

    /// A dialler, an acceptor, and the connection between them as either sees it.
    pub(crate) async fn pair() -> (Process, Connection, Process, Connection) {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let (at_dialler, at_acceptor) = tokio::join!(dialler.dial(&acceptor), acceptor.accept());
        let at_acceptor = at_acceptor.expect("connected");
        (dialler, at_dialler, acceptor, at_acceptor)
    }

    pub(crate) async fn in_time<F: IntoFuture>(future: F) -> F::Output {
        let ended = tokio::time::timeout(PATIENCE, future).await;
        ended.expect("what the test waits for happens")
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use quinn::Endpoint;
    use rustls::client::ResolvesClientCert;

    use super::testing::{Process, in_time, pair};
    use super::*;

    #[tokio::test]
    async fn both_ends_see_the_key_of_the_other() {
        let (dialler, at_dialler, acceptor, at_acceptor) = pair().await;
        assert_eq!(
            peer_fingerprint(&at_dialler),
            Some(acceptor.identity.fingerprint())
        );
        assert_eq!(
            peer_fingerprint(&at_acceptor),
            Some(dialler.identity.fingerprint())
        );
    }

    #[test]
    fn an_identity_comes_back_from_its_pkcs8_and_from_nothing_else() {
        let random = ring::rand::SystemRandom::new();
        let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let first = Identity::from_pkcs8(pkcs8.as_ref()).expect("valid");
        let second = Identity::from_pkcs8(pkcs8.as_ref()).expect("valid");
        assert_eq!(first.fingerprint(), second.fingerprint());
        assert!(first.key.cert[0].starts_with(&ED25519_SPKI_PREFIX));
        let other = Identity::generate().expect("a key");
        assert_ne!(first.fingerprint(), other.fingerprint());

        let curve = &ring::signature::ECDSA_P256_SHA256_ASN1_SIGNING;
        let ecdsa = ring::signature::EcdsaKeyPair::generate_pkcs8(curve, &random).expect("a key");
        for bad in [ecdsa.as_ref(), &pkcs8.as_ref()[1..], b"", &[0; 4096]] {
            assert!(matches!(
                Identity::from_pkcs8(bad),
                Err(IdentityError::BadKey(_))
            ));
        }
    }

    #[test]
    fn the_key_itself_is_not_in_the_debug_text() {
        let identity = Identity::generate().expect("a key");
        let text = format!("{identity:?}");
        assert_eq!(text, format!("Identity({:?})", identity.fingerprint()));
    }

    #[tokio::test]
    async fn a_dialler_of_another_version_gets_version_mismatch() {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let config = dialler.client(None, b"mmn/2");
        let (dialled, accepted) = tokio::join!(
            dialler.dial_with(config, acceptor.address()),
            acceptor.accept()
        );
        let error = dialled.expect_err("another version");
        assert_eq!(DialError::from(&error), DialError::VersionMismatch);
        assert_eq!(DialError::from(&error).code(), -12);
        let error = accepted.expect_err("another version");
        assert_eq!(DialError::from(&error), DialError::VersionMismatch);
    }

    #[tokio::test]
    async fn an_acceptor_without_alpn_is_a_version_mismatch_that_the_dialler_finds_itself() {
        let identity = Identity::generate().expect("a key");
        let transport = Arc::new(transport_config());
        // quinn takes an empty list as "any protocol" only where the client sends none.
        let mut tls = rustls::ServerConfig::builder_with_provider(identity.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_client_cert_verifier(Arc::new(RawKeyVerifier::new(&identity, None)))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                identity.key.clone(),
            )));
        tls.alpn_protocols = Vec::new();
        let crypto = QuicServerConfig::try_from(tls).expect("a suite");
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        server.transport_config(transport);
        let endpoint =
            Endpoint::server(server, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("bound");
        let acceptor = Process { identity, endpoint };

        let dialler = Process::start();
        let config = dialler.client(None, ALPN);
        let (dialled, _) = tokio::join!(
            dialler.dial_with(config, acceptor.address()),
            acceptor.accept()
        );
        let error = dialled.expect_err("no protocol");
        assert_eq!(DialError::from(&error), DialError::VersionMismatch);
    }

    #[test]
    fn the_alert_counts_as_version_mismatch_when_it_is_raised_here() {
        let local = quinn_transport_error(alert(AlertDescription::NoApplicationProtocol));
        assert_eq!(DialError::from(&local), DialError::VersionMismatch);
        let local = quinn_transport_error(alert(AlertDescription::DecodeError));
        assert_eq!(DialError::from(&local).code(), -4);
    }

    fn quinn_transport_error(code: TransportErrorCode) -> ConnectionError {
        // `TransportError` is not exported by quinn; its `From` is the way to make one.
        ConnectionError::TransportError(code.into())
    }

    #[tokio::test]
    async fn a_dial_that_expects_another_key_fails_before_anything_is_said() {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let other = Identity::generate().expect("a key").fingerprint();
        let config = dialler.client(Some(other), ALPN);
        let (dialled, accepted) = tokio::join!(
            dialler.dial_with(config, acceptor.address()),
            acceptor.accept()
        );
        let error = DialError::from(dialled.expect_err("another key"));
        assert_eq!(error, DialError::WrongKey);
        assert_eq!(error.code(), -4);
        assert!(accepted.is_err());
    }

    #[tokio::test]
    async fn a_refused_dial_is_refused() {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let config = dialler.client(None, ALPN);
        let refuse = async {
            let incoming = in_time(acceptor.endpoint.accept()).await.expect("open");
            incoming.refuse();
        };
        let (dialled, ()) = tokio::join!(dialler.dial_with(config, acceptor.address()), refuse);
        let error = DialError::from(dialled.expect_err("refused"));
        assert_eq!(error, DialError::Refused);
        assert_eq!(error.code(), -4);
    }

    #[test]
    fn silence_is_a_timeout() {
        let error = DialError::from(ConnectionError::TimedOut);
        assert_eq!(error.code(), -19);
    }

    #[tokio::test]
    async fn a_client_that_offers_no_raw_key_is_refused_in_the_handshake() {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let config = keyless(&dialler.identity, None);
        let (dialled, accepted) = tokio::join!(
            dialler.dial_with(config, acceptor.address()),
            acceptor.accept()
        );
        assert_eq!(DialError::from(dialled.expect_err("no key")).code(), -4);
        assert!(accepted.is_err());
    }

    /// The dialler's handshake is over before the acceptor has missed the key: it learns it from the close.
    #[tokio::test]
    async fn a_client_that_promises_a_key_and_shows_none_is_refused() {
        #[derive(Debug)]
        struct Promises;
        impl ResolvesClientCert for Promises {
            fn resolve(
                &self,
                _hints: &[&[u8]],
                _schemes: &[SignatureScheme],
            ) -> Option<Arc<CertifiedKey>> {
                None
            }
            fn only_raw_public_keys(&self) -> bool {
                true
            }
            fn has_certs(&self) -> bool {
                true
            }
        }
        let (dialler, acceptor) = (Process::start(), Process::start());
        let config = keyless(&dialler.identity, Some(Arc::new(Promises)));
        let (dialled, accepted) = tokio::join!(
            dialler.dial_with(config, acceptor.address()),
            acceptor.accept()
        );
        assert!(accepted.is_err());
        let error = match dialled {
            Ok(connection) => in_time(connection.closed()).await,
            Err(error) => error,
        };
        assert_eq!(DialError::from(error).code(), -4);
    }

    /// A key of another algorithm, or an Ed25519 key in another wrapping, would give one holder many names.
    #[test]
    fn only_the_one_encoding_of_an_ed25519_key_is_taken() {
        let identity = Identity::generate().expect("a key");
        let verifier = RawKeyVerifier::new(&identity, None);
        let good = identity.key.cert[0].to_vec();
        assert!(verifier.check_key(&good, &[]).is_ok());
        let mut longer = good.clone();
        longer.push(0);
        let mut other_algorithm = good.clone();
        other_algorithm[8] = 0x6e;
        for bad in [&longer[..], &other_algorithm, &good[..43], b""] {
            assert!(verifier.check_key(bad, &[]).is_err());
        }
        let second = CertificateDer::from(good.clone());
        assert!(verifier.check_key(&good, &[second]).is_err());
    }

    #[tokio::test]
    async fn no_session_is_resumed_and_no_early_data_sent() {
        let (dialler, acceptor) = (Process::start(), Process::start());
        let config = dialler.client(None, ALPN);
        for _ in 0..2 {
            let connecting = dialler
                .endpoint
                .connect_with(config.clone(), acceptor.address(), SERVER_NAME)
                .expect("an address");
            let Err(connecting) = connecting.into_0rtt() else {
                panic!("early data");
            };
            let (dialled, accepted) = tokio::join!(in_time(connecting), acceptor.accept());
            let (dialled, accepted) = (dialled.expect("connected"), accepted.expect("connected"));
            assert!(peer_fingerprint(&accepted).is_some());
            // What the acceptor sends after the handshake, tickets among it, comes before this close.
            accepted.close(VarInt::from_u32(0), b"");
            in_time(dialled.closed()).await;
        }
    }

    #[tokio::test]
    async fn a_stranger_can_open_no_lane_and_fill_only_a_small_window() {
        let (_dialler, at_dialler, _acceptor, at_acceptor) = pair().await;
        let (mut send, _recv) = at_dialler.open_bi().await.expect("the control stream");
        let flood = async {
            let bytes = vec![7; RECEIVE_WINDOW_BYTES as usize];
            send.write_all(&bytes).await
        };
        let listen = async {
            let (_send, mut recv) = at_acceptor.accept_bi().await.expect("the control stream");
            let mut first = [0; 1];
            recv.read_exact(&mut first).await.expect("a byte");
            // Every packet that the other end may send is acknowledged when a new lane still waits after
            // many round trips.
            for _ in 0..20 {
                tokio::time::sleep(at_dialler.rtt()).await;
            }
            at_acceptor.stats().udp_rx.bytes
        };
        let received = tokio::select! {
            sent = flood => panic!("the window held nothing back: {sent:?}"),
            lane = at_dialler.open_uni() => panic!("a lane: {lane:?}"),
            received = in_time(listen) => received,
        };
        assert!(
            received < 2 * u64::from(STRANGER_RECEIVE_WINDOW_BYTES),
            "{received}"
        );
    }

    #[tokio::test]
    async fn open_windows_let_a_member_open_its_lanes_and_no_more() {
        let (_dialler, at_dialler, _acceptor, at_acceptor) = pair().await;
        open_windows(&at_dialler);
        open_windows(&at_acceptor);
        for (from, to) in [(&at_dialler, &at_acceptor), (&at_acceptor, &at_dialler)] {
            let mut lanes = Vec::new();
            for _ in 0..MAX_INCOMING_UNI_STREAMS {
                let mut lane = in_time(from.open_uni()).await.expect("a lane");
                lane.write_all(&vec![7; 256 << 10]).await.expect("written");
                lanes.push(lane);
            }
            let mut accepted = Vec::new();
            for _ in 0..MAX_INCOMING_UNI_STREAMS {
                let mut lane = in_time(to.accept_uni()).await.expect("a lane");
                let mut bytes = vec![0; 256 << 10];
                in_time(lane.read_exact(&mut bytes)).await.expect("read");
                accepted.push(lane);
            }
            tokio::select! {
                biased;
                fifth = from.open_uni() => panic!("a fifth lane: {fifth:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }

    #[test]
    fn codes_survive_the_close_and_nonsense_does_not_become_a_code() {
        for code in -99..0 {
            assert_eq!(code_of_close(close_code(code)), Some(code));
        }
        assert_eq!(close_code(-10), VarInt::from_u32(0x10a));
        assert_eq!(code_of_close(close_code(0)), None);
        for odd in [1, 100, -100, i32::MIN, i32::MAX] {
            assert_eq!(code_of_close(close_code(odd)), Some(-4));
        }
        for odd in [0u64, 0xff, 0x100, 0x100 + 100, 1 << 32, (1 << 62) - 1] {
            let code = VarInt::from_u64(odd).expect("in range");
            assert_eq!(code_of_close(code), None);
        }
    }

    fn keyless(identity: &Identity, resolver: Option<Arc<dyn ResolvesClientCert>>) -> ClientConfig {
        let builder = rustls::ClientConfig::builder_with_provider(identity.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(RawKeyVerifier::new(identity, None)));
        let mut tls = match resolver {
            Some(resolver) => builder.with_client_cert_resolver(resolver),
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![ALPN.to_vec()];
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("a suite")))
    }
}
