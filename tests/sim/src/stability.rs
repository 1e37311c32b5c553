//! P14: a leader with links in both directions to a majority of its side stays, whatever happens to the others.
//!
//! Sampled every few milliseconds of a run, from outside. Only the property's own conditions decide whether a change of the
//! leader is a violation; see [`Stability::sample`].

use crate::decoded::led_under;
use std::collections::{BTreeMap, BTreeSet};

use room_core::election::record::Epoch;
use room_core::id::PeerId;
use room_core::node::Node;
use room_core::quorum::majority_threshold;
use room_core::time::{Duration, Time};
use room_core::wire::MergePolicy;

use crate::checks::Violation;
use crate::clock::slowest_clock;
use crate::plan::Step;
use crate::world::World;

/// A leadership and its constant followers, by place, with the time since when.
#[derive(Debug, Clone)]
struct Leadership {
    leader: usize,
    life: u64,
    since: Time,
    followers: BTreeMap<usize, (u64, Time)>,
}

/// A leadership that had to go on at the last sample.
#[derive(Debug, Clone)]
struct Firm {
    leader: usize,
    life: u64,
    /// The newest epoch at that time, and its own.
    epoch: Epoch,
    /// Its followers, with their incarnations.
    followers: Vec<(usize, u64)>,
    /// Whether they are a bridge to another majority.
    bridge: bool,
}

/// See the module's text.
#[derive(Debug)]
pub struct Stability {
    applies: bool,
    /// Number of voters, if it is fixed.
    fixed: usize,
    /// Time for which everything must have been stable.
    window: Duration,
    /// A peer that was heard from this recently counts as heard from without a gap.
    fresh: Duration,
    /// Last time at which an eligible voter ran in each place.
    voters: BTreeMap<usize, Time>,
    leaderships: Vec<Leadership>,
    newest: Epoch,
    firm: Option<Firm>,
}

impl Stability {
    /// For a room.
    pub fn new(world: &World, silence_is_reported: bool) -> Self {
        let settings = &world.settings;
        Self {
            // With HighestTerm any lone peer with a higher term wins: the property is about LargestSide. A member that is wrongly
            // notified of the end of the leader's process follows that (G3). A leader of gossip makes way for a lower one.
            applies: settings.merge == MergePolicy::LargestSide
                && silence_is_reported
                && world.profile.keeps_leaders(),
            fixed: settings.roster.as_ref().map_or(0, BTreeSet::len),
            window: slowest_clock(settings.election_timeout_max * 2),
            fresh: settings.heartbeat_timeout * 4 / 5,
            voters: BTreeMap::new(),
            leaderships: Vec::new(),
            newest: Epoch::default(),
            firm: None,
        }
    }

    /// Actions of hosts that end a leadership at once, and rightly. The epoch shows a `SetLeader`.
    pub fn inflicted(&mut self, step: &Step, world: &World) {
        let ends = |slot: usize| world.node(slot).is_some_and(Node::is_leader);
        let disturbed = match step {
            Step::Transfer { .. } | Step::Yield | Step::SetLeader { .. } => true,
            Step::Observe { slot, .. } => ends(*slot),
            // The leader ends: the next sample shows it.
            _ => false,
        };
        if disturbed {
            self.reset();
        }
    }

    /// Starts the whole window anew.
    pub fn reset(&mut self) {
        self.leaderships.clear();
        self.firm = None;
    }

    /// Takes a sample of the room. A violation is a leader that stopped leading, or that one of its followers no longer shows,
    /// while all of this held for the whole window and still holds:
    ///
    /// - it and its followers ran, in unchanged incarnations, none of them stopped, leaving, an observer, or kicked and notified:
    ///   a kicked peer never leads (P6);
    /// - the links between it and each follower worked both ways, and messages arrived both ways without a gap
    ///   of four fifths of the heartbeat timeout;
    /// - with a roster, no disk of a follower failed: such a follower acknowledges nothing that it cannot keep;
    /// - together they were more than half of all places where a voter ran within the window, or of the fixed voters;
    /// - no peer that the leader does not reach, but a follower does, has a majority of its own view without the followers: two
    ///   views that overlap in few peers are two rooms to a dynamic quorum (C1 X1). With two peers that does not matter (G3);
    /// - no node has a newer `SetLeader` than the leader, and no host asked it for a transfer.
    pub fn sample(&mut self, world: &World) -> Option<Violation> {
        if !self.applies {
            return None;
        }
        // A liar that is believed becomes leader.
        let calm = world.calm_since.is_some_and(|since| since <= world.now);
        if !world.liars.is_empty() && !calm {
            self.reset();
            return None;
        }
        let violation = self.firm.take().and_then(|firm| self.broken(world, &firm));
        self.update(world);
        violation
    }

    fn update(&mut self, world: &World) {
        let now = world.now;
        let newest = world.checker.newest_epoch();
        if newest != self.newest {
            // A host called `SetLeader`, and others may have called it at the same time.
            self.newest = newest;
            self.reset();
        }
        for slot in 0..world.slots.len() {
            if world.may_lead(slot) {
                self.voters.insert(slot, now);
            }
        }
        self.voters
            .retain(|_, seen| now.since(*seen) <= self.window);
        let leaders = world.leaders();
        self.leaderships.retain(|leadership| {
            leaders.contains(&leadership.leader) && is_up(world, leadership.leader, leadership.life)
        });
        for leader in leaders {
            let life = world.slots[leader].life;
            if !is_up(world, leader, life) {
                continue;
            }
            if !self
                .leaderships
                .iter()
                .any(|leadership| leadership.leader == leader)
            {
                self.leaderships.push(Leadership {
                    leader,
                    life,
                    since: now,
                    followers: BTreeMap::new(),
                });
            }
        }
        let fresh = self.fresh;
        for leadership in &mut self.leaderships {
            let id = &world.slots[leadership.leader].id;
            for slot in 0..world.slots.len() {
                let life = world.slots[slot].life;
                if slot != leadership.leader && follows(world, slot, leadership.leader, id, fresh) {
                    let since = leadership.followers.entry(slot).or_insert((life, now));
                    if since.0 != life {
                        *since = (life, now);
                    }
                } else {
                    leadership.followers.remove(&slot);
                }
            }
        }
        let firm = self
            .leaderships
            .iter()
            .find_map(|leadership| self.firm(world, leadership));
        self.firm = firm;
    }

