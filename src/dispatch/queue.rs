//! What is queued, who handles it and what the host has been told: the dispatcher's state, without threads.

use std::collections::{BTreeSet, VecDeque};
use std::thread::ThreadId;
use std::time::Instant;

use super::{
    ConnectionResult, ConnectionResultHandler, Event, Incoming, LeaderChangedHandler, Limits,
    PeerStatusHandler, ReceiveHandler,
};
use crate::core::id::PeerId;
use crate::snapshot::PeerStatus;

/// Which handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Receive,
    LeaderChanged,
    PeerStatus,
    ConnectionResult,
}

/// A handler with what it is told: ready to run without the lock.
pub(super) enum Call {
    Receive(ReceiveHandler, Incoming),
    LeaderChanged(LeaderChangedHandler, Option<PeerId>),
    PeerStatus(PeerStatusHandler, PeerId, PeerStatus),
    ConnectionResult(ConnectionResultHandler, ConnectionResult),
}

impl Call {
    pub(super) fn run(self) {
        match self {
            Self::Receive(handler, message) => handler(&message),
            Self::LeaderChanged(handler, leader) => handler(leader.as_ref()),
            Self::PeerStatus(handler, peer, status) => handler(&peer, status),
            Self::ConnectionResult(handler, result) => handler(&result),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Receive(..) => Kind::Receive,
            Self::LeaderChanged(..) => Kind::LeaderChanged,
            Self::PeerStatus(..) => Kind::PeerStatus,
            Self::ConnectionResult(..) => Kind::ConnectionResult,
        }
    }
}

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
    /// What a handler that has just taken over is still to be told, before the next entry.
    present: VecDeque<Event>,

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
    peer_status: StateHandler<PeerStatusHandler>,
    connection_result: Option<ConnectionResultHandler>,

    /// The room as of the last entry taken from the queue.
    leader: Option<PeerId>,
    joined: BTreeSet<PeerId>,
    /// The room as the present handlers, and those that they replaced directly, were told.
    told_leader: Option<PeerId>,
    told_joined: BTreeSet<PeerId>,

    running: Option<Running>,
    calls: u64,
    stopped: bool,

    /// Whether the dispatcher thread sleeps.
    pub(super) consumer_waits: bool,
    /// How many threads wait for the end of a call.
    pub(super) end_waiters: usize,
}

