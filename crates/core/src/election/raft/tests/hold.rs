//! The nodes that Hold binds, and the ones that it does not (C4.5).

use super::*;
use crate::election::raft::wire::{LiveLeader, Side};
use crate::election::record::Epoch;

/// Longer than any wait of this node: for a target, for the election timeout, for answers.
const LONG_MS: u64 = 20_000;

/// The record of the first `SetLeader(leader)` of "assigner".
fn assigned(leader: &str) -> Record {
    Record {
        leader_key: Some(Fingerprint([0; 32])),
        stamp: Stamp {
            epoch: Epoch {
                assigner_key: Some(Fingerprint([0; 32])),
                override_seq: 1,
                assigner: Some(id("assigner")),
            },
            term: 2,
        },
        leader: Some(id(leader)),
        assigned: true,
    }
}

fn live(leader: &str) -> LiveLeader {
    LiveLeader {
        key: Fingerprint([0; 32]),
        id: id(leader),
        incarnation: life(1),
        weight: 2,
        led_ms: 100,
        rest_ms: 1000,
    }
}

impl Voting {
    fn receives(&mut self, now: Time, from: &str, message: ElectionMessage) {
        let input = ElectionInput::Message {
            from: id(from),
            message: Stamped::new(stamp(1), message),
        };
        self.take(now, input);
    }

    fn receives_leads(&mut self, now: Time, record: Record) {
        let from = record.leader.clone().expect("it leads");
        let pulse = Pulse::Leads {
            record,
            weight: 3,
            led_ms: 0,
            election_timeout_min_ms: 1500,
        };
        self.take(
            now,
            ElectionInput::Pulse {
                from,
                pulse: pulse.into(),
            },
        );
    }

    fn receives_follows(&mut self, now: Time, from: &str, record: Record) {
        let pulse = Pulse::Follows { record, live: true };
        let from = id(from);
        self.take(
            now,
            ElectionInput::Pulse {
                from,
                pulse: pulse.into(),
            },
        );
    }

    fn is_assigned(&mut self, now: Time, record: Record) {
        let assigner = record.stamp.epoch.assigner.clone().expect("assigned");
        let message = ElectionMessage::LeaderAssign { record, seq: 1 };
        let name = assigner.as_str().to_owned();
        self.receives(now, &name, message);
    }

    /// A new link to "candidate", which names no living leader unless `live` does. Hold does not bind it.
    fn is_linked(&mut self, now: Time, lone: bool, record: Record, live: Option<LiveLeader>) {
        let theirs = Side {
            record,
            live,
            lone: false,
            since: 0,
            hold_binds: false,
        };
        self.meets(now, lone, theirs);
    }

    /// A new link to "candidate", which names no living leader. Hold binds it.
    fn is_linked_to_one_that_waits(&mut self, now: Time, lone: bool, record: Record) {
        let theirs = Side {
            record,
            live: None,
            lone: false,
            since: 0,
            hold_binds: true,
        };
        self.meets(now, lone, theirs);
    }

    fn meets(&mut self, now: Time, lone: bool, theirs: Side) {
        let ours = Side {
            lone,
            ..self.raft.side(now, &self.view)
        };
        let input = ElectionInput::PeerUp {
            peer: id("candidate"),
            key: Fingerprint([0; 32]),
            ours,
            theirs,
        };
        self.take(now, input);
    }

    /// Whether its Hello shows that Hold binds nodes that adopt its record.
    fn propagates_hold(&self, now: Time) -> bool {
        self.raft.side(now, &self.view).hold_binds
    }

    fn loses(&mut self, now: Time, peer: &str) {
        let voter = self.view.voters.remove(&id(peer)).expect("linked");
        let input = Local::PeerDown {
            peer: id(peer),
            incarnation: voter.incarnation,
            why: DownReason::Silent,
        };
        self.take(now, input);
    }

    /// Whether it asks for votes within [`LONG_MS`] from `from_ms` on, if no message arrives.
    fn campaigns(&mut self, from_ms: u64) -> bool {
        let campaigning = |raft: &Raft| {
            matches!(
                raft.rules().role(),
                RoleKind::PreCandidate | RoleKind::Candidate
            )
        };
        (from_ms..from_ms + LONG_MS).step_by(50).any(|ms| {
            self.take(at(ms), Local::Tick);
            campaigning(&self.raft)
        })
    }
}

