//! Carriers: the members that forward the packets of links between members without a direct path.
//!
//! Each end of a carried link chooses the member that carries its own packets: the leader, if it has direct links with
//! both ends, otherwise a member that introduced the other end, and so has a link with it. A member that does not carry
//! reports so, and the end chooses another one. Nothing that arrives over a carried link changes the choice.

use super::*;
use crate::bounded::BoundedMap;
use crate::introductions::{Dial, Ways};
use crate::path::{Carrier, LinkPath, RelayNumber};
use crate::virtual_address::{CarrierKind, VirtualId, virtual_id};

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
pub(super) struct Refusals(BoundedMap<(Carrier, VirtualId), Time, MAX_NOTES>);

impl Refusals {
    fn note(&mut self, carrier: &Carrier, target: VirtualId, until: Time) {
        let key = (carrier.clone(), target);
        self.0.insert_over(key, until, |_, until| *until);
    }

    pub(super) fn forget(&mut self, carrier: &Carrier, target: VirtualId) {
        self.0.remove(&(carrier.clone(), target));
    }

    fn refuses(&self, now: Time, carrier: &Carrier, target: VirtualId) -> bool {
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
        let carriers = self.carriers_to(now, peer, key);
        // A direct link that does not last is no better than a carried one.
        let is_paused = self.pauses.until(key).is_some_and(|at| now < at) && !carriers.is_empty();
        Ways {
            direct: !self.config.relayed_only && !is_paused && (!is_guest || is_lost_host()),
            carriers,
        }
    }

    /// The carriers that may take packets to the holder of a key, the best first: relays before members, except in a star, where the
    /// host carries. A relay that fell silent comes last: without another carrier it is better than none.
    fn carriers_to(&self, now: Time, peer: &PeerId, key: Fingerprint) -> Vec<Carrier> {
        let target = virtual_id(key);
        let relays = self.relays_to(key).map(Carrier::Relay);
        let (silent, relays): (Vec<_>, Vec<_>) =
            relays.partition(|relay| self.carrying.refuses(now, relay, target));
        let members = self.members_to(now, peer, target);
        let members = members.into_iter().map(Carrier::Member);
        match self.is_star() {
            true => members.chain(relays).chain(silent).collect(),
            false => relays.into_iter().chain(members).chain(silent).collect(),
        }
    }

    /// The relays that may carry packets to the holder of a key. In a star the guests are hidden there: each relay may.
    pub(super) fn relays_to(&self, key: Fingerprint) -> impl Iterator<Item = RelayNumber> {
        self.relays.to(key, self.is_star())
    }

    /// The members that may carry packets to another one, the best first.
    fn members_to(&self, now: Time, peer: &PeerId, target: VirtualId) -> Vec<PeerId> {
        let leader = self.leader();
        let members = self.membership.iter();
        let mut able: Vec<_> = members
            .filter(|(id, member)| self.may_carry(now, (id, member), peer, target, leader))
            .collect();
        able.sort_by_key(|(id, member)| {
            let rtt = member.rtt.smoothed().unwrap_or(Duration::MAX);
            (leader != Some(*id), rtt, *id)
        });
        let best = able.into_iter().take(MAX_CARRIERS);
        best.map(|(id, _)| id.clone()).collect()
    }

    /// Whether a member may carry packets to another one.
    fn may_carry(
        &self,
        now: Time,
        (id, member): (&PeerId, &Member),
        peer: &PeerId,
        target: VirtualId,
        leader: Option<&PeerId>,
    ) -> bool {
        // A leader that does not reach the peer reports so, or is one that knows no other carriers.
        id != peer
            && member.path.is_direct()
            && (leader == Some(id) || member.carries_to(target))
            && !(self.carrying).refuses(now, &Carrier::Member(id.clone()), target)
    }

