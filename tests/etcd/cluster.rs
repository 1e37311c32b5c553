//! Clusters of three: their leader, their quorum, and the failure of one member.

use std::time::{Duration, Instant};

use meta_mystia_network::core::election::engine::{Answer, FailureKind, Request};

use crate::client::{Client, REQUEST_TIMEOUT, failure, first, get, watch};
use crate::harness::Cluster;

/// Longest time until etcd notices the loss of a quorum or a leader and elects: 1 s to 2 s each, more on busy machines.
const NOTICED_WITHIN: Duration = Duration::from_secs(15);

#[tokio::test]
async fn the_leader_of_etcd_is_killed_and_requests_go_on() {
    let mut cluster = Cluster::start(3);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(10).await;
    let own = client.create("a/1", "one", lease).await;
    let watching = client.begin(watch("a/", own.modified + 1));
    client.keep_alive(lease).await;

    let leader = cluster.leader();
    cluster.kill(leader);
    let begun = Instant::now();
    match client.ask_until_reached(Request::KeepAlive { lease }).await {
        Answer::Alive { ttl } => assert_eq!(ttl, Duration::from_secs(10)),
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
    assert_eq!(client.entry(first("a/")).await.0, Some(own.clone()));

    // The watch goes on if its server lives; otherwise it has ended.
    client.ask_until_reached(Request::Revoke { lease }).await;
    match client.answer(watching).await {
        Answer::Changes(changes) => assert_eq!(changes.len(), 1),
        Answer::Failed(failure) => assert_eq!(failure.kind, FailureKind::Unreachable),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn e20_without_a_quorum_all_fails_and_with_it_all_goes_on() {
    let mut cluster = Cluster::start(3);
    // The only server that keeps running.
    let mut client = Client::new(vec![cluster.endpoint(0)]);
    let lease = client.lease(60).await;
    let own = client.create("a/1", "one", lease).await;
    let watching = client.begin(watch("a/", own.modified + 1));
    assert_eq!(client.soon(watching).await, None);

    cluster.kill(1);
    cluster.kill(2);
    let failed = client.fails(first("a/")).await;
    assert_eq!(failed.kind, FailureKind::Unreachable, "{failed}");
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    // Not earlier: a leader renews leases by itself until it has noticed the loss of its quorum.
    let began = Instant::now();
    while let Answer::Alive { .. } = client.ask(Request::KeepAlive { lease }).await {
        assert!(began.elapsed() < NOTICED_WITHIN);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    cluster.restart(1);
    cluster.wait_for(&[0, 1]);
    match client.ask_until_reached(Request::KeepAlive { lease }).await {
        Answer::Alive { ttl } => assert_eq!(ttl, Duration::from_secs(60)),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.entry(first("a/")).await.0, Some(own));
}

#[tokio::test]
async fn a_watch_at_a_member_without_a_quorum_ends() {
    let mut cluster = Cluster::start(3);
    let mut client = Client::new(vec![cluster.endpoint(0)]);
    let watching = client.begin(watch("a/", 1));
    assert_eq!(client.soon(watching).await, None);
    // No other request is under way: the server itself ends it.
    cluster.kill(1);
    cluster.kill(2);
    let begun = Instant::now();
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_paused_member_is_left_for_another_and_its_watches_end() {
    let cluster = Cluster::start(3);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let own = client.create("a/1", "one", lease).await;
    client.keep_alive(lease).await;
    let watching = client.begin(watch("a/", own.modified + 1));
    assert_eq!(client.soon(watching).await, None);

    // The server that the client uses. If it leads etcd, the others elect first.
    cluster.pause(0);
    let begun = Instant::now();
    client.ask_until_reached(Request::KeepAlive { lease }).await;
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    let begun = Instant::now();
    client.ask_until_reached(get("a/1")).await;
    assert!(begun.elapsed() < REQUEST_TIMEOUT, "{:?}", begun.elapsed());
    cluster.resume(0);
}

#[tokio::test]
async fn a_silent_watch_ends_without_any_other_request() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let watching = client.begin(watch("a/", 1));
    assert_eq!(client.soon(watching).await, None);
    cluster.pause(0);
    let begun = Instant::now();
    let ended = failure(client.answer(watching).await);
    assert_eq!(ended.kind, FailureKind::Unreachable, "{ended}");
    // Probed after 6 s, dropped 2 s later.
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
    cluster.resume(0);
}

#[tokio::test]
async fn a_probed_connection_stays() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let watching = client.begin(watch("a/", 1));
    // Three probes: servers that reject them close the connection on the third.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lease = client.lease(60).await;
    client.create("a/1", "one", lease).await;
    assert_eq!(client.changes(watching).await.len(), 1);
}
