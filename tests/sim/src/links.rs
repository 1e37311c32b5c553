//! Links between processes: dialling, Hello, ordered control streams, datagrams, closing.
//!
//! The behaviour of the library's network layer, without its bytes: one link per pair; of two simultaneous dials the smaller id's
//! stays, also where both have become links; a link that its dialler's end has ended is replaced by its next one.

mod admission;
mod closed_ports;
mod closing;
mod data;
mod paths;
mod relays;
mod strays;
mod via;

use crate::decoded;
use std::collections::VecDeque;

use rand::Rng;

use room_core::election::raft::wire::Side;
use room_core::id::{Fingerprint, PeerId};
use room_core::introductions::Dial;
use room_core::node::{AdmissionRefusal, Input, LinkEnd, LinkUp};
use room_core::path::Path;
use room_core::time::{Duration, Time};
use room_core::trace::What;
use room_core::virtual_address::VirtualId;
use room_core::wire::{Candidate, Envelope, Hello, Message, Opaque, PeerEntry, Probe};
use room_state::wire::Frame;

use crate::trace::Brief;
use crate::world::{Happening, Process, World};

pub use admission::{Numbers, Question};
pub use closed_ports::ClosedPorts;
pub use data::Data;
pub(crate) use paths::{Loss, pair};
pub use paths::{Paths, Planted};

pub use relays::ToRelay;
pub use strays::{Stray, Strays};
pub(crate) use via::Via;
use via::{Carried, path_over};

/// Timeout of a dial by the core.
const CORE_DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of a dial by the host.
const HOST_DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a process that stands still is sent the Hello of a dial by discovery again.
const RETRANSMITTED_AFTER: Duration = Duration::from_millis(50);
/// Maximum number of losses that delay one message.
const MAX_LOSSES: u32 = 5;
/// Empty datagrams after an urgent message, as in the library's links.
pub const TRAILERS: u32 = 4;
/// Longest wait of an acknowledgement for another packet to travel with (QUIC's default).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// The end that dialled, and the one that accepted.
const DIALLER: usize = 0;
const ACCEPTOR: usize = 1;

/// An item on a control stream.
#[derive(Debug)]
enum Item {
    /// The acceptor's Hello, and its key.
    Ack(Box<Hello>, Fingerprint),
    /// The dialler has taken the link: it is up at its end, and now at the acceptor's.
    Ready,
    /// A control message.
    Message(Box<Envelope>),
    /// A frame of the room's state.
    State(Box<Frame>),
}

/// One direction: reliable and in order.
#[derive(Debug, Default)]
struct Pipe {
    items: VecDeque<(Time, Item)>,
    last: Option<Time>,
    /// Time of the last arrival at the other end.
    arrived: Option<Time>,
    /// Whether the first item was due while no packet passed, or while the receiver was stopped.
    is_held: bool,
}

/// A dialler that the acceptor has admitted and reserves a place for, until it is ready.
#[derive(Debug)]
struct Admission {
    hello: Hello,
    key: Fingerprint,
    /// The acceptor's statement of leadership.
    ours: Opaque,
}

/// A link, from the acceptor's Hello on.
#[derive(Debug)]
pub struct Link {
    slots: [usize; 2],
    lives: [u64; 2],
    /// Whether the end holds the link as its session.
    up: [bool; 2],
    /// Whether the end has closed the link.
    ended: [bool; 2],
    /// The end's answer to messages that still arrive after that.
    given_ends: [LinkEnd; 2],
    /// Whether the room of the end was over when it closed the link.
    was_over_at_end: [bool; 2],
    /// From the end of that index to the other.
    pipes: [Pipe; 2],
    dial: u64,
    opening_side: Opaque,
    /// Whether the dialler asks its room about the acceptor.
    asking: bool,
    admission: Option<Box<Admission>>,
    /// Counters that the ends sent, of ended sessions and lost links.
    numbers: [(u32, u32); 2],
    /// Of a carried link, what carries each end's packets.
    carriers: Option<Carried>,
    /// Whether another link has replaced it at that end, which still reads it.
    retired: [bool; 2],
    /// Whether no packet passes any more: a router has forgotten the address of an end.
    dead: bool,
}

/// A dial that has not ended.
#[derive(Debug)]
pub struct Pending {
    from: usize,
    life: u64,
    to: usize,
    of: DialOf,
    link: Option<u64>,
    /// Whether it is refused because the dialler was kicked.
    kicked: bool,
    /// The carrier of its packets, if there is one.
    over: Option<Via>,
    /// The dial of the core that it is an attempt of, if that one has several.
    attempt_of: Option<u64>,
    /// Whether a wall keeps its packets back.
    held: bool,
    /// Whether the other end has answered: the first of the handshake's round trips is over.
    answered: bool,
}

/// The part of a process that dials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialOf {
    Host,
    Discovery,
    /// The core expects this key.
    Core(Fingerprint),
}

impl DialOf {
    fn expects(self) -> Option<Fingerprint> {
        match self {
            Self::Core(key) => Some(key),
            Self::Host | Self::Discovery => None,
        }
    }
}

/// A future event of links.
#[derive(Debug)]
pub enum Wire {
    /// The other end's first answer to a dial arrives.
    Answered {
        dial: u64,
    },
    SayHello {
        dial: u64,
    },
    HelloArrives {
        dial: u64,
        to_life: u64,
        hello: Box<Hello>,
    },
    DialRefused {
        dial: u64,
        permanent: bool,
    },
    DialTimeout {
        dial: u64,
    },
    /// The next round of dials is near: this one ends if a wall holds its packets.
    RoundOver {
        dial: u64,
    },
    /// The acceptor stops waiting for the dialler.
    AdmissionTimeout {
        link: u64,
    },
    Deliver {
        link: u64,
        from: usize,
    },
    /// A control message arrives outside of its stream.
    Stray(Box<Stray>),
    /// A host's message arrives.
    Data(Box<Data>),
    Datagram {
        link: u64,
        from: usize,
        probe: Probe,
    },
    /// A report that a packet was refused, which one end of a link sent then, arrives there.
    Refused {
        link: u64,
        from: usize,
        sent: Option<Time>,
    },
    /// One end of a link sends a message of a game into a closed port.
    Play {
        link: u64,
        from: usize,
    },
    /// The last message of a game that the other end sent before its process died arrives.
    LastPlay {
        link: u64,
        to: usize,
    },
    /// An attempt of a dial over a carrier begins.
    DialOver {
        dial: u64,
        over: Via,
        lasts: Option<Duration>,
    },
    /// An attempt that no answer ended is over.
    AttemptTimeout {
        dial: u64,
    },
    /// A packet for a member arrives at a carrier.
    AtCarrier {
        carrier: usize,
        from: usize,
        target: VirtualId,
    },
    /// A member's packets to and from a relay.
    Relay(ToRelay),
    /// A member's packets come from another address.
    SeenAt {
        slot: usize,
        life: u64,
        other: usize,
    },
    Closed {
        link: u64,
        from: usize,
        why: LinkEnd,
    },
}

