//! A bad network for developers.

use std::ffi::c_char;
use std::time::Duration;

use super::arguments::text;
use super::guard::{command, opened};
use super::lifecycle::MmnRoom;
use crate::simulated::SimulatedNetwork;

/// Simulates a bad network, so that a developer can try a game on one machine under the players'
/// conditions. From now on each packet that this node sends waits `lag_ms` (0 to 10000) and a
/// random time up to `jitter_ms` (0 to 10000) more, so that packets overtake each other;
/// `loss_permille` (0 to 1000) packets in a thousand are lost. 0, 0, 0 ends it, which is how a room
/// begins. Call it at every member for both directions of a link. Round trips (mmn_peer_rtt_ms),
/// losses and reconnections follow, as on a real line. It does not affect discovery in the local
/// network. While it is on, the log repeats that every minute, as a warning.
///
/// At most 8192 packets wait; further ones are lost. Takes effect at once and waits for nothing.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT or MMN_NOT_INITIALIZED; after an error nothing has changed.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_simulate_network(
    room: MmnRoom,
    lag_ms: u32,
    jitter_ms: u32,
    loss_permille: u32,
) -> i32 {
    command("mmn_simulate_network", || {
        let network = SimulatedNetwork {
            lag: Duration::from_millis(lag_ms.into()),
            jitter: Duration::from_millis(jitter_ms.into()),
            loss_permille,
        };
        network.check()?;
        Ok(opened(room)?.simulate_network(network)?)
    })
}

/// Simulates a bad network that has a name, as mmn_simulate_network does with numbers. All members
/// of a room should use the same one: then a round trip takes twice the lag. `preset` is one of
///
/// - "home": two homes with cables (lag 12 ms, jitter 6 ms, 0.2 % lost);
/// - "mobile": a telephone in a town (40 ms, 30 ms, 1 %);
/// - "bad-wifi": a crowded Wi-Fi, where packets come late and in bursts (5 ms, 90 ms, 4 %);
/// - "satellite": a geostationary satellite (300 ms, 20 ms, 1 %);
/// - "none": ends it.
///
/// Takes effect at once and waits for nothing.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (also for another name) or MMN_NOT_INITIALIZED; after an
/// error nothing has changed.
///
/// # Safety
/// `preset` is NULL or a NUL-terminated UTF-8 string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_simulate_preset(room: MmnRoom, preset: *const c_char) -> i32 {
    command("mmn_simulate_preset", || {
        // SAFETY: the caller's promise, passed on.
        let preset = unsafe { text("preset", preset) }?;
        let room = opened(room)?;
        Ok(room.simulate_network(SimulatedNetwork::preset(preset)?)?)
    })
}
