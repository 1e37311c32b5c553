//! Whole nodes over virtual time: who enters, who is waited for, who is thrown out, who may lead.
//!
//! The wire here is the simplest that works: every message takes [`DELAY`] and none is lost, unless a node is
//! muted. `tests/sim` is where everything fails at once.

mod counters;
mod decrees;
mod entering;
mod gossip;
mod handover;
mod life;
mod reasons;
mod rows;
mod set_back;
mod standing;
mod static_quorum;

use std::collections::BTreeMap;

use super::*;
use crate::core::election::raft::Raft;
use crate::core::election::raft::saved::Saved;
use crate::core::election::raft::wire::{Beat, ElectionMessage, Pulse, Side, Stamped};
use crate::core::introductions::Dial;
use crate::core::quorum::Quorum;
use crate::core::wire::{Candidate, Verdict};

/// One way.
const DELAY: Duration = ms(10);
/// More than any election of these rooms takes.
const PATIENCE: Duration = ms(15_000);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a valid name")
}

/// A process: the newest life of a name, unless a test says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    key: Fingerprint,
    incarnation: Incarnation,
}

fn life(key: u8, started: u64) -> Life {
    Life {
        key: Fingerprint([key; 32]),
        incarnation: Incarnation {
            started_us: started,
            random: 0,
        },
    }
}

struct Place {
    node: Node,
    life: Life,
    address: SocketAddr,
    is_host: bool,
    /// Whether nothing gets in or out, while timers go on.
    muted: bool,
    events: Vec<(Time, Event)>,
    closes: Vec<(PeerId, LinkEnd)>,
    /// The answers to what was asked here, by ticket.
    answers: BTreeMap<u64, (Time, Verdict)>,
    /// What it said on the wire.
    said: Vec<(PeerId, Message)>,
    /// Whether it said that its state file was lost.
    is_stale: bool,
    /// Whose words it told to have dropped for a counter, and when.
    dropped: Vec<(Time, PeerId)>,
}

enum Happening {
    Message {
        link: u64,
        from: PeerId,
        to: PeerId,
        envelope: Box<Envelope>,
    },
    Datagram {
        link: u64,
        from: PeerId,
        to: PeerId,
        probe: Probe,
    },
    Closed {
        link: u64,
        from: PeerId,
        to: PeerId,
        why: LinkEnd,
    },
    Dialled {
        from: PeerId,
        dial: Dial,
    },
    Written {
        by: PeerId,
        life: Life,
        number: u64,
        state: Opaque,
    },
}

/// Who asked with a ticket: linked when it is accepted.
struct Arrival {
    newcomer: PeerId,
    life: Life,
    /// Whether its core dialled, and is to be told that it failed.
    by_core: bool,
}

struct Net {
    now: Time,
    places: BTreeMap<PeerId, Place>,
    /// The link that an end has.
    ends: BTreeMap<(PeerId, PeerId), u64>,
    queue: BTreeMap<(Time, u64), Happening>,
    arrivals: BTreeMap<u64, Arrival>,
    /// Whether the dials of cores reach anybody.
    dials_work: bool,
    config: NodeConfig,
    /// What is on the disk of each name, and how long a write takes; `None` is for ever.
    disks: BTreeMap<PeerId, (Incarnation, Opaque)>,
    write_time: Option<Duration>,
    counted: u64,
}

impl Net {
    fn new() -> Self {
        Self {
            now: Time::from_micros(1_000_000),
            places: BTreeMap::new(),
            ends: BTreeMap::new(),
            queue: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            dials_work: true,
            config: NodeConfig::for_tests(),
            disks: BTreeMap::new(),
            write_time: Some(ms(1)),
            counted: 0,
        }
    }

    /// A settled room in which the first leads.
    fn room(names: &[&str]) -> Self {
        let mut net = Self::new();
        net.fill(names);
        net
    }

    fn fill(&mut self, names: &[&str]) {
        self.start(names[0]);
        self.wait("the first leads alone", |net| net.leads(names[0]));
        for name in &names[1..] {
            self.start(name);
            self.enter(name, names[0]);
        }
        self.settle();
    }

