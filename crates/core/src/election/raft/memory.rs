//! The voters' memory of each other in a static quorum: it detects a state file that was lost, or replaced by an older
//! copy (C2).
//!
//! Every incarnation of a voter, and every vote, raises its write counter on disk before any message shows it. So a new
//! incarnation that begins at no larger counter than an earlier one showed has forgotten votes. The other voters do not
//! count it, and report to it with every heartbeat what they remember. It votes again when it has heard all of them: a
//! candidate's term is on disk before the candidate asks, so no term above theirs can have got its vote.

use std::collections::BTreeMap;

use super::durable::Disk;
use super::following::Following;
use super::{ElectionError, Extra, LeaderReason, Raft, View};
use crate::election::raft::saved::KnownVoter;
use crate::election::raft::wire::Memory;
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::quorum::Roster;
use crate::time::Time;

/// A voter that may have forgotten votes, until it cannot give them again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stale {
    /// The other voters whose records it has received since it noticed, and whether each was sure of its own votes.
    reports: BTreeMap<PeerId, bool>,
}

impl Raft {
    /// Whether election messages of `peer` count here: with a static quorum only those of the roster's members, with a
    /// dynamic one all of them.
    pub(super) fn heeds(&self, peer: &PeerId) -> bool {
        self.config.quorum.admits(peer)
    }

    /// Whether `peer` may vote and lead, as far as this node knows.
    pub(super) fn counts(&self, view: &View, peer: &PeerId) -> bool {
        view.is_eligible(peer) && self.remembers_its_votes(view, peer)
    }

    pub(super) fn remembers_its_votes(&self, view: &View, peer: &PeerId) -> bool {
        // A member that is not in the roster counts no votes, and voters report nothing of theirs to it.
        let counts_votes = self.config.quorum.admits(&self.me);
        let Some(disk) = self.disk.as_ref().filter(|_| counts_votes) else {
            return true;
        };
        let linked = view.voters.get(peer).map(|voter| voter.incarnation);
        let known = disk.known(peer);
        known.is_none_or(|known| Some(known.incarnation) == linked)
            && !self.forgetful.contains(peer)
    }

    /// A link to a voter is up. The first key that it shows is its key for the session.
    pub(super) fn register_voter(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        key: Fingerprint,
        since: u64,
    ) -> Result<(), ElectionError> {
        let Some(linked) = view.voters.get(peer).filter(|_| self.heeds(peer)) else {
            return Ok(());
        };
        if let Some(disk) = &mut self.disk
            && disk.known(peer).is_none()
        {
            disk.know(peer, KnownVoter::new(key, linked.incarnation));
        }
        self.knows_its_votes_since(now, view, peer, since)
    }

    /// A voter shows the write counter since which it knows its votes. An incarnation that knows all votes of the one
    /// before it succeeds it.
    fn knows_its_votes_since(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        since: u64,
    ) -> Result<(), ElectionError> {
        let Some((incarnation, known)) = self.linked_and_known(view, peer) else {
            return Ok(());
        };
        self.check_counter(now, since, known.writes)?;
        if since == 0 {
            self.forgetful.insert(peer.clone());
            self.end_transfer(|transfer| transfer.target == *peer);
        } else {
            self.forgetful.remove(peer);
        }
        if known.is_succeeded_by(incarnation, since) {
            self.know(peer, incarnation, since);
        }
        Ok(())
    }

    /// A voter shows its write counter. A counter of an incarnation that forgot votes means nothing.
    pub(super) fn writes_shown(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        writes: u64,
    ) -> Result<(), ElectionError> {
        let Some((incarnation, known)) = self.linked_and_known(view, peer) else {
            return Ok(());
        };
        self.check_counter(now, writes, known.writes)?;
        if known.learns(incarnation, writes) {
            self.know(peer, incarnation, writes);
        }
        Ok(())
    }

    fn linked_and_known(&self, view: &View, peer: &PeerId) -> Option<(Incarnation, KnownVoter)> {
        let linked = view.voters.get(peer)?.incarnation;
        Some((linked, *self.disk.as_ref()?.known(peer)?))
    }

    fn know(&mut self, peer: &PeerId, incarnation: Incarnation, writes: u64) {
        if let Some(disk) = &mut self.disk
            && let Some(known) = disk.known(peer).copied()
        {
            let known = KnownVoter {
                incarnation,
                writes,
                ..known
            };
            disk.know(peer, known);
        }
    }

    pub(super) fn memory_of_voter(&self, view: &View, peer: &PeerId) -> Option<Memory> {
        let disk = self.disk.as_ref()?;
        let (incarnation, known) = self.linked_and_known(view, peer)?;
        Some(Memory {
            since: self.knows_votes_since(disk),
            remembered: known.remembered_of(incarnation),
            sure: self.is_sure_of_its_votes(),
        })
    }

    /// The value that others receive as [`Memory::since`].
    pub(super) fn knows_votes_since(&self, disk: &Disk) -> u64 {
        if self.is_stale() { 0 } else { disk.since() }
    }

    /// A voter's heartbeat reports on state files. Its record was handled just before.
    pub(super) fn receive_memory(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        memory: Memory,
    ) -> Result<(), ElectionError> {
        if !self.heeds(from) {
            return Ok(());
        }
        self.knows_its_votes_since(now, view, from, memory.since)?;
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let knows = disk.knows_votes_of(memory.remembered);
        self.check_counter(now, memory.remembered, disk.since())?;
        if !knows {
            self.has_forgotten(now, view, memory.remembered);
        }
        self.reported_by.insert(from.clone());
        if let Some(stale) = &mut self.stale {
            stale.reports.insert(from.clone(), memory.sure);
            self.recover_votes(now, view);
        }
        Ok(())
    }

    /// Whether all other voters have reported what they remember, and this node knew all of it. A voter that lost its
    /// file and has not received a report is not sure; another voter in that state must not rely on it.
    fn is_sure_of_its_votes(&self) -> bool {
        self.stale.is_none()
            && self
                .other_voters()
                .all(|voter| self.reported_by.contains(voter))
    }

    fn other_voters(&self) -> impl Iterator<Item = &PeerId> {
        let voters = self
            .config
            .quorum
            .roster()
            .into_iter()
            .flat_map(Roster::voters);
        voters.filter(|voter| **voter != self.me)
    }

    /// This node voted in terms that its file does not have: it neither votes nor leads until it knows them.
    fn has_forgotten(&mut self, now: Time, view: &View, remembered: u64) {
        if self.stale.is_none() {
            let since = self.disk.as_ref().map_or(0, Disk::since);
            self.outputs
                .push_back(Extra::StaleState { remembered, since }.into());
        }
        self.stale.get_or_insert_default();
        if let Some(disk) = &mut self.disk {
            disk.forget(remembered);
        }
        self.forget_votes();
        if !self.follows() {
            self.become_follower(Following::None);
            self.hints.ended = Some(LeaderReason::Resigned);
            self.arm_election(now, view);
        }
    }

    fn recover_votes(&mut self, now: Time, view: &View) {
        let knows_all = |stale: &Stale| {
            let mut others = self.other_voters();
            others.all(|voter| stale.reports.get(voter) == Some(&true))
        };
        if !self.stale.as_ref().is_some_and(knows_all) {
            return;
        }
        self.stale = None;
        // The votes of all terms that any voter knows of may be given.
        self.rules.spend_vote();
        if let Some(disk) = &mut self.disk {
            disk.recover();
        }
        self.arm_election(now, view);
    }
}
