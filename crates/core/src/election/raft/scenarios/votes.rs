//! A voter's answers, and a candidate's use of them.

use super::*;
use crate::election::rules::{Rules, Tally};

/// etcd-io/raft: a vote request of the next term, in every role of the receiver.
#[test]
fn r3_a_vote_request_of_the_next_term_is_granted_in_every_role() {
    for (role, mut group) in in_every_role() {
        assert!(group.asks_vote("m", "b", term(2), None), "{role:?}");
        assert_eq!(group.role("m"), RoleKind::Follower, "{role:?}");
        assert_eq!((group.term("m"), group.voted_for("m")), (2, Some(&id("b"))));
    }
}

#[test]
fn r3_o18_a_pre_vote_changes_nothing_in_any_role() {
    for (role, mut group) in in_every_role() {
        let before = group.raft("m").rules().clone();
        let deadline = group.raft("m").next_deadline();
        // A leader is not asked for its own place (G2).
        let granted = group.asks_pre_vote("m", "b", 2);
        assert_eq!(granted, role != RoleKind::Leader, "{role:?}");
        assert_eq!(*group.raft("m").rules(), before, "{role:?}");
        assert_eq!(group.raft("m").next_deadline(), deadline, "{role:?}");
    }
}

/// There is no log to compare: only the term, the vote given and the known leader decide.
#[test]
fn r11_o18_a_vote_is_given_for_a_higher_term_or_once_in_the_same() {
    // (role in term 1, or in term 0 while it asks for pre-votes; term asked; vote; pre-vote)
    let table = [
        (RoleKind::Follower, 0, false, false),
        (RoleKind::Follower, 1, false, false), // its leader is known
        (RoleKind::Follower, 2, true, true),
        (RoleKind::PreCandidate, 0, true, false),
        (RoleKind::PreCandidate, 1, true, true),
        (RoleKind::Candidate, 0, false, false),
        (RoleKind::Candidate, 1, false, false), // it voted for itself
        (RoleKind::Candidate, 2, true, true),
        (RoleKind::Leader, 0, false, false),
        (RoleKind::Leader, 1, false, false),
        (RoleKind::Leader, 2, true, false),
    ];
    for (role, asked, vote, pre_vote) in table {
        let case = format!("{role:?} asked for term {asked}");
        let granted = in_role(role).asks_pre_vote("m", "b", asked);
        assert_eq!(granted, pre_vote, "pre-vote: {case}");
        let granted = in_role(role).asks_vote("m", "b", term(asked), None);
        assert_eq!(granted, vote, "vote: {case}");
    }
}

#[test]
fn r22_the_first_candidate_gets_the_vote_and_may_ask_again() {
    // (vote given before, candidate, granted)
    let table = [
        (None, "a", true),
        (None, "b", true),
        (Some("a"), "a", true),
        (Some("b"), "b", true),
        (Some("a"), "b", false),
        (Some("b"), "a", false),
    ];
    for (before, asking, granted) in table {
        let mut group = Group::one("m", &["a", "b", "c"]);
        group.now = at(3000);
        if let Some(before) = before {
            assert!(group.asks_vote("m", before, term(1), None));
        }
        let again = group.asks_vote("m", asking, term(1), None);
        assert_eq!(again, granted, "{before:?}, then {asking}");
        let expected = before.unwrap_or(asking);
        assert_eq!(group.voted_for("m"), Some(&id(expected)));
    }
}

#[test]
fn r59_hc7_an_unlinked_candidate_gets_no_vote() {
    let mut group = Group::one("m", &["a", "b", "c"]);
    group.now = at(3000);
    assert!(!group.asks_pre_vote("m", "stranger", 1));
    assert!(!group.asks_vote("m", "stranger", term(1), None));
    assert!(!group.asks_vote("m", "stranger", term(1), Some("a")));
    assert_eq!((group.term("m"), group.voted_for("m")), (0, None));
    // Neither does a former member that is gone.
    group.loses("m", "a", DownReason::Left { successor: None });
    assert!(!group.asks_vote("m", "a", term(1), None));
    assert!(group.asks_vote("m", "b", term(1), None));
}

/// A learner of other libraries answers vote requests; an observer here refuses (P6).
#[test]
fn r48_r74_an_observer_answers_and_gives_no_vote_until_it_may_lead() {
    let observer = |name: &str, start: &mut Start<Saved>| start.config.eligible = name != "m";
    let mut group = Group::new(&["m"], &["m", "a", "b"], observer);
    group.now = at(3000);
    assert!(!group.asks_pre_vote("m", "a", 1));
    assert!(!group.asks_vote("m", "a", term(1), None));
    assert_eq!(group.raft("m").next_deadline(), None, "it never campaigns");
    group.feed("m", Local::SetEligible(true));
    assert!(group.asks_pre_vote("m", "a", 1));
    assert!(group.asks_vote("m", "a", term(1), None));
    group.times_out("m");
    assert_eq!(group.role("m"), RoleKind::PreCandidate, "now it campaigns");
}

