//! Strangers whom a relay presents: which of them this node dials, and when. Pure.
//!
//! Nothing shows that a key that a relay presents belongs to a member of the room: a process that
//! guesses the room's number at the relay is there, too. So the keys are dialled one at a time, each gets a moment to answer, and a key that has
//! failed to prove that it knows the room is not dialled again. In turn the key that has waited longest is next, and the
//! one that came last: neither those who were there first nor those who keep coming keep the others waiting.

use std::time::Duration;

use tokio::time::Instant;

use crate::core::bounded::{BoundedMap, Newest};
use crate::core::id::{Fingerprint, PeerId};
use crate::core::path::{MAX_AT_RELAY, MAX_RELAYS, RelayNumber};
use crate::error::Code;
use crate::net::dial::Refused;

/// Time within which a stranger must answer.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_millis(1500);
/// Time for which the larger key leaves the dial to the smaller one.
const YIELD: Duration = Duration::from_secs(2);
/// Wait before a stranger that has not answered is dialled again; each one is twice the one before.
const FIRST_WAIT: Duration = Duration::from_secs(4);
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// Time after which a key that the room knows is looked at again: it may be unknown then.
const LOOKS_AGAIN: Duration = Duration::from_secs(30);
/// Keys that are not dialled any more, at most; the oldest are forgotten.
const MAX_FAILED: usize = 256;

/// Strangers behind the relays.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    relays: BoundedMap<RelayNumber, Crowd, MAX_RELAYS>,
    /// The keys that are not dialled any more.
    failed: Newest<Fingerprint, MAX_FAILED>,
}

/// The keys behind one relay.
#[derive(Debug, Default)]
struct Crowd {
    present: BoundedMap<Fingerprint, Stranger, MAX_AT_RELAY>,
    dialled: Option<Fingerprint>,
    /// Whether the key that came last is next.
    takes_last: bool,
    /// Keys presented so far.
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Stranger {
    /// Number of the key, in order of presentation.
    number: u64,
    dial_at: Instant,
    /// Dials without an answer.
    unanswered: u32,
}

/// State of the room when a key is presented.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// This node's key.
    pub(super) own: Fingerprint,
    /// Whether this node has no members.
    pub(super) is_alone: bool,
}

impl Strangers {
    /// A relay presents keys anew, or is gone.
    pub(super) fn clear(&mut self, relay: RelayNumber) {
        if let Some(crowd) = self.relays.get_mut(&relay) {
            crowd.present.clear();
        }
    }

    /// A relay presents a key.
    pub(super) fn present(
        &mut self,
        now: Instant,
        relay: RelayNumber,
        key: Fingerprint,
        situation: Situation,
    ) {
        if key == situation.own || self.failed.iter().any(|failed| *failed == key) {
            return;
        }
        let is_ours = situation.is_alone || situation.own < key;
        let dial_at = match is_ours {
            true => now,
            false => now + YIELD,
        };
        if let Some(crowd) = self.crowd(relay)
            && !crowd.present.contains_key(&key)
        {
            crowd.count += 1;
            let stranger = Stranger {
                number: crowd.count,
                dial_at,
                unanswered: 0,
            };
            // Without room for it, it dials this node.
            let _ = crowd.present.insert(key, stranger);
        }
    }

    /// The holder of a key is gone.
    pub(super) fn gone(&mut self, relay: RelayNumber, key: Fingerprint) {
        if let Some(crowd) = self.relays.get_mut(&relay) {
            crowd.present.remove(&key);
        }
    }

