//! Wrong histories: each must be reported, or the runs prove nothing.

use meta_mystia_network::core::election::LeaderReason;
use meta_mystia_network::core::election::record::Epoch;
use meta_mystia_network::core::id::Incarnation;
use meta_mystia_network::core::wire::Envelope;

use super::*;

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

fn stamp(term: u64) -> Stamp {
    Stamp {
        epoch: Epoch::default(),
        term,
    }
}

fn record(term: u64, leader: &str) -> Record {
    Record {
        stamp: stamp(term),
        leader: Some(id(leader)),
        assigned: false,
    }
}

fn seen<'a>(record: &'a Record, leader: Option<&'a PeerId>) -> Seen<'a> {
    Seen {
        record,
        leader,
        role: Role::Follower,
        voted_for: None,
        leads_under: None,
        campaign: None,
        won: None,
        members: Some(Vec::new()),
        members_count: 0,
        eligible: Vec::new(),
        may_lead: true,
    }
}

fn checker() -> Checker {
    let mut checker = Checker::default();
    checker.born(0, &id("m"), None);
    checker
}

fn shown(leader: &str) -> Output {
    Output::Event(Event::LeaderChanged {
        leader: Some(id(leader)),
        reason: LeaderReason::Elected,
    })
}

fn joined(peer: &str) -> Output {
    Output::Event(Event::Joined(id(peer)))
}

fn property(checked: Checked) -> &'static str {
    checked.err().map_or("", |violation| violation.property)
}

fn vote(term: u64, candidate: &str) -> Output {
    Output::Transmit {
        to: id(candidate),
        envelope: Envelope {
            incarnation: Incarnation {
                started_us: 1,
                random: 1,
            },
            stamp: stamp(term),
            message: Message::Election(ElectionMessage::VoteResponse {
                round: 1,
                voter: id("m"),
                granted: true,
                record: Record::undecided(stamp(term)),
                live: None,
            }),
        },
    }
}

#[test]
fn going_back_to_a_smaller_leader_of_the_term_is_reported() {
    let mut checker = checker();
    let (larger, smaller) = (id("z"), id("a"));
    let first = record(1, "z");
    assert_eq!(
        checker.observe(0, &[shown("z")], &seen(&first, Some(&larger))),
        Ok(())
    );
    let mut life = checker.lives.remove(&0).expect("born");
    let back = record(1, "a");
    assert_eq!(property(life.follows(&seen(&back, Some(&smaller)))), "P2");
    let next_term = record(2, "a");
    assert_eq!(life.follows(&seen(&next_term, Some(&smaller))), Ok(()));
}

#[test]
fn a_record_that_falls_is_reported() {
    let mut checker = checker();
    let first = record(1, "a");
    assert_eq!(checker.observe(0, &[], &seen(&first, None)), Ok(()));
    let high = record(2, "a");
    assert_eq!(checker.observe(0, &[], &seen(&high, None)), Ok(()));
    let low = record(1, "z");
    assert_eq!(property(checker.observe(0, &[], &seen(&low, None))), "P3");
}

#[test]
fn two_votes_in_a_term_are_reported() {
    let mut checker = checker();
    let undecided = Record::undecided(stamp(1));
    let both = ["a", "b"].map(id);
    let mut now = seen(&undecided, None);
    now.members = Some(both.iter().collect());
    now.members_count = 2;
    let outputs = [joined("a"), joined("b"), vote(1, "a"), vote(1, "a")];
    assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
    assert_eq!(property(checker.observe(0, &[vote(1, "b")], &now)), "P4");
}

#[test]
fn a_vote_beside_the_own_candidacy_is_reported() {
    let mut checker = checker();
    let (undecided, me) = (Record::undecided(stamp(1)), id("m"));
    let mut now = seen(&undecided, None);
    now.voted_for = Some(&me);
    assert_eq!(checker.observe(0, &[], &now), Ok(()));
    let outputs = [joined("a"), vote(1, "a")];
    assert_eq!(property(checker.observe(0, &outputs, &now)), "P4");
}

fn lead<'a>(record: &'a Record, me: &'a PeerId, won: Option<&'a Campaign>) -> Seen<'a> {
    Seen {
        role: Role::Leader,
        leads_under: Some(record),
        won,
        ..seen(record, Some(me))
    }
}

