//! Observed addresses: where members see each other's packets come from. Behind a router a member learns its address on
//! the internet only from others.

use super::*;
use crate::address::{is_dialable, is_global};
use crate::wire::MAX_EXCHANGED_ADDRESSES;

/// Minimum time between two changes of an observed address: at its sender, and at its receiver, which ignores earlier
/// ones.
const BETWEEN_CHANGES: Duration = Duration::from_secs(60);
/// Tolerance of the receiver: messages do not travel equally fast.
const TOLERANCE: Duration = Duration::from_secs(5);
/// Most observed addresses in an exchange of addresses.
const MAX_OBSERVED: usize = 4;

impl Node {
    /// Handles where a peer's packets come from.
    pub(super) fn seen_at(&mut self, now: Time, peer: &PeerId, address: SocketAddr, came: bool) {
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        member.observations.came = came;
        if !member.path.is_direct() || member.observations.of_peer == Some(address) {
            return;
        }
        let observations = &mut member.observations;
        let is_first = observations.of_peer.replace(address).is_none();
        self.introductions.answered(now, address);
        if is_first {
            // The others learn it with the news of the member.
            observations.announced.take(now, address, BETWEEN_CHANGES);
        } else if is_dialable(address) {
            member.addresses.retain(|known| *known != address);
            member.addresses.insert(0, address);
            member.addresses.truncate(MAX_PEER_ADDRESSES);
        }
        self.report_observed(now, peer);
    }

    /// Notes whether the packets of a link pass through this node's port at a TURN server: of two links of a session the other one may
    /// be used now.
    pub(super) fn note_turn(&mut self, peer: &PeerId, through_turn: bool) {
        if let Some(member) = self.membership.get_mut(peer) {
            self.paths_changed |= member.through_turn != through_turn;
            member.through_turn = through_turn;
        }
    }

    /// Reports to the peers where this node sees them, and announces their new addresses, as far as the intervals allow.
    pub(super) fn report_all_observed(&mut self, now: Time) {
        for peer in self.membership.ids() {
            self.report_observed(now, &peer);
        }
    }

    /// Reports the same address to a peer again, which may have missed the report.
    pub(super) fn report_observed_again(&mut self, peer: &PeerId) {
        let member = self.membership.get(peer);
        let reported = member.and_then(|member| member.observations.reported.address);
        if let Some(address) = reported {
            self.transmit_with(peer, Message::Observed { address }, false);
        }
    }

    fn report_observed(&mut self, now: Time, peer: &PeerId) {
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        let Some(address) = member.observations.of_peer else {
            return;
        };
        let understands = member.knows_paths();
        let observations = &mut member.observations;
        let reported = &mut observations.reported;
        let reports = understands && reported.take(now, address, BETWEEN_CHANGES);
        let announces = observations.announced.take(now, address, BETWEEN_CHANGES);
        if reports {
            self.transmit_with(peer, Message::Observed { address }, false);
        }
        if announces && !self.is_star() {
            self.introduce_to_others(now, [peer.clone()]);
        }
    }

    /// Handles where a peer sees this node.
    pub(super) fn observed(&mut self, now: Time, from: &PeerId, address: SocketAddr) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        if member.path.is_direct() && is_dialable(address) {
            let of_me = &mut member.observations.of_me;
            of_me.take(now, address, BETWEEN_CHANGES - TOLERANCE);
            self.weigh_mapping(now);
        }
    }

    /// Where members on the internet reach this node: the mapped address, or the one at which most of them see it. `None` if
    /// the router maps none and no member sees this node at an address of the internet.
    pub fn public_address(&self) -> Option<SocketAddr> {
        let mapped = self.mapping.working();
        mapped.or_else(|| self.public_addresses().first().copied())
    }

    /// Where members and relays see this node; not at its port at a TURN server, which is in no network of this node.
    pub(super) fn all_observed(&self) -> impl Iterator<Item = SocketAddr> {
        let members = self.membership.iter();
        let seen = members.filter_map(|(_, member)| member.observations.of_me.address);
        let all = seen.chain(self.relays.observed());
        all.filter(|at| self.turn_address != Some(*at))
    }

    /// The address of the internet at which most members see this node; several if as many see each of them.
    pub(super) fn public_addresses(&self) -> Vec<SocketAddr> {
        let mut counts = BTreeMap::<SocketAddr, usize>::new();
        for address in self.all_observed().filter(|at| is_global(at.ip())) {
            *counts.entry(address).or_default() += 1;
        }
        let most = counts.values().copied().max();
        counts.retain(|_, count| Some(*count) == most);
        counts.into_keys().collect()
    }

    /// This node's addresses for a peer: the one that its router maps, where others see it, and the ones of its interfaces that the peer may know. Private
    /// ones are for peers of the same network: others could not dial them, and they say which networks this player uses.
    pub(super) fn addresses_for(&self, theirs: &[SocketAddr]) -> Vec<SocketAddr> {
        if self.config.relayed_only {
            return Vec::new();
        }
        let observed = self.public_addresses();
        let is_near = self.is_in_same_network(&observed, theirs);
        let own = self.config.addresses.iter().copied();
        let own = own.filter(|address| is_near || is_global(address.ip()));
        let mut addresses: Vec<SocketAddr> = Vec::new();
        let mapped = self.mapping.address().into_iter();
        for address in mapped
            .chain(observed.iter().copied().take(MAX_OBSERVED))
            .chain(own)
        {
            if !addresses.contains(&address) && addresses.len() < MAX_EXCHANGED_ADDRESSES {
                addresses.push(address);
            }
        }
        addresses
    }

    /// Adds this node's address at a TURN server to a list for a peer with these addresses, as the last one. Only the server states it:
    /// so it gets single packets until it answers, and a private one is for peers of the same network, as it would lead others astray
    /// in theirs.
    pub(super) fn add_turn_address(&self, addresses: &mut Vec<SocketAddr>, theirs: &[SocketAddr]) {
        let is_near = || self.is_in_same_network(&self.public_addresses(), theirs);
        let Some(address) = self
            .turn_address
            .filter(|_| !self.config.relayed_only)
            .filter(|at| is_global(at.ip()) || is_near())
        else {
            return;
        };
        if !addresses.contains(&address) {
            addresses.truncate(MAX_EXCHANGED_ADDRESSES - 1);
            addresses.push(address);
        }
    }

    /// Whether a peer with these addresses is in a network of this node: it has a private address, or the same address
    /// on the internet.
    fn is_in_same_network(&self, observed: &[SocketAddr], theirs: &[SocketAddr]) -> bool {
        let ip = |address: &SocketAddr| address.ip().to_canonical();
        let is_mine = |their: &SocketAddr| observed.iter().any(|mine| ip(mine) == ip(their));
        match theirs.first() {
            Some(first) if !is_global(first.ip()) => true,
            _ => theirs.iter().any(is_mine),
        }
    }
}
