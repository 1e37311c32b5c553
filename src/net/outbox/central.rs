//! Broadcasts that go through the leader: what this node keeps of its own until a leader has relayed it, and
//! what it relays as leader.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Entry, Inner, OutMessage, Outboxes, Queued, SenderRole};
use crate::core::id::{Incarnation, PeerId};
use crate::core::relay::CentralLog;
use crate::core::wire::Opaque;
use crate::error::SendError;

/// Who leads, as far as this node's broadcasts are concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Nobody is known to.
    #[default]
    Nobody,
    /// This node, with the token of its leadership.
    Myself {
        me: PeerId,
        incarnation: Incarnation,
        token: Opaque,
    },
    /// A peer, with the token of its leadership.
    Peer(PeerId, Opaque),
}

/// The log of this node, and where it goes.
#[derive(Debug, Default)]
pub(super) struct Central {
    log: CentralLog<Arc<Queued>>,
    lead: Lead,
}

impl Central {
    pub(super) fn first(&self) -> u64 {
        self.log.first()
    }

    /// Whether no leader has anything to relay.
    pub(super) fn is_flushed(&self) -> bool {
        self.log.first() == self.log.next() || self.lead == Lead::Nobody
    }
}

/// A broadcast that this node relays as leader.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    pub(crate) origin: PeerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) number: u64,
    pub(crate) message: OutMessage,
    /// Its compressed form, if it came in that.
    pub(crate) packed: Option<Bytes>,
}

impl Outboxes {
    /// Another leader, or another token: what no leader has relayed yet goes to the present one. A node that
    /// leads itself sends it to all. The numbers of broadcasts leap ahead by `leap`, which nobody else may know.
    pub(crate) fn follow(&self, lead: Lead, leap: u64) {
        let mut inner = self.lock_always();
        if inner.central.lead == lead {
            return;
        }
        inner.central.log.leap(leap);
        inner.central.lead = lead.clone();
        match lead {
            Lead::Nobody => {
                inner.withdraw_unsent();
                self.drained.notify_waiters();
            }
            Lead::Peer(leader, _) => {
                inner.withdraw_unsent();
                inner.carry_log_to(&leader);
            }
            Lead::Myself {
                me,
                incarnation,
                token,
            } => {
                inner.withdraw_unsent();
                inner.relay_own(&me, incarnation, &token);
            }
        }
    }

