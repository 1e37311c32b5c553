//! Tests of whole nodes over virtual time: admission, lost members, kicks, leadership.
//!
//! The network is the simplest that works: every message takes [`DELAY`], and none is lost unless a node is muted.
//! `tests/sim` has the faults.

mod carriers;
mod closed_ports;
mod counters;
mod ends;
mod entering;
mod entry;
mod etcd;
mod forged;
mod gossip;
mod grace;
mod hearsay;
mod host;
mod life;
mod mapping;
mod merging;
mod network;
mod newcomers;
mod paths;
mod random_merges;
mod reasons;
mod relays;
mod room_rules;
mod rows;
mod set_back;
mod silent_relays;
mod standing;
mod static_quorum;
mod through_leader;
mod transfer;
mod turn;
mod unbanning;
mod unlinked;

use std::collections::BTreeMap;

use super::*;
use crate::election::raft::Raft;
use crate::election::raft::saved::Saved;
use crate::election::raft::wire::{Beat, ElectionMessage, Pulse, Side, Stamped};
use crate::introductions::Dial;
use crate::path::{Carrier, CarrierKind, MAX_RELAYS};
use crate::quorum::Quorum;
use crate::wire::{Candidate, NoPlace, Undecided, Verdict};
use forged::{Forged, elects};
use relays::TestRelay;

/// The answer of a room with a limit of `limit` peers per member.
fn full(limit: u32) -> Verdict {
    Verdict::Full(NoPlace::Members { limit })
}

/// Delay of a message in one direction.
const DELAY: Duration = ms(10);
/// Longer than any election of these rooms.
const TIMEOUT: Duration = ms(15_000);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a valid name")
}

/// The peer id of the process in a place. A prime distinguishes the places of two processes with one id.
fn id_at(place: &PeerId) -> PeerId {
    id(place.as_str().trim_end_matches('\''))
}

/// The key of a process, unless a test sets another.
fn key_at(name: &str) -> u8 {
    let letter = name.as_bytes()[0];
    if name.ends_with('\'') {
        letter + 128
    } else {
        letter
    }
}

/// A process: the newest incarnation of a name, unless a test sets another.
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
    /// Whether no message gets in or out; timers run on.
    muted: bool,
    events: Vec<(Time, Event)>,
    closes: Vec<(PeerId, LinkEnd)>,
    /// The answers to the requests at this node, by ticket.
    answers: BTreeMap<u64, (Time, Verdict)>,
    /// The messages that it sent.
    sent: Vec<(PeerId, Message)>,
    /// Whether it reported that its state file was lost.
    is_stale: bool,
    /// The peers whose messages it reported as dropped for a counter, with the times.
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

/// The newcomer of a ticket: it is linked when it is accepted.
struct Arrival {
    newcomer: PeerId,
    life: Life,
    /// Whether its core dialled and expects a notice of a failure.
    by_core: bool,
}

fn disconnect(peer: PeerId, code: i32, bytes: &[u8]) -> Command {
    let bytes = bytes.to_vec();
    Command::Disconnect { peer, code, bytes }
}

struct Net {
    now: Time,
    places: BTreeMap<PeerId, Place>,
    /// The link of an end.
    ends: BTreeMap<(PeerId, PeerId), u64>,
    queue: BTreeMap<(Time, u64), Happening>,
    /// Whether links repeat the messages that a muted member has missed, when it is unmuted.
    links_repeat: bool,
    /// The messages that they repeat then.
    held: Vec<Happening>,
    arrivals: BTreeMap<u64, Arrival>,
    /// Whether the dials of cores reach their targets.
    dials_work: bool,
    /// Pairs without a path to each other, in both directions.
    walls: BTreeSet<(PeerId, PeerId)>,
    /// The carried links, and by what.
    carried: BTreeMap<u64, CarrierKind>,
    /// The carrier of the packets from the first to the second on a link that this kind carries.
    carriers: BTreeMap<(PeerId, PeerId, CarrierKind), Carrier>,
    relays: [TestRelay; MAX_RELAYS],
    /// Members that drop what they carry from the first to the second.
    drops: BTreeSet<(PeerId, PeerId, PeerId)>,
    /// Members that know no carriers but the leader.
    old: BTreeSet<PeerId>,
    /// Addresses in lists of members.
    listed: BTreeSet<SocketAddr>,
    /// The dials of cores, with their times.
    dials: Vec<(Time, PeerId, Dial)>,
    config: NodeConfig,
    /// The disk of each name, and the time of a write; `None` is for ever.
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
            links_repeat: false,
            held: Vec::new(),
            arrivals: BTreeMap::new(),
            dials_work: true,
            walls: BTreeSet::new(),
            carried: BTreeMap::new(),
            carriers: BTreeMap::new(),
            relays: Default::default(),
            drops: BTreeSet::new(),
            old: BTreeSet::new(),
            listed: BTreeSet::new(),
            dials: Vec::new(),
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

