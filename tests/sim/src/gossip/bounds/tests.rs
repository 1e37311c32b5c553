//! Rooms that break the bounds: each bound must report that, or the runs prove nothing.

use room_core::election::gossip::Claimed;
use room_core::id::Incarnation;
use room_core::wire::{Envelope, Message, Opaque};

use super::*;
use crate::gossip::draw_for;
use crate::plan::Plan;
use crate::profile::StrategyPlan;
use crate::trace::Trace;

/// A room of four without faults, true clocks and short trips.
fn plan(strict_lowest: bool) -> Plan {
    let mut plan = draw_for(1, Some(4));
    plan.rules.delay_ms = (1, 5);
    plan.rules.silence_is_reported = true;
    plan.rules.fast = false;
    plan.observers.clear();
    plan.clocks.clear();
    plan.apart = None;
    plan.steps.clear();
    plan.strategy = StrategyPlan::Gossip(GossipRules {
        strict_lowest,
        grace_ms: 1_500,
        sample_ms: 100,
        alive_ms: 1_000,
        election_ms: 500,
        trial: Trial::Quiet,
    });
    plan
}

/// The room of a plan, with all members started.
fn started(plan: &Plan) -> Run<'_> {
    let mut run = Run::new(plan, Trace::off(), None, false);
    for slot in 0..plan.size {
        run.start(slot, (slot > 0).then_some(0));
    }
    run.world.calm_since = Some(run.world.now);
    run
}

/// The room of a plan, settled.
fn settled(plan: &Plan) -> (Run<'_>, usize) {
    let mut run = started(plan);
    run.one_is_left();
    run.all_show_it();
    reports(&run, "");
    let leader = run.world.leaders()[0];
    (run, leader)
}

/// The room of a plan, settled under the highest: the others joined when it led already.
fn settled_under_the_highest(plan: &Plan) -> (Run<'_>, usize) {
    let mut run = Run::new(plan, Trace::off(), None, false);
    run.world.slots[0].rename("zzzz");
    run.start(0, None);
    let until = run.world.now + ms(1_000);
    run.run_until(until);
    for slot in 1..plan.size {
        run.start(slot, Some(0));
    }
    run.world.calm_since = Some(run.world.now);
    run.one_is_left();
    run.all_show_it();
    reports(&run, "");
    assert_eq!(run.world.leaders(), [0]);
    (run, 0)
}

/// Makes the bounds expect shorter windows than the real ones.
fn in_haste(run: &mut Run<'_>) {
    run.world.settings.windows.alive_threshold = ms(1);
    run.world.settings.windows.election_duration = ms(1);
}

#[track_caller]
fn reports(run: &Run<'_>, property: &str) {
    let violation = run.world.violation.as_ref();
    let found = violation.map_or("", |violation| violation.property);
    assert_eq!(found, property, "{violation:?}");
}

/// Sends a forged message from `from` to `to`.
fn forge(run: &mut Run<'_>, from: usize, to: usize, message: Message) {
    let to_id = run.world.slots[to].id.clone();
    let from_id = run.world.slots[from].id.clone();
    let node = run.world.node(to).expect("it runs");
    let incarnation = node.membership().get(&from_id).expect("linked").incarnation;
    assert!(
        run.world
            .node(from)
            .is_some_and(|node| node.membership().get(&to_id).is_some())
    );
    let envelope = envelope(incarnation, message);
    run.world.forge(from, to, envelope);
}

fn envelope(incarnation: Incarnation, message: Message) -> Envelope {
    Envelope {
        incarnation,
        message,
    }
}

fn follower(run: &Run<'_>, leader: usize) -> usize {
    let mut others = run.world.running().into_iter();
    others.find(|slot| *slot != leader).expect("four run")
}

#[test]
fn a_room_without_a_leader_is_reported() {
    let plan = plan(false);
    let mut run = started(&plan);
    in_haste(&mut run);
    run.one_is_left();
    reports(&run, "one leader");
}

#[test]
fn links_that_stay_down_are_reported() {
    let plan = plan(false);
    let mut run = started(&plan);
    run.world.cut(0, 1);
    run.one_is_left();
    reports(&run, "links");
}

#[test]
fn a_leader_that_does_not_stay_is_reported() {
    let plan = plan(false);
    for quiet in [false, true] {
        let (mut run, leader) = settled_under_the_highest(&plan);
        let lower = follower(&run, leader);
        let claim = Claimed {
            sequence: 1_000,
            declares: true,
        };
        forge(
            &mut run,
            lower,
            leader,
            Message::Election(Opaque::of(&claim)),
        );
        if quiet {
            run.it_stays();
        } else {
            run.all_show_it();
        }
        reports(&run, "stays");
    }
}