    /// Time of the next dial.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let idle = self.relays.values().filter(|crowd| crowd.dialled.is_none());
        let present = idle.flat_map(|crowd| crowd.present.values());
        present.map(|stranger| stranger.dial_at).min()
    }

    /// The keys to dial now, at most one behind each relay. [`Strangers::ended`] must follow each.
    pub(super) fn due(
        &mut self,
        now: Instant,
        knows: impl Fn(Fingerprint) -> bool,
    ) -> Vec<(RelayNumber, Fingerprint)> {
        let dialled: Vec<_> = self.relays.values().filter_map(|one| one.dialled).collect();
        let mut dials: Vec<(RelayNumber, Fingerprint)> = Vec::new();
        for (relay, crowd) in self.relays.iter_mut() {
            if crowd.dialled.is_some() {
                continue;
            }
            for (key, stranger) in crowd.present.iter_mut() {
                if stranger.dial_at <= now && knows(*key) {
                    stranger.dial_at = now + LOOKS_AGAIN;
                }
            }
            let is_due = |(key, stranger): &(&Fingerprint, &Stranger)| {
                // The other relay may present the same key.
                let is_dialled =
                    dialled.contains(key) || dials.iter().any(|(_, other)| other == *key);
                stranger.dial_at <= now && !is_dialled
            };
            let due = crowd.present.iter().filter(is_due);
            let takes_last = crowd.takes_last;
            let next = match takes_last {
                true => due.max_by_key(|(_, stranger)| stranger.number),
                false => due.min_by_key(|(_, stranger)| (stranger.unanswered, stranger.number)),
            };
            if let Some((key, _)) = next {
                crowd.dialled = Some(*key);
                crowd.takes_last = !takes_last;
                dials.push((*relay, *key));
            }
        }
        dials
    }

    /// A dial has ended. Returns whether the relay is to keep the key away.
    #[must_use]
    pub(super) fn ended(
        &mut self,
        now: Instant,
        relay: RelayNumber,
        key: Fingerprint,
        result: &Result<PeerId, Refused>,
    ) -> bool {
        let outcome = outcome_of(result);
        if let Outcome::Failed | Outcome::Refused = outcome {
            self.failed.push(key);
            for (_, crowd) in self.relays.iter_mut() {
                crowd.present.remove(&key);
            }
        }
        let Some(crowd) = self.relays.get_mut(&relay) else {
            return outcome == Outcome::Failed;
        };
        crowd.dialled = None;
        if let Some(stranger) = crowd.present.get_mut(&key) {
            stranger.dial_at = now + LOOKS_AGAIN;
            match outcome {
                Outcome::Busy => stranger.dial_at = now + FIRST_WAIT,
                Outcome::NoAnswer => {
                    let wait = FIRST_WAIT * (1 << stranger.unanswered.min(4));
                    stranger.dial_at = now + wait.min(LONGEST_WAIT);
                    stranger.unanswered += 1;
                }
                Outcome::Linked | Outcome::Failed | Outcome::Refused => {}
            }
        }
        outcome == Outcome::Failed
    }

    /// `None` for a relay that the options cannot name.
    fn crowd(&mut self, relay: RelayNumber) -> Option<&mut Crowd> {
        if !self.relays.contains_key(&relay) {
            self.relays.insert(relay, Crowd::default()).ok()?;
        }
        self.relays.get_mut(&relay)
    }
}

/// Outcome of a dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Linked,
    /// The other end did not prove that it knows the room.
    Failed,
    /// It is not to be a member of this room.
    Refused,
    /// It did not answer, or has no place.
    NoAnswer,
    /// It, or this node, has had too many strangers there lately.
    Busy,
}

