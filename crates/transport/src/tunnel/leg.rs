//! Leg of a tunnel: the queues of packets that one link carries for others, and the task that empties them.
//!
//! quinn sends datagrams before streams. So the task keeps at most a few packets in quinn. While the link's
//! own streams have something to send, it lets them send as much before the next few packets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::Connection;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::packet::{Piece, Way, datagrams};
use super::queues::Queues;
use crate::quic::DATAGRAM_SEND_BUFFER_BYTES;
use room_core::path::Path;

/// Packets that the task passes to quinn at once; the next batch follows when these have left.
const BATCH: usize = 8;
/// Further datagrams that may leave before the next batch, if the link's own datagrams keep
/// quinn's queue from running empty.
const OWN_DATAGRAMS_BETWEEN: u64 = 8;
/// Tolerance for an empty queue: quinn counts its bookkeeping for the next datagram.
const DATAGRAM_OVERHEAD_BYTES: usize = 64;
/// Time for which packets follow each other before the streams get a turn, if they sent nothing in their last turn.
const ALONE: Duration = Duration::from_millis(10);
/// [`ALONE`] in turns; the longer of the two applies.
const ALONE_TURNS: u32 = 4;
/// Longest turn of the streams if they do not use it.
const LONGEST_TURN: Duration = Duration::from_millis(50);
/// Longest reliance on the notice that the link has sent something. The notice may be missing for a link
/// whose peer has moved to another address.
const RECHECK: Duration = Duration::from_millis(50);

/// Counters of packets by outcome.
#[derive(Debug, Default)]
pub struct Counters {
    /// Sent on for others.
    pub forwarded: AtomicU64,
    /// Received for this process.
    pub delivered: AtomicU64,
    /// Dropped on their way out, through or in.
    pub dropped: AtomicU64,
}

