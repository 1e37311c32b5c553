//! What a host gives along with a function, and how it is released.

use std::ffi::c_void;

use super::callbacks::DropCallback;
use crate::dispatch::as_callback;
use crate::fork;

/// A pointer of the host, which it gets with every call. Dropping this releases it, but not in a forked child: there it
/// is the parent's.
pub(super) struct UserData {
    pointer: *mut c_void,
    drop_fn: DropCallback,
    generation: u64,
}

// SAFETY: the library only hands the pointer back. Functions that take one make the host promise that it may
// be used on any thread.
unsafe impl Send for UserData {}
// SAFETY: the same.
unsafe impl Sync for UserData {}

impl UserData {
    pub(super) fn new(pointer: *mut c_void, drop_fn: DropCallback) -> Self {
        Self {
            pointer,
            drop_fn,
            generation: fork::generation(),
        }
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(drop_fn) = self.drop_fn
            && self.generation == fork::generation()
        {
            as_callback(|| drop_fn(self.pointer));
        }
    }
}
