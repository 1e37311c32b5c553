//! Requests of this member to its relays.

use room_transport::rendezvous::ToRelay;
use tokio::sync::mpsc;

use crate::core::id::Fingerprint;
use crate::core::path::{MAX_RELAYS, RelayNumber};

/// Requests that wait for one relay, at most; further ones are dropped.
const MAX_WAITING: usize = 32;

/// The way to the tasks that hold the links to relays.
#[derive(Debug)]
pub(crate) struct RelayRequests {
    tasks: Vec<mpsc::Sender<ToRelay>>,
}

impl RelayRequests {
    /// The ways to `count` relays, and their ends for the tasks.
    pub(crate) fn of(count: usize) -> (Self, Vec<mpsc::Receiver<ToRelay>>) {
        let channels = (0..count.min(MAX_RELAYS)).map(|_| mpsc::channel(MAX_WAITING));
        let (tasks, ends) = channels.unzip();
        (Self { tasks }, ends)
    }

    /// Has a relay keep away the holder of a key, which has failed to prove that it knows the room.
    pub(crate) fn block(&self, relay: RelayNumber, key: Fingerprint) {
        if let Some(task) = self.tasks.get(usize::from(relay.0)) {
            // The next failure repeats a dropped request.
            let _ = task.try_send(ToRelay::Block { key });
        }
    }
}
