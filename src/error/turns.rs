//! Why TURN servers are not taken.

use thiserror::Error;

use super::{Code, Coded, NOT_INITIALIZED};

/// Why a room refused other TURN servers. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetTurnError {
    /// The members are servers.
    #[error(
        "a room of strategy 3 (etcd) is one of servers, which reach each other's addresses; it uses no TURN server"
    )]
    WithEtcd,
    /// The room is shutting down.
    #[error("{NOT_INITIALIZED}")]
    NotInitialized,
}

impl Coded for SetTurnError {
    fn code(&self) -> Code {
        match self {
            Self::WithEtcd => Code::NotSupported,
            Self::NotInitialized => Code::NotInitialized,
        }
    }
}
