//! Opening and closing rooms.

use std::ffi::c_char;
use std::sync::Arc;

use super::arguments::{checked_session_id, peer_id as peer_id_argument, text};
use super::events::handler;
use super::failure::Failure;
use super::growing::read;
use super::guard::{command, guard, not_open};
use super::module;
use super::options::{MmnOptions, Pointed, config, supported};
use crate::default_room;
use crate::error::{CloseError, StartError};
use crate::registry::{self, Handle, OpenRoom};
use crate::room::Closed;
use crate::room_code::RoomCode;

/// A room of this process: a number that is never 0 for an open room, below 2^53. A closed room's
/// number is not used again, so calls with it are MMN_NOT_INITIALIZED, as are calls with any other
/// number that names no open room of this process. In a forked child no number of the parent names
/// a room.
pub type MmnRoom = u64;

/// Opens a room. Does not wait for other members. At most 4096 rooms are open in a process.
///
/// `peer_id` names this member: 1 to 64 bytes of UTF-8, without control characters, bidirectional
/// overrides (U+202A to U+202E, U+2066 to U+2069), or white space at either end. `session_id` names
/// the room: 1 to 128 bytes under the same rules; with
/// MmnOptions.relays it is a room code, however it is written. All members of a room pass the same
/// session id.
/// The library reads `options` during the call only; NULL is the defaults of mmn_default_options.
///
/// The library writes the number of the room to `room` before the first callback of the room runs,
/// and only if it returns MMN_OK. mmn_close must follow. In a callback this may be called.
///
/// With is_default the room is the default room, which the functions without a room act on. A call
/// during an mmn_close of the default room on another thread waits for it, or, inside a callback, is
/// refused with MMN_ALREADY_INITIALIZED.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the first such argument or
/// field), MMN_ALREADY_INITIALIZED (is_default, and the default room is open),
/// MMN_MAX_CONNECTIONS_REACHED (4096 rooms are open), MMN_NOT_SUPPORTED (this build does not have
/// the strategy), MMN_CONNECTION_FAILED (the address or the port cannot be bound;
/// mmn_last_error_message names both) or MMN_INTERNAL_ERROR. On failure the library does not use
/// on_event, user_data and drop_fn.
///
/// # Safety
/// Both strings are NULL or end with a NUL. `options` is NULL, or points to struct_size readable
/// bytes, the first four of which are struct_size. What its pointers refer to is readable. on_event
/// and drop_fn have their types, and may be called with user_data on any thread. `room` is NULL or
/// points to 8 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_open(
    peer_id: *const c_char,
    session_id: *const c_char,
    options: *const MmnOptions,
    room: *mut MmnRoom,
) -> i32 {
    command("mmn_open", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let session = unsafe { text("session_id", session_id) }?;
        let options = match options.is_null() {
            true => MmnOptions::default(),
            // SAFETY: as above.
            false => unsafe { read("options", options) }?,
        };
        let session = match options.relays.is_null() {
            true => checked_session_id("session_id", session)?,
            false => {
                let code = RoomCode::parse(session).map_err(StartError::RoomCode)?;
                checked_session_id("session_id", code.as_str())?
            }
        };
        if room.is_null() {
            return Err(Failure::invalid(
                "room is NULL; give the address of a 64-bit number, which receives that of the room"
                    .to_owned(),
            ));
        }
        // SAFETY: as above.
        let pointed = unsafe { Pointed::read(&options) }?;
        supported(&options)?;
        let config = config(&options, pointed)?;
        let handler = handler(options.on_event, options.user_data, options.drop_fn);
        let (handler, user_data) = handler.unzip();
        let announce = |opened: &Arc<OpenRoom>| {
            if let Some(user_data) = user_data {
                user_data.own();
            }
            // SAFETY: not NULL, so the caller guarantees 8 bytes; hosts may not align it.
            unsafe { room.write_unaligned(opened.handle().number()) };
        };
        match options.is_default {
            0 => registry::open(peer, session, config, handler, announce)?,
            _ => default_room::open(peer, session, config, handler, announce)?,
        };
        Ok(())
    })
}

/// Begins to leave a room, and returns at once: from now on the number of the room names no open
/// room except for mmn_close, which must follow. The library sends accepted messages for up to 1
/// second and notifies the other members. Callbacks run until mmn_close. To leave many rooms, begin
/// with all of them, and close them then. May be called inside a callback.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_leave(room: MmnRoom) -> i32 {
    command("mmn_leave", || {
        let left = Handle::from_number(room).map(registry::leave);
        left.and_then(Result::ok).ok_or_else(|| not_open(room))
    })
}

/// Leaves a room and closes it. The library sends accepted messages for up to 1 second, notifies
/// the other members, and releases every thread and socket of the room. It takes at most 2 seconds,
/// plus the time of a running callback, which must not wait for the thread that calls this. Of two
/// concurrent calls for a room the second waits for the first, and returns MMN_NOT_INITIALIZED.
///
/// When it returns, no callback of the room runs or will run, and the event handler's drop_fn has
/// run. If no room is open and no log callback is registered, the host may unload the library. A
/// host name that the system is still resolving is abandoned, because the system offers no way to
/// cancel that: its thread calls nothing of the host and ends with the answer. The library then
/// stays in memory until the process ends, even if the host unloads it.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED, or MMN_WOULD_DEADLOCK inside a callback of any room,
/// also in one that mmn_poll runs (nothing changes; mmn_leave is allowed there).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_close(room: MmnRoom) -> i32 {
    command("mmn_close", || {
        let handle = Handle::from_number(room).ok_or_else(|| not_open(room))?;
        match default_room::close(handle) {
            Ok(Closed::Entirely) => Ok(()),
            Ok(Closed::ButForLookups) => {
                module::stay_loaded();
                Ok(())
            }
            Err(CloseError::NotOpen) => Err(not_open(room)),
            Err(error) => Err(error.into()),
        }
    })
}

/// Whether a room is open: 1 or 0. It is 0 from the beginning of mmn_leave and mmn_close on.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_is_open(room: MmnRoom) -> u8 {
    guard("mmn_is_open", || u8::from(registry::find(room).is_some()))
}

/// The default room, which InitializeNetwork, InitializeNetworkWithConfig, or mmn_open with
/// is_default has opened, also while it is closing. 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_default_room() -> MmnRoom {
    guard("mmn_default_room", || {
        default_room::handle().map_or(0, Handle::number)
    })
}

/// Whether this member is announced in the local network: 1 or 0. It becomes 1 when the first
/// announcement goes out on a network interface, milliseconds after the room opens. It is 0 if
/// discovery is off, no interface is usable, or
/// the room is not open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_is_announced(room: MmnRoom) -> u8 {
    guard("mmn_is_announced", || {
        u8::from(registry::find(room).is_some_and(|room| room.is_announced()))
    })
}
