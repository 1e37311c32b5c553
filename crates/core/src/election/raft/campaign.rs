//! Pre-votes, votes and campaigns in place.

use std::collections::BTreeSet;

use super::following::Following;
use super::round_trips::{slowest_of, slowest_rtt};
use super::{ElectionOutput, Electors, Raft, Role, Stamped, View};
use super::{MIN_RETRY_SPREAD, MIN_VETO_WINDOW, SUCCESSION_GRACE};
use crate::election::raft::wire::ElectionMessage;
use crate::election::record::Stamp;
use crate::election::rules::{Campaign, Tally};
use crate::id::PeerId;
use crate::quorum::{Quorum, majority_threshold};
use crate::time::{Duration, Time};

/// Campaigns of this node.
impl Raft {
    /// Asks all voters whether a campaign would succeed (G2).
    pub(super) fn pre_vote(&mut self, now: Time, view: &View) {
        let electorate = self.electorate(view);
        // One vote is enough then, so every other linked peer is asked to object (G3).
        let alone_with_one = electorate.len() <= 1 && !self.config.quorum.is_static();
        let asks = if alone_with_one {
            self.config.guards.veto()
        } else {
            self.config.guards.pre_vote()
        };
        if !asks {
            self.campaign(now, view, None);
            return;
        }
        self.become_pre_candidate(electorate);
        let round = self.rules.campaign().map_or(0, |campaign| campaign.round);
        let message = ElectionMessage::PreVoteRequest {
            round,
            candidate: self.me.clone(),
            term: self.rules.record().term().saturating_add(1),
        };
        self.ask(view, alone_with_one, &message);
        let wait = if alone_with_one {
            MIN_VETO_WINDOW.max(slowest_of(view.voters.values()) * 3)
        } else {
            self.pre_vote_wait(view)
        };
        self.set_round_at(now + wait);
    }

    /// The wait for missing answers where a majority alone is not enough: as long as for a single voter's (G3).
    fn pre_vote_wait(&mut self, view: &View) -> Duration {
        let rtt = slowest_rtt(view);
        let delay = self.retry_delay(rtt);
        let open = self.rules.campaign();
        if open.is_some_and(|open| self.sure_votes(open) > open.needed) {
            delay.max(MIN_VETO_WINDOW).max(rtt * 3)
        } else {
            delay
        }
    }

    /// The number of pre-votes that need no other answer. With a dynamic quorum, a majority of the voters linked now is
    /// enough only if it is a majority of the last leader's electors, too. Otherwise a bridge between two parts of a
    /// room is counted with the smaller part, which elects a leader although the bridge has a link to the leader of the
    /// larger one.
    fn sure_votes(&self, open: &Campaign) -> usize {
        let all = open.electorate.len();
        match (&self.config.quorum, &self.electors) {
            (Quorum::Static(_), _) | (Quorum::Dynamic, Electors::None) => open.needed,
            (Quorum::Dynamic, Electors::Of { count, .. }) => {
                open.needed.max(majority_threshold(*count)).min(all)
            }
            (Quorum::Dynamic, Electors::Unknown) => all,
        }
    }

    /// Whether the open round of pre-votes is won, and no peer is left that could object.
    pub(super) fn is_sure(&self) -> bool {
        self.rules.campaign().is_some_and(|open| {
            let answered = open.granted.len() + open.refused.len();
            self.has_consent()
                && (open.granted.len() >= self.sure_votes(open)
                    || answered >= open.electorate.len())
        })
    }

    /// Whether a majority consents in the open round of pre-votes. The consent of one of two voters proves nothing once
    /// a third peer is linked; the round is repeated with all of them.
    pub(super) fn has_consent(&self) -> bool {
        let asks = matches!(self.role, Role::PreCandidate(_));
        let open = self.rules.campaign().filter(|_| asks);
        open.is_some_and(|open| open.needed > 1 && open.granted.len() >= open.needed)
    }

    /// Campaigns in the next term. The leases of the leader that asked for the campaign do not bind.
    pub(super) fn campaign(&mut self, now: Time, view: &View, asked_by: Option<&PeerId>) {
        let above = self.rules.record().stamp.clone();
        let tally = self.become_candidate(self.electorate(view), &above, asked_by.cloned());
        self.request_votes(now, view, tally);
    }

    pub(super) fn request_votes(&mut self, now: Time, view: &View, tally: Tally) {
        if tally == Tally::Won {
            self.become_leader(now);
            return;
        }
        let round = self.rules.campaign().map_or(0, |campaign| campaign.round);
        let message = ElectionMessage::VoteRequest {
            round,
            candidate: self.me.clone(),
            asked_by: self.asked_by().cloned(),
        };
        self.ask(view, false, &message);
        self.await_votes(now, view);
    }

