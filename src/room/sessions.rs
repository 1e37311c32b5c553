//! Sessions with peers and the links that carry them.
//!
//! A session lasts from JOINED to LEFT and belongs to one incarnation of a peer; its messages are numbered
//! throughout. Two links between the same two peers may be set up at once. The link that the smaller id
//! dialled is kept; the other is closed as soon as the peer sends on the kept one.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionError, VarInt};
use tokio::time::Instant;

#[cfg(test)]
use super::shared::Census;
use crate::core::event::{Event, Left, LeftReason, Returned, TransferOutcome};
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::node::{Conflict, LinkEnd};
use crate::core::path::Path;
use crate::core::wire::{Envelope, FEATURE_TRANSFERS, Hello, Probe};
use crate::net::close;
use crate::net::events::{LinkContext, LinkId};
use crate::net::frame::ControlFrame;
use crate::net::lane::Ending;
use crate::net::link::{Admitted, Link};
use crate::net::outbox::Dropped;
use crate::net::received::Received;
use crate::state::wire::Frame;

/// Longest time for which a peer's last messages are read after it leaves.
const DEPARTURE_LIMIT: Duration = Duration::from_millis(2500);
/// Peers that have left and whose last messages are still read, at most.
const MAX_DEPARTING: usize = 64;
/// Links that wait for the other end's close after a leave, at most.
const MAX_LINGERING: usize = 64;
/// Links of one session beside the kept one, at most. Two honest ends never create more than one.
const MAX_RETIRED_LINKS: usize = 2;
/// Keys whose ended sessions are counted, at most.
const MAX_COUNTED_KEYS: usize = 1024;

/// All sessions and links.
pub(super) struct Sessions {
    me: PeerId,
    context: LinkContext,
    sessions: BTreeMap<PeerId, Session>,
    departing: BTreeMap<LinkId, Departing>,
    /// The peer of each link.
    owners: BTreeMap<LinkId, PeerId>,
    /// Number of ended sessions with the holder of a key.
    ended: BTreeMap<Fingerprint, u32>,
    /// Peers that left and whose LEFT the host may not have received yet, oldest first.
    undelivered_departures: VecDeque<PeerId>,
    /// Held by every link that waits for the other end's close.
    lingering: Arc<()>,
    /// The known leader.
    leader: Option<PeerId>,
    links: u64,
}

/// State that lasts from JOINED to LEFT.
struct Session {
    /// The link that carries it; `None` while the peer is lost.
    current: Option<Current>,
    /// Links replaced by the present one.
    retired: BTreeMap<LinkId, Link>,
    count: Count,
    incarnation: Incarnation,
    key: Fingerprint,
    /// State of the messages received from the peer.
    received: Arc<Received>,
    /// Messages of the peer's host in this session that this host will not get.
    missed: u64,
    /// Number of them that the host was notified of.
    missed_reported: u64,
    /// Whether the peer's return is still to be reported; the report follows with the number of missed messages.
    returns: bool,
    close_code: VarInt,
    close_reason: &'static str,
}

/// The link that carries a session.
struct Current {
    id: LinkId,
    link: Link,
    /// Whether this node dialled it.
    dialled: bool,
    /// The address that the core knows.
    seen_at: Option<SocketAddr>,
}

/// Effect of a new link on its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attached {
    /// It carries the session: a new session, or one that had lost its last link.
    Carries,
    /// It replaces a link over a worse path.
    TakesOver,
    /// It replaces a link over as good a path: both ends dialled, or the other end has lost that link.
    Replaces,
    /// It is a second link that does not carry the session: both ends dialled.
    Second,
}

/// A peer that has left, while its last messages are read.
struct Departing {
    left: Left,
    link: Link,
    until: Instant,
}

/// Role of a link in its peer's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It carries the session.
    Current,
    /// Another link replaced it.
    Retired,
    /// The session is over, and the peer's last messages are read.
    Departing,
}

