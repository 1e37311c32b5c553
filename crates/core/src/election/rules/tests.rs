//! Tests of the rules without a clock, one call at a time.

use super::*;
use crate::quorum::majority_threshold;

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

fn rules_of(name: &str) -> Rules {
    Rules::new(id(name), Quorum::Dynamic, Guards::ALL)
}

fn voters(names: &[&str]) -> BTreeSet<PeerId> {
    names.iter().map(|name| id(name)).collect()
}

fn term(term: u64) -> Stamp {
    Stamp {
        epoch: Epoch::default(),
        term,
    }
}

fn elected(at: u64, leader: &str) -> Record {
    Record {
        leader_key: None,
        stamp: term(at),
        leader: Some(id(leader)),
        assigned: false,
    }
}

fn assigned(override_seq: u64, assigner: &str, term: u64, leader: &str) -> Record {
    Record {
        leader_key: None,
        stamp: Stamp {
            epoch: Epoch {
                assigner_key: None,
                override_seq,
                assigner: Some(id(assigner)),
            },
            term,
        },
        leader: Some(id(leader)),
        assigned: true,
    }
}

/// A node "m" that campaigns among `others` in the term after its own.
fn candidate(others: &[&str]) -> Rules {
    let mut rules = rules_of("m");
    let above = rules.record().stamp.clone();
    rules.begin_vote(voters(others), &above);
    rules
}

fn round(rules: &Rules) -> u64 {
    rules.campaign().map_or(0, |campaign| campaign.round)
}

#[test]
fn s1_a_node_starts_as_a_follower_of_term_0() {
    let rules = rules_of("m");
    assert_eq!(rules.role(), RoleKind::Follower);
    assert_eq!(*rules.record(), Record::default());
    assert_eq!((rules.voted_for(), rules.won()), (None, None));
}

#[test]
fn s2_one_or_two_nodes_need_no_other_vote() {
    for others in [&[][..], &["a"]] {
        let rules = candidate(others);
        assert_eq!(rules.role(), RoleKind::Leader);
        assert_eq!(*rules.record(), elected(1, "m"));
    }
}

#[test]
fn s3_of_three_nodes_a_candidate_waits_with_its_own_vote() {
    let rules = candidate(&["a", "b"]);
    assert_eq!(rules.role(), RoleKind::Candidate);
    assert_eq!(*rules.record(), Record::undecided(term(1)));
    assert_eq!(rules.voted_for(), Some(&id("m")));
}

#[test]
fn s4_the_vote_that_makes_the_majority_makes_the_leader() {
    // (others, voters that grant, voters that refuse, state of the round)
    type Round = (
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
        Tally,
    );
    let table: &[Round] = &[
        (&["a", "b"], &["a"], &[], Tally::Won),
        (&["a", "b"], &[], &["a"], Tally::Pending),
        (&["a", "b"], &[], &["a", "b"], Tally::Lost),
        (&["a", "b"], &[], &["a", "a"], Tally::Pending),
        (&["a", "b", "c"], &["a"], &[], Tally::Pending),
        (&["a", "b", "c"], &["a", "a"], &[], Tally::Pending),
        (&["a", "b", "c"], &["a", "b"], &["c"], Tally::Won),
        (&["a", "b", "c"], &["a"], &["b", "c"], Tally::Lost),
        (&["a", "b", "c", "d"], &["a", "b"], &["c", "d"], Tally::Won),
        (
            &["a", "b", "c", "d"],
            &["a", "stranger"],
            &[],
            Tally::Pending,
        ),
    ];
    for (others, grants, refusals, expected) in table {
        let mut rules = candidate(others);
        let open = round(&rules);
        let mut tally = Tally::Pending;
        let answers = refusals.iter().map(|voter| (voter, false));
        for (voter, granted) in answers.chain(grants.iter().map(|voter| (voter, true))) {
            tally = rules.count_vote(open, &id(voter), granted);
        }
        assert_eq!(tally, *expected, "{others:?} {grants:?} {refusals:?}");
        let leads = rules.role() == RoleKind::Leader;
        assert_eq!(leads, *expected == Tally::Won);
        assert_eq!(rules.won().is_some(), leads);
    }
}

