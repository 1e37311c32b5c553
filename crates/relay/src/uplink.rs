//! What a member sends for others: its packets wait here while it sends more than its rate.

use std::sync::Arc;

use bytes::Bytes;
use room_core::virtual_address::VirtualId;
use room_transport::tunnel::leg::{Backlog, Held, MAX_AGE};
use room_transport::tunnel::packet::{HEADER_BYTES, Piece, TUNNEL_DATAGRAM, Way, decode};
use room_transport::tunnel::queues::Queues;
use room_transport::tunnel::shaper::{Pace, Rate};
use tokio::time::Instant;

use crate::figures::Drop;

/// Packets of one member to one other that wait for the rate, at most.
const MAX_WAITING_OF_ONE: usize = 128;
/// Packets of one member that wait for the rate, at most.
const MAX_WAITING: usize = 512;

/// A packet, and when it came.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    packet: Packet,
}

/// A packet, with its part of what may wait in all queues.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) piece: Piece,
    pub(crate) held: Held,
}

/// The packets of one member.
#[derive(Debug)]
pub(crate) struct Uplink {
    pace: Pace,
    backlog: Arc<Backlog>,
    queues: Queues<VirtualId, Waiting, MAX_WAITING_OF_ONE, MAX_WAITING>,
}

impl Uplink {
    pub(crate) fn new(rate: Rate, backlog: Arc<Backlog>) -> Self {
        Self {
            pace: Pace::new(rate),
            backlog,
            queues: Queues::default(),
        }
    }

    /// Takes a datagram; returns why it, or an older one, is dropped.
    pub(crate) fn take(&mut self, now: Instant, datagram: Bytes) -> Option<Drop> {
        // Other datagrams are probes, which QUIC has acknowledged.
        if datagram.first() != Some(&TUNNEL_DATAGRAM) {
            return None;
        }
        let Some((Way::To(target), piece)) = decode(datagram) else {
            return Some(Drop::Malformed);
        };
        // A copy, because the datagram's memory may hold a whole batch of others.
        let bytes = Bytes::copy_from_slice(&piece.bytes);
        let piece = Piece { bytes, ..piece };
        let Some(held) = self.backlog.hold(&piece) else {
            return Some(Drop::Backlog);
        };
        let waiting = Waiting {
            since: now,
            packet: Packet { piece, held },
        };
        (self.queues.push(target, waiting) > 0).then_some(Drop::Rate)
    }

    /// Drops what has waited too long; returns how many packets.
    pub(crate) fn drop_old(&mut self, now: Instant) -> u64 {
        let is_old = |waiting: &Waiting| now.saturating_duration_since(waiting.since) >= MAX_AGE;
        self.queues.drop_old(is_old)
    }

    /// The next packet, if the rate allows one now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(VirtualId, Packet)> {
        if self.pace.waits_until(now).is_some() {
            return None;
        }
        let (target, Waiting { packet, .. }) = self.queues.pop()?;
        let bytes = HEADER_BYTES + packet.piece.bytes.len();
        self.pace.charge(now, bytes);
        Some((target, packet))
    }

    /// When the next packet may go, if one waits.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let waits = !self.queues.is_empty();
        waits.then(|| self.pace.waits_until(now).unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use room_transport::tunnel::packet::{Header, Part, encode};

    use super::*;

    fn uplink(rate: Rate) -> Uplink {
        Uplink::new(rate, Arc::new(Backlog::new(1 << 20)))
    }

    fn datagram(way: Way, number: u16) -> Bytes {
        let part = Part::Whole;
        encode(Header { way, part, number }, &[0; 1000 - HEADER_BYTES])
    }

    fn to(target: u8, number: u16) -> Bytes {
        datagram(Way::To([target; 8]), number)
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_above_its_rate_waits_and_its_targets_take_turns() {
        let mut uplink = uplink(Rate::BytesPerSecond(100_000));
        let start = Instant::now();
        for number in 0..10 {
            assert_eq!(uplink.take(start, to(1, number)), None);
        }
        uplink.take(start, to(2, 0));
        let mut sent = Vec::new();
        while let Some(at) = uplink.next_at(Instant::now()) {
            tokio::time::sleep_until(at).await;
            let (target, packet) = uplink.next(at).expect("its turn");
            sent.push((target[0], packet.piece.number));
            assert!(uplink.next(at).is_none());
        }
        assert_eq!(sent[..3], [(1, 0), (2, 0), (1, 1)]);
        assert_eq!(sent.len(), 11);
        let took = start.elapsed();
        assert!((95..=101).contains(&took.as_millis()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_packets_are_bounded_in_number_and_in_time() {
        let mut uplink = uplink(Rate::BytesPerSecond(1000));
        let start = Instant::now();
        assert!(uplink.take(start, to(0, 0)).is_none() && uplink.next(start).is_some());
        let mut dropped = 0;
        for number in 0..1000 {
            for target in 1..=8 {
                dropped += usize::from(uplink.take(start, to(target, number)) == Some(Drop::Rate));
            }
        }
        assert_eq!(8000 - dropped, MAX_WAITING);
        assert_eq!(
            uplink.drop_old(start + MAX_AGE - Duration::from_millis(1)),
            0
        );
        assert_eq!(uplink.drop_old(start + MAX_AGE), MAX_WAITING as u64);
        assert_eq!(uplink.next_at(start), None);
    }

    #[tokio::test]
    async fn a_member_names_targets_and_never_a_sender() {
        let mut uplink = uplink(Rate::Unlimited);
        let now = Instant::now();
        let forged = datagram(Way::From([1; 8]), 0);
        assert_eq!(uplink.take(now, forged), Some(Drop::Malformed));
        let short = Bytes::from_static(&[TUNNEL_DATAGRAM]);
        assert_eq!(uplink.take(now, short), Some(Drop::Malformed));
        assert_eq!(uplink.take(now, Bytes::from_static(&[0])), None);
        assert_eq!(uplink.take(now, Bytes::new()), None);
        assert!(uplink.next(now).is_none());
    }

    #[tokio::test]
    async fn waiting_packets_of_all_uplinks_are_bounded() {
        let backlog = Arc::new(Backlog::new(100_000));
        let rate = Rate::BytesPerSecond(1000);
        let mut uplinks = [(); 3].map(|()| Uplink::new(rate, Arc::clone(&backlog)));
        let now = Instant::now();
        let mut dropped = Vec::new();
        for uplink in &mut uplinks {
            for number in 0..40 {
                dropped.extend(uplink.take(now, to(1, number)));
            }
        }
        assert!(dropped.len() > 20, "{dropped:?}");
        assert!(dropped.iter().all(|reason| *reason == Drop::Backlog));
        assert!(backlog.bytes() <= 100_000);
        drop(uplinks);
        assert_eq!(backlog.bytes(), 0);
    }
}
