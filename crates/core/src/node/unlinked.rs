//! Pairs of members without a link, because one of both has reached its `max_connections`. Their broadcasts do not
//! reach each other. Their hosts and the leader's host receive an event.

use std::collections::BTreeSet;

use super::*;
use crate::bounded::BoundedMap;
use crate::introductions::Source;

/// Most pairs that a node remembers. A room has fewer, unless a member makes them up.
const MAX_PAIRS: usize = 4096;
/// Most reports of one member that a node keeps until they count.
pub(super) const MAX_EARLY_REPORTS: usize = 64;

/// The pairs that this node knows; see the module's text.
#[derive(Debug, Default)]
pub(super) struct Unlinked {
    /// Members for which this node has no place. It dials them when it has one.
    waiting: BoundedMap<PeerId, PeerEntry, MAX_PAIRS>,
    /// Pairs that were reported to the host: a member, and the one whose limit is reached.
    reported: BoundedMap<(PeerId, PeerId), (), MAX_PAIRS>,
    /// Reports that do not count yet: they are about a peer that is entering.
    pub(super) early: BoundedMap<Report, (), MAX_PAIRS>,
}

/// A member reports that `other` has reached its limit and has no link with `peer`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Report {
    pub(super) from: PeerId,
    peer: PeerId,
    other: PeerId,
}

impl Node {
    /// Notes an introduced member for which this node has no place.
    pub(super) fn note_without_place(&mut self, entry: &PeerEntry) {
        let waiting = &mut self.unlinked.waiting;
        let is_known = waiting.contains_key(&entry.id);
        if is_known || waiting.insert(entry.id.clone(), entry.clone()).is_err() {
            return;
        }
        let me = self.me.clone();
        self.report_to_host(entry.id.clone(), me);
        self.report_unlinked(&entry.id);
    }

    fn report_to_host(&mut self, peer: PeerId, other: PeerId) -> bool {
        let (pair, reported) = ((peer.clone(), other.clone()), &mut self.unlinked.reported);
        let is_new = !reported.contains_key(&pair) && reported.insert(pair, ()).is_ok();
        if is_new {
            self.event(Event::Unlinked { peer, other });
        }
        is_new
    }

    /// Reports a pair to the leader, which passes it on: the other member has no link with this one.
    fn report_unlinked(&mut self, peer: &PeerId) {
        let leader = self.leader().filter(|leader| **leader != self.me);
        let leader = leader.filter(|leader| self.membership.elector(leader).is_some());
        if let Some(leader) = leader.cloned() {
            let (peer, other) = (peer.clone(), self.me.clone());
            self.transmit(&leader, Message::Unlinked { peer, other });
        }
    }

    /// Reports all pairs to a new leader.
    pub(super) fn report_unlinked_to_leader(&mut self) {
        for peer in self.unlinked.waiting.keys().cloned().collect::<Vec<_>>() {
            self.report_unlinked(&peer);
        }
        self.weigh_reports();
    }

    /// Handles a report that `other` has reached its limit and has no link with `peer`: `other` reports it to the leader,
    /// and the leader to `peer`.
    ///
    /// Members learn of a newcomer before the leader has a session with it, and the newcomer follows a leader later
    /// still: a report that is too early for either counts later.
    pub(super) fn unlinked_reported(&mut self, from: &PeerId, peer: PeerId, other: PeerId) {
        if *from != other && peer != self.me {
            return;
        }
        let early = &mut self.unlinked.early;
        if early.keys().filter(|report| report.from == *from).count() >= MAX_EARLY_REPORTS {
            early.retain(|report, ()| report.from != *from);
        }
        let from = from.clone();
        let _ = early.insert(Report { from, peer, other }, ()); // the pair goes unreported if the map is full
        self.weigh_reports();
    }

    /// Considers the reports again: after a report, a new link or a change of the leader.
    pub(super) fn weigh_reports(&mut self) {
        let reports = self.unlinked.early.keys();
        let counting: Vec<_> = reports
            .filter(|report| self.counts(report))
            .cloned()
            .collect();
        for report in counting {
            self.unlinked.early.remove(&report);
            let Report { peer, other, .. } = report;
            if self.report_to_host(peer.clone(), other.clone()) && peer != self.me {
                let to = peer.clone();
                self.transmit(&to, Message::Unlinked { peer, other });
            }
        }
    }

    /// Whether a report counts. A node accepts reports about itself from its leader; a leader accepts from each member
    /// reports of that member's own limit.
    fn counts(&self, report: &Report) -> bool {
        if report.peer == self.me {
            self.leader() == Some(&report.from) && self.membership.get(&report.other).is_none()
        } else {
            self.is_leader() && self.membership.get(&report.peer).is_some()
        }
    }

    /// Forgets the pairs of a member: it is linked now, or its session has ended.
    pub(super) fn forget_pairs_of(&mut self, peer: &PeerId) {
        self.unlinked.waiting.remove(peer);
        let pairs = &mut self.unlinked.reported;
        pairs.retain(|(one, other), ()| one != peer && other != peer);
        self.unlinked
            .early
            .retain(|report, ()| report.from != *peer);
    }

    /// Number of members without a link to this node, because one of both has reached its limit.
    pub fn unlinked_peers(&self) -> usize {
        self.without_link_to(&self.me).len()
    }

    fn without_link_to(&self, member: &PeerId) -> BTreeSet<PeerId> {
        let pairs = self.unlinked.reported.keys();
        let others = pairs.filter_map(|(one, other)| match member {
            _ if one == member => Some(other),
            _ if other == member => Some(one),
            _ => None,
        });
        others.cloned().collect()
    }

    /// Reports the end of a member's session, at the leader, to the members without a link to it, which do not see it.
    fn report_end_to_unlinked(&mut self, peer: &PeerId) {
        if !self.is_leader() {
            return;
        }
        for to in self.without_link_to(peer) {
            if self.membership.elector(&to).is_some() {
                let peer = peer.clone();
                self.transmit(&to, Message::UnlinkedLeft { peer });
            }
        }
    }

    /// Handles the leader's report that a member without a link to this node has left.
    pub(super) fn unlinked_left(&mut self, from: &PeerId, peer: &PeerId) {
        if self.leader() == Some(from) && self.membership.get(peer).is_none() {
            self.forget_pairs_of(peer);
        }
    }

    /// Dials waiting members after the end of a session: there is a place now.
    pub(super) fn dial_waiting_members(&mut self, now: Time, peer: &PeerId) {
        self.report_end_to_unlinked(peer);
        self.forget_pairs_of(peer);
        let room = self.membership.len() < self.config.max_connections;
        if !room || self.ended {
            return;
        }
        for entry in self.unlinked.waiting.take().into_values() {
            let keeps_out =
                self.is_kicked(&entry.id, entry.key) || self.is_banned(now, &entry.id, entry.key);
            if !keeps_out && self.id_holder(&entry.id).is_none() {
                self.introductions
                    .introduce(now, &self.me, &entry, Source::Member);
            }
        }
    }
}