/// Number of ended sessions with a peer, and of links lost in the present one, as counted at either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count {
    pub(super) generation: u32,
    pub(super) losses: u32,
}

impl Count {
    /// The count that both ends use after the other end's Hello `theirs`: the larger one. Losses of an earlier session do not
    /// count in a later one, or one end would take the next link for a sign that it missed a loss.
    pub(super) fn with(self, theirs: &Hello) -> Self {
        self.max(Self {
            generation: theirs.generation,
            losses: theirs.losses,
        })
    }
}

impl Sessions {
    /// Starts without sessions. All links share `context`.
    pub(super) fn new(me: PeerId, context: LinkContext) -> Self {
        Self {
            me,
            context,
            sessions: BTreeMap::new(),
            departing: BTreeMap::new(),
            owners: BTreeMap::new(),
            ended: BTreeMap::new(),
            undelivered_departures: VecDeque::new(),
            lingering: Arc::new(()),
            leader: None,
            links: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn census(&self, connections: usize, reserved: usize) -> Census {
        Census {
            connections,
            sessions: self.sessions.len(),
            links: self.owners.len(),
            departing: self.departing.len(),
            reserved,
        }
    }

    /// Latest end of the next departure.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.departing
            .values()
            .map(|departing| departing.until)
            .min()
    }

    /// The key of a peer that has a session.
    pub(super) fn key_of(&self, peer: &PeerId) -> Option<Fingerprint> {
        self.sessions.get(peer).map(|session| session.key)
    }

    /// Whether the holder of `key` has a link whose path is as good as `path` or better.
    pub(super) fn is_linked(&self, key: Fingerprint, path: Path) -> bool {
        let linked = |session: &Session| {
            let current = session.current.as_ref();
            session.key == key && current.is_some_and(|current| current.link.path() <= path)
        };
        self.sessions.values().any(linked)
    }

    /// The address of a peer's present link.
    pub(super) fn address_of(&self, peer: &PeerId) -> Option<SocketAddr> {
        let session = self.sessions.get(peer)?;
        let current = session.current.as_ref()?;
        Some(current.link.connection.remote_address())
    }

    /// This node's count of its sessions with the holder of `key`.
    pub(super) fn count(&self, key: Fingerprint) -> Count {
        match self.sessions.values().find(|session| session.key == key) {
            Some(session) => session.count,
            None => Count {
                generation: self.ended.get(&key).copied().unwrap_or(0),
                losses: 0,
            },
        }
    }

    /// Whether a session with `peer` may begin: the host has received the departure of the id's last holder.
    pub(super) fn is_free(&self, peer: &PeerId) -> bool {
        !self.context.dispatch.has_undelivered_left(peer)
            && self
                .departing
                .values()
                .all(|departing| departing.left.peer != *peer)
    }

    /// Number of departures that the host has not received yet. It receives them in order.
    pub(super) fn pending_departures(&mut self) -> usize {
        while let Some(oldest) = self.undelivered_departures.front() {
            if self.context.dispatch.has_undelivered_left(oldest) {
                break;
            }
            self.undelivered_departures.pop_front();
        }
        self.undelivered_departures.len()
    }

    /// Peers from which anything arrived since they were probed.
    pub(super) fn responded_since_probe(&mut self) -> Vec<PeerId> {
        self.sessions
            .iter_mut()
            .filter_map(|(peer, session)| {
                let link = &mut session.current.as_mut()?.link;
                link.received_since_probe().then(|| peer.clone())
            })
            .collect()
    }

    /// The address from which the packets of a peer's direct link come, if the core knows another one or none, and whether
    /// this node dialled it.
    pub(super) fn moved_to(&mut self, peer: &PeerId) -> Option<(SocketAddr, bool)> {
        let current = self.sessions.get_mut(peer)?.current.as_mut()?;
        let at = current.link.connection.remote_address();
        let is_new = Path::to(at).is_direct() && current.seen_at.replace(at) != Some(at);
        is_new.then_some((at, current.dialled))
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
            // The peer does not even read heartbeats: the close ends the session.
            tracing::warn!(peer = %to, "the peer takes no control messages");
            link.close(close::LOST, close::STALLED);
        }
    }

