//! A host's pointer that belongs to a callback, and its release.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use super::events::MmnDropCallback;
use crate::dispatch::as_callback;
use crate::fork;

/// A pointer of the host, which every call passes back to it. Dropping this releases it, if the
/// library owns it by then, except in a forked child, where it belongs to the parent.
pub(super) struct UserData {
    pointer: *mut c_void,
    drop_fn: MmnDropCallback,
    generation: u64,
    is_owned: AtomicBool,
}

// SAFETY: the library only passes the pointer back. Functions that take one require the host to allow its use on any
// thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    /// A pointer that the library owns.
    pub(super) fn new(pointer: *mut c_void, drop_fn: MmnDropCallback) -> Self {
        let user_data = Self::borrowed(pointer, drop_fn);
        user_data.own();
        user_data
    }

    /// A pointer that stays the host's if the call fails.
    pub(super) fn borrowed(pointer: *mut c_void, drop_fn: MmnDropCallback) -> Self {
        Self {
            pointer,
            drop_fn,
            generation: fork::generation(),
            is_owned: AtomicBool::new(false),
        }
    }

    /// The call has succeeded: the library releases the pointer.
    pub(super) fn own(&self) {
        self.is_owned.store(true, Ordering::Release);
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(drop_fn) = self.drop_fn
            && self.is_owned.load(Ordering::Acquire)
            && self.generation == fork::generation()
        {
            as_callback(|| drop_fn(self.pointer));
        }
    }
}
