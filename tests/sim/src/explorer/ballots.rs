//! Every history of two proposers and three voters that choose the leader of a version: breadth-first over the production
//! rules ([`paxos`](room_core::election::seeded::paxos)).
//!
//! A sent message may arrive at any time, any number of times, in any order or never. A proposer may begin a new ballot at any
//! moment. Nodes restart, their votes and rounds expire and are reset, and their state files are lost, as often as the scope
//! allows. A voter whose file is lost neither votes nor proposes until each other voter that forgot nothing has reported its
//! votes, one after the other, at any moments; the first report may be out of date when the last one comes.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use room_core::election::seeded::paxos::{Acceptor, Ballot, Proposer, Stage, Tally, Vote};
use room_core::id::PeerId;

use super::sets::Sets;
use super::{Broken, Fast};

const VOTERS: usize = 3;
/// The first of the voters.
const PROPOSERS: usize = 2;

/// A bug that the explorer must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A restarted voter has forgotten its votes.
    RestartForgets,
    /// Three TTL after the last vote a voter forgets its votes on an undecided version.
    ExpiryForgets,
    /// A voter that resets itself forgets its votes on an undecided version.
    ResetForgets,
    /// The last pre-vote decides, although it knows of no candidate and others do.
    LastPreVoteDecides,
    /// Votes on an earlier ballot of the same proposer count for its present one.
    EarlierVotesCount,
    /// A second vote of one voter counts as that of another.
    SecondVotesCount,
    /// A voter whose state file is lost votes at once.
    LossUnnoticed,
    /// It adopts only the ballot of the adopted candidate, not the promised one.
    RecoveryForgetsPromised,
    /// It adopts no accepted candidate.
    RecoveryForgetsAccepted,
    /// It votes again when one other voter has reported its votes.
    RecoversAfterOne,
    /// A voter that lost its own file reports its votes to another one.
    ForgetfulReports,
}

/// Bounds of an exploration.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Ballots of each proposer, over all versions.
    pub ballots: u8,
    /// The highest version of a proposal.
    pub versions: u64,
    pub restarts: u8,
    pub expiries: u8,
    pub resets: u8,
    /// Lost state files.
    pub losses: u8,
    pub bug: Option<Bug>,
}

/// Result of an exploration.
#[derive(Debug)]
pub struct Found {
    /// Distinct states.
    pub states: usize,
    /// Versions for which a leader was chosen in some history.
    pub chosen: usize,
    /// The first violation; none has fewer steps.
    pub violation: Option<Broken>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Message {
    Prepare {
        version: u64,
        ballot: Ballot,
    },
    Accept {
        version: u64,
        ballot: Ballot,
        candidate: PeerId,
    },
    Vote {
        voter: usize,
        version: u64,
        ballot: Ballot,
        vote: Vote,
    },
    Elected {
        version: u64,
        leader: PeerId,
    },
}

/// A node; proposers are the first ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    index: usize,
    acceptor: Acceptor,
    proposer: Option<Proposer>,
    ballots: u8,
    restarts: u8,
    expiries: u8,
    resets: u8,
    losses: u8,
    /// While it may have forgotten votes: the reports of the others.
    reported: Option<[Option<Acceptor>; VOTERS]>,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Restart,
    Expire,
    Reset,
    /// The process ends, and its state file is lost.
    LoseFile,
    /// It receives the votes of that voter.
    ReportOf(u8),
    /// Begins a ballot above what it promised itself.
    Propose,
    /// Begins a ballot above every earlier one.
    Outbid,
    Receive(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    nodes: [u32; VOTERS],
    sent: u32,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c] = self.nodes.map(u64::from);
        hasher.write_u64(a | b << 32);
        hasher.write_u64(c | u64::from(self.sent) << 32);
    }
}

