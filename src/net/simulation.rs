//! Simulation of a bad network at the host's request: its settings, and the packets that wait meanwhile.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::udp::{EcnCodepoint, Transmit};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::simulated::{ALL_LOST, SimulatedNetwork};

/// Packets that may wait at once; further ones are lost, as in a router whose queue is full.
const MAX_WAITING_PACKETS: usize = 8192;

/// Settings of the present simulation, if any: host threads set them, the socket reads them for every packet.
#[derive(Debug, Default)]
pub(crate) struct Simulation {
    /// 0 is off. A single number, so that no reader sees half of a change.
    packed: AtomicU64,
    changed: Notify,
}

impl Simulation {
    /// Sets the network from the next packet on. Waiting packets arrive as scheduled.
    pub(crate) fn set(&self, network: SimulatedNetwork) {
        self.packed.store(pack(network), Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// `None` while it is off.
    pub(super) fn network(&self) -> Option<SimulatedNetwork> {
        let packed = self.packed.load(Ordering::Relaxed);
        (packed != 0).then(|| unpack(packed))
    }

    /// Signals a packet that may be due first.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Waits for the next [`Simulation::set`] or [`Simulation::wake`]; returns at once for a signal
    /// that no task has waited for.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Each value is far below 2^16.
fn pack(network: SimulatedNetwork) -> u64 {
    let [lag, jitter] = [network.lag, network.jitter].map(|time| time.as_millis() as u64);
    lag << 32 | jitter << 16 | u64::from(network.loss_permille)
}

fn unpack(packed: u64) -> SimulatedNetwork {
    let [lag, jitter, loss] = [32, 16, 0].map(|shift| packed >> shift & 0xFFFF);
    SimulatedNetwork {
        lag: Duration::from_millis(lag),
        jitter: Duration::from_millis(jitter),
        loss_permille: loss as u32,
    }
}

/// A delayed packet.
#[derive(Debug)]
pub(super) struct Packet {
    due: Instant,
    /// Orders packets that are due at the same time.
    number: u64,
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    contents: Box<[u8]>,
    segment_size: Option<usize>,
    src_ip: Option<IpAddr>,
}

impl Packet {
    pub(super) fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.destination,
            ecn: self.ecn,
            contents: &self.contents,
            segment_size: self.segment_size,
            src_ip: self.src_ip,
        }
    }
}

impl Ord for Packet {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Packet {}

/// Fate of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Sent now.
    Send,
    /// Delayed; the first packet in the queue may be another one now.
    Wait,
    /// Lost.
    Lost,
}

/// The delayed packets, ordered by due time.
#[derive(Debug)]
pub(super) struct Waiting {
    random: ChaCha8Rng,
    packets: BinaryHeap<Reverse<Packet>>,
    next: u64,
}

impl Waiting {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            packets: BinaryHeap::new(),
            next: 0,
        }
    }

    /// Decides the fate of a packet, and keeps a copy if it is delayed.
    pub(super) fn take(
        &mut self,
        network: SimulatedNetwork,
        now: Instant,
        packet: &Transmit<'_>,
    ) -> Fate {
        if self.random.random_range(0..ALL_LOST) < network.loss_permille {
            return Fate::Lost;
        }
        let delay = network.lag + network.jitter.mul_f64(self.random.random());
        if delay.is_zero() {
            return Fate::Send;
        }
        if self.packets.len() >= MAX_WAITING_PACKETS {
            return Fate::Lost;
        }
        let packet = Packet {
            due: now + delay,
            number: self.next,
            destination: packet.destination,
            ecn: packet.ecn,
            contents: packet.contents.into(),
            segment_size: packet.segment_size,
            src_ip: packet.src_ip,
        };
        self.packets.push(Reverse(packet));
        self.next += 1;
        Fate::Wait
    }

    /// When the first packet is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.packets.peek().map(|Reverse(packet)| packet.due)
    }

    /// The first packet, if it is due.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Packet> {
        self.due().filter(|due| *due <= now)?;
        self.packets.pop().map(|Reverse(packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn network(lag: u64, jitter: u64, loss_permille: u32) -> SimulatedNetwork {
        SimulatedNetwork {
            lag: ms(lag),
            jitter: ms(jitter),
            loss_permille,
        }
    }

    fn packet(contents: &[u8]) -> Transmit<'_> {
        Transmit {
            destination: SocketAddr::from(([127, 0, 0, 1], 9)),
            ecn: None,
            contents,
            segment_size: None,
            src_ip: None,
        }
    }

    #[test]
    fn the_simulation_has_the_settings_that_were_set() {
        let simulation = Simulation::default();
        assert_eq!(simulation.network(), None);
        for set in [
            network(10_000, 10_000, 1000),
            network(1, 2, 3),
            network(0, 0, 1),
            network(0, 1, 0),
        ] {
            set.check().expect("within the limits");
            simulation.set(set);
            assert_eq!(simulation.network(), Some(set));
        }
        simulation.set(SimulatedNetwork::default());
        assert_eq!(simulation.network(), None);
    }

    #[test]
    fn packets_of_a_steady_lag_keep_their_order() {
        let (mut waiting, now) = (Waiting::new(1), Instant::now());
        for contents in [b"a", b"b", b"c"] {
            let fate = waiting.take(network(30, 0, 0), now, &packet(contents));
            assert_eq!(fate, Fate::Wait);
        }
        assert_eq!(waiting.due(), Some(now + ms(30)));
        assert!(waiting.next_due(now + ms(29)).is_none());
        for contents in [b"a", b"b", b"c"] {
            let due = waiting.next_due(now + ms(30)).expect("due");
            assert_eq!(due.transmit().contents, contents);
        }
        assert_eq!(waiting.due(), None);
    }

    #[test]
    fn jitter_spreads_packets_within_its_bounds_and_lets_them_overtake() {
        let (mut waiting, now) = (Waiting::new(2), Instant::now());
        for at in 0..=255 {
            waiting.take(network(10, 40, 0), now, &packet(&[at]));
        }
        let (mut order, mut times) = (Vec::new(), Vec::new());
        while let Some(due) = waiting.due() {
            let first = waiting.next_due(due).expect("due");
            order.push(first.transmit().contents[0]);
            times.push(due - now);
        }
        assert!(times.is_sorted());
        assert!(times[0] >= ms(10) && times[0] < ms(14), "{:?}", times[0]);
        let last = times[times.len() - 1];
        assert!(last > ms(46) && last <= ms(50), "{last:?}");
        assert!(!order.is_sorted());
    }

    #[test]
    fn as_many_are_lost_as_was_asked() {
        let (mut waiting, now) = (Waiting::new(3), Instant::now());
        for (permille, expected) in [(0, 0..=0), (300, 2800..=3200), (1000, 10_000..=10_000)] {
            let fates =
                (0..10_000).map(|_| waiting.take(network(0, 0, permille), now, &packet(b"")));
            let lost = fates.filter(|fate| *fate == Fate::Lost).count();
            assert!(
                expected.contains(&lost),
                "{lost} lost of 10,000 at {permille}"
            );
        }
        assert_eq!(waiting.due(), None, "without a delay nothing waits");
    }

    #[test]
    fn packets_that_wait_are_bounded() {
        let (mut waiting, now) = (Waiting::new(4), Instant::now());
        let mut take = || waiting.take(network(1, 0, 0), now, &packet(b""));
        for _ in 0..MAX_WAITING_PACKETS {
            assert_eq!(take(), Fate::Wait);
        }
        assert_eq!(take(), Fate::Lost);
    }
}
