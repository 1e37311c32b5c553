//! Room rules that leaders set.

use super::*;
use crate::wire::{Authority, Ban, Decider, MAX_KICKED, MAX_REASON_BYTES};

fn kick(peer: &str, code: i32, bytes: &[u8]) -> Command {
    Command::Kick {
        peer: id(peer),
        code,
        bytes: bytes.to_vec(),
        ban: true,
    }
}

fn kicked(peer: &str, code: i32, bytes: &[u8]) -> Event {
    Event::Left(Left {
        code,
        bytes: bytes.to_vec(),
        ..Left::new(id(peer), LeftReason::Kicked)
    })
}

fn ended(why: EndReason, code: i32, bytes: &[u8]) -> Event {
    Event::RoomEnded {
        why,
        code,
        bytes: bytes.to_vec(),
    }
}

fn somebody(n: usize) -> (PeerId, Fingerprint) {
    let mut key = [200; 32];
    key[..8].copy_from_slice(&n.to_be_bytes());
    (id(&format!("k{n}")), Fingerprint(key))
}

#[test]
fn r76_only_the_leader_kicks_and_neither_itself_nor_a_stranger() {
    let mut net = Net::room(&["a", "b"]);
    assert_eq!(
        net.try_order("b", kick("a", 0, b"")),
        Err(CommandError::NotLeader)
    );
    assert_eq!(
        net.try_order("a", kick("a", 0, b"")),
        Err(CommandError::Oneself(id("a")))
    );
    assert_eq!(
        net.try_order("a", kick("x", 0, b"")),
        Err(CommandError::UnknownPeer(id("x")))
    );
    assert_eq!(
        net.try_order("b", Command::SetMaxPeers(1)),
        Err(CommandError::NotLeader)
    );
    assert!(net.is_settled());
}

#[test]
fn m19_a_kicked_member_receives_the_reason_and_all_members_drop_it() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", kick("c", 42, b"cheating"));
    net.run(ms(100));
    for member in ["a", "b"] {
        assert_eq!(net.events(member), vec![kicked("c", 42, b"cheating")]);
        let refusal = Err(AdmissionRefusal::Kicked(id("c")));
        assert_eq!(net.check("c", member), refusal);
    }
    assert_eq!(
        net.times("c", &ended(EndReason::Kicked, 42, b"cheating")),
        1
    );
    assert!(net.node("c").is_over() && net.node("c").membership().is_empty());
    net.run(ms(70_000));
    assert!(net.node("c").membership().is_empty() && net.node("c").dialing().next().is_none());
    assert_eq!(net.node("c").leader(), None);
}

#[test]
fn neither_the_id_nor_the_key_of_a_kicked_peer_gets_in_again_under_any_leader() {
    let mut net = Net::room(&["a", "b", "c"]);
    let its = net.place("c").life;
    net.order("a", kick("c", 1, b""));
    net.run(ms(100));
    net.kill("c", true);
    net.start("d");
    net.enter("d", "b"); // d was not a member then
    net.order("a", Command::Leave);
    net.run(ms(50));
    net.kill("a", true);
    net.wait("the next leader", Net::is_settled);
    for (name, life) in [("c", life(200, 9)), ("e", its)] {
        for contact in ["b", "d"] {
            let ticket = net.ask_as(name, life, contact);
            net.run(ms(100));
            assert_eq!(
                net.verdict(contact, ticket),
                Some(banned(name)),
                "{name} at {contact}"
            );
        }
    }
}

#[test]
fn m18_a_lost_member_can_be_kicked() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.unlink("a", "c", LinkEnd::Silent);
    net.order("a", kick("c", 5, b"x"));
    assert_eq!(net.times("a", &kicked("c", 5, b"x")), 1);
    net.run(ms(50));
    assert_eq!(net.times("b", &kicked("c", 5, b"x")), 1);
    assert!(!net.has("b", "c") && !net.is_absent("a", "c"));
}

#[test]
fn a_member_that_learns_of_its_kick_from_a_member_receives_the_leaders_reason() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.unlink("a", "c", LinkEnd::Silent);
    net.order("a", kick("c", 5, b"x"));
    net.run(ms(50));
    assert_eq!(net.times("c", &ended(EndReason::Kicked, 5, b"x")), 1);
}

