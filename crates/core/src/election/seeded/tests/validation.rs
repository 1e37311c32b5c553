//! One test per kind of message: a receiver whose own observation contradicts that of the message does nothing.

use super::paxos::{Ballot, Stage, Vote};
use super::wire::Rejection;
use super::*;
use SeededMessage as M;

/// "a" leads "b", "c" and "x" under version 1; "b" is a seed, too.
fn world() -> World {
    let mut world = World::new(1, &["a", "b", "c"], 2, &["x"]);
    world.start("a");
    world.run(secs(3));
    world.start_all_but("a");
    world.run(secs(10));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world
}

impl World {
    fn start_all_but(&mut self, name: &str) {
        for other in self.names() {
            if other != name {
                self.start(&other);
            }
        }
    }

    /// The messages that `to` sends on a message of `from`, and whether `to` changes.
    fn deliver(
        &mut self,
        from: &str,
        to: &str,
        basis: Observation,
        message: SeededMessage,
    ) -> (Vec<&'static str>, bool) {
        let now = self.now;
        let station = self.station_mut(to);
        let seeded = station.seeded.as_mut().expect("it runs");
        while seeded.poll_output().is_some() {}
        let before = state(seeded);
        let message = Based {
            basis,
            writes: 0,
            message,
        };
        let input = ElectionInput::Message {
            from: id(from),
            message,
        };
        seeded
            .handle(now, &station.view, input)
            .expect("no violation");
        let mut sent = Vec::new();
        while let Some(output) = seeded.poll_output() {
            if let ElectionOutput::Send { message, .. } = output {
                sent.push(message.describe().kind);
            }
        }
        let changed = state(seeded) != before;
        (sent, changed)
    }
}

fn state(seeded: &Seeded) -> String {
    let target = seeded.target.is_some();
    let acked = seeded.following().map(|followed| followed.acked_at);
    let seeds = seeded.leading().map(|leader| &leader.seeds);
    format!(
        "{:?} {:?} {:?} {target} {acked:?} {seeds:?}",
        seeded.observation(),
        seeded.members(),
        seeded.kept()
    )
}

fn seen(leader: &str, version: u64) -> Observation {
    Observation {
        leader: Some(id(leader)),
        version,
    }
}

fn unknown(version: u64) -> Observation {
    Observation {
        leader: None,
        version,
    }
}

fn claim(leader: &str, version: u64, elected: bool) -> Claim {
    Claim {
        leader: id(leader),
        version,
        elected,
        address: leader.into(),
    }
}