#[test]
fn a_leader_that_sends_too_much_is_reported() {
    let plan = plan(false);
    let (mut run, _) = settled(&plan);
    run.world.settings.windows.alive_threshold = ms(10_000);
    run.it_stays();
    reports(&run, "quiet");
}

#[test]
fn a_part_that_sees_others_or_has_no_leader_is_reported() {
    let plan = plan(false);
    let (mut run, _) = settled(&plan);
    run.world.settings.heartbeat_timeout = ms(1);
    run.parts();
    reports(&run, "loss");
    let (mut run, _) = settled(&plan);
    in_haste(&mut run);
    run.parts();
    reports(&run, "partition");
    let (mut run, _) = settled(&plan);
    run.parts();
    reports(&run, "");
}

#[test]
fn a_leader_that_should_have_made_way_is_reported() {
    let plan = plan(false);
    for property in ["heal", "join"] {
        let (mut run, leader) = settled_under_the_highest(&plan);
        run.world.led = BTreeSet::from([leader]);
        run.lowest_is_left(property);
        reports(&run, "");
        run.world.led = run.world.running().into_iter().collect();
        run.lowest_is_left(property);
        reports(&run, property);
    }
}

fn rules_of(plan: &Plan) -> GossipRules {
    match &plan.strategy {
        StrategyPlan::Gossip(rules) => rules.clone(),
        other => panic!("{other:?} is set"),
    }
}

#[test]
fn a_failover_that_takes_too_long_is_reported() {
    let plan = plan(true);
    let rules = rules_of(&plan);
    for crashes in [false, true] {
        let (mut run, leader) = settled(&plan);
        in_haste(&mut run);
        run.leader_is_lost(&rules, leader, crashes);
        reports(&run, "failover");
    }
}

#[test]
fn a_winner_that_is_not_the_lowest_is_reported() {
    let plan = plan(true);
    let rules = rules_of(&plan);
    let (mut run, leader) = settled(&plan);
    let mut others = run.voters();
    others.retain(|slot| *slot != leader);
    let lowest = run.sure_winner(&rules, &others);
    assert!(lowest.is_some(), "nothing is in its way");
    let other = others.iter().copied().find(|slot| Some(*slot) != lowest);
    let from = run.world.now;
    run.world.crash(leader);
    run.world.calm_since = None;
    run.follows(from, leader, &others, other, false);
    reports(&run, "lowest");
}

#[test]
fn a_yield_that_is_refused_or_without_end_is_reported() {
    let mut plan = plan(true);
    let rules = rules_of(&plan);
    let (mut run, leader) = settled(&plan);
    let other = follower(&run, leader);
    run.leader_yields(&rules, other);
    reports(&run, "yield");
    plan.observers = vec![1, 2, 3];
    let (mut run, leader) = settled(&plan);
    in_haste(&mut run);
    run.leader_yields(&rules, leader);
    reports(&run, "yield");
}

/// The higher of two believes that the lower may not lead: so it ignores it.
#[test]
fn two_leaders_that_are_linked_are_reported() {
    let mut plan = plan(false);
    plan.size = 2;
    let (mut run, leader) = settled(&plan);
    let other = follower(&run, leader);
    assert_eq!(
        run.lowest([leader, other]),
        Some(leader),
        "another seed, please"
    );
    let standing = Message::Standing {
        eligible: false,
        priority: 0,
        successor: None,
    };
    forge(&mut run, leader, other, standing);
    let until = run.world.now + ms(5_000);
    run.run_until(until);
    reports(&run, "P2");
}

/// Number of rooms whose crashed leader gets another successor than the lowest.
fn higher_winners(delay_ms: (u64, u64)) -> u64 {
    let mut plan = plan(true);
    plan.rules.delay_ms = delay_ms;
    let rules = GossipRules {
        alive_ms: 500,
        election_ms: 250,
        ..rules_of(&plan)
    };
    plan.strategy = StrategyPlan::Gossip(rules.clone());
    let crash = |seed| {
        let mut plan = plan.clone();
        plan.seed = seed;
        let (mut run, leader) = settled(&plan);
        run.leader_is_lost(&rules, leader, true);
        reports(&run, "");
        run.world.gossip.higher_winners
    };
    (0..600).map(crash).sum()
}

/// The proposal of the lowest comes back when the first election is over. Whether its own ends before the declaration of the
/// first arrives is then a matter of chance, as `Run::sure_winner` describes.
#[test]
fn the_lowest_may_lose_only_where_two_trips_take_longer_than_an_election() {
    assert_eq!(higher_winners((1, 40)), 0);
    assert!(higher_winners((100, 150)) > 0);
}
