//! Queue of unreliable messages, which go as datagrams and are dropped rather than delayed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

use super::central::Lead;
use super::{Inner, OutMessage, Outboxes};
use crate::core::id::{Incarnation, PeerId};
use crate::core::wire::Opaque;
use crate::error::SendError;
use crate::net::frame::{
    DatagramHeader, DatagramRole, MAX_DATAGRAM_HEADER_BYTES, MAX_DATAGRAM_RELAY_BYTES, Sequence,
    datagram,
};

/// Datagrams that wait for the link to a peer, at most; the oldest are dropped.
const MAX_QUEUED: usize = 256;
/// Bytes of their payloads, at most.
const MAX_QUEUED_BYTES: usize = 128 * 1024;
/// Number of priorities.
const PRIORITIES: usize = 4;
/// Datagram size on the smallest path of QUIC (1200 bytes), assumed until the link reports its own.
const LEAST_DATAGRAM_BYTES: usize = 1150;

// The documentation of mmn_max_datagram_size promises this for any path.
const _: () = {
    assert!(LEAST_DATAGRAM_BYTES - MAX_DATAGRAM_HEADER_BYTES >= 1100);
    assert!(LEAST_DATAGRAM_BYTES - MAX_DATAGRAM_HEADER_BYTES - MAX_DATAGRAM_RELAY_BYTES >= 850);
};

/// Delivery options of an unreliable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unreliable {
    /// The sender's channel.
    pub channel: u8,
    /// 0 to 3; the highest is sent first.
    pub priority: u8,
    /// Longest time that it may wait.
    pub ttl: Option<Duration>,
    /// Key of a sequenced message: older ones of the key are dropped.
    pub key: Option<u64>,
}

/// Another member's datagram that this node relays as leader.
#[derive(Debug, Clone)]
pub(crate) struct DatagramRelay {
    pub(crate) origin: PeerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) token: Opaque,
}

/// Number of dropped datagrams per peer.
pub(crate) type Dropped = Vec<(PeerId, u64)>;

#[derive(Debug, Clone)]
struct Waiting {
    header: DatagramHeader,
    payload: Bytes,
    since: Instant,
    until: Option<Instant>,
}

/// The queue of one peer.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// By priority.
    waiting: [VecDeque<Waiting>; PRIORITIES],
    count: usize,
    bytes: usize,
    /// Number of the next sequenced datagram.
    next_number: u64,
    /// Longest datagram that the link carries.
    max_bytes: usize,
    pub(super) sent: u64,
    writer: Arc<Notify>,
    writer_waits: bool,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self {
            waiting: Default::default(),
            count: 0,
            bytes: 0,
            next_number: 0,
            max_bytes: LEAST_DATAGRAM_BYTES,
            sent: 0,
            writer: Arc::default(),
            writer_waits: false,
        }
    }
}

/// The longest message that fits a datagram of `max_bytes`.
fn max_payload(max_bytes: usize, is_central: bool) -> usize {
    let relay = if is_central {
        MAX_DATAGRAM_RELAY_BYTES
    } else {
        0
    };
    max_bytes.saturating_sub(MAX_DATAGRAM_HEADER_BYTES + relay)
}

impl Datagrams {
    fn max_payload(&self, is_central: bool) -> usize {
        max_payload(self.max_bytes, is_central)
    }

    /// Queues a datagram; returns how many were dropped for it.
    fn push(&mut self, message: &OutMessage, how: Unreliable, role: DatagramRole) -> u64 {
        let since = Instant::now();
        let sequence = how.key.map(|key| {
            self.next_number += 1;
            Sequence {
                key,
                number: self.next_number,
            }
        });
        let waiting = Waiting {
            header: DatagramHeader {
                channel: how.channel,
                msg_type: message.msg_type,
                flags: message.flags,
                ttl_ms: how
                    .ttl
                    .map_or(0, |ttl| u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)),
                sequence,
                role,
            },
            payload: message.payload.clone(),
            since,
            until: how.ttl.and_then(|ttl| since.checked_add(ttl)),
        };
        self.bytes += waiting.payload.len();
        self.count += 1;
        let priority = usize::from(how.priority).min(PRIORITIES - 1);
        self.waiting[priority].push_back(waiting);
        let mut dropped = 0;
        while self.count > MAX_QUEUED || (self.bytes > MAX_QUEUED_BYTES && self.count > 1) {
            self.drop_oldest();
            dropped += 1;
        }
        if std::mem::take(&mut self.writer_waits) {
            self.writer.notify_one();
        }
        dropped
    }

    fn drop_oldest(&mut self) {
        let fronts = self.waiting.iter_mut();
        let fronts = fronts.filter(|queue| !queue.is_empty());
        let oldest = fronts.min_by_key(|queue| queue.front().map(|waiting| waiting.since));
        if let Some(waiting) = oldest.and_then(VecDeque::pop_front) {
            self.count -= 1;
            self.bytes -= waiting.payload.len();
        }
    }

    /// The next datagram that has not expired, and how many expired before it.
    fn take(&mut self) -> (Option<Waiting>, u64) {
        let now = Instant::now();
        let mut dropped = 0;
        for queue in self.waiting.iter_mut().rev() {
            while let Some(waiting) = queue.pop_front() {
                self.count -= 1;
                self.bytes -= waiting.payload.len();
                if waiting.until.is_some_and(|until| now >= until) {
                    dropped += 1;
                    continue;
                }
                self.sent += 1;
                return (Some(waiting), dropped);
            }
        }
        self.writer_waits = true;
        (None, dropped)
    }

    /// Drops the queue; returns its length.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.count as u64;
        self.waiting = Default::default();
        self.count = 0;
        self.bytes = 0;
        count
    }

    /// Prepares for a new link.
    pub(super) fn restart(&mut self) {
        self.writer = Arc::new(Notify::new());
        self.writer_waits = false;
    }
}

