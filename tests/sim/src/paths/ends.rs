//! The end of a run with walls: every pair of live members is linked again, as well as its path allows, and stays so.

use std::collections::BTreeSet;
use std::rc::Rc;

use room_core::time::Duration;
use room_core::wire::Strategy;

use super::PathsPlan;
use crate::chaos::{Run, ms};
use crate::links::{Loss, pair};
use crate::world::World;

/// Longest time until all pairs are linked on their best paths: a member's new address is reported a minute after the last one at
/// the latest, and rounds of dials follow each other after half a minute.
const LINKED_WITHIN: Duration = Duration::from_secs(120);
/// Longest time until a pair is linked through a wall that opens. Dials of an address that never answered are few within ten minutes, and liars use them
/// up; then they begin anew.
const OPENS_WITHIN: Duration = Duration::from_secs(720);
/// Longest time for all pairs together.
const ALL_WITHIN: Duration = Duration::from_secs(3_600);
/// Longest wait between two rounds of dials of a member with a carried link, and the next dial.
const DIRECT_AGAIN_WITHIN: Duration = Duration::from_secs(90);
/// Time for which a member of the version before must show a leader that is to carry its links: the longest handshake, and the wait
/// before it.
const LED_FOR: Duration = Duration::from_millis(5_500);
/// Time for which links and paths must stay.
const STAYS: Duration = Duration::from_secs(10);
/// Most changes of one path meanwhile: by new carriers, and for a direct link.
const MOST_CHANGES: u32 = 4;
/// Interval of looks.
const LOOK: Duration = Duration::from_millis(100);

