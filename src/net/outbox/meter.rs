//! Statistics of a peer, across the links of its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::{Connection, ConnectionStats};

use super::Outboxes;
use crate::core::id::PeerId;
use crate::core::path::Path;

/// The figures of one peer. Those of messages and bytes count through its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerMeter {
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Sent packets that count as lost.
    pub packets_lost: u64,
    /// Messages passed to a link, each counted once.
    pub messages_sent: u64,
    /// Messages of the peer that this node has taken.
    pub messages_received: u64,
    /// Messages that the peer has not taken yet.
    pub queue_messages: usize,
    /// Bytes of their payloads.
    pub queue_bytes: usize,
    /// Time that the oldest of them has waited.
    pub queue_age: Option<Duration>,
    /// Largest UDP payload of the present path, in bytes; 0 without a link.
    pub path_mtu: u16,
    /// Congestion window of the present link, in bytes; 0 without a link.
    pub congestion_window: u64,
    /// Number of reconnects after a lost link.
    pub reconnects: u32,
    /// The path of the present link, if there is one.
    pub path: Option<Path>,
}

impl PeerMeter {
    fn add_link(&mut self, stats: &ConnectionStats) {
        self.bytes_sent += stats.udp_tx.bytes;
        self.bytes_received += stats.udp_rx.bytes;
        self.packets_sent += stats.path.sent_packets;
        self.packets_lost += stats.path.lost_packets;
    }
}

/// Figures that a queue keeps for [`PeerMeter`].
#[derive(Debug, Default)]
pub(super) struct Meter {
    link: Option<Connection>,
    received: Arc<AtomicU64>,
    /// Totals of earlier links.
    before: PeerMeter,
}

impl Meter {
    pub(super) fn link_lost(&mut self) {
        if let Some(link) = self.link.take() {
            self.before.add_link(&link.stats());
        }
    }

    /// Longest datagram of the present link.
    pub(super) fn max_datagram(&self) -> Option<usize> {
        self.link.as_ref()?.max_datagram_size()
    }

    pub(super) fn reconnected(&mut self) {
        self.before.reconnects += 1;
    }
}

impl Outboxes {
    /// Measures this link from now on; `received` counts the messages taken from the peer.
    pub(crate) fn measure(&self, peer: &PeerId, link: &Connection, received: &Arc<AtomicU64>) {
        if let Some(outbox) = self.lock_always().open.get_mut(peer) {
            outbox.meter.link_lost();
            outbox.meter.link = Some(link.clone());
            outbox.meter.received = Arc::clone(received);
        }
    }

    /// The figures of a peer; `None` if it has no session.
    pub(crate) fn meter(&self, peer: &PeerId) -> Option<PeerMeter> {
        let (mut meter, link) = {
            let inner = self.lock_always();
            let outbox = inner.open.get(peer)?;
            let lanes = outbox.lanes.values();
            let oldest = lanes.clone().filter_map(|lane| lane.oldest());
            let oldest = oldest.map(|entry| entry.since.elapsed()).max();
            let sent: u64 = lanes.map(|lane| lane.sent_until).sum();
            let meter = PeerMeter {
                messages_sent: sent + outbox.datagrams.sent,
                messages_received: outbox.meter.received.load(Ordering::Relaxed),
                queue_messages: outbox.queued.messages,
                queue_bytes: outbox.queued.bytes,
                queue_age: oldest,
                ..outbox.meter.before
            };
            (meter, outbox.meter.link.clone())
        };
        if let Some(link) = link {
            let stats = link.stats();
            meter.add_link(&stats);
            meter.path_mtu = stats.path.current_mtu;
            meter.congestion_window = stats.path.cwnd;
            meter.path = Some(Path::to(link.remote_address()));
        }
        Some(meter)
    }
}
