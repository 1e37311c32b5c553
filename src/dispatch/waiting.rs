//! Entries that wait for the host, in one order, with a bound for each kind.
//!
//! Messages, datagrams and other entries have a queue each; numbers keep their common order. So dropping the oldest
//! datagram, or queueing a message, takes the same time however many other entries wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::Instant;

use super::kind::Place;
use super::notes::Note;
use crate::core::event::{Event, Incoming, LeaderChange, Left, Returned};
use crate::core::id::PeerId;

/// Number of undelivered losses up to which each is reported with its return. Beyond it, a peer that returns before the
/// host received its loss counts as never lost, so that a flapping link fills no memory.
const MAX_LOSSES: usize = 64;
/// Limit of undelivered results of `SetLeader`; the oldest are dropped.
const MAX_RESULTS: usize = 256;
/// Limit of undelivered join requests. The oldest are dropped: their newcomers have waited the longest.
const MAX_REQUESTS: usize = 64;
/// Limit of undelivered refusals of members that were found. The oldest are dropped: lasting ones are reported again.
const MAX_REFUSALS: usize = 64;
/// Limit of undelivered pairs of members without a link, and of undelivered void bans.
const MAX_NOTICES: usize = 256;
/// Limit of undelivered announcements. The oldest are dropped: the announcing members repeat them.
const MAX_ANNOUNCEMENTS: usize = 256;
/// Number of undelivered states of members, of changes of paths, and of lost locks, up to which each is reported. Beyond it,
/// only the newest of each member, path or lock is.
const MAX_STATES: usize = 256;
/// Limit of undelivered states of members, of changes of paths, and of lost locks; the oldest are dropped.
const MAX_SUBJECTS: usize = 4 * MAX_STATES;

/// Number of undelivered reports about relays up to which each is reported. Beyond it, only the newest of each relay is.
const MAX_RELAY_REPORTS: usize = 64;

/// One waiting entry.
pub(super) enum Entry {
    Event(Event),
    Message(Incoming),
    /// A message that may be lost, and the end of its lifetime.
    Datagram(Incoming, Option<Instant>),
    /// A counted report; [`Notes`] has its number.
    Note(PeerId, Note),
    /// The takeover of a new handler: it first receives the room's state at this place in the queue.
    Takeover(Place),
    /// The next entry of the room's state, which its source has.
    State,
}

/// Events that are neither a message nor a datagram.
enum Other {
    Event(Event),
    Note(PeerId, Note),
    Takeover(Place),
    State,
}

/// The place of an entry in the order of all waiting ones.
type Turn = u64;

/// Subject of an event of which only the newest counts when many wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Member(PeerId),
    Path(PeerId),
    Lock(Arc<str>),
    Relay(Arc<str>),
    PortMapping,
    Turn(Arc<str>),
    Announcement(String),
}

impl Subject {
    fn of(event: &Event) -> Option<Self> {
        match event {
            Event::MemberState { peer, .. } => Some(Self::Member(peer.clone())),
            Event::PathChanged { peer, .. } => Some(Self::Path(peer.clone())),
            Event::LockLost { name, .. } => Some(Self::Lock(Arc::clone(name))),
            Event::PortMapping(_) => Some(Self::PortMapping),
            Event::Turn(report) => Some(Self::Turn(Arc::clone(&report.server))),
            Event::Relay(report) => Some(Self::Relay(Arc::clone(&report.relay))),
            Event::Discovered { address } => Some(Self::Announcement(address.clone())),
            _ => None,
        }
    }
}

/// Bound on the waiting events of a kind.
enum Bound {
    /// The kind has a bound elsewhere: admissions stop, calls are refused, or its events replace each other.
    Elsewhere,
    /// At most this many; the oldest are dropped.
    Newest(usize),
    /// Beyond the first number only the newest of each subject, at most the second number of these.
    NewestOfEach(usize, usize),
}

impl Bound {
    fn of(event: &Event) -> Self {
        match event {
            Event::SetLeaderResult { .. } => Self::Newest(MAX_RESULTS),
            Event::JoinRequest { .. } | Event::JoinWithdrawn { .. } => Self::Newest(MAX_REQUESTS),
            Event::Discovered { .. } => Self::Newest(MAX_ANNOUNCEMENTS),
            Event::DiscoveryRefused(_) => Self::Newest(MAX_REFUSALS),
            Event::Unlinked { .. } | Event::BanDropped { .. } => Self::Newest(MAX_NOTICES),
            Event::MemberState { .. } | Event::LockLost { .. } | Event::PathChanged { .. } => {
                Self::NewestOfEach(MAX_STATES, MAX_SUBJECTS)
            }
            // A host has a few relays and servers: it needs no history of them.
            Event::Relay(_) | Event::PortMapping(_) | Event::Turn(_) => {
                Self::NewestOfEach(MAX_RELAY_REPORTS, MAX_RELAY_REPORTS)
            }
            _ => Self::Elsewhere,
        }
    }
}