#[test]
fn a_node_that_received_from_the_named_leader_waits_for_a_host_after_its_loss() {
    let mut voting = Voting::new();
    voting.receives_leads(at(10_000), assigned("leader"));
    voting.loses(at(11_500), "leader");
    assert_eq!(voting.raft.leader(), None);
    assert!(!voting.campaigns(11_500));
    // The host's permission holds under this record for good.
    voting.take(at(32_000), Local::EnableAuto(true));
    assert!(voting.campaigns(32_000));
}

#[test]
fn a_message_of_the_named_leader_is_as_good_as_its_heartbeat() {
    let mut voting = Voting::new();
    let record = assigned("leader");
    let accepted = voting
        .raft
        .judge(at(10_000), &voting.view, &id("leader"), &record);
    assert_eq!(accepted, Ok(true));
    voting.loses(at(11_500), "leader");
    assert!(!voting.campaigns(11_500));
}

#[test]
fn a_node_that_was_shown_the_named_leader_waits_for_a_host_when_it_is_lost() {
    let mut voting = Voting::new();
    voting.is_assigned(at(10_000), assigned("unlinked"));
    voting.receives_follows(at(10_500), "candidate", assigned("unlinked"));
    assert_eq!(voting.raft.leader(), Some(&id("unlinked")));
    assert!(!voting.campaigns(10_500));
    assert_eq!(voting.raft.leader(), None);
}

/// C4.6: the leader lives, but may die without having received the assignment.
#[test]
fn a_named_leader_known_only_from_an_older_record_is_not_waited_for() {
    let mut voting = Voting::new();
    voting.is_assigned(at(10_000), assigned("leader"));
    voting.receive_leader(at(10_100));
    voting.loses(at(11_600), "leader");
    assert!(voting.campaigns(11_600));
}

/// C4.6: the member that reports the leader has not heard it since it was named.
#[test]
fn a_node_that_was_shown_an_unconfirmed_leader_campaigns() {
    let mut voting = Voting::new();
    let unlinked = LiveLeader {
        key: Fingerprint([0; 32]),
        weight: 0,
        ..live("unlinked")
    };
    voting.is_linked(at(100), true, assigned("unlinked"), Some(unlinked));
    assert_eq!(voting.raft.leader(), Some(&id("unlinked")));
    assert!(voting.campaigns(100));
}

#[test]
fn a_member_that_received_from_the_named_leader_under_that_record_vouches_for_it() {
    let mut voting = Voting::new();
    let vouches = |voting: &Voting, now: Time| {
        let pulse = voting.raft.own_pulse(now, &voting.view);
        let live = voting.raft.live_to(now, &voting.view, &id("candidate"));
        let weight = live.expect("it lives, as far as known").weight;
        (matches!(pulse, Pulse::Follows { live: true, .. }), weight)
    };
    voting.receive_leader(at(10_000));
    assert_eq!(vouches(&voting, at(10_000)), (true, 3));
    voting.is_assigned(at(10_100), assigned("leader"));
    assert_eq!(voting.raft.leader(), Some(&id("leader")));
    assert_eq!(vouches(&voting, at(10_100)), (false, 0));
    // This shows that it lives, but not that it leads under that record.
    voting.receive_leader(at(10_200));
    assert_eq!(vouches(&voting, at(10_200)), (false, 0));
    voting.receives_leads(at(10_300), assigned("leader"));
    assert_eq!(vouches(&voting, at(10_300)), (true, 3));
}

#[test]
fn a_node_that_made_the_assignment_and_never_received_from_the_target_campaigns() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    let target = id("candidate");
    voting.take(at(10_000), Local::SetLeader { target });
    assert!(voting.raft.leadership().record.assigned);
    assert!(voting.campaigns(10_000));
}

#[test]
fn a_follower_that_gave_up_its_leader_for_an_unreachable_target_campaigns() {
    let mut voting = Voting::new();
    voting.receive_leader(at(10_000));
    voting.is_assigned(at(10_100), assigned("candidate"));
    assert!(voting.campaigns(10_100));
}