/// The network between places.
impl World {
    /// Cuts one direction once more.
    pub fn cut(&mut self, from: usize, to: usize) {
        self.checker.disturbed = true;
        let cuts = self.cuts.entry((from, to)).or_insert(0);
        *cuts += 1;
        if *cuts == 1 {
            let (from, to) = (self.slots[from].id.clone(), self.slots[to].id.clone());
            self.note_room(What::Cut { from, to });
        }
        self.trace.add(
            self.now,
            format_args!("cut {} -> {}", self.slots[from].id, self.slots[to].id),
        );
    }

    /// Removes one cut of that direction.
    pub fn mend(&mut self, from: usize, to: usize) {
        if let Some(count) = self.cuts.get_mut(&(from, to)) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.cuts.remove(&(from, to));
                let pair = (self.slots[from].id.clone(), self.slots[to].id.clone());
                self.note_room(What::Mended {
                    from: pair.0,
                    to: pair.1,
                });
                self.trace.add(
                    self.now,
                    format_args!("mend {} -> {}", self.slots[from].id, self.slots[to].id),
                );
            }
        }
        self.unblock();
    }

    /// Cuts both directions between two places.
    pub fn cut_both(&mut self, a: usize, b: usize) {
        self.cut(a, b);
        self.cut(b, a);
    }

    /// Removes one cut of both directions.
    pub fn mend_both(&mut self, a: usize, b: usize) {
        self.mend(a, b);
        self.mend(b, a);
    }

    /// Ends all cuts.
    pub fn mend_all(&mut self) {
        for (from, to) in std::mem::take(&mut self.cuts).into_keys() {
            let (from, to) = (self.slots[from].id.clone(), self.slots[to].id.clone());
            self.note_room(What::Mended { from, to });
        }
        self.trace
            .add(self.now, format_args!("all cuts are mended"));
        self.unblock();
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        !self.cuts.is_empty() && self.cuts.contains_key(&(from, to))
    }

    /// Whether both ends hold one direct link, and both directions work.
    pub fn is_linked(&self, a: usize, b: usize) -> bool {
        self.shared_link(a, b).is_some_and(|id| {
            let works = |link: &Link| link.carriers.is_none() && !link.dead;
            self.links.get(&id).is_some_and(works) && !self.is_cut(a, b) && !self.is_cut(b, a)
        })
    }

    /// The link that both ends hold as their session.
    fn shared_link(&self, a: usize, b: usize) -> Option<u64> {
        let session = |x: usize, y: usize| {
            let process = self.slots[x].process.as_ref()?;
            process.sessions.get(&y).copied()
        };
        session(a, b).filter(|one| session(b, a) == Some(*one))
    }

    fn delay(&mut self, from: usize, to: usize) -> Duration {
        let (least, most) = self.settings.delay;
        let slow = self.slow.get(&(from, to)).copied().unwrap_or_default();
        self.between(least, most) + slow
    }

    /// Twice the longest one-way trip: the round trip of the bounds.
    pub fn max_rtt(&self) -> Duration {
        let slowest = self.slow.values().max().copied().unwrap_or_default();
        (self.settings.delay.1 + slowest) * 2
    }

    /// By then every packet that is not lost has arrived.
    fn under_way(&self) -> Time {
        self.now + self.max_rtt() / 2
    }

    /// The mean round trip.
    fn round_trip(&self) -> Duration {
        self.settings.delay.0 + self.settings.delay.1
    }

    /// Time without an acknowledgement before quinn probes (RFC 9002 section 6.2.1): a round trip, four times its mean deviation,
    /// and the longest delay of an acknowledgement.
    fn probe_timeout(&self) -> Duration {
        let (least, most) = self.settings.delay;
        let spread = most.saturating_sub(least);
        self.round_trip() + spread * 4 / 3 + MAX_ACK_DELAY
    }

    /// Whether a packet and its acknowledgement both arrive.
    fn is_acknowledged(&mut self) -> bool {
        let both = (1.0 - self.stream_loss) * (1.0 - self.stream_loss);
        self.rng.random_bool(both)
    }

    /// Whether one of the empty datagrams after an urgent message, and its acknowledgement, both arrive.
    fn is_trailer_acknowledged(&mut self) -> bool {
        (0..self.trailers).any(|_| self.is_acknowledged())
    }

    /// Delay of one message by losses. quinn's probes, two at a time, carry no stream data: missing data is sent again when one
    /// of them is acknowledged. Until one is, the timeout doubles. Packets after an urgent message reveal its loss after 9/8 of a
    /// round trip (RFC 9002 section 6.1.2).
    fn retransmissions(&mut self, urgent: bool) -> Duration {
        let mut waits = Duration::ZERO;
        let mut losses = 0;
        while self.stream_loss > 0.0
            && losses < MAX_LOSSES
            && self.rng.random_bool(self.stream_loss)
        {
            losses += 1;
            self.sometimes.packets_lost += 1;
            if urgent && losses == 1 && self.is_trailer_acknowledged() {
                waits += self.round_trip() * 9 / 8;
                continue;
            }
            let mut timeout = self.probe_timeout();
            waits += timeout;
            while losses < MAX_LOSSES && !self.is_acknowledged() && !self.is_acknowledged() {
                losses += 1;
                timeout *= 2;
                waits += timeout;
            }
            waits += self.round_trip();
        }
        waits
    }

    /// A new packet is a probe for missing data before it: when it is acknowledged, that data is sent again at once. If it never
    /// is, the probe timeout has started anew.
    fn probe_the_missing(&mut self, id: u64, from: usize, one_way: Duration, urgent: bool) {
        let under_way = self.under_way();
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let last = link.pipes[from].items.back();
        if last.is_none_or(|(due, _)| *due <= under_way) {
            return;
        }
        let cut = self.is_blocked(id, from) || self.is_blocked(id, 1 - from);
        let acknowledged =
            !cut && (self.is_acknowledged() || (urgent && self.is_trailer_acknowledged()));
        let known = if acknowledged {
            MAX_ACK_DELAY
        } else {
            self.probe_timeout()
        };
        let again = self.now + known + self.round_trip() + one_way + self.retransmissions(false);
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let pipe = &mut link.pipes[from];
        for (due, _) in pipe.items.iter_mut().filter(|(due, _)| *due > under_way) {
            *due = if acknowledged {
                again.min(*due)
            } else {
                again.max(*due)
            };
        }
        if let Some((last, _)) = pipe.items.back() {
            pipe.last = Some(*last);
        }
        self.at(again, Happening::Wire(Wire::Deliver { link: id, from }));
    }

    /// Time of the last arrival at `to` on its present link with `from`.
    pub fn last_arrival(&self, from: usize, to: usize) -> Option<Time> {
        let process = self.slots[to].process.as_ref()?;
        let link = self.links.get(process.sessions.get(&from)?)?;
        link.pipes[link.end_of(from)].arrived
    }

    /// Time of the last arrival among packets under way on the control streams.
    pub fn quiet_at(&self) -> Time {
        let pipes = self.links.values().flat_map(|link| &link.pipes);
        let open = pipes.filter(|pipe| !pipe.items.is_empty());
        let last = open.filter_map(|pipe| pipe.last).max();
        last.unwrap_or(self.now).max(self.now)
    }

    fn is_paused(&self, slot: usize) -> bool {
        self.slots[slot]
            .process
            .as_ref()
            .is_some_and(|process| process.paused)
    }

    /// Whether the session of `to` with `from` is with the present incarnation of `from`.
    pub fn is_session_with_present_life(&self, from: usize, to: usize) -> bool {
        self.session_is_with_present_life(from, to) == Some(true)
    }

    /// Whether the session of `to` with `from` is with an earlier incarnation of `from`.
    pub fn is_session_with_earlier_life(&self, from: usize, to: usize) -> bool {
        self.session_is_with_present_life(from, to) == Some(false)
    }

    fn session_is_with_present_life(&self, from: usize, to: usize) -> Option<bool> {
        let process = self.slots[to].process.as_ref()?;
        let link = self.links.get(process.sessions.get(&from)?)?;
        Some(self.is_life(from, link.lives[link.end_of(from)]))
    }

    fn is_life(&self, slot: usize, life: u64) -> bool {
        self.slots[slot].life == life && self.slots[slot].process.is_some()
    }

    pub fn wire(&mut self, wire: Wire) {
        match wire {
            Wire::SayHello { dial } => self.say_hello(dial),
            Wire::HelloArrives {
                dial,
                to_life,
                hello,
            } => self.hello_arrives(dial, to_life, &hello),
            Wire::Answered { dial } => self.answered(dial),
            Wire::DialRefused { dial, permanent } => self.dial_failed(dial, permanent),
            Wire::DialTimeout { dial } => self.dial_failed(dial, false),
            Wire::RoundOver { dial } => self.round_over(dial),
            Wire::AdmissionTimeout { link } => self.end_admission(link),
            Wire::Deliver { link, from } => self.deliver(link, from),
            Wire::Stray(stray) => self.stray_arrives(*stray),
            Wire::Data(data) => self.data_arrives(*data),
            Wire::Datagram { link, from, probe } => self.deliver_datagram(link, from, probe),
            Wire::Refused { link, from, sent } => self.refused(link, from, sent),
            Wire::Play { link, from } => self.plays(link, from),
            Wire::LastPlay { link, to } => self.last_play_arrives(link, to),
            Wire::DialOver { dial, over, lasts } => self.dial_over(dial, over, lasts),
            Wire::AttemptTimeout { dial } => self.attempt_failed(dial, true, false),
            Wire::AtCarrier {
                carrier,
                from,
                target,
            } => self.arrives_at_carrier(carrier, from, target),
            Wire::Relay(event) => self.relay_event(event),
            Wire::SeenAt { slot, life, other } => self.seen_at(slot, life, other),
            Wire::Closed { link, from, why } => self.closed(link, from, why),
        }
    }
}

