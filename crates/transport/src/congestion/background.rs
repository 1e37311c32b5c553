//! Pace of background data: a transfer beside a game's messages.
//!
//! The congestion window bounds the queue on the line to some milliseconds, which suits bulk that is as urgent as anything
//! else. A transfer is not: a packet of the game is to find the queue empty. So background data has a rate of its own, below
//! the rate of the line. It grows slowly until the first sign of a queue, yields, and rests below that rate for a while. A
//! queue that does not react has another cause, such as a busy machine or another program's download, and is no reason to
//! yield.
//!
//! Pure: the caller passes the time, and the observations of the congestion controller.

use std::time::{Duration, Instant};

use quinn::congestion::Controller;

use super::DelayBound;

/// Queueing delay from which background data yields.
const TARGET: Duration = Duration::from_micros(1500);
/// Shortest time that is judged at once: in less, a busy machine delays all of it.
const SHORTEST_PERIOD: Duration = Duration::from_millis(20);
/// Packets that must have arrived before a period is judged.
const PERIOD_PACKETS: u64 = 16;
/// A period is judged after that long, however few packets arrived in it.
const LONGEST_PERIOD: Duration = Duration::from_millis(500);
/// Growth factor of the rate while the rate of the line is unknown, or far from it.
const FAST_GROWTH: f64 = 1.25;
/// Growth factor near the rate of the line.
const GROWTH: f64 = 1.03;
/// The rates near that of the line, in parts of it.
const NEAR: std::ops::Range<f64> = 0.5..1.2;
/// Periods without growth after a queue.
const REST_PERIODS: u32 = 24;
/// Smallest factor by which one period shrinks the rate.
const LEAST_PART: f64 = 0.5;
/// Margin below the rate of the line.
const MARGIN: f64 = 0.07;
/// Time for which the pace ignores a queue of another cause.
const GIVEN: Duration = Duration::from_secs(5);
/// Longest queue that may be noise: machines and radios delay packets, too.
const MOST_NOISE: Duration = Duration::from_millis(10);
/// Minimum rate, in packets per round trip.
const LEAST: u64 = 4;
/// Shortest round trip of which the minimum rate is computed.
const LEAST_TRIP: Duration = Duration::from_millis(1);
/// Part of the rate that must have been sent before it grows.
const USED: f64 = 0.75;
/// Part of the sent bytes that must have arrived before the rate grows.
const SOUND: f64 = 0.92;
/// If a smaller part of the sent bytes arrives, the line is full.
const FULL: f64 = 0.8;
/// Longest burst, as time at the present rate.
const BURST: Duration = Duration::from_millis(1);
/// Time at the present rate that a late caller may make up for: timers are that coarse.
const CATCH_UP: Duration = Duration::from_millis(1);

/// Observations of the congestion controller of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// The shortest round trip of the path.
    pub base: Duration,
    /// The shortest round trip of the last round.
    pub shortest: Duration,
    /// Number of rounds so far.
    pub rounds: u64,
    /// Bytes sent so far.
    pub sent: u64,
    /// Bytes that have arrived so far.
    pub acked: u64,
    /// Longest packet, in bytes.
    pub mtu: u64,
}

impl Observed {
    /// The observations of `controller`. `None` before its first round trip, and for one that [`super::DelayBoundConfig`] has
    /// not made.
    pub fn of(controller: Box<dyn Controller>) -> Option<Self> {
        let controller = controller.into_any().downcast::<DelayBound>().ok()?;
        controller.observed()
    }
}

/// The rate of background data on a connection.
#[derive(Debug)]
pub struct Pace {
    /// Bytes a second.
    rate: f64,
    /// The rate of the line when the last queue was seen.
    line: Option<f64>,
    /// Periods until the next growth.
    rest: u32,
    /// A queue of another cause, and until when the pace ignores it.
    given: Option<(Duration, Instant)>,
    yielding: Option<Yielding>,
    /// Number of rounds after which the packets that arrive were sent at the present rate.
    settled_at: u64,
    /// Whether the last change lowered the rate.
    has_yielded: bool,
    /// Number of rounds at the last observation.
    rounds: Option<u64>,
    period: Option<Period>,
    /// Bytes sent in the background so far.
    own: u64,
    /// Bytes that may be sent now. Negative after a longer burst.
    tokens: f64,
    filled_at: Instant,
    mtu: u64,
}

