//! The four abnormal cases of the public system, conflicts, majorities, and the rules behind them.

use super::paxos::Ballot;
use super::role::{Acknowledged, Contact};
use super::*;
use MemberState as S;

fn world(voters: &[&str], seeds: usize) -> World {
    let mut world = World::new(1, voters, seeds, &[]);
    world.start_all();
    world.run(secs(15));
    world
}

/// Case 1: two members find the leader gone at once. The loser asked before the winner led: its election is on a
/// version that is decided.
#[test]
fn case_1_an_election_is_on_the_version_after_that_of_its_query() {
    for seed in 0..50 {
        let mut world = World::new(seed, &["a", "b", "c", "d", "e"], 1, &[]);
        world.start_all();
        world.run(secs(15));
        world.crash("a");
        world.run(secs(9));
        let (_, version) = world.agreed().unwrap_or_else(|why| panic!("{seed}: {why}"));
        assert_eq!(version, 2, "{seed}");
        assert_eq!(world.chosen.len(), 1, "{seed}");
    }
}

/// Case 2: the next alignment corrects everything that system messages out of order have left.
#[test]
fn case_2_messages_that_overtake_each_other_do_not_undo_a_state() {
    for seed in 0..50 {
        let mut world = World::new(seed, &["a", "b", "c", "d", "e"], 1, &["x", "y"]);
        world.strays = 20;
        world.start_all();
        world.run(secs(20));
        world.strays = 0;
        world.run(secs(3));
        world.agreed().unwrap_or_else(|why| panic!("{seed}: {why}"));
        for name in ["b", "c"] {
            let reported = world.reported(name, "x");
            let back = reported
                .windows(2)
                .any(|two| two == [S::Active, S::Joining]);
            assert!(!back, "{seed}: {reported:?}");
        }
    }
}

/// Case 4: a member that enters a cluster whose leader is relieved enters the other one at once.
#[test]
fn case_4_a_joiner_of_a_relieved_leader_enters_the_other_cluster_at_once() {
    let mut world = World::new(1, &["a", "b", "c"], 2, &["x"]);
    // Two separate first starts.
    world.part(&["b", "x"], 1);
    world.start("a");
    world.start("b");
    world.run(secs(5));
    assert_eq!(world.leaders(), ["a", "b"]);
    // "a" has the smaller address, and a joining member.
    world.part(&["x"], 0);
    world.start("x");
    world.run(ms(60));
    assert_eq!(world.member("a").member_state(&id("x")), S::Active);
    let input = ElectionInput::Message {
        from: id("a"),
        message: Based {
            basis: world.member("a").observation(),
            writes: 0,
            message: SeededMessage::ReJoinCluster {
                winner: world.member("b").claim().expect("it leads").clone(),
            },
        },
    };
    world.input("x", input);
    assert_eq!(world.member("x").observation(), Observation::default());
    world.heal();
    world.start("c");
    world.run(secs(4));
    assert_eq!(world.agreed(), Ok((id("b"), 1)));
}

#[test]
fn of_two_leaders_of_one_version_the_larger_address_stays() {
    let mut world = World::new(1, &["a", "b", "c"], 2, &["x", "y"]);
    world.part(&["b", "y"], 1);
    world.start_all();
    world.run(secs(10));
    assert_eq!(world.leaders(), ["a", "b"]);
    assert_eq!(world.member("x").observation().leader, Some(id("a")));
    assert_eq!(world.member("y").observation().leader, Some(id("b")));
    world.heal();
    // A heartbeat interval, and a rejoin: a retry interval and three round trips.
    world.run(ms(1000 + 2000 + 500));
    assert_eq!(world.agreed(), Ok((id("b"), 1)));
}

#[test]
fn an_elected_leader_stays_beside_one_that_leads_alone() {
    let claim = |leader: &str, version, elected| Claim {
        leader: id(leader),
        version,
        elected,
        address: leader.into(),
    };
    assert!(claim("a", 2, true).outranks(&claim("b", 2, false)));
    assert!(claim("a", 3, false).outranks(&claim("b", 2, true)));
    assert!(claim("b", 2, true).outranks(&claim("a", 2, true)));
    assert!(!claim("a", 2, true).outranks(&claim("a", 2, true)));
}

