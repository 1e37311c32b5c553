//! Congestion control by delay: bounds the bytes in flight on a connection by the queueing delay that they cause.
//!
//! Games send a little all the time, and now and then a lot: a map, a save. Data in the line's queue then
//! delays the game. A window that shrinks with every loss (Cubic, NewReno) is too small for both kinds on a
//! lossy line. So this controller follows the queueing delay, the round trip above the minimum, as LEDBAT
//! (RFC 6817) and Swift (SIGCOMM 2020) do: the window grows below a target and shrinks above it. Losses count
//! only together with a queue, or when there are many. `docs/lab.md` compares this controller with others.

pub mod background;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use background::Observed;

/// Minimum window in packets. It keeps the connection alive on lossy lines, and beside flows that keep the queue full.
const LEAST_PACKETS: u64 = 32;
/// Minimum window in packets while most are lost: a relay or a carrier drops what exceeds its rate.
const LEAST_PACKETS_IF_MOST_ARE_LOST: u64 = 2;
/// Maximum window; `SEND_WINDOW_BYTES` keeps no more of a connection unacknowledged.
const MOST_BYTES: u64 = 8 << 20;
/// Queueing delay that the window is adjusted to.
const TARGET: Duration = Duration::from_millis(5);
/// Delay from which a queue is assumed. Below it, clocks and schedulers are too imprecise.
const QUEUE: Duration = Duration::from_micros(1250);
/// Acknowledgements in a row that must show a queue to end the start; a single one may have been delayed elsewhere.
const START_ENDS_AFTER: u32 = 8;
/// Growth of the window, in packets per round trip, while the queue is short; or the growth fraction of the
/// window, if that is larger.
const GROWTH_PACKETS: u64 = 2;
const GROWTH_DIVISOR: u64 = 32;
/// Smallest factor by which one round trip shrinks the window.
const SHRINK: f64 = 0.7;
/// Loss above this rate is congestion even without a queue: something on the path enforces a rate.
const MUCH_LOSS: f64 = 0.08;
/// Loss above this rate comes from the window itself, which is larger than what the path takes in a round trip.
const MOST_LOST: f64 = 0.5;
/// Weight of one round in the average loss.
const LOSS_WEIGHT: f64 = 0.125;
/// Weight of a round that lost most packets. Three of them suffice to shrink the window; one, as after an outage, does not.
const MOST_LOST_WEIGHT: f64 = 0.25;
/// Re-measure the minimum round trip after this long without a new minimum, once the window is at its
/// minimum: the route has become longer, or other flows keep the queue full.
const BASE_LIFETIME: Duration = Duration::from_secs(10);

/// Makes a controller for each path.
#[derive(Debug, Default)]
pub struct DelayBoundConfig;

impl ControllerFactory for DelayBoundConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(DelayBound::new(now, current_mtu))
    }
}

/// The window of one path.
#[derive(Debug, Clone)]
struct DelayBound {
    mtu: u64,
    window: u64,
    /// Whether the window still doubles every round trip; ends with the first queue.
    starting: bool,
    /// The shortest round trip within the current acknowledgement, which may cover several packets.
    acked_after: Option<Duration>,
    /// Number of latest acknowledgements in a row that showed a queue.
    queued_in_a_row: u32,
    /// The minimum round trip, and when it was last measured.
    base: Option<(Duration, Instant)>,
    /// Average fraction of bytes lost.
    loss: f64,
    round: Round,
    /// The shortest round trip of the last round, and the number of rounds so far.
    last_round: Option<Duration>,
    rounds: u64,
    /// Bytes that were sent so far, and that have arrived.
    sent: u64,
    acked: u64,
}

/// Measurements since the round began. A round ends with the first acknowledgement of a packet sent in it.
#[derive(Debug, Clone)]
struct Round {
    began: Instant,
    shortest: Option<Duration>,
    acked: u64,
    lost: u64,
    /// A router has marked packets instead of dropping them (ECN).
    marked: bool,
    /// Data waited for the window. Otherwise the round gives no evidence about the window's size.
    window_limited: bool,
}

impl Round {
    fn new(began: Instant) -> Self {
        Self {
            began,
            shortest: None,
            acked: 0,
            lost: 0,
            marked: false,
            window_limited: false,
        }
    }
}

impl DelayBound {
    fn new(now: Instant, mtu: u16) -> Self {
        let mtu = u64::from(mtu);
        Self {
            mtu,
            window: LEAST_PACKETS * mtu,
            starting: true,
            acked_after: None,
            queued_in_a_row: 0,
            base: None,
            loss: 0.0,
            round: Round::new(now),
            last_round: None,
            rounds: 0,
            sent: 0,
            acked: 0,
        }
    }

