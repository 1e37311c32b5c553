//! The public system's own tests (`TestEnvoy`), by their numbers in `docs/scenarios.md`.

use super::*;
use MemberState as S;

const REMOVED: [S; 3] = [S::Unreachable, S::Leaving, S::Removed];

fn started(voters: &[&str], seeds: usize) -> World {
    let mut world = World::new(1, voters, seeds, &[]);
    world.start_all();
    world.run(secs(15));
    world
}

#[test]
fn t4_survivors_elect_the_next_leader_and_see_the_old_one_removed_once() {
    let mut world = started(&["a", "b", "c"], 1);
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world.crash("a");
    world.run(secs(9));
    let (leader, version) = world.agreed().expect("one cluster");
    assert_ne!(leader, id("a"));
    assert_eq!(version, 2);
    for name in ["b", "c"] {
        assert_eq!(
            world.reported(name, "a"),
            [vec![S::Joining, S::Active], REMOVED.into()].concat()
        );
    }
}

#[test]
fn t5_every_member_sees_every_change_of_every_other_once() {
    let names = ["a", "b", "c", "d", "e"];
    let mut world = World::new(1, &names, 1, &[]);
    for name in names {
        world.start(name);
        world.run(secs(3));
    }
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    for gone in ["e", "d"] {
        world.crash(gone);
        world.run(secs(9));
    }
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    for name in ["a", "b", "c"] {
        for other in names {
            let mut expected = vec![S::Joining, S::Active];
            if ["e", "d"].contains(&other) {
                expected.extend(REMOVED);
            }
            assert_eq!(world.reported(name, other), expected, "{name} of {other}");
        }
    }
}

#[test]
fn t6_members_that_start_one_by_one_are_one_cluster_of_version_1() {
    for seed in 0..20 {
        let names = ["a", "b", "c", "d", "e"];
        let mut world = World::new(seed, &names, 1, &["x"]);
        let mut order = world.names();
        for index in (1..order.len()).rev() {
            let other = world.rng.random_range(0..=index);
            order.swap(index, other);
        }
        for name in &order {
            world.start(name);
            world.run(secs(1));
        }
        world.run(secs(10));
        assert_eq!(world.agreed(), Ok((id("a"), 1)), "{seed}: {order:?}");
    }
}

#[test]
fn t7_the_seed_starts_first() {
    let mut world = World::new(1, &["a", "b", "c", "d"], 1, &[]);
    world.start("a");
    world.run(secs(2));
    for name in ["b", "c", "d"] {
        world.start(name);
    }
    world.run(secs(10));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
}

#[test]
fn t8_the_seed_starts_last() {
    let mut world = World::new(1, &["a", "b", "c", "d"], 1, &[]);
    for name in ["b", "c", "d"] {
        world.start(name);
    }
    world.run(secs(20));
    assert_eq!(world.leaders(), [""; 0]);
    for name in ["b", "c", "d"] {
        let observed = world.member(name).observation();
        assert_eq!(observed, Observation::default(), "{name}");
    }
    world.start("a");
    world.run(secs(10));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
}

#[test]
fn t9_all_start_together() {
    for seed in 0..20 {
        let mut world = World::new(seed, &["a", "b", "c", "d", "e"], 1, &["x", "y"]);
        world.start_all();
        world.run(secs(15));
        assert_eq!(world.agreed(), Ok((id("a"), 1)), "{seed}");
    }
}

#[test]
fn t11_seeds_alone_become_one_cluster_of_version_1() {
    for seed in 0..20 {
        let names = ["a", "b", "c", "d", "e"];
        let mut world = World::new(seed, &names, 5, &[]);
        for name in names {
            world.start(name);
            let pause = world.rng.random_range(0..=1000);
            world.run(ms(pause));
        }
        world.run(secs(20));
        let (_, version) = world.agreed().unwrap_or_else(|why| panic!("{seed}: {why}"));
        assert_eq!(version, 1, "{seed}");
    }
}

#[test]
fn t13_t15_followers_that_stop_change_no_version_and_leaders_count_it_up() {
    let names = ["a", "b", "c", "d", "e"];
    let mut world = started(&names, 1);
    world.crash("b");
    world.run(secs(9));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world.crash("a");
    world.run(secs(9));
    let (leader, version) = world.agreed().expect("exactly a majority is left");
    assert!(["c", "d", "e"].map(id).contains(&leader));
    assert_eq!(version, 2);
}

#[test]
fn t14_below_a_majority_there_is_no_leader() {
    let names = ["a", "b", "c", "d", "e"];
    let mut world = World::new(1, &names, 1, &[]);
    world.rules.never_alone = true;
    world.start_all();
    world.run(secs(15));
    for version in 2..=3 {
        let (leader, _) = world.agreed().expect("one cluster");
        world.crash(leader.as_str());
        world.run(secs(9));
        let (_, now) = world.agreed().expect("one cluster");
        assert_eq!(now, version);
    }
    let (leader, _) = world.agreed().expect("one cluster");
    world.crash(leader.as_str());
    for _ in 0..60 {
        world.run(secs(1));
        assert_eq!(world.leaders(), [""; 0]);
    }
    assert_eq!(world.violations, [""; 0]);
}

#[test]
fn t16_a_restarted_member_comes_back_and_only_a_leader_counts_the_version_up() {
    let names = ["a", "b", "c", "d", "e"];
    let mut world = started(&names, 2);
    let mut version = 1;
    for name in names {
        let (leader, _) = world.agreed().expect("one cluster");
        version += u64::from(leader == id(name));
        world.crash(name);
        world.run(secs(9));
        let seen = world
            .agreed()
            .unwrap_or_else(|why| panic!("{name} is down: {why}"));
        assert_eq!(seen.1, version, "{name} is down");
        world.start(name);
        world.run(secs(9));
        let seen = world
            .agreed()
            .unwrap_or_else(|why| panic!("{name} is back: {why}"));
        assert_eq!(seen.1, version, "{name} is back");
    }
}

#[test]
fn t21_a_member_that_restarts_at_once_is_taken_in_at_once() {
    let mut world = started(&["a", "b", "c"], 1);
    world.crash("b");
    world.start("b");
    world.run(secs(1));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    let anew = [S::Joining, S::Active];
    let reported = [anew.to_vec(), REMOVED.into(), anew.to_vec()].concat();
    assert_eq!(world.reported("a", "b"), reported);
    assert_eq!(world.reported("c", "b"), reported);
}

/// T2: slow heartbeats make members unreachable once, and active again.
#[test]
fn t2_members_recover_from_unreachable() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut world = World::new(1, &names, 1, &["x", "y"]);
    world.rules.intervals.ttl_timeout_ms = 10_000;
    world.start_all();
    world.run(secs(15));
    for name in ["x", "y"] {
        world.cut.insert((name.to_owned(), "a".to_owned()));
    }
    world.run(ms(3600));
    assert_eq!(world.member("b").member_state(&id("x")), S::Unreachable);
    world.cut.clear();
    world.run(secs(3));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    for of in ["x", "y"] {
        let reported = [S::Joining, S::Active, S::Unreachable, S::Active];
        assert_eq!(world.reported("a", of), reported);
        assert_eq!(world.reported("b", of), reported);
    }
}
