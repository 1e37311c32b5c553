//! Messages: how they are sent, and how they go through the leader.

use std::ffi::c_char;
use std::time::Duration;

use bytes::Bytes;

use super::arguments::{payload, peer_id as peer_id_argument};
use super::failure::Failure;
use super::growing::{Growing, read};
use super::guard::{command, count, opened, query};
use super::lifecycle::MmnRoom;
use super::values::{
    MMN_DELIVERY_RELIABLE_ORDERED, MMN_DELIVERY_RELIABLE_UNORDERED, MMN_DELIVERY_SEQUENCED,
    MMN_DELIVERY_UNRELIABLE, MMN_MIN_MESSAGE_TYPE, MMN_PRIORITY_HIGHEST, MMN_PRIORITY_LOW,
    MMN_SEND_PARTIAL,
};
use crate::error::SendError;
use crate::room::{DEFAULT_PRIORITY, OutMessage, Reliable, Room, SendMode, Unreliable};

/// The flag that the library reserves.
const LIBRARY_FLAG: u8 = 1;

/// Options of a message. NULL instead of them, or 0 in every field but struct_size, is a reliable
/// message of channel 0, in the order of the calls.
///
/// Later versions only append fields.
///
/// ```c
///     MmnSendOptions options = {0};
///     options.struct_size = sizeof options;
///     options.delivery = MMN_DELIVERY_SEQUENCED;
///     options.key = unit;
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnSendOptions {
    /// Set by the caller: sizeof(MmnSendOptions) as it was compiled.
    pub struct_size: u32,
    /// One of MMN_DELIVERY_... [MMN_DELIVERY_RELIABLE_ORDERED].
    pub delivery: u8,
    /// Channel that the receiver sees in MmnEvent.channel. With MMN_DELIVERY_RELIABLE_ORDERED
    /// each channel keeps its own order, and in the network no channel waits for another [0].
    pub channel: u8,
    /// Priority, MMN_PRIORITY_LOW to MMN_PRIORITY_HIGHEST: of the messages that wait for the link
    /// to a peer, the higher go first. Within a channel of MMN_DELIVERY_RELIABLE_ORDERED the order
    /// of the calls still holds [MMN_PRIORITY_NORMAL].
    pub priority: i8,
    /// 0 or MMN_SEND_PARTIAL (mmn_broadcast only) [0].
    pub flags: u8,
    /// Lifetime of the message, in milliseconds; 0 is unlimited. A message that waits longer, here
    /// or in the queue to the receiver's host, is dropped and counted. MMN_DELIVERY_UNRELIABLE and
    /// MMN_DELIVERY_SEQUENCED only [0].
    pub ttl_ms: u32,
    /// Flags of the host's own, which the receiver sees in MmnEvent.flags. Bit 0 arrives clear
    /// [0].
    pub user_flags: u8,
    /// 0.
    pub reserved: u8,
    /// 0.
    pub reserved2: u16,
    /// Subject of the message, as the host numbers it. MMN_DELIVERY_SEQUENCED only [0].
    pub key: u64,
}

impl Default for MmnSendOptions {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            delivery: MMN_DELIVERY_RELIABLE_ORDERED,
            channel: 0,
            priority: 0,
            flags: 0,
            ttl_ms: 0,
            user_flags: 0,
            reserved: 0,
            reserved2: 0,
            key: 0,
        }
    }
}

impl Growing for MmnSendOptions {
    const NAME: &'static str = "MmnSendOptions";
    const EARLIER: &'static [usize] = &[];
}

