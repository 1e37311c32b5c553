//! Tunnels: links between members without a path to each other. Another member, the leader, carries the
//! packets of their QUIC connection.
//!
//! Each of the two has a link to the leader. The packets of the link between them go as datagrams over the
//! first member's link to the leader, and over the leader's link to the second. They are packets of an
//! ordinary link, so the leader can neither read nor forge them. Both ends prove their keys, and see the
//! congestion of both legs as that of one path. A new leader continues where the last one stopped.
//!
//! quinn knows the other end by a virtual address ([`crate::core::virtual_address`]). The socket ([`super::udp`])
//! passes packets for such an address to [`Tunnels`], and takes from it the packets that came from there.
//!
//! quinn calls the socket while it holds the lock of the sending connection. So nothing that the socket calls
//! here touches a connection: it fills queues, which tasks empty ([`room_transport::tunnel::leg`]).

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{Connection, TransportConfig};
use room_transport::quic::transport_config;
use room_transport::tunnel::leg::{Counters, Departures, Leg, drive};
use room_transport::tunnel::packet::{Halves, MAX_PACKET_BYTES, Part, Piece, Way, decode};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::core::id::Fingerprint;
use crate::core::path::Path;
use crate::core::virtual_address::{VirtualId, address_of, id_at, virtual_id};

/// Packets out of tunnels that wait for the socket's reader, at most; the oldest is dropped.
const MAX_ARRIVED: usize = 512;
/// Time for which packets through the last relay are still accepted: they were on their way when another took over.
const LAST_RELAY_COUNTS_FOR: Duration = Duration::from_secs(2);
/// Packet size of a link through a tunnel: every path carries it, and QUIC needs it.
const TUNNEL_MTU: u16 = 1200;

const MALFORMED: &str = "a malformed datagram of a tunnel";
const TO_ITSELF: &str = "a packet through a tunnel to its own sender";
const FORGED_ORIGIN: &str = "a packet through a tunnel in the receiver's name";
const NESTED: &str = "a tunnel through a tunnel";

/// Transport settings of links through a tunnel: the usual ones, with packets of one size. A larger packet
/// would travel in two parts, and be lost with either.
pub(crate) fn tunnel_transport_config() -> TransportConfig {
    let mut transport = transport_config();
    transport
        .initial_mtu(TUNNEL_MTU)
        .min_mtu(TUNNEL_MTU)
        .mtu_discovery_config(None);
    transport
}

/// The tunnels of a room that end at this node or lead through it.
#[derive(Debug)]
pub(crate) struct Tunnels {
    own: VirtualId,
    /// The socket takes this lock while quinn holds that of a connection.
    routes: Mutex<Routes>,
    links: Mutex<BTreeMap<VirtualId, Links>>,
    arrived: Mutex<Arrived>,
    departures: Arc<Departures>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Routes {
    legs: BTreeMap<VirtualId, Arc<Leg>>,
    relay: Option<VirtualId>,
    /// The previous relay, and when it was replaced.
    last_relay: Option<(VirtualId, Instant)>,
    is_relaying: bool,
    /// Number of the next packet that this node sends.
    number: u16,
}

impl Routes {
    /// Whether packets of others are accepted through that member.
    fn accepts_through(&self, member: VirtualId) -> bool {
        let last = self.last_relay.filter(|(last, _)| *last == member);
        self.relay == Some(member)
            || last.is_some_and(|(_, ceased)| ceased.elapsed() < LAST_RELAY_COUNTS_FOR)
    }
}

/// The links to one member.
#[derive(Debug)]
struct Links {
    /// Newest last.
    connections: Vec<Connection>,
    /// The link that the leg uses; the leg's task ends without one.
    newest: watch::Sender<Option<Connection>>,
    halves: Halves,
}

/// Packets out of tunnels, for the socket's reader.
#[derive(Debug, Default)]
struct Arrived {
    packets: VecDeque<(VirtualId, Bytes)>,
    reader: Option<Waker>,
}

/// Counts of packets so far, or of parts of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TunnelStats {
    /// Forwarded for others.
    pub(crate) forwarded: u64,
    /// Received for this node.
    pub(crate) delivered: u64,
    /// Dropped on their way out, through or in: no destination, no room, or a missing part.
    pub(crate) dropped: u64,
}

