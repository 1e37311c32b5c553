//! The room's leader.

use std::ffi::c_char;

use super::arguments::peer_id as peer_id_argument;
use super::guard::{command, query, room};
use super::strings::hand_out;
use super::values::{MMN_STRATEGY_GOSSIP, MMN_STRATEGY_RAFT};
use crate::core::wire::Strategy;

/// Makes a connected peer, or this node, the leader. The room follows it until it is lost or another is set.
/// This node's own queries show the new leader when the call returns; the others follow within a round trip.
/// MMN_EVENT_SET_LEADER_RESULT reports the outcome.
///
/// With MMN_QUORUM_STATIC votes alone make a leader: this call is TransferLeadership by the present leader, which a member
/// that does not lead asks for it. The present leader leads until the peer is elected. The outcome is 0, MMN_REJECTED (the
/// leader refused: it leads no longer, or the peer is not connected to it or may not lead), MMN_TIMEOUT (the peer was not
/// elected within the longest election timeout) or MMN_SUPERSEDED (a later call of this node took its place).
///
/// The newest call wins. So where the quorum is dynamic, an isolated member that names itself leads the whole room when the
/// network heals. To replace a leader that is lost, call EnableAutoLeaderElection(1) instead.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER (the room's rules leave this to
/// the leader; or with MMN_QUORUM_STATIC this node hears no leader that it could ask), MMN_PEER_NOT_FOUND (neither this
/// node nor connected), MMN_REJECTED (the peer may not lead) or MMN_NOT_SUPPORTED (with MMN_STRATEGY_GOSSIP).
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

/// Lets this node campaign for leadership (not 0) or not (0). It votes for others either way. With MMN_STRATEGY_GOSSIP: lets it
/// propose itself or not. A leader leads on.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (by the room's election strategy).
#[unsafe(no_mangle)]
pub extern "C" fn EnableAutoLeaderElection(enabled: u8) -> i32 {
    command("EnableAutoLeaderElection", || {
        Ok(room("EnableAutoLeaderElection")?.enable_auto_election(enabled != 0)?)
    })
}

/// Lets this node lead (not 0, the default) or not (0). One that may not lead is an observer: it has no vote, counts
/// for no majority, and SetLeader to it is refused. If it leads, another member takes over at once; with MMN_STRATEGY_GOSSIP
/// another is elected as after any loss. With MMN_QUORUM_STATIC a voter of quorum_roster that may not lead counts among
/// the voters still, and a member that is not on the roster never leads.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_REJECTED (in a room with a fixed host it is fixed who leads).
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderEligible(eligible: u8) -> i32 {
    command("SetLeaderEligible", || {
        Ok(room("SetLeaderEligible")?.set_eligible(eligible != 0)?)
    })
}

/// Hands the leadership over to a connected peer: it is told to be elected at once, and this node leads until it is.
/// The next leader is elected and not set: where SetLeader named the present one, that has ended then. It may be asked of a
/// peer that does not campaign by itself (EnableAutoLeaderElection). Only the leader may.
///
/// MMN_OK means that the peer was asked. The outcome is a change of the leader with the reason MMN_LEADER_TRANSFERRED;
/// where the peer is lost, leaves or is not elected within the longest election timeout, this node leads on as before.
/// This node itself may be told of no leader (MMN_LEADER_RESIGNED) for the round trip that the election takes. A second call with another peer takes the place of the first. A call with this node itself
/// cancels a pending transfer; a peer that was asked already may still be elected.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (neither this node
/// nor connected), MMN_REJECTED (the peer may not lead, or the room has a fixed host) or MMN_NOT_SUPPORTED (with
/// MMN_STRATEGY_GOSSIP). Nothing has changed then.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TransferLeadership(peer_id: *const c_char) -> i32 {
    command("TransferLeadership", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        Ok(room("TransferLeadership")?.transfer_leadership(&peer)?)
    })
}

/// Hands the leadership over as TransferLeadership does, to the peer that elections prefer: the one with the highest
/// priority, of these the one with the largest id. Only the leader may.
///
/// With MMN_STRATEGY_GOSSIP this node stops leading at once (MMN_LEADER_RESIGNED), and stays away from it until another member
/// leads, or for six times GetLeaderAliveThreshold. The others elect as after any loss; where there is nobody else, this
/// node leads again when that time is over.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, MMN_NOT_LEADER, MMN_PEER_NOT_FOUND (no connected peer may lead; not with
/// MMN_STRATEGY_GOSSIP) or MMN_REJECTED (the room has a fixed host). Nothing has changed then.
#[unsafe(no_mangle)]
pub extern "C" fn YieldLeadership() -> i32 {
    command("YieldLeadership", || {
        Ok(room("YieldLeadership")?.yield_leadership()?)
    })
}

/// How much elections prefer this node from now on: the higher priority campaigns first; of equal ones the larger id.
/// 0 is the default, any number is allowed. It decides who follows a leader that is lost, and takes no living leader's
/// place.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (with MMN_STRATEGY_GOSSIP).
#[unsafe(no_mangle)]
pub extern "C" fn SetElectionPriority(priority: i32) -> i32 {
    command("SetElectionPriority", || {
        Ok(room("SetElectionPriority")?.set_priority(priority)?)
    })
}

/// The term of the newest claim to lead that this node knows: that of the leader, where there is one. It grows with
/// every election and every SetLeader, though one SetLeader may begin it anew: compare the epoch first. Not negative,
/// always 0 with MMN_STRATEGY_GOSSIP; -1 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderTerm() -> i64 {
    query("GetLeaderTerm", || {
        Ok(number(room("GetLeaderTerm")?.snapshot().term))
    })
}

/// How many SetLeader calls the newest claim to lead builds on. It never falls. Not negative, always 0 with
/// MMN_STRATEGY_GOSSIP and with MMN_QUORUM_STATIC; -1 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderEpoch() -> i64 {
    query("GetLeaderEpoch", || {
        Ok(number(room("GetLeaderEpoch")?.snapshot().epoch))
    })
}

/// How this room elects its leader: MMN_STRATEGY_RAFT or MMN_STRATEGY_GOSSIP. -1 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn GetElectionStrategy() -> i32 {
    query("GetElectionStrategy", || {
        let number = match room("GetElectionStrategy")?.snapshot().strategy {
            Strategy::Raft => MMN_STRATEGY_RAFT,
            Strategy::Gossip { .. } => MMN_STRATEGY_GOSSIP,
        };
        Ok(number.cast_signed())
    })
}

/// The rules of elections keep terms and epochs below 2^49.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
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
