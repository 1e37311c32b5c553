//! Sending messages.

use std::ffi::c_char;

use bytes::Bytes;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::failure::Failure;
use super::guard::{command, query, room};
use super::values::MMN_MIN_MESSAGE_TYPE;
use crate::error::SendError;
use crate::room::{OutMessage, Room};

/// The flag that the library reserves.
const LIBRARY_FLAG: u8 = 1;

/// Sends a message to all connected peers, or to none of them. Without peers it returns MMN_OK. In
/// centralized mode the message goes to the leader, which relays it: see SetCentralizedMode.
///
/// MMN_OK means that the message is queued. It arrives once, even if a link is lost and comes back,
/// unless the receiver leaves or is given up. Any other result means that nothing was queued.
///
/// A member that is reconnecting gets the message when it returns, as long as its queue has room.
/// It never causes MMN_SEND_QUEUE_FULL: it misses a message that does not fit, and all that follow
/// until it returns. MMN_EVENT_RETURNED counts these messages at both ends.
///
/// The library reads `data` during the call only; it may be NULL when `length` is 0. `msg_type` is
/// the host's own, MMN_MIN_MESSAGE_TYPE or more. `flags` are the host's own, except that bit 0
/// arrives clear. Messages from one sender arrive in the order of the calls, each once. Never waits
/// for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE or
/// MMN_SEND_QUEUE_FULL (the queue to at least one peer is full and nothing was queued;
/// GetLastErrorMessage names the peers); in centralized mode also MMN_NOT_LEADER (no leader is
/// known) and MMN_PEER_NOT_FOUND (the leader is not connected to this node).
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn BroadcastMessage(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    command("BroadcastMessage", || {
        // SAFETY: the caller's promise, passed on.
        let payload = unsafe { payload(data, length) }?;
        let room = room("BroadcastMessage")?;
        Ok(room.broadcast(message(&room, payload, msg_type, flags)?)?)
    })
}

/// Sends a message to one peer, also while it is reconnecting. A message to this node's own id goes
/// to its own ReceiveCallback. Arguments and delivery are as in BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
/// MMN_PEER_NOT_FOUND (neither connected nor reconnecting) or MMN_SEND_QUEUE_FULL (also if the peer
/// is reconnecting and missed a broadcast meanwhile).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToPeer(
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    command("SendToPeer", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let payload = unsafe { payload(data, length) }?;
        let room = room("SendToPeer")?;
        Ok(room.send_to(&peer, message(&room, payload, msg_type, flags)?)?)
    })
}

/// Sends a message to the leader. On the leader itself it goes to the node's own ReceiveCallback.
/// Arguments are as in BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER
/// (no leader is known), MMN_PEER_NOT_FOUND (the leader is not connected to this node) or
/// MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToLeader(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    command("SendToLeader", || {
        // SAFETY: the caller's promise, passed on.
        let payload = unsafe { payload(data, length) }?;
        let room = room("SendToLeader")?;
        Ok(room.send_to_leader(message(&room, payload, msg_type, flags)?)?)
    })
}

/// Sends a message as the leader to all connected peers, or to none of them. Receivers learn of
/// this leadership before they get the message; peers that know a newer leader drop it. Arguments
/// are as in BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER
/// (this node is not the leader) or MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendFromLeader(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    command("SendFromLeader", || {
        // SAFETY: the caller's promise, passed on.
        let payload = unsafe { payload(data, length) }?;
        let room = room("SendFromLeader")?;
        Ok(room.send_from_leader(message(&room, payload, msg_type, flags)?)?)
    })
}