/// A leader without a majority resigns before any TTL ends, and the others elect one.
#[test]
fn a_leader_without_a_majority_resigns_and_the_majority_elects() {
    let mut world = World::new(1, &["a", "b", "c", "d", "e"], 1, &[]);
    world.rules.never_alone = true;
    world.start_all();
    world.run(secs(15));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world.part(&["a", "b"], 1);
    world.run(ms(2000 + 500));
    assert_eq!(
        world.leaders(),
        [""; 0],
        "the heartbeat timeout and a probe"
    );
    world.run(secs(6));
    let leaders = world.leaders();
    assert_eq!(leaders.len(), 1);
    assert!(["c", "d", "e"].contains(&leaders[0]));
    assert_eq!(world.member("a").observation().leader, None);
    world.heal();
    world.run(secs(4));
    let (_, version) = world.agreed().expect("one cluster");
    assert_eq!(version, 2);
}

/// Members receive from the leader, and it receives from none.
#[test]
fn a_leader_without_messages_resigns() {
    let mut world = world(&["a", "b", "c"], 1);
    for name in ["b", "c"] {
        world.cut.insert((name.to_owned(), "a".to_owned()));
    }
    world.run(ms(2500));
    assert!(!world.leaders().contains(&"a"));
}

/// The leader receives from its members, and none of them from it: their keep-alives show old answers.
#[test]
fn a_leader_without_acknowledgements_resigns_before_a_ttl_ends() {
    let mut world = world(&["a", "b", "c"], 1);
    for name in ["b", "c"] {
        world.cut.insert(("a".to_owned(), name.to_owned()));
    }
    world.run(ms(3500));
    assert!(!world.leaders().contains(&"a"));
    world.run(secs(6));
    assert_eq!(world.violations, [""; 0]);
}

#[test]
fn below_a_majority_a_seed_leads_alone_after_three_ttl_with_the_next_version() {
    let mut world = world(&["a", "b", "c"], 2);
    let (leader, _) = world.agreed().expect("one cluster");
    let seed = if leader == id("a") { "b" } else { "a" };
    for name in ["a", "b", "c"] {
        if name != seed {
            world.crash(name);
        }
    }
    let crashed = world.now;
    while world.leaders().is_empty() && world.now.since(crashed) < secs(20) {
        world.run(ms(100));
    }
    let took = world.now.since(crashed);
    assert!(took > ms(8000) && took < ms(9000 + 2000 + 1000), "{took:?}");
    assert_eq!(world.member(seed).observation().version, 2);
}

#[test]
fn below_a_majority_others_show_version_0_after_three_ttl() {
    let mut world = world(&["a", "b", "c"], 1);
    world.crash("a");
    world.crash("b");
    world.run(secs(8));
    assert_eq!(world.member("c").observation().version, 1);
    world.run(secs(4));
    assert_eq!(world.member("c").observation(), Observation::default());
    assert_eq!(world.reported("c", "c"), [S::Joining, S::Active, S::Init]);
    // Its votes are not undone.
    assert_eq!(world.member("c").decided(), 1);
}

#[test]
fn a_seed_that_must_not_lead_alone_waits_for_a_majority() {
    let mut world = World::new(1, &["a", "b", "c"], 1, &[]);
    world.rules.never_alone = true;
    world.start_all();
    world.run(secs(15));
    world.crash("b");
    world.crash("c");
    world.run(secs(60));
    assert_eq!(world.leaders(), [""; 0]);
    world.start("b");
    world.run(secs(9));
    let (_, version) = world.agreed().expect("a majority is back");
    assert_eq!(version, 2);
}

#[test]
fn at_a_strict_start_a_majority_elects_the_first_leader() {
    let mut world = World::new(1, &["a", "b", "c"], 1, &[]);
    world.rules.strict_start = true;
    world.start("a");
    world.run(secs(8));
    assert_eq!(world.leaders(), [""; 0]);
    world.start("b");
    world.run(secs(8));
    let (_, version) = world.agreed().expect("two of three");
    assert_eq!((version, world.chosen.len()), (1, 1));
}

/// A seed whose state file knows a version waits as below a majority (A3.7, 17).
#[test]
fn a_seed_that_was_in_a_cluster_does_not_lead_alone_at_its_next_start() {
    let mut world = world(&["a", "b", "c"], 1);
    for name in ["a", "b", "c"] {
        world.crash(name);
    }
    world.start("a");
    world.run(secs(8));
    assert_eq!(world.leaders(), [""; 0]);
    world.run(secs(5));
    assert_eq!(world.leaders(), ["a"]);
    assert_eq!(world.member("a").observation().version, 2);
}

#[test]
fn all_voters_that_restart_together_elect_a_leader() {
    let mut world = World::new(1, &["a", "b", "c"], 1, &[]);
    world.rules.never_alone = true;
    world.start_all();
    world.run(secs(15));
    for name in ["a", "b", "c"] {
        world.crash(name);
    }
    world.start_all();
    world.run(ms(2900));
    assert_eq!(
        world.leaders(),
        [""; 0],
        "they may have acknowledged one just before"
    );
    world.run(secs(8));
    let (_, version) = world.agreed().expect("one cluster");
    assert_eq!(version, 2);
}

