//! Deadlines in a room that elects by gossip, and the trial of each run.
//!
//! `AL` is the alive threshold and `ED` the election duration by the slowest clock of the room, `D` the longest
//! one-way trip.

use std::collections::BTreeSet;

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

use room_core::election::gossip::Gossip;
use room_core::node::{Command, Node};
use room_core::time::{Duration, Time};

use crate::chaos::{Run, ms, pairs};
use crate::clock::slowest_clock;
use crate::gossip::{GossipRules, Trial};

/// Longest time until links are back, by redialling.
const LINKS_BACK: Duration = Duration::from_secs(20);
/// A room of more nodes is expensive.
const LARGE: usize = 16;

impl Run<'_> {
    /// The end of a run: healing is over, one leader is left, and stays after one more trial.
    pub(crate) fn gossip_ends(&mut self, rules: &GossipRules) {
        self.one_is_left();
        self.all_show_it();
        self.try_out(rules);
        self.one_is_left();
        self.all_show_it();
        self.it_stays();
    }

    fn try_out(&mut self, rules: &GossipRules) {
        if self.world.violation.is_some() {
            return;
        }
        let [leader] = self.world.leaders()[..] else {
            return; // Two members that never reach each other may both lead.
        };
        let trial = rules.trial;
        self.world
            .trace
            .add(self.world.now, format_args!("---- {trial:?} ----"));
        let whole = self.plan.apart.is_none();
        match trial {
            Trial::Parts if whole => self.parts(),
            Trial::Crash if whole => self.leader_is_lost(rules, leader, true),
            Trial::Leave if whole => self.leader_is_lost(rules, leader, false),
            Trial::Yields if whole => self.leader_yields(rules, leader),
            Trial::Join if whole => self.somebody_joins(leader),
            Trial::Refused => self.asks_for_votes(),
            _ => {}
        }
    }

    /// This duration by the slowest clock.
    fn slow(&self, duration: Duration) -> Duration {
        if self.plan.clocks.is_empty() {
            duration
        } else {
            slowest_clock(duration)
        }
    }

    /// D, plus the lateness of timers on the way.
    fn trip(&self) -> Duration {
        self.world.max_rtt() / 2 + self.world.settings.lateness * 2 + ms(1)
    }

    fn alive(&self) -> Duration {
        self.slow(self.world.settings.windows.alive_threshold)
    }

    fn election(&self) -> Duration {
        self.slow(self.world.settings.windows.election_duration)
    }

    fn gossip_of(&self, slot: usize) -> Option<&Gossip> {
        self.world.node(slot)?.election().of::<Gossip>()
    }

    fn yields(&self, slot: usize) -> bool {
        self.gossip_of(slot)
            .is_some_and(|gossip| gossip.peer().machine().is_yielding())
    }

    /// The lowest id of these places.
    fn lowest(&self, slots: impl IntoIterator<Item = usize>) -> Option<usize> {
        slots
            .into_iter()
            .min_by(|a, b| self.world.slots[*a].id.cmp(&self.world.slots[*b].id))
    }

    /// Time from equal views, in any state, to one leader. A window that a declaration from before falls into, an empty one, and
    /// two elections: the proposal of a member that is gone may have kept the lowest from leading in the first. A yielding member
    /// may be the only one that could lead: then its yield ends by its time, which is six thresholds, within one window more.
    /// Views of two members that never reach each other are not equal: the one without a link to the leader loses the election of
    /// the others, and has its own a window later.
    fn agreement(&self, places: &[usize]) -> Duration {
        let (alive, election) = (self.alive(), self.election());
        let mut windows = alive * 2 + election * 2;
        if places.iter().any(|slot| self.yields(*slot)) {
            windows = windows.max(alive * 7 + election);
        }
        if self.plan.apart.is_some() {
            windows += alive;
        }
        windows + self.trip() * 3
    }

    fn are_apart(&self, a: usize, b: usize) -> bool {
        let pair = self.plan.apart;
        pair == Some((a, b)) || pair == Some((b, a))
    }

    /// Whether every place sees the reachable ones of `places`, and no others.
    fn see(&self, places: &[usize]) -> bool {
        places.iter().all(|a| {
            let others = places
                .iter()
                .filter(|b| a != *b && !self.are_apart(*a, **b));
            let linked = others
                .clone()
                .all(|b| self.world.count_for_each_other(*a, *b));
            let node = self.world.node(*a);
            linked && node.is_some_and(|node| node.membership().len() == others.count())
        })
    }

    fn views_are_equal(&self) -> bool {
        let running = self.world.running();
        !self.somebody_leaves() && self.is_mesh() && self.see(&running)
    }

    /// Waits until all possible links are up.
    fn links_are_up(&mut self) {
        let from = self.world.calm_since.unwrap_or(self.world.now);
        let from = from.max(self.world.now);
        self.run_until(from);
        let bound = LINKS_BACK + self.until_direct();
        self.within("links", from, bound, "views are not equal", |run| {
            run.views_are_equal()
        });
    }

    /// Views are equal for long enough: exactly one leads, and all show it.
    fn one_is_left(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        self.links_are_up();
        let (from, running) = (self.world.now, self.world.running());
        let bound = self.agreement(&running);
        self.within("one leader", from, bound, "not one leader", |run| {
            run.is_led(&running)
        });
    }

    /// Whether these places follow one leader, or none if none of them may lead. Of two places that never reach each other both
    /// may lead; then each place shows one of the leaders, except an observer that reaches none.
    fn is_led(&self, places: &[usize]) -> bool {
        let voters = self.voters();
        let inside = |slot: &usize| places.contains(slot);
        let leaders: Vec<usize> = self.world.leaders().into_iter().filter(inside).collect();
        let shown = |slot: &usize| {
            let shown = self.world.node(*slot).and_then(Node::leader);
            shown.map(|id| leaders.iter().any(|slot| self.world.slots[*slot].id == *id))
        };
        if !voters.iter().any(inside) {
            return leaders.is_empty() && places.iter().all(|slot| shown(slot).is_none());
        }
        let rightly = match leaders[..] {
            [_] => true,
            [one, other] => self.are_apart(one, other),
            _ => false,
        };
        let reaches_none = |slot: &usize| {
            let apart = leaders.iter().all(|leader| self.are_apart(*slot, *leader));
            apart && !voters.contains(slot) && shown(slot).is_none()
        };
        rightly
            && places
                .iter()
                .all(|slot| shown(slot) == Some(true) || reaches_none(slot))
    }

    /// A declaration of a leader that made way may come after the first of the remaining one. Its heartbeat takes it back, and
    /// the next declaration of the other comes half a threshold later at the latest.
    fn all_show_it(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        let leaders = self.world.leaders();
        let until = self.world.now + self.alive() / 2 + self.trip() * 3;
        self.run_until(until);
        // Of two leaders that never reach each other one may make way for a third that has made way for the other.
        let same = self.world.leaders() == leaders || self.plan.apart.is_some();
        if self.world.violation.is_none() && !same {
            let text = format!("{leaders:?} led{}", self.world.describe());
            self.world.violate("stays", text);
        }
    }

    /// No host receives another event, and only the leader sends: twice in a threshold, to every member, and on each new link.
    fn it_stays(&mut self) {
        if self.world.violation.is_some() {
            return;
        }
        let (leaders, running) = (self.world.leaders(), self.world.running());
        self.forget_reported();
        let before = self.world.gossip.clone();
        let windows = if running.len() > LARGE { 1 } else { 4 };
        let threshold = self.world.settings.windows.alive_threshold;
        let until = self.world.now + threshold * windows;
        self.run_until(until);
        if self.world.violation.is_some() {
            return;
        }
        // A member that reaches both of two leaders shows them in turn.
        let reported =
            |slot: &usize| !self.world.slots[*slot].reported.is_empty() && leaders.len() == 1;
        let reported = running.iter().copied().find(reported);
        if self.world.leaders() != leaders || reported.is_some() || !self.is_led(&running) {
            let reported = reported.map(|slot| &self.world.slots[slot]);
            let reported = reported.map(|slot| (slot.id.clone(), slot.reported.clone()));
            let text = format!(
                "{leaders:?} led, and {reported:?} was reported{}",
                self.world.describe()
            );
            self.world.violate("stays", text);
            return;
        }
        self.same_limit();
        let now = &self.world.gossip;
        let proposals = now.proposals - before.proposals;
        // Each new link takes one. In a room with walls a direct link may still take over from a carried one.
        let new_links = now.new_links_of_leaders - before.new_links_of_leaders;
        let declarations = now.declarations - before.declarations - new_links;
        let to_each = u64::from(windows) * 2;
        let members = leaders.iter().map(|slot| {
            let node = self.world.node(*slot);
            node.map_or(0, |node| node.membership().len() as u64)
        });
        let members: u64 = members.sum();
        // The ends of the time may lie on a beat or between two; clocks deviate by a twentieth at most.
        let rightly = members * (to_each - 1)..=members * (to_each + 1);
        if proposals > 0 || (leaders.len() == 1 && !rightly.contains(&declarations)) {
            let text = format!(
                "{proposals} proposals and {declarations} declarations of {leaders:?} in {windows} windows, besides those on {new_links} new links"
            );
            self.world.violate("quiet", text);
        }
    }
}

