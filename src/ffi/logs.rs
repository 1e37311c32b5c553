//! The library's log: on standard error, and to a callback.

use std::ffi::{c_char, c_void};

use super::events::MmnDropCallback;
use super::failure::Failure;
use super::guard::log_command;
use super::user_data::UserData;
use crate::error::Code;
use crate::logging::{self, Verbosity};

/// Receives a log record: `room` is the room whose thread made it, 0 for a thread of the host,
/// `level` is MMN_LOG_ERROR to MMN_LOG_TRACE, and `message` is one line without a line break, valid
/// during the call.
///
/// It runs on the thread that makes the record, which may belong to the library or to the host, and
/// on several threads at a time. It should be quick, because that thread waits for it. Inside it
/// the host may call queries and the log functions; all others return MMN_WOULD_DEADLOCK. It does
/// not receive records made inside it. It must not throw.
pub type MmnLogCallback =
    Option<extern "C" fn(user_data: *mut c_void, room: u64, level: i32, message: *const c_char)>;

/// Sets the level of the library's log on standard error: MMN_LOG_OFF (the default) to
/// MMN_LOG_TRACE. It may be called at any time, also before a room opens. The setting belongs to
/// the process and outlives rooms.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_set_log_stderr(level: i32) -> i32 {
    log_command("mmn_set_log_stderr", || {
        let verbosity = verbosity(level)?;
        if verbosity != Verbosity::Off {
            logging::set_level(verbosity);
        }
        logging::enable(verbosity != Verbosity::Off);
        Ok(Code::Ok.value())
    })
}

/// Sets the callback for the library's log; NULL removes it. It receives the records up to `level`
/// (MMN_LOG_OFF to MMN_LOG_TRACE), whether the log on standard error is on or not. It may be called
/// at any time, also before a room opens. mmn_close does not remove the callback.
///
/// When the call returns, the previous callback runs on no thread and never runs again: the call
/// waits for it, unless it is made from inside that callback. The library calls `drop_fn` (NULL for
/// none) exactly once with `user_data`, after the callback's last call has ended: when the callback
/// is replaced or removed. With a NULL `callback`, and when this call fails, the library does not
/// use `user_data` and `drop_fn`.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (not a log level; nothing has changed).
///
/// # Safety
/// `callback` and `drop_fn` have these types, and may be called with `user_data` on any thread,
/// `callback` on several at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_log(
    level: i32,
    callback: MmnLogCallback,
    user_data: *mut c_void,
    drop_fn: MmnDropCallback,
) -> i32 {
    log_command("mmn_set_log", || {
        let verbosity = verbosity(level)?;
        logging::register(callback.map(|callback| {
            let user_data = UserData::new(user_data, drop_fn);
            let handler: logging::LogHandler = Box::new(move |room, level, message| {
                callback(user_data.pointer(), room, level, message.as_ptr());
            });
            (verbosity, handler)
        }));
        Ok(Code::Ok.value())
    })
}

pub(super) fn verbosity(level: i32) -> Result<Verbosity, Failure> {
    Verbosity::from_number(level).ok_or_else(|| {
        Failure::invalid(format!("level {level} is none; give 0 (off) to 5 (trace)"))
    })
}