#[test]
fn a_kick_counts_from_the_leader_alone() {
    let mut net = Net::room(&["a", "b", "c"]);
    let key = net.place("b").life.key;
    let word = |bytes: usize| Message::Kicked {
        peer: id("b"),
        key,
        code: 1,
        bytes: vec![0; bytes],
        ban: Some(Default::default()),
    };
    net.forge("c", "a", word(0));
    net.forge("c", "b", word(0));
    assert!(net.is_settled() && !net.node("b").is_over());
    net.forge("c", "a", word(MAX_REASON_BYTES + 1));
    assert!(matches!(
        net.place("a").closes[..],
        [(_, LinkEnd::Violation(_))]
    ));
}

#[test]
fn a_kick_by_a_leader_that_is_not_known_yet_holds_once_it_is() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    // The new leader kicks before the others know that it leads.
    net.order("b", Command::SetLeader(id("b")));
    net.order("b", kick("d", 3, b""));
    net.wait("everybody drops it", |net| {
        ["a", "b", "c"]
            .iter()
            .all(|name| !net.has(name, "d") && !net.is_absent(name, "d"))
    });
    for member in ["a", "b", "c"] {
        assert_eq!(
            net.check("d", member),
            Err(AdmissionRefusal::Kicked(id("d"))),
            "{member}"
        );
    }
}

#[test]
fn a_member_that_its_new_leader_kicked_before_shows_no_leader_and_its_host_knows() {
    let mut net = Net::new();
    net.config.election.policy.authority = Authority::LeaderOnly;
    net.fill(&["a", "b", "c"]);
    // The ban counts as soon as c leads.
    let kicked = vec![(id("b"), net.place("b").life.key)];
    net.forge("c", "b", word((Stamp::default(), 0), 0, kicked));
    net.order("a", Command::SetLeader(id("c")));
    net.run(ms(1000));
    assert_eq!(net.times("b", &ended(EndReason::Kicked, 0, b"")), 1);
    assert_eq!(net.node("b").leader(), None);
    let reported = net.events("b");
    let reported = reported.iter().rev().find_map(|event| match event {
        Event::LeaderChanged(LeaderChange { new: leader, .. }) => Some(leader.clone()),
        _ => None,
    });
    assert_eq!(reported, Some(None));
}

#[test]
fn members_that_may_not_name_leaders_set_no_room_rules_either() {
    let mut net = Net::new();
    net.config.election.policy.authority = Authority::LeaderOnly;
    net.fill(&["a", "b", "c"]);
    let forged = RoomRules {
        version: (Stamp::default(), 9),
        set_by: Some(net.decider("a")),
        max_peers: 1,
        bans: vec![Ban::new(id("a"), net.place("a").life.key)],
    };
    net.forge("c", "a", Message::RoomRules(forged.clone()));
    net.forge("c", "b", Message::RoomRules(forged));
    net.run(ms(1000));
    assert!(net.is_settled() && net.leads("a"));
    assert_eq!(
        (net.node("a").max_peers(), net.node("b").max_peers()),
        (0, 0)
    );
    // The room rules still reach members that enter later.
    net.order("a", Command::SetMaxPeers(7));
    net.order("a", kick("c", 0, b""));
    net.run(ms(50));
    net.kill("c", true);
    net.start("d");
    net.enter("d", "b");
    net.wait("a mesh", Net::is_settled);
    net.run(ms(1000));
    assert_eq!(net.node("d").max_peers(), 7);
    let ticket = net.ask("c", "d");
    assert_eq!(net.verdict("d", ticket), Some(banned("c")));
}

#[test]
fn the_leaders_own_limit_counts_until_one_is_set() {
    let mut net = Net::new();
    net.config.max_peers = 1;
    net.start("a");
    net.wait("a leads", |net| net.leads("a"));
    // A newcomer's own setting limits no other room, even though it led alone.
    net.config.max_peers = 9;
    net.start("b");
    net.wait("b leads alone", |net| net.leads("b"));
    net.enter("b", "a");
    net.wait("a leads both", |net| net.is_settled() && net.leads("a"));
    for contact in ["a", "b"] {
        let ticket = net.ask("c", contact);
        assert_eq!(
            net.verdict_after(ms(50), contact, ticket),
            Some(full(1)),
            "{contact}"
        );
    }
    // No limit at all is a setting, too.
    net.order("a", Command::SetMaxPeers(0));
    net.start("c");
    net.enter("c", "b");
    net.wait("a mesh", Net::is_settled);
    // Another leader applies the limit that was set, and not its own.
    net.order("a", Command::SetMaxPeers(2));
    net.order("a", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(100));
    let ticket = net.ask("d", "b");
    assert_eq!(net.verdict_after(ms(50), "b", ticket), Some(full(2)));
}

