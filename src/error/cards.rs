//! Errors of a room's card.

use thiserror::Error;

use super::{Code, Coded};

/// Why a room does not show a card. Nothing has changed.
#[derive(Debug, Error)]
pub enum ShowCardError {
    /// The room's links lead over relays alone.
    #[error(
        "paths is 1 (relayed), which hides this member's address, and a card shows it; open the room with paths 0 (all)"
    )]
    Relayed,
    /// Browsers find rooms by IPv4.
    #[error(
        "bind_address is an IPv6 address, and browsers find rooms by IPv4; bind an IPv4 address, or NULL for all"
    )]
    NoIpv4,
    /// The port cannot be shared.
    #[error(
        "the UDP port {port} could not be bound ({source}); end the program that has it for itself, or give the card and all browsers another port"
    )]
    Socket {
        /// The port of the card.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Coded for ShowCardError {
    fn code(&self) -> Code {
        match self {
            Self::Relayed | Self::NoIpv4 => Code::NotSupported,
            Self::Socket { .. } => Code::ConnectionFailed,
        }
    }
}
