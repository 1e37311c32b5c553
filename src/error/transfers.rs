//! Errors of transfers of bytes.

use thiserror::Error;

use super::{Code, Coded, NOT_INITIALIZED};
use crate::core::id::PeerId;
use crate::quoted::Quoted;

/// Why a room refused a call about a transfer. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataTransferError {
    /// The transfer, or its tag, is too long.
    #[error("{what} is {len}; at most {max} bytes are allowed")]
    TooLong {
        /// The argument.
        what: &'static str,
        /// The length given, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// The peer is this node itself.
    #[error("the peer {} is this node itself; a transfer goes to another member", Quoted(id.as_str()))]
    Myself {
        /// The id given.
        id: PeerId,
    },
    /// No peer with this id is linked or reconnecting.
    #[error("the peer {} is neither connected nor reconnecting", Quoted(id.as_str()))]
    PeerNotFound {
        /// The id given.
        id: PeerId,
    },
    /// The peer's library knows no transfers.
    #[error(
        "the peer {} runs a library without transfers; send it messages", Quoted(id.as_str())
    )]
    NotSupported {
        /// The id given.
        id: PeerId,
    },
    /// Too many transfers to the peer have not ended.
    #[error(
        "{max} transfers to {} have not ended, which is the limit; wait for a result, or cancel one",
        Quoted(id.as_str())
    )]
    TooMany {
        /// The id given.
        id: PeerId,
        /// The limit.
        max: usize,
    },
    /// The host has not taken the events of earlier transfers.
    #[error(
        "{max} events of earlier transfers with {} wait for this host, which is the limit; take events first",
        Quoted(id.as_str())
    )]
    Unread {
        /// The id given.
        id: PeerId,
        /// The limit.
        max: usize,
    },
    /// All transfers together would keep too many bytes.
    #[error(
        "size is {len}, and transfers that have not ended keep {kept} bytes; together they may keep {max}: wait for a result, or cancel one"
    )]
    Full {
        /// The length given, in bytes.
        len: usize,
        /// Bytes that are kept.
        kept: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// The peer has no open offer with this number.
    #[error(
        "the transfer {id} waits for no answer: it was answered, it has ended, or the peer never offered it"
    )]
    NotOffered {
        /// The number given.
        id: u64,
    },
    /// No transfer with the peer has this number.
    #[error("the transfer {id} is not open: it has ended, or never began")]
    NotOpen {
        /// The number given.
        id: u64,
    },
    /// The buffer does not hold the transfer.
    #[error(
        "capacity is {capacity}, but the transfer has {size} bytes; give a longer buffer, or take it in parts"
    )]
    BufferTooShort {
        /// The length given, in bytes.
        capacity: u64,
        /// The length of the transfer, in bytes.
        size: u64,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for DataTransferError {
    fn code(&self) -> Code {
        match self {
            Self::TooLong { .. } => Code::MessageTooLarge,
            Self::Myself { .. } | Self::BufferTooShort { .. } => Code::InvalidArgument,
            Self::PeerNotFound { .. } | Self::NotOffered { .. } | Self::NotOpen { .. } => {
                Code::PeerNotFound
            }
            Self::NotSupported { .. } => Code::NotSupported,
            Self::TooMany { .. } | Self::Unread { .. } | Self::Full { .. } => Code::SendQueueFull,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}
