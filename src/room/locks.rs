//! Calls for the etcd strategy's further services: the leader's proclaimed text, and locks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Room;
use crate::core::election::{ElectionError, LockRefusal};
use crate::core::node::{Command, CommandError};
use crate::error::{LockError, ProclaimError};

/// Longest text that a leader may proclaim, in bytes.
pub const MAX_PROCLAIMED_BYTES: usize = 4096;
/// Longest name of a lock, in bytes.
pub const MAX_LOCK_NAME_BYTES: usize = 128;

impl Room {
    /// Sets the text that others read of this node while it leads, at most [`MAX_PROCLAIMED_BYTES`].
    ///
    /// # Errors
    /// [`ProclaimError`]; nothing has changed then.
    pub fn proclaim(&self, value: &str) -> Result<(), ProclaimError> {
        let (len, max) = (value.len(), MAX_PROCLAIMED_BYTES);
        if len > max {
            return Err(ProclaimError::TooLong { len, max });
        }
        match self.command(Command::Proclaim(value.into())) {
            None => Err(ProclaimError::NotInitialized),
            Some(Ok(())) => Ok(()),
            Some(Err(CommandError::Election(ElectionError::NotSupported { strategy }))) => {
                Err(ProclaimError::NotSupported { strategy })
            }
            Some(Err(error)) => Err(ProclaimError::Internal {
                what: error.to_string(),
            }),
        }
    }

    /// The number for the next call of [`Room::acquire_lock`]: above 0, and never returned again.
    pub fn next_lock_request(&self) -> u64 {
        self.shared.lock_requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Acquires a lock; a LockResult event with the number `request` follows. A timeout of zero does not
    /// wait, `None` waits without limit.
    ///
    /// # Errors
    /// [`LockError`]; no event follows then.
    pub fn acquire_lock(
        &self,
        request: u64,
        name: &str,
        wait: Option<Duration>,
    ) -> Result<(), LockError> {
        check_name(name)?;
        self.lock_command(Command::AcquireLock {
            request,
            name: name.into(),
            wait,
        })
    }

    /// Releases a lock, or stops waiting for it.
    ///
    /// # Errors
    /// [`LockError`]; nothing has changed then.
    pub fn release_lock(&self, name: &str) -> Result<(), LockError> {
        check_name(name)?;
        self.lock_command(Command::ReleaseLock(name.into()))
    }

    fn lock_command(&self, command: Command) -> Result<(), LockError> {
        let refused = match self.command(command) {
            None => return Err(LockError::NotInitialized),
            Some(Ok(())) => return Ok(()),
            Some(Err(refused)) => refused,
        };
        Err(match refused {
            CommandError::Election(ElectionError::NotSupported { strategy }) => {
                LockError::NotSupported { strategy }
            }
            CommandError::Lock(LockRefusal::TooMany(limit)) => LockError::TooMany { limit },
            CommandError::Lock(LockRefusal::NotHeld(name)) => LockError::NotHeld {
                name: name.to_string(),
            },
            error => LockError::Internal {
                what: error.to_string(),
            },
        })
    }
}

fn check_name(name: &str) -> Result<(), LockError> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_LOCK_NAME_BYTES {
        "is too long"
    } else if name.contains(char::is_control) {
        "contains a control character"
    } else {
        return Ok(());
    };
    Err(LockError::Name {
        name: name.to_owned(),
        fault,
        max: MAX_LOCK_NAME_BYTES,
    })
}
