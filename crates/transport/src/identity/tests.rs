use std::net::{Ipv4Addr, SocketAddr};

use quinn::{Endpoint, VarInt};
use rustls::client::ResolvesClientCert;

use super::*;
use crate::closing::DialError;
use crate::quic::transport_config;
use crate::testing::{Process, in_time, pair};

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
    let config = dialler.client(None, b"mmn/999");
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
    // quinn takes an empty list as "any protocol" only if the client sends none.
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

#[tokio::test]
async fn a_dial_that_expects_another_key_fails_before_any_message() {
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

/// The dialler's handshake ends before the acceptor notices the missing key: the dialler learns of it from the close.
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

/// A key of another algorithm, or an Ed25519 key in another encoding, would give one holder several identities.
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
        // Anything that the acceptor sends after the handshake, such as tickets, comes before this close.
        accepted.close(VarInt::from_u32(0), b"");
        in_time(dialled.closed()).await;
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

#[test]
fn a_signature_is_of_one_key_and_one_message() {
    let identity = Identity::generate().expect("a key");
    let signature = identity.sign(b"a text").expect("signed");
    let key = identity.public_key();
    assert!(has_signed(&key, b"a text", &signature));
    assert!(!has_signed(&key, b"another", &signature));
    let other = Identity::generate().expect("a key").public_key();
    assert!(!has_signed(&other, b"a text", &signature));
    assert_eq!(fingerprint_of_key(&key), identity.fingerprint());
}
