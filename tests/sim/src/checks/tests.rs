//! Wrong histories: the checker must report each, or the runs prove nothing.

use room_core::election::LeaderReason;
use room_core::election::raft::wire::{Pulse, Side};
use room_core::election::record::Epoch;
use room_core::id::{Fingerprint, Incarnation};
use room_core::node::{Conflict, Input, LinkUp};
use room_core::path::Path;
use room_core::quorum::Roster;
use room_core::wire::{Envelope, Opaque};

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
        leader_key: None,
        stamp: stamp(term),
        leader: Some(id(leader)),
        assigned: false,
    }
}

fn seen<'a>(record: &'a Record, leader: Option<&'a PeerId>) -> Seen<'a> {
    Seen {
        record,
        leader,
        doubted: None,
        followed: leader,
        role: RoleKind::Follower,
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
    Output::Event(Event::LeaderChanged(LeaderChange {
        new: Some(id(leader)),
        reason: LeaderReason::Elected,
        ..LeaderChange::default()
    }))
}

fn joined(peer: &str) -> Output {
    Output::Event(Event::Joined(id(peer)))
}

fn property(checked: Checked) -> &'static str {
    checked.err().map_or("", |violation| violation.property)
}

fn elects(term: u64, message: ElectionMessage) -> Message {
    Message::from(Stamped::new(stamp(term), message))
}

fn vote(term: u64, candidate: &str) -> Output {
    Output::Transmit {
        to: id(candidate),
        envelope: Envelope {
            incarnation: Incarnation {
                started_us: 1,
                random: 1,
            },
            message: elects(
                term,
                ElectionMessage::VoteResponse {
                    round: 1,
                    voter: id("m"),
                    granted: true,
                    record: Record::undecided(stamp(term)),
                    live: None,
                },
            ),
        },
        urgent: true,
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
fn a_vote_beside_its_own_candidacy_is_reported() {
    let mut checker = checker();
    let (undecided, me) = (Record::undecided(stamp(1)), id("m"));
    let mut now = seen(&undecided, None);
    now.voted_for = Some(&me);
    assert_eq!(checker.observe(0, &[], &now), Ok(()));
    let outputs = [joined("a"), vote(1, "a")];
    assert_eq!(property(checker.observe(0, &outputs, &now)), "P4");
}

#[test]
fn a_leader_in_doubt_that_is_shown_after_a_vote_is_reported() {
    let (undecided, old, candidate) = (Record::undecided(stamp(1)), id("a"), id("b"));
    let observed = |doubted, voted_for| {
        let now = Seen {
            doubted,
            voted_for,
            ..seen(&undecided, Some(&old))
        };
        property(checker().observe(0, &[shown("a")], &now))
    };
    assert_eq!(observed(Some(&old), Some(&candidate)), "G17");
    assert_eq!(observed(Some(&old), None), "");
    // It follows others' reports of a leader that it cannot hear.
    assert_eq!(observed(None, Some(&candidate)), "");
}

fn lead<'a>(record: &'a Record, me: &'a PeerId, won: Option<&'a Campaign>) -> Seen<'a> {
    Seen {
        role: RoleKind::Leader,
        leads_under: Some(record),
        won,
        ..seen(record, Some(me))
    }
}

fn roster(names: &[&str]) -> Quorum {
    let voters = names.iter().map(|name| (id(name), None));
    Quorum::Static(Roster::new(voters).expect("a roster"))
}

