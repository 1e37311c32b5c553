//! Parts of rooms with a static quorum only: a roster, disks that fail or go back in time, processes that end in the middle of an
//! election, and a leader that must have a majority of the roster.

use room_core::election::raft::wire::Pulse;
use std::collections::BTreeMap;
use std::rc::Rc;

use rand::Rng;

use room_core::election::raft::Raft;
use room_core::election::record::Stamp;
use room_core::election::seeded::Seeded;
use room_core::id::PeerId;
use room_core::node::{Input, Output};
use room_core::time::{Duration, Time};

use super::disk::File;
use super::{Happening, Process, World};
use crate::clock::slowest_clock;
use crate::decoded;

/// Maximum number of copies of a place's state file.
const MAX_COPIES: usize = 64;
/// Longest time until a struck process is back.
const BACK_AGAIN: Duration = Duration::from_millis(400);
/// Lateness of messages without a loss: the core checks its window at its next tick.
const SLACK: Duration = Duration::from_millis(5);

/// The moment of a process's end beside a write of its vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// The vote is on disk, and no member has received it: an unsent answer, or a candidate that did not ask.
    BeforeSending,
    /// The messages that waited for the write are on their way.
    AfterSending,
}

/// Duration of a leadership, and the last time that a voter's message arrived there.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenure {
    since: Option<Time>,
    contacts: BTreeMap<usize, Time>,
    /// The shortest election timeout in force there.
    window: Duration,
}

/// A heartbeat about its sender and the receiver's state file.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) from: PeerId,
    pub(super) stamp: Stamp,
    pub(super) remembered: u64,
    pub(super) stale: bool,
}

impl World {
    /// Whether the process of a place may vote and lead: its host lets it, and the roster names it.
    pub fn may_lead(&self, slot: usize) -> bool {
        let process = self.slots[slot].process.as_ref();
        self.is_on_roster(slot)
            && process.is_some_and(|process| process.eligible && !process.node.is_looking())
    }

    /// Time for which the process of a place has run.
    pub fn age(&self, slot: usize) -> Option<Duration> {
        let process = self.slots[slot].process.as_ref()?;
        Some(self.now.since(process.born_at))
    }

    /// Whether the place is on the roster; without one all are.
    pub fn is_on_roster(&self, slot: usize) -> bool {
        let roster = self.settings.roster.as_ref();
        roster.is_none_or(|roster| roster.contains(&slot))
    }

    /// Whether the process of a place knows that its state file is not the newest.
    pub fn is_stale(&self, slot: usize) -> bool {
        let raft = self
            .node(slot)
            .and_then(|node| node.election().of::<Raft>());
        let seeded = self
            .node(slot)
            .and_then(|node| node.election().of::<Seeded>());
        raft.is_some_and(Raft::is_stale) || seeded.is_some_and(Seeded::is_stale)
    }

    /// A disk whose writes fail delays all of them.
    pub fn fail_disk(&mut self, slot: usize, until: Time) {
        let place = &mut self.slots[slot];
        place.disk_fails_until = place.disk_fails_until.max(until);
        self.trace
            .add(self.now, format_args!("the disk of {} fails", place.id));
    }

    /// Puts the state file of this many writes ago, or none, into a place without a process.
    pub fn restore_disk(&mut self, slot: usize, writes_ago: Option<usize>) {
        let place = &mut self.slots[slot];
        let copy = writes_ago.and_then(|back| {
            let at = place.copies.len().checked_sub(back + 1)?;
            place.copies.get(at).cloned()
        });
        if copy == place.saved {
            return;
        }
        self.trace.add(
            self.now,
            format_args!("the state file of {} becomes {copy:?}", place.id),
        );
        self.sometimes.old_disks += 1;
        place.copies.clear();
        place.saved.clone_from(&copy);
        if self.settings.roster.is_some() {
            let votes = copy.as_ref().map(File::votes);
            self.checker.disk_replaced(slot, votes.as_ref());
        }
        let profile = Rc::clone(&self.profile);
        profile.disk_replaced(self, slot, copy.as_ref());
    }

