//! Eligibility: fixed hosts and their guests, observers.

use super::*;
use crate::election::ElectionError;
use crate::election::raft::wire::{LiveLeader, Side};
use crate::election::record::Epoch;
use crate::wire::MergePolicy;

fn with_mode(config: &NodeConfig, host_mode: HostMode) -> NodeConfig {
    let mut config = config.clone();
    config.election.policy.host_mode = host_mode;
    config
}

/// A host `h` that leads, and guests.
pub(super) fn hosted(guests: &[&str]) -> Net {
    let mut net = Net::new();
    let host = with_mode(&net.config, HostMode::Host);
    net.start_with("h", life(b'h', 1), host);
    net.config = with_mode(&net.config, HostMode::Guest);
    for guest in guests {
        net.start(guest);
        net.enter(guest, "h");
    }
    net.wait("a mesh that the host leads", |net| {
        net.is_settled() && net.leads("h")
    });
    net.run(ms(1000));
    for place in net.places.values_mut() {
        place.events.clear();
    }
    net
}

pub(super) fn room_ended(why: EndReason) -> Event {
    Event::RoomEnded {
        why,
        code: 0,
        bytes: Vec::new(),
    }
}

#[test]
fn two_hosts_and_a_host_with_those_that_elect_are_refused() {
    let net = Net::new();
    for (one, other, together) in [
        (HostMode::Off, HostMode::Off, true),
        (HostMode::Host, HostMode::Guest, true),
        (HostMode::Guest, HostMode::Host, true),
        (HostMode::Guest, HostMode::Guest, true),
        (HostMode::Host, HostMode::Host, false),
        (HostMode::Host, HostMode::Off, false),
        (HostMode::Off, HostMode::Guest, false),
    ] {
        let mut net = Net {
            config: net.config.clone(),
            ..Net::new()
        };
        net.start_with("a", life(1, 1), with_mode(&net.config, one));
        net.start_with("b", life(2, 1), with_mode(&net.config, other));
        let refused = matches!(
            net.check("a", "b"),
            Err(AdmissionRefusal::Policy {
                field: "host_mode",
                ..
            })
        );
        assert_eq!(refused, !together, "{one:?} and {other:?}");
    }
}

#[test]
fn guests_never_campaign_and_wait_for_their_host() {
    let mut net = hosted(&["a", "b"]);
    net.dials_work = false;
    net.kill("h", true);
    net.run(ms(59_000));
    for guest in ["a", "b"] {
        assert_eq!(net.node(guest).leader(), None);
        assert_eq!(net.node(guest).record().leader, Some(id("h")));
        assert_eq!(ends_reported(&net, guest), [""; 0]);
    }
    net.run(ms(1100));
    for guest in ["a", "b"] {
        assert_eq!(net.times(guest, &left("h", LeftReason::Lost)), 1);
        assert_eq!(net.times(guest, &room_ended(EndReason::HostLost)), 1);
        assert!(net.node(guest).is_over() && net.node(guest).membership().is_empty());
    }
}

#[test]
fn a_host_that_returns_leads_on() {
    let mut net = hosted(&["a", "b"]);
    net.dials_work = false;
    for guest in ["a", "b"] {
        net.unlink("h", guest, LinkEnd::Silent);
    }
    net.run(ms(30_000));
    net.dials_work = true;
    net.wait("the host is back", |net| net.is_settled() && net.leads("h"));
    net.run(ms(60_000));
    for guest in ["a", "b"] {
        assert_eq!(ends_reported(&net, guest), [""; 0]);
        assert_eq!(
            net.times(guest, &Event::Returned(Returned::new(id("h")))),
            1
        );
    }
}

#[test]
fn the_room_ends_at_once_when_the_host_leaves() {
    let mut net = hosted(&["a", "b"]);
    net.order("h", Command::Leave);
    net.run(ms(50));
    for guest in ["a", "b"] {
        assert_eq!(net.times(guest, &left("h", LeftReason::Left)), 1);
        assert_eq!(net.times(guest, &room_ended(EndReason::HostLeft)), 1);
        assert_eq!(net.node(guest).leader(), None);
        assert_eq!(net.check("b", "a"), Err(AdmissionRefusal::Ended));
    }
}

