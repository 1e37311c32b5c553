//! Tunnels: links between members without a path to each other. A carrier forwards the packets of their QUIC connection:
//! another member, or a relay.
//!
//! Each of the two has a direct link to the carrier. The packets of the link between them go as datagrams over the
//! first member's link to the carrier, and over the carrier's link to the second. They are packets of an ordinary
//! link, so the carrier can neither read nor forge them. Both ends prove their keys, and see the congestion of both
//! legs as that of one path.
//!
//! Any member that is linked to both may carry, and any relay where both are present. Each end chooses the carrier of what it sends, for each of its
//! routes ([`routes`]), and may change it at any time; the two directions of a link may have different carriers. No
//! packet that arrives changes a route: only [`Tunnels::set_carrier`] does. An end that answers a new connection
//! does so through the carrier of its first packet. A route has carriers of one kind: what a relay delivers never
//! seems to come through a member, nor the other way round.
//!
//! The leader forwards whatever comes. Other members forward a limited number of bytes a second
//! ([`room_transport::tunnel::shaper`]). A member that cannot forward a packet reports the pair of members.
//!
//! quinn knows the other end by a virtual address ([`crate::core::virtual_address`]). The socket ([`super::udp`])
//! passes packets for such an address to [`Tunnels`], and takes from it the packets that came from there.
//!
//! quinn calls the socket while it holds the lock of the sending connection. So nothing that the socket calls
//! here touches a connection: it fills queues, which tasks empty ([`room_transport::tunnel::leg`]).

mod routes;

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{Connection, IdleTimeout, ServerConfig, TransportConfig};
use room_transport::quic::transport_config;
use room_transport::tunnel::leg::{Counters, Departures, Leg, drive};
use room_transport::tunnel::packet::{Halves, MAX_PACKET_BYTES, Part, Piece, Way, decode};
use room_transport::tunnel::queues::Queues;
use room_transport::tunnel::shaper::{Rate, Shaper};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub(crate) use self::routes::Via;
use self::routes::{Form, RouteId, RouteTable};
use super::turn_port::TurnPort;
use crate::core::bounded::BoundedMap;
use crate::core::id::Fingerprint;
use crate::core::path::{MAX_RELAYS, Path, RelayNumber};
use crate::core::virtual_address::{VirtualId, behind_turn, is_virtual, through_turn, virtual_id};

/// Packets out of tunnels that came through one carrier and wait for the socket's reader, at most; the oldest is dropped.
const MAX_ARRIVED_OF_ONE: usize = 512;
/// Packets out of tunnels that wait for the socket's reader, at most; the carrier with the most loses its oldest.
const MAX_ARRIVED: usize = 1024;
/// Packet size of a link through a tunnel: every path carries it, and QUIC needs it.
const TUNNEL_MTU: u16 = 1200;
/// Shortest time between two reports about one pair of members.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Targets of one sender that are reported within [`REPORT_INTERVAL`], at most.
const MAX_REPORTS_OF_ONE: usize = 16;
/// Reports that wait for the room, at most; further ones are dropped.
const MAX_REPORTS: usize = 64;

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

/// [`tunnel_transport_config`] of the accepting end over a relay. A stranger there may leave a connection behind that only
/// its idle timeout ends.
pub(crate) fn relayed_transport_config(idle_timeout: Duration) -> TransportConfig {
    let mut transport = tunnel_transport_config();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok())
        .keep_alive_interval(Some(idle_timeout / 3));
    transport
}

/// Settings of this end for a connection through a tunnel that another member has begun. The connection keeps the
/// address of its route: a packet that arrives over another one is dropped, or belongs to this one as well. So no
/// packet, not even a repeated one, moves the connection.
pub(crate) fn tunnel_server_config(config: ServerConfig) -> ServerConfig {
    let mut config = config;
    config.migration(false);
    config
}

/// The tunnels of a room that end at this node or lead through it.
#[derive(Debug)]
pub(crate) struct Tunnels {
    own: VirtualId,
    /// Bytes a second that this node forwards while it does not lead.
    carry: u32,
    /// The socket takes this lock while quinn holds that of a connection.
    routes: Mutex<Routes>,
    links: Mutex<BTreeMap<Via, Links>>,
    arrived: Mutex<Arrived>,
    /// Whether links, dials or admissions use each relay.
    relays_in_use: watch::Sender<[bool; MAX_RELAYS]>,
    reports: Mutex<BoundedMap<CannotCarry, (), MAX_REPORTS>>,
    reported: Notify,
    departures: Arc<Departures>,
    counters: Arc<Counters>,
    shaper: Arc<Shaper>,
    turn: TurnPort,
}

