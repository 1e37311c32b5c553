//! The log on standard error.

use super::guard::command;
use crate::logging;

/// Switches the library's log on standard error on (not 0) or off (0). It is off at first. At any time, also
/// before initialization; it holds for the process, across initializations.
///
/// Returns MMN_OK.
#[unsafe(no_mangle)]
pub extern "C" fn EnableLogging(enabled: u8) -> i32 {
    command("EnableLogging", || {
        logging::enable(enabled != 0);
        Ok(())
    })
}
