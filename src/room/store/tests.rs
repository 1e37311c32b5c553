//! Tests of rooms whose external store is played by the test.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use super::*;
use crate::config::{Config, DiscoveryMode, Etcd};
use crate::core::election::engine::{Entry, Failure, FailureKind};
use crate::core::election::etcd::EtcdConfig;
use crate::core::id::{PeerId, SessionId};
use crate::core::time::Duration;
use crate::glance;
use crate::net::names::system_lookup;
use crate::room::opening::Outside;
use crate::room::{Closed, Room};

/// Longer than any step takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Passes every request to the test.
struct Played(Sender<(Call, Request)>);

impl Store for Played {
    fn request(&mut self, call: Call, request: Request) {
        // The test may be over.
        let _ = self.0.send((call, request));
    }
}

/// Longest duration of leaving, and the margin for a busy machine.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(1);

/// Makes requests that are never answered, on a thread that cannot be stopped, like a hanging name lookup.
struct Hanging;

impl Store for Hanging {
    fn request(&mut self, _: Call, _: Request) {
        tokio::task::spawn_blocking(|| std::thread::sleep(TIMEOUT));
    }
}

fn open(start: impl FnOnce(Answers) -> Box<dyn Store> + Send + 'static) -> Room {
    let etcd = Etcd {
        election: EtcdConfig {
            prefix: "test".into(),
            ttl: Duration::from_secs(60),
            address: String::new(),
        },
        settings: EtcdSettings {
            endpoints: vec!["http://127.0.0.1:1".to_owned()],
            ca_file: None,
            identity: None,
            login: None,
            request_timeout: Duration::from_secs(5),
        },
    };
    let config = Config {
        strategy: etcd.strategy(),
        etcd: Some(etcd),
        discovery: DiscoveryMode::Off,
        ..Config::default()
    };
    let me = PeerId::new("me").expect("an id");
    let session = SessionId::new("store").expect("a session");
    let dispatch = Room::dispatch_for(&me, &config).expect("a queue");
    let outside = Outside {
        start_store: move |_, answers| Ok(start(answers)),
        lookup: system_lookup(),
    };
    let dispatch = dispatch.into();
    Room::open_asking(me, session, config, dispatch, &glance::UNREAD, outside).expect("a room")
}

/// A room whose requests come out of the receiver, and whose answers go into the sender.
fn played() -> (Room, Receiver<(Call, Request)>, Answers) {
    let (asked, requests) = channel();
    let (give, given) = channel();
    let room = open(move |answers| {
        give.send(answers).expect("the test waits for it");
        Box::new(Played(asked))
    });
    let answers = given.recv().expect("it was started");
    (room, requests, answers)
}

/// Answers like a store in which this member is alone, until the request `last`.
fn answer_until(
    requests: &Receiver<(Call, Request)>,
    answers: &Answers,
    last: impl Fn(&Request) -> bool,
) {
    let mut own = None;
    loop {
        let (call, request) = requests.recv_timeout(TIMEOUT).expect("it asks");
        let is_last = last(&request);
        let answer = match request {
            Request::Grant { ttl } => Answer::Granted { lease: 0x77, ttl },
            Request::Create { key, value, lease } => {
                assert_eq!((&*key, lease), ("test/election/77", 0x77));
                own = Some(Entry {
                    key,
                    value,
                    created: 5,
                    modified: 5,
                });
                entry(own.clone())
            }
            Request::LastBefore { .. } => entry(None),
            Request::Get { .. } | Request::First { .. } => entry(own.clone()),
            Request::Revoke { lease } => {
                assert_eq!(lease, 0x77);
                Answer::Done
            }
            _ => continue,
        };
        answers.send((call, answer)).expect("the room takes it");
        if is_last {
            return;
        }
    }
}

fn entry(entry: Option<Entry>) -> Answer {
    Answer::Entry { entry, revision: 5 }
}

fn until_it_leads(room: &Room, leads: bool) {
    let began = Instant::now();
    while room.snapshot().is_leader != leads {
        assert!(began.elapsed() < TIMEOUT, "it leads: {leads}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_room_leads_by_the_answers_of_its_store_and_gives_its_lease_back_at_its_end() {
    let (room, requests, answers) = played();
    answer_until(&requests, &answers, |request| {
        matches!(request, Request::Get { .. })
    });
    until_it_leads(&room, true);
    assert_eq!(room.snapshot().term, 5, "the revision of its key");
    let closing = std::thread::spawn(move || room.close());
    answer_until(&requests, &answers, |request| {
        matches!(request, Request::Revoke { .. })
    });
    closing.join().expect("it is closed");
}

#[test]
fn a_request_that_fails_is_made_again() {
    let (room, requests, answers) = played();
    let is_grant = |(_, request): &(Call, Request)| matches!(request, Request::Grant { .. });
    let mut grants = requests.iter().filter(is_grant);
    let (first, _) = grants.next().expect("it asks for a lease");
    let failure = Failure {
        kind: FailureKind::Unreachable,
        text: "granting a lease failed".to_owned(),
    };
    let failed = (first, Answer::Failed(failure));
    answers.send(failed).expect("the room takes it");
    let (second, _) = grants.next().expect("it asks again");
    assert!(second > first);
    room.close();
}

#[test]
fn an_unrequested_answer_changes_nothing() {
    let (room, requests, answers) = played();
    let stray = (
        1_000_000,
        Answer::Granted {
            lease: 1,
            ttl: Duration::from_secs(60),
        },
    );
    answers.send(stray).expect("the room takes it");
    answer_until(&requests, &answers, |request| {
        matches!(request, Request::Get { .. })
    });
    until_it_leads(&room, true);
    room.close();
}

#[test]
fn no_call_and_no_end_waits_for_a_store_that_is_silent() {
    let (room, _requests, _answers) = played();
    let began = Instant::now();
    room.proclaim("anything").expect("it is kept");
    let request = room.next_lock_request();
    let name = "gate";
    room.acquire_lock(request, name, None).expect("it waits");
    room.release_lock(name).expect("it waited");
    assert!(!room.snapshot().is_leader);
    room.close();
    assert!(began.elapsed() < TIMEOUT / 2, "{:?}", began.elapsed());
}

#[test]
fn the_end_of_a_room_does_not_wait_for_a_name_lookup_that_hangs() {
    let room = open(|_| Box::new(Hanging));
    let began = Instant::now();
    assert_eq!(room.close(), Closed::ButForLookups);
    assert!(
        began.elapsed() < LEAVE_LIMIT + SLACK,
        "{:?}",
        began.elapsed()
    );
}
