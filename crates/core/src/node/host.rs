//! Host silence: a leader whose host takes no events may yield to a member whose host does.
//!
//! Each node reports its own host's silence in its heartbeats. Only the leader yields, and only for the silence of its
//! own host. Another member's report makes that member a target, or none.

use super::*;
use crate::wire::Strategy;

/// Time without taking events after which a host is reported to the other hosts.
pub const HOST_SILENT_AFTER: Duration = Duration::from_secs(5);
/// Multiple of its own limit within which a node yields once at most.
const YIELD_INTERVAL_FACTOR: u32 = 10;
/// Part of the limit within which the host of a target has taken events.
const TARGET_LIMIT_PART: u32 = 2;

/// This node's host.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Time since which it has taken no events.
    pub(super) silent_since: Option<Time>,
    /// Time of this node's last yield for that.
    yielded_at: Option<Time>,
}

impl Node {
    /// Time for which this host has taken no events.
    pub(super) fn host_silence(&self, now: Time) -> Duration {
        let since = self.host.silent_since;
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Time since which this host has taken no events, according to the last input.
    pub fn host_silent_since(&self) -> Option<Time> {
        self.host.silent_since
    }

    /// Time of this node's last yield for a silent host, for checks.
    pub fn yielded_at(&self) -> Option<Time> {
        self.host.yielded_at
    }

    /// Reports a change of a host's silence after a heartbeat of `peer`.
    pub(super) fn note_host(&mut self, peer: &PeerId) {
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        let silent = member.host_silent;
        let is_silent = silent >= HOST_SILENT_AFTER;
        if std::mem::replace(&mut member.silence_reported, is_silent) == is_silent {
            return;
        }
        let peer = peer.clone();
        self.event(match is_silent {
            true => Event::HostSilent { peer, silent },
            false => Event::HostBack(peer),
        });
    }

    /// Transfers the leadership to a member with a lively host, if there is one and this leader's host has been silent
    /// for too long.
    pub(super) fn yield_if_silent(&mut self, now: Time) {
        let Some(limit) = self.config.yield_after else {
            return;
        };
        let strategy = self.config.election.policy.strategy;
        let may = self.is_leader() && !self.is_fixed() && !matches!(strategy, Strategy::Seeded(_));
        let pause = limit.saturating_mul(YIELD_INTERVAL_FACTOR);
        let has_yielded = self.host.yielded_at.is_some_and(|at| now.since(at) < pause);
        if !may || has_yielded || self.host_silence(now) < limit {
            return;
        }
        let targets = self.responsive_members(limit / TARGET_LIMIT_PART);
        if self.yield_to(now, targets) {
            self.host.yielded_at = Some(now);
        }
    }

    /// Members that may lead and whose hosts have been silent for less than `limit`, the preferred ones first.
    fn responsive_members(&self, limit: Duration) -> Vec<PeerId> {
        let is_lively = |id: &PeerId| {
            let member = self.membership.elector(id);
            member.is_some_and(|member| member.host_silent < limit)
        };
        let mut members: Vec<_> = self
            .view
            .eligible()
            .filter(|(id, _)| is_lively(id))
            .collect();
        members.sort_by_key(|(id, voter)| (voter.priority, *id));
        let ids = members.into_iter().rev().map(|(id, _)| id.clone());
        ids.collect()
    }

    /// Transfers the leadership to the first of `targets` that can take over; if the strategy names no target, to the
    /// next in line.
    fn yield_to(&mut self, now: Time, targets: Vec<PeerId>) -> bool {
        let names_target = self.config.election.policy.strategy == Strategy::Raft;
        let mut targets = targets.into_iter().map(|peer| names_target.then_some(peer));
        targets.any(|target| self.try_elect(now, Local::Transfer { target }).is_ok())
    }
}
