//! Named situations: one fault each, over many seeds of everything else.

use room_core::node::{Command, Event, Left, LeftReason, LinkEnd};
use room_core::time::Duration;

use super::rooms::*;
use crate::world::{Settings, World};

#[test]
fn r7_one_node_leads_from_its_first_timeout() {
    for seed in 0..50 {
        let mut world = empty(seed, 1, Settings::default());
        world.start(0);
        let took = wait(&mut world, ms(3_001), "no leader", |world| {
            world.leaders() == [0]
        });
        expect(&world, took >= ms(1_500), "led before its timeout");
        expect(&world, world.term(0) == 1, "more than one term");
    }
}

#[test]
fn r33_five_nodes_that_start_together_have_a_leader_within_two_timeouts() {
    for seed in 0..50 {
        let mut world = empty(seed, 5, Settings::default());
        for slot in 0..5 {
            world.start(slot);
        }
        for slot in 0..5 {
            world.connect(slot, (slot + 1) % 5);
        }
        wait(&mut world, ms(6_000), "no leader", |world| {
            world.agreed().is_some()
        });
        world.run_for(ms(3_000));
        leader(&world);
    }
}

#[test]
fn a_joiner_that_is_connecting_does_not_lead_before_its_grace() {
    for seed in 0..50 {
        let mut world = empty(seed, 2, Settings::default());
        world.start(0);
        world.connect(0, 1); // no process there yet
        world.run_for(ms(2_990));
        expect(&world, world.leaders().is_empty(), "led while connecting");
        wait(
            &mut world,
            ms(1_000),
            "no leader after the grace",
            |world| world.leaders() == [0],
        );
    }
}

#[test]
fn a_joiner_follows_the_leader_that_it_finds() {
    for seed in 0..50 {
        let mut world = empty(seed, 4, Settings::default());
        world.slots[3].rename("zzz");
        for slot in 0..3 {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(15_000), "no first leader", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        world.run_for(ms(2_000));
        let first = leader(&world);
        let follower = (first + 1) % 3;
        forget_reported(&mut world);
        world.start(3);
        world.connect(3, follower);
        world.run_for(ms(10_000));
        expect(
            &world,
            world.agreed() == Some(first) && world.is_mesh(),
            "another leader",
        );
        for slot in 0..3 {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "joining changed the leader",
            );
        }
        expect(
            &world,
            reported(&world, 3).len() == 1,
            "the joiner was notified of more than the leader",
        );
    }
}

/// C5 and P16: the epoch of a node that never had a peer does not count.
#[test]
fn a_lone_host_stays_when_a_joiner_with_a_larger_id_and_a_larger_record_comes() {
    for seed in 0..50 {
        let mut world = empty(seed, 2, Settings::default());
        world.slots[0].rename("aaa");
        world.slots[1].rename("zzz");
        world.start(0);
        world.run_for(ms(3_100));
        world.start(1);
        world.run_for(ms(3_100));
        let oneself = world.slots[1].id.clone();
        order(&mut world, 1, Command::SetLeader(oneself));
        host_stays(&mut world);
    }
}

#[test]
fn a_lone_host_stays_when_a_joiner_with_a_larger_id_and_a_larger_term_comes() {
    for seed in 0..50 {
        let mut world = empty(seed, 3, Settings::default());
        world.slots[0].rename("aaa");
        world.slots[1].rename("zzz");
        world.start(0);
        world.run_for(ms(3_100));
        // Cuts from its own guest raise the joiner's term.
        world.start(1);
        world.start(2);
        world.connect(1, 2);
        world.run_for(ms(6_000));
        for _ in 0..2 {
            world.cut_both(1, 2);
            world.run_for(ms(5_000));
            world.mend_both(1, 2);
            world.run_for(ms(5_000));
        }
        world.crash(2);
        world.run_for(ms(6_000));
        expect(&world, world.leaders() == [0, 1], "they do not lead apart");
        expect(
            &world,
            world.term(1) > world.term(0),
            "the joiner's term is not larger",
        );
        host_stays(&mut world);
    }
}

fn host_stays(world: &mut World) {
    forget_reported(world);
    world.connect(1, 0);
    world.run_for(ms(6_000));
    expect(world, world.agreed() == Some(0), "the host does not lead");
    expect(
        world,
        reported(world, 0).is_empty(),
        "the host was notified of another leader",
    );
    expect(
        world,
        reported(world, 1) == [Some("aaa")],
        "the joiner wavered",
    );
}

