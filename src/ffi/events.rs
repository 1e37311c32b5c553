//! The event handler, which receives every event, and poll mode.

mod state;
#[cfg(test)]
mod tests;
mod transfers;

use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::failure::Failure;
use super::guard::{command, count, opened};
use super::lifecycle::MmnRoom;
use super::stats::path_constant;
use super::strings::{IdText, data_pointer};
use super::user_data::UserData;
use crate::core::election::seeded::MemberState;
use crate::core::election::{AssignOutcome, LeaderReason, LockOutcome};
use crate::core::event::MappingReport;
use crate::core::id::PeerId;
use crate::current_room;
use crate::dispatch::{
    ConnectionResult, Direction, EndReason, Event, EventHandler, LeaderChange, LeftReason, Report,
    Reported,
};
use crate::error::{Code, mapping_code, mapping_sentence, relay_sentence};

/// MmnEvent.kind: `peer` is connected. This event precedes the peer's first message.
///
/// - peer: the new peer.
pub const MMN_EVENT_JOINED: u32 = 1;
/// MmnEvent.kind: the link to `peer` is lost and the library is dialling it again. It keeps the
/// messages already accepted for the peer, and reliable messages that are sent meanwhile, as long
/// as the send queue has room.
///
/// - peer: the lost peer.
pub const MMN_EVENT_RECONNECTING: u32 = 2;
/// MmnEvent.kind: the link to `peer` is back. Messages that were queued for it arrive, once and
/// in order. `count` and `missed` count each lost message once. This event precedes everything that
/// the peer sends on the new link.
///
/// - peer: the peer that is back.
/// - count (undelivered): reliable messages of this host that the peer will not get. They were
///   broadcast while it was away and did not fit into its queue.
/// - missed: reliable messages of the peer that this host will not get.
pub const MMN_EVENT_RETURNED: u32 = 3;
/// MmnEvent.kind: `peer` is gone. This event follows the peer's last message.
///
/// - peer: the member that is gone.
/// - reason: one of MMN_LEFT_...
/// - code: number from the host that removed or disconnected the peer, else 0.
/// - data: bytes from the host that removed or disconnected the peer.
/// - count (undelivered): reliable messages for the peer that are not known to be delivered, and
///   that no MMN_EVENT_RETURNED has counted.
pub const MMN_EVENT_LEFT: u32 = 4;
/// MmnEvent.kind: `peer` sent `data`.
///
/// - peer (from): the sender.
/// - data: the message.
/// - msg_type (type): the sender's message type, 0x0100 or higher.
/// - flags: the sender's flags.
/// - channel: the channel that the sender named; 0 for the classic sends.
/// - delivery: one of MMN_DELIVERY_...
pub const MMN_EVENT_MESSAGE: u32 = 5;
/// MmnEvent.kind: this node's mmn_set_leader for `peer` has ended.
///
/// - peer: the member that mmn_set_leader named.
/// - success: 1 when the peer leads.
/// - code: MMN_OK, MMN_TIMEOUT, MMN_SUPERSEDED, MMN_REJECTED (with MMN_QUORUM_STATIC: the leader
///   refused the transfer) or another error.
pub const MMN_EVENT_SET_LEADER_RESULT: u32 = 6;
/// MmnEvent.kind: this node is no longer in the room. MMN_EVENT_LEFT follows for every member, with
/// MMN_LEFT_ROOM_ENDED (for a fixed host with the reason of its own departure). The host must still
/// call mmn_close.
///
/// - reason: one of MMN_END_...
/// - code: number from the leader's host, else 0.
/// - data: bytes from the leader's host.
pub const MMN_EVENT_ROOM_ENDED: u32 = 7;
/// MmnEvent.kind: `peer` leads, or no member does.
///
/// - peer (leader or none): the member that leads; "" means that no member does.
/// - other (previous or none): the previous leader as this handler last received it; "" for none.
/// - term: the leader's term.
/// - epoch: the number of mmn_set_leader calls that the change builds on.
/// - reason: one of MMN_LEADER_...
pub const MMN_EVENT_LEADER_CHANGED: u32 = 8;
/// MmnEvent.kind: this node now leads. The fields are those of the preceding
/// MMN_EVENT_LEADER_CHANGED.
///
/// - peer (leader or none): this node.
/// - other (previous or none): the previous leader; "" for none.
/// - term: the leader's term.
/// - epoch: the number of mmn_set_leader calls that the change builds on.
/// - reason: one of MMN_LEADER_...
pub const MMN_EVENT_LEADERSHIP_GAINED: u32 = 9;
/// MmnEvent.kind: this node no longer leads. The fields are those of the preceding
/// MMN_EVENT_LEADER_CHANGED.
///
/// - peer (leader or none): the member that leads now; "" means that no member does.
/// - other (previous or none): the previous leader; "" for none.
/// - term: the leader's term.
/// - epoch: the number of mmn_set_leader calls that the change builds on.
/// - reason: one of MMN_LEADER_...
pub const MMN_EVENT_LEADERSHIP_LOST: u32 = 10;
/// MmnEvent.kind: `peer` asks to join. The host answers with mmn_accept_join or mmn_reject_join.
///
/// - peer: the newcomer.
/// - other (address or none): the newcomer's address; "" if it is unknown, as over a relay.
/// - data (payload): the newcomer's join payload.
/// - request: the number that the answer names.
pub const MMN_EVENT_JOIN_REQUEST: u32 = 11;
/// MmnEvent.kind: discovery found a member in the local network.
///
/// - other (address): the member's address, for mmn_connect.
pub const MMN_EVENT_DISCOVERED: u32 = 12;
/// MmnEvent.kind: a call of mmn_connect has ended.
///
/// - other (address): the address as passed to mmn_connect.
/// - success: 1 when the peer is connected.
/// - code: MMN_OK or the reason. MMN_ALREADY_CONNECTED comes with success.
/// - peer (or none): the member that answered; "" if it is unknown.
/// - reason: number from the leader's host, if that rejected this node, or banned it with a reason
///   that the member that answered remembers; else 0.
/// - data: bytes from that host. Otherwise, of a failed dial, a sentence for the player, with a
///   remedy. With MMN_POLICY_MISMATCH it names the rule and both values; with
///   MMN_MAX_CONNECTIONS_REACHED the limit; with MMN_RATE_LIMITED the number of seconds for which no
///   attempt counts; with MMN_NAME_NOT_RESOLVED the resolver's answer; with MMN_TIMEOUT how far the
///   dial came or which side did not decide; with MMN_REJECTED the rule that refused it.
pub const MMN_EVENT_CONNECTION_RESULT: u32 = 13;
/// MmnEvent.kind: a call of mmn_broadcast with MMN_SEND_PARTIAL has left `peer` out, because the
/// queue to it is full. One event stands for all such broadcasts until the host receives it, and
/// for those of the second after that.
///
/// - peer: the peer whose queue is full.
pub const MMN_EVENT_SLOW_PEER: u32 = 14;
/// MmnEvent.kind: this node has dropped messages with MMN_DELIVERY_UNRELIABLE or
/// MMN_DELIVERY_SEQUENCED, because a queue was full, their ttl_ms was over, or the link is lost.
/// One event a second comes for each peer and direction, and one with the rest before
/// MMN_EVENT_LEFT. Messages that the network loses, or that a newer message replaces, are not
/// counted.
///
/// - peer: the peer at the other end.
/// - reason (direction): one of MMN_DROPPED_...
/// - count: messages dropped since the last such event.
pub const MMN_EVENT_DATA_DROPPED: u32 = 15;
/// MmnEvent.kind: with MMN_STRATEGY_SEEDED, the state of the member `peer` has changed. Up to 256 of
/// these events wait for a host that takes no events; beyond that it receives the newest state of
/// each member.
///
/// - peer: the member, which may be this node.
/// - reason (state): its new state, one of MMN_MEMBER_...
/// - term (version): the version of the cluster.
pub const MMN_EVENT_MEMBER_STATE: u32 = 16;
/// MmnEvent.kind: a call of mmn_acquire_lock or mmn_try_lock has ended.
///
/// - request: the number of the call.
/// - other (lock): the name of the lock.
/// - success: 1 when this node holds the lock.
/// - code: MMN_OK, MMN_REJECTED (mmn_try_lock: another member holds it), MMN_TIMEOUT, or
///   MMN_SUPERSEDED (mmn_release_lock or mmn_close came first).
/// - count (token): the fencing token, while this node holds the lock; else 0.
pub const MMN_EVENT_LOCK_RESULT: u32 = 17;
/// MmnEvent.kind: this node no longer holds a lock, since its lease has ended. Up to 256 of these
/// events wait for a host that takes no events; beyond that it receives the newest loss of each
/// lock.
///
/// - other (lock): the name of the lock.
/// - count (token): its fencing token.
pub const MMN_EVENT_LOCK_LOST: u32 = 18;
/// MmnEvent.kind: the members `peer` and `other` have no link, since `other` is connected to
/// max_connections members. Either may be this node; then the other one is no member here. Neither
/// receives the other's broadcasts. The hosts of both and of the leader receive this event once,
/// for as long as the link is missing.
///
/// - peer: one of the two members.
/// - other: the member that is connected to max_connections members.
pub const MMN_EVENT_UNLINKED_PEER: u32 = 22;
/// MmnEvent.kind: the ban of `peer` is void at this node. The leader has led for a few seconds,
/// has no such ban and does not know the member that set it: two rooms became one, for example. The
/// leader's host may ban again.
///
/// - peer: the banned id.
/// - other (leader): the leader.
pub const MMN_EVENT_BAN_DROPPED: u32 = 23;
/// MmnEvent.kind: a member that the library found and dialled by itself refused this node, or
/// this node refused that member. The library goes on by itself; the event is for the player. The
/// library reports it once a minute for each address and code. Two limits of 16 events a minute
/// apply: one to MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED and MMN_VERSION_MISMATCH, which
/// any process can cause, and one to the other codes.
///
/// - peer (or none): the member that answered; "" if it is unknown.
/// - other (address): the member's address; for one at a relay that of the relay, as in
///   MmnOptions.relays.
/// - found_by: one of MMN_FOUND_...
/// - code: MMN_DUPLICATE_PEER_ID, MMN_REJECTED, MMN_POLICY_MISMATCH, MMN_MAX_CONNECTIONS_REACHED,
///   MMN_SESSION_MISMATCH, MMN_AUTHENTICATION_FAILED or MMN_VERSION_MISMATCH.
/// - reason: as in MMN_EVENT_CONNECTION_RESULT.
/// - data: as in MMN_EVENT_CONNECTION_RESULT.
pub const MMN_EVENT_DISCOVERY_REFUSED: u32 = 21;
/// MmnEvent.kind: an MMN_EVENT_JOIN_REQUEST has ended without an answer of this host: the newcomer
/// is gone, the time is up, or another member decides now. A host may close its dialog.
///
/// - peer: the newcomer.
/// - request: the number of the request.
pub const MMN_EVENT_JOIN_WITHDRAWN: u32 = 24;
/// MmnEvent.kind: the host of `peer` takes no events: it has not called mmn_poll, or is still in a
/// callback. MMN_EVENT_HOST_BACK, MMN_EVENT_RECONNECTING or MMN_EVENT_LEFT ends it.
///
/// - peer: the peer.
/// - count (silent_ms): time without an event taken, in milliseconds: 5000 or more.
pub const MMN_EVENT_HOST_SILENT: u32 = 19;
/// MmnEvent.kind: the host of `peer` takes events again.
///
/// - peer: the peer.
pub const MMN_EVENT_HOST_BACK: u32 = 20;
/// MmnEvent.kind: with MMN_ENTRY_JOIN, this node has found no room yet. It goes on looking, and
/// reports this once.
///
/// - count (waited_ms): time without a room, in milliseconds.
pub const MMN_EVENT_NO_ROOM_FOUND: u32 = 25;
/// MmnEvent.kind: the messages to and from `peer` take another path from now on. The change loses
/// and reorders no reliable message. mmn_peer_path returns the path of a peer that has just joined
/// or returned. Up to 256 of these events wait for a host that takes no events; beyond that it
/// receives the newest of each peer.
///
/// - peer: the peer at the other end.
/// - other (carrier or none): the member that carries the packets from now on; "" if none does, as on a
///   direct path and over a relay.
/// - reason (path): the path from now on, one of MMN_PATH_...
/// - code (previous): the path before, one of MMN_PATH_...
pub const MMN_EVENT_PATH_CHANGED: u32 = 26;
/// MmnEvent.kind: this member has entered a relay of MmnOptions.relays, or is not in it. While it is
/// not, the library goes on trying, and links that need no relay stay. It reports a failure once,
/// until the reason changes or it succeeds. It also reports that a relay sees this member at another
/// address. Up to 64 of these events wait for a host that takes no events; beyond that it receives
/// the newest of each relay.
///
/// - other (relay): the relay's address as given in MmnOptions.relays.
/// - success: 1 when this member is in the relay.
/// - code: MMN_OK, MMN_CONNECTION_FAILED (the relay is unreachable, or the link to it is lost),
///   MMN_TIMEOUT (no answer: the relay is off, or the network blocks UDP),
///   MMN_NAME_NOT_RESOLVED, MMN_AUTHENTICATION_FAILED (another token, or another key than the
///   given one), MMN_MAX_CONNECTIONS_REACHED (the relay is full), MMN_RATE_LIMITED or
///   MMN_VERSION_MISMATCH.
/// - data: UTF-8. With success, the address at which the relay sees this member, as
///   mmn_public_address returns it; else a sentence for the player, with a remedy.
pub const MMN_EVENT_RELAY: u32 = 27;
/// MmnEvent.kind: the room has confirmed an action of mmn_submit. The hosts of all members receive the
/// same actions in the same order.
///
/// - peer (author): the member that submitted it, which may have left since.
/// - data: the action.
/// - msg_type (type): the author's message type, 0x0100 or higher.
/// - index: index of its entry. Within a history, entries have rising indexes.
/// - time_ms: time of its entry, in milliseconds since the room's first one.
/// - request: the number from mmn_submit, if this node is the author; else 0.
pub const MMN_EVENT_ACTION: u32 = 28;
/// MmnEvent.kind: a call of mmn_submit or mmn_set_properties has ended. This event follows those of the
/// call's entry.
///
/// - request: the number of the call.
/// - index: index of its entry; 0 if it has none, or this member no longer has it.
/// - code: MMN_OK; for a property set also MMN_CONFLICT, MMN_STATE_FULL or MMN_REJECTED, and then
///   nothing has changed; MMN_OUTCOME_UNKNOWN if this member was away for so long that it cannot know.
pub const MMN_EVENT_ACTION_RESULT: u32 = 29;
/// MmnEvent.kind: a property has changed, by mmn_set_properties, because its owner has left, or
/// because this member has taken over other members' state. mmn_property already shows it so.
///
/// - other (key): the name of the property.
/// - data (value): its value.
/// - owner (or none): its owner; "" if it has none.
/// - count (version): its version, for expected_version of MmnPropertyChange.
/// - success (exists): 1 when the property exists; else it has no value, owner or version.
/// - peer (author or none): the member that set it; "" if no mmn_set_properties did, or the state jumped.
/// - index: index of the entry that changed it, or that the state jumped to.
/// - time_ms: time of that entry, in milliseconds since the room's first one.
pub const MMN_EVENT_PROPERTY: u32 = 30;
/// MmnEvent.kind: the host begins anew with the actions: it replaces its state by the snapshot, and
/// receives the actions above `index`. Properties and members do not begin anew; events with their
/// differences follow.
///
/// - data (snapshot): a state that another member's host has provided; empty for the initial state.
/// - index: index of the last entry in that state.
/// - reason: one of MMN_RESET_...
/// - code: MMN_OK, or MMN_TIMEOUT if actions up to `index` are missing, because no host provided a
///   snapshot.
/// - count (undone): actions undone: the number of MMN_EVENT_ROLLED_BACK before this event.
pub const MMN_EVENT_STATE_RESET: u32 = 31;
/// MmnEvent.kind: the room has taken over another history, which lacks an action that this host has
/// received. One event comes for each such action, the lowest index first, before anything else of
/// that history.
///
/// - peer (author): the member that submitted it.
/// - data: the action.
/// - msg_type (type): the author's message type.
/// - index: the index that it had.
/// - request: the number from mmn_submit, if this node is the author; else 0. The library does not
///   submit it again.
pub const MMN_EVENT_ROLLED_BACK: u32 = 32;
/// MmnEvent.kind: another member's host needs a snapshot of this host's state, exactly as the events
/// before this one have made it. Copy the state inside this event, and pass it to
/// mmn_provide_snapshot then or later.
///
/// - request: the number for mmn_provide_snapshot.
/// - index: index of the last entry of which this host has received an event.
pub const MMN_EVENT_SNAPSHOT_WANTED: u32 = 33;
/// MmnEvent.kind: `peer` orders the requests to the room's state from now on, or no member does. Requests
/// wait until then.
///
/// - peer (leader or none): the member that orders; "" if the leader is lost.
/// - success (exclusive): 1 when a majority of the members that count answered the leader, or it is the
///   room's first; else the room has forked.
/// - epoch (history): the history that goes on, or begins.
/// - count (members): members that count for a majority.
/// - index: index of the last entry of which this host has received an event.
pub const MMN_EVENT_STATE_OPENED: u32 = 34;
/// MmnEvent.kind: a member has come into the room's state or gone from it: all hosts receive this at
/// the same place among the actions. Only a member that is here may own a property.
///
/// - peer: the member, which may be this node.
/// - success (here): 1 when it has come; else it has gone.
/// - index: index of the entry, or of the one that the state jumped to.
pub const MMN_EVENT_STATE_MEMBER: u32 = 35;
/// MmnEvent.kind: `peer` offers a transfer (mmn_send_transfer). The host answers within 60 s with
/// mmn_accept_transfer, mmn_accept_transfer_in_parts or mmn_cancel_transfer; it may do so in this event.
///
/// - peer (from): the sender.
/// - request (transfer): the number of the transfer.
/// - count (size): its length in bytes.
/// - data (tag): the sender's bytes about it.
pub const MMN_EVENT_TRANSFER_OFFERED: u32 = 39;
/// MmnEvent.kind: a transfer goes on. Both hosts receive this at most ten times a second for each
/// transfer, and none while an earlier one waits for the host.
///
/// - peer: the peer at the other end.
/// - request (transfer): the number of the transfer.
/// - count (size): its length in bytes.
/// - index (done): bytes that have arrived at the receiver.
pub const MMN_EVENT_TRANSFER_PROGRESS: u32 = 40;
/// MmnEvent.kind: a transfer is over. Each end receives this exactly once, before MMN_EVENT_LEFT of
/// `peer`.
///
/// - peer: the peer at the other end.
/// - request (transfer): the number of the transfer.
/// - count (size): its length in bytes.
/// - index (done): bytes that have arrived at the receiver, as far as this end knows.
/// - success: 1 when all of it has arrived.
/// - reason: one of MMN_TRANSFER_...
pub const MMN_EVENT_TRANSFER_RESULT: u32 = 41;
/// MmnEvent.kind: the next bytes of a transfer that this host takes with mmn_accept_transfer_in_parts.
///
/// - peer (from): the sender.
/// - request (transfer): the number of the transfer.
/// - index (offset): position of the first byte, from 0.
/// - data: the bytes, at most 16384.
pub const MMN_EVENT_TRANSFER_PART: u32 = 42;
/// MmnEvent.kind: the state of the port that MmnOptions.port_mapping asks the router for. The library
/// goes on asking after a failure, and reports it once, until the reason changes. Up to 64 of these
/// events wait for a host that takes no events; beyond that it receives the newest.
///
/// - success: 1 when the router claims to forward a port to this member, and what the others see does
///   not speak against it. Perhaps no member has seen anything yet.
/// - code: MMN_OK, MMN_TIMEOUT (the router does not answer), MMN_REJECTED (it refuses),
///   MMN_SERIALIZATION_ERROR (its answer makes no sense), MMN_CONNECTION_FAILED (the port leads from
///   nowhere: the router has no address of the internet, most members see this one at another address,
///   or several could not come through) or MMN_NOT_SUPPORTED (the room uses no IPv4 network whose
///   router can be found).
/// - data: UTF-8. With success, the address, as mmn_public_address returns it; else a sentence for
///   the player, with a remedy.
pub const MMN_EVENT_PORT_MAPPING: u32 = 43;
/// MmnEvent.kind: a TURN server of MmnOptions.turn or mmn_set_turn has given this member a port, or gives
/// none, or the port is lost. While this member has none, the library goes on trying, each server in turn;
/// links that do not go through the port stay. It reports a failure once, until the reason changes or it
/// succeeds. Up to 64 of these events wait for a host that takes no events; beyond that it receives the
/// newest of each server.
///
/// - other (server): the server's URL as given, without the credentials.
/// - success: 1 when this member has the port.
/// - code: MMN_OK, MMN_CONNECTION_FAILED (the server is unreachable, the connection to it is lost, it has
///   forgotten the port, or the list of mmn_set_turn lacks it),
///   MMN_TIMEOUT (no answer), MMN_NAME_NOT_RESOLVED, MMN_AUTHENTICATION_FAILED (it refuses the user name or
///   the password, perhaps as expired: pass others to mmn_set_turn; or its certificate is not trusted),
///   MMN_MAX_CONNECTIONS_REACHED (this user, or the server, has no free port), MMN_REJECTED (it refuses
///   for another reason) or MMN_SERIALIZATION_ERROR (what answers there is no TURN server).
/// - data: UTF-8. With success, the address at which the server receives for this member; else a sentence,
///   with the server's own code and words where it gave some.
pub const MMN_EVENT_TURN: u32 = 44;

