//! Wrong histories: the checker must report each, or the runs prove nothing.

use room_core::election::LeaderReason;
use room_core::id::Incarnation;
use room_core::node::{Event, LeaderChange};
use room_core::wire::{Envelope, Message, Opaque};

use super::*;

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

fn seen(leader: Option<&PeerId>) -> GossipSeen<'_> {
    let leads = leader == Some(&id("m"));
    GossipSeen {
        leader,
        leads,
        machine_leads: leads,
        election_is_over: false,
        may_lead: true,
        may_propose: true,
        is_host: false,
        yields: false,
        leader_may_lead: true,
        over: false,
        remembered: 0,
        members: None,
        members_count: 2,
    }
}

/// `m`, linked with `a` and `z`.
fn checker() -> Checker {
    let mut checker = Checker::default();
    checker.born(0, &id("m"), None);
    let joined = ["a", "z"].map(|peer| Output::Event(Event::Joined(id(peer))));
    property(&mut checker, Cause::Other, &joined, &seen(None), "");
    checker
}

/// The checker of a leading `m`.
fn leading() -> Checker {
    let mut checker = checker();
    elect(&mut checker, Cause::Tick, "");
    checker
}

/// `m` leads after that input, and the time of its election was over.
#[track_caller]
fn elect(checker: &mut Checker, cause: Cause, broken: &str) {
    let m = id("m");
    let elected = GossipSeen {
        election_is_over: true,
        ..seen(Some(&m))
    };
    property(checker, cause, &[reported("m")], &elected, broken);
}

fn reported(leader: &str) -> Output {
    Output::Event(Event::LeaderChanged(LeaderChange {
        new: (!leader.is_empty()).then(|| id(leader)),
        reason: LeaderReason::Elected,
        ..LeaderChange::default()
    }))
}

fn claim(to: &str, sequence: u64, declares: bool) -> Output {
    Output::Transmit {
        to: id(to),
        envelope: Envelope {
            incarnation: Incarnation {
                started_us: 1,
                random: 1,
            },
            message: Message::Election(Opaque::of(&Claimed { sequence, declares })),
        },
        urgent: true,
    }
}

#[track_caller]
fn property(
    checker: &mut Checker,
    cause: Cause,
    outputs: &[Output],
    seen: &GossipSeen<'_>,
    broken: &str,
) {
    let found = checker.observe_gossip(0, &cause, outputs, seen);
    let found = found.err();
    let name = found.as_ref().map_or("", |violation| violation.property);
    assert_eq!(name, broken, "{found:?}");
}

#[test]
fn leadership_events_that_do_not_alternate_are_reported() {
    let m = id("m");
    property(
        &mut leading(),
        Cause::Other,
        &[reported("m")],
        &seen(Some(&m)),
        "P8",
    );
    let lost = seen(None);
    property(&mut leading(), Cause::Yield, &[], &lost, "P8");
    for (leads, machine_leads) in [(false, true), (true, false), (false, false)] {
        let torn = GossipSeen {
            leads,
            machine_leads,
            ..seen(Some(&m))
        };
        property(&mut leading(), Cause::Yield, &[], &torn, "alternate");
    }
    property(&mut leading(), Cause::Yield, &[reported("")], &lost, "");
}

#[test]
fn a_leader_that_is_no_member_is_reported() {
    let (a, x) = (id("a"), id("x"));
    property(
        &mut checker(),
        Cause::Tick,
        &[reported("a")],
        &seen(Some(&a)),
        "",
    );
    property(
        &mut checker(),
        Cause::Tick,
        &[reported("x")],
        &seen(Some(&x)),
        "gone",
    );
    let mut checker = checker();
    property(
        &mut checker,
        Cause::Tick,
        &[reported("a")],
        &seen(Some(&a)),
        "",
    );
    let lost = [Output::Event(Event::Reconnecting(id("a")))];
    let seen = GossipSeen {
        members_count: 1,
        ..seen(Some(&a))
    };
    property(&mut checker, Cause::Tick, &lost, &seen, "gone");
}

