//! The four rules of the seed, and single messages to a voter and a proposer.

use super::*;

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

fn ballot(counter: u64, proposer: &str) -> Ballot {
    let proposer = id(proposer);
    Ballot { counter, proposer }
}

fn accepted(counter: u64, proposer: &str, candidate: &str) -> Accepted {
    Accepted {
        ballot: ballot(counter, proposer),
        candidate: id(candidate),
    }
}

/// A ballot of "a" on version 1 among five voters.
fn proposer() -> Proposer {
    let voters = ["a", "b", "c", "d", "e"].map(id);
    Proposer::new(1, ballot(1, "a"), voters.into())
}

/// A proposer to which "a", "b" and "c" have promised.
fn formal() -> Proposer {
    let mut proposer = proposer();
    for voter in ["a", "b", "c"] {
        proposer.count(&id(voter), 1, &ballot(1, "a"), &Vote::Promised(None));
    }
    proposer
}

#[test]
fn rule_1_no_two_proposals_of_a_version_share_a_ballot() {
    let mut acceptor = Acceptor::default();
    let first = acceptor.next_ballot(&id("a"));
    let of_another = acceptor.next_ballot(&id("b"));
    assert_ne!(first, of_another);
    acceptor.prepare(1, &first);
    assert!(acceptor.next_ballot(&id("a")) > first);
    assert!(acceptor.next_ballot(&id("a")) > of_another);
    // The proposer promised its own requests, and the promise survives a restart.
    let kept = postcard::to_allocvec(&acceptor).expect("it encodes");
    let restarted: Acceptor = postcard::from_bytes(&kept).expect("it decodes");
    assert!(restarted.next_ballot(&id("a")) > first);
}

#[test]
fn a_voter_shows_its_promise_and_its_largest_counter() {
    let mut acceptor = Acceptor::default();
    assert_eq!((acceptor.promised(), acceptor.largest_counter()), (None, 0));
    acceptor.decide(3);
    assert_eq!((acceptor.promised(), acceptor.largest_counter()), (None, 3));
    acceptor.prepare(4, &ballot(7, "b"));
    assert_eq!(acceptor.promised(), Some(&ballot(7, "b")));
    assert_eq!(acceptor.largest_counter(), 7);
    acceptor.accept(4, &ballot(9, "a"), &id("a"));
    assert_eq!(acceptor.promised(), Some(&ballot(9, "a")));
    assert_eq!(acceptor.largest_counter(), 9);
}

#[test]
fn rule_2_votes_on_a_ballot_that_is_over_change_nothing() {
    let mut proposer = proposer();
    let promise = Vote::Promised(Some(accepted(7, "b", "b")));
    for voter in ["b", "c", "d", "e"] {
        let tally = proposer.count(&id(voter), 1, &ballot(7, "a"), &promise);
        assert_eq!(tally, Tally::Pending);
        let tally = proposer.count(&id(voter), 2, &ballot(1, "a"), &promise);
        assert_eq!(tally, Tally::Pending);
    }
    assert_eq!(
        (proposer.granted().count(), proposer.candidate()),
        (0, &id("a"))
    );
}

#[test]
fn rule_3_a_new_leader_clears_its_version_and_those_before_it_alone() {
    let mut acceptor = Acceptor::default();
    acceptor.accept(1, &ballot(1, "a"), &id("a"));
    assert!(acceptor.decide(1));
    assert_eq!((acceptor.promised(), acceptor.accepted()), (None, None));
    acceptor.accept(2, &ballot(1, "b"), &id("b"));
    let before = acceptor.clone();
    assert!(!acceptor.decide(1));
    assert!(!acceptor.decide(0));
    assert_eq!(acceptor, before);
    assert_eq!(acceptor.prepare(1, &ballot(9, "c")), None);
}

/// No function forgets by time: the state of an undecided version ends only with its decision.
#[test]
fn rule_4_the_state_of_an_undecided_version_outlives_time_and_restarts() {
    let mut acceptor = Acceptor::default();
    acceptor.decide(4);
    acceptor.accept(5, &ballot(3, "a"), &id("c"));
    let kept = postcard::to_allocvec(&acceptor).expect("it encodes");
    let mut restarted: Acceptor = postcard::from_bytes(&kept).expect("it decodes");
    assert_eq!(restarted, acceptor);
    assert_eq!(
        restarted.prepare(5, &ballot(2, "b")),
        Some(Vote::Refused(ballot(3, "a")))
    );
    assert_eq!(
        restarted.prepare(5, &ballot(4, "b")),
        Some(Vote::Promised(Some(accepted(3, "a", "c"))))
    );
}

