//! This node's port at a TURN server, as quinn's socket and the dials see it: queues of packets, which the task of [`super::turn`]
//! empties and fills.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quinn::udp::Transmit;
use room_transport::tunnel::packet::MAX_PACKET_BYTES;
use room_transport::tunnel::queues::Queues;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::core::address::is_global;
use crate::core::bounded::BoundedMap;
use crate::core::path::Path;
use crate::core::virtual_address::{behind_turn, through_turn};

/// Packets to one peer that wait for the server, at most; the oldest is dropped.
const MAX_WAITING_OF_ONE: usize = 128;
/// Packets that wait for the server, at most (1.5 MB); the peer with the most loses its oldest.
const MAX_WAITING: usize = 1024;
/// A packet that has waited longer is dropped: on a slow line those behind it are newer.
const MAX_WAIT: Duration = Duration::from_millis(150);
/// Peers that may wait until the server is asked to admit them, at most.
const MAX_ADMISSIONS: usize = 64;

/// The port. It takes no packet while the server has given none.
#[derive(Debug, Default)]
pub(crate) struct TurnPort {
    /// Whether the options name servers.
    is_configured: AtomicBool,
    waiting: Mutex<Waiting>,
    /// Notified when there is something to take.
    filled: Notify,
    /// Where the server forwards to this node.
    address: watch::Sender<Option<SocketAddr>>,
    /// Whether the last dial that was answered went through the server, as plain UDP brought no answer.
    is_only_way: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    packets: Queues<SocketAddrV4, (Instant, Bytes), MAX_WAITING_OF_ONE, MAX_WAITING>,
    /// Without room the peer's next dial asks again.
    admissions: BoundedMap<Ipv4Addr, (), MAX_ADMISSIONS>,
}

/// Something for the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// A packet to a peer.
    Packet(SocketAddrV4, Bytes),
    /// A peer's packets may come.
    Admit(Ipv4Addr),
}

impl TurnPort {
    /// Sets whether the room has TURN servers.
    pub(super) fn set_configured(&self, is_configured: bool) {
        self.is_configured.store(is_configured, Ordering::Relaxed);
    }

    /// Whether the room has TURN servers.
    pub(crate) fn is_configured(&self) -> bool {
        self.is_configured.load(Ordering::Relaxed)
    }

    /// Where the server forwards to this node at present.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.borrow()
    }

    /// Waits until the server forwards to this node; forever in a room without servers.
    pub(crate) async fn is_open(&self) {
        let mut address = self.address.subscribe();
        // The sender lives as long as this.
        let _ = address.wait_for(Option::is_some).await;
    }

    /// Begins, or ends, to take packets. What waits at the end is dropped.
    pub(super) fn set_address(&self, address: Option<SocketAddr>) {
        self.address.send_replace(address);
        if address.is_none() {
            *self.waiting() = Waiting::default();
        }
    }

    /// Notes that a dial was answered at that address. Within one network nothing blocks UDP, so an answer from there
    /// means nothing.
    pub(crate) fn note_answer(&self, at: SocketAddr) {
        if behind_turn(at).is_some() {
            self.is_only_way.store(true, Ordering::Relaxed);
        } else if Path::to(at).is_direct() && is_global(at.ip()) {
            self.is_only_way.store(false, Ordering::Relaxed);
        }
    }

    /// Whether plain UDP seems to be blocked: the last dial that was answered from the internet went through the server.
    pub(crate) fn is_only_way(&self) -> bool {
        self.address().is_some() && self.is_only_way.load(Ordering::Relaxed)
    }

    /// The virtual address at which `peer` is dialled through the server. `None` while there is no port, and for addresses that mean
    /// another machine in the server's network: a member that lies about its address could reach that.
    pub(crate) fn way_to(&self, peer: SocketAddr) -> Option<SocketAddr> {
        let own = self.address()?;
        let is_common = is_global(peer.ip()) || !is_global(own.ip());
        through_turn(peer).filter(|_| is_common)
    }

    /// Lets packets of a peer come, which may dial this node at the server.
    pub(crate) fn admit(&self, peer: SocketAddr) {
        if let (Some(_), IpAddr::V4(ip)) = (self.way_to(peer), peer.ip().to_canonical())
            && self.waiting().admissions.insert(ip, ()).is_ok()
        {
            self.filled.notify_one();
        }
    }

    /// Queues packets of quinn to a peer. Returns how many were dropped.
    pub(super) fn send(&self, peer: SocketAddrV4, transmit: &Transmit<'_>) -> u64 {
        let len = transmit.contents.len();
        let size = transmit.segment_size.unwrap_or(len).max(1);
        let packets = transmit.contents.chunks(size);
        if self.address().is_none() {
            return packets.count() as u64;
        }
        let now = Instant::now();
        let mut waiting = self.waiting();
        let dropped = packets.map(|packet| match packet.len() > MAX_PACKET_BYTES {
            true => 1,
            false => {
                let entry = (now, Bytes::copy_from_slice(packet));
                waiting.packets.push(peer, entry)
            }
        });
        let dropped = dropped.sum();
        drop(waiting);
        self.filled.notify_one();
        dropped
    }

    /// Waits for something for the server. Cancel safe.
    pub(super) async fn next(&self) -> Departure {
        loop {
            if let Some(departure) = self.try_next() {
                return departure;
            }
            self.filled.notified().await;
        }
    }

    /// Takes the next packet or admission, if there is one.
    pub(super) fn try_next(&self) -> Option<Departure> {
        let mut waiting = self.waiting();
        if let Some((&ip, ())) = waiting.admissions.first_key_value() {
            waiting.admissions.remove(&ip);
            return Some(Departure::Admit(ip));
        }
        let now = Instant::now();
        let is_old = |(at, _): &(Instant, Bytes)| now.saturating_duration_since(*at) > MAX_WAIT;
        waiting.packets.drop_old(is_old);
        let (peer, (_, packet)) = waiting.packets.pop()?;
        Some(Departure::Packet(peer, packet))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it holds this lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
