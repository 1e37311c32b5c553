//! Pre-votes and votes: this node's answers, and its use of the answers that it receives.

use super::following::Report;
use super::round_trips::slowest_rtt;
use super::transfer::EarlyRequest;
use super::{ElectionOutput, Raft, Role, SUCCESSION_GRACE, View};
use crate::election::raft::wire::{ElectionMessage, LiveLeader};
use crate::election::record::{Record, Stamp};
use crate::election::rules::Tally;
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// A voter's answer to a request for its vote or pre-vote.
pub(super) struct Answer {
    /// The epoch and term in which it answers.
    pub(super) stamp: Stamp,
    pub(super) round: u64,
    pub(super) granted: bool,
    /// The record that the voter follows.
    pub(super) record: Record,
    /// The leader that it names.
    pub(super) live: Option<LiveLeader>,
}

/// A request for a pre-vote that this node refused because of its lease.
#[derive(Debug)]
pub(super) struct RefusedPreVote {
    candidate: PeerId,
    round: u64,
    stamp: Stamp,
    term: u64,
    at: Time,
}

impl Raft {
    pub(super) fn answer_pre_vote(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        round: u64,
        stamp: &Stamp,
        term: u64,
    ) {
        let asked = Stamp {
            term,
            epoch: stamp.epoch.clone(),
        };
        let granted = !self.leads()
            && asked > self.rules.record().stamp
            && self.may_vote(now)
            && self.counts(view, from)
            && (!self.lease_binds(now) || self.following().is_direct(from));
        let answer = ElectionMessage::PreVoteResponse {
            round,
            voter: self.me.clone(),
            granted,
            record: self.rules.record().clone(),
            live: self.live_to(now, view, from),
        };
        self.send(from, answer);
        if !granted {
            self.refused_pre_vote = self.lease_binds(now).then(|| RefusedPreVote {
                candidate: from.clone(),
                round,
                stamp: stamp.clone(),
                term,
                at: now,
            });
            self.question_leader(now);
        }
        if granted && self.is_preferred(view, from) {
            self.yield_to_preferred(now, view);
        }
    }

    /// The leader's port was found closed here, too: a candidate that has found that a moment earlier still waits for this vote.
    pub(super) fn answer_refused_pre_vote(&mut self, now: Time, view: &View) {
        let request = self.refused_pre_vote.take();
        let request = request.filter(|request| now.since(request.at) <= SUCCESSION_GRACE);
        let request = request.filter(|request| view.voters.contains_key(&request.candidate));
        if let Some(request) = request {
            let (round, stamp) = (request.round, &request.stamp);
            self.answer_pre_vote(now, view, &request.candidate, round, stamp, request.term);
        }
    }

    /// A member that asks for pre-votes seems to have lost the leader. Its word lifts no lease, but makes this node see for
    /// itself.
    fn question_leader(&mut self, now: Time) {
        if let Some(direct) = self.direct()
            && self.lease_binds(now)
        {
            let leader = direct.leader.clone();
            self.outputs.push_back(ElectionOutput::Question(leader));
        }
    }

    /// G13: this node yields to a preferred peer that asks for its vote. If two nodes ask at the same time, one goes
    /// on; otherwise they would split the votes of one term after another. Once since a leader was heard, the preferred
    /// peer gets the time that its election takes, also from nodes that have not asked yet: in a large room with long
    /// round trips most of them would ask all others before they learn of its success. It happens only once, or a peer
    /// that cannot win would keep all others from leading.
    fn yield_to_preferred(&mut self, now: Time, view: &View) {
        let asks = matches!(self.role, Role::PreCandidate(_));
        let first = !self.yielded;
        if !self.config.guards.rivals_yield() || !(asks || (first && self.awaits_election())) {
            return;
        }
        self.abandon_round();
        self.yielded = true;
        let rtt = slowest_rtt(view);
        let votes_and_heartbeat = if first { rtt * 2 } else { Duration::ZERO };
        let later = now + votes_and_heartbeat + self.retry_delay(rtt);
        self.election_at = if asks {
            later
        } else {
            later.max(self.election_at)
        };
    }

