//! Several nodes and their elections, message by message.

use super::*;

/// etcd-io/raft: every node can lead in turn, whatever went before.
#[test]
fn r2_everybody_campaigns_in_turn_wins_and_is_followed() {
    let mut group = Group::of(&everyone());
    let mut before: Option<&str> = None;
    for (turn, next) in everyone().into_iter().enumerate() {
        if let Some(before) = before {
            group.isolate(before);
            group.wait(MIN);
            for name in everyone().into_iter().filter(|name| *name != before) {
                group.loses(name, before, DownReason::Silent);
            }
        }
        group.elect(next);
        if let Some(before) = before {
            group.mend();
            for name in everyone().into_iter().filter(|name| *name != before) {
                group.links(name, before);
            }
            group.deliver();
            group.heartbeats();
        }
        group.assert_led_by(next, turn as u64 + 1);
        before = Some(next);
    }
}

/// etcd-io/raft: the number of live nodes with which a campaign ends with a leader.
#[test]
fn r1_a_candidate_leads_with_a_majority_and_else_stays_in_its_old_term() {
    // (linked members, members that answer, whether a campaign succeeds)
    let table: &[(&[&str], &[&str], bool)] = &[
        (&["b", "c"], &["b", "c"], true),
        (&["b", "c"], &["b"], true),
        (&["b", "c"], &[], false),
        (&["b", "c", "d"], &["b"], false),
        (&["b", "c", "d"], &["b", "c"], true),
        (&["b", "c", "d", "e"], &["b", "c"], true),
        (&["b", "c", "d", "e"], &["b"], false),
    ];
    for (linked, alive, leads) in table {
        let names = [&["a"], *linked].concat();
        let mut group = Group::of(&names);
        for name in *linked {
            if !alive.contains(name) {
                group.cut("a", name);
            }
        }
        group.times_out("a");
        group.deliver();
        let expected = if *leads {
            (RoleKind::Leader, 1)
        } else {
            (RoleKind::PreCandidate, 0)
        };
        let seen = (group.role("a"), group.term("a"));
        assert_eq!(seen, expected, "{linked:?}, of which {alive:?} answer");
    }
}

/// etcd-io/raft: the link between two campaigning nodes is cut; the third has links to both.
#[test]
fn r5_of_two_that_campaign_apart_one_leads_and_the_other_does_not_disturb_it() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.cut("a", "c");
    group.times_out("a");
    group.deliver();
    group.times_out("c");
    group.deliver();
    assert_eq!((group.role("a"), group.term("a")), (RoleKind::Leader, 1));
    assert_eq!((group.role("c"), group.term("c")), (RoleKind::Follower, 1));
    assert_eq!(
        group.shows("c"),
        Some("a"),
        "reported by the member between them"
    );
    group.mend();
    group.heartbeats();
    group.assert_led_by("a", 1);
}

/// etcd-io/raft: both became candidates before either knew of the other. Without pre-votes the loser would depose the
/// winner one round later.
#[test]
fn r4_of_two_candidates_of_one_term_the_loser_does_not_depose_the_winner() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.cut("a", "c");
    group.times_out("a");
    group.times_out("c");
    group.deliver();
    assert_eq!((group.role("a"), group.term("a")), (RoleKind::Leader, 1));
    assert_eq!((group.role("c"), group.term("c")), (RoleKind::Candidate, 1));
    group.times_out("c");
    group.deliver();
    assert_eq!((group.role("c"), group.term("c")), (RoleKind::Follower, 1));
    assert_eq!(group.shows("c"), Some("a"));
    group.mend();
    group.heartbeats();
    group.assert_led_by("a", 1);
}

/// etcd-io/raft: a candidate that was cut off while it waited for votes finds the winner of its own term.
#[test]
fn r6_a_candidate_concedes_to_the_winner_of_its_term() {
    let mut group = Group::of(&everyone());
    group.times_out("a");
    deliver_pre_votes(&mut group);
    group.isolate("a");
    group.deliver();
    assert_eq!((group.role("a"), group.term("a")), (RoleKind::Candidate, 1));
    group.elect("c");
    group.mend();
    group.heartbeats();
    group.assert_led_by("c", 1);
}

/// Delivers messages of pre-votes; the vote requests that follow are still on their way.
fn deliver_pre_votes(group: &mut Group) {
    for _ in 0..MAX_DELIVERIES {
        let pre_vote = group.queue.iter().position(|(_, _, content)| {
            let Content::Message(_, message) = content else {
                return false;
            };
            matches!(
                message,
                ElectionMessage::PreVoteRequest { .. } | ElectionMessage::PreVoteResponse { .. }
            )
        });
        let Some(index) = pre_vote else {
            return;
        };
        let (from, to, content) = group.queue.remove(index).expect("just found");
        group.arrives(from, to, content);
    }
}

