//! A host per member, which keeps the actions that it receives and checks what the library promises it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use room_state::ballot::{History, MemberId};
use room_state::entry::{Contents, Entry, Key, Request};
use room_state::event::{Outcome, ResetReason, StateEvent};
use room_state::replica::Replica;
use room_state::tables::{Presence, Property, Tables};

use crate::ghosts::Ghosts;

/// The host of one process.
#[derive(Debug, Default)]
pub struct Host {
    /// Whether no log forgets entries, so that nothing may be incomplete.
    is_strict: bool,
    /// Its state: the actions that it has received and not undone.
    actions: Vec<Received>,
    /// The members and properties, as the events show them.
    members: BTreeSet<MemberId>,
    properties: BTreeMap<Key, Property>,
    /// Whether its state lacks actions since the last Reset.
    is_incomplete: bool,
    /// The index of the last event within the history.
    last: u64,
    accepted: BTreeSet<u64>,
    results: BTreeMap<u64, Outcome>,
    /// Requests refused without an entry, and the histories in which there must be none.
    refused: Vec<(History, u64)>,
    /// The leader of the last Opened.
    leader: Option<MemberId>,
    /// The actions that were reported as rolled back since the last Reset.
    rolled_back: Vec<Received>,
    /// The snapshots that it was asked for and has not provided yet, the oldest first.
    wanted: VecDeque<Wanted>,
    /// How often it began anew with a snapshot.
    loads: u64,
    /// How often its next action was no longer in its member's tail.
    overruns: u64,
    /// How many actions were reported as rolled back.
    undone: u64,
}

/// A snapshot for other hosts.
#[derive(Debug)]
pub struct Wanted {
    /// The number of the request.
    pub request: u64,
    /// The state at the request.
    pub data: Bytes,
}

/// An action that a host has received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Received {
    index: u64,
    /// Its bytes; no two actions have the same.
    data: Vec<u8>,
}

impl Received {
    fn encode(&self) -> Vec<u8> {
        let length = u8::try_from(self.data.len()).expect("a short action");
        let head = self.index.to_le_bytes().into_iter().chain([length]);
        head.chain(self.data.iter().copied()).collect()
    }

    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (index, bytes) = bytes.split_first_chunk()?;
        let (length, bytes) = bytes.split_first()?;
        let (data, rest) = bytes.split_at_checked(usize::from(*length))?;
        let action = Self {
            index: u64::from_le_bytes(*index),
            data: data.to_vec(),
        };
        Some((action, rest))
    }

    fn decode_all(mut bytes: &[u8]) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (action, rest) = Self::decode(bytes).ok_or("the snapshot of no host")?;
            all.push(action);
            bytes = rest;
        }
        Ok(all)
    }
}

/// The state with which the events of one call are compared.
struct Truth<'a> {
    me: &'a MemberId,
    history: History,
    /// The confirmed entries of the history.
    entries: &'a [Entry],
    /// The entries that the member knows to be confirmed.
    confirmed: u64,
    /// The entries that the host has received.
    taken: u64,
}

impl Truth<'_> {
    fn has(&self, request: u64) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| is_request(entry, self.me, request))
    }

    fn actions_to(&self, index: u64) -> Vec<Vec<u8>> {
        let entries = self.entries.iter().take(index as usize);
        entries.filter_map(action).collect()
    }
}

fn is_request(entry: &Entry, by: &MemberId, request: u64) -> bool {
    matches!(&entry.contents, Contents::Request { author, number, .. } if author == by && *number == request)
}

fn action(entry: &Entry) -> Option<Vec<u8>> {
    match &entry.contents {
        Contents::Request {
            request: Request::Action { data, .. },
            ..
        } => Some(data.to_vec()),
        _ => None,
    }
}

fn tables_after(entries: &[Entry]) -> Tables {
    let mut tables = Tables::default();
    for entry in entries {
        tables.apply(entry);
    }
    tables
}

