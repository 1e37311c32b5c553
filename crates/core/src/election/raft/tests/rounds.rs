//! Rounds of pre-votes and votes: when they are won, repeated or left to another node.

use super::*;
use crate::election::raft::round_trips::UNKNOWN_RTT;
use crate::election::raft::wire::LiveLeader;

/// A node "m" that decides; the test plays the others.
struct Asker {
    raft: Raft,
    view: View,
    now: Time,
}

impl Asker {
    fn linked_to(peers: &[&str]) -> Self {
        let mut start = start("m", 9);
        start.config.election_timeout_max = MIN * 2;
        let mut view = View::default();
        for (number, name) in peers.iter().enumerate() {
            let voter = Voter {
                key: Fingerprint([0; 32]),
                incarnation: life(number as u64),
                eligible: true,
                priority: 0,
                rtt: None,
            };
            view.voters.insert(id(name), voter);
        }
        let raft = Raft::new(at(0), start);
        let now = at(10_000);
        Self { raft, view, now }
    }

    /// A follower of "leader", which reports `weight` voters.
    fn led(peers: &[&str], weight: u32) -> Self {
        let mut asker = Self::linked_to(&[peers, &["leader"]].concat());
        let record = Record {
            leader: Some(id("leader")),
            leader_key: Some(Fingerprint([0; 32])),
            ..Record::undecided(stamp(1))
        };
        asker.feed(ElectionInput::Pulse {
            from: id("leader"),
            pulse: Beat::from(Pulse::Leads {
                record,
                weight,
                led_ms: 0,
                election_timeout_min_ms: 1500,
            }),
        });
        asker
    }

    fn feed(&mut self, input: impl Into<InputOf<Raft>>) {
        self.raft
            .handle(self.now, &self.view, input.into())
            .expect("no violation");
    }

    fn loses(&mut self, peers: &[&str]) {
        for name in peers {
            let voter = self.view.voters.remove(&id(name)).expect("it was linked");
            self.feed(Local::PeerDown {
                peer: id(name),
                incarnation: voter.incarnation,
                why: DownReason::Silent,
            });
        }
    }

    /// Advances to its next deadline.
    fn waits(&mut self) {
        self.now = self.raft.next_deadline().expect("a timer runs");
        self.feed(Local::Tick);
    }

    /// Its election timer fires, after its grace.
    fn times_out(&mut self) {
        for _ in 0..3 {
            self.waits();
            if self.role() != RoleKind::Follower {
                return;
            }
        }
        panic!("no round begins");
    }

    fn role(&self) -> RoleKind {
        self.raft.rules().role()
    }

    /// An answer to the open round.
    fn receives(&mut self, voter: &str, granted: bool, live: Option<LiveLeader>) {
        let record = self.raft.rules().record().clone();
        self.receives_in(record, voter, granted, live);
    }

    /// An answer to the open round by a voter that follows `record`.
    fn receives_in(
        &mut self,
        record: Record,
        voter: &str,
        granted: bool,
        live: Option<LiveLeader>,
    ) {
        let rules = self.raft.rules();
        let round = rules.campaign().expect("a round is open").round;
        let (from, stamp) = (id(voter), record.stamp.clone());
        let voter = from.clone();
        let message = if rules.role() == RoleKind::PreCandidate {
            ElectionMessage::PreVoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            }
        } else {
            ElectionMessage::VoteResponse {
                round,
                voter,
                granted,
                record,
                live,
            }
        };
        self.feed(ElectionInput::Message {
            from,
            message: Stamped::new(stamp, message),
        });
    }

    fn is_asked_by(&mut self, peer: &str) {
        let from = id(peer);
        let stamp = self.raft.leadership().record.stamp.clone();
        let message = ElectionMessage::PreVoteRequest {
            round: 1,
            candidate: from.clone(),
            term: stamp.term + 1,
        };
        self.feed(ElectionInput::Message {
            from,
            message: Stamped::new(stamp, message),
        });
    }
}

fn living(leader: &str) -> LiveLeader {
    LiveLeader {
        key: Fingerprint([0; 32]),
        id: id(leader),
        incarnation: life(2),
        weight: 4,
        led_ms: 9000,
        rest_ms: 1400,
    }
}

