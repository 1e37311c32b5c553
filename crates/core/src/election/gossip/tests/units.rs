//! Tests of single rules.

use super::*;

fn order(started_us: u64, sequence: u64) -> Order {
    let incarnation = Incarnation {
        started_us,
        random: 0,
    };
    Order {
        incarnation,
        sequence,
    }
}

fn claim_of(from: Id, sequence: u64, claim: Claim) -> Message<Id> {
    Message {
        from,
        order: order(1, sequence),
        claim,
    }
}

fn acts(peer: &mut Peer<Id>) -> Vec<Act> {
    std::iter::from_fn(|| peer.poll_act()).collect()
}

fn peer(id: Id, settings: Settings, view: &BTreeSet<Id>) -> Peer<Id> {
    Peer::new(id, order(1, 0).incarnation, settings, Time::ZERO, view)
}

/// A peer that receives no message, followed to its first output.
fn led_by(id: Id, view: &BTreeSet<Id>) -> Peer<Id> {
    let mut peer = peer(id, settings(SHORT), view);
    while !peer.is_leader() {
        let at = peer.next_deadline().expect("not stopped");
        peer.tick(at, view);
    }
    acts(&mut peer);
    peer
}

#[test]
fn the_store_takes_what_is_newer_and_forgets_after_the_lifetime() {
    let mut store = Store::default();
    let mut news = |now, order| store.is_news(at(now), ms(100), &1u32, order);
    assert!(news(0, order(5, 9)));
    assert!(!news(1, order(5, 9)));
    assert!(!news(1, order(5, 8)));
    assert!(!news(1, order(4, 10)), "of an older life");
    assert!(news(2, order(6, 1)), "of a newer life");
    assert!(!news(101, order(5, 10)));
    assert!(news(102, order(4, 1)), "what was remembered has expired");
}

#[test]
fn the_store_remembers_a_limited_number_of_senders_and_forgets_the_most_silent() {
    let mut store = Store::default();
    for sender in 0..MAX_CREATORS {
        assert!(store.is_news(at(sender as u64), ms(1_000_000), &sender, order(1, 2)));
    }
    assert!(store.is_news(at(5_000), ms(1_000_000), &0, order(1, 3)));
    assert!(store.is_news(at(5_001), ms(1_000_000), &MAX_CREATORS, order(1, 1)));
    assert_eq!(store.len(), MAX_CREATORS);
    assert!(
        !store.is_news(at(5_002), ms(1_000_000), &0, order(1, 3)),
        "a fresh message"
    );
    assert!(
        store.is_news(at(5_003), ms(1_000_000), &1, order(1, 1)),
        "forgotten"
    );
}

#[test]
fn a_window_that_is_too_short_or_too_long_is_named() {
    let short = Windows {
        sample_interval: Duration::from_micros(999),
        ..SHORT
    };
    let long = Windows {
        alive_threshold: MAX_WINDOW + ms(1),
        ..SHORT
    };
    assert_eq!(SHORT.check(), Ok(()));
    assert_eq!(
        short.check().map_err(|error| error.name),
        Err("sample_interval")
    );
    assert_eq!(
        long.check().map_err(|error| error.name),
        Err("alive_threshold")
    );
}

#[test]
fn the_longest_wait_for_a_stable_membership_is_the_grace_and_one_sample() {
    let mut view = BTreeSet::new();
    let mut peer = peer(0, settings(SHORT), &view);
    let mut now = Time::ZERO;
    while acts(&mut peer).is_empty() {
        view.insert(view.len() as Id + 1);
        now = peer.next_deadline().expect("not stopped");
        peer.tick(now, &view);
    }
    assert_eq!(now, at(600));
}

#[test]
fn a_declaration_ends_the_wait_for_a_stable_membership_at_the_next_sample() {
    let mut view = BTreeSet::from([7]);
    let mut peer = peer(1, settings(SHORT), &view);
    assert!(peer.receive(at(10), &claim_of(7, 1, Claim::Declaration), &view));
    assert_eq!(peer.next_deadline(), Some(at(100)));
    view.insert(8);
    peer.tick(at(100), &view);
    assert_eq!(acts(&mut peer), [Act::Window { leads: false }]);
}

