//! The public system's tests of its election, named by the ids of its rows, with its constants, in virtual time.

use super::*;

const SETTLED: Duration = ms(5_000);

#[test]
fn f1_a_lone_peer_reports_that_it_leads_then_that_it_does_not_then_that_it_does_again() {
    let mut world = World::of([0], settings(SHORT));
    world.run_while(SETTLED, |world| world.leaders().is_empty());
    assert_eq!(world.stations[&0].metrics, [true]);
    world.yield_leadership(0);
    world.run_while(SETTLED, |world| world.stations[&0].metrics.len() < 2);
    assert_eq!(world.stations[&0].metrics, [true, false]);
    world.run_while(SETTLED, |world| world.leaders().is_empty());
    assert_eq!(world.stations[&0].metrics.last(), Some(&true));
    assert_eq!(world.callbacks(0), [true, false, true]);
}

#[test]
fn f2_of_ten_that_start_together_the_lowest_leads() {
    let mut world = World::of((0..10).rev(), settings(SHORT));
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    assert_eq!(world.callbacks(0), [true]);
    for id in 1..10 {
        assert!(world.callbacks(id).is_empty());
        assert_eq!(world.shown(id), Some(0));
    }
}

#[test]
fn f2_a_simultaneous_start_has_a_leader_after_one_sample_and_one_election() {
    let mut world = World::of(0..5, settings(Windows::default()));
    world.run_until(Time::ZERO + ms(6_000));
    assert_eq!(world.stations[&0].declared, [at(6_000)]);
}

#[test]
fn f3_of_those_that_start_one_after_another_the_first_leads_though_it_is_the_highest() {
    let mut world = World::new(1, settings(SHORT));
    for id in (0..4).rev() {
        world.start(id);
        world.run_for(ms(750));
    }
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [3]);
    assert_eq!(world.callbacks(3), [true]);
}

#[test]
fn f4_stopped_peers_send_nothing() {
    let mut world = World::of(0..4, settings(SHORT));
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    for id in 0..4 {
        world.stop(id);
    }
    world.run_for(SHORT.alive_threshold);
    let sent = world.sent();
    world.run_for(SHORT.alive_threshold * 5);
    assert_eq!(world.sent(), sent);
}

#[test]
fn f5_two_groups_that_merge_keep_the_lower_leader() {
    let mut world = World::new(1, settings(SHORT));
    world.start_all(0..4, 1);
    world.start_all(4..8, 2);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0, 4]);
    world.part(|_| 0);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    assert_eq!(world.callbacks(4), [true, false]);
    for follower in [1, 2, 3, 5, 6, 7] {
        assert_ne!(world.callbacks(follower).last(), Some(&true));
        assert_eq!(world.shown(follower), Some(0));
    }
}

#[test]
fn f6_when_the_leader_stops_the_lowest_takes_over_where_windows_overlap() {
    let mut world = World::new(1, settings(SHORT));
    for id in (2..6).rev() {
        world.start(id);
        world.run_for(ms(750));
    }
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [5]);
    world.stop(5);
    world.crash(5);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [2]);
}

#[test]
fn f7_a_leader_that_yields_is_notified_once_and_another_leads_for_good() {
    let mut world = World::of(0..6, settings(SHORT));
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    world.yield_leadership(0);
    world.yield_leadership(0);
    assert_eq!(world.callbacks(0), [true, false]);
    assert!(world.leaders().is_empty());
    world.run_while(SETTLED, |world| world.leaders().is_empty());
    let successor = world.leaders();
    assert_eq!(successor, [1]);
    world.run_for(SHORT.alive_threshold * 2);
    assert_eq!(world.leaders(), successor);
    assert_eq!(world.callbacks(0), [true, false]);
    assert!(
        !world.peer(0).machine().is_yielding(),
        "it has seen another lead"
    );
}

#[test]
fn f10_every_part_has_a_leader_and_one_is_left() {
    let mut world = World::of(0..6, settings(SHORT));
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    world.part(|id| id);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0, 1, 2, 3, 4, 5]);
    for id in 0..6 {
        assert_eq!(world.callbacks(id), [true]);
    }
    world.part(|_| 0);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0]);
    for id in 1..6 {
        assert_eq!(world.callbacks(id), [true, false]);
    }
}

