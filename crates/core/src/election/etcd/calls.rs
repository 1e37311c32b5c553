//! A node's open calls to its store.

use std::collections::{BTreeMap, VecDeque};

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::election::engine::{Answer, Call, Failure, FailureKind, Request};
use crate::time::{Duration, Time};

/// The shortest pause before a failed call is repeated; the longest is twice that.
const RETRY: Duration = Duration::from_millis(250);

/// The part of the strategy that made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The claim to lead.
    Leadership,
    /// The claim to a lock.
    Lock(Arc<str>),
    /// The observer.
    Observer,
}

/// The pauses before failed calls are repeated.
#[derive(Debug)]
pub(super) struct Pace(ChaCha8Rng);

impl Pace {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A random time for the next attempt of a failed call, so that not all members retry at once.
    pub(super) fn later(&mut self, now: Time) -> Time {
        let micros = u64::try_from(RETRY.as_micros()).unwrap_or(u64::MAX);
        now + RETRY + Duration::from_micros(self.0.random_range(0..=micros))
    }
}

/// The open calls and their owners.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: Call,
    /// Requests that the driver has not taken yet.
    queue: VecDeque<(Call, Request)>,
    open: BTreeMap<Call, Owner>,
    /// The kind of the last failure, while calls fail.
    failing: Option<FailureKind>,
}

impl Calls {
    /// Queues a request; the answer goes to `owner`.
    pub(super) fn ask(&mut self, owner: &Owner, request: Request) -> Call {
        self.last += 1;
        self.open.insert(self.last, owner.clone());
        self.queue.push_back((self.last, request));
        self.last
    }

    /// Ends a watch; its later answers are dropped.
    pub(super) fn unwatch(&mut self, call: Call) {
        if self.open.remove(&call).is_some() {
            self.last += 1;
            self.queue.push_back((self.last, Request::Unwatch { call }));
        }
    }

    /// The owner of the answered call; `None` if no part waits for the answer. A failure ends a
    /// watch, too.
    pub(super) fn answered(&mut self, call: Call, answer: &Answer) -> Option<Owner> {
        self.note(answer);
        match answer {
            Answer::Changes(_) => self.open.get(&call).cloned(),
            _ => self.open.remove(&call),
        }
    }

    /// The next request for the driver.
    pub(super) fn poll(&mut self) -> Option<(Call, Request)> {
        self.queue.pop_front()
    }

    /// Logs when calls begin to fail, fail in another way, or succeed again.
    fn note(&mut self, answer: &Answer) {
        match answer {
            // The store's ordinary answers to changes since the request.
            Answer::Failed(Failure {
                kind: FailureKind::Compacted | FailureKind::LeaseGone,
                ..
            }) => {}
            Answer::Failed(Failure { kind, text }) => {
                if self.failing != Some(*kind) {
                    tracing::warn!("etcd: {text}");
                    self.failing = Some(*kind);
                }
            }
            _ => {
                if self.failing.take().is_some() {
                    tracing::info!("etcd answers again");
                }
            }
        }
    }
}
