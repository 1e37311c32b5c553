//! Sends with a choice of delivery.

use std::ffi::c_char;
use std::time::Duration;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::failure::Failure;
use super::growing::{Growing, read};
use super::guard::{command, count, room};
use super::send::message;
use super::values::{
    MMN_DELIVERY_RELIABLE_ORDERED, MMN_DELIVERY_RELIABLE_UNORDERED, MMN_DELIVERY_SEQUENCED,
    MMN_DELIVERY_UNRELIABLE, MMN_MAX_PRIORITY, MMN_SEND_PARTIAL,
};
use crate::room::{DEFAULT_PRIORITY, Reliable, SendMode, Unreliable};

/// Delivery of a message by SendToPeerEx or BroadcastEx. NULL instead of it means the classic send:
/// the default of every field.
///
/// Later versions only append fields. Set struct_size, and every field that you do not use to its
/// default.
///
/// ```c
///     SendOptions options = {0};
///     options.struct_size = sizeof options;
///     options.delivery = MMN_DELIVERY_SEQUENCED;
///     options.priority = 1;
///     options.key = unit;
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SendOptions {
    /// Set by the caller: sizeof(SendOptions) as it was compiled.
    pub struct_size: u32,
    /// One of MMN_DELIVERY_... [MMN_DELIVERY_RELIABLE_ORDERED].
    pub delivery: u8,
    /// Channel that the receiver sees in NetworkEvent.channel. With MMN_DELIVERY_RELIABLE_ORDERED
    /// each channel keeps its own order, and in the network no channel waits for another [0].
    pub channel: u8,
    /// Priority, 0 to MMN_MAX_PRIORITY: of the messages that wait for the link to a peer, the
    /// higher go first. Within a channel of MMN_DELIVERY_RELIABLE_ORDERED the order of the calls
    /// still holds [1].
    pub priority: u8,
    /// 0 or MMN_SEND_PARTIAL (BroadcastEx only) [0].
    pub flags: u8,
    /// Lifetime of the message, in milliseconds; 0 is unlimited. A message that waits longer, here
    /// or in the queue to the receiver's host, is dropped and counted. MMN_DELIVERY_UNRELIABLE and
    /// MMN_DELIVERY_SEQUENCED only [0].
    pub ttl_ms: u32,
    /// 0.
    pub reserved: u32,
    /// Subject of the message, as the host numbers it. MMN_DELIVERY_SEQUENCED only [0].
    pub key: u64,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            delivery: MMN_DELIVERY_RELIABLE_ORDERED,
            channel: 0,
            priority: DEFAULT_PRIORITY,
            flags: 0,
            ttl_ms: 0,
            reserved: 0,
            key: 0,
        }
    }
}

impl Growing for SendOptions {
    const NAME: &'static str = "SendOptions";
    const EARLIER: &'static [usize] = &[];
}

/// Sends a message to one peer with the delivery in `options`; NULL means as SendToPeer. A message
/// to this node's own id goes to its own handlers. The other arguments are as in BroadcastMessage.
///
/// With MMN_DELIVERY_RELIABLE_ORDERED and MMN_DELIVERY_RELIABLE_UNORDERED, MMN_OK means what it means
/// for BroadcastMessage; all reliable messages to a peer share one queue.
///
/// With MMN_DELIVERY_UNRELIABLE and MMN_DELIVERY_SEQUENCED, MMN_OK means that the message is queued
/// for the network. The call never returns MMN_SEND_QUEUE_FULL. When the queue is full, the library
/// drops the oldest message in it, or, while the peer is reconnecting, the new one.
/// MMN_EVENT_DATA_DROPPED counts both. These messages are never compressed, and no longer than
/// GetMaxDatagramSize. The peer receives them after MMN_EVENT_JOINED and before MMN_EVENT_LEFT.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also for an unknown value in `options`, ttl_ms or key with
/// a delivery that has none, and MMN_SEND_PARTIAL), MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
/// MMN_PEER_NOT_FOUND or MMN_SEND_QUEUE_FULL. On failure nothing was queued. Since ABI version 9.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` is as in BroadcastMessage. `options` is NULL, or
/// points to struct_size readable bytes, the first four of which are struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToPeerEx(
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
    options: *const SendOptions,
) -> i32 {
    command("SendToPeerEx", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let payload = unsafe { payload(data, length) }?;
        // SAFETY: as above.
        let options = unsafe { read_options(options) }?;
        let room = room("SendToPeerEx")?;
        let (how, is_partial) = how(&options)?;
        if is_partial {
            return Err(Failure::invalid(
                "options.flags has MMN_SEND_PARTIAL, which is for BroadcastEx; clear it".to_owned(),
            ));
        }
        Ok(room.send_with(&peer, message(&room, payload, msg_type, flags)?, how)?)
    })
}

