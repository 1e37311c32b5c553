//! Which incarnation of a leader is gone, and which one lives.

use super::*;
use crate::core::wire::LiveLeader;

/// What a voter that saw incarnation 5 of its leader end makes of a word that this incarnation lives.
fn believes(number: u64) -> bool {
    let mut voting = Voting::new();
    voting.hear_leader(at(10_000));
    voting.view.voters.remove(&id("leader"));
    let ended = ElectionInput::PeerDown {
        peer: id("leader"),
        incarnation: life(5),
        why: Gone::Closed,
    };
    voting
        .raft
        .handle(at(10_100), &voting.view, ended)
        .expect("no violation");
    let mut now = 10_100;
    while voting.raft.rules().role() != Role::PreCandidate {
        now += 10;
        voting
            .raft
            .handle(at(now), &voting.view, ElectionInput::Tick)
            .expect("no violation");
    }
    let round = voting.raft.rules().campaign().expect("it asks").round;
    let answer = ElectionMessage::PreVoteResponse {
        round,
        voter: id("candidate"),
        granted: false,
        record: voting.raft.record().clone(),
        live: Some(LiveLeader {
            id: id("leader"),
            incarnation: life(number),
            weight: 2,
            led_ms: 0,
            rest_ms: 1000,
        }),
    };
    let input = ElectionInput::Message {
        from: id("candidate"),
        stamp: stamp(1),
        message: answer,
    };
    voting
        .raft
        .handle(at(now + 10), &voting.view, input)
        .expect("no violation");
    voting.raft.leader() == Some(&id("leader"))
}

/// A clock may be set back between two starts: a smaller number is no earlier start.
#[test]
fn only_the_incarnation_that_ended_is_believed_to_be_gone() {
    assert!(!believes(5));
    assert!(believes(6));
    assert!(believes(4));
}
