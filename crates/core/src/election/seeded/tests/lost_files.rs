//! State files that are lost, or replaced by an older copy: a voter must not give a forgotten vote again.

use super::*;
use crate::election::seeded::paxos::{Ballot, Stage, Vote};

/// "a" leads "b" and "c" under version 1; all know each other's write counters.
fn world() -> World {
    let mut world = World::new(1, &["a", "b", "c"], 1, &[]);
    world.start_all();
    world.run(secs(15));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world
}

fn ballot(counter: u64, proposer: &str) -> Ballot {
    let proposer = id(proposer);
    Ballot { counter, proposer }
}

/// A proposal on version 2.
fn proposal(stage: Stage, ballot: Ballot, candidate: &str) -> Based {
    let candidate = id(candidate);
    Based {
        basis: Observation {
            leader: None,
            version: 1,
        },
        writes: 0,
        message: SeededMessage::Proposal {
            stage,
            ballot,
            candidate,
        },
    }
}

impl World {
    fn is_stale(&self, name: &str) -> bool {
        self.member(name).is_stale()
    }

    /// "b" accepts a candidate of "a" for version 2, and is killed.
    fn vote_of_b(&mut self) {
        self.crash("c");
        // The leader is lost, and the voters' last acknowledgements are old.
        self.cut.insert(("a".into(), "b".into()));
        self.run(ms(3100));
        self.cut.clear();
        let message = proposal(Stage::Formal, ballot(9, "a"), "a");
        let from = id("a");
        self.input("b", ElectionInput::Message { from, message });
        self.run(ms(20));
        let accepted = self.member("b").kept().acceptor.accepted().cloned();
        let accepted = accepted.expect("it has no leader");
        assert_eq!(
            (accepted.ballot, accepted.candidate),
            (ballot(9, "a"), id("a"))
        );
    }

    /// A member's votes in answer to a proposal of another one.
    fn answer(&mut self, name: &str, from: &str, message: Based) -> Vec<Vote> {
        let now = self.now;
        let station = self.station_mut(name);
        let seeded = station.seeded.as_mut().expect("it runs");
        let from = id(from);
        seeded
            .handle(now, &station.view, ElectionInput::Message { from, message })
            .expect("no violation");
        let mut votes = Vec::new();
        while let Some(output) = seeded.poll_output() {
            match output {
                ElectionOutput::Extra(Extra::Persist { number, .. }) => {
                    seeded.persisted(now, &station.view, number);
                }
                ElectionOutput::Send { message, .. } => {
                    if let SeededMessage::Vote { vote, .. } = message.message {
                        votes.push(vote);
                    }
                }
                _ => {}
            }
        }
        votes
    }
}

#[test]
fn a_voter_with_a_lost_file_notices_with_the_first_heartbeat_and_votes_after_all_reports() {
    let mut world = world();
    world.crash("b");
    world.station_mut("b").disk = None;
    world.start("b");
    let started = world.now;
    while !world.is_stale("b") {
        assert!(world.now.since(started) < ms(550), "a heartbeat interval");
        world.run(ms(1));
    }
    assert!(world.member("b").kept().forgotten.is_some());
    world.run(secs(2));
    assert!(!world.is_stale("b"), "all others have reported");
    assert_eq!(world.member("b").kept().forgotten, None);
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
}

/// Another leader may count an acknowledgement of its earlier incarnation.
#[test]
fn a_voter_with_a_lost_file_acknowledges_no_leader_for_a_ttl() {
    let mut world = world();
    world.crash("b");
    world.station_mut("b").disk = None;
    world.start("b");
    while !world.is_stale("b") {
        world.run(ms(1));
    }
    let until = world.now + world.member("b").intervals().ttl();
    while world.now + ms(50) < until {
        assert_eq!(world.member("b").kept().acknowledged, None);
        world.run(ms(50));
    }
    world.run(secs(2));
    let acknowledged = world.member("b").kept().acknowledged.clone();
    assert_eq!(acknowledged.and_then(|seen| seen.leader), Some(id("a")));
}

#[test]
fn a_restart_with_the_newest_file_is_nothing_to_notice() {
    let mut world = world();
    for _ in 0..3 {
        world.crash("b");
        world.start("b");
        for _ in 0..20 {
            world.run(ms(100));
            assert!(!world.is_stale("b"));
        }
    }
}

