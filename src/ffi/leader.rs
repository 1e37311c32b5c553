//! The room's leader.

use std::ffi::c_char;

use super::arguments::peer_id as peer_id_argument;
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use super::options::strategy_number;
use super::strings::hand_out;
use crate::clock::Moment;
use crate::registry::{self, Handle};

/// Makes a connected peer, or this node, the leader. The room follows it until it is lost or
/// another is set. This node's own queries show the new leader when the call returns; the other
/// members follow within a round trip. MMN_EVENT_SET_LEADER_RESULT reports the outcome.
///
/// With MMN_QUORUM_STATIC only votes make a leader. There this call requests a
/// mmn_transfer_leadership from the present leader, which leads until the peer is elected. The
/// outcome is MMN_OK, MMN_REJECTED (the leader refused: it no longer leads, or the peer is not
/// connected to it or may not lead), MMN_TIMEOUT (the peer was not elected within the longest
/// election timeout) or MMN_SUPERSEDED (a later call of this node replaced this one).
///
/// The newest call wins. With a dynamic quorum, an isolated member that names itself therefore
/// leads the whole room once the network heals. To replace a lost leader, call
/// mmn_set_auto_election(1) instead.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules
/// reserve this for the leader; or, with MMN_QUORUM_STATIC, this node has no leader to ask),
/// MMN_PEER_NOT_FOUND (neither this node nor connected), MMN_REJECTED (the peer may not lead; or,
/// with MMN_QUORUM_STATIC, this node may have forgotten votes) or MMN_NOT_SUPPORTED (with any
/// strategy but MMN_STRATEGY_RAFT).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_leader(room: MmnRoom, peer_id: *const c_char) -> i32 {
    command("mmn_set_leader", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        Ok(opened(room)?.set_leader(&peer)?)
    })
}

/// Sets whether this node campaigns for leadership (not 0) or not (0). It votes for others either
/// way. With MMN_STRATEGY_GOSSIP it sets whether this node proposes itself, and with
/// MMN_STRATEGY_ETCD whether it has a key in the election. A leader keeps leading.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_auto_election(room: MmnRoom, enabled: u8) -> i32 {
    command("mmn_set_auto_election", || {
        Ok(opened(room)?.enable_auto_election(enabled != 0)?)
    })
}

/// Sets whether this node may lead (not 0, the default) or not (0). A node that may not lead is an
/// observer: it has no vote, counts for no majority, and mmn_set_leader refuses it. If it leads,
/// another member takes over at once; with MMN_STRATEGY_GOSSIP the others elect as after any loss,
/// and with MMN_STRATEGY_ETCD this node deletes its key, so that the next in line leads. With
/// MMN_QUORUM_STATIC a voter of quorum_roster still counts among the voters when it may not lead,
/// and a member that is not on the roster never leads.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_REJECTED (the room has a fixed host) or
/// MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED, where quorum_roster names the members that may
/// lead).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_eligible(room: MmnRoom, eligible: u8) -> i32 {
    command("mmn_set_eligible", || {
        Ok(opened(room)?.set_eligible(eligible != 0)?)
    })
}

/// Transfers the leadership to a connected peer. Only the leader may. The library asks the peer to
/// campaign at once, and this node leads until the peer is elected. The next leader is elected
/// rather than set: if mmn_set_leader named the present leader, that ends with the transfer. The
/// peer may be one that does not campaign by itself (mmn_set_auto_election).
///
/// MMN_OK means that the peer was asked. On success the leader changes with the reason
/// MMN_LEADER_TRANSFERRED. If the peer is lost, leaves or is not elected within the longest
/// election timeout, this node keeps leading. This node may report no leader (MMN_LEADER_RESIGNED)
/// for the round trip that the election takes. A second call with another peer replaces the first.
/// A call with this node itself cancels a pending transfer; a peer that was already asked may still
/// be elected.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND
/// (neither this node nor connected), MMN_REJECTED (the peer may not lead, or is a voter that may
/// have forgotten votes, or the room has a fixed host) or MMN_NOT_SUPPORTED (with any strategy but
/// MMN_STRATEGY_RAFT). On failure nothing has changed.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_transfer_leadership(room: MmnRoom, peer_id: *const c_char) -> i32 {
    command("mmn_transfer_leadership", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        Ok(opened(room)?.transfer_leadership(&peer)?)
    })
}