    pub(super) fn keep_copy(&mut self, slot: usize, file: &File) {
        let mut copies = std::mem::take(&mut self.slots[slot].copies);
        // Knowledge about others alone forgets no votes.
        let writes = |file: &File| self.writes_and_vote(file).0;
        copies.pop_if(|last| writes(last) == writes(file));
        if copies.len() >= MAX_COPIES {
            copies.remove(0);
        }
        copies.push(file.clone());
        self.slots[slot].copies = copies;
    }

    /// Draws whether a write of a vote ends with its process, and how. Some processes end before the write is done.
    pub(super) fn draw_strike(&mut self, slot: usize, number: u64, file: &File, done_at: Time) {
        if self.strikes <= 0.0
            || !self.writes_and_vote(file).1
            || !self.rng.random_bool(self.strikes)
        {
            return;
        }
        let life = self.slots[slot].life;
        let strike = match self.rng.random_range(0..3) {
            0 => {
                let wait = self.between(Duration::ZERO, done_at.since(self.now));
                self.at(self.now + wait, Happening::Strike { slot, life });
                return;
            }
            1 => Strike::BeforeSending,
            _ => Strike::AfterSending,
        };
        if let Some(process) = &mut self.slots[slot].process {
            process.strike = Some((number, strike));
        }
    }

    /// Ends a process, which soon restarts from disk.
    pub(super) fn strike(&mut self, slot: usize) {
        if self.slots[slot].process.is_none() {
            return;
        }
        self.sometimes.struck_in_an_election += 1;
        self.crash(slot);
        let life = self.slots[slot].life;
        let wait = self.between(Duration::ZERO, BACK_AGAIN);
        self.at(self.now + wait, Happening::Revive { slot, life });
    }

    /// Starts a struck process, unless it was started already.
    pub(super) fn revive(&mut self, slot: usize, life: u64) {
        let place = &self.slots[slot];
        if place.life != life || place.process.is_some() || place.kicked {
            return;
        }
        self.start(slot);
        for other in self.running() {
            self.connect(slot, other);
        }
    }

    /// A heartbeat's report about state files, if the node takes it.
    pub(super) fn reported_by(&self, process: &Process, input: &Input) -> Option<Report> {
        self.settings.roster.as_ref()?;
        let Input::Message { from, envelope } = input else {
            return None;
        };
        let beat = decoded::beat(&envelope.message)?;
        let memory = beat.memory?;
        if process.leaving {
            return None; // a leaving node follows no rule any more
        }
        let member = process.node.membership().get(from)?;
        let (Pulse::Leads { record, .. } | Pulse::Follows { record, .. }) = beat.pulse;
        let counts = decoded::takes_heartbeat(member, envelope)
            && self.is_on_roster(self.slot_of(from)?)
            && !self.liars.contains(&self.slot_of(from)?);
        counts.then(|| Report {
            from: from.clone(),
            stamp: record.stamp,
            remembered: memory.remembered,
            stale: !memory.sure,
        })
    }

    /// C2: a voter that receives a write counter above its file's notices that, and reports it.
    pub(super) fn check_memory(
        &mut self,
        slot: usize,
        reported: Option<&Report>,
        outputs: &[Output],
    ) {
        if self.settings.roster.is_none() {
            return;
        }
        let notices = outputs
            .iter()
            .any(|output| matches!(output, Output::StaleState { .. }));
        self.sometimes.stale_states += u64::from(notices);
        if notices {
            self.checker.noticed(slot);
            if let Some(process) = &mut self.slots[slot].process {
                process.noticed_after = Some(process.last_write);
            }
        }
        let Some(reported) = reported else {
            return;
        };
        let voter = self.is_on_roster(slot);
        let process = self.slots[slot].process.as_ref();
        let writes = process.map_or(u64::MAX, |process| process.writes_at_start);
        let knows = !voter || reported.remembered < writes || self.checker.has_noticed(slot);
        let others = self.roster_without(slot);
        let recovered = self.checker.receive_report(
            slot,
            &reported.from,
            &reported.stamp,
            reported.stale,
            &others,
        );
        self.sometimes.stale_recovered += u64::from(recovered);
        if !knows {
            let text = format!(
                "{} does not notice that {} remembers {} of its writes, and its file {writes}",
                self.slots[slot].id, reported.from, reported.remembered
            );
            self.violate("P4", text);
        }
    }

