//! Reports that the leader's port is closed: true ones find a crash at once, and no other one changes the leader.

use room_core::time::Duration;

use super::rooms::*;
use crate::world::{Settings, World};

/// The silence after which a leader is lost without a report.
const SILENCE: Duration = ms(1_500);
const SEEDS: u64 = 60;

/// A settled room whose members' systems report closed ports.
fn room(seed: u64, size: usize, settings: Settings) -> World {
    let mut world = empty(seed, size, settings);
    world.closed_ports.are_reported = true;
    for slot in 0..size {
        world.start(slot);
        world.connect(slot, 0);
    }
    wait(&mut world, ms(15_000), "no first leader", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    let rest = world.between(ms(2_000), ms(2_600));
    world.run_for(rest);
    for slot in &mut world.slots {
        slot.reported.clear();
    }
    world
}

fn slow(delay_ms: (u64, u64)) -> Settings {
    Settings {
        delay: (ms(delay_ms.0), ms(delay_ms.1)),
        ..Settings::default()
    }
}

/// The times from a crash of the leader until the others agree, in order.
fn replaced_after(size: usize, settings: &Settings, change: impl Fn(&mut World)) -> Vec<Duration> {
    let mut times: Vec<_> = (0..SEEDS)
        .map(|seed| {
            let mut world = room(seed, size, settings.clone());
            change(&mut world);
            let leader = leader(&world);
            world.crash(leader);
            wait(&mut world, ms(8_000), "no next leader", |world| {
                world.agreed().is_some()
            })
        })
        .collect();
    times.sort();
    times
}

fn median(times: &[Duration]) -> Duration {
    times[times.len() / 2]
}

fn worst(times: &[Duration]) -> Duration {
    times[times.len() - 1]
}

/// Whether no host received any change.
fn is_undisturbed(world: &World) -> bool {
    world.slots.iter().all(|slot| slot.reported.is_empty())
}

#[test]
fn a_killed_leader_is_replaced_in_a_third_of_a_second() {
    for size in [2, 3, 5] {
        let near = replaced_after(size, &Settings::default(), |_| {});
        println!("{size}: {:?} {:?}", median(&near), worst(&near));
        assert!(median(&near) <= ms(400), "{size}: {near:?}");
        assert!(worst(&near) <= ms(750), "{size}: {near:?}");
        let far = replaced_after(size, &slow((25, 75)), |_| {});
        println!("{size} far: {:?} {:?}", median(&far), worst(&far));
        assert!(worst(&far) <= ms(1_400), "{size}: {far:?}");
    }
}

/// A game sends more packets than the dead leader's machine reports: the reports of packets that it has sent before the first
/// one arrives may be the last for a second.
#[test]
fn a_leader_that_is_killed_in_play_is_replaced_as_soon() {
    for per_second in [20, 60, 500] {
        for (delay, most) in [((1, 5), 750), ((25, 75), 1_200)] {
            let times = replaced_after(5, &slow(delay), |world| {
                world.closed_ports.play = Some(ms(1_000 / per_second));
            });
            let (median, worst) = (median(&times), worst(&times));
            println!("{per_second} a second, {delay:?}: {median:?} {worst:?}");
            assert!(
                worst <= ms(most),
                "{per_second} a second, {delay:?}: {times:?}"
            );
        }
    }
}

#[test]
fn a_machine_that_is_off_reports_nothing_and_is_lost_by_silence() {
    let times = replaced_after(5, &Settings::default(), |world| {
        world.closed_ports.are_reported = false;
    });
    assert!(
        times[0] >= ms(900) && worst(&times) <= ms(2_000),
        "{times:?}"
    );
}

#[test]
fn a_follower_without_reports_believes_no_other_member() {
    // One of two followers has no reports: the other one alone is no majority, and only asks it.
    let times = replaced_after(3, &Settings::default(), |world| {
        let leader = leader(world);
        let deaf = (0..3).find(|slot| *slot != leader);
        world.closed_ports.deaf = deaf.into_iter().collect();
    });
    println!("{times:?}");
    assert!(
        times[0] >= ms(900) && worst(&times) <= ms(2_500),
        "{times:?}"
    );
}

#[test]
fn another_members_word_makes_a_follower_ask_the_leader() {
    for seed in 0..SEEDS {
        let mut world = room(seed, 3, Settings::default());
        let leader = leader(&world);
        let one = (0..3).find(|slot| *slot != leader).expect("three");
        // Its evidence is forged: it asks the third member, which asks the leader, which lives.
        for _ in 0..40 {
            let sent = world.now;
            world.forge_refusal(one, leader, Some(sent));
            world.run_for(ms(1));
        }
        world.run_for(SILENCE * 2);
        expect(&world, world.agreed() == Some(leader), "another leader");
        let others = (0..3).filter(|slot| *slot != one);
        let undisturbed = others.filter(|slot| world.slots[*slot].reported.is_empty());
        expect(&world, undisturbed.count() == 2, "a host saw a change");
    }
}

#[test]
fn a_false_report_a_second_for_each_link_changes_nothing() {
    for (seed, delay) in [(1, (1, 5)), (2, (25, 75)), (3, (75, 225))] {
        for datagram_loss in [0.0, 0.05] {
            let mut world = room(seed, 5, slow(delay));
            world.datagram_loss = datagram_loss;
            world.stream_loss = datagram_loss;
            let until = world.now + ms(240_000);
            let mut reports = 0;
            while world.now < until {
                let slot = (reports % 5) as usize;
                let about = (slot + 1 + (reports / 5 % 4) as usize) % 5;
                let now = world.now;
                world.forge_refusal(slot, about, Some(now));
                reports += 1;
                world.run_for(ms(50)); // 20 links
            }
            expect(&world, reports >= 4_000, "too few reports");
            let what = format!("delay {delay:?}, loss {datagram_loss}");
            expect(&world, is_undisturbed(&world), &what);
        }
    }
}

/// The rooms, of 240, in which a host sees a change after the leader has stalled for so long.
fn changed_by_stalls(stall_ms: u64, are_reported: bool) -> u64 {
    let changed = |seed: &u64| {
        let mut world = room(*seed, 5, slow((25, 75)));
        world.closed_ports.are_reported = are_reported;
        world.stream_loss = 0.05;
        world.datagram_loss = 0.05;
        let leader = leader(&world);
        world.pause(leader);
        world.run_for(ms(stall_ms));
        world.resume(leader);
        world.run_for(ms(6_000));
        let kept = world.agreed() == Some(leader) && is_undisturbed(&world);
        expect(&world, world.agreed().is_some(), "no leader");
        !kept
    };
    (0..240).filter(changed).count() as u64
}

#[test]
fn a_leader_that_stalls_keeps_its_port_and_its_place_as_without_reports() {
    for (stall_ms, most) in [(400, 0), (700, 1)] {
        let changes = changed_by_stalls(stall_ms, true);
        assert!(changes <= most, "{changes} changes of {stall_ms} ms");
    }
    let (reported, silent) = (
        changed_by_stalls(1_200, true),
        changed_by_stalls(1_200, false),
    );
    println!("{reported} and {silent} changes of 1,200 ms");
    assert!(reported == silent && reported <= 60, "{reported} {silent}");
}

/// A router near one follower answers each of its packets falsely, and carries it all the same.
#[test]
fn a_follower_whose_every_packet_is_refused_falsely_disturbs_nobody_else() {
    for seed in 0..SEEDS {
        let mut world = room(seed, 5, Settings::default());
        let leader = leader(&world);
        let one = (0..5).find(|slot| *slot != leader).expect("five");
        world.closed_ports.lies = 1.0;
        world.closed_ports.deaf = (0..5).filter(|slot| *slot != one).collect();
        world.run_for(ms(30_000));
        let mut others = (0..5).filter(|slot| *slot != one);
        let undisturbed = others.all(|slot| world.slots[slot].reported.is_empty());
        expect(&world, undisturbed, "another host saw a change");
        world.closed_ports.lies = 0.0;
        wait(&mut world, ms(15_000), "it does not return", |world| {
            world.agreed() == Some(leader) && world.is_mesh()
        });
    }
}
