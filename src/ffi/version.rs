//! Which ABI and which library this is.

use std::ffi::c_char;

use super::guard::guard;

/// Version of this header's ABI. It counts up when functions, codes or fields are added; nothing is ever
/// removed or changed, except extended functions before the library's version 1.0.
pub const MMN_ABI_VERSION: u32 = 6;

/// The ABI version of the loaded library. A host can use it where this is at least the MMN_ABI_VERSION that
/// the host was compiled with. Works before initialization.
#[unsafe(no_mangle)]
pub extern "C" fn GetAbiVersion() -> u32 {
    guard("GetAbiVersion", || MMN_ABI_VERSION)
}

/// The version of the loaded library, as "major.minor.patch". Works before initialization.
///
/// The string is constant: it is valid for as long as the library is loaded, and leaves the strings of other
/// calls valid.
#[unsafe(no_mangle)]
pub extern "C" fn GetLibraryVersion() -> *const c_char {
    guard("GetLibraryVersion", || {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    })
}
