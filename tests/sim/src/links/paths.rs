//! Pairs without a direct path: walls, members that carry packets, and addresses that change.
//!
//! Each end of a carried link chooses the member that carries its packets, as its core asks. A packet travels over two direct
//! links, which must work in its direction, and over a carrier that runs and forwards; otherwise it is lost. A carrier without a
//! direct link with the target reports that to its core.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use rand::Rng;

use room_core::id::{Fingerprint, PeerId};
use room_core::introductions::Dial;
use room_core::node::{Input, LinkEnd, Node};
use room_core::path::{Carrier, CarrierKind, LinkPath, Path, RelayNumber};
use room_core::time::{Duration, Time};
use room_core::virtual_address::{VirtualId, virtual_id};
use room_core::wire::{FEATURE_PATHS, FEATURE_SILENT_RELAYS};

use super::relays::Relays;
use super::via::{Via, path_over};
use super::{DIALLER, DialOf, HOST_DIAL_TIMEOUT, Link, Pending, Wire};
use crate::paths::Counts;
use crate::world::{Happening, World};

/// Time after which a member that has not answered at its addresses is dialled over a carrier, too.
const CARRIED_AFTER: Duration = Duration::from_millis(500);
/// Time between two dials of one member over different carriers.
const CARRIER_STAGGER: Duration = Duration::from_millis(250);
/// Time within which both ends must dial to open a wall, besides two round trips of the room: over a carrier the ends agree on a
/// moment by messages that travel twice as far.
const OPENS_WITHIN: Duration = Duration::from_millis(300);
/// Minimum time between two reports of a carrier about one pair.
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// A bug to put in, in tests of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// The network ignores the carriers that the cores choose.
    KeepsDeadCarriers,
    /// The cores take carried links for direct ones.
    CountsCarriedLinks,
    /// No member begins to punch.
    NeverPunches,
    /// Members do not know which members lack the new messages.
    IgnoresFeatures,
    /// Members do not dial lost members over carriers.
    NeverDialsOverCarriers,
    /// The cores do not learn that a relay has fallen before it is back.
    NeverNoticesFalls,
    /// The cores do not learn which processes are behind a relay.
    NoPresence,
    /// Members do not learn that another one has lost a relay.
    ReportsNoSilentRelays,
    /// When a relay falls, those behind it are gone before.
    GoneBeforeFalls,
}

/// A pair of places without a direct path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wall {
    /// Whether it opens when both ends dial at the same time.
    pub(crate) opens: bool,
}

/// A dial of the core with its attempts at addresses and over carriers.
#[derive(Debug)]
struct CoreDial {
    from: usize,
    life: u64,
    peer: PeerId,
    key: Fingerprint,
    /// Attempts that have not ended.
    left: usize,
    /// Attempts at addresses among them.
    direct_left: usize,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Paths {
    /// Whether the room has them. Otherwise all members have direct links.
    pub are_modelled: bool,
    /// By pair, the smaller place first.
    pub(crate) walls: BTreeMap<(usize, usize), Wall>,
    /// Places of members of the version before.
    pub(crate) old: BTreeSet<usize>,
    /// Places of members that forward packets only while they lead.
    pub(crate) unwilling: BTreeSet<usize>,
    /// Number of faults by which a carrier silently drops the packets from one place to another: carrier, from, to.
    pub(crate) drops: BTreeMap<(usize, usize, usize), u32>,
    /// Places of members that are reached over relays alone.
    pub(crate) relayed_only: BTreeSet<usize>,
    /// A bug to put in.
    pub planted: Option<Planted>,
    dials: BTreeMap<u64, CoreDial>,
    /// The last dial against a wall, by dialler and target.
    knocks: BTreeMap<(usize, usize), (Time, u64)>,
    reported: BTreeMap<(usize, usize, VirtualId), Time>,
    /// Links that others have replaced at one end or both.
    pub(super) retired: BTreeSet<u64>,
    /// Number of addresses that each place has had.
    bindings: BTreeMap<usize, u8>,
    /// Inputs under way, one inside of the other.
    pub(crate) depth: u32,
    /// The last path that a host knows of each peer.
    pub(crate) shown: BTreeMap<(usize, PeerId), LinkPath>,
    /// Times of the last messages of each kind, by sender and receiver.
    pub(crate) sent: BTreeMap<(usize, usize, &'static str), VecDeque<Time>>,
    /// The time at which the lists of addresses of each process are paid for, by receiver.
    pub(crate) lists: BTreeMap<(usize, u64, usize), Time>,
    /// Dials of each process at unused addresses.
    pub(crate) dialled: BTreeMap<(usize, u64, IpAddr), VecDeque<Time>>,
    pub(crate) counts: Counts,
    pub(crate) relays: Relays,
    /// Number of changes of the path of each peer that each host learned, since this was last cleared.
    pub(crate) changes: BTreeMap<(usize, PeerId), u32>,
    /// Links that hosts learned to be lost, by place and peer's place, since this was last cleared.
    pub(crate) losses: Vec<Loss>,
}

/// A place has lost its link with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) slot: usize,
    pub(crate) other: usize,
    /// Whether packets of the two had another way.
    pub(crate) had_way: bool,
}

pub(crate) fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// Walls and addresses.
impl World {
    /// Puts up a wall. With `ends` no packet passes any more on a direct link of the pair.
    pub(crate) fn put_up_wall(&mut self, a: usize, b: usize, opens: bool, ends: bool) {
        if a == b {
            return;
        }
        self.checker.disturbed = true;
        self.paths.walls.insert(pair(a, b), Wall { opens });
        self.trace.add(
            self.now,
            format_args!(
                "a wall between {} and {}, opens: {opens}",
                self.slots[a].id, self.slots[b].id
            ),
        );
        if ends {
            self.kill_direct_links(a, b);
        }
    }

