//! Sessions with peers and the links that carry them.
//!
//! A session lasts from Joined to Left and belongs to one life of a peer; its messages are numbered through.
//! Two links between the same two peers may come about at once; the one that the smaller id dialled is kept,
//! and the other is closed as soon as the peer speaks on the kept one.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quinn::{ConnectionError, VarInt};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::driver::Driver;
use crate::core::election::Election;
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::node::{AdmissionRefusal, Command, Input, LeftReason, LinkEnd, LinkUp};
use crate::core::wire::{Envelope, Hello, HelloAck, Probe};
use crate::dispatch::Event as HostEvent;
use crate::error::Code;
use crate::net::dial::{Ask, Attach, Reservation};
use crate::net::frame::ControlFrame;
use crate::net::identity::close_code;
use crate::net::lane::Ending;
use crate::net::link::{Link, LinkEvent, LinkId, STALLED, close};
use crate::net::socket;

/// How long a peer's last messages are read after its farewell.
const DEPARTURE_LIMIT: Duration = Duration::from_millis(2500);
/// Peers whose last messages are read after their farewell, at most.
const MAX_DEPARTING: usize = 64;
/// Links that wait for the other end's close after a farewell, at most.
const MAX_LINGERING: usize = 64;
/// Links of one session beside the kept one, at most. Two honest ends never make more than one.
const MAX_RETIRED_LINKS: usize = 2;
/// Departures that the host is still to be told of, at most: nobody is admitted beyond, so that members that
/// come and go do not fill the memory of a host that looks away.
const MAX_UNTOLD_DEPARTURES: usize = 256;
/// Keys whose ended sessions are counted, at most.
const MAX_COUNTED_KEYS: usize = 1024;

/// All sessions and links.
#[derive(Default)]
pub(super) struct Sessions {
    sessions: BTreeMap<PeerId, Session>,
    departing: BTreeMap<LinkId, Departing>,
    /// Which peer a link belongs to.
    owners: BTreeMap<LinkId, PeerId>,
    /// How many sessions with the holder of a key have ended.
    ended: BTreeMap<Fingerprint, u32>,
    /// Places kept for admissions that go on.
    reserved: BTreeMap<PeerId, (Fingerprint, Weak<()>)>,
    /// Who left and whose Left the host may not have been told yet, oldest first.
    untold: VecDeque<PeerId>,
    /// Held by every link that waits for the other end's close.
    lingering: Arc<()>,
    links: u64,
}

struct Session {
    link_id: LinkId,
    link: Link,
    /// Whether we dialled the link.
    dialled: bool,
    /// Links that lost to the present one.
    retired: BTreeMap<LinkId, Link>,
    generation: u32,
    incarnation: Incarnation,
    key: Fingerprint,
    /// The next message expected from the peer.
    next_seq: Arc<AtomicU64>,
    close_code: VarInt,
    close_reason: &'static str,
}

/// A peer that said farewell, while its last messages are read.
struct Departing {
    peer: PeerId,
    link: Link,
    until: Instant,
}

/// How much of everything there is, for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) connections: usize,
    pub(super) sessions: usize,
    pub(super) links: usize,
    pub(super) departing: usize,
    pub(super) reserved: usize,
}

#[cfg(test)]
impl Sessions {
    pub(super) fn census(&self, connections: usize) -> Census {
        Census {
            connections,
            sessions: self.sessions.len(),
            links: self.owners.len(),
            departing: self.departing.len(),
            reserved: self.reserved().count(),
        }
    }
}

