//! Users, and TLS.

use std::time::{Duration, Instant};

use meta_mystia_network::config::{EtcdIdentity, EtcdLogin, EtcdSettings, Secret};
use meta_mystia_network::core::election::engine::{Answer, FailureKind, Request};

use crate::client::{Client, create, failure, first, get, settings, watch};
use crate::harness::{Certificates, Cluster};

/// Two users, each with a prefix of its own.
fn with_users() -> Cluster {
    let mut cluster = Cluster::start(1);
    for (user, prefix) in [("ada", "a/"), ("bob", "b/")] {
        cluster.etcdctl(&["user", "add", &format!("{user}:secret-{user}")]);
        cluster.etcdctl(&["role", "add", user]);
        cluster.etcdctl(&[
            "role",
            "grant-permission",
            user,
            "readwrite",
            "--prefix=true",
            prefix,
        ]);
        cluster.etcdctl(&["user", "grant-role", user, user]);
    }
    cluster.etcdctl(&["user", "add", "root:secret-root"]);
    cluster.etcdctl(&["user", "grant-role", "root", "root"]);
    cluster.etcdctl(&["auth", "enable"]);
    cluster.login = Some("root:secret-root".to_owned());
    cluster
}

fn as_user(cluster: &Cluster, user: &str, password: &str) -> Client {
    Client::with(EtcdSettings {
        login: Some(EtcdLogin {
            user: user.to_owned(),
            password: Secret::new(password.as_bytes()).expect("a password"),
        }),
        ..settings(cluster.endpoints())
    })
}

#[tokio::test]
async fn e8_users_have_their_prefixes_and_no_others() {
    let cluster = with_users();
    let mut ada = as_user(&cluster, "ada", "secret-ada");
    let mut bob = as_user(&cluster, "bob", "secret-bob");
    let (lease_a, lease_b) = (ada.lease(60).await, bob.lease(60).await);
    let own = ada.create("a/1", "one", lease_a).await;
    bob.create("b/1", "two", lease_b).await;
    for (client, prefix, lease) in [(&mut ada, "a/", lease_a), (&mut bob, "b/", lease_b)] {
        let watching = client.begin(watch(prefix, 1));
        assert_eq!(client.changes(watching).await.len(), 1);
        assert!(client.entry(first(prefix)).await.0.is_some());
        assert_eq!(client.keep_alive(lease).await, Duration::from_secs(60));
    }

    for request in [
        create("a/2", "bob's", lease_b),
        get("a/1"),
        first("a/"),
        watch("a/", 1),
        Request::Replace {
            key: "a/1".into(),
            created: own.created,
            value: b"bob's".to_vec(),
            lease: lease_b,
        },
    ] {
        let refused = bob.fails(request).await;
        assert_eq!(refused.kind, FailureKind::Denied, "{refused}");
        assert!(refused.text.contains("permission denied"), "{refused}");
        assert!(refused.text.contains("as user \"bob\""), "{refused}");
        assert!(refused.text.contains("the user's role"), "{refused}");
    }
    assert_eq!(
        ada.ask(Request::Revoke { lease: lease_a }).await,
        Answer::Done
    );
    assert_eq!(ada.entry(first("a/")).await.0, None);
}

#[tokio::test]
async fn a_wrong_password_and_a_missing_user_are_refused() {
    let cluster = with_users();
    let mut wrong = as_user(&cluster, "ada", "secret-bob");
    let mut absent = Client::new(cluster.endpoints());
    for client in [&mut wrong, &mut absent] {
        for request in [get("a/1"), watch("a/", 1)] {
            let refused = client.fails(request).await;
            assert_eq!(refused.kind, FailureKind::Denied, "{refused}");
            assert!(!refused.text.contains("secret"), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_login_is_renewed_when_the_server_has_forgotten_it() {
    let mut cluster = with_users();
    let mut ada = as_user(&cluster, "ada", "secret-ada");
    let lease = ada.lease(60).await;
    ada.create("a/1", "one", lease).await;
    let forget = |cluster: &Cluster| {
        cluster.etcdctl(&["auth", "disable"]);
        cluster.etcdctl(&["auth", "enable"]);
    };

    forget(&cluster);
    // Servers report an expired login of a watch as a missing permission.
    let watching = ada.begin(watch("a/", 1));
    assert_eq!(ada.changes(watching).await.len(), 1);
    forget(&cluster);
    assert!(ada.entry(get("a/1")).await.0.is_some());

    cluster.restart(0);
    cluster.wait_for(&[0]);
    ada.ask_until_reached(get("a/1")).await;
    assert_eq!(ada.keep_alive(lease).await, Duration::from_secs(60));
}

#[tokio::test]
async fn a_login_is_no_hindrance_where_the_cluster_has_no_users_yet() {
    let cluster = Cluster::start(1);
    let mut ada = as_user(&cluster, "ada", "secret-ada");
    assert_eq!(ada.entry(get("a/1")).await.0, None);
    cluster.etcdctl(&["user", "add", "root:secret-root"]);
    cluster.etcdctl(&["user", "grant-role", "root", "root"]);
    cluster.etcdctl(&["user", "add", "ada:secret-ada"]);
    cluster.etcdctl(&["user", "grant-role", "ada", "root"]);
    cluster.etcdctl(&["auth", "enable"]);
    assert_eq!(ada.entry(get("a/1")).await.0, None);
}

#[tokio::test]
async fn tls_with_a_ca_and_a_client_certificate() {
    let cluster = Cluster::start_with(1, Some(Certificates::new()));
    let certificates = cluster.certificates().expect("TLS");
    let secured = EtcdSettings {
        ca_file: Some(certificates.ca()),
        identity: Some(EtcdIdentity {
            cert_file: certificates.certificate(),
            key_file: certificates.key(),
        }),
        ..settings(cluster.endpoints())
    };
    let mut client = Client::with(secured.clone());
    let lease = client.lease(60).await;
    client.create("a/1", "one", lease).await;
    let watching = client.begin(watch("a/", 1));
    assert_eq!(client.changes(watching).await.len(), 1);
    assert_eq!(client.keep_alive(lease).await, Duration::from_secs(60));

    let mut unknown = Client::with(EtcdSettings {
        identity: None,
        ..secured.clone()
    });
    let refused = unknown.fails(get("a/1")).await;
    assert_eq!(refused.kind, FailureKind::Unreachable, "{refused}");

    let other = Certificates::new();
    let begun = Instant::now();
    let mut deceived = Client::with(EtcdSettings {
        ca_file: Some(other.ca()),
        ..secured
    });
    let distrusted = deceived.begin(get("a/1"));
    let distrusted = failure(deceived.answer(distrusted).await);
    assert_eq!(distrusted.kind, FailureKind::Unreachable, "{distrusted}");
    assert!(distrusted.text.contains("certificate"), "{distrusted}");
    assert!(
        begun.elapsed() < crate::client::REQUEST_TIMEOUT,
        "it fails at once"
    );
}
