//! Dials by name whose resolver answers late, or never.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::*;
use crate::glance;
use crate::net::names::Lookup;
use crate::room::opening::Outside;
use crate::room::{Closed, store};

/// Longest duration of `ShutdownNetwork`, and the margin for a busy machine.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// Concurrent lookups of a room.
const MAX_LOOKUPS: usize = 16;

/// A resolver without a name server: no lookup returns before [`Silent::give_up`].
#[derive(Default)]
struct Silent {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    asked: usize,
    is_over: bool,
}

impl Silent {
    fn lookup(self: &Arc<Self>) -> Lookup {
        let silent = Arc::clone(self);
        Arc::new(move |_, _| {
            let mut state = silent.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.asked += 1;
            let waited = silent.over.wait_while(state, |state| !state.is_over);
            drop(waited);
            Err(io::Error::other("no name server answered"))
        })
    }

    fn asked(&self) -> usize {
        let state = self.state.lock();
        state.unwrap_or_else(PoisonError::into_inner).asked
    }

    fn give_up(&self) {
        let state = self.state.lock();
        state.unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.over.notify_all();
    }
}

pub(super) fn open(name: &str, lookup: Lookup, handshake_timeout: Duration) -> Host {
    let config = Config {
        handshake_timeout,
        ..quick()
    };
    let session = SessionId::new("names").expect("a valid session");
    let dispatch = Arc::new(Room::dispatch_for(&id(name), &config).expect("a queue"));
    let outside = Outside {
        start_store: store::start,
        lookup,
    };
    let room = Room::open_asking(
        id(name),
        session,
        config,
        dispatch,
        &glance::UNREAD,
        outside,
    );
    Host::of(name, room.expect("a room"))
}

pub(super) fn connect_by_name(host: &Host, text: &str) {
    let target = parse_target(text).expect("a target");
    host.room.connect(text, target).expect("accepted");
}

#[tokio::test]
async fn a_room_closes_in_time_while_a_resolver_hangs_and_leaves_few_threads() {
    let silent = Arc::new(Silent::default());
    let host = open("a", silent.lookup(), Duration::from_secs(30));
    for number in 0..40 {
        connect_by_name(&host, &format!("host{number}.example:9"));
    }
    eventually("lookups", || silent.asked() == MAX_LOOKUPS).await;
    // A room that answers has processed all forty calls.
    host.census();
    let began = Instant::now();
    assert_eq!(host.room.close(), Closed::ButForLookups);
    assert!(began.elapsed() < CLOSE_LIMIT, "{:?}", began.elapsed());
    assert_eq!(silent.asked(), MAX_LOOKUPS);
    silent.give_up();
    eventually("the end of the threads", || {
        !crate::net::names::are_running()
    })
    .await;
}

#[tokio::test]
async fn each_dial_of_many_names_has_one_result_within_its_time() {
    let silent = Arc::new(Silent::default());
    let host = open("a", silent.lookup(), Duration::from_millis(500));
    const DIALS: usize = 40;
    for number in 0..DIALS {
        connect_by_name(&host, &format!("host{number}.example:9"));
    }
    let results = |reported: &[Report]| {
        let is_result = |reported: &&Report| matches!(reported, Report::Connection(false, _));
        reported.iter().filter(is_result).count()
    };
    host.wait("results", |reported| {
        (results(reported) >= DIALS).then_some(())
    })
    .await;
    // No lookup has returned, so no other begins; its dial still ends in time.
    connect_by_name(&host, "last.example:9");
    host.wait("the last", |reported| {
        (results(reported) > DIALS).then_some(())
    })
    .await;
    assert_eq!(results(&host.reported.borrow()), DIALS + 1);
    assert_eq!(silent.asked(), MAX_LOOKUPS);
    silent.give_up();
    connect_by_name(&host, "later.example:9");
    eventually("another lookup", || silent.asked() > MAX_LOOKUPS).await;
}

#[tokio::test]
async fn a_resolver_that_fails_or_panics_ends_its_dial_and_no_other() {
    let lookup: Lookup = Arc::new(|name, port| match name {
        "panics.example" => panic!("a resolver with a bug"),
        "nowhere.example" => Ok(Vec::new()),
        "here.example" => Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]),
        _ => Err(io::Error::other("no such name")),
    });
    let host = open("a", lookup, Duration::from_secs(5));
    let other = Host::open("b", "names");
    for name in ["panics.example", "nowhere.example", "unknown.example"] {
        let before = host.reported.borrow().len();
        connect_by_name(&host, &format!("{name}:9"));
        host.wait(name, |reported| (reported.len() > before).then_some(()))
            .await;
        let reported = host.reported.borrow()[before].clone();
        assert!(
            matches!(reported, Report::Connection(false, _)),
            "{name}: {reported:?}"
        );
    }
    connect_by_name(&host, &format!("here.example:{}", other.port()));
    host.wait_for(Report::Connection(true, 0), 1).await;
}
