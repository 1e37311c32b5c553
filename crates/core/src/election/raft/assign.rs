//! `SetLeader`: assignments, their answers, and the loss of an assigned leader (C4).

use std::collections::BTreeSet;

use super::following::Following;
use super::{AssignOutcome, ElectionError, ElectionOutput, LeaderReason, Raft, View};
use crate::election::policy::{Authority, HostMode};
use crate::election::raft::wire::ElectionMessage;
use crate::election::record::Record;
use crate::id::PeerId;
use crate::time::Time;

/// Number of times that `SetLeader` goes above a larger epoch that it meets.
const MAX_ASSIGN_RETRIES: u32 = 3;

/// State of this host's `SetLeader` calls.
#[derive(Debug, Default)]
pub(super) struct Assigning {
    /// The largest override number in the answers to this node's assignments (C4.3). The numbers that this node follows
    /// are in its record.
    pub(super) max_override_seq: u64,
    count: u64,
    pub(super) open: Option<Assignment>,
}

/// An open `SetLeader` of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    target: PeerId,
    record: Record,
    seq: u64,
    /// The peers that have not answered.
    unacked: BTreeSet<PeerId>,
    retries: u32,
    deadline: Time,
    /// Whether the host knows the outcome. The assignment is repeated to the others all the same.
    reported: bool,
}

impl Assigning {
    /// The time at which the host is notified that the target did not become leader.
    pub(super) fn deadline(&self) -> Option<Time> {
        let open = self.open.as_ref()?;
        (!open.reported).then_some(open.deadline)
    }

    /// Whether `record`, under which `leader` leads, is the open assignment's.
    pub(super) fn names(&self, leader: &PeerId, record: &Record) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.target == *leader && open.record == *record)
    }

    /// Adds a linked peer that has not received the assignment.
    pub(super) fn is_due_to(&mut self, peer: &PeerId) {
        if let Some(open) = &mut self.open {
            open.unacked.insert(peer.clone());
        }
    }

    pub(super) fn is_not_due_to(&mut self, peer: &PeerId) {
        if let Some(open) = &mut self.open {
            open.unacked.remove(peer);
        }
    }
}

/// The host sets the leader (C4).
impl Raft {
    pub(super) fn set_leader(
        &mut self,
        now: Time,
        view: &View,
        target: &PeerId,
    ) -> Result<(), ElectionError> {
        self.check_target(view, target)?;
        if self.config.quorum.is_static() {
            return self.request_transfer(now, view, target);
        }
        if self.is_fixed() {
            return Ok(()); // that peer leads, or will when it is back
        }
        if self.config.policy.authority == Authority::LeaderOnly && !self.leads() {
            return Err(ElectionError::NotLeader);
        }
        let record = self.rules.record();
        if record.assigned
            && record.leader.as_ref() == Some(target)
            && self.leader() == Some(target)
        {
            return Ok(());
        }
        self.assign(now, view, target, 0);
        Ok(())
    }

    /// Whether the room has a fixed host: no member names another leader.
    pub(super) fn is_fixed(&self) -> bool {
        self.config.policy.host_mode != HostMode::Off
    }

    /// Whether `target` is connected and may lead.
    fn check_target(&self, view: &View, target: &PeerId) -> Result<(), ElectionError> {
        if *target == self.me && self.stale.is_some() {
            return Err(ElectionError::StaleTarget(target.clone()));
        }
        let eligible = if *target == self.me {
            self.config.eligible
        } else {
            view.voters
                .get(target)
                .map(|voter| voter.eligible)
                .ok_or_else(|| ElectionError::UnknownTarget(target.clone()))?
        };
        if !eligible {
            return Err(ElectionError::IneligibleTarget(target.clone()));
        }
        Ok(())
    }

    pub(super) fn assign(&mut self, now: Time, view: &View, target: &PeerId, retries: u32) {
        let direct = self.following().is_direct(target);
        let key = view.bound_key((&self.me, self.key), target);
        let seen = self.assigning.max_override_seq;
        let record = self.rules.assign(target, key, seen);
        self.assigning.max_override_seq = record.stamp.epoch.override_seq;
        if *target == self.me {
            self.become_leader(now);
        } else {
            self.step_down();
            if !direct {
                self.await_leader(now, view, target);
            }
        }
        self.supersede_assignment();
        self.assigning.count += 1;
        self.assigning.open = Some(Assignment {
            target: target.clone(),
            record,
            seq: self.assigning.count,
            unacked: view.voters.keys().cloned().collect(),
            retries,
            deadline: now + self.election_timeout_max(),
            reported: false,
        });
        if *target == self.me {
            self.finish_assignment(AssignOutcome::Done);
        }
        self.repeat_assignment();
    }

