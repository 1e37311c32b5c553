//! Members that are lost, keep their places, return, and leave.

use super::*;
use crate::wire::MAX_PEER_LIST_ENTRIES;

fn reconnecting(peer: &str) -> Event {
    Event::Reconnecting(peer_id(peer))
}

fn peer_id(peer: &str) -> PeerId {
    id(peer)
}

/// Two members whose link is lost, with dials that reach no peer.
fn parted() -> Net {
    parted_with(|_| {})
}

fn parted_with(change: impl Fn(&mut NodeConfig)) -> Net {
    let mut net = Net::new();
    change(&mut net.config);
    net.fill(&["a", "b"]);
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    assert_eq!(net.events("a"), vec![reconnecting("b")]);
    assert!(net.is_absent("a", "b") && net.node("a").membership().is_empty());
    net
}

#[test]
fn m7_m18_a_lost_member_that_comes_back_returns_and_does_not_join_again() {
    let mut net = parted();
    net.run(ms(10_000));
    net.dials_work = true;
    net.wait("both ends dial", |net| {
        net.has("a", "b") && net.has("b", "a")
    });
    for (one, other) in [("a", "b"), ("b", "a")] {
        assert_eq!(
            net.times(one, &Event::Returned(Returned::new(id(other)))),
            1
        );
        assert_eq!(net.times(one, &joined(other)), 0);
        assert_eq!(net.times(one, &left(other, LeftReason::Lost)), 0);
    }
    net.wait("one leader", Net::is_settled);
}

#[test]
fn m7_m19_another_incarnation_or_another_key_is_no_return() {
    for restarted in [life(b'b', u64::MAX), life(200, u64::MAX), life(200, 0)] {
        let mut net = parted();
        let present = net.place("b").life;
        net.kill("b", false);
        // An incarnation proves nothing by itself: only with its key is it the same process.
        let restarted = match restarted.incarnation.started_us {
            0 => Life {
                incarnation: present.incarnation,
                ..restarted
            },
            _ => restarted,
        };
        net.start_as("b", restarted);
        net.enter("b", "a");
        let reported = [
            reconnecting("b"),
            left("b", LeftReason::Replaced),
            joined("b"),
        ];
        let events = net.events("a");
        let about_b: Vec<_> = events
            .iter()
            .filter(|reported| !matches!(reported, Event::LeaderChanged(_)))
            .collect();
        assert_eq!(
            about_b,
            reported.iter().collect::<Vec<_>>(),
            "{restarted:?}"
        );
    }
}

#[test]
fn a_link_with_another_key_is_no_return_even_where_no_question_was_asked() {
    let mut net = parted();
    let present = net.place("b").life;
    net.kill("b", false);
    net.start_as(
        "b",
        Life {
            key: Fingerprint([201; 32]),
            ..present
        },
    );
    net.link("a", "b");
    assert_eq!(net.times("a", &left("b", LeftReason::Replaced)), 1);
    assert_eq!(net.times("a", &joined("b")), 1);
    assert_eq!(net.times("a", &Event::Returned(Returned::new(id("b")))), 0);
}

#[test]
fn m10_m17_a_member_that_does_not_return_has_left_exactly_when_its_hold_is_over() {
    let mut net = parted_with(|config| config.member_hold = ms(7000));
    let lost_at = net.reported_at("a", &reconnecting("b")).expect("reported");
    net.run(ms(20_000));
    let left_at = net
        .reported_at("a", &left("b", LeftReason::Lost))
        .expect("reported");
    assert_eq!(left_at.since(lost_at), ms(7000));
    assert!(!net.is_absent("a", "b"));
    assert_eq!(net.times("a", &left("b", LeftReason::Lost)), 1);
}

#[test]
fn a_member_whose_dials_are_used_up_is_given_up() {
    let mut net = parted_with(|config| config.reconnect.max_retries = Some(3));
    net.run(ms(20_000));
    assert_eq!(net.times("a", &left("b", LeftReason::GaveUp)), 1);
}

