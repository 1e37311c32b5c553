//! Scenarios of public Raft libraries, shown by a few strategies without links: a message takes no time, and is lost
//! where the test cuts. Each test's name begins with the id of its row in `docs/scenarios.md`.

mod assignments;
mod leases;
mod priorities;
mod quorums;
mod rounds;
mod terms;
mod timers;
mod transfers;
mod votes;

use std::collections::BTreeMap;

use super::*;
use crate::election::bound::WallClock;
use crate::election::extra::Durable;
use crate::election::guards::Guards;
use crate::election::policy::MergePolicy;
use crate::election::raft::wire::ElectionMessage;
use crate::election::record::Stamp;
use crate::election::rules::RoleKind;
use crate::quorum::Quorum;

const MIN: Duration = Duration::from_millis(1500);
const MAX: Duration = Duration::from_millis(3000);
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Maximum number of inputs of one test: more indicate a loop.
const MAX_DELIVERIES: usize = 100_000;

/// A link to `peer` is up, with both ends' descriptions of their sides.
fn link_up(peer: PeerId, ours: Side, theirs: Side) -> InputOf<Raft> {
    ElectionInput::PeerUp {
        peer,
        key: Fingerprint([0; 32]),
        ours,
        theirs,
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1000)
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("valid")
}

fn life(number: usize) -> Incarnation {
    Incarnation {
        started_us: number as u64,
        random: 0,
    }
}

fn term(term: u64) -> Stamp {
    Stamp {
        term,
        ..Stamp::default()
    }
}

fn led_by(leader: &str, at: u64) -> Record {
    Record {
        leader: Some(id(leader)),
        leader_key: Some(Fingerprint([0; 32])),
        ..Record::undecided(term(at))
    }
}

fn leads(leader: &str, at: u64) -> Pulse {
    Pulse::Leads {
        record: led_by(leader, at),
        weight: 1,
        led_ms: 0,
        election_timeout_min_ms: 1500,
    }
}

/// A node that starts for the first time.
fn start(name: &str, incarnation: Incarnation) -> Start<Saved> {
    Start {
        key: Fingerprint([0; 32]),
        me: id(name),
        incarnation,
        config: ElectionConfig {
            heartbeat_timeout: MIN,
            election_timeout_min: MIN,
            election_timeout_max: MAX,
            ..ElectionConfig::for_tests()
        },
        saved: None,
        clock: WallClock::new(Time::ZERO, Duration::ZERO),
        seed: 0,
    }
}

/// Content of a message between two nodes.
#[derive(Debug, Clone)]
enum Content {
    Message(Stamp, ElectionMessage),
    Pulse(Pulse),
}

struct One {
    raft: Raft,
    view: View,
    outcomes: Vec<AssignOutcome>,
}

/// Linked strategies.
struct Group {
    now: Time,
    members: BTreeMap<PeerId, One>,
    /// Directions in which all messages are lost.
    cut: BTreeSet<(PeerId, PeerId)>,
    queue: VecDeque<(PeerId, PeerId, Content)>,
    /// All messages sent, lost or not.
    sent: Vec<(PeerId, PeerId, Content)>,
}

impl Group {
    /// All of `names`, linked with each other since their start at 0; no timer has fired.
    fn of(names: &[&str]) -> Self {
        Self::with(names, |_, _| {})
    }

    fn with(names: &[&str], change: impl Fn(&str, &mut Start<Saved>)) -> Self {
        Self::new(names, names, change)
    }

    /// One node alone, whose linked `others` are played by the test.
    fn one(me: &str, others: &[&str]) -> Self {
        Self::new(&[me], &[&[me], others].concat(), |_, _| {})
    }

