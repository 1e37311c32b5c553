//! A node of the core with three peers that send anything. It never panics, its output stays within its limits, and its
//! deadlines advance.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::Chance;
use super::decoders::someone;
use super::wild::{Known, Wild, name_of};
use crate::core::election::etcd::EtcdConfig;
use crate::core::election::gossip::Windows;
use crate::core::election::guards::Guards;
use crate::core::election::seeded::{Intervals, SeededRules, Seeding};
use crate::core::election::{ElectionConfig, Entry, Recovery};
use crate::core::event::MappingFault;
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::introductions::Reconnect;
use crate::core::node::{
    Command, Conflict, Event, Input, LeaderChange, Left, LeftReason, LinkEnd, LinkUp,
    MappingChange, Node, NodeConfig, Output, RelayChange,
};
use crate::core::path::{Carrier, CarrierKind, Path, RelayNumber};
use crate::core::quorum::{Quorum, Roster};
use crate::core::time::{Duration, Time};
use crate::core::wire::{
    Authority, Candidate, Envelope, HostMode, MAX_CONTROL_FRAME_BYTES, MergePolicy, Message,
    NoPlace, PeerEntry, RoomPolicy, Strategy, Topology, Verdict,
};

/// Limit of the inputs of one run, so that it ends.
const MAX_STEPS: usize = 2000;
/// Limit of the outputs of one input, with so few peers. They include one closed session for each name that can be
/// kicked.
const MAX_OUTPUTS: usize = 4096;
/// Limit of ticks at one moment until nothing is due.
const MAX_TICKS: usize = 64;

/// A run: the first bytes are the settings, the others decide the inputs.
pub fn node(bytes: &[u8]) {
    watched(bytes);
}

/// As [`node`]. Returns the number of each outcome, so that a test can see that such runs reach them.
pub(super) fn watched(bytes: &[u8]) -> BTreeMap<&'static str, usize> {
    let mut chance = Chance::Bytes(bytes);
    let strategy = match chance.below(4) {
        0 => Strategy::Gossip {
            strict_lowest: chance.flip(),
        },
        1 => Strategy::Seeded(SeededRules {
            strict_start: chance.one_in(4),
            never_alone: chance.flip(),
            intervals: Intervals::LAN,
        }),
        _ => Strategy::Raft,
    };
    let seeded = matches!(strategy, Strategy::Seeded(_));
    let quorum = match chance.one_in(4) || seeded {
        true => {
            let voters = ["me", "a", "b"].map(|name| (PeerId::new(name).expect("valid"), None));
            Quorum::Static(Roster::new(voters).expect("three names"))
        }
        false => Quorum::Dynamic,
    };
    let policy = RoomPolicy {
        strategy,
        quorum: quorum.policy(),
        merge: MergePolicy::default(),
        authority: match chance.flip() {
            true => Authority::Anyone,
            false => Authority::LeaderOnly,
        },
        host_mode: match chance.below(4) {
            0 if !seeded => HostMode::Host,
            1 if !seeded => HostMode::Guest,
            _ => HostMode::Off,
        },
        topology: Topology::Mesh,
    };
    let policy = RoomPolicy {
        topology: match policy.host_mode != HostMode::Off && chance.flip() {
            true => Topology::Star,
            false => Topology::Mesh,
        },
        ..policy
    };
    let eligible = !chance.one_in(4) || seeded;
    let elects_freely = policy.host_mode == HostMode::Off && quorum == Quorum::Dynamic;
    let entry = match chance.one_in(4) && elects_freely {
        true => Entry::Join,
        false => Entry::Any,
    };
    let ask_host = chance.one_in(4);
    let relayed_only = chance.one_in(4);
    let auto_reconnect = !chance.one_in(4);
    let seeding = Seeding {
        seeds: vec!["127.0.0.1:9".into()],
        is_seed: !chance.one_in(4),
        address: String::new(),
    };
    let wild = someone(chance, policy);
    let mine = Mine {
        policy,
        quorum,
        eligible,
        entry,
        ask_host,
        relayed_only,
        auto_reconnect,
        seeding,
    };
    Run::new(wild, mine).run()
}

/// The node's own settings, as drawn.
struct Mine {
    policy: RoomPolicy,
    quorum: Quorum,
    eligible: bool,
    entry: Entry,
    ask_host: bool,
    relayed_only: bool,
    auto_reconnect: bool,
    seeding: Seeding,
}

