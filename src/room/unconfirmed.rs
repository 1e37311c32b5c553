//! Messages of a member that claims to lead and that the external store has not confirmed yet: they wait for the store.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::core::id::PeerId;
use crate::core::wire::Opaque;
use crate::net::events::{LinkEvent, LinkId, RelayEvent};

/// Members remembered after a vain wait for the confirmation of their leadership, at most.
const MAX_VAIN_WAITS: usize = 256;

/// Waiting messages: one per lane, which is not read meanwhile.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    waiting: Vec<Waiting>,
    /// The token of each member that waited in vain. Further messages with that token do not wait: a node
    /// that does not reach the store reads the leader's messages at full speed, and drops them.
    vain_waits: BTreeMap<PeerId, Opaque>,
}

#[derive(Debug)]
struct Waiting {
    link: LinkId,
    event: LinkEvent,
    until: Instant,
}

impl Unconfirmed {
    /// Whether a message of `peer` with this token must wait, at most until `until`.
    pub(super) fn waits(&mut self, peer: &PeerId, token: &Opaque, until: Instant) -> bool {
        if self.vain_waits.get(peer) == Some(token) {
            return false;
        }
        if Instant::now() < until {
            return true;
        }
        tracing::warn!(%peer, "a member leads by its own account, and etcd does not confirm it: what it sends as leader is dropped; it lies, or this node does not reach etcd");
        if self.vain_waits.len() >= MAX_VAIN_WAITS {
            self.vain_waits.clear();
        }
        self.vain_waits.insert(peer.clone(), token.clone());
        false
    }

    /// Adds a waiting event.
    pub(super) fn push(&mut self, link: LinkId, event: LinkEvent, until: Instant) {
        self.waiting.push(Waiting { link, event, until });
    }

    /// Takes all waiting events, to be checked again.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (LinkId, LinkEvent, Instant)> + use<> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|one| (one.link, one.event, one.until))
    }

    /// When the first wait ends.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|one| one.until).min()
    }
}

/// The leadership token of an event.
pub(super) fn token(event: &LinkEvent) -> Option<&Opaque> {
    match event {
        LinkEvent::Stamped(token, _) => Some(token),
        LinkEvent::Relay(RelayEvent::OnBehalf(message)) => Some(&message.token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_leadership_that_etcd_does_not_show_is_waited_for_once() {
        let (peer, other) = (PeerId::new("a").expect("an id"), Opaque::of(&2));
        let claimed = Opaque::of(&1);
        let (past, later) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let mut unconfirmed = Unconfirmed::default();
        assert!(unconfirmed.waits(&peer, &claimed, later));
        assert!(!unconfirmed.waits(&peer, &claimed, past));
        assert!(!unconfirmed.waits(&peer, &claimed, later), "in vain before");
        assert!(
            unconfirmed.waits(&peer, &other, later),
            "another leadership"
        );
    }

    #[test]
    fn waiting_messages_are_checked_again_until_their_time_is_up() {
        let mut unconfirmed = Unconfirmed::default();
        assert_eq!(unconfirmed.next_deadline(), None);
        let until = Instant::now();
        let event = LinkEvent::Stamped(Opaque::of(&1), oneshot::channel().0);
        assert_eq!(token(&event), Some(&Opaque::of(&1)));
        unconfirmed.push(LinkId(3), event, until);
        assert_eq!(unconfirmed.next_deadline(), Some(until));
        let taken: Vec<_> = unconfirmed.take().map(|(link, _, at)| (link, at)).collect();
        assert_eq!(taken, [(LinkId(3), until)]);
        assert_eq!(unconfirmed.next_deadline(), None);
    }
}
