//! Older and newer terms, and what ends a role.

use super::*;

#[test]
fn r18_s1_a_node_starts_as_a_follower_without_a_leader() {
    let group = Group::of(&["a", "b", "c"]);
    for name in group.names() {
        assert_eq!(
            (group.role(&name), group.term(&name)),
            (RoleKind::Follower, 0)
        );
        assert_eq!(group.shows(&name), None);
    }
}

#[test]
fn r10_messages_of_an_older_term_change_nothing() {
    let mut group = Group::one("m", &["a", "b", "c"]);
    group.now = at(3000);
    group.receive("m", "a", Content::Pulse(leads("a", 5)));
    let deadline = group.raft("m").next_deadline();
    group.wait(MIN);
    assert!(!group.asks_vote("m", "b", term(4), None));
    assert!(!group.asks_vote("m", "b", term(4), Some("a")));
    assert!(!group.asks_pre_vote("m", "b", 4));
    group.receive("m", "b", Content::Pulse(leads("b", 4)));
    let answers = group.take_sent();
    let [(_, to, Content::Message(_, ElectionMessage::Nack { record, .. }))] = &answers[..] else {
        panic!("an older claim is answered with what is known, not {answers:?}");
    };
    assert_eq!((to, record), (&id("b"), &led_by("a", 5)));
    let nack = ElectionMessage::Nack {
        record: led_by("b", 4),
        live: None,
    };
    group.receive("m", "b", Content::Message(term(4), nack));
    assert_eq!(*group.raft("m").leadership().record, led_by("a", 5));
    assert_eq!(group.shows("m"), Some("a"));
    assert_eq!(group.raft("m").next_deadline(), deadline);
}

/// A node becomes leader only by a round of its own (or an assignment), and no leader asks for its own place.
#[test]
fn r12_the_ways_between_the_roles() {
    let mut follower = Group::one("m", &["a", "b", "c", "d"]);
    follower.now = at(3000);
    follower.receive("m", "a", Content::Pulse(leads("a", 1)));
    for round in 0..5 {
        for (voter, pre_vote) in [("a", true), ("b", true), ("c", false), ("d", false)] {
            let (voter, granted, live) = (id(voter), true, None);
            let record = Record::undecided(term(1));
            let message = if pre_vote {
                ElectionMessage::PreVoteResponse {
                    round,
                    voter: voter.clone(),
                    granted,
                    record,
                    live,
                }
            } else {
                ElectionMessage::VoteResponse {
                    round,
                    voter: voter.clone(),
                    granted,
                    record,
                    live,
                }
            };
            follower.receive("m", voter.as_str(), Content::Message(term(1), message));
        }
    }
    assert_eq!(follower.role("m"), RoleKind::Follower);
    assert_eq!(follower.shows("m"), Some("a"));

    // A pre-candidate is no candidate without pre-votes of a majority, and votes are none.
    let mut asking = in_role(RoleKind::PreCandidate);
    asking.answers("m", "a", true);
    let round = asking.raft("m").rules().campaign().expect("open").round;
    for voter in ["b", "c", "d"] {
        let vote = ElectionMessage::VoteResponse {
            round,
            voter: id(voter),
            granted: true,
            record: Record::undecided(term(1)),
            live: None,
        };
        asking.receive("m", voter, Content::Message(term(1), vote));
    }
    assert_eq!(asking.role("m"), RoleKind::PreCandidate);

    // A leader that meets a higher claim without a leader stays in its role or becomes a follower.
    for merge in [MergePolicy::LargestSide, MergePolicy::HighestTerm] {
        let mut group = Group::with(&["a", "b", "c"], |_, start| {
            start.config.policy.merge = merge
        });
        group.elect("a");
        let nack = ElectionMessage::Nack {
            record: Record::undecided(term(7)),
            live: None,
        };
        group.receive("a", "b", Content::Message(term(7), nack));
        let role = group.role("a");
        assert!(
            !matches!(role, RoleKind::PreCandidate | RoleKind::Candidate),
            "{merge:?}: {role:?}"
        );
    }
}

