//! Keys, which identify a member whatever its id.

use std::ffi::c_char;

use super::arguments::{checked_peer_id, text};
use super::failure::Failure;
use super::guard::{log_command, opened, query};
use super::lifecycle::MmnRoom;
use super::strings::hand_out;
use crate::room::{IDENTITY_KEY_BYTES, fill_identity_key};

/// Writes a new private key to `buffer`, as MmnOptions.identity_key takes it (Ed25519, PKCS#8).
/// Works without a room. A host that keeps the key and gives it at every start is the same
/// member each time: bans, bound ids and rosters depend on the key. Keep it secret: its holder can
/// take this member's place.
///
/// Returns the number of bytes written, MMN_IDENTITY_KEY_BYTES, or MMN_INVALID_ARGUMENT (`buffer`
/// is NULL, or `length`, its size in bytes, is below MMN_IDENTITY_KEY_BYTES). On failure nothing is
/// written.
///
/// # Safety
/// `buffer` is NULL, or points to `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_generate_identity_key(buffer: *mut u8, length: i32) -> i32 {
    log_command("mmn_generate_identity_key", || {
        if buffer.is_null() {
            return Err(Failure::invalid(format!(
                "buffer is NULL; give {IDENTITY_KEY_BYTES} writable bytes"
            )));
        }
        if !usize::try_from(length).is_ok_and(|len| len >= IDENTITY_KEY_BYTES) {
            return Err(Failure::invalid(format!(
                "length is {length}; an identity key has {IDENTITY_KEY_BYTES} bytes"
            )));
        }
        // SAFETY: not NULL, and the caller guarantees `length` bytes; bytes need no alignment.
        let key = unsafe { &mut *buffer.cast::<[u8; IDENTITY_KEY_BYTES]>() };
        fill_identity_key(key)?;
        // The constant has two digits.
        Ok(IDENTITY_KEY_BYTES as i32)
    })
}

/// The fingerprint of this node's key: the SHA-256 of its public key (SubjectPublicKeyInfo, DER) in
/// 64 lower-case hexadecimal digits, as quorum_roster takes it. NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_local_fingerprint(room: MmnRoom) -> *const c_char {
    query("mmn_local_fingerprint", || {
        Ok(hand_out(opened(room)?.key()))
    })
}

/// The fingerprint of a peer's key, as mmn_local_fingerprint gives it at that peer. The peer has
/// proved that it holds the key. NULL when the peer is neither connected nor reconnecting,
/// `peer_id` is not an id, or no room is open; the last two set mmn_last_error_code.
///
/// The string is valid until this thread's next call that returns a string.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_fingerprint(
    room: MmnRoom,
    peer_id: *const c_char,
) -> *const c_char {
    query("mmn_peer_fingerprint", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        let peer = checked_peer_id("peer_id", text)?;
        let room = opened(room)?;
        let snapshot = room.snapshot();
        let key = snapshot.peer(peer.as_str()).and_then(|peer| peer.key);
        Ok(key.map_or(std::ptr::null(), hand_out))
    })
}