/// The trials.
impl Run<'_> {
    /// Every part of a cut room has a leader: one, if any of its members may lead. After the links are up again, the lowest of
    /// all that led since the mending remains, within half a threshold and two trips.
    fn parts(&mut self) {
        let mut places = self.world.running();
        if places.len() < 2 {
            return;
        }
        places.shuffle(&mut self.world.rng);
        let parts = cut_up(&places, &mut self.world.rng);
        let one_way = self.world.rng.random_bool(0.25);
        let mut cuts = Vec::new();
        for (index, one) in parts.iter().enumerate() {
            for other in &parts[index + 1..] {
                cuts.extend(pairs(one, other));
                if !one_way {
                    cuts.extend(pairs(other, one));
                }
            }
        }
        self.world.calm_since = None;
        for (from, to) in &cuts {
            self.world.cut(*from, *to);
        }
        let heartbeats = self.world.settings.heartbeat_timeout;
        let noticed = self.slow(heartbeats) + self.trip() * 2;
        let from = self.world.now;
        self.within("loss", from, noticed, "a part sees others", |run| {
            parts.iter().all(|part| run.see(part))
        });
        let from = self.world.now;
        for part in &parts {
            let bound = self.agreement(part);
            self.within("partition", from, bound, "a part is not led", |run| {
                run.is_led(part)
            });
        }
        if self.world.violation.is_some() {
            return;
        }
        let led = self.world.leaders();
        self.world.gossip.parts_led += led.len() as u64;
        self.world.gossip.parts_without_voters += (parts.len() - led.len()) as u64;
        let alive = self.alive();
        let more = self.world.between(Duration::ZERO, alive);
        let until = self.world.now + more;
        self.run_until(until);
        for part in &parts {
            if self.world.violation.is_none() && !self.is_led(part) {
                let text = format!("{part:?} was led{}", self.world.describe());
                self.world.violate("partition", text);
            }
        }
        self.meet(&cuts);
    }

    fn meet(&mut self, cuts: &[(usize, usize)]) {
        if self.world.violation.is_some() {
            return;
        }
        let before = self.world.leaders();
        self.world.led = before.iter().copied().collect();
        for (from, to) in cuts {
            self.world.mend(*from, *to);
        }
        self.world.calm_since = Some(self.world.now + ms(400));
        self.links_are_up();
        self.lowest_is_left("heal");
        let led = self.world.led.len();
        let counts = &mut self.world.gossip;
        counts.losers_of_a_cut += before.len().saturating_sub(1) as u64;
        counts.leaders_between_links += led.saturating_sub(before.len()) as u64;
    }

    /// Links are up: of all members that have led since [`World::led`](crate::world::World) was set the lowest remains, and all
    /// show it. While some links were still down, a member without a leader may have led, too.
    fn lowest_is_left(&mut self, property: &'static str) {
        let from = self.world.now;
        let bound = self.alive() / 2 + self.trip() * 2;
        self.within(property, from, bound, "not the lowest is left", |run| {
            let left = run.lowest(run.world.led.iter().copied());
            left.is_none_or(|left| run.world.leaders() == [left])
        });
        let bound = bound + self.trip();
        self.within(property, from, bound, "not all show it", |run| {
            run.is_led(&run.world.running())
        });
    }

    /// Only a declaration counts. Whether a leader crashes or leaves, its last one may fall into a window; an empty one follows,
    /// and an election. No proposal of a departed member is remembered, since none proposed itself beside a leader.
    fn leader_is_lost(&mut self, rules: &GossipRules, leader: usize, crashes: bool) {
        let mut others = self.voters();
        others.retain(|slot| *slot != leader);
        if others.is_empty() {
            return;
        }
        let lowest = self.sure_winner(rules, &others);
        let yields = others.iter().any(|slot| self.yields(*slot));
        let spoken = self.world.election_messages;
        self.world.calm_since = None;
        let from = self.world.now;
        if crashes {
            self.world.crash(leader);
        } else {
            self.world.leave(leader);
        }
        self.follows(from, leader, &others, lowest, yields);
        if crashes && self.world.violation.is_none() {
            self.world.gossip.failovers += 1;
            self.world.gossip.failover_messages += self.world.election_messages - spoken;
        }
        self.come_back(leader);
    }

    /// One of `others` leads in time, and all show it.
    fn follows(
        &mut self,
        from: Time,
        leader: usize,
        others: &[usize],
        lowest: Option<usize>,
        yields: bool,
    ) {
        let (alive, election) = (self.alive(), self.election());
        let mut windows = alive * 2 + election;
        if yields {
            // A yielding member may be the only one that could lead; and a member whose yield ends may outbid the others.
            windows = alive * 7 + election;
        }
        let bound = windows + self.trip() * 3;
        let done = |run: &Self| {
            let leaders = run.world.leaders();
            leaders.len() == 1 && leaders[0] != leader
        };
        self.within("failover", from, bound, "no member follows", done);
        let shown = bound + alive / 2 + self.trip();
        self.within("failover", from, shown, "not all show it", |run| {
            done(run) && run.is_led(&run.world.running())
        });
        if self.world.violation.is_some() {
            return;
        }
        let winner = self.world.leaders().first().copied();
        if winner != self.lowest(others.iter().copied()) {
            self.world.gossip.higher_winners += 1;
        }
        if lowest.is_none() {
            return;
        }
        self.world.gossip.strict_winners += 1;
        if winner != lowest {
            let text = format!("{winner:?} leads, not {lowest:?}{}", self.world.describe());
            self.world.violate("lowest", text);
        }
    }

    /// The certain next leader, if the lowest is required. All others follow it, and none of them yields. Besides:
    ///
    /// - Each receiver of the first proposal must consider the leader lost: the last declaration must seem older than three
    ///   quarters of the threshold. The first proposer has waited a whole threshold, by its own clock, since that declaration; the
    ///   others may have received it later by the variation of trips.
    /// - The proposal of the lowest must come back before the first election is over: two trips.
    fn sure_winner(&self, rules: &GossipRules, others: &[usize]) -> Option<usize> {
        let windows = &self.world.settings.windows;
        let (least, most) = self.world.settings.delay;
        let slower = self.world.slow.values().max().copied().unwrap_or_default();
        let varies = most + slower - least + self.world.settings.lateness + ms(1);
        let shares = if self.plan.clocks.is_empty() {
            4 // a quarter
        } else {
            7 // 1 / 1.05 - 0.75 / 0.95, and a little less
        };
        let overlap = self.trip() * 2 < windows.election_duration * 9 / 10;
        let lost = varies < windows.alive_threshold / shares;
        let ready = |slot: &usize| {
            let machine = self.gossip_of(*slot)?.peer().machine();
            Some(!machine.is_yielding() && !machine.is_electing())
        };
        let ready = others.iter().all(|slot| ready(slot) == Some(true));
        let sure = rules.strict_lowest && overlap && lost && ready;
        sure.then(|| self.lowest(others.iter().copied()))?
    }

    /// A yielding leader is succeeded like a lost one; if no other may lead, it leads again.
    fn leader_yields(&mut self, rules: &GossipRules, leader: usize) {
        let mut others = self.voters();
        others.retain(|slot| *slot != leader);
        let lowest = self.sure_winner(rules, &others);
        let yields = others.iter().any(|slot| self.yields(*slot));
        let from = self.world.now;
        if let Err(error) = self.world.command(leader, Command::YieldLeadership) {
            let text = format!("a leader may not yield: {error}");
            self.world.violate("yield", text);
            return;
        }
        if !others.is_empty() {
            return self.follows(from, leader, &others, lowest, yields);
        }
        let (alive, election) = (self.alive(), self.election());
        let bound = alive * 7 + election + self.trip();
        self.within("yield", from, bound, "no member leads again", |run| {
            run.world.leaders() == [leader]
        });
        self.world.gossip.lone_yielders += 1;
    }

    /// The leader stays when a member joins, unless the newcomer led alone and is lower.
    fn somebody_joins(&mut self, leader: usize) {
        if self.world.slots.len() > LARGE {
            return;
        }
        let joiner = self.world.slots.len();
        self.world.add_slots(1);
        let name = ["aaaa", "zzzz", "mmmm"].choose(&mut self.world.rng);
        self.world.slots[joiner].rename(name.expect("not empty"));
        self.world.slots[joiner].eligible = self.world.rng.random_bool(0.9);
        let running = self.world.running();
        let contact = *running.choose(&mut self.world.rng).expect("one leads");
        self.world.calm_since = None;
        self.world.led = BTreeSet::from([leader]);
        self.world.start(joiner);
        let windows = self.world.settings.windows;
        let alone = self.world.between(
            ms(0),
            windows.sample_interval * 2 + windows.election_duration,
        );
        let until = self.world.now + alone;
        self.run_until(until);
        self.world.connect(joiner, contact);
        self.world.calm_since = Some(self.world.now + ms(400));
        self.links_are_up();
        self.lowest_is_left("join");
        if self.world.violation.is_some() {
            return;
        }
        let lower = self.lowest([leader, joiner]) == Some(joiner);
        let won = self.world.leaders() == [joiner];
        let counts = &mut self.world.gossip;
        counts.joiners_that_won += u64::from(won);
        counts.joiners_that_followed += u64::from(lower && !won);
        let stays = self.world.leaders() == [leader];
        if !stays && !won && self.world.led.len() == 1 {
            let text = format!("{leader} led{}", self.world.describe());
            self.world.violate("join", text);
        }
    }

    /// Requests that need votes are refused (the world checks each answer), and no host receives an event.
    fn asks_for_votes(&mut self) {
        self.forget_reported();
        let running = self.world.running();
        for _ in 0..3 {
            let asks = *running.choose(&mut self.world.rng).expect("one leads");
            let named = *running.choose(&mut self.world.rng).expect("one leads");
            let named = self.world.slots[named].id.clone();
            for command in [
                Command::SetLeader(named.clone()),
                Command::TransferLeadership(named),
                Command::SetPriority(7),
            ] {
                // An error: the world checks it.
                let _ = self.world.command(asks, command);
            }
        }
    }
}

/// Splits a room into two or three parts, none of them empty.
fn cut_up(places: &[usize], rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let count = if places.len() > 2 && rng.random_bool(0.3) {
        3
    } else {
        2
    };
    let mut parts: Vec<Vec<usize>> = (0..count).map(|part| vec![places[part]]).collect();
    for slot in &places[count..] {
        let part = rng.random_range(0..count);
        parts[part].push(*slot);
    }
    parts
}

#[cfg(test)]
mod tests;