/// C5: the cut is healed by the redials of the core alone.
#[test]
fn hc2_two_players_that_both_led_in_a_cut_go_back_to_the_first_leader() {
    for seed in 0..50 {
        for names in [["aaa", "zzz"], ["zzz", "aaa"]] {
            let mut world = empty(seed, 2, Settings::default());
            world.slots[0].rename(names[0]);
            world.slots[1].rename(names[1]);
            world.start(0);
            world.run_for(ms(3_100));
            world.start(1);
            world.connect(1, 0);
            world.run_for(ms(2_000));
            expect(&world, world.agreed() == Some(0), "the first player leads");
            forget_reported(&mut world);
            world.cut_both(0, 1);
            world.run_for(ms(5_000));
            expect(&world, world.leaders() == [0, 1], "both lead in the cut");
            world.mend_both(0, 1);
            world.calm_since = Some(world.now);
            wait(&mut world, ms(4_500), "not healed", |world| {
                world.agreed() == Some(0)
            });
            world.run_for(ms(5_000));
            expect(&world, world.agreed() == Some(0), "another leader");
            expect(
                &world,
                reported(&world, 0).is_empty(),
                "the first leader was replaced",
            );
            let expected = [None, Some(names[1]), Some(names[0])];
            expect(
                &world,
                reported(&world, 1) == expected,
                "the second player wavered",
            );
        }
    }
}

/// C5, C6: an isolated member elects itself, and returns without any trace at the others.
#[test]
fn a_returning_isolated_member_never_changes_the_leader_of_the_rest() {
    for seed in 0..50 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let lost = (first + 1 + seed as usize % 4) % 5;
        forget_reported(&mut world);
        isolate(&mut world, lost);
        world.run_for(ms(5_000));
        expect(
            &world,
            world.leaders().len() == 2,
            "the isolated one leads alone",
        );
        rejoin(&mut world, lost);
        world.calm_since = Some(world.now);
        wait(&mut world, ms(6_000), "not healed", |world| {
            world.agreed() == Some(first) && world.is_mesh()
        });
        world.run_for(ms(5_000));
        for slot in (0..5).filter(|slot| *slot != lost) {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "a member of the rest was notified",
            );
        }
        expect(
            &world,
            reported(&world, lost).len() == 3,
            "the returning member wavered",
        );
    }
}

#[test]
fn hc4_a_minority_of_two_never_changes_the_leader_of_three() {
    for seed in 0..50 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let minority = [(first + 1) % 5, (first + 2) % 5];
        let majority: Vec<usize> = (0..5).filter(|slot| !minority.contains(slot)).collect();
        forget_reported(&mut world);
        for a in minority {
            for b in &majority {
                world.cut_both(a, *b);
            }
        }
        world.run_for(ms(10_000));
        expect(&world, world.leaders().len() == 2, "each side has a leader");
        for a in minority {
            for b in &majority {
                world.mend_both(a, *b);
            }
        }
        world.calm_since = Some(world.now);
        wait(&mut world, ms(5_000), "not linked again", World::is_mesh);
        // P10: no timeout is involved.
        wait(&mut world, RTT * 4, "not healed", |world| {
            world.agreed() == Some(first)
        });
        world.run_for(ms(5_000));
        expect(
            &world,
            world.agreed() == Some(first) && world.is_mesh(),
            "another leader",
        );
        for slot in majority {
            expect(
                &world,
                reported(&world, slot).is_empty(),
                "a member of the majority was notified",
            );
        }
    }
}

#[test]
fn a_crashed_leader_is_replaced_in_time() {
    for size in [3, 5] {
        let mut times = Vec::new();
        for seed in 0..50 {
            let mut world = settled(seed, size, Settings::default());
            let wait_a_bit = ms(seed * 37 % 500);
            world.run_for(wait_a_bit);
            let first = leader(&world);
            world.crash(first);
            times.push(wait(&mut world, ms(3_500), "no new leader", |world| {
                world.agreed().is_some()
            }));
            let second = world.agreed();
            world.run_for(ms(3_000));
            expect(
                &world,
                world.agreed() == second,
                "the new leader did not stay",
            );
        }
        let (median, worst) = median_and_worst(times);
        println!("crash of the leader, {size} nodes: median {median:?}, worst {worst:?}");
        assert!(median <= ms(2_000), "median {median:?}");
    }
}

#[test]
fn o16_a_leader_that_leaves_is_followed_by_its_successor() {
    for size in [2, 3, 5, 7] {
        let mut times = Vec::new();
        for seed in 0..50 {
            let mut world = settled(seed, size, Settings::default());
            let first = leader(&world);
            let successor = (0..size).filter(|slot| *slot != first);
            let successor = successor.max_by_key(|slot| world.slots[*slot].id.clone());
            world.leave(first);
            let bound = SUCCESSION + RTT * 3;
            times.push(wait(&mut world, bound, "no successor in time", |world| {
                let agreed = world.agreed();
                agreed.is_some() && agreed != Some(first)
            }));
            expect(
                &world,
                world.agreed() == successor,
                "another one than the successor leads",
            );
            world.run_for(ms(3_000));
            expect(
                &world,
                world.agreed() == successor,
                "the successor did not stay",
            );
            for slot in (0..size).filter(|slot| *slot != first) {
                let left = world.slots[slot].events.iter().any(|(_, event)| {
                    matches!(event, Event::Left(Left { peer, why: LeftReason::Left, .. }) if *peer == world.slots[first].id)
                });
                expect(&world, left, "the leave was not taken as one");
            }
        }
        let (median, worst) = median_and_worst(times);
        println!("the leader of {size} leaves: median {median:?}, worst {worst:?}");
    }
}

