//! The reason why a call failed, and the calling thread's last failure.

use std::cell::RefCell;
use std::fmt::Display;
use std::thread::AccessError;

use crate::error::{Code, Coded};

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Result of a failed call: its code and its sentence.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) sentence: String,
}

impl Failure {
    pub(super) fn invalid(sentence: String) -> Self {
        Self {
            code: Code::InvalidArgument,
            sentence,
        }
    }
}

impl<E: Coded + Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            code: error.code(),
            sentence: error.to_string(),
        }
    }
}

pub(super) fn set_last(failure: Failure) {
    // A thread that is ending no longer has a last error.
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
}

/// Reads the calling thread's last failure.
///
/// # Errors
/// The thread is ending.
pub(super) fn with_last<T>(read: impl FnOnce(Option<&Failure>) -> T) -> Result<T, AccessError> {
    LAST.try_with(|last| read(last.borrow().as_ref()))
}
