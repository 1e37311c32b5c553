//! Who is told what: the calls that one entry of the queue leads to.

use crate::core::id::PeerId;
use crate::snapshot::PeerStatus;

use super::event::*;

/// Which handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Receive,
    LeaderChanged,
    Leadership,
    PeerStatus,
    Reconnect,
    ConnectionResult,
    /// The one that hears everything.
    Events,
}

/// What one handler is still to be told.
pub(super) enum Owed {
    Message(Incoming),
    Leader(Option<PeerId>),
    Leadership(bool),
    Status(PeerId, PeerStatus),
    Reconnect(PeerId, ReconnectStatus),
    ConnectionResult(ConnectionResult),
    Notice(Notice),
}

impl Owed {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Receive,
            Self::Leader(_) => Kind::LeaderChanged,
            Self::Leadership(_) => Kind::Leadership,
            Self::Status(..) => Kind::PeerStatus,
            Self::Reconnect(..) => Kind::Reconnect,
            Self::ConnectionResult(_) => Kind::ConnectionResult,
            Self::Notice(_) => Kind::Events,
        }
    }
}

/// A handler with what it is told: ready to run without the lock.
pub(super) enum Call {
    Receive(ReceiveHandler, Incoming),
    LeaderChanged(LeaderChangedHandler, Option<PeerId>),
    Leadership(LeadershipHandler, bool),
    PeerStatus(PeerStatusHandler, PeerId, PeerStatus),
    Reconnect(ReconnectHandler, PeerId, ReconnectStatus),
    ConnectionResult(ConnectionResultHandler, ConnectionResult),
    Events(EventHandler, Notice),
}

impl Call {
    pub(super) fn run(self) {
        match self {
            Self::Receive(handler, message) => handler(&message),
            Self::LeaderChanged(handler, leader) => handler(leader.as_ref()),
            Self::Leadership(handler, leads) => handler(leads),
            Self::PeerStatus(handler, peer, status) => handler(&peer, status),
            Self::Reconnect(handler, peer, status) => handler(&peer, status),
            Self::ConnectionResult(handler, result) => handler(&result),
            Self::Events(handler, notice) => handler(&notice),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Receive(..) => Kind::Receive,
            Self::LeaderChanged(..) => Kind::LeaderChanged,
            Self::Leadership(..) => Kind::Leadership,
            Self::PeerStatus(..) => Kind::PeerStatus,
            Self::Reconnect(..) => Kind::Reconnect,
            Self::ConnectionResult(..) => Kind::ConnectionResult,
            Self::Events(..) => Kind::Events,
        }
    }
}

/// What the callbacks of one kind are told of `event` where this node is `me`, in the order of the calls; `before`
/// is how its peer was linked before it. A loss is told once: a peer that is lost and then given up was told as disconnected
/// already.
pub(super) fn classic(event: &Event, before: Option<PeerStatus>, me: &PeerId) -> [Option<Owed>; 2] {
    let status = |peer: &PeerId, status| Some(Owed::Status(peer.clone(), status));
    let reconnect = |peer: &PeerId, status| Some(Owed::Reconnect(peer.clone(), status));
    match event {
        Event::Joined(peer) => [status(peer, PeerStatus::Connected), None],
        Event::Reconnecting(peer) => [
            status(peer, PeerStatus::Disconnected),
            reconnect(peer, ReconnectStatus::Retrying),
        ],
        Event::Returned(peer) => [
            status(peer, PeerStatus::Connected),
            reconnect(peer, ReconnectStatus::Returned),
        ],
        Event::Left(left) if before == Some(PeerStatus::Reconnecting) => {
            [reconnect(&left.peer, ReconnectStatus::GaveUp), None]
        }
        Event::Left(left) => [status(&left.peer, PeerStatus::Disconnected), None],
        Event::LeaderChanged(change) => {
            let (led, leads) = (
                change.old.as_ref() == Some(me),
                change.new.as_ref() == Some(me),
            );
            let leadership = (led != leads).then_some(Owed::Leadership(leads));
            [Some(Owed::Leader(change.new.clone())), leadership]
        }
        Event::ConnectionResult(result) => [Some(Owed::ConnectionResult(result.clone())), None],
        // The classic callbacks are fixed: events that came later are the event handler's.
        _ => [None, None],
    }
}

/// What the event handler is told of `event` where this node is `me`.
pub(super) fn notices(event: Event, me: &PeerId) -> [Option<Notice>; 2] {
    let leadership = match &event {
        Event::LeaderChanged(change) if change.new.as_ref() == Some(me) => {
            Some(Notice::LeadershipGained(change.clone()))
        }
        Event::LeaderChanged(change) if change.old.as_ref() == Some(me) => {
            Some(Notice::LeadershipLost(change.clone()))
        }
        _ => None,
    };
    [Some(Notice::Event(event)), leadership]
}

/// Whether a handler that takes over is to hear `notice`, which the one before it was owed.
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
    pub(super) fn of(notice: &Notice) -> Self {
        match notice {
            Notice::Event(Event::LeaderChanged(change)) if change.new.is_some() => Self::No,
            Notice::Event(Event::Joined(_) | Event::Reconnecting(_) | Event::Returned(_))
            | Notice::LeadershipGained(_) => Self::No,
            Notice::Event(Event::Left(_) | Event::LeaderChanged(_)) | Notice::LeadershipLost(_) => {
                Self::BeforePresent
            }
            Notice::Message(_) | Notice::Event(_) => Self::AfterPresent,
        }
    }
}
