//! Leadership transfers: `mmn_transfer_leadership`, `mmn_yield_leadership`, and the successor of a leaving leader.

use super::following::Following;
use super::round_trips::slowest_rtt;
use super::timers::relayed_of;
use super::{AssignOutcome, ElectionError, ElectionOutput, Raft, Role, SUCCESSION_GRACE, View};
use crate::election::policy::Authority;
use crate::election::raft::wire::ElectionMessage;
use crate::election::record::{Record, Stamp};
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// An open transfer that the leader's host asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) target: PeerId,
    /// The time at which the transfer has failed, and this node leads on as before.
    pub(super) until: Time,
    /// The term in which the target was asked, and the time until which its campaign is tolerated.
    asked: Option<(Stamp, Time)>,
}

/// Transfers known to this node, by itself and by others.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    successor: Option<Successor>,
    pub(super) early_request: Option<EarlyRequest>,
    request: Option<TransferRequest>,
    /// Counts the requests.
    requests: u64,
}

impl Transfers {
    /// The time at which the host is notified that its request's target did not become leader.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.request.as_ref().map(|request| request.deadline)
    }
}

/// The successor that the last leader named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Successor {
    peer: PeerId,
    until: Time,
}

/// A vote request that names the leader as its cause, received before the leader's own message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EarlyRequest {
    pub(super) candidate: PeerId,
    pub(super) round: u64,
    pub(super) stamp: Stamp,
    pub(super) asked_by: PeerId,
}

/// A `SetLeader` of this host under a static quorum: it asked the leader for a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TransferRequest {
    target: PeerId,
    seq: u64,
    /// The leader that was asked.
    leader: PeerId,
    /// The target must lead in a later term than this.
    term: u64,
    deadline: Time,
}

/// `SetLeader` under a static quorum: votes alone make a leader, so it is a transfer by the present leader (C2).
impl Raft {
    pub(super) fn request_transfer(
        &mut self,
        now: Time,
        view: &View,
        target: &PeerId,
    ) -> Result<(), ElectionError> {
        let leads = self.leads();
        let leader = match self.following() {
            _ if leads => self.me.clone(),
            _ if self.config.policy.authority == Authority::LeaderOnly => {
                return Err(ElectionError::NotLeader);
            }
            Following::Direct(direct) => direct.leader.clone(),
            _ => return Err(ElectionError::NoLeader),
        };
        if leads {
            self.transfer_to(now, view, target)?;
        }
        self.finish_request(AssignOutcome::Superseded);
        self.transfers.requests += 1;
        let seq = self.transfers.requests;
        self.transfers.request = Some(TransferRequest {
            target: target.clone(),
            seq,
            leader: leader.clone(),
            term: self.rules.record().term(),
            deadline: now + self.election_timeout_max(),
        });
        if leader == *target {
            self.finish_request(AssignOutcome::Done);
        }
        if !leads {
            let target = target.clone();
            self.send(&leader, ElectionMessage::TransferRequest { seq, target });
        }
        Ok(())
    }

    /// The leader names itself to end an open transfer.
    fn transfer_to(
        &mut self,
        now: Time,
        view: &View,
        target: &PeerId,
    ) -> Result<(), ElectionError> {
        if *target == self.me {
            self.end_transfer(|_| true);
            return Ok(());
        }
        self.transfer(now, view, Some(target.clone()))
    }

    pub(super) fn transfer_requested(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        seq: u64,
        target: &PeerId,
    ) {
        let obeys =
            self.config.quorum.is_static() && self.config.policy.authority == Authority::Anyone;
        let leads = self.leads();
        if !obeys || !leads || self.transfer_to(now, view, target).is_err() {
            self.send(from, ElectionMessage::TransferRefused { seq });
        }
    }

    pub(super) fn transfer_refused(&mut self, from: &PeerId, seq: u64) {
        let open = self.transfers.request.as_ref();
        if open.is_some_and(|request| request.seq == seq && request.leader == *from) {
            self.finish_request(AssignOutcome::Rejected);
        }
    }

    /// Ends the open request if its target leads now, or its time is over.
    pub(super) fn end_request(&mut self, now: Time) {
        let Some(request) = &self.transfers.request else {
            return;
        };
        let later = self.rules.record().term() > request.term;
        if later && self.leader() == Some(&request.target) {
            self.finish_request(AssignOutcome::Done);
        } else if now >= request.deadline {
            self.finish_request(AssignOutcome::Timeout);
        }
    }