/// Explores everything in `scope`, up to the first violation.
pub fn explore(scope: &Scope) -> Found {
    let mut search = Search::new(scope);
    let violation = search.run();
    let elected = |message: &&Message| matches!(message, Message::Elected { .. });
    let versions = search
        .messages
        .iter()
        .filter(elected)
        .map(|message| match message {
            Message::Elected { version, .. } => *version,
            _ => 0,
        });
    let versions: std::collections::BTreeSet<u64> = versions.collect();
    Found {
        states: search.states.len(),
        chosen: versions.len(),
        violation,
    }
}

struct Search<'a> {
    scope: &'a Scope,
    ids: [PeerId; VOTERS],
    nodes: Vec<Node>,
    node_numbers: HashMap<Node, u32>,
    messages: Vec<Message>,
    message_numbers: HashMap<Message, u16>,
    sets: Sets,
    states: Vec<State>,
    parents: Vec<(u32, u8, Act)>,
    known: Fast<State, u32>,
}

impl<'a> Search<'a> {
    fn new(scope: &'a Scope) -> Self {
        let mut search = Self {
            scope,
            ids: ["a", "b", "c"].map(|name| PeerId::new(name).expect("a name")),
            nodes: Vec::new(),
            node_numbers: HashMap::new(),
            messages: Vec::new(),
            message_numbers: HashMap::new(),
            sets: Sets::new(),
            states: Vec::new(),
            parents: Vec::new(),
            known: Fast::default(),
        };
        let nodes = [0, 1, 2].map(|index| {
            search.node_number(Node {
                index,
                acceptor: Acceptor::default(),
                proposer: None,
                ballots: 0,
                restarts: 0,
                expiries: 0,
                resets: 0,
                losses: 0,
                reported: None,
            })
        });
        let first = State { nodes, sent: 0 };
        search.states.push(first);
        search.parents.push((0, 0, Act::Restart));
        search.known.insert(first, 0);
        search
    }

    fn node_number(&mut self, node: Node) -> u32 {
        let next = self.nodes.len() as u32;
        let nodes = &mut self.nodes;
        *self.node_numbers.entry(node).or_insert_with_key(|node| {
            nodes.push(node.clone());
            next
        })
    }

    fn message_number(&mut self, message: Message) -> u16 {
        let next = u16::try_from(self.messages.len()).expect("too many messages");
        let messages = &mut self.messages;
        *self
            .message_numbers
            .entry(message)
            .or_insert_with_key(|message| {
                messages.push(message.clone());
                next
            })
    }

    fn run(&mut self) -> Option<Broken> {
        let mut index = 0;
        while index < self.states.len() {
            let state = self.states[index];
            for node in 0..VOTERS {
                let own = [
                    Act::Restart,
                    Act::Expire,
                    Act::Reset,
                    Act::LoseFile,
                    Act::ReportOf(0),
                    Act::ReportOf(1),
                    Act::ReportOf(2),
                    Act::Propose,
                    Act::Outbid,
                ];
                let received = self.sets.list(state.sent).to_vec();
                let acts = own
                    .into_iter()
                    .chain(received.into_iter().map(Act::Receive));
                for act in acts {
                    let Some((next, text)) = self.step(state, node, act) else {
                        continue;
                    };
                    let number = u32::try_from(self.states.len()).expect("too many states");
                    let is_new = !self.known.contains_key(&next);
                    if is_new {
                        self.known.insert(next, number);
                        self.states.push(next);
                        self.parents.push((index as u32, node as u8, act));
                    }
                    if let Some(text) = text {
                        let at = if is_new { number } else { self.known[&next] };
                        return Some(Broken {
                            property: "one candidate per version",
                            text,
                            trace: self.trace(at as usize),
                        });
                    }
                }
            }
            index += 1;
        }
        None
    }

