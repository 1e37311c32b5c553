//! Messages that wait for the disk, and the order in which they go out (C8).

use super::*;
use crate::election::extra::Durable;

fn voting() -> Voting {
    Voting::with(|start| start.config.quorum = Quorum::of(&["voter", "candidate", "leader"]))
}

impl Voting {
    fn outputs(&mut self) -> Vec<OutputOf<Raft>> {
        std::iter::from_fn(|| self.raft.poll_output()).collect()
    }

    fn request(&mut self, term: u64, candidate: &str) {
        let from = id(candidate);
        let message = ElectionMessage::VoteRequest {
            round: term,
            candidate: from.clone(),
            asked_by: None,
        };
        let stamp = stamp(term);
        let input = ElectionInput::Message {
            from,
            message: Stamped::new(stamp, message),
        };
        self.raft
            .handle(at(10_000), &self.view, input)
            .expect("no violation");
    }

    fn persisted(&mut self, number: u64) {
        self.persisted_at(at(10_000), number);
    }

    fn persisted_at(&mut self, now: Time, number: u64) {
        self.raft.persisted(now, &self.view, number);
    }
}

/// The kinds of messages to `peer`.
fn sent(outputs: &[OutputOf<Raft>], peer: &str) -> Vec<&'static str> {
    let kinds = outputs.iter().filter_map(|output| match output {
        ElectionOutput::Send { to, message } if *to == id(peer) => Some(message.describe().kind),
        _ => None,
    });
    kinds.collect()
}

/// The states to store, with their numbers.
fn states(outputs: &[OutputOf<Raft>]) -> impl Iterator<Item = (u64, Saved)> {
    outputs.iter().filter_map(|output| match output {
        ElectionOutput::Extra(Extra::Persist { number, state }) => {
            Some((*number, state.decode().expect("its own state")))
        }
        _ => None,
    })
}

fn writes(outputs: &[OutputOf<Raft>]) -> Vec<(u64, u64, Option<PeerId>)> {
    let writes = states(outputs);
    writes
        .map(|(number, state)| (number, state.record.term(), state.voted_for))
        .collect()
}

