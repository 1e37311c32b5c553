//! Tests without a server. `tests/etcd/` has the others.

use std::path::PathBuf;
use std::time::Duration;

use etcd_client::Error;
use tokio::sync::mpsc;
use tonic::{Code, Status};

use super::fault::Fault;
use super::{Store, StoreError};
use crate::config::{EtcdIdentity, EtcdLogin, EtcdSettings, Secret};
use crate::core::election::engine::FailureKind;

fn settings(endpoint: &str) -> EtcdSettings {
    EtcdSettings {
        endpoints: vec![endpoint.to_owned()],
        ca_file: None,
        identity: None,
        login: None,
        request_timeout: Duration::from_secs(2),
    }
}

fn start(settings: EtcdSettings) -> Result<Store, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let _inside = runtime.enter();
    Store::start(settings, mpsc::unbounded_channel().0)
}

#[test]
fn a_store_without_an_endpoint_does_not_start() {
    let none = EtcdSettings {
        endpoints: Vec::new(),
        ..settings("")
    };
    assert!(matches!(start(none), Err(StoreError::NoEndpoint)));
}

#[test]
fn an_endpoint_is_a_url_with_a_scheme() {
    for bad in [
        "",
        "127.0.0.1:2379",
        "ftp://127.0.0.1",
        "http://",
        "http://a b",
    ] {
        let started = start(settings(bad));
        assert!(
            matches!(&started, Err(StoreError::BadEndpoint { endpoint }) if endpoint == bad),
            "{bad:?}: {started:?}"
        );
    }
    start(settings("http://127.0.0.1:2379")).expect("a good endpoint");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let ca = PathBuf::from("/nonexistent/ca.pem");
    let started = start(EtcdSettings {
        ca_file: Some(ca.clone()),
        ..settings("https://127.0.0.1:2379")
    });
    assert!(
        matches!(&started, Err(StoreError::Unreadable { path, .. }) if *path == ca),
        "{started:?}"
    );
}

#[test]
fn files_without_certificates_are_refused_at_the_start() {
    let folder = std::env::temp_dir().join(format!("mmn-etcd-unit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("empty.pem");
    std::fs::write(&file, "nothing").expect("a file");
    let started = start(EtcdSettings {
        identity: Some(EtcdIdentity {
            cert_file: file.clone(),
            key_file: file,
        }),
        ..settings("https://127.0.0.1:2379")
    });
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(
        matches!(started, Err(StoreError::Tls { .. })),
        "{started:?}"
    );
}

#[test]
fn a_password_that_is_not_text_is_refused() {
    let started = start(EtcdSettings {
        login: Some(EtcdLogin {
            user: "ada".to_owned(),
            password: Secret::new(&[0xff]).expect("not empty"),
        }),
        ..settings("http://127.0.0.1:2379")
    });
    assert!(
        matches!(&started, Err(StoreError::BadPassword { user }) if user == "ada"),
        "{started:?}"
    );
}

#[test]
fn every_status_of_etcd_has_its_meaning() {
    use FailureKind::{Compacted, Denied, LeaseGone, Other, Unreachable};
    let table = [
        (
            Code::PermissionDenied,
            "etcdserver: permission denied",
            Denied,
            false,
        ),
        (
            Code::Unauthenticated,
            "etcdserver: invalid auth token",
            Denied,
            true,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: authentication failed, invalid user ID or password",
            Denied,
            false,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: user name is empty",
            Denied,
            true,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: revision of auth store is old",
            Denied,
            true,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: key is not provided",
            Other,
            false,
        ),
        (
            Code::NotFound,
            "etcdserver: requested lease not found",
            LeaseGone,
            false,
        ),
        (
            Code::OutOfRange,
            "etcdserver: mvcc: required revision has been compacted",
            Compacted,
            false,
        ),
        (
            Code::OutOfRange,
            "etcdserver: mvcc: required revision is a future revision",
            Other,
            false,
        ),
        (
            Code::Unavailable,
            "etcdserver: no leader",
            Unreachable,
            false,
        ),
        (
            Code::Unavailable,
            "etcdserver: request timed out",
            Unreachable,
            false,
        ),
        (
            Code::ResourceExhausted,
            "etcdserver: too many requests",
            Unreachable,
            false,
        ),
        (
            Code::ResourceExhausted,
            "etcdserver: mvcc: database space exceeded",
            Other,
            false,
        ),
        (Code::Unknown, "transport error", Unreachable, false),
        (Code::Unknown, "etcdserver: not capable", Other, false),
        (Code::Unimplemented, "unknown service", Other, false),
    ];
    for (code, message, kind, login_stale) in table {
        let fault = Fault::from(Error::GRpcStatus(Status::new(code, message)));
        assert_eq!(fault.kind, kind, "{message}");
        assert_eq!(fault.login_stale, login_stale, "{message}");
        assert_eq!(fault.words, message);
    }
}

#[test]
fn a_watch_ends_with_its_reason() {
    assert_eq!(Fault::cancelled(7, "").kind, FailureKind::Compacted);
    for reason in [
        "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
        "rpc error: code = InvalidArgument desc = etcdserver: user name is empty",
        "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token",
    ] {
        let denied = Fault::cancelled(0, reason);
        assert_eq!(denied.kind, FailureKind::Denied, "{reason}");
        assert!(denied.login_stale, "a new login may help");
    }
    assert_eq!(Fault::cancelled(0, "").kind, FailureKind::Unreachable);
}

#[test]
fn cuts_a_servers_message() {
    let fault = Fault::unreachable("é".repeat(1000));
    assert_eq!(fault.words, "é".repeat(150));
}
