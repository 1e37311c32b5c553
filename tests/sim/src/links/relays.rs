//! Relays: processes that forward packets between the places that have entered them, and name to each the others that are there.
//!
//! Each place enters its relays when its process starts, and again after a relay has fallen. A relay forgets a process that has
//! ended only after a while. The driver's part is here, too: it notices after half a second that a relay is silent, and dials
//! keys that the room does not know.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use room_core::id::Fingerprint;
use room_core::node::{Input, RelayChange};
use room_core::path::RelayNumber;
use room_core::time::Duration;

use super::{DialOf, Pending, Planted, Via, Wire};
use crate::paths::RelayCounts;
use crate::world::{Happening, World};

/// Time after which a member notices that a relay is silent, at least and at most.
const NOTICED_AFTER: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_millis(750));
/// Time between two attempts to enter a relay that does not answer.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));
/// Time after which a relay knows that a process has ended.
const FORGOTTEN_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Time between two dials of a stranger that does not answer.
const STRANGERS_AGAIN: Duration = Duration::from_secs(8);
/// Time for which the larger key waits before it dials a stranger.
const LARGER_KEY_WAITS: Duration = Duration::from_secs(2);

/// The key of a relay.
fn key_of_relay(number: u8) -> Fingerprint {
    Fingerprint([number; 32])
}

/// The relays of a room.
#[derive(Debug, Default)]
pub struct Relays {
    /// By number.
    relays: BTreeMap<u8, Relay>,
    /// The places that enter each relay.
    pub(crate) users: BTreeSet<(u8, usize)>,
    /// The processes that know a relay to be up.
    clients: BTreeMap<(u8, usize), u64>,
    /// Reports under way with their numbers, by relay, place and life: they travel in order, on one stream.
    reports: BTreeMap<(u8, usize, u64), VecDeque<(u64, RelayChange)>>,
    /// Number of the last report of all relays.
    last_report: u64,
    pub(crate) counts: RelayCounts,
}

#[derive(Debug, Default)]
struct Relay {
    is_down: bool,
    /// The processes that have entered it, by place.
    entered: BTreeMap<usize, u64>,
    /// Number of faults by which it silently drops the packets from one place to another.
    drops: BTreeMap<(usize, usize), u32>,
    /// Places whose presence it hides.
    hides: BTreeSet<usize>,
    /// Places of members that have lost it alone, until their way to it works again.
    lost_by: BTreeSet<usize>,
}

/// Something on its way between a place and a relay.
#[derive(Debug)]
pub struct ToRelay {
    relay: u8,
    slot: usize,
    life: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The member enters.
    Enter,
    /// The member notices that the relay has fallen.
    Silent,
    /// The member receives what the relay has reported up to that number.
    Reports(u64),
    /// The relay notices that the member has ended.
    Forget,
    /// The member dials a key that the room does not know.
    Stranger(Fingerprint),
}

impl Relays {
    /// Whether a relay forwards packets from one place to another.
    pub(super) fn forwards(&self, relay: u8, from: usize, to: usize) -> bool {
        self.relays.get(&relay).is_some_and(|relay| {
            let has_entered = |slot: usize| relay.entered.contains_key(&slot);
            let drops = relay.drops.contains_key(&(from, to));
            let is_lost = [from, to].iter().any(|slot| relay.lost_by.contains(slot));
            !relay.is_down && !is_lost && has_entered(from) && has_entered(to) && !drops
        })
    }

    /// Whether a place knows a relay to be up.
    pub(crate) fn is_up_at(&self, slot: usize, relay: u8) -> bool {
        self.clients.contains_key(&(relay, slot))
    }

    /// The numbers of all relays.
    pub(crate) fn numbers(&self) -> Vec<u8> {
        self.relays.keys().copied().collect()
    }

    /// A relay that two places use, and that is up.
    pub(crate) fn of_both(&self, a: usize, b: usize) -> Option<u8> {
        let mut up = self.relays.iter().filter(|(_, relay)| !relay.is_down);
        let uses = |relay: u8, slot: usize| self.users.contains(&(relay, slot));
        up.find(|(relay, _)| uses(**relay, a) && uses(**relay, b))
            .map(|(relay, _)| *relay)
    }
}

/// Faults.
impl World {
    /// From now on these places enter these relays when their processes start.
    pub(crate) fn set_relays(&mut self, users: &[(u8, usize)]) {
        for (relay, slot) in users {
            self.paths.relays.relays.entry(*relay).or_default();
            self.paths.relays.users.insert((*relay, *slot));
        }
    }

