//! A relay falls and is back within the grace, or a member alone loses it while another one can carry on, in a room that is calm: no
//! member is lost, and none is elected.

use room_core::path::{Carrier, RelayNumber};
use room_core::time::Duration;
use room_core::wire::Strategy;

use crate::chaos::{Run, ms};
use crate::links::Loss;
use crate::world::World;

/// Longest time from the fall of a relay to its return: members notice the fall within 0.8 s, and enter again within half a second.
const LONGEST_MS: u64 = 3_900;
/// Time until everything that an election takes is over.
const ELECTED_WITHIN: Duration = Duration::from_secs(15);
/// Time within which a member that the outage silences is lost, if it is.
const LOST_WITHIN: Duration = Duration::from_secs(3);
/// Shortest timeouts for which this holds: shorter ones are over before a member notices the fall of a relay.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1_300);

impl Run<'_> {
    /// Restarts each relay, if the room's timeouts allow it.
    pub(super) fn relays_restart(&mut self) {
        let Some(leader) = self.world.agreed().filter(|_| self.restarts_go_unnoticed()) else {
            return;
        };
        for relay in self.world.paths.relays.numbers() {
            let outage = format!("relay {relay} was away");
            let begin = |world: &mut World| world.relay_falls(relay);
            let end = |world: &mut World| world.relay_returns(relay);
            if let Some(text) = self.noticed(leader, &outage, begin, end) {
                self.world.violate("restarts", text);
            }
            if self.world.violation.is_some() {
                return;
            }
            let counts = &mut self.world.paths.relays.counts;
            match self.world.settings.strategy {
                Strategy::Raft => counts.restarts_unnoticed_by_raft += 1,
                Strategy::Gossip { .. } => counts.restarts_unnoticed_by_gossip += 1,
                _ => counts.restarts_unnoticed_by_seeded += 1,
            }
        }
    }

    /// Has one member after the other lose the relay that carries its links, while all of these may take another one.
    pub(super) fn members_lose_relays_alone(&mut self) {
        for relay in self.world.paths.relays.numbers() {
            for slot in self.world.running() {
                let Some(leader) = self.world.agreed().filter(|_| self.restarts_go_unnoticed())
                else {
                    return;
                };
                if !self.world.has_another_relay(slot, relay) {
                    continue;
                }
                let outage = format!("{} alone lacked relay {relay}", self.world.slots[slot].id);
                let begin = |world: &mut World| world.relay_is_lost(relay, slot);
                let end = |world: &mut World| world.relay_is_found(relay, slot);
                if let Some(text) = self.noticed(leader, &outage, begin, end) {
                    self.world.violate("lone losses", text);
                }
                if self.world.violation.is_some() {
                    return;
                }
                self.world.paths.relays.counts.lone_losses_unnoticed += 1;
            }
        }
    }

    /// Runs an outage and the time that its effects may take. Returns the change of a leader or the loss of a member that it has
    /// caused.
    fn noticed(
        &mut self,
        leader: usize,
        outage: &str,
        begin: impl FnOnce(&mut World),
        end: impl FnOnce(&mut World),
    ) -> Option<String> {
        let began = self.world.now;
        self.world.paths.losses.clear();
        begin(&mut self.world);
        let for_ms = self.draw_ms(LONGEST_MS);
        self.run_until(began + ms(for_ms));
        end(&mut self.world);
        self.run_until(self.world.now + LOST_WITHIN);
        let lost = self.world.paths.losses.first().copied();
        self.run_until(self.world.now + ELECTED_WITHIN);
        if self.world.violation.is_some() {
            return None;
        }
        let slots = &self.world.slots;
        let elects = slots.iter().filter(|slot| {
            let last = slot.reported.last();
            slot.process.is_some() && last.is_some_and(|(at, _)| *at > began)
        });
        let elects: Vec<_> = elects.map(|slot| slot.id.clone()).collect();
        if !elects.is_empty() || self.world.agreed() != Some(leader) {
            return Some(format!("{elects:?} noticed that {outage} for {for_ms} ms"));
        }
        let Loss { slot, other, .. } = lost?;
        let (one, other) = (&slots[slot].id, &slots[other].id);
        Some(format!("{one} lost {other} when {outage} for {for_ms} ms"))
    }

    /// Whether the timeouts of the strategy are longer than a member needs to notice the fall of a relay; a leader that only answers
    /// keep in office resigns as without a relay.
    fn restarts_go_unnoticed(&self) -> bool {
        let settings = &self.world.settings;
        let is_slow = settings.heartbeat_timeout >= SHORTEST_TIMEOUT + self.world.max_rtt();
        is_slow
            && match settings.strategy {
                Strategy::Raft => settings.roster.is_none(),
                Strategy::Gossip { .. } => settings.windows.alive_threshold >= ms(2_500),
                Strategy::Seeded(rules) => rules.intervals.heartbeat_timeout_ms >= 7_000,
                Strategy::Etcd(_) => false,
            }
    }

    fn draw_ms(&mut self, most: u64) -> u64 {
        let drawn = self.world.between(ms(50), ms(most));
        u64::try_from(drawn.as_millis()).unwrap_or(u64::MAX)
    }
}

impl World {
    /// Whether a relay carries links of a place, and each other end of its links over relays can take another one.
    fn has_another_relay(&self, slot: usize, relay: u8) -> bool {
        let relays = &self.paths.relays;
        let peers = self.running().into_iter();
        let mut peers = peers.filter(|peer| *peer != slot && self.are_relayed(slot, *peer));
        let others = || relays.numbers().into_iter().filter(|other| *other != relay);
        let both = |peer: usize, number: u8| {
            relays.is_up_at(slot, number) && relays.is_up_at(peer, number)
        };
        let process = self.slots[slot].process.as_ref();
        let carrier = Some(Carrier::Relay(RelayNumber(relay)));
        let carries = process.is_some_and(|process| {
            let mut members = process.node.membership().iter();
            members.any(|(_, member)| member.carrier == carrier)
        });
        carries && peers.all(|peer| others().any(|other| both(peer, other)))
    }

    /// Whether two places are linked over a relay.
    pub(super) fn are_relayed(&self, a: usize, b: usize) -> bool {
        self.count_for_each_other(a, b) && !self.is_linked(a, b)
    }
}
