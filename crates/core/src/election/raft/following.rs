//! The leader that this node follows while it does not lead.

use std::collections::BTreeSet;

use super::round_trips::slowest_rtt;
use super::{AssignOutcome, Electors, Raft, Role, View};
use crate::election::raft::wire::LiveLeader;
use crate::election::record::Record;
use crate::election::rules::RoleKind;
use crate::id::{Fingerprint, PeerId};
use crate::time::{Duration, Time};

/// The leader that a follower shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Following {
    /// No leader.
    None,
    /// A peer whose heartbeats arrive here.
    Direct(DirectLeader),
    /// A leader that others named.
    Indirect(Named),
    /// A leader that `SetLeader` named and that has not been heard yet.
    Awaited(Named),
}

/// A leader whose heartbeats arrive here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectLeader {
    pub(super) leader: PeerId,
    /// The record under which the leader last showed that it leads.
    pub(super) record: Record,
    /// The time of its last heartbeat.
    pub(super) at: Time,
    pub(super) weight: u32,
    pub(super) led_ms: u64,
}

/// A leader that is not heard here, believed in until a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) leader: PeerId,
    /// The time at which the member that vouched for it last loses it, unless that member receives its heartbeats again.
    pub(super) vouched_until: Time,
    pub(super) key: Option<Fingerprint>,
    pub(super) until: Time,
    /// The linked peers that named it. Without any there is no path to it: this node believes in it, but does not show
    /// it.
    pub(super) vouchers: BTreeSet<PeerId>,
}

impl Following {
    pub(super) fn leader(&self) -> Option<&PeerId> {
        match self {
            Self::None => None,
            Self::Direct(direct) => Some(&direct.leader),
            Self::Indirect(named) | Self::Awaited(named) => Some(&named.leader),
        }
    }

    pub(super) fn is_direct(&self, peer: &PeerId) -> bool {
        matches!(self, Self::Direct(direct) if direct.leader == *peer)
    }
}

impl From<Option<Named>> for Following {
    fn from(named: Option<Named>) -> Self {
        named.map_or(Self::None, Self::Indirect)
    }
}

/// A peer's report of a living leader.
pub(super) enum Report {
    /// The peer names none.
    None,
    /// The peer names a leader that this node knows to be gone: as good as no answer (G3).
    Dead,
    /// The peer names a living leader.
    Alive(LiveLeader),
}

impl Raft {
    /// The leader that this node follows, unless it asks, campaigns or leads.
    pub(super) fn following(&self) -> &Following {
        match &self.role {
            Role::Follower(following) => following,
            Role::PreCandidate(_) | Role::Candidate(_) | Role::Leader(_) => &Following::None,
        }
    }

    /// The leader whose heartbeats arrive here.
    pub(super) fn direct(&self) -> Option<&DirectLeader> {
        match self.following() {
            Following::Direct(direct) => Some(direct),
            Following::None | Following::Indirect(_) | Following::Awaited(_) => None,
        }
    }

