//! Errors of locks, and of the text that a leader proclaims.

use thiserror::Error;

use super::{Code, Coded, NOT_INITIALIZED};
use crate::quoted::Quoted;

/// Why a room did not accept the text that its node proclaims. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProclaimError {
    /// The text is too long.
    #[error("value has {len} bytes; at most {max} are allowed")]
    TooLong {
        /// The length given, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// The room's election strategy does not support this.
    #[error("the election strategy {strategy} has nothing that a leader proclaims; etcd has")]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// A bug in the library.
    #[error("the value could not be proclaimed: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for ProclaimError {
    fn code(&self) -> Code {
        match self {
            Self::TooLong { .. } => Code::InvalidArgument,
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

/// Why a room neither acquires nor releases a lock. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockError {
    /// No lock has this name.
    #[error(
        "name {} {fault}; give 1 to {max} bytes without control characters",
        Quoted(name)
    )]
    Name {
        /// The name given.
        name: String,
        /// Its fault.
        fault: &'static str,
        /// The longest name allowed, in bytes.
        max: usize,
    },
    /// This node neither holds nor waits for the lock.
    #[error(
        "this member neither holds nor waits for the lock {}: it never asked for it, has released it, or its lease has ended",
        Quoted(name)
    )]
    NotHeld {
        /// The lock.
        name: String,
    },
    /// This node holds or waits for the maximum number of locks.
    #[error(
        "this member holds or waits for {limit} locks already, which is the limit; release one first"
    )]
    TooMany {
        /// The maximum.
        limit: usize,
    },
    /// The room's election strategy has no locks.
    #[error("the election strategy {strategy} has no locks; etcd has")]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// A bug in the library.
    #[error("the lock could not be asked for: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for LockError {
    fn code(&self) -> Code {
        match self {
            Self::Name { .. } => Code::InvalidArgument,
            Self::NotHeld { .. } => Code::Rejected,
            Self::TooMany { .. } => Code::MaxConnectionsReached,
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}
