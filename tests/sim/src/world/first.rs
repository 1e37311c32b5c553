//! Rooms whose terms begin far above zero: the first process was linked to a member with a large term that has left.

use room_core::election::raft::wire::Side;
use room_core::election::record::{Record, Stamp};
use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::node::{Input, LinkUp};
use room_core::path::Path;
use room_core::wire::{Envelope, Message, Opaque};

use super::World;

/// No member of a room has this name.
const GHOST: &str = "gone before";

impl World {
    /// The process of `slot` learns of the room's first term.
    pub(super) fn learn_first_term(&mut self, slot: usize) {
        let term = std::mem::take(&mut self.first_term);
        // Voters of a static quorum ignore members beside the roster: their rooms begin with the terms of their state files.
        let begins = term > 0 && self.settings.roster.is_none();
        let Some(node) = self.node(slot).filter(|_| begins) else {
            return;
        };
        let ours = node.side(self.local(slot));
        let stamp = Stamp {
            term,
            ..Stamp::default()
        };
        self.checker.begin_at(&stamp);
        self.sometimes.high_terms += 1;
        let peer = PeerId::new(GHOST).expect("a valid name");
        let incarnation = Incarnation {
            started_us: 1,
            random: 1,
        };
        let link = LinkUp {
            peer: peer.clone(),
            incarnation,
            key: Fingerprint([0xfe; 32]),
            addresses: Vec::new(),
            eligible: false,
            priority: 0,
            is_host: false,
            path: Path::Direct,
            carrier: None,
            through_turn: false,
            features: 0,
            ours,
            theirs: Opaque::of(&Side {
                since: 0,
                hold_binds: false,
                record: Record::undecided(stamp),
                live: None,
                lone: false,
            }),
        };
        let _ = self.feed(slot, Input::LinkUp(Box::new(link)));
        let envelope = Envelope {
            incarnation,
            message: Message::Leave { successor: None },
        };
        let from = peer;
        let _ = self.feed(slot, Input::Message { from, envelope });
    }
}
