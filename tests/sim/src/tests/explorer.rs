//! Every history of three nodes, within bounds.
//!
//! The specification gives figures of a separate model of the rules: 47,416 states for three terms, 49,899 once an assignment
//! takes the vote, 354,750 for two terms and two `SetLeader` calls, 4,182,481 for three terms and one. The figures here are of
//! the production rules, and differ because the states do. A node here also knows its round, its electorate and its voters. Sent
//! messages are a set and can arrive any number of times, where that model had copies under way. `SetLeader` calls come on top of
//! the terms. A leader may also campaign in place above any received record. And messages that can never matter again are
//! forgotten, which has the largest effect ([`forgotten_state_does_not_matter`] shows that it loses nothing).

use std::time::Instant;

use crate::explorer::{Found, Scope, explore};

/// Explores all of it without a violation.
fn exhaust(name: &str, scope: &Scope) -> Found {
    let began = Instant::now();
    let found = explore(scope);
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1} s",
        found.states,
        found.steps,
        found.depth,
        began.elapsed().as_secs_f64()
    );
    if let Some(broken) = &found.violation {
        panic!("{name}: {broken}");
    }
    found
}

#[test]
fn three_terms_have_one_elected_leader_each() {
    let scope = Scope {
        refusals: true,
        in_place: true,
        ..Scope::of_three(3, 0)
    };
    let found = exhaust("3 terms", &scope);
    assert!(found.states > 50_000 && found.depth > 10);
}

#[test]
fn four_terms_have_one_elected_leader_each() {
    let scope = Scope {
        in_place: true,
        ..Scope::of_three(4, 0)
    };
    exhaust("4 terms", &scope);
}

#[test]
fn two_set_leaders_in_two_terms_keep_the_one_order() {
    let scope = Scope {
        in_place: true,
        ..Scope::of_three(2, 2)
    };
    let found = exhaust("2 terms and 2 SetLeaders", &scope);
    assert!(found.states > 500_000);
}

#[test]
fn a_set_leader_in_three_terms_keeps_the_one_order() {
    let scope = Scope {
        in_place: true,
        ..Scope::of_three(3, 1)
    };
    exhaust("3 terms and 1 SetLeader", &scope);
}

#[test]
fn restarts_with_a_disk_change_nothing() {
    let scope = Scope {
        restarts: 2,
        in_place: true,
        ..Scope::of_three(2, 0)
    };
    exhaust("2 terms and 2 restarts", &scope);
    let scope = Scope {
        restarts: 1,
        ..Scope::of_three(2, 1)
    };
    exhaust("2 terms, 1 SetLeader and 1 restart", &scope);
}

/// Three voters, and a fourth node that campaigns as if eligible and votes for all: no voter accepts its messages.
#[test]
fn an_outsider_that_campaigns_and_a_restart_change_nothing() {
    let scope = Scope {
        nodes: 4,
        restarts: 1,
        ..Scope::of_three(2, 0)
    };
    exhaust("2 terms, an outsider and 1 restart", &scope);
    let counts = Scope {
        outsiders_count: true,
        ..scope
    };
    let broken = explore(&counts).violation.expect("it is harmless");
    println!("where it counts: {broken}");
    assert_eq!(broken.property, "P5");
}

/// Explores rooms with and without their past: the nodes get into the same situations.
#[test]
fn forgotten_state_does_not_matter() {
    for (terms, set_leaders, in_place) in [(2, 0, true), (1, 1, true), (3, 0, false)] {
        let forgetful = Scope {
            in_place,
            ..Scope::of_three(terms, set_leaders)
        };
        let remembering = Scope {
            forgets: false,
            ..forgetful.clone()
        };
        let name = format!("{terms} terms and {set_leaders} SetLeaders");
        let short = exhaust(&format!("{name}, forgetful"), &forgetful);
        let long = exhaust(&format!("{name}, remembering"), &remembering);
        assert_eq!(short.situations, long.situations);
        assert!(short.states < long.states);
    }
}
