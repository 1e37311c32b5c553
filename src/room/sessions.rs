//! Sessions with peers and the links that carry them.
//!
//! A session lasts from Joined to Left and belongs to one life of a peer; its messages are numbered through.
//! Two links between the same two peers may come about at once; the one that the smaller id dialled is kept,
//! and the other is closed as soon as the peer speaks on the kept one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use quinn::{ConnectionError, VarInt};
use tokio::time::Instant;

use super::driver::Driver;
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::node::{Input, LeftReason, LinkEnd};
use crate::core::wire::{Envelope, Hello, Probe};
use crate::dispatch::{self, Event as HostEvent};
use crate::net::close;
use crate::net::events::{LinkEvent, LinkId};
use crate::net::frame::ControlFrame;
use crate::net::lane::Ending;
use crate::net::link::Link;

/// How long a peer's last messages are read after its farewell.
const DEPARTURE_LIMIT: Duration = Duration::from_millis(2500);
/// Peers whose last messages are read after their farewell, at most.
const MAX_DEPARTING: usize = 64;
/// Links that wait for the other end's close after a farewell, at most.
const MAX_LINGERING: usize = 64;
/// Links of one session beside the kept one, at most. Two honest ends never make more than one.
const MAX_RETIRED_LINKS: usize = 2;
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
    /// Who left and whose Left the host may not have been told yet, oldest first.
    untold: VecDeque<PeerId>,
    /// Held by every link that waits for the other end's close.
    lingering: Arc<()>,
    links: u64,
}

/// What lasts from Joined to Left.
pub(super) struct Session {
    /// The link that carries it; none while the peer is lost.
    pub(super) current: Option<Current>,
    /// Links that lost to the present one.
    retired: BTreeMap<LinkId, Link>,
    /// How many sessions with this peer ended before.
    pub(super) generation: u32,
    /// How many links were lost within this session, at either end.
    pub(super) losses: u32,
    pub(super) incarnation: Incarnation,
    pub(super) key: Fingerprint,
    /// The next message expected from the peer.
    next_seq: Arc<AtomicU64>,
    close_code: VarInt,
    close_reason: &'static str,
}

/// The link that carries a session.
pub(super) struct Current {
    id: LinkId,
    link: Link,
    /// Whether we dialled it.
    dialled: bool,
}

impl Session {
    pub(super) fn new(
        id: LinkId,
        link: Link,
        dialled: bool,
        (generation, losses): (u32, u32),
        theirs: &Hello,
        key: Fingerprint,
    ) -> Self {
        Self {
            current: Some(Current { id, link, dialled }),
            retired: BTreeMap::new(),
            generation,
            losses,
            incarnation: theirs.incarnation,
            key,
            next_seq: Arc::default(),
            close_code: close::DONE,
            close_reason: "",
        }
    }

    /// A new link carries the session that had lost its last.
    pub(super) fn carry_on(&mut self, id: LinkId, link: Link, dialled: bool) {
        self.current = Some(Current { id, link, dialled });
        (self.close_code, self.close_reason) = (close::DONE, "");
    }
}

