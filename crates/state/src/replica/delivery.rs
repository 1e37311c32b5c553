//! What this member's host receives: each entry once it is confirmed, read from the log with a cursor.
//!
//! No event waits in a queue. If the log no longer leads on from the last entry that the host has received, the state
//! jumps ([`landing`]): to another history, or over entries that the tail has dropped.

mod displaced;
mod landing;
#[cfg(test)]
mod tests;

use super::*;
use crate::entry::{Contents, Key, Request};
use crate::event::{Outcome, StateEvent};
use crate::tables::{Effects, Presence, Property};
use displaced::Displaced;

/// How far the host is.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    /// The state after the last entry that the host has received.
    seen: Tables,
    /// The history of the log that this entry came from. The entry may precede that history's opening.
    history: Option<History>,
    /// Actions that the host has received and the log lacks.
    displaced: Displaced,
    /// Whether the last Opened had a leader.
    is_led: bool,
    /// Whether the host has all actions up to the last entry that it has received, one by one or in a snapshot.
    is_whole: bool,
}

impl Delivery {
    pub(super) fn history(&self) -> Option<History> {
        self.history
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.bytes() + self.displaced.bytes()
    }

    /// Another log takes the place of `old`. What the host has received and only `old` has must not get lost.
    pub(super) fn note_replaced(&mut self, old: &Log, new: &Log, options: &Options) {
        self.displaced.note_replaced(&self.seen, old, new, options);
    }