#[test]
fn r13_a_vote_request_of_a_higher_term_ends_every_role_and_names_no_leader() {
    for (role, mut group) in in_every_role() {
        group.asks_vote("m", "b", term(3), None);
        assert_eq!((group.role("m"), group.term("m")), (RoleKind::Follower, 3));
        assert_eq!(group.raft("m").leadership().record.leader, None, "{role:?}");
        assert_ne!(group.shows("m"), Some("b"), "{role:?}");
    }
}

#[test]
fn r13_r17_a_heartbeat_of_a_higher_term_ends_every_role_and_names_the_leader() {
    for (role, mut group) in in_every_role() {
        group.receive("m", "b", Content::Pulse(leads("b", 3)));
        assert_eq!((group.role("m"), group.term("m")), (RoleKind::Follower, 3));
        assert_eq!(group.shows("m"), Some("b"), "{role:?}");
        assert_eq!(group.raft("m").leader_token(), None, "{role:?}");
    }
}

#[test]
fn r23_a_candidate_follows_the_leader_of_its_own_or_of_a_higher_term() {
    for received in [1, 2] {
        let mut group = in_role(RoleKind::Candidate);
        group.receive("m", "b", Content::Pulse(leads("b", received)));
        assert_eq!(
            (group.role("m"), group.term("m")),
            (RoleKind::Follower, received)
        );
        assert_eq!(group.shows("m"), Some("b"));
        // Late votes change nothing.
        let vote = ElectionMessage::VoteResponse {
            round: 2,
            voter: id("a"),
            granted: true,
            record: Record::undecided(term(1)),
            live: None,
        };
        group.receive("m", "a", Content::Message(term(1), vote));
        assert_eq!(group.role("m"), RoleKind::Follower);
    }
}

/// With merges by the term alone a leader ends when an answer shows it a higher term. With merges by size it goes above
/// a claim without a living leader.
#[test]
fn o11_a_leader_that_sees_a_higher_term_in_an_answer() {
    for merge in [MergePolicy::HighestTerm, MergePolicy::LargestSide] {
        let mut group = Group::with(&["a", "b", "c"], |_, start| {
            start.config.policy.merge = merge
        });
        group.elect("a");
        let nack = ElectionMessage::Nack {
            record: Record::undecided(term(7)),
            live: None,
        };
        group.receive("a", "b", Content::Message(term(7), nack));
        if merge == MergePolicy::HighestTerm {
            assert_eq!((group.role("a"), group.term("a")), (RoleKind::Follower, 7));
            assert_eq!(group.shows("a"), None);
        } else {
            assert_eq!((group.role("a"), group.term("a")), (RoleKind::Leader, 8));
            group.deliver();
            group.heartbeats();
            group.assert_led_by("a", 8);
        }
    }
}

/// Only a leader claims to lead; a follower or candidate reports the record that it follows.
#[test]
fn r19_only_the_heartbeats_of_a_leader_claim_to_lead() {
    for (role, group) in in_every_role() {
        let one = group.get("m");
        let pulse = one.raft.own_pulse(group.now, &one.view);
        let claims = matches!(pulse, Pulse::Leads { .. });
        assert_eq!(claims, role == RoleKind::Leader, "{role:?}");
    }
    // It sends its first heartbeat to all at the moment of its election.
    let mut group = Group::one("m", &["a", "b", "c"]);
    group.times_out("m");
    group.answers("m", "a", true);
    group.answers("m", "b", true);
    group.take_sent();
    group.answers("m", "a", true);
    group.answers("m", "b", true);
    let reported: Vec<PeerId> = group.take_sent().into_iter().map(|(_, to, _)| to).collect();
    assert_eq!(reported, ["a", "b", "c"].map(id));
}