#[test]
fn votes_of_another_round_do_not_count() {
    let mut rules = candidate(&["a", "b"]);
    let old = round(&rules);
    let above = rules.record().stamp.clone();
    rules.begin_vote(voters(&["a", "b"]), &above);
    assert_eq!(rules.count_vote(old, &id("a"), true), Tally::Pending);
    assert_eq!(rules.role(), RoleKind::Candidate);
    // A pre-vote's answer is no vote either.
    let open = round(&rules);
    assert_eq!(rules.count_pre_vote(open, &id("a"), true), Tally::Pending);
}

#[test]
fn the_electorate_is_fixed_when_the_round_begins() {
    let mut rules = candidate(&["a", "b", "c", "d"]);
    let open = round(&rules);
    assert_eq!(rules.campaign().map(|campaign| campaign.needed), Some(3));
    assert_eq!(rules.count_vote(open, &id("late"), true), Tally::Pending);
    assert_eq!(rules.count_vote(open, &id("a"), true), Tally::Pending);
    assert_eq!(rules.count_vote(open, &id("b"), true), Tally::Won);
}

#[test]
fn o18_a_pre_vote_changes_neither_record_nor_vote() {
    let mut rules = rules_of("m");
    assert_eq!(rules.begin_pre_vote(voters(&["a", "b"])), Tally::Pending);
    let open = round(&rules);
    assert_eq!(rules.count_pre_vote(open, &id("a"), true), Tally::Won);
    assert_eq!(rules.role(), RoleKind::PreCandidate);
    assert_eq!((rules.record().term(), rules.voted_for()), (0, None));
}

#[test]
fn s5_the_record_of_a_heartbeat_sets_the_leader() {
    let mut rules = rules_of("m");
    assert!(rules.adopt(&elected(1, "a"), true));
    assert_eq!(rules.record().leader, Some(id("a")));
    assert_eq!(rules.role(), RoleKind::Follower);
}

#[test]
fn s6_a_higher_term_ends_every_role() {
    let mut follower = rules_of("m");
    follower.adopt(&elected(1, "a"), true);
    for mut rules in [follower, candidate(&["a", "b"]), candidate(&[])] {
        assert!(rules.adopt(&elected(5, "a"), true));
        assert_eq!(rules.role(), RoleKind::Follower);
        assert_eq!((rules.record().term(), rules.voted_for()), (5, None));
        assert_eq!((rules.campaign(), rules.won()), (None, None));
    }
}

#[test]
fn r23_a_candidate_steps_down_for_the_leader_of_its_own_term() {
    let mut rules = candidate(&["a", "b"]);
    assert!(rules.adopt(&elected(1, "a"), true));
    assert_eq!(rules.role(), RoleKind::Follower);
    // Its vote of this term stays given.
    assert_eq!(rules.voted_for(), Some(&id("m")));
    assert!(!rules.vote(&id("b"), &term(1)));
}

#[test]
fn s7_an_assignment_opens_an_epoch_and_takes_the_vote() {
    for (target, role) in [("a", RoleKind::Follower), ("m", RoleKind::Leader)] {
        let mut rules = rules_of("m");
        let record = rules.assign(&id(target), None, 0);
        assert_eq!(record, assigned(1, "m", 1, target));
        assert_eq!((rules.record(), rules.role()), (&record, role));
        assert_eq!(rules.voted_for(), Some(&id(target)));
    }
    // Above every number ever seen.
    let mut rules = rules_of("m");
    assert_eq!(rules.assign(&id("a"), None, 7), assigned(8, "m", 1, "a"));
    assert_eq!(rules.assign(&id("b"), None, 3), assigned(9, "m", 2, "b"));
}

