//! Every history of a room of three, within bounds: breadth-first over the replicas themselves.
//!
//! A state is the three members, the frames on their way (in order within a lane of a link), what was ever confirmed, the time,
//! and what may still happen. Frames arrive in any order between links. Time passes only as a step of its own, to the next
//! deadline of a member. A member's reaction to an input depends on nothing but the member and the time, so that each is
//! computed once ([`members`]); the search itself combines numbers.

mod members;
mod witness;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use room_core::time::Time;
use room_state::laboratory::Rule;
use room_state::replica::Replica;

use crate::ghosts::Ghosts;
use crate::world::name;
use members::{Member, Members, Process, Stimulus, request};
use witness::Witness;

/// Members of the room.
pub const MEMBERS: usize = 3;
/// Most leaderships.
const MOST_LEADERSHIPS: usize = 4;
const LINKS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// Bounds of an exploration.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Whether the members are the voters of a static room.
    pub is_static: bool,
    /// Whether the room begins with a leader, whose opening and one action are confirmed everywhere. Else no member has led.
    pub is_led: bool,
    /// Members that never had a link at the beginning.
    pub strangers: usize,
    /// Leaders that the election names, one after the other.
    pub leaderships: u8,
    /// Actions, each of any member.
    pub submits: u8,
    /// Links that break.
    pub cuts: u8,
    /// Links that come back.
    pub links: u8,
    /// Processes that die and start anew, without a link.
    pub restarts: u8,
    /// Leaders that leave the room.
    pub leaves: u8,
    /// Times at which time passes.
    pub ticks: u8,
    /// Most entries of a frame.
    pub entries_of_a_frame: Option<usize>,
    /// Rules that are broken.
    pub broken: BTreeSet<Rule>,
    /// States after which the search ends.
    pub most_states: Option<usize>,
}

/// Result of an exploration.
#[derive(Debug)]
pub struct Found {
    /// Distinct states.
    pub states: usize,
    /// Distinct members among them.
    pub members: usize,
    /// Steps from the first state to the farthest ones.
    pub depth: u32,
    /// Whether all of the scope was explored.
    pub is_all: bool,
    /// The first violation; none has fewer steps.
    pub violation: Option<Broken>,
}

/// A broken promise, and the shortest way there.
#[derive(Debug)]
pub struct Broken {
    /// The promise.
    pub text: String,
    /// The steps.
    pub trace: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        for (number, line) in self.trace.iter().enumerate() {
            writeln!(f, "{:3}. {line}", number + 1)?;
        }
        Ok(())
    }
}

/// The events that may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Left {
    leaderships: u8,
    submits: u8,
    cuts: u8,
    links: u8,
    restarts: u8,
    leaves: u8,
    ticks: u8,
}

/// A room; everything in it has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Room {
    members: [u32; MEMBERS],
    /// Frames on their way, by sender, receiver and lane.
    queues: [[[u32; 2]; MEMBERS]; MEMBERS],
    linked: [[bool; MEMBERS]; MEMBERS],
    ghosts: u32,
    now_ms: u64,
    leaders: [Option<Process>; MOST_LEADERSHIPS],
    /// The last leadership that each member has learned of.
    follows: [usize; MEMBERS],
    left: Left,
}

/// A step.
#[derive(Debug, Clone, Copy)]
enum Act {
    Deliver {
        from: usize,
        to: usize,
        lane: usize,
    },
    /// The election names a member, which learns it first.
    Elect(usize),
    /// A member learns of a leadership.
    Follow(usize, usize),
    Submit(usize),
    Cut(usize, usize),
    Link(usize, usize),
    Restart(usize),
    Leave {
        leader: usize,
        successor: usize,
    },
    Time,
}

/// Frames in order, by number; 0 are none.
struct Queues {
    queues: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, u32>,
}