fn outcome_of(result: &Result<PeerId, Refused>) -> Outcome {
    match result.as_ref().map_err(|refused| refused.code) {
        Ok(_) | Err(Code::AlreadyConnected) => Outcome::Linked,
        Err(Code::SessionMismatch | Code::AuthenticationFailed | Code::SerializationError) => {
            Outcome::Failed
        }
        Err(Code::VersionMismatch | Code::PolicyMismatch | Code::Rejected) => Outcome::Refused,
        Err(Code::RateLimited) => Outcome::Busy,
        Err(_) => Outcome::NoAnswer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELAY: RelayNumber = RelayNumber(0);
    const OWN: Fingerprint = Fingerprint([100; 32]);

    fn key(number: u8) -> Fingerprint {
        Fingerprint([number; 32])
    }

    fn failed(code: Code) -> Result<PeerId, Refused> {
        Err(code.into())
    }

    struct World {
        strangers: Strangers,
        start: Instant,
        is_alone: bool,
        known: Vec<Fingerprint>,
    }

    impl World {
        fn new() -> Self {
            Self {
                strangers: Strangers::default(),
                start: Instant::now(),
                is_alone: true,
                known: Vec::new(),
            }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn present(&mut self, ms: u64, relay: u8, number: u8) {
            let situation = Situation {
                own: OWN,
                is_alone: self.is_alone,
            };
            let now = self.at(ms);
            self.strangers
                .present(now, RelayNumber(relay), key(number), situation);
        }

        /// The keys behind the first relay that are dialled.
        fn due(&mut self, ms: u64) -> Vec<Fingerprint> {
            let now = self.at(ms);
            let due = self.strangers.due(now, |key| self.known.contains(&key));
            due.into_iter().map(|(_, key)| key).collect()
        }

        fn ended(&mut self, ms: u64, number: u8, result: &Result<PeerId, Refused>) -> bool {
            let now = self.at(ms);
            self.strangers.ended(now, RELAY, key(number), result)
        }
    }

    #[test]
    fn a_node_that_is_alone_dials_at_once_and_of_two_members_the_smaller_key_does() {
        let mut world = World::new();
        world.present(0, 0, 1);
        assert_eq!(world.due(0), [key(1)]);
        world.strangers = Strangers::default();
        world.is_alone = false;
        world.present(0, 0, 1);
        assert_eq!(world.due(1999), []);
        assert_eq!(world.strangers.next_deadline(), Some(world.at(2000)));
        assert_eq!(world.due(2000), [key(1)]);
        world.strangers = Strangers::default();
        world.present(0, 0, 101);
        assert_eq!(world.due(0), [key(101)]);
        world.strangers = Strangers::default();
        world.present(0, 0, 100);
        assert_eq!(world.strangers.next_deadline(), None, "its own key");
    }

    #[test]
    fn strangers_behind_one_relay_are_dialled_one_at_a_time_the_first_and_the_last_in_turn() {
        let mut world = World::new();
        for number in 1..=5 {
            world.present(0, 0, number);
        }
        let mut order = Vec::new();
        for n in 0..5 {
            let due = world.due(n * 1500);
            assert_eq!(due.len(), 1);
            assert_eq!(world.due(n * 1500), []);
            order.push(due[0].0[0]);
            let blocks = world.ended(n * 1500 + 1499, due[0].0[0], &failed(Code::Timeout));
            assert!(!blocks);
        }
        assert_eq!(order, [1, 5, 2, 4, 3]);
        // A new one precedes the ones that have not answered.
        world.present(7500, 0, 6);
        assert_eq!(world.due(7500), [key(6)]);
    }

    #[test]
    fn one_that_does_not_know_the_room_is_blocked_and_never_dialled_again() {
        let mut world = World::new();
        for relay in [0, 1] {
            world.present(0, relay, 1);
        }
        assert_eq!(world.due(0), [key(1)], "over one relay");
        assert!(world.ended(100, 1, &failed(Code::SessionMismatch)));
        for relay in [0, 1] {
            world.present(200, relay, 1);
        }
        assert_eq!(world.strangers.next_deadline(), None);
        // The version may be another one; that is no guess.
        world.present(300, 0, 2);
        assert_eq!(world.due(300), [key(2)]);
        assert!(!world.ended(400, 2, &failed(Code::VersionMismatch)));
        world.present(500, 0, 2);
        assert_eq!(world.strangers.next_deadline(), None);
    }

    #[test]
    fn one_that_does_not_answer_is_dialled_less_and_less_often() {
        let mut world = World::new();
        world.present(0, 0, 1);
        let mut now = 0;
        for wait in [4, 8, 16, 32, 64, 64] {
            assert_eq!(world.due(now), [key(1)]);
            world.ended(now, 1, &failed(Code::Timeout));
            assert_eq!(world.due(now + wait * 1000 - 1), []);
            now += wait * 1000;
        }
        world.strangers.gone(RELAY, key(1));
        assert_eq!(world.strangers.next_deadline(), None);
        // One that has had too many strangers has answered.
        world.present(now, 0, 2);
        for _ in 0..5 {
            assert_eq!(world.due(now), [key(2)]);
            world.ended(now, 2, &failed(Code::RateLimited));
            now += 4000;
        }
    }

    #[test]
    fn a_member_is_not_dialled_until_the_room_does_not_know_it_any_more() {
        let mut world = World::new();
        world.known.push(key(1));
        world.present(0, 0, 1);
        assert_eq!(world.due(0), []);
        world.known.clear();
        assert_eq!(world.due(29_999), []);
        assert_eq!(world.due(30_000), [key(1)]);
    }

    #[test]
    fn a_relay_that_presents_keys_without_end_costs_no_memory() {
        let mut world = World::new();
        for number in 0..100_000_u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            let situation = Situation {
                own: OWN,
                is_alone: true,
            };
            let (now, relay) = (world.start, RelayNumber((number % 3) as u8));
            world
                .strangers
                .present(now, relay, Fingerprint(bytes), situation);
            for (relay, key) in world.strangers.due(now, |_| false) {
                let refused = failed(Code::SessionMismatch);
                assert!(world.strangers.ended(now, relay, key, &refused));
            }
        }
        let crowds = world.strangers.relays.values();
        assert!(crowds.map(|crowd| crowd.present.len()).sum::<usize>() <= 2 * MAX_AT_RELAY);
        assert!(world.strangers.failed.iter().count() <= MAX_FAILED);
    }
}
