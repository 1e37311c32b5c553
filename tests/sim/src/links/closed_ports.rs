//! Reports that a port is closed ("port unreachable"): true ones of a place whose process has died, and others.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;

use room_core::node::Input;
use room_core::time::{Duration, Time};

use super::Wire;
use crate::world::{Happening, World};

/// Reports that a machine sends to one receiver at once; further ones follow one in [`REPORT_INTERVAL`]. These are Linux's
/// defaults (`icmp_ratelimit`).
const REPORTS_AT_ONCE: u32 = 6;
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The reports, and their receivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClosedPorts {
    /// Whether a place without a process refuses packets, and reports it. Otherwise its machine is off, or a firewall is silent.
    pub are_reported: bool,
    /// Places that receive no reports.
    pub deaf: BTreeSet<usize>,
    /// Share of packets that arrive, and are reported as refused all the same.
    pub lies: f64,
    /// Largest delay of a report beside the trip.
    pub late: Duration,
    /// Time between two messages of a game from each member to each other. They only matter around a crash.
    pub play: Option<Duration>,
    /// The limits of the machines that report, by reporter and receiver.
    pub limits: BTreeMap<(usize, usize), Limit>,
}

/// A limit of one machine's reports to one receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Time that the reports have not used.
    credit: Duration,
    at: Time,
}

impl Limit {
    const MOST: Duration = REPORT_INTERVAL.saturating_mul(REPORTS_AT_ONCE);

    fn new(now: Time) -> Self {
        Self {
            credit: Self::MOST,
            at: now,
        }
    }

    fn admits(&mut self, now: Time) -> bool {
        self.credit = (self.credit + now.since(self.at)).min(Self::MOST);
        self.at = now;
        let rest = self.credit.checked_sub(REPORT_INTERVAL);
        self.credit = rest.unwrap_or(self.credit);
        rest.is_some()
    }
}

impl World {
    /// A packet of a direct link goes out: it may be refused.
    pub(super) fn may_be_refused(&mut self, id: u64, from: usize) {
        self.may_refuse(id, from, self.now);
    }

    /// A packet of a direct link, sent at that time, arrives at a closed port, or passes somebody who answers falsely.
    fn may_refuse(&mut self, id: u64, from: usize, sent: Time) {
        let ports = &self.closed_ports;
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        let none = !ports.are_reported && ports.lies == 0.0;
        if none || link.carriers.is_some() || ports.deaf.contains(&sender) {
            return;
        }
        let is_closed = self.slots[receiver].process.is_none();
        let lies = ports.lies;
        let reports = match is_closed {
            true => ports.are_reported,
            false => lies > 0.0 && self.rng.random_bool(lies),
        };
        let is_blocked = self.is_blocked(id, from) || self.is_blocked(id, 1 - from);
        if !reports || is_blocked || (self.datagram_loss > 0.0 && !self.both_pass()) {
            return;
        }
        let now = self.now;
        let limits = &mut self.closed_ports.limits;
        let limit = limits.entry((receiver, sender));
        if is_closed && !limit.or_insert_with(|| Limit::new(now)).admits(now) {
            return;
        }
        let latest = self.closed_ports.late;
        let late = self.between(Duration::ZERO, latest);
        let trips = self.delay(sender, receiver) + self.delay(receiver, sender);
        // Some do not quote enough of the packet.
        let quoted = (is_closed || self.rng.random_bool(0.8)).then_some(sent);
        let refused = Wire::Refused {
            link: id,
            from,
            sent: quoted,
        };
        let arrives = (sent + trips + late).max(now);
        self.at(arrives, Happening::Wire(refused));
    }

    /// The last message of a dead process is still under way, and the others play on: their next messages follow at any time,
    /// and those before it are under way to the dead process.
    pub fn play_against(&mut self, dead: usize) {
        let Some(interval) = self.closed_ports.play else {
            return;
        };
        let ends = self.links.iter().filter_map(|(id, link)| {
            let end = link.slots.iter().position(|slot| *slot != dead)?;
            link.slots.contains(&dead).then_some((*id, end))
        });
        for (link, from) in ends.collect::<Vec<_>>() {
            let Some([own, _]) = self.ends(link, from) else {
                continue;
            };
            let last = self.delay(dead, own);
            let last = last.saturating_sub(self.between(Duration::ZERO, interval));
            self.at(
                self.now + last,
                Happening::Wire(Wire::LastPlay { link, to: from }),
            );
            let wait = self.between(Duration::ZERO, interval);
            self.at(self.now + wait, Happening::Wire(Wire::Play { link, from }));
            let mut under_way = self.delay(own, dead);
            while let Some(sent_before) = under_way.checked_sub(interval) {
                under_way = sent_before;
                self.may_refuse(link, from, self.now - under_way);
            }
        }
    }

    /// The last message of a dead process arrives.
    pub(super) fn last_play_arrives(&mut self, link: u64, to: usize) {
        if let Some([own, dead]) = self.ends(link, to).filter(|_| self.holds(link, to)) {
            let peer = self.slots[dead].id.clone();
            let _ = self.feed(own, Input::OtherData { peer });
        }
    }

    /// The places at the ends of a link, the given one first.
    fn ends(&self, id: u64, end: usize) -> Option<[usize; 2]> {
        let link = self.links.get(&id)?;
        Some([end, 1 - end].map(|end| link.slots[end]))
    }

    /// One end sends a message of a game, and another one later, as long as it holds the link.
    pub(super) fn plays(&mut self, link: u64, from: usize) {
        let interval = self.closed_ports.play;
        let Some(interval) = interval.filter(|_| self.holds(link, from)) else {
            return;
        };
        self.may_be_refused(link, from);
        let next = Happening::Wire(Wire::Play { link, from });
        self.at(self.now + interval, next);
    }

    fn both_pass(&mut self) -> bool {
        let passes = 1.0 - self.datagram_loss;
        self.rng.random_bool(passes * passes)
    }

    pub(super) fn refused(&mut self, id: u64, from: usize, sent: Option<Time>) {
        let Some([sender, receiver]) = self.ends(id, from).filter(|_| self.holds(id, from)) else {
            return;
        };
        self.sometimes.refusals += 1;
        self.forge_refusal(sender, receiver, sent);
    }

    /// Whether that end of the link runs, and has the link still.
    fn holds(&self, id: u64, end: usize) -> bool {
        self.links.get(&id).is_some_and(|link| {
            let [own, other] = [end, 1 - end].map(|end| link.slots[end]);
            let process = self.slots[own].process.as_ref();
            let session = process.and_then(|process| process.sessions.get(&other));
            session == Some(&id) && self.is_life(own, link.lives[end]) && !self.is_paused(own)
        })
    }

    /// A process receives the report that a packet to another place was refused, which it sent then.
    pub fn forge_refusal(&mut self, slot: usize, about: usize, sent: Option<Time>) {
        let peer = self.slots[about].id.clone();
        let clock = self.slots[slot].process.as_ref();
        let sent = sent.and_then(|sent| Some(clock?.clock.local(sent)));
        self.trace.add(
            self.now,
            format_args!(
                "{} receives a report that {peer}'s port is closed",
                self.slots[slot].id
            ),
        );
        let _ = self.feed(slot, Input::Refused { peer, sent });
    }
}