#[test]
fn of_two_limits_of_leaders_before_the_newer_holds_in_whatever_order_they_come() {
    for order in [[(1, 30), (3, 40)], [(3, 40), (1, 30)]] {
        let mut net = Net::room(&["a", "b", "c"]);
        let (a, stamp) = (net.decider("a"), net.node("a").record().stamp.clone());
        net.kill("a", true);
        net.order("c", Command::SetLeader(id("c")));
        net.run(ms(50));
        for (count, max_peers) in order {
            net.forge("b", "c", limit_of(&a, (stamp.clone(), count), max_peers));
        }
        assert_eq!(net.node("c").max_peers(), 40);
        // Its own limit is newer, and later no report is credible.
        net.order("c", Command::SetMaxPeers(5));
        net.forge("b", "c", limit_of(&a, (stamp.clone(), 9), 50));
        assert_eq!(net.node("c").max_peers(), 5);
    }
}

#[test]
fn a_lost_leaders_limit_is_adopted_from_its_followers_for_ten_seconds() {
    let mut net = Net::room(&["a", "b", "c"]);
    let (a, stamp) = (net.decider("a"), net.node("a").record().stamp.clone());
    let at = |count| limit_of(&a, (stamp.clone(), count), 30);
    // a still leads and reports its limits itself.
    net.forge("b", "a", at(1));
    net.order("c", Command::SetLeader(id("c")));
    net.run(ms(500));
    // a leads no longer, but is still linked and can report.
    net.forge("b", "c", at(1));
    assert_eq!(net.node("c").max_peers(), 0);
    net.kill("a", true);
    net.run(ms(9400));
    net.forge("b", "c", at(1));
    assert_eq!(net.node("c").max_peers(), 30);
    net.run(ms(1000));
    net.forge("b", "c", at(2));
    assert_eq!(net.node("c").max_peers(), 30);
    let later = limit_of(&a, (stamp.clone(), 3), 40);
    net.forge("b", "c", later);
    assert_eq!(net.node("c").max_peers(), 30);
}

#[test]
fn a_leader_learns_no_room_rule_of_this_incarnation_from_others() {
    let mut net = Net::room(&["a", "b", "c"]);
    let (a, stamp) = (net.decider("a"), net.node("a").record().stamp.clone());
    net.order("a", Command::SetLeader(id("a")));
    net.run(ms(500));
    net.forge("b", "a", limit_of(&a, (stamp, 1), 30));
    assert_eq!(net.node("a").max_peers(), 0);
}

#[test]
fn a_leader_that_was_started_anew_takes_over_what_its_last_incarnation_set() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", Command::SetMaxPeers(62));
    net.run(ms(100));
    for other in ["b", "c"] {
        net.order(other, Command::EnableAutoElection(false));
    }
    net.kill("a", true);
    net.run(ms(50));
    net.start("a");
    net.enter("a", "b");
    net.wait("it leads again", |net| net.is_settled() && net.leads("a"));
    net.run(ms(1000));
    for name in ["a", "b", "c"] {
        assert_eq!(net.node(name).max_peers(), 62, "{name}");
    }
}

#[test]
fn a_leader_s_limit_is_newer_than_whatever_it_knows() {
    let mut net = Net::room(&["a", "b"]);
    let far = Stamp {
        term: u64::MAX,
        ..Stamp::default()
    };
    let rules = RoomRules {
        version: (far, 5),
        set_by: None,
        max_peers: 1,
        bans: Vec::new(),
    };
    net.forge("b", "a", Message::RoomRules(rules.clone()));
    net.forge("a", "b", Message::RoomRules(rules));
    net.order("a", Command::SetMaxPeers(9));
    net.run(ms(50));
    assert_eq!(
        (net.node("a").max_peers(), net.node("b").max_peers()),
        (9, 9)
    );
}

