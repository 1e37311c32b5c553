//! Room codes, which players read out and type.

use std::ffi::c_char;

use super::arguments::text;
use super::failure::Failure;
use super::guard::log_command;
use crate::room_code::{ROOM_CODE_LENGTH, RoomCode};

/// Bytes of a code with its NUL.
const BYTES: usize = ROOM_CODE_LENGTH + 1;

/// Writes a new room code to `buffer`, as K7QM-3XP9-TRWF, with a NUL at its end. Works without a room
/// and without a network. The host that creates a room passes the code to mmn_open as the session
/// id, with MmnOptions.relays, and shows it to its player, who gives it to others. It is the room's
/// password: 55 random bits and a check character, with which mmn_normalize_room_code finds typos.
///
/// Returns the number of bytes written, MMN_ROOM_CODE_BYTES; MMN_INVALID_ARGUMENT (`buffer` is NULL,
/// or `length`, its size in bytes, is below MMN_ROOM_CODE_BYTES); or MMN_INTERNAL_ERROR (the system
/// has no randomness). On failure nothing is written.
///
/// # Safety
/// `buffer` is NULL, or points to `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_generate_room_code(buffer: *mut c_char, length: i32) -> i32 {
    log_command("mmn_generate_room_code", || {
        // SAFETY: the caller's promise, passed on.
        let buffer = unsafe { code_buffer(buffer, length) }?;
        Ok(write(buffer, &RoomCode::generate()?))
    })
}

/// Writes the room code in `text` to `buffer` as mmn_generate_room_code shows codes, with a NUL at
/// its end. Reads codes as players type and paste them: in either case, with the letter O for 0 and
/// I or L for 1, with full-width characters, and with any spaces and dashes or none. Use it to check a
/// code before mmn_open, which reads the session id in this way if MmnOptions.relays is set. Works
/// without a room.
///
/// Returns the number of bytes written, MMN_ROOM_CODE_BYTES, or MMN_INVALID_ARGUMENT: `text` is no
/// code (mmn_last_error_message names the wrong character and its position, the length, or that the
/// check character does not match, which means a typo), `text` or `buffer` is NULL, or `length`,
/// the size of `buffer` in bytes, is below MMN_ROOM_CODE_BYTES. On failure nothing is written.
///
/// # Safety
/// `text` is NULL or ends with a NUL. `buffer` is NULL, or points to `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_normalize_room_code(
    text: *const c_char,
    buffer: *mut c_char,
    length: i32,
) -> i32 {
    log_command("mmn_normalize_room_code", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { self::text("text", text) }?;
        let code = RoomCode::parse(text)
            .map_err(|error| Failure::invalid(format!("text is not a room code: {error}")))?;
        // SAFETY: as above. The code is a copy, so the buffer may be that of `text`.
        let buffer = unsafe { code_buffer(buffer, length) }?;
        Ok(write(buffer, &code))
    })
}

/// # Safety
/// `buffer` is NULL, or points to `length` bytes that can be written for `'a`, and that nothing else refers to.
unsafe fn code_buffer<'a>(
    buffer: *mut c_char,
    length: i32,
) -> Result<&'a mut [u8; BYTES], Failure> {
    if buffer.is_null() {
        return Err(Failure::invalid(format!(
            "buffer is NULL; give {BYTES} writable bytes"
        )));
    }
    if !usize::try_from(length).is_ok_and(|len| len >= BYTES) {
        return Err(Failure::invalid(format!(
            "length is {length}; a room code has {BYTES} bytes with its NUL"
        )));
    }
    // SAFETY: not NULL, and the caller guarantees `length` bytes; bytes need no alignment.
    Ok(unsafe { &mut *buffer.cast() })
}

fn write(buffer: &mut [u8; BYTES], code: &RoomCode) -> i32 {
    buffer[..ROOM_CODE_LENGTH].copy_from_slice(code.as_str().as_bytes());
    buffer[ROOM_CODE_LENGTH] = 0;
    // The constant has two digits.
    BYTES as i32
}