    /// Takes down a wall.
    pub(crate) fn take_down_wall(&mut self, a: usize, b: usize) {
        if self.paths.walls.remove(&pair(a, b)).is_some() {
            self.trace.add(
                self.now,
                format_args!(
                    "no wall between {} and {}",
                    self.slots[a].id, self.slots[b].id
                ),
            );
        }
    }

    /// A carrier silently drops the packets from one place to another.
    pub(crate) fn drop_one_way(&mut self, carrier: usize, from: usize, to: usize) {
        *self.paths.drops.entry((carrier, from, to)).or_default() += 1;
        self.trace.add(
            self.now,
            format_args!(
                "{} drops what goes from {} to {}",
                self.slots[carrier].id, self.slots[from].id, self.slots[to].id
            ),
        );
    }

    /// A carrier forwards again.
    pub(crate) fn forward_again(&mut self, carrier: usize, from: usize, to: usize) {
        let key = (carrier, from, to);
        let Some(count) = self.paths.drops.get_mut(&key) else {
            return;
        };
        *count -= 1;
        let is_over = *count == 0;
        let are_carried = self.are_joined(from, to) && !self.is_linked(from, to);
        self.paths.counts.one_way_drops_survived += u64::from(are_carried);
        if is_over {
            self.paths.drops.remove(&key);
            self.unblock();
        }
    }

    /// A place that another one reaches, and to which no chain of links leads.
    pub(crate) fn stranger_of(&self, slot: usize) -> Option<usize> {
        let mut known = BTreeSet::from([slot]);
        let mut next = vec![slot];
        while let Some(one) = next.pop() {
            for other in self.running() {
                if self.are_joined(one, other) && known.insert(other) {
                    next.push(other);
                }
            }
        }
        let mut others = self.running().into_iter();
        others.find(|other| !known.contains(other) && !self.is_walled(slot, *other))
    }

    /// Whether neither of two places reaches the other directly, unless they have a link.
    pub(crate) fn is_walled(&self, a: usize, b: usize) -> bool {
        let hidden = &self.paths.relayed_only;
        self.paths.walls.contains_key(&pair(a, b)) || hidden.contains(&a) || hidden.contains(&b)
    }

    fn kill_direct_links(&mut self, a: usize, b: usize) {
        for link in self.links.values_mut() {
            let [one, other] = link.slots;
            if pair(one, other) == pair(a, b) && link.carriers.is_none() {
                link.dead = true;
            }
        }
    }

    /// The router of a place forgets its address and gives it another one. The links with the places in `lost` end; on the others
    /// the packets come from the new address.
    pub(crate) fn rebind(&mut self, slot: usize, lost: &[usize]) {
        self.checker.disturbed = true;
        self.paths.counts.rebindings += 1;
        let binding = self.paths.bindings.entry(slot).or_default();
        *binding = binding.saturating_add(1);
        self.slots[slot].address = outside_address(slot, *binding);
        self.trace.add(
            self.now,
            format_args!(
                "{} moves to {}",
                self.slots[slot].id, self.slots[slot].address
            ),
        );
        self.paths
            .knocks
            .retain(|(a, b), _| *a != slot && *b != slot);
        self.is_observed_anew(slot);
        for other in (0..self.slots.len()).filter(|other| *other != slot) {
            if lost.contains(&other) {
                self.kill_direct_links(slot, other);
            } else {
                let at = self.now + self.delay(slot, other);
                let life = self.slots[other].life;
                let seen = Wire::SeenAt {
                    slot: other,
                    life,
                    other: slot,
                };
                self.at(at, Happening::Wire(seen));
            }
        }
    }

    pub(super) fn seen_at(&mut self, slot: usize, life: u64, other: usize) {
        let process = self.slots[slot].process.as_ref();
        let link = process.and_then(|process| self.links.get(process.sessions.get(&other)?));
        let is_direct = link.is_some_and(|link| link.carriers.is_none() && !link.dead);
        if !self.is_life(slot, life) || !is_direct || self.paths.is_old(slot) {
            return;
        }
        let seen = Input::SeenAt {
            peer: self.slots[other].id.clone(),
            address: self.slots[other].address,
            came: false,
            through_turn: false,
        };
        let _ = self.feed(slot, seen);
    }