    /// A relay falls: whatever has entered it notices after a while.
    pub(crate) fn relay_falls(&mut self, number: u8) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        if std::mem::replace(&mut relay.is_down, true) {
            return;
        }
        self.checker.disturbed = true;
        self.trace
            .add(self.now, format_args!("relay {number} falls"));
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        let entered = std::mem::take(&mut relay.entered);
        self.paths.relays.counts.falls += 1;
        if self.paths.planted == Some(Planted::NeverNoticesFalls) {
            // They enter again without a word to their cores.
            self.paths
                .relays
                .clients
                .retain(|(relay, _), _| *relay != number);
            for (slot, life) in entered {
                self.at_relay(number, slot, life, What::Enter, RETRY_AFTER);
            }
            return;
        }
        for (slot, life) in entered {
            self.at_relay(number, slot, life, What::Silent, NOTICED_AFTER);
        }
    }

    /// A relay is back. It knows no place yet.
    pub(crate) fn relay_returns(&mut self, number: u8) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        if std::mem::replace(&mut relay.is_down, false) {
            self.trace
                .add(self.now, format_args!("relay {number} is back"));
        }
    }

    /// A member alone loses a relay, and notices after a while. The relay takes it for present.
    pub(crate) fn relay_is_lost(&mut self, number: u8, slot: usize) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        let life = relay.entered.get(&slot).copied();
        if let Some(life) = life.filter(|_| !relay.is_down && relay.lost_by.insert(slot)) {
            self.checker.disturbed = true;
            self.paths.relays.counts.lost_alone += 1;
            let id = &self.slots[slot].id;
            self.trace
                .add(self.now, format_args!("{id} loses relay {number}"));
            self.at_relay(number, slot, life, What::Silent, NOTICED_AFTER);
        }
    }

    /// The way of a member to a relay works again.
    pub(crate) fn relay_is_found(&mut self, number: u8, slot: usize) {
        let relay = self.paths.relays.relays.get_mut(&number);
        if relay.is_some_and(|relay| relay.lost_by.remove(&slot)) {
            self.unblock();
        }
    }

    /// A relay silently drops the packets from one place to another.
    pub(crate) fn relay_drops(&mut self, number: u8, from: usize, to: usize) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        *relay.drops.entry((from, to)).or_default() += 1;
        self.paths.relays.counts.drops += 1;
    }

    /// A relay forwards again.
    pub(crate) fn relay_forwards(&mut self, number: u8, from: usize, to: usize) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        let Some(count) = relay.drops.get_mut(&(from, to)) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            relay.drops.remove(&(from, to));
            self.unblock();
        }
    }

    /// From now on a relay hides the presence of a place, or no longer.
    pub(crate) fn relay_hides(&mut self, number: u8, slot: usize, hides: bool) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        self.paths.relays.counts.lies += 1;
        match hides {
            true => drop(relay.hides.insert(slot)),
            false => drop(relay.hides.remove(&slot)),
        }
    }

    /// A relay makes a false report to a place.
    pub(crate) fn relay_reports(&mut self, number: u8, slot: usize, change: RelayChange) {
        if let Some(life) = self.paths.relays.clients.get(&(number, slot)).copied() {
            self.paths.relays.counts.lies += 1;
            self.send_report(number, slot, life, change);
        }
    }
}

/// Members and relays.
impl World {
    /// A process has started.
    pub(crate) fn enter_relays(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        let users = self.paths.relays.users.iter();
        let its: Vec<u8> = users
            .filter(|(_, user)| *user == slot)
            .map(|(relay, _)| *relay)
            .collect();
        for relay in its {
            self.paths.relays.clients.remove(&(relay, slot));
            self.at_relay(relay, slot, life, What::Enter, Default::default());
        }
    }

    /// A process has ended.
    pub(crate) fn leave_relays(&mut self, slot: usize) {
        self.paths
            .relays
            .clients
            .retain(|(_, user), _| *user != slot);
        self.paths
            .relays
            .reports
            .retain(|(_, user, _), _| *user != slot);
        let relays = self.paths.relays.relays.iter();
        let its: Vec<(u8, u64)> = relays
            .filter_map(|(number, relay)| Some((*number, *relay.entered.get(&slot)?)))
            .collect();
        for (relay, life) in its {
            self.at_relay(relay, slot, life, What::Forget, FORGOTTEN_AFTER);
        }
    }

    /// Something between a place and a relay happens after a trip, and a wait between these two times.
    fn at_relay(
        &mut self,
        relay: u8,
        slot: usize,
        life: u64,
        what: What,
        (least, most): (Duration, Duration),
    ) {
        let (fast, slow) = self.settings.delay;
        let at = self.now + self.between(fast + least, slow + most);
        let event = ToRelay {
            relay,
            slot,
            life,
            what,
        };
        self.at(at, Happening::Wire(Wire::Relay(event)));
    }