    fn step(&mut self, state: State, index: usize, act: Act) -> Option<(State, Option<String>)> {
        let mut node = self.nodes[state.nodes[index] as usize].clone();
        let total = |search: &Self, of: fn(&Node) -> u8| -> u8 {
            let nodes = state.nodes.iter();
            nodes.map(|node| of(&search.nodes[*node as usize])).sum()
        };
        let mut sends = Vec::new();
        match act {
            Act::Restart if total(self, |node| node.restarts) < self.scope.restarts => {
                node.lose_volatile(self.scope.bug == Some(Bug::RestartForgets))?;
                node.restarts += 1;
            }
            Act::Expire if total(self, |node| node.expiries) < self.scope.expiries => {
                node.lose_volatile(self.scope.bug == Some(Bug::ExpiryForgets))?;
                node.expiries += 1;
            }
            Act::Reset if total(self, |node| node.resets) < self.scope.resets => {
                node.lose_volatile(self.scope.bug == Some(Bug::ResetForgets))?;
                node.resets += 1;
            }
            Act::LoseFile if total(self, |node| node.losses) < self.scope.losses => {
                node.proposer = None;
                node.acceptor = Acceptor::default();
                node.losses += 1;
                if self.scope.bug != Some(Bug::LossUnnoticed) {
                    node.reported = Some(Default::default());
                }
            }
            Act::ReportOf(voter) => {
                let voter = usize::from(voter);
                let reporter = &self.nodes[state.nodes[voter] as usize];
                let forgetful = reporter.reported.is_some();
                if voter == index || forgetful && self.scope.bug != Some(Bug::ForgetfulReports) {
                    return None;
                }
                node.reported.as_mut()?[voter] = Some(reporter.acceptor.clone());
                node.recover(self.scope.bug);
            }
            Act::Propose => {
                let ballot = node.acceptor.next_ballot(&self.ids[index]);
                self.propose(&mut node, ballot, &mut sends)?;
            }
            Act::Outbid => {
                let own = node.acceptor.next_ballot(&self.ids[index]);
                let sent = self.sets.list(state.sent).iter();
                let counters = sent.map(|message| self.messages[usize::from(*message)].counter());
                let counter = counters.max().unwrap_or_default() + 1;
                if counter <= own.counter {
                    return None;
                }
                self.propose(&mut node, Ballot { counter, ..own }, &mut sends)?;
            }
            Act::Receive(message) => {
                let message = self.messages[usize::from(message)].clone();
                self.receive(&mut node, message, &mut sends);
            }
            Act::Restart | Act::Expire | Act::Reset | Act::LoseFile => return None,
        }
        let mut sent = state.sent;
        let mut broken = None;
        for message in sends {
            if let Message::Elected { version, leader } = &message {
                broken = self.other_leader(sent, *version, leader).or(broken);
            }
            let number = self.message_number(message);
            sent = self.sets.with(sent, number);
        }
        let mut nodes = state.nodes;
        nodes[index] = self.node_number(node);
        if self.scope.bug.is_none() {
            sent = self.without_the_past(&nodes, sent);
        }
        let next = State { nodes, sent };
        (next != state || broken.is_some()).then_some((next, broken))
    }

    /// Drops state that can change nothing any more: histories that differ only in it are one.
    fn without_the_past(&mut self, nodes: &[u32; VOTERS], sent: u32) -> u32 {
        let list = self.sets.list(sent);
        let rest: Box<[u16]> = list
            .iter()
            .copied()
            .filter(|message| self.may_matter(nodes, *message))
            .collect();
        if rest.len() == list.len() {
            return sent;
        }
        self.sets.number(rest)
    }

