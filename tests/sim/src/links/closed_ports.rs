//! Reports that a port is closed ("port unreachable"): true ones of a place whose process has died, and others.

use std::collections::BTreeSet;

use rand::Rng;

use room_core::node::Input;
use room_core::time::{Duration, Time};

use super::Wire;
use crate::world::{Happening, World};

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
}

impl World {
    /// A packet of a direct link goes out: it may be refused.
    pub(super) fn may_be_refused(&mut self, id: u64, from: usize) {
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
        let latest = self.closed_ports.late;
        let late = self.between(Duration::ZERO, latest);
        let trips = self.delay(sender, receiver) + self.delay(receiver, sender);
        // Some do not quote enough of the packet.
        let sent = (is_closed || self.rng.random_bool(0.8)).then_some(self.now);
        let refused = Wire::Refused {
            link: id,
            from,
            sent,
        };
        self.at(self.now + trips + late, Happening::Wire(refused));
    }

    fn both_pass(&mut self) -> bool {
        let passes = 1.0 - self.datagram_loss;
        self.rng.random_bool(passes * passes)
    }

    pub(super) fn refused(&mut self, id: u64, from: usize, sent: Option<Time>) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (sender, receiver) = (link.slots[from], link.slots[1 - from]);
        let life = link.lives[from];
        let process = self.slots[sender].process.as_ref();
        let holds = process.and_then(|process| process.sessions.get(&receiver)) == Some(&id);
        if !holds || !self.is_life(sender, life) || self.is_paused(sender) {
            return;
        }
        self.sometimes.refusals += 1;
        self.forge_refusal(sender, receiver, sent);
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