/// A peer that said farewell, while its last messages are read.
struct Departing {
    left: dispatch::Left,
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
    pub(super) fn census(&self, connections: usize, reserved: usize) -> Census {
        Census {
            connections,
            sessions: self.sessions.len(),
            links: self.owners.len(),
            departing: self.departing.len(),
            reserved,
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

    pub(super) fn get(&self, peer: &PeerId) -> Option<&Session> {
        self.sessions.get(peer)
    }

    pub(super) fn get_mut(&mut self, peer: &PeerId) -> Option<&mut Session> {
        self.sessions.get_mut(peer)
    }

    pub(super) fn insert(&mut self, peer: &PeerId, session: Session) {
        self.sessions.insert(peer.clone(), session);
    }

    pub(super) fn next_link_id(&mut self) -> LinkId {
        self.links += 1;
        LinkId(self.links)
    }

    /// From now on this link's events are this peer's.
    pub(super) fn own(&mut self, id: LinkId, peer: &PeerId) {
        self.owners.insert(id, peer.clone());
    }

    /// Whether a link to the holder of `key` is up.
    pub(super) fn is_linked(&self, key: Fingerprint) -> bool {
        let linked = |session: &Session| session.key == key && session.current.is_some();
        self.sessions.values().any(linked)
    }

    /// How many sessions with the holder of `key` have ended, and how many links were lost in the present one.
    pub(super) fn numbers(&self, key: Fingerprint) -> (u32, u32) {
        match self.sessions.values().find(|session| session.key == key) {
            Some(session) => (session.generation, session.losses),
            None => (self.ended(key), 0),
        }
    }

    /// Peers from which anything arrived since they were probed.
    pub(super) fn heard_since_probe(&mut self) -> Vec<PeerId> {
        self.sessions
            .iter_mut()
            .filter_map(|(peer, session)| {
                let link = &mut session.current.as_mut()?.link;
                link.was_heard_since_probe().then(|| peer.clone())
            })
            .collect()
    }

    pub(super) fn transmit(&self, to: &PeerId, envelope: Envelope, urgent: bool) {
        let link = match self.sessions.get(to) {
            Some(session) => session.current.as_ref().map(|current| &current.link),
            None => self
                .departing
                .values()
                .find(|departing| departing.left.peer == *to)
                .map(|departing| &departing.link),
        };
        let Some(link) = link else {
            return;
        };
        if !link.send_control(ControlFrame::Core(envelope), urgent) {
            // It takes nothing, not even heartbeats: the close ends the session.
            tracing::warn!(peer = %to, "the peer takes no control messages");
            link.close(close::LOST, close::STALLED);
        }
    }

    /// Says something beside the core to a linked peer.
    pub(super) fn say(&self, to: &PeerId, frame: ControlFrame) {
        let current = self
            .sessions
            .get(to)
            .and_then(|session| session.current.as_ref());
        if let Some(Current { link, .. }) = current
            && !link.send_control(frame, false)
        {
            link.close(close::LOST, close::STALLED);
        }
    }

    pub(super) fn send_probe(&mut self, to: &PeerId, probe: Probe) {
        if let Some(current) = self.current_mut(to) {
            current.link.send_probe(probe);
        }
    }

    fn current_mut(&mut self, peer: &PeerId) -> Option<&mut Current> {
        self.sessions.get_mut(peer)?.current.as_mut()
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
                LinkEnd::Closed | LinkEnd::Replaced | LinkEnd::Kicked => (close::DONE, ""),
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
            if let Some(current) = &mut session.current {
                current.link.end_lane(ending);
            }
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

    pub(super) fn is_departing(&self, peer: &PeerId) -> bool {
        self.departing
            .values()
            .any(|departing| departing.left.peer == *peer)
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
}

/// Links come.
impl Driver {
    /// How many departures the host is still to be told of. It is told in order.
    pub(super) fn untold_departures(&mut self) -> usize {
        while let Some(oldest) = self.sessions.untold.front() {
            if self.shared.dispatch.has_undelivered_left(oldest) {
                break;
            }
            self.sessions.untold.pop_front();
        }
        self.sessions.untold.len()
    }

    /// The present link of a session carries its messages from now on.
    pub(super) fn start_lanes(&mut self, peer: &PeerId) {
        if let Some(session) = self.sessions.sessions.get_mut(peer)
            && let Some(Current { id, link, .. }) = &mut session.current
        {
            link.start_lanes(*id, peer, &session.next_seq, &self.link_context);
        }
    }

    /// A second link in one session: both ends dialled. Both keep the one that the smaller id dialled.
    pub(super) fn attach_second(
        &mut self,
        id: LinkId,
        mut link: Link,
        peer: &PeerId,
        dialled: bool,
    ) {
        let me = self.shared.peer_id.clone();
        let Some(session) = self.sessions.sessions.get_mut(peer) else {
            return;
        };
        let Some(current) = &mut session.current else {
            return;
        };
        // Twice from the same end: it lost the first.
        let wins = current.dialled == dialled || dialled == (me < *peer);
        if wins {
            current.link.stop_lanes();
            link.start_lanes(id, peer, &session.next_seq, &self.link_context);
            let loser = std::mem::replace(current, Current { id, link, dialled });
            session.retired.insert(loser.id, loser.link);
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
            .and_then(|session| session.current.as_ref())
            .is_some_and(|current| current.id == id);
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
            LinkEvent::Relay(event) => self.relay_event(peer, event),
            LinkEvent::LaneDone => {}
            LinkEvent::Violation(what) => self.broken(peer, what),
            LinkEvent::Closed(error) => self.link_closed(id, peer, is_current, &error),
        }
    }

    pub(super) fn broken(&mut self, peer: PeerId, what: &'static str) {
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
        let why = link_end(error);
        tracing::debug!(%peer, %error, "a link ended");
        self.feed(Input::LinkDown { peer, why });
    }

    /// The core counts a peer as lost. Its session goes on without a link.
    pub(super) fn session_lost(&mut self, peer: &PeerId) {
        let Some(session) = self.sessions.sessions.get_mut(peer) else {
            return;
        };
        session.losses = session.losses.saturating_add(1);
        self.shared.outboxes.pause(peer);
        let current = session
            .current
            .take()
            .map(|current| (current.id, current.link));
        let retired = std::mem::take(&mut session.retired);
        for (id, link) in current.into_iter().chain(retired) {
            // Dropping the link stops its reader: what it has not taken comes again on the next.
            link.close(session.close_code, session.close_reason);
            self.sessions.owners.remove(&id);
        }
    }

    /// The core has ended a session. Left is told to the host after the peer's last message.
    pub(super) fn session_ended(
        &mut self,
        peer: PeerId,
        why: LeftReason,
        code: i32,
        bytes: Vec<u8>,
    ) {
        let undelivered = self.shared.outboxes.close(&peer);
        if undelivered > 0 {
            tracing::info!(%peer, undelivered, "messages are not known to be delivered");
        }
        let session = self.sessions.sessions.remove(&peer);
        let left = dispatch::Left {
            peer,
            reason: match why {
                LeftReason::Left => dispatch::LeftReason::Left,
                LeftReason::Lost => dispatch::LeftReason::Lost,
                LeftReason::Disconnected => dispatch::LeftReason::Disconnected,
                LeftReason::Replaced => dispatch::LeftReason::Replaced,
                LeftReason::Kicked => dispatch::LeftReason::Kicked,
                LeftReason::Violation => dispatch::LeftReason::Violation,
                LeftReason::GaveUp => dispatch::LeftReason::GaveUp,
            },
            code,
            bytes: Bytes::from(bytes),
            undelivered: undelivered as u64,
        };
        let Some(session) = session else {
            return self.tell_left(left);
        };
        self.sessions
            .count_ended(session.key, session.generation.saturating_add(1));
        for (id, link) in session.retired {
            link.close(session.close_code, session.close_reason);
            self.sessions.owners.remove(&id);
        }
        let Some(Current { id, link, .. }) = session.current else {
            return self.tell_left(left);
        };
        match why {
            LeftReason::Left => {
                let departing = Departing {
                    left,
                    link,
                    until: Instant::now() + DEPARTURE_LIMIT,
                };
                self.sessions.departing.insert(id, departing);
                if self.sessions.departing.len() > MAX_DEPARTING
                    && let Some(oldest) = self.sessions.departing.keys().next().copied()
                {
                    self.departed(oldest);
                }
            }
            LeftReason::Kicked if !self.node.is_over() => {
                self.sessions.owners.remove(&id);
                self.tell_left(left);
                // Its own to close, once it has been told.
                self.sessions.linger(link);
            }
            _ => {
                self.sessions.owners.remove(&id);
                link.close(session.close_code, session.close_reason);
                // Dropping the link stops its reader: nothing of this peer follows.
                drop(link);
                self.tell_left(left);
            }
        }
    }

    fn tell_left(&mut self, left: dispatch::Left) {
        self.sessions.untold.push_back(left.peer.clone());
        self.shared.dispatch.push(HostEvent::Left(left));
    }

    fn departing_event(&mut self, id: LinkId, peer: &PeerId, event: LinkEvent) {
        match event {
            LinkEvent::Stamped(record, answer) => {
                // It spoke as leader before it left; what is known since decides.
                let named = self.node.record().leader.as_ref();
                let accepted =
                    record.leader.as_ref() == Some(peer) && named.is_none_or(|id| id == peer);
                let _ = answer.send(accepted);
            }
            LinkEvent::Relay(event) => self.departing_relay_event(peer, event),
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
            self.tell_left(departing.left);
            // The connection is the leaver's to close; it may still wait for our answer.
            self.sessions.linger(departing.link);
        }
    }
}

/// What the end of a link tells about the other end's process.
///
/// Only its own word ends a life. A stateless reset shows the opposite of what it seems to: its token is made from a key that
/// the process drew when it started, so it lives, and has closed this link already; only its word why was lost, or came later.
fn link_end(error: &ConnectionError) -> LinkEnd {
    match error {
        ConnectionError::ApplicationClosed(closed) => match closed.error_code {
            close::DONE => LinkEnd::Closed,
            close::DISCONNECTED => LinkEnd::Disconnected,
            // It lives: it did not hear us, keeps another link than we, or had something against us.
            _ => LinkEnd::Silent,
        },
        _ => LinkEnd::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::{ApplicationClose, VarInt};

    #[test]
    fn only_a_peers_own_word_ends_its_life() {
        let says = |error_code| {
            link_end(&ConnectionError::ApplicationClosed(ApplicationClose {
                error_code,
                reason: Default::default(),
            }))
        };
        assert_eq!(says(close::DONE), LinkEnd::Closed);
        assert_eq!(says(close::DISCONNECTED), LinkEnd::Disconnected);
        assert_eq!(says(close::LOST), LinkEnd::Silent);
        assert_eq!(says(close::SUPERSEDED), LinkEnd::Silent);
        assert_eq!(says(close::VIOLATION), LinkEnd::Silent);
        assert_eq!(says(VarInt::from_u32(77)), LinkEnd::Silent);
        // A process that stood still meets this: the others gave it up meanwhile.
        assert_eq!(link_end(&ConnectionError::Reset), LinkEnd::Silent);
        assert_eq!(link_end(&ConnectionError::TimedOut), LinkEnd::Silent);
    }
}