/// A queue that the rate yields to, until it is empty.
#[derive(Debug)]
struct Yielding {
    /// The rate of the line.
    line: f64,
    /// The longest queue so far.
    queue: Duration,
    /// The queue that a lower rate must have removed so far if this connection caused it.
    removed: Duration,
}

/// Observations from a time on.
#[derive(Debug)]
struct Period {
    began: Instant,
    own: u64,
    sent: u64,
    acked: u64,
    rounds: u64,
    shortest: Option<Duration>,
    /// Whether the packets that arrive in it were sent at the present rate.
    is_settled: bool,
}

impl Pace {
    /// A pace that begins with a few packets of `mtu` bytes in a round trip of `rtt`.
    pub fn new(now: Instant, rtt: Duration, mtu: u64) -> Self {
        Self {
            rate: least_rate(rtt, mtu),
            line: None,
            rest: 0,
            given: None,
            yielding: None,
            settled_at: 0,
            has_yielded: false,
            rounds: None,
            period: None,
            own: 0,
            tokens: 0.0,
            filled_at: now,
            mtu,
        }
    }

    /// Time until a burst may be sent; zero if it may be sent now.
    pub fn wait(&mut self, now: Instant) -> Duration {
        self.fill(now);
        match self.tokens >= 0.0 {
            true => Duration::ZERO,
            false => Duration::from_secs_f64(-self.tokens / self.rate),
        }
    }

    /// Maximum number of bytes to send at once.
    pub fn burst(&self) -> u64 {
        ((self.rate * BURST.as_secs_f64()) as u64).max(self.mtu)
    }

    /// Notes a burst.
    pub fn sent(&mut self, bytes: u64) {
        self.tokens -= bytes as f64;
        self.own += bytes;
    }

    fn fill(&mut self, now: Instant) {
        let time = now.saturating_duration_since(self.filled_at);
        self.filled_at = now;
        let most = (self.rate * CATCH_UP.as_secs_f64()).max(self.mtu as f64);
        self.tokens = (self.tokens + time.as_secs_f64() * self.rate).min(most);
    }

    /// Adjusts the rate. Call it at least once per round trip.
    pub fn observe(&mut self, now: Instant, seen: &Observed) {
        self.mtu = seen.mtu;
        if self.rounds.is_none_or(|rounds| seen.rounds < rounds) {
            // The controller of another path.
            (self.period, self.settled_at) = (None, seen.rounds + 2);
        }
        self.rounds = Some(seen.rounds);
        let period = self.period.get_or_insert(Period {
            began: now,
            own: self.own,
            sent: seen.sent,
            acked: seen.acked,
            rounds: seen.rounds,
            shortest: None,
            is_settled: seen.rounds >= self.settled_at,
        });
        let Some(judged) = period.judged(now, seen, self.own) else {
            return;
        };
        self.period = None;
        let before = self.rate;
        self.judge(now, seen, &judged);
        if self.rate != before {
            self.settled_at = seen.rounds + 2;
            self.has_yielded = self.rate < before;
        }
    }

    fn judge(&mut self, now: Instant, seen: &Observed, judged: &Judged) {
        self.given = self.given.filter(|(_, until)| now < *until);
        let given = self.given.map_or(Duration::ZERO, |(queue, _)| queue);
        let queue = judged.queue.saturating_sub(given);
        if let Some(yielding) = &mut self.yielding {
            yielding.note(judged, queue, self.rate);
        }
        let is_settled = seen.rounds >= self.settled_at;
        if !is_settled && (self.has_yielded || queue <= TARGET) {
            return;
        }
        if queue <= TARGET {
            self.judge_empty(seen, judged);
        } else if self.rests() && judged.may_be_noise() {
            self.given = Some((judged.queue, now + GIVEN));
            self.rest -= 1;
        } else {
            self.give_way(now, seen, judged, queue);
        }
    }

    /// Whether the rate is below that of the line, and does not empty a queue.
    fn rests(&self) -> bool {
        let is_below = self.line.is_some_and(|line| self.rate < line);
        is_below && self.rest > 0 && self.yielding.is_none()
    }

