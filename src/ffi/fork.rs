//! Registers with the system's `fork`, and prepares a forked child.

use std::sync::atomic::{AtomicBool, Ordering};

static WATCHED: AtomicBool = AtomicBool::new(false);

/// Registers the fork handler, once per process, so that a forked child knows that it is one. Every
/// call that could make something that a child must not share calls it first. All calls but the
/// first cost one load.
pub(super) fn watch() {
    if !WATCHED.load(Ordering::Acquire) {
        // Every caller returns after the registration. Two threads at once may both register: a child then counts
        // twice, which does no harm.
        watch_forks();
        WATCHED.store(true, Ordering::Release);
    }
}

#[cfg(unix)]
fn watch_forks() {
    // SAFETY: the function has the required type, and may run in a forked child: see its comment. The C library forgets
    // it when this library is unloaded.
    let code = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
    if code != 0 {
        let error = std::io::Error::from_raw_os_error(code);
        tracing::warn!(%error, "forks go unnoticed: a forked child must not use the library");
    }
}

#[cfg(not(unix))]
fn watch_forks() {}

/// Runs in a forked child, on its only thread, before `fork` returns there. Nothing here locks,
/// allocates or panics, and the system functions that it calls are async-signal-safe (POSIX,
/// 2.4.3).
#[cfg(unix)]
unsafe extern "C" fn begin_child() {
    crate::fork::begin_child(|descriptor, identity| {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: a number that is no descriptor is an error, and `found` has room for the result.
        if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0 {
            return;
        }
        // SAFETY: the system has filled it in.
        let found = unsafe { found.assume_init() };
        // The types differ between systems.
        #[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
        let found = crate::fork::Identity {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
        };
        if found == identity {
            // SAFETY: it is the copy of a descriptor that the library opened in the parent. The code that uses it there
            // does not run here.
            unsafe { libc::close(descriptor) };
        }
    });
}