    fn send_report(&mut self, relay: u8, slot: usize, life: u64, change: RelayChange) {
        let relays = &mut self.paths.relays;
        relays.last_report += 1;
        let number = relays.last_report;
        let reports = relays.reports.entry((relay, slot, life)).or_default();
        reports.push_back((number, change));
        self.at_relay(relay, slot, life, What::Reports(number), Default::default());
    }

    /// The next report up to that number.
    fn take_report(&mut self, key: (u8, usize, u64), most: u64) -> Option<RelayChange> {
        let reports = self.paths.relays.reports.get_mut(&key)?;
        reports.front().filter(|(number, _)| *number <= most)?;
        reports.pop_front().map(|(_, change)| change)
    }

    pub(super) fn relay_event(&mut self, event: ToRelay) {
        let ToRelay {
            relay,
            slot,
            life,
            what,
        } = event;
        if let What::Forget = what {
            return self.relay_forgets(relay, slot, life);
        }
        if !self.is_life(slot, life) {
            return;
        }
        if self.is_paused(slot) {
            return self.at_relay(relay, slot, life, what, RETRY_AFTER);
        }
        let is_up = self.paths.relays.clients.get(&(relay, slot)) == Some(&life);
        match what {
            What::Enter if !is_up => self.enters(relay, slot, life),
            What::Silent if is_up => {
                self.paths.relays.clients.remove(&(relay, slot));
                self.paths.relays.reports.remove(&(relay, slot, life));
                if self.paths.planted == Some(Planted::GoneBeforeFalls) {
                    for other in (0..self.slots.len()).filter(|other| *other != slot) {
                        if let Some(key) = self.key_of(other) {
                            self.report(relay, slot, RelayChange::Gone(key));
                        }
                    }
                }
                self.report(relay, slot, RelayChange::Down);
                self.at_relay(relay, slot, life, What::Enter, Default::default());
            }
            What::Reports(number) => {
                while let Some(change) = self.take_report((relay, slot, life), number) {
                    if !is_up {
                        continue;
                    }
                    self.report(relay, slot, change);
                    if let RelayChange::Present(key) = change {
                        self.consider_stranger(relay, slot, life, key);
                    }
                }
            }
            What::Stranger(key) if is_up => self.dial_stranger(relay, slot, key),
            _ => {}
        }
    }