#[derive(Debug)]
struct Routes {
    legs: BTreeMap<Via, Arc<Leg>>,
    table: RouteTable,
    leads: bool,
    /// Number of the next packet that this node sends.
    number: u16,
}

/// The links to one carrier.
#[derive(Debug)]
struct Links {
    /// Newest last.
    connections: Vec<Connection>,
    /// The link that the leg uses; the leg's task ends without one.
    newest: watch::Sender<Option<Connection>>,
    halves: Halves,
    /// Targets to which this node could not forward the member's packets, and when that was reported.
    reported: BoundedMap<VirtualId, Instant, MAX_REPORTS_OF_ONE>,
}

/// Packets out of tunnels, for the socket's reader.
#[derive(Debug, Default)]
struct Arrived {
    /// By the carrier through which they came, so that none displaces the packets that came through others; `None` is the TURN
    /// server.
    packets: Queues<Option<Via>, (SocketAddr, Bytes), MAX_ARRIVED_OF_ONE, MAX_ARRIVED>,
    reader: Option<Waker>,
}

/// A pair of members between which this node cannot forward packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CannotCarry {
    /// The sender of the packets.
    pub(crate) sender: VirtualId,
    /// Their target.
    pub(crate) target: VirtualId,
}

/// Keeps a route until it is dropped.
#[derive(Debug)]
#[must_use = "the route is released when this is dropped"]
pub(crate) struct RouteHold {
    tunnels: Arc<Tunnels>,
    route: RouteId,
}

impl Drop for RouteHold {
    fn drop(&mut self) {
        let mut routes = self.tunnels.routes();
        routes.table.release(Instant::now(), self.route);
        self.tunnels.note_relays_in_use(&routes);
    }
}

/// Counts of packets so far, or of parts of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TunnelStats {
    /// Forwarded for others.
    pub(crate) forwarded: u64,
    /// Received for this node.
    pub(crate) delivered: u64,
    /// Dropped on their way out, through or in: no destination, no room, too old, or a missing part.
    pub(crate) dropped: u64,
}

impl Tunnels {
    /// Starts without links, not leading. `own` is this node's key; it forwards `carry` bytes a second for others, and
    /// without limit while it leads. 0: only while it leads.
    pub(crate) fn new(own: Fingerprint, carry: u32) -> Self {
        Self {
            own: virtual_id(own),
            carry,
            routes: Mutex::new(Routes {
                legs: BTreeMap::new(),
                table: RouteTable::new(Instant::now()),
                leads: false,
                number: 0,
            }),
            links: Mutex::default(),
            arrived: Mutex::default(),
            relays_in_use: watch::Sender::new([false; MAX_RELAYS]),
            reports: Mutex::default(),
            reported: Notify::new(),
            departures: Arc::default(),
            counters: Arc::default(),
            shaper: Arc::new(Shaper::new(Rate::BytesPerSecond(carry))),
            turn: TurnPort::default(),
        }
    }

    /// This node's port at a TURN server.
    pub(crate) fn turn(&self) -> &TurnPort {
        &self.turn
    }

