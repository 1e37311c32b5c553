//! Votes, record and electorate: the rules of the raft strategy without any clock.
//!
//! This file has everything that safety depends on, small enough for exhaustive exploration; `raft` decides when things
//! happen. Every function keeps three invariants:
//!
//! - the record never decreases;
//! - a node gives at most one vote per (epoch, term), and adopting an assignment is that vote;
//! - only a campaign that gathered its threshold among its frozen electorate, an assignment, or an epoch issued by a
//!   merging leader makes a leader.

use std::collections::BTreeSet;

use super::guards::Guards;
use super::record::{Epoch, Record, Stamp};
use crate::id::{Fingerprint, PeerId};
use crate::quorum::Quorum;

/// A node's role in its term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleKind {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks whether a campaign would succeed; that changes nothing.
    PreCandidate,
    /// Campaigns in its own term.
    Candidate,
    /// Leads. While it campaigns in place for a higher term, it stays in this role.
    Leader,
}

/// The state of a round of votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    /// Neither decided nor permanent.
    Pending,
    /// The threshold is reached.
    Won,
    /// Too many voters refused: the threshold is out of reach.
    Lost,
}

/// A round of (pre-)votes among voters that were fixed when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// Counts the rounds of this node; answers to older ones are ignored.
    pub round: u64,
    /// The voters whose votes count, self included.
    pub electorate: BTreeSet<PeerId>,
    /// The voters that granted, self included.
    pub granted: BTreeSet<PeerId>,
    /// The voters that refused.
    pub refused: BTreeSet<PeerId>,
    /// The number of votes needed.
    pub needed: usize,
}

impl Campaign {
    fn tally(&self) -> Tally {
        if self.granted.len() >= self.needed {
            Tally::Won
        } else if self.electorate.len() < self.needed + self.refused.len() {
            Tally::Lost
        } else {
            Tally::Pending
        }
    }

    fn count(&mut self, voter: &PeerId, granted: bool) {
        if granted {
            self.refused.remove(voter);
            self.granted.insert(voter.clone());
        } else if !self.granted.contains(voter) {
            self.refused.insert(voter.clone());
        }
    }
}

/// The clockless state of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    me: PeerId,
    /// The key by which records name this node.
    key: Option<Fingerprint>,
    quorum: Quorum,
    guards: Guards,
    role: RoleKind,
    record: Record,
    voted_for: Option<PeerId>,
    rounds: u64,
    campaign: Option<Campaign>,
    /// The campaign that made this node leader of its record.
    won: Option<Campaign>,
}

impl Rules {
    /// A follower without a leader in term 0.
    pub fn new(me: PeerId, quorum: Quorum, guards: Guards) -> Self {
        Self {
            me,
            key: None,
            quorum,
            guards,
            role: RoleKind::Follower,
            record: Record::default(),
            voted_for: None,
            rounds: 0,
            campaign: None,
            won: None,
        }
    }

    /// Sets the key by which records name this node.
    #[must_use]
    pub fn with_key(self, key: Fingerprint) -> Self {
        let key = Some(key);
        Self { key, ..self }
    }

    /// Takes up the state that an earlier incarnation stored. A node that led then starts as a follower.
    pub fn restore(&mut self, record: Record, voted_for: Option<PeerId>) {
        self.take(record);
        self.voted_for = voted_for;
    }

    /// This node's role.
    pub fn role(&self) -> RoleKind {
        self.role
    }

    /// The largest record seen.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The candidate that got the vote of the record's (epoch, term).
    pub fn voted_for(&self) -> Option<&PeerId> {
        self.voted_for.as_ref()
    }

    /// The number of rounds that this node opened.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The round that is open.
    pub fn campaign(&self) -> Option<&Campaign> {
        self.campaign.as_ref()
    }

    /// The campaign that made this node leader; `None` if it was assigned, issued its epoch or does not lead.
    pub fn won(&self) -> Option<&Campaign> {
        self.won.as_ref()
    }