#[test]
fn s8_the_threshold_of_a_room() {
    let table = [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)];
    for (nodes, votes) in table {
        assert_eq!(majority_threshold(nodes), votes, "{nodes} nodes");
    }
}

#[test]
fn s9_a_leader_that_resigns_keeps_its_record() {
    let mut rules = candidate(&[]);
    rules.step_down();
    assert_eq!(rules.role(), RoleKind::Follower);
    assert_eq!(*rules.record(), elected(1, "m"));
}

#[test]
fn s10_of_two_leaders_of_one_term_the_larger_id_wins_at_everybody() {
    for order in [["a", "z"], ["z", "a"]] {
        let mut follower = rules_of("m");
        for leader in order {
            follower.adopt(&elected(1, leader), true);
        }
        assert_eq!(*follower.record(), elected(1, "z"));
    }
    let mut leader = candidate(&[]);
    assert!(!leader.adopt(&elected(1, "a"), true));
    assert_eq!(leader.role(), RoleKind::Leader);
    assert!(leader.adopt(&elected(1, "z"), true));
    assert_eq!(leader.role(), RoleKind::Follower);
}

#[test]
fn s11_votes_are_given_once_in_a_term_and_never_for_an_older_one() {
    // (own record, vote given before, candidate, term asked, granted, own term afterwards)
    let unknown = Record::undecided(term(5));
    let table = [
        (&unknown, None, "a", 4, false, 5),
        (&unknown, None, "a", 5, true, 5),
        (&unknown, Some("b"), "a", 5, false, 5),
        (&unknown, Some("a"), "a", 5, true, 5),
        (&unknown, Some("b"), "a", 6, true, 6),
        (&elected(5, "b"), None, "a", 5, false, 5),
        (&elected(5, "b"), None, "a", 6, true, 6),
        (&assigned(1, "b", 5, "b"), None, "a", 9, false, 5),
    ];
    for (record, before, candidate, asked, granted, afterwards) in table {
        let mut rules = rules_of("m");
        rules.adopt(record, true);
        if let Some(before) = before {
            assert!(rules.vote(&id(before), &record.stamp));
        }
        let case = format!("{record:?} {before:?} {candidate} {asked}");
        assert_eq!(rules.vote(&id(candidate), &term(asked)), granted, "{case}");
        assert_eq!(rules.record().term(), afterwards, "{case}");
    }
}

#[test]
fn s12_an_elected_record_of_an_older_epoch_never_replaces_an_assigned_one() {
    let mut rules = rules_of("m");
    rules.assign(&id("a"), None, 0);
    assert!(!rules.adopt(&elected(1_000, "z"), true));
    assert!(!rules.vote(&id("z"), &term(1_000)));
    // The election that ends the override happens inside its epoch.
    let above = rules.record().stamp.clone();
    rules.begin_vote(voters(&["b"]), &above);
    assert_eq!(rules.role(), RoleKind::Leader);
    assert!(!rules.record().assigned);
    assert_eq!(rules.record().stamp.epoch.override_seq, 1);
}

#[test]
fn s13_an_assignment_is_taken_over_with_its_term() {
    let mut rules = rules_of("m");
    assert!(rules.adopt(&assigned(1, "b", 5, "a"), true));
    assert_eq!(
        (rules.role(), rules.record().term()),
        (RoleKind::Follower, 5)
    );
    assert_eq!(rules.voted_for(), Some(&id("a")));
    // Also a lower term, since the epoch is newer.
    assert!(rules.adopt(&assigned(2, "a", 2, "m"), true));
    assert_eq!((rules.role(), rules.record().term()), (RoleKind::Leader, 2));
    // An older assignment changes nothing.
    assert!(!rules.adopt(&assigned(1, "z", 9, "a"), true));
    assert_eq!(rules.role(), RoleKind::Leader);
}