impl Tunnels {
    /// Starts without links. `own` is this node's key.
    pub(crate) fn new(own: Fingerprint) -> Self {
        Self {
            own: virtual_id(own),
            routes: Mutex::default(),
            links: Mutex::default(),
            arrived: Mutex::default(),
            departures: Arc::default(),
            counters: Arc::default(),
        }
    }

    /// Adds a link to the holder of `key`. It replaces earlier links to that member. Requires a tokio runtime.
    pub(crate) fn link_up(&self, key: Fingerprint, connection: Connection) {
        let id = virtual_id(key);
        let mut all = self.links();
        if let Some(links) = all.get_mut(&id) {
            links.connections.push(connection.clone());
            // Dropped after the lock: the last owner of a connection closes it.
            let replaced = links.newest.send_replace(Some(connection));
            drop(all);
            drop(replaced);
            return;
        }
        let leg = Arc::new(Leg::default());
        let (newest, link) = watch::channel(Some(connection.clone()));
        tokio::spawn(drive(
            Arc::clone(&leg),
            link,
            Arc::clone(&self.departures),
            Arc::clone(&self.counters),
        ));
        let links = Links {
            connections: vec![connection],
            newest,
            halves: Halves::default(),
        };
        all.insert(id, links);
        self.routes().legs.insert(id, leg);
    }

    /// Removes a link. An earlier one takes over, if there still is one. Otherwise everything that waits for
    /// that member, or comes from it, is dropped.
    pub(crate) fn link_down(&self, key: Fingerprint, connection: &Connection) {
        let id = virtual_id(key);
        let mut all = self.links();
        let Some(links) = all.get_mut(&id) else {
            return;
        };
        let same = |other: &Connection| other.stable_id() == connection.stable_id();
        let Some(at) = links.connections.iter().position(same) else {
            return;
        };
        let removed = links.connections.remove(at);
        if let Some(newest) = links.connections.last().cloned() {
            let replaced = links.newest.send_replace(Some(newest));
            drop(all);
            drop((removed, replaced));
            return;
        }
        let gone = all.remove(&id);
        let mut routes = self.routes();
        let leg = routes.legs.remove(&id);
        let mut dropped = leg.map_or(0, |leg| leg.queues().len() as u64);
        for leg in routes.legs.values() {
            dropped += leg.clear(Way::From(id));
        }
        drop(routes);
        drop(all);
        drop((removed, gone));
        self.counters.drop_packets(dropped);
    }

    /// Sets the relay: the leader, if it is another member with a direct link. This node's packets go through
    /// it; without a relay they are dropped. Packets of others are accepted through it, and for a moment
    /// through the last relay; those through any other member are dropped.
    pub(crate) fn set_relay(&self, relay: Option<Fingerprint>) {
        let relay = relay.map(virtual_id);
        let mut routes = self.routes();
        if routes.relay != relay
            && let Some(last) = std::mem::replace(&mut routes.relay, relay)
        {
            routes.last_relay = Some((last, Instant::now()));
        }
    }

    /// Sets whether this node forwards the packets of others: while it leads.
    pub(crate) fn set_relaying(&self, is_relaying: bool) {
        self.routes().is_relaying = is_relaying;
    }

    /// Counts of packets so far.
    pub(crate) fn stats(&self) -> TunnelStats {
        let Counters {
            forwarded,
            delivered,
            dropped,
        } = &*self.counters;
        let [forwarded, delivered, dropped] =
            [forwarded, delivered, dropped].map(|count| count.load(Ordering::Relaxed));
        TunnelStats {
            forwarded,
            delivered,
            dropped,
        }
    }

