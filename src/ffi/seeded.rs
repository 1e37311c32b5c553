//! The seeded strategy: its settings, and queries about the cluster.

use std::ffi::c_char;
use std::ptr;

use super::arguments::{checked_peer_id, text};
use super::events::member_state;
use super::growing::{Growing, fill};
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use super::values::*;
use crate::config::ConfigError;
use crate::core::election::extra::Cluster;
use crate::core::election::seeded::Intervals;

/// The settings of MMN_STRATEGY_SEEDED, for MmnOptions. Begin with the defaults:
///
///     MmnSeededOptions seeded = {0};
///     seeded.struct_size = sizeof seeded;
///     mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &seeded);
///
/// The default of each field is in brackets, for MMN_SEEDED_PROFILE_WAN and MMN_SEEDED_PROFILE_LAN.
/// The five intervals are the same for all members of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MmnSeededOptions {
    /// sizeof(MmnSeededOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// Whether this member is a seed: 0 is no, else yes [0]. The id of a seed must be on
    /// quorum_roster.
    pub is_seed: u32,
    /// The addresses of the seeds, 1 to MMN_MAX_SEEDS, one per line, each as mmn_connect takes
    /// it. Spaces around a line and empty lines are ignored. A seed may list itself. The library
    /// dials them, and dials them again for as long as it needs them. Required [NULL].
    pub seeds: *const c_char,
    /// Interval at which a member checks its deadlines, in milliseconds [500, 50]. Above 0.
    pub probe_interval_ms: u32,
    /// Time between two keep-alives, in milliseconds [10000, 200]. At least probe_interval_ms.
    pub heartbeat_interval_ms: u32,
    /// Silence after which the leader calls a member unreachable, and after which a leader without
    /// a majority resigns, in milliseconds [30000, 600]. Above heartbeat_interval_ms.
    pub heartbeat_timeout_ms: u32,
    /// Silence after which the leader removes a member, and after which the members elect another
    /// leader, in milliseconds [90000, 1500]. Above heartbeat_timeout_ms.
    pub ttl_timeout_ms: u32,
    /// Time between two attempts to join a cluster or to elect a leader, in milliseconds
    /// [5000, 250]. Above 0.
    pub retry_interval_ms: u32,
    /// 0.
    pub reserved: u32,
}

impl MmnSeededOptions {
    fn with(struct_size: u32, intervals: Intervals) -> Self {
        Self {
            struct_size,
            is_seed: 0,
            seeds: ptr::null(),
            probe_interval_ms: intervals.probe_interval_ms,
            heartbeat_interval_ms: intervals.heartbeat_interval_ms,
            heartbeat_timeout_ms: intervals.heartbeat_timeout_ms,
            ttl_timeout_ms: intervals.ttl_timeout_ms,
            retry_interval_ms: intervals.retry_interval_ms,
            reserved: 0,
        }
    }

    pub(super) fn intervals(&self) -> Intervals {
        Intervals {
            probe_interval_ms: self.probe_interval_ms,
            heartbeat_interval_ms: self.heartbeat_interval_ms,
            heartbeat_timeout_ms: self.heartbeat_timeout_ms,
            ttl_timeout_ms: self.ttl_timeout_ms,
            retry_interval_ms: self.retry_interval_ms,
        }
    }
}

impl Default for MmnSeededOptions {
    fn default() -> Self {
        Self::with(size_of::<Self>() as u32, Intervals::default())
    }
}

impl Growing for MmnSeededOptions {
    const NAME: &'static str = "MmnSeededOptions";
    const EARLIER: &'static [usize] = &[];
}

/// Fills `options` with the defaults of a profile: MMN_SEEDED_PROFILE_WAN or
/// MMN_SEEDED_PROFILE_LAN. The caller sets struct_size first. The library writes no byte beyond it,
/// nor beyond the fields that this version knows, and leaves struct_size as it is.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, struct_size is not a valid size, or
/// `profile` is neither of the two). On failure nothing is written.
///
/// # Safety
/// `options` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_default_seeded_options(
    profile: u32,
    options: *mut MmnSeededOptions,
) -> i32 {
    command("mmn_default_seeded_options", || {
        let intervals = match profile {
            MMN_SEEDED_PROFILE_WAN => Intervals::default(),
            MMN_SEEDED_PROFILE_LAN => Intervals::LAN,
            value => {
                return Err(ConfigError::NotAllowed {
                    field: "profile",
                    value,
                    allowed: "0 (WAN) and 1 (LAN)",
                }
                .into());
            }
        };
        // SAFETY: the caller's promise, passed on.
        unsafe {
            fill("options", options, |size| {
                MmnSeededOptions::with(size, intervals)
            })
        }
    })
}

/// The state of a member of the cluster, this node included: one of MMN_MEMBER_..., and
/// MMN_MEMBER_INIT for every peer that is not in the cluster. -1 when `peer_id` is not an id, no
/// room is open (both set mmn_last_error_code), or the room's strategy is not MMN_STRATEGY_SEEDED.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_member_state(room: MmnRoom, peer_id: *const c_char) -> i32 {
    query("mmn_member_state", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        checked_peer_id("peer_id", text)?;
        let snapshot = opened(room)?.snapshot();
        let cluster = snapshot.cluster.as_ref();
        Ok(cluster.map_or(-1, |cluster| member_state(cluster.state_of(text))))
    })
}

/// The version of the cluster, which grows with every leader. 0 before this node has entered a
/// cluster, and after it left one whose leader was lost for good. -1 when no room is open or its
/// strategy is not MMN_STRATEGY_SEEDED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_cluster_version(room: MmnRoom) -> i64 {
    query("mmn_cluster_version", || {
        let snapshot = opened(room)?.snapshot();
        let version = |cluster: &Cluster| i64::try_from(cluster.version).unwrap_or(i64::MAX);
        Ok(snapshot.cluster.as_ref().map_or(-1, version))
    })
}
