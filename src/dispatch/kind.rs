//! The kinds of handlers. Each classic callback is a filter over [`Event`]; [`Everything`] passes all events.
//!
//! A kind consists of a [`Place`] in the order of the calls and an implementation of [`Kind`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::event::{self, Event, Incoming, LeaderChange, Left, LeftReason, Returned};
use crate::core::id::PeerId;
use crate::snapshot::PeerStatus as Status;
use crate::state::event::StateEvent;

/// Place of a kind in the order in which the handlers of one event are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// [`Receive`].
    Receive,
    /// [`LeaderChanged`].
    LeaderChanged,
    /// [`PeerStatus`].
    PeerStatus,
    /// [`Reconnect`].
    Reconnect,
    /// [`ConnectionResult`].
    ConnectionResult,
    /// [`Everything`], after the classic ones.
    Everything,
}

/// Number of kinds.
pub(super) const KINDS: usize = Place::Everything as usize + 1;

/// Facts about the peer that an event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About {
    /// Its link before the event.
    pub before: Option<Status>,
    /// Its index in the room; 0 if it has none.
    pub index: u32,
}

/// An event as a handler receives it.
#[derive(Debug, Clone, Copy)]
pub enum Reported<'a> {
    /// Of the room: its members, its leader, messages.
    Room(&'a Event),
    /// Of the room's state.
    State(&'a StateEvent),
}

/// The arguments of an [`Everything`] handler.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The event.
    pub event: Reported<'a>,
    /// The index of the peer that the event names; 0 if it has none.
    pub peer_index: u32,
}

/// The first events of a new handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// The next event.
    Next,
    /// The present state, in its turn behind the queued events.
    InTurn,
    /// The present state at once, then the queued events, so that the handler is up to date at each message.
    AtOnce,
}

/// A kind of handlers.
pub trait Kind: 'static {
    /// Its place.
    const PLACE: Place;
    /// The first events of a new handler.
    const TAKEOVER: Takeover = Takeover::Next;
    /// Whether messages wait for the first of its handlers, and are discarded without one after the hold.
    const TAKES_MESSAGES: bool = false;
    /// The argument of its handlers.
    type Report<'a>;

    /// The argument of its handlers for `event`, at the node `me`; `None` if they do not receive it.
    fn reported<'a>(event: &'a Event, about: About, me: &PeerId) -> Option<Self::Report<'a>>;

    /// The argument of its handlers for an event of the room's state; `None` if they do not receive it.
    fn state_reported(_event: &StateEvent, _about: About) -> Option<Self::Report<'_>> {
        None
    }

    /// The first events of a new handler, in a room with the state `now`. `reported` is the state that the handlers before
    /// it have received, if it replaces one directly.
    fn present(_now: &View, _reported: &View, _me: &PeerId) -> Vec<Event> {
        Vec::new()
    }
}

/// A handler of one kind.
pub type Handler<K> = Arc<dyn for<'a> Fn(<K as Kind>::Report<'a>) + Send + Sync>;

/// Messages. The new handler gets the next one.
#[derive(Debug)]
pub enum Receive {}

impl Kind for Receive {
    const PLACE: Place = Place::Receive;
    const TAKES_MESSAGES: bool = true;
    type Report<'a> = &'a Incoming;

    fn reported<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<&'a Incoming> {
        match event {
            Event::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// Changes of the leader; `None` is no leader. A new handler first receives the leader, if the host knows one by then.
///
/// A handler that directly replaces another also receives a change to "no leader" that fell between the two.
#[derive(Debug)]
pub enum LeaderChanged {}

impl Kind for LeaderChanged {
    const PLACE: Place = Place::LeaderChanged;
    const TAKEOVER: Takeover = Takeover::InTurn;
    type Report<'a> = Option<&'a PeerId>;

    fn reported<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<Option<&'a PeerId>> {
        match event {
            Event::LeaderChanged(change) => Some(change.new.as_ref()),
            _ => None,
        }
    }

    fn present(now: &View, reported: &View, _: &PeerId) -> Vec<Event> {
        // "No leader" is new only to a host that has received a leader.
        let news = now.leader.new.is_some() || reported.leader.new.is_some();
        let change = news.then(|| Event::LeaderChanged(now.leader.clone()));
        change.into_iter().collect()
    }
}

/// Connections ([`Status::Connected`]) and losses ([`Status::Disconnected`]). A new handler first receives every
/// connected peer, in the order of the ids.
///
/// A loss is reported once: a peer that is lost and then given up was reported as disconnected already. A handler that
/// directly replaces another also receives the losses that fell between the two.
#[derive(Debug)]
pub enum PeerStatus {}

impl Kind for PeerStatus {
    const PLACE: Place = Place::PeerStatus;
    const TAKEOVER: Takeover = Takeover::InTurn;
    type Report<'a> = (&'a PeerId, Status);

