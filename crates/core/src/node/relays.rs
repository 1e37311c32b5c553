//! Relays: processes outside of the room that forward packets between its members.

use super::*;
use crate::bounded::BoundedMap;
use crate::introductions::Source;
use crate::path::{Carrier, MAX_AT_RELAY, MAX_RELAYS, RelayNumber};
use crate::virtual_address::virtual_id;

/// The links with relays.
#[derive(Debug, Default)]
pub(super) struct Relays(BoundedMap<RelayNumber, Relay, MAX_RELAYS>);

#[derive(Debug)]
struct Relay {
    key: Fingerprint,
    /// Since when it is silent or gone, if it is.
    down_since: Option<Time>,
    /// Where it sees this node.
    observed: SocketAddr,
    present: BoundedMap<Fingerprint, (), MAX_AT_RELAY>,
}

impl Relay {
    fn is_up(&self) -> bool {
        self.down_since.is_none()
    }
}

impl Relays {
    /// The relays that carry packets to the holder of a key, as far as known, in order of preference: those where it is
    /// present, and all of them if it `may_hide`.
    pub(super) fn to(&self, key: Fingerprint, may_hide: bool) -> impl Iterator<Item = RelayNumber> {
        let relays = self.0.iter();
        let able = relays.filter(move |(_, relay)| {
            relay.is_up() && (may_hide || relay.present.contains_key(&key))
        });
        able.map(|(relay, _)| *relay)
    }

    /// Whether this node has entered no relay so far.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    fn is_up(&self, number: RelayNumber) -> bool {
        self.0.get(&number).is_some_and(Relay::is_up)
    }

    /// The keys of the relays that are down, and since when.
    fn down(&self) -> impl Iterator<Item = (Fingerprint, Time)> {
        let relays = self.0.values();
        relays.filter_map(|relay| Some((relay.key, relay.down_since?)))
    }

    fn with_key(&self, key: Fingerprint) -> impl Iterator<Item = RelayNumber> {
        let relays = self.0.iter().filter(move |(_, relay)| relay.key == key);
        relays.map(|(number, _)| *number)
    }

    /// Where the relays see this node.
    pub(super) fn observed(&self) -> impl Iterator<Item = SocketAddr> {
        let up = self.0.values().filter(|relay| relay.is_up());
        up.map(|relay| relay.observed)
    }

    fn changed(&mut self, now: Time, number: RelayNumber, change: RelayChange) {
        if let RelayChange::Up { observed, key } = change {
            let relay = Relay {
                key,
                down_since: None,
                observed,
                present: BoundedMap::default(),
            };
            // The options name no more relays than there is room for.
            let _ = self.0.insert(number, relay);
        }
        let Some(relay) = self.0.get_mut(&number) else {
            return;
        };
        match change {
            RelayChange::Up { .. } => {}
            RelayChange::Observed(observed) => relay.observed = observed,
            // A process that is not noted is dialled by others that note this one.
            RelayChange::Present(key) => drop(relay.present.insert(key, ())),
            RelayChange::Gone(key) => drop(relay.present.remove(&key)),
            RelayChange::Down => drop(relay.down_since.get_or_insert(now)),
        }
    }
}

impl Node {
    /// Handles what a relay reports, or what became of the link with it.
    pub(super) fn relay_changed(&mut self, now: Time, relay: RelayNumber, change: RelayChange) {
        let has_fallen = change == RelayChange::Down && self.relays.is_up(relay);
        let held = match has_fallen {
            true => self.carried_by(relay),
            false => Vec::new(),
        };
        self.relays.changed(now, relay, change);
        self.paths_changed = true;
        self.hold(now, held);
        if has_fallen {
            self.choose_carriers(now);
            for peer in self.report_silent_relays_to_all() {
                // Its answer is a sign of life, long before its next heartbeat.
                self.ping(&peer);
            }
        }
        self.weigh_mapping(now);
        match change {
            RelayChange::Up { .. } => {
                self.introductions.take_without_addresses();
                if self.is_star() {
                    self.dial_hidden(now);
                }
            }
            RelayChange::Present(key) => self.is_present(now, relay, key),
            RelayChange::Observed(_) | RelayChange::Gone(_) | RelayChange::Down => {}
        }
    }

    /// The members whose link this relay carries.
    fn carried_by(&self, relay: RelayNumber) -> Vec<PeerId> {
        let its = Some(Carrier::Relay(relay));
        let members = self.membership.iter();
        let its = members.filter(|(_, member)| member.carrier == its);
        its.map(|(peer, _)| peer.clone()).collect()
    }