    fn observed(&self) -> Option<Observed> {
        let (base, _) = self.base?;
        Some(Observed {
            base,
            shortest: self.last_round?,
            rounds: self.rounds,
            sent: self.sent,
            acked: self.acked,
            mtu: self.mtu,
        })
    }

    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool) {
        let took = now.saturating_duration_since(sent);
        match self.base {
            Some((base, _)) if took > base + QUEUE / 4 => {}
            Some((base, _)) => self.base = Some((base.min(took), now)),
            None => self.base = Some((took, now)),
        }
        let shortest = self
            .round
            .shortest
            .map_or(took, |shortest| shortest.min(took));
        self.round.shortest = Some(shortest);
        self.acked_after = Some(self.acked_after.map_or(took, |shortest| shortest.min(took)));
        self.round.acked += bytes;
        self.acked += bytes;
        if !app_limited {
            self.round.window_limited = true;
            if self.starting {
                self.window = self.bounded(self.window + bytes);
            }
        }
        if sent >= self.round.began {
            self.end_round(now, shortest);
        }
    }

    /// Ends the start at the first queue; a round trip later the window would have doubled again.
    fn end_acknowledgement(&mut self) {
        let (Some(took), Some((base, _))) = (self.acked_after.take(), self.base) else {
            return;
        };
        if took <= base + QUEUE {
            self.queued_in_a_row = 0;
            return;
        }
        self.queued_in_a_row += 1;
        if self.starting && self.round.window_limited && self.queued_in_a_row >= START_ENDS_AFTER {
            self.starting = false;
            // The line's capacity within the minimum round trip.
            let part = base.as_secs_f64() / took.as_secs_f64();
            self.window = self.bounded((self.window as f64 * part) as u64);
        }
    }

    fn end_round(&mut self, now: Instant, shortest: Duration) {
        let round = std::mem::replace(&mut self.round, Round::new(now));
        self.last_round = Some(shortest);
        self.rounds += 1;
        let loss = round.lost as f64 / (round.acked + round.lost).max(1) as f64;
        let weight = match loss > MOST_LOST {
            true => MOST_LOST_WEIGHT,
            false => LOSS_WEIGHT,
        };
        self.loss += weight * (loss - self.loss);
        let (base, seen) = self.base.unwrap_or((shortest, now));
        if round.window_limited {
            self.window = self.next_window(shortest.saturating_sub(base), &round);
        }
        if now.saturating_duration_since(seen) > BASE_LIFETIME {
            if !round.window_limited {
                // The estimate of the line is just as old.
                self.window = self.least();
                self.starting = true;
            }
            if self.window <= self.least() {
                self.base = Some((shortest, now));
            }
        }
    }

    fn next_window(&mut self, queued: Duration, round: &Round) -> u64 {
        let queue = queued > QUEUE;
        let congested = round.marked || (round.lost > 0 && queue) || self.loss > MUCH_LOSS;
        if congested || queued > TARGET {
            self.starting = false;
            let excess = TARGET.as_secs_f64() / queued.as_secs_f64();
            let part = if self.loss > MOST_LOST {
                1.0 - self.loss
            } else if congested {
                SHRINK
            } else {
                excess.max(SHRINK)
            };
            return self.bounded((self.window as f64 * part) as u64);
        }
        if self.starting {
            return self.window;
        }
        let growth = (GROWTH_PACKETS * self.mtu).max(self.window / GROWTH_DIVISOR);
        self.bounded(self.window + growth)
    }

    /// Only a loss of most packets takes the window below [`Self::least`]. From there it grows as any other does.
    fn bounded(&self, window: u64) -> u64 {
        let least = match self.loss > MOST_LOST {
            true => LEAST_PACKETS_IF_MOST_ARE_LOST * self.mtu,
            false => self.least().min(self.window),
        };
        window.clamp(least, MOST_BYTES)
    }

    fn least(&self) -> u64 {
        LEAST_PACKETS * self.mtu
    }
}

impl Controller for DelayBound {
    fn on_sent(&mut self, _now: Instant, bytes: u64, _last_packet_number: u64) {
        self.sent += bytes;
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.acknowledged(now, sent, bytes, app_limited);
    }

    fn on_end_acks(
        &mut self,
        _now: Instant,
        _in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.end_acknowledgement();
    }

    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.round.lost += lost_bytes;
        self.round.marked |= lost_bytes == 0;
        if is_persistent_congestion {
            self.window = self.window.min(self.least());
            self.starting = self.window == self.least();
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu);
        self.window = self.bounded(self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.least()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
