//! Links that come and go: two sides merge, a leader is lost.

use super::following::{Following, Report};
use super::{
    AssignOutcome, DownReason, ElectionOutput, LeaderReason, Raft, SUCCESSION_GRACE, View,
};
use crate::election::policy::MergePolicy;
use crate::election::raft::wire::{ElectionMessage, LiveLeader, Side};
use crate::election::record::{Epoch, Record};
use crate::id::{Incarnation, PeerId};
use crate::time::Time;

/// Changes of links.
impl Raft {
    /// Two sides merge. `ours` and `theirs` are the parts of both Hellos, so that both ends decide alike. `peer` is
    /// linked to this node or to one of its followers.
    pub(super) fn meet(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        ours: &Side,
        theirs: &Side,
    ) {
        if self.config.quorum.is_static() {
            self.compare_voter(now, view, peer, theirs);
            return;
        }
        let leads = self.leads();
        if leads && self.is_host() {
            // The first peer of this incarnation cannot have the record from it.
            let own = &self.rules.record().stamp;
            let of_an_earlier_life = ours.lone && theirs.record.stamp == *own;
            if of_an_earlier_life {
                self.campaign_in_place(now, view, &theirs.record.stamp.clone());
            }
            self.stay_above(now, view, &theirs.record);
            return;
        }
        let their_live = match self.weigh_live(now, view, theirs.live.clone()) {
            Report::Alive(live) if !self.succeeds(&live.id, &theirs.record) => Some(live),
            Report::Alive(_) | Report::Dead | Report::None => None,
        };
        let higher = theirs.record > *self.rules.record();
        match (self.live(now, view), their_live) {
            (None, None) => {
                if higher {
                    let may_lead = !ours.lone;
                    self.take_over_from_hello(now, view, &theirs.record, may_lead);
                }
            }
            // The leader that asked for this campaign would have stayed.
            (None, Some(_)) if self.campaigns_for(ours) && self.outweighs(ours, theirs) => {}
            (None, Some(live)) => {
                if higher && live.id == *peer && theirs.record.leader.as_ref() == Some(peer) {
                    self.take_over_from_hello(now, view, &theirs.record, false);
                }
                self.follow_indirectly(now, view, &theirs.record.clone(), &live);
            }
            (Some(_), None) => {
                if higher && leads {
                    self.challenged(now, view, theirs, false);
                } else if higher {
                    self.report_side(peer, ours, theirs);
                }
            }
            (Some(mine), Some(live)) if mine.id == live.id => {
                if higher && !leads {
                    self.take_over(now, view, &theirs.record);
                }
            }
            (Some(_), Some(live)) => {
                let we_win = self.outweighs(ours, theirs);
                if !leads {
                    if !we_win || higher {
                        self.report_side(peer, ours, theirs);
                    }
                } else if !we_win {
                    // This side's host made the request, and its side ended: peers of the other side do not receive it.
                    self.finish_assignment(AssignOutcome::Superseded);
                    self.assigning.open = None;
                    self.follow_indirectly(now, view, &theirs.record.clone(), &live);
                } else if higher {
                    self.challenged(now, view, theirs, true);
                }
            }
        }
    }

    /// Whether the leadership of `leader` under `record` ended, or ends, for this node's. A member that has not received
    /// the next heartbeat still names that leader, which is older and may weigh as much.
    fn succeeds(&self, leader: &PeerId, record: &Record) -> bool {
        let is_earlier = record < self.rules.record();
        let follows_me = self.leading().is_some_and(|own| {
            own.predecessor.as_ref() == Some(leader) || own.acks.contains_key(leader)
        });
        is_earlier && (follows_me || self.asked_by() == Some(leader))
    }

    /// Whether the leader of that side asked this candidate to succeed it.
    fn campaigns_for(&self, side: &Side) -> bool {
        let asked_by = self.asked_by();
        asked_by.is_some() && side.live.as_ref().map(|live| &live.id) == asked_by
    }

    fn outweighs(&self, ours: &Side, theirs: &Side) -> bool {
        match self.config.policy.merge {
            MergePolicy::HighestTerm => ours.record > theirs.record,
            MergePolicy::LargestSide => side_rank(ours) > side_rank(theirs),
        }
    }

