//! Entry into a room: a joining node neither leads nor admits before it has followed a leader.
//!
//! Until then it counts as ineligible, in its own election and in the elections of others, so that no strategy has to
//! know about it.

use super::*;
use crate::election::{ElectionConfig, Entry};

/// Time after which a host is notified that its node has found no room. The node keeps looking.
const REPORT_AFTER: Duration = Duration::from_secs(10);

/// A node that looks for a room.
#[derive(Debug)]
pub(super) struct Looking {
    /// Whether its host lets it lead after it has followed a leader.
    pub(super) eligible: bool,
    /// The time of the host's notification that no room was found; `None` once sent.
    report_at: Option<Time>,
}

impl Looking {
    /// Begins to look if the node joins a room; the node may not lead yet.
    pub(super) fn begin(now: Time, config: &mut ElectionConfig) -> Option<Self> {
        (config.entry == Entry::Join).then(|| Self {
            eligible: std::mem::replace(&mut config.eligible, false),
            report_at: Some(now + REPORT_AFTER),
        })
    }
}

impl Node {
    /// Whether this node joins a room and has followed no leader yet.
    pub fn is_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// Whether this node has followed no leader yet and the sender of `hello` knows none either. A peer that a member
    /// has introduced is in the room of that member.
    pub(super) fn looks_for_room(&self, hello: &Hello, key: Fingerprint) -> bool {
        self.looking.is_some() && !hello.has_leader && !self.is_vouched(&hello.peer_id, key)
    }

    /// Ends the search if there is a leader: this node is an ordinary member then.
    pub(super) fn room_found(&mut self, now: Time) {
        if self.leader().is_none() {
            return;
        }
        if let Some(looking) = self.looking.take() {
            let refused = self.set_eligible(now, looking.eligible).err();
            debug_assert_eq!(refused, None, "a member of a room that elects may lead");
        }
    }

    pub(super) fn looking_deadline(&self) -> Option<Time> {
        self.looking.as_ref()?.report_at
    }

    pub(super) fn looking_due(&mut self, now: Time) {
        let Some(looking) = &mut self.looking else {
            return;
        };
        if looking.report_at.take_if(|at| now >= *at).is_some() {
            self.event(Event::NoRoomFound(REPORT_AFTER));
        }
    }
}
