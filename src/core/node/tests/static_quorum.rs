//! Rooms whose voters are a fixed list (C2, C8, G9, O14, X5a).

use super::*;
use crate::core::election::raft::wire::{Memory, Side};
use crate::core::election::record::Epoch;
use crate::core::election::{AssignOutcome, LeaderReason, NotItsState};
use crate::core::quorum::Roster;
use crate::core::wire::Authority;

fn static_net(voters: &[&str]) -> Net {
    let mut net = Net::new();
    net.config.election.quorum = Quorum::of(voters);
    net
}

/// A settled room of the whole roster, in which somebody leads.
fn static_room(names: &[&str]) -> Net {
    let mut net = static_net(names);
    for name in names {
        net.start(name);
    }
    for name in &names[1..] {
        net.enter(name, names[0]);
    }
    net.settle();
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

#[test]
fn without_a_majority_of_all_voters_nobody_leads_and_no_term_is_spent() {
    for present in [&["a"][..], &["a", "b"]] {
        let mut net = static_net(&["a", "b", "c", "d"]);
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
    let mut net = static_net(&["a"]);
    net.start("a");
    net.wait("the only voter leads", |net| net.leads("a"));

    let mut net = static_room(&["a", "b"]);
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
    let mut net = static_room(&names);
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
    let resigned = |event: &Event| {
        matches!(event, Event::LeaderChanged(change)
            if change.new.is_none() && change.reason == LeaderReason::Resigned)
    };
    assert!(net.events(&first).iter().any(resigned));
    net.run(ms(3000));
    assert_eq!(net.node(&first).leader(), None);
    assert_eq!(net.node(second).leader(), None);
    assert!(names.iter().any(|name| net.leads(name)));
}

/// What broke: a newcomer on a cut-off side became a voter, and two leaders of one term led at once.
#[test]
fn a_newcomer_on_a_cut_off_side_is_no_voter() {
    let mut net = static_room(&["a", "b", "c"]);
    net.dials_work = false;
    net.kill("b", true);
    net.run(ms(100));
    net.start("b");
    net.start("d");
    net.enter("d", "b");
    for _ in 0..60 {
        net.run(ms(1000));
        assert_eq!(net.node("b").leader(), None);
        assert_eq!(net.node("d").leader(), None);
    }
    assert!(net.leads("a") || net.leads("c"));
    let majority = net.node("a").record().clone();
    net.dials_work = true;
    net.link("b", "a");
    net.wait("a mesh with one leader", Net::is_settled);
    assert!(net.node("b").record() >= &majority);
}

/// The same with a cut that outlasts the memory of those that are lost.
#[test]
fn the_lost_are_voters_for_ever() {
    let mut net = static_room(&["a", "b", "c"]);
    let cut_off = others(&["a", "b", "c"], &leader(&net))[0];
    for other in others(&["a", "b", "c"], cut_off) {
        net.unlink(cut_off, other, LinkEnd::Silent);
    }
    net.dials_work = false;
    net.run(ms(120_000));
    for newcomer in ["x", "y", "z"] {
        net.start(newcomer);
        net.enter(newcomer, cut_off);
    }
    net.run(ms(60_000));
    for name in [cut_off, "x", "y", "z"] {
        assert_eq!(net.node(name).leader(), None, "{name}");
    }
}

/// All are welcome, but nobody outside of the roster votes or leads, whatever it or its host says.
#[test]
fn who_is_not_on_the_roster_is_an_observer() {
    let mut net = static_room(&["a", "b", "c"]);
    net.start("d");
    assert_eq!(net.check("d", "a"), Ok(()));
    net.enter("d", "a");
    net.settle();
    assert_eq!(net.try_order("d", Command::SetEligible(false)), Ok(()));
    assert_eq!(net.try_order("d", Command::SetEligible(true)), Ok(()));
    net.run(ms(100));
    for name in ["a", "b", "c"] {
        assert_eq!(net.node(name).view.eligible().count(), 2, "{name}");
        let target = Command::SetLeader(id("d"));
        let refused = ElectionError::IneligibleTarget(id("d"));
        assert_eq!(net.try_order(name, target), Err(refused.into()));
    }
    let refused = ElectionError::IneligibleTarget(id("d"));
    let itself = Command::SetLeader(id("d"));
    assert_eq!(net.try_order("d", itself), Err(refused.into()));
    let before = net.node("d").record().clone();
    for name in ["a", "b", "c"] {
        net.kill(name, true);
    }
    net.run(ms(60_000));
    assert_eq!(net.node("d").leader(), None);
    assert_eq!(*net.node("d").record(), before);
}

/// Whatever an observer says of elections, nobody heeds.
#[test]
fn what_an_observer_says_raises_nothing() {
    let mut net = static_room(&["a", "b", "c"]);
    net.start("o");
    net.enter("o", "a");
    net.settle();
    let before = net.node("a").record().clone();
    let stamp = Stamp {
        term: 1000,
        ..Stamp::default()
    };
    let record = Record {
        leader: Some(id("o")),
        ..Record::undecided(stamp.clone())
    };
    let heartbeat = |pulse| {
        Forged::from(Beat {
            memory: Some(Memory {
                since: 0,
                remembered: 1000,
                sure: true,
            }),
            ..Beat::from(pulse)
        })
    };
    let lies = [
        heartbeat(Pulse::Leads {
            record: record.clone(),
            weight: 9,
            led_ms: 1_000_000,
            election_timeout_min_ms: 1500,
        }),
        heartbeat(Pulse::Follows {
            record: record.clone(),
            live: true,
        }),
        Forged::from(ElectionMessage::VoteRequest {
            round: 1,
            candidate: id("o"),
            asked_by: Some(id(&leader(&net))),
        }),
        Forged::from(ElectionMessage::Nack {
            record: record.clone(),
            live: None,
        }),
        Forged::from(ElectionMessage::TimeoutNow { target: id("b") }),
        Forged::from(Message::Standing {
            eligible: true,
            priority: 9,
            successor: Some(id("b")),
        }),
    ];
    for lie in lies {
        for name in ["a", "b", "c"] {
            net.forge_at("o", name, stamp.clone(), 1000, lie.clone());
        }
    }
    net.run(ms(5000));
    for name in ["a", "b", "c"] {
        assert_eq!(*net.node(name).record(), before, "{name}");
        assert!(!net.place(name).is_stale, "{name}");
    }
    // It may leave, and its host may ask the leader to hand over.
    let target = others(&["a", "b", "c"], &leader(&net))[0];
    net.order("o", Command::SetLeader(id(target)));
    net.wait("the target leads", |net| net.leads(target));
}

/// Nobody assigns a leader there: a record of another epoch is dropped, and its sender keeps its link.
#[test]
fn assignments_and_epochs_are_ignored() {
    let mut net = static_room(&["a", "b", "c"]);
    let leads = leader(&net);
    let before = net.node("a").record().clone();
    for (override_seq, assigner) in [(1, Some(id("c"))), (0, Some(id("c"))), (7, None)] {
        let stamp = Stamp {
            epoch: Epoch {
                override_seq,
                assigner,
            },
            term: before.term() + 1,
        };
        let record = Record {
            stamp: stamp.clone(),
            leader: Some(id("c")),
            assigned: true,
        };
        let assign = ElectionMessage::LeaderAssign { record, seq: 1 };
        for name in ["a", "b"] {
            net.forge_at("c", name, stamp.clone(), 0, assign.clone());
        }
    }
    net.run(ms(5000));
    assert_eq!(leader(&net), leads);
    for name in ["a", "b", "c"] {
        assert_eq!(*net.node(name).record(), before, "{name}");
        assert_eq!(net.node(name).membership().len(), 2, "{name}");
    }
}

/// The roster fixes a key, or the first link does.
#[test]
fn a_voter_keeps_its_key_for_the_session() {
    let mut net = static_room(&["a", "b", "c"]);
    let taken = Err(AdmissionRefusal::VoterKey(id("b")));
    net.kill("b", true);
    net.run(ms(1000));
    net.start_as("b", life(b'x', net.now.as_micros()));
    assert_eq!(net.check("b", "a"), taken);
    // Nor after the others were started anew.
    net.kill("a", true);
    net.start("a");
    assert_eq!(net.check("b", "a"), taken);
    net.start("b");
    assert_eq!(net.check("b", "a"), Ok(()));

    let mut net = Net::new();
    let voters = [("a", None), ("b", Some(life(b'b', 0).key))];
    let voters = voters.map(|(name, key)| (id(name), key));
    net.config.election.quorum = Quorum::Static(Roster::new(voters).expect("a roster"));
    net.start("a");
    net.start_as("b", life(b'x', 1));
    assert_eq!(net.check("b", "a"), taken);
    net.start("b");
    assert_eq!(net.check("b", "a"), Ok(()));
}

/// A contact that never met the voter asks the leader, which did.
#[test]
fn the_leader_knows_the_keys_of_voters_that_a_contact_never_met() {
    let mut net = static_room(&["a", "b", "c"]);
    let gone = others(&["a", "b", "c"], &leader(&net))[0];
    net.order(gone, Command::Leave);
    net.run(ms(1000));
    net.start("o");
    net.enter("o", &leader(&net));
    net.run(ms(1000));
    let impostor = life(b'x', net.now.as_micros());
    let ticket = net.ask_as(gone, impostor, "o");
    net.run(ms(1000));
    let answer = net.place("o").answers.get(&ticket);
    let answer = answer.map(|(_, verdict)| verdict.clone());
    assert_eq!(answer, Some(Verdict::DuplicatePeerId));
}

/// Leaving and kicks do not shrink the roster, and a voter that became an observer stays on it.
#[test]
fn a_roster_never_shrinks() {
    let names = ["a", "b", "c", "d", "e"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let followers = others(&names, &first);
    net.order(followers[0], Command::Leave);
    net.order(
        &first,
        Command::Kick {
            peer: id(followers[1]),
            code: 0,
            bytes: Vec::new(),
        },
    );
    net.run(ms(5000));
    assert!(net.leads(&first));
    net.order(followers[2], Command::SetEligible(false));
    net.wait("two of five are no majority", |net| !net.leads(&first));
    net.run(ms(30_000));
    for name in [first.as_str(), followers[2], followers[3]] {
        assert_eq!(net.node(name).leader(), None, "{name}");
    }
    net.order(followers[2], Command::SetEligible(true));
    net.wait("three of five elect", |net| {
        let leader = net.node(followers[3]).leader();
        leader.is_some() && leader == net.node(&first).leader()
    });
}

/// X5a, O14: what was voted is known after a restart, and whoever led follows.
#[test]
fn a_restarted_voter_knows_its_term_and_its_vote() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let record = net.node(&first).record().clone();
    net.kill(&first, true);
    net.run(ms(100));
    net.start(&first);
    assert_eq!(*net.node(&first).record(), record);
    assert!(!net.leads(&first));
    let contact = others(&names, &first)[0];
    net.enter(&first, contact);
    net.wait("a leader", Net::is_settled);
    let next = net.node(&first).record().clone();
    assert!(next > record);
}

#[test]
fn a_leader_that_was_restarted_takes_its_own_limit_over_from_the_others() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let first = leader(&net);
    net.order(&first, Command::SetMaxPeers(62));
    net.run(ms(100));
    for other in others(&names, &first) {
        net.order(other, Command::EnableAutoElection(false));
    }
    net.kill(&first, true);
    net.run(ms(50));
    net.start(&first);
    net.enter(&first, others(&names, &first)[0]);
    net.wait("it leads again", |net| {
        net.is_settled() && net.leads(&first)
    });
    net.run(ms(1000));
    for name in names {
        assert_eq!(net.node(name).max_peers(), 62, "{name}");
    }
}

/// P9: only a leader could lift the limit, and only votes make a leader.
#[test]
fn a_limit_keeps_no_voter_out_where_nobody_leads() {
    let names = ["a", "b", "c", "d", "e"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let [contact, stays, ..] = others(&names, &first)[..] else {
        panic!("four others");
    };
    net.order(&first, Command::SetMaxPeers(1));
    net.run(ms(100));
    net.dials_work = false;
    let mut rest = others(&names, contact);
    rest.retain(|name| *name != stays);
    for name in &rest {
        net.kill(name, true);
    }
    net.run(ms(5000));
    let why = LeftReason::Lost;
    for peer in rest.iter().map(|name| id(name)) {
        let _ = net.feed(&id(contact), Input::SessionOver { peer, why });
    }
    assert_eq!(net.node(contact).leader(), None);
    assert_eq!(net.node(contact).max_peers(), 1);
    let outsider = net.ask("z", contact);
    assert_eq!(net.verdict(contact, outsider), Some(Verdict::Full));
    for name in &rest {
        net.start(name);
    }
    net.enter(rest[0], contact);
    net.enter(rest[0], stays);
    net.wait("a leader", |net| net.node(contact).leader().is_some());
    let second = leader(&net);
    let voter = net.ask(rest[1], &second);
    assert_eq!(net.verdict(&second, voter), Some(Verdict::Full));
}

#[test]
fn the_first_leader_of_a_cold_room_is_there_within_the_longest_timeout() {
    let mut net = static_net(&["a", "b", "c"]);
    for name in ["a", "b"] {
        net.start(name);
    }
    net.enter("b", "a");
    let took = net.wait("a leader", Net::is_settled);
    assert!(took < ms(3000), "{took:?}");
}

/// It does not know any more whose heartbeats it heard (G4).
#[test]
fn a_restarted_voter_refuses_votes_for_the_shortest_timeout() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let [voter, candidate] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    net.dials_work = false;
    net.kill(&first, false);
    net.kill(voter, true);
    net.start(voter);
    net.run(ms(100));
    net.link(candidate, voter);
    let request = |round| {
        let candidate = id(candidate);
        ElectionMessage::VoteRequest {
            round,
            candidate,
            asked_by: None,
        }
    };
    let stamp = Stamp {
        term: net.node(candidate).record().term() + 5,
        ..Stamp::default()
    };
    for (round, after, expected) in [(101, 0, false), (102, 1300, false), (103, 200, true)] {
        net.run(ms(after));
        let writes = net.votes_on_disk(candidate).writes;
        net.forge_at(candidate, voter, stamp.clone(), writes, request(round));
        net.run(ms(20));
        let answers = net.heard_from(voter, candidate);
        let granted = answers.iter().find_map(|message| match elects(message) {
            Some(ElectionMessage::VoteResponse {
                round: answered,
                granted,
                ..
            }) if answered == round => Some(granted),
            _ => None,
        });
        assert_eq!(granted, Some(expected), "{round}");
    }
}

#[test]
fn no_vote_and_no_claim_is_said_before_it_is_on_disk() {
    let mut net = static_net(&["a", "b", "c"]);
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
                elects(message),
                Some(
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
    let mut net = static_net(&["a", "b", "c"]);
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
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let target = others(&["a", "b", "c"], &first)[0];
    net.order(&first, Command::TransferLeadership(id(target)));
    net.wait("it leads", |net| net.leads(target));
    // Its own host is shown it at once.
    assert_eq!(net.node(target).leader_token(), None);
    let pulse = net.node(target).election();
    let pulse = pulse.pulse(net.now, &net.node(target).view, &id(&first));
    let pulse = pulse.decode::<Beat>().expect("of votes").pulse;
    // To the others it campaigns.
    assert!(matches!(
        pulse,
        Pulse::Leads {
            record: Record { leader: None, .. },
            ..
        }
    ));
    let side = net.node(target).side(net.now).decode::<Side>();
    assert_eq!(side.expect("of votes").live, None);
    net.run(ms(1));
    assert!(net.node(target).leader_token().is_some());
    net.wait("all follow", |net| net.is_settled() && net.leads(target));
}

fn outcomes(net: &Net, name: &str) -> Vec<AssignOutcome> {
    let events = net.events(name).into_iter();
    let outcomes = events.filter_map(|event| match event {
        Event::SetLeaderResult { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

/// C2: votes alone make a leader. Any member asks the leader to hand over, and is told when the target leads.
#[test]
fn set_leader_asks_the_leader_to_hand_over() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    let term = net.node(&first).record().term();
    net.order(caller, Command::SetLeader(id(target)));
    assert!(net.leads(&first));
    let took = net.wait("the target leads", |net| {
        net.is_settled() && net.leads(target)
    });
    assert!(took < ms(200), "{took:?}");
    assert_eq!(outcomes(&net, caller), [AssignOutcome::Done]);
    // By the leader itself, and by the one that wants to lead.
    net.order(target, Command::SetLeader(id(caller)));
    net.wait("the caller leads", |net| {
        net.is_settled() && net.leads(caller)
    });
    assert_eq!(outcomes(&net, target), [AssignOutcome::Done]);
    net.order(&first, Command::SetLeader(id(&first)));
    net.wait("the first leads", |net| {
        net.is_settled() && net.leads(&first)
    });
    assert_eq!(outcomes(&net, &first), [AssignOutcome::Done]);
    // Who leads already needs nobody's help.
    net.order(caller, Command::SetLeader(id(&first)));
    assert_eq!(
        outcomes(&net, caller),
        [AssignOutcome::Done, AssignOutcome::Done]
    );
    for name in ["a", "b", "c"] {
        let record = net.node(name).record();
        assert_eq!(record.term(), term + 3, "{name}");
        assert_eq!(
            (&record.stamp.epoch, record.assigned),
            (&Epoch::default(), false)
        );
    }
}

/// What broke: a member that is cut off made itself leader.
#[test]
fn set_leader_makes_no_leader_of_a_member_that_is_cut_off() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let cut_off = others(&["a", "b", "c"], &first)[0];
    net.dials_work = false;
    for other in others(&["a", "b", "c"], cut_off) {
        net.unlink(cut_off, other, LinkEnd::Silent);
    }
    let itself = Command::SetLeader(id(cut_off));
    let refused = Err(ElectionError::NoLeader.into());
    assert_eq!(net.try_order(cut_off, itself.clone()), refused);
    net.run(ms(10_000));
    assert_eq!(net.try_order(cut_off, itself), refused);
    assert_eq!(net.node(cut_off).leader(), None);
    // A leader that is cut off leads on for a moment, but hands over to nobody.
    for other in others(&["a", "b", "c"], &first) {
        if other != cut_off {
            net.unlink(&first, other, LinkEnd::Silent);
        }
    }
    let target = Command::SetLeader(id(cut_off));
    let gone = ElectionError::UnknownTarget(id(cut_off));
    assert_eq!(net.try_order(&first, target), Err(gone.into()));
}

#[test]
fn a_leader_refuses_to_hand_over_to_whom_it_cannot_reach() {
    let names = ["a", "b", "c", "d"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let [caller, target, _] = others(&names, &first)[..] else {
        panic!("three others");
    };
    net.dials_work = false;
    net.unlink(&first, target, LinkEnd::Silent);
    net.run(ms(2000));
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(100));
    assert_eq!(outcomes(&net, caller), [AssignOutcome::Rejected]);
    assert!(net.leads(&first));
}

#[test]
fn a_target_that_does_not_answer_leaves_the_leader_in_its_place() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    net.mute(target, true);
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(200));
    // A second call takes the place of the first.
    net.order(caller, Command::SetLeader(id(target)));
    net.run(ms(3100));
    assert_eq!(
        outcomes(&net, caller),
        [AssignOutcome::Superseded, AssignOutcome::Timeout]
    );
    assert!(net.leads(&first));
    assert_eq!(net.node(caller).leader(), Some(&id(&first)));
}

#[test]
fn where_only_the_leader_may_name_a_leader_nobody_else_asks_it() {
    let mut net = static_net(&["a", "b", "c"]);
    net.config.election.policy.authority = Authority::LeaderOnly;
    for name in ["a", "b", "c"] {
        net.start(name);
    }
    for name in ["b", "c"] {
        net.enter(name, "a");
    }
    net.settle();
    let first = leader(&net);
    let [caller, target] = others(&["a", "b", "c"], &first)[..] else {
        panic!("two others");
    };
    let refused = Err(ElectionError::NotLeader.into());
    let call = Command::SetLeader(id(target));
    assert_eq!(net.try_order(caller, call.clone()), refused);
    // Nor does the leader obey one that asks all the same.
    let request = ElectionMessage::TransferRequest {
        seq: 1,
        target: id(target),
    };
    net.forge(caller, &first, request);
    net.run(ms(1000));
    assert!(net.leads(&first));
    net.order(&first, call);
    net.wait("the target leads", |net| net.leads(target));
}

/// C2: "a leader that sees a higher term steps down at once and does not campaign in place".
#[test]
fn a_higher_term_ends_a_leadership_at_once() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let follower = others(&["a", "b", "c"], &first)[0];
    let higher = Record::undecided(Stamp {
        term: net.node(&first).record().term() + 3,
        ..Stamp::default()
    });
    let heartbeat = Pulse::Follows {
        record: higher.clone(),
        live: false,
    };
    let writes = net.votes_on_disk(follower).writes;
    net.forge_at(follower, &first, higher.stamp.clone(), writes, heartbeat);
    assert!(!net.leads(&first));
    assert_eq!(*net.node(&first).record(), higher);
    let took = net.wait("the next leader", Net::is_settled);
    assert!(took < ms(1500), "{took:?}");
    assert_eq!(net.node("a").record().term(), higher.term() + 1);
}

/// An older copy of `name`'s state file is in its place when it starts again.
fn restore(net: &mut Net, name: &str, copy: &(Incarnation, Opaque)) {
    net.kill(name, true);
    net.disks.insert(id(name), copy.clone());
    net.run(ms(100));
    net.start(name);
}

/// A voter that shows a smaller write counter than another one remembers neither votes nor leads until it has heard
/// all others.
#[test]
fn an_older_copy_of_a_state_file_is_noticed() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let voter = others(&names, &leader(&net))[0];
    let copy = net.disks[&id(voter)].clone();
    // Its copy knows nothing of two elections.
    for _ in 0..2 {
        let first = leader(&net);
        net.order(&first, Command::YieldLeadership);
        net.run(ms(1000));
    }
    let first = leader(&net);
    let newest = net.votes_on_disk(voter).writes;
    let kept: Saved = copy.1.decode().expect("raft's");
    assert!(newest > kept.writes + 1);
    let other = others(&names, &first)
        .into_iter()
        .find(|name| *name != voter)
        .unwrap_or(voter);
    net.dials_work = false;
    for name in others(&names, voter) {
        net.kill(name, false);
    }
    let witness = if voter == other { names[0] } else { other };
    net.start(witness);
    restore(&mut net, voter, &copy);
    net.link(voter, witness);
    net.run(ms(60_000));
    assert!(net.place(voter).is_stale);
    for name in [voter, witness] {
        assert_eq!(net.node(name).leader(), None, "{name}");
    }
    // A restart is no way out.
    net.kill(voter, true);
    net.run(ms(100));
    net.start(voter);
    net.link(voter, witness);
    net.run(ms(60_000));
    assert_eq!(net.node(witness).leader(), None);
    // The third voter is back: all are heard.
    let third = others(&names, voter)
        .into_iter()
        .find(|name| *name != witness)
        .expect("three");
    net.start(third);
    net.link(third, voter);
    net.link(third, witness);
    net.wait("a leader", Net::is_settled);
    net.run(ms(2000));
    assert!(net.votes_on_disk(voter).writes > newest);
    // It votes again: with one of the others gone, both of the rest are needed.
    let gone = others(&names, voter)[0];
    net.kill(gone, true);
    net.run(ms(10_000));
    assert!(net.node(voter).leader().is_some());
}

