//! Which messages in another's name may be delivered, and whether this node may send them.

use std::collections::VecDeque;

use super::Node;
use crate::core::election::record::{Record, Stamp};
use crate::core::id::{Incarnation, PeerId};
use crate::core::time::Time;

/// Records that this node went by and that are remembered, at most: what their leaders sent may still be on
/// its way.
const MAX_RECENT_RECORDS: usize = 8;

/// The records that this node went by last and that name a leader, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentRecords(VecDeque<Record>);

impl RecentRecords {
    pub(super) fn note(&mut self, record: &Record) {
        if record.leader.is_none() || self.0.back() == Some(record) {
            return;
        }
        if self.0.len() == MAX_RECENT_RECORDS {
            self.0.pop_front();
        }
        self.0.push_back(record.clone());
    }

    /// Who led under the stamp.
    pub(super) fn leaders_under(&self, stamp: &Stamp) -> impl Iterator<Item = &PeerId> {
        let its = self.0.iter().filter(move |record| record.stamp == *stamp);
        its.filter_map(|record| record.leader.as_ref())
    }

    fn contains(&self, record: &Record) -> bool {
        self.0.contains(record)
    }
}

/// Lives of members that are over and that are remembered, at most: what they sent may still be on its way.
const MAX_PAST_LIVES: usize = 64;

/// The lives of members that ended last, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct PastLives(VecDeque<(PeerId, Incarnation)>);

impl PastLives {
    pub(super) fn note(&mut self, member: &PeerId, life: Incarnation) {
        if self.0.len() == MAX_PAST_LIVES {
            self.0.pop_front();
        }
        self.0.push_back((member.clone(), life));
    }

    fn contains(&self, member: &PeerId, life: Incarnation) -> bool {
        self.0
            .iter()
            .any(|(id, past)| id == member && *past == life)
    }
}

/// What is known of the life of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeOfOrigin {
    /// It is the member's present one.
    Present,
    /// The member has another life since.
    Past,
    /// No link with the member has shown it yet.
    Unknown,
    /// There is no member of that name here, so that the relay is the only one that says anything.
    NoMember,
}

impl Node {
    /// Whether a message that `from` sent in another's name, as leader under `record`, may be delivered. A newer
    /// record is taken over first, so poll the outputs before the message is delivered.
    pub fn accept_relay(&mut self, now: Time, from: &PeerId, record: &Record) -> bool {
        if record.leader.as_ref() != Some(from) {
            return false;
        }
        self.is_leader_under(from, record)
            || (self.election.may_supersede(record)
                && self.accept_leader_message(now, from, record))
    }

    /// Whether `from` led under `record`, as far as this node knows: its present record, or one of the last
    /// before it.
    pub fn is_leader_under(&self, from: &PeerId, record: &Record) -> bool {
        record.leader.as_ref() == Some(from) && self.recent_records.contains(record)
    }

    /// What this node knows of a life of `origin`, in whose name a message was relayed. The life of a member, linked or
    /// lost, is what its own link said, and no other's word.
    pub fn life_of_origin(&self, origin: &PeerId, life: Incarnation) -> LifeOfOrigin {
        match self.bearer(origin) {
            Some((_, known)) if life == known => LifeOfOrigin::Present,
            // Which of two lives is the later one only their links can show: clocks are set back.
            Some(_) if self.past_lives.contains(origin, life) => LifeOfOrigin::Past,
            Some(_) => LifeOfOrigin::Unknown,
            None => LifeOfOrigin::NoMember,
        }
    }

    /// Whether this node leads, and so relays a broadcast of `from`, which goes by `record`. An assignment of
    /// this node that it did not hear of yet is taken over first, so poll the outputs before anything is sent.
    pub fn may_relay(&mut self, now: Time, from: &PeerId, record: &Record) -> bool {
        if self.membership.get(from).is_none() {
            return false;
        }
        if let Err(error) = self.election.hear_assignment(now, &self.view, record) {
            self.punish(now, from, error);
        }
        self.after(now);
        self.is_leader() && self.leader_stamp().is_some() && self.membership.get(from).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::election::record::Epoch;

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("valid")
    }

    fn record(term: u64, leader: Option<&str>) -> Record {
        Record {
            stamp: Stamp {
                epoch: Epoch::default(),
                term,
            },
            leader: leader.map(id),
            assigned: false,
        }
    }

    #[test]
    fn the_last_records_that_name_a_leader_are_remembered() {
        let mut recent = RecentRecords::default();
        for term in 0..20 {
            recent.note(&record(term, None));
            recent.note(&record(term, Some("a")));
            recent.note(&record(term, Some("a")));
        }
        assert_eq!(recent.0.len(), MAX_RECENT_RECORDS);
        assert!(recent.contains(&record(12, Some("a"))));
        assert!(!recent.contains(&record(11, Some("a"))));
        assert!(!recent.contains(&record(19, Some("b"))));
        assert!(!recent.contains(&record(19, None)));
    }
}
