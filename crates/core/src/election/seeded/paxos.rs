//! Votes on the leader of one version, without any clock: Paxos with a ballot per attempt.
//!
//! Votes choose at most one leader for a version. For that, three things must survive a restart: the version up to
//! which a leader is known, and, for the version after it, the highest ballot that was promised and the last candidate
//! that was accepted. [`Acceptor`] holds these. A [`Proposer`] counts the votes on one ballot of one version.
//!
//! The four rules of the algorithm (`docs/elections.md`, "The seeded election"):
//!
//! 1. No two proposals share a ballot: it names its proposer, which never uses a counter twice.
//! 2. Votes on another ballot than the open one do not count.
//! 3. A new leader clears the state of its version and of those before it, and of no later one.
//! 4. So does time; the state of an undecided version is never forgotten.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::PeerId;

/// The identity of one attempt to choose a leader. Larger ballots go before smaller ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ballot {
    /// Larger than every counter that the proposer has promised or used for this version.
    pub counter: u64,
    /// The proposer.
    pub proposer: PeerId,
}

/// A candidate that a voter accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Accepted {
    /// The ballot in which it was accepted.
    pub ballot: Ballot,
    /// The proposed leader.
    pub candidate: PeerId,
}

/// A voter's answer to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Vote {
    /// The voter refuses every smaller ballot of this version from now on. It names the last candidate that it accepted.
    Promised(Option<Accepted>),
    /// The voter accepts the candidate.
    Accepted,
    /// The voter has promised this larger ballot.
    Refused(Ballot),
}

/// The state that a voter must not forget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Acceptor {
    decided: u64,
    promised: Option<Ballot>,
    accepted: Option<Accepted>,
}

impl Acceptor {
    /// The largest version that is known to have had a leader; 0 at a first start.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// The version that this voter votes on.
    pub fn open_version(&self) -> u64 {
        self.decided.saturating_add(1)
    }

    /// The highest ballot that was promised for the open version.
    pub fn promised(&self) -> Option<&Ballot> {
        self.promised.as_ref()
    }

    /// The last candidate that was accepted for the open version.
    pub fn accepted(&self) -> Option<&Accepted> {
        self.accepted.as_ref()
    }

    /// The largest of all its counters.
    pub(super) fn largest_counter(&self) -> u64 {
        let promised = self.promised.as_ref().map_or(0, |ballot| ballot.counter);
        let accepted = self.accepted.as_ref().map_or(0, |last| last.ballot.counter);
        self.decided.max(promised).max(accepted)
    }

    /// `version` has had a leader: there is nothing to vote on up to it (rule 3). Returns whether that is new.
    pub fn decide(&mut self, version: u64) -> bool {
        if version <= self.decided {
            return false;
        }
        *self = Self {
            decided: version,
            promised: None,
            accepted: None,
        };
        true
    }

    /// Takes over the votes of all other voters, in place of votes that this one has forgotten: each forgotten vote was
    /// for a ballot that its proposer had promised, or for a candidate that its proposer had accepted.
    pub fn recover<'a>(&mut self, others: impl Iterator<Item = &'a Self> + Clone) {
        for other in others.clone() {
            self.decide(other.decided);
        }
        let decided = self.decided;
        for other in others.filter(|other| other.decided == decided) {
            self.promised = self.promised.take().max(other.promised.clone());
            self.accepted = self.accepted.take().max(other.accepted.clone());
        }
    }

    /// A ballot of `proposer` above all ballots that were promised for the open version.
    pub fn next_ballot(&self, proposer: &PeerId) -> Ballot {
        let promised = self.promised.as_ref().map_or(0, |ballot| ballot.counter);
        Ballot {
            counter: promised.saturating_add(1),
            proposer: proposer.clone(),
        }
    }

    /// Answers a pre-proposal. There is no answer on a version that is not open.
    pub fn prepare(&mut self, version: u64, ballot: &Ballot) -> Option<Vote> {
        let promised = self.promise(version, ballot)?;
        let accepted = self.accepted.clone();
        Some(promised.map_or_else(Vote::Refused, |()| Vote::Promised(accepted)))
    }

    /// Answers a formal proposal. There is no answer on a version that is not open.
    pub fn accept(&mut self, version: u64, ballot: &Ballot, candidate: &PeerId) -> Option<Vote> {
        if let Err(larger) = self.promise(version, ballot)? {
            return Some(Vote::Refused(larger));
        }
        self.accepted = Some(Accepted {
            ballot: ballot.clone(),
            candidate: candidate.clone(),
        });
        Some(Vote::Accepted)
    }

    /// A repeated ballot is a repeated message.
    fn promise(&mut self, version: u64, ballot: &Ballot) -> Option<Result<(), Ballot>> {
        if version != self.open_version() {
            return None;
        }
        match &self.promised {
            Some(promised) if ballot < promised => Some(Err(promised.clone())),
            _ => {
                self.promised = Some(ballot.clone());
                Some(Ok(()))
            }
        }
    }
}