impl Queues {
    fn number(&mut self, frames: Vec<u32>) -> u32 {
        let next = u32::try_from(self.queues.len()).expect("fewer queues");
        let number = *self.numbers.entry(frames.clone()).or_insert(next);
        if number == next {
            self.queues.push(frames);
        }
        number
    }

    fn with(&mut self, queue: u32, frame: u32) -> u32 {
        let mut frames = self.queues[queue as usize].clone();
        frames.push(frame);
        self.number(frames)
    }

    fn first(&self, queue: u32) -> Option<u32> {
        self.queues[queue as usize].first().copied()
    }

    fn without_first(&mut self, queue: u32) -> u32 {
        let frames = self.queues[queue as usize][1..].to_vec();
        self.number(frames)
    }
}

struct Explorer {
    members: Members,
    witness: Witness,
    queues: Queues,
}

/// Explores all of a scope, up to the first violation.
pub fn explore(scope: &Scope) -> Found {
    let mut explorer = Explorer {
        members: Members::new(scope),
        witness: Witness::default(),
        queues: Queues {
            queues: vec![Vec::new()],
            numbers: HashMap::from([(Vec::new(), 0)]),
        },
    };
    let first = explorer.first(scope);
    let mut search = Search::new(scope);
    search.add(first, None);
    let mut depth = 0;
    while let Some((number, room, at)) = search.next() {
        depth = at;
        for act in explorer.acts(&room) {
            match explorer.after(room, act) {
                Ok(next) if next == room => {}
                Ok(next) => search.add(next, Some((number, act))),
                Err(text) => {
                    let mut trace = search.trace(number);
                    trace.push(act);
                    let trace = explorer.shown(first, &trace);
                    let broken = Broken { text, trace };
                    return search.found(depth, &explorer, Some(broken));
                }
            }
        }
    }
    search.found(depth, &explorer, None)
}

/// The rooms that were reached.
struct Search {
    seen: HashSet<u128>,
    /// The step that led to each, and from where.
    steps: Vec<Option<(u32, Act)>>,
    ahead: VecDeque<(u32, Room, u32)>,
    depth: u32,
    most: usize,
    is_cut_short: bool,
}

impl Search {
    fn new(scope: &Scope) -> Self {
        Self {
            seen: HashSet::new(),
            steps: Vec::new(),
            ahead: VecDeque::new(),
            depth: 0,
            most: scope.most_states.unwrap_or(usize::MAX),
            is_cut_short: false,
        }
    }

    fn add(&mut self, room: Room, step: Option<(u32, Act)>) {
        if self.seen.len() >= self.most {
            self.is_cut_short = true;
            return;
        }
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, room).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        if self.seen.insert(hash(0) << 64 | hash(1)) {
            let number = u32::try_from(self.steps.len()).expect("fewer states");
            let depth = self.depth + u32::from(step.is_some());
            self.steps.push(step);
            self.ahead.push_back((number, room, depth));
        }
    }

    fn next(&mut self) -> Option<(u32, Room, u32)> {
        let next = self.ahead.pop_front()?;
        self.depth = next.2;
        Some(next)
    }

    /// The steps to a room.
    fn trace(&self, number: u32) -> Vec<Act> {
        let mut acts = Vec::new();
        let mut at = number;
        while let Some((before, act)) = self.steps[at as usize] {
            acts.push(act);
            at = before;
        }
        acts.reverse();
        acts
    }

    fn found(&self, depth: u32, explorer: &Explorer, violation: Option<Broken>) -> Found {
        Found {
            states: self.steps.len(),
            members: explorer.members.count(),
            depth,
            is_all: violation.is_none() && !self.is_cut_short,
            violation,
        }
    }
}

