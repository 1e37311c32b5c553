//! A session with a TURN server: an allocation, the peers that it admits, and packets in both directions.
//!
//! `turn-client-proto` speaks the protocol. It does not say why a server refuses, so this reads the server's errors beside it.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use turn_client_proto::api::{
    CreatePermissionError, TurnClientApi, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet,
};
use turn_client_proto::client::TurnClient;
use turn_client_proto::prelude::DelayedTransmitBuild;
use turn_client_proto::stun::Instant as StunInstant;
use turn_client_proto::stun::agent::Transmit;
use turn_client_proto::tcp::TurnClientTcp;
use turn_client_proto::types::attribute::Lifetime;
use turn_client_proto::types::message::{ALLOCATE, CREATE_PERMISSION, REFRESH};
use turn_client_proto::types::stun::attribute::{ErrorCode, Nonce, Realm, Username};
use turn_client_proto::types::stun::message::{
    IntegrityAlgorithm, LongTermKeyCredentials, Message, MessageClass, MessageIntegrityCredentials,
    MessageWrite, MessageWriteExt, MessageWriteVec, StunWriteError, TransactionId,
};
use turn_client_proto::types::{TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;

use super::line::Line;
use super::{Fault, Refusal};
use crate::config::{TurnServer, TurnTransport};
use crate::core::address::is_dialable;
use crate::core::bounded::BoundedMap;
use crate::net::tunnel::Tunnels;
use crate::net::turn_port::Departure;

/// Time within which a server must give a port.
const ALLOCATED_WITHIN: Duration = Duration::from_secs(12);
/// Repetitions of a request over UDP: the first wait, the longest, the number of packets, and the wait after the last.
const RETRANSMITS: (Duration, Duration, u32, Duration) = (
    Duration::from_millis(500),
    Duration::from_secs(2),
    5,
    Duration::from_secs(3),
);
/// Addresses that the server admits, at most. It forgets none while the session lasts.
const MAX_ADMITTED: usize = 256;
/// Of these, the addresses that only others have named, at most: a member that names ever more of them leaves room for the ones to
/// which this node sends.
const MAX_ADMITTED_BY_HEARSAY: usize = 128;
/// Requests whose answers are awaited, at most; the oldest are forgotten.
const MAX_ASKED: usize = 1024;
/// Packets to a peer that wait until the server admits it, at most; the oldest is dropped.
const MAX_WAITING: usize = 8;
/// Time after which the server is asked again to admit a peer that it refused.
const REFUSED_FOR: Duration = Duration::from_secs(30);
/// Peers with a channel, at most: packets to others have longer headers.
const MAX_CHANNELS: usize = 256;
/// A server that has sent nothing for this long is asked whether it still has the port, as one that was restarted has not: a router
/// forgets silent UDP after 30 s or more (RFC 9308 section 3.2).
const SILENCE: Duration = Duration::from_secs(15);
/// Time between two such questions, and their number.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(2);
const QUESTIONS: u32 = 4;
/// Messages or packets that are handled before the protocol's timers are looked at.
const BATCH: usize = 32;
/// Shortest wait for a timer of the protocol.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Shortest wait while the line takes nothing.
const FULL_WAIT: Duration = Duration::from_millis(20);
/// Lifetime of the port that a question asks for, in seconds: what `turn-client-proto` asks for.
const LIFETIME_SECONDS: u32 = 1800;
/// Time for the server to take the port back.
pub(super) const RELEASE_LIMIT: Duration = Duration::from_millis(200);

/// An address that may send to this node.
#[derive(Debug)]
enum Admission {
    /// The server was asked; these packets wait.
    Asked(VecDeque<(SocketAddrV4, Bytes)>),
    /// It admits the address.
    Granted,
    /// It has refused.
    Refused(Instant),
}

/// A session.
pub(super) struct Session {
    line: Line,
    client: TurnClient,
    tunnels: Arc<Tunnels>,
    /// The beginning of the client's time.
    began: Instant,
    allocated: Option<SocketAddrV4>,
    /// Requests for a port that lacked the credentials.
    challenges: u32,
    refusal: Option<Refusal>,
    username: String,
    password: String,
    /// The last that the server named.
    realm: Option<String>,
    nonce: Option<String>,
    /// The requests without an answer, the oldest first.
    asked: VecDeque<TransactionId>,
    /// The last question.
    question: Option<TransactionId>,
    admissions: BoundedMap<Ipv4Addr, Admission, MAX_ADMITTED>,
    /// Whether it was reported that there are too many.
    is_full: bool,
    channels: BoundedMap<SocketAddrV4, (), MAX_CHANNELS>,
    heard_at: Instant,
    questions: u32,
}

impl Session {
    pub(super) fn new(line: Line, server: &TurnServer, tunnels: Arc<Tunnels>) -> Self {
        // The password was UTF-8 when it was read.
        let password = String::from_utf8_lossy(server.password.bytes());
        let mut config = TurnConfig::new(TurnCredentials::new(&server.username, &password));
        let (initial, longest, number, last) = RETRANSMITS;
        config.set_request_retransmits(initial, longest, number, last);
        let client = match server.transport {
            TurnTransport::Udp => TurnClientUdp::allocate(line.local, line.server, config).into(),
            TurnTransport::Tcp | TurnTransport::Tls => {
                TurnClientTcp::allocate(line.local, line.server, config).into()
            }
        };
        Self {
            line,
            client,
            tunnels,
            began: Instant::now(),
            allocated: None,
            challenges: 0,
            refusal: None,
            username: server.username.clone(),
            password: password.into_owned(),
            realm: None,
            nonce: None,
            asked: VecDeque::new(),
            question: None,
            admissions: BoundedMap::default(),
            is_full: false,
            channels: BoundedMap::default(),
            heard_at: Instant::now(),
            questions: 0,
        }
    }

    /// Asks for a port.
    pub(super) async fn allocate(&mut self) -> Result<SocketAddr, Fault> {
        let limit = Instant::now() + ALLOCATED_WITHIN;
        loop {
            let wait = self.poll()?.min(limit);
            if let Some(address) = self.allocated {
                return Ok(address.into());
            }
            if Instant::now() >= limit {
                return Err(Fault::NoAnswer);
            }
            tokio::select! {
                message = self.line.incoming.recv() => self.received_or_ended(message).await?,
                () = sleep_until(wait) => {}
            }
        }
    }

    /// Carries packets until the session ends. Returns why.
    pub(super) async fn carry(&mut self) -> Fault {
        loop {
            if let Err(fault) = self.carry_once().await {
                return fault;
            }
        }
    }

    async fn carry_once(&mut self) -> Result<(), Fault> {
        let wait = self.poll()?.min(self.next_question());
        let tunnels = Arc::clone(&self.tunnels);
        let outgoing = &self.line.outgoing;
        // Without room for it in the line, what waits grows old in the port.
        let departs = async {
            let has_room = outgoing.reserve().await.is_ok();
            match has_room {
                true => Some(tunnels.turn().next().await),
                false => None,
            }
        };
        tokio::select! {
            message = self.line.incoming.recv() => {
                self.received_or_ended(message).await?;
                for _ in 1..BATCH {
                    let Ok(message) = self.line.incoming.try_recv() else {
                        break;
                    };
                    self.received(message)?;
                }
            }
            departure = departs => {
                let Some(departure) = departure else {
                    return Err(self.line.fault().await);
                };
                self.depart(departure);
                for _ in 1..BATCH {
                    if self.line.outgoing.capacity() == 0 {
                        break;
                    }
                    let Some(departure) = tunnels.turn().try_next() else {
                        break;
                    };
                    self.depart(departure);
                }
            }
            () = sleep_until(wait) => self.ask_if_silent()?,
        }
        Ok(())
    }

    /// Gives the port back, as far as the line takes the request.
    pub(super) async fn release(mut self) {
        if self.client.delete(self.now()).is_err() {
            return;
        }
        let limit = Instant::now() + RELEASE_LIMIT;
        while let Ok(wait) = self.poll() {
            if Instant::now() >= limit {
                return;
            }
            tokio::select! {
                message = self.line.incoming.recv() => match message {
                    Some(message) => drop(self.received(message)),
                    None => return,
                },
                () = sleep_until(wait.min(limit)) => {}
            }
        }
    }

    /// Lets the protocol go on. Returns when it wants to again.
    pub(super) fn poll(&mut self) -> Result<Instant, Fault> {
        let now = self.now();
        while let Some(event) = self.client.poll_event() {
            self.happened(event)?;
        }
        while self.line.outgoing.capacity() > 0 {
            let Some(transmit) = self.client.poll_transmit(now) else {
                break;
            };
            let message = transmit.data.to_vec();
            self.note_request(&message);
            self.write(message);
        }
        match self.client.poll(now) {
            TurnPollRet::WaitUntil(at) => {
                let shortest = match self.line.outgoing.capacity() {
                    0 => FULL_WAIT,
                    _ => SHORTEST_WAIT,
                };
                let wait = at.duration_since(now).max(shortest);
                Ok(Instant::now() + wait)
            }
            TurnPollRet::Closed => {
                while let Some(event) = self.client.poll_event() {
                    self.happened(event)?;
                }
                Err(self.refusal.take().map_or(Fault::NoAnswer, Fault::Refused))
            }
            // Of allocations of TCP, which this never asks for.
            TurnPollRet::AllocateTcpSocket { .. } | TurnPollRet::TcpClose { .. } => {
                Err(Fault::Malformed)
            }
        }
    }

    fn happened(&mut self, event: TurnEvent) -> Result<(), Fault> {
        match event {
            TurnEvent::AllocationCreated(_, address) => match address {
                SocketAddr::V4(v4) if is_dialable(address) => self.allocated = Some(v4),
                _ => return Err(Fault::Malformed),
            },
            TurnEvent::AllocationCreateFailed(_) => {
                return Err(self.refusal.take().map_or(Fault::NoAnswer, Fault::Refused));
            }
            TurnEvent::PermissionCreated(_, IpAddr::V4(ip)) => {
                if let Some(before) = self.admissions.get_mut(&ip)
                    && let Admission::Asked(waiting) = std::mem::replace(before, Admission::Granted)
                {
                    for (peer, packet) in waiting {
                        self.send(peer, packet);
                    }
                }
            }
            TurnEvent::PermissionCreateFailed(_, IpAddr::V4(ip)) => {
                if let Some(admission) = self.admissions.get_mut(&ip) {
                    *admission = Admission::Refused(Instant::now());
                }
            }
            TurnEvent::ChannelCreateFailed(_, SocketAddr::V4(peer)) => {
                self.channels.remove(&peer);
            }
            _ => {}
        }
        Ok(())
    }

    async fn received_or_ended(&mut self, message: Option<Bytes>) -> Result<(), Fault> {
        match message {
            Some(message) => self.received(message),
            None => Err(self.line.fault().await),
        }
    }

    pub(super) fn received(&mut self, message: Bytes) -> Result<(), Fault> {
        if !self.is_expected(&message)? {
            return Ok(());
        }
        self.heard_at = Instant::now();
        self.questions = 0;
        let now = self.now();
        let transport = self.client.transport();
        let received = Transmit::new(message, transport, self.line.server, self.line.local);
        if let TurnRecvRet::PeerData(packet) = self.client.recv(received, now)
            && let SocketAddr::V4(peer) = packet.peer
        {
            self.tunnels.arrive_from_turn(peer, packet.data());
        }
        Ok(())
    }

    /// Notes a request that goes to the server; it may be a repetition.
    fn note_request(&mut self, message: &[u8]) {
        if let Ok(message) = Message::from_bytes(message)
            && message.has_class(MessageClass::Request)
            && !self.asked.contains(&message.transaction_id())
        {
            self.asked.push_back(message.transaction_id());
            if self.asked.len() > MAX_ASKED {
                self.asked.pop_front();
            }
        }
    }

    /// Whether this node waits for such a message: it may be a packet of a peer, or the first answer to a request. Others do not know a
    /// request's number, and the server's second answer to a request that was repeated means nothing.
    fn is_expected(&mut self, message: &[u8]) -> Result<bool, Fault> {
        // The first two bits of STUN; packets on channels need not be read twice.
        if message.first().is_none_or(|first| first >> 6 != 0) {
            return Ok(true);
        }
        let Ok(message) = Message::from_bytes(message) else {
            return Ok(false);
        };
        match message.class() {
            MessageClass::Indication => return Ok(true),
            // A server of UDP asks nothing.
            MessageClass::Request => return Err(Fault::Malformed),
            MessageClass::Success | MessageClass::Error => {}
        }
        let id = message.transaction_id();
        let Some(place) = self.asked.iter().position(|asked| *asked == id) else {
            return Ok(false);
        };
        self.asked.remove(place);
        if message.has_class(MessageClass::Error) {
            self.note_error(&message)?;
        }
        Ok(true)
    }

    /// Notes an error of the server, which may end the session.
    fn note_error(&mut self, message: &Message<'_>) -> Result<(), Fault> {
        if let (Ok(realm), Ok(nonce)) = (message.attribute::<Realm>(), message.attribute::<Nonce>())
        {
            self.realm = Some(realm.realm().to_owned());
            self.nonce = Some(nonce.nonce().to_owned());
        }
        let Ok(error) = message.attribute::<ErrorCode>() else {
            return Ok(());
        };
        let (method, code) = (message.method(), error.code());
        let refusal = Refusal::new(code, error.reason());
        let has_port = self.allocated.is_some();
        match (method, code) {
            (_, ErrorCode::STALE_NONCE) => {}
            // Whatever it was asked for: it has been restarted.
            (_, ErrorCode::ALLOCATION_MISMATCH) if has_port => return Err(Fault::Refused(refusal)),
            // The server may let expired credentials have what they have.
            _ if self.question == Some(message.transaction_id()) => {}
            (ALLOCATE, ErrorCode::UNAUTHORIZED) => {
                // The first names what the credentials are for.
                self.challenges += 1;
                if self.challenges > 1 {
                    return Err(Fault::Refused(refusal));
                }
            }
            (ALLOCATE, _) => self.refusal = Some(refusal),
            (REFRESH, _) if has_port => return Err(Fault::Refused(refusal)),
            (CREATE_PERMISSION, _) => {
                tracing::debug!(%refusal, "the TURN server does not admit a peer");
            }
            _ => {}
        }
        Ok(())
    }

    fn depart(&mut self, departure: Departure) {
        match departure {
            Departure::Admit(ip) => self.admit(ip, MAX_ADMITTED_BY_HEARSAY),
            Departure::Packet(peer, packet) => {
                self.admit(*peer.ip(), MAX_ADMITTED);
                match self.admissions.get_mut(peer.ip()) {
                    Some(Admission::Granted) => self.send(peer, packet),
                    Some(Admission::Asked(waiting)) => {
                        if waiting.len() >= MAX_WAITING {
                            waiting.pop_front();
                        }
                        waiting.push_back((peer, packet));
                    }
                    // Lost, as on any line.
                    Some(Admission::Refused(_)) | None => {}
                }
            }
        }
    }

    /// Asks the server to admit an address, unless it was asked, and while it admits fewer than `most`.
    fn admit(&mut self, ip: Ipv4Addr, most: usize) {
        let is_due = match self.admissions.get(&ip) {
            None => true,
            Some(Admission::Refused(at)) => at.elapsed() >= REFUSED_FOR,
            Some(Admission::Asked(_) | Admission::Granted) => false,
        };
        if !is_due {
            return;
        }
        let has_room = self.admissions.len() < most || self.admissions.contains_key(&ip);
        let asked = Admission::Asked(VecDeque::new());
        if !has_room || self.admissions.insert(ip, asked).is_err() {
            if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(most, "the TURN server is asked to admit no more peers");
            }
            return;
        }
        let now = self.now();
        let created = self
            .client
            .create_permission(TransportType::Udp, ip.into(), now);
        match created {
            Ok(()) => {}
            Err(CreatePermissionError::AlreadyExists) => {
                if let Some(admission) = self.admissions.get_mut(&ip) {
                    *admission = Admission::Granted;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the TURN server was not asked to admit a peer");
                self.admissions.remove(&ip);
            }
        }
    }

    fn send(&mut self, peer: SocketAddrV4, packet: Bytes) {
        let now = self.now();
        let to = SocketAddr::V4(peer);
        if !self.channels.contains_key(&peer) && self.channels.insert(peer, ()).is_ok() {
            // Without one, packets have a longer header.
            if let Err(error) = self.client.bind_channel(TransportType::Udp, to, now) {
                tracing::debug!(%error, "no channel to a peer");
            }
        }
        match self.client.send_to(TransportType::Udp, to, packet, now) {
            Ok(Some(transmit)) => self.write_packet(transmit.data.build()),
            Ok(None) => {}
            // The server has forgotten the peer: the next packet asks again.
            Err(_) => {
                self.admissions.remove(peer.ip());
            }
        }
    }

    /// Writes a packet of a peer. In a stream it is filled up to a multiple of four (RFC 8656 section 12.5).
    fn write_packet(&self, mut packet: Vec<u8>) {
        if self.client.transport() == TransportType::Tcp {
            packet.resize(packet.len().next_multiple_of(4), 0);
        }
        self.write(packet);
    }

    fn write(&self, message: Vec<u8>) {
        // Lost without room, as on any line: callers that mind look for room first.
        let _ = self.line.outgoing.try_send(message);
    }

    fn next_question(&self) -> Instant {
        self.heard_at + SILENCE + BETWEEN_QUESTIONS * self.questions
    }

    /// Asks a silent server whether it still has the port.
    fn ask_if_silent(&mut self) -> Result<(), Fault> {
        if Instant::now() < self.next_question() {
            return Ok(());
        }
        if self.questions >= QUESTIONS {
            return Err(Fault::NoAnswer);
        }
        self.questions += 1;
        // Without an answer so far there is no port to ask for.
        if let (Some(realm), Some(nonce)) = (&self.realm, &self.nonce) {
            let question = self.question(realm, nonce).map_err(Fault::internal)?;
            self.note_request(&question);
            self.question = self.asked.back().copied();
            self.write(question);
        }
        Ok(())
    }

    /// A request to let this node keep its port. A binding request would not do: a server answers it that has forgotten the port.
    fn question(&self, realm: &str, nonce: &str) -> Result<Vec<u8>, StunWriteError> {
        let mut question = Message::builder_request(REFRESH, MessageWriteVec::new());
        question.add_attribute(&Lifetime::new(LIFETIME_SECONDS))?;
        question.add_attribute(&Username::new(&self.username)?)?;
        question.add_attribute(&Realm::new(realm)?)?;
        question.add_attribute(&Nonce::new(nonce)?)?;
        let (username, password) = (self.username.clone(), self.password.clone());
        let key = LongTermKeyCredentials::new(username, password, realm.to_owned());
        let key = MessageIntegrityCredentials::from(key);
        question.add_message_integrity(&key, IntegrityAlgorithm::Sha1)?;
        Ok(question.finish())
    }

    fn now(&self) -> StunInstant {
        let elapsed = self.began.elapsed().as_nanos();
        StunInstant::from_nanos(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }
}