    /// The address of a place in its own network.
    pub(crate) fn own_address(&self, slot: usize) -> SocketAddr {
        match self.paths.are_modelled {
            true => {
                let host = u8::try_from(slot + 1).unwrap_or(u8::MAX);
                SocketAddr::from(([192, 168, host, 2], 7000))
            }
            false => self.slots[slot].address,
        }
    }

    /// From now on the room has walls and carriers. Before any process runs.
    pub(crate) fn model_paths(&mut self) {
        self.paths.are_modelled = true;
        self.checker.disturbed = true;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.address = outside_address(index, 0);
        }
    }
}

/// An address on the internet.
fn outside_address(slot: usize, binding: u8) -> SocketAddr {
    let host = u8::try_from(slot + 1).unwrap_or(u8::MAX);
    SocketAddr::from(([203, 1 + binding, host, 7], 7000))
}

impl Paths {
    /// Whether the member of a place is one of the version before.
    pub(crate) fn is_old(&self, slot: usize) -> bool {
        self.old.contains(&slot)
    }
}

/// Ways of packets.
impl World {
    /// Whether packets pass on the direct link of a pair in that direction: the other end reads it.
    fn is_hop(&self, from: usize, to: usize) -> bool {
        let held = |slot: usize, other: usize| {
            let process = self.slots[slot].process.as_ref()?;
            process.sessions.get(&other).copied()
        };
        let Some(id) = held(to, from) else {
            return false;
        };
        let is_held = self.slots[from].process.is_none() || held(from, to) == Some(id);
        let works = |link: &Link| link.carriers.is_none() && !link.dead;
        is_held && self.links.get(&id).is_some_and(works) && !self.is_cut(from, to)
    }

    fn shows_leader(&self, slot: usize, leader: usize) -> bool {
        self.node(slot).and_then(Node::leader) == Some(&self.slots[leader].id)
    }

    /// Whether a member forwards packets for others, as far as its host and its version decide.
    pub(crate) fn forwards(&self, carrier: usize) -> bool {
        let is_leader = || self.node(carrier).is_some_and(Node::is_leader);
        let only_leads = self.paths.is_old(carrier) || self.paths.unwilling.contains(&carrier);
        !only_leads || is_leader()
    }

    /// Whether the ends of a pair use that carrier: one of the version before knows no other carriers than its leader.
    pub(crate) fn is_used_by(&self, carrier: usize, a: usize, b: usize) -> bool {
        [a, b].into_iter().all(|end| {
            let is_running = self.slots[end].process.is_some();
            !self.paths.is_old(end) || !is_running || self.shows_leader(end, carrier)
        })
    }

    /// Whether packets pass from one place to another, over a carrier if one is given.
    pub(super) fn passes_from(&self, from: usize, over: Option<Via>, to: usize) -> bool {
        let carrier = match over {
            None => return !self.is_cut(from, to),
            // A partition ends the paths over relays, too.
            Some(Via::Relay(relay)) => {
                return !self.is_cut(from, to) && self.paths.relays.forwards(relay, from, to);
            }
            Some(Via::Place(carrier)) => carrier,
        };
        let runs = self.slots[carrier].process.is_some() && !self.is_paused(carrier);
        runs && self.is_hop(from, carrier)
            && self.is_hop(carrier, to)
            && !self.paths.drops.contains_key(&(carrier, from, to))
            && self.forwards(carrier)
            && self.is_used_by(carrier, from, to)
    }

    /// One trip of a packet.
    pub(super) fn trip(&mut self, from: usize, over: Option<Via>, to: usize) -> Duration {
        match over {
            None => self.delay(from, to),
            // It is near.
            Some(Via::Relay(_)) => self.delay(from, to),
            Some(Via::Place(carrier)) => self.delay(from, carrier) + self.delay(carrier, to),
        }
    }

    /// The carrier of an end's packets on a link, if it is carried and the end has a carrier.
    pub(crate) fn carrier_at(&self, id: u64, end: usize) -> Option<Via> {
        let link = self.links.get(&id)?;
        let carriers = link.carriers?;
        let slot = link.slots[end];
        if !self.paths.is_old(slot) {
            return carriers.of_ends[end];
        }
        let leader = self.node(slot)?.leader()?;
        let leader = self.slot_of(leader).filter(|leader| *leader != slot);
        leader.map(Via::Place)
    }

