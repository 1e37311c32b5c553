//! The state that follows from the entries: members, authors' numbers, properties. Every member computes the same.

use bytes::Bytes;
use room_core::bounded::Newest;
use room_core::id::PeerId;
use serde::{Deserialize, Serialize};

use crate::ballot::{Ballot, History, MemberId, Place};
use crate::entry::{Contents, Entry, Key, PropertyChange, Request, Roster, Traits};
use crate::limits::{MAX_INDEX, MAX_OPENINGS, MAX_ROSTER};

use members::Members;
use properties::Properties;
use unchecked::Unchecked;

mod members;
mod properties;
mod sequence;
#[cfg(test)]
mod tests;
mod unchecked;

/// The state after an entry.
///
/// It decodes only if [`apply`](Self::apply) can have produced it as far as its bounds, its order and its owners show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Tables {
    last: Option<Place>,
    time_ms: u64,
    history: Option<History>,
    is_exclusive: bool,
    is_used: bool,
    actions: u64,
    roster: Roster,
    #[serde(serialize_with = "sequence::write_newest")]
    openings: Newest<Place, MAX_OPENINGS>,
    members: Members,
    properties: Properties,
}

/// A property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Its value.
    pub value: Bytes,
    /// The member that owns it.
    pub owner: Option<PeerId>,
    /// Its behaviour.
    pub traits: Traits,
    /// The index of the entry that changed it last.
    pub version: u64,
}

/// A property that changed, and how it is now; `None` if removed.
type Changed = (Key, Option<Property>);

/// The effects of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// The outcome of a request; an action has always succeeded.
    pub outcome: Option<Result<(), Refusal>>,
    /// Members that came or went, in this order.
    pub members: Vec<(MemberId, Presence)>,
    /// Properties that changed, and how they are now; `None` if removed. A property set lists them in its order. A
    /// departure lists the owner's by key, an Open then the ones that waited for a leader, by key.
    pub properties: Vec<(Key, Option<Property>)>,
}

/// Whether a member is in the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has come.
    Here,
    /// It has gone.
    Gone,
}

/// Reason why a property set changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A property has another version, or a new owner is not in the room.
    Conflict,
    /// There are too many properties or bytes of them.
    Full,
    /// A property that only its owner changes has another owner.
    NotOwner,
}

impl Tables {
    /// Applies the next entry: `entry` at index `self.index() + 1`.
    ///
    /// The log has checked it: it is valid, its ballot is not below that of the last one, and each ballot begins with
    /// an Open.
    pub fn apply(&mut self, entry: &Entry) -> Effects {
        debug_assert!(entry.is_valid());
        let mut effects = Effects::default();
        self.advance(entry);
        match &entry.contents {
            Contents::Open {
                history,
                exclusive,
                roster,
            } => {
                self.history = Some(*history);
                self.is_exclusive = *exclusive;
                self.open(&entry.ballot, roster, &mut effects);
            }
            Contents::Member {
                member,
                here,
                counts,
            } => {
                self.set_here(member, *here, &entry.ballot, &mut effects);
                self.set_counts(member, *counts);
            }
            Contents::Request {
                author,
                number,
                request,
            } => {
                self.is_used = true;
                self.members.raise(author, *number, self.time_ms);
                effects.outcome = Some(self.request(author, request, &mut effects.properties));
            }
        }
        effects
    }

    /// The place of the last entry.
    pub fn last(&self) -> Option<&Place> {
        self.last.as_ref()
    }