    /// This side as it counts now, when `sent` is what it sent before. A leader counts its present leadership: before
    /// that began, or before a follower heard of it, this side had another leader or none.
    pub(super) fn own_side_since(&self, now: Time, view: &View, sent: Side) -> Side {
        let names_me = sent.live.as_ref().is_some_and(|live| live.id == self.me);
        if !self.leads() || names_me {
            return sent;
        }
        Side {
            lone: sent.lone,
            ..self.side(now, view)
        }
    }

    /// Two voters of a static quorum link. The weights of sides do not count; the higher record holds.
    fn compare_voter(&mut self, now: Time, view: &View, peer: &PeerId, theirs: &Side) {
        if self.heeds(peer) {
            self.outranked(now, view, &theirs.record);
            self.show_voters_leader(now, view, &theirs.record, theirs.live.clone());
        }
    }

    /// With a static quorum a higher record ends every role at once: no leader campaigns in place (C2).
    pub(super) fn outranked(&mut self, now: Time, view: &View, record: &Record) {
        let leads = self.leads();
        if !self.rules.is_newer(record) || (leads && self.tolerates(now, record)) {
            return;
        }
        self.take_over(now, view, record);
        if leads {
            self.become_follower(Following::None);
            self.hints.ended = Some(LeaderReason::Resigned);
            self.outputs.push_back(ElectionOutput::HeartbeatNow);
        }
    }

    /// A node without a leader shows the leader whose heartbeats another voter receives, unless its own record is newer.
    pub(super) fn show_voters_leader(
        &mut self,
        now: Time,
        view: &View,
        record: &Record,
        live: Option<LiveLeader>,
    ) {
        if self.is_free()
            && *record == *self.rules.record()
            && let Report::Alive(live) = self.weigh_live(now, view, live)
        {
            self.follow_indirectly(now, view, record, &live);
        }
    }

    /// A fixed host goes above any record of its guests: usually the record of an earlier incarnation of it.
    pub(super) fn stay_above(&mut self, now: Time, view: &View, record: &Record) {
        if *record > *self.rules.record() {
            self.campaign_in_place(now, view, &record.stamp.clone());
        }
    }

    /// This leader stays although the other side's record is higher: it goes above that record in place.
    pub(super) fn challenged(&mut self, now: Time, view: &View, theirs: &Side, live: bool) {
        let record = &theirs.record;
        if self.config.policy.merge == MergePolicy::HighestTerm {
            self.take_over(now, view, record);
            if !self.leads() {
                self.become_follower(Following::None);
            }
            return;
        }
        let foreign_epoch = record.stamp.epoch != self.rules.record().stamp.epoch;
        if foreign_epoch && record.assigned && self.names_me(record) {
            self.take_over(now, view, record);
        } else if foreign_epoch && live {
            // A lone node's epoch does not count, but records never decrease: go above it.
            let seen = record.stamp.epoch.override_seq;
            self.rules
                .issue_epoch(seen.max(self.assigning.max_override_seq));
            self.supersede_assignment();
            self.become_leader(now);
        } else if !self.leaves_to_target(now, record) {
            self.campaign_in_place(now, view, &record.stamp.clone());
        }
    }

    pub(super) fn take_over_from_hello(
        &mut self,
        now: Time,
        view: &View,
        record: &Record,
        may_lead: bool,
    ) {
        if may_lead || !self.names_me(record) {
            self.take_over(now, view, record);
        } else {
            // An older incarnation of this process led. This one starts as a follower.
            self.abandon_round();
            self.rules.adopt(record, false);
            self.supersede_assignment();
        }
    }

    pub(super) fn report_side(&mut self, peer: &PeerId, ours: &Side, theirs: &Side) {
        if let Some(direct) = self.direct() {
            let to = direct.leader.clone();
            let message = ElectionMessage::ForeignSide {
                peer: peer.clone(),
                ours: ours.clone(),
                theirs: theirs.clone(),
            };
            self.send(&to, message);
        }
    }