/// Two that lost their files cannot vouch for each other.
#[test]
fn two_that_forgot_their_votes_stay_out() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let [one, other] = others(&names, &first)[..] else {
        panic!("two others");
    };
    for name in [one, other] {
        net.kill(name, true);
        net.disks.remove(&id(name));
        net.start(name);
    }
    net.run(ms(100));
    let links = [(one, first.as_str()), (other, &first), (one, other)];
    for (a, b) in links {
        net.link(a, b);
    }
    net.run(ms(1000));
    // They follow, but elect nobody.
    assert!(net.place(one).is_stale && net.place(other).is_stale);
    assert!(net.leads(&first));
    net.kill(&first, true);
    net.run(ms(100));
    net.start(&first);
    for (a, b) in &links[..2] {
        net.link(a, b);
    }
    net.run(ms(60_000));
    for name in names {
        assert_eq!(net.node(name).leader(), None, "{name}");
    }
}

/// A room of seven voters, one of whom is absent, so that the others can never be sure of their votes. "s" has lost its
/// file, and "l", which leads, never knew it before.
fn led_by_one_that_does_not_know_who_forgot() -> Net {
    let others = ["a", "b", "c", "d"];
    let mut net = static_net(&["a", "b", "c", "d", "l", "s", "v"]);
    for name in ["s", "a", "b", "c", "d"] {
        net.start(name);
    }
    for name in others {
        net.enter(name, "s");
    }
    net.settle();
    net.kill("s", true);
    net.run(ms(100));
    net.start("l");
    net.enter("l", "a");
    net.settle();
    net.disks.remove(&id("s"));
    net.start("s");
    net.enter("s", "a");
    net.run(ms(5000));
    assert!(net.place("s").is_stale);
    let first = leader(&net);
    if first != "l" {
        net.order(&first, Command::TransferLeadership(id("l")));
    }
    net.wait("l leads", |net| net.leads("l") && net.is_settled());
    net
}

