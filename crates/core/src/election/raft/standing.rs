//! The strength of a leadership, and whether it lives.

use super::following::DirectLeader;
use super::role::Leader;
use super::{Raft, View};
use crate::election::raft::wire::LiveLeader;
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// Strength of a leadership.
impl Raft {
    /// This node itself if it leads, or the leader whose heartbeats it receives.
    pub(super) fn live(&self, now: Time, view: &View) -> Option<LiveLeader> {
        if let Some(leader) = self.leading().filter(|_| !self.has_lapsed(now)) {
            return Some(LiveLeader {
                id: self.me.clone(),
                key: self.key,
                incarnation: self.incarnation,
                weight: self.weight(now, view, leader),
                led_ms: millis(now.since(leader.since)),
                rest_ms: clamp_millis(self.config.heartbeat_timeout),
            });
        }
        let direct = self.direct()?;
        let rest = self.believed_until(now, view, direct).since(now);
        let rest = rest.min(self.config.heartbeat_timeout);
        let voter = view.voters.get(&direct.leader)?;
        let weight = if self.is_unconfirmed(direct) {
            0
        } else {
            direct.weight
        };
        (!rest.is_zero()).then(|| LiveLeader {
            id: direct.leader.clone(),
            key: voter.key,
            incarnation: voter.incarnation,
            weight,
            led_ms: direct.led_ms.saturating_add(millis(now.since(direct.at))),
            rest_ms: clamp_millis(rest),
        })
    }

    /// As [`live`](Self::live), except a leader that is `peer` itself.
    pub(super) fn live_to(&self, now: Time, view: &View, peer: &PeerId) -> Option<LiveLeader> {
        self.live(now, view).filter(|live| live.id != *peer)
    }

    /// Whether its leader's heartbeats arrive here, and under the present record if that is an assignment.
    pub(super) fn has_direct_leader(&self, now: Time, view: &View) -> bool {
        self.direct().is_some_and(|direct| {
            now < self.believed_until(now, view, direct) && !self.is_unconfirmed(direct)
        })
    }

    /// The time until which this node vouches for its leader without another heartbeat.
    fn believed_until(&self, now: Time, view: &View, direct: &DirectLeader) -> Time {
        let until = direct.at + self.config.heartbeat_timeout;
        let held_until = view.held_until(now, &direct.leader);
        held_until.map_or(until, |held| held.max(until))
    }

    /// Whether the leader was named after it was last heard (C4.6). It may have died before, and others would wait for
    /// a host when it is lost (C4.5): no member vouches for it under a record under which it never led.
    fn is_unconfirmed(&self, direct: &DirectLeader) -> bool {
        let record = self.rules.record();
        record.assigned
            && record.leader.as_ref() == Some(&direct.leader)
            && *record != direct.record
    }

    pub(super) fn lease_binds(&self, now: Time) -> bool {
        self.config.guards.lease() && now < self.lease_until
    }

    /// The number of voters, this node included, that showed lately that they follow this leader.
    pub(super) fn weight(&self, now: Time, view: &View, leader: &Leader) -> u32 {
        let fresh = view
            .eligible()
            .filter(|(id, _)| {
                let is_held = view.held_until(now, id).is_some();
                let is_fresh = |at: &Time| is_held || now < *at + self.config.heartbeat_timeout;
                leader.acks.get(*id).is_some_and(is_fresh)
            })
            .count();
        u32::try_from(fresh + 1).unwrap_or(u32::MAX)
    }

    pub(super) fn has_quorum(&self, now: Time, view: &View) -> bool {
        let total = view.eligible().count() + 1;
        let weight = self
            .leading()
            .map_or(0, |leader| self.weight(now, view, leader));
        weight as usize >= self.config.quorum.votes_needed(total)
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn clamp_millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