    /// Waits for a mesh with one leader, and forgets all messages and events until then.
    fn settle(&mut self) {
        self.wait("a mesh with one leader", |net| net.is_settled());
        self.run(ms(1000));
        for place in self.places.values_mut() {
            place.events.clear();
            place.sent.clear();
        }
    }

    /// The votes in the state file of `name`.
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

    /// Starts a process with that name and with the key of its first letter.
    fn start(&mut self, name: &str) {
        let started = self.now.as_micros();
        self.start_as(name, life(key_at(name), started));
    }

    fn start_as(&mut self, name: &str, life: Life) {
        let config = self.config.clone();
        self.start_with(name, life, config);
    }

    fn start_with(&mut self, name: &str, life: Life, mut config: NodeConfig) {
        let port = 7000 + u16::from(key_at(name));
        let address = SocketAddr::from(([10, 0, 0, 1], port));
        let mut life = life;
        // A process with the name of an earlier one gets its state file.
        if let Some((before, state)) = self.disks.remove(&id(name)) {
            life.incarnation = life.incarnation.after(before);
            config.saved = Some(state);
        }
        config.key = life.key;
        config.addresses = vec![address];
        let is_host = config.election.policy.host_mode == HostMode::Host;
        self.counted += 1;
        let me = id_at(&id(name));
        let node = Node::new(me, life.incarnation, config, self.counted, self.now)
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
            sent: Vec::new(),
            is_stale: false,
            dropped: Vec::new(),
        };
        self.places.insert(id(name), place);
        self.drain(&id(name));
    }

    /// Ends the process; `reported` if the transports of its peers notice it.
    fn kill(&mut self, name: &str, reported: bool) {
        self.places.remove(&id(name));
        let links: Vec<_> = self
            .ends
            .iter()
            .map(|(ends, link)| (ends.clone(), *link))
            .collect();
        for ((one, other), link) in links {
            if one == id(name) {
                self.ends.remove(&(one.clone(), other.clone()));
                if reported {
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
        if !muted {
            for message in std::mem::take(&mut self.held) {
                self.happen(message);
            }
        }
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

    /// The leaders that a host received, with the reasons of the changes.
    fn leader_changes(&self, name: &str) -> Vec<(Option<PeerId>, LeaderReason)> {
        let events = self.events(name).into_iter();
        let changes = events.filter_map(|event| match event {
            Event::LeaderChanged(change) => Some((change.new, change.reason)),
            _ => None,
        });
        changes.collect()
    }

    fn reported_at(&self, name: &str, event: &Event) -> Option<Time> {
        let mut events = self.place(name).events.iter();
        events
            .find(|(_, reported)| reported == event)
            .map(|(at, _)| *at)
    }

    fn times(&self, name: &str, event: &Event) -> usize {
        self.events(name)
            .iter()
            .filter(|reported| *reported == event)
            .count()
    }

    /// The messages to `to`, without heartbeats and peer lists.
    fn messages_from(&self, name: &str, to: &str) -> Vec<Message> {
        let sent = self.place(name).sent.iter();
        sent.filter(|(peer, _)| *peer == id(to))
            .map(|(_, message)| message.clone())
            .collect()
    }

    /// The numbers of the host's open requests, in the order of arrival.
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

fn left(peer: &str, why: LeftReason) -> Event {
    Event::Left(Left::new(id(peer), why))
}

fn joined(peer: &str) -> Event {
    Event::Joined(id(peer))
}

/// The answer to a peer that the leader has banned.
fn banned(peer: &str) -> Verdict {
    let why = format!("the leader has banned {peer} from this room");
    rejected(0, why.as_bytes())
}

fn rejected(reason: i32, bytes: &[u8]) -> Verdict {
    Verdict::Rejected {
        reason,
        bytes: bytes.to_vec(),
    }
}
