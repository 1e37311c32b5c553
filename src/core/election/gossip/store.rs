//! Which messages are new.

use std::collections::BTreeMap;

use super::Order;
use crate::core::time::{Duration, Time};

/// Senders whose newest message is remembered, at most. Far more than a room has members; the limit is for
/// members that come and go under ever new names.
pub const MAX_CREATORS: usize = 1024;

/// The newest message of every sender, for as long as it may matter.
#[derive(Debug, Clone)]
pub struct Store<Id> {
    newest: BTreeMap<Id, (Order, Time)>,
}

impl<Id> Default for Store<Id> {
    fn default() -> Self {
        Self {
            newest: BTreeMap::new(),
        }
    }
}

impl<Id: Ord + Clone> Store<Id> {
    /// Whether a message is newer than all of its sender that came within `lifetime`; it is remembered then.
    pub fn is_news(&mut self, now: Time, lifetime: Duration, from: &Id, order: Order) -> bool {
        self.newest
            .retain(|_, (_, came_at)| now.since(*came_at) < lifetime);
        match self.newest.get(from) {
            Some((newest, _)) if order <= *newest => return false,
            Some(_) => {}
            None => self.make_room(),
        }
        self.newest.insert(from.clone(), (order, now));
        true
    }

    /// Forgets the sender that was silent for longest, if another one more would be too many.
    fn make_room(&mut self) {
        if self.newest.len() < MAX_CREATORS {
            return;
        }
        let silent = self.newest.iter().min_by_key(|(_, (_, came_at))| *came_at);
        if let Some(id) = silent.map(|(id, _)| id.clone()) {
            self.newest.remove(&id);
        }
    }

    /// Forgets a sender.
    pub fn forget(&mut self, id: &Id) {
        self.newest.remove(id);
    }

    /// How many senders are remembered.
    pub fn len(&self) -> usize {
        self.newest.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }
}