#[test]
fn a_leader_that_leaves_is_replaced_without_waiting_for_the_ttl() {
    let mut world = world(&["a", "b", "c"], 1);
    world.leave("a");
    world.run(secs(2));
    let (_, version) = world.agreed().expect("one cluster");
    assert_eq!(version, 2);
}

#[test]
fn a_member_that_leaves_is_removed_at_once() {
    let mut world = world(&["a", "b", "c"], 1);
    world.leave("c");
    world.run(ms(50));
    let removed = [
        S::Joining,
        S::Active,
        S::Unreachable,
        S::Leaving,
        S::Removed,
    ];
    assert_eq!(world.reported("b", "c"), removed);
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
}

/// Members that are not in the roster join, and neither vote nor lead.
#[test]
fn members_beside_the_roster_do_not_count() {
    let mut world = World::new(1, &["a", "b", "c"], 1, &["v", "w", "x", "y", "z"]);
    world.rules.never_alone = true;
    world.start_all();
    world.run(secs(15));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world.crash("a");
    world.crash("b");
    world.run(secs(40));
    assert_eq!(world.leaders(), [""; 0]);
    world.start("b");
    world.run(secs(12));
    let (leader, version) = world.agreed().expect("two of three voters");
    assert!(["b", "c"].map(id).contains(&leader));
    assert_eq!(version, 2);
}

/// After two separate first starts each seed leads alone. A restarted voter may have acknowledged the previous leader.
#[test]
fn a_restarted_voter_acknowledges_another_leader_a_ttl_later() {
    let mut world = World::new(1, &["a", "b", "c"], 2, &[]);
    world.part(&["b"], 1);
    world.start_all();
    world.run(secs(10));
    assert_eq!(world.member("a").acknowledged_by(world.now), 2);
    assert_eq!(world.member("b").acknowledged_by(world.now), 1);
    world.crash("c");
    world.part(&["c"], 1);
    world.start("c");
    world.run(ms(2900));
    assert_eq!(world.member("c").observation().leader, Some(id("b")));
    assert_eq!(world.member("b").acknowledged_by(world.now), 1);
    world.run(ms(1500));
    assert_eq!(world.member("b").acknowledged_by(world.now), 2);
    assert_eq!(world.violations, [""; 0]);
}

#[test]
fn a_restarted_voter_acknowledges_the_leader_that_it_had_at_once() {
    let mut world = world(&["a", "b", "c"], 1);
    world.crash("c");
    world.run(secs(5));
    world.crash("b");
    world.start("b");
    for _ in 0..40 {
        world.run(ms(100));
        assert_eq!(world.leaders(), ["a"], "exactly a majority is left");
    }
}

/// With answers that old, a leader could count a voter whose TTL is nearly over.
#[test]
fn a_keep_alive_with_an_answer_older_than_the_heartbeat_timeout_is_no_acknowledgement() {
    let mut world = world(&["a", "b", "c"], 1);
    let now = world.now;
    for (age, acknowledged) in [(ms(1900), 2), (ms(2100), 1)] {
        let seeded = world.station_mut("a").seeded.as_mut().expect("it runs");
        let leader = seeded.leading_mut().expect("it leads");
        leader.contacts.clear();
        let answered_at = Time::ZERO + now.since(Time::ZERO + age);
        let shown = Acknowledged {
            at: now,
            answered_at,
        };
        let contact = Contact {
            at: now,
            acknowledged: Some(shown),
        };
        let _ = leader.contacts.insert(id("b"), contact);
        assert_eq!(world.member("a").acknowledged_by(now), acknowledged);
    }
}

#[test]
fn a_ballot_is_above_the_one_that_a_refusal_named() {
    let mut world = world(&["a", "b", "c"], 1);
    let version = world.member("c").kept().acceptor.open_version();
    world.crash("a");
    let counter = 50;
    let proposer = id("a");
    let own = world.station_mut("c").seeded.as_mut().expect("it runs");
    own.kept
        .acceptor
        .prepare(version, &Ballot { counter, proposer });
    while world.member("c").observation().leader.is_some() {
        world.run(ms(1));
    }
    // Its own ballot would be high enough.
    let now = world.now;
    let own = world.station_mut("c").seeded.as_mut().expect("it runs");
    own.campaign_at = now + secs(60);
    world.run(secs(12));
    assert_eq!(world.agreed(), Ok((id("b"), version)));
    assert_eq!(world.violations, [""; 0]);
}
