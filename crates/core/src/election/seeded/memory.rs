//! The voters' memory of each other: it detects a state file that was lost, or replaced by an older copy.
//!
//! A voter's write counter rises on disk with each of its incarnations, and with each vote before the vote is sent. So
//! an incarnation that begins at no larger counter than an earlier one showed has forgotten votes. The other voters do
//! not count it, and report to it with every heartbeat what they remember. It votes again when each of them has
//! reported its own votes: a proposer promises its own ballot, and accepts the candidate that it proposes, on disk
//! before it asks for votes. So the highest ballots of all others are at least as high as those of every forgotten vote
//! ([`Acceptor::recover`]).

use std::collections::{BTreeMap, BTreeSet};

use super::paxos::Acceptor;
use super::wire::{Beat, Memory};
use super::{LeaderReason, Seeded, View};
use crate::election::Extra;
use crate::election::known::KnownVoter;
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::time::Time;

/// A voter's knowledge of state files, its own and others'.
#[derive(Debug)]
pub(super) struct Memories {
    /// This node knows all votes that it gave since this write counter.
    since: u64,
    /// The reported votes of the others, since this node noticed that it may have forgotten votes.
    stale: Option<BTreeMap<PeerId, Acceptor>>,
    /// The voters that have reported to this incarnation what they remember.
    reported_by: BTreeSet<PeerId>,
    /// The voters that report that they may have forgotten votes.
    forgetful: BTreeSet<PeerId>,
}

impl Memories {
    /// Starts an incarnation whose file has this write counter.
    pub(super) fn new(writes: u64, forgotten: Option<u64>) -> Self {
        Self {
            since: writes,
            stale: forgotten.map(|_| BTreeMap::new()),
            reported_by: BTreeSet::new(),
            forgetful: BTreeSet::new(),
        }
    }
}

impl Seeded {
    /// Whether this node's state file was lost or is an older copy, and not all other voters have reported since it
    /// noticed.
    pub fn is_stale(&self) -> bool {
        self.memories.stale.is_some()
    }

    /// A link to a voter is up. The first key that it shows is its key for the session.
    pub(super) fn register_voter(&mut self, view: &View, peer: &PeerId, key: Fingerprint) {
        let Some(linked) = view.voters.get(peer).filter(|_| self.is_voter(peer)) else {
            return;
        };
        let known = KnownVoter::new(key, linked.incarnation);
        self.kept.others.entry(peer.clone()).or_insert(known);
    }

    fn linked_and_known(&self, view: &View, peer: &PeerId) -> Option<(Incarnation, KnownVoter)> {
        let linked = view.voters.get(peer)?.incarnation;
        Some((linked, *self.kept.others.get(peer)?))
    }

    /// Whether votes of `peer` count: it knows all votes of its earlier incarnations, as far as this node knows.
    pub(super) fn remembers_its_votes(&self, view: &View, peer: &PeerId) -> bool {
        let known = self.linked_and_known(view, peer);
        known.is_some_and(|(linked, known)| linked == known.incarnation)
            && !self.memories.forgetful.contains(peer)
    }

    /// A voter shows its write counter. A counter of an incarnation that forgot votes means nothing.
    pub(super) fn writes_shown(&mut self, view: &View, peer: &PeerId, writes: u64) {
        if let Some((linked, known)) = self.linked_and_known(view, peer)
            && known.learns(linked, writes)
        {
            self.know(peer, linked, writes);
        }
    }

    fn know(&mut self, peer: &PeerId, incarnation: Incarnation, writes: u64) {
        // A member that is not in the roster counts no votes.
        let counts_votes = self.is_voter(&self.me);
        if let Some(known) = self.kept.others.get_mut(peer).filter(|_| counts_votes) {
            known.incarnation = incarnation;
            known.writes = writes;
        }
    }

