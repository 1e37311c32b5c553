//! Servers that are absent, silent or faulty.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use meta_mystia_network::core::election::engine::{Answer, FailureKind, Request};

use crate::client::{Client, REQUEST_TIMEOUT, failure, first, get, watch};
use crate::harness::Cluster;

/// Slack of a busy machine beyond the request timeout.
const SLACK: Duration = Duration::from_millis(1500);

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}"))
}

/// An endpoint without a listener.
fn dead() -> String {
    listener().1
}

/// An endpoint that accepts connections and never answers.
fn silent() -> (TcpListener, String) {
    listener()
}

#[tokio::test]
async fn a_dead_endpoint_first_in_the_list_costs_nothing() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(vec![dead(), cluster.endpoint(0)]);
    let begun = Instant::now();
    let lease = client.lease(60).await;
    client.create("a/1", "one", lease).await;
    let watching = client.begin(watch("a/", 1));
    client.changes(watching).await;
    client.keep_alive(lease).await;
    assert!(begun.elapsed() < REQUEST_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_silent_endpoint_costs_its_share_of_the_first_request() {
    let cluster = Cluster::start(1);
    let (_listener, silent) = silent();
    let mut client = Client::new(vec![silent, cluster.endpoint(0)]);
    let begun = Instant::now();
    let (found, _) = client.entry(get("a/1")).await;
    assert_eq!(found, None);
    assert!(begun.elapsed() >= REQUEST_TIMEOUT / 2);
    assert!(begun.elapsed() < REQUEST_TIMEOUT, "{:?}", begun.elapsed());
    // From now on requests go to the other server first.
    let begun = Instant::now();
    for _ in 0..10 {
        client.entry(get("a/1")).await;
    }
    assert!(
        begun.elapsed() < REQUEST_TIMEOUT / 2,
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_failure_names_what_was_tried_where_and_what_to_do() {
    let endpoints = vec![dead(), dead()];
    let mut client = Client::new(endpoints.clone());
    let begun = Instant::now();
    let failure = client.fails(get("room/a/1")).await;
    assert!(
        begun.elapsed() < REQUEST_TIMEOUT,
        "refused connections are no reason to wait"
    );
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let text = &failure.text;
    for part in [
        "room/a/1",
        &endpoints[0],
        &endpoints[1],
        "refused",
        "check that etcd runs",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    let watch = client.fails(watch("room/a/", 1)).await;
    assert_eq!(watch.kind, FailureKind::Unreachable);
    assert!(watch.text.contains("watching keys"), "{watch}");
}

#[tokio::test]
async fn a_silent_server_fails_every_request_in_time() {
    let (_listener, silent) = silent();
    let mut client = Client::new(vec![silent]);
    let begun = Instant::now();
    let calls = [
        client.begin(Request::Grant {
            ttl: Duration::from_secs(5),
        }),
        client.begin(Request::KeepAlive { lease: 7 }),
        client.begin(get("a/1")),
        client.begin(watch("a/", 1)),
    ];
    for call in calls {
        let failed = failure(client.answer(call).await);
        assert_eq!(failed.kind, FailureKind::Unreachable, "{failed}");
    }
    let took = begun.elapsed();
    assert!(took < REQUEST_TIMEOUT + SLACK, "{took:?}");
}

#[tokio::test]
async fn a_paused_server_fails_requests_and_serves_again_when_it_goes_on() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let own = client.create("a/1", "one", lease).await;
    client.keep_alive(lease).await;
    let watching = client.begin(watch("a/", own.modified + 1));
    assert_eq!(client.soon(watching).await, None);

    cluster.pause(0);
    let begun = Instant::now();
    let silent = client.fails(Request::KeepAlive { lease }).await;
    assert_eq!(silent.kind, FailureKind::Unreachable, "{silent}");
    assert!(begun.elapsed() < REQUEST_TIMEOUT + SLACK);
    // The watch ended with it, not only at the probe of its connection.
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    assert!(begun.elapsed() < REQUEST_TIMEOUT + SLACK);

    cluster.resume(0);
    let begun = Instant::now();
    client.ask_until_reached(Request::KeepAlive { lease }).await;
    assert!(begun.elapsed() < REQUEST_TIMEOUT + SLACK);
    let again = client.begin(watch("a/", own.modified));
    assert_eq!(client.changes(again).await.len(), 1);
}

#[tokio::test]
async fn a_keep_alive_that_failed_never_answers_a_later_one() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    client.keep_alive(lease).await;
    cluster.pause(0);
    for _ in 0..2 {
        client.fails(Request::KeepAlive { lease }).await;
    }
    // The server answers the pending request, and then the lease ends.
    cluster.resume(0);
    cluster.wait_for(&[0]);
    cluster.etcdctl(&["lease", "revoke", &format!("{lease:x}")]);
    assert_eq!(client.keep_alive(lease).await, Duration::ZERO);
}

#[tokio::test]
async fn a_server_that_restarts_ends_watches_and_keeps_leases() {
    let mut cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let own = client.create("a/1", "one", lease).await;
    client.keep_alive(lease).await;
    let watching = client.begin(watch("a/", own.modified + 1));
    assert_eq!(client.soon(watching).await, None);

    cluster.kill(0);
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    let failed = client.fails(Request::KeepAlive { lease }).await;
    assert_eq!(failed.kind, FailureKind::Unreachable, "{failed}");

    cluster.restart(0);
    match client.ask_until_reached(Request::KeepAlive { lease }).await {
        Answer::Alive { ttl } => assert_eq!(ttl, Duration::from_secs(60)),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.entry(first("a/")).await.0, Some(own.clone()));
    let again = client.begin(watch("a/", own.modified));
    assert_eq!(client.changes(again).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_etcd_is_named() {
    let (listener, endpoint) = listener();
    // A thread that ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(
                &mut &stream,
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
            );
        }
    });
    let mut client = Client::new(vec![endpoint.clone()]);
    let failed = client.fails(get("a/1")).await;
    assert_eq!(failed.kind, FailureKind::Unreachable, "{failed}");
    assert!(failed.text.contains(&endpoint), "{failed}");
}
