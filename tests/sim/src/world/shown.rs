//! The visible state of a room.

use room_core::id::PeerId;
use room_core::node::{Event, Left, LeftReason, Node, Output};
use room_core::time::Time;

use super::{Process, Slot, World};
use crate::trace::Brief;

impl World {
    /// Result of an `IsLeader` call in this place now, whether or not its process is stopped: the calling thread may resume
    /// before the one that checks the clock.
    pub fn leads_at_call(&self, slot: usize) -> bool {
        let Some(process) = &self.slots[slot].process else {
            return false;
        };
        let until = process.node.election().leadership().valid_until;
        let local = process.clock.local(self.now);
        process.node.is_leader() && until.is_none_or(|until| local < until)
    }

    pub fn node(&self, slot: usize) -> Option<&Node> {
        self.slots[slot]
            .process
            .as_ref()
            .map(|process| &process.node)
    }

    pub fn slot_of(&self, id: &PeerId) -> Option<usize> {
        let known = self.places.get(id).copied();
        known
            .filter(|slot| self.slots[*slot].id == *id)
            .or_else(|| self.slots.iter().position(|slot| slot.id == *id))
    }

    /// The place of the process that a member knows by that id. An id may belong to two processes, with keys of their own.
    pub(crate) fn peer_of(&self, slot: usize, id: &PeerId) -> Option<usize> {
        let process = self.slots[slot].process.as_ref()?;
        let linked = process.last_linked.get(id).copied();
        linked.or_else(|| self.slot_of(id))
    }

    /// The clock of a running process.
    pub fn local(&self, slot: usize) -> Time {
        let process = self.slots[slot].process.as_ref();
        process.map_or(self.now, |process| process.clock.local(self.now))
    }

    /// The slots whose process runs.
    pub fn running(&self) -> Vec<usize> {
        (0..self.slots.len())
            .filter(|slot| self.slots[*slot].process.is_some())
            .collect()
    }

    /// The running nodes that lead.
    pub fn leaders(&self) -> Vec<usize> {
        self.leading.iter().copied().collect()
    }

    /// The one leader that every running node shows, if there is one and it runs. A leaving node is out of the room: others no
    /// longer send it anything, and it may wait for an answer for a while.
    pub fn agreed(&self) -> Option<usize> {
        if self.leading.len() != 1 {
            return None;
        }
        let leader = *self.leading.first()?;
        let id = &self.slots[leader].id;
        let shown = |slot: &Slot| {
            let process = slot.process.as_ref().filter(|process| !process.leaving);
            process.is_none_or(|process| process.node.leader() == Some(id))
        };
        self.slots.iter().all(shown).then_some(leader)
    }

    /// The agreed leader, if every member linked to it follows the leadership in which it leads: no message is under way any
    /// more.
    pub fn settled(&self) -> Option<usize> {
        let leader = self.agreed()?;
        let token = self.node(leader)?.leader_token()?;
        let follows = |slot: &usize| {
            self.node(*slot)
                .is_some_and(|node| node.followed_token() == token)
        };
        let mut linked = self.running();
        linked.retain(|slot| *slot == leader || self.count_for_each_other(*slot, leader));
        linked.iter().all(follows).then_some(leader)
    }

    /// Whether every running pair is linked at both ends.
    pub fn is_mesh(&self) -> bool {
        let running = self.running();
        running.iter().all(|slot| {
            self.node(*slot)
                .is_some_and(|node| node.membership().len() + 1 == running.len())
        })
    }

    /// Every node's visible state, for the text of a violation.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for slot in &self.slots {
            let Some(process) = &slot.process else {
                continue;
            };
            let node = &process.node;
            let members: Vec<&str> = node
                .membership()
                .iter()
                .map(|(id, _)| id.as_str())
                .collect();
            let line = format!(
                "\n  {} {} shows {:?}, record {}, members {}",
                slot.id,
                self.profile.role(node),
                node.leader(),
                Brief(node.record()),
                members.join(" ")
            );
            text.push_str(&line);
        }
        text
    }

    /// A node shows a leader that is itself, that it is linked to, or that another linked member may vouch for and its host does
    /// not keep out.
    pub(super) fn check_path(&mut self, slot: usize, outputs: &[Output]) {
        let place = &mut self.slots[slot];
        let Some(process) = &mut place.process else {
            return;
        };
        process.note_kept_out(outputs);
        let Some(leader) = process.node.leader() else {
            return;
        };
        let members = process.node.membership();
        let is_here = *leader == place.id || members.get(leader).is_some();
        let may_be_named = !members.is_empty() && !process.keeps_out.contains(leader);
        if !is_here && !may_be_named {
            let text = format!("{} shows {leader}, to which it has no path", place.id);
            self.violate("path", text);
        }
    }

    /// A leader lifted a ban.
    pub(super) fn lets_in(&mut self, peer: &PeerId) {
        for slot in &mut self.slots {
            if let Some(process) = &mut slot.process {
                process.keeps_out.remove(peer);
            }
        }
    }

    /// Term of a running node's record.
    pub fn term(&self, slot: usize) -> u64 {
        self.node(slot).map_or(0, |node| node.record().term())
    }
}

impl Process {
    fn note_kept_out(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Event(Event::Left(Left {
                    peer,
                    why: LeftReason::Disconnected | LeftReason::Kicked,
                    ..
                })) => {
                    self.keeps_out.insert(peer.clone());
                }
                Output::Event(Event::Joined(peer) | Event::BanDropped { peer, .. }) => {
                    self.keeps_out.remove(peer);
                }
                _ => {}
            }
        }
    }
}
