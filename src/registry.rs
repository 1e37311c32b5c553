//! The rooms of this process, by handle: opened, found and closed from any thread.
//!
//! A [`Handle`] names the slot of its room and a generation that no other room has. A handle whose room is closed finds
//! nothing, and neither does one that a forked child has from its parent: the child's slots are empty, and it goes on
//! with the parent's generations.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

use crate::config::Config;
use crate::core::id::{PeerId, SessionId};
use crate::dispatch::kind::Everything;
use crate::dispatch::{EventHandler, in_callback};
use crate::error::{CloseError, StartError};
use crate::fork::{Inherit, PerProcess};
use crate::glance::{self, Glance};
use crate::room::{Closed, Room};

/// Most open rooms of a process.
pub const MAX_ROOMS: usize = 1 << SLOT_BITS;

/// Bits of a handle that name the slot; the generation is above them.
const SLOT_BITS: u32 = 12;
/// Handles are below 2^53: languages whose numbers are doubles hold them exactly.
const HANDLE_BITS: u32 = 53;

/// The generation of the next room. A forked child goes on with the value of its parent.
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);

// Apart, so that an executable holds no bytes for the slots: all of them are zero.
static SLOTS: PerProcess<Slots> = PerProcess::new(Slots::empty());
static FREE: PerProcess<Mutex<Free>> = PerProcess::new(Mutex::new(Free::all()));

/// The number that names a room in the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(NonZeroU64);

impl Handle {
    /// The handle with this number, if a room may have it.
    pub fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The number, which is below 2^53 and not 0.
    pub fn number(self) -> u64 {
        self.0.get()
    }

    fn new(slot: usize) -> Result<Self, StartError> {
        let generation = NEXT_GENERATION.fetch_add(1, Ordering::Relaxed);
        let place = u64::try_from(slot).expect("a slot has 12 bits");
        let number = (generation < 1 << (HANDLE_BITS - SLOT_BITS))
            .then(|| NonZeroU64::new(generation << SLOT_BITS | place))
            .flatten();
        let spent = || StartError::internal("this process has used all handles of rooms");
        number.map(Self).ok_or_else(spent)
    }

    fn place(self) -> usize {
        let place = self.number() & ((1 << SLOT_BITS) - 1);
        usize::try_from(place).expect("a slot has 12 bits")
    }

    fn slot(self) -> &'static Slot {
        &SLOTS.get().0[self.place()]
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An open room.
pub struct OpenRoom {
    handle: Handle,
    room: Room,
    /// Whether [`close`] has released it. Locked while it does.
    is_closed: Mutex<bool>,
}

impl OpenRoom {
    /// Its handle.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Sets or removes the handler of all events. The old one is not running when this returns, unless the caller is
    /// inside a callback, and never runs again.
    pub fn set_event_handler(&self, handler: Option<EventHandler>) {
        self.dispatch().register::<Everything>(handler);
    }
}

impl Deref for OpenRoom {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

struct Slots([Slot; MAX_ROOMS]);

/// The place of a room. All of its bytes are zero while no room has it.
struct Slot {
    /// The handle of the room that calls reach, or 0.
    shown: AtomicU64,
    glance: Glance,
    /// The room that calls reach.
    room: ArcSwapOption<OpenRoom>,
    /// The room until [`close`] has released it. Locked for moments only.
    held: Mutex<Option<Arc<OpenRoom>>>,
}

impl Slots {
    const fn empty() -> Self {
        Self(
            [const {
                Slot {
                    shown: AtomicU64::new(0),
                    glance: Glance::new(),
                    room: ArcSwapOption::const_empty(),
                    held: Mutex::new(None),
                }
            }; MAX_ROOMS],
        )
    }
}

impl Inherit for Slots {
    fn inherit(_: &Self) -> Self {
        Self::empty()
    }
}

/// The slots that no room has.
struct Free {
    /// Slots from this one on have had no room yet.
    unused: usize,
    /// Slots whose rooms are closed.
    returned: Vec<usize>,
}

impl Free {
    const fn all() -> Self {
        Self {
            unused: 0,
            returned: Vec::new(),
        }
    }

