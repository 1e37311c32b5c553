//! Keep-alives between the leader and its members, and the consequences of silence.

use super::members::Digest;
use super::role::{Acknowledged, Contact, Leader, Role};
use super::wire::{Claim, MAX_LISTED, Observation, SeededMessage};
use super::{LeaderReason, Listed, MemberState, Seeded, View};
use crate::id::{Incarnation, PeerId};
use crate::time::Time;

/// Maximum number of members whose states are sent one by one; for more, the leader sends its table.
const MAX_UPDATES: usize = 4;

/// The follower's part.
impl Seeded {
    pub(super) fn probe_follower(&mut self, now: Time, view: &View) {
        let intervals = self.intervals();
        if let Some(followed) = self.following() {
            if now.since(followed.acked_at) > intervals.ttl() {
                self.lose_leader(now, LeaderReason::Lost);
            } else if now >= followed.keep_alive_at {
                self.keep_alive_now(now, view);
            }
        }
        let leaderless = self.following().is_none();
        if leaderless && now.since(self.led_at) > intervals.ttl() * 3 {
            // A seed counts on from the version that it knows; other members begin anew.
            let version = if self.is_seed() { self.version } else { 0 };
            self.become_joining(now, version, LeaderReason::Lost);
        }
    }

    /// Leaves this member without a leader.
    pub(super) fn lose_leader(&mut self, now: Time, reason: LeaderReason) {
        self.become_follower(None, reason);
        // A random delay: simultaneous proposals are in each other's way.
        self.campaign_at = now + self.jitter(self.intervals().retry() / 4);
    }

    pub(super) fn keep_alive_now(&mut self, now: Time, view: &View) {
        let observed = self.observation();
        let acknowledges = self.acknowledges(now, &observed);
        let digest = self.members.digest(&observed);
        let interval = self.intervals().heartbeat();
        let Some(followed) = self.following_mut() else {
            return;
        };
        followed.keep_alive_at = now + interval;
        let leader = followed.claim.leader.clone();
        let acked_us = followed.acked_us.filter(|_| acknowledges);
        let message = SeededMessage::LeaderKeepAlive { digest, acked_us };
        self.send(view, &leader, observed, message);
    }

    /// Whether this voter's keep-alives acknowledge this leader. Just after a restart they do so only if an earlier
    /// incarnation acknowledged the same leader: another leader may count that incarnation until a TTL is over.
    fn acknowledges(&mut self, now: Time, leader: &Observation) -> bool {
        if !self.votes() {
            return false;
        }
        if now < self.grace_until {
            return self.kept.acknowledged.as_ref() == Some(leader);
        }
        if self.kept.acknowledged.as_ref() != Some(leader) {
            self.kept.acknowledged = Some(leader.clone());
        }
        true
    }

    pub(super) fn leader_keep_alive_ack(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        sent_us: u64,
    ) {
        let observed = self.observation();
        let Some(followed) = self.following_mut() else {
            return;
        };
        if followed.claim.leader == *from && observed == *basis {
            let is_first = followed.acked_us.is_none();
            followed.acked_at = now;
            followed.acked_us = followed.acked_us.max(Some(sent_us));
            self.led_at = now;
            if is_first {
                // Shows this leader at once that it is acknowledged.
                self.keep_alive_now(now, view);
            }
        }
    }

    /// The leader reports a change of a member.
    pub(super) fn member_changed(
        &mut self,
        from: &PeerId,
        basis: &Observation,
        change: u64,
        member: &PeerId,
        incarnation: Incarnation,
        state: MemberState,
    ) {
        if self.is_next_change(from, basis, change) && *member != self.me {
            self.members.set(member, incarnation, state);
        }
    }

    pub(super) fn cluster_alignment(
        &mut self,
        now: Time,
        from: &PeerId,
        basis: &Observation,
        change: u64,
        members: &[Listed],
    ) {
        if !self.is_next_change(from, basis, change) {
            return;
        }
        self.members.align(members);
        if !self.members.lists(&self.me, self.incarnation) {
            // The leader took this node for dead.
            self.become_joining(now, 0, LeaderReason::Lost);
        }
    }

    /// Whether the message comes from the leader and is no older than the last one (case 2).
    fn is_next_change(&mut self, from: &PeerId, basis: &Observation, change: u64) -> bool {
        let observed = self.observation();
        let Some(followed) = self.following_mut() else {
            return false;
        };
        let next = followed.claim.leader == *from && observed == *basis && change > followed.change;
        if next {
            followed.change = change;
        }
        next
    }