    pub(super) fn pre_vote_answered(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        answer: Answer,
    ) {
        let Answer {
            round,
            granted,
            record,
            live,
            ..
        } = answer;
        let open = self.rules.campaign().map(|campaign| campaign.round);
        if !matches!(self.role, Role::PreCandidate(_)) || open != Some(round) {
            return;
        }
        #[cfg(feature = "laboratory")]
        self.rules.refresh_electorate(&self.electorate(view));
        let (is_voter, alone) = (view.is_eligible(from), view.is_alone());
        match self.veto(now, view, live) {
            Report::Dead => {}
            Report::Alive(live) => self.follow_indirectly(now, view, &record, &live),
            // An observer can object, but cannot consent for a voter that is linked.
            Report::None if self.one_answer_decides(view) && !is_voter && !alone => {}
            Report::None if self.one_answer_decides(view) => {
                // G3: an answer that names no live leader ends the window.
                let above = record.stamp.clone().max(self.rules.record().stamp.clone());
                let tally = self.become_candidate(self.electorate(view), &above, None);
                self.request_votes(now, view, tally);
                if granted && let Some(leader) = self.leading_mut() {
                    // Its consent counts like a vote: for this side's weight.
                    leader.acks.insert(from.clone(), now);
                }
            }
            Report::None => {
                if record > *self.rules.record() {
                    // Ask again, for a higher term, when the round is repeated.
                    self.take_over(now, view, &record);
                    return;
                }
                let granted = granted && self.remembers_its_votes(view, from);
                self.rules.count_pre_vote(round, from, granted);
                if self.is_sure() {
                    self.campaign(now, view, None);
                }
            }
        }
    }

    pub(super) fn answer_vote(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        round: u64,
        stamp: &Stamp,
        asked_by: Option<&PeerId>,
    ) {
        let handed_over = asked_by.is_some_and(|leader| self.is_handed_over(now, leader, from));
        let bound = !handed_over && !self.following().is_direct(from) && self.lease_binds(now);
        if let Some(leader) = asked_by
            && bound
            && self.follows()
        {
            // The leader's own message takes another path and may arrive a moment later.
            self.transfers.early_request = Some(EarlyRequest {
                candidate: from.clone(),
                round,
                stamp: stamp.clone(),
                asked_by: leader.clone(),
            });
            return;
        }
        let keeps_leading = self.leads() && !handed_over && self.has_quorum(now, view);
        let mut granted = false;
        if self.counts(view, from) && self.may_vote(now) && !bound && !keeps_leading {
            granted = self.rules.vote(from, stamp);
            self.yield_to_record(now, view);
            if granted && handed_over {
                self.expect_successor(now, from);
            }
            if granted && matches!(self.role, Role::Follower(_) | Role::PreCandidate(_)) {
                // A voter that gives its vote waits for the result, and returns to no leader in doubt.
                // Others may still vouch for that one: their last heartbeats are on their way.
                self.abandon_round();
                let doubted = view
                    .doubted
                    .as_ref()
                    .filter(|it| self.role.shown() == Some(*it));
                if doubted.is_some() && self.config.guards.votes_end_doubts() {
                    self.lose_leader();
                }
                self.arm_election(now, view);
            }
        }
        let answer = ElectionMessage::VoteResponse {
            round,
            voter: self.me.clone(),
            granted,
            record: self.rules.record().clone(),
            live: self.live_to(now, view, from),
        };
        self.send(from, answer);
    }

    pub(super) fn vote_answered(&mut self, now: Time, view: &View, from: &PeerId, answer: Answer) {
        let Answer {
            stamp,
            round,
            granted,
            record,
            live,
        } = answer;
        let open = self.rules.campaign().map(|campaign| campaign.round);
        if !self.rules.campaigning() || open != Some(round) {
            return;
        }
        // A vote belongs to the term in which it was given. A vote that this node did not ask for may carry the number
        // of its round.
        let granted = granted && stamp == self.rules.record().stamp;
        if !granted && record > *self.rules.record() {
            self.nacked(now, view, from, &record, live);
            return;
        }
        // A voter that gives no vote yet may name the leader that asked for this campaign, which leads until the
        // campaign is won.
        let asked = |live: &LiveLeader| self.asked_by() == Some(&live.id);
        if !granted
            && matches!(self.role, Role::Candidate(_))
            && let Report::Alive(live) = self.veto(now, view, live)
            && !asked(&live)
        {
            self.follow_indirectly(now, view, &record, &live);
            return;
        }
        let granted = granted && self.remembers_its_votes(view, from);
        #[cfg(feature = "laboratory")]
        self.rules.refresh_electorate(&self.electorate(view));
        if self.rules.count_vote(round, from, granted) == Tally::Won {
            self.become_leader(now);
        }
    }

    /// Whether the leader fell silent here, and the peer that names it in an answer does so only because it counts from a
    /// heartbeat that is not much later than the last one here.
    fn is_stale_report(&self, now: Time, live: &LiveLeader) -> bool {
        let rest = Duration::from_millis(live.rest_ms.into());
        self.config.guards.stale_vetoes() && !self.is_news(now, &live.id, rest)
    }

    /// G3: the value of a living leader's report in the answer to a request.
    fn veto(&self, now: Time, view: &View, live: Option<LiveLeader>) -> Report {
        let live = live.filter(|_| self.config.guards.veto());
        match self.weigh_live(now, view, live) {
            Report::Alive(live) if self.is_stale_report(now, &live) => Report::Dead,
            report => report,
        }
    }
}
