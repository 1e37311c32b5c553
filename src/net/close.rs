//! Application close codes below the codes that carry an ABI code.

use quinn::VarInt;

/// The sender has left, or closes without a complaint about the receiver.
pub(crate) const DONE: VarInt = VarInt::from_u32(0);
/// The sender received nothing for the heartbeat timeout.
pub(crate) const LOST: VarInt = VarInt::from_u32(1);
/// The sender's host disconnected the receiver.
pub(crate) const DISCONNECTED: VarInt = VarInt::from_u32(2);
/// Another link between the same two peers is kept.
pub(crate) const SUPERSEDED: VarInt = VarInt::from_u32(3);
/// The receiver broke the protocol.
pub(crate) const VIOLATION: VarInt = VarInt::from_u32(4);
/// The room is over for the sender, which does not return.
pub(crate) const ROOM_ENDED: VarInt = VarInt::from_u32(5);
/// The sender continues in another room, where another member has the receiver's id.
pub(crate) const MOVED_FROM_DUPLICATE: VarInt = VarInt::from_u32(6);
/// The sender continues in another room, whose leader has banned the receiver.
pub(crate) const MOVED_FROM_BANNED: VarInt = VarInt::from_u32(7);
/// The receiver is a member of another room, which cannot merge with the sender's.
pub(crate) const OTHER_ROOM: VarInt = VarInt::from_u32(8);

/// Reason for giving up a link whose peer reads no control messages.
pub(crate) const STALLED: &str = "the control stream is stalled";
