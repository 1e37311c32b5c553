//! Every history of two proposers and three voters, within bounds (T20).

use std::time::Instant;

use crate::explorer::ballots::{Bug, Found, Scope, explore};

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

/// Explores all of it without a violation. Where votes are not forgotten a restart, an expiry and a reset are one: they end
/// an open round and nothing else.
fn exhaust(ballots: u8, versions: u64, restarts: u8) -> usize {
    let name = format!("{ballots} ballots each, {versions} versions, {restarts} interruptions");
    let found = explored(
        &name,
        &Scope {
            ballots,
            versions,
            restarts,
            expiries: 0,
            resets: 0,
            bug: None,
        },
    );
    if let Some(broken) = &found.violation {
        panic!("{name}: {broken}");
    }
    assert_eq!(found.chosen, versions as usize, "all of them had a leader");
    found.states
}

#[test]
fn t20_two_proposers_choose_one_candidate_per_version() {
    assert!(exhaust(2, 1, 3) > 10_000);
    assert!(exhaust(1, 2, 3) > 1_000);
}

#[test]
fn t20_each_bug_of_the_votes_is_found() {
    for (bug, ballots, versions) in [
        (Bug::RestartForgets, 1, 1),
        (Bug::ExpiryForgets, 1, 1),
        (Bug::ResetForgets, 1, 1),
        (Bug::LastPreVoteDecides, 1, 1),
        (Bug::EarlierVotesCount, 2, 1),
        (Bug::SecondVotesCount, 1, 1),
    ] {
        let scope = Scope {
            ballots,
            versions,
            restarts: u8::from(bug == Bug::RestartForgets),
            expiries: u8::from(bug == Bug::ExpiryForgets),
            resets: u8::from(bug == Bug::ResetForgets),
            bug: Some(bug),
        };
        let found = explored(&format!("{bug:?}"), &scope);
        let broken = found.violation;
        let broken = broken.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{broken}");
    }
}
