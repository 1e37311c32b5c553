//! The voters' memory of each other's write counters in a static quorum (C2).

use super::*;

fn voting() -> Voting {
    Voting::with(|start| start.config.quorum = Quorum::of(&["voter", "candidate", "leader"]))
}

impl Voting {
    fn handles(&mut self, input: impl Into<InputOf<Raft>>) {
        self.raft
            .handle(at(10_000), &self.view, input.into())
            .expect("no violation");
    }

    /// Links an incarnation of the candidate that knows its votes since the write counter `since`.
    fn meets_in(&mut self, incarnation: u64, since: u64) {
        let voter = self.view.voters.get_mut(&id("candidate")).expect("linked");
        voter.incarnation = life(incarnation);
        let side = || Side {
            record: Record::default(),
            live: None,
            lone: true,
            since,
            hold_binds: false,
        };
        self.handles(ElectionInput::PeerUp {
            peer: id("candidate"),
            key: Fingerprint([7; 32]),
            ours: side(),
            theirs: side(),
        });
    }

    fn shows(&mut self, writes: u64) {
        let pulse = Pulse::Follows {
            record: Record::default(),
            live: false,
        };
        self.handles(ElectionInput::Pulse {
            from: id("candidate"),
            pulse: Beat {
                writes,
                ..pulse.into()
            },
        });
    }

    fn counts_the_candidate(&self) -> bool {
        self.raft.counts(&self.view, &id("candidate"))
    }

    fn remembers_of_the_candidate(&self) -> u64 {
        let memory = self.raft.memory_of_voter(&self.view, &id("candidate"));
        memory.expect("it is known").remembered
    }
}

#[test]
fn a_new_incarnation_counts_if_it_begins_above_what_the_last_one_showed() {
    for (since, counts) in [(6, false), (7, false), (8, true)] {
        let mut voting = voting();
        voting.meets_in(0, 1);
        voting.shows(7);
        assert!(voting.counts_the_candidate());
        voting.meets_in(5, since);
        assert_eq!(voting.counts_the_candidate(), counts, "{since}");
        let remembered = if counts { 0 } else { 7 };
        assert_eq!(voting.remembers_of_the_candidate(), remembered, "{since}");
        // Later writes of an incarnation that forgot votes mean nothing.
        voting.shows(9);
        assert_eq!(voting.counts_the_candidate(), counts, "{since}");
        assert_eq!(voting.remembers_of_the_candidate(), remembered, "{since}");
    }
}

/// A stale voter neither votes nor leads: the others would wait for it in vain.
#[test]
fn a_voter_that_forgot_votes_is_not_named_to_follow_the_leader() {
    for (since, first) in [(7, "leader"), (8, "candidate")] {
        let mut voting = voting();
        let candidate = voting.view.voters.get_mut(&id("candidate"));
        candidate.expect("linked").priority = 1;
        voting.meets_in(0, 1);
        voting.shows(7);
        voting.meets_in(5, since);
        assert_eq!(voting.raft.best_ranked(&voting.view), Some(id(first)));
    }
}
