//! Members that break the protocol: each costs its own link and nothing else (C4.8, C6 G16).

use meta_mystia_network::core::election::record::{Epoch, Record, Stamp};
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::core::node::LinkEnd;
use meta_mystia_network::core::time::Duration;
use meta_mystia_network::core::wire::{
    ElectionMessage, Envelope, Heartbeat, Message, PeerEntry, Pulse,
};

use crate::trace::Trace;
use crate::world::{Settings, World};

const MAX_COUNTER: u64 = 1 << 48;
const MAX_JUMP: u64 = 1 << 20;

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

/// Sends a message with a stamp as if the member's core had.
fn forge(world: &mut World, from: usize, to: usize, stamp: Stamp, message: Message) {
    let incarnation = world.node(from).expect("it runs").incarnation();
    world.forge(
        from,
        to,
        Envelope {
            incarnation,
            stamp,
            message,
        },
    );
}

/// `message` of the bad member costs it its link to `to`, and nobody else anything.
fn costs_the_link(make: impl Fn(&World, usize, usize) -> (Stamp, Message)) {
    let (mut world, leader, bad, third) = room();
    for to in [leader, third] {
        let before = stamp_of(&world, to);
        let (stamp, message) = make(&world, bad, third);
        forge(&mut world, bad, to, stamp, message);
        world.run_for(Duration::from_millis(50));
        assert_eq!(world.violation, None);
        let closed = world.closes.last().expect("a link was closed");
        assert_eq!((closed.0, &closed.1), (to, &world.slots[bad].id));
        assert!(matches!(closed.2, LinkEnd::Violation(_)), "{:?}", closed.2);
        assert_eq!(stamp_of(&world, to), before, "the record changed");
        assert_eq!(world.leaders(), [leader]);
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
        (next_term(world, bad), Message::Election(message))
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
        (stamp_of(world, bad), Message::Election(message))
    });
    costs_the_link(|world, bad, _| {
        let message = ElectionMessage::PreVoteRequest {
            round: 1,
            candidate: other(world, bad),
            term: 9,
        };
        (stamp_of(world, bad), Message::Election(message))
    });
}

#[test]
fn leading_in_anothers_name_costs_the_link() {
    costs_the_link(|world, bad, _| {
        let record = Record {
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
        let heartbeat = Heartbeat {
            seq: 999,
            echo: None,
            pulse,
        };
        (stamp_of(world, bad), Message::Heartbeat(heartbeat))
    });
}

#[test]
fn an_assignment_in_anothers_name_costs_the_link() {
    costs_the_link(|world, bad, _| {
        let record = Record {
            stamp: Stamp {
                epoch: Epoch {
                    override_seq: 1,
                    assigner: Some(other(world, bad)),
                },
                term: 2,
            },
            leader: Some(other(world, bad)),
            assigned: true,
        };
        let message = ElectionMessage::LeaderAssign { record, seq: 1 };
        (stamp_of(world, bad), Message::Election(message))
    });
}

#[test]
fn counters_that_run_away_cost_the_link() {
    let vote_at = |world: &World, bad: usize, stamp: Stamp| {
        let candidate = world.slots[bad].id.clone();
        let message = ElectionMessage::VoteRequest {
            round: 1,
            candidate,
            asked_by: None,
        };
        (stamp, Message::Election(message))
    };
    for beyond in [MAX_COUNTER + 1, u64::MAX] {
        costs_the_link(|world, bad, _| {
            vote_at(
                world,
                bad,
                Stamp {
                    term: beyond,
                    ..stamp_of(world, bad)
                },
            )
        });
    }
    costs_the_link(|world, bad, _| {
        let stamp = stamp_of(world, bad);
        vote_at(
            world,
            bad,
            Stamp {
                term: stamp.term + MAX_JUMP + 1,
                ..stamp
            },
        )
    });
    costs_the_link(|world, bad, _| {
        let assigner = Some(world.slots[bad].id.clone());
        let epoch = Epoch {
            override_seq: MAX_JUMP + 1,
            assigner,
        };
        vote_at(world, bad, Stamp { epoch, term: 1 })
    });
    costs_the_link(|world, bad, _| {
        let mut record = Record::undecided(stamp_of(world, bad));
        record.stamp.term = MAX_COUNTER + 1;
        let message = ElectionMessage::Nack { record, live: None };
        (stamp_of(world, bad), Message::Election(message))
    });
    costs_the_link(|world, bad, _| {
        let mut record = Record::undecided(stamp_of(world, bad));
        record.stamp.epoch.override_seq = u64::MAX;
        let pulse = Pulse::Follows {
            record,
            live: false,
        };
        let heartbeat = Heartbeat {
            seq: 999,
            echo: None,
            pulse,
        };
        (stamp_of(world, bad), Message::Heartbeat(heartbeat))
    });
}

#[test]
fn a_peer_list_that_is_too_long_costs_the_link() {
    costs_the_link(|world, bad, third| {
        let entry = PeerEntry {
            id: world.slots[third].id.clone(),
            key: meta_mystia_network::core::id::Fingerprint([7; 32]),
            addresses: Vec::new(),
        };
        (stamp_of(world, bad), Message::PeerList(vec![entry; 129]))
    });
}
