//! The properties: sets that change all or nothing, and departures of owners.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use room_core::id::PeerId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Changed, Property, Refusal, item_bytes, sequence};
use crate::entry::{Expected, Fate, Key, OwnerChange, PropertyChange, ValueChange};
use crate::limits::{MAX_OWNED, MAX_PROPERTIES, MAX_PROPERTY_BYTES, MAX_VALUE_BYTES};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Properties {
    slots: BTreeMap<Key, Slot>,
    /// Sum of the lengths of keys and values.
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Slot {
    property: Property,
    /// Its owner departed as the leader: the leader of the next Open owns it.
    waits: bool,
}

impl Properties {
    pub(super) fn get(&self, key: &Key) -> Option<&Property> {
        self.slots.get(key).map(|slot| &slot.property)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Property)> {
        self.slots.iter().map(|(key, slot)| (key, &slot.property))
    }

    /// Makes all changes of an author, or none. The versions and owners before the set decide, and so do the limits
    /// after it: the order of the changes does not matter.
    pub(super) fn set(
        &mut self,
        changes: &[PropertyChange],
        author: &PeerId,
        index: u64,
        is_here: impl Fn(&PeerId) -> bool,
    ) -> Result<Vec<Changed>, Refusal> {
        if changes
            .iter()
            .any(|change| self.is_of_other(change, author))
        {
            return Err(Refusal::NotOwner);
        }
        if changes
            .iter()
            .any(|change| self.conflicts(change, &is_here))
        {
            return Err(Refusal::Conflict);
        }
        if !self.fit(changes) {
            return Err(Refusal::Full);
        }
        let changed = changes.iter().filter_map(|change| self.make(change, index));
        Ok(changed.collect())
    }

    /// Takes its properties from an owner that departed. The leader, if it is in the room, gets all that fall to it:
    /// [`MAX_OWNED`] limits property sets alone.
    pub(super) fn release(
        &mut self,
        owner: &PeerId,
        leader: Option<&PeerId>,
        index: u64,
    ) -> Vec<Changed> {
        let keys = self.keys(|slot| slot.is_owned_by(owner));
        let released = keys.into_iter().map(|key| {
            let property = self.lose_owner(&key, leader, index);
            (key, property)
        });
        released.collect()
    }

    /// Gives the properties that wait for a leader to it.
    pub(super) fn hand_over(&mut self, leader: &PeerId, index: u64) -> Vec<Changed> {
        let waiting = self.slots.iter_mut().filter(|(_, slot)| slot.waits);
        let handed = waiting.map(|(key, slot)| {
            slot.fall_to(Some(leader));
            slot.property.version = index;
            (key.clone(), Some(slot.property.clone()))
        });
        handed.collect()
    }

    /// Upper estimate of its memory.
    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * item_bytes::<(Key, Slot)>(2) + self.bytes
    }

    /// Whether entries up to an index can have led to these properties.
    pub(super) fn is_valid(&self, last: u64) -> bool {
        self.slots.len() <= MAX_PROPERTIES
            && self.bytes == sum(&self.slots)
            && self.bytes <= MAX_PROPERTY_BYTES
            && self.slots.values().all(|slot| slot.is_valid(last))
            && self.owners_have_few()
    }

    fn is_of_other(&self, change: &PropertyChange, author: &PeerId) -> bool {
        self.get(&change.key).is_some_and(|property| {
            let other = property.owner.as_ref().is_some_and(|owner| owner != author);
            property.traits.owner_only && other
        })
    }

    fn conflicts(&self, change: &PropertyChange, is_here: impl Fn(&PeerId) -> bool) -> bool {
        let version = self.get(&change.key).map_or(0, |property| property.version);
        let other_version = match change.expected {
            Expected::Any => false,
            Expected::Version(expected) => expected != version,
        };
        other_version || new_owner(change).is_some_and(|owner| !is_here(owner))
    }

    fn fit(&self, changes: &[PropertyChange]) -> bool {
        let (mut keys, mut bytes) = (self.slots.len(), self.bytes);
        for change in changes {
            let (before, after) = (self.length(&change.key), self.length_after(change));
            keys = keys + usize::from(after.is_some()) - usize::from(before.is_some());
            bytes = bytes + after.unwrap_or(0) - before.unwrap_or(0);
        }
        keys <= MAX_PROPERTIES && bytes <= MAX_PROPERTY_BYTES && self.owners_fit(changes)
    }

    /// Whether each owner that gains a property has at most [`MAX_OWNED`] after the set.
    fn owners_fit(&self, changes: &[PropertyChange]) -> bool {
        let gains = changes.iter().filter_map(|change| {
            new_owner(change).filter(|owner| self.owner(&change.key) != Some(owner))
        });
        let owners: BTreeSet<&PeerId> = gains.collect();
        owners
            .into_iter()
            .all(|owner| self.owned_after(owner, changes) <= MAX_OWNED)
    }

    fn owned_after(&self, owner: &PeerId, changes: &[PropertyChange]) -> usize {
        let owned = self.slots.values().filter(|slot| slot.is_owned_by(owner));
        let before = |change: &&PropertyChange| self.owner(&change.key) == Some(owner);
        let after = |change: &&PropertyChange| self.owner_after(change) == Some(owner);
        let (lost, gained) = (changes.iter().filter(before), changes.iter().filter(after));
        owned.count() + gained.count() - lost.count()
    }

    fn owner(&self, key: &Key) -> Option<&PeerId> {
        self.get(key)?.owner.as_ref()
    }

    fn owner_after<'a>(&'a self, change: &'a PropertyChange) -> Option<&'a PeerId> {
        match (&change.value, &change.owner) {
            (ValueChange::Remove, _) | (_, OwnerChange::Nobody) => None,
            (_, OwnerChange::Keep) => self.owner(&change.key),
            (_, OwnerChange::To(owner)) => Some(owner),
        }
    }

    fn length(&self, key: &Key) -> Option<usize> {
        Some(key.as_str().len() + self.get(key)?.value.len())
    }

    fn length_after(&self, change: &PropertyChange) -> Option<usize> {
        let key = change.key.as_str().len();
        match &change.value {
            ValueChange::Set(value) => Some(key + value.len()),
            ValueChange::Keep => Some(self.length(&change.key).unwrap_or(key)),
            ValueChange::Remove => None,
        }
    }

    /// `None` if it changes nothing.
    fn make(&mut self, change: &PropertyChange, index: u64) -> Option<Changed> {
        let property = match &change.value {
            ValueChange::Remove => {
                self.remove(&change.key)?;
                None
            }
            ValueChange::Keep => Some(self.put(change, None, index)),
            ValueChange::Set(value) => Some(self.put(change, Some(value), index)),
        };
        Some((change.key.clone(), property))
    }

    fn put(&mut self, change: &PropertyChange, value: Option<&Bytes>, index: u64) -> Property {
        let before = self.length(&change.key).unwrap_or(0);
        let slot = self.slots.entry(change.key.clone());
        let slot = slot.or_insert_with(|| Slot::new(change));
        if let Some(value) = value {
            slot.property.value = value.clone();
        }
        slot.set_owner(&change.owner);
        slot.property.version = index;
        let property = slot.property.clone();
        self.bytes = self.bytes + change.key.as_str().len() + property.value.len() - before;
        property
    }

    fn remove(&mut self, key: &Key) -> Option<()> {
        self.bytes -= self.length(key)?;
        self.slots.remove(key);
        Some(())
    }

    fn lose_owner(&mut self, key: &Key, leader: Option<&PeerId>, index: u64) -> Option<Property> {
        let slot = self.slots.get_mut(key)?;
        match slot.property.traits.fate {
            Fate::Dies => {
                self.remove(key);
                return None;
            }
            Fate::LosesOwner => slot.property.owner = None,
            Fate::FallsToLeader => slot.fall_to(leader),
        }
        slot.property.version = index;
        Some(slot.property.clone())
    }

    fn keys(&self, holds: impl Fn(&Slot) -> bool) -> Vec<Key> {
        let slots = self.slots.iter().filter(|(_, slot)| holds(slot));
        slots.map(|(key, _)| key.clone()).collect()
    }

    /// A property set gives an owner at most [`MAX_OWNED`]; a leader may have more that fell to it.
    fn owners_have_few(&self) -> bool {
        let mut given = BTreeMap::<&PeerId, usize>::new();
        let properties = self.slots.values().map(|slot| &slot.property);
        properties
            .filter(|property| property.traits.fate != Fate::FallsToLeader)
            .filter_map(|property| property.owner.as_ref())
            .all(|owner| {
                let count = given.entry(owner).or_default();
                *count += 1;
                *count <= MAX_OWNED
            })
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        sequence::write(&self.slots, serializer)
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let slots = sequence::map::<MAX_PROPERTIES, _, _, _>(deserializer)?;
        let bytes = sum(&slots);
        Ok(Self { slots, bytes })
    }
}

