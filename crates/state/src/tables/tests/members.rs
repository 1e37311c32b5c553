//! Openings, members, the roster and the authors' rows.

use super::*;
use crate::limits::{MAX_MEMBERS, MAX_OPENINGS, MAX_ROSTER, MAX_ROWS, ROW_LIFETIME_MS};

use Presence::{Gone, Here};

fn many(count: usize) -> Vec<MemberId> {
    (0..count).map(|n| member(&format!("m{n}"), 1)).collect()
}

#[test]
fn an_open_sets_history_roster_place_and_leader() {
    let (a, b) = (member("a", 1), member("b", 1));
    let mut log = Log::of(&a);
    let roster = BTreeSet::from([a.clone(), b.clone()]);
    let effects = log.open_with(&b, roster.clone());
    assert_eq!(effects.members, [(b.clone(), Here)]);
    assert_eq!(effects.outcome, None);
    assert_eq!(log.tables.history(), Some(History(2)));
    assert_eq!(*log.tables.roster(), roster);
    let openings = log.tables.openings();
    let openings = openings.map(|place| (place.ballot.number, &place.ballot.leader, place.index));
    assert_eq!(openings.collect::<Vec<_>>(), [(1, &a, 1), (2, &b, 2)]);
    assert_eq!(log.tables.members().collect::<Vec<_>>(), [&a, &b]);
    assert_eq!(log.open(&b), Effects::default(), "it is here already");
}

#[test]
fn the_last_place_is_that_of_the_last_entry() {
    let a = member("a", 1);
    assert_eq!(Tables::default().last(), None);
    assert_eq!(Tables::default().index(), 0);
    let mut log = Log::of(&a);
    log.act(&a, 1);
    let last = log.tables.last().expect("two entries");
    assert_eq!((&last.ballot, last.index), (&log.ballot, 2));
    assert_eq!(log.tables.index(), 2);
}

#[test]
fn time_never_falls() {
    let a = member("a", 1);
    let mut log = Log::of(&a);
    for (entry_ms, time_ms) in [(5, 5), (9, 9), (8, 9), (10, 10)] {
        log.time_ms = entry_ms;
        log.act(&a, 1);
        assert_eq!(log.tables.time_ms(), time_ms);
    }
}

#[test]
fn the_newest_openings_remain() {
    let mut log = Log::with(&[]);
    let total = MAX_OPENINGS as u64 + 5;
    for _ in 1..total {
        log.open(&member("a", 1));
    }
    let indices: Vec<u64> = log.tables.openings().map(|place| place.index).collect();
    assert_eq!(indices, (6..=total).collect::<Vec<_>>());
}

#[test]
fn a_member_entry_sets_presence_and_roster() {
    let b = member("b", 1);
    let mut log = Log::with(&[]);
    for (here, counts, effect) in [
        (true, false, Some(Here)),
        (true, true, None),
        (false, true, Some(Gone)),
        (false, false, None),
        (true, true, Some(Here)),
        (false, false, Some(Gone)),
    ] {
        let effects = log.member(&b, here, counts);
        let expected = effect.map(|presence| (b.clone(), presence));
        assert_eq!(effects.members, Vec::from_iter(expected));
        assert_eq!(log.tables.is_here(&b), here);
        assert_eq!(log.tables.roster().contains(&b), counts);
        assert_eq!(log.tables.members().any(|member| *member == b), here);
    }
}

#[test]
fn a_new_incarnation_replaces_the_former_and_leaves_the_roster_to_its_leader() {
    let (former, latter) = (member("b", 1), member("b", 2));
    let mut log = Log::with(&[]);
    log.member(&former, true, true);
    let effects = log.member(&latter, true, false);
    assert_eq!(
        effects.members,
        [(former.clone(), Gone), (latter.clone(), Here)]
    );
    assert!(log.tables.roster().contains(&former));
    let effects = log.depart(&former);
    assert_eq!(effects.members, [], "it has gone before");
    assert!(log.tables.is_here(&latter) && !log.tables.is_here(&former));
}

#[test]
fn an_older_incarnation_replaces_a_newer_one_too() {
    let (older, newer) = (member("b", 1), member("b", 2));
    let mut log = Log::with(&[]);
    log.arrive(&newer);
    let effects = log.arrive(&older);
    assert_eq!(effects.members, [(newer, Gone), (older, Here)]);
}

#[test]
fn members_beyond_the_limit_do_not_come() {
    let mut log = Log::with(&[]);
    let others = many(MAX_MEMBERS);
    let (last, fitting) = others.split_last().expect("many");
    for other in fitting {
        assert_eq!(log.arrive(other).members.len(), 1);
    }
    assert_eq!(log.arrive(last), Effects::default());
    assert_eq!(log.open(last), Effects::default(), "not even a leader");
    assert!(!log.tables.is_here(last));
    assert_eq!(log.tables.last_number(last), None);
    let anew = member("m0", 2);
    assert_eq!(log.arrive(&anew).members.len(), 2, "its former one goes");
    assert_eq!(log.tables.members().count(), MAX_MEMBERS);
    assert!(log.tables.is_valid());
}

