//! Priorities decide ranks: the order in which voters campaign when the leader is lost.

use super::*;

/// The next leader of five with these priorities, when the leader `c` falls silent.
fn successor(priorities: &[(&str, i32)]) -> String {
    let mut group = Group::with(&everyone(), |name, start| {
        let mine = priorities.iter().find(|(other, _)| *other == name);
        start.config.priority = mine.map_or(0, |(_, priority)| *priority);
    });
    group.elect("c");
    group.live(ms(2000));
    group.wait(MIN);
    group.dies("c", &DownReason::Silent);
    group.live(ms(4000));
    let successor = group.shows("a").expect("somebody leads").to_owned();
    group.assert_led_by(&successor, 2);
    successor
}

#[test]
fn r71_the_highest_priority_goes_first_and_then_the_largest_id() {
    let table: [(&[(&str, i32)], &str); 6] = [
        (&[], "e"),
        (&[("a", 1)], "a"),
        (&[("b", 3), ("a", 1), ("d", 2)], "b"),
        (&[("e", -1)], "d"),
        (&[("a", i32::MAX), ("e", i32::MIN)], "a"),
        (&[("c", 9), ("b", 7), ("a", 7)], "b"),
    ];
    for (priorities, expected) in table {
        assert_eq!(successor(priorities), expected, "{priorities:?}");
    }
}
