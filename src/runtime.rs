//! The one room of this process: opened, found and closed from any thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

use crate::config::Config;
use crate::core::election::gossip::{WindowError, Windows};
use crate::core::id::{PeerId, SessionId};
use crate::dispatch::kind::Everything;
use crate::dispatch::{Dispatch, EventHandler, in_callback};
use crate::error::{ShutdownError, StartError};
use crate::fork::{Inherit, PerProcess};
use crate::glance::{self, Glance};
use crate::room::{Closed, Room};

static PROCESS: PerProcess<Process> = PerProcess::new(Process::without_room(None));

/// What this process has. A forked child has nothing of it but the windows.
struct Process {
    room: ArcSwapOption<Room>,
    glance: Glance,
    /// Held while a room is opened or closed.
    lifecycle: Mutex<()>,
    events: Mutex<Events>,
    /// The windows of the gossip strategy, of the room and of all later ones; `None` while they are the first. Locked
    /// for moments only.
    windows: Mutex<Option<Windows>>,
    /// The same, to be read without the lock, which another thread may hold when a child is forked.
    published_windows: ArcSwapOption<Windows>,
}

impl Process {
    const fn without_room(windows: Option<Windows>) -> Self {
        Self {
            room: ArcSwapOption::const_empty(),
            glance: Glance::new(),
            lifecycle: Mutex::new(()),
            events: Mutex::new(Events {
                handler: None,
                dispatch: None,
            }),
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

/// The process's event handler, which may be there before the room. Locked for moments only, and never while
/// code of the host runs.
struct Events {
    /// The handler of the room, or of the next one.
    handler: Option<EventHandler>,
    /// The queue of the room that is being opened, open, or being closed.
    dispatch: Option<RoomDispatch>,
}

struct RoomDispatch {
    dispatch: Arc<Dispatch>,
    /// The room's handler is on its way out, and a new one is for the next room.
    closing: bool,
}

/// Opens the room, with the windows of the process ([`change_windows`]) instead of those of `config`. Waits for a
/// shutdown that is under way.
///
/// # Errors
/// [`StartError`]; the process has no new room then.
pub fn initialize(peer: PeerId, session: SessionId, config: Config) -> Result<(), StartError> {
    let config = Config {
        windows: windows(),
        ..config
    };
    // The room of a callback that is running exists, and a shutdown under way waits for the callback.
    if in_callback() {
        return Err(StartError::AlreadyInitialized);
    }
    let _lifecycle = lifecycle();
    if PROCESS.get().room.load().is_some() {
        return Err(StartError::AlreadyInitialized);
    }
    let dispatch = Arc::new(Room::dispatch_for(&peer, &config)?);
    // A fixed host leads at once: a callback that receives that finds the room.
    dispatch.wait_to_begin();
    attach_events(&dispatch);
    let process = PROCESS.get();
    match Room::open_with(
        peer,
        session,
        config,
        Arc::clone(&dispatch),
        &process.glance,
    ) {
        Ok(room) => {
            let room = Arc::new(room);
            process.room.store(Some(Arc::clone(&room)));
            process.glance.attach(|| glance::encode(&room.snapshot()));
            dispatch.begin();
            // They may have been changed while it was not the room of the process yet.
            pass_on(&process_windows());
            Ok(())
        }
        Err(error) => {
            events().dispatch = None;
            dispatch.stop();
            Err(error)
        }
    }
}

/// Leaves the room and releases everything. When it returns, no callback of it runs, and no thread but those of
/// [`Closed::ButForLookups`].
///
/// # Errors
/// [`ShutdownError`]; nothing has changed then.
pub fn shutdown() -> Result<Closed, ShutdownError> {
    if in_callback() {
        return Err(ShutdownError::WouldDeadlock);
    }
    let _lifecycle = lifecycle();
    let process = PROCESS.get();
    process.glance.detach();
    let room = process
        .room
        .swap(None)
        .ok_or(ShutdownError::NotInitialized)?;
    let released = release_events();
    let closed = room.close();
    events().dispatch = None;
    drop(released);
    Ok(closed)
}

/// Sets or removes the event handler: of the room, where there is one, else of the next. When this returns, the
/// old handler is not running, unless the caller is inside it, and never runs again. A shutdown removes it.
pub fn register_event_handler(handler: Option<EventHandler>) {
    let mut events = events();
    // One step, so that of two calls at once the same one is the last here and there.
    let replaced = events.dispatch.as_ref().map(|room| {
        let for_this_room = if room.closing { None } else { handler.clone() };
        let replaced = room.dispatch.replace::<Everything>(for_this_room);
        (Arc::clone(&room.dispatch), replaced)
    });
    let old = std::mem::replace(&mut events.handler, handler);
    drop(events);
    if let Some((dispatch, replaced)) = replaced {
        dispatch.finish(replaced);
    }
    drop(old);
}

/// Gives the handler that was registered before the room to its queue, before anything is queued.
fn attach_events(dispatch: &Arc<Dispatch>) {
    let mut events = events();
    // An empty queue without a handler: there is nothing to wait for.
    dispatch.finish(dispatch.replace::<Everything>(events.handler.clone()));
    events.dispatch = Some(RoomDispatch {
        dispatch: Arc::clone(dispatch),
        closing: false,
    });
}

/// Leaves the handler to the queue of the room alone, which drops it when it stops.
fn release_events() -> Option<EventHandler> {
    let mut events = events();
    if let Some(room) = &mut events.dispatch {
        room.closing = true;
    }
    events.handler.take()
}

fn events() -> MutexGuard<'static, Events> {
    // Every change of it is a single assignment.
    PROCESS
        .get()
        .events
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is a room that is not shutting down.
pub fn is_initialized() -> bool {
    PROCESS.get().room.load().is_some()
}

/// The room; `None` before `initialize` and from the beginning of `shutdown`. Takes no lock.
pub fn room() -> Option<Arc<Room>> {
    PROCESS.get().room.load_full()
}

/// What the cheapest queries read of the room.
pub(crate) fn glance() -> &'static Glance {
    &PROCESS.get().glance
}

/// The windows of the gossip strategy, in force or not.
pub fn windows() -> Windows {
    process_windows().unwrap_or_default()
}

/// Other windows of the gossip strategy: of the room from the next one on, and of all rooms that are opened later.
/// Waits for nobody.
///
/// # Errors
/// [`WindowError`]; nothing has changed then.
pub fn change_windows(change: impl FnOnce(&mut Windows)) -> Result<(), WindowError> {
    let process = PROCESS.get();
    let mut present = process_windows();
    let mut changed = present.unwrap_or_default();
    change(&mut changed);
    changed.check()?;
    *present = Some(changed);
    process.published_windows.store(Some(Arc::new(changed)));
    // In one step with the change, so that of two at once the same one is the last here and there.
    pass_on(&present);
    Ok(())
}

/// Gives the windows of the process to the room, where there is one.
fn pass_on(windows: &MutexGuard<'static, Option<Windows>>) {
    if let Some(room) = room() {
        // They are checked already.
        let _ = room.set_windows(windows.unwrap_or_default());
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
    // A panic while a room was opened or closed leaves no half of it behind.
    PROCESS
        .get()
        .lifecycle
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