    /// Waits for a mesh with one leader, and forgets what was said until then.
    fn settle(&mut self) {
        self.wait("a mesh with one leader", |net| net.is_settled());
        self.run(ms(1000));
        for place in self.places.values_mut() {
            place.events.clear();
            place.said.clear();
        }
    }

    /// What the state file of `name` says of its votes.
    fn votes_on_disk(&self, name: &str) -> Saved {
        let (_, state) = &self.disks[&id(name)];
        state.decode().expect("raft's")
    }

    fn is_settled(&self) -> bool {
        let mut leaders = self.places.values().map(|place| place.node.leader());
        let first = leaders.next().flatten();
        let others = self.places.len() - 1;
        let full = |place: &Place| place.node.membership().len() == others;
        first.is_some() && leaders.all(|leader| leader == first) && self.places.values().all(full)
    }

    /// A process of that name, with the key of its first letter.
    fn start(&mut self, name: &str) {
        let started = self.now.as_micros();
        self.start_as(name, life(name.as_bytes()[0], started));
    }

    fn start_as(&mut self, name: &str, life: Life) {
        let config = self.config.clone();
        self.start_with(name, life, config);
    }

    fn start_with(&mut self, name: &str, life: Life, mut config: NodeConfig) {
        let port = 7000 + u16::from(name.as_bytes()[0]);
        let address = SocketAddr::from(([10, 0, 0, 1], port));
        let mut life = life;
        // A process with the name of one that ran before takes up its state file.
        if let Some((before, state)) = self.disks.remove(&id(name)) {
            life.incarnation = life.incarnation.after(before);
            config.saved = Some(state);
        }
        config.key = life.key;
        config.addresses = vec![address];
        let is_host = config.election.policy.host_mode == HostMode::Host;
        self.counted += 1;
        let node = Node::new(id(name), life.incarnation, config, self.counted, self.now)
            .expect("its file is one of the room's strategy");
        if let Some(state) = node.first_state() {
            self.disks.insert(id(name), (life.incarnation, state));
        }
        let place = Place {
            node,
            life,
            address,
            is_host,
            muted: false,
            events: Vec::new(),
            closes: Vec::new(),
            answers: BTreeMap::new(),
            said: Vec::new(),
            is_stale: false,
            dropped: Vec::new(),
        };
        self.places.insert(id(name), place);
        self.drain(&id(name));
    }

    /// The process is gone; `told` its peers' transports or not.
    fn kill(&mut self, name: &str, told: bool) {
        self.places.remove(&id(name));
        let links: Vec<_> = self
            .ends
            .iter()
            .map(|(ends, link)| (ends.clone(), *link))
            .collect();
        for ((one, other), link) in links {
            if one == id(name) {
                self.ends.remove(&(one.clone(), other.clone()));
                if told {
                    self.later(Happening::Closed {
                        link,
                        from: one,
                        to: other,
                        why: LinkEnd::Closed,
                    });
                }
            }
        }
    }

    fn place(&self, name: &str) -> &Place {
        &self.places[&id(name)]
    }

    fn node(&self, name: &str) -> &Node {
        &self.place(name).node
    }

    fn place_mut(&mut self, name: &str) -> &mut Place {
        self.places.get_mut(&id(name)).expect("it runs")
    }

    fn mute(&mut self, name: &str, muted: bool) {
        self.place_mut(name).muted = muted;
    }

    fn leads(&self, name: &str) -> bool {
        self.node(name).is_leader()
    }

    fn has(&self, name: &str, peer: &str) -> bool {
        self.node(name).membership().get(&id(peer)).is_some()
    }

    fn is_absent(&self, name: &str, peer: &str) -> bool {
        self.node(name).absent().any(|absent| *absent == id(peer))
    }

    fn events(&self, name: &str) -> Vec<Event> {
        let events = self.place(name).events.iter();
        events.map(|(_, event)| event.clone()).collect()
    }

    fn told_at(&self, name: &str, event: &Event) -> Option<Time> {
        let mut events = self.place(name).events.iter();
        events.find(|(_, told)| told == event).map(|(at, _)| *at)
    }

    fn times(&self, name: &str, event: &Event) -> usize {
        self.events(name)
            .iter()
            .filter(|told| *told == event)
            .count()
    }

