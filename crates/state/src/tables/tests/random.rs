//! Random entries.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;
use crate::limits::{MAX_PROPERTIES, MAX_PROPERTY_BYTES, ROW_LIFETIME_MS};

/// A host's view, by the effects alone.
#[derive(Debug, Default)]
struct View {
    members: BTreeSet<MemberId>,
    properties: BTreeMap<Key, Property>,
}

impl View {
    fn see(&mut self, effects: &Effects) {
        for (member, presence) in &effects.members {
            let is_news = match presence {
                Presence::Here => self.members.insert(member.clone()),
                Presence::Gone => self.members.remove(member),
            };
            assert!(is_news, "{member:?} twice");
        }
        for (key, now) in &effects.properties {
            match now.clone() {
                Some(now) => drop(self.properties.insert(key.clone(), now)),
                None => assert!(self.properties.remove(key).is_some(), "{key:?} twice"),
            }
        }
    }

    fn check(&self, tables: &Tables) {
        assert!(tables.members().eq(&self.members));
        assert!(tables.properties().eq(&self.properties));
        let peers: BTreeSet<&PeerId> = self.members.iter().map(|member| &member.peer).collect();
        assert_eq!(
            peers.len(),
            self.members.len(),
            "one incarnation of each peer"
        );
        for property in self.properties.values() {
            let owner = property.owner.as_ref();
            assert!(owner.is_none_or(|owner| peers.contains(owner)), "S11");
            assert!(property.version <= tables.index());
        }
        let bytes = self
            .properties
            .iter()
            .map(|(key, now)| key.as_str().len() + now.value.len());
        let bytes = bytes.sum::<usize>();
        assert!(bytes <= MAX_PROPERTY_BYTES && self.properties.len() <= MAX_PROPERTIES);
        assert!(tables.bytes() >= bytes);
        assert!(
            self.members
                .iter()
                .all(|member| tables.last_number(member).is_some())
        );
    }
}

fn members() -> impl Strategy<Value = MemberId> {
    let names = prop::sample::select(vec!["a", "b", "c", "d"]);
    (names, 1..3_u64).prop_map(|(name, start)| member(name, start))
}

fn values() -> impl Strategy<Value = ValueChange> {
    let value = |(length, byte): (usize, u8)| ValueChange::Set(Bytes::from(vec![byte; length]));
    let lengths = prop_oneof![4 => 0..9_usize, 1 => 7000..8193_usize];
    prop_oneof![
        4 => (lengths, any::<u8>()).prop_map(value),
        1 => Just(ValueChange::Keep),
        1 => Just(ValueChange::Remove),
    ]
}

fn owners() -> impl Strategy<Value = OwnerChange> {
    prop_oneof![
        3 => members().prop_map(|member| OwnerChange::To(member.peer)),
        2 => Just(OwnerChange::Keep),
        1 => Just(OwnerChange::Nobody),
    ]
}

fn traits() -> impl Strategy<Value = Traits> {
    let fates = vec![Fate::Dies, Fate::FallsToLeader, Fate::LosesOwner];
    let owner_only = prop::bool::weighted(0.2);
    (owner_only, prop::sample::select(fates))
        .prop_map(|(owner_only, fate)| Traits { owner_only, fate })
}

fn expectations() -> impl Strategy<Value = Expected> {
    prop_oneof![
        6 => Just(Expected::Any),
        1 => Just(Expected::Version(0)),
        1 => (1..40_u64).prop_map(Expected::Version),
    ]
}

fn change(key: Key) -> impl Strategy<Value = PropertyChange> {
    let parts = (values(), owners(), traits(), expectations());
    parts.prop_map(move |(value, owner, traits, expected)| PropertyChange {
        key: key.clone(),
        value,
        owner,
        traits,
        expected,
    })
}

fn sets() -> impl Strategy<Value = Request> {
    let keys: Vec<Key> = (0..9).map(|n| key(&format!("k{n}"))).collect();
    let some = subsequence(keys, 1..4);
    let changes = some.prop_flat_map(|keys| keys.into_iter().map(change).collect::<Vec<_>>());
    changes.prop_map(Request::Properties)
}

fn requests() -> impl Strategy<Value = Request> {
    let action = Request::Action {
        msg_type: 1,
        data: Bytes::from_static(b"data"),
    };
    prop_oneof![1 => Just(action), 5 => sets()]
}

fn opens() -> impl Strategy<Value = Contents> {
    vec(members(), 1..5).prop_map(|roster| Contents::Open {
        history: History(1),
        exclusive: true,
        roster: roster.into_iter().collect(),
    })
}

fn contents() -> impl Strategy<Value = Contents> {
    let presence = (members(), any::<bool>(), any::<bool>());
    let presence = presence.prop_map(|(member, here, counts)| Contents::Member {
        member,
        here,
        counts,
    });
    let request = (members(), 1..99_u64, requests());
    let request = request.prop_map(|(author, number, request)| Contents::Request {
        author,
        number,
        request,
    });
    prop_oneof![1 => opens(), 3 => presence, 6 => request]
}

/// Entries of a log: an Open begins it, and each Open begins a ballot of a random leader.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let parts = (contents(), members(), 0..ROW_LIFETIME_MS / 3);
    (opens(), vec(parts, 1..80)).prop_map(|(first, parts)| {
        let (mut number, mut leader, mut time_ms) = (0, member("a", 1), 0);
        let first = (first, leader.clone(), 0);
        let entry = |(contents, next, advance): (Contents, MemberId, u64)| {
            if let Contents::Open { .. } = &contents {
                number += 1;
                leader = next;
            }
            time_ms += advance;
            let leader = leader.clone();
            Entry {
                ballot: Ballot { number, leader },
                time_ms,
                contents,
            }
        };
        [first].into_iter().chain(parts).map(entry).collect()
    })
}

/// Applies an entry to the tables and to their decoded copy, which do the same.
fn apply(tables: &mut Tables, entry: &Entry) -> Effects {
    let bytes = postcard::to_allocvec(tables).expect("they encode");
    let mut other = postcard::from_bytes::<Tables>(&bytes).expect("they decode");
    assert_eq!(other, *tables);
    let effects = tables.apply(entry);
    assert_eq!(other.apply(entry), effects);
    assert_eq!(other, *tables);
    effects
}

proptest! {
    #[test]
    fn tables_stay_valid_and_effects_complete(entries in entries()) {
        let (mut tables, mut view) = (Tables::default(), View::default());
        for (entry, index) in entries.iter().zip(1..) {
            prop_assert!(entry.is_valid());
            let effects = apply(&mut tables, entry);
            prop_assert!(tables.is_valid());
            prop_assert_eq!(tables.index(), index);
            let changed = effects.properties.iter();
            let mut versions = changed.filter_map(|(_, now)| Some(now.as_ref()?.version));
            prop_assert!(versions.all(|version| version == index), "S10");
            let is_refused = matches!(effects.outcome, Some(Err(_)));
            prop_assert!(!is_refused || effects.properties.is_empty(), "all or none");
            view.see(&effects);
            view.check(&tables);
        }
    }

    #[test]
    fn damaged_encodings_decode_to_valid_tables_or_none(
        entries in entries(),
        damages in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut tables = Tables::default();
        for entry in &entries {
            tables.apply(entry);
        }
        let mut bytes = postcard::to_allocvec(&tables).expect("they encode");
        for (at, byte) in damages {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(tables) = postcard::from_bytes::<Tables>(&bytes) {
            prop_assert!(tables.is_valid());
        }
    }
}
