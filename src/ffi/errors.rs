//! The calling thread's last error, and the description of each code.

use std::ffi::c_char;

use super::failure::with_last;
use super::guard::guard;
use super::strings::hand_out;
use crate::error::Code;

/// The code of the calling thread's last failed call; MMN_OK if no call has failed on this thread.
/// A successful call leaves it unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_last_error_code() -> i32 {
    guard("mmn_last_error_code", || {
        with_last(|last| last.map_or(0, |failure| failure.code.value())).unwrap_or(0)
    })
}

/// The message of the calling thread's last failed call. It names the argument, its value, the
/// limit and what to do. "" if no call has failed on this thread. Never NULL.
///
/// In a thread's last destructors (of pthread keys, for example) it may be the description of the
/// code instead.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_last_error_message() -> *const c_char {
    guard("mmn_last_error_message", || {
        with_last(|last| match last {
            Some(failure) => {
                let sentence = hand_out(&failure.sentence);
                // A thread in its last destructors may have an error, but no slot for its sentence.
                if sentence.is_null() {
                    failure.code.description().as_ptr()
                } else {
                    sentence
                }
            }
            None => c"".as_ptr(),
        })
        .unwrap_or(c"".as_ptr())
    })
}

/// The meaning of a code, in one sentence. An unknown number gets a sentence, too. Works before
/// initialization.
///
/// The string is constant. It stays valid for as long as the library is loaded, and does not
/// invalidate the strings of other calls.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_describe_error(code: i32) -> *const c_char {
    guard("mmn_describe_error", || {
        Code::from_value(code)
            .map_or(UNKNOWN_CODE, Code::description)
            .as_ptr()
    })
}

const UNKNOWN_CODE: &std::ffi::CStr =
    c"This number is not a code of this version of meta_mystia_network.";

#[cfg(test)]
pub(super) mod tests {
    use std::ffi::CStr;

    use super::*;

    /// The calling thread's last error as a host reads it.
    pub(in crate::ffi) fn last_error() -> (i32, String) {
        (mmn_last_error_code(), read(mmn_last_error_message()))
    }

    fn read(text: *const c_char) -> String {
        // SAFETY: the library gave the pointer, and has returned no other string to this thread since.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn every_code_is_described_and_others_are_unknown() {
        assert_eq!(
            read(mmn_describe_error(-2)),
            "The default room is already open: close it before opening it again."
        );
        for unknown in [1, -98, i32::MIN, i32::MAX] {
            assert!(read(mmn_describe_error(unknown)).contains("not a code"));
        }
    }
}