#[test]
fn a_long_list_of_kicked_peers_is_a_violation_and_a_large_count_is_none() {
    for (violates, rules) in [
        (
            false,
            RoomRules {
                version: (Stamp::default(), u64::MAX),
                ..RoomRules::default()
            },
        ),
        (
            true,
            RoomRules {
                bans: bans(made_up(MAX_KICKED + 1)),
                ..RoomRules::default()
            },
        ),
    ] {
        let mut net = Net::room(&["a", "b"]);
        net.forge("b", "a", Message::RoomRules(rules));
        assert_eq!(net.has("a", "b"), !violates);
        net.order("a", Command::SetMaxPeers(1));
    }
}

#[test]
fn the_list_of_kicked_peers_is_bounded() {
    let mut net = Net::new();
    net.fill(&["a"]);
    for n in 0..MAX_KICKED {
        let name = format!("k{n}");
        let its = Life {
            key: somebody(n).1,
            ..life(0, net.now.as_micros())
        };
        net.start_as(&name, its);
        net.link("a", &name);
        net.order("a", kick(&name, 0, b""));
        net.kill(&name, true);
    }
    net.start("b");
    net.link("a", "b");
    let refused = net.try_order("a", kick("b", 0, b""));
    assert_eq!(refused, Err(CommandError::TooManyKicked(MAX_KICKED)));
    assert!(net.has("a", "b"));
}

#[test]
fn the_leader_s_limit_holds_at_every_contact_and_under_the_next_leader() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", Command::SetMaxPeers(2));
    net.run(ms(50));
    for contact in ["a", "b"] {
        let ticket = net.ask("x", contact);
        assert_eq!(net.verdict_after(ms(50), contact, ticket), Some(full(2)));
    }
    net.order("a", Command::SetLeader(id("c")));
    net.run(ms(1000));
    let ticket = net.ask("x", "b");
    assert_eq!(net.verdict_after(ms(50), "b", ticket), Some(full(2)));
    net.order("c", Command::SetMaxPeers(0));
    let ticket = net.ask("x", "b");
    assert_eq!(
        net.verdict_after(ms(50), "b", ticket),
        Some(Verdict::Accepted)
    );
}

#[test]
fn the_next_leader_learns_and_spreads_rules_that_the_lost_one_could_not() {
    for next in ["b", "c"] {
        let mut net = Net::room(&["a", "b", "c", "d"]);
        // Before it is lost, it reaches one member, which may or may not be the next leader.
        net.unlink("a", "c", LinkEnd::Silent);
        net.unlink("a", "d", LinkEnd::Silent);
        net.order("a", Command::SetMaxPeers(9));
        net.order("a", kick("d", 1, b""));
        net.run(DELAY);
        net.kill("a", true);
        net.order(next, Command::SetLeader(id(next)));
        net.run(ms(1000));
        for member in ["b", "c"] {
            assert_eq!(net.node(member).max_peers(), 9, "{next} leads");
            assert!(!net.has(member, "d"), "{next} leads");
        }
        let reported = net.events("d");
        assert!(
            reported.contains(&ended(EndReason::Kicked, 1, b"")),
            "{reported:?}"
        );
    }
}

