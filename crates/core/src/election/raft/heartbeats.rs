//! Leadership in heartbeats, and nacks to a leader with an older record.

use super::following::{Following, Report};
use super::standing::millis;
use super::{
    ElectionError, Electors, LeaderReason, MAX_CONTESTS, Raft, Role, SUCCESSION_GRACE, View,
};
use crate::election::policy::MergePolicy;
use crate::election::raft::wire::{ElectionMessage, LiveLeader, Pulse};
use crate::election::record::Record;
use crate::id::PeerId;
use crate::time::{Duration, Time};

impl Raft {
    pub(super) fn pulse_received(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        pulse: Pulse,
    ) -> Result<(), ElectionError> {
        if !self.heeds(from) {
            return Ok(());
        }
        match pulse {
            Pulse::Leads {
                record,
                weight,
                led_ms,
                election_timeout_min_ms,
            } => {
                let record = self.heed(now, &record)?;
                if self.names_another_key(view, from, &record) {
                    return Ok(()); // an earlier process with its id led under that record
                }
                let from = match &record.leader {
                    Some(leader) => self.sender(from, leader)?,
                    None => from,
                };
                match &record.leader {
                    _ if !self.counts(view, from) => {} // P6: it may not lead
                    Some(_) => {
                        self.receive_leader_heartbeat(now, view, from, &record, weight, led_ms);
                        self.adopt_timeout(now, view, from, election_timeout_min_ms);
                    }
                    None => self.receive_campaigning_heartbeat(now, view, from),
                }
            }
            Pulse::Follows { record, live } => {
                let record = self.heed(now, &record)?;
                self.receive_follower_heartbeat(now, view, from, &record, live);
            }
        }
        Ok(())
    }

    /// A heartbeat of a peer that leads.
    pub(super) fn receive_leader_heartbeat(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        weight: u32,
        led_ms: u64,
    ) {
        let rules = &self.rules;
        let campaigns = matches!(self.role, Role::Candidate(_));
        let own_term = campaigns && record.stamp == rules.record().stamp;
        if own_term && !self.config.guards.candidate_concedes() {
            return;
        }
        if *record >= *rules.record() || rules.is_newer(record) {
            self.receive_leader(now, view, from, record, weight, led_ms);
            return;
        }
        // C4.6: the leader that this node's record names is alive, though it does not know the record yet. With a
        // static quorum the record deposes it.
        let named = self.rules.record().leader.as_ref() == Some(from);
        let follows = self.follows() && !self.config.quorum.is_static();
        if follows && (named || self.following().is_direct(from)) {
            self.refresh(now, view, from, record, weight, led_ms);
        }
        let nack = ElectionMessage::Nack {
            record: self.rules.record().clone(),
            live: self.live_to(now, view, from),
        };
        if self.config.guards.nack() {
            self.send(from, nack);
        }
    }

    /// The leader campaigns in place: it is alive, but holds no lease meanwhile.
    pub(super) fn receive_campaigning_heartbeat(&mut self, now: Time, view: &View, from: &PeerId) {
        if let Role::Follower(Following::Direct(direct)) = &mut self.role
            && direct.leader == *from
        {
            direct.at = now;
            self.arm_election(now, view);
        }
    }

    /// A heartbeat of a peer that does not lead.
    pub(super) fn receive_follower_heartbeat(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        live: bool,
    ) {
        if self.config.quorum.is_static() {
            self.outranked(now, view, record);
        }
        if let Role::Leader(leader) = &mut self.role {
            // Until a campaign in place is won, its followers follow the record before it.
            if live && (*record == *self.rules.record() || *record == leader.record) {
                leader.acks.insert(from.clone(), now);
                leader.window.answered(now, from);
            } else if record
                .leader
                .as_ref()
                .is_some_and(|named| *named != self.me)
            {
                leader.acks.remove(from);
            }
        }
        if live {
            self.vouched(now, view, record);
        } else {
            self.role.unvouch(from);
        }
        let resigned = self.following().is_direct(from);
        if !resigned {
            return;
        }
        match &record.leader {
            Some(leader)
                if live
                    && *leader != self.me
                    && leader != from
                    && !self.departures.is_gone(now, leader) =>
            {
                let until = now + self.draw_timeout(view);
                let leader = leader.clone();
                self.take_over(now, view, record);
                let named = self.named(&leader, record.leader_key, now, until);
                self.become_follower(Following::Indirect(named));
                self.electors = Electors::Unknown;
            }
            _ => {
                self.lose_leader();
                // It may have yielded to a leader whose side is not known here.
                self.electors = Electors::Unknown;
                self.hints.ended = Some(LeaderReason::Resigned);
                if self.config.quorum.is_static() {
                    // Its lease is over, too.
                    self.lease_until = now;
                }
                if self.config.guards.succession() {
                    let waits = self.successor_wait(now, view, from);
                    self.election_at = now + waits + self.up_to(SUCCESSION_GRACE);
                }
            }
        }
    }