/// Dialling.
impl World {
    /// The host of `from` connects to the address of `to`.
    pub fn connect(&mut self, from: usize, to: usize) {
        let Some(process) = &self.slots[from].process else {
            return;
        };
        let running = self
            .dials
            .values()
            .any(|dial| dial.from == from && dial.to == to);
        let peer = &self.slots[to].id;
        let linked = process.node.membership().get(peer).is_some();
        if from == to || process.leaving || running || linked {
            return;
        }
        if let Some(process) = &mut self.slots[from].process {
            process.host_dials += 1;
        }
        self.trace.add(
            self.now,
            format_args!("{} connects to {}", self.slots[from].id, self.slots[to].id),
        );
        let _ = self.feed(from, Input::HostDialing(true));
        self.dial(from, to, DialOf::Host, None);
    }

    /// `from` dials the address of `to`, which it found in the local network, unless they are linked.
    pub fn dial_found(&mut self, from: usize, to: usize) {
        let Some(process) = &self.slots[from].process else {
            return;
        };
        let mut dials = self.dials.values();
        let running = dials.any(|dial| dial.from == from && dial.to == to);
        if process.leaving || running || process.sessions.contains_key(&to) {
            return;
        }
        self.trace.add(
            self.now,
            format_args!("{} dials {} that it found", self.slots[from].id, to),
        );
        self.dial(from, to, DialOf::Discovery, None);
    }