/// Sends a message to one peer, also while it is reconnecting. A message to this node's own id goes
/// to its own handlers. The library reads `data` during the call only; it may be NULL when `length`
/// is 0. `msg_type` is the host's own, MMN_MIN_MESSAGE_TYPE or more. Never waits for the network.
///
/// With MMN_DELIVERY_RELIABLE_ORDERED and MMN_DELIVERY_RELIABLE_UNORDERED, MMN_OK means that the
/// message is queued. It arrives once, even if a link is lost and comes back, unless the receiver
/// leaves or is given up. All reliable messages to a peer share one queue.
///
/// With MMN_DELIVERY_UNRELIABLE and MMN_DELIVERY_SEQUENCED, MMN_OK means that the message is queued
/// for the network. The call never returns MMN_SEND_QUEUE_FULL. When the queue is full, the library
/// drops the oldest message in it, or, while the peer is reconnecting, the new one.
/// MMN_EVENT_DATA_DROPPED counts both. These messages are never compressed, and no longer than
/// mmn_max_datagram_size. The peer receives them after MMN_EVENT_JOINED and before MMN_EVENT_LEFT.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also for an unknown value in `options`, ttl_ms or key with
/// a delivery that has none, and MMN_SEND_PARTIAL), MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE,
/// MMN_PEER_NOT_FOUND (neither connected nor reconnecting) or MMN_SEND_QUEUE_FULL (also if the peer
/// is reconnecting and missed a broadcast meanwhile). On failure nothing was queued.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
/// when `length` is 0. `options` is NULL, or points to struct_size readable bytes, the first four
/// of which are struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_send(
    room: MmnRoom,
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    options: *const MmnSendOptions,
) -> i32 {
    command("mmn_send", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let outgoing = unsafe { Outgoing::read(data, length, msg_type, options) }?;
        let room = opened(room)?;
        let (mode, message) = outgoing.to_some(&room)?;
        Ok(room.send_with(&peer, message, mode)?)
    })
}

/// Sends a message to all connected peers, or to none of them. Without peers it returns MMN_OK. The
/// other arguments and deliveries are as in mmn_send. In centralized mode the message goes to the
/// leader, which relays it: see mmn_set_centralized.
///
/// A member that is reconnecting gets a reliable message when it returns, as long as its queue has
/// room. It never causes MMN_SEND_QUEUE_FULL: it misses a message that does not fit, and all that
/// follow until it returns. MMN_EVENT_RETURNED counts these messages at both ends.
///
/// With MMN_SEND_PARTIAL the message goes to the peers whose queue has room. The function returns
/// their number (0 or more), and MMN_EVENT_SLOW_PEER names each of the others. In centralized mode,
/// where the leader queues broadcasts, the flag is not supported.
///
/// In centralized mode the message keeps delivery, channel, key and ttl_ms; the leader relays it
/// with MMN_PRIORITY_NORMAL. If the leader is lost, the next one does not relay messages with
/// MMN_DELIVERY_UNRELIABLE or MMN_DELIVERY_SEQUENCED.
///
/// Returns MMN_OK or a number of peers, MMN_INVALID_ARGUMENT (as mmn_send), MMN_NOT_INITIALIZED,
/// MMN_MESSAGE_TOO_LARGE, MMN_SEND_QUEUE_FULL (the queue to at least one peer is full;
/// mmn_last_error_message names the peers), MMN_NOT_SUPPORTED (MMN_SEND_PARTIAL in centralized
/// mode); in centralized mode also MMN_NOT_LEADER (no leader is known) and MMN_PEER_NOT_FOUND (the
/// leader is not connected to this node). On failure nothing was queued.
///
/// # Safety
/// `data` and `options` are as in mmn_send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_broadcast(
    room: MmnRoom,
    data: *const u8,
    length: i32,
    msg_type: u16,
    options: *const MmnSendOptions,
) -> i32 {
    count("mmn_broadcast", || {
        // SAFETY: the caller's promise, passed on.
        let outgoing = unsafe { Outgoing::read(data, length, msg_type, options) }?;
        let room = opened(room)?;
        let (mode, is_partial) = mode(&outgoing.options)?;
        let sent = room.broadcast_with(&outgoing.message(&room)?, mode, is_partial)?;
        // The number of peers is far below the limit of i32.
        Ok(match is_partial {
            true => i32::try_from(sent).unwrap_or(i32::MAX),
            false => 0,
        })
    })
}

