//! Every history of two proposers and three voters, within bounds (T20).

use std::time::Instant;

use crate::explorer::ballots::{Bug, Found, Scope, explore};

/// What the strategy must withstand: two ballots of each proposer, and one of each fault.
fn scope() -> Scope {
    Scope {
        ballots: 2,
        versions: 2,
        restarts: 1,
        expiries: 1,
        resets: 1,
        bug: None,
    }
}

fn explored(name: &str, scope: &Scope) -> Found {
    let began = Instant::now();
    let found = explore(scope);
    println!(
        "{name}: {} states, {:.1} s",
        found.states,
        began.elapsed().as_secs_f64()
    );
    found
}

#[test]
fn t20_two_proposers_choose_one_candidate_per_version() {
    let found = explored("two ballots each", &scope());
    if let Some(broken) = &found.violation {
        panic!("{broken}");
    }
    assert_eq!(found.chosen, 2, "leaders of both versions were chosen");
    assert!(found.states > 50_000);
}

#[test]
fn t20_each_bug_of_the_votes_is_found() {
    let bugs = [
        Bug::RestartForgets,
        Bug::ExpiryForgets,
        Bug::ResetForgets,
        Bug::LeaderClearsLater,
        Bug::LastPreVoteDecides,
        Bug::EarlierVotesCount,
        Bug::SecondVotesCount,
    ];
    for bug in bugs {
        let found = explored(
            &format!("{bug:?}"),
            &Scope {
                bug: Some(bug),
                ..scope()
            },
        );
        let broken = found
            .violation
            .unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{broken}");
    }
}