struct Run<'a> {
    wild: Wild<'a>,
    node: Node,
    now: Time,
    peers: Vec<Known>,
    persisted: u64,
    tickets: u64,
    join_requests: Vec<u64>,
    linked: BTreeSet<PeerId>,
    seen: BTreeMap<&'static str, usize>,
}

impl<'a> Run<'a> {
    fn new(wild: Wild<'a>, mine: Mine) -> Self {
        let ms = Duration::from_millis;
        let config = NodeConfig {
            heartbeat_interval: ms(500),
            election: ElectionConfig {
                policy: mine.policy,
                quorum: mine.quorum,
                heartbeat_timeout: ms(1500),
                election_timeout_min: ms(1500),
                election_timeout_max: ms(3000),
                auto_election: true,
                eligible: mine.eligible,
                priority: 0,
                recovery: Recovery::Hold,
                windows: Windows::default(),
                seeding: mine.seeding,
                etcd: EtcdConfig::default(),
                entry: mine.entry,
                guards: Guards::ALL,
            },
            max_connections: 8,
            max_peers: 0,
            auto_reconnect: mine.auto_reconnect,
            reconnect: Reconnect::default(),
            member_hold: ms(60_000),
            handshake_timeout: ms(5000),
            yield_after: None,
            ask_host: mine.ask_host,
            saved: None,
            wall_clock: Duration::from_secs(1_800_000_000),
            key: Fingerprint([0; 32]),
            addresses: Vec::new(),
            relayed_only: mine.relayed_only,
        };
        let me = PeerId::new("me").expect("valid");
        let incarnation = Incarnation {
            started_us: 7,
            random: 0,
        };
        let mut peers = vec![wild.me.clone()];
        peers.extend(wild.others[..2].iter().cloned());
        Self {
            node: Node::new(me, incarnation, config, 1, Time::ZERO).expect("a first start"),
            wild,
            now: Time::ZERO,
            peers,
            persisted: 0,
            tickets: 0,
            join_requests: Vec::new(),
            linked: BTreeSet::new(),
            seen: BTreeMap::new(),
        }
    }

    fn run(mut self) -> BTreeMap<&'static str, usize> {
        for _ in 0..MAX_STEPS {
            if self.wild.chance.is_spent() {
                break;
            }
            let input = self.input();
            let command = matches!(input, Input::Command(_));
            if let Input::Message { envelope, .. } = &input {
                self.saw(name_of(&envelope.message));
            }
            let refused = self.node.handle(self.now, input).is_err();
            assert!(command || !refused, "only commands are refused");
            self.drain();
            self.rest();
        }
        // Time alone: the node finishes everything that is due, again and again.
        for _ in 0..200 {
            let Some(deadline) = self.node.next_deadline() else {
                break;
            };
            self.now = self.now.max(deadline);
            self.rest();
        }
        self.seen
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Ticks the node until its deadline lies ahead.
    fn rest(&mut self) {
        for _ in 0..MAX_TICKS {
            match self.node.next_deadline() {
                Some(deadline) if deadline <= self.now => {}
                _ => return,
            }
            self.node.handle(self.now, Input::Tick).expect("a tick");
            self.drain();
        }
        panic!(
            "it is {:?} and the deadline stays at {:?}",
            self.now,
            self.node.next_deadline()
        );
    }