#[test]
fn a_leader_that_yielded_to_a_record_of_an_unreachable_leader_campaigns() {
    let mut voting = Voting::new();
    voting.take(
        at(0),
        Local::SetLeader {
            target: id("voter"),
        },
    );
    assert_eq!(voting.raft.leader(), Some(&id("voter")));
    let mut record = assigned("candidate");
    record.stamp.epoch.override_seq = 7;
    voting.receives(
        at(100),
        "leader",
        ElectionMessage::Nack { record, live: None },
    );
    assert_eq!(voting.raft.leader(), Some(&id("candidate")));
    assert!(voting.campaigns(100));
}

/// G6: no voter answers it.
#[test]
fn the_named_leader_campaigns_after_it_resigned() {
    let mut voting = Voting::new();
    voting.take(
        at(0),
        Local::SetLeader {
            target: id("voter"),
        },
    );
    assert!(voting.raft.leadership().record.assigned);
    assert!(voting.campaigns(100));
    assert_eq!(voting.raft.leader(), None);
}

#[test]
fn a_node_without_a_leader_that_receives_the_assignment_in_a_hello_waits_for_a_host() {
    let mut voting = Voting::new();
    voting.is_linked_to_one_that_waits(at(100), true, assigned("unlinked"));
    assert_eq!(*voting.raft.leadership().record, assigned("unlinked"));
    assert!(!voting.campaigns(100));
    assert!(voting.propagates_hold(at(20_100)));
}

/// Otherwise a room would wait for ever if all its members adopted the record from a member that gave its leader up for
/// a dead member.
#[test]
fn a_node_that_receives_the_assignment_from_an_unbound_peer_campaigns() {
    let mut voting = Voting::new();
    voting.is_linked(at(100), true, assigned("unlinked"), None);
    assert_eq!(*voting.raft.leadership().record, assigned("unlinked"));
    assert!(!voting.propagates_hold(at(100)));
    assert!(voting.campaigns(100));
}

#[test]
fn a_node_that_receives_the_assignment_twice_waits_if_one_of_the_senders_does() {
    let mut voting = Voting::new();
    voting.is_linked(at(100), true, assigned("unlinked"), None);
    voting.is_linked_to_one_that_waits(at(200), false, assigned("unlinked"));
    assert!(!voting.campaigns(200));
    let mut voting = Voting::new();
    voting.is_linked_to_one_that_waits(at(100), true, assigned("unlinked"));
    voting.is_linked(at(200), false, assigned("unlinked"), None);
    assert!(!voting.campaigns(200));
}

/// A leader without a path is not shown: Hold binds as it does without a leader.
#[test]
fn a_node_that_has_no_path_to_its_leader_waits_with_one_that_waits() {
    let elsewhere = Record {
        leader: Some(id("elsewhere")),
        ..Record::undecided(stamp(1))
    };
    for is_vouched_for in [false, true] {
        let mut voting = Voting::new();
        let live = Some(live("elsewhere"));
        voting.is_linked(at(10_000), true, elsewhere.clone(), live);
        if !is_vouched_for {
            voting.loses(at(10_100), "candidate");
        }
        assert_eq!(voting.raft.leader(), Some(&id("elsewhere")));
        voting.is_linked_to_one_that_waits(at(10_200), false, assigned("unlinked"));
        assert_eq!(*voting.raft.leadership().record, assigned("unlinked"));
        assert_eq!(voting.campaigns(10_200), is_vouched_for);
    }
}

/// A member carries the leader's packets, so the host sees it: the permission to elect is no answer to its loss.
#[test]
fn a_host_that_sees_its_leader_over_a_carried_link_allows_no_election_after_its_loss() {
    for is_carried in [false, true] {
        let mut voting = Voting::new();
        let leader = id("elsewhere");
        let live = Some(live("elsewhere"));
        voting.is_linked(at(10_000), true, assigned("elsewhere"), live);
        voting.loses(at(10_100), "candidate");
        if is_carried {
            let key = Fingerprint([0; 32]);
            voting.view.carried.insert(leader.clone(), key);
        }
        assert_eq!(voting.raft.leader(), Some(&leader));
        voting.take(at(10_200), Local::EnableAuto(true));
        assert_eq!(voting.campaigns(10_200), !is_carried);
    }
}