    /// Whether this node follows no leader, has no open round and does not lead.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.role, Role::Follower(Following::None))
    }

    /// Whether the leader in doubt is the one that this node shows, and no other member vouches for it. Beside a leader that a
    /// host has named meanwhile no member campaigns (P7).
    pub(super) fn is_in_doubt(&self, view: &View) -> bool {
        let is_named = self.rules.record().assigned;
        let vouched = self.role.vouchers().is_some_and(|of| !of.is_empty());
        let is_shown = view.doubted.is_some() && self.role.shown() == view.doubted.as_ref();
        is_shown && !is_named && !vouched
    }

    /// Notes that the leader whose heartbeats this node received has fallen silent, or that the doubt is over. A sign of
    /// life ends it, and with it the attempt to elect another leader.
    pub(super) fn weigh_doubt(&mut self, now: Time, view: &View) {
        let (before, doubts) = (self.doubts_leader, self.is_in_doubt(view));
        self.doubts_leader = doubts && (before || self.direct().is_some());
        if self.doubts_leader && !before {
            self.fell_silent = view.doubted.clone().map(|leader| (leader, now));
        } else if before && !doubts && matches!(self.role, Role::PreCandidate(_)) {
            self.abandon_round();
            self.arm_election(now, view);
        }
    }

    /// Follows `from`, whose claim is at least as new as any claim seen.
    pub(super) fn receive_leader(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        weight: u32,
        led_ms: u64,
    ) {
        self.take_over(now, view, record);
        self.refresh(now, view, from, record, weight, led_ms);
    }

    pub(super) fn refresh(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        weight: u32,
        led_ms: u64,
    ) {
        self.saw_leader(now, from, led_ms);
        let key = view.voters.get(from).map(|voter| voter.key);
        self.namesakes.follow(from, key);
        self.become_follower(Following::Direct(DirectLeader {
            leader: from.clone(),
            record: record.clone(),
            at: now,
            weight,
            led_ms,
        }));
        self.has_followed = true;
        self.yielded = false;
        // Voters besides the leader: the view leaves out this node instead, and `weight` counts the leader, too.
        let count = view
            .eligible()
            .count()
            .max((weight as usize).saturating_sub(1));
        self.electors = Electors::Of {
            leader: from.clone(),
            count,
        };
        self.lease_until = now + self.election_timeout_min();
        self.arm_election(now, view);
        if self.assigning.names(from, self.rules.record()) {
            self.finish_assignment(AssignOutcome::Done);
        }
    }

    /// Adopts a larger record, with its consequences for role and timers. The caller decides which leader this node
    /// shows, unless the record assigns this node itself.
    pub(super) fn take_over(&mut self, now: Time, view: &View, record: &Record) {
        if !self.rules.is_newer(record) || self.is_bare_term_outside_roster(record) {
            return;
        }
        self.rules.adopt(record, self.config.eligible);
        self.supersede_assignment();
        if self.rules.role() == RoleKind::Leader {
            self.become_leader(now);
        } else {
            self.yield_to_record(now, view);
        }
    }

    /// Voters ignore the answers of a member that is not in the roster. If it adopted the term of a candidate, it could
    /// not inform the leader of that term, whose own record it would refuse for good.
    fn is_bare_term_outside_roster(&self, record: &Record) -> bool {
        record.leader.is_none() && !self.config.quorum.admits(&self.me)
    }

    /// Shows a leader that only others hear, for as long as they vouch for it.
    pub(super) fn follow_indirectly(
        &mut self,
        now: Time,
        view: &View,
        record: &Record,
        live: &LiveLeader,
    ) {
        self.take_over(now, view, record);
        if self.leads() && record.leader.as_ref() == Some(&self.me) {
            return; // the record assigns this node
        }
        let extra = self.draw_timeout(view) - self.election_timeout_min();
        self.saw_leader(now, &live.id, live.led_ms);
        let rest = Duration::from_millis(live.rest_ms.into()).min(self.config.heartbeat_timeout);
        let until = now + rest + extra;
        self.believed = Some((live.id.clone(), live.incarnation));
        // A node that may campaign asks for no votes before then, and shows the leader that it waits for.
        let shown = self.may_campaign() || self.is_news(now, &live.id, rest);
        let named = shown.then(|| self.named(&live.id, Some(live.key), now + rest, until));
        self.become_follower(named.into());
        let of = |leader: &PeerId| matches!(&self.electors, Electors::Of { leader: last, .. } if last == leader);
        if !of(&live.id) {
            self.electors = Electors::Unknown;
        }
        self.election_at = until;
        if self.disk.is_none() {
            // A voter that knows its votes waits for a lease only, and an indirect leader gives none.
            self.grace_until = self.grace_until.max(until);
        }
    }

    /// `leader` as named by the peer whose message is being handled. Peers that named it before still vouch for it.
    pub(super) fn named(
        &self,
        leader: &PeerId,
        key: Option<Fingerprint>,
        vouched_until: Time,
        until: Time,
    ) -> Named {
        let before = self.role.vouchers();
        let is_same = |named: &Named| (&named.leader, named.key) == (leader, key);
        let same = before.filter(|_| self.role.named_or_awaited().is_some_and(is_same));
        let mut vouchers = same.cloned().unwrap_or_default();
        vouchers.extend(self.speaker.clone().filter(|speaker| speaker != leader));
        Named {
            leader: leader.clone(),
            vouched_until,
            key,
            until,
            vouchers,
        }
    }

    /// The leader in doubt, until its link ends.
    pub(super) fn doubted(&self, direct: &DirectLeader) -> Named {
        let record = self.rules.record();
        let is_its = record.leader.as_ref() == Some(&direct.leader);
        Named {
            leader: direct.leader.clone(),
            vouched_until: self.at,
            key: record.leader_key.filter(|_| is_its),
            until: self.at + self.config.heartbeat_timeout,
            vouchers: BTreeSet::new(),
        }
    }

    /// Whether the report of a peer, which loses `leader` after `rest`, outweighs the silence in which this node lost
    /// that leader. It does if the peer heard the leader well after this node did, or after the member that vouched for
    /// the leader here. Peers notice a crash at slightly different times.
    pub(super) fn is_news(&self, now: Time, leader: &PeerId, rest: Duration) -> bool {
        let margin = self.news_margin();
        !self
            .fell_silent
            .as_ref()
            .is_some_and(|(silent, at)| silent == leader && now + rest <= *at + margin)
    }

    pub(super) fn news_margin(&self) -> Duration {
        self.config.heartbeat_timeout / 2
    }

    /// The value of a report of a living leader to this node.
    pub(super) fn weigh_live(&self, now: Time, view: &View, live: Option<LiveLeader>) -> Report {
        match live {
            None => Report::None,
            Some(live) if live.id == self.me && live.incarnation == self.incarnation => {
                Report::None
            }
            Some(live) if live.id == self.me => Report::Dead,
            Some(live)
                if self.is_namesake(view, &live.id, live.key)
                    || view.banned.keeps_out(&live.id, live.key) =>
            {
                Report::Dead
            }
            Some(live)
                if self
                    .departures
                    .has_ended_in(now, &live.id, live.incarnation)
                    || self.outdates(now, view, &live) =>
            {
                Report::Dead
            }
            Some(live) => Report::Alive(live),
        }
    }

    /// Whether this node found the port of that leader closed after the reporting peer heard it last. A report of the
    /// time after that outweighs the evidence, which may be forged.
    fn outdates(&self, now: Time, view: &View, live: &LiveLeader) -> bool {
        let Some((leader, incarnation, at)) = &self.refused else {
            return false;
        };
        let rest = Duration::from_millis(live.rest_ms.into());
        let as_of_then = *at + self.config.heartbeat_timeout + slowest_rtt(view);
        *leader == live.id && *incarnation == live.incarnation && now + rest <= as_of_then
    }

    /// The rules adopted a higher record, which ends every role.
    pub(super) fn yield_to_record(&mut self, now: Time, view: &View) {
        if self.rules.role() != RoleKind::Follower {
            return;
        }
        match &self.role {
            Role::Leader(_) => {
                self.become_follower(Following::None);
                self.arm_election(now, view);
            }
            Role::PreCandidate(_) | Role::Candidate(_) => {
                self.step_down();
                self.election_at = now + self.retry_delay(slowest_rtt(view));
            }
            Role::Follower(_) => {}
        }
    }
}
