//! Departures of owners.

use super::*;
use crate::limits::{MAX_MEMBERS, MAX_OWNED};

use Presence::{Gone, Here};

const FATES: [(&str, Fate); 3] = [
    ("dies", Fate::Dies),
    ("falls", Fate::FallsToLeader),
    ("loses", Fate::LosesOwner),
];

/// A log of the leader "a", and of "b" and "c", with a property of each fate that this member owns.
fn with_fates(owner: &str) -> Log {
    let mut log = Log::with(&["b", "c"]);
    let changes = FATES.map(|(name, fate)| set(name, "v").to(owner).with(fate));
    log.must_set(owner, &changes);
    log
}

/// Asserts that the property of each fate is as expected, with the last entry's version.
fn assert_released(log: &Log, effects: &Effects, leader: Option<&str>) {
    assert_eq!(names(effects), ["dies", "falls", "loses"]);
    assert_eq!(log.property("dies"), None);
    assert_eq!(log.owner("falls"), leader);
    assert_eq!(log.owner("loses"), None);
    for (key, now) in &effects.properties {
        assert_eq!(log.tables.property(key), now.as_ref());
        assert!(
            now.as_ref()
                .is_none_or(|now| now.version == log.tables.index())
        );
    }
}

#[test]
fn a_departure_decides_by_fate() {
    let mut log = with_fates("b");
    log.must_set("c", &[set("other", "v").to("c").with(Fate::Dies)]);
    let effects = log.depart(&member("b", 1));
    assert_eq!(effects.members, [(member("b", 1), Gone)]);
    assert_released(&log, &effects, Some("a"));
    assert_eq!(log.owner("other"), Some("c"));
}

#[test]
fn another_departure_of_the_same_member_has_no_effect() {
    let mut log = with_fates("b");
    log.depart(&member("b", 1));
    assert_eq!(log.depart(&member("b", 1)), Effects::default());
}

#[test]
fn the_next_leader_owns_what_falls_from_the_last_one() {
    let mut log = with_fates("a");
    let effects = log.depart(&member("a", 1));
    assert_released(&log, &effects, None);
    let effects = log.open(&member("c", 1));
    assert_eq!(names(&effects), ["falls"]);
    assert_eq!(effects.members, []);
    assert_eq!(log.owner("falls"), Some("c"));
    assert_eq!(log.version("falls"), log.tables.index());
    assert_eq!(log.open(&member("b", 1)), Effects::default(), "once");
}

#[test]
fn properties_wait_also_if_their_owner_departs_after_the_leader() {
    let mut log = with_fates("b");
    log.depart(&member("a", 1));
    let effects = log.depart(&member("b", 1));
    assert_released(&log, &effects, None);
    log.open(&member("c", 1));
    assert_eq!(log.owner("falls"), Some("c"));
}

#[test]
fn a_new_owner_or_none_ends_the_wait() {
    for (change, owner, next) in [
        (keep("falls").to("b"), Some("b"), Some("b")),
        (keep("falls").ownerless(), None, None),
        (set("falls", "x"), None, Some("c")),
    ] {
        let mut log = with_fates("a");
        log.depart(&member("a", 1));
        log.must_set("b", &[change]);
        assert_eq!(log.owner("falls"), owner);
        log.open(&member("c", 1));
        assert_eq!(log.owner("falls"), next);
    }
}

#[test]
fn a_property_that_never_had_an_owner_does_not_wait() {
    let mut log = Log::with(&["b"]);
    log.must_set("b", &[set("k", "v").with(Fate::FallsToLeader)]);
    assert_eq!(log.open(&member("b", 1)), Effects::default());
    assert_eq!(log.owner("k"), None);
}

#[test]
fn a_removed_property_does_not_wait() {
    let mut log = with_fates("a");
    log.depart(&member("a", 1));
    log.must_set("b", &[remove("falls")]);
    log.must_set("b", &[set("falls", "x").with(Fate::FallsToLeader)]);
    log.open(&member("b", 1));
    assert_eq!(log.owner("falls"), None);
}

#[test]
fn a_new_incarnation_does_not_inherit() {
    let mut log = with_fates("b");
    let effects = log.arrive(&member("b", 2));
    assert_eq!(
        effects.members,
        [(member("b", 1), Gone), (member("b", 2), Here)]
    );
    assert_released(&log, &effects, Some("a"));
}

#[test]
fn a_leader_that_started_anew_owns_what_falls_from_its_former_incarnation() {
    let mut log = with_fates("a");
    let effects = log.open(&member("a", 2));
    assert_eq!(
        effects.members,
        [(member("a", 1), Gone), (member("a", 2), Here)]
    );
    assert_released(&log, &effects, Some("a"));
}

#[test]
fn a_restarted_leader_in_the_room_of_its_former_ballot_owns_nothing() {
    let mut log = with_fates("a");
    let effects = log.arrive(&member("a", 2));
    assert_released(&log, &effects, None);
}

#[test]
fn released_and_waiting_properties_are_in_the_order_of_events() {
    let mut log = Log::with(&["b"]);
    let falls = |name| set(name, "v").with(Fate::FallsToLeader);
    log.must_set(
        "b",
        &[falls("1").to("b"), falls("9").to("b"), falls("0").to("a")],
    );
    log.depart(&member("a", 1));
    let effects = log.open(&member("b", 2));
    assert_eq!(names(&effects), ["1", "9", "0"]);
    assert!(
        ["0", "1", "9"]
            .iter()
            .all(|name| log.owner(name) == Some("b"))
    );
}

#[test]
fn a_leader_gets_more_than_a_set_would_give() {
    let mut log = Log::with(&["b"]);
    for owner in ["a", "b"] {
        for n in 0..MAX_OWNED {
            let change = set(&format!("{owner}{n}"), "").to(owner);
            log.must_set(owner, &[change.with(Fate::FallsToLeader)]);
        }
    }
    log.depart(&member("b", 1));
    let owned = |log: &Log| {
        let properties = log.tables.properties();
        let owned = properties.filter(|(_, property)| property.owner == Some(peer("a")));
        owned.count()
    };
    assert_eq!(owned(&log), 2 * MAX_OWNED);
    assert!(log.tables.is_valid());
    let gives_and_takes = [keep("a0").ownerless(), set("new", "").to("a")];
    let effects = log.set("a", &gives_and_takes);
    assert_eq!(effects.outcome, Some(Err(Refusal::Full)));
    log.must_set("a", &[set("a0", "x").to("a")]);
    log.must_set("a", &[keep("a0").ownerless()]);
    assert_eq!(owned(&log), 2 * MAX_OWNED - 1);
}

#[test]
fn properties_wait_for_a_leader_that_has_no_room() {
    let mut log = with_fates("a");
    log.depart(&member("a", 1));
    for n in 0..MAX_MEMBERS {
        log.arrive(&member(&format!("m{n}"), 1));
    }
    log.open(&member("z", 1));
    assert_eq!(log.owner("falls"), None);
    log.open(&member("b", 1));
    assert_eq!(log.owner("falls"), Some("b"));
}