    /// Queues a broadcast for the leader to relay. At the leader it goes to every linked peer, or to none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast_central(&self, message: &OutMessage) -> Result<(), SendError> {
        let limits = self.limits;
        let mut inner = self.lock()?;
        let (leader, token) = match &inner.central.lead {
            Lead::Nobody => return Err(SendError::NoLeader),
            Lead::Myself { .. } => return inner.broadcast(limits, message, &SenderRole::Own, None),
            Lead::Peer(leader, token) => (leader.clone(), token.clone()),
        };
        let len = message.payload.len();
        // The leader could not relay what one of the others does not take.
        inner.check_sizes(len, None)?;
        let outbox = inner.linked(&leader)?;
        if !outbox.has_room(limits, len)
            || !inner
                .central
                .log
                .has_room(limits.messages, limits.bytes, len)
        {
            return Err(SendError::QueueFull {
                peers: vec![leader],
            });
        }
        let message = Queued::new(message.clone());
        let number = inner.central.log.push(Arc::clone(&message), len);
        let entry = Entry::new(message, SenderRole::Central { number, token });
        inner.linked(&leader)?.push(entry);
        Ok(())
    }

    /// A peer that leads asks for what it could not relay before it led.
    pub(crate) fn carry_again(&self, leader: &PeerId) {
        self.lock_always().carry_log_to(leader);
    }

    /// The peer has relayed every broadcast of this node before number `next`. Tells whether that is possible.
    pub(crate) fn relayed(&self, peer: &PeerId, next: u64) -> bool {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get(peer) else {
            return true;
        };
        if next > outbox.central_until {
            return false; // never sent
        }
        inner.central.log.relayed(next);
        if inner.central.is_flushed() {
            self.drained.notify_waiters();
        }
        true
    }

    /// Queues another's broadcast for every linked peer but its origin, or for none; tells whether there was
    /// room. A peer that takes no message of that length is left out.
    pub(crate) fn relay(&self, relay: &Relay, token: &Opaque) -> bool {
        let len = relay.message.payload.len();
        let mut inner = self.lock_always();
        let origin = Some(&relay.origin);
        let takes_it = |outbox: &super::Outbox| len <= outbox.max_message_size;
        let has_room = inner
            .linked_but(origin)
            .filter(|(_, outbox)| takes_it(outbox))
            .all(|(_, outbox)| outbox.has_room(self.limits, len));
        if !has_room {
            return false;
        }
        let packed = match &relay.packed {
            Some(packed) => OnceLock::from(Some(packed.clone())),
            None => OnceLock::new(),
        };
        let message = Arc::new(Queued {
            message: relay.message.clone(),
            packed,
        });
        let role = SenderRole::Relayed {
            origin: relay.origin.clone(),
            incarnation: relay.incarnation,
            number: relay.number,
            token: token.clone(),
        };
        let entry = Entry::new(message, role);
        for (peer, outbox) in &mut inner.open {
            if !outbox.is_open() || *peer == relay.origin {
                continue;
            }
            if takes_it(outbox) {
                outbox.push(entry.clone());
            } else {
                tracing::warn!(%peer, len, origin = %relay.origin, "a broadcast is too long for a peer");
            }
        }
        true
    }

    /// Waits until there may be more room than at the call of this function. The room is looked for between
    /// the call and the wait.
    pub(crate) fn more_room(&self) -> tokio::sync::futures::Notified<'_> {
        self.room.notified()
    }

    /// How many broadcasts of this node no leader has relayed, as far as it knows.
    #[cfg(test)]
    pub(crate) fn unrelayed(&self) -> u64 {
        let log = &self.lock_always().central.log;
        log.next() - log.first()
    }

    /// Whether the host has closed the room.
    pub(crate) fn is_shut(&self) -> bool {
        self.lock_always().closed
    }
}

impl Inner {
    /// Puts everything that is kept at the end of the leader's queue, beyond its limits: the log has the same.
    /// Copies that did not go out yet are taken back first, so that no more than one is ever added.
    pub(super) fn carry_log_to(&mut self, leader: &PeerId) {
        let Lead::Peer(target, token) = &self.central.lead else {
            return;
        };
        let Some(outbox) = self.open.get_mut(leader) else {
            return;
        };
        if target != leader || outbox.paused {
            return;
        }
        outbox.withdraw_unsent();
        for (number, message) in self.central.log.iter() {
            let token = token.clone();
            let role = SenderRole::Central { number, token };
            outbox.push(Entry::new(Arc::clone(message), role));
        }
    }

    fn withdraw_unsent(&mut self) {
        for outbox in self.open.values_mut() {
            outbox.withdraw_unsent();
        }
    }

    /// This node leads now: what it left to an earlier leader goes to all, who may have some of it already.
    fn relay_own(&mut self, me: &PeerId, incarnation: Incarnation, token: &Opaque) {
        let entries: Vec<_> = self
            .central
            .log
            .iter()
            .map(|(number, message)| {
                let role = SenderRole::Relayed {
                    origin: me.clone(),
                    incarnation,
                    number,
                    token: token.clone(),
                };
                Entry::new(Arc::clone(message), role)
            })
            .collect();
        for outbox in self.linked_but_mut(None) {
            for entry in &entries {
                if entry.message.len() <= outbox.max_message_size {
                    outbox.push(entry.clone());
                }
            }
        }
        let next = self.central.log.next();
        self.central.log.relayed(next);
    }
}

impl super::Outbox {
    /// Takes back the broadcasts for a leader that no link has carried: their numbers on the lane are not
    /// used yet.
    fn withdraw_unsent(&mut self) {
        let sent = self.sent_until.saturating_sub(self.first_seq);
        let mut index = 0;
        let bytes = &mut self.bytes;
        self.entries.retain(|entry| {
            let unsent = index >= sent;
            index += 1;
            let keep = !(unsent && matches!(entry.role, SenderRole::Central { .. }));
            if !keep {
                *bytes -= entry.message.len();
            }
            keep
        });
        self.check();
    }
}
