//! What is queued, who handles it and what the host has been told: the dispatcher's state, without threads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::discriminant;
use std::thread::ThreadId;
use std::time::Instant;

use super::Limits;
use super::call::{Call, Inherited, Kind, Owed, classic, notices};
use super::event::*;
use crate::core::id::PeerId;
use crate::snapshot::PeerStatus;

/// Undelivered losses up to which each is told with its return. Beyond, a peer that is back before the host
/// heard of its loss is told as never lost, so that a link that flaps fills no memory.
const MAX_UNDELIVERED_LOSSES: usize = 64;
/// Undelivered results of `SetLeader`, at most; the oldest give way.
const MAX_UNDELIVERED_ANSWERS: usize = 256;
/// Undelivered requests to join, at most; the oldest give way: their askers have waited the longest.
const MAX_UNDELIVERED_REQUESTS: usize = 64;
/// Undelivered announcements, at most; the oldest give way: they are made again.
const MAX_UNDELIVERED_ANNOUNCEMENTS: usize = 256;

/// The call that is being run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    pub(super) kind: Kind,
    pub(super) thread: ThreadId,
    /// Tells it from every other call.
    pub(super) number: u64,
}

/// What became of a message.
pub(super) enum Offer {
    Queued,
    /// Nobody is there to take it. Counted.
    Discarded(Incoming),
    NoRoom(Incoming),
}

enum Entry {
    Event(Event),
    Message(Incoming),
    /// Here a new handler takes over: it is told what the host knows at this place in the queue.
    Takeover(Kind),
}

/// A handler of state, which is told the present before anything else.
struct StateHandler<H> {
    handler: Option<H>,
    /// Its [`Entry::Takeover`] is still queued: events before that are not for it.
    waits: bool,
}

impl<H> StateHandler<H> {
    const NONE: Self = Self {
        handler: None,
        waits: false,
    };

    fn active(&self) -> Option<&H> {
        self.handler.as_ref().filter(|_| !self.waits)
    }
}

pub(super) struct Queue {
    limits: Limits,
    entries: VecDeque<Entry>,
    /// What handlers are still to be told before the next entry, each with the number of what it belongs to.
    owed: VecDeque<(u64, Owed)>,
    /// Counts entries, and every single thing that a handler is told of the present.
    tellings: u64,
    /// What the last call belonged to.
    last_telling: u64,

    /// Messages of this host to itself that wait for the first handler; they count as queued.
    held: VecDeque<Incoming>,
    messages: usize,
    bytes: usize,
    discarded: u64,
    /// Until when messages wait for the first handler; `None` once there was one.
    hold_until: Option<Instant>,
    /// Length of the message that waits for room.
    space_wanted: Option<usize>,
    space_freed: bool,

    receive: Option<ReceiveHandler>,
    leader_changed: StateHandler<LeaderChangedHandler>,
    leadership: StateHandler<LeadershipHandler>,
    peer_status: StateHandler<PeerStatusHandler>,
    reconnect: Option<ReconnectHandler>,
    connection_result: Option<ConnectionResultHandler>,
    events: Option<EventHandler>,

    /// This node.
    me: PeerId,
    /// The room as of the last entry taken from the queue; peers are Connected or Reconnecting.
    leader: LeaderChange,
    peers: BTreeMap<PeerId, PeerStatus>,
    /// The room as the present handlers, and those that they replaced directly, were told.
    told_leader: Option<PeerId>,
    told_leading: bool,
    told_joined: BTreeSet<PeerId>,

    running: Option<Running>,
    calls: u64,
    /// Nothing is told yet.
    pub(super) waits_to_begin: bool,
    stopped: bool,

    /// Who polls, in poll mode.
    pub(super) poller: Option<ThreadId>,
    /// Whether the dispatcher thread sleeps.
    pub(super) consumer_waits: bool,
    /// How many threads wait for the end of a call, or of a poll.
    pub(super) end_waiters: usize,
}

