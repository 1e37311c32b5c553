//! The rooms that a browser lists, and what its host does not know of them yet. Pure.
//!
//! A room is the key of the member that shows its card. Another member takes the room over if the last card names it as a successor,
//! so no other process can change, replace or remove a room. The host is behind by one event per room at most: the list itself is the queue.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use room_transport::identity::{PublicKey, fingerprint_of_key};

use super::packet::{Answer, Shown, Successor, Unverified, successor};
use super::sources::Sources;
use crate::core::id::{Fingerprint, SessionId};
use crate::core::time::Time;

/// Rooms in a list, at most.
pub(crate) const MAX_ROOMS: usize = 256;
/// Rooms at one address, at most.
pub(crate) const MAX_ROOMS_OF_ADDRESS: usize = 64;
/// Shortest interval between two reports of a room.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// Questions without an answer, and the silence, after which a room is gone.
const MAX_UNANSWERED: u32 = 5;
const GONE_AFTER: Duration = Duration::from_secs(8);
/// Questions without an answer after which a successor may take the room over.
const SUCCESSOR_AFTER: u32 = 2;
/// Interval at which a room that does not answer is asked alone.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Time for which a room waits for a successor, when the member that showed its card no longer does.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(5);

/// A room as the host learns of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Its number in this browser.
    pub id: u64,
    /// Address for a dial.
    pub address: SocketAddrV4,
    /// The key of the member that shows its card.
    pub key: Fingerprint,
    shown: Shown,
}

impl Room {
    /// Its name for players.
    pub fn name(&self) -> &str {
        &self.shown.name
    }

    /// Its session id, if the card has it.
    pub fn session(&self) -> Option<&SessionId> {
        self.shown.session.as_ref()
    }

    /// The bytes of the game.
    pub fn data(&self) -> &[u8] {
        &self.shown.data
    }

    /// Its members.
    pub fn players(&self) -> u32 {
        self.shown.players
    }

    /// Most players, to show; 0 for none.
    pub fn max_players(&self) -> u32 {
        self.shown.max_players
    }

    /// Whether its members know a secret besides the session id.
    pub fn needs_secret(&self) -> bool {
        self.shown.needs_secret
    }
}

/// An event of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Found,
    /// It shows something else.
    Changed,
    /// It is no longer there.
    Gone,
}

/// The rooms that a browser lists.
#[derive(Debug)]
pub(crate) struct List {
    entries: BTreeMap<u64, Entry>,
    last_id: u64,
    /// The room reported last: the others come first.
    reported: u64,
    sources: Sources,
}

#[derive(Debug)]
struct Entry {
    key: PublicKey,
    fingerprint: Fingerprint,
    number: u64,
    rank: (u64, u64),
    successors: Vec<Successor>,
    /// Where its answers come from.
    source: SocketAddrV4,
    shown: Shown,
    received_at: Time,
    /// Questions since then.
    unanswered: u32,
    asked_at: Time,
    /// Waits for a successor until then.
    waits_until: Option<Time>,
    is_gone: bool,
    /// The room as the host knows it.
    reported: Option<Room>,
    reported_at: Time,
}

impl Entry {
    fn new(now: Time, source: SocketAddrV4, answer: Answer, shown: Shown) -> Self {
        Self {
            key: answer.key,
            fingerprint: fingerprint_of_key(&answer.key),
            number: answer.number,
            rank: answer.rank,
            successors: answer.successors,
            source,
            shown,
            received_at: now,
            unanswered: 0,
            asked_at: now,
            waits_until: None,
            is_gone: false,
            reported: None,
            reported_at: now,
        }
    }

    fn room(&self, id: u64) -> Room {
        Room {
            id,
            address: self.address(),
            key: self.fingerprint,
            shown: self.shown.clone(),
        }
    }

    fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(*self.source.ip(), self.shown.port)
    }

    /// Takes an answer of the member that shows the card.
    fn renew(&mut self, now: Time, source: SocketAddrV4, answer: Answer) {
        // The network may exchange packets.
        if answer.number < self.number {
            return;
        }
        let silent = now.since(self.received_at) >= ASK_AGAIN && self.unanswered >= SUCCESSOR_AFTER;
        let leads_further = self.source.ip().is_loopback() && !source.ip().is_loopback();
        if self.source.ip() == source.ip() || silent || leads_further {
            self.source = source;
        }
        self.number = answer.number;
        self.received_at = now;
        self.unanswered = 0;
        match answer.shown {
            Some(shown) => {
                self.rank = answer.rank;
                self.successors = answer.successors;
                self.shown = shown;
                self.waits_until = None;
                self.is_gone = false;
            }
            None if answer.successors.is_empty() => self.is_gone = true,
            None => {
                let until = || now + SUCCESSOR_WAIT;
                self.waits_until.get_or_insert_with(until);
            }
        }
    }

    /// Whether the member `key`, of this rank, shows the card in place of the one before.
    fn yields_to(&self, key: &Successor, rank: (u64, u64)) -> bool {
        let is_free =
            self.is_gone || self.waits_until.is_some() || self.unanswered >= SUCCESSOR_AFTER;
        self.successors.contains(key) && (is_free || rank > self.rank)
    }

    /// When the host may learn of a change; `None` if it knows everything.
    fn due_at(&self) -> Option<Time> {
        let Some(reported) = &self.reported else {
            return (!self.is_gone).then_some(self.reported_at);
        };
        if self.is_gone {
            return Some(self.reported_at);
        }
        let is_known = reported.key == self.fingerprint
            && reported.address == self.address()
            && reported.shown == self.shown;
        (!is_known).then_some(self.reported_at + REPORT_INTERVAL)
    }
}

