//! The default room of this process: the one that the classic functions act on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use arc_swap::ArcSwapOption;

use crate::config::Config;
use crate::core::election::gossip::{WindowError, Windows};
use crate::core::id::{PeerId, SessionId};
use crate::dispatch::{EventHandler, in_callback};
use crate::error::{CloseError, StartError};
use crate::fork::{Inherit, PerProcess};
use crate::registry::{self, Handle, OpenRoom};
use crate::room::Closed;

static PROCESS: PerProcess<Process> = PerProcess::new(Process::without_room(None));

/// State of this process. A forked child inherits only the windows.
struct Process {
    /// The handle of the default room, until it is released, or 0.
    handle: AtomicU64,
    /// Held while the default room is opened or closed.
    lifecycle: Mutex<()>,
    /// The windows of the gossip strategy, for the default room and all later ones; `None` until the first change.
    /// Locked for moments only.
    windows: Mutex<Option<Windows>>,
    /// A copy to read without the lock, which another thread may hold while a child is forked.
    published_windows: ArcSwapOption<Windows>,
}

impl Process {
    const fn without_room(windows: Option<Windows>) -> Self {
        Self {
            handle: AtomicU64::new(0),
            lifecycle: Mutex::new(()),
            windows: Mutex::new(windows),
            published_windows: ArcSwapOption::const_empty(),
        }
    }
}

impl Inherit for Process {
    fn inherit(parent: &Self) -> Self {
        let windows = parent.published_windows.load_full();
        let child = Self::without_room(windows.as_deref().copied());
        child.published_windows.store(windows);
        child
    }
}

/// Opens the default room. Its windows are the ones that [`change_windows`] set, else the ones of `config`. Waits for a
/// [`close`] of the default room that is under way, but not inside a callback. `handler` and `announce` as in
/// [`registry::open`].
///
/// # Errors
/// [`StartError`]; the process has no new room then.
pub fn open(
    peer: PeerId,
    session: SessionId,
    config: Config,
    handler: Option<EventHandler>,
    announce: impl FnOnce(&Arc<OpenRoom>),
) -> Result<Handle, StartError> {
    let config = Config {
        windows: process_windows().unwrap_or(config.windows),
        ..config
    };
    let _lifecycle = match in_callback() {
        // A closing of the room may wait for this callback.
        true => try_lifecycle().ok_or(StartError::AlreadyInitialized)?,
        false => lifecycle(),
    };
    if is_open() {
        return Err(StartError::AlreadyInitialized);
    }
    let handle = registry::open(peer, session, config, handler, |room| {
        let number = room.handle().number();
        PROCESS.get().handle.store(number, Ordering::Release);
        announce(room);
    })?;
    // The windows may have changed before this became the default room.
    pass_on(&process_windows());
    Ok(handle)
}

/// Closes the room as [`registry::close`] does. An [`open`] waits while this closes the default room.
///
/// # Errors
/// [`CloseError`]; nothing has changed then.
pub fn close(handle: Handle) -> Result<Closed, CloseError> {
    if PROCESS.get().handle.load(Ordering::Acquire) != handle.number() {
        return registry::close(handle);
    }
    if in_callback() {
        return Err(CloseError::WouldDeadlock);
    }
    let _lifecycle = lifecycle();
    let closed = registry::close(handle)?;
    // Unless another default room was opened since this one began to leave.
    let number = handle.number();
    let _ = PROCESS
        .get()
        .handle
        .compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed);
    Ok(closed)
}

/// The handle of the default room, until [`close`] has released it.
pub fn handle() -> Option<Handle> {
    Handle::from_number(PROCESS.get().handle.load(Ordering::Acquire))
}

/// Whether the default room is open, and nothing has begun to close it.
pub fn is_open() -> bool {
    room().is_some()
}

/// The default room; `None` before [`open`] and from the beginning of its closing on. Takes no lock.
pub fn room() -> Option<Arc<OpenRoom>> {
    registry::room(handle()?)
}

/// The windows of the gossip strategy: of the default room, or of the next.
pub fn windows() -> Windows {
    let set = *process_windows();
    set.unwrap_or_else(|| room().map_or_else(Windows::default, |room| room.windows()))
}

/// Changes the windows of the gossip strategy: of the default room from the next window on, and of all default rooms
/// opened later. Does not wait.
///
/// # Errors
/// [`WindowError`]; nothing has changed then.
pub fn change_windows(change: impl FnOnce(&mut Windows)) -> Result<(), WindowError> {
    let mut changed = windows();
    let mut set = process_windows();
    changed = set.unwrap_or(changed);
    change(&mut changed);
    changed.check()?;
    *set = Some(changed);
    let published = &PROCESS.get().published_windows;
    published.store(Some(Arc::new(changed)));
    // In one step with the change, so that of two concurrent calls the same one is last in both places.
    pass_on(&set);
    Ok(())
}

/// Passes the windows of the process, if they were set, to the default room, if there is one.
fn pass_on(set: &MutexGuard<'static, Option<Windows>>) {
    if let (Some(windows), Some(room)) = (**set, room()) {
        // The values are checked already.
        let _ = room.set_windows(windows);
    }
}

fn process_windows() -> MutexGuard<'static, Option<Windows>> {
    // Every change of it is a single assignment.
    PROCESS
        .get()
        .windows
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn lifecycle() -> MutexGuard<'static, ()> {
    // A panic while a room opens or closes leaves no half of it behind.
    let lifecycle = &PROCESS.get().lifecycle;
    lifecycle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lifecycle() -> Option<MutexGuard<'static, ()>> {
    match PROCESS.get().lifecycle.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
