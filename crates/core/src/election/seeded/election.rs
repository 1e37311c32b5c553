//! Elections: a majority of the voters has no leader, and votes ([`paxos`](super::paxos)) choose one.

use std::collections::BTreeSet;

use super::paxos::{Ballot, Proposer, Stage, Tally, Vote};
use super::role::Role;
use super::wire::{Claim, Observation, SeededMessage};
use super::{ElectionError, LeaderReason, Seeded, View};
use crate::id::PeerId;
use crate::time::Time;

/// Maximum number of doublings of the spread of attempts.
const MAX_DOUBLINGS: u32 = 5;

/// An attempt of this node to get a leader elected.
#[derive(Debug)]
pub(super) enum Campaign {
    /// It asks the voters whether they have a leader.
    Asking {
        query: u64,
        /// The last version when it asked. The election is on the next version, or does not take place (case 1).
        version: u64,
        /// Voters without a leader, itself included.
        leaderless: BTreeSet<PeerId>,
    },
    /// Its ballot is open.
    Proposing(Proposer),
}

impl Campaign {
    pub(super) fn is_formal(&self) -> bool {
        matches!(self, Self::Proposing(proposer) if proposer.stage() == Stage::Formal)
    }
}

impl Seeded {
    /// The basis of elections: no leader, and the last version that had one.
    fn undecided(&self) -> Observation {
        Observation {
            leader: None,
            version: self.decided(),
        }
    }

    fn linked_voters(&self, view: &View) -> Vec<PeerId> {
        let voters = view.voters.keys().filter(|id| self.is_voter(id));
        voters.cloned().collect()
    }

    pub(super) fn probe_campaign(&mut self, now: Time, view: &View) {
        let begun_on = match &self.campaign {
            None => None,
            Some(Campaign::Asking { version, .. }) => Some(*version),
            Some(Campaign::Proposing(proposer)) => Some(proposer.version() - 1),
        };
        if begun_on.is_some_and(|version| version != self.decided()) {
            self.campaign = None;
        }
        if now >= self.campaign_at && self.may_campaign(now) {
            self.ask_for_leaders(now, view);
        }
    }

    fn may_campaign(&self, now: Time) -> bool {
        let ttl = self.intervals().ttl();
        let leaderless = match &self.role {
            Role::Leader(_) => false,
            Role::Follower(followed) => followed.is_none(),
            // A cluster that could admit this node may have a leader that it cannot reach yet. At a first start seeds
            // lead alone.
            Role::Joining(joining) => {
                joining.has_failed
                    && if self.decided() == 0 {
                        self.config.rules.strict_start
                    } else {
                        now.since(self.led_at) > ttl
                    }
            }
        };
        leaderless
            && self.votes()
            && !self.is_stale()
            && now >= self.grace_until
            && self.target.is_none()
    }

    /// Spreads attempts that were in each other's way further and further apart.
    fn postpone_campaign(&mut self, now: Time, view: &View) {
        let retry = self.answer_timeout(view);
        let spread = retry * (1 << self.campaigns.min(MAX_DOUBLINGS));
        self.campaign_at = now + retry + self.jitter(spread);
    }

    fn ask_for_leaders(&mut self, now: Time, view: &View) {
        self.postpone_campaign(now, view);
        self.campaigns = self.campaigns.saturating_add(1);
        let query = self.next_number();
        self.campaign = Some(Campaign::Asking {
            query,
            version: self.decided(),
            leaderless: BTreeSet::new(),
        });
        let basis = self.undecided();
        for voter in self.linked_voters(view) {
            let message = SeededMessage::LeaderStatusQuery { query };
            self.send(view, &voter, basis.clone(), message);
        }
        self.count_leaderless(now, view, self.me.clone());
    }

    /// Whether this node takes part in an election: it votes, and none of its promises to a leader still holds.
    fn answers_voters(&self, now: Time, from: &PeerId) -> bool {
        self.votes() && !self.is_stale() && self.is_voter(from) && now >= self.grace_until
    }

    pub(super) fn leader_status_query(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        query: u64,
    ) {
        if !self.answers_voters(now, from) || basis.leader.is_some() {
            return;
        }
        self.decide(basis.version);
        if self.undecided() != *basis {
            return; // this node knows a later leader, and its heartbeats show it
        }
        let healthy = self.lives_under_leader(now);
        // A node that enters a cluster needs no other one.
        if !healthy && self.target.is_some() {
            return;
        }
        let basis = if healthy {
            self.observation()
        } else {
            self.undecided()
        };
        let message = SeededMessage::LeaderStatusQueryResponse { query, healthy };
        self.send(view, from, basis, message);
    }

    pub(super) fn leader_status_query_response(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        answered: u64,
        healthy: bool,
    ) {
        let Some(Campaign::Asking { query, .. }) = &self.campaign else {
            return;
        };
        if *query != answered || !self.is_voter(from) || !self.remembers_its_votes(view, from) {
            return;
        }
        if healthy {
            self.aim_at(now, view, basis);
        } else if *basis == self.undecided() {
            self.count_leaderless(now, view, from.clone());
        }
    }

    fn count_leaderless(&mut self, now: Time, view: &View, voter: PeerId) {
        let majority = self.config.roster.majority();
        let decided = self.decided();
        let Some(Campaign::Asking {
            version,
            leaderless,
            ..
        }) = &mut self.campaign
        else {
            return;
        };
        leaderless.insert(voter);
        if leaderless.len() >= majority && *version == decided && self.claim().is_none() {
            self.propose(now, view);
        }
    }