impl Queue {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
            present: VecDeque::new(),
            messages: 0,
            bytes: 0,
            discarded: 0,
            hold_until: Some(now + limits.hold),
            space_wanted: None,
            space_freed: false,
            receive: None,
            leader_changed: StateHandler::NONE,
            peer_status: StateHandler::NONE,
            connection_result: None,
            leader: None,
            joined: BTreeSet::new(),
            told_leader: None,
            told_joined: BTreeSet::new(),
            running: None,
            calls: 0,
            stopped: false,
            consumer_waits: false,
            end_waiters: 0,
        }
    }

    // What the network thread and the host bring.

    pub(super) fn push_event(&mut self, event: Event) {
        if self.stopped {
            return;
        }
        if let Event::LeaderChanged(leader) = &event {
            if *self.newest_leader() == *leader {
                return;
            }
            self.remove_leader_changed_from_tail();
            // Gone back to what was said before.
            if *self.newest_leader() == *leader {
                return;
            }
        }
        self.entries.push_back(Entry::Event(event));
    }

    /// Takes the message, discards it, or gives it back. With `may_wait`, a message that is given back is
    /// waited for: [`Queue::take_space_wanted`] says when to offer it again.
    pub(super) fn offer(&mut self, message: Incoming, may_wait: bool) -> Offer {
        if self.stopped {
            return Offer::Discarded(message);
        }
        if self.receive.is_none() {
            if self.hold_until.is_some_and(|until| Instant::now() < until) {
                return Offer::NoRoom(message);
            }
            self.discarded += 1;
            return Offer::Discarded(message);
        }
        if !self.has_room(message.payload.len()) {
            if may_wait {
                self.space_wanted = Some(message.payload.len());
            }
            return Offer::NoRoom(message);
        }
        self.messages += 1;
        self.bytes += message.payload.len();
        self.entries.push_back(Entry::Message(message));
        Offer::Queued
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
                Entry::Event(Event::LeaderChanged(leader)) => Some(leader),
                _ => None,
            })
            .unwrap_or(&self.leader)
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
            self.hold_until = None;
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
        self.present.retain(|event| kind_of(event) != kind);
        if wanted {
            self.entries.push_back(Entry::Takeover(kind));
        }
    }

    // What the dispatcher takes.

    /// The next call, which counts as running until [`Queue::end_call`]; its event counts as delivered.
    /// Events that nobody handles are passed over.
    pub(super) fn next_call(&mut self, thread: ThreadId) -> Option<Call> {
        loop {
            let call = if let Some(event) = self.present.pop_front() {
                self.call_for(event)
            } else {
                match self.entries.pop_front()? {
                    Entry::Message(message) => self.deliver_message(message),
                    Entry::Event(event) => {
                        self.note(&event);
                        self.call_for(event)
                    }
                    Entry::Takeover(kind) => {
                        self.take_over(kind);
                        None
                    }
                }
            };
            if let Some(call) = call {
                self.calls += 1;
                self.running = Some(Running {
                    kind: call.kind(),
                    thread,
                    number: self.calls,
                });
                return Some(call);
            }
        }
    }

    pub(super) fn end_call(&mut self) {
        self.running = None;
    }

    fn deliver_message(&mut self, message: Incoming) -> Option<Call> {
        self.messages -= 1;
        self.bytes -= message.payload.len();
        if let Some(len) = self.space_wanted
            && self.has_room(len)
        {
            self.space_wanted = None;
            self.space_freed = true;
        }
        let Some(handler) = &self.receive else {
            self.discarded += 1;
            return None;
        };
        Some(Call::Receive(handler.clone(), message))
    }

    /// Keeps the view of the room, whoever listens.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Joined(peer) => {
                self.joined.insert(peer.clone());
            }
            Event::Left(peer) => {
                self.joined.remove(peer);
            }
            Event::LeaderChanged(leader) => self.leader.clone_from(leader),
            Event::ConnectionResult(_) => {}
        }
    }

    /// The call that tells `event`, if somebody listens.
    fn call_for(&mut self, event: Event) -> Option<Call> {
        match event {
            Event::Joined(peer) => {
                let handler = self.peer_status.active()?.clone();
                self.told_joined.insert(peer.clone());
                Some(Call::PeerStatus(handler, peer, PeerStatus::Connected))
            }
            Event::Left(peer) => {
                let handler = self.peer_status.active()?.clone();
                self.told_joined.remove(&peer);
                Some(Call::PeerStatus(handler, peer, PeerStatus::Disconnected))
            }
            Event::LeaderChanged(leader) => {
                let handler = self.leader_changed.active()?.clone();
                self.told_leader.clone_from(&leader);
                Some(Call::LeaderChanged(handler, leader))
            }
            Event::ConnectionResult(result) => {
                let handler = self.connection_result.clone()?;
                Some(Call::ConnectionResult(handler, result))
            }
        }
    }

    /// Makes the waiting handler the active one, and queues what it is told first.
    fn take_over(&mut self, kind: Kind) {
        match kind {
            Kind::LeaderChanged => {
                self.leader_changed.waits = false;
                // None is news only to a host that was told of a leader.
                if self.leader.is_some() || self.told_leader.is_some() {
                    self.present
                        .push_back(Event::LeaderChanged(self.leader.clone()));
                }
            }
            Kind::PeerStatus => {
                self.peer_status.waits = false;
                let lost = self.told_joined.difference(&self.joined).cloned();
                self.present.extend(lost.map(Event::Left));
                let connected = self.joined.iter().cloned();
                self.present.extend(connected.map(Event::Joined));
            }
            Kind::Receive | Kind::ConnectionResult => {}
        }
    }

    /// Forgets everything, and gives it to the caller to drop without the lock.
    pub(super) fn stop(&mut self) -> Leftovers {
        self.stopped = true;
        self.messages = 0;
        self.bytes = 0;
        self.space_wanted = None;
        Leftovers {
            _entries: std::mem::take(&mut self.entries),
            _present: std::mem::take(&mut self.present),
            _receive: self.receive.take(),
            _leader_changed: self.leader_changed.handler.take(),
            _peer_status: self.peer_status.handler.take(),
            _connection_result: self.connection_result.take(),
        }
    }

    // Questions.

    pub(super) fn running(&self) -> Option<Running> {
        self.running
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn discarded(&self) -> u64 {
        self.discarded
    }

    pub(super) fn queued_messages(&self) -> (usize, usize) {
        (self.messages, self.bytes)
    }

    /// Until when a message that was not taken waits for the first handler at most.
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.hold_until.filter(|_| !self.stopped)
    }

    pub(super) fn has_undelivered_left(&self, peer: &PeerId) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(entry, Entry::Event(Event::Left(left)) if left == peer))
    }

    pub(super) fn undelivered_connection_results(&self) -> usize {
        let is_result = |entry: &&Entry| matches!(entry, Entry::Event(Event::ConnectionResult(_)));
        self.entries.iter().filter(is_result).count()
    }

    /// Whether the dispatcher thread sleeps and must be woken; it counts as woken from here.
    pub(super) fn take_consumer_waits(&mut self) -> bool {
        let something_to_do = !self.entries.is_empty() || !self.present.is_empty();
        something_to_do && std::mem::take(&mut self.consumer_waits)
    }

    /// Whether the message that waits is to be offered again.
    pub(super) fn take_space_wanted(&mut self) -> bool {
        std::mem::take(&mut self.space_freed)
    }
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Joined(_) | Event::Left(_) => Kind::PeerStatus,
        Event::LeaderChanged(_) => Kind::LeaderChanged,
        Event::ConnectionResult(_) => Kind::ConnectionResult,
    }
}

/// What a stop forgets.
pub(super) struct Leftovers {
    _entries: VecDeque<Entry>,
    _present: VecDeque<Event>,
    _receive: Option<ReceiveHandler>,
    _leader_changed: Option<LeaderChangedHandler>,
    _peer_status: Option<PeerStatusHandler>,
    _connection_result: Option<ConnectionResultHandler>,
}
