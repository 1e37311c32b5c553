//! The reaction of one node to one input: the production rules, called once for each pair.

use std::collections::{BTreeSet, HashMap};

use room_core::election::record::{Record, Stamp};
use room_core::election::rules::{RoleKind, Rules};
use room_core::id::PeerId;
use room_core::quorum::{Quorum, Roster};

use super::Scope;
use crate::trace::Brief;

/// No change and no message.
pub(crate) const NOTHING: u32 = 1;
const UNKNOWN: u32 = 0;

/// An input of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Its timer fires: it campaigns, whatever it was.
    Campaign,
    /// Its host names this node as leader.
    SetLeader(u8),
    /// It crashes and starts again.
    Restart,
    /// It loses this node.
    Lose(u8),
    /// This message arrives.
    Receive(u16),
    /// It leads, receives this record and campaigns above it in place.
    GoAbove(u16),
}

/// A sent message. A control message carries its sender's record, and a receiver may adopt any record, so the record stands for
/// heartbeats, assignments, nacks and Hellos alike.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Message {
    /// A node holds this record.
    Record(Record),
    Request {
        candidate: usize,
        life: usize,
        round: u64,
        stamp: Stamp,
    },
    /// An answer reaches only the incarnation that asked (G9).
    Answer {
        voter: usize,
        voter_life: usize,
        candidate: usize,
        life: usize,
        round: u64,
        stamp: Stamp,
        granted: bool,
    },
}

/// A node: the production rules, and the explorer's own records to judge them by.
#[derive(Debug, Clone)]
struct Member {
    node: usize,
    life: usize,
    /// Number of its host's `SetLeader` calls.
    calls: usize,
    rules: Rules,
    /// Nodes that it has lost.
    lost: BTreeSet<usize>,
    /// Nodes that it saw when its last round began.
    asked: BTreeSet<usize>,
    /// Nodes whose votes for that round's term arrived.
    votes: BTreeSet<usize>,
}

impl Member {
    /// Everything that its future depends on: all but the votes of a round that is over.
    fn key(&self) -> String {
        let rules = &self.rules;
        let held = (rules.role(), rules.record(), rules.voted_for());
        let open = (rules.campaign(), rules.rounds());
        let seen = (&self.lost, &self.asked, &self.votes);
        let spent = (self.node, self.life, self.calls);
        format!("{spent:?} {held:?} {open:?} {seen:?}")
    }
}

/// A node's reaction to an input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) next: u16,
    pub(crate) sends: [Option<u16>; 2],
    pub(crate) broken: Option<&'static str>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    scope: &'a Scope,
    ids: Vec<PeerId>,
    quorum: Quorum,
    members: Vec<Member>,
    numbers: HashMap<String, u16>,
    /// The (epoch, term) under which it leads, by a number; 0 if it does not.
    leads: Vec<u32>,
    stamps: Vec<Stamp>,
    messages: Vec<Message>,
    message_numbers: HashMap<String, u16>,
    outcomes: Vec<Outcome>,
    /// By node state: outcomes of inputs other than messages, of messages, of campaigns in place.
    own: Vec<[u32; OWN_ACTS]>,
    received: Vec<Vec<u32>>,
    went_above: Vec<Vec<u32>>,
}

/// Campaign, restart, and `SetLeader` and loss for each node.
const OWN_ACTS: usize = 2 + 2 * super::MAX_NODES;

impl<'a> Members<'a> {
    pub(crate) fn new(scope: &'a Scope) -> Self {
        let ids = ["a", "b", "c", "d"].map(|name| PeerId::new(name).expect("a name"));
        let nothing = Outcome {
            next: 0,
            sends: [None; 2],
            broken: None,
        };
        Self {
            scope,
            quorum: match scope.voters {
                None => Quorum::Dynamic,
                Some(voters) => {
                    let voters = ids[..voters].iter().map(|id| (id.clone(), None));
                    Quorum::Static(Roster::new(voters).expect("1 to 4 names"))
                }
            },
            ids: ids.into(),
            members: Vec::new(),
            numbers: HashMap::new(),
            leads: Vec::new(),
            stamps: Vec::new(),
            messages: Vec::new(),
            message_numbers: HashMap::new(),
            // Their numbers are `UNKNOWN` and `NOTHING`.
            outcomes: vec![nothing; 2],
            own: Vec::new(),
            received: Vec::new(),
            went_above: Vec::new(),
        }
    }

