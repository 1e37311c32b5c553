//! Bans of this node alone: peers that its host disconnected, and peers that broke the protocol, for a while.
//!
//! A violation bans the key that committed it, regardless of the id, so that no peer can be banned for the actions of
//! others under its id. The ban is temporary, and this node dials afterwards: another peer may have provoked the
//! violation.

use super::*;
use crate::bounded::BoundedMap;
use crate::introductions::Source;

/// Most peers that the host disconnected and that are remembered.
const MAX_DISCONNECTED: usize = 1024;
/// Most keys that broke the protocol and are remembered.
const MAX_VIOLATORS: usize = 1024;
/// Duration of the ban for the first violation; each further ban lasts twice as long.
const FIRST_BAN: Duration = Duration::from_secs(60);
/// Longest ban. This long after its end a key counts as one without violations.
const LONGEST_BAN: Duration = Duration::from_secs(3600);

/// The bans of this node; see the module's text.
#[derive(Debug, Clone, Default)]
pub(super) struct Bans {
    disconnected: BoundedMap<PeerId, (), MAX_DISCONNECTED>,
    violators: BoundedMap<Fingerprint, Violator, MAX_VIOLATORS>,
}

#[derive(Debug, Clone)]
struct Violator {
    /// The peer to dial when the ban is over; `None` after the dial.
    entry: Option<PeerEntry>,
    ban: Duration,
    until: Time,
}

impl Bans {
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let waiting = self.violators.values().filter(|one| one.entry.is_some());
        waiting.map(|one| one.until).min()
    }

    /// Bans a peer until one of both hosts asks for a link.
    pub(super) fn disconnect(&mut self, peer: &PeerId) {
        // The smallest id makes way.
        let disconnected = &mut self.disconnected;
        disconnected.insert_over(peer.clone(), (), |id, ()| id.clone());
    }

    pub(super) fn lift_disconnection(&mut self, peer: &PeerId) {
        self.disconnected.remove(peer);
    }

    pub(super) fn is_disconnected(&self, peer: &PeerId) -> bool {
        self.disconnected.contains_key(peer)
    }

    fn violated(&mut self, now: Time, entry: PeerEntry) {
        let violators = &mut self.violators;
        violators.retain(|_, one| now < one.until + LONGEST_BAN);
        let ban = match violators.get(&entry.key) {
            Some(before) => (before.ban * 2).min(LONGEST_BAN),
            None => FIRST_BAN,
        };
        let until = now + ban;
        let violator = |entry| Violator { entry, ban, until };
        // The one whose ban is over first makes way.
        violators.insert_over(entry.key, violator(Some(entry)), |_, one| one.until);
    }

    pub(super) fn pardon(&mut self, key: Fingerprint) {
        self.violators.remove(&key);
    }

    pub(super) fn is_violator(&self, now: Time, key: Fingerprint) -> bool {
        self.violators.get(&key).is_some_and(|one| now < one.until)
    }

    /// Whether the holder of `key` broke the protocol and was not dialled since.
    pub(super) fn is_undialled_violator(&self, key: Fingerprint) -> bool {
        self.violators
            .get(&key)
            .is_some_and(|one| one.entry.is_some())
    }

    /// Takes the peers whose bans are over.
    fn due(&mut self, now: Time) -> Vec<PeerEntry> {
        let over = self
            .violators
            .iter_mut()
            .filter(|(_, one)| now >= one.until);
        over.filter_map(|(_, one)| one.entry.take()).collect()
    }
}

impl Node {
    /// Whether this node refuses links with that peer, unless its own host asks for one.
    pub(super) fn is_banned(&self, now: Time, peer: &PeerId, key: Fingerprint) -> bool {
        self.bans.is_disconnected(peer) || self.bans.is_violator(now, key)
    }

    /// Bans a peer, linked or lost, that broke the protocol.
    pub(super) fn ban_violator(&mut self, now: Time, peer: &PeerId) {
        self.introductions.forget(peer);
        let linked = self.membership.get(peer);
        let addresses = linked.map(|member| member.addresses.clone());
        if let Some((key, _)) = self.id_holder(peer) {
            self.bans.violated(
                now,
                PeerEntry {
                    id: peer.clone(),
                    key,
                    addresses: addresses.unwrap_or_default(),
                },
            );
        }
    }

    /// Dials the peers whose bans are over, unless they are back by themselves. The room still decides about their
    /// admission.
    pub(super) fn bans_due(&mut self, now: Time) {
        for entry in self.bans.due(now) {
            self.dial_if_wanted(now, &entry);
        }
    }

    /// Dials a peer with which this node had a link, unless it is banned, has a link, or finds no place.
    pub(super) fn dial_if_wanted(&mut self, now: Time, entry: &PeerEntry) {
        let is_wanted = self.id_holder(&entry.id).is_none()
            && !self.is_kicked(&entry.id, entry.key)
            && !self.is_banned(now, &entry.id, entry.key)
            && self.membership.len() < self.config.max_connections;
        if is_wanted && !self.ended {
            self.introductions
                .introduce(now, &self.me, entry, Source::Own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn entry(n: usize) -> PeerEntry {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&n.to_be_bytes());
        PeerEntry {
            id: PeerId::new("m").expect("a valid name"),
            key: Fingerprint(key),
            addresses: Vec::new(),
        }
    }

    #[test]
    fn a_bar_grows_to_an_hour_and_an_hour_after_it_nothing_is_held_against_the_key() {
        let (mut bans, key) = (Bans::default(), entry(1).key);
        let mut now = 0;
        for ban in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            bans.violated(at(now), entry(1));
            assert!(bans.is_violator(at(now + ban - 1), key));
            now += ban;
            assert!(!bans.is_violator(at(now), key));
        }
        now += 3600;
        bans.violated(at(now), entry(1));
        assert!(!bans.is_violator(at(now + 60), key));
    }

    #[test]
    fn both_kinds_of_bars_are_bounded() {
        let mut bans = Bans::default();
        for n in 0..3000 {
            bans.violated(at(n as u64 / 1000), entry(n));
            bans.disconnect(&PeerId::new(&format!("p{n}")).expect("a valid name"));
        }
        assert_eq!(bans.violators.len(), MAX_VIOLATORS);
        assert_eq!(bans.disconnected.len(), MAX_DISCONNECTED);
        assert!(bans.is_violator(at(3), entry(2999).key));
    }
}
