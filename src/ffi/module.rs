//! The library as a loaded module of the process.

/// Keeps the library in memory until the process ends, even if the host unloads it. Otherwise a
/// thread that the library left behind would return into unmapped code.
pub(super) fn stay_loaded() {
    if !pin() {
        // A library linked into the program itself stays in any case.
        tracing::debug!("the system does not name a module to keep in memory");
    }
}

#[cfg(unix)]
fn pin() -> bool {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let here = stay_loaded as *const () as *const libc::c_void;
    // SAFETY: `dladdr` accepts any address, and `found` has room for the result.
    if unsafe { libc::dladdr(here, found.as_mut_ptr()) } == 0 {
        return false;
    }
    // SAFETY: the system has filled it in.
    let found = unsafe { found.assume_init() };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is the loader's, ends with a NUL, and is valid while the module is loaded, as it is here. The
    // module is loaded already, so `dlopen` runs none of its code.
    let module = unsafe { libc::dlopen(found.dli_fname, flags) };
    !module.is_null()
}

#[cfg(windows)]
fn pin() -> bool {
    use std::ffi::c_void;

    const FLAG_PIN: u32 = 1;
    const FLAG_FROM_ADDRESS: u32 = 4;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetModuleHandleExW(flags: u32, name: *const u16, module: *mut *mut c_void) -> i32;
    }

    let mut module = std::ptr::null_mut();
    let here = stay_loaded as *const () as *const u16;
    // SAFETY: with these flags the second argument is any address within the module. The system writes the handle to
    // the third.
    unsafe { GetModuleHandleExW(FLAG_PIN | FLAG_FROM_ADDRESS, here, &raw mut module) != 0 }
}

#[cfg(not(any(unix, windows)))]
fn pin() -> bool {
    false
}