/// Lets a change of a peer's path begin where the `earlier` one began, which it displaces: the host receives the path before
/// as it knows it. Returns whether the two cancel each other.
fn cancels(earlier: &Event, event: &mut Event) -> bool {
    match (earlier, event) {
        (
            Event::PathChanged {
                peer, old: first, ..
            },
            Event::PathChanged { peer: of, old, new },
        ) if peer == of => {
            old.clone_from(first);
            old == new
        }
        _ => false,
    }
}

/// All waiting entries; see the module's text.
#[derive(Default)]
pub(super) struct Waiting {
    turns: Turn,
    messages: VecDeque<(Turn, Incoming)>,
    datagrams: VecDeque<(Turn, Incoming, Option<Instant>)>,
    others: BTreeMap<Turn, Other>,
    /// The events among these, by their kind.
    kinds: HashMap<Discriminant<Event>, VecDeque<Turn>>,
    /// The newest event of each subject.
    newest: BTreeMap<Subject, Turn>,
    /// The turn of the next entry of the room's state, if it waits for one.
    state: Option<Turn>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.datagrams.is_empty() && self.others.is_empty()
    }

    fn next_turn(&mut self) -> Turn {
        self.turns += 1;
        self.turns
    }

    // Input.

    pub(super) fn push_message(&mut self, message: Incoming) {
        let turn = self.next_turn();
        self.messages.push_back((turn, message));
    }

    pub(super) fn push_datagram(&mut self, message: Incoming, until: Option<Instant>) {
        let turn = self.next_turn();
        self.datagrams.push_back((turn, message, until));
    }

    pub(super) fn push_note(&mut self, peer: PeerId, note: Note) {
        let turn = self.next_turn();
        self.others.insert(turn, Other::Note(peer, note));
    }

    pub(super) fn push_takeover(&mut self, place: Place) {
        let turn = self.next_turn();
        self.others.insert(turn, Other::Takeover(place));
    }

    /// Lets the room's state wait for its turn, unless it does.
    pub(super) fn push_state(&mut self) {
        if self.state.is_none() {
            let turn = self.next_turn();
            self.state = Some(turn);
            self.others.insert(turn, Other::State);
        }
    }

    /// Lets the room's state wait behind all that waits now, if it waits.
    pub(super) fn put_state_last(&mut self) {
        if let Some(turn) = self.state.take() {
            self.others.remove(&turn);
            self.push_state();
        }
    }

    /// Returns the event that this one displaced.
    #[must_use]
    pub(super) fn push_event(&mut self, mut event: Event) -> Option<Event> {
        let yielded = self.make_room_for(&event);
        if let Some(earlier) = &yielded
            && cancels(earlier, &mut event)
        {
            return yielded;
        }
        let turn = self.next_turn();
        if let Some(subject) = Subject::of(&event) {
            self.newest.insert(subject, turn);
        }
        if let Event::Left(Left { peer, .. }) | Event::Reconnecting(peer) = &event {
            // The next link begins with a path of its own.
            self.newest.remove(&Subject::Path(peer.clone()));
        }
        let kind = self.kinds.entry(discriminant(&event)).or_default();
        kind.push_back(turn);
        self.others.insert(turn, Other::Event(event));
        yielded
    }

    fn make_room_for(&mut self, event: &Event) -> Option<Event> {
        let waiting = self.count(event);
        let gives_way = match Bound::of(event) {
            Bound::Elsewhere => None,
            Bound::Newest(most) if waiting < most => None,
            Bound::NewestOfEach(each, _) if waiting < each => None,
            Bound::Newest(_) => self.oldest(event),
            Bound::NewestOfEach(_, most) => {
                let earlier = Subject::of(event).and_then(|it| self.newest.get(&it).copied());
                let oldest = self.oldest(event).filter(|_| waiting >= most);
                earlier.or(oldest)
            }
        };
        self.remove(gives_way?)
    }

    /// Number of waiting events of this kind.
    fn count(&self, event: &Event) -> usize {
        self.kinds
            .get(&discriminant(event))
            .map_or(0, VecDeque::len)
    }

    /// The first event of this kind.
    fn oldest(&self, event: &Event) -> Option<Turn> {
        let kind = self.kinds.get(&discriminant(event))?;
        kind.front().copied()
    }

    // Output.

    pub(super) fn pop(&mut self) -> Option<Entry> {
        let message = self.messages.front().map(|(turn, _)| *turn);
        let datagram = self.datagrams.front().map(|(turn, ..)| *turn);
        let other = self.others.keys().next().copied();
        let first = [message, datagram, other].into_iter().flatten().min()?;
        if message == Some(first) {
            let (_, message) = self.messages.pop_front()?;
            return Some(Entry::Message(message));
        }
        if datagram == Some(first) {
            let (message, until) = self.pop_datagram()?;
            return Some(Entry::Datagram(message, until));
        }
        Some(match self.take_other(first)? {
            Other::Event(event) => Entry::Event(event),
            Other::Note(peer, note) => Entry::Note(peer, note),
            Other::Takeover(place) => Entry::Takeover(place),
            Other::State => {
                self.state = None;
                Entry::State
            }
        })
    }

    /// The oldest datagram, wherever it stands.
    pub(super) fn pop_datagram(&mut self) -> Option<(Incoming, Option<Instant>)> {
        let (_, message, until) = self.datagrams.pop_front()?;
        Some((message, until))
    }

    fn remove(&mut self, turn: Turn) -> Option<Event> {
        match self.take_other(turn)? {
            Other::Event(event) => Some(event),
            Other::Note(..) | Other::Takeover(_) | Other::State => None,
        }
    }

    fn take_other(&mut self, turn: Turn) -> Option<Other> {
        let other = self.others.remove(&turn)?;
        if let Other::Event(event) = &other {
            if let Some(kind) = self.kinds.get_mut(&discriminant(event))
                && let Ok(place) = kind.binary_search(&turn)
            {
                kind.remove(place);
            }
            if let Some(subject) = Subject::of(event)
                && self.newest.get(&subject) == Some(&turn)
            {
                self.newest.remove(&subject);
            }
        }
        Some(other)
    }

    pub(super) fn withdraw_takeover(&mut self, of: Place) {
        let is_it = |other: &Other| matches!(other, Other::Takeover(place) if *place == of);
        self.others.retain(|_, other| !is_it(other));
    }

    // Replacement of events.

    /// The last change of the leader.
    pub(super) fn newest_leader(&self) -> Option<&LeaderChange> {
        let turn = self.newest_leader_turn()?;
        match self.others.get(&turn) {
            Some(Other::Event(Event::LeaderChanged(change))) => Some(change),
            _ => None,
        }
    }

    fn newest_leader_turn(&self) -> Option<Turn> {
        let kind = discriminant(&Event::LeaderChanged(LeaderChange::default()));
        self.kinds.get(&kind)?.back().copied()
    }

    /// Removes the last change of the leader, unless a reliable message came after it. Any number of datagrams may lie
    /// between: for them the leader counts that the host knows when it receives them.
    pub(super) fn withdraw_leader_change(&mut self) {
        let message = self.messages.back().map(|(turn, _)| *turn);
        let change = self
            .newest_leader_turn()
            .filter(|turn| Some(*turn) > message);
        if let Some(turn) = change {
            self.take_other(turn);
        }
    }

    /// Whether this announcement already waits.
    pub(super) fn has_announcement(&self, address: &str) -> bool {
        let subject = Subject::Announcement(address.to_owned());
        self.newest.contains_key(&subject)
    }

    /// Removes the undelivered loss of a peer that has returned, if there are too many losses and it is the peer's last
    /// event. Returns whether it did. The counts of the return are added to the return before it; without one, both
    /// events stay.
    pub(super) fn withdraw_loss(&mut self, returned: &Returned) -> bool {
        let is_loss = |event: &Event| matches!(event, Event::Reconnecting(_));
        if self.count(&Event::Reconnecting(returned.peer.clone())) <= MAX_LOSSES {
            return false;
        }
        let mut of_peer = self
            .others
            .iter()
            .rev()
            .filter_map(|(turn, other)| match other {
                Other::Event(event) if event.peer() == Some(&returned.peer) => Some((*turn, event)),
                _ => None,
            });
        let Some((loss, _)) = of_peer.next().filter(|(_, event)| is_loss(event)) else {
            return false;
        };
        let before = of_peer.next().map(|(turn, _)| turn);
        match before.and_then(|turn| self.others.get_mut(&turn)) {
            Some(Other::Event(Event::Returned(before))) => {
                before.undelivered = before.undelivered.saturating_add(returned.undelivered);
                before.missed = before.missed.saturating_add(returned.missed);
            }
            _ if returned.undelivered > 0 || returned.missed > 0 => return false,
            _ => {}
        }
        self.take_other(loss);
        true
    }

    /// Removes the opposite of a report about a peer's host, if it is the newest event about the peer, and returns
    /// whether it did. So a peer whose reports alternate fills no memory.
    pub(super) fn withdraw_host_report(&mut self, report: &Event) -> bool {
        let is_report =
            |event: &Event| matches!(event, Event::HostSilent { .. } | Event::HostBack(_));
        let is_about_it = |event: &Event| {
            event.names() == report.names() && (event.peer().is_some() || is_report(event))
        };
        let mut newest = self.others.iter().rev();
        let newest = newest.find_map(|(turn, other)| match other {
            Other::Event(event) if is_about_it(event) => Some((*turn, event)),
            _ => None,
        });
        match newest {
            Some((turn, event))
                if is_report(event) && discriminant(event) != discriminant(report) =>
            {
                self.take_other(turn).is_some()
            }
            _ => false,
        }
    }

    /// Number of waiting events for which `holds` is true.
    pub(super) fn events(&self, holds: impl Fn(&Event) -> bool) -> usize {
        let holds = |other: &&Other| matches!(other, Other::Event(event) if holds(event));
        self.others.values().filter(holds).count()
    }
}