    /// Handles a datagram from a link to the holder of `key` over that path.
    ///
    /// # Errors
    /// The datagram is one that no member sends.
    pub(super) fn received(
        &self,
        key: Fingerprint,
        path: Path,
        datagram: Bytes,
    ) -> Result<(), &'static str> {
        if !path.is_direct() {
            return Err(NESTED);
        }
        let sender = virtual_id(key);
        let (way, piece) = decode(datagram).ok_or(MALFORMED)?;
        match way {
            Way::To(target) if target == sender => Err(TO_ITSELF),
            // The sender takes this node for its relay, and the two are linked: the link
            // through a tunnel is about to end.
            Way::To(target) if target == self.own => {
                self.arrive(sender, sender, piece);
                Ok(())
            }
            Way::To(target) => {
                self.forward(sender, target, piece);
                Ok(())
            }
            Way::From(origin) if origin == self.own => Err(FORGED_ORIGIN),
            Way::From(_) if !self.routes().accepts_through(sender) => {
                self.counters.drop_packets(1);
                Ok(())
            }
            Way::From(origin) => {
                self.arrive(sender, origin, piece);
                Ok(())
            }
        }
    }

    fn forward(&self, origin: VirtualId, target: VirtualId, piece: Piece) {
        let routes = self.routes();
        let leg = routes.legs.get(&target).filter(|_| routes.is_relaying);
        let dropped = match leg {
            // Without a link to the origin its queues were cleared already.
            Some(leg) if routes.legs.contains_key(&origin) => leg.push(Way::From(origin), piece),
            _ => 1,
        };
        self.counters.drop_packets(dropped);
    }

    /// Handles a packet for this node, or a part of it, that came from `origin` through a link to `via`.
    fn arrive(&self, via: VirtualId, origin: VirtualId, piece: Piece) {
        let mut all = self.links();
        let Some(links) = all.get_mut(&via) else {
            drop(all);
            return self.counters.drop_packets(1);
        };
        let (packet, gave_up) = links.halves.take(origin, piece);
        drop(all);
        let mut dropped = u64::from(gave_up);
        if let Some(packet) = packet {
            let mut arrived = self.arrived();
            if arrived.packets.len() == MAX_ARRIVED {
                arrived.packets.pop_front();
                dropped += 1;
            }
            arrived.packets.push_back((origin, packet));
            let reader = arrived.reader.take();
            drop(arrived);
            if let Some(reader) = reader {
                reader.wake();
            }
            self.counters.delivered.fetch_add(1, Ordering::Relaxed);
        }
        self.counters.drop_packets(dropped);
    }

    /// Takes a packet from quinn if it is for a virtual address. Packets without room are lost, as on a line.
    pub(super) fn take(&self, transmit: &Transmit<'_>) -> bool {
        let Some(target) = id_at(transmit.destination) else {
            self.departures.notify(transmit.destination);
            return false;
        };
        let len = transmit.contents.len();
        let size = transmit.segment_size.unwrap_or(len).max(1);
        let mut dropped = 0;
        let mut routes = self.routes();
        let relay = routes.relay.filter(|_| target != self.own);
        let leg = relay.and_then(|relay| routes.legs.get(&relay).cloned());
        for packet in transmit.contents.chunks(size) {
            let number = routes.number;
            routes.number = number.wrapping_add(1);
            dropped += match &leg {
                Some(leg) if packet.len() <= MAX_PACKET_BYTES => {
                    let bytes = Bytes::copy_from_slice(packet);
                    let piece = Piece {
                        part: Part::Whole,
                        number,
                        bytes,
                    };
                    leg.push(Way::To(target), piece)
                }
                _ => 1,
            };
        }
        drop(routes);
        self.counters.drop_packets(dropped);
        true
    }

    /// Gives packets to the socket's reader, as many as are there and fit. If there are none, the
    /// next one wakes the reader.
    pub(super) fn poll_arrived(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> usize {
        let mut arrived = self.arrived();
        let mut count = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta.iter_mut()) {
            let Some((origin, packet)) = arrived.packets.pop_front() else {
                break;
            };
            // quinn's buffers hold any packet; a longer one would be cut, as the system does.
            let len = packet.len().min(buf.len());
            buf[..len].copy_from_slice(&packet[..len]);
            *meta = RecvMeta {
                addr: address_of(origin),
                len,
                stride: len,
                ecn: None,
                dst_ip: None,
            };
            count += 1;
        }
        if count == 0 {
            arrived.reader = Some(cx.waker().clone());
        }
        count
    }

    /// Acts as if `packet` had come out of a tunnel.
    #[cfg(test)]
    pub(super) fn arrive_for_test(&self, packet: &'static [u8]) {
        let mut arrived = self.arrived();
        arrived
            .packets
            .push_back(([1; 8], Bytes::from_static(packet)));
        if let Some(reader) = arrived.reader.take() {
            reader.wake();
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        // Nothing panics while it holds this lock or one of those below.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<VirtualId, Links>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a packet that the system's socket received has a virtual sender address: it is forged.
pub(super) fn is_forged(from: SocketAddr) -> bool {
    id_at(from).is_some()
}

#[cfg(test)]
mod tests;
