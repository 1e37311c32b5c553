//! Members that lie about counters: no member is punished for one, and time alone bounds them (C4.8); and assignments
//! that no member made (C4.5).

use super::*;
use crate::election::Recovery;
use crate::election::raft::wire::{LiveLeader, Side};
use crate::election::record::{Epoch, Stamp};
use crate::wire::Authority;

/// The amount by which the liars of these tests raise a counter at a time.
const LEAP: u64 = 1 << 20;

fn claim(stamp: Stamp, leader: &str, assigned: bool) -> Pulse {
    Pulse::Leads {
        record: Record {
            leader_key: None,
            stamp,
            leader: Some(id(leader)),
            assigned,
        },
        weight: 9,
        led_ms: 0,
        election_timeout_min_ms: 1500,
    }
}

fn stamp_of(net: &Net, name: &str) -> Stamp {
    net.node(name).record().stamp.clone()
}

/// `liar` claims to lead, at `victim` alone, in a term that is `terms` above the victim's own.
fn claims(net: &mut Net, liar: &str, victim: &str, terms: u64) {
    let mut stamp = stamp_of(net, victim);
    stamp.term += terms;
    net.forge(liar, victim, claim(stamp, liar, false));
}

/// The honest members are all linked, agree on a leader among them, and lost none on the way.
fn keep_together(net: &mut Net, names: &[&str]) {
    net.wait("they agree", |net| {
        let leader = net.node(names[0]).leader().cloned();
        leader.is_some_and(|leader| names.contains(&leader.as_str()))
            && names.iter().all(|name| {
                net.node(name).leader() == net.node(names[0]).leader()
                    && net.node(name).membership().len() + 1 >= names.len()
            })
    });
    net.run(ms(5_000));
    for one in names {
        for other in names.iter().filter(|other| *other != one) {
            assert!(net.has(one, other), "{one} has {other}");
        }
        let honest = |peer: &PeerId| names.contains(&peer.as_str());
        let place = net.place(one);
        let thrown_out = place
            .closes
            .iter()
            .find(|(to, why)| honest(to) && matches!(why, LinkEnd::Violation(_)));
        assert_eq!(thrown_out, None, "{one} closed a link");
        let lost = |event: &Event| matches!(event, Event::Left(Left { peer, .. }) if honest(peer));
        assert!(!net.events(one).iter().any(lost), "{one} lost somebody");
    }
}

#[test]
fn three_claims_of_a_liar_to_one_victim_cost_the_victim_no_link() {
    let mut net = Net::room(&["a", "b", "c", "m"]);
    for _ in 0..3 {
        claims(&mut net, "m", "c", LEAP);
    }
    assert!(stamp_of(&net, "c").term > 3 * LEAP);
    net.kill("m", true);
    keep_together(&mut net, &["a", "b", "c"]);
}

/// A fixed host and its guests; the last guest lies.
fn fixed_room() -> Net {
    let mut net = Net::new();
    net.config.election.policy.host_mode = HostMode::Host;
    net.start("a");
    net.wait("the host leads", |net| net.leads("a"));
    net.config.election.policy.host_mode = HostMode::Guest;
    for guest in ["b", "c", "m"] {
        net.start(guest);
        net.enter(guest, "a");
    }
    net.wait("a mesh with one leader", Net::is_settled);
    net
}

fn foreign_side(override_seq: u64, term: u64) -> ElectionMessage {
    let side = |leader: &str, stamp, weight| Side {
        since: 0,
        hold_binds: false,
        record: Record {
            leader_key: None,
            stamp,
            leader: Some(id(leader)),
            assigned: false,
        },
        live: Some(LiveLeader {
            id: id(leader),
            key: Fingerprint([9; 32]),
            incarnation: life(9, 9).incarnation,
            weight,
            led_ms: 0,
            rest_ms: 1500,
        }),
        lone: true,
    };
    let theirs = Stamp {
        epoch: Epoch {
            assigner_key: None,
            override_seq,
            assigner: Some(id("z")),
        },
        term,
    };
    ElectionMessage::ForeignSide {
        peer: id("z"),
        ours: side("a", Stamp::default(), 4),
        theirs: side("z", theirs, 1),
    }
}