fn campaign(electorate: &[&str], granted: &[&str]) -> Campaign {
    let set = |names: &[&str]| names.iter().map(|name| id(name)).collect();
    Campaign {
        round: 1,
        electorate: set(electorate),
        granted: set(granted),
        refused: BTreeSet::new(),
        needed: Quorum::Dynamic.votes_needed(electorate.len()),
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
    let left = Output::Event(Event::Left(Left::new(id("a"), LeftReason::Kicked)));
    let outputs = [joined("a"), left, joined("a")];
    assert_eq!(
        property(checker().observe(0, &outputs, &seen(&none, None))),
        "kick"
    );
}

#[test]
fn missing_or_wrong_leader_events_are_reported() {
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
fn a_shown_leader_that_left_is_reported() {
    let mut checker = checker();
    checker.born(1, &id("a"), None);
    checker.linked(0, &id("a"), 1);
    let (gone, none) = (id("a"), Record::default());
    let left = Output::Event(Event::Left(Left::new(id("a"), LeftReason::Left)));
    let outputs = [joined("a"), left, shown("a")];
    assert_eq!(
        property(checker.observe(0, &outputs, &seen(&none, Some(&gone)))),
        "P8"
    );
}

/// A member of another room has not ended: that room may merge with this one, under it.
#[test]
fn a_leader_whose_room_parted_from_this_one_may_be_shown_again() {
    let shown_after = |seconds, why: LinkEnd| {
        let mut checker = checker();
        checker.born(1, &id("a"), None);
        checker.linked(0, &id("a"), 1);
        let (leader, none) = (id("a"), Record::default());
        let left = |peer, why| Output::Event(Event::Left(Left::new(id(peer), why)));
        let peer = id("m");
        let closes = Output::Close { peer, why };
        let outputs = [joined("m"), closes, left("m", LeftReason::Replaced)];
        assert_eq!(checker.observe(1, &outputs, &seen(&none, None)), Ok(()));
        let outputs = [joined("a"), left("a", LeftReason::Left)];
        assert_eq!(checker.observe(0, &outputs, &seen(&none, None)), Ok(()));
        checker.now = checker.now + Duration::from_secs(seconds);
        property(checker.observe(0, &[shown("a")], &seen(&none, Some(&leader))))
    };
    assert_eq!(shown_after(0, LinkEnd::Closed), "P8");
    assert_eq!(shown_after(60, LinkEnd::Closed), "P8");
    assert_eq!(shown_after(9, LinkEnd::Moved(Conflict::Banned)), "P8");
    assert_eq!(shown_after(10, LinkEnd::Moved(Conflict::Banned)), "");
    assert_eq!(shown_after(0, LinkEnd::OtherRoom), "");
}

/// The checker's verdict on a member that is notified of a leader, of none a second after the leader's process ended, and of that
/// leader again. Meanwhile the leader has restarted and crashed this many times.
fn reported_again(
    [may_lead, disturbed, was_linked]: [bool; 3],
    starts: usize,
    crashes: usize,
) -> &'static str {
    let mut checker = checker();
    checker.settles = Duration::from_secs(1);
    checker.disturbed = disturbed;
    checker.born(1, &id("a"), None);
    if was_linked {
        checker.linked(0, &id("a"), 1);
    }
    let (leader, none) = (id("a"), Record::default());
    let shows = |leader| Seen {
        may_lead,
        ..seen(&none, leader)
    };
    let lost = Output::Event(Event::LeaderChanged(LeaderChange::default()));
    assert_eq!(
        checker.observe(0, &[shown("a")], &shows(Some(&leader))),
        Ok(())
    );
    checker.died(1);
    checker.now = checker.now + Duration::from_secs(1);
    assert_eq!(checker.observe(0, &[lost], &shows(None)), Ok(()));
    for start in 0..starts {
        checker.born(1, &id("a"), None);
        if start < crashes {
            checker.died(1);
        }
    }
    property(checker.observe(0, &[shown("a")], &shows(Some(&leader))))
}

#[test]
fn a_leader_that_crashed_and_is_shown_again_is_reported() {
    assert_eq!(reported_again([false, false, true], 0, 0), "P8");
    // It asks for votes, others received from the leader later, or the leader is back.
    assert_eq!(reported_again([true, false, true], 0, 0), "");
    assert_eq!(reported_again([false, true, true], 0, 0), "");
    assert_eq!(reported_again([false, false, true], 1, 0), "");
    // A newcomer received nothing from the leader: it passes on the others' reports.
    assert_eq!(reported_again([false; 3], 0, 0), "");
    // The incarnation that crashed since is another one, which the member has not been notified of yet.
    assert_eq!(reported_again([false, false, true], 1, 1), "");
}

#[test]
fn a_peer_that_returns_in_another_incarnation_is_reported() {
    let (none, peer) = (Record::default(), id("a"));
    let away = seen(&none, None);
    let mut now = seen(&none, None);
    (now.members, now.members_count) = (Some(vec![&peer]), 1);
    for (life, expected) in [(1, ""), (2, "P8")] {
        let mut checker = checker();
        checker.linked(0, &id("a"), 1);
        let lost = [joined("a"), Output::Event(Event::Reconnecting(id("a")))];
        assert_eq!(checker.observe(0, &lost, &away), Ok(()));
        checker.linked(0, &id("a"), life);
        let back = [Output::Event(Event::Returned(Returned::new(id("a"))))];
        assert_eq!(property(checker.observe(0, &back, &now)), expected);
    }
}

#[test]
fn membership_events_that_do_not_alternate_are_reported() {
    let none = Record::default();
    let twice = [joined("a"), joined("a")];
    assert_eq!(
        property(checker().observe(0, &twice, &seen(&none, None))),
        "P8"
    );
    let left = Output::Event(Event::Left(Left::new(id("a"), LeftReason::Lost)));
    assert_eq!(
        property(checker().observe(0, &[left], &seen(&none, None))),
        "P8"
    );
    assert_eq!(
        property(checker().observe(0, &[joined("a")], &seen(&none, None))),
        "P8"
    );
}

fn assigned(term: u64, leader: &str) -> Record {
    Record {
        leader_key: None,
        stamp: Stamp {
            epoch: Epoch {
                assigner_key: None,
                override_seq: 1,
                assigner: Some(id("b")),
            },
            term,
        },
        leader: Some(id(leader)),
        assigned: true,
    }
}

#[test]
fn two_leaders_elected_in_one_term_of_a_static_quorum_are_reported() {
    let lead_in = |checker: &mut Checker, slot: usize, name: &str| {
        let (me, won) = (id(name), campaign(&["a", "b", "c"], &[name, "c"]));
        let votes = checker.granted.entry((stamp(1), me.clone()));
        votes.or_default().insert(id("c"));
        let mine = record(1, name);
        let now = lead(&mine, &me, Some(&won));
        checker.observe(slot, &[shown(name)], &now)
    };
    let mut fixed = Checker {
        quorum: roster(&["a", "b", "c"]),
        ..Checker::default()
    };
    for (slot, name) in ["a", "b"].into_iter().enumerate() {
        fixed.born(slot, &id(name), Some(None));
    }
    assert_eq!(lead_in(&mut fixed, 0, "a"), Ok(()));
    assert_eq!(property(lead_in(&mut fixed, 1, "b")), "P1");
    // A dynamic quorum allows that: two sides of a partition.
    let mut dynamic = Checker::default();
    for (slot, name) in ["a", "b"].into_iter().enumerate() {
        dynamic.born(slot, &id(name), None);
        assert_eq!(lead_in(&mut dynamic, slot, name), Ok(()));
    }
}

#[test]
fn too_few_votes_for_a_static_quorum_are_reported() {
    let mut checker = Checker {
        quorum: roster(&["m", "a", "b"]),
        ..Checker::default()
    };
    checker.born(0, &id("m"), Some(None));
    let (me, mine, won) = (id("m"), record(1, "m"), campaign(&["m"], &["m"]));
    let checked = checker.observe(0, &[shown("m")], &lead(&mine, &me, Some(&won)));
    assert_eq!(property(checked), "P5");
}

#[test]
fn a_second_vote_after_a_restart_is_reported_where_the_first_must_survive_it() {
    let undecided = Record::undecided(stamp(1));
    let both = ["a", "b"].map(id);
    let mut now = seen(&undecided, None);
    now.members = Some(both.iter().collect());
    now.members_count = 2;
    for (kept, expected) in [(true, "P4"), (false, "")] {
        let mut checker = Checker::default();
        let disk = kept.then_some(None);
        checker.born(0, &id("m"), disk);
        let outputs = [joined("a"), joined("b"), vote(1, "a")];
        assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
        checker.died(0);
        let without_the_vote = file(1, None);
        checker.born(0, &id("m"), disk.map(|_| Some(&without_the_vote)));
        let outputs = [joined("a"), joined("b"), vote(1, "b")];
        assert_eq!(property(checker.observe(0, &outputs, &now)), expected);
    }
}

#[test]
fn a_record_below_the_one_on_disk_is_reported() {
    let mut checker = Checker::default();
    let saved = Saved {
        record: record(2, "a"),
        ..file(0, None)
    };
    checker.born(0, &id("m"), Some(Some(&saved)));
    let low = record(1, "z");
    assert_eq!(property(checker.observe(0, &[], &seen(&low, None))), "P3");
}

#[test]
fn an_election_of_an_older_epoch_after_an_assignment_is_reported() {
    let mut checker = checker();
    let (high, low) = (assigned(1, "a"), record(1, "z"));
    assert_eq!(checker.observe(0, &[], &seen(&high, None)), Ok(()));
    assert_eq!(property(checker.observe(0, &[], &seen(&low, None))), "P7");
}

#[test]
fn a_campaign_beside_an_assigned_leader_is_reported() {
    let (held, leader) = (assigned(1, "a"), id("a"));
    let open = campaign(&["m"], &["m"]);
    for recovery in [Recovery::Hold, Recovery::AutoElect] {
        let beside = Seen {
            role: RoleKind::PreCandidate,
            campaign: Some(&open),
            ..seen(&held, Some(&leader))
        };
        let outputs = [shown("a")];
        let mut checker = checker_with(recovery);
        assert_eq!(property(checker.observe(0, &outputs, &beside)), "P7");
    }
}

fn checker_with(recovery: Recovery) -> Checker {
    let mut checker = Checker {
        recovery,
        ..Checker::default()
    };
    checker.born(0, &id("m"), None);
    checker
}

fn lost() -> Output {
    Output::Event(Event::LeaderChanged(LeaderChange {
        reason: LeaderReason::Lost,
        ..LeaderChange::default()
    }))
}

fn heartbeat(from: &str, pulse: Pulse) -> Input {
    let Output::Transmit { envelope, .. } = vote(1, "a") else {
        panic!("a message")
    };
    let envelope = Envelope {
        message: decoded::heartbeat(pulse),
        ..envelope
    };
    let from = id(from);
    Input::Message { from, envelope }
}

fn leads(record: &Record) -> Input {
    let from = record.leader.clone().expect("somebody");
    let pulse = Pulse::Leads {
        record: record.clone(),
        weight: 1,
        led_ms: 0,
        election_timeout_min_ms: 1500,
    };
    heartbeat(from.as_str(), pulse)
}

fn vouches(record: &Record) -> Input {
    let record = record.clone();
    heartbeat("b", Pulse::Follows { record, live: true })
}

/// A Hello of a node that Hold binds under that record.
fn links(record: &Record, lone: bool) -> Input {
    links_to(record, lone, true)
}

fn links_to(record: &Record, lone: bool, hold_binds: bool) -> Input {
    let side = |record: Record, lone| {
        Opaque::of(&Side {
            since: 0,
            hold_binds,
            record,
            live: None,
            lone,
        })
    };
    Input::LinkUp(Box::new(LinkUp {
        peer: id("b"),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        key: Fingerprint([1; 32]),
        addresses: Vec::new(),
        eligible: true,
        priority: 0,
        is_host: false,
        path: Path::Direct,
        carrier: None,
        through_turn: false,
        features: 0,
        ours: side(Record::default(), lone),
        theirs: side(record.clone(), false),
    }))
}

/// A node takes `input`, shows the leader of `record` after it, followed or not, loses it and asks for votes.
fn asks_after(checker: &mut Checker, input: &Input, record: &Record, followed: bool) -> Checked {
    let leader = record.leader.as_ref();
    checker.takes(0, input);
    let shows = Seen {
        followed: leader.filter(|_| followed),
        ..seen(record, leader)
    };
    let outputs = [shown(leader.expect("somebody").as_str())];
    assert_eq!(checker.observe(0, &outputs, &shows), Ok(()));
    assert_eq!(checker.observe(0, &[lost()], &seen(record, None)), Ok(()));
    asks(checker, record)
}

fn asks(checker: &mut Checker, record: &Record) -> Checked {
    let open = campaign(&["m"], &["m"]);
    let asks = Seen {
        role: RoleKind::PreCandidate,
        campaign: Some(&open),
        ..seen(record, None)
    };
    checker.observe(0, &[], &asks)
}

#[test]
fn a_campaign_of_a_node_that_followed_the_assigned_leader_is_reported() {
    let held = assigned(1, "a");
    for input in [leads(&held), vouches(&held)] {
        let asked = asks_after(&mut checker(), &input, &held, true);
        assert_eq!(property(asked), "P7");
        // Its host wants elections.
        let mut elects = checker_with(Recovery::AutoElect);
        assert_eq!(asks_after(&mut elects, &input, &held, true), Ok(()));
    }
}

#[test]
fn a_campaign_of_a_node_that_learned_of_the_assignment_in_a_hello_is_reported() {
    let held = assigned(1, "a");
    let mut checker = checker();
    checker.takes(0, &links(&held, true));
    assert_eq!(checker.observe(0, &[], &seen(&held, None)), Ok(()));
    assert_eq!(property(asks(&mut checker, &held)), "P7");
    // It cannot mean an earlier incarnation.
    let itself = assigned(1, "m");
    for (lone, expected) in [(true, "P7"), (false, "")] {
        let mut checker = self::checker();
        checker.takes(0, &links(&itself, lone));
        assert_eq!(checker.observe(0, &[], &seen(&itself, None)), Ok(()));
        assert_eq!(property(asks(&mut checker, &itself)), expected);
    }
}

/// C4.5 (a), (b).
#[test]
fn a_campaign_of_a_node_that_hold_does_not_bind_is_none() {
    let (held, newer) = (assigned(1, "a"), assigned(1, "b"));
    // It waited for the target, and received nothing, or only another record.
    let nothing = Input::Tick;
    assert_eq!(asks_after(&mut checker(), &nothing, &held, false), Ok(()));
    let older = leads(&record(1, "a"));
    assert_eq!(asks_after(&mut checker(), &older, &held, true), Ok(()));
    assert_eq!(
        asks_after(&mut checker(), &vouches(&held), &newer, true),
        Ok(())
    );
    // No member with that record has followed the leader.
    let mut took = checker();
    took.takes(0, &links_to(&held, true, false));
    assert_eq!(took.observe(0, &[], &seen(&held, None)), Ok(()));
    assert_eq!(asks(&mut took, &held), Ok(()));
    // One has, as a later Hello shows.
    took.takes(0, &links(&held, false));
    assert_eq!(took.observe(0, &[], &seen(&held, None)), Ok(()));
    assert_eq!(property(asks(&mut took, &held)), "P7");
    // It had a leader when it received the assignment.
    let mut led = checker();
    let (before, leader) = (record(1, "z"), id("z"));
    let shows = seen(&before, Some(&leader));
    assert_eq!(led.observe(0, &[shown("z")], &shows), Ok(()));
    led.takes(0, &links(&held, false));
    assert_eq!(led.observe(0, &[lost()], &seen(&held, None)), Ok(()));
    assert_eq!(asks(&mut led, &held), Ok(()));
    // It knew the record earlier, so the Hello did not bring it.
    let mut knew = checker();
    assert_eq!(knew.observe(0, &[], &seen(&held, None)), Ok(()));
    knew.takes(0, &links(&held, false));
    assert_eq!(asks(&mut knew, &held), Ok(()));
    // It is the target itself.
    let (itself, me) = (assigned(1, "m"), id("m"));
    let mut named = checker();
    named.takes(0, &vouches(&itself));
    let leads = Seen {
        followed: None,
        ..lead(&itself, &me, None)
    };
    assert_eq!(named.observe(0, &[shown("m")], &leads), Ok(()));
    assert_eq!(named.observe(0, &[lost()], &seen(&itself, None)), Ok(()));
    assert_eq!(asks(&mut named, &itself), Ok(()));
}

#[test]
fn a_host_releases_its_node_from_one_assignment() {
    let (held, newer) = (assigned(1, "a"), assigned(2, "a"));
    let mut checker = checker();
    checker.takes(0, &links(&held, true));
    assert_eq!(checker.observe(0, &[], &seen(&held, None)), Ok(()));
    checker.released(0);
    assert!(checker.is_released(0, &held));
    assert_eq!(asks(&mut checker, &held), Ok(()));
    assert_eq!(
        property(asks_after(&mut checker, &leads(&newer), &newer, true)),
        "P7"
    );
}

#[test]
fn followers_of_an_assigned_leader_and_the_end_of_its_incarnation_are_known() {
    let (held, me) = (assigned(1, "m"), id("m"));
    let mut checker = checker();
    checker.born(1, &id("n"), None);
    let running = |_: &PeerId| true;
    let leads_now = Seen {
        followed: None,
        ..lead(&held, &me, None)
    };
    assert_eq!(checker.observe(0, &[shown("m")], &leads_now), Ok(()));
    assert!(
        !checker.is_followed_and_gone(&held, |_| false),
        "no member followed it"
    );
    checker.takes(1, &leads(&held));
    assert_eq!(
        checker.observe(1, &[shown("m")], &seen(&held, Some(&me))),
        Ok(())
    );
    assert!(!checker.is_followed_and_gone(&held, running), "it lives");
    assert!(checker.is_followed_and_gone(&held, |_| false));
    checker.died(0);
    checker.born(0, &me, None);
    assert!(
        checker.is_followed_and_gone(&held, running),
        "it is another life"
    );
}

#[test]
fn a_term_that_is_leapt_over_is_reported() {
    let mut checker = checker();
    let (first, third) = (record(1, "a"), record(3, "a"));
    assert_eq!(checker.observe(0, &[], &seen(&first, None)), Ok(()));
    assert_eq!(
        property(checker.observe(0, &[], &seen(&third, None))),
        "P15"
    );
}

#[test]
fn terms_that_one_node_asked_for_and_none_won_are_counted() {
    let mut checker = checker();
    checker.born(1, &id("n"), None);
    let (me, open) = (id("m"), campaign(&["a", "b", "m"], &["m"]));
    for term in 1..=3 {
        let undecided = Record::undecided(stamp(term));
        let asks = Seen {
            role: RoleKind::Candidate,
            campaign: Some(&open),
            voted_for: Some(&me),
            eligible: Vec::new(),
            ..seen(&undecided, None)
        };
        // This test does not check the voters of the round.
        checker.lives.get_mut(&0).expect("born").round = open.round;
        assert_eq!(checker.observe(0, &[], &asks), Ok(()));
    }
    let won = record(3, "m");
    assert_eq!(checker.observe(1, &[], &seen(&won, None)), Ok(()));
    assert_eq!(checker.wasted_terms(&stamp(0)), [1, 2]);
    assert_eq!(checker.wasted_terms(&stamp(1)), [2]);
}

/// A member of a room whose roster is a, b and m.
fn voter(slot: usize, name: &str) -> Checker {
    let mut checker = Checker {
        quorum: roster(&["a", "b", "m"]),
        ..Checker::default()
    };
    checker.born(slot, &id(name), Some(None));
    checker
}

fn sends(message: Message) -> Output {
    Output::Transmit {
        to: id("a"),
        envelope: Envelope {
            incarnation: Incarnation {
                started_us: 1,
                random: 1,
            },
            message,
        },
        urgent: true,
    }
}

fn asks_for_votes() -> Message {
    let request = ElectionMessage::VoteRequest {
        round: 1,
        candidate: id("m"),
        asked_by: None,
    };
    elects(1, request)
}

fn with_members<'a>(record: &'a Record, members: &'a [PeerId]) -> Seen<'a> {
    Seen {
        members: Some(members.iter().collect()),
        members_count: members.len(),
        ..seen(record, None)
    }
}

#[test]
fn an_assignment_in_a_room_with_a_roster_is_reported() {
    let held = assigned(1, "a");
    assert_eq!(
        property(voter(0, "m").observe(0, &[], &seen(&held, None))),
        "roster"
    );
    let assign = ElectionMessage::LeaderAssign {
        record: held.clone(),
        seq: 1,
    };
    let (none, members) = (Record::default(), [id("a")]);
    let outputs = [joined("a"), sends(elects(0, assign))];
    let mut checker = voter(0, "m");
    let checked = checker.observe(0, &outputs, &with_members(&none, &members));
    assert_eq!(property(checked), "roster");
}

#[test]
fn a_member_beside_the_roster_that_stands_votes_or_leads_is_reported() {
    let (undecided, members) = (Record::undecided(stamp(1)), [id("a")]);
    let stands = Seen {
        role: RoleKind::PreCandidate,
        ..seen(&undecided, None)
    };
    assert_eq!(property(voter(0, "d").observe(0, &[], &stands)), "P6");
    for output in [vote(1, "a"), sends(asks_for_votes())] {
        let now = with_members(&undecided, &members);
        let checked = voter(0, "d").observe(0, &[joined("a"), output], &now);
        assert_eq!(property(checked), "P6");
    }
    let led = record(1, "d");
    assert_eq!(
        property(voter(0, "m").observe(0, &[], &seen(&led, None))),
        "P6"
    );
}

#[test]
fn a_weight_of_more_than_the_roster_is_reported() {
    for (weight, expected) in [(3, ""), (4, "P6")] {
        let heartbeat = decoded::heartbeat(Pulse::Leads {
            record: record(1, "m"),
            weight,
            led_ms: 0,
            election_timeout_min_ms: 0,
        });
        let (undecided, members) = (Record::undecided(stamp(1)), [id("a")]);
        let outputs = [joined("a"), sends(heartbeat)];
        let checked = voter(0, "m").observe(0, &outputs, &with_members(&undecided, &members));
        assert_eq!(property(checked), expected);
    }
}

#[test]
fn votes_of_others_than_the_roster_are_reported() {
    let (me, mine) = (id("m"), record(1, "m"));
    for (electorate, granted, expected) in [
        (&["a", "b", "m"][..], &["b", "m"][..], ""),
        (&["a", "b", "d", "m"], &["d", "m"], "P6"),
        (&["m"], &["m"], "P5"),
    ] {
        let mut checker = voter(0, "m");
        for name in granted.iter().filter(|name| **name != "m") {
            let votes = checker.granted.entry((stamp(1), me.clone())).or_default();
            votes.insert(id(name));
        }
        let won = campaign(electorate, granted);
        let checked = checker.observe(0, &[shown("m")], &lead(&mine, &me, Some(&won)));
        assert_eq!(property(checked), expected, "{granted:?}");
    }
}

fn file(term: u64, voted_for: Option<&str>) -> Saved {
    Saved {
        writes: 1,
        record: Record::undecided(stamp(term)),
        voted_for: voted_for.map(id),
        forgotten: None,
        others: BTreeMap::new(),
    }
}

/// A voter that gave its vote of term 2 to a, and restarts with a file of term 1.
fn forgetful() -> Checker {
    let mut checker = voter(0, "m");
    let (first, second) = (Record::undecided(stamp(1)), Record::undecided(stamp(2)));
    let members = [id("a"), id("b")];
    let outputs = [joined("a"), joined("b")];
    let now = with_members(&first, &members);
    assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
    let now = with_members(&second, &members);
    assert_eq!(checker.observe(0, &[vote(2, "a")], &now), Ok(()));
    checker.died(0);
    let copy = file(1, None);
    checker.disk_replaced(0, Some(&copy));
    checker.born(0, &id("m"), Some(Some(&copy)));
    checker
}

/// Its next action in term 2.
fn votes_again(checker: &mut Checker, term: u64, candidate: &str) -> Checked {
    let undecided = Record::undecided(stamp(term));
    let members = [id("a"), id("b")];
    let outputs = [joined("a"), joined("b"), vote(term, candidate)];
    checker.observe(0, &outputs, &with_members(&undecided, &members))
}

#[test]
fn a_forgotten_vote_that_is_given_again_is_the_operators_until_it_is_noticed() {
    let mut unseen = forgetful();
    assert_eq!(votes_again(&mut unseen, 2, "b"), Ok(()));
    assert_eq!(unseen.unseen_votes(), 1);
    let mut noticed = forgetful();
    noticed.noticed(0);
    assert_eq!(property(votes_again(&mut noticed, 2, "b")), "P4");
}

#[test]
fn two_leaders_that_share_other_voters_than_forgetful_ones_are_reported() {
    for (both, expected) in [("m", ""), ("b", "P1")] {
        let mut checker = forgetful();
        assert_eq!(votes_again(&mut checker, 2, "b"), Ok(()));
        let elections = &mut checker.elections;
        let one = campaign(&["a", "b", "m"], &["a", both]);
        assert_eq!(elections.one(&record(2, "a"), Some(&one)), Ok(()));
        let other = campaign(&["a", "b", "m"], &["b", both]);
        let checked = elections.one(&record(2, "b"), Some(&other));
        assert_eq!(property(checked), expected);
    }
}

#[test]
fn a_voter_that_noticed_and_votes_before_it_has_received_from_all_others_is_reported() {
    let others = [id("a"), id("b")];
    // (received from a and b, the term in which it votes, the broken property)
    for (reports, term, expected) in [
        (&[("a", 2, false)][..], 3, "P4"),
        (&[("a", 2, false), ("b", 2, true)], 3, "P4"),
        (&[("a", 2, false), ("b", 3, false)], 3, "P4"),
        (&[("a", 2, false), ("b", 2, false)], 3, ""),
    ] {
        let mut checker = forgetful();
        checker.noticed(0);
        // Terms without a gap.
        checker.highest.insert(Epoch::default(), 3);
        for (from, at, stale) in reports {
            checker.receive_report(0, &id(from), &stamp(*at), *stale, &others);
        }
        assert_eq!(
            property(votes_again(&mut checker, term, "b")),
            expected,
            "{reports:?}"
        );
    }
}

#[test]
fn a_restart_that_undoes_what_a_voter_noticed_is_reported() {
    let mut checker = forgetful();
    checker.noticed(0);
    checker.noticed_for_good(0);
    checker.died(0);
    checker.born(0, &id("m"), Some(Some(&file(1, None))));
    assert_eq!(property(votes_again(&mut checker, 2, "a")), "P4");
}

#[test]
fn a_voter_that_stands_in_a_term_whose_vote_it_took_for_itself_is_reported() {
    let (second, me) = (Record::undecided(stamp(2)), id("m"));
    let mut checker = forgetful();
    checker.noticed(0);
    let holds = Seen {
        voted_for: Some(&me),
        ..seen(&second, None)
    };
    assert_eq!(checker.observe(0, &[], &holds), Ok(()));
    let stands = Seen {
        role: RoleKind::Candidate,
        ..holds
    };
    assert_eq!(property(checker.observe(0, &[], &stands)), "P4");
    assert_eq!(property(votes_again(&mut checker, 2, "a")), "P4");
}

#[test]
fn a_vote_that_was_taken_back_binds_those_who_have_it_on_disk() {
    // (file of the next process, the property that its earlier vote breaks)
    for (file, expected) in [(file(2, Some("a")), ""), (file(2, Some("m")), "P4")] {
        let mut checker = voter(0, "m");
        let (second, members) = (Record::undecided(stamp(2)), [id("a"), id("b")]);
        let outputs = [joined("a"), joined("b"), vote(2, "a")];
        checker.highest.insert(Epoch::default(), 2);
        let now = with_members(&second, &members);
        assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
        checker.noticed(0);
        let me = id("m");
        let takes_it = Seen {
            voted_for: Some(&me),
            ..with_members(&second, &members)
        };
        assert_eq!(checker.observe(0, &[], &takes_it), Ok(()));
        checker.died(0);
        checker.born(0, &me, Some(Some(&file)));
        let a = id("a");
        let gives_it = Seen {
            voted_for: Some(&a),
            ..seen(&second, None)
        };
        assert_eq!(property(checker.observe(0, &[], &gives_it)), expected);
    }
}

#[test]
fn a_candidate_that_noticed_before_and_gave_up_may_stand_in_that_term_again() {
    let (third, me) = (Record::undecided(stamp(3)), id("m"));
    let mut checker = forgetful();
    checker.highest.insert(Epoch::default(), 3);
    checker.noticed(0);
    let stands = Seen {
        voted_for: Some(&me),
        role: RoleKind::Candidate,
        ..seen(&third, None)
    };
    let gave_up = Seen {
        role: RoleKind::Follower,
        ..stands.clone()
    };
    for now in [&stands, &gave_up, &stands] {
        assert_eq!(checker.observe(0, &[], now), Ok(()));
    }
    // No member received it, and the disk does not contain it: it never happened.
    checker.died(0);
    checker.born(0, &me, Some(Some(&file(2, None))));
    assert_eq!(checker.observe(0, &[], &stands), Ok(()));
}

#[test]
fn a_file_that_lacks_statements_to_others_is_reported() {
    let mut checker = voter(0, "m");
    let (first, members) = (Record::undecided(stamp(1)), [id("a")]);
    let outputs = [joined("a"), vote(1, "a")];
    let now = with_members(&first, &members);
    assert_eq!(checker.observe(0, &outputs, &now), Ok(()));
    checker.died(0);
    checker.born(0, &id("m"), Some(Some(&file(0, None))));
    let none = Record::default();
    assert_eq!(property(checker.observe(0, &[], &seen(&none, None))), "P3");
}