/// MMN_EVENT_DISCOVERY_REFUSED: the member was found in the local network.
pub const MMN_FOUND_IN_LOCAL_NETWORK: i32 = 1;
/// MMN_EVENT_DISCOVERY_REFUSED: the member is one of the seeds in the options.
pub const MMN_FOUND_AS_SEED: i32 = 2;
/// MMN_EVENT_DISCOVERY_REFUSED: the member is present at a relay in the options.
pub const MMN_FOUND_AT_RELAY: i32 = 3;

/// MMN_EVENT_STATE_RESET: the host has received nothing before.
pub const MMN_RESET_JOINED: i32 = 0;
/// MMN_EVENT_STATE_RESET: this member no longer has the actions that follow the last one that the host
/// received.
pub const MMN_RESET_BEHIND: i32 = 1;
/// MMN_EVENT_STATE_RESET: the room has taken over a history with other actions.
pub const MMN_RESET_ROLLED_BACK: i32 = 2;

/// MMN_EVENT_TRANSFER_RESULT: all of it has arrived.
pub const MMN_TRANSFER_COMPLETE: i32 = 0;
/// MMN_EVENT_TRANSFER_RESULT: the sender's host cancelled it.
pub const MMN_TRANSFER_CANCELLED_BY_SENDER: i32 = 1;
/// MMN_EVENT_TRANSFER_RESULT: the receiver's host cancelled it after it had accepted it.
pub const MMN_TRANSFER_CANCELLED_BY_RECEIVER: i32 = 2;
/// MMN_EVENT_TRANSFER_RESULT: the receiver's host refused the offer.
pub const MMN_TRANSFER_REFUSED: i32 = 3;
/// MMN_EVENT_TRANSFER_RESULT: the receiver's host did not answer within 60 s, or its library within 75 s.
pub const MMN_TRANSFER_UNANSWERED: i32 = 4;
/// MMN_EVENT_TRANSFER_RESULT: the receiver's host takes no events, so the library refused the offer.
pub const MMN_TRANSFER_BUSY: i32 = 5;
/// MMN_EVENT_TRANSFER_RESULT: the peer has left; MMN_EVENT_LEFT follows with the reason.
pub const MMN_TRANSFER_PEER_LEFT: i32 = 6;
/// MMN_EVENT_TRANSFER_RESULT: the room is over.
pub const MMN_TRANSFER_ROOM_ENDED: i32 = 7;
/// MMN_EVENT_TRANSFER_RESULT: the bytes that arrived have another SHA-256 than the bytes that were sent. Please report it.
pub const MMN_TRANSFER_CORRUPT: i32 = 8;