    fn reported<'a>(event: &'a Event, about: About, _: &PeerId) -> Option<(&'a PeerId, Status)> {
        match event {
            Event::Joined(peer) | Event::Returned(Returned { peer, .. }) => {
                Some((peer, Status::Connected))
            }
            Event::Left(_) if about.before == Some(Status::Reconnecting) => None,
            Event::Reconnecting(peer) | Event::Left(Left { peer, .. }) => {
                Some((peer, Status::Disconnected))
            }
            _ => None,
        }
    }

    fn present(now: &View, reported: &View, _: &PeerId) -> Vec<Event> {
        let lost = reported.connected().filter(|peer| !now.is_connected(peer));
        // This kind reports every loss alike; [`Everything`] reports the reason.
        let lost = lost.map(|peer| Event::Left(Left::new(peer.clone(), LeftReason::Lost)));
        let connected = now.connected().map(|peer| Event::Joined(peer.clone()));
        lost.chain(connected).collect()
    }
}

/// The progress of reconnection to lost peers.
#[derive(Debug)]
pub enum Reconnect {}

impl Kind for Reconnect {
    const PLACE: Place = Place::Reconnect;
    type Report<'a> = (&'a PeerId, ReconnectStatus);

    fn reported<'a>(
        event: &'a Event,
        about: About,
        _: &PeerId,
    ) -> Option<(&'a PeerId, ReconnectStatus)> {
        match event {
            Event::Reconnecting(peer) => Some((peer, ReconnectStatus::Retrying)),
            Event::Returned(returned) => Some((&returned.peer, ReconnectStatus::Returned)),
            Event::Left(left) if about.before == Some(Status::Reconnecting) => {
                Some((&left.peer, ReconnectStatus::GaveUp))
            }
            _ => None,
        }
    }
}

/// The results of connection attempts.
#[derive(Debug)]
pub enum ConnectionResult {}

impl Kind for ConnectionResult {
    const PLACE: Place = Place::ConnectionResult;
    type Report<'a> = &'a event::ConnectionResult;

    fn reported<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<&'a event::ConnectionResult> {
        match event {
            Event::ConnectionResult(result) => Some(result),
            _ => None,
        }
    }
}

/// All events, each after the classic handlers of the same event.
///
/// A new handler first receives the present state: the leader, if the host knows one by then; then for each peer of the
/// room, in the order of the ids, that it joined and, if it is lost, that the library is dialling it again.
#[derive(Debug)]
pub enum Everything {}

impl Kind for Everything {
    const PLACE: Place = Place::Everything;
    const TAKEOVER: Takeover = Takeover::AtOnce;
    const TAKES_MESSAGES: bool = true;
    type Report<'a> = Report<'a>;

    fn reported<'a>(event: &'a Event, about: About, _: &PeerId) -> Option<Report<'a>> {
        Some(Report {
            event: Reported::Room(event),
            peer_index: about.index,
        })
    }

    fn state_reported(event: &StateEvent, about: About) -> Option<Report<'_>> {
        Some(Report {
            event: Reported::State(event),
            peer_index: about.index,
        })
    }

    fn present(now: &View, _: &View, me: &PeerId) -> Vec<Event> {
        let mut present = Vec::new();
        if now.leader.new.is_some() {
            let change = Event::LeaderChanged(LeaderChange {
                old: None,
                ..now.leader.clone()
            });
            let leadership = leadership(&change, me);
            present.push(change);
            present.extend(leadership);
        }
        for (peer, status) in &now.peers {
            present.push(Event::Joined(peer.clone()));
            if *status == Status::Reconnecting {
                present.push(Event::Reconnecting(peer.clone()));
            }
        }
        present
    }
}

