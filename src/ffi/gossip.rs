//! The windows of the gossip strategy: how fast a room with MMN_STRATEGY_GOSSIP elects.

use std::time::Duration;

use super::failure::Failure;
use super::guard::{command, guard};
use crate::core::election::gossip::Windows;
use crate::runtime;

/// Sets how long a member of a room with MMN_STRATEGY_GOSSIP waits at most, after it opened the room, for the number of
/// members to stay the same, in milliseconds [15000]. Above 0. Then it takes part in elections; a leader that it
/// hears of ends the wait.
///
/// This setting and the three below may be changed before a room is open and while one is. They belong to the process: they
/// are in force from the next window on, and in all rooms that are opened later. With MMN_STRATEGY_RAFT they are kept and change
/// nothing. All members of a room should have the same.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn SetStartupGracePeriod(milliseconds: u32) -> i32 {
    set("SetStartupGracePeriod", milliseconds, |windows, length| {
        windows.startup_grace = length;
    })
}

/// What SetStartupGracePeriod set, or 15000. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn GetStartupGracePeriod() -> u32 {
    get("GetStartupGracePeriod", |windows| windows.startup_grace)
}

/// Sets how often the number of members is looked at during SetStartupGracePeriod, in milliseconds [1000]. Above 0: twice the
/// same number ends it.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn SetMembershipSampleInterval(milliseconds: u32) -> i32 {
    set(
        "SetMembershipSampleInterval",
        milliseconds,
        |windows, length| windows.sample_interval = length,
    )
}

/// What SetMembershipSampleInterval set, or 1000. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn GetMembershipSampleInterval() -> u32 {
    get("GetMembershipSampleInterval", |windows| {
        windows.sample_interval
    })
}

/// Sets how long a member waits for a word of the leader before it proposes itself, in milliseconds [10000]. Above 0. The leader
/// says twice in that time that it leads. Another follows one that is lost after half to twice that time, and
/// SetLeaderElectionDuration more.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderAliveThreshold(milliseconds: u32) -> i32 {
    set(
        "SetLeaderAliveThreshold",
        milliseconds,
        |windows, length| windows.alive_threshold = length,
    )
}

/// What SetLeaderAliveThreshold set, or 10000. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderAliveThreshold() -> u32 {
    get("GetLeaderAliveThreshold", |windows| windows.alive_threshold)
}

/// Sets how long a member that proposed itself collects the proposals of others, in milliseconds [5000]. Above 0. It leads then
/// unless a lower peer id proposed itself too, or leads. Where this is shorter than SetLeaderAliveThreshold, others may propose
/// themselves too late, and the leader may be another than the lowest; see MMN_GOSSIP_STRICT_LOWEST.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderElectionDuration(milliseconds: u32) -> i32 {
    set(
        "SetLeaderElectionDuration",
        milliseconds,
        |windows, length| windows.election_duration = length,
    )
}

/// What SetLeaderElectionDuration set, or 5000. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderElectionDuration() -> u32 {
    get("GetLeaderElectionDuration", |windows| {
        windows.election_duration
    })
}

/// How long proposals and declarations of others are remembered, so that an older one is not heard again: ten times
/// GetLeaderAliveThreshold, in milliseconds; UINT32_MAX is that much or more. Since version 4 of the ABI.
#[unsafe(no_mangle)]
pub extern "C" fn GetMsgExpirationTimeout() -> u32 {
    get("GetMsgExpirationTimeout", Windows::message_expiration)
}

/// How often a leader says that it leads: twice in GetLeaderAliveThreshold, in milliseconds, rounded down. Since version 4 of the
/// ABI.
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
