//! Checks of paths after every input: what hosts are shown, what travels where, and how much.

use std::net::{IpAddr, SocketAddr};

use room_core::attempts::MAX_UNANSWERED_IF_CONFIRMED;
use room_core::node::{Event, Left, Returned};
use room_core::path::{Carrier, LinkPath, RelayNumber};
use room_core::time::Duration;
use room_core::wire::{MAX_EXCHANGED_ADDRESSES, Message, PeerEntry, Strategy};

use super::World;
use crate::links::{Loss, Planted, Via};

/// First two bytes of unused addresses.
pub(crate) const UNUSED: [u8; 2] = [198, 51];
/// Most dials of one process at an unused address within [`FORGOTTEN_AFTER`], ten minutes by the fastest clock, where a
/// liar is one of two members that see another one, so that the address counts as confirmed; five rounds in that time are extra.
const MOST_DIALS: usize = MAX_UNANSWERED_IF_CONFIRMED as usize + 5;
const FORGOTTEN_AFTER: Duration = Duration::from_secs(570);
/// Lists of addresses that a process may send to a peer at once, and the time for each further one: a second by the fastest
/// clock. Neither a new link nor a new search gives it more.
const LISTS_AT_ONCE: u32 = 2;
const BETWEEN_LISTS: Duration = Duration::from_millis(950);

impl World {
    /// An event of the core about a peer, as far as its path matters.
    pub(super) fn note_path(&mut self, slot: usize, event: &Event) {
        if !self.paths.are_modelled || self.paths.is_old(slot) {
            return;
        }
        let me = self.slots[slot].id.clone();
        match event {
            Event::Joined(peer)
            | Event::Reconnecting(peer)
            | Event::Returned(Returned { peer, .. })
            | Event::Left(Left { peer, .. }) => {
                self.paths.shown.remove(&(slot, peer.clone()));
                let other = self
                    .slot_of(peer)
                    .filter(|other| !self.paths.is_old(*other));
                if let Event::Reconnecting(_) = event {
                    let loss = other.map(|other| Loss {
                        slot,
                        other,
                        had_way: self.has_way(slot, other),
                    });
                    self.paths.losses.extend(loss);
                }
            }
            Event::PathChanged { peer, old, new } => {
                let is_linked = self.node(slot);
                let is_linked = is_linked.is_some_and(|node| node.membership().get(peer).is_some());
                let last = self.paths.shown.insert((slot, peer.clone()), new.clone());
                // Of two links in one moment the host learns the path of the first by the change alone.
                let is_new = last.is_none() && self.paths.depth > 1;
                if !is_linked || old == new || (last.as_ref() != Some(old) && !is_new) {
                    let text = format!("{me} was shown {last:?} to {peer}, and then {event:?}");
                    self.violate("paths", text);
                }
                self.paths.counts.paths_changed += 1;
                // Of two leaders that a member shows in turn, one may carry.
                let moves = old.carrier() != new.carrier() || old.carrier().is_none();
                *self.paths.changes.entry((slot, peer.clone())).or_default() += u32::from(moves);
            }
            _ => {}
        }
    }