const NOTHING: (Vec<&'static str>, bool) = (Vec::new(), false);

#[test]
fn a_leader_query_of_one_that_has_a_leader_is_not_answered() {
    let mut world = world();
    let query = M::LeaderQuery { query: 1 };
    assert_eq!(
        world.deliver("x", "b", seen("a", 1), query.clone()),
        NOTHING
    );
    let answer = (vec!["leader_query_response"], false);
    assert_eq!(world.deliver("x", "b", unknown(0), query), answer);
}

#[test]
fn a_leader_query_response_to_a_member_changes_nothing() {
    let mut world = world();
    let response = M::LeaderQueryResponse { query: 1 };
    assert_eq!(world.deliver("b", "x", seen("c", 2), response), NOTHING);
}

#[test]
fn a_join_request_for_another_leadership_is_rejected() {
    let mut world = world();
    let request = M::JoinClusterRequest { request: 1 };
    let rejected = (vec!["join_cluster_response"], false);
    assert_eq!(
        world.deliver("x", "a", seen("a", 2), request.clone()),
        rejected
    );
    assert_eq!(world.deliver("x", "b", seen("b", 1), request), rejected);
}

#[test]
fn an_unexpected_join_response_changes_nothing() {
    let mut world = world();
    for answer in [Ok(claim("c", 2, true)), Err(Rejection::NotLeader)] {
        let response = M::JoinClusterResponse { request: 1, answer };
        assert_eq!(world.deliver("c", "x", seen("c", 2), response), NOTHING);
    }
}

#[test]
fn changes_of_members_come_from_the_leader_of_this_version_alone() {
    let mut world = world();
    let incarnation = Incarnation {
        started_us: 9,
        random: 9,
    };
    let listed = vec![];
    let messages = [
        M::JoiningMember {
            change: 99,
            member: id("new"),
            incarnation,
        },
        M::MemberStatusUpdate {
            change: 99,
            member: id("c"),
            incarnation,
            state: MemberState::Unreachable,
        },
        M::ClusterAlignment {
            change: 99,
            members: listed,
        },
    ];
    for message in messages {
        for (from, basis) in [
            ("c", seen("a", 1)),
            ("c", seen("c", 1)),
            ("a", seen("a", 2)),
            ("a", seen("a", 0)),
            ("a", unknown(1)),
        ] {
            let done = world.deliver(from, "x", basis, message.clone());
            assert_eq!(done, NOTHING, "{message:?}");
        }
        let (_, changed) = world.deliver("a", "x", seen("a", 1), message);
        assert!(changed);
        world = self::world();
    }
}

#[test]
fn a_keep_alive_counts_for_the_leadership_that_it_names() {
    let mut world = world();
    let digest = world.member("x").members.digest(&seen("a", 1));
    let keep_alive = M::LeaderKeepAlive {
        digest,
        acked_us: None,
    };
    for (to, basis) in [("b", seen("a", 1)), ("a", seen("a", 2)), ("a", unknown(1))] {
        assert_eq!(world.deliver("x", to, basis, keep_alive.clone()), NOTHING);
    }
    let acked = (vec!["leader_keep_alive_ack"], false);
    assert_eq!(world.deliver("x", "a", seen("a", 1), keep_alive), acked);
}

#[test]
fn an_answer_to_a_keep_alive_counts_from_the_leader_of_this_version_alone() {
    let mut world = world();
    world.now = world.now + ms(1);
    let ack = M::LeaderKeepAliveAck { sent_us: 1 };
    for (from, basis) in [("c", seen("a", 1)), ("a", seen("a", 2)), ("a", unknown(1))] {
        assert_eq!(world.deliver(from, "x", basis, ack.clone()), NOTHING);
    }
    assert_eq!(world.deliver("a", "x", seen("a", 1), ack), (vec![], true));
}

#[test]
fn a_seed_compares_the_leaders_of_two_clusters_alone() {
    let mut world = world();
    let same = M::SeedKeepAlive {
        claim: claim("a", 1, false),
    };
    let answered = (vec!["seed_keep_alive_ack"], false);
    assert_eq!(world.deliver("a", "b", seen("a", 1), same), answered);
    let other = M::SeedKeepAlive {
        claim: claim("c", 1, false),
    };
    let relieves = (vec!["seed_keep_alive_ack", "leader_relieve"], false);
    assert_eq!(
        world.deliver("c", "b", seen("c", 1), other.clone()),
        relieves
    );
    assert_eq!(
        world.deliver("c", "x", seen("c", 1), other),
        NOTHING,
        "no seed"
    );
}

#[test]
fn a_leader_is_relieved_of_the_leadership_that_it_has_alone() {
    let mut world = world();
    let relieve = |winner| M::LeaderRelieve { winner };
    let winner = claim("c", 9, false);
    for (to, basis) in [
        ("a", seen("a", 2)),
        ("a", seen("c", 1)),
        ("b", seen("a", 1)),
    ] {
        let done = world.deliver("b", to, basis, relieve(winner.clone()));
        assert_eq!(done, NOTHING);
    }
    let done = world.deliver("b", "a", seen("a", 1), relieve(claim("c", 0, true)));
    assert_eq!(done, NOTHING, "it is outranked");
    let (sent, changed) = world.deliver("b", "a", seen("a", 1), relieve(winner));
    assert!(changed);
    assert_eq!(
        sent,
        [
            "rejoin_cluster",
            "rejoin_cluster",
            "rejoin_cluster",
            "join_cluster_request"
        ]
    );
}

#[test]
fn members_rejoin_only_at_their_leaders_request() {
    let mut world = world();
    let winner = claim("c", 9, false);
    let rejoin = M::ReJoinCluster { winner };
    for (from, basis) in [
        ("b", seen("a", 1)),
        ("a", seen("a", 2)),
        ("b", seen("b", 1)),
    ] {
        assert_eq!(world.deliver(from, "x", basis, rejoin.clone()), NOTHING);
    }
    let (sent, changed) = world.deliver("a", "x", seen("a", 1), rejoin);
    assert_eq!((sent, changed), (vec!["join_cluster_request"], true));
}

#[test]
fn a_status_query_of_an_older_version_is_not_answered() {
    let mut world = world();
    let query = M::LeaderStatusQuery { query: 1 };
    for basis in [unknown(0), seen("a", 1)] {
        assert_eq!(world.deliver("c", "b", basis, query.clone()), NOTHING);
    }
    let answered = (vec!["leader_status_query_response"], false);
    assert_eq!(world.deliver("c", "b", unknown(1), query.clone()), answered);
    assert_eq!(
        world.deliver("x", "b", unknown(1), query),
        NOTHING,
        "no voter"
    );
}

#[test]
fn a_status_answer_to_no_query_changes_nothing() {
    let mut world = world();
    for healthy in [true, false] {
        let answer = M::LeaderStatusQueryResponse { query: 1, healthy };
        assert_eq!(world.deliver("c", "b", unknown(1), answer), NOTHING);
    }
}

#[test]
fn a_voter_that_has_a_leader_does_not_vote() {
    let mut world = world();
    let proposal = |stage| M::Proposal {
        stage,
        ballot: Ballot {
            counter: 1,
            proposer: id("c"),
        },
        candidate: id("c"),
    };
    for stage in [Stage::Pre, Stage::Formal] {
        for basis in [unknown(0), unknown(1), seen("a", 1)] {
            assert_eq!(world.deliver("c", "b", basis, proposal(stage)), NOTHING);
        }
    }
    world.crash("a");
    world.run(ms(3600));
    let (sent, _) = world.deliver("c", "b", unknown(1), proposal(Stage::Pre));
    assert_eq!(sent, [""; 0], "its promise is not on disk yet");
}

#[test]
fn a_vote_on_no_ballot_of_the_receiver_changes_nothing() {
    let mut world = world();
    let ballot = Ballot {
        counter: 1,
        proposer: id("b"),
    };
    for vote in [Vote::Accepted, Vote::Promised(None)] {
        let ballot = ballot.clone();
        let message = M::Vote { ballot, vote };
        assert_eq!(world.deliver("c", "b", unknown(1), message), NOTHING);
    }
}

#[test]
fn an_elected_leader_counts_if_no_later_one_is_known() {
    let mut world = world();
    let elected = |version| M::LeaderElected {
        claim: claim("c", version, true),
    };
    assert_eq!(world.deliver("b", "x", unknown(0), elected(1)), NOTHING);
    assert_eq!(world.deliver("b", "x", unknown(0), elected(2)), NOTHING);
    assert_eq!(world.deliver("b", "x", seen("a", 1), elected(2)), NOTHING);
    let (sent, changed) = world.deliver("b", "x", unknown(1), elected(2));
    assert!(changed);
    assert_eq!(sent, [""; 0], "its version is not on disk yet");
    assert_eq!(world.member("x").observation(), seen("c", 2));
}

/// The leader that it leaves may count it until then.
#[test]
fn a_voter_that_leaves_a_living_leader_acknowledges_the_next_one_a_ttl_later() {
    let mut world = world();
    let acked_at = world.member("b").following().expect("of \"a\"").acked_at;
    let elected = M::LeaderElected {
        claim: claim("c", 2, true),
    };
    world.deliver("c", "b", unknown(1), elected);
    assert_eq!(world.member("b").observation(), seen("c", 2));
    assert_eq!(world.member("b").grace_until, acked_at + SHORT.ttl());
}

/// Members that are not in the roster ask to join, and send keep-alives. Any other message of theirs has no effect.
#[test]
fn members_beside_the_roster_only_join_and_keep_alive() {
    let liar = || claim("x", 9, true);
    let ballot = Ballot {
        counter: 1,
        proposer: id("x"),
    };
    let messages = [
        (unknown(1), M::LeaderQueryResponse { query: 1 }),
        (
            seen("a", 1),
            M::ClusterAlignment {
                change: 99,
                members: vec![],
            },
        ),
        (seen("a", 1), M::LeaderKeepAliveAck { sent_us: 1 }),
        (seen("x", 9), M::SeedKeepAlive { claim: liar() }),
        (seen("a", 1), M::SeedKeepAliveAck),
        (seen("a", 1), M::LeaderRelieve { winner: liar() }),
        (seen("a", 1), M::ReJoinCluster { winner: liar() }),
        (unknown(1), M::LeaderStatusQuery { query: 1 }),
        (
            unknown(1),
            M::Proposal {
                stage: Stage::Pre,
                ballot: ballot.clone(),
                candidate: id("c"),
            },
        ),
        (
            unknown(1),
            M::Vote {
                ballot,
                vote: Vote::Accepted,
            },
        ),
        (unknown(8), M::LeaderElected { claim: liar() }),
    ];
    let mut world = world();
    for (basis, message) in messages {
        for to in ["a", "b"] {
            let done = world.deliver("x", to, basis.clone(), message.clone());
            assert_eq!(done, NOTHING, "{message:?} to {to}");
        }
    }
}

#[test]
fn an_answer_of_a_seed_counts_for_the_leader_that_counts_it_alone() {
    let mut world = world();
    let ack = || M::SeedKeepAliveAck;
    if let Some(leader) = world
        .station_mut("a")
        .seeded
        .as_mut()
        .and_then(Seeded::leading_mut)
    {
        leader.seeds.clear();
    }
    // "b" is a seed that observes another leader, and "c" is none; "b" itself does not lead.
    for (from, to, basis) in [
        ("b", "a", seen("c", 2)),
        ("b", "a", seen("a", 2)),
        ("b", "a", unknown(1)),
        ("c", "a", seen("a", 1)),
        ("c", "b", seen("a", 1)),
    ] {
        assert_eq!(world.deliver(from, to, basis, ack()), NOTHING);
    }
    assert_eq!(world.deliver("b", "a", seen("a", 1), ack()), (vec![], true));
}

/// A member in no cluster obeys only answers to its own questions, from the members that it asked.
#[test]
fn a_joiner_accepts_answers_only_from_the_leader_that_it_asked() {
    let mut world = world();
    world.crash("x");
    // It asks "a" to admit it, and the answer is lost.
    world.cut.insert(("a".into(), "x".into()));
    world.start("x");
    world.run(ms(100));
    assert!(world.member("x").aims_at(&seen("a", 1)));
    let accepts = |leader: &str, version, request| {
        let answer = Ok(claim(leader, version, true));
        M::JoinClusterResponse { request, answer }
    };
    for request in 0..9 {
        let done = world.deliver("c", "x", seen("c", 9), accepts("c", 9, request));
        assert_eq!(done, NOTHING, "it did not ask \"c\"");
    }
    let mut joins = |request| {
        let (_, changed) = world.deliver("a", "x", seen("a", 1), accepts("a", 1, request));
        changed
    };
    assert_eq!((0..9).filter(|request| joins(*request)).count(), 1);
}

#[test]
fn a_joiner_accepts_answers_only_from_the_seeds_that_it_asked() {
    let mut world = world();
    world.crash("x");
    world.part(&["c", "x"], 1);
    world.start("x");
    world.run(ms(700));
    for query in 0..5 {
        let answer = M::LeaderQueryResponse { query };
        let done = world.deliver("c", "x", seen("b", 9), answer);
        assert_eq!(done, NOTHING, "it is no seed");
    }
}

/// Case 2: on several streams an older change of the table may arrive after a newer one.
#[test]
fn a_change_of_the_table_that_a_later_one_has_passed_is_not_taken() {
    let mut world = world();
    let change = |change, state| M::MemberStatusUpdate {
        change,
        member: id("c"),
        incarnation: world.member("c").incarnation,
        state,
    };
    let later = change(99, MemberState::Unreachable);
    let earlier = [
        change(98, MemberState::Active),
        change(99, MemberState::Active),
        M::ClusterAlignment {
            change: 98,
            members: world.member("a").members(),
        },
    ];
    let next = change(100, MemberState::Active);
    let mut from_leader = |message| world.deliver("a", "x", seen("a", 1), message);
    assert!(from_leader(later).1);
    for message in earlier {
        assert_eq!(from_leader(message.clone()), NOTHING, "{message:?}");
    }
    assert!(from_leader(next).1);
}

/// Case 4: a member that asked this leader to admit it is in no table yet.
#[test]
fn a_relieved_leader_sends_joiners_on() {
    let mut world = world();
    let seeded = world.station_mut("a").seeded.as_mut().expect("it runs");
    assert!(seeded.members.remove(&id("x")));
    let winner = claim("b", 2, true);
    let message = M::LeaderRelieve { winner };
    let (sent, _) = world.deliver("b", "a", seen("a", 1), message);
    let sent_on = sent.iter().filter(|kind| **kind == "rejoin_cluster");
    assert_eq!(sent_on.count(), 3, "{sent:?}");
}

/// Case 4, at the joining member.
#[test]
fn a_joiner_goes_where_the_leader_sends_it_that_it_asked() {
    let sent_on_by = |leader: &str| {
        let mut world = world();
        let now = world.now;
        let station = world.station_mut("x");
        let seeded = station.seeded.as_mut().expect("it runs");
        seeded.become_joining(now, 0, LeaderReason::Lost);
        seeded.aim_at(now, &station.view, &seen("a", 1));
        let winner = claim("b", 2, true);
        let message = M::ReJoinCluster { winner };
        world.deliver(leader, "x", seen(leader, 1), message);
        let aims_at = |leader, version| world.member("x").aims_at(&seen(leader, version));
        (aims_at("a", 1), aims_at("b", 2))
    };
    assert_eq!(sent_on_by("a"), (false, true));
    assert_eq!(sent_on_by("c"), (true, false));
}

/// A voter's answer to a voter that has lost its leader: whether its own leader lives, and under which leadership.
#[test]
fn a_voter_names_its_leader_as_long_as_that_lives() {
    let mut world = world();
    let answer = |world: &mut World| {
        let now = world.now;
        let station = world.station_mut("b");
        let seeded = station.seeded.as_mut().expect("it runs");
        while seeded.poll_output().is_some() {}
        let message = Based {
            basis: unknown(1),
            writes: 0,
            message: M::LeaderStatusQuery { query: 1 },
        };
        let from = id("c");
        let input = ElectionInput::Message { from, message };
        let taken = seeded.handle(now, &station.view, input);
        taken.expect("no violation");
        match seeded.poll_output() {
            Some(ElectionOutput::Send { message, .. }) => match message.message {
                M::LeaderStatusQueryResponse { healthy, .. } => Some((message.basis, healthy)),
                _ => None,
            },
            _ => None,
        }
    };
    assert_eq!(answer(&mut world), Some((seen("a", 1), true)));
    world.now = world.now + secs(3) + ms(1);
    assert_eq!(answer(&mut world), Some((unknown(1), false)));
}

/// It asks for an election again and again, and no ballot is opened.
#[test]
fn a_voter_that_alone_lost_its_leader_proposes_no_candidate() {
    let mut world = world();
    for (one, other) in [("a", "c"), ("c", "a")] {
        world.cut.insert((one.into(), other.into()));
    }
    world.lose("a", "c", &DownReason::Silent);
    world.lose("c", "a", &DownReason::Silent);
    world.run(secs(60));
    let sent = |kind| world.sent.get(kind).copied().unwrap_or(0);
    assert!(sent("leader_status_query") > 0);
    assert_eq!(sent("pre_proposal"), 0);
    assert_eq!(world.member("b").observation(), seen("a", 1));
}