/// A proposer's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stage {
    /// Promises, and the candidates that were accepted before.
    Pre,
    /// Votes for the candidate.
    Formal,
}

/// The state of the count after a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tally {
    /// Not decided.
    Pending,
    /// A majority promised: this candidate is to be proposed formally.
    Propose(PeerId),
    /// A majority accepted the candidate: it leads.
    Chosen(PeerId),
    /// No majority is left that could agree.
    Lost,
}

/// One ballot of one proposer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proposer {
    version: u64,
    ballot: Ballot,
    voters: BTreeSet<PeerId>,
    stage: Stage,
    /// Itself, until a majority has promised.
    candidate: PeerId,
    granted: BTreeMap<PeerId, Option<Accepted>>,
    refused: BTreeSet<PeerId>,
}

impl Proposer {
    /// A ballot on `version` among `voters`, of which a majority decides. The proposer would lead itself.
    pub fn new(version: u64, ballot: Ballot, voters: BTreeSet<PeerId>) -> Self {
        Self {
            version,
            candidate: ballot.proposer.clone(),
            ballot,
            voters,
            stage: Stage::Pre,
            granted: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// The version that is voted on.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The ballot.
    pub fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    /// The present stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The proposed leader; in the first stage the proposer.
    pub fn candidate(&self) -> &PeerId {
        &self.candidate
    }

    /// The voters that granted the present stage.
    pub fn granted(&self) -> impl Iterator<Item = &PeerId> {
        self.granted.keys()
    }

    /// Counts a vote. Nothing changes for votes on other ballots, versions or stages, votes from peers that are no
    /// voters, and second votes of one voter (rule 2).
    pub fn count(&mut self, voter: &PeerId, version: u64, ballot: &Ballot, vote: &Vote) -> Tally {
        let mine = version == self.version && *ballot == self.ballot;
        if !mine || !self.voters.contains(voter) {
            return Tally::Pending;
        }
        match (vote, self.stage) {
            (Vote::Promised(accepted), Stage::Pre) => {
                self.granted.insert(voter.clone(), accepted.clone());
            }
            (Vote::Accepted, Stage::Formal) => {
                self.granted.insert(voter.clone(), None);
            }
            (Vote::Refused(_), _) => {
                self.refused.insert(voter.clone());
            }
            (Vote::Promised(_), Stage::Formal) | (Vote::Accepted, Stage::Pre) => {}
        }
        let majority = self.voters.len() / 2 + 1;
        if self.granted.len() < majority {
            let left = self.voters.difference(&self.refused).count();
            return if left < majority {
                Tally::Lost
            } else {
                Tally::Pending
            };
        }
        match self.stage {
            Stage::Pre => {
                let accepted = self.granted.values().flatten();
                if let Some(last) = accepted.max_by_key(|accepted| &accepted.ballot) {
                    self.candidate = last.candidate.clone();
                }
                self.stage = Stage::Formal;
                self.granted.clear();
                Tally::Propose(self.candidate.clone())
            }
            Stage::Formal => Tally::Chosen(self.candidate.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