    /// What was said to `to`, heartbeats and peer lists aside.
    fn heard_from(&self, name: &str, to: &str) -> Vec<Message> {
        let said = self.place(name).said.iter();
        said.filter(|(peer, _)| *peer == id(to))
            .map(|(_, message)| message.clone())
            .collect()
    }

    /// The numbers of the host's open questions, in the order in which they came.
    fn requests(&self, name: &str) -> Vec<u64> {
        let events = self.place(name).events.iter();
        events
            .filter_map(|(_, event)| match event {
                Event::JoinRequest { request, .. } => Some(*request),
                _ => None,
            })
            .collect()
    }
}

/// What a test forges.
#[derive(Debug, Clone)]
enum Forged {
    Plain(Message),
    Election(ElectionMessage),
    Heartbeat(Beat),
}

impl Forged {
    fn encoded(self, stamp: Stamp, writes: u64) -> Message {
        match self {
            Self::Plain(message) => message,
            Self::Election(message) => Message::Election(Opaque::of(&Stamped {
                stamp,
                writes,
                message,
            })),
            Self::Heartbeat(beat) => Message::Heartbeat(Heartbeat {
                seq: 1 << 40,
                echo: None,
                pulse: Opaque::of(&Beat { writes, ..beat }),
            }),
        }
    }
}

impl From<Message> for Forged {
    fn from(message: Message) -> Self {
        Self::Plain(message)
    }
}

impl From<ElectionMessage> for Forged {
    fn from(message: ElectionMessage) -> Self {
        Self::Election(message)
    }
}

impl From<Pulse> for Forged {
    fn from(pulse: Pulse) -> Self {
        Self::Heartbeat(pulse.into())
    }
}

impl From<Beat> for Forged {
    fn from(beat: Beat) -> Self {
        Self::Heartbeat(beat)
    }
}

/// What a message says of the election of votes, if that is what it is.
fn elects(message: &Message) -> Option<ElectionMessage> {
    let Message::Election(part) = message else {
        return None;
    };
    Some(part.decode::<Stamped>().expect("of votes").message)
}

/// What is done to nodes.
impl Net {
    fn try_order(&mut self, name: &str, command: Command) -> Result<(), CommandError> {
        self.feed(&id(name), Input::Command(command))
    }

    fn order(&mut self, name: &str, command: Command) {
        self.try_order(name, command).expect("accepted");
    }

    /// A forged message of a member.
    fn forge(&mut self, from: &str, to: &str, message: impl Into<Forged>) {
        let stamp = self.node(from).record().stamp.clone();
        self.forge_at(from, to, stamp, 0, message);
    }

    /// The same under any stamp and with any write counter.
    fn forge_at(
        &mut self,
        from: &str,
        to: &str,
        stamp: Stamp,
        writes: u64,
        message: impl Into<Forged>,
    ) {
        let envelope = Envelope {
            incarnation: self.place(from).life.incarnation,
            message: message.into().encoded(stamp, writes),
        };
        let from = id(from);
        let _ = self.feed(&id(to), Input::Message { from, envelope });
    }

    /// Somebody who runs, or only claims to be, wants to be linked at `contact`.
    fn ask_as(&mut self, newcomer: &str, life: Life, contact: &str) -> u64 {
        self.ask_for(newcomer, life, contact, false)
    }

    fn ask(&mut self, newcomer: &str, contact: &str) -> u64 {
        let life = match self.places.get(&id(newcomer)) {
            Some(place) => place.life,
            None => life(newcomer.as_bytes()[0], self.now.as_micros()),
        };
        self.ask_as(newcomer, life, contact)
    }

    fn ask_for(&mut self, newcomer: &str, life: Life, contact: &str, by_core: bool) -> u64 {
        self.counted += 1;
        let ticket = self.counted;
        let newcomer = id(newcomer);
        let address = self.places.get(&newcomer).map(|place| place.address);
        let candidate = Candidate {
            entry: PeerEntry {
                id: newcomer.clone(),
                key: life.key,
                addresses: address.into_iter().collect(),
            },
            incarnation: life.incarnation,
            payload: b"hello".to_vec(),
        };
        self.arrivals.insert(
            ticket,
            Arrival {
                newcomer,
                life,
                by_core,
            },
        );
        let candidate = Box::new(candidate);
        let input = Input::Join {
            ticket,
            candidate,
            invited: false,
        };
        let _ = self.feed(&id(contact), input);
        ticket
    }