#[test]
fn a_voter_that_misses_others_stays_out_across_restarts() {
    let mut world = world();
    world.crash("c");
    world.crash("b");
    world.station_mut("b").disk = None;
    world.start("b");
    world.run(secs(10));
    assert!(world.is_stale("b"), "no member knows the vote of \"c\"");
    world.crash("b");
    world.start("b");
    assert!(world.is_stale("b"), "its file contains that");
    world.run(secs(3));
    assert!(world.is_stale("b"));
    let message = proposal(Stage::Pre, ballot(1, "a"), "a");
    assert_eq!(world.answer("b", "a", message), []);
    world.start("c");
    world.run(secs(4));
    assert!(!world.is_stale("b"));
}

#[test]
fn a_voter_that_recovered_knows_the_ballots_and_candidates_that_it_may_have_voted_for() {
    let mut world = world();
    world.vote_of_b();
    // As the proposer did before it asked.
    let own = world.station_mut("a").seeded.as_mut().expect("it runs");
    own.kept.acceptor.accept(2, &ballot(9, "a"), &id("a"));
    world.crash("b");
    world.station_mut("b").disk = None;
    world.start("c");
    world.start("b");
    world.run(ms(10));
    let refused = world.answer("b", "c", proposal(Stage::Pre, ballot(1, "c"), "c"));
    assert_eq!(refused, [], "it takes part in no election yet");
    let mut recovered = world.member("b").kept().acceptor.clone();
    let others = ["a", "c"].map(|name| world.member(name).kept().acceptor.clone());
    recovered.recover(others.iter());
    assert_eq!(
        recovered.prepare(2, &ballot(2, "c")),
        Some(Vote::Refused(ballot(9, "a")))
    );
    let Some(Vote::Promised(Some(last))) = recovered.prepare(2, &ballot(10, "c")) else {
        panic!("it names the candidate of \"a\"");
    };
    assert_eq!(last.candidate, id("a"));
}

#[test]
fn votes_of_a_voter_that_forgot_some_do_not_count() {
    let mut world = world();
    world.crash("b");
    world.station_mut("b").disk = None;
    world.start("b");
    world.run(ms(100));
    let member = world.member("c");
    let view = &world.station("c").view;
    assert!(member.remembers_its_votes(view, &id("a")));
    assert!(view.voters.contains_key(&id("b")), "it is linked");
    assert!(!member.remembers_its_votes(view, &id("b")));
    world.run(secs(4));
    let view = &world.station("c").view;
    assert!(world.member("c").remembers_its_votes(view, &id("b")));
}

#[test]
fn an_older_copy_is_noticed_like_a_lost_file() {
    let mut world = world();
    let copy = world.station("b").disk.clone();
    world.crash("a");
    world.run(secs(9));
    let (_, version) = world.agreed().expect("\"b\" and \"c\"");
    assert_eq!(version, 2);
    world.crash("b");
    world.station_mut("b").disk = copy;
    world.start("b");
    world.run(secs(1));
    assert!(world.is_stale("b"), "\"c\" remembers, and \"a\" is away");
    world.start("a");
    world.run(secs(3));
    assert!(!world.is_stale("b"));
}

/// No vote is sent without the write counter that it raised: the member that counts it remembers that it was given.
#[test]
fn each_vote_raises_the_write_counter_and_its_receiver_remembers() {
    let mut world = world();
    let before = world.member("b").kept().writes;
    world.vote_of_b();
    let after = world.member("b").kept().writes;
    assert!(after > before, "{before} and {after}");
    assert_eq!(world.member("b").disk.safe().writes, after);
    let remembered = world.member("a").kept().others[&id("b")].writes;
    assert_eq!(remembered, after);
}

#[test]
fn a_restarted_voter_knows_its_votes() {
    let mut world = world();
    world.vote_of_b();
    let votes = world.member("b").kept().acceptor.clone();
    world.crash("b");
    world.start("b");
    assert_eq!(world.member("b").kept().acceptor, votes);
}

/// Either may have forgotten what the other one voted.
#[test]
fn two_voters_that_lost_their_files_do_not_recover_from_each_other() {
    let mut world = world();
    for name in ["b", "c"] {
        world.crash(name);
        world.station_mut(name).disk = None;
    }
    world.start("b");
    world.start("c");
    world.run(secs(10));
    assert!(world.is_stale("b") && world.is_stale("c"));
}