    /// Sends a control frame that is not of the core to a linked peer.
    pub(super) fn send(&self, to: &PeerId, frame: ControlFrame) {
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

    /// Sends a frame of the room's state to a linked peer. Returns `false` if the peer reads none: its link ends.
    pub(super) fn send_state(&mut self, to: &PeerId, frame: &Frame) -> bool {
        let session = self.sessions.get_mut(to);
        let Some(current) = session.and_then(|session| session.current.as_mut()) else {
            return true;
        };
        let is_taken = current.link.send_state(frame);
        if !is_taken {
            tracing::warn!(peer = %to, "the peer takes nothing of the room's state");
            current.link.close(close::LOST, close::STALLED);
        }
        is_taken
    }

    /// The link that carries a peer's session: its number, the peer's process, and its round trip.
    pub(super) fn current_link(&self, peer: &PeerId) -> Option<(LinkId, Incarnation, Duration)> {
        let session = self.sessions.get(peer)?;
        let current = session.current.as_ref()?;
        let round_trip = current.link.connection.rtt();
        Some((current.id, session.incarnation, round_trip))
    }

    /// The process of a peer that has a session.
    pub(super) fn incarnation_of(&self, peer: &PeerId) -> Option<Incarnation> {
        self.sessions.get(peer).map(|session| session.incarnation)
    }

    pub(super) fn send_probe(&mut self, to: &PeerId, probe: Probe) {
        let session = self.sessions.get_mut(to);
        if let Some(current) = session.and_then(|session| session.current.as_mut()) {
            current.link.send_probe(probe);
        }
    }

    /// Follows another leader. Starts the time in which messages relayed by a former leader may still arrive.
    pub(super) fn follow(&mut self, leader: Option<&PeerId>) {
        if leader.is_none() || self.leader.as_ref() == leader {
            return;
        }
        self.leader = leader.cloned();
        let now = Instant::now();
        for (peer, session) in &self.sessions {
            let is_former = Some(peer) != leader;
            session.received.note_other_leader(is_former.then_some(now));
        }
    }

    /// Sets the close code for a session that is about to end.
    pub(super) fn set_close_reason(&mut self, peer: &PeerId, why: LinkEnd) {
        if let Some(session) = self.sessions.get_mut(peer) {
            (session.close_code, session.close_reason) = match why {
                LinkEnd::Silent => (close::LOST, "silent for the heartbeat timeout"),
                LinkEnd::Disconnected => (close::DISCONNECTED, "disconnected by the host"),
                LinkEnd::Violation(what) => {
                    tracing::warn!(%peer, what, "the peer broke the protocol");
                    (close::VIOLATION, what)
                }
                LinkEnd::RoomEnded => (close::ROOM_ENDED, ""),
                LinkEnd::Moved(Conflict::DuplicateId) => (close::MOVED_FROM_DUPLICATE, ""),
                LinkEnd::Moved(Conflict::Banned) => (close::MOVED_FROM_BANNED, ""),
                LinkEnd::OtherRoom => (close::OTHER_ROOM, ""),
                LinkEnd::Closed | LinkEnd::Replaced | LinkEnd::Kicked => (close::DONE, ""),
            };
        }
    }

    /// Ends this node's lanes before it leaves.
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
}

/// New links.
impl Sessions {
    /// Reason why this node's session with the sender of `hello`, which holds `key`, is over at the other
    /// end. The peer is trusted: it holds the key.
    pub(super) fn ended_at_other(&self, hello: &Hello, key: Fingerprint) -> Option<LeftReason> {
        let session = self.session_of(hello, key)?;
        if hello.incarnation > session.incarnation {
            Some(LeftReason::Replaced)
        } else if hello.generation > session.count.generation {
            Some(LeftReason::Lost)
        } else {
            None
        }
    }

