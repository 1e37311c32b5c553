//! A leader in doubt (G17) in rooms of each kind. Where members may not doubt their leader, a run is the same with doubts and
//! without, event for event. Everywhere else a leader that is back in time stays, and doubts make no election later.

use std::collections::BTreeSet;

use room_core::election::Recovery;
use room_core::election::guards::Guards;
use room_core::election::raft::Raft;
use room_core::election::rules::RoleKind;
use room_core::membership::RELAY_GRACE;
use room_core::node::Command;
use room_core::time::Duration;

use super::rooms::*;
use super::stalls::{after_a_stall, calm_down, far, is_disturbed, worsen};
use super::statics::keep_key;
use crate::world::{Settings, World};

const NO_DOUBTS: Guards = Guards {
    doubts: false,
    ..Guards::ALL
};
const NO_LATE_PROBES: Guards = Guards {
    late_probes: false,
    ..Guards::ALL
};
const SEEDS: u64 = 60;
/// Rooms whose leader stalls, and the most of them in which a host may see a change.
const STALLS: u64 = 240;
const MOST_CHANGES: u64 = 60;
const MOST_CHANGES_OF_A_ROSTER: u64 = 85;
/// The heartbeat timeout, after which a leader is lost or in doubt, and the longest doubt.
const TIMEOUT: Duration = ms(1_500);
const DOUBT: Duration = ms(500);
/// Difference between two runs that draw other delays.
const SLACK: Duration = ms(60);

/// Builds the room of a seed.
type Build = fn(u64, Guards) -> World;

fn near(guards: Guards) -> Settings {
    Settings {
        guards,
        ..Settings::default()
    }
}

/// A settled room whose last members are observers.
fn with_observers(seed: u64, voters: usize, observers: usize, settings: Settings) -> World {
    let mut world = empty(seed, voters + observers, settings);
    for slot in &mut world.slots[voters..] {
        slot.eligible = false;
    }
    settle(&mut world);
    world
}

