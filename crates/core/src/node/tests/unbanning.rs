//! Lifted bans, kicks without a ban, and disconnects with a reason.

use super::*;
use crate::wire::{Ban, BanVersion, Decider, MAX_KICKED, MAX_REASON_BYTES};

fn kick(peer: &str, ban: bool) -> Command {
    Command::Kick {
        peer: id(peer),
        code: 7,
        bytes: b"why".to_vec(),
        ban,
    }
}

fn unban(peer: &str) -> Command {
    Command::Unban(id(peer))
}

fn is_banned(net: &Net, at: &str, peer: &str, key: Fingerprint) -> bool {
    net.node(at).is_kicked(&id(peer), key)
}

/// A member's report of one ban.
fn word(by: &Decider, peer: &str, key: Fingerprint, version: BanVersion, lifted: bool) -> Message {
    Message::RoomRules(RoomRules {
        bans: vec![Ban {
            version,
            by: Some(by.clone()),
            lifted,
            ..Ban::new(id(peer), key)
        }],
        ..RoomRules::default()
    })
}

/// A room led by `a`, from which `d` was kicked; `d`'s process has ended.
fn without_d() -> (Net, Fingerprint) {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    let key = net.place("d").life.key;
    net.order("a", kick("d", true));
    net.run(ms(100));
    net.kill("d", true);
    for member in ["a", "b", "c"] {
        assert!(is_banned(&net, member, "d", key));
    }
    (net, key)
}

/// `d` enters and links with all members; no other member receives anything else about it.
fn d_enters(net: &mut Net) {
    net.start("d");
    net.enter("d", "a");
    net.wait("a mesh with d", |net| net.is_settled() && net.has("a", "d"));
}

fn is_out(net: &Net, name: &str) -> bool {
    net.node(name).is_over()
}

#[test]
fn only_the_leader_lifts_bans_and_only_of_banned_peers() {
    let (mut net, key) = without_d();
    let refused = Err(CommandError::NotLeader);
    assert_eq!(net.try_order("b", unban("d")), refused);
    for unknown in ["x", "b"] {
        let refused = Err(CommandError::NotBanned(id(unknown)));
        assert_eq!(net.try_order("a", unban(unknown)), refused);
    }
    assert!(is_banned(&net, "a", "d", key));
    net.order("a", unban("d"));
    let refused = Err(CommandError::NotBanned(id("d")));
    assert_eq!(net.try_order("a", unban("d")), refused, "once");
}

#[test]
fn a_peer_whose_ban_is_lifted_may_enter_at_every_member_and_newcomers_know() {
    let (mut net, key) = without_d();
    net.order("a", unban("d"));
    net.run(ms(20));
    for member in ["a", "b", "c"] {
        assert!(!is_banned(&net, member, "d", key), "{member}");
    }
    d_enters(&mut net);
    net.start("e");
    net.enter("e", "c");
    net.wait("a mesh of five", Net::is_settled);
    // An old list does not affect members that entered later.
    let stamp = net.node("a").record().stamp.clone();
    let a = net.decider("a");
    net.forge("b", "e", word(&a, "d", key, (stamp, 1), false));
    net.run(ms(1000));
    assert!(net.is_settled() && !is_out(&net, "d"));
}

#[test]
fn a_ban_is_lifted_with_its_keys_under_every_name() {
    let mut net = Net::room(&["a", "b"]);
    let (one, two, three) = (life(41, 1), life(42, 2), life(43, 3));
    for (name, its) in [("x", one), ("x", two), ("y", one), ("z", three)] {
        // The key gets another id only where that is not banned yet: the list decides here.
        let version = (net.node("a").record().stamp.clone(), 1);
        let a = net.decider("a");
        net.forge("a", "b", word(&a, name, its.key, version, false));
    }
    net.order("b", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(500));
    net.order("b", unban("x"));
    net.run(ms(500));
    for member in ["a", "b"] {
        for (name, its) in [("x", one), ("x", two), ("y", one)] {
            assert!(
                !is_banned(&net, member, name, its.key),
                "{name} at {member}"
            );
        }
    }
    assert!(is_banned(&net, "b", "z", three.key));
}