#[test]
fn a_proposal_from_before_its_own_election_in_this_window_counts() {
    let view = BTreeSet::from([1]);
    let mut peer = peer(2, settings(SHORT), &view);
    assert!(peer.receive(at(10), &claim_of(1, 1, Claim::Proposal), &view));
    peer.tick(at(100), &view);
    peer.tick(at(600), &view);
    let expected = [Act::Send(Claim::Proposal), Act::Window { leads: false }];
    assert_eq!(acts(&mut peer), expected);
    peer.tick(at(1_100), &view);
    peer.tick(at(1_600), &view);
    assert!(peer.is_leader(), "it does not count twice");
}

#[test]
fn a_declaration_ends_an_election() {
    let view = BTreeSet::from([7]);
    let mut peer = peer(1, settings(SHORT), &view);
    peer.tick(at(100), &view);
    assert!(peer.receive(at(200), &claim_of(7, 1, Claim::Declaration), &view));
    assert!(!peer.machine().is_electing());
    assert_eq!(peer.next_deadline(), Some(at(700)));
    assert_eq!(peer.leader(&view), Some(&7));
}

#[test]
fn answers_to_endless_declarations_are_limited() {
    let view = BTreeSet::from([7]);
    let mut peer = led_by(1, &view);
    let now = peer.next_deadline().expect("leads") - ms(10);
    for sequence in 1..=1_000 {
        assert!(peer.receive(now, &claim_of(7, sequence, Claim::Declaration), &view));
    }
    let declared = |acts: Vec<Act>| {
        let is_declaration = |act: &&Act| **act == Act::Send(Claim::Declaration);
        acts.iter().filter(is_declaration).count()
    };
    assert_eq!(declared(acts(&mut peer)), MAX_RESULTS as usize);
    let next = peer.next_deadline().expect("leads");
    assert_eq!(next, now + SHORT.declaration_interval());
    peer.tick(next, &view);
    assert_eq!(declared(acts(&mut peer)), 1);
    assert!(peer.receive(next, &claim_of(7, 2_000, Claim::Declaration), &view));
    assert_eq!(
        declared(acts(&mut peer)),
        1,
        "the next window has its own answers"
    );
}

#[test]
fn a_yielding_peer_may_propose_again_once_another_leads() {
    let view = BTreeSet::from([7]);
    let mut peer = led_by(1, &view);
    let now = peer.next_deadline().expect("leads") - ms(100);
    peer.yield_leadership(now);
    peer.yield_leadership(now);
    assert_eq!(acts(&mut peer), [Act::Lost]);
    assert!(peer.receive(now + ms(1), &claim_of(7, 1, Claim::Declaration), &view));
    assert!(!peer.machine().is_yielding());
    assert_eq!(acts(&mut peer), [Act::Window { leads: false }]);
}

#[test]
fn a_disabled_peer_does_not_propose_and_a_leader_that_is_disabled_goes_on() {
    let view = BTreeSet::new();
    let mut leader = led_by(1, &view);
    leader.enable(false);
    let until = leader.next_deadline().expect("leads");
    leader.tick(until, &view);
    assert!(leader.is_leader());
    let mut follower = peer(1, settings(SHORT), &view);
    follower.enable(false);
    for _ in 0..10 {
        let until = follower.next_deadline().expect("not stopped");
        follower.tick(until, &view);
    }
    assert!(!acts(&mut follower).contains(&Act::Send(Claim::Proposal)));
    follower.enable(true);
    let until = follower.next_deadline().expect("not stopped");
    follower.tick(until, &view);
    assert!(follower.machine().is_electing());
}

#[test]
fn a_peer_that_may_no_longer_lead_stops_at_once_and_does_not_propose() {
    let view = BTreeSet::new();
    let mut peer = led_by(1, &view);
    peer.set_eligible(false);
    assert_eq!(acts(&mut peer), [Act::Lost]);
    for _ in 0..10 {
        let until = peer.next_deadline().expect("not stopped");
        peer.tick(until, &view);
    }
    assert!(!acts(&mut peer).contains(&Act::Send(Claim::Proposal)));
    peer.enable(true);
    let until = peer.next_deadline().expect("not stopped");
    peer.tick(until, &view);
    assert!(!peer.machine().is_electing(), "enabled is not eligible");
}