    fn new(real: &[&str], linked: &[&str], change: impl Fn(&str, &mut Start<Saved>)) -> Self {
        let mut starts: BTreeMap<&str, Start<Saved>> = BTreeMap::new();
        for name in linked {
            let mut start = start(name, life(0));
            change(name, &mut start);
            starts.insert(name, start);
        }
        for (number, start) in starts.values_mut().enumerate() {
            start.incarnation = life(number);
        }
        let voters: BTreeMap<PeerId, Voter> = starts
            .values()
            .map(|start| {
                let voter = Voter {
                    key: Fingerprint([0; 32]),
                    incarnation: start.incarnation,
                    eligible: start.config.eligible,
                    priority: start.config.priority,
                    rtt: None,
                };
                (start.me.clone(), voter)
            })
            .collect();
        let mut group = Self {
            now: at(0),
            members: BTreeMap::new(),
            cut: BTreeSet::new(),
            queue: VecDeque::new(),
            sent: Vec::new(),
        };
        for (number, name) in real.iter().enumerate() {
            let mut view = View {
                voters: voters.clone(),
                ..View::default()
            };
            view.voters.remove(&id(name)).expect("it is linked");
            let start = Start {
                seed: number as u64,
                ..starts[name].clone()
            };
            let raft = Raft::new(group.now, start);
            let outcomes = Vec::new();
            group.members.insert(
                id(name),
                One {
                    raft,
                    view,
                    outcomes,
                },
            );
        }
        for name in real {
            for peer in linked.iter().filter(|peer| *peer != name) {
                let [ours, theirs] = [name, name].map(|name| group.side(name));
                let peer = id(peer);
                group.feed(name, link_up(peer, ours, theirs));
            }
        }
        group
    }

    fn side(&self, name: &str) -> Side {
        let one = self.get(name);
        one.raft.side(self.now, &one.view)
    }

    fn get(&self, name: &str) -> &One {
        &self.members[&id(name)]
    }

    fn raft(&self, name: &str) -> &Raft {
        &self.get(name).raft
    }

    fn role(&self, name: &str) -> RoleKind {
        self.raft(name).rules().role()
    }

    fn term(&self, name: &str) -> u64 {
        self.raft(name).leadership().record.term()
    }

    fn voted_for(&self, name: &str) -> Option<&PeerId> {
        self.raft(name).rules().voted_for()
    }

    /// The leader that `name` shows.
    fn shows(&self, name: &str) -> Option<&str> {
        self.raft(name).leader().map(PeerId::as_str)
    }

    fn names(&self) -> Vec<String> {
        self.members.keys().map(|id| id.to_string()).collect()
    }

    /// Asserts that all nodes show `leader`, which leads, in this term.
    #[track_caller]
    fn assert_led_by(&self, leader: &str, at: u64) {
        for name in self.names() {
            assert_eq!(self.shows(&name), Some(leader), "at {name}");
            assert_eq!(self.term(&name), at, "the term of {name}");
            let leads = self.role(&name) == RoleKind::Leader;
            assert_eq!(leads, name == leader, "the role of {name}");
        }
    }
}

/// Inputs.
impl Group {
    /// Feeds one input; its outputs are queued.
    fn try_feed(
        &mut self,
        name: &str,
        input: impl Into<InputOf<Raft>>,
    ) -> Result<(), ElectionError> {
        let now = self.now;
        let one = self.members.get_mut(&id(name)).expect("it is played here");
        let result = one.raft.handle(now, &one.view, input.into());
        self.carry_out(name);
        result
    }

    /// Queues its messages.
    fn carry_out(&mut self, name: &str) {
        let now = self.now;
        let one = self.members.get_mut(&id(name)).expect("it is played here");
        let mut kept = None;
        while let Some(output) = one.raft.poll_output() {
            match output {
                ElectionOutput::Send { to, message } => {
                    let content = Content::Message(message.stamp, message.message);
                    self.queue.push_back((id(name), to, content));
                }
                ElectionOutput::Question(_) => {}
                ElectionOutput::HeartbeatNow => {
                    let pulse = one.raft.own_pulse(now, &one.view);
                    for to in one.view.voters.keys() {
                        let content = Content::Pulse(pulse.clone());
                        self.queue.push_back((id(name), to.clone(), content));
                    }
                }
                ElectionOutput::SetLeaderResult { outcome, .. } => one.outcomes.push(outcome),
                ElectionOutput::Extra(Extra::Persist { number, .. }) => kept = Some(number),
                ElectionOutput::Extra(other) => panic!("no state file is lost here: {other:?}"),
            }
        }
        // The disk is as fast as the links.
        if let Some(number) = kept {
            one.raft.persisted(now, &one.view, number);
            self.carry_out(name);
        }
    }

    fn feed(&mut self, name: &str, input: impl Into<InputOf<Raft>>) {
        self.try_feed(name, input).expect("it is not refused");
    }

    /// Delivers a message of `from` to `to`; the answers are queued.
    fn receive(&mut self, to: &str, from: &str, content: Content) {
        let from = id(from);
        let input = match content {
            Content::Message(stamp, message) => ElectionInput::Message {
                from,
                message: Stamped::new(stamp, message),
            },
            Content::Pulse(pulse) => ElectionInput::Pulse {
                from,
                pulse: pulse.into(),
            },
        };
        self.feed(to, input);
    }

