//! The windows of the gossip strategy: how fast a room with MMN_STRATEGY_GOSSIP elects.

use std::time::Duration;

use super::failure::Failure;
use super::growing::{self, Growing};
use super::guard::{command, opened};
use super::lifecycle::MmnRoom;
use crate::core::election::gossip::Windows;

/// The windows of MMN_STRATEGY_GOSSIP, in milliseconds, all above 0. All members of a room should
/// use the same values.
///
/// Later versions only append fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MmnGossipWindows {
    /// Set by the caller: sizeof(MmnGossipWindows) as it was compiled.
    pub struct_size: u32,
    /// Longest time that a member waits after opening the room for the number of members to settle
    /// [15000]. After that it takes part in elections. The wait ends when it learns of a leader.
    pub startup_grace_ms: u32,
    /// Interval at which a member samples the number of members during startup_grace_ms [1000]. Two
    /// equal samples in a row end the wait.
    pub sample_interval_ms: u32,
    /// Time that a member waits for a declaration of the leader before it proposes itself [10000].
    /// The leader declares itself twice in that time. When the leader is lost, another leads after
    /// half to twice that time, plus election_duration_ms.
    pub alive_threshold_ms: u32,
    /// Time for which a member that proposed itself collects the proposals of others [5000]. Then
    /// it leads, unless a lower peer id also proposed itself or leads. If this is shorter than
    /// alive_threshold_ms, others may propose themselves too late, and the leader may not be the
    /// lowest id; see MMN_GOSSIP_STRICT_LOWEST.
    pub election_duration_ms: u32,
}

impl Default for MmnGossipWindows {
    fn default() -> Self {
        Self::of(size_of::<Self>() as u32, &Windows::default())
    }
}

impl Growing for MmnGossipWindows {
    const NAME: &'static str = "MmnGossipWindows";
    const EARLIER: &'static [usize] = &[];
}

impl MmnGossipWindows {
    fn of(struct_size: u32, windows: &Windows) -> Self {
        Self {
            struct_size,
            startup_grace_ms: millis(windows.startup_grace),
            sample_interval_ms: millis(windows.sample_interval),
            alive_threshold_ms: millis(windows.alive_threshold),
            election_duration_ms: millis(windows.election_duration),
        }
    }
}

/// Sets the windows of a room with MMN_STRATEGY_GOSSIP, from the next window on. With another
/// strategy they are stored and have no effect.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (nothing has changed) or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `windows` is NULL, or points to struct_size readable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_gossip_windows(
    room: MmnRoom,
    windows: *const MmnGossipWindows,
) -> i32 {
    command("mmn_set_gossip_windows", || {
        // SAFETY: the caller's promise, passed on.
        let windows = unsafe { growing::read("windows", windows) }?;
        let room = opened(room)?;
        Ok(room.set_windows(Windows {
            startup_grace: window("startup_grace_ms", windows.startup_grace_ms)?,
            sample_interval: window("sample_interval_ms", windows.sample_interval_ms)?,
            alive_threshold: window("alive_threshold_ms", windows.alive_threshold_ms)?,
            election_duration: window("election_duration_ms", windows.election_duration_ms)?,
        })?)
    })
}

/// Writes the windows of a room to `windows`, whose struct_size the caller has set.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `windows` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_gossip_windows(room: MmnRoom, windows: *mut MmnGossipWindows) -> i32 {
    command("mmn_gossip_windows", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { growing::struct_size("windows", windows) }?;
        let present = opened(room)?.windows();
        // SAFETY: as above.
        unsafe {
            growing::fill("windows", windows, |size| {
                MmnGossipWindows::of(size, &present)
            })
        }
    })
}

/// A window of this length, which the field or argument `name` has.
fn window(name: &str, milliseconds: u32) -> Result<Duration, Failure> {
    if milliseconds == 0 {
        let most = u32::MAX;
        return Err(Failure::invalid(format!(
            "{name} is 0; a window has 1 to {most} milliseconds"
        )));
    }
    Ok(Duration::from_millis(milliseconds.into()))
}

/// A number of milliseconds, or the largest.
pub(super) fn millis(length: Duration) -> u32 {
    length.as_millis().try_into().unwrap_or(u32::MAX)
}
