//! The state of a voter on disk, and its knowledge after a restart.

use super::*;

/// X5a, O14: a restarted voter knows its votes, and one that led follows.
#[test]
fn a_restarted_voter_knows_its_term_and_its_vote() {
    let names = ["a", "b", "c"];
    let mut net = static_room(&names);
    let first = leader(&net);
    let record = net.node(&first).record().clone();
    net.kill(&first, true);
    net.run(ms(100));
    net.start(&first);
    // The file names voters by their ids: the roster has the keys.
    let kept = Record {
        leader_key: None,
        ..record.clone()
    };
    assert_eq!(*net.node(&first).record(), kept);
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

/// It does not remember whose heartbeats it received (G4).
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
        let answers = net.messages_from(voter, candidate);
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
fn no_vote_and_no_claim_is_sent_before_it_is_on_disk() {
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
        let sent = &net.place(name).sent;
        let depends = |message: &Message| {
            matches!(
                elects(message),
                Some(
                    ElectionMessage::VoteRequest { .. }
                        | ElectionMessage::VoteResponse { granted: true, .. }
                )
            )
        };
        assert!(!sent.iter().any(|(_, message)| depends(message)), "{name}");
        // Links stay up.
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

/// A leader's messages in its own name wait for the disk, too.
#[test]
fn a_leader_stamps_nothing_before_its_record_is_on_disk() {
    let mut net = static_room(&["a", "b", "c"]);
    let first = leader(&net);
    let target = others(&["a", "b", "c"], &first)[0];
    net.order(&first, Command::TransferLeadership(id(target)));
    net.wait("it leads", |net| net.leads(target));
    // Its own host sees it as leader at once.
    assert_eq!(net.node(target).leader_token(), None);
    let pulse = net.node(target).election();
    let pulse = pulse.pulse(net.now, &net.node(target).view, &id(&first));
    let pulse = pulse.decode::<Beat>().expect("of votes").pulse;
    // The others still see a campaign.
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

/// P9: only a leader could lift the limit, and only votes make a leader.
#[test]
fn a_limit_keeps_no_voter_out_of_a_room_without_a_leader() {
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
    assert_eq!(net.verdict(contact, outsider), Some(full(1)));
    for name in &rest {
        net.start(name);
    }
    net.enter(rest[0], contact);
    net.enter(rest[0], stays);
    net.wait("a leader", |net| net.node(contact).leader().is_some());
    let second = leader(&net);
    let voter = net.ask(rest[1], &second);
    assert_eq!(net.verdict(&second, voter), Some(full(1)));
}