impl List {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            entries: BTreeMap::new(),
            last_id: 0,
            reported: 0,
            sources: Sources::new(now),
        }
    }

    /// Takes an answer to a question of this browser. Returns whether it counts.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        source: SocketAddrV4,
        answer: Unverified<'_>,
    ) -> bool {
        let from = *source.ip();
        let is_listed = self.at(from).next().is_some();
        if !self.sources.may_answer(now, from, is_listed) {
            return false;
        }
        let Some(mut answer) = answer.verified() else {
            return false;
        };
        let mut entries = self.entries.values_mut();
        if let Some(entry) = entries.find(|entry| entry.key == answer.key) {
            entry.renew(now, source, answer);
            return true;
        }
        let Some(shown) = answer.shown.take() else {
            return false;
        };
        let own = successor(&fingerprint_of_key(&answer.key));
        let mut entries = self.entries.values_mut();
        if let Some(entry) = entries.find(|entry| entry.yields_to(&own, answer.rank)) {
            let (reported, reported_at) = (entry.reported.take(), entry.reported_at);
            *entry = Entry {
                reported,
                reported_at,
                ..Entry::new(now, source, answer, shown)
            };
            return true;
        }
        let has_place =
            self.entries.len() < MAX_ROOMS && self.at(from).count() < MAX_ROOMS_OF_ADDRESS;
        if !has_place || !self.sources.may_have_new_room(now, from) {
            return false;
        }
        self.last_id += 1;
        let entry = Entry::new(now, source, answer, shown);
        self.entries.insert(self.last_id, entry);
        true
    }

    fn at(&self, ip: Ipv4Addr) -> impl Iterator<Item = &Entry> {
        let all = self.entries.values();
        all.filter(move |entry| *entry.source.ip() == ip)
    }

    /// All rooms have been asked by multicast.
    pub(crate) fn asked_all(&mut self, now: Time) {
        for entry in self.entries.values_mut().filter(|entry| !entry.is_gone) {
            entry.unanswered += 1;
            entry.asked_at = now;
        }
    }

    /// Passes time. Returns where to ask again, each room alone.
    pub(crate) fn tick(&mut self, now: Time) -> Vec<SocketAddrV4> {
        self.sources.forget(now);
        let mut again = Vec::new();
        for entry in self.entries.values_mut().filter(|entry| !entry.is_gone) {
            let is_silent =
                entry.unanswered >= MAX_UNANSWERED && now.since(entry.received_at) >= GONE_AFTER;
            if is_silent || entry.waits_until.is_some_and(|until| now >= until) {
                entry.is_gone = true;
            } else if entry.waits_until.is_none()
                && entry.unanswered > 0
                && now.since(entry.asked_at) >= ASK_AGAIN
            {
                entry.unanswered += 1;
                entry.asked_at = now;
                again.push(entry.source);
            }
        }
        // The host knows nothing of these.
        self.entries
            .retain(|_, entry| !entry.is_gone || entry.reported.is_some());
        again
    }

    /// The next report that the host may receive now.
    pub(crate) fn report(&mut self, now: Time) -> Option<(Change, Room)> {
        let is_due = |(_, entry): &(&u64, &Entry)| entry.due_at().is_some_and(|at| at <= now);
        let later = self.entries.range(self.reported + 1..);
        let id = *later.chain(&self.entries).find(is_due)?.0;
        self.reported = id;
        let entry = self.entries.get_mut(&id)?;
        if let (true, Some(reported)) = (entry.is_gone, &entry.reported) {
            let report = (Change::Gone, reported.clone());
            self.entries.remove(&id);
            return Some(report);
        }
        let room = entry.room(id);
        let change = match entry.reported.replace(room.clone()) {
            None => Change::Found,
            Some(_) => Change::Changed,
        };
        entry.reported_at = now;
        Some((change, room))
    }

    /// When the next report is due, if one is known already.
    pub(crate) fn next_report(&self) -> Option<Time> {
        self.entries.values().filter_map(Entry::due_at).min()
    }
}

#[cfg(test)]
mod tests;
