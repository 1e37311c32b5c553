//! Bad input and bad luck against real rooms: strangers, members that break the protocol, two links at once, cut
//! cables. After each, the honest members must still be linked, and their hosts must have received only what happened.

mod carriers;
pub(super) mod cut;
mod deliveries;
mod dials;
mod faults;
mod floods;
mod hearsay;
mod killed;
mod liars;
mod links;
mod members;
mod memory;
mod names;
mod offences;
mod relay_links;
mod relays;
mod set_back;
mod sockets;
mod star;
mod state;
mod strangers;
mod transfers;
mod wild;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use room_transport::closing::DialError;
use room_transport::identity::ALPN;
use room_transport::testing::{Process, TIMEOUT, in_time};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::sleep;

use super::shared::{Census, HostCommand};
use super::{OutMessage, Room};
use crate::config::{Config, DiscoveryMode};
use crate::core::election::raft::wire::{Beat, ElectionMessage, Pulse, Side, Stamped};
use crate::core::election::record::{Record, Stamp};
use crate::core::id::{Fingerprint, Incarnation, PeerId, SessionId};
use crate::core::wire::{
    Authority, Envelope, Heartbeat, Hello, HelloAck, Message, Opaque, RoomPolicy,
};
use crate::dispatch::{ConnectionResult, Incoming, kind};
use crate::error::SendError;
use crate::net::admission::{RoomProof, dial_pake, read_hello_ack, write_hello};
use crate::net::frame::{ControlFrame, LaneHeader, MessageHeader, MessageRole};
use crate::net::frame::{put_message, put_value, read_frame};
use crate::snapshot::PeerStatus;
use crate::target::parse_target;

/// An event that a host received, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Report {
    Joined(String),
    Left(String),
    Message(String, Vec<u8>),
    Connection(bool, i32),
}

fn joined(name: &str) -> Report {
    Report::Joined(name.to_owned())
}

fn left(name: &str) -> Report {
    Report::Left(name.to_owned())
}

fn reported(from: &str, payload: &[u8]) -> Report {
    Report::Message(from.to_owned(), payload.to_vec())
}

/// Short timers, but a heartbeat timeout of 1 s: the machine that runs the tests may stall.
fn quick() -> Config {
    Config {
        heartbeat_interval: Duration::from_millis(100),
        election_timeout_min: Duration::from_millis(300),
        election_timeout_max: Duration::from_millis(600),
        heartbeat_timeout_multiplier: 10,
        // The tests decide about links.
        discovery: DiscoveryMode::Off,
        ..Config::default()
    }
}

/// [`quick`] for a room with discovery, on a port of the test's own.
fn on_the_network(mdns_port: u16) -> Config {
    Config {
        discovery: DiscoveryMode::Connect,
        mdns_port: Some(mdns_port),
        ..quick()
    }
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a valid id")
}

fn message(payload: &[u8]) -> OutMessage {
    OutMessage {
        payload: Bytes::copy_from_slice(payload),
        msg_type: 0x0100,
        flags: 0,
    }
}

/// A heartbeat of a member that stores nothing on disk.
fn heartbeat(pulse: Pulse) -> Message {
    Message::Heartbeat(Heartbeat {
        seq: 0,
        echo: None,
        host_silent_ms: 0,
        room_time_us: None,
        pulse: Opaque::of(&Beat::from(pulse)),
    })
}

/// A message as a frame on a lane.
fn message_frame(seq: u64, msg_type: u16, flags: u8, role: MessageRole, payload: &[u8]) -> Vec<u8> {
    let header = MessageHeader {
        seq,
        msg_type,
        flags,
        channel: 0,
        role,
    };
    let mut buffer = BytesMut::new();
    put_message(&mut buffer, &header, payload).expect("encodes");
    buffer.to_vec()
}

/// Waits until `condition` holds, if no event reports it; checks every few milliseconds.
async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let seen = tokio::time::timeout(TIMEOUT, look).await;
    assert!(seen.is_ok(), "it never came about: {what}");
}

/// A room with all events that its host received.
struct Host {
    name: String,
    room: Arc<Room>,
    reported: Arc<watch::Sender<Vec<Report>>>,
}

impl Host {
    /// Broadcasts that number; on a busy machine once it has a leader again.
    async fn broadcast(&self, number: u8) {
        let queued = async {
            while let Err(error) = self.room.broadcast(message(&[number])) {
                assert_eq!(error, SendError::NoLeader);
                sleep(Duration::from_millis(5)).await;
            }
        };
        in_time(queued).await;
    }

