//! Deadlines in a settled room: the bounds P9 to P13, P15, P16 and P18.
//!
//! One trial for each run, after its faults and its healing. `D` is the longest one-way trip of the room at that time, RTT = 2 D;
//! a process's timers may run by the slowest clock.

use std::collections::BTreeSet;

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

use room_core::node::{Command, Event, Node};
use room_core::time::{Duration, Time};
use room_core::wire::Authority;

use crate::chaos::{Run, ms, pairs};
use crate::clock::slowest_clock;
use crate::decoded;
use crate::plan::Phase;

/// C6 G1: time for which the others leave a leaving leader's successor alone.
const SUCCESSION: Duration = Duration::from_millis(300);
/// Part of the test bound of P9.
const CONVERGENCE_SLACK: Duration = Duration::from_secs(2);
/// Election messages for each node after one crash, at most: far more than rounds that fail by chance need.
const MESSAGE_STORM: u64 = 60;
/// Longest time until links are back, by redialling.
const LINKS_BACK: Duration = Duration::from_secs(20);

impl Run<'_> {
    /// The trial of the plan.
    pub(crate) fn phase(&mut self) {
        let Some(leader) = self
            .world
            .agreed()
            .filter(|_| self.world.violation.is_none())
        else {
            return;
        };
        let name = self.plan.phase;
        self.world
            .trace
            .add(self.world.now, format_args!("---- {name:?} ----"));
        self.end_graces();
        // Two members that never reach each other depend on reports of others: none of these bounds covers that.
        let whole = self.plan.apart.is_none();
        match name {
            Phase::Heal if whole => self.parts_and_meets(leader),
            Phase::PoliteLeave if whole => self.leaves_politely(leader),
            Phase::HandOver if whole => self.without_transfers(leader, Self::hands_over),
            Phase::OneCall if whole => self.calls(leader, Self::one_call),
            Phase::TwoCalls if whole => self.calls(leader, Self::two_calls),
            Phase::DeafLeader if whole => self.goes_deaf(leader),
            Phase::CrashedLeader if whole => self.crashes(leader),
            Phase::Join if whole => self.without_transfers(leader, Self::joins),
            Phase::Minority if whole => self.without_transfers(leader, Self::minority),
            _ => {}
        }
    }

    /// A trial of `SetLeader`. With a static quorum that is a transfer, which has its bound while no other one is pending: a
    /// target that does not vote yet after its restart is asked again, and may campaign at any moment.
    fn calls(&mut self, leader: usize, trial: impl FnOnce(&mut Self, usize)) {
        match self.world.settings.roster {
            Some(_) => self.without_transfers(leader, trial),
            None => trial(self, leader),
        }
    }

    /// A trial that begins when no host's request to change the leader is pending.
    fn without_transfers(&mut self, leader: usize, trial: impl FnOnce(&mut Self, usize)) {
        let until = self.world.transfers_until;
        if self.world.now >= until {
            return trial(self, leader);
        }
        self.run_until(until);
        self.settle();
        if self.world.violation.is_none()
            && let Some(leader) = self.world.agreed()
        {
            trial(self, leader);
        }
    }

    /// Time that a campaign waits for disks: the candidate's, its voters', and the winner's.
    fn disks(&self) -> Duration {
        match self.world.settings.roster {
            None => Duration::ZERO,
            Some(_) => self.world.settings.disk.1 * 3,
        }
    }

    /// C2: a voter of a static quorum does not vote right after a restart, and gets no votes right after it has learned its own
    /// again. No bound covers these times.
    fn end_graces(&mut self) {
        let grace = slowest_clock(self.world.settings.election_timeout_min);
        let youngest = self.world.running().into_iter();
        let youngest = youngest.filter_map(|slot| self.world.age(slot)).min();
        if self.world.settings.roster.is_some()
            && let Some(rest) = youngest.map(|age| grace.saturating_sub(age))
        {
            self.run_until(self.world.now + rest);
        }
        if self.world.sometimes.stale_recovered > 0 {
            // A voter that knows its votes again gets no votes and gives none until it has written that and reported it.
            let written = self.world.settings.disk.1;
            let beat = slowest_clock(self.world.settings.heartbeat_interval);
            self.run_until(self.world.now + written + beat + self.rtt());
        }
    }

    /// Time of a transfer by `SetLeader` with a static quorum, while no other is under way: the request, the leader's
    /// `TimeoutNow`, a request for votes, votes and the first heartbeat each take a trip, and three of them wait for disks.
    fn transfer_by_votes(&self) -> Duration {
        self.rtt() * 5 / 2 + self.disks()
    }

    fn rtt(&self) -> Duration {
        // Timers fire late; the clock's rate hardly changes short times.
        self.world.max_rtt() + self.world.settings.lateness * 2 + ms(1)
    }

    /// Places whose peers run and may lead.
    pub(crate) fn voters(&self) -> Vec<usize> {
        let may = |slot: &usize| self.world.may_lead(*slot) && !self.world.is_stale(*slot);
        (0..self.world.slots.len()).filter(may).collect()
    }

    /// Whether this many voters can elect.
    fn suffice(&self, voters: usize) -> bool {
        let roster = self.world.settings.roster.as_ref();
        voters > 0 && roster.is_none_or(|roster| voters > roster.len() / 2)
    }

    /// Whether the larger side's leader stays: with LargestSide, and if no member gets a false report that the leader's process
    /// ended (G3).
    fn stays_with_the_larger(&self) -> bool {
        !self.plan.rules.highest_term && self.plan.rules.silence_is_reported
    }

    /// Runs until `done`, and reports a violation if that takes longer than `bound` from `from` on.
    pub(crate) fn within(
        &mut self,
        property: &'static str,
        from: Time,
        bound: Duration,
        what: &str,
        done: impl Fn(&Self) -> bool,
    ) {
        let large = self.world.slots.len() > 16;
        let step = if large { ms(20) } else { ms(2) };
        while self.world.violation.is_none() && !done(self) {
            if self.world.now > from + bound + step {
                let text = format!("{what} after {bound:?}: {}", self.world.describe());
                self.world.violate(property, text);
                return;
            }
            let next = self.world.now + step;
            self.run_until(next);
        }
    }

    /// P10: after two sides of different weight have merged, all know one leader within 4 round trips of the time at which all
    /// links are up; with equal weights, within one election timeout more. With LargestSide; with HighestTerm the higher term
    /// wins.
    ///
    /// Beyond P10, the larger side's leader stays, unless a new leader is elected while the links come up one by one. A dynamic
    /// quorum allows that: the smaller side's leader yields as soon as it learns of the larger side. Its follower then lacks a
    /// leader, and may be linked to no more of the larger side than its own side has. Its majority is a majority of its view,
    /// which is right at that moment. Then two led sides merge again. The new one can be the heavier for a moment, and both may
    /// yield. Both may also yield where the larger side's leader was elected just before the sides merge: its votes arrive one by
    /// one, and a follower reports the weight of a moment before.
    fn parts_and_meets(&mut self, leader: usize) {
        let mut places = self.world.running();
        // Voters with an old file kept the leader, but cannot elect one (C2).
        if places.len() < 2 || !self.suffice(self.voters().len()) {
            return;
        }
        places.shuffle(&mut self.world.rng);
        let size = self.world.rng.random_range(1..places.len());
        let (one, other) = places.split_at(size);
        let (one, other) = (one.to_vec(), other.to_vec());
        let mut cuts = pairs(&one, &other);
        cuts.extend(pairs(&other, &one));
        self.world.calm_since = None;
        for (from, to) in &cuts {
            self.world.cut(*from, *to);
        }
        let timeout = self.world.settings.election_timeout_max;
        let lasts = self.world.between(timeout, timeout * 3);
        let until = self.world.now + lasts;
        self.run_until(until);
        let before = self.world.leaders();
        let voters = self.voters();
        let weight = |side: &[usize]| side.iter().filter(|slot| voters.contains(slot)).count();
        let (ours, theirs) = (weight(&one), weight(&other));
        let heavier = if ours > theirs { &one } else { &other };
        // The larger side keeps its leader, or has elected one that all of it follow.
        let stays = before.iter().copied().find(|slot| heavier.contains(slot));
        let led_whole = stays.is_some_and(|leader| {
            let id = Some(&self.world.slots[leader].id);
            let shows = |slot: &usize| self.world.node(*slot).and_then(Node::leader) == id;
            heavier.iter().all(shows)
        });
        let weight_is_known = stays.is_some_and(|leader| {
            self.world.settings.roster.is_some()
                || self.all_know_weight(leader, heavier, ours.max(theirs))
        });
        for (from, to) in &cuts {
            self.world.mend(*from, *to);
        }
        self.world.calm_since = Some(self.world.now + ms(400));
        let mended_at = self.world.now;
        let begun = self.world.checker.leaderships_begun();
        let bound = LINKS_BACK + self.until_direct();
        self.within("P9", mended_at, bound, "links are down", Self::is_mesh);
        if !self.stays_with_the_larger() {
            return;
        }
        let newly_elected = self.world.checker.leaderships_begun() > begun;
        let mut bound = self.rtt() * 4 + self.disks();
        // A side with too few of a roster is about to lose its leader.
        let clear = ours != theirs && led_whole && self.suffice(ours.max(theirs));
        if !clear {
            bound += slowest_clock(timeout);
        }
        self.world.sometimes.larger_sides += u64::from(clear);
        let is_excused = newly_elected || !weight_is_known;
        self.world.sometimes.larger_sides_excused += u64::from(clear && is_excused);
        let from = self.world.now;
        self.within("P10", from, bound, "two sides have no one leader", |run| {
            run.world.agreed().is_some()
        });
        let now = self.world.agreed();
        // A newer `SetLeader` than the larger side's would win; no host called any since all agreed.
        let deposed = clear && now.is_some() && now != stays;
        self.world.sometimes.larger_sides_deposed += u64::from(deposed);
        if clear && !is_excused && self.world.violation.is_none() && now != stays {
            let name = |slot: Option<usize>| slot.map(|slot| self.world.slots[slot].id.clone());
            let text = format!(
                "{:?} led the larger side, {:?} leads now; {:?} led before",
                name(stays),
                name(now),
                name(Some(leader))
            );
            self.world.violate("P10", text);
        }
    }

    /// Whether all members of a side would report in a Hello now that at least `weight` members follow their leader.
    fn all_know_weight(&self, leader: usize, side: &[usize], weight: usize) -> bool {
        let leader = &self.world.slots[leader].id;
        let knows = |slot: &usize| {
            let local = self.world.local(*slot);
            let node = self.world.node(*slot)?;
            let live = decoded::side(&node.side_in_answer(local, local))?.live?;
            Some(live.id == *leader && live.weight as usize >= weight)
        };
        side.iter().all(|slot| knows(slot) == Some(true))
    }

    /// P11: a leader that leaves has a successor within 300 ms and 3 round trips. Not while an assigned leader's place is held.
    fn leaves_politely(&mut self, leader: usize) {
        let left = self.voters().len() - 1;
        if !self.suffice(left) || self.is_held(leader) {
            return;
        }
        self.world.calm_since = None;
        let from = self.world.now;
        self.world.leave(leader);
        let bound = slowest_clock(SUCCESSION) + self.rtt() * 3 + self.disks();
        let others = move |run: &Self| run.agreed_without(leader);
        self.within("P11", from, bound, "no member follows", others);
        self.come_back(leader);
    }

    /// Whether all but one place show one leader, other than that place. A leaving member is out of the room and receives no more
    /// events, as for [`World::agreed`](crate::world::World::agreed).
    fn agreed_without(&self, gone: usize) -> bool {
        let mut shown = BTreeSet::new();
        for slot in self.world.running() {
            let process = self.world.slots[slot].process.as_ref();
            let leaving = process.is_some_and(|process| process.leaving);
            if slot != gone && !leaving {
                shown.insert(self.world.node(slot).and_then(Node::leader));
            }
        }
        let leads = |slot: &usize| *slot != gone;
        let leaders: Vec<usize> = self.world.leaders().into_iter().filter(leads).collect();
        let [leader] = leaders[..] else {
            return false;
        };
        shown.len() == 1 && shown.contains(&Some(&self.world.slots[leader].id))
    }

    pub(crate) fn come_back(&mut self, slot: usize) {
        if self.world.violation.is_some() {
            return;
        }
        let until = self.world.now + ms(2_100);
        self.run_until(until);
        let contact = self.world.running().first().copied();
        self.start(slot, contact);
        self.world.calm_since = Some(self.world.now + ms(400));
    }

    /// P11: the target of a transfer leads within 2 round trips.
    fn hands_over(&mut self, leader: usize) {
        let mut others = self.voters();
        if !self.suffice(others.len()) {
            return; // C2: too few of the remaining voters know their votes
        }
        others.retain(|slot| *slot != leader);
        let Some(&target) = others.choose(&mut self.world.rng) else {
            return;
        };
        let id = self.world.slots[target].id.clone();
        let from = self.world.now;
        if self
            .world
            .command(leader, Command::TransferLeadership(id))
            .is_err()
        {
            return;
        }
        self.forget_leaderships();
        let bound = self.rtt() * 2 + self.disks();
        self.within("P11", from, bound, "the hand-over is not done", |run| {
            run.world.agreed() == Some(target)
        });
    }

    /// P12: all follow the target of one call within a heartbeat interval and a round trip.
    fn one_call(&mut self, leader: usize) {
        let voters = self.voters();
        if !self.suffice(voters.len()) {
            return;
        }
        let running = self.world.running();
        let caller = if self.world.settings.authority == Authority::LeaderOnly {
            leader
        } else {
            *running.choose(&mut self.world.rng).expect("one leads")
        };
        let target = *voters.choose(&mut self.world.rng).expect("one leads");
        let from = self.world.now;
        if !self.call(caller, target) {
            return;
        }
        let bound = match self.world.settings.roster {
            None => slowest_clock(self.world.settings.heartbeat_interval) + self.rtt(),
            Some(_) => self.transfer_by_votes(),
        };
        self.within("P12", from, bound, "the target does not lead", |run| {
            run.world.agreed() == Some(target)
        });
    }

    /// P12: of two concurrent calls one wins everywhere within two heartbeat intervals and a round trip.
    fn two_calls(&mut self, leader: usize) {
        let (voters, running) = (self.voters(), self.world.running());
        if !self.suffice(voters.len()) {
            return;
        }
        if self.world.settings.authority == Authority::LeaderOnly {
            return self.one_call(leader);
        }
        let (mut targets, mut callers) = (Vec::new(), Vec::new());
        let from = self.world.now;
        let slots = self.world.slots.iter();
        let events_before: Vec<_> = slots.map(|slot| slot.events.len()).collect();
        for _ in 0..2 {
            let caller = *running.choose(&mut self.world.rng).expect("one leads");
            let target = *voters.choose(&mut self.world.rng).expect("one leads");
            self.call(caller, target);
            targets.push(target);
            callers.push(caller);
        }
        if self.world.settings.roster.is_some() {
            return self.transfers_to_one(from, &callers, events_before);
        }
        let bound = slowest_clock(self.world.settings.heartbeat_interval * 2) + self.rtt();
        self.within("P12", from, bound, "none of both targets leads", |run| {
            run.world
                .agreed()
                .is_some_and(|leader| targets.contains(&leader))
        });
    }

    /// P12 with a static quorum: two targets may ask for the votes of one term, so that neither leads, and the old leader has
    /// yielded. Then an election follows, as after any lost round. Each call has its outcome when the time of a transfer is over.
    fn transfers_to_one(&mut self, from: Time, callers: &[usize], events_before: Vec<usize>) {
        let longest = slowest_clock(self.world.settings.election_timeout_max);
        let bound = longest * 2 + self.rtt() * 4 + self.disks();
        self.within("P12", from, bound, "no member leads", |run| {
            run.world.agreed().is_some()
        });
        let calls = callers.to_vec();
        self.within("P12", from, bound, "a call has no outcome", move |run| {
            let reported = |slot: &usize| {
                let events = &run.world.slots[*slot].events[events_before[*slot]..];
                let results = |event: &Event| matches!(event, Event::SetLeaderResult { .. });
                let results = events.iter().filter(|(_, event)| results(event)).count();
                results >= calls.iter().filter(|caller| *caller == slot).count()
            };
            calls.iter().all(reported)
        });
    }

    fn call(&mut self, caller: usize, target: usize) -> bool {
        self.forget_leaderships();
        let id = self.world.slots[target].id.clone();
        let result = self.world.command(caller, Command::SetLeader(id));
        if let Err(error) = &result {
            // Every running pair is linked, and the target may lead.
            let text = format!("a call of SetLeader was refused: {error}");
            self.world.violate("P12", text);
        }
        result.is_ok()
    }

    /// P13: a leader that no longer receives from a majority resigns within twice the shortest election timeout by which it
    /// leads. That timeout grows with measured round trips (G15). For three nodes and more.
    fn goes_deaf(&mut self, leader: usize) {
        if self.voters().len() < 3 {
            return;
        }
        self.world.calm_since = None;
        let cuts = self.around(leader, true, false);
        for (from, to) in &cuts {
            self.world.cut(*from, *to);
        }
        self.world.slots[leader].reported.clear();
        let from = self.world.now;
        // The last arrival may be the slowest answer ever measured: losses held its stream up until now. The leader adapts its
        // timeout at its next tick, and announces it in the next heartbeat.
        let interval = self.world.settings.heartbeat_interval;
        let measured = from + slowest_clock(interval * 2) + self.rtt();
        self.run_until(measured);
        let process = self.world.slots[leader].process.as_ref();
        let notified = process.and_then(|process| process.election_timeout_min);
        let shortest = notified.unwrap_or(self.world.settings.election_timeout_min);
        let bound = slowest_clock(shortest * 2) + self.rtt();
        self.within("P13", from, bound, "a deaf leader leads on", |run| {
            !run.world.slots[leader].reported.is_empty()
        });
        for (from, to) in &cuts {
            self.world.mend(*from, *to);
        }
        self.world.calm_since = Some(self.world.now + ms(400));
    }

    /// P9, P15 and P18: after a crash the others agree in time, without terms that one node asked for and no candidate won (see
    /// below where trips or clocks vary), and without a storm of messages. Retries are random, so the 10 messages for each node
    /// of P18 are a mean over all runs. Not while an assigned leader's place is held.
    fn crashes(&mut self, leader: usize) {
        let left = self.voters().len() - 1;
        if !self.suffice(left) || self.is_held(leader) {
            return;
        }
        let size = self.world.running().len() as u64;
        let stamp = self
            .world
            .node(leader)
            .map(|node| node.record().stamp.clone());
        let spoken = self.world.election_messages;
        self.world.checker.forget_terms();
        self.world.calm_since = None;
        let from = self.world.now;
        self.world.crash(leader);
        let bound = slowest_clock(self.world.settings.election_timeout_max * 2) + CONVERGENCE_SLACK;
        self.within("P9", from, bound, "no leader after a crash", |run| {
            run.world.agreed().is_some()
        });
        if self.world.violation.is_some() {
            return;
        }
        let messages = self.world.election_messages - spoken;
        let wasted = stamp
            .map(|stamp| self.world.checker.wasted_terms(&stamp))
            .unwrap_or_default();
        self.world.sometimes.failovers += 1;
        self.world.sometimes.failover_messages += messages;
        self.world.sometimes.failover_nodes += size;
        if let Some((property, text)) =
            costs_too_much(messages, size, &wasted, self.early_retries())
        {
            self.world.violate(property, text);
        }
        self.come_back(leader);
    }

    /// Terms that may be given up for the next one. G14: a round is repeated a smoothed round trip and a random time later; if
    /// trips vary, answers can still be under way then. G7: a candidate follows the first voter that names a living leader; if
    /// clocks differ, a lease may end later than the majority's.
    fn early_retries(&self) -> usize {
        let (least, most) = self.world.settings.delay;
        let trips_vary = (most - least) * 2 > ms(20) || !self.world.slow.is_empty();
        if trips_vary || !self.plan.clocks.is_empty() {
            2
        } else {
            0
        }
    }

    /// P16: the leader stays when a member joins, with any id and any term. With LargestSide; with HighestTerm a newcomer that
    /// has led alone may win.
    fn joins(&mut self, leader: usize) {
        if !self.stays_with_the_larger() || self.world.slots.len() > 16 {
            return;
        }
        let joiner = self.world.slots.len();
        self.world.add_slots(1);
        if self.world.rng.random_bool(0.5) {
            self.world.slots[joiner].rename("zzzz");
        }
        self.world.slots[joiner].eligible = self.world.rng.random_bool(0.9);
        let contact = *self
            .world
            .running()
            .choose(&mut self.world.rng)
            .expect("one leads");
        self.world.start(joiner);
        let alone = self.world.between(ms(0), ms(8_000));
        self.world.calm_since = None;
        let until = self.world.now + alone;
        self.world.run_until(until);
        if self.world.rng.random_bool(0.3) && self.world.slots[joiner].eligible {
            let oneself = self.world.slots[joiner].id.clone();
            let _ = self.world.command(joiner, Command::SetLeader(oneself));
        }
        self.forget_reported();
        self.world.connect(joiner, contact);
        let until = self.world.now + ms(8_000);
        self.run_until(until);
        self.no_other_was_notified(&[joiner], "P16");
        self.leads_still("P16", leader);
        self.world.calm_since = Some(self.world.now);
    }

    /// P14: less than half of a room is cut off, deaf, mute, stopped, killed or flapping: the others keep their leader, and in
    /// the end all follow it. With LargestSide.
    fn minority(&mut self, leader: usize) {
        let voters = self.voters();
        let mut others = self.world.running();
        others.retain(|slot| *slot != leader);
        let most = (voters.len() - 1) / 2;
        if most == 0 || !self.stays_with_the_larger() {
            return;
        }
        others.shuffle(&mut self.world.rng);
        let count = self.world.rng.random_range(1..=most);
        if !self.suffice(voters.len() - count) {
            return; // Some of the fixed voters are out of the room for good.
        }
        let troubled: Vec<usize> = others.into_iter().take(count).collect();
        self.forget_reported();
        self.world.calm_since = None;
        for slot in &troubled {
            let slot = *slot;
            let lasts = self.world.rng.random_range(500..6_000);
            match self.world.rng.random_range(0..6) {
                0 => self.cut(self.around(slot, true, true), lasts),
                1 => self.cut(self.around(slot, true, false), lasts),
                2 => self.cut(self.around(slot, false, true), lasts),
                3 => self.cut(vec![(leader, slot)], lasts),
                4 => {
                    self.world.pause(slot);
                    let resume = self.world.now + ms(lasts);
                    self.resume_at(slot, resume);
                }
                _ => {
                    self.world.crash(slot);
                    let start = self.world.now + ms(lasts);
                    self.start_at(slot, start);
                }
            }
        }
        let until = self.world.now + ms(8_000);
        self.run_until(until);
        self.no_other_was_notified(&troubled, "P14");
        self.world.calm_since = Some(self.world.now + ms(400));
        let from = self.world.now;
        let bound = LINKS_BACK + self.until_direct();
        self.within("P9", from, bound, "links are down", Self::is_mesh);
        let bound = slowest_clock(self.world.settings.election_timeout_max) + self.rtt() * 4;
        let from = self.world.now;
        self.within(
            "P14",
            from,
            bound,
            "no leader after a minority's trouble",
            |run| run.world.agreed().is_some(),
        );
        self.leads_still("P14", leader);
    }

    pub(crate) fn forget_reported(&mut self) {
        for slot in &mut self.world.slots {
            slot.reported.clear();
        }
    }

    fn no_other_was_notified(&mut self, but: &[usize], property: &'static str) {
        if self.world.violation.is_some() {
            return;
        }
        let notified =
            |slot: &usize| !but.contains(slot) && !self.world.slots[*slot].reported.is_empty();
        let Some(slot) = (0..self.world.slots.len()).find(notified) else {
            return;
        };
        let place = &self.world.slots[slot];
        let text = format!(
            "{} received {:?}{}",
            place.id,
            place.reported,
            self.world.describe()
        );
        self.world.violate(property, text);
    }

    fn leads_still(&mut self, property: &'static str, leader: usize) {
        if self.world.violation.is_none() && self.world.agreed() != Some(leader) {
            let id = self.world.slots[leader].id.clone();
            let text = format!("{id} does not lead any more{}", self.world.describe());
            self.world.violate(property, text);
        }
    }
}

/// Costs of one crash beyond its bounds: messages (P18), or terms without a winner (P15).
pub(crate) fn costs_too_much(
    messages: u64,
    size: u64,
    wasted: &[u64],
    most_wasted: usize,
) -> Option<(&'static str, String)> {
    // If round trips are long and the range of timeouts is short, most ranks share its last slot (G13). All of them may ask every
    // voter within the trip of the first one's request: once.
    let everybody_asks = 2 * size * (size - 1);
    if messages > everybody_asks.max(MESSAGE_STORM * size) {
        let text = format!("{messages} election messages of {size} nodes after one crash");
        return Some(("P18", text));
    }
    let text = format!("no candidate won the terms {wasted:?}, for which one node asked");
    (wasted.len() > most_wasted).then_some(("P15", text))
}
