//! Jumps of the state that the host sees: the first one, those over a gap in the tail, and those into another history.

use super::*;
use crate::event::ResetReason;
use crate::replica::snapshots::Sought;

/// Where a jump ends.
struct Landing {
    /// The state there.
    tables: Tables,
    /// Why the host begins anew; `None` if it has received all actions up to there, and no others.
    reset: Option<ResetReason>,
    /// Actions that this history lacks.
    rolled_back: Vec<StateEvent>,
    /// The results of own requests whose entries are in the tail, before its end.
    results: Vec<StateEvent>,
}

impl Replica {
    /// Lets the state jump: as far as the host needs no action that it has not received; `false` if it waits for a
    /// snapshot.
    pub(super) fn land(&mut self, events: &mut Vec<StateEvent>) -> bool {
        let snapshot = match self.lacks_actions() {
            true => match self.take_snapshot() {
                Sought::Waits => return false,
                Sought::Nowhere => None,
                Sought::Here(snapshot) => Some(snapshot),
            },
            false => None,
        };
        let start = self.start_of_landing(snapshot.is_some());
        let (dropped, row) = (start.actions(), start.last_number(&self.me).unwrap_or(0));
        let landing = self.landing(
            start,
            snapshot.as_ref().map_or(0, |snapshot| snapshot.index),
        );
        let (reset, rolled_back) = (landing.reset, landing.rolled_back.len());
        let index = landing.tables.index();
        let is_incomplete = dropped > 0 && snapshot.is_none();
        let stands_for_actions = dropped > 0 || snapshot.is_some();
        events.extend(landing.rolled_back);
        if let Some(reason) = reset {
            events.push(StateEvent::Reset {
                index,
                snapshot: snapshot.map(|snapshot| snapshot.data),
                reason,
                is_incomplete,
                rolled_back,
            });
            self.delivery.is_whole = !is_incomplete;
        }
        let seen = std::mem::replace(&mut self.delivery.seen, landing.tables);
        events.extend(differences(&seen, &self.delivery.seen));
        self.delivery.history = self.log.history();
        let reset_at = match reset {
            Some(_) if stands_for_actions => index,
            Some(_) => 0,
            None => self.delivery.displaced.reset_at(),
        };
        self.delivery.displaced = Displaced::none_since(reset_at);
        events.push(self.opened());
        events.extend(landing.results);
        let past = self.requests.take_up_to(row);
        events.extend(past.into_iter().map(without_entry));
        true
    }

    /// Whether the host must receive an action that the tail lacks.
    pub(in crate::replica) fn lacks_actions(&self) -> bool {
        let shared = self.log.shared_with(&self.delivery.seen);
        self.log.base().actions() > 0 && self.last_received(shared).is_none()
    }

    /// The state from which the entries lead on: the tail's, and with a snapshot those kept beside it.
    fn start_of_landing(&self, has_snapshot: bool) -> Tables {
        let beside = self.snapshots.beside().filter(|_| has_snapshot);
        beside.unwrap_or(&self.log).base().clone()
    }

    /// A landing that begins with `tables`; a snapshot, if there is one, has the actions up to its index.
    fn landing(&mut self, mut tables: Tables, snapshot: u64) -> Landing {
        let shared = self.log.shared_with(&self.delivery.seen);
        let rolled_back = self.rolled_back(shared);
        let (from, reset) = match self.last_received(shared) {
            Some(received) => (received, None),
            None => (snapshot, Some(self.reset_reason(shared))),
        };
        let mut results = Vec::new();
        while let Some(entry) = self.next_before(tables.index(), from) {
            let effects = tables.apply(&entry);
            results.extend(self.result(tables.index(), &entry, &effects));
        }
        Landing {
            tables,
            reset,
            rolled_back,
            results,
        }
    }

    fn reset_reason(&self, shared: u64) -> ResetReason {
        match self.taken() {
            0 => ResetReason::Joined,
            taken if shared < taken => ResetReason::RolledBack,
            _ => ResetReason::Behind,
        }
    }

    /// The entry after `index` that the host passes without having to receive it: a confirmed one, up to the entry
    /// `received`, or behind that one an entry that is no action.
    fn next_before(&self, index: u64, received: u64) -> Option<Entry> {
        let entry = self
            .kept_entry(index + 1)
            .filter(|_| index < self.confirmed);
        let passes = |entry: &&Entry| index < received || Action::of(entry).is_none();
        entry.filter(passes).cloned()
    }

    /// The last entry such that the host has received all actions up to it, and no others; `None` if there is none in
    /// the tail. The host's entries up to `shared` are the log's.
    fn last_received(&self, shared: u64) -> Option<u64> {
        let (seen, displaced) = (&self.delivery.seen, &self.delivery.displaced);
        if seen.index() == 0 || displaced.is_incomplete(shared) {
            return None;
        }
        let mut displaced = displaced.actions().peekable();
        if displaced.peek().is_none() {
            let base = self.log.base();
            let reaches = base.index() <= shared || base.actions() == seen.actions();
            return reaches.then(|| shared.max(base.index()));
        }
        // The history that goes on may have the displaced actions again, and in their order.
        let mut actions = self.actions_after(shared)?;
        let mut last = shared;
        for (_, action) in displaced {
            let (index, other) = actions.next()?;
            last = index;
            if !other.is_same_as(&action) {
                return None;
            }
        }
        Some(last)
    }

    /// The confirmed actions after `shared`, if the tail reaches back to it.
    fn actions_after(&self, shared: u64) -> Option<impl Iterator<Item = (u64, Action<'_>)>> {
        let indexes = shared + 1..=self.confirmed;
        let action = |index| Some((index, Action::of(self.log.entry(index)?)?));
        (self.log.base_index() <= shared).then(|| indexes.filter_map(action))
    }

    /// The actions that the host has received and this history lacks, as far as the tail shows it.
    fn rolled_back(&self, shared: u64) -> Vec<StateEvent> {
        let kept: BTreeSet<_> = self
            .actions_after(shared)
            .into_iter()
            .flatten()
            .map(|(_, action)| (action.author, action.number))
            .collect();
        let displaced = self.delivery.displaced.actions();
        let lost = displaced.filter(|(_, action)| !kept.contains(&(action.author, action.number)));
        lost.map(|(index, action)| StateEvent::RolledBack {
            index,
            author: action.author.clone(),
            msg_type: action.msg_type,
            data: action.data.clone(),
            request: self.own_number(&action),
        })
        .collect()
    }
}

/// The differences of members and properties that a jump makes.
fn differences(from: &Tables, to: &Tables) -> Vec<StateEvent> {
    let (index, time_ms) = (to.index(), to.time_ms());
    let gone = from.members().filter(|member| !to.is_here(member));
    let gone = gone.map(|member| presence(index, member, Presence::Gone));
    let here = to.members().filter(|member| !from.is_here(member));
    let here = here.map(|member| presence(index, member, Presence::Here));
    let removed = from.properties().map(|(key, _)| key);
    let removed = removed.filter(|key| to.property(key).is_none());
    let removed = removed.map(|key| (key, None));
    let set = to.properties();
    let set = set.filter(|(key, property)| from.property(key) != Some(property));
    let set = set.map(|(key, property)| (key, Some(property.clone())));
    let property = |(key, property): (&Key, Option<Property>)| StateEvent::Property {
        index,
        time_ms,
        key: key.clone(),
        property,
        author: None,
    };
    let properties = removed.chain(set).map(property);
    gone.chain(here).chain(properties).collect()
}
