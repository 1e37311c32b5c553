//! The identity of a process on the wire: an Ed25519 key, shown to the other end as a raw public key (RFC 7250).
//!
//! Both ends of every link prove that they hold their key. Whether a key is welcome is for the room or the relay to decide.

use std::fmt;
use std::sync::Arc;

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, EndpointConfig, NoneTokenStore, ServerConfig, TransportConfig,
};
use ring::hmac;
use ring::rand::SecureRandom;
use ring::signature::{ED25519, UnparsedPublicKey};
use room_core::id::Fingerprint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName};
use rustls::{PeerMisbehaved, SignatureScheme};
use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::connection_ids::TaggedConnectionIds;
use crate::quic::{MAX_WAITING_INCOMING, WAITING_BUFFER_BYTES, WAITING_BUFFER_TOTAL_BYTES};

/// The protocol and its version. An incompatible change takes a new number.
pub const ALPN: &[u8] = b"mmn/7";
/// The server name that every dial passes to quinn. It is not sent: names mean nothing to raw keys.
pub const SERVER_NAME: &str = "mmn";

/// Reason why there is no identity, or no configuration from it.
#[derive(Debug, Error)]
pub enum IdentityError {
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
pub type PrivateKey = Box<Zeroizing<[u8; ED25519_KEY_BYTES]>>;

/// Makes a private key with the system's random generator.
pub fn generate_private() -> Result<PrivateKey, IdentityError> {
    // Any 32 random bytes are a key (RFC 8032 section 5.1.5). ring's own generator is not used: it
    // does not wipe its document.
    let mut private = PrivateKey::default();
    ring::rand::SystemRandom::new()
        .fill(private.as_mut_slice())
        .map_err(|_| IdentityError::NoRandomness)?;
    Ok(private)
}

/// A private key in PKCS#8 (DER), version 1, wiped when it is dropped.
pub type Pkcs8Key = Box<Zeroizing<[u8; PKCS8_KEY_BYTES]>>;

/// Encodes `private` as [`Identity::from_pkcs8`] takes it.
pub fn pkcs8_of(private: &PrivateKey) -> Pkcs8Key {
    let mut pkcs8 = Box::new(Zeroizing::new([0; PKCS8_KEY_BYTES]));
    let (prefix, key) = pkcs8.split_at_mut(ED25519_PKCS8_PREFIX.len());
    prefix.copy_from_slice(&ED25519_PKCS8_PREFIX);
    key.copy_from_slice(private.as_slice());
    pkcs8
}

/// The key pair that identifies a process.
#[derive(Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// Makes a new key pair with the system's random generator.
    pub fn generate() -> Result<Self, IdentityError> {
        Self::from_private(&generate_private()?)
    }

    /// The key pair of `private`.
    pub fn from_private(private: &PrivateKey) -> Result<Self, IdentityError> {
        Self::from_pkcs8(pkcs8_of(private).as_slice())
    }

    /// The key pair in `pkcs8` (DER, version 1 or 2).
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, IdentityError> {
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
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Signs `message`, which must begin with a text of its own use: the key also signs the handshakes of TLS, whose messages
    /// begin with 64 spaces.
    ///
    /// # Errors
    /// TLS's error.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, IdentityError> {
        let malformed = || rustls::Error::General("the key makes no Ed25519 signature".into());
        let signer = self.key.key.choose_scheme(&[SignatureScheme::ED25519]);
        let signature = signer.ok_or_else(malformed)?.sign(message)?;
        Ok(signature.try_into().map_err(|_| malformed())?)
    }

    /// The 32 bytes of the public key.
    pub fn public_key(&self) -> PublicKey {
        let spki = self.key.cert.first();
        let key = spki.and_then(|spki| spki.last_chunk().copied());
        key.expect("an Ed25519 key has its 32 bytes at the end")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

/// QUIC settings with which `identity` accepts links.
pub fn server_config(
    identity: &Identity,
    transport: Arc<TransportConfig>,
) -> Result<ServerConfig, IdentityError> {
    server_config_with_alpn(identity, transport, ALPN)
}

/// QUIC settings with which `identity` dials. With `expected`, only the holder of that key is accepted.
pub fn client_config(
    identity: &Identity,
    expected: Option<Fingerprint>,
    transport: Arc<TransportConfig>,
) -> Result<ClientConfig, IdentityError> {
    client_config_with_alpn(identity, expected, transport, ALPN)
}

/// [`server_config`] with another protocol version.
pub fn server_config_with_alpn(
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
pub fn client_config_with_alpn(
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

/// QUIC's settings for the endpoint of `private`, such that after a restart with the same key the process answers packets of
/// earlier connections with a stateless reset (RFC 9000, section 10.3): the other ends then give them up at once.
pub fn restartable_endpoint_config(private: &PrivateKey) -> EndpointConfig {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, private.as_slice());
    let reset = hmac::sign(&secret, b"mmn stateless reset");
    let ids = hmac::sign(&secret, b"mmn connection ids");
    let mut config =
        EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, reset.as_ref())));
    // quinn answers only to ids that this key has made.
    let ids = hmac::Key::new(hmac::HMAC_SHA256, ids.as_ref());
    config.cid_generator(move || Box::new(TaggedConnectionIds::new(ids.clone())));
    config
}

/// The key that the other end of `connection` has proved to hold.
pub fn peer_fingerprint(connection: &Connection) -> Option<Fingerprint> {
    let identity = connection.peer_identity()?;
    let chain = identity
        .downcast_ref::<Vec<CertificateDer<'static>>>()?
        .as_slice();
    match chain {
        [spki] => Some(fingerprint_of(spki)),
        _ => None,
    }
}

/// The 32 bytes of an Ed25519 public key.
pub type PublicKey = [u8; ED25519_KEY_BYTES];
/// An Ed25519 signature.
pub type Signature = [u8; 64];

/// Whether the holder of `key` has signed `message` ([`Identity::sign`]).
pub fn has_signed(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    UnparsedPublicKey::new(&ED25519, key)
        .verify(message, signature)
        .is_ok()
}

/// The fingerprint of a public key.
pub fn fingerprint_of_key(key: &PublicKey) -> Fingerprint {
    let mut spki = [0; ED25519_SPKI_PREFIX.len() + ED25519_KEY_BYTES];
    let (prefix, rest) = spki.split_at_mut(ED25519_SPKI_PREFIX.len());
    prefix.copy_from_slice(&ED25519_SPKI_PREFIX);
    rest.copy_from_slice(key);
    fingerprint_of(&spki)
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
pub const PKCS8_KEY_BYTES: usize = ED25519_PKCS8_PREFIX.len() + ED25519_KEY_BYTES;

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

#[cfg(test)]
mod tests;