#[test]
fn a_voter_refuses_smaller_ballots_than_it_promised() {
    let mut acceptor = Acceptor::default();
    let promised = ballot(2, "b");
    assert_eq!(acceptor.prepare(1, &promised), Some(Vote::Promised(None)));
    assert_eq!(acceptor.prepare(1, &promised), Some(Vote::Promised(None)));
    let refused = Some(Vote::Refused(promised.clone()));
    assert_eq!(acceptor.prepare(1, &ballot(2, "a")), refused);
    assert_eq!(acceptor.accept(1, &ballot(2, "a"), &id("a")), refused);
    assert_eq!(
        acceptor.accept(1, &promised, &id("b")),
        Some(Vote::Accepted)
    );
    assert_eq!(
        acceptor.accept(1, &ballot(3, "a"), &id("c")),
        Some(Vote::Accepted)
    );
    assert_eq!(acceptor.accepted(), Some(&accepted(3, "a", "c")));
}

#[test]
fn a_voter_votes_on_the_version_after_the_last_leader_alone() {
    let mut acceptor = Acceptor::default();
    acceptor.decide(3);
    for version in [0, 3, 5] {
        assert_eq!(acceptor.prepare(version, &ballot(1, "a")), None);
        assert_eq!(acceptor.accept(version, &ballot(1, "a"), &id("a")), None);
    }
    assert_eq!(
        acceptor.prepare(4, &ballot(1, "a")),
        Some(Vote::Promised(None))
    );
}

#[test]
fn the_candidate_of_the_highest_accepted_ballot_is_proposed() {
    let mut proposer = proposer();
    let own = ballot(1, "a");
    let votes = [
        ("b", Some(accepted(0, "d", "d"))),
        ("c", Some(accepted(0, "c", "e"))),
    ];
    for (voter, accepted) in votes {
        proposer.count(&id(voter), 1, &own, &Vote::Promised(accepted));
    }
    // The last answer names no accepted candidate.
    let tally = proposer.count(&id("d"), 1, &own, &Vote::Promised(None));
    assert_eq!(tally, Tally::Propose(id("d")));
    assert_eq!(proposer.stage(), Stage::Formal);
}

#[test]
fn t23_two_votes_of_one_voter_count_once() {
    let mut pre = proposer();
    let own = ballot(1, "a");
    let tally = |tallies: [Tally; 4]| tallies.iter().all(|tally| *tally == Tally::Pending);
    assert!(tally(["a", "b", "b", "a"].map(|voter| {
        pre.count(&id(voter), 1, &own, &Vote::Promised(None))
    })));
    let mut formal = formal();
    assert!(tally(["a", "b", "b", "a"].map(|voter| {
        formal.count(&id(voter), 1, &own, &Vote::Accepted)
    })));
    let tally = formal.count(&id("c"), 1, &own, &Vote::Accepted);
    assert_eq!(tally, Tally::Chosen(id("a")));
}

#[test]
fn votes_of_the_other_stage_and_of_strangers_count_nothing() {
    let own = ballot(1, "a");
    let mut pre = proposer();
    let mut formal = formal();
    for voter in ["a", "b", "c", "d", "e", "x", "y", "z"] {
        pre.count(&id(voter), 1, &own, &Vote::Accepted);
        formal.count(&id(voter), 1, &own, &Vote::Promised(None));
    }
    for voter in ["x", "y", "z"] {
        pre.count(&id(voter), 1, &own, &Vote::Promised(None));
        formal.count(&id(voter), 1, &own, &Vote::Accepted);
    }
    assert_eq!((pre.granted().count(), pre.stage()), (0, Stage::Pre));
    assert_eq!(
        (formal.granted().count(), formal.stage()),
        (0, Stage::Formal)
    );
}

#[test]
fn a_ballot_is_lost_when_no_majority_is_left() {
    let own = ballot(1, "a");
    let mut proposer = proposer();
    let refused = Vote::Refused(ballot(2, "b"));
    for voter in ["b", "c", "c"] {
        let tally = proposer.count(&id(voter), 1, &own, &refused);
        assert_eq!(tally, Tally::Pending);
    }
    let tally = proposer.count(&id("d"), 1, &own, &refused);
    assert_eq!(tally, Tally::Lost);
}