#[test]
fn more_bans_are_lifted_at_once_than_a_list_holds() {
    let mut net = Net::room(&["a", "b"]);
    for n in 0..40 {
        let name = format!("k{n}");
        net.start_as(&name, life(50 + n, 1));
        net.enter(&name, "a");
        net.order("a", kick(&name, true));
        net.run(ms(20));
        net.kill(&name, true);
    }
    net.run(ms(5000));
    for n in 0..40 {
        net.order("a", unban(&format!("k{n}")));
    }
    net.run(ms(20));
    for n in 0..40 {
        let key = life(50 + n, 1).key;
        assert!(!is_banned(&net, "b", &format!("k{n}"), key), "at once");
    }
}

/// `b` was cut off when the ban was lifted, and returns with its list.
#[test]
fn a_member_that_missed_it_does_not_bring_the_ban_back() {
    let (mut net, key) = without_d();
    net.dials_work = false;
    for other in ["a", "c"] {
        net.unlink("b", other, LinkEnd::Silent);
    }
    net.order("a", unban("d"));
    net.run(ms(100));
    net.start("d");
    net.enter("d", "a");
    net.start("e");
    net.enter("e", "a");
    net.wait("d is in", |net| net.has("a", "d") && net.has("a", "e"));
    assert!(is_banned(&net, "b", "d", key));
    net.dials_work = true;
    net.wait("a mesh with b", Net::is_settled);
    net.run(ms(5000));
    assert!(net.is_settled(), "no member is removed");
    for member in ["a", "b", "c", "d", "e"] {
        assert!(!is_banned(&net, member, "d", key), "{member}");
        assert!(!is_out(&net, member));
        assert_eq!(net.times(member, &Event::Left(left_kicked("d"))), 0);
    }
}

fn left_kicked(peer: &str) -> Left {
    Left::new(id(peer), LeftReason::Kicked)
}

/// `b` leads as soon as it is back.
#[test]
fn a_leader_that_missed_it_does_not_bring_the_ban_back() {
    for reported_first in [true, false] {
        let (mut net, key) = without_d();
        net.dials_work = false;
        for other in ["a", "c"] {
            net.unlink("b", other, LinkEnd::Silent);
        }
        net.order("a", unban("d"));
        net.run(ms(100));
        net.start("d");
        net.enter("d", "a");
        net.wait("d is in", |net| net.has("a", "d"));
        net.link("c", "d");
        if reported_first {
            // It applies an old list, and sends it as a leader.
            net.order("b", Command::SetLeader(id("b")));
            net.run(ms(500));
        }
        net.dials_work = true;
        net.wait("b is back", |net| net.has("a", "b") && net.has("c", "b"));
        net.order("b", Command::SetLeader(id("b")));
        net.wait("b leads all", |net| net.is_settled() && net.leads("b"));
        net.run(ms(5000));
        assert!(net.is_settled() && net.leads("b"));
        for member in ["a", "b", "c", "d"] {
            assert!(!is_banned(&net, member, "d", key), "{member}");
            assert!(!is_out(&net, member));
        }
    }
}

/// Only one member knows of it when the leader has gone away.
#[test]
fn the_next_leader_learns_of_a_lifted_ban_from_a_member_that_the_last_one_notified() {
    let (mut net, key) = without_d();
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    net.order("a", unban("d"));
    net.run(ms(20));
    assert!(is_banned(&net, "b", "d", key) && !is_banned(&net, "c", "d", key));
    net.kill("a", true);
    net.order("b", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(1000));
    assert!(!is_banned(&net, "b", "d", key));
    assert!(!is_banned(&net, "c", "d", key));
}

