//! What no member knows: all that was ever confirmed, and by whom. It is compared with what each member shows.

use std::collections::{BTreeMap, BTreeSet};

use room_state::ballot::{Ballot, History, MemberId};
use room_state::entry::{Contents, Entry, Expected, PropertyChange, Request};
use room_state::replica::{Quorum, Replica};
use room_state::tables::Tables;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub struct Ghosts {
    histories: BTreeMap<History, Confirmed>,
    seen: BTreeMap<usize, Seen>,
    requests: BTreeMap<(MemberId, u64), Submitted>,
}

/// The confirmed entries of a history.
#[derive(Debug, Clone, Default)]
struct Confirmed {
    entries: Vec<Entry>,
    /// The ballot under which each was confirmed first.
    by: Vec<Option<Ballot>>,
    tables: Tables,
    numbers: BTreeMap<MemberId, u64>,
    /// The exclusive openings, and the logs in which they were made.
    openings: Vec<Opening>,
}

/// A ballot, and the entries before its opening as far as its leader's tail had them.
#[derive(Debug, Clone)]
struct Opening {
    ballot: Ballot,
    first: u64,
    entries: Vec<Entry>,
}

impl Opening {
    /// Whether its log may have this entry.
    fn allows(&self, at: u64, entry: &Entry) -> bool {
        match at.checked_sub(self.first) {
            Some(position) => self.entries.get(position as usize) == Some(entry),
            None => true,
        }
    }
}

/// The last state in which a member was seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    history: Option<History>,
    confirmed: u64,
    adopted: Option<Ballot>,
}

#[derive(Debug, Clone)]
struct Submitted {
    request: Request,
    /// The state that its host had read.
    read: Tables,
}

impl Ghosts {
    /// The member's process is over, and so is what it has seen.
    pub fn forget(&mut self, index: usize) {
        self.seen.remove(&index);
    }

    /// The host of a member has submitted a request; `read` is the state that it had seen.
    pub fn note_submitted(
        &mut self,
        author: MemberId,
        number: u64,
        request: Request,
        read: Tables,
    ) {
        self.requests
            .insert((author, number), Submitted { request, read });
    }

    /// The entries of a history that are known to be confirmed.
    pub fn entries(&self, history: History) -> &[Entry] {
        let confirmed = self.histories.get(&history);
        confirmed.map_or(&[], |confirmed| &confirmed.entries)
    }

    /// Checks a member after an event.
    ///
    /// # Errors
    /// The broken promise.
    pub fn look(&mut self, index: usize, replica: &Replica) -> Result<(), String> {
        Self::check_bounds(index, replica)?;
        let Some(history) = replica.history() else {
            return Ok(());
        };
        let mut seen = self.seen.remove(&index).unwrap_or_default();
        if seen.adopted.as_ref() != replica.adopted() {
            seen.adopted = replica.adopted().cloned();
            if seen
                .adopted
                .as_ref()
                .is_some_and(|ballot| ballot.leader == *replica.me())
            {
                self.check_opening(index, history, replica)?;
            }
        }
        if seen.history != Some(history) {
            (seen.history, seen.confirmed) = (Some(history), 0);
        }
        if replica.passed_requests() > 0 {
            return Err(format!("an entry of {index} has passed its request"));
        }
        if replica.confirmed() < seen.confirmed {
            return Err(format!(
                "{index} takes back a confirmation: {} in {history:?}, then {}",
                seen.confirmed,
                replica.confirmed()
            ));
        }
        self.check_confirmed(index, history, seen.confirmed, replica)?;
        seen.confirmed = replica.confirmed();
        self.seen.insert(index, seen);
        Ok(())
    }

    /// S13: the memory of a member, with one snapshot of the longest kind, which only a liar's first part reserves here. At worst
    /// it takes 39 MiB: with two of them, entries beside a snapshot, and the log of another ballot.
    ///
    /// # Errors
    /// The broken bound.
    pub fn check_bounds(index: usize, replica: &Replica) -> Result<(), String> {
        let bytes = replica.bytes();
        match bytes > 14 << 20 {
            true => Err(format!("{index} takes {bytes} bytes")),
            false => Ok(()),
        }
    }

