//! Members without a path to each other are linked through the leader; in a star all guests are.

use super::*;
use crate::wire::HostMode;

fn is_direct(net: &Net, name: &str, peer: &str) -> bool {
    net.node(name).membership().direct(&id(peer)).is_some()
}

/// Waits until all are linked; walled pairs have no direct link.
fn meet(net: &mut Net) {
    net.wait("everybody meets", |net| {
        let names: Vec<_> = net.places.keys().cloned().collect();
        net.is_settled()
            && names.iter().all(|one| {
                names.iter().filter(|other| *other != one).all(|other| {
                    is_direct(net, one.as_str(), other.as_str()) != net.is_walled(one, other)
                })
            })
    });
}

/// `a` leads, `b` and `c` have no path to each other, `d` has one to all.
fn walled() -> Net {
    let mut net = Net::new();
    net.wall("b", "c");
    net.start("a");
    net.wait("a leads alone", |net| net.leads("a"));
    for name in ["b", "c", "d"] {
        net.start(name);
        net.enter(name, "a");
    }
    meet(&mut net);
    for (one, other) in [("b", "c"), ("c", "b")] {
        assert_eq!(net.times(one, &joined(other)), 1);
    }
    net.settle();
    net
}

fn disturbances(net: &Net, name: &str) -> Vec<Event> {
    let events = net.events(name).into_iter();
    events.filter(|event| event.peer().is_some()).collect()
}

#[test]
fn members_without_a_path_have_no_part_in_each_others_elections() {
    let mut net = walled();
    for (one, other) in [("b", "c"), ("c", "b")] {
        assert!(!net.node(one).view.voters.contains_key(&id(other)));
        assert_eq!(net.node(one).membership().len(), 3);
    }
    // Round trips are still measured.
    net.run(ms(3000));
    let member = net.node("b").membership().get(&id("c"));
    assert!(member.is_some_and(|member| member.rtt.smoothed().is_some()));
    let sent = net.messages_from("b", "c");
    let is_about_paths =
        |message: &Message| matches!(message, Message::Addresses(_) | Message::Punch { .. });
    assert!(sent.iter().all(is_about_paths), "{sent:?}");
}

#[test]
fn a_transfer_to_a_member_that_both_reach_disturbs_no_member() {
    let mut net = walled();
    net.order("a", Command::TransferLeadership(id("d")));
    net.wait("d leads", |net| net.leads("d") && net.is_settled());
    net.run(ms(10_000));
    for name in ["b", "c"] {
        assert_eq!(disturbances(&net, name), []);
    }
    assert!(net.has("b", "c") && net.has("c", "b"));
}

#[test]
fn the_next_leader_carries_them_on() {
    let mut net = walled();
    // Only d reaches both, so only it can carry them.
    for name in ["b", "c"] {
        net.order(name, Command::SetEligible(false));
    }
    net.run(ms(1000));
    net.kill("a", true);
    net.wait("d leads", |net| net.leads("d"));
    net.run(ms(10_000));
    for (one, other) in [("b", "c"), ("c", "b")] {
        assert!(net.has(one, other) && !is_direct(&net, one, other));
        let lost = net.times(one, &Event::Reconnecting(id(other)));
        let returned = Event::Returned(Returned::new(id(other)));
        assert_eq!(net.times(one, &returned), lost);
    }
}

#[test]
fn without_a_leader_that_reaches_both_they_are_lost() {
    let mut net = walled();
    net.kill("d", true);
    net.kill("a", true);
    net.wait("b and c have lost each other", |net| {
        net.is_absent("b", "c") && net.is_absent("c", "b")
    });
    net.run(ms(10_000));
    assert!(net.is_absent("b", "c") && net.is_absent("c", "b"));
    net.walls.clear();
    net.wait("they are back", |net| {
        is_direct(net, "b", "c") && is_direct(net, "c", "b")
    });
    for (one, other) in [("b", "c"), ("c", "b")] {
        let returned = Event::Returned(Returned::new(id(other)));
        assert_eq!(net.times(one, &returned), 1);
    }
}

#[test]
fn they_get_a_link_of_their_own_as_soon_as_there_is_a_path() {
    let mut net = walled();
    net.walls.clear();
    let took = net.now;
    let limit = ms(70_000);
    while !(is_direct(&net, "b", "c") && is_direct(&net, "c", "b")) {
        assert!(net.now.since(took) < limit, "they never link");
        net.run(ms(100));
    }
    net.run(ms(2000));
    for name in ["b", "c"] {
        assert_eq!(disturbances(&net, name), [], "the hosts see nothing of it");
    }
    assert!(net.node("b").view.voters.contains_key(&id("c")));
    // From then on the link behaves as any other.
    net.unlink("b", "c", LinkEnd::Silent);
    net.wait("they are back", |net| is_direct(net, "b", "c"));
}

#[test]
fn a_member_beyond_the_leader_leaves_and_is_kicked_as_any_other() {
    let mut net = walled();
    net.order("b", Command::Leave);
    net.wait("c knows", |net| {
        net.times("c", &left("b", LeftReason::Left)) == 1
    });
    let mut net = walled();
    let (code, bytes) = (7, b"out".to_vec());
    let peer = id("b");
    net.order(
        "a",
        Command::Kick {
            peer,
            code,
            bytes,
            ban: true,
        },
    );
    net.wait("c knows", |net| {
        net.events("c").iter().any(|event| {
            matches!(event, Event::Left(Left { peer, why: LeftReason::Kicked, code: 7, .. }) if *peer == id("b"))
        })
    });
}