impl Counters {
    /// Counts packets that were dropped.
    pub fn drop_packets(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

/// The queues of one link.
#[derive(Debug, Default)]
pub struct Leg {
    queues: Mutex<Queues>,
    filled: Notify,
}

impl Leg {
    /// Queues a piece; returns how many were dropped for it.
    pub fn push(&self, way: Way, piece: Piece) -> u64 {
        let mut queues = self.queues();
        let was_empty = queues.is_empty();
        let dropped = queues.push(way, piece);
        drop(queues);
        if was_empty {
            self.filled.notify_one();
        }
        dropped
    }

    /// Drops what waits of `way`; returns how many pieces.
    pub fn clear(&self, way: Way) -> u64 {
        self.queues().clear(way)
    }

    fn take_batch(&self) -> Vec<(Way, Piece)> {
        let mut queues = self.queues();
        std::iter::from_fn(|| queues.pop()).take(BATCH).collect()
    }

    /// Nothing panics while it holds the lock.
    pub fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notifies the tasks when the socket sends something on their links.
#[derive(Debug, Default)]
pub struct Departures {
    /// Number of waiting tasks, so that a packet costs nothing more while it is 0.
    waiting: AtomicUsize,
    by_address: Mutex<BTreeMap<SocketAddr, Arc<Notify>>>,
}

impl Departures {
    /// The socket sends a packet to `destination`. quinn may hold the lock of that connection.
    pub fn notify(&self, destination: SocketAddr) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(waits) = self.by_address().get(&destination) {
            waits.notify_one();
        }
    }

    fn wait_for(self: &Arc<Self>, address: SocketAddr) -> Departure {
        let departed = Arc::new(Notify::new());
        self.by_address().insert(address, Arc::clone(&departed));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Departure {
            departures: Arc::clone(self),
            address,
            departed,
        }
    }

    fn by_address(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Arc<Notify>>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiting task; dropping it ends the wait.
struct Departure {
    departures: Arc<Departures>,
    address: SocketAddr,
    departed: Arc<Notify>,
}

impl Drop for Departure {
    fn drop(&mut self) {
        let mut by_address = self.departures.by_address();
        let is_own = |departed: &Arc<Notify>| Arc::ptr_eq(departed, &self.departed);
        if by_address.get(&self.address).is_some_and(is_own) {
            by_address.remove(&self.address);
        }
        drop(by_address);
        self.departures.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Empties the queues until the last link to that member is down.
pub async fn drive(
    leg: Arc<Leg>,
    mut link: watch::Receiver<Option<Connection>>,
    departures: Arc<Departures>,
    counters: Arc<Counters>,
) {
    let mut turns = Turns::default();
    loop {
        let batch = leg.take_batch();
        let connection = link.borrow_and_update().clone();
        let (Some(connection), false) = (connection, batch.is_empty()) else {
            turns = Turns::default();
            tokio::select! {
                () = leg.filled.notified() => {}
                changed = link.changed() => if changed.is_err() {
                    return;
                },
            }
            continue;
        };
        let departure = departures.wait_for(connection.remote_address());
        tokio::select! {
            () = turns.send(&connection, batch, &departure, &counters) => {}
            // The rest of the batch would arrive too late.
            changed = link.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Turns between packets and streams on a link.
#[derive(Debug, Default)]
struct Turns {
    /// Since when the streams have had no turn.
    began: Option<Instant>,
    /// Whether the streams sent something in their last turn: then a turn follows every batch.
    streams_send: bool,
}

impl Turns {
    async fn send(
        &mut self,
        connection: &Connection,
        batch: Vec<(Way, Piece)>,
        departure: &Departure,
        counters: &Counters,
    ) {
        let before = connection.stats();
        // A link that itself goes through a tunnel by now carries nothing: its packets would come back here.
        let leads_out = Path::to(connection.remote_address()).is_direct();
        let mut sent = 0;
        for (way, piece) in batch {
            let max = connection.max_datagram_size().filter(|_| leads_out);
            let Some((first, second)) = max.and_then(|max| datagrams(way, &piece, max)) else {
                counters.drop_packets(1);
                continue;
            };
            let mut is_taken = true;
            for datagram in [Some(first), second].into_iter().flatten() {
                is_taken &= connection.send_datagram_wait(datagram).await.is_ok();
                sent += u64::from(is_taken);
            }
            match way {
                _ if !is_taken => counters.drop_packets(1),
                Way::From(_) => drop(counters.forwarded.fetch_add(1, Ordering::Relaxed)),
                Way::To(_) => {}
            }
        }
        if sent == 0 {
            return;
        }
        let left = before.frame_tx.datagram + sent + OWN_DATAGRAMS_BETWEEN;
        while !has_no_datagrams(connection) && connection.stats().frame_tx.datagram < left {
            if connection.close_reason().is_some() {
                return;
            }
            departure.next(Instant::now() + RECHECK).await;
        }
        self.yield_to_streams(connection, before.frame_tx.stream, sent, departure)
            .await;
    }

    /// Lets the streams send as many packets as the batch, if they have data.
    async fn yield_to_streams(
        &mut self,
        connection: &Connection,
        streams_before: u64,
        sent: u64,
        departure: &Departure,
    ) {
        let streamed = || connection.stats().frame_tx.stream - streams_before;
        let now = Instant::now();
        let turn = turn_of(connection, sent);
        let began = *self.began.get_or_insert(now);
        if !self.streams_send && streamed() == 0 && now < began + ALONE.max(turn * ALONE_TURNS) {
            return;
        }
        let until = now + turn;
        // The streams' share within the batch's own packets, one frame each, does not count as a turn.
        while streamed() < 2 * sent && Instant::now() < until {
            departure.next(until).await;
        }
        self.streams_send = streamed() > 0;
        self.began = None;
    }
}

impl Departure {
    /// Waits for the next packet of the link, at most until `until`.
    async fn next(&self, until: Instant) {
        let _ = timeout_at(until, self.departed.notified()).await;
    }
}

fn has_no_datagrams(connection: &Connection) -> bool {
    let space = connection.datagram_send_buffer_space();
    space + DATAGRAM_OVERHEAD_BYTES > DATAGRAM_SEND_BUFFER_BYTES
}

/// One and a half times the time that the link needs for this many packets at its present rate.
fn turn_of(connection: &Connection, packets: u64) -> Duration {
    let path = connection.stats().path;
    let bytes = packets as f64 * f64::from(path.current_mtu);
    let seconds = 1.5 * path.rtt.as_secs_f64() * bytes / path.cwnd.max(1) as f64;
    Duration::from_secs_f64(seconds.min(LONGEST_TURN.as_secs_f64()))
}