/// Transfers the leadership, as mmn_transfer_leadership does, to the peer that elections prefer:
/// the one with the highest priority, and of these the largest id. Only the leader may.
///
/// With MMN_STRATEGY_GOSSIP this node stops leading at once (MMN_LEADER_RESIGNED). It does not lead
/// again until another member has led, or for six times alive_threshold_ms. The others elect as
/// after any loss. If there are no others, this node leads again after that time.
///
/// With MMN_STRATEGY_ETCD this node resigns: it stops leading at once (MMN_LEADER_RESIGNED),
/// deletes its key, and campaigns again behind all waiting members. If none waits, it leads again.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (no connected peer may
/// lead; only with MMN_STRATEGY_RAFT), MMN_REJECTED (the room has a fixed host) or
/// MMN_NOT_SUPPORTED (with MMN_STRATEGY_SEEDED). On failure nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_yield_leadership(room: MmnRoom) -> i32 {
    command("mmn_yield_leadership", || {
        Ok(opened(room)?.yield_leadership()?)
    })
}

/// Sets the priority of this node in elections from now on. The highest priority campaigns first;
/// of equal ones the largest id. The default is 0, and any number is allowed. The priority decides
/// which member succeeds a lost leader, and never displaces a living one.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with any strategy but
/// MMN_STRATEGY_RAFT).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_priority(room: MmnRoom, priority: i32) -> i32 {
    command("mmn_set_priority", || {
        Ok(opened(room)?.set_priority(priority)?)
    })
}

/// The term of the newest claim to lead that this node knows: the leader's, if there is one. It
/// rises with every election and every mmn_set_leader, but an mmn_set_leader may restart it: compare
/// the epoch first. Not negative; always 0 with MMN_STRATEGY_GOSSIP, the version of the cluster
/// with MMN_STRATEGY_SEEDED, and the leader's fencing token with MMN_STRATEGY_ETCD. -1 when no room
/// is open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_leader_term(room: MmnRoom) -> i64 {
    query("mmn_leader_term", || {
        Ok(number(opened(room)?.snapshot().term))
    })
}

/// The number of mmn_set_leader calls that the newest claim to lead builds on. It never decreases.
/// Not negative, always 0 with MMN_QUORUM_STATIC and with any strategy but MMN_STRATEGY_RAFT; -1
/// when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_leader_epoch(room: MmnRoom) -> i64 {
    query("mmn_leader_epoch", || {
        Ok(number(opened(room)?.snapshot().epoch))
    })
}

/// The election strategy of this room: one of MMN_STRATEGY_... -1 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_strategy(room: MmnRoom) -> i32 {
    query("mmn_strategy", || {
        let strategy = opened(room)?.snapshot().strategy;
        Ok(strategy_number(strategy).cast_signed())
    })
}

/// The election rules keep terms and epochs below 2^49.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no
/// room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_leader(room: MmnRoom) -> *const c_char {
    query("mmn_leader", || {
        let snapshot = opened(room)?.snapshot();
        Ok(hand_out(
            snapshot
                .leader_at(Moment::now)
                .map_or("", |leader| leader.as_str()),
        ))
    })
}

/// Whether this node is the leader: 1 or 0. With MMN_STRATEGY_ETCD it is 0 from the moment at which
/// its lease may have ended, even if the process was stopped or the machine slept until then.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_is_leader(room: MmnRoom) -> u8 {
    if let Some(leads) = Handle::from_number(room).and_then(registry::leads) {
        return u8::from(leads);
    }
    query("mmn_is_leader", || {
        Ok(u8::from(opened(room)?.snapshot().leads(Moment::now)))
    })
}