    fn may_matter(&self, nodes: &[u32; VOTERS], message: u16) -> bool {
        let nodes = nodes.iter().map(|node| &self.nodes[*node as usize]);
        // A node with a lost file knows no past.
        if nodes.clone().map(|node| node.losses).sum::<u8>() < self.scope.losses {
            return true;
        }
        let reused = |ballot: &Ballot| {
            let proposer = |node: &&Node| self.ids[node.index] == ballot.proposer;
            nodes.clone().any(|node| proposer(&node) && node.losses > 0)
        };
        let waits = |version: u64, ballot: &Ballot| {
            nodes.clone().any(|node| {
                let acceptor = &node.acceptor;
                let later = acceptor.open_version() < version;
                let open = acceptor.open_version() == version;
                let promised = acceptor
                    .promised()
                    .is_some_and(|promised| promised > ballot);
                ballot.proposer != self.ids[node.index] && (later || open && !promised)
            })
        };
        match &self.messages[usize::from(message)] {
            Message::Prepare { version, ballot }
            | Message::Accept {
                version, ballot, ..
            } => waits(*version, ballot),
            // A proposer that gave its ballot up never uses it again, unless it forgot that.
            Message::Vote { ballot, vote, .. } => {
                let counts = |proposer: &Proposer| {
                    let pre = matches!(vote, Vote::Promised(_));
                    proposer.ballot() == ballot && pre == (proposer.stage() == Stage::Pre)
                };
                let mut proposers = nodes.clone().filter_map(|node| node.proposer.as_ref());
                proposers.any(counts) || reused(ballot)
            }
            Message::Elected { .. } => true,
        }
    }

    fn other_leader(&self, sent: u32, version: u64, leader: &PeerId) -> Option<String> {
        let mut sent = self.sets.list(sent).iter();
        sent.find_map(|message| match &self.messages[usize::from(*message)] {
            Message::Elected {
                version: other_version,
                leader: other,
            } if *other_version == version && other != leader => Some(format!(
                "votes chose both {other} and {leader} for version {version}"
            )),
            _ => None,
        })
    }

    fn propose(&self, node: &mut Node, ballot: Ballot, sends: &mut Vec<Message>) -> Option<()> {
        let version = node.acceptor.open_version();
        if node.index >= PROPOSERS
            || node.reported.is_some()
            || node.ballots == self.scope.ballots
            || version > self.scope.versions
        {
            return None;
        }
        node.ballots += 1;
        let mut proposer = Proposer::new(version, ballot.clone(), self.ids.clone().into());
        let own = node.acceptor.prepare(version, &ballot)?;
        proposer.count(&self.ids[node.index], version, &ballot, &own);
        node.proposer = Some(proposer);
        sends.push(Message::Prepare { version, ballot });
        Some(())
    }

    fn receive(&self, node: &mut Node, message: Message, sends: &mut Vec<Message>) {
        match message {
            // A proposer answers itself when it asks.
            Message::Prepare { ballot, .. } | Message::Accept { ballot, .. }
                if ballot.proposer == self.ids[node.index] => {}
            Message::Prepare { version, ballot } => {
                // The proposer's message shows that a leader of the previous version was known.
                node.acceptor.decide(version - 1);
                if node.reported.is_none() {
                    let vote = node.acceptor.prepare(version, &ballot);
                    sends.extend(node.vote(version, ballot, vote));
                }
            }
            Message::Accept {
                version,
                ballot,
                candidate,
            } => {
                node.acceptor.decide(version - 1);
                if node.reported.is_none() {
                    let vote = node.acceptor.accept(version, &ballot, &candidate);
                    sends.extend(node.vote(version, ballot, vote));
                }
            }
            Message::Vote {
                voter,
                version,
                ballot,
                vote,
            } => self.count(node, (voter, vote), version, ballot, sends),
            Message::Elected { version, .. } => {
                node.acceptor.decide(version);
            }
        }
    }