    /// The index of the last entry; 0 without entries.
    pub fn index(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.index)
    }

    /// The time of the last entry, in milliseconds. Never falls.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The history of the last Open.
    pub fn history(&self) -> Option<History> {
        self.history
    }

    /// Whether a majority of the roster answered the last Open, or that was the room's first.
    pub fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// The members that count for a majority, as the last Open or Member entry sets them.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The places of the newest [`MAX_OPENINGS`] Opens, the oldest first.
    pub fn openings(&self) -> impl DoubleEndedIterator<Item = &Place> {
        self.openings.iter()
    }

    /// Whether an action or a property set came before, even a refused one.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// The number of actions up to the last entry.
    pub fn actions(&self) -> u64 {
        self.actions
    }

    /// Whether a member is in the room.
    pub fn is_here(&self, member: &MemberId) -> bool {
        self.members.is_here(member)
    }

    /// The members in the room.
    pub fn members(&self) -> impl Iterator<Item = &MemberId> {
        self.members.here()
    }

    /// The author's row: its last number, 0 before its first request. `None` without a row.
    pub fn last_number(&self, author: &MemberId) -> Option<u64> {
        self.members.last_number(author)
    }

    /// A property.
    pub fn property(&self, key: &Key) -> Option<&Property> {
        self.properties.get(key)
    }

    /// All properties, in the order of their keys.
    pub fn properties(&self) -> impl Iterator<Item = (&Key, &Property)> {
        self.properties.iter()
    }

    /// Upper estimate of its memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.roster.len() * item_bytes::<MemberId>(1)
            + self.openings.len() * item_bytes::<Place>(1)
            + self.members.bytes()
            + self.properties.bytes()
            + size_of::<Self>()
    }

    fn advance(&mut self, entry: &Entry) {
        self.last = Some(Place {
            ballot: entry.ballot.clone(),
            index: self.index() + 1,
        });
        self.time_ms = self.time_ms.max(entry.time_ms);
        self.members.expire(self.time_ms);
    }

    fn open(&mut self, ballot: &Ballot, roster: &Roster, effects: &mut Effects) {
        self.roster.clone_from(roster);
        self.openings.push(Place {
            ballot: ballot.clone(),
            index: self.index(),
        });
        self.arrive(&ballot.leader, ballot, effects);
        if self.is_here(&ballot.leader) {
            let handed = self.properties.hand_over(&ballot.leader.peer, self.index());
            effects.properties.extend(handed);
        }
    }

    fn set_here(&mut self, member: &MemberId, here: bool, ballot: &Ballot, effects: &mut Effects) {
        match here {
            true => self.arrive(member, ballot, effects),
            false => self.depart(member, ballot, effects),
        }
    }

    /// Beyond [`MAX_ROSTER`] members nothing changes.
    fn set_counts(&mut self, member: &MemberId, counts: bool) {
        if !counts {
            self.roster.remove(member);
        } else if self.roster.len() < MAX_ROSTER {
            self.roster.insert(member.clone());
        }
    }

    /// An earlier incarnation departs first. It remains on the roster: one entry changes the roster by one member, so
    /// that majorities before and after it overlap.
    fn arrive(&mut self, member: &MemberId, ballot: &Ballot, effects: &mut Effects) {
        let former = self.members.other_incarnation(member).cloned();
        if let Some(former) = &former {
            self.leave(former, effects);
        }
        if self.members.arrive(member) {
            effects.members.push((member.clone(), Presence::Here));
        }
        if let Some(former) = former {
            self.release(&former.peer, ballot, effects);
        }
    }

    fn depart(&mut self, member: &MemberId, ballot: &Ballot, effects: &mut Effects) {
        if self.is_here(member) {
            self.leave(member, effects);
            self.release(&member.peer, ballot, effects);
        }
    }

    fn leave(&mut self, member: &MemberId, effects: &mut Effects) {
        self.members.depart(member, self.time_ms);
        effects.members.push((member.clone(), Presence::Gone));
    }

    /// Takes its properties from a former owner.
    fn release(&mut self, owner: &PeerId, ballot: &Ballot, effects: &mut Effects) {
        let leader = self.is_here(&ballot.leader).then_some(&ballot.leader.peer);
        let released = self.properties.release(owner, leader, self.index());
        effects.properties.extend(released);
    }

    fn request(
        &mut self,
        author: &MemberId,
        request: &Request,
        changed: &mut Vec<Changed>,
    ) -> Result<(), Refusal> {
        match request {
            Request::Action { .. } => self.actions += 1,
            Request::Properties(changes) => *changed = self.set_properties(author, changes)?,
        }
        Ok(())
    }

    fn set_properties(
        &mut self,
        author: &MemberId,
        changes: &[PropertyChange],
    ) -> Result<Vec<Changed>, Refusal> {
        let index = self.index();
        let is_here = |peer: &PeerId| self.members.is_peer_here(peer);
        self.properties.set(changes, &author.peer, index, is_here)
    }

    /// Whether a log can have led to these tables, which another member has sent.
    pub(crate) fn is_valid(&self) -> bool {
        match self.last() {
            None => *self == Self::default(),
            Some(last) => self.is_valid_after(last),
        }
    }

    fn is_valid_after(&self, last: &Place) -> bool {
        last.index <= MAX_INDEX
            && self.history.is_some_and(|history| history.0 < History::END)
            && self.roster.len() <= MAX_ROSTER
            && self.openings_lead_to(last)
            && self.members.is_valid(self.time_ms)
            && self.properties.is_valid(last.index)
            && self.owners_are_here()
            && self.actions < last.index
            && (self.is_used || self.is_unused())
    }

    fn openings_lead_to(&self, last: &Place) -> bool {
        let openings = &self.openings;
        let next = openings.iter().skip(1);
        openings.front().is_some_and(|first| first.index > 0)
            && openings
                .back()
                .is_some_and(|newest| newest.ballot == last.ballot && newest.index <= last.index)
            && openings
                .iter()
                .zip(next)
                .all(|(a, b)| a.ballot < b.ballot && a.index < b.index)
    }

    fn owners_are_here(&self) -> bool {
        self.properties()
            .filter_map(|(_, property)| property.owner.as_ref())
            .all(|owner| self.members.is_peer_here(owner))
    }

    fn is_unused(&self) -> bool {
        self.actions == 0
            && self.members.numbers().all(|number| number == 0)
            && self.properties().next().is_none()
    }
}

/// Upper estimate of the memory of an item of a collection, with as many names: nodes of a B-tree may be half empty.
const fn item_bytes<T>(names: usize) -> usize {
    const NAME: usize = 96;
    3 * size_of::<T>() + names * NAME
}
