//! A place in the line of those who want what a prefix stands for: the leadership, or a lock.
//!
//! Everybody writes a key of its own under the prefix. The key that was created first has it, and each other waits for the key
//! right before its own alone. A place that came first is believed only after its own key was read again, and is given up as
//! soon as that key is gone or somebody else writes it.
//!
//! There is no request that deletes the key: its lease is revoked instead. A write that was under way, and of which nobody knows
//! whether it will be carried out, fails then.

use std::sync::Arc;

use crate::election::engine::{
    Answer, Call, Change, Entry, FailureKind, Lease, Range, Request, Revision,
};
use crate::time::Time;

use super::calls::{Calls, Owner, Pace};

/// How many values are remembered of which nobody knows whether they were written.
const MAX_UNSURE: usize = 8;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Line {
    owner: Owner,
    prefix: Arc<str>,
    key: Arc<str>,
    lease: Lease,
    /// Whether the process before this one used the lease. It may live, in a copy of the machine: it learns from a write that
    /// this one has it now, whatever the key says already.
    is_inherited: bool,
    /// What the key shall say.
    value: Vec<u8>,
    /// The key as it was written last, as far as this node knows.
    own: Option<Entry>,
    step: Step,
    writing: Option<Writing>,
    /// Values whose write failed, or seemed to: each is expected once.
    unsure: Vec<Vec<u8>>,
    watch: Watch,
    /// Everything about the key up to this revision is known.
    seen: Revision,
}

#[derive(Debug)]
enum Step {
    /// A call failed: from then on again.
    Pausing { until: Time, again: Again },
    /// This node's key is being written.
    Creating(Call),
    /// The key that was found says something else: it is being written.
    Taking,
    /// Who is right before?
    Looking(Call),
    /// Somebody is, whose key is watched.
    Waiting(Call),
    /// Nobody was. Is this node's key still there?
    Confirming(Call),
    /// It came first.
    First,
}

/// What a place was at when a call failed.
#[derive(Debug, Clone, Copy)]
enum Again {
    Create,
    Take,
    Look,
    Confirm,
}

/// Another value is being written.
#[derive(Debug)]
struct Writing {
    call: Call,
    value: Vec<u8>,
    /// What the watch told meanwhile. Whether one of these is ours the answer says.
    told: Vec<Entry>,
}

/// The watch over this node's key.
#[derive(Debug)]
enum Watch {
    Off,
    On(Call),
    /// Its history was compacted: what does the key say now?
    Reading(Call),
    Pausing {
        until: Time,
        read: bool,
    },
}

/// What has become of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Somebody is before it.
    Behind,
    /// It came first; its key was created at this revision.
    First(Revision),
    /// Its key or its lease is gone.
    Lost,
    /// Another process writes its key: that has its lease, too.
    TakenOver,
}

impl Line {
    /// Takes a place under a lease; `is_inherited` where that is of the process before this one.
    pub(super) fn join(
        owner: Owner,
        prefix: Arc<str>,
        (lease, is_inherited): (Lease, bool),
        value: Vec<u8>,
        calls: &mut Calls,
    ) -> Self {
        // As other clients of etcd name their keys.
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

    /// Whether somebody is before it, as far as is known.
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

    /// Has another value written: now, or once there is a key.
    pub(super) fn set_value(&mut self, value: Vec<u8>) {
        self.value = value;
    }

    /// Forgets the place: its lease has ended, or is about to.
    pub(super) fn close(self, calls: &mut Calls) {
        if let Step::Waiting(call) = self.step {
            calls.unwatch(call);
        }
        if let Watch::On(call) = self.watch {
            calls.unwatch(call);
        }
    }

    /// Does what is due.
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
        let says = self.own.as_ref().map(|own| &own.value);
        if matches!(self.step, Step::First | Step::Waiting(_))
            && self.writing.is_none()
            && says != Some(&self.value)
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
            told: Vec::new(),
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

    /// The store has answered one of its calls.
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
                // What happened meanwhile cannot be told: who is right before now?
                FailureKind::Compacted => self.again(again, calls),
                FailureKind::Unreachable | FailureKind::Denied | FailureKind::Other => {
                    let until = pace.later(now);
                    self.step = Step::Pausing { until, again };
                }
            },
            // The one before may write another value: it is there as before.
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
            // No store says this.
            (_, answer) => debug_assert!(false, "{again:?} was answered with {answer:?}"),
        }
        None
    }

    /// The answer to a new value.
    fn written(
        &mut self,
        now: Time,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<News> {
        let Writing { value, told, .. } = self.writing.take()?;
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
        let others = told
            .into_iter()
            .filter(|entry| Some(entry.modified) != modified);
        let mut news = None;
        for entry in others {
            news = news.or(self.told(entry));
        }
        news
    }

    /// This node's key stands like this, unless something newer is known.
    fn note(&mut self, entry: Entry) {
        if self
            .own
            .as_ref()
            .is_none_or(|own| own.modified < entry.modified)
        {
            self.own = Some(entry);
        }
    }

    /// Something about this node's key.
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
                            self.told(entry)
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
                let news = self.told(entry);
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
    fn told(&mut self, entry: Entry) -> Option<News> {
        let known = self.own.as_ref().map(|own| own.modified);
        if known.is_some_and(|known| entry.modified <= known) {
            return None;
        }
        if let Some(writing) = &mut self.writing {
            writing.told.push(entry);
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