    fn count(
        &self,
        node: &mut Node,
        (voter, mut vote): (usize, Vote),
        version: u64,
        mut ballot: Ballot,
        sends: &mut Vec<Message>,
    ) {
        if ballot.proposer != self.ids[node.index] {
            return;
        }
        let Some(mut proposer) = node.proposer.take() else {
            return;
        };
        let mut voters = vec![self.ids[voter].clone()];
        match self.scope.bug {
            Some(Bug::EarlierVotesCount) => ballot = proposer.ballot().clone(),
            Some(Bug::LastPreVoteDecides) => {
                if let Vote::Promised(accepted) = &mut vote {
                    *accepted = None;
                }
            }
            Some(Bug::SecondVotesCount) => voters = self.ids.to_vec(),
            _ => {}
        }
        for voter in voters {
            match proposer.count(&voter, version, &ballot, &vote) {
                Tally::Pending => continue,
                Tally::Propose(candidate) => {
                    let ballot = proposer.ballot().clone();
                    let own = node.acceptor.accept(version, &ballot, &candidate);
                    if let Some(own) = own {
                        proposer.count(&self.ids[node.index], version, &ballot, &own);
                    }
                    sends.push(Message::Accept {
                        version,
                        ballot,
                        candidate,
                    });
                    node.proposer = Some(proposer);
                }
                Tally::Chosen(leader) => {
                    node.acceptor.decide(version);
                    sends.push(Message::Elected { version, leader });
                }
                Tally::Lost => {}
            }
            return;
        }
        node.proposer = Some(proposer);
    }

    fn trace(&self, mut index: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while index != 0 {
            let (parent, node, act) = self.parents[index];
            let name = &self.ids[usize::from(node)];
            lines.push(match act {
                Act::Receive(message) => {
                    format!("{name} receives {:?}", self.messages[usize::from(message)])
                }
                act => format!("{name}: {act:?}"),
            });
            index = parent as usize;
        }
        lines.reverse();
        lines
    }
}

impl Message {
    fn counter(&self) -> u64 {
        match self {
            Self::Prepare { ballot, .. }
            | Self::Accept { ballot, .. }
            | Self::Vote { ballot, .. } => ballot.counter,
            Self::Elected { .. } => 0,
        }
    }
}

impl Node {
    /// A round is open in memory alone; votes are on disk. `None` if nothing is lost.
    fn lose_volatile(&mut self, votes_too: bool) -> Option<()> {
        let reported = self.reported.as_mut().map(std::mem::take);
        let reported = reported.is_some_and(|reported| reported.iter().any(Option::is_some));
        let open = self.proposer.take().is_some() || reported;
        if votes_too {
            let decided = self.acceptor.decided();
            self.acceptor = Acceptor::default();
            self.acceptor.decide(decided);
        }
        (open || votes_too).then_some(())
    }

    /// Votes again once all others have reported their votes.
    fn recover(&mut self, bug: Option<Bug>) {
        let Some(reported) = &self.reported else {
            return;
        };
        let others: Vec<&Acceptor> = reported.iter().flatten().collect();
        let enough = match bug {
            Some(Bug::RecoversAfterOne) => 1,
            _ => VOTERS - 1,
        };
        if others.len() < enough {
            return;
        }
        self.acceptor.recover(others.into_iter());
        let whole = self.acceptor.clone();
        let version = whole.open_version();
        let mut part = Acceptor::default();
        part.decide(whole.decided());
        match bug {
            Some(Bug::RecoveryForgetsPromised) => {
                if let Some(last) = whole.accepted() {
                    part.accept(version, &last.ballot, &last.candidate);
                }
                self.acceptor = part;
            }
            Some(Bug::RecoveryForgetsAccepted) => {
                if let Some(promised) = whole.promised() {
                    part.prepare(version, promised);
                }
                self.acceptor = part;
            }
            _ => {}
        }
        self.reported = None;
    }

    fn vote(&self, version: u64, ballot: Ballot, vote: Option<Vote>) -> Option<Message> {
        // Refusals change only the set of refusals: a proposer may give up at any moment anyway.
        let vote = vote.filter(|vote| matches!(vote, Vote::Promised(_) | Vote::Accepted))?;
        Some(Message::Vote {
            voter: self.index,
            version,
            ballot,
            vote,
        })
    }
}