/// Forwards a message on behalf of `from`, which is this node or a connected peer. Only the leader
/// may: receivers drop messages that any other member sends on behalf of another. The message goes
/// to the peer `to`, or, if `to` is NULL, to all connected peers except `from`, or to none of them.
/// If `to` is this node's own id, the message goes to its own ReceiveCallback. The other arguments
/// are as in BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also if `to` is `from`), MMN_NOT_INITIALIZED,
/// MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node is not the leader), MMN_PEER_NOT_FOUND (`from`
/// or `to` is not connected) or MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `from` and `to` are NULL or end with a NUL. `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ForwardMessage(
    from: *const c_char,
    to: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    command("ForwardMessage", || {
        // SAFETY: the caller's promise, passed on.
        let from = unsafe { peer_id_argument("from", from) }?;
        let to = if to.is_null() {
            None
        } else {
            // SAFETY: as above.
            Some(unsafe { peer_id_argument("to", to) }?)
        };
        // SAFETY: as above.
        let payload = unsafe { payload(data, length) }?;
        let room = room("ForwardMessage")?;
        let message = message(&room, payload, msg_type, flags)?;
        Ok(room.forward(&from, to.as_ref(), message)?)
    })
}

/// Sets whether this node's BroadcastMessage goes through the leader (not 0) or directly to all
/// peers (0, the default). The leader passes each broadcast to its own ReceiveCallback and, with
/// auto-forward on, relays it to all members but its origin. Receivers see the origin as the
/// sender. Turn it on at all members of a centralized room.
///
/// The origin keeps a broadcast until the leader has queued it for every member. If that leader is
/// lost, the broadcast goes through the next one. While the queue to one member is full, the leader
/// reads nothing from origins whose broadcasts would go to that member.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn SetCentralizedMode(enabled: u8) -> i32 {
    command("SetCentralizedMode", || {
        room("SetCentralizedMode")?.set_centralized(enabled != 0);
        Ok(())
    })
}

/// Whether this node's broadcasts go through the leader: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsCentralizedMode() -> u8 {
    query("IsCentralizedMode", || {
        Ok(u8::from(room("IsCentralizedMode")?.is_centralized()))
    })
}

/// Sets whether this node, while it leads, relays the broadcasts of others to all members but their
/// origin (not 0), or only passes them to its own ReceiveCallback (0), so that its host can relay
/// the approved ones with ForwardMessage. The initial value is centralized_auto_forward of the
/// configuration.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn SetCentralizedAutoForward(enabled: u8) -> i32 {
    command("SetCentralizedAutoForward", || {
        room("SetCentralizedAutoForward")?.set_auto_forward(enabled != 0);
        Ok(())
    })
}

/// Whether this node, while it leads, relays the broadcasts of others: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsCentralizedAutoForward() -> u8 {
    query("IsCentralizedAutoForward", || {
        Ok(u8::from(
            room("IsCentralizedAutoForward")?.is_auto_forward(),
        ))
    })
}

/// Sets the payload length in bytes above which the library compresses with LZ4, if that saves at
/// least a quarter; 0 tries every payload. The initial value is compression_threshold of the
/// configuration. Compression costs time on the network thread. Receivers accept either form.
/// max_message_size applies to the uncompressed payload.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn SetCompressionThreshold(bytes: u32) -> i32 {
    command("SetCompressionThreshold", || {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        room("SetCompressionThreshold")?.set_compression_threshold(bytes);
        Ok(())
    })
}

/// The message, copied after its type and length are checked.
pub(super) fn message(
    room: &Room,
    payload: &[u8],
    msg_type: u16,
    flags: u8,
) -> Result<OutMessage, Failure> {
    check_message(payload.len(), msg_type, room.max_message_size())?;
    Ok(OutMessage {
        payload: Bytes::copy_from_slice(payload),
        msg_type,
        flags: flags & !LIBRARY_FLAG,
    })
}

fn check_message(len: usize, msg_type: u16, max: usize) -> Result<(), SendError> {
    if msg_type < MMN_MIN_MESSAGE_TYPE {
        return Err(SendError::TypeReserved { msg_type });
    }
    if len > max {
        return Err(SendError::TooLarge {
            len,
            max,
            limit_of: None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_checked_before_the_length() {
        let reserved = SendError::TypeReserved { msg_type: 0xff };
        assert_eq!(check_message(11, 0xff, 10), Err(reserved));
        assert!(matches!(
            check_message(11, 0x100, 10),
            Err(SendError::TooLarge {
                len: 11,
                max: 10,
                ..
            })
        ));
        assert_eq!(check_message(10, 0x100, 10), Ok(()));
    }
}