impl Run<'_> {
    /// Additional time until links are direct again: a link that a member carried meanwhile is followed by a direct one only after
    /// a round of dials.
    pub(crate) fn until_direct(&self) -> Duration {
        match self.world.paths.are_modelled {
            true => DIRECT_AGAIN_WITHIN,
            false => Duration::ZERO,
        }
    }

    /// Whether two places have no direct link because of a wall.
    pub(crate) fn are_walled_off(&self, a: usize, b: usize) -> bool {
        self.world.is_walled(a, b) && !self.world.count_for_each_other(a, b)
    }

    pub(crate) fn paths_end(&mut self, plan: &PathsPlan) {
        let from = self.world.calm_since.unwrap_or(self.world.now);
        self.run_until(from.max(self.world.now));
        self.all_are_linked();
        self.links_stay();
        if self.world.violation.is_some() {
            return;
        }
        // Members of the version before may take long for a direct link.
        let has_walls = !self.world.paths.walls.is_empty() || !plan.relayed_only.is_empty();
        let is_whole = !has_walls && self.is_mesh() && plan.old.is_empty();
        let running = self.world.running();
        let has_carried = running.iter().any(|a| {
            let mut others = running.iter().filter(|b| *b != a);
            others.any(|b| self.world.are_joined(*a, *b) && !self.world.is_linked(*a, *b))
        });
        let is_relayed = running.iter().any(|a| {
            let mut others = running.iter().filter(|b| *b != a);
            others.any(|b| self.world.are_relayed(*a, *b))
        });
        let is_joined = running.iter().all(|a| {
            let mut others = running.iter().filter(|b| *b != a);
            others.all(|b| self.world.count_for_each_other(*a, *b))
        });
        let counts = &mut self.world.paths.relays.counts;
        counts.rooms_settled_over_relays += u64::from(is_relayed);
        counts.rooms_joined_over_relays += u64::from(is_relayed && is_joined);
        if is_relayed && is_joined && plan.old.is_empty() {
            self.relays_restart();
            self.members_lose_relays_alone();
        }
        let counts = &mut self.world.paths.counts;
        counts.rooms_settled_with_carriers += u64::from(has_carried);
        counts.rooms_settled_without_walls += u64::from(is_whole && !plan.walls.is_empty());
        if is_whole {
            self.world.calm_since = Some(self.world.now);
            let profile = Rc::clone(&self.world.profile);
            profile.ends(self);
        } else if self.world.settings.strategy == Strategy::Raft
            && self.is_one_wall()
            && self.is_mesh()
            && plan.old.is_empty()
        {
            self.settle();
            self.quiet();
        }
    }

    /// Whether a single pair has no direct link.
    fn is_one_wall(&self) -> bool {
        let running = self.world.running();
        let pairs = running
            .iter()
            .flat_map(|a| running.iter().map(|b| (*a, *b)));
        let mut off = pairs.filter(|(a, b)| a < b && self.are_walled_off(*a, *b));
        off.next().is_some_and(|(a, b)| self.world.are_joined(a, b)) && off.next().is_none()
    }

    fn all_are_linked(&mut self) {
        let from = self.world.now;
        // A pair that needs another link first begins when that one is there.
        let mut wanted = (String::new(), from);
        while self.world.violation.is_none() {
            let Some((text, within)) = self.world.badly_linked() else {
                return;
            };
            if wanted.0 != text {
                wanted = (text.clone(), self.world.now);
            }
            if self.world.now > wanted.1 + within || self.world.now > from + ALL_WITHIN {
                let text = format!("{text} after {within:?}{}", self.world.describe());
                return self.world.violate("linked", text);
            }
            self.run_until(self.world.now + LOOK);
        }
    }

    /// No link is lost again, and no path changes to and fro.
    fn links_stay(&mut self) {
        // The last changes of leaders may still choose carriers.
        self.run_until(self.world.now + ms(3_000));
        let from = self.world.now;
        self.world.paths.changes.clear();
        self.world.paths.losses.clear();
        let joined = self.world.joined_pairs();
        self.run_until(from + STAYS);
        if self.world.violation.is_some() {
            return;
        }
        // One link may replace another that an end has lost.
        let losses = &self.world.paths.losses;
        let lost = losses.iter().find(|loss| {
            let ends = |loss: &Loss| (loss.slot, loss.other);
            let again = losses.iter().filter(|another| ends(another) == ends(loss));
            let is_back = again.count() == 1 && self.world.are_joined(loss.slot, loss.other);
            joined.contains(&pair(loss.slot, loss.other)) && !is_back && loss.had_way
        });
        let name = |slot: usize| &self.world.slots[slot].id;
        let lost = lost.map(|loss| format!("{} lost {}", name(loss.slot), name(loss.other)));
        let changes = self.world.paths.changes.iter();
        // With each leader that a member shows another one may carry its packets.
        let is_led = |slot: usize| {
            let reported = self.world.slots[slot].reported.last();
            reported.is_none_or(|(at, _)| *at < from)
        };
        let wavers = changes.filter(|((slot, _), count)| **count > MOST_CHANGES && is_led(*slot));
        let mut wavers = wavers.map(|((slot, peer), count)| {
            let me = &self.world.slots[*slot].id;
            format!("the path of {me} to {peer} changed {count} times")
        });
        if let Some(text) = lost.or(wavers.next()) {
            self.world.violate("linked", text);
        }
        self.all_are_linked();
    }
}

impl World {
    /// All pairs with a link that works both ways.
    fn joined_pairs(&self) -> BTreeSet<(usize, usize)> {
        let running = self.running();
        let each = running
            .iter()
            .flat_map(|a| running.iter().map(|b| (*a, *b)));
        each.filter(|(a, b)| a < b && self.are_joined(*a, *b))
            .collect()
    }

    /// A member that carries the packets of a pair, if both choose it.
    fn carrier_between(&self, running: &[usize], a: usize, b: usize) -> Option<usize> {
        running.iter().copied().find(|c| {
            let is_third = *c != a && *c != b;
            let is_linked = self.is_linked(a, *c) && self.is_linked(*c, b);
            is_third && is_linked && self.forwards(*c) && self.is_used_by(*c, a, b)
        })
    }

    /// Whether packets of a pair have any way. Their only carrier may be a former leader, which carries for no other member.
    pub(crate) fn has_way(&self, a: usize, b: usize) -> bool {
        !self.paths.walls.contains_key(&pair(a, b))
            || self.paths.relays.of_both(a, b).is_some()
            || self.carrier_between(&self.running(), a, b).is_some()
    }