#[test]
fn the_foreign_side_that_an_observer_makes_up_costs_the_host_no_guest() {
    let mut net = fixed_room();
    net.forge("m", "a", foreign_side(LEAP, 1));
    // The host goes above the forged epoch, in place.
    let stamp = stamp_of(&net, "a");
    assert!(stamp.epoch.override_seq >= LEAP && stamp.term > 1);
    net.forge("m", "a", foreign_side(2 * LEAP, 1));
    net.run(ms(2_000));
    keep_together(&mut net, &["a", "b", "c"]);
    assert!(net.leads("a"));
}

#[test]
fn after_three_liars_in_a_row_a_newcomer_stays_and_a_lost_member_comes_back() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("c", true);
    net.wait("c is missed", |net| net.is_absent("a", "c"));
    for liar in ["m", "n", "o"] {
        net.start(liar);
        net.enter(liar, "a");
        net.wait("it is linked", |net| {
            net.has("a", liar) && net.has("b", liar)
        });
        claims(&mut net, liar, "a", LEAP);
        claims(&mut net, liar, "b", LEAP);
        net.kill(liar, true);
        net.wait("a leader", |net| {
            let leader = net.node("a").leader();
            leader.is_some_and(|id| id.as_str() < "m") && leader == net.node("b").leader()
        });
    }
    assert!(stamp_of(&net, "a").term > 3 * LEAP);
    net.mute("c", false);
    net.start("d");
    net.enter("d", "a");
    net.wait("all are linked", |net| {
        ["a", "b", "c", "d"].iter().all(|name| {
            let has = |peer: &str| *name == peer || net.has(name, peer);
            ["a", "b", "c", "d"].into_iter().all(has)
        })
    });
    net.run(ms(30_000));
    keep_together(&mut net, &["a", "b", "c", "d"]);
}

/// Three of four voters; the fourth lied.
#[test]
fn a_term_on_disk_that_a_liar_made_up_keeps_no_voter_out_after_a_restart() {
    let mut net = Net::new();
    net.config.election.quorum = Quorum::of(&["a", "b", "c", "m"]);
    for name in ["a", "b", "c", "m"] {
        net.start(name);
    }
    for name in ["b", "c", "m"] {
        net.enter(name, "a");
    }
    net.wait("a mesh with one leader", Net::is_settled);
    for _ in 0..3 {
        claims(&mut net, "m", "c", LEAP);
    }
    net.run(ms(10));
    assert!(net.votes_on_disk("c").record.term() > 3 * LEAP);
    for name in ["a", "b", "c", "m"] {
        net.kill(name, false);
    }
    for name in ["a", "b", "c"] {
        net.start(name);
    }
    for name in ["b", "c"] {
        net.enter(name, "a");
    }
    keep_together(&mut net, &["a", "b", "c"]);
}

fn leader_only() -> Net {
    let mut net = Net::new();
    net.config.election.policy.authority = Authority::LeaderOnly;
    net.config.election.recovery = Recovery::Hold;
    net
}

#[test]
fn an_invented_assignment_costs_a_room_its_leader_no_longer_than_an_election() {
    let mut net = leader_only();
    net.fill(&["a", "b", "c", "m"]);
    for victim in ["a", "b", "c"] {
        let mut stamp = stamp_of(&net, victim);
        stamp.term += 5;
        net.forge("m", victim, claim(stamp, "m", true));
        assert!(!net.node(victim).record().assigned);
    }
    net.kill("m", true);
    keep_together(&mut net, &["a", "b", "c"]);
    let leader = net.node("a").leader().cloned().expect("they agree");
    let other = if leader == id("a") { "b" } else { "a" };
    net.order(leader.as_str(), Command::SetLeader(id(other)));
    net.wait("the assigned one leads", |net| net.leads(other));
}

/// If only the leader may assign, no member could end a Hold.
#[test]
fn a_lost_assigned_leader_is_replaced_if_only_the_leader_assigns() {
    let mut net = leader_only();
    net.fill(&["a", "b", "c"]);
    net.order("a", Command::SetLeader(id("b")));
    net.wait("b leads", |net| net.leads("b"));
    net.run(ms(1_000));
    net.kill("b", true);
    keep_together(&mut net, &["a", "c"]);
}

