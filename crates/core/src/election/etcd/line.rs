//! A place in the line for the leadership or for a lock; the prefix of the line's keys stands for either.
//!
//! Each process writes a key of its own under the prefix. The key that was created first holds the leadership or the
//! lock, and each other process waits only for the key right before its own. A process that came first acts on it only
//! after it has read its own key again. It gives the place up as soon as that key is gone or another process writes it.
//!
//! No request deletes the key: its lease is revoked instead. A pending write whose outcome is unknown then fails.

use std::sync::Arc;

use crate::election::engine::{
    Answer, Call, Change, Entry, FailureKind, Lease, Range, Request, Revision,
};
use crate::time::Time;

use super::calls::{Calls, Owner, Pace};

/// The number of values that are remembered because it is unknown whether they were written.
const MAX_UNSURE: usize = 8;

/// A place in the line.
#[derive(Debug)]
pub(super) struct Line {
    owner: Owner,
    prefix: Arc<str>,
    key: Arc<str>,
    lease: Lease,
    /// Whether the previous process used the lease. It may live on in a copy of the machine: a write shows it that this
    /// process has the lease now, whatever value the key has already.
    is_inherited: bool,
    /// The value that the key should have.
    value: Vec<u8>,
    /// The key as last written, as far as this node knows.
    own: Option<Entry>,
    step: Step,
    writing: Option<Writing>,
    /// Values whose write failed, or seemed to; each is expected once.
    unsure: Vec<Vec<u8>>,
    watch: Watch,
    /// Every change of the key up to this revision is known.
    seen: Revision,
}

#[derive(Debug)]
enum Step {
    /// A call failed; it is repeated at `until`.
    Pausing { until: Time, again: Again },
    /// This node's key is being written.
    Creating(Call),
    /// The key exists with another value: it is being written.
    Taking,
    /// Asks for the key right before its own.
    Looking(Call),
    /// Watches that key.
    Waiting(Call),
    /// No key was before it: reads its own key again.
    Confirming(Call),
    /// It came first.
    First,
}

/// The step at which a call failed.
#[derive(Debug, Clone, Copy)]
enum Again {
    Create,
    Take,
    Look,
    Confirm,
}

/// A write of another value.
#[derive(Debug)]
struct Writing {
    call: Call,
    value: Vec<u8>,
    /// Changes that the watch reported meanwhile. The answer to the write shows whether one of them is this node's own.
    reported: Vec<Entry>,
}

/// The watch over this node's key.
#[derive(Debug)]
enum Watch {
    Off,
    On(Call),
    /// The watch's history was compacted: reads the key again.
    Reading(Call),
    Pausing {
        until: Time,
        read: bool,
    },
}

/// Event of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Another key is before it.
    Behind,
    /// It came first; its key was created at this revision.
    First(Revision),
    /// Its key or its lease is gone.
    Lost,
    /// Another process writes the key, so it has the lease, too.
    TakenOver,
}

impl Line {
    /// Takes a place under a lease; `is_inherited` if the lease is the previous process's.
    pub(super) fn join(
        owner: Owner,
        prefix: Arc<str>,
        (lease, is_inherited): (Lease, bool),
        value: Vec<u8>,
        calls: &mut Calls,
    ) -> Self {
        // The name of a key as in other clients of etcd.
        let key: Arc<str> = format!("{prefix}{lease:x}").into();
        let request = Request::Create {
            key: Arc::clone(&key),
            value: value.clone(),
            lease,
        };
        Self {
            step: Step::Creating(calls.ask(&owner, request)),
            owner,
            prefix,
            key,
            lease,
            is_inherited,
            value,
            own: None,
            writing: None,
            unsure: Vec::new(),
            watch: Watch::Off,
            seen: 0,
        }
    }

    /// The revision at which its key was created, if it came first.
    pub(super) fn first(&self) -> Option<Revision> {
        match (&self.step, &self.own) {
            (Step::First, Some(own)) => Some(own.created),
            _ => None,
        }
    }

    /// Whether another key is before it, as far as known.
    pub(super) fn is_behind(&self) -> bool {
        matches!(self.step, Step::Waiting(_))
    }

