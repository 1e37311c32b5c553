//! Tests of the controller over a line in virtual time: one sender with unlimited data, a rate, a delay and a queue.

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const MTU: u16 = 1200;
const MS: Duration = Duration::from_millis(1);

struct Line {
    delay: Duration,
    /// None is unlimited.
    bits_per_second: Option<f64>,
    queue: Duration,
    loss: f64,
}

/// Measurements of a sender over a line, without its first two seconds.
struct Outcome {
    bits_per_second: f64,
    /// Median queueing delay of all packets that arrived.
    queued: Duration,
    /// Longest queueing delay of the first two seconds.
    most_queued_at_start: Duration,
    window: u64,
}

/// Sends for ten seconds.
fn run(controller: &mut DelayBound, start: Instant, line: &Line) -> Outcome {
    let seconds = 10;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut now, mut free_at, mut next_send) = (start, start, start);
    // Per packet: when its outcome is known, when it was sent, whether it is lost.
    let mut flying: VecDeque<(Instant, Instant, bool)> = VecDeque::new();
    let (mut delivered, mut queues) = (0, Vec::new());
    let mut most_queued_at_start = Duration::ZERO;
    while now < start + Duration::from_secs(seconds) {
        let in_flight = flying.len() as u64 * u64::from(MTU);
        let may_send = in_flight + u64::from(MTU) <= controller.window();
        let due = flying.front().map(|(at, _, _)| *at);
        if may_send && due.is_none_or(|due| next_send <= due) {
            now = now.max(next_send);
            // Paced, as quinn does.
            let trip = controller.base.map_or(2 * line.delay, |(base, _)| base);
            let part = f64::from(MTU) / controller.window() as f64 / 1.25;
            next_send = now + trip.mul_f64(part);
            let queued = free_at.saturating_duration_since(now);
            let takes = line.bits_per_second.map_or(Duration::ZERO, |rate| {
                Duration::from_secs_f64(f64::from(MTU) * 8.0 / rate)
            });
            let lost = queued > line.queue || random.random_bool(line.loss);
            if queued <= line.queue {
                free_at = now.max(free_at) + takes;
            }
            let answered = now.max(free_at) + 2 * line.delay;
            flying.push_back((answered, now, lost));
            if now <= start + 2000 * MS {
                most_queued_at_start = most_queued_at_start.max(queued);
            } else if !lost {
                queues.push(queued);
            }
            continue;
        }
        let Some((at, sent, lost)) = flying.pop_front() else {
            continue;
        };
        now = now.max(at);
        if lost {
            controller.on_congestion_event(now, sent, false, MTU.into());
        } else {
            controller.acknowledged(now, sent, MTU.into(), false);
            controller.end_acknowledgement();
            delivered += u64::from(now > start + 2000 * MS);
        }
    }
    queues.sort();
    Outcome {
        bits_per_second: (delivered * u64::from(MTU) * 8) as f64 / (seconds - 2) as f64,
        queued: queues[queues.len() / 2],
        window: controller.window(),
        most_queued_at_start,
    }
}

fn new_controller() -> (DelayBound, Instant) {
    let start = Instant::now();
    (DelayBound::new(start, MTU), start)
}

fn fifty_megabits() -> Line {
    Line {
        delay: 15 * MS,
        bits_per_second: Some(50e6),
        queue: 200 * MS,
        loss: 0.0,
    }
}

#[test]
fn a_line_is_used_and_its_queue_stays_short() {
    let (mut controller, start) = new_controller();
    let outcome = run(&mut controller, start, &fifty_megabits());
    assert!(
        outcome.bits_per_second > 0.9 * 50e6,
        "{}",
        outcome.bits_per_second
    );
    assert!(outcome.queued < 2 * TARGET, "{:?}", outcome.queued);
    let most = outcome.most_queued_at_start;
    // The window doubles once more while the first signs of a queue travel back.
    assert!(most < 30 * MS, "{most:?}");
}

#[test]
fn losses_without_a_queue_do_not_shrink_the_window() {
    let (mut controller, start) = new_controller();
    let line = Line {
        loss: 0.04,
        ..fifty_megabits()
    };
    let outcome = run(&mut controller, start, &line);
    assert!(
        outcome.bits_per_second > 0.75 * 50e6,
        "{}",
        outcome.bits_per_second
    );
    assert!(outcome.queued < 2 * TARGET, "{:?}", outcome.queued);
}

