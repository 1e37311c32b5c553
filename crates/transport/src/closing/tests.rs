use super::*;
use crate::identity::ALPN;
use crate::testing::{Process, in_time};

#[test]
fn the_alert_counts_as_version_mismatch_when_it_is_raised_here() {
    let local = quinn_transport_error(alert(AlertDescription::NoApplicationProtocol));
    assert_eq!(DialError::from(&local), DialError::VersionMismatch);
    let local = quinn_transport_error(alert(AlertDescription::DecodeError));
    assert_eq!(DialError::from(&local).code(), -4);
}

fn quinn_transport_error(code: TransportErrorCode) -> ConnectionError {
    // quinn does not export `TransportError`; its `From` is the way to make one.
    ConnectionError::TransportError(code.into())
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
fn a_silent_peer_is_a_timeout() {
    let error = DialError::from(ConnectionError::TimedOut);
    assert_eq!(error.code(), -19);
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