    pub(super) fn is_blocked(&self, id: u64, from: usize) -> bool {
        let Some(link) = self.links.get(&id) else {
            return true;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        match (link.carriers, self.carrier_at(id, from)) {
            _ if link.dead => true,
            (None, _) => self.is_cut(sender, receiver),
            (Some(_), None) => true,
            (Some(_), over) => !self.passes_from(sender, over, receiver),
        }
    }

    pub(super) fn is_blocked_from(&self, id: u64, slot: usize) -> bool {
        let end = self.links.get(&id).map(|link| link.end_of(slot));
        end.is_none_or(|end| self.is_blocked(id, end))
    }

    /// Whether packets of `from` arrive at `to` on the link that `to` holds.
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        let process = self.slots[to].process.as_ref();
        let link = process.and_then(|process| process.sessions.get(&from));
        link.is_some_and(|link| !self.is_blocked_from(*link, from))
    }

    /// Whether both ends hold one link, carried or direct, and both directions work.
    pub fn are_joined(&self, a: usize, b: usize) -> bool {
        let link = self.shared_link(a, b);
        link.is_some_and(|id| !self.is_blocked(id, 0) && !self.is_blocked(id, 1))
    }

    pub(crate) fn is_carried(&self, id: u64) -> bool {
        !self.link_path(id).is_direct()
    }

    /// The path of a link.
    pub(crate) fn link_path(&self, id: u64) -> Path {
        let link = self.links.get(&id);
        link.map_or(Path::Direct, Link::path)
    }

    /// Whether the link that two places share counts in elections, and works both ways.
    pub fn count_for_each_other(&self, a: usize, b: usize) -> bool {
        let link = self.shared_link(a, b);
        link.is_some_and(|id| self.link_path(id).counts_in_elections()) && self.are_joined(a, b)
    }

    /// Whether the link that a place holds with another counts in elections.
    pub(crate) fn counts_for(&self, slot: usize, other: usize) -> bool {
        let process = self.slots[slot].process.as_ref();
        let id = process.and_then(|process| process.sessions.get(&other));
        id.is_some_and(|id| self.link_path(*id).counts_in_elections())
    }

    /// Whether the link that a place holds with another is direct.
    pub(crate) fn is_session_direct(&self, slot: usize, other: usize) -> bool {
        let process = self.slots[slot].process.as_ref();
        let id = process.and_then(|process| process.sessions.get(&other));
        id.is_some_and(|id| !self.is_carried(*id))
    }

    /// The optional abilities of a place's member.
    pub(super) fn features(&self, slot: usize) -> u64 {
        let is_ignored = self.paths.planted == Some(Planted::IgnoresFeatures);
        match self.paths.is_old(slot) && !is_ignored {
            true => 0,
            false => FEATURE_PATHS | FEATURE_SILENT_RELAYS,
        }
    }

    /// The path of a link as the core receives it.
    pub(super) fn path_of(&self, id: u64) -> Path {
        let is_taken_for_direct = self.paths.planted == Some(Planted::CountsCarriedLinks);
        match is_taken_for_direct {
            true => Path::Direct,
            false => self.link_path(id),
        }
    }

    /// A carrier as the core names it.
    pub(crate) fn carrier_of(&self, via: Via) -> Carrier {
        match via {
            Via::Relay(relay) => Carrier::Relay(RelayNumber(relay)),
            Via::Place(place) => Carrier::Member(self.slots[place].id.clone()),
        }
    }

    /// The carrier that the core of a place names, if the place reaches it.
    fn via(&self, slot: usize, carrier: &Carrier) -> Option<Via> {
        match carrier {
            Carrier::Relay(relay) => Some(Via::Relay(relay.0)),
            Carrier::Member(member) => {
                let place = self.slot_of(member)?;
                self.is_session_direct(slot, place)
                    .then_some(Via::Place(place))
            }
        }
    }

    /// The core of a place sends its packets over another carrier.
    pub(crate) fn change_carrier(&mut self, slot: usize, peer: &PeerId, carrier: Option<&Carrier>) {
        if self.paths.is_old(slot) || self.paths.planted == Some(Planted::KeepsDeadCarriers) {
            return;
        }
        let Some((id, end)) = self.session_with(slot, peer) else {
            return;
        };
        let via = carrier.and_then(|carrier| self.via(slot, carrier));
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let Some(carriers) = &mut link.carriers else {
            return;
        };
        if via.is_some_and(|via| via.kind() != carriers.kind) {
            let text = format!("{} moves to {peer} to {carrier:?}", self.slots[slot].id);
            return self.violate("paths", text);
        }
        let is_relay = carriers.kind == CarrierKind::Relay;
        carriers.of_ends[end] = via;
        self.paths.counts.carriers_changed += 1;
        self.paths.relays.counts.moves += u64::from(is_relay && via.is_some());
        let is_after_a_report = carrier.is_some() && self.paths.was_reported(slot, self.now);
        self.paths.counts.carriers_changed_after_reports += u64::from(is_after_a_report);
        self.trace.add(
            self.now,
            format_args!(
                "{} sends to {peer} through {:?}",
                self.slots[slot].id, carrier
            ),
        );
        self.unblock();
    }

