//! The room's leader.

use std::ffi::c_char;

use super::arguments::peer_id as peer_id_argument;
use super::guard::{command, query, room};
use super::strings::hand_out;

/// Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set.
/// This node's own queries show the new leader when the call returns; the others follow within a round trip.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules leave this to
/// the leader), MMN_PEER_NOT_FOUND (neither this node nor connected), MMN_REJECTED (the peer may not lead) or
/// MMN_NOT_SUPPORTED (by the room's election strategy).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SetLeader(peer_id: *const c_char) -> i32 {
    command("SetLeader", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        Ok(room("SetLeader")?.set_leader(&peer)?)
    })
}

/// Lets this node campaign for leadership (not 0) or not (0). It votes for others either way.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (by the room's election strategy).
#[unsafe(no_mangle)]
pub extern "C" fn EnableAutoLeaderElection(enabled: u8) -> i32 {
    command("EnableAutoLeaderElection", || {
        Ok(room("EnableAutoLeaderElection")?.enable_auto_election(enabled != 0)?)
    })
}

/// Lets this node lead (not 0, the default) or not (0). One that may not lead is an observer: it has no vote, counts
/// for no majority, and SetLeader to it is refused. If it leads, another member takes over at once.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_REJECTED (in a room with a fixed host it is fixed who leads).
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderEligible(eligible: u8) -> i32 {
    command("SetLeaderEligible", || {
        Ok(room("SetLeaderEligible")?.set_eligible(eligible != 0)?)
    })
}

/// The leader's peer id. "" when there is none; never a peer that is known to be gone. NULL when no room is
/// open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn GetCurrentLeader() -> *const c_char {
    query("GetCurrentLeader", || {
        let snapshot = room("GetCurrentLeader")?.snapshot();
        Ok(hand_out(
            snapshot
                .leader
                .as_ref()
                .map_or("", |leader| leader.as_str()),
        ))
    })
}

/// Whether this node is the leader: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsLeader() -> u8 {
    query("IsLeader", || {
        Ok(u8::from(room("IsLeader")?.snapshot().is_leader))
    })
}
