//! A member under test: a room and all events of its host.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use meta_mystia_network::config::{Config, DiscoveryMode};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::dispatch::{ConnectionResult, Event, Incoming, kind};
use meta_mystia_network::room::{OutMessage, Room};
use meta_mystia_network::snapshot::PeerStatus;
use meta_mystia_network::target::parse_target;

/// Timeout of every wait. Far more than a busy machine needs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// An event of the host, recorded in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    Joined(String),
    Left(String),
    Leader(String),
    Message(String, Vec<u8>),
    Connection(String, bool, i32),
}

#[derive(Default)]
struct Log {
    reported: Mutex<Vec<Report>>,
    changed: Condvar,
}

impl Log {
    fn push(&self, reported: Report) {
        self.reported.lock().expect("not poisoned").push(reported);
        self.changed.notify_all();
    }
}

pub(crate) struct Member {
    pub(crate) room: Room,
    log: Arc<Log>,
}

pub(crate) fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a valid id")
}

pub(crate) fn message(payload: &[u8]) -> OutMessage {
    OutMessage {
        payload: Bytes::copy_from_slice(payload),
        msg_type: 0x0100,
        flags: 0,
    }
}

/// Timers for quick elections. The machine may stall for longer than the heartbeat timeout of games on a LAN, so these are not
/// the shortest possible.
pub(crate) fn quick() -> Config {
    Config {
        heartbeat_interval: Duration::from_millis(100),
        election_timeout_min: Duration::from_millis(300),
        election_timeout_max: Duration::from_millis(600),
        heartbeat_timeout_multiplier: 10,
        // The tests decide on every link.
        discovery: DiscoveryMode::Off,
        ..Config::default()
    }
}

impl Member {
    pub(crate) fn open(name: &str, session: &str) -> Self {
        Self::open_with(name, session, quick())
    }

    pub(crate) fn open_with(name: &str, session: &str, config: Config) -> Self {
        let member = Self::open_deaf(name, session, config);
        member.listen();
        member
    }

    /// A member that has not registered for messages.
    pub(crate) fn open_deaf(name: &str, session: &str, config: Config) -> Self {
        let session = SessionId::new(session).expect("a valid session");
        let room = Room::open(id(name), session, config).expect("a room");
        let log = Arc::<Log>::default();
        let dispatch = room.dispatch();
        dispatch.register::<kind::LeaderChanged>(Some(Arc::new({
            let log = Arc::clone(&log);
            move |leader: Option<&PeerId>| {
                let leader = leader.map_or("", PeerId::as_str);
                log.push(Report::Leader(leader.to_owned()));
            }
        })));
        dispatch.register::<kind::PeerStatus>(Some(Arc::new({
            let log = Arc::clone(&log);
            move |(peer, status): (&PeerId, PeerStatus)| {
                let peer = peer.to_string();
                log.push(match status {
                    PeerStatus::Connected => Report::Joined(peer),
                    _ => Report::Left(peer),
                });
            }
        })));
        dispatch.register::<kind::ConnectionResult>(Some(Arc::new({
            let log = Arc::clone(&log);
            move |result: &ConnectionResult| {
                let target = result.target.clone();
                log.push(Report::Connection(target, result.success, result.code));
            }
        })));
        Self { room, log }
    }

    /// Registers for messages.
    pub(crate) fn listen(&self) {
        let log = Arc::clone(&self.log);
        let receive = move |message: &Incoming| {
            let payload = message.payload.to_vec();
            log.push(Report::Message(message.from.to_string(), payload));
        };
        self.room
            .dispatch()
            .register::<kind::Receive>(Some(Arc::new(receive)));
    }

    /// Registers for messages with a handler that takes the first one and blocks until the returned gate is dropped.
    pub(crate) fn listen_later(&self) -> mpsc::Sender<()> {
        let (open, gate) = mpsc::channel();
        let gate = Mutex::new(gate);
        let log = Arc::clone(&self.log);
        let receive = move |message: &Incoming| {
            // No value is sent: `recv` ends when the other end is dropped.
            let _ = gate.lock().expect("not poisoned").recv();
            let payload = message.payload.to_vec();
            log.push(Report::Message(message.from.to_string(), payload));
        };
        self.room
            .dispatch()
            .register::<kind::Receive>(Some(Arc::new(receive)));
        open
    }

    /// Every event of this member from now on.
    pub(crate) fn events(&self) -> mpsc::Receiver<Event> {
        let (sender, events) = mpsc::channel();
        let handler = move |event: &Event| {
            // The receiver is gone at the end of a test.
            let _ = sender.send(event.clone());
        };
        let dispatch = self.room.dispatch();
        dispatch.register_event_handler(Some(Arc::new(handler)));
        events
    }

    pub(crate) fn port(&self) -> u16 {
        self.room.local_address().port()
    }

    pub(crate) fn connect(&self, text: &str) {
        let target = parse_target(text).expect("a target");
        self.room.connect(text, target).expect("accepted");
    }

    pub(crate) fn connect_to(&self, other: &Member) {
        self.connect(&format!("127.0.0.1:{}", other.port()));
    }

    pub(crate) fn reported(&self) -> Vec<Report> {
        self.log.reported.lock().expect("not poisoned").clone()
    }

    /// Waits until `find` returns a value for the recorded events.
    pub(crate) fn wait<T>(&self, what: &str, find: impl Fn(&[Report]) -> Option<T>) -> T {
        let limit = Instant::now() + TIMEOUT;
        let mut reported = self.log.reported.lock().expect("not poisoned");
        loop {
            if let Some(found) = find(&reported) {
                return found;
            }
            let left = limit.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{} was not notified of {what}; it received {reported:#?}",
                self.room.peer_id()
            );
            reported = self
                .log
                .changed
                .wait_timeout(reported, left)
                .expect("not poisoned")
                .0;
        }
    }

    pub(crate) fn wait_for(&self, expected: &Report) {
        self.wait(&format!("{expected:?}"), |reported| {
            reported.contains(expected).then_some(())
        });
    }

    pub(crate) fn messages(&self) -> Vec<(String, Vec<u8>)> {
        self.reported()
            .into_iter()
            .filter_map(|reported| match reported {
                Report::Message(from, payload) => Some((from, payload)),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn leader(&self) -> Option<String> {
        let snapshot = self.room.snapshot();
        snapshot.leader.as_ref().map(ToString::to_string)
    }
}

/// Waits until `condition` holds, for states without a callback; checks every few milliseconds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < limit, "it never came about: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until every member sees all others and all name one leader; returns its name.
pub(crate) fn settled(members: &[&Member]) -> String {
    eventually("a full mesh with one leader", || {
        let leader = members[0].leader();
        leader.is_some()
            && members.iter().all(|member| {
                member.room.snapshot().connected == members.len() - 1 && member.leader() == leader
            })
    });
    members[0].leader().expect("just seen")
}