    /// Opens a round of pre-votes. Neither record nor vote changes.
    pub fn begin_pre_vote(&mut self, electorate: BTreeSet<PeerId>) -> Tally {
        self.role = RoleKind::PreCandidate;
        self.open(electorate)
    }

    /// Opens a campaign in the term after `above` (or after this node's own, if that is higher) and votes for itself. A
    /// leader stays leader meanwhile: it campaigns in place.
    pub fn begin_vote(&mut self, electorate: BTreeSet<PeerId>, above: &Stamp) -> Tally {
        let base = self.record.stamp.clone().max(above.clone());
        self.record = Record::undecided(Stamp {
            term: base.term.saturating_add(1),
            epoch: base.epoch,
        });
        self.voted_for = Some(self.me.clone());
        if self.role != RoleKind::Leader {
            self.role = RoleKind::Candidate;
        }
        let tally = self.open(electorate);
        self.lead_if_won(tally)
    }

    fn open(&mut self, mut electorate: BTreeSet<PeerId>) -> Tally {
        self.rounds += 1;
        electorate.insert(self.me.clone());
        let campaign = Campaign {
            round: self.rounds,
            needed: self.quorum.votes_needed(electorate.len()),
            electorate,
            granted: BTreeSet::from([self.me.clone()]),
            refused: BTreeSet::new(),
        };
        let tally = campaign.tally();
        self.campaign = Some(campaign);
        tally
    }

    /// Without G5, updates the open round's electorate to the voters that are linked now.
    #[cfg(feature = "laboratory")]
    pub fn refresh_electorate(&mut self, electorate: &BTreeSet<PeerId>) {
        if let Some(campaign) = &mut self.campaign
            && !self.guards.frozen_electorate()
        {
            campaign.electorate.clone_from(electorate);
            campaign.electorate.insert(self.me.clone());
            campaign.needed = self.quorum.votes_needed(campaign.electorate.len());
        }
    }

    /// Counts the answer to a pre-vote. Answers to other rounds, in other roles or from strangers change nothing.
    pub fn count_pre_vote(&mut self, round: u64, voter: &PeerId, granted: bool) -> Tally {
        match &mut self.campaign {
            Some(campaign) if self.role == RoleKind::PreCandidate && campaign.round == round => {
                if campaign.electorate.contains(voter) || !self.guards.frozen_electorate() {
                    campaign.count(voter, granted);
                }
                campaign.tally()
            }
            _ => Tally::Pending,
        }
    }

    /// Counts the answer to a vote request; reaching the threshold makes this node leader.
    pub fn count_vote(&mut self, round: u64, voter: &PeerId, granted: bool) -> Tally {
        let campaigning = self.campaigning();
        match &mut self.campaign {
            Some(campaign) if campaigning && campaign.round == round => {
                if campaign.electorate.contains(voter) || !self.guards.frozen_electorate() {
                    campaign.count(voter, granted);
                }
                let tally = campaign.tally();
                self.lead_if_won(tally)
            }
            _ => Tally::Pending,
        }
    }

    /// Whether a campaign for real votes is open.
    pub fn campaigning(&self) -> bool {
        self.campaign.is_some()
            && match self.role {
                RoleKind::Candidate => true,
                RoleKind::Leader => self.record.leader.is_none(),
                RoleKind::Follower | RoleKind::PreCandidate => false,
            }
    }

    fn lead_if_won(&mut self, tally: Tally) -> Tally {
        if tally == Tally::Won {
            self.role = RoleKind::Leader;
            self.record.leader = Some(self.me.clone());
            self.record.leader_key = self.key;
            self.won = self.campaign.take();
        }
        tally
    }

    /// Answers a vote request of `candidate` for the term of `stamp`. Adopts a higher term whether it grants the vote
    /// or not.
    pub fn vote(&mut self, candidate: &PeerId, stamp: &Stamp) -> bool {
        if *stamp > self.record.stamp {
            self.take(Record::undecided(stamp.clone()));
        }
        let taken = self.record.leader.is_some()
            && (self.guards.assignment_takes_vote() || !self.record.assigned);
        let granted = *stamp == self.record.stamp
            && !taken
            && self
                .voted_for
                .as_ref()
                .is_none_or(|voted| voted == candidate);
        if granted {
            self.voted_for = Some(candidate.clone());
        }
        granted
    }