    /// The paths that a node shows are the network's, and its host knows them. No carrier is gone.
    pub(super) fn check_paths(&mut self, slot: usize) {
        if !self.paths.are_modelled || self.paths.depth > 0 {
            return;
        }
        let mut found = None;
        let mut first_shown = Vec::new();
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let node = &process.node;
        let me = &self.slots[slot].id;
        let is_raft = self.settings.strategy == Strategy::Raft;
        if let Some(leader) = node.leader().filter(|leader| !is_raft && *leader != me)
            && node.membership().get(leader).is_some()
            && node.membership().elector(leader).is_none()
            && !node.is_over()
        {
            found = Some(format!("{me} shows {leader}, whose link is carried"));
        }
        for (peer, member) in node.membership().iter() {
            if self.paths.is_old(slot) {
                break;
            }
            let Some((id, end)) = self.session_with(slot, peer) else {
                continue;
            };
            let path = self.link_path(id);
            if member.path != path {
                let taken = member.path;
                found = Some(format!(
                    "{me} takes the link with {peer} for {taken:?}: {path:?}"
                ));
            }
            if let Some(Carrier::Relay(relay)) = &member.carrier
                && !process.leaving
                && !self.paths.relays.is_up_at(slot, relay.0)
            {
                found = Some(format!("{me} sends to {peer} over {relay}, which is down"));
            }
            let carrier = member.carrier.as_ref().and_then(Carrier::member);
            let carrier = carrier.filter(|_| !member.path.is_direct());
            if let Some(carrier) = carrier
                && node.membership().direct(carrier).is_none()
            {
                found = Some(format!(
                    "{me} sends to {peer} through {carrier}, which is gone"
                ));
            }
            let Some(shown) = node.path_to(peer) else {
                continue;
            };
            let network = match (path.is_direct(), self.carrier_at(id, end)) {
                (true, _) => Some(LinkPath::Direct),
                (false, None) => None,
                (false, Some(Via::Relay(relay))) => Some(LinkPath::Relay(RelayNumber(relay))),
                (false, Some(Via::Place(carrier))) => {
                    let carrier = self.slots[carrier].id.clone();
                    Some(match node.leader() == Some(&carrier) {
                        true => LinkPath::Leader(carrier),
                        false => LinkPath::Member(carrier),
                    })
                }
            };
            if network.as_ref().is_some_and(|network| *network != shown) {
                found = Some(format!(
                    "{me} shows {shown:?} to {peer}, and it is {network:?}"
                ));
            }
            match self.paths.shown.get(&(slot, peer.clone())) {
                None => first_shown.push((peer.clone(), shown)),
                Some(known) if *known != shown => {
                    found = Some(format!(
                        "{me} shows {shown:?} to {peer}, and its host knows {known:?}"
                    ));
                }
                Some(_) => {}
            }
        }
        for (peer, shown) in first_shown {
            self.paths.shown.insert((slot, peer), shown);
        }
        if let Some(text) = found {
            self.violate("paths", text);
        }
    }

    /// Whether a message goes onto its link; checks that it may: what travels over carried links, what members of the version
    /// before receive, and how often the messages about paths are sent.
    pub(crate) fn may_be_sent(&mut self, slot: usize, link: u64, message: &Message) -> bool {
        let Some(to) = self.other_end(link, slot) else {
            return true;
        };
        let kind = match message {
            Message::Observed { .. } => "Observed",
            Message::Addresses(_) => "Addresses",
            Message::Punch { .. } => "Punch",
            Message::CannotCarry { .. } => "CannotCarry",
            _ => "",
        };
        let planted = self.paths.planted;
        if (planted == Some(Planted::NeverPunches) && kind == "Punch")
            || (self.paths.is_old(slot) && !kind.is_empty())
        {
            return false;
        }
        if self.liars.contains(&slot) {
            return true;
        }
        let path = self.link_path(link);
        let is_carried = !path.is_direct();
        let counts = path.counts_in_elections();
        let (me, other) = (self.slots[slot].id.clone(), self.slots[to].id.clone());
        let may_travel = match message {
            Message::Heartbeat(heartbeat) => counts || heartbeat.pulse == Default::default(),
            Message::Leave { .. } | Message::LeaveAck | Message::Disconnected { .. } => true,
            Message::Addresses(_) | Message::Punch { .. } => is_carried,
            Message::Observed { .. } => !is_carried,
            Message::PeerList(entries) => counts && self.may_be_listed(slot, is_carried, entries),
            _ => counts,
        };
        if !may_travel {
            let text = format!("{me} sends {message:?} to {other}, carried: {is_carried}");
            self.violate("paths", text);
        }
        if self.names_hidden(slot, message) {
            let text = format!("{me} sends {message:?} to {other}");
            self.violate("hidden", text);
        }
        if !kind.is_empty() && self.paths.is_old(to) {
            let text = format!("{me} sends {message:?} to {other}, who does not know it");
            self.violate("features", text);
        }
        if let Message::Addresses(addresses) = message
            && addresses.len() > MAX_EXCHANGED_ADDRESSES
        {
            let text = format!("{me} sends {} addresses", addresses.len());
            self.violate("rates", text);
        }
        match message {
            Message::Addresses(_) => self.check_rate_of_lists(slot, to),
            _ => self.check_rate(slot, to, kind),
        }
        true
    }