    /// Whether the other end of a session has lost the link that this node considers up.
    pub(super) fn lost_at_other(&self, hello: &Hello, key: Fingerprint) -> bool {
        self.session_of(hello, key).is_some_and(|session| {
            hello.generation == session.count.generation
                && hello.losses > session.count.losses
                && session.current.is_some()
        })
    }

    fn session_of(&self, hello: &Hello, key: Fingerprint) -> Option<&Session> {
        let session = self.sessions.get(&hello.peer_id);
        session.filter(|session| session.key == key)
    }

    /// Records the other end's number of lost links in the present session.
    pub(super) fn note_losses(&mut self, peer: &PeerId, losses: u32) {
        if let Some(session) = self.sessions.get_mut(peer) {
            session.count.losses = session.count.losses.max(losses);
        }
    }

    /// Attaches a link that both ends accept. [`Sessions::start_lanes`] follows if it carries the session.
    pub(super) fn attach(
        &mut self,
        link: Admitted,
        theirs: &Hello,
        key: Fingerprint,
        count: Count,
        dialled: bool,
    ) -> Attached {
        let peer = &theirs.peer_id;
        self.links += 1;
        let id = LinkId(self.links);
        let missed = self.context.outboxes.resume(peer);
        let link = Link::start(id, link, missed, &self.context);
        self.owners.insert(id, peer.clone());
        let current = Current {
            id,
            link,
            dialled,
            seen_at: None,
        };
        match self.sessions.get_mut(peer) {
            Some(session) if session.current.is_some() => {
                return self.attach_second(peer, current);
            }
            Some(session) => {
                session.count.losses = count.losses;
                session.current = Some(current);
                (session.close_code, session.close_reason) = (close::DONE, "");
            }
            None => {
                let session = Session {
                    current: Some(current),
                    retired: BTreeMap::new(),
                    count,
                    incarnation: theirs.incarnation,
                    key,
                    received: Arc::default(),
                    missed: 0,
                    missed_reported: 0,
                    returns: false,
                    close_code: close::DONE,
                    close_reason: "",
                };
                self.sessions.insert(peer.clone(), session);
                let limit = usize::try_from(theirs.max_message_size).unwrap_or(usize::MAX);
                let limit = limit.min(self.context.max_message_size);
                self.context.outboxes.open(peer, limit);
                let is_able = theirs.features & FEATURE_TRANSFERS != 0;
                self.context.transfers.open(peer, is_able);
            }
        }
        Attached::Carries
    }

    /// Records that a lost peer has returned. The host is notified at the peer's [`ControlFrame::Resume`].
    pub(super) fn returns(&mut self, peer: &PeerId) {
        if let Some(session) = self.sessions.get_mut(peer) {
            session.returns = true;
        }
    }

    /// Handles the peer's [`ControlFrame::Resume`]: it sent `missed` messages in this session that this host
    /// will not get. Later messages are read. Returns the peer's return if it is to be reported to the host.
    ///
    /// # Errors
    /// The number is one that no member sends.
    pub(super) fn resumed(
        &mut self,
        id: LinkId,
        peer: &PeerId,
        role: Role,
        missed: u64,
    ) -> Result<Option<Returned>, &'static str> {
        if role == Role::Departing {
            if let Some(departing) = self.departing.get_mut(&id) {
                departing.link.resumed();
            }
            return Ok(None);
        }
        let Some(session) = self.sessions.get_mut(peer) else {
            return Ok(None);
        };
        let Some(current) = session.current.as_mut().filter(|_| role == Role::Current) else {
            return Ok(None); // the other link carries it, too
        };
        if missed < session.missed {
            return Err("fewer messages were missed than before");
        }
        session.missed = missed;
        current.link.resumed();
        if !std::mem::take(&mut session.returns) {
            return Ok(None);
        }
        let reported = std::mem::replace(&mut session.missed_reported, missed);
        Ok(Some(Returned {
            peer: peer.clone(),
            undelivered: self.context.outboxes.take_missed(peer),
            missed: missed - reported,
        }))
    }

