//! Transfers: bytes of up to 64 MiB to one peer, beside the messages.

use std::ffi::{c_char, c_void};

use super::arguments::{payload, payload_of, peer_id as peer_id_argument};
use super::failure::Failure;
use super::guard::{command, opened};
use super::lifecycle::MmnRoom;
use super::state::note;
use crate::transfers::Buffer;

/// Longest transfer in bytes, for mmn_send_transfer.
pub const MMN_MAX_TRANSFER_BYTES: i32 = 67_108_864;
/// Longest tag of a transfer in bytes, for mmn_send_transfer.
pub const MMN_MAX_TRANSFER_TAG_BYTES: i32 = 1024;

/// Offers `length` bytes, at most MMN_MAX_TRANSFER_BYTES, to one peer, also while it is reconnecting.
/// The library copies `data` and `tag` before the call returns, and computes a digest: about 0.1 s for
/// 64 MiB. `tag` is the host's own, at most MMN_MAX_TRANSFER_TAG_BYTES: a file name, for example.
/// Either may be NULL when its length is 0. `*transfer`, unless `transfer` is NULL, receives the number
/// of the transfer, which no other transfer between the two members gets while both are in the room.
///
/// The peer's host receives MMN_EVENT_TRANSFER_OFFERED and has 60 s to answer. The bytes go below all
/// messages. A transfer outlives a lost link: it goes on from the byte that has arrived when the peer
/// returns. Both hosts receive MMN_EVENT_TRANSFER_PROGRESS, and exactly one MMN_EVENT_TRANSFER_RESULT;
/// it may come on another thread before the call returns. mmn_close ends this host's transfers without
/// an event.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also for this node's own id), MMN_NOT_INITIALIZED,
/// MMN_MESSAGE_TOO_LARGE (`data` or `tag` is too long), MMN_PEER_NOT_FOUND (neither connected nor
/// reconnecting), MMN_NOT_SUPPORTED (the peer's library has no transfers) or MMN_SEND_QUEUE_FULL (8
/// transfers to the peer have not ended; or all that have not ended would keep more than 134217728
/// bytes; or 64 events of earlier ones with the peer wait for this host). On failure no event follows, and
/// `*transfer` is unchanged.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, and `tag` to
/// `tag_length`; each may be NULL when its length is 0. `transfer` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_send_transfer(
    room: MmnRoom,
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    tag: *const u8,
    tag_length: i32,
    transfer: *mut u64,
) -> i32 {
    command("mmn_send_transfer", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let data = unsafe { payload(data, length) }?;
        // SAFETY: as above.
        let tag = unsafe { payload_of(["tag", "tag_length"], tag, tag_length) }?;
        // SAFETY: as above.
        let note = |number| unsafe { note(transfer, number) };
        opened(room)?.send_transfer_noting(&peer, data, tag, note)?;
        Ok(())
    })
}

/// Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED into `buffer`, which has `capacity` bytes: as
/// many as the transfer, or more. The library writes into it on its own threads. So `buffer` must stay
/// until MMN_EVENT_TRANSFER_RESULT, until mmn_cancel_transfer of it has returned MMN_OK, or until
/// mmn_close has returned, whichever comes first. Only a complete transfer has filled it.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also if `capacity` is too small: the offer then waits on),
/// MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that peer with that number waits: it was
/// answered or has ended). On failure the library does not use `buffer`.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `buffer` points to `capacity` writable bytes, which the host does not
/// use until then; it may be NULL when `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_accept_transfer(
    room: MmnRoom,
    peer_id: *const c_char,
    transfer: u64,
    buffer: *mut c_void,
    capacity: i32,
) -> i32 {
    command("mmn_accept_transfer", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        let room = opened(room)?;
        let buffer = HostBuffer::new(buffer.cast(), capacity)?;
        let capacity = buffer.capacity as u64;
        room.accept_transfer(&peer, transfer, Box::new(buffer), capacity)?;
        Ok(())
    })
}

/// Takes the transfer of an MMN_EVENT_TRANSFER_OFFERED in parts: an MMN_EVENT_TRANSFER_PART for each, in
/// order. At most 262144 bytes of them wait for this host; the sender waits while it takes none.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no offer of that
/// peer with that number waits: it was answered or has ended).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_accept_transfer_in_parts(
    room: MmnRoom,
    peer_id: *const c_char,
    transfer: u64,
) -> i32 {
    command("mmn_accept_transfer_in_parts", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        opened(room)?.accept_transfer_in_parts(&peer, transfer)?;
        Ok(())
    })
}

/// Refuses the offer of a transfer, or cancels a transfer that this host sends or receives. Both hosts
/// receive MMN_EVENT_TRANSFER_RESULT. Once this has returned MMN_OK, the library no longer uses the buffer
/// of mmn_accept_transfer. If the sender cancels while the last bytes arrive, its result is
/// MMN_TRANSFER_CANCELLED_BY_SENDER, although the receiver may have MMN_TRANSFER_COMPLETE.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (no transfer with
/// that peer has this number, or it has ended).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_cancel_transfer(
    room: MmnRoom,
    peer_id: *const c_char,
    transfer: u64,
) -> i32 {
    command("mmn_cancel_transfer", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        opened(room)?.cancel_transfer(&peer, transfer)?;
        Ok(())
    })
}

/// The host's memory for one transfer.
struct HostBuffer {
    start: *mut u8,
    capacity: usize,
}

// SAFETY: the host leaves the memory to the library until the transfer is over, on any thread.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    fn new(start: *mut u8, capacity: i32) -> Result<Self, Failure> {
        let Ok(capacity) = usize::try_from(capacity) else {
            return Err(Failure::invalid(format!(
                "capacity {capacity} is negative; give the bytes of the buffer"
            )));
        };
        if start.is_null() && capacity > 0 {
            return Err(Failure::invalid(format!(
                "buffer is NULL while capacity is {capacity}; give the buffer"
            )));
        }
        Ok(Self { start, capacity })
    }
}

impl Buffer for HostBuffer {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.saturating_add(bytes.len());
        assert!(end <= self.capacity, "beyond the buffer of a transfer");
        // SAFETY: these bytes lie in the buffer, which the host leaves to the library until the transfer is over. The
        // source is the library's own memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len())
        }
    }
}