    /// Adds a link to a carrier. It replaces earlier links to that one. Requires a tokio runtime.
    pub(crate) fn link_up(&self, via: Via, connection: Connection) {
        let mut all = self.links();
        if let Some(links) = all.get_mut(&via) {
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
            Arc::clone(&self.shaper),
        ));
        let links = Links {
            connections: vec![connection],
            newest,
            halves: Halves::default(),
            reported: BoundedMap::default(),
        };
        all.insert(via, links);
        self.routes().legs.insert(via, leg);
    }

    /// Removes a link. An earlier one takes over, if there still is one. Otherwise everything that waits for
    /// that carrier, or comes from it, is dropped.
    pub(crate) fn link_down(&self, via: Via, connection: &Connection) {
        let mut all = self.links();
        let Some(links) = all.get_mut(&via) else {
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
        let gone = all.remove(&via);
        let mut routes = self.routes();
        let leg = routes.legs.remove(&via);
        let mut dropped = leg.map_or(0, |leg| leg.waiting() as u64);
        if let Via::Member(id) = via {
            for leg in routes.legs.values() {
                dropped += leg.clear(id);
            }
        }
        drop(routes);
        drop(all);
        drop((removed, gone));
        self.counters.drop_packets(dropped);
    }

    /// The address at which a dial of `target` through `carrier` reaches it. `None` if there is no room for another
    /// route, or if one of the two is this node. The dial must hold the route soon, or it is removed.
    pub(crate) fn route(&self, target: Fingerprint, carrier: Via) -> Option<SocketAddr> {
        let target = virtual_id(target);
        if target == self.own || carrier == Via::Member(self.own) {
            return None;
        }
        let mut routes = self.routes();
        let route = routes.table.through(Instant::now(), target, carrier)?;
        Some(route.address())
    }

    /// The carrier of the route at a virtual address. `None` without such a route, or while it has no carrier.
    pub(crate) fn carrier_of(&self, address: SocketAddr) -> Option<Via> {
        self.routes().table.carrier(RouteId::at(address)?)
    }

    /// Sets the carrier of the route at a virtual address: this node's packets go through it from now on. Without a
    /// carrier they are dropped and counted. The other end chooses the way of its packets itself.
    pub(crate) fn set_carrier(&self, address: SocketAddr, carrier: Option<Via>) {
        if let Some(route) = RouteId::at(address) {
            let mut routes = self.routes();
            routes.table.set_carrier(route, carrier);
            self.note_relays_in_use(&routes);
        }
    }

    /// Whether links, dials or admissions use each relay.
    pub(super) fn relays_in_use(&self) -> watch::Receiver<[bool; MAX_RELAYS]> {
        self.relays_in_use.subscribe()
    }

    fn note_relays_in_use(&self, routes: &Routes) {
        let in_use = std::array::from_fn(|number| {
            let relay = RelayNumber(u8::try_from(number).unwrap_or(u8::MAX));
            routes.table.is_used(Via::Relay(relay))
        });
        self.relays_in_use
            .send_if_modified(|before| std::mem::replace(before, in_use) != in_use);
    }

    /// Keeps the route at a virtual address. `None` without such a route.
    pub(crate) fn hold(self: &Arc<Self>, address: SocketAddr) -> Option<RouteHold> {
        let route = RouteId::at(address)?;
        let mut routes = self.routes();
        let is_held = routes.table.hold(route);
        self.note_relays_in_use(&routes);
        drop(routes);
        is_held.then(|| RouteHold {
            tunnels: Arc::clone(self),
            route,
        })
    }

    /// Sets whether this node leads: then it forwards packets of others without limit.
    pub(crate) fn set_leading(&self, leads: bool) {
        let mut routes = self.routes();
        if std::mem::replace(&mut routes.leads, leads) == leads {
            return;
        }
        self.shaper.set_rate(match leads {
            true => Rate::Unlimited,
            false => Rate::BytesPerSecond(self.carry),
        });
        if leads || self.carry > 0 {
            return;
        }
        let dropped = routes.legs.values().map(|leg| leg.clear_others()).sum();
        drop(routes);
        self.counters.drop_packets(dropped);
    }

    /// Waits for the next pair of members between which this node was asked to forward a packet and could not. Each pair
    /// is reported at most once in [`REPORT_INTERVAL`].
    pub(crate) async fn cannot_carry(&self) -> CannotCarry {
        loop {
            let reported = self.reported.notified();
            tokio::pin!(reported);
            // From here on no report is missed.
            reported.as_mut().enable();
            if let Some(report) = self.next_report() {
                return report;
            }
            reported.await;
        }
    }

    fn next_report(&self) -> Option<CannotCarry> {
        let mut reports = self.reports();
        let (report, ()) = reports.first_key_value()?;
        let report = *report;
        reports.remove(&report);
        Some(report)
    }

    fn report(&self, report: CannotCarry) {
        let now = Instant::now();
        let mut all = self.links();
        let Some(links) = all.get_mut(&Via::Member(report.sender)) else {
            return;
        };
        let is_new = |at: &Instant| now.saturating_duration_since(*at) < REPORT_INTERVAL;
        links.reported.retain(|_, at| is_new(at));
        let was_reported = links.reported.contains_key(&report.target);
        if was_reported || links.reported.insert(report.target, now).is_err() {
            return;
        }
        drop(all);
        // Without room the next packet after the interval reports the pair again.
        if self.reports().insert(report, ()).is_ok() {
            self.reported.notify_one();
        }
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
            // The sender takes this node for a carrier to it, and the two are linked: the link
            // through a tunnel is about to end.
            Way::To(target) if target == self.own => {
                self.arrive(Via::Member(sender), sender, piece);
                Ok(())
            }
            Way::To(target) => {
                self.forward(sender, target, piece);
                Ok(())
            }
            Way::From(origin) if origin == self.own => Err(FORGED_ORIGIN),
            Way::From(origin) => {
                self.arrive(Via::Member(sender), origin, piece);
                Ok(())
            }
        }
    }

    /// Handles a datagram from a relay. A relay sends packets from others, and nothing else counts.
    pub(super) fn received_from_relay(&self, relay: RelayNumber, datagram: Bytes) {
        match decode(datagram) {
            Some((Way::From(origin), piece)) if origin != self.own => {
                self.arrive(Via::Relay(relay), origin, piece);
            }
            _ => self.counters.drop_packets(1),
        }
    }

    fn forward(&self, origin: VirtualId, target: VirtualId, piece: Piece) {
        let routes = self.routes();
        let forwards = routes.leads || self.carry > 0;
        let leg = routes.legs.get(&Via::Member(target)).filter(|_| forwards);
        let dropped = match leg {
            // Without a link to the origin its queues were cleared already.
            Some(leg) if routes.legs.contains_key(&Via::Member(origin)) => {
                leg.push(Way::From(origin), piece)
            }
            _ => 1,
        };
        let cannot = leg.is_none();
        drop(routes);
        self.counters.drop_packets(dropped);
        if cannot {
            self.report(CannotCarry {
                sender: origin,
                target,
            });
        }
    }

    /// Handles a packet for this node, or a part of it, that came from `origin` through a link to `via`.
    fn arrive(&self, via: Via, origin: VirtualId, piece: Piece) {
        let mut all = self.links();
        let Some(links) = all.get_mut(&via) else {
            drop(all);
            return self.counters.drop_packets(1);
        };
        let (packet, gave_up) = links.halves.take(origin, piece);
        drop(all);
        let mut dropped = u64::from(gave_up);
        if let Some(packet) = packet {
            let form = Form::of(&packet);
            let mut routes = self.routes();
            let found = routes.table.receive(Instant::now(), origin, via, form);
            drop(routes);
            match self.give(via, found, &packet) {
                Some(displaced) => {
                    self.counters.delivered.fetch_add(1, Ordering::Relaxed);
                    dropped += displaced;
                }
                None => dropped += 1,
            }
        }
        self.counters.drop_packets(dropped);
    }

    /// Queues a packet for the socket's reader, once for each of these routes. Returns how many were dropped for it;
    /// `None` without a route.
    fn give(&self, via: Via, found: impl Iterator<Item = RouteId>, packet: &Bytes) -> Option<u64> {
        let mut arrived = self.arrived();
        let mut displaced = None;
        for route in found {
            let arrival = (route.address(), packet.clone());
            let dropped = arrived.packets.push(Some(via), arrival);
            displaced = Some(displaced.unwrap_or_default() + dropped);
        }
        let reader = displaced.and_then(|_| arrived.reader.take());
        drop(arrived);
        if let Some(reader) = reader {
            reader.wake();
        }
        displaced
    }

    /// Queues a packet for the socket's reader that a peer sent to this node's port at a TURN server.
    pub(super) fn arrive_from_turn(&self, peer: SocketAddrV4, packet: &[u8]) {
        let Some(from) = through_turn(peer.into()) else {
            return;
        };
        let mut arrived = self.arrived();
        let packet = Bytes::copy_from_slice(packet);
        let dropped = arrived.packets.push(None, (from, packet));
        let reader = arrived.reader.take();
        drop(arrived);
        if let Some(reader) = reader {
            reader.wake();
        }
        self.counters.drop_packets(dropped);
    }

    /// Takes a packet from quinn if it is for a virtual address. Packets without room are lost, as on a line.
    pub(super) fn take(&self, transmit: &Transmit<'_>) -> bool {
        if let Some(peer) = behind_turn(transmit.destination) {
            self.departures.notify(transmit.destination);
            self.counters.drop_packets(self.turn.send(peer, transmit));
            return true;
        }
        let Some(route) = RouteId::at(transmit.destination) else {
            self.departures.notify(transmit.destination);
            return false;
        };
        let len = transmit.contents.len();
        let size = transmit.segment_size.unwrap_or(len).max(1);
        let mut dropped = 0;
        let mut routes = self.routes();
        let carrier = routes.table.send(Instant::now(), route);
        let leg = carrier.and_then(|carrier| routes.legs.get(&carrier).cloned());
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
                    leg.push(Way::To(route.target()), piece)
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
            let Some((_, (addr, packet))) = arrived.packets.pop() else {
                break;
            };
            // quinn's buffers hold any packet; a longer one would be cut, as the system does.
            let len = packet.len().min(buf.len());
            buf[..len].copy_from_slice(&packet[..len]);
            *meta = RecvMeta {
                addr,
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
        let address = crate::core::virtual_address::address_of(
            crate::core::path::CarrierKind::Member,
            [1; 8],
            1,
        );
        let via = Via::Member([1; 8]);
        let packet = Bytes::from_static(packet);
        arrived.packets.push(Some(via), (address, packet));
        if let Some(reader) = arrived.reader.take() {
            reader.wake();
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        // Nothing panics while it holds this lock or one of those below.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reports(&self) -> MutexGuard<'_, BoundedMap<CannotCarry, (), MAX_REPORTS>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<Via, Links>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a packet that the system's socket received has a virtual sender address: it is forged.
pub(super) fn is_forged(from: SocketAddr) -> bool {
    is_virtual(from)
}

#[cfg(test)]
mod tests;
