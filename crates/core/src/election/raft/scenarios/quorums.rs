//! Fixed quorums: the voters that a leader needs, and the state that a restart must not lose (C2, C8). `raft::tests`
//! has more.

use super::*;

/// hashicorp/raft: one of a pair is gone. With a fixed quorum of two the leader resigns; with a quorum of the connected
/// voters it leads on.
#[test]
fn hc2_the_survivor_of_a_pair_leads_on_unless_the_quorum_is_fixed() {
    for (quorum, leads_on) in [(Quorum::Dynamic, true), (Quorum::of(&["a", "b"]), false)] {
        let mut group = Group::with(&["a", "b"], |_, start| start.config.quorum = quorum.clone());
        group.elect("a");
        group.live(ms(2000));
        group.assert_led_by("a", 1);
        group.isolate("b");
        group.wait(MIN);
        group.dies("b", &DownReason::Silent);
        group.live(ms(10_000));
        let expected = leads_on.then_some("a");
        assert_eq!(group.shows("a"), expected, "{quorum:?}");
        assert_eq!(group.term("a"), 1, "{quorum:?}");
    }
}

/// openraft: a leader before a restart has no claim to lead after it.
#[test]
fn o14_a_restarted_leader_does_not_lead_on() {
    let saved = Saved {
        writes: 7,
        record: led_by("m", 5),
        voted_for: Some(id("m")),
        forgotten: None,
        others: BTreeMap::new(),
    };
    let mut group = Group::new(&["m"], &["m", "a", "b"], |_, start| {
        start.config.quorum = Quorum::of(&["m", "a", "b"]);
        start.saved = Some(saved.clone());
    });
    assert_eq!(
        (group.role("m"), group.shows("m")),
        (RoleKind::Follower, None)
    );
    assert_eq!(group.raft("m").leader_token(), None);
    // It is elected again in a later term only.
    group.times_out("m");
    group.answers("m", "a", true);
    group.answers("m", "a", true);
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Leader, 6));
}

/// A leader has just asked its voters: they need not answer again in its first window.
#[test]
fn the_votes_of_a_campaign_are_the_answers_of_its_first_window() {
    let mut group = Group::one("m", &["a", "b", "c", "d"]);
    group.times_out("m");
    for _ in ["pre-votes", "votes"] {
        group.answers("m", "a", true);
        group.answers("m", "b", true);
    }
    assert_eq!(group.role("m"), RoleKind::Leader);
    group.live(MIN + ms(100));
    assert_eq!(group.role("m"), RoleKind::Leader);
    group.live(MIN);
    assert_eq!(group.role("m"), RoleKind::Follower);
}
