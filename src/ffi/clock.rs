//! The system's clock that counts while the machine sleeps.

/// What the clock shows; `None` where the standard library's counts that, too, or the system has no such clock.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn since_boot() -> Option<std::time::Duration> {
    // `CLOCK_MONOTONIC` stands still on Linux while the machine sleeps. On Apple's systems it does not, but it follows
    // the wall clock, which the raw one does not.
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(target_vendor = "apple")]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;

    let mut shown = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: there is room for what is written; a clock that there is not is an error.
    if unsafe { libc::clock_gettime(CLOCK, shown.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the system has filled it in.
    let shown = unsafe { shown.assume_init() };
    let seconds = u64::try_from(shown.tv_sec).ok()?;
    let nanoseconds = u32::try_from(shown.tv_nsec).ok()?;
    Some(std::time::Duration::new(seconds, nanoseconds))
}

/// What the clock shows; `None` where the standard library's counts that, too, or the system has no such clock.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn since_boot() -> Option<std::time::Duration> {
    None
}
