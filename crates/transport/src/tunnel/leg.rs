//! Leg of a tunnel: the queues of packets that one link carries, and the task that empties them.
//!
//! quinn sends datagrams before streams. So the task keeps at most a few packets in quinn. While the link's
//! own streams have something to send, it lets them send as much before the next few packets.
//!
//! Packets of this process and packets of others wait apart. The others' packets wait for the [`Shaper`] as well, and for the
//! leg's own [`Pace`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::Connection;
use room_core::path::Path;
use room_core::virtual_address::VirtualId;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::packet::{HEADER_BYTES, Piece, Way, datagrams};
use super::queues::{MAX_QUEUED, MAX_QUEUED_OF_ONE, Queues};
use super::shaper::{Pace, Rate, Shaper, Turn};
use crate::quic::DATAGRAM_SEND_BUFFER_BYTES;

/// Time after which a packet that still waits in a leg is dropped. Packets behind a transfer, as heartbeats
/// are, then waits no longer than that.
pub const MAX_AGE: Duration = Duration::from_millis(150);
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
/// Memory for a waiting piece beside its bytes, approximately.
const PIECE_OVERHEAD_BYTES: usize = 128;

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

/// Limit for what waits in several queues together.
#[derive(Debug)]
pub struct Backlog {
    bytes: AtomicUsize,
    most: usize,
}

impl Backlog {
    /// At most that many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            most,
        }
    }

    /// Reserves room for `piece`, until the returned value is dropped; `None` if there is none left.
    pub fn hold(self: &Arc<Self>, piece: &Piece) -> Option<Held> {
        let bytes = PIECE_OVERHEAD_BYTES + piece.bytes.len();
        let fits = |waiting: usize| (waiting + bytes <= self.most).then_some(waiting + bytes);
        let relaxed = Ordering::Relaxed;
        self.bytes.fetch_update(relaxed, relaxed, fits).ok()?;
        Some(Held {
            backlog: Arc::clone(self),
            bytes,
        })
    }

    /// The number of bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A part of a [`Backlog`].
#[derive(Debug)]
pub struct Held {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.backlog.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A packet, or a part of one, that waits.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    piece: Piece,
    _held: Option<Held>,
}

type LegQueues = Queues<VirtualId, Waiting, MAX_QUEUED_OF_ONE, MAX_QUEUED>;

/// The packets that wait for one link.
#[derive(Debug)]
struct Pieces {
    /// Of this process, by target.
    own: LegQueues,
    /// Of others, by origin.
    others: LegQueues,
    /// The pieces of others.
    pace: Pace,
}

impl Pieces {
    fn drop_old(&mut self, now: Instant) -> u64 {
        let is_old = |waiting: &Waiting| now.saturating_duration_since(waiting.since) >= MAX_AGE;
        self.own.drop_old(is_old) + self.others.drop_old(is_old)
    }
}

/// Pieces that the task sends at once.
#[derive(Debug, Default)]
struct Batch {
    pieces: Vec<(Way, Piece)>,
    /// The event that packets of others wait for.
    others_wait: Option<Wait>,
    /// Dropped because of their age.
    dropped: u64,
}

/// An event that packets of others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The leg's turn.
    Turn,
    /// The leg's own rate, which allows more from then on.
    Until(Instant),
}

/// Use of a link's streams beside its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Streams {
    /// They get turns between the packets.
    Share,
    /// A few short frames, which leave between two batches.
    Frames,
}

/// The queues of one link.
#[derive(Debug)]
pub struct Leg {
    pieces: Mutex<Pieces>,
    filled: Notify,
    streams: Streams,
}

impl Default for Leg {
    /// For a link with streams of its own, whose packets of others are limited by the [`Shaper`] alone.
    fn default() -> Self {
        Self::with(Rate::Unlimited, Streams::Share)
    }
}

impl Leg {
    /// For a link whose streams carry next to nothing; it sends on for others at most at that rate.
    pub fn of_a_relay(rate: Rate) -> Self {
        Self::with(rate, Streams::Frames)
    }

    fn with(rate: Rate, streams: Streams) -> Self {
        Self {
            pieces: Mutex::new(Pieces {
                own: LegQueues::default(),
                others: LegQueues::default(),
                pace: Pace::new(rate),
            }),
            filled: Notify::new(),
            streams,
        }
    }

    /// Queues a piece; returns how many were dropped for it.
    pub fn push(&self, way: Way, piece: Piece) -> u64 {
        self.push_held(way, piece, None)
    }

    /// [`Leg::push`], with the piece's part of a [`Backlog`].
    pub fn push_held(&self, way: Way, piece: Piece, held: Option<Held>) -> u64 {
        let waiting = Waiting {
            since: Instant::now(),
            piece,
            _held: held,
        };
        let mut pieces = self.pieces();
        let (queues, member) = match way {
            Way::To(target) => (&mut pieces.own, target),
            Way::From(origin) => (&mut pieces.others, origin),
        };
        let was_empty = queues.is_empty();
        let dropped = queues.push(member, waiting);
        drop(pieces);
        if was_empty {
            self.filled.notify_one();
        }
        dropped
    }

