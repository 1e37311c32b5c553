//! Every history of a small room, for safety only: breadth-first over the production rules.
//!
//! A state is the state of every node, and the set of all messages ever sent. A sent message may arrive at any time, any number
//! of times, in any order or never. Timers fire at any moment, so any node may campaign whenever the bounds allow it. There is no
//! clock and there are no guards of time (pre-vote, lease, grace): events that they prevent happen here, and must be harmless.
//!
//! Two things keep this small. A node's reaction to an input depends on the node alone, so each pair is put to
//! [`Rules`](room_core::election::rules::Rules) once and remembered (`member`); the search itself only combines numbers. And sets
//! of messages have numbers, too.

pub mod ballots;
mod member;
mod sets;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use room_core::election::guards::Guards;

use member::{Act, Members, NOTHING};
use sets::Sets;

/// Largest number of nodes that can be explored.
pub const MAX_NODES: usize = 4;

/// Bounds of an exploration.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Nodes, all linked at first.
    pub nodes: usize,
    /// The roster of a static quorum: the first of the nodes. `None` is a dynamic one.
    pub voters: Option<usize>,
    pub guards: Guards,
    /// The highest term of a campaign.
    pub terms: u64,
    /// `SetLeader` calls, at any node and with any target.
    pub set_leaders: usize,
    /// Restarts. Guard `persistence` decides what state a restarted node has.
    pub restarts: usize,
    /// Links that one end loses.
    pub losses: usize,
    /// Whether the voters of a static quorum accept messages of nodes beside it, too. They must not.
    pub outsiders_count: bool,
    /// Leaders that campaign above a received record and stay leaders meanwhile.
    pub in_place: bool,
    /// Refusals arrive, too. They carry no more than a record does, and change only the set of refusals.
    pub refusals: bool,
    /// Forgets state that can never matter again: an older record that every node has passed, a vote for a round that is over.
    /// Histories that differ only in these are one. Only where all guards hold and every incarnation continues from the last
    /// one's state; elsewhere the past may return.
    pub forgets: bool,
    /// The only property to check; None checks all.
    pub only: Option<&'static str>,
}

impl Scope {
    /// Three nodes, of which any two elect a leader.
    pub fn of_three(terms: u64, set_leaders: usize) -> Self {
        Self {
            nodes: 3,
            voters: Some(3),
            guards: Guards::ALL,
            terms,
            set_leaders,
            restarts: 0,
            losses: 0,
            outsiders_count: false,
            in_place: false,
            refusals: false,
            forgets: true,
            only: None,
        }
    }

    fn looks_for(&self, property: &str) -> bool {
        self.only.is_none_or(|only| only == property)
    }

    /// Whether a node that restarts continues from its last state.
    fn keeps_its_state(&self) -> bool {
        self.voters.is_some() && self.guards.persistence
    }
}

/// Result of an exploration.
#[derive(Debug)]
pub struct Found {
    /// Distinct states.
    pub states: usize,
    /// Steps between them, except steps without a change.
    pub steps: usize,
    /// Distinct states without the messages under way.
    pub situations: usize,
    /// Steps from the first state to the farthest ones.
    pub depth: usize,
    /// The first violation; none has fewer steps.
    pub violation: Option<Broken>,
}

/// A broken property, and the shortest way there.
#[derive(Debug)]
pub struct Broken {
    pub property: &'static str,
    pub text: String,
    pub trace: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.property, self.text)?;
        for (number, line) in self.trace.iter().enumerate() {
            writeln!(f, "{:3}. {line}", number + 1)?;
        }
        Ok(())
    }
}

/// Numbers of the nodes' own states, and of the set of all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    members: [u16; MAX_NODES],
    sent: u32,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c, d] = self.members.map(u64::from);
        hasher.write_u64(a | b << 16 | c << 32 | d << 48);
        hasher.write_u64(self.sent.into());
    }
}

/// Multiply and fold: the keys are small numbers, and no adversary chooses them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type Fast<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Explores everything in `scope`, up to the first violation.
///
/// # Panics
/// If the scope has more than 65,536 states of one node or 2^32 states of the room.
pub fn explore(scope: &Scope) -> Found {
    let mut search = Search::new(scope);
    let violation = search.run();
    Found {
        states: search.states.len(),
        situations: search.situations(),
        steps: search.steps,
        depth: search.depth,
        violation,
    }
}

struct Search<'a> {
    scope: &'a Scope,
    forgets: bool,
    members: Members<'a>,
    sets: Sets,
    states: Vec<State>,
    /// The state from which each was reached first.
    parents: Vec<u32>,
    known: Fast<State, u32>,
    steps: usize,
    depth: usize,
}

