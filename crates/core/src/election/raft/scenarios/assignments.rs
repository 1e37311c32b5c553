//! Leaders that come, go and are assigned, with merges by the term alone: the first tests of this library's rules (S7
//! to S14), applied to whole strategies.

use super::*;

fn by_term(names: &[&str]) -> Group {
    Group::with(names, |_, start| {
        start.config.policy.merge = MergePolicy::HighestTerm
    })
}

fn electing(names: &[&str]) -> Group {
    Group::with(names, |_, start| {
        start.config.policy.merge = MergePolicy::HighestTerm;
        start.config.recovery = Recovery::AutoElect;
    })
}

impl Group {
    fn set_leader(&mut self, caller: &str, target: &str) {
        let target = id(target);
        self.feed(caller, Local::SetLeader { target });
        self.deliver();
        self.heartbeats();
    }
}

#[test]
fn s7_the_set_leader_leads_in_the_next_term_and_the_others_follow() {
    for target in ["a", "b"] {
        let mut group = by_term(&["a", "b", "c"]);
        group.set_leader("a", target);
        group.assert_led_by(target, 1);
        assert_eq!(group.get("a").outcomes, [AssignOutcome::Done]);
    }
}

#[test]
fn s9_no_leader_is_shown_between_a_leave_and_the_next_election() {
    let mut group = by_term(&["a", "b", "c", "d"]);
    group.elect("a");
    group.dies("a", &DownReason::Left { successor: None });
    for name in ["b", "c", "d"] {
        assert_eq!(group.shows(name), None);
    }
    group.live(ms(1000));
    let next = group.shows("b").expect("one of them").to_owned();
    group.assert_led_by(&next, 2);
}

#[test]
fn s10_of_two_leaders_of_one_term_the_larger_id_stays() {
    let mut group = by_term(&["a", "b", "c", "d"]);
    for (one, other) in [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")] {
        group.cut(one, other);
        group.loses(one, other, DownReason::Silent);
        group.loses(other, one, DownReason::Silent);
    }
    for leader in ["a", "c"] {
        group.times_out(leader);
        group.deliver();
    }
    group.heartbeats();
    for leader in ["a", "c"] {
        assert_eq!(
            (group.role(leader), group.term(leader)),
            (RoleKind::Leader, 1)
        );
    }
    group.mend();
    for (one, other) in [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")] {
        group.links(one, other);
    }
    group.deliver();
    group.heartbeats();
    group.assert_led_by("c", 1);
}

#[test]
fn s12_no_member_campaigns_while_a_set_leader_lives_and_elections_stay_off() {
    let mut group = by_term(&["a", "b", "c"]);
    group.set_leader("a", "b");
    for name in ["a", "c"] {
        group.feed(name, Local::EnableAuto(true));
    }
    group.live(ms(20_000));
    group.assert_led_by("b", 1);
    for name in group.names() {
        assert!(
            group.raft(&name).leadership().record.assigned,
            "{name} forgot it"
        );
    }
    // A claim of the highest term that was merely elected is of an older epoch.
    group.receive("a", "c", Content::Pulse(leads("c", 10)));
    assert_eq!(group.shows("a"), Some("b"));
    // Its place is held after it left, until a host allows elections again.
    group.dies("b", &DownReason::Left { successor: None });
    group.live(ms(20_000));
    for name in ["a", "c"] {
        assert_eq!(
            (group.role(name), group.shows(name)),
            (RoleKind::Follower, None)
        );
    }
    group.feed("a", Local::EnableAuto(true));
    group.live(ms(4000));
    group.assert_led_by("a", 2);
    assert!(
        !group.raft("c").leadership().record.assigned,
        "the override is over"
    );
}

#[test]
fn s13_an_assignment_is_followed_with_its_term() {
    let mut group = Group::one("m", &["a", "b"]);
    let mut record = led_by("a", 5);
    record.assigned = true;
    record.stamp.epoch.override_seq = 1;
    record.stamp.epoch.assigner = Some(id("b"));
    let assignment = ElectionMessage::LeaderAssign {
        record: record.clone(),
        seq: 1,
    };
    group.receive("m", "b", Content::Message(term(0), assignment));
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Follower, 5));
    assert_eq!(group.shows("m"), Some("a"));
    let answers = group.take_sent();
    let [(_, _, Content::Message(_, ElectionMessage::LeaderAssignAck { accepted, .. }))] =
        &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert!(accepted);
}

#[test]
fn s14_a_set_leader_that_is_lost_is_replaced_only_where_the_room_elects() {
    let mut held = by_term(&["a", "b", "c", "d"]);
    let mut electing = electing(&["a", "b", "c", "d"]);
    for group in [&mut held, &mut electing] {
        group.set_leader("a", "b");
        group.dies("b", &DownReason::Closed);
        group.live(ms(10_000));
    }
    for name in ["a", "c", "d"] {
        assert_eq!((held.shows(name), held.term(name)), (None, 1));
    }
    let next = electing.shows("a").expect("one of them").to_owned();
    electing.assert_led_by(&next, 2);
}
