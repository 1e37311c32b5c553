//! Carriers: the members that forward the packets of links between members without a direct path.
//!
//! Each end of a carried link chooses the member that carries its own packets: the leader, if it has direct links with
//! both ends, otherwise a member that introduced the other end, and so has a link with it. A member that does not carry
//! reports so, and the end chooses another one. Nothing that arrives over a carried link changes the choice.

use super::*;
use crate::bounded::BoundedMap;
use crate::introductions::{Dial, Ways};
use crate::path::LinkPath;
use crate::virtual_address::{VirtualId, virtual_id};

/// Most carriers of one dial.
const MAX_CARRIERS: usize = 3;
/// Time for which a member is not asked again to carry packets that it did not carry.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Time for which a member does not carry a link again that fell silent through it.
const SILENT_FOR: Duration = Duration::from_secs(3);
/// Time for which a member has to lead before it takes over links from a carrier that works.
const LEADS_FOR: Duration = Duration::from_secs(2);
/// Most notes about members that do not carry.
const MAX_NOTES: usize = 512;

/// Members that do not carry packets to a member, and until when they are not asked again.
#[derive(Debug, Default)]
pub(super) struct Refusals(BoundedMap<(PeerId, VirtualId), Time, MAX_NOTES>);

impl Refusals {
    fn note(&mut self, carrier: &PeerId, target: VirtualId, until: Time) {
        let key = (carrier.clone(), target);
        self.0.insert_over(key, until, |_, until| *until);
    }

    fn forget(&mut self, carrier: &PeerId, target: VirtualId) {
        self.0.remove(&(carrier.clone(), target));
    }

    fn refuses(&self, now: Time, carrier: &PeerId, target: VirtualId) -> bool {
        let until = self.0.get(&(carrier.clone(), target));
        until.is_some_and(|until| now < *until)
    }
}

impl Node {
    /// The dials that are due.
    pub(super) fn dials_due(&mut self, now: Time) -> Vec<Dial> {
        let waiting = self.introductions.waiting(now);
        let ways: BTreeMap<_, _> = waiting
            .into_iter()
            .map(|(peer, key)| {
                let ways = self.ways(now, &peer, key);
                (peer, ways)
            })
            .collect();
        self.introductions.due(now, |peer| ways.get(peer).cloned())
    }

    /// The ways to reach a peer at `now`.
    fn ways(&self, now: Time, peer: &PeerId, key: Fingerprint) -> Ways {
        let is_guest = self.is_star() && !self.is_host();
        let is_lost_host = || self.absent.get(peer).is_some_and(|absent| absent.is_host);
        Ways {
            direct: !is_guest || is_lost_host(),
            carriers: self.carriers_to(now, peer, key),
        }
    }

    /// The members that may carry packets to the holder of a key, the best first.
    fn carriers_to(&self, now: Time, peer: &PeerId, key: Fingerprint) -> Vec<PeerId> {
        let target = virtual_id(key);
        let leader = self.leader();
        let may_carry = |id: &PeerId, member: &Member| {
            // A leader that does not reach the peer reports so, or is one that knows no other carriers.
            let is_able = leader == Some(id) || member.carries_to(target);
            is_able
                && id != peer
                && member.path.is_direct()
                && !self.carrying.refuses(now, id, target)
        };
        let members = self.membership.iter();
        let mut able: Vec<_> = members
            .filter(|(id, member)| may_carry(id, member))
            .collect();
        able.sort_by_key(|(id, member)| {
            let rtt = member.rtt.smoothed().unwrap_or(Duration::MAX);
            (leader != Some(*id), rtt, *id)
        });
        let best = able.into_iter().take(MAX_CARRIERS);
        best.map(|(id, _)| id.clone()).collect()
    }

    /// Has carriers chosen anew if time alone may change the choice: a leader has led for long enough, or a member that did
    /// not carry may do so again.
    pub(super) fn consider_carriers(&mut self, now: Time) {
        let since = self.merging.leader_changed_at;
        let is_new = since.is_some_and(|at| now.since(at) < LEADS_FOR * 2);
        let mut members = self.membership.iter();
        let lacks_one = |member: &Member| !member.path.is_direct() && member.carrier.is_none();
        self.paths_changed |= is_new || members.any(|(_, member)| lacks_one(member));
    }

