//! Votes on disk before they are sent: a restarted voter must not vote twice on a version.
//!
//! Messages that elect, and messages under a version that is not on disk yet, wait for the disk, in order. Heartbeats
//! do not wait: they show the state on disk.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::paxos::Acceptor;
use super::wire::{Observation, SeededMessage};
use super::{OutputOf, Seeded};
use crate::election::extra::{Durable, Extra};
use crate::election::known::KnownVoter;
use crate::election::{ElectionOutput, View};
use crate::id::PeerId;
use crate::opaque::Opaque;
use crate::time::Time;

/// Maximum number of messages that wait for the disk; further ones are dropped. All of them are repeated or asked for
/// again.
const MAX_HELD: usize = 4096;

/// The state that must survive the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Counts the voter's incarnations and the changes of its votes. A voter lost its file, or has an older copy of it,
    /// if it shows a smaller number than another voter remembers.
    pub writes: u64,
    /// The write counter, as others remember it, up to which this voter may have forgotten votes; `None` if it knows
    /// all its votes.
    pub forgotten: Option<u64>,
    /// Its votes.
    pub acceptor: Acceptor,
    /// The leader that it acknowledged last.
    pub acknowledged: Option<Observation>,
    /// Knowledge about the other voters.
    pub others: BTreeMap<PeerId, KnownVoter>,
}

impl Kept {
    /// The state that a starting incarnation writes before it sends anything; `previous` is the state of the
    /// incarnation before it.
    pub(super) fn of_next_incarnation(previous: Option<Self>) -> Self {
        let mut kept = previous.unwrap_or_default();
        kept.writes = kept.writes.saturating_add(1);
        kept
    }

    /// The part of the state that this voter must not forget of itself.
    fn votes(&self) -> (Option<u64>, &Acceptor, Option<&Observation>) {
        (self.forgotten, &self.acceptor, self.acknowledged.as_ref())
    }
}

/// The state on disk, and the messages that wait for it.
#[derive(Debug)]
pub(super) struct Disk {
    safe: Kept,
    newest: Kept,
    /// Counts the changes of the state: `safe_revision` of `safe`, `revision` of `newest`.
    safe_revision: u64,
    revision: u64,
    /// The current write; one at a time, so that a slow disk gets the newest state and not all of them.
    writing: Option<(u64, u64, Kept)>,
    writes: u64,
    /// Held messages, each with the revision that must be on disk first.
    held: VecDeque<(u64, OutputOf<Seeded>)>,
    free: VecDeque<OutputOf<Seeded>>,
}

impl Disk {
    pub(super) fn new(kept: Kept) -> Self {
        Self {
            newest: kept.clone(),
            safe: kept,
            safe_revision: 0,
            revision: 0,
            writing: None,
            writes: 0,
            held: VecDeque::new(),
            free: VecDeque::new(),
        }
    }

    /// The state that a restart cannot undo.
    pub(super) fn safe(&self) -> &Kept {
        &self.safe
    }

    /// Whether the newest state is on disk.
    pub(super) fn is_safe(&self) -> bool {
        self.revision == self.safe_revision
    }

    /// Takes the new state, and the outputs that follow from it. A change of votes raises the write counter. Knowledge
    /// about others alone does not, or two voters would raise each other's counters for ever.
    pub(super) fn take(
        &mut self,
        kept: &mut Kept,
        outputs: impl IntoIterator<Item = OutputOf<Seeded>>,
    ) {
        if kept.votes() != self.newest.votes() {
            kept.writes = kept.writes.saturating_add(1);
        }
        if *kept != self.newest {
            self.newest.clone_from(kept);
            self.revision += 1;
        }
        for output in outputs {
            let waits = match &output {
                ElectionOutput::Send { message, .. } => {
                    let acknowledges =
                        matches!(message.message, SeededMessage::LeaderKeepAlive { .. });
                    message.elects()
                        || message.basis.version > self.safe.acceptor.decided()
                        || acknowledges && kept.acknowledged != self.safe.acknowledged
                }
                ElectionOutput::HeartbeatNow => true,
                _ => false,
            };
            if !waits {
                self.free.push_back(output);
            } else if self.held.len() < MAX_HELD {
                self.held.push_back((self.revision, output));
            }
        }
    }

    pub(super) fn poll(&mut self) -> Option<OutputOf<Seeded>> {
        if self.writing.is_none() && !self.is_safe() {
            self.writes += 1;
            self.writing = Some((self.writes, self.revision, self.newest.clone()));
            let persist = Extra::Persist {
                number: self.writes,
                state: Opaque::of(&self.newest),
            };
            return Some(persist.into());
        }
        let released = self.free.pop_front();
        let mut output = released.or_else(|| {
            let (revision, _) = self.held.front()?;
            let safe = *revision <= self.safe_revision;
            safe.then(|| self.held.pop_front())?
                .map(|(_, output)| output)
        })?;
        if let ElectionOutput::Send { message, .. } = &mut output {
            message.writes = self.safe.writes;
        }
        Some(output)
    }

    /// The states up to `number` are on disk.
    pub(super) fn written(&mut self, number: u64) {
        if let Some((_, revision, kept)) = self.writing.take_if(|(open, ..)| *open <= number) {
            self.safe_revision = revision;
            self.safe = kept;
        }
    }

    /// Drops messages held for a lost link: they must not go out on the next one.
    pub(super) fn forget(&mut self, peer: &PeerId) {
        let to_others = |output: &OutputOf<Seeded>| !matches!(output, ElectionOutput::Send { to, .. } if to == peer);
        self.held.retain(|(_, output)| to_others(output));
        self.free.retain(to_others);
    }

    /// Drops held votes: a voter that noticed that it forgot votes does not vote, not even late.
    pub(super) fn forget_votes(&mut self) {
        let other = |output: &OutputOf<Seeded>| !matches!(output, ElectionOutput::Send { message, .. } if message.elects());
        self.held.retain(|(_, output)| other(output));
        self.free.retain(other);
    }
}

impl Durable for Seeded {
    fn first_state(&self) -> Option<Opaque> {
        Some(Opaque::of(&self.kept))
    }

    fn persisted(&mut self, now: Time, view: &View, number: u64) {
        self.end_lapsed_leadership(now);
        self.disk.written(number);
        self.settle(now, view);
    }
}

#[cfg(test)]
mod tests;