#[test]
fn a_successors_ban_outlives_its_lifting_by_a_deposed_leader() {
    let (mut net, key) = without_d();
    let stamp = net.node("a").record().stamp.clone();
    net.order("b", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(500));
    // The successor decides anew, while the other one keeps deciding as if it still led.
    net.order("b", unban("d"));
    net.run(ms(500));
    d_enters(&mut net);
    net.order("b", kick("d", true));
    net.run(ms(500));
    net.kill("d", true);
    let a = net.decider("a");
    for to in ["b", "c"] {
        net.forge("a", to, word(&a, "d", key, (stamp.clone(), 1000), true));
    }
    net.run(ms(1000));
    for member in ["a", "b", "c"] {
        assert!(is_banned(&net, member, "d", key), "{member}");
    }
    // If its successor has decided nothing, its last decision applies.
    let (mut net, key) = without_d();
    net.order("b", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(500));
    let a = net.decider("a");
    net.forge("a", "b", word(&a, "d", key, (stamp, 2), true));
    net.run(ms(1000));
    for member in ["a", "b", "c"] {
        assert!(!is_banned(&net, member, "d", key), "{member}");
    }
}

#[test]
fn a_member_that_is_kicked_again_is_out_again() {
    let (mut net, key) = without_d();
    for _ in 0..3 {
        net.order("a", unban("d"));
        net.run(ms(500));
        d_enters(&mut net);
        net.order("a", kick("d", true));
        net.run(ms(500));
        assert!(is_out(&net, "d"));
        net.kill("d", true);
        for member in ["a", "b", "c"] {
            assert!(is_banned(&net, member, "d", key), "{member}");
        }
    }
    // Nor does an earlier decision undo the last kick.
    let stamp = net.node("a").record().stamp.clone();
    let a = net.decider("a");
    for (from, to) in [("b", "a"), ("c", "b"), ("b", "c")] {
        net.forge(from, to, word(&a, "d", key, (stamp.clone(), 4), true));
    }
    net.run(ms(1000));
    for member in ["a", "b", "c"] {
        assert!(is_banned(&net, member, "d", key), "{member}");
    }
}

#[test]
fn a_member_that_does_not_lead_lifts_no_ban_of_the_leader() {
    let (mut net, key) = without_d();
    let stamp = net.node("a").record().stamp.clone();
    let far = Stamp {
        term: u64::MAX,
        ..stamp.clone()
    };
    let a = net.decider("a");
    let earlier = Decider {
        incarnation: life(b'a', 1).incarnation,
        ..a.clone()
    };
    let [liar, unknown] = ["b", "x"].map(|leader| Decider {
        leader: id(leader),
        ..a.clone()
    });
    for by in [a, earlier, liar, unknown] {
        for stamp in [&stamp, &far, &Stamp::default()] {
            for to in ["a", "c"] {
                let lifted = word(&by, "d", key, (stamp.clone(), u32::MAX), true);
                net.forge("b", to, lifted.clone());
                let Message::RoomRules(rules) = lifted else {
                    unreachable!("made so");
                };
                net.forge("b", to, Message::Unbanned(rules.bans));
            }
            net.run(ms(1000));
        }
    }
    for member in ["a", "c"] {
        assert!(is_banned(&net, member, "d", key), "{member}");
    }
    // Nor does any count keep the leader from lifting it, and from setting it anew.
    net.order("a", unban("d"));
    net.run(ms(500));
    assert!(!is_banned(&net, "c", "d", key));
}

/// The reporter followed a leadership that the others do not know.
#[test]
fn no_report_of_an_unknown_leadership_lifts_a_ban() {
    let (mut net, key) = without_d();
    let gone = Decider {
        leader: id("z"),
        incarnation: life(b'z', 1).incarnation,
    };
    let before = Stamp {
        term: 0,
        ..net.node("a").record().stamp.clone()
    };
    // Not even without a leader, or under another one.
    for next in [None, Some("c")] {
        if let Some(next) = next {
            net.order(next, Command::SetLeader(id(next)));
            net.run(ms(1000));
        }
        for stamp in [&before, &net.node("c").record().stamp.clone()] {
            for to in ["a", "c"] {
                net.forge("b", to, word(&gone, "d", key, (stamp.clone(), 9), true));
            }
        }
        net.run(ms(1000));
        for member in ["a", "c"] {
            assert!(is_banned(&net, member, "d", key), "{member}, {next:?}");
        }
    }
}