    /// The room's word, once it is there.
    fn verdict(&self, contact: &str, ticket: u64) -> Option<Verdict> {
        self.place(contact)
            .answers
            .get(&ticket)
            .map(|(_, verdict)| verdict.clone())
    }

    fn verdict_after(&mut self, time: Duration, contact: &str, ticket: u64) -> Option<Verdict> {
        self.run(time);
        self.verdict(contact, ticket)
    }

    fn enter(&mut self, newcomer: &str, contact: &str) {
        self.enter_after(DELAY * 4, newcomer, contact);
    }

    fn enter_after(&mut self, time: Duration, newcomer: &str, contact: &str) {
        let ticket = self.ask(newcomer, contact);
        self.run(time);
        assert_eq!(self.verdict(contact, ticket), Some(Verdict::Accepted));
    }

    /// What the contact's own state says to the newcomer, before the room is asked.
    fn check(&self, newcomer: &str, contact: &str) -> Result<(), AdmissionRefusal> {
        let place = self.place(newcomer);
        let hello = self.hello(newcomer);
        let contact = self.node(contact);
        contact.check_hello(self.now, &hello, place.life.key, false)
    }

    /// The same, where the newcomer's host asked for the link.
    fn check_by_hand(&self, newcomer: &str, contact: &str) -> Result<(), AdmissionRefusal> {
        let place = self.place(newcomer);
        let hello = Hello {
            by_hand: true,
            ..self.hello(newcomer)
        };
        let contact = self.node(contact);
        contact.check_hello(self.now, &hello, place.life.key, false)
    }

    fn hello(&self, name: &str) -> Hello {
        let place = self.place(name);
        let (eligible, priority) = place.node.standing_of_myself();
        Hello {
            features: 0,
            peer_id: id(name),
            incarnation: place.life.incarnation,
            generation: 0,
            losses: 0,
            by_hand: false,
            policy: place.node.policy(),
            listen_port: place.address.port(),
            max_message_size: 262_144,
            eligible,
            priority,
            side: place.node.side(self.now),
            join_payload: Vec::new(),
        }
    }

    /// Both ends are told of a link between them.
    fn link(&mut self, one: &str, other: &str) {
        for (me, peer) in [(one, other), (other, one)] {
            self.end_session_of_earlier_incarnation(me, peer);
        }
        self.counted += 1;
        let link = self.counted;
        let ups = [(one, other), (other, one)].map(|(me, peer)| {
            let (mine, its) = (self.place(me), self.place(peer));
            let (eligible, priority) = its.node.standing_of_myself();
            LinkUp {
                peer: id(peer),
                incarnation: its.life.incarnation,
                key: its.life.key,
                addresses: vec![its.address],
                eligible,
                priority,
                is_host: its.is_host,
                ours: mine.node.side(self.now),
                theirs: its.node.side(self.now),
            }
        });
        self.ends.insert((id(one), id(other)), link);
        self.ends.insert((id(other), id(one)), link);
        for (up, me) in ups.into_iter().zip([one, other]) {
            let _ = self.feed(&id(me), Input::LinkUp(Box::new(up)));
        }
    }

    fn end_session_of_earlier_incarnation(&mut self, me: &str, peer: &str) {
        let incarnation = self.place(peer).life.incarnation;
        let known = self.node(me).id_holder(&id(peer));
        if known.is_some_and(|(_, known)| known != incarnation) {
            let (peer, why) = (id(peer), LeftReason::Replaced);
            let _ = self.feed(&id(me), Input::SessionOver { peer, why });
        }
    }

