//! A process's state file, and its reports of timers.

use crate::decoded;
use room_core::election::raft::saved::Saved;
use room_core::election::raft::wire::Pulse;
use room_core::election::seeded::Kept;
use room_core::id::Incarnation;
use room_core::node::{Input, Node};
use room_core::time::Duration;
use room_core::wire::{Message, Opaque, Strategy};

use super::{Happening, Strike, World};

/// Delay before a failed write is repeated.
const TRIED_AGAIN: Duration = Duration::from_millis(100);
/// A stopped process is notified of a write when it resumes: interval of the checks.
const REPORTED_AGAIN: Duration = Duration::from_millis(20);

/// A state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The incarnation that wrote it.
    pub incarnation: Incarnation,
    /// The state of its strategy.
    pub state: Opaque,
}

impl File {
    /// Raft's votes; empty if a node keeps none.
    pub fn votes(&self) -> Saved {
        let votes = self.state.decode();
        votes.unwrap_or_else(|_| Saved::of_next_incarnation(None))
    }
}

impl World {
    /// The write counter of a state file, and whether it contains a vote.
    pub(super) fn writes_and_vote(&self, file: &File) -> (u64, bool) {
        if let Strategy::Seeded(_) = self.settings.strategy {
            let kept: Kept = file.state.decode().unwrap_or_default();
            return (kept.writes, kept.acceptor.promised().is_some());
        }
        let votes = file.votes();
        (votes.writes, votes.voted_for.is_some())
    }

    pub(super) fn note_timeout(&mut self, slot: usize, message: &Message) {
        if let Some(Pulse::Leads {
            election_timeout_min_ms,
            ..
        }) = decoded::pulse(message)
            && let Some(process) = &mut self.slots[slot].process
        {
            let reported = Duration::from_millis(election_timeout_min_ms.into());
            process.election_timeout_min = Some(reported);
        }
    }

    /// A process of a static quorum writes its first state, and its incarnation, before it sends anything.
    pub(super) fn keep_first_state(&mut self, slot: usize, node: &Node) {
        if self.voters().is_none() {
            return;
        }
        let file = File {
            incarnation: node.incarnation(),
            state: node.first_state().unwrap_or_default(),
        };
        self.keep_copy(slot, &file);
        self.slots[slot].saved = Some(file);
    }

    /// Writes finish in their order.
    pub(super) fn write(&mut self, slot: usize, number: u64, state: Opaque) {
        let (least, most) = self.settings.disk;
        let takes = self.between(least, most);
        let life = self.slots[slot].life;
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        let done_at = process.disk_done_at.max(self.now + takes);
        process.disk_done_at = done_at;
        process.last_write = number;
        let file = File {
            incarnation: process.node.incarnation(),
            state,
        };
        self.draw_strike(slot, number, &file, done_at);
        self.at(
            done_at,
            Happening::Saved {
                slot,
                life,
                number,
                file,
            },
        );
    }

    /// A write is done; if its process ended earlier, the write is lost.
    pub(super) fn saved(&mut self, slot: usize, life: u64, number: u64, file: File) {
        let place = &mut self.slots[slot];
        let fails = self.now < place.disk_fails_until;
        let Some(process) = place.process.as_ref().filter(|_| place.life == life) else {
            self.sometimes.persists_lost += 1;
            return;
        };
        let paused = process.paused;
        let noticed_after = process.noticed_after;
        let strike = process.strike.filter(|(struck, _)| *struck == number);
        if fails {
            self.sometimes.writes_failed += 1;
        } else {
            place.saved = Some(file.clone());
            self.keep_copy(slot, &file);
            if noticed_after.is_some_and(|before| number > before) {
                self.checker.noticed_for_good(slot);
            }
        }
        if fails || paused {
            let wait = if fails { TRIED_AGAIN } else { REPORTED_AGAIN };
            self.at(
                self.now + wait,
                Happening::Saved {
                    slot,
                    life,
                    number,
                    file,
                },
            );
            return;
        }
        match strike {
            Some((_, Strike::BeforeSending)) => self.strike(slot),
            Some((_, Strike::AfterSending)) => {
                let _ = self.feed(slot, Input::Persisted { number });
                self.strike(slot);
            }
            None => {
                let _ = self.feed(slot, Input::Persisted { number });
            }
        }
    }
}
