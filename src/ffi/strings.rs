//! Strings that the library returns: one slot per thread. The next string overwrites it.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::Display;
use std::io::Write as _;

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
