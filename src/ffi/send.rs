//! Sending messages.

use std::ffi::c_char;

use bytes::Bytes;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::failure::Failure;
use super::guard::{command, query, room};
use super::values::MMN_MIN_MESSAGE_TYPE;
use crate::error::SendError;
use crate::room::{OutMessage, Room};

/// The flag that the library keeps for itself.
const LIBRARY_FLAG: u8 = 1;

/// Sends a message to every connected peer, or to none. Without peers it is MMN_OK. In centralized mode it goes
/// to the leader, which sends it on: see SetCentralizedMode.
///
/// MMN_OK means that the message is queued: it arrives once, also over a lost link that comes back, unless the
/// receiver leaves or is given up. Any other result means that nothing was queued.
///
/// `data` is read during the call only, and may be NULL when `length` is 0. `msg_type` is the application's,
/// MMN_MIN_MESSAGE_TYPE or more. `flags` is the application's but for bit 0, which arrives clear.
/// Messages of one sender arrive in the order of the calls, each once. Never waits for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL
/// (the queue to one peer or more is full; nothing was queued; GetLastErrorMessage names the peers); in
/// centralized mode also MMN_NOT_LEADER (no leader is known) and MMN_PEER_NOT_FOUND (the leader is not
/// connected to this node).
///
/// # Safety
/// `length` bytes can be read from `data` on.
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

/// Sends a message to one peer; to this node's own id, to the own ReceiveCallback. Arguments and promise as
/// BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_PEER_NOT_FOUND or
/// MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL; `length` bytes can be read from `data` on.
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
        // SAFETY: the same.
        let payload = unsafe { payload(data, length) }?;
        let room = room("SendToPeer")?;
        Ok(room.send_to(&peer, message(&room, payload, msg_type, flags)?)?)
    })
}

/// Sends a message to the leader; on the leader itself, to the own ReceiveCallback. Arguments as
/// BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (no leader
/// is known), MMN_PEER_NOT_FOUND (the leader is not connected to this node) or MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `length` bytes can be read from `data` on.
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

/// Sends a message as the leader to every connected peer, or to none. Receivers learn of this leadership before
/// the message; those that know a newer leader drop it. Arguments as BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node
/// is not the leader) or MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `length` bytes can be read from `data` on.
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

/// Forwards a message in the name of `from`, this node or a connected peer: to the peer `to` (to this node's own id,
/// to the own ReceiveCallback), or to every connected peer but `from` where `to` is NULL: all of them or none.
/// Only the leader may: receivers drop what anybody else sends in another's name. Other arguments as
/// BroadcastMessage.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also where `to` is `from`), MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
/// MMN_NOT_LEADER (this node is not the leader), MMN_PEER_NOT_FOUND (`from` or `to` is not connected) or
/// MMN_SEND_QUEUE_FULL.
///
/// # Safety
/// `from` is NULL or ends with a NUL, and so does `to`; `length` bytes can be read from `data` on.
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
            // SAFETY: the same.
            Some(unsafe { peer_id_argument("to", to) }?)
        };
        // SAFETY: the same.
        let payload = unsafe { payload(data, length) }?;
        let room = room("ForwardMessage")?;
        let message = message(&room, payload, msg_type, flags)?;
        Ok(room.forward(&from, to.as_ref(), message)?)
    })
}

/// Lets this node's BroadcastMessage go through the leader (not 0) or directly to all (0, as at the start). The leader
/// hands each to its own ReceiveCallback and, where it has auto-forward on, sends it on to all but its origin;
/// receivers see the origin as the sender. All members of a centralized room turn it on.
///
/// A broadcast is kept until the leader has queued it for everybody; if that leader is lost, it goes through the
/// next one. While the queue to one member is full, the leader takes nothing from the origins whose broadcasts
/// would have to go there.
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

/// Lets this node, while it leads, send others' broadcasts on to all members but their origin (not 0), or hand
/// them to its own ReceiveCallback only (0), so that its host can send on what it approves of with
/// ForwardMessage. At the start it is centralized_auto_forward of the configuration.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn SetCentralizedAutoForward(enabled: u8) -> i32 {
    command("SetCentralizedAutoForward", || {
        room("SetCentralizedAutoForward")?.set_auto_forward(enabled != 0);
        Ok(())
    })
}

/// Whether this node, while it leads, sends others' broadcasts on: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsCentralizedAutoForward() -> u8 {
    query("IsCentralizedAutoForward", || {
        Ok(u8::from(
            room("IsCentralizedAutoForward")?.is_auto_forward(),
        ))
    })
}

/// Sends payloads of more than `bytes` bytes compressed (LZ4) from now on, where that makes them shorter; 0 tries all.
/// At the start it is compression_threshold of the configuration. Costs the network thread time; receivers
/// take either. max_message_size holds for the payload as it is given.
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

/// The message, copied once its type and length are allowed.
fn message(room: &Room, payload: &[u8], msg_type: u16, flags: u8) -> Result<OutMessage, Failure> {
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