/// Sends a message to all connected peers with the delivery in `options`, or to none of them; NULL
/// means as BroadcastMessage. Deliveries are as in SendToPeerEx.
///
/// With MMN_SEND_PARTIAL the message goes to the peers whose queue has room. The function returns
/// their number (0 or more), and MMN_EVENT_SLOW_PEER names each of the others. In centralized mode,
/// where the leader queues broadcasts, the flag is not supported.
///
/// In centralized mode the message goes through the leader, whatever its delivery, and keeps
/// delivery, channel, key and ttl_ms; the leader relays it with priority 1. If the leader is lost,
/// the next one does not relay messages with MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED.
///
/// Returns MMN_OK or a number of peers, MMN_INVALID_ARGUMENT (as SendToPeerEx),
/// MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_SEND_QUEUE_FULL, MMN_NOT_SUPPORTED
/// (MMN_SEND_PARTIAL in centralized mode); in centralized mode also MMN_NOT_LEADER and
/// MMN_PEER_NOT_FOUND as BroadcastMessage. On failure nothing was queued. Since ABI version 9.
///
/// # Safety
/// `data` and `options` are as in SendToPeerEx.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn BroadcastEx(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
    options: *const SendOptions,
) -> i32 {
    count("BroadcastEx", || {
        // SAFETY: the caller's promise, passed on.
        let payload = unsafe { payload(data, length) }?;
        // SAFETY: as above.
        let options = unsafe { read_options(options) }?;
        let room = room("BroadcastEx")?;
        let (how, is_partial) = how(&options)?;
        let message = message(&room, payload, msg_type, flags)?;
        let took = room.broadcast_with(&message, how, is_partial)?;
        // The number of peers is far below the limit of i32.
        Ok(if is_partial {
            i32::try_from(took).unwrap_or(i32::MAX)
        } else {
            0
        })
    })
}

/// The longest message in bytes that SendToPeerEx takes for `peer_id` with MMN_DELIVERY_UNRELIABLE
/// or MMN_DELIVERY_SEQUENCED. If `peer_id` is NULL, the longest that BroadcastEx takes: the least
/// of all connected peers, or without any peer the size that every new link carries. In centralized
/// mode it is less. It depends on the path of each link, and is 1100 or more (centralized: 850),
/// unless max_message_size is less: a message of that size always fits. It grows while a link
/// measures its path, and may shrink to 1100 again for a minute when long packets are lost. Never
/// waits for the network.
/// network.
///
/// -1 if the peer is not connected (or is this node, which has no such limit), or before
/// initialization. Since ABI version 9; until version 10 also -1 while no peer is connected.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetMaxDatagramSize(peer_id: *const c_char) -> i32 {
    count("GetMaxDatagramSize", || {
        let peer = if peer_id.is_null() {
            None
        } else {
            // SAFETY: the caller's promise, passed on.
            Some(unsafe { peer_id_argument("peer_id", peer_id) }?)
        };
        let size = room("GetMaxDatagramSize")?.max_datagram_size(peer.as_ref());
        Ok(size.map_or(-1, |size| i32::try_from(size).unwrap_or(i32::MAX)))
    })
}

/// # Safety
/// As [`read`]; NULL is allowed and means the defaults.
unsafe fn read_options(options: *const SendOptions) -> Result<SendOptions, Failure> {
    if options.is_null() {
        return Ok(SendOptions::default());
    }
    // SAFETY: the caller's promise, passed on.
    unsafe { read("options", options) }
}

