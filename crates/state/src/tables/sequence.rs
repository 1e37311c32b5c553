//! Sequences off the wire: none grows beyond its bound, and none reserves memory for items that do not come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;

use room_core::bounded::Newest;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a collection as a sequence; a map as a sequence of pairs.
pub(super) fn write<'a, S: Serializer, C>(items: &'a C, serializer: S) -> Result<S::Ok, S::Error>
where
    &'a C: IntoIterator<Item: Serialize>,
{
    serializer.collect_seq(items)
}

/// Writes the newest `MOST` items as a sequence.
pub(super) fn write_newest<const MOST: usize, S: Serializer, T: Serialize>(
    items: &Newest<T, MOST>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items.iter())
}

/// Reads a queue of at most `MOST` items.
pub(super) fn queue<'de, const MOST: usize, D, T>(deserializer: D) -> Result<VecDeque<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    read::<MOST, _, _>(deserializer).map(VecDeque::from)
}

/// Reads a set of at most `MOST` items, which ascend.
pub(super) fn set<'de, const MOST: usize, D, T>(deserializer: D) -> Result<BTreeSet<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    let items = read::<MOST, _, T>(deserializer)?;
    match items.is_sorted_by(|a, b| a < b) {
        true => Ok(items.into_iter().collect()),
        false => Err(D::Error::custom("the items do not ascend")),
    }
}

/// Reads a map of at most `MOST` pairs, whose keys ascend.
pub(super) fn map<'de, const MOST: usize, D, K, V>(
    deserializer: D,
) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let pairs = read::<MOST, _, (K, V)>(deserializer)?;
    match pairs.is_sorted_by(|(a, _), (b, _)| a < b) {
        true => Ok(pairs.into_iter().collect()),
        false => Err(D::Error::custom("the keys do not ascend")),
    }
}

/// Reads the newest `MOST` items.
pub(super) fn newest<'de, const MOST: usize, D, T>(
    deserializer: D,
) -> Result<Newest<T, MOST>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut newest = Newest::default();
    for item in read::<MOST, _, _>(deserializer)? {
        newest.push(item);
    }
    Ok(newest)
}

fn read<'de, const MOST: usize, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(AtMost::<T, MOST>(PhantomData))
}

struct AtMost<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for AtMost<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MOST} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if items.len() >= MOST {
                return Err(A::Error::invalid_length(items.len() + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}
