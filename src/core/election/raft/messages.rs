//! What peers say: votes, heartbeats, nacks.

use super::campaign::slowest_rtt;
use super::standing::millis;
use super::transfer::EarlyRequest;
use super::{AssignOutcome, SUCCESSION_GRACE};
use super::{
    ElectionError, Electors, Following, LeaderReason, Leadership, MAX_CONTESTS, Raft, View,
};
use crate::core::election::Election;
use crate::core::election::record::{Epoch, Record, Stamp};
use crate::core::election::rules::{Role, Tally};
use crate::core::id::{Incarnation, PeerId};
use crate::core::time::{Duration, Time};
use crate::core::wire::{ElectionMessage, LiveLeader, MergePolicy, Pulse, Side};

/// A peer's word of a live leader.
pub(super) enum Word {
    /// It names none.
    None,
    /// It names one that this node knows to be gone: as good as no answer (G3).
    Dead,
    /// It names one.
    Alive(LiveLeader),
}

/// What others say.
impl Raft {
    /// C4.8: a counter that is larger than time allows is not taken, whoever tells it. What this node holds itself it
    /// takes from others, too.
    pub(super) fn check_stamp(&self, now: Time, stamp: &Stamp) -> Result<(), ElectionError> {
        let own = &self.rules.record().stamp;
        let epoch = &stamp.epoch;
        if self.config.quorum.is_static() && *epoch != Epoch::default() {
            // C2: nobody assigns there, so that no epoch but the first one is ever opened.
            let value = epoch.override_seq.max(1);
            return Err(ElectionError::TooLarge { value, bound: 0 });
        }
        self.check_counter(now, stamp.term, own.term)?;
        self.check_counter(now, stamp.epoch.override_seq, own.epoch.override_seq)
    }

    pub(super) fn check_counter(
        &self,
        now: Time,
        value: u64,
        own: u64,
    ) -> Result<(), ElectionError> {
        let bound = self.config.clock.bound(now);
        if value > bound.max(own) {
            return Err(ElectionError::TooLarge { value, bound });
        }
        Ok(())
    }

    /// What somebody else's record says, as far as it may be believed.
    pub(super) fn heed(&self, now: Time, record: &Record) -> Result<Record, ElectionError> {
        self.check_stamp(now, &record.stamp)?;
        let mut record = record.clone();
        if self.config.guards.record_order {
            record.disbelieve_assignment_by_nobody();
        }
        Ok(record)
    }

    pub(super) fn heed_side(&self, now: Time, side: &mut Side) -> Result<(), ElectionError> {
        side.record = self.heed(now, &side.record)?;
        Ok(())
    }

