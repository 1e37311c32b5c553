//! Incarnations of peers that are no longer linked, so that no member believes in a leader that is gone.

use super::DownReason;
use crate::bounded::BoundedMap;
use crate::id::{Incarnation, PeerId};
use crate::time::{Duration, Time};

/// Maximum number of remembered incarnations, and for how long; later no member can still believe in one.
const MAX_DEPARTED: usize = 1024;
const DEPARTED_RETENTION: Duration = Duration::from_secs(10);

/// Incarnations whose links have ended.
#[derive(Debug, Default)]
pub(super) struct Departures(BoundedMap<(PeerId, Incarnation), Departed, MAX_DEPARTED>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Departed {
    /// Since when it is known to have ended: it left, its transport lost it, or the peer has another incarnation. An
    /// incarnation that only fell silent may live on for others.
    ended_at: Option<Time>,
    /// Whether the peer was linked in another incarnation since.
    succeeded: bool,
}

impl Departed {
    /// Whether it ended, and others may not know it yet.
    fn is_gone(&self, now: Time) -> bool {
        self.ended_at
            .is_some_and(|at| now < at + DEPARTED_RETENTION)
    }
}

impl Departures {
    /// A link to `incarnation` of `peer` ended.
    pub(super) fn note(
        &mut self,
        now: Time,
        peer: &PeerId,
        incarnation: Incarnation,
        why: &DownReason,
    ) {
        self.0
            .retain(|_, departed| departed.ended_at.is_none() || departed.is_gone(now));
        let departed = Departed {
            ended_at: (!matches!(why, DownReason::Silent | DownReason::Refused)).then_some(now),
            succeeded: false,
        };
        self.insert(peer, incarnation, departed);
    }

    /// Other members named `incarnation` of `peer`. If the peer is linked now in another incarnation, this one has
    /// ended.
    pub(super) fn note_report(&mut self, peer: &PeerId, incarnation: Incarnation) {
        if self.0.contains_key(&(peer.clone(), incarnation)) {
            return;
        }
        let unknown = Departed {
            ended_at: None,
            succeeded: false,
        };
        self.insert(peer, incarnation, unknown);
    }

    /// Makes room by dropping incarnations that did not end, then the ones that ended first: a name in others' reports
    /// does not prove that it lived.
    fn insert(&mut self, peer: &PeerId, incarnation: Incarnation, departed: Departed) {
        let key = (peer.clone(), incarnation);
        self.0
            .insert_over(key, departed, |_, departed| departed.ended_at);
    }

    /// The linked incarnation of `peer` has not ended, whatever its end looked like; its other incarnations have.
    pub(super) fn is_back(&mut self, now: Time, peer: &PeerId, linked: Option<Incarnation>) {
        self.0
            .retain(|(id, incarnation), _| id != peer || linked != Some(*incarnation));
        let of_peer = self.0.iter_mut().filter(|((id, _), _)| id == peer);
        for (_, departed) in of_peer {
            departed.ended_at.get_or_insert(now);
            departed.succeeded = true;
        }
    }

    /// Whether the last incarnation of `peer` that was linked here left or was lost by its transport, and others may
    /// not know it yet.
    pub(super) fn is_gone(&self, now: Time, peer: &PeerId) -> bool {
        self.of(peer)
            .any(|(_, departed)| !departed.succeeded && departed.is_gone(now))
    }

    /// As [`is_gone`](Self::is_gone), of one incarnation. While no later incarnation of the peer was linked here, one
    /// that started before the one that is gone is gone, too. Otherwise two incarnations cannot be ordered, because
    /// clocks may be set back.
    pub(super) fn has_ended_in(&self, now: Time, peer: &PeerId, incarnation: Incarnation) -> bool {
        self.of(peer).any(|(gone, departed)| {
            let ended = gone == incarnation || (gone > incarnation && !departed.succeeded);
            ended && departed.is_gone(now)
        })
    }

    fn of(&self, peer: &PeerId) -> impl Iterator<Item = (Incarnation, &Departed)> {
        let of_peer = self.0.iter().filter(move |((id, _), _)| id == peer);
        of_peer.map(|((_, incarnation), departed)| (*incarnation, departed))
    }
}
