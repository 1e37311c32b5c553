//! Rooms whose assigned leader is gone and whose hosts take no action (C4.5): the plans that have them, the conditions under
//! which such a room may lack a leader, and the end of that.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use room_core::election::Recovery;
use room_core::node::{Command, Node};
use room_core::time::Duration;

use crate::chaos::Run;
use crate::clock::slowest_clock;
use crate::plan::{Plan, Step};

/// Separates these draws from the plan's, which come from the same seed.
const OF_THEIR_OWN: u64 = 0x401d_0b0d_c0de_0012;

/// Adds hosts that differ, hosts that wait, and wall clocks that are set back to a plan.
pub fn draw(mut plan: Plan) -> Plan {
    if plan.rules.fixed_voters {
        return plan; // the checks of this strategy depend on the order of incarnations on disk
    }
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed ^ OF_THEIR_OWN);
    plan.hosts_wait = rng.random_bool(0.5);
    if rng.random_bool(0.3) {
        let share = *[0.2, 0.5].choose(&mut rng).expect("not empty");
        plan.other_recovery = (0..plan.size).filter(|_| rng.random_bool(share)).collect();
    }
    if rng.random_bool(0.15) && plan.rules.keeps_keys {
        for _ in 0..rng.random_range(1..=3) {
            let step = Step::SetBack {
                slot: rng.random_range(0..plan.size),
                by_ms: *[1_000, 60_000, 3_600_000]
                    .choose(&mut rng)
                    .expect("not empty"),
                back_ms: *[0, 100, 1_000, 4_000].choose(&mut rng).expect("not empty"),
            };
            plan.steps
                .push((rng.random_range(0..plan.heal_at_ms), step));
        }
        plan.steps.sort_by_key(|(at, _)| *at);
    }
    plan
}

impl Run<'_> {
    /// Whether hosts do not interfere with elections when all faults are over. A liar may be followed under an invented
    /// assignment, and gossip knows none.
    pub(crate) fn hosts_wait(&self) -> bool {
        self.plan.hosts_wait
            && self.plan.liars.is_empty()
            && self.world.profile.has_terms()
            && self.world.settings.roster.is_none()
    }

    /// Longer than any running campaign takes.
    pub(crate) fn longest_election(&self) -> Duration {
        slowest_clock(self.world.settings.election_timeout_max * 3)
    }

    /// Members without a leader, if they fill their room's limit. Others are refused, even one that was a member and left, and
    /// only a leader could lift the limit.
    pub(crate) fn full_room(&self) -> Vec<usize> {
        let mut full = self.world.running();
        full.retain(|slot| {
            let node = self.world.node(*slot);
            node.filter(|_| self.plan.hosts.asked).is_some_and(|node| {
                let limit = usize::try_from(node.max_peers()).unwrap_or(usize::MAX);
                let is_full = limit > 0 && node.membership().len() >= limit;
                is_full && node.leader().is_none()
            })
        });
        let is_one_room = full.iter().all(|slot| {
            let node = self.world.node(*slot);
            let links = node.map_or(0, |node| node.membership().len());
            let mut others = full.iter().filter(|other| *other != slot);
            links + 1 == full.len()
                && others.all(|other| self.world.count_for_each_other(*slot, *other))
        });
        if is_one_room { full } else { Vec::new() }
    }

    /// Whether this room may lack a leader until a host acts. The largest record is assigned. That incarnation of its leader was
    /// followed under it, and is gone, without links, or may no longer lead. Every member that may campaign has Hold, and none of
    /// their hosts has allowed elections since.
    pub(crate) fn waits_for_a_host(&self, running: &[usize]) -> bool {
        let world = &self.world;
        let records = running.iter().filter_map(|slot| world.node(*slot));
        let Some(record) = records.map(Node::record).max() else {
            return false;
        };
        let leads = |slot: &usize| {
            world
                .node(*slot)
                .is_some_and(|node| node.leader().is_some())
        };
        if !self.hosts_wait() || !record.assigned || running.iter().any(leads) {
            return false;
        }
        let is_linked = |slot: usize| {
            let mut others = running.iter().filter(|other| **other != slot);
            others.any(|other| world.count_for_each_other(slot, *other))
        };
        let mut may_lead = self.voters();
        may_lead.retain(|slot| running.contains(slot));
        let lives = |slot: usize| is_linked(slot) && may_lead.contains(&slot);
        let lives = |id: &_| world.slot_of(id).is_some_and(lives);
        let waits = |slot: &usize| {
            world.recovery(*slot) == Recovery::Hold && !world.checker.is_released(*slot, record)
        };
        let mut campaigning = may_lead.iter().filter(|slot| self.campaigns(**slot));
        world.checker.is_followed_and_gone(record, lives) && campaigning.all(waits)
    }

    /// Whether a member that may lead also campaigns by itself.
    fn campaigns(&self, slot: usize) -> bool {
        let process = self.world.slots[slot].process.as_ref();
        process.is_some_and(|process| process.auto && !process.leaving)
    }

    /// A host allows elections, or names a leader.
    pub(crate) fn end_the_wait(&mut self, room: &[usize]) {
        self.world.sometimes.rooms_held += 1;
        let mut hosts = self.voters();
        hosts.retain(|slot| room.contains(slot) && self.campaigns(*slot));
        let Some(&host) = hosts.choose(&mut self.world.rng) else {
            return;
        };
        let command = if self.world.rng.random_bool(0.5) {
            Command::EnableAutoElection(true)
        } else {
            // Two members that are kept apart do not know each other.
            let target = hosts.choose(&mut self.world.rng).copied().unwrap_or(host);
            let named = if self.plan.apart.is_some() {
                host
            } else {
                target
            };
            Command::SetLeader(self.world.slots[named].id.clone())
        };
        if let Err(error) = self.world.command(host, command) {
            let text = format!("a held room's host was refused: {error}");
            self.world.violate("P9", text);
        }
    }
}