    /// S9: an exclusive opening contains all that is confirmed in its history under lower ballots.
    fn check_opening(
        &mut self,
        index: usize,
        history: History,
        replica: &Replica,
    ) -> Result<(), String> {
        let ballot = replica.adopted().expect("it leads");
        let opening = (replica.base().index() + 1..=replica.index())
            .rev()
            .filter_map(|at| Some((at, replica.entry(at)?)))
            .find(|(_, entry)| matches!(entry.contents, Contents::Open { .. }));
        let Some((
            opened_at,
            Entry {
                contents: Contents::Open { exclusive, .. },
                ..
            },
        )) = opening
        else {
            return Err(format!("{index} leads without an opening"));
        };
        let Some(confirmed) = self.histories.get(&history) else {
            if !exclusive {
                check_new_history(index, replica)?;
            }
            // A new one: what precedes it is its own.
            let before = replica.base().index() + 1..opened_at;
            return self.begin(history, replica, before);
        };
        if !exclusive {
            return Err(format!("{index} forks into {history:?}, which exists"));
        }
        let first = replica.base().index() + 1;
        let opening = Opening {
            ballot: ballot.clone(),
            first,
            entries: (first..opened_at)
                .filter_map(|at| replica.entry(at).cloned())
                .collect(),
        };
        for (at, (entry, by)) in (1..).zip(confirmed.entries.iter().zip(&confirmed.by)) {
            let is_lower = by.as_ref().is_none_or(|by| by < ballot);
            if is_lower && !opening.allows(at, entry) {
                return Err(format!(
                    "{index} opens {ballot:?} in {history:?} without the confirmed entry {at}: {entry:?}"
                ));
            }
        }
        if let Some(confirmed) = self.histories.get_mut(&history) {
            confirmed.openings.push(opening);
        }
        Ok(())
    }

    /// Notes the entries that a new history begins with; entries before the tail belong to the history that it left.
    fn begin(
        &mut self,
        history: History,
        replica: &Replica,
        before: std::ops::Range<u64>,
    ) -> Result<(), String> {
        let parent = self.parent_of(replica);
        let mut confirmed = Confirmed::default();
        for at in 1..before.end {
            let known = || {
                self.histories
                    .get(&parent?)?
                    .entries
                    .get(at as usize - 1)
                    .cloned()
            };
            let Some(entry) = replica.entry(at).cloned().or_else(known) else {
                return Err(format!("entry {at} of the new {history:?} was never seen"));
            };
            confirmed.push(entry, None)?;
        }
        self.histories.insert(history, confirmed);
        Ok(())
    }

    /// A history whose confirmed entries lead to the base of a member's log.
    fn parent_of(&self, replica: &Replica) -> Option<History> {
        let base = replica.base();
        let leads_there = |confirmed: &&Confirmed| {
            let at = base.index() as usize;
            at > 0
                && confirmed.entries.len() >= at
                && Some(&confirmed.entries[at - 1].ballot) == base.last().map(|last| &last.ballot)
        };
        let found = self
            .histories
            .iter()
            .find(|(_, confirmed)| leads_there(confirmed));
        found.map(|(history, _)| *history)
    }

    /// S1, S2: all members confirm the same entries of a history.
    fn check_confirmed(
        &mut self,
        index: usize,
        history: History,
        from: u64,
        replica: &Replica,
    ) -> Result<(), String> {
        let parent = self.parent_of(replica);
        let of_parent = |ghosts: &Self, at: u64| {
            let entries = &ghosts.histories.get(&parent?)?.entries;
            (at <= replica.base().index()).then(|| entries.get(at as usize - 1).cloned())?
        };
        for at in from + 1..=replica.confirmed() {
            // An entry before the tail is that of a history in which it was confirmed.
            let entry = replica.entry(at).cloned().or_else(|| of_parent(self, at));
            let confirmed = self.histories.entry(history).or_default();
            let before = confirmed.entries.len() as u64;
            match &entry {
                Some(entry) if at <= before => {
                    let known = &confirmed.entries[at as usize - 1];
                    if known != entry {
                        return Err(format!(
                            "{history:?}: entry {at} is confirmed as {known:?}, and at {index} as {entry:?}"
                        ));
                    }
                }
                Some(entry) if at == before + 1 => {
                    self.check_condition(history, entry, index)?;
                    let confirmed = self.histories.entry(history).or_default();
                    confirmed.push(entry.clone(), replica.adopted().cloned())?;
                }
                None if at <= before => {}
                _ => {
                    return Err(format!(
                        "{history:?}: {index} confirms entry {at} of {}, and entry {} is unknown",
                        replica.index(),
                        before + 1
                    ));
                }
            }
        }
        Ok(())
    }