#[test]
fn members_beyond_the_limit_do_not_count() {
    let mut log = Log::with(&[]);
    for other in many(MAX_ROSTER) {
        log.member(&other, true, true);
    }
    let (first, last) = (member("m0", 1), member(&format!("m{}", MAX_ROSTER - 1), 1));
    assert_eq!(log.tables.roster().len(), MAX_ROSTER);
    assert!(!log.tables.roster().contains(&last));
    assert!(log.tables.is_here(&last));
    log.member(&first, true, false);
    log.member(&last, true, true);
    assert!(log.tables.roster().contains(&last));
    assert_eq!(log.tables.roster().len(), MAX_ROSTER);
}

#[test]
fn actions_and_property_sets_count_as_use() {
    let requests: [fn(&mut Log) -> Effects; 3] = [
        |log| log.act(&member("a", 1), 1),
        |log| log.set("a", &[set("k", "v")]),
        |log| log.set("a", &[set("k", "v").at(9)]),
    ];
    for request in requests {
        let mut log = Log::with(&["b"]);
        assert!(!log.tables.is_used());
        request(&mut log);
        assert!(log.tables.is_used());
    }
}

#[test]
fn an_action_succeeds_without_another_effect() {
    let mut log = Log::with(&[]);
    let success = Effects {
        outcome: Some(Ok(())),
        ..Effects::default()
    };
    assert_eq!(log.act(&member("a", 1), 1), success);
    assert_eq!(log.act(&member("stranger", 1), 1), success);
}

#[test]
fn a_row_begins_with_the_author_and_rises_with_its_requests() {
    let (b, stranger) = (member("b", 1), member("stranger", 1));
    let mut log = Log::with(&[]);
    assert_eq!(log.tables.last_number(&b), None);
    log.arrive(&b);
    assert_eq!(log.tables.last_number(&b), Some(0));
    for (number, last) in [(3, 3), (9, 9), (4, 9)] {
        log.act(&b, number);
        assert_eq!(log.tables.last_number(&b), Some(last));
    }
    log.request(&b, 11, Request::Properties(vec![set("k", "v").at(9)]));
    assert_eq!(log.tables.last_number(&b), Some(11), "refused, and counted");
    log.act(&stranger, 5);
    assert_eq!(log.tables.last_number(&stranger), Some(5));
    assert!(!log.tables.is_here(&stranger));
}

#[test]
fn a_row_survives_its_author_for_ten_minutes() {
    let b = member("b", 1);
    let mut log = Log::with(&["b"]);
    log.act(&b, 4);
    log.time_ms = 1000;
    log.depart(&b);
    log.time_ms += ROW_LIFETIME_MS - 1;
    log.act(&b, 5);
    assert_eq!(log.tables.last_number(&b), Some(5), "a late request");
    log.time_ms += 1;
    log.act(&member("a", 1), 1);
    assert_eq!(log.tables.last_number(&b), None);
    log.arrive(&b);
    assert_eq!(log.tables.last_number(&b), Some(0));
}

#[test]
fn rows_end_one_by_one() {
    let (b, c) = (member("b", 1), member("c", 1));
    let mut log = Log::with(&["b", "c"]);
    log.depart(&c);
    log.time_ms += 1;
    log.depart(&b);
    for rows in [[Some(0), None], [None, None]] {
        log.time_ms = log.time_ms.max(ROW_LIFETIME_MS - 1) + 1;
        log.act(&member("a", 1), 1);
        assert_eq!([&b, &c].map(|author| log.tables.last_number(author)), rows);
    }
}

#[test]
fn an_author_that_returns_keeps_its_row() {
    let b = member("b", 1);
    let mut log = Log::with(&["b"]);
    log.act(&b, 4);
    log.depart(&b);
    log.time_ms += ROW_LIFETIME_MS - 1;
    log.arrive(&b);
    log.time_ms += ROW_LIFETIME_MS;
    log.act(&member("a", 1), 1);
    assert_eq!(log.tables.last_number(&b), Some(4));
}

#[test]
fn a_new_incarnation_has_a_row_of_its_own() {
    let (former, latter) = (member("b", 1), member("b", 2));
    let mut log = Log::with(&["b"]);
    log.act(&former, 4);
    log.arrive(&latter);
    assert_eq!(log.tables.last_number(&latter), Some(0));
    assert_eq!(log.tables.last_number(&former), Some(4));
}

#[test]
fn the_longest_departed_row_makes_way() {
    let (b, c) = (member("b", 1), member("c", 1));
    let mut log = Log::with(&["b", "c"]);
    log.depart(&c);
    log.depart(&b);
    for stranger in many(MAX_ROWS - 3) {
        log.act(&stranger, 1);
    }
    assert_eq!(log.tables.last_number(&c), Some(0), "all rows fit");
    log.arrive(&member("d", 1));
    assert_eq!(log.tables.last_number(&c), None);
    assert_eq!(log.tables.last_number(&b), Some(0));
    log.act(&member("stranger", 1), 1);
    assert_eq!(log.tables.last_number(&b), None);
    assert_eq!(log.tables.last_number(&member("m0", 1)), Some(1));
    assert!(log.tables.is_valid());
}