#[test]
fn a_small_part_of_a_side_waits_for_the_member_with_a_living_leader() {
    // Five voters; this one lost the leader and half of the others.
    let part = || {
        let mut asker = Asker::led(&["a", "b", "c"], 5);
        asker.loses(&["c", "leader"]);
        asker.times_out();
        assert_eq!(asker.role(), RoleKind::PreCandidate);
        asker.receives("a", true, None);
        assert_eq!(
            asker.role(),
            RoleKind::PreCandidate,
            "two of three is not sure"
        );
        asker
    };
    let mut objected = part();
    objected.receives("b", false, Some(living("leader")));
    assert_eq!(objected.role(), RoleKind::Follower);
    assert_eq!(objected.raft.leader(), Some(&id("leader")));
    // A voter that refuses without a leader, or does not answer, does not object.
    let mut refused = part();
    refused.receives("b", false, None);
    assert_eq!(refused.role(), RoleKind::Candidate);
    let mut silent = part();
    let asked = silent.now;
    silent.waits();
    assert_eq!(silent.role(), RoleKind::Candidate);
    assert!(silent.now.since(asked) >= UNKNOWN_RTT * 3);
}

#[test]
fn a_majority_of_the_remaining_members_suffices_after_a_crash() {
    let mut asker = Asker::led(&["a", "b", "c"], 5);
    asker.loses(&["leader"]);
    asker.times_out();
    asker.receives("a", true, None);
    assert_eq!(asker.role(), RoleKind::PreCandidate);
    asker.receives("b", true, None);
    assert_eq!(asker.role(), RoleKind::Candidate);
}

#[test]
fn a_candidate_asks_all_members_after_the_leader_yielded() {
    let mut asker = Asker::led(&["a", "b"], 2);
    let record = asker.raft.leadership().record.clone();
    asker.feed(ElectionInput::Pulse {
        from: id("leader"),
        pulse: Beat::from(Pulse::Follows {
            record,
            live: false,
        }),
    });
    asker.times_out();
    asker.receives("leader", true, None);
    asker.receives("a", true, None);
    assert_eq!(asker.role(), RoleKind::PreCandidate, "three of four");
    asker.receives("b", false, Some(living("z")));
    assert_eq!(asker.raft.leader(), Some(&id("z")));
}

#[test]
fn of_two_that_ask_at_the_same_time_the_preferred_one_goes_on() {
    for (rival, goes_on) in [("a", true), ("z", false)] {
        let mut asker = Asker::linked_to(&["a", "b", "z"]);
        asker.times_out();
        assert_eq!(asker.role(), RoleKind::PreCandidate);
        asker.is_asked_by(rival);
        assert_eq!(asker.role() == RoleKind::PreCandidate, goes_on, "{rival}");
        // It asks again if the round fails.
        asker.times_out();
        assert_eq!(asker.role(), RoleKind::PreCandidate, "{rival}");
    }
}

#[test]
fn votes_that_come_late_are_of_the_same_term() {
    let mut asker = Asker::linked_to(&["a", "b", "c"]);
    asker.times_out();
    asker.receives("a", true, None);
    asker.receives("b", true, None);
    assert_eq!(asker.role(), RoleKind::Candidate);
    for _ in 0..3 {
        asker.waits();
        assert_eq!(
            (asker.role(), asker.raft.leadership().record.term()),
            (RoleKind::Candidate, 1)
        );
    }
    asker.receives("a", true, None);
    asker.receives("b", true, None);
    assert_eq!(
        (asker.role(), asker.raft.leadership().record.term()),
        (RoleKind::Leader, 1)
    );
}

/// P5: another node may have asked for the vote with this round's number.
#[test]
fn a_vote_of_another_term_does_not_count() {
    for (term, role) in [
        (0, RoleKind::Candidate),
        (1, RoleKind::Leader),
        (2, RoleKind::Follower),
    ] {
        let mut asker = Asker::linked_to(&["a", "b"]);
        asker.times_out();
        asker.receives("a", true, None);
        assert_eq!(asker.role(), RoleKind::Candidate);
        asker.receives_in(Record::undecided(stamp(term)), "a", true, None);
        assert_eq!(asker.role(), role, "a vote in term {term}");
    }
}

#[test]
fn an_assignment_is_not_repeated_for_a_target_that_may_lead_no_longer() {
    let mut asker = Asker::linked_to(&["a"]);
    asker.feed(Local::SetLeader { target: id("m") });
    let ours = asker.raft.leadership().record.clone();
    asker.feed(Local::SetEligible(false));
    let mut record = ours.clone();
    record.stamp.epoch.override_seq += 1;
    record.stamp.epoch.assigner = Some(id("a"));
    let from = id("a");
    let refused = ElectionMessage::LeaderAssignAck {
        seq: 1,
        accepted: false,
        record: record.clone(),
    };
    asker.feed(ElectionInput::Message {
        message: Stamped::new(record.stamp.clone(), refused),
        from,
    });
    assert_eq!(
        (asker.role(), asker.raft.leader()),
        (RoleKind::Follower, None)
    );
    assert_eq!(*asker.raft.leadership().record, record);
}
