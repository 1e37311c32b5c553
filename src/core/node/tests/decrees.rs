//! What leaders decree.

use super::*;
use crate::core::wire::{Authority, MAX_KICKED, MAX_REASON_BYTES};

fn kick(peer: &str, code: i32, bytes: &[u8]) -> Command {
    Command::Kick {
        peer: id(peer),
        code,
        bytes: bytes.to_vec(),
    }
}

fn kicked(peer: &str, code: i32, bytes: &[u8]) -> Event {
    Event::Left {
        peer: id(peer),
        why: LeftReason::Kicked,
        code,
        bytes: bytes.to_vec(),
    }
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
fn r76_only_the_leader_kicks_and_nobody_itself_or_a_stranger() {
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
fn m19_whoever_is_kicked_is_told_why_and_all_members_drop_it() {
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
fn neither_the_id_nor_the_key_of_a_kicked_peer_gets_in_again_whoever_leads() {
    let mut net = Net::room(&["a", "b", "c"]);
    let its = net.place("c").life;
    net.order("a", kick("c", 1, b""));
    net.run(ms(100));
    net.kill("c", true);
    net.start("d");
    net.enter("d", "b"); // it was not there
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
                Some(rejected(0, b"")),
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
fn whoever_hears_of_its_kick_from_a_member_first_is_told_the_leaders_reason() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.unlink("a", "c", LinkEnd::Silent);
    net.order("a", kick("c", 5, b"x"));
    net.run(ms(50));
    assert_eq!(net.times("c", &ended(EndReason::Kicked, 5, b"x")), 1);
}

#[test]
fn the_word_of_a_kick_counts_from_the_leader_alone() {
    let mut net = Net::room(&["a", "b", "c"]);
    let key = net.place("b").life.key;
    let word = |bytes: usize| Message::Kicked {
        peer: id("b"),
        key,
        code: 1,
        bytes: vec![0; bytes],
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
fn a_kick_by_somebody_who_is_not_known_to_lead_yet_holds_as_soon_as_it_is() {
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
fn where_members_may_not_name_leaders_they_may_not_decree_either() {
    let mut net = Net::new();
    net.config.policy.authority = Authority::LeaderOnly;
    net.fill(&["a", "b", "c"]);
    let forged = Decrees {
        version: (Stamp::default(), 9),
        max_peers: 1,
        kicked: vec![(id("a"), net.place("a").life.key)],
    };
    net.forge("c", "a", Message::Decrees(forged.clone()));
    net.forge("c", "b", Message::Decrees(forged));
    net.run(ms(1000));
    assert!(net.is_settled() && net.leads("a"));
    assert_eq!(
        (net.node("a").max_peers(), net.node("b").max_peers()),
        (0, 0)
    );
    // What the leader decreed reaches those that come later all the same.
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
    assert_eq!(net.verdict("d", ticket), Some(rejected(0, b"")));
}

#[test]
fn of_two_limits_the_newer_holds_in_whatever_order_they_come() {
    let stamp = |term| Stamp {
        term,
        ..Stamp::default()
    };
    let limit = |term, count, max_peers| Decrees {
        version: (stamp(term), count),
        max_peers,
        kicked: Vec::new(),
    };
    let ordered = [
        limit(1, 1, 10),
        limit(1, 2, 20),
        limit(3, 1, 30),
        limit(3, 3, 40),
    ];
    for (n, older) in ordered.iter().enumerate() {
        for newer in &ordered[n + 1..] {
            for order in [[older, newer], [newer, older]] {
                let mut net = Net::room(&["a", "b"]);
                for decrees in order {
                    net.forge("a", "b", Message::Decrees(decrees.clone()));
                }
                assert_eq!(net.node("b").max_peers(), newer.max_peers);
            }
        }
    }
}

#[test]
fn a_leader_s_limit_is_newer_than_whatever_it_knows() {
    let mut net = Net::room(&["a", "b"]);
    let far = Stamp {
        term: u64::MAX,
        ..Stamp::default()
    };
    let decrees = Decrees {
        version: (far, 5),
        max_peers: 1,
        kicked: Vec::new(),
    };
    net.forge("b", "a", Message::Decrees(decrees.clone()));
    net.forge("a", "b", Message::Decrees(decrees));
    net.order("a", Command::SetMaxPeers(9));
    net.run(ms(50));
    assert_eq!(
        (net.node("a").max_peers(), net.node("b").max_peers()),
        (9, 9)
    );
}

#[test]
fn a_long_list_of_kicked_peers_is_a_violation() {
    let decrees = Decrees {
        kicked: (0..=MAX_KICKED).map(somebody).collect(),
        ..Decrees::default()
    };
    let mut net = Net::room(&["a", "b"]);
    net.forge("b", "a", Message::Decrees(decrees));
    assert!(matches!(
        net.place("a").closes[..],
        [(_, LinkEnd::Violation(_))]
    ));
    net.order("a", Command::SetMaxPeers(1));
}

/// C4.8: whoever tells the number may have it from somebody else.
#[test]
fn a_limit_whose_count_runs_away_is_not_taken_and_one_that_leaps_is_gone_above() {
    let term = |term| Stamp {
        term,
        ..Stamp::default()
    };
    for (version, taken) in [
        ((Stamp::default(), u64::MAX), false),
        ((term(u64::MAX), 1), true),
        ((Stamp::default(), 1 << 41), false),
        ((Stamp::default(), 1 << 30), true),
        ((term(1 << 30), 1 << 40), true),
    ] {
        let mut net = Net::room(&["a", "b"]);
        let decrees = Decrees {
            version,
            max_peers: 7,
            ..Decrees::default()
        };
        net.forge("b", "a", Message::Decrees(decrees));
        assert_eq!(net.place("a").closes, []);
        assert_eq!(net.node("a").max_peers(), if taken { 7 } else { 0 });
        net.run(ms(1000));
        net.order("a", Command::SetMaxPeers(3));
        net.run(ms(1000));
        assert_eq!(net.node("a").max_peers(), 3);
        assert_eq!(net.node("b").max_peers(), 3);
    }
}

#[test]
fn the_list_of_kicked_peers_is_bounded() {
    let mut net = Net::room(&["a", "b"]);
    let all = (0..MAX_KICKED).map(somebody);
    let decrees = Decrees {
        kicked: all.collect(),
        ..Decrees::default()
    };
    net.forge("b", "a", Message::Decrees(decrees));
    let refused = net.try_order("a", kick("b", 0, b""));
    assert_eq!(refused, Err(CommandError::TooManyKicked(MAX_KICKED)));
    assert!(net.is_settled());
}

#[test]
fn the_leader_s_limit_holds_at_every_contact_and_under_the_next_leader() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", Command::SetMaxPeers(2));
    net.run(ms(50));
    for contact in ["a", "b"] {
        let ticket = net.ask("x", contact);
        assert_eq!(
            net.verdict_after(ms(50), contact, ticket),
            Some(Verdict::Full)
        );
    }
    net.order("a", Command::SetLeader(id("c")));
    net.run(ms(1000));
    let ticket = net.ask("x", "b");
    assert_eq!(net.verdict_after(ms(50), "b", ticket), Some(Verdict::Full));
    net.order("c", Command::SetMaxPeers(0));
    let ticket = net.ask("x", "b");
    assert_eq!(
        net.verdict_after(ms(50), "b", ticket),
        Some(Verdict::Accepted)
    );
}

#[test]
fn the_next_leader_learns_and_tells_what_the_lost_one_could_not_tell_all() {
    for next in ["b", "c"] {
        let mut net = Net::room(&["a", "b", "c", "d"]);
        // Before it is lost it reaches one member, which may or may not be the next leader.
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
        let told = net.events("d");
        assert!(told.contains(&ended(EndReason::Kicked, 1, b"")), "{told:?}");
    }
}

#[test]
fn two_limits_that_were_counted_alike_end_as_one() {
    let limit = |max_peers| Decrees {
        version: (Stamp::default(), 1),
        max_peers,
        kicked: Vec::new(),
    };
    for order in [[3, 5], [5, 3]] {
        let mut net = Net::room(&["a", "b"]);
        for max_peers in order {
            net.forge("a", "b", Message::Decrees(limit(max_peers)));
        }
        assert_eq!(net.node("b").max_peers(), 5);
    }
}
