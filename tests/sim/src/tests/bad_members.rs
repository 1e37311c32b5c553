//! Members that break the protocol: each costs its own link and nothing else (C6 G16). A member whose counter is too large costs
//! nothing (C4.8).

use room_core::election::raft::wire::{ElectionMessage, Pulse, Stamped};
use room_core::election::record::{Epoch, Record, Stamp};
use room_core::id::PeerId;
use room_core::node::LinkEnd;
use room_core::time::Duration;
use room_core::wire::{Envelope, Message, PeerEntry};

use crate::decoded;
use crate::trace::Trace;
use crate::world::{Settings, World};

const LEAP: u64 = 1 << 20;

/// A settled room of three: (room, leader, the bad member, the third).
fn room() -> (World, usize, usize, usize) {
    let mut world = World::new(1, 3, Settings::default(), Trace::on());
    for slot in 0..3 {
        world.start(slot);
        world.connect(slot, 0);
    }
    world.run_for(Duration::from_secs(10));
    let leader = world.agreed().expect("a leader");
    (world, leader, (leader + 1) % 3, (leader + 2) % 3)
}

fn stamp_of(world: &World, slot: usize) -> Stamp {
    let node = world.node(slot).expect("it runs");
    node.record().stamp.clone()
}

/// Sends a message as if the member's core had sent it.
fn forge(world: &mut World, from: usize, to: usize, message: Message) {
    let incarnation = world.node(from).expect("it runs").incarnation();
    world.forge(
        from,
        to,
        Envelope {
            incarnation,
            message,
        },
    );
}

fn elects(stamp: Stamp, message: ElectionMessage) -> Message {
    Message::from(Stamped::new(stamp, message))
}

/// `message` of the bad member costs it its link to `to`, and changes nothing for the others.
fn costs_the_link(make: impl Fn(&World, usize, usize) -> Message) {
    let (mut world, leader, bad, third) = room();
    for to in [leader, third] {
        let before = stamp_of(&world, to);
        let message = make(&world, bad, third);
        forge(&mut world, bad, to, message);
        world.run_for(Duration::from_millis(50));
        assert_eq!(world.violation, None);
        let closed = world.closes.last().expect("a link was closed");
        assert_eq!((closed.0, &closed.1), (to, &world.slots[bad].id));
        assert!(matches!(closed.2, LinkEnd::Violation(_)), "{:?}", closed.2);
        assert_eq!(stamp_of(&world, to), before, "the record changed");
        // The bad member may lead once it is alone.
        let others = world.leaders().into_iter().filter(|slot| *slot != bad);
        assert_eq!(others.collect::<Vec<_>>(), [leader]);
    }
    assert_eq!(world.closes.len(), 2, "{:?}", world.closes);
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.violation, None);
    let shown = world.node(third).and_then(|node| node.leader());
    assert_eq!(shown, Some(&world.slots[leader].id));
    assert!(world.is_linked(leader, third));
    assert!(!world.is_linked(leader, bad) && !world.is_linked(third, bad));
}

fn next_term(world: &World, slot: usize) -> Stamp {
    let mut stamp = stamp_of(world, slot);
    stamp.term += 1;
    stamp
}

fn other(world: &World, bad: usize) -> PeerId {
    world.slots[(bad + 1) % 3].id.clone()
}

#[test]
fn a_vote_request_in_anothers_name_costs_the_link() {
    costs_the_link(|world, bad, _| {
        let message = ElectionMessage::VoteRequest {
            round: 1,
            candidate: other(world, bad),
            asked_by: None,
        };
        elects(next_term(world, bad), message)
    });
}

#[test]
fn votes_in_anothers_name_cost_the_link() {
    costs_the_link(|world, bad, _| {
        let message = ElectionMessage::VoteResponse {
            round: 1,
            voter: other(world, bad),
            granted: true,
            record: Record::default(),
            live: None,
        };
        elects(stamp_of(world, bad), message)
    });
    costs_the_link(|world, bad, _| {
        let message = ElectionMessage::PreVoteRequest {
            round: 1,
            candidate: other(world, bad),
            term: 9,
        };
        elects(stamp_of(world, bad), message)
    });
}

#[test]
fn leading_in_anothers_name_costs_the_link() {
    costs_the_link(|world, bad, _| {
        let record = Record {
            leader_key: None,
            stamp: next_term(world, bad),
            leader: Some(other(world, bad)),
            assigned: false,
        };
        let pulse = Pulse::Leads {
            record,
            weight: 3,
            led_ms: 0,
            election_timeout_min_ms: 1500,
        };
        decoded::heartbeat(pulse)
    });
}

