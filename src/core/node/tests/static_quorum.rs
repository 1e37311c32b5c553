//! Rooms whose quorum is a fixed number of voters (C2, C8, G9, O14, X5a).

use super::*;
use crate::core::election::LeaderReason;
use crate::core::wire::{ElectionMessage, Pulse};

fn static_net(voters: u32) -> Net {
    let mut net = Net::new();
    net.config.policy.quorum = QuorumPolicy::Static { voters };
    net
}

/// A settled room in which somebody leads.
fn static_room(voters: u32, names: &[&str]) -> Net {
    let mut net = static_net(voters);
    for name in names {
        net.start(name);
    }
    for name in &names[1..] {
        net.enter(name, names[0]);
    }
    net.wait("a mesh with one leader", Net::is_settled);
    net.run(ms(1000));
    for place in net.places.values_mut() {
        place.events.clear();
        place.said.clear();
    }
    net
}

fn leader(net: &Net) -> String {
    let leader = net.places.values().find(|place| place.node.is_leader());
    let leader = leader.map(|place| place.node.id().as_str().to_owned());
    leader.expect("somebody leads")
}

fn others<'a>(names: &[&'a str], except: &str) -> Vec<&'a str> {
    names
        .iter()
        .copied()
        .filter(|name| *name != except)
        .collect()
}

/// The same place again, with what is on its disk.
fn restart(net: &mut Net, name: &str) {
    let mut config = net.config.clone();
    config.saved = net.disks.get(&id(name)).cloned();
    let started = net.now.as_micros();
    net.start_with(name, life(name.as_bytes()[0], started), config);
}

#[test]
fn without_a_majority_of_all_voters_nobody_leads_and_no_term_is_spent() {
    for present in [&["a"][..], &["a", "b"]] {
        let mut net = static_net(4);
        for name in present {
            net.start(name);
        }
        for name in &present[1..] {
            net.enter(name, "a");
        }
        net.run(ms(60_000));
        for name in present {
            assert_eq!(net.node(name).leader(), None, "{present:?}");
            assert_eq!(net.node(name).record().term(), 0);
        }
    }
}

#[test]
fn one_voter_alone_leads_and_of_two_both_are_needed() {
    let mut net = static_net(1);
    net.start("a");
    net.wait("the only voter leads", |net| net.leads("a"));

    let mut net = static_room(2, &["a", "b"]);
    let (leads, follows) = if net.leads("a") {
        ("a", "b")
    } else {
        ("b", "a")
    };
    net.kill(follows, true);
    // G6 holds for two as well.
    net.wait("it resigns", |net| !net.leads(leads));
    net.run(ms(30_000));
    assert_eq!(net.node(leads).leader(), None);
}

#[test]
fn a_room_that_is_cut_has_a_leader_on_one_side_at_most() {
    let names = ["a", "b", "c", "d", "e"];
    let mut net = static_room(5, &names);
    let first = leader(&net);
    let second = others(&names, &first)[0];
    // The leader and one more on the one side.
    for one in [first.as_str(), second] {
        for other in names {
            if other != first && other != second {
                net.unlink(one, other, LinkEnd::Silent);
            }
        }
    }
    net.dials_work = false;
    net.run(ms(3000));
    assert!(!net.leads(&first), "P13");
    assert!(net.events(&first).contains(&Event::LeaderChanged {
        leader: None,
        reason: LeaderReason::Resigned
    }));
    net.run(ms(3000));
    assert_eq!(net.node(&first).leader(), None);
    assert_eq!(net.node(second).leader(), None);
    assert!(names.iter().any(|name| net.leads(name)));
}

#[test]
fn one_voter_too_many_is_refused_with_the_number() {
    let mut net = static_room(3, &["a", "b", "c"]);
    net.start("d");
    let refused = net.check("d", "a");
    assert_eq!(refused, Err(AdmissionRefusal::VotersFull(3)));
    assert!(
        refused
            .expect_err("refused")
            .to_string()
            .contains("of 3 voters")
    );
    net.kill("d", true);
    // An observer is welcome, but does not become a voter.
    let observer = NodeConfig {
        eligible: false,
        ..net.config.clone()
    };
    net.start_with("o", life(b'o', 1), observer);
    assert_eq!(net.check("o", "a"), Ok(()));
    net.enter("o", "a");
    net.wait("a mesh", Net::is_settled);
    assert_eq!(
        net.try_order("o", Command::SetEligible(true)),
        Err(CommandError::VotersFull(3))
    );
    // Who is lost keeps its place; who left does not.
    net.start("d");
    net.kill("c", false);
    net.run(ms(5000));
    assert_eq!(net.check("d", "a"), Err(AdmissionRefusal::VotersFull(3)));
    net.order("b", Command::Leave);
    net.run(ms(1000));
    assert_eq!(net.check("d", "a"), Ok(()));
}