impl Explorer {
    fn first(&mut self, scope: &Scope) -> Room {
        let left = Left {
            leaderships: scope.leaderships,
            submits: scope.submits,
            cuts: scope.cuts,
            links: scope.links,
            restarts: scope.restarts,
            leaves: scope.leaves,
            ticks: scope.ticks,
        };
        let nobody = self.members.number(Member::default());
        let mut room = Room {
            members: [nobody; MEMBERS],
            queues: [[[0; 2]; MEMBERS]; MEMBERS],
            linked: [[false; MEMBERS]; MEMBERS],
            ghosts: self.witness.number(Ghosts::default()),
            now_ms: 0,
            leaders: [None; MOST_LEADERSHIPS],
            follows: [0; MEMBERS],
            left: Left {
                leaderships: 1,
                submits: u8::MAX,
                ..left
            },
        };
        let begun = self.begin(&mut room, scope);
        begun.expect("a room without faults keeps its promises");
        room.left = left;
        room
    }

    fn begin(&mut self, room: &mut Room, scope: &Scope) -> Result<(), String> {
        for index in 0..MEMBERS {
            self.put(room, index, Stimulus::Starts)?;
        }
        for (one, other) in LINKS {
            if other < MEMBERS - scope.strangers {
                self.link(room, one, other)?;
            }
        }
        self.deliver_all(room)?;
        if scope.is_led {
            *room = self.after(*room, Act::Elect(0))?;
            for index in 1..MEMBERS - scope.strangers {
                *room = self.after(*room, Act::Follow(index, 1))?;
            }
            self.deliver_all(room)?;
            *room = self.after(*room, Act::Submit(1))?;
            self.deliver_all(room)?;
        }
        Ok(())
    }

    fn deliver_all(&mut self, room: &mut Room) -> Result<(), String> {
        loop {
            let acts = self.acts(room);
            let delivery = acts
                .into_iter()
                .find(|act| matches!(act, Act::Deliver { .. }));
            match delivery {
                Some(act) => *room = self.after(*room, act)?,
                None => return Ok(()),
            }
        }
    }

    fn replica(&self, room: &Room, index: usize) -> Option<&Replica> {
        self.members.get(room.members[index]).replica.as_ref()
    }

    fn process(&self, room: &Room, index: usize) -> Process {
        Process {
            member: index,
            starts: self.members.get(room.members[index]).starts,
        }
    }

    /// The steps that may follow.
    fn acts(&self, room: &Room) -> Vec<Act> {
        let mut acts = Vec::new();
        for (from, to) in (0..MEMBERS).flat_map(|from| (0..MEMBERS).map(move |to| (from, to))) {
            for lane in 0..2 {
                if room.queues[from][to][lane] != 0 && (lane == 0 || self.takes(room, from, to)) {
                    acts.push(Act::Deliver { from, to, lane });
                }
            }
        }
        let (left, up) = (room.left, |index: &usize| {
            self.replica(room, *index).is_some()
        });
        for index in (0..MEMBERS).filter(up) {
            if left.leaderships > 0 {
                acts.push(Act::Elect(index));
            }
            let leaders = (1..).zip(&room.leaders).skip(room.follows[index]);
            for (leadership, leader) in leaders {
                if leader.is_some_and(|leader| self.may_follow(room, index, leader)) {
                    acts.push(Act::Follow(index, leadership));
                }
            }
            if left.submits > 0 {
                acts.push(Act::Submit(index));
            }
            if left.restarts > 0 && self.may_restart(room, index) {
                acts.push(Act::Restart(index));
            }
            let leads = self
                .replica(room, index)
                .is_some_and(|replica| replica.leads().is_some());
            if left.leaves > 0 && leads {
                let successors = (0..MEMBERS).filter(|other| room.linked[index][*other]);
                acts.extend(successors.map(|successor| Act::Leave {
                    leader: index,
                    successor,
                }));
            }
        }
        for (one, other) in LINKS {
            match room.linked[one][other] {
                true if left.cuts > 0 => acts.push(Act::Cut(one, other)),
                false if left.links > 0 && up(&one) && up(&other) => {
                    acts.push(Act::Link(one, other));
                }
                _ => {}
            }
        }
        if left.ticks > 0 && self.deadline(room).is_some() {
            acts.push(Act::Time);
        }
        acts
    }

