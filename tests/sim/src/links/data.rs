//! Hosts' messages on their lanes, as far as they affect elections: messages of leaders, stamped with the record under which they
//! lead, and broadcasts that the leader relays (`src/room/sessions.rs`, `src/room/relay.rs`).

use rand::Rng;
use rand::seq::IndexedRandom;
use room_core::wire::Opaque;

use room_core::election::record::Record;
use room_core::id::{Incarnation, PeerId};
use room_core::node::{Input, Node, OriginIncarnation};
use room_core::time::{Duration, Time};

use super::Wire;
use crate::world::{Happening, World};

/// Interval and number of a lane's checks for the next link.
const LOOKS_AGAIN: Duration = Duration::from_millis(250);
const LOOKS: u32 = 20;

/// The sender that a message names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SenderRole {
    /// The leader's own.
    Leader,
    /// The sender itself: the leader shall relay it.
    ToRelay,
    /// Another member, relayed by the leader.
    Relayed { origin: PeerId, life: Incarnation },
}

/// A message on a lane.
#[derive(Debug)]
pub struct Data {
    from: usize,
    to: usize,
    lives: [u64; 2],
    token: Opaque,
    role: SenderRole,
    looks: u32,
}

/// Hosts send.
impl World {
    /// The host of a leader sends to all.
    pub(crate) fn speak_as_leader(&mut self, slot: usize) {
        let Some(token) = self.node(slot).and_then(Node::leader_token) else {
            return;
        };
        for to in self.peers_of(slot) {
            self.send_data(slot, to, token.clone(), SenderRole::Leader);
        }
    }

    /// A host broadcasts through the leader.
    pub(crate) fn speak_through_leader(&mut self, slot: usize) {
        let Some(node) = self.node(slot) else {
            return;
        };
        let token = node.followed_token();
        let leader = node.leader().and_then(|leader| self.slot_of(leader));
        if let Some(leader) = leader.filter(|leader| *leader != slot) {
            self.send_data(slot, leader, token, SenderRole::ToRelay);
        }
    }

    /// All hosts that lead send, and one of the others.
    pub(crate) fn hosts_talk(&mut self) {
        for leader in self.leaders() {
            self.speak_as_leader(leader);
        }
        if let Some(one) = self.running().choose(&mut self.rng).copied() {
            self.speak_through_leader(one);
        }
    }

    /// A liar sends as a leader under another's record, relays in another's name under an invented record, and has its broadcast
    /// relayed by a member that it claims was assigned.
    pub(crate) fn lie_as_leader(&mut self, liar: usize, victim: usize, about: usize) {
        let Some(node) = self.node(victim) else {
            return;
        };
        let its = self.slots[about].id.clone();
        let mut stamp = node.record().stamp.clone();
        stamp.term += 1;
        let record = |leader: usize, assigned| {
            Opaque::of(&Record {
                leader_key: None,
                stamp: stamp.clone(),
                leader: Some(self.slots[leader].id.clone()),
                assigned,
            })
        };
        let (own, others, assigned) = (
            record(liar, false),
            record(about, false),
            record(victim, true),
        );
        let life = Incarnation {
            started_us: u64::MAX,
            random: 1,
        };
        self.send_data(liar, victim, others, SenderRole::Leader);
        self.send_data(liar, victim, own, SenderRole::Relayed { origin: its, life });
        self.send_data(liar, victim, assigned, SenderRole::ToRelay);
    }

    fn peers_of(&self, slot: usize) -> Vec<usize> {
        let process = self.slots[slot].process.as_ref();
        process.map_or_else(Vec::new, |process| {
            process.sessions.keys().copied().collect()
        })
    }

    fn send_data(&mut self, from: usize, to: usize, token: Opaque, role: SenderRole) {
        let late = self.data_late;
        let at = self.now + self.delay(from, to) + self.between(Duration::ZERO, late);
        self.last_data_at = self.last_data_at.max(at);
        let lives = [self.slots[from].life, self.slots[to].life];
        let looks = 0;
        let data = Data {
            from,
            to,
            lives,
            token,
            role,
            looks,
        };
        self.at(at, Happening::Wire(Wire::Data(Box::new(data))));
    }

    /// Arrival time of the last host message, except messages that wait for a link.
    pub fn data_until(&self) -> Time {
        self.last_data_at.max(self.now)
    }

