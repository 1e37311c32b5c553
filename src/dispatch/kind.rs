//! The kinds of handlers. Each classic callback is a filter over [`Event`]; [`Everything`] passes all of it.
//!
//! This is the table: a kind is a [`Place`] in the order of the calls and an implementation of [`Kind`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::event::{self, Event, Incoming, LeaderChange, Left, LeftReason, Returned};
use crate::core::id::PeerId;
use crate::snapshot::PeerStatus as Status;

/// Where a kind stands in the order in which the handlers of one event are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// [`Receive`].
    Receive,
    /// [`LeaderChanged`].
    LeaderChanged,
    /// [`Leadership`].
    Leadership,
    /// [`PeerStatus`].
    PeerStatus,
    /// [`Reconnect`].
    Reconnect,
    /// [`ConnectionResult`].
    ConnectionResult,
    /// [`Everything`], after the classic ones.
    Everything,
}

/// How many kinds there are.
pub(super) const KINDS: usize = Place::Everything as usize + 1;

/// What is known of the peer that an event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About {
    /// How it was linked before the event.
    pub before: Option<Status>,
    /// Its number in the room; 0 where it has none.
    pub index: u32,
}

/// What a handler of everything is told.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// What happened.
    pub event: &'a Event,
    /// The number of the peer that the event names; 0 where it has none.
    pub peer_index: u32,
}

/// How a new handler begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// With the next event.
    Next,
    /// Behind what is queued, with the present of that moment.
    InTurn,
    /// At once with the present, and then with what is queued, so that each message finds it in step.
    AtOnce,
}

/// A kind of handlers.
pub trait Kind: 'static {
    /// Its place.
    const PLACE: Place;
    /// How a new handler begins.
    const TAKEOVER: Takeover = Takeover::Next;
    /// Whether messages wait for the first of its handlers and, from the end of the hold on, need one.
    const TAKES_MESSAGES: bool = false;
    /// What its handlers are called with.
    type Told<'a>;

    /// What they are told of `event` where this node is `me`.
    fn told<'a>(event: &'a Event, about: About, me: &PeerId) -> Option<Self::Told<'a>>;

    /// The events of which a new handler is told first, where the room is as `now` and the handlers before it, if it
    /// replaces one directly, knew it as `told`.
    fn present(_now: &View, _told: &View, _me: &PeerId) -> Vec<Event> {
        Vec::new()
    }
}

/// A handler of one kind.
pub type Handler<K> = Arc<dyn for<'a> Fn(<K as Kind>::Told<'a>) + Send + Sync>;

/// Messages. The new handler gets the next one.
#[derive(Debug)]
pub enum Receive {}

impl Kind for Receive {
    const PLACE: Place = Place::Receive;
    const TAKES_MESSAGES: bool = true;
    type Told<'a> = &'a Incoming;

    fn told<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<&'a Incoming> {
        match event {
            Event::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// Changes of the leader; `None` is no leader. A new handler is first told the leader, if the host knows one by then.
///
/// Where it replaces another handler directly and the change to "no leader" fell between the two, it is told that.
#[derive(Debug)]
pub enum LeaderChanged {}

impl Kind for LeaderChanged {
    const PLACE: Place = Place::LeaderChanged;
    const TAKEOVER: Takeover = Takeover::InTurn;
    type Told<'a> = Option<&'a PeerId>;

    fn told<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<Option<&'a PeerId>> {
        match event {
            Event::LeaderChanged(change) => Some(change.new.as_ref()),
            _ => None,
        }
    }

    fn present(now: &View, told: &View, _: &PeerId) -> Vec<Event> {
        // None is news only to a host that was told of a leader.
        let news = now.leader.new.is_some() || told.leader.new.is_some();
        let change = news.then(|| Event::LeaderChanged(now.leader.clone()));
        change.into_iter().collect()
    }
}

/// Whether this node leads: true and false in turn, each after [`LeaderChanged`]. A new handler is first told true where
/// this node leads.
///
/// Where it replaces another handler directly and the loss fell between the two, it is told that.
#[derive(Debug)]
pub enum Leadership {}

impl Kind for Leadership {
    const PLACE: Place = Place::Leadership;
    const TAKEOVER: Takeover = Takeover::InTurn;
    type Told<'a> = bool;

    fn told(event: &Event, _: About, me: &PeerId) -> Option<bool> {
        match event {
            Event::LeaderChanged(change) => change.leadership_of(me),
            _ => None,
        }
    }

