//! The answers of a single voter. `tests/sim` shows how rooms behave.

mod durable;
mod hold;
mod lives;
mod memory;
mod quorum;
mod rounds;

use std::collections::BTreeMap;

use super::*;
use crate::election::bound::WallClock;
use crate::election::raft::wire::{ElectionMessage, LiveLeader, Side};
use crate::election::record::Stamp;
use crate::election::rules::RoleKind;
use crate::quorum::Quorum;

const MIN: Duration = Duration::from_millis(1500);

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("valid")
}

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

fn life(number: u64) -> Incarnation {
    Incarnation {
        started_us: number,
        random: number,
    }
}

fn stamp(term: u64) -> Stamp {
    Stamp {
        term,
        ..Stamp::default()
    }
}

/// A node that starts for the first time.
fn start(name: &str, incarnation: u64) -> Start<Saved> {
    Start {
        key: Fingerprint([0; 32]),
        me: id(name),
        incarnation: life(incarnation),
        config: ElectionConfig::for_tests(),
        saved: None,
        clock: WallClock::new(Time::ZERO, Duration::ZERO),
        seed: 7,
    }
}

/// A voter that is linked to a leader and to a candidate.
struct Voting {
    raft: Raft,
    view: View,
}

impl Voting {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Start<Saved>)) -> Self {
        let mut start = start("voter", 9);
        start.config.election_timeout_max = MIN * 2;
        change(&mut start);
        let mut view = View::default();
        for (number, name) in ["candidate", "leader"].into_iter().enumerate() {
            let voter = Voter {
                key: Fingerprint([0; 32]),
                incarnation: life(number as u64),
                eligible: true,
                priority: 0,
                rtt: None,
            };
            view.voters.insert(id(name), voter);
        }
        Self {
            raft: Raft::new(at(0), start),
            view,
        }
    }

    fn receive_leader(&mut self, now: Time) {
        self.receive_leader_with(now, 1500);
    }

    fn receive_leader_with(&mut self, now: Time, election_timeout_min_ms: u32) {
        let pulse = Pulse::Leads {
            record: Record {
                leader: Some(id("leader")),
                leader_key: Some(Fingerprint([0; 32])),
                ..Record::undecided(stamp(1))
            },
            weight: 3,
            led_ms: 0,
            election_timeout_min_ms,
        };
        let from = id("leader");
        let input = ElectionInput::Pulse {
            from,
            pulse: pulse.into(),
        };
        self.raft
            .handle(now, &self.view, input)
            .expect("no violation");
    }

    fn take(&mut self, now: Time, input: impl Into<InputOf<Raft>>) {
        self.raft
            .handle(now, &self.view, input.into())
            .expect("no violation");
    }

    /// Whether `candidate` gets the vote of term 2.
    fn asked(&mut self, now: Time, candidate: &str, asked_by: Option<&str>) -> bool {
        while self.raft.poll_output().is_some() {}
        let from = id(candidate);
        let message = ElectionMessage::VoteRequest {
            round: 1,
            candidate: from.clone(),
            asked_by: asked_by.map(id),
        };
        let input = ElectionInput::Message {
            from,
            message: Stamped::new(stamp(2), message),
        };
        self.raft
            .handle(now, &self.view, input)
            .expect("no violation");
        match self.raft.poll_output() {
            Some(ElectionOutput::Send {
                message:
                    Stamped {
                        message: ElectionMessage::VoteResponse { granted, .. },
                        ..
                    },
                ..
            }) => granted,
            // It waits for the leader's message.
            None if asked_by.is_some() => false,
            other => panic!("no answer, but {other:?}"),
        }
    }
}

#[test]
fn r32_o10_a_voter_with_a_living_leader_grants_no_vote() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    let before = voting.raft.leadership().record.clone();
    assert!(!voting.asked(at(11_499), "candidate", None));
    assert_eq!(
        *voting.raft.leadership().record,
        before,
        "the term is not taken over"
    );
    assert!(voting.asked(at(11_500), "candidate", None));
}

#[test]
fn o18_hc6_a_leader_that_transfers_does_not_block_its_target() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    assert!(voting.asked(at(10_001), "candidate", Some("leader")));
}

/// P12: the target's heartbeat of its new term may arrive in between.
#[test]
fn a_voter_grants_the_vote_that_the_leader_asks_for_in_any_order_of_messages() {
    let mut voting = Voting::with(|start| {
        start.config.quorum = Quorum::of(&["voter", "candidate", "leader"]);
    });
    voting.receive_leader(at(10_000));
    assert!(!voting.asked(at(10_010), "candidate", Some("leader")));
    let pulse = Pulse::Follows {
        record: Record::undecided(stamp(2)),
        live: false,
    };
    let from = id("candidate");
    voting.take(
        at(10_020),
        ElectionInput::Pulse {
            from,
            pulse: pulse.into(),
        },
    );
    assert_eq!(voting.raft.leadership().record.term(), 2);
    assert_eq!(voting.raft.rules().voted_for(), None);
    let message = ElectionMessage::TimeoutNow {
        target: id("candidate"),
    };
    let message_of = |from: &str| ElectionInput::Message {
        from: id(from),
        message: Stamped::new(stamp(1), message.clone()),
    };
    voting.take(at(10_030), message_of("candidate"));
    assert_eq!(
        voting.raft.rules().voted_for(),
        None,
        "it is not the leader"
    );
    voting.take(at(10_040), message_of("leader"));
    assert_eq!(voting.raft.rules().voted_for(), Some(&id("candidate")));
}

