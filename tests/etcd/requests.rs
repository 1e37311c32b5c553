//! The effect and the answer of each request.

use std::time::{Duration, Instant};

use meta_mystia_network::core::election::engine::{Answer, Change, Entry, FailureKind, Request};

use crate::client::{Client, create, first, get, watch, watch_key};
use crate::harness::Cluster;

#[tokio::test]
async fn a_key_is_created_once() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;

    let own = client.create("a/1", "one", lease).await;
    assert_eq!((&*own.key, &*own.value), ("a/1", &b"one"[..]));
    assert_eq!(own.created, own.modified);
    cluster.etcdctl(&["put", "elsewhere", "x"]);
    let standing = client.create("a/1", "two", lease).await;
    assert_eq!(standing, own, "what stood there before");

    client.ask(Request::Revoke { lease }).await;
    let lease = client.lease(60).await;
    let again = client.create("a/1", "three", lease).await;
    assert!(again.created > own.created, "{again:?}");
}

#[tokio::test]
async fn a_key_is_replaced_only_where_it_was_created_at_that_revision() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let own = client.create("a/1", "one", lease).await;
    let replace = |created| Request::Replace {
        key: "a/1".into(),
        created,
        value: b"two".to_vec(),
        lease,
    };

    let (refused, revision) = client.entry(replace(own.created + 1)).await;
    assert_eq!((refused, revision), (None, own.created));
    let (written, revision) = client.entry(replace(own.created)).await;
    let written = written.expect("written");
    assert_eq!(written.modified, revision);
    assert!(written.modified > own.modified);
    assert_eq!(written.created, own.created);
    assert_eq!(client.entry(get("a/1")).await.0, Some(written));
}

#[tokio::test]
async fn keys_are_ordered_by_their_creation() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    assert_eq!(client.entry(first("a/")).await.0, None);

    // Neither the names nor the last writes have this order.
    let one = client.create("a/z", "one", lease).await;
    let two = client.create("a/m", "two", lease).await;
    let three = client.create("a/a", "three", lease).await;
    client.create("aa", "another prefix", lease).await;
    let (rewritten, _) = client
        .entry(Request::Replace {
            key: "a/z".into(),
            created: one.created,
            value: b"one again".to_vec(),
            lease,
        })
        .await;

    assert_eq!(client.entry(first("a/")).await.0, rewritten);
    let at_first = Request::First {
        prefix: "a/".into(),
        at: Some(one.created),
    };
    let (then, now) = client.entry(at_first).await;
    assert_eq!(then, Some(one.clone()), "as it was");
    assert!(now > three.created, "the revision of the store is today's");

    let last_before = |created| Request::LastBefore {
        prefix: "a/".into(),
        created,
    };
    let before = |found: &Entry| found.created;
    assert_eq!(
        client.entry(last_before(before(&three))).await.0,
        Some(two.clone())
    );
    assert_eq!(client.entry(last_before(before(&two))).await.0, rewritten);
    assert_eq!(client.entry(last_before(before(&one))).await.0, None);
}

#[tokio::test]
async fn a_lease_lives_as_long_as_it_is_kept_alive() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    // The server's minimum.
    let lease = client.lease(2).await;
    client.create("a/1", "one", lease).await;

    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(client.keep_alive(lease).await, Duration::from_secs(2));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(client.entry(get("a/1")).await.0.is_some());

    assert_eq!(client.ask(Request::Revoke { lease }).await, Answer::Done);
    assert_eq!(client.entry(get("a/1")).await.0, None);
    assert_eq!(client.keep_alive(lease).await, Duration::ZERO);
    assert_eq!(
        client.ask(Request::Revoke { lease }).await,
        Answer::Done,
        "gone already"
    );
    let refused = client.fails(create("a/1", "one", lease)).await;
    assert_eq!(refused.kind, FailureKind::LeaseGone, "{refused}");
}

