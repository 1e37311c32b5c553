//! Votes and leadership: a majority of the roster, and no member outside it.

use super::*;

#[test]
fn without_a_majority_of_all_voters_there_is_no_leader_and_no_term_is_spent() {
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
    // G6 applies to two as well.
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
    // The leader and one more on one side.
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

/// A regression: a newcomer on a cut-off side became a voter, and two leaders of one term led at once.
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

/// A cut that lasts longer than the others remember lost members.
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

/// All may enter, but no member outside the roster votes or leads, whatever it or its host claims.
#[test]
fn a_member_beside_the_roster_is_an_observer() {
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

/// An observer's election messages have no effect.
#[test]
fn messages_of_an_observer_raise_nothing() {
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
    // It may leave, and its host may ask the leader for a transfer.
    let target = others(&["a", "b", "c"], &leader(&net))[0];
    net.order("o", Command::SetLeader(id(target)));
    net.wait("the target leads", |net| net.leads(target));
}

/// The process was suspended: pending messages arrive before its first tick.
#[test]
fn a_leader_that_was_suspended_beyond_its_last_answers_leads_no_more_whatever_arrives_first() {
    let room = || {
        let net = static_room(&["a", "b", "c"]);
        let leads = leader(&net);
        let until = net.node(&leads).election().leadership().valid_until;
        (net, leads, until.expect("time ends it"))
    };
    let (net, leads, until) = room();
    // The last answer is at most a heartbeat interval old.
    let rest = until.since(net.now);
    assert!(rest > ms(2_400) && rest <= ms(3_000), "{rest:?}");
    let before = Time::from_micros(until.as_micros() - 1);
    let names = |at| {
        let side = net.node(&leads).side(at).decode::<Side>();
        side.expect("of votes").live
    };
    assert!(names(before).is_some());
    assert_eq!(names(until), None, "nor does its Hello");
    for (at, still) in [(before, true), (until, false)] {
        let (mut net, leads, _) = room();
        let follower = others(&["a", "b", "c"], &leads)[0];
        let record = net.node(&leads).record().clone();
        net.now = at;
        net.forge(follower, &leads, Pulse::Follows { record, live: true });
        assert_eq!(net.leads(&leads), still);
        assert_eq!(net.node(&leads).leader_token().is_some(), still);
    }
}

#[test]
fn answers_of_a_majority_let_a_leader_lead_on() {
    let mut net = static_room(&["a", "b", "c"]);
    let leads = leader(&net);
    let until = |net: &Net| net.node(&leads).election().leadership().valid_until;
    let first = until(&net);
    net.kill(others(&["a", "b", "c"], &leads)[0], true);
    for _ in 0..20 {
        net.run(ms(500));
        assert!(until(&net) > Some(net.now + ms(2_400)));
    }
    assert!(until(&net) > first);

    let mut alone = static_net(&["a"]);
    alone.start("a");
    alone.wait("the only voter leads", |net| net.leads("a"));
    let until = alone.node("a").election().leadership().valid_until;
    assert_eq!(until, None, "it needs no answer");
    let dynamic = Net::room(&["a", "b", "c"]);
    let until = dynamic.node("a").election().leadership().valid_until;
    assert_eq!(until, None, "it may lead a part of a room");
}

/// A candidate asks for votes and ends before any voter has received the request. The leader keeps leading, and a
/// member outside the roster, whose answer would not reach the candidate, shows the leader.
#[test]
fn a_term_without_a_leader_hides_the_leader_from_no_member_beside_the_roster() {
    let mut net = static_room(&["a", "b", "c"]);
    net.start("o");
    net.enter("o", "a");
    net.wait("the newcomer shows the leader", Net::is_settled);
    let leads = leader(&net);
    let candidate = others(&["a", "b", "c"], &leads)[0];
    let before = net.node("o").record().clone();
    let stamp = Stamp {
        term: before.term() + 1,
        ..Stamp::default()
    };
    let bare = Record::undecided(stamp.clone());
    let campaigns = Forged::from(Pulse::Follows {
        record: bare.clone(),
        live: false,
    });
    let refuses = Forged::from(ElectionMessage::Nack {
        record: bare,
        live: None,
    });
    let writes = net.votes_on_disk(candidate).writes;
    for message in [campaigns, refuses] {
        net.forge_at(candidate, "o", stamp.clone(), writes, message);
        assert_eq!(*net.node("o").record(), before);
    }
    net.kill(candidate, true);
    net.run(ms(10_000));
    assert_eq!(net.node("o").leader(), Some(&id(&leads)));
    assert!(net.leads(&leads));
}

/// Leaders are not assigned there: a record of another epoch is dropped, and its sender keeps its link.
#[test]
fn assignments_and_epochs_are_ignored() {
    let mut net = static_room(&["a", "b", "c"]);
    let leads = leader(&net);
    let before = net.node("a").record().clone();
    for (override_seq, assigner) in [(1, Some(id("c"))), (0, Some(id("c"))), (7, None)] {
        let stamp = Stamp {
            epoch: Epoch {
                assigner_key: None,
                override_seq,
                assigner,
            },
            term: before.term() + 1,
        };
        let record = Record {
            leader_key: None,
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
    // Nor after a restart of the others.
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

/// A contact that never had a link with the voter asks the leader, which had one.
#[test]
fn the_leader_knows_the_keys_of_voters_that_a_contact_was_never_linked_to() {
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
            ban: true,
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
