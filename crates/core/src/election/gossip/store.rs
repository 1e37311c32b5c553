//! Recognition of new messages.

use super::Order;
use crate::bounded::BoundedMap;
use crate::time::{Duration, Time};

/// Maximum number of senders whose newest message is remembered. Far more than a room has members; the limit is for
/// members that come and go under ever new names.
pub const MAX_CREATORS: usize = 1024;

/// The newest message of every sender, for as long as it may matter.
#[derive(Debug, Clone)]
pub struct Store<Id> {
    newest: BoundedMap<Id, (Order, Time), MAX_CREATORS>,
}

impl<Id> Default for Store<Id> {
    fn default() -> Self {
        Self {
            newest: BoundedMap::default(),
        }
    }
}

impl<Id: Ord + Clone> Store<Id> {
    /// Whether a message is newer than all of its sender's that came within `lifetime`; if so, it is remembered.
    pub fn is_news(&mut self, now: Time, lifetime: Duration, from: &Id, order: Order) -> bool {
        self.newest
            .retain(|_, (_, came_at)| now.since(*came_at) < lifetime);
        match self.newest.get(from) {
            Some((newest, _)) if order <= *newest => return false,
            _ => {}
        }
        // The sender that was silent for longest makes room.
        let news = (order, now);
        self.newest
            .insert_over(from.clone(), news, |_, (_, came_at)| *came_at);
        true
    }

    /// Forgets a sender.
    pub fn forget(&mut self, id: &Id) {
        self.newest.remove(id);
    }

    /// The number of senders that are remembered.
    pub fn len(&self) -> usize {
        self.newest.len()
    }

    /// Whether no sender is remembered.
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }
}
