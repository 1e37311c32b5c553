//! State files that were lost or are older copies.

use super::*;

/// Restarts `name` with an older copy of its state file.
fn restore(net: &mut Net, name: &str, copy: &(Incarnation, Opaque)) {
    net.kill(name, true);
    net.disks.insert(id(name), copy.clone());
    net.run(ms(100));
    net.start(name);
}

/// A voter whose write counter is smaller than another voter remembers neither votes nor leads until it has heard from
/// all others.
#[test]
fn an_older_copy_of_a_state_file_is_noticed() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let voter = others(&names, &leader(&net))[0];
    let copy = net.disks[&id(voter)].clone();
    // Its copy misses two elections.
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
    // A restart does not help.
    net.kill(voter, true);
    net.run(ms(100));
    net.start(voter);
    net.link(voter, witness);
    net.run(ms(60_000));
    assert_eq!(net.node(witness).leader(), None);
    // The third voter is back: it has heard from all.
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

/// Two voters that lost their files cannot vouch for each other.
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
    // They follow, but cannot elect.
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

/// A room of seven voters, one of them absent, so that the others can never be sure of their votes. "s" has lost its
/// file, and "l", which leads, never knew its earlier state.
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

/// It neither votes nor leads, and announces that: no leader names it as its successor or accepts it as the target of a
/// `SetLeader`.
#[test]
fn a_voter_that_forgot_its_votes_reports_that_it_may_not_lead() {
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

/// A voter's report that another one forgot its votes may be a lie. It costs the other no more than a round of
/// heartbeats.
#[test]
fn a_voter_ignores_a_false_report_that_it_forgot_its_votes() {
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
    // A number above the bound that time allows is no counter (C4.8).
    let before = net.disks[&id(&first)].clone();
    net.forge(liar, &first, lie(u64::MAX));
    net.run(ms(1000));
    assert_eq!(net.disks[&id(&first)], before);
}

/// The target may not lead any more; another voter's lost file does not matter.
#[test]
fn a_transfer_ends_only_when_its_target_shows_that_it_forgot_votes() {
    let names = ["a", "b", "c", "d", "e"];
    for target_forgets in [false, true] {
        let mut net = static_room(&names);
        let first = leader(&net);
        let [target, other] = [0, 1].map(|index| others(&names, &first)[index]);
        // The leader repeats the request until the target answers.
        net.mute(target, true);
        net.order(&first, Command::TransferLeadership(id(target)));
        net.run(ms(100));
        let follows = Pulse::Follows {
            record: net.node(&first).record().clone(),
            live: true,
        };
        let forgot = Beat {
            memory: Some(Memory {
                since: 0,
                remembered: 0,
                sure: true,
            }),
            ..follows.into()
        };
        let forgetful = if target_forgets { target } else { other };
        net.forge(forgetful, &first, forgot);
        net.mute(target, false);
        net.run(ms(3000));
        assert_eq!(net.leads(target), !target_forgets);
        assert_eq!(net.leads(&first), target_forgets);
    }
}

/// A node that began without the votes in its file could vote twice.
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
        assert_eq!(start(Some(foreign)).err(), Some(InvalidSavedState));
    }
}

#[test]
fn the_next_incarnation_is_newer_at_any_clock() {
    let saved = life(1, 500).incarnation;
    let of = |started| life(1, started).incarnation.after(saved);
    assert!(of(400) > saved);
    assert!(of(500) > saved);
    assert_eq!(of(600), life(1, 600).incarnation);
}