    /// The inputs that a driver passes on, with values that remotes decide.
    fn input(&mut self) -> Input {
        let n = self.wild.chance.below(self.peers.len());
        let who = self.peers[n].clone();
        self.wild.me = who.clone();
        self.wild.record = self.wild.record.clone().max(self.node.record().clone());
        self.wild.tame = self.wild.chance.flip();
        let linked = self.linked.contains(&who.id);
        let peer = who.id.clone();
        match self.wild.chance.below(25) {
            0 | 1 => {
                self.pass_time();
                Input::Tick
            }
            2 => {
                self.pass_time();
                Input::OtherData { peer }
            }
            3 if linked && self.wild.chance.one_in(8) => Input::Relinked { peer },
            3 if linked => Input::Datagram {
                from: peer,
                probe: self.wild.any(),
            },
            4 if linked && self.wild.chance.flip() => {
                let why = [
                    LinkEnd::Closed,
                    LinkEnd::Silent,
                    LinkEnd::Disconnected,
                    LinkEnd::Violation("by chance"),
                    LinkEnd::Kicked,
                    LinkEnd::RoomEnded,
                    LinkEnd::Moved(Conflict::DuplicateId),
                    LinkEnd::Moved(Conflict::Banned),
                    LinkEnd::OtherRoom,
                    LinkEnd::Replaced,
                ];
                let why = *self.wild.chance.pick(&why);
                Input::LinkDown { peer, why }
            }
            5 if self.wild.chance.one_in(4) => Input::SessionOver {
                peer,
                why: *self
                    .wild
                    .chance
                    .pick(&[LeftReason::Lost, LeftReason::Replaced]),
            },
            6 => {
                self.tickets += 1;
                Input::Join {
                    ticket: self.tickets,
                    candidate: Box::new(Candidate {
                        entry: PeerEntry {
                            id: peer,
                            key: who.key,
                            addresses: Vec::new(),
                        },
                        incarnation: who.incarnation,
                        payload: Vec::new(),
                    }),
                    invited: self.wild.chance.flip(),
                }
            }
            7 => Input::DialFailed {
                peer,
                permanent: self.wild.chance.flip(),
            },
            8 => Input::Persisted {
                number: self.persisted,
            },
            9 => Input::HostDialing(self.wild.chance.flip()),
            10 => Input::Command(self.command()),
            11 if self.wild.chance.below(4) == 0 => self.mapping(),
            11 => self.relay(who.key),
            _ if linked => {
                let envelope = self.envelope();
                Input::Message {
                    from: peer,
                    envelope,
                }
            }
            _ => self.link_up(&who),
        }
    }

    /// Anything that a router may claim.
    fn mapping(&mut self) -> Input {
        let address = SocketAddr::from(([203, 0, 113, self.wild.chance.byte()], 7));
        let chance = &mut self.wild.chance;
        Input::Mapping(match chance.flip() {
            true => MappingChange::Claimed(address),
            false if chance.flip() => MappingChange::Withdrawn,
            false => MappingChange::Failed(MappingFault::NoAnswer),
        })
    }

    /// Anything that a relay may do or report, true or not.
    fn relay(&mut self, key: Fingerprint) -> Input {
        let address = SocketAddr::from(([203, 0, 113, self.wild.chance.byte()], 7));
        let change = match self.wild.chance.below(6) {
            0 | 1 => RelayChange::Up {
                observed: address,
                key: Fingerprint([self.wild.chance.byte() % 2; 32]),
            },
            2 => RelayChange::Observed(address),
            3 => RelayChange::Present(key),
            4 => RelayChange::Gone(key),
            _ => RelayChange::Down,
        };
        let relay = RelayNumber(self.wild.chance.byte() % 2);
        Input::Relay { relay, change }
    }

    fn envelope(&mut self) -> Envelope {
        // Most messages belong to the election.
        let message = match self.wild.chance.flip() {
            true => Message::Election(self.wild.election()),
            false => self.wild.any(),
        };
        self.wild.envelope_of(message)
    }

    fn link_up(&mut self, who: &Known) -> Input {
        let eligible = !self.wild.chance.one_in(4);
        let hello = self.wild.hello(eligible);
        let by_own_hand = self.wild.chance.one_in(8);
        let checked = self
            .node
            .check_hello(self.now, &hello, who.key, by_own_hand);
        if checked.is_err() {
            return Input::Tick;
        }
        let known = self.peers.iter().find(|known| known.id == hello.peer_id);
        let Some(known) = known.cloned() else {
            return Input::Tick;
        };
        let (path, carrier) = match self.wild.chance.below(6) {
            0 | 1 => {
                let relay = RelayNumber(self.wild.chance.byte() % 2);
                let carrier = self.wild.chance.flip().then_some(Carrier::Relay(relay));
                (Path::Carried(CarrierKind::Relay), carrier)
            }
            2 => {
                let mut others = self.linked.iter().filter(|id| **id != known.id);
                (
                    Path::Carried(CarrierKind::Member),
                    others.next().cloned().map(Carrier::Member),
                )
            }
            _ => (Path::Direct, None),
        };
        self.linked.insert(known.id.clone());
        Input::LinkUp(Box::new(LinkUp {
            peer: known.id,
            incarnation: known.incarnation,
            key: known.key,
            addresses: Vec::new(),
            eligible: hello.eligible,
            priority: hello.priority,
            is_host: hello.policy.host_mode == HostMode::Host,
            path,
            carrier,
            through_turn: false,
            features: hello.features,
            ours: self.node.side(self.now),
            theirs: hello.side,
        }))
    }

