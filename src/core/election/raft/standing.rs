//! How strong a leadership is, and whether it lives.

use super::{Following, Raft, Reign, View};
use crate::core::id::PeerId;
use crate::core::time::{Duration, Time};
use crate::core::wire::LiveLeader;

/// How strong a leadership is.
impl Raft {
    /// The leader that this node is, or hears directly.
    pub(super) fn live(&self, now: Time, view: &View) -> Option<LiveLeader> {
        if let Some(reign) = &self.reign {
            return Some(LiveLeader {
                id: self.me.clone(),
                incarnation: self.incarnation,
                weight: self.weight(now, view, reign),
                led_ms: millis(now.since(reign.since)),
                rest_ms: clamp_millis(self.config.heartbeat_timeout),
            });
        }
        let Following::Direct(leadership) = &self.following else {
            return None;
        };
        let rest = (leadership.heard_at + self.config.heartbeat_timeout).since(now);
        let voter = view.voters.get(&leadership.leader)?;
        (!rest.is_zero()).then(|| LiveLeader {
            id: leadership.leader.clone(),
            incarnation: voter.incarnation,
            weight: leadership.weight,
            led_ms: leadership
                .led_ms
                .saturating_add(millis(now.since(leadership.heard_at))),
            rest_ms: clamp_millis(rest),
        })
    }

    /// The same for `peer`: what it leads itself is no news to it.
    pub(super) fn live_to(&self, now: Time, view: &View, peer: &PeerId) -> Option<LiveLeader> {
        self.live(now, view).filter(|live| live.id != *peer)
    }

    pub(super) fn hears_leader(&self, now: Time) -> bool {
        matches!(&self.following, Following::Direct(leadership)
            if now < leadership.heard_at + self.config.heartbeat_timeout)
    }

    pub(super) fn lease_binds(&self, now: Time) -> bool {
        self.config.guards.lease && now < self.lease_until
    }

    /// Voters, itself included, that showed lately that they go by this leader.
    pub(super) fn weight(&self, now: Time, view: &View, reign: &Reign) -> u32 {
        let fresh = view
            .eligible()
            .filter(|(id, _)| {
                reign
                    .acks
                    .get(*id)
                    .is_some_and(|at| now < *at + self.config.heartbeat_timeout)
            })
            .count();
        u32::try_from(fresh + 1).unwrap_or(u32::MAX)
    }

    pub(super) fn has_quorum(&self, now: Time, view: &View) -> bool {
        let total = view.eligible().count() + 1;
        let weight = self
            .reign
            .as_ref()
            .map_or(0, |reign| self.weight(now, view, reign));
        weight as usize >= self.config.quorum.votes_needed(total)
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn clamp_millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