impl Sessions {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.departing
            .values()
            .map(|departing| departing.until)
            .min()
    }

    /// Peers whose admission goes on.
    pub(super) fn reserved(&self) -> impl Iterator<Item = &PeerId> {
        self.reserved
            .iter()
            .filter(|(_, (_, place))| place.strong_count() > 0)
            .map(|(peer, _)| peer)
    }

    /// Peers from which anything arrived since they were probed.
    pub(super) fn heard_since_probe(&mut self) -> Vec<PeerId> {
        self.sessions
            .iter_mut()
            .filter_map(|(peer, session)| {
                session.link.was_heard_since_probe().then(|| peer.clone())
            })
            .collect()
    }

    pub(super) fn transmit(&self, to: &PeerId, envelope: Envelope) {
        let link = match self.sessions.get(to) {
            Some(session) => Some(&session.link),
            None => self
                .departing
                .values()
                .find(|departing| departing.peer == *to)
                .map(|departing| &departing.link),
        };
        let Some(link) = link else {
            return;
        };
        if !link.send_control(ControlFrame::Core(envelope)) {
            // It takes nothing, not even heartbeats: the close ends the session.
            tracing::warn!(peer = %to, "the peer takes no control messages");
            link.close(close::LOST, STALLED);
        }
    }

    pub(super) fn send_probe(&mut self, to: &PeerId, probe: Probe) {
        if let Some(session) = self.sessions.get_mut(to) {
            session.link.send_probe(probe);
        }
    }

    /// What the other end will be told when the session ends, which is about to happen.
    pub(super) fn set_close_reason(&mut self, peer: &PeerId, why: LinkEnd) {
        if let Some(session) = self.sessions.get_mut(peer) {
            (session.close_code, session.close_reason) = match why {
                LinkEnd::Silent => (close::LOST, "silent for the heartbeat timeout"),
                LinkEnd::Disconnected => (close::DISCONNECTED, "disconnected by the host"),
                LinkEnd::Violation(what) => {
                    tracing::warn!(%peer, what, "the peer broke the protocol");
                    (close::VIOLATION, what)
                }
                LinkEnd::Closed | LinkEnd::Replaced => (close::DONE, ""),
            };
        }
    }

    /// Ends the own lanes before the farewell.
    pub(super) fn end_lanes(&mut self, flushed: bool) {
        let ending = if flushed {
            Ending::Finish
        } else {
            Ending::Reset
        };
        for session in self.sessions.values_mut() {
            session.link.end_lane(ending);
        }
    }

    fn ended(&self, key: Fingerprint) -> u32 {
        self.ended.get(&key).copied().unwrap_or(0)
    }

    fn count_ended(&mut self, key: Fingerprint, ended: u32) {
        if self.ended.len() >= MAX_COUNTED_KEYS && !self.ended.contains_key(&key) {
            self.ended.pop_first();
        }
        self.ended.insert(key, ended);
    }

    fn is_departing(&self, peer: &PeerId) -> bool {
        self.departing
            .values()
            .any(|departing| departing.peer == *peer)
    }

    /// Keeps a link alive until the other end closes it, so that our last answer gets there.
    fn linger(&self, mut link: Link) {
        link.stop_lanes();
        if Arc::strong_count(&self.lingering) > MAX_LINGERING {
            link.close(close::DONE, "");
            return;
        }
        let place = Arc::clone(&self.lingering);
        tokio::spawn(async move {
            let closed = link.connection.closed();
            // Whatever ended the wait, the link is closed and dropped.
            let _ = tokio::time::timeout(DEPARTURE_LIMIT, closed).await;
            link.close(close::DONE, "");
            drop(place);
        });
    }

    /// Keeps a place for a peer that is being admitted.
    fn reserve(&mut self, peer: &PeerId, key: Fingerprint) -> Reservation {
        let place = Reservation::default();
        self.reserved
            .insert(peer.clone(), (key, Arc::downgrade(&place)));
        place
    }
}

/// Admissions ask.
impl Driver {
    pub(super) fn asked(&mut self, ask: Ask) {
        // Whoever asked may have given up; then the answer is dropped.
        match ask {
            Ask::Hello {
                key,
                by_hand,
                answer,
            } => {
                let linked = self.sessions.sessions.values().any(|s| s.key == key);
                let _ = answer.send(if linked {
                    Err(Code::AlreadyConnected)
                } else {
                    Ok(self.hello(self.sessions.ended(key), by_hand))
                });
            }
            Ask::Check {
                mut hello,
                key,
                by_hand,
                answer,
            } => {
                hello.by_hand = by_hand;
                let _ = answer.send(self.admit(&hello, key));
            }
            Ask::Admit { hello, key, answer } => {
                let admitted = self.admit(&hello, key);
                let ack = HelloAck {
                    code: admitted.as_ref().err().unwrap_or(&Code::Ok).value(),
                    bytes: Vec::new(),
                    hello: self.hello(self.sessions.ended(key), false),
                };
                let _ = answer.send((ack, admitted.ok()));
            }
            Ask::Linked { addresses, answer } => {
                let mut known = self
                    .node
                    .membership()
                    .iter()
                    .flat_map(|(_, member)| &member.addresses);
                let _ = answer.send(known.any(|address| addresses.contains(address)));
            }
            Ask::Attach(attach, answer) => self.attach(*attach, answer),
        }
    }