/// Handler of all events.
pub type EventHandler = Handler<Everything>;

/// State of a lost peer, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReconnectStatus {
    /// The library is dialling it again.
    Retrying = 0,
    /// It is back.
    Returned = 1,
    /// The library has given it up.
    GaveUp = 2,
}

/// The event that follows `event` if that begins or ends the leadership of `me`.
pub(super) fn leadership(event: &Event, me: &PeerId) -> Option<Event> {
    let Event::LeaderChanged(change) = event else {
        return None;
    };
    Some(match change.leadership_of(me)? {
        true => Event::LeadershipGained(change.clone()),
        false => Event::LeadershipLost(change.clone()),
    })
}

/// The room as known to a handler that has received the events up to one.
#[derive(Debug, Default)]
pub struct View {
    /// The last change of the leader.
    pub(super) leader: LeaderChange,
    /// The peers, each Connected or Reconnecting.
    pub(super) peers: BTreeMap<PeerId, Status>,
}

impl View {
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::Joined(peer) | Event::Returned(Returned { peer, .. }) => {
                self.peers.insert(peer.clone(), Status::Connected);
            }
            Event::Reconnecting(peer) => {
                self.peers.insert(peer.clone(), Status::Reconnecting);
            }
            Event::Left(left) => {
                self.peers.remove(&left.peer);
            }
            Event::LeaderChanged(change) => self.leader.clone_from(change),
            _ => {}
        }
    }

    fn is_connected(&self, peer: &PeerId) -> bool {
        self.peers.get(peer) == Some(&Status::Connected)
    }

    fn connected(&self) -> impl Iterator<Item = &PeerId> {
        let connected = self.peers.iter();
        connected
            .filter(|(_, status)| **status == Status::Connected)
            .map(|(peer, _)| peer)
    }
}

/// Whether a new event handler receives an event that its predecessor had not received yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inherited {
    /// No: the present state, which it receives first, includes the event.
    No,
    /// Yes, before the present state, which has no trace of it.
    BeforePresent,
    /// Yes, after the present state.
    AfterPresent,
}

impl Inherited {
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::LeaderChanged(change) if change.new.is_some() => Self::No,
            Event::Joined(_)
            | Event::Reconnecting(_)
            | Event::Returned(_)
            | Event::LeadershipGained(_) => Self::No,
            Event::Left(_) | Event::LeaderChanged(_) | Event::LeadershipLost(_) => {
                Self::BeforePresent
            }
            _ => Self::AfterPresent,
        }
    }
}

/// A registered handler, whatever its kind.
pub(super) trait Listener: Send + Sync {
    /// Whether it receives `event`.
    fn accepts(&self, event: Reported<'_>, about: About) -> bool;
    /// Calls it, if it receives the event.
    fn call(&self, event: Reported<'_>, about: About);
    /// [`Kind::present`].
    fn present(&self, now: &View, reported: &View) -> Vec<Event>;
    /// [`Kind::TAKES_MESSAGES`].
    fn takes_messages(&self) -> bool;
}

/// The [`Listener`] of a kind.
pub(super) struct Listening<K: Kind> {
    pub(super) handler: Handler<K>,
    pub(super) me: PeerId,
}

impl<K: Kind> Listening<K> {
    fn argument<'a>(&self, event: Reported<'a>, about: About) -> Option<K::Report<'a>> {
        match event {
            Reported::Room(event) => K::reported(event, about, &self.me),
            Reported::State(event) => K::state_reported(event, about),
        }
    }
}

impl<K: Kind> Listener for Listening<K> {
    fn accepts(&self, event: Reported<'_>, about: About) -> bool {
        self.argument(event, about).is_some()
    }

    fn call(&self, event: Reported<'_>, about: About) {
        if let Some(argument) = self.argument(event, about) {
            (self.handler)(argument);
        }
    }

    fn present(&self, now: &View, reported: &View) -> Vec<Event> {
        K::present(now, reported, &self.me)
    }

    fn takes_messages(&self) -> bool {
        K::TAKES_MESSAGES
    }
}
