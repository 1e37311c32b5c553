//! Errors of the room's state.

use thiserror::Error;

use super::{Code, Coded};
use crate::state::entry::InvalidRequest;
use crate::state::replica;

/// The room keeps no state for its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this room has no state; open it with MmnOptions.state")]
pub struct NoStateError;

impl Coded for NoStateError {
    fn code(&self) -> Code {
        Code::NotSupported
    }
}

/// Why a room did not take an action or a property set. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The room has no state.
    #[error(transparent)]
    NoState(#[from] NoStateError),
    /// The message type is one of the library's own.
    #[error(
        "msg_type {msg_type} (0x{msg_type:04X}) is below 256 (0x0100), which the library keeps for itself; choose 256 to 65535"
    )]
    TypeReserved {
        /// The type given.
        msg_type: u16,
    },
    /// The request breaks a limit, or too many have no result.
    #[error("{0}")]
    Refused(#[from] replica::SubmitError),
}

impl Coded for SubmitError {
    fn code(&self) -> Code {
        use InvalidRequest::{
            Action, Changes, ChangesBytes, ControlCharacter, KeyLength, SameKey, Value,
        };
        match self {
            Self::NoState(error) => error.code(),
            Self::TypeReserved { .. } => Code::InvalidArgument,
            Self::Refused(replica::SubmitError::Full { .. }) => Code::SendQueueFull,
            Self::Refused(replica::SubmitError::Invalid(invalid)) => match invalid {
                KeyLength { .. } | ControlCharacter { .. } | SameKey(_) | Changes(0) => {
                    Code::InvalidArgument
                }
                Action { .. } | Value { .. } | Changes(_) | ChangesBytes(_) => {
                    Code::MessageTooLarge
                }
            },
        }
    }
}

/// Why a room did not take a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// The room has no state.
    #[error(transparent)]
    NoState(#[from] NoStateError),
    /// No request has this number any more, the snapshot is too long, or it is of another history.
    #[error("{0}")]
    Refused(#[from] replica::SnapshotError),
}

impl Coded for SnapshotError {
    fn code(&self) -> Code {
        match self {
            Self::NoState(error) => error.code(),
            Self::Refused(replica::SnapshotError::UnknownRequest) => Code::PeerNotFound,
            Self::Refused(replica::SnapshotError::TooLong { .. }) => Code::MessageTooLarge,
            Self::Refused(replica::SnapshotError::HistoryChanged) => Code::Superseded,
        }
    }
}