#[test]
fn many_losses_shrink_the_window_to_its_least() {
    let (mut controller, start) = new_controller();
    let line = Line {
        delay: 25 * MS,
        bits_per_second: None,
        loss: 0.3,
        queue: Duration::ZERO,
    };
    let outcome = run(&mut controller, start, &line);
    assert_eq!(outcome.window, LEAST_PACKETS * u64::from(MTU));
}

/// A relay's share for one pair of members: it drops what waits longer than 150 ms.
fn sixteen_kilobytes() -> Line {
    Line {
        delay: 25 * MS,
        bits_per_second: Some(16.0 * 8192.0),
        queue: 150 * MS,
        loss: 0.0,
    }
}

#[test]
fn most_packets_arrive_where_a_few_fill_the_queue() {
    let (mut controller, start) = new_controller();
    let outcome = run(&mut controller, start, &sixteen_kilobytes());
    assert!(controller.loss < 0.5, "{}", controller.loss);
    assert!(
        outcome.bits_per_second > 0.8 * 16.0 * 8192.0,
        "{}",
        outcome.bits_per_second
    );
}

#[test]
fn a_window_below_the_least_grows_again_on_a_faster_line() {
    let (mut controller, start) = new_controller();
    run(&mut controller, start, &sixteen_kilobytes());
    assert!(controller.window() < controller.least());
    let start = start + Duration::from_secs(10);
    controller.on_congestion_event(start, start, true, MTU.into());
    assert!(controller.window() < controller.least());
    run(&mut controller, start, &fifty_megabits());
    assert!(controller.window() > controller.least());
}

#[test]
fn a_queue_shorter_than_the_target_does_not_lose_much() {
    let (mut controller, start) = new_controller();
    let line = Line {
        queue: 3 * MS,
        ..fifty_megabits()
    };
    let outcome = run(&mut controller, start, &line);
    assert!(
        outcome.bits_per_second > 0.8 * 50e6,
        "{}",
        outcome.bits_per_second
    );
    assert!(controller.loss < 0.02, "{}", controller.loss);
}

#[test]
fn a_longer_route_is_noticed() {
    let (mut controller, start) = new_controller();
    run(&mut controller, start, &fifty_megabits());
    let longer = Line {
        delay: 40 * MS,
        ..fifty_megabits()
    };
    let start = start + Duration::from_secs(10);
    run(&mut controller, start, &longer);
    let outcome = run(&mut controller, start + Duration::from_secs(10), &longer);
    assert!(
        outcome.bits_per_second > 0.7 * 50e6,
        "{}",
        outcome.bits_per_second
    );
}

#[test]
fn a_games_traffic_leaves_the_window_unchanged() {
    let (mut controller, start) = new_controller();
    for message in 0..60 {
        let sent = start + message * 16 * MS;
        // Acknowledgements wait for up to 25 ms.
        controller.acknowledged(sent + (50 + message % 25) * MS, sent, 100, true);
    }
    assert!(controller.starting);
    assert_eq!(controller.window(), controller.least());
}

#[test]
fn a_connection_that_was_idle_starts_again() {
    let (mut controller, start) = new_controller();
    run(&mut controller, start, &fifty_megabits());
    assert!(!controller.starting && controller.window() > controller.least());
    for second in 11..30 {
        let sent = start + Duration::from_secs(second);
        controller.acknowledged(sent + 55 * MS, sent, 100, true);
    }
    assert!(controller.starting);
    assert_eq!(controller.window(), controller.least());
}

#[test]
fn persistent_congestion_and_marks_shrink_the_window() {
    let (mut controller, start) = new_controller();
    run(&mut controller, start, &fifty_megabits());
    let now = start + Duration::from_secs(10);
    let before = controller.window();
    controller.on_congestion_event(now, now, false, 0);
    controller.acknowledged(now + 30 * MS, now, MTU.into(), false);
    assert!(controller.window() < before, "ECN");
    controller.on_congestion_event(now, now, true, MTU.into());
    assert_eq!(controller.window(), controller.least());
}