#[test]
fn a_new_leader_answers_a_limit_from_before_its_term() {
    let mut net = Net::room(&["a", "b", "c"]);
    let unknown = net.node("a").record().stamp.clone();
    let unknown = Stamp {
        term: unknown.term + 7,
        ..unknown
    };
    net.forge("b", "c", word((unknown, 1), 9, Vec::new()));
    net.order("c", Command::SetLeader(id("c")));
    net.run(ms(500));
    let answers = net.messages_from("c", "b");
    let answers = answers.iter().filter_map(|message| match message {
        Message::RoomRules(rules) => Some(rules.max_peers),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [0]);
}

#[test]
fn the_later_of_two_limits_of_the_leader_holds() {
    let limit = |max_peers| word((Stamp::default(), 1), max_peers, Vec::new());
    for order in [[3, 5], [5, 3]] {
        let mut net = Net::room(&["a", "b"]);
        for max_peers in order {
            net.forge("a", "b", limit(max_peers));
        }
        assert_eq!(net.node("b").max_peers(), order[1]);
    }
}

/// RoomRules from a member that does not lead, or not yet.
fn word(version: (Stamp, u64), max_peers: u32, kicked: Vec<(PeerId, Fingerprint)>) -> Message {
    Message::RoomRules(RoomRules {
        version,
        set_by: None,
        max_peers,
        bans: bans(kicked),
    })
}

/// RoomRules from a member that reports a limit of `by`.
fn limit_of(by: &Decider, version: (Stamp, u64), max_peers: u32) -> Message {
    Message::RoomRules(RoomRules {
        version,
        set_by: Some(by.clone()),
        max_peers,
        bans: Vec::new(),
    })
}

/// RoomRules from a member that led, with bans of its own.
fn bans_of(by: &Decider, stamp: &Stamp, kicked: Vec<(PeerId, Fingerprint)>) -> Message {
    let bans = bans(kicked).into_iter().map(|ban| Ban {
        version: (stamp.clone(), 1),
        by: Some(by.clone()),
        ..ban
    });
    Message::RoomRules(RoomRules {
        bans: bans.collect(),
        ..RoomRules::default()
    })
}

/// Makes `name` lead for a moment, and then `a` again; returns the stamp of `name`'s leadership.
fn leads_for_a_moment(net: &mut Net, name: &str) -> Stamp {
    net.order(name, Command::SetLeader(id(name)));
    net.wait("it leads", |net| net.is_settled() && net.leads(name));
    net.run(ms(100));
    let stamp = net.node(name).record().stamp.clone();
    net.order("a", Command::SetLeader(id("a")));
    net.wait("a leads again", |net| net.is_settled() && net.leads("a"));
    net.run(ms(100));
    stamp
}

fn bans(kicked: Vec<(PeerId, Fingerprint)>) -> Vec<Ban> {
    let bans = kicked.into_iter();
    bans.map(|(peer, key)| Ban::new(peer, key)).collect()
}

/// The bans on the list of `member`.
fn banned_at(net: &Net, member: &str) -> Vec<(PeerId, Fingerprint)> {
    let bans = net.node(member).room_rules().bans.iter();
    let bans = bans.filter(|ban| !ban.lifted);
    bans.map(|ban| (ban.peer.clone(), ban.key)).collect()
}

fn made_up(count: usize) -> Vec<(PeerId, Fingerprint)> {
    (0..count).map(somebody).collect()
}

#[test]
fn names_that_a_member_makes_up_do_not_keep_the_leader_from_kicking() {
    let mut net = Net::room(&["a", "b", "c"]);
    for to in ["a", "c"] {
        let message = word((Stamp::default(), 0), 0, made_up(MAX_KICKED));
        net.forge("b", to, message);
    }
    net.order("a", kick("b", 1, b"liar"));
    net.run(ms(500));
    for member in ["a", "c"] {
        assert_eq!(net.times(member, &kicked("b", 1, b"liar")), 1);
        assert_eq!(
            net.check("b", member),
            Err(AdmissionRefusal::Kicked(id("b")))
        );
    }
}

#[test]
fn names_that_a_leader_for_a_moment_makes_up_do_not_keep_the_next_from_kicking() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("b", Command::SetLeader(id("b")));
    net.run(ms(500));
    for to in ["a", "c"] {
        let message = word((Stamp::default(), 0), 0, made_up(MAX_KICKED));
        net.forge("b", to, message);
    }
    net.order("a", Command::SetLeader(id("a")));
    net.run(ms(500));
    net.order("a", kick("b", 1, b"liar"));
    net.run(ms(500));
    for member in ["a", "c"] {
        assert_eq!(
            net.check("b", member),
            Err(AdmissionRefusal::Kicked(id("b")))
        );
    }
}