    /// The first incarnation of a node.
    pub(crate) fn born(&mut self, node: usize) -> u16 {
        let rules = self.empty(node);
        self.number(Member {
            node,
            life: 0,
            calls: 0,
            rules,
            lost: BTreeSet::new(),
            asked: BTreeSet::new(),
            votes: BTreeSet::new(),
        })
    }

    fn empty(&self, node: usize) -> Rules {
        Rules::new(
            self.ids[node].clone(),
            self.quorum.clone(),
            self.scope.guards,
        )
    }

    pub(crate) fn restarts(&self, member: u16) -> usize {
        self.members[member as usize].life
    }

    pub(crate) fn losses(&self, member: u16) -> usize {
        self.members[member as usize].lost.len()
    }

    pub(crate) fn calls(&self, member: u16) -> usize {
        self.members[member as usize].calls
    }

    /// Whether a message may still affect these nodes or their later states. Records never decrease and rounds are not opened
    /// again; every step checks both.
    pub(crate) fn may_matter(&self, members: &[u16], message: u16) -> bool {
        let mut members = members.iter().map(|number| &self.members[*number as usize]);
        match &self.messages[message as usize] {
            Message::Record(record) => members.any(|member| record > member.rules.record()),
            Message::Request {
                candidate, stamp, ..
            } => {
                self.counts(*candidate)
                    && members.any(|member| {
                        let own = member.rules.record();
                        let votes = own.leader.is_none() && member.rules.voted_for().is_none();
                        member.node != *candidate
                            && (*stamp > own.stamp || *stamp == own.stamp && votes)
                    })
            }
            Message::Answer {
                voter,
                candidate,
                life,
                round,
                granted,
                ..
            } => members.any(|member| {
                let open = member.rules.campaign().filter(|open| open.round == *round);
                let asker = (member.node, member.life) == (*candidate, *life);
                let voter = &self.ids[*voter];
                asker
                    && open.is_some_and(|open| {
                        let counted = open.granted.contains(voter);
                        !counted && (*granted || !open.refused.contains(voter))
                    })
            }),
        }
    }

    pub(crate) fn outcome(&self, outcome: u32) -> Outcome {
        self.outcomes[outcome as usize]
    }

    /// The reaction of the node with this state to the input.
    pub(crate) fn act(&mut self, node: usize, member: u16, act: Act) -> u32 {
        debug_assert_eq!(self.members[member as usize].node, node);
        let known = *self.memory(member, act);
        if known != UNKNOWN {
            return known;
        }
        let outcome = self.ask(member, act);
        let number =
            if outcome.next == member && outcome.sends == [None; 2] && outcome.broken.is_none() {
                NOTHING
            } else {
                self.outcomes.push(outcome);
                u32::try_from(self.outcomes.len() - 1).expect("too many outcomes")
            };
        *self.memory(member, act) = number;
        number
    }