/// mmn_member_state, MMN_EVENT_MEMBER_STATE: the peer is in no cluster.
pub const MMN_MEMBER_INIT: i32 = 0;
/// mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has accepted the member.
pub const MMN_MEMBER_JOINING: i32 = 1;
/// mmn_member_state, MMN_EVENT_MEMBER_STATE: the member takes part.
pub const MMN_MEMBER_ACTIVE: i32 = 2;
/// mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for
/// heartbeat_timeout_ms.
pub const MMN_MEMBER_UNREACHABLE: i32 = 3;
/// mmn_member_state, MMN_EVENT_MEMBER_STATE: the leader has not heard from the member for
/// ttl_timeout_ms, and removes it.
pub const MMN_MEMBER_LEAVING: i32 = 4;
/// MMN_EVENT_MEMBER_STATE: the leader has removed the member.
pub const MMN_MEMBER_REMOVED: i32 = 5;

/// MMN_EVENT_LEADER_CHANGED: the reason is unknown.
pub const MMN_LEADER_UNKNOWN: i32 = 0;
/// MMN_EVENT_LEADER_CHANGED: the leader was elected.
pub const MMN_LEADER_ELECTED: i32 = 1;
/// MMN_EVENT_LEADER_CHANGED: mmn_set_leader named the leader.
pub const MMN_LEADER_ASSIGNED: i32 = 2;
/// MMN_EVENT_LEADER_CHANGED: the previous leader transferred its leadership: it left, or called
/// mmn_transfer_leadership or mmn_yield_leadership.
pub const MMN_LEADER_TRANSFERRED: i32 = 3;
/// MMN_EVENT_LEADER_CHANGED: the leader already led when this node learned of it, by joining the
/// room or because two parts of the room merged.
pub const MMN_LEADER_FOUND: i32 = 4;
/// MMN_EVENT_LEADER_CHANGED: the leader fell silent, or this node lost its link to the leader.
pub const MMN_LEADER_LOST: i32 = 5;
/// MMN_EVENT_LEADER_CHANGED: the leader left, was removed, or is no longer eligible.
pub const MMN_LEADER_LEFT: i32 = 6;
/// MMN_EVENT_LEADER_CHANGED: the leader resigned: too few members answered it, or it yielded to a
/// higher claim.
pub const MMN_LEADER_RESIGNED: i32 = 7;

