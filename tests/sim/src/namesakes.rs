//! Two rooms that meet, in which one id belongs to two processes: namesakes, with keys of their own.
//!
//! A member is an id and a key. So the checks here compare the processes to which each member is linked, and not the ids that
//! it shows. Rooms that cannot keep both namesakes become one without one of them, or stay two (`docs/elections.md`, "Sides
//! that cannot both stay"). Faults come during the meeting; in the end nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use room_core::id::PeerId;
use room_core::node::{EndReason, Event, Node};
use room_core::time::{Duration, Time};

use crate::chaos::{ms, pairs};
use crate::checks::Violation;
use crate::trace::Trace;
use crate::world::{Settings, World};

/// Sets these draws apart from those of the world, which come from the same seed.
const OF_THEIR_OWN: u64 = 0x4a3e_5a1e_c0de_0005;
/// The time after the last fault in which a room settles: it keeps the places of lost members for a minute.
const SETTLES_IN: Duration = ms(90_000);
/// The times of the library's discovery (`src/net/discovery/finds.rs`).
const YIELD: Duration = ms(2_000);
const FIRST_WAIT: Duration = ms(2_000);
const LONGEST_WAIT: Duration = ms(60_000);
const LINK_CHECK: Duration = ms(10_000);

/// How two rooms met.
#[derive(Debug)]
pub struct Outcome {
    pub violation: Option<Violation>,
    pub trace: Trace,
    /// Whether two members of both rooms were ever linked.
    pub met: bool,
    /// Whether one room remains, without one of the namesakes.
    pub is_one: bool,
}

/// Plays the meeting of a seed, in which a host dials a few times.
pub fn run(seed: u64, trace: Trace) -> Outcome {
    let mut meeting = Meeting::new(seed, trace);
    meeting.play();
    meeting.outcome()
}

/// Plays a seed in which all members discover each other from the start.
pub fn discover(seed: u64, trace: Trace) -> Outcome {
    let mut meeting = Meeting::new(seed, trace);
    meeting.discover();
    meeting.outcome()
}

/// The time of the next dial of a member that was found, and the back-off after it.
struct Find {
    dial_at: Time,
    wait: Duration,
}

struct Meeting {
    world: World,
    rng: ChaCha8Rng,
    rooms: [Vec<usize>; 2],
    met: bool,
    /// Whether members dial all others until they are linked.
    discovers: bool,
    /// Whether members crashed, stopped or did not reach each other.
    disturbed: bool,
}