    pub fn dial_for_core(&mut self, from: usize, dial: &Dial) {
        self.trace.add(
            self.now,
            format_args!("{} dials {}", self.slots[from].id, dial.peer),
        );
        if self.paths.are_modelled {
            return self.dial_on_all_paths(from, dial);
        }
        // Addresses stay with their places, and so do names. Without walls a direct link follows a carried one at once: a dial over
        // carriers alone stands for both.
        let is_carried = dial.addresses.is_empty() && !dial.carriers.is_empty();
        let mut places = self.slots.iter();
        let to = places.position(|place| {
            let mut addresses = dial.addresses.iter();
            let is_there = addresses.any(|known| known.at == place.address);
            place.id == dial.peer && (is_there || is_carried)
        });
        let busy = |to: &usize| !self.dials.values().any(|d| d.from == from && d.to == *to);
        match to.filter(busy) {
            Some(to) => self.dial(from, to, DialOf::Core(dial.key), dial.lasts),
            None => {
                let peer = dial.peer.clone();
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

    fn dial(&mut self, from: usize, to: usize, of: DialOf, lasts: Option<Duration>) {
        self.made += 1;
        let dial = self.made;
        let life = self.slots[from].life;
        self.dials.insert(
            dial,
            Pending {
                from,
                life,
                to,
                of,
                link: None,
                kicked: false,
                over: None,
                attempt_of: None,
                held: false,
                answered: false,
            },
        );
        self.begin_dial(dial);
        if let Some(lasts) = lasts {
            self.at(self.now + lasts, Happening::Wire(Wire::RoundOver { dial }));
        }
    }

    /// An attempt begins, unless a wall keeps its packets back.
    fn begin_dial(&mut self, dial: u64) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, over, of) = (pending.from, pending.to, pending.over, pending.of);
        if over.is_some() || !self.is_held_by_a_wall(dial) {
            self.shake_hands(dial, from, to, over);
        }
        let timeout = match of.expects() {
            Some(_) if !self.settings.hosts.asked && !self.paths.are_modelled => CORE_DIAL_TIMEOUT,
            _ => HOST_DIAL_TIMEOUT,
        };
        self.at(
            self.now + timeout,
            Happening::Wire(Wire::DialTimeout { dial }),
        );
    }

    fn shake_hands(&mut self, dial: u64, from: usize, to: usize, over: Option<Via>) {
        // TLS and the PAKE take two round trips before the Hello.
        let mut round_trip = || self.trip(from, over, to) + self.trip(to, over, from);
        let first = round_trip();
        let second = round_trip();
        let waits = self.retransmissions(false);
        let answered = Wire::Answered { dial };
        self.at(self.now + first + waits, Happening::Wire(answered));
        let handshake = first + second + waits;
        self.at(
            self.now + handshake,
            Happening::Wire(Wire::SayHello { dial }),
        );
    }

    /// The dialler receives the other end's first packet, unless none passes.
    fn answered(&mut self, dial: u64) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, life, over) = (pending.from, pending.to, pending.life, pending.over);
        let runs = self.slots[to].process.is_some();
        let answers = runs && self.may_shake_hands((from, life), over, to);
        if let Some(pending) = self.dials.get_mut(&dial) {
            pending.answered |= answers;
        }
    }

    /// Whether packets pass both ways, and no process stands still.
    fn may_shake_hands(&self, (from, life): (usize, u64), over: Option<Via>, to: usize) -> bool {
        let passes = self.passes_from(from, over, to) && self.passes_from(to, over, from);
        passes && !self.is_paused(from) && !self.is_paused(to) && self.is_life(from, life)
    }

    fn say_hello(&mut self, dial: u64) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, life) = (pending.from, pending.to, pending.life);
        let (of, over) = (pending.of, pending.over);
        let waits = self.is_paused(from) || self.is_paused(to);
        if waits && of == DialOf::Discovery {
            let again = self.now + RETRANSMITTED_AFTER;
            return self.at(again, Happening::Wire(Wire::SayHello { dial }));
        }
        self.answered(dial);
        if !self.may_shake_hands((from, life), over, to) {
            return;
        }
        let Some(mut hello) = self.hello(from, of == DialOf::Host) else {
            return;
        };
        (hello.generation, hello.losses) = self.numbers(from, to);
        let to_life = self.slots[to].life;
        let at = self.now + self.trip(from, over, to);
        let arrives = Wire::HelloArrives {
            dial,
            to_life,
            hello: Box::new(hello),
        };
        self.at(at, Happening::Wire(arrives));
    }

    /// Statement of leadership in its Hello, as the answer to one that `arrived` then. A liar's is forged.
    fn side(&self, slot: usize, process: &Process, arrived: Time) -> Opaque {
        let local = |time| process.clock.local(time);
        let side = process.node.side_in_answer(local(self.now), local(arrived));
        match (self.boasts.get(&slot), decoded::side(&side)) {
            (Some(record), Some(side)) => Opaque::of(&Side {
                record: record.clone(),
                ..side
            }),
            _ => side,
        }
    }

    /// Counters of `slot` for its sessions with the present process of `other`.
    fn numbers(&self, slot: usize, other: usize) -> (u32, u32) {
        let (Some(process), Some(other)) = (&self.slots[slot].process, &self.slots[other].process)
        else {
            return (0, 0);
        };
        process.numbers.with(other.key)
    }

    /// The Hello of a process now.
    pub fn hello(&self, slot: usize, by_hand: bool) -> Option<Hello> {
        let place = &self.slots[slot];
        let process = place.process.as_ref()?;
        Some(Hello {
            features: self.features(slot),
            peer_id: place.id.clone(),
            incarnation: process.node.incarnation(),
            generation: 0,
            losses: 0,
            by_hand,
            policy: self.policy(slot),
            listen_port: place.address.port(),
            max_message_size: 262_144,
            eligible: process.eligible && !process.node.is_looking(),
            priority: process.node.standing_of_myself().1,
            has_leader: process.node.leader().is_some(),
            side: self.side(slot, process, self.now),
            join_payload: Vec::new(),
            state: None,
        })
    }

    fn hello_arrives(&mut self, dial: u64, to_life: u64, hello: &Hello) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, expects) = (pending.from, pending.to, pending.of.expects());
        let (from_life, over) = (pending.life, pending.over);
        let lost =
            !self.passes_from(from, over, to) || self.is_paused(to) || !self.is_life(to, to_life);
        if lost || !self.is_life(from, from_life) {
            return;
        }
        let (Some(dialler), Some(acceptor)) = (&self.slots[from].process, &self.slots[to].process)
        else {
            return;
        };
        let key = dialler.key;
        if acceptor.leaving {
            self.refuse(dial, false);
            return;
        }
        if expects.is_some_and(|expected| expected != acceptor.key) {
            self.refuse(dial, true);
            return;
        }
        if self.session_stands(to, from, from_life, over) {
            self.refuse(dial, false);
            return;
        }
        if self.settings.hosts.asked {
            return self.consider_dialler(dial, hello, key);
        }
        let local = acceptor.clock.local(self.now);
        let checked = acceptor.node.check_hello(local, hello, key, false);
        if let Err(refusal) = checked {
            self.check_refusal(to, &refusal);
            self.trace.add(
                self.now,
                format_args!("{} refuses {}: {refusal}", self.slots[to].id, hello.peer_id),
            );
            self.dispute(dial, to, hello, key, &refusal);
            self.refuse(dial, false);
            return;
        }
        // Both dial: the smaller id's dial stays.
        let both_dial = self.own_dial(to, from, path_over(over), true).is_some();
        if both_dial && self.slots[to].id < self.slots[from].id {
            self.refuse(dial, false);
            return;
        }
        self.end_stale(to, from, over);
        self.accept(dial, hello, self.now, key);
    }

    /// A later incarnation under the key of a member looks older, because its clock was set back: the member's link is asked for
    /// a sign of life. If none comes, the next dial is admitted.
    fn dispute(
        &mut self,
        dial: u64,
        to: usize,
        hello: &Hello,
        key: Fingerprint,
        refusal: &AdmissionRefusal,
    ) {
        let member = self
            .node(to)
            .and_then(|node| node.membership().get(&hello.peer_id));
        let same_key = member.is_some_and(|member| member.key == key);
        if !same_key || !matches!(refusal, AdmissionRefusal::Bound(_)) {
            return;
        }
        self.sometimes.older_lives_disputed += 1;
        let candidate = Candidate {
            entry: PeerEntry {
                id: hello.peer_id.clone(),
                key,
                addresses: Vec::new(),
            },
            incarnation: hello.incarnation,
            payload: Vec::new(),
        };
        let join = Input::Join {
            ticket: dial,
            candidate: Box::new(candidate),
            invited: false,
        };
        let _ = self.feed(to, join);
    }

    /// The acceptor admits the dialler, whose Hello `arrived` then.
    fn accept(&mut self, dial: u64, hello: &Hello, arrived: Time, key: Fingerprint) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, over) = (pending.from, pending.to, pending.over);
        let Some(process) = &self.slots[to].process else {
            return;
        };
        let own_key = process.key;
        let ours = self.side(to, process, arrived);
        let Some(mut answer) = self.hello(to, false) else {
            return;
        };
        answer.side = ours.clone();
        (answer.generation, answer.losses) = self.numbers(to, from);
        self.made += 1;
        let id = self.made;
        if let Some(pending) = self.dials.get_mut(&dial) {
            pending.link = Some(id);
        }
        let lives = [self.slots[from].life, self.slots[to].life];
        let numbers = [hello, &answer].map(|opening| (opening.generation, opening.losses));
        let admission = Admission {
            hello: hello.clone(),
            key,
            ours: ours.clone(),
        };
        self.links.insert(
            id,
            Link {
                slots: [from, to],
                lives,
                up: [false, false],
                ended: [false, false],
                given_ends: [LinkEnd::Closed, LinkEnd::Closed],
                was_over_at_end: [false, false],
                pipes: [Pipe::default(), Pipe::default()],
                dial,
                opening_side: hello.side.clone(),
                asking: false,
                admission: Some(Box::new(admission)),
                numbers,
                carriers: over.map(Carried::over),
                retired: [false, false],
                dead: false,
            },
        );
        let ack = Item::Ack(Box::new(answer), own_key);
        self.send(id, ACCEPTOR, ack, false);
        self.at(
            self.now + HOST_DIAL_TIMEOUT,
            Happening::Wire(Wire::AdmissionTimeout { link: id }),
        );
    }

    /// The acceptor learns that the dialler has taken the link, and takes it too, unless a reason against it has come up.
    fn ready(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let [from, to] = link.slots;
        let Some(admission) = link.admission.take().filter(|_| !link.ended[ACCEPTOR]) else {
            return;
        };
        let Admission { hello, key, ours } = *admission;
        let asked = self.settings.hosts.asked;
        if asked {
            self.end_outlived_session(to, from, &hello, key);
        }
        let outlived = asked && self.is_outlived(id, ACCEPTOR, &hello, key);
        let Some(process) = &self.slots[to].process else {
            return;
        };
        let local = process.clock.local(self.now);
        let stands = process.node.check_hello(local, &hello, key, false).is_ok();
        if process.leaving || outlived || !stands || self.is_worse_than_session(id, ACCEPTOR) {
            return self.refuse_link(id, ACCEPTOR);
        }
        let path = self.link_path(id);
        let is_second = self.attach_second(id, ACCEPTOR);
        if !is_second {
            self.end_replaced(to, from, path);
        }
        if let Some(own) = self.own_dial(to, from, path, false) {
            self.end_dial(own);
        }
        if is_second {
            return;
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.up[ACCEPTOR] = true;
        }
        if let Some(process) = &mut self.slots[to].process {
            process.sessions.insert(from, id);
        }
        let theirs = hello.side.clone();
        self.link_up(id, ACCEPTOR, &hello, key, ours, theirs);
    }

    /// The dialler was not ready in time.
    fn end_admission(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.admission.take().is_some() && !link.ended[ACCEPTOR] {
            self.refuse_link(id, ACCEPTOR);
            self.sweep(id);
        }
    }

    /// Notifies the node at that end of the link.
    fn link_up(
        &mut self,
        id: u64,
        end: usize,
        hello: &Hello,
        key: Fingerprint,
        ours: Opaque,
        theirs: Opaque,
    ) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (slot, other, life) = (link.slots[end], link.slots[1 - end], link.lives[1 - end]);
        self.trace.add(
            self.now,
            format_args!(
                "{} linked to {}: ours {} theirs {}",
                self.slots[slot].id,
                self.slots[other].id,
                Brief(&ours),
                Brief(&theirs)
            ),
        );
        let mine = self.numbers(slot, other);
        let agreed = mine.max((hello.generation, hello.losses));
        let link = LinkUp {
            peer: self.slots[other].id.clone(),
            incarnation: hello.incarnation,
            key,
            addresses: match self.is_carried(id) {
                true => Vec::new(),
                false => vec![self.slots[other].address],
            },
            eligible: hello.eligible,
            priority: hello.priority,
            is_host: self.settings.host == Some(other),
            path: self.path_of(id),
            carrier: self.carrier_at(id, end).map(|via| self.carrier_of(via)),
            through_turn: false,
            features: hello.features,
            ours,
            theirs,
        };
        let peer = link.peer.clone();
        self.checker.linked(slot, &peer, life);
        self.forget_rates(slot, other);
        let _ = self.feed(slot, Input::LinkUp(Box::new(link)));
        if let Some(process) = &mut self.slots[slot].process {
            process.last_linked.insert(peer, other);
            process.numbers.carry(other, key, hello.incarnation, agreed);
        }
        self.link_is_up(id, slot, other);
    }

    /// The acceptor's Hello is back at the dialler.
    fn acknowledged(&mut self, id: u64, hello: Hello, key: Fingerprint) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (from, dial) = (link.slots[DIALLER], link.dial);
        let process = self.slots[from].process.as_ref();
        let leaves = process.is_none_or(|process| process.leaving);
        if leaves || !self.dials.contains_key(&dial) {
            return self.refuse_link(id, DIALLER);
        }
        if self.settings.hosts.asked {
            return self.consider_acceptor(id, hello, key);
        }
        self.attach_dialler(id, &hello, key);
    }

    /// The dialler takes the link, unless a reason against it has come up.
    fn attach_dialler(&mut self, id: u64, hello: &Hello, key: Fingerprint) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let [from, to] = link.slots;
        let (dial, ours) = (link.dial, link.opening_side.clone());
        let outlived = self.settings.hosts.asked && self.is_outlived(id, DIALLER, hello, key);
        let Some(process) = &self.slots[from].process else {
            return;
        };
        let local = process.clock.local(self.now);
        let checked = process.node.check_hello(local, hello, key, false);
        if checked.is_err() {
            self.dial_failed(dial, false);
            self.refuse_link(id, DIALLER);
            return;
        }
        if self.is_worse_than_session(id, DIALLER) {
            self.dial_failed(dial, false);
            return self.refuse_link(id, DIALLER);
        }
        // As in the library, the acceptor learns that before the dialler's last check.
        self.send(id, DIALLER, Item::Ready, false);
        if outlived {
            self.dial_failed(dial, false);
            self.refuse_link(id, DIALLER);
            return;
        }
        if self.attach_second(id, DIALLER) {
            return self.end_dial(dial);
        }
        let Some(process) = &self.slots[from].process else {
            return;
        };
        if process.sessions.contains_key(&to) {
            self.end_replaced(from, to, self.link_path(id));
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.up[DIALLER] = true;
        }
        if let Some(process) = &mut self.slots[from].process {
            process.sessions.insert(to, id);
        }
        self.link_up(id, DIALLER, hello, key, ours, hello.side.clone());
        self.end_dial(dial);
    }

    /// Rejects the link at that end.
    fn refuse_link(&mut self, id: u64, end: usize) {
        let slot = self.links.get(&id).map(|link| link.slots[end]);
        let process = slot.and_then(|slot| self.slots[slot].process.as_ref());
        let is_over = process.is_some_and(|process| process.node.is_over());
        // The library then closes without claiming that its process ends.
        let why = if is_over {
            LinkEnd::RoomEnded
        } else if self.settings.hosts.asked {
            LinkEnd::Silent
        } else {
            LinkEnd::Closed
        };
        if let Some(link) = self.links.get_mut(&id) {
            link.ended[end] = true;
            link.given_ends[end] = why;
            link.was_over_at_end[end] = is_over;
            self.send_close(id, end, why);
        }
    }

    /// The dial from `from` to `to`, on as good a path, that has not ended. With `arrives` not one that a wall holds.
    fn own_dial(&self, from: usize, to: usize, path: Path, arrives: bool) -> Option<u64> {
        let mut dials = self.dials.iter();
        let own = dials.find(|(_, dial)| {
            let is_on_such_a_path = path_over(dial.over) == path;
            dial.from == from && dial.to == to && is_on_such_a_path && !(arrives && dial.held)
        });
        own.map(|(dial, _)| *dial)
    }

    fn refuse(&mut self, dial: u64, permanent: bool) {
        let ends = self.dials.get(&dial);
        let ends = ends.map(|dial| (dial.to, dial.over, dial.from));
        let (from, over, to) = ends.unwrap_or_default();
        let at = self.now + self.trip(from, over, to);
        self.at(at, Happening::Wire(Wire::DialRefused { dial, permanent }));
    }

    fn dial_failed(&mut self, dial: u64, permanent: bool) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, life) = (pending.from, pending.to, pending.life);
        let (by_core, kicked) = (pending.of.expects().is_some(), pending.kicked);
        let (link, attempt_of) = (pending.link, pending.attempt_of);
        if let Some(link) = link {
            self.refuse_link(link, DIALLER);
        }
        if let Some(whole) = attempt_of {
            return self.attempt_refused(dial, whole, permanent);
        }
        if self.is_life(from, life) && by_core {
            let peer = self.slots[to].id.clone();
            if !(kicked && self.learns_of_its_kick(from, &peer)) {
                let _ = self.feed(from, Input::DialFailed { peer, permanent });
            }
        }
        self.end_dial(dial);
    }

    fn end_dial(&mut self, dial: u64) {
        let Some(pending) = self.dials.remove(&dial) else {
            return;
        };
        if let Some(whole) = pending.attempt_of {
            return self.attempt_succeeded(whole);
        }
        if pending.of != DialOf::Host || !self.is_life(pending.from, pending.life) {
            return;
        }
        if let Some(process) = &mut self.slots[pending.from].process {
            process.host_dials -= 1;
            if process.host_dials == 0 {
                let _ = self.feed(pending.from, Input::HostDialing(false));
            }
        }
    }
}