/// Sends a message to the leader. On the leader itself it goes to the node's own handlers. The
/// other arguments and deliveries are as in mmn_send.
///
/// Returns what mmn_send returns, or MMN_NOT_LEADER (no leader is known). MMN_PEER_NOT_FOUND means
/// that the leader is not connected to this node. On failure nothing was queued.
///
/// # Safety
/// `data` and `options` are as in mmn_send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_send_to_leader(
    room: MmnRoom,
    data: *const u8,
    length: i32,
    msg_type: u16,
    options: *const MmnSendOptions,
) -> i32 {
    command("mmn_send_to_leader", || {
        // SAFETY: the caller's promise, passed on.
        let outgoing = unsafe { Outgoing::read(data, length, msg_type, options) }?;
        let room = opened(room)?;
        let (mode, message) = outgoing.to_some(&room)?;
        Ok(room.send_to_leader_with(message, mode)?)
    })
}

/// Sends a reliable message as the leader to all connected peers, or to none of them. Receivers
/// learn of this leadership before they get the message; peers that know a newer leader drop it.
/// The other arguments are as in mmn_send.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (as mmn_send, and with an unreliable delivery),
/// MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node is not the leader) or
/// MMN_SEND_QUEUE_FULL. On failure nothing was queued.
///
/// # Safety
/// `data` and `options` are as in mmn_send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_broadcast_as_leader(
    room: MmnRoom,
    data: *const u8,
    length: i32,
    msg_type: u16,
    options: *const MmnSendOptions,
) -> i32 {
    command("mmn_broadcast_as_leader", || {
        // SAFETY: the caller's promise, passed on.
        let outgoing = unsafe { Outgoing::read(data, length, msg_type, options) }?;
        let room = opened(room)?;
        let (how, message) = outgoing.reliable(&room)?;
        Ok(room.send_from_leader(&message, how)?)
    })
}

/// Forwards a reliable message on behalf of `from`, which is this node or a connected peer. Only
/// the leader may: receivers drop messages that any other member sends on behalf of another. The
/// message goes to the peer `to`, or, if `to` is NULL, to all connected peers except `from`, or to
/// none of them. If `to` is this node's own id, the message goes to its own handlers. The other
/// arguments are as in mmn_send.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (as mmn_broadcast_as_leader, and if `to` is `from`),
/// MMN_NOT_INITIALIZED, MMN_MESSAGE_TOO_LARGE, MMN_NOT_LEADER (this node is not the leader),
/// MMN_PEER_NOT_FOUND (`from` or `to` is not connected) or MMN_SEND_QUEUE_FULL. On failure nothing
/// was queued.
///
/// # Safety
/// `from` and `to` are NULL or end with a NUL. `data` and `options` are as in mmn_send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_forward(
    room: MmnRoom,
    from: *const c_char,
    to: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    options: *const MmnSendOptions,
) -> i32 {
    command("mmn_forward", || {
        // SAFETY: the caller's promise, passed on.
        let from = unsafe { peer_id_argument("from", from) }?;
        let to = match to.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(unsafe { peer_id_argument("to", to) }?),
        };
        // SAFETY: as above.
        let outgoing = unsafe { Outgoing::read(data, length, msg_type, options) }?;
        let room = opened(room)?;
        let (how, message) = outgoing.reliable(&room)?;
        Ok(room.forward(&from, to.as_ref(), message, how)?)
    })
}

/// The longest message in bytes that mmn_send takes for `peer_id` with MMN_DELIVERY_UNRELIABLE
/// or MMN_DELIVERY_SEQUENCED. If `peer_id` is NULL, the longest that mmn_broadcast takes: the least
/// of all connected peers, or without any peer the size that every new link carries. In centralized
/// mode it is less. It depends on the path of each link, and is 1100 or more (centralized: 850),
/// unless max_message_size is less: a message of that size always fits. It grows while a link
/// measures its path, and may shrink to 1100 again for a minute when long packets are lost. Never
/// waits for the network.
///
/// -1 if the peer is not connected (or is this node, which has no such limit), or before
/// initialization.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_max_datagram_size(room: MmnRoom, peer_id: *const c_char) -> i32 {
    count("mmn_max_datagram_size", || {
        let peer = if peer_id.is_null() {
            None
        } else {
            // SAFETY: the caller's promise, passed on.
            Some(unsafe { peer_id_argument("peer_id", peer_id) }?)
        };
        let size = opened(room)?.max_datagram_size(peer.as_ref());
        Ok(size.map_or(-1, |size| i32::try_from(size).unwrap_or(i32::MAX)))
    })
}

