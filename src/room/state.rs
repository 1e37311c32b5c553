//! The room's state for the host's threads: its requests, the properties that it has seen, and its snapshots.
//!
//! The network thread, the dispatcher and the host share the member's part in the log under one lock, which each of them
//! holds for one step. What the host receives is taken from the log in the host's turn ([`StateSource`]), so that nothing
//! waits for a slow host. The properties that it sees are those after the last entry that it has received, and have a lock
//! of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::Room;
use super::live_node::RoomClock;
use crate::core::id::PeerId;
use crate::dispatch::StateSource;
use crate::error::{NoStateError, SnapshotError, SubmitError};
use crate::net::FIRST_MESSAGE_TYPE;
use crate::state::ballot::History;
use crate::state::entry::{Key, PropertyChange, Request};
use crate::state::event::StateEvent;
use crate::state::replica::Replica;
use crate::state::tables::Property;

/// The state of an open room.
pub(super) struct RoomState {
    replica: Mutex<Replica>,
    /// The properties after the last entry that the host has received.
    seen: Mutex<BTreeMap<Key, Property>>,
    clock: RoomClock,
    /// Notified when a host's thread has given the network thread something to do.
    pub(super) changed: Notify,
}

/// Figures of a room's state at this member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateInfo {
    /// Members that count for a majority, by the log.
    pub roster: usize,
    /// Whether a majority of them answered the last opening, or it was the room's first.
    pub is_exclusive: bool,
    /// Requests of this host without a result.
    pub pending: usize,
    /// The history of the log.
    pub history: Option<History>,
    /// The number of the ballot whose log this member has.
    pub ballot: u64,
    /// The index of the last entry that the host has received.
    pub taken: u64,
    /// The index up to which entries are confirmed.
    pub confirmed: u64,
    /// Upper estimate of the memory in use, in bytes.
    pub bytes: usize,
}

impl RoomState {
    pub(super) fn new(replica: Replica, clock: RoomClock) -> Self {
        Self {
            replica: Mutex::new(replica),
            seen: Mutex::default(),
            clock,
            changed: Notify::new(),
        }
    }

    /// The member's part in the log. Hold it for one step only.
    pub(super) fn replica(&self) -> MutexGuard<'_, Replica> {
        lock(&self.replica)
    }

    /// `note` receives the number before any thread can take the result.
    fn submit(&self, request: Request, note: impl FnOnce(u64)) -> Result<u64, SubmitError> {
        let mut replica = self.replica();
        let number = replica.submit(request)?;
        note(number);
        drop(replica);
        self.changed.notify_one();
        Ok(number)
    }

    fn provide_snapshot(&self, request: u64, data: Option<Bytes>) -> Result<(), SnapshotError> {
        let now = self.clock.now();
        let provided = self.replica().provide_snapshot(now, request, data);
        self.changed.notify_one();
        Ok(provided?)
    }

    fn info(&self) -> StateInfo {
        let replica = self.replica();
        StateInfo {
            roster: replica.roster().len(),
            is_exclusive: replica.tables().is_exclusive(),
            pending: replica.open_requests(),
            history: replica.history(),
            ballot: replica.adopted().map_or(0, |ballot| ballot.number),
            taken: replica.taken(),
            confirmed: replica.confirmed(),
            bytes: replica.bytes(),
        }
    }
}

impl StateSource for RoomState {
    fn take(&self) -> Vec<StateEvent> {
        let mut replica = self.replica();
        let due = replica.next_deadline();
        let events = replica.take(1);
        // After these events the log may have to ask for a snapshot.
        let is_sooner = replica
            .next_deadline()
            .is_some_and(|next| due.is_none_or(|due| next < due));
        drop(replica);
        if is_sooner {
            self.changed.notify_one();
        }
        let mut seen = lock(&self.seen);
        for event in &events {
            if let StateEvent::Property { key, property, .. } = event {
                match property {
                    Some(property) => seen.insert(key.clone(), property.clone()),
                    None => seen.remove(key),
                };
            }
        }
        events
    }
}

impl Room {
    /// Submits an action of at most [`MAX_ACTION_BYTES`](crate::state::limits::MAX_ACTION_BYTES), also while no member
    /// leads. One ActionResult with the returned number follows.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn submit(&self, msg_type: u16, data: &[u8]) -> Result<u64, SubmitError> {
        self.submit_noting(msg_type, data, |_| {})
    }

    /// As [`Room::submit`]; `note` receives the number before any thread can take the result. It must not call the room.
    pub(crate) fn submit_noting(
        &self,
        msg_type: u16,
        data: &[u8],
        note: impl FnOnce(u64),
    ) -> Result<u64, SubmitError> {
        if msg_type < FIRST_MESSAGE_TYPE {
            return Err(SubmitError::TypeReserved { msg_type });
        }
        let data = Bytes::copy_from_slice(data);
        let request = Request::Action { msg_type, data };
        self.state()?.submit(request, note)
    }

    /// Submits changes of properties: all of them are made, or none. One ActionResult with the returned number follows.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn set_properties(&self, changes: Vec<PropertyChange>) -> Result<u64, SubmitError> {
        self.set_properties_noting(changes, |_| {})
    }

    /// As [`Room::set_properties`], with a `note` as in [`Room::submit_noting`].
    pub(crate) fn set_properties_noting(
        &self,
        changes: Vec<PropertyChange>,
        note: impl FnOnce(u64),
    ) -> Result<u64, SubmitError> {
        self.state()?.submit(Request::Properties(changes), note)
    }

    /// The property of that name after the last entry that the host has received.
    ///
    /// # Errors
    /// [`NoStateError`].
    pub fn property(&self, key: &str) -> Result<Option<Property>, NoStateError> {
        let seen = lock(&self.state()?.seen);
        let key = Key::new(key).ok();
        Ok(key.and_then(|key| seen.get(&key).cloned()))
    }

    /// The names of the properties that `owner` owns, or of all, as of the last entry that the host has received.
    ///
    /// # Errors
    /// [`NoStateError`].
    pub fn property_keys(&self, owner: Option<&PeerId>) -> Result<Vec<Key>, NoStateError> {
        let seen = lock(&self.state()?.seen);
        let owned = seen
            .iter()
            .filter(|(_, property)| owner.is_none() || property.owner.as_ref() == owner);
        Ok(owned.map(|(key, _)| key.clone()).collect())
    }

    /// Answers a SnapshotWanted with the state that the host had then; `None` declines.
    ///
    /// # Errors
    /// [`SnapshotError`]. The request goes on only after [`SnapshotError::TooLong`].
    pub fn provide_snapshot(
        &self,
        request: u64,
        snapshot: Option<&[u8]>,
    ) -> Result<(), SnapshotError> {
        let snapshot = snapshot.map(Bytes::copy_from_slice);
        self.state()?.provide_snapshot(request, snapshot)
    }

    /// Figures of the room's state.
    ///
    /// # Errors
    /// [`NoStateError`].
    pub fn state_info(&self) -> Result<StateInfo, NoStateError> {
        Ok(self.state()?.info())
    }

    fn state(&self) -> Result<&Arc<RoomState>, NoStateError> {
        self.state.as_ref().ok_or(NoStateError)
    }
}

/// No code panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
