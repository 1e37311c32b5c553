//! The dispatcher's state, without threads: the queue, its handlers, and the events that the host has received.

use std::array;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Instant;

use super::Limits;
use super::indices::Indices;
use super::kind::{
    About, Handler, Inherited, KINDS, Kind, Listener, Listening, Place, Reported, Takeover, View,
    leadership,
};
use super::notes::{Note, Notes};
use super::waiting::{Entry, Waiting};
use crate::core::event::{Direction, Event, Incoming};
use crate::core::id::PeerId;
use crate::snapshot::PeerStatus;
use crate::state::event::StateEvent;

/// The running call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    /// Place of its handler.
    pub(super) place: usize,
    pub(super) thread: ThreadId,
    /// Distinguishes it from every other call.
    pub(super) number: u64,
    pub(super) since: Instant,
}

/// The outcome of offering a message.
pub(super) enum Offer {
    Queued,
    /// There is no handler for it. Counted.
    Discarded(Incoming),
    NoRoom(Incoming),
}

/// The handler of one kind.
#[derive(Default)]
struct Slot {
    listener: Option<Arc<dyn Listener>>,
    /// Its [`Entry::Takeover`] is still queued: it does not receive the events before that.
    waits: bool,
    /// The room as known to this handler and to the handlers that it replaced directly.
    reported: View,
}

impl Slot {
    fn active(&self) -> Option<&Arc<dyn Listener>> {
        self.listener.as_ref().filter(|_| !self.waits)
    }
}

/// An event of either kind.
#[derive(Clone)]
enum Occurrence {
    Room(Arc<Event>),
    State(Arc<StateEvent>),
}

impl Occurrence {
    fn reported(&self) -> Reported<'_> {
        match self {
            Self::Room(event) => Reported::Room(event),
            Self::State(event) => Reported::State(event),
        }
    }

    /// The event, if it is one of the room.
    fn of_room(&self) -> Option<&Event> {
        match self {
            Self::Room(event) => Some(event),
            Self::State(_) => None,
        }
    }
}

/// Has the events of the room's state, until the host takes them.
pub(crate) trait StateSource: Send + Sync {
    /// The events of the next entry, or what else the host must receive next; empty if there is nothing. Called under the
    /// lock of the queue.
    fn take(&self) -> Vec<StateEvent>;
}

/// An event on its way through the handlers.
struct Delivery {
    event: Occurrence,
    about: About,
    /// The places that have not received it yet.
    to: [bool; KINDS],
    /// The number of its entry.
    batch: u64,
}

/// A handler with its argument: ready to run without the lock.
pub(super) struct Call {
    listener: Arc<dyn Listener>,
    event: Occurrence,
    about: About,
}

impl Call {
    pub(super) fn run(self) {
        self.listener.call(self.event.reported(), self.about);
    }
}

pub(super) struct Queue {
    limits: Limits,
    waiting: Waiting,
    /// The room's state, if it has one.
    state: Option<Arc<dyn StateSource>>,
    /// Whether the state has events that wait for a handler of all events.
    state_held: bool,
    /// Deliveries to handlers before the next entry.
    deliveries: VecDeque<Delivery>,
    /// Counts entries, and every event of the present state that a new handler receives.
    batches: u64,
    /// The batch of the last call.
    last_batch: u64,

    /// Messages of this host to itself that wait for the first handler; they count as queued.
    held: VecDeque<Incoming>,
    messages: usize,
    bytes: usize,
    /// Messages that may be lost have the same limits, but separate counts.
    datagrams: usize,
    datagram_bytes: usize,
    notes: Notes,
    discarded: u64,
    /// End of the hold, for which messages wait for the first handler; `None` once there was one.
    hold_until: Option<Instant>,
    /// Length of the message that waits for room.
    space_wanted: Option<usize>,
    space_freed: bool,

    /// By place.
    slots: [Slot; KINDS],

    /// This node.
    me: PeerId,
    /// The room as of the last entry taken from the queue.
    room: View,
    /// The indices of its peers. Changed only under the lock of the queue.
    indices: Arc<Indices>,

    running: Option<Running>,
    calls: u64,
    /// No handler runs yet.
    pub(super) waits_to_begin: bool,
    /// The handler of all events receives no messages yet: they wait as they do without a handler.
    holds_messages: bool,
    stopped: bool,

    /// The thread that polls, in poll mode.
    pub(super) poller: Option<ThreadId>,
    /// The moment at which the last poll began or ended; before the first one, the start of the queue.
    pub(super) polled_at: Instant,
    /// Whether the dispatcher thread sleeps.
    pub(super) consumer_waits: bool,
    /// Number of threads that wait for the end of a call, or of a poll.
    pub(super) end_waiters: usize,
}

