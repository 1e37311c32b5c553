//! Arguments of the caller, checked before anything else: pointers, lengths, UTF-8, ids.

use std::ffi::c_char;

use super::failure::Failure;
use crate::core::id::{IdError, PeerId, SessionId};
use crate::quoted::Quoted;

/// Limit of a string argument, in bytes, its NUL included. Every allowed string is shorter. It
/// stops the library from reading on where a string has no end.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The string at `pointer`.
///
/// # Safety
/// `pointer` is NULL, or every byte from it up to the first NUL, or up to [`MAX_TEXT_BYTES`], can
/// be read and does not change for `'a`.
pub(super) unsafe fn text<'a>(argument: &str, pointer: *const c_char) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!(
            "{argument} is NULL; give a NUL-terminated UTF-8 string"
        )));
    }
    let pointer = pointer.cast::<u8>();
    let len = (0..MAX_TEXT_BYTES)
        // SAFETY: no byte before this one was NUL, so the caller guarantees that it can be read.
        .find(|&index| unsafe { *pointer.add(index) } == 0)
        .ok_or_else(|| {
            Failure::invalid(format!(
                "{argument} has no NUL within {MAX_TEXT_BYTES} bytes; give a NUL-terminated UTF-8 string"
            ))
        })?;
    // SAFETY: the loop above read `len` bytes, and the caller guarantees them for 'a.
    let bytes = unsafe { std::slice::from_raw_parts(pointer, len) };
    std::str::from_utf8(bytes).map_err(|error| {
        Failure::invalid(format!(
            "{argument} is not UTF-8 from byte {} on; encode it as UTF-8",
            error.valid_up_to()
        ))
    })
}

/// The peer id at `pointer`.
///
/// # Safety
/// As [`text`].
pub(super) unsafe fn peer_id(argument: &str, pointer: *const c_char) -> Result<PeerId, Failure> {
    // SAFETY: the caller's promise, passed on.
    let text = unsafe { text(argument, pointer) }?;
    checked_peer_id(argument, text)
}

/// `text` as a peer id.
pub(super) fn checked_peer_id(argument: &str, text: &str) -> Result<PeerId, Failure> {
    PeerId::new(text).map_err(|error| bad_id(argument, text, &error))
}

/// `text` as a session id.
pub(super) fn checked_session_id(argument: &str, text: &str) -> Result<SessionId, Failure> {
    SessionId::new(text).map_err(|error| bad_id(argument, text, &error))
}

fn bad_id(argument: &str, text: &str, error: &IdError) -> Failure {
    Failure::invalid(format!(
        "{argument} {} is not allowed: {error}",
        Quoted(text)
    ))
}

/// The bytes at `data`.
///
/// # Safety
/// `length` is not above 0, or `data` is NULL, or `length` bytes from `data` on can be read and do
/// not change for `'a`.
pub(super) unsafe fn payload<'a>(data: *const u8, length: i32) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { payload_of(["data", "length"], data, length) }
}

/// The bytes at `data`, the argument or field with the first of `names`; the second is that of `length`.
///
/// # Safety
/// As [`payload`].
pub(super) unsafe fn payload_of<'a>(
    [name, length_name]: [&str; 2],
    data: *const u8,
    length: i32,
) -> Result<&'a [u8], Failure> {
    let Ok(len) = usize::try_from(length) else {
        return Err(Failure::invalid(format!(
            "{length_name} {length} is negative; give 0 or more bytes"
        )));
    };
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::invalid(format!(
            "{name} is NULL while {length_name} is {length}; give the bytes, or length 0"
        )));
    }
    // SAFETY: not NULL and longer than 0, so the caller guarantees these bytes.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// The bytes at `data`, whose length is the field `<argument>_length`, at most `max`.
///
/// # Safety
/// `length` is 0, or `data` is NULL, or `length` bytes from `data` on can be read and do not change
/// for `'a`.
pub(super) unsafe fn bytes<'a>(
    argument: &str,
    data: *const u8,
    length: u32,
    max: usize,
) -> Result<&'a [u8], Failure> {
    let len = usize::try_from(length).unwrap_or(usize::MAX);
    if len > max {
        return Err(Failure::invalid(format!(
            "{argument}_length is {length}; at most {max} bytes are allowed"
        )));
    }
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::invalid(format!(
            "{argument} is NULL while {argument}_length is {length}; give the bytes, or length 0"
        )));
    }
    // SAFETY: not NULL and longer than 0, so the caller guarantees these bytes.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(bytes: &[u8]) -> Result<&str, String> {
        // SAFETY: every test below passes a NUL, or MAX_TEXT_BYTES bytes.
        unsafe { text("name", bytes.as_ptr().cast()) }.map_err(|failure| failure.sentence)
    }

    #[test]
    fn a_string_is_read_up_to_its_nul_and_no_further_than_64_kib() {
        assert_eq!(text_of(b"abc\0def\0"), Ok("abc"));
        assert_eq!(text_of(b"\0"), Ok(""));
        let mut long = vec![b'x'; MAX_TEXT_BYTES];
        assert_eq!(
            text_of(&long),
            Err("name has no NUL within 65536 bytes; give a NUL-terminated UTF-8 string".into())
        );
        long[MAX_TEXT_BYTES - 1] = 0;
        assert_eq!(text_of(&long).map(str::len), Ok(MAX_TEXT_BYTES - 1));
        assert_eq!(
            text_of(b"ab\xff\0"),
            Err("name is not UTF-8 from byte 2 on; encode it as UTF-8".into())
        );
    }

    #[test]
    fn null_is_reported_by_name() {
        // SAFETY: NULL is allowed.
        let failure = unsafe { text("addr", std::ptr::null()) }.expect_err("NULL");
        assert_eq!(
            failure.sentence,
            "addr is NULL; give a NUL-terminated UTF-8 string"
        );
    }

    #[test]
    fn a_bad_id_is_named_quoted_and_explained() {
        let long = format!("{}\0", "x".repeat(100));
        // SAFETY: there is a NUL.
        let failure = unsafe { peer_id("peer_id", long.as_ptr().cast()) }.expect_err("100 bytes");
        assert_eq!(
            failure.sentence,
            format!(
                "peer_id \"{}\"... (100 bytes) is not allowed: it has 100 bytes; at most 64 are allowed",
                "x".repeat(64)
            )
        );
        assert!(checked_session_id("session_id", &"x".repeat(100)).is_ok());
    }

    #[test]
    fn a_payload_needs_a_pointer_only_where_it_has_bytes() {
        let payload_of = |data: *const u8, length| {
            // SAFETY: `data` is NULL or has three bytes.
            unsafe { payload(data, length) }.map_err(|failure| failure.sentence)
        };
        let null = std::ptr::null();
        assert_eq!(payload_of(null, 0), Ok(&[][..]));
        assert_eq!(payload_of([1, 2, 3].as_ptr(), 3), Ok(&[1, 2, 3][..]));
        assert!(
            payload_of(null, 1).is_err_and(|text| text.contains("data is NULL while length is 1"))
        );
        assert!(payload_of(null, -1).is_err_and(|text| text.contains("length -1 is negative")));
    }
}