    /// A packet is on its way to the carrier of a link's end.
    pub(super) fn sent_to_carrier(&mut self, id: u64, end: usize) {
        let Some(Via::Place(carrier)) = self.carrier_at(id, end) else {
            return;
        };
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (from, to) = (link.slots[end], link.slots[1 - end]);
        let key = self.slots[to].process.as_ref().map(|process| process.key);
        if let Some(key) = key {
            self.send_to_carrier(from, carrier, virtual_id(key));
        }
    }

    fn send_to_carrier(&mut self, from: usize, carrier: usize, target: VirtualId) {
        if self.is_hop(from, carrier) {
            let at = self.now + self.delay(from, carrier);
            let arrives = Wire::AtCarrier {
                carrier,
                from,
                target,
            };
            self.at(at, Happening::Wire(arrives));
        }
    }

    pub(super) fn arrives_at_carrier(&mut self, carrier: usize, from: usize, target: VirtualId) {
        let Some(process) = &self.slots[carrier].process else {
            return;
        };
        if self.is_paused(carrier) || self.paths.is_old(carrier) || !self.is_hop(from, carrier) {
            return;
        }
        let has_key = |slot: &usize| {
            let its = self.slots[*slot].process.as_ref();
            its.is_some_and(|its| virtual_id(its.key) == target)
        };
        let mut others = process.sessions.keys().copied();
        let linked = others.find(|slot| has_key(slot) && self.is_session_direct(carrier, *slot));
        if linked.is_some() && self.forwards(carrier) {
            return;
        }
        let key = (carrier, from, target);
        let last = self.paths.reported.get(&key);
        if last.is_some_and(|at| self.now.since(*at) < BETWEEN_REPORTS) {
            return;
        }
        self.paths.reported.insert(key, self.now);
        self.paths.counts.carriers_refused += 1;
        let from = self.slots[from].id.clone();
        let _ = self.feed(carrier, Input::CannotCarry { from, target });
    }
}

impl Paths {
    /// Whether a carrier has lately reported to a place that it does not carry its packets.
    fn was_reported(&self, slot: usize, now: Time) -> bool {
        let lately = Duration::from_secs(1);
        let mut reports = self.reported.iter();
        reports.any(|((_, from, _), at)| *from == slot && now.since(*at) < lately)
    }
}

/// Dials.
impl World {
    /// A dial of the core: at all addresses, and then over the carriers.
    pub(super) fn dial_on_all_paths(&mut self, from: usize, dial: &Dial) {
        self.trace.add(
            self.now,
            format_args!("... at {:?} through {:?}", dial.addresses, dial.carriers),
        );
        self.made += 1;
        let whole = self.made;
        let life = self.slots[from].life;
        if self.paths.relayed_only.contains(&from) && !dial.addresses.is_empty() {
            let text = format!("{} dials {:?}", self.slots[from].id, dial.addresses);
            self.violate("hidden", text);
        }
        let mut targets = Vec::new();
        let mut is_silent = false;
        for address in &dial.addresses {
            self.note_dialled(from, address.at);
            let place = self
                .slots
                .iter()
                .position(|place| place.address == address.at);
            match place.filter(|place| *place != from && !self.is_dialling(from, *place)) {
                Some(to) if !targets.contains(&to) => targets.push(to),
                Some(_) => {}
                None => is_silent = true,
            }
        }
        let first = match dial.addresses.is_empty() {
            true => Duration::ZERO,
            false => CARRIED_AFTER,
        };
        let never = self.paths.planted == Some(Planted::NeverDialsOverCarriers);
        let carriers = dial.carriers.iter().filter(|_| !never);
        let carriers = carriers.filter_map(|carrier| self.via(from, carrier));
        let is_used = |via: &Via| match via {
            Via::Relay(_) => true,
            Via::Place(carrier) => !self.paths.is_old(from) || self.shows_leader(from, *carrier),
        };
        let carriers: Vec<Via> = carriers.filter(is_used).collect();
        let direct_left = targets.len() + usize::from(is_silent);
        self.paths.dials.insert(
            whole,
            CoreDial {
                from,
                life,
                peer: dial.peer.clone(),
                key: dial.key,
                left: direct_left + carriers.len(),
                direct_left,
            },
        );
        if direct_left + carriers.len() == 0 {
            return self.core_dial_failed(whole, false);
        }
        if is_silent {
            let at = self.now + dial.lasts.unwrap_or(HOST_DIAL_TIMEOUT);
            let over = Wire::AttemptTimeout { dial: whole };
            self.at(at, Happening::Wire(over));
        }
        for (index, over) in (0_u32..).zip(carriers) {
            let first = match over.kind() {
                CarrierKind::Relay if dial.relays_at_once => Duration::ZERO,
                _ => first,
            };
            let at = self.now + first + CARRIER_STAGGER * index;
            let begins = Wire::DialOver {
                dial: whole,
                over,
                lasts: dial.carried_lasts,
            };
            self.at(at, Happening::Wire(begins));
        }
        for to in targets {
            let attempt = self.attempt(whole, to, None);
            self.ends_unanswered(attempt, dial.lasts);
        }
    }

