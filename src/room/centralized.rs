//! Calls of centralized rooms: broadcasts through the leader, and messages on behalf of other members.

use std::sync::atomic::Ordering;

use super::{OutMessage, Room};
use crate::clock::Moment;
use crate::core::id::PeerId;
use crate::error::SendError;
use crate::net::outbox::{Reliable, SenderRole};

impl Room {
    /// Sets whether this node's broadcasts go through the leader.
    pub fn set_centralized(&self, on: bool) {
        self.shared.centralized.on.store(on, Ordering::Relaxed);
    }

    /// The setting of [`Room::set_centralized`].
    pub fn is_centralized(&self) -> bool {
        self.shared.centralized.on.load(Ordering::Relaxed)
    }

    /// Sets whether this node, as leader, forwards others' broadcasts to all but their origin.
    pub fn set_auto_forward(&self, on: bool) {
        let forward = &self.shared.centralized.auto_forward;
        forward.store(on, Ordering::Relaxed);
    }

    /// The setting of [`Room::set_auto_forward`].
    pub fn is_auto_forward(&self) -> bool {
        let forward = &self.shared.centralized.auto_forward;
        forward.load(Ordering::Relaxed)
    }

    /// Number of dropped messages on behalf of others, whose sender did not lead.
    pub fn dropped_relays(&self) -> u64 {
        self.shared.centralized.relaying.dropped()
    }

    /// Queues `message` on behalf of `from` for `to`, or for every connected peer but `from`, or for none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn forward(
        &self,
        from: &PeerId,
        to: Option<&PeerId>,
        message: OutMessage,
        how: Reliable,
    ) -> Result<(), SendError> {
        let shared = &self.shared;
        let token = self.snapshot().leader_token_at(Moment::now).cloned();
        let token = token.ok_or(SendError::NotLeader)?;
        if *from != shared.peer_id && !shared.outboxes.is_linked(from) {
            return Err(SendError::PeerNotFound { id: from.clone() });
        }
        let role = SenderRole::Forwarded {
            origin: from.clone(),
            token,
        };
        match to {
            None => shared
                .outboxes
                .broadcast_to_others(&message, &role, from, how),
            Some(to) if *to == shared.peer_id => self.deliver_here(from, message, how),
            Some(to) if to == from => Err(SendError::ForwardedToOrigin { id: to.clone() }),
            Some(to) => shared.outboxes.send(to, message, role, how),
        }
    }
}