#[test]
fn without_reconnecting_a_loss_is_the_end_and_switching_it_off_ends_what_is_waited_for() {
    let mut net = parted();
    net.order("a", Command::SetAutoReconnect(false));
    assert_eq!(net.times("a", &left("b", LeftReason::GaveUp)), 1);
    assert!(!net.is_absent("a", "b"));
    let mut net = Net::room(&["a", "b"]);
    net.order("a", Command::SetAutoReconnect(false));
    net.unlink("a", "b", LinkEnd::Silent);
    assert_eq!(net.events("a"), vec![left("b", LeftReason::Lost)]);
}

#[test]
fn m18_a_lost_member_can_be_disconnected_and_stays_away() {
    let mut net = parted();
    net.order("a", disconnect(id("b"), 0, b""));
    assert_eq!(net.times("a", &left("b", LeftReason::Disconnected)), 1);
    net.dials_work = true;
    net.run(ms(10_000));
    assert!(!net.has("a", "b") && !net.has("b", "a"));
    assert_eq!(net.check("b", "a"), Err(AdmissionRefusal::Banned(id("b"))));
    net.order("a", Command::LiftBan(id("b")));
    assert_eq!(net.check("b", "a"), Ok(()));
}

#[test]
fn the_places_of_lost_members_are_bounded_and_the_oldest_is_given_up() {
    let mut net = Net::new();
    net.config.max_connections = 2;
    net.start("a");
    net.dials_work = false;
    for name in ["b", "c", "d"] {
        net.start(name);
        net.enter(name, "a");
        net.kill(name, true);
        net.run(ms(50));
        assert!(net.is_absent("a", name));
    }
    assert!(!net.is_absent("a", "b") && net.is_absent("a", "c") && net.is_absent("a", "d"));
    assert_eq!(net.times("a", &left("b", LeftReason::Lost)), 1);
}

#[test]
fn lost_members_keep_their_places_within_the_leaders_limit_but_not_within_the_members_own() {
    let mut net = Net::room(&["a", "b"]);
    net.dials_work = false;
    net.order("a", Command::SetMaxPeers(2));
    net.unlink("a", "b", LinkEnd::Silent);
    net.start("c");
    net.enter("c", "a");
    let ticket = net.ask("d", "a");
    assert_eq!(
        net.verdict("a", ticket),
        Some(full(2)),
        "one linked, one lost"
    );
    let ticket = net.ask("b", "a");
    assert_eq!(
        net.verdict("a", ticket),
        Some(Verdict::Accepted),
        "its own place"
    );

    let mut net = Net::new();
    net.config.max_connections = 1;
    net.fill(&["a", "b"]);
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    net.start("c");
    net.enter("c", "a");
    net.start("d");
    assert_eq!(
        net.check("d", "a"),
        Err(AdmissionRefusal::Full(NoPlace::Connections { limit: 1 }))
    );
}

#[test]
fn an_admitted_member_has_a_place_until_it_is_linked_or_too_late() {
    let mut net = Net::room(&["a"]);
    net.order("a", Command::SetMaxPeers(1));
    let first = net.ask("b", "a");
    assert_eq!(net.verdict("a", first), Some(Verdict::Accepted)); // and it never arrives
    let second = net.ask("c", "a");
    assert_eq!(net.verdict("a", second), Some(full(1)));
    net.run(ms(5000));
    let third = net.ask("c", "a");
    assert_eq!(net.verdict("a", third), Some(Verdict::Accepted));
}

/// Makes a member break the protocol at `at`.
fn break_the_rules(net: &mut Net, offender: &str, at: &str) {
    let entry = PeerEntry {
        id: id("x"),
        key: Fingerprint([9; 32]),
        addresses: Vec::new(),
    };
    let too_long = vec![entry; MAX_PEER_LIST_ENTRIES + 1];
    net.forge(offender, at, Message::PeerList(too_long));
    assert!(!net.has(at, offender));
}