    fn open(name: &str, session: &str) -> Self {
        Self::open_with(name, session, quick())
    }

    fn open_with(name: &str, session: &str, config: Config) -> Self {
        let host = Self::open_deaf(name, session, config);
        host.listen();
        host
    }

    /// Opens a host that takes no messages until [`Host::listen`].
    fn open_deaf(name: &str, session: &str, config: Config) -> Self {
        let session = SessionId::new(session).expect("a valid session");
        let room = Room::open(id(name), session, config).expect("a room");
        Self::of(name, room)
    }

    /// The host of a room; it takes no messages until [`Host::listen`].
    fn of(name: &str, room: Room) -> Self {
        let reported = Arc::new(watch::Sender::new(Vec::new()));
        let notify = Arc::clone(&reported);
        let status = move |(peer, status): (&PeerId, PeerStatus)| {
            let event = match status {
                PeerStatus::Connected => joined(peer.as_str()),
                _ => left(peer.as_str()),
            };
            notify.send_modify(|reported| reported.push(event));
        };
        let notify = Arc::clone(&reported);
        let result = move |result: &ConnectionResult| {
            let event = Report::Connection(result.success, result.code);
            notify.send_modify(|reported| reported.push(event));
        };
        let dispatch = room.dispatch();
        dispatch.register::<kind::PeerStatus>(Some(Arc::new(status)));
        dispatch.register::<kind::ConnectionResult>(Some(Arc::new(result)));
        Self {
            name: name.to_owned(),
            room: Arc::new(room),
            reported,
        }
    }

    fn listen(&self) {
        let notify = Arc::clone(&self.reported);
        let receive = move |message: &Incoming| {
            let event = Report::Message(message.from.to_string(), message.payload.to_vec());
            notify.send_modify(|reported| reported.push(event));
        };
        let dispatch = self.room.dispatch();
        dispatch.register::<kind::Receive>(Some(Arc::new(receive)));
    }

    fn port(&self) -> u16 {
        self.room.local_address().port()
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()))
    }

    fn connect_to(&self, address: SocketAddr) {
        let text = address.to_string();
        let target = parse_target(&text).expect("a target");
        self.room.connect(&text, target).expect("accepted");
    }

    /// Connects by hand and waits for the result.
    async fn connect(&self, other: &Self) -> (bool, i32) {
        self.connect_address(other.address()).await
    }

    async fn connect_address(&self, address: SocketAddr) -> (bool, i32) {
        let before = self.reported.borrow().len();
        self.connect_to(address);
        self.wait("a connection result", |reported| {
            reported[before..]
                .iter()
                .find_map(|reported| match reported {
                    Report::Connection(success, code) => Some((*success, *code)),
                    _ => None,
                })
        })
        .await
    }

    /// Waits until the host has received what `find` looks for.
    async fn wait<T>(&self, what: &str, find: impl Fn(&[Report]) -> Option<T>) -> T {
        let mut reported = self.reported.subscribe();
        let seen = tokio::time::timeout(
            TIMEOUT,
            reported.wait_for(|reported| find(reported).is_some()),
        );
        if seen.await.is_err() {
            let reported = self.reported.borrow();
            let last = &reported[reported.len().saturating_sub(50)..];
            panic!("{} was not notified of {what}; last: {last:#?}", self.name);
        }
        find(&self.reported.borrow()).expect("just seen, and nothing is taken back")
    }

    async fn wait_for(&self, event: Report, times: usize) {
        let what = format!("{event:?}, {times} times");
        let enough = |reported: &[Report]| (times_in(reported, &event) >= times).then_some(());
        self.wait(&what, enough).await;
    }

    fn times(&self, event: &Report) -> usize {
        times_in(&self.reported.borrow(), event)
    }

    /// The events without messages and connection results.
    fn comings_and_goings(&self) -> Vec<Report> {
        let reported = self.reported.borrow();
        let is_state = |reported: &&Report| matches!(reported, Report::Joined(_) | Report::Left(_));
        reported.iter().filter(is_state).cloned().collect()
    }

    fn has(&self, peer: &str) -> bool {
        let snapshot = self.room.snapshot();
        let view = snapshot.peer(peer);
        view.is_some_and(|view| view.status == PeerStatus::Connected)
    }

    /// Sends; waits for room in the queue.
    async fn send(&self, to: &str, payload: &[u8]) {
        loop {
            match self.room.send_to(&id(to), message(payload)) {
                Ok(()) => return,
                Err(SendError::QueueFull { .. }) => sleep(Duration::from_millis(1)).await,
                Err(error) => panic!("{} to {to}: {error}", self.name),
            }
        }
    }

    fn messages_from(&self, peer: &str) -> Vec<Vec<u8>> {
        let reported = self.reported.borrow();
        reported
            .iter()
            .filter_map(|reported| match reported {
                Report::Message(from, payload) if from == peer => Some(payload.clone()),
                _ => None,
            })
            .collect()
    }

    /// Counts of the network thread's objects; the answer also shows that the thread is alive.
    fn census(&self) -> Census {
        let (answer, answered) = blocking::sync_channel(1);
        let sent = self.room.shared.commands.send(HostCommand::Count(answer));
        assert!(sent.is_ok(), "the network thread of {} ended", self.name);
        answered
            .recv_timeout(TIMEOUT)
            .expect("the network thread answers")
    }
}