#[test]
fn a_lifted_ban_makes_way_for_a_new_one() {
    let mut net = Net::new();
    net.fill(&["a"]);
    for n in 0..MAX_KICKED {
        let name = format!("k{n}");
        let mut key = [200; 32];
        key[..8].copy_from_slice(&n.to_be_bytes());
        let its = Life {
            key: Fingerprint(key),
            ..life(0, net.now.as_micros())
        };
        net.start_as(&name, its);
        net.link("a", &name);
        net.order("a", kick(&name, true));
        net.kill(&name, true);
    }
    net.start("b");
    net.link("a", "b");
    let refused = Err(CommandError::TooManyKicked(MAX_KICKED));
    assert_eq!(net.try_order("a", kick("b", true)), refused);
    net.order("a", unban("k7"));
    net.order("a", kick("b", true));
    assert_eq!(net.node("a").room_rules().bans.len(), MAX_KICKED);
    net.start("c");
    net.link("a", "c");
    assert_eq!(
        net.try_order("a", kick("c", true)),
        Err(CommandError::TooManyKicked(MAX_KICKED))
    );
    net.order("a", kick("c", false));
    assert!(!net.has("a", "c"));
}

#[test]
fn too_long_a_list_and_too_long_a_reason_are_violations() {
    for message in [
        Message::Unbanned(vec![
            Ban::new(id("x"), Fingerprint([1; 32]));
            MAX_KICKED + 1
        ]),
        Message::Disconnected {
            code: 1,
            bytes: vec![0; MAX_REASON_BYTES + 1],
        },
    ] {
        let mut net = Net::room(&["a", "b"]);
        net.forge("b", "a", message);
        let violation = Left::new(id("b"), LeftReason::Violation);
        assert_eq!(net.times("a", &Event::Left(violation)), 1);
    }
}

#[test]
fn a_member_that_is_kicked_without_a_ban_may_come_back() {
    let mut net = Net::room(&["a", "b", "c"]);
    let key = net.place("c").life.key;
    net.order("a", kick("c", false));
    net.run(ms(100));
    let kicked = Event::Left(Left {
        code: 7,
        bytes: b"why".to_vec(),
        ..left_kicked("c")
    });
    let ended = Event::RoomEnded {
        why: EndReason::Kicked,
        code: 7,
        bytes: b"why".to_vec(),
    };
    for member in ["a", "b"] {
        assert_eq!(net.times(member, &kicked), 1);
        assert!(!is_banned(&net, member, "c", key));
    }
    assert_eq!(net.times("c", &ended), 1);
    // The process does not return by itself, and no member dials it.
    net.run(ms(70_000));
    assert!(!net.has("a", "c") && !net.has("b", "c"));
    net.kill("c", true);
    net.start("c");
    net.enter("c", "b");
    net.wait("a mesh with c", Net::is_settled);
}

#[test]
fn a_disconnected_peer_receives_the_reason() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("b", disconnect(id("c"), -9, b"too slow"));
    net.run(ms(100));
    let reported = |peer| {
        Event::Left(Left {
            code: -9,
            bytes: b"too slow".to_vec(),
            ..Left::new(id(peer), LeftReason::Disconnected)
        })
    };
    assert_eq!(
        (
            net.times("b", &reported("c")),
            net.times("c", &reported("b"))
        ),
        (1, 1)
    );
    net.run(ms(70_000));
    assert!(!net.has("b", "c"), "neither dials the other");
    assert!(net.has("a", "b") && net.has("a", "c"));
}
