//! Links between members that have no path to each other: QUIC connections whose packets another member, the leader, carries.
//!
//! Each of the two has a link to the leader. The packets of the link between them go as datagrams over the link of the one to
//! the leader, and over the link of the leader to the other. They are those of any link, so the leader can read none of it and
//! make up none of it; both ends prove their keys, and see the congestion of both legs as that of one path. A new leader
//! carries on where the last one stopped.
//!
//! quinn knows the other end by a virtual address ([`crate::core::virtual_address`]). The socket ([`super::udp`]) gives what is
//! sent there to [`Tunnels`], and takes from it what came from there.
//!
//! quinn calls the socket while it holds the lock of the connection that sends. So nothing here that the socket calls touches a
//! connection: it fills queues, which tasks empty ([`room_transport::tunnel::leg`]).

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

/// Packets out of tunnels that wait for the socket's reader, at most; the oldest makes way.
const MAX_ARRIVED: usize = 512;
/// How long packets through the last relay count: they were on their way when another took over.
const LAST_RELAY_COUNTS_FOR: Duration = Duration::from_secs(2);
/// Bytes of a packet of a link through a tunnel: what every path takes, and what QUIC needs.
const TUNNEL_MTU: u16 = 1200;

const MALFORMED: &str = "a malformed datagram of a tunnel";
const TO_ITSELF: &str = "a packet through a tunnel to its own sender";
const IN_OUR_NAME: &str = "a packet through a tunnel in the receiver's name";
const NESTED: &str = "a tunnel through a tunnel";

/// How links through a tunnel use QUIC: as all, but in packets of one size. A larger one would travel in two parts, and be lost
/// with either.
pub(crate) fn tunnel_transport_config() -> TransportConfig {
    let mut transport = transport_config();
    transport
        .initial_mtu(TUNNEL_MTU)
        .min_mtu(TUNNEL_MTU)
        .mtu_discovery_config(None);
    transport
}

/// The tunnels of a room: those that end here, and those that lead through here.
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
    /// The one before, and when it ceased to be it.
    last_relay: Option<(VirtualId, Instant)>,
    is_relaying: bool,
    /// Of the next packet that this node sends.
    number: u16,
}

impl Routes {
    /// Whether packets of others may come through that member.
    fn may_come_through(&self, member: VirtualId) -> bool {
        let last = self.last_relay.filter(|(last, _)| *last == member);
        self.relay == Some(member)
            || last.is_some_and(|(_, ceased)| ceased.elapsed() < LAST_RELAY_COUNTS_FOR)
    }
}

/// The links to one member.
#[derive(Debug)]
struct Links {
    /// The newest last.
    connections: Vec<Connection>,
    /// The one that the leg uses; without it, its task ends.
    newest: watch::Sender<Option<Connection>>,
    halves: Halves,
}

/// Packets out of tunnels, for the socket's reader.
#[derive(Debug, Default)]
struct Arrived {
    packets: VecDeque<(VirtualId, Bytes)>,
    reader: Option<Waker>,
}

/// What has become of packets so far, or of parts of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TunnelStats {
    /// Forwarded for others.
    pub(crate) forwarded: u64,
    /// Received for this node.
    pub(crate) delivered: u64,
    /// Dropped on their way out, through or in: nobody to take them to, no room, or a part that is missing.
    pub(crate) dropped: u64,
}

impl Tunnels {
    /// Those of the holder of `own`. Nothing leads anywhere yet.
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

    /// There is a link to the holder of `key`. It carries what earlier ones to the same member did. Within a tokio runtime.
    pub(crate) fn link_up(&self, key: Fingerprint, connection: Connection) {
        let id = virtual_id(key);
        let mut all = self.links();
        if let Some(links) = all.get_mut(&id) {
            links.connections.push(connection.clone());
            // Dropped without the lock: the last owner of a connection closes it.
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

    /// The link is none any more. An earlier one takes over, if there still is one; otherwise all that waits for that member, or
    /// comes from it, is dropped.
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

    /// Through whom this node's packets go: the leader, where it is another member with a direct link. Without one they are
    /// dropped. And through whom the packets of others come: those through any other member are dropped, but for a moment those
    /// through the last relay.
    pub(crate) fn set_relay(&self, relay: Option<Fingerprint>) {
        let relay = relay.map(virtual_id);
        let mut routes = self.routes();
        if routes.relay != relay
            && let Some(last) = std::mem::replace(&mut routes.relay, relay)
        {
            routes.last_relay = Some((last, Instant::now()));
        }
    }

    /// Whether this node forwards the packets of others: while it leads.
    pub(crate) fn set_relaying(&self, is_relaying: bool) {
        self.routes().is_relaying = is_relaying;
    }

    /// What has become of packets so far.
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

    /// Takes a datagram that came on a link to the holder of `key` with that path.
    ///
    /// # Errors
    /// No member sends it.
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
            // It takes this node for its relay, and the two are linked: the link through a tunnel is about to be given up.
            Way::To(target) if target == self.own => {
                self.arrive(sender, sender, piece);
                Ok(())
            }
            Way::To(target) => {
                self.forward(sender, target, piece);
                Ok(())
            }
            Way::From(origin) if origin == self.own => Err(IN_OUR_NAME),
            Way::From(_) if !self.routes().may_come_through(sender) => {
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
            // Otherwise its queues were cleared already.
            Some(leg) if routes.legs.contains_key(&origin) => leg.push(Way::From(origin), piece),
            _ => 1,
        };
        self.counters.drop_packets(dropped);
    }

    /// A packet for this node, or a part of it, came from `origin` through a link to `via`.
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

    /// Takes what quinn sends, if it is for a virtual address. As on a line, what there is no room for is lost.
    pub(super) fn take(&self, transmit: &Transmit<'_>) -> bool {
        let Some(target) = id_at(transmit.destination) else {
            self.departures.tell(transmit.destination);
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

    /// Gives packets to the socket's reader, as many as there are and as it has room for; if these are none, it is woken for the
    /// next.
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
            // quinn's buffers take any packet; what does not fit would be cut, as the system does.
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

    /// As if `packet` had come out of a tunnel.
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

/// Whether a packet that the system's socket received shows a virtual address as its sender's: it is forged.
pub(super) fn is_forged(from: SocketAddr) -> bool {
    id_at(from).is_some()
}

#[cfg(test)]
mod tests;
