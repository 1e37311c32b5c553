//! Property sets.

use super::*;
use crate::limits::{MAX_CHANGES, MAX_OWNED, MAX_PROPERTIES, MAX_PROPERTY_BYTES, MAX_VALUE_BYTES};

use Refusal::{Conflict, Full, NotOwner};

/// A log of "a", "b" and "c" with two properties: "free" without owner, and "own" of "b", owner-only.
fn furnished() -> Log {
    let mut log = Log::with(&["b", "c"]);
    log.must_set(
        "b",
        &[set("free", "1"), set("own", "2").to("b").owner_only()],
    );
    log
}

/// Asserts that a set of the author changes nothing but its row.
fn assert_refused(log: &mut Log, author: &str, changes: &[PropertyChange], refusal: Refusal) {
    let before = log.tables.properties.clone();
    let effects = log.set(author, changes);
    let refused = Effects {
        outcome: Some(Err(refusal)),
        ..Effects::default()
    };
    assert_eq!(effects, refused, "{changes:?}");
    assert_eq!(log.tables.properties, before);
}

/// New keys with values of a length, in sets that are small enough. Returns the number of keys.
fn fill(log: &mut Log, keys: usize, value_bytes: usize, owner: &OwnerChange) {
    let changes: Vec<_> = (0..keys)
        .map(|n| PropertyChange {
            value: ValueChange::Set(Bytes::from(vec![0; value_bytes])),
            owner: owner.clone(),
            ..set(&format!("{n:04}"), "")
        })
        .collect();
    for some in changes.chunks(3) {
        log.must_set("a", some);
    }
}

#[test]
fn an_expected_version_decides() {
    let mut log = furnished();
    let version = log.version("free");
    for (change, refused) in [
        (set("free", "x").at(0), true),
        (set("free", "x").at(version - 1), true),
        (set("free", "x").at(version + 1), true),
        (set("new", "x").at(version), true),
        (remove("new").at(version), true),
        (keep("free").at(0), true),
        (set("new", "x").at(0), false),
        (remove("newer").at(0), false),
        (set("free", "x").at(version), false),
        (set("free", "x").at(version), true),
        (remove("own").at(version), false),
    ] {
        match refused {
            true => assert_refused(&mut log, "b", &[change], Conflict),
            false => drop(log.must_set("b", &[change])),
        }
    }
}

#[test]
fn a_change_sets_value_owner_and_version() {
    let cases = [
        (set("free", "1"), Some(("1", None))),
        (set("free", "7").to("c"), Some(("7", Some("c")))),
        (keep("free").to("a"), Some(("1", Some("a")))),
        (keep("free"), Some(("1", None))),
        (set("own", "7"), Some(("7", Some("b")))),
        (keep("own").ownerless(), Some(("2", None))),
        (keep("new"), Some(("", None))),
        (keep("new").to("c"), Some(("", Some("c")))),
        (remove("own"), None),
        (remove("own").to("stranger"), None),
    ];
    for (change, expected) in cases {
        let mut log = furnished();
        let effects = log.must_set("b", std::slice::from_ref(&change));
        let property = expected.map(|(value, owner)| Property {
            value: Bytes::from_static(value.as_bytes()),
            owner: owner.map(peer),
            traits: Traits {
                owner_only: change.key == key("own"),
                fate: Fate::LosesOwner,
            },
            version: log.tables.index(),
        });
        assert_eq!(log.tables.property(&change.key), property.as_ref());
        assert_eq!(effects.properties, [(change.key, property)]);
    }
}

#[test]
fn the_removal_of_a_missing_key_succeeds_without_effect() {
    let mut log = furnished();
    let before = log.tables.properties.clone();
    let effects = log.must_set("a", &[remove("new"), remove("newer").to("stranger")]);
    assert_eq!(effects.properties, []);
    assert_eq!(log.tables.properties, before);
}

#[test]
fn effects_are_in_the_order_of_the_changes() {
    let mut log = furnished();
    let effects = log.must_set(
        "b",
        &[set("z", ""), remove("own"), set("free", ""), set("a", "")],
    );
    assert_eq!(names(&effects), ["z", "own", "free", "a"]);
}

#[test]
fn only_its_owner_changes_an_owner_only_property() {
    for change in [
        set("own", "x"),
        keep("own").to("a"),
        keep("own").ownerless(),
        remove("own"),
    ] {
        let mut log = furnished();
        assert_refused(&mut log, "a", std::slice::from_ref(&change), NotOwner);
        log.must_set("b", &[change]);
    }
}

#[test]
fn any_member_changes_an_owner_only_property_without_owner() {
    let mut log = furnished();
    log.must_set("b", &[keep("own").ownerless()]);
    log.must_set("c", &[keep("own").to("c")]);
    assert_refused(&mut log, "b", &[set("own", "x")], NotOwner);
}