    /// Ends the request and drops its messages that wait for the disk.
    fn finish_request(&mut self, outcome: AssignOutcome) {
        if let Some(TransferRequest { target, .. }) = self.transfers.request.take() {
            self.take_back(|_, message| matches!(message, ElectionMessage::TransferRequest { .. }));
            self.outputs
                .push_back(ElectionOutput::SetLeaderResult { target, outcome });
        }
    }
}

impl Raft {
    pub(super) fn transfer(
        &mut self,
        now: Time,
        view: &View,
        target: Option<PeerId>,
    ) -> Result<(), ElectionError> {
        let until = now + self.election_timeout_max();
        let target = target.or_else(|| self.best_ranked(view));
        let remembers = |voter: &PeerId| self.remembers_its_votes(view, voter);
        let stands = target.as_ref().is_none_or(remembers);
        let Role::Leader(leader) = &mut self.role else {
            return Err(ElectionError::NotLeader);
        };
        let target = target.ok_or(ElectionError::NoSuccessor)?;
        if target == self.me {
            self.end_transfer(|_| true); // as in etcd
            return Ok(());
        }
        match view.voters.get(&target) {
            None => return Err(ElectionError::UnknownTarget(target)),
            Some(voter) if !voter.eligible => {
                return Err(ElectionError::IneligibleTarget(target));
            }
            Some(_) if !stands => return Err(ElectionError::StaleTarget(target)),
            Some(_) => {}
        }
        if !leader.transfers_to(&target) {
            leader.pending_transfer = Some(Transfer {
                target: target.clone(),
                until,
                asked: None,
            });
            self.expect_successor(now, &target);
            self.ask_target(now, view);
        }
        Ok(())
    }

    /// Asks the target, once in each term: a leader that campaigns in place has no record to transfer.
    pub(super) fn ask_target(&mut self, now: Time, view: &View) {
        let campaigns = self.rules.campaigning();
        let stamp = &self.rules.record().stamp;
        let pending = self
            .leading()
            .and_then(|leader| leader.pending_transfer.as_ref());
        let Some(transfer) = pending.filter(|_| !campaigns) else {
            return;
        };
        let asked = transfer.asked.as_ref();
        if asked.is_some_and(|(asked_in, _)| asked_in == stamp) {
            return;
        }
        let target = transfer.target.clone();
        let asked = (stamp.clone(), now + self.transfer_timeout(view));
        let leader = self.leading_mut();
        if let Some(transfer) = leader.and_then(|leader| leader.pending_transfer.as_mut()) {
            transfer.asked = Some(asked);
        }
        for to in view.voters.keys() {
            let target = target.clone();
            self.send(to, ElectionMessage::TimeoutNow { target });
        }
    }

    /// The voter that goes first when this leader is gone: the highest priority, then the largest id, of the voters
    /// that can be elected.
    pub(super) fn best_ranked(&self, view: &View) -> Option<PeerId> {
        view.eligible()
            .filter(|(id, _)| self.heeds(id) && self.remembers_its_votes(view, id))
            .max_by_key(|(id, voter)| (voter.priority, relayed_of(view, id), *id))
            .map(|(id, _)| id.clone())
    }

    /// The open transfer that this leader's host asked for.
    fn pending_transfer(&self) -> Option<&Transfer> {
        self.leading()?.pending_transfer.as_ref()
    }

    /// Whether `record` belongs to the campaign that this leader asked for: followers' reports of that are no reason to
    /// go above it.
    pub(super) fn tolerates(&self, now: Time, record: &Record) -> bool {
        self.pending_transfer().is_some_and(|transfer| {
            let Some((stamp, until)) = &transfer.asked else {
                return false;
            };
            let next = record.stamp.epoch == stamp.epoch
                && record.stamp.term == stamp.term.saturating_add(1);
            let its = record.leader.as_ref();
            next && its.is_none_or(|leader| *leader == transfer.target) && now < *until
        })
    }

    /// Whether the campaign that this leader asked for goes above `record`: one in place for the same term would split the
    /// votes with it.
    pub(super) fn leaves_to_target(&self, now: Time, record: &Record) -> bool {
        let asked = self
            .pending_transfer()
            .and_then(|transfer| transfer.asked.as_ref());
        asked.is_some_and(|(stamp, until)| record.stamp <= *stamp && now < *until)
    }

    /// A campaign that the leader asked for has no rival, so fast repetition would not help. A term that was begun is
    /// won by waiting for the votes.
    pub(super) fn transfer_timeout(&self, view: &View) -> Duration {
        (slowest_rtt(view) * 4).max(self.election_timeout_min() / 2)
    }