#[test]
fn a_member_beyond_the_leader_receives_the_reason_of_its_disconnection() {
    let mut net = walled();
    net.order(
        "b",
        Command::Disconnect {
            peer: id("c"),
            code: 5,
            bytes: b"enough".to_vec(),
        },
    );
    let reported = Event::Left(Left {
        code: 5,
        bytes: b"enough".to_vec(),
        ..Left::new(id("b"), LeftReason::Disconnected)
    });
    net.wait("c knows", |net| net.times("c", &reported) == 1);
    // Neither returns by itself, through the leader or not.
    net.walls.clear();
    net.run(ms(40_000));
    assert!(!net.has("b", "c") && !net.has("c", "b"));
}

#[test]
fn messages_of_linked_members_are_no_violation_beyond_the_leader() {
    let mut net = walled();
    let incarnation = net.place("b").life.incarnation;
    for message in [
        Message::PeerList(Vec::new()),
        Message::Election(Opaque::of(&1_u8)),
        Message::Standing {
            eligible: true,
            priority: 9,
            successor: None,
        },
        Message::Kicked {
            peer: id("d"),
            key: Fingerprint([b'd'; 32]),
            code: 0,
            bytes: Vec::new(),
            ban: Some(Default::default()),
        },
    ] {
        let envelope = Envelope {
            incarnation,
            message,
        };
        let from = id("b");
        let _ = net.feed(&id("c"), Input::Message { from, envelope });
    }
    net.run(ms(1000));
    assert_eq!(disturbances(&net, "c"), []);
    assert!(net.has("c", "d"), "a member that does not lead kicks none");
}

/// A star around `h`.
pub(super) fn star(guests: &[&str]) -> Net {
    let mut net = Net::new();
    net.config.election.policy.topology = Topology::Star;
    let mut host = net.config.clone();
    host.election.policy.host_mode = HostMode::Host;
    net.start_with("h", life(b'h', 1), host);
    net.config.election.policy.host_mode = HostMode::Guest;
    for (n, guest) in guests.iter().enumerate() {
        for other in &guests[..n] {
            net.wall(guest, other);
        }
    }
    for guest in guests {
        net.start(guest);
        net.enter(guest, "h");
    }
    meet(&mut net);
    assert!(net.leads("h"));
    net.settle();
    net
}

#[test]
fn the_guests_of_a_star_connect_through_the_host_and_know_no_addresses() {
    let net = star(&["b", "c", "d", "e", "f", "g"]);
    for guest in ["b", "c", "d", "e", "f", "g"] {
        let voters: Vec<_> = net.node(guest).view.voters.keys().cloned().collect();
        assert_eq!(voters, [id("h")]);
        for (peer, member) in net.node(guest).membership().iter() {
            assert_eq!(member.addresses.is_empty(), *peer != id("h"), "{guest}");
        }
    }
}

#[test]
fn a_star_whose_host_is_silent_for_a_while_connects_again() {
    let mut net = star(&["b", "c"]);
    net.mute("h", true);
    net.wait("all are lost", |net| {
        net.is_absent("b", "h") && net.is_absent("b", "c") && net.is_absent("c", "b")
    });
    assert_eq!(net.node("b").leader(), None);
    net.mute("h", false);
    meet(&mut net);
    for (one, other) in [("b", "h"), ("b", "c"), ("c", "b"), ("c", "h")] {
        let returned = Event::Returned(Returned::new(id(other)));
        assert_eq!(net.times(one, &returned), 1, "{other} at {one}");
    }
}

#[test]
fn guests_of_a_star_do_not_wait_for_one_that_its_host_disconnects() {
    let mut net = star(&["b", "c"]);
    net.order("h", disconnect(id("c"), 7, b"afk"));
    net.run(ms(5000));
    let left = Left {
        code: 7,
        bytes: b"afk".to_vec(),
        ..Left::new(id("c"), LeftReason::Kicked)
    };
    assert_eq!(net.events("b"), [Event::Left(left)]);
}

#[test]
fn the_host_of_a_star_alone_introduces() {
    let mut net = star(&["b", "c"]);
    let stranger = PeerEntry {
        id: id("x"),
        key: Fingerprint([9; 32]),
        addresses: vec![SocketAddr::from(([10, 0, 0, 9], 7))],
    };
    for to in ["h", "c"] {
        let incarnation = net.place("b").life.incarnation;
        for message in [
            Message::PeerList(vec![stranger.clone()]),
            Message::Admitted {
                entry: stranger.clone(),
                incarnation,
            },
        ] {
            let envelope = Envelope {
                incarnation,
                message,
            };
            let from = id("b");
            let _ = net.feed(&id(to), Input::Message { from, envelope });
        }
        net.run(ms(5000));
        assert_eq!(net.node(to).dialing().count(), 0);
        assert!(!net.node(to).knows(net.now, stranger.key));
    }
    assert_eq!(disturbances(&net, "c"), []);
}

#[test]
fn a_star_and_a_mesh_do_not_go_together() {
    let mut net = star(&["b"]);
    net.config.election.policy.topology = Topology::Mesh;
    net.start("x");
    assert!(matches!(
        net.check("x", "h"),
        Err(AdmissionRefusal::Policy {
            field: "topology",
            ..
        })
    ));
}