/// A step, and its result.
type Next = (usize, Act, State, Option<(&'static str, String)>);

impl<'a> Search<'a> {
    fn new(scope: &'a Scope) -> Self {
        assert!(scope.nodes <= MAX_NODES, "too many nodes");
        let mut members = Members::new(scope);
        let mut first = State {
            members: [0; MAX_NODES],
            sent: 0,
        };
        for node in 0..scope.nodes {
            first.members[node] = members.born(node);
        }
        Self {
            scope,
            forgets: scope.forgets
                && scope.guards == Guards::ALL
                && (scope.restarts == 0 || scope.keeps_its_state()),
            members,
            sets: Sets::new(),
            states: vec![first],
            parents: vec![0],
            known: Fast::from_iter([(first, 0)]),
            steps: 0,
            depth: 0,
        }
    }

    fn run(&mut self) -> Option<Broken> {
        let mut nexts = Vec::new();
        let mut index = 0;
        let mut last_of_depth = 0;
        while index < self.states.len() {
            self.successors(self.states[index], &mut nexts);
            for (node, act, state, broken) in nexts.drain(..) {
                self.steps += 1;
                if let Some((property, text)) = broken {
                    let mut trace = self.trace(index);
                    trace.push(self.line(node, act, state));
                    return Some(Broken {
                        property,
                        text,
                        trace,
                    });
                }
                let number = u32::try_from(self.states.len()).expect("too many states");
                if let std::collections::hash_map::Entry::Vacant(entry) = self.known.entry(state) {
                    entry.insert(number);
                    self.states.push(state);
                    self.parents.push(index as u32);
                }
            }
            if index == last_of_depth && self.states.len() - 1 > last_of_depth {
                last_of_depth = self.states.len() - 1;
                self.depth += 1;
            }
            index += 1;
        }
        None
    }

    fn successors(&mut self, state: State, nexts: &mut Vec<Next>) {
        let restarts: usize = self.sum(state, Members::restarts);
        let losses = self.sum(state, Members::losses);
        let calls = self.sum(state, Members::calls);
        for node in 0..self.scope.nodes {
            self.step(state, node, Act::Campaign, nexts);
            if calls < self.scope.set_leaders {
                for target in 0..self.scope.nodes {
                    self.step(state, node, Act::SetLeader(target as u8), nexts);
                }
            }
            if restarts < self.scope.restarts {
                self.step(state, node, Act::Restart, nexts);
            }
            if losses < self.scope.losses {
                for other in (0..self.scope.nodes).filter(|other| *other != node) {
                    self.step(state, node, Act::Lose(other as u8), nexts);
                }
            }
            for at in 0..self.sets.list(state.sent).len() {
                let message = self.sets.list(state.sent)[at];
                self.step(state, node, Act::Receive(message), nexts);
                if self.scope.in_place {
                    self.step(state, node, Act::GoAbove(message), nexts);
                }
            }
        }
    }

    fn situations(&self) -> usize {
        let members = self.states.iter().map(|state| state.members);
        let mut members: Vec<_> = members.collect();
        members.sort_unstable();
        members.dedup();
        members.len()
    }

    fn sum(&self, state: State, of: impl Fn(&Members<'a>, u16) -> usize) -> usize {
        let nodes = &state.members[..self.scope.nodes];
        nodes.iter().map(|number| of(&self.members, *number)).sum()
    }

    fn step(&mut self, state: State, node: usize, act: Act, nexts: &mut Vec<Next>) {
        let outcome = self.members.act(node, state.members[node], act);
        if outcome == NOTHING {
            return;
        }
        let outcome = self.members.outcome(outcome);
        let (next, sends, mut broken) = (outcome.next, outcome.sends, outcome.broken);
        let mut sent = state.sent;
        for message in sends.into_iter().flatten() {
            let grown = self.sets.with(sent, message);
            if grown != sent && broken.is_none() {
                let before = self.sets.list(sent);
                broken = self.members.conflict(message, before);
            }
            sent = grown;
        }
        if sent == state.sent && next == state.members[node] && broken.is_none() {
            return;
        }
        let mut members = state.members;
        members[node] = next;
        if self.forgets && broken.is_none() {
            sent = self.without_the_past(&members, sent);
        }
        if broken.is_none() {
            broken = self.members.rivals(&members[..self.scope.nodes]);
        }
        let broken = broken.map(|property| {
            (
                property,
                self.members.describe(&members[..self.scope.nodes]),
            )
        });
        nexts.push((node, act, State { members, sent }, broken));
    }

    fn without_the_past(&mut self, members: &[u16; MAX_NODES], sent: u32) -> u32 {
        let members = &members[..self.scope.nodes];
        let list = self.sets.list(sent);
        let lasts = |message: &u16| self.members.may_matter(members, *message);
        if list.iter().all(lasts) {
            return sent;
        }
        let rest = list.iter().copied().filter(lasts).collect();
        self.sets.number(rest)
    }

    fn trace(&mut self, mut index: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while index != 0 {
            let parent = self.parents[index] as usize;
            let mut nexts = Vec::new();
            self.successors(self.states[parent], &mut nexts);
            let state = self.states[index];
            let step = nexts.into_iter().find(|next| next.2 == state);
            let (node, act, ..) = step.expect("it was reached from there");
            lines.push(self.line(node, act, state));
            index = parent;
        }
        lines.reverse();
        lines
    }

    fn line(&self, node: usize, act: Act, state: State) -> String {
        self.members.line(node, act, state.members[node])
    }
}
