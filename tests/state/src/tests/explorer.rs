//! Every history of three members, within bounds (docs/state.md has the figures). The larger ones are behind `make sim`.

use std::time::Instant;

use room_state::laboratory::Rule;

use crate::explorer::{Found, Scope, explore};

/// A room with a leader, whose opening and one action are confirmed everywhere.
fn led() -> Scope {
    Scope {
        is_led: true,
        ..Scope::default()
    }
}

/// Explores all of it without a violation.
fn exhaust(name: &str, scope: &Scope) -> Found {
    let began = Instant::now();
    let found = explore(scope);
    println!(
        "{name}: {} states, {} members, depth {}, {:.1} s",
        found.states,
        found.members,
        found.depth,
        began.elapsed().as_secs_f64()
    );
    if let Some(broken) = &found.violation {
        panic!("{name}: {broken}");
    }
    assert!(found.is_all, "{name}: states were left out");
    found
}

/// Without a rule the search ends at a broken promise.
fn finds(rule: Rule, scope: Scope) {
    let began = Instant::now();
    let found = explore(&Scope {
        broken: [rule].into(),
        ..scope
    });
    let broken = found.violation.as_ref();
    let broken = broken.unwrap_or_else(|| panic!("{} states need no {rule:?}", found.states));
    println!(
        "without {rule:?}: {} states, {:.1} s, {} steps: {}",
        found.states,
        began.elapsed().as_secs_f64(),
        broken.trace.len(),
        broken.text
    );
}

#[test]
fn openings_and_transfers_of_dynamic_rooms_keep_their_promises() {
    let first = Scope {
        leaderships: 1,
        ..Scope::default()
    };
    let found = exhaust("first opening", &first);
    assert!(found.states > 1000 && found.depth > 20);
    let one = Scope {
        leaderships: 1,
        ..led()
    };
    let two = Scope {
        leaderships: 2,
        ..led()
    };
    let found = exhaust("two leaders", &two);
    assert!(found.states > 50_000 && found.depth > 30);
    let scopes = [
        (
            "two leaders, frames of one entry",
            Scope {
                entries_of_a_frame: Some(1),
                ..two.clone()
            },
        ),
        (
            "two leaders and a lost link",
            Scope {
                cuts: 1,
                ..two.clone()
            },
        ),
        (
            "a leader and an action",
            Scope {
                submits: 1,
                ..one.clone()
            },
        ),
        (
            "a leader and a link that comes back",
            Scope {
                cuts: 1,
                links: 1,
                ..one.clone()
            },
        ),
        (
            "a leader and a process that starts anew",
            Scope {
                restarts: 1,
                links: 1,
                ..one.clone()
            },
        ),
        (
            "a newcomer",
            Scope {
                strangers: 1,
                links: 1,
                ..one.clone()
            },
        ),
        (
            "a leader and time",
            Scope {
                ticks: 2,
                ..one.clone()
            },
        ),
    ];
    for (name, scope) in &scopes {
        exhaust(name, scope);
    }
}

#[test]
fn a_leader_that_leaves_keeps_the_promises() {
    let scope = Scope {
        leaderships: 1,
        submits: 1,
        leaves: 1,
        ..led()
    };
    exhaust("a departure, a leader and an action", &scope);
}

#[test]
fn openings_of_static_rooms_keep_their_promises() {
    let voters = Scope {
        is_static: true,
        ..led()
    };
    let scopes = [
        (
            "two leaders of voters",
            Scope {
                leaderships: 2,
                ..voters.clone()
            },
        ),
        (
            "a leader of voters and an action",
            Scope {
                leaderships: 1,
                submits: 1,
                ..voters.clone()
            },
        ),
        (
            "two leaders of voters, one of which starts anew",
            Scope {
                leaderships: 2,
                restarts: 1,
                ..voters.clone()
            },
        ),
        (
            "a leader of voters, one of which starts anew and comes back",
            Scope {
                leaderships: 1,
                restarts: 1,
                links: 1,
                ..voters.clone()
            },
        ),
    ];
    for (name, scope) in &scopes {
        exhaust(name, scope);
    }
}

#[test]
#[ignore = "minutes"]
fn larger_scopes_keep_their_promises() {
    let newcomer = Scope {
        leaderships: 1,
        strangers: 1,
        links: 2,
        ..led()
    };
    exhaust("a newcomer with two links", &newcomer);
    exhaust("voters, an action and a new start", &anew());
}

/// Voters, one of which starts anew, another leader and an action.
fn anew() -> Scope {
    Scope {
        is_static: true,
        leaderships: 1,
        submits: 1,
        restarts: 1,
        links: 1,
        ..led()
    }
}

#[test]
fn it_finds_what_breaks_without_a_rule() {
    let one = Scope {
        leaderships: 1,
        submits: 1,
        ..led()
    };
    let two = Scope {
        leaderships: 2,
        ..led()
    };
    finds(Rule::Promise, two.clone());
    finds(
        Rule::Staging,
        Scope {
            entries_of_a_frame: Some(1),
            ..two
        },
    );
    finds(Rule::Rows, one.clone());
    finds(Rule::LeaverOrdersNothing, Scope { leaves: 1, ..one });
    let cut = Scope {
        submits: 0,
        cuts: 1,
        ..anew()
    };
    finds(Rule::Recovery, cut.clone());
    finds(Rule::PromiseOnDisk, cut);
}