    /// Starts to carry messages on the present link of a session.
    pub(super) fn start_lanes(&mut self, peer: &PeerId) {
        if let Some(session) = self.sessions.get_mut(peer)
            && let Some(Current { id, link, .. }) = &mut session.current
        {
            link.start_lanes(*id, peer, &session.received, &self.context);
        }
    }

    /// Handles a second link in one session: both ends dialled. Both keep the one with the better path, otherwise
    /// the one that the smaller id dialled.
    fn attach_second(&mut self, peer: &PeerId, mut new: Current) -> Attached {
        let Some(session) = self.sessions.get_mut(peer) else {
            return Attached::Second;
        };
        let Some(current) = &mut session.current else {
            return Attached::Second;
        };
        // If the same end dialled both, it has lost the first.
        let is_ours = current.dialled == new.dialled || new.dialled == (self.me < *peer);
        let attached = match new.link.path().cmp(&current.link.path()) {
            Ordering::Less => Attached::TakesOver,
            Ordering::Equal if is_ours => Attached::Replaces,
            Ordering::Equal | Ordering::Greater => Attached::Second,
        };
        if attached != Attached::Second {
            current.link.stop_lanes();
            new.link
                .start_lanes(new.id, peer, &session.received, &self.context);
            std::mem::swap(current, &mut new);
        }
        session.retired.insert(new.id, new.link);
        while session.retired.len() > MAX_RETIRED_LINKS {
            let Some((id, oldest)) = session.retired.pop_first() else {
                break;
            };
            oldest.close(close::SUPERSEDED, "too many links");
            self.owners.remove(&id);
        }
        attached
    }
}

/// Ended links.
impl Sessions {
    /// The peer of a link, and the link's role in the session.
    pub(super) fn owner(&self, id: LinkId) -> Option<(PeerId, Role)> {
        let peer = self.owners.get(&id)?.clone();
        let session = self.sessions.get(&peer);
        let current = session.and_then(|session| session.current.as_ref());
        let role = if self.departing.contains_key(&id) {
            Role::Departing
        } else if current.is_some_and(|current| current.id == id) {
            Role::Current
        } else {
            let retired = session.map(|session| &session.retired);
            debug_assert!(
                retired.is_some_and(|links| links.contains_key(&id)),
                "a link without a session has an owner"
            );
            Role::Retired
        };
        Some((peer, role))
    }

    /// Whether a link that counts in elections replaced this one, which does not. What the peer sends on the old one
    /// was meant for a member without a part in elections.
    pub(super) fn is_overtaken(&self, id: LinkId, peer: &PeerId) -> bool {
        let session = self.sessions.get(peer);
        let link = session.and_then(|session| session.retired.get(&id));
        link.is_some_and(|link| !link.path().counts_in_elections())
    }

    /// Closes the other links of a peer: it sends on the kept link, so it has that link too.
    pub(super) fn close_retired(&mut self, peer: &PeerId) {
        if let Some(session) = self.sessions.get_mut(peer) {
            for (id, link) in std::mem::take(&mut session.retired) {
                link.close(close::SUPERSEDED, "another link is kept");
                self.owners.remove(&id);
            }
        }
    }

    /// Handles the end of a link's connection. Returns the reason if the link carried a session.
    pub(super) fn link_closed(
        &mut self,
        id: LinkId,
        peer: &PeerId,
        role: Role,
        error: &ConnectionError,
    ) -> Option<LinkEnd> {
        self.owners.remove(&id);
        let session = self.sessions.get_mut(peer)?;
        if role != Role::Current {
            session.retired.remove(&id);
            return None;
        }
        tracing::debug!(%peer, %error, "a link ended");
        let why = link_end(error);
        if why == LinkEnd::RoomEnded {
            // The session waits without a link until the core ends it with its reason.
            session.current = None;
        }
        Some(why)
    }

