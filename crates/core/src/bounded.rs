//! Collections that other members fill, with a bound in their type.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;

/// A map of at most `MOST` entries. Derefs to a [`BTreeMap`] for reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedMap<K, V, const MOST: usize>(BTreeMap<K, V>);

/// The map has no room for a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl<K, V, const MOST: usize> Default for BoundedMap<K, V, MOST> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V, const MOST: usize> BoundedMap<K, V, MOST> {
    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`Full`] if the key is new; nothing has changed then.
    pub fn insert(&mut self, key: K, value: V) -> Result<(), Full> {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            return Err(Full);
        }
        self.0.insert(key, value);
        Ok(())
    }

    /// Sets the value of a key. A new key without room replaces the entry with the smallest rank.
    pub fn insert_over<R: Ord>(&mut self, key: K, value: V, rank: impl Fn(&K, &V) -> R)
    where
        K: Clone,
    {
        self.make_way(&key, rank);
        self.0.insert(key, value);
    }

    /// The value of a key, mutable; a new key gets the default value. A new key without room replaces the entry with
    /// the smallest rank.
    pub fn or_default_over<R: Ord>(&mut self, key: K, rank: impl Fn(&K, &V) -> R) -> &mut V
    where
        K: Clone,
        V: Default,
    {
        self.make_way(&key, rank);
        self.0.entry(key).or_default()
    }

    fn make_way<R: Ord>(&mut self, key: &K, rank: impl Fn(&K, &V) -> R)
    where
        K: Clone,
    {
        if self.0.len() >= MOST && !self.0.contains_key(key) {
            let least = self.0.iter().min_by_key(|(key, value)| rank(key, value));
            if let Some(least) = least.map(|(key, _)| key.clone()) {
                self.0.remove(&least);
            }
        }
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// All entries with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut()
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }

    /// Keeps only the entries for which `holds` returns true.
    pub fn retain(&mut self, holds: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain(holds);
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes all entries and returns them.
    pub fn take(&mut self) -> BTreeMap<K, V> {
        std::mem::take(&mut self.0)
    }
}

impl<K, V, const MOST: usize> Deref for BoundedMap<K, V, MOST> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

/// The newest `MOST` entries, the oldest first. Derefs to a [`VecDeque`] for reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest<T, const MOST: usize>(VecDeque<T>);

impl<T, const MOST: usize> Default for Newest<T, MOST> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T, const MOST: usize> Newest<T, MOST> {
    /// Adds an entry. Returns the oldest one if the new entry replaced it.
    pub fn push(&mut self, entry: T) -> Option<T> {
        let oldest = (self.0.len() >= MOST).then(|| self.0.pop_front());
        self.0.push_back(entry);
        oldest.flatten()
    }

    /// All entries, mutable.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Keeps only the entries for which `holds` returns true.
    pub fn retain(&mut self, holds: impl FnMut(&T) -> bool) {
        self.0.retain(holds);
    }
}

impl<T, const MOST: usize> Deref for Newest<T, MOST> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_way_for_the_newest() {
        let mut newest = Newest::<u8, 2>::default();
        assert_eq!(
            [1, 2, 3].map(|entry| newest.push(entry)),
            [None, None, Some(1)]
        );
        assert_eq!(*newest, [2, 3]);
        newest.retain(|entry| *entry != 2);
        assert_eq!(newest.push(4), None);
        assert_eq!(*newest, [3, 4]);
    }

    #[test]
    fn a_new_key_has_no_room_in_a_full_map() {
        let mut map = BoundedMap::<u8, char, 2>::default();
        assert_eq!(map.insert(1, 'a'), Ok(()));
        assert_eq!(map.insert(2, 'b'), Ok(()));
        assert_eq!(map.insert(3, 'c'), Err(Full));
        assert_eq!(map.insert(2, 'd'), Ok(()), "a known one has");
        assert_eq!(*map, BTreeMap::from([(1, 'a'), (2, 'd')]));
        map.remove(&1);
        assert_eq!(map.insert(3, 'c'), Ok(()));
    }

    #[test]
    fn the_least_makes_way() {
        let mut map = BoundedMap::<u8, char, 2>::default();
        for (key, value) in [(1, 'b'), (2, 'a'), (1, 'c'), (3, 'd')] {
            map.insert_over(key, value, |_, value| *value);
        }
        assert_eq!(*map, BTreeMap::from([(1, 'c'), (3, 'd')]));
    }
}