/// MMN_EVENT_LEFT: the peer left the room (mmn_close), or it belongs to another room, with which
/// this one cannot become one.
pub const MMN_LEFT_LEFT: i32 = 0;
/// MMN_EVENT_LEFT: the link was lost, and the peer did not return in time or automatic reconnection
/// is off.
pub const MMN_LEFT_LOST: i32 = 1;
/// MMN_EVENT_LEFT: the host at either end called mmn_disconnect.
pub const MMN_LEFT_DISCONNECTED: i32 = 2;
/// MMN_EVENT_LEFT: the peer restarted, or another process took its id.
pub const MMN_LEFT_REPLACED: i32 = 3;
/// MMN_EVENT_LEFT: the leader removed the peer from the room.
pub const MMN_LEFT_KICKED: i32 = 4;
/// MMN_EVENT_LEFT: the peer broke the protocol.
pub const MMN_LEFT_VIOLATION: i32 = 5;
/// MMN_EVENT_LEFT: the library stopped dialling the lost peer.
pub const MMN_LEFT_GAVE_UP: i32 = 6;
/// MMN_EVENT_LEFT: the room is over, for this node (MMN_EVENT_ROOM_ENDED precedes this event) or
/// for the peer.
pub const MMN_LEFT_ROOM_ENDED: i32 = 7;

