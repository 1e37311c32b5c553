//! Who leads, as the store says it.

use std::sync::Arc;

use crate::election::engine::{Answer, Call, Change, Entry, FailureKind, Range, Request, Revision};
use crate::time::{Duration, Time};

use super::calls::{Calls, Owner, Pace};

/// Follows the first key under a prefix. It sees each of them, however short its time was, unless the store's history is
/// compacted meanwhile.
#[derive(Debug)]
pub(super) struct Observer {
    prefix: Arc<str>,
    /// How long it believes what it knows when the store does not answer.
    patience: Duration,
    /// The first key.
    first: Option<Entry>,
    /// Everything up to this revision is known.
    seen: Revision,
    step: Step,
    /// Since when the store does not answer.
    silent_since: Option<Time>,
    /// It did not for so long that the first key counts as unknown.
    has_given_up: bool,
}

#[derive(Debug)]
enum Step {
    /// From then on.
    Pausing {
        until: Time,
        again: Again,
    },
    /// Which key is the first, or was right after the last change?
    Asking {
        call: Call,
        at: Option<Revision>,
    },
    /// Does the store answer again?
    Knocking(Call),
    Watching(Call),
}

#[derive(Debug, Clone, Copy)]
enum Again {
    Ask(Option<Revision>),
    Knock,
    Watch,
}

impl Observer {
    pub(super) fn new(now: Time, prefix: Arc<str>, patience: Duration) -> Self {
        Self {
            prefix,
            patience,
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

    /// The first key, as far as is known.
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
        Some(since + self.patience)
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, now: Time, calls: &mut Calls) {
        if self.gives_up_at().is_some_and(|at| now >= at) {
            // Its lease may have ended.
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
                Step::Knocking(calls.ask(&Owner::Observer, Request::First { prefix, at }))
            }
            Again::Watch => {
                // Without a first key the next one that is written is it.
                let range = self.first.as_ref().map_or(Range::Prefix(prefix), |first| {
                    Range::Key(Arc::clone(&first.key))
                });
                let from = self.seen + 1;
                Step::Watching(calls.ask(&Owner::Observer, Request::Watch { range, from }))
            }
        };
    }

    /// The store has answered one of its calls.
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
            Step::Knocking(open) if open == call => Again::Knock,
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
            // What happened meanwhile is of no use any more, only how things stand.
            // The same where the store was restored from a backup: what is watched for may never come.
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
            // What happened in between nobody can tell any more.
            self.again(Again::Ask(None), calls);
            return;
        }
        self.silent_since.get_or_insert(now);
        let again = match asked {
            Again::Ask(at) => Again::Ask(at),
            // A watch answers nothing while nothing happens: whether the store is there, a question tells.
            Again::Knock | Again::Watch => Again::Knock,
        };
        let until = pace.later(now);
        self.step = Step::Pausing { until, again };
    }
}
