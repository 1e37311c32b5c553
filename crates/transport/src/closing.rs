//! What the close of a connection carries: ABI codes, and why a dial gave no link.

use bytes::Bytes;
use quinn::{ConnectError, ConnectionError, TransportErrorCode, VarInt};
use rustls::AlertDescription;
use thiserror::Error;

/// Application error codes from here on carry an ABI code: `ADMISSION_CODE_BASE + n` means `-n`.
pub const ADMISSION_CODE_BASE: u32 = 0x100;
/// The largest `n` of a close code. A larger one from a peer carries no ABI code.
const MAX_CLOSE_CODE: u32 = 99;
/// The alert that rustls sends for [`CertificateError::ApplicationVerificationFailure`].
const WRONG_KEY_ALERT: AlertDescription = AlertDescription::AccessDenied;

/// The application error code that carries ABI code `code` to the other end; 0 for a close without an error.
pub fn close_code(code: i32) -> VarInt {
    match code.unsigned_abs() {
        0 => VarInt::from_u32(0),
        n @ 1..=MAX_CLOSE_CODE if code < 0 => VarInt::from_u32(ADMISSION_CODE_BASE + n),
        _ => VarInt::from_u32(ADMISSION_CODE_BASE + abi::CONNECTION_FAILED.unsigned_abs()),
    }
}

/// The ABI code in an application error code, if it carries one.
pub fn code_of_close(code: VarInt) -> Option<i32> {
    let n = u32::try_from(code.into_inner()).ok()?;
    match n.checked_sub(ADMISSION_CODE_BASE)? {
        n @ 1..=MAX_CLOSE_CODE => i32::try_from(n).ok().map(|n| -n),
        _ => None,
    }
}

/// The ABI codes that end a dial or an admission (`docs/entering.md`).
pub mod abi {
    /// No link, for any other reason.
    pub const CONNECTION_FAILED: i32 = -4;
    /// The other end sent something that cannot be decoded.
    pub const SERIALIZATION_ERROR: i32 = -9;
    /// The other end is in another room.
    pub const SESSION_MISMATCH: i32 = -10;
    /// No common protocol version.
    pub const VERSION_MISMATCH: i32 = -12;
    /// The other end has as many links or members as it may have.
    pub const MAX_CONNECTIONS_REACHED: i32 = -13;
    /// The other end does not know the secret.
    pub const AUTHENTICATION_FAILED: i32 = -17;
    /// No answer in time.
    pub const TIMEOUT: i32 = -19;
    /// The other end was asked too often.
    pub const RATE_LIMITED: i32 = -22;
}

/// Reason why a dial gave no usable connection, or why a connection ended before the admission was over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DialError {
    /// No common protocol version.
    #[error("the other end speaks another protocol version")]
    VersionMismatch,
    /// The other end accepts no link from here now.
    #[error("the other end refused the link")]
    Refused,
    /// A process answered, but not the holder of the expected key.
    #[error("the other end does not hold the expected key")]
    WrongKey,
    /// No answer.
    #[error("no answer in time")]
    TimedOut,
    /// The other end closed the link with an ABI code.
    #[error("the other end closed the link with code {code}")]
    Closed {
        /// The ABI code, negative.
        code: i32,
        /// Reason bytes beside the code.
        reason: Bytes,
    },
    /// Anything else.
    #[error("connection failed: {0}")]
    Failed(String),
}

impl DialError {
    /// The ABI code that the dialling host gets.
    pub fn code(&self) -> i32 {
        match self {
            Self::VersionMismatch => abi::VERSION_MISMATCH,
            Self::TimedOut => abi::TIMEOUT,
            Self::Closed { code, .. } => *code,
            Self::Refused | Self::WrongKey | Self::Failed(_) => abi::CONNECTION_FAILED,
        }
    }
}

impl From<&ConnectionError> for DialError {
    fn from(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::VersionMismatch => Self::VersionMismatch,
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::ConnectionClosed(close) => match close.error_code {
                code if code == alert(AlertDescription::NoApplicationProtocol) => {
                    Self::VersionMismatch
                }
                TransportErrorCode::CONNECTION_REFUSED => Self::Refused,
                _ => Self::Failed(error.to_string()),
            },
            ConnectionError::TransportError(local) => match local.code {
                code if code == alert(AlertDescription::NoApplicationProtocol) => {
                    Self::VersionMismatch
                }
                code if code == alert(WRONG_KEY_ALERT) => Self::WrongKey,
                _ => Self::Failed(error.to_string()),
            },
            ConnectionError::ApplicationClosed(close) => match code_of_close(close.error_code) {
                Some(code) => Self::Closed {
                    code,
                    reason: close.reason.clone(),
                },
                None => Self::Failed(error.to_string()),
            },
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<ConnectionError> for DialError {
    fn from(error: ConnectionError) -> Self {
        Self::from(&error)
    }
}

impl From<ConnectError> for DialError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::UnsupportedVersion => Self::VersionMismatch,
            error => Self::Failed(error.to_string()),
        }
    }
}

fn alert(description: AlertDescription) -> TransportErrorCode {
    TransportErrorCode::crypto(u8::from(description))
}

#[cfg(test)]
mod tests;