    /// Ends an attempt after that time, unless the other end has answered.
    fn ends_unanswered(&mut self, attempt: Option<u64>, lasts: Option<Duration>) {
        if let (Some(dial), Some(lasts)) = (attempt, lasts) {
            self.at(self.now + lasts, Happening::Wire(Wire::RoundOver { dial }));
        }
    }

    pub(super) fn round_over(&mut self, dial: u64) {
        if self
            .dials
            .get(&dial)
            .is_some_and(|pending| pending.held || !pending.answered)
        {
            self.dial_failed(dial, false);
        }
    }

    fn is_dialling(&self, from: usize, to: usize) -> bool {
        let mut dials = self.dials.values();
        dials.any(|dial| dial.from == from && dial.to == to && dial.over.is_none())
    }

    /// Returns the dial, if the whole one has not ended.
    fn attempt(&mut self, whole: u64, to: usize, over: Option<Via>) -> Option<u64> {
        let core_dial = self.paths.dials.get(&whole)?;
        self.made += 1;
        let dial = self.made;
        let pending = Pending {
            from: core_dial.from,
            life: core_dial.life,
            to,
            of: DialOf::Core(core_dial.key),
            link: None,
            kicked: false,
            over,
            attempt_of: Some(whole),
            held: false,
            answered: false,
        };
        self.dials.insert(dial, pending);
        self.begin_dial(dial);
        Some(dial)
    }

    pub(super) fn dial_over(&mut self, whole: u64, over: Via, lasts: Option<Duration>) {
        let Some(core_dial) = self.paths.dials.get(&whole) else {
            return;
        };
        let (from, key) = (core_dial.from, core_dial.key);
        if !self.is_life(from, core_dial.life) {
            self.paths.dials.remove(&whole);
            return;
        }
        if let Via::Place(carrier) = over {
            self.send_to_carrier(from, carrier, virtual_id(key));
        }
        let has_key = |place: &crate::world::Slot| {
            let process = place.process.as_ref();
            process.is_some_and(|process| process.key == key)
        };
        match self.slots.iter().position(has_key) {
            Some(to) if to != from => {
                let attempt = self.attempt(whole, to, Some(over));
                self.ends_unanswered(attempt, lasts);
            }
            _ => {
                let at = self.now + lasts.unwrap_or(HOST_DIAL_TIMEOUT);
                self.at(at, Happening::Wire(Wire::AttemptTimeout { dial: whole }));
            }
        }
    }

    /// Whether a wall keeps back the packets of a dial. If both ends dial at the same time, it may open.
    pub(super) fn is_held_by_a_wall(&mut self, dial: u64) -> bool {
        let Some(pending) = self.dials.get(&dial) else {
            return false;
        };
        let (from, to) = (pending.from, pending.to);
        // A member that is reached over relays alone ignores what comes directly.
        let never = Wall { opens: false };
        let hidden = &self.paths.relayed_only;
        let is_hidden = hidden.contains(&from) || hidden.contains(&to);
        let wall = self.paths.walls.get(&pair(from, to)).copied();
        let Some(wall) = is_hidden.then_some(never).or(wall) else {
            return false;
        };
        let opens_within = OPENS_WITHIN + self.max_rtt() * 2;
        self.paths.knocks.insert((from, to), (self.now, dial));
        let knock = self.paths.knocks.get(&(to, from)).copied();
        let knock = knock.filter(|(at, other)| {
            self.now.since(*at) <= opens_within && self.dials.contains_key(other)
        });
        let cut = self.is_cut(from, to) || self.is_cut(to, from);
        let Some((_, other)) = knock.filter(|_| wall.opens && !cut) else {
            if let Some(pending) = self.dials.get_mut(&dial) {
                pending.held = true;
            }
            return true;
        };
        self.paths.counts.walls_opened += 1;
        self.trace.add(
            self.now,
            format_args!(
                "the wall between {} and {} opens",
                self.slots[from].id, self.slots[to].id
            ),
        );
        // The first packet of the other end was lost. It may send it again.
        if self.rng.random_bool(0.5)
            && let Some(pending) = self.dials.get_mut(&other)
            && std::mem::replace(&mut pending.held, false)
        {
            let (from, to) = (pending.from, pending.to);
            self.shake_hands(other, from, to, None);
        }
        false
    }

    /// An attempt ended without a link.
    pub(super) fn attempt_refused(&mut self, dial: u64, whole: u64, permanent: bool) {
        let pending = self.dials.remove(&dial);
        let is_direct = pending.is_some_and(|pending| pending.over.is_none());
        self.attempt_failed(whole, is_direct, permanent);
    }

    pub(super) fn attempt_failed(&mut self, whole: u64, is_direct: bool, permanent: bool) {
        let Some(core_dial) = self.paths.dials.get_mut(&whole) else {
            return;
        };
        core_dial.left = core_dial.left.saturating_sub(1);
        core_dial.direct_left = core_dial.direct_left.saturating_sub(usize::from(is_direct));
        // Over a carrier the same refusal would follow.
        let ends_all = permanent && is_direct && core_dial.direct_left == 0;
        if ends_all || core_dial.left == 0 {
            self.core_dial_failed(whole, permanent);
        }
    }