    fn take(&mut self) -> Option<usize> {
        self.returned.pop().or_else(|| {
            let next = self.unused;
            (next < MAX_ROOMS).then(|| self.unused += 1)?;
            Some(next)
        })
    }
}

impl Inherit for Mutex<Free> {
    fn inherit(_: &Self) -> Self {
        Self::new(Free::all())
    }
}

/// A slot for a room that is being opened. Dropping it returns the slot.
struct Reserved(Handle);

impl Reserved {
    fn take() -> Result<Self, StartError> {
        let full = StartError::TooManyRooms { limit: MAX_ROOMS };
        let slot = lock(FREE.get()).take().ok_or(full)?;
        Handle::new(slot).map(Self).inspect_err(|_| give_back(slot))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give_back(self.0.place());
    }
}

fn give_back(slot: usize) {
    lock(FREE.get()).returned.push(slot);
}

/// Opens a room with this event handler. `announce` receives the room when it is open, before any handler of an event
/// runs.
///
/// # Errors
/// [`StartError`]; no room is left then, and `announce` did not run.
pub fn open(
    peer: PeerId,
    session: SessionId,
    config: Config,
    handler: Option<EventHandler>,
    announce: impl FnOnce(&Arc<OpenRoom>),
) -> Result<Handle, StartError> {
    let reserved = Reserved::take()?;
    let handle = reserved.0;
    let slot = handle.slot();
    let dispatch = Arc::new(Room::dispatch_for(&peer, &config)?);
    dispatch.set_room(handle.number());
    // The handlers of the first events must find the room.
    dispatch.wait_to_begin();
    if config.hold_messages {
        dispatch.hold_messages();
    }
    dispatch.register::<Everything>(handler);
    let opened = Room::open_with(peer, session, config, Arc::clone(&dispatch), &slot.glance);
    let room = opened.inspect_err(|_| dispatch.stop())?;
    let room = Arc::new(OpenRoom {
        handle,
        room,
        is_closed: Mutex::new(false),
    });
    // Its closing returns the slot from now on.
    std::mem::forget(reserved);
    *lock(&slot.held) = Some(Arc::clone(&room));
    slot.room.store(Some(Arc::clone(&room)));
    slot.shown.store(handle.number(), Ordering::Release);
    slot.glance.attach(|| glance::encode(&room.snapshot()));
    announce(&room);
    dispatch.begin();
    Ok(handle)
}

/// The open room with this number, as [`room`] finds it.
pub fn find(number: u64) -> Option<Arc<OpenRoom>> {
    Handle::from_number(number).and_then(room)
}

/// The room; `None` from the beginning of [`leave`] or [`close`] on. Takes no lock.
pub fn room(handle: Handle) -> Option<Arc<OpenRoom>> {
    let room = handle.slot().room.load_full()?;
    (room.handle == handle).then_some(room)
}

/// Whether the room leads; `None` if the caller must ask [`room`].
pub(crate) fn leads(handle: Handle) -> Option<bool> {
    at_a_glance(handle, Glance::leads)
}

/// The number of the room's connected peers; `None` if the caller must ask [`room`].
pub(crate) fn connected(handle: Handle) -> Option<u64> {
    at_a_glance(handle, Glance::connected)
}

fn at_a_glance<T>(handle: Handle, read: impl FnOnce(&Glance) -> Option<T>) -> Option<T> {
    let slot = handle.slot();
    let read = read(&slot.glance);
    // A closing room first detaches the glance, and the next one of the slot attaches it after it is shown. If this room
    // is shown now, the glance was its own, because no room is shown twice.
    (slot.shown.load(Ordering::Acquire) == handle.number())
        .then_some(read)
        .flatten()
}

/// Begins to leave the room: calls no longer reach it, and its peers learn of it. Does not wait. [`close`] must follow.
///
/// # Errors
/// [`CloseError::NotOpen`]; nothing has changed then.
pub fn leave(handle: Handle) -> Result<(), CloseError> {
    let room = take_out(handle).ok_or(CloseError::NotOpen)?;
    room.begin_to_leave();
    Ok(())
}

/// Leaves the room and releases everything. When it returns, none of its callbacks runs, and none of its threads, except
/// for lookups ([`Closed::ButForLookups`]).
///
/// # Errors
/// [`CloseError`]; nothing has changed then.
pub fn close(handle: Handle) -> Result<Closed, CloseError> {
    if in_callback() {
        return Err(CloseError::WouldDeadlock);
    }
    let slot = handle.slot();
    let held = lock(&slot.held).clone();
    let room = held.filter(|room| room.handle == handle);
    let room = room.ok_or(CloseError::NotOpen)?;
    take_out(handle);
    let mut is_closed = lock(&room.is_closed);
    if *is_closed {
        return Err(CloseError::NotOpen);
    }
    let closed = room.close();
    *is_closed = true;
    *lock(&slot.held) = None;
    give_back(handle.place());
    Ok(closed)
}

/// Lets no call reach the room from now on, if that is new.
fn take_out(handle: Handle) -> Option<Arc<OpenRoom>> {
    let slot = handle.slot();
    // The next room of the slot comes after this one is released.
    let held = lock(&slot.held);
    held.as_ref().filter(|room| room.handle == handle)?;
    slot.shown.store(0, Ordering::Release);
    slot.glance.detach();
    slot.room.swap(None)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single assignment; a panic while a room closes leaves it closed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