/// Traffic.
impl World {
    pub fn transmit(&mut self, slot: usize, to: &PeerId, envelope: Envelope, urgent: bool) {
        let Some((link, end)) = self.session_with(slot, to) else {
            return;
        };
        if self.paths.are_modelled && !self.may_be_sent(slot, link, &envelope.message) {
            return;
        }
        if !self.passes(link, end, &envelope) {
            self.send(link, end, Item::Message(Box::new(envelope)), urgent);
        }
    }

    /// A process sends a frame of the room's state to a member.
    pub(crate) fn send_state(&mut self, slot: usize, to: &PeerId, frame: Frame) {
        if let Some((link, end)) = self.session_with(slot, to) {
            self.send(link, end, Item::State(Box::new(frame)), false);
        }
    }

    /// A control message that the node itself did not send, for tests of bad members. A heartbeat gets the next number: an older
    /// one would be ignored, and a larger one would silence the sender.
    pub fn forge(&mut self, slot: usize, to: usize, mut envelope: Envelope) {
        let to = self.slots[to].id.clone();
        if let Message::Heartbeat(heartbeat) = &mut envelope.message
            && let Some(process) = &mut self.slots[slot].process
        {
            heartbeat.seq = process.node.take_heartbeat_number();
        }
        self.transmit(slot, &to, envelope, true);
    }

