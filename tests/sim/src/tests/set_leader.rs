//! `SetLeader` (C4): the leader after it, after the loss of its target, and after two calls at once.

use room_core::election::AssignOutcome;
use room_core::election::Recovery;
use room_core::node::Command;

use super::rooms::*;
use crate::world::Settings;

/// P12, one caller: any caller, and any target.
#[test]
fn all_members_follow_the_target_of_set_leader() {
    for seed in 0..100 {
        let mut world = settled(seed, 5, Settings::default());
        let (caller, target) = (seed as usize % 5, (seed as usize / 5) % 5);
        let before = leader(&world);
        let id = world.slots[target].id.clone();
        forget_reported(&mut world);
        order(&mut world, caller, Command::SetLeader(id));
        world.calm_since = Some(world.now);
        wait(
            &mut world,
            ms(500) + RTT,
            "the target does not lead",
            |world| world.agreed() == Some(target),
        );
        world.run_for(ms(10_000));
        expect(
            &world,
            world.agreed() == Some(target),
            "the target did not stay",
        );
        expect(
            &world,
            outcomes(&world, caller) == [AssignOutcome::Done],
            "not reported as done",
        );
        for slot in 0..5 {
            let changes = usize::from(target != before);
            expect(
                &world,
                reported(&world, slot).len() == changes,
                "somebody wavered",
            );
        }
    }
}

/// P12, two callers.
#[test]
fn two_calls_of_set_leader_at_once_end_at_one_of_both_targets() {
    for seed in 0..100 {
        let mut world = settled(seed, 5, Settings::default());
        let pick = seed as usize;
        let (one, other) = (pick % 5, (pick + 1 + pick / 5 % 4) % 5);
        let targets = [(pick + 2) % 5, (pick + 3) % 5];
        for (caller, target) in [(one, targets[0]), (other, targets[1])] {
            let id = world.slots[target].id.clone();
            let _ = world.command(caller, Command::SetLeader(id));
        }
        wait(
            &mut world,
            ms(1_000) + RTT,
            "no agreement on either",
            |world| {
                world
                    .agreed()
                    .is_some_and(|leader| targets.contains(&leader))
            },
        );
        let chosen = world.agreed();
        world.run_for(ms(10_000));
        expect(&world, world.agreed() == chosen, "it did not stay");
        let ended = [outcomes(&world, one), outcomes(&world, other)];
        let done = ended
            .iter()
            .flatten()
            .filter(|outcome| **outcome == AssignOutcome::Done);
        expect(
            &world,
            done.count() >= 1,
            "a call of no member is reported as done",
        );
        expect(
            &world,
            ended.iter().all(|outcomes| outcomes.len() == 1),
            "a call has no outcome",
        );
    }
}

/// C4.5: Hold does not bind members that never received from the target.
#[test]
fn set_leader_on_a_peer_that_just_crashed_ends_in_an_election() {
    for seed in 0..40 {
        let recovery = match seed % 2 {
            0 => Recovery::Hold,
            _ => Recovery::AutoElect,
        };
        let settings = Settings {
            recovery,
            ..Settings::default()
        };
        let mut world = settled(seed, 4, settings);
        let before = leader(&world);
        let (caller, target) = ((before + 1) % 4, (before + 2) % 4);
        let id = world.slots[target].id.clone();
        world.crash(target);
        order(&mut world, caller, Command::SetLeader(id));
        wait(&mut world, ms(7_000), "no leader", |world| {
            world.agreed().is_some()
        });
        world.run_for(ms(3_000));
        expect(&world, outcomes(&world, caller).len() == 1, "no outcome");
        expect(
            &world,
            outcomes(&world, caller) != [AssignOutcome::Done],
            "done by a dead peer",
        );
    }
}

/// C4: under Hold one released node may campaign, and the others vote.
#[test]
fn one_released_node_ends_the_hold_for_all() {
    for seed in 0..20 {
        let mut world = settled(seed, 4, Settings::default());
        let target = (leader(&world) + 1) % 4;
        let id = world.slots[target].id.clone();
        order(&mut world, 0, Command::SetLeader(id));
        world.run_for(ms(2_000));
        world.crash(target);
        world.run_for(ms(8_000));
        expect(
            &world,
            world.leaders().is_empty(),
            "somebody took the held place",
        );
        let released = world.running()[0];
        let _ = world.command(released, Command::EnableAutoElection(true));
        wait(&mut world, ms(3_500), "no leader", |world| {
            world.agreed() == Some(released)
        });
        // The override is over at all members: the next crash is followed by an election.
        world.run_for(ms(2_000));
        world.crash(released);
        wait(&mut world, ms(3_500), "no second leader", |world| {
            world.agreed().is_some()
        });
    }
}