#[tokio::test]
async fn a_short_lease_is_granted_longer() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let ttl = Duration::from_millis(1);
    match client.ask(Request::Grant { ttl }).await {
        Answer::Granted { ttl, .. } => assert_eq!(ttl, Duration::from_secs(2)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn e20_a_watch_sees_the_keys_of_a_lease_go_when_it_ends() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(2).await;
    let own = client.create("a/1", "one", lease).await;
    let watching = client.begin(watch_key("a/1", own.modified + 1));

    match &client.changes(watching).await[..] {
        [Change::Deleted { key, revision }] => {
            assert_eq!(&**key, "a/1");
            assert!(*revision > own.modified);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_watch_reports_every_change_from_its_revision_on() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let one = client.create("a/1", "one", lease).await;
    client.create("b/1", "elsewhere", lease).await;
    let two = client.create("a/2", "two", lease).await;

    let all = client.begin(watch("a/", one.created));
    let late = client.begin(watch("a/", two.created + 1));
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(client.changes(all).await);
    }
    assert_eq!(seen, [Change::Put(one.clone()), Change::Put(two)]);
    assert_eq!(client.soon(late).await, None);

    cluster.etcdctl(&["del", "a/1"]);
    for call in [all, late] {
        match &client.changes(call).await[..] {
            [Change::Deleted { key, .. }] => assert_eq!(&**key, "a/1"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_watch_that_is_ended_reports_nothing_more() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let ended = client.begin(watch("a/", 1));
    let kept = client.begin(watch("a/", 1));
    client.create("a/1", "one", lease).await;
    client.changes(ended).await;
    client.changes(kept).await;

    client.begin(Request::Unwatch { call: ended });
    client.begin(Request::Unwatch { call: 12_345 });
    client.create("a/2", "two", lease).await;
    client.changes(kept).await;
    assert_eq!(client.soon(ended).await, None);
}

#[tokio::test]
async fn e6_e25_history_that_was_compacted_is_named_so() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let one = client.create("a/1", "one", lease).await;
    cluster.etcdctl(&["put", "elsewhere", "x"]);
    cluster.etcdctl(&["put", "elsewhere", "y"]);
    let watching = client.begin(watch("a/", one.created));
    client.changes(watching).await;
    let (_, now) = client.entry(get("a/1")).await;
    cluster.etcdctl(&["compact", &now.to_string()]);

    let old = client.fails(watch("a/", one.created)).await;
    assert_eq!(old.kind, FailureKind::Compacted, "{old}");
    let at = Some(one.created);
    let prefix = "a/".into();
    let read = client.fails(Request::First { prefix, at }).await;
    assert_eq!(read.kind, FailureKind::Compacted, "{read}");
    // The leader's key is older than the compaction, and still the first.
    assert_eq!(client.entry(first("a/")).await.0, Some(one.clone()));
    // A watch that began earlier goes on.
    client.create("a/2", "two", lease).await;
    assert_eq!(client.changes(watching).await.len(), 1);
}

#[tokio::test]
async fn many_changes_at_once_all_arrive() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    let value = "x".repeat(100_000);
    for number in 0..60 {
        client.create(&format!("a/{number}"), &value, lease).await;
    }
    // Six megabytes: more than one message may hold.
    let watching = client.begin(watch("a/", 1));
    let mut seen = 0;
    while seen < 60 {
        seen += client.changes(watching).await.len();
    }
}

#[tokio::test]
async fn requests_under_way_are_bounded_and_each_is_answered_once() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    client.ask(get("a/1")).await;
    cluster.pause(0);
    let calls: Vec<_> = (0..600).map(|_| client.begin(get("a/1"))).collect();
    let refused = crate::client::failure(client.answer(calls[599]).await);
    assert_eq!(refused.kind, FailureKind::Unreachable);
    assert!(
        refused.text.contains("512 requests are under way"),
        "{refused}"
    );
    for call in &calls[..599] {
        let failed = crate::client::failure(client.answer(*call).await);
        assert_eq!(failed.kind, FailureKind::Unreachable, "{failed}");
    }
    assert_eq!(client.soon(calls[0]).await, None);
    cluster.resume(0);
    assert_eq!(client.entry(get("a/1")).await.0, None);
}

#[tokio::test]
async fn a_store_that_is_dropped_answers_nothing_more() {
    let cluster = Cluster::start(1);
    let mut client = Client::new(cluster.endpoints());
    let lease = client.lease(60).await;
    client.begin(watch("a/", 1));
    client.keep_alive(lease).await;
    cluster.pause(0);
    client.begin(get("a/1"));
    client.begin(Request::KeepAlive { lease });
    tokio::task::yield_now().await;
    assert_eq!(client.dropped().await, []);
}