    /// Stops the queues to the peers that these events report as lost or gone, before a query shows them as such: a
    /// broadcast does not fail because of them any more. Returns the dropped datagrams.
    pub(super) fn stop_queues(&self, events: &[Event]) -> Dropped {
        let outboxes = &self.context.outboxes;
        let mut dropped = Dropped::new();
        for event in events {
            match event {
                Event::Reconnecting(peer) => {
                    let count = outboxes.pause(peer);
                    if count > 0 {
                        dropped.push((peer.clone(), count));
                    }
                }
                Event::Left(left) => {
                    outboxes.finish(&left.peer);
                }
                _ => {}
            }
        }
        dropped
    }

    /// Pauses the session of a lost peer, which continues without a link; its queue has been stopped. Returns whether to
    /// notify the host: a peer whose return was not reported is still lost to the host.
    pub(super) fn lost(&mut self, peer: &PeerId) -> bool {
        let Some(session) = self.sessions.get_mut(peer) else {
            return true;
        };
        let was_back = !std::mem::take(&mut session.returns);
        session.count.losses = session.count.losses.saturating_add(1);
        let current = session
            .current
            .take()
            .map(|current| (current.id, current.link));
        let retired = std::mem::take(&mut session.retired);
        for (id, link) in current.into_iter().chain(retired) {
            // Dropping the link stops its reader: messages that it has not taken are sent again on the next link.
            link.close(session.close_code, session.close_reason);
            self.owners.remove(&id);
        }
        was_back
    }

    /// Ends a session, as the core asks. The host receives LEFT after the peer's last message.
    pub(super) fn end(&mut self, mut left: Left) {
        let peer = &left.peer;
        let undelivered = self.context.outboxes.close(peer);
        if undelivered > 0 {
            tracing::info!(%peer, undelivered, "messages are not known to be delivered");
        }
        left.undelivered = undelivered;
        let outcome = match left.why {
            LeftReason::RoomEnded => TransferOutcome::RoomEnded,
            _ => TransferOutcome::PeerLeft,
        };
        self.context.transfers.close(peer, outcome);
        let Some(session) = self.sessions.remove(peer) else {
            return self.deliver_left(left);
        };
        self.count_ended(session.key, session.count.generation.saturating_add(1));
        for (id, link) in session.retired {
            link.close(session.close_code, session.close_reason);
            self.owners.remove(&id);
        }
        let Some(Current { id, link, .. }) = session.current else {
            return self.deliver_left(left);
        };
        match left.why {
            LeftReason::Left => {
                let until = Instant::now() + DEPARTURE_LIMIT;
                self.departing.insert(id, Departing { left, link, until });
                if self.departing.len() > MAX_DEPARTING
                    && let Some(oldest) = self.departing.keys().next().copied()
                {
                    self.departed(oldest);
                }
            }
            LeftReason::Kicked => {
                self.owners.remove(&id);
                self.deliver_left(left);
                // The peer closes the link itself, after it has received the kick.
                self.linger(link, close::DONE);
            }
            // Here, too, the peer closes the link, after it has received the reason. A peer that does not
            // read the reason still sees the close code.
            LeftReason::Disconnected
                if session.close_code == close::DISCONNECTED
                    && (left.code, left.bytes.as_slice()) != (0, &[]) =>
            {
                self.owners.remove(&id);
                self.deliver_left(left);
                self.linger(link, close::DISCONNECTED);
            }
            _ => {
                self.owners.remove(&id);
                link.close(session.close_code, session.close_reason);
                // Dropping the link stops its reader: no message of this peer follows.
                drop(link);
                self.deliver_left(left);
            }
        }
    }