#[test]
fn other_windows_begin_with_the_next_one() {
    let view = BTreeSet::new();
    let mut peer = led_by(1, &view);
    let until = peer.next_deadline().expect("leads");
    peer.set_windows(Windows {
        alive_threshold: ms(2_000),
        ..SHORT
    });
    assert_eq!(peer.next_deadline(), Some(until));
    peer.tick(until, &view);
    assert_eq!(peer.next_deadline(), Some(until + ms(1_000)));
}

#[test]
fn the_last_declarer_is_shown_for_as_long_as_it_is_a_member() {
    let mut view = BTreeSet::from([3, 7]);
    let mut peer = peer(1, settings(SHORT), &view);
    assert_eq!(peer.leader(&view), None);
    peer.receive(at(1), &claim_of(3, 1, Claim::Declaration), &view);
    peer.receive(at(2), &claim_of(7, 1, Claim::Declaration), &view);
    assert_eq!(peer.leader(&view), Some(&7));
    let deadline = peer.next_deadline();
    view.remove(&7);
    assert_eq!(peer.leader(&view), None);
    assert_eq!(peer.next_deadline(), deadline);
}

/// A follower in the middle of its second window, `silence` after the last declaration of peer 7.
fn follower(strict_lowest: bool, silence: Duration) -> (Peer<Id>, Time, BTreeSet<Id>) {
    let view = BTreeSet::from([1, 7]);
    let settings = Settings {
        windows: SHORT,
        strict_lowest,
    };
    let mut peer = peer(2, settings, &view);
    peer.receive(at(90), &claim_of(7, 1, Claim::Declaration), &view);
    peer.tick(at(100), &view);
    peer.receive(at(590), &claim_of(7, 2, Claim::Declaration), &view);
    peer.tick(at(600), &view);
    acts(&mut peer);
    (peer, at(590) + silence, view)
}

#[test]
fn a_strict_follower_joins_an_election_after_three_quarters_of_the_threshold_without_a_leader() {
    for (strict, silence, joins) in [(true, 374, false), (true, 375, true), (false, 400, false)] {
        let (mut peer, now, view) = follower(strict, ms(silence));
        peer.receive(now, &claim_of(1, 1, Claim::Proposal), &view);
        assert_eq!(peer.machine().is_electing(), joins, "{strict} {silence}");
    }
}

#[test]
fn a_strict_follower_joins_an_election_when_the_last_declarer_is_gone() {
    let (mut peer, now, mut view) = follower(true, ms(50));
    view.remove(&7);
    peer.receive(now, &claim_of(1, 1, Claim::Proposal), &view);
    assert!(peer.machine().is_electing());
}

#[test]
fn a_newcomer_with_the_lowest_id_unseats_no_living_leader_whenever_it_comes() {
    for strict_lowest in [false, true] {
        for step in 0..100 {
            let settings = Settings {
                windows: Windows {
                    election_duration: ms(260),
                    ..SHORT
                },
                strict_lowest,
            };
            let mut world = World::of(5..9, settings);
            world.run_for(ms(2_000));
            assert_eq!(world.leaders(), [5]);
            world.run_for(ms(5 * step));
            let sent = |world: &World| -> usize {
                let proposals = |id: &Id| world.stations[id].proposed.len();
                [6, 7, 8].iter().map(proposals).sum()
            };
            let before = sent(&world);
            world.start(1);
            world.run_for(ms(3_000));
            assert_eq!(world.leaders(), [5], "{step}");
            assert_eq!(world.callbacks(5), [true]);
            assert_eq!(
                sent(&world),
                before,
                "no member joined the newcomer's election"
            );
        }
    }
}

#[test]
fn a_peer_that_yields_at_the_moment_of_its_gain_does_not_declare_itself() {
    let view = BTreeSet::from([7]);
    let mut peer = peer(1, settings(SHORT), &view);
    while !peer.is_leader() {
        let at = peer.next_deadline().expect("not stopped");
        peer.tick(at, &view);
    }
    let mut sent = Vec::new();
    while let Some(act) = peer.poll_act() {
        sent.push(act);
        if act == Act::Gained {
            peer.yield_leadership(at(600));
        }
    }
    let expected = [
        Act::Send(Claim::Proposal),
        Act::Gained,
        Act::Window { leads: true },
        Act::Lost,
    ];
    assert_eq!(sent, expected);
}