    fn takes(&self, room: &Room, from: usize, to: usize) -> bool {
        self.replica(room, to)
            .is_some_and(|replica| replica.takes_requests_of(&name(from)))
    }

    fn may_follow(&self, room: &Room, index: usize, leader: Process) -> bool {
        room.linked[index][leader.member] && self.process(room, leader.member) == leader
    }

    /// A static room survives the loss of a minority's memory at a time.
    fn may_restart(&self, room: &Room, index: usize) -> bool {
        let is_whole = |index: usize| {
            let replica = self.replica(room, index);
            replica.is_some_and(|replica| !replica.is_recovering())
        };
        let is_static = self.replica(room, index).is_some_and(|replica| {
            replica.settings().quorum != room_state::replica::Quorum::Dynamic
        });
        !is_static || (0..MEMBERS).all(is_whole)
    }

    fn deadline(&self, room: &Room) -> Option<u64> {
        let deadline = |index| self.replica(room, index)?.next_deadline();
        let next = (0..MEMBERS).filter_map(deadline).min()?;
        Some(next.as_micros().div_ceil(1000).max(room.now_ms))
    }

    /// The room after a step.
    fn after(&mut self, mut room: Room, act: Act) -> Result<Room, String> {
        match act {
            Act::Deliver { from, to, lane } => {
                let queue = room.queues[from][to][lane];
                let frame = self.queues.first(queue).expect("a frame");
                room.queues[from][to][lane] = self.queues.without_first(queue);
                self.put(&mut room, to, Stimulus::Frame(from, frame))?;
            }
            Act::Elect(index) => {
                room.left.leaderships -= 1;
                let leader = self.process(&room, index);
                let next = room.leaders.iter().position(Option::is_none);
                let next = next.expect("fewer leaderships");
                room.leaders[next] = Some(leader);
                room.follows[index] = next + 1;
                self.put(&mut room, index, Stimulus::Leader(leader))?;
            }
            Act::Follow(index, leadership) => {
                room.follows[index] = leadership;
                let leader = room.leaders[leadership - 1].expect("a leader");
                self.put(&mut room, index, Stimulus::Leader(leader))?;
            }
            Act::Submit(index) => {
                room.left.submits -= 1;
                let number = room.left.submits;
                self.put(&mut room, index, Stimulus::Submits(number))?;
            }
            Act::Cut(one, other) => {
                room.left.cuts -= 1;
                self.cut(&mut room, one, other)?;
            }
            Act::Link(one, other) => {
                room.left.links -= 1;
                self.link(&mut room, one, other)?;
            }
            Act::Restart(index) => {
                room.left.restarts -= 1;
                self.restart(&mut room, index)?;
            }
            Act::Leave { leader, successor } => {
                room.left.leaves -= 1;
                self.put(&mut room, leader, Stimulus::Leave(successor))?;
            }
            Act::Time => {
                room.left.ticks -= 1;
                room.now_ms = self.deadline(&room).expect("a deadline");
                for index in 0..MEMBERS {
                    let due = self.replica(&room, index).and_then(Replica::next_deadline);
                    let is_due = |due: Time| due.as_micros() <= room.now_ms * 1000;
                    if due.is_some_and(is_due) {
                        self.put(&mut room, index, Stimulus::Tick)?;
                    }
                }
            }
        }
        Ok(room)
    }

    /// A member takes an input. What it shows then is checked.
    fn put(&mut self, room: &mut Room, index: usize, stimulus: Stimulus) -> Result<(), String> {
        let number = room.members[index];
        let reaction = self.members.react(number, index, room.now_ms, stimulus);
        let reaction = reaction.as_ref().as_ref();
        let reaction = reaction.map_err(|broken| format!("{broken} at {index}"))?;
        if let Stimulus::Submits(number) = stimulus {
            self.note_submitted(room, index, number);
        }
        room.members[index] = reaction.member;
        for (to, frame) in &reaction.sends {
            if room.linked[index][*to] {
                let lane = usize::from(self.members.is_request(*frame));
                let queue = &mut room.queues[index][*to][lane];
                *queue = self.queues.with(*queue, *frame);
            }
        }
        self.check(room, index)?;
        match reaction.may_end {
            true => self.end(room, index),
            false => Ok(()),
        }
    }