    /// Delivers queued messages, and the answers to them, until none is left.
    fn deliver(&mut self) {
        for _ in 0..MAX_DELIVERIES {
            let Some((from, to, content)) = self.queue.pop_front() else {
                return;
            };
            self.sent.push((from.clone(), to.clone(), content.clone()));
            self.arrives(from, to, content);
        }
        panic!("they never stop talking");
    }

    /// Delivers a message, unless its direction is cut.
    fn arrives(&mut self, from: PeerId, to: PeerId, content: Content) {
        let linked = self
            .members
            .get(&to)
            .is_some_and(|one| one.view.voters.contains_key(&from));
        if linked && !self.cut.contains(&(from.clone(), to.clone())) {
            self.receive(to.as_str(), from.as_str(), content);
        }
    }

    /// Takes the queued messages, undelivered.
    fn take_sent(&mut self) -> Vec<(PeerId, PeerId, Content)> {
        self.queue.drain(..).collect()
    }

    fn cut(&mut self, one: &str, other: &str) {
        self.cut.insert((id(one), id(other)));
        self.cut.insert((id(other), id(one)));
    }

    fn mend(&mut self) {
        self.cut.clear();
    }

    fn isolate(&mut self, name: &str) {
        for other in self.names() {
            if other != name {
                self.cut(name, &other);
            }
        }
    }

    /// Lets time pass without heartbeats and without timers.
    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn tick(&mut self, name: &str) {
        self.feed(name, Local::Tick);
    }

    /// Sends one heartbeat from each node to each, twice, so that leaders know their followers.
    fn heartbeats(&mut self) {
        for _ in 0..2 {
            for name in self.names() {
                let one = self.get(&name);
                let pulse = one.raft.own_pulse(self.now, &one.view);
                let peers: Vec<_> = one.view.voters.keys().cloned().collect();
                for to in peers {
                    let content = Content::Pulse(pulse.clone());
                    self.queue.push_back((id(&name), to, content));
                }
                let one = self.members.get_mut(&id(&name)).expect("just seen");
                let (now, view) = (self.now, &one.view);
                let sent = one.raft.handle(now, view, Local::HeartbeatSent.into());
                sent.expect("it is not refused");
            }
            self.deliver();
        }
    }

