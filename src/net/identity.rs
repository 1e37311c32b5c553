//! Identity of a process on the wire: an Ed25519 key, presented as a raw public key (RFC 7250).
//!
//! Both ends of every link prove that they hold their key. Whether a key is welcome is for [`super::admission`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ConnectError, Connection, ConnectionError, ServerConfig};
use quinn::{
    IdleTimeout, MtuDiscoveryConfig, NoneTokenStore, TransportConfig, TransportErrorCode, VarInt,
};
use ring::rand::SecureRandom;
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
use zeroize::Zeroizing;

use super::congestion::DelayBoundConfig;
use crate::core::id::Fingerprint;

/// The protocol and its version. An incompatible change takes a new number.
pub(crate) const ALPN: &[u8] = b"mmn/7";
/// The server name that every dial passes to quinn. It is not sent: names mean nothing to raw keys.
pub(crate) const SERVER_NAME: &str = "mmn";

/// The search for a path's MTU ends when the next step would be shorter: it probes 1326 and 1452 bytes. Finer
/// steps would double the packets of that search on each new link, and would save at most a tenth of the
/// packets of bulk data on the few paths between the two.
const MTU_STEP_BYTES: u16 = 126;
/// Idle timeout of connections that this node dials. Only a backstop: the core decides about liveness.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum idle timeout of connections that this node accepts; the shorter timeout of both ends applies. A
/// stranger can leave a connection behind that only this timeout ends (`Lingering`).
const MIN_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum idle timeout of connections that this node accepts, whatever the heartbeats.
const MAX_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Bidirectional streams that the other end may open: the control stream.
pub(crate) const MAX_INCOMING_BIDI_STREAMS: u32 = 1;
/// Unidirectional streams that a member may open: 256 channels, the lane of unordered broadcasts through the
/// leader, 128 unordered messages, and the finished ones that QUIC still counts until it returns their credit
/// (an eighth of the limit). quinn's table of streams doubles from 448 on.
pub(crate) const MAX_INCOMING_UNI_STREAMS: u32 = 440;
/// Unidirectional streams that a member may open before it uses a second one; many never do. quinn keeps a
/// table for all streams that may come: 1 KiB for these, 12 KiB for [`MAX_INCOMING_UNI_STREAMS`].
pub(crate) const FIRST_INCOMING_UNI_STREAMS: u32 = 28;
/// Unread bytes of one stream, at most.
pub(crate) const STREAM_RECEIVE_WINDOW_BYTES: u32 = 2 << 20;
/// Unread bytes of all streams of a member's connection, at most.
pub(crate) const RECEIVE_WINDOW_BYTES: u32 = 16 << 20;
/// Unread bytes of all streams of a stranger's connection, at most.
pub(crate) const STRANGER_RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of one connection that are unacknowledged or wait in quinn to be sent, at most.
pub(crate) const SEND_WINDOW_BYTES: u64 = 8 << 20;
/// Unread bytes of datagrams that one connection keeps; the oldest are dropped first.
pub(crate) const DATAGRAM_RECEIVE_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of datagrams that wait to be sent on one connection; the oldest are dropped first.
pub(crate) const DATAGRAM_SEND_BUFFER_BYTES: usize = 32 << 10;
/// Incoming dials that wait to be accepted; further ones are refused.
pub(crate) const MAX_WAITING_INCOMING: usize = 1024;
/// Bytes buffered for one waiting dial beside its first packet, at most.
pub(crate) const WAITING_BUFFER_BYTES: u64 = 16 << 10;
/// Bytes buffered for all waiting dials together beside their first packets, at most.
pub(crate) const WAITING_BUFFER_TOTAL_BYTES: u64 = 2 << 20;

