//! What a strategy asks of an external store that decides in its place, and what that answers.
//!
//! The store is one of keys in the order of their creation, with leases and watches: etcd. The strategy issues requests
//! ([`Extra::Engine`](super::Extra::Engine)), the driver carries them, and answers come back through
//! [`StoreClient`](super::extra::StoreClient), each with the number of its call. Every request gets exactly one answer, in any
//! order, but for [`Request::Watch`], which gets any number of them, and for [`Request::Unwatch`], which gets none. A request
//! that failed may have been carried out.

use std::fmt;
use std::sync::Arc;

use crate::time::Duration;

/// Numbers the calls of a strategy.
pub type Call = u64;
/// Names a lease.
pub type Lease = i64;
/// Numbers the changes of the store: each has a larger one.
pub type Revision = i64;

/// What a strategy asks for. Keys are text, values bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A lease of this length, in whole seconds. Answered by [`Answer::Granted`].
    Grant {
        /// Its time to live; the store may grant more.
        ttl: Duration,
    },
    /// Another length for a lease. At most one of these is open for a lease. Answered by [`Answer::Alive`].
    KeepAlive {
        /// Which.
        lease: Lease,
    },
    /// Ends a lease and deletes its keys. Answered by [`Answer::Done`], also where there is no such lease.
    Revoke {
        /// Which.
        lease: Lease,
    },
    /// Writes a key unless it exists. Answered by [`Answer::Entry`] with what stands there now.
    Create {
        /// The key.
        key: Arc<str>,
        /// Its value.
        value: Vec<u8>,
        /// Whose end deletes it.
        lease: Lease,
    },
    /// Writes a key that was created at this revision. Answered by [`Answer::Entry`], with none where it was not.
    Replace {
        /// The key.
        key: Arc<str>,
        /// The revision at which it was created.
        created: Revision,
        /// Its new value.
        value: Vec<u8>,
        /// Whose end deletes it.
        lease: Lease,
    },
    /// One key. Answered by [`Answer::Entry`].
    Get {
        /// The key.
        key: Arc<str>,
    },
    /// The key under a prefix that was created first. Answered by [`Answer::Entry`].
    First {
        /// What its key begins with.
        prefix: Arc<str>,
        /// As the store was at this revision; `None` is now.
        at: Option<Revision>,
    },
    /// The key under a prefix that was created last, of those created before a revision. Answered by [`Answer::Entry`].
    LastBefore {
        /// What its key begins with.
        prefix: Arc<str>,
        /// The revision.
        created: Revision,
    },
    /// Every change from a revision on, in order. Answered by [`Answer::Changes`] as they happen, and by
    /// [`Answer::Failed`] when the watch has ended.
    Watch {
        /// What is watched.
        range: Range,
        /// The first revision whose changes are told.
        from: Revision,
    },
    /// Ends a watch. Answers to it that are on their way may still come.
    Unwatch {
        /// The call that began it.
        call: Call,
    },
}

/// What a watch watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    /// One key.
    Key(Arc<str>),
    /// Every key that begins so.
    Prefix(Arc<str>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision at which it was created. A key that was deleted and written again has another.
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
        /// When.
        revision: Revision,
    },
}

/// What the store answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A lease.
    Granted {
        /// Its name.
        lease: Lease,
        /// Its length; at least what was asked for.
        ttl: Duration,
    },
    /// How long the lease lives from when the store read the request; zero where there is no such lease.
    Alive {
        /// Its length.
        ttl: Duration,
    },
    /// It is done.
    Done,
    /// What was found, or stands there now.
    Entry {
        /// The key; `None` where there is none.
        entry: Option<Entry>,
        /// The revision of the store.
        revision: Revision,
    },
    /// What happened to what is watched.
    Changes(Vec<Change>),
    /// The request failed, or the watch has ended. The request may have been carried out.
    Failed(Failure),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What it means to the strategy.
    pub kind: FailureKind,
    /// What went wrong, for people: what was tried, at which endpoint, and the store's own words.
    pub text: String,
}

/// What a failure means to a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No answer in time, or no connection: the same again may succeed.
    Unreachable,
    /// The store refuses: a user, a password or a permission is missing.
    Denied,
    /// The lease has ended.
    LeaseGone,
    /// The history was compacted beyond the revision that was asked for.
    Compacted,
    /// Anything else that the store says.
    Other,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