    pub(super) fn await_leader(&mut self, now: Time, view: &View, leader: &PeerId) {
        let gone = !view.voters.contains_key(leader) && self.departures.is_gone(now, leader);
        if gone || *leader == self.me {
            // It left, or may no longer lead, since the assignment began: lost before it led.
            self.lose_leader();
            self.arm_election(now, view);
            return;
        }
        let key = self.rules.record().leader_key;
        let named = self.named(leader, key, now, now + self.election_timeout_max());
        self.become_follower(Following::Awaited(named));
    }

    /// Sends the assignment to every peer that has not answered it; repeated with every heartbeat.
    pub(super) fn repeat_assignment(&mut self) {
        let Some(assignment) = &self.assigning.open else {
            return;
        };
        let message = ElectionMessage::LeaderAssign {
            record: assignment.record.clone(),
            seq: assignment.seq,
        };
        for to in assignment.unacked.clone() {
            self.send(&to, message.clone());
        }
    }

    pub(super) fn assigned(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
        seq: u64,
    ) {
        // A leader that assigns another one follows it at once, and its heartbeat may arrive first.
        let led = self.rules.record().leader.as_ref() == Some(from);
        let allowed =
            self.config.policy.authority == Authority::Anyone || led || self.leader() == Some(from);
        if allowed && !self.is_fixed() {
            self.adopt_assignment(now, view, record);
        }
        let answer = ElectionMessage::LeaderAssignAck {
            seq,
            accepted: record == self.rules.record(),
            record: self.rules.record().clone(),
        };
        self.send(from, answer);
    }

    pub(super) fn assign_answered(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        seq: u64,
        accepted: bool,
        record: &Record,
    ) {
        // The assignment had its time, and this node follows a newer record: a peer that refuses it is right.
        let passed = self.rules.record();
        self.assigning
            .open
            .take_if(|assignment| assignment.reported && *passed > assignment.record);
        let Some(assignment) = &mut self.assigning.open else {
            return;
        };
        if assignment.seq != seq {
            return;
        }
        let target = assignment.target.clone();
        if accepted {
            assignment.unacked.remove(from);
            if assignment.unacked.is_empty() && assignment.reported {
                self.assigning.open = None;
            }
            return;
        }
        let theirs = record.stamp.epoch.override_seq;
        let ours = assignment.record.stamp.epoch.override_seq;
        self.assigning.max_override_seq = self.assigning.max_override_seq.max(theirs);
        let retries = assignment.retries;
        if assignment.reported {
            // The assignment had its time. A peer that refuses (it may, under LeaderOnly) is not asked for ever.
            assignment.unacked.remove(from);
        }
        let passed = *record > assignment.record;
        // The target may have left meanwhile, or may no longer lead.
        let possible = self.check_target(view, &target).is_ok();
        if theirs > ours && retries < MAX_ASSIGN_RETRIES && possible {
            self.assigning.open = None;
            self.assign(now, view, &target, retries + 1);
        } else if passed {
            self.finish_assignment(AssignOutcome::Superseded);
            self.assigning.open = None;
            self.adopt_assignment(now, view, record);
        }
    }

    /// Follows a newer record, and waits for its leader if the leader was assigned.
    pub(super) fn adopt_assignment(&mut self, now: Time, view: &View, record: &Record) {
        if !self.rules.is_newer(record) {
            return;
        }
        let following = self.following().clone();
        self.take_over(now, view, record);
        if self.leads() {
            return;
        }
        self.become_follower(Following::None);
        self.hints.ended = Some(LeaderReason::Resigned);
        match &record.leader {
            Some(leader) if record.assigned && following.is_direct(leader) => {
                self.become_follower(following)
            }
            Some(leader) if record.assigned => self.await_leader(now, view, leader),
            _ => self.arm_election(now, view),
        }
    }

    /// Ends an assignment that this node's record has passed: it has lost.
    pub(super) fn supersede_assignment(&mut self) {
        let passed = self
            .assigning
            .open
            .as_ref()
            .is_some_and(|assignment| *self.rules.record() > assignment.record);
        if passed {
            self.finish_assignment(AssignOutcome::Superseded);
            self.assigning.open = None;
        }
    }

    pub(super) fn finish_assignment(&mut self, outcome: AssignOutcome) {
        if let Some(assignment) = &mut self.assigning.open
            && !assignment.reported
        {
            assignment.reported = true;
            let target = assignment.target.clone();
            self.outputs
                .push_back(ElectionOutput::SetLeaderResult { target, outcome });
        }
    }

    pub(super) fn enable_auto(&mut self, now: Time, view: &View, enabled: bool) {
        let waited = self.awaits_election();
        self.auto_election = enabled;
        if !enabled {
            self.abandon_round();
        } else if self.shows_no_leader(view) {
            // C4.7: the leader is lost, so the override ends. This node may still wait for a leader to which no path leads:
            // its host sees none.
            self.release();
            // A running timer goes on: repeated calls must not delay the election.
            if !waited && self.awaits_election() {
                self.arm_election(now, view);
            }
        }
    }
}
