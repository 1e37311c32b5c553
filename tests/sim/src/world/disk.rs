//! What a process keeps, and what it says of its timers.

use crate::decoded;
use room_core::election::raft::wire::Pulse;
use room_core::election::record::Saved;
use room_core::id::Incarnation;
use room_core::node::Input;
use room_core::time::Duration;
use room_core::wire::Message;

use super::{Happening, Strike, World};

/// A write that failed is tried again so much later.
const TRIED_AGAIN: Duration = Duration::from_millis(100);
/// A process that is stopped hears of a write when it goes on: it is looked at so often.
const TOLD_AGAIN: Duration = Duration::from_millis(20);

impl World {
    pub(super) fn note_timeout(&mut self, slot: usize, message: &Message) {
        if let Some(Pulse::Leads {
            election_timeout_min_ms,
            ..
        }) = decoded::pulse(message)
            && let Some(process) = &mut self.slots[slot].process
        {
            let told = Duration::from_millis(election_timeout_min_ms.into());
            process.election_timeout_min = Some(told);
        }
    }

    /// A process of a static quorum writes the name of its incarnation before it says anything.
    pub(super) fn keep_incarnation(
        &mut self,
        slot: usize,
        incarnation: Incarnation,
    ) -> Incarnation {
        if self.settings.roster.is_none() {
            return incarnation;
        }
        let place = &mut self.slots[slot];
        let saved = Saved::of_next_incarnation(place.saved.take(), incarnation);
        let incarnation = saved.incarnation;
        place.saved = Some(saved.clone());
        self.keep_copy(slot, &saved);
        incarnation
    }

    /// Writes are done in their order.
    pub(super) fn write(&mut self, slot: usize, number: u64, saved: Saved) {
        let (least, most) = self.settings.disk;
        let takes = self.between(least, most);
        let life = self.slots[slot].life;
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        let done_at = process.disk_done_at.max(self.now + takes);
        process.disk_done_at = done_at;
        process.last_write = number;
        self.draw_strike(slot, number, &saved, done_at);
        let saved = Box::new(saved);
        self.at(
            done_at,
            Happening::Saved {
                slot,
                life,
                number,
                saved,
            },
        );
    }

    /// A write is done, unless its process ended before: then it is lost.
    pub(super) fn saved(&mut self, slot: usize, life: u64, number: u64, saved: Box<Saved>) {
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
            place.saved = Some(*saved.clone());
            self.keep_copy(slot, &saved);
            if noticed_after.is_some_and(|before| number > before) {
                self.checker.noticed_for_good(slot);
            }
        }
        if fails || paused {
            let wait = if fails { TRIED_AGAIN } else { TOLD_AGAIN };
            self.at(
                self.now + wait,
                Happening::Saved {
                    slot,
                    life,
                    number,
                    saved,
                },
            );
            return;
        }
        match strike {
            Some((_, Strike::Unsaid)) => self.strike(slot),
            Some((_, Strike::Said)) => {
                let _ = self.feed(slot, Input::Persisted { number });
                self.strike(slot);
            }
            None => {
                let _ = self.feed(slot, Input::Persisted { number });
            }
        }
    }
}