/// Sets whether this node's mmn_broadcast goes through the leader (not 0) or directly to all
/// peers (0, the default). The leader passes each broadcast to its own handlers and, with
/// auto-forward on, relays it to all members but its origin. Receivers see the origin as the
/// sender. Turn it on at all members of a centralized room.
///
/// The origin keeps a broadcast until the leader has queued it for every member. If that leader is
/// lost, the broadcast goes through the next one. While the queue to one member is full, the leader
/// reads nothing from origins whose broadcasts would go to that member.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_centralized(room: MmnRoom, enabled: u8) -> i32 {
    command("mmn_set_centralized", || {
        opened(room)?.set_centralized(enabled != 0);
        Ok(())
    })
}

/// Whether this node's broadcasts go through the leader: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_centralized(room: MmnRoom) -> u8 {
    query("mmn_centralized", || {
        Ok(u8::from(opened(room)?.is_centralized()))
    })
}

/// Sets whether this node, while it leads, relays the broadcasts of others to all members but their
/// origin (not 0), or only passes them to its own handlers (0), so that its host can relay
/// the approved ones with mmn_forward. The initial value is centralized_auto_forward of the
/// configuration.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_auto_forward(room: MmnRoom, enabled: u8) -> i32 {
    command("mmn_set_auto_forward", || {
        opened(room)?.set_auto_forward(enabled != 0);
        Ok(())
    })
}

/// Whether this node, while it leads, relays the broadcasts of others: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_auto_forward(room: MmnRoom) -> u8 {
    query("mmn_auto_forward", || {
        Ok(u8::from(opened(room)?.is_auto_forward()))
    })
}

/// Sets the payload length in bytes above which the library compresses with LZ4, if that saves at
/// least a quarter; 0 tries every payload. The initial value is compression_threshold of the
/// configuration. Compression costs time on the network thread. Receivers accept either form.
/// max_message_size applies to the uncompressed payload.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_compression_threshold(room: MmnRoom, bytes: u32) -> i32 {
    command("mmn_set_compression_threshold", || {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        opened(room)?.set_compression_threshold(bytes);
        Ok(())
    })
}

/// The arguments of a send whose pointers are read.
struct Outgoing<'a> {
    payload: &'a [u8],
    msg_type: u16,
    options: MmnSendOptions,
}

impl<'a> Outgoing<'a> {
    /// # Safety
    /// As [`payload`] and [`read`]; NULL options are the defaults.
    unsafe fn read(
        data: *const u8,
        length: i32,
        msg_type: u16,
        options: *const MmnSendOptions,
    ) -> Result<Self, Failure> {
        Ok(Self {
            // SAFETY: the caller's promise, passed on.
            payload: unsafe { payload(data, length) }?,
            msg_type,
            options: match options.is_null() {
                true => MmnSendOptions::default(),
                // SAFETY: as above.
                false => unsafe { read("options", options) }?,
            },
        })
    }

    /// The message, copied after its type and length are checked.
    fn message(&self, room: &Room) -> Result<OutMessage, Failure> {
        check_message(self.payload.len(), self.msg_type, room.max_message_size())?;
        Ok(OutMessage {
            payload: Bytes::copy_from_slice(self.payload),
            msg_type: self.msg_type,
            flags: self.options.user_flags & !LIBRARY_FLAG,
        })
    }

    /// The message for one receiver.
    fn to_some(&self, room: &Room) -> Result<(SendMode, OutMessage), Failure> {
        let (mode, is_partial) = mode(&self.options)?;
        if is_partial {
            return Err(Failure::invalid(format!(
                "options.flags has {MMN_SEND_PARTIAL} (partial), which is for a broadcast of this node's own; clear it"
            )));
        }
        Ok((mode, self.message(room)?))
    }