    /// S10: a compare-and-set succeeds only against the property that its host has read.
    fn check_condition(&self, history: History, entry: &Entry, index: usize) -> Result<(), String> {
        let Contents::Request {
            author,
            number,
            request,
        } = &entry.contents
        else {
            return Ok(());
        };
        let Some(submitted) = self.requests.get(&(author.clone(), *number)) else {
            return Err(format!("{author:?} never submitted {number}"));
        };
        if submitted.request != *request {
            return Err(format!(
                "{author:?} submitted {number} as {:?}, and {index} has {request:?}",
                submitted.request
            ));
        }
        let Request::Properties(changes) = request else {
            return Ok(());
        };
        let before = self
            .histories
            .get(&history)
            .map(|confirmed| &confirmed.tables);
        let before = before.cloned().unwrap_or_default();
        if before.clone().apply(entry).outcome != Some(Ok(())) {
            return Ok(());
        }
        let reads = |change: &&PropertyChange| matches!(change.expected, Expected::Version(version) if version > 0);
        for PropertyChange { key, .. } in changes.iter().filter(reads) {
            let (read, found) = (submitted.read.property(key), before.property(key));
            if read != found {
                return Err(format!(
                    "{author:?} read {read:?}, and its compare-and-set {number} replaces {found:?}"
                ));
            }
        }
        Ok(())
    }

    /// The histories in which anything was confirmed.
    pub fn histories(&self) -> BTreeSet<History> {
        self.histories.keys().copied().collect()
    }
}

/// S8: a static room begins another history only if all of its voters have answered.
fn check_new_history(index: usize, replica: &Replica) -> Result<(), String> {
    let Quorum::Static(voters) = &replica.settings().quorum else {
        return Ok(());
    };
    // Members that are no voters answer, too.
    let answered: BTreeSet<_> = replica.roster().iter().map(|member| &member.peer).collect();
    match voters.iter().all(|voter| answered.contains(voter)) {
        true => Ok(()),
        false => Err(format!(
            "{index} begins {:?} with the answers of {:?}",
            replica.history(),
            replica.roster()
        )),
    }
}

impl Confirmed {
    /// S4: each author's numbers rise. S11: no key has an owner that has left. No leader orders a request behind its own
    /// departure.
    fn push(&mut self, entry: Entry, by: Option<Ballot>) -> Result<(), String> {
        let is_request = matches!(entry.contents, Contents::Request { .. });
        if is_request && !self.tables.is_here(&entry.ballot.leader) {
            return Err(format!("{:?} has left, and orders {entry:?}", entry.ballot));
        }
        if let Contents::Request { author, number, .. } = &entry.contents {
            let last = self.numbers.insert(author.clone(), *number);
            if last.is_some_and(|last| last >= *number) {
                return Err(format!("{number} of {author:?} follows {last:?}"));
            }
        }
        let at = self.entries.len() as u64 + 1;
        let lacks = |opening: &&Opening| {
            by.as_ref().is_some_and(|by| *by < opening.ballot) && !opening.allows(at, &entry)
        };
        if let Some(opening) = self.openings.iter().find(lacks) {
            return Err(format!(
                "{by:?} confirms entry {at} after {:?} was opened without it",
                opening.ballot
            ));
        }
        self.tables.apply(&entry);
        let here: BTreeSet<_> = self.tables.members().map(|member| &member.peer).collect();
        for (key, property) in self.tables.properties() {
            if property
                .owner
                .as_ref()
                .is_some_and(|owner| !here.contains(owner))
            {
                return Err(format!(
                    "{key:?} belongs to {:?}, which has left",
                    property.owner
                ));
            }
        }
        self.entries.push(entry);
        self.by.push(by);
        Ok(())
    }
}
