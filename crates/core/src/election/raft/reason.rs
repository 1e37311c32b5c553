//! The reason for the last change of the shown leader.

use super::{LeaderReason, Raft};
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// Evidence in one input for the end or the beginning of a leadership.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    /// The reason why the leader is gone, unless it is silence or this node's own end.
    pub(super) ended: Option<LeaderReason>,
    /// The leader led before: beside the one that was followed here, or before this node started.
    pub(super) found: bool,
    /// The previous leader asked for this node's campaign.
    pub(super) transferred: bool,
}

impl Raft {
    pub(super) fn begin_input(&mut self, now: Time) {
        self.at = now;
        self.hints = Hints::default();
        if self.leads() {
            self.led_until = now;
        }
    }

    /// A leader that this node learns of by a new link leads already.
    pub(super) fn leader_was_found(&mut self) {
        self.hints.found = true;
    }

    /// A leader is known to live, and to have led for `led_ms`.
    pub(super) fn saw_leader(&mut self, now: Time, leader: &PeerId, led_ms: u64) {
        let began_before = Duration::from_millis(led_ms) > now.since(self.led_until);
        if self.shown.as_ref() != Some(leader) && began_before {
            self.hints.found = true;
        }
        self.led_until = now;
    }

    /// Names the reason, if an input ended with another leader.
    pub(super) fn note_leader(&mut self, now: Time) {
        let leader = self.leader().cloned();
        if leader == self.shown {
            return;
        }
        let record = self.rules.record();
        self.reason = match &leader {
            None if self.shown.as_ref() == Some(&self.me) => {
                self.hints.ended.unwrap_or(LeaderReason::Resigned)
            }
            None => self.hints.ended.unwrap_or(LeaderReason::Lost),
            Some(leader) if *leader == self.me => match () {
                () if record.assigned => LeaderReason::Assigned,
                () if self.hints.transferred => LeaderReason::Transferred,
                () => LeaderReason::Elected,
            },
            Some(leader) => {
                let assigned = record.assigned && record.leader.as_ref() == Some(leader);
                match () {
                    () if !assigned && self.is_successor(now, leader) => LeaderReason::Transferred,
                    () if self.hints.found => LeaderReason::Found,
                    () if assigned => LeaderReason::Assigned,
                    () => LeaderReason::Elected,
                }
            }
        };
        self.shown = leader;
    }
}
