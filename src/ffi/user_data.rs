//! A host's pointer that belongs to a callback, and its release.

use std::ffi::c_void;

use super::callbacks::DropCallback;
use crate::dispatch::as_callback;
use crate::fork;

/// A pointer of the host, which every call passes back to it. Dropping this releases it, except in a forked child,
/// where it belongs to the parent.
pub(super) struct UserData {
    pointer: *mut c_void,
    drop_fn: DropCallback,
    generation: u64,
}

// SAFETY: the library only passes the pointer back. Functions that take one require the host to allow its use on any
// thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
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
