//! The one room of this process: opened, found and closed from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use once_cell::sync::Lazy;

use crate::config::Config;
use crate::core::id::{PeerId, SessionId};
use crate::dispatch::in_callback;
use crate::error::{ShutdownError, StartError};
use crate::room::Room;

static ROOM: Lazy<ArcSwapOption<Room>> = Lazy::new(ArcSwapOption::empty);
/// Held while a room is opened or closed.
static LIFECYCLE: Mutex<()> = Mutex::new(());

/// Opens the room. Waits for a shutdown that is under way.
///
/// # Errors
/// [`StartError`]; the process has no new room then.
pub fn initialize(peer: PeerId, session: SessionId, config: Config) -> Result<(), StartError> {
    // The room of a callback that is running exists, and a shutdown under way waits for the callback.
    if in_callback() {
        return Err(StartError::AlreadyInitialized);
    }
    let _lifecycle = lifecycle();
    if ROOM.load().is_some() {
        return Err(StartError::AlreadyInitialized);
    }
    let room = Room::open(peer, session, config)?;
    ROOM.store(Some(Arc::new(room)));
    Ok(())
}

/// Leaves the room and releases everything. When it returns, no thread and no callback of it runs.
///
/// # Errors
/// [`ShutdownError`]; nothing has changed then.
pub fn shutdown() -> Result<(), ShutdownError> {
    if in_callback() {
        return Err(ShutdownError::WouldDeadlock);
    }
    let _lifecycle = lifecycle();
    let room = ROOM.swap(None).ok_or(ShutdownError::NotInitialized)?;
    room.close();
    Ok(())
}

/// Whether there is a room that is not shutting down.
pub fn is_initialized() -> bool {
    ROOM.load().is_some()
}

/// The room; `None` before `initialize` and from the beginning of `shutdown`. Takes no lock.
pub fn room() -> Option<Arc<Room>> {
    ROOM.load_full()
}

fn lifecycle() -> MutexGuard<'static, ()> {
    // A panic while a room was opened or closed leaves no half of it behind.
    LIFECYCLE.lock().unwrap_or_else(PoisonError::into_inner)
}