/// The leaders that a host received, in order; "" is none.
fn leaders_reported(net: &Net, name: &str) -> Vec<String> {
    let events = net.events(name).into_iter();
    events
        .filter_map(|event| match event {
            Event::LeaderChanged(LeaderChange { new: leader, .. }) => {
                Some(leader.map_or_else(String::new, |leader| leader.to_string()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_fixed_host_leads_from_its_start() {
    for auto_election in [true, false] {
        let mut net = Net::new();
        net.config.election.auto_election = auto_election;
        net.start_with("h", life(b'h', 1), with_mode(&net.config, HostMode::Host));
        assert!(net.leads("h"));
        assert!(net.node("h").leader_token().is_some());
        net.order("h", Command::SetMaxPeers(3));
        net.run(ms(10_000));
        assert_eq!(leaders_reported(&net, "h"), ["h"]);
        assert_eq!(net.node("h").record().term(), 1);
    }
}

/// Gives `guest` the record of a term in which its host led.
fn led_in(net: &mut Net, guest: &str, term: u64) {
    let mut record = net.node(guest).record().clone();
    assert_eq!(record.leader, Some(id("h")));
    record.stamp.term = term;
    let now = net.now;
    let node = &mut net.place_mut(guest).node;
    assert!(node.accept_leader_message(now, &id("h"), &Opaque::of(&record)));
}

#[test]
fn a_host_that_was_started_anew_goes_above_its_guests_in_place() {
    for merge in [MergePolicy::LargestSide, MergePolicy::HighestTerm] {
        for reported in [true, false] {
            let mut net = hosted(&["a", "b", "c"]);
            led_in(&mut net, "a", 700);
            led_in(&mut net, "b", 900);
            for name in ["h", "a", "b", "c"] {
                net.place_mut(name).node.config.election.policy.merge = merge;
            }
            // One of them was away the whole time and returns after the others.
            net.unlink("h", "c", LinkEnd::Silent);
            net.unlink("a", "c", LinkEnd::Silent);
            net.unlink("b", "c", LinkEnd::Silent);
            net.mute("c", true);
            net.kill("h", reported);
            net.run(ms(200));
            let mut host = with_mode(&net.config, HostMode::Host);
            host.election.auto_election = false;
            host.election.policy.merge = merge;
            net.start_with("h", life(b'i', 9_999_999), host);
            // The host dials one of them; the other is introduced.
            if net.has("a", "h") {
                net.unlink("h", "a", LinkEnd::Silent);
            }
            let peer = id("h");
            let why = LeftReason::Replaced;
            let _ = net.feed(&id("a"), Input::SessionOver { peer, why });
            net.enter("a", "h");
            net.run(ms(2000));
            net.mute("c", false);
            net.wait("everybody is back", |net| net.is_settled());
            net.run(ms(5000));
            assert!(net.node("h").record().term() > 900);
            assert_eq!(
                leaders_reported(&net, "h"),
                ["h"],
                "{merge:?}, received {reported}"
            );
            for guest in ["a", "b", "c"] {
                assert_eq!(
                    leaders_reported(&net, guest),
                    ["", "h"],
                    "{guest}, {merge:?}, received {reported}"
                );
                assert_eq!(ends_reported(&net, guest), [""; 0]);
                assert_eq!(net.node(guest).record(), net.node("h").record());
            }
        }
    }
}

/// One (epoch, term) belongs to one incarnation of the host.
#[test]
fn a_host_that_was_started_anew_leads_in_another_term_than_before() {
    let mut net = hosted(&["a", "b"]);
    assert_eq!(net.node("a").record().term(), 1);
    for term in 2..5u8 {
        net.kill("h", true);
        net.run(ms(100));
        let host = with_mode(&net.config, HostMode::Host);
        net.start_with("h", life(b'i' + term, term.into()), host);
        let peer = id("h");
        let why = LeftReason::Replaced;
        let _ = net.feed(&id("b"), Input::SessionOver { peer, why });
        net.enter("b", "h");
        net.wait("everybody is back", |net| net.is_settled());
        net.run(ms(3000));
        for name in ["h", "a", "b"] {
            assert_eq!(net.node(name).record().term(), u64::from(term), "{name}");
        }
    }
}

/// A guest that keeps to no rule names itself, or a friend, in every message about leaders.
#[test]
fn no_message_of_a_guest_moves_a_fixed_host() {
    for merge in [MergePolicy::LargestSide, MergePolicy::HighestTerm] {
        let mut net = Net::new();
        net.config.election.policy.merge = merge;
        let host = with_mode(&net.config, HostMode::Host);
        net.start_with("h", life(b'h', 1), host);
        net.config = with_mode(&net.config, HostMode::Guest);
        for guest in ["a", "x"] {
            net.start(guest);
            net.enter(guest, "h");
        }
        net.wait("a mesh", |net| net.is_settled());
        net.run(ms(1000));
        let claim = |term, override_seq, leader: &str| Record {
            leader_key: None,
            stamp: Stamp {
                term,
                epoch: Epoch {
                    assigner_key: None,
                    override_seq,
                    assigner: (override_seq > 0).then(|| id("x")),
                },
            },
            leader: Some(id(leader)),
            assigned: override_seq > 0,
        };
        let live = |leader: &str| LiveLeader {
            id: id(leader),
            key: net.place("x").life.key,
            incarnation: net.place("x").life.incarnation,
            weight: 99,
            led_ms: 1 << 40,
            rest_ms: 60_000,
        };
        let side = |record: &Record, leader: &str| Side {
            since: 0,
            hold_binds: false,
            record: record.clone(),
            live: Some(live(leader)),
            lone: false,
        };
        let messages: Vec<_> = [
            (50, 0, "x"),
            (60, 0, "y"),
            (70, 5, "x"),
            (80, 6, "y"),
            (90, 7, "h"),
        ]
        .into_iter()
        .flat_map(|(term, seq, leader)| {
            let record = claim(term, seq, leader);
            [
                ElectionMessage::Nack {
                    record: record.clone(),
                    live: Some(live(leader)),
                },
                ElectionMessage::Nack {
                    record: record.clone(),
                    live: None,
                },
                ElectionMessage::LeaderAssign {
                    record: record.clone(),
                    seq: term,
                },
                ElectionMessage::ForeignSide {
                    peer: id("a"),
                    ours: side(&claim(1, 0, "h"), "h"),
                    theirs: side(&record, leader),
                },
                ElectionMessage::TimeoutNow { target: id("x") },
                ElectionMessage::VoteRequest {
                    round: term,
                    candidate: id("x"),
                    asked_by: Some(id("h")),
                },
            ]
        })
        .collect();
        for name in ["h", "a", "x"] {
            net.place_mut(name).events.clear();
        }
        for message in messages {
            let what = format!("{message:?}");
            net.forge("x", "h", message);
            if !net.has("h", "x") {
                break; // a violation: its messages count no more
            }
            net.run(DELAY * 2);
            assert!(net.leads("h"), "{merge:?}: {what}");
            assert!(net.node("h").leader_token().is_some(), "{what}");
        }
        net.run(ms(4000));
        assert!(net.leads("h"));
        assert_eq!(leaders_reported(&net, "h"), [""; 0]);
        assert_eq!(leaders_reported(&net, "a"), [""; 0]);
        assert_eq!(net.node("a").leader(), Some(&id("h")));
    }
}

/// Reasons for the end of the room that a member's host received.
fn ends_reported(net: &Net, name: &str) -> Vec<String> {
    let events = net.events(name).into_iter();
    events
        .filter_map(|event| match event {
            Event::RoomEnded { why, .. } => Some(format!("{why:?}")),
            _ => None,
        })
        .collect()
}

#[test]
fn a_guest_receives_the_end_of_its_room() {
    let mut net = hosted(&["a", "b"]);
    net.order("h", disconnect(id("a"), 0, b""));
    net.run(ms(100));
    assert_eq!(ends_reported(&net, "a"), ["Disconnected"]);
    assert_eq!(net.times("a", &left("h", LeftReason::Disconnected)), 1);
    assert_eq!(net.times("h", &left("a", LeftReason::Disconnected)), 1);
    assert_eq!(ends_reported(&net, "b"), [""; 0]);
    assert_eq!(net.node("b").leader(), Some(&id("h")));

    // With a reason code and bytes.
    let mut net = hosted(&["a", "b"]);
    net.order("h", disconnect(id("a"), 12, b"afk"));
    net.run(ms(100));
    let reported = Event::RoomEnded {
        why: EndReason::Disconnected,
        code: 12,
        bytes: b"afk".to_vec(),
    };
    assert_eq!(net.times("a", &reported), 1);
    assert_eq!(ends_reported(&net, "a"), ["Disconnected"]);

    // The guest's host disconnects.
    let mut net = hosted(&["a", "b"]);
    net.order("a", disconnect(id("h"), 0, b""));
    net.run(ms(100));
    assert_eq!(ends_reported(&net, "a"), ["Disconnected"]);
    assert_eq!(net.times("h", &left("a", LeftReason::Disconnected)), 1);
    assert_eq!(ends_reported(&net, "b"), [""; 0]);

    let mut net = hosted(&["a", "b"]);
    net.order("h", Command::Leave);
    net.run(ms(100));
    for guest in ["a", "b"] {
        assert_eq!(ends_reported(&net, guest), ["HostLeft"]);
    }

    let kick = Command::Kick {
        ban: true,
        peer: id("a"),
        code: 4,
        bytes: b"out".to_vec(),
    };
    let mut net = hosted(&["a", "b"]);
    net.order("h", kick);
    net.run(ms(100));
    assert_eq!(ends_reported(&net, "a"), ["Kicked"]);
    assert_eq!(ends_reported(&net, "b"), [""; 0]);

    // The host is lost: its guests end after the hold, or at once if lost peers keep no place.
    for auto_reconnect in [true, false] {
        let mut net = hosted(&["a", "b"]);
        net.dials_work = false;
        for guest in ["a", "b"] {
            net.order(guest, Command::SetAutoReconnect(auto_reconnect));
        }
        net.kill("h", true);
        net.run(if auto_reconnect { ms(60_200) } else { ms(200) });
        for guest in ["a", "b"] {
            assert_eq!(ends_reported(&net, guest), ["HostLost"]);
            assert_eq!(net.times(guest, &left("h", LeftReason::Lost)), 1);
        }
    }

    // A guest that gives up waiting.
    let mut net = hosted(&["a", "b"]);
    net.dials_work = false;
    net.kill("h", true);
    net.run(ms(2000));
    net.order("a", Command::SetAutoReconnect(false));
    assert_eq!(ends_reported(&net, "a"), ["HostLost"]);
}

#[test]
fn no_member_may_set_another_leader_than_the_host() {
    let mut net = hosted(&["a", "b"]);
    for caller in ["h", "a", "b"] {
        for target in ["a", "b"] {
            let refused = net.try_order(caller, Command::SetLeader(id(target)));
            let expected = CommandError::Election(ElectionError::IneligibleTarget(id(target)));
            assert_eq!(refused, Err(expected), "{caller} sets {target}");
        }
        assert_eq!(
            net.try_order(caller, Command::SetEligible(true)),
            Err(CommandError::FixedHost)
        );
        assert_eq!(
            net.try_order(caller, Command::SetEligible(false)),
            Err(CommandError::FixedHost)
        );
    }
    assert!(net.leads("h"));
}

#[test]
fn a_guest_that_claims_to_be_eligible_is_not_believed() {
    let mut net = hosted(&["a", "b"]);
    let standing = Message::Standing {
        eligible: true,
        priority: 9,
        successor: None,
    };
    net.forge("b", "a", standing.clone());
    net.forge("b", "h", standing);
    for member in ["a", "h"] {
        let refused = net.try_order(member, Command::SetLeader(id("b")));
        assert!(
            matches!(refused, Err(CommandError::Election(_))),
            "{member}"
        );
    }
    // Nor by its Hello.
    let mut liar = with_mode(&net.config, HostMode::Guest);
    liar.election.policy.host_mode = HostMode::Guest;
    net.start_with("c", life(b'c', 9), liar);
    net.place_mut("c").node.config.election.eligible = true;
    net.enter("c", "h");
    let refused = net.try_order("h", Command::SetLeader(id("c")));
    assert!(matches!(refused, Err(CommandError::Election(_))));
}

#[test]
fn an_observer_never_leads_and_counts_for_no_majority() {
    let mut net = Net::new();
    net.start("a");
    net.wait("a leads", |net| net.leads("a"));
    for name in ["b", "x", "y"] {
        let mut config = net.config.clone();
        config.election.eligible = name == "b";
        net.start_with(name, life(name.as_bytes()[0], 5), config);
        net.enter(name, "a");
    }
    net.wait("a mesh", Net::is_settled);
    net.run(ms(1000));
    assert!(net.leads("a"));
    let node = net.node("a");
    let pulse = node.election.pulse(net.now, &node.view, &id("b"));
    let weight = match pulse.decode::<Beat>().expect("of votes").pulse {
        Pulse::Leads { weight, .. } => weight,
        other => panic!("{other:?}"),
    };
    assert_eq!(weight, 2, "a and b");
    // Two of the four members may vote: if both observers are lost, the leader stays.
    net.dials_work = false;
    net.kill("x", true);
    net.kill("y", true);
    net.run(ms(10_000));
    assert!(net.leads("a") && net.node("b").leader() == Some(&id("a")));
    // If both voters have gone away, none leads.
    let mut net = Net::new();
    net.config.election.eligible = false;
    net.start("x");
    net.start("y");
    net.enter("y", "x");
    net.run(ms(30_000));
    assert_eq!(
        (net.node("x").leader(), net.node("y").leader()),
        (None, None)
    );
}

#[test]
fn r60_a_leader_that_may_no_longer_lead_transfers_at_once() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    net.order("a", Command::SetEligible(false));
    assert!(!net.leads("a"));
    let took = net.wait("one leader again", |net| {
        net.is_settled() && !net.leads("a")
    });
    assert!(took <= ms(300) + DELAY * 6, "{took:?}");
    assert!(net.leads("d"), "the best rank");
    // No member names it before it may lead again.
    let refused = net.try_order("b", Command::SetLeader(id("a")));
    assert_eq!(
        refused,
        Err(CommandError::Election(ElectionError::IneligibleTarget(id(
            "a"
        ))))
    );
    let refused = net.try_order("a", Command::SetLeader(id("a")));
    assert_eq!(
        refused,
        Err(CommandError::Election(ElectionError::IneligibleTarget(id(
            "a"
        ))))
    );
    net.order("a", Command::SetEligible(true));
    net.run(DELAY);
    net.order("b", Command::SetLeader(id("a")));
    net.wait("a leads again", |net| net.is_settled() && net.leads("a"));
}

#[test]
fn an_observer_that_may_lead_again_takes_over_if_no_other_can() {
    let mut net = Net::room(&["a", "b"]);
    net.order("a", Command::SetEligible(false));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.order("a", Command::SetEligible(true));
    net.run(ms(1000));
    assert!(net.leads("b"), "coming back changes nothing");
    net.kill("b", true);
    net.wait("a leads", |net| net.leads("a"));
}

#[test]
fn an_assignment_that_crosses_a_withdrawal_makes_no_leader_of_an_observer() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", Command::SetLeader(id("b")));
    net.order("b", Command::SetEligible(false)); // before the assignment arrives
    for _ in 0..500 {
        net.run(ms(10));
        assert!(!net.leads("b"));
    }
    net.order("c", Command::SetLeader(id("c")));
    net.wait("a host names another", |net| {
        net.is_settled() && net.leads("c")
    });
}

#[test]
fn m7_changes_between_the_hellos_and_the_link_are_reported() {
    let mut net = Net::room(&["a", "b"]);
    net.start("c");
    // Its Hello claims that it may lead; before the link is up that changes.
    net.place_mut("c").node.config.election.eligible = true;
    net.enter("c", "a");
    net.wait("a mesh", Net::is_settled);
    let mut net = Net::room(&["a"]);
    net.start("b");
    let (ours, theirs) = (net.node("a").side(net.now), net.node("b").side(net.now));
    let stale = LinkUp {
        peer: id("b"),
        incarnation: net.place("b").life.incarnation,
        key: net.place("b").life.key,
        addresses: Vec::new(),
        eligible: true,
        priority: 0,
        is_host: false,
        path: Path::Direct,
        carrier: None,
        through_turn: false,
        features: 0,
        ours: ours.clone(),
        theirs: theirs.clone(),
    };
    net.order("b", Command::SetEligible(false));
    net.link("a", "b");
    let _ = net.feed(&id("a"), Input::LinkUp(Box::new(stale)));
    net.ends
        .insert((id("a"), id("b")), net.ends[&(id("b"), id("a"))]);
    net.run(ms(100));
    let refused = net.try_order("a", Command::SetLeader(id("b")));
    assert_eq!(
        refused,
        Err(CommandError::Election(ElectionError::IneligibleTarget(id(
            "b"
        ))))
    );
}

#[test]
fn the_claim_of_an_observer_to_lead_is_not_believed() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("c", Command::SetEligible(false));
    net.run(ms(50));
    let mut record = net.node("b").record().clone();
    record.stamp.term += 1;
    record.leader = Some(id("c"));
    let claim = Pulse::Leads {
        record: record.clone(),
        weight: 9,
        led_ms: 1 << 40,
        election_timeout_min_ms: 1500,
    };
    net.forge("c", "b", claim);
    assert_eq!(net.node("b").leader(), Some(&id("a")));
    let now = net.now;
    let taken = net
        .place_mut("b")
        .node
        .accept_leader_message(now, &id("c"), &Opaque::of(&record));
    assert!(!taken);
    assert_eq!(net.node("b").leader(), Some(&id("a")));
}