impl Meeting {
    fn new(seed: u64, trace: Trace) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ OF_THEIR_OWN);
        let sizes = [rng.random_range(1..=4), rng.random_range(1..=4)];
        let most = *[2, 10, 40, 150].choose(&mut rng).expect("not empty");
        let mut settings = Settings {
            delay: (ms(1), ms(most)),
            lateness: Duration::from_micros(rng.random_range(0..3_000)),
            ..Settings::default()
        };
        settings.hosts.asked = rng.random_bool(0.5);
        let mut world = World::new(seed, sizes[0] + sizes[1], settings, trace);
        let rooms = [
            (0..sizes[0]).collect::<Vec<_>>(),
            (sizes[0]..sizes[0] + sizes[1]).collect(),
        ];
        let [first, second] = rooms.each_ref().map(|room| room.choose(&mut rng).copied());
        let [first, second] = [first, second].map(|slot| slot.expect("a room of one at least"));
        let name = world.slots[first].id.as_str().to_owned();
        world.slots[second].rename(&name);
        world
            .checker
            .namesakes
            .insert(world.slots[first].id.clone());
        Self {
            world,
            rng,
            rooms,
            met: false,
            discovers: false,
            disturbed: false,
        }
    }

    fn play(&mut self) {
        self.world
            .trace
            .add(self.world.now, format_args!("rooms {:?}", self.rooms));
        for room in self.rooms.clone() {
            self.found(&room);
        }
        let disturbs = self.rng.random_bool(0.6);
        if disturbs && self.rng.random_bool(0.3) {
            self.world.stream_loss = 0.05;
        }
        for _ in 0..self.rng.random_range(1..=4) {
            self.dial();
            if disturbs {
                self.disturb();
            }
            let time = self.rng.random_range(0..4_000);
            self.world.run_for(ms(time));
        }
        self.heal();
        self.world.run_for(SETTLES_IN);
    }

    /// All members start within half a second and dial all others until they are linked; some stand still for a moment.
    fn discover(&mut self) {
        (self.discovers, self.met) = (true, true);
        let all = self.rooms.concat();
        for slot in &all {
            self.world.start(*slot);
            let time = self.rng.random_range(0..500 / all.len() as u64);
            self.world.run_for(ms(time));
        }
        self.disturbed = self.rng.random_bool(0.7);
        let faults_end = self.world.now + ms(8_000);
        let mut finds = self.finds(&all);
        let mut stand_still: BTreeMap<usize, Time> = BTreeMap::new();
        let ends = faults_end + SETTLES_IN;
        while self.world.now < ends {
            for ((from, to), find) in &mut finds {
                if find.dial_at > self.world.now {
                    continue;
                }
                let is_linked = self.are_linked(*from, *to);
                (find.dial_at, find.wait) = match is_linked {
                    true => (self.world.now + LINK_CHECK, FIRST_WAIT),
                    false => (
                        self.world.now + find.wait,
                        (find.wait * 2).min(LONGEST_WAIT),
                    ),
                };
                if !is_linked {
                    self.world.dial_found(*from, *to);
                }
            }
            if self.disturbed && self.world.now < faults_end && self.rng.random_bool(0.03) {
                let slot = *all.choose(&mut self.rng).expect("not empty");
                let time = ms(self.rng.random_range(50..1_500));
                stand_still.entry(slot).or_insert_with(|| {
                    self.world.pause(slot);
                    self.world.now + time
                });
            }
            stand_still.retain(|slot, until| {
                let is_over = *until <= self.world.now;
                if is_over {
                    self.world.resume(*slot);
                }
                !is_over
            });
            self.world.run_for(ms(50));
        }
    }

    /// As the library's discovery does: the smaller of two names dials first.
    fn finds(&mut self, all: &[usize]) -> BTreeMap<(usize, usize), Find> {
        let mut names = all.to_vec();
        names.shuffle(&mut self.rng);
        let mut finds = BTreeMap::new();
        for (rank, from) in names.iter().enumerate() {
            for (other, to) in names.iter().enumerate().filter(|(other, _)| *other != rank) {
                let yields = if rank < other { ms(0) } else { YIELD };
                let dial_at = self.world.now + ms(self.rng.random_range(150..300)) + yields;
                finds.insert(
                    (*from, *to),
                    Find {
                        dial_at,
                        wait: FIRST_WAIT,
                    },
                );
            }
        }
        finds
    }

    fn outcome(mut self) -> Outcome {
        let found = self.world.violation.take();
        let fault = || {
            let text = self.fault()? + &self.describe();
            let property = "namesakes";
            Some(Violation { property, text })
        };
        Outcome {
            violation: found.or_else(fault),
            met: self.met,
            is_one: self.rooms_left().len() == 1,
            trace: self.world.trace,
        }
    }

    /// The first leads alone, and the others enter there.
    fn found(&mut self, room: &[usize]) {
        let first = room[0];
        self.world.start(first);
        let longest = self.world.settings.election_timeout_max;
        self.world.run_for(longest * 2);
        for slot in &room[1..] {
            self.world.start(*slot);
            self.world.connect(*slot, first);
            let time = self.rng.random_range(0..1_000);
            self.world.run_for(ms(time));
        }
        let time = self.rng.random_range(500..4_000);
        self.world.run_for(ms(time));
    }

    /// A host in one room dials a member of the other one.
    fn dial(&mut self) {
        let mut ends = self.rooms.clone();
        ends.shuffle(&mut self.rng);
        let [dialler, contact] = ends.map(|room| *room.choose(&mut self.rng).expect("not empty"));
        let is_in = |slot: usize| self.world.node(slot).is_some_and(|node| !node.is_over());
        if !is_in(dialler) || !is_in(contact) {
            return;
        }
        self.world.connect(dialler, contact);
        self.world.run_for(ms(1_500));
        self.met |= self.are_linked(dialler, contact);
    }

    fn are_linked(&self, one: usize, other: usize) -> bool {
        let process = self.world.slots[one].process.as_ref();
        process.is_some_and(|process| process.sessions.contains_key(&other))
    }

    fn disturb(&mut self) {
        let all = self.rooms.concat();
        let slot = *all.choose(&mut self.rng).expect("not empty");
        if self.world.node(slot).is_none_or(Node::is_over) {
            return;
        }
        self.disturbed = true;
        let lasts = ms(self.rng.random_range(100..5_000));
        match self.rng.random_range(0..3) {
            0 => {
                self.world.crash(slot);
                self.world.run_for(lasts);
                let room = self.rooms.iter().find(|room| room.contains(&slot));
                let mut others = room.into_iter().flatten();
                let contact = others.find(|other| self.world.node(**other).is_some());
                let contact = contact.copied();
                self.world.start(slot);
                if let Some(contact) = contact {
                    self.world.connect(slot, contact);
                }
            }
            1 => {
                self.world.pause(slot);
                self.world.run_for(lasts);
                self.world.resume(slot);
            }
            _ => {
                let (ours, theirs): (Vec<usize>, Vec<usize>) =
                    all.iter().partition(|_| self.rng.random_bool(0.5));
                let mut cuts = pairs(&ours, &theirs);
                cuts.extend(pairs(&theirs, &ours));
                for (from, to) in &cuts {
                    self.world.cut(*from, *to);
                }
                self.world.run_for(lasts);
                for (from, to) in &cuts {
                    self.world.mend(*from, *to);
                }
            }
        }
    }

    fn heal(&mut self) {
        self.world.stream_loss = 0.0;
        self.world
            .trace
            .add(self.world.now, format_args!("---- healing ----"));
    }

    /// The place of the process to which a member is linked under an id.
    fn linked(&self, slot: usize, peer: &PeerId) -> Option<usize> {
        let key = self.world.node(slot)?.membership().get(peer)?.key;
        self.world.running().into_iter().find(|other| {
            let process = self.world.slots[*other].process.as_ref();
            self.world.slots[*other].id == *peer && process.is_some_and(|its| its.key == key)
        })
    }

    /// The places of the processes in the room of a member, as it sees it, and the first id that it binds to no process.
    fn room_of(&self, slot: usize) -> Result<BTreeSet<usize>, PeerId> {
        let node = self.world.node(slot);
        let members = node.into_iter().flat_map(|node| node.membership().iter());
        let mut room = BTreeSet::from([slot]);
        for (peer, _) in members {
            room.insert(self.linked(slot, peer).ok_or_else(|| peer.clone())?);
        }
        Ok(room)
    }

    fn leader_of(&self, slot: usize) -> Option<usize> {
        let leader = self.world.node(slot)?.leader()?;
        match *leader == self.world.slots[slot].id {
            true => Some(slot),
            false => self.linked(slot, leader),
        }
    }

    /// The members whose room is not over.
    fn here(&self) -> Vec<usize> {
        let mut here = self.world.running();
        here.retain(|slot| self.world.node(*slot).is_some_and(|node| !node.is_over()));
        here
    }

    fn rooms_left(&self) -> BTreeSet<BTreeSet<usize>> {
        let rooms = self.here().into_iter();
        rooms.filter_map(|slot| self.room_of(slot).ok()).collect()
    }

    /// The fault of the state at the end, if it has one.
    fn fault(&self) -> Option<String> {
        let here = self.here();
        for slot in &here {
            let fault = self.fault_of(*slot, &here);
            if fault.is_some() {
                return fault;
            }
        }
        let over = self.world.running().into_iter();
        for slot in over.filter(|slot| !here.contains(slot)) {
            let has_namesake =
                |other: &usize| self.world.slots[*other].id == self.world.slots[slot].id;
            let why = self.why_over(slot);
            let rightly = why == Some(EndReason::DuplicateId) && here.iter().any(has_namesake);
            if !rightly && !self.disturbed {
                return Some(format!("the room of {} is over: {why:?}", self.name(slot)));
            }
        }
        let rooms = self.rooms_left();
        let most = rooms.iter().map(BTreeSet::len).max();
        if self.discovers && most != Some(self.rooms.concat().len() - 1) {
            return Some(format!(
                "members that discover each other stay apart: {rooms:?}"
            ));
        }
        let leaves_one_alone = rooms.len() > 1 && rooms.iter().any(|room| room.len() == 1);
        (self.met && leaves_one_alone && !self.disturbed && !self.discovers)
            .then(|| format!("rooms {rooms:?}"))
    }

    fn fault_of(&self, slot: usize, here: &[usize]) -> Option<String> {
        let name = self.name(slot);
        let room = match self.room_of(slot) {
            Ok(room) => room,
            Err(peer) => return Some(format!("{name} has {peer} with a key of no process")),
        };
        let Some(leader) = self.leader_of(slot) else {
            return Some(format!("{name} has no leader"));
        };
        if !self.world.leaders().contains(&leader) {
            return Some(format!("{name} follows {leader}, which does not lead"));
        }
        room.iter().find_map(|member| {
            let other = self.name(*member);
            if !here.contains(member) {
                Some(format!("{name} has {other}, whose room is over"))
            } else if self.room_of(*member).as_ref() != Ok(&room) {
                Some(format!("{name} and {other} have different members"))
            } else if self.leader_of(*member) != Some(leader) {
                Some(format!("{name} and {other} follow different leaders"))
            } else {
                None
            }
        })
    }

    fn why_over(&self, slot: usize) -> Option<EndReason> {
        let events = self.world.slots[slot].events.iter().rev();
        events
            .map(|(_, event)| event)
            .find_map(|event| match event {
                Event::RoomEnded { why, .. } => Some(*why),
                _ => None,
            })
    }

    fn name(&self, slot: usize) -> String {
        format!("{slot}/{}", self.world.slots[slot].id)
    }

    /// The state of each process, for the text of a violation.
    fn describe(&self) -> String {
        let mut text = format!(" (disturbed: {})", self.disturbed);
        for slot in self.world.running() {
            let leader = self.leader_of(slot);
            let shown = self.world.node(slot).and_then(Node::leader);
            let is_over = self.world.node(slot).is_some_and(Node::is_over);
            let room = self.room_of(slot);
            let name = self.name(slot);
            // A text takes whatever is written.
            let _ = write!(
                text,
                "\n  {name} shows {shown:?} at {leader:?}, members {room:?}, over {is_over}"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A room of two or more that has settled, before it meets the other one.
    fn room() -> (Meeting, Vec<usize>) {
        let mut meetings = (1..).map(|seed| Meeting::new(seed, Trace::off()));
        let is_large = |meeting: &Meeting| meeting.rooms[0].len() > 1;
        let mut meeting = meetings.find(is_large).expect("every fourth is of one");
        let room = meeting.rooms[0].clone();
        meeting.found(&room);
        meeting.world.run_for(ms(10_000));
        (meeting, room)
    }

    #[test]
    fn a_member_that_is_linked_to_an_earlier_process_is_seen() {
        let (mut meeting, room) = room();
        assert_eq!(meeting.fault(), None);
        meeting.world.crash(room[1]);
        meeting.world.start(room[1]);
        let fault = meeting.fault_of(room[0], &room).unwrap_or_default();
        assert!(fault.contains("a key of no process"), "{fault}");
    }

    #[test]
    fn a_member_of_a_room_that_is_over_is_seen() {
        let (meeting, room) = room();
        let fault = meeting.fault_of(room[0], &room[..1]).unwrap_or_default();
        assert!(fault.contains("whose room is over"), "{fault}");
    }
}
