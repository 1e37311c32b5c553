//! Locks: each has a claim and a lease of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::election::engine::{Answer, Call};
use crate::election::{LockEvent, LockOutcome, LockRefusal};
use crate::time::{Duration, Time};

use super::calls::{Calls, Owner, Pace};
use super::claim::{Claim, Outcome};

/// Maximum number of locks that a member holds or waits for, and of calls that wait for one.
pub(super) const MAX_LOCKS: usize = 64;

/// The locks that this node holds, waits for, or has not released yet.
#[derive(Debug)]
pub(super) struct Locks {
    prefix: Arc<str>,
    value: Vec<u8>,
    ttl: Duration,
    locks: BTreeMap<Arc<str>, Lock>,
}

#[derive(Debug)]
struct Lock {
    claim: Claim,
    /// The calls that wait for it.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    request: u64,
    until: Option<Time>,
    /// Whether it waits only for the store's answer, and not for other holders.
    tries: bool,
}

impl Locks {
    pub(super) fn new(prefix: Arc<str>, value: Vec<u8>, ttl: Duration) -> Self {
        Self {
            prefix,
            value,
            ttl,
            locks: BTreeMap::new(),
        }
    }

    /// Whether the store no longer knows any of them.
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let of = |lock: &Lock| {
            let calls = lock.waiting.iter().filter_map(|one| one.until);
            calls.chain(lock.claim.next_deadline()).min()
        };
        self.locks.values().filter_map(of).min()
    }

    /// The host asks for a lock.
    ///
    /// # Errors
    /// [`LockRefusal::TooMany`]; nothing has changed then.
    pub(super) fn acquire(
        &mut self,
        now: Time,
        request: u64,
        name: &Arc<str>,
        wait: Option<Duration>,
        reported: &mut Vec<LockEvent>,
    ) -> Result<(), LockRefusal> {
        let known = self.locks.get(name);
        let is_full = match known {
            Some(lock) => lock.waiting.len() >= MAX_LOCKS,
            None => self.locks.len() >= MAX_LOCKS,
        };
        if is_full {
            return Err(LockRefusal::TooMany(MAX_LOCKS));
        }
        if let Some(created) = known.and_then(|lock| lock.claim.first()) {
            reported.push(LockEvent::Result {
                request,
                name: Arc::clone(name),
                outcome: LockOutcome::Held {
                    token: created.unsigned_abs(),
                },
            });
            return Ok(());
        }
        let tries = wait == Some(Duration::ZERO);
        if tries && known.is_some_and(|lock| lock.claim.is_behind()) {
            reported.push(LockEvent::Result {
                request,
                name: Arc::clone(name),
                outcome: LockOutcome::Taken,
            });
            return Ok(());
        }
        let wait = if tries { Some(self.ttl) } else { wait };
        let (prefix, value, ttl) = (&self.prefix, &self.value, self.ttl);
        let lock = self.locks.entry(Arc::clone(name)).or_insert_with(|| {
            let prefix = format!("{prefix}{}/", escaped(name)).into();
            let owner = Owner::Lock(Arc::clone(name));
            Lock {
                claim: Claim::new(now, owner, prefix, value.clone(), ttl, (false, None)),
                waiting: Vec::new(),
            }
        });
        lock.waiting.push(Waiting {
            request,
            until: wait.map(|wait| now + wait),
            tries,
        });
        lock.claim.want(true);
        Ok(())
    }

    /// The host releases a lock, or no longer waits for it.
    ///
    /// # Errors
    /// [`LockRefusal::NotHeld`]; nothing has changed then.
    pub(super) fn release(
        &mut self,
        name: &Arc<str>,
        reported: &mut Vec<LockEvent>,
    ) -> Result<(), LockRefusal> {
        let lock = self
            .locks
            .get_mut(name)
            .filter(|lock| lock.claim.is_wanted());
        let Some(lock) = lock else {
            return Err(LockRefusal::NotHeld(Arc::clone(name)));
        };
        lock.release_claim(name, reported);
        Ok(())
    }

    /// The host leaves: releases all locks.
    pub(super) fn release_all(&mut self, reported: &mut Vec<LockEvent>) {
        for (name, lock) in &mut self.locks {
            lock.release_claim(name, reported);
        }
    }

    /// Notices leases that have run out. Must run before any other input is handled.
    pub(super) fn expire(&mut self, now: Time, calls: &mut Calls, reported: &mut Vec<LockEvent>) {
        for (name, lock) in &mut self.locks {
            let outcome = lock.claim.expire(now, calls);
            lock.heed(name, outcome, reported);
        }
    }

    /// Performs the actions that are due.
    pub(super) fn advance(&mut self, now: Time, calls: &mut Calls, reported: &mut Vec<LockEvent>) {
        for (name, lock) in &mut self.locks {
            let is_up = |one: &mut Waiting| one.until.is_some_and(|until| now >= until);
            for Waiting { request, .. } in lock.waiting.extract_if(.., is_up) {
                reported.push(LockEvent::Result {
                    request,
                    name: Arc::clone(name),
                    outcome: LockOutcome::TimedOut,
                });
            }
            lock.settle();
            // A lock that it still held is released, and not lost.
            let _ = lock.claim.advance(now, calls);
        }
        self.locks
            .retain(|_, lock| lock.claim.is_wanted() || !lock.claim.is_over());
    }

    /// Handles the store's answer to a call for a lock.
    pub(super) fn answer(
        &mut self,
        now: Time,
        name: &Arc<str>,
        (call, answer): (Call, Answer),
        (calls, pace): (&mut Calls, &mut Pace),
        reported: &mut Vec<LockEvent>,
    ) {
        if let Some(lock) = self.locks.get_mut(name) {
            let outcome = lock.claim.answer(now, call, answer, calls, pace);
            lock.heed(name, outcome, reported);
        }
    }
}

impl Lock {
    fn release_claim(&mut self, name: &Arc<str>, reported: &mut Vec<LockEvent>) {
        for Waiting { request, .. } in self.waiting.drain(..) {
            reported.push(LockEvent::Result {
                request,
                name: Arc::clone(name),
                outcome: LockOutcome::Cancelled,
            });
        }
        self.claim.want(false);
    }

    /// Drops the claim when no call holds the lock or waits for it.
    fn settle(&mut self) {
        if self.waiting.is_empty() && self.claim.first().is_none() {
            self.claim.want(false);
        }
    }

    fn heed(&mut self, name: &Arc<str>, outcome: Option<Outcome>, reported: &mut Vec<LockEvent>) {
        let answered = |request, outcome| LockEvent::Result {
            request,
            name: Arc::clone(name),
            outcome,
        };
        match outcome {
            Some(Outcome::First(created)) => {
                let token = created.unsigned_abs();
                let held = LockOutcome::Held { token };
                let waiting = self.waiting.drain(..);
                reported.extend(waiting.map(|one| answered(one.request, held)));
            }
            Some(Outcome::Behind) => {
                let tries = self.waiting.extract_if(.., |one| one.tries);
                reported.extend(tries.map(|one| answered(one.request, LockOutcome::Taken)));
            }
            Some(Outcome::Lost(created)) => reported.push(LockEvent::Lost {
                name: Arc::clone(name),
                token: created.unsigned_abs(),
            }),
            Some(Outcome::Leased(_)) | None => {}
        }
        self.settle();
    }
}

/// Escapes a lock's name so that no slash in it ends a prefix: no key of the lock
/// "a/b" begins like those of the lock "a".
fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}