/// Application error codes from here on carry an ABI code: `ADMISSION_CODE_BASE + n` means `-n`.
pub(crate) const ADMISSION_CODE_BASE: u32 = 0x100;
/// The largest `n` of a close code. A larger one from a peer carries no ABI code.
const MAX_CLOSE_CODE: u32 = 99;
/// Round-trip time that quinn assumes for a new link. It is below quinn's default (333 ms), so that the first packets
/// of a dial are resent sooner, and a member whose network returns during a dial need not wait for the next dial.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Reason why there is no identity, or no configuration from it.
#[derive(Debug, Error)]
pub(crate) enum IdentityError {
    /// The system gave no randomness.
    #[error("the system's random generator failed")]
    NoRandomness,
    /// The bytes are not an Ed25519 private key in PKCS#8.
    #[error("the identity key is not an Ed25519 key in PKCS#8 (DER): {0}")]
    BadKey(rustls::Error),
    /// TLS rejected the configuration.
    #[error("TLS configuration: {0}")]
    Tls(#[from] rustls::Error),
    /// The TLS provider lacks the cipher suite that QUIC starts with.
    #[error("TLS configuration: {0}")]
    NoInitialCipherSuite(#[from] NoInitialCipherSuite),
}

/// The private half of a key pair (RFC 8032 section 5.1.5), wiped when it is dropped. Boxed, so that a
/// move leaves no copy behind.
pub(crate) type PrivateKey = Box<Zeroizing<[u8; ED25519_KEY_BYTES]>>;

/// Makes a private key with the system's random generator.
pub(crate) fn generate_private() -> Result<PrivateKey, IdentityError> {
    // Any 32 random bytes are a key (RFC 8032 section 5.1.5). ring's own generator is not used: it
    // does not wipe its document.
    let mut private = PrivateKey::default();
    ring::rand::SystemRandom::new()
        .fill(private.as_mut_slice())
        .map_err(|_| IdentityError::NoRandomness)?;
    Ok(private)
}

/// A private key in PKCS#8 (DER), version 1, wiped when it is dropped.
pub(crate) type Pkcs8Key = Box<Zeroizing<[u8; PKCS8_KEY_BYTES]>>;

/// Encodes `private` as [`Identity::from_pkcs8`] takes it.
pub(crate) fn pkcs8_of(private: &PrivateKey) -> Pkcs8Key {
    let mut pkcs8 = Box::new(Zeroizing::new([0; PKCS8_KEY_BYTES]));
    let (prefix, key) = pkcs8.split_at_mut(ED25519_PKCS8_PREFIX.len());
    prefix.copy_from_slice(&ED25519_PKCS8_PREFIX);
    key.copy_from_slice(private.as_slice());
    pkcs8
}

/// The key pair that identifies a process.
#[derive(Clone)]
pub(crate) struct Identity {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// Makes a new key pair with the system's random generator.
    pub(crate) fn generate() -> Result<Self, IdentityError> {
        Self::from_private(&generate_private()?)
    }

    /// The key pair of `private`.
    pub(crate) fn from_private(private: &PrivateKey) -> Result<Self, IdentityError> {
        Self::from_pkcs8(pkcs8_of(private).as_slice())
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

/// QUIC settings with which `identity` accepts links.
pub(crate) fn server_config(
    identity: &Identity,
    transport: Arc<TransportConfig>,
) -> Result<ServerConfig, IdentityError> {
    server_config_with_alpn(identity, transport, ALPN)
}

/// QUIC settings with which `identity` dials. With `expected`, only the holder of that key is accepted.
pub(crate) fn client_config(
    identity: &Identity,
    expected: Option<Fingerprint>,
    transport: Arc<TransportConfig>,
) -> Result<ClientConfig, IdentityError> {
    client_config_with_alpn(identity, expected, transport, ALPN)
}

/// [`server_config`] with another protocol version.
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

/// [`client_config`] with another protocol version.
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

/// Transport settings of both roles. A stranger gets the control stream and a small window;
/// [`open_windows`] grants the rest.
pub(crate) fn transport_config() -> TransportConfig {
    let mut mtu_discovery = MtuDiscoveryConfig::default();
    mtu_discovery.minimum_change(MTU_STEP_BYTES);
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(None)
        .initial_rtt(INITIAL_RTT)
        .mtu_discovery_config(Some(mtu_discovery))
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_INCOMING_BIDI_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_RECEIVE_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(STRANGER_RECEIVE_WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER_BYTES))
        .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER_BYTES)
        // Cubic makes a game wait on a lossy line, and fills the queue of a good one (docs/lab.md).
        .congestion_controller_factory(Arc::new(DelayBoundConfig));
    transport
}

/// Idle timeout of connections that this node accepts. The core's heartbeats are faster.
pub(crate) fn accepted_idle_timeout(heartbeat_timeout: Duration) -> Duration {
    heartbeat_timeout
        .saturating_mul(2)
        .clamp(MIN_ACCEPTED_IDLE_TIMEOUT, MAX_ACCEPTED_IDLE_TIMEOUT)
}

/// [`transport_config`] of the accepting end. QUIC keeps the connection alive while the room decides about a newcomer.
pub(crate) fn accepting_transport_config(idle_timeout: Duration) -> TransportConfig {
    let mut transport = transport_config();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok())
        .keep_alive_interval(Some(idle_timeout / 3));
    transport
}

/// Grants a peer that has proved that it knows the room its first lanes and the full window.
pub(crate) fn open_windows(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(FIRST_INCOMING_UNI_STREAMS));
    connection.set_receive_window(VarInt::from_u32(RECEIVE_WINDOW_BYTES));
}