impl Host {
    /// A host that has received nothing. It is strict if no log of the room forgets entries.
    pub fn new(is_strict: bool) -> Self {
        Self {
            is_strict,
            ..Self::default()
        }
    }

    /// Its member has accepted a request.
    pub fn note_accepted(&mut self, request: u64) {
        self.accepted.insert(request);
    }

    /// Takes events and checks them.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn take(
        &mut self,
        replica: &mut Replica,
        ghosts: &Ghosts,
        most: usize,
    ) -> Result<(), String> {
        let before = replica.seen_history();
        let may_give = replica.may_give();
        let events = replica.take(most);
        if !events.is_empty() && !may_give {
            return Err(format!("events that were not to be expected: {events:?}"));
        }
        let Some(history) = replica.seen_history() else {
            return match events.is_empty() {
                true => Ok(()),
                false => Err(format!("events without a history: {events:?}")),
            };
        };
        if before != Some(history) {
            self.last = 0;
        }
        let truth = Truth {
            me: replica.me(),
            history,
            entries: ghosts.entries(history),
            confirmed: replica.confirmed(),
            taken: replica.taken(),
        };
        for event in &events {
            self.receive(event, &truth)
                .map_err(|broken| format!("{broken}: {event:?} of {events:?}"))?;
        }
        if !self.rolled_back.is_empty() {
            return Err(format!("no Reset follows {:?}", self.rolled_back));
        }
        self.check_seen(replica.seen(), &truth)?;
        self.check_actions(truth.taken, &truth)
    }

    /// S19: all hosts see the same state after an entry of a history, and their events lead to it. A host receives only
    /// confirmed entries.
    fn check_seen(&self, seen: &Tables, truth: &Truth<'_>) -> Result<(), String> {
        let taken = truth.taken as usize;
        if truth.entries.len() < taken {
            return Err(format!("it has received {taken}, which is not confirmed"));
        }
        let tables = tables_after(&truth.entries[..taken]);
        if *seen != tables {
            return Err(format!("it sees {seen:?} and not {tables:?}"));
        }
        let has_members = seen.members().eq(&self.members);
        match has_members && seen.properties().eq(&self.properties) {
            true => Ok(()),
            false => Err(format!("its events do not lead to {seen:?}")),
        }
    }

    /// S7: its actions are those of its history up to an index.
    fn check_actions(&self, index: u64, truth: &Truth<'_>) -> Result<(), String> {
        let expected = truth.actions_to(index);
        let own: Vec<_> = self
            .actions
            .iter()
            .map(|action| action.data.clone())
            .collect();
        let is_equal = match self.is_incomplete {
            true => expected.ends_with(&own),
            false => expected == own,
        };
        match is_equal {
            true => Ok(()),
            false => Err(format!(
                "it has the actions {own:?} and not {expected:?} at {index}"
            )),
        }
    }

    fn receive(&mut self, event: &StateEvent, truth: &Truth<'_>) -> Result<(), String> {
        match event {
            StateEvent::Action { index, data, .. } => {
                self.advance(*index, true)?;
                let data = data.to_vec();
                self.actions.push(Received {
                    index: *index,
                    data,
                });
                Ok(())
            }
            StateEvent::ActionResult {
                request,
                index,
                outcome,
            } => self.note_result(*request, *index, *outcome, truth),
            StateEvent::Reset {
                index,
                snapshot,
                reason,
                is_incomplete,
                rolled_back,
            } => {
                self.check_reset(*reason, *is_incomplete, *rolled_back, truth)?;
                self.overruns += u64::from(*reason == ResetReason::Behind);
                self.undone += *rolled_back as u64;
                self.is_incomplete = *is_incomplete;
                self.last = *index;
                self.load(*index, snapshot.as_ref(), truth)?;
                self.rolled_back.clear();
                Ok(())
            }
            StateEvent::SnapshotWanted { request, index } => self.save(*request, *index, truth),
            StateEvent::RolledBack { index, data, .. } => {
                let data = data.to_vec();
                self.note_rolled_back(
                    Received {
                        index: *index,
                        data,
                    },
                    truth,
                )
            }
            StateEvent::Opened { index, leader, .. } => {
                self.leader.clone_from(leader);
                self.advance(*index, false)
            }
            StateEvent::Property {
                index,
                key,
                property,
                ..
            } => {
                match property {
                    Some(property) => self.properties.insert(key.clone(), property.clone()),
                    None => self.properties.remove(key),
                };
                self.advance(*index, false)
            }
            StateEvent::MemberPresence {
                index,
                member,
                presence,
            } => {
                self.note_presence(member, *presence)?;
                self.advance(*index, false)
            }
        }
    }

    /// S12: a snapshot is the state of all actions up to the index of the Reset.
    fn load(
        &mut self,
        index: u64,
        snapshot: Option<&Bytes>,
        truth: &Truth<'_>,
    ) -> Result<(), String> {
        let Some(snapshot) = snapshot else {
            self.actions.clear();
            return Ok(());
        };
        if self.is_strict || self.is_incomplete {
            return Err("a snapshot that is of no use".to_owned());
        }
        self.loads += 1;
        self.actions = Received::decode_all(snapshot)?;
        self.check_actions(index, truth)
    }

    /// Copies the state, which lacks nothing; another member's host begins anew with it.
    fn save(&mut self, request: u64, index: u64, truth: &Truth<'_>) -> Result<(), String> {
        if self.is_incomplete {
            return Err("the host lacks actions".to_owned());
        }
        self.check_actions(index, truth)?;
        let data: Vec<u8> = self.actions.iter().flat_map(Received::encode).collect();
        let data = data.into();
        self.wanted.push_back(Wanted { request, data });
        Ok(())
    }

    /// The snapshot that it was asked for first and has not provided yet.
    pub fn next_wanted(&mut self) -> Option<Wanted> {
        self.wanted.pop_front()
    }

    /// Whether it has all actions up to the last entry that it has received.
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete
    }

    /// How often it began anew with a snapshot.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// How often its next action was no longer in its member's tail.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// How many actions were reported as rolled back.
    pub fn undone(&self) -> u64 {
        self.undone
    }

    /// The accepted requests, and their results.
    pub fn outcomes(&self) -> impl Iterator<Item = (u64, Option<Outcome>)> {
        let outcome = |request: &u64| (*request, self.results.get(request).copied());
        self.accepted.iter().map(outcome)
    }

    fn note_presence(&mut self, member: &MemberId, presence: Presence) -> Result<(), String> {
        let changes = match presence {
            Presence::Here => self.members.insert(member.clone()),
            Presence::Gone => self.members.remove(member),
        };
        match changes {
            true => Ok(()),
            false => Err("the host knows that".to_owned()),
        }
    }

    /// S6: the indexes of a history grow.
    fn advance(&mut self, index: u64, is_new: bool) -> Result<(), String> {
        if index < self.last || (is_new && index == self.last) {
            return Err(format!("index {index} after {}", self.last));
        }
        self.last = index;
        Ok(())
    }

    /// S5: each accepted request has one result, which is that of its entry.
    fn note_result(
        &mut self,
        request: u64,
        index: u64,
        outcome: Outcome,
        truth: &Truth<'_>,
    ) -> Result<(), String> {
        if !self.accepted.contains(&request) {
            return Err("the result of no request".to_owned());
        }
        if let Some(before) = self.results.insert(request, outcome) {
            return Err(format!("a second result after {before:?}"));
        }
        match index.checked_sub(1) {
            Some(before) => self.check_entry(before as usize, request, outcome, truth),
            None => self.check_without_entry(request, outcome, truth),
        }
    }

    fn check_entry(
        &self,
        before: usize,
        request: u64,
        outcome: Outcome,
        truth: &Truth<'_>,
    ) -> Result<(), String> {
        let entry = truth
            .entries
            .get(before)
            .filter(|_| before < truth.taken as usize);
        let Some(entry) = entry.filter(|entry| is_request(entry, truth.me, request)) else {
            return Err("the result of another entry".to_owned());
        };
        let effects = tables_after(&truth.entries[..before]).apply(entry);
        if effects.outcome.map(Outcome::from) != Some(outcome) {
            return Err(format!("the entry has the outcome {:?}", effects.outcome));
        }
        let data = action(entry);
        let has_received = |data: Vec<u8>| self.actions.iter().any(|action| action.data == data);
        match data.is_none_or(has_received) {
            true => Ok(()),
            false => Err("the result comes before its action".to_owned()),
        }
    }

    fn check_without_entry(
        &mut self,
        request: u64,
        outcome: Outcome,
        truth: &Truth<'_>,
    ) -> Result<(), String> {
        let is_known = truth.has(request);
        match outcome {
            Outcome::Ok if is_known => Ok(()),
            Outcome::OutcomeUnknown => Ok(()),
            Outcome::Conflict if !is_known => {
                self.refused.push((truth.history, request));
                Ok(())
            }
            _ => Err("no entry has this outcome".to_owned()),
        }
    }

    /// S7: what the host has and its history lacks is rolled back. A Reset that undoes nothing has no such reason.
    fn check_reset(
        &self,
        reason: ResetReason,
        is_incomplete: bool,
        rolled_back: usize,
        truth: &Truth<'_>,
    ) -> Result<(), String> {
        if rolled_back != self.rolled_back.len() {
            return Err("another number of rolled-back actions".to_owned());
        }
        if !self.is_strict {
            return Ok(());
        }
        if is_incomplete || reason == ResetReason::Behind {
            return Err("every log has all entries".to_owned());
        }
        let known = truth.actions_to(u64::MAX);
        let reported: Vec<_> = self.rolled_back.iter().map(|action| &action.data).collect();
        let lacks =
            |action: &&Received| !known.contains(&action.data) && !reported.contains(&&action.data);
        if let Some(lacking) = self.actions.iter().find(lacks) {
            return Err(format!("{lacking:?} is gone and not rolled back"));
        }
        let confirmed = truth.actions_to(truth.confirmed);
        let own = self.actions.iter().map(|action| &action.data);
        let goes_on = own.eq(confirmed.iter().take(self.actions.len()));
        match reason == ResetReason::RolledBack && goes_on {
            true => Err("no action differs".to_owned()),
            false => Ok(()),
        }
    }

    /// S5: an action is rolled back once, and only if its history lacks it.
    fn note_rolled_back(&mut self, action: Received, truth: &Truth<'_>) -> Result<(), String> {
        // After a change of history without a Reset it may have another index.
        if !self.actions.iter().any(|own| own.data == action.data) {
            return Err("the host does not have this action".to_owned());
        }
        if self.rolled_back.last().is_some_and(|last| *last >= action) {
            return Err(format!("after {:?}", self.rolled_back));
        }
        if self.is_strict && truth.actions_to(truth.confirmed).contains(&action.data) {
            return Err("the history has this action".to_owned());
        }
        self.rolled_back.push(action);
        Ok(())
    }

    /// Checks a host that has taken everything from a member of a settled room.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn finish(&self, replica: &Replica, ghosts: &Ghosts) -> Result<(), String> {
        if replica.taken() != replica.index() {
            return Err(format!(
                "it has taken {} of {}",
                replica.taken(),
                replica.index()
            ));
        }
        let adopted = replica.adopted().map(|ballot| &ballot.leader);
        if self.leader.as_ref() != adopted {
            return Err(format!(
                "its leader is {:?} and not {adopted:?}",
                self.leader
            ));
        }
        let mut open = self.accepted.iter();
        if let Some(open) = open.find(|request| !self.results.contains_key(request)) {
            return Err(format!("request {open} has no result"));
        }
        let is_there = |(history, request): &&(History, u64)| {
            let mut entries = ghosts.entries(*history).iter();
            entries.any(|entry| is_request(entry, replica.me(), *request))
        };
        match self.refused.iter().find(is_there) {
            Some(refused) => Err(format!("{refused:?} was refused, and is there")),
            None => Ok(()),
        }
    }
}