/// etcd-io/raft: an isolated candidate with a higher term comes back to a leader of a lower one.
#[test]
fn r14_r41_a_candidate_with_a_higher_term_ends_in_the_leaders_term() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.elect("c");
    group.isolate("a");
    group.wait(MIN);
    group.loses("a", "c", DownReason::Silent);
    // It asked the other one, no node objected, and it went above the room, twice.
    group.links("a", "b");
    for _ in 0..2 {
        group.receive("a", "b", forged_vote_request("b", group.term("a") + 1));
    }
    group.take_sent();
    assert_eq!((group.term("a"), group.term("c")), (3, 1));
    group.mend();
    group.links("a", "c");
    group.deliver();
    group.heartbeats();
    group.assert_led_by("c", 4);
    // Nothing else follows.
    group.live(ms(10_000));
    group.assert_led_by("c", 4);
}

fn forged_vote_request(candidate: &str, at: u64) -> Content {
    let message = ElectionMessage::VoteRequest {
        round: 99,
        candidate: id(candidate),
        asked_by: Some(id("c")),
    };
    Content::Message(term(at), message)
}

/// etcd-io/raft: two followers campaign together and share the votes; the next round decides.
#[test]
fn r39_after_a_split_vote_the_next_round_has_a_winner() {
    let mut group = Group::of(&everyone());
    group.elect("a");
    group.wait(MIN);
    group.dies("a", &DownReason::Silent);
    // Neither receives the other's request, so neither lets the other go first.
    group.cut("b", "c");
    group.times_out("b");
    group.times_out("c");
    deliver_pre_votes(&mut group);
    for name in ["b", "c"] {
        assert_eq!(
            (group.role(name), group.term(name)),
            (RoleKind::Candidate, 2)
        );
    }
    group.mend();
    // d receives b's request first, and e receives c's.
    group.cut("b", "e");
    group.cut("c", "d");
    group.deliver();
    for name in ["b", "c"] {
        assert_eq!(
            (group.role(name), group.term(name)),
            (RoleKind::Candidate, 2)
        );
    }
    assert_eq!(group.voted_for("d"), Some(&id("b")));
    assert_eq!(group.voted_for("e"), Some(&id("c")));
    group.mend();
    group.times_out("b");
    group.deliver();
    group.heartbeats();
    group.assert_led_by("b", 3);
}

/// etcd-io/raft and raft-rs: different terms after the leader's crash keep no node from being elected.
#[test]
fn r77_after_a_crash_nodes_of_a_lower_term_answer_pre_votes_and_can_be_elected() {
    for candidate in ["b", "e"] {
        let mut group = Group::of(&everyone());
        // e never heard of the first leader.
        group.isolate("e");
        group.elect("a");
        assert_eq!((group.term("b"), group.term("e")), (1, 0));
        group.mend();
        group.wait(MIN);
        group.dies("a", &DownReason::Silent);
        group.times_out(candidate);
        group.deliver();
        if candidate == "e" {
            // The others already had the term that it asked for: it learns their term and asks again.
            assert_eq!((group.role("e"), group.term("e")), (RoleKind::Follower, 1));
            group.times_out("e");
            group.deliver();
        }
        group.heartbeats();
        group.assert_led_by(candidate, 2);
    }
}

/// The scripted runs of etcd-io/raft: an election of three, message by message.
#[test]
fn r43_an_election_of_three_message_by_message() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.times_out("b");
    group.deliver();
    let lines: Vec<String> = group.sent.iter().map(line).collect();
    let expected = [
        "b -> a: would you vote for me in term 1?",
        "b -> c: would you vote for me in term 1?",
        "a -> b: I would",
        "c -> b: I would",
        "b -> a: vote for me in term 1",
        "b -> c: vote for me in term 1",
        "a -> b: you have my vote",
        "c -> b: you have my vote",
        "b -> a: I lead in term 1",
        "b -> c: I lead in term 1",
    ];
    assert_eq!(lines, expected);
    group.assert_led_by("b", 1);
}

#[test]
fn r43_an_election_of_one_message_by_message() {
    let mut group = Group::of(&["a"]);
    group.times_out("a");
    group.deliver();
    assert!(group.sent.is_empty());
    group.assert_led_by("a", 1);
}

fn line((from, to, content): &(PeerId, PeerId, Content)) -> String {
    let what = match content {
        Content::Message(_, ElectionMessage::PreVoteRequest { term, .. }) => {
            format!("would you vote for me in term {term}?")
        }
        Content::Message(_, ElectionMessage::PreVoteResponse { granted: true, .. }) => {
            "I would".to_owned()
        }
        Content::Message(stamp, ElectionMessage::VoteRequest { .. }) => {
            format!("vote for me in term {}", stamp.term)
        }
        Content::Message(_, ElectionMessage::VoteResponse { granted: true, .. }) => {
            "you have my vote".to_owned()
        }
        Content::Pulse(Pulse::Leads { record, .. }) => format!("I lead in term {}", record.term()),
        other => format!("{other:?}"),
    };
    format!("{from} -> {to}: {what}")
}
