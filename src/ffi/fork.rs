//! Where the system's `fork` tells the library of itself.

use std::sync::atomic::{AtomicBool, Ordering};

static WATCHED: AtomicBool = AtomicBool::new(false);

/// From here on a forked child knows that it is one. At every call that could make something that a child must not
/// share: all but the first cost one look.
pub(super) fn watch() {
    if !WATCHED.load(Ordering::Acquire) {
        // Nobody goes on before it is done. Two threads at once may both do it: a child then counts twice, which is as
        // good as once.
        watch_forks();
        WATCHED.store(true, Ordering::Release);
    }
}

#[cfg(unix)]
fn watch_forks() {
    // SAFETY: the function has the type that is asked for, and may run in a forked child: see there. The C library
    // forgets it when this library is unloaded.
    let code = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
    if code != 0 {
        let error = std::io::Error::from_raw_os_error(code);
        tracing::warn!(%error, "forks go unnoticed: a forked child must not use the library");
    }
}

#[cfg(not(unix))]
fn watch_forks() {}

/// Runs in a forked child, on its only thread, before `fork` returns there: nothing here locks, allocates or panics, and
/// the system's functions that are called are safe in signal handlers (POSIX, 2.4.3).
#[cfg(unix)]
unsafe extern "C" fn begin_child() {
    crate::fork::begin_child(|descriptor, identity| {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: a number that is no descriptor is an error, and there is room for what is written.
        if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0 {
            return;
        }
        // SAFETY: the system has filled it in.
        let found = unsafe { found.assume_init() };
        // The types differ from system to system.
        #[allow(clippy::unnecessary_cast, trivial_numeric_casts)]
        let found = crate::fork::Identity {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
        };
        if found == identity {
            // SAFETY: it is the copy of a descriptor that the library opened in the parent, and what uses it there
            // does not run here.
            unsafe { libc::close(descriptor) };
        }
    });
}