    fn enters(&mut self, number: u8, slot: usize, life: u64) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        if relay.is_down || relay.lost_by.contains(&slot) {
            return self.at_relay(number, slot, life, What::Enter, RETRY_AFTER);
        }
        relay.entered.insert(slot, life);
        let hides = relay.hides.contains(&slot);
        let others: Vec<_> = relay
            .entered
            .iter()
            .filter(|(other, _)| **other != slot)
            .map(|(other, life)| (*other, *life, relay.hides.contains(other)))
            .collect();
        self.paths.relays.clients.insert((number, slot), life);
        self.paths.relays.counts.entries += 1;
        let observed = self.slots[slot].address;
        let key = key_of_relay(number);
        self.report(number, slot, RelayChange::Up { observed, key });
        if self.paths.planted == Some(Planted::NoPresence) {
            return;
        }
        let key = self.key_of(slot);
        for (other, its_life, is_hidden) in others {
            let its = self.key_of(other);
            if let Some(its) = its.filter(|_| !is_hidden) {
                self.send_report(number, slot, life, RelayChange::Present(its));
            }
            if let Some(key) = key.filter(|_| !hides) {
                self.send_report(number, other, its_life, RelayChange::Present(key));
            }
        }
        self.unblock();
    }

    fn relay_forgets(&mut self, number: u8, slot: usize, life: u64) {
        let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
            return;
        };
        if relay.entered.get(&slot) != Some(&life) {
            return; // its next process has taken the place
        }
        relay.entered.remove(&slot);
        let others: Vec<_> = relay.entered.iter().map(|(a, b)| (*a, *b)).collect();
        let Some(key) = self.slots[slot].key else {
            return;
        };
        for (other, its_life) in others {
            self.send_report(number, other, its_life, RelayChange::Gone(key));
        }
    }

    fn key_of(&self, slot: usize) -> Option<Fingerprint> {
        let process = self.slots[slot].process.as_ref();
        process.map(|process| process.key)
    }

    fn report(&mut self, relay: u8, slot: usize, change: RelayChange) {
        self.trace.add(
            self.now,
            format_args!("{} <- relay {relay} {change:?}", self.slots[slot].id),
        );
        let held = |world: &Self| {
            let process = world.slots[slot].process.as_ref();
            process.map_or(0, |process| {
                let local = process.clock.local(world.now);
                process.node.held(local).count()
            })
        };
        let before = held(self);
        let relay = RelayNumber(relay);
        let _ = self.feed(slot, Input::Relay { relay, change });
        let after = held(self);
        self.paths.relays.counts.members_held += u64::from(after > before);
    }

    /// The driver dials a key that the room does not know: the larger key later.
    fn consider_stranger(&mut self, relay: u8, slot: usize, life: u64, key: Fingerprint) {
        if self.is_known(slot, key) {
            return;
        }
        let waits = match self.key_of(slot).is_some_and(|mine| mine < key) {
            true => Duration::ZERO,
            false => LARGER_KEY_WAITS,
        };
        self.at_relay(relay, slot, life, What::Stranger(key), (waits, waits));
    }

    fn is_known(&self, slot: usize, key: Fingerprint) -> bool {
        let process = self.slots[slot].process.as_ref();
        process.is_some_and(|process| {
            let local = process.clock.local(self.now);
            process.node.knows(local, key)
        })
    }

    fn dial_stranger(&mut self, relay: u8, from: usize, key: Fingerprint) {
        let leaves = self.slots[from]
            .process
            .as_ref()
            .is_none_or(|it| it.leaving);
        if leaves || self.is_known(from, key) {
            return;
        }
        // Packets may be lost: as long as the key is unknown, it is dialled again.
        let life = self.slots[from].life;
        let again = What::Stranger(key);
        self.at_relay(relay, from, life, again, (STRANGERS_AGAIN, STRANGERS_AGAIN));
        let places = 0..self.slots.len();
        let mut others = places.filter(|slot| *slot != from);
        let Some(to) = others.find(|slot| self.key_of(*slot) == Some(key)) else {
            return; // no process holds it
        };
        let mut dials = self.dials.values();
        if dials.any(|dial| dial.from == from && dial.to == to && dial.over.is_some()) {
            return;
        }
        self.paths.relays.counts.strangers_dialled += 1;
        self.made += 1;
        let dial = self.made;
        let pending = Pending {
            from,
            life: self.slots[from].life,
            to,
            of: DialOf::Core(key),
            link: None,
            kicked: false,
            over: Some(Via::Relay(relay)),
            attempt_of: None,
            held: false,
            answered: false,
        };
        self.dials.insert(dial, pending);
        self.begin_dial(dial);
    }

    /// All relays do what they should from now on, and report the truth to all members.
    pub(crate) fn mend_relays(&mut self) {
        for number in self.paths.relays.numbers() {
            self.relay_returns(number);
            let Some(relay) = self.paths.relays.relays.get_mut(&number) else {
                continue;
            };
            relay.drops.clear();
            relay.hides.clear();
            relay.lost_by.clear();
            let entered = relay.entered.clone();
            for (slot, life) in &entered {
                for other in (0..self.slots.len()).filter(|other| other != slot) {
                    // It may have reported that a place without it is present.
                    let change = match entered.contains_key(&other) {
                        true => self.key_of(other).map(RelayChange::Present),
                        false => self.slots[other].key.map(RelayChange::Gone),
                    };
                    if let Some(change) = change {
                        self.send_report(number, *slot, *life, change);
                    }
                }
            }
        }
        for slot in 0..self.slots.len() {
            self.is_observed_anew(slot);
        }
    }

    /// The relays report to a place where they see it.
    pub(crate) fn is_observed_anew(&mut self, slot: usize) {
        let clients = self.paths.relays.clients.iter();
        let its: Vec<_> = clients
            .filter(|((_, user), _)| *user == slot)
            .map(|((relay, _), life)| (*relay, *life))
            .collect();
        let observed = self.slots[slot].address;
        for (relay, life) in its {
            self.send_report(relay, slot, life, RelayChange::Observed(observed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// Two members at one relay.
    fn room() -> World {
        let mut world = World::new(1, 2, Settings::default(), Trace::on());
        world.model_paths();
        world.set_relays(&[(0, 0), (0, 1)]);
        for slot in 0..2 {
            world.start(slot);
        }
        world.run_for(Duration::from_secs(5));
        world
    }

    #[test]
    fn a_stopped_process_receives_the_reports_of_a_relay_in_order() {
        let mut world = room();
        let key = world.key_of(1).expect("it runs");
        let known = world.trace.lines().len();
        world.pause(0);
        for number in 0..20 {
            let change = match number % 2 {
                0 => RelayChange::Gone(key),
                _ => RelayChange::Present(key),
            };
            world.relay_reports(0, 0, change);
            world.run_for(Duration::from_millis(50));
        }
        world.resume(0);
        world.run_for(Duration::from_secs(1));
        let received = world.trace.lines()[known..].iter();
        let received = received.filter(|line| line.contains("<- relay 0 "));
        let is_gone: Vec<bool> = received.map(|line| line.contains("Gone")).collect();
        let sent: Vec<bool> = (0..20).map(|number| number % 2 == 0).collect();
        assert_eq!(is_gone, sent);
    }
}