#[test]
fn a_member_that_says_it_may_vote_beyond_the_number_counts_as_an_observer() {
    let mut net = static_room(3, &["a", "b", "c"]);
    let observer = NodeConfig {
        eligible: false,
        ..net.config.clone()
    };
    net.start_with("o", life(b'o', 1), observer);
    net.enter("o", "a");
    net.wait("a mesh", Net::is_settled);
    let boast = Message::Standing {
        eligible: true,
        priority: 9,
        successor: None,
    };
    net.forge("o", "a", boast);
    let voters = net.node("a").view.eligible().count() + 1;
    assert_eq!(voters, 3);
}

/// X5a, O14: what was voted is known after a restart, and whoever led follows.
#[test]
fn a_restarted_voter_knows_its_term_and_vote_and_may_vote_at_once() {
    let names = ["a", "b", "c"];
    let mut net = static_room(3, &names);
    let first = leader(&net);
    let record = net.node(&first).record().clone();
    net.kill(&first, true);
    net.run(ms(100));
    restart(&mut net, &first);
    assert_eq!(*net.node(&first).record(), record);
    assert!(!net.leads(&first));
    let contact = others(&names, &first)[0];
    net.enter(&first, contact);
    net.wait("a leader", Net::is_settled);
    let next = net.node(&first).record().clone();
    assert!(next > record);
}

#[test]
fn a_first_start_votes_at_once_too() {
    let mut net = static_net(3);
    for name in ["a", "b"] {
        net.start(name);
    }
    net.enter("b", "a");
    let took = net.wait("a leader", Net::is_settled);
    assert!(took < ms(3000), "it waited for a grace: {took:?}");
}

#[test]
fn no_vote_and_no_claim_is_said_before_it_is_on_disk() {
    let mut net = static_net(3);
    net.write_time = None;
    for name in ["a", "b", "c"] {
        net.start(name);
    }
    for name in ["b", "c"] {
        net.enter(name, "a");
    }
    net.run(ms(20_000));
    for name in ["a", "b", "c"] {
        let said = &net.place(name).said;
        let depends = |message: &Message| {
            matches!(
                message,
                Message::Election(
                    ElectionMessage::VoteRequest { .. }
                        | ElectionMessage::VoteResponse { granted: true, .. }
                )
            )
        };
        assert!(!said.iter().any(|(_, message)| depends(message)), "{name}");
        // Links live on.
        assert_eq!(net.node(name).membership().len(), 2, "{name}");
    }
}

#[test]
fn a_slow_disk_costs_its_own_time_and_no_link() {
    let mut net = static_net(3);
    net.write_time = Some(ms(700));
    for name in ["a", "b", "c"] {
        net.start(name);
    }
    for name in ["b", "c"] {
        net.enter(name, "a");
    }
    net.wait("a leader", Net::is_settled);
    net.run(ms(5000));
    let first = leader(&net);
    for place in net.places.values_mut() {
        place.events.clear();
    }
    net.run(ms(20_000));
    assert!(net.leads(&first));
    for name in ["a", "b", "c"] {
        assert_eq!(net.events(name), []);
    }
}

/// What a leader sends in its own name waits for the disk, too.
#[test]
fn a_leader_stamps_nothing_before_its_record_is_on_disk() {
    let mut net = static_room(3, &["a", "b", "c"]);
    let caller = others(&["a", "b", "c"], &leader(&net))[0];
    net.write_time = Some(ms(300));
    net.order(caller, Command::SetLeader(id(caller)));
    assert!(net.leads(caller), "its own host is shown it at once");
    assert_eq!(net.node(caller).leader_stamp(), None);
    assert_eq!(net.heard_from(caller, "a").len(), 0);
    let side = net.node(caller).side(net.now);
    assert!(!side.record.assigned);
    let pulse = net
        .node(caller)
        .election()
        .pulse(net.now, &net.node(caller).view);
    assert!(matches!(pulse, Pulse::Follows { live: false, .. }));
    net.run(ms(299));
    assert_eq!(net.node(caller).leader_stamp(), None);
    net.run(ms(1));
    assert!(net.node(caller).leader_stamp().is_some());
    net.wait("all follow", |net| net.is_settled() && net.leads(caller));
}

#[test]
fn the_next_life_is_newer_whatever_the_clock_says() {
    let saved = life(1, 500).incarnation;
    let of = |started| life(1, started).incarnation.after(saved);
    assert!(of(400) > saved);
    assert!(of(500) > saved);
    assert_eq!(of(600), life(1, 600).incarnation);
}