    /// Asks the target again with every heartbeat: it may not have heard this leader directly before.
    pub(super) fn repeat_transfer(&mut self) {
        let target = self
            .pending_transfer()
            .map(|transfer| transfer.target.clone());
        if let Some(target) = target
            && !self.rules.campaigning()
        {
            self.send(&target.clone(), ElectionMessage::TimeoutNow { target });
        }
    }

    /// Ends the transfer: its target is gone or had its time, or the leader's host cancels it.
    pub(super) fn end_transfer(&mut self, ended: impl Fn(&Transfer) -> bool) {
        let leader = self.leading_mut();
        if leader.is_some_and(|leader| {
            leader
                .pending_transfer
                .take_if(|transfer| ended(transfer))
                .is_some()
        }) {
            self.take_back(|_, message| matches!(message, ElectionMessage::TimeoutNow { .. }));
        }
    }

    /// The leader transfers its leadership. Only a message from the leader whose heartbeats arrive here counts, and only
    /// under the record that both follow. The target's vote request may arrive first.
    pub(super) fn timeout_now(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        stamp: &Stamp,
        target: &PeerId,
    ) {
        let record = self.rules.record();
        let leads = record.stamp == *stamp && record.leader.as_ref() == Some(from);
        let led = record.stamp.epoch == stamp.epoch
            && record.stamp.term == stamp.term.saturating_add(1)
            && record.leader.is_none()
            && *target != self.me;
        if !(leads || led) || !self.following().is_direct(from) {
            return;
        }
        self.expect_successor(now, target);
        if *target != self.me {
            self.answer_early_request(now, view);
            return;
        }
        if self.config.eligible && !self.leaving && self.can_win(view) && self.may_stand(now) {
            self.campaign(now, view, Some(from));
            if matches!(self.role, Role::Candidate(_)) {
                // It leads until this campaign is won.
                let vouched_until = now + self.config.heartbeat_timeout;
                let until = now + self.election_timeout_max();
                let named = self.named(from, None, vouched_until, until);
                self.show(named);
            }
        }
    }

    /// The leader has named its successor: by [`ElectionMessage::TimeoutNow`], or when it left.
    pub(super) fn expect_successor(&mut self, now: Time, peer: &PeerId) {
        self.transfers.successor = Some(Successor {
            peer: peer.clone(),
            until: now + self.election_timeout_max(),
        });
    }

    pub(super) fn is_successor(&self, now: Time, peer: &PeerId) -> bool {
        self.transfers
            .successor
            .as_ref()
            .is_some_and(|successor| successor.peer == *peer && now < successor.until)
    }

    /// The time for which this node leaves the successor of `leader` alone after `leader` yielded to it (G1): its votes
    /// and its first heartbeat are on their way.
    pub(super) fn successor_wait(&self, now: Time, view: &View, leader: &PeerId) -> Duration {
        let named = self
            .transfers
            .successor
            .as_ref()
            .filter(|successor| now < successor.until);
        let another =
            |successor: &Successor| successor.peer != self.me && successor.peer != *leader;
        if named.is_some_and(another) {
            SUCCESSION_GRACE.max(slowest_rtt(view))
        } else {
            Duration::ZERO
        }
    }

    /// Whether `candidate`, which claims that `leader` asked it to campaign, takes over the leadership that this node
    /// follows. A leader knows its own target. Others believe a member, except where only the leader may name a leader,
    /// or the quorum is static: there the leader must have named the candidate itself. Of a leader of another side no
    /// member's report counts: its side merges as any other (C5).
    pub(super) fn is_handed_over(&self, now: Time, leader: &PeerId, candidate: &PeerId) -> bool {
        match self.leading() {
            Some(_) => self
                .pending_transfer()
                .is_some_and(|transfer| transfer.target == *candidate && now < transfer.until),
            None if self.config.policy.authority == Authority::Anyone
                && !self.config.quorum.is_static() =>
            {
                let own = self.role.shown();
                own.is_none_or(|own| own == leader)
            }
            None => self.is_successor(now, candidate),
        }
    }

    /// The successor's vote request arrived before the leader's message: it is answered now.
    pub(super) fn answer_early_request(&mut self, now: Time, view: &View) {
        if let Some(early) = self.transfers.early_request.take()
            && self.is_successor(now, &early.candidate)
            && self.counts(view, &early.candidate)
        {
            let (from, asked_by) = (&early.candidate, Some(&early.asked_by));
            self.answer_vote(now, view, from, early.round, &early.stamp, asked_by);
        }
    }
}
