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

/// State of this process. A forked child inherits only the windows.
struct Process {
    room: ArcSwapOption<Room>,
    glance: Glance,
    /// Held while a room is opened or closed.
    lifecycle: Mutex<()>,
    events: Mutex<Events>,
    /// The windows of the gossip strategy, for the room and all later ones; `None` until the first change. Locked for
    /// moments only.
    windows: Mutex<Option<Windows>>,
    /// A copy to read without the lock, which another thread may hold while a child is forked.
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

/// The process's event handler, which may be registered before the room opens. Locked for moments only, and never while
/// code of the host runs.
struct Events {
    /// The handler of the room, or of the next one.
    handler: Option<EventHandler>,
    /// The queue of the room that is being opened, open, or being closed.
    dispatch: Option<RoomDispatch>,
}

struct RoomDispatch {
    dispatch: Arc<Dispatch>,
    /// The room is closing with its handler, and a new handler is for the next room.
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
    // The room of a running callback exists, and a shutdown under way waits for the callback.
    if in_callback() {
        return Err(StartError::AlreadyInitialized);
    }
    let _lifecycle = lifecycle();
    if PROCESS.get().room.load().is_some() {
        return Err(StartError::AlreadyInitialized);
    }
    let dispatch = Arc::new(Room::dispatch_for(&peer, &config)?);
    // A fixed host leads at once: the callback for that must find the room.
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
            // The windows may have changed before this became the room of the process.
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

/// Leaves the room and releases everything. When it returns, none of its callbacks runs, and no thread but those of
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

/// Sets or removes the event handler: of the room, if there is one, else of the next. When this returns, the old
/// handler is not running, unless the caller is inside it, and never runs again. A shutdown removes it.
pub fn register_event_handler(handler: Option<EventHandler>) {
    let mut events = events();
    // One step, so that of two concurrent calls the same one is last in both places.
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

/// Registers the handler that precedes the room with its queue, before any event is queued.
fn attach_events(dispatch: &Arc<Dispatch>) {
    let mut events = events();
    // An empty queue without a handler has no call to wait for.
    dispatch.finish(dispatch.replace::<Everything>(events.handler.clone()));
    events.dispatch = Some(RoomDispatch {
        dispatch: Arc::clone(dispatch),
        closing: false,
    });
}

/// Leaves the handler to the room's queue alone, which drops it when it stops.
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

/// Whether a room is open and not shutting down.
pub fn is_initialized() -> bool {
    PROCESS.get().room.load().is_some()
}

/// The room; `None` before `initialize` and from the beginning of `shutdown`. Takes no lock.
pub fn room() -> Option<Arc<Room>> {
    PROCESS.get().room.load_full()
}

/// The room's numbers for the cheapest queries.
pub(crate) fn glance() -> &'static Glance {
    &PROCESS.get().glance
}

/// The windows of the gossip strategy, in force or not.
pub fn windows() -> Windows {
    process_windows().unwrap_or_default()
}

/// Changes the windows of the gossip strategy: of the room from the next window on, and of all rooms opened later. Does
/// not wait.
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
    // In one step with the change, so that of two concurrent calls the same one is last in both places.
    pass_on(&present);
    Ok(())
}

/// Passes the windows of the process to the room, if there is one.
fn pass_on(windows: &MutexGuard<'static, Option<Windows>>) {
    if let Some(room) = room() {
        // The values are checked already.
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
    // A panic during the opening or closing of a room leaves no half of it behind.
    PROCESS
        .get()
        .lifecycle
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