    /// A pair that is not linked on the best path between them, or not at all, and the time that it may take.
    fn badly_linked(&self) -> Option<(String, Duration)> {
        let mut running = self.running();
        running.retain(|slot| {
            let process = self.slots[*slot].process.as_ref();
            !self.slots[*slot].kicked && process.is_some_and(|process| !process.leaving)
        });
        for (index, a) in running.iter().enumerate() {
            for b in &running[index + 1..] {
                let (a, b) = (*a, *b);
                let wall = self.paths.walls.get(&(a, b));
                let carrier = self.carrier_between(&running, a, b);
                let carrier = carrier.filter(|_| self.carried_links_last());
                let are_new = !self.paths.is_old(a) && !self.paths.is_old(b);
                // One that both have a direct link with introduces them to each other. One of the version before reports to no member where
                // it sees it, and asks few times.
                let is_known = running
                    .iter()
                    .any(|c| self.is_linked(a, *c) && self.is_linked(*c, b));
                let is_observed = |slot: usize| {
                    let mut others = running.iter().filter(|other| !self.paths.is_old(**other));
                    others.any(|other| self.is_linked(slot, *other))
                };
                let are_observed = is_observed(a) && is_observed(b);
                let relay = self.paths.relays.of_both(a, b);
                let hidden = &self.paths.relayed_only;
                let is_hidden = hidden.contains(&a) || hidden.contains(&b);
                let can_punch = are_new && carrier.is_some() && are_observed && !is_hidden;
                let opens = wall.is_some_and(|wall| wall.opens) && can_punch;
                let names = || (&self.slots[a].id, &self.slots[b].id);
                let is_open = wall.is_none() && !is_hidden;
                // Both agree on rounds where packets have another way. Otherwise a long partition uses up the dials.
                let has_dials = carrier.is_some()
                    || relay.is_some()
                    || !self.has_used_up_dials(a, b)
                    || !self.has_used_up_dials(b, a);
                let is_sought = is_open && is_known && are_new && are_observed && has_dials;
                if (is_sought || opens) && !self.is_linked(a, b) {
                    let text = format!("{:?} have no direct link, {wall:?}", names());
                    // After direct links that did not last, the relay's one stays for ten minutes.
                    let within = match opens || relay.is_some() {
                        true => OPENS_WITHIN,
                        false => LINKED_WITHIN,
                    };
                    return Some((text, within));
                }
                if let Some(relay) = relay
                    && !self.count_for_each_other(a, b)
                {
                    let text = format!("{:?} have no link, and relay {relay} carries", names());
                    return Some((text, LINKED_WITHIN));
                }
                if let Some(carrier) = carrier
                    && self.can_be_carried(a)
                    && self.can_be_carried(b)
                    && !self.are_joined(a, b)
                {
                    let carrier = &self.slots[carrier].id;
                    let text = format!("{:?} have no link, and {carrier} carries", names());
                    return Some((text, LINKED_WITHIN));
                }
            }
        }
        None
    }

    /// Whether the first packet of the other end arrives on a carried link before the link counts as silent.
    fn carried_links_last(&self) -> bool {
        let hops = 2;
        self.settings.heartbeat_timeout > self.max_rtt() * hops
    }

    /// Whether a place may not dial another one's address again for a while.
    fn has_used_up_dials(&self, slot: usize, other: usize) -> bool {
        let address = self.slots[other].address;
        let node = self.node(slot);
        node.is_some_and(|node| node.has_used_up_dials(address))
    }

    /// Whether its leader, if that alone carries its packets, has been the same for a whole handshake. Two leaders in turn, which a
    /// wall keeps apart, carry none.
    fn can_be_carried(&self, slot: usize) -> bool {
        let reported = self.slots[slot].reported.last();
        let is_led = reported.is_none_or(|(at, _)| self.now.since(*at) >= LED_FOR);
        !self.paths.is_old(slot) || is_led
    }
}