    /// A peer reports with every heartbeat that it receives those of its record's leader.
    fn vouched(&mut self, now: Time, view: &View, record: &Record) {
        let Some(leader) = &record.leader else {
            return;
        };
        let known = match (self.following(), self.role.named()) {
            // The assigned leader began to lead, out of reach of this node.
            (Following::Awaited(named), _) => {
                named.leader == *leader && record >= self.rules.record()
            }
            (_, named) => named.is_some_and(|named| named.leader == *leader),
        };
        // A node that may campaign asks when its timer fires, and learns more from the answers. One that may not
        // campaign has no other way to learn of a leader that it cannot reach.
        let learns = self.is_free()
            && !self.may_campaign()
            && *record >= *self.rules.record()
            && *leader != self.me
            && !self.departures.is_gone(now, leader)
            && self.is_news(now, leader, Duration::ZERO);
        if !known && !learns {
            return;
        }
        let leader = leader.clone();
        // The heartbeat does not carry the time led. A leader under the record that this node already holds led beside
        // the one that it followed.
        let beside = *record == *self.rules.record() && self.is_free();
        self.saw_leader(now, &leader, if beside { u64::MAX } else { 0 });
        let shown = self.role.named();
        // The heartbeat does not carry for how long the peer will hear the leader.
        let vouched_until = shown.map_or(now, |named| named.vouched_until.max(now));
        let shown_until = shown.map_or(now, |named| named.until);
        let until = shown_until.max(now + self.draw_timeout(view));
        self.take_over(now, view, record);
        let named = self.named(&leader, record.leader_key, vouched_until, until);
        self.show(named);
        self.election_at = until;
    }

    pub(super) fn nacked(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        live: Option<LiveLeader>,
    ) {
        if *record <= *self.rules.record() || self.follows() {
            return;
        }
        if let Some(leader) = self.leading_mut() {
            // The peer follows another claim now. Two leaders that share a follower must not both count it, or each
            // finds itself the heavier one and they depose each other for ever.
            leader.acks.remove(from);
        }
        if self.is_host() {
            self.stay_above(now, view, record);
            return;
        }
        if self.config.quorum.is_static() {
            self.outranked(now, view, record);
            self.show_voters_leader(now, view, record, live);
            return;
        }
        let is_namesake = |live: &&LiveLeader| self.is_namesake(view, &live.id, live.key);
        if let (Some(leader), Some(live)) = (self.leading(), live.as_ref().filter(is_namesake)) {
            // Only one can stay. Each member of the side that yields moves by itself, this leader, too: the other side may
            // see no conflict, and hold to its own leader.
            let own = (
                self.weight(now, view, leader),
                millis(now.since(leader.since)),
            );
            if own > (live.weight, live.led_ms) {
                self.campaign_in_place(now, view, &record.stamp.clone());
            } else {
                self.namesakes.meet((live.id.clone(), live.key));
            }
            return;
        }
        let report = self.weigh_live(now, view, live);
        let Some(leader) = self.leading() else {
            // A candidate obeys the report.
            match report {
                Report::Alive(live) => self.follow_indirectly(now, view, record, &live),
                Report::Dead | Report::None => self.take_over(now, view, record),
            }
            return;
        };
        if self.tolerates(now, record) {
            if let Report::Alive(live) = &report
                && record.leader.as_ref() == Some(&live.id)
            {
                self.follow_indirectly(now, view, record, live);
            }
            return;
        }
        let foreign_epoch = record.stamp.epoch != self.rules.record().stamp.epoch;
        let assigned_to_me = record.assigned && self.names_me(record) && foreign_epoch;
        let stays = match (&report, self.config.policy.merge) {
            // This is the transfer that this leader asked for.
            (Report::Alive(live), _) if leader.transfers_to(&live.id) => false,
            (_, MergePolicy::HighestTerm) => false,
            (Report::Alive(live), MergePolicy::LargestSide) => {
                let own = (
                    self.weight(now, view, leader),
                    millis(now.since(leader.since)),
                );
                // A third peer's report of the rival is one trip old. Two leaders that began within that time would
                // each find itself the older one, again and again: the larger id decides.
                let heavier = if leader.contests_with(&live.id) < MAX_CONTESTS {
                    own > (live.weight, live.led_ms)
                } else {
                    self.me > live.id
                };
                !foreign_epoch && heavier
            }
            (Report::Dead | Report::None, MergePolicy::LargestSide) => true,
        };
        if assigned_to_me {
            // C4.6: this node was named and did not know it.
            self.take_over(now, view, record);
            return;
        }
        let target = record.leader.as_ref();
        let is_here = target.is_some_and(|target| view.voters.contains_key(target));
        if foreign_epoch && record.assigned && is_here && matches!(report, Report::None) {
            // A SetLeader that has not reached this leader yet: no member receives its target's heartbeats so far, but
            // going above it now would undo a host's fresh request (C4). One whose target is not connected here may be
            // old.
            self.adopt_assignment(now, view, record);
            return;
        }
        if stays {
            if let (Some(leader), Report::Alive(live)) = (self.leading_mut(), &report) {
                leader.contest(live.id.clone());
            }
            self.campaign_in_place(now, view, &record.stamp.clone());
            return;
        }
        match report {
            Report::Alive(live) => self.follow_indirectly(now, view, record, &live),
            Report::Dead | Report::None => {
                self.take_over(now, view, record);
                self.become_follower(Following::None);
                self.arm_election(now, view);
            }
        }
    }
}