    fn roster_without(&self, slot: usize) -> Vec<PeerId> {
        let places = self.settings.roster.iter().flatten();
        let others = places.filter(|other| **other != slot);
        others.map(|other| self.slots[*other].id.clone()).collect()
    }

    /// Records received messages by place, for [`World::check_majorities`].
    pub(super) fn note_contact(&mut self, slot: usize, input: &Input) {
        if self.settings.roster.is_none() {
            return;
        }
        let from = match input {
            Input::Message { from, .. } => from,
            Input::LinkUp(link) => &link.peer,
            _ => return,
        };
        let (from, now) = (self.slot_of(from), self.now);
        // A voter whose link a member carries does not count.
        let from = from.filter(|from| self.counts_for(slot, *from));
        if let (Some(from), Some(process)) = (from, &mut self.slots[slot].process) {
            process.tenure.contacts.insert(from, now);
        }
    }

    /// Records whether a node leads, and by which timeout. The timeout grows with a measured round trip before the heartbeat that
    /// carries it (G15).
    pub(super) fn note_tenure(&mut self, slot: usize) {
        let now = self.now;
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        if !process.node.is_leader() {
            process.tenure.since = None;
            return;
        }
        let raft = process.node.election().of::<Raft>();
        process.tenure.window = raft.map_or(Duration::ZERO, Raft::election_timeout_min);
        process.tenure.since.get_or_insert(now);
    }

    /// C2: from two shortest election timeouts after a cut on, only a side with a majority of the roster has a leader. The
    /// timeout is the one in force there, on the leader's clock.
    pub(super) fn check_majorities(&mut self) {
        if self.settings.roster.is_none() || self.leading.is_empty() || self.now < self.majority_due
        {
            return;
        }
        let mut due = self.now + self.settings.election_timeout_min;
        let mut alone = None;
        for slot in self.leading.iter().copied() {
            let Some((judged_at, cut_off)) = self.without_majority(slot) else {
                continue;
            };
            due = due.min(judged_at);
            if cut_off {
                alone = Some(slot);
            }
        }
        self.majority_due = due;
        if let Some(slot) = alone {
            let text = format!(
                "{} leads and has received from no majority of the roster for two election timeouts{}",
                self.slots[slot].id,
                self.describe()
            );
            self.violate("roster", text);
        }
    }

    /// Time of the next check of a leader, and whether it leads without a majority for too long: a call that arrives now, before
    /// a stopped or resuming process has checked its clock, would return that. A leaving leader claims nothing.
    fn without_majority(&self, slot: usize) -> Option<(Time, bool)> {
        let roster = self.settings.roster.as_ref()?;
        let process = self.slots[slot].process.as_ref()?;
        if process.leaving || !self.leads_at_call(slot) {
            return None;
        }
        let tenure = &process.tenure;
        let bound = slowest_clock(tenure.window * 2) + self.settings.lateness * 2 + SLACK;
        let others = roster.iter().filter(|other| **other != slot);
        let mut contacts: Vec<Time> = others
            .map(|other| tenure.contacts.get(other).copied().unwrap_or(Time::ZERO))
            .collect();
        contacts.sort_unstable();
        // The last moment at which it had received from a majority within some time.
        let needed = roster.len() / 2;
        let majority_at = match needed {
            0 => self.now,
            _ => contacts[contacts.len() - needed],
        };
        let judged_at = tenure.since?.max(majority_at) + bound;
        Some((judged_at.max(self.now + SLACK), self.now > judged_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// Two voters that know each other's state files.
    fn room() -> World {
        let settings = Settings {
            roster: Some((0..2).collect()),
            ..Settings::default()
        };
        let mut world = World::new(1, 2, settings, Trace::off());
        for slot in 0..2 {
            world.start(slot);
        }
        world.connect(0, 1);
        world.run_for(Duration::from_secs(10));
        assert_eq!(world.violation.as_ref().map(|found| found.property), None);
        world
    }

    #[test]
    fn a_voter_that_does_not_notice_its_old_file_is_seen() {
        let mut world = room();
        // For the check, its file was an older one.
        let process = world.slots[1].process.as_mut().expect("it runs");
        process.writes_at_start = 0;
        world.run_for(Duration::from_secs(1));
        let found = world.violation.expect("it contains no violation");
        assert_eq!(found.property, "P4");
        assert!(found.text.contains("does not notice"), "{}", found.text);
    }
}
