//! Membership: kicks, bans, limits and join requests.

use std::ffi::c_char;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::failure::Failure;
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use super::values::MMN_KICK_BAN;

/// Sets whether the library dials lost peers again (not 0, the default) or treats every loss as a
/// leave (0). With 0, peers that are reconnecting leave at once: MMN_EVENT_LEFT with MMN_LEFT_LOST.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_auto_reconnect(room: MmnRoom, enabled: u8) -> i32 {
    command("mmn_set_auto_reconnect", || {
        Ok(opened(room)?.set_auto_reconnect(enabled != 0)?)
    })
}

/// Whether the library dials lost peers again: 1 or 0. 0 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_auto_reconnect(room: MmnRoom) -> u8 {
    query("mmn_auto_reconnect", || {
        Ok(u8::from(opened(room)?.auto_reconnect()))
    })
}

/// Removes a peer from the room. Only the leader may. The peer receives `code` and the `length`
/// bytes at `data` (at most 3072), both the host's own. Every member drops it (MMN_EVENT_LEFT with
/// MMN_LEFT_KICKED). With `flags` 0 the peer may come back: its host receives the end of its room,
/// and can open it again; the room then decides about it as about any newcomer. A peer that is
/// reconnecting does not learn of such a kick. With MMN_KICK_BAN neither its id nor its key is
/// admitted again until mmn_unban or the room's end, under any leader.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND
/// (neither connected nor reconnecting) or MMN_MAX_CONNECTIONS_REACHED (512 peers are banned
/// already). On failure nothing has changed.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
/// when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_kick(
    room: MmnRoom,
    peer_id: *const c_char,
    flags: u32,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    command("mmn_kick", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        let room = opened(room)?;
        if flags & !MMN_KICK_BAN != 0 {
            return Err(Failure::invalid(format!(
                "flags is {flags}; give 0, or {MMN_KICK_BAN} for a ban"
            )));
        }
        Ok(room.kick_with(&peer, code, bytes, flags & MMN_KICK_BAN != 0)?)
    })
}

/// Lifts the ban of a peer on all members: of its id, and of every key that the id was banned with,
/// whatever other ids use that key. Only the leader may. The peer is not admitted by that, but
/// may ask again.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER or MMN_PEER_NOT_FOUND
/// (no peer of that id is banned). On failure nothing has changed.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_unban(room: MmnRoom, peer_id: *const c_char) -> i32 {
    command("mmn_unban", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        Ok(opened(room)?.unban(&peer)?)
    })
}

/// Limits the room: no member gets more than `max_peers` other members, as mmn_peer_count counts
/// them. 0 is no limit besides each member's own max_connections. Only the leader may. Peers that
/// are reconnecting keep their places, and no member is removed. The limit also holds under later
/// leaders, and replaces the option max_peers.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_LEADER.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_max_peers(room: MmnRoom, max_peers: u32) -> i32 {
    command("mmn_set_max_peers", || {
        Ok(opened(room)?.set_max_peers(max_peers)?)
    })
}

/// Sets the payload that this node sends from now on when it enters a room, for the decision of the
/// leader's host: `length` bytes at `data`, at most 16384; 0 for none.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_join_payload(room: MmnRoom, data: *const u8, length: i32) -> i32 {
    command("mmn_set_join_payload", || {
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(opened(room)?.set_join_payload(bytes)?)
    })
}

/// Sets the admission rule of this host while this node leads: the host decides about each newcomer
/// (not 0), or every process that knows the room may enter (0, the default). If the host decides,
/// every newcomer is an MMN_EVENT_JOIN_REQUEST, which the host answers with mmn_accept_join or
/// mmn_reject_join within handshake_timeout_ms. Without an answer the newcomer is refused, and gets
/// MMN_TIMEOUT. Members that return need no request. Set it on every member that may come to lead.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_join_requests(room: MmnRoom, enabled: u8) -> i32 {
    command("mmn_set_join_requests", || {
        Ok(opened(room)?.ask_host(enabled != 0)?)
    })
}

/// Admits the newcomer of the MMN_EVENT_JOIN_REQUEST with this number.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (the request was answered or has
/// expired, or another member leads now).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_accept_join(room: MmnRoom, request: u64) -> i32 {
    command(
        "mmn_accept_join",
        || Ok(opened(room)?.accept_join(request)?),
    )
}

/// Refuses the newcomer of the MMN_EVENT_JOIN_REQUEST with this number. Its mmn_connect ends with
/// MMN_REJECTED. Its MMN_EVENT_CONNECTION_RESULT has `code` as reason and the `length` bytes at
/// `data` (at most 3072), both the host's own.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (as
/// mmn_accept_join).
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_reject_join(
    room: MmnRoom,
    request: u64,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    command("mmn_reject_join", || {
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(opened(room)?.reject_join(request, code, bytes)?)
    })
}