#[test]
fn an_assignment_in_anothers_name_costs_the_link() {
    costs_the_link(|world, bad, _| {
        let record = Record {
            leader_key: None,
            stamp: Stamp {
                epoch: Epoch {
                    assigner_key: None,
                    override_seq: 1,
                    assigner: Some(other(world, bad)),
                },
                term: 2,
            },
            leader: Some(other(world, bad)),
            assigned: true,
        };
        let message = ElectionMessage::LeaderAssign { record, seq: 1 };
        elects(stamp_of(world, bad), message)
    });
}

/// The bad member asks for a vote, nacks, and follows, all under `stamp`; returns the stamps of the leader and the third one
/// after that.
fn counted(stamp: impl Fn(&World, usize, usize) -> Stamp) -> [Stamp; 2] {
    let (mut world, leader, bad, third) = room();
    // Terms leap here, which P15 forbids.
    world.checker.lied_to = true;
    for to in [leader, third] {
        let stamp = stamp(&world, bad, to);
        let record = Record::undecided(stamp.clone());
        let candidate = world.slots[bad].id.clone();
        let request = ElectionMessage::VoteRequest {
            round: 1,
            candidate,
            asked_by: None,
        };
        let nack = ElectionMessage::Nack {
            record: record.clone(),
            live: None,
        };
        let pulse = Pulse::Follows {
            record,
            live: false,
        };
        for message in [request, nack] {
            forge(&mut world, bad, to, elects(stamp.clone(), message));
        }
        forge(&mut world, bad, to, decoded::heartbeat(pulse));
    }
    world.run_for(Duration::from_millis(100));
    let found = [leader, third].map(|slot| stamp_of(&world, slot));
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.violation, None);
    assert_eq!(world.closes, []);
    for one in 0..3 {
        assert!((0..3).all(|other| one == other || world.is_linked(one, other)));
    }
    assert!(world.agreed().is_some());
    found
}

#[test]
fn counters_above_the_bound_of_the_clock_change_nothing() {
    let (world, leader, ..) = room();
    let before = stamp_of(&world, leader);
    let bound = |world: &World, to: usize| {
        let node = world.node(to).expect("it runs");
        node.counter_bound(world.local(to))
    };
    let later = 1024; // an upper bound: forged messages arrive within some milliseconds
    for beyond in [0, 1 << 50, u64::MAX - (1 << 42)] {
        let term = counted(|world, _, to| Stamp {
            term: bound(world, to) + later + beyond,
            ..stamp_of(world, to)
        });
        assert!(term.iter().all(|stamp| *stamp == before), "{term:?}");
        let epoch = counted(|world, bad, to| Stamp {
            epoch: Epoch {
                assigner_key: None,
                override_seq: bound(world, to) + later + beyond,
                assigner: Some(world.slots[bad].id.clone()),
            },
            term: 1,
        });
        assert!(epoch.iter().all(|stamp| *stamp == before), "{epoch:?}");
    }
}

#[test]
fn a_leader_goes_above_a_leaping_term_and_no_link_is_lost() {
    let stamps = counted(|world, _, to| {
        let mut stamp = stamp_of(world, to);
        stamp.term += LEAP;
        stamp
    });
    assert!(stamps.iter().all(|stamp| stamp.term > LEAP), "{stamps:?}");
}

/// It starts in term 0: no distance from that is a violation.
#[test]
fn a_newcomer_links_to_all_members_of_a_room_whose_term_is_far_above_its_own() {
    const FAR: u64 = 1 << 30;
    let (mut world, leader, bad, third) = room();
    world.checker.lied_to = true;
    for to in [leader, third] {
        let stamp = Stamp {
            term: FAR,
            ..stamp_of(&world, to)
        };
        let nack = ElectionMessage::Nack {
            record: Record::undecided(stamp.clone()),
            live: None,
        };
        forge(&mut world, bad, to, elects(stamp, nack));
    }
    world.run_for(Duration::from_secs(5));
    let led = world.agreed().expect("a leader");
    assert!(world.term(led) > FAR);
    world.add_slots(1);
    world.start(3);
    world.connect(3, third);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.violation, None);
    assert_eq!(world.closes, []);
    assert!((0..3).all(|member| world.is_linked(3, member)));
    assert_eq!(world.agreed(), Some(led));
    assert!(world.term(3) > FAR);
}

#[test]
fn a_peer_list_that_is_too_long_costs_the_link() {
    costs_the_link(|world, _, third| {
        let entry = PeerEntry {
            id: world.slots[third].id.clone(),
            key: room_core::id::Fingerprint([7; 32]),
            addresses: Vec::new(),
        };
        Message::PeerList(vec![entry; 129])
    });
}