fn campaign(electorate: &[&str], granted: &[&str]) -> Campaign {
    let set = |names: &[&str]| names.iter().map(|name| id(name)).collect();
    Campaign {
        round: 1,
        electorate: set(electorate),
        granted: set(granted),
        refused: BTreeSet::new(),
        needed: votes_needed(QuorumPolicy::Dynamic, electorate.len()),
    }
}

#[test]
fn a_leader_without_its_majority_is_reported() {
    let (me, mine) = (id("m"), record(1, "m"));
    let outputs = [shown("m")];
    assert_eq!(
        property(checker().observe(0, &outputs, &lead(&mine, &me, None))),
        "P5"
    );
    let short = campaign(&["a", "b", "m"], &["m"]);
    assert_eq!(
        property(checker().observe(0, &outputs, &lead(&mine, &me, Some(&short)))),
        "P5"
    );
    let invented = campaign(&["a", "b", "m"], &["a", "m"]);
    assert_eq!(
        property(checker().observe(0, &outputs, &lead(&mine, &me, Some(&invented)))),
        "P5"
    );
    let alone = campaign(&["m"], &["m"]);
    assert_eq!(
        checker().observe(0, &outputs, &lead(&mine, &me, Some(&alone))),
        Ok(())
    );
}

#[test]
fn an_observer_that_leads_is_reported() {
    let (me, mine, alone) = (id("m"), record(1, "m"), campaign(&["m"], &["m"]));
    let mut now = lead(&mine, &me, Some(&alone));
    now.may_lead = false;
    assert_eq!(property(checker().observe(0, &[shown("m")], &now)), "P6");
}

#[test]
fn an_observer_that_votes_is_reported() {
    let (mut checker, undecided) = (checker(), Record::undecided(stamp(1)));
    let candidate = id("a");
    let mut now = seen(&undecided, None);
    now.members = Some(vec![&candidate]);
    now.members_count = 1;
    now.may_lead = false;
    let outputs = [joined("a"), vote(1, "a")];
    assert_eq!(property(checker.observe(0, &outputs, &now)), "P6");
}

#[test]
fn a_kicked_peer_that_is_linked_again_is_reported() {
    let none = Record::default();
    let left = Output::Event(Event::Left {
        peer: id("a"),
        why: LeftReason::Kicked,
        code: 0,
        bytes: Vec::new(),
    });
    let outputs = [joined("a"), left, joined("a")];
    assert_eq!(
        property(checker().observe(0, &outputs, &seen(&none, None))),
        "kick"
    );
}

#[test]
fn leader_events_that_say_nothing_or_something_else_are_reported() {
    let (other, none) = (id("a"), Record::default());
    let twice = [shown("a"), shown("a")];
    assert_eq!(
        property(checker().observe(0, &twice, &seen(&none, Some(&other)))),
        "P8"
    );
    assert_eq!(
        property(checker().observe(0, &[], &seen(&none, Some(&other)))),
        "P8"
    );
    assert_eq!(
        property(checker().observe(0, &[shown("a")], &seen(&none, None))),
        "P8"
    );
}

#[test]
fn a_leader_that_said_farewell_is_reported() {
    let mut checker = checker();
    checker.born(1, &id("a"), None);
    let (gone, none) = (id("a"), Record::default());
    let left = Output::Event(Event::Left {
        peer: id("a"),
        why: LeftReason::Left,
        code: 0,
        bytes: Vec::new(),
    });
    let outputs = [joined("a"), left, shown("a")];
    assert_eq!(
        property(checker.observe(0, &outputs, &seen(&none, Some(&gone)))),
        "P8"
    );
}

#[test]
fn membership_events_that_do_not_alternate_are_reported() {
    let none = Record::default();
    let twice = [joined("a"), joined("a")];
    assert_eq!(
        property(checker().observe(0, &twice, &seen(&none, None))),
        "P8"
    );
    let left = Output::Event(Event::Left {
        peer: id("a"),
        why: LeftReason::Lost,
        code: 0,
        bytes: Vec::new(),
    });
    assert_eq!(
        property(checker().observe(0, &[left], &seen(&none, None))),
        "P8"
    );
    assert_eq!(
        property(checker().observe(0, &[joined("a")], &seen(&none, None))),
        "P8"
    );
}
