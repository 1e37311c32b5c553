//! Strings and bytes for C: the string that a function returns, one slot per thread, and the arguments of callbacks.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::Display;
use std::io::Write as _;

use crate::core::id::{MAX_PEER_ID_BYTES, PeerId};

thread_local! {
    static SLOT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Puts `text` into the calling thread's slot. The pointer is valid until the thread's next call of
/// this function.
pub(super) fn hand_out(text: impl Display) -> *const c_char {
    // A thread in its last destructors no longer has a slot, and gets NULL.
    SLOT.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        slot.clear();
        // Writing to a vector does not fail. A Display that fails leaves its own text incomplete.
        let _ = write!(slot, "{text}");
        for byte in slot.iter_mut().filter(|byte| **byte == 0) {
            *byte = b'?';
        }
        slot.push(0);
        slot.as_ptr().cast()
    })
    .unwrap_or(std::ptr::null())
}

/// The address of `data`: C asks for a valid pointer even where it copies nothing.
pub(super) fn data_pointer(data: &[u8]) -> *const u8 {
    match data {
        [] => c"".as_ptr().cast(),
        bytes => bytes.as_ptr(),
    }
}

/// A peer id with the NUL that C needs, without an allocation for every message.
pub(super) struct IdText([u8; MAX_PEER_ID_BYTES + 1]);

impl IdText {
    pub(super) fn new(id: &PeerId) -> Self {
        let mut text = [0; MAX_PEER_ID_BYTES + 1];
        let id = id.as_str().as_bytes();
        text[..id.len()].copy_from_slice(id);
        Self(text)
    }

    pub(super) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn read(text: *const c_char) -> String {
        // SAFETY: `hand_out` returned the pointer, and this thread has not called it since.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn a_string_stays_until_the_same_threads_next() {
        let here = hand_out("琪露诺");
        std::thread::spawn(|| assert_eq!(read(hand_out("elsewhere")), "elsewhere"))
            .join()
            .expect("no panic");
        assert_eq!(read(here), "琪露诺");
        assert_eq!(read(hand_out("a\0b")), "a?b");
        assert_eq!(read(hand_out("")), "");
    }
}