#[test]
fn r21_a_round_is_won_with_a_majority_of_yes_and_no_sooner() {
    // (others, voters that grant, voters that refuse, whether it leads)
    type Case = (
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
        bool,
    );
    let two = &["a", "b"][..];
    let four = &["a", "b", "c", "d"][..];
    let table: &[Case] = &[
        (&[], &[], &[], true),
        (two, &["a", "b"], &[], true),
        (two, &["a"], &[], true),
        (two, &["b"], &["a"], true),
        (two, &[], &["a", "b"], false),
        (two, &[], &["a"], false),
        (two, &[], &[], false),
        (four, &["a", "b", "c", "d"], &[], true),
        (four, &["a", "b"], &["c", "d"], true),
        (four, &["a", "b"], &[], true),
        (four, &["a"], &[], false),
        (four, &["a"], &["b", "c", "d"], false),
        (four, &[], &["a", "b", "c", "d"], false),
        (four, &[], &[], false),
    ];
    for (others, yes, no, expected) in table {
        let case = format!("{others:?}, yes {yes:?}, no {no:?}");
        let mut group = Group::one("m", others);
        group.times_out("m");
        for voter in *others {
            if group.role("m") == RoleKind::PreCandidate {
                group.answers("m", voter, true);
            }
        }
        for (voters, granted) in [(no, false), (yes, true)] {
            for voter in *voters {
                if group.role("m") == RoleKind::Candidate {
                    group.answers("m", voter, granted);
                }
            }
        }
        let leads = group.role("m") == RoleKind::Leader;
        assert_eq!((leads, group.term("m")), (*expected, 1), "{case}");
        if !leads {
            // It asks anew: for pre-votes, or, if no voter refused, for the same term.
            group.times_out("m");
            let again = if no.is_empty() {
                RoleKind::Candidate
            } else {
                RoleKind::PreCandidate
            };
            assert_eq!(group.role("m"), again, "{case}");
        }
    }
}

/// etcd-io/raft has tables of votes for its quorums: the state of a round after each answer.
#[test]
fn r29_a_round_is_pending_lost_or_won_exactly() {
    let dynamic = || Quorum::Dynamic;
    let fixed = |voters: usize| Quorum::of(&["m", "a", "b", "c", "d"][..voters]);
    use Tally::{Lost, Pending, Won};
    // (quorum, others, their answers in turn, state of the round at first and after each)
    let table: &[(Quorum, &str, &str, &[Tally])] = &[
        (dynamic(), "", "", &[Won]),
        (dynamic(), "a", "", &[Won]), // of two, one vote is enough
        (fixed(2), "a", "n", &[Pending, Lost]),
        (fixed(2), "a", "y", &[Pending, Won]),
        (dynamic(), "ab", "ny", &[Pending, Pending, Won]),
        (dynamic(), "ab", "nn", &[Pending, Pending, Lost]),
        (dynamic(), "abc", "yy", &[Pending, Pending, Won]),
        (dynamic(), "abc", "nn", &[Pending, Pending, Lost]),
        (
            dynamic(),
            "abcd",
            "nyny",
            &[Pending, Pending, Pending, Pending, Won],
        ),
        (dynamic(), "abcd", "nnn", &[Pending, Pending, Pending, Lost]),
        // Only three of the five fixed voters are linked.
        (fixed(5), "ab", "yy", &[Pending, Pending, Won]),
        (fixed(5), "ab", "n", &[Pending, Lost]),
        (fixed(5), "a", "y", &[Lost, Lost]),
    ];
    for (quorum, others, answers, expected) in table {
        let case = format!("{quorum:?} {others} {answers}");
        let names: Vec<PeerId> = others.chars().map(|name| id(&name.to_string())).collect();
        let mut rules = Rules::new(id("m"), quorum.clone(), Guards::ALL);
        let first = rules.begin_vote(names.iter().cloned().collect(), &term(0));
        assert_eq!(first, expected[0], "{case}");
        for (index, answer) in answers.chars().enumerate() {
            let round = rules.campaign().expect("it is open").round;
            let tally = rules.count_vote(round, &names[index], answer == 'y');
            assert_eq!(tally, expected[index + 1], "{case}, answer {index}");
        }
        let won = expected.last() == Some(&Won);
        assert_eq!(rules.role() == RoleKind::Leader, won, "{case}");
    }
}

#[test]
fn r28_o8_a_leader_has_nothing_to_campaign_for() {
    let mut group = Group::of(&["a", "b", "c"]);
    group.elect("b");
    let led = group.raft("b").leadership().record.clone();
    group.sent.clear();
    group.live(ms(20_000));
    group.tick("b");
    group.deliver();
    assert_eq!(*group.raft("b").leadership().record, led);
    group.assert_led_by("b", 1);
    let election = |content: &&(PeerId, PeerId, Content)| matches!(content.2, Content::Message(..));
    assert_eq!(group.sent.iter().find(election).map(|_| ()), None);
}

#[test]
fn r28_an_ineligible_node_never_campaigns() {
    let observer = |name: &str, start: &mut Start<Saved>| start.config.eligible = name != "m";
    let mut group = Group::new(&["m"], &["m", "a", "b"], observer);
    group.now = at(3000);
    group.receive("m", "a", Content::Pulse(leads("a", 1)));
    group.loses("m", "a", DownReason::Closed);
    for _ in 0..20 {
        group.wait(ms(1000));
        group.tick("m");
    }
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Follower, 1));
    assert!(group.take_sent().is_empty());
}

#[test]
fn r7_o18_a_voter_alone_leads_at_once_and_asks_no_other() {
    let mut group = Group::one("m", &[]);
    group.times_out("m");
    assert_eq!((group.role("m"), group.term("m")), (RoleKind::Leader, 1));
    assert!(group.take_sent().is_empty());
    assert!(group.now < Time::ZERO + MAX);
}