impl Outboxes {
    /// Queues an unreliable message for a peer. Returns how many were dropped: older ones, or
    /// this one if the link is lost.
    ///
    /// # Errors
    /// [`SendError`], but never because a queue is full; nothing was queued then.
    pub(crate) fn send_unreliable(
        &self,
        peer: &PeerId,
        message: &OutMessage,
        how: Unreliable,
    ) -> Result<Dropped, SendError> {
        let mut inner = self.lock()?;
        let unknown = || SendError::PeerNotFound { id: peer.clone() };
        let outbox = inner.open.get_mut(peer).filter(|outbox| !outbox.finishing);
        let outbox = outbox.ok_or_else(unknown)?;
        outbox.check_datagram(peer, message.payload.len(), false)?;
        let dropped = if outbox.paused {
            1
        } else {
            outbox.datagrams.push(message, how, DatagramRole::Peer)
        };
        Ok(some(peer, dropped).into_iter().collect())
    }

    /// [`Outboxes::send_unreliable`] to every peer. Also returns the number of recipients.
    ///
    /// # Errors
    /// As [`Outboxes::send_unreliable`].
    pub(crate) fn broadcast_unreliable(
        &self,
        message: &OutMessage,
        how: Unreliable,
    ) -> Result<(usize, Dropped), SendError> {
        let mut inner = self.lock()?;
        inner.check_datagrams(message.payload.len(), false)?;
        Ok(inner.push_unreliable(message, how, &DatagramRole::Peer, None))
    }

    /// Queues an unreliable broadcast for the leader to relay. If this node leads, it goes to every linked peer.
    ///
    /// # Errors
    /// As [`Outboxes::send_unreliable`].
    pub(crate) fn broadcast_unreliable_central(
        &self,
        message: &OutMessage,
        how: Unreliable,
    ) -> Result<Dropped, SendError> {
        let mut inner = self.lock()?;
        let (leader, token) = match &inner.central.lead {
            Lead::None => return Err(SendError::NoLeader),
            Lead::Peer(leader, token) => (leader.clone(), token.clone()),
            Lead::Myself { .. } => {
                inner.check_datagrams(message.payload.len(), true)?;
                return Ok(inner
                    .push_unreliable(message, how, &DatagramRole::Peer, None)
                    .1);
            }
        };
        inner.check_datagrams(message.payload.len(), true)?;
        let outbox = inner.linked(&leader)?;
        let dropped = outbox
            .datagrams
            .push(message, how, DatagramRole::Central { token });
        Ok(some(&leader, dropped).into_iter().collect())
    }

    /// Queues another member's datagram for every linked peer but its origin. Peers whose link does not
    /// carry its length are skipped.
    pub(crate) fn relay_datagram(
        &self,
        relay: &DatagramRelay,
        message: &OutMessage,
        how: Unreliable,
    ) -> Dropped {
        let role = DatagramRole::Relayed {
            origin: relay.origin.clone(),
            incarnation: relay.incarnation,
            token: relay.token.clone(),
        };
        let mut inner = self.lock_always();
        inner
            .push_unreliable(message, how, &role, Some(&relay.origin))
            .1
    }

    /// The next datagram for the link to a peer, and how many expired before it. If there is none, the next
    /// datagram triggers the notice of [`Outboxes::attach_datagrams`].
    pub(crate) fn take_datagram(&self, peer: &PeerId) -> (Option<Bytes>, u64) {
        let taken = {
            let mut inner = self.lock_always();
            inner
                .open
                .get_mut(peer)
                .map(|outbox| outbox.datagrams.take())
        };
        let (waiting, mut dropped) = taken.unwrap_or((None, 0));
        let bytes = waiting.and_then(|waiting| {
            let encoded = datagram(&waiting.header, &waiting.payload);
            if let Err(error) = &encoded {
                tracing::error!(%error, %peer, "a datagram could not be encoded");
                dropped += 1;
            }
            encoded.ok()
        });
        (bytes, dropped)
    }

