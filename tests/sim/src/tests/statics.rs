//! Rooms with a static quorum: seeds, vote storms, and each situation that once broke one by name.

use std::time::Instant;

use room_core::election::raft::saved::Saved;
use room_core::election::record::{Record, Stamp};
use room_core::election::{AssignOutcome, ElectionError};
use room_core::id::{Fingerprint, Incarnation};
use room_core::node::{Command, CommandError};
use room_core::time::Duration;
use room_core::wire::Opaque;

use super::rooms::*;
use super::runner::{Order, run_all};
use crate::plan::Plan;
use crate::sometimes::Sometimes;
use crate::statics;
use crate::world::{File, Settings, World};

/// Rooms of each of these kinds in one `make test`.
const ROOMS: u64 = 1_500;

fn rooms(kind: &str, draw: impl Fn(u64) -> Plan + Sync, happens: &[&str]) {
    let began = Instant::now();
    let order = Order::of(ROOMS);
    let (mut runs, mut sometimes) = (0, Sometimes::default());
    run_all(
        &order,
        |number| {
            let seed = order.seed_after(&[], number)?;
            Some((draw(seed), format!("seed {seed} of {kind}")))
        },
        |outcome, _| {
            runs += 1;
            sometimes.add(&outcome.sometimes);
        },
    );
    println!("{runs} {kind} in {:.1} s", began.elapsed().as_secs_f64());
    let table = sometimes.table();
    for (name, count) in &table {
        println!("  {count:10} {}", name.replace('_', " "));
    }
    let never = |name: &&&str| {
        !table
            .iter()
            .any(|(known, count)| known == *name && *count > 0)
    };
    let never: Vec<&&str> = happens.iter().filter(never).collect();
    assert!(
        runs < ROOMS || never.is_empty(),
        "never happened: {never:?}"
    );
}

#[test]
fn simulations_of_rooms_with_a_roster_keep_the_properties() {
    let happens = [
        "struck_in_an_election",
        "restarts_from_disk",
        "persists_lost",
        "old_disks",
        "stale_states",
        "stale_recovered",
        "hand_overs",
    ];
    rooms("rooms with a roster", statics::draw, &happens);
}

#[test]
fn simulations_of_vote_storms_elect_one_leader_a_term() {
    let happens = ["struck_in_an_election", "persists_lost", "split_votes"];
    rooms("vote storms", statics::vote_storm, &happens);
}

/// A room whose roster is its first `voters` places; the others claim to be eligible.
fn room(seed: u64, size: usize, voters: usize) -> World {
    let settings = Settings {
        roster: Some((0..voters).collect()),
        ..Settings::default()
    };
    let mut world = empty(seed, size, settings);
    for slot in 0..size {
        keep_key(&mut world, slot);
    }
    world
}

/// All processes of a place have one key, which a roster requires.
pub(super) fn keep_key(world: &mut World, slot: usize) {
    let mut key = [1; 32];
    key[..8].copy_from_slice(&(slot as u64).to_be_bytes());
    world.slots[slot].key = Some(Fingerprint(key));
}