#[test]
fn a_members_report_of_kicks_counts_for_sixteen_former_members_and_no_other() {
    let mut net = Net::new();
    net.fill(&["a", "b", "c"]);
    let stamp = leads_for_a_moment(&mut net, "b");
    let b = net.decider("b");
    net.dials_work = false;
    let mut were_members = Vec::new();
    for n in 0..40 {
        let name = format!("k{n}");
        let its = Life {
            key: somebody(n).1,
            ..life(0, net.now.as_micros())
        };
        net.start_as(&name, its);
        net.enter(&name, "a");
        net.order(&name, Command::Leave);
        net.run(ms(50));
        net.kill(&name, true);
        were_members.push(somebody(n));
    }
    // Reports with made-up keys, or with ids that no member had, kick no member.
    let mut word_of_b = made_up(60).split_off(40);
    word_of_b.push((id("c"), Fingerprint([9; 32])));
    word_of_b.push((id("x"), net.place("c").life.key));
    net.forge("b", "a", bans_of(&b, &stamp, word_of_b));
    net.run(ms(2000));
    assert!(net.has("a", "c"));
    assert_eq!(banned_at(&net, "a"), []);
    // Nor do reports whose decider is unknown.
    let a = net.decider("a");
    let unknown = Stamp {
        term: stamp.term + 1000,
        ..stamp.clone()
    };
    for (by, stamp) in [(&b, &unknown), (&a, &stamp), (&b, &Stamp::default())] {
        net.forge("b", "a", bans_of(by, stamp, were_members[..3].to_vec()));
        net.run(ms(2000));
    }
    assert_eq!(banned_at(&net, "a"), []);
    for chunk in were_members.chunks(5) {
        let message = bans_of(&b, &stamp, chunk.to_vec());
        net.forge("b", "a", message);
        net.run(ms(2000));
    }
    assert_eq!(banned_at(&net, "a").len(), 16);
}

/// A former leader's report waits at a member for the present leader, which decides.
#[test]
fn a_reported_ban_excludes_no_peer_before_a_leader_adopts_it() {
    let mut net = Net::room(&["a", "b", "c", "d", "e"]);
    let stamp = leads_for_a_moment(&mut net, "b");
    net.settle();
    let (b, c) = (net.decider("b"), (id("c"), net.place("c").life.key));
    // b cannot send it to the leader itself.
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    net.forge("b", "e", bans_of(&b, &stamp, vec![c.clone()]));
    assert_eq!(banned_at(&net, "e"), std::slice::from_ref(&c));
    assert!(net.has("e", "c") && !net.node("e").is_kicked(&c.0, c.1));
    net.wait("the leader takes it over", |net| {
        !net.has("a", "c") && !net.has("e", "c")
    });
    assert!(net.node("e").is_kicked(&c.0, c.1));
    // A member that becomes leader enforces earlier reports.
    let mut net = Net::room(&["a", "b", "c", "d", "e"]);
    let stamp = leads_for_a_moment(&mut net, "b");
    let (b, c) = (net.decider("b"), (id("c"), net.place("c").life.key));
    net.mute("a", true);
    net.forge("b", "e", bans_of(&b, &stamp, vec![c.clone()]));
    net.order("e", Command::SetLeader(id("e")));
    net.wait("it leads", |net| net.leads("e"));
    assert!(!net.has("e", "c") && net.has("e", "b"));
    assert_enforced_after_resigning(&mut net, "e", &c);
    // So does a present leader that receives a report.
    let mut net = Net::room(&["a", "b", "c", "d", "e"]);
    let stamp = leads_for_a_moment(&mut net, "b");
    let (b, c) = (net.decider("b"), (id("c"), net.place("c").life.key));
    net.forge("b", "a", bans_of(&b, &stamp, vec![c.clone()]));
    assert!(!net.has("a", "c"));
    assert_enforced_after_resigning(&mut net, "a", &c);
}

/// A ban that a leader enforced stays in force there when it leads no longer.
fn assert_enforced_after_resigning(net: &mut Net, leader: &str, banned: &(PeerId, Fingerprint)) {
    net.order(leader, Command::YieldLeadership);
    net.wait("it leads no longer", |net| !net.node(leader).is_leader());
    assert!(net.node(leader).is_kicked(&banned.0, banned.1));
}

/// A list may ban this member and others: the room ends before the departures of the others.
#[test]
fn a_ban_of_the_reader_on_a_list_ends_the_room_before_the_others_count() {
    for by_leader in [true, false] {
        let mut net = Net::room(&["a", "b", "c", "d", "e"]);
        let stamp = leads_for_a_moment(&mut net, "b");
        let banned = ["d", "e", "c"].map(|name| (id(name), net.place(name).life.key));
        let (from, message) = match by_leader {
            true => ("a", word((Stamp::default(), 0), 0, banned.to_vec())),
            false => ("b", bans_of(&net.decider("b"), &stamp, banned.to_vec())),
        };
        let before = net.events("e").len();
        net.forge(from, "e", message);
        let events = net.events("e").split_off(before);
        assert_eq!(events[0], ended(EndReason::Kicked, 0, b""), "{events:?}");
        assert!(
            !events.contains(&left("d", LeftReason::Kicked)),
            "{events:?}"
        );
    }
}