/// MMN_EVENT_DATA_DROPPED: messages to the peer.
pub const MMN_DROPPED_SENT: i32 = 0;
/// MMN_EVENT_DATA_DROPPED: messages from the peer.
pub const MMN_DROPPED_RECEIVED: i32 = 1;

/// MMN_EVENT_ROOM_ENDED: the leader removed this node from the room.
pub const MMN_END_KICKED: i32 = 0;
/// MMN_EVENT_ROOM_ENDED: the room's fixed host left (mmn_close).
pub const MMN_END_HOST_LEFT: i32 = 1;
/// MMN_EVENT_ROOM_ENDED: the room's fixed host is lost: it did not return within member_hold_ms,
/// was given up before that, or broke the protocol.
pub const MMN_END_HOST_LOST: i32 = 2;
/// MMN_EVENT_ROOM_ENDED: the room's fixed host called mmn_disconnect for this member, or this
/// member called it for the fixed host.
pub const MMN_END_DISCONNECTED: i32 = 3;
/// MMN_EVENT_ROOM_ENDED: the room became one with another, in which another member has this node's
/// id, and all others are there.
pub const MMN_END_DUPLICATE_ID: i32 = 4;
/// MMN_EVENT_ROOM_ENDED: a fault inside the library ended this room. Other rooms of the process go
/// on. Please report the log's error.
pub const MMN_END_INTERNAL: i32 = 5;

