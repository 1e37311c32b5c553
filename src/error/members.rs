//! Errors of admitting, removing and restricting members.

use thiserror::Error;

use super::{Code, Coded, NOT_INITIALIZED};
use crate::core::id::PeerId;
use crate::quoted::Quoted;

/// Why a room refused to remove a peer. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KickError {
    /// The peer is this node itself.
    #[error("the peer {} is this node itself; to leave the room, close it", Quoted(id.as_str()))]
    Myself {
        /// The id given.
        id: PeerId,
    },
    /// The reason for the peer is too long.
    #[error("length is {len}; a peer that is removed or rejected can be sent at most {max} bytes")]
    ReasonTooLong {
        /// The length given, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// This node does not lead.
    #[error("this node is not the leader; only the leader may remove members")]
    NotLeader,
    /// No peer with this id is in the room.
    #[error("the peer {} is neither connected nor reconnecting", Quoted(id.as_str()))]
    PeerNotFound {
        /// The id given.
        id: PeerId,
    },
    /// Too many peers are banned already.
    #[error(
        "{limit} peers are banned from this room already, which is the limit; lift a ban, or kick without one"
    )]
    TooMany {
        /// Limit of banned peers.
        limit: usize,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for KickError {
    fn code(&self) -> Code {
        match self {
            Self::Myself { .. } | Self::ReasonTooLong { .. } => Code::InvalidArgument,
            Self::NotLeader => Code::NotLeader,
            Self::PeerNotFound { .. } => Code::PeerNotFound,
            Self::TooMany { .. } => Code::MaxConnectionsReached,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused to lift a ban. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnbanError {
    /// This node does not lead.
    #[error("this node is not the leader; only the leader may lift bans")]
    NotLeader,
    /// No peer with this id is banned.
    #[error("no peer {} is banned from this room", Quoted(id.as_str()))]
    NotBanned {
        /// The id given.
        id: PeerId,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for UnbanError {
    fn code(&self) -> Code {
        match self {
            Self::NotLeader => Code::NotLeader,
            Self::NotBanned { .. } => Code::PeerNotFound,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused a limit of its members. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MaxPeersError {
    /// This node does not lead.
    #[error("this node is not the leader; only the leader may limit the room")]
    NotLeader,
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for MaxPeersError {
    fn code(&self) -> Code {
        match self {
            Self::NotLeader => Code::NotLeader,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused a call about join requests. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JoinError {
    /// The join payload of this node is too long.
    #[error("length is {len}; a join payload has at most {max} bytes")]
    PayloadTooLong {
        /// The length given, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// The reason for the newcomer is too long.
    #[error("length is {len}; a peer that is removed or rejected can be sent at most {max} bytes")]
    ReasonTooLong {
        /// The length given, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// No newcomer waits for this answer.
    #[error(
        "the join request {request} is not open: it was answered, it timed out, or another member leads now"
    )]
    UnknownRequest {
        /// The number given.
        request: u64,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for JoinError {
    fn code(&self) -> Code {
        match self {
            Self::PayloadTooLong { .. } | Self::ReasonTooLong { .. } => Code::InvalidArgument,
            Self::UnknownRequest { .. } => Code::PeerNotFound,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}

/// Why a room refused to change whether this node may lead. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EligibilityError {
    /// The fixed host always leads, and its guests never do.
    #[error(
        "who may lead is fixed in this room (host_mode); open it with host_mode off to change it"
    )]
    FixedHost,
    /// The room's election strategy does not support this.
    #[error(
        "with the election strategy {strategy} the roster names the members that may lead; raft and gossip can change it"
    )]
    NotSupported {
        /// The room's strategy.
        strategy: &'static str,
    },
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
    /// A bug in the library.
    #[error("whether this node may lead could not be changed: {what}")]
    Internal {
        /// The failure.
        what: String,
    },
}

impl Coded for EligibilityError {
    fn code(&self) -> Code {
        match self {
            Self::FixedHost => Code::Rejected,
            Self::NotSupported { .. } => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
            Self::Internal { .. } => Code::InternalError,
        }
    }
}

/// No identity key could be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no identity key could be made: {what}")]
pub struct NoKeyError {
    /// The failure.
    pub what: String,
}

impl Coded for NoKeyError {
    fn code(&self) -> Code {
        Code::InternalError
    }
}

/// The room is not open, or it is shutting down.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{NOT_INITIALIZED}")]
pub struct NotOpen;

impl Coded for NotOpen {
    fn code(&self) -> Code {
        Code::NotInitialized
    }
}
