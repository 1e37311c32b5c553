//! Requests to an external store that elects in a strategy's place, and its answers.
//!
//! The store keeps keys in the order of their creation, with leases and watches: etcd. The strategy issues requests
//! ([`Extra::Engine`](super::Extra::Engine)), the driver carries them, and answers come back through
//! [`StoreClient`](super::extra::StoreClient), each with the number of its call. Every request gets exactly one answer,
//! in any order, except [`Request::Watch`], which gets any number of them, and [`Request::Unwatch`], which gets none.
//! The store may have carried out a request that failed.

use std::fmt;
use std::sync::Arc;

use crate::time::Duration;

/// Number of a strategy's call.
pub type Call = u64;
/// Id of a lease.
pub type Lease = i64;
/// Number of a change of the store; each change has a larger one.
pub type Revision = i64;

/// A request to the store. Keys are text, values bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A lease of this length, in whole seconds. Answered by [`Answer::Granted`].
    Grant {
        /// Its time to live; the store may grant more.
        ttl: Duration,
    },
    /// Renews a lease. At most one of these is open for a lease. Answered by [`Answer::Alive`].
    KeepAlive {
        /// The lease.
        lease: Lease,
    },
    /// Ends a lease and deletes its keys. Answered by [`Answer::Done`], also where there is no such lease.
    Revoke {
        /// The lease.
        lease: Lease,
    },
    /// Writes a key unless it exists. Answered by [`Answer::Entry`] with the key's present entry.
    Create {
        /// The key.
        key: Arc<str>,
        /// Its value.
        value: Vec<u8>,
        /// The lease whose end deletes the key.
        lease: Lease,
    },
    /// Writes a key that was created at this revision. Answered by [`Answer::Entry`], with `None` if it was not.
    Replace {
        /// The key.
        key: Arc<str>,
        /// The revision at which it was created.
        created: Revision,
        /// Its new value.
        value: Vec<u8>,
        /// The lease whose end deletes the key.
        lease: Lease,
    },
    /// One key. Answered by [`Answer::Entry`].
    Get {
        /// The key.
        key: Arc<str>,
    },
    /// The key under a prefix that was created first. Answered by [`Answer::Entry`].
    First {
        /// The prefix of the keys.
        prefix: Arc<str>,
        /// The revision at which to read the store; `None` is now.
        at: Option<Revision>,
    },
    /// The last key under a prefix that was created before a revision. Answered by [`Answer::Entry`].
    LastBefore {
        /// The prefix of the keys.
        prefix: Arc<str>,
        /// The revision.
        created: Revision,
    },
    /// Every change from a revision on, in order. Answered by [`Answer::Changes`] as they happen, and by
    /// [`Answer::Failed`] when the watch has ended.
    Watch {
        /// The watched keys.
        range: Range,
        /// The first revision whose changes are reported.
        from: Revision,
    },
    /// Ends a watch. Answers that are on their way may still arrive.
    Unwatch {
        /// The call that began it.
        call: Call,
    },
}

/// The keys of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    /// One key.
    Key(Arc<str>),
    /// Every key with this prefix.
    Prefix(Arc<str>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision at which it was created. A key that was deleted and written again has a new one.
    pub created: Revision,
    /// The revision at which it was written last.
    pub modified: Revision,
}

/// One change of a watched key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was written.
    Put(Entry),
    /// It was deleted, or its lease ended.
    Deleted {
        /// The key.
        key: Arc<str>,
        /// The revision of the deletion.
        revision: Revision,
    },
}

/// An answer of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A lease.
    Granted {
        /// Its id.
        lease: Lease,
        /// Its length; at least the length asked for.
        ttl: Duration,
    },
    /// The remaining time of the lease, counted from when the store read the request; zero if there is no such lease.
    Alive {
        /// Its length.
        ttl: Duration,
    },
    /// The store carried out the request.
    Done,
    /// The entry that was found, or is there now.
    Entry {
        /// The key; `None` where there is none.
        entry: Option<Entry>,
        /// The revision of the store.
        revision: Revision,
    },
    /// Changes of the watched keys.
    Changes(Vec<Change>),
    /// The request failed, or the watch has ended. The store may have carried out the request.
    Failed(Failure),
}

/// A failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its meaning to the strategy.
    pub kind: FailureKind,
    /// Text for people: the attempt, the endpoint, and the store's own message.
    pub text: String,
}

/// Meaning of a failure to a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No answer in time, or no connection: a retry may succeed.
    Unreachable,
    /// The store refuses: a user, a password or a permission is missing.
    Denied,
    /// The lease has ended.
    LeaseGone,
    /// The history was compacted beyond the revision that was asked for.
    Compacted,
    /// Any other error of the store.
    Other,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