/// An event. `kind` determines which fields are set, as the table of events shows; the others are 0
/// or "". The struct and everything that it points to are valid during the call only.
///
/// Later versions only append fields. Read the fields that lie within `struct_size`, and ignore
/// unknown kinds.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnEvent {
    /// The number of bytes of this struct that the library has set.
    pub struct_size: u32,
    /// One of MMN_EVENT_...
    pub kind: u32,
    /// A term, or the version of a cluster.
    pub term: u64,
    /// The number of mmn_set_leader calls that the leader's term builds on, or a history of the room's
    /// state.
    pub epoch: u64,
    /// The number of a join request, of a call for a lock, of a request that concerns the room's
    /// state, or of a transfer (unique together with the peer).
    pub request: u64,
    /// A number of messages, of milliseconds, of members, of actions or of bytes, the token of a lock, or
    /// the version of a property.
    pub count: u64,
    /// A peer id, or "". Never NULL.
    pub peer: *const c_char,
    /// Another peer id, an address, the name of a lock or of a property, or "". Never NULL.
    pub other: *const c_char,
    /// `length` bytes. Never NULL.
    pub data: *const u8,
    /// The number of bytes in `data`.
    pub length: i32,
    /// One of the constants that `kind` names.
    pub reason: i32,
    /// MMN_OK, an error, a host's own number, or one of the constants that `kind` names.
    pub code: i32,
    /// The sender's message type.
    pub msg_type: u16,
    /// The sender's flags.
    pub flags: u8,
    /// 1 or 0.
    pub success: u8,
    /// MMN_EVENT_RETURNED: messages that this host will not get.
    pub missed: u64,
    /// The index of `peer`, as mmn_peer_index returns it: 0 for this node, for a peer that is not
    /// in the room, and where there is no `peer`.
    pub peer_index: u32,
    /// MMN_EVENT_MESSAGE: the channel that the sender named; 0 for the classic sends.
    pub channel: u8,
    /// MMN_EVENT_MESSAGE: one of MMN_DELIVERY_...
    pub delivery: u8,
    /// MMN_EVENT_DISCOVERY_REFUSED: one of MMN_FOUND_...
    pub found_by: u16,
    /// The room of the event.
    pub room: MmnRoom,
    /// The index of an entry of the room's state, from 1, or a position in a transfer, from 0.
    pub index: u64,
    /// The time of an entry of the room's state, in milliseconds.
    pub time_ms: u64,
    /// MMN_EVENT_PROPERTY: the peer id of the owner, or "". Never NULL.
    pub owner: *const c_char,
}

/// Receives events. `user_data` is the pointer registered with the callback. The callbacks of a room
/// run one at a time and in order, on a thread of the library or, in poll mode, on the thread that
/// calls mmn_poll. Their arguments are valid during the call only. A callback may call every
/// function except mmn_close, mmn_poll, mmn_browse_close and mmn_browse_poll, and must not throw.
pub type MmnEventCallback = Option<extern "C" fn(user_data: *mut c_void, event: *const MmnEvent)>;

/// Releases the `user_data` registered with a callback.
pub type MmnDropCallback = Option<extern "C" fn(user_data: *mut c_void)>;

/// Sets the one handler for all events of a room, messages included; NULL removes it. It replaces
/// MmnOptions.on_event, which receives the room's events from the first one on. If a classic
/// callback for the same event is registered too, that callback runs first.
///
/// The new handler first receives the present state: the leader, if one is known, then
/// MMN_EVENT_JOINED for every peer, and MMN_EVENT_RECONNECTING for each whose link is lost. While a
/// handler is registered the library neither holds nor discards messages.
///
/// When the call returns, the previous handler is not running and never runs again: the call waits
/// for it, unless it is made inside a callback of this or another room. mmn_close removes the
/// handler.
///
/// The library calls `drop_fn` (NULL for none) exactly once with `user_data`, after the handler's
/// last call has ended: when the handler is replaced or removed, or before mmn_close returns. It
/// runs on the thread that made that call, or on the handler's thread. Inside `drop_fn` the rules
/// of a callback apply. It never runs in a forked child. With a NULL `callback`, and when this call
/// fails, the library does not use `user_data` and `drop_fn`.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a log callback.
///
/// # Safety
/// `callback` and `drop_fn` have these types, and may be called with `user_data` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_event_handler(
    room: MmnRoom,
    callback: MmnEventCallback,
    user_data: *mut c_void,
    drop_fn: MmnDropCallback,
) -> i32 {
    command("mmn_set_event_handler", || {
        let room = opened(room)?;
        let handler = handler(callback, user_data, drop_fn);
        room.set_event_handler(handler.map(|(handler, user_data)| {
            user_data.own();
            handler
        }));
        Ok(())
    })
}

/// The handler that calls `callback`, and the pointer that it passes on, which the library does not own yet.
pub(super) fn handler(
    callback: MmnEventCallback,
    user_data: *mut c_void,
    drop_fn: MmnDropCallback,
) -> Option<(EventHandler, Arc<UserData>)> {
    let callback = callback?;
    let user_data = Arc::new(UserData::borrowed(user_data, drop_fn));
    let passed_on = Arc::clone(&user_data);
    let handler = move |reported: Report<'_>| {
        notify(reported, |event| callback(passed_on.pointer(), event));
    };
    Some((Arc::new(handler), user_data))
}

/// In a room that was opened with hold_messages: from now on the event handler receives messages,
/// the ones that wait first. Until then the messages of others wait where they are, and slow their
/// senders down; the ones that this node sends to itself wait in the queue. 5 seconds after the room
/// opened, the library discards the messages that still wait, and all later ones until this call.
/// Messages that may be lost do not wait.
///
/// In other rooms, and at each later call, nothing changes.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a log callback.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_take_messages(room: MmnRoom) -> i32 {
    command("mmn_take_messages", || {
        opened(room)?.dispatch().take_messages();
        Ok(())
    })
}

/// In poll mode, runs the callbacks of up to `max` queued events and messages, in order, on the
/// calling thread. Returns at once and never waits for the network. Call it once per frame, on the
/// thread that should run the callbacks.
///
/// Events that no callback is registered for are skipped and do not count. An event that several
/// callbacks receive counts once.
///
/// Returns the number of events, 0 when the queue is empty, or an error, in which case nothing ran:
/// MMN_INVALID_ARGUMENT (`max` is not above 0, or the room is not in poll mode),
/// MMN_NOT_INITIALIZED or MMN_WOULD_DEADLOCK (inside a callback, or while another thread is in this
/// function).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_poll(room: MmnRoom, max: i32) -> i32 {
    count("mmn_poll", || {
        let most = usize::try_from(max)
            .ok()
            .filter(|most| *most > 0)
            .ok_or_else(|| {
                Failure::invalid(format!("max is {max}; give 1 or more events to run"))
            })?;
        let reported = opened(room)?.dispatch().poll(most)?;
        // At most `max`.
        Ok(i32::try_from(reported).unwrap_or(i32::MAX))
    })
}

