//! The windows of the gossip strategy: how fast a room with MMN_STRATEGY_GOSSIP elects.

use std::time::Duration;

use super::failure::Failure;
use super::guard::{command, guard};
use crate::core::election::gossip::Windows;
use crate::runtime;

/// Sets the longest time that a member of a room with MMN_STRATEGY_GOSSIP waits after opening the
/// room for the number of members to settle, in milliseconds [15000]. Above 0. After that it takes
/// part in elections. The wait ends when it learns of a leader.
///
/// The host may change this setting and the three below before a room is open and while one is.
/// They belong to the process: they apply from the next window on, and to all rooms opened later.
/// With MMN_STRATEGY_RAFT they are stored and have no effect. All members of a room should use the
/// same values.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn SetStartupGracePeriod(milliseconds: u32) -> i32 {
    set("SetStartupGracePeriod", milliseconds, |windows, length| {
        windows.startup_grace = length;
    })
}

/// The value of SetStartupGracePeriod, 15000 by default. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetStartupGracePeriod() -> u32 {
    get("GetStartupGracePeriod", |windows| windows.startup_grace)
}

/// Sets how often a member samples the number of members during SetStartupGracePeriod, in
/// milliseconds [1000]. Above 0. Two equal samples in a row end the wait.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn SetMembershipSampleInterval(milliseconds: u32) -> i32 {
    set(
        "SetMembershipSampleInterval",
        milliseconds,
        |windows, length| windows.sample_interval = length,
    )
}

/// The value of SetMembershipSampleInterval, 1000 by default. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetMembershipSampleInterval() -> u32 {
    get("GetMembershipSampleInterval", |windows| {
        windows.sample_interval
    })
}

/// Sets how long a member waits for a declaration of the leader before it proposes itself, in
/// milliseconds [10000]. Above 0. The leader declares itself twice in that time. When the leader is
/// lost, another leads after half to twice that time, plus SetLeaderElectionDuration.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderAliveThreshold(milliseconds: u32) -> i32 {
    set(
        "SetLeaderAliveThreshold",
        milliseconds,
        |windows, length| windows.alive_threshold = length,
    )
}

/// The value of SetLeaderAliveThreshold, 10000 by default. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderAliveThreshold() -> u32 {
    get("GetLeaderAliveThreshold", |windows| windows.alive_threshold)
}

/// Sets how long a member that proposed itself collects the proposals of others, in milliseconds
/// [5000]. Above 0. Then it leads, unless a lower peer id also proposed itself or leads. If this is
/// shorter than SetLeaderAliveThreshold, others may propose themselves too late, and the leader may
/// not be the lowest id; see MMN_GOSSIP_STRICT_LOWEST.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderElectionDuration(milliseconds: u32) -> i32 {
    set(
        "SetLeaderElectionDuration",
        milliseconds,
        |windows, length| windows.election_duration = length,
    )
}

/// The value of SetLeaderElectionDuration, 5000 by default. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderElectionDuration() -> u32 {
    get("GetLeaderElectionDuration", |windows| {
        windows.election_duration
    })
}

/// Time for which a member remembers proposals and declarations of others, so that it ignores older
/// ones: ten times GetLeaderAliveThreshold, in milliseconds, at most UINT32_MAX. Since ABI version
/// 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetMsgExpirationTimeout() -> u32 {
    get("GetMsgExpirationTimeout", Windows::message_expiration)
}

/// The interval at which a leader declares itself: half of GetLeaderAliveThreshold, in
/// milliseconds, rounded down. Since ABI version 4.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeadershipDeclarationInterval() -> u32 {
    get(
        "GetLeadershipDeclarationInterval",
        Windows::declaration_interval,
    )
}

fn set(function: &str, milliseconds: u32, change: impl FnOnce(&mut Windows, Duration)) -> i32 {
    command(function, || {
        if milliseconds == 0 {
            return Err(Failure::invalid(format!(
                "milliseconds is 0; {function} takes 1 to {}",
                u32::MAX
            )));
        }
        let length = Duration::from_millis(milliseconds.into());
        Ok(runtime::change_windows(|windows| change(windows, length))?)
    })
}

fn get(function: &str, length: impl FnOnce(&Windows) -> Duration) -> u32 {
    guard(function, || {
        let milliseconds = length(&runtime::windows()).as_millis();
        milliseconds.try_into().unwrap_or(u32::MAX)
    })
}
