//! Errors of leadership transfers and of election settings.

use thiserror::Error;

use super::{Code, Coded, NOT_INITIALIZED};
use crate::core::id::PeerId;
use crate::quoted::Quoted;

/// Why a leader did not transfer its leadership. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransferError {
    /// This node does not lead.
    #[error("this node is not the leader; only the leader can transfer its leadership")]
    NotLeader,
    /// The peer is neither this node nor connected.
    #[error(
        "the peer {} is neither this node nor connected; give the id of a connected peer", Quoted(id.as_str())
    )]
    PeerNotFound {
        /// The id given.
        id: PeerId,
    },
    /// No connected peer may take over.
    #[error(
        "no connected peer may lead, so none could take over; wait for one to join, or make a member eligible"
    )]
    NoSuccessor,
    /// The peer may not lead.
    #[error("the peer {} may not lead: {reason}; choose another", Quoted(id.as_str()))]
    Rejected {
        /// The id given.
        id: PeerId,
        /// The rule that forbids it.
        reason: &'static str,
    },
    /// The fixed host always leads, and its guests never do.
    #[error(
        "who leads is fixed in this room (host_mode); open it with host_mode off to hand leadership over"
    )]
    FixedHost,
    /// The room's election strategy does not support this.
    #[error(
        "the election strategy {strategy} does not let a leader choose its successor; raft does"
    )]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// A bug in the library.
    #[error("leadership could not be handed over: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for TransferError {
    fn code(&self) -> Code {
        match self {
            Self::NotLeader => Code::NotLeader,
            Self::PeerNotFound { .. } | Self::NoSuccessor => Code::PeerNotFound,
            Self::Rejected { .. } | Self::FixedHost => Code::Rejected,
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

/// Why a room did not change this node's election priority. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PriorityError {
    /// The room's election strategy has no priorities.
    #[error("the election strategy {strategy} has no priorities; raft has")]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// A bug in the library.
    #[error("the election priority could not be changed: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for PriorityError {
    fn code(&self) -> Code {
        match self {
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}