    /// Chooses carriers anew for the links whose carrier does not carry any more, and for links that the leader can carry.
    pub(super) fn choose_carriers(&mut self, now: Time) {
        if !std::mem::take(&mut self.paths_changed) {
            return;
        }
        let mut moved = Vec::new();
        for (peer, member) in self.membership.iter().filter(|(_, m)| !m.path.is_direct()) {
            let target = virtual_id(member.key);
            let best = self.carriers_to(now, peer, member.key).into_iter().next();
            let works = |carrier: &PeerId| {
                let direct = self.membership.direct(carrier);
                direct.is_some() && !self.carrying.refuses(now, carrier, target)
            };
            let present = member.carrier.as_ref().filter(|carrier| works(carrier));
            let chosen = match (present, best) {
                (Some(present), Some(best)) if *present != best => {
                    let leader = self.membership.get(&best);
                    let leader = leader.filter(|_| self.leader() == Some(&best));
                    let since = self.merging.leader_changed_at;
                    let has_settled = since.is_none_or(|at| now.since(at) >= LEADS_FOR);
                    // A peer that knows no other carriers takes packets from the leader alone.
                    let is_better = leader.is_some_and(|leader| {
                        (leader.carries_to(target) && has_settled) || !member.knows_paths()
                    });
                    match is_better {
                        true => Some(best),
                        false => Some(present.clone()),
                    }
                }
                (Some(present), _) => Some(present.clone()),
                (None, best) => best,
            };
            if chosen != member.carrier {
                moved.push((peer.clone(), chosen));
            }
        }
        for (peer, carrier) in moved {
            if let Some(member) = self.membership.get_mut(&peer) {
                member.carrier.clone_from(&carrier);
            }
            self.outputs.push_back(Output::Carrier { peer, carrier });
        }
        self.report_paths();
    }

    /// How a linked peer is reached. A carried link whose carrier is gone keeps its last path until it ends.
    pub fn path_to(&self, peer: &PeerId) -> Option<LinkPath> {
        let member = self.membership.get(peer)?;
        if member.path.is_direct() {
            return Some(LinkPath::Direct);
        }
        let carrier = match (&member.carrier, &member.shown_path) {
            (Some(carrier), _) => carrier.clone(),
            (None, Some(shown)) => return Some(shown.clone()),
            (None, None) => return None,
        };
        Some(match self.leader() == Some(&carrier) {
            true => LinkPath::Leader(carrier),
            false => LinkPath::Member(carrier),
        })
    }

    /// Notifies the host of each linked peer whose path is another one now.
    fn report_paths(&mut self) {
        for peer in self.membership.ids() {
            let new = self.path_to(&peer);
            let Some(member) = self.membership.get_mut(&peer) else {
                continue;
            };
            if new.is_none() || member.shown_path == new {
                continue;
            }
            let old = std::mem::replace(&mut member.shown_path, new.clone());
            if let (Some(old), Some(new)) = (old, new) {
                self.event(Event::PathChanged { peer, old, new });
            }
        }
    }

    /// Notes that a member introduced another one, and so has a link with it.
    pub(super) fn note_reached(&mut self, by: &PeerId, key: Fingerprint) {
        let Some(member) = self.membership.get_mut(by) else {
            return;
        };
        let target = virtual_id(key);
        if member.reaches.contains_key(&target) {
            return;
        }
        // A member that reaches more is not asked to carry to the others.
        let _ = member.reaches.insert(target, ());
        self.paths_changed = true;
    }

    /// Handles a carrier's report that it does not carry packets to a member.
    pub(super) fn not_carried(&mut self, now: Time, by: &PeerId, target: VirtualId) {
        if let Some(member) = self.membership.get_mut(by) {
            member.reaches.remove(&target);
        }
        self.carrying.note(by, target, now + REFUSED_FOR);
        self.paths_changed = true;
    }

    /// Notes that a carried link has come up: its carrier forwards both ways.
    pub(super) fn is_carried_by(&mut self, link: &LinkUp) {
        if let Some(carrier) = &link.carrier {
            self.carrying.forget(carrier, virtual_id(link.key));
        }
    }

    /// Reports to a peer that this node does not carry its packets to a member.
    pub(super) fn report_not_carried(&mut self, from: &PeerId, target: VirtualId) {
        let member = self.membership.direct(from);
        if member.is_some_and(Member::knows_paths) {
            self.transmit(from, Message::CannotCarry { target });
        }
    }

    /// Handles the silence of a carried link: its carrier may drop packets one way.
    pub(super) fn fell_silent(&mut self, now: Time, peer: &PeerId) {
        let Some(member) = self.membership.get(peer) else {
            return;
        };
        if let Some(carrier) = &member.carrier {
            let target = virtual_id(member.key);
            self.carrying.note(carrier, target, now + SILENT_FOR);
        }
    }
}

impl Member {
    /// Whether it forwards packets to that member, as far as known.
    fn carries_to(&self, target: VirtualId) -> bool {
        self.knows_paths() && self.reaches.contains_key(&target)
    }
}