/// Two correct clocks and one that is `ahead`, in 2023.
fn room_with_clocks(ahead: Duration) -> Net {
    const NOW: Duration = Duration::from_secs(1_700_000_000);
    let mut net = Net::new();
    net.config.wall_clock = NOW;
    for name in ["a", "b", "m"] {
        net.start(name);
    }
    net.config.wall_clock = NOW + ahead;
    net.start("c");
    for name in ["b", "c", "m"] {
        net.enter(name, "a");
    }
    net.wait("a mesh with one leader", Net::is_settled);
    net
}

fn bound(net: &Net, name: &str) -> u64 {
    net.node(name).counter_bound(net.now)
}

#[test]
fn a_room_that_was_pushed_to_the_bound_goes_on_from_there() {
    for epoch in [false, true] {
        let mut net = room_with_clocks(Duration::ZERO);
        let pushed = bound(&net, "a");
        for victim in ["a", "b", "c"] {
            let mut stamp = stamp_of(&net, victim);
            if epoch {
                stamp.epoch.override_seq = pushed;
                stamp.epoch.assigner = Some(id("m"));
            } else {
                stamp.term = pushed;
            }
            net.forge("m", victim, claim(stamp.clone(), "m", false));
            assert_eq!(stamp_of(&net, victim), stamp, "the bound itself is taken");
        }
        net.kill("m", true);
        keep_together(&mut net, &["a", "b", "c"]);
        let stamp = stamp_of(&net, "a");
        assert!(stamp.term.max(stamp.epoch.override_seq) >= pushed);
        let leader = net.node("a").leader().cloned().expect("they agree");
        for next in ["a", "b", "c", leader.as_str()] {
            net.order("b", Command::SetLeader(id(next)));
            let took = net.wait("it leads", |net| {
                net.leads(next) && net.node("b").leader() == Some(&id(next))
            });
            assert!(took < ms(100), "{took:?}");
            net.run(ms(500));
        }
    }
}

#[test]
fn a_counter_above_the_bound_is_dropped_and_counts_as_a_sign_of_life() {
    let mut net = room_with_clocks(Duration::ZERO);
    let before = net.node("a").record().clone();
    let above = |net: &Net, by: u64| Stamp {
        term: bound(net, "a").saturating_add(by),
        ..stamp_of(net, "a")
    };
    for by in [1, LEAP, u64::MAX] {
        let stamp = above(&net, by);
        net.forge("m", "a", claim(stamp.clone(), "m", false));
        let record = Record {
            leader_key: None,
            stamp: stamp.clone(),
            leader: Some(id("m")),
            assigned: false,
        };
        net.forge(
            "m",
            "a",
            ElectionMessage::Nack {
                record: record.clone(),
                live: None,
            },
        );
        let request = ElectionMessage::PreVoteRequest {
            round: 1,
            candidate: id("m"),
            term: stamp.term,
        };
        net.forge("m", "a", request);
        let seq = stamp.term;
        net.forge("m", "a", foreign_side(seq, 1));
        let now = net.now;
        let node = &mut net.place_mut("a").node;
        assert!(
            !node.accept_leader_message(now, &id("m"), &Opaque::of(&record)),
            "the data path"
        );
        let token = Opaque::of(&record);
        let speaker = node.accept_relay(now, &id("m"), &token, Duration::ZERO);
        assert_eq!(speaker, None, "the data path");
    }
    assert_eq!(*net.node("a").record(), before);
    assert_eq!(net.place("a").closes, []);
    assert!(net.has("a", "m"));
    // It is reported, but not each time.
    assert_eq!(net.place("a").dropped.len(), 1);
    net.run(ms(10_000));
    let stamp = above(&net, LEAP);
    net.forge("m", "a", claim(stamp, "m", false));
    assert_eq!(net.place("a").dropped.len(), 2);
    // A member that sends nothing else still counts as alive.
    for _ in 0..20 {
        net.mute("m", true);
        net.run(ms(500));
        let stamp = above(&net, LEAP);
        net.forge("m", "a", claim(stamp, "m", false));
    }
    assert!(net.has("a", "m") && !net.has("b", "m"));
}