    pub(super) fn peer_down(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        incarnation: Incarnation,
        why: DownReason,
    ) {
        if let Some(leader) = self.leading_mut() {
            leader.acks.remove(peer);
            leader
                .predecessor
                .take_if(|predecessor| predecessor == peer);
            leader.window.lost(peer, &why);
        }
        self.assigning.is_not_due_to(peer);
        self.end_transfer(|transfer| transfer.target == *peer);
        self.forget_held(peer);
        self.forgetful.remove(peer);
        if !view.voters.contains_key(peer) {
            self.role.unvouch(peer);
            self.namesakes.note(now, peer, None);
        }
        self.departures.note(now, peer, incarnation, &why);
        if self.role.shown() != Some(peer) {
            return;
        }
        // A leader that only others name, or that is only lost from here, may live on for them.
        let may_live = matches!(why, DownReason::Silent | DownReason::Refused);
        let in_doubt = self.doubts_leader;
        let vouched = self.role.named().is_some() && !in_doubt && may_live;
        if vouched {
            return;
        }
        self.lose_leader();
        match why {
            // Its silence is as old as the doubt.
            DownReason::Silent if in_doubt => {}
            DownReason::Silent => self.fell_silent = Some((peer.clone(), now)),
            // It is dead already: a report is news only if its sender has heard the leader since.
            DownReason::Refused => {
                let margin = self.news_margin();
                let until = now + self.config.heartbeat_timeout.saturating_sub(margin);
                self.fell_silent = Some((peer.clone(), until));
            }
            DownReason::Left { .. } | DownReason::Removed | DownReason::Closed => {}
        }
        match why {
            _ if !self.config.guards.succession() => {}
            DownReason::Left { .. } | DownReason::Removed => {
                let successor = why.successor();
                self.hints.ended = Some(LeaderReason::Left);
                self.lease_until = now;
                if let Some(successor) = successor {
                    self.expect_successor(now, successor);
                    self.answer_early_request(now, view);
                }
                let named = successor == Some(&self.me);
                let may_campaign = self.may_campaign() && self.may_stand(now);
                if named && may_campaign && self.can_win(view) {
                    self.campaign(now, view, Some(peer));
                } else {
                    self.election_at = now + SUCCESSION_GRACE + self.succession_slot(view);
                }
            }
            DownReason::Refused => {
                self.refused = Some((peer.clone(), incarnation, now));
                self.lease_until = now;
                self.election_at = now + self.succession_slot(view);
                self.answer_refused_pre_vote(now, view);
            }
            // Not by rank: the next in rank may be a peer that the leader has banned just now.
            DownReason::Closed => {
                self.lease_until = now;
                self.election_at = now + self.up_to(SUCCESSION_GRACE);
            }
            // The timer did not run while the leader was held. The slots of the voters (G13) begin now.
            DownReason::Silent if self.holds_leader => {
                let slot = self.draw_timeout(view) - self.election_timeout_min();
                self.election_at = now + slot;
            }
            // The timer has run since the last heartbeat (G1).
            DownReason::Silent => {}
        }
    }

    /// A peer is linked, or may lead again.
    pub(super) fn is_back(&mut self, now: Time, view: &View, peer: &PeerId) {
        let linked = view.voters.get(peer).map(|voter| voter.incarnation);
        self.departures.is_back(now, peer, linked);
        self.refused.take_if(|(refused, ..)| refused == peer);
    }

    /// `peer` is linked now. A peer has one incarnation at a time, so another one that others named before has ended.
    pub(super) fn note_believed(&mut self, peer: &PeerId) {
        if let Some((_, incarnation)) = self.believed.take_if(|(named, _)| named == peer) {
            self.departures.note_report(peer, incarnation);
        }
    }
}

/// The comparison of two sides that merge: epoch (except of a node that never had a peer), weight, time led, record.
fn side_rank(side: &Side) -> impl Ord + '_ {
    let epoch = if side.lone {
        Epoch::default()
    } else {
        side.record.stamp.epoch.clone()
    };
    let (weight, led_ms) = side
        .live
        .as_ref()
        .map_or((0, 0), |live| (live.weight, live.led_ms));
    (
        epoch,
        weight,
        led_ms,
        side.record.stamp.term,
        &side.record.leader,
        side.record.leader_key,
    )
}
