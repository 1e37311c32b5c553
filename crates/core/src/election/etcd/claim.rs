//! A claim of this node on the store, for the leadership or for one lock: a lease, and a place in a line under it.

use std::sync::Arc;

use crate::election::engine::{Answer, Call, Lease, Revision};
use crate::time::{Duration, Time};

use super::calls::{Calls, Owner, Pace};
use super::line::{Line, News};
use super::session::{Change, Session};

/// A claim for the leadership or a lock.
#[derive(Debug)]
pub(super) struct Claim {
    owner: Owner,
    prefix: Arc<str>,
    /// The value of its key.
    value: Vec<u8>,
    session: Session,
    line: Option<Line>,
    /// Whether the node wants a place.
    wanted: bool,
}

/// Event of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The claim has a lease; a later process may use it.
    Leased(Lease),
    /// Another claim is before it.
    Behind,
    /// It came first; its key was created at this revision.
    First(Revision),
    /// It was first, and is no longer.
    Lost(Revision),
}

impl Claim {
    /// A claim that is not wanted yet. `(is_kept, kept)`: whether a later process may go on with its lease, and the
    /// lease of the previous process.
    pub(super) fn new(
        now: Time,
        owner: Owner,
        prefix: Arc<str>,
        value: Vec<u8>,
        ttl: Duration,
        (is_kept, kept): (bool, Option<Lease>),
    ) -> Self {
        Self {
            session: Session::new(now, owner.clone(), ttl, is_kept, kept),
            owner,
            prefix,
            value,
            line: None,
            wanted: false,
        }
    }

    /// Sets whether the claim wants a place from now on. It gives up the place that it has together with its lease.
    pub(super) fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Whether the claim wants a place.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The revision at which its key was created, if it came first.
    pub(super) fn first(&self) -> Option<Revision> {
        self.line.as_ref().and_then(Line::first)
    }

    /// Whether another claim is before it, as far as known.
    pub(super) fn is_behind(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_behind)
    }

    /// The time until which it may act as the first.
    pub(super) fn valid_until(&self) -> Option<Time> {
        self.first().and(self.session.until())
    }

    /// As [`Session::to_forget`].
    pub(super) fn to_forget(&self) -> Option<Lease> {
        self.session.to_forget()
    }

    /// As [`Session::forgotten`].
    pub(super) fn forgotten(&mut self, lease: Lease) {
        self.session.forgotten(lease);
    }

    /// Whether the store no longer knows the claim.
    pub(super) fn is_over(&self) -> bool {
        self.session.is_over()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let line = self.line.as_ref().and_then(Line::next_deadline);
        line.into_iter().chain(self.session.next_deadline()).min()
    }

    /// Sets the value of its key.
    pub(super) fn set_value(&mut self, value: Vec<u8>) {
        if let Some(line) = &mut self.line {
            line.set_value(value.clone());
        }
        self.value = value;
    }

    /// Gives up its place together with its lease. If the claim is still wanted, it takes another place.
    pub(super) fn resign(&mut self, now: Time, calls: &mut Calls) -> Option<Outcome> {
        self.session.end(now);
        self.leave_line(calls)
    }

    /// Notices that its lease has run out. Must run before any other input is handled.
    pub(super) fn expire(&mut self, now: Time, calls: &mut Calls) -> Option<Outcome> {
        if self.session.expire(now) {
            self.leave_line(calls)
        } else {
            None
        }
    }

    fn leave_line(&mut self, calls: &mut Calls) -> Option<Outcome> {
        let line = self.line.take()?;
        let first = line.first();
        line.close(calls);
        first.map(Outcome::Lost)
    }

    /// Performs the actions that are due.
    pub(super) fn advance(&mut self, now: Time, calls: &mut Calls) -> Option<Outcome> {
        let mut outcome = None;
        if !self.wanted {
            outcome = self.leave_line(calls);
        }
        self.session.advance(now, self.wanted, calls);
        if let (true, None, Some(lease)) = (self.wanted, &self.line, self.session.lease()) {
            let (owner, prefix) = (self.owner.clone(), Arc::clone(&self.prefix));
            let lease = (lease, self.session.is_inherited());
            let line = Line::join(owner, prefix, lease, self.value.clone(), calls);
            self.line = Some(line);
        }
        if let Some(line) = &mut self.line {
            line.advance(now, calls);
        }
        debug_assert!(self.line.is_none() || self.session.lease().is_some());
        outcome
    }

    /// Handles the store's answer to one of its calls.
    pub(super) fn answer(
        &mut self,
        now: Time,
        call: Call,
        answer: Answer,
        calls: &mut Calls,
        pace: &mut Pace,
    ) -> Option<Outcome> {
        match self.session.answer(now, call, &answer, pace) {
            Some(Change::Opened(lease)) => return Some(Outcome::Leased(lease)),
            Some(Change::Lost) => return self.leave_line(calls),
            None => {}
        }
        let line = self.line.as_mut()?;
        match line.answer(now, call, answer, calls, pace)? {
            News::Behind => Some(Outcome::Behind),
            News::First(created) => Some(Outcome::First(created)),
            News::Lost => {
                tracing::warn!(key = line.key(), "etcd: the key of this member is gone");
                self.resign(now, calls)
            }
            News::TakenOver => {
                tracing::warn!(
                    key = line.key(),
                    "etcd: another process writes the key of this member: it has a copy of its state directory"
                );
                self.session.abandon();
                self.leave_line(calls)
            }
        }
    }
}