    fn command(&mut self) -> Command {
        let n = self.wild.chance.below(self.peers.len());
        let peer = self.peers[n].id.clone();
        let request = self.join_requests.pop().unwrap_or(1);
        match self.wild.chance.below(16) {
            0 => Command::SetLeader(peer),
            1 => Command::EnableAutoElection(self.wild.chance.flip()),
            2 => Command::Disconnect {
                peer,
                code: self.wild.chance.byte().into(),
                bytes: Vec::new(),
            },
            3 => Command::LiftBan(peer),
            4 => Command::TransferLeadership(peer),
            5 => Command::YieldLeadership,
            6 => Command::SetAutoReconnect(self.wild.chance.flip()),
            7 => Command::SetEligible(self.wild.chance.flip()),
            8 => Command::SetPriority(*self.wild.chance.pick(&[0, i32::MAX, i32::MIN])),
            9 => Command::SetWindows(Windows::default()),
            10 => Command::AskHost(self.wild.chance.flip()),
            11 => Command::AnswerJoin {
                request,
                verdict: match self.wild.chance.flip() {
                    true => Verdict::Accepted,
                    false => Verdict::Full(NoPlace::Newcomers),
                },
            },
            12 => Command::Kick {
                peer,
                code: 1,
                bytes: Vec::new(),
                ban: self.wild.chance.flip(),
            },
            14 => Command::Unban(peer),
            13 => Command::SetMaxPeers(self.wild.chance.byte().into()),
            _ if self.wild.chance.one_in(16) => Command::Leave,
            _ => Command::SetLeader(self.node.id().clone()),
        }
    }

    fn pass_time(&mut self) {
        let ms = match self.wild.chance.below(4) {
            0 => 0,
            1 => 1,
            2 => u64::from(self.wild.chance.byte()) * 10,
            _ => {
                // As a timer would.
                let deadline = self.node.next_deadline().unwrap_or(self.now);
                self.now = self.now.max(deadline);
                0
            }
        };
        self.now = self.now + Duration::from_millis(ms);
    }

    fn drain(&mut self) {
        let mut count = 0;
        while let Some(output) = self.node.poll_output() {
            count += 1;
            assert!(count <= MAX_OUTPUTS, "one input set off more and more");
            match output {
                Output::Transmit { to, envelope, .. } => {
                    assert_ne!(to, *self.node.id(), "it writes to itself");
                    let len = postcard::to_allocvec(&envelope).expect("encodes").len();
                    assert!(
                        len < MAX_CONTROL_FRAME_BYTES,
                        "a frame of {len} bytes: {}",
                        name_of(&envelope.message)
                    );
                }
                Output::DialSeeds(_) => {}
                Output::Engine { .. } => unreachable!("no strategy here asks a store"),
                Output::Persist { number, .. } => {
                    assert!(number > self.persisted, "numbers of states go up");
                    self.persisted = number;
                }
                Output::Close { peer, why } => {
                    if let LinkEnd::Violation(what) = why {
                        self.saw(what);
                    }
                    self.linked.remove(&peer);
                }
                Output::Event(Event::JoinRequest { request, .. }) => {
                    self.join_requests.push(request);
                }
                Output::Event(Event::Joined(_)) => self.saw("joined"),
                Output::Event(Event::Returned(_)) => self.saw("returned"),
                Output::Event(Event::MemberState { .. }) => self.saw("member state"),
                Output::Event(Event::RoomEnded { .. }) => self.saw("room ended"),
                Output::Event(Event::LeaderChanged(LeaderChange { new: leader, .. })) => {
                    let mine = leader.as_ref() == Some(self.node.id());
                    self.saw(if mine { "leads" } else { "another leads" });
                }
                Output::Event(Event::Left(Left { peer, .. }) | Event::Reconnecting(peer)) => {
                    self.saw("lost");
                    self.linked.remove(&peer);
                }
                Output::JoinAnswer { ticket, verdict } => {
                    assert!(ticket <= self.tickets);
                    assert_ne!(verdict, Verdict::NotLeader);
                }
                Output::Carrier { peer, carrier } => {
                    let member = carrier.as_ref().and_then(Carrier::member);
                    assert_ne!(member, Some(&peer), "it carries its own packets");
                }
                Output::Dropped { value, bound, .. } => assert!(value > bound),
                Output::StaleState { remembered, since } => assert!(remembered >= since),
                Output::Datagram { .. } | Output::Dial(_) | Output::Event(_) | Output::Departed => {
                }
            }
        }
        assert!(self.node.membership().len() <= self.peers.len());
        assert!(self.node.dialing().count() <= 1024 + self.peers.len());
    }
}
