//! Votes on disk before anybody hears of them: a restarted voter must not vote twice on a version.
//!
//! What elects, and what is sent under a version that is not on disk yet, waits for the disk, in order. Heartbeats do not wait:
//! they say what is on disk.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::paxos::Acceptor;
use super::{OutputOf, Seeded};
use crate::core::election::ElectionOutput;
use crate::core::id::{Fingerprint, PeerId};

/// Messages that wait for the disk, at most; more are not sent. All of them are repeated or asked for again.
const MAX_HELD: usize = 4096;

/// What must survive the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Its votes.
    pub acceptor: Acceptor,
    /// The key that each voter showed first. Nobody else is that voter.
    pub keys: BTreeMap<PeerId, Fingerprint>,
}

/// What is on disk, and what waits for it.
#[derive(Debug)]
pub(super) struct Disk {
    safe: Kept,
    newest: Kept,
    /// Counts the changes of the state: that of `safe` and that of `newest`.
    safe_revision: u64,
    revision: u64,
    /// The write that is under way; one at a time, so that a slow disk gets the newest state and not all.
    writing: Option<(u64, u64, Kept)>,
    writes: u64,
    /// Each with the revision that must be on disk before.
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

    /// What a restart cannot undo.
    pub(super) fn safe(&self) -> &Kept {
        &self.safe
    }

    /// Whether the newest state is on disk.
    pub(super) fn is_safe(&self) -> bool {
        self.revision == self.safe_revision
    }

    /// The state is this now, and these outputs follow from it.
    pub(super) fn take(
        &mut self,
        kept: &Kept,
        outputs: impl IntoIterator<Item = OutputOf<Seeded>>,
    ) {
        if *kept != self.newest {
            self.newest.clone_from(kept);
            self.revision += 1;
        }
        for output in outputs {
            let waits = match &output {
                ElectionOutput::Send { message, .. } => {
                    message.elects() || message.basis.version > self.safe.acceptor.decided()
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
            return Some(ElectionOutput::Persist {
                number: self.writes,
                state: self.newest.clone(),
            });
        }
        let released = self.free.pop_front();
        released.or_else(|| {
            let (revision, _) = self.held.front()?;
            let safe = *revision <= self.safe_revision;
            safe.then(|| self.held.pop_front())?
                .map(|(_, output)| output)
        })
    }

    /// The disk has what was asked for up to `number`.
    pub(super) fn written(&mut self, number: u64) {
        if let Some((_, revision, kept)) = self.writing.take_if(|(open, ..)| *open <= number) {
            self.safe_revision = revision;
            self.safe = kept;
        }
    }

    /// What waits for a link that is gone must not go out on the next one.
    pub(super) fn forget(&mut self, peer: &PeerId) {
        let to_others = |output: &OutputOf<Seeded>| !matches!(output, ElectionOutput::Send { to, .. } if to == peer);
        self.held.retain(|(_, output)| to_others(output));
        self.free.retain(to_others);
    }
}
