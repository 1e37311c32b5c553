//! A member that alone loses one of two relays: the others reach that relay, and learn of it from the member.

use super::relays::{NOTICED_AFTER, changes, fill, key_of_relay, path, relay, relayed_room};
use super::*;

const ROOM: [&str; 3] = ["a", "b", "c"];

/// Which packets between a member and a relay are lost.
#[derive(Debug, Clone, Copy)]
enum Lost {
    Both,
    ToMember,
    FromMember,
}

/// A settled room in which the first relay carries all links, and a second one is there.
fn room() -> Net {
    let mut net = relayed_room(&ROOM);
    net.enter_relay(1, &ROOM);
    net.settle();
    net
}

impl Net {
    /// A relay's packets with a member are lost from now on.
    fn loses(&mut self, number: u8, member: &str, lost: Lost) {
        for other in ROOM.iter().filter(|other| **other != member) {
            let (member, other) = (id(member), id(other));
            let drops = &mut self.relays[usize::from(number)].drops;
            if !matches!(lost, Lost::FromMember) {
                drops.insert((other.clone(), member.clone()));
            }
            if !matches!(lost, Lost::ToMember) {
                drops.insert((member, other));
            }
        }
    }

    fn clear_events(&mut self, name: &str) {
        let place = self.places.get_mut(&id(name)).expect("it runs");
        place.events.clear();
    }

    fn notices(&mut self, number: u8, member: &str) {
        self.change(number, &id(member), RelayChange::Down);
    }

    fn report(&mut self, from: &str, to: &str, number: u8) {
        let probe = Probe::SilentRelay {
            relay: key_of_relay(number),
        };
        let _ = self.feed(
            &id(to),
            Input::Datagram {
                from: id(from),
                probe,
            },
        );
    }
}

fn moves(net: &Net, name: &str) -> usize {
    let moves = changes(net, name);
    let moved = moves
        .iter()
        .filter(|event| matches!(event, Event::PathChanged { .. }));
    moved.count()
}

#[test]
fn a_member_that_alone_loses_a_relay_keeps_its_links_and_the_room_its_leader() {
    for lost in [Lost::Both, Lost::ToMember, Lost::FromMember] {
        for member in ROOM {
            // Heartbeats are 500 ms apart.
            for moment in (0..500).step_by(20) {
                let mut net = room();
                net.run(ms(moment));
                for name in ROOM {
                    net.clear_events(name);
                }
                net.loses(0, member, lost);
                net.run(NOTICED_AFTER);
                net.notices(0, member);
                net.run(ms(10_000));
                for name in ROOM {
                    let seen = changes(&net, name);
                    let expected = if name == member { 2 } else { 1 };
                    let only_moves = seen
                        .iter()
                        .all(|event| matches!(event, Event::PathChanged { .. }));
                    assert!(
                        only_moves && seen.len() == expected,
                        "{lost:?} for {member} at {moment}: {name} sees {seen:?}"
                    );
                    for other in ROOM.iter().filter(|other| **other != name) {
                        let over = u8::from(name == member || *other == member);
                        assert_eq!(path(&net, name, other), relay(over));
                    }
                }
            }
        }
    }
}

#[test]
fn a_report_that_is_lost_is_repeated_until_its_member_answers() {
    let mut net = room();
    net.loses(0, "b", Lost::Both);
    net.run(NOTICED_AFTER);
    // The second relay loses the first report and the ping.
    net.loses(1, "b", Lost::Both);
    net.notices(0, "b");
    net.run(DELAY * 2);
    net.relays[1].drops.clear();
    net.run(ms(10_000));
    for (one, other) in [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")] {
        assert!(net.has(one, other));
        assert_eq!(path(&net, one, other), relay(1));
    }
    let lost = |name: &str| {
        let mut seen = changes(&net, name).into_iter();
        seen.any(|event| matches!(event, Event::Reconnecting(_)))
    };
    assert!(!ROOM.iter().any(|name| lost(name)));
}

#[test]
fn a_member_that_reports_at_random_moves_its_own_link_once_in_three_seconds() {
    let mut net = room();
    for name in ROOM {
        net.clear_events(name);
    }
    // The third names a relay that no member has.
    for number in (0..3).cycle().take(1_000) {
        net.report("b", "a", number);
        net.run(ms(10));
    }
    assert!((1..=4).contains(&moves(&net, "a")), "{}", moves(&net, "a"));
    assert_eq!(path(&net, "a", "c"), relay(0));
    assert_eq!(moves(&net, "b") + moves(&net, "c"), 0);
    assert!(net.is_settled());
}

#[test]
fn a_report_moves_nothing_where_no_other_relay_is_left() {
    let mut net = relayed_room(&["a", "b"]);
    net.clear_events("a");
    net.report("b", "a", 0);
    net.run(ms(5_000));
    assert_eq!(path(&net, "a", "b"), relay(0));
    assert_eq!(moves(&net, "a"), 0);
    // Nor does one of a member that is linked directly.
    let mut net = Net::room(&["a", "b"]);
    net.enter_relay(0, &["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.clear_events("a");
    net.report("b", "a", 0);
    net.run(ms(5_000));
    assert_eq!(path(&net, "a", "b"), Some(crate::path::LinkPath::Direct));
    assert_eq!(changes(&net, "a"), []);
}

#[test]
fn a_member_of_an_earlier_version_gets_no_report() {
    let mut net = Net::new();
    net.wall("a", "b");
    net.old.insert(id("b"));
    fill(&mut net, &["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.notices(0, "a");
    let node = &mut net.places.get_mut(&id("a")).expect("runs").node;
    assert!(!node.report_silent_relays(&id("b")));
}
