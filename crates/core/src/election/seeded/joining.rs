//! Entry into a cluster: a member asks the seeds for the leader, and the leader to admit it.

use std::collections::BTreeSet;

use super::role::{Contact, Followed, Role};
use super::wire::{Claim, Observation, Rejection, SeededMessage};
use super::{ElectionError, LeaderReason, MemberState, Seeded, View};
use crate::id::PeerId;
use crate::time::Time;

/// A node in no cluster.
#[derive(Debug)]
pub(super) struct Joining {
    /// The time of the next attempt.
    attempt_at: Time,
    attempt: Option<Attempt>,
    /// Whether an attempt has ended without a leader.
    pub(super) has_failed: bool,
}

/// One round of questions to the seeds.
#[derive(Debug)]
struct Attempt {
    query: u64,
    began: Time,
    asked: BTreeSet<PeerId>,
    answered: BTreeSet<PeerId>,
}

impl Joining {
    pub(super) fn new(now: Time) -> Self {
        Self {
            attempt_at: now,
            attempt: None,
            has_failed: false,
        }
    }
}

/// The leader whose cluster a node enters, or returns to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    leader: Observation,
    since: Time,
    /// The number of the request that the leader got.
    request: Option<u64>,
}

impl Seeded {
    pub(super) fn probe_joining(&mut self, now: Time, view: &View) {
        if self.target.is_some() {
            return;
        }
        let timeout = self.answer_timeout(view);
        let retry = self.intervals().retry();
        let probe = self.intervals().probe();
        let Role::Joining(joining) = &mut self.role else {
            return;
        };
        let Some(attempt) = &joining.attempt else {
            if now >= joining.attempt_at {
                self.begin_attempt(now, view);
            }
            return;
        };
        let all_answered = attempt.asked.is_subset(&attempt.answered);
        let dialled = now.since(attempt.began) >= probe && !view.dialing;
        if now.since(attempt.began) >= timeout || (all_answered && dialled) {
            joining.attempt_at = attempt.began + retry;
            joining.attempt = None;
            joining.has_failed = true;
            if self.may_lead_alone(now) {
                self.lead_alone(now, view);
            }
        }
    }

    fn begin_attempt(&mut self, now: Time, view: &View) {
        let query = self.next_number();
        self.dial_seeds();
        let asked: BTreeSet<_> = self.linked_seeds().into_iter().collect();
        for seed in &asked {
            let message = SeededMessage::LeaderQuery { query };
            self.send(view, seed, self.observation(), message);
        }
        if let Role::Joining(joining) = &mut self.role {
            joining.attempt = Some(Attempt {
                query,
                began: now,
                asked,
                answered: BTreeSet::new(),
            });
        }
    }

    /// Whether a seed may lead alone: at its first start, and when there was no leader for three TTL (A3.4). The room's
    /// rules may forbid either.
    fn may_lead_alone(&self, now: Time) -> bool {
        let rules = &self.config.rules;
        let first_start = self.decided() == 0 && !rules.strict_start;
        let too_long = now.since(self.led_at) > rules.intervals.ttl() * 3 && !rules.never_alone;
        self.is_seed() && (first_start || too_long)
    }

    fn lead_alone(&mut self, now: Time, view: &View) {
        let version = self.decided().max(self.version).max(self.led_up_to);
        let claim = self.own_claim(version.saturating_add(1), false);
        self.become_leader(now, view, claim);
    }

    /// A peer is linked: the open attempt may need it.
    pub(super) fn join_through(&mut self, view: &View, peer: &PeerId) {
        let is_seed = self.peers.get(peer).is_some_and(|peer| peer.is_seed);
        let observed = self.observation();
        if let Role::Joining(joining) = &mut self.role
            && let Some(attempt) = joining.attempt.as_mut().filter(|_| is_seed)
            && attempt.asked.insert(peer.clone())
        {
            let query = attempt.query;
            self.send(view, peer, observed, SeededMessage::LeaderQuery { query });
        }
        self.request_to_join(view);
    }

    pub(super) fn leader_query(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        query: u64,
    ) {
        if basis.leader.is_none() && self.is_seed() {
            let observed = self.observation_of_living(now);
            self.send(
                view,
                from,
                observed,
                SeededMessage::LeaderQueryResponse { query },
            );
        }
    }

    pub(super) fn leader_query_response(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        query: u64,
    ) {
        let Role::Joining(joining) = &mut self.role else {
            return;
        };
        let attempt = joining.attempt.as_mut();
        let Some(attempt) = attempt.filter(|attempt| attempt.query == query) else {
            return;
        };
        if !attempt.asked.contains(from) {
            return;
        }
        attempt.answered.insert(from.clone());
        if basis.leader.is_some() {
            self.aim_at(now, view, basis);
        }
    }

    /// Enters the cluster of this leader, unless it has one or enters one already.
    pub(super) fn aim_at(&mut self, now: Time, view: &View, leader: &Observation) {
        let named = leader.leader.as_ref();
        let is_other = named.is_some_and(|named| *named != self.me && self.is_voter(named));
        // A member's version only grows; a member that was reset begins anew.
        let is_older = matches!(self.role, Role::Follower(_)) && leader.version < self.version;
        if !is_other || is_older || self.claim().is_some() || self.target.is_some() || self.leaving
        {
            return;
        }
        self.target = Some(Target {
            leader: leader.clone(),
            since: now,
            request: None,
        });
        self.request_to_join(view);
    }