#[test]
fn a_shown_member_without_an_event_is_reported() {
    let more = GossipSeen {
        members_count: 3,
        ..seen(None)
    };
    property(&mut checker(), Cause::Other, &[], &more, "P8");
}

#[test]
fn a_leader_that_may_not_lead_is_reported() {
    let (a, m) = (id("a"), id("m"));
    let observer = GossipSeen {
        leader_may_lead: false,
        ..seen(Some(&a))
    };
    property(
        &mut checker(),
        Cause::Declared(id("a")),
        &[reported("a")],
        &observer,
        "eligible",
    );
    let oneself = GossipSeen {
        may_lead: false,
        ..seen(Some(&m))
    };
    property(&mut leading(), Cause::Other, &[], &oneself, "eligible");
}

#[test]
fn a_leader_without_an_election_is_reported() {
    let m = id("m");
    let leads = seen(Some(&m));
    let causes = [Cause::Tick, Cause::Linked, Cause::Other];
    for cause in causes.into_iter().chain([Cause::Declared(id("a"))]) {
        property(&mut checker(), cause, &[reported("m")], &leads, "elected");
    }
    elect(&mut checker(), Cause::Declared(id("a")), "elected");
}

#[test]
fn a_late_timer_may_find_its_election_won() {
    for cause in [Cause::Tick, Cause::Linked, Cause::Other] {
        elect(&mut checker(), cause, "");
    }
}

#[test]
fn a_leader_that_stops_for_nothing_is_reported() {
    let z = id("z");
    let other = seen(Some(&z));
    let declared = Cause::Declared(id("z"));
    property(&mut leading(), declared, &[reported("z")], &other, "stays");
    property(
        &mut leading(),
        Cause::Tick,
        &[reported("")],
        &seen(None),
        "stays",
    );
    let lower = Cause::Declared(id("a"));
    property(&mut leading(), lower, &[reported("")], &seen(None), "");
    let over = GossipSeen {
        over: true,
        ..seen(None)
    };
    property(&mut leading(), Cause::Other, &[reported("")], &over, "");
}

#[test]
fn claims_of_those_who_may_not_make_them_are_reported() {
    let m = id("m");
    let leads = seen(Some(&m));
    property(
        &mut leading(),
        Cause::Tick,
        &[claim("a", 1, true)],
        &leads,
        "",
    );
    let (proposal, declaration) = (claim("a", 1, false), claim("a", 1, true));
    property(
        &mut leading(),
        Cause::Tick,
        std::slice::from_ref(&proposal),
        &leads,
        "claim",
    );
    property(
        &mut checker(),
        Cause::Tick,
        &[declaration],
        &seen(None),
        "claim",
    );
    for (may_lead, may_propose) in [(false, true), (true, false)] {
        let observer = GossipSeen {
            may_lead,
            may_propose,
            ..seen(None)
        };
        property(
            &mut checker(),
            Cause::Tick,
            std::slice::from_ref(&proposal),
            &observer,
            "claim",
        );
    }
}

#[test]
fn too_many_claims_and_old_ones_are_reported() {
    let m = id("m");
    let leads = seen(Some(&m));
    let twice = [
        claim("a", 1, true),
        claim("z", 1, true),
        claim("a", 2, true),
    ];
    property(&mut leading(), Cause::Tick, &twice, &leads, "flood");
    let mut checker = leading();
    property(
        &mut checker,
        Cause::Tick,
        &[claim("a", 2, true)],
        &leads,
        "",
    );
    property(
        &mut checker,
        Cause::Tick,
        &[claim("z", 2, true)],
        &leads,
        "order",
    );
}

#[test]
fn a_store_that_grows_beyond_the_members_is_reported() {
    let full = GossipSeen {
        remembered: 3,
        ..seen(None)
    };
    property(&mut checker(), Cause::Other, &[], &full, "store");
}