    /// Whether a message names an address of a member that is reached over relays alone, which no other one knows.
    fn names_hidden(&self, slot: usize, message: &Message) -> bool {
        let named: Vec<SocketAddr> = match message {
            Message::PeerList(entries) => {
                let addresses = entries.iter().flat_map(|entry| &entry.addresses);
                addresses.copied().collect()
            }
            Message::Addresses(addresses) => addresses.clone(),
            Message::Observed { address } => vec![*address],
            Message::JoinRequest { candidate, .. } => candidate.entry.addresses.clone(),
            Message::Admitted { entry, .. } => entry.addresses.clone(),
            _ => Vec::new(),
        };
        let is_hidden = |address: &SocketAddr| {
            let mut hidden = self.paths.relayed_only.iter();
            hidden.any(|slot| {
                let seen = self.slots[*slot].address;
                *address == seen || *address == self.own_address(*slot)
            })
        };
        // Lies about others are hearsay that honest members pass on.
        let has_liars = !self.liars.is_empty();
        let dials =
            self.paths.relayed_only.contains(&slot) && matches!(message, Message::Punch { .. });
        dials || (!has_liars && named.iter().any(is_hidden))
    }

    /// Whether a list names addresses only of members with a direct link, and its sender's own only on one.
    fn may_be_listed(&self, slot: usize, is_carried: bool, entries: &[PeerEntry]) -> bool {
        let me = &self.slots[slot].id;
        let Some(node) = self.node(slot) else {
            return true;
        };
        entries.iter().all(|entry| {
            let is_hidden = match entry.id == *me {
                true => is_carried,
                false => {
                    let member = node.membership().get(&entry.id);
                    member.is_some_and(|member| !member.path.is_direct())
                }
            };
            entry.addresses.is_empty() || !is_hidden
        })
    }

    /// Messages of one kind from one node to one peer, on one link.
    fn check_rate(&mut self, slot: usize, to: usize, kind: &'static str) {
        let (most, within_ms) = match kind {
            // A minute by the fastest clock. One change is reported at once.
            "Observed" => (2, 57_000),
            // A new beginning may follow a round at once, and its own second round soon.
            "Punch" => (3, 1_400),
            // One report in a second for each member that it does not carry to.
            "CannotCarry" => (self.slots.len() + 4, 950),
            _ => return,
        };
        let now = self.now;
        let within = Duration::from_millis(within_ms);
        let times = self.paths.sent.entry((slot, to, kind)).or_default();
        times.retain(|at| now.since(*at) < within);
        times.push_back(now);
        let count = times.len();
        if count > most {
            let (me, other) = (&self.slots[slot].id, &self.slots[to].id);
            let text = format!("{me} sends {other} {count} of {kind} within {within:?}");
            self.violate("rates", text);
        }
    }

    /// Lists of addresses from one process to one peer, on all their links.
    fn check_rate_of_lists(&mut self, slot: usize, to: usize) {
        let now = self.now;
        let key = (slot, self.slots[slot].life, to);
        // The time at which all lists so far are paid for.
        let paid_at = self.paths.lists.entry(key).or_insert(now);
        *paid_at = (*paid_at).max(now) + BETWEEN_LISTS;
        if paid_at.since(now) > BETWEEN_LISTS * LISTS_AT_ONCE {
            let (me, other) = (&self.slots[slot].id, &self.slots[to].id);
            let text = format!(
                "{me} sends {other} more than {LISTS_AT_ONCE} lists of addresses and one a second"
            );
            self.violate("rates", text);
        }
    }

    /// A link of a pair is new: the rates of one link begin anew.
    pub(crate) fn forget_rates(&mut self, slot: usize, to: usize) {
        let sent = &mut self.paths.sent;
        sent.retain(|(from, other, _), _| (*from, *other) != (slot, to));
    }

