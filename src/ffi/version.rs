//! The versions of the ABI and of the library.

use std::ffi::c_char;

use super::guard::guard;

/// The ABI version of this header. It rises when functions, codes or fields are added; nothing
/// is ever removed or changed. Library 0.2.0 began at 100.
pub const MMN_ABI_VERSION: u32 = 107;

/// The ABI version of the loaded library. A host works with every library whose ABI version is at
/// least the MMN_ABI_VERSION that the host was compiled with. Works without a room.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_abi_version() -> u32 {
    guard("mmn_abi_version", || MMN_ABI_VERSION)
}

/// The version of the loaded library, as "major.minor.patch". Works without a room.
///
/// The string is constant. It stays valid for as long as the library is loaded, and does not
/// invalidate the strings of other calls.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_library_version() -> *const c_char {
    guard("mmn_library_version", || {
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
    })
}
