//! The need for each guard of safety: the explorer with it and without it (C6).

use room_core::election::guards::Guards;

use crate::explorer::{Scope, explore};

const ALL: Guards = Guards::ALL;

/// `property` holds in all of `scope` with the guards of `with`, and fails with those of `without`; the shortest way there has
/// `steps` steps.
fn is_needed(
    property: &'static str,
    scope: &Scope,
    (with, without): (Guards, Guards),
    steps: usize,
) {
    let look = |guards| {
        explore(&Scope {
            guards,
            only: Some(property),
            ..scope.clone()
        })
    };
    let kept = look(with);
    if let Some(broken) = &kept.violation {
        panic!("with the guard: {broken}");
    }
    let broken = look(without).violation.expect("nothing falls without it");
    println!("{} states with the guard; without it {broken}", kept.states);
    assert_eq!((broken.property, broken.trace.len()), (property, steps));
}

/// Links that are lost on the way, and majorities of the remaining ones.
fn dynamic(nodes: usize) -> Scope {
    Scope {
        nodes,
        voters: None,
        losses: 2,
        ..Scope::of_three(1, 0)
    }
}

/// X1: of four nodes two count each other out, and both lead with two votes.
#[test]
fn g5_with_an_electorate_that_shrinks_too_few_elect() {
    let off = Guards {
        frozen_electorate: false,
        ..ALL
    };
    is_needed("P5", &dynamic(4), (ALL, off), 4);
}

/// X5a with a disk: an answer to an earlier incarnation counts for this one.
#[test]
fn g9_with_answers_to_another_incarnation_a_vote_counts_in_a_wrong_term() {
    let off = Guards {
        restart_grace: false,
        ..ALL
    };
    let scope = Scope {
        restarts: 1,
        ..Scope::of_three(2, 0)
    };
    is_needed("P5", &scope, (ALL, off), 5);
}

/// X1: two parts elect in one term, and a node with links to both follows the last one.
#[test]
fn g10_without_an_order_among_leaders_a_follower_goes_back() {
    let off = Guards {
        follower_order: false,
        ..ALL
    };
    is_needed("P3", &dynamic(3), (ALL, off), 6);
}

/// X4: an old assignment arrives late (g); two share a term (a); one shares it with an elected leader (b).
#[test]
fn g12_without_one_order_assignments_undo_each_other() {
    let off = Guards {
        record_order: false,
        ..ALL
    };
    is_needed("P3", &Scope::of_three(2, 1), (ALL, off), 3);
    is_needed("C3", &Scope::of_three(1, 2), (ALL, off), 2);
    let one_call = Scope::of_three(1, 1);
    is_needed("C3", &one_call, (ALL, off), 4);
}

/// X4c. If every assignment opens an epoch (G12) no node can campaign in its term, and the vote that it takes is a second
/// safeguard. Without epochs it is the only one.
#[test]
fn an_assignment_that_gives_the_vote_back_elects_two_leaders() {
    let no_epochs = Guards {
        record_order: false,
        ..ALL
    };
    let off = Guards {
        assignment_takes_vote: false,
        ..no_epochs
    };
    let scope = Scope::of_three(1, 1);
    is_needed("P4", &scope, (no_epochs, off), 3);
    is_needed("P1", &scope, (no_epochs, off), 8);
    let covered = Scope {
        guards: Guards {
            assignment_takes_vote: false,
            ..ALL
        },
        ..Scope::of_three(2, 1)
    };
    assert!(explore(&covered).violation.is_none());
}

/// X5a: a voter, a candidate or a leader restarts without its vote.
#[test]
fn persistence_without_a_disk_a_restart_elects_two_leaders() {
    let off = Guards {
        persistence: false,
        ..ALL
    };
    let scope = Scope {
        restarts: 1,
        ..Scope::of_three(1, 0)
    };
    is_needed("P1", &scope, (ALL, off), 7);
}