    /// The leader, if it carries a link better than the member that does.
    fn leader_carries_better(&self, now: Time, peer: &PeerId, member: &Member) -> Option<Carrier> {
        if member.path != Path::Carried(CarrierKind::Member) {
            return None;
        }
        let target = virtual_id(member.key);
        let id = self.leader()?;
        let leader = self.membership.get(id)?;
        let since = self.merging.leader_changed_at;
        let has_settled = since.is_none_or(|at| now.since(at) >= LEADS_FOR);
        // A peer that knows no other carriers takes packets from its leader alone. That may be another one than this
        // node's, which then has no link with the peer.
        let reaches = match member.knows_paths() {
            true => leader.carries_to(target) && has_settled,
            false => leader.reaches.contains_key(&target),
        };
        let is_better = reaches && self.may_carry(now, (id, leader), peer, target, Some(id));
        is_better.then(|| Carrier::Member(id.clone()))
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
            let works = |carrier: &Carrier| {
                let is_linked = match carrier {
                    Carrier::Relay(relay) => self.relays_to(member.key).any(|to| to == *relay),
                    Carrier::Member(carrier) => self.membership.direct(carrier).is_some(),
                };
                is_linked && !self.carrying.refuses(now, carrier, target)
            };
            let present = member.carrier.as_ref().filter(|carrier| works(carrier));
            let chosen = match present {
                Some(present) => {
                    let better = self.leader_carries_better(now, peer, member);
                    Some(better.unwrap_or_else(|| present.clone()))
                }
                None => {
                    // A link keeps its kind of carriers: a better one is another link.
                    let mut best = self.carriers_to(now, peer, member.key).into_iter();
                    best.find(|best| Path::Carried(best.kind()) == member.path)
                }
            };
            if chosen != member.carrier {
                moved.push((peer.clone(), chosen));
            }
        }
        for (peer, carrier) in moved {
            if let Some(member) = self.membership.get_mut(&peer) {
                let before = std::mem::replace(&mut member.carrier, carrier.clone());
                if before.is_none() {
                    // Its answer is a sign of life, long before its next heartbeat.
                    self.ping(&peer);
                }
            }
            self.outputs.push_back(Output::Carrier { peer, carrier });
        }
        self.count_relayed();
        self.report_paths();
    }

    /// How a linked peer is reached. A carried link whose carrier is gone keeps its last path until it ends.
    pub fn path_to(&self, peer: &PeerId) -> Option<LinkPath> {
        self.path_of(self.membership.get(peer)?)
    }

    fn path_of(&self, member: &Member) -> Option<LinkPath> {
        if member.path.is_direct() {
            return Some(match member.through_turn {
                true => LinkPath::Turn,
                false => LinkPath::Direct,
            });
        }
        let carrier = match (&member.carrier, &member.shown_path) {
            (Some(carrier), _) => carrier.clone(),
            (None, Some(shown)) => return Some(shown.clone()),
            (None, None) => return None,
        };
        Some(match carrier {
            Carrier::Relay(relay) => LinkPath::Relay(relay),
            Carrier::Member(carrier) if self.leader() == Some(&carrier) => {
                LinkPath::Leader(carrier)
            }
            Carrier::Member(carrier) => LinkPath::Member(carrier),
        })
    }

    /// Notifies the host of each linked peer whose path is another one now.
    fn report_paths(&mut self) {
        let members = self.membership.iter();
        let changed = members.filter_map(|(peer, member)| {
            let new = self.path_of(member)?;
            (member.shown_path.as_ref() != Some(&new)).then(|| (peer.clone(), new))
        });
        for (peer, new) in changed.collect::<Vec<_>>() {
            let member = self.membership.get_mut(&peer);
            let shown = member.and_then(|member| member.shown_path.replace(new.clone()));
            if let Some(old) = shown {
                self.event(Event::PathChanged { peer, old, new });
            }
        }
    }

    /// Notes that a member introduced another one, and so has a link with it.
    pub(super) fn note_reached(&mut self, by: &PeerId, key: Fingerprint, is_direct: bool) {
        let target = virtual_id(key);
        let known = self.membership.get(by);
        if known.is_some_and(|by| by.reaches.get(&target) == Some(&is_direct)) {
            return;
        }
        let Some(member) = self.membership.get_mut(by) else {
            return;
        };
        // A member that reaches more is not asked to carry to the others.
        let _ = member.reaches.insert(target, is_direct);
        self.paths_changed = true;
    }

    /// Counts the links over carriers of each member: of equal priority, members with fewer of them campaign first.
    /// Introductions without addresses show them.
    fn count_relayed(&mut self) {
        if self.relays.are_none() || self.is_star() {
            return;
        }
        let members = self.membership.iter();
        let ids: Vec<_> = members.map(|(_, member)| virtual_id(member.key)).collect();
        let mut mine = 0;
        let mut others = BTreeMap::new();
        for (peer, member) in self.membership.iter() {
            let is_mine = !member.path.is_direct();
            mine += u32::from(is_mine);
            let its = ids
                .iter()
                .filter(|id| member.reaches.get(*id) == Some(&false));
            let its = u32::try_from(its.count()).unwrap_or(u32::MAX);
            others.insert(peer.clone(), its.saturating_add(u32::from(is_mine)));
        }
        self.view.relayed = mine;
        self.view.relayed_of = others;
    }

    /// Handles a carrier's report that it does not carry packets to a member.
    pub(super) fn not_carried(&mut self, now: Time, by: &PeerId, target: VirtualId) {
        if let Some(member) = self.membership.get_mut(by) {
            member.reaches.remove(&target);
        }
        let by = Carrier::Member(by.clone());
        self.carrying.note(&by, target, now + REFUSED_FOR);
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

    /// Whether a relay is not asked to carry packets to the holder of a key.
    pub(super) fn has_fallen_silent(
        &self,
        now: Time,
        relay: RelayNumber,
        key: Fingerprint,
    ) -> bool {
        self.carrying
            .refuses(now, &Carrier::Relay(relay), virtual_id(key))
    }

    /// Notes that packets which a relay carries to the holder of a key do not arrive.
    pub(super) fn note_silent(&mut self, now: Time, relay: RelayNumber, key: Fingerprint) {
        self.carrying
            .note(&Carrier::Relay(relay), virtual_id(key), now + SILENT_FOR);
        self.paths_changed = true;
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
