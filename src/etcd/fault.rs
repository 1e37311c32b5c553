//! Maps an error of etcd, or of the connection to it, to its meaning.

use std::error::Error as _;

use etcd_client::Error;
use tonic::{Code, Status};

use crate::core::election::engine::FailureKind;

/// Limit of a server's message, in bytes, as passed on.
const MAX_MESSAGE_BYTES: usize = 300;

/// Why one attempt at one endpoint failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FailureKind,
    /// The message of etcd or of the system.
    pub(super) words: String,
    /// Whether a new login may help.
    pub(super) login_stale: bool,
}

impl Fault {
    pub(super) fn new(kind: FailureKind, words: impl Into<String>) -> Self {
        let mut words: String = words.into();
        let end =
            (0..=MAX_MESSAGE_BYTES.min(words.len())).rfind(|end| words.is_char_boundary(*end));
        words.truncate(end.unwrap_or(0));
        Self {
            kind,
            words,
            login_stale: false,
        }
    }

    pub(super) fn unreachable(words: impl Into<String>) -> Self {
        Self::new(FailureKind::Unreachable, words)
    }

    /// A watch that the server did not begin or has ended, with its reason. etcd reports that as text, other failures
    /// as a code.
    pub(super) fn cancelled(compacted: i64, reason: &str) -> Self {
        if compacted > 0 {
            let words = format!("the history before revision {compacted} was compacted");
            return Self::new(FailureKind::Compacted, words);
        }
        if reason.contains("permission denied") || names_login(reason) {
            // A server that has restarted denies every watch with an old login.
            return Self {
                login_stale: true,
                ..Self::new(FailureKind::Denied, reason)
            };
        }
        Self::unreachable(format!("the server has ended the watch: {reason}"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::GRpcStatus(status) => Self {
                login_stale: login_stale(status.code(), status.message()),
                ..Self::new(kind(status.code(), status.message()), words(&status))
            },
            // A stream that ended during a write to it.
            Error::WatchError(_) | Error::LeaseKeepAliveError(_) | Error::TransportError(_) => {
                Self::unreachable(error.to_string())
            }
            error => Self::new(FailureKind::Other, error.to_string()),
        }
    }
}

/// The kind of a status. Messages of etcd begin with its name; others come from the connection.
fn kind(code: Code, message: &str) -> FailureKind {
    let by_etcd = message.starts_with("etcdserver:");
    match code {
        Code::PermissionDenied | Code::Unauthenticated => FailureKind::Denied,
        Code::InvalidArgument | Code::FailedPrecondition
            if login_stale(code, message) || message.contains("authentication failed") =>
        {
            FailureKind::Denied
        }
        Code::NotFound if message.contains("lease not found") => FailureKind::LeaseGone,
        Code::OutOfRange if message.contains("compacted") => FailureKind::Compacted,
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => FailureKind::Unreachable,
        Code::ResourceExhausted if message.contains("too many requests") => {
            FailureKind::Unreachable
        }
        Code::Unknown | Code::Internal if !by_etcd => FailureKind::Unreachable,
        _ => FailureKind::Other,
    }
}

/// Whether the server no longer knows the login of the request: it has restarted, users have changed, or the login is old.
fn login_stale(code: Code, message: &str) -> bool {
    code == Code::Unauthenticated || names_login(message)
}

fn names_login(message: &str) -> bool {
    [
        "invalid auth token",
        "revision of auth store is old",
        "user name is empty",
    ]
    .iter()
    .any(|complaint| message.contains(complaint))
}

/// Whether the cluster has no users.
pub(super) fn without_users(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.message().contains("authentication is not enabled"))
}

/// The message of a status, with its causes.
fn words(status: &Status) -> String {
    let mut words = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        cause = error.source();
    }
    words
}
