//! Pairs that stay unlinked because of a member's own limit.

use super::*;
use crate::node::unlinked::MAX_EARLY_REPORTS;

fn unlinked(peer: &str, other: &str) -> Event {
    let (peer, other) = (id(peer), id(other));
    Event::Unlinked { peer, other }
}

/// A room in which a leads, and b may have two links and has them.
fn room_with_a_full_member() -> Net {
    let mut net = Net::new();
    net.start("a");
    net.wait("a leads", |net| net.leads("a"));
    let config = NodeConfig {
        max_connections: 2,
        ..net.config.clone()
    };
    net.start_with("b", life(b'b', 1), config);
    net.enter("b", "a");
    net.start("c");
    net.enter("c", "a");
    net.settle();
    net
}

#[test]
fn a_pair_that_a_members_own_limit_leaves_unlinked_is_reported_once_to_both_hosts_and_the_leaders()
{
    let mut net = room_with_a_full_member();
    net.start("d");
    net.enter("d", "a");
    net.run(ms(70_000));
    assert!(!net.has("b", "d") && net.has("a", "d") && net.has("c", "d"));
    for name in ["a", "b", "d"] {
        assert_eq!(net.times(name, &unlinked("d", "b")), 1, "{name}");
    }
    assert_eq!(net.times("c", &unlinked("d", "b")), 0);
}

#[test]
fn a_report_counts_that_comes_before_the_leader_is_linked_with_the_newcomer() {
    let mut net = room_with_a_full_member();
    let newcomer = PeerEntry {
        id: id("d"),
        key: life(key_at("d"), 1).key,
        addresses: Vec::new(),
    };
    net.forge("a", "b", Message::PeerList(vec![newcomer]));
    net.run(ms(1_000));
    assert_eq!(net.times("b", &unlinked("d", "b")), 1);
    assert_eq!(net.times("a", &unlinked("d", "b")), 0);
    net.start("d");
    net.enter("d", "a");
    net.run(ms(1_000));
    for name in ["a", "b", "d"] {
        assert_eq!(net.times(name, &unlinked("d", "b")), 1, "{name}");
    }
}

#[test]
fn a_member_s_made_up_reports_take_the_place_of_its_own_alone() {
    let mut net = room_with_a_full_member();
    for number in 0..2 * MAX_EARLY_REPORTS {
        let (peer, other) = (id(&format!("z{number}")), id("c"));
        net.forge("c", "a", Message::Unlinked { peer, other });
    }
    let report = Message::Unlinked {
        peer: id("d"),
        other: id("b"),
    };
    net.forge("b", "a", report);
    net.run(ms(1_000));
    let kept = &net.node("a").unlinked.early;
    let of_c = kept.keys().filter(|report| report.from == id("c"));
    assert!(of_c.count() <= MAX_EARLY_REPORTS);
    net.start("d");
    net.enter("d", "a");
    net.run(ms(1_000));
    assert_eq!(net.times("a", &unlinked("d", "b")), 1);
    assert_eq!(net.times("d", &unlinked("d", "b")), 1);
}

#[test]
fn the_next_leader_learns_of_unlinked_pairs() {
    let mut net = room_with_a_full_member();
    net.start("d");
    net.enter("d", "a");
    net.run(ms(1_000));
    net.order("a", Command::TransferLeadership(id("c")));
    net.wait("c leads", |net| net.leads("c"));
    net.run(ms(1_000));
    assert_eq!(net.times("c", &unlinked("d", "b")), 1);
    assert_eq!(net.times("d", &unlinked("d", "b")), 1);
}

#[test]
fn a_pair_counts_at_both_ends_until_one_of_them_leaves() {
    let mut net = room_with_a_full_member();
    let counts = |net: &Net| ["a", "b", "c", "d"].map(|name| net.node(name).unlinked_peers());
    net.start("d");
    net.enter("d", "a");
    net.run(ms(1_000));
    assert_eq!(counts(&net), [0, 1, 0, 1]);
    net.order("d", Command::Leave);
    net.run(ms(100));
    net.kill("d", true);
    net.run(ms(1_000));
    assert_eq!(net.node("b").unlinked_peers(), 0);
    assert_eq!(net.node("a").unlinked_peers(), 0);
}

#[test]
fn only_the_leader_reports_that_a_member_has_left() {
    let mut net = room_with_a_full_member();
    net.start("d");
    net.enter("d", "a");
    net.run(ms(1_000));
    let peer = id("d");
    net.forge("c", "b", Message::UnlinkedLeft { peer });
    net.run(ms(100));
    assert_eq!(net.node("b").unlinked_peers(), 1);
}

#[test]
fn a_pair_is_linked_as_soon_as_there_is_a_place() {
    let mut net = room_with_a_full_member();
    net.start("d");
    net.enter("d", "a");
    net.run(ms(100_000));
    net.order("c", Command::Leave);
    net.run(ms(100));
    net.kill("c", true);
    net.wait("b and d are linked", |net| {
        net.has("b", "d") && net.has("d", "b")
    });
    assert_eq!(net.node("b").unlinked_peers(), 0);
    assert_eq!(net.node("d").unlinked_peers(), 0);
}

#[test]
fn a_member_reports_its_own_limit_only() {
    let mut net = Net::room(&["a", "b", "c", "m"]);
    let made_up = |peer: &str, other: &str| Message::Unlinked {
        peer: id(peer),
        other: id(other),
    };
    net.forge("m", "a", made_up("b", "c"));
    net.forge("m", "a", made_up("z", "m"));
    net.forge("m", "b", made_up("b", "m"));
    net.forge("m", "b", made_up("b", "z"));
    net.run(ms(1_000));
    for name in ["a", "b", "c"] {
        let reported = net.events(name).into_iter();
        assert_eq!(
            reported
                .filter(|event| matches!(event, Event::Unlinked { .. }))
                .count(),
            0
        );
    }
}
