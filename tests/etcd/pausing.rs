//! Stops processes with SIGSTOP and resumes them.

use std::process::Child;

/// Stops a process. `kill` returns before the threads of a busy machine have stopped, and one of them may still answer: this
/// function returns when all have stopped.
pub(crate) fn pause(process: &Child) {
    signal(process, libc::SIGSTOP);
    // SAFETY: all zeros is a value of this plain struct, and it outlives the call.
    let mut state: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // WNOWAIT leaves the end of a process for `Child::wait`.
    let changes = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: as above.
    let result = unsafe { libc::waitid(libc::P_PID, process.id(), &raw mut state, changes) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    assert_eq!(state.si_code, libc::CLD_STOPPED, "it has ended");
}

/// Resumes a paused process.
pub(crate) fn resume(process: &Child) {
    signal(process, libc::SIGCONT);
}

fn signal(process: &Child, signal: libc::c_int) {
    let id = libc::pid_t::try_from(process.id()).expect("a process id");
    // SAFETY: the process is a child without a completed wait, so the id is still its own.
    let result = unsafe { libc::kill(id, signal) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