    /// Decides on a peer, and keeps a place for it.
    fn admit(&mut self, hello: &Hello, key: Fingerprint) -> Result<Reservation, Code> {
        self.node.check_hello(hello, key).map_err(|refusal| {
            tracing::info!(peer = %hello.peer_id, %refusal, "not admitted");
            match refusal {
                AdmissionRefusal::DuplicatePeerId(_) => Code::DuplicatePeerId,
                AdmissionRefusal::Full(_) => Code::MaxConnectionsReached,
                AdmissionRefusal::Policy { .. } => Code::PolicyMismatch,
                AdmissionRefusal::Barred(_) => Code::Rejected,
                AdmissionRefusal::Leaving => Code::ConnectionFailed,
            }
        })?;
        self.end_outlived_session(hello);
        let peer = &hello.peer_id;
        // The id is free again only when the host knows that its last bearer is gone.
        if self.sessions.is_departing(peer) || self.shared.dispatch.has_undelivered_left(peer) {
            return Err(Code::DuplicatePeerId);
        }
        if self.untold_departures() >= MAX_UNTOLD_DEPARTURES {
            return Err(Code::MaxConnectionsReached);
        }
        self.sessions
            .reserved
            .retain(|_, (_, place)| place.strong_count() > 0);
        match self.sessions.reserved.get(peer) {
            Some((reserved_for, _)) if *reserved_for != key => return Err(Code::DuplicatePeerId),
            _ => {}
        }
        if self.node.membership().get(peer).is_none() {
            let newcomers = self
                .sessions
                .reserved()
                .filter(|id| *id != peer && self.node.membership().get(id).is_none())
                .count();
            if self.node.membership().len() + newcomers >= self.shared.config.max_connections {
                return Err(Code::MaxConnectionsReached);
            }
        }
        if let Some((_, place)) = self.sessions.reserved.get(peer)
            && let Some(place) = place.upgrade()
        {
            return Ok(place);
        }
        Ok(self.sessions.reserve(peer, key))
    }

    /// How many departures the host is still to be told of. It is told in order.
    fn untold_departures(&mut self) -> usize {
        while let Some(oldest) = self.sessions.untold.front() {
            if self.shared.dispatch.has_undelivered_left(oldest) {
                break;
            }
            self.sessions.untold.pop_front();
        }
        self.sessions.untold.len()
    }

    fn tell_left(&mut self, peer: PeerId) {
        self.sessions.untold.push_back(peer.clone());
        self.shared.dispatch.push(HostEvent::Left(peer));
    }

    /// A peer that says that it has ended our session with it, or that has restarted, is believed: it holds
    /// the key.
    fn end_outlived_session(&mut self, hello: &Hello) {
        let Some(session) = self.sessions.sessions.get(&hello.peer_id) else {
            return;
        };
        let why = if hello.incarnation > session.incarnation {
            LinkEnd::Replaced
        } else if hello.generation > session.generation {
            LinkEnd::Silent // it lives, but has not heard us for a while
        } else {
            return;
        };
        self.feed(Input::LinkDown {
            peer: hello.peer_id.clone(),
            why,
        });
    }

