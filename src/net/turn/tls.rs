//! Whose certificates a TURN server over TLS may show.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};

use super::Fault;
use crate::core::id::Fingerprint;

/// The certificates that count.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust {
    /// Certificates of the server's name that the system trusts.
    System,
    /// Any certificate with this key.
    Key(Fingerprint),
}

impl Trust {
    /// The settings of TLS for a server, and its name in the handshake.
    pub(super) async fn settings_for(
        self,
        name: &str,
        ip: IpAddr,
    ) -> Result<(ServerName<'static>, Arc<ClientConfig>), Fault> {
        let name = match ServerName::try_from(name.to_owned()) {
            Ok(name) => name,
            Err(_) => ServerName::IpAddress(ip.into()),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(Fault::internal)?;
        let config = match self {
            Self::Key(expected) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(OneKey { expected, provider }))
                .with_no_client_auth(),
            Self::System => {
                // It reads files.
                let roots = tokio::task::spawn_blocking(roots);
                let roots = roots.await.map_err(Fault::internal)?;
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        Ok((name, Arc::new(config)))
    }
}

/// The certificates of authorities that the system trusts.
fn roots() -> RootCertStore {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "certificates of the system cannot be read");
    }
    let (taken, _) = store.add_parsable_certificates(found.certs);
    if taken == 0 {
        tracing::warn!(
            "the system has no certificates of authorities; give key= for TURN servers over TLS"
        );
    }
    store
}

/// Accepts a certificate of one key from a process that proves to hold it, whatever else is in the certificate.
#[derive(Debug)]
struct OneKey {
    expected: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OneKey {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let key = Sha256::digest(parsed.subject_public_key_info().as_ref());
        match Fingerprint(key.into()) == self.expected {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