    pub(super) fn data_arrives(&mut self, mut data: Data) {
        let (from, to) = (data.from, data.to);
        if !self.is_life(to, data.lives[1]) {
            return;
        }
        let blocked = !self.reaches(from, to) || self.is_paused(to);
        let link = self.slots[to].process.as_ref();
        let link = link.and_then(|process| process.sessions.get(&from));
        let life = link.and_then(|link| {
            let link = self.links.get(link)?;
            Some(link.lives[link.end_of(from)])
        });
        match life {
            Some(life) if !blocked && life == data.lives[0] => self.take_data(data),
            // A session belongs to one incarnation. This simulation allows more than the library: a message of an earlier
            // incarnation arrives on the link of the next one.
            Some(life) if !blocked && life > data.lives[0] => {
                self.sometimes.data_of_past_lives += 1;
                self.take_data(data);
            }
            _ => {
                data.looks += 1;
                if data.looks < LOOKS && self.calm_since.is_none() {
                    let at = self.now + LOOKS_AGAIN;
                    self.at(at, Happening::Wire(Wire::Data(Box::new(data))));
                }
            }
        }
    }

    fn take_data(&mut self, data: Data) {
        let (to, token) = (data.to, data.token);
        let peer = self.slots[data.from].id.clone();
        let Some(before) = self.node(to).map(|node| node.record().clone()) else {
            return;
        };
        self.trace.add(
            self.now,
            format_args!(
                "{} <- {peer} data {:?} under {token:?}",
                self.slots[to].id, data.role
            ),
        );
        match data.role {
            SenderRole::Leader => {
                let accept = |node: &mut Node, now| node.accept_leader_message(now, &peer, &token);
                let accepted = self.ask(to, accept) == Some(true);
                self.sometimes.leaders_accepted += u64::from(accepted);
                self.sometimes.deposed_leaders_ignored += u64::from(!accepted);
                self.sometimes.leaders_found_by_data += u64::from(self.has_changed(to, &before));
            }
            SenderRole::ToRelay => {
                let relays = |node: &mut Node, now| node.may_relay(now, &peer, &token);
                let relays = self.ask(to, relays) == Some(true);
                self.sometimes.assignments_found_by_data +=
                    u64::from(self.has_changed(to, &before));
                if relays {
                    self.relay(to, data.from);
                }
            }
            SenderRole::Relayed { origin, life } => {
                let accept = |node: &mut Node, now| {
                    let speaker = node.accept_relay(now, &peer, &token, Duration::ZERO);
                    speaker.is_some()
                };
                let accepted = origin != self.slots[to].id && self.ask(to, accept) == Some(true);
                self.sometimes.leaders_found_by_relays += u64::from(self.has_changed(to, &before));
                let known = self
                    .node(to)
                    .map(|node| node.origin_incarnation(&origin, life));
                let relayed = accepted && known != Some(OriginIncarnation::Past);
                self.sometimes.relays_accepted += u64::from(relayed);
                self.sometimes.relays_ignored += u64::from(!relayed);
            }
        }
    }

    fn has_changed(&self, slot: usize, before: &Record) -> bool {
        self.node(slot).is_some_and(|node| node.record() != before)
    }

    /// A leader relays a broadcast to all others.
    fn relay(&mut self, slot: usize, origin: usize) {
        let Some(node) = self.node(slot) else {
            return;
        };
        let name = self.slots[origin].id.clone();
        let member = node.membership().get(&name);
        let (Some(token), Some(member)) = (node.leader_token(), member) else {
            return;
        };
        let life = member.incarnation;
        for to in self.peers_of(slot).into_iter().filter(|to| *to != origin) {
            let origin = name.clone();
            self.send_data(
                slot,
                to,
                token.clone(),
                SenderRole::Relayed { origin, life },
            );
        }
    }

    /// Before its timers fire a process checks whether the transport received from peers that it probed.
    pub(crate) fn receive_transports(&mut self, slot: usize) {
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        for (other, at) in std::mem::take(&mut process.probed) {
            let acknowledged = self.now.since(at) >= self.max_rtt()
                && !self.is_paused(other)
                && self.are_joined(slot, other)
                && !self.rng.random_bool(self.datagram_loss);
            if acknowledged {
                self.sometimes.peers_alive_beside_messages += 1;
                let peer = self.slots[other].id.clone();
                let _ = self.feed(slot, Input::OtherData { peer });
            } else if self.now.since(at) < self.settings.heartbeat_timeout
                && let Some(process) = &mut self.slots[slot].process
            {
                process.probed.insert(other, at);
            }
        }
    }
}