/// The receiver and the round of each answer, and whether the vote was given.
fn answers(outputs: &[OutputOf<Raft>]) -> Vec<(PeerId, u64, bool)> {
    let answers = outputs.iter().filter_map(|output| match output {
        ElectionOutput::Send {
            to,
            message:
                Stamped {
                    message: ElectionMessage::VoteResponse { round, granted, .. },
                    ..
                },
            ..
        } => Some((to.clone(), *round, *granted)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_vote_is_answered_when_it_is_on_disk() {
    let mut voting = voting();
    voting.request(2, "candidate");
    let outputs = voting.outputs();
    assert_eq!(writes(&outputs), [(1, 2, Some(id("candidate")))]);
    assert_eq!(answers(&outputs), []);
    voting.persisted(1);
    assert_eq!(answers(&voting.outputs()), [(id("candidate"), 2, true)]);
}

#[test]
fn one_write_at_a_time_and_the_next_has_the_newest() {
    let mut voting = voting();
    for term in 2..6 {
        voting.request(term, "candidate");
        let first = writes(&voting.outputs());
        assert_eq!(first.len(), usize::from(term == 2));
    }
    voting.persisted(1);
    let outputs = voting.outputs();
    assert_eq!(writes(&outputs), [(2, 5, Some(id("candidate")))]);
    // The first answer has its write; of the others, only the last one to the candidate is kept.
    assert_eq!(answers(&outputs), [(id("candidate"), 2, true)]);
    voting.persisted(2);
    assert_eq!(answers(&voting.outputs()), [(id("candidate"), 5, true)]);
}

#[test]
fn messages_that_wait_for_a_write_keep_their_order_for_each_peer() {
    let mut voting = voting();
    voting.request(2, "leader");
    voting.request(2, "candidate");
    voting.outputs();
    voting.persisted(1);
    let both = [(id("leader"), 2, true), (id("candidate"), 2, false)];
    assert_eq!(answers(&voting.outputs()), both);
}

#[test]
fn messages_queued_for_a_lost_link_are_not_sent_on_the_next() {
    let mut voting = voting();
    voting.request(2, "candidate");
    voting.outputs();
    let down = Local::PeerDown {
        peer: id("candidate"),
        incarnation: life(0),
        why: DownReason::Silent,
    };
    voting
        .raft
        .handle(at(10_000), &voting.view, down.into())
        .expect("no violation");
    voting.persisted(1);
    assert_eq!(answers(&voting.outputs()), []);
}

#[test]
fn a_number_that_was_never_asked_for_releases_nothing() {
    let mut voting = voting();
    voting.request(2, "candidate");
    voting.outputs();
    voting.persisted(0);
    assert_eq!(answers(&voting.outputs()), []);
    voting.persisted(1);
    assert_eq!(answers(&voting.outputs()).len(), 1);
    voting.persisted(1);
    assert_eq!(voting.outputs(), []);
}

#[test]
fn a_disk_that_never_answers_fills_no_memory() {
    let mut voting = voting();
    for term in 2..10_000 {
        voting.request(term, "candidate");
        voting.outputs();
    }
    voting.persisted(1);
    assert_eq!(answers(&voting.outputs()), [(id("candidate"), 2, true)]);
    voting.persisted(2);
    assert_eq!(answers(&voting.outputs()), [(id("candidate"), 9_999, true)]);
}

#[test]
fn o14_a_restarted_voter_gives_no_second_vote() {
    let saved = Saved {
        writes: 7,
        record: Record::undecided(stamp(2)),
        voted_for: Some(id("leader")),
        forgotten: None,
        others: BTreeMap::new(),
    };
    let mut voting = Voting::with(|start| {
        start.config.quorum = Quorum::of(&["voter", "candidate", "leader"]);
        start.saved = Some(saved);
    });
    voting.request(2, "candidate");
    let first = voting.outputs();
    assert_eq!(answers(&first), [(id("candidate"), 2, false)]);
    voting.request(2, "leader");
    assert_eq!(answers(&voting.outputs()), [(id("leader"), 2, true)]);
}

/// The write counter and the number of known voters of each write.
fn counters(outputs: &[OutputOf<Raft>]) -> Vec<(u64, usize)> {
    let writes = states(outputs);
    writes
        .map(|(_, state)| (state.writes, state.others.len()))
        .collect()
}

/// Two voters that write their knowledge of each other must not raise each other's counters for ever.
#[test]
fn the_write_counter_rises_with_votes_and_not_with_what_is_known_of_others() {
    let mut voting = voting();
    assert_eq!(voting.raft.writes(), 1);
    let side = || Side {
        record: Record::default(),
        live: None,
        lone: true,
        since: 4,
        hold_binds: false,
    };
    let met = ElectionInput::PeerUp {
        peer: id("leader"),
        key: Fingerprint([7; 32]),
        ours: side(),
        theirs: side(),
    };
    voting
        .raft
        .handle(at(9_000), &voting.view, met)
        .expect("no violation");
    assert_eq!(counters(&voting.outputs()), [(1, 1)]);
    voting.persisted(1);
    assert_eq!((voting.outputs().len(), voting.raft.writes()), (0, 1));
    voting.request(2, "candidate");
    assert_eq!(counters(&voting.outputs()), [(2, 1)]);
    assert_eq!(voting.raft.writes(), 1, "it is not on disk yet");
    voting.persisted(2);
    assert_eq!(voting.raft.writes(), 2);
    // A vote that was already given is no change.
    voting.outputs();
    voting.request(2, "candidate");
    assert_eq!(counters(&voting.outputs()), []);
}

/// Only a campaign waits for votes.
#[test]
fn a_write_of_a_follower_opens_no_round() {
    let mut voting = voting();
    voting.request(2, "candidate");
    voting.outputs();
    voting.persisted(1);
    assert_eq!(voting.raft.role.round_at(), None);
}

/// Whether it asks for votes.
fn asks(outputs: &[OutputOf<Raft>]) -> bool {
    let asks = |message: &Stamped| matches!(message.message, ElectionMessage::VoteRequest { .. });
    outputs
        .iter()
        .any(|output| matches!(output, ElectionOutput::Send { message, .. } if asks(message)))
}

#[test]
fn a_request_for_votes_that_waits_for_the_disk_is_not_sent_by_an_observer() {
    for stands in [true, false] {
        let mut voting = voting();
        voting.receive_leader(at(10_000));
        let target = id("voter");
        voting.take(
            at(10_000),
            ElectionInput::Message {
                from: id("leader"),
                message: Stamped::new(stamp(1), ElectionMessage::TimeoutNow { target }),
            },
        );
        assert!(!asks(&voting.outputs()), "its term is not on disk");
        voting.take(at(10_000), Local::SetEligible(stands));
        for number in 1..4 {
            voting.persisted(number);
        }
        assert_eq!(asks(&voting.outputs()), stands);
    }
}

#[test]
fn a_vote_that_waits_for_the_disk_is_not_given_by_an_observer() {
    let mut voting = voting();
    voting.request(2, "candidate");
    voting.request(2, "leader");
    voting.outputs();
    voting
        .raft
        .handle(at(10_000), &voting.view, Local::SetEligible(false).into())
        .expect("no violation");
    voting.persisted(1);
    assert_eq!(answers(&voting.outputs()), [(id("leader"), 2, false)]);
}

/// P14: its host already knows that the transfer failed.
#[test]
fn a_transfer_that_was_given_up_is_not_asked_for_when_the_disk_is_back() {
    for (written_at, asked) in [(12_900, vec!["transfer_request"]), (13_100, vec![])] {
        let mut voting = voting();
        voting.receive_leader(at(10_000));
        assert_eq!(writes(&voting.outputs()).len(), 1);
        let target = id("candidate");
        voting.take(at(10_000), Local::SetLeader { target });
        for ms in [11_000, 12_000, 12_900] {
            voting.receive_leader(at(ms));
        }
        assert_eq!(sent(&voting.outputs(), "leader"), [""; 0]);
        voting.take(at(written_at), Local::Tick);
        voting.persisted_at(at(written_at), 1);
        assert_eq!(sent(&voting.outputs(), "leader"), asked);
    }
}

/// P14: a leader that has not asked its successor yet.
#[test]
fn a_leader_that_leads_on_asks_no_other_to_follow_it_when_the_disk_is_back() {
    for (cancels, asked) in [(false, vec!["timeout_now"]), (true, vec![])] {
        let mut voting = voting();
        voting.receive_leader(at(10_000));
        let target = id("voter");
        let message = Stamped::new(stamp(1), ElectionMessage::TimeoutNow { target });
        let from = id("leader");
        voting.take(at(10_000), ElectionInput::Message { from, message });
        let (from, voter) = (id("candidate"), id("candidate"));
        let vote = ElectionMessage::VoteResponse {
            round: 1,
            voter,
            granted: true,
            record: Record::undecided(stamp(2)),
            live: None,
        };
        let message = Stamped::new(stamp(2), vote);
        voting.take(at(10_000), ElectionInput::Message { from, message });
        assert_eq!(voting.raft.rules().role(), RoleKind::Leader);
        let transfers_to = |target| Local::Transfer {
            target: Some(id(target)),
        };
        voting.take(at(10_000), transfers_to("candidate"));
        let mut outputs = voting.outputs();
        if cancels {
            voting.take(at(10_000), transfers_to("voter"));
        }
        for number in 1..4 {
            voting.persisted(number);
            outputs.extend(voting.outputs());
        }
        let mut sent = sent(&outputs, "candidate");
        sent.retain(|kind| *kind == "timeout_now");
        assert_eq!(sent, asked);
    }
}