    fn attach(&mut self, attach: Attach, answer: oneshot::Sender<Result<(), Code>>) {
        let Attach {
            link,
            theirs,
            key,
            our_side,
            our_generation,
            dialled,
            by_hand,
            reservation,
        } = attach;
        let peer = theirs.peer_id.clone();
        let connection = link.connection.clone();
        let generation = our_generation.max(theirs.generation);
        let mut checked = theirs.clone();
        checked.by_hand |= by_hand;
        // The place is ours until here; what happened meanwhile may still stand against the link.
        let admitted = if answer.is_closed() {
            Err(Code::Timeout) // whoever asked has given up
        } else if generation < self.sessions.ended(key) {
            Err(Code::ConnectionFailed)
        } else {
            self.admit(&checked, key)
        };
        if let Err(code) = admitted {
            // Before the streams are dropped: the other end may have the link, and would take the end of the
            // control stream for an offence.
            connection.close(close_code(code.value()), b"");
            let _ = answer.send(Err(code));
            return;
        }
        drop(reservation);
        self.sessions.reserved.remove(&peer);

        self.sessions.links += 1;
        let id = LinkId(self.sessions.links);
        let link = Link::start(id, link, &self.surroundings);
        self.sessions.owners.insert(id, peer.clone());
        if self.sessions.sessions.contains_key(&peer) {
            self.attach_second(id, link, &peer, dialled);
            let _ = answer.send(Ok(()));
            return;
        }
        let session = Session {
            link_id: id,
            link,
            dialled,
            retired: BTreeMap::new(),
            generation,
            incarnation: theirs.incarnation,
            key,
            next_seq: Arc::default(),
            close_code: close::DONE,
            close_reason: "",
        };
        self.sessions.sessions.insert(peer.clone(), session);
        let limit = usize::try_from(theirs.max_message_size).unwrap_or(usize::MAX);
        let limit = limit.min(self.shared.config.max_message_size);
        self.shared.outboxes.open(&peer, limit);
        if by_hand || theirs.by_hand {
            self.feed(Input::Command(Command::Unbar(peer.clone())));
        }
        let seen_at = socket::canonical(connection.remote_address());
        let listens_at = SocketAddr::new(seen_at.ip(), theirs.listen_port);
        self.feed(Input::LinkUp(Box::new(LinkUp {
            peer: peer.clone(),
            incarnation: theirs.incarnation,
            key,
            addresses: vec![listens_at],
            eligible: theirs.eligible,
            priority: theirs.priority,
            ours: our_side,
            theirs: theirs.side,
        })));
        // Joined is in the host's queue; messages may follow.
        if let Some(session) = self.sessions.sessions.get_mut(&peer) {
            session
                .link
                .start_lanes(id, &peer, &session.next_seq, &self.surroundings);
        }
        let _ = answer.send(Ok(()));
    }

    /// A second link in one session: both ends dialled. Both keep the one that the smaller id dialled.
    fn attach_second(&mut self, id: LinkId, mut link: Link, peer: &PeerId, dialled: bool) {
        let me = self.shared.peer_id.clone();
        let Some(session) = self.sessions.sessions.get_mut(peer) else {
            return;
        };
        // Twice from the same end: it lost the first.
        let wins = session.dialled == dialled || dialled == (me < *peer);
        if wins {
            session.link.stop_lanes();
            link.start_lanes(id, peer, &session.next_seq, &self.surroundings);
            let loser = std::mem::replace(&mut session.link, link);
            session.retired.insert(session.link_id, loser);
            session.link_id = id;
            session.dialled = dialled;
        } else {
            session.retired.insert(id, link);
        }
        while session.retired.len() > MAX_RETIRED_LINKS {
            let Some((id, oldest)) = session.retired.pop_first() else {
                break;
            };
            oldest.close(close::SUPERSEDED, "too many links");
            self.sessions.owners.remove(&id);
        }
    }
}

/// Links tell.
impl Driver {
    pub(super) fn link_event(&mut self, id: LinkId, event: LinkEvent) {
        let Some(peer) = self.sessions.owners.get(&id).cloned() else {
            return;
        };
        if self.sessions.departing.contains_key(&id) {
            self.departing_event(id, &peer, event);
            return;
        }
        let is_current = self
            .sessions
            .sessions
            .get(&peer)
            .is_some_and(|session| session.link_id == id);
        match event {
            LinkEvent::Control(envelope) => {
                if is_current {
                    self.close_retired(&peer);
                }
                self.feed(Input::Message {
                    from: peer,
                    envelope,
                });
            }
            LinkEvent::Datagram(probe) => self.feed(Input::Datagram { from: peer, probe }),
            LinkEvent::Acked(next) => {
                if !self.shared.outboxes.acked(&peer, next) {
                    self.broken(peer, "an ack of a message that was never sent");
                }
            }
            LinkEvent::Stamped(record, answer) => {
                let now = self.now();
                let accepted = self.node.accept_leader_message(now, &peer, &record);
                self.carry_out();
                // The reader may be gone by now.
                let _ = answer.send(accepted);
            }
            LinkEvent::LaneDone => {}
            LinkEvent::Violation(what) => self.broken(peer, what),
            LinkEvent::Closed(error) => self.link_closed(id, peer, is_current, &error),
        }
    }