/// It neither votes nor leads, and says so: no leader names it its successor, or takes it for the target of a `SetLeader`.
#[test]
fn a_voter_that_forgot_its_votes_says_that_it_may_not_lead() {
    let mut net = led_by_one_that_does_not_know_who_forgot();
    for caller in ["l", "s"] {
        let target = ElectionError::StaleTarget(id("s"));
        let refused = net.try_order(caller, Command::SetLeader(id("s")));
        assert_eq!(refused, Err(CommandError::Election(target)), "{caller}");
    }
    net.order("a", Command::SetLeader(id("s")));
    net.run(ms(100));
    assert!(net.events("a").contains(&Event::SetLeaderResult {
        target: id("s"),
        outcome: AssignOutcome::Rejected,
    }));
    net.order("l", Command::Leave);
    net.run(ms(100));
    assert!(net.leads("d"));
}

/// A voter's word that one forgot its votes may be a lie. It costs the other no more than a round of heartbeats.
#[test]
fn a_voter_that_is_wrongly_told_to_have_forgotten_its_votes_goes_on() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let liar = others(&names, &first)[0];
    let follows = Pulse::Follows {
        record: Record::default(),
        live: false,
    };
    let lie = |remembered| Beat {
        memory: Some(Memory {
            since: 0,
            remembered,
            sure: true,
        }),
        ..follows.clone().into()
    };
    net.forge(liar, &first, lie(1 << 30));
    assert!(!net.leads(&first));
    net.run(ms(10_000));
    let settled = Net::is_settled(&net);
    assert!(settled);
    assert!(net.votes_on_disk(&first).writes > 1 << 30);
    // More than time allows is no counter (C4.8).
    let before = net.disks[&id(&first)].clone();
    net.forge(liar, &first, lie(u64::MAX));
    net.run(ms(1000));
    assert_eq!(net.disks[&id(&first)], before);
}

/// Who begins without the votes in its file could vote twice.
#[test]
fn a_node_refuses_a_state_that_is_not_its_strategys() {
    let start = |saved| {
        let mut config = NodeConfig::for_tests();
        config.election.quorum = Quorum::of(&["a", "b", "c"]);
        config.saved = saved;
        Node::new(id("a"), life(1, 1).incarnation, config, 1, Time::ZERO)
    };
    let first = start(None).expect("a first start").first_state();
    let next = start(first.clone()).expect("a restart").first_state();
    let writes =
        |state: &Option<Opaque>| state.as_ref()?.decode().ok().map(|kept: Saved| kept.writes);
    assert_eq!((writes(&first), writes(&next)), (Some(1), Some(2)));
    for foreign in [Opaque::default(), Opaque::of(&0_u8)] {
        assert_eq!(start(Some(foreign)).err(), Some(NotItsState));
    }
}

#[test]
fn the_next_life_is_newer_whatever_the_clock_says() {
    let saved = life(1, 500).incarnation;
    let of = |started| life(1, started).incarnation.after(saved);
    assert!(of(400) > saved);
    assert!(of(500) > saved);
    assert_eq!(of(600), life(1, 600).incarnation);
}