    /// The message of a leader, which is reliable.
    fn reliable(&self, room: &Room) -> Result<(Reliable, OutMessage), Failure> {
        match self.to_some(room)? {
            (SendMode::Reliable(how), message) => Ok((how, message)),
            (SendMode::Unreliable(_), _) => Err(Failure::invalid(format!(
                "options.delivery is {}; what a leader sends as such is reliable: give {MMN_DELIVERY_RELIABLE_ORDERED} or {MMN_DELIVERY_RELIABLE_UNORDERED}",
                self.options.delivery
            ))),
        }
    }
}

/// The delivery in the options, and whether the send is partial.
fn mode(options: &MmnSendOptions) -> Result<(SendMode, bool), Failure> {
    let MmnSendOptions {
        struct_size: _,
        delivery,
        channel,
        priority,
        flags,
        ttl_ms,
        user_flags: _,
        reserved,
        reserved2,
        key,
    } = *options;
    let invalid = |sentence| Err(Failure::invalid(sentence));
    if delivery > MMN_DELIVERY_SEQUENCED {
        return invalid(format!(
            "options.delivery is {delivery}; give 0 to {MMN_DELIVERY_SEQUENCED}"
        ));
    }
    if !(MMN_PRIORITY_LOW..=MMN_PRIORITY_HIGHEST).contains(&priority) {
        return invalid(format!(
            "options.priority is {priority}; give {MMN_PRIORITY_LOW} (low) to {MMN_PRIORITY_HIGHEST} (highest)"
        ));
    }
    if flags & !MMN_SEND_PARTIAL != 0 {
        return invalid(format!(
            "options.flags is {flags}; give 0, or {MMN_SEND_PARTIAL} (partial)"
        ));
    }
    if ttl_ms != 0 && delivery < MMN_DELIVERY_UNRELIABLE {
        return invalid(format!(
            "options.ttl_ms is {ttl_ms}, and a reliable message does not expire; give 0, or another delivery"
        ));
    }
    for (field, value) in [("reserved", reserved.into()), ("reserved2", reserved2)] {
        if value != 0 {
            return invalid(format!("options.{field} is {value}; give 0"));
        }
    }
    if key != 0 && delivery != MMN_DELIVERY_SEQUENCED {
        return invalid(format!(
            "options.key is {key}, and only a sequenced message has one; give 0"
        ));
    }
    let priority = DEFAULT_PRIORITY.saturating_add_signed(priority);
    let ttl = (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms.into()));
    let mode = match delivery {
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
    Ok((mode, flags & MMN_SEND_PARTIAL != 0))
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
    use std::mem::offset_of;

    use super::*;
    use crate::dispatch::Delivery;

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

    #[test]
    fn the_struct_has_24_bytes() {
        assert_eq!(size_of::<MmnSendOptions>(), 24);
        assert_eq!(offset_of!(MmnSendOptions, delivery), 4);
        assert_eq!(offset_of!(MmnSendOptions, ttl_ms), 8);
        assert_eq!(offset_of!(MmnSendOptions, user_flags), 12);
        assert_eq!(offset_of!(MmnSendOptions, key), 16);
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
        let outgoing = unsafe { Outgoing::read(std::ptr::null(), 0, 0x100, std::ptr::null()) };
        let outgoing = outgoing
            .map_err(|failure| failure.sentence)
            .expect("the defaults");
        let (mode, is_partial) = mode(&outgoing.options)
            .map_err(|failure| failure.sentence)
            .expect("allowed");
        assert_eq!((mode, is_partial), (SendMode::default(), false));
    }

    #[test]
    fn refuses_unknown_values_and_values_of_another_delivery() {
        let refused = |change: fn(&mut MmnSendOptions)| {
            let mut options = MmnSendOptions::default();
            change(&mut options);
            mode(&options).expect_err("refused").sentence
        };
        for (field, sentence) in [
            ("delivery is 4", refused(|options| options.delivery = 4)),
            ("priority is 3", refused(|options| options.priority = 3)),
            ("priority is -2", refused(|options| options.priority = -2)),
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