#[test]
fn f13_a_message_is_a_proposal_or_a_declaration_and_both_share_one_count() {
    let mut world = World::of([0], settings(SHORT));
    let peer = world.station(0).peer.as_mut().expect("alive");
    let messages = [Claim::Declaration, Claim::Proposal].map(|claim| peer.message(claim));
    assert_eq!(messages[0].claim, Claim::Declaration);
    assert_eq!(messages[1].claim, Claim::Proposal);
    assert_eq!(messages.map(|message| message.order.sequence), [1, 2]);
}

#[test]
fn f15_a_declaration_reaches_each_of_the_others_once() {
    let mut world = World::of(0..3, settings(SHORT));
    let peer = world.station(0).peer.as_mut().expect("alive");
    let message = peer.message(Claim::Declaration);
    world.gossip(&message);
    world.run_for(ms(10));
    for id in [1, 2] {
        assert_eq!(world.stations[&id].taken, std::slice::from_ref(&message));
    }
    assert_eq!(world.stations[&0].taken, []);
}

#[test]
fn f17_ten_peers_with_default_windows_have_one_leader_within_thirty_seconds() {
    let mut world = World::new(1, settings(Windows::default()));
    for id in (0..10).rev() {
        world.start(id);
        world.run_for(ms(300));
    }
    world.run_until(at(30_000));
    assert_eq!(world.leaders().len(), 1);
    let reported = world
        .ids()
        .into_iter()
        .filter(|id| !world.callbacks(*id).is_empty());
    assert_eq!(reported.count(), 1);
}

#[test]
fn f20_the_other_of_two_leads_within_a_minute_when_the_leader_yields() {
    let mut world = World::of(0..2, settings(Windows::default()));
    world.run_while(ms(30_000), |world| world.leaders() != [0]);
    world.yield_leadership(0);
    assert_eq!(world.callbacks(0), [true, false]);
    world.run_for(ms(60_000));
    assert_eq!(world.leaders(), [1]);
}

#[test]
fn f21_messages_from_outside_the_view_are_ignored() {
    let mut world = World::of(1..3, settings(SHORT));
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [1]);
    let stranger = claim_of(0, 1, Claim::Declaration);
    let mut taken = true;
    world.call(1, |peer, now, view| {
        taken = peer.receive(now, &stranger, view)
    });
    assert!(!taken);
    assert_eq!(world.leaders(), [1]);
    assert_eq!(world.callbacks(1), [true]);
}

#[test]
fn f22_a_message_that_is_not_newer_than_the_last_of_its_sender_is_dropped() {
    let mut world = World::of([1, 2], settings(SHORT));
    let mut take_in = |sequence, claim| {
        let message = claim_of(1, sequence, claim);
        let mut taken = false;
        world.call(2, |peer, now, view| {
            taken = peer.receive(now, &message, view)
        });
        taken
    };
    assert!(take_in(5, Claim::Proposal));
    assert!(!take_in(5, Claim::Declaration), "as new");
    assert!(!take_in(4, Claim::Declaration), "older");
    assert!(take_in(6, Claim::Declaration));
}

#[test]
fn f23_of_two_leaders_the_higher_steps_down_and_the_lower_declares_itself_at_once() {
    let mut world = World::new(1, settings(SHORT));
    world.start_all([0], 1);
    world.start_all([1], 2);
    world.run_for(SETTLED);
    assert_eq!(world.leaders(), [0, 1]);
    // Just after the lower one has declared itself, the higher one does.
    let last = |world: &World, id: Id| world.stations[&id].declared.last().copied();
    let before = last(&world, 0);
    world.run_while(ms(300), |world| last(world, 0) == before);
    world.part(|_| 0);
    let declaration = world
        .station(1)
        .peer
        .as_mut()
        .expect("alive")
        .message(Claim::Declaration);
    let declared = world.stations[&0].declared.len();
    world.call(0, |peer, now, view| {
        peer.receive(now, &declaration, view);
    });
    assert_eq!(world.stations[&0].declared.len(), declared + 1);
    world.run_for(ms(5));
    assert_eq!(world.leaders(), [0]);
    assert_eq!(world.callbacks(1), [true, false]);
}

