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

/// Explores all of it without a violation. If votes are not forgotten, a restart, an expiry and a reset are equivalent: they end
/// an open round and nothing else.
fn exhaust(ballots: u8, versions: u64, restarts: u8, losses: u8) -> usize {
    let name = format!(
        "{ballots} ballots each, {versions} versions, {restarts} interruptions, {losses} lost files"
    );
    let found = explored(
        &name,
        &Scope {
            ballots,
            versions,
            restarts,
            expiries: 0,
            resets: 0,
            losses,
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
    assert!(exhaust(2, 1, 3, 0) > 10_000);
    assert!(exhaust(1, 2, 3, 0) > 1_000);
}

#[test]
fn t20_voters_that_recover_from_lost_files_choose_no_second_candidate() {
    assert!(exhaust(1, 1, 1, 1) > 100_000);
    assert!(exhaust(1, 2, 0, 1) > 100_000);
}

#[test]
fn t20_each_bug_of_the_votes_is_found() {
    for (bug, ballots, losses) in [
        (Bug::RestartForgets, 1, 0),
        (Bug::ExpiryForgets, 1, 0),
        (Bug::ResetForgets, 1, 0),
        (Bug::LastPreVoteDecides, 1, 0),
        (Bug::EarlierVotesCount, 2, 0),
        (Bug::SecondVotesCount, 1, 0),
        (Bug::LossUnnoticed, 1, 1),
        (Bug::RecoveryForgetsPromised, 1, 1),
        (Bug::RecoveryForgetsAccepted, 1, 1),
        (Bug::RecoversAfterOne, 1, 1),
        (Bug::ForgetfulReports, 1, 2),
    ] {
        let scope = Scope {
            ballots,
            versions: 1,
            restarts: u8::from(bug == Bug::RestartForgets),
            expiries: u8::from(bug == Bug::ExpiryForgets),
            resets: u8::from(bug == Bug::ResetForgets),
            losses,
            bug: Some(bug),
        };
        let found = explored(&format!("{bug:?}"), &scope);
        let broken = found.violation;
        let broken = broken.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{broken}");
    }
}