/// The member whose clock is ahead accepts counters that the others refuse.
#[test]
fn members_whose_clocks_are_an_hour_apart_agree_within_an_hour() {
    const HOUR: Duration = Duration::from_secs(3600);
    let mut net = room_with_clocks(HOUR);
    let far = bound(&net, "c");
    assert_eq!(far - bound(&net, "a"), 3600 * 1024);
    let mut stamp = stamp_of(&net, "c");
    stamp.term = far;
    net.forge("m", "c", claim(stamp.clone(), "m", false));
    assert_eq!(stamp_of(&net, "c"), stamp);
    net.kill("m", true);
    net.run(ms(10_000));
    let shown = net.node("a").leader().cloned().expect("two of three elect");
    assert_eq!(net.node("b").leader(), Some(&shown));
    // They refuse the record that c follows, also in its Hello, but not its link.
    net.unlink("a", "c", LinkEnd::Silent);
    net.wait("c is back", |net| net.has("a", "c") && net.has("c", "a"));
    net.run(HOUR - ms(60_000));
    assert!(stamp_of(&net, "a").term < far);
    assert!(stamp_of(&net, "c").term >= far);
    net.run(ms(60_000));
    keep_together(&mut net, &["a", "b", "c"]);
    assert!(stamp_of(&net, "a").term >= far);
}

/// A member accepts counters as soon as its wrong clock is set.
#[test]
fn a_clock_that_is_set_counts_from_then_on() {
    const HOUR: Duration = Duration::from_secs(3600);
    let mut net = room_with_clocks(HOUR);
    let mut stamp = stamp_of(&net, "c");
    stamp.term = bound(&net, "c");
    net.forge("m", "c", claim(stamp, "m", false));
    net.kill("m", true);
    net.run(ms(10_000));
    assert_ne!(net.node("a").leader(), net.node("c").leader());
    for name in ["a", "b"] {
        let shows = net.config.wall_clock + net.now.since(Time::ZERO);
        let _ = net.feed(&id(name), Input::WallClock(shows));
    }
    keep_together(&mut net, &["a", "b", "c"]);
}

/// Only the record that a node follows, and the answers to its own assignments, raise its next number (C4.3, C4.8).
#[test]
fn a_leader_does_not_go_above_a_reported_override_number() {
    let mut net = Net::room(&["a", "b", "m"]);
    let record = Record {
        leader_key: None,
        stamp: Stamp {
            epoch: Epoch {
                assigner_key: None,
                override_seq: LEAP,
                assigner: Some(id("m")),
            },
            term: 1,
        },
        leader: Some(id("m")),
        assigned: true,
    };
    let pulse = Pulse::Follows {
        record: record.clone(),
        live: false,
    };
    net.forge("m", "a", pulse);
    net.order("a", Command::SetLeader(id("b")));
    assert_eq!(stamp_of(&net, "a").epoch.override_seq, 1);
    // The refusal of a member that appears to have seen a larger one.
    let refusal = ElectionMessage::LeaderAssignAck {
        seq: 1,
        accepted: false,
        record,
    };
    net.forge("m", "a", refusal);
    assert_eq!(stamp_of(&net, "a").epoch.override_seq, LEAP + 1);
    net.wait("the target leads", |net| net.leads("b") && net.is_settled());
}

/// The newcomer follows term 0: no distance from that is a violation.
#[test]
fn a_newcomer_is_linked_to_all_members_of_a_room_whose_term_is_far_above_its_own() {
    const FAR: u64 = 1 << 30;
    let mut net = Net::room(&["a", "b", "c", "m"]);
    for victim in ["a", "b", "c"] {
        let stamp = Stamp {
            term: FAR,
            ..stamp_of(&net, victim)
        };
        net.forge("m", victim, claim(stamp, "m", false));
    }
    net.kill("m", true);
    keep_together(&mut net, &["a", "b", "c"]);
    let leader = net.node("a").leader().cloned();
    for (newcomer, contact) in [("d", "a"), ("e", "b")] {
        net.start(newcomer);
        net.enter(newcomer, contact);
    }
    keep_together(&mut net, &["a", "b", "c", "d", "e"]);
    assert_eq!(net.node("d").leader().cloned(), leader);
    assert!(stamp_of(&net, "d").term >= FAR);
}