    /// Both ends are told that their link ended.
    fn unlink(&mut self, one: &str, other: &str, why: LinkEnd) {
        for (me, peer) in [(one, other), (other, one)] {
            self.ends.remove(&(id(me), id(peer)));
        }
        for (me, peer) in [(one, other), (other, one)] {
            if self.places.contains_key(&id(me)) {
                let _ = self.feed(
                    &id(me),
                    Input::LinkDown {
                        peer: id(peer),
                        why,
                    },
                );
            }
        }
    }

    fn feed(&mut self, name: &PeerId, input: Input) -> Result<(), CommandError> {
        let now = self.now;
        let Some(place) = self.places.get_mut(name) else {
            return Ok(());
        };
        let result = place.node.handle(now, input);
        self.drain(name);
        result
    }

    fn drain(&mut self, name: &PeerId) {
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        let outputs: Vec<_> = std::iter::from_fn(|| place.node.poll_output()).collect();
        for output in outputs {
            self.carry_out(name, output);
        }
    }

    fn carry_out(&mut self, name: &PeerId, output: Output) {
        let now = self.now;
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        match output {
            Output::Persist { number, state } => {
                let life = place.life;
                if let Some(write_time) = self.write_time {
                    self.counted += 1;
                    let written = Happening::Written {
                        by: name.clone(),
                        life,
                        number,
                        state,
                    };
                    self.queue.insert((now + write_time, self.counted), written);
                }
            }
            Output::Transmit { to, envelope, .. } => {
                if !matches!(
                    envelope.message,
                    Message::Heartbeat(_) | Message::PeerList(_)
                ) {
                    place.said.push((to.clone(), envelope.message.clone()));
                }
                if let Some(link) = self.ends.get(&(name.clone(), to.clone())).copied() {
                    let from = name.clone();
                    let envelope = Box::new(envelope);
                    self.later(Happening::Message {
                        link,
                        from,
                        to,
                        envelope,
                    });
                }
            }
            Output::Datagram { to, probe } => {
                if let Some(link) = self.ends.get(&(name.clone(), to.clone())).copied() {
                    let from = name.clone();
                    self.later(Happening::Datagram {
                        link,
                        from,
                        to,
                        probe,
                    });
                }
            }
            Output::Dial(dial) => self.later(Happening::Dialled {
                from: name.clone(),
                dial,
            }),
            Output::Close { peer, why } => {
                place.closes.push((peer.clone(), why));
                self.hang_up(name, &peer, why);
            }
            Output::JoinAnswer { ticket, verdict } => {
                let known = place.answers.insert(ticket, (now, verdict.clone()));
                assert_eq!(known, None, "a question is answered once");
                self.answered(name, ticket, &verdict);
            }
            Output::Event(event) => {
                place.events.push((now, event.clone()));
                if let Event::Left(Left { peer, .. }) | Event::Reconnecting(peer) = event {
                    self.hang_up(name, &peer, LinkEnd::Closed);
                }
            }
            Output::StaleState { .. } => place.is_stale = true,
            Output::DialSeeds(_) => {}
            Output::Dropped { from, value, bound } => {
                assert!(value > bound);
                place.dropped.push((now, from));
            }
            Output::Departed => {
                let ends: Vec<_> = self
                    .ends
                    .keys()
                    .filter(|(me, _)| me == name)
                    .cloned()
                    .collect();
                for (_, peer) in ends {
                    self.hang_up(name, &peer, LinkEnd::Closed);
                }
            }
        }
    }

    fn hang_up(&mut self, me: &PeerId, peer: &PeerId, why: LinkEnd) {
        if let Some(link) = self.ends.remove(&(me.clone(), peer.clone())) {
            let (from, to) = (me.clone(), peer.clone());
            let why = match why {
                LinkEnd::Disconnected | LinkEnd::Silent => why,
                _ => LinkEnd::Closed,
            };
            self.later(Happening::Closed {
                link,
                from,
                to,
                why,
            });
        }
    }

    fn answered(&mut self, contact: &PeerId, ticket: u64, verdict: &Verdict) {
        let Some(arrival) = self.arrivals.remove(&ticket) else {
            return;
        };
        let newcomer = self.places.get(&arrival.newcomer);
        let runs = newcomer.is_some_and(|place| place.life == arrival.life);
        let linked = self
            .ends
            .contains_key(&(contact.clone(), arrival.newcomer.clone()));
        if *verdict == Verdict::Accepted && runs && !linked {
            self.link(contact.clone().as_str(), arrival.newcomer.as_str());
        } else if arrival.by_core {
            let peer = contact.clone();
            let _ = self.feed(
                &arrival.newcomer,
                Input::DialFailed {
                    peer,
                    permanent: false,
                },
            );
        }
    }
}