/// Writes `reported` as a `MmnEvent` of the thread's room, and runs `call` on it.
fn notify(reported: Report<'_>, call: impl FnOnce(*const MmnEvent)) {
    let mut event = MmnEvent {
        // The struct has a few hundred bytes.
        struct_size: size_of::<MmnEvent>() as u32,
        kind: 0,
        term: 0,
        epoch: 0,
        request: 0,
        count: 0,
        peer: c"".as_ptr(),
        other: c"".as_ptr(),
        data: data_pointer(&[]),
        length: 0,
        reason: 0,
        code: 0,
        msg_type: 0,
        flags: 0,
        success: 0,
        missed: 0,
        peer_index: reported.peer_index,
        channel: 0,
        delivery: 0,
        found_by: 0,
        room: current_room::number(),
        index: 0,
        time_ms: 0,
        owner: c"".as_ptr(),
    };
    let ((peer, other, data), owner) = match reported.event {
        Reported::Room(of_room) => (fill_in(&mut event, of_room), None),
        Reported::State(of_state) => (
            state::fill_in(&mut event, of_state),
            state::owner(of_state).map(IdText::new),
        ),
    };
    if let Some(owner) = &owner {
        event.owner = owner.as_ptr();
    }
    let peer = peer.map(IdText::new);
    if let Some(peer) = &peer {
        event.peer = peer.as_ptr();
    }
    let other = (!other.is_empty()).then(|| [other.as_bytes(), &[0]].concat());
    if let Some(other) = &other {
        event.other = other.as_ptr().cast();
    }
    event.data = data_pointer(&data);
    // The sender checked that the length fits into 31 bits.
    event.length = i32::try_from(data.len()).unwrap_or(i32::MAX);
    call(&raw const event);
}

/// Sets the numbers of `event` of the room, and returns its peer, its other text and its bytes.
fn fill_in<'a>(
    event: &mut MmnEvent,
    reported: &'a Event,
) -> (Option<&'a PeerId>, Cow<'a, str>, Cow<'a, [u8]>) {
    let none = Cow::Borrowed("");
    let no_data = Cow::Borrowed(&[][..]);
    let leadership = |event: &mut MmnEvent, kind, change: &'a LeaderChange| {
        event.kind = kind;
        event.term = change.term;
        event.epoch = change.epoch;
        event.reason = leader_reason(change.reason);
        let old = change.old.as_ref().map_or("", PeerId::as_str);
        (change.new.as_ref(), old.into(), Cow::Borrowed(&[][..]))
    };
    let about_peer = |event: &mut MmnEvent, kind, peer: &'a PeerId| {
        event.kind = kind;
        (Some(peer), Cow::Borrowed(""), Cow::Borrowed(&[][..]))
    };
    let ended = |event: &mut MmnEvent, kind, result: &'a ConnectionResult| {
        event.kind = kind;
        event.success = result.success.into();
        event.code = result.code;
        event.reason = result.reason;
        let target = Cow::Borrowed(result.target.as_str());
        (
            result.peer.as_ref(),
            target,
            Cow::Borrowed(&result.bytes[..]),
        )
    };
    match reported {
        Event::Joined(peer) => about_peer(event, MMN_EVENT_JOINED, peer),
        Event::Reconnecting(peer) => about_peer(event, MMN_EVENT_RECONNECTING, peer),
        Event::Returned(returned) => {
            event.count = returned.undelivered;
            event.missed = returned.missed;
            about_peer(event, MMN_EVENT_RETURNED, &returned.peer)
        }
        Event::Left(left) => {
            event.kind = MMN_EVENT_LEFT;
            event.reason = left_reason(left.why);
            event.code = left.code;
            event.count = left.undelivered;
            (Some(&left.peer), none, left.bytes.as_slice().into())
        }
        Event::Message(message) => {
            event.kind = MMN_EVENT_MESSAGE;
            event.msg_type = message.msg_type;
            event.flags = message.flags;
            event.channel = message.channel;
            event.delivery = message.delivery as u8;
            (
                Some(&message.from),
                none,
                Cow::Borrowed(&message.payload[..]),
            )
        }
        Event::Transfer(transfer) => transfers::fill_in(event, transfer),
        Event::SlowPeer(peer) => about_peer(event, MMN_EVENT_SLOW_PEER, peer),
        Event::DataDropped {
            peer,
            direction,
            count,
        } => {
            event.count = *count;
            event.reason = match direction {
                Direction::Sent => MMN_DROPPED_SENT,
                Direction::Received => MMN_DROPPED_RECEIVED,
            };
            about_peer(event, MMN_EVENT_DATA_DROPPED, peer)
        }
        Event::LeaderChanged(change) => leadership(event, MMN_EVENT_LEADER_CHANGED, change),
        Event::LeadershipGained(change) => leadership(event, MMN_EVENT_LEADERSHIP_GAINED, change),
        Event::LeadershipLost(change) => leadership(event, MMN_EVENT_LEADERSHIP_LOST, change),
        Event::ConnectionResult(result) => ended(event, MMN_EVENT_CONNECTION_RESULT, result),
        Event::DiscoveryRefused(refused) => {
            event.found_by = refused.found_by as u16;
            ended(event, MMN_EVENT_DISCOVERY_REFUSED, &refused.result)
        }
        Event::SetLeaderResult { target, outcome } => {
            event.success = u8::from(*outcome == AssignOutcome::Done);
            event.code = outcome_code(*outcome).value();
            about_peer(event, MMN_EVENT_SET_LEADER_RESULT, target)
        }
        Event::MemberState {
            peer,
            state,
            version,
        } => {
            event.reason = member_state(*state);
            event.term = *version;
            about_peer(event, MMN_EVENT_MEMBER_STATE, peer)
        }
        Event::LockResult {
            request,
            name,
            outcome,
        } => {
            event.kind = MMN_EVENT_LOCK_RESULT;
            event.request = *request;
            event.success = matches!(outcome, LockOutcome::Held { .. }).into();
            event.code = lock_code(*outcome).value();
            if let LockOutcome::Held { token } = outcome {
                event.count = *token;
            }
            (None, name.as_ref().into(), no_data)
        }
        Event::LockLost { name, token } => {
            event.kind = MMN_EVENT_LOCK_LOST;
            event.count = *token;
            (None, name.as_ref().into(), no_data)
        }
        Event::Unlinked { peer, other } => {
            event.kind = MMN_EVENT_UNLINKED_PEER;
            (Some(peer), other.as_str().into(), no_data)
        }
        Event::BanDropped { peer, leader } => {
            event.kind = MMN_EVENT_BAN_DROPPED;
            (Some(peer), leader.as_str().into(), no_data)
        }
        Event::PathChanged { peer, old, new } => {
            event.kind = MMN_EVENT_PATH_CHANGED;
            event.reason = path_constant(new).cast_signed();
            event.code = path_constant(old).cast_signed();
            let carrier = new.carrier().map_or("", PeerId::as_str);
            (Some(peer), carrier.into(), no_data)
        }
        Event::Relay(report) => {
            event.kind = MMN_EVENT_RELAY;
            event.success = (report.code == Code::Ok.value()).into();
            event.code = report.code;
            let data = match report.observed {
                Some(address) => address.to_string().into_bytes().into(),
                None => relay_sentence(report.code).as_bytes().into(),
            };
            (None, report.relay.as_ref().into(), data)
        }
        Event::PortMapping(report) => {
            event.kind = MMN_EVENT_PORT_MAPPING;
            let data = match report {
                MappingReport::Mapped(address) => {
                    event.success = 1;
                    address.to_string().into_bytes().into()
                }
                MappingReport::Failed(fault) => {
                    event.code = mapping_code(*fault).value();
                    mapping_sentence(*fault).as_bytes().into()
                }
            };
            (None, none, data)
        }
        Event::Turn(report) => {
            event.kind = MMN_EVENT_TURN;
            event.success = report.address.is_some().into();
            event.code = report.code;
            let data = match report.address {
                Some(address) => address.to_string().into_bytes().into(),
                None => report.why.as_bytes().into(),
            };
            (None, report.server.as_ref().into(), data)
        }
        Event::RoomEnded { why, code, bytes } => {
            event.kind = MMN_EVENT_ROOM_ENDED;
            event.reason = end_reason(*why);
            event.code = *code;
            (None, none, bytes.as_slice().into())
        }
        Event::JoinRequest {
            request,
            peer,
            address,
            payload,
        } => {
            event.kind = MMN_EVENT_JOIN_REQUEST;
            event.request = *request;
            let address = address.map(|address| address.to_string());
            (
                Some(peer),
                address.unwrap_or_default().into(),
                payload.as_slice().into(),
            )
        }
        Event::JoinWithdrawn { request, peer } => {
            event.kind = MMN_EVENT_JOIN_WITHDRAWN;
            event.request = *request;
            (Some(peer), none, no_data)
        }
        Event::HostSilent { peer, silent } => {
            event.count = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
            about_peer(event, MMN_EVENT_HOST_SILENT, peer)
        }
        Event::HostBack(peer) => about_peer(event, MMN_EVENT_HOST_BACK, peer),
        Event::NoRoomFound(waited) => {
            event.kind = MMN_EVENT_NO_ROOM_FOUND;
            event.count = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            (None, none, no_data)
        }
        Event::Discovered { address } => {
            event.kind = MMN_EVENT_DISCOVERED;
            (None, address.as_str().into(), no_data)
        }
    }
}