    /// A linked peer claims to lead: by a heartbeat, a Hello or a message to all.
    pub(super) fn receive_claim(&mut self, now: Time, view: &View, from: &PeerId, claim: &Claim) {
        if !self.is_voter(from) || *from != claim.leader {
            return;
        }
        self.decide(claim.version);
        if let Some(followed) = self.following_mut()
            && followed.claim.observation() == claim.observation()
        {
            followed.claim = claim.clone();
            return;
        }
        if claim.elected && claim.version > self.led_up_to {
            match self.role {
                Role::Leader(_) | Role::Follower(_) => {
                    self.follow(now, view, claim.clone(), LeaderReason::Elected);
                }
                Role::Joining(_) => self.aim_at(now, view, &claim.observation()),
            }
            return;
        }
        let own_is_older = self.following().is_some_and(|followed| {
            followed.claim.leader == claim.leader && followed.claim.version < claim.version
        });
        if own_is_older {
            // The claimant leads alone, after it gave up the leadership that this node follows.
            self.lose_leader(now, LeaderReason::Resigned);
        }
        self.aim_at(now, view, &claim.observation());
    }
}

/// The leader's part.
impl Seeded {
    pub(super) fn probe_leader(&mut self, now: Time, view: &View) {
        let intervals = self.intervals();
        let Some(leader) = self.leading() else {
            return;
        };
        let seeds_due = now >= leader.seeds_at;
        let silent: Vec<_> = leader
            .contacts
            .iter()
            .map(|(id, contact)| (id.clone(), now.since(contact.at)))
            .filter(|(_, silence)| *silence > intervals.heartbeat_timeout())
            .collect();
        let overdue = silent.into_iter().map(|(id, silence)| {
            let state = if silence > intervals.ttl() {
                MemberState::Removed
            } else {
                MemberState::Unreachable
            };
            (id, state)
        });
        self.set_states(view, overdue.collect());
        if seeds_due {
            self.seed_keep_alives(now, view);
        }
    }

    /// Notes that this leader had a majority: from then on it resigns without one.
    pub(super) fn note_majority(&mut self, now: Time) {
        let majority = self.config.roster.majority();
        let has = |leader: &Leader| self.acknowledging(now, leader) >= majority;
        let begins = self
            .leading()
            .is_some_and(|leader| !leader.had_majority && has(leader));
        if let Some(leader) = self.leading_mut().filter(|_| begins) {
            leader.had_majority = true;
        }
    }

    /// Voters that acknowledge this leader.
    pub(super) fn acknowledging(&self, now: Time, leader: &Leader) -> usize {
        let others = self.acknowledgements_end(leader);
        let others = others.filter(|end| now < *end).count();
        others + usize::from(self.votes() && now >= self.grace_until)
    }

    /// The time at which each voter ceases to acknowledge this leader unless it sends another keep-alive: a heartbeat
    /// timeout after its last one, if the answer shown by that one was then younger than a heartbeat timeout. No voter
    /// can have lost its leader before the TTL of that answer, whatever was delayed since.
    fn acknowledgements_end<'a>(&'a self, leader: &'a Leader) -> impl Iterator<Item = Time> + 'a {
        let intervals = self.intervals();
        let timeout = intervals.heartbeat_timeout();
        let lease = intervals.ttl() - intervals.probe().min(intervals.ttl());
        let voters = leader.contacts.iter().filter(|(id, _)| self.is_voter(id));
        let acknowledged = voters.filter_map(|(_, contact)| contact.acknowledged);
        acknowledged
            .filter(move |shown| shown.at.since(shown.answered_at) < timeout)
            .map(move |shown| (shown.at + timeout).min(shown.answered_at + lease))
    }

    /// The time at which too few voters acknowledge this leader for it to lead on, unless more keep-alives arrive.
    /// `None` if this node leads alone, or does not lead.
    pub(super) fn leads_until(&self, now: Time) -> Option<Time> {
        let leader = self.leading()?;
        if !leader.claim.elected && !leader.had_majority {
            return None;
        }
        let mut ends: Vec<_> = self.acknowledgements_end(leader).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        let majority = self.config.roster.majority();
        let first = leader.since + self.intervals().heartbeat_timeout();
        // The time until which this number of other voters is enough.
        let until = |others: usize| {
            let last_needed = others.checked_sub(1)?;
            Some(ends.get(last_needed).map_or(first, |end| (*end).max(first)))
        };
        if !self.votes() {
            return until(majority);
        }
        let without_itself = until(majority);
        let is_counted_by_then = without_itself.is_none_or(|end| self.grace_until.max(now) <= end);
        if now >= self.grace_until || is_counted_by_then {
            until(majority - 1)
        } else {
            without_itself
        }
    }

    /// Ends a leadership that a majority of the voters no longer acknowledges, whatever arrives at this moment: the
    /// process may have been suspended.
    pub(super) fn end_lapsed_leadership(&mut self, now: Time) {
        if self.leads_until(now).is_some_and(|until| now >= until) {
            self.led_at = now;
            self.become_follower(None, LeaderReason::Resigned);
            self.campaign_at = now;
        }
    }

