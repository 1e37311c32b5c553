//! The library's log: on standard error, and to a callback.

use std::ffi::{c_char, c_void};

use super::callbacks::DropCallback;
use super::failure::Failure;
use super::guard::log_command;
use super::user_data::UserData;
use crate::error::Code;
use crate::logging::{self, Verbosity};

/// Takes a record of the log: `level` is MMN_LOG_ERROR to MMN_LOG_TRACE, `message` one line without its end, valid
/// during the call.
///
/// It is called on whatever thread the record is made, threads of the library and of the host alike, on several at
/// a time; it should be quick, because what it interrupts waits. Inside it, queries (Is..., Get...) and the
/// functions of the log may be called; all others are refused with MMN_WOULD_DEADLOCK. Records that are made
/// inside it are not passed to it. It must not throw.
pub type LogCallback =
    Option<extern "C" fn(user_data: *mut c_void, level: i32, message: *const c_char)>;

/// Switches the library's log on standard error on (not 0) or off (0). It is off at first. At any time, also
/// before initialization; it holds for the process, across initializations.
///
/// Returns MMN_OK.
#[unsafe(no_mangle)]
pub extern "C" fn EnableLogging(enabled: u8) -> i32 {
    log_command("EnableLogging", || {
        logging::enable(enabled != 0);
        Ok(Code::Ok.value())
    })
}

/// Sets how much EnableLogging writes on standard error: MMN_LOG_OFF to MMN_LOG_TRACE, MMN_LOG_INFO at first. At any
/// time, also before initialization. The callback of RegisterLogCallback has its own level.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn SetLogLevel(level: i32) -> i32 {
    log_command("SetLogLevel", || {
        logging::set_level(verbosity(level)?);
        Ok(Code::Ok.value())
    })
}

/// Sets the callback for the library's log; NULL removes it. It is passed what `level` (MMN_LOG_OFF to
/// MMN_LOG_TRACE) asks for, whether the log on standard error is on or not. At any time, also before
/// initialization; ShutdownNetwork leaves it.
///
/// When the call returns, the old callback runs on no thread and never runs again; running ones are waited for,
/// unless this is called inside one. `drop_fn` (NULL for none) is called exactly once with `user_data`, after the
/// callback's last call has ended: when it is replaced or removed. With a NULL `callback`, and when this call fails,
/// `user_data` and `drop_fn` are not used.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (the level is none; nothing has changed).
///
/// # Safety
/// `callback` and `drop_fn` are functions of these types, and may be called with `user_data` on any thread, the
/// first on several at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RegisterLogCallback(
    level: i32,
    callback: LogCallback,
    user_data: *mut c_void,
    drop_fn: DropCallback,
) -> i32 {
    log_command("RegisterLogCallback", || {
        let verbosity = verbosity(level)?;
        logging::register(callback.map(|callback| {
            let user_data = UserData::new(user_data, drop_fn);
            let handler: logging::LogHandler = Box::new(move |level, message| {
                callback(user_data.pointer(), level, message.as_ptr());
            });
            (verbosity, handler)
        }));
        Ok(Code::Ok.value())
    })
}

fn verbosity(level: i32) -> Result<Verbosity, Failure> {
    Verbosity::from_number(level).ok_or_else(|| {
        Failure::invalid(format!(
            "level {level} is none; give MMN_LOG_OFF (0) to MMN_LOG_TRACE (5)"
        ))
    })
}