    fn note_submitted(&mut self, room: &mut Room, index: usize, number: u8) {
        let Some(replica) = self.replica(room, index) else {
            return;
        };
        let (author, read) = (replica.me().clone(), replica.seen().clone());
        let submitted = replica.open_requests() as u64 + 1;
        let mut ghosts = self.witness.get(room.ghosts).clone();
        // No host takes anything, so that all of its requests are open.
        ghosts.note_submitted(author, submitted, request(number), read);
        room.ghosts = self.witness.number(ghosts);
    }

    fn check(&mut self, room: &mut Room, index: usize) -> Result<(), String> {
        let number = room.members[index];
        let Some(replica) = &self.members.get(number).replica else {
            return Ok(());
        };
        room.ghosts = self.witness.look(room.ghosts, index, number, replica)?;
        for other in room.members {
            if let Some(there) = &self.members.get(other).replica {
                self.witness.compare((number, replica), (other, there))?;
            }
        }
        Ok(())
    }

    fn link(&mut self, room: &mut Room, one: usize, other: usize) -> Result<(), String> {
        (room.linked[one][other], room.linked[other][one]) = (true, true);
        let (here, there) = (self.process(room, one), self.process(room, other));
        self.put(room, one, Stimulus::Linked(there))?;
        self.put(room, other, Stimulus::Linked(here))
    }

    fn cut(&mut self, room: &mut Room, one: usize, other: usize) -> Result<(), String> {
        for (from, to) in [(one, other), (other, one)] {
            room.linked[from][to] = false;
            room.queues[from][to] = [0; 2];
        }
        self.put(room, one, Stimulus::Lost(other))?;
        self.put(room, other, Stimulus::Lost(one))
    }

    /// The member's process is over.
    fn crash(&mut self, room: &mut Room, index: usize) -> Result<(), String> {
        let mut ghosts = self.witness.get(room.ghosts).clone();
        ghosts.forget(index);
        room.ghosts = self.witness.number(ghosts);
        let mut member = self.members.get(room.members[index]).clone();
        member.replica = None;
        room.members[index] = self.members.number(member);
        for other in (0..MEMBERS).filter(|other| *other != index) {
            if room.linked[index][other] {
                self.cut(room, index, other)?;
            }
        }
        Ok(())
    }

    fn restart(&mut self, room: &mut Room, index: usize) -> Result<(), String> {
        self.crash(room, index)?;
        room.follows[index] = 0;
        self.put(room, index, Stimulus::Starts)
    }

    /// A member has left: the others learn it.
    fn end(&mut self, room: &mut Room, index: usize) -> Result<(), String> {
        let process = self.process(room, index);
        self.crash(room, index)?;
        for other in 0..MEMBERS {
            self.put(room, other, Stimulus::Gone(process))?;
        }
        Ok(())
    }

    /// Steps in words.
    fn shown(&mut self, first: Room, acts: &[Act]) -> Vec<String> {
        let mut room = Ok(first);
        let mut lines = Vec::new();
        for act in acts {
            let Ok(before) = room else {
                break;
            };
            lines.push(match act {
                Act::Deliver { from, to, lane } => {
                    let queue = before.queues[*from][*to][*lane];
                    let frame = self.queues.first(queue).expect("a frame");
                    format!("{from} to {to}: {:?}", self.members.frame(frame))
                }
                _ => format!("{act:?}"),
            });
            room = self.after(before, *act);
        }
        lines
    }
}