    /// Drops what waits of `origin`; returns how many pieces.
    pub fn clear(&self, origin: VirtualId) -> u64 {
        self.pieces().others.clear(origin)
    }

    /// Drops what waits of others; returns how many pieces.
    pub fn clear_others(&self) -> u64 {
        self.pieces().others.clear_all()
    }

    /// Drops what has waited too long; returns how many pieces. The task does so whenever it takes pieces, which it cannot
    /// while the link takes none.
    pub fn drop_old(&self) -> u64 {
        self.pieces().drop_old(Instant::now())
    }

    /// The number of pieces that wait.
    pub fn waiting(&self) -> usize {
        let pieces = self.pieces();
        pieces.own.len() + pieces.others.len()
    }

    /// The next pieces to send: the ones of this process and, if it is the leg's turn, the ones of others. `last` is the
    /// leg's last turn.
    fn take_batch(&self, shaper: &Shaper, last: &mut Turn) -> Batch {
        let now = Instant::now();
        let mut batch = Batch::default();
        let mut pieces = self.pieces();
        batch.dropped = pieces.drop_old(now);
        let Pieces { own, others, pace } = &mut *pieces;
        let turn = match others.is_empty() {
            true => None,
            false => match pace.waits_until(now) {
                None => shaper.is_turn(now, *last).ok_or(Wait::Turn).into(),
                Some(at) => Some(Err(Wait::Until(at))),
            },
        };
        batch.others_wait = turn.and_then(Result::err);
        // One of each that waits in a limited turn, so that all pairs of members get the same.
        let most_of_others = match turn.and_then(Result::ok) {
            None => 0,
            Some(Rate::Unlimited) if !pace.is_limited() => BATCH,
            Some(_) => others.queues().min(BATCH),
        };
        let (mut of_others, mut bytes) = (0, 0);
        while batch.pieces.len() < BATCH {
            let before = batch.pieces.len();
            if let Some((target, Waiting { piece, .. })) = own.pop() {
                batch.pieces.push((Way::To(target), piece));
            }
            if of_others < most_of_others
                && let Some((origin, Waiting { piece, .. })) = others.pop()
            {
                of_others += 1;
                bytes += HEADER_BYTES + piece.bytes.len();
                batch.pieces.push((Way::From(origin), piece));
            }
            if batch.pieces.len() == before {
                break;
            }
        }
        if bytes > 0 {
            pace.charge(now, bytes);
            *last = shaper.charge(now, bytes);
        }
        batch
    }