    fn firm(&self, world: &World, leadership: &Leadership) -> Option<Firm> {
        let now = world.now;
        if now.since(leadership.since) < self.window {
            return None; // without followers, too
        }
        let long = |(_, (_, since)): &(&usize, &(u64, Time))| now.since(*since) >= self.window;
        let followers: Vec<(usize, u64)> = leadership
            .followers
            .iter()
            .filter(long)
            .filter(|(slot, _)| may_vote(world, **slot))
            .map(|(slot, (life, _))| (*slot, *life))
            .collect();
        let epoch = &led_under(world.node(leadership.leader)?)?.stamp.epoch;
        let newest = *epoch == world.checker.newest_epoch();
        let majority = self.is_majority(followers.len() + 1, self.voters.len());
        let ids: Vec<usize> = followers.iter().map(|(slot, _)| *slot).collect();
        (newest && majority && may_vote(world, leadership.leader)).then(|| Firm {
            bridge: self.is_bridge(world, leadership.leader, &ids),
            leader: leadership.leader,
            life: leadership.life,
            epoch: epoch.clone(),
            followers,
        })
    }

    /// Whether the followers are a bridge to a member that can be elected without them.
    fn is_bridge(&self, world: &World, leader: usize, followers: &[usize]) -> bool {
        if self.fixed > 0 {
            return false;
        }
        let voters: Vec<usize> = (0..world.slots.len())
            .filter(|slot| may_vote(world, *slot))
            .collect();
        let sees = |a: usize, b: usize| {
            let node = world.node(a);
            node.is_some_and(|node| node.membership().elector(&world.slots[b].id).is_some())
        };
        let strangers = voters
            .iter()
            .filter(|slot| **slot != leader && !followers.contains(slot) && !sees(**slot, leader));
        strangers.into_iter().any(|stranger| {
            let seen = voters.iter().filter(|slot| sees(*stranger, **slot));
            let (bound, free): (Vec<usize>, Vec<usize>) =
                seen.partition(|slot| followers.contains(slot));
            let view = bound.len() + free.len() + 1;
            !bound.is_empty() && view > 2 && free.len() + 1 >= majority_threshold(view)
        })
    }

    fn is_majority(&self, of_them: usize, all: usize) -> bool {
        of_them * 2 > all.max(self.fixed)
    }

    fn broken(&self, world: &World, firm: &Firm) -> Option<Violation> {
        let leader = firm.leader;
        if !is_up(world, leader, firm.life) || !may_vote(world, leader) {
            return None;
        }
        let id = &world.slots[leader].id;
        let node = world.node(leader)?;
        let works = |(slot, life): &&(usize, u64)| {
            is_up(world, *slot, *life)
                && may_vote(world, *slot)
                && link_works(world, *slot, leader, self.fresh)
        };
        let still: Vec<usize> = firm
            .followers
            .iter()
            .filter(works)
            .map(|(slot, _)| *slot)
            .collect();
        let seen_now =
            |slot: &usize| may_vote(world, *slot) && world.slots[*slot].process.is_some();
        let newcomers = (0..world.slots.len())
            .filter(|slot| seen_now(slot) && !self.voters.contains_key(slot))
            .count();
        let majority = self.is_majority(still.len() + 1, self.voters.len() + newcomers);
        let bridge = firm.bridge || self.is_bridge(world, leader, &still);
        if !majority || bridge || world.checker.newest_epoch() != firm.epoch {
            return None;
        }
        let text = if !node.is_leader() {
            format!("{id} stopped leading, although {still:?} received its messages, and it theirs")
        } else {
            let strays = |slot: &&usize| world.node(**slot).and_then(Node::leader) != Some(id);
            let stray = still.iter().find(strays)?;
            let shows = world.node(*stray).and_then(Node::leader);
            format!(
                "{} turned from {id}, from which it received, to {shows:?}",
                world.slots[*stray].id
            )
        };
        Some(Violation {
            property: "P14",
            text: format!("{text}{}", world.describe()),
        })
    }
}

fn may_vote(world: &World, slot: usize) -> bool {
    world.may_lead(slot) && !world.is_stale(slot)
}

fn is_up(world: &World, slot: usize, life: u64) -> bool {
    let place = &world.slots[slot];
    place.life == life
        && place.process.as_ref().is_some_and(|process| {
            let out = place.kicked && process.node.is_over();
            !process.paused && !process.leaving && !out
        })
}

fn link_works(world: &World, a: usize, b: usize, fresh: Duration) -> bool {
    let receives = |from, to| {
        world
            .last_arrival(from, to)
            .is_some_and(|at| world.now.since(at) < fresh)
    };
    world.count_for_each_other(a, b) && receives(a, b) && receives(b, a)
}

fn follows(world: &World, slot: usize, leader: usize, id: &PeerId, fresh: Duration) -> bool {
    let life = world.slots[slot].life;
    is_up(world, slot, life)
        && may_vote(world, slot)
        && !(world.settings.roster.is_some() && world.now < world.slots[slot].disk_fails_until)
        && world.node(slot).and_then(Node::leader) == Some(id)
        && link_works(world, slot, leader, fresh)
}