/// A settled room whose roster is that many places, the last of them absent.
fn with_a_roster(seed: u64, voters: usize, absent: usize, settings: Settings) -> World {
    let settings = Settings {
        roster: Some((0..voters).collect::<BTreeSet<_>>()),
        ..settings
    };
    let mut world = empty(seed, voters, settings);
    for slot in 0..voters - absent {
        keep_key(&mut world, slot);
        world.start(slot);
        world.connect(slot, 0);
    }
    wait(&mut world, ms(15_000), "no first leader", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world.run_for(ms(3_000));
    world
}

/// A settled room whose leader a host has named.
fn with_a_named_leader(seed: u64, guards: Guards) -> World {
    let settings = Settings {
        recovery: Recovery::AutoElect,
        ..near(guards)
    };
    let mut world = settled(seed, 5, settings);
    let (caller, target) = (seed as usize % 5, (seed as usize + 2) % 5);
    let id = world.slots[target].id.clone();
    order(&mut world, caller, Command::SetLeader(id));
    world.run_for(ms(4_000));
    world
}

/// The machine of the leader loses its power, at some moment between two heartbeats. Returns its place.
fn lose_power(world: &mut World) -> usize {
    let rest = world.between(ms(0), ms(500));
    world.run_for(rest);
    forget_reported(world);
    let leader = leader(world);
    world.crash(leader);
    leader
}

/// The time after which each other member lost its silent leader.
fn lost_after(world: &mut World) -> Vec<Duration> {
    let dead = lose_power(world);
    let from = world.now;
    world.run_for(ms(10_000));
    expect(world, true, "");
    let others = world.slots.iter().enumerate();
    let others = others.filter(|(slot, place)| *slot != dead && place.process.is_some());
    others
        .filter_map(|(_, place)| Some(place.reported.first()?.0.since(from)))
        .collect()
}

/// A dead leader is lost at the heartbeat timeout, and the run is the same without doubts.
fn is_not_doubted(build: Build) {
    for seed in 0..SEEDS {
        let runs = [Guards::ALL, NO_DOUBTS].map(|guards| {
            let mut world = build(seed, guards);
            let lost = lost_after(&mut world);
            let members = world.running().len();
            expect(&world, lost.len() == members, "a member kept its leader");
            let in_time = lost.iter().all(|after| *after <= TIMEOUT + RTT);
            expect(&world, in_time, "lost after the timeout");
            world.hash.value()
        });
        assert_eq!(runs[0], runs[1], "seed {seed}: a doubt changed something");
    }
}

/// The times from the loss of the leader's power until the others agree on the next one.
fn replaced_after(build: Build, guards: Guards) -> Vec<Duration> {
    let times = (0..SEEDS).map(|seed| {
        let mut world = build(seed, guards);
        lose_power(&mut world);
        wait(&mut world, ms(12_000), "no next leader", |world| {
            world.agreed().is_some()
        })
    });
    times.collect()
}

/// Doubts make no election later, and some member doubts its leader.
fn elects_no_later(build: Build) {
    let [with, without] = [Guards::ALL, NO_DOUBTS].map(|guards| {
        let (median, worst) = median_and_worst(replaced_after(build, guards));
        println!("doubts {}: {median:?}, {worst:?}", guards.doubts);
        (median, worst)
    });
    assert!(with.0 <= without.0 + SLACK, "median {with:?}, {without:?}");
    assert!(
        with.1 <= without.1 + SLACK * 2,
        "worst {with:?}, {without:?}"
    );
    let mut world = build(0, Guards::ALL);
    lose_power(&mut world);
    world.run_for(ms(4_000));
    expect(&world, world.sometimes.leaders_doubted > 0, "no doubt");
}

/// The rooms in which a host sees a change after the leader has stalled for 1.2 s.
fn changes(build: Build, guards: Guards) -> u64 {
    let is_changed = |seed: &u64| {
        let mut world = build(*seed, guards);
        worsen(&mut world);
        after_a_stall(&mut world, 1_200);
        is_disturbed(&world)
    };
    (0..STALLS).filter(is_changed).count() as u64
}

/// A leader that is back in time stays in most rooms, and without doubts in fewer.
fn is_spared(build: Build, most: u64) {
    let (with, without) = (changes(build, Guards::ALL), changes(build, NO_DOUBTS));
    println!("{with} changes, {without} without doubts");
    assert!(with <= most, "{with}");
    assert!(without >= with + STALLS / 10, "{with}, {without}");
}

/// Of two voters the other one has no member to ask: it goes on alone as early as without doubts.
#[test]
fn g17_of_two_voters_none_doubts_the_other() {
    is_not_doubted(|seed, guards| settled(seed, 2, near(guards)));
}

/// Two of five receive nothing from the leader's side, which receives them: the leader that they elect leads no other member (P14).
#[test]
fn g17_members_that_receive_nothing_from_the_leader_do_not_depose_it() {
    for seed in 0..SEEDS {
        let mut world = settled(seed, 5, near(Guards::ALL));
        let leader = leader(&world);
        let (deaf, others): (Vec<_>, Vec<_>) =
            (0..5).partition(|slot| [1, 2].contains(&((slot + 5 - leader) % 5)));
        for other in &others {
            for one in &deaf {
                world.cut(*other, *one);
            }
        }
        let term = world.term(leader);
        for slot in &mut world.slots {
            slot.reported.clear();
        }
        world.run_for(ms(6_000));
        let shown = world.node(leader).and_then(|node| node.leader());
        let is_kept = shown == Some(&world.slots[leader].id) && world.term(leader) == term;
        expect(&world, is_kept, "the deaf members have deposed the leader");
        let undisturbed = others
            .iter()
            .all(|slot| world.slots[*slot].reported.is_empty());
        expect(&world, undisturbed, "a host saw a change");
        expect(&world, world.sometimes.leaders_doubted > 0, "no doubt");
    }
}

/// No member asks for votes beside a leader that a host has named (P7).
#[test]
fn g17_a_leader_that_a_host_named_is_not_doubted() {
    is_not_doubted(with_a_named_leader);
}

/// Observers elect no other leader, so they do not wait for one.
#[test]
fn g17_observers_do_not_doubt_the_only_voter() {
    is_not_doubted(|seed, guards| with_observers(seed, 1, 3, near(guards)));
}

/// A roster whose other voters are absent elects no other leader.
#[test]
fn g17_the_last_other_voter_of_a_roster_does_not_doubt_its_leader() {
    is_not_doubted(|seed, guards| with_a_roster(seed, 3, 1, near(guards)));
}

#[test]
fn g17_doubts_make_no_election_later() {
    elects_no_later(|seed, guards| settled(seed, 3, near(guards)));
    elects_no_later(|seed, guards| settled(seed, 5, far(guards)));
}

#[test]
fn g17_doubts_of_observers_make_no_election_later() {
    elects_no_later(|seed, guards| with_observers(seed, 2, 2, near(guards)));
    elects_no_later(|seed, guards| with_observers(seed, 3, 2, near(guards)));
}

#[test]
fn g17_doubts_make_no_election_of_a_static_quorum_later() {
    elects_no_later(|seed, guards| with_a_roster(seed, 3, 0, near(guards)));
    elects_no_later(|seed, guards| with_a_roster(seed, 5, 1, near(guards)));
}

/// An observer neither votes nor campaigns, keeps a leader in doubt no longer than voters may, and never shows it again.
#[test]
fn g17_an_observer_with_a_leader_in_doubt_takes_no_part_and_loses_it_in_time() {
    for seed in 0..SEEDS {
        let mut world = with_observers(seed, 3, 2, near(Guards::ALL));
        let dead = lose_power(&mut world);
        let (from, id) = (world.now, world.slots[dead].id.clone());
        for _ in 0..60 {
            world.run_for(ms(50));
            let idle = |slot: usize| {
                let raft = world
                    .node(slot)
                    .and_then(|node| node.election().of::<Raft>());
                raft.is_some_and(|raft| {
                    let rules = raft.rules();
                    let voted = rules.record().leader.is_none() && rules.voted_for().is_some();
                    rules.role() == RoleKind::Follower && !voted
                })
            };
            expect(&world, idle(3) && idle(4), "an observer takes part");
        }
        for slot in [3, 4] {
            let reported = &world.slots[slot].reported;
            let ended = reported.first().map(|(at, _)| at.since(from));
            let in_time = ended.is_some_and(|after| after <= TIMEOUT + DOUBT + RTT);
            expect(&world, in_time, "an observer kept a dead leader");
            let again = reported
                .iter()
                .any(|(_, leader)| leader.as_ref() == Some(&id));
            expect(&world, !again, "an observer shows a dead leader again");
        }
    }
}

/// Where no majority of the roster is left, members lose their leader when the doubt is over, and none leads.
#[test]
fn g17_without_a_majority_of_the_roster_a_doubt_ends_in_no_leader() {
    for seed in 0..SEEDS {
        // Three of five are present; two are left.
        let mut world = with_a_roster(seed, 5, 2, near(Guards::ALL));
        let lost = lost_after(&mut world);
        expect(&world, lost.len() == 2, "a member kept its leader");
        let in_time = lost.iter().all(|after| *after <= TIMEOUT + DOUBT + RTT);
        expect(&world, in_time, "a member kept a dead leader");
        expect(&world, world.leaders().is_empty(), "a minority elected");
    }
}

#[test]
fn g17_beside_observers_a_leader_that_stalls_stays() {
    is_spared(
        |seed, guards| with_observers(seed, 3, 2, far(guards)),
        MOST_CHANGES,
    );
}

#[test]
fn g17_a_leader_of_a_static_quorum_that_stalls_stays() {
    is_spared(
        |seed, guards| with_a_roster(seed, 5, 0, far(guards)),
        MOST_CHANGES_OF_A_ROSTER,
    );
}

/// The room after a stall of its leader in which a follower stands still as well, for some time in or after it.
fn after_two_stalls(world: &mut World, late: usize, from_ms: u64, for_ms: u64) {
    const STALL_MS: u64 = 1_200;
    let leader = leader(world);
    let mut steps = [
        (STALL_MS, leader, false),
        (from_ms, late, true),
        (from_ms + for_ms, late, false),
    ];
    steps.sort_unstable();
    world.pause(leader);
    let began = world.now;
    for (at, slot, pauses) in steps {
        world.run_until(began + ms(at));
        match pauses {
            true => world.pause(slot),
            false => world.resume(slot),
        }
    }
    calm_down(world);
}

/// A follower that stands still itself has missed nothing but its own probes: it deposes no leader that is back in time.
#[test]
fn g17_a_follower_that_is_late_itself_deposes_no_leader_that_stalls() {
    for (from_ms, for_ms) in [(300, 700), (700, 700), (900, 300), (1_100, 500)] {
        let changed = |guards| {
            let is_changed = |seed: &u64| {
                let mut world = settled(*seed, 5, far(guards));
                worsen(&mut world);
                let late = (leader(&world) + 1 + *seed as usize % 4) % 5;
                after_two_stalls(&mut world, late, from_ms, for_ms);
                is_disturbed(&world)
            };
            (0..STALLS).filter(is_changed).count() as u64
        };
        let (with, without) = (changed(Guards::ALL), changed(NO_LATE_PROBES));
        println!("late from {from_ms} ms for {for_ms} ms: {with}, {without} without its probes");
        assert!(with <= MOST_CHANGES, "{with}");
        assert!(with <= without, "{with}, {without}");
    }
}

/// The only other voter of three stands still beside a leader that has died. The next one leads later by the time of its probes,
/// at most: seven round trips, and at least 100 ms.
#[test]
fn g17_a_late_follower_beside_a_dead_leader_delays_the_next_one_by_its_probes() {
    let replaced = |guards, for_ms| {
        let times = (0..SEEDS).map(|seed| {
            let mut world = settled(seed, 3, near(guards));
            let dead = lose_power(&mut world);
            let late = (dead + 1) % 3;
            world.run_for(ms(1_000));
            world.pause(late);
            world.run_for(ms(for_ms));
            world.resume(late);
            wait(&mut world, ms(8_000), "no next leader", |world| {
                world.agreed().is_some()
            })
        });
        median_and_worst(times.collect())
    };
    for for_ms in [300, 600, 900] {
        let (with, without) = (
            replaced(Guards::ALL, for_ms),
            replaced(NO_LATE_PROBES, for_ms),
        );
        println!("late for {for_ms} ms: {with:?}, {without:?} without its probes");
        let probes = ms(100).max(RTT * 7);
        assert!(
            with.0 <= without.0 + probes + SLACK,
            "{with:?}, {without:?}"
        );
        assert!(
            with.1 <= without.1 + probes + SLACK * 2,
            "{with:?}, {without:?}"
        );
    }
}

/// A settled room of four, of which one relay alone carries the links of the leader, place 0.
fn behind_a_relay(seed: u64, guards: Guards) -> World {
    let mut world = empty(seed, 4, near(guards));
    world.model_paths();
    world.set_relays(&[(0, 0), (0, 1), (0, 2), (0, 3)]);
    for slot in 1..4 {
        world.put_up_wall(0, slot, false, false);
    }
    for slot in 0..4 {
        keep_key(&mut world, slot);
        world.start(slot);
    }
    for slot in [2, 3] {
        world.connect(slot, 1);
    }
    let is_whole = |world: &World| world.agreed().is_some() && world.is_mesh();
    wait(&mut world, ms(30_000), "no first leader", is_whole);
    world.run_for(ms(3_000));
    let first = leader(&world);
    if first != 0 {
        let id = world.slots[0].id.clone();
        order(&mut world, first, Command::TransferLeadership(id));
        wait(&mut world, ms(3_000), "it does not lead", |world| {
            world.agreed() == Some(0)
        });
        world.run_for(ms(3_000));
    }
    for slot in 1..4 {
        let relayed = world.count_for_each_other(0, slot) && !world.is_linked(0, slot);
        expect(&world, relayed, "a direct link to the leader");
    }
    world
}

/// The leader dies, and so does its relay, a moment before or after. Returns the time until another one leads.
fn both_die(seed: u64, guards: Guards, relay_first: bool, apart_ms: u64) -> Duration {
    let mut world = behind_a_relay(seed, guards);
    if relay_first {
        world.relay_falls(0);
        world.run_for(ms(apart_ms));
    }
    lose_power(&mut world);
    let from = world.now;
    if !relay_first {
        world.run_for(ms(apart_ms));
        world.relay_falls(0);
    }
    wait(&mut world, ms(12_000), "no next leader", |world| {
        world.agreed().is_some_and(|leader| leader != 0)
    });
    world.now.since(from)
}

/// A leader that a fallen relay carried is waited for until the grace is over. A doubt adds nothing to that, and one that has begun
/// begins no grace.
#[test]
fn g17_a_leader_that_dies_with_its_relay_is_replaced_as_early_as_without_doubts() {
    for (relay_first, apart_ms) in [(true, 300), (true, 0), (false, 300), (false, 650)] {
        let [with, without] = [Guards::ALL, NO_DOUBTS].map(|guards| {
            let times = (0..SEEDS).map(|seed| both_die(seed, guards, relay_first, apart_ms));
            median_and_worst(times.collect())
        });
        println!(
            "relay first {relay_first}, {apart_ms} ms apart: {with:?}, {without:?} without doubts"
        );
        assert!(with.0 <= without.0 + SLACK, "median {with:?}, {without:?}");
        assert!(
            with.1 <= without.1 + SLACK * 2,
            "worst {with:?}, {without:?}"
        );
        let latest = RELAY_GRACE + TIMEOUT + ms(1_000);
        assert!(with.1 <= latest, "{with:?}");
    }
}