    pub(super) fn message(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        stamp: &Stamp,
        message: ElectionMessage,
    ) -> Result<(), ElectionError> {
        let asks = matches!(message, ElectionMessage::TransferRequest { .. });
        if !asks && !self.heeds(from) {
            return Ok(());
        }
        match message {
            ElectionMessage::PreVoteRequest {
                round,
                candidate,
                term,
            } => {
                let from = self.sender(from, &candidate)?;
                self.check_counter(now, term, self.rules.record().term())?;
                self.answer_pre_vote(now, view, from, round, stamp, term);
            }
            ElectionMessage::PreVoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            } => {
                let from = self.sender(from, &voter)?;
                let record = self.heed(now, &record)?;
                self.pre_vote_answered(now, view, from, round, granted, &record, live);
            }
            ElectionMessage::VoteRequest {
                round,
                candidate,
                asked_by,
            } => {
                let from = self.sender(from, &candidate)?;
                self.answer_vote(now, view, from, round, stamp, asked_by.as_ref());
            }
            ElectionMessage::VoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            } => {
                let from = self.sender(from, &voter)?;
                let record = self.heed(now, &record)?;
                self.vote_answered(now, view, from, round, granted, &record, live);
            }
            ElectionMessage::LeaderAssign { record, seq } => {
                let record = self.heed(now, &record)?;
                let ordered = self.config.guards.record_order;
                if ordered && record.stamp.epoch.assigner.as_ref() != Some(from) {
                    return Err(ElectionError::Violation(
                        "an assignment names another assigner than its sender",
                    ));
                }
                if !record.assigned || record.leader.is_none() {
                    return Err(ElectionError::Violation(
                        "an assignment without an assigned leader",
                    ));
                }
                self.assigned(now, view, from, &record, seq);
            }
            ElectionMessage::LeaderAssignAck {
                seq,
                accepted,
                record,
            } => {
                let record = self.heed(now, &record)?;
                self.assign_answered(now, view, from, seq, accepted, &record);
            }
            ElectionMessage::Nack { record, live } => {
                let record = self.heed(now, &record)?;
                self.nacked(now, view, from, &record, live);
            }
            ElectionMessage::ForeignSide {
                peer,
                mut ours,
                mut theirs,
            } => {
                self.heed_side(now, &mut ours)?;
                self.heed_side(now, &mut theirs)?;
                if self.rules.role() == Role::Leader && !self.config.quorum.is_static() {
                    // A Hello from before the follower heard its leader would make this side look leaderless.
                    let mine = ours.live.as_ref().is_some_and(|live| live.id == self.me);
                    let ours = if mine { ours } else { self.side(now, view) };
                    self.meet(now, view, &peer, &ours, &theirs);
                    self.leader_was_found();
                }
            }
            ElectionMessage::TimeoutNow { target } => {
                self.timeout_now(now, view, from, stamp, &target);
            }
            ElectionMessage::TransferRequest { seq, target } => {
                self.transfer_requested(now, view, from, seq, &target);
            }
            ElectionMessage::TransferRefused { seq } => self.transfer_refused(from, seq),
            ElectionMessage::Claim { .. } => {
                return Err(ElectionError::Violation(
                    "an election message is of another election strategy",
                ));
            }
        }
        Ok(())
    }

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
        let granted = self.rules.role() != Role::Leader
            && asked > self.rules.record().stamp
            && self.may_vote(now)
            && self.counts(view, from)
            && (!self.lease_binds(now) || self.following.is_direct(from));
        let answer = ElectionMessage::PreVoteResponse {
            round,
            voter: self.me.clone(),
            granted,
            record: self.rules.record().clone(),
            live: self.live_to(now, view, from),
        };
        self.send(from, answer);
        if granted && self.goes_before(view, from) {
            self.give_way(now, view);
        }
    }

    /// G13: a preferred peer asks, and would have this node's vote. Of two that ask at the same time one goes on, or
    /// they split the votes of one term after another. Once since a leader was heard the other gets the time that its
    /// election takes, from those who have not asked yet, too: in a large room with long round trips most of them would
    /// ask everybody before they hear of its success. Not more often, or one that cannot win keeps all from leading.
    fn give_way(&mut self, now: Time, view: &View) {
        let asks = self.rules.role() == Role::PreCandidate;
        let first = !self.gave_way;
        if !self.config.guards.rivals_yield || !(asks || (first && self.awaits_election())) {
            return;
        }
        self.abandon_round();
        self.gave_way = true;
        let rtt = slowest_rtt(view);
        let votes_and_heartbeat = if first { rtt * 2 } else { Duration::ZERO };
        let later = now + votes_and_heartbeat + self.retry_delay(rtt);
        self.election_at = if asks {
            later
        } else {
            later.max(self.election_at)
        };
    }

    #[allow(clippy::too_many_arguments)] // the fields of one message
    pub(super) fn pre_vote_answered(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        round: u64,
        granted: bool,
        record: &Record,
        live: Option<LiveLeader>,
    ) {
        let open = self.rules.campaign().map(|campaign| campaign.round);
        if self.rules.role() != Role::PreCandidate || open != Some(round) {
            return;
        }
        self.rules.thaw(&self.electorate(view));
        let (is_voter, alone) = (is_eligible(view, from), is_alone(view));
        match self.veto(now, live) {
            Word::Dead => {}
            Word::Alive(live) => self.follow_indirectly(now, view, record, &live),
            // An observer can object, but not consent for a voter that is linked.
            Word::None if self.one_answer_decides(view) && !is_voter && !alone => {}
            Word::None if self.one_answer_decides(view) => {
                // G3: an answer that names no live leader ends the window.
                self.round_at = None;
                let above = record.stamp.clone().max(self.rules.record().stamp.clone());
                self.following = Following::None;
                let tally = self.rules.begin_vote(self.electorate(view), &above);
                self.request_votes(now, view, tally);
                if granted && let Some(reign) = &mut self.reign {
                    // Its consent is what a vote is among more: it counts for this side's weight.
                    reign.acks.insert(from.clone(), now);
                }
            }
            Word::None => {
                if *record > *self.rules.record() {
                    // Ask again, for a higher term, when the round is repeated.
                    self.take_over(now, view, record);
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
        let bound = !handed_over && !self.following.is_direct(from) && self.lease_binds(now);
        let leads = self.rules.role() == Role::Leader;
        if let Some(leader) = asked_by
            && bound
            && self.rules.role() == Role::Follower
        {
            // The leader's own word, which travels another way, may come a moment later.
            self.early_request = Some(EarlyRequest {
                candidate: from.clone(),
                round,
                stamp: stamp.clone(),
                asked_by: leader.clone(),
            });
            return;
        }
        let keeps_leading = leads && !handed_over && self.has_quorum(now, view);
        let mut granted = false;
        if self.counts(view, from) && self.may_vote(now) && !bound && !keeps_leading {
            granted = self.rules.vote(from, stamp);
            if leads && self.rules.role() != Role::Leader {
                // A higher term deposed this leader.
                self.follow(Following::None);
                self.arm_election(now, view);
            } else if self.rules.role() == Role::Follower && self.round_at.take().is_some() {
                // A higher term ended the own round.
                self.election_at = now + self.retry_delay(slowest_rtt(view));
            }
            if granted && handed_over {
                self.expect_heir(now, from);
            }
            if granted && leads_nothing(self.rules.role()) {
                // Whoever gives its vote waits for what comes of it.
                self.abandon_round();
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

    #[allow(clippy::too_many_arguments)] // the fields of one message
    pub(super) fn vote_answered(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        round: u64,
        granted: bool,
        record: &Record,
        live: Option<LiveLeader>,
    ) {
        let open = self.rules.campaign().map(|campaign| campaign.round);
        if !self.rules.campaigning() || open != Some(round) {
            return;
        }
        if !granted && *record > *self.rules.record() {
            self.nacked(now, view, from, record, live);
            return;
        }
        // A voter that gives no vote yet names the leader that asked for this campaign: it leads until that is won.
        let asked = |live: &LiveLeader| self.asked_by.as_ref() == Some(&live.id);
        if !granted
            && self.rules.role() == Role::Candidate
            && let Word::Alive(live) = self.veto(now, live)
            && !asked(&live)
        {
            self.follow_indirectly(now, view, record, &live);
            return;
        }
        let granted = granted && self.remembers_its_votes(view, from);
        self.rules.thaw(&self.electorate(view));
        if self.rules.count_vote(round, from, granted) == Tally::Won {
            self.lead(now);
        }
    }

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
                let from = match &record.leader {
                    Some(leader) => self.sender(from, leader)?,
                    None => from,
                };
                match &record.leader {
                    _ if !self.counts(view, from) => {} // P6: it may not
                    Some(_) => {
                        self.leader_heard(now, view, from, &record, weight, led_ms);
                        self.go_by_timeout(now, view, from, election_timeout_min_ms);
                    }
                    None => self.campaigning_leader_heard(now, view, from),
                }
            }
            Pulse::Follows { record, live } => {
                let record = self.heed(now, &record)?;
                self.follower_heard(now, view, from, &record, live);
            }
            Pulse::Gossip { .. } => {
                return Err(ElectionError::Violation(
                    "a heartbeat is of another election strategy",
                ));
            }
        }
        Ok(())
    }

    /// A heartbeat of a peer that leads.
    pub(super) fn leader_heard(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        weight: u32,
        led_ms: u64,
    ) {
        let rules = &self.rules;
        let own_term = rules.role() == Role::Candidate && record.stamp == rules.record().stamp;
        if own_term && !self.config.guards.candidate_concedes {
            return;
        }
        if *record >= *rules.record() || rules.is_newer(record) {
            self.hear_leader(now, view, from, record, weight, led_ms);
            return;
        }
        // C4.6: the leader that the own record names is alive, though it does not know the record yet. With a static
        // quorum it is deposed.
        let named = self.rules.record().leader.as_ref() == Some(from);
        let follows = self.rules.role() == Role::Follower && !self.config.quorum.is_static();
        if follows && (named || self.following.is_direct(from)) {
            self.refresh(now, view, from, record, weight, led_ms);
        }
        let nack = ElectionMessage::Nack {
            record: self.rules.record().clone(),
            live: self.live_to(now, view, from),
        };
        if self.config.guards.nack {
            self.send(from, nack);
        }
    }

    /// Goes by `from`, whose claim is not older than anything seen.
    pub(super) fn hear_leader(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        weight: u32,
        led_ms: u64,
    ) {
        self.take_over(now, view, record);
        self.follow(Following::None);
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
        self.following = Following::Direct(Leadership {
            leader: from.clone(),
            record: record.clone(),
            heard_at: now,
            weight,
            led_ms,
        });
        self.has_followed = true;
        self.gave_way = false;
        // The leader is one of both numbers, this node one of the others.
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
        let done = self.assignment.as_ref().is_some_and(|assignment| {
            assignment.target == *from && assignment.record == *self.rules.record()
        });
        if done {
            self.finish_assignment(AssignOutcome::Done);
        }
    }

    /// The leader campaigns in place: it is alive, but holds no lease meanwhile.
    pub(super) fn campaigning_leader_heard(&mut self, now: Time, view: &View, from: &PeerId) {
        if let Following::Direct(leadership) = &mut self.following
            && leadership.leader == *from
        {
            leadership.heard_at = now;
            self.arm_election(now, view);
        }
    }

    /// A heartbeat of a peer that does not lead.
    pub(super) fn follower_heard(
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
        if let Some(reign) = &mut self.reign {
            // Until a campaign in place is won its followers go by the record before it.
            if live && (*record == *self.rules.record() || *record == reign.record) {
                reign.acks.insert(from.clone(), now);
                reign.window.answered(from);
            } else if record
                .leader
                .as_ref()
                .is_some_and(|leader| *leader != self.me)
            {
                reign.acks.remove(from);
            }
        }
        if live {
            self.vouched(now, view, record);
        }
        let resigned = self.following.is_direct(from);
        if !resigned {
            return;
        }
        match &record.leader {
            Some(leader)
                if live && *leader != self.me && leader != from && !self.is_gone(now, leader) =>
            {
                let until = now + self.draw_timeout(view);
                let leader = leader.clone();
                self.take_over(now, view, record);
                self.follow(Following::Indirect { leader, until });
                self.electors = Electors::Unknown;
            }
            _ => {
                self.lose_leader();
                // It may have given way to a leader whose side is not known here.
                self.electors = Electors::Unknown;
                self.hints.ended = Some(LeaderReason::Resigned);
                if self.config.quorum.is_static() {
                    // The lease that it held is over, too.
                    self.lease_until = now;
                }
                if self.config.guards.succession {
                    self.election_at = now + self.up_to(SUCCESSION_GRACE);
                }
            }
        }
    }

    /// A peer hears the leader of its record directly, and says so with every heartbeat.
    fn vouched(&mut self, now: Time, view: &View, record: &Record) {
        let Some(leader) = &record.leader else {
            return;
        };
        let known = match &self.following {
            Following::Indirect { leader: shown, .. } => shown == leader,
            // The assigned leader began to lead, out of reach of this node.
            Following::Awaited { leader: shown, .. } => {
                shown == leader && record >= self.rules.record()
            }
            Following::None | Following::Direct(_) => false,
        };
        // A node that may campaign asks when its timer fires, which tells it more. One that may not has no
        // other way to learn of a leader that it cannot reach.
        let learns = self.following == Following::None
            && self.rules.role() == Role::Follower
            && !self.may_campaign()
            && *record >= *self.rules.record()
            && *leader != self.me
            && !self.is_gone(now, leader);
        if !known && !learns {
            return;
        }
        let leader = leader.clone();
        // How long it has led is not said: under the record of the leader before, it led beside it.
        let beside = *record == *self.rules.record() && self.following == Following::None;
        self.saw_leader(now, &leader, if beside { u64::MAX } else { 0 });
        let shown_until = match self.following {
            Following::Indirect { until, .. } => until,
            _ => now,
        };
        let until = shown_until.max(now + self.draw_timeout(view));
        self.take_over(now, view, record);
        self.following = Following::Indirect { leader, until };
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
        if *record <= *self.rules.record() || self.rules.role() == Role::Follower {
            return;
        }
        if let Some(reign) = &mut self.reign {
            // It goes by another claim now: two leaders that share a follower must not both count it, or
            // each finds itself the heavier one and they depose each other for ever.
            reign.acks.remove(from);
        }
        if self.is_host() {
            self.stay_above(now, view, record);
            return;
        }
        if self.config.quorum.is_static() {
            self.outranked(now, view, record);
            self.show_leader_of(now, view, record, live);
            return;
        }
        let word = self.weigh_live(now, live);
        let Some(reign) = &self.reign else {
            // A candidate goes by what it is told.
            match word {
                Word::Alive(live) => self.follow_indirectly(now, view, record, &live),
                Word::Dead | Word::None => self.take_over(now, view, record),
            }
            return;
        };
        if self.lets_pass(now, record) {
            if let Word::Alive(live) = &word
                && record.leader.as_ref() == Some(&live.id)
            {
                self.follow_indirectly(now, view, record, live);
            }
            return;
        }
        let foreign_epoch = record.stamp.epoch != self.rules.record().stamp.epoch;
        let assigned_to_me =
            record.assigned && record.leader.as_ref() == Some(&self.me) && foreign_epoch;
        let stays = match (&word, self.config.merge) {
            // It has what this leader wants it to have.
            (Word::Alive(live), _) if reign.hands_over_to(&live.id) => false,
            (_, MergePolicy::HighestTerm) => false,
            (Word::Alive(live), MergePolicy::LargestSide) => {
                let own = (
                    self.weight(now, view, reign),
                    millis(now.since(reign.since)),
                );
                // What a third peer says of the rival is old by a trip. Two that began to lead within that
                // time would each find itself the older one, again and again: the larger id ends it.
                let heavier = if reign.contests_with(&live.id) < MAX_CONTESTS {
                    own > (live.weight, live.led_ms)
                } else {
                    self.me > live.id
                };
                !foreign_epoch && heavier
            }
            (Word::Dead | Word::None, MergePolicy::LargestSide) => true,
        };
        if assigned_to_me {
            // C4.6: this node was named and did not know it.
            self.take_over(now, view, record);
            return;
        }
        let target = record.leader.as_ref();
        let is_here = target.is_some_and(|target| view.voters.contains_key(target));
        if foreign_epoch && record.assigned && is_here && matches!(word, Word::None) {
            // A SetLeader that has not reached this leader yet: nobody hears its target so far, but to go
            // above it now would undo what a host just asked for (C4). One whose target is not here may be old.
            self.go_by_assignment(now, view, record);
            return;
        }
        if stays {
            if let (Some(reign), Word::Alive(live)) = (&mut self.reign, &word) {
                reign.contest(live.id.clone());
            }
            self.reterm(now, view, &record.stamp.clone());
            return;
        }
        match word {
            Word::Alive(live) => self.follow_indirectly(now, view, record, &live),
            Word::Dead | Word::None => {
                self.take_over(now, view, record);
                self.follow(Following::None);
                self.arm_election(now, view);
            }
        }
    }

    /// Takes over a larger record, with what follows from it for role and timers. Whom this node shows as
    /// leader is left to the caller, unless the record assigns this node itself.
    pub(super) fn take_over(&mut self, now: Time, view: &View, record: &Record) {
        if !self.rules.is_newer(record) {
            return;
        }
        let role = self.rules.role();
        self.rules.adopt(record, self.config.eligible);
        self.round_at = None;
        self.asked_by = None;
        self.supersede_assignment();
        if self.rules.role() == Role::Leader {
            self.lead(now);
            return;
        }
        self.reign = None;
        match role {
            Role::Leader => self.arm_election(now, view),
            Role::PreCandidate | Role::Candidate => {
                self.election_at = now + self.retry_delay(slowest_rtt(view));
            }
            Role::Follower => {}
        }
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
        if self.rules.role() == Role::Leader && record.leader.as_ref() == Some(&self.me) {
            return; // it assigns this node
        }
        let extra = self.draw_timeout(view) - self.election_timeout_min();
        self.saw_leader(now, &live.id, live.led_ms);
        let rest = Duration::from_millis(live.rest_ms.into()).min(self.config.heartbeat_timeout);
        let until = now + rest + extra;
        self.follow(Following::Indirect {
            leader: live.id.clone(),
            until,
        });
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

    /// Whether the last incarnation of `peer` that was linked here left or was lost by its transport, and others may not
    /// know it yet.
    pub(super) fn is_gone(&self, now: Time, peer: &PeerId) -> bool {
        let mut of_peer = self.gone.iter().filter(|((id, _), _)| id == peer);
        of_peer.any(|(_, departed)| !departed.succeeded && departed.is_gone(now))
    }

    /// The same of one incarnation. While no later one of the peer was linked here, one that started before the one that
    /// is gone is gone, too; else the order of two cannot be seen, because clocks are set back.
    fn is_gone_in(&self, now: Time, peer: &PeerId, incarnation: Incarnation) -> bool {
        let mut of_peer = self.gone.iter().filter(|((id, _), _)| id == peer);
        of_peer.any(|((_, gone), departed)| {
            let ended = *gone == incarnation || (*gone > incarnation && !departed.succeeded);
            ended && departed.is_gone(now)
        })
    }

    /// G16: who says a message that names its sender.
    fn sender<'a>(&self, from: &'a PeerId, named: &'a PeerId) -> Result<&'a PeerId, ElectionError> {
        if from == named || !self.config.guards.authenticated_names {
            Ok(named)
        } else {
            Err(ElectionError::Violation(
                "an election message names another peer than its sender",
            ))
        }
    }

    /// G3: what the word of a live leader in the answer to a request is worth.
    fn veto(&self, now: Time, live: Option<LiveLeader>) -> Word {
        let live = live.filter(|_| self.config.guards.veto);
        self.weigh_live(now, live)
    }

    /// What an answer's word of a live leader is worth to this node.
    pub(super) fn weigh_live(&self, now: Time, live: Option<LiveLeader>) -> Word {
        match live {
            None => Word::None,
            Some(live) if live.id == self.me && live.incarnation == self.incarnation => Word::None,
            Some(live) if live.id == self.me => Word::Dead,
            Some(live) if self.is_gone_in(now, &live.id, live.incarnation) => Word::Dead,
            Some(live) => Word::Alive(live),
        }
    }
}

/// Whether nobody else is linked who may vote.
pub(super) fn is_alone(view: &View) -> bool {
    view.eligible().next().is_none()
}

fn leads_nothing(role: Role) -> bool {
    matches!(role, Role::Follower | Role::PreCandidate)
}

pub(super) fn is_eligible(view: &View, peer: &PeerId) -> bool {
    view.voters.get(peer).is_some_and(|voter| voter.eligible)
}