#[test]
fn s14_after_an_assigned_leader_votes_are_still_given() {
    let mut rules = rules_of("m");
    let record = assigned(1, "b", 5, "a");
    rules.adopt(&record, true);
    let next = Stamp {
        term: 6,
        ..record.stamp
    };
    assert!(rules.vote(&id("c"), &next));
}

#[test]
fn two_assignments_of_one_number_are_ordered_by_assigner() {
    for order in [["b", "c"], ["c", "b"]] {
        let mut rules = rules_of("m");
        for assigner in order {
            rules.adopt(&assigned(1, assigner, 1, assigner), true);
        }
        assert_eq!(*rules.record(), assigned(1, "c", 1, "c"));
    }
}

#[test]
fn an_epoch_issued_twice_does_not_give_a_second_vote() {
    let mut rules = rules_of("m");
    rules.adopt(&assigned(1, "b", 1, "a"), true);
    // Its assigner restarted and issued the number again.
    assert!(rules.adopt(&assigned(1, "b", 1, "c"), true));
    assert_eq!(rules.voted_for(), Some(&id("a")));
}

#[test]
fn an_assigned_incarnation_that_may_not_lead_follows() {
    let mut rules = rules_of("m");
    assert!(rules.adopt(&assigned(1, "b", 1, "m"), false));
    assert_eq!(rules.role(), RoleKind::Follower);
}

#[test]
fn a_leader_campaigns_in_place_and_leads_on() {
    let mut rules = candidate(&[]);
    let tally = rules.begin_vote(voters(&["a", "b"]), &term(9));
    assert_eq!(tally, Tally::Pending);
    assert_eq!(rules.role(), RoleKind::Leader);
    assert_eq!(*rules.record(), Record::undecided(term(10)));
    assert!(rules.campaigning());
    let open = round(&rules);
    assert_eq!(rules.count_vote(open, &id("a"), true), Tally::Won);
    assert_eq!(*rules.record(), elected(10, "m"));
}

#[test]
fn an_issued_epoch_keeps_leader_and_kind() {
    let mut rules = candidate(&[]);
    let record = rules.issue_epoch(4);
    assert_eq!(
        record,
        Record {
            leader_key: None,
            assigned: false,
            ..assigned(5, "m", 2, "m")
        }
    );
    assert_eq!((rules.role(), rules.won()), (RoleKind::Leader, None));
    let mut rules = rules_of("m");
    rules.assign(&id("m"), None, 0);
    assert_eq!(rules.issue_epoch(1), assigned(2, "m", 2, "m"));
}

#[test]
fn pre_votes_of_strangers_and_of_another_round_do_not_count() {
    let mut rules = rules_of("m");
    rules.begin_pre_vote(voters(&["a", "b"]));
    let old = round(&rules);
    rules.begin_pre_vote(voters(&["a", "b"]));
    assert_eq!(rules.rounds(), 2);
    assert_eq!(rules.count_pre_vote(old, &id("a"), true), Tally::Pending);
    let open = round(&rules);
    let stranger = rules.count_pre_vote(open, &id("stranger"), true);
    assert_eq!(stranger, Tally::Pending);
    assert_eq!(rules.count_pre_vote(open, &id("b"), true), Tally::Won);
}

#[test]
fn a_leader_that_was_assigned_does_not_get_the_vote_of_its_own_term() {
    let mut rules = rules_of("m");
    let record = assigned(1, "b", 5, "a");
    rules.adopt(&record, true);
    assert!(!rules.vote(&id("a"), &record.stamp));
}

#[test]
fn a_vote_that_may_have_been_given_is_kept_from_other_candidates() {
    let mut rules = rules_of("m");
    rules.adopt(&Record::undecided(term(5)), true);
    rules.spend_vote();
    assert!(!rules.vote(&id("a"), &term(5)));
    assert!(rules.vote(&id("a"), &term(6)));
}

/// Effects of switching a guard off, as the laboratory does.
#[cfg(feature = "laboratory")]
mod guards {
    use super::*;