    /// Handles the fall of the relay that carried the links of these members: their silence does not count for a while,
    /// unless another relay carries on. Elections know for how long: an empty seat is no reason to campaign.
    fn hold(&mut self, now: Time, peers: Vec<PeerId>) {
        for peer in peers {
            let Some(member) = self.membership.get(&peer) else {
                continue;
            };
            // A leader in doubt was silent for the whole timeout before the relay fell.
            let in_doubt = self.view.doubted.as_ref() == Some(&peer);
            if in_doubt || self.relays_to(member.key).next().is_some() {
                continue;
            }
            let Some(member) = self.membership.get_mut(&peer) else {
                continue;
            };
            member.hold(now);
            if let Some(until) = member.held_until(now) {
                self.view.held.insert(peer, until);
            }
        }
        if !self.view.held.is_empty() {
            self.elect(now, Local::Tick);
        }
    }

    /// Reports each relay that is down to all members; returns the members to which there was something to report.
    pub(super) fn report_silent_relays_to_all(&mut self) -> Vec<PeerId> {
        if self.relays.down().next().is_none() {
            return Vec::new();
        }
        let mut peers = self.membership.ids();
        peers.retain(|peer| self.report_silent_relays(peer));
        peers
    }

    /// Reports each relay that is down to a member that this node reaches over another one: the member may reach that relay, and
    /// would go on to send its packets there. Repeated until it gives a sign of life, for a datagram may be lost. Returns whether
    /// there was something to report.
    pub(super) fn report_silent_relays(&mut self, peer: &PeerId) -> bool {
        let Some(member) = self.membership.get(peer) else {
            return false;
        };
        let is_over_relay = matches!(member.carrier, Some(Carrier::Relay(_)));
        if !is_over_relay || !member.knows_silent_relays() {
            return false;
        }
        let silent = self.relays.down();
        let unanswered = silent.filter(|(_, since)| !member.had_sign_of_life_after(*since));
        let reports = unanswered.map(|(relay, _)| Output::Datagram {
            to: peer.clone(),
            probe: Probe::SilentRelay { relay },
        });
        let before = self.outputs.len();
        self.outputs.extend(reports);
        self.outputs.len() > before
    }

    /// Handles a member's report that it receives nothing from a relay: this node's packets to it take another one. While no
    /// other is left that the member has not reported too, nothing changes, so reports move a link once in a while at most.
    pub(super) fn relay_is_silent_for(&mut self, now: Time, peer: &PeerId, relay: Fingerprint) {
        let Some(member) = self.membership.get(peer) else {
            return;
        };
        let key = member.key;
        for number in self.relays.with_key(relay).collect::<Vec<_>>() {
            let others = self.relays_to(key).filter(|other| *other != number);
            let has_other = { others }.any(|other| !self.has_fallen_silent(now, other, key));
            if has_other {
                self.note_silent(now, number, key);
            }
        }
    }

    /// Handles the presence of the holder of a key at a relay: it is dialled over it if it is a member without a link that
    /// counts in elections. The driver dials strangers.
    fn is_present(&mut self, now: Time, relay: RelayNumber, key: Fingerprint) {
        self.carrying
            .forget(&Carrier::Relay(relay), virtual_id(key));
        let member = self.membership.iter().find(|(_, member)| member.key == key);
        if let Some(peer) = member.map(|(peer, _)| peer.clone()) {
            return self.consider_relays_to(now, &peer);
        }
        let absent = self.absent_peers().find(|(_, lost, _)| *lost == key);
        if let Some(peer) = absent.map(|(peer, ..)| peer.clone()) {
            return self.dial_over_relays(now, &peer, key);
        }
        let Some(peer) = self.vouched_holder(now, key) else {
            return;
        };
        let keeps_out = self.is_kicked(&peer, key) || self.is_banned(now, &peer, key);
        let has_place = self.membership.len() < self.config.max_connections;
        if keeps_out || self.ended || !has_place || self.id_holder(&peer).is_some() {
            return;
        }
        let entry = PeerEntry {
            id: peer.clone(),
            key,
            addresses: Vec::new(),
        };
        // The introduction may have been forgotten while no way led to the peer.
        self.introductions
            .introduce(now, &self.me, &entry, Source::Member);
        self.dial_over_relays(now, &peer, key);
    }

    /// Dials the guests of a star that this node has no link with: they are hidden at the relay that has come up.
    fn dial_hidden(&mut self, now: Time) {
        for (peer, key) in self.introductions.unlinked() {
            self.dial_over_relays(now, &peer, key);
        }
    }

    /// Has a peer without a link dialled soon if a relay can carry packets to it.
    pub(super) fn dial_over_relays(&mut self, now: Time, peer: &PeerId, key: Fingerprint) {
        if self.relays_to(key).next().is_some() {
            self.introductions.reachable(now, &self.me, peer, key);
        }
    }

    /// Has a member whose link another member carries dialled over a relay, too, if one can carry packets to it.
    pub(super) fn consider_relays_to(&mut self, now: Time, peer: &PeerId) {
        let Some(member) = self.membership.get(peer) else {
            return;
        };
        let is_better = !member.path.counts_in_elections() && !self.is_star();
        let goes = is_better && self.relays_to(member.key).next().is_some();
        self.introductions
            .dial_over_relays(now, &self.me, peer, goes);
    }
}