/// The number of a state.
pub(super) fn member_state(state: MemberState) -> i32 {
    match state {
        MemberState::Init => MMN_MEMBER_INIT,
        MemberState::Joining => MMN_MEMBER_JOINING,
        MemberState::Active => MMN_MEMBER_ACTIVE,
        MemberState::Unreachable => MMN_MEMBER_UNREACHABLE,
        MemberState::Leaving => MMN_MEMBER_LEAVING,
        MemberState::Removed => MMN_MEMBER_REMOVED,
    }
}

fn outcome_code(outcome: AssignOutcome) -> Code {
    match outcome {
        AssignOutcome::Done => Code::Ok,
        AssignOutcome::Timeout => Code::Timeout,
        AssignOutcome::Superseded => Code::Superseded,
        AssignOutcome::Rejected => Code::Rejected,
    }
}

fn lock_code(outcome: LockOutcome) -> Code {
    match outcome {
        LockOutcome::Held { .. } => Code::Ok,
        LockOutcome::Taken => Code::Rejected,
        LockOutcome::TimedOut => Code::Timeout,
        LockOutcome::Cancelled => Code::Superseded,
    }
}

fn leader_reason(reason: LeaderReason) -> i32 {
    match reason {
        LeaderReason::None => MMN_LEADER_UNKNOWN,
        LeaderReason::Elected => MMN_LEADER_ELECTED,
        LeaderReason::Assigned => MMN_LEADER_ASSIGNED,
        LeaderReason::Transferred => MMN_LEADER_TRANSFERRED,
        LeaderReason::Found => MMN_LEADER_FOUND,
        LeaderReason::Lost => MMN_LEADER_LOST,
        LeaderReason::Left => MMN_LEADER_LEFT,
        LeaderReason::Resigned => MMN_LEADER_RESIGNED,
    }
}

fn left_reason(reason: LeftReason) -> i32 {
    match reason {
        LeftReason::Left => MMN_LEFT_LEFT,
        LeftReason::Lost => MMN_LEFT_LOST,
        LeftReason::Disconnected => MMN_LEFT_DISCONNECTED,
        LeftReason::Replaced => MMN_LEFT_REPLACED,
        LeftReason::Kicked => MMN_LEFT_KICKED,
        LeftReason::Violation => MMN_LEFT_VIOLATION,
        LeftReason::GaveUp => MMN_LEFT_GAVE_UP,
        LeftReason::RoomEnded => MMN_LEFT_ROOM_ENDED,
    }
}

fn end_reason(reason: EndReason) -> i32 {
    match reason {
        EndReason::Kicked => MMN_END_KICKED,
        EndReason::HostLeft => MMN_END_HOST_LEFT,
        EndReason::HostLost => MMN_END_HOST_LOST,
        EndReason::Disconnected => MMN_END_DISCONNECTED,
        EndReason::DuplicateId => MMN_END_DUPLICATE_ID,
        EndReason::Internal => MMN_END_INTERNAL,
    }
}