const SUCCESSION: Duration = ms(300);

/// Both leave at once: neither waits for the other, and another member leads.
#[test]
fn a_leader_and_its_successor_leave_together() {
    for seed in 0..50 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        let successor = (0..4).filter(|slot| *slot != first);
        let successor = successor
            .max_by_key(|slot| world.slots[*slot].id.clone())
            .expect("four nodes");
        world.leave(first);
        world.leave(successor);
        world.run_for(ms(100));
        expect(
            &world,
            world.running().len() == 2,
            "they wait for each other",
        );
        wait(&mut world, ms(2_000), "no leader", |world| {
            world.agreed().is_some()
        });
    }
}

/// A follower's leave changes nothing but the membership.
#[test]
fn a_follower_leaves_without_an_election() {
    for seed in 0..20 {
        let mut world = settled(seed, 3, Settings::default());
        let first = leader(&world);
        forget_reported(&mut world);
        world.leave((first + 1) % 3);
        world.run_for(ms(10_000));
        expect(&world, world.agreed() == Some(first), "another leader");
        expect(
            &world,
            reported(&world, first).is_empty(),
            "the leader wavered",
        );
    }
}

/// C6: the ends of a chain never link; the last to join knows the leader only through the middle.
#[test]
fn a_chain_keeps_its_one_leader() {
    for seed in 0..50 {
        let mut world = empty(seed, 3, Settings::default());
        world.cut_both(0, 2);
        world.start(0);
        world.run_for(ms(3_100));
        world.start(1);
        world.connect(1, 0);
        world.run_for(ms(2_000));
        world.start(2);
        world.connect(2, 1);
        for _ in 0..600 {
            world.run_for(ms(100));
            expect(&world, world.leaders() == [0], "another leader");
        }
        expect(
            &world,
            world.agreed() == Some(0),
            "the far end does not know the leader",
        );
        let host = world.slots[0].id.clone();
        for slot in 0..3 {
            let reported = reported(&world, slot);
            expect(
                &world,
                reported == [Some(host.as_str())],
                "somebody wavered",
            );
        }
    }
}

/// Both ends of a chain lead before the middle links them.
#[test]
fn a_chain_that_is_closed_in_the_middle_ends_with_one_leader() {
    for seed in 0..50 {
        let mut world = empty(seed, 3, Settings::default());
        world.cut_both(0, 2);
        world.start(0);
        world.run_for(ms(1_000 * (seed % 3)));
        world.start(2);
        world.run_for(ms(4_000));
        expect(&world, world.leaders() == [0, 2], "the ends lead");
        world.start(1);
        world.connect(1, 0);
        world.run_for(ms(seed % 7 * 3));
        world.connect(1, 2);
        // P10: of two sides of equal weight one stays within the longest election timeout and four round trips.
        world.run_for(ms(3_000) + RTT * 4);
        let stays = world.agreed();
        expect(&world, stays.is_some(), "no agreement");
        for _ in 0..300 {
            world.run_for(ms(100));
            expect(&world, world.agreed() == stays, "the leader did not stay");
        }
    }
}

/// The others report the leader to the deaf one; no other member notices.
#[test]
fn o9_a_node_that_is_deaf_to_the_leader_does_not_depose_it() {
    for seed in 0..40 {
        for size in [3, 5] {
            let mut world = settled(seed, size, Settings::default());
            if seed % 2 == 0 {
                world.silence_is_reported_as = LinkEnd::Silent;
            }
            let first = leader(&world);
            let deaf = (first + 1) % size;
            forget_reported(&mut world);
            world.cut(first, deaf);
            world.run_for(ms(30_000));
            expect(
                &world,
                world.agreed() == Some(first),
                "the deaf node does not know the leader",
            );
            world.mend(first, deaf);
            world.run_for(ms(10_000));
            expect(
                &world,
                world.agreed() == Some(first) && world.is_mesh(),
                "another leader",
            );
            expect_reports_only_to(&world, size, deaf);
            expect(
                &world,
                reported(&world, deaf).len() <= 2,
                "the deaf node wavered",
            );
        }
    }
}