    fn core_dial_failed(&mut self, whole: u64, permanent: bool) {
        let Some(CoreDial {
            from, life, peer, ..
        }) = self.end_core_dial(whole)
        else {
            return;
        };
        if self.is_life(from, life) {
            let _ = self.feed(from, Input::DialFailed { peer, permanent });
        }
    }

    /// An attempt ended with a link: the others end without one.
    pub(super) fn attempt_succeeded(&mut self, whole: u64) {
        self.end_core_dial(whole);
    }

    fn end_core_dial(&mut self, whole: u64) -> Option<CoreDial> {
        let ended = self.paths.dials.remove(&whole)?;
        let others = self.dials.iter();
        let others = others.filter(|(_, dial)| dial.attempt_of == Some(whole));
        let others: Vec<_> = others
            .map(|(dial, pending)| (*dial, pending.link))
            .collect();
        for (dial, link) in others {
            self.dials.remove(&dial);
            if let Some(link) = link {
                self.refuse_link(link, DIALLER);
            }
        }
        Some(ended)
    }
}

/// Sessions and their links.
impl World {
    /// Whether a new link of that path would be no better than the one that a place holds with that process.
    pub(super) fn session_stands(
        &self,
        slot: usize,
        other: usize,
        other_life: u64,
        over: Option<Via>,
    ) -> bool {
        let process = self.slots[slot].process.as_ref();
        let id = process.and_then(|process| process.sessions.get(&other).copied());
        id.is_some_and(|id| self.stands_against(id, other, other_life, path_over(over)))
    }

    fn stands_against(&self, id: u64, other: usize, other_life: u64, path: Path) -> bool {
        let Some(link) = self.links.get(&id) else {
            return false;
        };
        let end = link.end_of(other);
        let is_stale = link.ended[end] || link.lives[end] != other_life;
        let is_worse = link.path() > path;
        !is_stale && !is_worse
    }

    /// Whether the session of that end of a link has a better one that the other end has not ended.
    pub(super) fn is_worse_than_session(&self, id: u64, end: usize) -> bool {
        let Some(link) = self.links.get(&id) else {
            return true;
        };
        let (slot, other, life) = (link.slots[end], link.slots[1 - end], link.lives[1 - end]);
        let process = self.slots[slot].process.as_ref();
        let present = process.and_then(|process| process.sessions.get(&other).copied());
        present.is_some_and(|present| {
            let path = self.link_path(present);
            path < link.path() && self.stands_against(present, other, life, path)
        })
    }

    /// The acceptor ends a session of which the other end has lost the link.
    pub(super) fn end_stale(&mut self, slot: usize, other: usize, over: Option<Via>) {
        let process = self.slots[slot].process.as_ref();
        let old = process.and_then(|process| process.sessions.get(&other).copied());
        if let Some(old) = old
            && !self.is_overtaken_by(old, other, path_over(over))
        {
            self.end_session(slot, other, old, LinkEnd::Replaced);
        }
    }

    fn is_overtaken_by(&self, old: u64, other: usize, path: Path) -> bool {
        let life = self.slots[other].life;
        let before = self.link_path(old);
        path < before && self.stands_against(old, other, life, before)
    }

    /// A new link takes the place of a session's present one: a better one takes over, and another one ends the session first.
    pub(super) fn end_replaced(&mut self, slot: usize, other: usize, path: Path) {
        let process = self.slots[slot].process.as_ref();
        let Some(old) = process.and_then(|process| process.sessions.get(&other).copied()) else {
            return;
        };
        if !self.is_overtaken_by(old, other, path) {
            return self.end_session(slot, other, old, LinkEnd::Replaced);
        }
        let before = self.link_path(old);
        let counts = &mut self.paths.relays.counts;
        match (before, path) {
            (Path::Carried(CarrierKind::Member), Path::Direct) => {
                self.paths.counts.links_taken_over += 1;
            }
            (Path::Carried(CarrierKind::Member), _) => counts.taken_over_from_members += 1,
            (Path::Carried(CarrierKind::Relay), _) => counts.taken_over_by_direct_links += 1,
            (Path::Direct, _) => {}
        }
        self.retire(old, slot);
    }

