//! Messages of peers, and the checks on them.

use super::votes::Answer;
use super::{ElectionError, Raft, View};
use crate::election::raft::wire::{ElectionMessage, Side};
use crate::election::record::{Epoch, Record, Stamp};
use crate::id::{Fingerprint, PeerId};
use crate::time::Time;

/// Input from others.
impl Raft {
    /// C4.8: refuses a counter that is larger than time allows, from any sender. A counter that this node itself holds
    /// is accepted from others, too.
    pub(super) fn check_stamp(&self, now: Time, stamp: &Stamp) -> Result<(), ElectionError> {
        let own = &self.rules.record().stamp;
        let epoch = &stamp.epoch;
        if self.config.quorum.is_static() && *epoch != Epoch::default() {
            // C2: no member assigns there, so no epoch but the first is ever opened.
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
        let bound = self.clock.bound(now);
        if value > bound.max(own) {
            return Err(ElectionError::TooLarge { value, bound });
        }
        Ok(())
    }

    /// Another member's record, reduced to what this node may believe.
    pub(super) fn heed(&self, now: Time, record: &Record) -> Result<Record, ElectionError> {
        self.check_stamp(now, &record.stamp)?;
        let mut record = record.clone();
        if self.config.guards.record_order() {
            record.clear_assignment_without_assigner();
        }
        Ok(record)
    }

    /// Whether `id` is this node's or a linked peer's, but with another key.
    pub(super) fn is_namesake(&self, view: &View, id: &PeerId, key: Fingerprint) -> bool {
        let bound_to = view.bound_key((&self.me, self.key), id);
        bound_to.is_some_and(|bound_to| bound_to != key)
    }

    /// Whether the record names this node, and not another process with its id.
    pub(super) fn names_me(&self, record: &Record) -> bool {
        self.rules.names_me(record)
    }

    /// Whether the record names a leader with that peer's id, but another key than its link shows.
    pub(super) fn names_another_key(&self, view: &View, from: &PeerId, record: &Record) -> bool {
        let key = record.leader_key;
        record.leader.as_ref() == Some(from)
            && key.is_some_and(|key| self.is_namesake(view, from, key))
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
        let of_vote = matches!(message, ElectionMessage::VoteResponse { .. });
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
            ElectionMessage::VoteRequest {
                round,
                candidate,
                asked_by,
            } => {
                let from = self.sender(from, &candidate)?;
                self.answer_vote(now, view, from, round, stamp, asked_by.as_ref());
            }
            ElectionMessage::PreVoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            }
            | ElectionMessage::VoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            } => {
                let from = self.sender(from, &voter)?;
                let record = self.heed(now, &record)?;
                let answer = Answer {
                    stamp: stamp.clone(),
                    round,
                    granted,
                    record,
                    live,
                };
                if of_vote {
                    self.vote_answered(now, view, from, answer);
                } else {
                    self.pre_vote_answered(now, view, from, answer);
                }
            }
            ElectionMessage::LeaderAssign { record, seq } => {
                let record = self.heed(now, &record)?;
                let ordered = self.config.guards.record_order();
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
                // A follower reports no side whose leader is a namesake to it. If the leader is one to this node, this
                // node compares.
                let is_namesake = self.namesake(view, &theirs).is_some();
                self.heed_side(now, &mut ours)?;
                self.heed_side(now, &mut theirs)?;
                // Linked leaders have compared their own Hellos. A follower's report on them is older.
                let compared = theirs.live.as_ref().is_some_and(|live| {
                    let linked = view.voters.get(&live.id);
                    linked.is_some_and(|voter| voter.incarnation == live.incarnation)
                });
                if self.leads() && !compared && !is_namesake && !self.config.quorum.is_static() {
                    let ours = self.own_side_since(now, view, ours);
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
        }
        Ok(())
    }

    /// G16: the sender of a message that names it.
    pub(super) fn sender<'a>(
        &self,
        from: &'a PeerId,
        named: &'a PeerId,
    ) -> Result<&'a PeerId, ElectionError> {
        if from == named || !self.config.guards.authenticated_names() {
            Ok(named)
        } else {
            Err(ElectionError::Violation(
                "an election message names another peer than its sender",
            ))
        }
    }
}