#[test]
fn traits_stay_until_the_key_is_removed() {
    let mut log = furnished();
    log.must_set("b", &[set("own", "x").with(Fate::Dies)]);
    log.must_set("c", &[set("free", "x").to("c").owner_only()]);
    log.must_set("b", &[set("free", "y")]);
    let traits = |log: &Log, name| log.property(name).expect("the property").traits;
    assert!(traits(&log, "own").owner_only);
    assert_eq!(traits(&log, "own").fate, Fate::LosesOwner);
    assert_eq!(traits(&log, "free"), Traits::default());
    log.must_set("b", &[remove("own")]);
    log.must_set("c", &[set("own", "x").with(Fate::Dies)]);
    let dies = Traits {
        owner_only: false,
        fate: Fate::Dies,
    };
    assert_eq!(traits(&log, "own"), dies);
}

#[test]
fn a_new_owner_is_in_the_room() {
    let mut log = furnished();
    for owner in ["c", "stranger"] {
        log.depart(&member("c", 1));
        assert_refused(&mut log, "a", &[set("free", "x").to(owner)], Conflict);
        assert_refused(&mut log, "a", &[set("new", "x").to(owner)], Conflict);
    }
    log.arrive(&member("c", 2));
    log.must_set("a", &[set("free", "x").to("c")]);
}

#[test]
fn the_gravest_refusal_of_a_set_is_its_outcome() {
    let mut log = furnished();
    let (foreign, late) = (set("own", "x"), set("free", "x").at(9));
    fill(&mut log, MAX_PROPERTIES - 2, 0, &OwnerChange::Keep);
    let large = set("new", "");
    for (changes, refusal) in [
        (vec![large.clone()], Full),
        (vec![large.clone(), late.clone()], Conflict),
        (vec![large.clone(), late.clone(), foreign.clone()], NotOwner),
        (vec![large.clone(), foreign.clone()], NotOwner),
        (vec![set("free", "x"), large, keep("0000")], Full),
        (vec![foreign.at(9)], NotOwner),
    ] {
        assert_refused(&mut log, "a", &changes, refusal);
    }
}

#[test]
fn the_number_of_properties_is_limited() {
    let mut log = Log::with(&[]);
    fill(&mut log, MAX_PROPERTIES, 0, &OwnerChange::Keep);
    assert_refused(&mut log, "a", &[set("new", "")], Full);
    log.must_set("a", &[set("new", ""), remove("0000")]);
    log.must_set("a", &[set("new", "x"), remove("missing")]);
    assert_refused(&mut log, "a", &[set("newer", ""), remove("missing")], Full);
    assert_eq!(log.tables.properties().count(), MAX_PROPERTIES);
    assert!(log.tables.is_valid());
}

#[test]
fn the_bytes_of_properties_are_limited() {
    let mut log = Log::with(&[]);
    let keys = MAX_PROPERTY_BYTES / MAX_VALUE_BYTES;
    fill(&mut log, keys, MAX_VALUE_BYTES - 4, &OwnerChange::Keep);
    assert!(log.tables.is_valid(), "full to the last byte");
    for change in [set("n", ""), keep("n")] {
        assert_refused(&mut log, "a", &[change], Full);
    }
    let longer = PropertyChange {
        value: ValueChange::Set(Bytes::from(vec![0; MAX_VALUE_BYTES - 3])),
        ..set("0001", "")
    };
    assert_refused(&mut log, "a", std::slice::from_ref(&longer), Full);
    log.must_set("a", &[keep("0001"), set("0000", "short")]);
    log.must_set("a", &[longer, set("new", "x")]);
    assert!(log.tables.is_valid());
}

#[test]
fn a_set_gives_an_owner_only_so_many_properties() {
    let mut log = Log::with(&["b"]);
    fill(&mut log, MAX_OWNED, 0, &OwnerChange::To(peer("a")));
    assert_refused(&mut log, "b", &[set("new", "").to("a")], Full);
    log.must_set("b", &[set("new", "").to("b"), set("0000", "x").to("a")]);
    assert_refused(&mut log, "b", &[keep("new").to("a")], Full);
    log.must_set("b", &[keep("new").to("a"), keep("0000").to("b")]);
    log.must_set("b", &[keep("0000").to("a"), remove("0001").to("a")]);
    let owned = log
        .tables
        .properties()
        .filter(|(_, property)| property.owner == Some(peer("a")));
    assert_eq!(owned.count(), MAX_OWNED);
}

#[test]
fn the_largest_set_is_taken_as_a_whole() {
    let mut log = Log::with(&[]);
    let name = |n| format!("{n:02}");
    let changes: Vec<_> = (0..MAX_CHANGES)
        .map(|n| set(&name(n), "v").to("a"))
        .collect();
    assert_eq!(log.must_set("a", &changes).properties.len(), MAX_CHANGES);
}

#[test]
fn memory_is_counted() {
    let mut log = Log::with(&["b", "c"]);
    let before = log.tables.bytes();
    fill(&mut log, 20, 1000, &OwnerChange::Keep);
    assert!(log.tables.bytes() > before + 20 * 1000);
    for n in 0..20 {
        log.must_set("a", &[remove(&format!("{n:04}"))]);
    }
    assert_eq!(log.tables.bytes(), before);
}