    fn judge_empty(&mut self, seen: &Observed, judged: &Judged) {
        if let Some(yielding) = self.yielding.take() {
            self.set_rate(seen.base, yielding.line * (1.0 - MARGIN));
        } else if judged.arrived < FULL * judged.own {
            // The queue has only begun, or the line drops what exceeds its rate.
            if judged.is_settled {
                let line = judged.arrived.max(judged.own * LEAST_PART);
                self.line = Some(line);
                self.rest = REST_PERIODS;
                self.set_rate(seen.base, line * (1.0 - MARGIN));
            }
        } else if judged.own >= USED * self.rate && judged.arrived >= SOUND * judged.own {
            self.grow();
        }
    }

    /// Yields to a queue, unless that has not helped.
    fn give_way(&mut self, now: Instant, seen: &Observed, judged: &Judged, queue: Duration) {
        let yielding = self.yielding.get_or_insert(Yielding {
            line: judged.arrived.min(self.rate),
            queue,
            removed: Duration::ZERO,
        });
        let line = yielding.line;
        let is_due = yielding.removed > 2 * yielding.queue + TARGET;
        if is_due && queue > yielding.queue / 2 {
            // Something else causes it.
            self.given = Some((judged.queue, now + GIVEN));
            self.yielding = None;
            self.set_rate(seen.base, line);
            return;
        }
        self.line = Some(line);
        self.rest = REST_PERIODS;
        let trip = (seen.base + judged.queue).max(SHORTEST_PERIOD);
        let part = 1.0 - queue.as_secs_f64() / trip.as_secs_f64() - MARGIN;
        self.set_rate(trip, line * part.max(LEAST_PART));
    }

    fn grow(&mut self) {
        let is_near = self
            .line
            .is_some_and(|line| NEAR.contains(&(self.rate / line)));
        if self.rest > 0 && is_near {
            self.rest -= 1;
            return;
        }
        self.rate *= if is_near { GROWTH } else { FAST_GROWTH };
    }

    fn set_rate(&mut self, trip: Duration, rate: f64) {
        self.rate = rate.max(least_rate(trip, self.mtu));
    }
}

/// Bytes a second of a few packets per round trip.
fn least_rate(trip: Duration, mtu: u64) -> f64 {
    (LEAST * mtu) as f64 / trip.max(LEAST_TRIP).as_secs_f64()
}

impl Yielding {
    fn note(&mut self, judged: &Judged, queue: Duration, rate: f64) {
        self.queue = self.queue.max(queue);
        if judged.is_settled {
            let part = 1.0 - rate / self.line;
            self.removed += judged.took.mul_f64(part.max(0.0));
        }
    }
}

impl Period {
    /// Adds an observation. Returns the period if it is long enough to judge by. `own` is the bytes sent in the background
    /// so far.
    fn judged(&mut self, now: Instant, seen: &Observed, own: u64) -> Option<Judged> {
        if seen.rounds != self.rounds {
            self.rounds = seen.rounds;
            let shortest = self.shortest.unwrap_or(seen.shortest);
            self.shortest = Some(shortest.min(seen.shortest));
        }
        let took = now.saturating_duration_since(self.began);
        let arrived = seen.acked.saturating_sub(self.acked);
        let is_long = took >= SHORTEST_PERIOD.max(seen.base);
        let is_enough = arrived >= PERIOD_PACKETS * seen.mtu || took >= LONGEST_PERIOD;
        let shortest = self.shortest.filter(|_| is_long && is_enough)?;
        let own = own - self.own;
        let others = seen.sent.saturating_sub(self.sent).saturating_sub(own);
        let seconds = took.as_secs_f64();
        Some(Judged {
            took,
            queue: shortest.saturating_sub(seen.base),
            own: own as f64 / seconds,
            arrived: arrived.saturating_sub(others) as f64 / seconds,
            is_settled: self.is_settled,
        })
    }
}

/// A period that has ended.
struct Judged {
    took: Duration,
    /// Its shortest round trip, without that of the empty line.
    queue: Duration,
    /// Background data sent, in bytes a second.
    own: f64,
    /// Background data that arrived, in bytes a second.
    arrived: f64,
    /// Whether all that arrived was sent at the present rate.
    is_settled: bool,
}

impl Judged {
    fn may_be_noise(&self) -> bool {
        self.is_settled && self.queue <= MOST_NOISE && self.arrived >= FULL * self.own
    }
}

#[cfg(test)]
mod tests;