    /// Sets the time at which the requested votes should be here. A round begins when its requests may go out; where
    /// votes go to disk first, it lasts two writes longer.
    pub(super) fn await_votes(&mut self, now: Time, view: &View) {
        let mut delay = self.retry_delay(slowest_rtt(view)) + self.write_time() * 2;
        if self.asked_by().is_some() {
            delay = delay.max(self.transfer_timeout(view));
        }
        self.set_round_at(now + delay);
    }

    /// G14: a failed round is repeated soon, at a random time that rarely collides with others.
    pub(super) fn retry_delay(&mut self, rtt: Duration) -> Duration {
        if !self.config.guards.fast_retry() {
            let min = self.election_timeout_min();
            return min + self.up_to(self.election_timeout_max() - min);
        }
        rtt + self.up_to(MIN_RETRY_SPREAD.max(rtt * 4))
    }

    /// Whether there are enough voters for a majority. A static quorum may be out of reach; a campaign would then only
    /// raise the term.
    pub(super) fn can_win(&self, view: &View) -> bool {
        let voters = view.eligible().count() + 1;
        self.config.quorum.votes_needed(voters) <= voters
    }

    /// A leader that met a higher record of a lighter or leaderless side campaigns above it, in place (G7).
    pub(super) fn campaign_in_place(&mut self, now: Time, view: &View, above: &Stamp) {
        if !self.can_win(view) {
            self.resign(now);
            return;
        }
        let tally = self.open_campaign_in_place(now, self.electorate(view), above);
        self.request_votes(now, view, tally);
    }

    pub(super) fn campaign_in_place_again(&mut self, now: Time, view: &View) {
        let Some(in_place) = self.leading().and_then(|leader| leader.in_place) else {
            return;
        };
        // Voters that just started refuse until their grace is over (G9): the leader asks for that long, and once more.
        let timeout = self.election_timeout_max() + MIN_RETRY_SPREAD;
        if now.since(in_place.since) > timeout {
            self.resign(now);
            return;
        }
        if self.asks_the_linked(view) {
            // Asks the same voters again for the same term, so that waiting costs no terms (P15).
            self.request_votes(now, view, Tally::Pending);
        } else {
            let above = self.rules.record().stamp.clone();
            self.campaign_in_place(now, view, &above);
        }
    }

    /// Whether the open round asks exactly the voters that are linked now.
    fn asks_the_linked(&self, view: &View) -> bool {
        let mut voters = self.electorate(view);
        voters.insert(self.me.clone());
        let open = self.rules.campaign();
        open.is_some_and(|open| open.electorate == voters)
    }

    /// Whether a candidate that had no majority in time may ask for the same term again. A leader's request to campaign
    /// covers one round only.
    pub(super) fn may_ask_again(&self, view: &View) -> bool {
        let open = self.rules.campaign();
        let unopposed = open.is_some_and(|open| open.refused.is_empty());
        unopposed && self.asked_by().is_none() && self.may_campaign() && self.asks_the_linked(view)
    }

    /// Stops leading without a known successor.
    pub(super) fn resign(&mut self, now: Time) {
        self.become_follower(Following::None);
        self.election_at = now + self.up_to(SUCCESSION_GRACE);
    }

    /// Ends an open round, but not a leadership.
    pub(super) fn abandon_round(&mut self) {
        if !self.leads() {
            self.step_down();
        }
    }

    /// The voters whose votes count, fixed for one round (G5): the linked ones, or the roster, linked or not.
    pub(super) fn electorate(&self, view: &View) -> BTreeSet<PeerId> {
        match self.config.quorum.roster() {
            Some(roster) => roster.electorate(),
            None => view.eligible().map(|(id, _)| id.clone()).collect(),
        }
    }

    /// Asks all linked voters, and where they may object the observers and a leader in doubt, too.
    fn ask(&mut self, view: &View, observers: bool, message: &ElectionMessage) {
        for id in view.voters.keys() {
            if view.is_eligible(id) || observers {
                self.send(id, message.clone());
            }
        }
    }

    pub(super) fn send(&mut self, to: &PeerId, message: ElectionMessage) {
        let stamp = self.rules.record().stamp.clone();
        self.outputs.push_back(ElectionOutput::Send {
            to: to.clone(),
            message: Stamped::new(stamp, message),
        });
    }
}