    /// Lets time pass with heartbeats and with all timers.
    fn live(&mut self, time: Duration) {
        let until = self.now + time;
        let mut heartbeat_at = self.now;
        loop {
            let due = self
                .members
                .iter()
                .filter_map(|(name, one)| Some((one.raft.next_deadline()?, name.clone())))
                .min();
            match due {
                Some((due, name)) if due <= heartbeat_at.min(until) => {
                    self.now = self.now.max(due);
                    self.tick(name.as_str());
                    self.deliver();
                }
                _ if heartbeat_at <= until => {
                    self.now = self.now.max(heartbeat_at);
                    self.heartbeats();
                    heartbeat_at = heartbeat_at + HEARTBEAT;
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// `name` notices that `peer` is silent, and drops the link.
    fn loses(&mut self, name: &str, peer: &str, why: DownReason) {
        let peer = id(peer);
        let one = self.members.get_mut(&id(name)).expect("it is played here");
        let voter = one.view.voters.remove(&peer).expect("it was linked");
        let incarnation = voter.incarnation;
        self.feed(
            name,
            Local::PeerDown {
                peer,
                incarnation,
                why,
            },
        );
    }

    /// Links two nodes again, with Hellos that show their sides.
    fn links(&mut self, one: &str, other: &str) {
        let sides = [one, other].map(|name| self.side(name));
        for (index, (name, peer)) in [(one, other), (other, one)].into_iter().enumerate() {
            let number = self.members.keys().position(|member| *member == id(peer));
            let mine = self.members.get_mut(&id(name)).expect("it is played here");
            let voter = Voter {
                key: Fingerprint([0; 32]),
                incarnation: life(number.unwrap_or(0)),
                eligible: true,
                priority: 0,
                rtt: None,
            };
            mine.view.voters.insert(id(peer), voter);
            let [ours, theirs] = [&sides[index], &sides[1 - index]].map(Clone::clone);
            let peer = id(peer);
            self.feed(name, link_up(peer, ours, theirs));
        }
    }

    /// `peer` is dead: all others lose it.
    fn dies(&mut self, peer: &str, why: &DownReason) {
        self.members.remove(&id(peer));
        for name in self.names() {
            self.loses(&name, peer, why.clone());
        }
    }

    /// Lets time pass until the election timer of `name` fires; delivers nothing.
    fn times_out(&mut self, name: &str) {
        // Once more if the first deadline is the end of a starting node's grace.
        for _ in 0..3 {
            let due = self.raft(name).next_deadline().expect("its timer runs");
            self.now = self.now.max(due);
            self.tick(name);
            if self.role(name) != RoleKind::Follower {
                return;
            }
        }
        panic!("{name} does not campaign");
    }

    /// All nodes that hear `name` elect it.
    fn elect(&mut self, name: &str) {
        self.times_out(name);
        self.deliver();
        self.heartbeats();
        assert_eq!(self.role(name), RoleKind::Leader, "{name} is not elected");
    }
}

/// Requests for votes, and their answers.
impl Group {
    /// Whether `voter` gives `candidate` its vote in the term of `stamp`.
    fn asks_vote(
        &mut self,
        voter: &str,
        candidate: &str,
        stamp: Stamp,
        asked_by: Option<&str>,
    ) -> bool {
        let message = ElectionMessage::VoteRequest {
            round: 1,
            candidate: id(candidate),
            asked_by: asked_by.map(id),
        };
        self.asks(voter, candidate, Content::Message(stamp, message))
    }

    /// Whether `voter` would vote for `candidate` in that term.
    fn asks_pre_vote(&mut self, voter: &str, candidate: &str, asked: u64) -> bool {
        let message = ElectionMessage::PreVoteRequest {
            round: 1,
            candidate: id(candidate),
            term: asked,
        };
        let before = term(asked.saturating_sub(1));
        self.asks(voter, candidate, Content::Message(before, message))
    }

    fn asks(&mut self, voter: &str, candidate: &str, content: Content) -> bool {
        self.take_sent();
        self.receive(voter, candidate, content);
        let answers = self.take_sent();
        let mut granted = answers.iter().filter_map(|(_, to, content)| match content {
            Content::Message(
                _,
                ElectionMessage::VoteResponse { granted, .. }
                | ElectionMessage::PreVoteResponse { granted, .. },
            ) if *to == id(candidate) => Some(*granted),
            _ => None,
        });
        granted.next().expect("it is answered")
    }

    /// The answer of a voter that the test plays, to the open round of `candidate`.
    fn answers(&mut self, candidate: &str, voter: &str, granted: bool) {
        let rules = self.raft(candidate).rules();
        let round = rules.campaign().expect("a round is open").round;
        let voter = id(voter);
        let record = Record::undecided(rules.record().stamp.clone());
        let stamp = record.stamp.clone();
        let live = None;
        let message = match rules.role() {
            RoleKind::PreCandidate => ElectionMessage::PreVoteResponse {
                round,
                voter: voter.clone(),
                granted,
                record,
                live,
            },
            _ => ElectionMessage::VoteResponse {
                round,
                voter: voter.clone(),
                granted,
                record,
                live,
            },
        };
        self.receive(candidate, voter.as_str(), Content::Message(stamp, message));
    }
}

/// `m`, linked to `a`, `b`, `c` and `d`, in each of its roles: a follower of `a` whose lease is over, a pre-candidate,
/// a candidate of term 1, a leader of term 1 without answers.
fn in_every_role() -> [(RoleKind, Group); 4] {
    [
        RoleKind::Follower,
        RoleKind::PreCandidate,
        RoleKind::Candidate,
        RoleKind::Leader,
    ]
    .map(|role| (role, in_role(role)))
}

fn in_role(role: RoleKind) -> Group {
    let mut group = Group::one("m", &["a", "b", "c", "d"]);
    if role == RoleKind::Follower {
        group.now = at(3000);
        group.receive("m", "a", Content::Pulse(leads("a", 1)));
        group.wait(MIN);
    } else {
        group.times_out("m");
    }
    if matches!(role, RoleKind::Candidate | RoleKind::Leader) {
        group.answers("m", "a", true);
        group.answers("m", "b", true);
    }
    if role == RoleKind::Leader {
        group.answers("m", "a", true);
        group.answers("m", "b", true);
        group.wait(MIN);
    }
    group.take_sent();
    assert_eq!(group.role("m"), role);
    group
}

fn everyone() -> [&'static str; 5] {
    ["a", "b", "c", "d", "e"]
}
