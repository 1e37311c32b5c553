//! Who may be in the room.

use std::ffi::c_char;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::guard::{command, query, room};

/// Whether lost peers are dialled again (not 0, the default) or have left at once (0). With 0, peers that are
/// reconnecting have left: ReconnectCallback 2.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn SetAutoReconnect(enabled: u8) -> i32 {
    command("SetAutoReconnect", || {
        Ok(room("SetAutoReconnect")?.set_auto_reconnect(enabled != 0)?)
    })
}

/// Whether lost peers are dialled again: 1 or 0. 0 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn IsAutoReconnectEnabled() -> u8 {
    query("IsAutoReconnectEnabled", || {
        Ok(u8::from(room("IsAutoReconnectEnabled")?.auto_reconnect()))
    })
}

/// Removes a peer from the room. It is told `code` and the `length` bytes at `data` (at most 3072; both are the
/// application's own), every member drops it (left, MMN_LEFT_KICKED), and neither its id nor its key
/// gets in again for as long as the room lives, whoever leads. Only the leader may.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (neither
/// connected nor reconnecting) or MMN_MAX_CONNECTIONS_REACHED (512 are removed already). Nothing has changed then.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL; `length` bytes can be read at `data`, which may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn KickPeer(
    peer_id: *const c_char,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    command("KickPeer", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(room("KickPeer")?.kick(&peer, code, bytes)?)
    })
}

/// Limits the room: no member gets more than `max_peers` other members (as GetPeerCount counts them); 0 is no
/// limit beside each member's own max_connections. Peers that are reconnecting keep their places. Nobody is removed.
/// Holds under later leaders too, in place of the option max_peers. Only the leader may.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_LEADER.
#[unsafe(no_mangle)]
pub extern "C" fn SetMaxPeers(max_peers: u32) -> i32 {
    command("SetMaxPeers", || {
        Ok(room("SetMaxPeers")?.set_max_peers(max_peers)?)
    })
}

/// What this node says from now on when it enters a room, for the leader's application to decide on: `length`
/// bytes at `data`, at most 8192; 0 for nothing.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `length` bytes can be read at `data`, which may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SetJoinPayload(data: *const u8, length: i32) -> i32 {
    command("SetJoinPayload", || {
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(room("SetJoinPayload")?.set_join_payload(bytes)?)
    })
}

/// Whether this application decides, whenever this node leads, who may enter (not 0), or everybody who knows the
/// room may (0, the default). Then every stranger is an event MMN_EVENT_JOIN_REQUEST, to be answered by AcceptJoin
/// or RejectJoin within handshake_timeout_ms; no answer keeps it out (MMN_TIMEOUT there). Members
/// that return are not asked about. Set it on every member that may come to lead.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn EnableJoinRequests(enabled: u8) -> i32 {
    command("EnableJoinRequests", || {
        Ok(room("EnableJoinRequests")?.ask_host(enabled != 0)?)
    })
}

/// Lets in whom the event MMN_EVENT_JOIN_REQUEST with this number named.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (it was answered, its time is over, or another
/// member leads now).
#[unsafe(no_mangle)]
pub extern "C" fn AcceptJoin(request: u64) -> i32 {
    command("AcceptJoin", || {
        Ok(room("AcceptJoin")?.accept_join(request)?)
    })
}

/// Keeps out whom the event MMN_EVENT_JOIN_REQUEST with this number named. Its ConnectToPeer ends with
/// MMN_REJECTED, and its event with `code` (as reason) and the `length` bytes at `data` (at most 3072), both the
/// application's own.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (as AcceptJoin).
///
/// # Safety
/// `length` bytes can be read at `data`, which may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RejectJoin(request: u64, code: i32, data: *const u8, length: i32) -> i32 {
    command("RejectJoin", || {
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(room("RejectJoin")?.reject_join(request, code, bytes)?)
    })
}