fn times_in(reported: &[Report], event: &Report) -> usize {
    reported
        .iter()
        .filter(|reported| *reported == event)
        .count()
}

/// Two honest members in a settled room.
struct Pair {
    a: Host,
    b: Host,
}

impl Pair {
    async fn settled(session: &str) -> Self {
        Self::settled_with(session, quick()).await
    }

    async fn settled_with(session: &str, config: Config) -> Self {
        let a = Host::open_with("a", session, config.clone());
        let b = Host::open_with("b", session, config);
        assert_eq!(b.connect(&a).await, (true, 0));
        let pair = Self { a, b };
        pair.a.wait_for(joined("b"), 1).await;
        pair.b.wait_for(joined("a"), 1).await;
        eventually("a leader", || {
            let leader = pair.a.room.snapshot().leader.clone();
            leader.is_some() && leader == pair.b.room.snapshot().leader
        })
        .await;
        pair
    }

    /// Checks that both are linked, never lost each other, and exchange messages.
    async fn undisturbed(&self, after: &str) {
        let payload = after.as_bytes();
        for (one, other) in [(&self.a, &self.b), (&self.b, &self.a)] {
            assert_eq!(one.times(&joined(&other.name)), 1, "after {after}");
            assert_eq!(one.times(&left(&other.name)), 0, "after {after}");
            let reported = Report::Message(one.name.clone(), payload.to_vec());
            let before = other.times(&reported);
            one.send(&other.name, payload).await;
            other.wait_for(reported, before + 1).await;
        }
    }
}

/// A process that knows the protocol, and follows it as far as a test wants.
struct Attacker {
    name: String,
    process: Process,
    proof: RoomProof,
}

impl Attacker {
    fn new(name: &str, session: &str) -> Self {
        Self::with_process(name, session, Process::start())
    }

    fn with_process(name: &str, session: &str, process: Process) -> Self {
        let proof = RoomProof {
            session: SessionId::new(session).expect("valid"),
            secret: None,
            own_key: process.identity.fingerprint(),
        };
        Self {
            name: name.to_owned(),
            process,
            proof,
        }
    }

    /// A connection without any admission.
    async fn connect(&self, to: &Host) -> Connection {
        let config = self.process.client(None, ALPN);
        let dialled = self.process.dial_with(config, to.address());
        dialled.await.expect("connected")
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation {
            started_us: 1,
            random: 1,
        }
    }

    /// An honest Hello of an observer that cannot be dialled, so that it takes no further part.
    fn hello(&self) -> Hello {
        Hello {
            features: 0,
            peer_id: id(&self.name),
            incarnation: self.incarnation(),
            generation: 0,
            losses: 0,
            by_hand: false,
            policy: RoomPolicy::default(),
            listen_port: 0,
            max_message_size: 262_144,
            eligible: false,
            priority: 0,
            has_leader: false,
            side: Opaque::of(&Side {
                since: 0,
                hold_binds: false,
                record: Record::default(),
                live: None,
                lone: true,
            }),
            join_payload: Vec::new(),
            state: None,
        }
    }

    /// Runs the PAKE and sends `hello`; returns the acceptor's answer, with the control stream.
    async fn say_hello(
        &self,
        to: &Host,
        hello: &Hello,
    ) -> (Connection, SendStream, RecvStream, HelloAck) {
        let connection = self.connect(to).await;
        let (mut send, mut recv) = in_time(dial_pake(&connection, &self.proof))
            .await
            .expect("the room is known");
        write_hello(&mut send, hello).await.expect("written");
        let ack = in_time(read_hello_ack(&mut recv)).await.expect("an answer");
        (connection, send, recv, ack)
    }

    /// The code that `hello` gets.
    async fn refused(&self, to: &Host, hello: &Hello) -> i32 {
        let (connection, _send, _recv, ack) = self.say_hello(to, hello).await;
        let closed = in_time(connection.closed()).await;
        assert_eq!(DialError::from(closed).code(), ack.code);
        ack.code
    }

