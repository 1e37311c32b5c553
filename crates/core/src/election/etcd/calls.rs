//! The open calls of a node to its store.

use std::collections::{BTreeMap, VecDeque};

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::election::engine::{Answer, Call, Failure, FailureKind, Request};
use crate::time::{Duration, Time};

/// The shortest pause before a failed call is made again; the longest is twice that.
const RETRY: Duration = Duration::from_millis(250);

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The claim to lead.
    Leadership,
    /// The claim to a lock.
    Lock(Arc<str>),
    /// The observer.
    Observer,
}

/// When failed calls are made again.
#[derive(Debug)]
pub(super) struct Pace(ChaCha8Rng);

impl Pace {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// When to try again what has just failed: not all members at once.
    pub(super) fn later(&mut self, now: Time) -> Time {
        let micros = u64::try_from(RETRY.as_micros()).unwrap_or(u64::MAX);
        now + RETRY + Duration::from_micros(self.0.random_range(0..=micros))
    }
}

/// Which calls are open, and for whom.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: Call,
    /// Not handed to the driver yet.
    queue: VecDeque<(Call, Request)>,
    open: BTreeMap<Call, Owner>,
    /// How calls failed last, while they fail.
    failing: Option<FailureKind>,
}

impl Calls {
    /// Asks for something; the answer goes to `owner`.
    pub(super) fn ask(&mut self, owner: &Owner, request: Request) -> Call {
        self.last += 1;
        self.open.insert(self.last, owner.clone());
        self.queue.push_back((self.last, request));
        self.last
    }

    /// Ends a watch. No answer to it is heard from now on.
    pub(super) fn unwatch(&mut self, call: Call) {
        if self.open.remove(&call).is_some() {
            self.last += 1;
            self.queue.push_back((self.last, Request::Unwatch { call }));
        }
    }

    /// Who asked for this; `None` for an answer that nobody waits for. A failure ends a watch, too.
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

    /// Says in the log when calls begin to fail, fail otherwise, or succeed again.
    fn note(&mut self, answer: &Answer) {
        match answer {
            // These are the store's ordinary answers to what has changed meanwhile.
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