    /// The link of a process with the member of that id. A namesake's link begins before the one that it replaces ends: until
    /// then this is the replaced one.
    pub(crate) fn session_with(&self, slot: usize, peer: &PeerId) -> Option<(u64, usize)> {
        let process = self.slots[slot].process.as_ref()?;
        let id = if self.checker.namesakes.contains(peer) {
            let bound = process.node.membership().get(peer).map(|member| member.key);
            let its = process.sessions.iter();
            let its = its.filter(|(other, _)| self.slots[**other].id == *peer);
            let key_of = |other: &usize| self.slots[*other].process.as_ref().map(|its| its.key);
            let (_, id) = its.min_by_key(|(other, id)| (key_of(other) == bound, **id))?;
            *id
        } else {
            *process.sessions.get(&self.slot_of(peer)?)?
        };
        Some((id, self.links.get(&id)?.end_of(slot)))
    }

    fn send(&mut self, id: u64, from: usize, item: Item, urgent: bool) {
        let Some([one, other]) = self.links.get(&id).map(|link| link.slots) else {
            return;
        };
        let over = self.carrier_at(id, from);
        let delay = if from == DIALLER {
            self.trip(one, over, other)
        } else {
            self.trip(other, over, one)
        };
        self.sent_to_carrier(id, from);
        self.may_be_refused(id, from);
        if self.stream_loss > 0.0 {
            self.probe_the_missing(id, from, delay, urgent);
        }
        let delay = delay + self.retransmissions(urgent);
        let now = self.now;
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let pipe = &mut link.pipes[from];
        let at = pipe.last.map_or(now + delay, |last| last.max(now + delay));
        pipe.last = Some(at);
        pipe.items.push_back((at, item));
        self.at(at, Happening::Wire(Wire::Deliver { link: id, from }));
    }

