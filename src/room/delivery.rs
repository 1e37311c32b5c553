//! Sends with delivery options.

use std::time::Instant;

use super::{OutMessage, Room, SendMode};
use crate::clock::Moment;
use crate::core::id::PeerId;
use crate::dispatch::{Delivery, Event};
use crate::error::SendError;
use crate::net::datagrams::report_dropped;
use crate::net::outbox::SenderRole;

impl Room {
    /// Queues `message` for `peer`; a message to this node itself is delivered locally.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send_with(
        &self,
        peer: &PeerId,
        message: OutMessage,
        how: SendMode,
    ) -> Result<(), SendError> {
        let shared = &self.shared;
        let to_myself = *peer == shared.peer_id;
        match how {
            SendMode::Reliable(how) if to_myself => self.deliver_here(peer, message, how),
            SendMode::Reliable(how) => shared.outboxes.send(peer, message, SenderRole::Own, how),
            SendMode::Unreliable(how) if to_myself => {
                let delivery = match how.key {
                    Some(_) => Delivery::Sequenced,
                    None => Delivery::Unreliable,
                };
                let until = how.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
                let message = message.into_incoming(peer.clone(), how.channel, delivery);
                shared.dispatch.push_datagram(message, until);
                Ok(())
            }
            SendMode::Unreliable(how) => {
                let dropped = shared.outboxes.send_unreliable(peer, &message, how)?;
                report_dropped(&shared.dispatch, dropped);
                Ok(())
            }
        }
    }

    /// Queues `message` for the leader; if this node leads, it is delivered locally.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn send_to_leader_with(&self, message: OutMessage, how: SendMode) -> Result<(), SendError> {
        let leader = self.snapshot().leader_at(Moment::now).cloned();
        self.send_with(&leader.ok_or(SendError::NoLeader)?, message, how)
    }

    /// Queues `message` for every connected peer, or for none; returns the number of recipients. In
    /// centralized mode it goes through the leader, and the number is 0. With `partial`, peers whose queue is
    /// full are skipped, and [`Event::SlowPeer`] names them.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn broadcast_with(
        &self,
        message: &OutMessage,
        how: SendMode,
        partial: bool,
    ) -> Result<usize, SendError> {
        let outboxes = &self.shared.outboxes;
        let dispatch = &self.shared.dispatch;
        if self.is_centralized() {
            if partial {
                return Err(SendError::PartialCentralized);
            }
            // A leader relays its own broadcasts, too.
            if self.snapshot().has_lapsed(Moment::now) {
                return Err(SendError::NoLeader);
            }
            match how {
                SendMode::Reliable(how) => outboxes.broadcast_central(message, how)?,
                SendMode::Unreliable(how) => {
                    report_dropped(
                        dispatch,
                        outboxes.broadcast_unreliable_central(message, how)?,
                    );
                }
            }
            return Ok(0);
        }
        match how {
            SendMode::Unreliable(how) => {
                let (took, dropped) = outboxes.broadcast_unreliable(message, how)?;
                report_dropped(dispatch, dropped);
                Ok(took)
            }
            SendMode::Reliable(how) if partial => {
                let (took, full) = outboxes.broadcast_partial(message, how)?;
                for peer in full {
                    dispatch.push(Event::SlowPeer(peer));
                }
                Ok(took)
            }
            SendMode::Reliable(how) => outboxes.broadcast(message, &SenderRole::Own, how),
        }
    }

    /// The longest unreliable message to `peer`, or to every connected peer, in bytes. Without connected
    /// peers it is the limit of every new link. `None` if the peer is not connected.
    pub fn max_datagram_size(&self, peer: Option<&PeerId>) -> Option<usize> {
        let max = self
            .shared
            .outboxes
            .max_unreliable(peer, peer.is_none() && self.is_centralized());
        max.map(|max| max.min(self.max_message_size()))
    }
}
