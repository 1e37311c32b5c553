//! Opening and closing the room.

use std::ffi::c_char;

use super::arguments::{peer_id as peer_id_argument, session_id as session_id_argument};
use super::config::NetworkConfigFFI;
use super::failure::Failure;
use super::guard::{command, guard};
use crate::config::Config;
use crate::dispatch;
use crate::error::StartError;
use crate::runtime;

/// Opens the process's room, with default settings: those of NetworkConfigFFI, but with room for 4096 messages
/// in each queue. Does not wait for other members.
///
/// `peer_id` names this member: 1 to 64 bytes of UTF-8, no control characters, no bidirectional overrides (U+202A to
/// U+202E, U+2066 to U+2069), no blank at either end. `session_id` names the room: 1 to 128 bytes of the same kind.
/// Members of one room give the same.
///
/// A call during a ShutdownNetwork on another thread waits for it. Inside a callback it is refused with
/// MMN_ALREADY_INITIALIZED.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_CONNECTION_FAILED (no UDP socket) or
/// MMN_INTERNAL_ERROR.
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
        // SAFETY: the same.
        let session = unsafe { session_id_argument("session_id", session_id) }?;
        refuse_second_room()?;
        Ok(runtime::initialize(peer, session, Config::default())?)
    })
}

/// Opens the process's room as InitializeNetwork does, with the given settings.
///
/// `config` is read during the call only. NULL, or the first field that breaks its rule, gives
/// MMN_INVALID_ARGUMENT, and GetLastErrorMessage names the field.
///
/// # Safety
/// Both strings are NULL or end with a NUL; `config` is NULL or points to 44 bytes that can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetworkWithConfig(
    peer_id: *const c_char,
    session_id: *const c_char,
    config: *const NetworkConfigFFI,
) -> i32 {
    command("InitializeNetworkWithConfig", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: the same.
        let session = unsafe { session_id_argument("session_id", session_id) }?;
        if config.is_null() {
            return Err(Failure::invalid(
                "config is NULL; give a NetworkConfigFFI, or call InitializeNetwork for the defaults"
                    .to_owned(),
            ));
        }
        // SAFETY: not NULL, so that the caller vouches for its bytes; hosts that build it by hand may not align it.
        let config = unsafe { config.read_unaligned() };
        refuse_second_room()?;
        let config = Config::try_from(&config)?;
        Ok(runtime::initialize(peer, session, config)?)
    })
}

/// A room refuses a second one before the values are looked at. Inside a callback there is a room, though it
/// may be closing; waiting for that would wait for this callback.
pub(super) fn refuse_second_room() -> Result<(), StartError> {
    if dispatch::in_callback() || runtime::is_initialized() {
        return Err(StartError::AlreadyInitialized);
    }
    Ok(())
}

/// Leaves the room and closes it: messages that were accepted are still sent for up to 1 second, the other
/// members are told, every thread and socket is released. Takes at most 2 seconds, and as long as a callback
/// that is running: that callback must not wait for the thread that calls this. A host name that the system is
/// just resolving for ConnectToPeer is waited for, too: the system gives no way to stop that.
///
/// When it returns, no callback of the room runs or will run, all of them are unregistered, the event handler's
/// `drop_fn` has run, and, where no log callback is registered, the library may be unloaded.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a callback, those that PollEvents runs
/// included (nothing changes).
#[unsafe(no_mangle)]
pub extern "C" fn ShutdownNetwork() -> i32 {
    command("ShutdownNetwork", || Ok(runtime::shutdown()?))
}

/// Whether a room is open: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn IsNetworkInitialized() -> u8 {
    guard("IsNetworkInitialized", || {
        u8::from(runtime::is_initialized())
    })
}

/// Whether this member is announced in the local network: 1 or 0. It becomes 1 as soon as the announcement went out
/// on a network interface, which takes milliseconds after the room is opened; it is 0 where discovery is off (mdns_port
/// 0, or discovery_mode MMN_DISCOVERY_OFF), no interface can be used, or no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn IsMdnsActive() -> u8 {
    guard("IsMdnsActive", || {
        u8::from(runtime::room().is_some_and(|room| room.is_announced()))
    })
}