    fn present(now: &View, told: &View, me: &PeerId) -> Vec<Event> {
        let leads = now.leader.new.as_ref() == Some(me);
        let old = told.leader.new.clone().filter(|_| !leads);
        vec![Event::LeaderChanged(LeaderChange {
            old,
            ..now.leader.clone()
        })]
    }
}

/// Connections ([`Status::Connected`]) and losses ([`Status::Disconnected`]). A new handler is first told of every
/// connected peer, in the order of the ids.
///
/// A loss is told once: a peer that is lost and then given up was told as disconnected already. A handler that replaces
/// another one directly is told of the losses that fell between the two.
#[derive(Debug)]
pub enum PeerStatus {}

impl Kind for PeerStatus {
    const PLACE: Place = Place::PeerStatus;
    const TAKEOVER: Takeover = Takeover::InTurn;
    type Told<'a> = (&'a PeerId, Status);

    fn told<'a>(event: &'a Event, about: About, _: &PeerId) -> Option<(&'a PeerId, Status)> {
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

    fn present(now: &View, told: &View, _: &PeerId) -> Vec<Event> {
        let lost = told.connected().filter(|peer| !now.is_connected(peer));
        // To this kind one loss is as another; the handler that hears why is another one.
        let lost = lost.map(|peer| Event::Left(Left::new(peer.clone(), LeftReason::Lost)));
        let connected = now.connected().map(|peer| Event::Joined(peer.clone()));
        lost.chain(connected).collect()
    }
}

/// What becomes of lost peers.
#[derive(Debug)]
pub enum Reconnect {}

impl Kind for Reconnect {
    const PLACE: Place = Place::Reconnect;
    type Told<'a> = (&'a PeerId, ReconnectStatus);

    fn told<'a>(
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
    type Told<'a> = &'a event::ConnectionResult;

    fn told<'a>(event: &'a Event, _: About, _: &PeerId) -> Option<&'a event::ConnectionResult> {
        match event {
            Event::ConnectionResult(result) => Some(result),
            _ => None,
        }
    }
}

/// Everything, behind the classic handlers that are told the same.
///
/// A new handler is first told the present: the leader, where the host knows one by then, then for each peer of
/// the room, in the order of the ids, that it joined and, where it is lost, that it is being dialled again.
#[derive(Debug)]
pub enum Everything {}

impl Kind for Everything {
    const PLACE: Place = Place::Everything;
    const TAKEOVER: Takeover = Takeover::AtOnce;
    const TAKES_MESSAGES: bool = true;
    type Told<'a> = Told<'a>;

    fn told<'a>(event: &'a Event, about: About, _: &PeerId) -> Option<Told<'a>> {
        Some(Told {
            event,
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

/// Takes everything.
pub type EventHandler = Handler<Everything>;

/// What becomes of a lost peer, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReconnectStatus {
    /// It is being dialled again.
    Retrying = 0,
    /// It is back.
    Returned = 1,
    /// It has been given up.
    GaveUp = 2,
}

/// The event that follows `event`, where it begins or ends the leadership of `me`.
pub(super) fn leadership(event: &Event, me: &PeerId) -> Option<Event> {
    let Event::LeaderChanged(change) = event else {
        return None;
    };
    Some(match change.leadership_of(me)? {
        true => Event::LeadershipGained(change.clone()),
        false => Event::LeadershipLost(change.clone()),
    })
}

/// The room as somebody knows it who has been told of the events up to one.
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

/// Whether an event handler that takes over is to hear an event of which the one before it was still to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inherited {
    /// No: the present, which it is told first, has it.
    No,
    /// Yes, before the present: the present shows no trace of it.
    BeforePresent,
    /// Yes, after the present.
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
    /// Whether it is to be called for `event`.
    fn hears(&self, event: &Event, about: About) -> bool;
    /// Calls it, if it is.
    fn call(&self, event: &Event, about: About);
    /// [`Kind::present`].
    fn present(&self, now: &View, told: &View) -> Vec<Event>;
    /// [`Kind::TAKES_MESSAGES`].
    fn takes_messages(&self) -> bool;
}

/// The [`Listener`] of a kind.
pub(super) struct Listening<K: Kind> {
    pub(super) handler: Handler<K>,
    pub(super) me: PeerId,
}

impl<K: Kind> Listener for Listening<K> {
    fn hears(&self, event: &Event, about: About) -> bool {
        K::told(event, about, &self.me).is_some()
    }

    fn call(&self, event: &Event, about: About) {
        if let Some(told) = K::told(event, about, &self.me) {
            (self.handler)(told);
        }
    }

    fn present(&self, now: &View, told: &View) -> Vec<Event> {
        K::present(now, told, &self.me)
    }

    fn takes_messages(&self) -> bool {
        K::TAKES_MESSAGES
    }
}