    /// Whether this node has asked this leader to admit it, or will.
    pub(super) fn aims_at(&self, leader: &Observation) -> bool {
        let target = self.target.as_ref();
        target.is_some_and(|target| target.leader == *leader)
    }

    /// Gives up a leader that does not answer or cannot be reached.
    pub(super) fn probe_target(&mut self, now: Time, view: &View) {
        let timeout = self.answer_timeout(view);
        if self
            .target
            .as_ref()
            .is_some_and(|target| now.since(target.since) >= timeout)
        {
            self.target = None;
            if let Role::Joining(joining) = &mut self.role {
                joining.attempt = None;
                joining.attempt_at = now;
            }
        }
        self.request_to_join(view);
    }

    /// Asks the leader to admit this node, once it is linked.
    fn request_to_join(&mut self, view: &View) {
        let Some(target) = self
            .target
            .as_ref()
            .filter(|target| target.request.is_none())
        else {
            return;
        };
        let basis = target.leader.clone();
        let Some(leader) = basis.leader.clone() else {
            return;
        };
        if !view.voters.contains_key(&leader) {
            return;
        }
        let request = self.next_number();
        if let Some(target) = &mut self.target {
            target.request = Some(request);
        }
        self.send(
            view,
            &leader,
            basis,
            SeededMessage::JoinClusterRequest { request },
        );
    }

    pub(super) fn join_cluster_request(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        request: u64,
    ) {
        let observed = self.observation();
        let rejection = match self.safe_claim() {
            None => Some(Rejection::NotLeader),
            Some(_) if observed != *basis => Some(Rejection::OtherVersion),
            Some(_) => None,
        };
        if let Some(rejection) = rejection {
            let answer = Err(rejection);
            let message = SeededMessage::JoinClusterResponse { request, answer };
            self.send(view, from, observed, message);
            return;
        }
        self.admit_member(now, view, from, Some(request));
    }

    /// Makes a linked peer a member. A peer that is already listed in this incarnation stays a member.
    pub(super) fn admit_member(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        request: Option<u64>,
    ) {
        let observed = self.observation();
        let Some(incarnation) = view.voters.get(peer).map(|voter| voter.incarnation) else {
            return;
        };
        let Some(leader) = self.leading_mut() else {
            return;
        };
        let before = leader.contacts.get(peer);
        let contact = Contact {
            at: now,
            acknowledged: before.and_then(|contact| contact.acknowledged),
        };
        let claim = leader.claim.clone();
        self.set_state(view, peer, incarnation, MemberState::Joining);
        if !self.members.lists(peer, incarnation) {
            return; // the table is full, and the asker asks again
        }
        if let Some(leader) = self.leading_mut() {
            // Only members have an entry, so there is always room.
            let _ = leader.contacts.insert(peer.clone(), contact);
        }
        if let Some(request) = request {
            let message = SeededMessage::JoinClusterResponse {
                request,
                answer: Ok(claim),
            };
            self.send(view, peer, observed, message);
        }
        self.set_state(view, peer, incarnation, MemberState::Active);
        self.align(view, peer);
    }

    pub(super) fn join_cluster_response(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        request: u64,
        answer: Result<Claim, Rejection>,
    ) -> Result<(), ElectionError> {
        let is_answer = self.target.as_ref().is_some_and(|target| {
            target.request == Some(request) && target.leader.leader.as_ref() == Some(from)
        });
        if !is_answer || self.claim().is_some() {
            return Ok(());
        }
        let Ok(claim) = answer else {
            // The leader that the answer names is asked next, or else the seeds again.
            self.target = None;
            if let Role::Joining(joining) = &mut self.role {
                joining.attempt = None;
                joining.attempt_at = now + self.config.rules.intervals.probe();
            }
            if basis.leader.as_ref().is_some_and(|leader| leader != from) {
                self.aim_at(now, view, basis);
            }
            return Ok(());
        };
        if claim.leader != *from || claim.observation() != *basis {
            return Err(ElectionError::Violation(
                "a member takes others into a cluster that it does not lead",
            ));
        }
        let is_new = matches!(self.role, Role::Joining(_));
        self.follow(now, view, claim, LeaderReason::Found);
        if is_new {
            self.members
                .set(&self.me, self.incarnation, MemberState::Joining);
        }
        Ok(())
    }

    /// Follows this linked leader from now on.
    pub(super) fn follow(&mut self, now: Time, view: &View, claim: Claim, reason: LeaderReason) {
        let Some(voter) = view.voters.get(&claim.leader) else {
            return;
        };
        self.leave_living_leader(Some(&claim.leader));
        let followed = Followed::new(now, claim, voter.incarnation);
        self.led_at = now;
        self.become_follower(Some(followed), reason);
        self.keep_alive_now(now, view);
    }
}