/// The delivery in the options, and whether the send is partial.
fn how(options: &SendOptions) -> Result<(SendMode, bool), Failure> {
    let SendOptions {
        struct_size: _,
        delivery,
        channel,
        priority,
        flags,
        ttl_ms,
        reserved,
        key,
    } = *options;
    let invalid = |sentence| Err(Failure::invalid(sentence));
    if delivery > MMN_DELIVERY_SEQUENCED {
        return invalid(format!(
            "options.delivery is {delivery}; give one of MMN_DELIVERY_..., 0 to {MMN_DELIVERY_SEQUENCED}"
        ));
    }
    if priority > MMN_MAX_PRIORITY {
        return invalid(format!(
            "options.priority is {priority}; give 0 to {MMN_MAX_PRIORITY}"
        ));
    }
    if flags & !MMN_SEND_PARTIAL != 0 {
        return invalid(format!(
            "options.flags is {flags}; give 0 or MMN_SEND_PARTIAL ({MMN_SEND_PARTIAL})"
        ));
    }
    if ttl_ms != 0 && delivery < MMN_DELIVERY_UNRELIABLE {
        return invalid(format!(
            "options.ttl_ms is {ttl_ms}, and a reliable message does not expire; give 0, or MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED"
        ));
    }
    if reserved != 0 {
        return invalid(format!("options.reserved is {reserved}; give 0"));
    }
    if key != 0 && delivery != MMN_DELIVERY_SEQUENCED {
        return invalid(format!(
            "options.key is {key}, and only a message with MMN_DELIVERY_SEQUENCED has one; give 0"
        ));
    }
    let ttl = (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms.into()));
    let how = match delivery {
        MMN_DELIVERY_UNRELIABLE | MMN_DELIVERY_SEQUENCED => SendMode::Unreliable(Unreliable {
            channel,
            priority,
            ttl,
            key: (delivery == MMN_DELIVERY_SEQUENCED).then_some(key),
        }),
        _ => SendMode::Reliable(Reliable {
            ordered: delivery != MMN_DELIVERY_RELIABLE_UNORDERED,
            channel,
            priority,
        }),
    };
    Ok((how, flags & MMN_SEND_PARTIAL != 0))
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::dispatch::Delivery;

    #[test]
    fn the_struct_has_24_bytes() {
        assert_eq!(size_of::<SendOptions>(), 24);
        assert_eq!(offset_of!(SendOptions, delivery), 4);
        assert_eq!(offset_of!(SendOptions, ttl_ms), 8);
        assert_eq!(offset_of!(SendOptions, key), 16);
    }

    #[test]
    fn the_headers_deliveries_are_the_librarys() {
        assert_eq!(
            Delivery::ReliableOrdered as u8,
            MMN_DELIVERY_RELIABLE_ORDERED
        );
        assert_eq!(
            Delivery::ReliableUnordered as u8,
            MMN_DELIVERY_RELIABLE_UNORDERED
        );
        assert_eq!(Delivery::Unreliable as u8, MMN_DELIVERY_UNRELIABLE);
        assert_eq!(Delivery::Sequenced as u8, MMN_DELIVERY_SEQUENCED);
    }

    #[test]
    fn null_means_the_classic_send() {
        // SAFETY: NULL is allowed.
        let options = unsafe { read_options(std::ptr::null()) };
        let options = options
            .map_err(|failure| failure.sentence)
            .expect("the defaults");
        let (how, is_partial) = how(&options)
            .map_err(|failure| failure.sentence)
            .expect("allowed");
        assert_eq!((how, is_partial), (SendMode::default(), false));
    }

    #[test]
    fn refuses_unknown_values_and_values_of_another_delivery() {
        let refused = |change: fn(&mut SendOptions)| {
            let mut options = SendOptions::default();
            change(&mut options);
            how(&options).expect_err("refused").sentence
        };
        for (field, sentence) in [
            ("delivery is 4", refused(|options| options.delivery = 4)),
            ("priority is 4", refused(|options| options.priority = 4)),
            ("flags is 2", refused(|options| options.flags = 2)),
            ("ttl_ms is 5", refused(|options| options.ttl_ms = 5)),
            (
                "ttl_ms is 5",
                refused(|options| {
                    options.delivery = 1;
                    options.ttl_ms = 5;
                }),
            ),
            ("reserved is 1", refused(|options| options.reserved = 1)),
            ("key is 9", refused(|options| options.key = 9)),
            (
                "key is 9",
                refused(|options| {
                    options.delivery = 2;
                    options.key = 9;
                }),
            ),
        ] {
            assert!(sentence.contains(&format!("options.{field}")), "{sentence}");
        }
    }
}
