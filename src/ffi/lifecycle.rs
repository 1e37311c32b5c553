//! Opening and closing the room.

use std::ffi::c_char;

use super::arguments::{peer_id as peer_id_argument, session_id as session_id_argument};
use super::config::NetworkConfigFFI;
use super::failure::Failure;
use super::guard::{command, guard};
use super::module;
use crate::config::Config;
use crate::dispatch;
use crate::error::StartError;
use crate::room::Closed;
use crate::runtime;

/// Opens the process's room with default settings: those of NetworkConfigFFI, except that each
/// queue holds 4096 messages. Does not wait for other members.
///
/// `peer_id` names this member: 1 to 64 bytes of UTF-8, without control characters, bidirectional
/// overrides (U+202A to U+202E, U+2066 to U+2069), or white space at either end. `session_id` names
/// the room: 1 to 128 bytes under the same rules. All members of a room pass the same session id.
///
/// A call during a ShutdownNetwork on another thread waits for it. Inside a callback the call is
/// refused with MMN_ALREADY_INITIALIZED.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_CONNECTION_FAILED (no UDP
/// socket) or MMN_INTERNAL_ERROR.
///
/// # Safety
/// Both strings are NULL or end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetwork(
    peer_id: *const c_char,
    session_id: *const c_char,
) -> i32 {
    command("InitializeNetwork", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let session = unsafe { session_id_argument("session_id", session_id) }?;
        refuse_second_room()?;
        Ok(runtime::initialize(peer, session, Config::default())?)
    })
}

/// Opens the process's room as InitializeNetwork does, with the given settings.
///
/// The library reads `config` during the call only. A NULL `config` or an invalid field is
/// MMN_INVALID_ARGUMENT; GetLastErrorMessage names the first such field.
///
/// # Safety
/// Both strings are NULL or end with a NUL. `config` is NULL or points to 44 readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetworkWithConfig(
    peer_id: *const c_char,
    session_id: *const c_char,
    config: *const NetworkConfigFFI,
) -> i32 {
    command("InitializeNetworkWithConfig", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let session = unsafe { session_id_argument("session_id", session_id) }?;
        if config.is_null() {
            return Err(Failure::invalid(
                "config is NULL; give a NetworkConfigFFI, or call InitializeNetwork for the defaults"
                    .to_owned(),
            ));
        }
        // SAFETY: not NULL, so the caller guarantees its bytes. Hosts that build it by hand may not align it.
        let config = unsafe { config.read_unaligned() };
        refuse_second_room()?;
        let config = Config::try_from(&config)?;
        Ok(runtime::initialize(peer, session, config)?)
    })
}

/// Refuses a second room before any value is checked. Inside a callback a room exists, though it may be closing; to
/// wait for its end would wait for this callback.
pub(super) fn refuse_second_room() -> Result<(), StartError> {
    if dispatch::in_callback() || runtime::is_initialized() {
        return Err(StartError::AlreadyInitialized);
    }
    Ok(())
}

/// Leaves the room and closes it. The library sends accepted messages for up to 1 second, notifies
/// the other members, and releases every thread and socket. It takes at most 2 seconds, plus the
/// time of a running callback, which must not wait for the thread that calls this.
///
/// When it returns, no callback of the room runs or will run, all of them are unregistered, and the
/// event handler's `drop_fn` has run. If no log callback is registered, the host may unload the
/// library. A host name that the system is still resolving is abandoned, because the system offers
/// no way to cancel that: its thread calls nothing of the host and ends with the answer. The library
/// then stays in memory until the process ends, even if the host unloads it.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a callback, including those
/// that PollEvents runs (nothing changes).
#[unsafe(no_mangle)]
pub extern "C" fn ShutdownNetwork() -> i32 {
    command("ShutdownNetwork", || {
        if runtime::shutdown()? == Closed::ButForLookups {
            module::stay_loaded();
        }
        Ok(())
    })
}

/// Whether a room is open: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsNetworkInitialized() -> u8 {
    guard("IsNetworkInitialized", || {
        u8::from(runtime::is_initialized())
    })
}

/// Whether this member is announced in the local network: 1 or 0. It becomes 1 when the first
/// announcement goes out on a network interface, milliseconds after the room opens. It is 0 if
/// discovery is off (mdns_port 0, or discovery_mode MMN_DISCOVERY_OFF), no interface is usable, or
/// no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn IsMdnsActive() -> u8 {
    guard("IsMdnsActive", || {
        u8::from(runtime::room().is_some_and(|room| room.is_announced()))
    })
}