    /// Enters the room as a member.
    async fn join(&self, to: &Host) -> Member {
        let before = to.times(&joined(&self.name));
        let member = self.join_unseen(to, &self.hello()).await;
        to.wait_for(joined(&self.name), before + 1).await;
        member
    }

    /// [`Attacker::join`] as a member that may lead: members ignore an observer's claim.
    async fn join_to_lead(&self, to: &Host) -> Member {
        let before = to.times(&joined(&self.name));
        let hello = Hello {
            eligible: true,
            ..self.hello()
        };
        let member = self.join_unseen(to, &hello).await;
        to.wait_for(joined(&self.name), before + 1).await;
        member
    }

    async fn join_unseen(&self, to: &Host, hello: &Hello) -> Member {
        let (connection, send, recv, ack) = self.say_hello(to, hello).await;
        assert_eq!(ack.code, 0, "{} is admitted", self.name);
        let mut member = Member {
            connection,
            control: send,
            recv,
            key: self.proof.own_key,
            incarnation: hello.incarnation,
            lane: None,
            beats: 0,
        };
        member.send_bytes(&first_words()).await;
        let ready = in_time(read_frame(&mut member.recv, 8)).await;
        let ready = ready.expect("an answer");
        assert_eq!(postcard::from_bytes(&ready), Ok(ControlFrame::Ready));
        member
    }
}

/// The first frames of a member on the control stream of a link: it accepts the link, and this host
/// missed none of its messages.
fn first_words() -> BytesMut {
    let mut words = BytesMut::new();
    for frame in [ControlFrame::Ready, ControlFrame::Resume { missed: 0 }] {
        put_value(&mut words, &frame).expect("encodes");
    }
    words
}

/// An attacker's end of a link to a member.
struct Member {
    connection: Connection,
    control: SendStream,
    recv: RecvStream,
    key: Fingerprint,
    incarnation: Incarnation,
    lane: Option<SendStream>,
    /// Number of heartbeats sent.
    beats: u64,
}

impl Member {
    async fn emit<T: Serialize>(&mut self, value: &T) {
        let mut buffer = BytesMut::new();
        put_value(&mut buffer, value).expect("encodes");
        self.send_bytes(&buffer).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        // The other end may have given the link up meanwhile.
        let _ = in_time(self.control.write_all(bytes)).await;
    }

    /// Sends a message of the core. A heartbeat gets the next number: an older one would be ignored.
    async fn notify_core(&mut self, mut message: Message) {
        let incarnation = self.incarnation;
        if let Message::Heartbeat(heartbeat) = &mut message {
            self.beats += 1;
            heartbeat.seq = self.beats;
        }
        self.emit(&ControlFrame::Core(Envelope {
            incarnation,
            message,
        }))
        .await;
    }

    async fn open_lane(&self, header: LaneHeader) -> SendStream {
        let mut lane = in_time(self.connection.open_uni()).await.expect("a lane");
        let mut buffer = BytesMut::new();
        put_value(&mut buffer, &header).expect("encodes");
        lane.write_all(&buffer).await.expect("written");
        lane
    }

    async fn send_on_lane(&mut self, bytes: &[u8]) {
        if self.lane.is_none() {
            self.lane = Some(self.open_lane(LaneHeader { lane: 0 }).await);
        }
        let lane = self.lane.as_mut().expect("just opened");
        let _ = in_time(lane.write_all(bytes)).await;
    }

    async fn send_as(&mut self, seq: u64, msg_type: u16, role: MessageRole, payload: &[u8]) {
        let frame = message_frame(seq, msg_type, 0, role, payload);
        self.send_on_lane(&frame).await;
    }

    async fn send(&mut self, seq: u64, payload: &[u8]) {
        self.send_as(seq, 0x0100, MessageRole::Peer, payload).await;
    }

    /// The code with which the other end closes the link.
    async fn closed(&self) -> VarInt {
        let code = self.closed_or_reset().await;
        code.expect("the other end closed the link, and did not reset it")
    }

    /// The code with which the other end closes the link. `None` for a reset: a flood can make the machine drop the packet with
    /// the code, and once the other end has forgotten the link it answers further packets by a reset.
    async fn closed_or_reset(&self) -> Option<VarInt> {
        match in_time(self.connection.closed()).await {
            ConnectionError::ApplicationClosed(closed) => Some(closed.error_code),
            ConnectionError::Reset => None,
            other => panic!("the other end did not close the link: {other}"),
        }
    }
}