    fn memory(&mut self, member: u16, act: Act) -> &mut u32 {
        let member = member as usize;
        let by_message = |memory: &'_ mut Vec<u32>, message: u16| {
            let at = message as usize;
            if memory.len() <= at {
                memory.resize(at + 1, UNKNOWN);
            }
            at
        };
        match act {
            Act::Campaign => &mut self.own[member][0],
            Act::Restart => &mut self.own[member][1],
            Act::SetLeader(target) => &mut self.own[member][2 + target as usize],
            Act::Lose(other) => &mut self.own[member][2 + super::MAX_NODES + other as usize],
            Act::Receive(message) => {
                let memory = &mut self.received[member];
                let at = by_message(memory, message);
                &mut memory[at]
            }
            Act::GoAbove(message) => {
                let memory = &mut self.went_above[member];
                let at = by_message(memory, message);
                &mut memory[at]
            }
        }
    }

    fn ask(&mut self, number: u16, act: Act) -> Outcome {
        let before = self.members[number as usize].clone();
        let mut after = before.clone();
        let sent = match act {
            Act::Campaign => {
                if before.rules.role() == RoleKind::Leader {
                    after.rules.step_down();
                }
                let above = before.rules.record().stamp.clone();
                self.campaign(&mut after, &above)
            }
            Act::GoAbove(message) => match &self.messages[message as usize] {
                Message::Record(record)
                    if before.rules.role() == RoleKind::Leader
                        && record > before.rules.record() =>
                {
                    let above = record.stamp.clone();
                    self.campaign(&mut after, &above)
                }
                _ => None,
            },
            Act::SetLeader(target) => {
                // It knows the minimum of other epochs: then numbers collide most.
                let target = &self.ids[target as usize];
                after.rules.assign(target, None, 0);
                after.calls += 1;
                None
            }
            Act::Restart => {
                after.life += 1;
                after.rules = self.restarted(&before);
                after.asked.clear();
                after.votes.clear();
                None
            }
            Act::Lose(other) => {
                after.lost.insert(other as usize);
                None
            }
            Act::Receive(message) => self.receive(&mut after, &self.messages[message as usize]),
        };
        let broken = self.judge(&before, &after, act, sent.as_ref());
        if after.rules.campaign().is_none() {
            after.asked.clear();
            after.votes.clear();
        }
        let record = after.rules.record();
        let is_new = record != before.rules.record() && after.life == before.life;
        let record = (is_new && self.counts(before.node)).then(|| Message::Record(record.clone()));
        Outcome {
            sends: [record, sent].map(|sent| sent.map(|sent| self.message(sent))),
            next: self.number(after),
            broken,
        }
    }

    /// A node sends nothing before it is on disk, so the disk has the node's state.
    fn restarted(&self, before: &Member) -> Rules {
        let mut rules = self.empty(before.node);
        if self.keeps_its_state() {
            let voted_for = before.rules.voted_for().cloned();
            rules.restore(before.rules.record().clone(), voted_for);
        }
        rules
    }

    fn campaign(&self, member: &mut Member, above: &Stamp) -> Option<Message> {
        if above.term >= self.scope.terms {
            return None;
        }
        let others = (0..self.scope.nodes).filter(|other| *other != member.node);
        member.asked = others
            .filter(|other| !member.lost.contains(other))
            .collect();
        member.votes.clear();
        let electorate = match self.quorum.roster() {
            Some(roster) => roster.electorate(),
            None => self.linked(member),
        };
        member.rules.begin_vote(electorate, above);
        Some(Message::Request {
            candidate: member.node,
            life: member.life,
            round: member.rules.campaign().map_or(0, |open| open.round),
            stamp: member.rules.record().stamp.clone(),
        })
        .filter(|_| member.rules.campaign().is_some())
    }

    /// Whether any node accepts a node's messages: with a static quorum only the roster's (C2).
    fn counts(&self, node: usize) -> bool {
        self.scope.outsiders_count || self.quorum.admits(&self.ids[node])
    }

    fn linked(&self, member: &Member) -> BTreeSet<PeerId> {
        let others = (0..self.scope.nodes).filter(|other| *other != member.node);
        let linked = others.filter(|other| !member.lost.contains(other));
        linked.map(|other| self.ids[other].clone()).collect()
    }

    fn receive(&self, member: &mut Member, message: &Message) -> Option<Message> {
        match message {
            Message::Record(record) => {
                member.rules.adopt(record, true);
                None
            }
            Message::Request {
                candidate,
                life,
                round,
                stamp,
            } if *candidate != member.node && self.counts(*candidate) => {
                let granted = member.rules.vote(&self.ids[*candidate], stamp);
                Some(Message::Answer {
                    voter: member.node,
                    voter_life: member.life,
                    candidate: *candidate,
                    life: *life,
                    round: *round,
                    stamp: stamp.clone(),
                    granted,
                })
                .filter(|_| granted || self.scope.refusals)
            }
            Message::Answer {
                voter,
                candidate,
                life,
                round,
                stamp,
                granted,
                ..
            } if *candidate == member.node
                && (*life == member.life || !self.scope.guards.restart_grace) =>
            {
                if *granted && *stamp == member.rules.record().stamp {
                    member.votes.insert(*voter);
                }
                let linked = self.linked(member);
                member.rules.refresh_electorate(&linked);
                member.rules.count_vote(*round, &self.ids[*voter], *granted);
                None
            }
            Message::Request { .. } | Message::Answer { .. } => None,
        }
    }

    /// Checks the visible state of one node.
    fn judge(
        &self,
        before: &Member,
        after: &Member,
        act: Act,
        sent: Option<&Message>,
    ) -> Option<&'static str> {
        let (old, new) = (before.rules.record(), after.rules.record());
        let forgets = act == Act::Restart && !self.keeps_its_state();
        let revoked = old.stamp == new.stamp
            && before.rules.voted_for().is_some()
            && before.rules.voted_for() != after.rules.voted_for();
        let unfounded = match sent {
            Some(Message::Answer {
                granted: true,
                candidate,
                stamp,
                ..
            }) => {
                let voted_for = after.rules.voted_for();
                voted_for != Some(&self.ids[*candidate]) || *stamp != new.stamp
            }
            _ => false,
        };
        let leads = self.leads_under(after);
        let began = leads.is_some() && leads != self.leads_under(before);
        let falls = [
            ("P3", new < old && !forgets),
            ("P4", revoked && !forgets || unfounded),
            ("P5", began && !new.assigned && !self.is_majority(after)),
        ];
        let mut falls = falls.into_iter().filter(|(_, falls)| *falls);
        let found = falls.find(|(property, _)| self.scope.looks_for(property));
        found.map(|(property, _)| property)
    }

    fn keeps_its_state(&self) -> bool {
        self.scope.keeps_its_state()
    }

    /// Whether its voters among the nodes that it asked are a majority of them.
    fn is_majority(&self, member: &Member) -> bool {
        let voters = member.votes.intersection(&member.asked).copied();
        let voters = voters.chain([member.node]);
        let votes = voters.filter(|voter| self.quorum.admits(&self.ids[*voter]));
        votes.count() >= self.quorum.votes_needed(member.asked.len() + 1)
    }

    fn leads_under<'m>(&self, member: &'m Member) -> Option<&'m Stamp> {
        let record = member.rules.record();
        let named = record.leader.as_ref() == Some(&self.ids[member.node]);
        (member.rules.role() == RoleKind::Leader && named).then_some(&record.stamp)
    }

    /// The property that a message breaks, together with the earlier ones.
    pub(crate) fn conflict(&self, message: u16, before: &[u16]) -> Option<&'static str> {
        let new = &self.messages[message as usize];
        let old = before.iter().map(|old| &self.messages[*old as usize]);
        old.into_iter().find_map(|old| {
            self.contradicts(old, new)
                .filter(|p| self.scope.looks_for(p))
        })
    }

    fn contradicts(&self, old: &Message, new: &Message) -> Option<&'static str> {
        match (old, new) {
            (Message::Record(old), Message::Record(new)) => {
                let claims = old.leader.is_some() && new.leader.is_some();
                let differ = (&old.leader, old.assigned) != (&new.leader, new.assigned);
                // Parts of a room that elect apart may both elect in a term.
                let fixed = self.scope.voters.is_some();
                let elected = !old.assigned && !new.assigned;
                let property = if elected { "P1" } else { "C3" };
                (fixed && claims && differ && old.stamp == new.stamp).then_some(property)
            }
            _ => {
                let (voter, stamp, candidate) = self.vote_of(new)?;
                let (same_voter, same_stamp, other) = self.vote_of(old)?;
                let twice = voter == same_voter && stamp == same_stamp && candidate != other;
                twice.then_some("P4")
            }
        }
    }

    /// The voter and the candidate of this message; without a disk every incarnation votes for itself.
    fn vote_of<'m>(&self, message: &'m Message) -> Option<((usize, usize), &'m Stamp, usize)> {
        let voter =
            |node: usize, life: usize| (node, if self.keeps_its_state() { 0 } else { life });
        match message {
            Message::Request {
                candidate,
                life,
                stamp,
                ..
            } => Some((voter(*candidate, *life), stamp, *candidate)),
            Message::Answer {
                voter: node,
                voter_life,
                candidate,
                stamp,
                granted: true,
                ..
            } => Some((voter(*node, *voter_life), stamp, *candidate)),
            Message::Record(_) | Message::Answer { .. } => None,
        }
    }

    /// Two nodes that lead at once under one (epoch, term).
    pub(crate) fn rivals(&self, members: &[u16]) -> Option<&'static str> {
        self.scope.voters?;
        let leads = |member: &u16| self.leads[*member as usize];
        let twice = members.iter().enumerate().any(|(at, member)| {
            let stamp = leads(member);
            stamp != 0 && members[at + 1..].iter().any(|other| leads(other) == stamp)
        });
        (twice && self.scope.looks_for("C3")).then_some("C3")
    }

    fn number(&mut self, member: Member) -> u16 {
        let key = member.key();
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = u16::try_from(self.members.len()).expect("too many states of one node");
        let leads = self.leads_under(&member).cloned();
        let leads = leads.map_or(0, |stamp| {
            let at = self.stamps.iter().position(|known| *known == stamp);
            let at = at.unwrap_or_else(|| {
                self.stamps.push(stamp);
                self.stamps.len() - 1
            });
            at as u32 + 1
        });
        self.numbers.insert(key, number);
        self.members.push(member);
        self.leads.push(leads);
        self.own.push([UNKNOWN; OWN_ACTS]);
        self.received.push(Vec::new());
        self.went_above.push(Vec::new());
        number
    }

    fn message(&mut self, message: Message) -> u16 {
        let key = format!("{message:?}");
        if let Some(number) = self.message_numbers.get(&key) {
            return *number;
        }
        let number = u16::try_from(self.messages.len()).expect("too many messages");
        self.message_numbers.insert(key, number);
        self.messages.push(message);
        number
    }

    /// The nodes' states.
    pub(crate) fn describe(&self, members: &[u16]) -> String {
        let texts: Vec<String> = members.iter().map(|member| self.show(*member)).collect();
        texts.join("; ")
    }

    /// A step of a trace.
    pub(crate) fn line(&self, node: usize, act: Act, after: u16) -> String {
        let me = &self.ids[node];
        let act = match act {
            Act::Campaign => "campaigns".to_owned(),
            Act::SetLeader(target) => format!("sets {} as leader", self.ids[target as usize]),
            Act::Restart => "restarts".to_owned(),
            Act::Lose(other) => format!("loses {}", self.ids[other as usize]),
            Act::Receive(message) => format!("receives {}", self.describe_message(message)),
            Act::GoAbove(message) => format!("goes above {}", self.describe_message(message)),
        };
        format!("{me} {act}: {}", self.show(after))
    }

    fn describe_message(&self, message: u16) -> String {
        match &self.messages[message as usize] {
            Message::Record(record) => format!("of {}", Brief(record)),
            Message::Request {
                candidate, stamp, ..
            } => format!(
                "{} ask for its vote of term {}",
                self.ids[*candidate], stamp.term
            ),
            Message::Answer { voter, granted, .. } => {
                let answer = if *granted { "grant" } else { "refuse" };
                format!("{} {answer} its vote", self.ids[*voter])
            }
        }
    }

    fn show(&self, number: u16) -> String {
        let member = &self.members[number as usize];
        let rules = &member.rules;
        let voted_for = rules.voted_for().map_or("none", PeerId::as_str);
        format!(
            "{} is {:?}, record {}, voted for {voted_for}",
            self.ids[member.node],
            rules.role(),
            Brief(rules.record())
        )
    }
}