fn banned(peer: &str) -> Result<(), AdmissionRefusal> {
    Err(AdmissionRefusal::Banned(id(peer)))
}

#[test]
fn the_other_end_lifts_a_disconnection_by_hand_and_not_a_violation() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.order("a", disconnect(id("b"), 0, b""));
    assert_eq!(net.check("b", "a"), banned("b"));
    assert_eq!(net.check_by_hand("b", "a"), Ok(()));
    break_the_rules(&mut net, "c", "a");
    assert_eq!(net.check("c", "a"), banned("c"));
    assert_eq!(net.check_by_hand("c", "a"), banned("c"));
    net.order("a", Command::LiftBan(id("c")));
    assert_eq!(net.check_by_hand("c", "a"), banned("c"));
    // This node's own host does.
    net.order("a", Command::Pardon(net.place("c").life.key));
    assert_eq!(net.check("c", "a"), Ok(()));
}

#[test]
fn a_violation_bars_the_key_for_a_minute_and_twice_as_long_each_time_after() {
    let mut net = Net::room(&["a", "b"]);
    for seconds in [60, 120, 240] {
        net.dials_work = false;
        break_the_rules(&mut net, "b", "a");
        net.run(ms(seconds * 1000 - 1));
        assert_eq!(net.check("b", "a"), banned("b"), "{seconds} s");
        net.dials_work = true;
        net.run(ms(1));
        assert_eq!(net.check("b", "a"), Ok(()), "{seconds} s");
        // Another peer may have provoked it: it gets back by itself.
        net.wait("it is linked again", |net| {
            net.has("a", "b") && net.has("b", "a")
        });
    }
}

#[test]
fn a_violation_bans_its_key_and_no_other_under_that_id() {
    let mut net = Net::room(&["a", "b"]);
    net.dials_work = false;
    let honest = net.place("b").life;
    net.kill("b", true);
    net.run(ms(70_000));
    net.start_as("b", life(200, net.now.as_micros()));
    net.enter("b", "a");
    break_the_rules(&mut net, "b", "a");
    assert_eq!(net.check("b", "a"), banned("b"));
    net.kill("b", false);
    net.start_as("b", honest);
    assert_eq!(net.check("b", "a"), Ok(()));
    // Another id does not help the key that did it.
    net.start_as("z", life(200, net.now.as_micros()));
    assert_eq!(net.check("z", "a"), banned("z"));
}

#[test]
fn hearsay_of_another_key_changes_nothing_for_a_bound_id_and_a_link_with_it_does() {
    let newer = life(200, u64::MAX);
    let entry = PeerEntry {
        id: id("c"),
        key: newer.key,
        addresses: vec![SocketAddr::from(([10, 0, 0, 1], 9))],
    };
    let admitted = Message::Admitted {
        entry: entry.clone(),
        incarnation: newer.incarnation,
    };
    for word in [Message::PeerList(vec![entry]), admitted] {
        for lost in [false, true] {
            let mut net = Net::room(&["a", "b", "c"]);
            net.dials_work = false;
            if lost {
                net.unlink("b", "c", LinkEnd::Silent);
            }
            // From the leader, too.
            net.forge("a", "b", word.clone());
            assert_eq!(net.times("b", &left("c", LeftReason::Replaced)), 0);
            assert_eq!((net.has("b", "c"), net.is_absent("b", "c")), (!lost, lost));
            net.dials_work = true;
            net.run(ms(5000));
            assert!(net.has("b", "c"), "lost: {lost}");
            assert_eq!(net.times("b", &left("c", LeftReason::Replaced)), 0);

            net.kill("c", false);
            net.start_as("c", newer);
            net.enter_after(ms(1500), "c", "b");
            assert_eq!(net.times("b", &left("c", LeftReason::Replaced)), 1);
            assert_eq!(net.times("b", &joined("c")), 1);
        }
    }
}