    /// Nothing panics while it holds the lock.
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
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
    shaper: Arc<Shaper>,
) {
    let mut turns = Turns::default();
    let mut last = shaper.join();
    loop {
        let batch = leg.take_batch(&shaper, &mut last);
        counters.drop_packets(batch.dropped);
        let connection = link.borrow_and_update().clone();
        let (Some(connection), false) = (connection, batch.pieces.is_empty()) else {
            turns = Turns::default();
            tokio::select! {
                () = leg.filled.notified() => {}
                () = wait(batch.others_wait, &shaper, last), if batch.others_wait.is_some() => {}
                changed = link.changed() => if changed.is_err() {
                    return;
                },
            }
            continue;
        };
        let departure = departures.wait_for(connection.remote_address());
        tokio::select! {
            () = turns.send(&connection, batch.pieces, leg.streams, &departure, &counters) => {}
            // The rest of the batch would arrive too late.
            changed = link.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

async fn wait(wait: Option<Wait>, shaper: &Shaper, last: Turn) {
    match wait {
        Some(Wait::Turn) => shaper.turn(last).await,
        Some(Wait::Until(at)) => sleep_until(at).await,
        None => std::future::pending().await,
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
        streams: Streams,
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
        if streams == Streams::Share {
            self.yield_to_streams(connection, before.frame_tx.stream, sent, departure)
                .await;
        }
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::tunnel::packet::Part;

    fn push(leg: &Leg, way: Way, number: u16) -> u64 {
        let piece = Piece {
            part: Part::Whole,
            number,
            bytes: Bytes::from_static(&[0; 1200]),
        };
        leg.push(way, piece)
    }

    fn sent(batch: &Batch) -> Vec<(Way, u16)> {
        let pieces = batch.pieces.iter();
        pieces.map(|(way, piece)| (*way, piece.number)).collect()
    }

    const OWN: Way = Way::To([9; 8]);

    #[tokio::test(start_paused = true)]
    async fn packets_that_have_waited_too_long_are_dropped_from_the_head() {
        let (leg, shaper) = (Leg::default(), Shaper::new(Rate::Unlimited));
        let mut last = shaper.join();
        let of_other = Way::From([1; 8]);
        for (number, wait_ms) in [(0, 100), (1, 49), (2, 1)] {
            push(&leg, of_other, number);
            push(&leg, OWN, number);
            tokio::time::advance(Duration::from_millis(wait_ms)).await;
        }
        let batch = leg.take_batch(&shaper, &mut last);
        assert_eq!(batch.dropped, 2);
        assert_eq!(
            sent(&batch),
            [(OWN, 1), (of_other, 1), (OWN, 2), (of_other, 2)]
        );
        assert_eq!(batch.others_wait, None);
        push(&leg, of_other, 3);
        tokio::time::advance(MAX_AGE).await;
        let batch = leg.take_batch(&shaper, &mut last);
        assert_eq!((batch.dropped, sent(&batch)), (1, vec![]));
        assert_eq!(leg.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limited_turn_takes_one_packet_of_each_and_own_packets_do_not_wait() {
        let shaper = Shaper::new(Rate::BytesPerSecond(24_240));
        let leg = Leg::default();
        let mut last = shaper.join();
        let [a, b] = [1, 2].map(|n| Way::From([n; 8]));
        for number in 0..3 {
            for way in [a, a, b, OWN] {
                push(&leg, way, number);
            }
        }
        let batch = leg.take_batch(&shaper, &mut last);
        assert_eq!(sent(&batch), [(OWN, 0), (a, 0), (OWN, 1), (b, 0), (OWN, 2)]);
        // Two packets take a tenth of a second; 10 ms without use before count.
        let batch = leg.take_batch(&shaper, &mut last);
        assert!(batch.pieces.is_empty());
        assert_eq!(batch.others_wait, Some(Wait::Turn));
        push(&leg, OWN, 3);
        assert_eq!(sent(&leg.take_batch(&shaper, &mut last)), [(OWN, 3)]);
        let start = Instant::now();
        shaper.turn(last).await;
        let waited = start.elapsed();
        assert!((90..=101).contains(&waited.as_millis()), "{waited:?}");
        let batch = leg.take_batch(&shaper, &mut last);
        assert_eq!(sent(&batch), [(a, 0), (b, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_leg_with_a_rate_keeps_to_it_beside_one_without() {
        let shaper = Shaper::new(Rate::Unlimited);
        let (slow, fast) = (
            Leg::of_a_relay(Rate::BytesPerSecond(24_240)),
            Leg::of_a_relay(Rate::Unlimited),
        );
        let (mut last_slow, mut last_fast) = (shaper.join(), shaper.join());
        for leg in [&slow, &fast] {
            push(leg, Way::From([1; 8]), 0);
            push(leg, Way::From([1; 8]), 1);
        }
        let of_other = |number| vec![(Way::From([1; 8]), number)];
        assert_eq!(sent(&slow.take_batch(&shaper, &mut last_slow)), of_other(0));
        let both = [of_other(0), of_other(1)].concat();
        assert_eq!(sent(&fast.take_batch(&shaper, &mut last_fast)), both);
        tokio::time::advance(Duration::from_millis(1)).await;
        let batch = slow.take_batch(&shaper, &mut last_slow);
        assert!(batch.pieces.is_empty());
        let Some(Wait::Until(at)) = batch.others_wait else {
            panic!("{:?}", batch.others_wait);
        };
        // A packet takes 50 ms.
        let waits = at - Instant::now();
        assert!((48..=50).contains(&waits.as_millis()), "{waits:?}");
        push(&fast, Way::From([1; 8]), 2);
        assert_eq!(sent(&fast.take_batch(&shaper, &mut last_fast)), of_other(2));
        tokio::time::advance(waits).await;
        assert_eq!(sent(&slow.take_batch(&shaper, &mut last_slow)), of_other(1));
    }

    #[test]
    fn a_backlog_is_bounded_and_free_again_once_its_pieces_are_gone() {
        let piece = |bytes: &'static [u8]| Piece {
            part: Part::Whole,
            number: 0,
            bytes: Bytes::from_static(bytes),
        };
        let backlog = Arc::new(Backlog::new(2 * (PIECE_OVERHEAD_BYTES + 1000)));
        let leg = Leg::default();
        for number in 0..2 {
            let held = backlog.hold(&piece(&[0; 1000]));
            assert!(held.is_some(), "{number}");
            leg.push_held(Way::From([1; 8]), piece(&[0; 1000]), held);
        }
        assert!(backlog.hold(&piece(&[0])).is_none());
        leg.clear_others();
        assert_eq!(backlog.bytes(), 0);
        assert!(backlog.hold(&piece(&[0; 1000])).is_some());
    }

    #[test]
    fn packets_of_this_process_and_of_others_are_bounded_apart() {
        let leg = Leg::default();
        let of_other = Way::From([1; 8]);
        let mut dropped = 0;
        for number in 0..1000 {
            dropped += push(&leg, of_other, number);
        }
        assert_eq!(push(&leg, OWN, 0), 0);
        assert_eq!(dropped as usize, 1000 - MAX_QUEUED_OF_ONE);
        assert_eq!(leg.clear([1; 8]) as usize, MAX_QUEUED_OF_ONE);
        assert_eq!(leg.waiting(), 1);
        push(&leg, of_other, 0);
        assert_eq!((leg.clear_others(), leg.waiting()), (1, 1));
    }
}
