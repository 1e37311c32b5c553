//! Leases: a node that receives its leader's heartbeats does not help to replace it (G4).

use super::*;

/// `m`, which heard its leader `a` at 10 s.
fn leased() -> Group {
    let mut group = Group::one("m", &["a", "b", "c"]);
    group.now = at(10_000);
    group.receive("m", "a", Content::Pulse(leads("a", 1)));
    group
}

/// hashicorp/raft: pre-votes for the known leader, and for another node while the leader lives.
#[test]
fn hc14_a_pre_vote_of_the_known_leader_is_granted_and_one_of_another_is_not() {
    let mut group = leased();
    group.wait(ms(1));
    assert!(group.asks_pre_vote("m", "a", 2));
    assert!(!group.asks_pre_vote("m", "b", 2));
    group.wait(MIN);
    assert!(group.asks_pre_vote("m", "b", 2), "the lease is over");
}

#[test]
fn r32_o10_a_refused_candidate_is_elected_when_the_voters_lease_is_over() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    // Only c, d and e still receive the leader's heartbeats when b's timer fires.
    group.live(ms(2000));
    group.cut("a", "b");
    group.wait(MIN);
    for voter in ["c", "d", "e"] {
        group.receive(voter, "a", Content::Pulse(leads("a", 1)));
    }
    group.take_sent();
    group.loses("b", "a", DownReason::Silent);
    group.times_out("b");
    group.deliver();
    assert_eq!((group.role("b"), group.term("b")), (RoleKind::Follower, 1));
    assert_eq!(group.shows("b"), Some("a"), "it knows the leader");
    // No node receives the leader's heartbeats now.
    group.wait(MIN);
    for voter in ["c", "d", "e"] {
        group.loses(voter, "a", DownReason::Silent);
    }
    group.wait(MAX);
    group.tick("b");
    group.elect("b");
    assert_eq!((group.role("b"), group.term("b")), (RoleKind::Leader, 2));
    for voter in ["c", "d", "e"] {
        assert_eq!(group.shows(voter), Some("b"));
    }
}

#[test]
fn r33_a_room_that_just_started_elects_though_no_lease_was_ever_held() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.elect("c");
    assert!(group.now < Time::ZERO + MAX + MIN, "{:?}", group.now);
    group.assert_led_by("c", 1);
}

/// etcd-io/raft: when the timers of all followers have run out, another node may lead.
#[test]
fn r33_o2_when_all_leases_are_over_a_higher_term_takes_over_and_the_old_leader_follows() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    group.isolate("a");
    group.wait(MIN);
    for name in ["b", "c", "d", "e"] {
        group.loses(name, "a", DownReason::Silent);
    }
    group.elect("b");
    assert_eq!((group.role("a"), group.term("a")), (RoleKind::Leader, 1));
    assert_eq!(group.term("b"), 2);
    group.mend();
    for name in ["b", "c", "d", "e"] {
        group.links(name, "a");
    }
    group.deliver();
    group.heartbeats();
    group.assert_led_by("b", 2);
}

/// A node with a living leader is forced to campaign (here: its timer fires while the others hear the leader). The
/// others refuse, and no term grows.
#[test]
fn r37_r46_o4_a_node_that_misses_a_heartbeat_does_not_disturb_the_others() {
    let mut group = Group::of(&["a", "b", "c", "d"]);
    group.elect("a");
    group.live(ms(2000));
    group.cut("a", "c");
    group.live(MIN - HEARTBEAT);
    group.loses("c", "a", DownReason::Silent);
    group.times_out("c");
    assert_eq!(group.role("c"), RoleKind::PreCandidate);
    // The heartbeat comes late, just after its timer fired.
    group.mend();
    group.links("c", "a");
    group.deliver();
    group.heartbeats();
    group.assert_led_by("a", 1);
}

/// etcd-io/raft: enough nodes without a living leader's heartbeats may replace it; fewer are pointed to it.
#[test]
fn r46_a_majority_without_a_link_to_the_leader_replaces_it() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    // Of b, c, d and e, which b asks, three must be willing.
    for deaf in ["b", "c", "d"] {
        group.cut("a", deaf);
    }
    group.wait(MIN);
    for hearing in ["d", "e"] {
        group.receive(hearing, "a", Content::Pulse(leads("a", 1)));
    }
    group.take_sent();
    for deaf in ["b", "c"] {
        group.loses(deaf, "a", DownReason::Silent);
    }
    group.times_out("b");
    group.deliver();
    assert_eq!((group.role("b"), group.term("b")), (RoleKind::Follower, 1));
    assert_eq!(group.shows("b"), Some("a"), "it knows the leader");

    group.wait(MIN);
    group.receive("e", "a", Content::Pulse(leads("a", 1)));
    group.take_sent();
    group.loses("d", "a", DownReason::Silent);
    group.wait(MIN);
    group.receive("e", "a", Content::Pulse(leads("a", 1)));
    group.take_sent();
    group.tick("b");
    group.times_out("b");
    group.deliver();
    assert_eq!((group.role("b"), group.term("b")), (RoleKind::Leader, 2));
}
