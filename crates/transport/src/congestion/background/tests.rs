//! A transfer and a game's messages on one line, in virtual time.

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const MTU: u64 = 1452;
const MESSAGE: u64 = 110;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MESSAGES: Duration = Duration::from_micros(16_667);

#[derive(Debug, Clone, Copy)]
struct Line {
    /// One way.
    delay: Duration,
    bits_per_second: f64,
    loss: f64,
    /// Longest additional delay of a packet. Packets stay in order.
    jitter: Duration,
    /// Queue of another program's packets, which react to nothing.
    others: Duration,
}

const HOME: Line = Line {
    delay: Duration::from_millis(15),
    bits_per_second: 10e6,
    loss: 0.0,
    jitter: Duration::ZERO,
    others: Duration::ZERO,
};

/// Measurements from a time on.
struct Outcome {
    /// Queueing delays of the game's messages, sorted.
    waits: Vec<Duration>,
    /// Rate of the transfer.
    bits_per_second: f64,
}

impl Outcome {
    fn quantile(&self, part: f64) -> Duration {
        self.waits[((self.waits.len() - 1) as f64 * part) as usize]
    }
}

/// A sender with both, or without a pace.
struct Sender {
    controller: DelayBound,
    pace: Option<Pace>,
    random: ChaCha8Rng,
    now: Instant,
    free_at: Instant,
    answered_until: Instant,
    next_message: Instant,
    /// When the answer comes, when the packet was sent, its bytes, and whether it is lost.
    flying: VecDeque<(Instant, Instant, u64, bool)>,
}

impl Sender {
    fn new(line: Line, is_paced: bool) -> Self {
        let now = Instant::now();
        Self {
            controller: DelayBound::new(now, MTU as u16),
            pace: is_paced.then(|| Pace::new(now, 2 * line.delay, MTU)),
            random: ChaCha8Rng::seed_from_u64(1),
            now,
            free_at: now,
            answered_until: now,
            next_message: now,
            flying: VecDeque::new(),
        }
    }

    /// Sends for a while, and measures what is sent after `skipped` of it.
    fn run(&mut self, line: Line, skipped: Duration, length: Duration) -> Outcome {
        let (begin, end) = (self.now + skipped, self.now + skipped + length);
        let (mut delivered, mut waits) = (0, Vec::new());
        while self.now < end {
            let in_flight: u64 = self.flying.iter().map(|(_, _, bytes, _)| bytes).sum();
            let is_limited = in_flight + MTU > self.controller.window();
            let answer = self.flying.front().map(|(at, ..)| *at);
            let mut next = self.next_message.min(answer.unwrap_or(end));
            if !is_limited {
                let wait = self.pace.as_mut().map(|pace| pace.wait(self.now));
                next = next.min(self.now + wait.unwrap_or_default());
            }
            self.now = self.now.max(next);
            if answer.is_some_and(|at| at <= self.now) {
                let arrived = self.answered(is_limited);
                if self.now > begin && arrived == MTU {
                    delivered += arrived;
                }
                continue;
            }
            let is_message = self.next_message <= self.now;
            let queued = self.send(line, is_message);
            if is_message && self.now > begin {
                waits.push(queued);
            }
        }
        waits.sort();
        Outcome {
            waits,
            bits_per_second: delivered as f64 * 8.0 / length.as_secs_f64(),
        }
    }

    /// Takes the next answer. Returns the bytes that have arrived.
    fn answered(&mut self, is_limited: bool) -> u64 {
        let (_, sent, bytes, lost) = self.flying.pop_front().expect("a packet");
        if lost {
            let (now, controller) = (self.now, &mut self.controller);
            controller.on_congestion_event(now, sent, false, bytes);
        } else {
            self.controller
                .acknowledged(self.now, sent, bytes, !is_limited);
            self.controller.end_acknowledgement();
        }
        if let (Some(seen), Some(pace)) = (self.controller.observed(), &mut self.pace) {
            pace.observe(self.now, &seen);
        }
        if lost { 0 } else { bytes }
    }

    /// Returns the time in the queue.
    fn send(&mut self, line: Line, is_message: bool) -> Duration {
        let bytes = if is_message { MESSAGE } else { MTU };
        if is_message {
            self.next_message = self.now + MESSAGES;
        } else if let Some(pace) = &mut self.pace {
            pace.sent(MTU);
        }
        self.controller.on_sent(self.now, bytes, 0);
        let queued = self.free_at.saturating_duration_since(self.now) + line.others;
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / line.bits_per_second);
        self.free_at = self.now.max(self.free_at) + takes;
        let jitter = line.jitter.mul_f64(self.random.random_range(0.0..1.0));
        let answered = self.free_at + line.others + 2 * line.delay + jitter;
        self.answered_until = self.answered_until.max(answered);
        let lost = self.random.random_bool(line.loss);
        self.flying
            .push_back((self.answered_until, self.now, bytes, lost));
        queued
    }
}

fn run(line: Line) -> Outcome {
    Sender::new(line, true).run(line, SECOND, 15 * SECOND)
}

