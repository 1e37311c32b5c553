//! Sending messages.

use std::ffi::c_char;

use bytes::Bytes;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::codes::MMN_MIN_MESSAGE_TYPE;
use super::guard::{Failure, command, room};
use crate::error::SendError;
use crate::room::{OutMessage, Room};

/// The flag that the library keeps for itself.
const LIBRARY_FLAG: u8 = 1;

/// Sends a message to every connected peer, or to none. Without peers it is MMN_OK.
///
/// `data` is read during the call only, and may be NULL when `length` is 0. `msg_type` is the application's,
/// MMN_MIN_MESSAGE_TYPE or more. `flags` is the application's but for bit 0, which arrives clear.
/// Messages of one sender arrive in the order of the calls, each once. Never waits for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL
/// (the queue to one peer or more is full; nothing was queued; GetLastErrorMessage names the peers).
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

/// Sends a message to one peer; to this node's own id, to the own ReceiveCallback. Arguments as
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
