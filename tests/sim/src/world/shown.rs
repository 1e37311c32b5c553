//! What a room shows to whoever looks at it.

use room_core::id::PeerId;
use room_core::node::Node;
use room_core::time::Time;

use super::{Slot, World};
use crate::trace::Brief;

impl World {
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

    /// What the clock of a running process shows.
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

    /// The one leader that every running node shows, if there is one and it runs. Whoever has said farewell is out
    /// of the room: others do not tell it anything any more, and it may wait for somebody's answer for a while.
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

    /// The same, and every member linked to it follows the leadership in which it leads: nothing is under way
    /// any more.
    pub fn settled(&self) -> Option<usize> {
        let leader = self.agreed()?;
        let token = self.node(leader)?.leader_token()?;
        let follows = |slot: &usize| {
            self.node(*slot)
                .is_some_and(|node| node.followed_token() == token)
        };
        let mut linked = self.running();
        linked.retain(|slot| *slot == leader || self.is_linked(*slot, leader));
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

    /// What every node shows, for the text of a violation.
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

    /// Term of a running node's record.
    pub fn term(&self, slot: usize) -> u64 {
        self.node(slot).map_or(0, |node| node.record().term())
    }
}