/// The leader is deaf to one follower, which still receives from the leader.
#[test]
fn o9_a_leader_that_is_deaf_to_one_follower_stays() {
    for seed in 0..40 {
        let mut world = settled(seed, 4, Settings::default());
        let reported_as = [LinkEnd::Silent, LinkEnd::Closed][seed as usize % 2];
        world.silence_is_reported_as = reported_as;
        let first = leader(&world);
        let mute = (first + 1) % 4;
        forget_reported(&mut world);
        world.cut(mute, first);
        for _ in 0..300 {
            world.run_for(ms(100));
            expect(&world, world.leaders() == [first], "another leader");
        }
        if reported_as == LinkEnd::Silent {
            expect(
                &world,
                world.agreed() == Some(first),
                "the mute node does not know the leader",
            );
        }
        world.mend(mute, first);
        world.run_for(ms(10_000));
        expect(
            &world,
            world.agreed() == Some(first) && world.is_mesh(),
            "another leader",
        );
        expect_reports_only_to(&world, 4, mute);
    }
}

#[test]
fn a_follower_that_flaps_for_a_minute_does_not_depose_the_leader() {
    for seed in 0..20 {
        let mut world = settled(seed, 5, Settings::default());
        let first = leader(&world);
        let flapper = (first + 1 + seed as usize % 4) % 5;
        forget_reported(&mut world);
        for _ in 0..8 {
            isolate(&mut world, flapper);
            world.run_for(ms(4_000));
            rejoin(&mut world, flapper);
            world.run_for(ms(4_000));
        }
        world.run_for(ms(4_000));
        expect(&world, world.agreed() == Some(first), "another leader");
        expect_reports_only_to(&world, 5, flapper);
    }
}

/// A follower that is stopped for 5 s returns to an unchanged room.
#[test]
fn a_paused_follower_does_not_depose_the_leader() {
    for seed in 0..50 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        let paused = (first + 1) % 4;
        forget_reported(&mut world);
        world.pause(paused);
        world.run_for(ms(5_000));
        world.resume(paused);
        world.run_for(ms(10_000));
        expect(
            &world,
            world.agreed() == Some(first) && world.is_mesh(),
            "another leader",
        );
        expect_reports_only_to(&world, 4, paused);
    }
}

/// A leader that is stopped for 5 s is replaced, and returns as a follower.
#[test]
fn hc1_a_paused_leader_returns_as_a_follower() {
    for seed in 0..50 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        world.pause(first);
        world.run_for(ms(5_000));
        world.resume(first);
        world.run_for(ms(50));
        world.calm_since = Some(world.now);
        world.run_for(ms(10_000));
        expect(
            &world,
            world.agreed().is_some() && world.is_mesh(),
            "no agreement",
        );
        expect(
            &world,
            world.agreed() != Some(first),
            "the stopped leader took over again",
        );
    }
}

/// A link that the host ended stays ended. The others' vetoes bind that host's node, which shows no leader: it has no path to
/// one.
#[test]
fn a_node_whose_host_disconnected_the_leader_neither_shows_one_nor_campaigns() {
    for seed in 0..20 {
        for size in [3, 4] {
            let mut world = settled(seed, size, Settings::default());
            let first = leader(&world);
            let other = (first + 1) % size;
            let id = world.slots[first].id.clone();
            forget_reported(&mut world);
            let _ = world.command(
                other,
                Command::Disconnect {
                    peer: id,
                    code: 0,
                    bytes: Vec::new(),
                },
            );
            for _ in 0..200 {
                world.run_for(ms(100));
                expect(&world, world.leaders() == [first], "another leader");
            }
            expect(&world, !world.is_linked(first, other), "linked again");
            expect(&world, reported(&world, other) == [None], "it wavered");
        }
    }
}

/// A leader that restarts within the others' timeout is a new incarnation, which does not lead.
#[test]
fn o14_a_leader_that_restarts_quickly_comes_back_as_a_follower() {
    for seed in 0..50 {
        let mut world = settled(seed, 4, Settings::default());
        let first = leader(&world);
        world.crash(first);
        world.run_for(ms(300));
        world.start(first);
        let died = world.now;
        while world.now.since(died) < ms(10_000) {
            world.connect(first, (first + 1) % 4);
            world.run_for(ms(500));
        }
        world.run_for(ms(5_000));
        expect(
            &world,
            world.agreed().is_some() && world.is_mesh(),
            "no agreement",
        );
        expect(
            &world,
            world.agreed() != Some(first),
            "an empty node leads a living room",
        );
    }
}

/// No member of the `size` but `except` received a change of the leader since [`forget_reported`].
fn expect_reports_only_to(world: &World, size: usize, except: usize) {
    for slot in (0..size).filter(|slot| *slot != except) {
        let silent = reported(world, slot).is_empty();
        expect(world, silent, "another member was notified");
    }
}
