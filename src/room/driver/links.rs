//! Handling of link events.

use tokio::time::Instant;

use super::super::sessions::Role;
use super::super::unconfirmed;
use super::super::view::log;
use super::Driver;
use crate::core::id::PeerId;
use crate::core::node::{Event, Input, LinkEnd};
use crate::core::wire::{Envelope, Message};
use crate::net::events::{LinkEvent, LinkId, RelayEvent};

/// Events handled in one turn, at most.
const EVENTS_IN_A_TURN: usize = 64;

impl Driver {
    /// Handles an event of a link, and the events that have arrived meanwhile. Round trips, which heartbeats change
    /// without an event, are published once for all of them: the cost of a snapshot grows with the room.
    pub(super) fn link_events(&mut self, first: (LinkId, LinkEvent)) {
        let until = Instant::now() + self.shared.config.handshake_timeout;
        let mut next = Some(first);
        let mut left = EVENTS_IN_A_TURN;
        while let Some((id, event)) = next {
            self.publishes_later = matches!(event, LinkEvent::Control(_));
            self.link_event(id, event, until);
            self.publishes_later = false;
            self.retry_waiting();
            left -= 1;
            next = match left {
                0 => None,
                _ => self.queues.link_events.try_recv().ok(),
            };
        }
        if self.is_unpublished {
            self.publish();
        }
    }

    /// Handles waiting events for which the core has its information by now.
    pub(super) fn retry_waiting(&mut self) {
        self.broadcasts.answer_waiting(&self.node.core);
        for (id, event, until) in self.unconfirmed.take() {
            self.link_event(id, event, until);
        }
    }

    /// Handles an event of a link. A message whose sender may lead waits for the external store, at most until `until`.
    fn link_event(&mut self, id: LinkId, event: LinkEvent, until: Instant) {
        let Some((peer, role)) = self.sessions.owner(id) else {
            return;
        };
        if role == Role::Departing {
            return self.departing_event(id, &peer, event);
        }
        if let Some(token) = unconfirmed::token(&event)
            && self.node.core.awaits_leadership_proof(&peer, token)
            && self.unconfirmed.waits(&peer, token, until)
        {
            return self.unconfirmed.push(id, event, until);
        }
        match event {
            LinkEvent::Control(Envelope {
                message: Message::Heartbeat(_),
                ..
            }) if self.sessions.is_overtaken(id, &peer) => self.feed(Input::OtherData { peer }),
            LinkEvent::Control(envelope) => {
                if role == Role::Current {
                    self.sessions.close_retired(&peer);
                    // Its router may map it to another address while the link lives on.
                    self.report_address(&peer);
                }
                self.look_at_host();
                self.feed(Input::Message {
                    from: peer,
                    envelope,
                });
            }
            LinkEvent::Resumed(missed) => match self.sessions.resumed(id, &peer, role, missed) {
                Ok(Some(returned)) => {
                    let event = Event::Returned(returned);
                    log(&event);
                    self.shared.dispatch.push(event);
                }
                Ok(None) => {}
                Err(what) => self.broken(peer, what),
            },
            LinkEvent::Datagram(probe) => self.feed(Input::Datagram { from: peer, probe }),
            LinkEvent::Acked(lane, next) => {
                if !self.shared.outboxes.acked(&peer, lane, next) {
                    self.broken(peer, "an ack of a message that was never sent");
                }
            }
            LinkEvent::AckedUnordered(next, taken) => {
                let outboxes = &self.shared.outboxes;
                if !outboxes.acked_unordered(&peer, next, &taken) {
                    self.broken(peer, "an ack of an unordered message that was never sent");
                }
            }
            LinkEvent::Stamped(token, answer) => {
                let now = self.node.now();
                let core = &mut self.node.core;
                let accepted = core.accept_leader_message(now, &peer, &token);
                self.carry_out();
                // The reader may be gone.
                let _ = answer.send(accepted);
            }
            LinkEvent::Relay(event) => self.relay_event(peer, event),
            LinkEvent::State(frame, taken) if role == Role::Current => {
                self.state_frame(peer, frame, taken);
            }
            LinkEvent::State(..) | LinkEvent::LaneDone => {}
            LinkEvent::Violation(what) => self.broken(peer, what),
            LinkEvent::Closed(error) => {
                if let Some(why) = self.sessions.link_closed(id, &peer, role, &error) {
                    self.feed(Input::LinkDown { peer, why });
                }
            }
        }
    }

    pub(super) fn broken(&mut self, peer: PeerId, what: &'static str) {
        let why = LinkEnd::Violation(what);
        self.sessions.set_close_reason(&peer, why);
        self.feed(Input::LinkDown { peer, why });
    }

    /// Handles an event about messages on behalf of another member.
    fn relay_event(&mut self, peer: PeerId, event: RelayEvent) {
        let now = self.node.now();
        match event {
            RelayEvent::OnBehalf(message) => {
                let core = &mut self.node.core;
                // No member speaks for this node to itself.
                let speaker = match message.origin == self.shared.peer_id {
                    true => None,
                    false => core.accept_relay(now, &peer, &message.token, message.stopped),
                };
                self.carry_out();
                let until = Instant::now() + self.shared.config.handshake_timeout;
                let core = &self.node.core;
                self.broadcasts.receive(core, message, speaker, until);
            }
            RelayEvent::ToRelay(token, answer) => {
                let relays = self.node.core.may_relay(now, &peer, &token);
                self.carry_out();
                let core = &self.node.core;
                // The reader may be gone.
                let _ = answer.send(self.broadcasts.leading_for(core, peer, relays));
            }
            RelayEvent::Relayed(lane, next) => {
                if !self.shared.outboxes.relayed(&peer, lane, next) {
                    self.broken(peer, "a broadcast that was never sent is marked as relayed");
                }
            }
            RelayEvent::Again => self.shared.outboxes.carry_again(&peer),
        }
    }

    /// [`Driver::link_event`] for a peer that has left: the known state of its leadership decides.
    fn departing_event(&mut self, id: LinkId, peer: &PeerId, event: LinkEvent) {
        let now = self.node.now();
        let core = &self.node.core;
        match event {
            LinkEvent::Stamped(token, answer) => {
                // It sent this as leader before it left; the record known since then decides.
                let named = core.record().leader.as_ref();
                let accepted = named.is_none_or(|id| id == peer)
                    && core.has_or_had_leadership(now, peer, &token);
                let _ = answer.send(accepted);
            }
            LinkEvent::Relay(RelayEvent::OnBehalf(message)) => {
                let speaker = core.speaker(now, peer, &message.token, message.stopped);
                self.broadcasts.answer_departing(core, message, speaker);
            }
            LinkEvent::Relay(RelayEvent::ToRelay(_, answer)) => drop(answer.send(None)),
            LinkEvent::Relay(RelayEvent::Relayed(lane, next)) => {
                // It cannot be punished any more; broadcasts that it did not relay go to the next leader.
                let _ = self.shared.outboxes.relayed(peer, lane, next);
            }
            LinkEvent::LaneDone | LinkEvent::Violation(_) | LinkEvent::Closed(_) => {
                self.sessions.departed(id);
            }
            LinkEvent::Resumed(missed) => {
                // It cannot be punished any more.
                let _ = self.sessions.resumed(id, peer, Role::Departing, missed);
            }
            LinkEvent::Control(_)
            | LinkEvent::Datagram(_)
            | LinkEvent::Acked(..)
            | LinkEvent::AckedUnordered(..)
            | LinkEvent::Relay(RelayEvent::Again)
            | LinkEvent::State(..) => {}
        }
    }
}