    /// Its key.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let step = match self.step {
            Step::Pausing { until, .. } => Some(until),
            _ => None,
        };
        let watch = match self.watch {
            Watch::Pausing { until, .. } => Some(until),
            _ => None,
        };
        step.into_iter().chain(watch).min()
    }

    /// Writes another value: now, or once the key exists.
    pub(super) fn set_value(&mut self, value: Vec<u8>) {
        self.value = value;
    }

    /// Gives the place up: its lease has ended, or is about to.
    pub(super) fn close(self, calls: &mut Calls) {
        if let Step::Waiting(call) = self.step {
            calls.unwatch(call);
        }
        if let Watch::On(call) = self.watch {
            calls.unwatch(call);
        }
    }

    /// Performs the actions that are due.
    pub(super) fn advance(&mut self, now: Time, calls: &mut Calls) {
        if let Step::Pausing { until, again } = self.step
            && now >= until
        {
            self.again(again, calls);
        }
        if let Watch::Pausing { until, read } = self.watch
            && now >= until
        {
            self.watch_again(read, calls);
        }
        let stored = self.own.as_ref().map(|own| &own.value);
        if matches!(self.step, Step::First | Step::Waiting(_))
            && self.writing.is_none()
            && stored != Some(&self.value)
        {
            self.write(calls);
        }
    }

    fn write(&mut self, calls: &mut Calls) {
        let Some(own) = &self.own else { return };
        let request = Request::Replace {
            key: Arc::clone(&self.key),
            created: own.created,
            value: self.value.clone(),
            lease: self.lease,
        };
        self.writing = Some(Writing {
            call: calls.ask(&self.owner, request),
            value: self.value.clone(),
            reported: Vec::new(),
        });
    }

    fn again(&mut self, again: Again, calls: &mut Calls) {
        let key = Arc::clone(&self.key);
        self.step = match (again, &self.own) {
            (Again::Take, Some(_)) => {
                self.write(calls);
                Step::Taking
            }
            (Again::Look, Some(own)) => {
                let request = Request::LastBefore {
                    prefix: Arc::clone(&self.prefix),
                    created: own.created,
                };
                Step::Looking(calls.ask(&self.owner, request))
            }
            (Again::Confirm, Some(_)) => {
                Step::Confirming(calls.ask(&self.owner, Request::Get { key }))
            }
            (Again::Create, _) | (_, None) => {
                let request = Request::Create {
                    key,
                    value: self.value.clone(),
                    lease: self.lease,
                };
                Step::Creating(calls.ask(&self.owner, request))
            }
        };
    }

    fn watch_again(&mut self, read: bool, calls: &mut Calls) {
        let key = Arc::clone(&self.key);
        self.watch = if read {
            Watch::Reading(calls.ask(&self.owner, Request::Get { key }))
        } else {
            let range = Range::Key(key);
            let from = self.seen + 1;
            Watch::On(calls.ask(&self.owner, Request::Watch { range, from }))
        };
    }

    /// Handles the store's answer to one of its calls.
    pub(super) fn answer(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<News> {
        if self.writing.as_ref().is_some_and(|one| one.call == call) {
            return self.written(now, answer, calls, pace);
        }
        match self.watch {
            Watch::On(open) | Watch::Reading(open) if open == call => {
                self.watched(now, answer, calls, pace)
            }
            _ => self.stepped(now, call, answer, calls, pace),
        }
    }

    fn stepped(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<News> {
        let (open, again) = match self.step {
            Step::Creating(open) => (open, Again::Create),
            Step::Looking(open) | Step::Waiting(open) => (open, Again::Look),
            Step::Confirming(open) => (open, Again::Confirm),
            Step::Pausing { .. } | Step::Taking | Step::First => return None,
        };
        if open != call {
            return None;
        }
        match (again, answer) {
            (_, Answer::Failed(failure)) => match failure.kind {
                FailureKind::LeaseGone => return Some(News::Lost),
                // The changes in between are lost: asks again for the key right before.
                FailureKind::Compacted => self.again(again, calls),
                FailureKind::Unreachable | FailureKind::Denied | FailureKind::Other => {
                    let until = pace.later(now);
                    self.step = Step::Pausing { until, again };
                }
            },
            // The holder of the key before may write another value: its key is still there.
            (_, Answer::Changes(changes)) => {
                let is_gone = |change: &Change| matches!(change, Change::Deleted { .. });
                if changes.iter().any(is_gone) {
                    calls.unwatch(call);
                    self.again(Again::Look, calls);
                }
            }
            (
                Again::Create,
                Answer::Entry {
                    entry: Some(own),
                    revision,
                },
            ) => {
                let takes = self.is_inherited || own.value != self.value;
                self.own = Some(own);
                self.seen = revision;
                self.watch_again(false, calls);
                self.again(if takes { Again::Take } else { Again::Look }, calls);
            }
            (Again::Look, Answer::Entry { entry, revision }) => {
                let Some(ahead) = entry else {
                    self.again(Again::Confirm, calls);
                    return None;
                };
                let range = Range::Key(ahead.key);
                let from = revision + 1;
                let watch = Request::Watch { range, from };
                self.step = Step::Waiting(calls.ask(&self.owner, watch));
                return Some(News::Behind);
            }
            (Again::Confirm, Answer::Entry { entry, .. }) => {
                let created = self.own.as_ref().map(|own| own.created);
                let there = entry.map(|entry| entry.created);
                if there.is_none() || there != created {
                    return Some(News::Lost);
                }
                self.step = Step::First;
                return there.map(News::First);
            }
            // No store answers this.
            (_, answer) => debug_assert!(false, "{again:?} was answered with {answer:?}"),
        }
        None
    }

    /// Handles the answer to the write of a new value.
    fn written(
        &mut self,
        now: Time,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<News> {
        let Writing {
            value, reported, ..
        } = self.writing.take()?;
        let modified = match answer {
            Answer::Entry {
                entry: Some(own), ..
            } => {
                let modified = own.modified;
                self.note(own);
                if matches!(self.step, Step::Taking) {
                    self.again(Again::Look, calls);
                }
                Some(modified)
            }
            Answer::Entry { entry: None, .. } => return Some(News::Lost),
            Answer::Failed(failure) if failure.kind == FailureKind::LeaseGone => {
                return Some(News::Lost);
            }
            _ => {
                if self.unsure.len() == MAX_UNSURE {
                    self.unsure.remove(0);
                }
                self.unsure.push(value);
                if matches!(self.step, Step::Taking) {
                    let until = pace.later(now);
                    let again = Again::Take;
                    self.step = Step::Pausing { until, again };
                }
                None
            }
        };
        let others = reported
            .into_iter()
            .filter(|entry| Some(entry.modified) != modified);
        let mut news = None;
        for entry in others {
            news = news.or(self.reported(entry));
        }
        news
    }

    /// Keeps the entry of this node's key, unless a newer one is known.
    fn note(&mut self, entry: Entry) {
        if self
            .own
            .as_ref()
            .is_none_or(|own| own.modified < entry.modified)
        {
            self.own = Some(entry);
        }
    }

    /// Handles an answer about this node's key.
    fn watched(
        &mut self,
        now: Time,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<News> {
        match answer {
            Answer::Changes(changes) => {
                for change in changes {
                    let news = match change {
                        Change::Put(entry) => {
                            self.seen = self.seen.max(entry.modified);
                            self.reported(entry)
                        }
                        Change::Deleted { .. } => Some(News::Lost),
                    };
                    if news.is_some() {
                        return news;
                    }
                }
            }
            Answer::Entry { entry, revision } => {
                let created = self.own.as_ref().map(|own| own.created);
                self.seen = revision;
                let entry = entry.filter(|entry| Some(entry.created) == created);
                let Some(entry) = entry else {
                    return Some(News::Lost);
                };
                let news = self.reported(entry);
                self.watch_again(false, calls);
                return news;
            }
            Answer::Failed(failure) => {
                let read = failure.kind == FailureKind::Compacted
                    || matches!(self.watch, Watch::Reading(_));
                let until = pace.later(now);
                self.watch = Watch::Pausing { until, read };
            }
            answer => debug_assert!(false, "a watch was answered with {answer:?}"),
        }
        None
    }

    /// This node's key was written.
    fn reported(&mut self, entry: Entry) -> Option<News> {
        let known = self.own.as_ref().map(|own| own.modified);
        if known.is_some_and(|known| entry.modified <= known) {
            return None;
        }
        if let Some(writing) = &mut self.writing {
            writing.reported.push(entry);
            return None;
        }
        let expected = self.unsure.iter().position(|value| *value == entry.value);
        let Some(expected) = expected else {
            return Some(News::TakenOver);
        };
        self.unsure.remove(expected);
        self.note(entry);
        None
    }
}
