//! Sets of messages that only grow, by number.

use std::hash::Hasher;

use super::{Fast, Mix};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Sets {
    lists: Vec<Box<[u16]>>,
    /// Sets by the hash of their list; a hash has nearly always one.
    by_hash: Fast<u64, Vec<u32>>,
    grown: Fast<u64, u32>,
}

impl Sets {
    /// The empty set has number 0.
    pub(crate) fn new() -> Self {
        let mut sets = Self {
            lists: Vec::new(),
            by_hash: Fast::default(),
            grown: Fast::default(),
        };
        sets.number(Box::default());
        sets
    }

    /// The elements of a set, in order.
    pub(crate) fn list(&self, set: u32) -> &[u16] {
        &self.lists[set as usize]
    }

    /// The set with one more element.
    pub(crate) fn with(&mut self, set: u32, message: u16) -> u32 {
        let list = &self.lists[set as usize];
        let Err(at) = list.binary_search(&message) else {
            return set;
        };
        let key = u64::from(set) << 16 | u64::from(message);
        if let Some(grown) = self.grown.get(&key) {
            return *grown;
        }
        let mut longer = Vec::with_capacity(list.len() + 1);
        longer.extend_from_slice(&list[..at]);
        longer.push(message);
        longer.extend_from_slice(&list[at..]);
        let grown = self.number(longer.into_boxed_slice());
        self.grown.insert(key, grown);
        grown
    }

    /// The set of this list, which is in order.
    pub(crate) fn number(&mut self, list: Box<[u16]>) -> u32 {
        let mut mix = Mix::default();
        for message in &list {
            mix.write_u64((*message).into());
        }
        let same_hash = self.by_hash.entry(mix.finish()).or_default();
        let known = same_hash
            .iter()
            .find(|set| self.lists[**set as usize] == list);
        if let Some(known) = known {
            return *known;
        }
        let number = u32::try_from(self.lists.len()).expect("too many sets");
        same_hash.push(number);
        self.lists.push(list);
        number
    }
}
