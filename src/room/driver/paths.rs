//! Paths of links: carriers, and the addresses from which peers' packets come.

use std::net::SocketAddr;

use super::Driver;
use crate::core::event::{MappingFault, MappingReport, TurnReport};
use crate::core::id::{Fingerprint, PeerId};
use crate::core::introductions::Dial;
use crate::core::node::{Event, Input};
use crate::core::path::{Carrier, Path};
use crate::core::virtual_address::{VirtualId, behind_turn, on_the_network, virtual_id};
use crate::net::closed_ports::RefusedPacket;
use crate::net::socket::canonical;
use crate::net::tunnel::{CannotCarry, Via};

impl Driver {
    /// Dials a member for the core.
    pub(super) fn dial_member(&self, dial: Dial) {
        let carriers = dial.carriers.iter().filter_map(|carrier| self.via(carrier));
        let carried = carriers.filter_map(|via| self.tunnels.route(dial.key, via));
        let carried = carried.collect();
        tracing::debug!(peer = %dial.peer, addresses = ?dial.addresses, carriers = ?dial.carriers, "dials");
        self.dialling.dial(dial, carried);
    }

    /// Sends this node's packets on a carried link another way.
    pub(super) fn change_carrier(&self, peer: &PeerId, carrier: Option<&Carrier>) {
        let via = carrier.and_then(|carrier| self.via(carrier));
        if let Some(at) = self.sessions.address_of(peer) {
            self.tunnels.set_carrier(at, via);
        }
    }

    /// The links with a carrier: none with a member that is not linked directly.
    fn via(&self, carrier: &Carrier) -> Option<Via> {
        match carrier {
            Carrier::Relay(relay) => Some(Via::Relay(*relay)),
            Carrier::Member(id) => {
                let member = self.node.core.membership().direct(id)?;
                Some(Via::Member(virtual_id(member.key)))
            }
        }
    }

    /// Lets another link with a peer go the way of the one before, if it needs a carrier.
    pub(super) fn keep_carrier(&self, peer: &PeerId) {
        let member = self.node.core.membership().get(peer);
        if let Some(carrier) = member.and_then(|member| member.carrier.clone()) {
            self.change_carrier(peer, Some(&carrier));
        }
    }

    /// Notifies the core where a peer's packets come from, if that is new.
    pub(super) fn report_address(&mut self, peer: &PeerId) {
        if let Some((at, was_dialled)) = self.sessions.moved_to(peer) {
            let (peer, address) = (peer.clone(), canonical(on_the_network(at)));
            tracing::debug!(%peer, %address, "its packets come from here");
            let came = !was_dialled;
            self.feed(Input::SeenAt {
                peer,
                address,
                came,
                through_turn: behind_turn(at).is_some(),
            });
        }
    }

    /// Handles a new state of the port at a TURN server.
    pub(super) fn turn_reports(&mut self, report: TurnReport) {
        self.feed(Input::Turn(report.address));
        self.notify(Event::Turn(report));
    }

    /// Lets the router be asked again if its address has changed since it was asked, as after a new connection to the provider.
    pub(super) fn ask_again_after(&self, event: &Event) {
        let is_elsewhere = MappingReport::Failed(MappingFault::Elsewhere);
        if let (Event::PortMapping(report), Some(mapper)) = (event, &self.mapper)
            && *report == is_elsewhere
        {
            mapper.hint();
        }
    }

    /// Notifies the core that packets of this node were refused: by the present address of a member's link, or, where the system
    /// does not name it, by some address.
    pub(super) fn packet_refused(&mut self, refused: RefusedPacket) {
        self.report_probed(); // whatever arrived is a sign of life, and ends a doubt
        let RefusedPacket { destination, sent } = refused;
        let now = self.node.now();
        let sent = sent.map(|at| now - at.elapsed());
        let members = self.node.core.membership().iter();
        let is_there = |peer: &PeerId| match destination {
            Some(at) => self.sessions.address_of(peer).map(canonical) == Some(at),
            None => true,
        };
        let peers: Vec<_> = members
            .map(|(peer, _)| peer.clone())
            .filter(is_there)
            .collect();
        for peer in peers {
            self.feed(Input::Refused { peer, sent });
        }
    }

    /// Notifies the core that the holder of a key has answered a dial of an address.
    pub(super) fn answered(&mut self, key: Fingerprint, at: SocketAddr) {
        let core = &self.node.core;
        if Path::to(at).is_direct() && core.knows(self.node.now(), key) {
            let address = canonical(on_the_network(at));
            self.feed(Input::Answered { address });
        }
    }

    /// Notifies the core that this node does not carry a peer's packets to a member.
    pub(super) fn cannot_carry(&mut self, report: CannotCarry) {
        let CannotCarry { sender, target } = report;
        if let Some(from) = self.holder_of(sender) {
            self.feed(Input::CannotCarry { from, target });
        }
    }

    fn holder_of(&self, id: VirtualId) -> Option<PeerId> {
        let mut members = self.node.core.membership().iter();
        let holder = members.find(|(_, member)| virtual_id(member.key) == id);
        holder.map(|(peer, _)| peer.clone())
    }

    /// The carrier of this node's packets to a virtual address.
    pub(super) fn carrier_at(&self, address: SocketAddr) -> Option<Carrier> {
        Some(match self.tunnels.carrier_of(address)? {
            Via::Relay(relay) => Carrier::Relay(relay),
            Via::Member(id) => Carrier::Member(self.holder_of(id)?),
        })
    }

    /// Sets what this node does for tunnels of others.
    pub(super) fn route_tunnels(&self) {
        // A node that leaves no longer follows a leader, and its last messages are on their way.
        if self.leave_asked {
            return;
        }
        self.tunnels.set_leading(self.node.core.is_leader());
    }
}
