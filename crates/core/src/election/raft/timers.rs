//! Timers: when a node campaigns, and when it repeats a request.

use std::cmp::Reverse;

use rand::Rng;

use super::following::Following;
use super::round_trips::mean_rtt;
use super::{AssignOutcome, MIN_SLOT, Raft, Role, SUCCESSION_GRACE, View};
use crate::election::rules::Tally;
use crate::id::PeerId;
use crate::time::{Duration, Time};

impl Raft {
    pub(super) fn tick(&mut self, now: Time, view: &View) {
        self.weigh_doubt(now, view);
        if let Some(named) = self.role.named().filter(|named| now >= named.until) {
            self.fell_silent = Some((named.leader.clone(), named.vouched_until));
            self.lose_leader();
        }
        if let Following::Awaited(named) = self.following()
            && now >= named.until
        {
            self.lose_leader();
            self.arm_election(now, view);
        }
        if self.assigning.deadline().is_some_and(|at| now >= at) {
            self.finish_assignment(AssignOutcome::Timeout);
        }
        self.end_transfer(|transfer| now >= transfer.until);
        self.ask_target(now, view);
        self.measure_round_trips(now, view);
        self.check_quorum(now, view);
        if self.role.round_at().is_some_and(|at| now >= at) {
            if matches!(self.role, Role::Candidate(_)) && !self.is_safe() {
                self.await_votes(now, view); // their requests have not gone out yet
            } else {
                self.round_timeout(now, view);
            }
        }
        if self.awaits_election() && now >= self.election_at {
            self.election_timeout(now, view);
        }
    }

    /// Whether the election timer runs: no leader is known, or it is in doubt, and no round is open.
    pub(super) fn awaits_election(&self) -> bool {
        (self.is_free() || (self.follows() && self.doubts_leader)) && self.may_campaign()
    }

    pub(super) fn may_campaign(&self) -> bool {
        self.auto_election
            && self.config.eligible
            && !self.leaving
            && !self.is_held()
            && self.stale.is_none()
    }

    /// Whether this node may campaign now because another one asks for it. A voter of a static quorum that just
    /// restarted may not vote, not even for itself.
    pub(super) fn may_stand(&self, now: Time) -> bool {
        self.disk.is_none() || self.may_vote(now)
    }

    pub(super) fn election_timeout(&mut self, now: Time, view: &View) {
        if !self.can_win(view) {
            self.arm_election(now, view);
            return;
        }
        if (!view.is_alone() || view.dialing) && !self.may_vote(now) {
            // G9: a node that just started does not know yet which leader it should hear.
            let slot = self.draw_timeout(view) - self.election_timeout_min();
            self.election_at = self.grace_until + slot;
            return;
        }
        self.seek_election(now, view);
    }

    /// Asks before it campaigns while any peer is linked, because an observer may know the leader, too. With a fixed
    /// number of voters, a node that can win alone is the only one.
    pub(super) fn seek_election(&mut self, now: Time, view: &View) {
        let fixed = self.config.quorum.is_static();
        if view.voters.is_empty() || (fixed && view.is_alone()) {
            self.campaign(now, view, None);
        } else {
            self.pre_vote(now, view);
        }
    }

    /// The round has timed out: it is repeated (G14). Where one vote would be enough, silence is still no consent while
    /// the link stands (G3): a node that receives nothing would take the silence of each in turn for consent, and the
    /// others would still receive its claim (P14). A peer that is gone loses its link, and then this node is alone.
    pub(super) fn round_timeout(&mut self, now: Time, view: &View) {
        match self.role {
            // No rival, as far as known: the answers are only late or lost, and waiting costs no term (P15).
            Role::Candidate(_) if self.may_ask_again(view) => {
                self.request_votes(now, view, Tally::Pending);
            }
            Role::PreCandidate(_) | Role::Candidate(_) => {
                let consented = self.has_consent();
                self.step_down();
                if !self.may_campaign() || !self.can_win(view) {
                    self.arm_election(now, view);
                } else if consented {
                    self.campaign(now, view, None);
                } else {
                    self.seek_election(now, view);
                }
            }
            Role::Leader(_) => self.campaign_in_place_again(now, view),
            Role::Follower(_) => {}
        }
    }

    /// Whether one vote is enough and only the one peer asked could object.
    pub(super) fn one_answer_decides(&self, view: &View) -> bool {
        let threshold = self.rules.campaign().map_or(0, |open| open.needed);
        !self.config.quorum.is_static() && threshold == 1 && view.eligible().nth(1).is_none()
    }

    pub(super) fn arm_election(&mut self, now: Time, view: &View) {
        self.election_at = now + self.draw_timeout(view);
    }

    /// G13: every voter has a slot of its own within the range, so that the next leader is known beforehand and votes
    /// hardly ever split. Voters whose rank is beyond the range share the last slot.
    pub(super) fn draw_timeout(&mut self, view: &View) -> Duration {
        let min = self.election_timeout_min();
        min + self.draw_slot(view, self.election_timeout_max() - min)
    }

    /// The wait after a leader that is known to be gone: the voters' slots share a short range (P11).
    pub(super) fn succession_slot(&mut self, view: &View) -> Duration {
        self.draw_slot(view, SUCCESSION_GRACE)
    }

    /// A time in this node's slot of `range`.
    fn draw_slot(&mut self, view: &View, range: Duration) -> Duration {
        if !self.config.guards.rank_slots() {
            return self.up_to(range);
        }
        let width = MIN_SLOT.max(mean_rtt(view) * 3 / 2);
        let slots = u32::try_from(range.as_micros() / width.as_micros()).unwrap_or(u32::MAX);
        let slots = slots.max(1);
        let slot = range / slots;
        slot * self.rank(view).min(slots - 1) + self.up_to(slot / 2)
    }

    /// The number of voters that go before this one when the present leader is lost: higher priorities, then fewer links
    /// over relays, then larger ids.
    pub(super) fn rank(&self, view: &View) -> u32 {
        let leader = self.role.shown();
        let before = view
            .eligible()
            .filter(|(id, _)| Some(*id) != leader && self.is_preferred(view, id))
            .count();
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// Whether `peer` is preferred to this node.
    pub(super) fn is_preferred(&self, view: &View, peer: &PeerId) -> bool {
        view.voters.get(peer).is_some_and(|voter| {
            let mine = (self.config.priority, Reverse(view.relayed), &self.me);
            (voter.priority, relayed_of(view, peer), peer) > mine
        })
    }

    pub(super) fn up_to(&mut self, limit: Duration) -> Duration {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.rng.random_range(0..=limit))
    }

    /// Whether this node knows enough to vote (G9, C2): the room, or its earlier votes.
    pub(super) fn may_vote(&self, now: Time) -> bool {
        let knows = if self.disk.is_some() {
            self.stale.is_none() && now >= self.grace_until
        } else {
            self.has_followed || now >= self.grace_until
        };
        self.config.eligible && (knows || !self.config.guards.restart_grace())
    }
}

/// The number of members that a peer reaches over a relay alone: the fewer, the better its rank.
pub(super) fn relayed_of(view: &View, peer: &PeerId) -> Reverse<u32> {
    Reverse(view.relayed_of.get(peer).copied().unwrap_or_default())
}