/// Lets a member that uses more than its classic lane open all lanes of the protocol.
pub(crate) fn open_all_lanes(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(MAX_INCOMING_UNI_STREAMS));
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

/// The application error code that carries ABI code `code` to the other end; 0 for a close without an error.
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

/// The ABI codes that end a dial or an admission (`docs/entering.md`).
pub(crate) mod abi {
    pub(crate) const CONNECTION_FAILED: i32 = -4;
    pub(crate) const SERIALIZATION_ERROR: i32 = -9;
    pub(crate) const SESSION_MISMATCH: i32 = -10;
    pub(crate) const VERSION_MISMATCH: i32 = -12;
    pub(crate) const AUTHENTICATION_FAILED: i32 = -17;
    pub(crate) const TIMEOUT: i32 = -19;
    pub(crate) const RATE_LIMITED: i32 = -22;
}

/// Reason why a dial gave no usable connection, or why a connection ended before the admission was over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum DialError {
    /// No common protocol version.
    #[error("the other end speaks another protocol version")]
    VersionMismatch,
    /// The other end accepts no link from here now.
    #[error("the other end refused the link")]
    Refused,
    /// A process answered, but not the holder of the expected key.
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
        /// Reason bytes beside the code.
        reason: Bytes,
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
            Self::Closed { code, .. } => *code,
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
                Some(code) => Self::Closed {
                    code,
                    reason: close.reason.clone(),
                },
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
/// An Ed25519 private key in PKCS#8, version 1, up to the key's 32 bytes (RFC 8410 section 7).
const ED25519_PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// Bytes of a private key in PKCS#8, version 1.
pub(crate) const PKCS8_KEY_BYTES: usize = ED25519_PKCS8_PREFIX.len() + ED25519_KEY_BYTES;
/// The alert that rustls sends for [`CertificateError::ApplicationVerificationFailure`].
const WRONG_KEY_ALERT: AlertDescription = AlertDescription::AccessDenied;

fn fingerprint_of(spki: &[u8]) -> Fingerprint {
    Fingerprint(Sha256::digest(spki).into())
}

/// Accepts an Ed25519 raw public key, in its only encoding, from a process that proves to hold it.
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

/// TLS 1.2 is never offered, so nothing of it can be valid.
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

/// Loopback endpoints for the tests of this and the neighbouring modules.
#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;