    pub(super) fn displaced_bytes(&self) -> usize {
        self.displaced.bytes()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl Replica {
    /// The next events for the host: `most`, and more if the last entry has more. No events are left if there are fewer.
    ///
    /// A host that takes nothing costs no memory: the state jumps when its member's tail has moved on.
    pub fn take(&mut self, most: usize) -> Vec<StateEvent> {
        let mut events = Vec::new();
        while events.len() < most && self.give_next(&mut events) {}
        events
    }

    /// Whether [`Replica::take`] may give an event. It gives none if not.
    pub fn may_give(&self) -> bool {
        let may_jump = || !self.leads_on() && self.is_opening_confirmed();
        self.taken() < self.confirmed
            || self.has_leader() != self.delivery.is_led
            || self.has_verdicts()
            || self.snapshots.may_ask_host()
            || may_jump()
    }

    /// The state after the last entry that the host has received.
    pub fn seen(&self) -> &Tables {
        &self.delivery.seen
    }

    /// The index of the last entry that the host has received.
    pub fn taken(&self) -> u64 {
        self.delivery.seen.index()
    }

    /// The history in which the host received this entry.
    pub fn seen_history(&self) -> Option<History> {
        self.delivery.history
    }

    /// Gives the host one entry, or what else has become due; `false` if there is nothing.
    fn give_next(&mut self, events: &mut Vec<StateEvent>) -> bool {
        if self.give_verdicts(events) || self.give_snapshot_request(events) {
            return true;
        }
        // After a change of history no entry is known to be confirmed for a while.
        if self.confirmed == 0 || self.confirmed < self.log.base_index() {
            return self.give_leader(events);
        }
        // A leader may have taken back what it claimed to be confirmed.
        let confirmed = self.confirmed.min(self.log.index());
        match self.leads_on() {
            true if self.taken() < confirmed => self.give_entry(events),
            false if self.is_opening_confirmed() => return self.land(events),
            _ => return self.give_leader(events),
        }
        true
    }

    /// Whether the next entry of the log, or of those kept beside a snapshot, follows what the host has received.
    pub(super) fn leads_on(&self) -> bool {
        let last = self.delivery.seen.last();
        last.is_some() && (self.log.reaches(last) || self.snapshots.reaches(last))
    }

    /// The entry at `index`, if the tail has it or it is kept beside a snapshot.
    fn kept_entry(&self, index: u64) -> Option<&Entry> {
        let kept = || self.snapshots.beside()?.entry(index);
        self.log.entry(index).or_else(kept)
    }

    /// Whether the last opening of the log is confirmed, and all that precedes it.
    fn is_opening_confirmed(&self) -> bool {
        let opening = self.log.end().openings().next_back();
        opening.is_some_and(|opening| opening.index <= self.confirmed)
    }

    fn give_entry(&mut self, events: &mut Vec<StateEvent>) {
        let index = self.taken() + 1;
        let Some(entry) = self.kept_entry(index).cloned() else {
            return;
        };
        let effects = self.delivery.seen.apply(&entry);
        self.delivery.history = self.log.history();
        events.extend(self.action(index, &entry));
        events.extend(changes(index, &entry, &effects));
        if matches!(entry.contents, Contents::Open { .. }) {
            events.push(self.opened());
        }
        events.extend(self.result(index, &entry, &effects));
    }

    fn action(&self, index: u64, entry: &Entry) -> Option<StateEvent> {
        let action = Action::of(entry)?;
        let (author, msg_type) = (action.author.clone(), action.msg_type);
        Some(StateEvent::Action {
            index,
            time_ms: entry.time_ms,
            request: self.own_number(&action),
            author,
            msg_type,
            data: action.data.clone(),
        })
    }

    /// The number of this member's own action.
    fn own_number(&self, action: &Action<'_>) -> Option<u64> {
        (*action.author == self.me).then_some(action.number)
    }

    /// The result of this member's open request, which ends it.
    fn result(&mut self, index: u64, entry: &Entry, effects: &Effects) -> Option<StateEvent> {
        let Contents::Request { author, number, .. } = &entry.contents else {
            return None;
        };
        let is_open = *author == self.me && self.requests.close(*number);
        let outcome = effects.outcome.filter(|_| is_open)?.into();
        Some(StateEvent::ActionResult {
            request: *number,
            index,
            outcome,
        })
    }

    /// The opening that is in force at the last entry that the host has received.
    fn opened(&mut self) -> StateEvent {
        self.delivery.is_led = true;
        let seen = &self.delivery.seen;
        StateEvent::Opened {
            index: seen.index(),
            leader: seen.last().map(|last| last.ballot.leader.clone()),
            is_exclusive: seen.is_exclusive(),
            history: seen.history(),
            roster: seen.roster().len(),
        }
    }

    /// Reports once that the leader is lost, or that it goes on.
    fn give_leader(&mut self, events: &mut Vec<StateEvent>) -> bool {
        let is_led = self.has_leader();
        if is_led == self.delivery.is_led || (is_led && !self.has_seen_opening()) {
            return false;
        }
        let mut event = self.opened();
        if let StateEvent::Opened { leader, .. } = &mut event
            && !is_led
        {
            *leader = None;
            self.delivery.is_led = false;
        }
        events.push(event);
        true
    }

    /// Whether the leader that the election names is the one whose log this member has.
    fn has_leader(&self) -> bool {
        let adopted = self.adopted.as_ref();
        adopted.is_some_and(|ballot| self.follows(&ballot.leader))
    }

    /// Whether the host has received the opening of the ballot that this member has adopted.
    fn has_seen_opening(&self) -> bool {
        let seen = self.delivery.seen.last().map(|last| &last.ballot);
        seen.is_some() && seen == self.adopted.as_ref()
    }

    fn has_verdicts(&self) -> bool {
        let row = self.delivery.seen.last_number(&self.me);
        self.requests.has_verdicts(row.unwrap_or(0))
    }

    /// Results of requests that will be in no log of this history: no entry before this ballot's opening has them, and
    /// they have not been sent since.
    fn give_verdicts(&mut self, events: &mut Vec<StateEvent>) -> bool {
        if !self.has_verdicts() || !self.has_seen_opening() {
            return false;
        }
        let row = |tables: &Tables| tables.last_number(&self.me).unwrap_or(0);
        let (taken, last) = (row(&self.delivery.seen), row(self.log.end()));
        let verdicts = self.requests.take_verdicts(taken, last);
        let is_some = !verdicts.is_empty();
        events.extend(verdicts.into_iter().map(without_entry));
        is_some
    }
}

/// The result of a request whose entry does not exist or is not known.
fn without_entry((request, outcome): (u64, Outcome)) -> StateEvent {
    StateEvent::ActionResult {
        request,
        index: 0,
        outcome,
    }
}

/// An entry's changes of members and properties.
fn changes<'a>(
    index: u64,
    entry: &'a Entry,
    effects: &'a Effects,
) -> impl Iterator<Item = StateEvent> + 'a {
    let author = match &entry.contents {
        Contents::Request { author, .. } => Some(author.clone()),
        Contents::Open { .. } | Contents::Member { .. } => None,
    };
    let members = effects.members.iter();
    let members = members.map(move |(member, is_here)| presence(index, member, *is_here));
    let properties = effects.properties.iter();
    let property = move |(key, property): &(Key, Option<Property>)| StateEvent::Property {
        index,
        time_ms: entry.time_ms,
        key: key.clone(),
        property: property.clone(),
        author: author.clone(),
    };
    members.chain(properties.map(property))
}

fn presence(index: u64, member: &MemberId, presence: Presence) -> StateEvent {
    StateEvent::MemberPresence {
        index,
        member: member.clone(),
        presence,
    }
}

/// The parts of an entry that is an action.
#[derive(Debug, Clone, Copy)]
struct Action<'a> {
    author: &'a MemberId,
    number: u64,
    msg_type: u16,
    data: &'a bytes::Bytes,
}

impl<'a> Action<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        match &entry.contents {
            Contents::Request {
                author,
                number,
                request: Request::Action { msg_type, data },
            } => Some(Self {
                author,
                number: *number,
                msg_type: *msg_type,
                data,
            }),
            _ => None,
        }
    }

    /// Its author's number is the same in all histories.
    fn is_same_as(&self, other: &Action<'_>) -> bool {
        (self.author, self.number) == (other.author, other.number)
    }
}