    /// Spends the vote of the record's term, which an earlier incarnation may have given: no other candidate gets it.
    pub fn spend_vote(&mut self) {
        self.voted_for = Some(self.me.clone());
    }

    /// Whether `record` replaces this node's own: G12 and G10 in one place.
    pub fn is_newer(&self, record: &Record) -> bool {
        let undone = !self.guards.record_order() && record.assigned && *record != self.record;
        let swayed = !self.guards.follower_order()
            && self.role == RoleKind::Follower
            && record.stamp == self.record.stamp
            && record.leader.is_some()
            && record.leader != self.record.leader;
        *record > self.record || undone || swayed
    }

    /// Adopts `record` if it is larger than this node's own; returns whether the two are equal now.
    ///
    /// An assignment to this node makes it leader (unless `may_lead` is false); anything else makes it a
    /// follower.
    pub fn adopt(&mut self, record: &Record, may_lead: bool) -> bool {
        if self.is_newer(record) {
            self.take(record.clone());
            if record.assigned && !self.guards.assignment_takes_vote() {
                self.voted_for = None;
            } else if record.assigned {
                // Adopting an assignment is the vote of its term. The vote may already be given: a restarted assigner
                // can issue one (epoch, term) twice.
                if self.voted_for.is_none() {
                    self.voted_for = record.leader.clone();
                }
            }
            if record.assigned && may_lead && self.names_me(record) {
                self.role = RoleKind::Leader;
            }
        }
        *record == self.record
    }

    /// Whether the record names this node, and not another process with its id.
    pub fn names_me(&self, record: &Record) -> bool {
        let is_its_key = record.leader_key.is_none_or(|key| self.key == Some(key));
        record.leader.as_ref() == Some(&self.me) && is_its_key
    }

    fn take(&mut self, record: Record) {
        if record.stamp != self.record.stamp {
            self.voted_for = None;
        }
        self.record = record;
        self.role = RoleKind::Follower;
        self.campaign = None;
        self.won = None;
    }

    /// Assigns `leader`, whose key is `key`, in a new epoch above `override_seq` and adopts that record.
    pub fn assign(
        &mut self,
        leader: &PeerId,
        key: Option<Fingerprint>,
        override_seq: u64,
    ) -> Record {
        self.issue(leader, key, override_seq, true)
    }

    /// Moves this node's leadership into a new epoch above `override_seq`, after a merge in which a lone node of a
    /// larger epoch lost. Whether the leader was assigned is unchanged.
    pub fn issue_epoch(&mut self, override_seq: u64) -> Record {
        let me = self.me.clone();
        self.issue(&me, self.key, override_seq, self.record.assigned)
    }

    fn issue(
        &mut self,
        leader: &PeerId,
        leader_key: Option<Fingerprint>,
        override_seq: u64,
        assigned: bool,
    ) -> Record {
        let seen = self.record.stamp.epoch.override_seq.max(override_seq);
        let epoch = Epoch {
            override_seq: seen.saturating_add(1),
            assigner: Some(self.me.clone()),
            assigner_key: self.key,
        };
        let within = self.record.stamp.epoch.clone();
        self.take(Record {
            stamp: Stamp {
                epoch: if self.guards.record_order() {
                    epoch
                } else {
                    within
                },
                term: self.record.stamp.term.saturating_add(1),
            },
            leader: Some(leader.clone()),
            leader_key,
            assigned,
        });
        self.voted_for = (self.guards.assignment_takes_vote() || !assigned).then(|| leader.clone());
        if *leader == self.me {
            self.role = RoleKind::Leader;
        }
        self.record.clone()
    }

    /// Stops campaigning or leading. The record stays.
    pub fn step_down(&mut self) {
        self.role = RoleKind::Follower;
        self.campaign = None;
    }
}

#[cfg(test)]
mod tests;
