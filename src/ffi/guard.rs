//! The guard around every exported function. It stops panics, and makes every failure the calling thread's last error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::failure::{Failure, set_last};
use super::fork;
use super::lifecycle::MmnRoom;
use crate::error::Code;
use crate::logging;
use crate::registry::{self, OpenRoom};

/// Results of a function that has no answer.
pub(super) trait Neutral {
    /// Result of a query that failed.
    const FAILED: Self;
    /// Result of a function that panicked.
    const PANICKED: Self;
}

impl Neutral for i32 {
    const FAILED: Self = -1;
    const PANICKED: Self = Code::InternalError.value();
}

impl Neutral for i64 {
    const FAILED: Self = -1;
    const PANICKED: Self = -1;
}

impl Neutral for u8 {
    const FAILED: Self = 0;
    const PANICKED: Self = 0;
}

impl Neutral for u32 {
    const FAILED: Self = 0;
    const PANICKED: Self = 0;
}

impl Neutral for u64 {
    const FAILED: Self = 0;
    const PANICKED: Self = 0;
}

impl<T> Neutral for *const T {
    const FAILED: Self = std::ptr::null();
    const PANICKED: Self = std::ptr::null();
}

/// Runs `body`. A panic in it is logged, becomes the last error, and returns `T::PANICKED`.
pub(super) fn guard<T: Neutral>(function: &str, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        tracing::error!("{function} panicked: {what}");
        set_last(Failure {
            code: Code::InternalError,
            sentence: format!("{function} failed inside the library ({what}); please report it"),
        });
        T::PANICKED
    })
}

/// A function that returns a code. It is refused inside a log callback, which may run on the
/// network thread: the call would wait for its own thread.
pub(super) fn command(function: &str, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    count(function, || body().map(|()| Code::Ok.value()))
}

/// A function that returns a count or a code. Refused inside a log callback, as [`command`] is.
pub(super) fn count(function: &str, body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    log_command(function, || {
        if logging::in_log_callback() {
            return Err(Failure {
                code: Code::WouldDeadlock,
                sentence: "a log callback made this call, which could wait for itself; call it from elsewhere"
                    .to_owned(),
            });
        }
        body()
    })
}

/// A function that returns as [`count`] does, and that a log callback may call.
pub(super) fn log_command(function: &str, body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    fork::watch();
    guard(function, || {
        body().unwrap_or_else(|failure| {
            let code = failure.code.value();
            set_last(failure);
            code
        })
    })
}

/// A function that returns a value.
pub(super) fn query<T: Neutral>(function: &str, body: impl FnOnce() -> Result<T, Failure>) -> T {
    guard(function, || {
        body().unwrap_or_else(|failure| {
            set_last(failure);
            T::FAILED
        })
    })
}

/// The open room with this handle.
pub(super) fn opened(room: MmnRoom) -> Result<Arc<OpenRoom>, Failure> {
    registry::find(room).ok_or_else(|| not_open(room))
}

/// The failure of a call with a handle that no open room has.
pub(super) fn not_open(room: MmnRoom) -> Failure {
    Failure {
        code: Code::NotInitialized,
        sentence: match room {
            0 => "no room is open; open one first".to_owned(),
            _ => format!(
                "the room {room} is not open: it was closed, or is not a room of this process"
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_char;

    use super::*;
    use crate::ffi::errors::tests::last_error;

    fn panics() -> bool {
        panic!("as intended by the test")
    }

    #[test]
    fn a_panic_becomes_the_answer_of_the_type_and_the_last_error() {
        assert_eq!(guard::<i32>("Broken", || i32::from(panics())), -99);
        assert_eq!(guard::<u8>("Broken", || u8::from(panics())), 0);
        let text = query::<*const c_char>("Broken", || {
            panics();
            Ok(c"text".as_ptr())
        });
        assert!(text.is_null());
        let (code, sentence) = last_error();
        assert_eq!(code, -99);
        assert!(
            sentence.starts_with("Broken failed inside the library (as intended"),
            "{sentence}"
        );
    }

    #[test]
    fn a_success_leaves_the_last_error_alone() {
        assert_eq!(last_error(), (0, String::new()));
        assert_eq!(
            command("Do", || Err(Failure::invalid("x is wrong".into()))),
            -3
        );
        assert_eq!(command("Do", || Ok(())), 0);
        assert_eq!(query("Ask", || Ok(7_i32)), 7);
        assert_eq!(last_error(), (-3, "x is wrong".to_owned()));
    }

    #[test]
    fn every_thread_has_its_own_last_error() {
        command("Do", || Err(Failure::invalid("mine".into())));
        let other = std::thread::spawn(last_error).join().expect("no panic");
        assert_eq!(other, (0, String::new()));
        assert_eq!(last_error().1, "mine");
    }
}
