//! The states of the members, which only the leader changes (A3.3).

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::wire::{MAX_LISTED, Observation};
use crate::bounded::BoundedMap;
use crate::id::{Incarnation, PeerId};

/// The state of a member.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum MemberState {
    /// It is in no cluster.
    #[default]
    Init,
    /// The leader has accepted it.
    Joining,
    /// It takes part.
    Active,
    /// The leader has not heard it for the heartbeat timeout.
    Unreachable,
    /// The leader has not heard it for the TTL timeout, and is removing it.
    Leaving,
    /// It is no longer a member.
    Removed,
}

impl MemberState {
    /// The next state on the way to `target`; `None` if no transition leads there.
    fn towards(self, target: Self) -> Option<Self> {
        use MemberState as S;
        match (self, target) {
            (S::Init, S::Joining | S::Active | S::Unreachable) => Some(S::Joining),
            (S::Joining, S::Active | S::Unreachable | S::Leaving | S::Removed) => Some(S::Active),
            (S::Active, S::Unreachable | S::Leaving | S::Removed) => Some(S::Unreachable),
            (S::Unreachable, S::Active) => Some(S::Active),
            (S::Unreachable, S::Leaving | S::Removed) => Some(S::Leaving),
            (S::Leaving, S::Removed) => Some(S::Removed),
            _ => None,
        }
    }
}

/// A member as the leader lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The member.
    pub id: PeerId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its state.
    pub state: MemberState,
}

/// A hash by which two members compare their tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest([u8; 16]);

/// The known members, and their changes that are not reported yet.
#[derive(Debug, Clone)]
pub(super) struct Members {
    table: BoundedMap<PeerId, (Incarnation, MemberState), MAX_LISTED>,
    /// Members that always have a place in the table, whatever fills it: a leader counts acknowledgements of its
    /// members.
    reserved: BTreeSet<PeerId>,
    /// Taken after every input.
    changes: VecDeque<(PeerId, MemberState)>,
}

impl Members {
    /// An empty table in which `reserved` always have a place.
    pub(super) fn with_places_for(reserved: BTreeSet<PeerId>) -> Self {
        debug_assert!(reserved.len() <= MAX_LISTED, "a roster is shorter");
        Self {
            table: BoundedMap::default(),
            reserved,
            changes: VecDeque::new(),
        }
    }

    /// The state of `id`.
    pub(super) fn state(&self, id: &PeerId) -> MemberState {
        self.table
            .get(id)
            .map_or(MemberState::Init, |(_, state)| *state)
    }

    /// Whether exactly this incarnation is listed.
    pub(super) fn lists(&self, id: &PeerId, incarnation: Incarnation) -> bool {
        self.table
            .get(id)
            .is_some_and(|(listed, _)| *listed == incarnation)
    }