/// P12: the leader reports that it no longer leads as soon as it has voted for its successor, whose votes are on their
/// way.
#[test]
fn a_leader_that_gave_way_to_its_successor_starts_no_other_campaign() {
    for (successor, waits) in [(None, false), (Some("candidate"), true)] {
        let mut voting = Voting::new();
        voting.receive_leader(at(10_000));
        if let Some(target) = successor.map(id) {
            let (from, stamp) = (id("leader"), stamp(1));
            let message = ElectionMessage::TimeoutNow { target };
            voting.take(
                at(10_010),
                ElectionInput::Message {
                    from,
                    message: Stamped::new(stamp, message),
                },
            );
            assert!(voting.asked(at(10_020), "candidate", Some("leader")));
        }
        let pulse = Pulse::Follows {
            record: voting.raft.leadership().record.clone(),
            live: false,
        };
        let from = id("leader");
        voting.take(
            at(10_030),
            ElectionInput::Pulse {
                from,
                pulse: pulse.into(),
            },
        );
        let campaigns_at = voting.raft.next_deadline().expect("no member leads");
        assert_eq!(campaigns_at > at(10_330), waits, "{campaigns_at:?}");
    }
}

/// P2: each campaigns in place above a third record, so both hold the same record, which names no leader.
#[test]
fn of_two_leaders_that_campaign_in_place_in_one_term_the_lighter_gives_way() {
    let mut voting = Voting::new();
    let target = id("voter");
    voting.take(at(0), Local::SetLeader { target });
    let mut above = voting.raft.leadership().record.clone();
    above.stamp.term += 3;
    above.assigned = false;
    above.leader = Some(id("candidate"));
    let nack = ElectionMessage::Nack {
        record: above,
        live: None,
    };
    let from = id("leader");
    let stamp = voting.raft.leadership().record.stamp.clone();
    let message = nack;
    voting.take(
        at(100),
        ElectionInput::Message {
            from,
            message: Stamped::new(stamp, message),
        },
    );
    let record = voting.raft.leadership().record.clone();
    assert_eq!(voting.raft.rules().role(), RoleKind::Leader);
    assert_eq!(record.leader, None, "it campaigns in place");
    let heavier = LiveLeader {
        key: Fingerprint([0; 32]),
        id: id("candidate"),
        incarnation: life(0),
        weight: 5,
        led_ms: 5000,
        rest_ms: 1500,
    };
    let side = |live| Side {
        record: record.clone(),
        live: Some(live),
        lone: false,
        since: 0,
        hold_binds: false,
    };
    let ours = voting.raft.side(at(200), &voting.view).live;
    let (ours, theirs) = (side(ours.expect("it leads")), side(heavier));
    let peer = id("candidate");
    let key = Fingerprint([0; 32]);
    voting.take(
        at(200),
        ElectionInput::PeerUp {
            peer,
            key,
            ours,
            theirs,
        },
    );
    assert_eq!(voting.raft.rules().role(), RoleKind::Follower);
    assert_eq!(voting.raft.leader(), Some(&id("candidate")));
}

/// P14: its Hello was on the way through a cut, in which it elected itself.
#[test]
fn a_leader_that_was_elected_after_its_hello_gives_way_to_a_larger_side() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    let before = voting.raft.leadership().record.clone();
    let linked = std::mem::take(&mut voting.view.voters);
    for (peer, voter) in &linked {
        let lost = Local::PeerDown {
            peer: peer.clone(),
            incarnation: voter.incarnation,
            why: DownReason::Silent,
        };
        voting.take(at(11_500), lost);
    }
    while voting.raft.rules().role() != RoleKind::Leader {
        let due = voting.raft.next_deadline().expect("it campaigns");
        voting.take(due, Local::Tick);
    }
    let side = |led_ms| Side {
        record: before.clone(),
        live: Some(LiveLeader {
            key: Fingerprint([0; 32]),
            id: id("leader"),
            incarnation: life(1),
            weight: 4,
            led_ms,
            rest_ms: 1500,
        }),
        lone: false,
        since: 0,
        hold_binds: false,
    };
    let peer = id("candidate");
    voting
        .view
        .voters
        .insert(peer.clone(), linked[&peer].clone());
    let met = ElectionInput::PeerUp {
        peer,
        key: Fingerprint([0; 32]),
        ours: side(9_000),
        theirs: side(8_000),
    };
    voting.take(at(20_000), met);
    assert_eq!(voting.raft.rules().role(), RoleKind::Follower);
}

/// P14: the leader of a small side named a successor that many nodes can hear, which have a leader of their own.
#[test]
fn a_leader_of_another_side_hands_nothing_over_here() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    let before = voting.raft.leadership().record.clone();
    assert!(!voting.asked(at(10_001), "candidate", Some("another")));
    assert_eq!(*voting.raft.leadership().record, before);
}

#[test]
fn hc6_the_lease_does_not_bind_the_leader_that_holds_it() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    assert!(voting.asked(at(10_001), "leader", None));
}

#[test]
fn o15_a_node_that_just_started_votes_only_when_it_knows_the_room() {
    let mut voting = Voting::new();
    assert!(!voting.asked(at(2_999), "candidate", None));
    assert!(voting.asked(at(3_000), "candidate", None));

    let mut voting = Voting::new();
    voting.receive_leader(at(100));
    assert!(voting.asked(at(1_600), "candidate", None));
}