#[test]
fn reports_of_members_are_forgotten_before_those_of_leaders() {
    let mut net = Net::room(&["a", "b", "c", "d", "e"]);
    let stamp = leads_for_a_moment(&mut net, "b");
    let b = net.decider("b");
    net.dials_work = false;
    net.order("a", kick("d", 1, b""));
    net.run(ms(100));
    let d = (id("d"), net.place("d").life.key);
    let c = (id("c"), net.place("c").life.key);
    // So that the leader does not adopt it.
    net.mute("a", true);
    net.forge("b", "e", bans_of(&b, &stamp, vec![c.clone()]));
    assert_eq!(banned_at(&net, "e"), [d.clone(), c.clone()]);
    // Then the leader sends as many bans as fit.
    let message = word((Stamp::default(), 0), 0, made_up(MAX_KICKED - 1));
    net.forge("a", "e", message);
    let known = banned_at(&net, "e");
    assert_eq!(known.len(), MAX_KICKED);
    assert!(known.contains(&d) && !known.contains(&c));
}

#[test]
fn a_limit_counts_from_the_leader_alone_and_any_count_of_it_is_overtaken() {
    let far = Stamp {
        term: 1000,
        ..Stamp::default()
    };
    for stamp in [Stamp::default(), far] {
        for count in [1, 9, u64::MAX] {
            let mut net = Net::room(&["a", "b", "c"]);
            let a = net.decider("a");
            for to in ["a", "c"] {
                net.forge("b", to, limit_of(&a, (stamp.clone(), count), 2));
            }
            net.run(ms(2000));
            for member in ["a", "c"] {
                assert_eq!(net.node(member).max_peers(), 0, "count {count}");
                assert!(net.has(member, "b"), "no member pays for a count");
            }
            // A report is credible right after it led for a moment; and so is the next one.
            net.order("b", Command::SetLeader(id("b")));
            net.run(ms(500));
            for to in ["a", "c"] {
                net.forge("b", to, limit_of(&a, (stamp.clone(), count), 2));
            }
            assert_eq!(net.node("c").max_peers(), 2);
            net.order("a", Command::SetLeader(id("a")));
            net.run(ms(2000));
            for max_peers in [7, 8] {
                net.order("a", Command::SetMaxPeers(max_peers));
                net.run(ms(2000));
                assert_eq!(net.node("a").max_peers(), max_peers);
                assert_eq!(net.node("c").max_peers(), max_peers, "count {count}");
            }
        }
    }
}

#[test]
fn a_flood_of_room_rules_gives_few_lists_and_members_get_only_the_newest() {
    let mut net = Net::room(&["a", "b", "c"]);
    let (a, stamp) = (net.decider("a"), net.node("a").record().stamp.clone());
    // The leader has gone away, so reports of its limits may count.
    net.kill("a", true);
    net.order("c", Command::SetLeader(id("c")));
    net.run(ms(50));
    for count in 0..20_000 {
        net.forge("b", "c", limit_of(&a, (stamp.clone(), count), 100));
    }
    net.run(ms(10_000));
    assert_eq!(net.node("c").max_peers(), 100);
    for name in ["b", "c"] {
        let lists = net.place(name).sent.iter();
        let lists = lists.filter(|(_, message)| matches!(message, Message::RoomRules(_)));
        assert!(lists.count() <= 50, "by {name}");
    }
    assert!(net.has("c", "b"), "few of its words were taken, no more");
    // The leader sends its own as often as its host wants, and the last one reaches all members.
    for max_peers in 0..1000 {
        net.order("c", Command::SetMaxPeers(max_peers));
    }
    net.run(ms(1000));
    assert_eq!(net.node("b").max_peers(), 999);
    let lists = net.place("c").sent.iter();
    let lists = lists.filter(|(_, message)| matches!(message, Message::RoomRules(_)));
    assert!(lists.count() <= 60);
}