    fn broken(&mut self, peer: PeerId, what: &'static str) {
        let why = LinkEnd::Violation(what);
        self.sessions.set_close_reason(&peer, why);
        self.feed(Input::LinkDown { peer, why });
    }

    /// The peer speaks on the kept link, so it has it too: the others may go.
    fn close_retired(&mut self, peer: &PeerId) {
        if let Some(session) = self.sessions.sessions.get_mut(peer) {
            for (id, link) in std::mem::take(&mut session.retired) {
                link.close(close::SUPERSEDED, "another link is kept");
                self.sessions.owners.remove(&id);
            }
        }
    }

    fn link_closed(&mut self, id: LinkId, peer: PeerId, is_current: bool, error: &ConnectionError) {
        self.sessions.owners.remove(&id);
        let Some(session) = self.sessions.sessions.get_mut(&peer) else {
            return;
        };
        if !is_current {
            session.retired.remove(&id);
            return;
        }
        let code = match error {
            ConnectionError::ApplicationClosed(closed) => Some(closed.error_code),
            _ => None,
        };
        let why = match code {
            Some(close::DISCONNECTED) => LinkEnd::Disconnected,
            // It lives, but did not hear us; or it keeps another link than we, which honest ends never do.
            Some(close::LOST | close::SUPERSEDED) => LinkEnd::Silent,
            _ if *error == ConnectionError::TimedOut => LinkEnd::Silent,
            _ => LinkEnd::Closed,
        };
        tracing::debug!(%peer, %error, "a link ended");
        self.feed(Input::LinkDown { peer, why });
    }

    /// The core has ended a session. Left is told to the host after the peer's last message.
    pub(super) fn session_ended(&mut self, peer: &PeerId, why: LeftReason) {
        let Some(session) = self.sessions.sessions.remove(peer) else {
            self.tell_left(peer.clone());
            return;
        };
        let undelivered = self.shared.outboxes.close(peer);
        if undelivered > 0 {
            tracing::info!(%peer, undelivered, "messages are not known to be delivered");
        }
        self.sessions
            .count_ended(session.key, session.generation.saturating_add(1));
        for (id, link) in session.retired {
            link.close(session.close_code, session.close_reason);
            self.sessions.owners.remove(&id);
        }
        if why == LeftReason::Left {
            let departing = Departing {
                peer: peer.clone(),
                link: session.link,
                until: Instant::now() + DEPARTURE_LIMIT,
            };
            self.sessions.departing.insert(session.link_id, departing);
            if self.sessions.departing.len() > MAX_DEPARTING
                && let Some(oldest) = self.sessions.departing.keys().next().copied()
            {
                self.departed(oldest);
            }
            return;
        }
        self.sessions.owners.remove(&session.link_id);
        session.link.close(session.close_code, session.close_reason);
        // Dropping the link stops its reader: nothing of this peer follows.
        drop(session.link);
        self.tell_left(peer.clone());
    }

    fn departing_event(&mut self, id: LinkId, peer: &PeerId, event: LinkEvent) {
        match event {
            LinkEvent::Stamped(record, answer) => {
                // It spoke as leader before it left; what is known since decides.
                let named = self.node.election().record().leader.as_ref();
                let accepted =
                    record.leader.as_ref() == Some(peer) && named.is_none_or(|id| id == peer);
                let _ = answer.send(accepted);
            }
            LinkEvent::LaneDone | LinkEvent::Violation(_) | LinkEvent::Closed(_) => {
                self.departed(id);
            }
            LinkEvent::Control(_) | LinkEvent::Datagram(_) | LinkEvent::Acked(_) => {}
        }
    }

    /// Departures whose last messages took too long.
    pub(super) fn finish_departures(&mut self, now: Instant) {
        let over: Vec<_> = self
            .sessions
            .departing
            .iter()
            .filter(|(_, departing)| now >= departing.until)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.departed(id);
        }
    }

    fn departed(&mut self, id: LinkId) {
        if let Some(departing) = self.sessions.departing.remove(&id) {
            self.sessions.owners.remove(&id);
            self.tell_left(departing.peer);
            // The connection is the leaver's to close; it may still wait for our answer.
            self.sessions.linger(departing.link);
        }
    }
}