    pub(super) fn incarnation(&self, id: &PeerId) -> Option<Incarnation> {
        self.table.get(id).map(|(incarnation, _)| *incarnation)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &PeerId> {
        self.table.keys()
    }

    /// All members, sorted.
    pub(super) fn list(&self) -> Vec<Listed> {
        let listed = |(id, (incarnation, state)): (&PeerId, &(Incarnation, MemberState))| Listed {
            id: id.clone(),
            incarnation: *incarnation,
            state: *state,
        };
        self.table.iter().map(listed).collect()
    }

    /// Brings a member into a state, through all states between. Another incarnation of it is removed first. Nothing
    /// changes if no transition leads to the state, or if there is no place for a new member. Returns whether anything
    /// changed.
    pub(super) fn set(
        &mut self,
        id: &PeerId,
        incarnation: Incarnation,
        target: MemberState,
    ) -> bool {
        let reported = self.changes.len();
        if !self.lists(id, incarnation) {
            self.remove(id);
        }
        let goes_on = !matches!(target, MemberState::Leaving | MemberState::Removed);
        if goes_on && self.state(id) == MemberState::Leaving {
            // This node missed that the member was removed meanwhile.
            self.remove(id);
        }
        let mut state = self.state(id);
        while let Some(next) = state.towards(target).filter(|_| state != target) {
            let is_listed = self.has_place_for(id)
                && self.table.insert(id.clone(), (incarnation, next)).is_ok();
            if !is_listed {
                break;
            }
            state = next;
            self.changes.push_back((id.clone(), state));
        }
        if state == MemberState::Removed {
            self.table.remove(id);
        }
        self.changes.len() != reported
    }

    /// Whether the table holds `id`, or has a place for it.
    fn has_place_for(&self, id: &PeerId) -> bool {
        let is_missing = |id: &&PeerId| !self.table.contains_key(*id);
        let missing = || self.reserved.iter().filter(is_missing).count();
        self.table.contains_key(id)
            || self.reserved.contains(id)
            || self.table.len() + missing() < MAX_LISTED
    }

    /// Removes a member, through all states between.
    pub(super) fn remove(&mut self, id: &PeerId) -> bool {
        match self.incarnation(id) {
            Some(incarnation) => self.set(id, incarnation, MemberState::Removed),
            None => false,
        }
    }

    /// Adopts the leader's table: members that are not in it are removed.
    pub(super) fn align(&mut self, listed: &[Listed]) {
        let is_listed = |id: &PeerId| listed.iter().any(|listed| listed.id == *id);
        let ids: Vec<_> = self.ids().cloned().collect();
        for gone in ids.iter().filter(|id| !is_listed(id)) {
            self.remove(gone);
        }
        for member in listed {
            self.set(&member.id, member.incarnation, member.state);
        }
    }

    /// Forgets all members: `me` is no longer in a cluster.
    pub(super) fn reset(&mut self, me: &PeerId) {
        let was_in_one = self.state(me) != MemberState::Init;
        self.table.clear();
        if was_in_one {
            self.changes.push_back((me.clone(), MemberState::Init));
        }
    }

    /// The next change to report.
    pub(super) fn poll_change(&mut self) -> Option<(PeerId, MemberState)> {
        self.changes.pop_front()
    }

    /// A hash that is equal for equal tables under one leader and version.
    pub(super) fn digest(&self, observed: &Observation) -> Digest {
        let mut hash = Sha256::new();
        // Tables and observations have no part that cannot be encoded.
        for part in [
            postcard::to_allocvec(observed),
            postcard::to_allocvec(&self.list()),
        ] {
            hash.update(part.unwrap_or_default());
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash[..16]);
        Digest(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemberState as S;

    const ALL: [S; 6] = [
        S::Init,
        S::Joining,
        S::Active,
        S::Unreachable,
        S::Leaving,
        S::Removed,
    ];

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("a name")
    }

    fn empty() -> Members {
        Members::with_places_for(BTreeSet::new())
    }

    fn life(number: u64) -> Incarnation {
        Incarnation {
            started_us: number,
            random: number,
        }
    }

    fn changes(members: &mut Members) -> Vec<MemberState> {
        std::iter::from_fn(|| members.poll_change())
            .map(|(_, state)| state)
            .collect()
    }

    #[test]
    fn the_transitions_are_those_of_the_state_machine() {
        let mut edges = Vec::new();
        for from in ALL {
            for to in ALL {
                if from.towards(to) == Some(to) {
                    edges.push((from, to));
                }
            }
        }
        assert_eq!(
            edges,
            [
                (S::Init, S::Joining),
                (S::Joining, S::Active),
                (S::Active, S::Unreachable),
                (S::Unreachable, S::Active),
                (S::Unreachable, S::Leaving),
                (S::Leaving, S::Removed),
            ]
        );
    }

    #[test]
    fn a_member_goes_through_all_states_between() {
        let mut members = empty();
        assert!(members.set(&id("a"), life(1), S::Unreachable));
        assert_eq!(
            changes(&mut members),
            [S::Joining, S::Active, S::Unreachable]
        );
        assert!(members.set(&id("a"), life(1), S::Active));
        assert!(members.remove(&id("a")));
        assert_eq!(
            changes(&mut members),
            [S::Active, S::Unreachable, S::Leaving, S::Removed]
        );
        assert_eq!(members.state(&id("a")), S::Init);
        assert!(!members.remove(&id("a")));
    }

    #[test]
    fn case_2_a_late_joining_does_not_undo_active() {
        let mut members = empty();
        members.set(&id("a"), life(1), S::Active);
        changes(&mut members);
        assert!(!members.set(&id("a"), life(1), S::Joining));
        assert_eq!(members.state(&id("a")), S::Active);
    }

    #[test]
    fn t21_another_incarnation_takes_the_place_of_the_one_before() {
        let mut members = empty();
        members.set(&id("a"), life(1), S::Active);
        changes(&mut members);
        members.set(&id("a"), life(2), S::Joining);
        assert_eq!(
            changes(&mut members),
            [S::Unreachable, S::Leaving, S::Removed, S::Joining]
        );
    }

    #[test]
    fn a_member_whose_removal_was_missed_is_a_member_anew() {
        let mut members = empty();
        members.set(&id("a"), life(1), S::Leaving);
        assert_eq!(members.state(&id("a")), S::Init, "it was none");
        members.set(&id("a"), life(1), S::Active);
        members.set(&id("a"), life(1), S::Leaving);
        changes(&mut members);
        assert!(members.set(&id("a"), life(1), S::Active));
        assert_eq!(changes(&mut members), [S::Removed, S::Joining, S::Active]);
    }

    /// Case 3: the public system's alignment adds active members and removes members that are not listed; it leaves the
    /// states of others.
    #[test]
    fn case_3_an_alignment_brings_members_in_every_state() {
        let listed = |name: &str, state| Listed {
            id: id(name),
            incarnation: life(1),
            state,
        };
        let mut members = empty();
        for (name, state) in [("a", S::Active), ("b", S::Active), ("c", S::Unreachable)] {
            members.set(&id(name), life(1), state);
        }
        let table = [
            listed("a", S::Unreachable),
            listed("c", S::Active),
            listed("d", S::Joining),
            listed("e", S::Unreachable),
        ];
        members.align(&table);
        assert_eq!(members.list(), table);
        let observed = Observation::default();
        let digest = members.digest(&observed);
        members.align(&table);
        assert_eq!(members.digest(&observed), digest);
        let later = Observation {
            version: 1,
            ..observed
        };
        assert_ne!(members.digest(&later), digest);
        members.set(&id("a"), life(1), S::Active);
        assert_ne!(members.digest(&Observation::default()), digest);
    }

    #[test]
    fn the_table_has_a_bound_and_a_place_for_each_of_the_reserved() {
        let reserved = ["zoe", "me"].map(id);
        let mut members = Members::with_places_for(reserved.iter().cloned().collect());
        for number in 0..2 * MAX_LISTED {
            let made_up = id(&format!("m{number}"));
            let is_new = members.set(&made_up, life(1), S::Unreachable);
            assert_eq!(is_new, number < MAX_LISTED - reserved.len(), "{number}");
        }
        for id in &reserved {
            assert!(members.set(id, life(1), S::Active), "{id}");
        }
        assert_eq!(members.list().len(), MAX_LISTED);
        // A known member changes its state all the same, and a removed one frees its place.
        assert!(members.set(&id("m0"), life(1), S::Active));
        assert!(members.remove(&id("m0")));
        assert!(members.set(&id("new"), life(1), S::Active));
    }
}