    /// Takes a second link of a session over as good a path: both ends dialled, and each accepted the other's dial before its own
    /// was over. Both ends keep the one that the smaller id dialled. Returns whether it is one.
    pub(super) fn attach_second(&mut self, id: u64, end: usize) -> bool {
        let Some(link) = self.links.get(&id) else {
            return false;
        };
        let (slot, other, life) = (link.slots[end], link.slots[1 - end], link.lives[1 - end]);
        let (path, dialler) = (link.path(), link.dialler());
        let process = self.slots[slot].process.as_ref();
        let Some(present) = process.and_then(|process| process.sessions.get(&other).copied())
        else {
            return false;
        };
        let Some(before) = self.links.get(&present) else {
            return false;
        };
        let crosses = before.dialler() != dialler && before.path() == path;
        if !crosses || !self.stands_against(present, other, life, path) {
            return false;
        }
        self.sometimes.second_links += 1;
        let carrier = before
            .carriers
            .and_then(|carriers| carriers.of_ends[before.end_of(slot)]);
        let acceptor = if dialler == slot { other } else { slot };
        let is_kept = self.slots[dialler].id < self.slots[acceptor].id;
        let retired = if is_kept { present } else { id };
        if let Some(link) = self.links.get_mut(&id) {
            link.up[end] = true;
            if let Some(carriers) = &mut link.carriers {
                carriers.of_ends[end] = carrier; // the one that the core knows
            }
        }
        self.retire(retired, slot);
        if is_kept {
            if let Some(process) = &mut self.slots[slot].process {
                process.sessions.insert(other, id);
            }
            self.forget_rates(slot, other);
            let peer = self.slots[other].id.clone();
            let _ = self.feed(slot, Input::Relinked { peer });
            if self.paths.are_modelled && path.is_direct() {
                let its_life = self.slots[slot].life;
                self.seen_at(slot, its_life, other);
                self.unblock();
            }
        }
        true
    }

    /// Another link carries the session of that place. It reads this one until the other end has that link, too.
    fn retire(&mut self, id: u64, slot: usize) {
        if let Some(link) = self.links.get_mut(&id) {
            let end = link.end_of(slot);
            link.retired[end] = true;
            self.paths.retired.insert(id);
        }
    }

    pub(super) fn is_retired(&self, id: u64, end: usize) -> bool {
        self.links.get(&id).is_some_and(|link| link.retired[end])
    }

    /// The other end of a replaced link has closed it.
    pub(super) fn retired_closed(&mut self, id: u64, end: usize) {
        if let Some(link) = self.links.get_mut(&id) {
            link.ended[end] = true;
        }
        self.sweep(id);
    }

    /// Ends the replaced links of a place with another: it has received something on their successor, or that one has ended.
    pub(super) fn end_retired(&mut self, slot: usize, other: usize) {
        let is_ended = |id: &&u64| {
            self.links.get(*id).is_some_and(|link| {
                let end = link.end_of(slot);
                let is_theirs = pair(link.slots[0], link.slots[1]) == pair(slot, other);
                is_theirs && link.retired[end] && !link.ended[end]
            })
        };
        let ended: Vec<u64> = self
            .paths
            .retired
            .iter()
            .filter(is_ended)
            .copied()
            .collect();
        for id in ended {
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            let end = link.end_of(slot);
            link.ended[end] = true;
            // The process lives on, on another link.
            link.given_ends[end] = LinkEnd::Silent;
            self.send_close(id, end, LinkEnd::Silent);
            self.sweep(id);
        }
    }

    /// A link fell silent: perhaps because its carrier drops packets one way.
    pub(super) fn note_one_way_loss(&mut self, slot: usize, peer: &PeerId) {
        let Some((id, end)) = self.session_with(slot, peer) else {
            return;
        };
        let Some(other) = self.other_end(id, slot) else {
            return;
        };
        let ways = [(end, slot, other), (1 - end, other, slot)];
        let is_dropped = ways
            .into_iter()
            .any(|(end, from, to)| match self.carrier_at(id, end) {
                Some(Via::Place(carrier)) => self.paths.drops.contains_key(&(carrier, from, to)),
                _ => false,
            });
        self.paths.counts.links_lost_one_way += u64::from(is_dropped);
    }

    /// A node has taken a link.
    pub(super) fn link_is_up(&mut self, id: u64, slot: usize, other: usize) {
        if !self.paths.are_modelled {
            return;
        }
        let is_present = self.slots[slot].process.as_ref();
        let is_present = is_present.and_then(|process| process.sessions.get(&other));
        if is_present != Some(&id) {
            return;
        }
        match self.link_path(id) {
            Path::Carried(CarrierKind::Relay) => self.paths.relays.counts.links += 1,
            Path::Carried(CarrierKind::Member) => {
                let counts = &mut self.paths.counts;
                counts.links_carried += 1;
                counts.old_members_carried += u64::from(self.paths.old.contains(&slot));
            }
            Path::Direct => {
                let life = self.slots[slot].life;
                self.seen_at(slot, life, other);
                // It may carry packets.
                self.unblock();
            }
        }
    }

    /// The addresses of a newcomer as its link shows them.
    pub(super) fn addresses_seen(&self, slot: usize, other: usize, dial: u64) -> Vec<SocketAddr> {
        let pending = self.dials.get(&dial);
        match pending.is_some_and(|pending| pending.over.is_some()) || slot == other {
            true => Vec::new(),
            false => vec![self.slots[other].address],
        }
    }
}
