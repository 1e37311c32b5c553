//! The leader as the store shows it.

use std::sync::Arc;

use crate::election::engine::{Answer, Call, Change, Entry, FailureKind, Range, Request, Revision};
use crate::time::{Duration, Time};

use super::calls::{Calls, Owner, Pace};

/// Follows the first key under a prefix. It sees every first key, however short-lived, unless the store's history is
/// compacted meanwhile.
#[derive(Debug)]
pub(super) struct Observer {
    prefix: Arc<str>,
    /// The time for which it believes its last knowledge while the store does not answer.
    timeout: Duration,
    /// The first key.
    first: Option<Entry>,
    /// All changes up to this revision are known.
    seen: Revision,
    step: Step,
    /// The time since which the store has not answered.
    silent_since: Option<Time>,
    /// The store has not answered for that time, so the first key counts as unknown.
    has_given_up: bool,
}

#[derive(Debug)]
enum Step {
    /// Repeats the step at `until`.
    Pausing {
        until: Time,
        again: Again,
    },
    /// Asks for the first key, now or right after the last change.
    Asking {
        call: Call,
        at: Option<Revision>,
    },
    /// Asks whether the store answers again.
    Probing(Call),
    Watching(Call),
}

#[derive(Debug, Clone, Copy)]
enum Again {
    Ask(Option<Revision>),
    Knock,
    Watch,
}

impl Observer {
    pub(super) fn new(now: Time, prefix: Arc<str>, timeout: Duration) -> Self {
        Self {
            prefix,
            timeout,
            first: None,
            seen: 0,
            step: Step::Pausing {
                until: now,
                again: Again::Ask(None),
            },
            silent_since: None,
            has_given_up: false,
        }
    }

    /// The first key, as far as known.
    pub(super) fn first(&self) -> Option<&Entry> {
        self.first.as_ref()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let step = match self.step {
            Step::Pausing { until, .. } => Some(until),
            _ => None,
        };
        step.into_iter().chain(self.gives_up_at()).min()
    }

    fn gives_up_at(&self) -> Option<Time> {
        let since = self.silent_since.filter(|_| self.first.is_some())?;
        Some(since + self.timeout)
    }

    /// Performs the actions that are due.
    pub(super) fn advance(&mut self, now: Time, calls: &mut Calls) {
        if self.gives_up_at().is_some_and(|at| now >= at) {
            // The lease of the first key may have ended.
            self.first = None;
            self.has_given_up = true;
        }
        if let Step::Pausing { until, again } = self.step
            && now >= until
        {
            self.again(again, calls);
        }
    }

    fn again(&mut self, again: Again, calls: &mut Calls) {
        let prefix = Arc::clone(&self.prefix);
        self.step = match again {
            Again::Ask(at) => {
                let call = calls.ask(&Owner::Observer, Request::First { prefix, at });
                Step::Asking { call, at }
            }
            Again::Knock => {
                let at = None;
                Step::Probing(calls.ask(&Owner::Observer, Request::First { prefix, at }))
            }
            Again::Watch => {
                // Without a first key, the next key that is written becomes the first.
                let range = self.first.as_ref().map_or(Range::Prefix(prefix), |first| {
                    Range::Key(Arc::clone(&first.key))
                });
                let from = self.seen + 1;
                Step::Watching(calls.ask(&Owner::Observer, Request::Watch { range, from }))
            }
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
    ) {
        let asked = match self.step {
            Step::Asking { call: open, at } if open == call => Again::Ask(at),
            Step::Probing(open) if open == call => Again::Knock,
            Step::Watching(open) if open == call => Again::Watch,
            _ => return,
        };
        if let Answer::Failed(failure) = &answer {
            self.failed(now, failure.kind, asked, calls, pace);
            return;
        }
        self.silent_since = None;
        match (asked, answer) {
            (Again::Ask(at), Answer::Entry { entry, revision }) => {
                self.first = entry;
                self.seen = at.unwrap_or(revision);
                self.again(Again::Watch, calls);
            }
            // Changes in between no longer matter, only the present state. After a restore from a backup, too: the
            // watched change may never come.
            (Again::Knock, Answer::Entry { entry, revision })
                if self.has_given_up || revision < self.seen =>
            {
                self.has_given_up = false;
                self.first = entry;
                self.seen = revision;
                self.again(Again::Watch, calls);
            }
            (Again::Knock, Answer::Entry { .. }) => self.again(Again::Watch, calls),
            (Again::Watch, Answer::Changes(changes)) => self.changed(call, changes, calls),
            (asked, answer) => {
                debug_assert!(false, "{asked:?} was answered with {answer:?}");
            }
        }
    }

    fn changed(&mut self, watch: Call, changes: Vec<Change>, calls: &mut Calls) {
        for change in changes {
            let (key, revision) = match &change {
                Change::Put(entry) => (&entry.key, entry.modified),
                Change::Deleted { key, revision } => (key, *revision),
            };
            if revision <= self.seen {
                continue;
            }
            let is_first = self.first.as_ref().is_none_or(|first| first.key == *key);
            debug_assert!(is_first, "a key that is not watched");
            let had_none = self.first.is_none();
            match change {
                Change::Put(entry) => {
                    self.seen = revision;
                    self.first = Some(entry);
                    if had_none {
                        calls.unwatch(watch);
                        self.again(Again::Watch, calls);
                        return;
                    }
                }
                Change::Deleted { .. } if had_none => self.seen = revision,
                Change::Deleted { .. } => {
                    self.first = None;
                    calls.unwatch(watch);
                    self.again(Again::Ask(Some(revision)), calls);
                    return;
                }
            }
        }
    }

    fn failed(
        &mut self,
        now: Time,
        kind: FailureKind,
        asked: Again,
        calls: &mut Calls,
        pace: &mut Pace,
    ) {
        if kind == FailureKind::Compacted {
            // The changes in between are lost.
            self.again(Again::Ask(None), calls);
            return;
        }
        self.silent_since.get_or_insert(now);
        let again = match asked {
            Again::Ask(at) => Again::Ask(at),
            // A watch sends no answers while nothing changes: a request shows whether the store is reachable.
            Again::Knock | Again::Watch => Again::Knock,
        };
        let until = pace.later(now);
        self.step = Step::Pausing { until, again };
    }
}