impl Queue {
    pub(super) fn new(limits: Limits, me: PeerId, now: Instant) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
            owed: VecDeque::new(),
            tellings: 0,
            last_telling: 0,
            held: VecDeque::new(),
            messages: 0,
            bytes: 0,
            discarded: 0,
            hold_until: Some(now + limits.hold),
            space_wanted: None,
            space_freed: false,
            receive: None,
            leader_changed: StateHandler::NONE,
            leadership: StateHandler::NONE,
            peer_status: StateHandler::NONE,
            reconnect: None,
            connection_result: None,
            events: None,
            me,
            leader: LeaderChange::default(),
            peers: BTreeMap::new(),
            told_leader: None,
            told_leading: false,
            told_joined: BTreeSet::new(),
            running: None,
            calls: 0,
            waits_to_begin: false,
            stopped: false,
            poller: None,
            consumer_waits: false,
            end_waiters: 0,
        }
    }

    // What the network thread and the host bring.

    /// Gives back an event that had to give way to this one: the host will not be told.
    #[must_use]
    pub(super) fn push_event(&mut self, mut event: Event) -> Option<Event> {
        if self.stopped {
            return None;
        }
        match &mut event {
            Event::LeaderChanged(change) => {
                if *self.newest_leader() == change.new {
                    return None;
                }
                self.remove_leader_changed_from_tail();
                // Gone back to what was said before.
                if *self.newest_leader() == change.new {
                    return None;
                }
                change.old = self.newest_leader().clone();
            }
            Event::Returned(peer) if self.withdraw_one_of_many_losses(peer) => return None,
            _ => {}
        }
        if matches!(event, Event::Discovered { .. }) && self.is_queued(&event) {
            return None;
        }
        let gave_way = self.make_room_for(&event);
        self.entries.push_back(Entry::Event(event));
        gave_way
    }

    fn is_queued(&self, event: &Event) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| matches!(entry, Entry::Event(queued) if queued == event))
    }

    /// Removes the undelivered loss of `peer`, where there are too many losses and it is the last word on the
    /// peer; says whether it did.
    fn withdraw_one_of_many_losses(&mut self, peer: &PeerId) -> bool {
        let is_loss = |entry: &&Entry| matches!(entry, Entry::Event(Event::Reconnecting(_)));
        if self.entries.iter().filter(is_loss).count() <= MAX_UNDELIVERED_LOSSES {
            return false;
        }
        let last_word = self.entries.iter().rposition(
            |entry| matches!(entry, Entry::Event(event) if peer_of(event) == Some(peer)),
        );
        match last_word {
            Some(index) if is_loss(&&self.entries[index]) => {
                self.entries.remove(index);
                true
            }
            _ => false,
        }
    }

    /// Removes the oldest event of the same kind where there are too many of them.
    fn make_room_for(&mut self, event: &Event) -> Option<Event> {
        let most = match event {
            Event::SetLeaderResult { .. } => MAX_UNDELIVERED_ANSWERS,
            Event::JoinRequest(_) => MAX_UNDELIVERED_REQUESTS,
            Event::Discovered { .. } => MAX_UNDELIVERED_ANNOUNCEMENTS,
            _ => return None,
        };
        let same = |entry: &Entry| match entry {
            Entry::Event(queued) => discriminant(queued) == discriminant(event),
            Entry::Message(_) | Entry::Takeover(_) => false,
        };
        if self.entries.iter().filter(|entry| same(entry)).count() < most {
            return None;
        }
        let oldest = self.entries.iter().position(same)?;
        match self.entries.remove(oldest) {
            Some(Entry::Event(event)) => Some(event),
            _ => None,
        }
    }

    /// Takes the message, discards it, or gives it back. With `may_wait`, a message that is given back is
    /// waited for: [`Queue::take_space_wanted`] says when to offer it again. While the first handler is waited for,
    /// one that may wait does, and one that may not is held here.
    pub(super) fn offer(&mut self, message: Incoming, may_wait: bool) -> Offer {
        if self.stopped {
            return Offer::Discarded(message);
        }
        self.end_hold();
        let takes = self.takes_messages();
        if !takes && self.hold_until.is_none() {
            self.discarded += 1;
            return Offer::Discarded(message);
        }
        let waits = may_wait && !takes;
        if waits || !self.has_room(message.payload.len()) {
            if may_wait && takes {
                self.space_wanted = Some(message.payload.len());
            }
            return Offer::NoRoom(message);
        }
        self.messages += 1;
        self.bytes += message.payload.len();
        if takes {
            self.entries.push_back(Entry::Message(message));
        } else {
            self.held.push_back(message);
        }
        self.check_counts();
        Offer::Queued
    }

    /// What was held for the first handler is discarded when its time is over.
    fn end_hold(&mut self) {
        if self.hold_until.is_some_and(|until| Instant::now() >= until) {
            self.hold_until = None;
            for message in std::mem::take(&mut self.held) {
                self.messages -= 1;
                self.bytes -= message.payload.len();
                self.discarded += 1;
            }
            self.check_counts();
        }
    }

    /// The first handler that takes messages is there: what was held is queued.
    fn release_held(&mut self) {
        self.end_hold();
        self.hold_until = None;
        let held = std::mem::take(&mut self.held);
        self.entries.extend(held.into_iter().map(Entry::Message));
    }

    /// What holds of the counts between any two calls.
    fn check_counts(&self) {
        debug_assert!(self.messages > 0 || self.bytes == 0, "bytes of no message");
        debug_assert!(self.messages >= self.held.len(), "held, but not counted");
        debug_assert!(
            self.held.is_empty() || self.hold_until.is_some(),
            "held for nobody"
        );
    }

    /// Whether somebody is registered who takes messages.
    fn takes_messages(&self) -> bool {
        self.receive.is_some() || self.events.is_some()
    }

    fn has_room(&self, len: usize) -> bool {
        self.messages == 0
            || (self.messages < self.limits.messages
                && self.bytes.saturating_add(len) <= self.limits.bytes)
    }

    /// The leader that the host knows when it has seen all that is queued.
    fn newest_leader(&self) -> &Option<PeerId> {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match entry {
                Entry::Event(Event::LeaderChanged(change)) => Some(&change.new),
                _ => None,
            })
            .unwrap_or(&self.leader.new)
    }

    /// Removes the newest undelivered change of the leader, unless a message is behind it.
    fn remove_leader_changed_from_tail(&mut self) {
        for index in (0..self.entries.len()).rev() {
            match &self.entries[index] {
                Entry::Message(_) => return,
                Entry::Event(Event::LeaderChanged(_)) => {
                    self.entries.remove(index);
                    return;
                }
                Entry::Event(_) | Entry::Takeover(_) => {}
            }
        }
    }

    // Handlers. Each gives back the old one, for the caller to drop without the lock.

    pub(super) fn set_receive(
        &mut self,
        handler: Option<ReceiveHandler>,
    ) -> Option<ReceiveHandler> {
        if self.stopped {
            return handler;
        }
        if handler.is_some() {
            self.release_held();
        }
        std::mem::replace(&mut self.receive, handler)
    }

    pub(super) fn set_connection_result(
        &mut self,
        handler: Option<ConnectionResultHandler>,
    ) -> Option<ConnectionResultHandler> {
        if self.stopped {
            return handler;
        }
        std::mem::replace(&mut self.connection_result, handler)
    }

    pub(super) fn set_reconnect(
        &mut self,
        handler: Option<ReconnectHandler>,
    ) -> Option<ReconnectHandler> {
        if self.stopped {
            return handler;
        }
        std::mem::replace(&mut self.reconnect, handler)
    }

    /// The new handler takes over at once and not behind what is queued: it is told the present of the last
    /// entry taken, and then every entry, so that each message finds it in step.
    pub(super) fn set_events(&mut self, handler: Option<EventHandler>) -> Option<EventHandler> {
        if self.stopped {
            return handler;
        }
        let mut inherited = Vec::new();
        let mut after = Vec::new();
        for (telling, owed) in std::mem::take(&mut self.owed) {
            let Owed::Notice(notice) = owed else {
                self.owed.push_back((telling, owed));
                continue;
            };
            match Inherited::of(&notice) {
                Inherited::No => {}
                Inherited::BeforePresent => inherited.push((telling, notice)),
                Inherited::AfterPresent => after.push((telling, notice)),
            }
        }
        if handler.is_some() {
            self.release_held();
            for notice in self.present() {
                inherited.push((self.next_telling(), notice));
            }
            inherited.append(&mut after);
            let owed = inherited.into_iter();
            self.owed
                .extend(owed.map(|(telling, notice)| (telling, Owed::Notice(notice))));
        }
        std::mem::replace(&mut self.events, handler)
    }

    /// The room as an event handler that takes over is told it.
    fn present(&self) -> Vec<Notice> {
        let mut present = Vec::new();
        if self.leader.new.is_some() {
            let change = LeaderChange {
                old: None,
                ..self.leader.clone()
            };
            present.extend(
                notices(Event::LeaderChanged(change), &self.me)
                    .into_iter()
                    .flatten(),
            );
        }
        for (peer, status) in &self.peers {
            present.push(Notice::Event(Event::Joined(peer.clone())));
            if *status == PeerStatus::Reconnecting {
                present.push(Notice::Event(Event::Reconnecting(peer.clone())));
            }
        }
        present
    }

    pub(super) fn set_leader_changed(
        &mut self,
        handler: Option<LeaderChangedHandler>,
    ) -> Option<LeaderChangedHandler> {
        if self.stopped {
            return handler;
        }
        if handler.is_none() {
            self.told_leader = None;
        }
        self.await_takeover(
            Kind::LeaderChanged,
            self.leader_changed.waits,
            handler.is_some(),
        );
        self.leader_changed.waits = handler.is_some();
        std::mem::replace(&mut self.leader_changed.handler, handler)
    }

    pub(super) fn set_leadership(
        &mut self,
        handler: Option<LeadershipHandler>,
    ) -> Option<LeadershipHandler> {
        if self.stopped {
            return handler;
        }
        if handler.is_none() {
            self.told_leading = false;
        }
        self.await_takeover(Kind::Leadership, self.leadership.waits, handler.is_some());
        self.leadership.waits = handler.is_some();
        std::mem::replace(&mut self.leadership.handler, handler)
    }

    pub(super) fn set_peer_status(
        &mut self,
        handler: Option<PeerStatusHandler>,
    ) -> Option<PeerStatusHandler> {
        if self.stopped {
            return handler;
        }
        if handler.is_none() {
            self.told_joined.clear();
        }
        self.await_takeover(Kind::PeerStatus, self.peer_status.waits, handler.is_some());
        self.peer_status.waits = handler.is_some();
        std::mem::replace(&mut self.peer_status.handler, handler)
    }

    /// Forgets the old handler's takeover, and queues one for the new.
    fn await_takeover(&mut self, kind: Kind, old_waits: bool, wanted: bool) {
        if old_waits {
            self.entries
                .retain(|entry| !matches!(entry, Entry::Takeover(of) if *of == kind));
        }
        self.owed.retain(|(_, owed)| owed.kind() != kind);
        if wanted {
            self.entries.push_back(Entry::Takeover(kind));
        }
    }

    // What the dispatcher takes.

    /// The next call, which counts as running until [`Queue::end_call`]; its event counts as delivered.
    /// Events that nobody handles are passed over.
    pub(super) fn next_call(&mut self, thread: ThreadId) -> Option<Call> {
        if self.waits_to_begin {
            return None;
        }
        loop {
            while let Some((telling, owed)) = self.owed.pop_front() {
                if let Some(call) = self.call_for(owed) {
                    self.calls += 1;
                    self.running = Some(Running {
                        kind: call.kind(),
                        thread,
                        number: self.calls,
                    });
                    self.last_telling = telling;
                    return Some(call);
                }
            }
            match self.entries.pop_front()? {
                Entry::Message(message) => self.take_message(message),
                Entry::Event(event) => self.take_event(event),
                Entry::Takeover(kind) => self.take_over(kind),
            }
        }
    }

    /// Whether somebody else is still to be told what the last call told.
    pub(super) fn telling_goes_on(&self) -> bool {
        self.owed
            .iter()
            .take_while(|(telling, _)| *telling == self.last_telling)
            .any(|(_, owed)| match owed.kind() {
                Kind::Receive => self.receive.is_some(),
                Kind::LeaderChanged => self.leader_changed.active().is_some(),
                Kind::Leadership => self.leadership.active().is_some(),
                Kind::PeerStatus => self.peer_status.active().is_some(),
                Kind::Reconnect => self.reconnect.is_some(),
                Kind::ConnectionResult => self.connection_result.is_some(),
                Kind::Events => self.events.is_some(),
            })
    }

    fn next_telling(&mut self) -> u64 {
        self.tellings += 1;
        self.tellings
    }

    pub(super) fn end_call(&mut self) {
        self.running = None;
    }

    fn take_message(&mut self, message: Incoming) {
        self.messages -= 1;
        self.bytes -= message.payload.len();
        self.check_counts();
        if let Some(len) = self.space_wanted
            && self.has_room(len)
        {
            self.space_wanted = None;
            self.space_freed = true;
        }
        let telling = self.next_telling();
        match (self.receive.is_some(), self.events.is_some()) {
            (false, false) => self.discarded += 1,
            (true, false) => self.owed.push_back((telling, Owed::Message(message))),
            (classic, true) => {
                if classic {
                    let message = Owed::Message(message.clone());
                    self.owed.push_back((telling, message));
                }
                let notice = Owed::Notice(Notice::Message(message));
                self.owed.push_back((telling, notice));
            }
        }
    }

    fn take_event(&mut self, event: Event) {
        let before = peer_of(&event).and_then(|peer| self.peers.get(peer).copied());
        self.note(&event);
        let telling = self.next_telling();
        for owed in classic(&event, before, &self.me).into_iter().flatten() {
            self.owed.push_back((telling, owed));
        }
        if self.events.is_some() {
            for notice in notices(event, &self.me).into_iter().flatten() {
                self.owed.push_back((telling, Owed::Notice(notice)));
            }
        }
    }

    /// Keeps the view of the room, whoever listens.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Joined(peer) | Event::Returned(peer) => {
                self.peers.insert(peer.clone(), PeerStatus::Connected);
            }
            Event::Reconnecting(peer) => {
                self.peers.insert(peer.clone(), PeerStatus::Reconnecting);
            }
            Event::Left(left) => {
                self.peers.remove(&left.peer);
            }
            Event::LeaderChanged(change) => self.leader.clone_from(change),
            _ => {}
        }
    }

    /// The call that tells it, if somebody listens.
    fn call_for(&mut self, owed: Owed) -> Option<Call> {
        match owed {
            Owed::Message(message) => {
                let Some(handler) = &self.receive else {
                    // Its handler is gone since; it counts as taken only where the other one takes it.
                    self.discarded += u64::from(self.events.is_none());
                    return None;
                };
                Some(Call::Receive(handler.clone(), message))
            }
            Owed::Leader(leader) => {
                let handler = self.leader_changed.active()?.clone();
                self.told_leader.clone_from(&leader);
                Some(Call::LeaderChanged(handler, leader))
            }
            Owed::Leadership(leads) => {
                let handler = self.leadership.active()?.clone();
                self.told_leading = leads;
                Some(Call::Leadership(handler, leads))
            }
            Owed::Status(peer, status) => {
                let handler = self.peer_status.active()?.clone();
                if status == PeerStatus::Connected {
                    self.told_joined.insert(peer.clone());
                } else {
                    self.told_joined.remove(&peer);
                }
                Some(Call::PeerStatus(handler, peer, status))
            }
            Owed::Reconnect(peer, status) => {
                let handler = self.reconnect.clone()?;
                Some(Call::Reconnect(handler, peer, status))
            }
            Owed::ConnectionResult(result) => {
                let handler = self.connection_result.clone()?;
                Some(Call::ConnectionResult(handler, result))
            }
            Owed::Notice(notice) => {
                let handler = self.events.clone()?;
                Some(Call::Events(handler, notice))
            }
        }
    }

    /// Makes the waiting handler the active one, and queues what it is told first.
    fn take_over(&mut self, kind: Kind) {
        match kind {
            Kind::LeaderChanged => {
                self.leader_changed.waits = false;
                // None is news only to a host that was told of a leader.
                if self.leader.new.is_some() || self.told_leader.is_some() {
                    let leader = Owed::Leader(self.leader.new.clone());
                    let telling = self.next_telling();
                    self.owed.push_back((telling, leader));
                }
            }
            Kind::Leadership => {
                self.leadership.waits = false;
                let leads = self.leader.new.as_ref() == Some(&self.me);
                if leads || self.told_leading {
                    let telling = self.next_telling();
                    self.owed.push_back((telling, Owed::Leadership(leads)));
                }
            }
            Kind::PeerStatus => {
                self.peer_status.waits = false;
                let connected: BTreeSet<_> = self
                    .peers
                    .iter()
                    .filter(|(_, status)| **status == PeerStatus::Connected)
                    .map(|(peer, _)| peer.clone())
                    .collect();
                let lost: Vec<_> = self.told_joined.difference(&connected).cloned().collect();
                for peer in lost {
                    let telling = self.next_telling();
                    let lost = Owed::Status(peer, PeerStatus::Disconnected);
                    self.owed.push_back((telling, lost));
                }
                for peer in connected {
                    let telling = self.next_telling();
                    let connected = Owed::Status(peer, PeerStatus::Connected);
                    self.owed.push_back((telling, connected));
                }
            }
            // These wait for nothing.
            Kind::Receive | Kind::Reconnect | Kind::ConnectionResult | Kind::Events => {}
        }
    }

    /// Forgets everything, and gives it to the caller to drop without the lock.
    pub(super) fn stop(&mut self) -> Leftovers {
        self.stopped = true;
        self.held.clear();
        self.messages = 0;
        self.bytes = 0;
        self.space_wanted = None;
        Leftovers {
            _entries: std::mem::take(&mut self.entries),
            _owed: std::mem::take(&mut self.owed),
            _receive: self.receive.take(),
            _leader_changed: self.leader_changed.handler.take(),
            _leadership: self.leadership.handler.take(),
            _peer_status: self.peer_status.handler.take(),
            _reconnect: self.reconnect.take(),
            _connection_result: self.connection_result.take(),
            _events: self.events.take(),
        }
    }

    // Questions.

    pub(super) fn running(&self) -> Option<Running> {
        self.running
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn discarded(&mut self) -> u64 {
        self.end_hold();
        self.discarded
    }

    pub(super) fn queued_messages(&mut self) -> (usize, usize) {
        self.end_hold();
        (self.messages, self.bytes)
    }

    pub(super) fn has_events_handler(&self) -> bool {
        self.events.is_some()
    }

    /// Until when a message that was not taken waits for the first handler at most.
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.hold_until.filter(|_| !self.stopped)
    }

    /// How many queued events are of that kind.
    pub(super) fn undelivered(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        let is_it = |entry: &&Entry| matches!(entry, Entry::Event(event) if is_it(event));
        self.entries.iter().filter(is_it).count()
    }

    /// Whether the dispatcher thread sleeps and must be woken; it counts as woken from here.
    pub(super) fn take_consumer_waits(&mut self) -> bool {
        let something_to_do = !self.entries.is_empty() || !self.owed.is_empty();
        something_to_do && std::mem::take(&mut self.consumer_waits)
    }

    /// Whether the message that waits is to be offered again.
    pub(super) fn take_space_wanted(&mut self) -> bool {
        std::mem::take(&mut self.space_freed)
    }
}

/// Whose link `event` is about.
fn peer_of(event: &Event) -> Option<&PeerId> {
    match event {
        Event::Joined(peer) | Event::Reconnecting(peer) | Event::Returned(peer) => Some(peer),
        Event::Left(left) => Some(&left.peer),
        _ => None,
    }
}

/// What a stop forgets.
pub(super) struct Leftovers {
    _entries: VecDeque<Entry>,
    _owed: VecDeque<(u64, Owed)>,
    _receive: Option<ReceiveHandler>,
    _leader_changed: Option<LeaderChangedHandler>,
    _leadership: Option<LeadershipHandler>,
    _peer_status: Option<PeerStatusHandler>,
    _reconnect: Option<ReconnectHandler>,
    _connection_result: Option<ConnectionResultHandler>,
    _events: Option<EventHandler>,
}
