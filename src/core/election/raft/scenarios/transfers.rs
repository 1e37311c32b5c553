//! A leader hands over.

use super::*;

fn transfer(group: &mut Group, from: &str, to: &str) {
    let target = Some(id(to));
    group.feed(from, ElectionInput::Transfer { target });
}

#[test]
fn r50_r51_a_leader_hands_over_past_all_leases_and_is_handed_back() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    let mut from = "a";
    for (turn, to) in ["c", "e", "a"].into_iter().enumerate() {
        transfer(&mut group, from, to);
        group.deliver();
        group.heartbeats();
        group.assert_led_by(to, turn as u64 + 2);
        from = to;
    }
}

#[test]
fn r53_a_hand_over_to_oneself_to_a_stranger_or_to_an_observer_changes_nothing() {
    let observer = |name: &str, config: &mut RaftConfig| config.eligible = name != "o";
    let mut group = Group::with(&["a", "b", "c", "o"], observer);
    group.elect("a");
    group.live(ms(2000));
    let to = |name: &str| ElectionInput::Transfer {
        target: Some(id(name)),
    };
    assert_eq!(group.try_feed("a", to("a")), Ok(()));
    let stranger = Err(ElectionError::UnknownTarget(id("x")));
    assert_eq!(group.try_feed("a", to("x")), stranger);
    let observer = Err(ElectionError::IneligibleTarget(id("o")));
    assert_eq!(group.try_feed("a", to("o")), observer);
    assert_eq!(group.try_feed("b", to("c")), Err(ElectionError::NotLeader));
    group.live(ms(10_000));
    group.assert_led_by("a", 1);
}

/// etcd-io/raft: while the target does not answer, somebody else is elected; the hand-over is over then.
#[test]
fn r56_a_higher_term_ends_a_hand_over_that_is_under_way() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    group.isolate("c");
    transfer(&mut group, "a", "c");
    group.deliver();
    assert_eq!(group.role("a"), Role::Leader, "it leads until c is elected");
    group.hear("a", "b", Said::Pulse(leads("b", 2)));
    assert_eq!((group.role("a"), group.shows("a")), (Role::Follower, Some("b")));
    group.take_said();
    // It is not named again, and when the old leader leads once more it does not go on with it.
    group.said.clear();
    group.mend();
    group.wait(MIN);
    group.loses("a", "b", Gone::Silent);
    for name in ["c", "d", "e"] {
        group.loses(name, "a", Gone::Silent);
    }
    for name in ["c", "d", "e"] {
        group.links(name, "a");
    }
    group.live(ms(6000));
    let told = group.said.iter().filter(|(from, _, said)| {
        let Said::Message(_, message) = said else {
            return false;
        };
        *from == id("a") && matches!(message, ElectionMessage::TimeoutNow { .. })
    });
    assert_eq!(told.count(), 0);
}

/// hashicorp/raft: a target that cannot be reached leaves everything as it was, after a timeout for good.
#[test]
fn hc12_a_target_that_does_not_answer_is_given_up() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.live(ms(2000));
    group.isolate("c");
    transfer(&mut group, "a", "c");
    group.live(MAX + HEARTBEAT);
    assert_eq!((group.role("a"), group.term("a")), (Role::Leader, 1));
    group.said.clear();
    group.mend();
    group.live(ms(10_000));
    let asked = group.said.iter().filter(|(_, to, said)| {
        let Said::Message(_, message) = said else {
            return false;
        };
        *to == id("c") && matches!(message, ElectionMessage::TimeoutNow { .. })
    });
    assert_eq!(asked.count(), 0, "it is asked no more");
}