    fn count_ended(&mut self, key: Fingerprint, ended: u32) {
        if self.ended.len() >= MAX_COUNTED_KEYS && !self.ended.contains_key(&key) {
            self.ended.pop_first();
        }
        self.ended.insert(key, ended);
    }

    fn deliver_left(&mut self, left: Left) {
        self.undelivered_departures.push_back(left.peer.clone());
        self.context.dispatch.push(Event::Left(left));
    }

    /// Ends departures whose last messages took too long.
    pub(super) fn finish_departures(&mut self, now: Instant) {
        let over: Vec<_> = self
            .departing
            .iter()
            .filter(|(_, departing)| now >= departing.until)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.departed(id);
        }
    }

    /// Ends the departure of a peer whose last message was read.
    pub(super) fn departed(&mut self, id: LinkId) {
        if let Some(departing) = self.departing.remove(&id) {
            self.owners.remove(&id);
            self.deliver_left(departing.left);
            // The leaver closes the connection; it may still wait for our answer.
            self.linger(departing.link, close::DONE);
        }
    }

    /// Keeps a link alive until the other end closes it, so that our last answer arrives. This end closes it
    /// after [`DEPARTURE_LIMIT`].
    fn linger(&self, mut link: Link, close_code: VarInt) {
        link.stop_lanes();
        if Arc::strong_count(&self.lingering) > MAX_LINGERING {
            link.close(close_code, "");
            return;
        }
        let place = Arc::clone(&self.lingering);
        tokio::spawn(async move {
            let closed = link.connection.closed();
            // The link is closed and dropped however the wait ends.
            let _ = tokio::time::timeout(DEPARTURE_LIMIT, closed).await;
            link.close(close_code, "");
            drop(place);
        });
    }
}

/// Derives the state of the other end's process from the end of a link.
///
/// Only the process's own close ends an incarnation. A stateless reset proves that the process is alive: its
/// token is made from a key that the process drew when it started. So the process has already closed this
/// link, and only its reason was lost, or arrives later.
fn link_end(error: &ConnectionError) -> LinkEnd {
    match error {
        ConnectionError::ApplicationClosed(closed) => match closed.error_code {
            close::DONE => LinkEnd::Closed,
            close::DISCONNECTED => LinkEnd::Disconnected,
            close::ROOM_ENDED => LinkEnd::RoomEnded,
            close::MOVED_FROM_DUPLICATE => LinkEnd::Moved(Conflict::DuplicateId),
            close::MOVED_FROM_BANNED => LinkEnd::Moved(Conflict::Banned),
            close::OTHER_ROOM => LinkEnd::OtherRoom,
            // It is alive: it received nothing from us, keeps another link, or reports a violation.
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
    fn only_a_peers_own_close_ends_its_incarnation() {
        let end_of = |error_code| {
            link_end(&ConnectionError::ApplicationClosed(ApplicationClose {
                error_code,
                reason: Default::default(),
            }))
        };
        assert_eq!(end_of(close::DONE), LinkEnd::Closed);
        assert_eq!(end_of(close::DISCONNECTED), LinkEnd::Disconnected);
        assert_eq!(end_of(close::ROOM_ENDED), LinkEnd::RoomEnded);
        assert_eq!(end_of(close::OTHER_ROOM), LinkEnd::OtherRoom);
        assert_eq!(end_of(close::LOST), LinkEnd::Silent);
        assert_eq!(end_of(close::SUPERSEDED), LinkEnd::Silent);
        assert_eq!(end_of(close::VIOLATION), LinkEnd::Silent);
        assert_eq!(end_of(VarInt::from_u32(77)), LinkEnd::Silent);
        // A suspended process sees this: the others gave it up meanwhile.
        assert_eq!(link_end(&ConnectionError::Reset), LinkEnd::Silent);
        assert_eq!(link_end(&ConnectionError::TimedOut), LinkEnd::Silent);
    }
}