    /// Attaches a new link to the datagrams for a peer; returns the notice for its writer.
    pub(crate) fn attach_datagrams(&self, peer: &PeerId) -> Option<Arc<Notify>> {
        let inner = self.lock_always();
        let outbox = inner.open.get(peer)?;
        Some(Arc::clone(&outbox.datagrams.writer))
    }

    /// Sets the longest datagram that the link to a peer carries.
    pub(crate) fn set_max_datagram(&self, peer: &PeerId, bytes: usize) {
        if let Some(outbox) = self.lock_always().open.get_mut(peer) {
            outbox.datagrams.max_bytes = bytes;
        }
    }

    /// The longest unreliable message to a peer, or to every linked peer for `None`; through the leader if
    /// `is_central`. Without linked peers it is the limit of a new link. `None` if there is no such peer.
    pub(crate) fn max_unreliable(&self, peer: Option<&PeerId>, is_central: bool) -> Option<usize> {
        let mut inner = self.lock_always();
        let open = inner.open.iter_mut();
        let linked =
            open.filter(|(id, outbox)| outbox.is_open() && peer.is_none_or(|peer| peer == *id));
        let least = linked
            .map(|(_, outbox)| {
                if let Some(max) = outbox.meter.max_datagram() {
                    outbox.datagrams.max_bytes = max;
                }
                outbox.max_unreliable(is_central)
            })
            .min();
        let alone = || max_payload(LEAST_DATAGRAM_BYTES, is_central);
        least.or_else(|| peer.is_none().then(alone))
    }
}

fn some(peer: &PeerId, dropped: u64) -> Option<(PeerId, u64)> {
    (dropped > 0).then(|| (peer.clone(), dropped))
}

impl Inner {
    fn check_datagrams(&self, len: usize, is_central: bool) -> Result<(), SendError> {
        let mut is_alone = true;
        for (peer, outbox) in self.linked_but(None) {
            is_alone = false;
            outbox.check_datagram(peer, len, is_central)?;
        }
        // The limit that will apply to the first member.
        let max = max_payload(LEAST_DATAGRAM_BYTES, is_central);
        match is_alone && len > max {
            true => Err(SendError::DatagramTooLargeAlone { len, max }),
            false => Ok(()),
        }
    }

    fn push_unreliable(
        &mut self,
        message: &OutMessage,
        how: Unreliable,
        role: &DatagramRole,
        but: Option<&PeerId>,
    ) -> (usize, Dropped) {
        self.count_missed();
        let mut queued = 0;
        let mut dropped = Vec::new();
        for (peer, outbox) in &mut self.open {
            if Some(peer) == but || outbox.finishing {
                continue;
            }
            let fits = message.payload.len() <= outbox.datagrams.max_payload(but.is_some());
            let count = if outbox.paused || !fits {
                1
            } else {
                queued += 1;
                outbox.datagrams.push(message, how, role.clone())
            };
            dropped.extend(some(peer, count));
        }
        (queued, dropped)
    }
}

impl super::Outbox {
    fn max_unreliable(&self, is_central: bool) -> usize {
        let max = self.datagrams.max_payload(is_central);
        max.min(self.max_message_size)
    }

    fn check_datagram(&self, peer: &PeerId, len: usize, is_central: bool) -> Result<(), SendError> {
        let max = self.max_unreliable(is_central);
        if len > max {
            return Err(SendError::DatagramTooLarge {
                len,
                max,
                id: peer.clone(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::outbox::OutboxLimits;

    fn message(len: usize) -> OutMessage {
        OutMessage {
            payload: vec![7; len].into(),
            msg_type: 0x0100,
            flags: 0,
        }
    }

    #[test]
    fn a_host_that_is_alone_has_the_limit_of_a_new_link() {
        let outboxes = Outboxes::new(OutboxLimits {
            messages: 10,
            bytes: 1 << 20,
        });
        let most = outboxes.max_unreliable(None, false).expect("a limit");
        assert!((1100..=LEAST_DATAGRAM_BYTES).contains(&most), "{most}");
        let how = Unreliable::default();
        let alone = outboxes.broadcast_unreliable(&message(most), how);
        assert_eq!(alone, Ok((0, Vec::new())));
        for len in [most + 1, 3000] {
            let refused = outboxes.broadcast_unreliable(&message(len), how);
            let too_large = SendError::DatagramTooLargeAlone { len, max: most };
            assert_eq!(refused, Err(too_large));
        }
        let central = outboxes.max_unreliable(None, true).expect("a limit");
        assert!((850..most).contains(&central), "{central}");
        let absent = PeerId::new("unknown").expect("an id");
        assert_eq!(outboxes.max_unreliable(Some(&absent), false), None);
    }
}
