//! The result codes of the ABI. Each is defined here once: the header, `Code` in `error.rs` and the
//! bindings' names come from this file. The first paragraph of a code's text is what mmn_describe_error
//! returns.

/// Success.
pub const MMN_OK: i32 = 0;
/// The room is not open, or none is: open one first.
pub const MMN_NOT_INITIALIZED: i32 = -1;
/// The default room is already open: close it before opening it again.
pub const MMN_ALREADY_INITIALIZED: i32 = -2;
/// An argument is invalid: the last error's message names it and its limit.
pub const MMN_INVALID_ARGUMENT: i32 = -3;
/// The connection failed: the address is unreachable, no process listens there, or no socket could
/// be opened.
pub const MMN_CONNECTION_FAILED: i32 = -4;
/// No connected peer has this id, or no open join request has this number.
pub const MMN_PEER_NOT_FOUND: i32 = -5;
/// Only the leader may do this, or no leader is known.
pub const MMN_NOT_LEADER: i32 = -6;
/// A queue is full and nothing was queued: try again later or send less.
pub const MMN_SEND_QUEUE_FULL: i32 = -7;
/// The message is longer than max_message_size, or something of the room's state is longer than its
/// limit.
pub const MMN_MESSAGE_TOO_LARGE: i32 = -8;
/// A message could not be encoded or decoded.
pub const MMN_SERIALIZATION_ERROR: i32 = -9;
/// The peer is in another session: compare the session ids of both ends.
pub const MMN_SESSION_MISMATCH: i32 = -10;
/// Another member already has this peer id.
pub const MMN_DUPLICATE_PEER_ID: i32 = -11;
/// The peer speaks another version of the protocol.
pub const MMN_VERSION_MISMATCH: i32 = -12;
/// No place is free: max_connections at either end, the room's limit or its voters, or too many
/// attempts at a time.
pub const MMN_MAX_CONNECTIONS_REACHED: i32 = -13;
/// The peer is already connected: the existing connection stays.
pub const MMN_ALREADY_CONNECTED: i32 = -14;
/// The call would wait for itself: it is not allowed inside a callback, and one thread at a time
/// polls a room.
pub const MMN_WOULD_DEADLOCK: i32 = -15;
/// This election strategy or this build does not support the function.
pub const MMN_NOT_SUPPORTED: i32 = -16;
/// The peer has a different room secret or session id.
pub const MMN_AUTHENTICATION_FAILED: i32 = -17;
/// The request was refused: by the leader, its host, the room's rules, an earlier disconnect, or
/// because the lock is another's.
pub const MMN_REJECTED: i32 = -18;
/// No answer came in time.
pub const MMN_TIMEOUT: i32 = -19;
/// The peer has different room rules: the connection result and the log name the rule and both
/// values.
pub const MMN_POLICY_MISMATCH: i32 = -20;
/// A newer request replaced this one.
pub const MMN_SUPERSEDED: i32 = -21;
/// Too many recent attempts failed as an attempt with a wrong session id or secret does: try again
/// within a minute.
pub const MMN_RATE_LIMITED: i32 = -22;
/// The host name does not resolve, or no name server answered: check the name and the network
/// connection, or give an IP address.
pub const MMN_NAME_NOT_RESOLVED: i32 = -23;
/// The dialled member is also looking for a room: dial the member that created it.
pub const MMN_LOOKING_FOR_ROOM: i32 = -24;
/// A property has another version than the expected one, or its new owner is not in the room: nothing
/// has changed.
pub const MMN_CONFLICT: i32 = -25;
/// The room's properties have reached a limit, in number or in bytes, and nothing has changed: remove
/// some first.
pub const MMN_STATE_FULL: i32 = -26;
/// The library cannot know any more whether the room took the request: look at its state.
pub const MMN_OUTCOME_UNKNOWN: i32 = -27;
/// A bug in the library: please report it with the log.
pub const MMN_INTERNAL_ERROR: i32 = -99;