impl Queue {
    pub(super) fn new(limits: Limits, me: PeerId, now: Instant) -> Self {
        Self {
            limits,
            waiting: Waiting::default(),
            state: None,
            state_held: false,
            deliveries: VecDeque::new(),
            batches: 0,
            last_batch: 0,
            held: VecDeque::new(),
            messages: 0,
            bytes: 0,
            datagrams: 0,
            datagram_bytes: 0,
            notes: Notes::default(),
            discarded: 0,
            hold_until: Some(now + limits.hold),
            space_wanted: None,
            space_freed: false,
            slots: array::from_fn(|_| Slot::default()),
            me,
            room: View::default(),
            indices: Arc::default(),
            running: None,
            calls: 0,
            waits_to_begin: false,
            holds_messages: false,
            stopped: false,
            poller: None,
            polled_at: now,
            consumer_waits: false,
            end_waiters: 0,
        }
    }

    // Input of the network thread and the host.

    /// Returns an event that this one displaced: the host will not receive it.
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
                self.waiting.withdraw_leader_change();
                // The leader is again the one before the withdrawn change.
                if *self.newest_leader() == change.new {
                    return None;
                }
                change.old = self.newest_leader().clone();
                // Events of the state may follow from this leader.
                self.waiting.put_state_last();
            }
            Event::Joined(peer) => self.indices.assign(peer),
            Event::Returned(returned) if self.waiting.withdraw_loss(returned) => return None,
            Event::Left(left) => {
                for note in self.notes.of_leaving(&left.peer) {
                    self.waiting.push_note(left.peer.clone(), note);
                }
            }
            Event::SlowPeer(peer) => {
                self.note(peer, Note::SlowPeer, 1);
                return None;
            }
            Event::DataDropped {
                peer,
                direction,
                count,
            } => {
                self.note(peer, Note::Dropped(*direction), *count);
                return None;
            }
            Event::Discovered { address } if self.waiting.has_announcement(address) => return None,
            _ => {}
        }
        let about_host = matches!(event, Event::HostSilent { .. } | Event::HostBack(_));
        if about_host && self.waiting.withdraw_host_report(&event) {
            return None;
        }
        self.waiting.push_event(event)
    }

    pub(super) fn set_state(&mut self, source: Arc<dyn StateSource>) {
        self.state = Some(source);
    }

    /// The state may have events for the host.
    pub(super) fn push_state(&mut self) {
        if !self.stopped {
            self.waiting.push_state();
        }
    }

    fn note(&mut self, peer: &PeerId, note: Note, count: u64) {
        if self.notes.add(peer, note, count) {
            self.waiting.push_note(peer.clone(), note);
        }
    }

    /// Returns the messages that this one displaced, so that the caller drops them without the lock.
    #[must_use]
    pub(super) fn push_datagram(
        &mut self,
        message: Incoming,
        until: Option<Instant>,
    ) -> Vec<Incoming> {
        if self.stopped {
            return vec![message];
        }
        if !self.takes_messages() {
            self.discarded += 1;
            return vec![message];
        }
        let len = message.payload.len();
        let mut given_way = Vec::new();
        while self.datagrams > 0
            && (self.datagrams >= self.limits.messages
                || self.datagram_bytes.saturating_add(len) > self.limits.bytes)
        {
            let Some((oldest, _)) = self.waiting.pop_datagram() else {
                debug_assert!(false, "datagrams are counted that are not queued");
                break;
            };
            self.datagrams -= 1;
            self.datagram_bytes -= oldest.payload.len();
            self.note(&oldest.from, Note::Dropped(Direction::Received), 1);
            given_way.push(oldest);
        }
        self.datagrams += 1;
        self.datagram_bytes += len;
        self.waiting.push_datagram(message, until);
        given_way
    }

    /// Takes the message, discards it, or returns it. A message returned with `may_wait` waits:
    /// [`Queue::take_space_wanted`] decides when to offer it again. During the hold for the first handler, a message
    /// that may wait is returned, and one that may not is held here.
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
            self.waiting.push_message(message);
        } else {
            self.held.push_back(message);
        }
        self.check_counts();
        Offer::Queued
    }

    /// Discards the held messages at the end of the hold.
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

    /// Queues the held messages: the first handler that takes messages is registered.
    fn release_held(&mut self) {
        self.end_hold();
        self.hold_until = None;
        for message in std::mem::take(&mut self.held) {
            self.waiting.push_message(message);
        }
    }

    /// Invariants of the counts between any two calls.
    fn check_counts(&self) {
        debug_assert!(self.messages > 0 || self.bytes == 0, "bytes of no message");
        debug_assert!(self.messages >= self.held.len(), "held, but not counted");
        debug_assert!(
            self.held.is_empty() || self.hold_until.is_some(),
            "held for no handler"
        );
    }

    /// Whether a handler that takes messages is registered.
    fn takes_messages(&self) -> bool {
        let slots = self.slots.iter().enumerate();
        let mut listeners =
            slots.filter_map(|(place, slot)| Some((place, slot.listener.as_ref()?)));
        listeners.any(|(place, listener)| listener.takes_messages() && !self.holds_for(place))
    }

    /// Whether messages wait although there may be a handler in this place.
    fn holds_for(&self, place: usize) -> bool {
        self.holds_messages && place == Place::Everything as usize
    }

    /// Lets messages wait although there is a handler of all events, until [`Queue::take_messages`].
    pub(super) fn hold_messages(&mut self) {
        self.holds_messages = true;
    }

    /// From now on the handler of all events receives messages, the ones that wait first.
    pub(super) fn take_messages(&mut self) {
        self.holds_messages = false;
        if self.takes_messages() {
            self.release_held();
        }
    }

    fn has_room(&self, len: usize) -> bool {
        self.messages == 0
            || (self.messages < self.limits.messages
                && self.bytes.saturating_add(len) <= self.limits.bytes)
    }

    /// The leader that the host will know once it has received the whole queue.
    fn newest_leader(&self) -> &Option<PeerId> {
        let change = self.waiting.newest_leader();
        &change.unwrap_or(&self.room.leader).new
    }

    // Handlers.

    /// Sets or removes the handler of a kind. Returns the old one, so that the caller drops it without the lock.
    pub(super) fn set<K: Kind>(
        &mut self,
        handler: Option<Handler<K>>,
    ) -> Option<Arc<dyn Listener>> {
        let me = self.me.clone();
        let listener = handler.map(|handler| Arc::new(Listening::<K> { handler, me }) as _);
        if self.stopped {
            return listener;
        }
        let place = K::PLACE;
        if listener.is_none() {
            self.slots[place as usize].reported = View::default();
        } else if K::TAKES_MESSAGES && !self.holds_for(place as usize) {
            self.release_held();
        }
        match K::TAKEOVER {
            Takeover::Next => {}
            Takeover::InTurn => self.take_over_in_turn(place, listener.is_some()),
            Takeover::AtOnce => self.take_over_at_once(place, listener.as_ref()),
        }
        let old = std::mem::replace(&mut self.slots[place as usize].listener, listener);
        if self.has(Place::Everything) && std::mem::take(&mut self.state_held) {
            self.push_state();
        }
        old
    }

    /// Forgets the old handler's takeover, and queues one for the new.
    fn take_over_in_turn(&mut self, place: Place, wanted: bool) {
        let slot = &mut self.slots[place as usize];
        if std::mem::replace(&mut slot.waits, wanted) {
            self.waiting.withdraw_takeover(place);
        }
        for delivery in &mut self.deliveries {
            delivery.to[place as usize] = false;
        }
        if wanted {
            self.waiting.push_takeover(place);
        }
    }

    /// The new handler receives the present state as of the last entry taken, and then every entry. It also receives
    /// the events that the old handler had not received and that the present state does not show.
    fn take_over_at_once(&mut self, place: Place, listener: Option<&Arc<dyn Listener>>) {
        let mut first = Vec::new();
        let mut last = Vec::new();
        for delivery in &mut self.deliveries {
            if !std::mem::take(&mut delivery.to[place as usize]) {
                continue;
            }
            let inherited = Delivery {
                event: delivery.event.clone(),
                to: only(place),
                ..*delivery
            };
            // The present state of the room shows nothing of the state's events.
            let of_room = delivery.event.of_room();
            match of_room.map_or(Inherited::AfterPresent, Inherited::of) {
                Inherited::No => {}
                Inherited::BeforePresent => first.push(inherited),
                Inherited::AfterPresent => last.push(inherited),
            }
        }
        if let Some(listener) = listener {
            self.deliveries.extend(first);
            self.deliver_present(place, listener);
            self.deliveries.extend(last);
        }
    }

    fn deliver_present(&mut self, place: Place, listener: &Arc<dyn Listener>) {
        let reported = &self.slots[place as usize].reported;
        for event in listener.present(&self.room, reported) {
            let batch = self.next_batch();
            self.deliver(batch, event, None, only(place));
        }
    }

    // Output for the dispatcher.

    /// The next call, which counts as running until [`Queue::end_call`]; its event counts as delivered. Skips events
    /// without a handler.
    pub(super) fn next_call(&mut self, thread: ThreadId) -> Option<Call> {
        if self.waits_to_begin {
            return None;
        }
        self.queue_rested_notes();
        loop {
            while let Some(delivery) = self.deliveries.front_mut() {
                let Some(next) = delivery.to.iter().position(|to| *to) else {
                    self.release_departed();
                    self.deliveries.pop_front();
                    continue;
                };
                delivery.to[next] = false;
                let slot = &mut self.slots[next];
                let Some(listener) = slot.active().cloned() else {
                    continue;
                };
                if let Some(event) = delivery.event.of_room() {
                    slot.reported.note(event);
                }
                if !listener.accepts(delivery.event.reported(), delivery.about) {
                    continue;
                }
                self.last_batch = delivery.batch;
                self.calls += 1;
                self.running = Some(Running {
                    place: next,
                    thread,
                    number: self.calls,
                    since: Instant::now(),
                });
                return Some(Call {
                    listener,
                    event: delivery.event.clone(),
                    about: delivery.about,
                });
            }
            match self.waiting.pop()? {
                Entry::Message(message) => self.take_message(message),
                Entry::Datagram(message, until) => self.take_datagram(message, until),
                Entry::Note(peer, note) => self.take_note(peer, note),
                Entry::Event(event) => self.take_event(event),
                Entry::Takeover(place) => self.take_turn(place),
                Entry::State => self.take_state(),
            }
        }
    }

    /// Whether another handler has yet to receive the batch of the last call.
    pub(super) fn batch_goes_on(&self) -> bool {
        self.deliveries
            .iter()
            .take_while(|delivery| delivery.batch == self.last_batch)
            .any(|delivery| self.has_receiver(delivery))
    }

    /// Whether a handler is registered that has yet to receive it.
    fn has_receiver(&self, delivery: &Delivery) -> bool {
        delivery.to.iter().zip(&self.slots).any(|(to, slot)| {
            let accepts = |listener: &Arc<dyn Listener>| {
                listener.accepts(delivery.event.reported(), delivery.about)
            };
            *to && slot.active().is_some_and(accepts)
        })
    }

    /// Frees the index of a peer whose LEFT the last handler has received.
    fn release_departed(&self) {
        let Some(Delivery { event, about, .. }) = self.deliveries.front() else {
            return;
        };
        let is_waited_for =
            |other: &Delivery| other.about.index == about.index && self.has_receiver(other);
        if matches!(event.of_room(), Some(Event::Left(_)))
            && !self.deliveries.iter().any(is_waited_for)
        {
            self.indices.release(about.index);
        }
    }

    fn next_batch(&mut self) -> u64 {
        self.batches += 1;
        self.batches
    }

    pub(super) fn end_call(&mut self) {
        self.running = None;
        self.release_departed();
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
        if self.takes_messages() {
            self.take_event(Event::Message(message));
        } else {
            self.discarded += 1;
        }
    }

    fn take_datagram(&mut self, message: Incoming, until: Option<Instant>) {
        self.datagrams -= 1;
        self.datagram_bytes -= message.payload.len();
        if until.is_some_and(|until| Instant::now() >= until) {
            self.note(&message.from, Note::Dropped(Direction::Received), 1);
        } else if self.takes_messages() {
            self.take_event(Event::Message(message));
        } else {
            self.discarded += 1;
        }
    }

    /// Notes that may be reported again.
    fn queue_rested_notes(&mut self) {
        if self.notes.next_end().is_none() {
            return;
        }
        let now = Instant::now();
        while let Some((peer, note)) = self.notes.ended(now) {
            self.waiting.push_note(peer, note);
        }
    }

    fn take_note(&mut self, peer: PeerId, note: Note) {
        let count = self.notes.take(Instant::now(), &peer, note);
        if !self.room.peers.contains_key(&peer) {
            return;
        }
        self.take_event(match note {
            Note::SlowPeer => Event::SlowPeer(peer),
            Note::Dropped(direction) => Event::DataDropped {
                peer,
                direction,
                count,
            },
        });
    }

    fn take_event(&mut self, event: Event) {
        let peers = &self.room.peers;
        let before = event.peer().and_then(|peer| peers.get(peer).copied());
        self.room.note(&event);
        let leadership = leadership(&event, &self.me);
        let mut to = [true; KINDS];
        // A handler that registers meanwhile has the event in its present state.
        let everything = Place::Everything as usize;
        let held = matches!(event, Event::Message(_)) && self.holds_for(everything);
        to[everything] = self.has(Place::Everything) && !held;
        let batch = self.next_batch();
        self.deliver(batch, event, before, to);
        if let Some(leadership) = leadership {
            self.deliver(batch, leadership, None, to);
        }
    }

    fn deliver(&mut self, batch: u64, event: Event, before: Option<PeerStatus>, to: [bool; KINDS]) {
        let is_known = |peer: &&PeerId| before.is_some() || self.room.peers.contains_key(*peer);
        let named = event.names().filter(is_known);
        let index = named.map_or(0, |peer| self.indices.of_oldest(peer));
        self.deliveries.push_back(Delivery {
            event: Occurrence::Room(Arc::new(event)),
            about: About { before, index },
            to,
            batch,
        });
    }

    /// Takes the state's next events. What it has beyond them waits behind all other entries.
    fn take_state(&mut self) {
        if !self.has(Place::Everything) {
            self.state_held = true;
            return;
        }
        let events = self.state.as_ref().map(|state| state.take());
        let events = events.unwrap_or_default();
        if !events.is_empty() {
            self.push_state();
        }
        let batch = self.next_batch();
        for event in events {
            let peer = event
                .peer()
                .filter(|peer| self.room.peers.contains_key(*peer));
            let index = peer.map_or(0, |peer| self.indices.of_oldest(peer));
            self.deliveries.push_back(Delivery {
                event: Occurrence::State(Arc::new(event)),
                about: About {
                    before: None,
                    index,
                },
                to: only(Place::Everything),
                batch,
            });
        }
    }

    /// Makes the waiting handler the active one, and queues its first events.
    fn take_turn(&mut self, place: Place) {
        let slot = &mut self.slots[place as usize];
        slot.waits = false;
        if let Some(listener) = slot.listener.clone() {
            self.deliver_present(place, &listener);
        }
    }

    /// Removes everything, and returns it so that the caller drops it without the lock.
    pub(super) fn stop(&mut self) -> Leftovers {
        self.stopped = true;
        self.held.clear();
        self.messages = 0;
        self.bytes = 0;
        self.datagrams = 0;
        self.datagram_bytes = 0;
        self.notes.clear();
        self.space_wanted = None;
        self.state_held = false;
        Leftovers {
            _state: self.state.take(),
            _waiting: std::mem::take(&mut self.waiting),
            _deliveries: std::mem::take(&mut self.deliveries),
            _slots: array::from_fn(|place| std::mem::take(&mut self.slots[place])),
        }
    }

    // Queries.

    pub(super) fn indices(&self) -> Arc<Indices> {
        Arc::clone(&self.indices)
    }

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

    pub(super) fn has(&self, place: Place) -> bool {
        self.slots[place as usize].listener.is_some()
    }

    /// Whether the queue, or a handler's view, still refers to `peer`.
    #[cfg(test)]
    pub(super) fn remembers(&self, peer: &PeerId) -> bool {
        let reported = self.slots.iter().map(|slot| &slot.reported);
        reported
            .chain([&self.room])
            .any(|view| view.peers.contains_key(peer))
    }

    /// The latest time until which a returned message waits for the first handler.
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.hold_until.filter(|_| !self.stopped)
    }

    /// The time at which an idle dispatcher checks the queue again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.notes.next_end()
    }

    /// Number of queued events of that kind.
    pub(super) fn undelivered(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.waiting.events(is_it)
    }

    /// Whether the dispatcher thread sleeps and must be woken; from here on it counts as awake.
    pub(super) fn take_consumer_waits(&mut self) -> bool {
        let something_to_do = !self.waiting.is_empty() || !self.deliveries.is_empty();
        something_to_do && std::mem::take(&mut self.consumer_waits)
    }

    /// Whether to offer the waiting message again.
    pub(super) fn take_space_wanted(&mut self) -> bool {
        std::mem::take(&mut self.space_freed)
    }
}

fn only(place: Place) -> [bool; KINDS] {
    let mut places = [false; KINDS];
    places[place as usize] = true;
    places
}

/// Contents that a stop removes.
pub(super) struct Leftovers {
    _state: Option<Arc<dyn StateSource>>,
    _waiting: Waiting,
    _deliveries: VecDeque<Delivery>,
    _slots: [Slot; KINDS],
}