    /// A node dials an address. Some that liars name are unused.
    pub(crate) fn note_dialled(&mut self, slot: usize, address: SocketAddr) {
        let ip = address.ip();
        let is_unused = matches!(ip, IpAddr::V4(ip) if ip.octets()[..2] == UNUSED);
        if !is_unused || self.liars.contains(&slot) {
            return;
        }
        self.paths.counts.victims_dialled += 1;
        let (now, life) = (self.now, self.slots[slot].life);
        let times = self.paths.dialled.entry((slot, life, ip)).or_default();
        times.retain(|at| now.since(*at) < FORGOTTEN_AFTER);
        times.push_back(now);
        let count = times.len();
        if count > MOST_DIALS {
            let me = &self.slots[slot].id;
            let text = format!("{me} dials {ip} {count} times within ten minutes");
            self.violate("victims", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use room_core::time::Duration;

    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// Two members with a direct link.
    fn room() -> World {
        let mut world = World::new(1, 2, Settings::default(), Trace::off());
        world.model_paths();
        for slot in 0..2 {
            world.start(slot);
        }
        world.connect(0, 1);
        world.run_for(Duration::from_secs(5));
        assert_eq!(found(&world), None);
        world
    }

    fn found(world: &World) -> Option<&'static str> {
        world.violation.as_ref().map(|found| found.property)
    }

    #[test]
    fn too_many_dials_at_an_unused_address_within_ten_minutes_is_seen() {
        let mut world = room();
        for dials in 1..=26 {
            let port = 1_000 + dials;
            world.note_dialled(0, SocketAddr::from(([UNUSED[0], UNUSED[1], 1, 1], port)));
            world.run_for(Duration::from_secs(20));
            assert_eq!(found(&world), (dials == 26).then_some("victims"));
        }
    }

    #[test]
    fn messages_about_paths_in_quick_succession_are_seen() {
        let mut world = room();
        let link = *world.links.keys().next().expect("they are linked");
        let address = world.slots[1].address;
        world.forget_rates(0, 1);
        for count in 1..=3 {
            assert!(world.may_be_sent(0, link, &Message::Observed { address }));
            assert_eq!(found(&world), (count == 3).then_some("rates"));
        }
    }

    /// Whether lists of addresses at these times are too many, each on a link of its own.
    fn lists_at(times_ms: &[u64]) -> bool {
        let mut world = room();
        let start = world.now;
        for ms in times_ms {
            let at = start + Duration::from_millis(*ms);
            world.run_for(at.since(world.now));
            assert_eq!(found(&world), None);
            world.forget_rates(0, 1);
            world.check_rate_of_lists(0, 1);
        }
        found(&world) == Some("rates")
    }

    #[test]
    fn more_lists_of_addresses_than_two_and_one_a_second_are_seen_whatever_begins_anew() {
        assert!(!lists_at(&[0, 0, 1_000, 2_000, 3_000, 10_000, 10_000]));
        assert!(lists_at(&[0, 0, 0]));
        assert!(lists_at(&[0, 0, 900]));
        assert!(lists_at(&[0, 500, 900]));
        assert!(lists_at(&[0, 0, 1_000, 1_000]));
        assert!(lists_at(&[0, 0, 1_000, 1_850]));
        // A rest gives no more than two.
        assert!(lists_at(&[0, 10_000, 10_000, 10_000]));
    }

    #[test]
    fn a_list_of_addresses_on_a_direct_link_is_seen() {
        let mut world = room();
        let link = *world.links.keys().next().expect("they are linked");
        world.may_be_sent(0, link, &Message::Addresses(Vec::new()));
        assert_eq!(found(&world), Some("paths"));
    }

    #[test]
    fn a_change_of_a_path_that_the_host_did_not_know_is_seen() {
        let mut world = room();
        let peer = world.slots[1].id.clone();
        let (old, new) = (LinkPath::Leader(peer.clone()), LinkPath::Direct);
        world.note_path(0, &Event::PathChanged { peer, old, new });
        assert_eq!(found(&world), Some("paths"));
    }
}