#[test]
fn f24_a_declaration_early_in_a_followers_window_counts_at_its_end() {
    let mut world = World::of([0, 1], settings(SHORT));
    world.run_while(SETTLED, |world| world.stations[&1].taken.len() < 2);
    // The follower's next window begins; exactly one declaration arrives in it.
    let windows = |world: &World| world.stations[&1].metrics.len();
    let before = windows(&world);
    world.run_while(SETTLED, |world| windows(world) == before);
    let taken = world.stations[&1].taken.len();
    world.run_while(SETTLED, |world| world.stations[&1].taken.len() == taken);
    world.crash(0);
    let began = windows(&world);
    world.run_while(SETTLED, |world| windows(world) == began);
    assert!(
        !world.peer(1).machine().is_electing(),
        "the window was not empty"
    );
    let proposed = world.stations[&1].proposed.len();
    world.run_for(SHORT.alive_threshold);
    assert_eq!(
        world.stations[&1].proposed.len(),
        proposed + 1,
        "this one was"
    );
}

#[test]
fn f25_with_an_election_shorter_than_the_threshold_a_higher_one_may_win_and_stays() {
    let windows = Windows {
        election_duration: ms(200),
        ..SHORT
    };
    let winners: BTreeSet<Vec<Id>> = (0..10)
        .map(|step| {
            let mut world = World::of([0], settings(windows));
            // The higher one's windows end 250 ms before the lower one's: longer than an election.
            world.run_for(ms(500));
            world.start(2);
            world.run_for(ms(250));
            world.start(1);
            world.run_for(ms(2_000 + 50 * step));
            assert_eq!(world.leaders(), [0]);
            world.crash(0);
            world.run_while(SETTLED, |world| world.leaders().is_empty());
            let winner = world.leaders();
            world.run_for(SETTLED);
            assert_eq!(world.leaders(), winner);
            winner
        })
        .collect();
    assert_eq!(winners, BTreeSet::from([vec![1], vec![2]]));
}

#[test]
fn f26_a_stopped_leader_sends_nothing_and_still_shows_itself_as_leader() {
    let mut world = World::of([1, 2], settings(SHORT));
    world.run_for(SETTLED);
    world.stop(1);
    world.stop(1);
    world.start(0);
    let mut taken = true;
    let declaration = claim_of(0, 1, Claim::Declaration);
    world.call(1, |peer, now, view| {
        taken = peer.receive(now, &declaration, view)
    });
    world.yield_leadership(1);
    world.call(1, |peer, _, _| peer.set_eligible(false));
    world.run_for(SETTLED);
    assert!(!taken);
    assert!(world.peer(1).is_leader());
    assert_eq!(world.callbacks(1), [true]);
    assert_eq!(world.peer(1).next_deadline(), None);
}

#[test]
fn f27_a_lone_peer_that_yields_leads_again_between_six_thresholds_and_a_window_and_an_election_more()
 {
    for offset in 0..25 {
        let mut world = World::of([0], settings(SHORT));
        world.run_for(ms(2_000 + 10 * offset));
        world.yield_leadership(0);
        let yielded = world.now;
        world.run_while(ms(10_000), |world| world.leaders().is_empty());
        let took = world.now.since(yielded);
        let least = SHORT.alive_threshold * 6;
        let most = least + SHORT.alive_threshold + SHORT.election_duration;
        assert!((least..=most).contains(&took), "{took:?}");
    }
}

fn claim_of(from: Id, sequence: u64, claim: Claim) -> Message<Id> {
    let incarnation = Incarnation {
        started_us: 1,
        random: 0,
    };
    Message {
        from,
        order: Order {
            incarnation,
            sequence,
        },
        claim,
    }
}
