//! Broadcasts through the leader: this node's own that no leader has relayed yet, and others' that
//! this node relays as leader.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Entry, Inner, OutMessage, OutboxLimits, Outboxes, Queued, Reliable, SenderRole};
use crate::core::id::{Incarnation, PeerId};
use crate::core::relay::CentralLog;
use crate::core::wire::Opaque;
use crate::error::SendError;
use crate::net::frame::CLASSIC_LANE;

/// The leader that this node's broadcasts go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Lead {
    /// No leader is known.
    #[default]
    None,
    /// This node, with the token of its leadership.
    Myself {
        me: PeerId,
        incarnation: Incarnation,
        token: Opaque,
    },
    /// A peer, with the token of its leadership.
    Peer(PeerId, Opaque),
}

/// The log of this node's broadcasts, and their destination.
#[derive(Debug, Default)]
pub(super) struct Central {
    /// By lane; each lane has its own numbers.
    logs: BTreeMap<u16, CentralLog<(Arc<Queued>, Reliable)>>,
    /// Leap of the numbers of a newly used lane.
    leap: u64,
    /// Key that derives a leap for each lane: a member that sees one leap must not know the others.
    keys: RandomState,
    pub(super) lead: Lead,
}

impl Central {
    pub(super) fn first(&self, lane: u16) -> u64 {
        self.logs.get(&lane).map_or(0, CentralLog::first)
    }

    /// Whether no broadcast waits for a leader.
    pub(super) fn is_flushed(&self) -> bool {
        self.lead == Lead::None || self.logs.values().all(CentralLog::is_empty)
    }

    /// Whether a further broadcast of `len` bytes fits.
    fn has_room(&self, limits: OutboxLimits, len: usize) -> bool {
        let kept = self.logs.values().map(CentralLog::kept);
        let (messages, bytes) = kept.fold((0, 0), |sum, log| (sum.0 + log.0, sum.1 + log.1));
        messages == 0 || (messages < limits.messages && bytes + len <= limits.bytes)
    }

    fn leap_of(&self, lane: u16) -> u64 {
        match lane {
            _ if self.leap == 0 => 0,
            CLASSIC_LANE => self.leap,
            // As many bits as the driver draws.
            _ => self.keys.hash_one((lane, self.leap)) >> 24,
        }
    }

    fn leap(&mut self, leap: u64) {
        self.leap = leap;
        let lanes: Vec<_> = self.logs.keys().copied().collect();
        for lane in lanes {
            let leap = self.leap_of(lane);
            if let Some(log) = self.logs.get_mut(&lane) {
                log.leap(leap);
            }
        }
    }

    fn push(&mut self, message: &Arc<Queued>, how: Reliable) -> u64 {
        let leap = self.leap_of(how.relay_lane());
        let log = self.logs.entry(how.relay_lane()).or_insert_with(|| {
            let mut log = CentralLog::default();
            log.leap(leap);
            log
        });
        log.push((Arc::clone(message), how), message.len())
    }
}

/// A broadcast that this node relays as leader.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    pub(crate) origin: PeerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) number: u64,
    pub(crate) how: Reliable,
    pub(crate) message: OutMessage,
    /// Its compressed form, if it arrived compressed.
    pub(crate) packed: Option<Bytes>,
}

impl Outboxes {
    /// Follows another leader, or another token of the same one: broadcasts that no leader has relayed go to
    /// the new leader. A node that leads sends them to all members. The numbers of broadcasts leap ahead by
    /// `leap`, which no other member may know.
    pub(crate) fn follow(&self, lead: Lead, leap: u64) {
        let mut inner = self.lock_always();
        if inner.central.lead == lead {
            return;
        }
        inner.central.leap(leap);
        inner.central.lead = lead.clone();
        match lead {
            Lead::None => {
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
                inner.relay_own(self.limits, &me, incarnation, &token);
            }
        }
    }

