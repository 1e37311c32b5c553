//! Which messages in another's name may be delivered, and whether this node may send them.

use std::collections::VecDeque;

use super::Node;
use crate::core::election::record::{Record, Stamp};
use crate::core::id::{Incarnation, PeerId};
use crate::core::time::Time;
use crate::core::wire::Opaque;

/// Leaderships that are remembered, at most: what their leaders sent may still be on its way.
const MAX_RECENT_LEADERS: usize = 8;

/// The leaderships that this node followed last, with their tokens, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentLeaders(VecDeque<(Record, Opaque)>);

impl RecentLeaders {
    /// Whether the newest is this one.
    pub(super) fn ends_with(&self, record: &Record) -> bool {
        self.0.back().is_some_and(|(last, _)| last == record)
    }

    pub(super) fn note(&mut self, record: Record, token: Opaque) {
        if self.0.len() == MAX_RECENT_LEADERS {
            self.0.pop_front();
        }
        self.0.push_back((record, token));
    }

    /// Who led under the stamp.
    pub(super) fn under(&self, stamp: &Stamp) -> impl Iterator<Item = &PeerId> {
        let its = self.0.iter().filter(move |(led, _)| led.stamp == *stamp);
        its.filter_map(|(led, _)| led.leader.as_ref())
    }

    fn contains(&self, leader: &PeerId, token: &Opaque) -> bool {
        self.0
            .iter()
            .any(|(led, its)| led.leader.as_ref() == Some(leader) && its == token)
    }
}

/// Lives of members that are over and that are remembered, at most: what they sent may still be on its way.
const MAX_PAST_LIVES: usize = 64;

/// The incarnations of members that ended last, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct PastIncarnations(VecDeque<(PeerId, Incarnation)>);

impl PastIncarnations {
    pub(super) fn note(&mut self, member: &PeerId, incarnation: Incarnation) {
        if self.0.len() == MAX_PAST_LIVES {
            self.0.pop_front();
        }
        self.0.push_back((member.clone(), incarnation));
    }

    fn contains(&self, member: &PeerId, incarnation: Incarnation) -> bool {
        self.0
            .iter()
            .any(|(id, past)| id == member && *past == incarnation)
    }
}

/// What is known of the incarnation of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginIncarnation {
    /// It is the member's present one.
    Present,
    /// The member has another incarnation since.
    Past,
    /// No link with the member has shown it yet.
    Unknown,
    /// There is no member of that name here, so that the relay is the only one that says anything.
    NoMember,
}

impl Node {
    /// Whether a message that `from` sent in another's name, as leader with this token, may be delivered. A newer
    /// leadership is adopted first, so poll the outputs before the message is delivered.
    pub fn accept_relay(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.is_leader_under(from, token)
            || (self.election.may_supersede(from, token)
                && self.accept_leader_message(now, from, token))
    }

    /// Whether what `from` sends with this token waits until an external store has told whether it leads.
    pub fn awaits_leadership(&self, from: &PeerId, token: &Opaque) -> bool {
        self.election.awaits(from, token)
    }

    /// Whether `from` led with this token, as far as this node knows: in the present leadership, or in one of the
    /// last before it.
    pub fn is_leader_under(&self, from: &PeerId, token: &Opaque) -> bool {
        self.recent_leaders.contains(from, token)
    }

    /// The same, or in a leadership of which this node has not heard.
    pub fn led_or_leads(&self, from: &PeerId, token: &Opaque) -> bool {
        self.is_leader_under(from, token) || self.election.may_supersede(from, token)
    }

    /// What this node knows of an incarnation of `origin`, in whose name a message was relayed. The incarnation of a member, linked or
    /// lost, is what its own link said, and no other's word.
    pub fn origin_incarnation(
        &self,
        origin: &PeerId,
        incarnation: Incarnation,
    ) -> OriginIncarnation {
        match self.id_holder(origin) {
            Some((_, known)) if incarnation == known => OriginIncarnation::Present,
            // Which of two incarnations is the later one only their links can show: clocks are set back.
            Some(_) if self.past_incarnations.contains(origin, incarnation) => {
                OriginIncarnation::Past
            }
            Some(_) => OriginIncarnation::Unknown,
            None => OriginIncarnation::NoMember,
        }
    }

    /// Whether this node leads, and so relays a broadcast of `from`, which follows the leadership of this token. An
    /// assignment of this node that it did not hear of yet is adopted first, so poll the outputs before anything is sent.
    pub fn may_relay(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.end_lapsed_leadership(now);
        if self.membership.get(from).is_none() {
            return false;
        }
        if let Err(error) = self.election.hear_followed(now, &self.view, token) {
            self.punish(now, from, error);
        }
        self.after(now);
        let leads = self.is_leader() && self.leader_token().is_some();
        leads && self.membership.get(from).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(term: u64, leader: &str) -> (Record, Opaque) {
        let record = Record {
            stamp: Stamp {
                term,
                ..Stamp::default()
            },
            leader: Some(PeerId::new(leader).expect("valid")),
            assigned: false,
        };
        let token = Opaque::of(&record);
        (record, token)
    }

    #[test]
    fn the_last_leaderships_are_remembered() {
        let mut recent = RecentLeaders::default();
        for term in 0..20 {
            let (record, token) = led(term, "a");
            assert!(!recent.ends_with(&record));
            recent.note(record.clone(), token);
            assert!(recent.ends_with(&record));
        }
        assert_eq!(recent.0.len(), MAX_RECENT_LEADERS);
        let contains = |term, leader| {
            let (record, token) = led(term, leader);
            recent.contains(&record.leader.expect("named"), &token)
        };
        assert!(contains(12, "a"));
        assert!(!contains(11, "a"));
        assert!(!contains(19, "b"));
    }
}
