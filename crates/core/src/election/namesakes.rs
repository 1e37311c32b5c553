//! Conflict of ids between two sides of a room: the leader of one has the id of a member of the other, and only one can
//! stay.
//!
//! Each member of the side that yields moves by itself, and only when at least as many keys follow the leader that
//! stays as follow its own. So no single process moves a member, whatever it claims.

use std::collections::BTreeMap;

use crate::id::{Fingerprint, PeerId};
use crate::time::{Duration, Time};

/// The time for which a linked peer must have followed a namesake of this node's leader before the two are compared
/// without a Hello. Sides that were compared by their Hellos have moved by then.
const COMPARED_AFTER: Duration = Duration::from_secs(3);

/// A leader, by its id and its key.
pub type NamedLeader = (PeerId, Fingerprint);

/// The leaders of both sides, as this node sees them.
#[derive(Debug, Clone, Default)]
pub(super) struct Namesakes {
    /// The living leader that each linked peer named last, and since when.
    named_by: BTreeMap<PeerId, (NamedLeader, Time)>,
    /// The leader of the side that stays, if this node's side yields.
    stays: Option<NamedLeader>,
}

impl Namesakes {
    /// A linked peer names a living leader or none, or is no longer linked.
    pub(super) fn note(&mut self, now: Time, peer: &PeerId, leader: Option<NamedLeader>) {
        if leader.as_ref() == self.names(peer) {
            return;
        }
        match leader {
            Some(leader) => self.named_by.insert(peer.clone(), (leader, now)),
            None => self.named_by.remove(peer),
        };
    }

    /// The leader that a linked peer named last.
    pub(super) fn names(&self, peer: &PeerId) -> Option<&NamedLeader> {
        self.named_by.get(peer).map(|(leader, _)| leader)
    }

    /// The leader that a linked peer has named for [`COMPARED_AFTER`], if this node's side yields to it: fewer keys
    /// follow `own`, or equally many and its key is the smaller one. Decides between leaders that were elected after
    /// their sides had met.
    pub(super) fn yields_to(
        &self,
        now: Time,
        peer: &PeerId,
        own: &NamedLeader,
        leads: bool,
    ) -> Option<&NamedLeader> {
        let (named, since) = self.named_by.get(peer)?;
        let sizes = (self.size_of_own(own, leads), 1 + self.count(named));
        let yields = (sizes.0, own.1) < (sizes.1, named.1);
        (yields && now.since(*since) >= COMPARED_AFTER).then_some(named)
    }

    /// Notes that this node's side yields to `leader`.
    pub(super) fn meet(&mut self, leader: NamedLeader) {
        self.stays = Some(leader);
    }

    /// Notes that this node follows `leader` now.
    pub(super) fn follow(&mut self, leader: &PeerId, key: Option<Fingerprint>) {
        let is_it = |stays: &mut NamedLeader| stays.0 == *leader && key == Some(stays.1);
        self.stays.take_if(is_it);
    }

    /// The leader that stays, if this node moves to it. `own` is the leader that this node follows; `leads` is whether
    /// this node is that leader. Its own key and its leader's key count.
    pub(super) fn moves_to(
        &self,
        own: Option<&NamedLeader>,
        leads: bool,
    ) -> Option<(&PeerId, Fingerprint)> {
        let stays = self.stays.as_ref()?;
        let own = own.map_or(1, |own| self.size_of_own(own, leads));
        (1 + self.count(stays) >= own).then_some((&stays.0, stays.1))
    }

    /// The number of keys that follow this node's leader, including the leader's own.
    fn size_of_own(&self, own: &NamedLeader, leads: bool) -> usize {
        self.count(own) + if leads { 1 } else { 2 }
    }

    fn count(&self, leader: &NamedLeader) -> usize {
        let others = self.named_by.iter().filter(|(peer, _)| **peer != leader.0);
        others.filter(|(_, (named, _))| named == leader).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(name: &str, key: u8) -> NamedLeader {
        let id = PeerId::new(name).expect("valid");
        (id, Fingerprint([key; 32]))
    }

    fn id(name: &str) -> PeerId {
        leader(name, 0).0
    }

    #[test]
    fn a_member_moves_only_to_a_side_of_which_it_sees_as_many_keys_as_of_its_own() {
        let (own, other) = (leader("player", 1), leader("player", 2));
        let mut namesakes = Namesakes::default();
        assert_eq!(
            namesakes.moves_to(Some(&own), false),
            None,
            "it met no other side"
        );
        namesakes.meet(other.clone());
        assert_eq!(
            namesakes.moves_to(Some(&own), false),
            None,
            "one key moves no member"
        );
        namesakes.note(Time::ZERO, &id("x"), Some(other.clone()));
        assert_eq!(
            namesakes.moves_to(Some(&own), false),
            Some((&other.0, other.1))
        );
        namesakes.note(Time::ZERO, &id("y"), Some(own.clone()));
        assert_eq!(namesakes.moves_to(Some(&own), false), None);
        namesakes.note(Time::ZERO, &id("y"), None);
        namesakes.follow(&other.0, Some(own.1));
        assert_eq!(
            namesakes.moves_to(Some(&own), false),
            Some((&other.0, other.1))
        );
        namesakes.follow(&other.0, Some(other.1));
        assert_eq!(namesakes.moves_to(Some(&own), false), None, "it is there");
    }

    #[test]
    fn leaders_elected_after_a_merge_are_compared_by_keys_that_follow_them() {
        let (own, other) = (leader("player", 1), leader("player", 2));
        let mut namesakes = Namesakes::default();
        let long = Time::ZERO + COMPARED_AFTER;
        namesakes.note(Time::ZERO, &id("x"), Some(other.clone()));
        let yields = |namesakes: &Namesakes, at, own: &NamedLeader| {
            let to = namesakes.yields_to(at, &id("x"), own, false);
            to.is_some()
        };
        assert!(yields(&namesakes, long, &own), "its key is smaller");
        assert!(!yields(&namesakes, Time::ZERO, &own), "a Hello comes first");
        assert!(!yields(&namesakes, long, &leader("player", 3)));
        namesakes.note(Time::ZERO, &id("y"), Some(own.clone()));
        assert!(!yields(&namesakes, long, &own), "it is the larger side");
        namesakes.note(long, &id("x"), Some(own.clone()));
        namesakes.note(long, &id("x"), Some(other));
        assert!(!yields(&namesakes, long, &own), "it changed its mind");
    }
}