#[test]
fn a_node_that_asks_for_votes_stops_when_a_peer_waits_for_a_host() {
    let mut voting = Voting::new();
    voting.is_linked(at(100), true, assigned("unlinked"), None);
    assert!(voting.campaigns(100));
    assert_eq!(voting.raft.rules().role(), RoleKind::PreCandidate);
    voting.is_linked_to_one_that_waits(at(20_000), false, assigned("unlinked"));
    assert_eq!(voting.raft.rules().role(), RoleKind::Follower);
    assert!(!voting.campaigns(20_000));
}

#[test]
fn the_hello_of_a_follower_of_the_named_leader_shows_that_hold_binds_it() {
    let mut voting = Voting::new();
    assert!(!voting.propagates_hold(at(9_000)));
    voting.receives_leads(at(10_000), assigned("leader"));
    voting.loses(at(11_500), "leader");
    assert!(voting.propagates_hold(at(11_500)));
    // Under the next record it has heard no leader.
    let mut next = assigned("candidate");
    next.stamp.epoch.override_seq = 2;
    voting.is_assigned(at(11_600), next);
    assert!(!voting.propagates_hold(at(11_600)));
}

#[test]
fn a_node_with_a_leader_that_receives_the_assignment_in_a_hello_does_not_wait() {
    let mut voting = Voting::new();
    // The leader is only shown, so the Hello decides.
    voting.is_linked(
        at(100),
        true,
        Record::undecided(stamp(1)),
        Some(live("unlinked")),
    );
    assert_eq!(voting.raft.leader(), Some(&id("unlinked")));
    voting.is_linked_to_one_that_waits(at(200), false, assigned("candidate"));
    assert_eq!(*voting.raft.leadership().record, assigned("candidate"));
    assert!(voting.campaigns(200));
}

#[test]
fn a_node_that_knows_of_the_assignment_learns_nothing_from_a_hello() {
    let mut voting = Voting::new();
    voting.is_assigned(at(10_000), assigned("unlinked"));
    voting.take(at(14_000), Local::Tick);
    assert_eq!(voting.raft.leader(), None);
    voting.is_linked_to_one_that_waits(at(14_010), false, assigned("unlinked"));
    assert!(voting.campaigns(14_010));
}

/// The incarnation that the room followed is gone.
#[test]
fn the_named_member_that_was_started_anew_waits_for_a_host_like_any_other() {
    let mut voting = Voting::new();
    voting.is_linked_to_one_that_waits(at(100), true, assigned("voter"));
    assert_eq!(voting.raft.leader(), None);
    assert!(!voting.campaigns(100));
}

/// A change of the record needs no reset: Hold is about one record.
#[test]
fn hold_under_one_record_does_not_bind_under_the_next() {
    let mut voting = Voting::new();
    voting.receives_leads(at(10_000), assigned("leader"));
    let mut next = assigned("candidate");
    next.stamp.epoch.override_seq = 2;
    voting.is_assigned(at(10_100), next);
    assert!(voting.campaigns(10_100));
}

#[test]
fn a_host_that_allowed_elections_under_one_record_did_not_under_the_next() {
    let mut voting = Voting::new();
    voting.receives_leads(at(10_000), assigned("leader"));
    voting.loses(at(11_500), "leader");
    voting.take(at(12_000), Local::EnableAuto(true));
    let mut next = assigned("candidate");
    next.stamp.epoch.override_seq = 2;
    voting.receives_leads(at(12_100), next);
    voting.loses(at(13_600), "candidate");
    assert!(!voting.campaigns(13_600));
}

#[test]
fn a_room_that_elects_waits_for_no_host() {
    let mut voting = Voting::with(|start| start.config.recovery = Recovery::AutoElect);
    voting.receives_leads(at(10_000), assigned("leader"));
    voting.loses(at(11_500), "leader");
    assert!(voting.campaigns(11_500));
}
