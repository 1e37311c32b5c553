//! Control messages that arrive outside of an ordered stream: a second time, on the next link of the same two processes, or
//! overtaken by later ones.

use rand::Rng;

use room_core::id::PeerId;
use room_core::node::Input;
use room_core::time::{Duration, Time};
use room_core::wire::{Envelope, Message};

use super::Wire;
use crate::trace::Brief;
use crate::world::{Happening, World};

/// Shares and delays of stray messages.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Strays {
    /// Share of messages that arrive a second time, on the link that exists then.
    pub copies: f64,
    /// Share of messages that their link did not deliver and the next one does.
    pub leftovers: f64,
    /// Share of messages that later ones overtake. No stream does that.
    pub passed: f64,
    pub most: Duration,
}

/// The reason why a message strays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Copied,
    Left,
    Passed,
}

/// A message outside of its stream.
#[derive(Debug)]
pub struct Stray {
    from: usize,
    to: usize,
    to_life: u64,
    link: u64,
    envelope: Envelope,
    why: Why,
}

impl World {
    /// A message that has just arrived may arrive again.
    pub(super) fn copy_of(&mut self, link: u64, from: usize, envelope: &Envelope) {
        let share = self.strays.copies;
        if share > 0.0 && self.rng.random_bool(share) {
            self.stray(link, from, envelope.clone(), Why::Copied);
        }
    }

    /// A link did not deliver this to its end, which is still alive.
    pub(super) fn left_over(&mut self, link: u64, from: usize, envelope: Envelope) {
        let share = self.strays.leftovers;
        if share > 0.0 && self.rng.random_bool(share) {
            self.stray(link, from, envelope, Why::Left);
        }
    }

    /// Takes a message off its stream, so that later ones overtake it.
    pub(super) fn passes(&mut self, link: u64, from: usize, envelope: &Envelope) -> bool {
        let share = self.strays.passed;
        let passed = share > 0.0 && self.rng.random_bool(share);
        if passed {
            self.stray(link, from, envelope.clone(), Why::Passed);
        }
        passed
    }

    fn stray(&mut self, link: u64, from: usize, envelope: Envelope, why: Why) {
        if self.is_carried(link) || why != Why::Passed && needs_its_order(&envelope.message) {
            return;
        }
        let Some(ends) = self.links.get(&link) else {
            return;
        };
        let (sender, to, to_life) = (ends.slots[from], ends.slots[1 - from], ends.lives[1 - from]);
        let most = self.strays.most;
        let at = self.now + self.delay(sender, to) + self.between(Duration::ZERO, most);
        self.last_stray_at = self.last_stray_at.max(at);
        let stray = Stray {
            from: sender,
            to,
            to_life,
            link,
            envelope,
            why,
        };
        self.at(at, Happening::Wire(Wire::Stray(Box::new(stray))));
    }

    /// It arrives, if there is a link that it may seem to come from.
    pub(super) fn stray_arrives(&mut self, stray: Stray) {
        let Stray {
            from,
            to,
            to_life,
            link,
            envelope,
            why,
        } = stray;
        let lost = !self.is_life(to, to_life) || self.is_paused(to);
        let process = self.slots[to].process.as_ref();
        let present = process.and_then(|process| process.sessions.get(&from).copied());
        let Some(present) = present.filter(|_| !lost) else {
            return;
        };
        if why == Why::Left && present == link || self.is_blocked_from(present, from) {
            return;
        }
        let counts = &mut self.sometimes;
        match why {
            Why::Copied => counts.messages_copied += 1,
            Why::Left => counts.messages_of_an_earlier_link += 1,
            Why::Passed => {}
        }
        counts.messages_copied_to_another_link += u64::from(why == Why::Copied && present != link);
        let peer: PeerId = self.slots[from].id.clone();
        self.trace.add(
            self.now,
            format_args!(
                "{} <- {peer} ({why:?}) {}",
                self.slots[to].id,
                Brief(&envelope)
            ),
        );
        let input = Input::Message {
            from: peer,
            envelope,
        };
        let _ = self.feed(to, input);
    }

    /// Arrival time of the last stray message.
    pub fn strays_until(&self) -> Time {
        self.last_stray_at.max(self.now)
    }
}

/// These messages describe a state, and the newest wins. Only the order of the stream shows which is the newest.
fn needs_its_order(message: &Message) -> bool {
    matches!(message, Message::Standing { .. } | Message::RoomRules(_))
}