/// The voters of [`room`] have settled: returns the room, the leader, and a follower.
fn led(seed: u64, size: usize, voters: usize) -> (World, usize, usize) {
    let mut world = room(seed, size, voters);
    for slot in 0..voters {
        world.start(slot);
        world.connect(slot, 0);
    }
    wait(&mut world, ms(15_000), "no first leader", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world.run_for(ms(3_000));
    let leader = leader(&world);
    let follower = (0..voters)
        .find(|slot| *slot != leader)
        .expect("a follower");
    (world, leader, follower)
}

/// Cuts a side off from all others.
fn part(world: &mut World, side: &[usize]) {
    for slot in 0..world.slots.len() {
        for one in side.iter().filter(|_| !side.contains(&slot)) {
            world.cut_both(slot, *one);
        }
    }
}

/// All are linked again: one leader, elected by a majority, within P9's bound; and never two of one term.
fn heal(world: &mut World) {
    world.mend_all();
    let running = world.running();
    for slot in &running {
        world.connect(*slot, running[0]);
        let _ = world.command(*slot, Command::EnableAutoElection(true));
    }
    wait(world, ms(19_000), "no one leader after healing", |world| {
        world.agreed().is_some() && world.is_mesh()
    });
    world.run_for(ms(3_000));
    expect(world, world.agreed().is_some(), "the leader did not stay");
    let leader = leader(world);
    expect(world, world.is_on_roster(leader), "an outsider leads");
}

/// The side of `slot`, with an outsider, is cut off for a while: it has no leader from two election timeouts on, and the
/// others have one.
fn only_the_majority_leads(world: &mut World, slot: usize, lasts: Duration) {
    world.run_for(lasts);
    expect(
        world,
        world.leaders().len() == 1,
        "the majority has no leader",
    );
    expect(
        world,
        world.leaders() != [slot],
        "the minority has a leader",
    );
}

/// A leader or a follower of three is cut off, restarted from disk or not, and a fourth member that claims to be eligible joins
/// it. By their number alone these two would be a majority.
#[test]
fn a_voter_that_is_cut_off_with_a_newcomer_elects_no_leader() {
    for seed in 0..40 {
        let (mut world, leader, follower) = led(seed, 4, 3);
        let slot = if seed % 2 == 0 { leader } else { follower };
        part(&mut world, &[slot, 3]);
        if seed % 4 < 2 {
            world.crash(slot);
            world.run_for(ms(500));
            world.start(slot);
        }
        world.start(3);
        world.connect(3, slot);
        only_the_majority_leads(&mut world, slot, ms(12_000));
        heal(&mut world);
    }
}

/// The cut lasts longer than the others keep its place.
#[test]
fn a_voter_that_is_cut_off_for_longer_than_its_place_is_held_elects_no_leader() {
    for seed in 0..40 {
        let mut world = room(seed, 4, 3);
        world.settings.member_hold = ms(2_000);
        for slot in 0..3 {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(15_000), "no first leader", |world| {
            world.agreed().is_some() && world.is_mesh()
        });
        let led = leader(&world);
        let slot = if seed % 2 == 0 { led } else { (led + 1) % 3 };
        part(&mut world, &[slot, 3]);
        world.run_for(ms(6_000));
        world.start(3);
        world.connect(3, slot);
        only_the_majority_leads(&mut world, slot, ms(8_000));
        heal(&mut world);
    }
}

/// On the cut-off side an observer of the roster becomes a voter again, and a member beside it claims to be eligible.
#[test]
fn observers_that_become_voters_on_one_side_of_a_cut_make_no_second_majority() {
    for seed in 0..40 {
        let (mut world, leader, _) = led(seed, 7, 5);
        // One of the roster and both others, with one that was an observer before: four of seven, two of five.
        let observer = (leader + 1) % 5;
        let voter = (leader + 2) % 5;
        world.set_eligible(observer, false);
        for outsider in [5, 6] {
            world.slots[outsider].eligible = false;
            world.start(outsider);
            world.connect(outsider, voter);
        }
        world.run_for(ms(3_000));
        part(&mut world, &[observer, voter, 5, 6]);
        for slot in [observer, 5, 6] {
            world.set_eligible(slot, true);
        }
        only_the_majority_leads(&mut world, voter, ms(10_000));
        expect(
            &world,
            world.leaders() == [leader],
            "the leader of the majority did not stay",
        );
        heal(&mut world);
        expect(
            &world,
            world.agreed() == Some(leader),
            "the minority brought a leader",
        );
    }
}

/// A member that is cut off names itself, once or twice. The call is refused while it shows no leader, the old leader cannot
/// receive it, and the member never leads; after healing the majority's leader stays.
#[test]
fn a_member_that_is_cut_off_and_names_itself_never_leads() {
    for seed in 0..40 {
        let (mut world, leader, follower) = led(seed, 3, 3);
        let before = world.term(leader);
        part(&mut world, &[follower]);
        let itself = Command::SetLeader(world.slots[follower].id.clone());
        if seed % 2 == 0 {
            // It has not noticed yet that its leader is out of reach.
            order(&mut world, follower, itself.clone());
        }
        world.run_for(ms(5_000));
        let refused = world.command(follower, itself);
        let no_leader = CommandError::Election(ElectionError::NoLeader);
        expect(&world, refused == Err(no_leader), "it was not refused");
        let outcomes = outcomes(&world, follower);
        let expected: &[_] = if seed % 2 == 0 {
            &[AssignOutcome::Timeout]
        } else {
            &[]
        };
        expect(&world, outcomes == expected, "another outcome");
        only_the_majority_leads(&mut world, follower, ms(3_000));
        heal(&mut world);
        expect(
            &world,
            world.agreed() == Some(leader),
            "the leader did not stay",
        );
        expect(&world, world.term(leader) == before, "a term was wasted");
    }
}

/// `SetLeader` is a transfer: the target leads in a later term, elected, and all know it.
#[test]
fn set_leader_transfers_by_votes() {
    for seed in 0..40 {
        let (mut world, leader, follower) = led(seed, 4, 3);
        world.start(3);
        world.connect(3, leader);
        world.run_for(ms(2_000));
        let before = world.term(leader);
        let caller = if seed % 2 == 0 { 3 } else { leader };
        let target = Command::SetLeader(world.slots[follower].id.clone());
        forget_reported(&mut world);
        order(&mut world, caller, target);
        wait(
            &mut world,
            RTT * 5 / 2 + ms(30),
            "not handed over",
            |world| world.agreed() == Some(follower),
        );
        world.run_for(RTT);
        expect(
            &world,
            outcomes(&world, caller) == [AssignOutcome::Done],
            "not reported",
        );
        expect(
            &world,
            world.term(follower) == before + 1,
            "more than one term",
        );
    }
}

/// A leader whose target cannot campaign leads on, and the call times out. A target beside the roster is refused.
#[test]
fn set_leader_of_a_voter_that_is_gone_or_of_a_member_beside_the_roster_changes_nothing() {
    for seed in 0..20 {
        let (mut world, leader, follower) = led(seed, 4, 3);
        world.start(3);
        world.connect(3, leader);
        world.run_for(ms(2_000));
        let outsider = Command::SetLeader(world.slots[3].id.clone());
        let refused = world.command(leader, outsider).is_err();
        expect(&world, refused, "an outsider was named");
        let target = Command::SetLeader(world.slots[follower].id.clone());
        world.pause(follower);
        order(&mut world, leader, target);
        world.run_for(ms(4_000));
        expect(
            &world,
            outcomes(&world, leader) == [AssignOutcome::Timeout],
            "no timeout",
        );
        expect(
            &world,
            world.leaders() == [leader],
            "the leader did not lead on",
        );
    }
}

/// C4.8: a newcomer that knows no term enters a room whose terms are above 2^30.
#[test]
fn a_newcomer_enters_a_room_of_high_terms() {
    for seed in 0..20 {
        let mut world = room(seed, 4, 3);
        let stamp = Stamp {
            term: (1 << 30) + 7,
            ..Stamp::default()
        };
        world.checker.begin_at(&stamp);
        for slot in 0..2 {
            world.slots[slot].saved = Some(file(Record::undecided(stamp.clone())));
        }
        for slot in 0..2 {
            world.start(slot);
            world.connect(slot, 0);
        }
        wait(&mut world, ms(15_000), "no first leader", |world| {
            world.agreed().is_some()
        });
        let led = leader(&world);
        for slot in [2, 3] {
            world.start(slot);
            world.connect(slot, led);
        }
        wait(&mut world, ms(5_000), "they do not enter", |world| {
            world.agreed() == Some(led) && world.is_mesh()
        });
        expect(
            &world,
            world.term(3) > 1 << 30,
            "the term is not the room's",
        );
        world.run_for(ms(3_000));
        world.crash(led);
        wait(
            &mut world,
            ms(8_000),
            "the newcomer does not vote",
            |world| world.agreed().is_some(),
        );
    }
}

fn file(record: Record) -> File {
    let votes = Saved {
        record,
        ..Saved::of_next_incarnation(None)
    };
    File {
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        state: Opaque::of(&votes),
    }
}

/// A voter whose state file is lost, or an older one, notices when a voter that remembers it is linked. It is restarted again and
/// again before it has received from all others, and votes no earlier.
#[test]
fn a_voter_with_an_old_file_votes_after_it_has_received_from_all_others() {
    for seed in 0..40 {
        let (mut world, leader, follower) = led(seed, 4, 3);
        world.start(3);
        let third = 3 - leader - follower;
        let back = (seed % 2 == 0).then_some(1);
        for slot in [leader, follower, third] {
            world.crash(slot);
        }
        world.restore_disk(follower, back);
        world.start(leader);
        for _ in 0..6 {
            // The old leader remembers it; the third is absent.
            world.start(follower);
            world.connect(follower, leader);
            world.run_for(ms(4_000));
            expect(&world, world.is_stale(follower), "it did not notice");
            expect(&world, world.leaders().is_empty(), "it voted");
            world.crash(follower);
        }
        world.start(follower);
        world.start(third);
        for slot in [follower, third, 3] {
            world.connect(slot, leader);
        }
        wait(&mut world, ms(15_000), "no leader", |world| {
            world.agreed().is_some()
        });
        wait(&mut world, ms(5_000), "it does not recover", |world| {
            !world.is_stale(follower)
        });
        // It may lead again, and all follow it.
        world.run_for(ms(3_000));
        let led = self::leader(&world);
        if led != follower {
            let target = Command::TransferLeadership(world.slots[follower].id.clone());
            order(&mut world, led, target);
        }
        wait(&mut world, ms(1_000), "it does not lead", |world| {
            world.agreed() == Some(follower)
        });
    }
}

/// A voter that was just restarted refuses, and names the leader that asked for the campaign: the others are enough.
#[test]
fn a_voter_in_its_grace_ends_no_transfer() {
    for seed in 0..40 {
        let (mut world, leader, follower) = led(seed, 3, 3);
        let third = 3 - leader - follower;
        world.crash(third);
        world.run_for(ms(300));
        world.start(third);
        for other in [leader, follower] {
            world.connect(third, other);
        }
        wait(
            &mut world,
            ms(1_000),
            "it does not receive the leader's heartbeats",
            |world| world.agreed() == Some(leader) && world.is_mesh(),
        );
        let target = Command::TransferLeadership(world.slots[follower].id.clone());
        order(&mut world, leader, target);
        wait(&mut world, RTT * 2 + ms(30), "not handed over", |world| {
            world.agreed() == Some(follower)
        });
    }
}

/// A voter that the leader cannot reach, and that shows it because of others' reports, votes for its successor.
#[test]
fn a_voter_that_is_deaf_to_the_leader_votes_when_the_leader_leaves() {
    for seed in 0..40 {
        let (mut world, leader, deaf) = led(seed, 4, 4);
        world.cut_both(leader, deaf);
        world.run_for(ms(6_000));
        let id = world.slots[leader].id.clone();
        let shown = world.node(deaf).and_then(|node| node.leader()) == Some(&id);
        expect(&world, shown, "it does not show the leader");
        world.leave(leader);
        wait(&mut world, ms(330) + RTT * 3, "no successor", |world| {
            world.agreed().is_some_and(|next| next != leader)
        });
    }
}

/// The property behind the scenarios: without CheckQuorum a leader that is cut off leads on, and the checker reports that.
#[test]
fn a_leader_without_a_majority_of_the_roster_is_reported() {
    let (mut world, leader, _) = led(1, 3, 3);
    world.settings.guards.check_quorum = false;
    let restarted = leader;
    world.crash(restarted);
    world.run_for(ms(5_000));
    for slot in world.running() {
        world.crash(slot);
    }
    for slot in 0..3 {
        world.start(slot);
        world.connect(slot, 0);
    }
    wait(&mut world, ms(15_000), "no leader", |world| {
        world.agreed().is_some()
    });
    let led = self::leader(&world);
    part(&mut world, &[led]);
    world.run_for(ms(4_000));
    let violation = world.violation.as_ref().map(|violation| violation.property);
    assert_eq!(violation, Some("roster"));
}