    fn deliver(&mut self, id: u64, from: usize) {
        while self.violation.is_none() {
            let Some(link) = self.links.get(&id) else {
                return;
            };
            let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
            let waits = link.asking && from == ACCEPTOR;
            let now = self.now;
            let front = link.pipes[from].items.front();
            if waits || front.is_none_or(|(at, _)| *at > now) {
                return;
            }
            let is_held = self.is_blocked(id, from) || self.is_paused(receiver);
            let Some(link) = self.links.get_mut(&id) else {
                return;
            };
            link.pipes[from].is_held = is_held;
            if is_held {
                return;
            }
            let Some((_, item)) = link.pipes[from].items.pop_front() else {
                return;
            };
            link.pipes[from].arrived = Some(now);
            let open = link.up[1 - from] && !link.ended[1 - from];
            let life = link.lives[1 - from];
            if !self.is_life(receiver, life) {
                continue;
            }
            match item {
                Item::Ack(hello, key) => self.acknowledged(id, *hello, key),
                Item::Ready => self.ready(id),
                Item::Message(envelope) if open => {
                    let peer = self.slots[sender].id.clone();
                    self.trace.add(
                        now,
                        format_args!(
                            "{} <- {peer} {}",
                            self.slots[receiver].id,
                            Brief(&*envelope)
                        ),
                    );
                    self.copy_of(id, from, &envelope);
                    let is_retired = self.is_retired(id, 1 - from);
                    if !is_retired {
                        self.end_retired(receiver, sender);
                    }
                    // A heartbeat on a carried link has no part in elections.
                    let is_overtaken = is_retired
                        && !self.link_path(id).counts_in_elections()
                        && matches!(envelope.message, Message::Heartbeat(_));
                    let input = match is_overtaken {
                        true => Input::OtherData { peer },
                        false => Input::Message {
                            from: peer,
                            envelope: *envelope,
                        },
                    };
                    let _ = self.feed(receiver, input);
                }
                Item::State(frame) => {
                    let peer = self.slots[sender].id.clone();
                    let counts = open && !self.is_retired(id, 1 - from);
                    let name = &self.slots[receiver].id;
                    let drops = if counts { "" } else { "drops " };
                    self.trace
                        .add(now, format_args!("{name} {drops}<- {peer} {frame:?}"));
                    if counts {
                        self.state_arrives(receiver, &peer, *frame);
                    }
                }
                // The transport answers arrivals on a link that it has closed.
                Item::Message(envelope) => {
                    self.left_over(id, from, *envelope);
                    let given = self.links.get(&id).map(|link| link.given_ends[1 - from]);
                    self.send_close(id, 1 - from, given.unwrap_or(LinkEnd::Closed));
                }
            }
        }
    }

