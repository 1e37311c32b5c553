//! What the voters of a static quorum remember of each other, so that a state file that was lost, or replaced by an
//! older copy, is noticed (C2).
//!
//! Every incarnation of a voter, and every vote, raises its write counter on disk before anything is said of it. So a
//! new incarnation that shows no larger counter than an earlier one has forgotten votes. The others do not count it, and
//! tell it with every heartbeat what they remember. It votes again when it has heard all of them: a candidate's term is on
//! disk before the candidate asks, so that no term above theirs can have got its vote.

use std::collections::BTreeMap;

use super::messages::is_eligible;
use super::{ElectionError, ElectionOutput, Following, LeaderReason, Raft, View};
use crate::core::election::Election;
use crate::core::election::record::KnownVoter;
use crate::core::election::rules::Role;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::time::Time;
use crate::core::wire::Memory;

/// A voter that forgot votes, until it knows which.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stale {
    /// The largest write counter that others remember of it.
    remembered: u64,
    /// The other voters whose records it has heard since it noticed, and whether each is in the same case.
    heard: BTreeMap<PeerId, bool>,
}

impl Raft {
    /// Whether what `peer` says of elections counts here: of a static quorum only the roster's members are heard, with
    /// a dynamic one everybody.
    pub(super) fn heeds(&self, peer: &PeerId) -> bool {
        self.config.quorum.admits(peer)
    }

    /// Whether `peer` may vote and lead, as far as this node knows.
    pub(super) fn counts(&self, view: &View, peer: &PeerId) -> bool {
        is_eligible(view, peer) && self.remembers_its_votes(view, peer)
    }

    pub(super) fn remembers_its_votes(&self, view: &View, peer: &PeerId) -> bool {
        let Some(disk) = &self.disk else {
            return true;
        };
        let linked = view.voters.get(peer).map(|voter| voter.incarnation);
        disk.known(peer)
            .is_some_and(|known| Some(known.incarnation) == linked)
    }

    /// A link to a voter is up: whoever shows its key first is that voter for the session.
    pub(super) fn voter_met(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        key: Fingerprint,
        writes: u64,
    ) -> Result<(), ElectionError> {
        let Some(linked) = view.voters.get(peer).filter(|_| self.heeds(peer)) else {
            return Ok(());
        };
        if let Some(disk) = &mut self.disk
            && disk.known(peer).is_none()
        {
            let known = KnownVoter {
                key,
                incarnation: linked.incarnation,
                writes: 0,
            };
            disk.know(peer, known);
        }
        self.writes_shown(now, view, peer, writes)
    }

    /// A voter shows its write counter.
    pub(super) fn writes_shown(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        writes: u64,
    ) -> Result<(), ElectionError> {
        let linked = view.voters.get(peer).map(|voter| voter.incarnation);
        let known = self
            .disk
            .as_ref()
            .and_then(|disk| disk.known(peer))
            .copied();
        let (Some(incarnation), Some(known)) = (linked, known) else {
            return Ok(());
        };
        self.check_counter(now, writes, known.writes)?;
        if writes > known.writes
            && let Some(disk) = &mut self.disk
        {
            let known = KnownVoter {
                incarnation,
                writes,
                ..known
            };
            disk.know(peer, known);
        }
        Ok(())
    }

    /// What a voter remembers of this one, and whether it is stale itself. Its record was heard just before.
    pub(super) fn memory_told(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        memory: Memory,
    ) -> Result<(), ElectionError> {
        if !self.heeds(from) {
            return Ok(());
        }
        let Some(accounted_for) = self.disk.as_ref().map(super::Disk::accounted_for) else {
            return Ok(());
        };
        self.check_counter(now, memory.remembered, accounted_for)?;
        if memory.remembered > accounted_for {
            self.has_forgotten(now, view, memory.remembered);
        }
        if let Some(stale) = &mut self.stale {
            stale.heard.insert(from.clone(), memory.stale);
            self.recover_votes(now, view);
        }
        Ok(())
    }

    /// This node voted in terms of which its file knows nothing: it neither votes nor leads until it knows which.
    fn has_forgotten(&mut self, now: Time, view: &View, remembered: u64) {
        if self.stale.is_none() {
            let writes = self.writes();
            self.outputs
                .push_back(ElectionOutput::StaleState { remembered, writes });
        }
        let stale = self.stale.get_or_insert_default();
        stale.remembered = stale.remembered.max(remembered);
        self.forget_votes();
        if self.rules.role() != Role::Follower {
            self.follow(Following::None);
            self.hints.ended = Some(LeaderReason::Resigned);
            self.arm_election(now, view);
        }
    }

    fn recover_votes(&mut self, now: Time, view: &View) {
        let Some(stale) = self.stale.take_if(|stale| {
            let roster = self.config.quorum.roster();
            let others = roster.into_iter().flat_map(|roster| roster.voters());
            let mut others = others.filter(|voter| **voter != self.me);
            others.all(|voter| stale.heard.get(voter) == Some(&false))
        }) else {
            return;
        };
        // The votes of all terms that anybody has heard of may be given.
        self.rules.spend_vote();
        if let Some(disk) = &mut self.disk {
            disk.recover(stale.remembered);
        }
        self.arm_election(now, view);
    }
}