    /// The write counter since which this node knows its votes; 0 while it may have forgotten some, or while a restart
    /// could make it forget that it has recovered them.
    pub(super) fn knows_votes_since(&self) -> u64 {
        let safe = self.disk.safe().writes >= self.memories.since;
        if self.is_stale() || !safe {
            0
        } else {
            self.memories.since
        }
    }

    /// The report for a voter in a heartbeat.
    pub(super) fn memory_of_voter(&self, view: &View, peer: &PeerId) -> Option<Memory> {
        if !self.is_voter(&self.me) || !self.is_voter(peer) {
            return None;
        }
        let (linked, known) = self.linked_and_known(view, peer)?;
        let needs_votes = !self.remembers_its_votes(view, peer);
        Some(Memory {
            remembered: known.remembered_of(linked),
            sure: self.is_sure_of_its_votes(),
            votes: needs_votes.then(|| self.disk.safe().acceptor.clone()),
        })
    }

    /// Whether all other voters have reported what they remember, and this node knew all of it. A voter that lost its
    /// file and has not received a report is not sure; another voter in that state must not rely on it.
    fn is_sure_of_its_votes(&self) -> bool {
        let reported = |voter: &PeerId| self.memories.reported_by.contains(voter);
        !self.is_stale() && self.other_voters().all(reported)
    }

    fn other_voters(&self) -> impl Iterator<Item = &PeerId> {
        let voters = self.config.roster.voters();
        voters.filter(|voter| **voter != self.me)
    }

    /// A voter's heartbeat or Hello reports on state files.
    pub(super) fn receive_beat_memory(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        beat: &Beat,
    ) {
        let Some((linked, known)) = self.linked_and_known(view, from) else {
            return;
        };
        if beat.since == 0 {
            self.memories.forgetful.insert(from.clone());
        } else {
            self.memories.forgetful.remove(from);
        }
        if known.is_succeeded_by(linked, beat.since) {
            self.know(from, linked, beat.since);
        }
        self.writes_shown(view, from, beat.writes);
        let Some(memory) = beat.memory.as_ref().filter(|_| self.is_voter(&self.me)) else {
            return;
        };
        if memory.remembered >= self.memories.since {
            self.has_forgotten(now, memory.remembered);
        }
        self.memories.reported_by.insert(from.clone());
        if let Some(reported) = &mut self.memories.stale {
            match memory.votes.as_ref().filter(|_| memory.sure) {
                Some(votes) => reported.insert(from.clone(), votes.clone()),
                None => reported.remove(from),
            };
            self.recover_votes();
        }
    }

    /// Others know of votes that this node does not. Until it knows them again, it neither votes nor campaigns; a
    /// leadership of it that depends on votes ends.
    fn has_forgotten(&mut self, now: Time, remembered: u64) {
        self.kept.forgotten = self.kept.forgotten.max(Some(remembered));
        if self.is_stale() {
            return;
        }
        let since = self.memories.since;
        self.outputs
            .push(Extra::StaleState { remembered, since }.into());
        self.memories.stale = Some(BTreeMap::new());
        self.disk.forget_votes();
        self.campaign = None;
        self.led_up_to = self.led_up_to.max(self.decided());
        // It has forgotten its acknowledgements, too.
        self.kept.acknowledged = None;
        self.grace_until = self.grace_until.max(now + self.intervals().ttl());
        if self.leading().is_some() {
            self.led_at = now;
            self.become_follower(None, LeaderReason::Resigned);
        }
    }

    fn recover_votes(&mut self) {
        let Some(reported) = &self.memories.stale else {
            return;
        };
        if !self
            .other_voters()
            .all(|voter| reported.contains_key(voter))
        {
            return;
        }
        let reported = self.memories.stale.take().unwrap_or_default();
        self.kept.acceptor.recover(reported.values());
        let remembered = self.kept.forgotten.take().unwrap_or_default();
        self.kept.writes = self.kept.writes.max(remembered).saturating_add(1);
        self.memories.since = self.kept.writes;
    }
}