    fn propose(&mut self, now: Time, view: &View) {
        let mut ballot = self.kept.acceptor.next_ballot(&self.me);
        ballot.counter = ballot.counter.max(self.refused_counter.saturating_add(1));
        let version = self.kept.acceptor.open_version();
        let electorate = self.config.roster.electorate();
        let proposer = Proposer::new(version, ballot.clone(), electorate);
        self.campaign = Some(Campaign::Proposing(proposer));
        let me = self.me.clone();
        self.send_proposal(view, Stage::Pre, &ballot, &me);
        let own = self.kept.acceptor.prepare(version, &ballot);
        self.count_own(now, view, &ballot, own);
    }

    fn send_proposal(&mut self, view: &View, stage: Stage, ballot: &Ballot, candidate: &PeerId) {
        let basis = self.undecided();
        for voter in self.linked_voters(view) {
            let message = SeededMessage::Proposal {
                stage,
                ballot: ballot.clone(),
                candidate: candidate.clone(),
            };
            self.send(view, &voter, basis.clone(), message);
        }
    }

    fn count_own(&mut self, now: Time, view: &View, ballot: &Ballot, vote: Option<Vote>) {
        if let Some(vote) = vote {
            let basis = self.undecided();
            self.vote(now, view, &self.me.clone(), &basis, ballot, &vote);
        }
    }

    #[allow(clippy::too_many_arguments)] // a message with its context
    pub(super) fn proposal(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        stage: Stage,
        ballot: &Ballot,
        candidate: &PeerId,
    ) -> Result<(), ElectionError> {
        if ballot.proposer != *from {
            return Err(ElectionError::Violation(
                "a proposal names another proposer",
            ));
        }
        if !self.is_voter(candidate) || !self.answers_voters(now, from) || basis.leader.is_some() {
            return Ok(());
        }
        self.decide(basis.version);
        // A node that has a leader, or knows a later one, contradicts.
        if self.lives_under_leader(now) || self.undecided() != *basis {
            return Ok(());
        }
        let acceptor = &mut self.kept.acceptor;
        let version = acceptor.open_version();
        let vote = match stage {
            Stage::Pre => acceptor.prepare(version, ballot),
            Stage::Formal => acceptor.accept(version, ballot, candidate),
        };
        if let Some(vote) = vote {
            if !matches!(vote, Vote::Refused(_)) {
                // Another proposer goes first: an attempt of this node would only be in its way.
                self.campaign = None;
                self.postpone_campaign(now, view);
            }
            let ballot = ballot.clone();
            let message = SeededMessage::Vote { ballot, vote };
            self.send(view, from, basis.clone(), message);
        }
        Ok(())
    }

    pub(super) fn vote(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        ballot: &Ballot,
        vote: &Vote,
    ) {
        // A leader that appeared meanwhile contradicts.
        if self.undecided() != *basis || self.claim().is_some() {
            return;
        }
        if *from != self.me && !self.remembers_its_votes(view, from) {
            return;
        }
        let Some(Campaign::Proposing(proposer)) = &mut self.campaign else {
            return;
        };
        if let Vote::Refused(larger) = vote {
            self.refused_counter = self.refused_counter.max(larger.counter);
        }
        let version = basis.version.saturating_add(1);
        match proposer.count(from, version, ballot, vote) {
            Tally::Pending => {}
            Tally::Lost => self.campaign = None,
            Tally::Propose(candidate) => {
                self.send_proposal(view, Stage::Formal, ballot, &candidate);
                let own = self.kept.acceptor.accept(version, ballot, &candidate);
                self.count_own(now, view, ballot, own);
            }
            Tally::Chosen(leader) => {
                self.campaign = None;
                let claim = Claim {
                    address: self.address_of(&leader),
                    leader,
                    version,
                    elected: true,
                };
                for peer in view.voters.keys().cloned().collect::<Vec<_>>() {
                    let claim = claim.clone();
                    let message = SeededMessage::LeaderElected { claim };
                    let basis = self.undecided();
                    self.send(view, &peer, basis, message);
                }
                self.take_elected(now, view, claim);
            }
        }
    }

    fn address_of(&self, peer: &PeerId) -> String {
        if *peer == self.me {
            return self.config.seeding.address.clone();
        }
        let peer = self.peers.get(peer);
        peer.map_or_else(String::new, |peer| peer.address.clone())
    }

    pub(super) fn leader_elected(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        claim: &Claim,
    ) {
        let consistent =
            basis.leader.is_none() && basis.version.checked_add(1) == Some(claim.version);
        if consistent && claim.elected && self.is_voter(from) && self.is_voter(&claim.leader) {
            self.take_elected(now, view, claim.clone());
        }
    }

    /// Votes have chosen this leader. An equal or a later leader contradicts.
    fn take_elected(&mut self, now: Time, view: &View, claim: Claim) {
        if claim.version <= self.led_up_to || claim.version < self.decided() {
            return;
        }
        self.decide(claim.version);
        self.campaign = None;
        if claim.leader == self.me {
            if self.votes() {
                let claim = self.own_claim(claim.version, true);
                self.become_leader(now, view, claim);
            }
            return;
        }
        let linked = view.voters.contains_key(&claim.leader);
        match self.role {
            Role::Joining(_) => self.aim_at(now, view, &claim.observation()),
            // A leader that is not linked cannot be followed: voters without one choose the next.
            Role::Leader(_) if !linked => {
                self.led_at = now;
                self.become_follower(None, LeaderReason::Resigned);
            }
            Role::Follower(_) if !linked => {
                if self.claim().is_some() {
                    self.leave_living_leader(Some(&claim.leader));
                    self.lose_leader(now, LeaderReason::Resigned);
                }
            }
            Role::Leader(_) | Role::Follower(_) => {
                self.follow(now, view, claim, LeaderReason::Elected);
            }
        }
    }
}