impl Slot {
    fn new(change: &PropertyChange) -> Self {
        let property = Property {
            value: Bytes::new(),
            owner: None,
            traits: change.traits,
            version: 0,
        };
        Self {
            property,
            waits: false,
        }
    }

    fn is_owned_by(&self, owner: &PeerId) -> bool {
        self.property.owner.as_ref() == Some(owner)
    }

    fn set_owner(&mut self, change: &OwnerChange) {
        let owner = match change {
            OwnerChange::Keep => return,
            OwnerChange::Nobody => None,
            OwnerChange::To(owner) => Some(owner.clone()),
        };
        self.property.owner = owner;
        self.waits = false;
    }

    fn fall_to(&mut self, leader: Option<&PeerId>) {
        self.property.owner = leader.cloned();
        self.waits = leader.is_none();
    }

    fn is_valid(&self, last: u64) -> bool {
        let falls = self.property.traits.fate == Fate::FallsToLeader;
        self.property.value.len() <= MAX_VALUE_BYTES
            && (1..=last).contains(&self.property.version)
            && (!self.waits || falls && self.property.owner.is_none())
    }
}

/// The owner that a change gives; a removal ignores its change of owner.
fn new_owner(change: &PropertyChange) -> Option<&PeerId> {
    match (&change.value, &change.owner) {
        (ValueChange::Remove, _) | (_, OwnerChange::Keep | OwnerChange::Nobody) => None,
        (_, OwnerChange::To(owner)) => Some(owner),
    }
}

fn sum(slots: &BTreeMap<Key, Slot>) -> usize {
    let lengths = slots
        .iter()
        .map(|(key, slot)| key.as_str().len() + slot.property.value.len());
    lengths.sum()
}