    /// Queues a broadcast for the leader to relay. If this node leads, it goes to every linked peer, or to none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub(crate) fn broadcast_central(
        &self,
        message: &OutMessage,
        how: Reliable,
    ) -> Result<(), SendError> {
        let limits = self.limits;
        let mut inner = self.lock()?;
        let (leader, token) = match &inner.central.lead {
            Lead::None => return Err(SendError::NoLeader),
            Lead::Myself { .. } => {
                inner.broadcast(limits, message, &SenderRole::Own, how, None)?;
                return Ok(());
            }
            Lead::Peer(leader, token) => (leader.clone(), token.clone()),
        };
        let len = message.payload.len();
        // The leader could not relay a message that another member does not accept.
        inner.check_sizes(len, None)?;
        let outbox = inner.linked(&leader)?;
        if !outbox.has_room(limits, how.relay_lane(), len) || !inner.central.has_room(limits, len) {
            return Err(SendError::QueueFull {
                peers: vec![leader],
            });
        }
        let message = Queued::new(message.clone());
        let number = inner.central.push(&message, how);
        let entry = Entry::new(message, SenderRole::Central { number, token }, how);
        inner.linked(&leader)?.push(how.relay_lane(), entry);
        Ok(())
    }

    /// Queues again what the leader asks for: broadcasts that it could not relay before it led.
    pub(crate) fn carry_again(&self, leader: &PeerId) {
        self.lock_always().carry_log_to(leader);
    }

    /// Records that the peer has relayed every broadcast of this node on a lane before number `next`.
    /// Returns whether that is possible.
    pub(crate) fn relayed(&self, peer: &PeerId, lane: u16, next: u64) -> bool {
        let mut inner = self.lock_always();
        let Some(outbox) = inner.open.get(peer) else {
            return true;
        };
        if next > outbox.lanes.get(&lane).map_or(0, |lane| lane.central_until) {
            return false; // never sent
        }
        if let Some(log) = inner.central.logs.get_mut(&lane) {
            log.relayed(next);
        }
        if inner.central.is_flushed() {
            self.drained.notify_waiters();
        }
        true
    }

    /// Queues another member's broadcast for every linked peer but its origin, or for none. Returns whether
    /// there was room. A linked peer that accepts no message of that length is skipped. A lost peer gets it
    /// only if its queue has room.
    pub(crate) fn relay(&self, relay: &Relay, token: &Opaque) -> bool {
        let (len, lane) = (relay.message.payload.len(), relay.how.relay_lane());
        let mut inner = self.lock_always();
        let origin = Some(&relay.origin);
        let takes_it = |outbox: &super::Outbox| len <= outbox.max_message_size;
        let has_room = inner
            .linked_but(origin)
            .filter(|(_, outbox)| takes_it(outbox))
            .all(|(_, outbox)| outbox.has_room(self.limits, lane, len));
        if !has_room {
            return false;
        }
        inner.count_missed();
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
        let entry = Entry::new(message, role, relay.how);
        for (peer, outbox) in inner.members_but_mut(origin) {
            if outbox.paused {
                outbox.push_or_miss(self.limits, lane, &entry);
            } else if takes_it(outbox) {
                outbox.push(lane, entry.clone());
            } else {
                tracing::warn!(%peer, len, origin = %relay.origin, "a broadcast is too long for a peer");
            }
        }
        true
    }

    /// A future that waits until there may be more room than at this call. Check for room between the call and the wait.
    pub(crate) fn more_room(&self) -> tokio::sync::futures::Notified<'_> {
        self.room.notified()
    }

    /// Number of broadcasts of this node that no leader has relayed, as far as it knows.
    #[cfg(test)]
    pub(crate) fn unrelayed(&self) -> u64 {
        let inner = self.lock_always();
        let logs = inner.central.logs.values();
        logs.map(|log| log.next() - log.first()).sum()
    }

    /// The number of this node's next broadcast on channel 0.
    #[cfg(test)]
    pub(crate) fn next_broadcast(&self) -> u64 {
        let inner = self.lock_always();
        inner.central.logs.get(&0).map_or(0, CentralLog::next)
    }

    /// Whether the host has closed the room.
    pub(crate) fn is_shut(&self) -> bool {
        self.lock_always().closed
    }
}

impl Inner {
    /// Queues the whole log for the leader, beyond the queue's limits: the log obeys the same limits. Unsent
    /// copies are withdrawn first, so that at most one is ever added.
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
        for (lane, log) in &self.central.logs {
            for (number, (message, how)) in log.iter() {
                let token = token.clone();
                let role = SenderRole::Central { number, token };
                outbox.push(*lane, Entry::new(Arc::clone(message), role, *how));
            }
        }
    }

    fn withdraw_unsent(&mut self) {
        for outbox in self.open.values_mut() {
            outbox.withdraw_unsent();
        }
    }

    /// This node now leads: sends the broadcasts left to an earlier leader to all members, which may
    /// have some of them already.
    fn relay_own(
        &mut self,
        limits: OutboxLimits,
        me: &PeerId,
        incarnation: Incarnation,
        token: &Opaque,
    ) {
        let entries: Vec<_> = self
            .central
            .logs
            .values()
            .flat_map(CentralLog::iter)
            .map(|(number, (message, how))| {
                let role = SenderRole::Relayed {
                    origin: me.clone(),
                    incarnation,
                    number,
                    token: token.clone(),
                };
                (
                    how.relay_lane(),
                    Entry::new(Arc::clone(message), role, *how),
                )
            })
            .collect();
        for (_, outbox) in self.members_but_mut(None) {
            for (lane, entry) in &entries {
                if outbox.paused {
                    outbox.push_or_miss(limits, *lane, entry);
                } else if entry.message.len() <= outbox.max_message_size {
                    outbox.push(*lane, entry.clone());
                }
            }
        }
        for log in self.central.logs.values_mut() {
            log.relayed(log.next());
        }
    }
}

impl super::Outbox {
    fn withdraw_unsent(&mut self) {
        for lane in self.lanes.values_mut() {
            let gone = lane.withdraw_unsent();
            self.queued.subtract(gone);
        }
    }
}