    /// Sends again the items that cuts and pauses held back.
    pub fn unblock(&mut self) {
        let stuck: Vec<_> = self
            .links
            .iter()
            .flat_map(|(id, link)| [(*id, DIALLER, link), (*id, ACCEPTOR, link)])
            .filter(|(id, from, link)| {
                let pipe = &link.pipes[*from];
                let is_due = pipe.items.front().is_some_and(|(at, _)| *at <= self.now);
                // An item that is due in this moment may be about to arrive.
                (pipe.is_held && is_due)
                    && !self.is_blocked(*id, *from)
                    && !self.is_paused(link.slots[1 - from])
            })
            .map(|(id, from, link)| (id, from, link.slots[from], link.slots[1 - from]))
            .collect();
        for (id, from, sender, receiver) in stuck {
            let at = self.now + self.trip(sender, self.carrier_at(id, from), receiver);
            if let Some(link) = self.links.get_mut(&id) {
                let pipe = &mut link.pipes[from];
                pipe.is_held = false;
                for (due, _) in &mut pipe.items {
                    *due = at.max(*due);
                }
                pipe.last = pipe.last.max(Some(at));
            }
            self.at(at, Happening::Wire(Wire::Deliver { link: id, from }));
        }
    }

    pub fn send_datagram(&mut self, slot: usize, to: &PeerId, probe: Probe) {
        let Some((link, from)) = self.session_with(slot, to) else {
            return;
        };
        let Some(other) = self.links.get(&link).map(|link| link.slots[1 - from]) else {
            return;
        };
        if self.settings.hosts.talk
            && let Some(process) = &mut self.slots[slot].process
        {
            process.probed.entry(other).or_insert(self.now);
        }
        self.may_be_refused(link, from);
        if let Probe::SilentRelay { .. } = probe {
            if self.paths.is_old(other) {
                let text = format!("a report of a silent relay goes to {to}, who does not know it");
                self.violate("features", text);
            }
            if self.paths.planted == Some(Planted::ReportsNoSilentRelays) {
                return;
            }
            self.paths.relays.counts.silences_reported += 1;
        }
        let copies = 1 + u32::from(self.rng.random_bool(self.datagram_copies));
        for _ in 0..copies {
            if !self.rng.random_bool(self.datagram_loss) {
                // Datagrams overtake each other.
                let over = self.carrier_at(link, from);
                let at = self.now + self.trip(slot, over, other) + self.trip(slot, over, other);
                self.sent_to_carrier(link, from);
                self.at(at, Happening::Wire(Wire::Datagram { link, from, probe }));
            }
        }
    }

    fn deliver_datagram(&mut self, id: u64, from: usize, probe: Probe) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        let open = link.up[1 - from] && !link.ended[1 - from];
        if open
            && self.is_life(receiver, link.lives[1 - from])
            && !self.is_blocked(id, from)
            && !self.is_paused(receiver)
        {
            let from = self.slots[sender].id.clone();
            self.trace.add(
                self.now,
                format_args!("{} <- {from} {probe:?}", self.slots[receiver].id),
            );
            let _ = self.feed(receiver, Input::Datagram { from, probe });
        }
    }
}

impl World {
    /// The place at the other end of a link.
    pub(crate) fn other_end(&self, id: u64, slot: usize) -> Option<usize> {
        let link = self.links.get(&id)?;
        Some(link.slots[1 - link.end_of(slot)])
    }
}

impl Link {
    /// The place that dialled it.
    pub fn dialler(&self) -> usize {
        self.slots[DIALLER]
    }

    fn end_of(&self, slot: usize) -> usize {
        if self.slots[DIALLER] == slot {
            DIALLER
        } else {
            ACCEPTOR
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    const TRIP: Duration = Duration::from_millis(40);

    /// Two members with a direct link over which each packet takes one [`TRIP`].
    fn room() -> World {
        let settings = Settings {
            delay: (TRIP, TRIP),
            ..Settings::default()
        };
        let mut world = World::new(1, 2, settings, Trace::off());
        world.model_paths();
        for slot in 0..2 {
            world.start(slot);
        }
        world.connect(0, 1);
        world
    }

    /// Runs until a member has taken the link with another.
    fn wait_for_link(world: &mut World, slot: usize, other: usize) {
        while world.slots[slot]
            .process
            .as_ref()
            .is_none_or(|process| !process.sessions.contains_key(&other))
        {
            assert!(world.now < Time::from_micros(10_000_000), "no link");
            world.run_for(Duration::from_micros(1));
        }
    }

    /// As in the library, a brief dial limits the wait for the first answer, which takes one of the handshake's round trips.
    #[test]
    fn a_brief_dial_goes_on_once_the_other_end_has_answered() {
        let links = |lasts: Duration, runs: bool| {
            let mut world = room();
            world.dials.clear();
            if !runs {
                world.crash(1);
            }
            world.dial(0, 1, DialOf::Discovery, Some(lasts));
            world.run_for(lasts);
            let goes_on = !world.dials.is_empty();
            world.run_for(Duration::from_secs(1));
            let linked = !world.links.is_empty();
            assert_eq!(goes_on, linked, "{lasts:?}");
            linked
        };
        let round_trip = TRIP * 2;
        assert!(!links(
            round_trip.saturating_sub(Duration::from_millis(1)),
            true
        ));
        assert!(links(round_trip + Duration::from_millis(1), true));
        assert!(!links(TRIP * 8, false), "no process answers");
    }

    #[test]
    fn frames_that_arrive_in_the_moment_of_a_new_direct_link_take_one_trip() {
        let mut world = room();
        wait_for_link(&mut world, 0, 1);
        let link = world.links.values().next().expect("it is there");
        let sent = link.pipes[DIALLER].items.len();
        assert!(sent > 1, "more than the Ready");
        wait_for_link(&mut world, 1, 0);
        let link = world.links.values().next().expect("it is there");
        assert!(
            link.pipes[DIALLER].items.is_empty(),
            "{:?}",
            link.pipes[DIALLER]
        );
    }

    #[test]
    fn frames_that_a_cut_held_back_arrive_a_trip_after_it_ends() {
        let mut world = room();
        wait_for_link(&mut world, 1, 0);
        world.run_for(Duration::from_secs(1));
        world.cut(0, 1);
        world.run_for(Duration::from_secs(1));
        let mended_at = world.now;
        world.mend(0, 1);
        world.run_for(TRIP.saturating_sub(Duration::from_micros(1)));
        assert!(world.last_arrival(0, 1).is_some_and(|at| at < mended_at));
        world.run_for(Duration::from_micros(1));
        assert_eq!(world.last_arrival(0, 1), Some(mended_at + TRIP));
    }
}