/// Time.
impl Net {
    fn later(&mut self, happening: Happening) {
        self.counted += 1;
        self.queue
            .insert((self.now + DELAY, self.counted), happening);
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let tick = self
                .places
                .iter()
                .filter_map(|(name, place)| Some((place.node.next_deadline()?, name.clone())))
                .min();
            let happens = self.queue.first_key_value().map(|(at, _)| *at);
            match (happens, tick) {
                (Some((at, number)), tick)
                    if at <= until && tick.as_ref().is_none_or(|(due, _)| at <= *due) =>
                {
                    self.now = self.now.max(at);
                    let happening = self.queue.remove(&(at, number)).expect("just seen");
                    self.happen(happening);
                }
                (_, Some((due, name))) if due <= until => {
                    self.now = self.now.max(due);
                    let _ = self.feed(&name, Input::Tick);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// Runs until `done`; how long it took.
    fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Duration {
        let from = self.now;
        while !done(self) {
            assert!(
                self.now.since(from) < PATIENCE,
                "it never came about: {what}"
            );
            self.run(ms(1));
        }
        self.now.since(from)
    }

    fn reaches(&self, link: u64, from: &PeerId, to: &PeerId) -> bool {
        let hears = |name| {
            self.places
                .get(name)
                .is_none_or(|place: &Place| !place.muted)
        };
        self.ends.get(&(to.clone(), from.clone())) == Some(&link) && hears(from) && hears(to)
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Message {
                link,
                from,
                to,
                envelope,
            } => {
                if self.reaches(link, &from, &to) {
                    let envelope = *envelope;
                    let _ = self.feed(&to, Input::Message { from, envelope });
                }
            }
            Happening::Datagram {
                link,
                from,
                to,
                probe,
            } => {
                if self.reaches(link, &from, &to) {
                    let _ = self.feed(&to, Input::Datagram { from, probe });
                }
            }
            Happening::Closed {
                link,
                from,
                to,
                why,
            } => {
                if self.reaches(link, &from, &to) {
                    self.ends.remove(&(to.clone(), from.clone()));
                    let _ = self.feed(&to, Input::LinkDown { peer: from, why });
                }
            }
            Happening::Dialled { from, dial } => self.dialled(&from, dial),
            Happening::Written {
                by,
                life,
                number,
                state,
            } => {
                if self.places.get(&by).is_some_and(|place| place.life == life) {
                    self.disks.insert(by.clone(), (life.incarnation, state));
                    let _ = self.feed(&by, Input::Persisted { number });
                }
            }
        }
    }

    fn dialled(&mut self, from: &PeerId, dial: Dial) {
        let Dial { peer, key, .. } = dial;
        let Some(dialler) = self.places.get(from) else {
            return;
        };
        let life = dialler.life;
        let hello = self.hello(from.as_str());
        let welcome = self.places.get(&peer).is_some_and(|target| {
            let linked = self.ends.contains_key(&(peer.clone(), from.clone()));
            let heard = !target.muted && !dialler.muted && self.dials_work;
            let is_it = target.life.key == key;
            let checked = target.node.check_hello(self.now, &hello, life.key, false);
            heard && is_it && !linked && checked.is_ok()
        });
        if welcome {
            self.ask_for(from.as_str(), life, peer.as_str(), true);
        } else {
            let _ = self.feed(
                from,
                Input::DialFailed {
                    peer,
                    permanent: false,
                },
            );
        }
    }
}

fn left(peer: &str, why: LeftReason) -> Event {
    Event::Left(Left::new(id(peer), why))
}

fn joined(peer: &str) -> Event {
    Event::Joined(id(peer))
}

fn rejected(reason: i32, bytes: &[u8]) -> Verdict {
    Verdict::Rejected {
        reason,
        bytes: bytes.to_vec(),
    }
}
