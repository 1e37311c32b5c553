//! Why the relay ends a link: the code and the sentence that the member receives.

use std::sync::{Mutex, PoisonError};

use quinn::Connection;
use room_transport::closing::abi::{
    AUTHENTICATION_FAILED, MAX_CONNECTIONS_REACHED, RATE_LIMITED, VERSION_MISMATCH,
};
use room_transport::closing::close_code;
use tokio::sync::Notify;

use crate::figures::Refusal;

/// Reason why the relay ends a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A limit or a fault.
    Refused(Refusal),
    /// The address failed too often, so a wrong token is not answered as one.
    TooManyFailures,
    /// A newer link with the same key.
    Replaced,
    /// Another key with the same virtual id is present.
    SameId,
    /// The member has closed its stream.
    Left,
}

impl End {
    fn code_and_sentence(self) -> (i32, &'static str) {
        match self {
            Self::Refused(reason) => match reason {
                Refusal::Handshakes => (RATE_LIMITED, "too many attempts from this address"),
                Refusal::Network => (
                    MAX_CONNECTIONS_REACHED,
                    "the relay has too many links of this address",
                ),
                Refusal::Relay => (MAX_CONNECTIONS_REACHED, "the relay is full"),
                Refusal::Locator => (
                    MAX_CONNECTIONS_REACHED,
                    "the relay has too many members of this room",
                ),
                Refusal::Yielded => (
                    MAX_CONNECTIONS_REACHED,
                    "this link made way for one from another address",
                ),
                Refusal::Late => (RATE_LIMITED, "nothing entered a room in time"),
                Refusal::Malformed => (VERSION_MISMATCH, "a frame cannot be decoded"),
                Refusal::Token => (AUTHENTICATION_FAILED, "the relay asks for its token"),
                Refusal::Quota => (
                    MAX_CONNECTIONS_REACHED,
                    "the relay's quota is used up for now",
                ),
            },
            Self::TooManyFailures => (RATE_LIMITED, "too many failed attempts"),
            Self::SameId => (MAX_CONNECTIONS_REACHED, "another key has the same short id"),
            Self::Replaced => (0, "a newer link of this key replaces it"),
            Self::Left => (0, "the member has left"),
        }
    }

    /// Closes `connection`.
    pub(crate) fn close(self, connection: &Connection) {
        let (code, sentence) = self.code_and_sentence();
        connection.close(close_code(code), sentence.as_bytes());
    }
}

/// The end of one link, as others decide it.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    end: Mutex<Option<End>>,
    decided: Notify,
}

impl Ending {
    /// The link ends. The first reason counts.
    pub(crate) fn decide(&self, end: End) {
        self.end().get_or_insert(end);
        self.decided.notify_one();
    }

    /// Waits until the link has to end. For one task.
    pub(crate) async fn wait(&self) -> End {
        loop {
            if let Some(end) = *self.end() {
                return end;
            }
            self.decided.notified().await;
        }
    }

    fn end(&self) -> std::sync::MutexGuard<'_, Option<End>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
