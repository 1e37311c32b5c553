//! What a leader needs of its voters (G6).

use super::*;

/// etcd-io/raft: while a majority answers, a leader leads on beyond every timeout.
#[test]
fn r30_a_leader_that_a_majority_answers_leads_on() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    for silent in ["d", "e"] {
        group.cut(silent, "a");
    }
    group.live(ms(20_000));
    assert_eq!((group.role("a"), group.term("a")), (Role::Leader, 1));
    for name in ["b", "c"] {
        assert_eq!(group.shows(name), Some("a"));
    }
}

#[test]
fn r31_a_leader_that_no_majority_answers_resigns_after_its_window() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(5000));
    // Everybody hears it, and of four only one is heard.
    for silent in ["b", "c", "d"] {
        group.cut.insert((id(silent), id("a")));
    }
    let began = group.now;
    while group.role("a") == Role::Leader {
        assert!(group.now.since(began) <= MIN * 2 + ms(1), "it leads on");
        group.live(ms(10));
    }
    assert!(group.now.since(began) > MIN / 2, "it did not wait");
}

/// hashicorp/raft: a pair of which one is gone. With a fixed quorum of two the leader resigns; with that of
/// who is connected it leads on.
#[test]
fn hc2_the_survivor_of_a_pair_leads_on_unless_the_quorum_is_fixed() {
    for (quorum, leads_on) in [
        (QuorumPolicy::Dynamic, true),
        (QuorumPolicy::Static { voters: 2 }, false),
    ] {
        let mut group = Group::with(&["a", "b"], |_, config| config.quorum = quorum);
        group.elect("a");
        group.live(ms(2000));
        group.assert_led_by("a", 1);
        group.isolate("b");
        group.wait(MIN);
        group.dies("b", &Gone::Silent);
        group.live(ms(10_000));
        let expected = leads_on.then_some("a");
        assert_eq!(group.shows("a"), expected, "{quorum:?}");
        assert_eq!(group.term("a"), 1, "{quorum:?}");
    }
}