    pub(super) fn leader_keep_alive(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        digest: Digest,
        acked_us: Option<u64>,
    ) {
        let observed = self.observation();
        let linked = view.voters.get(from).map(|voter| voter.incarnation);
        let (Some(incarnation), true) = (linked, observed == *basis) else {
            return;
        };
        // A member that followed after an election may not be in this table yet, or no longer.
        if !self.members.lists(from, incarnation) {
            self.admit_member(now, view, from, None);
        }
        if !self.members.lists(from, incarnation) {
            return; // the table is full, and this is no voter
        }
        let Some(leader) = self.leading_mut() else {
            return;
        };
        // An acknowledgement of an earlier incarnation still counts: this one waits for as long before it acknowledges
        // another leader.
        let before = leader
            .contacts
            .get(from)
            .and_then(|contact| contact.acknowledged);
        let shown = acked_us.map(Time::from_micros).filter(|at| *at <= now);
        let shown = shown.map(|answered_at| Acknowledged {
            at: now,
            answered_at,
        });
        let is_newer = |shown: &Acknowledged| {
            before.is_none_or(|before| shown.answered_at >= before.answered_at)
        };
        let contact = Contact {
            at: now,
            acknowledged: shown.filter(is_newer).or(before),
        };
        // Only members have an entry, so there is always room.
        let _ = leader.contacts.insert(from.clone(), contact);
        self.set_state(view, from, incarnation, MemberState::Active);
        if self.members.digest(&observed) != digest {
            self.align(view, from);
        }
        let sent_us = now.as_micros();
        let message = SeededMessage::LeaderKeepAliveAck { sent_us };
        self.send(view, from, observed, message);
    }

    /// Changes the state of a member, and reports it to the others.
    pub(super) fn set_state(
        &mut self,
        view: &View,
        member: &PeerId,
        incarnation: Incarnation,
        state: MemberState,
    ) {
        if !self.members.set(member, incarnation, state) {
            return;
        }
        let observed = self.observation();
        let Some(leader) = self.leading_mut() else {
            return;
        };
        leader.change += 1;
        let change = leader.change;
        let message = match state {
            MemberState::Joining => SeededMessage::JoiningMember {
                change,
                member: member.clone(),
                incarnation,
            },
            _ => SeededMessage::MemberStatusUpdate {
                change,
                member: member.clone(),
                incarnation,
                state,
            },
        };
        let others: Vec<_> = self.members.ids().cloned().collect();
        for other in others {
            if other != *member && other != self.me {
                self.send(view, &other, observed.clone(), message.clone());
            }
        }
    }

    /// Changes the states of silent members. If there are many, the others get the table instead of each change.
    fn set_states(&mut self, view: &View, states: Vec<(PeerId, MemberState)>) {
        let many = states.len() > MAX_UPDATES;
        let mut changed = false;
        for (member, state) in states {
            let Some(incarnation) = self.members.incarnation(&member) else {
                continue;
            };
            match (state, self.leading_mut()) {
                (MemberState::Removed, Some(leader)) if many => {
                    leader.contacts.remove(&member);
                    changed |= self.members.remove(&member);
                }
                (MemberState::Removed, _) => self.take_out(view, &member),
                _ if many => changed |= self.members.set(&member, incarnation, state),
                _ => self.set_state(view, &member, incarnation, state),
            }
        }
        if changed {
            for member in self.members.ids().cloned().collect::<Vec<_>>() {
                self.align(view, &member);
            }
        }
    }

    /// Removes a member: it is leaving first, then removed.
    pub(super) fn take_out(&mut self, view: &View, member: &PeerId) {
        let Some(incarnation) = self.members.incarnation(member) else {
            return;
        };
        if let Some(leader) = self.leading_mut() {
            leader.contacts.remove(member);
        }
        self.set_state(view, member, incarnation, MemberState::Leaving);
        self.set_state(view, member, incarnation, MemberState::Removed);
    }

    /// Removes members that sent a leave notice, without waiting for their silence.
    pub(super) fn take_out_departed(&mut self, view: &View) {
        if self.leading().is_none() {
            return;
        }
        for (member, incarnation) in self.left.take() {
            if self.members.lists(&member, incarnation) {
                self.take_out(view, &member);
            }
        }
    }

    /// Sends a member the whole table.
    pub(super) fn align(&mut self, view: &View, to: &PeerId) {
        let observed = self.observation();
        let mut members = self.members.list();
        members.truncate(MAX_LISTED);
        let Some(leader) = self.leading_mut() else {
            return;
        };
        leader.change += 1;
        let change = leader.change;
        let message = SeededMessage::ClusterAlignment { change, members };
        self.send(view, to, observed, message);
    }
}