    /// Rules with one guard off, to show the fault that it prevents; all others stay on.
    fn rules_without(change: impl FnOnce(&mut Guards)) -> Rules {
        let mut guards = Guards::ALL;
        change(&mut guards);
        Rules::new(id("m"), Quorum::Dynamic, guards)
    }

    #[test]
    fn g5_freezes_the_electorate_of_the_open_round() {
        for frozen in [true, false] {
            let mut rules = rules_without(|guards| guards.frozen_electorate = frozen);
            rules.begin_pre_vote(voters(&["a", "b", "c", "d"]));
            rules.refresh_electorate(&voters(&["a", "b"]));
            let campaign = rules.campaign().expect("it is open");
            let expected = if frozen {
                (voters(&["a", "b", "c", "d", "m"]), 3)
            } else {
                (voters(&["a", "b", "m"]), 2)
            };
            assert_eq!((campaign.electorate.clone(), campaign.needed), expected);
            let open = round(&rules);
            let late = rules.count_pre_vote(open, &id("late"), true);
            assert_eq!(late == Tally::Won, !frozen);
            rules.begin_vote(voters(&["a", "b"]), &term(0));
            let open = round(&rules);
            let late = rules.count_vote(open, &id("late"), true);
            assert_eq!(late == Tally::Won, !frozen);
        }
    }

    #[test]
    fn g10_keeps_a_follower_with_the_larger_of_two_records_of_one_term() {
        for ordered in [true, false] {
            let mut rules = rules_without(|guards| guards.follower_order = ordered);
            rules.adopt(&elected(5, "b"), true);
            assert_eq!(rules.is_newer(&elected(5, "a")), !ordered);
            assert!(rules.is_newer(&elected(5, "c")));
            assert!(!rules.is_newer(&elected(5, "b")), "its own");
            assert!(!rules.is_newer(&elected(4, "c")), "an older term");
            assert!(!rules.is_newer(&Record::undecided(term(5))), "no leader");
        }
        // A leader is no follower.
        let mut leader = rules_without(|guards| guards.follower_order = false);
        leader.begin_vote(BTreeSet::new(), &term(0));
        assert!(!leader.is_newer(&elected(1, "a")));
    }

    #[test]
    fn g12_orders_assignments_among_all_other_records() {
        for ordered in [true, false] {
            let mut rules = rules_without(|guards| guards.record_order = ordered);
            let own = assigned(2, "a", 5, "a");
            rules.adopt(&own, true);
            assert_eq!(rules.is_newer(&assigned(1, "a", 9, "b")), !ordered);
            assert!(!rules.is_newer(&own), "its own");
            assert!(!rules.is_newer(&elected(9, "b")), "an elected one");
            let epoch = rules.assign(&id("b"), None, 2).stamp.epoch;
            assert_eq!(epoch == own.stamp.epoch, !ordered);
        }
    }

    #[test]
    fn c4_makes_an_assignment_the_vote_of_its_term() {
        for takes in [true, false] {
            let rules = || rules_without(|guards| guards.assignment_takes_vote = takes);
            let record = assigned(1, "b", 5, "a");
            let mut follower = rules();
            follower.adopt(&record, true);
            assert_eq!(follower.voted_for().is_some(), takes);
            assert_eq!(follower.vote(&id("c"), &record.stamp), !takes);
            let mut assigner = rules();
            assigner.assign(&id("a"), None, 0);
            assert_eq!(assigner.voted_for().is_some(), takes);
            // An elected leader has the vote of its term, whatever becomes of assignments.
            let mut follower = rules();
            follower.adopt(&elected(5, "b"), true);
            assert!(!follower.vote(&id("c"), &term(5)));
            let mut leader = rules();
            leader.begin_vote(BTreeSet::new(), &term(0));
            leader.issue_epoch(0);
            assert_eq!(leader.voted_for(), Some(&id("m")));
        }
    }
}