#[test]
fn messages_find_the_line_as_good_as_empty_beside_a_transfer() {
    for (line, part, p99) in [
        (HOME, 0.9, 6 * MS),
        (
            Line {
                bits_per_second: 2e6,
                ..HOME
            },
            0.85,
            // Three packets.
            18 * MS,
        ),
        (
            Line {
                bits_per_second: 50e6,
                ..HOME
            },
            0.9,
            8 * MS,
        ),
        (
            Line {
                bits_per_second: 1e9,
                delay: MS / 4,
                ..HOME
            },
            0.9,
            6 * MS,
        ),
        (
            Line {
                loss: 0.02,
                delay: 25 * MS,
                ..HOME
            },
            0.85,
            8 * MS,
        ),
    ] {
        let outcome = run(line);
        let used = outcome.bits_per_second / line.bits_per_second;
        let waited = outcome.quantile(0.99);
        println!("{used:.3} of the line, 99 % within {waited:?}: {line:?}");
        assert!(used > part && waited < p99, "{used} {waited:?} {line:?}");
        assert!(outcome.quantile(0.5) < p99 / 4, "{line:?}");
    }
}

#[test]
fn without_a_pace_messages_wait_for_the_transfer() {
    let [with, without] = [true, false].map(|is_paced| {
        let outcome = Sender::new(HOME, is_paced).run(HOME, SECOND, 15 * SECOND);
        outcome.quantile(0.9)
    });
    println!("90 % within {with:?}; {without:?} without a pace");
    assert!(without > 2 * with, "{with:?} {without:?}");
}

#[test]
fn another_rate_of_the_line_is_found_within_seconds() {
    for factor in [0.25, 0.5, 2.0, 5.0] {
        let mut sender = Sender::new(HOME, true);
        sender.run(HOME, Duration::ZERO, 5 * SECOND);
        let line = Line {
            bits_per_second: HOME.bits_per_second * factor,
            ..HOME
        };
        let outcome = sender.run(line, 8 * SECOND, 10 * SECOND);
        let used = outcome.bits_per_second / line.bits_per_second;
        println!("{factor}: {used:.3}, {:?}", outcome.quantile(0.9));
        assert!(used > 0.8, "{factor}: {used}");
        assert!(outcome.quantile(0.9) < 15 * MS, "{factor}");
    }
}

#[test]
fn queues_of_other_causes_leave_the_transfer_at_least_half_of_the_line() {
    for line in [
        Line {
            others: 30 * MS,
            ..HOME
        },
        Line {
            jitter: 10 * MS,
            ..HOME
        },
    ] {
        // They begin after the line was seen empty.
        let mut sender = Sender::new(HOME, true);
        sender.run(HOME, Duration::ZERO, 3 * SECOND);
        let outcome = sender.run(line, SECOND, 20 * SECOND);
        let used = outcome.bits_per_second / line.bits_per_second;
        println!("{used:.3} of the line: {line:?}");
        assert!(used > 0.5, "{used} {line:?}");
    }
}

#[test]
fn after_an_outage_the_transfer_goes_on_as_before() {
    let mut sender = Sender::new(HOME, true);
    sender.run(HOME, Duration::ZERO, 5 * SECOND);
    let dead = Line { loss: 1.0, ..HOME };
    sender.run(dead, Duration::ZERO, 3 * SECOND);
    let outcome = sender.run(HOME, 5 * SECOND, 5 * SECOND);
    let used = outcome.bits_per_second / HOME.bits_per_second;
    assert!(used > 0.8, "{used}");
}

#[test]
fn the_controller_of_another_path_begins_anew() {
    let mut sender = Sender::new(HOME, true);
    sender.run(HOME, Duration::ZERO, 5 * SECOND);
    sender.controller = DelayBound::new(sender.now, MTU as u16);
    sender.flying.clear();
    let line = Line {
        bits_per_second: 20e6,
        ..HOME
    };
    let outcome = sender.run(line, 5 * SECOND, 5 * SECOND);
    let used = outcome.bits_per_second / line.bits_per_second;
    assert!(used > 0.8, "{used}");
}

#[test]
fn a_rate_that_is_not_used_does_not_grow() {
    let start = Instant::now();
    let mut pace = Pace::new(start, 30 * MS, MTU);
    let before = pace.rate;
    for round in 0..1000 {
        let now = start + 10 * MS * round;
        assert_eq!(pace.wait(now), Duration::ZERO);
        pace.sent(100);
        let bytes = 100 * u64::from(round);
        let seen = Observed {
            base: 30 * MS,
            shortest: 30 * MS,
            rounds: round.into(),
            sent: bytes,
            acked: bytes,
            mtu: MTU,
        };
        pace.observe(now, &seen);
    }
    assert!(pace.rate <= before, "{before} {}", pace.rate);
    // After a pause it sends no more at once than a late timer may make up for.
    let now = start + 60 * SECOND;
    assert_eq!(pace.wait(now), Duration::ZERO);
    pace.sent(MTU);
    pace.sent(MTU);
    assert!(pace.wait(now) > Duration::ZERO);
}

#[test]
fn wild_observations_keep_the_rate_within_bounds() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..200 {
        let mut now = Instant::now();
        let mut pace = Pace::new(now, Duration::ZERO, MTU);
        for _ in 0..200 {
            now += Duration::from_micros(random.random_range(0..200_000));
            if pace.wait(now).is_zero() {
                pace.sent(pace.burst());
            }
            let mut time = || Duration::from_micros(random.random_range(0..1_000_000));
            let (base, shortest) = (time(), time());
            let mut number = || random.random_range(0..1 << 40);
            let seen = Observed {
                base,
                shortest,
                rounds: number() % 100,
                sent: number(),
                acked: number(),
                mtu: 1200,
            };
            pace.observe(now, &seen);
            assert!(
                pace.rate.is_finite() && pace.rate >= 4.0 * 1200.0,
                "{pace:?}"
            );
            assert!(pace.wait(now) < SECOND, "{pace:?}");
        }
    }
}
